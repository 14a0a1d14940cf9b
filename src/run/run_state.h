/* SPDX-License-Identifier: Apache-2.0 */
/* run_state.h - a rank (run_npu) and the run of all ranks (orr_sim), with what every layer asks
 * them. */
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

/* ---- steps in a row ----
 *
 * The same step many times in a row (orr_sim_options.steps).
 *
 * A rank begins its next step when all nodes of its last one are over; ranks do not wait for each
 * other but by what the traces say.  So steps of different ranks overlap, and nothing of a rank's
 * own step is left when it begins the next.
 *
 * *Steady state*: if all that will happen from now on is what happened since an earlier moment,
 * only later, the steps in between need not be simulated again (docs/design/folding.md, "Steps in a
 * row").  Two ways to know it:
 *
 *     steady.c            the state of the whole run at two moments, compared word by word: the network fluid
 *     fold/fold_steps.c   the times at which all members of all classes begin a step: folded runs on unaware
 *
 * Figures, logs and links are those of one step, the last: it is *recorded*.  Its times count from
 * when the first rank began it. */

struct run_npu;
struct orr_sim;

/* How far all ranks are with one of the steps in a row. */
typedef struct run_round {
    uint64_t ended; /* when the last of those that have ended it did */
    uint32_t ranks; /* that have */
} run_round;

typedef struct run_rounds {
    uint32_t last;     /* the number of the last step that is simulated, from 0 */
    uint32_t recorded; /* whose figures are kept */
    uint64_t origin;   /* when the first rank began that */
    bool has_origin;
    uint32_t skipped;    /* steps that are like those that were simulated */
    uint32_t played;     /* of the others: those that were worked out without their events */
    uint64_t skipped_ns; /* how long they take */
    run_round *rows;     /* by number, as far as any rank has come */
    size_t row_count, row_room;
    struct steady *look; /* NULL: nobody looks for a steady state */
    bool wants_look;     /* all ranks have ended a step since the last look */
} run_rounds;

/* So many cycles of steps, each as long: up to the last tick that there is, where a run ends with an
 * error (orr_sim_run). */
uint64_t steady_length(uint64_t cycles, uint64_t ns);

/* Before ranks start.  False: out of memory. */
bool steady_init(struct orr_sim *s, bool looks);
void steady_fini(struct orr_sim *s);

/* A rank has ended a step: true: it begins another one. */
bool steady_round_over(struct run_npu *n);
void steady_round_begins(struct run_npu *n);
/* So many ranks have ended their step at this time.  False: out of memory. */
bool steady_note_end(struct orr_sim *s, uint32_t round, uint32_t ranks, uint64_t at);

/* After an event: is the run where it was a step ago? */
void steady_look(struct orr_sim *s);

/* ---- ranks, and the run ---- */

struct mem_tensor_log;

