/* SPDX-License-Identifier: Apache-2.0 */
/* json_repaint.c - valid JSON text in Python's layout, without a tree.
 *
 * A linked trace is four times the size of its host trace, most of it the nodes' texts in another
 * layout, in another order, and some of them several times.  So a node stays in the mapped file and
 * its bytes go straight to the output.  The text was validated when it was first read: nothing is
 * checked again here, and nothing after the value is read.
 * Cost: one pass over the bytes; strings without escapes are copied whole. */
#include "json_repaint.h"

#include "base/text/number.h"

#include "base/formats/json.h"

void repaint_line(orr_buf *to, uint32_t depth)
{
    const size_t n = 1 + 4 * (size_t)depth;
    uint8_t *at = orr_buf_reserve(to, n);
    if (!at)
        return;
    at[0] = '\n';
    memset(at + 1, ' ', n - 1);
    to->len += n;
}

const char *repaint_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* ---- strings ---- */

/* The end of the string that begins at p, after its quote. No bounds are checked, here and below:
 * the text was validated before, so every string has its quote. */
static const char *string_end(const char *p)
{
    for (p++; *p != '"'; p++) {
        if (*p == '\\')
            p++;
    }
    return p + 1;
}

static uint32_t hex_digits(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t c = (uint8_t)p[i];
        v = v << 4 | (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return v;
}

/* One UTF-16 unit as Python has it in ASCII text. */
static void put_unit(orr_buf *to, uint32_t u)
{
    static const char short_form[][2] = {{'"', '"'},  {'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'},
                                         {'\t', 't'}, {'\f', 'f'},  {'\b', 'b'}};
    for (size_t i = 0; i < sizeof short_form / sizeof *short_form; i++) {
        if (u == (uint32_t)short_form[i][0]) {
            orr_buf_byte(to, '\\');
            orr_buf_byte(to, (uint8_t)short_form[i][1]);
            return;
        }
    }
    if (u >= ' ' && u <= '~')
        orr_buf_byte(to, (uint8_t)u);
    else
        orr_buf_print(to, "\\u%04x", (unsigned)u);
}

static void put_character(orr_buf *to, uint32_t c)
{
    if (c < 0x10000) {
        put_unit(to, c);
        return;
    }
    put_unit(to, 0xD800 + ((c - 0x10000) >> 10));
    put_unit(to, 0xDC00 + ((c - 0x10000) & 0x3FF));
}

/* At p: an escape, or a non-ASCII character, which cannot be copied verbatim. */
static const char *put_special(orr_buf *to, const char *p, const char *end)
{
    if (*p != '\\') {
        /* A byte that is no UTF-8 becomes U+FFFD by itself, so that the output is ASCII, and valid
         * JSON, whatever a name in the trace was made of. */
        size_t n = orr_utf8_length((const uint8_t *)p, (size_t)(end - p));
        put_character(to, n ? orr_utf8_get((const uint8_t *)p, n) : 0xFFFD);
        return p + (n ? n : 1);
    }
    if (p[1] == 'u') {
        put_unit(to, hex_digits(p + 2));
        return p + 6;
    }
    if (p[1] == '/') {
        orr_buf_byte(to, '/');
        return p + 2;
    }
    orr_buf_add(to, p, 2);
    return p + 2;
}

/* Runs of plain characters are copied at once; in traces that is nearly every string, whole. */
static const char *repaint_string(orr_buf *to, const char *p)
{
    const char *end = string_end(p) - 1, *from = p++;
    while (p < end) {
        if (*p >= ' ' && *p <= '~' && *p != '\\') {
            p++;
            continue;
        }
        orr_buf_add(to, from, (size_t)(p - from));
        from = p = put_special(to, p, end);
    }
    orr_buf_add(to, from, (size_t)(end + 1 - from));
    return end + 1;
}

/* ---- numbers and words ---- */

static const char *scalar_end(const char *p, bool *is_real)
{
    *is_real = false;
    for (;; p++) {
        if (*p == '.' || *p == 'e' || *p == 'E')
            *is_real = true;
        else if (!((*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || (*p >= 'A' && *p <= 'Z') ||
                   (*p >= 'a' && *p <= 'z')))
            return p;
    }
}

static const char *repaint_scalar(orr_buf *to, const char *p)
{
    char text[ORR_NUMBER_ROOM];
    bool is_real;
    double v;
    const char *end = scalar_end(p, &is_real);
    const orr_str raw = {p, (size_t)(end - p)};
    const bool is_number = *p == '-' || (*p >= '0' && *p <= '9');
    if (orr_str_is(raw, "-0"))
        orr_buf_byte(to, '0'); /* Python has no negative integer zero */
    else if (is_number && is_real && orr_text_double(raw, &v) && v - v == 0)
        orr_buf_add(to, text, orr_double_text(v, text));
    else
        orr_buf_add(to, p, raw.len);
    return end;
}

/* ---- containers ---- */

/* Elements or members up to the closing bracket; p is after the opening one. */
static const char *repaint_items(orr_buf *to, const char *p, uint32_t depth, char closer)
{
    bool is_first = true;
    for (p = repaint_space(p); *p != closer; p = repaint_space(p)) {
        if (*p == ',')
            p = repaint_space(p + 1);
        if (!is_first)
            orr_buf_byte(to, ',');
        is_first = false;
        repaint_line(to, depth + 1);
        if (closer == '}') {
            p = repaint_space(repaint_string(to, p)) + 1; /* past the colon */
            orr_buf_add(to, ": ", 2);
            p = repaint_space(p);
        }
        p = repaint_value(to, p, depth + 1);
    }
    if (!is_first)
        repaint_line(to, depth);
    orr_buf_byte(to, (uint8_t)closer);
    return p + 1;
}

const char *repaint_value(orr_buf *to, const char *p, uint32_t depth)
{
    switch (*p) {
    case '"':
        return repaint_string(to, p);
    case '[':
        orr_buf_byte(to, '[');
        return repaint_items(to, p + 1, depth, ']');
    case '{':
        orr_buf_byte(to, '{');
        return repaint_items(to, p + 1, depth, '}');
    default:
        return repaint_scalar(to, p);
    }
}

/* Skips a value. Brackets are counted regardless of kind, which is enough for valid text. */
static const char *skip_value(const char *p)
{
    bool is_real;
    uint32_t open = 0;
    do {
        p = repaint_space(p);
        if (*p == '"') {
            p = string_end(p);
        } else if (*p == '{' || *p == '[') {
            open++;
            p++;
        } else if (*p == '}' || *p == ']') {
            open--;
            p++;
        } else if (*p == ',' || *p == ':') {
            p++;
        } else {
            p = scalar_end(p, &is_real);
        }
    } while (open);
    return p;
}

/* ---- an object with other values ---- */

static repaint_override *find_override(const char *key,
                                       size_t length,
                                       repaint_override *all,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(all[i].key) == length && memcmp(all[i].key, key, length) == 0)
            return &all[i];
    }
    return NULL;
}

