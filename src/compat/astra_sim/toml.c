/* SPDX-License-Identifier: Apache-2.0 */
/* toml.c - a TOML file as a tree: one pass over the bytes.
 *
 * Every value is a node with its byte offset; lines and columns are counted only for error
 * messages.  A table's members are a list in file order, and one hash map over (table, key) finds
 * any of them, so time is linear in the file.  Each table has a state that says what may still be
 * added to it: TOML allows [a.b] before [a], but no duplicates.
 *
 * Cost: O(bytes).  The parser is recursive, so nesting is limited. */
#include "toml.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/short_forms.h"
#include "base/text/number.h"

#include <math.h>
#include <string.h>

/* The input: valid UTF-8 without control characters other than tab and newlines. */
typedef struct orr_toml_source {
    const uint8_t *ptr;
    size_t len, at;
    orr_arena *arena; /* for strings with escapes */
    size_t problem_at;
    bool no_memory;
    orr_error *err;
} orr_toml_source;

typedef struct orr_toml_scalar {
    uint8_t type;
    orr_str text;
    int64_t number; /* also holds a bool */
    double real;
} orr_toml_scalar;

/* Strings, numbers, booleans and dates.
 *
 * A string without escapes is a slice of the file; one with escapes is decoded into the arena.  A
 * number or word extends to the next blank or bracket and is checked as a whole. */

enum { MOST_DIGITS = 300 };

static const char *wrong(orr_toml_source *in, size_t at, const char *words)
{
    in->problem_at = at;
    return words;
}

static const char *lack_memory(orr_toml_source *in)
{
    in->no_memory = true;
    return "out of memory";
}

static bool begins_with(const orr_toml_source *in, size_t at, const char *text)
{
    const size_t n = strlen(text);
    return in->len - at >= n && memcmp(in->ptr + at, text, n) == 0;
}

/* ---- strings ---- */

