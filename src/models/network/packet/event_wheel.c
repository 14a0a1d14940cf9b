/* SPDX-License-Identifier: Apache-2.0 */
/* event_wheel.c - a calendar of slots, each one sorted when its time comes.
 *
 *     slots:  | | |x| |xx| ...    16,384 of them from the open one on; bits say which are not empty
 *     run:    the events of the open slot, sorted by (time, order)
 *     late:   a heap of those that came when it was open and belong before others of it
 *     far:    a heap of what lies beyond; it moves in as the open slot moves on
 *
 * Why not a heap alone: nearly everything happens within microseconds, and putting something in costs a list push
 * and no comparison.  A slot holds one nanosecond, so it is sorted by order mostly; it is nearly sorted already.
 * Invariant: all events of `far` lie at least ORR__WHEEL_SLOTS slots behind the open one. */
#include "event_wheel.h"

#include <string.h>

bool orr__wheel_init(orr__wheel *w, unsigned shift)
{
    *w = (orr__wheel){.shift = shift, .free = ORR__NO_EVENT};
    w->slots = orr_alloc(ORR__WHEEL_SLOTS, sizeof *w->slots);
    if (!w->slots || !orr_grow(&w->run, &w->run_room, 64))
        return false;
    memset(w->slots, 0xff, ORR__WHEEL_SLOTS * sizeof *w->slots);
    return true;
}

void orr__wheel_fini(orr__wheel *w)
{
    orr_free(w->events);
    orr_free(w->slots);
    orr_free(w->run);
    orr_free(w->spare);
    orr_free(w->late);
    orr_free(w->far);
}

uint32_t orr__wheel_new(orr__wheel *w, uint8_t kind, uint32_t who)
{
    uint32_t id = w->free;
    if (id != ORR__NO_EVENT) {
        w->free = orr__wheel_event(w, id)->next;
    } else {
        if (w->count >= ORR__NO_EVENT - w->fixed_count ||
            !orr_grow(&w->events, &w->room, w->count + 1)) {
            w->has_failed = true;
            return ORR__NO_EVENT;
        }
        id = w->fixed_count + (uint32_t)w->count++;
    }
    *orr__wheel_event(w, id) = (orr__event){.kind = kind, .who = who};
    return id;
}

void orr__wheel_drop(orr__wheel *w, uint32_t id)
{
    orr__wheel_event(w, id)->next = w->free;
    w->free = id;
}

/* ---- the open slot ---- */

static orr__due due_of(const orr__wheel *w, uint32_t id)
{
    const orr__event *e = orr__wheel_event(w, id);
    const uint64_t within = e->at & (((uint64_t)1 << w->shift) - 1);
    return (orr__due){within << ORR__ORDER_BITS | e->order, id};
}

static void insert_late(orr__wheel *w, orr__due e)
{
    if (!orr_grow(&w->late, &w->late_room, w->late_count + 1)) {
        w->has_failed = true;
        return;
    }
    size_t i = w->late_count++;
    for (; i && e.key < w->late[(i - 1) / 2].key; i = (i - 1) / 2)
        w->late[i] = w->late[(i - 1) / 2];
    w->late[i] = e;
}

orr__due orr__wheel_take_late(orr__wheel *w)
{
    const orr__due first = w->late[0], last = w->late[--w->late_count];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < w->late_count; i = c) {
        if (c + 1 < w->late_count && w->late[c + 1].key < w->late[c].key)
            c++;
        if (w->late[c].key >= last.key)
            break;
        w->late[i] = w->late[c];
    }
    w->late[i] = last;
    return first;
}

void orr__wheel_insert_now(orr__wheel *w, uint32_t id)
{
    const orr__due e = due_of(w, id);
    if (w->run_at == w->run_count)
        w->run_at = w->run_count = 0;
    if (w->run_count && w->run[w->run_count - 1].key > e.key) {
        insert_late(w, e);
        return;
    }
    if (!orr_grow(&w->run, &w->run_room, w->run_count + 1)) {
        w->has_failed = true;
        return;
    }
    w->run[w->run_count++] = e;
}

/* ---- far ---- */

static bool far_before(const orr__far *a, const orr__far *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void orr__wheel_insert_far(orr__wheel *w, uint32_t id)
{
    const orr__event *event = orr__wheel_event(w, id);
    const orr__far e = {event->at, event->order, id};
    if (!orr_grow(&w->far, &w->far_room, w->far_count + 1)) {
        w->has_failed = true;
        return;
    }
    size_t i = w->far_count++;
    for (; i && far_before(&e, &w->far[(i - 1) / 2]); i = (i - 1) / 2)
        w->far[i] = w->far[(i - 1) / 2];
    w->far[i] = e;
}

static uint32_t take_far(orr__wheel *w)
{
    const uint32_t first = w->far[0].id;
    const orr__far last = w->far[--w->far_count];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < w->far_count; i = c) {
        if (c + 1 < w->far_count && far_before(&w->far[c + 1], &w->far[c]))
            c++;
        if (!far_before(&w->far[c], &last))
            break;
        w->far[i] = w->far[c];
    }
    w->far[i] = last;
    return first;
}

/* ---- opening a slot ---- */

/* How many slots behind the open one the next slot with events is; 0: there is none. */
static uint64_t distance_to_next(const orr__wheel *w)
{
    enum { WORDS = ORR__WHEEL_SLOTS / 64, TOPS = WORDS / 64 };
    const size_t from = (w->current + 1) & (ORR__WHEEL_SLOTS - 1);
    size_t word = from / 64;
    uint64_t bits = w->bits[word] & ~(uint64_t)0 << from % 64;
    if (!bits) {
        size_t top = (word + 1) % WORDS / 64;
        uint64_t tops = w->summary[top] & ~(uint64_t)0 << (word + 1) % 64;
        for (unsigned i = 0; i < TOPS && !tops; i++) {
            top = (top + 1) % TOPS;
            tops = w->summary[top];
        }
        if (!tops)
            return 0;
        word = top * 64 + (size_t)__builtin_ctzll(tops);
        bits = w->bits[word];
    }
    const size_t found = word * 64 + (size_t)__builtin_ctzll(bits);
    return ((found - from) & (ORR__WHEEL_SLOTS - 1)) + 1;
}

