/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - the record of a run for reports: figures always, a log of steps on request.
 *
 * The workload and system layers call the hooks of run_observer.h; src/explain reads what
 * is kept here. */
#ifndef ORR_RUN_WATCH_H
#define ORR_RUN_WATCH_H

#include "run_state.h"

#include <orrery/timeline.h>

/* One run of one node.  A node runs once, so (rank, place) names a step as well as its number
 * does. */
typedef struct watch_step {
    uint64_t start, end;  /* end ORR_NEVER: it is under way */
    uint32_t rank, place; /* place: of the node in the graph of its rank */
    /* the step of this rank whose end released it; NONE: the beginning (watch_log.c) */
    uint32_t cause;
    uint32_t instance; /* which collective it is part of; NONE: of none */
    /* the step that came to this collective just before it; NONE: it is the first */
    uint32_t earlier;
} watch_step;

/* One collective over all of its members: the same group, the same chunk number, the same ranks. */
typedef struct watch_instance {
    const cfg_group *group;
    uint64_t stream; /* of its first chunk */
    uint32_t base;   /* the smallest rank that could be a member */
    uint32_t last;   /* the step that came last */
    uint32_t source; /* the rank that all data comes from; NONE: every member has some */
    uint32_t come;   /* members that have called it */
    uint32_t held;   /* of those, the last that waits for others (watch_hold); NONE: nobody does */
    /* dimensions in which members differ, a bit for each; all: of a group, or of all ranks */
    uint32_t along;
    bool is_counter; /* no step names it: it counts the members of all that are like it */
    uint32_t across; /* 1 + which one of several parts it is (parts.h); 0: of one */
} watch_instance;

/* A collective whose members are in several parts. */
typedef struct watch_across {
    uint64_t parts, told; /* that members are in, and that all of these have come in; as bits */
    uint64_t last;        /* when the last of those came */
    uint32_t here;        /* members in this part */
} watch_across;

/* What a rank did, while it is not known from when on data of its nodes flowed. */
typedef struct watch_op {
    uint64_t at;
    uint64_t compute; /* so far */
    uint32_t place;
    uint8_t what; /* watch_op_kind */
} watch_op;
typedef struct watch_later {
    watch_op *ops; /* by time */
    size_t count, room;
    uint32_t unknown;     /* nodes of which it is not known */
    uint64_t at, compute; /* when the last one was counted */
} watch_later;

/* A member that has called a collective to which others have yet to come. */
typedef struct watch_hold {
    uint32_t rank, place, next;
    /* of steps in a row; a rank may be through with it, and wait at this place again */
    uint32_t round;
} watch_hold;

/* What a rank does: of each moment only the first of these counts that applies
 * (docs/accounting.md).  Idle is the rest. */
typedef enum watch_use {
    WATCH_COMPUTE,
    WATCH_EXPOSED, /* communication: its data can flow */
    WATCH_MEMORY,
    WATCH_HOST,
    WATCH_WAITING, /* in a collective to which not all members have come */
    WATCH_BUBBLE,  /* receives, and none of their messages has left */
    WATCH_USES
} watch_use;

/* One phase of one chunk, when phases are recorded. */
typedef struct watch_phase {
    uint64_t start, end;
    uint64_t stream, data;   /* number of the chunk; bytes that go in */
    uint32_t step;           /* its collective, in the log */
    uint16_t dim, queue;     /* queue: among those of the dimension, lane by lane */
    uint8_t kind, algorithm; /* orr_collective, coll_number */
} watch_phase;

/* Nodes that are alike: the same collective, size and number of ranks; or all sends, or all
 * receives. */
