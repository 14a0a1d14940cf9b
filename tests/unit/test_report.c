/* SPDX-License-Identifier: Apache-2.0 */
/* test_report.c - reports of timelines made by hand: every figure worked out beside it. */
#include "check.h"
#include "files.h"

#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/text/base64.h"
#include "views/report_impl.h"

#include <orrery/report.h>

#include <zlib.h>

#define NS 1000

static orr_error err;

/* ---- making timelines ---- */

static orr_timeline *new_timeline(void)
{
    orr_timeline *t;
    CHECK_OK(orr_timeline_create(&t, &err), &err);
    return t;
}

static uint32_t add_track(orr_timeline *t, uint32_t rank, const char *name)
{
    uint32_t track;
    CHECK_OK(orr_timeline_add_track(t, rank, orr_str_of(name), &track, &err), &err);
    return track;
}

static uint32_t add_text(orr_timeline *t, const char *text)
{
    uint32_t number;
    CHECK_OK(orr_timeline_add_text(t, orr_str_of(text), &number, &err), &err);
    return number;
}

static uint32_t add_span(orr_timeline *t, orr_timespan span, const char *name)
{
    uint32_t number;
    span.start *= NS;
    span.end *= NS;
    span.name = add_text(t, name);
    CHECK_OK(orr_timeline_add_span(t, &span, &number, &err), &err);
    return number;
}

static void add_work(orr_timeline *t, uint32_t track, uint8_t kind, orr_ps start, orr_ps end)
{
    add_span(t, (orr_timespan){.track = track, .kind = kind, .start = start, .end = end}, "work");
}

static void add_collective(
    orr_timeline *t, uint32_t track, uint8_t type, uint64_t size, orr_ps start, orr_ps end)
{
    add_span(t,
             (orr_timespan){.track = track,
                            .kind = ORR_SPAN_COLLECTIVE,
                            .collective = (uint8_t)(type + 1),
                            .members = 2,
                            .size = size,
                            .group = add_text(t, "pair"),
                            .start = start,
                            .end = end},
             "together");
}

/* ---- looking at documents ---- */

static orr_json *open_json;
static orr_input *open_input;

static orr_json_value read_document(const char *path)
{
    orr_json_value root;
    CHECK_OK(orr_input_open(path, &open_input, &err), &err);
    CHECK_OK(orr_json_open(orr_input_bytes(open_input), path, &open_json, &err), &err);
    CHECK_OK(orr_json_only(open_json, &root, &err), &err);
    return root;
}

static void close_document(void)
{
    orr_json_close(open_json);
    orr_input_close(open_input);
}

/* "runs.0.breakdown.1.idle_ns" */
static orr_json_value find(orr_json_value v, const char *path)
{
    char part[64];
    while (*path) {
        const size_t n = strcspn(path, ".");
        memcpy(part, path, n);
        part[n] = '\0';
        path += n + (path[n] == '.');
        if (orr_json_type_of(v) == ORR_JSON_ARRAY) {
            orr_json_iter it = orr_json_iterate(v);
            for (long k = strtol(part, NULL, 10); k >= 0; k--)
                CHECK(orr_json_next_value(&it, &v));
        } else if (!orr_json_find(v, part, &v)) {
            check_fail(__FILE__, __LINE__, "there is no \"%s\"", part);
        }
    }
    return v;
}

static double number(orr_json_value root, const char *path)
{
    double out;
    CHECK_OK(orr_json_get_double(find(root, path), &out, &err), &err);
    return out;
}

static void check_near(orr_json_value root, const char *path, double want)
{
    const double got = number(root, path);
    if (got < want - 1e-9 * (1 + want) || got > want + 1e-9 * (1 + want))
        check_fail(__FILE__, __LINE__, "%s is %.17g, not %.17g", path, got, want);
}

static void check_text(orr_json_value root, const char *path, const char *want)
{
    char text[256] = "";
    orr_str s;
    CHECK_OK(orr_json_get_str(find(root, path), &s, &err), &err);
    CHECK(s.len < sizeof text);
    memcpy(text, s.ptr, s.len);
    CHECK_TEXT(text, want);
}

static bool is_null(orr_json_value root, const char *path)
{
    return orr_json_type_of(find(root, path)) == ORR_JSON_NULL;
}

