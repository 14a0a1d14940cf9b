/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - a simulation as an object: read the inputs, build the ranks; run_events.c runs it.
 *
 * Inputs are read in the reference's order (network, memory, system, traces, groups), so that with
 * several mistakes the same one is reported.  Ranks start in order at tick 0, outside of any event
 * (astra-sim.md 1). */
#include "fold/fold.h"
#include "joint.h"
#include "match.h"
#include "run_observer.h"
#include "run_state.h"

#include "base/io/input.h"
#include "base/text/text.h"
#include "parts.h"
#include "trace/attrs.h"
#include "watch.h"

#include "models/network/fluid/fluid.h"
#include "models/network/net_table.h"
#include "models/network/net_time.h"

#include "base/arithmetic.h"
#include "models/network/packet/packet_run.h"

#include <orrery/lab/chip.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

const orr_rules_run run_rules_ours = {0};

/* ---- services for networks ---- */

uint64_t orr__net_now(const orr_sim *s)
{
    return clk_now(s->clock);
}

void orr__net_after(orr_sim *s,
                    uint64_t delay,
                    void (*call)(void *context, uint64_t argument),
                    void *context,
                    uint64_t argument)
{
    clk_after(s->clock, delay, call, context, argument);
}

/* Custom networks count picoseconds, the clock of traces nanoseconds: times are rounded once, at
 * the border. */
static uint64_t nearest_ns(orr_ps delay)
{
    return delay > 0 ? ((uint64_t)delay + 500) / 1000 : 0;
}

orr_ps orr_net_now(const orr_net *n)
{
    const uint64_t now = orr__net_now(n);
    /* Saturates: a clock of nanoseconds reaches further than one of picoseconds. */
    return now < INT64_MAX / 1000 ? (orr_ps)(now * 1000) : INT64_MAX;
}

void orr_net_after(orr_net *n,
                   orr_ps delay,
                   void (*call)(void *context, uint64_t argument),
                   void *context,
                   uint64_t argument)
{
    orr__net_after(n, nearest_ns(delay), call, context, argument);
}

void orr_net_deliver_after(orr_net *n, orr_ps delay, uint64_t token)
{
    orr__net_deliver_after(n, nearest_ns(delay), token);
}

/* ---- failing inside events ---- */

void run_fail(orr_sim *s, orr_code code, const orr_error *err)
{
    /* The first failure is the cause; later ones are its consequences. */
    if (s->code)
        return;
    s->code = code;
    s->error = *err;
    clk_stop(s->clock);
}

void orr_net_fail(orr_sim *s, const orr_error *err)
{
    run_fail(s, err->code, err);
}

void run_no_memory(orr_sim *s)
{
    orr_error err;
    run_fail(s, orr_no_memory(&err), &err);
}

void run_fail_text(orr_sim *s, const run_npu *n, uint32_t place, const char *fmt, ...)
{
    orr_error err;
    char text[240];
    va_list args;
    const uint32_t i = n->graph->node[place];
    /* Location in the file, rank and the node's id: users look it up in the trace, not in our
     * numbering. */
    const orr_where w = orr_trace_where(n->graph->t, i);
    const orr_str name = orr_trace_name(n->graph->t, i);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    orr_fail(&err, ORR_EINPUT, &w, "rank %u, node %" PRIu64 " \"%.*s\": %s", n->rank,
             n->graph->t->id[i] + orr_set_id_shift(s->set, n->rank),
             (int)(name.len < 40 ? name.len : 40), name.ptr, text);
    run_fail(s, ORR_EINPUT, &err);
}

/* One list per hook instead of one of observers: most hear two or three of the hooks, and a
 * node's start then costs a look at a list that is mostly empty. */
#define ADD_HOOK(hook)                 \
    do {                               \
        unsigned i_ = 0;               \
        while (o->hook && h->hook[i_]) \
            i_++;                      \
        if (o->hook)                   \
            h->hook[i_] = o->hook;     \
    } while (0)

/* No hook has as many listeners as RUN_LISTENERS, so the last place of each list stays NULL. */
static void listen_to(run_hooks *h, const run_observer *o)
{
    ADD_HOOK(node_start);
    ADD_HOOK(node_end);
    ADD_HOOK(node_held);
    ADD_HOOK(node_flows);
    ADD_HOOK(rank_end);
    ADD_HOOK(message);
    ADD_HOOK(collective);
    ADD_HOOK(group_ring);
    ADD_HOOK(phase_start);
    ADD_HOOK(phase_end);
    ADD_HOOK(send);
    /* It replaces the continuation of a receive, which one observer can do (goal_tape.c). */
    if (o->receive)
        h->receive = o->receive;
}

