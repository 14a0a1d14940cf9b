/* SPDX-License-Identifier: Apache-2.0 */
/* fab_switch.c - switches: a shared buffer, priority flow control, marking (packet-network.md 7).
 *
 *     arrival:   route -> admitted? -> accounted -> pause the sender? -> queue -> try to send
 *     departure: class -> released -> marked? -> resume the sender? -> tell HPCC -> wire
 *
 * Without PFC (ENABLE_PFC 0) a packet that does not fit is dropped, or cut to its header
 * (TRIMMING).
 *
 * Counters have 32 bits and wrap like the reference's (packet-network.md 7.1); a buffer too small
 * for its reservations is refused at the start (rules.refuses_small_buffers). */
#include "fabric_impl.h"

static fab_queue *queue_of(fab *f, const fab_port *p, unsigned class)
{
    return &f->queues[(size_t)fab_port_of(f, p) * FAB_CLASSES + class];
}

/* ---- accounts (packet-network.md 7.1) ---- */

/* A packet is accounted to its ingress port, not to the port where it waits: only the sender on
 * that side can be paused.  An ingress account has three parts, filled in this order: FAB_RESERVE
 * reserved bytes, its share of the node's shared buffer, and its headroom, which takes what is
 * already in flight when the sender receives the pause. */

static uint32_t used(const fab_queue *q)
{
    return q->ingress > FAB_RESERVE ? q->ingress - FAB_RESERVE : 0;
}

/* Dynamic threshold: the fuller the node, the less a single queue may take, so that one busy port
 * cannot starve the others.  A fast port has a smaller shift, hence a larger share. */
static uint32_t threshold(const fab *f, const fab_port *p)
{
    const fab_node *n = &f->nodes[p->node];
    return (n->available - n->shared) >> p->shift;
}

static bool admits(const fab *f, const fab_port *p, const fab_queue *q, uint32_t size)
{
    return size + q->headroom <= p->headroom || size + used(q) <= threshold(f, p);
}

/* A packet that crosses a boundary belongs entirely to the later part, except that of one that
 * begins in the reserve only the excess is shared.  Headroom is not in q->ingress: that is how
 * release() recognises it. */
static void account(fab *f, const fab_port *p, fab_queue *q, uint32_t size)
{
    const uint32_t total = q->ingress + size;
    if (total <= FAB_RESERVE) {
        q->ingress = total;
    } else if (total - FAB_RESERVE > threshold(f, p)) {
        q->headroom += size;
    } else {
        const uint32_t over = total - FAB_RESERVE;
        q->ingress = total;
        f->nodes[p->node].shared += size < over ? size : over;
    }
}

/* The last part filled is the first emptied, whichever part this packet was counted in: only the
 * sums matter, and a queue leaves its headroom, and with it the pause, as early as possible. */
static void release(fab *f, const fab_port *p, fab_queue *q, uint32_t size)
{
    const uint32_t from_headroom = q->headroom < size ? q->headroom : size;
    const uint32_t rest = size - from_headroom, in_use = used(q);
    q->headroom -= from_headroom;
    f->nodes[p->node].shared -= rest < in_use ? rest : in_use;
    q->ingress -= rest;
}

/* ---- accounts without PFC (ENABLE_PFC 0): one buffer, and a limit per queue ---- */

/* Without its own limit a queue may be as long as the free space: n full queues share the buffer in
 * n + 1 parts. */
static bool has_room(const fab *f, const fab_port *out, unsigned class, uint32_t size)
{
    const fab_node *n = &f->nodes[out->node];
    const fab_queue *q = &f->queues[(size_t)fab_port_of(f, out) * FAB_CLASSES + class];
    const uint32_t left = n->available - n->shared;
    if (class == 0 || !f->config.queue_limit)
        return size <= left && (class == 0 || q->egress + size <= left);
    return size <= left && q->egress + size <= f->config.queue_limit;
}

/* ---- queues ---- */

static void enqueue(fab *f, fab_port *p, unsigned class, uint32_t frame)
{
    fab_queue *q = queue_of(f, p, class);
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, &f->frames[frame], FAB_FRAME_ENQUEUED, class);
    fab_queue_push(f, &q->head, &q->tail, frame);
    p->queued |= (uint8_t)(1u << class);
    p->queued_bytes += f->frames[frame].size;
    if (p->queued_bytes > p->max_queued)
        p->max_queued = p->queued_bytes;
    fab_switch_try(f, p);
}

/* ---- pausing (packet-network.md 7.2) ---- */

/* A pause returns through the port the data came in by, in class 0: it overtakes all data there,
 * and no pause blocks it. */
