/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a progress line on stderr for long work.
 *
 *     orr_progress p;
 *     orr_progress_start(&p, "reading", "nodes", total, quiet);
 *     for (...) orr_progress_add(&p, 1);
 *     orr_progress_end(&p);                                      // erases the line
 *
 * Shown only on a terminal that can erase a line, first after half a second, then ten times a
 * second at most, with rate and remaining time.  When off, it costs an addition and a comparison.
 * One thread adds. */
#ifndef ORRERY_LAB_PROGRESS_H
#define ORRERY_LAB_PROGRESS_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_progress {
    uint64_t done;
    uint64_t look;  /* value of done at which to look at the clock again */
    uint64_t total; /* 0: not known */
    const char *what, *unit;
    /* NULL, or text appended to the line; total is then an estimate and not shown. */
    const char *note;
    uint64_t started_ns, shown_ns; /* by the monotonic clock; shown_ns is 0 before the first line */
    int fd;                        /* -1: nothing is shown */
} orr_progress;

/* total 0: not known.  unit "bytes" prints sizes (1.50 GiB), any other counts (1,234 nodes).  Both
 * texts must outlive p.  Changes to p->total or p->note must precede orr_progress_add. */
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
