/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - the record of a run for reports: statistics always, a log of steps on request.
 *
 * The workload and system layers call the hooks of run_observer.h; src/explain reads the record. */
#ifndef ORR_RUN_WATCH_H
#define ORR_RUN_WATCH_H

#include "run_state.h"

#include <orrery/timeline.h>

/* One execution of one node.  A node runs once, so (rank, place) identifies a step as well as its
 * index does. */
typedef struct watch_step {
    uint64_t start, end;  /* end ORR_NEVER: still running */
    uint32_t rank, place; /* place: of the node in the graph of its rank */
    /* the step of this rank whose end released it; NONE: the start (watch_log.c) */
    uint32_t cause;
    uint32_t instance; /* the collective it is part of; NONE: none */
    /* the step that joined this collective just before it; NONE: it is the first */
    uint32_t earlier;
} watch_step;

/* One collective over all of its members: the same group, the same chunk number, the same ranks. */
typedef struct watch_instance {
    const cfg_group *group;
    uint64_t stream; /* of its first chunk */
    uint32_t base;   /* the smallest possible member */
    uint32_t last;   /* the step that joined last */
    uint32_t source; /* the rank that all data comes from; NONE: every member has some */
    uint32_t come;   /* members that have called it */
    uint32_t held;   /* of those, the last that waits for others (watch_hold); NONE: nobody does */
    /* dimensions in which members differ, one bit each; all: of a group, or of all ranks */
    uint32_t along;
    bool is_counter; /* no step refers to it: it counts the members of all equivalent ones */
    /* 1 + its index in `across` if it spans several parts (parts.h); 0: one part */
    uint32_t across;
} watch_instance;

/* A collective whose members are in several parts. */
typedef struct watch_across {
    uint64_t parts, told; /* with members, and whose members have all arrived; as bits */
    uint64_t last;        /* latest arrival of those */
    uint32_t here;        /* members in this part */
} watch_across;

/* Activities of a rank, buffered until it is known when data of its nodes flowed. */
typedef struct watch_op {
    uint64_t at;
    uint64_t compute; /* so far */
    uint32_t place;
    uint8_t what; /* watch_op_kind */
} watch_op;
typedef struct watch_later {
    watch_op *ops; /* by time */
    size_t count, room;
    uint32_t unknown;     /* nodes for which it is not known */
    uint64_t at, compute; /* of the last counted one */
} watch_later;

/* A member that has called a collective before all others have. */
typedef struct watch_hold {
    uint32_t rank, place, next;
    /* consecutive step; the rank may have finished it, and wait at this node again */
    uint32_t round;
} watch_hold;

/* What a rank does: each moment counts only for the first that applies (docs/accounting.md).  Idle
 * is the rest. */
typedef enum watch_use {
    WATCH_COMPUTE,
    WATCH_EXPOSED, /* communication: its data can flow */
    WATCH_MEMORY,
    WATCH_HOST,
    WATCH_WAITING, /* in a collective that not all members have joined */
    WATCH_BUBBLE,  /* receives whose messages have not left */
    WATCH_USES
} watch_use;

/* One phase of one chunk, when phases are recorded. */
typedef struct watch_phase {
    uint64_t start, end;
    uint64_t stream, data;   /* number of the chunk; input bytes */
    uint32_t step;           /* its collective, in the log */
    uint16_t dim, queue;     /* queue: among those of the dimension, lane by lane */
    uint8_t kind, algorithm; /* orr_collective, coll_number */
} watch_phase;

/* Equal nodes: the same collective, size and number of ranks; or all sends, or all receives. */
typedef struct watch_tally {
    uint8_t type;         /* orr_node_type */
    uint8_t collective;   /* orr_collective */
    uint32_t group_ranks; /* of a collective; 0: not known */
    uint64_t size;        /* of one; 0 for sends and receives */
    uint64_t count;       /* completed nodes, over all ranks */
    uint64_t bytes;       /* their sizes */
    /* ns, over all ranks; from when data could flow, if the run splits times */
    uint64_t time;
    uint64_t exposed; /* the part of it without computation on the rank; not for receives */
    uint64_t waited;  /* before data flowed */
    uint64_t longest; /* ns */
    orr_str group;    /* a name, if there is only one group */
    uint32_t groups;  /* number of distinct names */
} watch_tally;

