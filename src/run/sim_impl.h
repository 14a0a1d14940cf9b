/* SPDX-License-Identifier: Apache-2.0 */
/* sim_impl.h - what the files of src/run share.  From the bottom: clock, matching of messages, the system
 * layer (streams, queues, algorithms), the workload layer (nodes, slots), the run. */
#ifndef ORR_SIM_IMPL_H
#define ORR_SIM_IMPL_H

#include "sim.h"

#include "base/memory/bitset_queue.h"
#include "clock.h"
#include "run/config/config.h"
#include "run_observer.h"
#include "trace/set_impl.h"
#include "trace/trace_impl.h"

#include <stdatomic.h>

static inline void orr__call_now(orr__call c)
{
    if (c.action)
        c.action(c.context, c.argument);
}

/* ---- one trace's graph, shared by all ranks of its class (graph.c) ---- */

typedef enum orr__slot {
    ORR__SLOT_CPU,
    ORR__SLOT_COMP,
    ORR__SLOT_COMM,
    ORR__SLOT_RECV,
    ORR__SLOT_STREAMS, /* communication of a trace's second stream, and further ones */
    ORR__SLOTS = ORR__SLOT_STREAMS + 8
} orr__slot;

static inline bool orr__is_comm_slot(uint8_t slot)
{
    return slot == ORR__SLOT_COMM || slot >= ORR__SLOT_STREAMS;
}

/* What a METADATA node says about process groups (metadata_groups.c). */
typedef struct orr__group_table orr__group_table;

typedef struct orr__graph {
    const orr_trace *t;
    const orr__group_table **tables;
    uint32_t table_count;
    uint32_t count;        /* nodes, in the order of their ids */
    uint32_t *node;        /* place -> index in the trace */
    uint32_t *child_first; /* by place */
    uint32_t *child;       /* places */
    uint32_t *parents;     /* how many distinct ones, by place */
    uint8_t *slot;         /* orr__slot, by place */
    unsigned slot_count;   /* of slots in use, ORR__SLOT_STREAMS at least */
    int64_t
        stream[ORR__SLOTS]; /* of a communication slot: the number in the trace; NO_VALUE: any */
} orr__graph;

orr_code orr__graph_make(const orr_trace *t,
                         const orr_rules_run *rules,
                         orr__graph *out,
                         orr_error *err);
void orr__graph_fini(orr__graph *g);

/* ---- ranks ---- */

typedef struct orr__npu orr__npu;
typedef struct orr__stream orr__stream;
typedef struct orr__bus orr__bus;
struct orr__tensor_log;

/* One dimension of a logical topology, the same description for all ranks (astra-sim.md 5.1). */
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

struct orr__npu {
    orr_sim *sim;
    uint32_t rank;
    const orr__rank_speed *speed;
    /* system layer */
    orr__queue *queues;
    uint32_t *next_general, *next_first, *next_second; /* queue allocators, by lane and dimension */
    uint32_t *variants_made; /* by collective and dimension; NULL: no algorithm has variants */
    uint64_t streams_made;
    int64_t priority;
    orr__membership **memberships;
    size_t membership_count, membership_room;
    orr__bus *bus;
    /* workload layer */
    const orr__graph *graph;
    uint32_t *waiting_for; /* parents not finished, by place */
    orr_bitset_queue ready[ORR__SLOTS];
    uint32_t ready_count, running;
    uint32_t occupant[ORR__SLOTS]; /* place, or NONE */
    uint64_t *started_at;          /* by place */
    uint32_t *freed;               /* became free while issuing */
    size_t freed_count, freed_room;
    bool is_issuing;
    /* results */
    orr_sim_rank_result result;
    uint32_t active[2];
    uint64_t active_since[2];
    double sum_intensity, sum_compute_use, sum_memory_use;
    uint64_t sum_duration, sum_compute_bound;
    bool has_run[2];                    /* device, communication nodes */
    struct orr__tensor_log *tensor_log; /* NULL: local memory is not tracked */
};

