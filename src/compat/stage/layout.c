/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - words and layouts, each kept once.
 *
 * A layout is found by its content: the numbers of its extents, as bytes.  What is asked of a layout over and
 * over (its size, its text) is worked out the first time. */
#include "tensor.h"

#include "base/text/text.h"

bool stg_space_init(stg_space *s)
{
    memset(s, 0, sizeof *s);
    const bool ok = stg_algebra_init(&s->algebra);
    s->words = orr_intern_create();
    s->layout_keys = orr_intern_create();
    s->made = orr_map_create(256);
    s->ops = orr_map_create(256);
    if (!ok || !s->words || !s->layout_keys || !s->made || !s->ops)
        return false;
    /* Number 0 is always there, so that what a failed call gives can be looked at. */
    return stg_word_of(s, orr_str_of("")) == ORR__EMPTY && stg_layout_line(s, ORR__ONE) == 0 &&
           !s->algebra.fault;
}

void stg_space_fini(stg_space *s)
{
    stg_algebra_fini(&s->algebra);
    orr_intern_destroy(s->words);
    orr_intern_destroy(s->layout_keys);
    orr_map_destroy(s->made);
    orr_map_destroy(s->ops);
    orr_free(s->layouts);
    orr_free(s->extents);
    orr_buf_fini(&s->text);
}

orr_code stg_space_check(const stg_space *s, orr_error *err)
{
    return stg_algebra_check(&s->algebra, NULL, "templates", err);
}

void stg_space_no_room(stg_space *s)
{
    if (!s->algebra.fault)
        s->algebra.fault = ORR__NO_ROOM;
}

static uint32_t no_room(stg_space *s)
{
    stg_space_no_room(s);
    return 0;
}

stg_word stg_word_of(stg_space *s, orr_str text)
{
    stg_word w;
    return orr_intern_add(s->words, text, &w) ? w : no_room(s);
}

stg_word stg_word_joined(stg_space *s, orr_str a, orr_str b)
{
    s->text.len = 0;
    orr_buf_add(&s->text, a.ptr, a.len);
    orr_buf_add(&s->text, b.ptr, b.len);
    if (s->text.failed)
        return no_room(s);
    return stg_word_of(s, (orr_str){(const char *)s->text.ptr, s->text.len});
}

orr__layout stg_layout_make(stg_space *s,
                            const stg_expr *shape,
                            size_t shape_count,
                            const stg_expr *hidden,
                            size_t hidden_count)
{
    stg_expr key[2 * ORR__DIMS_MOST + 1] = {(stg_expr)shape_count};
    const size_t count = shape_count + hidden_count;
    const uint32_t before = orr_intern_count(s->layout_keys);
    orr__layout l;
    for (size_t i = 0; i < shape_count; i++)
        key[1 + i] = shape[i];
    for (size_t i = 0; i < hidden_count; i++)
        key[1 + shape_count + i] = hidden[i];
    if (!orr_intern_add(s->layout_keys, (orr_str){(char *)key, (count + 1) * sizeof *key}, &l))
        return no_room(s);
    if (l != before)
        return l;
    if (!orr_grow(&s->layouts, &s->layout_room, l + 1u) ||
        !orr_grow(&s->extents, &s->extent_room, s->extent_count + count))
        return no_room(s);
    s->layouts[l] = (stg_layout_row){.first = (uint32_t)s->extent_count,
                                     .shape_count = (uint8_t)shape_count,
                                     .hidden_count = (uint8_t)hidden_count,
                                     .size = ORR__NONE,
                                     .hidden_size = ORR__NONE,
                                     .text = ORR__NONE};
    memcpy(s->extents + s->extent_count, key + 1, count * sizeof *key);
    s->extent_count += count;
    return l;
}

orr__layout stg_layout_line(stg_space *s, stg_expr extent)
{
    const stg_expr one = ORR__ONE;
    return stg_layout_make(s, &extent, 1, &one, 1);
}

