/* SPDX-License-Identifier: Apache-2.0 */
/* event_wheel.h - the pending events of the packet network, ordered by (time, order).
 *
 *     orr__wheel_at(w, id, time, order);                // event `id` will happen
 *     while (orr__wheel_next(w, bound, order, &id)) ...  // all before the bound
 *
 * An order is a number given out when the reference would have scheduled the event; it may be put
 * in later than others with higher numbers, so that an event that may never matter need not be
 * scheduled at all.  An event that is pending must not be put in again. */
#ifndef ORR_MODELS_EVENT_WHEEL_H
#define ORR_MODELS_EVENT_WHEEL_H

#include "base/memory/memory.h"

#define ORR__NO_EVENT UINT32_MAX

typedef struct orr__event {
    uint64_t at, order;
    uint32_t next;
    uint32_t who;
    uint8_t kind; /* of its user */
} orr__event;

/* An event of the open slot; the key orders by time within the slot, then by order. */
typedef struct orr__due {
    uint64_t key;
    uint32_t id;
} orr__due;

typedef struct orr__far {
    uint64_t at, order;
    uint32_t id;
} orr__far;

/* A slot has at most 2^10 units of time, and orders stay below 2^54: a number a nanosecond for half
 * a year. */
enum {
    ORR__WHEEL_SLOTS = 1 << 15, /* two turns: the one of the open slot, and the next */
    ORR__TURN_SHIFT = 14,
    ORR__WHEEL_TURNS = 1 << 12,
    ORR__WHEEL_MAX_SHIFT = 10,
    ORR__ORDER_BITS = 54
};

typedef struct orr__wheel {
    orr__event *fixed; /* the first events: of the caller, shared with other wheels */
    uint32_t fixed_count;
    uint32_t free;
    orr__event *events; /* those made by orr__wheel_new; ids go on */
    size_t count, room;
    unsigned shift;   /* a slot is 2^shift units of time */
    uint64_t current; /* the slot that is open */
    uint32_t *slots;  /* lists, the last put in first */
    uint64_t bits[ORR__WHEEL_SLOTS / 64];
    uint64_t summary[ORR__WHEEL_SLOTS / 64 / 64];
    orr__due *run; /* of the open slot, in order */
    orr__due *spare;
    orr__due *late; /* a heap of what was put into the open slot before others of it */
    size_t run_at, run_count, run_room, spare_room, late_count, late_room;
    uint32_t *turns;      /* lists of what comes in later turns */
    uint64_t *turn_first; /* the time of the first event of each */
    uint64_t turn_bits[ORR__WHEEL_TURNS / 64];
    uint64_t turn_summary;
    orr__far *far; /* a heap of what lies beyond those */
    size_t far_count, far_room;
    bool has_failed; /* out of memory */
} orr__wheel;

bool orr__wheel_init(orr__wheel *w, unsigned shift); /* false: out of memory */
/* Before any event was made. */
static inline void orr__wheel_share(orr__wheel *w, orr__event *fixed, uint32_t count)
{
    w->fixed = fixed;
    w->fixed_count = count;
}
void orr__wheel_fini(orr__wheel *w);

static inline orr__event *orr__wheel_event(const orr__wheel *w, uint32_t id)
{
    return id < w->fixed_count ? &w->fixed[id] : &w->events[id - w->fixed_count];
}

/* An event of the caller's kind; ORR__NO_EVENT and has_failed: out of memory. */
uint32_t orr__wheel_new(orr__wheel *w, uint8_t kind, uint32_t who);
void orr__wheel_drop(orr__wheel *w, uint32_t id); /* not pending any more */

void orr__wheel_insert_now(orr__wheel *w, uint32_t id);   /* into the open slot */
void orr__wheel_insert_later(orr__wheel *w, uint32_t id); /* behind the next turn */

static inline void orr__wheel_put(orr__wheel *w, uint32_t id)
{
    orr__event *e = orr__wheel_event(w, id);
    const uint64_t slot = e->at >> w->shift, ahead = slot - w->current;
    if (ahead == 0) {
        orr__wheel_insert_now(w, id);
    } else if ((slot >> ORR__TURN_SHIFT) - (w->current >> ORR__TURN_SHIFT) > 1) {
        orr__wheel_insert_later(w, id);
    } else {
        const size_t i = slot & (ORR__WHEEL_SLOTS - 1);
        e->next = w->slots[i];
        w->slots[i] = id;
        w->bits[i / 64] |= (uint64_t)1 << i % 64;
        w->summary[i / 4096] |= (uint64_t)1 << i / 64 % 64;
    }
}

static inline void orr__wheel_at(orr__wheel *w, uint32_t id, uint64_t at, uint64_t order)
{
    orr__event *e = orr__wheel_event(w, id);
    e->at = at;
    e->order = order;
    orr__wheel_put(w, id);
}

/* Opens the next slot if it begins not after `bound`; false: there is none. */
bool orr__wheel_open(orr__wheel *w, uint64_t bound);

orr__due orr__wheel_take_late(orr__wheel *w);

static inline bool orr__wheel_has_open(const orr__wheel *w)
{
    return w->run_at < w->run_count || w->late_count;
}

/* The first event of the open slot, which must have some. */
static inline const orr__due *orr__wheel_first(const orr__wheel *w)
{
    if (w->late_count && (w->run_at == w->run_count || w->late[0].key < w->run[w->run_at].key))
        return w->late;
    return &w->run[w->run_at];
}

static inline uint64_t orr__wheel_time_of(const orr__wheel *w, const orr__due *e)
{
    return w->current << w->shift | e->key >> ORR__ORDER_BITS;
}

/* The first event, which stays where it is, if it comes not after `bound`; else NULL. */
static inline const orr__due *orr__wheel_look(orr__wheel *w, uint64_t bound)
{
    if (!orr__wheel_has_open(w) && !orr__wheel_open(w, bound))
        return NULL;
    const orr__due *e = orr__wheel_first(w);
    return orr__wheel_time_of(w, e) <= bound ? e : NULL;
}

static inline uint64_t orr__wheel_order_of(const orr__due *e)
{
    return e->key & (((uint64_t)1 << ORR__ORDER_BITS) - 1);
}

/* The next event if it comes before (bound, order); it is then not pending any more. */
static inline bool orr__wheel_next(orr__wheel *w, uint64_t bound, uint64_t order, uint32_t *id)
{
    if (!orr__wheel_has_open(w) && !orr__wheel_open(w, bound))
        return false;
    const orr__due *e = orr__wheel_first(w);
    const uint64_t at = orr__wheel_time_of(w, e);
    if (at > bound || (at == bound && orr__wheel_order_of(e) > order))
        return false;
    *id = e->id;
    if (e == w->late)
        (void)orr__wheel_take_late(w);
    else
        w->run_at++;
    return true;
}

/* Nothing is pending any more: the ids of what was, in no order.  Then orr__wheel_begin, and put
 * them in again. False: out of memory, and nothing has changed. */
bool orr__wheel_take_all(orr__wheel *w, uint32_t **ids, size_t *room, size_t *count);
void orr__wheel_begin(orr__wheel *w, uint64_t now); /* an empty wheel opens the slot of `now` */

/* The time of the next event; false: there is none. */
bool orr__wheel_peek(const orr__wheel *w, uint64_t *at);

#endif