/* One run as JSON; the timeline is gone afterwards. */
static orr_json_value report_of(orr_timeline *t, orr_report_run run)
{
    orr_report *r;
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    CHECK_OK(
        orr_report_create(
            &(orr_report_options){.size = sizeof(orr_report_options), .program = "test"}, &r, &err),
        &err);
    run.timeline = t;
    run.name = "a run";
    CHECK_OK(orr_report_add(r, &run, &err), &err);
    orr_timeline_destroy(t);
    CHECK_OK(orr_report_write_json(r, "report.json", &err), &err);
    orr_report_destroy(r);
    return read_document("report.json");
}

/* ---- where the time went ---- */

/*            0    10   20   30   40   50   60   70   80   90   100
 * rank 0     [ compute           ]         [ compute            ]
 *                           [ all-reduce        ]
 * rank 1     [ compute                ]         [ compute ][m]
 *                                     [ all-red.]
 * Rank 1 comes to the all-reduce at 50, so it counts from there on: 20 ns on both. */
static orr_timeline *two_ranks(void)
{
    orr_timeline *t = new_timeline();
    const uint32_t a = add_track(t, 0, "compute"), b = add_track(t, 0, "communication");
    const uint32_t c = add_track(t, 1, "compute"), d = add_track(t, 1, "communication");
    add_work(t, a, ORR_SPAN_COMPUTE, 0, 40);
    add_work(t, a, ORR_SPAN_COMPUTE, 60, 100);
    add_collective(t, b, ORR_COLL_ALL_REDUCE, 1000, 30, 70);
    add_work(t, c, ORR_SPAN_COMPUTE, 0, 50);
    add_collective(t, d, ORR_COLL_ALL_REDUCE, 1000, 50, 70);
    add_work(t, c, ORR_SPAN_COMPUTE, 70, 90);
    add_work(t, d, ORR_SPAN_MEMORY, 90, 95);
    return t;
}

TEST(test_report__time_of_ranks_adds_up)
{
    const orr_json_value root = report_of(two_ranks(), (orr_report_run){0});
    const orr_json_value first = find(root, "runs.0.breakdown.0"),
                         second = find(root, "runs.0.breakdown.1");
    check_text(first, "name", "rank 0");
    check_near(first, "total_ns", 100);
    check_near(first, "compute_ns", 80);
    check_near(first, "comm_exposed_ns", 10);    /* 50 to 60 */
    check_near(first, "comm_overlapped_ns", 10); /* 60 to 70 */
    check_near(first, "memory_ns", 0);
    check_near(first, "waiting_ns", 10); /* 40 to 50, for rank 1 */
    check_near(first, "idle_ns", 0);
    check_near(second, "compute_ns", 70);
    check_near(second, "comm_exposed_ns", 20);
    check_near(second, "comm_overlapped_ns", 0);
    check_near(second, "memory_ns", 5);
    check_near(second, "idle_ns", 5);
    check_near(root, "runs.0.headline.time_ns", 100);
    check_near(root, "runs.0.headline.exposed_comm_ns", 15);
    check_near(root, "runs.0.headline.exposed_comm_share", 0.15);
    CHECK(is_null(root, "runs.0.headline.mfu"));
    CHECK(is_null(root, "runs.0.memory"));
    CHECK(is_null(root, "runs.0.pipeline"));
    CHECK(is_null(root, "runs.0.critical_path"));
    CHECK(is_null(root, "runs.0.topology"));
    close_document();
}

TEST(test_report__measured_clocks_do_not_say_who_came_last)
{
    const orr_json_value root = report_of(two_ranks(), (orr_report_run){.is_measured = true});
    check_near(root, "runs.0.breakdown.0.comm_exposed_ns", 20);    /* 40 to 60 */
    check_near(root, "runs.0.breakdown.0.comm_overlapped_ns", 20); /* 30 to 40, 60 to 70 */
    check_text(root, "runs.0.kind", "measured");
    close_document();
}

TEST(test_report__collectives_have_the_bandwidths_of_nccl_tests)
{
    const orr_json_value root = report_of(two_ranks(), (orr_report_run){0});
    const orr_json_value c = find(root, "runs.0.collectives.0");
    check_text(c, "type", "all-reduce");
    check_text(c, "group", "pair");
    check_near(c, "group_ranks", 2);
    check_near(c, "count", 1);
    check_near(c, "size_bytes", 1000);
    check_near(c, "time_ns", 20);
    check_near(c, "algorithm_Bps", 5e10); /* 1000 bytes in 20 ns */
    check_near(c, "bus_Bps", 5e10);       /* 2 (n-1) / n = 1 */
    check_near(c, "exposed_share", 0.75); /* 10 of 40 ns are under compute */
    close_document();
}

