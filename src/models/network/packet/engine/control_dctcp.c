/* SPDX-License-Identifier: Apache-2.0 */
/* control_dctcp.c - DCTCP: the share of marked packets determines the decrease of the rate
 * (packet-network.md 8.4).
 *
 * A batch is what was in flight when the previous one ended, about a round trip: it ends with the
 * first ACK beyond `last_update`.  Within a batch the rate is decreased once (is_reduced until
 * `high` is acknowledged), because all marks of one queue are one signal. */
#include "fabric_impl.h"

typedef struct dctcp {
    double alpha; /* moving average of the share of marked packets */
    /* last_update, high: sequences, bytes; batch: packets */
    uint64_t marks, last_update, batch, high;
    bool is_reduced;
} dctcp;

static void start(fab *f, uint32_t flow)
{
    *(dctcp *)fab_control_state(f, flow) = (dctcp){.alpha = 1};
}

static void close_batch(const fab *f, const fab_flow *w, dctcp *d, uint64_t sequence)
{
    const double g = f->config.gain;
    if (d->last_update == 0) {
        d->batch = w->sent / f->config.payload + 1;
    } else {
        const double share = (double)d->marks / (double)d->batch;
        d->alpha = (1 - g) * d->alpha + g * (share < 1 ? share : 1);
        d->marks = 0;
        /* A NACK may have moved `sent` back before this ACK: such a batch has one packet. */
        d->batch = (w->sent > sequence ? w->sent - sequence : 0) / f->config.payload + 1;
    }
    d->last_update = w->sent;
}

static void acked(fab *f, uint32_t flow, const fab_frame *ack)
{
    const fab_flow *w = &f->flows[flow];
    dctcp *d = fab_control_state(f, flow);
    const bool is_new = ack->sequence > d->last_update;
    d->marks += ack->echoes_mark;
    if (is_new)
        close_batch(f, w, d, ack->sequence);
    if (d->is_reduced && ack->sequence > d->high)
        d->is_reduced = false;
    if (ack->echoes_mark && !d->is_reduced) {
        const uint64_t lower = fab_whole_rate((double)w->rate * (1 - d->alpha / 2), w->rate);
        fab_flow_change_rate(f, flow, fab_at_least(lower, f->config.min_rate));
        d->is_reduced = true;
        d->high = w->sent;
    }
    if (is_new && !d->is_reduced)
        fab_flow_change_rate(f, flow, fab_at_most(w->rate + f->config.dctcp_rate_ai, w->line_rate));
}

const fab_control fab_dctcp = {.size = sizeof(dctcp), .start = start, .acked = acked};