static void send_pfc(fab *f, fab_port *p, unsigned class, bool pauses)
{
    const uint32_t id = fab_frame_new(f);
    const uint8_t bit = (uint8_t)(1u << class);
    if (id == FAB_NONE)
        return;
    if (f->draws)
        f->rules.draws->pfc_sent(f->draws);
    f->frames[id] = (fab_frame){.kind = FAB_FRAME_PFC,
                                .size = FAB_PFC_BYTES,
                                .flow = FAB_NONE,
                                .class = (uint8_t) class,
                                .pauses = pauses};
    if (pauses)
        fab_pause_note_cause(f, p, &f->frames[id]);
    enqueue(f, p, 0, id);
    p->pause_sent = (uint8_t)(pauses ? p->pause_sent | bit : p->pause_sent & ~bit);
}

static void pause_if_needed(fab *f, fab_port *p, const fab_queue *q, unsigned class)
{
    if (!(p->pause_sent >> class & 1) && (q->headroom > 0 || used(q) >= threshold(f, p)))
        send_pfc(f, p, class, true);
}

/* The offset is hysteresis: without it a queue at its threshold would send a pause and a resume for
 * every packet. */
static void resume_if_possible(fab *f, fab_port *p, const fab_queue *q, unsigned class)
{
    if ((p->pause_sent >> class & 1) && q->headroom == 0 &&
        (used(q) == 0 || used(q) + FAB_RESUME_OFFSET <= threshold(f, p)))
        send_pfc(f, p, class, false);
}

/* ---- marking (packet-network.md 7.3) ---- */

/* Decided when a packet leaves, by the queue it leaves behind: the mark reflects the current queue,
 * not that at the packet's arrival.  Only between kmin and kmax a number is drawn: a port without
 * congestion must not advance the sequence of draws. */
static bool is_marked(fab *f, fab_port *p, uint32_t waiting)
{
    if (!f->config.enable_qcn || waiting <= p->kmin)
        return false;
    if (waiting > p->kmax)
        return true;
    const double chance = p->pmax * (double)(waiting - p->kmin) / (double)(p->kmax - p->kmin);
    return (f->draws ? f->rules.draws->mark(f->draws) : fab_port_coin(p)) < chance;
}

/* ---- sending ---- */

/* If hosts are many times faster than this port, headers alone could saturate it: every
 * retransmission would be trimmed again, and none delivered. */
enum { URGENT_IN_A_ROW = 100 };

/* Class 0 first, regardless of pauses, then round robin; -1: none.  With TRIMMING another class
 * gets a turn after some frames of class 0. */
static int next_class(const fab_port *p)
{
    const unsigned ready = p->queued & ~(p->paused | 1u);
    if ((p->queued & 1) && (p->urgent < URGENT_IN_A_ROW || !ready))
        return 0;
    if (!ready)
        return -1;
    const unsigned from = (p->last_class + 1u) % FAB_CLASSES;
    const unsigned turned = (ready >> from | ready << (FAB_CLASSES - from)) & 0xff;
    return (int)((from + (unsigned)__builtin_ctz(turned)) % FAB_CLASSES);
}

static uint32_t take_frame(fab *f, fab_port *p, unsigned class)
{
    fab_queue *q = queue_of(f, p, class);
    const uint32_t frame = fab_queue_pop(f, &q->head);
    if (q->head == FAB_NONE) {
        p->queued &= (uint8_t) ~(1u << class);
    } else { /* it has been here for long, and is next */
        __builtin_prefetch(&f->frames[q->head]);
        if (f->hops)
            __builtin_prefetch(&f->hops[(size_t)q->head * f->hops_each], 1);
    }
    p->queued_bytes -= f->frames[frame].size;
    return frame;
}

/* The order matters: the queue is shortened before the marking decision, and the ingress account is
 * released before a resume is considered. */
static void leave_buffer(fab *f, fab_port *p, unsigned class, uint32_t frame)
{
    const uint32_t size = f->frames[frame].size;
    fab_port *in = &f->ports[f->frames[frame].in];
    fab_queue *from = queue_of(f, in, class), *q = queue_of(f, p, class);
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

/* Called whenever something may have changed: a packet arrived, a pause ended, the wire is free.
 * It sends at most one packet; the rest waits for the port (fab_port_await), so a port never has
 * two transmissions at once. */
void fab_switch_try(fab *f, fab_port *p)
{
    if (p->is_down)
        return;
    if (fab_port_is_busy(f, p)) {
        fab_port_await(f, p);
        return;
    }
    const int class = next_class(p);
    if (class < 0)
        return;
    if (f->config.trimming)
        p->urgent = class ? 0 : (uint8_t)fab_at_most(p->urgent + 1u, URGENT_IN_A_ROW);
    const uint32_t frame = take_frame(f, p, (unsigned)class);
    /* With PFC, class 0 was never accounted: see fab_switch_receive. */
    if (class || !f->config.enable_pfc)
        leave_buffer(f, p, (unsigned)class, frame);
    fab_frame *m = &f->frames[frame];
    if (f->control && f->control->forward && m->kind == FAB_FRAME_DATA)
        f->control->forward(f, p, m);
    p->bytes_sent += m->size;
    /* Read by HPCC and PINT with the next packet; others do not pay for the stores. */
    if (f->control && f->control->forward) {
        p->last_size = m->size;
        p->last_at = f->now;
    }
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, m, FAB_FRAME_DEQUEUED, (unsigned)class);
    fab_port_transmit(f, p, frame);
    if (p->queued)
        fab_port_await(f, p);
}