/* ---- logical topologies (astra-sim.md 5.1) ---- */

static const double PLAIN_MEMORY = 1600e9; /* bytes per second, as orr_system has it */

/* A list with one algorithm applies to all dimensions. */
static void choose_for_all(orr_sim *s, orr_collective kind)
{
    cfg_system *c = &s->system;
    for (uint32_t k = 1; k < s->dims && c->choice_count[kind] <= 1; k++)
        c->choice[kind][k] = c->choice[kind][0];
    if (c->choice_count[kind] <= 1)
        c->choice_count[kind] = s->dims;
}

/* The default without a list. */
static void choose_default(orr_sim *s, orr_collective kind)
{
    cfg_system *c = &s->system;
    if (!c->has_choices[kind])
        c->choice[kind][0] = (coll_choice){.ops = coll_default(kind)};
    choose_for_all(s, kind);
    c->has_choices[kind] = true;
}

static orr_code plan_kind(orr_sim *s, orr_collective kind, orr_error *err)
{
    const cfg_system *c = &s->system;
    sys_plan *p = &s->plans[kind];
    /* If an algorithm is configured, its messages are simulated, always so under old names: only a
     * collective left open runs as one operation (joint.h). */
    p->is_joint = s->net_ops == &orr__net_fluid && s->rules == &run_rules_ours &&
                  (!c->has_choices[kind] || c->is_plain[kind]);
    /* Neither an algorithm nor a plan: use the default. */
    const bool is_open = s->rules == &run_rules_ours && !c->has_choices[kind] && !s->opt.plans;
    if ((coll_has_root(kind) || p->is_joint || is_open) && !s->rules->ignores_new_keys)
        choose_default(s, kind);
    else if (c->is_plain[kind])
        choose_for_all(s, kind);
    /* A recorded schedule consists of messages, so then the algorithm of choose_default runs. */
    p->is_joint = p->is_joint && !s->opt.records_goal;
    uint32_t offset = 1;
    p->exists = c->has_choices[kind];
    const orr_where w = orr_where_byte(c->path, ORR_NO_BYTE);
    if (c->choice_count[kind] > s->dims)
        return orr_fail(err, ORR_EINPUT, &w,
                        "a collective has %u algorithms, but the network has %u dimensions",
                        c->choice_count[kind], s->dims);
    /* The k-th algorithm is for the k-th dimension.  A list may be shorter than the network: the
     * remaining dimensions take no part. */
    for (uint32_t k = 0; k < c->choice_count[kind]; k++) {
        const coll_choice *choice = &c->choice[kind][k];
        sys_dim *d = &p->dims[p->count++];
        *d = (sys_dim){.position = k,
                       .ops = choice->ops,
                       .number = choice->number,
                       .offset = offset,
                       .count = s->net_config.npus[k],
                       .is_last = k + 1 == c->choice_count[kind]};
        if (choice->is_one) { /* one ring over all ranks; the rest of the list is dropped */
            d->offset = 1;
            d->count = s->npu_count;
            break;
        }
        /* Ranks of a dimension are `offset` apart: the product of the inner dimensions
         * (astra-sim.md 5.1). */
        offset *= d->count;
    }
    return ORR_OK;
}

/* ---- reading ---- */

/* Defaults for keys missing in a system file, except under old names: one file then works for all
 * networks. */
static void fill_in(cfg_system *c)
{
    if (c->policy == CFG_POLICY_MISSING)
        c->policy = CFG_LIFO;
    c->has_optimization = true;
    c->splits = c->splits ? c->splits : 1;
    c->active_chunks = c->active_chunks ? c->active_chunks : 1;
    c->local_mem_bw = c->local_mem_bw > 0 ? c->local_mem_bw : PLAIN_MEMORY;
}

