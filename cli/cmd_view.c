/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_view.c - orrery view: a trace in a form to look at; and the old jsonizer's and visualizer's names.
 *
 * What there is to choose from is one table, `kinds`: a new view is a row there. */
#include "command.h"

#include <orrery/set.h>
#include <orrery/view.h>

#include <inttypes.h>

enum { CLI_PATH = 4096 };

typedef struct kind {
    const char *name;
    orr_code (*run)(const cli_context *c, const orr_trace *t, uint64_t id_shift, orr_error *err);
    orr_code (*run_file)(const cli_context *c,
                         orr_error *err); /* where it is not made of a trace */
} kind;

static const cli_option options[] = {
    {"output", 'o', "FILE", "where it goes; .gz and .zst are compressed", .fallback = "-"},
    {"format", 'f', "json|jsonl|concat",
     "one document, one object a line, or what chakra_jsonizer writes; by the name of FILE, or json"},
    {"rank", 'r', "R", "which rank, where TRACE holds several", CLI_COUNT, 0, 4294967294u},
    {"lenient", 0, NULL, "keep node types that have no name"},
    {"around", 'a', "ID", "drawings: only the nodes near this one", CLI_COUNT},
    {"depth", 'd', "N", "how many dependencies away is near", CLI_COUNT, 0, 4294967294u, "2"},
    {"critical-path", 0, NULL, "drawings: only the longest chain"},
    {"collapse", 0, NULL, "drawings: chains of like nodes become one box"},
    {"cluster", 0, "none|stream|layer|group|rank", "drawings: what a frame is drawn around",
     .fallback = "none"},
    {"limit", 0, "N", "drawings: boxes; what is more is drawn together", CLI_COUNT, 16, 1000000,
     "300"},
    {"layout", 0, NULL, "dot: with the positions that Graphviz gives"},
    {"compat", 0, NULL, "dot, graphml, svg, pdf, png: the graph that chakra_visualizer makes"},
    {"frequency", 0, "F", "timeline: cycles of the log, 1.5GHz or a number of MHz",
     .fallback = "1GHz"},
    {"text", 0, NULL, "timeline: draw it in characters"},
    {"width", 0, "N", "timeline: columns of the drawing; the terminal's, or 80", CLI_COUNT, 40,
     4096},
    {"ascii", 0, NULL, "timeline: draw with ASCII characters"},
    {"ranks", 0, "A-B", "timeline: only these ranks"},
    {"from", 0, "T", "timeline: what ends before this time is left out"},
    {"to", 0, "T", "timeline: what begins after this time is left out"},
    {0},
};

static const cli_argument arguments[] = {
    {"KIND", "what to make of it: json, dot, graphml, svg, pdf, png or timeline", CLI_ONCE},
    {"TRACE",
     "a file, a prefix P of P.0.et, P.1.et, ..., a directory, or a .orr; for timeline a log",
     CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"A trace to look at:", "orrery gen two_comp_nodes_dependent --ranks 2 -o two", 0},
    {"One of its files, as one JSON document:", "orrery view json two.0.et", 0},
    {"One object a line, for jq and its like:", "orrery view json two --rank 1 -o two.jsonl", 0},
    {"Exactly what chakra_jsonizer writes:", "orrery view json two.0.et --format concat -o two.txt",
     0},
    {"A drawing of it:", "orrery view svg two.0.et -o two.svg", 0},
    {"Its graph, for networkx, yEd or Gephi:", "orrery view graphml two.0.et -o two.graphml", 0},
    {"When the nodes of a run ran, for ui.perfetto.dev and in the terminal:",
     "printf 'issue,r=0,t=0,n=1,x=a\\ncallback,r=0,t=9,n=1,x=a\\n' > run.csv", 0},
    {"", "orrery view timeline run.csv --frequency 1.5GHz -o run.json.gz", 0},
    {"", "orrery view timeline run.csv --frequency 1.5GHz --text", 0},
    {0},
};

static bool has_tail(const char *path, const char *tail)
{
    const char *dot = strrchr(path, '.');
    const bool is_packed = dot && (strcmp(dot, ".gz") == 0 || strcmp(dot, ".zst") == 0);
    const size_t n = is_packed ? (size_t)(dot - path) : strlen(path), m = strlen(tail);
    return n > m && memcmp(path + n - m, tail, m) == 0;
}

