/* SPDX-License-Identifier: Apache-2.0 */
/* fab_port.c - transmitters and wires (packet-network.md 1, 6.5, 9, 10).
 *
 * Frames on a wire are in a ring buffer by time of arrival; the event FAB_EV_ARRIVE of the port
 * represents the first. */
#include "fabric_impl.h"

/* Nanoseconds: nearest, ties down (packet-network.md 1.1).  Picoseconds: rounded up, since the last
 * bit must have arrived. */
uint64_t fab_transmission_time(const fab *f, uint64_t bytes, uint64_t rate)
{
    const unsigned __int128 bits = (unsigned __int128)bytes * 8;
    const unsigned __int128 ticks =
        f->unit == 1 ? (2 * bits * 1000000000u + rate - 1) / (2 * (unsigned __int128)rate)
                     : (bits * 1000000000000u + rate - 1) / rate;
    return ticks < FAB_LATE ? (uint64_t)ticks : FAB_LATE;
}

/* Full packets and ACKs are cached from the start, other sizes use the second entry. */
static uint64_t time_anew(fab *f, fab_port *p, uint32_t size)
{
    const uint64_t time =
        fab_transmission_time(f, (uint64_t)size + f->config.wire_overhead, p->rate);
    /* A pause frame would displace the size of full packets. */
    if (time <= UINT32_MAX && size != FAB_PFC_BYTES) {
        const unsigned i = size == f->ack_bytes;
        p->size_known[i] = size;
        p->time_known[i] = (uint32_t)time;
    }
    return time;
}

/* A 128-bit division per packet would dominate the cost of a port; nearly all packets have one of
 * two sizes. */
static inline uint64_t time_of(fab *f, fab_port *p, uint32_t size)
{
    if (p->size_known[0] == size)
        return p->time_known[0];
    if (p->size_known[1] == size)
        return p->time_known[1];
    return time_anew(f, p, size);
}

/* Doubles the ring buffer. */
static bool lengthen_wire(fab *f, fab_port *p)
{
    /* A power of two: indices are masked, which avoids a division per frame and hop. */
    const uint32_t room = p->wire_room ? 2 * p->wire_room : 8;
    fab_flight *wire = orr_alloc(room, sizeof *wire);
    if (!wire) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return false;
    }
    for (uint32_t i = 0; i < p->wire_count; i++)
        wire[i] = p->wire[(p->wire_first + i) & (p->wire_room - 1)];
    orr_free(p->wire);
    p->wire = wire;
    p->wire_room = room;
    p->wire_first = 0;
    return true;
}

#define IS_BACK 0x80000000u

static uint32_t flow_noted(const fab_frame *m)
{
    const bool is_back = m->kind == FAB_FRAME_ACK || m->kind == FAB_FRAME_NACK;
    return m->flow | (is_back ? IS_BACK : 0);
}

/* A wire may hold thousands of frames, and a host may have as many flows: they have left the caches
 * since their last access.  So what the next frame of a wire needs is prefetched when the previous
 * one arrives: without, an all-to-all takes twice as long.  Always inline, because GCC considers a
 * function that only prefetches free of effects, and drops its calls. */
static inline __attribute__((always_inline)) void fetch_for(const fab *f,
                                                            const fab_flight *next,
                                                            bool is_for_host)
{
    __builtin_prefetch(&f->frames[next->frame]);
    if (!is_for_host || next->flow == FAB_NONE)
        return;
    if (f->hops)
        __builtin_prefetch(&f->hops[(size_t)next->frame * f->hops_each]);
    const fab_flow *w = &f->flows[next->flow & ~IS_BACK];
    if (!(next->flow & IS_BACK)) {
        __builtin_prefetch(&w->expected);
        return;
    }
    __builtin_prefetch(w);
    __builtin_prefetch(&w->highest);
    if (f->states)
        __builtin_prefetch(fab_control_state(f, next->flow & ~IS_BACK));
}

