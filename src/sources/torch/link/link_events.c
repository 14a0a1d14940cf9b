/* SPDX-License-Identifier: Apache-2.0 */
/* link_events.c - the events of the device trace: in time order, with exclusive durations,
 * restricted to the requested step. */

#include "link_impl.h"

#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==== sorting by time: a stable radix sort.
 *
 * Why not a comparison sort: a million timestamps of some seconds differ in five or six of their
 * eight bytes, so it takes that many passes over small records.
 * Cost: linear. */

/* An order-preserving map of a double to unsigned bits: the sign bit is flipped, and for negative
 * times all other bits too, since their magnitude grows the other way. */
uint64_t link_sort_key(double v)
{
    uint64_t bits;
    v += 0.0; /* -0 and 0 are the same time */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* The upper bytes of timestamps of one run are equal: such a digit would move nothing, so its pass
 * is skipped. */
static bool digit_is_constant(const size_t *count, size_t n)
{
    for (unsigned d = 0; d < 256; d++) {
        if (count[d])
            return count[d] == n;
    }
    return true;
}

/* One digit of a radix sort, from a to b; false: nothing to do. */
static bool sort_digit(const link_sort_entry *a, link_sort_entry *b, size_t n, unsigned shift)
{
    size_t count[256] = {0}, at = 0;
    for (size_t i = 0; i < n; i++)
        count[a[i].key >> shift & 255]++;
    if (digit_is_constant(count, n))
        return false;
    for (unsigned d = 0; d < 256; d++) {
        const size_t here = count[d];
        count[d] = at;
        at += here;
    }
    for (size_t i = 0; i < n; i++)
        b[count[a[i].key >> shift & 255]++] = a[i];
    return true;
}

/* The lowest digit first and each pass stable, so events with equal starts stay in file order:
 * later steps rely on that if the clock is too coarse. */
const link_sort_entry *link_sort_entries(link_sort_entry *a, link_sort_entry *b, size_t n)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!sort_digit(a, b, n, shift))
            continue;
        link_sort_entry *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

/* ==== operators by time (chakra.md 3.3 to 3.5).
 *
 * Events are sorted by time once; everything after that is one pass over each thread.
 *
 * Exclusive durations: an operator's self time is its duration minus the union of the operators
 * inside.  chakra_trace_link examines all that start before it ends, grandchildren too; we skip
 * what lies inside a child, since that cannot change the union:
 *
 *     outer  |--------------------------------|
 *     child     |------------|    |------|
 *     inside       |--| |--|         |--|          skip[child] is the first operator not inside the child
 *
 * Sums are in chakra_trace_link's order, so that fractions are equal to the last bit. Cost: linear,
 * except for runs of equal timestamps, which are sorted. */

/* ---- lists ---- */

bool link_pairs_add(link_pairs *p, uint32_t item, uint32_t value)
{
    if (p->count == UINT32_MAX || !orr_grow(&p->pairs, &p->room, p->count + 1))
        return false;
    p->pairs[p->count++] = (struct link_pair){item, value};
    return true;
}

/* Why two passes over pairs instead of a list per item: there are many items and most lists have
 * one entry, so one array plus offsets costs a quarter of the memory and is traversed without
 * jumps. */
orr_code link_pairs_take(
    link_pairs *p, uint32_t items, orr_arena *a, link_lists *out, orr_error *err)
{
    uint32_t *first = orr_arena_new(a, (size_t)items + 2, uint32_t);
    uint32_t *list = orr_arena_new(a, p->count + 1, uint32_t);
    if (first && list) {
        /* Counted two places on, so that after filling first[i] is the start of list i. */
        for (size_t i = 0; i < p->count; i++)
            first[p->pairs[i].item + 2]++;
        for (size_t i = 2; i < (size_t)items + 2; i++)
            first[i] += first[i - 1];
        for (size_t i = 0; i < p->count; i++)
            list[first[p->pairs[i].item + 1]++] = p->pairs[i].value;
        *out = (link_lists){first, list};
    }
    orr_free(p->pairs);
    *p = (link_pairs){0};
    return first && list ? ORR_OK : orr_no_memory(err);
}

/* ---- order ---- */

/* Sorted input is detected in one pass. */
static bool is_sorted(const kin_trace *k)
{
    for (size_t i = 1; i < k->count; i++) {
        if (k->events[i].ts < k->events[i - 1].ts)
            return false;
    }
    return true;
}

/* Makes times exact as doubles: nanoseconds since the first event with a duration. Since 1970 they
 * need 61 bits and a double has 53. A trace of some hours relative to its own beginning fits, so
 * that all later comparisons are of plain doubles. */
