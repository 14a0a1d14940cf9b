/* SPDX-License-Identifier: Apache-2.0 */
/* chakra.h - what this room exports to table.c, and the state of chakra_trace_link's rules. */
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
 * The state that chakra_trace_link's rules keep beside the linker's own. */

/* ---- the host trace (chakra.md 3.2) ----
 *
 * A node holds only what linking needs and the offset of its text; everything else is parsed again
 * from there when it is written.  So the bytes must outlive it. */
typedef struct chakra_host_node {
    int64_t id, parent; /* INT64_MIN: no parent */
    int64_t rf;         /* INT64_MIN: none */
    uint64_t at;        /* offset of its text in the file */
    uint32_t length;
    uint32_t name; /* index into the names */
    uint32_t tid;
    bool is_reached; /* the process node is an ancestor */
} chakra_host_node;

typedef struct chakra_host {
    orr_str text;            /* the whole file */
    chakra_host_node *nodes; /* ascending by id, without duplicates */
    size_t count, room;
    orr_intern *names;
    orr_str schema;       /* points into `names` */
    uint64_t document_at; /* offset of the document: white space, then its opening brace */
    uint64_t nodes_at;    /* the list of nodes, from [ to just after ] */
    uint64_t nodes_end;
    bool is_flat; /* the first form, schema 1.0.1: `parent` and flat fields */
} chakra_host;

/* The sync_dep of node `node` of the linked trace contains the device node `from`. */
typedef struct chakra_sync {
    uint64_t node, from;
} chakra_sync;

typedef struct chakra_link {
    orr_input *input; /* of the host trace; NULL: read from memory */
    chakra_host host;
    uint32_t *after;     /* operator -> the operator of another thread it waits for, or LINK_NONE */
    uint32_t *op_of;     /* host node -> operator, or LINK_NONE */
    uint32_t *waits_for; /* host node -> host node of another thread, or LINK_NONE */
    uint32_t *host_of;   /* operator -> host node, or LINK_NONE */
    link_lists placed;   /* host node -> its events on the device, by time */
    uint64_t *new_id;    /* host node -> id in the linked trace; its device nodes have the next
                          * ids */
    uint64_t node_count; /* of the linked trace */
    chakra_sync *syncs;  /* sorted by node, without duplicates */
    size_t sync_count, sync_room;
} chakra_link;

static inline chakra_link *chakra_of(const orr_link *l)
{
    return l->other;
}

#endif