/* A string being decoded; never longer than its source. */
typedef struct text {
    char *ptr;
    size_t len;
} text;

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \uXXXX and \UXXXXXXXX; `at` is just after the letter. */
static const char *put_code_point(orr_toml_source *in, text *t, unsigned digits)
{
    const size_t begin = in->at - 2;
    uint32_t c = 0;
    for (unsigned i = 0; i < digits; i++, in->at++) {
        const int digit = in->at < in->len ? hex_digit(in->ptr[in->at]) : -1;
        if (digit < 0)
            return wrong(in, begin, "an escape with too few hexadecimal digits");
        c = c << 4 | (uint32_t)digit;
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return wrong(in, begin, "an escape that is not a character");
    t->len += orr_utf8_put(c, (uint8_t *)t->ptr + t->len);
    return NULL;
}

/* A backslash at the end of a line skips the newline and all blanks that follow. */
static bool skip_fold(orr_toml_source *in)
{
    size_t at = in->at;
    while (at < in->len && (in->ptr[at] == ' ' || in->ptr[at] == '\t' || in->ptr[at] == '\r'))
        at++;
    if (at == in->len || in->ptr[at] != '\n')
        return false;
    while (at < in->len && memchr(" \t\r\n", in->ptr[at], 4))
        at++;
    in->at = at;
    return true;
}

static const char *put_escape(orr_toml_source *in, text *t, bool has_lines)
{
    static const char letters[] = "btnfr\"\\e", meant[] = "\b\t\n\f\r\"\\\x1B";
    in->at++; /* the backslash */
    if (has_lines && skip_fold(in))
        return NULL;
    const uint8_t c = in->at < in->len ? in->ptr[in->at++] : 0;
    if (c == 'u' || c == 'U')
        return put_code_point(in, t, c == 'u' ? 4 : 8);
    const char *found = c ? strchr(letters, c) : NULL;
    if (!found)
        return wrong(in, in->at - (c ? 2 : 1),
                     "not one of the escapes \\b \\t \\n \\f \\r \\e \\\" \\\\ \\u \\U");
    t->ptr[t->len++] = meant[found - letters];
    return NULL;
}

/* Decode the rest of a string with escapes, up to its closing quotes. */
static const char *put_rest(orr_toml_source *in, text *t, const char *quotes, size_t begin)
{
    const bool has_lines = quotes[1];
    while (in->at < in->len && !begins_with(in, in->at, quotes)) {
        const uint8_t c = in->ptr[in->at];
        if (c == '\\') {
            const char *problem = put_escape(in, t, has_lines);
            if (problem)
                return problem;
            continue;
        }
        if (c == '\n' && !has_lines)
            break;
        t->ptr[t->len++] = (char)c;
        in->at++;
    }
    return begins_with(in, in->at, quotes) ? NULL : wrong(in, begin, "a text without an end");
}

static const char *read_escaped(orr_toml_source *in, const char *quotes, size_t begin, orr_str *out)
{
    const uint8_t *end = memchr(in->ptr + in->at, '\n', in->len - in->at);
    const size_t most = quotes[1] || !end ? in->len - in->at : (size_t)(end - in->ptr) - in->at;
    text t = {orr_arena_take(in->arena, most + 1), 0};
    if (!t.ptr)
        return lack_memory(in);
    const char *problem = put_rest(in, &t, quotes, begin);
    *out = (orr_str){t.ptr, t.len};
    return problem;
}

/* A string without escapes, up to its closing quotes.  False: it has escapes, or no end. */
static bool read_plain(orr_toml_source *in, const char *quotes, bool has_escapes, orr_str *out)
{
    const bool has_lines = quotes[1];
    for (size_t at = in->at; at < in->len; at++) {
        const uint8_t c = in->ptr[at];
        if ((has_escapes && c == '\\') || (c == '\n' && !has_lines))
            return false;
        if (c != (uint8_t)quotes[0] || !begins_with(in, at, quotes))
            continue;
        *out = (orr_str){(const char *)in->ptr + in->at, at - in->at};
        in->at = at;
        return true;
    }
    return false;
}

/* `at` is just after the opening quotes. */
static const char *read_text(orr_toml_source *in, const char *quotes, size_t begin, orr_str *out)
{
    const bool has_escapes = quotes[0] == '"';
    const char *problem = NULL;
    if (!read_plain(in, quotes, has_escapes, out))
        problem = has_escapes ? read_escaped(in, quotes, begin, out)
                              : wrong(in, begin, "a text without an end");
    if (!problem)
        in->at += strlen(quotes);
    return problem;
}

/* "..." or '...' */
static const char *orr__toml_line_string(orr_toml_source *in, orr_str *out)
{
    const size_t begin = in->at++;
    return read_text(in, in->ptr[begin] == '"' ? "\"" : "'", begin, out);
}

/* Up to two quotes before the closing three belong to the string: """a""""" is a"". */
static const char *read_lines(orr_toml_source *in, const char *quotes, orr_str *out)
{
    const size_t begin = in->at;
    in->at += 3;
    if (begins_with(in, in->at, "\r\n"))
        in->at += 2;
    else if (begins_with(in, in->at, "\n"))
        in->at++;
    const char *problem = read_text(in, quotes, begin, out);
    unsigned more = 0;
    while (!problem && more < 2 && in->at < in->len && in->ptr[in->at] == (uint8_t)quotes[0]) {
        in->at++;
        more++;
    }
    if (!more)
        return problem;
    char *longer = orr_arena_take(in->arena, out->len + more);
    if (!longer)
        return lack_memory(in);
    memcpy(longer, out->ptr, out->len);
    memset(longer + out->len, quotes[0], more);
    *out = (orr_str){longer, out->len + more};
    return NULL;
}

static const char *read_string(orr_toml_source *in, orr_str *out)
{
    if (begins_with(in, in->at, "\"\"\""))
        return read_lines(in, "\"\"\"", out);
    if (begins_with(in, in->at, "'''"))
        return read_lines(in, "'''", out);
    return orr__toml_line_string(in, out);
}

/* ---- numbers ---- */

/* Drop the underscores, each of which must be between two digits.  0: misplaced or too long. */
static size_t plain_digits(orr_str s, char out[MOST_DIGITS])
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != '_') {
            if (n == MOST_DIGITS)
                return 0;
            out[n++] = s.ptr[i];
        } else if (i == 0 || i + 1 == s.len || hex_digit((uint8_t)s.ptr[i - 1]) < 0 ||
                   hex_digit((uint8_t)s.ptr[i + 1]) < 0) {
            return 0;
        }
    }
    return n;
}

