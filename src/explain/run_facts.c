/* SPDX-License-Identifier: Apache-2.0 */
/* run_facts.c - the record of a run (src/run/watch.h) as facts: statistics per rank and over ranks,
 * collectives, traffic, the busiest links, provenance. */
#include "base/memory/sort.h"
#include "facts.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/units.h>

#include "models/compute/atlas/chip_cost.h"
#include "models/network/net_table.h"
#include "models/network/packet/packet_run.h"
#include "run/fold/fold.h"
#include "run/watch.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Implausible results: what, why, and the remedy, one line
 * each.
 *
 * A check must never be wrong: bounds are generous (all ports of a rank together, times including
 * waits), and unknown quantities are not judged.  Cost: negligible. */

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

/* Total bandwidth of a rank, bytes per second; 0: not known. */
static double injection_of(const orr_sim *s)
{
    const orr_net_config *c = &s->net_config;
    double sum = 0;
    if (s->is_link_level || s->packet)
        return 0;
    for (uint32_t k = 0; k < c->dims; k++) {
        const double links = net_rank_links(c->shape[k], c->npus[k]);
        sum += c->bandwidth[k] * (double)(1 << 30) * (c->npus[k] > 1 ? links : 0);
    }
    return sum;
}

/* Lower bound on the bytes each rank sends per call; 0: not known. */
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

/* Ties: the list is in order of start, and the order within a tick depends on the number of
 * threads. */
static bool comes_first(const orr__comm_facts *a, const orr__comm_facts *b)
{
    if (a->type != b->type)
        return a->type < b->type;
    return a->size != b->size ? a->size < b->size : a->group_ranks < b->group_ranks;
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
        const double rate_of = ns > 0 ? bus_bytes(j->s, t) / ns * 1e9 : 0;
        if (rate_of > worst_rate || (worst && rate_of >= worst_rate && comes_first(t, worst))) {
            worst = t;
            worst_rate = rate_of;
        }
    }
    if (!worst)
        return;
    const char *name = orr_collective_name(worst->type);
    const bool is_unaware = j->s->net_ops == &orr__net_unaware;
    warn(j,
         "%s of %s over %u ranks: bus bandwidth %s, but a rank can send at most %s: %s; use "
         "--network %s",
         name ? name : "a collective", orr_bytes_text(worst->size, size), worst->group_ranks,
         orr_rate_text((orr_Bps)worst_rate, rate), orr_rate_text((orr_Bps)most, link),
         is_unaware ? "the network unaware gives every message the whole link"
                    : "messages do not share its links",
         orr_net_find("fluid") ? "fluid" : "aware");
}

/* ---- compute ---- */

/* Operations of a rank of this class, and the bytes they read and write. */
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

/* More operations than any chip could do in the compute time: durations are missing. */
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

/* How to get measured kernels; empty: they are in use. */
static const char *measured_by(const judge *j)
{
    return is_measured(j)       ? ""
           : j->s->opt.is_ideal ? "; leave out --ideal for measured kernels"
                                : "; --hardware CHIP or --machine NAME uses measured kernels";
}

