/* SPDX-License-Identifier: Apache-2.0 */
/* report_sim.c - a simulation as a run of a report: timeline, critical path, network, and what would be if something
 * were faster.
 *
 * The library's report knows timelines and plain figures and nothing of simulations; here they meet. */
#include "report_sim.h"

#include <orrery/critical_path.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_CHANGES = 2 * ORR_NET_DIMS + 4, WORDS = 160 };
#define AUTO_SECONDS 10.0

/* Everything that a run points to while it is being added. */
typedef struct gathering {
    orr_sim *s;
    orr_sim_options opt;
    orr_error *err;
    orr_timeline *timeline;
    orr_critical_path *path;
    orr_report_step *steps;
    char (*why)[WORDS];
    orr_report_dimension dimensions[ORR_NET_DIMS];
    char dimension_names[ORR_NET_DIMS][WORDS];
    cli_links links;
    orr_fabric_view *fabric;
    orr_report_what_if what_ifs[MOST_CHANGES];
    char changes[MOST_CHANGES][WORDS];
    size_t change_count;
    const char *notes[2];
    size_t note_count;
} gathering;

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

cli_what_if cli_what_if_of(const char *word)
{
    static const char *const words[] = {"auto", "off", "estimate", "simulate"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0)
            return (cli_what_if)i;
    return CLI_WHAT_IF_AUTO;
}

static orr_code no_memory(orr_error *err)
{
    return orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
}

/* ---- the critical path ---- */

static void say_why(const orr_path_step *p, char out[WORDS])
{
    static const char *const after[ORR_PATH_AFTERS] = {
        [ORR_PATH_START] = "first thing to do",
        [ORR_PATH_DEPENDENCY] = "needs the operation before it",
        [ORR_PATH_SLOT] = "waits until the operation before it lets go of the stream",
        [ORR_PATH_TURN] = "starts when the operation before it ends",
        [ORR_PATH_SERVER] = "waits for the memory server",
    };
    switch (p->held) {
    case ORR_PATH_MESSAGE:
        snprintf(out, WORDS, "the message comes from rank %u", p->held_rank);
        break;
    case ORR_PATH_RECEIVER:
        snprintf(out, WORDS, "rank %u is not ready to receive before", p->held_rank);
        break;
    case ORR_PATH_LAST_RANK:
        snprintf(out, WORDS, "rank %u comes to it last", p->held_rank);
        break;
    default:
        snprintf(out, WORDS, "%s", p->after < ORR_PATH_AFTERS ? after[p->after] : "");
    }
}

