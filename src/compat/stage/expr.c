/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - exact fractions, expressions in canonical form, and their parser.
 *
 * Fractions are reduced before multiplying, so numbers grow no larger than the result needs;
 * whatever exceeds 128 bits is an error. */
#include "expr.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static stg_expr stg_expr_number(stg_algebra *a, stg_ratio v);

static const orr__wide widest = (orr__wide)((~(unsigned __int128)0) >> 1);

static orr__wide absolute(orr__wide v)
{
    return v < 0 ? -v : v;
}

/* gcd of nonnegative numbers; the 64-bit loop is the usual case and ten times faster. */
static orr__wide common_factor(orr__wide a, orr__wide b)
{
    while (b > UINT64_MAX || a > UINT64_MAX) {
        if (b == 0)
            return a;
        const orr__wide rest = a % b;
        a = b;
        b = rest;
    }
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

bool stg_ratio_make(orr__wide num, orr__wide den, stg_ratio *out)
{
    if (den == 0 || num < -widest || den < -widest)
        return false; /* the last two: the minimum has no positive counterpart */
    const orr__wide g = common_factor(absolute(num), absolute(den));
    *out = (stg_ratio){den < 0 ? -num / g : num / g, absolute(den) / g};
    return true;
}

bool stg_ratio_mul(stg_ratio a, stg_ratio b, stg_ratio *out)
{
    const orr__wide g = common_factor(absolute(a.num), b.den),
                    h = common_factor(absolute(b.num), a.den);
    orr__wide num, den;
    if (__builtin_mul_overflow(a.num / g, b.num / h, &num) ||
        __builtin_mul_overflow(a.den / h, b.den / g, &den) || num < -widest)
        return false;
    *out = (stg_ratio){num, den};
    return true;
}

bool stg_ratio_add(stg_ratio a, stg_ratio b, stg_ratio *out)
{
    const orr__wide g = common_factor(a.den, b.den);
    orr__wide x, y, num, den;
    if (__builtin_mul_overflow(a.num, b.den / g, &x) ||
        __builtin_mul_overflow(b.num, a.den / g, &y) || __builtin_add_overflow(x, y, &num) ||
        __builtin_mul_overflow(a.den / g, b.den, &den) || num < -widest)
        return false;
    return stg_ratio_make(num, den, out);
}

bool stg_ratio_power(stg_ratio a, int32_t exponent, stg_ratio *out)
{
    stg_ratio result = stg_ratio_of(1);
    if (exponent < 0 && !stg_ratio_make(a.den, a.num, &a))
        return false;
    for (int32_t i = exponent < 0 ? -exponent : exponent; i > 0; i--) {
        if (!stg_ratio_mul(result, a, &result))
            return false;
    }
    *out = result;
    return true;
}

/* Long division until the quotient has at least 55 bits: 53 for the significand, one to round by,
 * and a sticky bit. */
double stg_ratio_double(stg_ratio a)
{
    enum { BITS = 53 };
    unsigned __int128 rest = (unsigned __int128)absolute(a.num);
    const unsigned __int128 den = (unsigned __int128)a.den;
    unsigned __int128 q = rest / den;
    int shift = 0;
    rest %= den;
    if (a.num == 0)
        return 0;
    for (; q >> (BITS + 1) == 0; shift--) {
        rest <<= 1; /* below 2^128: den is below 2^127 */
        q = q << 1 | (rest >= den);
        rest -= rest >= den ? den : 0;
    }
    bool has_rest = rest != 0;
    for (; q >> (BITS + 2) != 0; shift++) {
        has_rest |= q & 1;
        q >>= 1;
    }
    const uint64_t low = (uint64_t)q & 3;
    uint64_t top = (uint64_t)(q >> 2);
    if (low == 3 || (low == 2 && (has_rest || (top & 1))))
        top++;
    const double v = ldexp((double)top, shift + 2);
    return a.num < 0 ? -v : v;
}

/* Expressions in canonical form (stage.md 2).
 *
 * An expression is built in three steps: collect its terms in any order; sort them and add up equal
 * ones; print it and look up the text.  So equality is equality of indices, and the text is always
 * at hand.
 *
 * Order: factors of a term by name, sums after symbols; terms of a sum descending by their
 * exponents, compared lexicographically over all factors.  Cost: irrelevant; a model has about
 * forty different extents. */

#define SUM_BIT 0x80000000u

bool stg_algebra_init(stg_algebra *a)
{
    *a = (stg_algebra){.symbols = orr_intern_create(), .texts = orr_intern_create()};
    if (!a->symbols || !a->texts)
        return false;
    return stg_expr_number(a, stg_ratio_of(0)) == ORR__ZERO &&
           stg_expr_number(a, stg_ratio_of(1)) == ORR__ONE && !a->fault;
}

void stg_algebra_fini(stg_algebra *a)
{
    orr_intern_destroy(a->symbols);
    orr_intern_destroy(a->texts);
    orr_free(a->sums);
    orr_free(a->terms);
    orr_free(a->factors);
    orr_free(a->new_terms);
    orr_free(a->new_factors);
    orr_buf_fini(&a->text);
}

static stg_expr fail(stg_algebra *a, stg_fault fault)
{
    if (!a->fault)
        a->fault = fault;
    return ORR__ZERO;
}

orr_code stg_algebra_check(const stg_algebra *a,
                           const orr_where *where,
                           const char *what,
                           orr_error *err)
{
    switch (a->fault) {
    case ORR__FINE:
        return ORR_OK;
    case ORR__NO_ROOM:
        return orr_no_memory(err);
    case ORR__TOO_LARGE:
        return orr_fail(err, ORR_EINPUT, where, "%s: a number or an exponent is too large", what);
    case ORR__BY_ZERO:
        return orr_fail(err, ORR_EINPUT, where, "%s: a division by zero", what);
    default:
        return orr_fail(err, ORR_EINPUT, where, "%s: more than %d different symbols", what,
                        ORR__SYMBOLS_MOST);
    }
}

/* ---- symbols and order ---- */

uint32_t stg_symbol(stg_algebra *a, orr_str name)
{
    uint32_t s;
    if (!orr_intern_add(a->symbols, name, &s))
        return fail(a, ORR__NO_ROOM);
    return s < ORR__SYMBOLS_MOST ? s : fail(a, ORR__MANY_SYMBOLS);
}

orr_str stg_symbol_name(const stg_algebra *a, uint32_t symbol)
{
    return orr_intern_get(a->symbols, symbol);
}

uint32_t stg_symbol_count(const stg_algebra *a)
{
    return orr_intern_count(a->symbols);
}

static bool is_sum(uint32_t base)
{
    return (base & SUM_BIT) != 0;
}

static orr_str base_text(const stg_algebra *a, uint32_t base)
{
    return is_sum(base) ? stg_expr_text(a, base & ~SUM_BIT) : stg_symbol_name(a, base);
}

static int compare_texts(orr_str x, orr_str y)
{
    const size_t n = x.len < y.len ? x.len : y.len;
    const int order = memcmp(x.ptr, y.ptr, n);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static int compare_bases(const stg_algebra *a, uint32_t x, uint32_t y)
{
    if (x == y)
        return 0;
    if (is_sum(x) != is_sum(y))
        return is_sum(x) ? 1 : -1;
    return compare_texts(base_text(a, x), base_text(a, y));
}

/* Of two terms being built: negative if x is printed before y, 0 if they can be added. */
static int compare_terms(const stg_algebra *a, const stg_term *x, const stg_term *y)
{
    const stg_factor *f = a->new_factors + x->first, *g = a->new_factors + y->first;
    const stg_factor *f_end = f + x->count, *g_end = g + y->count;
    while (f < f_end || g < g_end) {
        int order = f == f_end ? 1 : g == g_end ? -1 : compare_bases(a, f->base, g->base);
        const int32_t e = order <= 0 ? f->exponent : 0, h = order >= 0 ? g->exponent : 0;
        if (e != h)
            return e > h ? -1 : 1;
        f += order <= 0;
        g += order >= 0;
    }
    return 0;
}

/* ---- building an expression ---- */

static void begin(stg_algebra *a)
{
    a->new_term_count = a->new_factor_count = 0;
}

/* A new term without factors. */
static stg_term *add_term(stg_algebra *a, stg_ratio by)
{
    if (a->new_factor_count > UINT32_MAX / 2 ||
        !orr_grow(&a->new_terms, &a->new_term_room, a->new_term_count + 1)) {
        fail(a, ORR__NO_ROOM);
        return NULL;
    }
    stg_term *t = &a->new_terms[a->new_term_count++];
    *t = (stg_term){.by = by, .first = (uint32_t)a->new_factor_count};
    return t;
}

/* Another factor of the last term; factors come in order. */
static void add_factor(stg_algebra *a, uint32_t base, int64_t exponent)
{
    if (exponent == 0)
        return;
    if (exponent > ORR__EXPONENT_MOST || exponent < -ORR__EXPONENT_MOST) {
        fail(a, ORR__TOO_LARGE);
    } else if (!orr_grow(&a->new_factors, &a->new_factor_room, a->new_factor_count + 1)) {
        fail(a, ORR__NO_ROOM);
    } else {
        a->new_factors[a->new_factor_count++] =
            (stg_factor){.base = base, .exponent = (int32_t)exponent};
        a->new_terms[a->new_term_count - 1].count++;
    }
}

static void sort_terms(stg_algebra *a)
{
    for (size_t i = 1; i < a->new_term_count; i++) {
        const stg_term t = a->new_terms[i];
        size_t at = i;
        for (; at > 0 && compare_terms(a, &t, &a->new_terms[at - 1]) < 0; at--)
            a->new_terms[at] = a->new_terms[at - 1];
        a->new_terms[at] = t;
    }
}

static void merge_terms(stg_algebra *a)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->new_term_count; i++) {
        stg_term *t = &a->new_terms[i];
        stg_term *last = kept ? &a->new_terms[kept - 1] : NULL;
        if (!last || compare_terms(a, last, t) != 0)
            a->new_terms[kept++] = *t;
        else if (!stg_ratio_add(last->by, t->by, &last->by))
            fail(a, ORR__TOO_LARGE);
    }
    a->new_term_count = 0;
    for (size_t i = 0; i < kept; i++) {
        if (a->new_terms[i].by.num != 0)
            a->new_terms[a->new_term_count++] = a->new_terms[i];
    }
}