/* Tensors are allocated and freed faster than the chip's memory can move them. */
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
    warn(j,
         "compute moves %s at %s, but the memory of %s provides %s: durations of nodes are "
         "too short, or their tensor_size is too large; correct the traces, or set "
         "roofline-enabled%s",
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
        warn(j, "compute takes %s, which no chip achieves: %s%s",
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
        warn(j, "peak-perf is %.4g TFLOP/s: no chip is that fast; the unit is TFLOP/s, e.g. 989",
             c->peak_perf / 1e12);
    if (c->local_mem_bw > MOST_MEMORY)
        warn(j, "local-mem-bw is %.4g GB/s: no memory is that fast; the unit is GB/s, e.g. 3350",
             c->local_mem_bw / 1e9);
    if (c->local_mem_bw > 0 && c->local_mem_bw < LEAST_MEMORY)
        warn(j, "local-mem-bw is %.4g GB/s: slower than any chip's; the unit is GB/s, e.g. 3350",
             c->local_mem_bw / 1e9);
}

/* Reports implausible results as warnings.  False: out of memory. */
static bool find_implausible(const orr_sim *s, orr__run_facts *f)
{
    judge j = {.s = s, .f = f};
    check_bus(&j);
    check_compute(&j);
    check_bubble(&j);
    check_system(&j);
    return !j.failed;
}

typedef struct taker {
    const orr_sim *s;
    orr__run_facts *f;
} taker;

static const char *status_of(const orr_sim *s)
{
    uint64_t tick;
    if (s->finished == s->npu_count)
        return "finished";
    if (s->code || clk_has_failed(s->clock))
        return "failed";
    return s->fold || s->was_stopped || clk_next_tick(s->clock, &tick) ? "interrupted" : "stalled";
}

/* ---- ranks ---- */

static uint64_t sub_floor0(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t idle_of(const orr_sim *s, uint32_t rank)
{
    uint64_t sum = 0;
    for (unsigned u = 0; u < WATCH_USES; u++)
        sum += watch_spent(s, rank, (watch_use)u);
    return sub_floor0(watch_end_of_run(s), sum);
}

/* Of an unfinished rank: up to now. */
static uint64_t split_time(const orr_sim *s, uint32_t rank, orr__figure f)
{
    switch (f) {
    case ORR__FIGURE_FINISHED:
        return orr_sim_rank(s, rank)->finished_at;
    case ORR__FIGURE_COMPUTE:
        return watch_spent(s, rank, WATCH_COMPUTE);
    case ORR__FIGURE_COMMUNICATION:
        return watch_spent(s, rank, WATCH_EXPOSED) + watch_overlapped(s, rank);
    case ORR__FIGURE_EXPOSED:
        return watch_spent(s, rank, WATCH_EXPOSED);
    case ORR__FIGURE_MEMORY:
        return watch_spent(s, rank, WATCH_MEMORY);
    case ORR__FIGURE_HOST:
        return watch_spent(s, rank, WATCH_HOST);
    case ORR__FIGURE_WAITING:
        return watch_spent(s, rank, WATCH_WAITING);
    case ORR__FIGURE_BUBBLE:
        return watch_spent(s, rank, WATCH_BUBBLE);
    default:
        return idle_of(s, rank);
    }
}

static uint64_t time_of(const orr_sim *s, uint32_t rank, orr__figure f)
{
    const orr_sim_rank_result *r = orr_sim_rank(s, rank);
    if (s->watch->splits)
        return split_time(s, rank, f);
    switch (f) {
    case ORR__FIGURE_FINISHED:
        return r->finished_at;
    case ORR__FIGURE_COMPUTE:
        return s->fold ? r->gpu_time : watch_compute_so_far(&s->npus[rank]);
    case ORR__FIGURE_COMMUNICATION:
        return s->fold ? r->comm_time : watch_comm_so_far(&s->npus[rank]);
    case ORR__FIGURE_EXPOSED: /* as the reference has it (astra-sim.md 6.5), but never below 0 */
        return sub_floor0(watch_until(s, rank), r->gpu_total);
    case ORR__FIGURE_MEMORY:
        return r->memory_time;
    case ORR__FIGURE_HOST:
        return r->cpu_time;
    case ORR__FIGURE_WAITING:
    case ORR__FIGURE_BUBBLE:
        return ORR_NEVER;
    default:
        return sub_floor0(watch_end_of_run(s), watch_busy(s, rank));
    }
}

/* Adjacent ranks are mostly equal: sort runs of them, not single ones. */
typedef struct rank_run {
    uint64_t value;
    uint32_t first, count;
} rank_run;

static int compare_runs(const void *a, const void *b)
{
    const rank_run *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Runs of ranks that have this figure, sorted by value; returns their number. */
static uint32_t sort_ranks(const orr__run_facts *f, unsigned figure, rank_run *runs)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < f->ranks; r++) {
        const uint64_t v = f->times[r][figure];
        if (v == ORR_NEVER)
            continue;
        if (n && runs[n - 1].value == v && runs[n - 1].first + runs[n - 1].count == r)
            runs[n - 1].count++;
        else
            runs[n++] = (rank_run){v, r, 1};
    }
    orr_sort(runs, n, sizeof *runs, compare_runs);
    return n;
}

static orr__figure_spread spread_of(const orr__run_facts *f, unsigned figure, rank_run *runs)
{
    orr__figure_spread out = {0};
    const uint32_t n = sort_ranks(f, figure, runs);
    uint32_t passed = 0;
    double sum = 0;
    for (uint32_t r = 0; r < f->ranks; r++)
        if (f->times[r][figure] != ORR_NEVER)
            sum += (double)f->times[r][figure];
    for (uint32_t i = 0; i < n; i++)
        out.ranks += runs[i].count;
    if (!n)
        return out;
    out.least = runs[0].value;
    out.most = runs[n - 1].value;
    out.mean = sum / out.ranks;
    for (uint32_t i = 0; i < n && passed <= out.ranks / 2; passed += runs[i++].count)
        out.median = runs[i].value;
    return out;
}

/* Ranks of one tick by number, whether folded or not. */
static void order_finished(const orr__run_facts *f, rank_run *runs, uint32_t *order)
{
    const uint32_t n = sort_ranks(f, ORR__FIGURE_FINISHED, runs);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < runs[i].count && at < f->finished; k++)
            order[at++] = runs[i].first + k;
}

