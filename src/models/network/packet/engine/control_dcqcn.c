/* SPDX-License-Identifier: Apache-2.0 */
/* control_dcqcn.c - DCQCN: marks lower the rate, time raises it again (packet-network.md 8.1). */
#include "fabric_impl.h"

typedef struct dcqcn {
    uint64_t target;
    double alpha;
    uint64_t stage;
    uint32_t timers[3]; /* by event kind from ORR__EV_ALPHA on */
    bool has_begun, mark_for_alpha, mark_for_decrease;
} dcqcn;

static void arm(
    orr__fabric *f, uint32_t flow, orr__event_kind which, uint64_t us, uint64_t extra_ns)
{
    dcqcn *d = orr__control_state(f, flow);
    uint32_t *timer = &d->timers[which - ORR__EV_ALPHA];
    if (us == 0 && extra_ns == 0) {
        orr__fabric_fail(
            f, ORR_EINPUT,
            "DCQCN has a timer of 0 us (ALPHA_RESUME_INTERVAL, RATE_DECREASE_INTERVAL, "
            "RP_TIMER): it would run for ever without time passing");
        return;
    }
    orr__fabric_cancel(f, timer);
    *timer = orr__fabric_after(f, (us * 1000 + extra_ns) * f->unit, which, flow);
}

static void start(orr__fabric *f, uint32_t flow)
{
    dcqcn *d = orr__control_state(f, flow);
    *d = (dcqcn){.target = f->flows[flow].line_rate, .alpha = 1};
    for (int i = 0; i < 3; i++)
        d->timers[i] = ORR__NO_EVENT;
}

static void acked(orr__fabric *f, uint32_t flow, const orr__frame *ack)
{
    dcqcn *d = orr__control_state(f, flow);
    if (!ack->echoes_mark || f->flows[flow].is_complete)
        return;
    d->mark_for_alpha = d->mark_for_decrease = true;
    if (d->has_begun)
        return;
    d->has_begun = true;
    d->mark_for_alpha = false;
    d->alpha = 1;
    d->target = f->flows[flow].rate;
    arm(f, flow, ORR__EV_ALPHA, f->config.alpha_us, 0);
    arm(f, flow, ORR__EV_DECREASE, f->config.decrease_us, 1);
}

static void update_alpha(orr__fabric *f, uint32_t flow, dcqcn *d)
{
    const double g = f->config.gain;
    d->alpha = (1 - g) * d->alpha + (d->mark_for_alpha ? g : 0);
    d->mark_for_alpha = false;
    arm(f, flow, ORR__EV_ALPHA, f->config.alpha_us, 0);
}

static void decrease(orr__fabric *f, uint32_t flow, dcqcn *d)
{
    const uint64_t rate = f->flows[flow].rate;
    arm(f, flow, ORR__EV_DECREASE, f->config.decrease_us, 0);
    if (!d->mark_for_decrease)
        return;
    if (f->config.clamp_target_rate || d->stage != 0)
        d->target = rate;
    const uint64_t lower = orr__whole_rate((double)rate * (1 - d->alpha / 2), rate);
    orr__flow_change_rate(f, flow, orr__at_least(lower, f->config.min_rate));
    d->stage = 0;
    d->mark_for_decrease = false;
    arm(f, flow, ORR__EV_INCREASE, f->config.rp_us, 0);
}

static void increase(orr__fabric *f, uint32_t flow, dcqcn *d)
{
    const orr__flow *w = &f->flows[flow];
    const uint64_t times = f->config.recovery_times;
    arm(f, flow, ORR__EV_INCREASE, f->config.rp_us, 0);
    if (d->stage >= times)
        d->target = orr__at_most(
            d->target + (d->stage > times ? f->config.rate_hai : f->config.rate_ai), w->line_rate);
    orr__flow_change_rate(f, flow, w->rate / 2 + d->target / 2);
    d->stage++;
}

static void timer(orr__fabric *f, uint32_t flow, orr__event_kind which)
{
    dcqcn *d = orr__control_state(f, flow);
    d->timers[which - ORR__EV_ALPHA] = ORR__NO_EVENT; /* it has run */
    if (which == ORR__EV_ALPHA)
        update_alpha(f, flow, d);
    else if (which == ORR__EV_DECREASE)
        decrease(f, flow, d);
    else
        increase(f, flow, d);
}

static void stop(orr__fabric *f, uint32_t flow)
{
    dcqcn *d = orr__control_state(f, flow);
    for (int i = 0; i < 3; i++)
        orr__fabric_cancel(f, &d->timers[i]);
}

const orr__control_ops orr__dcqcn = {
    .size = sizeof(dcqcn), .start = start, .acked = acked, .stop = stop, .timer = timer};
