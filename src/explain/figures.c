/* SPDX-License-Identifier: Apache-2.0 */
/* report_figures.c - the figures that reports show: per rank, over ranks, by kind of collective. */
#include "run_report.h"

#include <orrery/units.h>

#include <stdlib.h>

const char *const orr__figure_keys[ORR__FIGURES] = {
    [ORR__FIGURE_FINISHED] = "finished_at_ns",
    [ORR__FIGURE_COMPUTE] = "compute_ns",
    [ORR__FIGURE_COMMUNICATION] = "communication_ns",
    [ORR__FIGURE_EXPOSED] = "exposed_communication_ns",
    [ORR__FIGURE_MEMORY] = "remote_memory_ns",
    [ORR__FIGURE_HOST] = "host_ns",
    [ORR__FIGURE_IDLE] = "idle_ns",
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

uint64_t orr__figure_of(const orr_sim *s, uint32_t rank, orr__figure f)
{
    const orr__npu *n = &s->npus[rank];
    const orr_sim_rank_result *r = &n->result;
    switch (f) {
    case ORR__FIGURE_FINISHED:
        return r->finished_at;
    case ORR__FIGURE_COMPUTE:
        return orr__compute_so_far(n);
    case ORR__FIGURE_COMMUNICATION:
        return orr__comm_so_far(n);
    case ORR__FIGURE_EXPOSED: /* as the reference has it (astra-sim.md 6.5), but never below 0 */
        return less(orr__watch_until(s, rank), r->gpu_total);
    case ORR__FIGURE_MEMORY:
        return r->memory_time;
    case ORR__FIGURE_HOST:
        return r->cpu_time;
    default:
        return less(orr__watch_end_of_run(s), orr__watch_busy(s, rank));
    }
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool orr__spread_of(const orr_sim *s, orr__figure f, orr__spread *out)
{
    uint64_t *values = orr_alloc(s->npu_count, sizeof *values);
    double sum = 0;
    *out = (orr__spread){0};
    if (!values)
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint64_t v = orr__figure_of(s, r, f);
        if (v == ORR_NEVER)
            continue;
        values[out->ranks++] = v;
        sum += (double)v;
    }
    qsort(values, out->ranks, sizeof *values, compare);
    if (out->ranks) {
        out->least = values[0];
        out->median = values[out->ranks / 2];
        out->most = values[out->ranks - 1];
        out->mean = sum / out->ranks;
    }
    orr_free(values);
    return true;
}

const char *orr__run_status(const orr_sim *s)
{
    uint64_t tick;
    if (s->finished == s->npu_count)
        return "finished";
    if (s->code || orr__clock_has_failed(s->clock))
        return "failed";
    return orr__clock_next_tick(s->clock, &tick) ? "interrupted" : "stalled";
}

orr_sim_dimension orr_sim_dimension_at(const orr_sim *s, uint32_t index)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    const orr_net_config *c = &s->net_config;
    orr_sim_dimension out = {.latency_ns = -1};
    if (index >= s->dims)
        return out;
    out.ranks = c->npus[index];
    if (!c->topology) {
        out.shape = shapes[c->shape[index]];
        out.bandwidth = c->bandwidth[index] * (double)(1 << 30);
        out.latency_ns = c->latency_ns[index];
    }
    if (s->watch) {
        out.messages = s->watch->traffic[index].messages;
        out.bytes = s->watch->traffic[index].bytes;
    }
    return out;
}

uint64_t orr_sim_time(const orr_sim *s)
{
    return orr__watch_end_of_run(s);
}

/* ---- collectives ---- */

typedef struct sorter {
    const orr__tally *rows;
    bool by_bytes;
} sorter;

static int compare_rows(const void *a, const void *b, void *context)
{
    const sorter *s = context;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const orr__tally *x = &s->rows[i], *y = &s->rows[k];
    const uint64_t mine = s->by_bytes ? x->bytes : x->time,
                   other = s->by_bytes ? y->bytes : y->time;
    if (mine != other)
        return mine > other ? -1 : 1;
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->group_ranks != y->group_ranks)
        return x->group_ranks > y->group_ranks ? -1 : 1;
    return i < k ? -1 : i > k;
}

uint32_t *orr__collectives_by(const orr_sim *s, bool by_bytes, uint32_t *count)
{
    const struct orr__watch *w = s->watch;
    uint32_t *out = orr_alloc(w->tally_count, sizeof *out);
    sorter by = {w->tallies, by_bytes};
    *count = 0;
    for (uint32_t i = 0; out && i < w->tally_count; i++)
        if (w->tallies[i].type == ORR_NODE_COMM_COLL)
            out[(*count)++] = i;
    if (out)
        qsort_r(out, *count, sizeof *out, compare_rows, &by);
    return out;
}

const orr__tally *orr__messages_of(const orr_sim *s, uint8_t node_type)
{
    for (size_t i = 0; i < s->watch->tally_count; i++)
        if (s->watch->tallies[i].type == node_type)
            return &s->watch->tallies[i];
    return NULL;
}

/* ---- small things ---- */

char *orr__ns_text(uint64_t ns, char *out)
{
    if (ns == 0) {
        memcpy(out, "0", 2); /* no unit makes it more */
        return out;
    }
    return orr_time_text(ns < INT64_MAX / 1000 ? (orr_ps)(ns * 1000) : INT64_MAX, out);
}

void orr__put_u64(orr_json_writer *w, const char *key, uint64_t v)
{
    orr_json_key(w, key);
    orr_json_u64(w, v);
}

void orr__put_text(orr_json_writer *w, const char *key, const char *text)
{
    orr_json_key(w, key);
    if (text)
        orr_json_text(w, text);
    else
        orr_json_null(w);
}

orr_code orr__save_report(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *o;
    if (b->failed)
        return orr_no_memory(err);
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_output_drain(o, b);
    return orr_output_commit(&o, err);
}