static bool take_ranks(taker *t)
{
    const orr_sim *s = t->s;
    orr__run_facts *f = t->f;
    uint64_t(*times)[ORR__FIGURES] = orr_arena_zeroed(f->arena, s->npu_count, sizeof *times);
    rank_run *runs = orr_alloc(s->npu_count, sizeof *runs);
    uint32_t *order = orr_arena_new(f->arena, s->finished, uint32_t);
    orr_bytes *peaks =
        s->system.track_local_mem ? orr_arena_new(f->arena, s->npu_count, orr_bytes) : NULL;
    const bool ok =
        times && runs && (order || !s->finished) && (peaks || !s->system.track_local_mem);
    f->times = (const uint64_t(*)[ORR__FIGURES])times;
    f->finish_order = order;
    f->simulated = orr_sim_simulated(s);
    f->simulated_last = orr_sim_simulated_last(s);
    f->peak_memory = peaks;
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        for (unsigned k = 0; k < ORR__FIGURES; k++)
            times[r][k] = time_of(s, r, (orr__figure)k);
        if (peaks)
            peaks[r] = orr_sim_rank(s, r)->peak_memory;
    }
    for (unsigned k = 0; ok && k < ORR__FIGURES; k++)
        f->spread[k] = spread_of(f, k, runs);
    if (ok && order && fold_knows_network(s))
        order_finished(f, runs, order);
    else if (ok && order)
        memcpy(order, s->finish_order, s->finished * sizeof *order);
    orr_free(runs);
    return ok;
}

/* ---- communication ---- */

typedef struct sorter {
    const orr__comm_facts *rows;
    bool by_bytes;
} sorter;

static int compare_rows(const void *a, const void *b, void *context)
{
    const sorter *s = context;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const orr__comm_facts *x = &s->rows[i], *y = &s->rows[k];
    const uint64_t mine = s->by_bytes ? x->bytes : x->time,
                   other = s->by_bytes ? y->bytes : y->time;
    if (mine != other)
        return mine > other ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (x->group_ranks != y->group_ranks)
        return x->group_ranks > y->group_ranks ? -1 : 1;
    return i < k ? -1 : i > k;
}

static orr__comm_facts comm_facts_of(const watch_tally *t, uint32_t ranks)
{
    return (orr__comm_facts){.count = t->count,
                             .bytes = t->bytes,
                             .time = t->time,
                             .longest = t->longest,
                             .exposed = t->exposed,
                             .waited = t->waited,
                             .type = t->collective,
                             .group_ranks = t->group_ranks,
                             .groups = t->groups,
                             .group = t->group,
                             .size = t->size,
                             .ranks = ranks};
}

