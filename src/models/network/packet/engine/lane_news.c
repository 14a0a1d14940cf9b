/* SPDX-License-Identifier: Apache-2.0 */
/* lane_news.c - between windows: what lanes have noted is put in the order of the whole network,
 * written and told (fab_lanes.c). */
#include "fab_lanes.h"
#include "models/network/packet/watch/series.h"

#include <stdlib.h>
#include <string.h>

static void move_crossings(fab_lanes *s, fab_lane *l)
{
    for (size_t i = 0; i < l->out_count; i++) {
        const fab_flight *flight = &l->out[i].flight;
        fab_port *p = &s->main->ports[l->out[i].port];
        const uint32_t to = s->of_node[s->main->ports[p->peer].node];
        fab_port_put_on_wire(&s->of[to]->f, p, flight);
        if (flight->at < s->outlooks[to].next)
            s->outlooks[to].next = flight->at;
    }
    l->out_count = 0;
}

static void settle_flows(fab_lanes *s, fab_lane *l)
{
    for (size_t i = 0; i < l->drop_count; i++)
        fab_lanes_drop_of_flow(s->main, l->drops[i]);
    for (size_t i = 0; i < l->gone_count; i++)
        fab_flow_let_go(s->main, l->gone[i]);
    l->drop_count = l->gone_count = 0;
    while (l->foreign_free != FAB_NONE) {
        const uint32_t id = l->foreign_free;
        l->foreign_free = s->main->frames[id].next;
        fab_lanes_give_back(&s->of[id / s->frames_each]->f, id);
    }
}

/* Pauses of one instant stand in the order in which their frames arrived: by the port that sent
 * them. */
static int compare_pauses(const void *a, const void *b)
{
    const fab_pause_line *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->port ^ 1) < (y->port ^ 1) ? -1 : 1;
}

void fab_lanes_write_pauses(fab_lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->pause_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->pauses, &s->pause_room, count)) {
        fab_lanes_lack_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->awake_count; i++) {
        for (size_t k = 0; k < s->awake[i]->pause_count; k++)
            s->pauses[count++] = s->awake[i]->pauses[k];
        s->awake[i]->pause_count = 0;
    }
    qsort(s->pauses, count, sizeof *s->pauses, compare_pauses);
    for (size_t i = 0; i < count; i++) {
        s->main->now = s->pauses[i].at;
        fab_write_pfc(s->main, &s->main->ports[s->pauses[i].port], s->pauses[i].pauses);
    }
}

static int compare_notes(const void *a, const void *b)
{
    const fab_flow_note *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void fab_lanes_tell_series(fab_lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->note_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->notes, &s->note_room, count)) {
        fab_lanes_lack_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->awake_count; i++) {
        fab_lane *l = s->awake[i];
        if (l->note_count)
            memcpy(s->notes + count, l->notes, l->note_count * sizeof *l->notes);
        count += l->note_count;
        l->note_count = 0;
    }
    qsort(s->notes, count, sizeof *s->notes, compare_notes);
    for (size_t i = 0; i < count; i++)
        fab_series_hear(s->main, &s->notes[i]);
}

static bool is_before(const fab *a, const fab *b)
{
    return a->now != b->now ? a->now < b->now : a->order < b->order;
}

/* NULL: all is well. */
static const fab *first_failure(const fab_lanes *s)
{
    const fab *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        const fab *f = &s->awake[i]->f;
        if (f->code && (!first || is_before(f, first)))
            first = f;
    }
    return first;
}

/* What ends a lane ends the run; of several failures the first in time is told. */
void fab_lanes_take_over_ends(fab_lanes *s)
{
    fab *main = s->main;
    for (unsigned i = 0; i < s->awake_count; i++) {
        fab *f = &s->awake[i]->f;
        if (f->wheel.has_failed)
            fab_lanes_lack_memory(f);
        main->is_stopped |= f->is_stopped;
        main->is_stalled |= f->is_stalled;
    }
    const fab *first = first_failure(s);
    if (first && !main->code) {
        main->code = first->code;
        main->error = first->error;
    }
}

/* Who has the first of the news that were not told yet; NULL: there are none. */
static fab_lane *first_to_tell(const fab_lanes *s)
{
    fab_lane *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        fab_lane *l = s->awake[i];
        if (l->told == l->news_count)
            continue;
        const fab_news *n = &l->news[l->told], *least = first ? &first->news[first->told] : NULL;
        if (!first || n->at < least->at || (n->at == least->at && n->order < least->order))
            first = l;
    }
    return first;
}

/* What listeners do in the instant of their news must not be too late. */
static bool is_too_late(const fab_lanes *s, const fab_news *n)
{
    const fab_watcher *by = &s->main->watcher;
    if (n->is_done ? !by->sent : !by->arrived)
        return false;
    if (by->hears && !by->hears(by->context, n->end.token, !n->is_done))
        return false;
    return fab_lanes_heard_at(s->main, n->at) + 1 < s->end;
}

static void tell(fab_lanes *s, fab_lane *l)
{
    fab *main = s->main;
    const fab_news *n = &l->news[l->told++];
    bool is_late = is_too_late(s, n);
    fab_lanes_set_time(main, n->at);
    main->order = n->order;
    if (n->is_done) {
        if (n->length)
            fab_write_fct_lines(main, l->lines.ptr + l->told_bytes, n->length);
        l->told_bytes += n->length;
        fab_flow_report_done(main, &n->end);
        is_late |= main->list && main->under_way == 0;
    } else {
        main->watcher.arrived(main->watcher.context, n->end.token);
    }
    if (is_late)
        fab_fail(main, ORR_EBUG, "a flow is done before anybody could know");
}

void fab_lanes_tell(fab_lanes *s)
{
    const fab *failed = first_failure(s);
    fab_lane *l;
    while (!s->main->code && (l = first_to_tell(s)) != NULL) {
        const fab_news *n = &l->news[l->told];
        if (failed && (n->at != failed->now ? n->at > failed->now : n->order > failed->order))
            break; /* it never happened */
        tell(s, l);
    }
    for (unsigned i = 0; i < s->awake_count; i++) {
        l = s->awake[i];
        l->news_count = l->told = l->told_bytes = l->lines.len = 0;
    }
}

void fab_lanes_settle(fab_lanes *s)
{
    for (unsigned i = 0; i < s->awake_count; i++) {
        move_crossings(s, s->awake[i]);
        settle_flows(s, s->awake[i]);
    }
    fab_lanes_take_over_ends(s);
}
