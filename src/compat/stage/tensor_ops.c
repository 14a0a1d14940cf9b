/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_ops.c - what each operation makes of its operands: layout, number of operations, and what it insists on.
 *
 * This is the table of the specification's section 3.1.  Results depend on the operation, its attribute and
 * the operands' layouts alone, so each combination is worked out once and found again by these numbers. */
#include "tensor.h"

#include "base/text/number.h"
#include "base/text/text.h"

/* One tensor looked at, and where to complain. */
typedef struct view {
    stg_tgraph *g;
    stg_space *s;
    const stg_tensor *t;
    uint32_t index;
    const orr_where *where;
    orr_error *err;
} view;

static view view_of(stg_tgraph *g, uint32_t t, const orr_where *where, orr_error *err)
{
    return (view){
        .g = g, .s = g->space, .t = &g->tensors[t], .index = t, .where = where, .err = err};
}

static orr_code bad(const view *v, const char *what)
{
    char label[120];
    return orr_fail(v->err, ORR_EINPUT, v->where, "tensor %s, operation %s: %s",
                    stg_tensor_label(v->g, v->index, label, sizeof label),
                    stg_op_name((stg_op)v->t->op), what);
}

static orr_str attr_of(const view *v)
{
    return v->t->attr == ORR__NONE ? orr_str_of("") : stg_word_text(v->s, v->t->attr);
}

static orr_code parse_in_attr(const view *v, orr_str text, stg_expr *out)
{
    const orr_code code = stg_expr_parse(&v->s->algebra, text, v->where, out, v->err);
    char label[120];
    return code ? orr_because(v->err, code, "op_attr of %s",
                              stg_tensor_label(v->g, v->index, label, sizeof label))
                : ORR_OK;
}

/* "2:Seq/cp" or "1*KExperts": an axis, and behind the mark an expression; without one *out is untouched. */
static orr_code parse_axis(const view *v, char mark, uint32_t *axis, stg_expr *out)
{
    const orr_str attr = attr_of(v);
    const char *at = mark && attr.len ? memchr(attr.ptr, mark, attr.len) : NULL;
    uint64_t n;
    if (mark && !at)
        return bad(v, mark == ':' ? "op_attr is not axis:extent" : "op_attr is not axis*factor");
    const size_t digits = at ? (size_t)(at - attr.ptr) : attr.len;
    if (!orr_text_u64((orr_str){attr.ptr, digits}, &n) ||
        n >= v->s->layouts[v->t->need_a].shape_count)
        return bad(v, "the axis in op_attr is not a dimension of x1_shape");
    *axis = (uint32_t)n;
    return at ? parse_in_attr(v, (orr_str){at + 1, attr.len - digits - 1}, out) : ORR_OK;
}

/* ---- einsum ---- */

typedef struct einsum {
    orr_str a, b, y;
} einsum;

static bool is_letters(orr_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const char c = (char)(s.ptr[i] | 0x20);
        if (c < 'a' || c > 'z')
            return false;
    }
    return true;
}

static bool split_einsum(orr_str attr, einsum *out)
{
    const char *comma = attr.len ? memchr(attr.ptr, ',', attr.len) : NULL;
    const char *arrow =
        comma ? memmem(comma, (size_t)(attr.ptr + attr.len - comma), "->", 2) : NULL;
    if (!arrow)
        return false;
    out->a = (orr_str){attr.ptr, (size_t)(comma - attr.ptr)};
    out->b = (orr_str){comma + 1, (size_t)(arrow - comma - 1)};
    out->y = (orr_str){arrow + 2, (size_t)(attr.ptr + attr.len - arrow - 2)};
    return is_letters(out->a) && is_letters(out->b) && is_letters(out->y) &&
           out->y.len <= ORR__DIMS_MOST;
}

static bool has_letter(orr_str s, char c)
{
    return s.len && memchr(s.ptr, c, s.len);
}

/* Extents by letter; false: a letter stands for two different ones. */
static bool take_letters(stg_expr extents[128], orr_str letters, const stg_expr *shape)
{
    bool agrees = true;
    for (size_t i = 0; i < letters.len; i++) {
        stg_expr *e = &extents[(unsigned char)letters.ptr[i]];
        agrees &= *e == ORR__NONE || *e == shape[i];
        *e = shape[i];
    }
    return agrees;
}

static orr_code einsum_layout(const view *v, orr__layout *out)
{
    const stg_layout_row a = v->s->layouts[v->t->need_a], b = v->s->layouts[v->t->need_b];
    stg_expr extents[128], shape[ORR__DIMS_MOST], hidden[ORR__DIMS_MOST];
    size_t hidden_count = 0;
    einsum e;
    if (!split_einsum(attr_of(v), &e))
        return bad(v, "op_attr is not an einsum such as ab,bc->ac");
    if (e.a.len != a.shape_count || e.b.len != b.shape_count)
        return bad(v, "op_attr has not one letter for each dimension of x1_shape and x2_shape");
    memset(extents, 0xff, sizeof extents); /* ORR__NONE */
    if (!take_letters(extents, e.b, stg_layout_shape(v->s, v->t->need_b)) ||
        !take_letters(extents, e.a, stg_layout_shape(v->s, v->t->need_a)))
        return bad(v, "a letter of op_attr stands for two different extents");
    for (size_t i = 0; i < e.y.len; i++) {
        shape[i] = extents[(unsigned char)e.y.ptr[i]];
        if (shape[i] == ORR__NONE)
            return bad(v, "a letter of the result is in neither operand");
    }
    for (size_t i = 0; i < e.a.len; i++) {
        if (!has_letter(e.y, e.a.ptr[i]))
            hidden[hidden_count++] = extents[(unsigned char)e.a.ptr[i]];
    }
    *out = stg_layout_make(v->s, shape, e.y.len, hidden, hidden_count);
    return ORR_OK;
}

