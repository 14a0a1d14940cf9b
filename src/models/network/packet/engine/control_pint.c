/* SPDX-License-Identifier: Apache-2.0 */
/* control_pint.c - HPCC-PINT: the utilisation of the busiest hop, in two bytes (packet-network.md
 * 8.5).
 *
 * A switch port keeps a moving average of its utilisation, computed with logarithms of 16
 * significant bits with stochastic rounding, and writes it into packets as a power of
 * PINT_LOG_BASE, stochastically rounded again.  Random numbers come from each port's generator, or
 * from rules.draws. */
#include "fabric_impl.h"

#include <limits.h>
#include <math.h>

enum { CONCURRENT = 512, BITS = 16, LOG_SHIFT = 15, USE_SCALE = 8192 };

typedef struct pint {
    uint64_t last_update, rate, stage;
} pint;

static void start(fab *f, uint32_t flow)
{
    *(pint *)fab_control_state(f, flow) = (pint){.rate = f->flows[flow].line_rate};
}

/* 31 bits. */
static uint32_t toss(fab *f, fab_port *p)
{
    return f->draws ? f->rules.draws->pint(f->draws) : (uint32_t)(orr_splitmix64(&p->coins) >> 33);
}

/* log2(x) in units of 2^-15, of x stochastically rounded to 16 bits. */
static int about_log2(fab *f, fab_port *p, uint64_t whole)
{
    const int x0 = (int)whole;
    int x = x0;
    if (x <= 0)
        return INT_MIN; /* the result of the original's conversion of NaN */
    const int bits = (int)log2((double)x) + 1;
    if (bits > BITS) {
        const int mask = (1 << (bits - BITS)) - 1;
        x &= ~mask;
        if ((x0 & mask) > ((int)toss(f, p) & mask))
            x += mask + 1;
    }
    return (int)(log2((double)x) * (1 << LOG_SHIFT));
}

/* Utilisation of the port after an idle gap of dt ns. */
static double new_use(fab *f, fab_port *p)
{
    const double unit = 1 << LOG_SHIFT;
    const uint64_t rtt = f->max_rtt / f->unit, since = (f->now - p->last_at) / f->unit;
    const uint64_t dt = since < rtt ? since : rtt;
    const double log_rtt = log2((double)rtt) * unit;
    const double log_rate = log2((double)(p->rate / 8)) * unit, log_e9 = log2(1e9) * unit;
    double queue = 0, sent = 0, before = 0;
    if (p->queued_bytes >> 8 > 0) {
        const int log_dt = about_log2(f, p, dt ? dt : 1),
                  log_queue = about_log2(f, p, p->queued_bytes >> 8);
        queue = pow(2, (log_dt + log_queue + log_e9 - log_rate - 2 * log_rtt) / unit) * 256;
        if (dt == 0)
            queue = 0;
    }
    if (p->last_size > 0)
        sent = pow(2, (about_log2(f, p, p->last_size) + log_e9 - log_rate - log_rtt) / unit);
    if (rtt > dt && p->pint_u > 0 && round(p->pint_u * USE_SCALE) >= 1) {
        const int log_rest = about_log2(f, p, rtt - dt);
        const int log_use = about_log2(f, p, (uint64_t)round(p->pint_u * USE_SCALE));
        before = pow(2, (log_rest + log_use - log_rtt) / unit) / USE_SCALE;
    }
    return queue + sent + before;
}

/* Exponents far out of range come from bases close to 1: their low bits are 0, as on the original's
 * processor. */
static uint16_t as_power(double v)
{
    return v > INT_MIN && v < INT_MAX ? (uint16_t)(int)v : 0;
}

static uint16_t encode(fab *f, fab_port *p, double use)
{
    const double base = f->config.pint_base;
    double whole = ceil(use * CONCURRENT);
    if (!(whole >= 1))
        whole = 1;
    const double power = log(whole) * (1 / log(base));
    const uint16_t high = as_power(ceil(power)), low = as_power(floor(power));
    const double upper = pow(base, high) * (high == low ? base : 1), lower = pow(base, low);
    const uint32_t coin = toss(f, p) % 65536;
    return coin < (whole - lower) / (upper - lower) * 65536 ? high : low;
}

static void forward(fab *f, fab_port *out, fab_frame *data)
{
    out->pint_u = new_use(f, out);
    const uint16_t power = encode(f, out, out->pint_u);
    /* The packet carries only the busiest hop: there is no room for more in two bytes. */
    if (power > data->power)
        data->power = power;
}

static void acked(fab *f, uint32_t flow, const fab_frame *ack)
{
    const fab_flow *w = &f->flows[flow];
    pint *t = fab_control_state(f, flow);
    if (toss(f, &f->ports[w->port]) % 65536 >= (uint32_t)(65536 * f->config.pint_prob))
        return;
    const bool is_full = ack->sequence > t->last_update;
    if (t->last_update == 0) {
        t->last_update = w->sent;
        return;
    }
    const double ratio = pow(f->config.pint_base, ack->power) / CONCURRENT / f->config.target;
    uint64_t rate = t->rate, stage = t->stage + 1;
    if (ratio >= 1 || t->stage >= f->config.mi_thresh) {
        rate = fab_whole_rate((double)t->rate / ratio, UINT64_MAX / 2);
        stage = 0;
    }
    rate = fab_at_most(fab_at_least(rate + f->config.rate_ai, f->config.min_rate), w->line_rate);
    fab_flow_set_rate(f, flow, rate);
    if (!is_full)
        return;
    t->rate = rate;
    t->stage = stage;
    if (w->sent > t->last_update)
        t->last_update = w->sent;
}

const fab_control fab_pint = {
    .size = sizeof(pint), .int_bytes = 2, .start = start, .acked = acked, .forward = forward};
