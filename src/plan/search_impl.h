/* SPDX-License-Identifier: Apache-2.0 */
/* search_impl.h - the parts of a search for plans: the space, the bound, the simulation. */
#ifndef ORR_PLAN_SEARCH_IMPL_H
#define ORR_PLAN_SEARCH_IMPL_H

#include "base/memory/memory.h"
#include "run/engine.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/plan.h>

#include <stdatomic.h>

/* A legal plan that fits into memory; small, as there may be a million. */
typedef struct search_candidate {
    uint32_t tp, cp, pp, dp, ep, micro_batch;
    uint8_t zero, pipeline, chunks, recompute;
    bool no_sequence_parallel;
    /* Gradients are sharded, so those of each micro-batch are reduced separately. */
    bool is_synced;
    uint64_t memory; /* bytes of the fullest device */
    double bound_s;
} search_candidate;

/* A plan that was simulated. */
typedef struct search_result {
    orr_plan plan;
    uint32_t candidate; /* its index in the list */
} search_result;

struct search_bounds;

struct orr_plan_search {
    orr_plan_options opt;
    orr_machine machine;  /* the part in use */
    orr_llm_options base; /* options common to all plans */
    double flops;         /* that the model needs for a step */
    double peak_flops;    /* of a device, per second */
    search_candidate *list;
    size_t count, room;
    uint32_t *order; /* of the list, by rough bound */
    size_t refined;  /* of these, the number with a fine bound */
    uint32_t *heap;  /* of those, the ones not simulated: a min-heap */
    size_t heap_count;
    search_result *plans; /* simulated, the best first */
    size_t plan_count, plan_room;
    orr_plan_counts counts;
    struct search_bounds *bounds;
    atomic_bool is_stopped, is_late, is_full;
    bool is_spent;
    uint64_t events_left; /* of max_events, at the beginning of a wave */
    uint64_t end_ns;      /* of the monotonic clock; 0: no limit */
    char failure[300];    /* of the first candidate that could not be simulated */
};

/* Remaining time in seconds; 0: unlimited; below 0: time is up. */
double search_time_left(orr_plan_search *s);

/* "8", "interleaved", "on". */
enum { SEARCH_VALUE_ROOM = 24 };

/* The options of orr_llm_training for a candidate. */
orr_llm_options search_options(const orr_plan_search *s, const search_candidate *c);

/* The next larger divisor of n; 0: none.  Enumerating all costs O(sqrt(n)). */
uint64_t search_next_divisor(uint64_t n, uint64_t after);

/* The defaults of orr_llm_complete, for options it has accepted before. */
void search_fill_in(orr_llm_options *o);

/* plan_bound.c: a lower bound on the time of the candidate, which only increases here.  Rough:
 * without following every task; finest: with compute slowed by collectives. Thread-safe. */
typedef enum search_care { SEARCH_ROUGH, SEARCH_FINE, SEARCH_FINEST } search_care;
orr_code search_bounds_create(orr_plan_search *s, orr_error *err) ORR_MUST_CHECK;
void search_bounds_destroy(struct search_bounds *b);
orr_code search_bound(orr_plan_search *s, search_candidate *c, search_care care, orr_error *err)
    ORR_MUST_CHECK;

/* Nodes of its step, of all stages. */
double search_nodes(orr_plan_search *s, const search_candidate *c);

typedef struct search_events {
    uint64_t most; /* that a simulation may have; 0: as many as it takes */
    uint64_t used;
    bool is_spent; /* it ended there */
} search_events;

/* plan_figures.c: generates, runs, and fills all figures of a plan. */
orr_code search_simulate(orr_plan_search *s,
                         const search_candidate *c,
                         search_events *events,
                         orr_plan *out,
                         orr_error *err) ORR_MUST_CHECK;

/* The axis that a collective or a message belongs to. */
typedef enum search_axis {
    SEARCH_TENSOR,
    SEARCH_CONTEXT,
    SEARCH_EXPERT,
    SEARCH_DATA,
    SEARCH_PIPELINE,
    SEARCH_AXES
} search_axis;
search_axis search_axis_of(orr_str name, uint8_t type);
double search_axis_share(const orr_plan *p, search_axis axis);

/* plan_check.c: the simulation cost of a step, or of the heaviest collective of an axis. */
typedef struct search_traffic {
    double nodes, messages, hops; /* of all ranks; hops: packets times links */
} search_traffic;

typedef struct search_piece {
    uint32_t class_index, node; /* where it stands */
    uint64_t bytes;
    bool is_message;  /* point to point, not a collective */
    uint32_t members; /* of its group */
    double weight;    /* bytes of all equal ones; 0: the axis has none */
} search_piece;

#endif