static void rebase(kin_trace *k)
{
    k->base_ns = INT64_MAX;
    for (size_t i = 0; i < k->count; i++) {
        const kin_event *e = &k->events[i];
        if (e->kind != KIN_OTHER && e->start_ns < k->base_ns)
            k->base_ns = e->start_ns;
    }
    for (size_t i = 0; i < k->count; i++)
        k->events[i].ts = (double)(k->events[i].start_ns - k->base_ns);
}

/* Whole microseconds, some of which are not exact as doubles: relative to the first they are. */
static void rebase_micros(kin_trace *k)
{
    int64_t first = INT64_MAX;
    if (!k->has_wide_start || k->has_real_start || k->has_huge_start)
        return;
    for (size_t i = 0; i < k->count; i++) {
        const kin_event *e = &k->events[i];
        if (e->kind != KIN_OTHER && e->start_ns < first)
            first = e->start_ns;
    }
    for (size_t i = 0; i < k->count; i++)
        k->events[i].ts = (double)((__int128)k->events[i].start_ns - first);
}

orr_code link_sort(orr_link *l, orr_error *err)
{
    kin_trace *k = &l->device;
    if (l->rules->read.keeps_micros)
        rebase_micros(k);
    else
        rebase(k);
    if (is_sorted(k))
        return ORR_OK;
    link_sort_entry *a = orr_alloc(k->count, sizeof *a), *b = orr_alloc(k->count, sizeof *b);
    kin_event *sorted = orr_alloc(k->count, sizeof *sorted);
    const bool has_room = a && b && sorted;
    if (has_room) {
        for (size_t i = 0; i < k->count; i++)
            a[i] = (link_sort_entry){link_sort_key(k->events[i].ts), (uint32_t)i};
        const link_sort_entry *order = link_sort_entries(a, b, k->count);
        for (size_t i = 0; i < k->count; i++)
            sorted[i] = k->events[order[i].item];
        orr_free(k->events);
        k->events = sorted;
        k->room = k->count;
    } else {
        orr_free(sorted);
    }
    orr_free(a);
    orr_free(b);
    return has_room ? ORR_OK : orr_no_memory(err);
}

/* ---- exclusive durations ---- */

/* A number as in Python: an integer until combined with a fraction. */
typedef struct number {
    double v;
    bool is_real;
} number;

/* Only chakra_trace_link's output shows the difference (3 or 3.0), but it must be tracked here:
 * nothing later knows which operand had a fraction. */
static number minus(number a, number b)
{
    return (number){a.v - b.v, a.is_real || b.is_real};
}

static number start_of(const kin_event *e)
{
    return (number){e->ts, e->flags & KIN_TS_REAL};
}

static number duration_of(const kin_event *e)
{
    return (number){e->dur, e->flags & KIN_DUR_REAL};
}

static number end_of(const kin_event *e)
{
    return (number){kin_end(e), e->flags & (KIN_TS_REAL | KIN_DUR_REAL)};
}

/* The operators of one thread in the order (start, duration). */
typedef struct thread {
    const orr_link *l;
    uint32_t *ops, count;
    uint32_t *skip; /* the first operator after k that does not lie inside it */
} thread;

static const kin_event *event_of(const thread *t, uint32_t k)
{
    return link_op(t->l, t->ops[k]);
}

/* Only ends are compared: what starts later and ends no later lies inside, also if both start
 * together. */
static bool lies_inside(const kin_event *inner, const kin_event *outer)
{
    return inner->ts <= kin_end(outer) && kin_end(inner) <= kin_end(outer);
}

/* From the last to the first, so that nested operators are known already and whole subtrees are
 * skipped at once: each operator is visited a constant number of times. */
static void find_skips(thread *t)
{
    for (uint32_t k = t->count; k-- > 0;) {
        uint32_t next = k + 1;
        while (next < t->count && lies_inside(event_of(t, next), event_of(t, k)))
            next = t->skip[next];
        t->skip[k] = next;
    }
}

/* Children may overlap if clocks are coarse, so their union is subtracted, one interval after the
 * other; an operator that extends past its parent does not count as its child. */
