/* SPDX-License-Identifier: Apache-2.0 */
/* steady.h - the same step many times in a row (orr_sim_options.steps).
 *
 * A rank begins its next step when all nodes of its last one are over; ranks do not wait for each
 * other but by what the traces say.  So steps of different ranks overlap, and nothing of a rank's
 * own step is left when it begins the next.
 *
 * *Steady state*: if all that will happen from now on is what happened since an earlier moment,
 * only later, the steps in between need not be simulated again (docs/design/folding.md, "Steps in a
 * row").  Two ways to know it:
 *
 *     steady.c            the state of the whole run at two moments, compared word by word: the network fluid
 *     fold/fold_steps.c   the times at which all members of all classes begin a step: folded runs on unaware
 *
 * Figures, logs and links are those of one step, the last: it is *recorded*.  Its times count from
 * when the first rank began it. */
#ifndef ORR_RUN_STEADY_H
#define ORR_RUN_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_npu;
struct orr_sim;

/* How far all ranks are with one of the steps in a row. */
typedef struct run_round {
    uint64_t ended; /* when the last of those that have ended it did */
    uint32_t ranks; /* that have */
} run_round;

typedef struct run_rounds {
    uint32_t last;     /* the number of the last step that is simulated, from 0 */
    uint32_t recorded; /* whose figures are kept */
    uint64_t origin;   /* when the first rank began that */
    bool has_origin;
    uint32_t skipped;    /* steps that are like those that were simulated */
    uint32_t played;     /* of the others: those that were worked out without their events */
    uint64_t skipped_ns; /* how long they take */
    run_round *rows;     /* by number, as far as any rank has come */
    size_t row_count, row_room;
    struct steady *look; /* NULL: nobody looks for a steady state */
    bool wants_look;     /* all ranks have ended a step since the last look */
} run_rounds;

/* Before ranks start.  False: out of memory. */
bool steady_init(struct orr_sim *s, bool looks);
void steady_fini(struct orr_sim *s);

/* A rank has ended a step: true: it begins another one. */
bool steady_round_over(struct run_npu *n);
void steady_round_begins(struct run_npu *n);
/* So many ranks have ended their step at this time.  False: out of memory. */
bool steady_note_end(struct orr_sim *s, uint32_t round, uint32_t ranks, uint64_t at);

/* After an event: is the run where it was a step ago? */
void steady_look(struct orr_sim *s);

#endif
