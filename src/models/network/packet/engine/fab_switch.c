/* SPDX-License-Identifier: Apache-2.0 */
/* fab_switch.c - switches: a shared buffer, priority flow control, marking (packet-network.md 7).
 *
 *     arrival:   way out -> admitted? -> accounted -> pause the sender? -> queue -> try to send
 *     departure: class -> released -> marked? -> resume the sender? -> tell HPCC -> wire
 *
 * Without pauses (ENABLE_PFC 0) a packet for which there is no room is dropped, or cut to its
 * header (TRIMMING).
 *
 * Counters are of 32 bits and wrap as those of the reference do (packet-network.md 7.1); a buffer
 * too small for its reservations is refused at the start (rules.refuses_small_buffers). */
#include "fabric_impl.h"

static orr__queue *queue_of(orr__fabric *f, const orr__port *p, unsigned class)
{
    return &f->queues[(size_t)orr__port_of(f, p) * ORR__CLASSES + class];
}

/* ---- accounts (packet-network.md 7.1) ---- */

static uint32_t used(const orr__queue *q)
{
    return q->ingress > ORR__RESERVE ? q->ingress - ORR__RESERVE : 0;
}

static uint32_t threshold(const orr__fabric *f, const orr__port *p)
{
    const orr__node *n = &f->nodes[p->node];
    return (n->available - n->shared) >> p->shift;
}

static bool admits(const orr__fabric *f, const orr__port *p, const orr__queue *q, uint32_t size)
{
    return size + q->headroom <= p->headroom || size + used(q) <= threshold(f, p);
}

static void account(orr__fabric *f, const orr__port *p, orr__queue *q, uint32_t size)
{
    const uint32_t total = q->ingress + size;
    if (total <= ORR__RESERVE) {
        q->ingress = total;
    } else if (total - ORR__RESERVE > threshold(f, p)) {
        q->headroom += size;
    } else {
        const uint32_t over = total - ORR__RESERVE;
        q->ingress = total;
        f->nodes[p->node].shared += size < over ? size : over;
    }
}

static void release(orr__fabric *f, const orr__port *p, orr__queue *q, uint32_t size)
{
    const uint32_t from_headroom = q->headroom < size ? q->headroom : size;
    const uint32_t rest = size - from_headroom, in_use = used(q);
    q->headroom -= from_headroom;
    f->nodes[p->node].shared -= rest < in_use ? rest : in_use;
    q->ingress -= rest;
}

/* ---- accounts without pauses (ENABLE_PFC 0): one buffer, and a limit of each queue ---- */

/* Without a limit of its own a queue may be as long as what is free: n full queues share the buffer
 * in n + 1 parts. */
static bool has_room(const orr__fabric *f, const orr__port *out, unsigned class, uint32_t size)
{
    const orr__node *n = &f->nodes[out->node];
    const orr__queue *q = &f->queues[(size_t)orr__port_of(f, out) * ORR__CLASSES + class];
    const uint32_t left = n->available - n->shared;
    if (class == 0 || !f->config.queue_limit)
        return size <= left && (class == 0 || q->egress + size <= left);
    return size <= left && q->egress + size <= f->config.queue_limit;
}

/* ---- queues ---- */

static void enqueue(orr__fabric *f, orr__port *p, unsigned class, uint32_t frame)
{
    orr__queue *q = queue_of(f, p, class);
    if (orr__writer_traces(f))
        orr__fabric_write_trace(f, p, &f->frames[frame], ORR__TRACE_ENQUEUE, class);
    orr__queue_push(f, &q->head, &q->tail, frame);
    p->queued |= (uint8_t)(1u << class);
    p->queued_bytes += f->frames[frame].size;
    if (p->queued_bytes > p->max_queued)
        p->max_queued = p->queued_bytes;
    orr__switch_try(f, p);
}

/* ---- pausing (packet-network.md 7.2) ---- */

static void send_pfc(orr__fabric *f, orr__port *p, unsigned class, bool pauses)
{
    const uint32_t id = orr__frame_new(f);
    const uint8_t bit = (uint8_t)(1u << class);
    if (id == ORR__NOBODY)
        return;
    if (f->draws)
        f->rules.draws->pfc_sent(f->draws);
    f->frames[id] = (orr__frame){.kind = ORR__FRAME_PFC,
                                 .size = ORR__PFC_BYTES,
                                 .flow = ORR__NOBODY,
                                 .class = (uint8_t) class,
                                 .pauses = pauses};
    if (pauses)
        orr__pause_note_cause(f, p, &f->frames[id]);
    enqueue(f, p, 0, id);
    p->pause_sent = (uint8_t)(pauses ? p->pause_sent | bit : p->pause_sent & ~bit);
}