TEST(test_report__factors_of_each_collective)
{
    const struct {
        uint8_t type;
        double size, bus;
    } want[] = {
        {ORR_COLL_ALL_REDUCE, 800, 1.75},      {ORR_COLL_ALL_GATHER, 6400, 0.875},
        {ORR_COLL_REDUCE_SCATTER, 800, 0.875}, {ORR_COLL_ALL_TO_ALL, 800, 0.875},
        {ORR_COLL_BROADCAST, 800, 1},          {ORR_COLL_REDUCE, 800, 1},
        {ORR_COLL_GATHER, 6400, 0.875},        {ORR_COLL_SCATTER, 800, 0.875},
    };
    double size, bus;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const orr__collective_row row = {
            .collective = (uint8_t)(want[i].type + 1), .members = 8, .size = 800};
        CHECK(orr__bandwidth_factors(&row, &size, &bus));
        CHECK(size == want[i].size && bus == want[i].bus);
    }
    const orr__collective_row barrier = {.collective = ORR_COLL_BARRIER + 1, .members = 8};
    const orr__collective_row unknown = {.collective = ORR_COLL_ALL_REDUCE + 1, .size = 5};
    CHECK(!orr__bandwidth_factors(&barrier, &size, &bus));
    CHECK(!orr__bandwidth_factors(&unknown, &size, &bus));
}

TEST(test_report__tokens_and_operations_give_rates)
{
    const orr_json_value root =
        report_of(two_ranks(), (orr_report_run){.tokens = 50, .flops = 8e6, .peak_flops = 1e14});
    check_near(root, "runs.0.headline.tokens_per_s", 5e8); /* 50 in 100 ns */
    check_near(root, "runs.0.headline.mfu", 0.4);          /* 8e6 of 2 x 1e14 x 1e-7 */
    close_document();
}

/* Five minutes on 40,000 ranks are more picoseconds than 64 bits hold. */
TEST(test_report__sums_over_many_ranks_do_not_wrap)
{
    enum { RANKS = 40000 };
    orr_timeline *t = new_timeline();
    const orr_ps ns = 300000000000;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        add_work(t, add_track(t, rank, "compute"), ORR_SPAN_COMPUTE, 0, ns);
        add_span(t,
                 (orr_timespan){.track = rank,
                                .kind = ORR_SPAN_COLLECTIVE,
                                .collective = 1,
                                .members = 7,
                                .size = 7,
                                .end = ns},
                 "sum");
    }
    const orr_json_value root = report_of(t, (orr_report_run){0});
    check_near(root, "runs.0.breakdown.0.count", RANKS);
    check_near(root, "runs.0.breakdown.0.compute_ns", 3e11);
    check_near(root, "runs.0.collectives.0.time_ns", 3e11);
    check_near(root, "runs.0.collectives.0.exposed_share", 0);
    close_document();
}

/* ---- like ranks ---- */

TEST(test_report__like_ranks_are_one_row_and_one_of_them_is_shown)
{
    orr_timeline *t = new_timeline();
    for (uint32_t rank = 0; rank < 6; rank++) {
        const uint32_t track = add_track(t, rank, "compute");
        add_work(t, track, ORR_SPAN_COMPUTE, 0, rank % 2 ? 10000 : 5000 + rank); /* up to 4 more */
    }
    /* 0.1 % of 10,000 ns are 10: ranks 0, 2 and 4 are alike. */
    const orr_report_step steps[] = {{.from_ns = 0, .to_ns = 10000, .rank = 3, .what = "compute"}};
    const orr_json_value root = report_of(t, (orr_report_run){.steps = steps, .step_count = 1});
    CHECK_EQ_U(orr_json_count(find(root, "runs.0.breakdown")), 2);
    check_text(root, "runs.0.breakdown.0.ranks", "0-4/2");
    check_near(root, "runs.0.breakdown.0.compute_ns", 5002);
    check_text(root, "runs.0.breakdown.1.ranks", "1-5/2");
    check_near(root, "runs.0.timeline.ranks_left_out", 4);
    CHECK_EQ_U(orr_json_count(find(root, "runs.0.timeline.tracks")), 2);
    check_near(root, "runs.0.timeline.tracks.0.rank", 0);
    check_near(root, "runs.0.timeline.tracks.1.rank", 3); /* the critical path is there */
    close_document();
}

