/* SPDX-License-Identifier: Apache-2.0 */
/* fab_host.c - hosts: flows, their NICs, receivers and senders (packet-network.md 6).
 *
 * The state of a flow at its receiver lies beside that at its sender, and a frame on its way keeps
 * both alive.  The frame that brought data goes back as its acknowledgement. */
#include "models/network/packet/watch/series.h"

enum { NACK_INTERVAL_NS = 500000, NIC_PAUSE_NS = 10000, NIC_READY_NS = 1000000 };

/* ---- rates ---- */

/* The window may follow the rate. */
static void rate_has_changed(orr__fabric *f, uint32_t flow)
{
    if (f->config.var_window)
        orr__nic_update(f, flow);
}

void orr__flow_change_rate(orr__fabric *f, uint32_t flow, uint64_t rate)
{
    f->flows[flow].rate = rate;
    rate_has_changed(f, flow);
}

/* ---- the NIC ---- */

static void wake_at(orr__fabric *f, orr__port *p, uint64_t at)
{
    f->nics[p->nic].wake =
        orr__fabric_after(f, at > f->now ? at - f->now : 0, ORR__EV_WAKE, orr__port_of(f, p));
}

/* A flow may send earlier than the NIC would look (packet-network.md 8.2). */
static void wake_by(orr__fabric *f, orr__port *p, uint64_t at)
{
    orr__nic *n = &f->nics[p->nic];
    if (n->wake == ORR__NO_EVENT || at >= orr__wheel_event(&f->wheel, n->wake)->at)
        return;
    orr__fabric_cancel(f, &n->wake);
    wake_at(f, p, at);
}

void orr__flow_set_rate(orr__fabric *f, uint32_t flow, uint64_t rate)
{
    orr__flow *w = &f->flows[flow];
    orr__port *p = &f->ports[w->port];
    w->next_at += orr__transmission_time(f, w->last_size, rate) -
                  orr__transmission_time(f, w->last_size, w->rate);
    if (w->is_listed)
        orr__nic_pace(f, flow, orr__port_is_busy(f, p) ? p->busy_until : f->now);
    wake_by(f, p, w->next_at);
    orr__flow_change_rate(f, flow, rate);
}

static uint32_t own_ports(const orr__flow *w)
{
    return w->src_port | (uint32_t)w->dst_port << 16;
}

static uint32_t swapped_ports(const orr__flow *w)
{
    return w->dst_port | (uint32_t)w->src_port << 16;
}

static void arm_timeout(orr__fabric *f, uint32_t flow);

/* What parts the packets of a flow, so that switches choose ways for them anew (LOAD_BALANCE). */
static uint16_t choose_entropy(const orr__fabric *f, orr__flow *w)
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

static void remember_way(orr__flow *w, const orr__frame *ack)
{
    if (!ack->echoes_mark && w->good_count < ORR__GOOD_WAYS)
        w->good[w->good_count++] = ack->power;
}

