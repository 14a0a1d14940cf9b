/* SPDX-License-Identifier: Apache-2.0 */
/* export_impl.h - shared by the readers of exported programs. */
#ifndef ORR_SOURCES_EXPORT_IMPL_H
#define ORR_SOURCES_EXPORT_IMPL_H

#include <orrery/lab/export.h>

#include "sources/torch/fx/fx_graph.h"

#include "base/formats/json.h"
#include "base/memory/map.h"
#include "base/short_forms.h"

/* ---- export_symbols.c: sizes that are symbols ---- */

typedef struct export_symbols export_symbols;

/* given: "s0=8,s1=128", or NULL. */
orr_code symbols_create(const char *given, export_symbols **out, orr_error *err) ORR_MUST_CHECK;
void symbols_destroy(export_symbols *s); /* NULL is fine */
/* The limits of "range_constraints". */
orr_code symbols_ranges(export_symbols *s, orr_json_value ranges, orr_error *err) ORR_MUST_CHECK;
/* A SymInt whose expression is a symbol alone may have an example value. */
orr_code symbols_learn(export_symbols *s, orr_json_value sym_int, orr_error *err) ORR_MUST_CHECK;
/* The value of a SymInt: a number, or an expression of symbols. */
orr_code symbols_value(export_symbols *s, orr_json_value sym_int, int64_t *out, orr_error *err)
    ORR_MUST_CHECK;
/* Fails if the caller gave an unknown symbol.  root is for the place. */
orr_code symbols_check(const export_symbols *s, orr_json_value root, orr_error *err) ORR_MUST_CHECK;
/* The symbols that were evaluated, in a; those the caller gave come first. */
orr_code symbols_report(const export_symbols *s,
                        orr_arena *a,
                        const orr_export_symbol **out,
                        size_t *count,
                        orr_error *err) ORR_MUST_CHECK;

/* ---- export_graph.c ---- */

/* How an operator's outputs relate to memory. */
typedef enum export_alias {
    EXPORT_NEW,     /* new tensors */
    EXPORT_VIEW,    /* the first input in another form */
    EXPORT_RESHAPE, /* a view if the strides allow, else a copy */
    EXPORT_SAME,    /* the input itself if it already has the wanted form: contiguous, of a type */
    EXPORT_DROPOUT, /* the input itself except in training */
    EXPORT_WRITES,  /* the first input, written in place */
} export_alias;

/* Can a tensor of this shape and stride be seen as the other shape without a copy? */
bool export_can_view(const uint64_t *shape,
                     const uint64_t *stride,
                     uint32_t rank,
                     const uint64_t *to,
                     uint32_t to_rank);

typedef struct export_named {
    orr_json_value meta; /* its entry in "tensor_values" */
    uint32_t tensor;
    bool has_meta, is_made;
    fx_kept kept;
} export_named;

/* The names of one graph; a nested one has its own. */
typedef struct export_scope {
    orr_intern *names;
    export_named *at;
    size_t room;
} export_scope;

typedef struct export_names {
    orr_json_value *at;
    size_t count, room;
} export_names;

typedef struct export_refs {
    uint32_t *at;
    size_t count, room;
} export_refs;

typedef struct export_reader {
    orr_fx *fx;
    fx_graph *g;
    export_symbols *symbols;
    orr_export_report *report;
    orr_intern *texts[FX_TEXTS];
    orr_buf text;
    export_names names;
    export_refs in, out, writes;
    fx_phase phase;
    orr_str loss; /* its node ends the forward pass; empty: none */
} export_reader;

orr_code export_scope_open(export_reader *r, export_scope *s, orr_json_value graph, orr_error *err)
    ORR_MUST_CHECK;
void export_scope_close(export_scope *s);
/* The entry of a name, created if new. */
orr_code export_name(export_scope *s, orr_str name, export_named **out, orr_error *err)
    ORR_MUST_CHECK;
/* A tensor that exists before the program runs. */
orr_code export_input(export_reader *r, export_scope *s, orr_json_value name, orr_error *err)
    ORR_MUST_CHECK;
/* Appends the names of tensors in an Argument to r->names. */
orr_code export_collect(export_reader *r, orr_json_value argument, orr_error *err) ORR_MUST_CHECK;
/* The tensor of a name already defined. */
orr_code export_find(const export_scope *s, orr_json_value name, uint32_t *tensor, orr_error *err)
    ORR_MUST_CHECK;
/* A required member of an object, of this type. */
orr_code export_member(orr_json_value object,
                       const char *key,
                       orr_json_type type,
                       orr_json_value *out,
                       orr_error *err) ORR_MUST_CHECK;

/* Shape, type and memory of a tensor. */
typedef struct export_form {
    uint64_t shape[FX_DIMS_MOST], stride[FX_DIMS_MOST];
    uint64_t offset,
        bytes; /* bytes: from the start of the storage to the end of its last element */
    uint32_t rank, element_bytes;
    int64_t dtype;
    orr_json_value meta;
} export_form;

/* ---- export_graph.c: nodes ---- */

/* A node being read. */
typedef struct export_call {
    orr_json_value node;
    orr_str op;
    export_alias alias;
    /* Tensors of the first argument that has any: those an in-place operator writes. */
    size_t first;
    fx_node_draft draft;
} export_call;

/* All nodes of the graph, in order. */
orr_code export_nodes(export_reader *r, export_scope *s, orr_json_value graph, orr_error *err)
    ORR_MUST_CHECK;
/* An extra node that is not in the file, at `at`. */
orr_code export_extra(export_reader *r,
                      const char *op,
                      const fx_node_draft *like,
                      orr_json_value at,
                      orr_error *err) ORR_MUST_CHECK;

#endif
