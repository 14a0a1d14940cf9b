/* SPDX-License-Identifier: Apache-2.0 */
/* explanation.c - the facts of a run for a report: timeline, critical path, network, links,
 * experiments.
 *
 * Simulations of traces and flows over the packet network both become an orr_report_run, which is
 * all that src/views sees of them. */
#include <orrery/lab/critical_path.h>
#include <orrery/lab/explain.h>
#include <orrery/lab/stall.h>
#include <orrery/run.h>

#include "base/memory/memory.h"
#include "base/memory/sort.h"
#include "facts.h"
#include "run/engine.h"
#include "run/run_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ORR__WHAT_IFS = 2 * ORR_NET_DIMS + 16, ORR__WHAT_IF_WORDS = 160 };

typedef struct orr__what_ifs {
    orr_run *r;                    /* finished */
    const orr_critical_path *path; /* NULL: no estimates */
    orr_code (*run)(orr_run *r, orr_error *err);
    orr_code (*variant)(const orr_set *traces,
                        size_t *number,
                        char *words,
                        size_t room,
                        orr_set **out,
                        orr_error *err);
    orr_error *err;
    orr_report_what_if list[ORR__WHAT_IFS];
    char words[ORR__WHAT_IFS][ORR__WHAT_IF_WORDS];
    size_t count;
    double used_before;    /* of the run's max_seconds, when the first change was tried ... */
    struct timespec since; /* ... which was then */
    bool is_cut;           /* a limit of the run ended them */
} orr__what_ifs;

/* What-ifs: a faster network, chip or memory, and variants of the workload: the run simulated again
 * with one change, or an estimate from the critical path. */

/* About ten seconds.  Counted in events, so that the page is the same on a busy machine; those of
 * packets are quicker. */
#define AUTO_EVENTS 2e7
#define AUTO_PACKET_EVENTS 2e8
enum { VARIANTS = 8 }; /* limit on variants tried, approximate */

static orr_report_what_if *new_change(orr__what_ifs *g, const char *words, uint32_t dimension)
{
    if (g->count == ORR__WHAT_IFS)
        return NULL;
    char *text = g->words[g->count];
    orr_report_what_if *w = &g->list[g->count++];
    const orr_run_dimension *d = orr_run_dimension_at(g->r, dimension);
    if (d && d->shape)
        snprintf(text, ORR__WHAT_IF_WORDS, "dimension %u (%s %u): %s", dimension, d->shape,
                 d->ranks, words);
    else
        snprintf(text, ORR__WHAT_IF_WORDS, "%s", words);
    w->change = text;
    return w;
}

/* The chain of operations stays the same but runs faster: an upper bound of the gain. */
static void estimate(orr__what_ifs *g)
{
    uint64_t comm = 0, compute = 0, memory = 0;
    const uint64_t now = (uint64_t)orr_run_time(g->r) / 1000;
    for (size_t i = 0; g->path && i < g->path->step_count; i++) {
        const orr_path_step *p = &g->path->steps[i];
        const bool is_comm = p->kind == ORR_SPAN_SEND || p->kind == ORR_SPAN_RECEIVE ||
                             p->kind == ORR_SPAN_COLLECTIVE;
        comm += is_comm ? p->to - p->from : 0;
        compute += p->kind == ORR_SPAN_COMPUTE ? p->to - p->from : 0;
        memory += p->kind == ORR_SPAN_MEMORY ? p->to - p->from : 0;
    }
    const struct {
        const char *words;
        uint64_t share;
    } all[] = {{"network twice as fast", comm},
               {"compute x 2", compute},
               {"remote memory bandwidth x 2", memory}};
    for (unsigned k = 0; g->path && k < 3; k++) {
        if (all[k].share == 0)
            continue;
        orr_report_what_if *w = new_change(g, all[k].words, UINT32_MAX);
        w->time_ns = now - all[k].share / 2;
    }
}

/* All changes share what the run left of its time: there are more than twenty, and with the whole
 * limit each a page of --max-time 10s could take minutes. */
static double used_seconds(const orr__what_ifs *g)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return g->used_before + (double)(now.tv_sec - g->since.tv_sec) +
           (double)(now.tv_nsec - g->since.tv_nsec) * 1e-9;
}

