/* SPDX-License-Identifier: Apache-2.0 */
/* fold_impl.h - what the files of this folder share:
 *
 *     fold.c          life cycle: create, run, split
 *     fold_classes.c  which ranks are equal; their partners: families of groups, channels of
 *                     messages
 *     fold_events.c   pending events, and the order in which those of a class run
 *     fold_loose.c    orders that make no difference, and what is checked instead
 *     fold_phase.c    phases of collectives: members meet, and all ends are computed from the
 *                     starts
 *     fold_figures.c  statistics of nodes and ranks, one number per member
 *     fold_flows.c    when data could start to flow
 *     fold_log.c      the log of steps, per class, expanded per rank for readers
 *     fold_symmetry.c symmetric ranks: the network aware
 *     fold_unfold.c   ... until the symmetry breaks; then each becomes several
 *     fold_links.c    lockstep: links with equal traffic
 *     fold_lockstep.c classes whose members do everything at the same time: the network fluid
 *     fold_steps.c    several consecutive steps, until they repeat
 *     fold_tape.c     ... computing those in between without their events
 *     fold_merge.c    merging classes that were split
 *     fold_time.c     one number per member
 *     fold_verify.c   verification on request */
#ifndef ORR_RUN_FOLD_IMPL_H
#define ORR_RUN_FOLD_IMPL_H

#include "fold.h"

#include "base/memory/memory.h"
#include "models/collective/coll_times.h"
#include "run/match.h"
#include "run/watch.h"

#include <stdint.h>

/* ---- times of members ----
 *
 * One number per member of a class: times, and sums of times.
 *
 * Times of members mostly differ not at all, or by the same amounts again and again.  So a value is
 * a base and a *spread*: member m has base + spread[m].  Offsets of a spread are at least 0 and
 * include a 0; each spread is stored once and identified by its number; number 0 is the even one,
 * all zeros.  Results of operations on two spreads are memoised, so repetitions cost a lookup,
 * independent of the number of members. */

/* An example, four members in ns:
 *
 *     times     1000 1000 1007 1003
 *     base      1000
 *     spread       0    0    7    3     stored once: the same skew has the same number */
typedef struct fold_val {
    int64_t base;
    uint32_t by; /* a spread; 0: equal for all members */
    uint32_t id; /* its entry on the tape (fold_tape.c); 0: not known */
} fold_val;

typedef struct fold_times fold_times;

/* most_bytes: limit on spreads; beyond it members have nothing in common, and folding does not pay.
 * NULL: out of memory. */
fold_times *fold_times_create(size_t most_bytes);
void fold_times_destroy(fold_times *t);
/* Out of memory, or too many spreads: values made since then are invalid. */
bool fold_times_failed(const fold_times *t);
bool fold_times_no_memory(const fold_times *t); /* the reason was memory */

/* Removes the limit on spreads. */
void fold_times_unbound(fold_times *t);

/* The offsets of a spread (not of 0). */
const int64_t *fold_spread(const fold_times *t, uint32_t by);

static inline int64_t fold_at(const fold_times *t, fold_val v, uint32_t member)
{
    return v.base + (v.by ? fold_spread(t, v.by)[member] : 0);
}
static inline int64_t fold_least(fold_val v)
{
    return v.base;
}
int64_t fold_most(const fold_times *t, fold_val v);

/* The spread with these offsets, whose minimum is 0; UINT32_MAX: it does not exist. */
uint32_t fold_find(const fold_times *t, const int64_t *offsets, uint32_t members);
/* From one number per member. */
fold_val fold_make(fold_times *t, const int64_t *at, uint32_t members);

/* Both values must have the same number of members. */
fold_val fold_add_slow(fold_times *t, fold_val a, fold_val b);
fold_val fold_sub_slow(fold_times *t, fold_val a, fold_val b);
fold_val fold_max_slow(fold_times *t, fold_val a, fold_val b);
/* Member m gets the value of member from[m] of `a`.  map: number of this permutation, for
 * memoising. */
fold_val fold_permute(
    fold_times *t, fold_val a, uint32_t map, const uint32_t *from, uint32_t members);

