/* SPDX-License-Identifier: Apache-2.0 */
/* check_order.h - ranks that are always at the same place, as check_units.c finds and check_order.c
 * runs them. */
#ifndef ORR_CHECK_ORDER_H
#define ORR_CHECK_ORDER_H

#include "check_groups.h"

/* Ranks of a shape whose groups are alike, however far one looks. */
typedef struct chk_unit {
    uint32_t shape;
    uint32_t rank;  /* the lowest of them */
    size_t port_at; /* where its ports begin in meeting_of */
} chk_unit;

/* A *meeting* stands for groups that are the same up to renaming: in each of them, the same units
 * through the same ports. */
typedef struct chk_party {
    uint32_t unit, port;
} chk_party;

typedef struct chk_units {
    chk_unit *all; /* by lowest rank */
    uint32_t count;
    uint32_t *of_rank;    /* ORR_NO_NODE: could not be read */
    uint32_t *meeting_of; /* by unit and port */
    uint32_t *place_of;   /* ... and which of its parties that is */
    uint32_t meeting_count;
    chk_party *parties;    /* by meeting, then unit, then port */
    size_t *meeting_first; /* those of meeting m: [meeting_first[m] .. meeting_first[m + 1]) */
} chk_units;

/* In k's scratch.  False: no memory. */
bool chk_units_find(chk_run *k, const chk_issues *s, chk_units *out);

#endif
