/* SPDX-License-Identifier: Apache-2.0 */
/* chakra.h - what the table of replaced programs takes from this room. */
#ifndef ORR_COMPAT_CHAKRA_H
#define ORR_COMPAT_CHAKRA_H

#include "sources/torch/link/link_impl.h"

extern const struct orr_rules_link chakra_link_rules;          /* chakra_trace_link */
extern const struct orr_rules_convert chakra_convert_rules;    /* chakra_converter PyTorch */
extern const struct orr_rules_issue_log chakra_timeline_rules; /* chakra_timeline_visualizer */

extern const struct orr_rules_layers chakra_text_rules, chakra_early_text_rules; /* Text */
extern const struct orr_rules_flexflow chakra_flexflow_rules;                    /* FlexFlow */
extern const struct orr_rules_view chakra_view_rules; /* chakra_visualizer */

/* ---- link ----
 *
 * Chakra_trace_link on our linker: what it keeps beside the events, and its steps in order. */

/* ---- the host trace (chakra.md 3.2) ----
 *
 * A node is kept as what linking asks for and the place of its text; what else it says is read
 * there again when it is needed.  The bytes must stay. */
typedef struct chakra_host_node {
    int64_t id, parent; /* INT64_MIN: no parent */
    int64_t rf;         /* INT64_MIN: none */
    uint64_t at;        /* its text in the file */
    uint32_t length;
    uint32_t name; /* which of the names */
    uint32_t tid;
    bool is_reached; /* hangs on the process node, directly or not */
} chakra_host_node;

typedef struct chakra_host {
    orr_str text;            /* the whole file */
    chakra_host_node *nodes; /* by ascending id, each once */
    size_t count, room;
    orr_intern *names;
    orr_str schema;       /* borrowed from names */
    uint64_t document_at; /* white space, then its opening bracket */
    uint64_t nodes_at;    /* the list of nodes in the file, from [ to after ] */
    uint64_t nodes_end;
    bool is_flat; /* the first form, 1.0.1: `parent` and flat fields */
} chakra_host;

/* Node `node` of the linked trace has `from`, a device node, in its sync_dep. */
typedef struct chakra_sync {
    uint64_t node, from;
} chakra_sync;

typedef struct chakra_link {
    orr_input *input; /* of the host trace; NULL: it was in memory */
    chakra_host host;
    uint32_t *after;     /* operator -> the one of another thread that it waits for, or LINK_NONE */
    uint32_t *op_of;     /* host node -> operator, or LINK_NONE */
    uint32_t *waits_for; /* host node -> host node of another thread, or LINK_NONE */
    uint32_t *host_of;   /* operator -> host node, or LINK_NONE */
    link_lists placed;   /* host node -> events on the device, in the order of time */
    uint64_t *new_id;    /* host node -> number in the linked trace; its device nodes follow it */
    uint64_t node_count; /* of the linked trace */
    chakra_sync *syncs;  /* by node, each pair once */
    size_t sync_count, sync_room;
} chakra_link;

static inline chakra_link *chakra_of(const orr_link *l)
{
    return l->other;
}

#endif
