/* SPDX-License-Identifier: Apache-2.0 */
/* xml.c - one pass over the bytes; elements are linked in the order of the file.
 *
 * Names and undecoded values point into the input, so a tree costs about as much as its text.
 * Places are counted only for messages. */
#include "xml.h"

#include "base/short_forms.h"
#include "base/text/number.h"

#include <inttypes.h>

enum { MOST_DEPTH = 256, MOST_ATTRIBUTES = 64, SHOWN = 40 };

struct orr_xml {
    orr_arena *arena;
    const char *path;
    orr_span bytes;
    orr_xml_node *root;
};

typedef struct scanner {
    orr_xml *x;
    const uint8_t *at, *end;
    orr_error *err;
} scanner;

/* ---- places ---- */

static orr_where place_of(const orr_xml *x, const uint8_t *at)
{
    const uint8_t *begin = x->bytes.ptr, *line = begin;
    uint32_t number = 1;
    for (const uint8_t *p = begin; p < at; p++)
        if (*p == '\n') {
            number++;
            line = p + 1;
        }
    const size_t column = (size_t)(at - line) + 1;
    return orr_where_line(x->path, number, column < UINT32_MAX ? (uint32_t)column : UINT32_MAX);
}

orr_where orr_xml_where(const orr_xml_node *n)
{
    return place_of(n->document, (const uint8_t *)n->name.ptr - 1);
}

static const orr_xml_attribute *find_attribute(const orr_xml_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->attribute_count; i++)
        if (orr_str_is(n->attributes[i].name, name))
            return &n->attributes[i];
    return NULL;
}

/* The place of an attribute's value; of the element if there is none of that name. */
static orr_where value_place(const orr_xml_node *n, const char *name)
{
    const orr_xml_attribute *a = find_attribute(n, name);
    return a ? place_of(n->document, a->at) : orr_xml_where(n);
}

static orr_code fail_at(const scanner *s, const uint8_t *at, const char *what)
{
    return orr_fail(s->err, ORR_EINPUT, ORR_AT(place_of(s->x, at < s->end ? at : s->end)),
                    "not XML: %s", what);
}

/* ---- pieces ---- */

static void skip_blanks(scanner *s)
{
    while (s->at < s->end && orr_is_space((char)*s->at))
        s->at++;
}

static bool begins(const scanner *s, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(s->end - s->at) >= n && memcmp(s->at, word, n) == 0;
}

static bool is_name_byte(uint8_t c)
{
    return c >= 0x80 || orr_is_letter((char)c) || orr_is_digit((char)c) || c == '_' || c == '-' ||
           c == '.' || c == ':';
}

static orr_code take_name(scanner *s, orr_str *out)
{
    const uint8_t *from = s->at;
    while (s->at < s->end && is_name_byte(*s->at))
        s->at++;
    *out = (orr_str){(const char *)from, (size_t)(s->at - from)};
    if (out->len == 0 || orr_is_digit(out->ptr[0]) || out->ptr[0] == '-' || out->ptr[0] == '.')
        return fail_at(s, from, "expected a name");
    return ORR_OK;
}

/* Past the next `end`. */
static orr_code skip_past(scanner *s, const char *end, const char *what)
{
    const uint8_t *from = s->at;
    const uint8_t *hit =
        s->at < s->end ? memmem(s->at, (size_t)(s->end - s->at), end, strlen(end)) : NULL;
    if (!hit)
        return fail_at(s, from, what);
    s->at = hit + strlen(end);
    return ORR_OK;
}

/* ---- entities ---- */

static size_t put_entity(orr_str e, uint8_t out[4])
{
    static const struct {
        const char *name;
        char is;
    } known[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    uint32_t c = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (orr_str_is(e, known[i].name)) {
            out[0] = (uint8_t)known[i].is;
            return 1;
        }
    if (e.len < 2 || e.ptr[0] != '#')
        return 0;
    const bool is_hex = e.ptr[1] == 'x';
    const size_t first = is_hex ? 2 : 1;
    for (size_t i = first; i < e.len; i++) {
        const char ch = e.ptr[i];
        const uint32_t low = (uint32_t)(ch | 0x20) - 'a';
        const uint32_t digit = orr_is_digit(ch) ? (uint32_t)(ch - '0') : low < 6 ? low + 10 : 99;
        if (digit >= (is_hex ? 16 : 10))
            return 0;
        c = c * (is_hex ? 16 : 10) + digit;
        if (c >= 0x110000)
            return 0;
    }
    return first == e.len || c == 0 || (c >= 0xD800 && c < 0xE000) ? 0 : orr_utf8_put(c, out);
}

static orr_code decode(scanner *s, orr_str raw, orr_str *out)
{
    uint8_t *to = orr_arena_zeroed(s->x->arena, raw.len + 1, 1); /* no entity grows */
    size_t n = 0;
    if (!to)
        return orr_no_memory(s->err);
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.ptr[i] != '&') {
            to[n++] = (uint8_t)raw.ptr[i];
            continue;
        }
        const char *semicolon = memchr(raw.ptr + i, ';', raw.len - i < 12 ? raw.len - i : 12);
        const size_t length = semicolon ? (size_t)(semicolon - raw.ptr) - i - 1 : 0;
        const size_t put = semicolon ? put_entity((orr_str){raw.ptr + i + 1, length}, to + n) : 0;
        if (put == 0)
            return fail_at(s, (const uint8_t *)raw.ptr + i, "an unknown entity");
        n += put;
        i += length + 1;
    }
    *out = (orr_str){(const char *)to, n};
    return ORR_OK;
}

