/* SPDX-License-Identifier: Apache-2.0 */
/* history.h - how much every link was used over the whole run, for the report: all that were used
 * at all, in a fixed number of columns.
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
} fab_history_port;

typedef struct fab_history {
    uint64_t width; /* ticks per column */
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
} fab_history;

fab_history *fab_history_of(const fab *f); /* NULL: not wanted */

#endif