struct orr_sim {
    orr_arena *arena;
    orr_sim_options opt;
    const orr_rules_run *rules; /* never NULL */
    orr__clock *clock;
    orr_net_config net_config;
    const orr_net_ops *net_ops;
    void *net;
    orr__topology *topology; /* of the network graph */
    bool is_link_level;   /* the network file is a topology, which says no speed of a dimension */
    char **network_stall; /* lines of the network about a standstill */
    size_t network_stall_count, network_stall_room;
    struct orr__packet_inputs *packet; /* of the model packet; NULL otherwise */
    orr__ranks_config ranks_config;
    orr__system_config system;
    orr__memory_config memory;
    const void *logging; /* the logging file, read by run_old_outputs; NULL: none */
    orr__groups groups;
    orr_set *owned_set;
    const orr_set *set;
    orr__graph *graphs; /* by class */
    orr__npu *npus;
    uint32_t npu_count, dims;
    uint32_t
        lanes; /* sets of queues: as many as the traces have communication streams, 1 at least */
    orr__plan plans[ORR_COLL_COUNT];
    orr__dim *group_rings;  /* by group and kind: for groups smaller than the system */
    struct sched *schedule; /* NULL: every chunk goes through the dimensions ascending */
    struct orr__matcher *matcher;
    void
        *byte_matcher; /* of run_byte_matchings, when the packet network wants it; NULL otherwise */
    struct orr__remote *remote;
    struct orr__program_cache *programs;
    orr_map *group_texts; /* group of a hole -> 1 + its place in group_text */
    orr_str *group_text;
    size_t group_text_count, group_text_room;
    uint32_t *finish_order;
    uint32_t finished;
    uint64_t messages;
    bool has_started;
    orr__stream *free_streams;
    size_t stream_size; /* with the largest state of an algorithm */
    orr__data_set *free_sets;
    void *old_notes; /* of run_old_outputs: what it will print; NULL: nothing */
    run_hooks hooks;
    struct orr__tape *tape;   /* NULL: nothing is recorded for orr_sim_goal */
    struct orr__watch *watch; /* for reports; NULL under the old names */
    atomic_bool must_stop;
    struct orr__stall *stall; /* once it was asked for */
    orr_code code;            /* the first failure: everything stops */
    orr_error error;
};

/* Errors inside events: note the first one; the run ends after the current event. */
void orr__sim_fail(orr_sim *s, orr_code code, const orr_error *err);
void orr__sim_fail_text(orr_sim *s, const orr__npu *npu, uint32_t place, const char *fmt, ...)
    ORR_PRINTF(4, 5);
void orr__sim_no_memory(orr_sim *s);

/* Values that ranks of a class may have of their own. */
static inline int64_t orr__npu_value(const orr__npu *n,
                                     uint32_t place,
                                     orr_hole_field field,
                                     const int64_t *column)
{
    return orr__set_value(n->sim->set, n->rank, field, column, n->graph->node[place]);
}
static inline int64_t orr__npu_src(const orr__npu *n, uint32_t place)
{
    return orr__npu_value(n, place, ORR_HOLE_COMM_SRC, n->graph->t->columns.comm_src);
}
static inline int64_t orr__npu_dst(const orr__npu *n, uint32_t place)
{
    return orr__npu_value(n, place, ORR_HOLE_COMM_DST, n->graph->t->columns.comm_dst);
}
static inline int64_t orr__npu_tag(const orr__npu *n, uint32_t place)
{
    return orr__npu_value(n, place, ORR_HOLE_COMM_TAG, n->graph->t->columns.comm_tag);
}

/* Queues of a rank: lane by lane, in a lane dimension by dimension. */
static inline size_t orr__queue_count(const orr_sim *s)
{
    return (size_t)s->lanes * s->dims * s->opt.queues_per_dim;
}
static inline uint32_t orr__lane_of(const orr__npu *n, uint32_t place)
{
    const uint8_t slot = n->graph->slot[place];
    return slot >= ORR__SLOT_STREAMS ? slot - ORR__SLOT_STREAMS + 1u : 0;
}

/* A timer of this rank (astra-sim.md 4.2). */
static inline void orr__npu_timer(
    orr__npu *n, uint64_t delay, orr__action action, void *context, uint64_t argument)
{
    orr__clock *c = n->sim->clock;
    orr__clock_timer(c, n->rank, orr__clock_now(c) + delay, action, context, argument);
}

/* ---- the network (network_setup.c) ---- */

orr_code orr__network_setup(orr_sim *s, orr_error *err);

/* ---- messages (match.c, 4.3 and 5.6) ---- */

struct orr__matcher *orr__matcher_create(orr_sim *s);
void orr__matcher_destroy(struct orr__matcher *m);
void orr__send(orr__npu *from, uint32_t tag, uint32_t dst, uint64_t size, orr__call on_arrival);
void orr__recv(orr__npu *at, uint32_t tag, uint32_t src, uint64_t size, orr__call on_arrival);

enum { ORR__TAG_SPACE = 500000000 };

void orr__stream_send(orr__stream *s, uint32_t dst, uint64_t size); /* a message of a collective */

/* ---- what was sent, for orr_sim_goal (goal_tape.c) ---- */

orr_code orr__tape_create(orr_sim *s, orr_error *err);
void orr__tape_destroy(struct orr__tape *t); /* NULL is fine */
extern const run_observer orr__tape_observer;

/* A message that lacks something, as it stands when nothing moves any more.  With a rendezvous these are the
 * messages that were asked for, not those that prepare them. */
typedef enum orr__unmatched_kind {
    ORR__UNSENT,     /* the receive waits, nothing was sent */
    ORR__UNREADY,    /* rendezvous: the send waits for its receive */
    ORR__UNRECEIVED, /* it arrived, and there is no receive */
    ORR__UNDELIVERED /* it was sent and has not arrived */
} orr__unmatched_kind;
typedef struct orr__unmatched {
    orr__unmatched_kind kind;
    uint32_t tag, src, dst;
    uint64_t size;
    orr__call sender, receiver; /* what would run then; no action: nobody waits on that side */
    uint32_t number;            /* a tie-breaker */
} orr__unmatched;
bool orr__match_list(const struct orr__matcher *m,
                     orr_arena *a,
                     orr__unmatched **out,
                     uint32_t *count); /* false: out of memory */

