/* SPDX-License-Identifier: Apache-2.0 */
/* ss_impl.h - shared by the files of this room: request streams, buffers, the three generations of
 * SCALE-Sim. */
#ifndef ORR_COMPAT_SS_IMPL_H
#define ORR_COMPAT_SS_IMPL_H

#include "models/compute/systolic/systolic_impl.h"

#include <orrery/types.h>

/* Output stationary in v1: the cycles in which its two sides read their last words. */
typedef struct ss_os_folds {
    orr__folds f;
    uint64_t repeats; /* of a column fold's weights; f.inner unless the stride leaves a remainder */
    orr__wide column_end, row_end;
} ss_os_folds;

ss_os_folds ss_v1_os(const orr__systolic *s);
uint64_t ss_v1_streamed(const orr__systolic *s);
/* Cycles of a ws or is fold: of a folded window; of `mapped` filters or pixels, several stacked. */
uint64_t ss_v1_fold(const orr__systolic *s, uint64_t rows, uint64_t columns);
uint64_t ss_v1_stacked(const orr__systolic *s, uint64_t mapped);

/* ---- streams ----
 *
 * Which words of an operand the array requests, and in which cycle.
 *
 * An operand is requested in phases, one or a few per fold.  A phase is a rectangle: `objects`
 * (pixels or filters) times `ks` (elements of the window).  One side is spread over lanes of the
 * array, the other over steps in time; lane l requests step x in cycle start + x, or start + x + l
 * if the phase is skewed:
 *
 *          lane 0   lane 1   lane 2     objects are lanes: os (both operands), loaded operands
 *     t=0   (0,0)                       elements are lanes: operands streamed past loaded ones
 *     t=1   (0,1)    (1,0)
 *     t=2   (0,2)    (1,1)    (2,0)
 *
 * In any range of cycles, the words of one object are a contiguous part of its window, so runs of
 * addresses suffice. */

typedef struct ss_phase {
    uint64_t start;           /* cycle of its first step */
    uint64_t object, objects; /* the first one, and their number */
    uint64_t k, ks;           /* elements of the window */
    uint64_t copies;          /* v1, stacked windows: how often a cycle requests each word */
} ss_phase;

typedef struct ss_stream ss_stream;
struct ss_stream {
    const orr__systolic *s;
    bool is_filter; /* objects are filters, otherwise pixels */
    bool objects_are_lanes;
    bool is_skewed;
    /* Elements in descending order: over steps or, within a cycle, over lanes. */
    bool is_falling;
    bool hangs_over;  /* elements outside the ifmap are not requested (v2) */
    uint64_t base;    /* address of word 0 */
    uint64_t end;     /* one past the last address */
    uint64_t phases;  /* number of phases */
    uint64_t longest; /* most cycles from a phase's first word to just after its last */
    uint64_t lanes;   /* at most */
    uint64_t finish;  /* all words are requested before this cycle */
    ss_phase (*at)(const ss_stream *stream, uint64_t index);

    orr__folds f;
    uint64_t inner; /* phases per column fold */
    uint64_t pitch; /* v2: cycles per fold; v1, stacked: of a full one */
    /* v1: first word of each pixel's window if they are irregular, else NULL. */
    const uint64_t *walk;
    uint64_t walk_count;

    uint64_t distinct; /* number of distinct words; 0: unknown */
    /* Any `reuse` consecutive requests are for distinct words. */
    uint64_t reuse;
    /* Within each [n * span + lead, (n + 1) * span) requests repeat every `period` cycles; span 0:
     * no known repetition. */
    uint64_t span, lead, period;
};

/* A run of requested words. */
typedef void (*ss_run_visit)(void *ctx, uint64_t address, uint64_t count);

/* All words requested in cycles [from, to), in any order.  *cursor belongs to the stream: 0 at
 * first; `from` must not decrease between calls. */
void ss_stream_visit(const ss_stream *st,
                     uint64_t from,
                     uint64_t to,
                     uint64_t *cursor,
                     ss_run_visit visit,
                     void *ctx);

/* The words of one cycle, one by one, in order. */
void ss_stream_cycle(
    const ss_stream *st, uint64_t cycle, uint64_t *cursor, ss_run_visit visit, void *ctx);

/* Words of a phase requested before this cycle; those outside the ifmap count. */
uint64_t ss_phase_before(const ss_stream *st, const ss_phase *p, uint64_t cycle);

uint64_t ss_stream_words(const ss_stream *st); /* of all phases, counted likewise */

