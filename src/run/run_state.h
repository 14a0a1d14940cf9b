/* SPDX-License-Identifier: Apache-2.0 */
/* run_state.h - a rank (run_npu) and the run of all ranks (orr_sim), as seen by every layer. */
#ifndef ORR_RUN_RUN_STATE_H
#define ORR_RUN_RUN_STATE_H

#include "base/memory/bitset_queue.h"
#include "run_observer.h"
#include "system.h"
#include "trace/set_impl.h"
#include "trace/trace_impl.h"
#include "workload.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- consecutive steps ----
 *
 * The same step many times in sequence (orr_sim_options.steps).
 *
 * A rank begins its next step when all nodes of its last one have ended; ranks wait for each other
 * only as the traces say.  So steps of different ranks overlap, but a rank's own steps do not.
 *
 * *Steady state*: if the run is in the same state as at an earlier moment, only later, the steps in
 * between repeat and need not be simulated again (docs/design/folding.md, "Steps in a row").  Two
 * ways to know it:
 *
 *     steady.c            the state of the whole run at two moments, compared word by word: the network fluid
 *     fold/fold_steps.c   the times at which all members of all classes begin a step: folded runs on unaware
 *
 * Figures, logs and links are those of one step, the last: it is *recorded*.  Its times count from
 * when the first rank began it. */

struct run_npu;
struct orr_sim;

/* Progress of all ranks in one of the consecutive steps. */
typedef struct run_round {
    uint64_t ended; /* when the last of those ranks ended it */
    uint32_t ranks; /* ranks that have ended it */
} run_round;

typedef struct run_rounds {
    uint32_t last;     /* the number of the last step that is simulated, from 0 */
    uint32_t recorded; /* whose statistics are kept */
    uint64_t origin;   /* when the first rank began it */
    bool has_origin;
    uint32_t skipped;    /* steps not simulated because they repeat */
    uint32_t played;     /* of the others: computed without events */
    uint64_t skipped_ns; /* their total time */
    run_round *rows;     /* by number, as far as any rank has come */
    size_t row_count, row_room;
    struct steady *look; /* NULL: steady states are not detected */
    bool wants_look;     /* all ranks have ended a step since the last look */
} run_rounds;

/* The time of so many cycles of steps, saturating at the last tick, where a run ends with an error
 * (orr_sim_run). */
uint64_t steady_length(uint64_t cycles, uint64_t ns);

/* Before ranks start.  False: out of memory. */
bool steady_init(struct orr_sim *s, bool looks);
void steady_fini(struct orr_sim *s);

/* A rank has ended a step; true: it begins another one. */
bool steady_round_over(struct run_npu *n);
void steady_round_begins(struct run_npu *n);
/* So many ranks have ended their step at this time.  False: out of memory. */
bool steady_note_end(struct orr_sim *s, uint32_t round, uint32_t ranks, uint64_t at);

/* After an event: is the run in the state of a step ago? */
void steady_look(struct orr_sim *s);

/* ---- ranks, and the run ---- */

struct mem_tensor_log;

struct run_npu {
    orr_sim *sim; /* its part's, while parts run */
    uint32_t rank;
    uint32_t weight;             /* ranks it represents, itself included */
    uint32_t round;              /* current one of the consecutive steps, from 0 (run_state.h) */
    const cfg_rank_speed *speed; /* NULL: represented by another rank */
    /* system layer */
    sys_queue *queues;                                 /* lane by lane, dimension by dimension */
    uint32_t *next_general, *next_first, *next_second; /* queue allocators, by lane and dimension */
    uint32_t *variants_made; /* by collective and dimension; NULL: no algorithm has variants */
    uint64_t streams_made;   /* of collectives of all ranks; by ASTRA-sim's rules also of groups */
    int64_t priority;        /* of its next collective, under LIFO and FIFO */
    sys_membership **memberships; /* of groups it has used, in that order */
    size_t membership_count, membership_room;
    sys_bus *bus; /* NULL: there is no shared-bus model */
    /* workload layer */
    const work_graph *graph;
    const uint64_t *ticks;         /* the graph's, or those of its own speed */
    uint32_t *waiting_for;         /* unfinished parents, by node */
    orr_bitset_queue *ready;       /* by slot of the graph; NULL: represented by another rank */
    uint32_t ready_count, running; /* nodes */
    uint32_t occupant[WORK_SLOTS]; /* place, or NONE */
    uint64_t *started_at;          /* by place */
    /* Compute time lost to communication so far (system.overlap_cost), in ten-thousandths of a ns:
     * integers, so that repeating steps are recognised. */
    uint64_t stolen, stolen_before[WORK_SLOTS];   /* and at the last query of a slot's node */
    uint64_t stolen_until;                        /* tick up to which it is counted */
    uint32_t collectives_moving, messages_moving; /* of this rank, now */
    bool *is_moving; /* by node: one of its messages moves; NULL: none has yet */
    uint32_t *freed; /* became ready while issuing */
    size_t freed_count, freed_room;
    bool is_issuing; /* a scan is in progress: newly ready nodes wait in `freed` */
    /* results */
    orr_sim_rank_result result;
    uint32_t active[2];       /* running nodes: on the device, communicating */
    uint64_t active_since[2]; /* ticks */
    /* weighted by duration in ticks, like the following: roofline averages (astra-sim.md 10.1) */
    double sum_intensity, sum_compute_use, sum_memory_use;
    uint64_t sum_duration, sum_compute_bound;
    bool has_run[2];                   /* device, communication nodes */
    struct mem_tensor_log *tensor_log; /* NULL: local memory is not tracked */
};

