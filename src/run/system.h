/* SPDX-License-Identifier: Apache-2.0 */
/* system.h - the system layer: a collective becomes streams (chunks), which go through phases and wait
 * in queues (astra-sim.md 5). */
#ifndef ORR_RUN_SYSTEM_H
#define ORR_RUN_SYSTEM_H

#include "clock.h"
#include "run/config/config.h"

typedef struct orr__npu orr__npu;
typedef struct orr__stream orr__stream;
typedef struct orr__bus orr__bus;

/* One dimension of a logical topology, the same for all ranks (astra-sim.md 5.1). */
typedef struct orr__dim {
    uint32_t position; /* in the implementation list: decides the queue */
    const orr_coll_ops *ops;
    uint32_t number;         /* of "directN" */
    uint32_t offset, count;  /* ranks first, first + offset, ... */
    bool is_last;            /* of the list */
    const orr__group *group; /* a ring over these members instead */
} orr__dim;

typedef struct orr__plan {
    orr__dim dims[ORR_NET_DIMS + 1];
    uint32_t count;
    bool exists;
} orr__plan;

/* One collective on one rank: complete after `expected` streams. */
typedef struct orr__data_set {
    orr__npu *npu;
    uint32_t place; /* the node */
    uint32_t plan;  /* what the ranks agreed on (schedule.c), or NONE */
    uint64_t expected, finished;
    uint64_t first_id; /* of its streams */
    uint32_t
        *started; /* by queue: how many of the agreed starts are done; NULL before it is needed */
} orr__data_set;

typedef struct orr__phase {
    const orr__dim *dim;
    uint32_t queue;
    orr_collective kind;
    bool is_clockwise;
    uint32_t variant; /* of an algorithm that has some */
    uint32_t root;    /* its index, where there is one */
    uint64_t data;    /* in */
} orr__phase;

struct orr__stream {
    orr__data_set *set;
    int64_t priority;
    uint64_t id;
    orr__phase *phases;
    orr__stream *next, *previous; /* in the queue */
    uint64_t phase_since;         /* when it started, for onlineGreedy */
    const char *custom_prefix;    /* of traces that are the algorithm; NULL: coll.ops is it */
    uint32_t phase, phase_count, phase_room;
    uint32_t record; /* of its running phase, when phases are recorded */
    uint8_t whole;   /* orr_collective that this stream belongs to */
    bool is_started;
    /* What each event of a running phase needs stands together, in two cache lines: this, coll, and after it
     * the state of the algorithm (orr_coll_state). */
    orr__npu *npu;
    const orr__group *group; /* whose members the indices mean; NULL: first + index * offset */
    uint32_t first, offset;
    uint32_t tag;
    uint32_t taped; /* 1 + the last receive on the tape that is over; 0: none */
    orr_coll coll;
};

static inline orr__stream *orr__stream_of(orr_coll *c)
{
    return (orr__stream *)((char *)c - offsetof(orr__stream, coll));
}

typedef struct orr__queue {
    orr__stream *first, *last;
    uint64_t running;
} orr__queue;

/* A group as one rank sees it. */
typedef struct orr__membership {
    const orr__group *group;
    uint64_t next_stream;
    const char *custom[ORR_COLL_COUNT];
    bool is_planned[ORR_COLL_COUNT];
} orr__membership;

orr_code orr__system_init(orr__npu *n, orr_error *err);
void orr__system_fini(orr__npu *n);
void orr__collective(orr__npu *n, uint32_t place, orr_collective kind, uint64_t size);
/* The group that a collective names; NULL: none, or one that is not known. */
const orr__group *orr__node_group(const orr__npu *n, uint32_t place);
orr_str orr__group_text(orr_sim *s, int64_t id);                 /* in decimal, made once */
orr_str orr__node_group_name(const orr__npu *n, uint32_t place); /* empty: all ranks */
bool orr__node_is_custom(const orr__npu *n, uint32_t place, orr_collective kind);
void orr__stream_advance(orr__stream *s);               /* its phase is done (astra-sim.md 5.3) */
void orr__queue_insert(orr__queue *q, orr__stream *st); /* among those that wait */

void orr__phase_start(orr__stream *s);
void orr__phase_received(void *stream, uint64_t size);
/* What a timeline calls the algorithm of this number (coll_number). */
const char *orr__algorithm_label(const orr_sim *s, uint8_t number);

extern const orr_coll_ops orr__coll_custom; /* custom_collective.c */

/* The dimensions of one chunk, in the order in which it crosses them; collectives with a root:
 * ascending (phases.c). */
typedef struct orr__route {
    orr_collective kind;
    const orr__dim *dims[ORR_NET_DIMS + 1];
    uint32_t count;
    uint64_t data;
    uint32_t root;    /* a rank */
    bool is_unmerged; /* all-reduce: no all-reduce on the last dimension, but both halves of it */
} orr__route;

bool orr__make_group_rings(orr_sim *s); /* once all groups are known */
const orr__dim *orr__group_dim(const orr_sim *s, const orr__group *g, orr_collective kind);
void orr__add_phases(orr__stream *st, const orr__route *r);

/* ---- the order of chunks (schedule.c) ---- */

/* How the chunks of one collective cross the dimensions: the same for all ranks (schedule.c). */
typedef struct sched_order {
    uint64_t size;
    uint8_t order[ORR_NET_DIMS + 1]; /* places in the dims of the route */
} sched_order;
typedef struct sched_plan {
    sched_order *orders;
    uint32_t count;
} sched_plan;

struct sched *sched_create(const orr_sim *s);
void sched_destroy(struct sched *c);
/* A rank begins a collective.  r has all dimensions that take part, ascending, and the recommended
 * chunk; id is that of the first chunk.  *out names the plan.  False: out of memory. */
bool sched_join(orr_sim *s, const orr__route *r, uint64_t id, uint64_t size, uint32_t *out);
/* No orders: as usual.  Valid until the next join. */
const sched_plan *sched_plan_of(const orr_sim *s, uint32_t index);
void sched_leave(orr_sim *s, uint32_t index);
/* Which stream starts next; first: the first that waits in a queue.  NULL: one that has not arrived
 * yet. */
orr__stream *sched_next(orr__stream *first);
void sched_note(const orr__stream *st); /* its phase is over */

/* ---- collectives whose algorithm is a trace (custom_collective.c) ---- */

/* The stream that a message of a custom collective belongs to; NULL: it is not one. */
const orr__stream *orr__custom_owner(orr__call c);
/* How many nodes are under way; and whether a node that has not started sends (or receives) this. */
uint32_t orr__custom_running(const orr__stream *s);
bool orr__custom_will_post(
    const orr__stream *s, bool is_send, uint32_t peer, uint32_t tag, uint64_t size);
struct orr__program_cache *orr__program_cache_create(orr_sim *s);
void orr__program_cache_destroy(struct orr__program_cache *c);

/* ---- the shared bus (bus.c) ---- */

orr__bus *orr__bus_create(orr__npu *n);
void orr__bus_request(
    orr__bus *b, bool from_npu, uint64_t size, bool is_processed, bool sends_back, orr__call then);

#endif
