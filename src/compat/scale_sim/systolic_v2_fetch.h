/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2_fetch.h - v2's read buffers when a bandwidth is given: which words are fetched in which order, and
 * which line of the schedule asks for one that is not there.
 *
 * All words of an operand have a place in one circular order, that of the first pass over it.  They are cut into
 * sets; a window of them is in the buffer.  A word outside the window makes it move on until it is inside.  When
 * that happens depends on the order alone, never on the clock. */
#ifndef ORR_MODELS_SYSTOLIC_V2_FETCH_H
#define ORR_MODELS_SYSTOLIC_V2_FETCH_H

#include "systolic_stream.h"

typedef struct orr__fetch orr__fetch;

orr_code orr__fetch_open(const orr__stream *st, /* kept */
                         uint64_t size,         /* words of the buffer */
                         orr__fetch **out,
                         orr_error *err) ORR_MUST_CHECK;
void orr__fetch_close(orr__fetch *f); /* NULL is fine */

/* The next line that asks for a word outside the window, and by how many steps the window moves for it; several in
 * one line come one by one.  False: no more. */
bool orr__fetch_next(orr__fetch *f, uint64_t *line, uint64_t *moves);

/* Places of the circular order, empty ones included. */
uint64_t orr__fetch_places(const orr__fetch *f);

#endif
