/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - all links over the whole run, in bounded memory.
 *
 * A look at the end of each column takes what counters have gained.  When the columns are used up,
 * two become one, so a run of any length has between half of them and all.  Queues: ports keep
 * their longest one; a look takes it and lets the port begin again, so the longest of each column
 * is exact.
 *
 * A port that has never sent costs nothing but a byte.  If more are used than there are rows, the
 * idler half of the rows is given up; a port without one gets one when it has been twice as busy as
 * those were.  What is in no row is still in the sums, so the rest is always known.
 *
 * Nothing here changes what the network does, nor when it is found to stand still: looks never ask,
 * when nothing else is left to happen the next one does not come, and none is counted as an event.
 * Threads: looks are taken when no lane runs. Cost: a look O(ports used); looks O(columns x log of
 * the run's length). */
#include "history.h"
#include "watchers.h"

#include <stdlib.h>
#include <string.h>

/* A run shorter than this has one column; those of most networks have their round trips in tens of
 * them. */
enum { FIRST_WIDTH_NS = 100 };

static fab_history_cell *cell_at(const fab_history *h, size_t column, size_t row)
{
    return &h->cells[column * h->rows + row];
}

static void add_cell(fab_history_cell *to, const fab_history_cell *from)
{
    to->busy += from->busy;
    to->paused += from->paused;
    to->queue = from->queue > to->queue ? from->queue : to->queue;
}

/* ---- columns ---- */

static void merge_columns(fab_history *h)
{
    const size_t pairs = (h->columns + 1) / 2;
    for (size_t k = 0; k < pairs; k++) {
        const bool has_second = 2 * k + 1 < h->columns;
        for (size_t i = 0; i < h->row_count; i++) {
            fab_history_cell merged = *cell_at(h, 2 * k, i);
            if (has_second)
                add_cell(&merged, cell_at(h, 2 * k + 1, i));
            *cell_at(h, k, i) = merged;
        }
        fab_history_cell sum = h->sums[2 * k];
        if (has_second)
            add_cell(&sum, &h->sums[2 * k + 1]);
        h->sums[k] = sum;
    }
    for (size_t k = pairs; k < h->columns; k++) {
        memset(cell_at(h, k, 0), 0, h->row_count * sizeof *h->cells);
        h->sums[k] = (fab_history_cell){0};
    }
    h->columns = pairs;
    h->width *= 2;
}

/* The column in which the time up to now lies. */
static size_t column_of_now(const fab *f, fab_history *h)
{
    while ((f->now - 1) / h->width >= FAB_HISTORY_COLUMNS)
        merge_columns(h);
    const size_t column = (size_t)((f->now - 1) / h->width);
    if (column >= h->columns)
        h->columns = column + 1;
    return column;
}

/* ---- rows ---- */

typedef struct ranked {
    uint64_t busy;
    uint32_t row;
} ranked;

static int busier_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->busy != y->busy)
        return x->busy > y->busy ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static int lower_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Rows that stay move up, in their order, so that the room behind them is free. */
static void keep_rows(fab_history *h, ranked *order, size_t kept)
{
    for (size_t i = kept; i < h->row_count; i++)
        h->ports[h->owners[order[i].row]].row = FAB_NONE;
    qsort(order, kept, sizeof *order, lower_first);
    for (size_t i = 0; i < kept; i++) {
        const uint32_t from = order[i].row;
        for (size_t k = 0; k < h->columns; k++)
            *cell_at(h, k, i) = *cell_at(h, k, from);
        h->owners[i] = h->owners[from];
        h->ports[h->owners[i]].row = (uint32_t)i;
    }
    for (size_t k = 0; k < h->columns; k++)
        memset(cell_at(h, k, kept), 0, (h->row_count - kept) * sizeof *h->cells);
    h->row_count = kept;
}

/* False: out of memory. */
static bool give_up_half(fab_history *h)
{
    ranked *order = orr_alloc(h->row_count, sizeof *order);
    const size_t kept = h->row_count / 2;
    if (!order)
        return false;
    for (size_t i = 0; i < h->row_count; i++)
        order[i] = (ranked){h->ports[h->owners[i]].busy, (uint32_t)i};
    qsort(order, h->row_count, sizeof *order, busier_first);
    h->worth = order[kept].busy;
    keep_rows(h, order, kept);
    orr_free(order);
    return true;
}

static bool take_row(fab_history *h, fab_history_port *p)
{
    if (h->row_count == h->rows && !give_up_half(h))
        return false;
    p->row = (uint32_t)h->row_count;
    h->owners[h->row_count++] = (uint32_t)(p - h->ports);
    return true;
}

