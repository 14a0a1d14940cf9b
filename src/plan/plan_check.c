/* SPDX-License-Identifier: Apache-2.0 */
/* plan_check.c - the best plans again, in more detail, at a cost known in advance.
 *
 * The cost of a run follows from what it simulates: nodes with fluid links (which do not fold),
 * messages on aware, packets times links.  If a whole step exceeds the budget, a smaller step of
 * the same shape runs: first with fewer micro-batches, since they repeat; then with fewer layers
 * per stage; then with fewer data-parallel ranks, which changes the routes of gradients.  Packets
 * of whole steps soon become too many: then the heaviest collective of each axis runs alone, and
 * its time relative to that on the network of the search scales the exposed time of the axis.
 *
 * With fewer micro-batches two runs are made, with different numbers of them: the difference
 * extrapolates to all, and one-time parts count once.
 *
 * A smaller step has a different ratio of compute and traffic, so its absolute time is meaningless:
 * it is also run on the network of the search, and the plan's time is multiplied by the ratio.
 * Networks other than fluid do not slow compute during collectives, so the run compared with them
 * does not either. */
#include "search_impl.h"

#include "base/io/child_process.h"
#include "base/threads/pool.h"
#include "trace/builder.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The traffic of a step, counted without running it, and its heaviest collectives as separate
 * traces.
 *
 * Ranks of a class do the same in equally placed groups, so the first rank of each class represents
 * all.  Costs are counted, not timed, so that they are the same on every computer. */

/* Hops of a packet: out of the device and into the other; plus two tiers of switches between
 * nodes. */
enum { PAYLOAD = 4096, HOPS_INSIDE = 2, HOPS_OUTSIDE = 4, CHUNKS = 4, MOST_KINDS = 256 };
enum { NOBODY = -1, EVERYBODY = -2 }; /* instead of a group or a rank */

/* ---- groups ---- */

typedef struct members {
    const uint32_t *ranks; /* NULL: all */
    uint32_t count;
} members;

static members find_group(const orr_set *set, int64_t id)
{
    uint32_t low = 0, high = orr_set_group_count(set);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const orr_group g = orr_set_group(set, middle);
        if (g.id == (uint64_t)id)
            return (members){g.ranks, g.count};
        if (g.id < (uint64_t)id)
            low = middle + 1;
        else
            high = middle;
    }
    return (members){NULL, orr_set_rank_count(set)};
}

/* The group of a collective; false: none, all ranks take part. */
static bool group_of(const orr_set *set, uint32_t rank, uint32_t node, int64_t *id)
{
    const orr_trace *t = orr_set_trace(set, orr_set_class_of(set, rank));
    const orr_columns *c = orr_trace_columns(t);
    if (orr_set_hole(set, rank, ORR_HOLE_PG_NAME, node, id))
        return true;
    if (!c->pg_name || c->pg_name[node] == ORR_NO_NAME)
        return false;
    const orr_str name = orr_trace_text(t, c->pg_name[node]);
    char text[24];
    if (!name.len || name.len >= sizeof text)
        return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    *id = (int64_t)strtoull(text, NULL, 10);
    return true;
}

static uint32_t count_inside(members m, uint32_t rank, uint32_t node_ranks)
{
    uint32_t sum = 0;
    if (!m.ranks)
        return m.count < node_ranks ? m.count : node_ranks;
    for (uint32_t i = 0; i < m.count; i++)
        sum += m.ranks[i] / node_ranks == rank / node_ranks;
    return sum ? sum : 1;
}

/* ---- counts ---- */

static int64_t value_at(const int64_t *column, uint32_t i)
{
    return column && column[i] != ORR_NO_VALUE ? column[i] : 0;
}

/* A rank's share of a collective inside the node and between nodes, as rings. */
static void count_collective(
    int8_t kind, double bytes, uint32_t inside, uint32_t outside, search_traffic *out)
{
    const double passes = kind == ORR_COLL_ALL_REDUCE ? 2 : 1;
    const double packets = passes * bytes / PAYLOAD;
    out->messages += passes * CHUNKS * ((inside - 1.0) + (outside - 1.0));
    out->hops += packets * HOPS_INSIDE * (inside - 1) / inside +
                 packets * HOPS_OUTSIDE * (outside - 1) / outside / inside;
}