static void begin_member(orr_buf *to, uint32_t depth, bool *is_first)
{
    if (!*is_first)
        orr_buf_byte(to, ',');
    *is_first = false;
    repaint_line(to, depth + 1);
}

static void put_override(orr_buf *to, uint32_t depth, repaint_override *o, bool *is_first)
{
    begin_member(to, depth, is_first);
    orr_buf_byte(to, '"');
    orr_buf_text(to, o->key);
    orr_buf_add(to, "\": ", 3);
    orr_buf_add(to, o->value.ptr, o->value.len);
    o->is_written = true;
}

static const char *put_member(orr_buf *to, const char *p, uint32_t depth, bool *is_first)
{
    begin_member(to, depth, is_first);
    p = repaint_space(repaint_string(to, p)) + 1;
    orr_buf_add(to, ": ", 2);
    return repaint_value(to, repaint_space(p), depth + 1);
}

const char *repaint_object(
    orr_buf *to, const char *p, uint32_t depth, repaint_override *overrides, size_t count)
{
    bool is_first = true;
    orr_buf_byte(to, '{');
    for (p = repaint_space(p + 1); *p != '}'; p = repaint_space(p)) {
        if (*p == ',')
            p = repaint_space(p + 1);
        const char *behind = string_end(p);
        repaint_override *o = find_override(p + 1, (size_t)(behind - p) - 2, overrides, count);
        if (!o) {
            p = put_member(to, p, depth, &is_first);
            continue;
        }
        /* A duplicate key is replaced at its first occurrence, and the second one is dropped:
         * readers differ in which of two they use. */
        if (!o->is_written)
            put_override(to, depth, o, &is_first);
        p = skip_value(repaint_space(repaint_space(behind) + 1));
    }
    for (size_t i = 0; i < count; i++) {
        if (!overrides[i].is_written && !overrides[i].only_if_there)
            put_override(to, depth, &overrides[i], &is_first);
    }
    if (!is_first)
        repaint_line(to, depth);
    orr_buf_byte(to, '}');
    return p + 1;
}

orr_json_writer repaint_override_begin(repaint_overrides *v, orr_buf *values, const char *key)
{
    orr_json_writer j;
    v->of[v->count] = (repaint_override){.key = key};
    /* An offset, not a pointer: the values share one buffer, which may be reallocated. */
    v->from[v->count++] = values->len;
    orr_json_writer_init(&j, values, &(orr_json_style){.ascii = true});
    return j;
}

void repaint_override_finish(repaint_overrides *v, const orr_buf *values)
{
    for (size_t i = 0; i < v->count; i++) {
        const size_t end = i + 1 < v->count ? v->from[i + 1] : values->len;
        v->of[i].value = (orr_str){(const char *)values->ptr + v->from[i], end - v->from[i]};
    }
}
