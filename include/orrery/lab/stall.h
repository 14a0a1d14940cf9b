/* SPDX-License-Identifier: Apache-2.0 */
/* stall.h - why a simulation is deadlocked: which ranks wait, where, for what, and the root cause.
 *
 *     if (orr_run_to_end(run, &err)) {
 *         const orr_stall *stall = orr_run_stall(run);             // NULL: it failed in another way
 *         for (size_t i = 0; stall && i < stall->line_count; i++)
 *             fprintf(stderr, "  %s\n", stall->lines[i]);
 *     }
 *
 * Ranks that wait in the same way are one item.  All texts live as long as the simulation. */
#ifndef ORRERY_LAB_STALL_H
#define ORRERY_LAB_STALL_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum orr_stall_cause {
    ORR_STALL_NONE = 0,            /* it waits for others that are stalled themselves */
    ORR_STALL_SIZE_MISMATCH,       /* the message that arrived has another size */
    ORR_STALL_TAG_MISMATCH,        /* ... another tag */
    ORR_STALL_NO_PARTNER,          /* nobody sends or receives it */
    ORR_STALL_MEMBER_ABSENT,       /* a rank never joins the collective */
    ORR_STALL_COLLECTIVE_MISMATCH, /* a rank runs another collective instead */
    ORR_STALL_STREAM_NUMBERS,      /* ranks number the chunks of the same collective differently */
    ORR_STALL_NOT_POWER_OF_TWO,    /* halving-doubling over such a number of ranks */
    ORR_STALL_CUSTOM_SPLITS,       /* a custom collective split into several chunks */
    ORR_STALL_CUSTOM_NODE,         /* a custom collective with a node that never ends */
    ORR_STALL_EMPTY_ALL_GATHER,    /* an all-gather of 0 bytes */
    ORR_STALL_NO_DIMENSION,        /* a collective without any dimension */
    ORR_STALL_NOTHING_IN_FLIGHT,   /* nodes are ready, but only a completion would start them */
    ORR_STALL_DEPENDENCY_CYCLE,    /* the node waited for depends on itself */
    ORR_STALL_CHUNK_ORDER,  /* ranks run chunks in different orders: a deadlock through queues */
    ORR_STALL_CYCLE,        /* ranks wait for each other */
    ORR_STALL_LOST_MESSAGE, /* the network model never delivered it */
    ORR_STALL_UNKNOWN,
    ORR_STALL_CAUSES
} orr_stall_cause;

ORR_API const char *orr_stall_cause_name(orr_stall_cause cause); /* "size_mismatch" */

#define ORR_STALL_NO_RANK UINT32_MAX

/* Ranks that wait in the same way.  Details are those of the first. */
typedef struct orr_stall_item {
    orr_stall_cause cause; /* NONE: see text for whom it waits */
    const char *ranks;     /* "0-3, 8" */
    uint32_t first_rank, rank_count;
    uint64_t node; /* its id */
    const char *name;
    orr_where where;
    const char
        *waits_for;   /* "message", "receiver", "collective", "queue", "completion", "nothing" */
    uint32_t peer;    /* ORR_STALL_NO_RANK: no single one */
    bool has_message; /* tag and size are those of a message */
    uint32_t tag;
    uint64_t size;
    bool is_collective; /* the following fields are valid */
    const char *kind;   /* "ALL_REDUCE" */
    uint64_t collective_size;
    const char *group;      /* "": all ranks */
    uint32_t sequence;      /* which collective of the group on this rank, from 0 */
    bool has_stream;        /* the following fields are valid */
    uint64_t stream;        /* the chunk's number */
    uint32_t phase, phases; /* from 1 */
    uint32_t dimension;
    const char *place; /* as text: node 3 "grads": ALL_REDUCE of ... */
    const char *text;  /* as text: the cause; or what it waits for, and why that does not come */
} orr_stall_item;

typedef struct orr_stall {
    uint32_t ranks, unfinished;
    orr_stall_cause cause;
    const char *summary; /* the root cause, in short */
    const orr_stall_item *causes;
    size_t cause_count;
    const orr_stall_item *cycle; /* each waits for the next one, the last one for the first */
    size_t cycle_count, cycle_length;
    const orr_stall_item *waits;
    size_t wait_count, waits_left_out; /* items; ranks in none of them */
    const char *const *lines;          /* the full explanation, at most about 20 lines */
    size_t line_count;
} orr_stall;

#ifdef __cplusplus
}
#endif
#endif
