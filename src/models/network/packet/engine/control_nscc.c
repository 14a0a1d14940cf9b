/* SPDX-License-Identifier: Apache-2.0 */
/* control_nscc.c - a window controlled by marks and delays, like Ultra Ethernet's sender-based
 * control (NSCC).
 *
 * T is the round trip of the empty route, B = T * rate the bytes it holds, M a packet, D the target
 * queueing delay, W the window (M <= W <= 1.5 B).  T starts as that of the longest route of the
 * network, or with GLOBAL_T 0 of the flow's own, and is the minimum seen.  An ACK of n new bytes
 * comes with a mark or not, and with a delay d = round trip - T:
 *
 *                 d < D                                        d >= D
 *     no mark     quick increase: S += n * 4 a b M (D - d) / D   fair increase: S += n * 5 a M
 *     mark        hold: another route is enough                  decrease: W *= max(1/2, 1 - 0.8 (m - D) / m)
 *
 * a = B / 150 kB and b = D / 12 us scale steps from the network they were tuned for (100 Gb/s, 12
 * us); here B and D are those of the longest route, whose T is L, so that steps are the same for
 * all flows, near and far. S / W is added to W after eight packets or L, and 0.15 a M every L. m is
 * a slow mean of d, in which a loss counts L, as if a queue had been full; W is decreased at most
 * once in T, and only while m > D.  A whole window without delay (d < L / 12) makes the increase n
 * a / 4 itself.  Lost bytes (reported by a NACK for a trimmed packet, or inferred from reordering)
 * are subtracted from W.  Once in T + D the window is quickly adapted: if packets were lost, or d >
 * 4 D, and less than a share of the largest window was delivered, W becomes the delivered amount;
 * then marks are ignored until everything in flight at that time has been acknowledged. */
#include "fabric_impl.h"

#define REFERENCE_BYTES 150000.0 /* of the network for which the steps were tuned */
#define REFERENCE_NS 12000.0
#define MEAN_WEIGHT 0.0125 /* 1/80: of a new delay in m */
#define DECREASE 0.8
#define LATE_FACTOR 4

/* Gates are shifts: less than 1/8, or 1/4, of the largest window was delivered. */
enum { BATCH_PACKETS = 8, GATE_TRIMMED = 3, GATE = 2 };

typedef struct nscc {
    double target, base, longest;     /* D, T, and T of the longest route: ticks */
    double mean;                      /* of the delay */
    double sum;                       /* S: bytes times bytes */
    double quick, fair, steady, fast; /* steps: 4abM/D, 5aM, 0.15aM, a/4 */
    uint64_t most;                    /* the largest window */
    uint64_t adapt_at;                /* earliest time of the next quick adaptation */
    uint64_t adjusted_at, decreased_at;
    uint64_t achieved;           /* bytes delivered since the last check */
    uint64_t batch;              /* bytes since the window was adjusted */
    uint64_t to_ignore, ignored; /* bytes: sent before the window was adapted; acknowledged since */
    uint64_t undelayed;          /* consecutive bytes without delay */
    bool has_loss, is_fast;
} nscc;

static void bound_window(const fab *f, fab_flow *w, const nscc *c, double window)
{
    const uint64_t whole = window > 0 ? (uint64_t)window : 0;
    w->window = fab_at_least(fab_at_most(whole, c->most), f->config.payload);
}

static void start(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    nscc *c = fab_control_state(f, flow);
    fab_path path;
    const uint64_t wanted = f->config.nscc_delay_ns * f->unit;
    uint64_t bytes = f->main->max_bdp;
    *c = (nscc){.base = (double)w->base_rtt,
                .longest = (double)fab_at_least(f->main->max_rtt, w->base_rtt)};
    if (!f->config.global_t && fab_find_path(f, w->src, w->dst, &path))
        bytes = fab_path_bdp(f, &path);
    c->target = wanted ? (double)wanted : c->longest * (f->config.trimming ? 0.75 : 1);
    const double a = (double)fab_at_least(f->main->max_bdp, bytes) / REFERENCE_BYTES;
    const double b = c->target / (REFERENCE_NS * (double)f->unit);
    const double packet = (double)f->config.payload;
    c->quick = 4 * a * b * packet / c->target;
    c->fair = 5 * a * packet;
    c->steady = 0.15 * a * packet;
    c->fast = a / 4;
    c->most = fab_at_least(bytes + bytes / 2, f->config.payload);
    c->adjusted_at = f->now;
    w->counts_flight = true;
    w->window = c->most;
}

/* Its route is shorter than assumed. */
static void shorten_base(nscc *c, double trip)
{
    c->most = (uint64_t)((double)c->most * trip / c->base);
    c->base = trip;
}

