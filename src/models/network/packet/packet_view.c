/* SPDX-License-Identifier: Apache-2.0 */
/* packet_view.c - what a run of the packet network has to show: ports by several measures, flows by
 * size, and for the report what they did over time (fabric_view.h).
 *
 * Lists are short, whatever the size of the network; what is left out is counted, and its use is
 * summed. */
#include "packet.h"

#include "models/network/packet/watch/history.h"
#include "packet_run.h"

#include <stdio.h>

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

/* An insertion into a short sorted list; of equals the first stays first. */
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

/* The last column ends with the run.  What lies behind the latest look may be longer than a column,
 * but never by much: nothing is under way then. */
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

/* A pause that lasts is counted up to now, which may be later than the last frame. */
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
    const uint32_t row = fab_history_row(h, port);
    if (column >= h->columns)
        return fab_history_since(t->f, port);
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
        const fab_history_cell c = fab_history_since(t->f, i);
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

/* ---- the whole ---- */

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