/* ---- printing ---- */

static void print_factor(stg_algebra *a, const stg_factor *f)
{
    const orr_str text = base_text(a, f->base);
    const int32_t power = f->exponent < 0 ? -f->exponent : f->exponent;
    orr_buf_text(&a->text, is_sum(f->base) ? "(" : "");
    orr_buf_add(&a->text, text.ptr, text.len);
    orr_buf_text(&a->text, is_sum(f->base) ? ")" : "");
    if (power != 1)
        orr_buf_print(&a->text, "**%" PRId32, power);
}

/* The factors of the numerator (sign 1) or denominator (-1), preceded by `number` unless it is
 * 1.  Returns how many were printed. */
static size_t print_side(stg_algebra *a, const stg_term *t, int sign, uint64_t number)
{
    size_t printed = 0;
    if (number != 1) {
        orr_buf_u64(&a->text, number);
        printed++;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        const stg_factor *f = &a->new_factors[t->first + i];
        if ((f->exponent > 0) != (sign > 0))
            continue;
        orr_buf_text(&a->text, printed++ ? "*" : "");
        print_factor(a, f);
    }
    return printed;
}

static bool has_several_below(const stg_algebra *a, const stg_term *t)
{
    size_t below = t->by.den != 1;
    for (uint32_t i = 0; i < t->count; i++)
        below += a->new_factors[t->first + i].exponent < 0;
    return below > 1;
}

