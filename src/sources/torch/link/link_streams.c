/* SPDX-License-Identifier: Apache-2.0 */
/* link_streams.c - which streams waited for each other, when the profiler did not record it.
 *
 * Without "Stream Wait Event" records (they are off unless asked for) there are only the calls, without their streams.
 * Three things are known all the same:
 *
 *     a collective waits for what its caller had launched before, on any other stream: NCCL's own first step
 *     the next launch behind a call of ...StreamWaitEvent waits: for the oldest collective that nobody waited for yet
 *     the first kernel of an optimizer step waits for all collectives before it: it reads what they made
 *
 * All of it only where the clock agrees: what was waited for had ended when the other started.
 * Cost: one walk over the events, in which every collective is put into a queue and taken out once. */
#include "link_impl.h"

#include "base/memory/map.h"
#include "base/text/text.h"

/* Nanoseconds by which clocks of host and device may disagree. */
#define SLACK 1000.0

typedef struct walker {
    orr_link *l;
    link_lists launched; /* event of a call -> device operations it launched */
    orr_map *stream_of;  /* stream and device -> number */
    uint32_t *last;      /* by stream: the operation launched last, or LINK_NONE */
    size_t last_count, last_room;
    uint32_t *pending; /* by thread: calls of StreamWaitEvent since its last launch */
    double *optimizer; /* by thread: until when an optimizer step runs */
    uint32_t *queue;   /* collectives that nobody waited for yet, oldest first; LINK_NONE: taken */
    size_t count, room, first;
    bool failed;
} walker;

static const kin_event *event_at(const walker *w, uint32_t i)
{
    return &w->l->device.events[i];
}

static orr_str name_of(const walker *w, uint32_t i)
{
    return orr_intern_get(w->l->device.texts, event_at(w, i)->name);
}

static bool is_collective(const walker *w, uint32_t i)
{
    const orr_str name = name_of(w, i);
    return event_at(w, i)->kind == KIN_KERNEL &&
           (orr_str_has(name, "ncclDevKernel") || orr_str_has(name, "ncclKernel"));
}

/* ---- notes ---- */

/* False: the clock speaks against it. */
static bool note(walker *w, uint32_t from, uint32_t to)
{
    orr_link *l = w->l;
    const kin_event *a = event_at(w, from), *b = event_at(w, to);
    if (kin_end(a) > b->ts + SLACK || a->ts >= b->ts)
        return false;
    if (!orr_grow(&l->waits, &l->wait_room, l->wait_count + 1)) {
        w->failed = true;
        return true;
    }
    l->waits[l->wait_count++] = (link_wait){from, to};
    return true;
}

static uint32_t stream_number(walker *w, const kin_event *e)
{
    const uint64_t key = (uint64_t)e->stream ^ (uint64_t)(e->device + 1) << 48;
    uint32_t number = orr_map_find(w->stream_of, key, LINK_NONE);
    if (number != LINK_NONE)
        return number;
    number = (uint32_t)w->last_count;
    if (!orr_grow(&w->last, &w->last_room, w->last_count + 1) ||
        !orr_map_put(w->stream_of, key, number, NULL)) {
        w->failed = true;
        return 0;
    }
    w->last[w->last_count++] = LINK_NONE;
    return number;
}

/* ---- one device operation ---- */

/* What was launched last on every other stream. */
static void wait_for_others(walker *w, uint32_t op, uint32_t stream)
{
    for (uint32_t s = 0; s < w->last_count; s++) {
        if (s != stream && w->last[s] != LINK_NONE && !is_collective(w, w->last[s]))
            (void)note(w, w->last[s], op);
    }
}

/* Up to `most` of the collectives in the queue that are on other streams; how many it were. */
static size_t wait_for_collectives(walker *w, uint32_t op, size_t most)
{
    size_t n = 0;
    for (size_t i = w->first; i < w->count && n < most; i++) {
        const uint32_t from = w->queue[i];
        if (from == LINK_NONE || event_at(w, from)->stream == event_at(w, op)->stream ||
            !note(w, from, op))
            continue;
        w->queue[i] = LINK_NONE;
        n++;
    }
    while (w->first < w->count && w->queue[w->first] == LINK_NONE)
        w->first++;
    return n;
}

