/* SPDX-License-Identifier: Apache-2.0 */
/* plan_figures.c - one plan: its step generated in memory, run on the machine, and summarised.
 *
 * Shares are means over all devices: compute, exposed communication by axis, and the rest, in which
 * a device waits for other stages. */
#include "search_impl.h"

#include "base/threads/pool.h"
#include "explain/facts.h"
#include "run/engine.h"
#include "run/watch.h"

#include <orrery/run.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- which axis a collective belongs to ---- */

static bool contains(orr_str s, const char *what)
{
    return memmem(s.ptr, s.len, what, strlen(what)) != NULL;
}

/* By the generator's node names. */
search_axis search_axis_of(orr_str name, uint8_t type)
{
    if (type != ORR_NODE_COMM_COLL)
        return contains(name, "attn.") ? SEARCH_CONTEXT : SEARCH_PIPELINE;
    if (contains(name, "grads.") || contains(name, "experts.") || contains(name, "weights.") ||
        contains(name, "optimizer.") || contains(name, "tied."))
        return SEARCH_DATA;
    if (contains(name, "moe.") && (contains(name, "dispatch") || contains(name, "combine")))
        return SEARCH_EXPERT;
    return contains(name, "kv") ? SEARCH_CONTEXT : SEARCH_TENSOR;
}

/* False: out of memory. */
static bool add_exposed(const orr_sim *s, double out[SEARCH_AXES])
{
    const struct watch_record *w = s->watch;
    if (!w)
        return true;
    bool *is_seen = orr_alloc(w->tally_count + 1, sizeof *is_seen);
    if (!is_seen)
        return false;
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        for (uint32_t p = 0; w->tally_of[k] && p < g->count; p++) {
            const uint32_t row = w->tally_of[k][p];
            if (row >= w->tally_count || is_seen[row])
                continue;
            is_seen[row] = true;
            out[search_axis_of(orr_trace_name(g->t, g->node[p]), w->tallies[row].type)] +=
                (double)w->tallies[row].exposed;
        }
    }
    orr_free(is_seen);
    return true;
}

/* ---- shares ---- */

static bool find_shares(orr_run *r, orr_plan *p)
{
    const uint32_t ranks = orr_run_ranks(r);
    double exposed[SEARCH_AXES] = {0}, compute = 0, sum = 0;
    const double whole = (double)orr_run_time(r) * ranks; /* ps */
    for (uint32_t i = 0; i < ranks; i++)
        compute += (double)orr_run_rank_at(r, i)->gpu_time;
    if (!add_exposed(r->is.sim, exposed))
        return false;
    p->shares.compute = compute / whole;
    for (unsigned i = 0; i < SEARCH_AXES; i++)
        sum += exposed[i] *= 1e3 / whole;
    /* Concurrent waits of several streams share the time. */
    const double rest = 1 - p->shares.compute, scale = sum > rest && sum > 0 ? rest / sum : 1;
    p->shares.tensor = exposed[SEARCH_TENSOR] * scale;
    p->shares.context = exposed[SEARCH_CONTEXT] * scale;
    p->shares.expert = exposed[SEARCH_EXPERT] * scale;
    p->shares.data = exposed[SEARCH_DATA] * scale;
    p->shares.pipeline = exposed[SEARCH_PIPELINE] * scale;
    p->shares.bubble = fmax(0, rest - sum * scale);
    return true;
}

double search_axis_share(const orr_plan *p, search_axis axis)
{
    const double all[SEARCH_AXES] = {p->shares.tensor, p->shares.context, p->shares.expert,
                                     p->shares.data, p->shares.pipeline};
    return all[axis];
}

/* ---- the largest cost ---- */

static void find_limit(const orr_plan_search *s, orr_plan *p)
{
    const struct {
        const char *words;
        double share;
    } all[] = {{"pipeline bubble", p->shares.bubble},
               {"tensor-parallel traffic", p->shares.tensor},
               {"context-parallel traffic", p->shares.context},
               {"expert traffic", p->shares.expert},
               {"gradients and weights", p->shares.data},
               {"messages between stages", p->shares.pipeline}};
    size_t most = 0;
    for (size_t i = 1; i < sizeof all / sizeof *all; i++)
        if (all[i].share > all[most].share)
            most = i;
    (void)s;
    if (p->shares.compute > 0.9)
        snprintf(p->limit, sizeof p->limit, "compute %.0f %%", 100 * p->shares.compute);
    else
        snprintf(p->limit, sizeof p->limit, "%s %.0f %%", all[most].words, 100 * all[most].share);
}

/* ---- uncertainty ---- */

/* As orrery run reports it. */
static void find_interval(orr_run *r, orr_plan *p)
{
    uint32_t last = 0;
    orr__interval x;
    for (uint32_t i = 1; i < orr_run_ranks(r); i++)
        if (orr_run_rank_at(r, i)->finished_at >= orr_run_rank_at(r, last)->finished_at)
            last = i;
    orr__interval_of(r->is.sim, last, &x);
    p->low_s = (double)x.low_ns * 1e-9;
    p->high_s = (double)x.high_ns * 1e-9;
    p->own_low_s = (double)x.own_low_ns * 1e-9;
    p->own_high_s = (double)x.own_high_ns * 1e-9;
}

/* ---- the run ---- */

static orr_code find_memory(const orr_plan_search *s, orr_plan *p, orr_error *err)
{
    orr_llm_memory memory[ORR_LLM_ZEROS];
    const orr_code code = orr_llm_memory_most(s->opt.model, &p->options, memory, err);
    if (!code)
        p->memory = memory[p->options.zero];
    return code;
}