static bool has_any_below(const stg_algebra *a, const stg_term *t)
{
    bool any = t->by.den != 1;
    for (uint32_t i = 0; i < t->count; i++)
        any |= a->new_factors[t->first + i].exponent < 0;
    return any;
}

static void print_term(stg_algebra *a, const stg_term *t, bool is_first)
{
    const bool is_negative = t->by.num < 0;
    const uint64_t num = (uint64_t)(is_negative ? -t->by.num : t->by.num);
    orr_buf_text(&a->text, is_first ? is_negative ? "-" : "" : is_negative ? " - " : " + ");
    if (print_side(a, t, 1, num) == 0)
        orr_buf_text(&a->text, "1");
    if (!has_any_below(a, t))
        return;
    const bool several = has_several_below(a, t);
    orr_buf_text(&a->text, several ? "/(" : "/");
    print_side(a, t, -1, (uint64_t)t->by.den);
    orr_buf_text(&a->text, several ? ")" : "");
}

static void print_terms(stg_algebra *a)
{
    a->text.len = 0;
    for (size_t i = 0; i < a->new_term_count; i++)
        print_term(a, &a->new_terms[i], i == 0);
    if (a->new_term_count == 0)
        orr_buf_text(&a->text, "0");
    if (a->text.failed)
        fail(a, ORR__NO_ROOM);
}

