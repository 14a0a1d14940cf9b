/* SPDX-License-Identifier: Apache-2.0 */
/* control_timely.c - TIMELY: the gradient of the round trip sets the rate (packet-network.md 8.3).
 *
 * rules.timely_sees_clock: the RTT is the time since the start of the run, because the reference
 * never sets timestamps. */
#include "fabric_impl.h"

#define ALPHA 0.875
#define BETA 0.8
enum { LOW_NS = 50000, HIGH_NS = 500000, LEAST_NS = 20000, PATIENCE = 5 };

typedef struct timely {
    uint64_t last_update, last_rtt, increases;
    double difference; /* ticks; smoothed difference of consecutive RTTs */
} timely;

static void start(fab *f, uint32_t flow)
{
    *(timely *)fab_control_state(f, flow) = (timely){0};
}

static void change_rate(fab *f, uint32_t flow, timely *t, uint64_t rtt, double gradient)
{
    const fab_flow *w = &f->flows[flow];
    const uint64_t low = LOW_NS * f->unit, high = HIGH_NS * f->unit;
    if (rtt < low || (rtt <= high && gradient <= 0)) {
        const uint64_t more = t->increases < PATIENCE ? f->config.rate_ai : f->config.rate_hai;
        fab_flow_change_rate(f, flow, fab_at_most(w->rate + more, w->line_rate));
        t->increases++;
        return;
    }
    double factor = 1 - BETA * gradient;
    if (rtt > high)
        factor = 1 - BETA * (1 - (double)high / (double)rtt);
    else if (factor < 0)
        factor = 0;
    const uint64_t lower = fab_whole_rate((double)w->rate * factor, w->line_rate);
    fab_flow_change_rate(f, flow, fab_at_least(lower, f->config.min_rate));
    t->increases = 0;
}

static void acked(fab *f, uint32_t flow, const fab_frame *ack)
{
    const fab_flow *w = &f->flows[flow];
    timely *t = fab_control_state(f, flow);
    if (ack->sequence <= t->last_update)
        return;
    const uint64_t rtt = f->rules.timely_sees_clock ? f->now : f->now - ack->stamp;
    if (t->last_update != 0) {
        t->difference = (1 - ALPHA) * t->difference + ALPHA * ((double)rtt - (double)t->last_rtt);
        change_rate(f, flow, t, rtt, t->difference / (double)(LEAST_NS * f->unit));
    }
    if (w->sent > t->last_update) {
        t->last_update = w->sent;
        t->last_rtt = rtt;
    }
}

const fab_control fab_timely = {
    .size = sizeof(timely), .int_bytes = 8, .start = start, .acked = acked};
