/* SPDX-License-Identifier: Apache-2.0 */
/* room: nccl_generator, nsight */
/* fuzz_nsys.c - any bytes as an SQLite file that is said to be an export: as rows, as a timeline,
 * as a job, as measured operators.  What is refused has words and names the file. */
#include "fuzz_trace.h"

#include "compat/nccl_generator/nccl_generator.h"

#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>

static void check_timeline(const char *path)
{
    orr_timeline *t;
    orr_error err = {0};
    if (orr_nsys_timeline(path, &t, &err)) {
        REQUIRE(!t && err.message[0] && err.where.path[0]);
        return;
    }
    const orr_timeline_parts *p = orr_timeline_view(t);
    REQUIRE(p->start <= p->end);
    orr_timeline_destroy(t);
}

static orr_code take_operator(void *context, const char *kernel, double us, orr_error *err)
{
    (void)err;
    REQUIRE(kernel[0] && us >= 0 && ++*(uint64_t *)context);
    return ORR_OK;
}

static void check_operators(const char *path)
{
    uint64_t taken = 0, passed_over = 0;
    orr_error err = {0};
    if (orr_nsys_operators(path, "bf16", take_operator, &taken, &passed_over, &err))
        REQUIRE(err.message[0] && err.where.path[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_shm_file(data, size);
    orr_nccl_report r;
    orr_error err = {0};
    const unsigned timeline = 2, operators = 3;
    const char *const paths[] = {path};
    FUZZ_WAYS(way, 4, data, size)
    {
        const orr_nccl_options opt = {.rules = way == 1 ? &ncg_rules : NULL};
        if (way >= timeline) {
            (way == operators ? check_operators : check_timeline)(path);
            continue;
        }
        REQUIRE(orr_nccl_convert(paths, 1, &opt, &r, &err) == ORR_OK || err.message[0]);
    }
    return 0;
}
