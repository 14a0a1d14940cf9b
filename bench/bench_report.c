/* SPDX-License-Identifier: Apache-2.0 */
/* bench_report.c - a report with a million spans, all of them in the page; and the same spans read
 * from trace events.
 *
 * 16 ranks of 62,500 spans each: kernels, collectives and messages of a training step, with
 * irregular lengths and 4,000 names, so that it compresses no better than real data.  The goal is 2
 * s and a page of 30 MB. */
#include "bench_input.h"

#include <orrery/lab/chrome_trace.h>
#include <orrery/report.h>
#include <orrery/trace.h>
#include <orrery/view.h>

enum { RANKS = 16, STEPS = 20833, NAMES = 4000, SPANS = RANKS * STEPS * 3 };

typedef struct job {
    const char *json, *page;
} job;

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

typedef struct maker {
    orr_timeline *t;
    uint32_t names[NAMES], group;
    uint64_t random;
} maker;

static void add(maker *m, orr_timespan span)
{
    orr_error err;
    bench_check(orr_timeline_add_span(m->t, &span, NULL, &err), &err);
}

/* A kernel, a collective that half overlaps it, and a message. */
static void add_rank(maker *m, uint32_t rank)
{
    static const char *const tracks[] = {"compute", "communication", "receives"};
    uint32_t track[3];
    orr_error err;
    orr_ps at = 0;
    for (int k = 0; k < 3; k++)
        bench_check(orr_timeline_add_track(m->t, rank, orr_str_of(tracks[k]), &track[k], &err),
                    &err);
    for (uint64_t i = 0; i < STEPS; i++) {
        const uint64_t r = next(&m->random);
        const orr_ps length = (orr_ps)(r % 100000 + 1000) * 1000;
        add(m, (orr_timespan){.track = track[0],
                              .name = m->names[r >> 20 & 2047],
                              .kind = ORR_SPAN_COMPUTE,
                              .id = 3 * i,
                              .has = ORR_SPAN_HAS_ID,
                              .start = at,
                              .end = at + length});
        add(m, (orr_timespan){.track = track[1],
                              .name = m->names[2048 + (r >> 32 & 1023)],
                              .kind = ORR_SPAN_COLLECTIVE,
                              .collective = 1,
                              .members = RANKS,
                              .group = m->group,
                              .size = (r >> 40 & 7) << 20,
                              .id = 3 * i + 1,
                              .has = ORR_SPAN_HAS_ID,
                              .start = at + length / 2,
                              .end = at + length + (orr_ps)(r >> 50) * 1000});
        add(m, (orr_timespan){.track = track[2],
                              .name = m->names[3072 + (r >> 42 & 511)],
                              .kind = ORR_SPAN_RECEIVE,
                              .peer = (rank + 1) % RANKS,
                              .has = ORR_SPAN_HAS_ID | ORR_SPAN_HAS_PEER,
                              .size = r >> 44,
                              .id = 3 * i + 2,

                              .start = at,
                              .end = at + length / 3 * 1000 / 1000});
        at += length + (orr_ps)(r >> 50) * 1000;
    }
}

static orr_timeline *make_timeline(void)
{
    maker m = {.random = 88172645463325252u};
    orr_error err;
    char name[48];
    bench_check(orr_timeline_create(&m.t, &err), &err);
    bench_check(orr_timeline_add_text(m.t, orr_str_of("data parallel"), &m.group, &err), &err);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "layers.%d.attention.kernel_%d", i % 61, i);
        bench_check(orr_timeline_add_text(m.t, orr_str_of(name), &m.names[i], &err), &err);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        add_rank(&m, rank);
    bench_check(orr_timeline_seal(m.t, &err), &err);
    return m.t;
}

static orr_timeline *timeline; /* made before the clock starts */

static void prepare(void *context)
{
    (void)context;
    timeline = make_timeline();
}

static double run_report(void *context)
{
    const job *j = context;
    const orr_report_run run = {.name = "bench", .timeline = timeline, .ranks_shown = "all"};
    orr_report *r;
    orr_error err;
    bench_check(orr_report_create(NULL, &r, &err), &err);
    bench_check(orr_report_add(r, &run, &err), &err);
    bench_check(orr_report_write(r, j->page, &err), &err);
    orr_report_destroy(r);
    orr_timeline_destroy(timeline);
    bench_require(bench_file_mb(j->page) < 30, "the page is larger than 30 MB");
    return SPANS;
}

static double run_read(void *context)
{
    const job *j = context;
    orr_timeline *t;
    orr_error err;
    bench_check(orr_chrome_trace_read(&j->json, 1, NULL, &t, &err), &err);
    bench_require(orr_timeline_view(t)->span_count == SPANS, "spans are missing");
    orr_timeline_destroy(t);
    return SPANS;
}

int main(void)
{
    char json[300], page[300];
    orr_error err;
    job j = {.json = bench_path(json, sizeof json, "events.json"),
             .page = bench_path(page, sizeof page, "report.html")};
    orr_timeline *t = make_timeline();
    bench_check(orr_view_chrome(t, j.json, &err), &err);
    orr_timeline_destroy(t);
    bench_apart(&(bench_job){.name = "report__1m_spans",
                             .unit = "events",
                             .run = run_report,
                             .prepare = prepare,
                             .context = &j});
    bench_apart(&(bench_job){.name = "report__read_trace_events_1m",
                             .unit = "events",
                             .run = run_read,
                             .context = &j,
                             .input = j.json});
    printf("%-38s %9.1f MB\n", "report__1m_spans, the page", bench_file_mb(j.page));
    remove(j.json);
    remove(j.page);
    return 0;
}
