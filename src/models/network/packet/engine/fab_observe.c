/* SPDX-License-Identifier: Apache-2.0 */
/* fab_observe.c - observers and their sampling at fixed times.
 *
 * A look (a sample) is one pending event while flows are active; it reschedules itself.  With lanes
 * it is a global event, so that no lane runs meanwhile. */
#include "fabric_impl.h"

orr_code fab_observe(
    fab *f, const fab_observer_ops *ops, void *state, unsigned hears, orr_error *err)
{
    fab_watch *w = &f->watch;
    if (w->count == FAB_OBSERVERS_MOST) {
        ops->destroy(state);
        return orr_fail(err, ORR_EBUG, NULL, "too many observers of the network");
    }
    w->list[w->count++] = (struct fab_observer){ops, state};
    w->hears |= hears;
    return ORR_OK;
}

void fab_add_look(fab *f, unsigned which, fab_look_kind kind)
{
    fab_watch *w = &f->watch;
    if (w->look_count < FAB_LOOKS_MOST)
        w->looks[w->look_count++] = (fab_look){w->count - 1, which, kind, false};
}

void *fab_observer_state(const fab *f, const fab_observer_ops *ops)
{
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops == ops)
            return f->watch.list[i].state;
    return NULL;
}

/* ---- notifications ---- */

bool fab_tell_flow_made(const fab *f, uint32_t flow)
{
    bool has_memory = true;
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->flow_made)
            has_memory &= f->watch.list[i].ops->flow_made(f->watch.list[i].state, flow);
    return has_memory;
}

static uint64_t window_of(const fab *f, const fab_flow *w)
{
    if (!f->config.var_window || w->counts_flight || !w->line_rate)
        return w->window;
    return (uint64_t)((unsigned __int128)w->window * w->rate / w->line_rate);
}

fab_flow_note fab_flow_state(const fab *f, uint32_t flow)
{
    const fab_flow *w = &f->flows[flow];
    const uint64_t unacked = w->sent > w->acked ? w->sent - w->acked : 0;
    return (fab_flow_note){.at = f->now,
                           .order = f->order,
                           .acked = w->acked,
                           .window = window_of(f, w),
                           .in_flight = w->is_selective ? w->in_flight : unacked,
                           .flow = flow};
}

void fab_hear_flow(fab *f, const fab_flow_note *n)
{
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->flow)
            f->watch.list[i].ops->flow(f, f->watch.list[i].state, n);
}

/* In a window flows of other lanes start and end too: the order is known after it. */
void fab_tell_flow(fab *f, uint32_t flow, bool is_over)
{
    fab_flow_note n = fab_flow_state(f, flow);
    n.is_over = is_over;
    if (f->is_in_window)
        fab_lanes_note_flow(f, &n);
    else
        fab_hear_flow(f, &n);
}

void fab_tell_line(const fab *f, const fab_flow *w, uint64_t ideal, orr_buf *out)
{
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->flow_line)
            f->watch.list[i].ops->flow_line(f, f->watch.list[i].state, w, ideal, out);
}

void fab_hear_lines(const fab *f, const uint8_t *lines, size_t length)
{
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->flow_lines)
            f->watch.list[i].ops->flow_lines(f->watch.list[i].state, lines, length);
}

void fab_tell_mark(const fab *f, uint32_t flow)
{
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->ack_marked)
            f->watch.list[i].ops->ack_marked(f->watch.list[i].state, flow);
}

void fab_tell_pause(fab *f, const fab_port *p, bool pauses)
{
    if (f->is_in_window) {
        fab_lanes_note_pause(f, p, pauses);
        return;
    }
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->pause)
            f->watch.list[i].ops->pause(f, f->watch.list[i].state, p, pauses);
}

void fab_tell_frame(
    const fab *f, const fab_port *p, const fab_frame *m, unsigned event, unsigned queue)
{
    for (unsigned i = 0; i < f->watch.count; i++)
        if (f->watch.list[i].ops->frame)
            f->watch.list[i].ops->frame(f, f->watch.list[i].state, p, m, event, queue);
}

/* ---- looks at fixed times ---- */

/* Queues are empty and stay so until a flow starts, a timer causes a retransmission, or a link is
 * repaired. */
static bool is_at_rest(const fab *f)
{
    if (f->now - f->last_arrival <= 1000000 * f->unit)
        return false;
    for (uint32_t i = 0; i < f->port_count; i++)
        if (f->ports[i].wire_count || f->ports[i].has_end || f->ports[i].queued_bytes)
            return false;
    for (uint32_t i = 0; i < f->nic_count; i++)
        if (f->nics[i].wake != FAB_NO_EVENT)
            return false;
    return true;
}

static bool next_look(const fab *f, const fab_look *l, uint64_t from, bool is_again, uint64_t *at)
{
    const struct fab_observer *o = &f->watch.list[l->observer];
    return o->ops->next_look(f, o->state, l->which, from, is_again, at);
}

static void arm(fab *f, fab_look *l, uint64_t from)
{
    uint64_t at;
    if (l->is_armed || !next_look(f, l, from, false, &at))
        return;
    l->is_armed = true;
    (void)fab_after(f, at - f->now, l->kind == FAB_LOOK_SILENT ? FAB_EV_SILENT_LOOK : FAB_EV_LOOK,
                    (uint32_t)(l - f->watch.looks));
}

void fab_looks_wake(fab *f)
{
    if (f->is_in_window)
        return; /* there is none if this may begin a look (fab_looks_may_wake) */
    f = f->main;
    for (unsigned i = 0; i < f->watch.look_count; i++)
        if (f->watch.looks[i].kind == FAB_LOOK_RESTS)
            arm(f, &f->watch.looks[i], f->now);
}

void fab_looks_arm(fab *f)
{
    for (unsigned i = 0; i < f->watch.look_count; i++)
        arm(f, &f->watch.looks[i], f->now);
}

void fab_looks_arm_silent(fab *f, uint64_t at)
{
    for (unsigned i = 0; i < f->watch.look_count; i++)
        if (f->watch.looks[i].kind == FAB_LOOK_SILENT)
            arm(f, &f->watch.looks[i], at);
}

bool fab_looks_may_wake(const fab *f, uint64_t now)
{
    uint64_t at;
    for (unsigned i = 0; i < f->watch.look_count; i++) {
        const fab_look *l = &f->watch.looks[i];
        if (l->kind == FAB_LOOK_RESTS && !l->is_armed && next_look(f, l, now, false, &at))
            return true;
    }
    return false;
}

void fab_look_run(fab *f, uint32_t event, uint32_t look)
{
    fab_look *l = &f->watch.looks[look];
    const struct fab_observer *o = &f->watch.list[l->observer];
    uint64_t at = 0;
    o->ops->look(f, o->state, l->which);
    l->is_armed = f->under_way > 0 && next_look(f, l, f->now, true, &at) &&
                  !(l->kind == FAB_LOOK_RESTS && f->rules.honours_ends && is_at_rest(f));
    if (l->is_armed)
        fab_wheel_at(&f->wheel, event, at, fab_global_order(f));
    else
        fab_wheel_drop(&f->wheel, event);
    if (l->kind != FAB_LOOK_SILENT)
        fab_watch_for_stall(f);
}

bool fab_look_is_last(fab *f, uint32_t event, uint32_t look)
{
    uint64_t at;
    if (fab_next_at(f, &at))
        return false;
    f->watch.looks[look].is_armed = false;
    fab_wheel_drop(&f->wheel, event);
    return true;
}