/* The values of the `count` members from `at` on. */
fold_val fold_part_of(fold_times *t, fold_val a, uint32_t at, uint32_t count);

static inline fold_val fold_add(fold_times *t, fold_val a, fold_val b)
{
    return a.by && b.by ? fold_add_slow(t, a, b) : (fold_val){a.base + b.base, a.by | b.by, 0};
}
static inline fold_val fold_sub(fold_times *t, fold_val a, fold_val b)
{
    if (a.by == b.by || !b.by)
        return (fold_val){a.base - b.base, a.by == b.by ? 0 : a.by, 0};
    return fold_sub_slow(t, a, b);
}
static inline fold_val fold_max(fold_times *t, fold_val a, fold_val b)
{
    if (a.by == b.by)
        return a.base > b.base ? a : b;
    return fold_max_slow(t, a, b);
}

/* ---- folds ---- */

enum { FOLD_NO_SLOT = UINT8_MAX };

typedef struct fold_sim fold_sim;
typedef struct fold_event fold_event;

/* The path to each member in one step of an algorithm, over all groups of a family. */
typedef struct fold_pattern {
    const uint16_t *path;         /* by group and member; NULL: all are `even` */
    uint16_t even;                /* an index into fold_sim.paths, like the entries of `path` */
    uint64_t pairs[ORR_NET_DIMS]; /* by the innermost dimension in which the two differ */
} fold_pattern;

/* Groups of the same composition, in which the members of some classes run the same collective. */
typedef struct fold_family {
    uint64_t sum;             /* of its groups */
    uint32_t groups, members; /* of each group */
    uint32_t *ranks;          /* group by group, in ring order; NULL: all lines along a dimension */
    bool is_line;             /* lines along a dimension of the collectives, not groups */
    uint32_t offset;          /* of lines */
    /* they are those of one dimension of the network: all positions in a line are equivalent */
    bool is_dim;
    uint32_t dim;      /* which one */
    uint32_t *classes; /* with members in its groups */
    uint32_t class_count;
    uint32_t *place_of;     /* by class: its index among those */
    fold_pattern *patterns; /* of algorithm steps requested so far */
    size_t pattern_count, pattern_room;
    orr_map *pattern_by_step; /* steps of algorithms repeat from phase to phase */
    uint32_t number;
    struct fold_meeting *free_meetings; /* with lists of class_count */
} fold_family;

/* The pairs when all members of one class send to all members of another. */
typedef struct fold_pairs {
    uint64_t sum[2]; /* of its pairs of ranks */
    uint32_t number;
    uint32_t from_class, to_class; /* NONE: that side has not appeared yet */
    const uint32_t *peer;          /* by member of to_class: the rank that sends */
    const uint32_t *source;        /* by member of to_class: the member of from_class; NULL: the
                             * identity */
    uint32_t map;                  /* number of that permutation */
    bool is_joined;
    const uint16_t *path; /* by member of from_class; NULL: all are `even` */
    uint16_t even;
    uint64_t count[ORR_NET_DIMS]; /* pairs, by dimension */
    const uint8_t *dimension;     /* by member of from_class */
    uint64_t delay_size;          /* the last size requested, and its delays */
    fold_val delay;               /* ns, by member of from_class */
} fold_pairs;

/* The last of those that must not overtake each other. */
typedef struct fold_turn {
    fold_val at;
    uint64_t event; /* 0: there was none */
    uint32_t round; /* run/run_state.h */
    uint32_t place; /* of collectives */
    uint8_t slot;
} fold_turn;

/* The messages of such pairs with one tag, or one tag per member. */
typedef struct fold_channel {
    uint64_t sum[2];
    uint32_t number;
    fold_pairs *pairs;
    struct fold_letter *first, *last; /* unmatched sends, or unmatched receives */
    fold_turn sent, posted;           /* the last of each side, which the next must not overtake */
    /* pending messages of its parts have been moved here (fold_merge.c) */
    bool is_joined;
} fold_channel;

