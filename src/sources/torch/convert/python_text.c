/* SPDX-License-Identifier: Apache-2.0 */
/* python_text.c - from JSON text to the text of the Python value, without a tree in between.
 *
 * Both notations have the same tokens in the same order, so one pass over the tokens does it.  The exception are
 * objects: a key that occurs twice has the place of the first and the value of the last, so their members are
 * collected first.  Operators' values hardly ever have objects.
 *
 * Cost: linear; plain strings and numbers, nearly all there is, are copied whole. */
#include "python_text.h"

#include "base/memory/intern.h"
#include "base/text/number.h"
#include "base/text/text.h"

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

/* ---- strings ---- */

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v * 16 + (uint32_t)(p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    return v;
}

/* The character behind a backslash.  Half a surrogate pair stays what it is, as in Python. */
static uint32_t escaped(cursor *c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char kind = *c->at++;
    if (kind != 'u') {
        const char *found = memchr(from, kind, 5);
        return (uint32_t)(found ? to[found - from] : kind);
    }
    const uint32_t high = hex4(c->at);
    c->at += 4;
    if (high < 0xD800 || high > 0xDBFF || c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u')
        return high;
    const uint32_t low = hex4(c->at + 2);
    if (low < 0xDC00 || low > 0xDFFF)
        return high;
    c->at += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* The next character of the inside of a string. */
static uint32_t next_char(cursor *c)
{
    if (*c->at == '\\') {
        c->at++;
        return escaped(c);
    }
    const size_t n = orr_utf8_length((const uint8_t *)c->at, (size_t)(c->end - c->at));
    const size_t length = n ? n : 1; /* the reader has seen to it that it is not 0 */
    const uint32_t v = n ? orr_utf8_get((const uint8_t *)c->at, n) : (uint8_t)*c->at;
    c->at += length;
    return v;
}

static void put_hex(orr_buf *to, char letter, uint32_t v, unsigned digits)
{
    static const char hex[] = "0123456789abcdef";
    orr_buf_byte(to, '\\');
    orr_buf_byte(to, (uint8_t)letter);
    for (unsigned i = digits; i-- > 0;)
        orr_buf_byte(to, (uint8_t)hex[v >> 4 * i & 15]);
}

static void put_char(orr_buf *to, uint32_t v, char quote)
{
    uint8_t bytes[4];
    if (v == (uint32_t)quote || v == '\\') {
        orr_buf_byte(to, '\\');
        orr_buf_byte(to, (uint8_t)v);
    } else if (v == '\n' || v == '\r' || v == '\t') {
        orr_buf_byte(to, '\\');
        orr_buf_byte(to, v == '\n' ? 'n' : v == '\r' ? 'r' : 't');
    } else if (python_shows(v)) {
        orr_buf_add(to, bytes, orr_utf8_put(v, bytes));
    } else if (v < 0x100) {
        put_hex(to, 'x', v, 2);
    } else {
        put_hex(to, v < 0x10000 ? 'u' : 'U', v, v < 0x10000 ? 4 : 8);
    }
}

static void put_inside(orr_buf *to, cursor inside)
{
    bool has_single = false, has_double = false;
    for (cursor c = inside; c.at < c.end;) {
        const uint32_t v = next_char(&c);
        has_single |= v == '\'';
        has_double |= v == '"';
    }
    const char quote = has_single && !has_double ? '"' : '\'';
    orr_buf_byte(to, (uint8_t)quote);
    for (cursor c = inside; c.at < c.end;)
        put_char(to, next_char(&c), quote);
    orr_buf_byte(to, (uint8_t)quote);
}

/* Nothing to escape and one way to quote. */
static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '\\' && c != '\'';
}

/* The string that begins at c: from its first quote to behind its last. */
static cursor take_string(cursor *c, bool *plain)
{
    cursor inside = {c->at + 1, c->at + 1};
    *plain = true;
    while (inside.end < c->end && *inside.end != '"') {
        *plain = *plain && is_plain(*inside.end);
        inside.end += *inside.end == '\\' ? 2 : 1;
    }
    c->at = inside.end + 1;
    return inside;
}

static void put_string(orr_buf *to, cursor *c)
{
    bool plain;
    const cursor inside = take_string(c, &plain);
    if (!plain) {
        put_inside(to, inside);
        return;
    }
    orr_buf_byte(to, '\'');
    orr_buf_add(to, inside.at, (size_t)(inside.end - inside.at));
    orr_buf_byte(to, '\'');
}

/* ---- numbers and words ---- */

static bool ends_scalar(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static orr_str take_scalar(cursor *c)
{
    const char *from = c->at;
    while (c->at < c->end && !ends_scalar(*c->at))
        c->at++;
    return (orr_str){from, (size_t)(c->at - from)};
}

static bool is_whole(orr_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '.' || (s.ptr[i] | 0x20) == 'e')
            return false;
    }
    return true;
}

