/* SPDX-License-Identifier: Apache-2.0 */
/* watchers.h - the observers of the packet network (fab_observe.h), each made only if its output is
 * wanted.
 *
 *     packet_output.c  fct.txt, pfc.txt, queue lengths, packet trace
 *     packet_monitor.c SimAI's four files
 *     series.c         time series of named and of the busiest ports and flows; series.c
 *     packet_view.c        all links over the whole run, for the report */
#ifndef ORR_MODELS_WATCHERS_H
#define ORR_MODELS_WATCHERS_H

#include "base/io/output.h"
#include "models/network/packet/engine/fabric.h"

/* An empty path writes no file. */
typedef struct fab_output_paths {
    const char *fct, *pfc, *qlen, *trace;
    const bool *is_traced; /* by node */
} fab_output_paths;

/* A fabric with all observers that the configuration asks for.  paths may be NULL. */
orr_code fab_create_watched(const orr__packet_config *config,
                            const orr__cabling *cabling,
                            const fab_output_paths *paths,
                            fab **out,
                            orr_error *err) ORR_MUST_CHECK;

/* Files that observers wrote are complete; slots without a file are passed over. */
orr_code fab_commit_files(orr_output **files, orr_buf *texts, int count, orr_error *err)
    ORR_MUST_CHECK;

/* ---- one after the other, in this order: looks of one instant are taken in it ---- */

orr_code fab_watch_series(fab *f, orr_error *err) ORR_MUST_CHECK;
orr_code fab_watch_monitor(fab *f, orr_error *err) ORR_MUST_CHECK;
orr_code fab_watch_history(fab *f, orr_error *err) ORR_MUST_CHECK;

#endif