/* ---- storing it ---- */

static uint64_t symbols_of(const stg_algebra *a)
{
    uint64_t uses = 0;
    for (size_t i = 0; i < a->new_term_count; i++) {
        const stg_term *t = &a->new_terms[i];
        for (uint32_t k = 0; k < t->count; k++) {
            const uint32_t base = a->new_factors[t->first + k].base;
            uses |= is_sum(base) ? a->sums[base & ~SUM_BIT].uses : UINT64_C(1) << base;
        }
    }
    return uses;
}

static bool fits(const stg_algebra *a)
{
    for (size_t i = 0; i < a->new_term_count; i++) {
        const stg_ratio by = a->new_terms[i].by;
        if (by.num > INT64_MAX || by.num < -INT64_MAX || by.den > INT64_MAX)
            return false;
    }
    return true;
}

static bool keep(stg_algebra *a, uint32_t index)
{
    const size_t terms = a->term_count + a->new_term_count;
    size_t factors = a->factor_count;
    for (size_t i = 0; i < a->new_term_count; i++)
        factors += a->new_terms[i].count;
    if (index >= SUM_BIT || terms > UINT32_MAX || factors > UINT32_MAX ||
        !orr_grow(&a->sums, &a->sum_room, index + 1u) ||
        !orr_grow(&a->terms, &a->term_room, terms) ||
        !orr_grow(&a->factors, &a->factor_room, factors))
        return false;
    a->sums[index] = (stg_sum){.first = (uint32_t)a->term_count,
                               .count = (uint32_t)a->new_term_count,
                               .uses = symbols_of(a)};
    for (size_t i = 0; i < a->new_term_count; i++) {
        stg_term t = a->new_terms[i];
        if (t.count)
            memcpy(a->factors + a->factor_count, a->new_factors + t.first,
                   t.count * sizeof *a->factors);
        t.first = (uint32_t)a->factor_count;
        a->factor_count += t.count;
        a->terms[a->term_count++] = t;
    }
    return true;
}

static stg_expr finish(stg_algebra *a)
{
    uint32_t index;
    if (a->fault)
        return ORR__ZERO;
    sort_terms(a);
    merge_terms(a);
    if (!fits(a))
        return fail(a, ORR__TOO_LARGE);
    print_terms(a);
    if (a->fault)
        return ORR__ZERO;
    const uint32_t before = orr_intern_count(a->texts);
    const orr_str text = {(const char *)a->text.ptr, a->text.len};
    if (!orr_intern_add(a->texts, text, &index) || (index == before && !keep(a, index)))
        return fail(a, ORR__NO_ROOM);
    return index;
}

