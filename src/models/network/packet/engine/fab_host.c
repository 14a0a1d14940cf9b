/* SPDX-License-Identifier: Apache-2.0 */
/* fab_host.c - hosts: flows, their NICs, receivers and senders (packet-network.md 6).
 *
 * The state of a flow at its receiver lies beside that at its sender, and a frame on its way keeps
 * both alive.  The frame that brought data goes back as its ACK. */
#include "fabric_impl.h"

enum { NACK_INTERVAL_NS = 500000, NIC_PAUSE_NS = 10000, NIC_READY_NS = 1000000 };

/* ---- rates ---- */

/* The window may follow the rate. */
static void rate_has_changed(fab *f, uint32_t flow)
{
    if (f->config.var_window)
        fab_nic_update(f, flow);
}

void fab_flow_change_rate(fab *f, uint32_t flow, uint64_t rate)
{
    f->flows[flow].rate = rate;
    rate_has_changed(f, flow);
}

/* ---- the NIC ---- */

static void wake_at(fab *f, fab_port *p, uint64_t at)
{
    f->nics[p->nic].wake =
        fab_after(f, at > f->now ? at - f->now : 0, FAB_EV_WAKE, fab_port_of(f, p));
}

/* A flow may send earlier than the NIC would look (packet-network.md 8.2). */
static void wake_by(fab *f, fab_port *p, uint64_t at)
{
    fab_nic *n = &f->nics[p->nic];
    if (n->wake == FAB_NO_EVENT || at >= fab_wheel_event(&f->wheel, n->wake)->at)
        return;
    fab_cancel(f, &n->wake);
    wake_at(f, p, at);
}

void fab_flow_set_rate(fab *f, uint32_t flow, uint64_t rate)
{
    fab_flow *w = &f->flows[flow];
    fab_port *p = &f->ports[w->port];
    w->next_at += fab_transmission_time(f, w->last_size, rate) -
                  fab_transmission_time(f, w->last_size, w->rate);
    if (w->is_listed)
        fab_nic_pace(f, flow, fab_port_is_busy(f, p) ? p->busy_until : f->now);
    wake_by(f, p, w->next_at);
    fab_flow_change_rate(f, flow, rate);
}

static uint32_t own_ports(const fab_flow *w)
{
    return w->src_port | (uint32_t)w->dst_port << 16;
}

static uint32_t swapped_ports(const fab_flow *w)
{
    return w->dst_port | (uint32_t)w->src_port << 16;
}

static void arm_timeout(fab *f, uint32_t flow);

/* The entropy of a packet: switches hash it, so that packets of one flow can take different
 * routes (LOAD_BALANCE). */
static uint16_t choose_entropy(const fab *f, fab_flow *w)
{
    if (!f->config.load_balance)
        return 0;
    const bool is_after_gap = f->now - w->last_sent_at > f->config.flowlet_gap_ns * f->unit;
    w->last_sent_at = f->now;
    switch (f->config.load_balance) {
    case ORR__BALANCE_SPRAY:
        return ++w->entropy;
    case ORR__BALANCE_FLOWLET:
        return is_after_gap ? ++w->entropy : w->entropy;
    case ORR__BALANCE_REPS:
        return w->good_count ? w->good[--w->good_count] : ++w->entropy;
    default:
        return 0;
    }
}

static void remember_route(fab_flow *w, const fab_frame *ack)
{
    if (!ack->echoes_mark && w->good_count < FAB_GOOD_ROUTES)
        w->good[w->good_count++] = ack->power;
}