/* A position in a stream that only advances: {.st = stream} is the start. */
typedef struct ss_counter {
    const ss_stream *st;
    uint64_t first;  /* phases before it are complete */
    uint64_t before; /* words of those */
} ss_counter;

void ss_counter_move(ss_counter *c, uint64_t cycle);
/* Words requested before this cycle, which must not precede the position. */
uint64_t ss_counter_before(const ss_counter *c, uint64_t cycle);
/* The cycle of word n (from 0), not before `from`; the position advances to it. */
uint64_t ss_counter_find(ss_counter *c, uint64_t n, uint64_t from);

/* The last cycle that requests an existing word. */
uint64_t ss_stream_last(const ss_stream *st);

/* Both streams of a layer.  v1 needs `walk` for ws layers whose stride leaves a remainder. */
void ss_streams_v1(const orr__systolic *s,
                   const uint64_t *walk,
                   ss_stream *ifmap,
                   ss_stream *filter);
void ss_streams_v2(const orr__systolic *s, ss_stream *ifmap, ss_stream *filter);

/* ==== when does a buffer that is filled word by word and emptied at once become full?
 *
 * Both generations of SCALE-Sim model their read buffers like this: a missing word is added; if
 * there is no space, everything is dropped.  v1 drops when one more word comes, v2 as soon as the
 * last slot is taken. */

typedef struct ss_fill_rules {
    uint64_t size;      /* words */
    bool is_eager;      /* v2: emptied when full, not when one more word comes */
    uint64_t low, high; /* words at other addresses are ignored */
    void *ctx;
    /* The buffer was emptied in this cycle; false: stop. */
    bool (*emptied)(void *ctx, uint64_t cycle);
} ss_fill_rules;

/* Words added in total, and those held at the end. */
typedef struct ss_fill_counts {
    uint64_t taken, held;
    bool has_failed; /* out of memory */
} ss_fill_counts;

/* Run one or two streams (filter may be NULL) through a buffer; within a cycle the ifmap's words
 * come first. */
orr_code ss_fill_run(const ss_fill_rules *rules,
                     const ss_stream *ifmap,
                     const ss_stream *filter,
                     ss_fill_counts *out,
                     orr_error *err) ORR_MUST_CHECK;

/* The same word by word, for irregular sequences. */
typedef struct ss_fill ss_fill;
orr_code ss_fill_open(const ss_fill_rules *rules, ss_fill **out, orr_error *err) ORR_MUST_CHECK;
bool ss_fill_take(ss_fill *f, uint64_t cycle, uint64_t address); /* false: stop */
ss_fill_counts ss_fill_close(ss_fill *f);

/* ==== SCALE-Sim v1 (scale-sim.md 2 to 4). */

/* Output stationary: the first cycle in which block h of column fold v is written. */
uint64_t ss_v1_os_write(const orr__systolic *s, uint64_t v, uint64_t h);

/* Output stationary layers that read their ifmap irregularly (scale-sim.md 3.4). */
bool ss_v1_is_degenerate(const orr__systolic *s);

/* What those read. */
typedef struct ss_v1_lane_counts {
    uint64_t cycles; /* with at least one read */
    uint64_t words;  /* of the ifmap */
    double share;    /* utilization of the array, summed over cycles in the reference's order */
} ss_v1_lane_counts;

/* Callbacks: a word of a row; end of a cycle for all rows.  Either may be NULL. */
typedef struct ss_v1_visitor {
    void *ctx;
    void (*word)(void *ctx, uint64_t cycle, uint64_t row, uint64_t address);
    void (*cycle)(void *ctx, uint64_t cycle);
} ss_v1_visitor;

orr_code ss_v1_lanes(const orr__systolic *s,
                     const ss_v1_visitor *visitor,
                     ss_v1_lane_counts *out,
                     orr_error *err) ORR_MUST_CHECK;

/* Address of an element of a pixel's window, without the offset. */
uint64_t ss_v1_word(const orr__systolic *s, uint64_t pixel, uint64_t element);

/* Sums of up to this many terms are added in the reference's order, so that even the last digit
 * agrees; longer ones use a closed form, which is as exact but rounds differently. */
enum { SS_MOST_TERMS = 1 << 22 };

/* Window bases of ws that are not those of pixels (scale-sim.md 4, first deviation); *out stays
 * NULL if they are. */
orr_code ss_v1_walk(const orr__systolic *s, uint64_t **out, orr_error *err) ORR_MUST_CHECK;

uint64_t ss_v2_fold_cycles(const orr__systolic *s);
orr__wide ss_v2_cycles(const orr__systolic *s); /* without stalls */

/* A v3 operand with irregular addresses, generated line by line (scale-sim.md 12). */
typedef struct ss_words ss_words;