static void pause_if_needed(orr__fabric *f, orr__port *p, const orr__queue *q, unsigned class)
{
    if (!(p->pause_sent >> class & 1) && (q->headroom > 0 || used(q) >= threshold(f, p)))
        send_pfc(f, p, class, true);
}

static void resume_if_possible(orr__fabric *f, orr__port *p, const orr__queue *q, unsigned class)
{
    if ((p->pause_sent >> class & 1) && q->headroom == 0 &&
        (used(q) == 0 || used(q) + ORR__RESUME_OFFSET <= threshold(f, p)))
        send_pfc(f, p, class, false);
}

/* ---- marking (packet-network.md 7.3) ---- */

static bool is_marked(orr__fabric *f, orr__port *p, uint32_t waiting)
{
    if (!f->config.enable_qcn || waiting <= p->kmin)
        return false;
    if (waiting > p->kmax)
        return true;
    const double chance = p->pmax * (double)(waiting - p->kmin) / (double)(p->kmax - p->kmin);
    return (f->draws ? f->rules.draws->mark(f->draws) : orr__port_coin(p)) < chance;
}

/* ---- sending ---- */

/* Where hosts are many times faster than this port, headers alone could fill it for ever: every
 * packet sent again would be cut again, and none come through. */
enum { URGENT_IN_A_ROW = 100 };

/* Class 0 first and whatever is paused, then in turn behind the one served last; -1: none.  With
 * TRIMMING one of the others has its turn after some of class 0. */
static int next_class(const orr__port *p)
{
    const unsigned ready = p->queued & ~(p->paused | 1u);
    if ((p->queued & 1) && (p->urgent < URGENT_IN_A_ROW || !ready))
        return 0;
    if (!ready)
        return -1;
    const unsigned from = (p->last_class + 1u) % ORR__CLASSES;
    const unsigned turned = (ready >> from | ready << (ORR__CLASSES - from)) & 0xff;
    return (int)((from + (unsigned)__builtin_ctz(turned)) % ORR__CLASSES);
}

static uint32_t take_frame(orr__fabric *f, orr__port *p, unsigned class)
{
    orr__queue *q = queue_of(f, p, class);
    const uint32_t frame = orr__queue_pop(f, &q->head);
    if (q->head == ORR__NOBODY) {
        p->queued &= (uint8_t) ~(1u << class);
    } else { /* it has stood here for long, and is next */
        __builtin_prefetch(&f->frames[q->head]);
        if (f->hops)
            __builtin_prefetch(&f->hops[(size_t)q->head * f->hops_each], 1);
    }
    p->queued_bytes -= f->frames[frame].size;
    return frame;
}

static void leave_buffer(orr__fabric *f, orr__port *p, unsigned class, uint32_t frame)
{
    const uint32_t size = f->frames[frame].size;
    orr__port *in = &f->ports[f->frames[frame].in];
    orr__queue *from = queue_of(f, in, class), *q = queue_of(f, p, class);
    if (class)
        p->last_class = (uint8_t) class;
    q->egress -= size;
    if (f->config.enable_pfc)
        release(f, in, from, size);
    else
        f->nodes[p->node].shared -= size;
    if (is_marked(f, p, q->egress)) {
        f->frames[frame].is_marked = true;
        f->figures.marked++;
    }
    if (f->config.enable_pfc)
        resume_if_possible(f, in, from, class);
}

void orr__switch_try(orr__fabric *f, orr__port *p)
{
    if (p->is_down)
        return;
    if (orr__port_is_busy(f, p)) {
        orr__port_await(f, p);
        return;
    }
    const int class = next_class(p);
    if (class < 0)
        return;
    if (f->config.trimming)
        p->urgent = class ? 0 : (uint8_t)orr__at_most(p->urgent + 1u, URGENT_IN_A_ROW);
    const uint32_t frame = take_frame(f, p, (unsigned)class);
    if (class || !f->config.enable_pfc)
        leave_buffer(f, p, (unsigned)class, frame);
    orr__frame *m = &f->frames[frame];
    if (f->control && f->control->forward && m->kind == ORR__FRAME_DATA)
        f->control->forward(f, p, m);
    p->bytes_sent += m->size;
    if (f->control && f->control->forward) {
        p->last_size = m->size;
        p->last_at = f->now;
    }
    if (orr__writer_traces(f))
        orr__fabric_write_trace(f, p, m, ORR__TRACE_DEQUEUE, (unsigned)class);
    orr__port_transmit(f, p, frame);
    if (p->queued)
        orr__port_await(f, p);
}