static bool take_communication(taker *t)
{
    const struct watch_record *w = t->s->watch;
    orr__run_facts *f = t->f;
    const size_t n = w->tally_count;
    if (!n)
        return true;
    orr__comm_facts *rows = orr_arena_new(f->arena, n, orr__comm_facts);
    uint32_t *by_time = orr_arena_new(f->arena, n, uint32_t);
    uint32_t *by_bytes = orr_arena_new(f->arena, n, uint32_t);
    uint32_t *ranks = orr_alloc(n, sizeof *ranks);
    const bool ok = rows && by_time && by_bytes && ranks && watch_tally_ranks(t->s, ranks);
    for (size_t i = 0; ok && i < n; i++) {
        const orr__comm_facts one = comm_facts_of(&w->tallies[i], ranks[i]);
        if (w->tallies[i].type == ORR_NODE_COMM_SEND)
            f->sends = one;
        else if (w->tallies[i].type == ORR_NODE_COMM_RECV)
            f->receives = one;
        else if (w->tallies[i].type == ORR_NODE_COMM_COLL) {
            by_time[f->collective_count] = by_bytes[f->collective_count] = f->collective_count;
            rows[f->collective_count++] = one;
        }
    }
    if (ok && f->collective_count) {
        qsort_r(by_time, f->collective_count, sizeof *by_time, compare_rows,
                &(sorter){rows, false});
        qsort_r(by_bytes, f->collective_count, sizeof *by_bytes, compare_rows,
                &(sorter){rows, true});
    }
    f->collectives = rows;
    f->by_time = by_time;
    f->by_bytes = by_bytes;
    orr_free(ranks);
    return ok;
}

/* ---- throughput ---- */

static double number_in(const orr_trace *t, const char *name)
{
    if (!orr_trace_has_metadata(t))
        return 0;
    orr_attrs it = orr_trace_attrs(t);
    for (orr_attr a; orr_attrs_next(&it, &a);) {
        int64_t whole;
        if (a.name.len != strlen(name) || memcmp(a.name.ptr, name, a.name.len) != 0)
            continue;
        if (!a.is_list && a.kind == ORR_VALUE_DOUBLE)
            return a.value.d;
        return orr_attr_int(&a, &whole) ? (double)whole : 0;
    }
    return 0;
}

double orr__metadata_of(const orr_set *set, const char *name)
{
    /* Devices are equal, but tokens of one job are not those of all. */
    if (!orr_set_class_count(set) || (set->job_count > 1 && strcmp(name, "device_bytes") != 0))
        return 0;
    return number_in(orr_set_trace(set, 0), name);
}

static bool take_jobs(taker *t)
{
    const orr_set *set = t->s->set;
    orr__run_facts *f = t->f;
    /* Part of a traced cluster: some ranks of the job are missing here. */
    if (!set->job_count || set->rank_count != f->ranks)
        return true;
    orr__run_job *jobs = orr_arena_new(f->arena, set->job_count, orr__run_job);
    uint32_t *hosts = orr_arena_new(f->arena, set->job_first[set->job_count], uint32_t);
    if (!jobs || !hosts)
        return false;
    memcpy(hosts, set->job_hosts, set->job_first[set->job_count] * sizeof *hosts);
    for (size_t j = 0; j < set->job_count; j++) {
        orr__run_job *k = &jobs[j];
        double compute = 0, exposed = 0;
        *k = (orr__run_job){.hosts = hosts + set->job_first[j],
                            .ranks = set->job_first[j + 1] - set->job_first[j],
                            .is_finished = true};
        for (uint32_t i = 0; i < k->ranks; i++) {
            const uint64_t *times = f->times[k->hosts[i]];
            if (times[ORR__FIGURE_FINISHED] == ORR_NEVER) {
                k->is_finished = false;
                break;
            }
            if (times[ORR__FIGURE_FINISHED] > k->finished_ns)
                k->finished_ns = times[ORR__FIGURE_FINISHED];
            compute += (double)times[ORR__FIGURE_COMPUTE];
            exposed += (double)times[ORR__FIGURE_EXPOSED];
        }
        k->compute_ns = (uint64_t)(compute / k->ranks + 0.5);
        k->exposed_ns = (uint64_t)(exposed / k->ranks + 0.5);
        if (f->steps.asked > 1)
            k->finished_ns = 0;
        if (k->is_finished && k->finished_ns)
            k->tokens_per_s =
                number_in(orr_set_trace(set, orr_set_class_of(set, k->hosts[0])), "tokens") /
                ((double)k->finished_ns / 1e9);
    }
    f->jobs = jobs;
    f->job_count = set->job_count;
    return true;
}