/* First the end of the transmission is numbered, then the arrival (packet-network.md 6.5). */
static uint64_t order_of_arrival(fab *f, fab_port *p)
{
    if (!f->rules.orders_by_schedule)
        return (uint64_t)FAB_TIE_ARRIVE << FAB_TIE_SHIFT | fab_port_of(f, p);
    p->end_order = f->line->order;
    f->line->order += 2;
    return p->end_order + 1;
}

/* Arrivals of one wire are in the order of sending, so only the first of them is in the calendar: a
 * long wire with thousands of frames costs one event there.  `owner` is the lane of the
 * receiver. */
static inline void put_on_wire(fab *owner, fab_port *p, const fab_flight *flight)
{
    if (p->wire_count == p->wire_room && !lengthen_wire(owner, p))
        return;
    p->wire[(p->wire_first + p->wire_count) & (p->wire_room - 1)] = *flight;
    __builtin_prefetch(&p->wire[(p->wire_first + p->wire_count + 3) & (p->wire_room - 1)], 1);
    if (p->wire_count++ == 0) {
        p->wire_frame = flight->frame;
        fab_wheel_at(&owner->wheel, 2 * fab_port_of(owner, p), flight->at, flight->order);
    }
}

void fab_port_put_on_wire(fab *owner, fab_port *p, const fab_flight *flight)
{
    put_on_wire(owner, p, flight);
}

/* A wire to another lane, or, if there are lanes, to a host. */
static void put_on_watched(fab *f, fab_port *p, fab_flight flight)
{
    if (p->leads_to_host)
        fab_lanes_watch(f, p, &flight);
    if (p->crosses_lanes)
        fab_lanes_cross(f, p, &flight);
    else
        put_on_wire(f, p, &flight);
}

/* The end of a transmission is an event only if something waits for it (fab_port_await): on a port
 * that sends occasionally busy_until is enough. */
void fab_port_transmit(fab *f, fab_port *p, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    const uint64_t duration = time_of(f, p, m->size);
    p->busy_until = f->now + duration;
    const fab_flight flight = {p->busy_until + p->delay, order_of_arrival(f, p), frame,
                               flow_noted(m)};
    if (!p->frames_sent++)
        fab_port_mark_used(f, p);
    p->busy_ticks += duration;
    if (p->leads_to_host || p->crosses_lanes)
        put_on_watched(f, p, flight);
    else
        put_on_wire(f, p, &flight);
}

void fab_port_set_paused(fab *f, fab_port *p, uint8_t classes)
{
    if (!p->paused && classes) {
        fab_port_mark_used(f, p);
        p->paused_since = f->now;
    } else if (p->paused && !classes) {
        p->paused_ticks += f->now - p->paused_since;
        fab_pause_ends(f, p);
        p->pause_depth = 0;
    }
    p->paused = classes;
}

static void receive_pfc(fab *f, fab_port *p, uint32_t frame)
{
    const fab_frame *m = &f->frames[frame];
    const uint8_t bit = (uint8_t)(1u << m->class);
    const bool pauses = m->pauses;
    p->pause_count += pauses;
    p->unresumed &= (uint8_t)~bit;
    if (pauses)
        f->figures.pauses++;
    else
        f->figures.resumes++;
    if (f->watch.hears & FAB_HEARS_PAUSES)
        fab_tell_pause(f, p, pauses);
    if (pauses)
        fab_pause_begins(f, p, m);
    fab_frame_drop(f, frame);
    fab_port_set_paused(f, p, (uint8_t)(pauses ? p->paused | bit : p->paused & ~bit));
    if (pauses && !f->ports[p->peer].is_switch)
        fab_host_pause_came(f, p);
    if (pauses)
        return;
    if (p->is_switch)
        fab_switch_try(f, p);
    else
        fab_host_try(f, p);
}

