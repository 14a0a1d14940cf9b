/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nccl_log.c - any bytes as NCCL's log.  Reading comes to an end; what it points to lies
 * inside. */
#include "sources/nccl/nccl_impl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    nccl_log l = {.path = "log", .at = text, .end = text + size};
    nccl_log_line line;
    orr_error err;
    orr_code code;
    size_t count = 0;
    while ((code = nccl_log_next(&l, &line, &err)) == ORR_OK) {
        require(line.ident.len && line.ident.ptr >= text &&
                line.ident.ptr + line.ident.len <= text + size);
        require(line.rank <= UINT32_MAX && ++count <= size);
    }
    require(code == ORR_END || (code == ORR_EINPUT && err.where.line));
    return 0;
}
