/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h - ranks that do the same are simulated once (docs/design/folding.md).
 *
 * A *class* is a set of ranks with the same trace, the same speeds and groups of the same
 * composition. It has one run_npu, which runs through the workload and system layers like any rank;
 * only time differs: an event of a class has one time per member (fold_impl.h).  As long as all
 * members of a class have their events in the same order, one execution is correct for all of them.
 * If they do not, the class is split and the run restarts; if that cannot be decided, or does not
 * help, every rank is simulated.
 *
 * The layers call the functions below instead of the clock, the matcher and the algorithms when
 * orr_sim.fold is set. */
#ifndef ORR_RUN_FOLD_H
#define ORR_RUN_FOLD_H

#include "models/network/symmetry.h"
#include "run/run_state.h"

/* Finds the classes.  *out is NULL if the run cannot be folded; orr_sim.fold_why gives the
 * reason. */
orr_code fold_create(orr_sim *s, struct fold_sim **out, orr_error *err);
/* Can runs on this network be folded? */
bool fold_knows_network(const orr_sim *s);
bool fold_has_custom(const orr_sim *s);       /* collectives whose algorithm is a trace */
bool fold_has_memory_nodes(const orr_sim *s); /* loads and stores of remote memory */
bool fold_put_finish_order(orr_sim *s);       /* by time, then by rank; false: out of memory */
/* Why this run cannot be folded on any network; NULL: nothing prevents it. */
const char *fold_obstacle(const orr_sim *s);
void fold_destroy(struct fold_sim *f); /* NULL is fine */

uint32_t fold_class_count(const struct fold_sim *f);
uint32_t fold_class_first(const struct fold_sim *f, uint32_t class_index); /* its smallest rank */
/* Who stands for a class; results may be asked for from then on. */
void fold_attach(struct fold_sim *f, uint32_t class_index, run_npu *n);

/* Runs all events.  ORR_END: it did not hold, orr_sim.fold_why gives the reason; ORR_ESTOP as
 * orr_sim_run. */
orr_code fold_run(struct fold_sim *f, orr_error *err);

/* next try with weaker conditions on the order of events */
bool fold_wants_loose(const struct fold_sim *f);
bool fold_wants_strict(const struct fold_sim *f); /* with stronger ones */
bool fold_wants_split(const struct fold_sim *f);
bool fold_has_merged(const struct fold_sim *f); /* classes were merged during the run */
uint32_t fold_walks(const struct fold_sim *f);  /* remaining classes */

/* ---- lockstep (fold_lockstep.c) ----
 *
 * If collectives end for all members at once and every rank has its own ports (run/joint.h), equal
 * ranks do everything at the same time: the smallest of each class is simulated, on the clock like
 * any rank, and its ports represent those of its class. */

typedef struct fold_lockstep {
    uint32_t *stands_for;            /* by rank: the rank simulated on its behalf */
    uint32_t *size;                  /* by simulated rank: members of its class */
    uint32_t *like;                  /* by group: the first group of the same composition */
    struct fluid_standing *standing; /* of shared links; NULL: every rank has its own ports */
    uint32_t classes;
    struct fold_symmetry *symmetry; /* of a network with contention ("aware"); NULL: fluid */
} fold_lockstep;

/* *out is NULL if it is impossible; orr_sim.fold_why gives the reason.  Allocated in the
 * simulation's arena. */
orr_code fold_lockstep_create(orr_sim *s, fold_lockstep **out, orr_error *err);
void fold_lockstep_destroy(fold_lockstep *l); /* NULL is fine */
/* After the run: copy the results to all represented ranks.  False: out of memory. */
bool fold_lockstep_spread(orr_sim *s);
/* The log of steps, class by class (watch.h).  False: out of memory. */
struct watch_source;
bool fold_lockstep_open_log(const orr_sim *s, struct watch_source *out);

/* ---- symmetry (fold_symmetry.c) ----
 *
 * On a network whose links are servers, symmetric ranks with the same workload stay in the same
 * state as long as the order of events within a tick does not break the symmetry.  A link
 * represents all links that the symmetry maps it to. */

orr_code fold_symmetry_create(orr_sim *s, fold_lockstep **out, orr_error *err);
/* Something happens to this rank, in an event scheduled by itself (is_own) or by another rank. */
void fold_touch(orr_sim *s, uint32_t rank, bool is_own);
/* Sees the running event from the home of its message's source; until now it was seen from that of
 * the receiver, dst. */