static orr_code check_system(orr_sim *s, orr_error *err)
{
    cfg_system *c = &s->system;
    if (s->rules == &run_rules_ours)
        fill_in(c);
    const orr_where w = orr_where_byte(c->path, ORR_NO_BYTE);
    if (c->policy == CFG_POLICY_MISSING)
        return orr_fail(err, ORR_EINPUT, &w,
                        "the key \"scheduling-policy\" is missing (LIFO, FIFO or EXPLICIT)");
    if (!c->has_optimization && s->dims > 1)
        return orr_fail(
            err, ORR_EINPUT, &w,
            "the key \"collective-optimization\" is missing (baseline or localBWAware)");
    if (c->has_endpoint_delay && s->opt.injection_scale != 1)
        c->endpoint_delay = orr_ticks((double)c->endpoint_delay * s->opt.injection_scale);
    orr_code code = ORR_OK;
    for (unsigned k = 0; k < ORR_COLL_COUNT && !code; k++)
        code = plan_kind(s, (orr_collective)k, err);
    return code;
}

enum { LOOKED_AT = 64 }; /* nodes: traces with kernels have them on every computation */

/* The first nodes only: a trace may have a million nodes and this is asked of each class. */
static bool has_kernels(const orr_trace *t)
{
    const uint32_t count = orr_trace_columns(t)->count;
    uint32_t looked = 0;
    for (uint32_t i = 0; i < count && looked < LOOKED_AT; i++) {
        orr_node node;
        orr_attr kernels;
        if (orr_trace_columns(t)->type[i] != ORR_NODE_COMP)
            continue;
        looked++;
        orr_trace_node(t, i, &node);
        if (orr__node_get(&node, ORR__ATTR_KERNELS, &kernels))
            return true;
    }
    return false;
}

/* A system file gives peaks, which no kernel reaches.  If the traces list their kernels, these get
 * the efficiency of the measured chip with the nearest peaks. */
static void find_like_chip(orr_sim *s)
{
    const cfg_system *c = &s->system;
    /* The distance is logarithmic, so that twice as fast is as far as half as fast, and both peaks
     * have equal weight.  A tie goes to the first in the table. */
    double least = INFINITY;
    bool is_needed = false;
    if (s->opt.chip || s->opt.is_ideal || !c->roofline || s->rules != &run_rules_ours ||
        !(c->peak_perf > 0) || !(c->local_mem_bw > 0))
        return;
    for (uint32_t k = 0; k < orr_set_class_count(s->set) && !is_needed; k++)
        is_needed = s->graphs[k].t && has_kernels(orr_set_trace(s->set, k));
    const orr_chip *chip;
    for (size_t i = 0; is_needed && (chip = orr_chip_at(i)); i++) {
        const double peak = chip->peak_tflops[ORR_TYPE_BF16] * 1e12;
        if (!chip->source || !(peak > 0))
            continue;
        const double far =
            fabs(log(peak / c->peak_perf)) + fabs(log(chip->memory_GBps * 1e9 / c->local_mem_bw));
        if (far < least) {
            least = far;
            s->like_chip = chip;
        }
    }
}

/* Ranks whose memory or host has another speed (--ranks-file) have times of their own. */
static orr_code time_paces(orr_sim *s, const work_timing *how, orr_error *err)
{
    const cfg_rank_speed *v = s->ranks_config.speeds;
    orr_code code = ORR_OK;
    uint32_t r = 0;
    while (v && r < s->npu_count && v[r].memory == 1 && v[r].host == 1)
        r++;
    if (!v || r == s->npu_count || s->opt.compute)
        return ORR_OK;
    s->rank_ticks = orr_arena_new(s->arena, s->npu_count, const uint64_t *);
    if (!s->rank_ticks)
        return orr_no_memory(err);
    for (r = 0; r < s->npu_count && !code; r++) {
        work_graph *g = &s->graphs[orr_set_class_of(s->set, r)];
        s->rank_ticks[r] = g->ticks;
        if (!g->ticks || (v[r].memory == 1 && v[r].host == 1))
            continue;
        code = !work_comm_begin(how->comm, orr_set_class_of(s->set, r))
                   ? orr_no_memory(err)
                   : work_graph_pace(g, how, v[r].memory, v[r].host, orr__set_job_ranks(s->set, r),
                                     &s->rank_ticks[r], err);
    }
    return code;
}

