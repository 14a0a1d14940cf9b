/* SPDX-License-Identifier: Apache-2.0 */
/* export_symbols.c - dynamic sizes of an exported program: symbols, and expressions of them.
 *
 * A program exported with dynamic shapes has sizes such as "s0" or "2*s0 + 1", most of them with an
 * example (the size it was exported with).  A symbol has the value the caller gives, else its
 * example; an expression is evaluated if one of its symbols was given, else its own example is
 * used. Expressions come in two notations of sympy: "2*s0 + 1", and PyTorch's "Add(Mul(Integer(2),
 * Symbol('s0', positive=True, integer=True)), Integer(1))".  Why fractions: floor(s0/2) holds a
 * half of s0.
 * Cost: linear in the text of an expression; nesting is limited. */
#include "export_impl.h"

#include "base/text/number.h"

#include <inttypes.h>
#include <stdio.h>

enum { DEPTH_MOST = 64 };

typedef struct symbol {
    int64_t value, min, max;
    bool has_value, is_given, is_used, is_known; /* known: also in the file */
} symbol;

struct export_symbols {
    orr_intern *names;
    symbol *at;
    size_t room;
};

static symbol *symbol_of(export_symbols *s, orr_str name)
{
    uint32_t number;
    const uint32_t before = orr_intern_count(s->names);
    if (!orr_grow(&s->at, &s->room, before + 1) || !orr_intern_add(s->names, name, &number))
        return NULL;
    if (number == before)
        s->at[number] = (symbol){.min = INT64_MIN, .max = INT64_MAX};
    return &s->at[number];
}

static bool is_word(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

static bool is_symbol(orr_str s)
{
    bool is_fine = s.len > 0;
    for (size_t i = 0; i < s.len && is_fine; i++)
        is_fine = is_word(s.ptr[i], i == 0);
    return is_fine;
}

/* "s0" and "Symbol('s0', positive=True)" are the symbol s0.  False: some other expression. */
static bool is_one_symbol(orr_str s, orr_str *name)
{
    static const char front[] = "Symbol('";
    const size_t f = sizeof front - 1;
    *name = s;
    if (s.len <= f || memcmp(s.ptr, front, f) != 0)
        return is_symbol(s);
    const char *quote = memchr(s.ptr + f, '\'', s.len - f);
    const char *end = memchr(s.ptr + f, ')', s.len - f);
    *name = (orr_str){s.ptr + f, quote ? (size_t)(quote - s.ptr) - f : 0};
    return end == s.ptr + s.len - 1 && is_symbol(*name);
}

/* ---- what the caller gives ---- */

static orr_code give(export_symbols *s, orr_str part, orr_error *err)
{
    const char *equals = memchr(part.ptr, '=', part.len);
    const size_t n = equals ? (size_t)(equals - part.ptr) : part.len;
    int64_t value;
    if (!equals || !is_symbol((orr_str){part.ptr, n}) ||
        !orr_text_i64((orr_str){equals + 1, part.len - n - 1}, &value) || value < 0)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "size '%.*s': a symbol and a number are expected, such as s0=8",
                        (int)(part.len > 80 ? 80 : part.len), part.ptr);
    symbol *y = symbol_of(s, (orr_str){part.ptr, n});
    if (!y)
        return orr_no_memory(err);
    if (y->is_given)
        return orr_fail(err, ORR_EUSAGE, NULL, "duplicate size '%.*s'", (int)n, part.ptr);
    y->value = value;
    y->has_value = y->is_given = true;
    return ORR_OK;
}

static orr_code give_all(export_symbols *s, const char *text, orr_error *err)
{
    orr_code code = ORR_OK;
    while (!code) {
        const size_t n = strcspn(text, ",");
        code = give(s, (orr_str){text, n}, err);
        text += n;
        if (*text++ == '\0')
            break;
    }
    return code;
}

orr_code symbols_create(const char *given, export_symbols **out, orr_error *err)
{
    export_symbols *s = orr_alloc(1, sizeof *s);
    *out = NULL;
    if (s)
        s->names = orr_intern_create();
    orr_code code = !s || !s->names ? orr_no_memory(err) : ORR_OK;
    if (!code && given)
        code = give_all(s, given, err);
    if (code)
        symbols_destroy(s);
    else
        *out = s;
    return code;
}

void symbols_destroy(export_symbols *s)
{
    if (!s)
        return;
    orr_intern_destroy(s->names);
    orr_free(s->at);
    orr_free(s);
}

