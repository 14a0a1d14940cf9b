/* SPDX-License-Identifier: Apache-2.0 */
/* goal_pen.h - writes a GOAL schedule, operation by operation: as text in SchedGen's words, or into
 * memory.
 *
 *     goal_pen pen;
 *     sgen_gpen_init(&pen, path, false, &err);
 *     sgen_gpen_head(&pen, ranks);
 *     sgen_gpen_begin(&pen, rank);
 *     const uint64_t recv = sgen_gpen_recv(&pen, 8, 0);     // its label
 *     sgen_gpen_require(&pen, sgen_gpen_send(&pen, 8, 1), recv);
 *     sgen_gpen_end(&pen);
 *     sgen_gpen_finish(&pen, &err);
 *
 * Operations are numbered from 1 in each rank.  Failures are kept until finish. */
#ifndef ORR_SOURCES_SCHEDGEN_GOAL_PEN_H
#define ORR_SOURCES_SCHEDGEN_GOAL_PEN_H

#include <orrery/lab/goal.h>
#include <orrery/lab/schedgen.h>

#include "schedgen_rules.h"

#include "base/io/output.h"
#include "base/memory/buffer.h"

enum { ORR__PEN_FIRST = 1, ORR__PEN_LAST = 2 };

typedef struct goal_pen {
    orr_buf text;
    orr_output *out; /* NULL: only counts */
    bool is_kept;    /* in `goal`, and no text is made */
    orr_goal *goal;
    const char *path; /* where it goes in the end; NULL: nowhere */
    orr_error *err;   /* the first failure of goal, of code: */
    orr_code code;
    uint64_t tag;   /* of the messages from now on */
    uint64_t label; /* of the last operation in this rank */
    uint32_t cpu;   /* 0: no calculation names one */
    bool has_overlap;
    uint64_t overlap_ns, poll_ns;
    /* Which messages since sgen_gpen_open wait for none of them, and for which none of them waits:
     * a byte for each operation from label `base` on. */
    bool is_open;
    uint64_t base;
    orr_buf marks;
    orr_schedgen_totals totals;
    orr_schedgen_totals *totals_out; /* NULL, or where finish leaves them */
} goal_pen;

/* is_kept: the schedule is gathered in memory; a path gets it as binary GOAL, and without one it is
 * taken with sgen_gpen_take.  err must live as long as the pen. */
orr_code sgen_gpen_init(goal_pen *pen, const char *path, bool is_kept, orr_error *err)
    ORR_MUST_CHECK;
orr_goal *sgen_gpen_take(goal_pen *pen);                                 /* before finish */
orr_code sgen_gpen_finish(goal_pen *pen, orr_error *err) ORR_MUST_CHECK; /* pen is empty after it */
void sgen_gpen_discard(goal_pen *pen);
bool sgen_gpen_has_failed(const goal_pen *pen);

void sgen_gpen_head(goal_pen *pen, uint64_t ranks);
void sgen_gpen_begin(goal_pen *pen, uint64_t rank);
void sgen_gpen_end(goal_pen *pen);

/* Each returns the label of the operation.  A peer of -1 is any. */
uint64_t sgen_gpen_send(goal_pen *pen, uint64_t bytes, int64_t to);
uint64_t sgen_gpen_recv(goal_pen *pen, uint64_t bytes, int64_t from);
uint64_t sgen_gpen_calc(goal_pen *pen, uint64_t ns);
uint64_t sgen_gpen_calc_on(goal_pen *pen,
                           uint64_t ns,
                           uint32_t cpu); /* names cpu if pen->cpu is set */
void sgen_gpen_require(goal_pen *pen, uint64_t later, uint64_t earlier);
void sgen_gpen_irequire(goal_pen *pen, uint64_t later, uint64_t earlier);
void sgen_gpen_comment(goal_pen *pen, const char *words);

/* A group of messages.  Afterwards pen->marks says which are the first and the last of it, until
 * the next. */
void sgen_gpen_open(goal_pen *pen);
void sgen_gpen_close(goal_pen *pen);

#endif
