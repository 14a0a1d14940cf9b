/* SPDX-License-Identifier: Apache-2.0 */
/* conversion.h - a linked trace on its way to a trace that a simulator accepts.
 *
 * In order: conversion.c sorts the nodes, finds parents, assigns each node a role, and determines
 * kind, size, peers and group of communication; convert_graph.c finds dependencies and removes
 * cycles; convert_trace.c writes the trace.
 *
 * A node's *place* is its position by ascending id; all columns are by place. */
#ifndef ORR_SOURCES_PYTORCH_CONVERSION_H
#define ORR_SOURCES_PYTORCH_CONVERSION_H

#include "sources/torch/read/linked.h"

#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/text/text.h"

#define CONV_NONE UINT32_MAX

/* What a node is converted to. */
typedef enum conv_role {
    CONV_HOST,    /* an operator on its thread */
    CONV_GROUPS,  /* metadata */
    CONV_KERNEL,  /* work of a stream */
    CONV_COMM,    /* a kernel that communicates */
    CONV_CALL,    /* a host node for communication that has no kernel */
    CONV_TOGETHER /* the kernel of several coalesced calls: ends when they have ended */
} conv_role;

/* What a name tells about communication. */
typedef enum conv_word {
    CONV_WORD_NONE,
    CONV_WORD_COLLECTIVE,
    CONV_WORD_SEND,
    CONV_WORD_RECV,
    CONV_WORD_EITHER,   /* a kernel that sends and receives: its purpose is in the call */
    CONV_WORD_TOGETHER, /* several calls in one */
    CONV_WORD_WAIT
} conv_word;

typedef struct conv_said {
    conv_word word;
    orr_collective kind; /* of a collective */
} conv_said;

/* What is known about one communication; -1: unknown. */
typedef struct conv_call {
    orr_node_type type;
    orr_collective kind;
    int64_t bytes, src, dst, tag;
    int64_t own; /* this rank's number in the group, of a collective without a root */
    orr_str group;
    bool is_renumbered; /* the group's name is its number in the whole job: written last */
} conv_call;

typedef struct conv_link {
    uint32_t from, to;
    /* Part of threads, launches and streams, which cannot form cycles. */
    bool is_certain;
} conv_link;

typedef struct conv_state {
    const orr_linked *l;
    orr_pytorch_options opt;
    orr_pytorch_report *report;
    orr_arena *arena;
    orr_map *by_id; /* id -> place */
    uint32_t count;
    uint32_t *node;   /* in l->nodes */
    uint32_t *parent; /* place */
    uint8_t *role;    /* conv_role */
    uint8_t *said;    /* conv_word of the name */
    uint32_t
        *partner;   /* of a call: the operator that made it; of calls run together: their kernel */
    uint32_t *call; /* which of calls */
    conv_call *calls;
    size_t call_count, call_room;
    conv_link *links;
    size_t link_count, link_room;
    uint32_t *before; /* its predecessor on its thread; of kernels, on its stream */
    /* Of operators in no other: when their thread last did something; LINKED_NO_TIME: never. */
    int64_t *idle_since;
    /* Result: place p waits for dep[dep_first[p] .. dep_first[p + 1]). */
    uint32_t *dep_first, *dep;
    bool *lacks_memory; /* set where an error cannot be returned; checked after each step */
    bool lacked;        /* what it points to */
    orr_error *err;
} conv_state;

static inline const linked_node *conv_node(const conv_state *c, uint32_t place)
{
    return &c->l->nodes[c->node[place]];
}

static inline bool conv_is_host(const conv_state *c, uint32_t place)
{
    return c->role[place] == CONV_HOST;
}

static inline bool conv_is_device(const conv_state *c, uint32_t place)
{
    return c->role[place] == CONV_KERNEL || c->role[place] == CONV_COMM ||
           c->role[place] == CONV_TOGETHER;
}

static inline bool conv_has_time(const linked_node *n)
{
    return n->start_ns != LINKED_NO_TIME && n->duration_ns != LINKED_NO_TIME;
}

/* After the last nanosecond.  Only if there is a time; saturates. */
static inline int64_t conv_end(const linked_node *n)
{
    int64_t end;
    return __builtin_add_overflow(n->start_ns, n->duration_ns, &end) ? INT64_MAX : end;
}

/* A user's annotation, not an operator: its time is that of the Python code in it. */
static inline bool conv_is_annotation(const linked_node *n)
{
    enum { USER_SCOPE = 7 }; /* of RecordFunction */
    return n->scope == USER_SCOPE || orr_str_begins(n->name, "ProfilerStep#");
}

/* ---- values of an operator ---- */
typedef struct conv_recorded {
    orr_str collective, group; /* into the node's values */
    int64_t rank;              /* of the peer or the root in the group; for others one's own */
} conv_recorded;
/* The storages of all tensors, added to *ids (sorted, each once). */
bool conv_io_storages(const linked_io *io, uint64_t **ids, size_t *count, size_t *room);

/* ---- convert_graph.c: dependencies, without cycles ---- */
orr_code conv_find_deps(conv_state *c);

/* ---- conversion.c, convert_trace.c ---- */
/* Everything except the nodes, then the nodes.  A job compares the calls of all ranks before it
 * writes their traces, hence two parts; report must stay valid until the second. */
orr_code conv_prepare(const orr_linked *l,
                      const orr_pytorch_options *opt,
                      orr_pytorch_report *report,
                      conv_state **out,
                      orr_error *err) ORR_MUST_CHECK;
orr_code conv_write(conv_state *c, orr_trace **out, orr_error *err) ORR_MUST_CHECK;
void conv_close(conv_state *c); /* NULL is fine */

/* ---- values as Python prints them ----
 *
 * JSON values in the notation of Python's str(), as in the converter's files (chakra.md 4.2). */

/* Appends str(json.loads(text)), except that a top-level string keeps its quotes. `json` is one
 * value that a JSON reader has accepted.  The buffer records running out of memory. */
void python_text(orr_buf *to, orr_str json);

/* Values, shapes and types of one side of a node; the texts are in the buffers. */
orr_io python_io(orr_buf text[3], const linked_io *io);

#endif