static void put_number(orr_buf *to, orr_str s)
{
    char text[ORR_NUMBER_ROOM];
    double v;
    if (is_whole(s)) {
        const bool is_minus_zero = orr_str_is(s, "-0");
        orr_buf_add(to, s.ptr + is_minus_zero, s.len - is_minus_zero);
    } else if (orr_text_double(s, &v)) {
        orr_buf_add(to, text, orr_double_text(v, text));
    }
}

static void put_scalar(orr_buf *to, cursor *c)
{
    static const char *const words[][2] = {
        {"true", "True"}, {"false", "False"},  {"null", "None"},
        {"NaN", "nan"},   {"Infinity", "inf"}, {"-Infinity", "-inf"},
    };
    const orr_str s = take_scalar(c);
    if (s.len && ((s.ptr[0] >= '0' && s.ptr[0] <= '9') ||
                  (s.ptr[0] == '-' && !orr_str_is(s, words[5][0])))) {
        put_number(to, s);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (orr_str_is(s, words[i][0]))
            orr_buf_text(to, words[i][1]);
    }
}

/* ---- objects ---- */

/* To the end of the value that begins at c. */
static orr_str take_value(cursor *c)
{
    const char *from = c->at;
    uint32_t depth = 0;
    bool plain;
    do {
        const char first = c->at < c->end ? *c->at : ']';
        if (first == '"') {
            take_string(c, &plain);
        } else if (first == '[' || first == '{' || first == ']' || first == '}') {
            depth += first == '[' || first == '{' ? 1u : depth ? (uint32_t)-1 : 0u;
            c->at++;
        } else if (ends_scalar(first) || first == ':') {
            c->at++;
        } else {
            take_scalar(c);
        }
    } while (depth && c->at < c->end);
    return (orr_str){from, (size_t)(c->at - from)};
}

/* The members of an object: keys in their final form, numbered in the order in which they first came. */
typedef struct members {
    orr_intern *keys;
    orr_str *values;
    size_t room;
} members;

static bool add_member(members *m, cursor *c, orr_buf *scratch)
{
    uint32_t which;
    scratch->len = 0;
    put_string(scratch, c);
    skip_space(c);
    c->at++; /* the colon */
    skip_space(c);
    const orr_str value = take_value(c);
    if (scratch->failed ||
        !orr_intern_add(m->keys, (orr_str){(const char *)scratch->ptr, scratch->len}, &which) ||
        !orr_grow(&m->values, &m->room, (size_t)which + 1))
        return false;
    m->values[which] = value;
    return true;
}

static void put_value(orr_buf *to, cursor *c);

static bool collect(members *m, cursor *c, orr_buf *scratch)
{
    c->at++; /* the brace */
    for (skip_space(c); c->at < c->end && *c->at != '}'; skip_space(c)) {
        if (*c->at == ',')
            c->at++;
        else if (!add_member(m, c, scratch))
            return false;
    }
    c->at++;
    return true;
}

static void put_members(orr_buf *to, const members *m)
{
    orr_buf_byte(to, '{');
    for (uint32_t i = 0; i < orr_intern_count(m->keys); i++) {
        const orr_str key = orr_intern_get(m->keys, i);
        cursor value = {m->values[i].ptr, m->values[i].ptr + m->values[i].len};
        orr_buf_text(to, i ? ", " : "");
        orr_buf_add(to, key.ptr, key.len);
        orr_buf_text(to, ": ");
        put_value(to, &value);
    }
    orr_buf_byte(to, '}');
}

static void put_object(orr_buf *to, cursor *c)
{
    members m = {.keys = orr_intern_create()};
    orr_buf scratch = {0};
    if (m.keys && collect(&m, c, &scratch)) {
        put_members(to, &m);
    } else {
        to->failed = true;
        c->at = c->end;
    }
    orr_buf_fini(&scratch);
    orr_intern_destroy(m.keys);
    orr_free(m.values);
}

/* ---- all of it ---- */

/* Arrays nest without recursion; only objects call back. */
static void put_value(orr_buf *to, cursor *c)
{
    uint32_t depth = 0;
    do {
        skip_space(c);
        if (c->at >= c->end)
            return;
        switch (*c->at) {
        case '[':
        case ']':
            depth += *c->at == '[' ? 1u : (uint32_t)-1;
            orr_buf_byte(to, (uint8_t)*c->at++);
            break;
        case ',':
            orr_buf_add(to, ", ", 2);
            c->at++;
            break;
        case '"':
            put_string(to, c);
            break;
        case '{':
            put_object(to, c);
            break;
        default:
            put_scalar(to, c);
        }
    } while (depth);
}

void python_text(orr_buf *to, orr_str json)
{
    cursor c = {json.ptr, json.ptr + json.len};
    put_value(to, &c);
}
