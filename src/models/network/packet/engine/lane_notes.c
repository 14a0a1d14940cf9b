/* SPDX-License-Identifier: Apache-2.0 */
/* lane_notes.c - what a lane takes note of in a window, because it is for others (fab_lanes.c):
 * frames that go to other lanes, flows that are done, pauses, what may be let go; and times at
 * which something may concern all.
 *
 * Each lane writes its own lists; nobody else looks at them before the window is over. */
#include "fab_lanes.h"

/* ---- times ---- */

static void expect(fab *f, orr_heap *times, uint64_t at)
{
    if (!orr_heap_push(times, at, 0))
        fab_lanes_lack_memory(f);
}

void fab_lanes_expect(fab *f, uint64_t at)
{
    expect(f, &fab_lane_of(f)->stops, at);
}

void fab_lanes_expect_of(fab *f, uint32_t node, uint64_t at)
{
    const uint32_t which = f->lanes->of_node[node];
    f->lanes->outlooks[which].is_known = false;
    expect(f, &f->lanes->of[which]->stops, at);
}

static bool is_heard(const fab *f, const fab_flow *w, bool is_arrival)
{
    const fab_watcher *by = &f->watcher;
    if (is_arrival ? !by->arrived : !by->sent)
        return false;
    return !by->hears || by->hears(by->context, w->token, is_arrival);
}

/* Can it be the last packet that its receiver waits for?  Those before it on the wire may bring one
 * each. */
static bool may_be_last(const fab *f, const fab_port *p, const fab_frame *m)
{
    if (!f->config.selective)
        return m->is_last;
    if (p->crosses_lanes || f->nodes[m->to].port_count > 1)
        return true; /* others bring some, too */
    const fab_flow *w = &f->flows[m->flow];
    const uint64_t packets = (w->size + f->config.payload - 1) / f->config.payload;
    return packets - w->gained <= (uint64_t)p->wire_count + 1;
}

/* The frame is asked before its flow, which has left the caches. */
static bool may_bring_news(const fab *f, const fab_port *p, const fab_frame *m)
{
    switch (m->kind) {
    case FAB_FRAME_DATA:
        return f->watcher.arrived && may_be_last(f, p, m) && m->to == f->ports[p->peer].node;
    case FAB_FRAME_ACK:
    case FAB_FRAME_NACK:
        return m->is_last && m->to == f->ports[p->peer].node;
    default:
        return false;
    }
}

void fab_lanes_watch(fab *f, const fab_port *p, const fab_flight *flight)
{
    const fab_frame *m = &f->frames[flight->frame];
    const bool is_arrival = m->kind == FAB_FRAME_DATA;
    fab_lane *l = fab_lane_of(f);
    if (!may_bring_news(f, p, m))
        return;
    if (is_heard(f, &f->flows[m->flow], is_arrival))
        expect(f, &l->calls, fab_lanes_heard_at(f, flight->at));
    if (f->list && !is_arrival)
        expect(f, &l->ends, flight->at);
}

static void note_news(fab *f, const fab_flow_end *end, bool is_done, size_t length)
{
    fab_lane *l = fab_lane_of(f);
    if (!orr_grow(&l->news, &l->news_room, l->news_count + 1)) {
        fab_lanes_lack_memory(f);
        return;
    }
    l->news[l->news_count++] = (fab_news){.at = f->now,
                                          .order = f->order,
                                          .end = *end,
                                          .length = (uint32_t)length,
                                          .is_done = is_done};
}

void fab_lanes_note_done(fab *f, const fab_flow *w, const fab_flow_end *end)
{
    orr_buf *b = &fab_lane_of(f)->lines;
    const size_t before = b->len;
    if (fab_writer_lists_flows(f))
        fab_put_fct(b, f, w, end->ideal);
    if (b->failed)
        fab_lanes_lack_memory(f);
    note_news(f, end, true, b->len - before);
}

void fab_lanes_note_arrival(fab *f, const fab_flow *w)
{
    if (is_heard(f, w, true))
        note_news(f, &(fab_flow_end){.token = w->token}, false, 0);
}

void fab_lanes_cross(fab *f, const fab_port *p, const fab_flight *flight)
{
    fab_lane *l = fab_lane_of(f);
    if (!orr_grow(&l->out, &l->out_room, l->out_count + 1)) {
        fab_lanes_lack_memory(f);
        return;
    }
    l->out[l->out_count++] = (fab_crossing){*flight, fab_port_of(f, p)};
}

static void note_flow(fab *f, uint32_t **list, size_t *count, size_t *room, uint32_t flow)
{
    if (orr_grow(list, room, *count + 1))
        (*list)[(*count)++] = flow;
    else
        fab_lanes_lack_memory(f);
}

void fab_lanes_let_go(fab *f, uint32_t flow)
{
    fab_lane *l = fab_lane_of(f);
    note_flow(f, &l->gone, &l->gone_count, &l->gone_room, flow);
}

void fab_lanes_drop(fab *f, uint32_t id)
{
    const fab_lanes *s = f->lanes;
    const uint32_t flow = f->frames[id].flow, owner = id / s->frames_each;
    fab_lane *l = s->of[f->lane];
    if (!f->is_in_window || owner == f->lane) {
        fab_lanes_give_back(&s->of[owner]->f, id);
    } else {
        f->frames[id].next = l->foreign_free;
        l->foreign_free = id;
    }
    if (flow == FAB_NONE)
        return;
    if (!f->is_in_window || s->of_node[f->flows[flow].src] == f->lane)
        fab_lanes_drop_of_flow(f, flow);
    else
        note_flow(f, &l->drops, &l->drop_count, &l->drop_room, flow);
}

void fab_lanes_note_pause(fab *f, const fab_port *p, bool pauses)
{
    fab_lane *l = fab_lane_of(f);
    if (!orr_grow(&l->pauses, &l->pause_room, l->pause_count + 1)) {
        fab_lanes_lack_memory(f);
        return;
    }
    l->pauses[l->pause_count++] = (fab_pause_line){f->now, fab_port_of(f, p), pauses};
}

void fab_lanes_note_series(fab *f, const fab_flow_note *n)
{
    fab_lane *l = fab_lane_of(f);
    if (orr_grow(&l->notes, &l->note_room, l->note_count + 1))
        l->notes[l->note_count++] = *n;
    else
        fab_lanes_lack_memory(f);
}