static number own_time(const thread *t, uint32_t k)
{
    const kin_event *outer = event_of(t, k);
    const double end = kin_end(outer);
    number rest = duration_of(outer), from = {0}, to = {0};
    bool is_open = false;
    for (uint32_t i = k + 1; i < t->count && event_of(t, i)->ts <= end;) {
        const kin_event *inner = event_of(t, i);
        if (kin_end(inner) > end) {
            i++;
            continue;
        }
        if (is_open && inner->ts <= to.v) {
            to = kin_end(inner) > to.v ? end_of(inner) : to;
        } else {
            if (is_open)
                rest = minus(rest, minus(to, from));
            from = start_of(inner);
            to = end_of(inner);
            is_open = true;
        }
        i = t->skip[i];
    }
    return is_open ? minus(rest, minus(to, from)) : rest;
}

typedef struct run_entry {
    double dur;
    uint32_t op;
} run_entry;

static int by_duration(const void *a, const void *b)
{
    const run_entry *x = a, *y = b;
    if (x->dur != y->dur)
        return x->dur < y->dur ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Of operators that start together: the longer one first, since it is the caller; by other rules
 * the shorter one. */
static void sort_runs(thread *t, run_entry *room)
{
    const double sign = t->l->rules->shorter_first ? 1 : -1;
    for (uint32_t from = 0, to; from < t->count; from = to) {
        for (to = from + 1; to < t->count && event_of(t, to)->ts == event_of(t, from)->ts;)
            to++;
        if (to - from == 1)
            continue;
        for (uint32_t i = from; i < to; i++)
            room[i - from] = (run_entry){sign * event_of(t, i)->dur, t->ops[i]};
        orr_sort(room, to - from, sizeof *room, by_duration);
        for (uint32_t i = from; i < to; i++)
            t->ops[i] = room[i - from].op;
    }
}

static orr_code negative_own(const orr_link *l, const kin_event *e, orr_error *err)
{
    const orr_str name = link_name(l, e);
    const orr_where at = {.byte = ORR_NO_BYTE};
    return orr_fail(err, ORR_EINPUT, &at,
                    "%s: the operators inside '%.*s' take longer than itself (event %u)",
                    l->device_path, ORR_SHOWN(name, 60), e->index);
}

/* Rounding of two clocks may make the parts longer than the whole. Ours is 0 then;
 * chakra_trace_link fails there, and so does this by its rules. */
static orr_code thread_times(orr_link *l, thread *t, run_entry *room, orr_error *err)
{
    sort_runs(t, room);
    find_skips(t);
    for (uint32_t k = 0; k < t->count; k++) {
        const number own = own_time(t, k);
        if (own.v < 0 && l->rules->shorter_first)
            return negative_own(l, event_of(t, k), err);
        l->ops.own[t->ops[k]] = own.v < 0 ? 0 : own.v;
        l->ops.own_is_real[t->ops[k]] = own.is_real;
    }
    return ORR_OK;
}

static orr_code exclusive_times(orr_link *l, orr_error *err)
{
    const link_lists *by = &l->ops.by_thread;
    const size_t n = l->ops.count;
    uint32_t *ops = orr_alloc(n + 1, sizeof *ops), *skip = orr_alloc(n + 1, sizeof *skip);
    run_entry *room = orr_alloc(n + 1, sizeof *room);
    orr_code code = ops && skip && room ? ORR_OK : orr_no_memory(err);
    for (uint32_t i = 0; !code && i < l->ops.thread_count; i++) {
        thread t = {.l = l, .ops = ops, .skip = skip, .count = by->first[i + 1] - by->first[i]};
        if (l->rules->shorter_first) /* lists stay in file order */
            memcpy(ops, by->list + by->first[i], t.count * sizeof *ops);
        else
            t.ops = by->list + by->first[i];
        code = thread_times(l, &t, room, err);
    }
    orr_free(ops);
    orr_free(skip);
    orr_free(room);
    return code;
}

/* ---- everything ---- */

static orr_code list_operators(orr_link *l, orr_error *err)
{
    link_operators *o = &l->ops;
    const kin_trace *k = &l->device;
    link_pairs by_thread = {0};
    for (size_t i = 0; i < k->count; i++)
        o->count += k->events[i].kind == KIN_OPERATOR;
    o->thread_count = k->threads ? orr_intern_count(k->threads) : 0;
    o->event = orr_arena_new(l->arena, (size_t)o->count + 1, uint32_t);
    o->own = orr_arena_new(l->arena, (size_t)o->count + 1, double);
    o->own_is_real = orr_arena_new(l->arena, (size_t)o->count + 1, uint8_t);
    if (!o->event || !o->own || !o->own_is_real)
        return orr_no_memory(err);
    uint32_t op = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->events[i].kind != KIN_OPERATOR)
            continue;
        o->event[op] = i;
        if (!link_pairs_add(&by_thread, k->events[i].tid, op++)) {
            orr_free(by_thread.pairs);
            return orr_no_memory(err);
        }
    }
    return link_pairs_take(&by_thread, o->thread_count, l->arena, &o->by_thread, err);
}