static uint32_t next_packet(fab *f, uint32_t flow)
{
    const uint32_t id = fab_frame_new(f);
    if (id == FAB_NONE)
        return id;
    fab_flow *w = &f->flows[flow];
    uint64_t sequence = w->sent;
    const bool is_again = fab_flow_misses(w);
    if (is_again)
        sequence = fab_selective_again(f, w);
    const uint64_t left = w->size - sequence;
    const uint32_t payload = (uint32_t)(left < f->config.payload ? left : f->config.payload);
    f->frames[id] = (fab_frame){.kind = FAB_FRAME_DATA,
                                .sequence = sequence,
                                .stamp = f->now,
                                .power = choose_entropy(f, w),
                                .flow = flow,
                                .size = payload + FAB_HEADER_BYTES + f->int_bytes,
                                .payload = payload,
                                .from = w->src,
                                .to = w->dst,
                                .ports = own_ports(w),
                                .class = w->class,
                                .is_last = payload == left};
    w->sent += is_again ? 0 : payload;
    const uint64_t fresh = w->sent > w->highest ? w->sent - w->highest : 0;
    w->highest += fresh;
    f->figures.retransmitted_bytes += payload - fresh;
    w->in_flight += payload;
    w->frames++;
    f->figures.data_packets++;
    f->figures.data_bytes += payload;
    return id;
}

static void send_packet(fab *f, fab_port *p, uint32_t flow)
{
    const uint32_t id = next_packet(f, flow);
    if (id == FAB_NONE)
        return;
    const uint32_t size = f->frames[id].size;
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, &f->frames[id], FAB_FRAME_DEQUEUED, f->frames[id].class);
    fab_port_transmit(f, p, id);
    p->bytes_sent += size;
    fab_flow *w = &f->flows[flow];
    w->last_size = size;
    const bool at_line_rate = !f->config.rate_bound || w->rate == p->rate;
    w->next_at = at_line_rate
                     ? p->busy_until
                     : f->now + fab_transmission_time(f, size + f->config.wire_overhead, w->rate);
    fab_nic_update(f, flow);
    f->frames[id].asks_ack = !w->is_open;
    fab_nic_pace(f, flow, p->busy_until);
    if (f->rules.has_timeouts)
        arm_timeout(f, flow);
    if (w->after != FAB_NONE && w->highest >= w->size) {
        const uint32_t next = w->after;
        w->after = FAB_NONE;
        fab_host_ready(f, next);
    }
}

/* A pause holds no pause frames, or hosts that pause each other would wait forever; the reference
 * holds them, too. */
static bool is_never_held(const fab *f, uint32_t frame)
{
    return f->frames[frame].kind == FAB_FRAME_PFC && !f->rules.holds_all_acks;
}

/* The class whose pause holds back the ACK that is next; to the reference all are of
 * class 3. */
static inline unsigned class_of_acks(const fab *f, const fab_nic *n)
{
    if (f->rules.holds_all_acks)
        return f->config.ack_high_prio ? 0 : FAB_FLOW_CLASS;
    return f->frames[n->ack_head].class;
}

/* ACKs of the highest class overtake data that passes through a host, as they do in switches. */
static void queue_reply(fab *f, fab_nic *n, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    if (!f->rules.acks_high_in_switches || m->class != 0 || m->kind == FAB_FRAME_DATA) {
        fab_queue_push(f, &n->ack_head, &n->ack_tail, frame);
        return;
    }
    uint32_t *at = n->urgent_tail == FAB_NONE ? &n->ack_head : &f->frames[n->urgent_tail].next;
    while (*at != FAB_NONE && is_never_held(f, *at))
        at = &f->frames[*at].next;
    m->next = *at;
    if (*at == FAB_NONE)
        n->ack_tail = frame;
    *at = frame;
    n->urgent_tail = frame;
}

static bool send_ack_waiting(fab *f, fab_port *p, fab_nic *n)
{
    if (n->ack_head == FAB_NONE ||
        ((p->paused >> class_of_acks(f, n) & 1) && !is_never_held(f, n->ack_head)))
        return false;
    const uint32_t frame = fab_queue_pop(f, &n->ack_head);
    if (frame == n->urgent_tail)
        n->urgent_tail = FAB_NONE;
    if (n->ack_head != FAB_NONE)
        __builtin_prefetch(&f->frames[n->ack_head]);
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, &f->frames[frame], FAB_FRAME_DEQUEUED, 0);
    p->bytes_sent += f->frames[frame].size;
    if (f->rules.forwards_in_turn && f->frames[frame].kind == FAB_FRAME_DATA)
        n->has_forwarded = true; /* an ACK is nobody's turn */
    fab_port_transmit(f, p, frame);
    return true;
}

