/* SPDX-License-Identifier: Apache-2.0 */
/* info_gather.h - the figures while they are being gathered: info.c goes through the classes,
 * info_comm.c looks at their communication. */
#ifndef ORR_VIEWS_INFO_GATHER_H
#define ORR_VIEWS_INFO_GATHER_H

#include "info_meta.h"

#include "trace/set_impl.h"

typedef struct orr__group_count {
    uint32_t ranks;
    uint32_t class_mark, rank_mark; /* the last class or rank that was counted, + 1 */
} orr__group_count;

typedef struct orr__gatherer {
    orr_info *o;
    const orr_set *set;
    orr_arena *arena;         /* as long as this */
    orr_arena *scratch;       /* per class */
    uint32_t *members;        /* ranks by class, ascending: */
    uint32_t *first;          /* ... those of class k from members[first[k]] on */
    orr_map *coll_rows;       /* (group, kind) -> row */
    orr_intern *peer_keys;    /* (type, src, dst) -> row */
    orr_map *by_value;        /* a rank's own number of a group -> group */
    orr__group_count *groups; /* by number of the group */
    size_t group_room;
} orr__gatherer;

/* One class while it is being added. */
typedef struct orr__adding {
    orr__gatherer *g;
    const orr_trace *t;
    const orr_columns *c;
    const orr__class *holes; /* NULL: all ranks are equal */
    const uint32_t *ranks;   /* with holes */
    orr__class_row *row;
    uint64_t times;
    uint32_t *group_of;   /* number of a text -> number of the group */
    struct orr__own *own; /* with holes: what is to be dealt out to the ranks */
    uint64_t *moved;      /* by place in ranks: what each moves; NULL: all the same */
} orr__adding;

/* Who is in which group, over the whole set. */
orr_code orr__info_count_groups(orr__gatherer *g, orr_error *err);

/* The collectives and messages of a class: begin, one node after the other, end.  The last deals
 * out what ranks have of their own.  fini after any of them. */
orr_code orr__info_begin_class(orr__adding *a, orr_error *err);
bool orr__info_collective(orr__adding *a, uint32_t node); /* false: no memory */
bool orr__info_message(orr__adding *a, uint32_t node);
orr_code orr__info_end_class(orr__adding *a, orr_error *err);
void orr__adding_fini(orr__adding *a);

#endif
