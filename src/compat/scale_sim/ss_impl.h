/* SPDX-License-Identifier: Apache-2.0 */
/* ss_impl.h - what the files of this room share: streams of requests, buffers, the three
 * generations of SCALE-Sim. */
#ifndef ORR_COMPAT_SS_IMPL_H
#define ORR_COMPAT_SS_IMPL_H

#include "models/compute/systolic/systolic_impl.h"

#include <orrery/types.h>

/* Output stationary in v1: when its two sides have read their last word. */
typedef struct ss_os_folds {
    orr__folds f;
    uint64_t repeats; /* of a column fold's weights; f.inner unless the stride does not divide */
    orr__wide column_end, row_end;
} ss_os_folds;

ss_os_folds ss_v1_os(const orr__systolic *s);
uint64_t ss_v1_streamed(const orr__systolic *s);
/* Cycles of a fold of ws or is: of a window that is folded; of `mapped` filters or pixels, several
 * stacked. */
uint64_t ss_v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns);
uint64_t ss_v1_stacked(const orr__systolic *s, uint64_t mapped);

/* ---- streams ----
 *
 * which words of an operand the array asks for, and in which cycle.
 *
 * An operand is asked for in phases, one or a few a fold.  A phase is a rectangle: `objects`
 * (pixels or filters) times `ks` (elements of the window).  One side is spread over lanes of the
 * array, the other over steps in time; lane l asks for step x in cycle start + x, or start + x + l
 * when the phase is skewed:
 *
 *          lane 0   lane 1   lane 2               objects are lanes: os (both operands), and what is loaded
 *     t=0   (0,0)                                 elements are lanes: what streams past loaded words
 *     t=1   (0,1)    (1,0)
 *     t=2   (0,2)    (1,1)    (2,0)
 *
 * Whatever cycles are asked about, the words one object contributes are a piece of its window, so
 * runs of addresses are all there is to handle. */

typedef struct ss_phase {
    uint64_t start;           /* cycle of its first step */
    uint64_t object, objects; /* the first of them, how many */
    uint64_t k, ks;           /* elements of the window */
    uint64_t copies;          /* v1, stacked windows: each word of a cycle is asked for so often */
} ss_phase;

typedef struct ss_stream ss_stream;
struct ss_stream {
    const orr__systolic *s;
    bool is_filter; /* objects are filters, otherwise pixels */
    bool objects_are_lanes;
    bool is_skewed;
    /* Elements come from the last to the first: in steps or, within a cycle, lanes. */
    bool is_falling;
    bool hangs_over;  /* elements outside the ifmap are not asked for (v2) */
    uint64_t base;    /* address of word 0 */
    uint64_t end;     /* one past the last address */
    uint64_t phases;  /* how many */
    uint64_t longest; /* cycles from a phase's first word to behind its last, at most */
    uint64_t lanes;   /* at most */
    uint64_t finish;  /* all is asked for before this cycle */
    ss_phase (*at)(const ss_stream *stream, uint64_t index);

    orr__folds f;
    uint64_t inner; /* phases of a column fold */
    uint64_t pitch; /* v2: cycles of a fold; v1, stacked: of a full one */
    /* v1: first word of each pixel's window where they are not regular; or NULL. */
    const uint64_t *walk;
    uint64_t walk_count;

    uint64_t distinct; /* how many words there are; 0: not known */
    /* Any so many words asked for one after the other are all different. */
    uint64_t reuse;
    /* In each of the spans [n * span + lead, (n + 1) * span) what is asked for repeats after
     * `period` cycles; span 0: nothing is known to repeat. */
    uint64_t span, lead, period;
};

/* A run of words that are asked for. */
typedef void (*ss_run_visit)(void *ctx, uint64_t address, uint64_t count);

/* All words asked for in the cycles [from, to), in any order.  *cursor belongs to the stream: 0 at
 * first, and `from` never falls between calls. */
void ss_stream_visit(const ss_stream *st,
                     uint64_t from,
                     uint64_t to,
                     uint64_t *cursor,
                     ss_run_visit visit,
                     void *ctx);

/* The words of one cycle, one by one, in their order. */
void ss_stream_cycle(
    const ss_stream *st, uint64_t cycle, uint64_t *cursor, ss_run_visit visit, void *ctx);

