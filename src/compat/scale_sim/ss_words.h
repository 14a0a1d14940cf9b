/* SPDX-License-Identifier: Apache-2.0 */
/* ss_words.h - v3's operands as matrices of addresses, zero weights left out (scale-sim.md
 * 12.4). */
#ifndef ORR_COMPAT_SS_WORDS_H
#define ORR_COMPAT_SS_WORDS_H

#include "ss_impl.h"

#define SS_NO_WORD UINT64_MAX

/* Both operands.  The ifmap's matrix has a row per pixel and `columns`; the filters' has `rows` and
 * a column per filter. */
typedef struct ss_matrices {
    const orr__systolic *s; /* of the layer as it is */
    bool is_pruned;         /* only the first `nonzero` of each `block` weights are kept */
    bool is_packed;         /* blocks of weights, each half full at most, two by two */
    uint64_t nonzero, block;
    uint64_t columns, rows;
    uint32_t *fill; /* packed: how many of a block each filter has */
} ss_matrices;

/* The address, or SS_NO_WORD. */
uint64_t ss_filter_at(const ss_matrices *m, uint64_t row, uint64_t filter);

/* An operand's lines; `folds` has the layer with as many elements as the filters have rows.  With a
 * bandwidth also the window that moves over its prefetch order. */
orr_code ss_words_open(const ss_matrices *m,
                       const orr__systolic *folds,
                       bool is_filter,
                       uint64_t bandwidth,
                       ss_words **out,
                       orr_error *err) ORR_MUST_CHECK;
void ss_words_close(ss_words *w); /* NULL is fine */

/* A line of the schedule with all its lanes, SS_NO_WORD where one rests; how many there are. */
size_t ss_words_lanes(ss_words *w, uint64_t line, const uint64_t **out);
/* All ss_words_places() of the prefetch order; SS_NO_WORD where one is empty. */
void ss_words_order(ss_words *w, uint64_t *out);
/* From now on waits count as in v2 (scale-sim.md 6.4), not as in 12.3. */
void ss_words_count_once(ss_words *w);
/* What the reference calls a word: word 0 is kept beside the others here. */
uint64_t ss_words_address(const ss_words *w, uint64_t word);

/* The matrices of a layer of v3; the caller frees `fill`. */
orr_code ss_v3_matrices(const orr__systolic *s, ss_matrices *out, orr_error *err) ORR_MUST_CHECK;

#endif