/* 0x, 0o, 0b */
static bool read_based(orr_str s, int64_t *out)
{
    const int base = s.ptr[1] == 'x' ? 16 : s.ptr[1] == 'o' ? 8 : 2;
    int64_t value = 0;
    for (size_t i = 2; i < s.len; i++) {
        const int digit = hex_digit((uint8_t)s.ptr[i]);
        if (digit < 0 || digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return s.len > 2;
}

/* No leading zeros. */
static bool is_plain_start(orr_str s)
{
    const size_t sign = s.ptr[0] == '+' || s.ptr[0] == '-';
    return s.len > sign && orr_is_digit(s.ptr[sign]) &&
           !(s.ptr[sign] == '0' && s.len > sign + 1 && orr_is_digit(s.ptr[sign + 1]));
}

static bool read_special(orr_str s, double *out)
{
    const size_t sign = s.len && (s.ptr[0] == '+' || s.ptr[0] == '-');
    const orr_str word = {s.ptr + sign, s.len - sign};
    if (!orr_str_is(word, "inf") && !orr_str_is(word, "nan"))
        return false;
    *out = orr_str_is(word, "nan") ? (double)NAN : s.ptr[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
}

/* A real; otherwise it is an integer out of range. */
static bool has_point(orr_str s)
{
    return memchr(s.ptr, '.', s.len) || memchr(s.ptr, 'e', s.len) || memchr(s.ptr, 'E', s.len);
}

static bool read_number(orr_str token, orr_toml_scalar *out)
{
    char digits[MOST_DIGITS];
    orr_str s = {digits, plain_digits(token, digits)};
    out->type = ORR_TOML_INT;
    if (s.len > 1 && s.ptr[0] == '0' && strchr("xob", s.ptr[1]))
        return read_based(s, &out->number);
    if (s.len == 0 || !is_plain_start(s))
        return false;
    const orr_str unsigned_text = {s.ptr + (s.ptr[0] == '+'), s.len - (s.ptr[0] == '+')};
    if (orr_text_i64(unsigned_text, &out->number))
        return true;
    out->type = ORR_TOML_REAL;
    return has_point(unsigned_text) && orr_text_double(unsigned_text, &out->real);
}

/* ---- dates: 1979-05-27, 07:32:00.5, 1979-05-27T07:32:00Z, with T or a blank ---- */

/* Length of the pattern if s starts with it, else 0; a 0 in the pattern matches any digit. */
static size_t match(orr_str s, const char *pattern)
{
    const size_t n = strlen(pattern);
    if (s.len < n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (pattern[i] == '0' ? !orr_is_digit(s.ptr[i]) : s.ptr[i] != pattern[i])
            return 0;
    return n;
}

static orr_str behind(orr_str s, size_t n)
{
    return (orr_str){s.ptr + n, s.len - n};
}

static size_t match_time(orr_str s)
{
    size_t n = match(s, "00:00:00");
    if (n && match(behind(s, n), ".0"))
        for (n++; n < s.len && orr_is_digit(s.ptr[n]);)
            n++;
    return n;
}

static size_t match_zone(orr_str s)
{
    const size_t n = match(s, "+00:00");
    return n ? n : match(s, "-00:00") ? 6 : s.len && (s.ptr[0] == 'Z' || s.ptr[0] == 'z');
}

/* Length of the date or time at the start of s; 0: none. */
static size_t match_date(orr_str s)
{
    const size_t day = match(s, "0000-00-00");
    if (!day)
        return match_time(s);
    const bool has_mark = s.len > day && strchr("Tt ", s.ptr[day]);
    const size_t time = has_mark ? match_time(behind(s, day + 1)) : 0;
    if (!time)
        return day;
    return day + 1 + time + match_zone(behind(s, day + 1 + time));
}

/* ---- any scalar ---- */

static size_t token_length(const orr_toml_source *in)
{
    size_t n = 0;
    while (in->at + n < in->len && !memchr(" \t\r\n#,]}[{=\"'", in->ptr[in->at + n], 14))
        n++;
    return n;
}

static bool read_word(orr_str token, orr_toml_scalar *out)
{
    if (orr_str_is(token, "true") || orr_str_is(token, "false")) {
        out->type = ORR_TOML_BOOL;
        out->number = token.len == 4;
        return true;
    }
    if (read_special(token, &out->real)) {
        out->type = ORR_TOML_REAL;
        return true;
    }
    return read_number(token, out);
}

/* Read the scalar at `at`.  NULL on success, otherwise the error, which is at problem_at. */
static const char *orr__toml_scalar(orr_toml_source *in, orr_toml_scalar *out)
{
    const char *begin = (const char *)in->ptr + in->at;
    if (in->at < in->len && (*begin == '"' || *begin == '\'')) {
        out->type = ORR_TOML_STRING;
        return read_string(in, &out->text);
    }
    const size_t date = match_date((orr_str){begin, in->len - in->at});
    size_t n = token_length(in);
    if (date && date >= n) {
        out->type = ORR_TOML_DATE;
        out->text = (orr_str){begin, n = date};
    } else if (n == 0) {
        return wrong(in, in->at, "expected a value");
    } else if (!read_word((orr_str){begin, n}, out)) {
        return wrong(in, in->at,
                     "not a text in quotes, a number, true, false, a date, a list or a table");
    }
    in->at += n;
    return NULL;
}

/* ---- tables and arrays ---- */

enum { MOST_BYTES = 1 << 20, MOST_DEPTH = 64, SHOWN = 60 };

/* How a table or array was created, which decides what may be added to it. */
enum {
    IMPLIED, /* a prefix of another header: [a] by [a.b] */
    DOTTED,  /* by a dotted key: no header may extend it */
    STATED,  /* has its own header */
    CLOSED   /* inline: { } or [ ] */
};

typedef struct node {
    uint32_t at, key_at; /* byte offsets of the value and its key */
    uint32_t parent, next, first, last, count;
    uint8_t type, state;
    orr_str key;
    orr_toml_scalar value;
} node;

struct orr_toml {
    char *path;
    orr_span bytes;
    orr_arena *arena;
    node *nodes;
    size_t count, room;
    orr_map *members; /* hash of (table, key) -> first node with that hash */
};

typedef struct reader {
    orr_toml *t;
    orr_toml_source in;
    uint32_t current; /* the table of the last header */
    unsigned depth;
} reader;

/* ---- errors ---- */

static orr_where place(const orr_toml *t, size_t at)
{
    uint32_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < t->bytes.len; i++) {
        const uint8_t c = t->bytes.ptr[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xC0) != 0x80) {
            column++; /* columns count characters, not bytes */
        }
    }
    return orr_where_line(t->path, line, column);
}

static orr_code refuse(const reader *r, size_t at, const char *words)
{
    return orr_fail(r->in.err, ORR_EINPUT, ORR_AT(place(r->t, at)), "%s", words);
}

static orr_code refuse_key(const reader *r, size_t at, orr_str key, const char *words)
{
    return orr_fail(r->in.err, ORR_EINPUT, ORR_AT(place(r->t, at)), "\"%.*s\" %s",
                    ORR_SHOWN(key, SHOWN), words);
}

static orr_code told(const reader *r, const char *problem)
{
    if (!problem)
        return ORR_OK;
    return r->in.no_memory ? orr_no_memory(r->in.err) : refuse(r, r->in.problem_at, problem);
}

/* ---- nodes ---- */

static orr_code add_node(reader *r, uint32_t parent, node n, uint32_t *out)
{
    orr_toml *t = r->t;
    if (!orr_grow(&t->nodes, &t->room, t->count + 1))
        return orr_no_memory(r->in.err);
    const uint32_t i = *out = (uint32_t)t->count++;
    n.parent = parent;
    t->nodes[i] = n;
    node *p = &t->nodes[parent];
    if (i == 0)
        return ORR_OK; /* the root has no parent */
    if (p->count++ == 0)
        p->first = i;
    else
        t->nodes[p->last].next = i;
    p->last = i;
    return ORR_OK;
}

static uint64_t hash_of(uint32_t table, orr_str key)
{
    return orr_hash_bytes(key.ptr, key.len, table);
}

static bool is_member(const orr_toml *t, uint32_t i, uint32_t table, orr_str key)
{
    return i && t->nodes[i].parent == table && orr_str_equal(t->nodes[i].key, key);
}

/* 0: not found. */
static uint32_t find_member(const orr_toml *t, uint32_t table, orr_str key)
{
    uint32_t i = orr_map_find(t->members, hash_of(table, key), 0);
    if (i == 0 || is_member(t, i, table, key))
        return i;
    for (i = t->nodes[table].first; i && !is_member(t, i, table, key);)
        i = t->nodes[i].next;
    return i;
}

static orr_code add_member(reader *r, uint32_t table, node n, uint32_t *out)
{
    const uint64_t hash = hash_of(table, n.key);
    const orr_code code = add_node(r, table, n, out);
    if (code || orr_map_find(r->t->members, hash, 0))
        return code;
    return orr_map_put(r->t->members, hash, *out, NULL) ? ORR_OK : orr_no_memory(r->in.err);
}

/* ---- white space and comments ---- */

static bool at_end(const reader *r)
{
    return r->in.at == r->in.len;
}

static uint8_t peek(const reader *r)
{
    return at_end(r) ? 0 : r->in.ptr[r->in.at];
}

static bool accept(reader *r, uint8_t c)
{
    if (at_end(r) || r->in.ptr[r->in.at] != c)
        return false;
    r->in.at++;
    return true;
}

static void skip_blanks(reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->in.at++;
}

static void skip_comment(reader *r)
{
    if (peek(r) == '#')
        while (!at_end(r) && peek(r) != '\n')
            r->in.at++;
}

static bool accept_line_end(reader *r)
{
    if (peek(r) == '\r' && r->in.at + 1 < r->in.len && r->in.ptr[r->in.at + 1] == '\n')
        r->in.at++;
    return accept(r, '\n');
}

/* Blanks, comments and newlines between the items of an array. */
static void skip_lines(reader *r)
{
    do {
        skip_blanks(r);
        skip_comment(r);
    } while (accept_line_end(r));
}

static orr_code finish_line(reader *r)
{
    skip_blanks(r);
    skip_comment(r);
    if (at_end(r) || accept_line_end(r))
        return ORR_OK;
    return refuse(r, r->in.at, "expected the end of the line");
}

/* ---- keys ---- */

static bool is_bare(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* One part of a dotted key. */
static orr_code read_key(reader *r, orr_str *out, size_t *at)
{
    *at = r->in.at;
    if (peek(r) == '"' || peek(r) == '\'')
        return told(r, orr__toml_line_string(&r->in, out));
    while (is_bare(peek(r)))
        r->in.at++;
    *out = (orr_str){(const char *)r->in.ptr + *at, r->in.at - *at};
    return out->len ? ORR_OK : refuse(r, *at, "expected a key");
}

/* True: another part follows; its dot is consumed. */
static bool accept_dot(reader *r)
{
    skip_blanks(r);
    if (!accept(r, '.'))
        return false;
    skip_blanks(r);
    return true;
}

/* ---- values ---- */

static orr_code read_value(reader *r, uint32_t parent, orr_str key, size_t key_at);

static orr_code read_array(reader *r, uint32_t array)
{
    r->in.at++;
    for (;;) {
        skip_lines(r);
        if (accept(r, ']'))
            return ORR_OK;
        const orr_code code = read_value(r, array, (orr_str){NULL, 0}, 0);
        if (code)
            return code;
        skip_lines(r);
        if (accept(r, ','))
            continue;
        return accept(r, ']') ? ORR_OK : refuse(r, r->in.at, "expected \",\" or \"]\"");
    }
}

static orr_code read_pair(reader *r, uint32_t table);

static orr_code read_inline_table(reader *r, uint32_t table)
{
    r->in.at++;
    skip_blanks(r);
    if (accept(r, '}'))
        return ORR_OK;
    for (;;) {
        skip_blanks(r);
        const orr_code code = read_pair(r, table);
        if (code)
            return code;
        skip_blanks(r);
        if (accept(r, ','))
            continue;
        return accept(r, '}') ? ORR_OK : refuse(r, r->in.at, "expected \",\" or \"}\"");
    }
}

/* Open to dotted keys while it is read, as any table; afterwards closed, with everything in it. */
static orr_code read_inside(reader *r, uint32_t i, bool is_array)
{
    if (++r->depth > MOST_DEPTH)
        return refuse(r, r->in.at, "values are nested more than 64 deep");
    const orr_code code = is_array ? read_array(r, i) : read_inline_table(r, i);
    r->depth--;
    for (size_t k = i; k < r->t->count; k++)
        r->t->nodes[k].state = CLOSED;
    return code;
}

/* key.ptr NULL: an array item. */
static orr_code read_value(reader *r, uint32_t parent, orr_str key, size_t key_at)
{
    node n = {.at = (uint32_t)r->in.at, .key = key, .key_at = (uint32_t)key_at};
    uint32_t i;
    const bool is_array = peek(r) == '[', is_table = peek(r) == '{';
    if (is_array || is_table) {
        n.type = is_array ? ORR_TOML_ARRAY : ORR_TOML_TABLE;
        n.state = STATED;
    } else {
        const orr_code code = told(r, orr__toml_scalar(&r->in, &n.value));
        if (code)
            return code;
        n.type = n.value.type;
    }
    const orr_code code = key.ptr ? add_member(r, parent, n, &i) : add_node(r, parent, n, &i);
    return code || !(is_array || is_table) ? code : read_inside(r, i, is_array);
}

static node table_of(orr_toml_type type, int state, orr_str key, size_t at)
{
    return (node){.at = (uint32_t)at,
                  .key_at = (uint32_t)at,
                  .type = (uint8_t)type,
                  .state = (uint8_t)state,
                  .key = key};
}

/* The table that a dotted key passes through, created if missing. */
static orr_code step_into(reader *r, uint32_t table, orr_str key, size_t at, uint32_t *out)
{
    *out = find_member(r->t, table, key);
    if (!*out)
        return add_member(r, table, table_of(ORR_TOML_TABLE, DOTTED, key, at), out);
    const node *n = &r->t->nodes[*out];
    if (n->type == ORR_TOML_TABLE && n->state == DOTTED)
        return ORR_OK;
    return refuse_key(r, at, key, "is already defined, and dotted keys cannot add to it");
}

/* key = value, a.b = value */
static orr_code read_pair(reader *r, uint32_t table)
{
    orr_str key;
    size_t at;
    orr_code code = read_key(r, &key, &at);
    while (!code && accept_dot(r)) {
        code = step_into(r, table, key, at, &table);
        if (!code)
            code = read_key(r, &key, &at);
    }
    if (code)
        return code;
    if (find_member(r->t, table, key))
        return refuse_key(r, at, key, "is a duplicate key");
    if (!accept(r, '='))
        return refuse(r, r->in.at, "expected \"=\"");
    skip_blanks(r);
    return read_value(r, table, key, at);
}

/* ---- headers ---- */

/* The table that a header passes through; of [[key]] the last one. */
static orr_code walk_into(reader *r, uint32_t table, orr_str key, size_t at, uint32_t *out)
{
    *out = find_member(r->t, table, key);
    if (!*out)
        return add_member(r, table, table_of(ORR_TOML_TABLE, IMPLIED, key, at), out);
    const node *n = &r->t->nodes[*out];
    if (n->type == ORR_TOML_ARRAY && n->state != CLOSED) {
        *out = n->last;
        return ORR_OK;
    }
    return n->type == ORR_TOML_TABLE && n->state != CLOSED
               ? ORR_OK
               : refuse_key(r, at, key,
                            "is already defined, and is not a table that can be added to");
}

/* [key] */
static orr_code begin_table(reader *r, uint32_t table, orr_str key, size_t at)
{
    const uint32_t i = find_member(r->t, table, key);
    if (!i)
        return add_member(r, table, table_of(ORR_TOML_TABLE, STATED, key, at), &r->current);
    if (r->t->nodes[i].type != ORR_TOML_TABLE || r->t->nodes[i].state != IMPLIED)
        return refuse_key(r, at, key, "is already defined");
    r->t->nodes[i].state = STATED;
    r->t->nodes[i].at = (uint32_t)at;
    r->current = i;
    return ORR_OK;
}

/* [[key]] */
static orr_code begin_item(reader *r, uint32_t table, orr_str key, size_t at)
{
    uint32_t i = find_member(r->t, table, key);
    const node item = table_of(ORR_TOML_TABLE, STATED, (orr_str){NULL, 0}, at);
    orr_code code = ORR_OK;
    if (i && (r->t->nodes[i].type != ORR_TOML_ARRAY || r->t->nodes[i].state == CLOSED))
        return refuse_key(r, at, key, "is already defined, and not with [[ ]]");
    if (!i)
        code = add_member(r, table, table_of(ORR_TOML_ARRAY, STATED, key, at), &i);
    return code ? code : add_node(r, i, item, &r->current);
}

static orr_code read_header(reader *r)
{
    uint32_t table = 0;
    orr_str key;
    size_t at;
    r->in.at++;
    const bool is_item = accept(r, '[');
    skip_blanks(r);
    orr_code code = read_key(r, &key, &at);
    while (!code && accept_dot(r)) {
        code = walk_into(r, table, key, at, &table);
        if (!code)
            code = read_key(r, &key, &at);
    }
    if (code)
        return code;
    if (!accept(r, ']') || (is_item && !accept(r, ']')))
        return refuse(r, r->in.at, is_item ? "expected \"]]\"" : "expected \"]\"");
    code = is_item ? begin_item(r, table, key, at) : begin_table(r, table, key, at);
    return code ? code : finish_line(r);
}

/* ---- the whole file ---- */

/* Checked once for the whole file, so that nothing below has to. */
static orr_code check_text(const reader *r)
{
    const orr_span b = r->t->bytes;
    for (size_t i = 0, n; i < b.len; i += n) {
        const uint8_t c = b.ptr[i];
        n = orr_utf8_length(b.ptr + i, b.len - i);
        if (n == 0)
            return refuse(r, i, "not valid UTF-8");
        const bool is_line_end = c == '\n' || (c == '\r' && i + 1 < b.len && b.ptr[i + 1] == '\n');
        if ((c < ' ' && c != '\t' && !is_line_end) || c == 0x7F)
            return refuse(r, i, "a control character");
    }
    return ORR_OK;
}

static orr_code read_all(reader *r)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* a byte order mark */
    uint32_t root;
    orr_code code = check_text(r);
    if (!code)
        code = add_node(r, 0, (node){.type = ORR_TOML_TABLE, .state = STATED}, &root);
    if (r->in.len >= 3 && memcmp(r->in.ptr, mark, 3) == 0)
        r->in.at = 3;
    for (;;) {
        skip_lines(r);
        if (code || at_end(r))
            return code;
        if (peek(r) == '[') {
            code = read_header(r);
        } else {
            code = read_pair(r, r->current);
            if (!code)
                code = finish_line(r);
        }
    }
}

orr_code orr_toml_open(orr_span bytes, const char *path, orr_toml **out, orr_error *err)
{
    *out = NULL;
    if (bytes.len > MOST_BYTES)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(path, ORR_NO_BYTE)),
                        "larger than 1 MiB: not a configuration file");
    orr_toml *t = orr_alloc(1, sizeof *t);
    if (!t)
        return orr_no_memory(err);
    t->bytes = bytes;
    t->arena = orr_arena_create();
    t->members = orr_map_create(0);
    if (t->arena)
        t->path = orr_arena_text(t->arena, orr_str_of(path));
    reader r = {.t = t, .in = {.ptr = bytes.ptr, .len = bytes.len, .arena = t->arena, .err = err}};
    const orr_code code = t->path && t->members ? read_all(&r) : orr_no_memory(err);
    if (code)
        orr_toml_close(t);
    else
        *out = t;
    return code;
}

