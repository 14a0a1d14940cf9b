/* SPDX-License-Identifier: Apache-2.0 */
/* history.h - how much every link was used over the whole run, for the report: all that were used
 * at all, in a fixed number of columns.
 *
 *     if (fab_history_create(f, &f->history, err)) ...   // NULL: not wanted
 *     fab_history_arm(f, at);                            // a flow starts then: the end of a column is an event
 *
 * Beside series.h, whose user says what to watch and how often: here nobody knows before which
 * links will matter and how long the run is. */
#ifndef ORR_MODELS_LINK_HISTORY_H
#define ORR_MODELS_LINK_HISTORY_H

#include "models/network/packet/engine/fabric_impl.h"

enum { FAB_HISTORY_COLUMNS = 192, FAB_HISTORY_ROWS = 4096 };

/* What a port did in a column. */
typedef struct fab_history_cell {
    uint64_t busy, paused; /* ticks */
    uint64_t queue;        /* bytes, the most */
} fab_history_cell;

/* A port that was used. */
typedef struct fab_history_port {
    uint32_t id;
    uint32_t row;          /* FAB_NONE: it is in the sums alone */
    uint64_t busy, paused; /* ticks, up to the latest look */
    uint64_t longest;      /* queue, bytes, up to the latest look */
} fab_history_port;

struct fab_history {
    bool is_armed;
    uint64_t width; /* ticks a column */
    size_t columns; /* that anything was noted in */
    uint8_t *met;   /* by port: 0 never used, 1 since the latest look, 2 in the list */
    fab_history_port *ports;
    size_t port_count, port_room;
    uint32_t *place_of;      /* by port: in the list */
    fab_history_cell *cells; /* by column, then by row */
    uint32_t *owners;        /* by row: the place of its port in the list */
    size_t rows, row_count;  /* room for so many; used */
    uint64_t worth;          /* ticks busy: from twice that on a port without a row gets one */
    fab_history_cell *sums;  /* by column: over all ports; queue: the most of any */
};

orr_code fab_history_create(fab *f, fab_history **out, orr_error *err) ORR_MUST_CHECK;
void fab_history_destroy(fab_history *h);     /* NULL is fine */
void fab_history_arm(fab *f, uint64_t at);    /* a flow starts then */
void fab_history_run(fab *f, uint32_t event); /* FAB_EV_HISTORY: a column ends */
/* That event, before its time is set: true if nothing else is left to happen, and so it does not
 * happen, either. */
bool fab_history_ends(fab *f, uint32_t event);

/* What has happened since the latest look. */
fab_history_cell fab_history_since(const fab *f, uint32_t port);

/* The longest queue of a port ever: looks make the port's own count begin anew. */
uint64_t fab_history_longest(const fab *f, uint32_t port);
/* The row of a port; FAB_NONE: it has none. */
uint32_t fab_history_row(const fab_history *h, uint32_t port);

#endif