/* Nobody may send now: look again when the first may. */
static void sleep_until_next(fab *f, fab_port *p, const fab_nic *n)
{
    uint64_t at;
    if (fab_nic_next(f, n, &at) && n->wake == FAB_NO_EVENT)
        wake_at(f, p, at);
}

/* Of what passes through and its own a host sends a packet each; or what passes through could keep it waiting. */
static bool is_own_turn(const fab *f, const fab_nic *n)
{
    return n->has_forwarded && n->ack_head != FAB_NONE &&
           f->frames[n->ack_head].kind == FAB_FRAME_DATA;
}

/* packet-network.md 6.5. */
void fab_host_try(fab *f, fab_port *p)
{
    fab_nic *n = &f->nics[p->nic];
    if (p->is_down)
        return;
    if (fab_port_is_busy(f, p)) {
        fab_port_await(f, p);
        return;
    }
    uint32_t flow = is_own_turn(f, n) ? fab_nic_choose(f, p) : FAB_NONE;
    if (flow == FAB_NONE && !send_ack_waiting(f, p, n)) {
        flow = fab_nic_choose(f, p);
        if (flow == FAB_NONE) {
            sleep_until_next(f, p, n);
            return;
        }
    }
    if (flow != FAB_NONE) {
        n->has_forwarded = false;
        send_packet(f, p, flow);
    }
    if (n->count || n->ack_head != FAB_NONE)
        fab_port_await(f, p);
}

/* False: there is no route now; the flow stands at the first NICs of its hosts. */
static bool choose_nics(fab *f, fab_flow *w)
{
    const uint32_t from = fab_nic_towards(f, w->src, w->dst, own_ports(w), NET_ECMP_HOST_SEED);
    const uint32_t back = fab_nic_towards(f, w->dst, w->src, swapped_ports(w), NET_ECMP_HOST_SEED);
    const bool has_route = from != FAB_NONE && back != FAB_NONE;
    w->port = has_route ? from : f->ports_of[f->nodes[w->src].first_port];
    w->ack_port = has_route ? back : f->ports_of[f->nodes[w->dst].first_port];
    return has_route;
}

/* With L2_BACK_TO_ZERO whole chunks are acknowledged: can the window be filled before one is
 * complete? */
static bool can_fill_chunk(const fab *f, const fab_flow *w)
{
    const uint64_t payload = f->config.payload,
                   reach = (w->window + payload - 1) / payload * payload;
    return !f->rules.completes_chunks || !f->config.back_to_zero || !w->window ||
           w->size <= reach || f->config.chunk <= reach;
}

/* What its connection has to send first is not out yet.  A slot may have gone to another flow since. */
static bool waits_its_turn(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_flow *before = w->before != FAB_NONE ? &f->flows[w->before] : NULL;
    w->before = FAB_NONE;
    if (!before || before == w || !before->is_used || before->src != w->src ||
        before->dst != w->dst || before->highest >= before->size)
        return false;
    before->after = flow;
    w->started_at = f->now;
    return true;
}