struct orr_sim {
    orr_arena *arena;
    orr_sim_options opt;
    const orr_rules_run *rules; /* never NULL */
    clk_clock *clock;           /* ticks are ns */
    orr_net_config net_config;
    const orr_net_ops *net_ops;
    void *net;               /* of net_ops */
    orr__topology *topology; /* of the network graph */
    bool is_link_level;   /* the network file is a topology, which gives no speed per dimension */
    char **network_stall; /* explanation of a stall by the network */
    size_t network_stall_count, network_stall_room;
    struct orr__packet_inputs *packet; /* of the model packet; NULL otherwise */
    cfg_ranks ranks_config;
    cfg_system system;
    cfg_memory memory;
    cfg_notes key_notes; /* ignored keys, for warnings */
    const void *logging; /* the logging file, read by run_old_outputs; NULL: none */
    cfg_groups groups;   /* of the file, then those defined by traces */
    orr_set *owned_set;  /* NULL: the caller's */
    const orr_set *set;
    work_graph *graphs; /* by class */
    /* Ranks of the network by class, ascending: those of class k from class_start[k] on. */
    uint32_t *class_start, *class_ranks;
    /* By rank, where the ranks' memory or hosts differ in speed; NULL: as their graphs say. */
    const uint64_t **rank_ticks;
    /* Kernels have the efficiency of this measured chip, the nearest to the peaks of the system
     * file; NULL: opt.chip, or the peaks themselves. */
    const struct orr_chip *like_chip;
    run_npu *npus;                  /* by rank; folded: by class */
    uint32_t npu_count, dims;       /* ranks; dimensions of the network */
    uint32_t built;                 /* of npus */
    struct fold_sim *fold;          /* NULL: every rank is simulated */
    struct fold_lockstep *lockstep; /* NULL: every rank is simulated, or fold */
    /* by rank: what distinguishes ranks; NULL: not computed yet */
    uint64_t *fold_colour;
    uint32_t fold_splits;                /* number of splits so far */
    bool fold_may_loosen, fold_is_loose; /* members may have events in different orders */
    bool fold_is_strict;                 /* they may not: it was tried, with several steps */
    bool fold_stays_apart;               /* no merging: it was tried */
    uint32_t fold_level; /* of symmetry: 1: only ranks that stay symmetric throughout */
    uint64_t fold_until; /* number of events until the symmetry is reduced; 0: never */
    char fold_why[160];  /* why it is not folded, or was split */
    /* Why ranks are not divided among threads; NULL: they are, or it was not requested. */
    const char *threads_why;
    /* sets of queues: the number of communication streams in the traces, at least 1 */
    uint32_t lanes;
    sys_plan plans[ORR_COLL_COUNT]; /* by kind: how collectives of all ranks run */
    sys_dim *group_rings;           /* by group and kind: for groups smaller than the system */
    struct sched *schedule;         /* NULL: every chunk passes the dimensions in ascending order */
    struct msg_table *matcher;      /* unmatched messages and receives */
    void *byte_matcher; /* of run_byte_matchings, if the packet network needs it; else NULL */
    struct work_remote *remote;
    struct sys_program_cache *programs;
    struct sys_plans *coll_plans;
    struct joint *joint;  /* NULL: every collective has an algorithm */
    orr_map *group_texts; /* group of a hole -> 1 + its index in group_text */
    orr_str *group_text;
    size_t group_text_count, group_text_room;
    run_rounds rounds;
    uint32_t *finish_order;   /* ranks in order of completion */
    uint32_t finished;        /* ranks */
    uint64_t messages;        /* of the recorded step */
    bool has_started;         /* ranks have been issued: too late to fold */
    sys_stream *free_streams; /* free list, linked by next */
    size_t stream_size;       /* including the largest state of an algorithm */
    sys_data_set *free_sets;
    void *old_notes; /* of run_old_outputs: what it will print; NULL: nothing */
    run_hooks hooks;
    struct goal_tape *tape;     /* NULL: nothing is recorded for orr_sim_goal */
    struct watch_record *watch; /* for reports; NULL under the old names */
    /* one of several parts, each with a thread (parts.h); NULL: the whole run */
    struct run_part *part;
    struct run_parts *parts;  /* the parts of this run; NULL: none */
    atomic_bool must_stop;    /* set by orr_sim_stop, read between batches of events */
    bool was_stopped;         /* before the end, in the last run */
    struct orr__stall *stall; /* once it was requested */
    orr_code code;            /* the first failure: everything stops */
    orr_error error;
};