/* How many words of one phase are asked for before this cycle; those outside the ifmap count. */
uint64_t ss_phase_before(const ss_stream *st, const ss_phase *p, uint64_t cycle);

uint64_t ss_stream_words(const ss_stream *st); /* of all phases, counted the same way */

/* A place in a stream that only moves on: {.st = stream} is its beginning. */
typedef struct ss_counter {
    const ss_stream *st;
    uint64_t first;  /* phases before it are over */
    uint64_t before; /* words of those */
} ss_counter;

void ss_counter_move(ss_counter *c, uint64_t cycle);
/* Words asked for before this cycle, which is not before the place. */
uint64_t ss_counter_before(const ss_counter *c, uint64_t cycle);
/* The cycle in which word number n (from 0) is asked for, not before `from`; the place moves
 * there. */
uint64_t ss_counter_find(ss_counter *c, uint64_t n, uint64_t from);

/* The last cycle in which a word that exists is asked for. */
uint64_t ss_stream_last(const ss_stream *st);

/* Both streams of a layer.  v1 needs `walk` for weight stationary layers whose stride does not
 * divide. */
void ss_streams_v1(const orr__systolic *s,
                   const uint64_t *walk,
                   ss_stream *ifmap,
                   ss_stream *filter);
void ss_streams_v2(const orr__systolic *s, ss_stream *ifmap, ss_stream *filter);

/* -------- */

/* when a buffer that is filled word by word and emptied all at once has been full.
 *
 * Both generations of SCALE-Sim see their read buffers so: a word that is not held is taken in;
 * when there is no room, all is dropped.  v1 drops when one word more comes, v2 as soon as the last
 * place is taken. */

typedef struct ss_fill_rules {
    uint64_t size;      /* words */
    bool is_eager;      /* v2: emptied when full, not when one more comes */
    uint64_t low, high; /* words with other addresses pass by */
    void *ctx;
    /* The buffer was emptied in this cycle; false: stop. */
    bool (*emptied)(void *ctx, uint64_t cycle);
} ss_fill_rules;

/* Words taken in altogether, and those held at the end. */
typedef struct ss_fill_counts {
    uint64_t taken, held;
    bool has_failed; /* memory ran out on the way */
} ss_fill_counts;

/* Send one or two streams (filter may be NULL) through a buffer; in a cycle the ifmap's words come
 * first. */
orr_code ss_fill_run(const ss_fill_rules *rules,
                     const ss_stream *ifmap,
                     const ss_stream *filter,
                     ss_fill_counts *out,
                     orr_error *err) ORR_MUST_CHECK;

/* The same, word by word, for words that come in no regular order. */
typedef struct ss_fill ss_fill;
orr_code ss_fill_open(const ss_fill_rules *rules, ss_fill **out, orr_error *err) ORR_MUST_CHECK;
bool ss_fill_take(ss_fill *f, uint64_t cycle, uint64_t address); /* false: stop */
ss_fill_counts ss_fill_close(ss_fill *f);

/* -------- */

/* SCALE-Sim v1: what its files share (scale-sim.md, sections 2 to 4). */

/* Output stationary: the cycle in which block h of column fold v begins to be written. */
uint64_t ss_v1_os_write(const orr__systolic *s, uint64_t v, uint64_t h);

/* Output stationary layers whose ifmap is not read in the regular way (scale-sim.md 3.4). */
bool ss_v1_is_degenerate(const orr__systolic *s);

/* What the degenerate ones read. */
typedef struct ss_v1_lane_counts {
    uint64_t cycles; /* in which something was read */
    uint64_t words;  /* of the ifmap */
    double share; /* of the array at work, summed over the cycles in the order of the reference */
} ss_v1_lane_counts;

/* Who is told: a word of a row, and that all rows have had their cycle.  Either may be NULL. */
typedef struct ss_v1_visitor {
    void *ctx;
    void (*word)(void *ctx, uint64_t cycle, uint64_t row, uint64_t address);
    void (*cycle)(void *ctx, uint64_t cycle);
} ss_v1_visitor;

orr_code ss_v1_lanes(const orr__systolic *s,
                     const ss_v1_visitor *visitor,
                     ss_v1_lane_counts *out,
                     orr_error *err) ORR_MUST_CHECK;

