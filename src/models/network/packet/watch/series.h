/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - what flows, queues and links did over time, in bounded memory (docs/format/packet.md).
 *
 *     if (orr__series_create(f, &f->series, err)) ...      // the configuration says what is wanted; NULL: nothing
 *     orr__series_sample(f);                               // at every multiple of the interval
 *     orr__series_finish(f, err);                          // the file is complete
 *
 * Inside, `merged` samples share a slot.  When the slots are used up, two become one and `merged`
 * doubles, so a run of any length has between half of the slots and all of them. */
#ifndef ORR_MODELS_FABRIC_SERIES_H
#define ORR_MODELS_FABRIC_SERIES_H

#include "models/network/packet/engine/fabric_impl.h"

orr_code orr__series_create(orr__fabric *f, orr__series **out, orr_error *err) ORR_MUST_CHECK;
void orr__series_destroy(orr__series *s); /* NULL is fine */
void orr__series_sample(orr__fabric *f);
void orr__series_flow_starts(orr__fabric *f, uint32_t flow);
void orr__series_flow_ends(orr__fabric *f, uint32_t flow);
void orr__series_hear(orr__fabric *f, const orr__series_note *n); /* of lanes, between windows */
orr_code orr__series_finish(orr__fabric *f, orr_error *err) ORR_MUST_CHECK;
/* When the next sample is due, in ticks. */
uint64_t orr__series_next(const orr__fabric *f);

/* ---- for series_write.c ---- */

/* What happened in an interval.  Ports: ticks busy and paused, queue lengths; flows: bytes
 * acknowledged, windows, bytes in flight. */
typedef struct orr__slot {
    uint64_t a, b, sum, sum2, max;
    uint32_t samples;
} orr__slot;

typedef struct orr__watch {
    uint32_t id; /* a port, or a flow */
    bool is_named, is_over;
    uint64_t last_a, last_b; /* counters at the latest sample */
    size_t first, last;      /* slots */
    orr__slot *slots;
    uint64_t size; /* of a flow: bytes */
    uint32_t src, dst;
    uint16_t src_port, dst_port;
} orr__watch;

typedef struct orr__watches {
    orr__watch *list;
    size_t count, most; /* most: of those that are not named */
    size_t named, room;
} orr__watches;

struct orr__series {
    orr_output *file;
    uint64_t every;  /* ticks */
    uint64_t merged; /* samples a slot */
    uint64_t phase;  /* samples in the slot that is open */
    uint64_t taken;  /* samples in all */
    uint64_t end;    /* ticks: of the run */
    size_t limit, count;
    orr__watches ports, flows;
    struct orr__counts {
        uint64_t busy, paused; /* ticks, up to the latest look */
        bool is_watched;
    } * counts;           /* by port */
    uint64_t samples;     /* without those that were passed over */
    uint64_t looks_every; /* samples: large networks are not looked through each time */
    size_t named_most;    /* flows of pairs that were named: never more */
    uint64_t each_slot;   /* samples, at most */
    struct orr__pair {
        uint32_t src, dst;
    } * pairs; /* flows that were named */
    size_t pair_count, pair_room;
};

void orr__series_write_csv(const orr__fabric *f, orr_buf *b);
void orr__series_write_json(const orr__fabric *f, orr_buf *b);

#endif
