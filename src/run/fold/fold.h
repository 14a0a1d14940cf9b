/* SPDX-License-Identifier: Apache-2.0 */
/* fold.h - ranks that do the same are simulated once (docs/design/folding.md).
 *
 * A *class* is a set of ranks with the same trace, the same speeds and groups of the same make-up.
 * It has one run_npu, which goes through the workload and system layers as any rank does; only time
 * is different: an event of a class has one time per member (fold_impl.h).  As long as the members
 * of a class come to their events in the same order, one walk through the layers is right for all
 * of them.  Where they do not, the class is split and the run starts again; where that cannot be
 * known, or does not help, every rank is simulated.
 *
 * The layers call the functions below instead of the clock, the matcher and the algorithms when
 * orr_sim.fold is set. */
#ifndef ORR_RUN_FOLD_H
#define ORR_RUN_FOLD_H

#include "models/network/symmetry.h"
#include "run/run_state.h"

/* Finds the classes.  *out is NULL where the run cannot be folded; orr_sim.fold_why says why. */
orr_code fold_create(orr_sim *s, struct fold_sim **out, orr_error *err);
/* Runs on this network are folded where they can be. */
bool fold_knows_network(const orr_sim *s);
bool fold_has_custom(const orr_sim *s);       /* collectives whose algorithm is a trace */
bool fold_has_memory_nodes(const orr_sim *s); /* loads and stores of remote memory */
bool fold_put_finish_order(orr_sim *s);       /* by time, then by rank; false: out of memory */
/* Why ranks of this run cannot stand for others on any network; NULL: nothing is in the way. */
const char *fold_obstacle(const orr_sim *s);
void fold_destroy(struct fold_sim *f); /* NULL is fine */

uint32_t fold_class_count(const struct fold_sim *f);
uint32_t fold_class_first(const struct fold_sim *f, uint32_t class_index); /* its smallest rank */
/* Who stands for a class; results may be asked for from then on. */
void fold_attach(struct fold_sim *f, uint32_t class_index, run_npu *n);

/* All events.  ORR_END: it did not hold, orr_sim.fold_why says why; ORR_ESTOP as orr_sim_run. */
orr_code fold_run(struct fold_sim *f, orr_error *err);

bool fold_wants_loose(const struct fold_sim *f);  /* with fewer demands on the order of events */
bool fold_wants_strict(const struct fold_sim *f); /* with more */
bool fold_wants_split(const struct fold_sim *f);
bool fold_has_merged(const struct fold_sim *f); /* classes became one again on the way */
uint32_t fold_walks(const struct fold_sim *f);  /* classes that are left */

/* ---- lock step (fold_lockstep.c) ----
 *
 * Where collectives end for all members at once and ports are those of ranks (run/joint.h), ranks
 * that are alike do everything at the same time: the smallest one of each class is simulated, by
 * the clock as any rank, and its ports stand for those of its class. */

typedef struct fold_lockstep {
    uint32_t *stands_for;            /* by rank: who is simulated for it */
    uint32_t *size;                  /* by rank that is simulated: of its class */
    uint32_t *like;                  /* by group: the first one of the same make-up */
    struct fluid_standing *standing; /* of links; NULL: ports are those of ranks */
    uint32_t classes;
    struct fold_symmetry
        *symmetry; /* of a network on which messages delay each other; NULL: fluid */
} fold_lockstep;

/* *out is NULL where it cannot be done; orr_sim.fold_why says why.  Of the simulation's arena. */
orr_code fold_lockstep_create(orr_sim *s, fold_lockstep **out, orr_error *err);
void fold_lockstep_destroy(fold_lockstep *l); /* NULL is fine */
/* The run is over: what was found holds for all.  False: out of memory. */
bool fold_lockstep_spread(orr_sim *s);
/* The log of steps, class by class (watch.h).  False: out of memory. */
struct watch_source;
bool fold_lockstep_open_log(const orr_sim *s, struct watch_source *out);

/* ---- symmetry (fold_symmetry.c) ----
 *
 * On a network whose links are servers, ranks that it cannot tell apart, and that do the same with
 * each other, are in the same state as long as the order of events within a tick does not set them
 * apart.  A link stands for all to which the symmetry moves it. */

orr_code fold_symmetry_create(orr_sim *s, fold_lockstep **out, orr_error *err);
/* Something happens to this rank, in an event that it scheduled itself or that others did. */
void fold_touch(orr_sim *s, uint32_t rank, bool is_own);
/* The event that runs, seen from where the source of its message is at home; so far from where dst,
 * its receiver, is. */
