/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - what flows, queues and links did over time, in bounded memory (docs/format/packet.md).
 *
 * An observer (watchers.h) that samples at every multiple of an interval.
 *
 * Inside, `merged` samples share a slot.  When the slots are used up, two become one and `merged`
 * doubles, so a run of any length has between half of the slots and all of them. */
#ifndef ORR_MODELS_FABRIC_SERIES_H
#define ORR_MODELS_FABRIC_SERIES_H

#include "base/io/output.h"
#include "models/network/packet/engine/fabric_impl.h"

/* What happened in an interval.  Ports: ticks busy and paused, queue lengths; flows: bytes
 * acknowledged, windows, bytes in flight. */
typedef struct fab_series_slot {
    uint64_t a, b, sum, sum2, max;
    uint32_t samples;
} fab_series_slot;

typedef struct fab_series_watch {
    uint32_t id; /* a port, or a flow */
    bool is_named, is_over;
    uint64_t last_a, last_b; /* counters at the latest sample */
    size_t first, last;      /* slots */
    fab_series_slot *slots;
    uint64_t size; /* of a flow: bytes */
    uint32_t src, dst;
    uint16_t src_port, dst_port;
} fab_series_watch;

typedef struct fab_series_watches {
    fab_series_watch *list;
    size_t count, most; /* most: of those that are not named */
    size_t named, room;
} fab_series_watches;

typedef struct fab_series {
    orr_output *file;
    uint64_t every;  /* ticks */
    uint64_t merged; /* samples per slot */
    uint64_t phase;  /* samples in the slot that is open */
    uint64_t taken;  /* samples in all */
    uint64_t end;    /* ticks: of the run */
    size_t limit, count;
    fab_series_watches ports, flows;
    struct fab_series_counts {
        uint64_t busy, paused; /* ticks, up to the latest look */
        bool is_watched;
    } * counts;           /* by port */
    uint64_t samples;     /* without those that were skipped */
    uint64_t looks_every; /* samples: large networks are not looked through each time */
    size_t named_most;    /* flows of pairs that were named: never more */
    uint64_t each_slot;   /* samples, at most */
    struct fab_series_pair {
        uint32_t src, dst;
    } * pairs; /* flows that were named */
    size_t pair_count, pair_room;
} fab_series;

fab_series *fab_series_of(const fab *f); /* NULL: none is wanted */

#endif