TEST(test_report__ranks_to_show_are_chosen_or_refused)
{
    static const char *const bad[] = {"", "x", "1-", "3-1", "1,,2", "1 ", "-1", "99999999999"};
    const orr_json_value root = report_of(two_ranks(), (orr_report_run){.ranks_shown = "1"});
    CHECK_EQ_U(orr_json_count(find(root, "runs.0.timeline.tracks")), 2);
    check_near(root, "runs.0.timeline.tracks.0.rank", 1);
    close_document();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        orr_timeline *t = two_ranks();
        orr_report *r;
        const orr_report_run run = {.name = "x", .timeline = t, .ranks_shown = bad[i]};
        CHECK_OK(orr_timeline_seal(t, &err), &err);
        CHECK_OK(orr_report_create(NULL, &r, &err), &err);
        CHECK_CODE(orr_report_add(r, &run, &err), ORR_EUSAGE, &err);
        orr_report_destroy(r);
        orr_timeline_destroy(t);
    }
}

/* ---- pipelines ---- */

/* Ranks 0 -> 2 and 1 -> 3: two lines of two stages. Stage 0 computes 0 to 10, sends 10 to 12,
 * computes 30 to 40; stage 1 receives from 0 on, the message leaves at 10 and is there at 15,
 * computes 15 to 30, sends back 30 to 35. */
static orr_timeline *two_pipelines(void)
{
    orr_timeline *t = new_timeline();
    for (uint32_t line = 0; line < 2; line++) {
        const uint32_t a = add_track(t, line, "compute"), b = add_track(t, line, "messages");
        const uint32_t c = add_track(t, line + 2, "compute"),
                       d = add_track(t, line + 2, "messages");
        add_work(t, a, ORR_SPAN_COMPUTE, 0, 10);
        const uint32_t sent = add_span(t,
                                       (orr_timespan){.track = b,
                                                      .kind = ORR_SPAN_SEND,
                                                      .start = 10,
                                                      .end = 12,
                                                      .has = ORR_SPAN_HAS_PEER,
                                                      .peer = line + 2},
                                       "send");
        const uint32_t came = add_span(t,
                                       (orr_timespan){.track = d,
                                                      .kind = ORR_SPAN_RECEIVE,
                                                      .start = 0,
                                                      .end = 15,
                                                      .has = ORR_SPAN_HAS_PEER,
                                                      .peer = line},
                                       "receive");
        const orr_arrow arrow = {.from = sent, .to = came, .left = 10 * NS, .arrived = 15 * NS};
        CHECK_OK(orr_timeline_add_arrow(t, &arrow, &err), &err);
        add_work(t, c, ORR_SPAN_COMPUTE, 15, 30);
        add_span(t,
                 (orr_timespan){.track = d,
                                .kind = ORR_SPAN_SEND,
                                .start = 30,
                                .end = 35,
                                .has = ORR_SPAN_HAS_PEER,
                                .peer = line},
                 "send");
        add_work(t, a, ORR_SPAN_COMPUTE, 30, 40);
    }
    return t;
}

TEST(test_report__stages_come_from_messages)
{
    const orr_json_value root = report_of(two_pipelines(), (orr_report_run){0});
    CHECK_EQ_U(orr_json_count(find(root, "runs.0.pipeline.stages")), 2);
    check_text(root, "runs.0.pipeline.stages.0.ranks", "0-1");
    check_text(root, "runs.0.pipeline.stages.1.ranks", "2-3");
    /* Stage 0 computes for 20 and sends for 2; stage 1 computes for 15 and talks for 10. */
    check_near(root, "runs.0.pipeline.stages.0.busy_ns", 22);
    check_near(root, "runs.0.pipeline.stages.0.bubble_ns", 18); /* of 40 */
    check_near(root, "runs.0.pipeline.stages.1.bubble_ns", 15);
    check_near(root, "runs.0.pipeline.bubble_share", 16.5 / 40);
    check_text(root, "runs.0.breakdown.0.name", "ranks 0-1 (stage 0)");
    check_near(root, "runs.0.breakdown.0.comm_exposed_ns", 2);
    check_near(root, "runs.0.breakdown.1.comm_exposed_ns", 10); /* 10 to 15, 30 to 35 */
    check_near(root, "runs.0.breakdown.1.bubble_ns", 10);       /* 0 to 10 */
    check_near(root, "runs.0.breakdown.1.idle_ns", 5);          /* 35 to 40 */
    close_document();
}

