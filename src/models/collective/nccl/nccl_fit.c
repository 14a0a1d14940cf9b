/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_fit.c - fits constants to measured rows.
 *
 * Minimises the sum of |log(measured / modelled)|, smoothed near 0, by pattern search (Hooke and
 * Jeeves) in the logarithm of each constant: no derivatives (the model has kinks where NCCL's
 * choice changes), no randomness, the same bytes on every machine.  A weak regularisation towards
 * the start fixes constants that the rows do not determine.  Cost: constants x rows x a few
 * hundred. */

#include "models/collective/nccl/nccl_parts.h"

#include <math.h>
#include <stddef.h>

typedef struct knob {
    size_t at;
    const char *name, *unit;
    double low, high;
} knob;

#define LINE(p, field) \
    (offsetof(nccl_constants, line) + (p) * sizeof(nccl_line) + offsetof(nccl_line, field))
#define OWN(field) offsetof(nccl_constants, field)

static const knob knobs[] = {
    {LINE(NCCL_LL, base_ns), "LL base", "us", 500, 1e6},
    {LINE(NCCL_LL, grow_ns), "LL growth", "us", 1, 1e5},
    {LINE(NCCL_LL, up_ns), "LL step", "us", 50, 1e6},
    {LINE(NCCL_LL, up_grow_ns), "LL step growth", "us", 1, 1e5},
    {LINE(NCCL_LL, rate), "LL rate", "", 0.002, 0.98},
    {LINE(NCCL_LL, ends), "LL ends", "", 0.01, 4},
    {LINE(NCCL_LL, out_ns), "LL step between nodes", "us", 100, 1e6},
    {LINE(NCCL_LL, tree_ns), "LL tree step between nodes", "us", 100, 1e6},
    {LINE(NCCL_LL128, base_ns), "LL128 base", "us", 500, 1e6},
    {LINE(NCCL_LL128, up_ns), "LL128 step", "us", 50, 1e6},
    {LINE(NCCL_LL128, rate), "LL128 rate", "", 0.002, 0.98},
    {LINE(NCCL_LL128, ends), "LL128 ends", "", 0.01, 4},
    {LINE(NCCL_LL128, out_ns), "LL128 step between nodes", "us", 100, 1e6},
    {LINE(NCCL_LL128, tree_ns), "LL128 tree step between nodes", "us", 100, 1e6},
    {LINE(NCCL_SIMPLE, base_ns), "Simple base", "us", 500, 1e6},
    {LINE(NCCL_SIMPLE, up_ns), "Simple step", "us", 50, 1e6},
    {LINE(NCCL_SIMPLE, rate), "Simple rate", "", 0.002, 0.98},
    {LINE(NCCL_SIMPLE, ends), "Simple ends", "", 0.01, 4},
    {LINE(NCCL_SIMPLE, drain_ns), "Simple drain", "us", 1, 1e6},
    {LINE(NCCL_SIMPLE, out_ns), "Simple step between nodes", "us", 100, 1e6},
    {LINE(NCCL_SIMPLE, tree_ns), "Simple tree step between nodes", "us", 100, 1e6},
    {OWN(direct_ns), "send/receive base", "us", 500, 1e6},
    {OWN(direct_grow_ns), "send/receive growth", "us", 1, 1e6},
    {OWN(peer_ns), "send/receive peer", "us", 1, 1e5},
    {OWN(direct_rate), "send/receive rate", "", 0.01, 0.98},
    {OWN(direct_drain_ns), "send/receive drain", "us", 1, 1e6},
    {OWN(out_rate), "NIC rate", "", 0.01, 0.98},
    {OWN(nvls_ns), "NVLS base", "us", 500, 1e6},
    {OWN(nvls_rate), "NVLS rate", "", 0.01, 0.98},
    {OWN(nvls_loop_ns), "NVLS turn", "us", 1, 1e6},
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

static double *knob_of(nccl_constants *k, size_t i)
{
    return (double *)((char *)k + knobs[i].at);
}

size_t nccl_knobs(void)
{
    return KNOBS;
}

const char *nccl_knob_name(size_t i)
{
    return knobs[i].name;
}

const char *nccl_knob_unit(size_t i)
{
    return knobs[i].unit;
}

double nccl_knob(const nccl_constants *k, size_t i)
{
    return *(const double *)((const char *)k + knobs[i].at);
}

double nccl_ratio(const nccl_row *row, const nccl_constants *k)
{
    nccl_custom table = {.generation = row->shape.generation, .k = *k};
    nccl_forced with = {.table = &table};
    nccl_cost cost;
    bool known = row->is_message ? nccl_send_cost_of(&row->shape, row->bytes, &with, &cost)
                                 : nccl_cost_of(&row->shape, row->kind, row->bytes, &with, &cost);
    return known && cost.time_ns > 0 ? row->ns / cost.time_ns : 0;
}

static double loss(const nccl_row *rows, size_t count, const nccl_constants *k, const double *start)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double ratio = rows[i].left_out ? 0 : nccl_ratio(&rows[i], k);
        if (ratio > 0) {
            double r = log(ratio);
            sum += sqrt(r * r + 1e-4);
        }
    }
    for (size_t i = 0; i < KNOBS; i++) {
        double away = log(nccl_knob(k, i) / start[i]);
        sum += 0.05 * away * away;
    }
    return sum;
}

/* Tries a step up and down; keeps an improvement. */
static double probe(const nccl_row *rows,
                    size_t count,
                    nccl_constants *k,
                    const double *start,
                    size_t i,
                    double factor,
                    double best)
{
    double *v = knob_of(k, i), was = *v;
    for (int way = 0; way < 2; way++) {
        double got;
        *v = way ? was / factor : was * factor;
        if (*v < knobs[i].low || *v > knobs[i].high)
            continue;
        got = loss(rows, count, k, start);
        if (got < best - 1e-9)
            return got;
    }
    *v = was;
    return best;
}

void nccl_fit(const nccl_row *rows, size_t count, nccl_constants *k)
{
    double start[KNOBS], old[KNOBS], best;
    for (size_t i = 0; i < KNOBS; i++) {
        double *v = knob_of(k, i);
        /* Within the limits, which are above 0, as logarithms need. */
        *v = *v < knobs[i].low ? knobs[i].low : *v > knobs[i].high ? knobs[i].high : *v;
        start[i] = *v;
    }
    best = loss(rows, count, k, start);
    for (double factor = 1.4; factor > 1.002; factor = 1 + (factor - 1) * 0.6) {
        for (int round = 0; round < 12; round++) {
            double before = best;
            for (size_t i = 0; i < KNOBS; i++)
                old[i] = *knob_of(k, i);
            for (size_t i = 0; i < KNOBS; i++)
                best = probe(rows, count, k, start, i, factor, best);
            if (best > before - 1e-4 * before)
                break;
            /* Continue in the direction that helped. */
            for (;;) {
                nccl_constants on = *k;
                double got;
                for (size_t i = 0; i < KNOBS; i++) {
                    double *v = knob_of(&on, i), went = *v * (*v / old[i]);
                    *v = went < knobs[i].low    ? knobs[i].low
                         : went > knobs[i].high ? knobs[i].high
                                                : went;
                }
                got = loss(rows, count, &on, start);
                /* Rounding is no gain: the loss falls by this much in each turn, so it ends. */
                if (got >= best - 1e-9)
                    break;
                for (size_t i = 0; i < KNOBS; i++)
                    old[i] = *knob_of(k, i);
                *k = on;
                best = got;
            }
        }
    }
}