void orr_toml_close(orr_toml *t)
{
    if (!t)
        return;
    orr_map_destroy(t->members);
    orr_arena_destroy(t->arena);
    orr_free(t->nodes);
    orr_free(t);
}

/* ---- access ---- */

static const node *node_of(orr_toml_value v)
{
    return &v.doc->nodes[v.node];
}

orr_toml_value orr_toml_root(const orr_toml *t)
{
    return (orr_toml_value){t, 0};
}

orr_toml_type orr_toml_type_of(orr_toml_value v)
{
    return (orr_toml_type)node_of(v)->type;
}

const char *orr_toml_type_name(orr_toml_type type)
{
    static const char *const names[] = {
        [ORR_TOML_STRING] = "a text", [ORR_TOML_INT] = "a whole number",
        [ORR_TOML_REAL] = "a number", [ORR_TOML_BOOL] = "true or false",
        [ORR_TOML_DATE] = "a date",   [ORR_TOML_ARRAY] = "a list",
        [ORR_TOML_TABLE] = "a table"};
    return names[type];
}

orr_where orr_toml_where(orr_toml_value v)
{
    return place(v.doc, node_of(v)->at);
}

orr_where orr_toml_key_where(orr_toml_value v)
{
    return place(v.doc, node_of(v)->key_at);
}

