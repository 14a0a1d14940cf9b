/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_fill.h - when a buffer that is filled word by word and emptied all at once has been full.
 *
 * Both generations of SCALE-Sim see their read buffers so: a word that is not held is taken in; when there is no
 * room, all is dropped.  v1 drops when one word more comes, v2 as soon as the last place is taken. */
#ifndef ORR_MODELS_SYSTOLIC_FILL_H
#define ORR_MODELS_SYSTOLIC_FILL_H

#include "systolic_stream.h"

typedef struct orr__fill_rules {
    uint64_t size;      /* words */
    bool is_eager;      /* v2: emptied when full, not when one more comes */
    uint64_t low, high; /* words with other addresses pass by */
    void *ctx;
    /* The buffer was emptied in this cycle; false: stop. */
    bool (*emptied)(void *ctx, uint64_t cycle);
} orr__fill_rules;

/* Words taken in altogether, and those held at the end. */
typedef struct orr__fill_counts {
    uint64_t taken, held;
    bool has_failed; /* memory ran out on the way */
} orr__fill_counts;

/* Send one or two streams (filter may be NULL) through a buffer; in a cycle the ifmap's words come first. */
orr_code orr__fill_run(const orr__fill_rules *rules,
                       const orr__stream *ifmap,
                       const orr__stream *filter,
                       orr__fill_counts *out,
                       orr_error *err) ORR_MUST_CHECK;

/* The same, word by word, for words that come in no regular order. */
typedef struct orr__fill orr__fill;
orr_code orr__fill_open(const orr__fill_rules *rules,
                        orr__fill **out,
                        orr_error *err) ORR_MUST_CHECK;
bool orr__fill_take(orr__fill *f, uint64_t cycle, uint64_t address); /* false: stop */
orr__fill_counts orr__fill_close(orr__fill *f);

#endif