static void count_class(const orr_set *set, uint32_t k, uint32_t node_ranks, search_traffic *out)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(set, k));
    const uint32_t rank = orr_set_class_first(set, k);
    int64_t last = NOBODY;
    uint32_t inside = 1, outside = 1;
    for (uint32_t i = 0; i < c->count; i++) {
        const double bytes = (double)value_at(c->comm_size, i);
        int64_t id = EVERYBODY, to;
        if (c->type[i] == ORR_NODE_COMM_SEND) {
            const bool is_known = orr_set_hole(set, rank, ORR_HOLE_COMM_DST, i, &to);
            const bool is_near = is_known && to / node_ranks == rank / node_ranks;
            out->messages++;
            out->hops += bytes / PAYLOAD * (is_near ? HOPS_INSIDE : HOPS_OUTSIDE);
        }
        if (c->type[i] != ORR_NODE_COMM_COLL)
            continue;
        if (!group_of(set, rank, i, &id) || id != last) {
            const members m = find_group(set, id);
            inside = count_inside(m, rank, node_ranks);
            outside = (m.count + inside - 1) / inside;
            last = id;
        }
        count_collective(c->comm_type ? c->comm_type[i] : 0, bytes, inside, outside, out);
    }
    out->nodes += c->count;
}

static void count_traffic(const orr_set *set, uint32_t node_ranks, search_traffic *out)
{
    *out = (search_traffic){0};
    for (uint32_t k = 0; k < orr_set_class_count(set); k++) {
        search_traffic one = {0};
        const double ranks = orr_set_class_ranks(set, k);
        count_class(set, k, node_ranks, &one);
        out->nodes += one.nodes * ranks;
        out->messages += one.messages * ranks;
        out->hops += one.hops * ranks;
    }
}

/* ---- the heaviest of each axis ---- */

typedef struct kind {
    search_axis axis;
    uint8_t type;
    int8_t collective;
    search_piece piece;
} kind;

static kind *find_kind(kind *all, size_t *count, const kind *wanted)
{
    size_t i = 0;
    for (; i < *count; i++)
        if (all[i].axis == wanted->axis && all[i].type == wanted->type &&
            all[i].collective == wanted->collective && all[i].piece.bytes == wanted->piece.bytes &&
            all[i].piece.members == wanted->piece.members)
            return &all[i];
    if (i == MOST_KINDS)
        return NULL; /* there are heavier ones among that many */
    all[i] = *wanted;
    ++*count;
    return &all[i];
}

static void add_kinds(const orr_set *set, uint32_t k, kind *all, size_t *count)
{
    const orr_trace *t = orr_set_trace(set, k);
    const orr_columns *c = orr_trace_columns(t);
    const uint32_t rank = orr_set_class_first(set, k);
    for (uint32_t i = 0; i < c->count; i++) {
        const bool is_collective = c->type[i] == ORR_NODE_COMM_COLL;
        if (!is_collective && c->type[i] != ORR_NODE_COMM_SEND)
            continue;
        int64_t id = EVERYBODY;
        const uint64_t bytes = (uint64_t)value_at(c->comm_size, i);
        if (is_collective && !group_of(set, rank, i, &id))
            id = EVERYBODY;
        const kind one = {.axis = search_axis_of(orr_trace_name(t, i), c->type[i]),
                          .type = c->type[i],
                          .collective = is_collective && c->comm_type ? c->comm_type[i] : -1,
                          .piece = {.class_index = k,
                                    .node = i,
                                    .bytes = bytes,
                                    .is_message = !is_collective,
                                    .members = is_collective ? find_group(set, id).count : 2}};
        kind *found = find_kind(all, count, &one);
        if (found)
            found->piece.weight += (double)bytes * orr_set_class_ranks(set, k);
    }
}

/* The heaviest of each axis. */
static orr_code search_pieces(const orr_set *set, search_piece out[SEARCH_AXES], orr_error *err)
{
    size_t count = 0;
    kind *all = orr_alloc(MOST_KINDS, sizeof *all);
    memset(out, 0, SEARCH_AXES * sizeof *out);
    if (!all)
        return orr_no_memory(err);
    for (uint32_t k = 0; k < orr_set_class_count(set); k++)
        add_kinds(set, k, all, &count);
    for (size_t i = 0; i < count; i++)
        if (all[i].piece.members > 1 && all[i].piece.weight > out[all[i].axis].weight)
            out[all[i].axis] = all[i].piece;
    orr_free(all);
    return ORR_OK;
}

/* ---- as separate traces ---- */

typedef struct range {
    uint32_t from, to; /* ranks of whole nodes */
} range;

static void widen(range *r, uint32_t rank, uint32_t node_ranks, uint32_t all)
{
    const uint32_t from = rank / node_ranks * node_ranks, to = from + node_ranks;
    if (from < r->from)
        r->from = from;
    if (to > r->to)
        r->to = to < all ? to : all;
}