typedef struct watch_rank {
    uint32_t active;           /* running nodes */
    uint64_t busy_since, busy; /* time with any node running */
    /* compute time so far when a communication slot was occupied */
    uint64_t compute_before[WORK_SLOTS];
    uint32_t *step_of;                      /* by place; NULL: no log */
    uint32_t doing[WATCH_USES];             /* running nodes */
    uint64_t since;                         /* time is accounted for up to here */
    uint64_t spent[WATCH_USES], overlapped; /* overlapped: communication during computation */
    uint64_t *flows_at; /* by node: when data could flow; 0: from the start, NEVER: not yet. NULL:
                         * all from the start */
    watch_later *later; /* of one of several parts; NULL: everything is counted at once */
} watch_rank;

/* When bytes were sent: bins of equal width for all dimensions, doubled when the run outgrows
 * them. */
enum { WATCH_TRAFFIC_BINS = 2048 };
typedef struct watch_traffic_bins {
    unsigned shift;                                   /* a bin is 2^shift ns wide */
    uint64_t bytes[ORR_NET_DIMS][WATCH_TRAFFIC_BINS]; /* by dimension and bin */
} watch_traffic_bins;

typedef struct watch_traffic {
    uint64_t messages, bytes; /* of the recorded step */
} watch_traffic;

/* Tokens of requests (watch_served.c), over all ranks, in units of 1/`whole` of a rank's share. */
typedef struct served_sums {
    unsigned __int128 made, first, last;              /* tokens; first and last of requests */
    unsigned __int128 first_ns, last_ns, arrivals_ns; /* sums over requests */
    uint64_t longest_ns;                              /* to a first token */
    uint64_t end_ns;                                  /* of the last token */
} served_sums;

/* The log in order: rank by rank, each rank's steps by start (watch_log.c).  Of a folded run it has
 * the requested ranks, and of others what connects them: the other ends of messages, and their
 * arrivals at collectives. */
typedef struct watch_log {
    watch_step *steps; /* instances: of watch_record */
    size_t step_count, step_room;
    watch_phase *phases;
    size_t phase_count, phase_room;
    uint32_t *first_step; /* by rank; one more than there are ranks */
    bool *asked;          /* by rank: all of its steps are included; NULL: those of all ranks */
    uint64_t settled;     /* progress of the run at that time */
    bool is_copy;         /* steps and phases are not those of the run itself */
} watch_log;

struct watch_record {
    orr_arena *arena;
    watch_rank *ranks;   /* by rank; folded: one, since fold_figures.c keeps them */
    uint64_t nodes_done; /* of all ranks */
    /* times by watch_use are kept; false: folded, and they have too little in common */
    bool splits;
    watch_across *across; /* by number less one (watch_instance.across) */
    size_t across_count, across_room;
    watch_hold *holds; /* linked lists, one per collective with waiting members */
    size_t hold_count, hold_room;
    uint32_t free_hold;
    /* by the innermost dimension in which the two ranks differ */
    watch_traffic traffic[ORR_NET_DIMS];
    watch_traffic_bins *bins; /* with the log */
    /* Statistics by kind of node. */
    watch_tally *tallies; /* rows, in order of appearance */
    size_t tally_count, tally_room;
    /* group_seen: by row and name, so that a name counts once */
    orr_map *tally_by_key, *group_seen;
    uint32_t **tally_of; /* by class and node; NONE: not known yet */
    /* The log. */
    bool keeps_steps, keeps_phases;
    watch_step *steps;
    size_t step_count, step_room;
    watch_instance *instances; /* collectives, in the order in which they began */
    size_t instance_count, instance_room;
    orr_map *instance_by_key;
    watch_phase *phases;
    size_t phase_count, phase_room;
    struct watch_served *served; /* NULL: the traces have no tokens */
    watch_log log;               /* as it is read */
};

orr_code watch_create(orr_sim *s, orr_error *err);
/* For one of several parts (parts.h), whose statistics are added to those of all at the end.
 * False: out of memory. */