/* A send or a receive that waits for its counterpart. */
typedef struct fold_letter {
    struct fold_letter *next;
    bool is_send; /* else a receive */
    uint32_t place;
    uint64_t size;
    /* of a send: when it arrives, by member of the receiving class; else when it was posted */
    fold_val at;
    int64_t lag_least, lag_most; /* of a send: time in flight */
    uint64_t number;             /* of sends */
    uint32_t round;              /* of the poster (run/run_state.h) */
} fold_letter;

/* One phase of one chunk, of all groups of a family. */
typedef struct fold_meeting {
    struct fold_meeting *next; /* free list, or same key */
    fold_family *family;
    coll_times_phase phase; /* algorithm, kind, bytes and ranks: what its times depend on */
    uint64_t stream;        /* number of the chunk within the group */
    uint32_t step;          /* number of the phase within the chunk */
    uint32_t round;         /* of the first class to arrive (run/run_state.h) */
    uint32_t come, gone;    /* classes that have arrived and finished */
    sys_stream **streams;   /* by index in the family's classes */
    fold_val *starts;       /* likewise, per member */
    uint64_t *numbers;      /* the order in which each class started its phases */
} fold_meeting;

typedef enum fold_event_kind { FOLD_TIMER, FOLD_PHASE_END, FOLD_ARRIVAL } fold_event_kind;

struct fold_event {
    fold_val at;
    int64_t lag_least, lag_most; /* time between scheduling and running */
    clk_call call;               /* what runs then, once for all members */
    fold_meeting *meeting;       /* of a phase */
    uint64_t number; /* of timers: the order in which they were set; of arrivals: of sends */
    uint32_t class_index, sender;
    uint32_t next;   /* of the class, or free */
    bool is_pending; /* false: it ran instead of another, or its class was merged */
    bool is_own;     /* of a phase: its end is a timer set at its start */
    uint8_t kind;
};

/* The occupants of a slot, in sequence (fold_loose.c). */
typedef struct fold_slot {
    fold_val free_at, last_start, start_before; /* start_before: of the node before the last one */
    uint64_t freed_by;                          /* an event; 0: nothing has run in it */
    uint32_t last_place, started;               /* started: 0, 1, or 2 and more */
    /* the last one was ready when the slot became free */
    bool is_firm;
    bool is_open;        /* ... not evaluated yet, from these: */
    fold_val freed_at;   /* when the slot became free for the last one */
    uint64_t freed_then; /* by that event */
    fold_event last;     /* last event of its collectives that has run; kind 255: none */
} fold_slot;

/* Which parent made a node ready last?  Evaluated lazily: it is a decision only if somebody
 * asks. */
typedef struct fold_made {
    fold_val before, last; /* maximum over the parents before the last, and the last */
    bool is_open;          /* not evaluated yet */
} fold_made;

/* A group of a class, by one of the links that refer to it. */
typedef struct fold_share {
    uint32_t place;  /* of a node that uses it */
    uint64_t chunks; /* per step */
} fold_share;

typedef struct fold_running {
    uint32_t place; /* of its node */
    uint64_t stream;
    const fold_family *family;
} fold_running;

/* A step of a class (watch.h). */
typedef struct fold_logged {
    fold_val start, end;
    uint32_t place;
    uint32_t note; /* the collective it is part of; NONE: none */
    bool has_ended;
} fold_logged;

/* A collective of a class. */
typedef struct fold_note {
    uint64_t stream; /* of its first chunk; counted within the group */
    bool is_group;
    const sys_dim *dims[ORR_NET_DIMS + 1]; /* that it runs along, as in the route */
    uint32_t dim_count;
} fold_note;

typedef struct fold_logged_phase {
    fold_val start, end;
    watch_phase like; /* step: of this class; stream: counted within the group */
    bool is_group, has_ended;
} fold_logged_phase;

/* Messages sent by a class or a meeting, for the traffic over time in a run of several steps. */
typedef struct fold_sent {
    const int64_t *words; /* of a memo (fold_phase.c), from `at.base` on; NULL: of pairs */
    const fold_pairs *pairs;
    fold_val at;
    uint64_t size;
    uint32_t phase; /* of words: its entry on the tape */
} fold_sent;

/* When the data of a step of a class could start to flow (fold_flows.c). */
enum { FOLD_FLOWS_AT_START, FOLD_FLOWS_LATER, FOLD_FLOWS_NEVER };
typedef struct fold_flow {
    int64_t base;
    uint32_t by; /* a spread of fold_sim.flow_times */
    uint8_t state;
} fold_flow;

