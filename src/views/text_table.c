/* SPDX-License-Identifier: Apache-2.0 */
/* text_table.c - see views_impl.h.
 *
 * All rows are kept until the table is printed, because a column is as wide as its widest cell.
 * Characters are counted, not bytes.  Numbers are formatted with integer arithmetic only, so all
 * machines round alike. */
#include "views_impl.h"

#include <orrery/lab/units.h>

#include "base/io/output.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/text/text.h"
#include "info_impl.h"

enum { BAR_CELLS = 10 };

/* From here on numbers are abbreviated: a column has eleven characters at most. */
#define SHORT_FROM 1000000000u

void orr__table_add(orr__table *t, const char *cell)
{
    if (!cell || !orr_grow(&t->cells, &t->room, t->count + 1)) {
        t->failed = true;
        return;
    }
    t->cells[t->count++] = cell;
}

static size_t text_width(const char *s)
{
    size_t width = 0;
    for (; *s; s++)
        width += ((uint8_t)*s & 0xC0) != 0x80; /* skips continuation bytes */
    return width;
}

static size_t prefix_bytes(const char *s, size_t width)
{
    size_t n = 0;
    while (s[n]) {
        if (((uint8_t)s[n] & 0xC0) != 0x80 && width-- == 0)
            break;
        n++;
    }
    return n;
}

static void measure(const orr__table *t, size_t widths[])
{
    for (size_t i = 0; i < t->count; i++) {
        const size_t width = text_width(t->cells[i]);
        if (width > widths[i % t->columns])
            widths[i % t->columns] = width;
    }
}

/* Cuts the widest of the left columns, one step at a time, while the table is too wide. */
static void fit(const orr__table *t, size_t widths[])
{
    enum { NARROWEST = 8 };
    size_t total = 2 * t->columns;
    for (uint32_t k = 0; k < t->columns; k++)
        total += widths[k];
    while (total > ORR__TABLE_WIDTH && t->left) {
        uint32_t widest = 0;
        for (uint32_t k = 1; k < t->left; k++)
            if (widths[k] > widths[widest])
                widest = k;
        if (widths[widest] <= NARROWEST)
            return;
        widths[widest]--;
        total--;
    }
}

static void print_blanks(orr_buf *to, size_t n)
{
    for (; n; n--)
        orr_buf_byte(to, ' ');
}

static void print_left(orr_buf *to, const char *cell, size_t width)
{
    const size_t have = text_width(cell);
    if (have > width) {
        orr_buf_add(to, cell, prefix_bytes(cell, width - 3));
        orr_buf_text(to, "...");
        return;
    }
    orr_buf_text(to, cell);
    print_blanks(to, width - have);
}

static void print_row(const orr__table *t, const char **cells, const size_t widths[], orr_buf *to)
{
    for (uint32_t k = 0; k < t->columns; k++) {
        print_blanks(to, 2);
        if (k < t->left || (t->has_bars && k + 1 == t->columns)) {
            print_left(to, cells[k], widths[k]);
        } else {
            print_blanks(to, widths[k] - text_width(cells[k]));
            orr_buf_text(to, cells[k]);
        }
    }
    while (to->len && to->ptr[to->len - 1] == ' ')
        to->len--;
    orr_buf_byte(to, '\n');
}

void orr__table_print(orr__table *t, orr_buf *to)
{
    size_t widths[ORR__TABLE_COLUMNS] = {0};
    to->failed |= t->failed;
    if (!t->failed) {
        measure(t, widths);
        fit(t, widths);
        for (size_t i = 0; i + t->columns <= t->count; i += t->columns)
            print_row(t, t->cells + i, widths, to);
    }
    orr_free(t->cells);
    *t = (orr__table){
        .arena = t->arena, .columns = t->columns, .left = t->left, .has_bars = t->has_bars};
}

/* ---- cells ---- */

static bool is_harmless(const uint8_t *p, size_t length)
{
    const uint32_t c = orr_utf8_get(p, length);
    return c >= 0x20 && c != 0x7F && !(c >= 0x80 && c < 0xA0);
}

const char *orr__cell_text(orr_arena *a, orr_str s)
{
    char *out = orr_arena_take(a, s.len + 1);
    size_t n = 0;
    if (!out)
        return NULL;
    for (size_t i = 0; i < s.len;) {
        const uint8_t *p = (const uint8_t *)s.ptr + i;
        const size_t length = orr_utf8_length(p, s.len - i);
        if (length && is_harmless(p, length)) {
            memcpy(out + n, p, length);
            n += length;
        } else {
            out[n++] = '?';
        }
        i += length ? length : 1;
    }
    out[n] = '\0';
    return out;
}

const char *orr__cell_count(orr_arena *a, uint64_t v)
{
    char text[ORR_UNIT_ROOM];
    return orr_arena_print(a, "%s",
                           v < SHORT_FROM ? orr_count_text(v, text) : orr_short_text(v, text));
}

const char *orr__cell_bytes(orr_arena *a, uint64_t v)
{
    char text[ORR_UNIT_ROOM];
    return orr_arena_print(a, "%s", orr_bytes_text(v, text));
}

const char *orr__cell_share(orr_arena *a, uint64_t part, uint64_t whole)
{
    char text[ORR_UNIT_ROOM];
    return orr_arena_print(a, "%s", orr_percent_text(part, whole, text));
}

const char *orr__cell_bar(orr_arena *a, uint64_t part, uint64_t whole)
{
    char text[ORR_BAR_ROOM];
    return orr_arena_print(a, "%s", orr_bar_text(part, whole, BAR_CELLS, text));
}

