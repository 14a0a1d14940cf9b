/* SPDX-License-Identifier: Apache-2.0 */
/* bound_parts.h - lower bounds on the times of the parts of a step (a layer forward, backward, the
 * ends).
 *
 * A part is a 3 x 3 max-plus matrix, from (data available, device free, stream of tensor-parallel
 * collectives free) before it to the same after it; each entry is the longest path through its
 * nodes.  A path takes fixed + clocked x slow + moving, where slow is the slowdown of the clock by
 * the power cap, so an entry is a convex function of slow: it is stored as the longest paths at a
 * few values of slow, whose maximum is never above it. */
#ifndef ORR_PLAN_BOUND_PARTS_H
#define ORR_PLAN_BOUND_PARTS_H

#include "search_impl.h"

#include "base/memory/map.h"
#include "models/collective/nccl/nccl_model.h"
#include "models/network/product.h"
#include "run/workload.h"
#include "sources/llm/llm_tape.h"

enum { BOUND_LINES = 3, BOUND_KINDS = 32, BOUND_SHAPES = 8 };
/* States before and after a part. */
enum { BOUND_DATA, BOUND_DEVICE, BOUND_TENSOR, BOUND_STATES };
#define BOUND_NEVER (-1e30)

typedef struct bound_entry {
    struct {
        double fixed, clocked; /* computations, ns */
        double moving;         /* communication */
    } line[BOUND_LINES];
} bound_entry;

/* Load on a rank's ports, as the time at full rate: inside its node, and between nodes. */
typedef struct bound_load {
    double up_ns, out_ns;
} bound_load;

typedef struct bound_part {
    bool is_known; /* else it is too long to follow, and counted as 0 */
    bound_entry at[BOUND_STATES][BOUND_STATES]; /* [after][before] */
    bound_entry gate; /* data available: after the earliest start of its first computation */
    work_kernel_sum sum;
    double hold_us;  /* device time charged to collectives by the clock's walk */
    bound_load load; /* of its collectives */
    double node_count;
    double tensor_ns; /* of its tensor-parallel collectives, sequential */
} bound_part;

/* Placements of the groups of an axis: each distinct one. */
typedef struct bound_shapes {
    nccl_shape list[BOUND_SHAPES];
    uint32_t count;
    bool is_full; /* there are more: nothing is known */
} bound_shapes;

/* Parts shared by plans. */
typedef struct bound_unit {
    search_candidate like;
    uint32_t next; /* next in its group, which shares kernels; UINT32_MAX: none */
    /* embedding forward; head forward, head backward, both with MTP layers; embedding backward */
    bound_part ends[4];
    bound_part head_weights;
    bound_part *forward, *backward, *weights; /* by kind */
    bound_part *first_backward;               /* of a task */
} bound_unit;

/* Shared by candidates with the same degrees. */
typedef struct bound_layout {
    bound_shapes tp, cp, ep, data, expert, replica, world;
} bound_layout;

/* Equal pipeline ranks. */
typedef struct bound_stage {
    uint32_t rank;          /* one of them */
    uint32_t *layers;       /* by kind: how many */
    uint32_t (*chunks)[2];  /* by chunk: first layer, and one past the last */
    bool is_first, is_last; /* stage 0, the last stage */
    work_kernel_sum norm, update;
    double gather_ns; /* of new weights, at the end */
    double reduce_ns, last_reduce_ns;
    bound_load load; /* of these */
    bound_load gather_load,
        /* per micro-batch: of weights, and of gradients if they are reduced each time */
        again_load;
    double *kind_gather_ns;  /* ZeRO 3, by kind: weights of a layer; NULL: they stay */
    double *chunk_reduce_ns; /* by chunk: reductions per micro-batch; NULL: once per step */
} bound_stage;

/* The division of a model into stages, and the data-parallel traffic. */
typedef struct bound_cut {
    search_candidate like;
    uint32_t *stage_of; /* by pipeline rank */
    bound_stage *stages;
    uint32_t count;
} bound_cut;

struct search_bounds {
    bool is_torus;             /* collectives of a torus of links (coll_torus.h) */
    struct nccl_custom *table; /* of collectives, where the machine has a file; NULL: none */
    orr_net_config dims;
    run_chip found;
    const orr_chip *chip; /* of found; NULL: only peaks are known */
    double deviations;    /* of the slowest device from the mean one */
    orr_system system;
    bool has_times;           /* collectives are NCCL's */
    double up_rate, out_rate; /* of a rank's port, bytes per ns; 0: links are not ports */
    uint32_t *kind_of;        /* by layer */
    uint64_t first_of[BOUND_KINDS];
    uint32_t kinds;
    bound_unit *units;
    size_t unit_count, unit_room;
    orr_map *unit_of;      /* by key */
    uint32_t *unit_groups; /* the first unit of each */
    size_t group_count, group_room;
    orr_map *group_of; /* by key: its last unit */
    bound_layout *layouts;
    size_t layout_count, layout_room;
    orr_map *layout_of;
    bound_cut *cuts;
    size_t cut_count, cut_room;
    orr_map *cut_of;
    orr_arena **arenas; /* of groups, then of cuts */
    size_t arena_count;
};

static inline double bound_max(double a, double b)
{
    return a > b ? a : b;
}

/* hold: slowdown of computations. */
static inline double bound_at(const bound_entry *e, double slow, double hold)
{
    double most = BOUND_NEVER;
    for (unsigned i = 0; i < BOUND_LINES; i++)
        most = bound_max(most,
                         hold * (e->line[i].fixed + e->line[i].clocked * slow) + e->line[i].moving);
    return most;
}

/* Weight gradients are separate tasks. */
static inline bool bound_is_cut(const search_candidate *c)
{
    return c->pipeline == ORR_PIPELINE_ZERO_BUBBLE || c->pipeline == ORR_PIPELINE_ZB_V;
}

/* The second chunk runs in the opposite direction: rank 0 has both ends. */
static inline bool bound_is_v(const search_candidate *c)
{
    return c->pipeline == ORR_PIPELINE_ZB_V;
}

/* Where in the model a chunk of a pipeline rank is. */
static inline uint32_t bound_stage_of(const search_candidate *c, uint32_t rank, uint32_t chunk)
{
    return chunk * c->pp + (bound_is_v(c) && chunk % 2 ? c->pp - 1 - rank : rank);
}

uint64_t bound_unit_key(const search_candidate *c);
uint64_t bound_layout_key(const search_candidate *c);
const bound_layout *bound_layout_of(const struct search_bounds *b, const search_candidate *c);
work_device bound_device(const orr_plan_search *s);

static inline void bound_add_load(bound_load *x, const bound_load *more, double times)
{
    x->up_ns += times * more->up_ns;
    x->out_ns += times * more->out_ns;
}

/* Lower bounds on communication, ns: in the fastest group; between ranks `stride` apart.  Adds its
 * load on a rank's ports to load. */
double bound_collective_ns(const struct search_bounds *b,
                           const bound_shapes *shapes,
                           orr_collective kind,
                           uint64_t bytes,
                           bound_load *load);
double bound_message_ns(const struct search_bounds *b, uint32_t stride, uint64_t bytes);

/* All units and layouts that the list needs. */
orr_code bound_make_units(orr_plan_search *s, orr_error *err) ORR_MUST_CHECK;

#endif
