/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - what is in a set of traces, in figures: nodes, operators, sizes, collectives, critical
 * path.
 *
 *     orr_info *info;
 *     if (orr_info_create(set, &(orr_info_options){.path = "traces/"}, &info, &err)) return report(&err);
 *     if (orr_info_text(info, &text, &err)) ...           // or orr_info_json
 *     orr_info_destroy(info);
 *
 * Figures are sums over all ranks (or over the one asked for).  Equal ranks are examined once and
 * counted with their multiplicity.  Cost: O(nodes + dependencies) of the distinct ranks, plus O(1)
 * per value of a hole.  Sums saturate at 64 bits, and the result says so.  Experimental: may change
 * in the next release. */
#ifndef ORRERY_LAB_INFO_H
#define ORRERY_LAB_INFO_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_info orr_info;

typedef struct orr_info_options {
    const char *path;    /* origin of the set, for the header; NULL: omitted */
    const char *program; /* name and version, for the header: "orrery 0.1.0"; NULL: omitted */
    bool one_rank;       /* only `rank`; groups are still counted over the whole set */
    uint32_t rank;
    uint32_t job_ranks; /* ranks of the job when the set is one rank of it; 0: not known */
    uint32_t top;       /* most operators and peers listed; 0: 10 */
    bool by_name;       /* operators by full name, keeping trailing numbers */
    bool per_rank;      /* a table of ranks, equal ones in one row */
} orr_info_options;

/* The set is not needed after the call.  ORR_EUSAGE: no such rank.  opt may be NULL. */
ORR_API orr_code orr_info_create(const orr_set *s,
                                 const orr_info_options *opt,
                                 orr_info **out,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_info_destroy(orr_info *info); /* NULL is fine */

/* For people, in 80 columns; for programs, one JSON object (docs/format/info.md).  *out is valid
 * until the next call on info. */
ORR_API orr_code orr_info_text(orr_info *info, orr_str *out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_info_json(orr_info *info, orr_str *out, orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
