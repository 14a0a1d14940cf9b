/* SPDX-License-Identifier: Apache-2.0 */
/* room: schedgen */
/* fuzz_mpi_trace.c - any bytes as the trace of one rank, played by each of four in both
 * copies.  What is refused must have a place and words; what is taken must be a schedule that the
 * reader of GOAL understands. */
#include "fuzz_ways.h"

#include "compat/schedgen/sg_rules.h"
#include "sources/schedgen/mpi_trace_impl.h"

#include <orrery/lab/goal.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HOSTS = 4, COPIES = 2, READABLE = 1 << 17 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static orr_code read_rank(mpi_run *run, uint32_t number, orr_str text, orr_error *err)
{
    mpi_rank r;
    uint64_t stopped_at = 0;
    orr_code code = sgen_mpi_rank_init(&r, run, err);
    r.host = number % HOSTS;
    r.copy = number / HOSTS;
    if (!code) {
        sgen_gpen_begin(run->pen, number);
        code = sgen_mpi_rank_read(&r, text, "trace", 0, &stopped_at, err);
        sgen_gpen_end(run->pen);
        require(code || stopped_at <= text.len);
    }
    sgen_mpi_rank_fini(&r);
    return code;
}

/* The pen forgets texts longer than its buffer; only whole ones can be read back. */
static void read_back(const goal_pen *pen)
{
    orr_error err;
    orr_goal *g;
    if (pen->totals.text_bytes > READABLE)
        return;
    require(pen->text.len == pen->totals.text_bytes);
    require(!orr_goal_parse((orr_span){pen->text.ptr, pen->text.len}, "schedule", NULL, &g, &err));
    const orr_goal_totals t = orr_goal_count(g);
    require(t.sends == pen->totals.sends && t.recvs == pen->totals.recvs);
    require(t.calcs == pen->totals.calcs && t.edges == pen->totals.edges);
    orr_goal_free(g);
}

static void play(orr_str text, const orr_rules_schedgen *rules, const orr_mpi_trace_options *base)
{
    orr_error err = {0};
    orr_mpi_trace_options opt = *base;
    orr_mpi_trace_remarks remarks = {0};
    goal_pen pen;
    orr_code code = sgen_gpen_init(&pen, NULL, false, &err);
    opt.rules = rules;
    mpi_run run = {.opt = &opt,
                   .rules = sgen_schedgen_rules(rules),
                   .pen = &pen,
                   .remarks = &remarks,
                   .hosts = HOSTS,
                   .copies = COPIES,
                   .time_mult = 1000,
                   .counts_communicators = rules == &sg_atlahs,
                   .digits = 6};
    sgen_gpen_head(&pen, HOSTS * COPIES);
    for (uint32_t i = 0; i < HOSTS * COPIES && !code; i++)
        code = read_rank(&run, i, text, &err);
    if (!code)
        read_back(&pen);
    else
        require(code == ORR_ENOMEM || (code == ORR_EINPUT && err.message[0] && err.where.line));
    sgen_gpen_discard(&pen);
}

static void hear(void *context, const char *line)
{
    (void)context;
    require(line != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_str text = {(const char *)data, size};
    const orr_mpi_trace_options plain = {0};
    const orr_mpi_trace_options busy = {
        .early_us = 7, .cpu = 1, .max_collectives = 9, .talk = hear, .is_talkative = true};
    if (size > 4096)
        return 0;
    FUZZ_WAYS(way, 3, data, size)
    play(text, way == 0 ? NULL : way == 1 ? &sg_lgs2023 : &sg_atlahs, way == 1 ? &busy : &plain);
    return 0;
}
