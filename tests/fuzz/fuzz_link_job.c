/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_link_job.c - any bytes as the traces of a job whose kinds and ranks are not known: one file, or two with a byte of 0
 * between them.  What a file is must be found out; what is refused has words.  A job has each rank once, and what it
 * is made into has as many. */
#include "fuzz_trace.h"

#include <orrery/lab/link.h>
#include <orrery/timeline.h>

#include <string.h>

enum { MOST = 1 << 13 };

static void look_at_ranks(const orr_link_job *job)
{
    const uint32_t n = orr_link_job_rank_count(job);
    REQUIRE(n >= 1 && n <= 2);
    for (uint32_t i = 0; i < n; i++) {
        const orr_link_rank *r = orr_link_job_rank(job, i);
        REQUIRE((r->host || r->device) && orr_link_job_link(job, i));
        REQUIRE(i == 0 || r->rank > orr_link_job_rank(job, i - 1)->rank);
    }
}

static void make_set(orr_link_job *job)
{
    const orr_set *s;
    orr_error err = {0};
    if (orr_link_job_set(job, &s, &err))
        REQUIRE(err.message[0]);
    else
        REQUIRE(orr_set_rank_count(s) >= orr_link_job_rank_count(job));
}

static void make_timeline(const orr_link_job *job)
{
    orr_timeline *t;
    orr_error err = {0};
    if (orr_link_job_timeline(job, &t, &err)) {
        REQUIRE(err.message[0]);
        return;
    }
    const orr_timeline_parts *p = orr_timeline_view(t);
    REQUIRE(p->start <= p->end);
    orr_timeline_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_link_options opt = {.threads = 1};
    orr_link_job *job;
    orr_error err = {0};
    if (size > MOST)
        return 0;
    const uint8_t *gap = size ? memchr(data, 0, size) : NULL;
    const size_t first = gap ? (size_t)(gap - data) : size;
    const char *paths[2] = {fuzz_file(0, data, first)};
    if (gap)
        paths[1] = fuzz_file(1, gap + 1, size - first - 1);
    const orr_code code = orr_link_job_open(paths, gap ? 2 : 1, &opt, &job, &err);
    REQUIRE(code != ORR_EBUG && !code == (job != NULL));
    if (code) {
        REQUIRE(err.message[0]);
        return 0;
    }
    look_at_ranks(job);
    FUZZ_WAYS(way, 2, data, size)
    if (way == 0)
        make_set(job);
    else
        make_timeline(job);
    orr_link_job_close(job);
    return 0;
}