void fold_see_from_source(orr_sim *s, uint32_t dst);
bool fold_has_lost_order(const orr_sim *s);
/* Canonical ends of a message: the same whichever of the symmetric ranks sends it. */
void fold_move_home(const orr_sim *s, uint32_t *src, uint32_t *dst);
/* The first number of a group's chunks. */
uint64_t fold_first_stream(const orr_sim *s, const cfg_group *g);
/* The number of a chunk in an unfolded run; g NULL: of all ranks. */
uint64_t fold_stream_of(const orr_sim *s, const cfg_group *g, uint64_t stream);
/* How many ranks of a collective this one represents. */
uint32_t fold_members_like(const run_npu *n, const cfg_group *g, const sys_route *r);
/* A rank begins a collective of all ranks.  True: that breaks the symmetry, and the run stops. */
bool fold_is_set_apart(orr_sim *s);
/* It did not finish, but may do so from the start with less symmetry, or with symmetry up to some
 * event. */
bool fold_wants_again(const orr_sim *s);
orr_code fold_again(orr_sim *s, orr_error *err);
bool fold_spread_links(orr_sim *s); /* after the run; false: out of memory */

/* ---- reducing the symmetry during a run (fold_unfold.c) ----
 *
 * Between two events each simulated rank becomes `copies` ranks: the k-th is its image under the
 * k-th translation by the dropped digits. */

typedef struct fold_copier {
    orr_sim *s;
    net_symmetry dropped, kept;
    uint32_t copies;
    orr_map *group_at;    /* group number, rank -> 1 + a group */
    orr_map *stream_at;   /* a stream -> its index in streams, `copies` entries each */
    sys_stream **streams; /* the 0th is the original */
    size_t stream_count, stream_room;
    uint32_t *tokens; /* of messages (match.h) */
} fold_copier;

/* At the event that was found: ORR_OK, it continues with more ranks. */
orr_code fold_unfold(orr_sim *s, orr_error *err);

uint32_t fold_moved(const fold_copier *c, uint32_t k, uint32_t rank);
uint32_t fold_which_copy(const fold_copier *c, uint32_t rank); /* given by the rank's digits */
/* The call redirected to this rank from its representative. */
clk_call fold_copy_call(const fold_copier *c, clk_call call, uint32_t rank);
/* The group of this rank that corresponds to that one. */
const cfg_group *fold_group_at(const fold_copier *c, const cfg_group *like, uint32_t rank);
/* The first of the groups that the remaining digits map to this one; NULL for NULL. */
const cfg_group *fold_like_of(const fold_copier *c, const cfg_group *g);
/* Records the k-th copy of a stream; false: out of memory. */
bool fold_note_copy(fold_copier *c, sys_stream *st, uint32_t k, sys_stream *copy);

/* ---- called by the layers ---- */

void fold_timer(run_npu *n, uint64_t delay, clk_action action, void *context, uint64_t argument);
void fold_phase_start(sys_stream *st);
void fold_message(run_npu *n, uint32_t place, bool is_send, uint64_t size);
void fold_node_start(run_npu *n, uint32_t place);
void fold_node_end(run_npu *n, uint32_t place);
void fold_rank_end(run_npu *n);
void fold_released(run_npu *n, uint32_t place); /* called before its children are released */
bool fold_may_start(run_npu *n,
                    uint32_t place); /* sets the time at which it does; false: not yet */
void fold_issued(run_npu *n);
void fold_round_over(run_npu *n);   /* the end of one of several consecutive steps (run_state.h) */
void fold_round_begins(run_npu *n); /* it begins its next step (run_state.h) */

extern const run_observer fold_observer;

/* ---- results, after the run ---- */

const orr_sim_rank_result *fold_rank(const struct fold_sim *f, uint32_t rank);
uint64_t fold_busy(const struct fold_sim *f, uint32_t rank);
/* By watch_use; WATCH_USES: communication overlapped with computation. */
uint64_t fold_spent(const struct fold_sim *f, uint32_t rank, unsigned use);
uint64_t fold_events(const struct fold_sim *f);
/* The log of steps, class by class (watch.h); discards cached collectives.  False: out of
 * memory. */
struct watch_source;
bool fold_open_log(struct fold_sim *f, struct watch_source *out);

/* ---- verification (fold_verify.c) ---- */

struct fold_found;
struct fold_found *fold_keep_found(const orr_sim *s); /* of a folded run; NULL: out of memory */
void fold_drop_found(struct fold_found *k);
void fold_say_verified(const struct fold_found *k, orr_sim *s); /* in orr_sim.fold_why */
/* Compares with the same run, every rank simulated.  ORR_EBUG: they differ. */
orr_code fold_compare_found(const struct fold_found *k, const orr_sim *s, orr_error *err);

#endif