/* Errors inside events: the first one is kept, and the run ends after the current event. */
void run_fail(orr_sim *s, orr_code code, const orr_error *err);
void run_fail_text(orr_sim *s, const run_npu *npu, uint32_t place, const char *fmt, ...)
    ORR_PRINTF(4, 5);
void run_no_memory(orr_sim *s);

/* Restarts the run, folded if possible, or with every rank (sim.c). */
orr_code run_build_again(orr_sim *s, bool folds, orr_error *err);

void run_start_late(void *npu, uint64_t unused); /* a rank with a delayed start (run_events.c) */

/* The graph of a rank; s->npus is by class in a folded run. */
static inline const work_graph *run_graph_of(const orr_sim *s, uint32_t rank)
{
    return &s->graphs[orr_set_class_of(s->set, rank)];
}

/* Values that may differ between ranks of a class. */
static inline int64_t run_npu_value(const run_npu *n,
                                    uint32_t place,
                                    orr_hole_field field,
                                    const int64_t *column)
{
    return orr__set_value(n->sim->set, n->rank, field, column, n->graph->node[place]);
}
static inline int64_t run_npu_src(const run_npu *n, uint32_t place)
{
    return run_npu_value(n, place, ORR_HOLE_COMM_SRC, n->graph->t->columns.comm_src);
}
static inline int64_t run_npu_dst(const run_npu *n, uint32_t place)
{
    return run_npu_value(n, place, ORR_HOLE_COMM_DST, n->graph->t->columns.comm_dst);
}
static inline int64_t run_npu_tag(const run_npu *n, uint32_t place)
{
    return run_npu_value(n, place, ORR_HOLE_COMM_TAG, n->graph->t->columns.comm_tag);
}

/* What a node's time counts as: WORK_ON_DEVICE, WORK_COMMUNICATES, or -1 for neither. */
enum { WORK_ON_DEVICE = 0, WORK_COMMUNICATES = 1 };
static inline int work_class_of(const run_npu *n, uint32_t place)
{
    const uint8_t type = n->graph->t->columns.type[n->graph->node[place]];
    if (type == ORR_NODE_COMP)
        return n->graph->slot[place] == WORK_SLOT_CPU ? -1 : WORK_ON_DEVICE;
    return type >= ORR_NODE_COMM_SEND && type <= ORR_NODE_COMM_COLL ? WORK_COMMUNICATES : -1;
}

static inline run_npu *run_npu_of(orr_sim *s, uint32_t rank)
{
    return &s->npus[rank];
}

/* Its current step is the one whose statistics are kept (run_state.h). */
static inline bool run_is_recorded(const run_npu *n)
{
    return n->round == n->sim->rounds.recorded;
}

/* Queues of a rank: lane by lane, in a lane dimension by dimension. */
static inline size_t run_queue_count(const orr_sim *s)
{
    return (size_t)s->lanes * s->dims * s->opt.queues_per_dim;
}
static inline uint32_t run_lane_of(const run_npu *n, uint32_t place)
{
    const uint8_t slot = n->graph->slot[place];
    return slot >= WORK_SLOT_STREAMS ? slot - WORK_SLOT_STREAMS + 1u : 0;
}

void fold_timer(run_npu *n, uint64_t delay, clk_action action, void *context, uint64_t argument);

/* A timer of this rank (astra-sim.md 4.2). */
static inline void run_npu_timer(
    run_npu *n, uint64_t delay, clk_action action, void *context, uint64_t argument)
{
    clk_clock *c = n->sim->clock;
    if (n->sim->fold) {
        fold_timer(n, delay, action, context, argument);
        return;
    }
    clk_timer(c, n->rank, clk_now(c) + delay, action, context, argument);
}

/* ---- the network (network_setup.c) ---- */

orr_code run_network_setup(orr_sim *s, orr_error *err);
orr_code run_network_again(orr_sim *s, orr_error *err); /* reset to its initial state */
uint64_t run_packets_sent(const orr_sim *s);            /* by a packet network */
void run_ask_network(orr_sim *s);                       /* its explanation of a stall */

/* ---- the stall explanation (src/explain/stall.c) ---- */

orr_code orr__explain_stall(orr_sim *s, orr_error *err);
/* The text of orr_sim_stall, line by line; NULL: the run has not stalled. */
const char *const *orr__stall_lines(orr_sim *s, size_t *count);
void orr__stall_destroy(struct orr__stall *stall);

#endif