TEST(test_report__other_patterns_are_no_pipeline)
{
    orr_timeline *t = new_timeline();
    for (uint32_t rank = 0; rank < 4; rank++) { /* everyone to everyone */
        const uint32_t track = add_track(t, rank, "messages");
        for (uint32_t peer = 0; peer < 4; peer++)
            if (peer != rank)
                add_span(t,
                         (orr_timespan){.track = track,
                                        .kind = ORR_SPAN_SEND,
                                        .start = 0,
                                        .end = 1,
                                        .has = ORR_SPAN_HAS_PEER,
                                        .peer = peer},
                         "send");
    }
    const orr_json_value root = report_of(t, (orr_report_run){0});
    CHECK(is_null(root, "runs.0.pipeline"));
    close_document();
}

/* ---- memory ---- */

TEST(test_report__memory_is_the_highest_of_like_ranks)
{
    orr_timeline *t = new_timeline();
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t counter;
        add_work(t, add_track(t, rank, "compute"), ORR_SPAN_COMPUTE, 0, 10);
        CHECK_OK(orr_timeline_add_counter(t, rank, orr_str_of("memory"), orr_str_of("bytes"),
                                          &counter, &err),
                 &err);
        CHECK_OK(orr_timeline_add_sample(t, counter, 0, 100, &err), &err);
        CHECK_OK(orr_timeline_add_sample(t, counter, 5 * NS, 300 + rank, &err), &err);
        CHECK_OK(orr_timeline_add_sample(t, counter, 8 * NS, 200, &err), &err);
    }
    const orr_json_value root = report_of(t, (orr_report_run){.memory_capacity = 1000});
    const orr_json_value m = find(root, "runs.0.memory");
    check_near(m, "capacity_bytes", 1000);
    CHECK_EQ_U(orr_json_count(find(m, "series")), 1);
    check_text(m, "series.0.name", "rank 1, the most of ranks 0-1");
    check_near(m, "series.0.peak_bytes", 301);
    check_near(m, "series.0.t_ns.1", 5);
    check_near(m, "series.0.bytes.2", 200);
    close_document();
}

TEST(test_report__thinning_keeps_extremes_and_the_end)
{
    enum { N = 10000, MOST = 100 };
    static orr_sample samples[N];
    for (int i = 0; i < N; i++)
        samples[i] = (orr_sample){.at = i, .value = i == 4321 ? 99999 : i == 777 ? -5 : i % 10};
    const size_t left = orr__thin_samples(samples, N, MOST);
    bool has_peak = false, has_least = false;
    CHECK(left <= MOST);
    for (size_t i = 0; i < left; i++) {
        has_peak |= samples[i].at == 4321 && samples[i].value == 99999;
        has_least |= samples[i].at == 777 && samples[i].value == -5;
        CHECK(i == 0 || samples[i - 1].at < samples[i].at);
    }
    CHECK(has_peak && has_least);
    CHECK_EQ(samples[left - 1].at, N - 1);
}

/* ---- what is left out ---- */

TEST(test_report__the_shortest_spans_are_left_out_and_counted)
{
    orr_timeline *t = new_timeline();
    orr_report *r;
    const uint32_t track = add_track(t, 0, "compute");
    for (orr_ps i = 0; i < 100; i++)
        add_work(t, track, ORR_SPAN_COMPUTE, 100 * i, 100 * i + i % 10 + 1);
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    CHECK_OK(
        orr_report_create(
            &(orr_report_options){.size = sizeof(orr_report_options), .most_spans = 25}, &r, &err),
        &err);
    CHECK_OK(orr_report_add(r, &(orr_report_run){.name = "many", .timeline = t}, &err), &err);
    CHECK_OK(orr_report_write_json(r, "left.json", &err), &err);
    const orr_json_value root = read_document("left.json");
    check_near(root, "runs.0.timeline.spans", 25);
    check_near(root, "runs.0.timeline.left_out", 75);
    check_near(root, "runs.0.breakdown.0.compute_ns", 550); /* figures are of all */
    CHECK_EQ_U(orr_json_count(find(root, "runs.0.notes")), 1);
    close_document();
    orr_report_destroy(r);
    orr_timeline_destroy(t);
}

/* ---- comparison ---- */

