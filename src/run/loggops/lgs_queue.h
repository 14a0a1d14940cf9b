/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_queue.h - events and their order.
 *
 *     times     heap of the times with events
 *     buckets   by time, found through a hash table: the events of that time
 *     list      events in the order of their sequence numbers
 *
 * Why buckets: schedules are regular, so many ranks do the same at the same time; a heap of all
 * events would sort what is already sorted.  Events mostly come in order and are appended; others
 * (a deferred event keeps its number) go to a pairing heap beside the list. Invariants: event 0 is
 * unused; within a bucket events run by number; an event is in one place at a time. Cost: 32 bytes
 * per event; a push is a hash lookup, plus a heap operation if its time is new. */
#ifndef ORR_SIMULATE_LGS_QUEUE_H
#define ORR_SIMULATE_LGS_QUEUE_H

#include "base/memory/heap.h"
#include "base/memory/memory.h"

enum { LGS_FAR = 20, LGS_NEAR = 10 }; /* prefetch distances, in events */
enum { LGS_MESSAGE = 0x80000000 };    /* in an event's node: the message of that send */

typedef struct lgs_event {
    uint64_t time;
    /* order among equal times; of one that waits for its match: order of arrival */
    uint64_t number;
    uint32_t host, node; /* the operation; of a message: its send */
    /* next: in its list, its ring, or among siblings in the heap; child: in the heap only */
    uint32_t next, child;
} lgs_event;

/* Events by number: a queue of those that came in order, a heap of the others. */
typedef struct lgs_list {
    uint32_t head, tail, heap;
} lgs_list;

typedef struct lgs_bucket {
    uint64_t time;
    lgs_list list;
    uint32_t next_free;
} lgs_bucket;

typedef struct lgs_queue {
    lgs_event *events;
    size_t event_room, event_count; /* high-water mark; from 1 */
    uint32_t free_event;
    lgs_bucket *buckets;
    size_t bucket_room, bucket_count;
    uint32_t free_bucket;
    uint32_t *slots; /* buckets by the hash of their time */
    size_t slot_count, used_slots;
    orr_heap times;       /* with the bucket; may name empty ones */
    uint64_t recent_time; /* of the last bucket used */
    uint32_t recent;
    uint32_t far, near, ahead_of; /* events some positions after the head of that bucket */
    size_t pending;
} lgs_queue;

bool lgs_queue_init(lgs_queue *q);
void lgs_queue_fini(lgs_queue *q);
bool lgs_queue_grow(lgs_queue *q);
uint32_t lgs_queue_bucket(lgs_queue *q, uint64_t time); /* found or made; 0: out of memory */
uint32_t lgs_queue_next(lgs_queue *q); /* of an empty top bucket: the next one; 0: none is left */

/* A new event, not zeroed; 0: out of memory.  Events may be reallocated. */
static inline uint32_t lgs_event_take(lgs_queue *q)
{
    if (q->free_event) {
        const uint32_t e = q->free_event;
        q->free_event = q->events[e].next;
        return e;
    }
    if (q->event_count >= q->event_room && !lgs_queue_grow(q))
        return 0;
    return (uint32_t)q->event_count++;
}

static inline void lgs_event_give(lgs_queue *q, uint32_t e)
{
    q->events[e].next = q->free_event;
    q->free_event = e;
}

/* ---- lists */

static inline bool lgs_list_is_empty(const lgs_list *l)
{
    return !l->head && !l->heap;
}

uint32_t lgs_heap_join(lgs_event *events, uint32_t a, uint32_t b);
uint32_t lgs_heap_rest(lgs_event *events, uint32_t root); /* the heap without its root */

static inline void lgs_list_push(lgs_event *events, lgs_list *l, uint32_t e)
{
    lgs_event *ev = &events[e];
    ev->next = 0;
    if (!l->head) {
        l->head = l->tail = e;
    } else if (ev->number > events[l->tail].number) {
        events[l->tail].next = e;
        l->tail = e;
    } else {
        ev->child = 0;
        l->heap = l->heap ? lgs_heap_join(events, l->heap, e) : e;
    }
}

/* The list must not be empty. */
static inline uint32_t lgs_list_pop(lgs_event *events, lgs_list *l)
{
    const uint32_t e = l->head;
    if (l->heap && (!e || events[l->heap].number < events[e].number)) {
        const uint32_t root = l->heap;
        l->heap = lgs_heap_rest(events, root);
        return root;
    }
    l->head = events[e].next;
    return e;
}

/* ---- the queue */

/* events[e].time and .number are set.  False: out of memory. */
static inline bool lgs_queue_push(lgs_queue *q, uint32_t e)
{
    const uint64_t time = q->events[e].time;
    uint32_t b = q->recent;
    if (!b || q->recent_time != time) {
        b = lgs_queue_bucket(q, time);
        if (!b)
            return false;
        q->recent = b;
        q->recent_time = time;
    }
    lgs_list_push(q->events, &q->buckets[b].list, e);
    q->pending++;
    return true;
}

/* If every event has its own time, the next ones are near the top of the heap. */
static inline void lgs_queue_ask(const lgs_queue *q)
{
    const orr_heap_entry *t = q->times.entries;
    const size_t to = q->times.count < 5 ? q->times.count : 5;
    for (size_t i = 1; i < to; i++)
        __builtin_prefetch(&q->events[q->buckets[t[i].value].list.head]);
}

/* Time of the first event; UINT64_MAX: none is left. */
static inline uint64_t lgs_queue_first(lgs_queue *q)
{
    if (!q->pending)
        return UINT64_MAX;
    uint32_t b = q->times.entries[0].value;
    if (lgs_list_is_empty(&q->buckets[b].list))
        b = lgs_queue_next(q);
    return q->buckets[b].time;
}

/* The first event by time and number; 0: none is left. */
static inline uint32_t lgs_queue_pop(lgs_queue *q)
{
    if (!q->pending)
        return 0;
    uint32_t b = q->times.entries[0].value;
    if (lgs_list_is_empty(&q->buckets[b].list))
        b = lgs_queue_next(q);
    q->pending--;
    if (!q->near)
        lgs_queue_ask(q);
    if (q->ahead_of != b) {
        q->ahead_of = b;
        q->far = q->near = q->buckets[b].list.head;
        for (int i = 0; i < LGS_FAR && q->far; i++) {
            q->far = q->events[q->far].next;
            q->near = i < LGS_NEAR ? q->far : q->near;
        }
    } else {
        q->far = q->events[q->far].next; /* event 0 links to itself */
        q->near = q->events[q->near].next;
    }
    return lgs_list_pop(q->events, &q->buckets[b].list);
}

#endif
