/* SPDX-License-Identifier: Apache-2.0 */
/* control_hpcc.c - HPCC: switches report their utilisation, from which the sender sets its rate
 * (packet-network.md 8.2).
 *
 * rules.hpcc_wraps: telemetry is truncated to the bits of the reference's header. */
#include "fabric_impl.h"

typedef struct rate_state {
    double use;
    uint64_t rate, stage;
} rate_state;

/* Followed by the last telemetry of the hops of a route, hops_each of them, and by the states: one,
 * or one per hop. */
typedef struct hpcc {
    uint64_t last_update;
    uint32_t known; /* number of valid hops */
} hpcc;

static uint32_t state_count(const fab *f)
{
    return f->config.multi_rate ? f->hops_each : 1;
}

static size_t state_bytes(const fab *f)
{
    return sizeof(hpcc) + f->hops_each * sizeof(fab_hop) + state_count(f) * sizeof(rate_state);
}

static fab_hop *hops_of(hpcc *h)
{
    return (fab_hop *)(h + 1);
}

static rate_state *states_of(const fab *f, hpcc *h)
{
    return (rate_state *)(hops_of(h) + f->hops_each);
}

static void start(fab *f, uint32_t flow)
{
    hpcc *h = fab_control_state(f, flow);
    h->last_update = h->known = 0;
    for (uint32_t i = 0; i < state_count(f); i++)
        states_of(f, h)[i] = (rate_state){1, f->flows[flow].line_rate, 0};
}

static void forward(fab *f, fab_port *out, fab_frame *data)
{
    const size_t frame = (size_t)(data - f->frames);
    /* Taken when the packet leaves the queue: bytes_sent does not include it yet, queued_bytes no
     * longer does (packet-network.md 8.2). */
    fab_hop hop = {f->now, out->bytes_sent, (uint32_t)out->queued_bytes, fab_port_of(f, out)};
    if (data->hop_count >= f->hops_each)
        return; /* cannot happen: hops_each covers the longest route */
    if (f->rules.hpcc_wraps) {
        hop.time %= 1u << 24;
        hop.bytes = hop.bytes / (128 * f->config.int_multi) % (1u << 20);
        hop.queue = (uint32_t)(hop.queue / (80 * f->config.int_multi) % (1u << 17));
    }
    f->hops[frame * f->hops_each + data->hop_count++] = hop;
}

/* Utilisation of a hop since the last ACK, and over which time. */
static double hop_use(
    const fab *f, const fab_flow *w, const fab_hop *now, const fab_hop *then, uint64_t *tau)
{
    const double rate = (double)f->ports[now->port].rate;
    /* The smaller of two queue samples: a burst that came and went is not a standing queue. */
    uint64_t sent = now->bytes - then->bytes,
             waiting = now->queue < then->queue ? now->queue : then->queue;
    *tau = now->time - then->time;
    if (f->rules.hpcc_wraps) {
        *tau %= 1u << 24;
        sent = sent % (1u << 20) * 128 * f->config.int_multi;
        waiting *= 80 * f->config.int_multi;
    }
    const double seconds = (double)*tau * (f->unit == 1 ? 1e-9 : 1e-12);
    const double speed = *tau || sent ? (double)(sent * 8) / seconds : 0;
    return speed / rate + (double)waiting * (double)w->line_rate / rate / (double)w->window;
}

/* The rate requested by a state.  Once per round trip (is_full) the state is updated. */
static uint64_t step(
    const fab *f, const fab_flow *w, rate_state *s, double use, uint64_t tau, bool is_full)
{
    const uint64_t rtt = w->base_rtt;
    uint64_t rate = s->rate, stage = s->stage + 1;
    /* A sample has the weight of a round trip at most: beyond it that of the past would be
     * negative. */
    if (tau > rtt)
        tau = rtt;
    s->use = (s->use * (double)(rtt - tau) + use * (double)tau) / (double)rtt;
    const double ratio = s->use / f->config.target;
    /* After mi_thresh additive steps a multiplicative one, also upwards, to take free capacity
     * fast. */
    if (ratio >= 1 || s->stage >= f->config.mi_thresh) {
        rate = fab_whole_rate((double)s->rate / ratio, UINT64_MAX / 2);
        stage = 0;
    }
    rate = fab_at_most(fab_at_least(rate + f->config.rate_ai, f->config.min_rate), w->line_rate);
    if (is_full)
        *s = (rate_state){s->use, rate, stage};
    return rate;
}

/* Over all hops.  The lowest requested rate; UINT64_MAX: none. */
static uint64_t weigh(fab *f, uint32_t flow, const fab_frame *ack, bool is_full)
{
    const fab_flow *w = &f->flows[flow];
    hpcc *h = fab_control_state(f, flow);
    const fab_hop none = {0}, *hops = &f->hops[(size_t)(ack - f->frames) * f->hops_each];
    fab_hop *before = hops_of(h);
    rate_state *states = states_of(f, h);
    double most = 0;
    uint64_t most_tau = 0, tau, lowest = UINT64_MAX;
    bool is_any = ack->hop_count == 0;
    for (uint32_t i = 0; i < ack->hop_count; i++) {
        /* An empty queue only means that the hop is not the bottleneck; keep its record, so that
         * the next sample is relative to it. */
        if (f->config.sample_feedback && !is_full && hops[i].queue == 0)
            continue;
        const double use = hop_use(f, w, &hops[i], i < h->known ? &before[i] : &none, &tau);
        is_any = true;
        if (f->config.multi_rate) {
            lowest = fab_at_most(lowest, step(f, w, &states[i], use, tau, is_full));
        } else if (use > most) {
            most = use;
            most_tau = tau;
        }
        before[i] = hops[i];
    }
    if (h->known < ack->hop_count)
        h->known = ack->hop_count;
    return f->config.multi_rate || !is_any ? lowest
                                           : step(f, w, &states[0], most, most_tau, is_full);
}

static void acked(fab *f, uint32_t flow, const fab_frame *ack)
{
    fab_flow *w = &f->flows[flow];
    hpcc *h = fab_control_state(f, flow);
    /* An ACK of what was sent after the last update: a round trip has passed. */
    const bool is_full = ack->sequence > h->last_update;
    if (!is_full && !f->config.fast_react)
        return;
    /* The first ACK has nothing to compare with: it only sets the records for later ones. */
    if (h->last_update == 0) {
        const fab_hop *hops = &f->hops[(size_t)(ack - f->frames) * f->hops_each];
        h->last_update = w->sent;
        h->known = ack->hop_count;
        for (uint32_t i = 0; i < ack->hop_count; i++)
            hops_of(h)[i] = hops[i];
        return;
    }
    const uint64_t rate = weigh(f, flow, ack, is_full);
    if (rate < UINT64_MAX)
        fab_flow_set_rate(f, flow, fab_at_most(rate, w->line_rate));
    if (is_full && w->sent > h->last_update)
        h->last_update = w->sent;
}

const fab_control fab_hpcc = {
    .bytes = state_bytes, .int_bytes = 42, .start = start, .acked = acked, .forward = forward};