static orr_code view_json(const cli_context *c,
                          const orr_trace *t,
                          uint64_t id_shift,
                          orr_error *err)
{
    const char *to = cli_text(c, "output"), *format = cli_text(c, "format");
    orr_view_json_options opt = {.id_shift = id_shift};
    if (!format)
        format = has_tail(to, ".jsonl") ? "jsonl" : "json";
    if (!orr_view_form_find(orr_str_of(format), &opt.form))
        return orr_fail(err, ORR_EBUG, NULL, "the library does not know the format '%s'", format);
    return orr_view_json(t, to, &opt, err);
}

static orr_code read_graph_options(const cli_context *c,
                                   uint64_t id_shift,
                                   orr_view_graph_options *out,
                                   orr_error *err)
{
    static const char *const clusters[] = {"none", "stream", "layer", "group", "rank"};
    *out = (orr_view_graph_options){.as_old_program = cli_flag(c, "compat"),
                                    .with_layout = cli_flag(c, "layout"),
                                    .id_shift = id_shift,
                                    .has_around = cli_given(c, "around"),
                                    .around = cli_count(c, "around"),
                                    .depth = (uint32_t)cli_count(c, "depth"),
                                    .critical_path = cli_flag(c, "critical-path"),
                                    .collapse = cli_flag(c, "collapse"),
                                    .limit = (uint32_t)cli_count(c, "limit")};
    if (!orr_graph_form_find(orr_str_of(c->args[0]), &out->form))
        return orr_fail(err, ORR_EBUG, NULL, "the library does not know the form '%s'", c->args[0]);
    for (unsigned i = 0; i < sizeof clusters / sizeof *clusters; i++)
        if (strcmp(clusters[i], cli_text(c, "cluster")) == 0)
            out->cluster = (orr_graph_cluster)i;
    return ORR_OK;
}

static void note_boxes(const cli_context *c, const orr_view_graph_result *r)
{
    if (r->boxes < r->nodes)
        cli_note(c, "%" PRIu32 " nodes drawn as %" PRIu32 " box%s\n", r->nodes, r->boxes,
                 r->boxes == 1 ? "" : "es");
}

static orr_code view_graph(const cli_context *c,
                           const orr_trace *t,
                           uint64_t id_shift,
                           orr_error *err)
{
    orr_view_graph_options opt;
    orr_view_graph_result result;
    orr_code code = read_graph_options(c, id_shift, &opt, err);
    if (!code)
        code = orr_view_graph(t, cli_text(c, "output"), &opt, &result, err);
    if (!code)
        note_boxes(c, &result);
    return code;
}

/* All ranks in one drawing. */
static orr_code view_ranks(const cli_context *c, const orr_set *set, orr_error *err)
{
    orr_view_graph_options opt;
    orr_view_graph_result result;
    orr_code code = read_graph_options(c, 0, &opt, err);
    if (!code)
        code = orr_view_graph_ranks(set, cli_text(c, "output"), &opt, &result, err);
    if (!code)
        note_boxes(c, &result);
    return code;
}

static const kind kinds[] = {
    {"json", view_json, NULL},
    {"dot", view_graph, NULL},
    {"graphml", view_graph, NULL},
    {"svg", view_graph, NULL},
    {"pdf", view_graph, NULL},
    {"png", view_graph, NULL},
    {"timeline", NULL, cli_view_timeline},
};

static orr_code find_kind(const char *name, const kind **out, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = &kinds[i];
            return ORR_OK;
        }
        near = cli_nearer(name, near, kinds[i].name);
    }
    if (near)
        return orr_fail(err, ORR_EUSAGE, NULL, "no view '%s'; did you mean '%s'?", name, near);
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "no view '%s'; there are: json, dot, graphml, svg, pdf, png, timeline", name);
}

/* ---- options that would have no effect ---- */

enum { FOR_JSON = 1, FOR_GRAPH = 2, FOR_GRAPHML = 4, FOR_TIMELINE = 8, FOR_DOT = 16 };

/* For which views each option means something; those that are not here are for all of traces. */
static const struct {
    const char *name;
    unsigned for_what;
    bool is_ours; /* not with --compat */
} uses[] = {
    {"format", FOR_JSON, false},
    {"rank", FOR_JSON | FOR_GRAPH | FOR_GRAPHML, false},
    {"lenient", FOR_JSON | FOR_GRAPH | FOR_GRAPHML, false},
    {"around", FOR_GRAPH, true},
    {"depth", FOR_GRAPH, true},
    {"critical-path", FOR_GRAPH, true},
    {"collapse", FOR_GRAPH, true},
    {"cluster", FOR_GRAPH, true},
    {"limit", FOR_GRAPH, true},
    {"layout", FOR_DOT, false},
    {"compat", FOR_GRAPH | FOR_GRAPHML, false},
    {"frequency", FOR_TIMELINE, false},
    {"text", FOR_TIMELINE, false},
    {"width", FOR_TIMELINE, false},
    {"ascii", FOR_TIMELINE, false},
    {"ranks", FOR_TIMELINE, false},
    {"from", FOR_TIMELINE, false},
    {"to", FOR_TIMELINE, false},
};