static stg_expr stg_expr_number(stg_algebra *a, stg_ratio v)
{
    begin(a);
    add_term(a, v);
    return finish(a);
}

stg_expr stg_expr_symbol(stg_algebra *a, uint32_t symbol)
{
    if (a->fault)
        return ORR__ZERO;
    begin(a);
    if (add_term(a, stg_ratio_of(1)))
        add_factor(a, symbol, 1);
    return finish(a);
}

stg_expr stg_expr_sum(stg_algebra *a, const stg_expr *x, size_t count)
{
    begin(a);
    for (size_t i = 0; i < count && !a->fault; i++) {
        const stg_sum s = a->sums[x[i]];
        for (uint32_t k = 0; k < s.count && !a->fault; k++) {
            const stg_term t = a->terms[s.first + k];
            add_term(a, t.by);
            for (uint32_t f = 0; f < t.count && !a->fault; f++)
                add_factor(a, a->factors[t.first + f].base, a->factors[t.first + f].exponent);
        }
    }
    return finish(a);
}

/* An expression as a single term: its only one, or itself as a factor.  own: storage for that
 * factor. */
static stg_term as_term(const stg_algebra *a,
                        stg_expr x,
                        stg_factor *own,
                        const stg_factor **factors)
{
    const stg_sum s = a->sums[x];
    if (s.count == 1) {
        const stg_term t = a->terms[s.first];
        *factors = a->factors + t.first;
        return t;
    }
    *own = (stg_factor){.base = x | SUM_BIT, .exponent = 1};
    *factors = own;
    return (stg_term){.by = stg_ratio_of(1), .count = 1};
}

/* A number times a sum is distributed over the terms of the sum. */
static stg_expr finish_product(stg_algebra *a)
{
    const stg_term *t = &a->new_terms[0];
    if (a->fault || t->count != 1)
        return finish(a);
    const stg_factor f = a->new_factors[t->first];
    if (!is_sum(f.base) || f.exponent != 1)
        return finish(a);
    const stg_ratio by = t->by;
    const stg_expr inner = f.base & ~SUM_BIT;
    if (by.num == 1 && by.den == 1)
        return inner;
    stg_expr_sum(a, &inner, 1); /* collects its terms again */
    for (size_t i = 0; i < a->new_term_count; i++) {
        if (!stg_ratio_mul(a->new_terms[i].by, by, &a->new_terms[i].by))
            fail(a, ORR__TOO_LARGE);
    }
    return finish(a);
}

stg_expr stg_expr_mul(stg_algebra *a, stg_expr x, stg_expr y)
{
    stg_factor own[2];
    const stg_factor *f, *g;
    stg_ratio by;
    if (a->fault || x == ORR__ZERO || y == ORR__ZERO)
        return ORR__ZERO;
    const stg_term p = as_term(a, x, &own[0], &f), q = as_term(a, y, &own[1], &g);
    if (!stg_ratio_mul(p.by, q.by, &by))
        return fail(a, ORR__TOO_LARGE);
    begin(a);
    if (!add_term(a, by))
        return ORR__ZERO;
    for (uint32_t i = 0, k = 0; (i < p.count || k < q.count) && !a->fault;) {
        const int order = i == p.count   ? 1
                          : k == q.count ? -1
                                         : compare_bases(a, f[i].base, g[k].base);
        const int64_t e = order <= 0 ? f[i].exponent : 0, h = order >= 0 ? g[k].exponent : 0;
        add_factor(a, order <= 0 ? f[i].base : g[k].base, e + h);
        i += order <= 0;
        k += order >= 0;
    }
    return finish_product(a);
}

