/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_stream.h - which words of an operand the array asks for, and in which cycle.
 *
 * An operand is asked for in phases, one or a few a fold.  A phase is a rectangle: `objects` (pixels or filters)
 * times `ks` (elements of the window).  One side is spread over lanes of the array, the other over steps in time;
 * lane l asks for step x in cycle start + x, or start + x + l when the phase is skewed:
 *
 *          lane 0   lane 1   lane 2               objects are lanes: os (both operands), and what is loaded
 *     t=0   (0,0)                                 elements are lanes: what streams past loaded words
 *     t=1   (0,1)    (1,0)
 *     t=2   (0,2)    (1,1)    (2,0)
 *
 * Whatever cycles are asked about, the words one object contributes are a piece of its window, so runs of
 * addresses are all there is to handle. */
#ifndef ORR_MODELS_SYSTOLIC_STREAM_H
#define ORR_MODELS_SYSTOLIC_STREAM_H

#include "models/compute/systolic/systolic_impl.h"

typedef struct orr__phase {
    uint64_t start;           /* cycle of its first step */
    uint64_t object, objects; /* the first of them, how many */
    uint64_t k, ks;           /* elements of the window */
    uint64_t copies;          /* v1, stacked windows: each word of a cycle is asked for so often */
} orr__phase;

typedef struct orr__stream orr__stream;
struct orr__stream {
    const orr__systolic *s;
    bool is_filter; /* objects are filters, otherwise pixels */
    bool objects_are_lanes;
    bool is_skewed;
    bool
        is_falling; /* elements come from the last to the first: in steps or, within a cycle, lanes */
    bool hangs_over;  /* elements outside the ifmap are not asked for (v2) */
    uint64_t base;    /* address of word 0 */
    uint64_t end;     /* one past the last address */
    uint64_t phases;  /* how many */
    uint64_t longest; /* cycles from a phase's first word to behind its last, at most */
    uint64_t lanes;   /* at most */
    uint64_t finish;  /* all is asked for before this cycle */
    orr__phase (*at)(const orr__stream *stream, uint64_t index);

    orr__folds f;
    uint64_t inner; /* phases of a column fold */
    uint64_t pitch; /* v2: cycles of a fold; v1, stacked: of a full one */
    /* v1: first word of each pixel's window where they are not regular; or NULL. */
    const uint64_t *walk;
    uint64_t walk_count;

    uint64_t distinct; /* how many words there are; 0: not known */
    /* Any so many words asked for one after the other are all different. */
    uint64_t reuse;
    /* In each of the spans [n * span + lead, (n + 1) * span) what is asked for repeats after `period` cycles;
     * span 0: nothing is known to repeat. */
    uint64_t span, lead, period;
};

/* A run of words that are asked for. */
typedef void (*orr__run_visit)(void *ctx, uint64_t address, uint64_t count);

/* All words asked for in the cycles [from, to), in any order.  *cursor belongs to the stream: 0 at first, and
 * `from` never falls between calls. */
void orr__stream_visit(const orr__stream *st,
                       uint64_t from,
                       uint64_t to,
                       uint64_t *cursor,
                       orr__run_visit visit,
                       void *ctx);

/* The words of one cycle, one by one, in their order. */
void orr__stream_cycle(
    const orr__stream *st, uint64_t cycle, uint64_t *cursor, orr__run_visit visit, void *ctx);

/* How many words of one phase are asked for before this cycle; those outside the ifmap count. */
uint64_t orr__phase_before(const orr__stream *st, const orr__phase *p, uint64_t cycle);

uint64_t orr__stream_words(const orr__stream *st); /* of all phases, counted the same way */

/* A place in a stream that only moves on: {.st = stream} is its beginning. */
typedef struct orr__counter {
    const orr__stream *st;
    uint64_t first;  /* phases before it are over */
    uint64_t before; /* words of those */
} orr__counter;

void orr__counter_move(orr__counter *c, uint64_t cycle);
/* Words asked for before this cycle, which is not before the place. */
uint64_t orr__counter_before(const orr__counter *c, uint64_t cycle);
/* The cycle in which word number n (from 0) is asked for, not before `from`; the place moves there. */
uint64_t orr__counter_find(orr__counter *c, uint64_t n, uint64_t from);

/* The last cycle in which a word that exists is asked for. */
uint64_t orr__stream_last(const orr__stream *st);

/* Both streams of a layer.  v1 needs `walk` for weight stationary layers whose stride does not divide. */
void orr__streams_v1(const orr__systolic *s,
                     const uint64_t *walk,
                     orr__stream *ifmap,
                     orr__stream *filter);
void orr__streams_v2(const orr__systolic *s, orr__stream *ifmap, orr__stream *filter);

#endif
