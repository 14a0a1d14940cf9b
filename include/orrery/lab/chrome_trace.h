/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_trace.h - timelines from files in the Trace Event format: those of orr_view_chrome, of
 * PyTorch's profiler (Kineto), and of anything else that chrome://tracing opens.
 *
 *     orr_timeline *t;
 *     if (orr_chrome_trace_read(&path, 1, NULL, &t, &err)) return report(&err);
 *
 * Spans (X, or B and E), arrows (s and f), counters (C) and names (M) are read; other events are
 * skipped.  Files of orr_view_chrome round-trip exactly.  A Kineto file is one rank: its kernels
 * are compute, those of NCCL collectives with type, group and size; copies are memory; operators
 * and calls are host work.  In any other file processes are ranks.  Experimental: may change in
 * the next release. */
#ifndef ORRERY_LAB_CHROME_TRACE_H
#define ORRERY_LAB_CHROME_TRACE_H

#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORR_CHROME_TRACE_RANKS = 1 << 20 }; /* the most there can be */

typedef struct orr_chrome_trace_options {
    /* Rank of a Kineto file that does not record its rank; each further such file gets the next
     * one. */
    uint32_t rank;
} orr_chrome_trace_options;

/* What the first bytes of a file suggest. */
typedef enum orr_chrome_trace_look {
    ORR_CHROME_TRACE_OTHER = 0, /* neither, or it cannot be read */
    ORR_CHROME_TRACE_EVENTS,    /* JSON, but not one of our traces */
    ORR_CHROME_TRACE_LINES      /* a log of issued nodes: issue_log.h */
} orr_chrome_trace_look;
ORR_API orr_chrome_trace_look orr_chrome_trace_recognise(const char *path);

/* One or more files, plain or compressed, as one sealed timeline.  opt may be NULL. */
ORR_API orr_code orr_chrome_trace_read(const char *const *paths,
                                       size_t count,
                                       const orr_chrome_trace_options *opt,
                                       orr_timeline **out,
                                       orr_error *err) ORR_MUST_CHECK;
/* The same from memory, which may be freed afterwards; path is for messages. */
ORR_API orr_code orr_chrome_trace_parse(orr_span bytes,
                                        const char *path,
                                        const orr_chrome_trace_options *opt,
                                        orr_timeline **out,
                                        orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
