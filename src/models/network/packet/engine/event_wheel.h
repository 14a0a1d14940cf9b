/* SPDX-License-Identifier: Apache-2.0 */
/* event_wheel.h - the pending events of the packet network, ordered by (time, order).
 *
 *     fab_wheel_at(w, id, time, order);                // event `id` will happen
 *     while (fab_wheel_next(w, bound, order, &id)) ...  // all before the bound
 *
 * An order is a number assigned when the reference would have scheduled the event; the event may be
 * inserted later than others with higher numbers, so that one that may never matter need not be
 * scheduled at all.  A pending event must not be inserted again. */
#ifndef ORR_MODELS_EVENT_WHEEL_H
#define ORR_MODELS_EVENT_WHEEL_H

#include "base/memory/memory.h"

#define FAB_NO_EVENT UINT32_MAX

typedef struct fab_event {
    /* at: in units of the wheel; order: below 2^FAB_ORDER_BITS */
    uint64_t at, order;
    uint32_t next; /* in its list: of a slot, of a turn, or free */
    uint32_t who;  /* of its user: a port, a flow */
    uint8_t kind;  /* of its user */
} fab_event;

/* An event of the open slot; the key orders by time within the slot, then by order. */
typedef struct fab_due {
    uint64_t key;
    uint32_t id;
} fab_due;

typedef struct fab_far {
    uint64_t at, order;
    uint32_t id;
} fab_far;

/* A slot has at most 2^10 units of time, and orders stay below 2^54: one per nanosecond for half a
 * year. */
enum {
    FAB_WHEEL_SLOTS = 1 << 15, /* two turns: the one of the open slot, and the next */
    FAB_TURN_SHIFT = 14,
    FAB_WHEEL_TURNS = 1 << 12,
    FAB_WHEEL_MAX_SHIFT = 10,
    FAB_ORDER_BITS = 54
};

typedef struct fab_wheel {
    fab_event *fixed; /* the first events: owned by the caller, shared with other wheels */
    uint32_t fixed_count;
    uint32_t free;
    fab_event *events; /* those made by fab_wheel_new; ids continue */
    size_t count, room;
    unsigned shift;   /* a slot is 2^shift units of time */
    uint64_t current; /* the slot that is open */
    uint32_t *slots;  /* lists, LIFO */
    uint64_t bits[FAB_WHEEL_SLOTS / 64];
    uint64_t summary[FAB_WHEEL_SLOTS / 64 / 64];
    fab_due *run; /* of the open slot, sorted */
    fab_due *spare;
    fab_due *late; /* a heap of events inserted into the open slot out of order */
    size_t run_at, run_count, run_room, spare_room, late_count, late_room;
    uint32_t *turns;      /* lists of later turns */
    uint64_t *turn_first; /* the time of the first event of each */
    uint64_t turn_bits[FAB_WHEEL_TURNS / 64];
    uint64_t turn_summary;
    fab_far *far; /* a heap of events beyond those */
    size_t far_count, far_room;
    bool has_failed; /* out of memory */
} fab_wheel;

bool fab_wheel_init(fab_wheel *w, unsigned shift); /* false: out of memory */
/* Before any event was made. */
static inline void fab_wheel_share(fab_wheel *w, fab_event *fixed, uint32_t count)
{
    w->fixed = fixed;
    w->fixed_count = count;
}
void fab_wheel_fini(fab_wheel *w);

static inline fab_event *fab_wheel_event(const fab_wheel *w, uint32_t id)
{
    return id < w->fixed_count ? &w->fixed[id] : &w->events[id - w->fixed_count];
}

/* An event with the caller's kind; FAB_NO_EVENT and has_failed: out of memory. */
uint32_t fab_wheel_new(fab_wheel *w, uint8_t kind, uint32_t who);
void fab_wheel_drop(fab_wheel *w, uint32_t id); /* must not be pending */

void fab_wheel_insert_now(fab_wheel *w, uint32_t id);   /* into the open slot */
void fab_wheel_insert_later(fab_wheel *w, uint32_t id); /* after the next turn */

static inline void fab_wheel_put(fab_wheel *w, uint32_t id)
{
    fab_event *e = fab_wheel_event(w, id);
    const uint64_t slot = e->at >> w->shift, ahead = slot - w->current;
    if (ahead == 0) {
        fab_wheel_insert_now(w, id);
    } else if ((slot >> FAB_TURN_SHIFT) - (w->current >> FAB_TURN_SHIFT) > 1) {
        fab_wheel_insert_later(w, id);
    } else {
        const size_t i = slot & (FAB_WHEEL_SLOTS - 1);
        e->next = w->slots[i];
        w->slots[i] = id;
        w->bits[i / 64] |= (uint64_t)1 << i % 64;
        w->summary[i / 4096] |= (uint64_t)1 << i / 64 % 64;
    }
}

static inline void fab_wheel_at(fab_wheel *w, uint32_t id, uint64_t at, uint64_t order)
{
    fab_event *e = fab_wheel_event(w, id);
    e->at = at;
    e->order = order;
    fab_wheel_put(w, id);
}

/* Opens the next slot if it begins at or before `bound`; false: there is none. */
bool fab_wheel_open(fab_wheel *w, uint64_t bound);

fab_due fab_wheel_take_late(fab_wheel *w);

static inline bool fab_wheel_has_open(const fab_wheel *w)
{
    return w->run_at < w->run_count || w->late_count;
}

/* The first event of the open slot, which must have some. */
static inline const fab_due *fab_wheel_first(const fab_wheel *w)
{
    if (w->late_count && (w->run_at == w->run_count || w->late[0].key < w->run[w->run_at].key))
        return w->late;
    return &w->run[w->run_at];
}

static inline uint64_t fab_wheel_time_of(const fab_wheel *w, const fab_due *e)
{
    return w->current << w->shift | e->key >> FAB_ORDER_BITS;
}

/* The first event, without removing it, if it is at or before `bound`; else NULL. */
static inline const fab_due *fab_wheel_look(fab_wheel *w, uint64_t bound)
{
    if (!fab_wheel_has_open(w) && !fab_wheel_open(w, bound))
        return NULL;
    const fab_due *e = fab_wheel_first(w);
    return fab_wheel_time_of(w, e) <= bound ? e : NULL;
}

static inline uint64_t fab_wheel_order_of(const fab_due *e)
{
    return e->key & (((uint64_t)1 << FAB_ORDER_BITS) - 1);
}

/* Removes the next event if it is before (bound, order). */
static inline bool fab_wheel_next(fab_wheel *w, uint64_t bound, uint64_t order, uint32_t *id)
{
    if (!fab_wheel_has_open(w) && !fab_wheel_open(w, bound))
        return false;
    const fab_due *e = fab_wheel_first(w);
    const uint64_t at = fab_wheel_time_of(w, e);
    if (at > bound || (at == bound && fab_wheel_order_of(e) > order))
        return false;
    *id = e->id;
    if (e == w->late)
        (void)fab_wheel_take_late(w);
    else
        w->run_at++;
    return true;
}

/* Empties the wheel and returns the ids in no order.  Afterwards call fab_wheel_begin and insert
 * them again. False: out of memory, and nothing has changed. */
bool fab_wheel_take_all(fab_wheel *w, uint32_t **ids, size_t *room, size_t *count);
void fab_wheel_begin(fab_wheel *w, uint64_t now); /* an empty wheel opens the slot of `now` */

/* The time of the next event; false: there is none. */
bool fab_wheel_peek(const fab_wheel *w, uint64_t *at);

#endif