const char *orr__cell_average(orr_arena *a, uint64_t total, uint64_t count)
{
    char text[ORR_UNIT_ROOM];
    if (count == 0)
        return "-";
    const unsigned __int128 tenths = ((unsigned __int128)total * 10 + count / 2) / count;
    const uint64_t whole = (uint64_t)(tenths / 10); /* at most total */
    if (whole >= SHORT_FROM)
        return orr__cell_count(a, whole);
    return orr_arena_print(a, "%s.%u", orr_count_text(whole, text), (unsigned)(tenths % 10));
}

void orr__put_html(orr_buf *b, orr_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '<')
            orr_buf_text(b, "&lt;");
        else if (text.ptr[i] == '&')
            orr_buf_text(b, "&amp;");
        else
            orr_buf_byte(b, (uint8_t)text.ptr[i]);
    }
}

/* ---- whole documents ---- */

orr_json_writer *orr__document_begin(orr__document *d, const char *format)
{
    *d = (orr__document){0};
    orr_json_writer_init(&d->writer, &d->text, &(orr_json_style){.spaced = true});
    orr_json_begin_object(&d->writer);
    orr_json_put_text(&d->writer, "format", format);
    orr_json_put_u64(&d->writer, "version", 1);
    return &d->writer;
}

orr_code orr__document_save(orr__document *d, const char *path, orr_error *err)
{
    orr_json_end_object(&d->writer);
    orr_buf_byte(&d->text, '\n');
    return orr__text_save(&d->text, path, err);
}

orr_code orr__text_save(orr_buf *b, const char *path, orr_error *err)
{
    const orr_code code = orr_output_save(b, path, err);
    orr_buf_fini(b);
    return code;
}

/* ---- ranks with the same figures as one row ----
 *
 * A row lists the ranks it represents.
 *
 * Works on the text of the rows, so that equality means what a reader of the file sees, for any
 * columns and folded or not.  Rows stay in the order of their first ranks. Cost: linear in the
 * text. */

typedef struct row {
    orr_str rest;    /* of the line: from the comma after the rank to its end */
    uint32_t count;  /* ranks */
    uint32_t first;  /* place of the first one in `members` */
    uint32_t filled; /* of these so far */
} row;

typedef struct rows {
    orr_arena *arena;
    orr_map *by_rest; /* hash -> row */
    row *rows;
    uint32_t count, ranks;
    uint32_t *row_of; /* by rank */
    uint32_t *members;
} rows;

static orr_str next_line(const orr_buf *b, size_t *at)
{
    const char *from = (const char *)b->ptr + *at;
    const char *end = memchr(from, '\n', b->len - *at);
    const orr_str line = {from, end ? (size_t)(end - from) + 1 : b->len - *at};
    *at += line.len;
    return line;
}

static orr_str after_rank(orr_str line)
{
    const char *comma = memchr(line.ptr, ',', line.len);
    const size_t skipped = comma ? (size_t)(comma - line.ptr) : line.len;
    return (orr_str){line.ptr + skipped, line.len - skipped};
}

/* False: out of memory. */
static bool add_rank(rows *v, orr_str rest)
{
    uint64_t key = orr_hash_bytes(rest.ptr, rest.len, 0);
    uint32_t i;
    while ((i = orr_map_find(v->by_rest, key, v->count)) != v->count) {
        const orr_str known = v->rows[i].rest;
        if (known.len == rest.len && memcmp(known.ptr, rest.ptr, rest.len) == 0)
            break;
        key++; /* hash collision */
    }
    if (i == v->count) {
        if (!orr_map_put(v->by_rest, key, i, NULL))
            return false;
        v->rows[v->count++] = (row){.rest = rest};
    }
    v->rows[i].count++;
    v->row_of[v->ranks++] = i;
    return true;
}

static bool group_rows(rows *v, const orr_buf *b, size_t from)
{
    size_t lines = 0;
    for (size_t i = from; i < b->len; i++)
        lines += b->ptr[i] == '\n';
    v->rows = orr_arena_new(v->arena, lines + 1, row);
    v->row_of = orr_arena_new(v->arena, lines + 1, uint32_t);
    v->members = orr_arena_new(v->arena, lines + 1, uint32_t);
    bool ok = v->rows && v->row_of && v->members;
    for (size_t at = from; ok && at < b->len;)
        ok = add_rank(v, after_rank(next_line(b, &at)));
    for (uint32_t i = 0, at = 0; ok && i < v->count; at += v->rows[i++].count)
        v->rows[i].first = at;
    for (uint32_t r = 0; ok && r < v->ranks; r++) {
        row *w = &v->rows[v->row_of[r]];
        v->members[w->first + w->filled++] = r;
    }
    return ok;
}

void orr__csv_join_alike(orr_buf *b)
{
    orr_buf out = {0};
    size_t at = 0;
    orr_str line = {0};
    if (b->failed)
        return;
    /* Comments stay as they are; then comes the header row. */
    while (at < b->len && (line = next_line(b, &at)).ptr[0] == '#')
        orr_buf_add(&out, line.ptr, line.len);
    orr_buf_text(&out, "ranks,rank_count");
    line = after_rank(line);
    orr_buf_add(&out, line.ptr, line.len);
    rows v = {.arena = orr_arena_create(), .by_rest = orr_map_create(0)};
    out.failed |= !v.arena || !v.by_rest || !group_rows(&v, b, at);
    for (uint32_t i = 0; !out.failed && i < v.count; i++) {
        const row *w = &v.rows[i];
        const char *ranks = orr__rank_ranges(v.arena, v.members + w->first, w->count);
        out.failed |= !ranks;
        if (ranks)
            orr_buf_print(&out, "\"%s\",%u", ranks, w->count);
        orr_buf_add(&out, w->rest.ptr, w->rest.len);
    }
    orr_map_destroy(v.by_rest);
    orr_arena_destroy(v.arena);
    orr_buf_fini(b);
    *b = out;
}
