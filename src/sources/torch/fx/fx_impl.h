/* SPDX-License-Identifier: Apache-2.0 */
/* fx_impl.h - shared by the files of the conversion.
 *
 * fx_read.c     the capture's file, and graphs as FX prints them
 * fx_values.c   what each call is: computation, communication, a wait, nothing; who waits for
 *               whom; what is alive when
 * fx_convert.c  which captured rank stands for which others; does every message have its other
 *               end; the nodes of one captured rank, with holes; all of it together */
#ifndef ORR_SOURCES_FX_IMPL_H
#define ORR_SOURCES_FX_IMPL_H

#include "fx_graph.h"

#include "base/memory/map.h"

/* ---- calls ---- */

typedef enum fx_role {
    FX_FOLD,    /* moves no data: users of its outputs wait for its inputs */
    FX_OUTSIDE, /* before the step: left out */
    FX_COMPUTE,
    FX_COLLECT,
    FX_SEND,
    FX_RECV,
    FX_WAIT,      /* orrery.wait: later computation comes after what it waits for */
    FX_WAIT_VALUE /* wait_tensor: its output is the value waited for */
} fx_role;

typedef struct fx_call {
    uint8_t role;       /* fx_role */
    uint8_t collective; /* orr_collective */
    bool is_unknown;    /* its arithmetic is not known */
    bool is_fresh;      /* does not read what it writes */
    /* of FSDP: parameters into the buffer of an all-gather, overlapping computation */
    bool is_copy_in;
    bool is_copy_out; /* and from it */
    bool is_product;  /* as in operator_cost */
    uint32_t kernels; /* their text, of fx_calls.texts */
    uint64_t bytes;   /* of communication: comm_size */
    uint64_t flops, bytes_read, bytes_written;
    uint64_t vector_work; /* as in operator_cost */
} fx_call;

/* All calls of a graph.  Messages without a peer and collectives without a group are errors. */
typedef struct fx_calls {
    fx_call *at;       /* one for each node */
    bool *is_read;     /* parallel to graph.refs: an input that is read, not only written */
    orr_intern *texts; /* kernels, as chip.h writes them, once for all layers; 0: none */
} fx_calls;

orr_code fx_calls_make(const orr_fx *c, const fx_graph *g, fx_calls *out, orr_error *err)
    ORR_MUST_CHECK;
void fx_calls_fini(fx_calls *k);

static inline bool fx_is_communication(uint8_t role)
{
    return role == FX_COLLECT || role == FX_SEND || role == FX_RECV;
}

/* ---- memory ---- */

/* held[i]: bytes alive while node i runs. */
orr_code fx_memory(const fx_graph *g,
                   const fx_calls *calls,
                   uint64_t **held,
                   orr_fx_memory *out,
                   orr_error *err) ORR_MUST_CHECK;

/* ---- families: members and places ---- */

typedef struct fx_place {
    uint32_t group, place;
} fx_place;

typedef struct fx_families {
    const orr_fx *c;
    uint32_t count;
    uint8_t *use;       /* FX_USED and others */
    uint32_t *root;     /* with FX_ROOT: the root of a scatter or gather */
    orr_map *at;        /* family and rank -> index in ranks */
    uint32_t *group_of; /* of an index in ranks */
} fx_families;

enum {
    FX_USED = 1,
    FX_PLACES = 2, /* has messages: behaviour depends on the place */
    FX_ROOT = 4    /* one place behaves differently */
};

/* ---- dependencies ---- */

typedef struct fx_values fx_values;

typedef struct fx_deps {
    uint64_t *data, *ctrl; /* ids */
    size_t data_count, ctrl_count, data_room, ctrl_room;
} fx_deps;

orr_code fx_values_create(const fx_graph *g, const fx_calls *calls, fx_values **out, orr_error *err)
    ORR_MUST_CHECK;
void fx_values_destroy(fx_values *v);
/* What node i waits for, if it is written as `id`; 0: it is not written.  Nodes come in order.
 * after: the communication before it in its stream; 0: none. */
orr_code fx_values_next(fx_values *v,
                        uint32_t i,
                        uint64_t id,
                        uint64_t after,
                        uint32_t stream,
                        const fx_deps **out,
                        orr_error *err) ORR_MUST_CHECK;

/* ---- classes ---- */

typedef struct fx_classes {
    uint32_t *graph_of; /* rank -> index of the graph it executes */
    uint32_t *class_of; /* captured rank -> the first equal one */
} fx_classes;

#endif
