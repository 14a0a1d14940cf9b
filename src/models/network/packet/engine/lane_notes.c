/* SPDX-License-Identifier: Apache-2.0 */
/* lane_notes.c - what a lane takes note of in a window, because it is for others (fab_lanes.c):
 * frames that go to other lanes, flows that are done, pauses, what may be let go; and times at
 * which something may concern all.
 *
 * Each lane writes its own lists; nobody else looks at them before the window is over. */
#include "fab_lanes.h"

/* ---- times ---- */

static void expect(orr__fabric *f, orr_heap *times, uint64_t at)
{
    if (!orr_heap_push(times, at, 0))
        orr__lanes_lack_memory(f);
}

void orr__lanes_expect(orr__fabric *f, uint64_t at)
{
    expect(f, &orr__lane_of(f)->stops, at);
}

void orr__lanes_expect_of(orr__fabric *f, uint32_t node, uint64_t at)
{
    const uint32_t which = f->lanes->of_node[node];
    f->lanes->outlooks[which].is_known = false;
    expect(f, &f->lanes->of[which]->stops, at);
}

static bool is_heard(const orr__fabric *f, const orr__flow *w, bool is_arrival)
{
    const orr__fabric_watcher *by = &f->watcher;
    if (is_arrival ? !by->arrived : !by->sent)
        return false;
    return !by->hears || by->hears(by->context, w->token, is_arrival);
}

/* Can it be the last packet that its receiver waits for?  Those before it on the wire may bring one
 * each. */
static bool may_be_last(const orr__fabric *f, const orr__port *p, const orr__frame *m)
{
    if (!f->config.selective)
        return m->is_last;
    if (p->is_between || f->nodes[m->to].port_count > 1)
        return true; /* others bring some, too */
    const orr__flow *w = &f->flows[m->flow];
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    return packets - w->gained <= (uint64_t)p->wire_count + 1;
}

/* The frame is asked before its flow, which has left the caches. */
static bool may_bring_news(const orr__fabric *f, const orr__port *p, const orr__frame *m)
{
    switch (m->kind) {
    case ORR__FRAME_DATA:
        return f->watcher.arrived && may_be_last(f, p, m) && m->to == f->ports[p->peer].node;
    case ORR__FRAME_ACK:
    case ORR__FRAME_NACK:
        return m->is_last && m->to == f->ports[p->peer].node;
    default:
        return false;
    }
}

void orr__lanes_watch(orr__fabric *f, const orr__port *p, const orr__flight *flight)
{
    const orr__frame *m = &f->frames[flight->frame];
    const bool is_arrival = m->kind == ORR__FRAME_DATA;
    orr__lane *l = orr__lane_of(f);
    if (!may_bring_news(f, p, m))
        return;
    if (is_heard(f, &f->flows[m->flow], is_arrival))
        expect(f, &l->calls, orr__lanes_told_at(f, flight->at));
    if (f->list && !is_arrival)
        expect(f, &l->ends, flight->at);
}

static void note_news(orr__fabric *f, const orr__flow_end *end, bool is_done, size_t length)
{
    orr__lane *l = orr__lane_of(f);
    if (!orr_grow(&l->news, &l->news_room, l->news_count + 1)) {
        orr__lanes_lack_memory(f);
        return;
    }
    l->news[l->news_count++] = (orr__news){.at = f->now,
                                           .order = f->order,
                                           .end = *end,
                                           .length = (uint32_t)length,
                                           .is_done = is_done};
}

void orr__lanes_note_done(orr__fabric *f, const orr__flow *w, const orr__flow_end *end)
{
    orr_buf *b = &orr__lane_of(f)->lines;
    const size_t before = b->len;
    if (orr__writer_lists_flows(f))
        orr__put_fct(b, f, w, end->ideal);
    if (b->failed)
        orr__lanes_lack_memory(f);
    note_news(f, end, true, b->len - before);
}

void orr__lanes_note_arrival(orr__fabric *f, const orr__flow *w)
{
    if (is_heard(f, w, true))
        note_news(f, &(orr__flow_end){.token = w->token}, false, 0);
}

void orr__lanes_cross(orr__fabric *f, const orr__port *p, const orr__flight *flight)
{
    orr__lane *l = orr__lane_of(f);
    if (!orr_grow(&l->out, &l->out_room, l->out_count + 1)) {
        orr__lanes_lack_memory(f);
        return;
    }
    l->out[l->out_count++] = (orr__crossing){*flight, orr__port_of(f, p)};
}

static void note_flow(orr__fabric *f, uint32_t **list, size_t *count, size_t *room, uint32_t flow)
{
    if (orr_grow(list, room, *count + 1))
        (*list)[(*count)++] = flow;
    else
        orr__lanes_lack_memory(f);
}

void orr__lanes_let_go(orr__fabric *f, uint32_t flow)
{
    orr__lane *l = orr__lane_of(f);
    note_flow(f, &l->gone, &l->gone_count, &l->gone_room, flow);
}

void orr__lanes_drop(orr__fabric *f, uint32_t id)
{
    const orr__lanes *s = f->lanes;
    const uint32_t flow = f->frames[id].flow, owner = id / s->frames_each;
    orr__lane *l = s->of[f->lane];
    if (!f->is_in_window || owner == f->lane) {
        orr__lanes_give_back(&s->of[owner]->f, id);
    } else {
        f->frames[id].next = l->strange;
        l->strange = id;
    }
    if (flow == ORR__NOBODY)
        return;
    if (!f->is_in_window || s->of_node[f->flows[flow].src] == f->lane)
        orr__lanes_drop_of_flow(f, flow);
    else
        note_flow(f, &l->drops, &l->drop_count, &l->drop_room, flow);
}

void orr__lanes_note_pause(orr__fabric *f, const orr__port *p, bool pauses)
{
    orr__lane *l = orr__lane_of(f);
    if (!orr_grow(&l->pauses, &l->pause_room, l->pause_count + 1)) {
        orr__lanes_lack_memory(f);
        return;
    }
    l->pauses[l->pause_count++] = (orr__pause_line){f->now, orr__port_of(f, p), pauses};
}

void orr__lanes_note_series(orr__fabric *f, const orr__series_note *n)
{
    orr__lane *l = orr__lane_of(f);
    if (orr_grow(&l->notes, &l->note_room, l->note_count + 1))
        l->notes[l->note_count++] = *n;
    else
        orr__lanes_lack_memory(f);
}
