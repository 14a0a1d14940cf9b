/* SPDX-License-Identifier: Apache-2.0 */
/* control_dcqcn.c - DCQCN: marks lower the rate, time raises it again (packet-network.md 8.1).
 *
 * Three timers per flow, started by its first mark: alpha (the estimate of congestion) decays, the
 * rate is decreased at most once per interval however many marks arrived, and it recovers towards
 * the target.  A flow without a mark has no timer and sends at line rate.  There is no byte
 * counter, as in the reference. */
#include "fabric_impl.h"

typedef struct dcqcn {
    uint64_t target;    /* bit/s: goal of recovery */
    double alpha;       /* 0 to 1: half of it is the relative decrease */
    uint64_t stage;     /* increases since the last decrease */
    uint32_t timers[3]; /* by event kind from FAB_EV_ALPHA on */
    /* one mark is seen by both timers, each in its own interval */
    bool has_begun, mark_for_alpha, mark_for_decrease;
} dcqcn;

static void arm(fab *f, uint32_t flow, fab_event_kind which, uint64_t us, uint64_t extra_ns)
{
    dcqcn *d = fab_control_state(f, flow);
    uint32_t *timer = &d->timers[which - FAB_EV_ALPHA];
    if (us == 0 && extra_ns == 0) {
        fab_fail(f, ORR_EINPUT,
                 "DCQCN has a timer of 0 us (ALPHA_RESUME_INTERVAL, RATE_DECREASE_INTERVAL, "
                 "RP_TIMER): it would run for ever without time passing");
        return;
    }
    fab_cancel(f, timer);
    *timer = fab_after(f, (us * 1000 + extra_ns) * f->unit, which, flow);
}

static void start(fab *f, uint32_t flow)
{
    dcqcn *d = fab_control_state(f, flow);
    *d = (dcqcn){.target = f->flows[flow].line_rate, .alpha = 1};
    for (int i = 0; i < 3; i++)
        d->timers[i] = FAB_NO_EVENT;
}

static void acked(fab *f, uint32_t flow, const fab_frame *ack)
{
    dcqcn *d = fab_control_state(f, flow);
    if (!ack->echoes_mark || f->flows[flow].is_complete)
        return;
    d->mark_for_alpha = d->mark_for_decrease = true;
    if (d->has_begun)
        return;
    d->has_begun = true;
    d->mark_for_alpha = false;
    d->alpha = 1;
    d->target = f->flows[flow].rate;
    arm(f, flow, FAB_EV_ALPHA, f->config.alpha_us, 0);
    /* Plus a nanosecond, once: from then on, if both intervals are equal, alpha is updated just
     * before the decrease that uses it (packet-network.md 8.1). */
    arm(f, flow, FAB_EV_DECREASE, f->config.decrease_us, 1);
}

static void update_alpha(fab *f, uint32_t flow, dcqcn *d)
{
    const double g = f->config.gain;
    d->alpha = (1 - g) * d->alpha + (d->mark_for_alpha ? g : 0);
    d->mark_for_alpha = false;
    arm(f, flow, FAB_EV_ALPHA, f->config.alpha_us, 0);
}

static void decrease(fab *f, uint32_t flow, dcqcn *d)
{
    const uint64_t rate = f->flows[flow].rate;
    arm(f, flow, FAB_EV_DECREASE, f->config.decrease_us, 0);
    if (!d->mark_for_decrease)
        return;
    /* A second decrease before any recovery keeps the target: the flow would otherwise lose the
     * rate at which congestion began. */
    if (f->config.clamp_target_rate || d->stage != 0)
        d->target = rate;
    const uint64_t lower = fab_whole_rate((double)rate * (1 - d->alpha / 2), rate);
    fab_flow_change_rate(f, flow, fab_at_least(lower, f->config.min_rate));
    d->stage = 0;
    d->mark_for_decrease = false;
    arm(f, flow, FAB_EV_INCREASE, f->config.rp_us, 0);
}

static void increase(fab *f, uint32_t flow, dcqcn *d)
{
    const fab_flow *w = &f->flows[flow];
    const uint64_t times = f->config.recovery_times;
    arm(f, flow, FAB_EV_INCREASE, f->config.rp_us, 0);
    if (d->stage >= times)
        d->target = fab_at_most(
            d->target + (d->stage > times ? f->config.rate_hai : f->config.rate_ai), w->line_rate);
    fab_flow_change_rate(f, flow, w->rate / 2 + d->target / 2);
    d->stage++;
}

static void timer(fab *f, uint32_t flow, fab_event_kind which)
{
    dcqcn *d = fab_control_state(f, flow);
    d->timers[which - FAB_EV_ALPHA] = FAB_NO_EVENT; /* it has run */
    if (which == FAB_EV_ALPHA)
        update_alpha(f, flow, d);
    else if (which == FAB_EV_DECREASE)
        decrease(f, flow, d);
    else
        increase(f, flow, d);
}

static void stop(fab *f, uint32_t flow)
{
    dcqcn *d = fab_control_state(f, flow);
    for (int i = 0; i < 3; i++)
        fab_cancel(f, &d->timers[i]);
}

const fab_control fab_dcqcn = {
    .size = sizeof(dcqcn), .start = start, .acked = acked, .stop = stop, .timer = timer};