void fab_host_ready(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_path path;
    if (waits_its_turn(f, flow))
        return;
    const bool has_route = choose_nics(f, w) && fab_find_path(f, w->src, w->dst, &path);
    if (f->lanes) {
        fab_need_routes(f, w->src);
        fab_need_routes(f, w->dst);
    }
    w->awaits_route = !has_route && f->main->planned && f->rules.waits_for_repair;
    if (w->awaits_route)
        return; /* a link may be repaired */
    if (!has_route) {
        fab_fail(f, ORR_EINPUT, "there is no route from host %u to host %u over links that work%s",
                 w->src, w->dst,
                 f->config.forward_hosts || !f->rules.waits_for_repair
                     ? ""
                     : "; hosts pass nothing on (FORWARDING_HOSTS 1: they do)");
        return;
    }
    const bool is_global = f->config.global_t;
    w->window = !f->config.has_window ? 0 : is_global ? f->max_bdp : fab_path_bdp(f, &path);
    w->base_rtt = is_global ? f->max_rtt : fab_path_rtt(&path);
    if (!can_fill_chunk(f, w)) {
        fab_fail(f, ORR_EINPUT,
                 "L2_BACK_TO_ZERO 1: the window from host %u to host %u, %llu bytes, is "
                 "smaller than a chunk (L2_CHUNK_SIZE %llu): none would be acknowledged",
                 w->src, w->dst, (unsigned long long)w->window,
                 (unsigned long long)f->config.chunk);
        return;
    }
    w->rate = w->line_rate = f->ports[w->port].rate;
    if (!w->started_at) /* it may have waited for its turn */
        w->started_at = f->now;
    w->next_at = w->last_sent_at = f->now;
    if (f->config.selective && !fab_selective_start(f, flow)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    if (f->control && f->control->start)
        f->control->start(f, flow);
    if (f->watch.hears & FAB_HEARS_FLOWS)
        fab_tell_flow(f, flow, false);
    if (!fab_nic_add(f, &f->nics[f->ports[w->port].nic], flow)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    fab_host_try(f, &f->ports[w->port]);
}

static orr_code take_nic(fab *f, uint32_t flow, orr_error *err)
{
    fab_flow *w = &f->flows[flow];
    const bool has_route = choose_nics(f, w);
    if (!has_route && !f->rules.waits_for_repair)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "after a failure there is no route from host %u to host %u", w->src,
                        w->dst);
    if (!has_route)
        return ORR_OK; /* it waits for a repair */
    if (!fab_nic_add(f, &f->nics[f->ports[w->port].nic], flow))
        return orr_no_memory(err);
    fab_host_try(fab_acting(f, w->src), &f->ports[w->port]);
    return ORR_OK;
}

/* All flows of all hosts take the NICs that the new routes give them (packet-network.md 9). */
orr_code fab_host_redistribute(fab *f, orr_error *err)
{
    uint32_t *flows;
    size_t count;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < f->nic_count; i++)
        fab_nic_clear(f, &f->nics[i]);
    if (!fab_flows_under_way(f, &flows, &count))
        return orr_no_memory(err);
    for (size_t i = 0; i < count && !code; i++)
        if (f->flows[flows[i]].rate)
            code = take_nic(f, flows[i], err);
    orr_free(flows);
    return code;
}

/* A host that passes packets on puts them before its own (packet-network.md 14 row 13). */
void fab_host_forward(fab *f, uint32_t node, uint32_t frame)
{
    const uint32_t out_port = fab_route(f, node, &f->frames[frame]);
    if (out_port == FAB_NONE) {
        f->figures.dropped++;
        fab_frame_drop(f, frame);
        return;
    }
    fab_port *p = &f->ports[out_port];
    queue_reply(f, &f->nics[p->nic], frame);
    fab_host_try(f, p);
}

/* ---- the receiver (packet-network.md 6.3) ---- */

static void send_reply(fab *f, uint32_t frame, fab_frame_kind kind)
{
    fab_frame *m = &f->frames[frame];
    const fab_flow *w = &f->flows[m->flow];
    fab_port *p = &f->ports[w->ack_port];
    fab_nic *n = &f->nics[p->nic];
    m->kind = (uint8_t)kind;
    m->size = f->ack_bytes;
    m->sequence = w->expected;
    m->is_last = w->expected >= w->size_rx;
    const uint32_t sender = m->from;
    m->from = m->to;
    m->to = sender;
    m->ports = m->ports << 16 | m->ports >> 16;
    m->echoes_mark = m->is_marked;
    if ((f->config.ack_high_prio && f->rules.acks_high_in_switches) || f->config.trimming)
        m->class = 0; /* in switches, too (packet-network.md 14 row 12) */
    m->is_marked = false;
    if (kind == FAB_FRAME_ACK)
        f->figures.acks++;
    else
        f->figures.nacks++;
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, m, FAB_FRAME_ENQUEUED, 0);
    queue_reply(f, n, frame);
    fab_host_try(f, p);
}

/* What comes in order is acknowledged; in the reference from the first interval on, every packet
 * (packet-network.md 14 row 4).  A packet that fills the window asks for it: else a window smaller
 * than the interval would wait for the timer. */
static bool wants_ack(const fab *f, const fab_flow *w, const fab_frame *m, uint64_t gained)
{
    const uint64_t interval = f->config.ack_interval;
    if (f->rules.acks_all_after_first)
        return w->expected >= interval || w->expected % f->config.chunk == 0;
    return m->asks_ack || interval <= 1 || w->expected >= w->size_rx ||
           w->expected % f->config.chunk == 0 ||
           w->expected / interval != (w->expected - gained) / interval;
}