/* Address of an element of a pixel's window, without an offset. */
uint64_t ss_v1_word(const orr__systolic *s, uint64_t pixel, uint64_t element);

/* Sums of so many terms are added up in the reference's order, so that even their last digit is
 * its; longer ones have a closed form, which is as exact but rounds elsewhere. */
enum { SS_MOST_TERMS = 1 << 22 };

/* Windows of ws whose bases are not those of pixels (first deviation of section 4); *out stays NULL
 * where they are. */
orr_code ss_v1_walk(const orr__systolic *s, uint64_t **out, orr_error *err) ORR_MUST_CHECK;

/* -------- */

uint64_t ss_v2_fold_cycles(const orr__systolic *s);
orr__wide ss_v2_cycles(const orr__systolic *s); /* without stalls */

/* An operand of v3 whose words come in no regular order: they are made line by line
 * (scale-sim.md 12). */
typedef struct ss_words ss_words;

/* What memory does, in v2 and v3. */
typedef struct ss_memory {
    uint64_t bandwidth[ORR_OPERANDS]; /* words per cycle; all 0: CALC */
    bool is_v3;         /* counts waits twice, and the latest write as the last: 12.3 */
    ss_words *words[2]; /* NULL: the operand's stream */
} ss_memory;

/* Stalls, and first and last cycles and traffic of all buffers; out->cycles are those without
 * stalls and become those with them. */
orr_code ss_v2_memory(const orr__systolic *s,
                      const ss_memory *memory,
                      orr_systolic_result *out,
                      orr_error *err) ORR_MUST_CHECK;
/* Means over the folds; words between array and buffers. */
void ss_v2_counts(const orr__systolic *s, orr_systolic_result *out);

/* The words of a line of the schedule, in their order; they are there until the next call. */
size_t ss_words_line(ss_words *w, uint64_t line, const uint64_t **out);
uint64_t ss_words_low(const ss_words *w);  /* addresses are from here */
uint64_t ss_words_high(const ss_words *w); /* to before there */
/* USER: places of its prefetch order, and a line of the schedule read through the window that moves
 * over it.  `request` cycles are a prefetch, `*requests` of them were made.  False: a word is never
 * fetched. */
uint64_t ss_words_places(const ss_words *w);
bool ss_words_serve(ss_words *w,
                    uint64_t line,
                    uint64_t request,
                    uint64_t *requests,
                    int64_t *served,
                    bool *has_words);
/* v3: the cycle in which a word is served when its window makes so many moves for it. */
int64_t ss_v3_served(int64_t served, uint64_t request, uint64_t *requests, uint64_t moves);

/* Reports and traces of a run. */
orr_code ss_v1_write(const struct orr_scalesim *r, const char *folder, orr_error *err);
orr_code ss_v2_write(const struct orr_scalesim *r, const char *folder, orr_error *err);
orr_code ss_v3_write(const struct orr_scalesim *r, const char *folder, orr_error *err);
orr_code ss_v1_check_names(const struct orr_scalesim *r, orr_error *err);
orr_code ss_v1_write_traces(const struct orr_scalesim *r, const char *folder, orr_error *err);
orr_code ss_v2_write_traces(const struct orr_scalesim *r, const char *folder, orr_error *err);

/* ---- sets in Python's order ----
 *
 * A set of whole numbers that gives them back in the order in which CPython's does.
 *
 * SCALE-Sim v1 fills its memory traces by popping from a set of floats, so the order within a file
 * is that of CPython's hash table, version 3.11: a whole number's hash is itself; ten places in a
 * row are tried, then a perturbed one; what is taken out leaves a mark, and a new key goes to the
 * last mark on its way; popping goes on where it last stopped. */

typedef struct python_set {
    uint64_t *table; /* key + 2; 0: never used, 1: taken out */
    size_t mask, fill, used, finger;
    bool has_failed; /* memory ran out; the set is of no use any more */
} python_set;

void python_set_init(python_set *s);
void python_set_fini(python_set *s);
bool python_set_has(const python_set *s, uint64_t key);
void python_set_add(python_set *s, uint64_t key); /* one that is in it stays */
uint64_t python_set_pop(python_set *s);           /* of a set that is not empty */

/* ---- operands of v3 ----
 *
 * V3's operands as matrices of addresses, zero weights left out (scale-sim.md 12.4). */

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