orr_code link_time(orr_link *l, orr_error *err)
{
    const orr_code code = list_operators(l, err);
    return code ? code : exclusive_times(l, err);
}

/* ---- calls ---- */

/* Of several calls with one correlation the first is the launch: others are nested calls of a
 * library, with the number of their caller. */
orr_map *link_calls(const orr_link *l)
{
    orr_map *calls = orr_map_create(1024);
    for (uint32_t i = 0; calls && i < l->device.count; i++) {
        const kin_event *e = link_event(l, i);
        if (e->kind == KIN_RUNTIME && e->correlation != -1 &&
            orr_map_find(calls, (uint64_t)e->correlation, LINK_NONE) == LINK_NONE &&
            !orr_map_put(calls, (uint64_t)e->correlation, i, NULL)) {
            orr_map_destroy(calls);
            return NULL;
        }
    }
    return calls;
}

/* ==== selects one step: what the host did during ProfilerStep#N, and what it launched then.
 *
 * Done on the events, before anything is derived from them, so that later steps need no exceptions.
 * Host nodes of other steps lose their operators and then count as not measured. Cost: two
 * passes. */

typedef struct window {
    double from, to;
    int64_t first, last; /* numbers of the steps there are */
    bool is_found;
} window;

/* N of "ProfilerStep#N". */
static bool step_number(orr_str name, int64_t *out)
{
    const char *hash = name.len ? memchr(name.ptr, '#', name.len) : NULL;
    if (!hash)
        return false;
    return orr_text_i64((orr_str){hash + 1, name.len - (size_t)(hash + 1 - name.ptr)}, out);
}

/* An annotation is recorded once per thread that runs the step, with slightly different ends: the
 * step is their union. */
static void widen(window *w, const kin_event *e)
{
    if (!w->is_found || e->ts < w->from)
        w->from = e->ts;
    if (!w->is_found || kin_end(e) > w->to)
        w->to = kin_end(e);
    w->is_found = true;
}

static window find_window(const orr_link *l)
{
    window w = {.first = INT64_MAX, .last = INT64_MIN};
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        int64_t n;
        if (e->kind != KIN_STEP || !step_number(link_name(l, e), &n))
            continue;
        w.first = n < w.first ? n : w.first;
        w.last = n > w.last ? n : w.last;
        if (n == l->opt.step)
            widen(&w, e);
    }
    return w;
}

static orr_code no_such_step(const orr_link *l, const window *w, orr_error *err)
{
    if (w->first > w->last)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "step %" PRId64 ": %s has no annotation ProfilerStep", l->opt.step,
                        l->device_path);
    return orr_fail(err, ORR_EUSAGE, NULL, "step %" PRId64 ": %s has steps %" PRId64 " to %" PRId64,
                    l->opt.step, l->device_path, w->first, w->last);
}

/* By start: an operator that begins in a step and ends in the next belongs to the first. */
static bool is_inside(const window *w, const kin_event *e)
{
    return e->ts >= w->from && e->ts < w->to;
}

/* A device operation belongs to the step that launched it. */
static bool is_kept(const orr_link *l, const window *w, const orr_map *calls, const kin_event *e)
{
    if (!kin_is_device(e))
        return is_inside(w, e);
    const uint32_t call = orr_map_find(calls, (uint64_t)e->correlation, LINK_NONE);
    return call != LINK_NONE && is_inside(w, &l->device.events[call]);
}

/* Which events stay is decided before any of them moves. */
static bool keep_window(orr_link *l, const window *w, const orr_map *calls)
{
    kin_trace *k = &l->device;
    bool *kept = orr_alloc(k->count + 1, sizeof *kept);
    size_t n = 0;
    if (!kept)
        return false;
    for (size_t i = 0; i < k->count; i++)
        kept[i] = is_kept(l, w, calls, &k->events[i]);
    for (size_t i = 0; i < k->count; i++) {
        if (kept[i])
            k->events[n++] = k->events[i];
    }
    k->count = n;
    orr_free(kept);
    return true;
}

orr_code link_pick_step(orr_link *l, orr_error *err)
{
    if (!l->opt.has_step)
        return ORR_OK;
    const window w = find_window(l);
    if (!w.is_found)
        return no_such_step(l, &w, err);
    orr_map *calls = link_calls(l);
    const bool is_done = calls && keep_window(l, &w, calls);
    orr_map_destroy(calls);
    return is_done ? ORR_OK : orr_no_memory(err);
}