/* ---- receiving ---- */

static void refuse(orr__fabric *f, uint32_t frame)
{
    f->figures.dropped++;
    orr__frame_drop(f, frame);
}

/* A switch that would drop data sends its header on, before all else (TRIMMING). */
static bool trim(orr__fabric *f, orr__frame *m)
{
    if (!f->config.trimming || m->kind != ORR__FRAME_DATA)
        return false;
    m->kind = ORR__FRAME_TRIMMED;
    m->size = ORR__HEADER_BYTES + f->int_bytes;
    m->class = 0;
    f->figures.trimmed++;
    return true;
}

/* Nobody is paused: what finds no room is cut to its header, or gone. */
static void receive_lossy(orr__fabric *f, orr__port *in, orr__port *out, uint32_t frame)
{
    orr__frame *m = &f->frames[frame];
    if (!has_room(f, out, m->class, m->size) &&
        !(trim(f, m) && has_room(f, out, m->class, m->size))) {
        refuse(f, frame);
        return;
    }
    m->in = orr__port_of(f, in);
    f->nodes[out->node].shared += m->size;
    queue_of(f, out, m->class)->egress += m->size;
    enqueue(f, out, m->class, frame);
}

void orr__switch_receive(orr__fabric *f, orr__port *in, uint32_t frame)
{
    orr__frame *m = &f->frames[frame];
    const uint32_t way = orr__fabric_route(f, in->node, m);
    const unsigned class = m->class;
    const uint32_t size = m->size;
    orr__queue *q = queue_of(f, in, class);
    if (way != ORR__NOBODY && !f->config.enable_pfc) {
        receive_lossy(f, in, &f->ports[way], frame);
        return;
    }
    if (way != ORR__NOBODY && class == 0) { /* never paused and not counted */
        enqueue(f, &f->ports[way], 0, frame);
        return;
    }
    if (way == ORR__NOBODY || !admits(f, in, q, size)) {
        refuse(f, frame);
        return;
    }
    orr__port *out = &f->ports[way];
    m->in = orr__port_of(f, in);
    account(f, in, q, size);
    queue_of(f, out, class)->egress += size;
    pause_if_needed(f, in, q, class);
    enqueue(f, out, class, frame);
}

void orr__switch_forget(orr__fabric *f, orr__port *p, uint32_t frame)
{
    const orr__frame *m = &f->frames[frame];
    orr__port *in = &f->ports[m->in];
    const unsigned class = m->class;
    orr__queue *from = queue_of(f, in, class);
    queue_of(f, p, class)->egress -= m->size;
    if (!f->config.enable_pfc) {
        f->nodes[p->node].shared -= m->size;
        return;
    }
    release(f, in, from, m->size);
    resume_if_possible(f, in, from, class);
}

/* ---- how a port is set up ---- */

static void set_up_port(orr__fabric *f, orr__port *p, uint64_t nic_rate)
{
    const uint64_t delay_ns = p->delay / f->unit;
    const unsigned __int128 on_wire = (unsigned __int128)p->rate * delay_ns / 8 / 1000000000u;
    p->headroom = (uint32_t)(on_wire * f->config.headroom_factor);
    p->shift = 3;
    for (uint64_t rate = p->rate; rate > nic_rate && p->shift; rate /= 2)
        p->shift--;
    for (unsigned i = 0; i < f->config.mark_count; i++)
        if (f->config.marks[i].rate == p->rate) {
            p->kmin = f->config.marks[i].kmin;
            p->kmax = f->config.marks[i].kmax;
            p->pmax = f->config.marks[i].pmax;
            /* above kmax all are marked, whatever kmin says (packet-network.md 7.3) */
            if (p->kmin > p->kmax)
                p->kmin = p->kmax;
        }
}

void orr__switch_set_up(orr__fabric *f, uint64_t nic_rate)
{
    const uint32_t whole = (uint32_t)(f->config.buffer_mib << 20);
    for (uint32_t n = 0; n < f->node_count; n++)
        f->nodes[n].available = whole;
    for (uint32_t i = 0; i < f->port_count; i++) {
        orr__port *p = &f->ports[i];
        if (!p->is_switch)
            continue;
        set_up_port(f, p, nic_rate);
        if (!f->config.enable_pfc)
            continue; /* nothing is on the wire that must not be lost */
        f->nodes[p->node].available -= p->headroom + ORR__RESERVE;
    }
}