/* ---- looks ---- */

/* Ports that were used for the first time since the latest look. */
static bool meet_ports(const fab *f, fab_history *h)
{
    uint8_t *at = h->met, *const end = h->met + f->port_count;
    while (at < end && (at = memchr(at, 1, (size_t)(end - at)))) {
        if (!orr_grow(&h->ports, &h->port_room, h->port_count + 1))
            return false;
        h->place_of[at - h->met] = (uint32_t)h->port_count;
        h->ports[h->port_count++] =
            (fab_history_port){.id = (uint32_t)(at - h->met), .row = FAB_NONE};
        *at++ = 2;
    }
    return true;
}

static bool note_port(fab *f, fab_history *h, fab_history_port *one, size_t column)
{
    fab_port *p = &f->ports[one->id];
    const uint64_t busy = fab_port_busy_ticks(f, p), paused = fab_port_paused_ticks(f, p);
    const fab_history_cell cell = {busy - one->busy, paused - one->paused,
                                   fab_port_take_longest(p)};
    one->busy = busy;
    one->paused = paused;
    add_cell(&h->sums[column], &cell);
    if (one->row == FAB_NONE && busy / 2 >= h->worth && !take_row(h, one))
        return false;
    if (one->row != FAB_NONE)
        add_cell(cell_at(h, column, one->row), &cell);
    return true;
}

static void look(fab *f, void *o, unsigned which)
{
    fab_history *h = o;
    const size_t column = column_of_now(f, h);
    bool is_well = meet_ports(f, h);
    (void)which;
    for (size_t i = 0; i < h->port_count && is_well; i++)
        is_well = note_port(f, h, &h->ports[i], column);
    if (!is_well)
        fab_fail(f, ORR_ENOMEM, "out of memory");
}

/* At the end of the column. */
static bool next_look(
    const fab *f, const void *o, unsigned which, uint64_t from, bool is_again, uint64_t *at)
{
    const fab_history *h = o;
    (void)f, (void)which, (void)is_again;
    *at = from + h->width - from % h->width;
    return true;
}

/* ---- afterwards ---- */

static const fab_history_port *find(const fab_history *h, uint32_t port)
{
    return h->met[port] == 2 ? &h->ports[h->place_of[port]] : NULL;
}

fab_history_cell fab_history_since(const fab *f, uint32_t port)
{
    const fab_port *p = &f->ports[port];
    const fab_history_port *one = find(fab_history_of(f), port);
    return (fab_history_cell){fab_port_busy_ticks(f, p) - (one ? one->busy : 0),
                              fab_port_paused_ticks(f, p) - (one ? one->paused : 0), p->max_queued};
}

uint32_t fab_history_row(const fab_history *h, uint32_t port)
{
    const fab_history_port *one = find(h, port);
    return one ? one->row : FAB_NONE;
}

/* ---- life ---- */

static void destroy(void *o)
{
    fab_history *h = o;
    orr_free(h->met);
    orr_free(h->ports);
    orr_free(h->place_of);
    orr_free(h->owners);
    orr_free(h->cells);
    orr_free(h->sums);
    orr_free(h);
}

static const fab_observer_ops ops = {.next_look = next_look, .look = look, .destroy = destroy};

fab_history *fab_history_of(const fab *f)
{
    return fab_observer_state(f, &ops);
}

static bool make_room(const fab *f, fab_history *h)
{
    h->width = FIRST_WIDTH_NS * f->unit;
    h->rows = f->port_count < FAB_HISTORY_ROWS ? f->port_count : FAB_HISTORY_ROWS;
    h->met = orr_alloc(f->port_count, sizeof *h->met);
    h->place_of = orr_alloc(f->port_count, sizeof *h->place_of);
    h->owners = orr_alloc(h->rows, sizeof *h->owners);
    h->cells = orr_alloc(h->rows * FAB_HISTORY_COLUMNS, sizeof *h->cells);
    h->sums = orr_alloc(FAB_HISTORY_COLUMNS, sizeof *h->sums);
    return h->met && h->place_of && h->owners && h->cells && h->sums;
}

orr_code fab_watch_history(fab *f, orr_error *err)
{
    if (!f->config.has_history)
        return ORR_OK;
    fab_history *h = orr_alloc(1, sizeof *h);
    if (!h)
        return orr_no_memory(err);
    if (!make_room(f, h)) {
        destroy(h);
        return orr_no_memory(err);
    }
    const orr_code code = fab_observe(f, &ops, h, 0, err);
    if (code)
        return code;
    f->watch.port_used = h->met;
    fab_add_look(f, 0, FAB_LOOK_SILENT);
    return ORR_OK;
}
