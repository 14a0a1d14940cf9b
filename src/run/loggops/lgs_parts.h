/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_parts.h - effects of an event on other parts (lgs_parts.c).
 *
 * In a window a part runs independently: events that it issues have provisional numbers, from
 * LGS_PROVISIONAL on, which become final after the window.  In a tick, issued events are held back
 * until their numbers are final. */
#ifndef ORR_RUN_LGS_PARTS_H
#define ORR_RUN_LGS_PARTS_H

#include "lgs_impl.h"

#define LGS_PROVISIONAL ((uint64_t)1 << 62) /* larger than every final number */

enum { LGS_MOST_PARTS = 64 };

typedef enum lgs_mode {
    LGS_MODE_ALONE,  /* no message leaves its part: numbers are local */
    LGS_MODE_WINDOW, /* nothing from another part can arrive or end before the end of the window */
    LGS_MODE_TICK    /* the events of one time that are known by now */
} lgs_mode;

/* An event that issued others, or has records. */
typedef struct lgs_logged {
    uint64_t time, number;
    uint32_t issued; /* cumulative */
} lgs_logged;

typedef struct lgs_recorded { /* cumulative */
    size_t spans, searches, pairs;
} lgs_recorded;

/* Position of an issued event among those of one tick: by issuing event, host, kind and time of
 * release. */
typedef struct lgs_issue_key {
    uint64_t number;
    uint64_t order;
    uint32_t sub; /* 0: the message of a send; else 1 + the host */
} lgs_issue_key;

/* In a tick: an operation has one dependency fewer.  If a send that ends in the same tick turns out
 * to be its last dependency although it comes earlier, this event releases it. */
typedef struct lgs_less {
    uint64_t place, number;
    uint32_t host, order, tie; /* order: index in its batch; tie: by when it was recorded */
} lgs_less;

/* In a tick: the clock of a CPU before an event changed it. */
typedef struct lgs_change {
    uint64_t number, before;
    uint32_t host, previous; /* 1 + the previous change of that host; 0: none */
    uint8_t cpu;
} lgs_change;

/* A message to another part, or the end of one of its sends. */
typedef struct lgs_letter {
    uint64_t time, number;
    uint32_t host, node;
} lgs_letter;

typedef struct lgs_ending {
    uint64_t number, when;
    uint32_t host, node;
    uint8_t cpu, nic;
} lgs_ending;

typedef struct lgs_letters {
    lgs_letter *list;
    size_t count, room;
    uint64_t first, first_large; /* times; UINT64_MAX: none */
} lgs_letters;

typedef struct lgs_endings {
    lgs_ending *list;
    size_t count, room;
} lgs_endings;

/* A large message from another part: its sender waits, so its end must be reported at once. */
enum { LGS_STATE_NONE, LGS_STATE_QUEUED, LGS_STATE_PARKED };

typedef struct lgs_part {
    /* its queue and waiting messages; clocks and edge counts are shared, by host */
    lgs_sim sim;
    const uint8_t *part_of; /* by host */
    uint8_t index;
    lgs_mode mode;
    bool is_odd;     /* which of the two sets of letters is being written */
    bool has_erred;  /* an event in a window violated its assumptions */
    uint64_t number; /* of the running event */

    uint32_t *issued; /* by provisional number: the event; 0: sent to another part */
    lgs_issue_key *keys;
    uint64_t *final; /* numbers */
    size_t issued_room, key_room, final_room, issued_count, ended_from;
    lgs_less *less;
    uint32_t *less_of; /* by place, of all parts: which of `less`, if it names the place */
    lgs_change *changes;
    uint32_t *change_of; /* by host, of all parts: 1 + the last change */
    size_t less_count, less_room, change_count, change_room;
    uint64_t kept_first; /* the earliest of those held back */
    lgs_logged *log;
    lgs_recorded *recorded;
    size_t log_count, log_room, recorded_room;
    lgs_busy **groups; /* whose leader has a provisional number */
    size_t group_count, group_room;

    lgs_letters letters[2][LGS_MOST_PARTS]; /* by receiver */
    lgs_endings endings[LGS_MOST_PARTS];

    uint8_t *state; /* by event */
    uint32_t *large;
    size_t state_room, large_count, large_room;
    uint64_t parked;     /* large messages from other parts that wait for their receive */
    uint64_t large_from; /* lower bound on the end of those in the queue */
    uint64_t next;       /* time of its first event */
    uint64_t steps, steps_before;
} lgs_part;

static inline void lgs_min(uint64_t *least, uint64_t v)
{
    if (v < *least)
        *least = v;
}

static inline bool lgs_part_has(const lgs_part *p, uint32_t host)
{
    return p->part_of[host] == p->index;
}

/* An event begins. */
static inline void lgs_part_begin(lgs_sim *s, const lgs_event *ev, const orr__goal_node *n)
{
    lgs_part *p = s->part;
    p->number = ev->number;
    if (p->mode != LGS_MODE_TICK)
        return;
    const bool is_message = ev->node & (uint32_t)LGS_MESSAGE;
    if (!is_message && n->kind == ORR_GOAL_RECV)
        return;
    const uint32_t host = is_message ? n->peer : ev->host;
    if (!orr_grow(&p->changes, &p->change_room, p->change_count + 1)) {
        s->has_failed = true;
        return;
    }
    p->changes[p->change_count++] =
        (lgs_change){ev->number, *lgs_cpu(s, host, n->cpu), host, p->change_of[host], n->cpu};
    p->change_of[host] = (uint32_t)p->change_count;
}

/* Sends before receives before calculations, then in order of release; in between those released by
 * an ending that was reported late. */
