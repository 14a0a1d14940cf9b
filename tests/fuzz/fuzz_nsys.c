/* SPDX-License-Identifier: Apache-2.0 */
/* room: nccl_generator, nsight */
/* fuzz_nsys.c - any bytes as an SQLite file that is said to be an export: as rows, as a timeline,
 * as a job.  What is refused has words and names the file. */
#include "compat/nccl_generator/nccl_generator.h"

#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_timeline(const char *path)
{
    orr_timeline *t;
    orr_error err = {0};
    if (orr_nsys_timeline(path, &t, &err)) {
        require(!t && err.message[0] && err.where.path[0]);
        return;
    }
    const orr_timeline_parts *p = orr_timeline_look(t);
    require(p->start <= p->end);
    orr_timeline_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    orr_nccl_report r;
    orr_error err = {0};
    snprintf(path, sizeof path, "fuzz_nsys.%ld.sqlite", (long)getpid());
    FILE *f = fopen(path, "wb");
    require(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
    check_timeline(path);
    const char *const paths[] = {path};
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        const orr_nccl_options opt = {.rules = is_compat ? &ncg_rules : NULL};
        require(orr_nccl_convert(paths, 1, &opt, &r, &err) == ORR_OK || err.message[0]);
    }
    unlink(path);
    return 0;
}