/* A number is drawn only on lossy links: others must not advance the sequence of draws. */
static bool is_lost(fab *f, fab_port *p)
{
    if (p->is_down || !p->is_lossy)
        return p->is_down;
    if (f->now <= p->dead_until || !(p->error > 0))
        return f->now <= p->dead_until;
    return (f->draws ? f->rules.draws->lose(f->draws, p->loss) : fab_port_coin(p)) < p->error;
}

/* The next arrival of the wire is scheduled first: its data is then prefetched while this frame is
 * handled. */
void fab_port_arrive(fab *f, uint32_t from)
{
    fab_port *sender = &f->ports[from], *p = &f->ports[sender->peer];
    const uint32_t frame = sender->wire_frame;
    sender->wire_first = (sender->wire_first + 1) & (sender->wire_room - 1);
    if (--sender->wire_count) {
        const fab_flight *next = &sender->wire[sender->wire_first];
        sender->wire_frame = next->frame;
        fab_wheel_at(&f->wheel, 2 * from, next->at, next->order);
        fetch_for(f, next, !p->is_switch);
        __builtin_prefetch(&sender->wire[(sender->wire_first + 3) & (sender->wire_room - 1)]);
    }
    if (is_lost(f, p)) {
        f->figures.lost++;
        p->lost++;
        if (f->frames[frame].kind == FAB_FRAME_PFC && !p->is_down)
            fab_pause_is_unresumed(f, p, &f->frames[frame]);
        if ((f->watch.hears & FAB_HEARS_FRAMES) && p->is_down)
            fab_tell_frame(f, p, &f->frames[frame], FAB_FRAME_DROPPED, 0);
        fab_frame_drop(f, frame);
        return;
    }
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, &f->frames[frame], FAB_FRAME_RECEIVED, 0);
    if (f->frames[frame].kind == FAB_FRAME_PFC) {
        receive_pfc(f, p, frame);
    } else if (p->is_switch) {
        fab_switch_receive(f, p, frame);
    } else if (f->frames[frame].to != p->node) {
        fab_host_forward(f, p->node, frame);
    } else {
        fab_host_receive(f, frame);
    }
}

static void flush(fab *f, fab_port *p, uint32_t *head, unsigned class)
{
    while (*head != FAB_NONE) {
        const uint32_t frame = fab_queue_pop(f, head);
        f->figures.lost++;
        /* With pauses class 0 is in no account (fab_switch_receive). */
        if (p->is_switch && (class || !f->config.enable_pfc) && f->rules.frees_lost_buffer)
            fab_switch_forget(f, p, frame);
        if (f->watch.hears & FAB_HEARS_FRAMES)
            fab_tell_frame(f, p, &f->frames[frame], FAB_FRAME_DROPPED, class);
        fab_frame_drop(f, frame);
    }
}

/* Queued frames are lost; without rules.frees_lost_buffer the buffer still counts them
 * (packet-network.md 9). */
static void flush_queues(fab *f, fab_port *p)
{
    fab_queue *q = &f->queues[(size_t)fab_port_of(f, p) * FAB_CLASSES];
    fab_port_set_paused(f, p, 0);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        flush(f, p, &q[i].head, i);
    p->queued = 0;
    p->queued_bytes = 0;
}

void fab_port_take_down(fab *f, fab_port *p)
{
    f = fab_acting(f, p->node);
    if (p->is_switch) {
        flush_queues(f, p);
    } else {
        flush(f, p, &f->nics[p->nic].ack_head, 0);
        f->nics[p->nic].urgent_tail = FAB_NONE;
    }
    p->is_down = true;
}

/* Resets a link: nothing is paused, and frames on it when it failed are lost even if they would
 * arrive only now. */
void fab_port_bring_up(fab *f, fab_port *p)
{
    const fab_port *from = &f->ports[p->peer];
    p->is_down = false;
    fab_port_set_paused(f, p, 0);
    p->pause_sent = p->unresumed = 0;
    p->dead_until = from->busy_until + from->delay;
    p->is_lossy |= p->dead_until >= f->now;
}
