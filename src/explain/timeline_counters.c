/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_counters.c - what a timeline of a run counts over time:
 *
 *     ranks computing, ranks communicating     of the whole job
 *     sent, dimension k                        bytes a second that a rank sends along it, on average
 *     memory                                   of each rank: its live tensors, when the system file tracks them; else what
 *                                              the nodes' attribute held_bytes says
 *
 * held_bytes: from when such a node starts, its rank holds that much. */
#include "run/watch.h"
#include "trace/attrs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct counting {
    const orr_sim *s;
    const struct orr__watch *w;
    orr_timeline *t;
    orr_error *err;
} counting;

/* ---- how many ranks are at work ---- */

typedef struct change {
    uint64_t at;
    uint32_t rank;
    uint8_t counter;
    bool is_start;
} change;

static int compare_changes(const void *a, const void *b)
{
    const change *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : 0;
}

/* 0: computes; 1: communicates; 2: neither. */
static uint8_t counter_of(const counting *r, const orr__step *step)
{
    switch (orr__step_kind(r->s, step)) {
    case ORR_SPAN_COMPUTE:
        return 0;
    case ORR_SPAN_SEND:
    case ORR_SPAN_RECEIVE:
    case ORR_SPAN_COLLECTIVE:
        return 1;
    default:
        return 2;
    }
}

static size_t list_changes(const counting *r, change *out)
{
    size_t count = 0;
    for (size_t i = 0; i < r->w->step_count; i++) {
        const orr__step *step = &r->w->steps[i];
        const uint8_t k = counter_of(r, step);
        if (k > 1)
            continue;
        out[count++] = (change){step->start, step->rank, k, true};
        if (step->end != ORR_NEVER)
            out[count++] = (change){step->end, step->rank, k, false};
    }
    return count;
}

/* Only what holds at the end of a tick is a sample, so the order within one does not matter. */
static orr_code add_samples(const counting *r,
                            const change *changes,
                            size_t count,
                            uint32_t *active)
{
    uint32_t counter[2];
    int64_t ranks[2] = {0, 0};
    orr_code code = orr_timeline_add_counter(r->t, ORR_NO_RANK, orr_str_of("ranks computing"),
                                             orr_str_of("ranks"), &counter[0], r->err);
    if (!code)
        code = orr_timeline_add_counter(r->t, ORR_NO_RANK, orr_str_of("ranks communicating"),
                                        orr_str_of("ranks"), &counter[1], r->err);
    for (size_t i = 0; i < count && !code; i++) {
        const change *c = &changes[i];
        uint32_t *n = &active[2 * (size_t)c->rank + c->counter];
        const bool was = *n > 0;
        *n = c->is_start ? *n + 1 : *n - 1;
        ranks[c->counter] += (*n > 0) - was;
        for (unsigned k = 0; k < 2 && !code && (i + 1 == count || changes[i + 1].at != c->at); k++)
            code = orr_timeline_add_sample(r->t, counter[k], orr__ps_of(c->at), ranks[k], r->err);
    }
    return code;
}

static orr_code add_activity(const counting *r)
{
    change *changes = orr_alloc(2 * r->w->step_count, sizeof *changes);
    uint32_t *active = orr_alloc(2 * (size_t)r->s->npu_count, sizeof *active);
    orr_code code = changes && active ? ORR_OK : orr_no_memory(r->err);
    if (!code) {
        const size_t count = list_changes(r, changes);
        qsort(changes, count, sizeof *changes, compare_changes);
        code = add_samples(r, changes, count, active);
    }
    orr_free(changes);
    orr_free(active);
    return code;
}

/* ---- traffic ---- */

static orr_code add_traffic(const counting *r, uint32_t dimension)
{
    const orr__traffic_bins *b = r->w->bins;
    const uint64_t end = orr__watch_end_of_run(r->s);
    const uint64_t width = UINT64_C(1) << b->shift;
    uint32_t counter;
    int64_t before = -1;
    char name[64];
    snprintf(name, sizeof name, "sent, dimension %u", dimension);
    orr_code code = orr_timeline_add_counter(r->t, ORR_NO_RANK, orr_str_of(name), orr_str_of("B/s"),
                                             &counter, r->err);
    for (uint32_t i = 0; i < ORR__TRAFFIC_BINS && !code; i++) {
        const uint64_t from = (uint64_t)i << b->shift;
        if (from >= end)
            break;
        const uint64_t length = end - from < width ? end - from : width;
        const double rate =
            (double)b->bytes[dimension][i] * 1e9 / ((double)length * r->s->npu_count);
        const int64_t value = rate < 9e18 ? (int64_t)rate : INT64_MAX;
        if (value != before)
            code = orr_timeline_add_sample(r->t, counter, orr__ps_of(from), value, r->err);
        before = value;
    }
    return code || before <= 0 ? code
                               : orr_timeline_add_sample(r->t, counter, orr__ps_of(end), 0, r->err);
}