static void find_rates(const orr_plan_search *s, orr_plan *p)
{
    const double devices = orr_machine_devices(&s->machine);
    const double tokens = (double)s->base.batch * (double)s->base.seq;
    const double usd = s->opt.usd_per_hour > 0 ? s->opt.usd_per_hour : s->machine.usd_per_hour;
    p->tokens_per_s = tokens / p->step_s;
    p->mfu = s->peak_flops > 0 ? s->flops / (p->step_s * devices * s->peak_flops) : 0;
    p->usd_per_mtoken = usd * devices * p->step_s / 3600 / tokens * 1e6;
    p->watt_hours_per_mtoken =
        s->machine.watts * s->machine.nodes * p->step_s / 3600 / tokens * 1e6;
}

#define LEAST_SECONDS 1e-3

static orr_code run_set(orr_plan_search *s,
                        const orr_set *set,
                        const orr_plan_again *how,
                        search_events *events,
                        orr_run **out,
                        orr_error *err)
{
    orr_run_config config = {.size = sizeof config,
                             .set = set,
                             .traces = "plan",
                             .machine = s->opt.machine,
                             .software = s->base.software->name,
                             .threads = 1};
    if (how) {
        config.change = how->change;
        config.network = how->network;
        config.topology = how->topology;
        config.max_seconds = how->max_seconds;
    } else if (s->end_ns) {
        const double left = search_time_left(s);
        config.max_seconds = left > LEAST_SECONDS ? left : LEAST_SECONDS;
    }
    config.max_bytes = s->opt.max_bytes;
    config.max_events = how ? 0 : events->most;
    orr_code code = orr_run_create(&config, out, err);
    if (!code)
        code = orr_run_to_end(*out, err);
    if (how || !*out)
        return code;
    events->used = orr_run_events(*out);
    if (code != ORR_ESTOP)
        return code;
    if (config.max_events && events->used >= config.max_events)
        events->is_spent = true;
    else if (s->opt.max_bytes && !atomic_load(&s->is_stopped) && search_time_left(s) >= 0)
        atomic_store(&s->is_full, true);
    return code;
}

/* ---- again ---- */

typedef struct reruns {
    orr_plan_search *s;
    orr_plan_rerun *list;
    void (*done)(void *context);
    void *context;
    pthread_mutex_t lock;
} reruns;

static orr_code run_again(void *context, size_t i, orr_error *err)
{
    reruns *x = context;
    orr_plan_rerun *r = &x->list[i];
    orr_set *set = NULL;
    orr_run *run = NULL;
    orr_code code = atomic_load(&x->s->is_stopped)
                        ? orr_fail(&r->err, ORR_ESTOP, NULL, "interrupted")
                        : orr_llm_training(x->s->opt.model, &r->plan->options, &set, &r->err);
    if (!code)
        code = run_set(x->s, set, &r->how, NULL, &run, &r->err);
    r->step_s = code ? 0 : (double)orr_run_time(run) * 1e-12;
    orr_run_destroy(run);
    orr_set_close(set);
    pthread_mutex_lock(&x->lock);
    if (x->done)
        x->done(x->context);
    pthread_mutex_unlock(&x->lock);
    return code == ORR_ENOMEM ? orr_no_memory(err) : ORR_OK;
}

orr_code orr_plan_rerun_all(orr_plan_search *s,
                            orr_plan_rerun *list,
                            size_t count,
                            void (*done)(void *context),
                            void *context,
                            orr_error *err)
{
    reruns x = {.s = s, .list = list, .done = done, .context = context};
    pthread_mutex_init(&x.lock, NULL);
    const orr_code code = orr_pool_for(s->opt.threads, count, run_again, &x, err);
    pthread_mutex_destroy(&x.lock);
    return code;
}

/* A step of very many micro-batches must not exhaust memory.  A node of a run takes 1.2 KiB. */
enum { NODE_BYTES = 1300 };
static orr_code check_size(orr_plan_search *s, const search_candidate *c, orr_error *err)
{
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    const double most = 0.5 * memory / orr_pool_threads(s->opt.threads) / NODE_BYTES;
    const double nodes = search_nodes(s, c);
    if (nodes <= most)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "a step of %.0f million nodes is too large for the memory of this computer "
                    "(%.0f million on each thread)",
                    nodes * 1e-6, most * 1e-6);
}

orr_code search_simulate(orr_plan_search *s,
                         const search_candidate *c,
                         search_events *events,
                         orr_plan *out,
                         orr_error *err)
{
    orr_set *set = NULL;
    orr_run *run = NULL;
    orr_plan p = {.options = search_options(s, c), .bound_s = c->bound_s};
    orr_code code = check_size(s, c, err);
    if (!code)
        code = orr_llm_complete(s->opt.model, &p.options, err);
    if (!code)
        code = orr_llm_training(s->opt.model, &p.options, &set, err);
    if (!code)
        code = run_set(s, set, NULL, events, &run, err);
    if (!code)
        code = find_memory(s, &p, err);
    if (!code) {
        p.step_s = (double)orr_run_time(run) * 1e-12;
        if (!find_shares(run, &p))
            code = orr_no_memory(err);
        find_rates(s, &p);
        find_limit(s, &p);
        find_interval(run, &p);
        *out = p;
    }
    orr_run_destroy(run);
    orr_set_close(set);
    return code;
}