static orr_code time_graphs(orr_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    uint32_t timed = 0;
    const work_peaks peaks = {s->system.peak_perf, s->system.local_mem_bw};
    work_comm *comm = work_comm_create(s);
    if (!comm)
        return orr_no_memory(err);
    const work_timing how = {.chip = s->like_chip ? s->like_chip : s->opt.chip,
                             .software = s->opt.software,
                             .peaks = s->like_chip ? &peaks : NULL,
                             .memory = s->opt.change.memory,
                             .comm = comm};
    for (uint32_t k = 0; k < orr_set_class_count(s->set) && !code; k++)
        if (s->graphs[k].t)
            code = work_comm_begin(comm, k)
                       ? work_graph_time(&s->graphs[k], &how,
                                         orr__set_job_ranks(s->set, orr_set_class_first(s->set, k)),
                                         &timed, err)
                       : orr_no_memory(err);
    if (!code && !timed && s->opt.chip && !s->opt.chip_is_default)
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "nothing in %s can be timed for a chip: no node has kernels or num_ops",
                        s->opt.workload ? s->opt.workload : "the set");
    if (!code)
        code = time_paces(s, &how, err);
    work_comm_destroy(comm);
    return code;
}

static orr_code ask_model(orr_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < orr_set_class_count(s->set) && !code; k++)
        if (s->graphs[k].t)
            code = work_graph_ask(&s->graphs[k], s->opt.compute, err);
    return code;
}

/* Whoever asks for all ranks of each class would otherwise look at all ranks for each. */
static bool list_ranks(orr_sim *s, uint32_t classes)
{
    s->class_start = orr_arena_new(s->arena, (size_t)classes + 2, uint32_t);
    s->class_ranks = orr_arena_new(s->arena, (size_t)s->npu_count + 1, uint32_t);
    if (!s->class_start || !s->class_ranks)
        return false;
    uint32_t *const end = s->class_start + 1; /* of each class, while it grows */
    for (uint32_t r = 0; r < s->npu_count; r++)
        s->class_start[orr_set_class_of(s->set, r) + 2]++;
    for (uint32_t k = 2; k < classes + 2; k++)
        s->class_start[k] += s->class_start[k - 1];
    for (uint32_t r = 0; r < s->npu_count; r++)
        s->class_ranks[end[orr_set_class_of(s->set, r)]++] = r;
    return true;
}

static orr_code read_traces(orr_sim *s, orr_error *err)
{
    const orr_set_options opt = {.size = sizeof opt,
                                 .threads = s->opt.threads,
                                 .ignores_groups = s->opt.groups || s->rules->ignores_group_file,
                                 .joins_alike = s->rules == &run_rules_ours};
    orr_code code = ORR_OK;
    if (s->opt.set)
        s->set = s->opt.set;
    else if (!(code = orr_set_open(s->opt.workload, &opt, &s->owned_set, err)))
        s->set = s->owned_set;
    if (code)
        return code;
    /* More traces than ranks are fine: the network may be a part of the traced cluster. */
    if (orr_set_rank_count(s->set) < s->npu_count)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the network has %u NPUs, but %s has traces for %u ranks", s->npu_count,
                        s->opt.workload ? s->opt.workload : "the set", orr_set_rank_count(s->set));
    /* The logical topology of packets may have one rank, whatever the number of traces
     * (packet-network.md 4.3). */
    if (s->npu_count == 1 && !s->packet &&
        (s->rules->refuses_one_rank || orr_set_rank_count(s->set) > 1))
        return orr_fail(
            err, ORR_EINPUT, &s->net_config.where,
            "npus_count: expected a whole number from 2 to 16777216; 1 is for the trace of one "
            "rank");
    const uint32_t classes = orr_set_class_count(s->set);
    s->graphs = orr_arena_new(s->arena, classes, work_graph);
    if (!s->graphs || !list_ranks(s, classes))
        return orr_no_memory(err);
    for (uint32_t r = 0; r < s->npu_count && !code; r++) {
        const uint32_t k = orr_set_class_of(s->set, r);
        /* One graph per class of equal traces, and only for classes with a rank in this network. */
        if (!s->graphs[k].t)
            code = work_graph_make(orr_set_trace(s->set, k), s->rules, &s->graphs[k], err);
        /* The system layer has as many sets of queues as the trace with the most streams needs. */
        if (!code && s->lanes < s->graphs[k].slot_count - WORK_SLOT_STREAMS + 1)
            s->lanes = s->graphs[k].slot_count - WORK_SLOT_STREAMS + 1;
    }
    return code;
}