/* ---- uncertainty ---- */

/* The rank that ends last computes, or waits for ranks that compute, except for its exposed
 * communication; both parts have independent errors. */
void orr__interval_of(const orr_sim *s, uint32_t last, orr__interval *out)
{
    const work_spread *most = NULL;
    *out = (orr__interval){0};
    for (uint32_t k = 0; s->graphs && k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        if (g->t && g->ticks && g->spread.us > 0 && (!most || g->spread.us > most->us))
            most = &g->spread;
    }
    const double end = (double)watch_end_of_run(s);
    if (!most || end <= 0)
        return;
    const double share = (double)time_of(s, last, ORR__FIGURE_EXPOSED);
    const double exposed = share < end ? share : end;
    const double low = (end - exposed) * most->low_us / most->us;
    const double high = (end - exposed) * most->high_us / most->us;
    const job_errors e =
        orr__job_errors_of(end, exposed, low, high, s->npu_count > 1, most->has_experts);
    /* Requests arrive when they do, however fast they are served. */
    const double arrival = (double)watch_served_latest_us(s->watch->served) * 1e3;
    const double least = arrival < end ? arrival : end;
    out->low_ns = (uint64_t)(end - least > e.low ? end - e.low : least);
    out->high_ns = (uint64_t)(end + e.high);
    out->low_share = fmin(e.low / end, 1);
    out->high_share = e.high / end;
    out->own_low_ns = (uint64_t)(end - least > e.own_low ? end - e.own_low : least);
    out->own_high_ns = (uint64_t)(end + e.own_high);
    out->guessed = most->guessed_us / most->us;
    out->host = most->host_share;
    if (most->guessed[0] && out->guessed > 0.05)
        out->guessed_most = most->guessed;
}

static bool take_interval(taker *t)
{
    orr__run_facts *f = t->f;
    if (f->finished < f->ranks || !f->end_ns)
        return true;
    orr__interval_of(t->s, f->finish_order[f->ranks - 1], &f->interval);
    const char *most = f->interval.guessed_most;
    if (most) /* the facts outlive the simulation */
        f->interval.guessed_most = orr_arena_text(f->arena, orr_str_of(most));
    return !most || f->interval.guessed_most;
}

static const char *source_of_compute(const orr_sim *s, orr_arena *a)
{
    if (s->opt.chip)
        return orr_arena_print(a, "%s kernels of %s%s",
                               s->opt.chip->source ? "measured" : "estimated", s->opt.chip->name,
                               s->opt.chip->base ? ", calibrated" : "");
    if (s->like_chip)
        return orr_arena_print(a, "as efficient as on %s, at the peaks of the system",
                               s->like_chip->name);
    return s->system.roofline ? "at the peaks of the system, without losses"
                              : "durations of the traces";
}

/* Kernels were measured on a chip, whatever a machine file says of its peaks; who changes these is
 * told that nothing came of it. */