/* ---- an element ---- */

static orr_code take_value(scanner *s, orr_xml_attribute *a)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != '=')
        return fail_at(s, s->at, "expected '=' and a value");
    s->at++;
    skip_blanks(s);
    if (s->at == s->end || (*s->at != '"' && *s->at != '\''))
        return fail_at(s, s->at, "expected a value in quotes");
    const uint8_t *from = s->at + 1;
    const uint8_t *to = memchr(from, *s->at, (size_t)(s->end - from));
    if (!to)
        return fail_at(s, s->at, "the quotes are never closed");
    if (memchr(from, '<', (size_t)(to - from)))
        return fail_at(s, s->at, "'<' in a value");
    s->at = to + 1;
    a->at = from;
    a->value = (orr_str){(const char *)from, (size_t)(to - from)};
    return memchr(from, '&', a->value.len) ? decode(s, a->value, &a->value) : ORR_OK;
}

static orr_code take_attributes(scanner *s, orr_xml_node *n)
{
    orr_xml_attribute all[MOST_ATTRIBUTES];
    orr_code code = ORR_OK;
    for (;;) {
        const uint8_t *before = s->at;
        skip_blanks(s);
        if (s->at < s->end && (*s->at == '>' || *s->at == '/'))
            break;
        const uint8_t *from = s->at;
        if (before == from)
            return fail_at(s, from,
                           s->at == s->end ? "the file ends within an element"
                                           : "expected whitespace or '>'");
        if (n->attribute_count == MOST_ATTRIBUTES)
            return fail_at(s, from, "more than 64 attributes");
        orr_xml_attribute *a = &all[n->attribute_count];
        if ((code = take_name(s, &a->name)) || (code = take_value(s, a)))
            return code;
        for (uint32_t i = 0; i < n->attribute_count; i++)
            if (orr_str_equal(all[i].name, a->name))
                return fail_at(s, from, "duplicate attribute");
        n->attribute_count++;
    }
    if (n->attribute_count == 0)
        return ORR_OK;
    orr_xml_attribute *kept = orr_arena_new(s->x->arena, n->attribute_count, orr_xml_attribute);
    if (!kept)
        return orr_no_memory(s->err);
    memcpy(kept, all, n->attribute_count * sizeof *kept);
    n->attributes = kept;
    return ORR_OK;
}

/* From '<' to '>'; *is_open: its end tag is still to come. */
static orr_code take_element(scanner *s, orr_xml_node **out, bool *is_open)
{
    orr_xml_node *n = orr_arena_new(s->x->arena, 1, orr_xml_node);
    if (!n)
        return orr_no_memory(s->err);
    *out = n;
    n->document = s->x;
    s->at++;
    orr_code code = take_name(s, &n->name);
    if (code || (code = take_attributes(s, n)))
        return code;
    *is_open = *s->at == '>';
    s->at++;
    if (!*is_open) {
        if (s->at == s->end || *s->at != '>')
            return fail_at(s, s->at, "expected '>' after '/'");
        s->at++;
    }
    return ORR_OK;
}

static orr_code take_end(scanner *s, const orr_xml_node *n)
{
    orr_str name;
    const uint8_t *from = s->at;
    s->at += 2;
    const orr_code code = take_name(s, &name);
    if (code)
        return code;
    skip_blanks(s);
    if (!orr_str_equal(name, n->name) || s->at == s->end || *s->at != '>')
        return orr_fail(s->err, ORR_EINPUT, ORR_AT(place_of(s->x, from)),
                        "not XML: found </%.*s>, expected </%.*s>", ORR_SHOWN(name, SHOWN),
                        ORR_SHOWN(n->name, SHOWN));
    s->at++;
    return ORR_OK;
}

/* ---- the document ---- */

