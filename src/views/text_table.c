/* SPDX-License-Identifier: Apache-2.0 */
/* text_table.c - see views_impl.h.
 *
 * All rows are kept until the table is printed, because a column is as wide as its widest
 * cell.  Characters are counted, not bytes.  Numbers are made with integers only, so no two
 * machines round them differently. */
#include "views_impl.h"

#include <orrery/lab/units.h>

#include "base/text/text.h"

enum { BAR_CELLS = 10 };

/* From here on numbers are shortened: eleven characters are what a column can have. */
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
        width += ((uint8_t)*s & 0xC0) != 0x80; /* bytes that continue a character */
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

/* Cut the widest of the left columns, one step at a time, while the table is too wide. */
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