/* The node of the first rank, and the nodes of all partners. */
static range find_range(const orr_set *set, const search_piece *p, uint32_t node_ranks)
{
    const uint32_t all = orr_set_rank_count(set), first = orr_set_class_first(set, p->class_index);
    range r = {first / node_ranks * node_ranks, first / node_ranks * node_ranks}, old;
    widen(&r, first, node_ranks, all);
    do {
        old = r;
        for (uint32_t rank = old.from; rank < old.to; rank++) {
            int64_t id = EVERYBODY;
            if (orr_set_class_of(set, rank) != p->class_index)
                continue;
            if (p->is_message) {
                if (orr_set_hole(set, rank, ORR_HOLE_COMM_DST, p->node, &id) && id >= 0 && id < all)
                    widen(&r, (uint32_t)id, node_ranks, all);
                continue;
            }
            const members m = find_group(set, group_of(set, rank, p->node, &id) ? id : EVERYBODY);
            for (uint32_t i = 0; i < m.count; i++)
                widen(&r, m.ranks ? m.ranks[i] : i, node_ranks, all);
        }
    } while (r.from != old.from || r.to != old.to);
    return r;
}

static orr_code add_groups(
    const orr_set *set, range r, const int64_t *with, orr_set *out, orr_error *err)
{
    orr_code code = ORR_OK;
    uint32_t *moved = orr_alloc(orr_set_rank_count(set), sizeof *moved);
    if (!moved)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < orr_set_group_count(set) && !code; i++) {
        const orr_group g = orr_set_group(set, i);
        if (!g.count || with[g.ranks[0]] != (int64_t)g.id)
            continue;
        for (uint32_t k = 0; k < g.count; k++)
            moved[k] = g.ranks[k] - r.from;
        code = orr_set_add_group(out, g.id, moved, g.count, err);
    }
    orr_free(moved);
    return code;
}

/* The work of one rank: its collective, its messages, or nothing. */
static orr_code add_rank(const orr_set *set,
                         const search_piece *p,
                         uint64_t bytes,
                         range r,
                         uint32_t rank,
                         const int64_t *with,
                         orr_set *out,
                         orr_error *err)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(set, p->class_index));
    const bool is_sender = p->is_message && orr_set_class_of(set, rank) == p->class_index;
    orr__builder b;
    int64_t to;
    orr__build_open(&b, err);
    orr__build_trace(&b, "0.0.4");
    b.next_id = 1;
    if (!p->is_message && with[rank] != NOBODY) {
        orr__build_node(&b, ORR_NODE_COMM_COLL, orr_str_of("collective"));
        orr__put_on_device(&b);
        orr__put_collective(&b, (orr_collective)c->comm_type[p->node], bytes);
        if (with[rank] != EVERYBODY)
            orr__put_group(&b, (uint64_t)with[rank]);
        orr__build_add(&b);
    }
    if (is_sender && orr_set_hole(set, rank, ORR_HOLE_COMM_DST, p->node, &to)) {
        orr__build_node(&b, ORR_NODE_COMM_SEND, orr_str_of("send"));
        orr__put_on_device(&b);
        orr__put_message(&b, ORR_VALUE_INT64, rank - r.from, to - r.from, bytes, 0);
        orr__build_add(&b);
    }
    if (p->is_message && with[rank] != NOBODY) {
        orr__build_node(&b, ORR_NODE_COMM_RECV, orr_str_of("receive"));
        orr__put_on_device(&b);
        orr__put_message(&b, ORR_VALUE_INT64, with[rank] - r.from, rank - r.from, bytes, 0);
        orr__build_add(&b);
    }
    if (!b.count) {
        orr__build_node(&b, ORR_NODE_COMP, orr_str_of("idle"));
        b.node.duration_us = 1;
        orr__put_on_device(&b);
        orr__build_add(&b);
    }
    return orr__build_rank(&b, out);
}

/* The sender to each rank, or its group: groups may have ranks of several classes. */
static orr_code find_partners(
    const orr_set *set, const search_piece *p, range r, int64_t **out, orr_error *err)
{
    const uint32_t all = orr_set_rank_count(set);
    int64_t *with = *out = orr_alloc(all, sizeof *with);
    if (!with)
        return orr_no_memory(err);
    for (uint32_t rank = 0; rank < all; rank++)
        with[rank] = NOBODY;
    for (uint32_t rank = r.from; rank < r.to; rank++) {
        int64_t id = EVERYBODY;
        if (orr_set_class_of(set, rank) != p->class_index)
            continue;
        if (p->is_message) {
            if (orr_set_hole(set, rank, ORR_HOLE_COMM_DST, p->node, &id) && id >= 0 && id < all)
                with[id] = rank;
            continue;
        }
        const members m = find_group(set, group_of(set, rank, p->node, &id) ? id : EVERYBODY);
        for (uint32_t i = 0; i < m.count; i++)
            with[m.ranks ? m.ranks[i] : i] = m.ranks ? id : EVERYBODY;
    }
    return ORR_OK;
}