static uint32_t next_packet(orr__fabric *f, uint32_t flow)
{
    const uint32_t id = orr__frame_new(f);
    if (id == ORR__NOBODY)
        return id;
    orr__flow *w = &f->flows[flow];
    uint64_t sequence = w->sent;
    const bool is_again = orr__flow_misses(w);
    if (is_again)
        sequence = orr__selective_again(f, w);
    const uint64_t left = w->size - sequence;
    const uint32_t payload = (uint32_t)(left < f->config.payload ? left : f->config.payload);
    f->frames[id] = (orr__frame){.kind = ORR__FRAME_DATA,
                                 .sequence = sequence,
                                 .stamp = f->now,
                                 .power = choose_entropy(f, w),
                                 .flow = flow,
                                 .size = payload + ORR__HEADER_BYTES + f->int_bytes,
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

static void send_packet(orr__fabric *f, orr__port *p, uint32_t flow)
{
    const uint32_t id = next_packet(f, flow);
    if (id == ORR__NOBODY)
        return;
    const uint32_t size = f->frames[id].size;
    if (orr__writer_traces(f))
        orr__fabric_write_trace(f, p, &f->frames[id], ORR__TRACE_DEQUEUE, f->frames[id].class);
    orr__port_transmit(f, p, id);
    p->bytes_sent += size;
    orr__flow *w = &f->flows[flow];
    w->last_size = size;
    const bool at_line_rate = !f->config.rate_bound || w->rate == p->rate;
    w->next_at = at_line_rate
                     ? p->busy_until
                     : f->now + orr__transmission_time(f, size + f->config.wire_overhead, w->rate);
    orr__nic_update(f, flow);
    f->frames[id].asks_ack = !w->is_open;
    orr__nic_pace(f, flow, p->busy_until);
    if (f->rules.has_timeouts)
        arm_timeout(f, flow);
}

/* A pause holds no pause frames, or hosts that pause each other would wait for ever; the reference
 * holds them, too. */
static bool is_never_held(const orr__fabric *f, uint32_t frame)
{
    return f->frames[frame].kind == ORR__FRAME_PFC && !f->rules.holds_all_acks;
}

/* The class whose pause holds back the acknowledgement that is next; to the reference all are of
 * class 3. */
static inline unsigned class_of_acks(const orr__fabric *f, const orr__nic *n)
{
    if (f->rules.holds_all_acks)
        return f->config.ack_high_prio ? 0 : ORR__FLOW_CLASS;
    return f->frames[n->ack_head].class;
}

static bool send_ack_waiting(orr__fabric *f, orr__port *p, orr__nic *n)
{
    if (n->ack_head == ORR__NOBODY ||
        ((p->paused >> class_of_acks(f, n) & 1) && !is_never_held(f, n->ack_head)))
        return false;
    const uint32_t frame = orr__queue_pop(f, &n->ack_head);
    if (n->ack_head != ORR__NOBODY)
        __builtin_prefetch(&f->frames[n->ack_head]);
    if (orr__writer_traces(f))
        orr__fabric_write_trace(f, p, &f->frames[frame], ORR__TRACE_DEQUEUE, 0);
    p->bytes_sent += f->frames[frame].size;
    orr__port_transmit(f, p, frame);
    return true;
}

/* Nobody may send now: look again when the first may. */
static void sleep_until_next(orr__fabric *f, orr__port *p, const orr__nic *n)
{
    uint64_t at;
    if (orr__nic_next(f, n, &at) && n->wake == ORR__NO_EVENT)
        wake_at(f, p, at);
}

/* packet-network.md 6.5. */
void orr__host_try(orr__fabric *f, orr__port *p)
{
    orr__nic *n = &f->nics[p->nic];
    if (p->is_down)
        return;
    if (orr__port_is_busy(f, p)) {
        orr__port_await(f, p);
        return;
    }
    if (!send_ack_waiting(f, p, n)) {
        const uint32_t flow = orr__nic_choose(f, p);
        if (flow == ORR__NOBODY) {
            sleep_until_next(f, p, n);
            return;
        }
        send_packet(f, p, flow);
    }
    if (n->count || n->ack_head != ORR__NOBODY)
        orr__port_await(f, p);
}

#define HOST_SEED 0x8BADF00Du

/* False: there is no way now; the flow stands at the first NICs of its hosts. */
static bool choose_nics(orr__fabric *f, orr__flow *w)
{
    const uint32_t from = orr__fabric_nic_towards(f, w->src, w->dst, own_ports(w), HOST_SEED);
    const uint32_t back = orr__fabric_nic_towards(f, w->dst, w->src, swapped_ports(w), HOST_SEED);
    const bool has_way = from != ORR__NOBODY && back != ORR__NOBODY;
    w->port = has_way ? from : f->ports_of[f->nodes[w->src].first_port];
    w->ack_port = has_way ? back : f->ports_of[f->nodes[w->dst].first_port];
    return has_way;
}

/* With L2_BACK_TO_ZERO whole chunks are acknowledged: can the window be filled before one is
 * complete? */
static bool can_fill_chunk(const orr__fabric *f, const orr__flow *w)
{
    const uint64_t payload = f->config.payload,
                   reach = (w->window + payload - 1) / payload * payload;
    return !f->rules.completes_chunks || !f->config.back_to_zero || !w->window ||
           w->size <= reach || f->config.chunk <= reach;
}

void orr__host_ready(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    orr__path path;
    const bool has_way = choose_nics(f, w) && orr__fabric_path(f, w->src, w->dst, &path);
    if (f->lanes) {
        orr__fabric_need_ways(f, w->src);
        orr__fabric_need_ways(f, w->dst);
    }
    w->awaits_way = !has_way && f->main->planned && f->rules.waits_for_repair;
    if (w->awaits_way)
        return; /* a link may be repaired */
    if (!has_way) {
        orr__fabric_fail(f, ORR_EINPUT,
                         "there is no way from host %u to host %u over links that work%s", w->src,
                         w->dst,
                         f->config.forward_hosts || !f->rules.waits_for_repair
                             ? ""
                             : "; hosts pass nothing on (FORWARDING_HOSTS 1: they do)");
        return;
    }
    const bool is_global = f->config.global_t;
    w->window = !f->config.has_window ? 0 : is_global ? f->max_bdp : orr__path_bdp(f, &path);
    w->base_rtt = is_global ? f->max_rtt : orr__path_rtt(&path);
    if (!can_fill_chunk(f, w)) {
        orr__fabric_fail(f, ORR_EINPUT,
                         "L2_BACK_TO_ZERO 1: the window from host %u to host %u, %llu bytes, is "
                         "smaller than a chunk (L2_CHUNK_SIZE %llu): none would be acknowledged",
                         w->src, w->dst, (unsigned long long)w->window,
                         (unsigned long long)f->config.chunk);
        return;
    }
    w->rate = w->line_rate = f->ports[w->port].rate;
    w->started_at = w->next_at = w->last_sent_at = f->now;
    if (f->config.selective && !orr__selective_start(f, flow)) {
        orr__fabric_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    if (f->control && f->control->start)
        f->control->start(f, flow);
    if (f->series)
        orr__series_flow_starts(f, flow);
    if (!orr__nic_add(f, &f->nics[f->ports[w->port].nic], flow)) {
        orr__fabric_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    orr__host_try(f, &f->ports[w->port]);
}

static orr_code take_nic(orr__fabric *f, uint32_t flow, orr_error *err)
{
    orr__flow *w = &f->flows[flow];
    const bool has_way = choose_nics(f, w);
    if (!has_way && !f->rules.waits_for_repair)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "after a failure there is no way from host %u to host %u", w->src, w->dst);
    if (!has_way)
        return ORR_OK; /* it waits for a repair */
    if (!orr__nic_add(f, &f->nics[f->ports[w->port].nic], flow))
        return orr_no_memory(err);
    orr__host_try(orr__acting(f, w->src), &f->ports[w->port]);
    return ORR_OK;
}

/* All flows of all hosts take the NICs that the new routes give them (packet-network.md 9). */
orr_code orr__host_redistribute(orr__fabric *f, orr_error *err)
{
    uint32_t *flows;
    size_t count;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < f->nic_count; i++)
        orr__nic_clear(f, &f->nics[i]);
    if (!orr__flows_under_way(f, &flows, &count))
        return orr_no_memory(err);
    for (size_t i = 0; i < count && !code; i++)
        if (f->flows[flows[i]].rate)
            code = take_nic(f, flows[i], err);
    orr_free(flows);
    return code;
}

/* A host that passes packets on puts them before its own (packet-network.md 14 row 13). */
void orr__host_forward(orr__fabric *f, uint32_t node, uint32_t frame)
{
    const uint32_t way = orr__fabric_route(f, node, &f->frames[frame]);
    if (way == ORR__NOBODY) {
        f->figures.dropped++;
        orr__frame_drop(f, frame);
        return;
    }
    orr__port *p = &f->ports[way];
    orr__nic *n = &f->nics[p->nic];
    orr__queue_push(f, &n->ack_head, &n->ack_tail, frame);
    orr__host_try(f, p);
}

/* ---- the receiver (packet-network.md 6.3) ---- */

static void send_reply(orr__fabric *f, uint32_t frame, orr__frame_kind kind)
{
    orr__frame *m = &f->frames[frame];
    const orr__flow *w = &f->flows[m->flow];
    orr__port *p = &f->ports[w->ack_port];
    orr__nic *n = &f->nics[p->nic];
    m->kind = (uint8_t)kind;
    m->size = f->ack_bytes;
    m->sequence = w->expected;
    m->is_last = w->expected >= w->whole;
    const uint32_t sender = m->from;
    m->from = m->to;
    m->to = sender;
    m->ports = m->ports << 16 | m->ports >> 16;
    m->echoes_mark = m->is_marked;
    if ((f->config.ack_high_prio && f->rules.acks_high_in_switches) || f->config.trimming)
        m->class = 0; /* in switches, too (packet-network.md 14 row 12) */
    m->is_marked = false;
    if (kind == ORR__FRAME_ACK)
        f->figures.acks++;
    else
        f->figures.nacks++;
    if (orr__writer_traces(f))
        orr__fabric_write_trace(f, p, m, ORR__TRACE_ENQUEUE, 0);
    orr__queue_push(f, &n->ack_head, &n->ack_tail, frame);
    orr__host_try(f, p);
}

/* What comes in order is acknowledged; in the reference from the first interval on, every packet
 * (packet-network.md 14 row 4).  A packet that fills the window asks for it: else a window smaller
 * than the interval would wait for the timer. */
static bool wants_ack(const orr__fabric *f,
                      const orr__flow *w,
                      const orr__frame *m,
                      uint64_t gained)
{
    const uint64_t interval = f->config.ack_interval;
    if (f->rules.acks_all_after_first)
        return w->expected >= interval || w->expected % f->config.chunk == 0;
    return m->asks_ack || interval <= 1 || w->expected >= w->whole ||
           w->expected % f->config.chunk == 0 ||
           w->expected / interval != (w->expected - gained) / interval;
}

static bool wants_nack(orr__fabric *f, orr__flow *w)
{
    if (f->now < w->nack_at && w->last_nacked == w->expected)
        return false;
    w->nack_at = f->now + NACK_INTERVAL_NS * f->unit;
    w->last_nacked = w->expected;
    if (f->config.back_to_zero)
        w->expected -= w->expected % f->config.chunk;
    return true;
}

static void tell_arrival(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    if (w->has_arrived || w->expected < w->whole)
        return;
    w->has_arrived = true;
    if (f->rules.tells_receiver_at_ack || !f->watcher.arrived)
        return;
    if (f->is_in_window)
        orr__lanes_note_arrival(f, w);
    else
        f->watcher.arrived(f->watcher.context, w->token);
}

static void make_nic_pause(orr__fabric *f, const orr__flow *w);

/* Only its header came: the sender need not wait for a timer. */
static void receive_trimmed(orr__fabric *f, uint32_t frame)
{
    orr__frame *m = &f->frames[frame];
    const orr__flow *w = &f->flows[m->flow];
    if (!w->got) {
        orr__frame_drop(f, frame);
        return;
    }
    m->payload = (uint32_t)(m->sequence / f->config.payload);
    m->is_marked = true;
    send_reply(f, frame, ORR__FRAME_NACK);
}

/* A sender that goes back to the start of a chunk sends packets that begin elsewhere than the first
 * ones did: one may begin with what is known.  The reference takes it for one that was there
 * before. */
static inline bool brings_next(const orr__fabric *f, const orr__flow *w, const orr__frame *m)
{
    return m->sequence == w->expected ||
           (m->sequence < w->expected && m->sequence + m->payload > w->expected &&
            f->rules.accepts_overlap);
}

static void receive_data(orr__fabric *f, uint32_t frame)
{
    const orr__frame *m = &f->frames[frame];
    const uint32_t flow = m->flow, payload = m->payload;
    orr__flow *w = &f->flows[flow];
    if (f->config.nic_pauses)
        make_nic_pause(f, w);
    if (w->got) {
        orr__selective_take(f, w, m);
        f->frames[frame].payload = (uint32_t)(m->sequence / f->config.payload);
        send_reply(f, frame, ORR__FRAME_ACK);
        tell_arrival(f, flow);
    } else if (brings_next(f, w, m)) {
        const uint64_t gained = m->sequence + payload - w->expected;
        w->expected += gained;
        if (wants_ack(f, w, m, gained))
            send_reply(f, frame, ORR__FRAME_ACK);
        else
            orr__frame_drop(f, frame);
        if (!f->rules.tells_receiver_at_ack)
            tell_arrival(f, flow);
    } else if (m->sequence > w->expected && wants_nack(f, w)) {
        send_reply(f, frame, ORR__FRAME_NACK);
    } else if (m->sequence < w->expected && f->rules.acks_duplicates) {
        send_reply(f, frame,
                   ORR__FRAME_ACK); /* the first one may be lost (packet-network.md 14 row 5) */
    } else {
        orr__frame_drop(f, frame);
    }
}

/* ---- the sender (packet-network.md 6.4) ---- */

/* Written down, forgotten by the receiver, told to those who wait; in this order (packet-network.md
 * 6.1).  Of what is not the sender's nothing is touched in a window, and the receiver forgets
 * nothing (rules.forgets_receiver: it does): it cannot know, and answers what was sent twice. */
static void complete(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    const bool is_for_later = f->is_in_window;
    const orr__flow_end end = {w->token, w->size, f->now - w->started_at, orr__flow_ideal(f, w)};
    if (is_for_later)
        orr__lanes_note_done(f, w, &end);
    else
        orr__write_fct(f, w, end.ideal);
    if (f->series)
        orr__series_flow_ends(f, flow);
    if (f->rules.forgets_receiver)
        w->expected = w->last_nacked = w->nack_at = 0;
    w->is_complete = true;
    orr__fabric_cancel(f, &w->timeout);
    if (f->control && f->control->stop)
        f->control->stop(f, flow);
    if (!is_for_later)
        orr__flow_tell_done(f->main, &end);
}

static void receive_ack(orr__fabric *f, uint32_t frame)
{
    const orr__frame m = f->frames[frame];
    orr__flow *w = &f->flows[m.flow];
    if (w->is_complete) {
        orr__frame_drop(f, frame);
        return;
    }
    const uint64_t before = w->acked;
    const uint64_t sequence =
        f->config.back_to_zero ? m.sequence - m.sequence % f->config.chunk : m.sequence;
    if (sequence > w->acked)
        w->acked = sequence;
    /* The last acknowledgement counts whole, or a size that is no multiple of the chunk would never
     * be done. */
    if (f->rules.completes_chunks && m.sequence >= w->size)
        w->acked = w->size;
    if (w->is_selective)
        orr__selective_told(f, w, &m);
    if (f->config.load_balance == ORR__BALANCE_REPS)
        remember_way(w, &m);
    if (f->monitor && m.echoes_mark)
        orr__monitor_mark(f, m.flow);
    if (w->acked >= w->size)
        complete(f, m.flow);
    w = &f->flows[m.flow]; /* others may have been made */
    if (m.kind == ORR__FRAME_NACK && !w->is_selective)
        w->sent = w->acked;
    else if (f->rules.skips_acked && w->sent < w->acked)
        w->sent = w->acked;
    if (f->control && f->control->acked)
        f->control->acked(f, m.flow, &f->frames[frame]);
    w = &f->flows[m.flow];
    const bool has_news =
        w->acked > before || (w->is_selective && (w->repeat->news || m.kind == ORR__FRAME_NACK));
    if (f->rules.has_timeouts && !w->is_complete && has_news) {
        w->timeouts = 0;
        w->heard_at = f->now;
    }
    orr__port *p = &f->ports[w->port];
    orr__nic_update(f, m.flow);
    orr__frame_drop(f, frame);
    orr__host_try(f, p);
}

void orr__host_receive(orr__fabric *f, uint32_t frame)
{
    const uint8_t kind = f->frames[frame].kind;
    if (kind == ORR__FRAME_DATA)
        receive_data(f, frame);
    else if (kind == ORR__FRAME_TRIMMED)
        receive_trimmed(f, frame);
    else
        receive_ack(f, frame);
}

/* ---- retransmission timer (rules.has_timeouts) ---- */

enum { MOST_TIMEOUTS = 64, MOST_DOUBLINGS = 6 };

/* What can stand before a packet on its way: a buffer; or the queues of some switches if they have
 * a limit. */
static uint64_t standing_bytes(const orr__fabric *f)
{
    const uint64_t buffer = f->config.buffer_mib << 20, queues = 8 * f->config.queue_limit;
    return !queues || buffer < queues ? buffer : queues;
}

/* Four times the base round trip and what full queues can add, at least 100 us; twice that each
 * time. */
static uint64_t timeout_of(const orr__fabric *f, const orr__flow *w)
{
    const uint64_t drain = orr__transmission_time(f, standing_bytes(f), w->line_rate);
    const uint64_t least = 100000 * f->unit, some = 4 * w->base_rtt + drain;
    const unsigned doublings = w->timeouts < MOST_DOUBLINGS ? w->timeouts : MOST_DOUBLINGS;
    return (some > least ? some : least) << doublings;
}

/* The last of many timeouts ends the run, which concerns all. */
static void set_timer(orr__fabric *f, uint32_t flow, uint64_t ticks)
{
    orr__flow *w = &f->flows[flow];
    w->timeout = orr__fabric_after(f, ticks, ORR__EV_TIMEOUT, flow);
    if (f->lanes && w->timeouts + 2 > MOST_TIMEOUTS)
        orr__lanes_expect(f, f->now + ticks);
}

static void arm_timeout(orr__fabric *f, uint32_t flow)
{
    const orr__flow *w = &f->flows[flow];
    if (w->timeout == ORR__NO_EVENT)
        set_timer(f, flow, timeout_of(f, w));
}

/* The timer counts from the latest news, but is not set anew for each of them: it looks when its
 * time has come.  A flow has one pending event, then, and not one for each packet of the last
 * millisecond. */
static bool has_heard(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    const uint64_t from = w->heard_at, until = from + timeout_of(f, w);
    w->heard_at = 0;
    if (!from || until <= f->now)
        return false;
    set_timer(f, flow, until - f->now);
    return true;
}

void orr__host_timeout(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    orr__port *p = &f->ports[w->port];
    w->timeout = ORR__NO_EVENT;
    if (has_heard(f, flow))
        return;
    if (!w->is_listed || (p->paused >> w->class & 1)) {
        arm_timeout(f, flow); /* nothing is lost because somebody waits */
        w->timeouts += !w->is_listed;
        orr__fabric_watch_for_stall(f);
        f->is_stopped |= f->is_stalled |= w->timeouts > MOST_TIMEOUTS;
        return;
    }
    f->figures.timeouts++;
    if (++w->timeouts > MOST_TIMEOUTS) {
        f->is_stalled = f->is_stopped = true;
        return;
    }
    if (w->is_selective)
        orr__selective_all_again(f, w);
    else
        w->sent = w->acked;
    if (f->control && f->control->timed_out)
        f->control->timed_out(f, flow);
    orr__nic_update(f, flow);
    arm_timeout(f, flow);
    orr__host_try(f, p);
}

/* ---- pauses that a NIC makes (NIC_TOTAL_PAUSE_TIME) ---- */

/* They are counted once a host, at its first NIC. */
orr__nic *orr__host_pauser(orr__fabric *f, uint32_t port)
{
    const orr__node *host = &f->nodes[f->ports[port].node];
    return &f->nics[f->ports[f->ports_of[host->first_port]].nic];
}

/* Before all that is no pause frame; with rules.holds_all_acks it waits for its turn. */
static void queue_nic_pfc(orr__fabric *f, orr__nic *n, uint32_t frame)
{
    uint32_t *at = &n->ack_head;
    if (f->rules.holds_all_acks) {
        orr__queue_push(f, &n->ack_head, &n->ack_tail, frame);
        return;
    }
    while (*at != ORR__NOBODY && is_never_held(f, *at))
        at = &f->frames[*at].next;
    f->frames[frame].next = *at;
    if (*at == ORR__NOBODY)
        n->ack_tail = frame;
    *at = frame;
}

static void send_nic_pfc(orr__fabric *f, orr__port *p, bool pauses)
{
    const uint32_t id = orr__frame_new(f);
    orr__nic *n = &f->nics[p->nic];
    if (id == ORR__NOBODY)
        return;
    if (f->draws)
        f->rules.draws->pfc_sent(f->draws);
    f->frames[id] = (orr__frame){.kind = ORR__FRAME_PFC,
                                 .size = ORR__PFC_BYTES,
                                 .flow = ORR__NOBODY,
                                 .class = orr__host_pauser(f, orr__port_of(f, p))->pause_class,
                                 .pauses = pauses};
    if (pauses)
        orr__pause_note_cause(f, p, &f->frames[id]);
    queue_nic_pfc(f, n, id);
    orr__host_try(f, p);
}

static void make_nic_pause(orr__fabric *f, const orr__flow *w)
{
    const uint32_t port = w->ack_port;
    orr__nic *n = orr__host_pauser(f, port);
    if (n->is_between_pauses || n->pauses_made >= f->config.nic_pauses)
        return;
    n->is_between_pauses = true;
    n->pauses_made++;
    n->pause_class = w->class;
    send_nic_pfc(f, &f->ports[port], true);
    (void)orr__fabric_after(f, NIC_PAUSE_NS * f->unit, ORR__EV_NIC_RESUME, port);
}

void orr__host_pause_ends(orr__fabric *f, uint32_t port)
{
    send_nic_pfc(f, &f->ports[port], false);
    (void)orr__fabric_after(f, NIC_READY_NS * f->unit, ORR__EV_NIC_READY, port);
}

/* A pause frame says for how long it holds.  The reference holds until it is told otherwise, and so
 * for ever if that frame is lost; here it is twice as long as the host will want. */
void orr__host_pause_came(orr__fabric *f, orr__port *p)
{
    if (f->rules.host_pauses_expire)
        (void)orr__fabric_after(f, 2 * NIC_PAUSE_NS * f->unit, ORR__EV_PAUSE_OVER,
                                orr__port_of(f, p));
}
