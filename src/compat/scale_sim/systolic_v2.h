/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_v2.h - SCALE-Sim v2: what its files share (scale-sim.md, section 6). */
#ifndef ORR_MODELS_SYSTOLIC_V2_H
#define ORR_MODELS_SYSTOLIC_V2_H

#include "systolic_stream.h"

/* The output buffer (6.3).  Cycles are counted twice: a `line` is a cycle of the array, as if it never waited; the
 * cycle in which it happens is line + stalls so far. */
typedef struct orr__lines orr__lines;

orr_code orr__lines_open(const orr__systolic *s,
                         uint64_t words_a_line, /* of memory, one each cycle */
                         orr__lines **out,
                         orr_error *err) ORR_MUST_CHECK;
void orr__lines_close(orr__lines *b); /* NULL is fine */

/* The next line in which something happens that has to be looked at; UINT64_MAX: none. */
uint64_t orr__lines_next(orr__lines *b, uint64_t stalls);
/* Store what comes before this line; nothing happens there. */
void orr__lines_skip(orr__lines *b, uint64_t line);
/* Store what this line writes; by how many cycles it is late. */
uint64_t orr__lines_write(orr__lines *b, uint64_t line, uint64_t stalls);
/* Empty it from this cycle on. */
orr_code orr__lines_finish(orr__lines *b, uint64_t cycle, orr_systolic_traffic *out, orr_error *err)
    ORR_MUST_CHECK;

/* Lines of the first word that is written and of the last. */
void orr__lines_ends(const orr__lines *b, uint64_t *first, uint64_t *last);

/* With a bandwidth: stalls, and all of sram's and dram's cycles and dram's words. */
orr_code orr__systolic_v2_user(const orr__systolic *s,
                               orr_systolic_result *out,
                               orr_error *err) ORR_MUST_CHECK;

#endif