static void note_delay(nscc *c, double delay, bool is_marked)
{
    /* late but not marked: its route was long, the bottleneck is not congested */
    const double sample = !is_marked && delay > c->target ? c->base / 4 : delay;
    c->mean += MEAN_WEIGHT * (sample - c->mean);
}

/* True: the window was set, or the feedback predates the last setting. */
static bool adapt(const fab *f, fab_flow *w, nscc *c, double delay, bool is_marked)
{
    const unsigned gate = f->config.trimming ? GATE_TRIMMED : GATE;
    if (is_marked && c->ignored < c->to_ignore)
        return true;
    if (f->now <= c->adapt_at)
        return false;
    const bool is_late = c->has_loss || delay > LATE_FACTOR * c->target;
    const bool adapts = c->adapt_at && is_late && c->achieved < c->most >> gate;
    if (adapts) {
        bound_window(f, w, c, (double)c->achieved);
        c->to_ignore = w->in_flight;
        c->ignored = 0;
        c->has_loss = false;
    }
    c->achieved = 0;
    c->adapt_at = f->now + (uint64_t)(c->base + c->target);
    return adapts;
}

static void increase_quickly(fab_flow *w, nscc *c, double bytes, double delay)
{
    c->undelayed = delay * 12 < c->longest ? c->undelayed + (uint64_t)bytes : 0;
    c->is_fast = c->undelayed && (c->is_fast || c->undelayed > w->window);
    if (c->is_fast)
        c->sum += bytes * c->fast * (double)w->window;
    else
        c->sum += bytes * c->quick * (c->target - delay);
}

static void decrease(const fab *f, fab_flow *w, nscc *c)
{
    c->undelayed = 0;
    c->is_fast = false;
    if (c->mean <= c->target || (double)(f->now - c->decreased_at) <= c->base)
        return;
    const double factor = 1 - DECREASE * (c->mean - c->target) / c->mean;
    bound_window(f, w, c, (double)w->window * (factor > 0.5 ? factor : 0.5));
    c->decreased_at = f->now;
}

static void adjust_if_due(const fab *f, fab_flow *w, nscc *c)
{
    const bool is_old = (double)(f->now - c->adjusted_at) >= c->longest;
    if (c->batch <= BATCH_PACKETS * f->config.payload && !is_old)
        return;
    const double step = c->sum / (double)w->window + (is_old ? c->steady : 0);
    bound_window(f, w, c, (double)w->window + step);
    c->sum = 0;
    c->batch = 0;
    if (is_old)
        c->adjusted_at = f->now;
}

static void lost(fab *f, fab_flow *w, nscc *c)
{
    c->ignored += w->repeat->losses;
    c->has_loss = true;
    note_delay(c, c->longest, true); /* the delay of a full queue */
    if (adapt(f, w, c, 0, true)) {
        c->sum = 0;
        c->batch = 0;
        return;
    }
    bound_window(f, w, c, (double)w->window - (double)w->repeat->losses);
}

static void acked(fab *f, uint32_t flow, const fab_frame *ack)
{
    fab_flow *w = &f->flows[flow];
    nscc *c = fab_control_state(f, flow);
    const bool is_marked = ack->echoes_mark;
    if (w->is_complete)
        return;
    const double trip = (double)(f->now - ack->stamp), bytes = (double)w->repeat->news;
    if (trip < c->base)
        shorten_base(c, trip);
    const double delay = trip - c->base;
    c->achieved += w->repeat->news;
    c->batch += w->repeat->news;
    c->ignored += w->repeat->news;
    if (w->repeat->losses) {
        lost(f, w, c);
        return;
    }
    if (ack->kind == FAB_FRAME_NACK)
        return; /* already known */
    note_delay(c, delay, is_marked);
    if (adapt(f, w, c, delay, is_marked)) {
        c->sum = 0;
        c->batch = 0;
        return;
    }
    if (!is_marked && delay < c->target)
        increase_quickly(w, c, bytes, delay);
    else if (!is_marked)
        c->sum += bytes * c->fair;
    else if (delay >= c->target)
        decrease(f, w, c);
    adjust_if_due(f, w, c);
}

/* No feedback for a long time: restart with one packet. */
static void timed_out(fab *f, uint32_t flow)
{
    nscc *c = fab_control_state(f, flow);
    c->has_loss = true;
    c->sum = 0;
    c->batch = 0;
    f->flows[flow].window = f->config.payload;
}

const fab_control fab_nscc = {
    .size = sizeof(nscc), .start = start, .acked = acked, .timed_out = timed_out};