/* Once groups are known: what a host waits for depends on their placement. */
static orr_code time_nodes(orr_sim *s, orr_error *err)
{
    find_like_chip(s);
    const orr_code code = s->opt.chip || s->like_chip ? time_graphs(s, err) : ORR_OK;
    return code || !s->opt.compute ? code : ask_model(s, err);
}

static orr_code read_groups(orr_sim *s, orr_error *err)
{
    orr_code code = ORR_OK;
    if (s->opt.groups)
        code = cfg_read_groups(s->opt.groups, s->arena, &s->groups, err);
    else if (orr_set_group_count(s->set))
        code = cfg_copy_groups(s->set, s->arena, &s->groups, err);
    for (size_t i = 0; i < s->groups.count && !code; i++) {
        const cfg_group *g = &s->groups.groups[i];
        const orr_where w = orr_where_byte(s->opt.groups, ORR_NO_BYTE);
        if (g->sorted[g->count - 1] >= s->npu_count)
            code = orr_fail(err, ORR_EINPUT, &w,
                            "group %" PRId64 " has rank %u, but there are %u ranks", g->id,
                            g->sorted[g->count - 1], s->npu_count);
    }
    if (!code)
        code = work_read_metadata_groups(s, err);
    return code || sys_make_group_rings(s) ? code : orr_no_memory(err);
}

/* Speeds of ranks, including orr_sim_options.change. */
static bool change_speeds(orr_sim *s)
{
    const orr_sim_change *c = &s->opt.change;
    if (c->compute <= 0 && c->memory <= 0)
        return true;
    /* A copy per rank: a what-if must not change the ranks file's values. */
    cfg_rank_speed *speeds = orr_arena_new(s->arena, s->npu_count, cfg_rank_speed);
    for (uint32_t r = 0; speeds && r < s->npu_count; r++) {
        speeds[r] = s->ranks_config.speeds ? s->ranks_config.speeds[r] : cfg_plain_rank;
        speeds[r].compute *= c->compute > 0 ? c->compute : 1;
        speeds[r].memory *= c->memory > 0 ? c->memory : 1;
    }
    s->ranks_config.speeds = speeds;
    return speeds != NULL;
}

static void add_observers(orr_sim *s)
{
    memset(&s->hooks, 0, sizeof s->hooks);
    /* A folded run has neither individual ranks nor ordered events: it generates statistics and
     * logs afterwards (fold/fold_figures.c, fold/fold_log.c). */
    if (s->fold) {
        listen_to(&s->hooks, &fold_observer);
        return;
    }
    if (s->watch)
        listen_to(&s->hooks, &watch_observer);
    if (s->watch && s->watch->keeps_phases)
        listen_to(&s->hooks, &watch_phase_observer);
    if (s->tape)
        listen_to(&s->hooks, &tape_observer);
    if (s->system.track_local_mem)
        listen_to(&s->hooks, &mem_observer);
    if (run_old_outputs)
        listen_to(&s->hooks, run_old_outputs->lines);
    if (run_old_outputs && s->rules->orders_by_hash)
        listen_to(&s->hooks, run_old_outputs->starts);
    if (run_old_outputs && (s->opt.trace_log || s->system.trace_enabled || s->opt.logging))
        listen_to(&s->hooks, run_old_outputs->issues);
}

/* The ranks, or one per class. */
static orr_code build_ranks(orr_sim *s, orr_error *err)
{
    const uint32_t count = s->fold ? fold_class_count(s->fold) : s->npu_count;
    orr_code code = ORR_OK;
    s->npus = orr_arena_new(s->arena, count, run_npu);
    if (!s->npus)
        return orr_no_memory(err);
    s->built = count;
    for (uint32_t i = 0; i < count && !code; i++) {
        run_npu *n = &s->npus[i];
        n->sim = s;
        n->rank = s->fold ? fold_class_first(s->fold, i) : i;
        n->weight = s->lockstep ? s->lockstep->size[i] : 1;
        n->graph = &s->graphs[orr_set_class_of(s->set, n->rank)];
        n->ticks = s->rank_ticks ? s->rank_ticks[n->rank] : n->graph->ticks;
        if (s->fold)
            fold_attach(s->fold, i, n);
        /* In lock step another rank stands for it: it keeps its place in the array, so that ranks
         * are indices, but nothing else. */
        if (n->weight == 0)
            continue;
        n->speed = s->ranks_config.speeds ? &s->ranks_config.speeds[n->rank] : &cfg_plain_rank;
        code = sys_init(n, err);
        if (!code)
            code = work_init(n, n->graph, err);
    }
    if (!code && !s->rules->keeps_no_figures)
        code = watch_create(s, err);
    if (!code && s->opt.records_goal)
        code = tape_create(s, err);
    /* Last: the set of observers depends on the above. */
    add_observers(s);
    return code;
}

