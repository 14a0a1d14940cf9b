/* SPDX-License-Identifier: Apache-2.0 */
/* issue_log.h - when nodes were issued and completed: the log that simulators write, one line per
 * event.
 *
 *     issue,sys->id=0, tick=5, node->id=3, node->name=COMP_NODE_gemm
 *     callback,sys->id=0, tick=905, node->id=3, node->name=COMP_NODE_gemm
 *
 *     orr_issue_log *log;
 *     orr_timeline *t;
 *     if (orr_issue_log_read("run.csv", NULL, &log, &err)) return report(&err);
 *     code = orr_issue_log_timeline(log, 1500000000, &t, &err);         // cycles of 1.5 GHz
 *     orr_issue_log_free(log);
 *
 * Other lines are skipped; docs/man has the full format.  Experimental: may change in the next
 * release. */
#ifndef ORRERY_LAB_ISSUE_LOG_H
#define ORRERY_LAB_ISSUE_LOG_H

#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORR_ISSUE_LOG_RANKS = 1 << 20 }; /* the most there can be */

typedef struct orr_issue_log_options {
    uint32_t ranks; /* ranks from this number on are an error; 0: only the limit above applies */
    /* Read the log as another program does (<orrery/lab/compat.h>); NULL: as we do. */
    const struct orr_rules_issue_log *rules;
} orr_issue_log_options;

typedef struct orr_issue_log orr_issue_log;

/* A file, plain or compressed; "-" is standard input.  opt may be NULL. */
ORR_API orr_code orr_issue_log_read(const char *path,
                                    const orr_issue_log_options *opt,
                                    orr_issue_log **out,
                                    orr_error *err) ORR_MUST_CHECK;
/* The same from memory, which may be freed afterwards; path is for messages. */
ORR_API orr_code orr_issue_log_parse(orr_span bytes,
                                     const char *path,
                                     const orr_issue_log_options *opt,
                                     orr_issue_log **out,
                                     orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_issue_log_free(orr_issue_log *log); /* NULL is fine */

ORR_API size_t orr_issue_log_count(const orr_issue_log *log); /* completed nodes */
ORR_API size_t orr_issue_log_open_count(const orr_issue_log *log);

/* One track per rank and node type; times are cycles of `hz`.  The timeline is sealed.  A node that
 * did not complete stays open until the last cycle of the log.  ORR_EUSAGE: the log was read by
 * other rules. */
ORR_API orr_code orr_issue_log_timeline(const orr_issue_log *log,
                                        uint64_t hz,
                                        orr_timeline **out,
                                        orr_error *err) ORR_MUST_CHECK;

/* The output of the program whose rules the log was read by; ORR_EUSAGE: it was read by ours.
 * ranks: the number written to the file. */
ORR_API orr_code orr_issue_log_write_old(const orr_issue_log *log,
                                         uint32_t ranks,
                                         uint32_t mhz,
                                         const char *path,
                                         orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
