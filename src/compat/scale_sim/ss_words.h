/* SPDX-License-Identifier: Apache-2.0 */
/* ss_words.h - v3's operands as matrices of addresses, zero weights left out (scale-sim.md 12.4). */
#ifndef ORR_COMPAT_SS_WORDS_H
#define ORR_COMPAT_SS_WORDS_H

#include "ss_impl.h"

#define SS_NO_WORD UINT64_MAX

/* Both operands.  The ifmap's matrix has a row per pixel and `columns`; the filters' has `rows` and a
 * column per filter. */
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

#endif
