/* SPDX-License-Identifier: Apache-2.0 */
/* expr.h - symbolic expressions, interned in canonical form.
 *
 *     stg_algebra a;
 *     stg_algebra_init(&a);
 *     stg_expr x;
 *     stg_expr_parse(&a, orr_str_of("(Head+2*Head)/tp"), &where, &x, &err);
 *     stg_expr_text(&a, x);                      // "3*Head/tp"
 *     x == stg_expr_mul(&a, ...)                  // equal expressions have equal indices
 *     stg_algebra_fini(&a);
 *
 * The canonical form: a sum of terms; a term is a fraction times powers of symbols times powers of
 * sums.  A sum multiplied by anything but a number remains a factor; a number times a sum is
 * distributed over its terms.  Building never fails directly: the first error (memory, overflow,
 * division by zero) is kept in `fault`, all later results are 0, and stg_algebra_check() reports it
 * once. */
#ifndef ORR_SYMBOLIC_EXPR_H
#define ORR_SYMBOLIC_EXPR_H

#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/short_forms.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- exact fractions of 128-bit integers ----
 *
 * Tensor sizes are products and quotients of a dozen integers.  They are computed exactly and
 * rounded once, so that 10 / 3 * 3 is 10.  All functions return false instead of overflowing. */

__extension__ typedef __int128 orr__wide;

/* In lowest terms, den > 0. */
typedef struct stg_ratio {
    orr__wide num, den;
} stg_ratio;

static inline stg_ratio stg_ratio_of(int64_t v)
{
    return (stg_ratio){v, 1};
}

bool stg_ratio_make(orr__wide num, orr__wide den, stg_ratio *out); /* false: den is 0 */
bool stg_ratio_add(stg_ratio a, stg_ratio b, stg_ratio *out);
bool stg_ratio_mul(stg_ratio a, stg_ratio b, stg_ratio *out);
/* exponent may be negative; false if it is and a is 0. */
bool stg_ratio_power(stg_ratio a, int32_t exponent, stg_ratio *out);
double stg_ratio_double(stg_ratio a); /* round to nearest, ties to even */

typedef uint32_t stg_expr; /* equal expressions have equal indices */

enum {
    ORR__ZERO = 0,
    ORR__ONE = 1,
    ORR__SYMBOLS_MOST = 64,     /* a set of symbols is one 64-bit word */
    ORR__EXPONENT_MOST = 64,    /* far beyond real templates */
    ORR__EXPR_TEXT_MOST = 4096, /* of an expression that is parsed */
};

typedef enum stg_fault {
    ORR__FINE = 0,
    ORR__NO_ROOM,
    ORR__TOO_LARGE,
    ORR__BY_ZERO,
    ORR__MANY_SYMBOLS
} stg_fault;

/* A power of a symbol or, with the top bit set, of an expression. */
typedef struct stg_factor {
    uint32_t base;
    int32_t exponent;
} stg_factor;

typedef struct stg_term {
    stg_ratio by;
    uint32_t first, count; /* its factors: symbols by name, then sums */
} stg_term;

typedef struct stg_sum {
    uint32_t first, count; /* its terms */
    uint64_t uses;         /* bit s: symbol s occurs */
} stg_sum;

typedef struct stg_algebra {
    orr_intern *symbols;
    orr_intern *texts; /* canonical text -> stg_expr */
    stg_sum *sums;
    size_t sum_room;
    stg_term *terms;
    size_t term_count, term_room;
    stg_factor *factors;
    size_t factor_count, factor_room;
    stg_term *new_terms; /* the expression being built; its factors */
    size_t new_term_count, new_term_room;
    stg_factor *new_factors;
    size_t new_factor_count, new_factor_room;
    orr_buf text;
    stg_fault fault;
} stg_algebra;

bool stg_algebra_init(stg_algebra *a); /* false: out of memory; call fini either way */
void stg_algebra_fini(stg_algebra *a);
/* ORR_OK, or the first error since init.  where may be NULL; what: context for the message, such as
 * "x1_shape of y". */
orr_code stg_algebra_check(const stg_algebra *a,
                           const orr_where *where,
                           const char *what,
                           orr_error *err) ORR_MUST_CHECK;

uint32_t stg_symbol(stg_algebra *a, orr_str name); /* its index, below ORR__SYMBOLS_MOST */
orr_str stg_symbol_name(const stg_algebra *a, uint32_t symbol);
uint32_t stg_symbol_count(const stg_algebra *a);

stg_expr stg_expr_symbol(stg_algebra *a, uint32_t symbol);
stg_expr stg_expr_sum(stg_algebra *a, const stg_expr *x, size_t count);
stg_expr stg_expr_mul(stg_algebra *a, stg_expr x, stg_expr y);
stg_expr stg_expr_power(stg_algebra *a, stg_expr x, int32_t exponent);
/* Replace every occurrence of a symbol. */
stg_expr stg_expr_replace(stg_algebra *a, stg_expr x, uint32_t symbol, stg_expr by);

static inline uint64_t stg_expr_uses(const stg_algebra *a, stg_expr x)
{
    return a->sums[x].uses;
}

static inline orr_str stg_expr_text(const stg_algebra *a, stg_expr x)
{
    return orr_intern_get(a->texts, x);
}

/* The exact value; values[s] is that of symbol s.  False: overflow or division by zero. */
bool stg_expr_value(
    const stg_algebra *a, stg_expr x, const int64_t *values, size_t value_count, stg_ratio *out);

/* Parse names, numbers, + - * / ** and parentheses. */
orr_code stg_expr_parse(stg_algebra *a,
                        orr_str text,
                        const orr_where *where,
                        stg_expr *out,
                        orr_error *err) ORR_MUST_CHECK;

#endif
