/* SPDX-License-Identifier: Apache-2.0 */
/* system.h - the system layer: a collective becomes streams (chunks), which go through phases and
 * wait in queues (astra-sim.md 5). */
#ifndef ORR_RUN_SYSTEM_H
#define ORR_RUN_SYSTEM_H

#include "clock.h"
#include "run/config/config.h"

typedef struct run_npu run_npu;
typedef struct sys_stream sys_stream;
typedef struct sys_bus sys_bus;
struct sys_plans;
struct work_graph;
struct coll_plan;

enum {
    SYS_GROUP_STREAMS = 1000000, /* range of stream numbers per group */
    SYS_GROUP_RING_DELAY = 10    /* endpoint delay of a group (astra-sim.md 5.5) */
};

/* The group number in message tags: there is room for 500, and 0 is that of all ranks.  Under
 * ASTRA-sim's rules (has_one_count) the 500th group gets 0 too; ours skip it, since separately
 * counted streams would clash. */
static inline uint64_t sys_tag_number(uint64_t group, bool has_one_count)
{
    const uint64_t numbers = 500;
    return has_one_count || group == 0 ? group % numbers : (group - 1) % (numbers - 1) + 1;
}

/* One dimension of a logical topology, the same for all ranks (astra-sim.md 5.1). */
typedef struct sys_dim {
    uint32_t position; /* in the implementation list: determines the queue */
    const orr_coll_ops *ops;
    uint32_t number;        /* of "directN" */
    uint32_t offset, count; /* ranks first, first + offset, ... */
    bool is_last;           /* of the list */
    const cfg_group *group; /* a ring over these members instead */
} sys_dim;

typedef struct sys_plan {
    sys_dim dims[ORR_NET_DIMS + 1];
    uint32_t count;
    bool exists;   /* an algorithm is configured, or has a default */
    bool is_joint; /* no algorithm is configured, and the network does not need one (joint.h) */
} sys_plan;

/* One collective on one rank: complete after `expected` streams. */
typedef struct sys_data_set {
    run_npu *npu;
    uint32_t place;              /* the node */
    uint32_t plan;               /* the agreed order (schedule.c), or NONE */
    uint64_t expected, finished; /* streams */
    uint64_t first_id;           /* of its streams */
    uint32_t *started;           /* by queue: number of agreed starts done; NULL: not needed yet */
} sys_data_set;

typedef struct sys_phase {
    const sys_dim *dim;
    uint32_t queue; /* of the rank, over all lanes and dimensions */
    orr_collective kind;
    bool is_clockwise; /* around the ring */
    uint32_t variant;  /* of an algorithm with variants */
    uint32_t root;     /* its index, where there is one */
    uint64_t data;     /* in */
} sys_phase;

struct sys_stream {
    sys_data_set *set;
    int64_t priority; /* the highest first */
    uint64_t id;      /* of the rank, or of the group: the same on all members */
    sys_phase *phases;
    sys_stream *next, *previous; /* in the queue */
    uint64_t phase_since;        /* when it started, for onlineGreedy */
    const char *custom_prefix;   /* of traces, or a plan, that form the algorithm; NULL: coll.ops */
    struct coll_plan *plan;      /* custom_prefix is this one */
    uint32_t phase, phase_count, phase_room;
    uint32_t record;  /* of its running phase, when phases are recorded */
    uint8_t whole;    /* orr_collective that this stream belongs to */
    bool is_started;  /* its phase is running; else it waits */
    bool is_starting; /* its algorithm has not returned from start */
    /* The fields used by each event of a running phase are adjacent, in two cache lines: these,
     * coll, and after it the state of the algorithm (orr_coll_state). */
    run_npu *npu;
    const cfg_group *group; /* whose members the indices refer to; NULL: first + index * offset */
    uint32_t first, offset; /* ranks */
    uint32_t tag;           /* of all its messages */
    uint32_t taped;         /* 1 + the last completed receive on the tape; 0: none */
    orr_coll coll;
};

static inline sys_stream *sys_stream_of(orr_coll *c)
{
    return (sys_stream *)((char *)c - offsetof(sys_stream, coll));
}

typedef struct sys_queue {
    sys_stream *first, *last;
    uint64_t running; /* the ones in front */
} sys_queue;

/* A group as one rank sees it. */
typedef struct sys_membership {
    const cfg_group *group;
    uint64_t next_stream;               /* from group id times SYS_GROUP_STREAMS on */
    const char *custom[ORR_COLL_COUNT]; /* by kind: traces that form the algorithm; NULL: none */
    bool is_planned[ORR_COLL_COUNT];    /* by kind: resolved before, and custom is valid */
} sys_membership;

orr_code sys_init(run_npu *n, orr_error *err);
void sys_fini(run_npu *n);
void sys_collective(run_npu *n, uint32_t place, orr_collective kind, uint64_t size);
/* Copies queues, streams and groups from its representative, as its k-th copy; false: out of
 * memory. */