bool watch_create_part(orr_sim *part, const orr_sim *all);
bool watch_add_part(orr_sim *all, orr_sim *part);
void watch_drop_later(orr_sim *s); /* what ranks have buffered, of discarded parts */
/* When the data of this node started to flow is not known yet; is known now. */
void watch_held_across(run_npu *n, uint32_t place);
void watch_flows_at(run_npu *n, uint32_t place, uint64_t at);
/* All members of a collective in another part have arrived. */
struct part_note;
void watch_came_across(orr_sim *s, const struct part_note *note);
void watch_destroy(struct watch_record *w);
/* A rank begins another of several consecutive steps: its statistics are reset (run_state.h). */
void watch_round_begins(run_npu *n);
/* resets statistics of all ranks, and the log: another step is recorded */
void watch_forget(orr_sim *s);
extern const run_observer watch_observer;
extern const run_observer watch_phase_observer; /* where keeps_phases says so */
/* The innermost dimension in which two ranks differ. */
uint32_t watch_dimension_between(const orr_sim *s, uint32_t a, uint32_t b);
/* False: out of memory; *out NULL: the traces have no tokens. */
bool watch_served_create(orr_sim *s, struct watch_served **out);
void watch_served_destroy(struct watch_served *v); /* NULL is fine, also below */
void watch_served_forget(struct watch_served *v);
/* A node of so many ranks of a class has ended. */
void watch_served_count(
    struct watch_served *v, uint32_t class_index, uint32_t place, uint64_t now_ns, uint32_t weight);
const served_sums *watch_served_sums(const struct watch_served *v, uint64_t *whole);
uint64_t watch_served_latest_us(const struct watch_served *v); /* no run ends before it */
/* Reduces the symmetry; only for a run without a log.  False: out of memory. */
struct fold_copier;
bool watch_multiply(orr_sim *s, const struct fold_copier *c);
watch_tally *watch_tally_of(run_npu *n, uint32_t place); /* NULL: out of memory */

/* ---- reading the log (watch_log.c) ---- */

/* Makes watch_record.log, with at least all steps of these ranks (NULL: of all).  Call it before
 * reading steps, instances and phases; invalidates its previous result.  False: out of memory. */
bool watch_log_settle(const orr_sim *s, const bool *asked);
/* like[r] becomes the representative of r, a rank with equal times: of several the one with the
 * largest weight (NULL: all equal), then the smallest.  If these have more than `most` nodes in
 * total, times may differ: *apart is the maximum difference in ns; 0: equal.  False: out of
 * memory. */
bool watch_find_alike(
    const orr_sim *s, const uint64_t *weight, uint64_t most, uint32_t *like, uint64_t *apart);
/* Marks the ranks that this one exchanges messages with, and their partners, nearest first, at most
 * `most` unmarked ones.  False: out of memory. */
bool watch_ask_near(const orr_sim *s, uint32_t rank, uint32_t most, bool *asked);
/* Is the rank among the requested ones? */
static inline bool watch_has_rank(const orr_sim *s, uint32_t rank)
{
    return !s->watch->log.asked || s->watch->log.asked[rank];
}
/* The collective with these properties, created if necessary; NONE: out of memory. */
uint32_t watch_find_instance(struct watch_record *w, const watch_instance *like);
/* The same, but NONE if it does not exist. */
uint32_t watch_known_instance(const struct watch_record *w, const watch_instance *like);
/* The smallest of the ranks that differ from this one only in these dimensions. */
uint32_t watch_base_of(const orr_sim *s, uint32_t rank, uint32_t along);
/* Do these dimensions span all ranks? */
bool watch_covers_all(const orr_sim *s, uint32_t along);
/* Its members are a line or plane along dimensions of the route, not the group, which then has all
 * ranks: fewer algorithms may be configured than there are dimensions. */
bool watch_is_along_dims(const cfg_group *group, const sys_route *r);
void watch_add_traffic(orr_sim *s, uint32_t dimension, uint64_t at, uint64_t bytes);
/* A collective began in so many equal groups: each member sends so many bytes inside its host and
 * between hosts. */
void watch_joint(orr_sim *s,
                 const uint32_t *members,
                 uint32_t count,
                 uint32_t groups,
                 double up,
                 double out,
                 uint32_t per_node);

/* The same where they send along this dimension. */
void watch_along(orr_sim *s, uint32_t dimension, uint32_t count, uint32_t groups, double bytes);

/* The source of a folded run's log: classes of ranks with the same steps. */
typedef struct watch_source {
    const orr_sim *s;
    const uint32_t *class_of; /* by rank */
    uint32_t class_count;
    bool is_even;   /* members of a class do everything at the same times */
    bool has_lines; /* collectives without a group may run along some dimensions only */
    void *own;
    size_t (*count)(const struct watch_source *src, uint32_t class_index); /* of its steps */
    uint32_t (*place)(const struct watch_source *src, uint32_t class_index, size_t k);
    /* Selects the rank for the following calls. */
    void (*turn_to)(struct watch_source *src, uint32_t rank);
    /* The k-th step of that rank, not yet part of a collective. */
    watch_step (*step)(struct watch_source *src, size_t k);
    /* The collective it is part of; false: none. */
    bool (*instance)(struct watch_source *src, size_t k, watch_instance *like);
    /* The i-th phase of that rank, in its k-th step; false: no more. */
    bool (*phase)(struct watch_source *src, size_t i, watch_phase *out, size_t *k);
    /* like[r]: the smallest rank with the same times.  False: out of memory. */
    bool (*find_equal)(struct watch_source *src, uint32_t *like);
    /* Maximum time difference between members of one class, in ns; NULL: none. */
    uint64_t (*apart)(const struct watch_source *src);
    void (*close)(struct watch_source *src);
} watch_source;

