/* SPDX-License-Identifier: Apache-2.0 */
/* chakra_convert.h - what Chakra's converter makes of a linked trace, before it is written: shared
 * by the files that write it and that play it through. */
#ifndef ORR_SOURCES_PYTORCH_CONVERT_COMPAT_H
#define ORR_SOURCES_PYTORCH_CONVERT_COMPAT_H

#include "sources/torch/read/linked.h"

#include "base/memory/map.h"

#define CHAKRA_NONE UINT32_MAX

/* An edge of a chain: what one item depends on, in the order in which that was found. */
typedef struct chakra_dep {
    uint32_t from, next; /* items; next: another edge of the same item */
} chakra_dep;

/* Items are the nodes of the file, each id once, in file order; everything is by item. */
typedef struct chakra_plan {
    const orr_linked *l;
    uint32_t count;
    uint32_t *node;   /* the item's node in l */
    uint32_t *parent; /* item, or NONE */
    uint8_t *type;    /* orr_node_type */
    uint8_t *state;   /* bits below */
    orr_str *group;   /* pg_name, after a send or receive has taken over that of its parent */
    uint32_t *dep_first;
    uint32_t *thread_dep;          /* inter_thread_dep; NONE: none, MISSING: not in the file */
    uint32_t *child_first, *child; /* children in file order */
    uint32_t *by_id;               /* all items, ascending by id */
    uint32_t *created; /* items in the order in which chakra_converter makes nodes of them */
    uint32_t created_count;
    chakra_dep *deps;
    size_t dep_count, dep_room;
    orr_map *by_key; /* id -> item */
    orr_arena *arena;
} chakra_plan;

enum {
    CHAKRA_CREATED = 1,  /* it becomes a node */
    CHAKRA_HAS_CTRL = 2, /* its parent was a node before it */
    CHAKRA_NEEDED = 4,   /* some node depends on it */
};
#define CHAKRA_MISSING (UINT32_MAX - 1)

/* On failure there is nothing to end. */
orr_code chakra_plan_make(const orr_linked *l, chakra_plan *p, orr_error *err);
void chakra_plan_end(chakra_plan *p);

static inline const linked_node *chakra_node(const chakra_plan *p, uint32_t item)
{
    return &p->l->nodes[p->node[item]];
}

/* Nodes that nothing depends on and that depend on nothing are left out. */
static inline bool chakra_is_written(const chakra_plan *p, uint32_t item)
{
    return (p->state[item] & CHAKRA_CREATED) &&
           (p->dep_first[item] != CHAKRA_NONE || (p->state[item] & CHAKRA_NEEDED));
}

/* Whole microseconds; none for the steps of optimizers. */
uint64_t chakra_duration(const linked_node *n);

/* chakra_simulate.c: the lines of --simulate. */
orr_code chakra_simulate(const orr_linked *l, orr_line_sink say, void *sink, orr_error *err);

#endif
