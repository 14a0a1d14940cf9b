/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_queue.c - rare operations of the event queue: new times, empty buckets, events out of
 * order. */
#include "lgs_queue.h"

#include "base/memory/hash.h"

/* FIRST_SLOTS: a power of two, since hashes are masked. */
enum { FIRST_EVENTS = 1024, FIRST_SLOTS = 256 };

bool lgs_queue_init(lgs_queue *q)
{
    *q = (lgs_queue){.event_count = 1, .bucket_count = 1};
    q->slots = orr_alloc(FIRST_SLOTS, sizeof *q->slots);
    q->slot_count = FIRST_SLOTS;
    return q->slots && orr_grow(&q->events, &q->event_room, FIRST_EVENTS) &&
           orr_grow(&q->buckets, &q->bucket_room, 64) && (q->events[0] = (lgs_event){0}, true);
}

void lgs_queue_fini(lgs_queue *q)
{
    orr_free(q->events);
    orr_free(q->buckets);
    orr_free(q->slots);
    orr_heap_fini(&q->times);
    *q = (lgs_queue){0};
}

bool lgs_queue_grow(lgs_queue *q)
{
    /* The top bit of an event's index is used by lgs_match to distinguish messages from
     * receives. */
    return q->event_count < 0x7fffffff && orr_grow(&q->events, &q->event_room, q->event_count + 1);
}

/* ---- buckets by time */

static size_t slot_of(const lgs_queue *q, uint64_t time)
{
    return (size_t)orr_hash_mix(time + 0x9e3779b97f4a7c15u, 0xe7037ed1a0b428dbu) &
           (q->slot_count - 1);
}

static size_t find_slot(const lgs_queue *q, uint64_t time)
{
    size_t i = slot_of(q, time);
    while (q->slots[i] && q->buckets[q->slots[i]].time != time)
        i = (i + 1) & (q->slot_count - 1);
    return i;
}

/* The old table is freed last, so that a failure leaves the queue as it was. */
static bool grow_slots(lgs_queue *q)
{
    uint32_t *old = q->slots;
    const size_t count = q->slot_count;
    uint32_t *slots = orr_alloc(count * 2, sizeof *slots);
    if (!slots)
        return false;
    q->slots = slots;
    q->slot_count = count * 2;
    for (size_t i = 0; i < count; i++) {
        if (old[i])
            q->slots[find_slot(q, q->buckets[old[i]].time)] = old[i];
    }
    orr_free(old);
    return true;
}

/* Backward-shift deletion. A slot moves into the hole if the hole lies between its home and its
 * place, going around: a search for it would have ended there. */
static void remove_slot(lgs_queue *q, size_t hole)
{
    const size_t mask = q->slot_count - 1;
    for (size_t i = (hole + 1) & mask; q->slots[i]; i = (i + 1) & mask) {
        const size_t home = slot_of(q, q->buckets[q->slots[i]].time);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            q->slots[hole] = q->slots[i];
            hole = i;
        }
    }
    q->slots[hole] = 0;
    q->used_slots--;
}

/* Buckets are reused from a list of free ones: a run passes through far more times than it has
 * open at once. Number 0 is never given out; it means none. */
static uint32_t make_bucket(lgs_queue *q, uint64_t time)
{
    uint32_t b = q->free_bucket;
    if (b) {
        q->free_bucket = q->buckets[b].next_free;
    } else {
        if (q->bucket_count >= UINT32_MAX ||
            !orr_grow(&q->buckets, &q->bucket_room, q->bucket_count + 1))
            return 0;
        b = (uint32_t)q->bucket_count++;
    }
    q->buckets[b] = (lgs_bucket){.time = time};
    return b;
}

uint32_t lgs_queue_bucket(lgs_queue *q, uint64_t time)
{
    size_t i = find_slot(q, time);
    if (q->slots[i])
        return q->slots[i];
    /* At most half full: there is a lookup for nearly every event. */
    if ((q->used_slots + 1) * 2 > q->slot_count) {
        if (!grow_slots(q))
            return 0;
        i = find_slot(q, time);
    }
    const uint32_t b = make_bucket(q, time);
    if (!b || !orr_heap_push(&q->times, time, b))
        return 0;
    q->slots[i] = b;
    q->used_slots++;
    return b;
}

/* Empty buckets stay until they reach the top: an event often leads to another one at the same
 * time. */
uint32_t lgs_queue_next(lgs_queue *q)
{
    orr_heap_entry top;
    while (q->times.count) {
        const uint32_t b = q->times.entries[0].value;
        if (!lgs_list_is_empty(&q->buckets[b].list))
            return b;
        remove_slot(q, find_slot(q, q->buckets[b].time));
        q->buckets[b].next_free = q->free_bucket;
        q->free_bucket = b;
        /* The bucket may be reused for another time: drop the cached one. */
        if (q->recent == b)
            q->recent = 0;
        if (q->ahead_of == b)
            q->ahead_of = 0;
        orr_heap_pop(&q->times, &top);
    }
    return 0;
}

/* ---- pairing heaps: the root is the minimum; siblings are linked by next */

/* Numbers differ, so there are no ties and the order is total. The winner's sibling is cut off:
 * callers pass roots. */
uint32_t lgs_heap_join(lgs_event *events, uint32_t a, uint32_t b)
{
    if (events[b].number < events[a].number) {
        const uint32_t c = a;
        a = b;
        b = c;
    }
    events[b].next = events[a].child;
    events[a].child = b;
    events[a].next = 0;
    return a;
}

/* Two-pass merge: pairs from left to right, then all of them from right to left.  With one pass a
 * removal could cost the length of the heap; this is O(log n) amortised. */
uint32_t lgs_heap_rest(lgs_event *events, uint32_t root)
{
    uint32_t at = events[root].child, pairs = 0;
    while (at) {
        const uint32_t a = at, b = events[a].next;
        at = b ? events[b].next : 0;
        const uint32_t pair = b ? lgs_heap_join(events, a, b) : a;
        events[pair].next = pairs;
        pairs = pair;
    }
    uint32_t all = 0;
    while (pairs) {
        const uint32_t rest = events[pairs].next;
        events[pairs].next = 0;
        all = all ? lgs_heap_join(events, all, pairs) : pairs;
        pairs = rest;
    }
    return all;
}