/* Traces in which the ranks of the nodes involved run only that, with so many bytes: *out has one
 * rank per device of those nodes. */
static orr_code piece_set(const orr_set *set,
                          const search_piece *piece,
                          uint64_t bytes,
                          uint32_t node_ranks,
                          orr_set **out,
                          orr_error *err)
{
    const range r = find_range(set, piece, node_ranks);
    int64_t *with = NULL;
    *out = NULL;
    orr_code code = orr_set_create(out, err);
    if (!code)
        code = find_partners(set, piece, r, &with, err);
    for (uint32_t rank = r.from; rank < r.to && !code; rank++)
        code = add_rank(set, piece, bytes, r, rank, with, *out, err);
    if (!code && !piece->is_message)
        code = add_groups(set, r, with, *out, err);
    orr_free(with);
    if (code) {
        orr_set_close(*out);
        *out = NULL;
    }
    return code;
}

/* Seconds on a 3 GHz core, fitted to steps of Llama 3 8B on 16 and 70B on 1,024 ranks. */
#define NODE_S 0.75e-6    /* links: of a node of any rank */
#define MESSAGE_S 0.42e-6 /* aware */
#define HOP_S 0.14e-6     /* packets */
#define BUDGET_S 10
#define HIDDEN 0.002 /* an axis with a smaller exposed share is irrelevant */

enum { LEAST_BYTES = 65536, PIECE_ALIGN = 4096, KEEP_DP = 8 };

static const char *const level_names[ORR_PLAN_LEVELS] = {
    "fluid, link by link", "aware, message by message", "packet by packet"};
static const char *const axis_words[SEARCH_AXES] = {"tensor", "context", "expert", "data",
                                                    "pipeline"};

const char *orr_plan_level_name(orr_plan_level level)
{
    return (unsigned)level < ORR_PLAN_LEVELS ? level_names[level] : "?";
}

/* ---- one run ---- */

/* What an item runs: chosen first, so that all costs are known before the first run. */
typedef struct check_job {
    orr_plan_search *s;
    const orr_plan_check_options *opt;
    orr_plan_check *item;
    orr_model model; /* of the step that runs */
    orr_llm_options options;
    uint64_t fewer; /* micro-batches of a second run; 0: there is none */
    double budget;
} check_job;

static double cost_of(orr_plan_level level, const search_traffic *t)
{
    return level == ORR_PLAN_LINKS      ? t->nodes * NODE_S
           : level == ORR_PLAN_MESSAGES ? t->messages * MESSAGE_S + t->nodes * NODE_S / 4
                                        : t->hops * HOP_S;
}

/* The links of a machine as a file in a folder of its own, which the caller removes; *path stays
 * NULL if they cannot be expressed. */
static orr_code write_links(
    orr_arena *a, const orr_machine *m, orr_folder *folder, char **path, orr_error *err)
{
    orr_code code = orr_folder_create(a, folder, err);
    if (!code)
        code = orr_machine_export(m, folder->path, err);
    char *links = code ? NULL : orr_arena_print(a, "%s/links.yml", folder->path);
    if (!code && !links)
        code = orr_no_memory(err);
    if (!code && access(links, R_OK) == 0)
        *path = links;
    return code;
}

/* The kind of a set: a step, with or without collectives slowing compute; or only collectives. */
typedef enum check_compute { CHECK_BESIDE, CHECK_APART, CHECK_NO_COMPUTE } check_compute;

/* Time of a set on a network; links NULL: the machine's dimensions. */
static orr_code time_set(check_job *j,
                         const orr_set *set,
                         const char *network,
                         const char *links,
                         check_compute compute,
                         double *out,
                         orr_error *err)
{
    orr_machine m;
    orr_system system;
    run_chip found;
    orr_run *run = NULL;
    orr_run_config config = {.size = sizeof config,
                             .set = set,
                             .traces = "plan",
                             .machine = j->s->opt.machine,
                             .software = j->s->base.software->name,
                             .network = network,
                             .topology = links,
                             .max_seconds = j->opt->max_seconds,
                             .threads = 1};
    if (strcmp(network, "packet") == 0)
        config.packet_keys = "PACKET_PAYLOAD_SIZE 4096";
    orr_code code = orr_machine_for(j->s->opt.machine, orr_set_rank_count(set), &m, err);
    if (!code && compute != CHECK_BESIDE) {
        code = orr_machine_system(&m, &system, err);
        system.overlap_cost = 0;
        config.own_system = &system;
        if (!code)
            code = run_chip_of(&m, &found, err);
        config.hardware = compute == CHECK_APART && !code && found.chip ? m.chip : NULL;
    }
    if (!code)
        code = orr_run_create(&config, &run, err);
    if (!code)
        code = orr_run_to_end(run, err);
    *out = code ? 0 : (double)orr_run_time(run) * 1e-12;
    orr_run_destroy(run);
    return code;
}

