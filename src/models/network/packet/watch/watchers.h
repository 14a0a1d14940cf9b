/* SPDX-License-Identifier: Apache-2.0 */
/* watchers.h - the observers of the packet network (fab_observe.h), each created only if its output
 * is requested.
 *
 *     series.c                     time series of named and of the busiest ports and flows
 *     packet_view.c                all links over the whole run, for the report
 *     src/views/packet_output.c    fct.txt, pfc.txt, queue lengths, packet trace
 *     src/views/packet_monitor.c   SimAI's four files
 *
 * The last two write during the run; they are in src/views like all text output, and so is the
 * function that writes a series. */
#ifndef ORR_MODELS_WATCHERS_H
#define ORR_MODELS_WATCHERS_H

#include "base/io/output.h"
#include "models/network/packet/engine/fabric_impl.h"

/* An empty path writes no file. */
typedef struct fab_output_paths {
    const char *fct, *pfc, *qlen, *trace;
    const bool *is_traced; /* by node */
} fab_output_paths;

/* A fabric with all observers requested by the configuration.  paths may be NULL. */
orr_code fab_create_watched(const orr__packet_config *config,
                            const orr__cabling *cabling,
                            const fab_output_paths *paths,
                            fab **out,
                            orr_error *err) ORR_MUST_CHECK;

/* ---- in this order, which is that of samples in one instant ---- */

orr_code fab_watch_files(fab *f, const fab_output_paths *paths, orr_error *err) ORR_MUST_CHECK;
orr_code fab_watch_series(fab *f, orr_error *err) ORR_MUST_CHECK;
orr_code fab_watch_monitor(fab *f, orr_error *err) ORR_MUST_CHECK;
orr_code fab_watch_history(fab *f, orr_error *err) ORR_MUST_CHECK;

/* Commits the files of observers; entries without a file are skipped. */
orr_code fab_commit_files(orr_output **files, orr_buf *texts, int count, orr_error *err)
    ORR_MUST_CHECK;
/* CSV or JSON, by the name of SERIES_FILE. */
void fab_series_write(const fab *f, orr_buf *b);

/* ---- series: flows, queues and links over time, in bounded memory ----
 *
 * Samples are taken at every multiple of an interval (docs/format/packet.md).  `merged` of them
 * share a slot.  When all slots are in use, pairs are merged and `merged` doubles, so a run of any
 * length has between half of the slots and all of them. */

/* Activity in an interval.  Ports: ticks busy and paused, queue lengths; flows: bytes acknowledged,
 * windows, bytes in flight. */
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
    size_t count, most; /* most: of those not named */
    size_t named, room;
} fab_series_watches;

typedef struct fab_series {
    orr_output *file;
    uint64_t every;  /* ticks */
    uint64_t merged; /* samples per slot */
    uint64_t phase;  /* samples in the open slot */
    uint64_t taken;  /* samples in all */
    uint64_t end;    /* ticks: of the run */
    size_t limit, count;
    fab_series_watches ports, flows;
    struct fab_series_counts {
        uint64_t busy, paused; /* ticks, up to the latest sample */
        bool is_watched;
    } * counts;           /* by port */
    uint64_t samples;     /* without those that were skipped */
    uint64_t looks_every; /* samples between scans of large networks */
    size_t named_most;    /* limit on flows of named pairs */
    uint64_t each_slot;   /* samples, at most */
    struct fab_series_pair {
        uint32_t src, dst;
    } * pairs; /* named flows */
    size_t pair_count, pair_room;
} fab_series;

fab_series *fab_series_of(const fab *f); /* NULL: none is wanted */

/* ---- history: utilisation of every link over the whole run, for the report ----
 *
 * All links that were used, in a fixed number of columns.  For a series the user chooses what to
 * watch and how often; here it is not known in advance which links will matter and how long the run
 * is. */

enum { FAB_HISTORY_COLUMNS = 192, FAB_HISTORY_ROWS = 4096 };

/* Activity of a port in a column. */
typedef struct fab_history_cell {
    uint64_t busy, paused; /* ticks */
    uint64_t queue;        /* bytes, the most */
} fab_history_cell;

/* A used port. */
typedef struct fab_history_port {
    uint32_t id;
    uint32_t row;          /* FAB_NONE: only in the sums */
    uint64_t busy, paused; /* ticks, up to the latest sample */
} fab_history_port;

typedef struct fab_history {
    uint64_t width; /* ticks per column */
    size_t columns; /* in use */
    uint8_t *met;   /* by port: 0 never used, 1 since the latest sample, 2 in the list */
    fab_history_port *ports;
    size_t port_count, port_room;
    uint32_t *place_of;      /* by port: its index in the list */
    fab_history_cell *cells; /* by column, then by row */
    uint32_t *owners;        /* by row: the index of its port in the list */
    size_t rows, row_count;  /* capacity; in use */
    uint64_t worth;          /* ticks busy: a port without a row gets one from twice that on */
    fab_history_cell *sums;  /* by column: over all ports; queue: the maximum */
} fab_history;

fab_history *fab_history_of(const fab *f); /* NULL: not wanted */

#endif
