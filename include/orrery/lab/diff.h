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
 * Operators are told by name.  Time is a span's own, without the spans inside it on its track, so
 * that nested operators of a measured run and the single ones of a simulated run can be
 * compared.  Parts of collectives are passed over. Experimental: may change in the next release. */
#ifndef ORRERY_LAB_DIFF_H
#define ORRERY_LAB_DIFF_H

#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything of one name, or of one kind; [0] is the first run, [1] the second. */
typedef struct orr_diff_row {
    orr_str name;
    /* Where the runs differ, the one that says more: a collective, not a host operator. */
    orr_span_kind kind;
    uint64_t count[2]; /* of all ranks */
    orr_ps time[2];    /* of all ranks */
} orr_diff_row;

typedef struct orr_diff {
    uint32_t ranks[2];
    orr_ps whole[2]; /* from the first thing to the last */
    /* Where the time of a rank goes (docs/accounting.md): compute, exposed communication, ...,
     * idle; they add up to the whole.  None where a log does not say what its nodes are. */
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
    const char *program; /* who asks, for JSON: "orrery 0.1.0"; NULL: not said */
    const char *first, *second;
    size_t most; /* operators that are shown; 0: all */
} orr_diff_style;

/* Times are those of a rank, on average.  *out lives as long as d. */
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