typedef struct watch_tally {
    uint8_t type;         /* orr_node_type */
    uint8_t collective;   /* orr_collective */
    uint32_t group_ranks; /* of a collective; 0: not known */
    uint64_t size;        /* of one; 0 for sends and receives */
    uint64_t count;       /* nodes that have ended, all ranks together */
    uint64_t bytes;       /* their sizes */
    /* ns, all ranks together; from when data could flow where the run splits times */
    uint64_t time;
    uint64_t exposed; /* the part of it in which the rank computed nothing; not of receives */
    uint64_t waited;  /* before that */
    uint64_t longest; /* ns */
    orr_str group;    /* a name, when only one group is meant */
    uint32_t groups;  /* how many names were seen */
} watch_tally;

typedef struct watch_rank {
    uint32_t active;           /* nodes under way */
    uint64_t busy_since, busy; /* time with any node under way */
    /* compute time so far when a communication slot was taken */
    uint64_t compute_before[WORK_SLOTS];
    uint32_t *step_of;                      /* by place; NULL: no log */
    uint32_t doing[WATCH_USES];             /* nodes under way */
    uint64_t since;                         /* up to then all time is in these */
    uint64_t spent[WATCH_USES], overlapped; /* overlapped: communication while computing */
    uint64_t *flows_at; /* by place: from when data could flow; 0: from the start, NEVER: not yet.
                           NULL: all from the start */
    watch_later *later; /* of one of several parts; NULL: all is counted as it comes */
} watch_rank;

/* When bytes were sent: bins of one width over all dimensions, doubled when the run outgrows
 * them. */
enum { WATCH_TRAFFIC_BINS = 2048 };
typedef struct watch_traffic_bins {
    unsigned shift;                                   /* a bin is 2^shift ns wide */
    uint64_t bytes[ORR_NET_DIMS][WATCH_TRAFFIC_BINS]; /* by dimension and bin */
} watch_traffic_bins;

typedef struct watch_traffic {
    uint64_t messages, bytes; /* of the step that is recorded */
} watch_traffic;

/* Tokens of requests (watch_served.c), all ranks together, in parts of which `whole` make one
 * rank's. */
typedef struct served_sums {
    unsigned __int128 made, first, last;              /* tokens; first and last of requests */
    unsigned __int128 first_ns, last_ns, arrivals_ns; /* sums over requests */
    uint64_t longest_ns;                              /* to a first token */
    uint64_t end_ns;                                  /* of the last token */
} served_sums;

/* The log in order: rank by rank, each rank's steps as they began (watch_log.c).  Of a folded run
 * it has the ranks that were asked for, and of others what ties these to them: their ends of
 * messages, and when they came to collectives. */
typedef struct watch_log {
    watch_step *steps; /* instances: of watch_record */
    size_t step_count, step_room;
    watch_phase *phases;
    size_t phase_count, phase_room;
    uint32_t *first_step; /* by rank; one more than there are ranks */
    bool *asked;          /* by rank: all of its steps are here; NULL: those of all ranks are */
    uint64_t settled;     /* how far the run was */
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
    watch_hold *holds; /* lists, one for each collective that some wait in */
    size_t hold_count, hold_room;
    uint32_t free_hold;
    /* by the innermost dimension in which the two ranks differ */
    watch_traffic traffic[ORR_NET_DIMS];
    watch_traffic_bins *bins; /* with the log */
    /* Figures by kind of node. */
    watch_tally *tallies; /* rows, in the order in which kinds were met */
    size_t tally_count, tally_room;
    /* group_seen: by row and name, so that a name counts once */
    orr_map *tally_by_key, *group_seen;
    uint32_t **tally_of; /* by class and place; NONE: not known yet */
    /* The log. */
    bool keeps_steps, keeps_phases;
    watch_step *steps;
    size_t step_count, step_room;
    watch_instance *instances; /* collectives, in the order in which they began */
    size_t instance_count, instance_room;
    orr_map *instance_by_key;
    watch_phase *phases;
    size_t phase_count, phase_room;
    struct watch_served *served; /* NULL: the traces say nothing of tokens */
    watch_log log;               /* as it is read */
};

