/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - the graph of symbolic tensors: what a training step computes, before it becomes nodes.
 *
 * space    interned expressions, layouts and words, each known by its index
 * layout   how a tensor is distributed: the extents of its local shape, and hidden extents.  A
 *          parallel axis in an extent means the tensor is divided along it; in a hidden extent, the
 *          local values are partial sums over it; in neither, all ranks of the axis have the same.
 * tensor   a name, the operation that makes it, its operands and the layouts they are needed in
 * graph    tensors addressed by index; their order is that of the nodes in the files
 *
 * Errors while building any of these (memory, numbers) are kept in the space, as in expr.h, and
 * reported by stg_space_check() at the end of a pass.  Thousands of tensors share a layout, so a
 * pass that replaces a symbol does it once per layout. */
#ifndef ORR_SYMBOLIC_TENSOR_H
#define ORR_SYMBOLIC_TENSOR_H

#include "expr.h"

#include "base/memory/map.h"

#define ORR__NONE UINT32_MAX /* no tensor, no layout, no word */

typedef uint32_t stg_layout;
typedef uint32_t stg_word;

enum {
    ORR__EMPTY = 0,      /* the empty word */
    ORR__DIMS_MOST = 26, /* one letter per dimension in an einsum */
};

typedef struct stg_layout_row {
    uint32_t first;
    uint8_t shape_count, hidden_count;
    stg_expr size, hidden_size; /* products; ORR__NONE: not computed yet */
    stg_word text;              /* of the shape; ORR__NONE: not computed yet */
} stg_layout_row;

typedef struct stg_space {
    stg_algebra algebra;
    orr_intern *words;
    orr_intern *layout_keys;
    stg_layout_row *layouts;
    size_t layout_room;
    stg_expr *extents;
    size_t extent_count, extent_room;
    orr_map *made, *ops; /* (operation, attribute, layouts) -> layout, number of operations */
    orr_buf text;
} stg_space;

bool stg_space_init(stg_space *s); /* false: out of memory; call fini either way */
void stg_space_fini(stg_space *s);
orr_code stg_space_check(const stg_space *s, orr_error *err) ORR_MUST_CHECK;
void stg_space_no_room(stg_space *s); /* out of memory */
static inline bool stg_space_has_failed(const stg_space *s)
{
    return s->algebra.fault != ORR__FINE;
}

stg_word stg_word_of(stg_space *s, orr_str text);
stg_word stg_word_joined(stg_space *s, orr_str a, orr_str b); /* concatenated */
static inline orr_str stg_word_text(const stg_space *s, stg_word w)
{
    return orr_intern_get(s->words, w);
}

stg_layout stg_layout_make(stg_space *s,
                           const stg_expr *shape,
                           size_t shape_count,
                           const stg_expr *hidden,
                           size_t hidden_count);
static inline const stg_expr *stg_layout_shape(const stg_space *s, stg_layout l)
{
    return s->extents + s->layouts[l].first;
}
static inline const stg_expr *stg_layout_hidden(const stg_space *s, stg_layout l)
{
    return s->extents + s->layouts[l].first + s->layouts[l].shape_count;
}
stg_layout stg_layout_line(stg_space *s, stg_expr extent); /* [extent] @ (1) */
stg_expr stg_layout_size(stg_space *s, stg_layout l);
stg_expr stg_layout_hidden_size(stg_space *s, stg_layout l);
stg_layout stg_layout_replace(stg_space *s, stg_layout l, uint32_t symbol, stg_expr by);
orr_str stg_layout_text(stg_space *s, stg_layout l); /* "a,b/c"; "1" without extents */
orr_str stg_layout_hidden_text(stg_space *s,
                               stg_layout l); /* of the hidden extents; valid until the next call */
/* Parse comma-separated expressions. */
orr_code stg_layout_parse(stg_space *s,
                          orr_str shape,
                          orr_str hidden,
                          const orr_where *where,
                          stg_layout *out,
                          orr_error *err) ORR_MUST_CHECK;

/* ---- tensors ---- */

typedef enum stg_op {
    ORR__OP_T,      /* a placeholder: a value from outside */
    ORR__OP_I,      /* the same value in another layout */
    ORR__OP_S,      /* shadow of a tensor of another pipeline stage */
    ORR__OP_A,      /* sum of two */
    ORR__OP_E,      /* elementwise, a number of operations per element */
    ORR__OP_E2,     /* elementwise on two operands */
    ORR__OP_M,      /* einsum */
    ORR__OP_R,      /* reshape */
    ORR__OP_C,      /* concatenation */
    ORR__OP_B,      /* multiplies an extent */
    ORR__OP_SLICE,  /* replaces an extent */
    ORR__OP_CUSTOM, /* defined by the template */
    ORR__OP_COUNT
} stg_op;