static orr_code add_path(gathering *g)
{
    if (orr_sim_finished(g->s) < orr_sim_ranks(g->s))
        return ORR_OK;
    const orr_code code = orr_sim_critical_path(g->s, &g->path, g->err);
    if (code)
        return code;
    g->steps = calloc(g->path->step_count + 1, sizeof *g->steps);
    g->why = calloc(g->path->step_count + 1, sizeof *g->why);
    if (!g->steps || !g->why)
        return no_memory(g->err);
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

static void add_dimensions(gathering *g)
{
    const double seconds = (double)orr_sim_time(g->s) / 1e9;
    for (uint32_t k = 0; k < orr_sim_dimension_count(g->s); k++) {
        const orr_sim_dimension d = orr_sim_dimension_at(g->s, k);
        const double could = d.bandwidth * seconds * orr_sim_ranks(g->s);
        snprintf(g->dimension_names[k], WORDS, "%s %u", d.shape ? d.shape : "dimension of",
                 d.ranks);
        g->dimensions[k] =
            (orr_report_dimension){.name = g->dimension_names[k],
                                   .size = d.ranks,
                                   .bandwidth = d.bandwidth,
                                   .latency_ns = d.latency_ns,
                                   .utilisation = could > 0 ? (double)d.bytes / could : -1};
    }
}

/* ---- what if ---- */

static orr_report_what_if *new_change(gathering *g, const char *words, uint32_t dimension)
{
    if (g->change_count == MOST_CHANGES)
        return NULL;
    char *text = g->changes[g->change_count];
    orr_report_what_if *w = &g->what_ifs[g->change_count++];
    const orr_sim_dimension d = orr_sim_dimension_at(g->s, dimension);
    if (d.shape)
        snprintf(text, WORDS, "dimension %u (%s %u): %s", dimension, d.shape, d.ranks, words);
    else
        snprintf(text, WORDS, "%s", words);
    w->change = text;
    return w;
}

/* The chain of operations stays as it is, but goes faster: what can be gained at most. */
static void estimate(gathering *g)
{
    uint64_t comm = 0, compute = 0, memory = 0;
    const uint64_t now = orr_sim_time(g->s);
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

static orr_code try_change(gathering *g, orr_sim_change change, const char *words)
{
    orr_sim_options opt = g->opt;
    orr_sim *s;
    orr_report_what_if *w =
        new_change(g, words, change.has_dimension ? change.dimension : UINT32_MAX);
    if (!w)
        return ORR_OK;
    opt.set = orr_sim_traces(g->s);
    opt.change = change;
    opt.record = ORR_SIM_RECORD_FIGURES;
    opt.trace_log = opt.shows_progress = opt.wants_history = false;
    orr_code code = orr_sim_create(&opt, &s, g->err);
    if (code)
        return code;
    code = cli_run_until_stopped(s, g->err);
    w->time_ns = orr_sim_time(s);
    w->is_simulated = true;
    orr_sim_destroy(s);
    return code;
}

static orr_code try_network(gathering *g)
{
    const uint32_t dims = orr_sim_dimension_count(g->s);
    const bool has_dims = orr_sim_dimension_at(g->s, 0).shape != NULL;
    orr_code code = ORR_OK;
    if (!has_dims) {
        code = try_change(g, (orr_sim_change){.bandwidth = 2}, "network bandwidth x 2");
        return code ? code : try_change(g, (orr_sim_change){.latency = 0.5}, "network latency / 2");
    }
    for (uint32_t k = 0; k < dims && !code; k++) {
        if (!(orr_sim_dimension_at(g->s, k).bandwidth > 0))
            continue; /* a network of files of its own: nothing here to be faster */
        const orr_sim_change wider = {.has_dimension = true, .dimension = k, .bandwidth = 2};
        const orr_sim_change closer = {.has_dimension = true, .dimension = k, .latency = 0.5};
        code = try_change(g, wider, "bandwidth x 2");
        if (!code)
            code = try_change(g, closer, "latency / 2");
    }
    return code;
}

static orr_code try_changes(gathering *g)
{
    orr_code code = try_network(g);
    if (!code)
        code = try_change(g, (orr_sim_change){.compute = 2}, "compute x 2");
    return code ? code : try_change(g, (orr_sim_change){.memory = 2}, "memory bandwidth x 2");
}

/* As many runs as there are changes, and a little more. */
static bool is_quick(const gathering *g, double seconds)
{
    return seconds * (2.0 * orr_sim_dimension_count(g->s) + 2) < AUTO_SECONDS;
}

static orr_code add_what_ifs(gathering *g, const cli_report_wishes *wishes)
{
    const bool is_whole = orr_sim_finished(g->s) == orr_sim_ranks(g->s);
    cli_what_if how = wishes->what_if;
    if (how == CLI_WHAT_IF_AUTO)
        how = is_quick(g, wishes->seconds) ? CLI_WHAT_IF_SIMULATE : CLI_WHAT_IF_ESTIMATE;
    if (!is_whole || how == CLI_WHAT_IF_OFF)
        return ORR_OK;
    if (how == CLI_WHAT_IF_SIMULATE)
        return try_changes(g);
    estimate(g);
    return ORR_OK;
}

/* ---- what the traces say about themselves ---- */

static double metadata_of(const gathering *g, const char *name)
{
    const orr_set *set = orr_sim_traces(g->s);
    const orr_trace *t = orr_set_class_count(set) ? orr_set_trace(set, 0) : NULL;
    if (!t || !orr_trace_has_metadata(t))
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

/* ---- the whole ---- */

static orr_code gather(gathering *g, const cli_report_wishes *wishes)
{
    orr_code code;
    if ((code = orr_sim_timeline(g->s, &g->timeline, g->err)) || (code = add_path(g)) ||
        (code = orr_sim_packet_view(g->s, &g->fabric, g->err)) ||
        (code = cli_links_begin(&g->links, g->err)))
        return code;
    orr_sim_visit_links(g->s, cli_links_take, &g->links);
    cli_links_end(&g->links);
    add_dimensions(g);
    if (orr_sim_finished(g->s) < orr_sim_ranks(g->s) && !orr_sim_stall(g->s))
        g->notes[g->note_count++] =
            "The run was interrupted; what is shown is what had happened by then.";
    return add_what_ifs(g, wishes);
}

static orr_code add(orr_report *r, gathering *g, const cli_report_wishes *wishes)
{
    const orr_stall *stall =
        orr_sim_finished(g->s) < orr_sim_ranks(g->s) ? orr_sim_stall(g->s) : NULL;
    const orr_report_run run = {
        .name = wishes->name,
        .timeline = g->timeline,
        .ranks_shown = wishes->ranks,
        .ranks = orr_sim_ranks(g->s),
        .events = orr_sim_events(g->s),
        .tokens = metadata_of(g, "tokens"),
        .flops = metadata_of(g, "model_flops"),
        .peak_flops = orr_sim_peak_flops(g->s),
        .memory_capacity = (orr_bytes)metadata_of(g, "device_bytes"),
        .steps = g->steps,
        .step_count = g->path ? g->path->step_count : 0,
        .dimensions = g->dimensions,
        .dimension_count = orr_sim_dimension_count(g->s),
        .links = g->links.list,
        .link_count = g->links.count,
        .links_left_out = g->links.seen - g->links.count,
        .fabric = g->fabric,
        .what_ifs = g->what_ifs,
        .what_if_count = g->change_count,
        .stall = stall ? stall->summary : NULL,
        .stall_lines = stall ? stall->lines : NULL,
        .stall_line_count = stall ? stall->line_count : 0,
        .notes = g->notes,
        .note_count = g->note_count,
    };
    return orr_report_add(r, &run, g->err);
}

orr_code cli_report_add_sim(orr_report *r,
                            orr_sim *s,
                            const orr_sim_options *opt,
                            const cli_report_wishes *wishes,
                            orr_error *err)
{
    gathering *g = calloc(1, sizeof *g);
    if (!g)
        return no_memory(err);
    g->s = s;
    g->opt = *opt;
    g->err = err;
    orr_code code = gather(g, wishes);
    if (!code)
        code = add(r, g, wishes);
    orr_timeline_destroy(g->timeline);
    orr_critical_path_destroy(g->path);
    free(g->steps);
    free(g->why);
    cli_links_fini(&g->links);
    orr_packet_view_destroy(g->fabric);
    free(g);
    return code;
}

/* ---- the command line ---- */

static bool is_plain(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_-./:,=+@%") == strlen(text);
}

static void print_word(FILE *to, const char *word)
{
    if (is_plain(word)) {
        fprintf(to, " %s", word);
        return;
    }
    fputs(" '", to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[2]){*word, '\0'}, to);
    fputc('\'', to);
}

/* A value that may be left out stands behind a sign of equality, else it would be an argument. */
static void print_option(FILE *to, const cli_option *o, const char *value)
{
    fprintf(to, " --%s", o->name);
    if (!o->arg || (o->implied && strcmp(value, o->implied) == 0))
        return;
    if (o->implied && is_plain(value))
        fprintf(to, "=%s", value);
    else
        print_word(to, value);
}

char *cli_command_line(const cli_context *c)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fprintf(to, "%s%s", cli_program_name(c->command), c->command->name);
    for (int i = 0; i < c->arg_count; i++)
        print_word(to, c->args[i]);
    for (unsigned i = 0; c->command->options && c->command->options[i].name; i++) {
        if (!c->value[i])
            continue;
        print_option(to, &c->command->options[i], c->value[i]);
    }
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- one page ---- */

orr_code cli_report_one(const cli_context *c,
                        orr_sim *s,
                        const orr_sim_options *opt,
                        const cli_report_wishes *wishes,
                        const char *path,
                        orr_error *err)
{
    char *line = cli_command_line(c);
    const orr_report_options about = {
        .title = wishes->name, .program = "orrery " ORRERY_VERSION, .made_from = line};
    orr_report *r = NULL;
    orr_code code = line ? orr_report_create(&about, &r, err) : no_memory(err);
    if (!code)
        code = cli_report_add_sim(r, s, opt, wishes, err);
    if (!code)
        code = orr_report_write(r, path, err);
    orr_report_destroy(r);
    free(line);
    return code;
}