orr_code watch_create(orr_sim *s, orr_error *err);
/* For one of several parts (parts.h), and its figures added to those of all at the end.  False: out
 * of memory. */
bool watch_create_part(orr_sim *part, const orr_sim *all);
bool watch_add_part(orr_sim *all, orr_sim *part);
void watch_drop_later(orr_sim *s); /* what ranks keep for later, of parts that go */
/* The data of this node flows since a time that is not known yet; since then. */
void watch_held_across(run_npu *n, uint32_t place);
void watch_flows_at(run_npu *n, uint32_t place, uint64_t at);
/* All members of a collective that are in another part have come. */
struct part_note;
void watch_came_across(orr_sim *s, const struct part_note *note);
void watch_destroy(struct watch_record *w);
/* A rank begins another of several steps in a row: its figures begin anew (run_state.h). */
void watch_round_begins(run_npu *n);
void watch_forget(
    orr_sim *s); /* figures of all ranks together, and the log: another step is recorded */
extern const run_observer watch_observer;
extern const run_observer watch_phase_observer; /* where keeps_phases says so */
/* The innermost dimension in which two ranks differ. */
uint32_t watch_dimension_between(const orr_sim *s, uint32_t a, uint32_t b);
/* False: out of memory; *out NULL: the traces say nothing of tokens. */
bool watch_served_create(orr_sim *s, struct watch_served **out);
void watch_served_destroy(struct watch_served *v); /* NULL is fine, also below */
void watch_served_forget(struct watch_served *v);
/* A node of so many ranks of a class has ended. */
void watch_served_count(
    struct watch_served *v, uint32_t class_index, uint32_t place, uint64_t now_ns, uint32_t weight);
const served_sums *watch_served_sums(const struct watch_served *v, uint64_t *whole);
/* Those who stood for others stand for fewer; only of a run without a log.  False: out of
 * memory. */
struct fold_copier;
bool watch_multiply(orr_sim *s, const struct fold_copier *c);
watch_tally *watch_tally_of(run_npu *n, uint32_t place); /* NULL: out of memory */

/* ---- the log, for those who read it (watch_log.c) ---- */

/* Makes watch_record.log, with all steps of these ranks at least (NULL: of all).  Call it before
 * reading steps, instances and phases; what it made before is gone.  False: out of memory. */
bool watch_log_settle(const orr_sim *s, const bool *asked);
/* like[r] becomes the rank that stands for r, which does all things at the same times: of several
 * the one with the largest weight (NULL: all have the same), and of those the smallest.  Where
 * these have more than so many nodes together, times may differ: *apart is by how much at most, in
 * ns; 0: they do not.  False: out of memory. */
bool watch_find_alike(
    const orr_sim *s, const uint64_t *weight, uint64_t most, uint32_t *like, uint64_t *apart);
/* Marks the ranks that this one exchanges messages with, and whom those do, the nearest first, at
 * most so many that were not marked.  False: out of memory. */
bool watch_ask_near(const orr_sim *s, uint32_t rank, uint32_t most, bool *asked);
/* Is the steps' rank among those that were asked for? */
static inline bool watch_has_rank(const orr_sim *s, uint32_t rank)
{
    return !s->watch->log.asked || s->watch->log.asked[rank];
}
/* The collective with these figures, a new one if there is none; NONE: out of memory. */
uint32_t watch_find_instance(struct watch_record *w, const watch_instance *like);
/* The same, but NONE if there is none. */
uint32_t watch_known_instance(const struct watch_record *w, const watch_instance *like);
/* The smallest rank among those that differ from this one in these dimensions only. */
uint32_t watch_base_of(const orr_sim *s, uint32_t rank, uint32_t along);
/* Ranks that differ in these dimensions only are all. */
bool watch_covers_all(const orr_sim *s, uint32_t along);
/* Its members are those of a line, or of a plane, of dimensions that the route names; not those of
 * the group, which has all ranks then: fewer algorithms may be named than there are dimensions. */