/* ---- receiving ---- */

static void refuse(fab *f, uint32_t frame)
{
    f->figures.dropped++;
    fab_frame_drop(f, frame);
}

/* A switch that would drop data forwards its header, with priority (TRIMMING). */
static bool trim(fab *f, fab_frame *m)
{
    if (!f->config.trimming || m->kind != FAB_FRAME_DATA)
        return false;
    m->kind = FAB_FRAME_TRIMMED;
    m->size = FAB_HEADER_BYTES + f->int_bytes;
    m->class = 0;
    f->figures.trimmed++;
    return true;
}

/* No pauses: a packet that does not fit is cut to its header, or dropped. */
static void receive_lossy(fab *f, fab_port *in, fab_port *out, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    if (!has_room(f, out, m->class, m->size) &&
        !(trim(f, m) && has_room(f, out, m->class, m->size))) {
        refuse(f, frame);
        return;
    }
    m->in = fab_port_of(f, in);
    f->nodes[out->node].shared += m->size;
    queue_of(f, out, m->class)->egress += m->size;
    enqueue(f, out, m->class, frame);
}

/* The sender is paused after its packet was accounted and before it is queued: queueing may send it
 * at once, which would empty the account again, and the reference pauses all the same. */
void fab_switch_receive(fab *f, fab_port *in, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    const uint32_t out_port = fab_route(f, in->node, m);
    const unsigned class = m->class;
    const uint32_t size = m->size;
    fab_queue *q = queue_of(f, in, class);
    if (out_port != FAB_NONE && !f->config.enable_pfc) {
        receive_lossy(f, in, &f->ports[out_port], frame);
        return;
    }
    if (out_port != FAB_NONE && class == 0) { /* never paused and not accounted */
        enqueue(f, &f->ports[out_port], 0, frame);
        return;
    }
    if (out_port == FAB_NONE || !admits(f, in, q, size)) {
        refuse(f, frame);
        return;
    }
    fab_port *out = &f->ports[out_port];
    m->in = fab_port_of(f, in);
    account(f, in, q, size);
    queue_of(f, out, class)->egress += size;
    pause_if_needed(f, in, q, class);
    enqueue(f, out, class, frame);
}

/* A packet lost inside the switch because its link went down: the accounts must not keep it, or the
 * sender would stay paused forever. */
void fab_switch_forget(fab *f, fab_port *p, uint32_t frame)
{
    const fab_frame *m = &f->frames[frame];
    fab_port *in = &f->ports[m->in];
    const unsigned class = m->class;
    fab_queue *from = queue_of(f, in, class);
    queue_of(f, p, class)->egress -= m->size;
    if (!f->config.enable_pfc) {
        f->nodes[p->node].shared -= m->size;
        return;
    }
    release(f, in, from, m->size);
    resume_if_possible(f, in, from, class);
}

/* ---- port set-up ---- */

static void set_up_port(fab *f, fab_port *p, uint64_t nic_rate)
{
    const uint64_t delay_ns = p->delay / f->unit;
    const unsigned __int128 on_wire = (unsigned __int128)p->rate * delay_ns / 8 / 1000000000u;
    /* Bytes in flight during one delay; the factor also covers the time of the pause frame to the
     * sender. */
    p->headroom = (uint32_t)(on_wire * f->config.headroom_factor);
    /* An eighth of the free buffer at the rate of a NIC, doubled with each doubling of the rate. */
    p->shift = 3;
    for (uint64_t rate = p->rate; rate > nic_rate && p->shift; rate /= 2)
        p->shift--;
    if (f->nodes[p->node].kind == ORR__NVSWITCH) { /* marks nothing (packet-network.md 13) */
        p->kmin = p->kmax = UINT64_MAX;
        return;
    }
    for (unsigned i = 0; i < f->config.mark_count; i++)
        if (f->config.marks[i].rate == p->rate) {
            p->kmin = f->config.marks[i].kmin;
            p->kmax = f->config.marks[i].kmax;
            p->pmax = f->config.marks[i].pmax;
            /* above kmax everything is marked, whatever kmin is (packet-network.md 7.3) */
            if (p->kmin > p->kmax)
                p->kmin = p->kmax;
        }
}

void fab_switch_set_up(fab *f, uint64_t nic_rate)
{
    const uint32_t whole = (uint32_t)(f->config.buffer_mib << 20);
    for (uint32_t n = 0; n < f->node_count; n++)
        f->nodes[n].available = whole;
    for (uint32_t i = 0; i < f->port_count; i++) {
        fab_port *p = &f->ports[i];
        if (!p->is_switch)
            continue;
        set_up_port(f, p, nic_rate);
        if (!f->config.enable_pfc)
            continue; /* nothing in flight needs protection */
        f->nodes[p->node].available -= p->headroom + FAB_RESERVE;
    }
}