typedef struct fold_log {
    fold_logged *steps; /* in the order in which the class started them */
    size_t count, room;
    fold_note *notes; /* for those that are collectives */
    size_t note_count, note_room;
    fold_logged_phase *phases;
    size_t phase_count, phase_room;
    fold_sent *sends;
    size_t send_count, send_room;
    uint32_t *step_of; /* by place */
} fold_log;

enum { FOLD_BEGINNINGS = 32 }; /* history length: cycles of fewer steps are detected */

/* The state in which a class begins a step. */
typedef struct fold_beginning {
    fold_val at;
    int64_t lag_least, lag_most; /* of the event that ended the previous step */
    uint64_t queues, place;      /* which queues are next, as a hash; the node that ended */
    uint8_t kind, slot;
} fold_beginning;

typedef struct fold_class {
    run_npu *npu;    /* executes for all members */
    uint32_t *ranks; /* its members */
    uint32_t count;
    uint32_t first_event; /* of the pending ones; NONE: none */
    fold_val now;         /* current time of each member */
    fold_event last;      /* that has run; kind 255: none */
    /* timers and arrivals of one tick ran in an arbitrary order, which made no difference, and
     * when */
    bool has_tried;
    fold_val tried_at;
    uint32_t phases;              /* running */
    struct fold_running *running; /* those, if tags may clash */
    size_t running_room;
    fold_val event_at;  /* of the running event; now may be later, while nodes start */
    fold_val *ready_at; /* by node: the latest end of its parents so far */
    /* by node: the event that made it ready, for all members; 0: not a single one */
    uint64_t *ready_by;
    fold_made *made;             /* by node: why that one; NULL: steps are not recorded */
    uint32_t held_slots;         /* of this event: their next nodes start when it has ended */
    fold_turn *numbered;         /* by link: its last collective; NULL: one slot has all of them */
    const uint64_t *mates;       /* by link: those that may be the same group, as bits */
    struct fold_slot *slots;     /* WORK_SLOTS of them */
    const uint32_t *relation_of; /* by node: 1 + which group, or which peer and tag; 0: none */
    const uint32_t *link_of;     /* by relation: which group or peer */
    size_t link_count, relation_count;
    fold_family **family; /* by link; NULL: not requested yet */
    fold_family *lines[2 * ORR_NET_DIMS];
    uint32_t line_count;
    fold_pairs **pairs;     /* by link */
    fold_channel **channel; /* by relation */
    fold_log log;           /* where steps are kept */
    fold_flow *flows;       /* by step of the log, after the run */
    /* several consecutive steps */
    fold_log done;                         /* of the previous step */
    orr_sim_rank_result done_result;       /* likewise */
    fold_val round_end;                    /* when all finished nodes had ended */
    fold_beginning begun[FOLD_BEGINNINGS]; /* ring buffer, by step */
    struct fold_share *shares;             /* groups with its chunks, if tags may clash */
    uint32_t share_count;
    uint64_t began_in; /* the turn in which this step began */
    /* merging (fold_merge.c) */
    uint64_t done_sum; /* hash of the nodes that have started and ended */
    uint32_t next_kin; /* the next class with the same trace and speeds, in a ring */
    uint32_t part;     /* of fold_sim.parts, once they exist */
} fold_class;

typedef struct fold_path {
    double latency, speed; /* ns, bytes per ns */
} fold_path;

