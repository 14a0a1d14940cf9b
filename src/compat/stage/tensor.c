/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - tensor graphs: adding, copying, linking, replacing symbols.
 *
 * A copy of a graph is its tensors with a constant added to every index, so eighty layers and
 * sixteen micro-batches take a hundred thousand short copies and no work on symbols or names. */
#include "tensor.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <stdio.h>

static const char *const op_names[ORR__OP_COUNT] = {
    [ORR__OP_T] = "T", [ORR__OP_I] = "I",   [ORR__OP_S] = "S",         [ORR__OP_A] = "A",
    [ORR__OP_E] = "E", [ORR__OP_E2] = "E2", [ORR__OP_M] = "M",         [ORR__OP_R] = "R",
    [ORR__OP_C] = "C", [ORR__OP_B] = "B",   [ORR__OP_SLICE] = "SLICE", [ORR__OP_CUSTOM] = "CUSTOM",
};

const char *stg_op_name(stg_op op)
{
    return op_names[op];
}

bool stg_op_find(orr_str name, stg_op *out)
{
    for (int i = 0; i < ORR__OP_COUNT; i++) {
        if (orr_str_is(name, op_names[i])) {
            *out = (stg_op)i;
            return true;
        }
    }
    return false;
}

void stg_tgraph_init(stg_tgraph *g, stg_space *s)
{
    *g = (stg_tgraph){.space = s};
}

void stg_tgraph_init_named(stg_tgraph *g, stg_space *s)
{
    *g = (stg_tgraph){.space = s, .by_name = orr_map_create(64)};
    if (!g->by_name)
        stg_space_no_room(s);
}

void stg_tgraph_fini(stg_tgraph *g)
{
    orr_free(g->tensors);
    orr_free(g->extras);
    orr_map_destroy(g->by_name);
}

stg_tensor stg_tensor_new(stg_space *s, const char *name, stg_op op)
{
    return (stg_tensor){.name = stg_word_of(s, orr_str_of(name)),
                        .attr = ORR__NONE,
                        .a = ORR__NONE,
                        .b = ORR__NONE,
                        .grad_of = ORR__NONE,
                        .need_a = ORR__NONE,
                        .need_b = ORR__NONE,
                        .made = ORR__NONE,
                        .op = (uint8_t)op};
}

static uint64_t name_key(stg_word name, uint32_t revision)
{
    return (uint64_t)revision << 32 | name;
}

bool stg_tgraph_reserve(stg_tgraph *g, size_t more)
{
    if (more >= ORR__NONE || g->count >= ORR__NONE - more ||
        !orr_grow(&g->tensors, &g->room, g->count + more))
        stg_space_no_room(g->space);
    return !stg_space_has_failed(g->space);
}

uint32_t stg_tgraph_add(stg_tgraph *g, const stg_tensor *t)
{
    if (!stg_tgraph_reserve(g, 1))
        return 0;
    const uint32_t index = (uint32_t)g->count;
    if (g->by_name && !orr_map_put(g->by_name, name_key(t->name, t->revision), index, NULL))
        stg_space_no_room(g->space);
    g->tensors[g->count++] = *t;
    return index;
}

void stg_tgraph_set_extras(stg_tgraph *g, stg_tensor *t, const uint32_t *extras, size_t count)
{
    t->has_extra_list = true;
    t->extra = (uint32_t)g->extra_count;
    t->extra_count = 0;
    if (g->extra_count + count >= ORR__NONE ||
        !orr_grow(&g->extras, &g->extra_room, g->extra_count + count)) {
        stg_space_no_room(g->space);
        return;
    }
    if (count)
        memcpy(g->extras + g->extra_count, extras, count * sizeof *extras);
    t->extra_count = (uint32_t)count;
    g->extra_count += count;
}

uint32_t stg_tgraph_find(const stg_tgraph *g, orr_str name, uint32_t revision)
{
    stg_word w;
    if (!g->by_name || !orr_intern_find(g->space->words, name, &w))
        return ORR__NONE;
    return orr_map_find(g->by_name, name_key(w, revision), ORR__NONE);
}

orr_code stg_tgraph_need(const stg_tgraph *g, const char *name, uint32_t *out, orr_error *err)
{
    *out = stg_tgraph_find(g, orr_str_of(name), 0);
    if (*out != ORR__NONE)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "the model needs a tensor '%s', which the templates do not have", name);
}

static uint64_t symbols_of(const stg_space *s, stg_layout l)
{
    uint64_t used = 0;
    if (l == ORR__NONE)
        return 0;
    const stg_layout_row row = s->layouts[l];
    for (uint32_t i = 0; i < (uint32_t)row.shape_count + row.hidden_count; i++)
        used |= stg_expr_uses(&s->algebra, s->extents[row.first + i]);
    return used;
}

