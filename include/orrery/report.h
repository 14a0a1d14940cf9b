/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - where the time of a run went, as one self-contained HTML file.
 *
 *     orr_report *r;
 *     orr_report_options opt = {.size = sizeof opt, .title = "step on 8 ranks"};
 *     if (orr_report_create(&opt, &r, &err)) return report(&err);
 *     orr_report_run run = {.name = "simulated", .timeline = t};
 *     if (!orr_report_add(r, &run, &err)) code = orr_report_write(r, "out.html", &err);
 *     orr_report_destroy(r);
 *
 * A run is a timeline, simulated or measured, and further facts: all fields but the name may be
 * zero, and what is not known is not shown.  explain.h makes a run of a simulation.  Two or more
 * runs are compared with the first.  docs/format/report.md describes the data behind the page. */
#ifndef ORRERY_REPORT_H
#define ORRERY_REPORT_H

#include <orrery/lab/explain.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_report_options {
    size_t size;           /* sizeof(orr_report_options) */
    const char *title;     /* NULL: the names of the runs */
    const char *program;   /* "orrery 0.1.0" */
    const char *made_from; /* the command line; NULL: omitted */
    uint32_t most_spans;   /* of one run in the file; 0: 1,000,000.  The shortest are dropped */
} orr_report_options;

typedef struct orr_report orr_report;

/* opt is copied; NULL: all defaults. */
ORR_API orr_code orr_report_create(const orr_report_options *opt,
                                   orr_report **out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_report_destroy(orr_report *r); /* NULL is fine */

/* Computes everything now; run may be freed afterwards.  ORR_EUSAGE: ranks_shown is not a list of
 * ranks. */
ORR_API orr_code orr_report_add(orr_report *r,
                                const orr_report_run *run,
                                orr_error *err) ORR_MUST_CHECK;

/* The same from the output of `orrery run --json`; name NULL: the path.  *is_it is false, and
 * nothing is added, if the file is something else. */
ORR_API orr_code orr_report_add_saved(
    orr_report *r, const char *path, const char *name, bool *is_it, orr_error *err) ORR_MUST_CHECK;

/* The page, and its data alone as JSON (without the events).  "-" is standard output; the file
 * appears whole. */
ORR_API orr_code orr_report_write(const orr_report *r,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_report_write_json(const orr_report *r,
                                       const char *path,
                                       orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