/* ---- what the file says ---- */

/* A limit, or null. */
static orr_code read_limit(orr_json_value range, const char *key, int64_t *out, orr_error *err)
{
    orr_json_value v;
    if (!orr_json_find(range, key, &v) || orr_json_type_of(v) == ORR_JSON_NULL)
        return ORR_OK;
    return orr_json_get_i64(v, out, err);
}

orr_code symbols_ranges(export_symbols *s, orr_json_value ranges, orr_error *err)
{
    orr_str name;
    orr_json_value range;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(ranges);
         !code && orr_json_next_member(&it, &name, &range);) {
        symbol *y = symbol_of(s, name);
        if (!y)
            return orr_no_memory(err);
        y->is_known = true;
        if ((code = read_limit(range, "min_val", &y->min, err)))
            break;
        code = read_limit(range, "max_val", &y->max, err);
    }
    return code;
}

/* {"as_int": 4}, or the number alone as PyTorch 2.1 wrote it.  False: there is none. */
static orr_code read_hint(orr_json_value expr, bool *has, int64_t *out, orr_error *err)
{
    orr_json_value hint, v;
    *has = false;
    if (!orr_json_find(expr, "hint", &hint) || orr_json_type_of(hint) == ORR_JSON_NULL)
        return ORR_OK;
    if (orr_json_type_of(hint) == ORR_JSON_INT)
        v = hint;
    else if (!orr_json_find(hint, "as_int", &v))
        return ORR_OK;
    *has = true;
    return orr_json_get_i64(v, out, err);
}

static orr_code read_text(orr_json_value expr, orr_str *out, orr_error *err)
{
    orr_json_value v;
    if (orr_json_find(expr, "expr_str", &v))
        return orr_json_get_str(v, out, err);
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(expr)),
                    "a symbolic size without \"expr_str\"");
}

orr_code symbols_learn(export_symbols *s, orr_json_value sym_int, orr_error *err)
{
    orr_json_value expr;
    orr_str text, name;
    bool has_hint;
    int64_t hint = 0;
    orr_code code;
    if (!orr_json_find(sym_int, "as_expr", &expr))
        return ORR_OK;
    if ((code = read_text(expr, &text, err)) || (code = read_hint(expr, &has_hint, &hint, err)) ||
        !is_one_symbol(text, &name))
        return code;
    symbol *y = symbol_of(s, name);
    if (!y)
        return orr_no_memory(err);
    y->is_known = true;
    if (has_hint && !y->has_value) {
        y->value = hint;
        y->has_value = true;
    }
    return ORR_OK;
}

/* ---- expressions ---- */

typedef struct ratio {
    int64_t n, d; /* d > 0, in lowest terms */
} ratio;

typedef struct parser {
    export_symbols *s;
    orr_str text;
    size_t at;
    uint32_t depth;
    bool uses_given;
    const char *fault; /* the first one */
    orr_str missing;   /* a symbol that has no value */
} parser;

