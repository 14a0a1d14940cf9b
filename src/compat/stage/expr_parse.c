/* SPDX-License-Identifier: Apache-2.0 */
/* expr_parse.c - expressions as text: names, numbers, + - * / ** and parentheses, with Python's precedence.
 *
 * Recursion is as deep as the parentheses, and those are counted. */
#include "expr.h"

#include "base/text/text.h"

enum { DEPTH_MOST = 64, TERMS_MOST = 256, DIGITS_MOST = 18 };

typedef struct reader {
    stg_algebra *a;
    const char *at, *begin, *end;
    const orr_where *where;
    orr_error *err;
    int depth;
} reader;

static orr_code read_sum(reader *r, stg_expr *out);

static orr_code bad(reader *r, const char *expected)
{
    const int len = (int)(r->end - r->begin);
    if (r->at == r->end)
        return orr_fail(r->err, ORR_EINPUT, r->where, "'%.*s' ends where %s is expected", len,
                        r->begin, expected);
    return orr_fail(r->err, ORR_EINPUT, r->where,
                    "'%.*s': '%c' at character %d where %s is expected", len, r->begin,
                    *r->at > 0x20 && *r->at < 0x7f ? *r->at : '?', (int)(r->at - r->begin) + 1,
                    expected);
}

static char peek(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
        r->at++;
    return r->at < r->end ? *r->at : '\0';
}

static bool take(reader *r, const char *word)
{
    const size_t n = strlen(word);
    peek(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Digits, perhaps with a point among them; zeros at the end of a fraction do not count. */
static orr_code read_number(reader *r, stg_expr *out)
{
    orr__wide num = 0, den = 1;
    int digits = 0;
    bool is_fraction = false;
    for (; r->at < r->end && (orr_is_digit(*r->at) || (*r->at == '.' && !is_fraction)); r->at++) {
        if (*r->at == '.') {
            is_fraction = true;
            continue;
        }
        const char *rest = r->at;
        while (is_fraction && rest < r->end && *rest == '0')
            rest++;
        if (is_fraction && (rest == r->end || !orr_is_digit(*rest))) {
            r->at = rest;
            break;
        }
        num = num * 10 + (*r->at - '0');
        den *= is_fraction ? 10 : 1;
        digits += num != 0 || is_fraction;
        if (digits > DIGITS_MOST)
            return bad(r, "an end of the number: more than 18 digits");
    }
    stg_ratio v = {0, 1};
    stg_ratio_make(num, den, &v);
    *out = stg_expr_number(r->a, v);
    return ORR_OK;
}

static orr_code read_name(reader *r, stg_expr *out)
{
    const char *from = r->at;
    while (r->at < r->end && (is_letter(*r->at) || orr_is_digit(*r->at)))
        r->at++;
    const orr_str name = {from, (size_t)(r->at - from)};
    *out = stg_expr_symbol(r->a, stg_symbol(r->a, name));
    return ORR_OK;
}

static orr_code read_primary(reader *r, stg_expr *out)
{
    const char c = peek(r);
    if (orr_is_digit(c) || (c == '.' && r->at + 1 < r->end && orr_is_digit(r->at[1])))
        return read_number(r, out);
    if (is_letter(c))
        return read_name(r, out);
    if (c != '(')
        return bad(r, "a name, a number or '('");
    if (r->depth++ == DEPTH_MOST)
        return bad(r, "something less deep than 64 parentheses");
    r->at++;
    const orr_code code = read_sum(r, out);
    if (code)
        return code;
    r->depth--;
    return take(r, ")") ? ORR_OK : bad(r, "')'");
}

/* A whole number, with a sign if it likes: nothing else is an exponent. */
static orr_code read_exponent(reader *r, int32_t *out)
{
    const bool is_negative = take(r, "-");
    int32_t v = 0;
    if (!orr_is_digit(peek(r)))
        return bad(r, "a whole number");
    for (; r->at < r->end && orr_is_digit(*r->at); r->at++) {
        if (v <= ORR__EXPONENT_MOST)
            v = v * 10 + (*r->at - '0');
    }
    *out = is_negative ? -v : v;
    return ORR_OK;
}

static orr_code read_power(reader *r, stg_expr *out)
{
    int32_t exponent = 0;
    orr_code code = read_primary(r, out);
    if (code || !take(r, "**"))
        return code;
    code = read_exponent(r, &exponent);
    if (!code)
        *out = stg_expr_power(r->a, *out, exponent);
    return code;
}

static orr_code read_signed(reader *r, stg_expr *out)
{
    bool is_negative = false;
    for (;; r->at++) {
        const char c = peek(r);
        if (c != '-' && c != '+')
            break;
        is_negative ^= c == '-';
    }
    const orr_code code = read_power(r, out);
    if (!code && is_negative)
        *out = stg_expr_mul(r->a, *out, stg_expr_number(r->a, stg_ratio_of(-1)));
    return code;
}

static orr_code read_product(reader *r, stg_expr *out)
{
    orr_code code = read_signed(r, out);
    while (!code) {
        const char c = peek(r);
        const bool divides = c == '/';
        stg_expr next;
        if (c != '/' && c != '*')
            break;
        r->at++;
        code = read_signed(r, &next);
        if (!code)
            *out = stg_expr_mul(r->a, *out, divides ? stg_expr_power(r->a, next, -1) : next);
    }
    return code;
}

/* Terms are added up in batches: a long sum costs its length, not the square of it. */
static orr_code read_sum(reader *r, stg_expr *out)
{
    stg_expr parts[TERMS_MOST];
    size_t count = 0;
    orr_code code = ORR_OK;
    bool is_minus = false;
    do {
        if (count == TERMS_MOST) {
            parts[0] = stg_expr_sum(r->a, parts, count);
            count = 1;
        }
        code = read_product(r, &parts[count]);
        if (code)
            return code;
        if (is_minus)
            parts[count] =
                stg_expr_mul(r->a, parts[count], stg_expr_number(r->a, stg_ratio_of(-1)));
        count++;
        is_minus = peek(r) == '-';
    } while (take(r, "+") || take(r, "-"));
    *out = count == 1 ? parts[0] : stg_expr_sum(r->a, parts, count);
    return ORR_OK;
}

orr_code stg_expr_parse(
    stg_algebra *a, orr_str text, const orr_where *where, stg_expr *out, orr_error *err)
{
    reader r = {.a = a,
                .at = text.ptr,
                .begin = text.ptr,
                .end = text.ptr + text.len,
                .where = where,
                .err = err};
    *out = ORR__ZERO;
    if (text.len > ORR__EXPR_TEXT_MOST)
        return orr_fail(err, ORR_EINPUT, where, "an expression of %zu characters; the most is %d",
                        text.len, ORR__EXPR_TEXT_MOST);
    const orr_code code = read_sum(&r, out);
    if (code)
        return code;
    peek(&r);
    if (r.at < r.end)
        return bad(&r, "an operator or the end");
    return a->fault ? stg_algebra_check(a, where, "expression", err) : ORR_OK;
}
