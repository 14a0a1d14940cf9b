/* SPDX-License-Identifier: Apache-2.0 */
/* loggopsim.h - the LogGOPSim of 2023 and that of ATLAHS: rules and files (docs/spec/goal.md 3). */
#ifndef ORR_COMPAT_LOGGOPSIM_H
#define ORR_COMPAT_LOGGOPSIM_H

#include "run/loggops/lgs_impl.h"

extern const lgs_rules lgs_2023_rules;   /* lgs2023.c */
extern const lgs_rules lgs_atlahs_rules; /* atlahs.c */
extern const lgs_writer lgs_writers[];   /* old_output.c */

typedef struct atlahs_heap {
    orr_heap_entry *entries; /* time and event */
    size_t count, room;
} atlahs_heap;

/* What both keep beside the engine's state. */
typedef struct lgs_old_extra {
    orr_buf talk;               /* lines for standard output */
    uint32_t percent;           /* progress lines so far */
    struct simple_links *links; /* lgs2023, -n simple */
    atlahs_heap heap;           /* ATLAHS */
    double flow_sum;            /* ATLAHS: for its mean flow completion time */
} lgs_old_extra;

static inline lgs_old_extra *lgs_extra(const lgs_sim *s)
{
    return s->extra;
}

orr_code lgs_extra_open(lgs_sim *s, orr_error *err);
void lgs_extra_close(lgs_sim *s);

/* One line per percent of the events (goal.md 3.1). */
void lgs_old_progress(lgs_sim *s, size_t pending);
/* Print what is left in the queues; false: all are empty (goal.md 3.2). */
bool lgs_put_left(const lgs_sim *s, orr_buf *b);
const char *lgs_atlahs_average(const lgs_sim *s, char *text, size_t room);

#endif