void fold_see_from_source(orr_sim *s, uint32_t dst);
bool fold_has_lost_order(const orr_sim *s);
/* How a message is known, whichever of the ranks that are alike sends it. */
void fold_move_home(const orr_sim *s, uint32_t *src, uint32_t *dst);
/* The first number of a group's chunks. */
uint64_t fold_first_stream(const orr_sim *s, const cfg_group *g);
/* The number of a chunk in a run of every rank; g NULL: of all ranks. */
uint64_t fold_stream_of(const orr_sim *s, const cfg_group *g, uint64_t stream);
/* Of the ranks of a collective, how many this one stands for. */
uint32_t fold_members_like(const run_npu *n, const cfg_group *g, const sys_route *r);
/* A rank begins a collective of all ranks.  True: that sets ranks apart that stand for each other,
 * and the run stops. */
bool fold_is_set_apart(orr_sim *s);
/* It did not get to its end, but with fewer ranks that stand for each other, or with those that do
 * so up to some event, it may: from the start. */
bool fold_wants_again(const orr_sim *s);
orr_code fold_again(orr_sim *s, orr_error *err);
bool fold_spread_links(orr_sim *s); /* once it has run; false: out of memory */

/* ---- those who stood for others stand for fewer (fold_unfold.c) ----
 *
 * Between two events each rank that is simulated becomes `copies`: the k-th is the rank to which
 * the k-th move by the digits that are dropped takes it. */

typedef struct fold_copier {
    orr_sim *s;
    net_symmetry dropped, kept;
    uint32_t copies;
    orr_map *group_at;    /* number of likes, rank -> 1 + a group */
    orr_map *stream_at;   /* a stream -> its place in streams, of copies each */
    sys_stream **streams; /* the 0th is the one that was there */
    size_t stream_count, stream_room;
    uint32_t *tokens; /* of messages (match.h) */
} fold_copier;

/* At the event that was found: ORR_OK, it goes on with more ranks. */
orr_code fold_unfold(orr_sim *s, orr_error *err);

uint32_t fold_moved(const fold_copier *c, uint32_t k, uint32_t rank);
uint32_t fold_which_copy(const fold_copier *c, uint32_t rank); /* that the rank's digits say */
/* What is called at this rank, instead of at the one that stood for it. */
clk_call fold_copy_call(const fold_copier *c, clk_call call, uint32_t rank);
/* The group of this rank that is like that one. */
const cfg_group *fold_group_at(const fold_copier *c, const cfg_group *like, uint32_t rank);
/* The first of the groups that the remaining digits move to this one; NULL: of NULL. */
const cfg_group *fold_like_of(const fold_copier *c, const cfg_group *g);
/* Room for the copies of a stream; false: out of memory. */
bool fold_note_copy(fold_copier *c, sys_stream *st, uint32_t k, sys_stream *copy);

/* ---- what the layers call ---- */

void fold_timer(run_npu *n, uint64_t delay, clk_action action, void *context, uint64_t argument);
void fold_phase_start(sys_stream *st);
void fold_message(run_npu *n, uint32_t place, bool is_send, uint64_t size);
void fold_node_start(run_npu *n, uint32_t place);
void fold_node_end(run_npu *n, uint32_t place);
void fold_rank_end(run_npu *n);
void fold_released(run_npu *n, uint32_t place); /* before its children are told */
bool fold_may_start(run_npu *n,
                    uint32_t place); /* sets the time at which it does; false: not yet */
void fold_issued(run_npu *n);
void fold_round_over(run_npu *n);   /* a step of several in a row (run_state.h) */
void fold_round_begins(run_npu *n); /* it begins its next step (run_state.h) */

extern const run_observer fold_observer;

/* ---- results, once it has run ---- */

const orr_sim_rank_result *fold_rank(const struct fold_sim *f, uint32_t rank);
uint64_t fold_busy(const struct fold_sim *f, uint32_t rank);
/* By watch_use; WATCH_USES: communication beside computing. */
uint64_t fold_spent(const struct fold_sim *f, uint32_t rank, unsigned use);
uint64_t fold_events(const struct fold_sim *f);
/* The log of steps, class by class (watch.h); what was known of collectives is forgotten.  False:
 * out of memory. */
struct watch_source;
bool fold_open_log(struct fold_sim *f, struct watch_source *out);

/* ---- the proof (fold_verify.c) ---- */

struct fold_found;
struct fold_found *fold_keep_found(const orr_sim *s); /* of a folded run; NULL: out of memory */
void fold_drop_found(struct fold_found *k);
void fold_say_verified(const struct fold_found *k, orr_sim *s); /* in orr_sim.fold_why */
/* With the same run, every rank simulated.  ORR_EBUG: they differ. */
orr_code fold_compare_found(const struct fold_found *k, const orr_sim *s, orr_error *err);

#endif