bool watch_is_along_dims(const cfg_group *group, const sys_route *r);
void watch_add_traffic(orr_sim *s, uint32_t dimension, uint64_t at, uint64_t bytes);
/* A collective began in so many groups like this one: each member sends so many bytes inside its
 * host and between hosts. */
void watch_joint(orr_sim *s,
                 const uint32_t *members,
                 uint32_t count,
                 uint32_t groups,
                 double up,
                 double out,
                 uint32_t per_node);

/* What the log of a folded run is written from: classes of ranks with the same steps. */
typedef struct watch_source {
    const orr_sim *s;
    const uint32_t *class_of; /* by rank */
    uint32_t class_count;
    bool is_even;   /* members of a class do everything at the same times */
    bool has_lines; /* collectives without a group may go along some dimensions only */
    void *own;
    size_t (*count)(const struct watch_source *src, uint32_t class_index); /* of its steps */
    uint32_t (*place)(const struct watch_source *src, uint32_t class_index, size_t k);
    /* The rank that is asked about from now on. */
    void (*turn_to)(struct watch_source *src, uint32_t rank);
    /* The k-th step of that rank, not yet part of a collective. */
    watch_step (*step)(struct watch_source *src, size_t k);
    /* Which collective it is part of; false: of none. */
    bool (*instance)(struct watch_source *src, size_t k, watch_instance *like);
    /* The i-th phase of that rank: of its k-th step; false: it has no more. */
    bool (*phase)(struct watch_source *src, size_t i, watch_phase *out, size_t *k);
    /* like[r]: the smallest rank with the same times.  False: out of memory. */
    bool (*find_equal)(struct watch_source *src, uint32_t *like);
    /* How far apart members of one class do the same, at most, in ns; NULL: not at all. */
    uint64_t (*apart)(const struct watch_source *src);
    void (*close)(struct watch_source *src);
} watch_source;

void watch_log_drop(struct watch_record *w);

/* ---- figures ---- */

/* The end of a rank's figures: when it finished, or now. */
uint64_t watch_until(const orr_sim *s, uint32_t rank);
uint64_t watch_end_of_run(const orr_sim *s); /* the last rank's end; now when not all ended */
uint64_t watch_busy(const orr_sim *s, uint32_t rank);
/* Only where the run splits times; of a rank that has not finished: up to now. */
uint64_t watch_spent(const orr_sim *s, uint32_t rank, watch_use use);
uint64_t watch_overlapped(const orr_sim *s, uint32_t rank);
/* How many ranks have nodes of each row; false: out of memory. */
bool watch_tally_ranks(const orr_sim *s, uint32_t *out);

/* Now, as times of the step that is recorded count. */
static inline uint64_t watch_now(const orr_sim *s)
{
    return clk_now(s->clock) - s->rounds.origin;
}

/* Ticks as times of a timeline. */
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
 * The tensors of a rank: who wrote and read them, how long they lived (astra-sim.md 10.2). */

struct mem_tensor_log {
    uint32_t *done;     /* places, in the order of their ends */
    uint64_t *ended_at; /* by place: tick */
    uint32_t count;
};

typedef struct mem_tensor {
    uint64_t size;          /* bytes */
    uint32_t writer;        /* a place, or NONE */
    uint64_t born, written; /* ticks: start and end of its writer */
    uint64_t last_read;     /* end of the last read; NEVER: none */
    uint32_t first, last;   /* of its reads */
} mem_tensor;

typedef struct mem_read {
    uint32_t place, next;
} mem_read;

typedef struct mem_point {
    uint64_t tick, usage; /* while being made: what is added at this tick, modulo 2^64 */
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
/* The tensors that a node reads, then those that it writes.  Ends at the first that cannot be
 * read. */
typedef void (*mem_tensor_visit)(void *context, bool is_write, orr_str name);
void mem_visit_tensors(const run_npu *n, uint32_t place, mem_tensor_visit visit, void *context);

#endif