uint64_t stg_tgraph_symbols(const stg_tgraph *g, size_t count)
{
    uint64_t used = 0;
    for (size_t i = 0; i < count; i++)
        used |=
            symbols_of(g->space, g->tensors[i].need_a) | symbols_of(g->space, g->tensors[i].need_b);
    return used;
}

/* ---- copies ---- */

static uint32_t shifted(uint32_t index, uint32_t by)
{
    return index == ORR__NONE ? ORR__NONE : index + by;
}

/* Append all extras of another graph. */
static bool copy_extras(stg_tgraph *g, const stg_tgraph *from, uint32_t by)
{
    const size_t need = g->extra_count + from->extra_count;
    if (need >= ORR__NONE || !orr_grow(&g->extras, &g->extra_room, need)) {
        stg_space_no_room(g->space);
        return false;
    }
    for (size_t i = 0; i < from->extra_count; i++)
        g->extras[g->extra_count + i] = from->extras[i] + by;
    g->extra_count = need;
    return true;
}

static stg_tensor copy_of(const stg_tensor *t, uint32_t by, uint32_t extras)
{
    stg_tensor c = *t;
    c.a = shifted(t->a, by);
    c.b = shifted(t->b, by);
    c.grad_of = shifted(t->grad_of, by);
    c.extra = t->extra + extras;
    return c;
}

uint32_t stg_tgraph_append(stg_tgraph *g, const stg_tgraph *from, orr_str prefix)
{
    const uint32_t first = (uint32_t)g->count, extras = (uint32_t)g->extra_count;
    if (!stg_tgraph_reserve(g, from->count) || !copy_extras(g, from, first))
        return 0;
    for (size_t i = 0; i < from->count; i++) {
        stg_tensor t = copy_of(&from->tensors[i], first, extras);
        t.name = stg_word_joined(g->space, prefix, stg_word_text(g->space, t.name));
        stg_tgraph_add(g, &t);
    }
    return first;
}

uint32_t stg_tgraph_repeat(stg_tgraph *g, const stg_tgraph *from, stg_word prefix, int32_t place)
{
    const uint32_t first = (uint32_t)g->count, extras = (uint32_t)g->extra_count;
    if (!stg_tgraph_reserve(g, from->count) || !copy_extras(g, from, first))
        return 0;
    for (size_t i = 0; i < from->count; i++) {
        stg_tensor *t = &g->tensors[g->count++];
        *t = copy_of(&from->tensors[i], first, extras);
        t->prefix = prefix;
        t->place = place;
    }
    return first;
}

/* ---- replacing a symbol ---- */

typedef struct replacing {
    stg_space *space;
    orr_str symbol, by;
    uint32_t symbol_number;
    stg_expr by_expr;
    stg_layout *layouts; /* results so far; ORR__NONE: not yet */
    size_t layout_count;
    orr_map *attrs;
    orr_buf text;
} replacing;

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whole names only: MicroBatch does not contain Batch. */
static stg_word replace_text(replacing *r, stg_word word)
{
    const orr_str text = stg_word_text(r->space, word);
    bool is_changed = false;
    r->text.len = 0;
    for (size_t i = 0; i < text.len;) {
        size_t n = 1;
        while (is_name_char(text.ptr[i]) && i + n < text.len && is_name_char(text.ptr[i + n]))
            n++;
        if (orr_str_equal((orr_str){text.ptr + i, n}, r->symbol)) {
            orr_buf_print(&r->text, "(%.*s)", (int)r->by.len, r->by.ptr);
            is_changed = true;
        } else {
            orr_buf_add(&r->text, text.ptr + i, n);
        }
        i += n;
    }
    if (r->text.failed)
        r->space->algebra.fault = ORR__NO_ROOM;
    if (!is_changed || r->text.failed)
        return word;
    return stg_word_of(r->space, (orr_str){(const char *)r->text.ptr, r->text.len});
}

static stg_word replace_attr(replacing *r, stg_word word)
{
    stg_word done = orr_map_find(r->attrs, word, ORR__NONE);
    if (done != ORR__NONE)
        return done;
    done = replace_text(r, word);
    if (!orr_map_put(r->attrs, word, done, NULL))
        r->space->algebra.fault = ORR__NO_ROOM;
    return done;
}

static stg_layout replace_layout(replacing *r, stg_layout l)
{
    if (l == ORR__NONE || l >= r->layout_count)
        return l; /* created by this very pass */
    if (r->layouts[l] == ORR__NONE)
        r->layouts[l] = stg_layout_replace(r->space, l, r->symbol_number, r->by_expr);
    return r->layouts[l];
}

