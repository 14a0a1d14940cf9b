/* SPDX-License-Identifier: Apache-2.0 */
/* json_writer.c - writing JSON into a buffer.
 *
 * State is a depth and two flags: after a container ends, the one around it has an item for
 * certain, so no stack is needed.  Layout follows Python's json.dumps in all its styles, since that
 * is what reference files are compared with. Cost: text is scanned eight bytes at a time and copied
 * in runs; only bytes that need it are escaped. */
#include "json.h"

#include "base/text/number.h"

#include <stdio.h>

/* ---- strings ---- */

/* Is one of these eight bytes a stop (see is_stop)? The top bit of a byte is set where (byte - n)
 * borrows, exactly for bytes below n when the byte itself has its top bit clear; bytes that have it
 * set are stops anyway. */
static inline bool has_stop(const char *p, bool ascii)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t w;
    memcpy(&w, p, 8);
    const uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\', del = w ^ ones * 0x7F;
    uint64_t stops = w | (w - ones * 0x20) | (quote - ones) | (slash - ones);
    if (ascii)
        stops |= del - ones;
    return (stops & tops) != 0;
}

static inline bool is_stop(uint8_t c, bool ascii)
{
    return c < 0x20 || c == '"' || c == '\\' || c >= 0x80 || (ascii && c == 0x7F);
}

static const char *next_stop(const char *p, const char *end, bool ascii)
{
    while (end - p >= 8 && !has_stop(p, ascii))
        p += 8;
    while (p < end && !is_stop((uint8_t)*p, ascii))
        p++;
    return p;
}

static void put_hex_escape(orr_buf *to, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    const char text[6] = {'\\',       'u', hex[c >> 12 & 15], hex[c >> 8 & 15], hex[c >> 4 & 15],
                          hex[c & 15]};
    orr_buf_add(to, text, sizeof text);
}

static void put_ascii_escape(orr_buf *to, uint8_t c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *at = c ? strchr(plain, c) : NULL;
    if (!at) {
        put_hex_escape(to, c);
        return;
    }
    orr_buf_byte(to, '\\');
    orr_buf_byte(to, (uint8_t)letter[at - plain]);
}

static void put_unicode_escape(orr_buf *to, uint32_t c)
{
    if (c < 0x10000) {
        put_hex_escape(to, c);
        return;
    }
    put_hex_escape(to, 0xD800 + ((c - 0x10000) >> 10));
    put_hex_escape(to, 0xDC00 + ((c - 0x10000) & 0x3FF));
}

/* The character at p, which is a stop; returns the bytes consumed. */
static size_t put_stop(orr_buf *to, const uint8_t *p, size_t n, bool ascii)
{
    if (*p < 0x80) {
        put_ascii_escape(to, *p);
        return 1;
    }
    const size_t length = orr_utf8_length(p, n);
    if (ascii)
        put_unicode_escape(to, length ? orr_utf8_get(p, length) : 0xFFFD);
    else if (length)
        orr_buf_add(to, p, length);
    else
        orr_buf_text(to, "\xEF\xBF\xBD");
    return length ? length : 1;
}

void orr_json_quote(orr_buf *to, orr_str s, bool ascii)
{
    const char *p = s.len ? s.ptr : "", *end = p + s.len; /* an empty text may have no address */
    orr_buf_byte(to, '"');
    while (p < end) {
        const char *stop = next_stop(p, end, ascii);
        orr_buf_add(to, p, (size_t)(stop - p));
        p = stop;
        if (p < end)
            p += put_stop(to, (const uint8_t *)p, (size_t)(end - p), ascii);
    }
    orr_buf_byte(to, '"');
}

/* ---- layout ---- */

static void put_line(orr_json_writer *w, size_t spaces)
{
    uint8_t *p = orr_buf_reserve(w->to, spaces + 1);
    if (!p)
        return;
    *p = '\n';
    memset(p + 1, ' ', spaces);
    w->to->len += spaces + 1;
}

/* What precedes an item: nothing after a key or outside all containers. */
static void before_item(orr_json_writer *w)
{
    const bool after_key = w->has_key, first = !w->has_items;
    w->has_key = false;
    w->has_items = true;
    if (after_key || w->depth == 0)
        return;
    if (!first)
        orr_buf_byte(w->to, ',');
    if (w->style.indent)
        put_line(w, (size_t)w->style.indent * w->depth);
    else if (w->has_break)
        put_line(w, w->break_spaces);
    else if (!first && w->style.spaced)
        orr_buf_byte(w->to, ' ');
    w->has_break = false;
}

void orr_json_line(orr_json_writer *w, uint32_t spaces)
{
    w->has_break = true;
    w->break_spaces = spaces;
}

static void begin(orr_json_writer *w, uint8_t bracket)
{
    before_item(w);
    orr_buf_byte(w->to, bracket);
    w->depth++;
    w->has_items = false;
}

static void end(orr_json_writer *w, uint8_t bracket)
{
    if (w->depth)
        w->depth--;
    if (w->has_items && w->style.indent)
        put_line(w, (size_t)w->style.indent * w->depth);
    orr_buf_byte(w->to, bracket);
    w->has_items = true;
}