static inline uint64_t lgs_part_place(uint32_t kind, uint32_t order, bool is_let_go, uint32_t tie)
{
    return (uint64_t)kind << 62 | ((uint64_t)order * 2 + is_let_go) << 28 | (tie & 0xfffffffu);
}

static inline uint64_t lgs_part_order(const lgs_ready *r)
{
    return lgs_part_place(r->kind, r->order, true, 0);
}

/* Records the event that was just numbered; 0: it goes to another part.  False: out of memory. */
static inline bool lgs_part_keep(lgs_part *p, uint32_t e, lgs_issue_key key)
{
    const size_t at = p->issued_count;
    const bool is_tick = p->mode == LGS_MODE_TICK;
    if ((at >= p->issued_room && !orr_grow(&p->issued, &p->issued_room, at + 1)) ||
        (is_tick && at >= p->key_room && !orr_grow(&p->keys, &p->key_room, at + 1)))
        return false;
    p->issued[at] = e;
    if (is_tick)
        p->keys[at] = key;
    p->issued_count++;
    return true;
}

static inline void lgs_part_take(lgs_sim *s, uint32_t e, lgs_issue_key key)
{
    lgs_part *p = s->part;
    if (p->mode != LGS_MODE_ALONE && !lgs_part_keep(p, e, key)) {
        s->has_failed = true;
        return;
    }
    if (p->mode == LGS_MODE_TICK)
        lgs_min(&p->kept_first, s->queue.events[e].time);
    else if (!lgs_queue_push(&s->queue, e))
        s->has_failed = true;
}

/* An event was issued. */
static inline void lgs_part_issue(lgs_sim *s, uint32_t e, uint32_t host, uint64_t order)
{
    lgs_part_take(s, e, (lgs_issue_key){s->part->number, order, host + 1});
}

/* A message leaves. */
static inline void lgs_part_send(lgs_sim *s, uint32_t e, const orr__goal_node *n)
{
    lgs_part *p = s->part;
    if (lgs_part_has(p, n->peer)) {
        lgs_part_take(s, e, (lgs_issue_key){p->number, 0, 0});
        return;
    }
    const lgs_event *ev = &s->queue.events[e];
    lgs_letters *to = &p->letters[p->is_odd][p->part_of[n->peer]];
    if (!orr_grow(&to->list, &to->room, to->count + 1) ||
        !lgs_part_keep(p, 0, (lgs_issue_key){p->number, 0, 0})) {
        s->has_failed = true;
        return;
    }
    to->list[to->count++] = (lgs_letter){ev->time, ev->number, ev->host, ev->node};
    lgs_min(&to->first, ev->time);
    if (n->size > s->opt.S)
        lgs_min(&to->first_large, ev->time);
    lgs_event_give(&s->queue, e);
}

/* A send that waited for its receiver has ended; true: another part handles it. */
static inline bool lgs_part_end(
    lgs_sim *s, uint32_t host, uint32_t node, uint8_t cpu, uint8_t nic, uint64_t when)
{
    lgs_part *p = s->part;
    if (lgs_part_has(p, host))
        return false;
    lgs_endings *to = &p->endings[p->part_of[host]];
    p->has_erred |= p->mode != LGS_MODE_TICK;
    if (!orr_grow(&to->list, &to->room, to->count + 1))
        s->has_failed = true;
    else
        to->list[to->count++] = (lgs_ending){p->number, when, host, node, cpu, nic};
    return true;
}

static inline bool lgs_part_is_large(const lgs_sim *s, uint32_t sender, const orr__goal_node *n)
{
    return n->size > s->opt.S && !lgs_part_has(s->part, sender);
}

/* A message starts waiting for its receive. */
static inline void lgs_part_park(lgs_sim *s, uint32_t e, const orr__goal_node *n)
{
    if (!lgs_part_is_large(s, s->queue.events[e].host, n))
        return;
    s->part->state[e] = LGS_STATE_PARKED;
    s->part->parked++;
}

/* A message matches its receive. */
static inline void lgs_part_meet(lgs_sim *s, uint32_t e, const orr__goal_node *n)
{
    if (!lgs_part_is_large(s, s->queue.events[e].host, n))
        return;
    s->part->parked -= s->part->state[e] == LGS_STATE_PARKED;
    s->part->state[e] = LGS_STATE_NONE;
}

/* The leader of a busy group has changed. */
static inline void lgs_part_group(lgs_sim *s, lgs_busy *g)
{
    lgs_part *p = s->part;
    if (!p || g->first < LGS_PROVISIONAL || g->first == UINT64_MAX)
        return;
    if (orr_grow(&p->groups, &p->group_room, p->group_count + 1))
        p->groups[p->group_count++] = g;
    else
        s->has_failed = true;
}

/* An event has ended. */
static inline void lgs_part_log(lgs_sim *s, uint64_t time, uint64_t number)
{
    lgs_part *p = s->part;
    if (p->mode == LGS_MODE_ALONE || (p->mode == LGS_MODE_TICK && !s->watch))
        return;
    const size_t at = p->log_count;
    const uint32_t before = at ? p->log[at - 1].issued : 0;
    const lgs_watch *w = s->watch;
    if (p->issued_count == before && !w)
        return;
    if ((at >= p->log_room && !orr_grow(&p->log, &p->log_room, at + 1)) ||
        (w && !orr_grow(&p->recorded, &p->recorded_room, at + 1))) {
        s->has_failed = true;
        return;
    }
    p->log[at] = (lgs_logged){time, number, (uint32_t)p->issued_count};
    if (w)
        p->recorded[at] = (lgs_recorded){w->span_count, w->search_count, w->pair_count};
    p->log_count++;
}

#endif
