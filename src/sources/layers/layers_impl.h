/* SPDX-License-Identifier: Apache-2.0 */
/* layers_impl.h - what the files of this folder know about a table of layers, and the words in which policies are
 * written down.
 *
 *     lay_after d = {0};
 *     lay_wait_for(&d, x->now[i - 1].comm[ORR__FWD]);     // nothing happens when that node does not exist
 *     lay_layer_comp(x, i, ORR__FWD, &d);
 *     lay_layer_comm(x, i, ORR__FWD);
 *
 * Ids count up from 0.  The first failure sticks and turns all later calls into nothing, so a policy reads as a
 * list of nodes. */
#ifndef ORR_LAYERS_IMPL_H
#define ORR_LAYERS_IMPL_H

#include <orrery/lab/layers.h>

#include "base/memory/buffer.h"
#include "base/memory/memory.h"
#include "trace/builder.h"

/* ---- the table ---- */

struct orr_layers {
    orr_policy policy;
    orr_policy_args args;
    orr_layer *layers;
    size_t count, room;
    orr_arena *texts;
    /* Of a table that was read; all zero in one that was made. */
    const char *label;
    orr_str source;         /* the whole text, its lines ended by \n */
    int64_t declared_count; /* the number in the second line */
    uint32_t header_line, args_column, count_line, first_comm_column;
    uint32_t *lines; /* of layer i */
    size_t line_room;
};

/* A place in the file; none when the table was not read. */
orr_where lay_where(const orr_layers *t, uint32_t line, uint32_t column);
/* The same for layer i. */
orr_where lay_layer_where(const orr_layers *t, size_t i, uint32_t column);

/* ---- words ---- */

typedef enum lay_comm {
    ORR__COMM_NONE,
    ORR__COMM_ALL_REDUCE,
    ORR__COMM_ALL_GATHER,
    ORR__COMM_REDUCE_SCATTER,
    ORR__COMM_ALL_TO_ALL,
    ORR__COMM_ALL_REDUCE_ALL_TO_ALL
} lay_comm;

bool lay_comm_find(orr_str name, lay_comm *out);
bool lay_policy_is_converted(orr_policy p);  /* does chakra_converter know it? */
bool lay_policy_is_for_layers(orr_policy p); /* may it stand in the thirteenth column? */

/* ---- rules ---- */

/* What chakra_converter does differently (chakra.md 4.2, 4.3). */
struct orr_rules_layers {
    /* Reading: every line is a layer, blank ones and comments too; words it has no use for are not looked at, sizes
     * may be negative, the announced number of layers is not compared. */
    bool reads_loosely;
    bool has_few_policies; /* those of lay_policy_is_converted */
    /* Expanding. */
    bool
        has_all_collectives; /* also those of no bytes, and words that mean nothing are all-reduces */
    bool has_bare_nodes;     /* no is_cpu_op, no pass in the names of collectives */
    bool believes_count;     /* the first layer is found by the announced number of layers */
    bool counts_ids_on;      /* from rank to rank */
    bool has_early_form;     /* sizes without a sign, schema 0.0.4; with dimensions always */
};

static inline const orr_rules_layers *lay_rules(const orr_rules_layers *rules)
{
    static const orr_rules_layers ours;
    return rules ? rules : &ours;
}

/* ---- expanding ---- */

typedef enum lay_pass { ORR__FWD, ORR__IG, ORR__WG, ORR__PASSES } lay_pass;

#define ORR__NO_ID UINT64_MAX

/* The nodes of one layer in one pass.  comm is what has to be waited for when the collective is meant: its
 * (last) node, or the compute node when there is nothing to send. */
typedef struct lay_layer_ids {
    uint64_t comp[ORR__PASSES], comm[ORR__PASSES];
} lay_layer_ids;

enum { ORR__LAYER_DIMS_MAX = 64 };

typedef struct lay_expander {
    const orr_layers *t;
    const orr_layers_expand *opt;
    const orr_rules_layers *rules;
    bool is_early;       /* rules->has_early_form, here */
    size_t count;        /* of layers */
    int64_t declared;    /* what the second line says, or count */
    uint32_t inner_dims; /* the dimensions 0 to inner_dims - 1 are those of a hybrid's first kind */
    bool is_inner_alone; /* a group of the first kind has one rank: it has nothing to send */
    bool is_outer_alone; /* the same for the second kind */
    const uint32_t *restart; /* by layer: the first to run forward again, or its own number */
    orr_trace *trace;
    orr__builder b;
    lay_layer_ids *now, *before; /* this pass and the previous one, by layer */
} lay_expander;

typedef struct lay_after {
    uint64_t ids[4];
    size_t count;
} lay_after;

/* Once, and only if there is such a node. */
void lay_wait_for(lay_after *d, uint64_t id);

/* The compute node of layer i; its id stands in x->now. */
uint64_t lay_layer_comp(lay_expander *x, size_t i, lay_pass pass, const lay_after *d);
/* The collective behind the compute node; likewise. */
uint64_t lay_layer_comm(lay_expander *x, size_t i, lay_pass pass);
/* The collective behind some other node; ORR__NO_ID when there is nothing to send.  x->now is left alone. */
uint64_t lay_layer_comm_after(lay_expander *x, size_t i, lay_pass pass, const lay_after *d);
/* Forward once more, compute and collective, behind d; what has to be waited for. */
uint64_t lay_layer_again(lay_expander *x, size_t i, const lay_after *d);

/* All nodes of one pass through the network. */
void lay_expand_pass(lay_expander *x);

#endif
