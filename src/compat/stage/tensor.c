/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - graphs of tensors: adding, copying, linking, replacing symbols.
 *
 * A copy of a graph is its tensors with one number added to every index, so a model of eighty layers and
 * sixteen micro-batches is a hundred thousand short copies and no work with symbols or names. */
#include "tensor.h"

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

static uint64_t symbols_of(const stg_space *s, orr__layout l)
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

/* The extras of a graph, all of them, behind those of another one. */
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
    orr__layout *layouts; /* done already; ORR__NONE: not yet */
    size_t layout_count;
    orr_map *attrs;
    orr_buf text;
} replacing;

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whole names only: MicroBatch has no Batch in it. */
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

static orr__layout replace_layout(replacing *r, orr__layout l)
{
    if (l == ORR__NONE || l >= r->layout_count)
        return l; /* one that this very pass has made */
    if (r->layouts[l] == ORR__NONE)
        r->layouts[l] = stg_layout_replace(r->space, l, r->symbol_number, r->by_expr);
    return r->layouts[l];
}

static void replace_in_tensor(replacing *r, stg_tensor *t)
{
    const orr__layout a = replace_layout(r, t->need_a), b = replace_layout(r, t->need_b);
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