stg_expr stg_expr_power(stg_algebra *a, stg_expr x, int32_t exponent)
{
    stg_factor own;
    const stg_factor *f;
    stg_ratio by;
    if (a->fault || exponent == 0)
        return a->fault ? ORR__ZERO : ORR__ONE;
    if (x == ORR__ZERO)
        return exponent < 0 ? fail(a, ORR__BY_ZERO) : ORR__ZERO;
    if (exponent > ORR__EXPONENT_MOST || exponent < -ORR__EXPONENT_MOST)
        return fail(a, ORR__TOO_LARGE);
    const stg_term t = as_term(a, x, &own, &f);
    if (!stg_ratio_power(t.by, exponent, &by))
        return fail(a, ORR__TOO_LARGE);
    begin(a);
    if (!add_term(a, by))
        return ORR__ZERO;
    for (uint32_t i = 0; i < t.count && !a->fault; i++)
        add_factor(a, f[i].base, (int64_t)f[i].exponent * exponent);
    return finish_product(a);
}

/* ---- substitution and evaluation ---- */

static stg_expr replace_in_term(stg_algebra *a, stg_term t, uint32_t symbol, stg_expr by)
{
    stg_expr product = stg_expr_number(a, t.by);
    for (uint32_t i = 0; i < t.count && !a->fault; i++) {
        const stg_factor f = a->factors[t.first + i];
        stg_expr x;
        if (is_sum(f.base))
            x = stg_expr_replace(a, f.base & ~SUM_BIT, symbol, by);
        else
            x = f.base == symbol ? by : stg_expr_symbol(a, f.base);
        product = stg_expr_mul(a, product, stg_expr_power(a, x, f.exponent));
    }
    return product;
}

stg_expr stg_expr_replace(stg_algebra *a, stg_expr x, uint32_t symbol, stg_expr by)
{
    if (a->fault || !(a->sums[x].uses >> symbol & 1))
        return x;
    const stg_sum s = a->sums[x];
    stg_expr *parts = NULL;
    size_t room = 0;
    if (!orr_grow(&parts, &room, s.count))
        return fail(a, ORR__NO_ROOM);
    for (uint32_t i = 0; i < s.count; i++)
        parts[i] = replace_in_term(a, a->terms[s.first + i], symbol, by);
    const stg_expr sum = stg_expr_sum(a, parts, s.count);
    orr_free(parts);
    return sum;
}

static bool factor_value(const stg_algebra *a,
                         const stg_factor *f,
                         const int64_t *values,
                         size_t value_count,
                         stg_ratio *out)
{
    if (is_sum(f->base)) {
        if (!stg_expr_value(a, f->base & ~SUM_BIT, values, value_count, out))
            return false;
    } else if (f->base < value_count) {
        *out = stg_ratio_of(values[f->base]);
    } else {
        return false;
    }
    return stg_ratio_power(*out, f->exponent, out);
}

bool stg_expr_value(
    const stg_algebra *a, stg_expr x, const int64_t *values, size_t value_count, stg_ratio *out)
{
    const stg_sum s = a->sums[x];
    *out = stg_ratio_of(0);
    for (uint32_t i = 0; i < s.count; i++) {
        const stg_term *t = &a->terms[s.first + i];
        stg_ratio product = t->by, v;
        for (uint32_t k = 0; k < t->count; k++) {
            if (!factor_value(a, &a->factors[t->first + k], values, value_count, &v) ||
                !stg_ratio_mul(product, v, &product))
                return false;
        }
        if (!stg_ratio_add(*out, product, out))
            return false;
    }
    return true;
}

/* Parser: names, numbers, + - * / ** and parentheses, with Python's precedence.  Recursion depth is
 * that of the parentheses, which is limited. */

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

/* Digits with an optional decimal point; trailing zeros of a fraction do not count. */
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

/* An integer with an optional sign: nothing else is an exponent. */
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

/* Terms are added in batches: a long sum takes linear, not quadratic time. */
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