static bool has_other_peaks(const orr_sim *s)
{
    const orr_chip *chip = s->opt.chip;
    const double peak = chip ? chip->peak_tflops[ORR_TYPE_BF16] * 1e12 : 0;
    const double memory = chip ? chip->memory_GBps * 1e9 : 0;
    const double likeness = log(1.1); /* data sheets of one chip differ by less */
    if (!(peak > 0) || !(memory > 0) || !s->opt.chip_is_default)
        return false;
    return (s->system.peak_perf > 0 && fabs(log(s->system.peak_perf / peak)) > likeness) ||
           (s->system.local_mem_bw > 0 && fabs(log(s->system.local_mem_bw / memory)) > likeness);
}

static const char *compute_text(const orr_sim *s, orr_arena *a)
{
    const char *source = source_of_compute(s, a);
    if (source && has_other_peaks(s))
        source = orr_arena_print(
            a, "%s, not peak_tflops and memory_bandwidth of the machine (--ideal)", source);
    if (!source || !s->joint || !(s->system.overlap_cost > 0))
        return source;
    return orr_arena_print(a, "%s; %g %% of their speed lost during a collective", source,
                           100 * s->system.overlap_cost);
}

/* The type of most products: MFU refers to its peak. */
static orr_kernel_type product_type(const orr_sim *s)
{
    const double bits = orr__metadata_of(s->set, "product_bits");
    const orr_kernel_type type = bits == 8   ? ORR_TYPE_FP8
                                 : bits == 4 ? ORR_TYPE_NVFP4
                                             : ORR_TYPE_BF16;
    return s->opt.chip->peak_tflops[type] > 0 ? type : ORR_TYPE_BF16;
}

/* Hosts without a job do not count. */
static uint32_t devices_of(const orr_sim *s)
{
    const orr_set *set = s->set;
    return set->job_count && set->rank_count == s->npu_count ? set->job_first[set->job_count]
                                                             : s->npu_count;
}

static bool take_throughput(taker *t)
{
    const orr_sim *s = t->s;
    orr__throughput *p = &t->f->throughput;
    const double tokens = orr__metadata_of(s->set, "tokens");
    const double flops = orr__metadata_of(s->set, "model_flops");
    const double steps = orr__metadata_of(s->set, "steps");
    /* Consecutive steps overlap: one takes its increment. */
    const double seconds = (double)(t->f->steps.asked > 1 ? t->f->steps.last : t->f->end_ns) / 1e9;
    if (s->opt.chip)
        p->peak_flops = s->opt.chip->peak_tflops[product_type(s)] * 1e12;
    else if (s->system.roofline)
        p->peak_flops = s->system.peak_perf;
    if (p->peak_flops > 0)
        p->peak_of = s->opt.chip ? orr_arena_print(t->f->arena, "%s, %s dense", s->opt.chip->name,
                                                   orr_kernel_type_name(product_type(s)))
                     : s->opt.machine && s->opt.own_system
                         ? orr_arena_print(t->f->arena, "data sheet, %s", s->opt.machine)
                     : s->like_chip
                         ? orr_arena_print(t->f->arena, "peak-perf; kernels as efficient as on %s",
                                           s->like_chip->name)
                         : "peak-perf of the system file";
    if (!(tokens > 0) || t->f->finished < t->f->ranks || !(seconds > 0))
        return !(p->peak_flops > 0) || p->peak_of;
    p->steps = steps >= 1 && steps < 1e9 ? (uint32_t)steps : 1;
    p->step_seconds = seconds / p->steps;
    p->tokens_per_s = tokens / seconds;
    p->flops_per_s = flops / seconds / t->f->devices;
    p->mfu = p->peak_flops > 0 ? p->flops_per_s / p->peak_flops : 0;
    return !(p->peak_flops > 0) || p->peak_of;
}

