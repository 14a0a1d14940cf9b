/* SPDX-License-Identifier: Apache-2.0 */
/* packet_view.c - results of a packet run: ports by several measures, flows by size, and for the
 * report their history (fabric_view.h).
 *
 * Lists are short for any network size; the rest is counted, and its utilisation summed. */
#include "base/memory/sort.h"
#include "packet.h"

#include "models/network/packet/watch/watchers.h"
#include "packet_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All links over the whole run, in bounded memory.
 *
 * A sample at the end of each column takes the increase of the counters.  When all columns are in
 * use, pairs are merged, so a run of any length has between half of them and all.  Queues: ports
 * keep their maximum; a sample reads and resets it, so the maximum of each column is exact.
 *
 * An unused port costs one byte.  If more are used than there are rows, the less busy half of the
 * rows is dropped; a port without a row gets one when it has been twice as busy as those were.
 * Ports without a row are still in the sums, so the rest is always known.
 *
 * Sampling has no effect on the network, nor on the detection of stalls: samples are not counted as
 * events, and stop when no other event is left. Threads: samples are taken when no lane runs. Cost:
 * a sample O(ports used); samples O(columns x log of the run's length). */

/* A run shorter than this has one column; in most networks an RTT is tens of these. */
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

/* The column that ends now. */
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

/* Compacts the rows that stay, in order, so that free rows are at the end. */
static void keep_rows(fab_history *h, ranked *order, size_t kept)
{
    for (size_t i = kept; i < h->row_count; i++)
        h->ports[h->owners[order[i].row]].row = FAB_NONE;
    orr_sort(order, kept, sizeof *order, lower_first);
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
    orr_sort(order, h->row_count, sizeof *order, busier_first);
    /* The busiest of the dropped ones.  A port must be twice as busy to return, or two of them
     * would compete for the last row at every sample. */
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

/* ---- samples ---- */

/* Ports used for the first time since the latest sample. */
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

/* ---- after the run ---- */

static const fab_history_port *find(const fab_history *h, uint32_t port)
{
    return h->met[port] == 2 ? &h->ports[h->place_of[port]] : NULL;
}

/* The increase since the latest sample. */
static fab_history_cell history_since(const fab *f, uint32_t port)
{
    const fab_port *p = &f->ports[port];
    const fab_history_port *one = find(fab_history_of(f), port);
    return (fab_history_cell){fab_port_busy_ticks(f, p) - (one ? one->busy : 0),
                              fab_port_paused_ticks(f, p) - (one ? one->paused : 0), p->max_queued};
}

/* The row of a port; FAB_NONE: none. */
static uint32_t history_row(const fab_history *h, uint32_t port)
{
    const fab_history_port *one = find(h, port);
    return one ? one->row : FAB_NONE;
}

/* ---- life cycle ---- */

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

enum { LINKS_SHOWN = 40, QUEUES_SHOWN = 8, PAUSES_SHOWN = 16 };

/* ---- measures ---- */

uint64_t orr__measure_busy(const fab *f, uint32_t port)
{
    return f->ports[port].busy_ticks;
}

uint64_t orr__measure_queue(const fab *f, uint32_t port)
{
    return f->ports[port].is_switch ? fab_port_longest_queue(&f->ports[port]) : 0;
}

static uint64_t measure_paused(const fab *f, uint32_t port)
{
    return fab_port_paused_ticks(f, &f->ports[port]);
}

/* Insertion into a short sorted list; stable. */
size_t orr__pick_ports(
    const fab *f, orr__port_measure measure, uint32_t *list, size_t most, size_t *all_out)
{
    size_t count = 0;
    *all_out = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const uint64_t value = measure(f, i);
        size_t at = count;
        *all_out += value > 0;
        if (!value || (count == most && measure(f, list[most - 1]) >= value))
            continue;
        while (at && measure(f, list[at - 1]) < value)
            at--;
        count += count < most;
        for (size_t k = count - 1; k > at; k--)
            list[k] = list[k - 1];
        list[at] = i;
    }
    return count;
}

void orr__port_short_name(const fab *f, uint32_t port, char out[ORR__PORT_NAME])
{
    const fab_port *p = &f->ports[port], *q = &f->ports[p->peer];
    snprintf(out, ORR__PORT_NAME, p->is_switch ? "switch%u.%u -> %s%u" : "%u.%u -> %s%u", p->node,
             p->number, q->is_switch ? "switch" : "", q->node);
}

orr_fabric_link orr__port_link(const fab *f, uint32_t port)
{
    const fab_port *p = &f->ports[port];
    const uint64_t ps = 1000 / f->unit;
    return (orr_fabric_link){.bits_per_second = p->rate,
                             .bytes = p->bytes_sent,
                             .busy_ps = p->busy_ticks * ps,
                             .paused_ps = fab_port_paused_ticks(f, p) * ps,
                             .pauses = p->pause_count,
                             .longest_queue = orr__measure_queue(f, port)};
}

uint64_t orr__fabric_end(const fab *f)
{
    return f->last_arrival > f->figures.last_done ? f->last_arrival : f->figures.last_done;
}

void orr__fabric_flow_times(const fab *f,
                            orr_fabric_flows *all,
                            orr_fabric_flows classes[ORR_FABRIC_CLASSES])
{
    fab_flow_times_fill(&f->times, 1000 / f->unit, all, classes);
}

/* ---- over time ---- */

typedef struct taking {
    const fab *f;
    orr_arena *arena;
    orr_fabric_view *view;
    uint64_t end; /* ticks */
} taking;

typedef struct whole_view {
    orr_fabric_view view;
    orr_arena *arena;
} whole_view;

/* The last column ends with the run.  The time after the latest sample may exceed a column, but not
 * by much: nothing is in flight then. */
static void set_columns(taking *t)
{
    const fab_history *h = fab_history_of(t->f);
    const uint64_t ps = 1000 / t->f->unit;
    t->end = orr__fabric_end(t->f);
    t->view->end_ps = t->end * ps;
    if (!h)
        return;
    const uint64_t needed = (t->end + h->width - 1) / h->width;
    t->view->column_ps = h->width * ps;
    t->view->columns = needed <= h->columns ? (size_t)needed : h->columns + 1;
}

static double column_ticks(const taking *t, size_t column)
{
    const uint64_t width = fab_history_of(t->f)->width, from = column * width;
    return (double)(column + 1 < t->view->columns ? width : t->end - from);
}

/* A current pause is counted up to now, which may be later than the last frame. */
static double share_of(const taking *t, size_t column, double ticks, double among)
{
    const double share = among > 0 ? ticks / (column_ticks(t, column) * among) : 0;
    return share < 1 ? share : 1;
}

typedef double (*cell_value)(const taking *t, size_t column, const fab_history_cell *c);

static double use_of(const taking *t, size_t column, const fab_history_cell *c)
{
    return share_of(t, column, (double)c->busy, 1);
}

static double paused_of(const taking *t, size_t column, const fab_history_cell *c)
{
    return share_of(t, column, (double)c->paused, 1);
}

static double queue_of(const taking *t, size_t column, const fab_history_cell *c)
{
    (void)t, (void)column;
    return (double)c->queue;
}

static fab_history_cell cell_of(const taking *t, uint32_t port, size_t column)
{
    const fab_history *h = fab_history_of(t->f);
    const uint32_t row = history_row(h, port);
    if (column >= h->columns)
        return history_since(t->f, port);
    return row == FAB_NONE ? (fab_history_cell){0} : h->cells[column * h->rows + row];
}

/* NULL: out of memory, or nothing was recorded. */
static const double *values_of(const taking *t, uint32_t port, cell_value value)
{
    double *list =
        fab_history_of(t->f) ? orr_arena_new(t->arena, t->view->columns + 1, double) : NULL;
    for (size_t i = 0; list && i < t->view->columns; i++) {
        const fab_history_cell c = cell_of(t, port, i);
        list[i] = value(t, i, &c);
    }
    return list;
}

/* Over all ports, in a column. */
static fab_history_cell sum_of(const taking *t, size_t column)
{
    fab_history_cell sum = {0};
    if (column < fab_history_of(t->f)->columns)
        return fab_history_of(t->f)->sums[column];
    for (uint32_t i = 0; i < t->f->port_count; i++) {
        const fab_history_cell c = history_since(t->f, i);
        sum.busy += c.busy;
        sum.paused += c.paused;
    }
    return sum;
}

/* ---- lists ---- */

typedef struct port_list {
    orr_fabric_link *links;
    uint32_t ports[LINKS_SHOWN];
    size_t count, left_out;
} port_list;

/* False: out of memory. */
static bool take_list(
    taking *t, orr__port_measure measure, cell_value value, size_t most, port_list *out)
{
    size_t all;
    char name[ORR__PORT_NAME];
    out->count = orr__pick_ports(t->f, measure, out->ports, most, &all);
    out->left_out = all - out->count;
    out->links = orr_arena_new(t->arena, out->count + 1, orr_fabric_link);
    for (size_t i = 0; out->links && i < out->count; i++) {
        orr_fabric_link *l = &out->links[i];
        orr__port_short_name(t->f, out->ports[i], name);
        *l = orr__port_link(t->f, out->ports[i]);
        l->name = orr_arena_text(t->arena, orr_str_of(name));
        l->values = values_of(t, out->ports[i], value);
        if (!l->name || (fab_history_of(t->f) && !l->values))
            return false;
    }
    return out->links != NULL;
}

static bool take_rest(taking *t, const port_list *shown)
{
    if (!fab_history_of(t->f) || !shown->left_out)
        return true;
    double *rest = orr_arena_new(t->arena, t->view->columns + 1, double);
    for (size_t i = 0; rest && i < t->view->columns; i++) {
        double busy = (double)sum_of(t, i).busy;
        for (size_t k = 0; k < shown->count; k++)
            busy -= (double)cell_of(t, shown->ports[k], i).busy;
        rest[i] = share_of(t, i, busy > 0 ? busy : 0, (double)shown->left_out);
    }
    t->view->rest_use = rest;
    return rest != NULL;
}

static bool take_paused(taking *t)
{
    if (!fab_history_of(t->f))
        return true;
    double *paused = orr_arena_new(t->arena, t->view->columns + 1, double);
    for (size_t i = 0; paused && i < t->view->columns; i++)
        paused[i] = (double)sum_of(t, i).paused / column_ticks(t, i);
    t->view->paused_ports = paused;
    return paused != NULL;
}

static bool take_lists(taking *t)
{
    port_list links, queues, pauses;
    orr_fabric_view *v = t->view;
    if (!take_list(t, orr__measure_busy, use_of, LINKS_SHOWN, &links) ||
        !take_list(t, orr__measure_queue, queue_of, QUEUES_SHOWN, &queues) ||
        !take_list(t, measure_paused, paused_of, PAUSES_SHOWN, &pauses) || !take_rest(t, &links) ||
        !take_paused(t))
        return false;
    v->links = links.links;
    v->link_count = links.count;
    v->links_left_out = links.left_out;
    v->queues = queues.links;
    v->queue_count = queues.count;
    v->queues_left_out = queues.left_out;
    v->pauses = pauses.links;
    v->pause_count = pauses.count;
    v->pauses_left_out = pauses.left_out;
    return true;
}

/* ---- notes ---- */

typedef struct note_list {
    orr_arena *arena;
    const char **lines;
    size_t count, room;
    bool has_failed;
} note_list;

static void add_note(void *context, const char *line)
{
    note_list *n = context;
    char *copy = orr_arena_text(n->arena, orr_str_of(line));
    if (!copy || !orr_grow(&n->lines, &n->room, n->count + 1))
        n->has_failed = true;
    else
        n->lines[n->count++] = copy;
}

static bool take_notes(taking *t)
{
    note_list n = {.arena = t->arena};
    fab_explain_pauses(t->f, add_note, &n);
    fab_explain_approx(t->f, add_note, &n);
    const char **lines = orr_arena_new(t->arena, n.count + 1, const char *);
    for (size_t i = 0; lines && i < n.count; i++)
        lines[i] = n.lines[i];
    t->view->notes = lines;
    t->view->note_count = n.count;
    orr_free(n.lines);
    return lines && !n.has_failed;
}

/* ---- everything ---- */

orr_code orr__fabric_view_take(const fab *f,
                               const orr_packet_figures *g,
                               orr_fabric_view **out,
                               orr_error *err)
{
    orr_arena *arena = orr_arena_create();
    whole_view *whole = arena ? orr_arena_new(arena, 1, whole_view) : NULL;
    *out = NULL;
    if (!whole) {
        orr_arena_destroy(arena);
        return orr_no_memory(err);
    }
    *whole = (whole_view){.view.figures = *g, .arena = arena};
    taking t = {.f = f, .arena = arena, .view = &whole->view};
    set_columns(&t);
    orr__fabric_flow_times(f, &whole->view.all, whole->view.classes);
    if (!take_lists(&t) || !take_notes(&t)) {
        orr_arena_destroy(arena);
        return orr_no_memory(err);
    }
    *out = &whole->view;
    return ORR_OK;
}

void orr_fabric_view_destroy(orr_fabric_view *v)
{
    if (v)
        orr_arena_destroy(((whole_view *)v)->arena); /* the view is its first member */
}
