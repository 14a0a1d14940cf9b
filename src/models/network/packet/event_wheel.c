/* SPDX-License-Identifier: Apache-2.0 */
/* event_wheel.c - a calendar of slots, each one sorted when its time comes.
 *
 *     slots:  | | |x| |xx| ...    16,384 of them from the open one on; bits say which are not empty
 *     run:    the events of the open slot, sorted by (time, order)
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
    orr_free(w->far);
}

uint32_t orr__wheel_new(orr__wheel *w, uint8_t kind, uint32_t who)
{
    uint32_t id = w->free;
    if (id != ORR__NO_EVENT) {
        w->free = w->events[id].next;
    } else {
        if (w->count >= ORR__NO_EVENT || !orr_grow(&w->events, &w->room, w->count + 1)) {
            w->has_failed = true;
            return ORR__NO_EVENT;
        }
        id = (uint32_t)w->count++;
    }
    w->events[id] = (orr__event){.kind = kind, .who = who};
    return id;
}

void orr__wheel_drop(orr__wheel *w, uint32_t id)
{
    w->events[id].next = w->free;
    w->free = id;
}

static bool is_before(const orr__event *a, const orr__event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void orr__wheel_insert_now(orr__wheel *w, uint32_t id)
{
    if (!orr_grow(&w->run, &w->run_room, w->run_count + 1)) {
        w->has_failed = true;
        return;
    }
    size_t i = w->run_count++;
    for (; i > w->run_at && is_before(&w->events[id], &w->events[w->run[i - 1]]); i--)
        w->run[i] = w->run[i - 1];
    w->run[i] = id;
}

/* ---- far ---- */

static bool far_before(const orr__far *a, const orr__far *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void orr__wheel_insert_far(orr__wheel *w, uint32_t id)
{
    const orr__far e = {w->events[id].at, w->events[id].order, id};
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
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from < n; from += 2 * width) {
            const size_t middle = from + width < n ? from + width : n;
            const size_t to = from + 2 * width < n ? from + 2 * width : n;
            size_t a = from, b = middle;
            for (size_t i = from; i < to; i++) {
                const bool takes_b = a == middle || (b < to && is_before(&w->events[w->run[b]],
                                                                         &w->events[w->run[a]]));
                w->spare[i] = w->run[takes_b ? b++ : a++];
            }
        }
        memcpy(w->run, w->spare, n * sizeof *w->run);
    }
}

static void insertion_sort(orr__wheel *w, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t id = w->run[i];
        size_t j = i;
        for (; j && is_before(&w->events[id], &w->events[w->run[j - 1]]); j--)
            w->run[j] = w->run[j - 1];
        w->run[j] = id;
    }
}

static void fill_run(orr__wheel *w)
{
    const size_t slot = w->current & (ORR__WHEEL_SLOTS - 1);
    size_t n = 0;
    w->run_at = w->run_count = 0;
    if (!(w->bits[slot / 64] >> slot % 64 & 1))
        return;
    for (uint32_t id = w->slots[slot]; id != ORR__NO_EVENT; id = w->events[id].next) {
        if (!orr_grow(&w->run, &w->run_room, n + 1)) {
            w->has_failed = true;
            return;
        }
        w->run[n++] = id;
    }
    for (size_t i = 0; i < n / 2; i++) { /* first come first */
        const uint32_t other = w->run[i];
        w->run[i] = w->run[n - 1 - i];
        w->run[n - 1 - i] = other;
    }
    w->run_count = n;
    if (n > 24)
        merge_sort(w, n);
    else
        insertion_sort(w, n);
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
    return w->run_at < w->run_count && !w->has_failed;
}

bool orr__wheel_peek(const orr__wheel *w, uint64_t *at)
{
    if (w->run_at < w->run_count) {
        *at = w->events[w->run[w->run_at]].at;
        return true;
    }
    const uint64_t ahead = distance_to_next(w);
    if (!ahead && !w->far_count)
        return false;
    *at = ahead ? (w->current + ahead) << w->shift : w->far[0].at;
    return true;
}
