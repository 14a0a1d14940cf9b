/* SPDX-License-Identifier: Apache-2.0 */
/* layers_impl.h - what the files of this folder know about a table of layers. */
#ifndef ORR_LAYERS_IMPL_H
#define ORR_LAYERS_IMPL_H

#include <orrery/lab/layers.h>

#include "base/memory/buffer.h"
#include "base/short_forms.h"
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
    /* Reading: every line is a layer, blank ones and comments too; words it has no use for are
     * ignored, sizes may be negative, the announced number of layers is not compared. */
    bool reads_loosely;
    bool has_few_policies; /* those of lay_policy_is_converted */
    /* Expanding. */
    /* Also those of no bytes, and words that mean nothing are all-reduces. */
    bool has_all_collectives;
    bool has_bare_nodes; /* no is_cpu_op, no pass in the names of collectives */
    bool believes_count; /* the first layer is found by the announced number of layers */
    bool counts_ids_on;  /* from rank to rank */
    bool has_early_form; /* sizes without a sign, schema 0.0.4; with dimensions always */
};

static inline const orr_rules_layers *lay_rules(const orr_rules_layers *rules)
{
    static const orr_rules_layers ours;
    return rules ? rules : &ours;
}

#endif