struct run_npu {
    orr_sim *sim; /* its part's, while parts run */
    uint32_t rank;
    uint32_t weight;             /* ranks that it stands for, itself included */
    uint32_t round;              /* which of the steps in a row it is in, from 0 (run_state.h) */
    const cfg_rank_speed *speed; /* NULL: another rank is simulated for it */
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
    uint32_t *waiting_for;   /* parents not finished, by place */
    orr_bitset_queue *ready; /* by slot of the graph; NULL: another rank is simulated for it */
    uint32_t ready_count, running; /* nodes */
    uint32_t occupant[WORK_SLOTS]; /* place, or NONE */
    uint64_t *started_at;          /* by place */
    /* What communication beside it has taken from compute so far (system.overlap_cost), in
     * ten-thousandths of a ns: whole numbers, so that steps that repeat are seen to. */
    uint64_t stolen, stolen_before[WORK_SLOTS];   /* and when the node of a slot was last asked */
    uint64_t stolen_until;                        /* tick up to which it is counted */
    uint32_t collectives_moving, messages_moving; /* of this rank, now */
    bool *is_moving; /* by place: a message of the node moves; NULL: none has yet */
    uint32_t *freed; /* became free while issuing */
    size_t freed_count, freed_room;
    bool is_issuing; /* a scan goes on: what becomes free waits in `freed` */
    /* results */
    orr_sim_rank_result result;
    uint32_t active[2];       /* nodes under way: on the device, communicating */
    uint64_t active_since[2]; /* ticks */
    /* weighted by duration in ticks, as is what follows: roofline averages (astra-sim.md 10.1) */
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
    char **network_stall; /* lines of the network about a stall */
    size_t network_stall_count, network_stall_room;
    struct orr__packet_inputs *packet; /* of the model packet; NULL otherwise */
    cfg_ranks ranks_config;
    cfg_system system;
    cfg_memory memory;
    cfg_notes key_notes; /* keys that these rules ignore, for warnings */
    const void *logging; /* the logging file, read by run_old_outputs; NULL: none */
    cfg_groups groups;   /* of the file, then those that traces define */
    orr_set *owned_set;  /* NULL: the caller's is used */
    const orr_set *set;
    work_graph *graphs; /* by class */
    /* Kernels are as efficient as on this measured chip, the nearest to the peaks of the system
     * file; NULL: opt.chip, or the peaks themselves. */
    const struct orr_chip *like_chip;
    run_npu *npus;                       /* by rank; folded: by class */
    uint32_t npu_count, dims;            /* ranks; dimensions of the network */
    uint32_t built;                      /* of npus */
    struct fold_sim *fold;               /* NULL: every rank is simulated */
    struct fold_lockstep *lockstep;      /* NULL: every rank is simulated, or fold */
    uint64_t *fold_colour;               /* by rank: what sets ranks apart; NULL: not asked yet */
    uint32_t fold_splits;                /* how often classes were split so far */
    bool fold_may_loosen, fold_is_loose; /* members may come to events in different orders */
    bool fold_is_strict;                 /* they may not: it was tried, of several steps in a row */
    bool fold_stays_apart;               /* classes do not become one again: it was tried */
    uint32_t fold_level; /* of symmetry: 1: only ranks that stay together all along */
    uint64_t fold_until; /* that many events: then ranks are set apart; 0: never */
    char fold_why[160];  /* it is not folded, or was split */
    /* Ranks are not divided among threads; NULL: they are, or nobody asked. */
    const char *threads_why;
    /* sets of queues: as many as the traces have communication streams, 1 at least */
    uint32_t lanes;
    sys_plan plans[ORR_COLL_COUNT]; /* by kind: how collectives of all ranks run */
    sys_dim *group_rings;           /* by group and kind: for groups smaller than the system */
    struct sched *schedule;         /* NULL: every chunk goes through the dimensions ascending */
    struct msg_table *matcher;      /* messages and receives that have not met */
    void
        *byte_matcher; /* of run_byte_matchings, when the packet network wants it; NULL otherwise */
    struct work_remote *remote;
    struct sys_program_cache *programs;
    struct sys_plans *coll_plans;
    struct joint *joint;  /* NULL: every collective has an algorithm */
    orr_map *group_texts; /* group of a hole -> 1 + its place in group_text */
    orr_str *group_text;
    size_t group_text_count, group_text_room;
    run_rounds rounds;
    uint32_t *finish_order;   /* ranks, as they finished */
    uint32_t finished;        /* ranks */
    uint64_t messages;        /* of the step that is recorded */
    bool has_started;         /* ranks have been issued: no more folding */
    sys_stream *free_streams; /* kept for later collectives, linked by next */
    size_t stream_size;       /* with the largest state of an algorithm */
    sys_data_set *free_sets;
    void *old_notes; /* of run_old_outputs: what it will print; NULL: nothing */
    run_hooks hooks;
    struct goal_tape *tape;     /* NULL: nothing is recorded for orr_sim_goal */
    struct watch_record *watch; /* for reports; NULL under the old names */
    struct run_part
        *part; /* this is one of several, each with a thread (parts.h); NULL: it is all */
    struct run_parts *parts;  /* of which this is all; NULL: there are none */
    atomic_bool must_stop;    /* set by orr_sim_stop, read between batches of events */
    bool was_stopped;         /* before the end, when it ran last */
    struct orr__stall *stall; /* once it was asked for */
    orr_code code;            /* the first failure: everything stops */
    orr_error error;
};

/* Errors inside events: the first one is kept, and the run ends after the current event. */
void run_fail(orr_sim *s, orr_code code, const orr_error *err);
void run_fail_text(orr_sim *s, const run_npu *npu, uint32_t place, const char *fmt, ...)
    ORR_PRINTF(4, 5);
void run_no_memory(orr_sim *s);

/* From the start again, folded if it can be, or every rank (sim.c). */
orr_code run_build_again(orr_sim *s, bool folds, orr_error *err);

void run_start_late(void *npu, uint64_t unused); /* a rank whose start is delayed (run_events.c) */

/* What a rank runs; s->npus is by class when ranks that do the same are simulated once. */
static inline const work_graph *run_graph_of(const orr_sim *s, uint32_t rank)
{
    return &s->graphs[orr_set_class_of(s->set, rank)];
}

/* Values that ranks of a class may have of their own. */
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

/* Its step is the one whose figures are kept (run_state.h). */
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
orr_code run_network_again(orr_sim *s, orr_error *err); /* as it was at the start */
uint64_t run_packets_sent(const orr_sim *s);            /* by a packet network */
void run_ask_network(orr_sim *s);                       /* what it knows about a stall */

/* ---- why nothing moves (src/explain/stall.c) ---- */

orr_code orr__explain_stall(orr_sim *s, orr_error *err);
/* The text of orr_sim_stall, line by line; NULL: the run does not stand still. */
const char *const *orr__stall_lines(orr_sim *s, size_t *count);
void orr__stall_destroy(struct orr__stall *stall);

#endif