/* On the network of the level, and on that of the search. */
static orr_code time_both(check_job *j,
                          const orr_set *set,
                          check_compute compute,
                          double *run,
                          double *base,
                          orr_error *err)
{
    static const char *const networks[ORR_PLAN_LEVELS] = {"fluid", "aware", "packet"};
    const orr_plan_level level = j->item->level;
    orr_arena *a = orr_arena_create();
    orr_folder folder = {0};
    char *links = NULL;
    orr_machine m;
    orr_code code = a ? orr_machine_for(j->s->opt.machine, orr_set_rank_count(set), &m, err)
                      : orr_no_memory(err);
    if (!code && level != ORR_PLAN_MESSAGES)
        code = write_links(a, &m, &folder, &links, err);
    /* A single node has no file of links; it has no shared links beyond the dimensions. */
    if (!code)
        code = time_set(j, set, networks[level], links, compute, run, err);
    if (!code)
        code = time_set(j, set, "fluid", NULL, compute, base, err);
    orr_folder_remove(&folder);
    orr_arena_destroy(a);
    return code;
}

/* ---- a smaller step ---- */

static uint64_t batches_of(const orr_llm_options *o)
{
    return o->batch / o->dp / o->micro_batch;
}

/* Per part of the pipeline; the ends may have one fewer. */
static uint64_t layers_each(const orr_model *m, const orr_llm_options *o)
{
    const uint64_t parts = (uint64_t)o->pp * o->chunks;
    return (m->layers + parts - 1) / parts;
}

/* Options that count layers. */
static void cut_layers(orr_llm_options *o, uint64_t all, uint64_t some, uint64_t each)
{
    if (o->recompute_layers) {
        const uint64_t whole = o->recompute_layers < all ? o->recompute_layers : all;
        o->recompute_layers = (whole * some + all - 1) / all;
    }
    if (o->offload_layers > each)
        o->offload_layers = each;
}

/* Options and model of a step with these numbers of micro-batches, layers per part and
 * data-parallel ranks; false: impossible. */
static bool cut_step(check_job *j, uint64_t batches, uint64_t each, uint32_t dp)
{
    const orr_llm_options *from = &j->item->plan->options;
    const uint64_t parts = (uint64_t)from->pp * from->chunks;
    const uint64_t missing = layers_each(j->s->opt.model, from) * parts - j->s->opt.model->layers;
    orr_error err = {0};
    orr_machine m;
    j->model = *j->s->opt.model;
    j->options = *from;
    if (each < layers_each(j->s->opt.model, from)) {
        if (each * parts <= missing)
            return false;
        j->model.layers = each * parts - missing;
        cut_layers(&j->options, j->s->opt.model->layers, j->model.layers, each);
    }
    j->options.dp = dp;
    if (from->shard > (uint64_t)dp * from->cp)
        j->options.shard = dp * from->cp;
    j->options.batch = batches * dp * from->micro_batch;
    return !orr_model_check(&j->model, &err) && !orr_llm_complete(&j->model, &j->options, &err) &&
           !orr_machine_for(j->s->opt.machine, orr_llm_ranks(&j->options), &m, &err);
}

/* What it costs. */
static orr_code price_step(check_job *j, double *out, orr_error *err)
{
    orr_set *set = NULL;
    search_traffic t;
    const orr_code code = orr_llm_training(&j->model, &j->options, &set, err);
    if (!code) {
        count_traffic(set, j->s->machine.devices, &t);
        *out = cost_of(j->item->level, &t);
    }
    orr_set_close(set);
    return code;
}

/* Fewest micro-batches that the schedule takes. */
static uint64_t least_batches(check_job *j)
{
    const orr_llm_options *o = &j->item->plan->options;
    const uint64_t all = batches_of(o), each = layers_each(j->s->opt.model, o);
    for (uint64_t n = o->pp; n < all; n += o->pp)
        if (cut_step(j, n, each, o->dp))
            return n;
    return all;
}