static ratio fail_expr(parser *p, const char *words)
{
    if (!p->fault)
        p->fault = words;
    return (ratio){0, 1};
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static const char too_large[] = "is too large a number";

/* Numbers are kept within 2^62, so that negating and comparing them cannot overflow. */
static ratio make_ratio(parser *p, __int128 n, __int128 d)
{
    const __int128 most = (__int128)1 << 62;
    if (d == 0)
        return fail_expr(p, "divides by zero");
    if (n > most || n < -most || d > most || d < -most)
        return fail_expr(p, too_large);
    const int64_t g = gcd((int64_t)n, (int64_t)d), sign = d < 0 ? -1 : 1;
    return (ratio){sign * (int64_t)n / g, sign * (int64_t)d / g};
}

static ratio add(parser *p, ratio a, ratio b, int sign)
{
    return make_ratio(p, (__int128)a.n * b.d + (__int128)b.n * a.d * sign, (__int128)a.d * b.d);
}

static ratio multiply(parser *p, ratio a, ratio b)
{
    return make_ratio(p, (__int128)a.n * b.n, (__int128)a.d * b.d);
}

static ratio divide(parser *p, ratio a, ratio b)
{
    return make_ratio(p, (__int128)a.n * b.d, (__int128)a.d * b.n);
}

static ratio floor_of(ratio a)
{
    const int64_t q = a.n / a.d;
    return (ratio){a.n % a.d < 0 ? q - 1 : q, 1};
}

static ratio ceiling_of(ratio a)
{
    const int64_t q = a.n / a.d;
    return (ratio){a.n % a.d > 0 ? q + 1 : q, 1};
}

static ratio modulo(parser *p, ratio a, ratio b)
{
    const ratio q = floor_of(divide(p, a, b));
    return add(p, a, multiply(p, q, b), -1);
}

static bool is_less(ratio a, ratio b)
{
    return (__int128)a.n * b.d < (__int128)b.n * a.d;
}

static ratio power(parser *p, ratio a, ratio b)
{
    ratio out = {1, 1};
    if (b.d != 1 || b.n < 0 || b.n > 64)
        return fail_expr(p, "has a power that is not a whole number from 0 to 64");
    for (int64_t i = 0; i < b.n && !p->fault; i++)
        out = multiply(p, out, a);
    return out;
}

static ratio read_sum(parser *p);

static void skip_spaces(parser *p)
{
    while (p->at < p->text.len && p->text.ptr[p->at] == ' ')
        p->at++;
}

static bool takes(parser *p, const char *sign)
{
    const size_t n = strlen(sign);
    skip_spaces(p);
    if (p->text.len - p->at < n || memcmp(p->text.ptr + p->at, sign, n) != 0)
        return false;
    p->at += n;
    return true;
}

static orr_str take_word(parser *p)
{
    const size_t from = p->at;
    while (p->at < p->text.len && is_word(p->text.ptr[p->at], p->at == from))
        p->at++;
    return (orr_str){p->text.ptr + from, p->at - from};
}

static ratio value_of(parser *p, orr_str name)
{
    symbol *y = symbol_of(p->s, name);
    if (!y)
        return fail_expr(p, "needs more memory than there is");
    y->is_used = true;
    p->uses_given |= y->is_given;
    if (y->has_value)
        return make_ratio(p, y->value, 1);
    p->missing = name;
    return fail_expr(p, "has no value");
}

typedef enum function {
    F_ADD,
    F_MULTIPLY,
    F_MAX,
    F_MIN,
    F_FLOOR_DIV,
    F_CEIL_DIV,
    F_TRUE_DIV,
    F_MOD,
    F_INDEX,
    F_FLOOR,
    F_CEILING,
    F_ABS,
    F_POW,
    F_SAME
} function;

static const struct {
    const char *name;
    function what;
    uint32_t least, most; /* arguments */
} functions[] = {
    {"Add", F_ADD, 1, DEPTH_MOST},
    {"Mul", F_MULTIPLY, 1, DEPTH_MOST},
    {"Integer", F_SAME, 1, 1},
    {"Rational", F_TRUE_DIV, 2, 2},
    {"Max", F_MAX, 1, DEPTH_MOST},
    {"Min", F_MIN, 1, DEPTH_MOST},
    {"FloorDiv", F_FLOOR_DIV, 2, 2},
    {"CleanDiv", F_FLOOR_DIV, 2, 2},
    {"CeilDiv", F_CEIL_DIV, 2, 2},
    {"IntTrueDiv", F_TRUE_DIV, 2, 2},
    {"Mod", F_MOD, 2, 2},
    {"PythonMod", F_MOD, 2, 2},
    {"ModularIndexing", F_INDEX, 3, 3},
    {"floor", F_FLOOR, 1, 1},
    {"FloorToInt", F_FLOOR, 1, 1},
    {"TruncToInt", F_FLOOR, 1, 1},
    {"ceiling", F_CEILING, 1, 1},
    {"CeilToInt", F_CEILING, 1, 1},
    {"Abs", F_ABS, 1, 1},
    {"PowByNatural", F_POW, 2, 2},
    {"Pow", F_POW, 2, 2},
    {"ToFloat", F_SAME, 1, 1},
    {"Identity", F_SAME, 1, 1},
};

/* Folds one argument at a time: these functions need only the result so far. */
static ratio apply(parser *p, function f, uint32_t i, ratio so_far, ratio a)
{
    if (i == 0)
        return f == F_FLOOR     ? floor_of(a)
               : f == F_CEILING ? ceiling_of(a)
               : f == F_ABS     ? (ratio){a.n < 0 ? -a.n : a.n, a.d}
                                : a;
    switch (f) {
    case F_ADD:
        return add(p, so_far, a, 1);
    case F_MULTIPLY:
        return multiply(p, so_far, a);
    case F_MAX:
        return is_less(so_far, a) ? a : so_far;
    case F_MIN:
        return is_less(a, so_far) ? a : so_far;
    case F_TRUE_DIV:
        return divide(p, so_far, a);
    case F_CEIL_DIV:
        return ceiling_of(divide(p, so_far, a));
    case F_MOD:
        return modulo(p, so_far, a);
    case F_POW:
        return power(p, so_far, a);
    case F_INDEX:
        return i == 1 ? floor_of(divide(p, so_far, a)) : modulo(p, so_far, a);
    default:
        return floor_of(divide(p, so_far, a));
    }
}

/* After "Symbol(": its name; the assumptions that follow do not matter here. */
static ratio read_symbol(parser *p)
{
    if (!takes(p, "'"))
        return fail_expr(p, "cannot be read");
    const orr_str name = take_word(p);
    if (name.len == 0 || !takes(p, "'"))
        return fail_expr(p, "cannot be read");
    while (p->at < p->text.len && p->text.ptr[p->at] != ')')
        p->at++;
    return takes(p, ")") ? value_of(p, name) : fail_expr(p, "has no closing parenthesis");
}

/* After the opening parenthesis. */
static ratio read_call(parser *p, orr_str name)
{
    size_t k = 0;
    ratio out = {0, 1};
    uint32_t count = 0;
    if (orr_str_is(name, "Symbol"))
        return read_symbol(p);
    while (k < sizeof functions / sizeof *functions && !orr_str_is(name, functions[k].name))
        k++;
    if (k == sizeof functions / sizeof *functions)
        return fail_expr(p, "has a function that is not known");
    do {
        out = apply(p, functions[k].what, count, out, read_sum(p));
        count++;
    } while (!p->fault && count < functions[k].most && takes(p, ","));
    if (!p->fault && (count < functions[k].least || !takes(p, ")")))
        return fail_expr(p, "has a function with a wrong number of arguments");
    return out;
}

static ratio read_number(parser *p)
{
    const size_t from = p->at;
    int64_t v;
    while (p->at < p->text.len && p->text.ptr[p->at] >= '0' && p->text.ptr[p->at] <= '9')
        p->at++;
    if (p->at == from)
        return fail_expr(p, "cannot be read");
    if (!orr_text_i64((orr_str){p->text.ptr + from, p->at - from}, &v))
        return fail_expr(p, too_large);
    return make_ratio(p, v, 1);
}

static ratio read_atom(parser *p)
{
    ratio out;
    if (takes(p, "(")) {
        out = read_sum(p);
        return p->fault || takes(p, ")") ? out : fail_expr(p, "has no closing parenthesis");
    }
    const orr_str name = take_word(p);
    if (name.len == 0)
        return read_number(p);
    return takes(p, "(") ? read_call(p, name) : value_of(p, name);
}

static ratio read_signed(parser *p)
{
    if (p->fault || p->depth >= DEPTH_MOST)
        return fail_expr(p, "is nested too deeply");
    p->depth++;
    ratio out;
    if (takes(p, "-")) {
        out = read_signed(p);
        out.n = -out.n;
    } else {
        out = read_atom(p);
        if (!p->fault && takes(p, "**"))
            out = power(p, out, read_signed(p));
    }
    p->depth--;
    return out;
}

static ratio read_product(parser *p)
{
    ratio out = read_signed(p);
    while (!p->fault) {
        if (takes(p, "//"))
            out = floor_of(divide(p, out, read_signed(p)));
        else if (takes(p, "*"))
            out = multiply(p, out, read_signed(p));
        else if (takes(p, "/"))
            out = divide(p, out, read_signed(p));
        else if (takes(p, "%"))
            out = modulo(p, out, read_signed(p));
        else
            break;
    }
    return out;
}

static ratio read_sum(parser *p)
{
    ratio out = read_product(p);
    while (!p->fault) {
        if (takes(p, "+"))
            out = add(p, out, read_product(p), 1);
        else if (takes(p, "-"))
            out = add(p, out, read_product(p), -1);
        else
            break;
    }
    return out;
}

/* ---- values ---- */

static orr_code fail_missing(const parser *p, orr_json_value at, orr_error *err)
{
    const symbol *y = symbol_of(p->s, p->missing);
    char range[64] = "";
    const int n = p->missing.len > 60 ? 60 : (int)p->missing.len;
    if (y && y->max != INT64_MAX)
        snprintf(range, sizeof range, ", %" PRId64 " to %" PRId64, y->min < 0 ? 0 : y->min, y->max);
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(at)),
                    "size '%.*s' is symbolic and the file has no example value: give it with --dim "
                    "%.*s=N%s",
                    n, p->missing.ptr, n, p->missing.ptr, range);
}