const char *stg_op_name(stg_op op);
bool stg_op_find(orr_str name, stg_op *out);

/* Position in the pipeline: a layer, or one of these. */
enum { ORR__PLACE_FIRST = -1, ORR__PLACE_LAST = -2 };

typedef struct stg_tensor {
    stg_word prefix, name; /* printed concatenated */
    stg_word attr;
    uint32_t a, b;    /* operands */
    uint32_t grad_of; /* the tensor it is the gradient of */
    stg_layout need_a, need_b;
    stg_layout made;             /* see stg_tensor_made; ORR__NONE: not computed */
    uint32_t extra, extra_count; /* further parents: a slice of the graph's extras */
    int32_t place;
    uint8_t op; /* stg_op */
    uint8_t revision;
    bool is_param;
    bool has_extra_list; /* the list was present, perhaps empty */
} stg_tensor;

typedef struct stg_tgraph {
    stg_space *space;
    stg_tensor *tensors;
    size_t count, room;
    uint32_t *extras;
    size_t extra_count, extra_room;
    orr_map *by_name; /* (name, revision) -> tensor; only after stg_tgraph_init_named() */
} stg_tgraph;

void stg_tgraph_init(stg_tgraph *g, stg_space *s);
void stg_tgraph_init_named(stg_tgraph *g, stg_space *s);
void stg_tgraph_fini(stg_tgraph *g);

stg_tensor stg_tensor_new(stg_space *s, const char *name, stg_op op); /* all other fields absent */
uint32_t stg_tgraph_add(stg_tgraph *g, const stg_tensor *t);
/* Reserve room for more tensors. */
bool stg_tgraph_reserve(stg_tgraph *g, size_t more);
/* Copies the list; earlier tensors keep theirs. */
void stg_tgraph_set_extras(stg_tgraph *g, stg_tensor *t, const uint32_t *extras, size_t count);
/* ORR__NONE: not found. */
uint32_t stg_tgraph_find(const stg_tgraph *g, orr_str name, uint32_t revision);

/* The same, but a missing tensor is an error. */
orr_code stg_tgraph_need(const stg_tgraph *g, const char *name, uint32_t *out, orr_error *err)
    ORR_MUST_CHECK;
/* Bit s: symbol s occurs in a layout of the first `count` tensors. */
uint64_t stg_tgraph_symbols(const stg_tgraph *g, size_t count);

/* Append a copy of `from`, its names prefixed; returns the first new index. */
uint32_t stg_tgraph_append(stg_tgraph *g, const stg_tgraph *from, orr_str prefix);
/* The same with a shared prefix: no new names are created, which matters for thousands of
 * copies. */
uint32_t stg_tgraph_repeat(stg_tgraph *g, const stg_tgraph *from, stg_word prefix, int32_t place);

/* Replace a symbol in all tensors from `first` on: in layouts symbolically, in attributes as
 * text. */
orr_code stg_tgraph_replace(stg_tgraph *g,
                            size_t first,
                            const char *symbol,
                            const char *by,
                            bool spares_params,
                            orr_error *err) ORR_MUST_CHECK;

/* The placeholder `target` takes its value from `source`. */
orr_code stg_tgraph_link(stg_tgraph *g, uint32_t source, uint32_t target, orr_error *err)
    ORR_MUST_CHECK;
/* "name@revision" for messages, truncated to `size`. */
const char *stg_tensor_label(const stg_tgraph *g, uint32_t t, char *out, size_t size);

/* The layout a tensor is produced in (stage.md 3.1). */
orr_code stg_tensor_made(stg_tgraph *g, uint32_t t, stg_layout *out, orr_error *err) ORR_MUST_CHECK;
/* The number of operations that takes. */
orr_code stg_tensor_ops(stg_tgraph *g, uint32_t t, stg_expr *out, orr_error *err) ORR_MUST_CHECK;
/* Validate operands, attribute and layouts.  where: the tensor's row. */
orr_code stg_tensor_check(stg_tgraph *g, uint32_t t, const orr_where *where, orr_error *err)
    ORR_MUST_CHECK;

#endif