static void say_part(check_job *j)
{
    const orr_llm_options *from = &j->item->plan->options;
    const orr_model *m = j->s->opt.model;
    char *text = j->item->what;
    const size_t room = sizeof j->item->what;
    size_t n = 0;
    text[0] = 0;
    if (batches_of(&j->options) < batches_of(from))
        n += (size_t)snprintf(text + n, room - n, ", %llu and %llu of %llu micro-batches",
                              (unsigned long long)j->fewer,
                              (unsigned long long)batches_of(&j->options),
                              (unsigned long long)batches_of(from));
    if (j->model.layers < m->layers)
        n += (size_t)snprintf(text + n, room - n, ", %llu of %llu layers",
                              (unsigned long long)j->model.layers, (unsigned long long)m->layers);
    if (j->options.dp < from->dp)
        n += (size_t)snprintf(text + n, room - n, ", dp %u of %u", j->options.dp, from->dp);
    memmove(text, text + 2, n - 1);
}

/* Including the run with the fewest micro-batches, if not all of them run; *is_legal false:
 * impossible. */
static orr_code price_part(check_job *j,
                           uint64_t batches,
                           uint64_t few,
                           uint64_t each,
                           uint32_t dp,
                           bool *is_legal,
                           double *out,
                           orr_error *err)
{
    const bool is_cut = batches < batches_of(&j->item->plan->options);
    double first = 0;
    orr_code code = ORR_OK;
    j->fewer = is_cut ? few : 0;
    *is_legal = !is_cut || cut_step(j, few, each, dp);
    if (*is_legal && is_cut)
        code = price_step(j, &first, err);
    *is_legal = *is_legal && cut_step(j, batches, each, dp);
    if (!code && *is_legal)
        code = price_step(j, out, err);
    *out += first;
    return code;
}

/* The largest one within the budget.  The kind stays ORR_PLAN_NOT_RUN if there is none: *least is
 * the cost of the smallest. */
static orr_code choose_part(check_job *j, double whole, double *least, orr_error *err)
{
    const orr_llm_options *o = &j->item->plan->options;
    const uint64_t all = batches_of(o), few = least_batches(j),
                   some = few + o->pp < all ? few + o->pp : all;
    const uint32_t two = o->dp > 2 ? 2 : o->dp, share = o->dp / KEEP_DP;
    const uint32_t least_dp = j->item->level == ORR_PLAN_PACKETS && share > two ? share : two;
    uint64_t batches = (uint64_t)((double)all * j->budget / whole) / o->pp * o->pp,
             each = layers_each(j->s->opt.model, o);
    uint32_t dp = o->dp;
    double cost = whole;
    orr_code code = ORR_OK;
    *least = whole;
    while (!code) {
        bool is_legal;
        batches = batches < some ? some : batches > all ? all : batches;
        code = price_part(j, batches, few, each, dp, &is_legal, &cost, err);
        if (!code && is_legal && cost < *least)
            *least = cost;
        if (code || (is_legal && cost <= j->budget))
            break;
        if (batches > some)
            batches -= o->pp;
        else if (each > 1)
            each = (uint64_t)((double)each * fmin(0.99, j->budget / cost));
        else if (dp / 2 >= least_dp && dp % 2 == 0)
            dp /= 2;
        else
            return ORR_OK;
        if (!each)
            each = 1;
    }
    if (!code) {
        j->item->kind = ORR_PLAN_PART;
        j->item->cost_s = cost;
        say_part(j);
    }
    return code;
}

/* ---- collectives one by one ---- */

/* How many of its bytes are within the budget; 0: not even a few. */
static orr_code size_piece(check_job *j,
                           const orr_set *step,
                           const search_piece *p,
                           double budget,
                           uint64_t *out,
                           double *cost,
                           orr_error *err)
{
    orr_set *set = NULL;
    search_traffic t = {0};
    const orr_code code = piece_set(step, p, p->bytes, j->s->machine.devices, &set, err);
    if (!code)
        count_traffic(set, j->s->machine.devices, &t);
    orr_set_close(set);
    if (code)
        return code;
    *out = p->bytes;
    *cost = cost_of(ORR_PLAN_PACKETS, &t);
    if (*cost > budget) {
        const double share = budget / *cost;
        *out = (uint64_t)((double)p->bytes * share) / PIECE_ALIGN * PIECE_ALIGN;
        *cost *= share;
    }
    if (*out < LEAST_BYTES && *out < p->bytes)
        *out = 0;
    return ORR_OK;
}

static size_t exposed_axes(const orr_plan *p, const search_piece pieces[SEARCH_AXES])
{
    size_t count = 0;
    for (unsigned i = 0; i < SEARCH_AXES; i++)
        count += pieces[i].weight > 0 && search_axis_share(p, (search_axis)i) > HIDDEN;
    return count;
}