static stg_expr product_of(stg_space *s, uint32_t first, size_t count)
{
    stg_expr product = ORR__ONE;
    for (size_t i = 0; i < count; i++)
        product = stg_expr_mul(&s->algebra, product, s->extents[first + i]);
    return product;
}

stg_expr stg_layout_size(stg_space *s, orr__layout l)
{
    stg_layout_row *row = &s->layouts[l];
    if (row->size == ORR__NONE)
        row->size = product_of(s, row->first, row->shape_count);
    return row->size;
}

stg_expr stg_layout_hidden_size(stg_space *s, orr__layout l)
{
    stg_layout_row *row = &s->layouts[l];
    if (row->hidden_size == ORR__NONE)
        row->hidden_size = product_of(s, row->first + row->shape_count, row->hidden_count);
    return row->hidden_size;
}

orr__layout stg_layout_replace(stg_space *s, orr__layout l, uint32_t symbol, stg_expr by)
{
    const stg_layout_row row = s->layouts[l];
    const size_t count = (size_t)row.shape_count + row.hidden_count;
    stg_expr extents[2 * ORR__DIMS_MOST];
    for (size_t i = 0; i < count; i++)
        extents[i] = stg_expr_replace(&s->algebra, s->extents[row.first + i], symbol, by);
    if (s->algebra.fault)
        return l;
    return stg_layout_make(s, extents, row.shape_count, extents + row.shape_count,
                           row.hidden_count);
}

/* ---- texts ---- */

static orr_str print_extents(stg_space *s, uint32_t first, size_t count)
{
    s->text.len = 0;
    for (size_t i = 0; i < count; i++) {
        const orr_str text = stg_expr_text(&s->algebra, s->extents[first + i]);
        orr_buf_text(&s->text, i ? "," : "");
        orr_buf_add(&s->text, text.ptr, text.len);
    }
    if (count == 0)
        orr_buf_text(&s->text, "1");
    if (s->text.failed)
        no_room(s);
    return (orr_str){(const char *)s->text.ptr, s->text.len};
}

orr_str stg_layout_text(stg_space *s, orr__layout l)
{
    stg_layout_row *row = &s->layouts[l];
    if (row->text == ORR__NONE)
        row->text = stg_word_of(s, print_extents(s, row->first, row->shape_count));
    return stg_word_text(s, row->text);
}

orr_str stg_layout_hidden_text(stg_space *s, orr__layout l)
{
    const stg_layout_row *row = &s->layouts[l];
    return print_extents(s, row->first + row->shape_count, row->hidden_count);
}

/* Expressions between commas; an empty text has none. */
static orr_code parse_list(stg_space *s,
                           orr_str text,
                           const orr_where *where,
                           stg_expr *out,
                           size_t *count,
                           orr_error *err)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    *count = 0;
    while (text.len && at <= end) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        if (*count == ORR__DIMS_MOST)
            return orr_fail(err, ORR_EINPUT, where, "'%.*s' has more than %d extents",
                            (int)text.len, text.ptr, ORR__DIMS_MOST);
        const orr_code code = stg_expr_parse(&s->algebra, (orr_str){at, (size_t)(stop - at)}, where,
                                             &out[*count], err);
        if (code)
            return code;
        ++*count;
        at = stop + 1;
    }
    return ORR_OK;
}

orr_code stg_layout_parse(stg_space *s,
                          orr_str shape,
                          orr_str hidden,
                          const orr_where *where,
                          orr__layout *out,
                          orr_error *err)
{
    stg_expr extents[2 * ORR__DIMS_MOST];
    size_t shape_count, hidden_count;
    orr_code code = parse_list(s, shape, where, extents, &shape_count, err);
    if (!code)
        code = parse_list(s, hidden, where, extents + shape_count, &hidden_count, err);
    if (code)
        return code;
    *out = stg_layout_make(s, extents, shape_count, extents + shape_count, hidden_count);
    return stg_algebra_check(&s->algebra, where, "layout", err);
}
