/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far long work has come: one line on stderr, for someone who watches.
 *
 *     orr_progress p;
 *     orr_progress_start(&p, "reading", "nodes", total, quiet);
 *     for (...) orr_progress_add(&p, 1);
 *     orr_progress_end(&p);                                      // the line is gone
 *
 * Shown only on a terminal that can erase a line, first after half a second, then ten times a
 * second at most, with rate and the time that is left.  Off, it costs an addition and a
 * comparison.  One thread adds. */
#ifndef ORRERY_LAB_PROGRESS_H
#define ORRERY_LAB_PROGRESS_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_progress {
    uint64_t done;
    uint64_t look;  /* when done comes to this, it is time to look at the clock */
    uint64_t total; /* 0: not known */
    const char *what, *unit;
    /* NULL, or more words for the end of the line; total is then an estimate, not shown. */
    const char *note;
    uint64_t started_ns, shown_ns; /* by the monotonic clock; shown_ns is 0 before the first line */
    int fd;                        /* -1: nothing is shown */
} orr_progress;

/* total 0: not known.  unit "bytes" prints sizes (1.50 GiB), any other counts (1,234 nodes).  Both
 * texts must live as long as p.  Whoever sets p->total or p->note later does so before
 * orr_progress_add. */
ORR_API void orr_progress_start(
    orr_progress *p, const char *what, const char *unit, uint64_t total, bool quiet);
ORR_API void orr_progress_look(orr_progress *p); /* for orr_progress_add */
ORR_API void orr_progress_end(orr_progress *p);

static inline void orr_progress_add(orr_progress *p, uint64_t n)
{
    p->done += n;
    if (p->done >= p->look)
        orr_progress_look(p);
}

#ifdef __cplusplus
}
#endif
#endif