static void say_piece(
    check_job *j, search_axis axis, const search_piece *p, uint64_t bytes, double ratio)
{
    char *text = j->item->what, size[40] = "";
    const size_t n = strlen(text), room = sizeof j->item->what;
    if (bytes < p->bytes)
        snprintf(size, sizeof size, "%.3g of ", (double)bytes / (1 << 20));
    if (n < room)
        snprintf(text + n, room - n, "%s%s %s%.3g MiB", n ? "; " : "", axis_words[axis], size,
                 (double)p->bytes / (1 << 20));
    const size_t now = strlen(text);
    if (!p->is_message)
        snprintf(text + now, room - now, " over %u", p->members);
    const size_t end = strlen(text);
    if (ratio > 0)
        snprintf(text + end, room - end, " x %.3f", ratio);
}

/* One axis: *ratio is its time packet by packet over that on the network of the search. */
static orr_code run_piece(check_job *j,
                          const orr_set *step,
                          const search_piece *p,
                          uint64_t bytes,
                          double *ratio,
                          orr_error *err)
{
    orr_set *set = NULL;
    double run = 0, base = 0;
    orr_code code = piece_set(step, p, bytes, j->s->machine.devices, &set, err);
    if (!code)
        code = time_both(j, set, CHECK_NO_COMPUTE, &run, &base, err);
    *ratio = base > 0 ? run / base : 0;
    orr_set_close(set);
    return code;
}

/* Without is_run: only its cost. */
static orr_code do_pieces(check_job *j, bool is_run, orr_error *err)
{
    orr_plan_check *item = j->item;
    const orr_plan *p = item->plan;
    search_piece pieces[SEARCH_AXES];
    orr_set *step = NULL;
    double factor = 1, cost = 0, sum = 0;
    size_t tried = 0;
    item->what[0] = 0;
    orr_code code = orr_llm_training(j->s->opt.model, &p->options, &step, err);
    if (!code)
        code = search_pieces(step, pieces, err);
    const size_t count = code ? 0 : exposed_axes(p, pieces);
    for (unsigned i = 0; i < SEARCH_AXES && !code; i++) {
        const double share = search_axis_share(p, (search_axis)i);
        uint64_t bytes = 0;
        double ratio = 0;
        if (!(pieces[i].weight > 0) || share <= HIDDEN)
            continue;
        code = size_piece(j, step, &pieces[i], j->budget / (double)count, &bytes, &cost, err);
        if (!code && bytes && is_run)
            code = run_piece(j, step, &pieces[i], bytes, &ratio, err);
        if (code || !bytes)
            continue;
        tried++;
        sum += cost;
        say_piece(j, (search_axis)i, &pieces[i], bytes, ratio);
        factor += ratio > 0 ? share * (ratio - 1) : 0;
    }
    orr_set_close(step);
    if (!code && tried) {
        item->kind = ORR_PLAN_COLLECTIVES;
        item->cost_s = sum;
        item->step_s = is_run ? p->step_s * factor : 0;
    } else if (!code && count) {
        snprintf(item->why, sizeof item->why, "its collectives are above the budget of %g s",
                 j->budget);
    } else if (!code) {
        snprintf(item->why, sizeof item->why, "it leaves no communication exposed");
    }
    return code;
}

/* ---- choosing ---- */

static void note_failure(orr_plan_check *item, const orr_error *err)
{
    item->kind = ORR_PLAN_NOT_RUN;
    item->step_s = 0;
    snprintf(item->why, sizeof item->why, "%.*s", (int)sizeof item->why - 1, err->message);
}

static bool has_links(const check_job *j)
{
    orr_arena *a = orr_arena_create();
    orr_folder folder = {0};
    char *links = NULL;
    orr_error err = {0};
    const orr_code code = a ? write_links(a, &j->s->machine, &folder, &links, &err) : ORR_ENOMEM;
    orr_folder_remove(&folder);
    orr_arena_destroy(a);
    return !code && links;
}

static orr_code choose(check_job *j, orr_error *err)
{
    orr_plan_check *item = j->item;
    const orr_llm_options *o = &item->plan->options;
    double whole, least;
    if (item->level != ORR_PLAN_MESSAGES && !has_links(j)) {
        snprintf(item->why, sizeof item->why,
                 j->s->machine.nodes > 1 ? "topologies have no shape for the links of this machine"
                                         : "one node: its links are the dimensions of the search");
        return ORR_OK;
    }
    cut_step(j, batches_of(o), layers_each(j->s->opt.model, o), o->dp);
    orr_code code = price_step(j, &whole, err);
    if (code)
        return code;
    if (whole <= j->budget) {
        item->kind = ORR_PLAN_WHOLE;
        item->cost_s = whole;
        snprintf(item->what, sizeof item->what, "whole step");
        return ORR_OK;
    }
    code = choose_part(j, whole, &least, err);
    if (code || item->kind == ORR_PLAN_PART)
        return code;
    if (item->level == ORR_PLAN_PACKETS)
        return do_pieces(j, false, err);
    snprintf(item->why, sizeof item->why,
             "the shortest step with this parallelism needs a budget of %.2g s, the full step one "
             "of %.2g s",
             least, whole);
    return ORR_OK;
}