/* Times of the last of several steps are relative to its first start, unlike arrivals. */
static void take_serving(taker *t)
{
    const struct watch_served *v = t->s->watch->served;
    orr__serving *p = &t->f->serving;
    uint64_t whole;
    if (!v || t->f->finished < t->f->ranks || t->f->steps.asked > 1)
        return;
    const served_sums *sum = watch_served_sums(v, &whole);
    const unsigned __int128 waited =
        sum->first_ns > sum->arrivals_ns ? sum->first_ns - sum->arrivals_ns : 0;
    const unsigned __int128 between =
        sum->last_ns > sum->first_ns ? sum->last_ns - sum->first_ns : 0;
    /* Decode ranks alone, without those that prefill, have no first tokens. */
    if (sum->first == 0 || sum->end_ns == 0)
        return;
    *p = (orr__serving){.requests = (uint64_t)(sum->first / whole),
                        .tokens = (uint64_t)(sum->made / whole),
                        .first_mean_ns = (double)waited / (double)sum->first,
                        .first_max_ns = sum->longest_ns,
                        .end_ns = sum->end_ns};
    if (sum->made > sum->first)
        p->next_mean_ns = (double)between / (double)(sum->made - sum->first);
    p->tokens_per_s = (double)p->tokens / ((double)p->end_ns / 1e9);
}

/* ---- the network ---- */

typedef struct busiest {
    orr_net_link *links;
    uint32_t count;
    uint64_t used;
} busiest;

static bool is_busier(const orr_net_link *a, const orr_net_link *b)
{
    return a->busy_ns != b->busy_ns ? a->busy_ns > b->busy_ns : a->bytes > b->bytes;
}

/* A network may have millions of links: the busiest are selected on the fly.  Ties keep their
 * order. */
static void keep_busiest(void *context, const orr_net_link *link)
{
    busiest *t = context;
    t->used++;
    if (t->count == ORR__FACTS_LINKS && !is_busier(link, &t->links[t->count - 1]))
        return;
    uint32_t i = t->count < ORR__FACTS_LINKS ? t->count++ : t->count - 1;
    for (; i > 0 && is_busier(link, &t->links[i - 1]); i--)
        t->links[i] = t->links[i - 1];
    t->links[i] = *link;
}

static bool take_packets(taker *t)
{
    orr_packet_figures figures;
    if (!orr_sim_packets(t->s, &figures))
        return true;
    orr__fabric_facts *packets = orr_arena_new(t->f->arena, 1, orr__fabric_facts);
    t->f->packets = packets;
    return packets && orr__fabric_facts_take(orr__net_packet_fabric(t->s->net), &figures,
                                             t->f->arena, packets);
}

static bool take_network(taker *t)
{
    const orr_sim *s = t->s;
    orr__run_facts *f = t->f;
    orr_sim_dimension *dims = orr_arena_new(f->arena, s->dims, orr_sim_dimension);
    busiest top = {0};
    f->dimensions = dims;
    f->dimension_count = s->dims;
    f->has_links = s->net_ops->report != NULL;
    if (!dims)
        return false;
    for (uint32_t k = 0; k < s->dims; k++)
        dims[k] = orr_sim_dimension_at(s, k);
    if (f->has_links) {
        top.links = orr_arena_new(f->arena, ORR__FACTS_LINKS, orr_net_link);
        if (!top.links)
            return false;
        orr_sim_visit_links(s, keep_busiest, &top);
    }
    f->links = top.links;
    f->link_count = top.count;
    f->links_used = top.used;
    return take_packets(t);
}

orr_code orr__check_links(const orr_sim *s, orr_error *err)
{
    return s->net_ops->report
               ? ORR_OK
               : orr_fail(err, ORR_EUSAGE, NULL, "the network model %s does not model links",
                          s->net_ops->name);
}

/* ---- provenance ---- */

