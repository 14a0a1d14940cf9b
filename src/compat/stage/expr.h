/* SPDX-License-Identifier: Apache-2.0 */
/* expr.h - expressions over symbols, each kept once in one canonical form.
 *
 *     orr__algebra a;
 *     orr__algebra_init(&a);
 *     orr__expr x;
 *     orr__expr_parse(&a, orr_str_of("(Head+2*Head)/tp"), &where, &x, &err);
 *     orr__expr_text(&a, x);                      // "3*Head/tp"
 *     x == orr__expr_mul(&a, ...)                  // equal expressions are the same number
 *     orr__algebra_fini(&a);
 *
 * The canonical form: a sum of terms; a term is a fraction times powers of symbols times powers of sums.  A sum
 * that is multiplied by something other than a number is kept as a factor; a number times a sum is spread over
 * its terms.  Building never reports: the first failure (memory, a number past 64 bits, a division by zero)
 * is kept in `fault`, everything after it gives 0, and orr__algebra_check says it once. */
#ifndef ORR_SYMBOLIC_EXPR_H
#define ORR_SYMBOLIC_EXPR_H

#include "ratio.h"

#include "base/memory/buffer.h"
#include "base/memory/intern.h"

typedef uint32_t orr__expr; /* equal expressions have equal numbers */

enum {
    ORR__ZERO = 0,
    ORR__ONE = 1,
    ORR__SYMBOLS_MOST = 64,     /* a set of symbols is one word */
    ORR__EXPONENT_MOST = 64,    /* nothing real comes near it */
    ORR__EXPR_TEXT_MOST = 4096, /* of an expression that is read */
};

typedef enum orr__fault {
    ORR__FINE = 0,
    ORR__NO_ROOM,
    ORR__TOO_LARGE,
    ORR__BY_ZERO,
    ORR__MANY_SYMBOLS
} orr__fault;

/* A symbol, or with the top bit an expression, to a power. */
typedef struct orr__factor {
    uint32_t base;
    int32_t exponent;
} orr__factor;

typedef struct orr__term {
    orr__ratio by;
    uint32_t first, count; /* its factors: symbols in the order of their names, then sums */
} orr__term;

typedef struct orr__sum {
    uint32_t first, count; /* its terms */
    uint64_t uses;         /* bit s: symbol s occurs */
} orr__sum;

typedef struct orr__algebra {
    orr_intern *symbols;
    orr_intern *texts; /* canonical text -> orr__expr */
    orr__sum *sums;
    size_t sum_room;
    orr__term *terms;
    size_t term_count, term_room;
    orr__factor *factors;
    size_t factor_count, factor_room;
    orr__term *new_terms; /* the expression being made; its factors */
    size_t new_term_count, new_term_room;
    orr__factor *new_factors;
    size_t new_factor_count, new_factor_room;
    orr_buf text;
    orr__fault fault;
} orr__algebra;

bool orr__algebra_init(orr__algebra *a); /* false: out of memory; fini is due either way */
void orr__algebra_fini(orr__algebra *a);
/* ORR_OK, or what went wrong since init.  where may be NULL; what: "x1_shape of y", for the message. */
orr_code orr__algebra_check(const orr__algebra *a,
                            const orr_where *where,
                            const char *what,
                            orr_error *err) ORR_MUST_CHECK;

uint32_t orr__symbol(orr__algebra *a, orr_str name); /* its number, below ORR__SYMBOLS_MOST */
orr_str orr__symbol_name(const orr__algebra *a, uint32_t symbol);
uint32_t orr__symbol_count(const orr__algebra *a);

orr__expr orr__expr_number(orr__algebra *a, orr__ratio v);
orr__expr orr__expr_symbol(orr__algebra *a, uint32_t symbol);
orr__expr orr__expr_sum(orr__algebra *a, const orr__expr *x, size_t count);
orr__expr orr__expr_mul(orr__algebra *a, orr__expr x, orr__expr y);
orr__expr orr__expr_power(orr__algebra *a, orr__expr x, int32_t exponent);
/* Every occurrence of a symbol replaced. */
orr__expr orr__expr_replace(orr__algebra *a, orr__expr x, uint32_t symbol, orr__expr by);

static inline uint64_t orr__expr_uses(const orr__algebra *a, orr__expr x)
{
    return a->sums[x].uses;
}

static inline orr_str orr__expr_text(const orr__algebra *a, orr__expr x)
{
    return orr_intern_get(a->texts, x);
}

/* The exact value; values[s] is that of symbol s, of which there are value_count.  False: too large, or a
 * division by zero. */
bool orr__expr_value(
    const orr__algebra *a, orr__expr x, const int64_t *values, size_t value_count, orr__ratio *out);

/* Read one: names, numbers, + - * / ** and parentheses. */
orr_code orr__expr_parse(orr__algebra *a,
                         orr_str text,
                         const orr_where *where,
                         orr__expr *out,
                         orr_error *err) ORR_MUST_CHECK;

#endif