static bool wants_nack(fab *f, fab_flow *w)
{
    if (f->now < w->nack_at && w->last_nacked == w->expected)
        return false;
    w->nack_at = f->now + NACK_INTERVAL_NS * f->unit;
    w->last_nacked = w->expected;
    if (f->config.back_to_zero)
        w->expected -= w->expected % f->config.chunk;
    return true;
}

static void tell_arrival(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    if (w->has_arrived || w->expected < w->size_rx)
        return;
    w->has_arrived = true;
    if (f->rules.tells_receiver_at_ack || !f->listener.arrived)
        return;
    if (f->is_in_window)
        fab_lanes_note_arrival(f, w);
    else
        f->listener.arrived(f->listener.context, w->token);
}

static void make_nic_pause(fab *f, const fab_flow *w);

/* Only its header came: the sender need not wait for a timer. */
static void receive_trimmed(fab *f, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    const fab_flow *w = &f->flows[m->flow];
    if (!w->got) {
        fab_frame_drop(f, frame);
        return;
    }
    m->payload = (uint32_t)(m->sequence / f->config.payload);
    m->is_marked = true;
    send_reply(f, frame, FAB_FRAME_NACK);
}

/* A sender that goes back to the start of a chunk sends packets that begin elsewhere than the first
 * ones did: one may begin with what is known.  The reference takes it for one that was there
 * before. */
static inline bool brings_next(const fab *f, const fab_flow *w, const fab_frame *m)
{
    return m->sequence == w->expected ||
           (m->sequence < w->expected && m->sequence + m->payload > w->expected &&
            f->rules.accepts_overlap);
}

static void receive_data(fab *f, uint32_t frame)
{
    const fab_frame *m = &f->frames[frame];
    const uint32_t flow = m->flow, payload = m->payload;
    fab_flow *w = &f->flows[flow];
    if (f->config.nic_pauses)
        make_nic_pause(f, w);
    if (w->got) {
        fab_selective_take(f, w, m);
        f->frames[frame].payload = (uint32_t)(m->sequence / f->config.payload);
        send_reply(f, frame, FAB_FRAME_ACK);
        tell_arrival(f, flow);
    } else if (brings_next(f, w, m)) {
        const uint64_t gained = m->sequence + payload - w->expected;
        w->expected += gained;
        if (wants_ack(f, w, m, gained))
            send_reply(f, frame, FAB_FRAME_ACK);
        else
            fab_frame_drop(f, frame);
        if (!f->rules.tells_receiver_at_ack)
            tell_arrival(f, flow);
    } else if (m->sequence > w->expected && wants_nack(f, w)) {
        send_reply(f, frame, FAB_FRAME_NACK);
    } else if (m->sequence < w->expected && f->rules.acks_duplicates) {
        send_reply(f, frame,
                   FAB_FRAME_ACK); /* the first one may be lost (packet-network.md 14 row 5) */
    } else {
        fab_frame_drop(f, frame);
    }
}

/* ---- the sender (packet-network.md 6.4) ---- */

/* Written down, forgotten by the receiver, told to those who wait; in this order (packet-network.md
 * 6.1).  Of what is not the sender's nothing is touched in a window, and the receiver forgets
 * nothing (rules.forgets_receiver: it does): it cannot know, and answers what was sent twice. */
static void complete(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    const bool is_for_later = f->is_in_window;
    const fab_flow_end end = {w->token, w->size, f->now - w->started_at, fab_flow_ideal(f, w)};
    if (is_for_later)
        fab_lanes_note_done(f, w, &end);
    else if (f->watch.hears & FAB_HEARS_LINES)
        fab_tell_line(f, w, end.ideal, NULL);
    if (f->watch.hears & FAB_HEARS_FLOWS)
        fab_tell_flow(f, flow, true);
    if (f->rules.forgets_receiver)
        w->expected = w->last_nacked = w->nack_at = 0;
    w->is_complete = true;
    fab_cancel(f, &w->timeout);
    if (f->control && f->control->stop)
        f->control->stop(f, flow);
    if (!is_for_later)
        fab_flow_report_done(f->main, &end);
}

