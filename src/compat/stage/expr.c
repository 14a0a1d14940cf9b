/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - expressions in canonical form (STAGE's specification, section 2).
 *
 * An expression is made in three steps: its terms are put down in any order, then sorted and equal ones added
 * up, then printed; the text decides whether it is new.  So equality is equality of numbers, and whoever wants
 * the text has it already.
 *
 * Order: factors of a term by name, sums behind symbols; terms of a sum so that the exponents, read as a word
 * over all factors that occur, go down.
 * Cost: a model has about forty different extents; nothing here is worth being clever about. */
#include "expr.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdlib.h>

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

/* Of two terms in the making: negative when x is printed before y, 0 when they may be added up. */
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

/* ---- making an expression ---- */

static void begin(stg_algebra *a)
{
    a->new_term_count = a->new_factor_count = 0;
}

/* A term without factors so far. */
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

/* One more factor of the last term; factors come in order. */
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

/* The factors above the line (sign 1) or below it (-1), `number` before them unless it is 1; how many. */
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

/* ---- keeping it ---- */

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

stg_expr stg_expr_number(stg_algebra *a, stg_ratio v)
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

/* An expression as one term: its only one, or 1 times itself as a factor.  own: where that factor lies. */
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

/* A number times one sum is spread over the terms of the sum. */
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
    stg_expr_sum(a, &inner, 1); /* puts its terms down again */
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

/* ---- using one ---- */

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
