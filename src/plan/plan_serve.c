/* SPDX-License-Identifier: Apache-2.0 */
/* plan_serve.c - plans for serving: every division of a machine into replicas, by the estimate of
 * serve.h.
 *
 * A replica has tp x pp devices, experts are spread over ep.  Batch sizes tried are 8, 12, 16, 24,
 * ... up to the requests of a replica; if a latency limit falls between two of these, or below the
 * first, the largest size that meets it is searched there.  Plans that violate a limit or do not
 * fit are dropped; the others are sorted by tokens per second, descending. */
#include "search_impl.h"

#include "base/memory/sort.h"
#include "base/threads/pool.h"
#include "base/threads/stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BATCH = 8, MOST_BATCH = 1024 };

typedef struct serving {
    const orr_plan_serve_options *o;
    orr_machine machine;
    orr_system system;
    run_chip found;
    orr_plan_serving *list;
    size_t count, room;
    struct serving_way {
        orr_serve_ranks ranks;
        orr_plan_serving *list; /* by batch size */
        size_t count, room;
        orr_error refusal; /* code 0: none */
    } * ways;
    size_t way_count, way_room;
    int own_stop;
    int *stop; /* nonzero: it was stopped */
} serving;

static bool is_stopped(const serving *x)
{
    return __atomic_load_n(x->stop, __ATOMIC_RELAXED) != 0;
}

static orr_serve_options options_of(const serving *x, const orr_plan_serving *p)
{
    const orr_plan_serve_options *o = x->o;
    const orr_machine *m = &x->machine;
    orr_serve_options s = {.ranks = p->ranks,
                           .dtype = o->dtype,
                           .batch = o->requests,
                           .prompt = o->prompt,
                           .output = o->output,
                           .max_batch = p->max_batch,
                           .peak = (uint64_t)x->system.peak_flops,
                           .memory_rate = x->system.memory_bandwidth,
                           .chip = x->found.chip,
                           .only_figures = true,
                           .no_traces = true};
    orr_serve_on(&s, m);
    return s;
}

static bool add_ways(serving *x, uint32_t n, uint32_t tp, uint32_t pp)
{
    const uint64_t experts = x->o->model->experts;
    for (uint32_t ep = 1; ep <= n && (ep == 1 || ep <= experts); ep++) {
        if (ep > 1 && experts % ep)
            continue;
        if (!orr_grow(&x->ways, &x->way_room, x->way_count + 1))
            return false;
        x->ways[x->way_count++] = (struct serving_way){
            .ranks = {.tp = tp, .cp = 1, .pp = pp, .dp = n / tp / pp, .ep = ep}};
    }
    return true;
}

static bool keeps_limits(const serving *x, const orr_plan_serving *p)
{
    const orr_plan_serve_options *o = x->o;
    return (o->max_ttft_s <= 0 || p->ttft_s <= o->max_ttft_s) &&
           (o->max_tpot_s <= 0 || p->tpot_s <= o->max_tpot_s);
}

/* *out is NULL if it is illegal, or too large. */
static orr_code try_batch(serving *x,
                          struct serving_way *w,
                          uint64_t max_batch,
                          const orr_plan_serving **out,
                          orr_error *err)
{
    orr_plan_serving p = {.ranks = w->ranks, .max_batch = max_batch};
    const orr_serve_options s = options_of(x, &p);
    orr_set *set = NULL;
    orr_error why;
    const orr_code code = orr_serve(x->o->model, &s, &set, &p.report, &why);
    orr_set_close(set);
    *out = NULL;
    if (code == ORR_ENOMEM || !orr_grow(&w->list, &w->room, w->count + 1))
        return orr_no_memory(err);
    const orr_serve_report *r = &p.report;
    if (code && !w->refusal.code)
        w->refusal = why;
    if (code || !r->pools[0].fits || r->time <= 0)
        return ORR_OK;
    p.ttft_s = (double)r->first_token_mean * 1e-12;
    p.tpot_s = (double)r->next_token_mean * 1e-12;
    p.tokens_per_s = (double)r->output_tokens / ((double)r->time * 1e-12);
    const double usd = x->o->usd_per_hour > 0 ? x->o->usd_per_hour : x->machine.usd_per_hour;
    p.usd_per_mtoken = usd * orr_machine_devices(&x->machine) / 3600 / p.tokens_per_s * 1e6;
    w->list[w->count] = p;
    *out = &w->list[w->count++];
    return ORR_OK;
}

