/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h - when things happened: measured or simulated, one type for both.
 *
 *     rank 0  host     |--step--|
 *             compute     |--gemm--|  |--gemm--|
 *             stream 7       |----all-reduce----|        spans on tracks, tracks of ranks,
 *     rank 1  compute     |--gemm--|                     arrows from span to span, counters over time
 *
 * Make one:
 *
 *     orr_timeline *t;
 *     if (orr_timeline_create(&t, &err)) return report(&err);
 *     uint32_t compute, name;
 *     orr_timeline_add_track(t, 0, orr_str_of("compute"), &compute, &err);
 *     orr_timeline_add_text(t, orr_str_of("gemm"), &name, &err);
 *     orr_timeline_add_span(t, &(orr_timespan){.track = compute, .name = name, .start = 0, .end = 1500}, NULL, &err);
 *     orr_timeline_seal(t, &err);
 *
 * Look at it:
 *
 *     const orr_timeline_parts *p = orr_timeline_view(t);
 *     for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++)
 *         use(&p->spans[p->order[k]]);                            // by start; longer ones first
 *
 * Spans may be added in any order and may overlap, also on one track.  A sealed timeline never
 * changes and may be read by many threads. */
#ifndef ORRERY_TIMELINE_H
#define ORRERY_TIMELINE_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_NO_RANK UINT32_MAX /* belongs to the whole job, not to a rank */
#define ORR_NO_TEXT 0u         /* the empty text */

typedef enum orr_span_kind {
    ORR_SPAN_OTHER = 0,
    ORR_SPAN_HOST,    /* on the host: an operator, a call */
    ORR_SPAN_COMPUTE, /* a kernel, a compute node */
    ORR_SPAN_MEMORY,  /* a load, a store, a copy */
    ORR_SPAN_SEND,    /* point to point */
    ORR_SPAN_RECEIVE,
    ORR_SPAN_COLLECTIVE,
    ORR_SPAN_PHASE, /* a part of a collective */
    ORR_SPAN_KINDS
} orr_span_kind;

ORR_API const char *orr_span_kind_name(orr_span_kind kind); /* "compute" */

/* A stream, a thread or a slot: a sequence of spans. */
typedef struct orr_track {
    uint32_t rank; /* or ORR_NO_RANK */
    uint32_t name; /* a text */
} orr_track;

enum { ORR_SPAN_HAS_ID = 1, ORR_SPAN_HAS_PEER = 2, ORR_SPAN_HAS_FLOWS = 4 };

typedef struct orr_timespan {
    orr_ps start, end; /* end >= start */
    uint64_t id;       /* of the operation in its trace, with ORR_SPAN_HAS_ID */
    orr_bytes size;    /* moved or touched; 0: not known */
    uint32_t track;
    uint32_t name;  /* a text */
    uint32_t group; /* a text: the communicator; ORR_NO_TEXT: none, or all ranks */
    /* With ORR_SPAN_HAS_PEER: the other rank of a message, or the last rank to join a
     * collective. */
    uint32_t peer;
    uint32_t members;   /* ranks of a collective; 0: not known */
    uint8_t kind;       /* orr_span_kind */
    uint8_t collective; /* of a collective: 1 + orr_collective (trace.h); 0: not known */
    uint8_t has;        /* ORR_SPAN_HAS_ID | ORR_SPAN_HAS_PEER | ORR_SPAN_HAS_FLOWS */
    bool is_open;       /* it had not ended when the timeline was made */
    /* With ORR_SPAN_HAS_FLOWS: when its data could start to flow, between start and end; not set if
     * the spans of all ranks show it. */
    orr_ps flows;
} orr_timespan;

/* From a span to another that it released: a message, a launch. */
typedef struct orr_arrow {
    uint32_t from, to; /* spans */
    orr_ps left, arrived;
    uint32_t name; /* a text */
} orr_arrow;

typedef struct orr_counter {
    uint32_t rank; /* or ORR_NO_RANK */
    uint32_t name; /* a text */
    uint32_t unit; /* a text: "bytes", "ranks" */
} orr_counter;