void orr_json_in_page(const orr_buf *json, orr_buf *to)
{
    for (size_t i = 0; i < json->len; i++) {
        if (json->ptr[i] == '<')
            orr_buf_text(to, "\\u003c");
        else
            orr_buf_byte(to, json->ptr[i]);
    }
    to->failed = to->failed || json->failed;
}

void orr_json_writer_init(orr_json_writer *w, orr_buf *to, const orr_json_style *style)
{
    *w = (orr_json_writer){.to = to};
    if (style)
        w->style = *style;
}

void orr_json_begin_object(orr_json_writer *w)
{
    begin(w, '{');
}

void orr_json_end_object(orr_json_writer *w)
{
    end(w, '}');
}

void orr_json_begin_array(orr_json_writer *w)
{
    begin(w, '[');
}

void orr_json_end_array(orr_json_writer *w)
{
    end(w, ']');
}

void orr_json_key_str(orr_json_writer *w, orr_str key)
{
    before_item(w);
    orr_json_quote(w->to, key, w->style.ascii);
    orr_buf_byte(w->to, ':');
    if (w->style.indent || w->style.spaced)
        orr_buf_byte(w->to, ' ');
    w->has_key = true;
}

void orr_json_key(orr_json_writer *w, const char *key)
{
    orr_json_key_str(w, orr_str_of(key));
}

/* ---- values ---- */

void orr_json_str(orr_json_writer *w, orr_str s)
{
    before_item(w);
    orr_json_quote(w->to, s, w->style.ascii);
}

void orr_json_text(orr_json_writer *w, const char *s)
{
    orr_json_str(w, orr_str_of(s));
}

void orr_json_i64(orr_json_writer *w, int64_t v)
{
    before_item(w);
    orr_buf_i64(w->to, v);
}

void orr_json_u64(orr_json_writer *w, uint64_t v)
{
    before_item(w);
    orr_buf_u64(w->to, v);
}

static bool put_unbounded(orr_json_writer *w, double v)
{
    if (v - v == 0) /* finite */
        return false;
    orr_buf_text(w->to, v != v ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
    return true;
}

void orr_json_double(orr_json_writer *w, double v)
{
    char text[ORR_NUMBER_ROOM];
    before_item(w);
    if (!put_unbounded(w, v))
        orr_buf_add(w->to, text, orr_double_text(v, text));
}

void orr_json_bool(orr_json_writer *w, bool v)
{
    before_item(w);
    orr_buf_text(w->to, v ? "true" : "false");
}

void orr_json_null(orr_json_writer *w)
{
    before_item(w);
    orr_buf_text(w->to, "null");
}

void orr_json_put_u64(orr_json_writer *w, const char *key, uint64_t v)
{
    orr_json_key(w, key);
    orr_json_u64(w, v);
}

void orr_json_put_double(orr_json_writer *w, const char *key, double v)
{
    orr_json_key(w, key);
    orr_json_double(w, v);
}

void orr_json_put_bool(orr_json_writer *w, const char *key, bool v)
{
    orr_json_key(w, key);
    orr_json_bool(w, v);
}

void orr_json_put_text(orr_json_writer *w, const char *key, const char *text)
{
    orr_json_key(w, key);
    if (text)
        orr_json_text(w, text);
    else
        orr_json_null(w);
}

void orr_json_raw_text(orr_json_writer *w, orr_str json)
{
    before_item(w);
    orr_buf_add(w->to, json.ptr, json.len);
}

void orr_json_put_object(orr_json_writer *w, const char *key)
{
    orr_json_key(w, key);
    orr_json_begin_object(w);
}

void orr_json_put_array(orr_json_writer *w, const char *key)
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
}

void orr_json_put_known(orr_json_writer *w, const char *key, bool is_known, uint64_t v)
{
    orr_json_key(w, key);
    is_known ? orr_json_u64(w, v) : orr_json_null(w);
}

void orr_json_put_known_double(orr_json_writer *w, const char *key, bool is_known, double v)
{
    orr_json_key(w, key);
    is_known ? orr_json_double(w, v) : orr_json_null(w);
}

static void put_formatted(orr_json_writer *w, const orr_json_field *f)
{
    char text[64];
    snprintf(text, sizeof text, f->format, f->is.d);
    orr_json_key(w, f->key);
    orr_json_raw_text(w, orr_str_of(text));
}

void orr_json_put_list(orr_json_writer *w, const orr_json_field *f)
{
    for (; f->key; f++) {
        switch (f->kind) {
        case 'U':
            orr_json_put_u64(w, f->key, f->is.u);
            break;
        case 'I':
            orr_json_key(w, f->key);
            orr_json_i64(w, f->is.i);
            break;
        case 'D':
            orr_json_put_double(w, f->key, f->is.d);
            break;
        case 'B':
            orr_json_put_bool(w, f->key, f->is.b);
            break;
        case 'T':
        case 'N': /* its text is NULL or ignored */
            orr_json_put_text(w, f->key, f->kind == 'T' ? f->is.text : NULL);
            break;
        default:
            put_formatted(w, f);
        }
    }
}

void orr_json_put_item(orr_json_writer *w, const orr_json_field *fields)
{
    orr_json_begin_object(w);
    orr_json_put_list(w, fields);
    orr_json_end_object(w);
}
