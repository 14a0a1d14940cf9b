/* SPDX-License-Identifier: Apache-2.0 */
/* expression.h - the small expressions of a sweep: constraints, derived options, measures, filters.
 *
 *     swp_expr *e;
 *     if (swp_expr_parse(orr_str_of("tp * pp <= 16 and batch % dp == 0"), &where, &e, &err)) ...
 *     if (swp_expr_bind(e, names, &err)) ...              // names[i] is the value at place i
 *     swp_value v = swp_expr_evaluate(e, values);
 *     swp_expr_free(e);
 *
 * Numbers, 'texts', names, + - * / // % **, comparisons, and or not (also && || !), parentheses, `a
 * if c else b`, min max abs floor ceil round sqrt log2 log10.  A dash in a name is written as an
 * underscore.  Undefined results (a text times two, a division by zero, a missing value) are
 * SWP_NONE, which propagates. */
#ifndef ORR_SWEEP_EXPRESSION_H
#define ORR_SWEEP_EXPRESSION_H

#include "base/memory/memory.h"

typedef enum swp_kind { SWP_NONE, SWP_NUMBER, SWP_TEXT } swp_kind;

typedef struct swp_value {
    swp_kind kind;
    double number;
    orr_str text; /* as written, also for a parsed number */
} swp_value;

typedef struct swp_expr swp_expr;

/* where: location of the first character, for messages; NULL: none.  On failure *out is NULL. */
orr_code swp_expr_parse(orr_str text, const orr_where *where, swp_expr **out, orr_error *err)
    ORR_MUST_CHECK;
void swp_expr_free(swp_expr *e); /* NULL is fine */
/* names ends in NULL.  An unknown name is an error that suggests a near one. */
orr_code swp_expr_bind(swp_expr *e, const char *const *names, orr_error *err) ORR_MUST_CHECK;
/* For unknown sets of names: each distinct one gets the next index, and names[place] is its
 * text. */
orr_code swp_expr_bind_open(
    swp_expr *e, orr_str *names, uint32_t most, uint32_t *count, orr_error *err) ORR_MUST_CHECK;
/* values: indexed like the names it was bound to. */
swp_value swp_expr_evaluate(const swp_expr *e, const swp_value *values);
bool swp_expr_uses(const swp_expr *e, uint32_t place); /* bound: is this value read? */
orr_str swp_expr_text(const swp_expr *e);
orr_where swp_expr_where(const swp_expr *e);

bool swp_is_true(swp_value v);
/* A text as a value: a number if it parses as one. */
swp_value swp_value_of(orr_str text);
/* Equal names, ignoring the difference between dashes and underscores. */
bool swp_same_name(orr_str a, const char *b);

#endif
