/* SPDX-License-Identifier: Apache-2.0 */
/* control_hpcc.c - HPCC: switches say how busy they are, the sender sets its rate by it (packet-network.md 8.2).
 *
 * Under is_compat what a switch says is cut to the bits of the reference's header; else it is said in full. */
#include "fabric_impl.h"

enum { MOST_HOPS = 16, COMPAT_HOPS = 5 };

typedef struct rate_state {
    double use;
    uint64_t rate, stage;
} rate_state;

typedef struct hpcc {
    uint64_t last_update;
    uint32_t known; /* how many of the hops below mean something */
    orr__hop hops[MOST_HOPS];
    rate_state states[MOST_HOPS]; /* one, or one a hop */
} hpcc;

/* What came of one hop. */
typedef struct outcome {
    uint64_t rate, stage;
    bool is_new;
} outcome;

static void start(orr__fabric *f, uint32_t flow)
{
    hpcc *h = orr__control_state(f, flow);
    h->last_update = h->known = 0;
    for (int i = 0; i < MOST_HOPS; i++)
        h->states[i] = (rate_state){1, f->flows[flow].line_rate, 0};
}

static void forward(orr__fabric *f, orr__port *out, orr__frame *data)
{
    const size_t frame = (size_t)(data - f->frames);
    orr__hop hop = {f->now, out->bytes_sent, (uint32_t)out->queued_bytes, orr__port_of(f, out)};
    if (data->hop_count >= f->hops_each)
        return; /* no way has more switches than that: it was counted */
    if (f->config.is_compat) {
        hop.time %= 1u << 24;
        hop.bytes = hop.bytes / (128 * f->config.int_multi) % (1u << 20);
        hop.queue = (uint32_t)(hop.queue / (80 * f->config.int_multi) % (1u << 17));
    }
    f->hops[frame * f->hops_each + data->hop_count++] = hop;
}

/* How busy a hop has been since the last time, and for how long that was. */
static double hop_use(const orr__fabric *f,
                      const orr__flow *w,
                      const orr__hop *now,
                      const orr__hop *then,
                      uint64_t *tau)
{
    const double rate = (double)f->ports[now->port].rate;
    uint64_t sent = now->bytes - then->bytes,
             waiting = now->queue < then->queue ? now->queue : then->queue;
    *tau = now->time - then->time;
    if (f->config.is_compat) {
        *tau %= 1u << 24;
        sent = sent % (1u << 20) * 128 * f->config.int_multi;
        waiting *= 80 * f->config.int_multi;
    }
    const double seconds = (double)*tau * (f->unit == 1 ? 1e-9 : 1e-12);
    const double speed = *tau || sent ? (double)(sent * 8) / seconds : 0;
    return speed / rate + (double)waiting * (double)w->line_rate / rate / (double)w->window;
}

static outcome step(
    const orr__fabric *f, const orr__flow *w, rate_state *s, double use, uint64_t tau)
{
    outcome o = {0, s->stage + 1, true};
    const uint64_t rtt = w->base_rtt;
    if (tau > rtt)
        tau = rtt;
    s->use = (s->use * (double)(rtt - tau) + use * (double)tau) / (double)rtt;
    const double ratio = s->use / f->config.target;
    o.rate = s->rate;
    if (ratio >= 1 || s->stage >= f->config.mi_thresh) {
        o.rate = orr__whole_rate((double)s->rate / ratio, UINT64_MAX / 2);
        o.stage = 0;
    }
    o.rate =
        orr__at_most(orr__at_least(o.rate + f->config.rate_ai, f->config.min_rate), w->line_rate);
    return o;
}

/* All hops; what came of them by state. */
static void weigh(orr__fabric *f, uint32_t flow, const orr__frame *ack, bool is_full, outcome *out)
{
    const orr__flow *w = &f->flows[flow];
    hpcc *h = orr__control_state(f, flow);
    const orr__hop *hops = &f->hops[(size_t)(ack - f->frames) * f->hops_each];
    double most = 0;
    uint64_t most_tau = 0, tau;
    bool is_any = false;
    for (uint32_t i = 0; i < ack->hop_count; i++) {
        const orr__hop none = {0}, *then = i < h->known ? &h->hops[i] : &none;
        if (f->config.sample_feedback && !is_full && hops[i].queue == 0)
            continue;
        const double use = hop_use(f, w, &hops[i], then, &tau);
        is_any = true;
        if (f->config.multi_rate)
            out[i] = step(f, w, &h->states[i], use, tau);
        else if (use > most) {
            most = use;
            most_tau = tau;
        }
        h->hops[i] = hops[i];
    }
    if (h->known < ack->hop_count)
        h->known = ack->hop_count;
    if (!f->config.multi_rate && (is_any || ack->hop_count == 0))
        out[0] = step(f, w, &h->states[0], most, most_tau);
}

static void acked(orr__fabric *f, uint32_t flow, const orr__frame *ack)
{
    orr__flow *w = &f->flows[flow];
    hpcc *h = orr__control_state(f, flow);
    outcome out[MOST_HOPS] = {{0}};
    const bool is_full = ack->sequence > h->last_update;
    if (!is_full && !f->config.fast_react)
        return;
    if (h->last_update == 0) {
        const orr__hop *hops = &f->hops[(size_t)(ack - f->frames) * f->hops_each];
        h->last_update = w->sent;
        h->known = ack->hop_count;
        for (uint32_t i = 0; i < ack->hop_count; i++)
            h->hops[i] = hops[i];
        return;
    }
    weigh(f, flow, ack, is_full, out);
    uint64_t rate = w->line_rate;
    bool is_any = false;
    for (int i = 0; i < MOST_HOPS; i++) {
        if (!out[i].is_new)
            continue;
        is_any = true;
        if (out[i].rate < rate)
            rate = out[i].rate;
        if (is_full) {
            h->states[i].rate = out[i].rate;
            h->states[i].stage = out[i].stage;
        }
    }
    if (is_any)
        orr__flow_set_rate(f, flow, rate);
    if (is_full && w->sent > h->last_update)
        h->last_update = w->sent;
}

const orr__control_ops orr__hpcc = {
    .size = sizeof(hpcc), .int_bytes = 42, .start = start, .acked = acked, .forward = forward};