struct fold_sim {
    orr_sim *s;
    orr_arena *arena;
    uint64_t steps;                /* for the limit on events */
    fold_times *times;             /* spreads of all classes */
    uint32_t *class_of, *index_of; /* by rank */
    fold_class *classes;
    uint32_t class_count;
    fold_path *paths; /* distinct ones */
    size_t path_count, path_room;
    fold_family **families; /* searched linearly by sum: there are few */
    size_t family_count, family_room;
    uint32_t family_numbers;
    fold_channel **channels;
    size_t channel_count, channel_room;
    orr_map *channel_by_sum;
    fold_pairs **pairs;
    size_t pairs_count, pairs_room;
    orr_map *claims; /* (source, destination) -> pairs; with a tag -> 1 + channel */
    uint32_t map_count;
    uint64_t pairs_seen;
    fold_letter *free_letters; /* linked by next */
    /* events */
    fold_event *events; /* by index; reused */
    size_t event_count, event_room;
    uint32_t free_event;
    orr_heap queue;                     /* by earliest member */
    uint64_t numbers, events_run, turn; /* turn: of the running event, and of beginnings */
    const fold_class *running;          /* the class whose event runs */
    /* phases */
    orr_map *meeting_by_key; /* -> a place in meetings */
    fold_meeting **meetings; /* that wait for classes */
    size_t meeting_count, meeting_room;
    uint32_t *meeting_free_next, free_meeting_slot;
    size_t meeting_free_room;
    orr_map *memos; /* -> a place in memo_words */
    orr_map *mixed; /* two families and a class -> may their tags be equal?  NULL: never asked */
    int64_t **memo_words;
    size_t memo_count, memo_room;
    int64_t *starts, *ends, *question;
    size_t starts_room, ends_room, question_room;
    fold_val *phase_ends;
    size_t phase_ends_room;
    size_t *class_at;                /* by class */
    bool is_lockstep;                /* only to find classes (fold_lockstep.c) */
    bool shares_links;               /* and ranks share links */
    struct fluid_standing *standing; /* of those */
    const uint64_t *group_colour;
    /* giving up */
    bool has_started, has_given_up, wants_split;
    bool lost_order;     /* it gives up because of the order of events */
    bool is_loose;       /* only events of one slot must have the same order for all members */
    uint8_t ending_slot; /* a phase of it ends; NO_SLOT: none */
    uint32_t follows;    /* slots whose nodes start now, right after one of their phases */
    bool uses_world;     /* some collectives have no group */
    bool has_roots;      /* some collectives have one */
    /* chunks with equal numbers in different groups must not run at the same time */
    bool may_mix_tags;
    orr_sim_rank_result *results; /* by rank, after the run */
    uint64_t *busy;               /* by rank: ns with a running node */
    fold_times *flow_times;       /* spreads of flows; NULL: times are not split */
    uint64_t (*spent)[WATCH_USES +
                      1]; /* by rank: times by watch_use; last: communication beside computing */
    bool mixes_rounds;    /* ranks in different steps have communicated */
    /* all further steps are like the last one that all classes have ended */
    bool is_steady;
    bool is_taping;         /* events belong to the step being recorded */
    struct fold_tape *tape; /* NULL: not recording */
    /* merging (fold_merge.c) */
    struct fold_finder *finder; /* of classes; NULL: no merging */
    bool may_merge;
    uint32_t walks; /* current number of classes */
    uint32_t merges, merge_tries;
    uint64_t next_merge; /* number of events before the next attempt */
    uint64_t *colour;    /* by rank: of its state */
    uint32_t *merged_of; /* by rank: the class it would belong to */
    struct fold_part *parts;
    size_t part_count, part_room;
    uint32_t *leaf_of, *leaf_index; /* by rank: the initial class_of and index_of */
    struct fold_view *view;         /* the current classes, while the initial ones are restored */
    fold_family **old_families;     /* running phases may still refer to them */
    size_t old_family_count, old_family_room;
};

/* ---- giving up ---- */

/* Folding cannot continue: every rank is simulated instead. */
void fold_give_up(fold_sim *f, const char *fmt, ...) ORR_PRINTF(2, 3);
/* Members of this class diverge: those with a positive sign become a separate class. */
void fold_split(fold_sim *f, uint32_t class_index, fold_val sign, const char *why);

static inline bool fold_is_over(const fold_sim *f)
{
    return f->has_given_up || f->wants_split || f->s->code;
}
static inline fold_class *fold_class_at(const run_npu *n)
{
    return &n->sim->fold->classes[n - n->sim->npus];
}

/* ---- classes ---- */

enum { FOLD_WORLD = RUN_NONE - 1 };

/* The partners of each rank in trace order: the index of a group, FOLD_WORLD, or a peer; NONE:
 * nobody.  Ranks of one body have the same number of them, of the same kinds. */
