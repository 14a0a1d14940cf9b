/* SPDX-License-Identifier: Apache-2.0 */
/* check_groups.h - which collectives are run by whom: gathered by check_groups.c, compared by
 * check_collectives.c, and run there. */
#ifndef ORR_CHECK_GROUPS_H
#define ORR_CHECK_GROUPS_H

#include "check_shapes.h"

/* A collective as the ranks of a shape issue it. */
typedef struct chk_issue {
    uint32_t shape, port, node;
    int16_t type;
    int64_t size;
    int64_t key_size; /* the size that must agree: 0 where ranks may move different amounts */
} chk_issue;

/* One of the groups that the ranks of a shape are in: the same for all of them, or a value of each
 * one's own. A rank is in a group through one port only.  Its part in the group:
 * issues.sorted[first .. first + count), by type and size. */
typedef struct chk_port {
    uint32_t shape;
    uint32_t group; /* ORR_NO_NODE: each rank has its own, */
    uint32_t own;   /* this one of them */
    size_t first, count;
    uint64_t strict,
        loose; /* sums of hashes: equal for equal multisets, with size and with key_size */
} chk_port;

/* Who is in a group. */
typedef struct chk_entry {
    uint32_t port, rank; /* ORR_NO_NODE: all ranks of the port's shape */
} chk_entry;

typedef struct chk_issues {
    orr_intern *groups; /* 0: the nameless one */
    chk_shapes shapes;
    chk_issue *all;      /* by shape, then in file order */
    chk_issue *sorted;   /* by port, type, size, place */
    size_t *shape_first; /* issues of shape i: all[shape_first[i] .. shape_first[i + 1]) */
    size_t count;
    chk_port *ports;      /* by shape; the first one of each is the nameless group */
    uint32_t *port_first; /* ports of shape i: [port_first[i] .. port_first[i + 1]) */
    uint32_t port_count;
    uint32_t *own_groups; /* by rank; ORR_NO_NODE: the value 0, which names none */
    size_t *own_at;       /* where those of a rank begin */
    chk_entry *entries;   /* by group, then port, then rank */
    size_t *group_first;  /* those of group g: [group_first[g] .. group_first[g + 1]) */
    bool has_partial;     /* some were left out: over part of the network */
    bool has_own;         /* some port is of each rank's own */
} chk_issues;

/* Fill an chk_issues of zeros; k->no_memory when it cannot be.  Most of it lies in k's scratch. */
void chk_issues_gather(chk_run *k, chk_issues *s);
void chk_issues_fini(chk_issues *s);

static inline uint32_t chk_group_of(const chk_issues *s, const chk_port *p, uint32_t rank)
{
    return p->group != ORR_NO_NODE ? p->group : s->own_groups[s->own_at[rank] + p->own];
}

/* The ranks of an entry. */
static inline uint32_t chk_entry_ranks(const chk_issues *s,
                                       const chk_entry *e,
                                       const uint32_t **ranks)
{
    const chk_shape *shape = &s->shapes.all[s->ports[e->port].shape];
    *ranks = e->rank == ORR_NO_NODE ? s->shapes.ranks + shape->first : &e->rank;
    return e->rank == ORR_NO_NODE ? shape->rank_count : 1;
}

#endif