TEST(test_report__runs_are_compared_by_name)
{
    orr_report *r;
    CHECK_OK(orr_report_create(NULL, &r, &err), &err);
    for (orr_ps k = 0; k < 2; k++) {
        orr_timeline *t = new_timeline();
        const uint32_t track = add_track(t, 0, "compute");
        add_span(t, (orr_timespan){.track = track, .kind = ORR_SPAN_COMPUTE, .end = 10}, "gemm.1");
        add_span(t,
                 (orr_timespan){
                     .track = track, .kind = ORR_SPAN_COMPUTE, .start = 10, .end = 30 + 5 * k},
                 "gemm.2");
        add_collective(t, add_track(t, 0, "c"), ORR_COLL_ALL_GATHER, 8, 40, 50 + 20 * k);
        CHECK_OK(orr_timeline_seal(t, &err), &err);
        CHECK_OK(orr_report_add(r, &(orr_report_run){.name = k ? "b" : "a", .timeline = t}, &err),
                 &err);
        orr_timeline_destroy(t);
    }
    CHECK_OK(orr_report_write_json(r, "two.json", &err), &err);
    const orr_json_value root = read_document("two.json");
    check_text(root, "title", "a, b");
    const orr_json_value rows = find(root, "comparison.rows");
    CHECK_EQ_U(orr_json_count(rows), 4);
    check_text(rows, "0.name", "collective"); /* whole kinds first: 20 ns apart, then 5 */
    check_near(rows, "0.ns.0", 10);
    check_near(rows, "0.ns.1", 30);
    check_text(rows, "1.name", "compute");
    check_text(rows, "2.name", "all-gather");
    check_text(rows, "3.kind", "compute");
    check_near(rows, "3.ns.0", 30);
    check_near(rows, "3.ns.1", 35);
    close_document();
    orr_report_destroy(r);
}

/* ---- events ---- */