static orr_code run_step(check_job *j, double *run, double *base, orr_error *err)
{
    orr_set *set = NULL;
    orr_code code = orr_llm_training(&j->model, &j->options, &set, err);
    if (!code)
        code = time_both(j, set, j->item->level == ORR_PLAN_LINKS ? CHECK_BESIDE : CHECK_APART, run,
                         base, err);
    orr_set_close(set);
    return code;
}

static orr_code run_steps(check_job *j, orr_error *err)
{
    orr_plan_check *item = j->item;
    const orr_llm_options more = j->options;
    double run = 0, base = 0;
    orr_code code = run_step(j, &item->run_s, &item->base_s, err);
    if (!code && j->fewer) {
        j->options.batch = j->fewer * more.dp * more.micro_batch;
        code = run_step(j, &run, &base, err);
        const double first = (double)j->fewer, second = (double)batches_of(&more),
                     left = (double)batches_of(&item->plan->options) - second;
        item->run_s += (item->run_s - run) * left / (second - first);
        item->base_s += (item->base_s - base) * left / (second - first);
    }
    if (!code && item->base_s > 0)
        item->step_s = item->plan->step_s * (item->run_s / item->base_s);
    return code;
}

/* ---- all ---- */

typedef struct check_work {
    check_job *jobs;
    double done_s, all_s;
    pthread_mutex_t lock;
} check_work;

/* An error of one item is its result; lack of memory ends all. */
static orr_code settle(check_job *j, orr_code code, const orr_error *found, orr_error *err)
{
    if (code == ORR_ENOMEM)
        return orr_no_memory(err);
    if (code)
        note_failure(j->item, found);
    return ORR_OK;
}

static orr_code choose_one(void *context, size_t i, orr_error *err)
{
    check_work *w = context;
    orr_error found = {0};
    return settle(&w->jobs[i], choose(&w->jobs[i], &found), &found, err);
}

static orr_code run_one(void *context, size_t i, orr_error *err)
{
    check_work *w = context;
    check_job *j = &w->jobs[i];
    orr_error found = {0};
    orr_code code = ORR_OK;
    if (j->item->kind == ORR_PLAN_NOT_RUN)
        return ORR_OK;
    if (atomic_load(&j->s->is_stopped))
        code = orr_fail(&found, ORR_ESTOP, NULL, "interrupted");
    else if (j->item->kind == ORR_PLAN_COLLECTIVES)
        code = do_pieces(j, true, &found);
    else
        code = run_steps(j, &found);
    code = settle(j, code, &found, err);
    pthread_mutex_lock(&w->lock);
    w->done_s += j->item->cost_s;
    if (j->opt->progress)
        j->opt->progress(j->opt->context, w->done_s, w->all_s);
    pthread_mutex_unlock(&w->lock);
    return code;
}

orr_code orr_plan_check_all(orr_plan_search *s,
                            const orr_plan_check_options *opt,
                            orr_plan_check *list,
                            size_t count,
                            orr_error *err)
{
    if (!opt || opt->size != sizeof *opt)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "orr_plan_check_options: size must be sizeof(orr_plan_check_options)");
    check_work w = {.jobs = orr_alloc(count ? count : 1, sizeof *w.jobs)};
    if (!w.jobs)
        return orr_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        list[i] = (orr_plan_check){.plan = list[i].plan, .level = list[i].level};
        w.jobs[i] = (check_job){.s = s,
                                .opt = opt,
                                .item = &list[i],
                                .budget = opt->budget_s > 0 ? opt->budget_s : BUDGET_S};
    }
    pthread_mutex_init(&w.lock, NULL);
    orr_code code = orr_pool_for(s->opt.threads, count, choose_one, &w, err);
    for (size_t i = 0; i < count; i++)
        w.all_s += list[i].cost_s;
    if (!code && opt->progress)
        opt->progress(opt->context, 0, w.all_s);
    if (!code)
        code = orr_pool_for(s->opt.threads, count, run_one, &w, err);
    pthread_mutex_destroy(&w.lock);
    orr_free(w.jobs);
    return code;
}