static void drop_ranks(orr_sim *s)
{
    parts_destroy(s->parts);
    s->parts = NULL;
    for (uint32_t i = 0; s->npus && i < s->built; i++) {
        if (!s->npus[i].speed)
            continue; /* represented by another rank */
        work_fini(&s->npus[i]);
        sys_fini(&s->npus[i]);
    }
    /* Ranks are in the arena and cannot be freed individually; rebuilding allocates new ones. */
    s->npus = NULL;
    watch_destroy(s->watch);
    s->watch = NULL;
    fold_destroy(s->fold);
    s->fold = NULL;
}

/* Resets network, messages and collectives after they have been used. */
static orr_code begin_anew(orr_sim *s, orr_error *err)
{
    fold_lockstep_destroy(s->lockstep);
    s->lockstep = NULL;
    joint_destroy(s->joint);
    s->joint = NULL;
    msg_destroy(s->matcher);
    if (!(s->matcher = msg_create(s)))
        return orr_no_memory(err);
    const orr_code code = run_network_again(s, err);
    return code ? code : joint_create(s, err);
}

/* Files are not read again: graphs, groups, plans and the network's description stay; ranks, clock
 * and messages are rebuilt. */
orr_code run_build_again(orr_sim *s, bool folds, orr_error *err)
{
    drop_ranks(s);
    clk_destroy(s->clock);
    s->finished = 0;
    s->messages = 0;
    s->has_started = false;
    if (!steady_init(s, true))
        return orr_no_memory(err);
    s->code = ORR_OK;
    s->free_streams = NULL; /* some may be in discarded queues */
    s->free_sets = NULL;
    if (!(s->clock = clk_create()))
        return orr_no_memory(err);
    /* Only these runs have used network and matcher: folds and parts have their own. */
    orr_code code = s->joint || s->lockstep ? begin_anew(s, err) : ORR_OK;
    if (!code && folds && (s->net_ops == &orr__net_aware || s->net_ops == &orr__net_graph))
        code = fold_symmetry_create(s, &s->lockstep, err);
    else if (!code && folds)
        code = fold_create(s, &s->fold, err);
    return code ? code : build_ranks(s, err);
}

static orr_code build(orr_sim *s, orr_error *err)
{
    s->finish_order = orr_arena_new(s->arena, s->npu_count, uint32_t);
    s->matcher = msg_create(s);
    if (s->packet && s->packet->config.rules->matches_bytes && run_byte_matchings &&
        !(s->byte_matcher = run_byte_matchings->create()))
        return orr_no_memory(err);
    s->remote = work_remote_create(s);
    s->programs = sys_program_cache_create(s);
    if ((s->system.is_agreed || s->system.inter != CFG_ASCENDING) &&
        !(s->schedule = sched_create(s)))
        return orr_no_memory(err);
    if (!s->finish_order || !s->matcher || !s->remote || !s->programs || !change_speeds(s))
        return orr_no_memory(err);
    /* Before folding: whether collectives are joint decides which kind of folding is sound. */
    orr_code code = joint_create(s, err);
    if (!code)
        /* Joint collectives keep equal ranks in lockstep; on networks with contention ranks fold by
         * symmetry; elsewhere by classes with one time per member (docs/design/folding.md). */
        code = s->joint ? fold_lockstep_create(s, &s->lockstep, err)
               : s->net_ops == &orr__net_aware || s->net_ops == &orr__net_graph
                   ? fold_symmetry_create(s, &s->lockstep, err)
                   : fold_create(s, &s->fold, err);
    /* If ranks share links, sums over represented ranks are taken from these; if each has its own
     * ports, only their representatives must be known. */
    if (s->lockstep && s->lockstep->standing)
        fluid_network_paths(s->net)->standing = s->lockstep->standing;
    else if (s->lockstep && s->joint)
        fluid_network_paths(s->net)->stands_for = s->lockstep->stands_for;
    if (!code && !steady_init(s, true))
        code = orr_no_memory(err);
    return code ? code : build_ranks(s, err);
}

