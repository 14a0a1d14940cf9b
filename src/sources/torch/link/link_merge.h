/* SPDX-License-Identifier: Apache-2.0 */
/* link_merge.h - making one list of nodes out of both traces: the plan, shared by the steps that fill it in. */
#ifndef ORR_PYTORCH_LINK_MERGE_H
#define ORR_PYTORCH_LINK_MERGE_H

#include "link_impl.h"

#include "base/memory/map.h"

/* A node to be: from the host trace, from the device trace, from both, or a thread that only the clock knows. */
typedef struct link_plan {
    double key;      /* its place in the order: when it started */
    uint32_t parent; /* in the plan */
    uint32_t host;   /* node of the host trace, or LINK_NONE */
    uint32_t event;  /* of the device trace, or LINK_NONE */
    uint32_t thread; /* this is the node of a thread, or LINK_NONE */
    uint64_t id;     /* in the result */
} link_plan;

typedef struct link_merger {
    orr_link *l;
    link_plan *plan; /* the process is the first */
    size_t room;
    uint32_t count;
    uint32_t *by_id;        /* host nodes by ascending id */
    uint32_t *op_of;        /* host node -> operator */
    uint32_t *host_of;      /* operator -> host node */
    uint32_t *parent_op;    /* operator -> operator around it */
    uint32_t *plan_of_host; /* places in the plan, or LINK_NONE */
    uint32_t *plan_of_op;
    uint32_t *plan_of_event; /* of device operations */
    uint32_t *thread_plan;   /* by thread */
    orr_map *calls;          /* correlation -> the first call that has it */
    orr_map *host_by_id;
    double last_ts;
    bool failed; /* out of memory */
} link_merger;

/* link_merge.c: which nodes there are, and who is whose parent. */
orr_code link_merge_plan(link_merger *m, orr_error *err) ORR_MUST_CHECK;
void link_merge_fini(link_merger *m);
/* Place in by_thread.list of the first operator of a thread that starts at ts or later (is_after: later). */
uint32_t link_merge_next(const link_merger *m, uint32_t tid, double ts, bool is_after);
uint32_t link_merge_innermost(const link_merger *m, uint32_t tid, double ts);

/* link_names.c: pairs without record-function ids. */
bool link_merge_has_ids(const link_merger *m);
orr_code link_merge_match_names(link_merger *m, orr_error *err) ORR_MUST_CHECK;

/* link_order.c: host nodes by id; all nodes by time, and numbered. */
orr_code link_merge_order_hosts(link_merger *m, orr_error *err) ORR_MUST_CHECK;
orr_code link_merge_number(link_merger *m, uint32_t **order_out, orr_error *err) ORR_MUST_CHECK;
/* link_fill.c: the nodes themselves take the place of the host trace's. */
orr_code link_merge_fill(link_merger *m, const uint32_t *order, orr_error *err) ORR_MUST_CHECK;
/* link_edges.c: what waits for what. */
orr_code link_merge_edges(link_merger *m, orr_error *err) ORR_MUST_CHECK;

#endif
