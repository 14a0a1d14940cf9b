/* SPDX-License-Identifier: Apache-2.0 */
/* check_order.h - the collectives of all classes, as check_collectives.c gathers and check_order.c runs them. */
#ifndef ORR_CHECK_ORDER_H
#define ORR_CHECK_ORDER_H

#include "check_impl.h"

#include "../base/intern.h"

typedef struct orr__issue {
    uint32_t class_index, group, node;
    int16_t type;
    int64_t size;
    int64_t key_size; /* the size that must agree: 0 where ranks may move different amounts */
} orr__issue;

/* One class's part in a group: issues.sorted[first .. first + count), by type and size. */
typedef struct orr__member {
    uint32_t class_index;
    size_t first, count;
    uint64_t strict,
        loose; /* sums of hashes: equal for equal multisets, with size and with key_size */
} orr__member;

typedef struct orr__issues {
    orr_intern *groups; /* 0: the nameless one */
    orr__issue *all;    /* by class, then in file order */
    orr__issue *sorted; /* by group, class, type, size, place */
    size_t count, room;
    orr__member *members; /* by group, then class */
    size_t member_count;
    size_t *group_first; /* members of group g: [group_first[g], group_first[g + 1]) */
    uint64_t partial;    /* left out: over part of the network */
} orr__issues;

const char *orr__group_words(orr__check *k, const orr__issues *s, uint32_t group);
const char *orr__issue_words(orr__check *k, const orr__issue *q);

/* All groups agree on what they run.  Is there an order in which everybody can run it? */
void orr__check_order(orr__check *k, const orr__issues *s);

#endif