struct fold_copier;
bool sys_copy(struct fold_copier *c, uint32_t k, run_npu *n, const run_npu *from);
/* False: the node refers to an unknown group.  *out NULL: all ranks. */
bool sys_find_group(const run_npu *n, uint32_t place, const cfg_group **out);
/* The dimensions that a node without a group spans, one bit each; all bits: all of them. */
uint32_t sys_dims_of(const orr_sim *s, const struct work_graph *g, uint32_t place);
/* The group of a collective; NULL: none, or unknown. */
const cfg_group *sys_node_group(const run_npu *n, uint32_t place);
orr_str sys_group_text(orr_sim *s, int64_t id);                /* in decimal, cached */
orr_str sys_node_group_name(const run_npu *n, uint32_t place); /* empty: all ranks */
bool sys_node_is_custom(const run_npu *n, uint32_t place, orr_collective kind);
void sys_stream_advance(sys_stream *s);              /* its phase is done (astra-sim.md 5.3) */
void sys_queue_insert(sys_queue *q, sys_stream *st); /* among the waiting ones */

void sys_phase_start(sys_stream *s);
void sys_phase_received(void *stream, uint64_t size);
/* The label of the algorithm with this number in timelines (coll_number). */
const char *sys_algorithm_label(const orr_sim *s, uint8_t number);

extern const orr_coll_ops sys_coll_custom; /* custom_collective.c */

/* The dimensions of one chunk, in the order in which it crosses them; rooted collectives: ascending
 * (phases.c). */
typedef struct sys_route {
    orr_collective kind;
    const sys_dim *dims[ORR_NET_DIMS + 1];
    uint32_t count;
    uint64_t data;
    uint32_t root;    /* a rank */
    bool is_unmerged; /* all-reduce: both halves on the last dimension instead of an all-reduce */
} sys_route;

bool sys_make_group_rings(orr_sim *s); /* once all groups are known */
const sys_dim *sys_group_dim(const orr_sim *s, const cfg_group *g, orr_collective kind);
void sys_add_phases(sys_stream *st, const sys_route *r);

/* ---- the order of chunks (schedule.c) ---- */

/* How the chunks of one collective cross the dimensions: the same for all ranks (schedule.c). */
typedef struct sched_order {
    uint64_t size;
    uint8_t order[ORR_NET_DIMS + 1]; /* indices in the dims of the route */
} sched_order;
typedef struct sched_plan {
    sched_order *orders;
    uint32_t count;
} sched_plan;

struct sched *sched_create(const orr_sim *s);
void sched_destroy(struct sched *c);
/* A rank begins a collective.  r has all dimensions in use, ascending, and the recommended chunk;
 * id is that of the first chunk.  *out is the plan.  False: out of memory. */
bool sched_join(orr_sim *s, const sys_route *r, uint64_t id, uint64_t size, uint32_t *out);
/* No orders: the default.  Valid until the next join. */
const sched_plan *sched_plan_of(const orr_sim *s, uint32_t index);
void sched_leave(orr_sim *s, uint32_t index);
/* Which stream starts next; first: the first one waiting in a queue.  NULL: it has not arrived
 * yet. */
sys_stream *sched_next(sys_stream *first);
void sched_note(const sys_stream *st); /* its phase has ended */

/* ---- collectives whose algorithm is a trace (custom_collective.c) ---- */

/* The stream of a message of a custom collective; NULL: it is not one. */
const sys_stream *sys_custom_owner(clk_call c);
/* Number of running nodes; and whether a node that has not started sends (or receives) this. */
uint32_t sys_custom_running(const sys_stream *s);
bool sys_custom_will_post(
    const sys_stream *s, bool is_send, uint32_t peer, uint32_t tag, uint64_t size);
struct sys_program_cache *sys_program_cache_create(orr_sim *s);
void sys_program_cache_destroy(struct sys_program_cache *c);

/* ---- collectives by a plan (plan_collective.c) ---- */

extern const orr_coll_ops sys_coll_plan;
orr_code sys_plans_read(orr_sim *s, orr_error *err);
bool sys_has_plans(const orr_sim *s);
void sys_plans_destroy(struct sys_plans *p); /* NULL is fine */
/* NULL: none fits this number of members and bytes. */
struct coll_plan *sys_find_plan(orr_sim *s, orr_collective kind, uint32_t members, uint64_t data);
/* Path and purpose: of any plan of this kind; of the index-th unused one. */
const char *sys_unfit_plan(const orr_sim *s, orr_collective kind, uint32_t *ranks);
const char *sys_unused_plan(const orr_sim *s, size_t index, orr_collective *kind, uint32_t *ranks);
const sys_stream *sys_plan_owner(clk_call c);
uint32_t sys_plan_running(const sys_stream *s);
bool sys_plan_will_post(
    const sys_stream *s, bool is_send, uint32_t peer, uint32_t tag, uint64_t size);
/* Fixed cost of handling a message, in ticks; without a shared bus (phases.c). */
uint64_t sys_endpoint_delay(const sys_stream *s);

/* ---- the shared bus (bus.c) ---- */

sys_bus *sys_bus_create(run_npu *n);
void sys_bus_request(
    sys_bus *b, bool from_npu, uint64_t size, bool is_processed, bool sends_back, clk_call then);

#endif
