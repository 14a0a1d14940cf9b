/* SPDX-License-Identifier: Apache-2.0 */
/* link_merge.h - making one list of nodes out of both traces: the plan, shared by the steps that fill it in. */
#ifndef ORR_PYTORCH_LINK_MERGE_H
#define ORR_PYTORCH_LINK_MERGE_H

#include "link_impl.h"

#include "base/memory/map.h"

/* A node to be: from the host trace, from the device trace, from both, or a thread that only the clock knows. */
typedef struct orr__plan {
    double key;      /* its place in the order: when it started */
    uint32_t parent; /* in the plan */
    uint32_t host;   /* node of the host trace, or ORR__NONE */
    uint32_t event;  /* of the device trace, or ORR__NONE */
    uint32_t thread; /* this is the node of a thread, or ORR__NONE */
    uint64_t id;     /* in the result */
} orr__plan;

typedef struct orr__merger {
    orr_link *l;
    orr__plan *plan; /* the process is the first */
    size_t room;
    uint32_t count;
    uint32_t *by_id;        /* host nodes by ascending id */
    uint32_t *op_of;        /* host node -> operator */
    uint32_t *host_of;      /* operator -> host node */
    uint32_t *parent_op;    /* operator -> operator around it */
    uint32_t *plan_of_host; /* places in the plan, or ORR__NONE */
    uint32_t *plan_of_op;
    uint32_t *plan_of_event; /* of device operations */
    uint32_t *thread_plan;   /* by thread */
    orr_map *calls;          /* correlation -> the first call that has it */
    orr_map *host_by_id;
    double last_ts;
    bool failed; /* out of memory */
} orr__merger;

/* link_merge.c: which nodes there are, and who is whose parent. */
orr_code orr__merge_plan(orr__merger *m, orr_error *err) ORR_MUST_CHECK;
void orr__merge_fini(orr__merger *m);
/* Place in by_thread.list of the first operator of a thread that starts at ts or later (is_after: later). */
uint32_t orr__merge_next(const orr__merger *m, uint32_t tid, double ts, bool is_after);
uint32_t orr__merge_innermost(const orr__merger *m, uint32_t tid, double ts);

/* link_names.c: pairs without record-function ids. */
bool orr__merge_has_ids(const orr__merger *m);
orr_code orr__merge_match_names(orr__merger *m, orr_error *err) ORR_MUST_CHECK;

/* link_order.c: host nodes by id; all nodes by time, and numbered. */
orr_code orr__merge_order_hosts(orr__merger *m, orr_error *err) ORR_MUST_CHECK;
orr_code orr__merge_number(orr__merger *m, uint32_t **order_out, orr_error *err) ORR_MUST_CHECK;
/* link_fill.c: the nodes themselves take the place of the host trace's. */
orr_code orr__merge_fill(orr__merger *m, const uint32_t *order, orr_error *err) ORR_MUST_CHECK;
/* link_edges.c: what waits for what. */
orr_code orr__merge_edges(orr__merger *m, orr_error *err) ORR_MUST_CHECK;

#endif
