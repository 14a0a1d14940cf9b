/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - numbers from text and to text, without locale, exactly.
 *
 * Printing gives the shortest text that reads back the same.  Reading takes the whole text or
 * fails. */
#ifndef ORR_BASE_NUMBER_H
#define ORR_BASE_NUMBER_H

#include <orrery/types.h>

enum { ORR_NUMBER_ROOM = 40, ORR_U64_ROOM = 20 };

/* Shortest text of a finite or non-finite double in the notation of Python's repr: 0.1, 1e-07,
 * 1e+22, 16777216.0, inf, -inf, nan.  Returns the length; not NUL-terminated. */
size_t orr_double_text(double v, char out[ORR_NUMBER_ROOM]);
/* The same for a value that is a float: as many digits as tell it from its float neighbours. */
size_t orr_float_text(float v, char out[ORR_NUMBER_ROOM]);

/* Decimal digits; returns how many, no NUL. */
size_t orr_u64_text(uint64_t v, char out[ORR_U64_ROOM]);

bool orr_text_u64(orr_str s, uint64_t *out);  /* decimal digits only */
bool orr_text_i64(orr_str s, int64_t *out);   /* optional sign */
bool orr_text_double(orr_str s, double *out); /* JSON grammar plus inf/nan forms */

#endif