/* The value of an expression; its own example replaces what cannot be evaluated. */
static orr_code evaluate(
    export_symbols *s, orr_json_value expr, orr_str text, int64_t *out, orr_error *err)
{
    bool has_hint;
    int64_t hint = 0;
    parser p = {.s = s, .text = text};
    orr_code code = read_hint(expr, &has_hint, &hint, err);
    if (code)
        return code;
    const ratio r = read_sum(&p);
    skip_spaces(&p);
    if (!p.fault && p.at < text.len)
        fail_expr(&p, "has something that cannot be read");
    if (!p.fault && r.d != 1)
        fail_expr(&p, "is not a whole number");
    *out = r.n;
    if (has_hint && !p.uses_given)
        *out = hint;
    else if (p.fault && p.missing.len)
        return fail_missing(&p, expr, err);
    else if (p.fault) {
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(expr)), "size '%.*s' %s",
                        text.len > 120 ? 120 : (int)text.len, text.ptr, p.fault);
    }
    return ORR_OK;
}

orr_code symbols_value(export_symbols *s, orr_json_value sym_int, int64_t *out, orr_error *err)
{
    orr_json_value v;
    orr_str text;
    if (orr_json_find(sym_int, "as_int", &v))
        return orr_json_get_i64(v, out, err);
    if (!orr_json_find(sym_int, "as_expr", &v))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(sym_int)),
                        "a size with neither \"as_int\" nor \"as_expr\"");
    const orr_code code = read_text(v, &text, err);
    return code ? code : evaluate(s, v, text, out, err);
}

