/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_job.c - jobs of several ranks, made up by bench/torch_trace.c, which knows what is in
 * them. */
#include "check.h"

#include <orrery/check.h>
#include <orrery/lab/link.h>

#include "../../bench/torch_trace.h"

#include <sys/stat.h>

static orr_error err;
static torch_totals totals;

static orr_link_job *open_job(const char *folder)
{
    const char *const paths[] = {folder};
    orr_link_job *job;
    CHECK_OK(orr_link_job_open(paths, 1, NULL, &job, &err), &err);
    return job;
}

static const orr_set *set_of(orr_link_job *job)
{
    const orr_set *s;
    CHECK_OK(orr_link_job_set(job, &s, &err), &err);
    return s;
}

/* The made-up clocks differ by 1.234567 ms from rank to rank, and collectives end at the same time
 * on all. */
TEST(test_link_job__puts_clocks_in_line)
{
    orr_link_job *job = open_job("four");
    CHECK_EQ_U(orr_link_job_rank_count(job), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const orr_link_rank *r = orr_link_job_rank(job, i);
        CHECK_EQ_U(r->rank, i);
        CHECK(r->host && r->device && !r->is_guessed);
        CHECK_EQ(r->clock_ns, -(int64_t)i * TORCH_CLOCK_STEP_NS);
        CHECK_EQ_U(r->shared, i ? totals.collectives : 0);
    }
    orr_link_job_close(job);
}

TEST(test_link_job__loses_no_communication_and_no_device_time)
{
    orr_link_job *job = open_job("four");
    const orr_set *s = set_of(job);
    CHECK_EQ_U(orr_set_rank_count(s), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const orr_link_rank *r = orr_link_job_rank(job, i);
        CHECK_EQ_U(r->counts.of[ORR_LINK_HOST_NODES], totals.host_nodes);
        CHECK_EQ_U(r->counts.of[ORR_LINK_DEVICE_EVENTS], totals.device_events);
        CHECK_EQ_U(r->counts.of[ORR_LINK_PLACED], totals.kernels + totals.copies + totals.fills);
        CHECK_EQ_U(r->report.collectives, totals.collectives);
        CHECK_EQ_U(r->report.messages, totals.messages);
    }
    orr_check_report *report;
    CHECK_OK(orr_check_set(s, NULL, &report, &err), &err);
    CHECK_EQ_U(report->finding_count, 0);
    orr_check_report_destroy(report);
    orr_link_job_close(job);
}

/* Every kernel, copy and fill is a span on a stream, as long as it was. */
TEST(test_link_job__draws_what_was_measured)
{
    orr_link_job *job = open_job("four");
    orr_timeline *t;
    CHECK_OK(orr_link_job_timeline(job, &t, &err), &err);
    const orr_timeline_parts *p = orr_timeline_view(t);
    orr_ps busy = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < p->span_count; i++) {
        const orr_str track = orr_timeline_text(t, p->tracks[p->spans[i].track].name);
        if (track.len < 6 || memcmp(track.ptr, "stream", 6) != 0)
            continue;
        busy += p->spans[i].end - p->spans[i].start;
        count++;
    }
    CHECK_EQ_U(count, 4 * (totals.kernels + totals.copies + totals.fills));
    CHECK_EQ_PS(busy, 4 * totals.busy_ns * 1000);
    CHECK_EQ_PS(p->start, 0);
    orr_timeline_destroy(t);
    orr_link_job_close(job);
}

TEST(test_link_job__does_the_same_on_any_number_of_threads)
{
    const char *const paths[] = {"four"};
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        orr_link_job *job;
        const orr_link_options opt = {.threads = threads};
        CHECK_OK(orr_link_job_open(paths, 1, &opt, &job, &err), &err);
        CHECK_OK(orr_set_save(set_of(job), threads == 1 ? "one.orr" : "three.orr", NULL, &err),
                 &err);
        orr_link_job_close(job);
    }
    CHECK_EQ(system("cmp one.orr three.orr"), 0);
}

TEST(test_link_job__names_ranks_that_are_missing_or_there_twice)
{
    const char *const twice[] = {"four/t.0.device.json", "four/t.1.device.json", "copy.json"};
    const char *const gap[] = {"four/t.0.device.json", "four/t.3.device.json"};
    const char *const part[] = {"four/t.0.device.json", "four/t.1.device.json"};
    orr_link_job *job;
    CHECK_EQ(system("cp four/t.1.device.json copy.json"), 0);
    CHECK_CODE(orr_link_job_open(twice, 3, NULL, &job, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "both of rank 1");
    CHECK_CODE(orr_link_job_open(gap, 2, NULL, &job, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 1 has no traces, but rank 3 has");
    CHECK_CODE(orr_link_job_open(part, 2, NULL, &job, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "of a job of 4");
}

TEST(test_link_job__takes_one_rank_of_a_job_alone)
{
    const char *const one[] = {"four/t.2.device.json", "four/t.2.host.json"};
    orr_link_job *job;
    CHECK_OK(orr_link_job_open(one, 2, NULL, &job, &err), &err);
    CHECK_EQ_U(orr_link_job_rank(job, 0)->rank, 2);
    CHECK_EQ_U(orr_link_job_rank(job, 0)->counts.of[ORR_LINK_UNTRACED], 0);
    CHECK_EQ_U(orr_set_rank_count(set_of(job)), 1);
    CHECK_EQ_U(orr_link_job_inferred(job), 0);
    CHECK(orr_link_job_link(job, 0) != NULL);
    orr_link_job_close(job);
}

TEST(test_link_job__gives_its_set_away)
{
    orr_link_job *job = open_job("four");
    orr_set *own;
    CHECK_OK(orr_link_job_take_set(job, &own, &err), &err);
    orr_link_job_close(job);
    CHECK_EQ_U(orr_set_rank_count(own), 4);
    CHECK(orr_trace_columns(orr_set_trace(own, 0))->count > 0);
    orr_set_close(own);
}

int main(void)
{
    const torch_job four = {.prefix = "four/t", .ranks = 4, .steps = 2, .layers = 3, .seed = 5};
    const CMUnitTest tests[] = {
        RUN(test_link_job__puts_clocks_in_line),
        RUN(test_link_job__loses_no_communication_and_no_device_time),
        RUN(test_link_job__draws_what_was_measured),
        RUN(test_link_job__does_the_same_on_any_number_of_threads),
        RUN(test_link_job__names_ranks_that_are_missing_or_there_twice),
        RUN(test_link_job__takes_one_rank_of_a_job_alone),
        RUN(test_link_job__gives_its_set_away),
    };
    if (mkdir("four", 0777) != 0)
        return 1;
    totals = torch_make(&four);
    return RUN_ALL(tests);
}