/* ---- system layer (system.c, algorithms) ---- */

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

/* The dimensions one chunk goes through, in the order in which it does; collectives with a root: ascending
 * (phases.c). */
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

/* How the chunks of one collective go through the dimensions: the same for all ranks (schedule.c). */
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
/* A rank begins a collective.  r has all dimensions that take part, ascending, and the recommended chunk; id is
 * that of the first chunk.  *out names the plan.  False: out of memory. */
bool sched_join(orr_sim *s, const orr__route *r, uint64_t id, uint64_t size, uint32_t *out);
/* No orders: as usual.  Valid until the next join. */
const sched_plan *sched_plan_of(const orr_sim *s, uint32_t index);
void sched_leave(orr_sim *s, uint32_t index);
/* first: the first that waits in a queue.  Which is to start now?  NULL: one that is not there yet. */
orr__stream *sched_next(orr__stream *first);
void sched_note(const orr__stream *st); /* its phase is over */
/* The stream behind a message of a custom collective; NULL: it is not one. */
const orr__stream *orr__custom_owner(orr__call c);
/* How many nodes are under way; and whether a node that has not started sends (or receives) this. */
uint32_t orr__custom_running(const orr__stream *s);
bool orr__custom_will_post(
    const orr__stream *s, bool is_send, uint32_t peer, uint32_t tag, uint64_t size);
struct orr__program_cache *orr__program_cache_create(orr_sim *s);
void orr__program_cache_destroy(struct orr__program_cache *c);

orr__bus *orr__bus_create(orr__npu *n);
void orr__bus_request(
    orr__bus *b, bool from_npu, uint64_t size, bool is_processed, bool sends_back, orr__call then);

/* ---- process groups from traces (metadata_groups.c) ---- */

orr_code orr__read_metadata_groups(orr_sim *s, orr_error *err);
/* The group that a trace calls by this number: false if it says nothing of it.  *out NULL: all ranks. */
bool orr__metadata_group(const orr_sim *s,
                         const orr__graph *g,
                         int64_t name,
                         const orr__group **out);

/* ---- remote memory (remote_memory.c, 7) ---- */

struct orr__remote *orr__remote_create(orr_sim *s);
void orr__remote_access(orr__npu *n, uint64_t size, uint32_t place);

/* ---- workload layer (workload.c, 6) ---- */

orr_code orr__workload_init(orr__npu *n, const orr__graph *g, orr_error *err);
void orr__workload_fini(orr__npu *n);
void orr__issue(orr__npu *n);
/* The collective that is simulated for one of a trace; -1: none. */
int orr__kind_of(int type, const orr_rules_run *rules);
void orr__node_done(void *npu, uint64_t place); /* as an action */

/* ---- tensors in local memory (local_memory.c, 10.2) ---- */

struct orr__tensor_log *orr__tensor_log_create(uint32_t nodes); /* NULL: out of memory */
void orr__tensor_log_destroy(struct orr__tensor_log *l);
extern const run_observer orr__tensor_observer;
/* What the tensors of a rank that has finished take, tick by tick. */
typedef void (*orr__usage_visit)(void *context, uint64_t tick, uint64_t bytes);
orr_code orr__tensor_usage(const orr__npu *n,
                           orr__usage_visit visit,
                           void *context,
                           orr_error *err);
/* The tensors that a node reads, then those that it writes.  Ends at what cannot be read. */
typedef void (*orr__tensor_visit)(void *context, bool is_write, orr_str name);
void orr__tensors_visit(const orr__npu *n, uint32_t place, orr__tensor_visit visit, void *context);

/* ---- what reports need (watch.c) ---- */

orr_code orr__watch_create(orr_sim *s, orr_error *err);
void orr__watch_destroy(struct orr__watch *w);
extern const run_observer orr__watch_observer;

/* ---- why nothing moves (stall.c) ---- */

orr_code orr__explain_stall(orr_sim *s, orr_error *err);
/* What orr_sim_stall has for people; NULL: it does not stand still. */
const char *const *orr__stall_lines(orr_sim *s, size_t *count);
void orr__stall_destroy(struct orr__stall *stall);
uint64_t orr__packets_sent(const orr_sim *s); /* by a network of packets (network_setup.c) */
void orr__ask_network(orr_sim *s); /* what it knows about a standstill (network_setup.c) */
struct orr_json_writer;

/* ---- the loop (run_events.c) ---- */

/* Until nothing is left or someone says stop: ORR_ESTOP. */
orr_code orr__run_events(orr_sim *s, orr_error *err);

/* Values of nodes. */
uint64_t orr__replay_time(uint64_t duration_us);
uint64_t orr__at_speed(uint64_t duration, double speed); /* of a rank that is not plain */
/* A compute node of this many operations on this many bytes. */
typedef struct orr__roofline {
    double intensity, perf, compute_use, memory_use;
} orr__roofline;
orr__roofline orr__roofline_of(const orr__npu *n, int64_t ops, int64_t size);

#endif