/* Skips comments and similar; *is_none: something else is at s->at. */
static orr_code skip_misc(scanner *s, bool *is_none)
{
    *is_none = false;
    if (begins(s, "<!--"))
        return skip_past(s, "-->", "a comment is never closed");
    if (begins(s, "<?"))
        return skip_past(s, "?>", "'<?' is never closed");
    if (begins(s, "<![CDATA["))
        return skip_past(s, "]]>", "CDATA is never closed");
    if (begins(s, "<!")) {
        const uint8_t *from = s->at;
        const orr_code code = skip_past(s, ">", "'<!' is never closed");
        if (!code && memchr(from, '[', (size_t)(s->at - from)))
            return fail_at(s, from, "document type declarations are not supported");
        return code;
    }
    *is_none = true;
    return ORR_OK;
}

/* The next '<'; text on the way is skipped, and may stand within an element only. */
static orr_code skip_text(scanner *s, uint32_t depth)
{
    const uint8_t *from = s->at;
    while (s->at < s->end && *s->at != '<') {
        if (depth == 0 && !orr_is_space((char)*s->at) &&
            !(from == s->x->bytes.ptr && *s->at > 0x7F))
            return fail_at(s, s->at, "text outside of the element");
        s->at++;
    }
    return ORR_OK;
}

static orr_code parse(scanner *s)
{
    orr_xml_node *open[MOST_DEPTH], *last[MOST_DEPTH + 1] = {0};
    uint32_t depth = 0;
    bool is_none, is_open = false;
    for (;;) {
        orr_xml_node *n = NULL;
        orr_code code = skip_text(s, depth);
        if (code)
            return code;
        if (s->at == s->end)
            break;
        if ((code = skip_misc(s, &is_none)))
            return code;
        if (!is_none)
            continue;
        if (begins(s, "</")) {
            if (depth == 0)
                return fail_at(s, s->at, "unmatched end tag");
            if ((code = take_end(s, open[--depth])))
                return code;
            continue;
        }
        if (depth == 0 && s->x->root)
            return fail_at(s, s->at, "a second element after the first");
        if (depth == MOST_DEPTH)
            return fail_at(s, s->at, "elements nested more than 256 deep");
        if ((code = take_element(s, &n, &is_open)))
            return code;
        if (last[depth])
            last[depth]->next = n;
        else if (depth)
            open[depth - 1]->child = n;
        else
            s->x->root = n;
        last[depth] = n;
        if (is_open) {
            open[depth++] = n;
            last[depth] = NULL;
        }
    }
    if (depth)
        return fail_at(s, s->at, "unclosed element at the end of the file");
    return s->x->root ? ORR_OK : fail_at(s, s->at, "no element");
}

orr_code orr_xml_open(orr_span bytes, const char *path, orr_xml **out, orr_error *err)
{
    orr_xml *x = orr_alloc(1, sizeof *x);
    *out = NULL;
    if (!x || !(x->arena = orr_arena_create())) {
        orr_free(x);
        return orr_no_memory(err);
    }
    x->path = path;
    x->bytes = bytes;
    scanner s = {.x = x, .at = bytes.ptr, .end = bytes.ptr + bytes.len, .err = err};
    const orr_code code = parse(&s);
    if (code) {
        orr_xml_close(x);
        return code;
    }
    *out = x;
    return ORR_OK;
}

void orr_xml_close(orr_xml *x)
{
    if (x)
        orr_arena_destroy(x->arena);
    orr_free(x);
}

const orr_xml_node *orr_xml_root(const orr_xml *x)
{
    return x->root;
}

bool orr_xml_attr(const orr_xml_node *n, const char *name, orr_str *out)
{
    const orr_xml_attribute *a = find_attribute(n, name);
    if (a)
        *out = a->value;
    return a != NULL;
}

orr_code orr_xml_get_int(const orr_xml_node *n,
                         const char *name,
                         bool is_needed,
                         int64_t min,
                         int64_t max,
                         int64_t *out,
                         orr_error *err)
{
    orr_str text;
    int64_t v;
    if (!orr_xml_attr(n, name, &text)) {
        return !is_needed
                   ? ORR_OK
                   : orr_fail(err, ORR_EINPUT, ORR_AT(orr_xml_where(n)),
                              "<%.*s> has no attribute \"%s\"", ORR_SHOWN(n->name, SHOWN), name);
    }
    if (orr_text_i64(text, &v) && v >= min && v <= max) {
        *out = v;
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, ORR_AT(value_place(n, name)),
                    "%s: expected a whole number from %" PRId64 " to %" PRId64 ", not \"%.*s\"",
                    name, min, max, ORR_SHOWN(text, SHOWN));
}

bool orr_xml_looks_like(orr_span bytes)
{
    size_t i = 0;
    if (bytes.len >= 3 && memcmp(bytes.ptr, "\xEF\xBB\xBF", 3) == 0)
        i = 3;
    while (i < bytes.len && orr_is_space((char)bytes.ptr[i]))
        i++;
    return i < bytes.len && bytes.ptr[i] == '<';
}
