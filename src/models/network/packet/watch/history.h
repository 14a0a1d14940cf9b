/* SPDX-License-Identifier: Apache-2.0 */
/* history.h - how much every link was used over the whole run, for the report: all that were used
 * at all, in a fixed number of columns.
 *
 *     if (orr__history_create(f, &f->history, err)) ...   // NULL: not wanted
 *     orr__history_arm(f, at);                            // a flow starts then: the end of a column is an event
 *
 * Beside series.h, whose user says what to watch and how often: here nobody knows before which
 * links will matter and how long the run is. */
#ifndef ORR_MODELS_LINK_HISTORY_H
#define ORR_MODELS_LINK_HISTORY_H

#include "models/network/packet/engine/fabric_impl.h"

enum { ORR__HISTORY_COLUMNS = 192, ORR__HISTORY_ROWS = 4096 };

/* What a port did in a column. */
typedef struct orr__history_cell {
    uint64_t busy, paused; /* ticks */
    uint64_t queue;        /* bytes, the most */
} orr__history_cell;

/* A port that was used. */
typedef struct orr__history_port {
    uint32_t id;
    uint32_t row;          /* ORR__NOBODY: it is in the sums alone */
    uint64_t busy, paused; /* ticks, up to the latest look */
    uint64_t longest;      /* queue, bytes, up to the latest look */
} orr__history_port;

struct orr__history {
    bool is_armed;
    uint64_t width; /* ticks a column */
    size_t columns; /* that anything was noted in */
    uint8_t *met;   /* by port: 0 never used, 1 since the latest look, 2 in the list */
    orr__history_port *ports;
    size_t port_count, port_room;
    uint32_t *place_of;       /* by port: in the list */
    orr__history_cell *cells; /* by column, then by row */
    uint32_t *owners;         /* by row: the place of its port in the list */
    size_t rows, row_count;   /* room for so many; used */
    uint64_t worth;           /* ticks busy: from twice that on a port without a row gets one */
    orr__history_cell *sums;  /* by column: over all ports; queue: the most of any */
};

orr_code orr__history_create(orr__fabric *f, orr__history **out, orr_error *err) ORR_MUST_CHECK;
void orr__history_destroy(orr__history *h);            /* NULL is fine */
void orr__history_arm(orr__fabric *f, uint64_t at);    /* a flow starts then */
void orr__history_run(orr__fabric *f, uint32_t event); /* ORR__EV_HISTORY: a column ends */
/* That event, before its time is set: true if nothing else is left to happen, and so it does not
 * happen, either. */
bool orr__history_ends(orr__fabric *f, uint32_t event);

/* What has happened since the latest look. */
orr__history_cell orr__history_since(const orr__fabric *f, uint32_t port);

/* The longest queue of a port ever: looks make the port's own count begin anew. */
uint64_t orr__history_longest(const orr__fabric *f, uint32_t port);
/* The row of a port; ORR__NOBODY: it has none. */
uint32_t orr__history_row(const orr__history *h, uint32_t port);

#endif