/* Neighbouring runs merged, twice as long each time. */
static void merge_sort(orr__wheel *w, size_t n)
{
    if (!orr_grow(&w->spare, &w->spare_room, n)) {
        w->has_failed = true;
        return;
    }
    orr__due *from = w->run, *to = w->spare;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t first = 0; first < n; first += 2 * width) {
            const size_t middle = first + width < n ? first + width : n;
            const size_t end = first + 2 * width < n ? first + 2 * width : n;
            size_t a = first, b = middle;
            for (size_t i = first; i < end; i++) {
                const bool takes_b = a == middle || (b < end && from[b].key < from[a].key);
                to[i] = from[takes_b ? b++ : a++];
            }
        }
        orr__due *const other = from;
        from = to;
        to = other;
    }
    if (from != w->run)
        memcpy(w->run, from, n * sizeof *w->run);
}

static void insertion_sort(orr__due *run, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const orr__due e = run[i];
        size_t j = i;
        for (; j && e.key < run[j - 1].key; j--)
            run[j] = run[j - 1];
        run[j] = e;
    }
}

static bool is_sorted(const orr__due *run, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (run[i].key < run[i - 1].key)
            return false;
    return true;
}

static void sort_run(orr__wheel *w, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) { /* first come first */
        const orr__due other = w->run[i];
        w->run[i] = w->run[n - 1 - i];
        w->run[n - 1 - i] = other;
    }
    if (n <= 24)
        insertion_sort(w->run, n);
    else if (!is_sorted(w->run, n))
        merge_sort(w, n);
}

static void fill_run(orr__wheel *w)
{
    const size_t slot = w->current & (ORR__WHEEL_SLOTS - 1);
    size_t n = 0;
    w->run_at = w->run_count = 0;
    if (!(w->bits[slot / 64] >> slot % 64 & 1))
        return;
    for (uint32_t id = w->slots[slot]; id != ORR__NO_EVENT; id = orr__wheel_event(w, id)->next) {
        if (!orr_grow(&w->run, &w->run_room, n + 1)) {
            w->has_failed = true;
            return;
        }
        w->run[n++] = due_of(w, id);
    }
    sort_run(w, n);
    w->run_count = n;
    w->slots[slot] = ORR__NO_EVENT;
    w->bits[slot / 64] &= ~((uint64_t)1 << slot % 64);
    if (!w->bits[slot / 64])
        w->summary[slot / 4096] &= ~((uint64_t)1 << slot / 64 % 64);
}

/* What was far moves in, as far as it is not far any more. */
static void move_in(orr__wheel *w)
{
    while (w->far_count && (w->far[0].at >> w->shift) - w->current < ORR__WHEEL_SLOTS)
        orr__wheel_put(w, take_far(w));
}

bool orr__wheel_open(orr__wheel *w, uint64_t bound)
{
    const uint64_t ahead = distance_to_next(w);
    if (w->has_failed || (!ahead && !w->far_count))
        return false;
    const uint64_t slot = ahead ? w->current + ahead : w->far[0].at >> w->shift;
    if (slot << w->shift > bound)
        return false;
    w->current = slot;
    fill_run(w);
    move_in(w);
    return orr__wheel_has_open(w) && !w->has_failed;
}

bool orr__wheel_peek(const orr__wheel *w, uint64_t *at)
{
    if (orr__wheel_has_open(w)) {
        *at = orr__wheel_time_of(w, orr__wheel_first(w));
        return true;
    }
    const uint64_t ahead = distance_to_next(w);
    if (!ahead && !w->far_count)
        return false;
    *at = ahead ? (w->current + ahead) << w->shift : w->far[0].at;
    return true;
}

/* ---- all at once ---- */

static size_t count_pending(const orr__wheel *w)
{
    size_t n = w->run_count - w->run_at + w->late_count + w->far_count;
    for (size_t i = 0; i < ORR__WHEEL_SLOTS; i++)
        for (uint32_t id = w->slots[i]; id != ORR__NO_EVENT; id = orr__wheel_event(w, id)->next)
            n++;
    return n;
}

bool orr__wheel_take_all(orr__wheel *w, uint32_t **ids, size_t *room, size_t *count)
{
    size_t n = 0;
    *count = count_pending(w);
    if (!orr_grow(ids, room, *count))
        return false;
    for (size_t i = w->run_at; i < w->run_count; i++)
        (*ids)[n++] = w->run[i].id;
    for (size_t i = 0; i < w->late_count; i++)
        (*ids)[n++] = w->late[i].id;
    for (size_t i = 0; i < w->far_count; i++)
        (*ids)[n++] = w->far[i].id;
    for (size_t i = 0; i < ORR__WHEEL_SLOTS; i++) {
        for (uint32_t id = w->slots[i]; id != ORR__NO_EVENT; id = orr__wheel_event(w, id)->next)
            (*ids)[n++] = id;
        w->slots[i] = ORR__NO_EVENT;
    }
    w->run_at = w->run_count = w->late_count = w->far_count = 0;
    memset(w->bits, 0, sizeof w->bits);
    memset(w->summary, 0, sizeof w->summary);
    return true;
}

void orr__wheel_begin(orr__wheel *w, uint64_t now)
{
    w->current = now >> w->shift;
}