typedef struct fold_others {
    size_t *first;   /* by rank, in other */
    size_t *count;   /* by class of the set */
    bool **is_group; /* by class of the set, and index in it */
    uint32_t *other; /* to be freed */
} fold_others;
/* False: out of memory.  Gives up if a group is unknown. */
bool fold_find_others(fold_sim *f, fold_others *out);

/* Equal messages have tags that differ between ranks of a class. */
bool fold_has_odd_tags(const orr_sim *s);
/* Messages of two groups may be confused. */
bool fold_has_ambiguous_groups(orr_sim *s, bool uses_world);
/* Can messages of these groups have the same tag and the same ends?  NULL: all ranks, number 0. */
bool fold_may_mix_groups(const orr_sim *s, const cfg_group *a, const cfg_group *b);
bool fold_colour_ranks(orr_sim *s); /* orr_sim.fold_colour: false: out of memory */
bool fold_find_classes(fold_sim *f, orr_error *err);
fold_family *fold_group_family(fold_sim *f, run_npu *n, uint32_t place);
fold_family *fold_line_family(fold_sim *f, fold_class *c, const sys_dim *d);
/* NULL: given up. */
fold_channel *fold_channel_of(fold_sim *f, run_npu *n, uint32_t place, bool is_send);
static inline uint32_t fold_family_rank(const fold_family *y, uint32_t group, uint32_t member)
{
    if (y->ranks)
        return y->ranks[(size_t)group * y->members + member];
    return group / y->offset * y->offset * y->members + group % y->offset + member * y->offset;
}
/* step: of coll_times_source.  NULL: given up. */
const fold_pattern *fold_pattern_of(fold_sim *f, fold_family *y, uint64_t step);
uint16_t fold_path_between(fold_sim *f, uint32_t src, uint32_t dst); /* it may give up */
uint64_t fold_delay(const fold_sim *f, uint16_t path, uint64_t size);
/* Counts the messages of all members of a pattern or a channel. */
void fold_count_messages(fold_sim *f,
                         const uint64_t pairs[ORR_NET_DIMS],
                         uint64_t each,
                         uint64_t size);

/* ---- reducing the symmetry ---- */

const net_symmetry *fold_digits(const orr_sim *s);
bool fold_is_dropped(const orr_sim *s, uint32_t digit);
uint32_t fold_number_of(const orr_sim *s, const cfg_group *g); /* shared by all equivalent groups */
void fold_find_likes(const fold_copier *c);                    /* under the remaining digits */
void fold_drop_digits(const fold_copier *c);

/* ---- events ---- */

void fold_schedule(fold_sim *f, const fold_event *e);
bool fold_step(fold_sim *f); /* false: no event is left, or the run is over */
/* Do the groups have two ranks in common? */
bool fold_share_pair(const cfg_group *a, const cfg_group *b);
void fold_phase_over(fold_sim *f, fold_class *c, const fold_meeting *m);
void fold_draw_sent(fold_sim *f, const fold_class *c, const fold_sent *sent);
void fold_leave(fold_sim *f, fold_meeting *m); /* a class has finished this phase */

void fold_put_event(fold_sim *f, const fold_event *e); /* without checking it against past events */

/* ---- merging ---- */

/* From these colours of ranks; returns the number of classes, 0: out of memory. */
uint32_t fold_refine(fold_sim *f, const uint64_t *colour, uint32_t *class_of);
void fold_finder_destroy(struct fold_finder *v, uint32_t bodies); /* NULL is fine */
bool fold_merge_init(fold_sim *f);                                /* false: out of memory */
void fold_merge_fini(fold_sim *f);
void fold_merge_note(fold_class *c, uint32_t place, bool is_end);
/* Called after an event of this class, at `now`. */
void fold_merge_maybe(fold_sim *f, const fold_class *c, int64_t now);
/* Until _end, restores the initial classes, each with the log of all its members; false: out of
 * memory. */