bool orr__provenance_take(const orr_sim *s, orr__provenance *out)
{
    const orr__input_file all[ORR__FACTS_INPUTS] = {
        {.role = "traces", .path = s->opt.workload}, {.role = "system", .path = s->opt.system},
        {.role = "network", .path = s->opt.network}, {.role = "memory", .path = s->opt.memory},
        {.role = "groups", .path = s->opt.groups},   {.role = "ranks", .path = s->opt.ranks_file}};
    *out = (orr__provenance){.program = s->opt.program,
                             .status = status_of(s),
                             .network = s->net_ops->name,
                             .machine = s->opt.machine,
                             .chip = s->opt.chip ? s->opt.chip->name : NULL,
                             .queues_per_dim = s->opt.queues_per_dim,
                             .rendezvous = s->opt.rendezvous,
                             .injection_scale = s->opt.injection_scale};
    for (size_t i = 0; i < ORR__FACTS_INPUTS; i++) {
        orr__input_file *f = &out->inputs[out->input_count];
        if (i > 0 && !all[i].path)
            continue;
        *f = all[i];
        out->input_count++;
        if (i == 0)
            f->is_known = orr__set_content_hash(s->set, ORR_NO_NODE, &f->hash, NULL) == ORR_OK;
        if (i == 0 ? !f->is_known : !orr__input_file_hash(f))
            return false;
    }
    return true;
}

bool orr__provenance_lines(const orr__provenance *p,
                           orr_arena *a,
                           orr__provenance_line out[ORR__PROVENANCE_LINES],
                           size_t *count)
{
    char hash[ORR_CONTENT_HASH_ROOM];
    size_t n = 0;
    out[n++] = (orr__provenance_line){"program", p->program ? p->program : "orrery"};
    out[n++] = (orr__provenance_line){"status", p->status};
    out[n++] = (orr__provenance_line){"network_model", p->network};
    out[n++] = (orr__provenance_line){
        "options",
        orr_arena_print(a, "queues_per_dimension=%u rendezvous=%s injection_scale=%g",
                        p->queues_per_dim, p->rendezvous ? "true" : "false", p->injection_scale)};
    for (size_t i = 0; i < p->input_count; i++) {
        const orr__input_file *f = &p->inputs[i];
        out[n++] = (orr__provenance_line){
            f->role,
            orr_arena_print(a, "%s murmur3_128=%s", f->path ? f->path : "(in memory)",
                            f->is_known ? orr_content_hash_text(f->hash, hash) : "unknown")};
    }
    *count = n;
    for (size_t i = 0; i < n; i++)
        if (!out[i].value)
            return false;
    return true;
}

/* ---- everything ---- */

static orr_code take_all(taker *t, orr_error *err)
{
    const orr_sim *s = t->s;
    orr__run_facts *f = t->f;
    f->status = status_of(s);
    f->network = s->net_ops->name;
    f->end_ns = watch_end_of_run(s);
    f->steps = orr_sim_steps_of(s);
    f->ranks = s->npu_count;
    f->devices = devices_of(s);
    f->classes = orr_set_class_count(s->set);
    f->finished = s->finished;
    f->messages = s->messages;
    f->events = orr_sim_events(s);
    f->stall = orr__stall_known(s);
    f->path_shown = s->opt.critical_path;
    f->machine = s->opt.machine;
    f->is_split = s->watch->splits;
    take_serving(t);
    f->compute = compute_text(s, f->arena);
    if (!f->compute || !take_ranks(t) || !take_jobs(t) || !take_communication(t) ||
        !take_network(t) || !take_throughput(t) || !take_interval(t) || !find_implausible(s, f))
        return orr_no_memory(err);
    return f->path_shown && f->finished == f->ranks ? orr_sim_critical_path(s, &f->path, err)
                                                    : ORR_OK;
}

orr_code orr__run_facts_take(const orr_sim *s, orr__run_facts **out, orr_error *err)
{
    *out = NULL;
    if (!s->watch)
        return orr_fail(
            err, ORR_EUSAGE, NULL,
            "a run by the rules of a replaced program keeps no figures for this report");
    orr__run_facts *f = orr_alloc(1, sizeof *f);
    if (!f || !(f->arena = orr_arena_create())) {
        orr_free(f);
        return orr_no_memory(err);
    }
    const orr_code code = take_all(&(taker){s, f}, err);
    if (code)
        orr__run_facts_destroy(f);
    else
        *out = f;
    return code;
}

void orr__run_facts_destroy(orr__run_facts *f)
{
    if (!f)
        return;
    orr_critical_path_destroy(f->path);
    orr_arena_destroy(f->arena);
    orr_free(f);
}
