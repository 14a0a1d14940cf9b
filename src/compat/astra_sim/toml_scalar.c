/* SPDX-License-Identifier: Apache-2.0 */
/* toml_scalar.c - TOML's texts, numbers, booleans and dates.
 *
 * A text that stands in the file as it is meant is a piece of the file; one with escapes is put together in the
 * arena.  A number or a word ends where a blank or a bracket begins, and is looked at as a whole. */
#include "toml_impl.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>
#include <string.h>

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

/* ---- texts ---- */

/* The text being put together; no more bytes than there are in the file. */
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

/* \uXXXX and \UXXXXXXXX; at is behind the letter. */
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

/* A backslash at the end of a line: this line end and all blanks that follow do not count. */
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

/* The rest of a text with escapes, up to but not including its quotes. */
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

/* A text without escapes, up to but not including its quotes.  False: it has one, or no end. */
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

/* at is behind the opening quotes. */
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

const char *orr__toml_line_string(orr_toml_source *in, orr_str *out)
{
    const size_t begin = in->at++;
    return read_text(in, in->ptr[begin] == '"' ? "\"" : "'", begin, out);
}

/* Up to two quotes more than three belong to the text: """a""""" is a"". */
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

/* Without the underscores, each of which must stand between two digits.  0: it does not, or is too long. */
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

/* Zeros in front are not allowed. */
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

/* Otherwise it is a whole number, and too large for one. */
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

/* ---- dates: 1979-05-27, 07:32:00.5, 1979-05-27T07:32:00Z, with a blank for the T too ---- */

/* How many bytes of s are as in the pattern: 0 stands for a digit. */
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

/* The length of the date or time that s begins with; 0: none. */
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

/* ---- any ---- */

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

const char *orr__toml_scalar(orr_toml_source *in, orr_toml_scalar *out)
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
        return wrong(in, in->at, "a value was expected");
    } else if (!read_word((orr_str){begin, n}, out)) {
        return wrong(in, in->at,
                     "not a text in quotes, a number, true, false, a date, a list or a table");
    }
    in->at += n;
    return NULL;
}
