/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - the graph of symbolic tensors: what a training step computes, before it is cut into
 * nodes.
 *
 * space    everything that is kept once and known by a number: expressions, layouts, words. layout
 * how a tensor lies on a rank: the extents of its local shape, and hidden extents.  A parallel axis
 * in
 *          an extent says that the tensor is divided along it; in a hidden extent, that the local values are
 *          part of a sum over it; nowhere, that every rank of the axis has the same.
 * tensor   a name, the operation that makes it, its operands and the layouts they are needed in.
 * graph    tensors in order, addressed by index.  The order is the order of nodes in the files.
 *
 * What goes wrong while making any of these (memory, numbers) is kept in the space, as expr.h has
 * it, and asked for with stg_space_check where a pass ends.  Layouts are shared by thousands of
 * tensors, so a pass that replaces a symbol works once for each layout. */
#ifndef ORR_SYMBOLIC_TENSOR_H
#define ORR_SYMBOLIC_TENSOR_H

#include "expr.h"

#include "base/memory/map.h"

#define ORR__NONE UINT32_MAX /* no tensor, no layout, no word */

typedef uint32_t stg_layout;
typedef uint32_t stg_word;

enum {
    ORR__EMPTY = 0,      /* the word without letters */
    ORR__DIMS_MOST = 26, /* one letter each in an einsum */
};

typedef struct stg_layout_row {
    uint32_t first;
    uint8_t shape_count, hidden_count;
    stg_expr size, hidden_size; /* products; ORR__NONE: not asked for yet */
    stg_word text;              /* of the shape; ORR__NONE: not asked for yet */
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

bool stg_space_init(stg_space *s); /* false: out of memory; fini is due either way */
void stg_space_fini(stg_space *s);
orr_code stg_space_check(const stg_space *s, orr_error *err) ORR_MUST_CHECK;
void stg_space_no_room(stg_space *s); /* out of memory */
static inline bool stg_space_has_failed(const stg_space *s)
{
    return s->algebra.fault != ORR__FINE;
}

stg_word stg_word_of(stg_space *s, orr_str text);
stg_word stg_word_joined(stg_space *s, orr_str a, orr_str b); /* ab */
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
orr_str stg_layout_text(stg_space *s, stg_layout l); /* "a,b/c"; without extents "1" */
orr_str stg_layout_hidden_text(stg_space *s,
                               stg_layout l); /* of the hidden ones; until the next call */
/* Texts with commas between expressions. */
orr_code stg_layout_parse(stg_space *s,
                          orr_str shape,
                          orr_str hidden,
                          const orr_where *where,
                          stg_layout *out,
                          orr_error *err) ORR_MUST_CHECK;

/* ---- tensors ---- */

typedef enum stg_op {
    ORR__OP_T,      /* a value from outside */
    ORR__OP_I,      /* the same value, laid out anew */
    ORR__OP_S,      /* stands for a tensor of another pipeline stage */
    ORR__OP_A,      /* sum of two */
    ORR__OP_E,      /* elementwise, so many operations each */
    ORR__OP_E2,     /* the same of two */
    ORR__OP_M,      /* einsum */
    ORR__OP_R,      /* another shape */
    ORR__OP_C,      /* one behind the other */
    ORR__OP_B,      /* an extent multiplied */
    ORR__OP_SLICE,  /* an extent replaced */
    ORR__OP_CUSTOM, /* what the template says */
    ORR__OP_COUNT
} stg_op;

const char *stg_op_name(stg_op op);
bool stg_op_find(orr_str name, stg_op *out);

/* Where a tensor belongs, for the pipeline: a layer, or one of these. */
enum { ORR__PLACE_FIRST = -1, ORR__PLACE_LAST = -2 };

typedef struct stg_tensor {
    stg_word prefix, name; /* printed one behind the other */
    stg_word attr;
    uint32_t a, b;    /* operands */
    uint32_t grad_of; /* the tensor it is the gradient of */
    stg_layout need_a, need_b;
    stg_layout made;             /* see stg_tensor_made; ORR__NONE: not computed */
    uint32_t extra, extra_count; /* more parents: in the graph's extras */
    int32_t place;
    uint8_t op; /* stg_op */
    uint8_t revision;
    bool is_param;
    bool has_extra_list; /* the list was written down, be it empty */
} stg_tensor;

typedef struct stg_tgraph {
    stg_space *space;
    stg_tensor *tensors;
    size_t count, room;
    uint32_t *extras;
    size_t extra_count, extra_room;
    orr_map
        *by_name; /* name and revision -> tensor; only in graphs made by stg_tgraph_init_named */
} stg_tgraph;

void stg_tgraph_init(stg_tgraph *g, stg_space *s);
void stg_tgraph_init_named(stg_tgraph *g, stg_space *s);
void stg_tgraph_fini(stg_tgraph *g);

stg_tensor stg_tensor_new(stg_space *s, const char *name, stg_op op); /* all else absent */
uint32_t stg_tgraph_add(stg_tgraph *g, const stg_tensor *t);
/* Room for more tensors, all at once. */
bool stg_tgraph_reserve(stg_tgraph *g, size_t more);
/* Copies the extras' list; tensors made before keep theirs. */
void stg_tgraph_set_extras(stg_tgraph *g, stg_tensor *t, const uint32_t *extras, size_t count);
/* ORR__NONE: there is none of that name. */
uint32_t stg_tgraph_find(const stg_tgraph *g, orr_str name, uint32_t revision);

/* The same; that there is none is an error: the model cannot do without. */
orr_code stg_tgraph_need(const stg_tgraph *g, const char *name, uint32_t *out, orr_error *err)
    ORR_MUST_CHECK;
/* Bit s: symbol s is in a layout of the first `count` tensors. */
uint64_t stg_tgraph_symbols(const stg_tgraph *g, size_t count);

/* All tensors of `from` again at the end, their names behind `prefix`; the first of them. */
uint32_t stg_tgraph_append(stg_tgraph *g, const stg_tgraph *from, orr_str prefix);
/* The same, with the prefix kept apart: names are not made anew, which is what thousands of copies
 * want. */
uint32_t stg_tgraph_repeat(stg_tgraph *g, const stg_tgraph *from, stg_word prefix, int32_t place);

/* Symbols replaced in all tensors from `first` on: in layouts by algebra, in attributes by text. */
orr_code stg_tgraph_replace(stg_tgraph *g,
                            size_t first,
                            const char *symbol,
                            const char *by,
                            bool spares_params,
                            orr_error *err) ORR_MUST_CHECK;

/* The placeholder `target` takes its value from `source`. */
orr_code stg_tgraph_link(stg_tgraph *g, uint32_t source, uint32_t target, orr_error *err)
    ORR_MUST_CHECK;
/* "name@revision" of a tensor, for messages, cut to the room there is. */
const char *stg_tensor_label(const stg_tgraph *g, uint32_t t, char *out, size_t size);

/* The layout a tensor is made in (section 3.1 of the specification). */
orr_code stg_tensor_made(stg_tgraph *g, uint32_t t, stg_layout *out, orr_error *err) ORR_MUST_CHECK;
/* How many operations that takes. */
orr_code stg_tensor_ops(stg_tgraph *g, uint32_t t, stg_expr *out, orr_error *err) ORR_MUST_CHECK;
/* Are operands, attribute and layouts such as the operation wants them?  where: the row it came
 * from. */
orr_code stg_tensor_check(stg_tgraph *g, uint32_t t, const orr_where *where, orr_error *err)
    ORR_MUST_CHECK;

#endif
