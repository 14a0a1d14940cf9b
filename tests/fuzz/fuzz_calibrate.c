/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_calibrate.c - any bytes as what nccl-tests printed, and as the table of constants that comes of it.  The first
 * byte says which.  What is refused has words; rows that are taken have sizes and times, and constants that are taken
 * give finite times. */
#include "fuzz_trace.h"

#include "models/collective/nccl/nccl_parts.h"
#include "run/alone/alone.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    alone_text t;
    nccl_custom custom;
    orr_error err = {0};
    if (size < 1 || size > 1 << 14)
        return 0;
    const orr_span bytes = {data + 1, size - 1};
    if (data[0] & 1) {
        if (nccl_custom_parse(bytes, "table.yml", &custom, &err))
            REQUIRE(err.message[0] && err.where.path[0]);
        return 0;
    }
    orr_arena *arena = orr_arena_create();
    REQUIRE(arena);
    if (alone_read(bytes, "measured.txt", arena, &t, &err))
        REQUIRE(err.message[0] && err.where.path[0]);
    else
        for (size_t i = 0; i < t.count; i++)
            REQUIRE(t.rows[i].line && isfinite(t.rows[i].us) && t.rows[i].us >= 0);
    orr_arena_destroy(arena);
    return 0;
}