void watch_log_drop(struct watch_record *w);

/* ---- statistics ---- */

/* The end of a rank's statistics: when it finished, or now. */
uint64_t watch_until(const orr_sim *s, uint32_t rank);
uint64_t watch_end_of_run(const orr_sim *s); /* the last rank's end; now if not all have ended */
uint64_t watch_busy(const orr_sim *s, uint32_t rank);
/* Only if the run splits times; of an unfinished rank: up to now. */
uint64_t watch_spent(const orr_sim *s, uint32_t rank, watch_use use);
uint64_t watch_overlapped(const orr_sim *s, uint32_t rank);
/* Number of ranks with nodes of each row; false: out of memory. */
bool watch_tally_ranks(const orr_sim *s, uint32_t *out);

/* Now, relative to the recorded step. */
static inline uint64_t watch_now(const orr_sim *s)
{
    return clk_now(s->clock) - s->rounds.origin;
}

/* Ticks to timeline units. */
static inline orr_ps watch_ps(uint64_t ns)
{
    return ns < INT64_MAX / 1000 ? (orr_ps)(ns * 1000) : INT64_MAX;
}

static inline uint64_t watch_so_far(const run_npu *n, uint64_t closed, unsigned k)
{
    return closed + (n->active[k] ? clk_now(n->sim->clock) - n->active_since[k] : 0);
}
/* Length of the union of the intervals, up to now. */
static inline uint64_t watch_compute_so_far(const run_npu *n)
{
    return watch_so_far(n, n->result.gpu_time, 0);
}
static inline uint64_t watch_comm_so_far(const run_npu *n)
{
    return watch_so_far(n, n->result.comm_time, 1);
}

/* ---- tensors of a rank ----
 *
 * The tensors of a rank: writers, readers and lifetimes (astra-sim.md 10.2). */

struct mem_tensor_log {
    uint32_t *done;     /* nodes in the order of their ends */
    uint64_t *ended_at; /* by place: tick */
    uint32_t count;
};

typedef struct mem_tensor {
    uint64_t size;          /* bytes */
    uint32_t writer;        /* a node, or NONE */
    uint64_t born, written; /* ticks: start and end of its writer */
    uint64_t last_read;     /* end of the last read; NEVER: none */
    uint32_t first, last;   /* of its reads */
} mem_tensor;

typedef struct mem_read {
    uint32_t place, next;
} mem_read;

typedef struct mem_point {
    uint64_t tick, usage; /* during construction: the change at this tick, modulo 2^64 */
} mem_point;

typedef struct mem_ledger {
    const run_npu *n;
    orr_intern *names;
    mem_tensor *tensors;
    mem_read *reads;
    uint32_t *readable; /* tensors in the order of their first read */
    mem_point *points;  /* ascending ticks, each once */
    size_t count, room, read_count, read_room, readable_count, readable_room, point_count;
    orr_error *err;
} mem_ledger;

orr_code mem_ledger_make(const run_npu *n,
                         mem_ledger *l,
                         orr_error *err); /* fini also after failure */
void mem_ledger_fini(mem_ledger *l);

struct mem_tensor_log *mem_tensor_log_create(uint32_t nodes); /* NULL: out of memory */
void mem_tensor_log_destroy(struct mem_tensor_log *l);
extern const run_observer mem_observer;
/* Bytes in use by the tensors of a finished rank, tick by tick. */
typedef void (*mem_usage_visit)(void *context, uint64_t tick, uint64_t bytes);
orr_code mem_usage(const run_npu *n, mem_usage_visit visit, void *context, orr_error *err);
/* The tensors that a node reads, then those it writes.  Ends at the first that cannot be read. */
typedef void (*mem_tensor_visit)(void *context, bool is_write, orr_str name);
void mem_visit_tensors(const run_npu *n, uint32_t place, mem_tensor_visit visit, void *context);

#endif
