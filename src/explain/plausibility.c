/* SPDX-License-Identifier: Apache-2.0 */
/* plausibility.c - figures of a run that no machine gives: what, why, and what to do about it, a line
 * each.
 *
 * A check must never be wrong: bounds are generous (all ports of a rank together, time that includes
 * waiting), and what is not known is not judged.  Cost: next to nothing. */
#include "run_facts.h"

#include "models/network/net_table.h"
#include "run/watch.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/units.h>

#include <stdarg.h>
#include <stdio.h>

#define MOST_MFU 0.65    /* no published training run is above it */
#define MOST_FLOPS 2e16  /* per second: four times the fastest chip of 2026 */
#define MOST_MEMORY 5e13 /* bytes per second */
#define LEAST_MEMORY 1e10
#define MOST_BUBBLE 0.5
#define SLACK 1.02
#define MOST_CACHED \
    1.5 /* bytes that kernels read over bytes from memory: caches; of built-in models 1.1 at most */

typedef struct judge {
    const orr_sim *s;
    orr__run_facts *f;
    bool failed;
} judge;

ORR_PRINTF(2, 3) static void warn(judge *j, const char *fmt, ...)
{
    char text[400];
    va_list args;
    if (j->f->warning_count == ORR__FACTS_WARNINGS)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *copy = orr_arena_text(j->f->arena, orr_str_of(text));
    j->failed |= !copy;
    if (copy)
        j->f->warnings[j->f->warning_count++] = copy;
}

/* ---- the network ---- */

/* All that a rank can send at once, bytes per second; 0: not known. */
static double injection_of(const orr_sim *s)
{
    const orr_net_config *c = &s->net_config;
    double sum = 0;
    if (s->is_link_level || s->packet)
        return 0;
    for (uint32_t k = 0; k < c->dims; k++) {
        const double links = c->shape[k] == ORR_NET_FULLY_CONNECTED          ? c->npus[k] - 1.0
                             : c->shape[k] == ORR_NET_RING && c->npus[k] > 2 ? 2
                                                                             : 1;
        sum += c->bandwidth[k] * (double)(1 << 30) * (c->npus[k] > 1 ? links : 0);
    }
    return sum;
}

/* Bytes that each rank must at least send in one call; 0: not known. */
static double bus_bytes(const orr_sim *s, const orr__comm_facts *t)
{
    const double n = t->group_ranks, size = (double)t->size;
    if (t->group_ranks < 2)
        return 0;
    switch (t->type) {
    case ORR_COLL_ALL_REDUCE:
        return s->opt.up_reduces || s->opt.out_reduces ? size : 2 * (n - 1) / n * size;
    case ORR_COLL_ALL_GATHER:
        return (n - 1) * size;
    case ORR_COLL_ALL_TO_ALL:
    case ORR_COLL_REDUCE_SCATTER:
        return (n - 1) / n * size;
    default:
        return 0;
    }
}

static void check_bus(judge *j)
{
    char rate[ORR_UNIT_ROOM], size[ORR_UNIT_ROOM], link[ORR_UNIT_ROOM];
    const double most = injection_of(j->s);
    const orr__comm_facts *worst = NULL;
    double worst_rate = most * SLACK;
    for (uint32_t i = 0; most > 0 && i < j->f->collective_count; i++) {
        const orr__comm_facts *t = &j->f->collectives[i];
        const double ns = t->count ? (double)t->time / (double)t->count : 0;
        if (ns > 0 && bus_bytes(j->s, t) / ns * 1e9 > worst_rate) {
            worst = t;
            worst_rate = bus_bytes(j->s, t) / ns * 1e9;
        }
    }
    if (!worst)
        return;
    const char *name = orr_collective_name(worst->type);
    const bool is_unaware = j->s->net_ops == &orr__net_unaware;
    warn(
        j,
        "%s of %s over %u ranks: bus bandwidth %s, but a rank can send %s at most: %s; use --network "
        "%s",
        name ? name : "a collective", orr_bytes_text(worst->size, size), worst->group_ranks,
        orr_rate_text((orr_Bps)worst_rate, rate), orr_rate_text((orr_Bps)most, link),
        is_unaware ? "the network unaware gives every message the whole link"
                   : "messages do not share its links",
        orr_net_find("fluid") ? "fluid" : "aware");
}

/* ---- compute ---- */

/* Operations that a rank of this class does, and the bytes that they read and write. */
static double operations_of(const orr_sim *s, uint32_t class_index, double *bytes)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(s->set, class_index));
    double sum = 0;
    *bytes = 0;
    for (uint32_t i = 0; c->num_ops && i < c->count; i++)
        if (c->type[i] == ORR_NODE_COMP && c->num_ops[i] != ORR_NO_VALUE && c->num_ops[i] > 0) {
            sum += (double)c->num_ops[i];
            if (c->tensor_size && c->tensor_size[i] != ORR_NO_VALUE && c->tensor_size[i] > 0)
                *bytes += (double)c->tensor_size[i];
        }
    return sum;
}