static orr_code check_links(const orr_sim *s, orr_error *err)
{
    if (!s->opt.wants_links || s->net_ops->report)
        return ORR_OK;
    const char *names[16] = {0};
    char list[160];
    size_t count = 0;
    for (size_t i = 0; orr_net_at(i) && count + 1 < sizeof names / sizeof *names; i++)
        if (orr_net_at(i)->report)
            names[count++] = orr_net_at(i)->name;
    orr_list_words(names, list, sizeof list);
    return orr_fail(err, ORR_EUSAGE, NULL, "the network model %s has no links; these have: %s",
                    s->net_ops->name, list);
}

/* ---- output of replaced programs ---- */

static orr_code no_output(orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "this build leaves out the output of ASTRA-sim");
}

static orr_code read_logging(orr_sim *s, orr_error *err)
{
    return run_old_outputs
               ? run_old_outputs->read_logging(s->opt.logging, !s->rules->overrides_patterns,
                                               s->arena, &s->logging, err)
               : no_output(err);
}

bool orr_sim_ignores_log_patterns(const orr_sim *s)
{
    return run_old_outputs && run_old_outputs->ignores_patterns(s);
}

orr_code orr_sim_write_old_log(const orr_sim *s,
                               const char *path,
                               orr_sim_log which,
                               orr_error *err)
{
    return run_old_outputs ? run_old_outputs->write_log(s, path, which, err) : no_output(err);
}

orr_code orr_sim_write_log_sinks(const orr_sim *s, orr_error *err)
{
    return run_old_outputs ? run_old_outputs->write_sinks(s, err) : no_output(err);
}

orr_code orr_sim_write_trace_log(const orr_sim *s, const char *path, orr_error *err)
{
    return run_old_outputs ? run_old_outputs->write_trace_log(s, path, err) : no_output(err);
}

orr_code orr_sim_write_memory_trace(const orr_sim *s,
                                    uint32_t rank,
                                    const char *path,
                                    orr_error *err)
{
    return run_old_outputs ? run_old_outputs->write_memory(s, rank, path, err) : no_output(err);
}

/* ---- the object ---- */

static bool file_has(const char *path, const char *word)
{
    orr_input *in;
    orr_error unused;
    if (!path || orr_input_open(path, &in, &unused))
        return false;
    const orr_span b = orr_input_bytes(in);
    const bool has = b.len && memmem(b.ptr, b.len, word, strlen(word));
    orr_input_close(in);
    return has;
}

/* If the two files were swapped, their own errors would send the user to a line that is right:
 * report the swapped options instead. */
static orr_code explain_exchange(const orr_sim *s, orr_code code, orr_error *err)
{
    if (code != ORR_EINPUT)
        return code;
    const bool is_network = file_has(s->opt.system, "npus_count") ||
                            file_has(s->opt.system, "generate:") ||
                            file_has(s->opt.system, "links:");
    const bool is_system = file_has(s->opt.network, "scheduling-policy") ||
                           file_has(s->opt.network, "-implementation\"") ||
                           file_has(s->opt.network, "\"roofline-enabled\"");
    if (!is_network || !is_system)
        return code;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "these look swapped: %s is a network file, given as the system, and %s is a "
                    "system file, given as the network",
                    s->opt.system, s->opt.network);
}

static orr_code set_up(orr_sim *s, orr_error *err)
{
    orr_code code;
    s->arena = orr_arena_create();
    s->clock = clk_create();
    if (!s->arena || !s->clock)
        return orr_no_memory(err);
    /* All streams have one size, that of the largest state of an algorithm: any free stream then
     * serves any phase. */
    s->stream_size = sizeof(sys_stream) + coll_largest_state(s->opt.algorithms);
    /* A pointer to a program or a walk, which is not in the table of algorithms. */
    if (s->stream_size < sizeof(sys_stream) + sys_coll_custom.state_size)
        s->stream_size = sizeof(sys_stream) + sys_coll_custom.state_size;
    if (!s->opt.queues_per_dim)
        s->opt.queues_per_dim = 1;
    /* Zero is the default of all options, so a scale of 0 is given as a negative one. */
    if (s->opt.injection_scale == 0)
        s->opt.injection_scale = 1;
    else if (s->opt.injection_scale < 0)
        s->opt.injection_scale = 0;
    if (s->opt.logging && (code = read_logging(s, err)))
        return code;
    if (s->rules->ignores_new_keys)
        s->key_notes.arena = s->arena;
    if ((code = run_network_setup(s, err)) || (code = check_links(s, err)))
        return code;
    if (s->opt.memory && (code = cfg_read_memory(s->opt.memory, &s->key_notes, &s->memory, err)))
        return code;
    if (!s->opt.memory && s->opt.host_GBps > 0)
        s->memory = (cfg_memory){.type = CFG_MEM_PER_NPU,
                                 .npus_per_node = 1,
                                 .bandwidth = s->opt.host_GBps,
                                 .is_host = true};
    if ((code = cfg_read_system(&s->opt, s->arena, &s->key_notes, &s->system, err)))
        return code;
    if ((code = check_system(s, err)) || (code = sys_plans_read(s, err)) ||
        (code = read_traces(s, err)) || (code = read_groups(s, err)) || (code = time_nodes(s, err)))
        return code;
    return build(s, err);
}