/* ---- the layout made ---- */

/* One extent of the shape of x1 changed. */
static orr_code changed_layout(const view *v, orr__layout *out)
{
    static const char marks[ORR__OP_COUNT] = {[ORR__OP_SLICE] = ':', [ORR__OP_B] = '*'};
    const stg_layout_row row = v->s->layouts[v->t->need_a];
    stg_expr shape[ORR__DIMS_MOST], hidden[ORR__DIMS_MOST], by = ORR__ONE;
    uint32_t axis = 0;
    const orr_code code = parse_axis(v, marks[v->t->op], &axis, &by);
    if (code)
        return code;
    memcpy(shape, stg_layout_shape(v->s, v->t->need_a), row.shape_count * sizeof *shape);
    memcpy(hidden, stg_layout_hidden(v->s, v->t->need_a), row.hidden_count * sizeof *hidden);
    if (v->t->op == ORR__OP_SLICE) {
        shape[axis] = by;
    } else if (v->t->op == ORR__OP_B) {
        shape[axis] = stg_expr_mul(&v->s->algebra, shape[axis], by);
    } else {
        if (axis >= v->s->layouts[v->t->need_b].shape_count)
            return bad(v, "the axis in op_attr is not a dimension of x2_shape");
        const stg_expr both[] = {shape[axis], stg_layout_shape(v->s, v->t->need_b)[axis]};
        shape[axis] = stg_expr_sum(&v->s->algebra, both, 2);
    }
    *out = stg_layout_make(v->s, shape, row.shape_count, hidden, row.hidden_count);
    return ORR_OK;
}

static orr_code make_layout(const view *v, orr__layout *out)
{
    switch ((stg_op)v->t->op) {
    case ORR__OP_R:
    case ORR__OP_CUSTOM:
        *out = v->t->need_b;
        return ORR_OK;
    case ORR__OP_M:
        return einsum_layout(v, out);
    case ORR__OP_SLICE:
    case ORR__OP_B:
    case ORR__OP_C:
        return changed_layout(v, out);
    default:
        *out = v->t->need_a;
        return ORR_OK;
    }
}

/* All that a result depends on in one number; false: a number is too large for its place. */
static bool key_of(const stg_tensor *t, uint64_t *out)
{
    const uint32_t parts[] = {t->attr, t->need_a, t->need_b};
    *out = t->op;
    for (size_t i = 0; i < 3; i++) {
        if (parts[i] != ORR__NONE && parts[i] >= 0xFFFFF)
            return false;
        *out = *out << 20 | (parts[i] & 0xFFFFF);
    }
    return true;
}

orr_code stg_tensor_made(stg_tgraph *g, uint32_t t, orr__layout *out, orr_error *err)
{
    stg_tensor *x = &g->tensors[t];
    uint64_t key;
    if (x->made != ORR__NONE) {
        *out = x->made;
        return ORR_OK;
    }
    const bool has_key = key_of(x, &key);
    *out = has_key ? orr_map_find(g->space->made, key, ORR__NONE) : ORR__NONE;
    if (*out == ORR__NONE) {
        const view v = view_of(g, t, NULL, err);
        orr_code code = make_layout(&v, out);
        if (!code)
            code = stg_algebra_check(&g->space->algebra, NULL, "layout", err);
        if (code)
            return code;
        if (has_key && !orr_map_put(g->space->made, key, *out, NULL))
            return orr_no_memory(err);
    }
    x->made = *out;
    return ORR_OK;
}

/* ---- operations ---- */

static orr_code count_ops(const view *v, orr__layout made, stg_expr *out)
{
    stg_space *s = v->s;
    stg_expr factor;
    orr_code code;
    switch ((stg_op)v->t->op) {
    case ORR__OP_T:
    case ORR__OP_I:
    case ORR__OP_S:
        *out = ORR__ZERO;
        return ORR_OK;
    case ORR__OP_CUSTOM:
        return parse_in_attr(v, attr_of(v), out);
    case ORR__OP_E:
    case ORR__OP_E2:
        if ((code = parse_in_attr(v, attr_of(v), &factor)))
            return code;
        *out = stg_expr_mul(&s->algebra, factor, stg_layout_size(s, made));
        return ORR_OK;
    case ORR__OP_M:
        *out = stg_expr_mul(&s->algebra, stg_layout_size(s, made), stg_layout_hidden_size(s, made));
        return ORR_OK;
    default:
        *out = stg_layout_size(s, made);
        return ORR_OK;
    }
}