/* 8, 12, 16, 24, ... */
static uint64_t next_batch(uint64_t b)
{
    return b & (b - 1) ? b / 3 * 4 : b / 2 * 3;
}

static orr_code try_way(void *context, size_t i, orr_error *err)
{
    serving *x = context;
    struct serving_way *w = &x->ways[i];
    const uint64_t each = (x->o->requests + w->ranks.dp - 1) / w->ranks.dp;
    const uint64_t most = each < MOST_BATCH ? each : MOST_BATCH;
    uint64_t good = 0, bad = 0;
    const orr_plan_serving *p;
    for (uint64_t b = most < FIRST_BATCH ? most : FIRST_BATCH; b && !bad; b = b >= most ? 0
                                                                              : next_batch(b) < most
                                                                                  ? next_batch(b)
                                                                                  : most) {
        const orr_code code = try_batch(x, w, b, &p, err);
        if (code || !p)
            return code;
        *(keeps_limits(x, p) ? &good : &bad) = b;
    }
    while (bad > good + 1) {
        const uint64_t b = good + (bad - good) / 2;
        const orr_code code = try_batch(x, w, b, &p, err);
        if (code)
            return code;
        if (p && keeps_limits(x, p))
            good = b;
        else
            bad = b;
    }
    return ORR_OK;
}

static bool join_ways(serving *x)
{
    for (size_t i = 0; i < x->way_count; i++) {
        const struct serving_way *w = &x->ways[i];
        if (!orr_grow(&x->list, &x->room, x->count + w->count))
            return false;
        if (w->count)
            memcpy(&x->list[x->count], w->list, w->count * sizeof *w->list);
        x->count += w->count;
    }
    return true;
}

/* What no way of serving could do. */
static orr_code check_requests(const serving *x, orr_error *err)
{
    const orr_plan_serving p = {.max_batch = 1};
    orr_serve_options s = options_of(x, &p);
    return orr_serve_complete(x->o->model, &s, err);
}

static int compare(const void *a, const void *b)
{
    const orr_plan_serving *x = a, *y = b;
    if (x->tokens_per_s != y->tokens_per_s)
        return x->tokens_per_s > y->tokens_per_s ? -1 : 1;
    if (x->tpot_s != y->tpot_s)
        return x->tpot_s < y->tpot_s ? -1 : 1;
    const uint32_t p = x->ranks.tp * 4096 + x->ranks.pp, q = y->ranks.tp * 4096 + y->ranks.pp;
    if (p != q)
        return p < q ? -1 : 1;
    if (x->ranks.ep != y->ranks.ep)
        return x->ranks.ep < y->ranks.ep ? -1 : 1;
    return x->max_batch < y->max_batch ? -1 : x->max_batch > y->max_batch;
}

/* Equal except for a batch size that is never reached: keep the smallest. */
static bool is_same(const orr_plan_serving *a, const orr_plan_serving *b)
{
    return memcmp(&a->ranks, &b->ranks, sizeof a->ranks) == 0 &&
           a->tokens_per_s == b->tokens_per_s && a->ttft_s == b->ttft_s && a->tpot_s == b->tpot_s;
}

/* Nothing fits: why not the plan with most devices per replica that was tried. */
static orr_code refuse(const serving *x, orr_error *err)
{
    const struct serving_way *last = NULL;
    for (size_t i = 0; i < x->way_count; i++)
        if (x->ways[i].refusal.code)
            last = &x->ways[i];
    const uint32_t devices = orr_machine_devices(&x->machine);
    const char *many = devices == 1 ? "" : "s";
    if (!last)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "no way to serve %s fits into the memory of %u device%s of %s",
                        x->o->model->name, devices, many, x->machine.name);
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "no way to serve %s on %u device%s of %s; tp %u, pp %u: %s", x->o->model->name,
                    devices, many, x->machine.name, last->ranks.tp, last->ranks.pp,
                    last->refusal.message);
}

