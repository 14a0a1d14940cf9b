/* SPDX-License-Identifier: Apache-2.0 */
/* diff_impl.h - shared by the files of a comparison. */
#ifndef ORR_VIEWS_DIFF_IMPL_H
#define ORR_VIEWS_DIFF_IMPL_H

#include "base/memory/intern.h"
#include "base/memory/memory.h"

#include <orrery/lab/diff.h>

enum { ORR__DIFF_PARTS = 7 };

struct orr__diff_store {
    orr_arena *arena;
    orr_intern *names; /* of operators: a row for each */
    orr_diff_row *rows;
    uint8_t *runs; /* by name: bit r, run r has work of that name */
    size_t room, runs_room;
    bool takes_others[2]; /* all of the run's spans are work */
    orr_diff_row kinds[ORR_SPAN_KINDS];
    orr_diff_row parts[ORR__DIFF_PARTS];
};

/* Nothing says what a span is, as in a log without types; else others are annotations. */
bool orr__has_others_only(const orr_timeline_parts *p);

/* Time of a rank, on average. */
static inline orr_ps orr__diff_mean(const orr_diff *d, const orr_diff_row *r, int run)
{
    return d->ranks[run] ? r->time[run] / d->ranks[run] : 0;
}

#endif