/* The memory of v2 and v3. */
typedef struct ss_memory {
    uint64_t bandwidth[ORR_OPERANDS]; /* words per cycle; all 0: CALC */
    bool is_v3;         /* counts waits twice, and the latest write as the last (scale-sim.md
                         * 12.3) */
    ss_words *words[2]; /* NULL: the operand's stream */
} ss_memory;

/* Stalls, first and last cycles and traffic of all buffers; out->cycles is without stalls on entry
 * and with them on return. */
orr_code ss_v2_memory(const orr__systolic *s,
                      const ss_memory *memory,
                      orr_systolic_result *out,
                      orr_error *err) ORR_MUST_CHECK;
/* Means over the folds; words between array and buffers. */
void ss_v2_counts(const orr__systolic *s, orr_systolic_result *out);

/* The words of a line of the schedule, in order; valid until the next call. */
size_t ss_words_line(ss_words *w, uint64_t line, const uint64_t **out);
uint64_t ss_words_low(const ss_words *w);  /* lowest address */
uint64_t ss_words_high(const ss_words *w); /* one past the highest */
/* USER: slots of the prefetch order; a schedule line read through the window that moves over it.  A
 * prefetch takes `request` cycles, and *requests have been made.  False: a word is never
 * fetched. */
uint64_t ss_words_places(const ss_words *w);
bool ss_words_serve(ss_words *w,
                    uint64_t line,
                    uint64_t request,
                    uint64_t *requests,
                    int64_t *served,
                    bool *has_words);
/* v3: the cycle in which a word is served after this many moves of the window. */
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
 * A set of integers that pops them in CPython's order.
 *
 * SCALE-Sim v1 writes its memory traces by popping from a set of floats, so their order is that of
 * CPython 3.11's hash table: an integer hashes to itself; ten consecutive slots are probed, then a
 * perturbed one; removal leaves a mark, and a new key takes the last mark on its probe sequence;
 * pop continues where it last stopped. */

typedef struct python_set {
    uint64_t *table; /* key + 2; 0: never used, 1: removed */
    size_t mask, fill, used, finger;
    bool has_failed; /* out of memory; the set is unusable */
} python_set;

void python_set_init(python_set *s);
void python_set_fini(python_set *s);
bool python_set_has(const python_set *s, uint64_t key);
void python_set_add(python_set *s, uint64_t key); /* no effect if already present */
uint64_t python_set_pop(python_set *s);           /* the set must not be empty */

/* ---- operands of v3 ----
 *
 * Matrices of addresses without zero weights (scale-sim.md 12.4). */

#define SS_NO_WORD UINT64_MAX

/* Both operands.  The ifmap's matrix has one row per pixel and `columns` columns; the filters' has
 * `rows` rows and one column per filter. */
typedef struct ss_matrices {
    const orr__systolic *s; /* the unpruned layer */
    bool is_pruned;         /* keep only the first `nonzero` of every `block` weights */
    bool is_packed;         /* pairs of blocks, each at most half full, share one */
    uint64_t nonzero, block;
    uint64_t columns, rows;
    uint32_t *fill; /* packed: words per block, for each filter */
} ss_matrices;

/* The address, or SS_NO_WORD. */
uint64_t ss_filter_at(const ss_matrices *m, uint64_t row, uint64_t filter);

/* Open an operand; `folds` is the layer with as many elements as the filters have rows.  With a
 * bandwidth, also its prefetch window. */
orr_code ss_words_open(const ss_matrices *m,
                       const orr__systolic *folds,
                       bool is_filter,
                       uint64_t bandwidth,
                       ss_words **out,
                       orr_error *err) ORR_MUST_CHECK;
void ss_words_close(ss_words *w); /* NULL is fine */

/* A line of the schedule with all lanes, SS_NO_WORD for idle ones; returns their number. */
size_t ss_words_lanes(ss_words *w, uint64_t line, const uint64_t **out);
/* All ss_words_places() slots of the prefetch order; SS_NO_WORD for empty ones. */
void ss_words_order(ss_words *w, uint64_t *out);
/* From now on count waits as v2 does (scale-sim.md 6.4), not as in 12.3. */
void ss_words_count_once(ss_words *w);
/* The reference's address of a word: word 0 is stored next to the others here. */
uint64_t ss_words_address(const ss_words *w, uint64_t word);

/* The matrices of a layer of v3; the caller frees `fill`. */
orr_code ss_v3_matrices(const orr__systolic *s, ss_matrices *out, orr_error *err) ORR_MUST_CHECK;

#endif