/* The example of docs/format/report.md, byte by byte. */
TEST(test_report__events_are_those_of_the_format_page)
{
    static const uint8_t want[] = {0x4f, 0x52, 0x54, 0x31, 1, 0, 0, 0, 2, 2, 0, 0, 0, 0, 2, 2,    0,
                                   0,    0,    1,    1,    2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 2, 0x82, 2,
                                   0,    0,    0,    0,    0, 2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0,    0,
                                   2,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    orr_timeline *t = new_timeline();
    orr_report *r;
    orr_input *in;
    const uint32_t track = add_track(t, 0, "compute");
    add_span(t, (orr_timespan){.track = track, .kind = ORR_SPAN_COMPUTE, .end = 1000}, "a");
    add_span(
        t,
        (orr_timespan){
            .track = track, .kind = ORR_SPAN_COMPUTE, .start = 2000, .end = 3000, .is_open = true},
        "b");
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    CHECK_OK(orr_report_create(NULL, &r, &err), &err);
    CHECK_OK(orr_report_add(r, &(orr_report_run){.name = "x", .timeline = t}, &err), &err);
    CHECK_OK(orr_report_write(r, "events.html", &err), &err);
    CHECK_OK(orr_input_open("events.html", &in, &err), &err);
    const orr_span page = orr_input_bytes(in);
    const char mark[] = "id=\"events-0\">";
    const char *from = memmem(page.ptr, page.len, mark, sizeof mark - 1);
    CHECK(from != NULL);
    from += sizeof mark - 1;
    uint8_t packed[512], got[512];
    size_t packed_len, bad;
    uLongf got_len = sizeof got;
    const orr_str text = {from, strcspn(from, "<")};
    CHECK(text.len < sizeof packed);
    CHECK(orr_base64_get(text, packed, &packed_len, &bad));
    CHECK(uncompress(got, &got_len, packed, packed_len) == Z_OK);
    CHECK_EQ_U(got_len, sizeof want);
    CHECK_BYTES(got, want, sizeof want);
    orr_input_close(in);
    orr_report_destroy(r);
    orr_timeline_destroy(t);
}

/* ---- the page ---- */

TEST(test_report__nothing_in_a_name_ends_the_data)
{
    orr_timeline *t = new_timeline();
    orr_report *r;
    orr_input *in;
    add_span(t, (orr_timespan){.track = add_track(t, 0, "<!--"), .end = 1},
             "</script><script>alert(1)</script>");
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    CHECK_OK(
        orr_report_create(
            &(orr_report_options){.size = sizeof(orr_report_options), .title = "<b>&"}, &r, &err),
        &err);
    CHECK_OK(orr_report_add(r, &(orr_report_run){.name = "<x>", .timeline = t}, &err), &err);
    CHECK_OK(orr_report_write(r, "page.html", &err), &err);
    CHECK_OK(orr_input_open("page.html", &in, &err), &err);
    const orr_span page = orr_input_bytes(in);
    CHECK(!memmem(page.ptr, page.len, "<script>alert", 13));
    CHECK(!memmem(page.ptr, page.len, "<!--\"", 5));
    CHECK(memmem(page.ptr, page.len, "\\u003c/script>\\u003cscript>alert(1)", 34));
    CHECK(memmem(page.ptr, page.len, "<title>&lt;b>&amp;</title>", 26));
    CHECK(memmem(page.ptr, page.len, "id=\"events-0\">", 14));
    orr_input_close(in);
    orr_report_destroy(r);
    orr_timeline_destroy(t);
}

TEST(test_report__a_run_without_a_timeline_and_one_without_spans_are_fine)
{
    orr_report *r;
    orr_timeline *t = new_timeline();
    CHECK_OK(orr_timeline_seal(t, &err), &err);
    CHECK_OK(orr_report_create(NULL, &r, &err), &err);
    CHECK_OK(orr_report_add(r, &(orr_report_run){.name = "none"}, &err), &err);
    CHECK_OK(orr_report_add(r, &(orr_report_run){.name = "empty", .timeline = t}, &err), &err);
    CHECK_OK(orr_report_write_json(r, "none.json", &err), &err);
    const orr_json_value root = read_document("none.json");
    CHECK(is_null(root, "runs.0.timeline"));
    check_near(root, "runs.1.timeline.spans", 0);
    CHECK(is_null(root, "runs.1.headline.exposed_comm_ns"));
    close_document();
    orr_report_destroy(r);
    orr_timeline_destroy(t);
}

/* ---- flows on a packet network ---- */

/* Three columns of 40 ns, the last one 20 ns long.  The link is busy for 75 of 100 ns. */
static orr_fabric_view small_fabric(void)
{
    static const double use[] = {1, 0.87499, 0}, rest[] = {0.25, 0.00004, 1};
    static const double queue[] = {0, 4144, 1036}, paused[] = {0, 0, 0.5}, ports[] = {0, 1.5, 2};
    static const orr_fabric_link links[] = {{.name = "switch8.3 -> 2",
                                             .bits_per_second = 100000000000,
                                             .bytes = 937,
                                             .busy_ps = 75000,
                                             .paused_ps = 10500,
                                             .pauses = 1,
                                             .longest_queue = 4144,
                                             .values = use}};
    static orr_fabric_link queues[1], pauses[1];
    queues[0] = pauses[0] = links[0];
    queues[0].values = queue;
    pauses[0].values = paused;
    orr_fabric_view v = {.figures = {.hosts = 8, .flows = 3, .flows_done = 2, .pauses = 1},
                         .end_ps = 100000,
                         .column_ps = 40000,
                         .columns = 3,
                         .links = links,
                         .link_count = 1,
                         .links_left_out = 7,
                         .rest_use = rest,
                         .queues = queues,
                         .queue_count = 1,
                         .pauses = pauses,
                         .pause_count = 1,
                         .paused_ports = ports};
    v.all = (orr_fabric_flows){
        .flows = 2, .bytes = 5000, .slowdown_p50 = 1.25, .slowdown_p99 = 2, .slowdown_max = 2.5};
    v.classes[0] = (orr_fabric_flows){.up_to = 4096, .flows = 1, .bytes = 904};
    v.classes[4] = (orr_fabric_flows){.above = 16777216, .flows = 1, .bytes = 4096};
    for (unsigned i = 0; i < ORR_FABRIC_TIMES; i++)
        v.all.fct_ps[i] = 1000 * i + 500;
    return v;
}

TEST(test_report__flows_have_links_queues_and_times)
{
    const orr_fabric_view v = small_fabric();
    orr_report *r;
    CHECK_OK(orr_report_create(NULL, &r, &err), &err);
    CHECK_OK(
        orr_report_add(
            r,
            &(orr_report_run){.name = "flows", .is_flows = true, .length_ps = 100000, .fabric = &v},
            &err),
        &err);
    CHECK_OK(orr_report_write_json(r, "flows.json", &err), &err);
    const orr_json_value root = read_document("flows.json");
    check_text(root, "runs.0.kind", "flows");
    check_near(root, "runs.0.headline.time_ns", 100);
    CHECK(is_null(root, "runs.0.headline.ranks"));
    check_text(root, "runs.0.headline.sentence",
               "The busiest link, switch8.3 -> 2, was in use 75.0% of the time; the longest queue, "
               "at switch8.3 -> 2, held 4.05 KiB. Half of the flows took up to 1.25 times as long "
               "as alone, the slowest in a hundred 2.00 times or more. Ports were paused 1 time.");
    check_near(root, "runs.0.fabric.column_ns", 40);
    check_near(root, "runs.0.fabric.end_ns", 100);
    check_near(root, "runs.0.fabric.links.rows.0.utilisation", 0.75);
    check_near(root, "runs.0.fabric.links.rows.0.paused_share", 0.105);
    check_near(root, "runs.0.fabric.links.rows.0.paused_ns", 10.5);
    check_near(root, "runs.0.fabric.links.rows.0.bandwidth_Bps", 12.5e9);
    check_near(root, "runs.0.fabric.links.rows.0.values.1", 0.875);
    check_near(root, "runs.0.fabric.links.rest.1", 0);
    check_near(root, "runs.0.fabric.links.left_out", 7);
    check_near(root, "runs.0.fabric.queues.rows.0.values.1", 4144);
    check_near(root, "runs.0.fabric.pauses.rows.0.values.2", 0.5);
    check_near(root, "runs.0.fabric.paused_ports.1", 1.5);
    check_near(root, "runs.0.fabric.figures.flows_done", 2);
    check_near(root, "runs.0.fabric.flow_times.all.fct_ns.40", 40.5);
    check_near(root, "runs.0.fabric.flow_times.all.slowdown_max", 2.5);
    CHECK(is_null(root, "runs.0.fabric.flow_times.all.slowdown_p95"));
    check_near(root, "runs.0.fabric.flow_times.by_size.0.up_to_bytes", 4096);
    check_near(root, "runs.0.fabric.flow_times.by_size.1.above_bytes", 16777216);
    CHECK(is_null(root, "runs.0.fabric.flow_times.by_size.1.up_to_bytes"));
    close_document();
    orr_report_destroy(r);
}

TEST(test_report__a_fabric_without_time_or_flows_has_nulls)
{
    const orr_fabric_view v = {.end_ps = 5};
    orr_report *r;
    CHECK_OK(orr_report_create(NULL, &r, &err), &err);
    CHECK_OK(
        orr_report_add(r, &(orr_report_run){.name = "a", .is_flows = true, .fabric = &v}, &err),
        &err);
    CHECK_OK(orr_report_add(r, &(orr_report_run){.name = "b"}, &err), &err);
    CHECK_OK(orr_report_write_json(r, "flows.json", &err), &err);
    const orr_json_value root = read_document("flows.json");
    CHECK(is_null(root, "runs.0.fabric.column_ns"));
    CHECK(is_null(root, "runs.0.fabric.flow_times"));
    CHECK(is_null(root, "runs.0.fabric.links.rest"));
    CHECK(is_null(root, "runs.0.fabric.paused_ports"));
    check_text(root, "runs.0.headline.sentence", "");
    CHECK(is_null(root, "runs.1.fabric"));
    close_document();
    orr_report_destroy(r);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_report__time_of_ranks_adds_up),
        RUN(test_report__measured_clocks_do_not_say_who_came_last),
        RUN(test_report__collectives_have_the_bandwidths_of_nccl_tests),
        RUN(test_report__factors_of_each_collective),
        RUN(test_report__tokens_and_operations_give_rates),
        RUN(test_report__sums_over_many_ranks_do_not_wrap),
        RUN(test_report__like_ranks_are_one_row_and_one_of_them_is_shown),
        RUN(test_report__ranks_to_show_are_chosen_or_refused),
        RUN(test_report__stages_come_from_messages),
        RUN(test_report__other_patterns_are_no_pipeline),
        RUN(test_report__memory_is_the_highest_of_like_ranks),
        RUN(test_report__thinning_keeps_extremes_and_the_end),
        RUN(test_report__the_shortest_spans_are_left_out_and_counted),
        RUN(test_report__runs_are_compared_by_name),
        RUN(test_report__events_are_those_of_the_format_page),
        RUN(test_report__nothing_in_a_name_ends_the_data),
        RUN(test_report__a_run_without_a_timeline_and_one_without_spans_are_fine),
        RUN(test_report__flows_have_links_queues_and_times),
        RUN(test_report__a_fabric_without_time_or_flows_has_nulls),
    };
    return RUN_ALL(tests);
}
