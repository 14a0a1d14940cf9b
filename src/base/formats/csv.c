/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - one line at a time, its fields as pieces of the input.
 *
 * Only quoted fields with quotes in them are copied.  Invariant: c->at is the start of a line or
 * c->end. Cost: linear in the bytes; memory for the fields of the longest line. */
#include "csv.h"

#include "base/short_forms.h"
#include "base/text/number.h"

enum { SHOWN = 60 };

void orr_csv_init(orr_csv *c, orr_span bytes, const char *path)
{
    static const char mark[] = "\xEF\xBB\xBF";
    *c = (orr_csv){.path = path, .line = 1, .separator = ','};
    c->at = bytes.len ? (const char *)bytes.ptr : "";
    c->end = c->at + bytes.len;
    if (bytes.len >= 3 && memcmp(c->at, mark, 3) == 0)
        c->at += 3;
}

void orr_csv_fini(orr_csv *c)
{
    orr_free(c->fields);
    orr_arena_destroy(c->unquoted);
    *c = (orr_csv){0};
}

orr_where orr_csv_where(const orr_csv *c, const orr_csv_field *f)
{
    return orr_where_line(c->path, f->line, f->column);
}

static bool is_blank(const orr_csv *c, char ch)
{
    return (ch == ' ' || ch == '\t') && ch != c->separator;
}

static const char *skip_blanks(const orr_csv *c, const char *p, const char *end)
{
    while (p < end && is_blank(c, *p))
        p++;
    return p;
}

/* The next non-blank line that is not a comment: [*begin, *end), without its line end. */
static bool next_line(orr_csv *c, const char **begin, const char **end, uint32_t *line)
{
    while (c->at < c->end) {
        const char *from = c->at;
        const char *stop = memchr(from, '\n', (size_t)(c->end - from));
        c->at = stop ? stop + 1 : c->end;
        stop = stop ? stop : c->end;
        *line = c->line;
        c->line += c->line < UINT32_MAX;
        if (stop > from && stop[-1] == '\r')
            stop--;
        const char *word = skip_blanks(c, from, stop);
        if (word == stop || *word == '#')
            continue;
        *begin = from;
        *end = stop;
        return true;
    }
    return false;
}

static uint32_t column_of(const char *begin, const char *p)
{
    const size_t n = (size_t)(p - begin);
    return n < UINT32_MAX ? (uint32_t)n + 1 : UINT32_MAX;
}

/* The text between two quotes with doubled quotes made single. */
static orr_code unquote(orr_csv *c, orr_str inner, size_t doubled, orr_str *out, orr_error *err)
{
    *out = inner;
    if (doubled == 0)
        return ORR_OK;
    if (!c->unquoted && !(c->unquoted = orr_arena_create()))
        return orr_no_memory(err);
    char *to = orr_arena_take(c->unquoted, inner.len - doubled);
    if (!to)
        return orr_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < inner.len; i++) {
        to[n++] = inner.ptr[i];
        i += inner.ptr[i] == '"';
    }
    *out = (orr_str){to, n};
    return ORR_OK;
}

/* f's column is that of the opening quote at p; *after is the comma or the end. */
static orr_code take_quoted(orr_csv *c,
                            const char *p,
                            const char *end,
                            orr_csv_field *f,
                            const char **after,
                            orr_error *err)
{
    const orr_where w = orr_csv_where(c, f);
    const char *from = ++p;
    size_t doubled = 0;
    for (; p < end; p++) {
        if (*p != '"')
            continue;
        if (p + 1 == end || p[1] != '"')
            break;
        doubled++;
        p++;
    }
    if (p == end)
        return orr_fail(err, ORR_EINPUT, &w, "this quoted field has no end on its line");
    *after = skip_blanks(c, p + 1, end);
    if (*after < end && **after != c->separator)
        return orr_fail(err, ORR_EINPUT, &w, "expected a %s after this quoted field",
                        c->separator == ',' ? "comma" : "separator");
    return unquote(c, (orr_str){from, (size_t)(p - from)}, doubled, &f->text, err);
}

static orr_str take_plain(const orr_csv *c, const char *p, const char *end, const char **after)
{
    const char *separator = p < end ? memchr(p, c->separator, (size_t)(end - p)) : NULL;
    const char *stop = separator ? separator : end;
    *after = stop;
    while (stop > p && is_blank(c, stop[-1]))
        stop--;
    return (orr_str){p, (size_t)(stop - p)};
}

orr_code orr_csv_next(orr_csv *c, orr_csv_row *out, orr_error *err)
{
    const char *begin, *end;
    uint32_t line;
    if (c->unquoted)
        orr_arena_reset(c->unquoted);
    if (!next_line(c, &begin, &end, &line))
        return ORR_END;
    size_t n = 0;
    for (const char *p = begin, *after = NULL;; p = after + 1) {
        p = skip_blanks(c, p, end);
        if (!orr_grow(&c->fields, &c->room, n + 1))
            return orr_no_memory(err);
        orr_csv_field *f = &c->fields[n++];
        *f = (orr_csv_field){.line = line, .column = column_of(begin, p)};
        if (p < end && *p == '"') {
            const orr_code code = take_quoted(c, p, end, f, &after, err);
            if (code)
                return code;
        } else {
            f->text = take_plain(c, p, end, &after);
        }
        f->raw = (orr_str){p, (size_t)(after - p)};
        if (after == end)
            break;
    }
    *out = (orr_csv_row){c->fields, n, line};
    return ORR_OK;
}

orr_code orr_csv_u64(const orr_csv *c,
                     const orr_csv_field *f,
                     const char *what,
                     uint64_t min,
                     uint64_t max,
                     uint64_t *out,
                     orr_error *err)
{
    uint64_t n;
    if (orr_text_u64(f->text, &n) && n >= min && n <= max) {
        *out = n;
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_csv_where(c, f)),
                    "%s: \"%.*s\" is not a whole number from %llu to %llu", what,
                    ORR_SHOWN(f->text, SHOWN), (unsigned long long)min, (unsigned long long)max);
}

/* ---- writing ---- */

void orr_csv_put(orr_buf *to, orr_str text)
{
    const bool is_formula = text.len && memchr("=+-@\t\r", text.ptr[0], 6);
    bool is_plain = !text.len || text.ptr[0] != '#'; /* which begins a comment */
    for (size_t i = 0; i < text.len; i++)
        is_plain &= !memchr(",\"\n\r", text.ptr[i], 4);
    orr_buf_text(to, is_plain ? "" : "\"");
    orr_buf_text(to, is_formula ? "'" : "");
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"')
            orr_buf_byte(to, '"');
        orr_buf_byte(to, (uint8_t)text.ptr[i]);
    }
    orr_buf_text(to, is_plain ? "" : "\"");
}