/* ---- at the end ---- */

static orr_code fail_range(orr_str name, const symbol *y, orr_json_value root, orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, ORR_AT(orr_json_where(root)),
                    "size %.*s=%" PRId64 ": the program was exported for %" PRId64 " to %" PRId64,
                    (int)name.len, name.ptr, y->value, y->min, y->max);
}

/* "s0, s1": the symbols of the file. */
static void list_known(const export_symbols *s, char *to, size_t room)
{
    size_t len = 0;
    for (uint32_t i = 0; i < orr_intern_count(s->names); i++) {
        const orr_str name = orr_intern_get(s->names, i);
        if (!s->at[i].is_known || len + name.len + 3 > room)
            continue;
        if (len) {
            memcpy(to + len, ", ", 2);
            len += 2;
        }
        memcpy(to + len, name.ptr, name.len);
        len += name.len;
    }
    to[len] = '\0';
}

orr_code symbols_check(const export_symbols *s, orr_json_value root, orr_error *err)
{
    char known[160];
    for (uint32_t i = 0; i < orr_intern_count(s->names); i++) {
        const symbol *y = &s->at[i];
        const orr_str name = orr_intern_get(s->names, i);
        if (!y->is_given)
            continue;
        if (y->is_known && (y->value < y->min || y->value > y->max))
            return fail_range(name, y, root, err);
        if (y->is_known)
            continue;
        list_known(s, known, sizeof known);
        return orr_fail(err, ORR_EUSAGE, ORR_AT(orr_json_where(root)),
                        "no size of this program is called '%.*s'; %s%s",
                        name.len > 60 ? 60 : (int)name.len, name.ptr,
                        known[0] ? "there are: " : "all of them are fixed", known);
    }
    return ORR_OK;
}

orr_code symbols_report(const export_symbols *s,
                        orr_arena *a,
                        const orr_export_symbol **out,
                        size_t *count,
                        orr_error *err)
{
    const uint32_t all = orr_intern_count(s->names);
    orr_export_symbol *list = orr_arena_new(a, (size_t)all + 1, orr_export_symbol);
    *out = list;
    *count = 0;
    if (!list)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < all; i++) {
        const symbol *y = &s->at[i];
        if (!y->is_used || !y->has_value)
            continue;
        const orr_str name = orr_intern_get(s->names, i);
        char *copy = orr_arena_text(a, name);
        if (!copy)
            return orr_no_memory(err);
        list[(*count)++] =
            (orr_export_symbol){{copy, name.len}, y->value, y->min, y->max, y->is_given};
    }
    return ORR_OK;
}