orr_str orr_toml_text(orr_toml_value v)
{
    const node *n = node_of(v);
    const bool is_text = n->type == ORR_TOML_STRING || n->type == ORR_TOML_DATE;
    return is_text ? n->value.text : (orr_str){"", 0};
}

int64_t orr_toml_int(orr_toml_value v)
{
    return node_of(v)->type == ORR_TOML_INT ? node_of(v)->value.number : 0;
}

double orr_toml_real(orr_toml_value v)
{
    return node_of(v)->type == ORR_TOML_REAL ? node_of(v)->value.real : 0;
}

bool orr_toml_bool(orr_toml_value v)
{
    return node_of(v)->type == ORR_TOML_BOOL && node_of(v)->value.number;
}

uint32_t orr_toml_count(orr_toml_value v)
{
    return node_of(v)->count;
}

bool orr_toml_first(orr_toml_value v, orr_toml_value *out)
{
    *out = (orr_toml_value){v.doc, node_of(v)->first};
    return out->node != 0;
}

bool orr_toml_next(orr_toml_value *v)
{
    v->node = node_of(*v)->next;
    return v->node != 0;
}

orr_str orr_toml_key(orr_toml_value v)
{
    const orr_str key = node_of(v)->key;
    return key.ptr ? key : (orr_str){"", 0};
}

bool orr_toml_find(orr_toml_value table, const char *key, orr_toml_value *out)
{
    const uint32_t i = find_member(table.doc, table.node, orr_str_of(key));
    if (i)
        *out = (orr_toml_value){table.doc, i};
    return i != 0;
}