static void launch(walker *w, uint32_t op, const kin_event *call)
{
    const uint32_t stream = stream_number(w, event_at(w, op));
    if (w->failed)
        return;
    if (is_collective(w, op)) {
        wait_for_others(w, op, stream);
        if (!orr_grow(&w->queue, &w->room, w->count + 1))
            w->failed = true;
        else
            w->queue[w->count++] = op;
    } else if (call->ts < w->optimizer[call->tid]) {
        wait_for_collectives(w, op, SIZE_MAX);
    } else if (w->pending[call->tid] && !wait_for_collectives(w, op, w->pending[call->tid])) {
        wait_for_others(w, op, stream);
    }
    w->pending[call->tid] = 0;
    w->last[stream] = op;
}

/* ---- the walk ---- */

static orr_code list_launches(walker *w, orr_error *err)
{
    const kin_trace *k = &w->l->device;
    orr_map *calls = orr_map_create(1024);
    link_pairs pairs = {0};
    bool ok = calls;
    for (uint32_t i = 0; ok && i < k->count; i++) {
        const kin_event *e = &k->events[i];
        if (e->kind == KIN_RUNTIME && e->correlation != -1 &&
            orr_map_find(calls, (uint64_t)e->correlation, LINK_NONE) == LINK_NONE)
            ok = orr_map_put(calls, (uint64_t)e->correlation, i, NULL);
    }
    for (uint32_t i = 0; ok && i < k->count; i++) {
        if (!kin_is_device(&k->events[i]))
            continue;
        const uint32_t call = orr_map_find(calls, (uint64_t)k->events[i].correlation, LINK_NONE);
        ok = call == LINK_NONE || link_pairs_add(&pairs, call, i);
    }
    orr_map_destroy(calls);
    if (ok)
        return link_pairs_take(&pairs, (uint32_t)k->count, w->l->arena, &w->launched, err);
    orr_free(pairs.pairs);
    return orr_no_memory(err);
}

static void walk(walker *w)
{
    for (uint32_t i = 0; i < w->l->device.count && !w->failed; i++) {
        const kin_event *e = event_at(w, i);
        if (e->kind == KIN_OPERATOR && orr_str_has(name_of(w, i), "Optimizer.step"))
            w->optimizer[e->tid] = kin_end(e);
        if (e->kind != KIN_RUNTIME)
            continue;
        w->pending[e->tid] += orr_str_has(name_of(w, i), "StreamWaitEvent");
        for (uint32_t p = w->launched.first[i]; p < w->launched.first[i + 1]; p++)
            launch(w, w->launched.list[p], e);
    }
}

static bool is_recorded(const orr_link *l)
{
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        if (e->kind == KIN_SYNC &&
            orr_str_is(orr_intern_get(l->device.texts, e->name), "Stream Wait Event"))
            return true;
    }
    return false;
}

orr_code link_guess_streams(orr_link *l, orr_error *err)
{
    const size_t threads = (size_t)orr_intern_count(l->device.threads) + 1;
    walker w = {.l = l};
    if (is_recorded(l))
        return ORR_OK;
    w.stream_of = orr_map_create(16);
    w.pending = orr_arena_new(l->arena, threads, uint32_t);
    w.optimizer = orr_arena_new(l->arena, threads, double);
    orr_code code =
        w.stream_of && w.pending && w.optimizer ? list_launches(&w, err) : orr_no_memory(err);
    for (size_t t = 0; !code && t < threads; t++)
        w.optimizer[t] = -1;
    if (!code) {
        walk(&w);
        code = w.failed ? orr_no_memory(err) : ORR_OK;
    }
    orr_map_destroy(w.stream_of);
    orr_free(w.last);
    orr_free(w.queue);
    return code;
}