static unsigned use_of(const char *view)
{
    if (strcmp(view, "json") == 0)
        return FOR_JSON;
    if (strcmp(view, "graphml") == 0)
        return FOR_GRAPHML;
    if (strcmp(view, "timeline") == 0)
        return FOR_TIMELINE;
    return FOR_GRAPH | (strcmp(view, "dot") == 0 ? FOR_DOT : 0);
}

static bool is_of_all_ranks(const cli_context *c)
{
    return strcmp(cli_text(c, "cluster"), "rank") == 0;
}

static orr_code check_needs(const cli_context *c, orr_error *err)
{
    static const struct {
        const char *name, *needs;
    } needs[] = {{"depth", "around"}, {"width", "text"}, {"ascii", "text"}};
    static const char *const of_one[] = {"rank", "around"};
    for (size_t i = 0; i < 2 && is_of_all_ranks(c); i++)
        if (cli_given(c, of_one[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "--cluster rank draws all ranks: no --%s",
                            of_one[i]);
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (cli_given(c, needs[i].name) && !cli_given(c, needs[i].needs))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s goes with --%s", needs[i].name,
                            needs[i].needs);
    return ORR_OK;
}

static orr_code check_options(const cli_context *c, orr_error *err)
{
    const unsigned use = use_of(c->args[0]);
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (!cli_given(c, uses[i].name))
            continue;
        if (!(uses[i].for_what & use))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s has no effect on '%s'", uses[i].name,
                            c->args[0]);
        if (uses[i].is_ours && cli_flag(c, "compat"))
            return orr_fail(err, ORR_EUSAGE, NULL, "--%s has no effect with --compat",
                            uses[i].name);
    }
    return check_needs(c, err);
}

/* The one rank, or the one that was asked for. */
static orr_code choose_rank(const cli_context *c, const orr_set *s, uint32_t *out, orr_error *err)
{
    const uint32_t count = orr_set_rank_count(s);
    *out = (uint32_t)cli_count(c, "rank");
    if (!cli_given(c, "rank") && count > 1)
        return orr_fail(err, ORR_EUSAGE, NULL, "'%s' holds %" PRIu32 " ranks; pick one with --rank",
                        c->args[1], count);
    if (*out >= count)
        return orr_fail(err, ORR_EUSAGE, NULL, "'%s' has no rank %" PRIu32 ", only 0 to %" PRIu32,
                        c->args[1], *out, count - 1);
    return ORR_OK;
}

static orr_code view_run(cli_context *c, orr_error *err)
{
    const orr_set_options opt = {.read.leniency =
                                     cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT};
    const kind *k = NULL;
    const orr_trace *t;
    orr_trace *owned = NULL;
    orr_set *s;
    uint32_t rank;
    orr_code code = find_kind(c->args[0], &k, err);
    if (!code)
        code = check_options(c, err);
    if (!code && k->run_file)
        return k->run_file(c, err);
    if (code || (code = orr_set_open(c->args[1], &opt, &s, err)))
        return code;
    if (is_of_all_ranks(c)) {
        code = view_ranks(c, s, err);
        orr_set_close(s);
        return code;
    }
    code = choose_rank(c, s, &rank, err);
    if (!code)
        code = orr_set_rank_trace(s, rank, &t, &owned, err);
    if (!code)
        code = k->run(c, t, orr_set_id_shift(s, rank), err);
    orr_trace_destroy(owned);
    orr_set_close(s);
    return code;
}

const cli_command cli_cmd_view = {
    .name = "view",
    .summary = "show a trace as JSON or as a drawing, a run as a timeline",
    .description =
        "The JSON is that of protobuf: every field under its name, 64-bit integers as text.  What is "
        "written can be read again by every command that takes a trace, and nothing is lost on the way.\n\n"
        "The drawings show nodes as boxes, coloured by kind, and dependencies as arrows.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-convert(1), orrery-info(1)",
    .run = view_run,
};