orr_code orr_sim_create(const orr_sim_options *opt, orr_sim **out, orr_error *err)
{
    *out = NULL;
    if (!(opt->workload || opt->set) || !(opt->system || opt->own_system) ||
        !(opt->network || opt->dims))
        return orr_fail(err, ORR_EUSAGE, NULL, "traces, a system and a network are needed");
    orr_sim *s = orr_alloc(1, sizeof *s);
    if (!s)
        return orr_no_memory(err);
    s->opt = *opt;
    s->rules = opt->rules ? opt->rules : &run_rules_ours;
    const orr_code code = explain_exchange(s, set_up(s, err), err);
    if (code)
        orr_sim_destroy(s);
    else
        *out = s;
    return code;
}

void orr_sim_destroy(orr_sim *s)
{
    if (!s)
        return;
    /* Before the ranks and the clock: runs of programs unlink themselves from streams of ranks. */
    sys_program_cache_destroy(s->programs);
    sys_plans_destroy(s->coll_plans);
    joint_destroy(s->joint);
    sched_destroy(s->schedule);
    drop_ranks(s);
    steady_fini(s);
    fold_lockstep_destroy(s->lockstep);
    for (uint32_t k = 0; s->graphs && k < orr_set_class_count(s->set); k++)
        work_graph_fini(&s->graphs[k]);
    tape_destroy(s->tape);
    orr__stall_destroy(s->stall);
    msg_destroy(s->matcher);
    if (s->byte_matcher)
        run_byte_matchings->destroy(s->byte_matcher);
    if (s->net && s->net_ops->destroy)
        s->net_ops->destroy(s->net);
    if (s->packet)
        orr__packet_inputs_fini(s->packet);
    orr_free(s->packet);
    orr_free(s->network_stall);
    orr__topology_destroy(s->topology);
    cfg_system_fini(&s->system);
    orr_free(s->groups.groups);
    if (run_old_outputs)
        run_old_outputs->destroy_notes(s->old_notes);
    orr_map_destroy(s->groups.by_id);
    orr_map_destroy(s->group_texts);
    orr_free(s->group_text);
    orr_set_close(s->owned_set);
    clk_destroy(s->clock);
    orr_arena_destroy(s->arena);
    orr_free(s);
}

/* ---- results ---- */

uint32_t orr_sim_ranks(const orr_sim *s)
{
    return s->npu_count;
}

uint32_t orr_sim_finished(const orr_sim *s)
{
    return s->finished;
}

uint32_t orr_sim_finished_rank(const orr_sim *s, uint32_t place)
{
    return s->finish_order[place];
}

const orr_sim_rank_result *orr_sim_rank(const orr_sim *s, uint32_t rank)
{
    return s->fold ? fold_rank(s->fold, rank) : &s->npus[rank].result;
}

uint64_t orr_sim_events(const orr_sim *s)
{
    return s->fold ? fold_events(s->fold) : clk_events(s->clock);
}

uint32_t orr_sim_simulated(const orr_sim *s)
{
    return s->lockstep ? s->lockstep->classes : s->built;
}

uint32_t orr_sim_simulated_last(const orr_sim *s)
{
    return s->fold ? fold_walks(s->fold) : orr_sim_simulated(s);
}

const char *orr_sim_fold_why(const orr_sim *s)
{
    return s->fold_why;
}

uint32_t orr_sim_dimension_count(const orr_sim *s)
{
    return s->dims;
}

uint64_t orr_sim_messages(const orr_sim *s)
{
    return s->messages;
}
