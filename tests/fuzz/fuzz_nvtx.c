/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nvtx.c - any bytes as an NVTX text.  What it points to lies inside of it; a marker has a
 * kind, anything else none. */
#include <orrery/lab/nsys.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_inside(orr_str part, orr_str all)
{
    require(part.len == 0 || (part.ptr >= all.ptr && part.ptr + part.len <= all.ptr + all.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_str text = {.ptr = (const char *)data, .len = size};
    orr_nsys_row row = {0};
    orr_error err = {0};
    const orr_code code = orr_nsys_marker(text, &row, &err);
    require(code == ORR_OK || code == ORR_END || (code == ORR_EINPUT && err.message[0]));
    require((code == ORR_END) == (row.kind == ORR_NSYS_OTHER));
    require(row.kind < ORR_NSYS_KINDS && row.op < ORR_NCCL_OPS);
    if (code)
        return 0;
    check_inside(row.hash, text);
    check_inside(row.id, text);
    check_inside(row.stream, text);
    return 0;
}
