/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2_user.c - v2 with a bandwidth: the three buffers side by side, from one event to the next.
 *
 * A line of the schedule happens in cycle line + stalls.  Only a few lines matter: those in which a window of
 * words moves on, in which outputs start to drain or find no place, and the first and last of each operand, whose
 * cycles are reported.  All others take one cycle. The figures for memory are the reference's: whole requests,
 * however few words are in them. */
#include "systolic_v2.h"
#include "systolic_v2_fetch.h"

typedef struct reader {
    orr__stream st;
    orr__fetch *fetch;
    uint64_t line, moves; /* the next move of its window; UINT64_MAX: none */
    uint64_t first, last; /* lines in which it is asked for words */
    uint64_t request;     /* cycles of one prefetch */
    uint64_t requests;    /* prefetches so far, but for the first */
    orr_systolic_traffic *sram;
} reader;

typedef struct user {
    reader readers[2];
    orr__lines *lines;
    uint64_t first, last; /* lines in which outputs are written */
    uint64_t stalls;
    uint64_t end; /* of the schedule: lines */
    uint64_t total;
    orr_systolic_result *out;
} user;

static void look_ahead(reader *r)
{
    if (!orr__fetch_next(r->fetch, &r->line, &r->moves))
        r->line = UINT64_MAX;
}

/* The cycle in which the last prefetch that was asked for is there. */
static int64_t prefetched(const reader *r)
{
    return (int64_t)(r->requests * (r->request + 1)) - 1;
}

/* By how many cycles this line waits for the operand. */
static uint64_t read_line(reader *r, uint64_t line, uint64_t cycle)
{
    int64_t served = (int64_t)cycle + 1;
    while (r->line == line) {
        r->requests += r->moves;
        served = prefetched(r) > served ? prefetched(r) : served;
        look_ahead(r);
    }
    if (line == r->first)
        r->sram->first = served;
    if (line == r->last)
        r->sram->last = served;
    return (uint64_t)served - cycle - 1;
}

static void do_line(user *u, uint64_t line)
{
    const uint64_t cycle = line + u->stalls;
    uint64_t late = 0;
    for (int i = 0; i < 2; i++)
        late = orr__max(late, read_line(&u->readers[i], line, cycle));
    const uint64_t write_late = orr__lines_write(u->lines, line, u->stalls);
    orr_systolic_traffic *sram = &u->out->sram[ORR_OPERAND_OFMAP];
    if (line == u->first)
        sram->first = (int64_t)(cycle + write_late);
    if (line == u->last)
        sram->last = (int64_t)(cycle + write_late);
    u->total = cycle + write_late;
    u->stalls += orr__max(late, write_late);
}

/* The next line that matters, at or behind `line`. */
static uint64_t next_line(user *u, uint64_t line)
{
    uint64_t next = orr__min(u->end - 1, orr__lines_next(u->lines, u->stalls));
    const uint64_t marks[] = {
        u->readers[0].line,  u->readers[0].first, u->readers[0].last, u->readers[1].line,
        u->readers[1].first, u->readers[1].last,  u->first,           u->last};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] >= line)
            next = orr__min(next, marks[i]);
    return next;
}

static orr_code open_reader(reader *r, uint64_t size, uint64_t bandwidth, orr_error *err)
{
    const orr_code code = orr__fetch_open(&r->st, size, &r->fetch, err);
    if (code)
        return code;
    r->first = r->st.at(&r->st, 0).start;
    r->last = orr__stream_last(&r->st);
    r->request = orr__cdiv(size - orr__cdiv(size, 2), bandwidth);
    look_ahead(r);
    return ORR_OK;
}

/* Whole lines of `bandwidth` words are counted. */
static void report_reader(const reader *r,
                          uint64_t size,
                          uint64_t bandwidth,
                          orr_systolic_traffic *out)
{
    const uint64_t first = orr__min(orr__cdiv(orr__cdiv(size, 2), bandwidth),
                                    orr__cdiv(orr__fetch_places(r->fetch), bandwidth));
    out->words = (first + r->requests * r->request) * bandwidth;
    out->first = -(int64_t)first;
    out->last = prefetched(r);
    out->average = (double)out->words / (double)(out->last - out->first + 1);
}

static orr_code run(user *u, const orr__systolic *s, uint64_t bandwidth, orr_error *err)
{
    const uint64_t sizes[] = {s->array->ifmap_words, s->array->filter_words};
    orr_code code = ORR_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = open_reader(&u->readers[i], sizes[i], bandwidth, err);
    if (!code)
        code = orr__lines_open(s, bandwidth, &u->lines, err);
    if (code)
        return code;
    orr__lines_ends(u->lines, &u->first, &u->last);
    for (uint64_t line = 0; line < u->end; line++) {
        line = next_line(u, line);
        do_line(u, line);
    }
    for (int i = 0; i < 2; i++)
        report_reader(&u->readers[i], sizes[i], bandwidth, &u->out->dram[i]);
    return orr__lines_finish(u->lines, u->total, &u->out->dram[ORR_OPERAND_OFMAP], err);
}

orr_code orr__systolic_v2_user(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    user u = {.end = out->cycles + 1, .out = out};
    orr__streams_v2(s, &u.readers[0].st, &u.readers[1].st);
    u.readers[0].sram = &out->sram[ORR_OPERAND_IFMAP];
    u.readers[1].sram = &out->sram[ORR_OPERAND_FILTER];
    const orr_code code = run(&u, s, (uint64_t)s->array->bandwidth, err);
    orr__fetch_close(u.readers[0].fetch);
    orr__fetch_close(u.readers[1].fetch);
    orr__lines_close(u.lines);
    out->cycles = u.total;
    out->stalls = u.stalls;
    return code;
}