static void replace_in_tensor(replacing *r, stg_tensor *t)
{
    const stg_layout a = replace_layout(r, t->need_a), b = replace_layout(r, t->need_b);
    stg_word attr = t->attr;
    if (t->op == ORR__OP_SLICE || t->op == ORR__OP_B || t->op == ORR__OP_CUSTOM)
        attr = replace_attr(r, attr);
    if (a != t->need_a || b != t->need_b || attr != t->attr)
        t->made = ORR__NONE;
    t->need_a = a;
    t->need_b = b;
    t->attr = attr;
}

static orr_code begin_replacing(replacing *r, stg_space *s, orr_error *err)
{
    orr_where nowhere = orr_where_line("", 0, 0);
    size_t room = 0;
    r->space = s;
    r->symbol_number = stg_symbol(&s->algebra, r->symbol);
    r->layout_count = orr_intern_count(s->layout_keys);
    r->attrs = orr_map_create(64);
    const orr_code code = stg_expr_parse(&s->algebra, r->by, &nowhere, &r->by_expr, err);
    if (code)
        return code;
    if (!r->attrs || !orr_grow(&r->layouts, &room, r->layout_count))
        return orr_no_memory(err);
    memset(r->layouts, 0xff, r->layout_count * sizeof *r->layouts); /* ORR__NONE */
    return ORR_OK;
}

orr_code stg_tgraph_replace(stg_tgraph *g,
                            size_t first,
                            const char *symbol,
                            const char *by,
                            bool spares_params,
                            orr_error *err)
{
    replacing r = {.symbol = orr_str_of(symbol), .by = orr_str_of(by)};
    orr_code code = begin_replacing(&r, g->space, err);
    for (size_t i = first; i < g->count && !code; i++) {
        if (!spares_params || !g->tensors[i].is_param)
            replace_in_tensor(&r, &g->tensors[i]);
    }
    if (!code)
        code = stg_algebra_check(&g->space->algebra, NULL, symbol, err);
    orr_free(r.layouts);
    orr_map_destroy(r.attrs);
    orr_buf_fini(&r.text);
    return code;
}

/* ---- links ---- */

const char *stg_tensor_label(const stg_tgraph *g, uint32_t t, char *out, size_t size)
{
    const stg_tensor *x = &g->tensors[t];
    const orr_str prefix = stg_word_text(g->space, x->prefix),
                  name = stg_word_text(g->space, x->name);
    snprintf(out, size, "%.*s%.*s@%u", (int)prefix.len, prefix.ptr, (int)name.len, name.ptr,
             x->revision);
    return out;
}

orr_code stg_tgraph_link(stg_tgraph *g, uint32_t source, uint32_t target, orr_error *err)
{
    char from[80], to[80];
    stg_tensor *t = &g->tensors[target];
    if (t->op != ORR__OP_T)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "%s cannot take its value from %s: it is a %s and not a placeholder (T)",
                        stg_tensor_label(g, target, to, sizeof to),
                        stg_tensor_label(g, source, from, sizeof from), stg_op_name((stg_op)t->op));
    t->op = ORR__OP_I;
    t->a = source;
    t->made = ORR__NONE;
    return ORR_OK;
}

/* What each operation does to its operands: layout, number of operations, and requirements
 * (stage.md 3.1).
 *
 * Results depend only on the operation, its attribute and the operands' layouts, so each
 * combination is computed once and cached. */

/* A tensor being examined, and where to report errors. */
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

/* "2:Seq/cp" or "1*KExperts": an axis and, after the mark, an expression; without one *out is
 * unchanged. */
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

static orr_code einsum_layout(const view *v, stg_layout *out)
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

/* x1's shape with one extent changed. */
static orr_code changed_layout(const view *v, stg_layout *out)
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

static orr_code make_layout(const view *v, stg_layout *out)
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

orr_code stg_tensor_made(stg_tgraph *g, uint32_t t, stg_layout *out, orr_error *err)
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

static orr_code count_ops(const view *v, stg_layout made, stg_expr *out)
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
    stg_layout made;
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
    bool may_b;          /* required operands */
    bool layout_b, attr; /* optional operand */
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

static bool has_same_shape(const stg_space *s, stg_layout a, stg_layout b)
{
    const size_t n = s->layouts[a].shape_count;
    return n == s->layouts[b].shape_count &&
           (n == 0 ||
            memcmp(stg_layout_shape(s, a), stg_layout_shape(s, b), n * sizeof(stg_expr)) == 0);
}

static orr_code check_layouts(const view *v)
{
    stg_space *s = v->s;
    const stg_layout a = v->t->need_a, b = v->t->need_b;
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
    stg_layout made;
    stg_expr ops;
    orr_code code;
    if ((code = check_cells(&v)) || (code = check_layouts(&v)) || (code = make_layout(&v, &made)) ||
        (code = count_ops(&v, made, &ops)))
        return code;
    return stg_algebra_check(&g->space->algebra, where, "tensor", err);
}
