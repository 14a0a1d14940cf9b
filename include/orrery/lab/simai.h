/* SPDX-License-Identifier: Apache-2.0 */
/* simai.h - workloads of SimAI, as AICB writes them: one iteration of training as a table of
 * layers, with the sizes of its groups (docs/format/simai.md).
 *
 *     orr_simai_options opt = {.passes = 1};
 *     orr_simai_report report;
 *     orr_set *set;
 *     if (orr_simai_read("workload.txt", &opt, &set, &report, &err)) ... */
#ifndef ORRERY_LAB_SIMAI_H
#define ORRERY_LAB_SIMAI_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_simai_options {
    uint32_t ranks;  /* 0: all_gpus of the file */
    uint32_t passes; /* iterations; 0: 1 */
} orr_simai_options;

/* Properties of the file, and what the traces leave out. */
typedef struct orr_simai_report {
    uint32_t ranks;
    uint32_t tp, dp, ep, pp;
    uint64_t layers;
    uint64_t missing;    /* rows announced by the file but missing */
    uint64_t broadcasts; /* left out, as in SimAI */
    uint64_t alone;      /* collectives of single-rank groups */
} orr_simai_report;

/* All ranks do the same, each in its own groups: one class. */
ORR_API orr_code orr_simai_read(const char *path,
                                const orr_simai_options *opt,
                                orr_set **out,
                                orr_simai_report *report,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_simai_parse(orr_span bytes,
                                 const char *label,
                                 const orr_simai_options *opt,
                                 orr_set **out,
                                 orr_simai_report *report,
                                 orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