orr_code stg_tensor_ops(stg_tgraph *g, uint32_t t, stg_expr *out, orr_error *err)
{
    orr__layout made;
    uint64_t key;
    orr_code code = stg_tensor_made(g, t, &made, err);
    const bool has_key = key_of(&g->tensors[t], &key);
    *out = has_key ? orr_map_find(g->space->ops, key, ORR__NONE) : ORR__NONE;
    if (code || *out != ORR__NONE)
        return code;
    const view v = view_of(g, t, NULL, err);
    code = count_ops(&v, made, out);
    if (!code)
        code = stg_algebra_check(&g->space->algebra, NULL, "number of operations", err);
    if (!code && has_key && !orr_map_put(g->space->ops, key, *out, NULL))
        return orr_no_memory(err);
    return code;
}

/* ---- what an operation insists on ---- */

typedef struct wants {
    bool a, b;           /* operands it must have */
    bool may_b;          /* one it may have */
    bool layout_b, attr; /* a second layout, an attribute */
} wants;

static const wants table[ORR__OP_COUNT] = {
    [ORR__OP_T] = {0},
    [ORR__OP_I] = {.a = true},
    [ORR__OP_S] = {0},
    [ORR__OP_A] = {.a = true, .b = true, .layout_b = true},
    [ORR__OP_E] = {.a = true, .attr = true},
    [ORR__OP_E2] = {.a = true, .b = true, .layout_b = true, .attr = true},
    [ORR__OP_M] = {.a = true, .b = true, .layout_b = true, .attr = true},
    [ORR__OP_R] = {.a = true, .layout_b = true},
    [ORR__OP_C] = {.a = true, .b = true, .layout_b = true, .attr = true},
    [ORR__OP_B] = {.a = true, .attr = true},
    [ORR__OP_SLICE] = {.a = true, .may_b = true, .attr = true},
    [ORR__OP_CUSTOM] = {.a = true, .layout_b = true, .attr = true},
};

static orr_code check_cells(const view *v)
{
    const wants *w = &table[v->t->op];
    const bool has_a = v->t->a != ORR__NONE, has_b = v->t->b != ORR__NONE;
    if (v->t->need_a == ORR__NONE)
        return bad(v, "x1_shape and x1_hidden are missing");
    if (w->a != has_a)
        return bad(v, has_a ? "it takes no operand x1" : "operand x1 is missing");
    if (w->b && !has_b)
        return bad(v, "operand x2 is missing");
    if (has_b && !w->b && !w->may_b)
        return bad(v, "it takes no operand x2");
    if ((w->layout_b || has_b) && v->t->need_b == ORR__NONE)
        return bad(v, "x2_shape and x2_hidden are missing");
    if (w->attr && v->t->attr == ORR__NONE)
        return bad(v, "op_attr is missing");
    if (v->t->extra_count && v->t->op != ORR__OP_CUSTOM)
        return bad(v, "data_deps are for CUSTOM only");
    return ORR_OK;
}

static bool has_same_shape(const stg_space *s, orr__layout a, orr__layout b)
{
    const size_t n = s->layouts[a].shape_count;
    return n == s->layouts[b].shape_count &&
           (n == 0 ||
            memcmp(stg_layout_shape(s, a), stg_layout_shape(s, b), n * sizeof(stg_expr)) == 0);
}

static orr_code check_layouts(const view *v)
{
    stg_space *s = v->s;
    const orr__layout a = v->t->need_a, b = v->t->need_b;
    switch ((stg_op)v->t->op) {
    case ORR__OP_M:
        if (stg_layout_hidden_size(s, a) != ORR__ONE || stg_layout_hidden_size(s, b) != ORR__ONE)
            return bad(v, "operands must be whole sums: x1_hidden and x2_hidden must be 1");
        return ORR_OK;
    case ORR__OP_A:
        if (stg_layout_hidden_size(s, a) != stg_layout_hidden_size(s, b))
            return bad(v, "x1_hidden and x2_hidden differ");
        return has_same_shape(s, a, b) ? ORR_OK : bad(v, "x1_shape and x2_shape differ");
    case ORR__OP_E2:
        return has_same_shape(s, a, b) ? ORR_OK : bad(v, "x1_shape and x2_shape differ");
    case ORR__OP_R:
        return stg_layout_size(s, a) == stg_layout_size(s, b)
                   ? ORR_OK
                   : bad(v, "x1_shape and x2_shape have different sizes");
    default:
        return ORR_OK;
    }
}

orr_code stg_tensor_check(stg_tgraph *g, uint32_t t, const orr_where *where, orr_error *err)
{
    const view v = view_of(g, t, where, err);
    orr__layout made;
    stg_expr ops;
    orr_code code = check_cells(&v);
    if (!code)
        code = check_layouts(&v);
    if (!code)
        code = make_layout(&v, &made);
    if (!code)
        code = count_ops(&v, made, &ops);
    return code ? code : stg_algebra_check(&g->space->algebra, where, "tensor", err);
}