static orr_code try_on(orr__what_ifs *g,
                       const orr_set *set,
                       orr_run_change change,
                       const char *words)
{
    orr_run_config config = g->r->config;
    orr_run *r;
    orr_report_what_if *w =
        new_change(g, words, change.has_dimension ? change.dimension : UINT32_MAX);
    if (!w)
        return ORR_OK;
    config.set = set;
    config.change = change;
    config.records = 0;
    config.path_steps = 0;
    config.shows_progress = false;
    config.used_seconds = used_seconds(g);
    orr_code code = orr_run_create(&config, &r, g->err);
    if (code)
        return code;
    code = g->run(r, g->err);
    w->time_ns = (uint64_t)orr_run_time(r) / 1000;
    w->is_simulated = true;
    orr_run_destroy(r);
    return code;
}

static orr_code try_change(orr__what_ifs *g, orr_run_change change, const char *words)
{
    return try_on(g, orr_run_traces(g->r), change, words);
}

/* The same step with other micro-batches, ZeRO stages, ...: on the same ranks. */
static orr_code try_variants(orr__what_ifs *g)
{
    char words[ORR__WHAT_IF_WORDS];
    orr_code code = ORR_OK;
    orr_set *set;
    /* A variant belongs to one job, not to the machine it shares. */
    const bool is_shared = orr_run_traces(g->r)->job_count > 0;
    for (size_t number = 0; g->variant && !is_shared && !code;) {
        code = g->variant(orr_run_traces(g->r), &number, words, sizeof words, &set, g->err);
        if (code)
            break;
        code = try_on(g, set, (orr_run_change){0}, words);
        orr_set_close(set);
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code try_network(orr__what_ifs *g)
{
    const uint32_t dims = orr_run_dimensions(g->r);
    const bool has_dims = orr_run_dimension_at(g->r, 0)->shape != NULL;
    orr_code code = ORR_OK;
    if (!has_dims) {
        code = try_change(g, (orr_run_change){.bandwidth = 2}, "network bandwidth x 2");
        return code ? code : try_change(g, (orr_run_change){.latency = 0.5}, "network latency / 2");
    }
    for (uint32_t k = 0; k < dims && !code; k++) {
        if (!(orr_run_dimension_at(g->r, k)->bandwidth > 0))
            continue; /* a custom network file: nothing here to be faster */
        const orr_run_change wider = {.has_dimension = true, .dimension = k, .bandwidth = 2};
        const orr_run_change closer = {.has_dimension = true, .dimension = k, .latency = 0.5};
        code = try_change(g, wider, "bandwidth x 2");
        if (!code)
            code = try_change(g, closer, "latency / 2");
    }
    return code;
}

static orr_code try_changes(orr__what_ifs *g)
{
    orr_code code;
    if ((code = try_network(g)) ||
        (code = try_change(g, (orr_run_change){.compute = 2}, "compute x 2")) ||
        (code = try_change(g, (orr_run_change){.memory = 2}, "memory bandwidth x 2")))
        return code;
    return try_variants(g);
}

/* As many runs as there are changes, plus some slack. */
static bool is_quick(const orr__what_ifs *g)
{
    const double variants = g->variant ? VARIANTS : 0;
    const double runs = 2.0 * orr_run_dimensions(g->r) + 2 + variants;
    const char *network = g->r->config.network;
    const bool is_packet = network && strcmp(network, "packet") == 0;
    return (double)orr_run_events(g->r) * runs < (is_packet ? AUTO_PACKET_EVENTS : AUTO_EVENTS);
}

/* Fills list; empty for an unfinished run. */
static orr_code orr__what_if(orr__what_ifs *g, orr_what_if how)
{
    const bool is_whole = orr_run_finished(g->r) == orr_run_ranks(g->r);
    if (how == ORR_WHAT_IF_AUTO)
        how = is_quick(g) ? ORR_WHAT_IF_SIMULATE : ORR_WHAT_IF_ESTIMATE;
    if (!is_whole || how == ORR_WHAT_IF_OFF)
        return ORR_OK;
    if (how != ORR_WHAT_IF_SIMULATE) {
        estimate(g);
        return ORR_OK;
    }
    const orr_run_config *c = &g->r->config;
    g->used_before = c->used_seconds + orr_run_seconds(g->r);
    clock_gettime(CLOCK_MONOTONIC, &g->since);
    const orr_code code = try_changes(g);
    if (code != ORR_ESTOP || !(c->max_seconds > 0 || c->max_bytes || c->max_events))
        return code;
    /* The run itself was within its limits: the page shows it, and the changes finished so far. */
    g->count--;
    g->is_cut = true;
    return ORR_OK;
}

enum { MOST_WORDS = 160, MOST_LINKS = 2000, INPUTS = 3, STALL_LINES = 1000, OPTIONS = 16 };

/* The busiest links, independent of the order in which they are visited. */
typedef struct link_list {
    orr_net_link *links;             /* room for twice as many as are kept */
    orr_report_link *list;           /* the busiest first */
    char (*ends)[ORR_NET_LINK_NAME]; /* two each */
    size_t count, seen;
} link_list;

struct orr_explanation {
    orr_report_serving serving;
    orr_report_run run;
    orr_error *err; /* during the call only */
    orr_run *r;
    orr_timeline *timeline;
    orr_critical_path *path;
    orr_report_step *steps;
    char (*why)[MOST_WORDS];
    orr_report_dimension dimensions[ORR_NET_DIMS];
    char dimension_names[ORR_NET_DIMS][MOST_WORDS];
    link_list links;
    orr_fabric_view *fabric;
    orr__what_ifs what_ifs;
    orr_run_input files[INPUTS];
    orr_report_input inputs[INPUTS];
    orr__run_facts *facts; /* NULL: flows */
    orr_report_option options[OPTIONS];
    size_t option_count;
    const char *notes[ORR__FACTS_WARNINGS + 3];
    size_t note_count;
    char stall[sizeof((orr_error *)0)->message];
    const char *stall_lines[STALL_LINES];
    size_t stall_line_count;
};

static const char *const stopped_note[] = {
    "The run was interrupted; results are those up to that point."};

const orr_report_run *orr_explanation_run(const orr_explanation *e)
{
    return &e->run;
}

void orr_explanation_destroy(orr_explanation *e)
{
    if (!e)
        return;
    orr_timeline_destroy(e->timeline);
    orr_critical_path_destroy(e->path);
    orr_free(e->steps);
    orr_free(e->why);
    orr_free(e->links.links);
    orr_free(e->links.list);
    orr_free(e->links.ends);
    orr_fabric_view_destroy(e->fabric);
    orr__run_facts_destroy(e->facts);
    orr_free(e);
}

/* ---- links ---- */

static orr_code make_room(link_list *l, orr_error *err)
{
    l->links = orr_alloc(2 * MOST_LINKS, sizeof *l->links);
    l->list = orr_alloc(MOST_LINKS, sizeof *l->list);
    l->ends = orr_alloc(2 * MOST_LINKS, sizeof *l->ends);
    return l->links && l->list && l->ends ? ORR_OK : orr_no_memory(err);
}

static int compare_links(const void *a, const void *b)
{
    const orr_net_link *x = a, *y = b;
    if (x->busy_ns != y->busy_ns)
        return x->busy_ns > y->busy_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Twice the capacity, with the less busy half dropped when full: the busiest stay, whatever the
 * order. */
static void take_link(void *links, const orr_net_link *link)
{
    link_list *l = links;
    if (l->count == 2 * MOST_LINKS) {
        orr_sort(l->links, l->count, sizeof *l->links, compare_links);
        l->count = MOST_LINKS;
    }
    l->links[l->count++] = *link;
    l->seen++;
}

/* "3 -> leaf0 #2"; "switch8.3 -> 2", whose 3 is a port of the switch. */
static void split_name(const char *name, char *from, char *to)
{
    const char *arrow = strstr(name, " -> ");
    const size_t n = arrow ? (size_t)(arrow - name) : strlen(name);
    memcpy(from, name, n);
    from[n] = '\0';
    char *dot = strrchr(from, '.');
    if (dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1))
        *dot = '\0';
    snprintf(to, ORR_NET_LINK_NAME, "%s", arrow ? arrow + 4 : "");
    char *twin = strstr(to, " #");
    if (twin)
        *twin = '\0';
}

static void list_links(link_list *l)
{
    orr_sort(l->links, l->count, sizeof *l->links, compare_links);
    if (l->count > MOST_LINKS)
        l->count = MOST_LINKS;
    for (size_t i = 0; i < l->count; i++) {
        const orr_net_link *one = &l->links[i];
        split_name(one->name, l->ends[2 * i], l->ends[2 * i + 1]);
        l->list[i] = (orr_report_link){.from = l->ends[2 * i],
                                       .to = l->ends[2 * i + 1],
                                       .bandwidth = one->bandwidth * 1e9,
                                       .bytes = one->bytes,
                                       .busy_ns = one->busy_ns};
    }
}

/* ---- the critical path ---- */

static void say_why(const orr_path_step *p, char out[MOST_WORDS])
{
    static const char *const after[ORR_PATH_AFTERS] = {
        [ORR_PATH_START] = "first operation",
        [ORR_PATH_DEPENDENCY] = "depends on the previous operation",
        [ORR_PATH_SLOT] = "waits for the previous operation on its stream",
        [ORR_PATH_TURN] = "starts when the previous operation ends",
        [ORR_PATH_SERVER] = "waits for the memory server",
    };
    switch (p->held) {
    case ORR_PATH_MESSAGE:
        snprintf(out, MOST_WORDS, "message from rank %u", p->held_rank);
        break;
    case ORR_PATH_RECEIVER:
        snprintf(out, MOST_WORDS, "rank %u was not ready to receive", p->held_rank);
        break;
    case ORR_PATH_LAST_RANK:
        snprintf(out, MOST_WORDS, "rank %u arrives last", p->held_rank);
        break;
    default:
        snprintf(out, MOST_WORDS, "%s", p->after < ORR_PATH_AFTERS ? after[p->after] : "");
    }
}

static orr_code add_path(orr_explanation *g)
{
    if (orr_run_finished(g->r) < orr_run_ranks(g->r))
        return ORR_OK;
    const orr_code code = orr_run_critical_path(g->r, &g->path, g->err);
    if (code)
        return code;
    g->steps = orr_alloc(g->path->step_count + 1, sizeof *g->steps);
    g->why = orr_alloc(g->path->step_count + 1, sizeof *g->why);
    if (!g->steps || !g->why)
        return orr_no_memory(g->err);
    for (size_t i = 0; i < g->path->step_count; i++) {
        const orr_path_step *p = &g->path->steps[i];
        say_why(p, g->why[i]);
        g->steps[i] = (orr_report_step){.from_ns = p->from,
                                        .to_ns = p->to,
                                        .rank = p->rank,
                                        .kind = p->kind,
                                        .node = p->node,
                                        .has_node = true,
                                        .name = p->name,
                                        .what = p->what,
                                        .why = g->why[i]};
    }
    return ORR_OK;
}

/* ---- the network ---- */

static void add_dimensions(orr_explanation *g)
{
    const double seconds = (double)(orr_run_time(g->r) / 1000) / 1e9;
    for (uint32_t k = 0; k < orr_run_dimensions(g->r); k++) {
        const orr_run_dimension d = *orr_run_dimension_at(g->r, k);
        const double could = d.bandwidth * d.links * seconds * orr_run_ranks(g->r);
        snprintf(g->dimension_names[k], MOST_WORDS, "%s %u", d.shape ? d.shape : "dimension of",
                 d.ranks);
        g->dimensions[k] =
            (orr_report_dimension){.name = g->dimension_names[k],
                                   .size = d.ranks,
                                   .bandwidth = d.bandwidth,
                                   .latency_ns = d.latency_ns,
                                   .utilisation = could > 0 ? (double)d.bytes / could : -1};
    }
}

/* ---- provenance ---- */

static void add_option(orr_explanation *g, const char *name, const char *value)
{
    if (value && g->option_count < OPTIONS)
        g->options[g->option_count++] = (orr_report_option){name, value};
}

/* The keys of the system file that had an effect, with the values used. */
static void add_system(orr_explanation *g, const orr_sim *s)
{
    const cfg_system *c = &s->system;
    orr_arena *a = g->facts->arena;
    const bool is_named = !s->joint;
    if (c->roofline && !s->opt.chip) {
        add_option(g, "peak-perf", orr_arena_print(a, "%.4g TFLOP/s", c->peak_perf / 1e12));
        add_option(g, "local-mem-bw", orr_arena_print(a, "%.4g GB/s", c->local_mem_bw / 1e9));
    }
    add_option(g, "collectives", is_named ? "algorithms of the system file" : "as NCCL runs them");
    if (!is_named)
        return;
    add_option(g, "preferred-dataset-splits",
               orr_arena_print(a, "%llu", (unsigned long long)c->splits));
    add_option(g, "active-chunks-per-dimension",
               orr_arena_print(a, "%llu", (unsigned long long)c->active_chunks));
    add_option(g, "collective-optimization", c->is_bw_aware ? "localBWAware" : "baseline");
    add_option(g, "endpoint-delay",
               orr_arena_print(a, "%llu ns", (unsigned long long)c->endpoint_delay));
}

/* Note about several consecutive steps. */
static const char *note_of_steps(const orr__run_facts *f)
{
    const orr_sim_steps *s = &f->steps;
    const char *text = orr_arena_print(
        f->arena,
        "The page shows step %u of %u in a row, which took %.6g s in total: the first %.6g "
        "ms, the last %.6g ms. Throughput is that of the last step, which ranks begin and "
        "end at different times.",
        s->asked, s->asked, (double)s->total / 1e9, (double)s->first / 1e6, (double)s->last / 1e6);
    if (text && s->simulated < s->asked)
        text = orr_arena_print(f->arena, "%s %u of them %s simulated, the rest follows from %s.",
                               text, s->simulated, s->simulated == 1 ? "was" : "were",
                               s->simulated == 1 ? "it" : "these");
    return text ? text : "";
}

static orr_code add_facts(orr_explanation *g)
{
    const orr_sim *s = g->r->is.sim;
    const bool is_whole = orr_run_finished(g->r) == orr_run_ranks(g->r);
    if (!s->watch)
        return ORR_OK;
    const orr_code code = orr__run_facts_take(s, &g->facts, g->err);
    if (code)
        return code;
    const orr__throughput *p = &g->facts->throughput;
    add_option(g, "machine", s->opt.machine);
    add_option(g, "compute", g->facts->compute);
    if (p->peak_flops > 0 && p->peak_of)
        add_option(g, "peak",
                   orr_arena_print(g->facts->arena, "%.4g TFLOP/s (%s)", p->peak_flops / 1e12,
                                   p->peak_of));
    add_system(g, s);
    if (!is_whole && !orr_run_stall(g->r))
        g->notes[g->note_count++] = stopped_note[0];
    if (is_whole && g->facts->steps.asked > 1)
        g->notes[g->note_count++] = note_of_steps(g->facts);
    for (size_t i = 0; i < g->facts->warning_count; i++)
        g->notes[g->note_count++] = g->facts->warnings[i];
    return ORR_OK;
}

/* ---- a simulation ---- */

static orr_code gather(orr_explanation *g, const orr_explain_options *opt)
{
    orr_code code;
    if ((code = add_path(g)) ||
        (code =
             orr_sim_timeline_of(g->r->is.sim, opt->ranks_shown, g->path, &g->timeline, g->err)) ||
        (code = add_facts(g)) || (code = orr_run_fabric_view(g->r, &g->fabric, g->err)) ||
        (code = make_room(&g->links, g->err)))
        return code;
    orr_run_visit_links(g->r, take_link, &g->links);
    list_links(&g->links);
    add_dimensions(g);
    g->what_ifs.r = g->r;
    g->what_ifs.path = g->path;
    g->what_ifs.run = opt->run ? opt->run : orr_run_to_end;
    g->what_ifs.variant = opt->variant;
    g->what_ifs.err = g->err;
    code = orr__what_if(&g->what_ifs, opt->what_if);
    if (g->what_ifs.is_cut)
        g->notes[g->note_count++] =
            "A limit of the run was reached while changes were tried: some are missing.";
    return code;
}

static const orr_report_serving *add_serving(orr_explanation *g)
{
    const orr__serving *p = &g->facts->serving;
    g->serving = (orr_report_serving){.requests = p->requests,
                                      .first_token_ns = p->first_mean_ns,
                                      .first_token_max_ns = (double)p->first_max_ns,
                                      .next_token_ns = p->next_mean_ns,
                                      .tokens_per_s = p->tokens_per_s};
    return p->requests ? &g->serving : NULL;
}

static void fill_run(orr_explanation *g, const orr_explain_options *opt)
{
    const bool is_whole = orr_run_finished(g->r) == orr_run_ranks(g->r);
    const orr_stall *stall = is_whole ? NULL : orr_run_stall(g->r);
    g->run = (orr_report_run){
        .name = opt->name ? opt->name : "run",
        .timeline = g->timeline,
        .ranks_shown = opt->ranks_shown,
        .ranks = orr_run_ranks(g->r),
        .events = orr_run_events(g->r),
        .ranks_simulated = orr_run_ranks_simulated(g->r),
        .devices = g->facts ? g->facts->devices : 0,
        .step_ps = orr_run_steps_of(g->r).asked > 1 ? orr_run_steps_of(g->r).last : 0,
        .tokens = orr__metadata_of(orr_run_traces(g->r), "tokens"),
        .flops = orr__metadata_of(orr_run_traces(g->r), "model_flops"),
        .low_ns = g->facts ? (double)g->facts->interval.low_ns : 0,
        .high_ns = g->facts ? (double)g->facts->interval.high_ns : 0,
        .peak_flops = g->facts ? g->facts->throughput.peak_flops : orr_run_peak_flops(g->r),
        .peak_of = g->facts ? g->facts->throughput.peak_of : NULL,
        .memory_capacity = (orr_bytes)orr__metadata_of(orr_run_traces(g->r), "device_bytes"),
        .steps = g->steps,
        .step_count = g->path ? g->path->step_count : 0,
        .dimensions = g->dimensions,
        .dimension_count = orr_run_dimensions(g->r),
        .links = g->links.list,
        .link_count = g->links.count,
        .links_left_out = g->links.seen - g->links.count,
        .fabric = g->fabric,
        .what_ifs = g->what_ifs.list,
        .what_if_count = g->what_ifs.count,
        .stall = stall ? stall->summary : NULL,
        .stall_lines = stall ? stall->lines : NULL,
        .stall_line_count = stall ? stall->line_count : 0,
        .options = g->options,
        .option_count = g->option_count,
        .notes = g->notes,
        .note_count = g->note_count,
        .serving = g->facts ? add_serving(g) : NULL,
    };
}

/* ---- flows ---- */

static orr_code list_inputs(const orr_run *r,
                            orr_run_input files[INPUTS],
                            orr_report_input out[INPUTS],
                            size_t *count,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    *count = 0;
    while (*count < INPUTS && !(code = orr_run_input_at(r, *count, &files[*count], err))) {
        const orr_run_input *in = &files[*count];
        out[(*count)++] = (orr_report_input){.what = in->role,
                                             .path = in->path,
                                             .hash = *in->hash ? in->hash : NULL,
                                             .has_bytes = *in->hash != 0,
                                             .bytes = in->bytes};
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code gather_flows(orr_explanation *g, size_t *input_count)
{
    orr_code code;
    if ((code = make_room(&g->links, g->err)) ||
        (code = list_inputs(g->r, g->files, g->inputs, input_count, g->err)) ||
        (code = orr_run_fabric_view(g->r, &g->fabric, g->err)))
        return code;
    orr_run_visit_links(g->r, take_link, &g->links);
    list_links(&g->links);
    for (const char *line; g->stall_line_count < STALL_LINES &&
                           (line = orr_run_stall_line(g->r, g->stall_line_count));)
        g->stall_lines[g->stall_line_count++] = line;
    return ORR_OK;
}

static orr_code explain_flows(orr_explanation *g, const orr_error *why)
{
    size_t input_count;
    const orr_code code = gather_flows(g, &input_count);
    if (code)
        return code;
    if (why)
        snprintf(g->stall, sizeof g->stall, "%s", why->message);
    g->run = (orr_report_run){.name = "flows",
                              .is_flows = true,
                              .length_ps = (orr_ps)g->fabric->end_ps,
                              .events = g->fabric->figures.events,
                              .links = g->links.list,
                              .link_count = g->links.count,
                              .links_left_out = g->links.seen - g->links.count,
                              .fabric = g->fabric,
                              .notes = stopped_note,
                              .note_count = why && !g->stall_line_count,
                              .stall = why && g->stall_line_count ? g->stall : NULL,
                              .stall_lines = g->stall_lines,
                              .stall_line_count = g->stall_line_count,
                              .inputs = g->inputs,
                              .input_count = input_count};
    return ORR_OK;
}

/* ---- both ---- */

orr_code orr_run_explain(orr_run *r,
                         const orr_explain_options *opt,
                         orr_explanation **out,
                         orr_error *err)
{
    const orr_explain_options defaults = {0};
    orr_packet_figures figures;
    orr_explanation *g = orr_alloc(1, sizeof *g);
    orr_code code = ORR_OK;
    *out = NULL;
    if (!g)
        return orr_no_memory(err);
    if (!opt)
        opt = &defaults;
    g->r = r;
    g->err = err;
    if (orr_run_traces(r) && !(code = gather(g, opt)))
        fill_run(g, opt);
    else if (!code && orr_run_packets(r, &figures))
        code = explain_flows(g, opt->why);
    else if (!code)
        code = orr_fail(err, ORR_EUSAGE, NULL, "schedules have no report");
    if (code)
        orr_explanation_destroy(g);
    else
        *out = g;
    return code;
}