static void receive_ack(fab *f, uint32_t frame)
{
    const fab_frame m = f->frames[frame];
    fab_flow *w = &f->flows[m.flow];
    if (w->is_complete) {
        fab_frame_drop(f, frame);
        return;
    }
    const uint64_t before = w->acked;
    const uint64_t sequence =
        f->config.back_to_zero ? m.sequence - m.sequence % f->config.chunk : m.sequence;
    if (sequence > w->acked)
        w->acked = sequence;
    /* The last ACK counts whole, or a size that is no multiple of the chunk would never
     * be done. */
    if (f->rules.completes_chunks && m.sequence >= w->size)
        w->acked = w->size;
    if (w->is_selective)
        fab_selective_acked(f, w, &m);
    if (f->config.load_balance == ORR__BALANCE_REPS)
        remember_route(w, &m);
    if (m.echoes_mark && (f->watch.hears & FAB_HEARS_MARKS))
        fab_tell_mark(f, m.flow);
    if (w->acked >= w->size)
        complete(f, m.flow);
    w = &f->flows[m.flow]; /* others may have been made */
    if (m.kind == FAB_FRAME_NACK && !w->is_selective)
        w->sent = w->acked;
    else if (f->rules.skips_acked && w->sent < w->acked)
        w->sent = w->acked;
    if (f->control && f->control->acked)
        f->control->acked(f, m.flow, &f->frames[frame]);
    w = &f->flows[m.flow];
    const bool has_news =
        w->acked > before || (w->is_selective && (w->repeat->news || m.kind == FAB_FRAME_NACK));
    if (f->rules.has_timeouts && !w->is_complete && has_news) {
        w->timeouts = 0;
        w->heard_at = f->now;
    }
    fab_port *p = &f->ports[w->port];
    fab_nic_update(f, m.flow);
    fab_frame_drop(f, frame);
    fab_host_try(f, p);
}

void fab_host_receive(fab *f, uint32_t frame)
{
    const uint8_t kind = f->frames[frame].kind;
    if (kind == FAB_FRAME_DATA)
        receive_data(f, frame);
    else if (kind == FAB_FRAME_TRIMMED)
        receive_trimmed(f, frame);
    else
        receive_ack(f, frame);
}

/* ---- retransmission timer (rules.has_timeouts) ---- */

enum { MOST_TIMEOUTS = 64, MOST_DOUBLINGS = 6 };

/* What can stand before a packet on its way: a buffer; or the queues of some switches if they have
 * a limit. */
static uint64_t standing_bytes(const fab *f)
{
    const uint64_t buffer = f->config.buffer_mib << 20, queues = 8 * f->config.queue_limit;
    return !queues || buffer < queues ? buffer : queues;
}

/* Four times the base round trip and what full queues can add, at least 100 us; twice that each
 * time. */
static uint64_t timeout_of(const fab *f, const fab_flow *w)
{
    const uint64_t drain = fab_transmission_time(f, standing_bytes(f), w->line_rate);
    const uint64_t least = 100000 * f->unit, some = 4 * w->base_rtt + drain;
    const unsigned doublings = w->timeouts < MOST_DOUBLINGS ? w->timeouts : MOST_DOUBLINGS;
    return (some > least ? some : least) << doublings;
}

/* The last of many timeouts ends the run, which concerns all. */
static void set_timer(fab *f, uint32_t flow, uint64_t ticks)
{
    fab_flow *w = &f->flows[flow];
    w->timeout = fab_after(f, ticks, FAB_EV_TIMEOUT, flow);
    if (f->lanes && w->timeouts + 2 > MOST_TIMEOUTS)
        fab_lanes_expect(f, f->now + ticks);
}

static void arm_timeout(fab *f, uint32_t flow)
{
    const fab_flow *w = &f->flows[flow];
    if (w->timeout == FAB_NO_EVENT)
        set_timer(f, flow, timeout_of(f, w));
}

/* The timer counts from the latest news, but is not set again for each of them: it looks when its
 * time has come.  A flow has one pending event, then, and not one for each packet of the last
 * millisecond. */