static orr_code keep_good(serving *x, orr_error *err)
{
    const orr_plan_serve_options *o = x->o;
    size_t kept = 0, fitting = 0, quick = 0;
    double best_ttft = 0, best_tpot = 0;
    orr_sort(x->list, x->count, sizeof *x->list, compare);
    for (size_t i = 0; i < x->count; i++) {
        const orr_plan_serving *p = &x->list[i];
        if (p->tokens_per_s <= 0)
            continue;
        best_ttft = !fitting || p->ttft_s < best_ttft ? p->ttft_s : best_ttft;
        best_tpot = !fitting || p->tpot_s < best_tpot ? p->tpot_s : best_tpot;
        fitting++;
        quick += o->max_ttft_s <= 0 || p->ttft_s <= o->max_ttft_s;
        if (!keeps_limits(x, p))
            continue;
        if (!kept || !is_same(&x->list[kept - 1], p))
            x->list[kept++] = *p;
    }
    x->count = kept;
    if (kept || is_stopped(x))
        return ORR_OK;
    if (!fitting)
        return refuse(x, err);
    return orr_fail(
        err, ORR_EUSAGE, NULL,
        "%zu plans fit, but none meets the limit on the %s token: the shortest times are %.3g ms "
        "for the first and %.3g ms for the next one",
        fitting, quick ? "next" : "first", best_ttft * 1e3, best_tpot * 1e3);
}

/* Does its interval overlap that of the best?  Errors common to all plans on the machine do not
 * count. */
static void find_undecided(serving *x)
{
    for (size_t i = 1; i < x->count; i++) {
        const orr_plan_serving *best = &x->list[0];
        orr_plan_serving *p = &x->list[i];
        const double most = p->tokens_per_s / (1 - fmin(p->report.own_low_share, 0.99));
        p->is_undecided = p->report.own_high_share > 0 &&
                          most >= best->tokens_per_s / (1 + best->report.own_high_share);
    }
}

static void set_stop(void *stop)
{
    __atomic_store_n((int *)stop, 1, __ATOMIC_RELAXED);
}

/* Tries all ways; ORR_ESTOP: some. */
static orr_code try_all(serving *x, orr_error *err)
{
    const int *const before = orr__stop_flag;
    orr_guard *guard;
    orr_code code = orr_guard_start(x->o->max_seconds, 0, set_stop, x->stop, &guard, err);
    if (code)
        return code;
    if (guard || x->o->stop)
        orr_stop_when(x->stop);
    code = orr_pool_for(x->o->threads, x->way_count, try_way, x, err);
    orr_guard_end(guard);
    orr_stop_when(before);
    return is_stopped(x) && (!code || code == ORR_ENOMEM)
               ? orr_fail(err, ORR_ESTOP, NULL, "the search was stopped")
               : code;
}

orr_code orr_plan_serve(const orr_plan_serve_options *opt,
                        orr_plan_serving **out,
                        size_t *count,
                        orr_error *err)
{
    serving x = {.o = opt};
    *out = NULL;
    *count = 0;
    if (!opt || opt->size != sizeof *opt || !opt->model || !opt->machine)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "orr_plan_serve_options: size must be right, and model and machine given");
    orr_code code = opt->devices ? orr_machine_for(opt->machine, opt->devices, &x.machine, err)
                                 : orr_machine_find(opt->machine, &x.machine, err);
    if (!code)
        code = orr_machine_system(&x.machine, &x.system, err);
    if (!code)
        code = run_chip_of(&x.machine, &x.found, err);
    if (code)
        return orr_because(err, code, "--machine %s", opt->machine);
    const orr_chip *chip = x.found.chip;
    if (opt->dtype == ORR_DTYPE_FP8 && chip && chip->peak_tflops[ORR_TYPE_FP8] <= 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "%s cannot run gemm kernels in fp8", chip->name);
    const uint32_t n = orr_machine_devices(&x.machine);
    bool ok = true;
    for (uint64_t tp = 1; tp; tp = search_next_divisor(n, tp))
        for (uint64_t pp = 1; ok && pp && pp <= opt->model->layers;
             pp = search_next_divisor(n / tp, pp))
            ok = add_ways(&x, n, (uint32_t)tp, (uint32_t)pp);
    x.stop = opt->stop ? opt->stop : &x.own_stop;
    code = ok ? check_requests(&x, err) : orr_no_memory(err);
    if (!code)
        code = try_all(&x, err);
    const bool is_late = code == ORR_ESTOP;
    if ((!code || is_late) && !join_ways(&x))
        code = orr_no_memory(err);
    else if (!code || is_late) {
        const orr_code kept = keep_good(&x, err);
        find_undecided(&x);
        code = kept ? kept : code;
    }
    for (size_t i = 0; i < x.way_count; i++)
        orr_free(x.ways[i].list);
    orr_free(x.ways);
    if (code && code != ORR_ESTOP) {
        orr_free(x.list);
        return code;
    }
    *out = x.list;
    *count = x.count;
    return code;
}

void orr_plan_serve_free(orr_plan_serving *list)
{
    orr_free(list);
}