/* More operations than any chip does in the time that computing takes: durations are missing. */
static bool computes_in_no_time(const judge *j)
{
    const orr_sim *s = j->s;
    const uint32_t k = orr_set_class_of(s->set, 0);
    const double ns = (double)j->f->times[0][ORR__FIGURE_COMPUTE];
    double bytes;
    return j->f->finished == j->f->ranks && operations_of(s, k, &bytes) > MOST_FLOPS / 1e9 * ns;
}

static bool is_measured(const judge *j)
{
    return j->s->opt.chip || j->s->like_chip;
}

/* How to compute by measured kernels; empty: it does. */
static const char *measured_by(const judge *j)
{
    return is_measured(j)       ? ""
           : j->s->opt.is_ideal ? "; leave out --ideal for measured kernels"
                                : "; --hardware CHIP or --machine NAME uses measured kernels";
}

/* Tensors come and go faster than the memory of the chip moves them. */
static void check_memory(judge *j)
{
    const orr_sim *s = j->s;
    const orr_chip *chip = s->like_chip ? s->like_chip : s->opt.chip;
    const double most = chip && !s->like_chip ? chip->memory_GBps * 1e9 : s->system.local_mem_bw;
    const double ns = (double)j->f->times[0][ORR__FIGURE_COMPUTE];
    char size[ORR_UNIT_ROOM], rate[ORR_UNIT_ROOM], has[ORR_UNIT_ROOM];
    double bytes;
    if (!(most > 0) || !(ns > 0) || s->opt.change.memory > 0 || j->f->finished != j->f->ranks)
        return;
    (void)operations_of(s, orr_set_class_of(s->set, 0), &bytes);
    if (bytes / ns * 1e9 <= most * MOST_CACHED || bytes / ns * 1e9 >= 1e18)
        return;
    warn(
        j,
        "computing moves %s at %s, but the memory of %s gives %s: durations of nodes are too short, or their tensor_size is too "
        "large; correct the traces, or set roofline-enabled%s",
        orr_bytes_text((uint64_t)bytes, size), orr_rate_text((orr_Bps)(bytes / ns * 1e9), rate),
        chip && !s->like_chip ? chip->name : "the system file", orr_rate_text((orr_Bps)most, has),
        measured_by(j));
}

static void check_compute(judge *j)
{
    const orr__throughput *p = &j->f->throughput;
    char time[ORR_UNIT_ROOM];
    const char *remedy = measured_by(j);
    if (computes_in_no_time(j))
        warn(j, "computing takes %s: no chip is so fast: %s%s",
             j->f->times[0][ORR__FIGURE_COMPUTE]
                 ? orr_time_text((orr_ps)j->f->times[0][ORR__FIGURE_COMPUTE] * 1000, time)
                 : "no time",
             j->s->system.roofline ? "peak-perf is too large"
                                   : "roofline-enabled is not set, and nodes have no durations",
             remedy);
    else
        check_memory(j);
    if (!computes_in_no_time(j) && p->mfu > MOST_MFU)
        warn(j, "MFU %.1f %% of %.4g TFLOP/s (%s): no training run is published above 65 %%: %s%s",
             100 * p->mfu, p->peak_flops / 1e12, p->peak_of,
             is_measured(j) ? "the traces leave out work that real steps have"
                            : "compute runs at the peak, without losses",
             remedy);
}

static void check_bubble(judge *j)
{
    const orr__run_facts *f = j->f;
    const double end = (double)f->end_ns;
    if (f->is_split && end > 0 && f->spread[ORR__FIGURE_BUBBLE].mean > MOST_BUBBLE * end)
        warn(
            j,
            "pipeline bubble %.0f %% of the time: too few micro-batches for the stages: use a larger "
            "--batch, fewer stages (--pp) or --pipeline interleaved",
            100 * f->spread[ORR__FIGURE_BUBBLE].mean / end);
}

static void check_system(judge *j)
{
    const cfg_system *c = &j->s->system;
    if (!c->roofline || j->s->opt.chip)
        return;
    if (c->peak_perf > MOST_FLOPS)
        warn(j, "peak-perf is %.4g TFLOP/s: no chip computes so fast; its unit is TFLOP/s, as 989",
             c->peak_perf / 1e12);
    if (c->local_mem_bw > MOST_MEMORY)
        warn(j, "local-mem-bw is %.4g GB/s: no memory is so fast; its unit is GB/s, as 3350",
             c->local_mem_bw / 1e9);
    if (c->local_mem_bw > 0 && c->local_mem_bw < LEAST_MEMORY)
        warn(j, "local-mem-bw is %.4g GB/s: slower than any chip's; its unit is GB/s, as 3350",
             c->local_mem_bw / 1e9);
}

bool orr__find_implausible(const orr_sim *s, orr__run_facts *f)
{
    judge j = {.s = s, .f = f};
    check_bus(&j);
    check_compute(&j);
    check_bubble(&j);
    check_system(&j);
    return !j.failed;
}