static bool has_heard(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    const uint64_t from = w->heard_at, until = from + timeout_of(f, w);
    w->heard_at = 0;
    if (!from || until <= f->now)
        return false;
    set_timer(f, flow, until - f->now);
    return true;
}

void fab_host_timeout(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_port *p = &f->ports[w->port];
    w->timeout = FAB_NO_EVENT;
    if (has_heard(f, flow))
        return;
    if (!w->is_listed || (p->paused >> w->class & 1)) {
        arm_timeout(f, flow); /* nothing is lost because somebody waits */
        w->timeouts += !w->is_listed;
        fab_watch_for_stall(f);
        f->end.is_stopped |= f->end.is_stalled |= w->timeouts > MOST_TIMEOUTS;
        return;
    }
    f->figures.timeouts++;
    if (++w->timeouts > MOST_TIMEOUTS) {
        f->end.is_stalled = f->end.is_stopped = true;
        return;
    }
    if (w->is_selective)
        fab_selective_all_again(f, w);
    else
        w->sent = w->acked;
    if (f->control && f->control->timed_out)
        f->control->timed_out(f, flow);
    fab_nic_update(f, flow);
    arm_timeout(f, flow);
    fab_host_try(f, p);
}

/* ---- pauses that a NIC makes (NIC_TOTAL_PAUSE_TIME) ---- */

/* They are counted once a host, at its first NIC. */
fab_nic *fab_host_pauser(fab *f, uint32_t port)
{
    const fab_node *host = &f->nodes[f->ports[port].node];
    return &f->nics[f->ports[f->ports_of[host->first_port]].nic];
}

/* Before all that is no pause frame; with rules.holds_all_acks it waits for its turn. */
static void queue_nic_pfc(fab *f, fab_nic *n, uint32_t frame)
{
    uint32_t *at = &n->ack_head;
    if (f->rules.holds_all_acks) {
        fab_queue_push(f, &n->ack_head, &n->ack_tail, frame);
        return;
    }
    while (*at != FAB_NONE && is_never_held(f, *at))
        at = &f->frames[*at].next;
    f->frames[frame].next = *at;
    if (*at == FAB_NONE)
        n->ack_tail = frame;
    *at = frame;
}

static void send_nic_pfc(fab *f, fab_port *p, bool pauses)
{
    const uint32_t id = fab_frame_new(f);
    fab_nic *n = &f->nics[p->nic];
    if (id == FAB_NONE)
        return;
    if (f->draws)
        f->rules.draws->pfc_sent(f->draws);
    f->frames[id] = (fab_frame){.kind = FAB_FRAME_PFC,
                                .size = FAB_PFC_BYTES,
                                .flow = FAB_NONE,
                                .class = fab_host_pauser(f, fab_port_of(f, p))->pause_class,
                                .pauses = pauses};
    if (pauses)
        fab_pause_note_cause(f, p, &f->frames[id]);
    queue_nic_pfc(f, n, id);
    fab_host_try(f, p);
}

static void make_nic_pause(fab *f, const fab_flow *w)
{
    const uint32_t port = w->ack_port;
    fab_nic *n = fab_host_pauser(f, port);
    if (n->is_between_pauses || n->pauses_made >= f->config.nic_pauses)
        return;
    n->is_between_pauses = true;
    n->pauses_made++;
    n->pause_class = w->class;
    send_nic_pfc(f, &f->ports[port], true);
    (void)fab_after(f, NIC_PAUSE_NS * f->unit, FAB_EV_NIC_RESUME, port);
}

void fab_host_pause_ends(fab *f, uint32_t port)
{
    send_nic_pfc(f, &f->ports[port], false);
    (void)fab_after(f, NIC_READY_NS * f->unit, FAB_EV_NIC_READY, port);
}

/* A pause frame says for how long it holds.  The reference holds until it is told otherwise, and so
 * forever if that frame is lost; here it is twice as long as the host will want. */
void fab_host_pause_came(fab *f, fab_port *p)
{
    if (f->rules.host_pauses_expire)
        (void)fab_after(f, 2 * NIC_PAUSE_NS * f->unit, FAB_EV_PAUSE_OVER, fab_port_of(f, p));
}
