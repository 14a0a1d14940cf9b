/* SPDX-License-Identifier: Apache-2.0 */
/* fx_graph.h - captured steps in memory: every reader builds one, the conversion starts from it.
 *
 *     orr_fx *c;
 *     if (fx_create("step.json", &c, err)) ...
 *     c->world_size = 8;
 *     fx_add_group(c, ranks, 8, 0, 0, err);                 // group 0, of family 0: all ranks, always there
 *     fx_graph *g;
 *     fx_add_graph(c, 0, 0, &g, err);                       // what rank 0 does
 *     fx_add_text(g, FX_OPS, orr_str_of("aten.mm.default"), &op, err);
 *     fx_add_storage(g, 4096, FX_KEPT_PARAMETER, &s, err);
 *     fx_add_tensor(g, &(fx_tensor_draft){.shape = ..., .rank = 2, .storage = s, ...}, &t, err);
 *     fx_add_node(g, &(fx_node_draft){.op = op, .in = in, .in_count = 2, ...}, err);
 *     code = fx_check(c, err);                              // once, when all is there
 *     orr_fx_close(c);
 *
 * Everything is numbered in the order of adding, in one array per kind; numbers may be used before
 * their definition: fx_check verifies that all exist.  Adding copies. Memory grows with what is
 * added, never by a count in a file. */
#ifndef ORR_SOURCES_FX_GRAPH_H
#define ORR_SOURCES_FX_GRAPH_H

#include <orrery/lab/fx.h>

#include "base/short_forms.h"

#define FX_NONE UINT32_MAX   /* no group, module, line */
#define FX_NO_PEER INT64_MIN /* no peer, root, tag */
enum { FX_DIMS_MOST = 64 };  /* as in PyTorch */
enum { FX_RECENT = 256 };    /* shapes that are reused */

typedef enum fx_phase { FX_SETUP, FX_FORWARD, FX_BACKWARD, FX_OPTIMIZER } fx_phase;

/* Why a storage outlives the step. */
typedef enum fx_kept { FX_KEPT_NOT, FX_KEPT_PARAMETER, FX_KEPT_BUFFER, FX_KEPT_STATE } fx_kept;

/* The tables of texts. */
typedef enum fx_texts { FX_OPS, FX_MODULES, FX_LINES, FX_TEXTS } fx_texts;

typedef struct fx_storage {
    uint64_t bytes;
    fx_kept kept;
    bool is_result; /* returned to the caller: stays alive */
} fx_storage;

typedef struct fx_tensor {
    size_t dims; /* shape from dims on, then the stride if has_stride; tensors may share them */
    uint64_t offset;
    uint64_t byte; /* where it stands in the file */
    uint32_t storage;
    uint32_t element_bytes; /* 0: unknown type */
    uint8_t rank;
    bool has_stride;
} fx_tensor;

typedef struct fx_node {
    size_t refs; /* numbers of tensors: in, then out, then writes */
    uint64_t byte;
    /* The other end of a message, or the root of a collective: a place in the group. */
    int64_t peer;
    int64_t tag;
    uint32_t op, module, line, group;
    uint32_t in_count, out_count, writes_count;
    uint8_t phase; /* fx_phase */
    bool is_view, is_causal, is_transposed;
    const char *equation; /* of einsum; NULL: none */
} fx_node;

/* Where the sizes of a tensor are in dims. */
typedef struct fx_dims {
    size_t first;
    uint32_t count;
} fx_dims;

typedef struct fx_graph {
    uint32_t rank;
    uint64_t byte;
    struct {
        orr_str *at;
        size_t count, room;
    } texts[FX_TEXTS];
    fx_storage *storages;
    fx_tensor *tensors;
    fx_node *nodes;
    uint64_t *dims;
    uint32_t *refs;
    size_t storage_count, tensor_count, node_count, dim_count, ref_count;
    size_t storage_room, tensor_room, node_room, dim_room, ref_room;
    fx_dims recent[FX_RECENT]; /* by their hash */
    orr_arena *arena;          /* the capture's */
} fx_graph;

typedef struct fx_group {
    size_t first; /* in ranks */
    uint32_t count, family;
    uint64_t byte;
} fx_group;

