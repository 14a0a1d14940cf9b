/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_columns.c - a table column by column: NumPy's .npz, a zip file of one array per column.
 *
 * Why this one of the formats of columns: it is a header and the bare numbers, needs no library to
 * write, and numpy.load reads it, as do R and Julia.  Columns of whole numbers are int64, of other
 * numbers float64 with NaN where a point has none, of texts UTF-32.  Nothing in the file depends on
 * the time it was written. */
#include "sweep_table.h"

#include "base/formats/zip_file.h"
#include "base/io/output.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>

enum { NPY_HEAD = 10, NPY_ALIGN = 64, MOST_MEMBERS = 65000, DOS_DAY = 0x21 /* 1980-01-01 */ };

static void put_le(orr_buf *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        orr_buf_byte(to, (uint8_t)(v >> (8 * i)));
}

/* ---- one array ---- */

static void put_npy_head(orr_buf *to, const char *type, size_t width, size_t rows)
{
    char text[160];
    const int n = snprintf(text, sizeof text, "{'descr': '%s", type);
    size_t used = n > 0 ? (size_t)n : 0;
    if (width)
        used += (size_t)snprintf(text + used, sizeof text - used, "%zu", width);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "', 'fortran_order': False, 'shape': (%zu,), }", rows);
    const size_t all = (NPY_HEAD + used + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
    orr_buf_add(to, "\x93NUMPY\x01", 8); /* with the zero behind it: version 1.0 */
    put_le(to, all - NPY_HEAD, 2);
    orr_buf_add(to, text, used);
    for (size_t i = NPY_HEAD + used + 1; i < all; i++)
        orr_buf_byte(to, ' ');
    orr_buf_byte(to, '\n');
}

/* The next character; bytes that are none count one each, as U+FFFD. */
static uint32_t next_character(orr_str s, size_t *at)
{
    const uint8_t *p = (const uint8_t *)s.ptr + *at, c = *p;
    const unsigned n = c < 0x80                ? 1
                       : c >= 0xC2 && c < 0xE0 ? 2
                       : c >= 0xE0 && c < 0xF0 ? 3
                       : c >= 0xF0 && c < 0xF5 ? 4
                                               : 0;
    uint32_t v = n == 1 ? c : n ? c & (0x7Fu >> n) : 0xFFFD;
    bool is_good = n && n <= s.len - *at;
    for (unsigned i = 1; i < n && is_good; i++) {
        is_good = orr__utf8_follows(p[i]);
        v = v << 6 | (p[i] & 0x3F);
    }
    *at += is_good ? n : 1;
    return is_good ? v : 0xFFFD;
}

static size_t count_characters(orr_str s)
{
    size_t n = 0;
    for (size_t at = 0; at < s.len; n++)
        next_character(s, &at);
    return n;
}

static orr_str cell_text(orr_arena *a, swp_value v)
{
    const char *text = swp_cell_text(a, v, false);
    return orr_str_of(text ? text : "");
}

static void put_texts(const orr_sweep_table *t, uint32_t column, orr_arena *a, orr_buf *to)
{
    size_t width = 1;
    for (size_t i = 0; i < t->row_count; i++) {
        const size_t n = count_characters(cell_text(a, t->rows[i].values[column]));
        width = n > width ? n : width;
    }
    put_npy_head(to, "<U", width, t->row_count);
    for (size_t i = 0; i < t->row_count; i++) {
        const orr_str s = cell_text(a, t->rows[i].values[column]);
        size_t n = 0;
        for (size_t at = 0; at < s.len; n++)
            put_le(to, next_character(s, &at), 4);
        for (; n < width; n++)
            put_le(to, 0, 4);
    }
}

static void put_double(orr_buf *to, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_le(to, bits, 8);
}

static void put_column(const orr_sweep_table *t, uint32_t column, orr_arena *a, orr_buf *to)
{
    bool has_text = false, is_whole = true;
    for (size_t i = 0; i < t->row_count; i++) {
        const swp_value *v = &t->rows[i].values[column];
        has_text = has_text || v->kind == SWP_TEXT;
        is_whole = is_whole && v->kind == SWP_NUMBER && v->number == floor(v->number) &&
                   fabs(v->number) < 0x1p53;
    }
    if (has_text) {
        put_texts(t, column, a, to);
        return;
    }
    put_npy_head(to, is_whole ? "<i8" : "<f8", 0, t->row_count);
    for (size_t i = 0; i < t->row_count; i++) {
        const swp_value *v = &t->rows[i].values[column];
        if (is_whole)
            put_le(to, (uint64_t)(int64_t)v->number, 8);
        else
            put_double(to, v->kind == SWP_NUMBER ? v->number : (double)NAN);
    }
}