static orr_code add_all_traffic(const counting *r)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < r->s->dims && !code; k++)
        if (r->w->traffic[k].messages)
            code = add_traffic(r, k);
    return code;
}

/* ---- memory ---- */

typedef struct memory {
    const counting *r;
    int64_t **held;    /* by class and place; NULL: no node of the class says anything */
    uint32_t *counter; /* by rank; NONE: not made */
} memory;

static orr_code add_memory_counter(const counting *r, uint32_t rank, uint32_t *counter)
{
    return orr_timeline_add_counter(r->t, rank, orr_str_of("memory"), orr_str_of("bytes"), counter,
                                    r->err);
}

typedef struct tensor_samples {
    const counting *r;
    uint32_t counter;
    orr_code code;
} tensor_samples;

static void add_usage(void *context, uint64_t tick, uint64_t usage)
{
    tensor_samples *v = context;
    const int64_t value = usage < INT64_MAX ? (int64_t)usage : INT64_MAX;
    if (!v->code)
        v->code = orr_timeline_add_sample(v->r->t, v->counter, orr__ps_of(tick), value, v->r->err);
}

/* Of ranks that have finished: before that nobody knows which tensors are read again. */
static orr_code add_tensors(const counting *r, uint32_t rank)
{
    tensor_samples v = {.r = r};
    if (r->s->npus[rank].result.finished_at == ORR_NEVER)
        return ORR_OK;
    v.code = add_memory_counter(r, rank, &v.counter);
    if (v.code)
        return v.code;
    const orr_code code = orr__tensor_usage(&r->s->npus[rank], add_usage, &v, r->err);
    return code ? code : v.code;
}

static bool read_held(const orr__graph *g, int64_t **out)
{
    for (uint32_t place = 0; place < g->count; place++) {
        orr_node node;
        orr_attr attr;
        int64_t value;
        orr_trace_node(g->t, g->node[place], &node);
        if (!orr__node_get(&node, ORR__ATTR_HELD_BYTES, &attr) || !orr_attr_int(&attr, &value) ||
            value < 0)
            continue;
        if (!*out && !(*out = orr_alloc(g->count, sizeof **out)))
            return false;
        (*out)[place] = value + 1; /* 0: nothing is said */
    }
    return true;
}

static orr_code add_held(memory *m, const orr__step *step)
{
    const counting *r = m->r;
    const uint32_t class_index = orr_set_class_of(r->s->set, step->rank);
    const int64_t *held = m->held[class_index];
    if (!held || held[step->place] == 0)
        return ORR_OK;
    uint32_t *counter = &m->counter[step->rank];
    const orr_code code =
        *counter == ORR__NONE ? add_memory_counter(r, step->rank, counter) : ORR_OK;
    return code ? code
                : orr_timeline_add_sample(r->t, *counter, orr__ps_of(step->start),
                                          held[step->place] - 1, r->err);
}

static orr_code add_all_held(memory *m)
{
    const orr_sim *s = m->r->s;
    const uint32_t classes = orr_set_class_count(s->set);
    orr_code code = m->held && m->counter ? ORR_OK : orr_no_memory(m->r->err);
    bool has_any = false;
    for (uint32_t r = 0; r < s->npu_count && !code; r++)
        m->counter[r] = ORR__NONE;
    for (uint32_t k = 0; k < classes && !code; k++) {
        if (s->graphs[k].t && !read_held(&s->graphs[k], &m->held[k]))
            code = orr_no_memory(m->r->err);
        has_any |= m->held[k] != NULL;
    }
    for (size_t i = 0; i < m->r->w->step_count && has_any && !code; i++)
        code = add_held(m, &m->r->w->steps[i]);
    for (uint32_t k = 0; m->held && k < classes; k++)
        orr_free(m->held[k]);
    return code;
}

static orr_code add_memory(const counting *r)
{
    orr_code code = ORR_OK;
    if (r->s->system.track_local_mem) {
        for (uint32_t rank = 0; rank < r->s->npu_count && !code; rank++)
            code = add_tensors(r, rank);
        return code;
    }
    memory m = {.r = r,
                .held = orr_alloc(orr_set_class_count(r->s->set), sizeof *m.held),
                .counter = orr_alloc(r->s->npu_count, sizeof *m.counter)};
    code = add_all_held(&m);
    orr_free(m.held);
    orr_free(m.counter);
    return code;
}

orr_code orr__add_counters(const orr_sim *s, orr_timeline *t, orr_error *err)
{
    const counting r = {.s = s, .w = s->watch, .t = t, .err = err};
    orr_code code = add_activity(&r);
    if (!code)
        code = add_all_traffic(&r);
    return code ? code : add_memory(&r);
}
