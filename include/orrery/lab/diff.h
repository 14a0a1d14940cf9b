/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h - two runs side by side, measured or simulated: where does one spend more time than the
 * other?
 *
 *     orr_diff *d;
 *     if (orr_diff_make(measured, simulated, &d, &err)) return report(&err);
 *     for (size_t i = 0; i < d->operator_count; i++)
 *         show(&d->operators[i]);                       // the largest difference first
 *     orr_diff_free(d);
 *
 * Operators are matched by name.  Time is self time, without spans nested on the same track, so
 * that nested operators of a measured run can be compared with the flat ones of a simulated run.
 * Phases of collectives are skipped. Experimental: may change in the next release. */
#ifndef ORRERY_LAB_DIFF_H
#define ORRERY_LAB_DIFF_H

#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All spans of one name or kind; [0] is the first run, [1] the second. */
typedef struct orr_diff_row {
    orr_str name;
    /* If the runs differ, the more specific one: a collective, not a host operator. */
    orr_span_kind kind;
    uint64_t count[2]; /* of all ranks */
    orr_ps time[2];    /* of all ranks */
} orr_diff_row;

typedef struct orr_diff {
    uint32_t ranks[2];
    orr_ps whole[2]; /* from the first span to the last */
    /* Where the time of a rank goes (docs/accounting.md): compute, exposed communication, ...,
     * idle; they add up to the whole.  Empty if a log does not record node types. */
    const orr_diff_row *parts;
    size_t part_count;
    const orr_diff_row *kinds; /* those that occur; the largest difference first, here and below */
    size_t kind_count;
    const orr_diff_row *operators;
    size_t operator_count;
    struct orr__diff_store *store;
} orr_diff;

ORR_API orr_code orr_diff_make(const orr_timeline *first,
                               const orr_timeline *second,
                               orr_diff **out,
                               orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_diff_free(orr_diff *d); /* NULL is fine */

typedef struct orr_diff_style {
    const char *program; /* name and version for JSON: "orrery 0.1.0"; NULL: omitted */
    const char *first, *second;
    size_t most; /* most operators shown; 0: all */
} orr_diff_style;

/* Times are means per rank.  *out lives as long as d. */
ORR_API orr_code orr_diff_text(const orr_diff *d,
                               const orr_diff_style *style,
                               orr_str *out,
                               orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_diff_json(const orr_diff *d,
                               const orr_diff_style *style,
                               orr_str *out,
                               orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
