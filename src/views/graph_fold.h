/* SPDX-License-Identifier: Apache-2.0 */
/* graph_fold.h - which nodes of a trace a drawing shows, and which of them share a box.  Never
 * installed. */
#ifndef ORR_GRAPH_FOLD_H
#define ORR_GRAPH_FOLD_H

#include "graph_view_impl.h"
#include "info_impl.h"

enum { ORR__MIXED = 255 }; /* a box of several node types */

typedef struct orr__box {
    uint32_t first, count; /* the first of its nodes; how many there are */
    uint64_t duration_us;  /* of all */
    orr_bytes bytes;
    uint8_t type;
    bool is_slice; /* nodes of one type from a part of the file, not a chain */
} orr__box;

typedef struct orr__link {
    uint32_t from, to; /* boxes */
    uint32_t count;    /* dependencies it stands for */
    bool is_control;   /* all of them */
} orr__link;

typedef struct orr__picture {
    orr_arena *arena;
    const orr_trace *t;
    const orr_columns *c;
    const orr_view_graph_options *opt;
    uint32_t *box; /* of each node; ORR_NO_NODE: not shown */
    orr__box *boxes;
    orr__link *links; /* by `to`, then `from` */
    uint32_t box_count, shown;
    size_t link_count;
} orr__picture;

/* Fill a picture whose arena, trace, columns and options are set. */
orr_code orr__picture_fold(orr__picture *p, orr_error *err);

#endif