struct orr_fx {
    orr_arena *arena;
    char *path; /* for messages */
    uint32_t world_size;
    uint32_t step;
    fx_group *groups;
    uint32_t *ranks; /* of all groups */
    size_t group_count, group_room, rank_count, rank_room;
    fx_graph **graphs; /* one for each captured rank, ascending after fx_check */
    size_t graph_count, graph_room;
    orr_fx_note *notes;
    size_t note_count, note_room;
};

orr_code fx_create(const char *path, orr_fx **out, orr_error *err) ORR_MUST_CHECK;

orr_code fx_add_group(orr_fx *c,
                      const uint32_t *ranks,
                      size_t count,
                      uint32_t family,
                      uint64_t byte,
                      orr_error *err) ORR_MUST_CHECK;
orr_code fx_add_graph(orr_fx *c, uint32_t rank, uint64_t byte, fx_graph **out, orr_error *err)
    ORR_MUST_CHECK;

orr_code fx_add_note(orr_fx *c, orr_str text, uint64_t count, orr_error *err) ORR_MUST_CHECK;

/* Always a new number, as in the file. */
orr_code fx_add_text(fx_graph *g, fx_texts table, orr_str text, uint32_t *number, orr_error *err)
    ORR_MUST_CHECK;
orr_code fx_add_storage(fx_graph *g, uint64_t bytes, fx_kept kept, uint32_t *number, orr_error *err)
    ORR_MUST_CHECK;

typedef struct fx_tensor_draft {
    const uint64_t *shape, *stride; /* stride NULL: contiguous */
    uint32_t rank;                  /* FX_DIMS_MOST at most */
    uint32_t element_bytes;
    uint32_t storage;
    uint64_t offset; /* in elements */
    uint64_t byte;   /* where it stands in the file */
} fx_tensor_draft;

orr_code fx_add_tensor(fx_graph *g, const fx_tensor_draft *t, uint32_t *number, orr_error *err)
    ORR_MUST_CHECK;

typedef struct fx_node_draft {
    uint32_t op;
    uint32_t module, line; /* FX_NONE: not known */
    fx_phase phase;
    const uint32_t *in, *out, *writes; /* tensors */
    size_t in_count, out_count, writes_count;
    bool is_view; /* the outputs are views of the inputs */
    bool is_causal, is_transposed;
    orr_str equation;  /* of einsum; empty: none */
    uint32_t group;    /* FX_NONE: no communication */
    int64_t peer, tag; /* FX_NO_PEER: none */
    uint64_t byte;     /* where it stands in the file */
} fx_node_draft;

orr_code fx_add_node(fx_graph *g, const fx_node_draft *n, orr_error *err) ORR_MUST_CHECK;

/* By its namespace: c10d.*, _c10d_functional.* and their kin. */
bool fx_is_comm_op(orr_str op);

/* Does everything referenced exist, and do groups hold the ranks that use them?  Tensors may be
 * larger than their storages: those are as first seen, and FSDP empties and fills them. err->where
 * has the byte; a reader that knows lines adds them. */
orr_code fx_check(orr_fx *c, orr_error *err) ORR_MUST_CHECK;

/* ---- accessors ---- */

static inline const uint64_t *fx_shape(const fx_graph *g, const fx_tensor *t)
{
    return g->dims + t->dims;
}

static inline const uint64_t *fx_stride(const fx_graph *g, const fx_tensor *t)
{
    return t->has_stride ? g->dims + t->dims + t->rank : NULL;
}

static inline const uint32_t *fx_in(const fx_graph *g, const fx_node *n)
{
    return g->refs + n->refs;
}

static inline const uint32_t *fx_out(const fx_graph *g, const fx_node *n)
{
    return g->refs + n->refs + n->in_count;
}

static inline const uint32_t *fx_writes(const fx_graph *g, const fx_node *n)
{
    return g->refs + n->refs + n->in_count + n->out_count;
}

static inline orr_str fx_text(const fx_graph *g, fx_texts table, uint32_t number)
{
    return g->texts[table].at[number];
}

/* Empty: none. */
static inline orr_str fx_equation(const fx_node *n)
{
    return n->equation ? orr_str_of(n->equation) : orr_str_of("");
}

/* An input error at this byte of the file. */
orr_code fx_fail(const orr_fx *c, uint64_t byte, orr_error *err, const char *fmt, ...)
    ORR_PRINTF(4, 5);

#endif