/* From `at` on the counter has this value. */
typedef struct orr_sample {
    orr_ps at;
    uint32_t counter;
    int64_t value;
} orr_sample;

/* Metadata, such as the origin. */
typedef struct orr_timeline_note {
    uint32_t key, value; /* texts */
} orr_timeline_note;

typedef struct orr_timeline_parts {
    const orr_track *tracks;
    uint32_t track_count;
    const orr_timespan *spans; /* in the order they were added */
    uint32_t span_count;
    const uint32_t *first, *order; /* spans by track: order[first[track] .. first[track + 1]) */
    const orr_arrow *arrows;
    uint32_t arrow_count;
    const orr_counter *counters;
    uint32_t counter_count;
    const orr_sample *samples; /* in the order they were added */
    uint32_t sample_count;
    const orr_timeline_note *notes;
    uint32_t note_count;
    orr_ps start, end; /* first and last time in it; 0, 0 when empty */
    /* by rank: the rank that represents it; NULL: each rank represents itself */
    const uint32_t *alike;
    uint32_t alike_count; /* higher ranks represent themselves */
} orr_timeline_parts;

/* The rank whose tracks also represent this one. */
static inline uint32_t orr_timeline_shown(const orr_timeline_parts *p, uint32_t rank)
{
    return rank < p->alike_count ? p->alike[rank] : rank;
}

typedef struct orr_timeline orr_timeline;

ORR_API orr_code orr_timeline_create(orr_timeline **out, orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_timeline_destroy(orr_timeline *t); /* NULL is fine */

/* Adding.  Each returns the index of what was added; number_out may be NULL.  ORR_EUSAGE: an
 * invalid index, an end before its start, or the timeline is sealed. */
ORR_API orr_code orr_timeline_add_text(orr_timeline *t,
                                       orr_str text,
                                       uint32_t *number_out,
                                       orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_timeline_add_track(orr_timeline *t,
                                        uint32_t rank,
                                        orr_str name,
                                        uint32_t *number_out,
                                        orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_timeline_add_span(orr_timeline *t,
                                       const orr_timespan *span,
                                       uint32_t *number_out,
                                       orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_timeline_add_arrow(orr_timeline *t,
                                        const orr_arrow *arrow,
                                        orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_timeline_add_counter(orr_timeline *t,
                                          uint32_t rank,
                                          orr_str name,
                                          orr_str unit,
                                          uint32_t *number_out,
                                          orr_error *err) ORR_MUST_CHECK;
/* A sample at the same time as the previous one of its counter replaces it. */
ORR_API orr_code orr_timeline_add_sample(
    orr_timeline *t, uint32_t counter, orr_ps at, int64_t value, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_timeline_add_note(orr_timeline *t, orr_str key, orr_str value, orr_error *err)
    ORR_MUST_CHECK;

/* `rank`, which has no tracks, did the same as `shown` at the same times. */
ORR_API orr_code orr_timeline_add_alike(orr_timeline *t,
                                        uint32_t shown,
                                        uint32_t rank,
                                        orr_error *err) ORR_MUST_CHECK;

/* Ends adding and sorts the spans. */
ORR_API orr_code orr_timeline_seal(orr_timeline *t, orr_error *err) ORR_MUST_CHECK;

/* Of a sealed timeline, which owns it. */
ORR_API const orr_timeline_parts *orr_timeline_view(const orr_timeline *t);
/* Simulated timelines name their network in a note; others were measured. */
ORR_API bool orr_timeline_is_simulated(const orr_timeline *t);
ORR_API orr_str orr_timeline_text(const orr_timeline *t, uint32_t number);

/* A part of a timeline: ranks first..last inclusive, and spans overlapping [from, to).  All zeros:
 * everything. */
typedef struct orr_timeline_window {
    bool has_ranks, has_from, has_to;
    uint32_t first_rank, last_rank;
    orr_ps from, to;
} orr_timeline_window;

/* That part as a separate sealed timeline.  Spans are not cut. */
ORR_API orr_code orr_timeline_slice(const orr_timeline *t,
                                    const orr_timeline_window *window,
                                    orr_timeline **out,
                                    orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
