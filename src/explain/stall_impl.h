/* SPDX-License-Identifier: Apache-2.0 */
/* stall_impl.h - shared by stall*.c: the wait-for graph.
 *
 * Its vertices are *waits*: a node that waits for a message, a chunk (stream) of a collective, a
 * rank with nothing running.  An *edge* means: this wait can end only after that one.  A wait
 * without edges has a *cause*: no future event would end it.
 *
 *     stall_waits.c   waits, why a node is not started, edges of messages and of chunks
 *     stall.c         causes or the shortest cycle, as text */
#ifndef ORR_STALL_IMPL_H
#define ORR_STALL_IMPL_H

#include <orrery/lab/stall.h>

#include "run/match.h"
#include "run/run_state.h"

#include "base/text/text.h"

typedef enum orr__wait_type {
    ORR__WAIT_MESSAGE,  /* a node, for a message */
    ORR__WAIT_RECEIVER, /* a node with a rendezvous, for its receiver */
    ORR__WAIT_STREAM,   /* a chunk of a collective */
    ORR__WAIT_NOTHING,  /* a running node that nothing will end */
    ORR__WAIT_STARVED   /* ready nodes with free slots, for any completion of the rank */
} orr__wait_type;

typedef struct orr__wait {
    uint32_t rank, place;
    orr__wait_type type;
    const sys_stream *stream;
    uint32_t message; /* the first of its messages; the others are linked through orr__stall.next */
    orr_stall_cause cause;
    /* Of the cause, or NONE: a rank, and one of its nodes; for a mismatch, the existing message, or
     * else the node of the future send. */
    uint32_t peer, other, via;
} orr__wait;

typedef enum orr__edge_kind {
    ORR__EDGE_NODE,      /* the peer has not started node `via`, which is blocked by `to` */
    ORR__EDGE_SENDER,    /* the peer has started to send it: `to` */
    ORR__EDGE_STREAM,    /* the peer has this chunk, which also waits */
    ORR__EDGE_QUEUE,     /* `to` is running, and this chunk is queued behind it */
    ORR__EDGE_COMPLETION /* `to` is one of those whose completion would help */
} orr__edge_kind;

typedef struct orr__edge {
    uint32_t from, to;
    orr__edge_kind kind;
    uint32_t message; /* its subject, or NONE */
    uint32_t via;     /* a place of the rank of `to`, or NONE */
} orr__edge;

/* The collectives of one rank: those that have started, in that order, then the others. */
typedef struct orr__turn {
    const cfg_group *group;
    uint32_t place;
} orr__turn;
typedef struct orr__history {
    orr__turn *turns;
    uint32_t count, started;
} orr__history;

struct orr__stall {
    orr_sim *sim;
    orr_arena *arena; /* texts and tables that live as long as the simulation */
    bool failed;      /* out of memory */

    msg_unmatched *messages; /* by destination, source, tag, size */
    uint32_t message_count;
    uint32_t *next;    /* by message: the next one of the same wait */
    uint32_t *wait_of; /* by message: the node that waits for it, or NONE */
    orr__wait *waits;
    size_t wait_count, wait_room;
    orr_map *by_place;  /* rank << 32 | place -> wait */
    orr_map *by_stream; /* address of a stream -> wait */
    orr_map *by_tag;    /* rank << 32 | tag -> wait of that stream */
    orr_map *starved;   /* rank -> its wait of that type */

    orr__edge *edges; /* while they are collected */
    size_t edge_count, edge_room;
    orr__edge *sorted;    /* by `from` */
    uint32_t *edge_first; /* by wait: in sorted */
    orr_map *resolved;    /* rank << 32 | node -> what blocks that node */
    orr__history **history;

    uint32_t *cycle; /* edges, each leading to the next one's wait */
    uint32_t cycle_length;
    uint32_t *roots; /* waits with a cause */
    uint32_t root_count;
    orr_stall result;
};
typedef struct orr__stall orr__stall;

static inline uint64_t stall_key(uint32_t rank, uint32_t low)
{
    return (uint64_t)rank << 32 | low;
}

/* ---- nodes ---- */

static inline const run_npu *npu_of(const orr__stall *st, uint32_t rank)
{
    return &st->sim->npus[rank];
}

typedef enum orr__node_state { ORR__BLOCKED, ORR__READY, ORR__STARTED } orr__node_state;

/* STARTED: running or finished. */
static inline orr__node_state orr__state_of(const run_npu *n, uint32_t place)
{
    if (n->waiting_for[place])
        return ORR__BLOCKED;
    return orr_bitset_has(&n->ready[n->graph->slot[place]], place) ? ORR__READY : ORR__STARTED;
}

static inline uint32_t orr__index_of(const run_npu *n, uint32_t place)
{
    return n->graph->node[place];
}

static inline int64_t orr__or_zero(int64_t v)
{
    return v == ORR_NO_VALUE ? 0 : v;
}

/* A value of a node; 0 if it has none. */
static inline int64_t orr__value_of(const run_npu *n, uint32_t place, const int64_t *column)
{
    return column ? orr__or_zero(column[orr__index_of(n, place)]) : 0;
}

static inline int orr__comm_type_of(const run_npu *n, uint32_t place)
{
    const int8_t *column = n->graph->t->columns.comm_type;
    return column ? column[orr__index_of(n, place)] : -1;
}

/* ---- the parts ---- */

bool orr__stall_collect(orr__stall *st);

/* The unfinished parents of a node: call with *at = 0 until NONE. */
uint32_t orr__stall_parent(const orr__stall *st, const run_npu *n, uint32_t place, uint32_t *at);
/* The index of this collective within its group on its rank, from 0. */
uint32_t orr__stall_sequence(orr__stall *st, uint32_t rank, uint32_t place);

/* Same kind, size and group. */
bool orr__stall_is_same_collective(const run_npu *a, uint32_t x, const run_npu *b, uint32_t y);

bool orr__stall_link_messages(orr__stall *st);
bool orr__stall_link_streams(orr__stall *st);

#endif
