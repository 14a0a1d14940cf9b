/* SPDX-License-Identifier: Apache-2.0 */
/* report_impl.h - shared by the files of the report page.  Never installed.
 *
 * A run that is added to a report is *studied* once, in this order, and rendered at once:
 *
 *     report_times.c        times of ranks, collectives, like ranks, pipeline stages, memory
 *     report_document.c     packet networks, comparison, headline; all of it as JSON
 *     report.c              the timeline itself, packed; the object, and the page around the data
 */
#ifndef ORR_REPORT_IMPL_H
#define ORR_REPORT_IMPL_H

#include <orrery/report.h>
#include <orrery/trace.h>

#include "base/formats/json.h"
#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "models/collective/coll.h"

/* Times summed over ranks and calls may exceed 64 bits. */
typedef __int128 orr__ps_sum;

#define ORR__NO_STAGE UINT32_MAX
#define ORR__NO_PLACE UINT32_MAX

/* How a rank spent its time: each moment counts as the first of these that applies. */
typedef struct orr__rank_times {
    uint32_t rank;
    uint32_t alike; /* ranks it represents, itself included */
    uint32_t group; /* of like ranks */
    uint32_t stage; /* or ORR__NO_STAGE */
    orr_ps compute, exposed, memory, host, waiting, bubble, idle; /* docs/accounting.md */
    orr_ps overlapped; /* communication while computing: part of compute */
} orr__rank_times;

/* Collectives of one type, size and number of ranks. */
typedef struct orr__collective_row {
    uint8_t collective; /* as in orr_timespan */
    uint32_t members;
    orr_bytes size;
    uint64_t calls;               /* of all ranks */
    uint64_t joined;              /* groups of ranks, each counted by its members */
    orr__ps_sum time, overlapped; /* of all ranks */
    uint32_t ranks;               /* that take part */
    uint32_t last_place;          /* the last rank that was counted */
    uint32_t groups, group;       /* how many names there are; the first of them */
} orr__collective_row;

/* The fields of orr__rank_times, summed. */
typedef struct orr__time_sums {
    orr__ps_sum compute, exposed, overlapped, memory, host, waiting, bubble, idle;
} orr__time_sums;

/* Ranks with the same figures, up to a small tolerance. */
typedef struct orr__like_ranks {
    uint32_t first; /* place */
    uint32_t shown; /* the place of the representative */
    uint32_t count;
    uint32_t stage;
    const char *ranks; /* "0-7" */
    orr__time_sums sum;
} orr__like_ranks;

typedef struct orr__memory_series {
    const char *name;
    int64_t peak;
    orr_sample *points; /* only value and time matter */
    size_t count;
} orr__memory_series;

typedef struct orr__stage {
    uint32_t count; /* ranks */
    const char *ranks;
    orr__ps_sum unused; /* waiting, bubble and idle, of all of them */
} orr__stage;

/* The timeline as embedded in the page. */
typedef struct orr__events {
    orr_buf packed; /* base64 */
    orr_ps tick;
    uint32_t *track_number; /* in the page, by track; ORR__NO_PLACE: left out */
    uint32_t *tracks;       /* by number in the page */
    uint32_t track_count;
    uint32_t *counters;
    uint32_t counter_count;
    uint32_t *text_number, *texts;
    uint32_t text_count;
    uint64_t spans, left_out, samples_left_out;
    uint32_t ranks_left_out;
} orr__events;

typedef struct orr__study {
    const orr_report_run *run;
    const orr_timeline *t;
    const orr_timeline_parts *p;
    orr_arena *arena;
    orr_error *err;
    uint32_t most_spans;
    orr_ps start, end;
    orr_ps *since;          /* by span: from when it counts; see report_times.c */
    orr__rank_times *ranks; /* by place: those of the timeline, ascending */
    uint32_t rank_count;
    uint32_t all_ranks;                 /* including those represented by others */
    uint32_t *place_of_track;           /* ORR__NO_PLACE: of no rank */
    uint32_t *first_track, *track_list; /* by place */
    orr__collective_row *rows;          /* by decreasing exposed time */
    size_t row_count, row_room;
    orr__stage *stages;
    uint32_t stage_count;
    orr__like_ranks *groups;
    uint32_t group_count;
    double tolerance; /* of likeness: a share of the total time */
    orr__memory_series *series;
    size_t series_count;
    uint32_t *step_track; /* by step of the critical path */
    orr__events events;
} orr__study;

/* Sums over a run by name, for the comparison. */
typedef struct orr__sums {
    orr_intern *names; /* one byte of kind, then the name; the name is empty for the whole kind */
    double *ns;        /* by number: of one rank, on average */
    size_t room;
} orr__sums;

/* The place of a rank, or of its representative; ORR__NO_PLACE: not in the timeline. */
uint32_t orr__place_of_rank(const orr__study *s, uint32_t rank);

orr_code orr__study_bounds(orr__study *s); /* start and end */
orr_code orr__study_times(orr__study *s);
orr_code orr__study_pipeline(orr__study *s);
orr_code orr__study_groups(orr__study *s);
orr_code orr__study_memory(orr__study *s);
orr_code orr__study_sums(orr__study *s, orr__sums *out);
void orr__sums_fini(orr__sums *s);

/* The run's part of the document. */
void orr__put_run(orr__study *s, uint32_t number, orr_json_writer *w);
void orr__put_comparison(const orr__sums *sums, uint32_t count, orr_json_writer *w);

/* At most `most` of the samples: minimum and maximum of each equal part of the time, and the last.
 * Returns how many are left, in time order. */
size_t orr__thin_samples(orr_sample *samples, size_t count, size_t most);

/* "all-reduce"; "collective" if unknown.  For 1 + orr_collective. */
static inline const char *orr__collective_text(uint8_t collective)
{
    return coll_kind_name((orr_collective)(collective - 1));
}
/* The size of a collective as nccl-tests counts it, and the factor from it to the bus bandwidth;
 * false: unknown. */
bool orr__bandwidth_factors(const orr__collective_row *r, double *size_out, double *bus_out);

/* Neither work nor data in flight. */
static inline orr_ps orr__unused(const orr__rank_times *r)
{
    return r->waiting + r->bubble + r->idle;
}

static inline orr_ps orr__total(const orr__study *s)
{
    return s->end - s->start;
}

#endif