bool fold_leaves_begin(fold_sim *f);
/* Also the channels of their messages; not for a stopped run. */
bool fold_leaves_join(fold_sim *f);
void fold_leaves_end(fold_sim *f); /* also after a begin that failed */
void fold_put_letter(fold_sim *f, fold_channel *h, const fold_letter *value);
bool fold_move_meetings(fold_sim *f); /* moves those that wait for classes to the new families */

/* ---- orders that do not matter ---- */

bool fold_loosen(fold_sim *f); /* false: out of memory */
/* Is a message of this node next in its channel, for every member? */
bool fold_is_next(fold_sim *f, const fold_class *c, fold_turn *last, uint32_t place);

/* ---- several consecutive steps ---- */

void fold_steps_init(fold_sim *f);
void fold_steps_finish(fold_sim *f);
void fold_round_end_at(fold_sim *f, fold_class *c);

/* ---- a step as a list of operations (fold_tape.c) ---- */

bool fold_is_recorded(const fold_sim *f);    /* some step may be */
bool fold_tape_create(fold_sim *f);          /* false: out of memory */
void fold_tape_destroy(struct fold_tape *t); /* NULL is fine */
/* Values like those of fold_max, fold_add and fold_permute; while recording they carry their tape
 * entry. */
fold_val fold_later(fold_sim *f, fold_val a, fold_val b);
fold_val fold_after(fold_sim *f, fold_val a, fold_val delay);
fold_val fold_at_receiver(fold_sim *f, fold_val a, const fold_pairs *h);
/* Records the ends of a phase, by index in the family's classes.  Returns the id of the first, the
 * others follow it; 0: not known. */
uint32_t fold_tape_phase(fold_sim *f, const fold_meeting *m, const fold_val *ends);
/* Records a decision by times: a is before b for all members, or not; */
void fold_tape_before(fold_sim *f, fold_val a, fold_val b, bool is_so);
void fold_tape_same(fold_sim *f, fold_val a, fold_val b);
/* a start is later than an event for all members, or for none; */
void fold_tape_wait(fold_sim *f, fold_val start, fold_val event, bool is_later);
/* the first of two nodes gets a slot; free NULL: nothing has run in it; */
void fold_tape_rival(fold_sim *f,
                     const fold_class *c,
                     const fold_val *free,
                     fold_val mine,
                     fold_val other,
                     bool is_together);
/* the first of two events of a class runs first; is_by_lag: also within one tick, by a constant
 * criterion; */
void fold_tape_order(fold_sim *f, const fold_event *a, const fold_event *b, bool is_by_lag);
void fold_tape_break(fold_sim *f); /* anything else: this step cannot be replayed */
/* A class ends a step, begins one, or an event of it runs. */
void fold_tape_ends(fold_sim *f, const fold_class *c);
void fold_tape_begins(fold_sim *f, fold_class *c);
void fold_tape_turn(fold_sim *f, const fold_class *c);
/* All classes have ended this step: if it was recorded, replay those that follow. */
void fold_play_on(fold_sim *f, uint32_t round);

/* Does the node ready at `mine` get the slot before the one ready at `other`, for all these
 * members? */
bool fold_wins(const fold_sim *f,
               const fold_val *free,
               fold_val mine,
               fold_val other,
               bool is_together,
               uint32_t members);
enum { FOLD_LAGS = 2 };
/* The result of a phase for these starts, by index in the family's classes: minimum and maximum
 * lag, then base (after the first start) and spread of each end.  NULL: given up. */
const int64_t *fold_ask(fold_sim *f,
                        fold_family *y,
                        const coll_times_phase *phase,
                        fold_val *starts);
const int64_t *fold_words_of(const fold_sim *f, const fold_family *y, const int64_t *known);

/* ---- statistics ---- */

bool fold_make_results(fold_sim *f);
bool fold_find_flows(fold_sim *f); /* false: out of memory */
void fold_drop_flows(fold_sim *f);

/* ---- the log ---- */

bool fold_keep_log(fold_sim *f); /* false: out of memory */
void fold_drop_log(fold_log *l);
/* Messages that are drawn once it is known which step's log is kept; false: out of memory. */
bool fold_log_sends(fold_class *c, const fold_sent *sent);
void fold_log_start(fold_class *c, uint32_t place);
void fold_log_end(fold_class *c, uint32_t place);

#endif
