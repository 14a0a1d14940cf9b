/* SPDX-License-Identifier: Apache-2.0 */
/* lane_news.c - between windows: what lanes have noted is put in the order of the whole network,
 * written and told (fab_lanes.c). */
#include "fab_lanes.h"
#include "models/network/packet/watch/series.h"

#include <stdlib.h>
#include <string.h>

static void move_crossings(orr__lanes *s, orr__lane *l)
{
    for (size_t i = 0; i < l->out_count; i++) {
        const orr__flight *flight = &l->out[i].flight;
        orr__port *p = &s->main->ports[l->out[i].port];
        const uint32_t to = s->of_node[s->main->ports[p->peer].node];
        orr__port_put_on_wire(&s->of[to]->f, p, flight);
        if (flight->at < s->outlooks[to].next)
            s->outlooks[to].next = flight->at;
    }
    l->out_count = 0;
}

static void settle_flows(orr__lanes *s, orr__lane *l)
{
    for (size_t i = 0; i < l->drop_count; i++)
        orr__lanes_drop_of_flow(s->main, l->drops[i]);
    for (size_t i = 0; i < l->gone_count; i++)
        orr__flow_let_go(s->main, l->gone[i]);
    l->drop_count = l->gone_count = 0;
    while (l->strange != ORR__NOBODY) {
        const uint32_t id = l->strange;
        l->strange = s->main->frames[id].next;
        orr__lanes_give_back(&s->of[id / s->frames_each]->f, id);
    }
}

/* Pauses of one instant stand in the order in which their frames arrived: by the port that sent
 * them. */
static int compare_pauses(const void *a, const void *b)
{
    const orr__pause_line *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->port ^ 1) < (y->port ^ 1) ? -1 : 1;
}

void orr__lanes_write_pauses(orr__lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->pause_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->pauses, &s->pause_room, count)) {
        orr__lanes_lack_memory(s->main);
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
        orr__write_pfc(s->main, &s->main->ports[s->pauses[i].port], s->pauses[i].pauses);
    }
}

static int compare_notes(const void *a, const void *b)
{
    const orr__series_note *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void orr__lanes_tell_series(orr__lanes *s)
{
    size_t count = 0;
    for (unsigned i = 0; i < s->awake_count; i++)
        count += s->awake[i]->note_count;
    if (count == 0)
        return;
    if (!orr_grow(&s->notes, &s->note_room, count)) {
        orr__lanes_lack_memory(s->main);
        return;
    }
    count = 0;
    for (unsigned i = 0; i < s->awake_count; i++) {
        orr__lane *l = s->awake[i];
        if (l->note_count)
            memcpy(s->notes + count, l->notes, l->note_count * sizeof *l->notes);
        count += l->note_count;
        l->note_count = 0;
    }
    qsort(s->notes, count, sizeof *s->notes, compare_notes);
    for (size_t i = 0; i < count; i++)
        orr__series_hear(s->main, &s->notes[i]);
}

static bool is_before(const orr__fabric *a, const orr__fabric *b)
{
    return a->now != b->now ? a->now < b->now : a->order < b->order;
}

/* NULL: all is well. */
static const orr__fabric *first_failure(const orr__lanes *s)
{
    const orr__fabric *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        const orr__fabric *f = &s->awake[i]->f;
        if (f->code && (!first || is_before(f, first)))
            first = f;
    }
    return first;
}

/* What ends a lane ends the run; of several failures the first in time is told. */
void orr__lanes_take_over_ends(orr__lanes *s)
{
    orr__fabric *main = s->main;
    for (unsigned i = 0; i < s->awake_count; i++) {
        orr__fabric *f = &s->awake[i]->f;
        if (f->wheel.has_failed)
            orr__lanes_lack_memory(f);
        main->is_stopped |= f->is_stopped;
        main->is_stalled |= f->is_stalled;
    }
    const orr__fabric *first = first_failure(s);
    if (first && !main->code) {
        main->code = first->code;
        main->error = first->error;
    }
}

/* Who has the first of the news that were not told yet; NULL: there are none. */
static orr__lane *first_to_tell(const orr__lanes *s)
{
    orr__lane *first = NULL;
    for (unsigned i = 0; i < s->awake_count; i++) {
        orr__lane *l = s->awake[i];
        if (l->told == l->news_count)
            continue;
        const orr__news *n = &l->news[l->told], *least = first ? &first->news[first->told] : NULL;
        if (!first || n->at < least->at || (n->at == least->at && n->order < least->order))
            first = l;
    }
    return first;
}

/* What listeners do in the instant of their news must not be too late. */
static bool is_too_late(const orr__lanes *s, const orr__news *n)
{
    const orr__fabric_watcher *by = &s->main->watcher;
    if (n->is_done ? !by->sent : !by->arrived)
        return false;
    if (by->hears && !by->hears(by->context, n->end.token, !n->is_done))
        return false;
    return orr__lanes_told_at(s->main, n->at) + 1 < s->end;
}

static void tell(orr__lanes *s, orr__lane *l)
{
    orr__fabric *main = s->main;
    const orr__news *n = &l->news[l->told++];
    bool is_late = is_too_late(s, n);
    orr__lanes_set_time(main, n->at);
    main->order = n->order;
    if (n->is_done) {
        if (n->length)
            orr__write_fct_lines(main, l->lines.ptr + l->told_bytes, n->length);
        l->told_bytes += n->length;
        orr__flow_tell_done(main, &n->end);
        is_late |= main->list && main->under_way == 0;
    } else {
        main->watcher.arrived(main->watcher.context, n->end.token);
    }
    if (is_late)
        orr__fabric_fail(main, ORR_EBUG, "a flow is done before anybody could know");
}

void orr__lanes_tell(orr__lanes *s)
{
    const orr__fabric *failed = first_failure(s);
    orr__lane *l;
    while (!s->main->code && (l = first_to_tell(s)) != NULL) {
        const orr__news *n = &l->news[l->told];
        if (failed && (n->at != failed->now ? n->at > failed->now : n->order > failed->order))
            break; /* it never happened */
        tell(s, l);
    }
    for (unsigned i = 0; i < s->awake_count; i++) {
        l = s->awake[i];
        l->news_count = l->told = l->told_bytes = l->lines.len = 0;
    }
}

void orr__lanes_settle(orr__lanes *s)
{
    for (unsigned i = 0; i < s->awake_count; i++) {
        move_crossings(s, s->awake[i]);
        settle_flows(s, s->awake[i]);
    }
    orr__lanes_take_over_ends(s);
}
