/* SPDX-License-Identifier: Apache-2.0 */
/* conversion.h - a linked trace on its way to a trace that a simulator accepts.
 *
 * In order: conversion.c sorts the nodes and finds parents; convert_calls.c decides what each node will be;
 * convert_comm.c finds kind, size, peers and group of what communicates; convert_graph.c and convert_data.c find out what
 * waits for what; convert_order.c makes sure that it can be run; convert_trace.c writes it down.
 *
 * A node's *place* is its position by ascending id; all columns are by place. */
#ifndef ORR_SOURCES_PYTORCH_CONVERSION_H
#define ORR_SOURCES_PYTORCH_CONVERSION_H

#include "sources/torch/read/linked.h"

#include "base/memory/map.h"

#define ORR__NO_PLACE UINT32_MAX

/* What becomes of a node. */
typedef enum orr__role {
    ORR__ROLE_HOST,    /* an operator on its thread */
    ORR__ROLE_GROUPS,  /* metadata */
    ORR__ROLE_KERNEL,  /* work of a stream */
    ORR__ROLE_COMM,    /* a kernel that communicates */
    ORR__ROLE_CALL,    /* a host node that stands for communication of which there is no kernel */
    ORR__ROLE_TOGETHER /* the kernel that ran several calls at once: it ends when they have ended */
} orr__role;

/* What a name says about communication. */
typedef enum orr__word {
    ORR__WORD_NONE,
    ORR__WORD_COLLECTIVE,
    ORR__WORD_SEND,
    ORR__WORD_RECV,
    ORR__WORD_EITHER,   /* a kernel that sends and receives: the call says what for */
    ORR__WORD_TOGETHER, /* several calls in one */
    ORR__WORD_WAIT
} orr__word;

typedef struct orr__said {
    orr__word word;
    orr_collective kind; /* of a collective */
} orr__said;

/* What is known about one communication; numbers -1 where nothing is. */
typedef struct orr__call {
    orr_node_type type;
    orr_collective kind;
    int64_t bytes, src, dst, tag;
    orr_str group;
} orr__call;

typedef struct orr__link {
    uint32_t from, to;
    bool
        is_certain; /* part of threads, launches and streams, which are free of cycles by themselves */
} orr__link;

typedef struct orr__conversion {
    const orr_linked *l;
    const orr_pytorch_options *opt;
    orr_pytorch_report *report;
    orr_arena *arena;
    orr_map *by_id; /* id -> place */
    uint32_t count;
    uint32_t *node;   /* in l->nodes */
    uint32_t *parent; /* place */
    uint8_t *role;    /* orr__role */
    uint8_t *said;    /* orr__word of the name */
    uint32_t
        *partner;   /* of a call: the operator that made it; of calls run together: their kernel */
    uint32_t *call; /* which of calls */
    orr__call *calls;
    size_t call_count, call_room;
    orr__link *links;
    size_t link_count, link_room;
    uint32_t *before; /* the one before it on its thread; of kernels, on its stream */
    /* In the end: what place p waits for, dep[dep_first[p] .. dep_first[p + 1]). */
    uint32_t *dep_first, *dep;
    bool *lacks_memory; /* set where nothing else can be said at once; asked after each step */
    orr_error *err;
} orr__conversion;

static inline const orr__linked_node *orr__node_at(const orr__conversion *c, uint32_t place)
{
    return &c->l->nodes[c->node[place]];
}

static inline bool orr__is_host_work(const orr__conversion *c, uint32_t place)
{
    return c->role[place] == ORR__ROLE_HOST;
}

static inline bool orr__is_device_work(const orr__conversion *c, uint32_t place)
{
    return c->role[place] == ORR__ROLE_KERNEL || c->role[place] == ORR__ROLE_COMM ||
           c->role[place] == ORR__ROLE_TOGETHER;
}

static inline bool orr__has_time(const orr__linked_node *n)
{
    return n->start_ns != ORR__NO_TIME && n->duration_ns != ORR__NO_TIME;
}

/* Behind the last nanosecond.  Only where there is a time; sums that leave the range stay at its end. */
static inline int64_t orr__end_of(const orr__linked_node *n)
{
    int64_t end;
    return __builtin_add_overflow(n->start_ns, n->duration_ns, &end) ? INT64_MAX : end;
}

/* ---- convert_words.c ---- */
bool orr__is_backend_name(orr_str name);  /* "nccl:all_reduce", "gloo:send" */
bool orr__is_call_name(orr_str name);     /* that, "c10d::allreduce_", "record_param_comms", ... */
bool orr__is_operator_name(orr_str name); /* "c10d::..." or one of its relatives */
bool orr__is_comm_kernel(orr_str name);
orr__said orr__word_of_call(orr_str name); /* of such a name, or of a collective's */
orr__said orr__word_of_kernel(orr_str name);
bool orr__peer_in_name(orr_str name, int64_t *peer); /* "nccl:send 0->1" */
int64_t orr__dtype_bytes(orr_str dtype);             /* 0: not known */

/* ---- convert_values.c: what an operator's values are ---- */
/* Bytes of all tensors; or of the tensor argument with this number, from 0.  -1: there is none. */
int64_t orr__io_bytes(const orr__linked_io *io, int argument);
/* Whole numbers among the values, in order; how many, at most `room`. */
int orr__io_numbers(const orr__linked_io *io, int64_t *out, int room, bool *lacks_memory);
typedef struct orr__recorded {
    orr_str collective, group; /* into the node's values */
    int64_t rank;              /* of the peer or the root in the group; for others one's own */
} orr__recorded;
/* What record_param_comms has as plain values, before it had attributes. */
bool orr__io_recorded(const orr__linked_io *io, orr__recorded *out, bool *lacks_memory);
/* The storages of all tensors, added to *ids (sorted, each once). */
bool orr__io_storages(const orr__linked_io *io, uint64_t **ids, size_t *count, size_t *room);

/* ---- the steps; each ORR_OK or an error ---- */
orr_code orr__find_calls(orr__conversion *c); /* convert_calls.c: roles */
orr_code orr__find_comm(orr__conversion *c);  /* convert_comm.c: calls */
orr_code orr__find_order(
    orr__conversion *c); /* convert_graph.c: threads, streams, launches, noted edges */
orr_code orr__find_data(orr__conversion *c); /* convert_data.c: through tensors */
orr_code orr__settle_order(
    orr__conversion *c); /* convert_order.c: links sorted by `to`, free of cycles */
orr_code orr__write_trace(orr__conversion *c, orr_trace **out); /* convert_trace.c */

/* False: `to` began before `from` had ended, so it cannot have waited. */
bool orr__clock_allows(const orr__conversion *c, uint32_t from, uint32_t to);
bool orr__link_add(orr__conversion *c, uint32_t from, uint32_t to, bool is_certain);

#endif