static void put_points(const orr_sweep_table *t, orr_buf *to)
{
    put_npy_head(to, "<i8", 0, t->row_count);
    for (size_t i = 0; i < t->row_count; i++)
        put_le(to, t->rows[i].point, 8);
}

/* ---- the zip file ---- */

typedef struct zip_pen {
    orr_buf all, directory;
    uint32_t count;
} zip_pen;

/* What the local header and the directory share: of a member that is stored, not packed. */
static void put_member(orr_buf *to, const orr_buf *member, size_t name_len)
{
    const uint32_t crc = orr_zip_crc((orr_span){member->ptr, member->len});
    put_le(to, 20, 2);     /* version 2.0 */
    put_le(to, 0x0800, 2); /* names are UTF-8 */
    put_le(to, 0, 2);
    put_le(to, 0, 2);
    put_le(to, DOS_DAY, 2);
    put_le(to, crc, 4);
    put_le(to, member->len, 4);
    put_le(to, member->len, 4);
    put_le(to, name_len, 2);
    put_le(to, 0, 2);
}

static bool add_member(zip_pen *z, const char *name, const orr_buf *member)
{
    const size_t at = z->all.len, name_len = strlen(name) + 4;
    if (member->failed || at + member->len > INT32_MAX || name_len > UINT16_MAX)
        return false;
    put_le(&z->all, 0x04034b50, 4);
    put_member(&z->all, member, name_len);
    orr_buf_print(&z->all, "%s.npy", name);
    orr_buf_add(&z->all, member->ptr, member->len);
    put_le(&z->directory, 0x02014b50, 4);
    put_le(&z->directory, 20, 2);
    put_member(&z->directory, member, name_len);
    put_le(&z->directory, 0, 2 + 2 + 2); /* comment, disk, kind */
    put_le(&z->directory, 0, 4);
    put_le(&z->directory, at, 4);
    orr_buf_print(&z->directory, "%s.npy", name);
    z->count++;
    return true;
}

static void end_zip(zip_pen *z)
{
    const size_t at = z->all.len;
    orr_buf_add(&z->all, z->directory.ptr, z->directory.len);
    z->all.failed |= z->directory.failed;
    put_le(&z->all, 0x06054b50, 4);
    put_le(&z->all, 0, 4);
    put_le(&z->all, z->count, 2);
    put_le(&z->all, z->count, 2);
    put_le(&z->all, z->directory.len, 4);
    put_le(&z->all, at, 4);
    put_le(&z->all, 0, 2);
}

orr_code swp_columns_write(const orr_sweep_table *t, const char *path, orr_error *err)
{
    zip_pen z = {0};
    orr_buf member = {0};
    orr_arena *a = orr_arena_create();
    orr_code code = a ? ORR_OK : orr_no_memory(err);
    bool fits = t->shown_count < MOST_MEMBERS;
    if (!code && fits) {
        put_points(t, &member);
        fits = add_member(&z, "point", &member);
    }
    for (size_t k = 0; k < t->shown_count && !code && fits; k++) {
        member.len = 0;
        orr_arena_reset(a);
        put_column(t, t->shown[k], a, &member);
        fits = add_member(&z, t->columns[t->shown[k]].name, &member);
    }
    if (!code && (member.failed || z.all.failed || z.directory.failed || orr_arena_has_failed(a)))
        code = orr_no_memory(err);
    else if (!code && !fits)
        code = orr_fail(err, ORR_EUSAGE, NULL,
                        "more than 2 GB of columns: choose some with --columns, or export csv");
    if (!code) {
        end_zip(&z);
        code = orr_output_save(&z.all, path, err);
    }
    orr_buf_fini(&member);
    orr_buf_fini(&z.all);
    orr_buf_fini(&z.directory);
    orr_arena_destroy(a);
    return code;
}
