/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - all links over the whole run, in bounded memory.
 *
 * A look at the end of each column takes what counters have gained.  When the columns are used up,
 * two become one, so a run of any length has between half of them and all.  Queues: ports keep
 * their longest one; a look takes it and lets the port begin anew, so the longest of each column is
 * exact.
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

#include <stdlib.h>
#include <string.h>

/* A run shorter than this has one column; those of most networks have their round trips in tens of
 * them. */
enum { FIRST_WIDTH_NS = 100 };

static uint64_t busy_until_now(const fab *f, const fab_port *p)
{
    return p->busy_ticks - (p->busy_until > f->now ? p->busy_until - f->now : 0);
}

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
static size_t column_of_now(fab *f)
{
    fab_history *h = f->history;
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
static bool meet_ports(fab *f)
{
    fab_history *h = f->history;
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

static bool note_port(fab *f, fab_history_port *one, size_t column)
{
    fab_history *h = f->history;
    fab_port *p = &f->ports[one->id];
    const uint64_t busy = busy_until_now(f, p), paused = fab_port_paused_ticks(f, p);
    const fab_history_cell cell = {busy - one->busy, paused - one->paused, p->max_queued};
    if (one->longest < p->max_queued)
        one->longest = p->max_queued;
    one->busy = busy;
    one->paused = paused;
    p->max_queued = p->queued_bytes;
    add_cell(&h->sums[column], &cell);
    if (one->row == FAB_NONE && busy / 2 >= h->worth && !take_row(h, one))
        return false;
    if (one->row != FAB_NONE)
        add_cell(cell_at(h, column, one->row), &cell);
    return true;
}

static void look(fab *f)
{
    fab_history *h = f->history;
    const size_t column = column_of_now(f);
    bool is_well = meet_ports(f);
    for (size_t i = 0; i < h->port_count && is_well; i++)
        is_well = note_port(f, &h->ports[i], column);
    if (!is_well)
        fab_fail(f, ORR_ENOMEM, "out of memory");
}

/* Ticks to the end of the column. */
static uint64_t time_left(const fab *f, uint64_t at)
{
    return f->history->width - at % f->history->width;
}

void fab_history_arm(fab *f, uint64_t at)
{
    if (f->history->is_armed)
        return;
    f->history->is_armed = true;
    (void)fab_after(f, at - f->now + time_left(f, at), FAB_EV_HISTORY, 0);
}

void fab_history_run(fab *f, uint32_t event)
{
    look(f);
    f->history->is_armed = f->under_way > 0;
    if (f->history->is_armed)
        fab_wheel_at(&f->wheel, event, f->now + time_left(f, f->now), fab_global_order(f));
    else
        fab_wheel_drop(&f->wheel, event);
}

bool fab_history_ends(fab *f, uint32_t event)
{
    uint64_t at;
    if (fab_next_at(f, &at))
        return false;
    f->history->is_armed = false;
    fab_wheel_drop(&f->wheel, event);
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
    const fab_history_port *one = find(f->history, port);
    return (fab_history_cell){busy_until_now(f, p) - (one ? one->busy : 0),
                              fab_port_paused_ticks(f, p) - (one ? one->paused : 0), p->max_queued};
}

uint64_t fab_history_longest(const fab *f, uint32_t port)
{
    const fab_history_port *one = f->history ? find(f->history, port) : NULL;
    const uint64_t since = f->ports[port].max_queued;
    return one && one->longest > since ? one->longest : since;
}

uint32_t fab_history_row(const fab_history *h, uint32_t port)
{
    const fab_history_port *one = find(h, port);
    return one ? one->row : FAB_NONE;
}

/* ---- life ---- */

orr_code fab_history_create(fab *f, fab_history **out, orr_error *err)
{
    *out = NULL;
    if (!f->config.has_history)
        return ORR_OK;
    fab_history *h = *out = orr_alloc(1, sizeof *h);
    if (!h)
        return orr_no_memory(err);
    h->width = FIRST_WIDTH_NS * f->unit;
    h->rows = f->port_count < FAB_HISTORY_ROWS ? f->port_count : FAB_HISTORY_ROWS;
    h->met = orr_alloc(f->port_count, sizeof *h->met);
    h->place_of = orr_alloc(f->port_count, sizeof *h->place_of);
    h->owners = orr_alloc(h->rows, sizeof *h->owners);
    h->cells = orr_alloc(h->rows * FAB_HISTORY_COLUMNS, sizeof *h->cells);
    h->sums = orr_alloc(FAB_HISTORY_COLUMNS, sizeof *h->sums);
    f->met = h->met;
    return h->met && h->place_of && h->owners && h->cells && h->sums ? ORR_OK : orr_no_memory(err);
}

void fab_history_destroy(fab_history *h)
{
    if (!h)
        return;
    orr_free(h->met);
    orr_free(h->ports);
    orr_free(h->place_of);
    orr_free(h->owners);
    orr_free(h->cells);
    orr_free(h->sums);
    orr_free(h);
}
