/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_view.c - orrery view: convert a trace to a viewable format; and the old jsonizer's and
 * visualizer's names.
 *
 * The views are one table, VIEWS: a new view is a row there and the function that it names. */
#include <orrery/lab/compat.h>
#include <orrery/lab/units.h>
#include <orrery/set.h>
#include <orrery/view.h>

#include "command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- orrery view timeline: a timeline, for a viewer or as text.  ---- */

/* "3" or "0-7". */
static orr_code parse_ranks(const char *text, orr_timeline_window *w, orr_error *err)
{
    char *end = NULL;
    unsigned long long first = 0, last = 0;
    bool is_good = *text >= '0' && *text <= '9';
    if (is_good) {
        first = last = strtoull(text, &end, 10);
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoull(end + 1, &end, 10);
        is_good = !*end && first <= last && last < ORR_NO_RANK;
    }
    if (!is_good)
        return cli_misuse(err, "--ranks: \"%s\" is not a range such as 0-7 or a rank", text);
    w->has_ranks = true;
    w->first_rank = (uint32_t)first;
    w->last_rank = (uint32_t)last;
    return ORR_OK;
}

static orr_code parse_time(
    const cli_context *c, const char *name, bool *has, orr_ps *out, orr_error *err)
{
    *has = cli_given(c, name);
    if (!*has)
        return ORR_OK;
    const orr_code code = orr_time_parse(cli_text(c, name), out, err);
    return code ? orr_because(err, code, "--%s", name) : ORR_OK;
}

static orr_code parse_window(const cli_context *c, orr_timeline_window *w, orr_error *err)
{
    orr_code code = ORR_OK;
    *w = (orr_timeline_window){0};
    if (cli_given(c, "ranks"))
        code = parse_ranks(cli_text(c, "ranks"), w, err);
    if (!code)
        code = parse_time(c, "from", &w->has_from, &w->from, err);
    if (!code)
        code = parse_time(c, "to", &w->has_to, &w->to, err);
    if (!code && w->has_from && w->has_to && w->from >= w->to)
        return cli_misuse(err, "--from is not before --to");
    return code;
}

/* ---- the drawing ---- */

static uint32_t terminal_width(const char *to)
{
    struct winsize size;
    if (strcmp(to, "-") != 0 || !isatty(STDOUT_FILENO) ||
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* As in the C library: the first of these variables that is set. */
static bool is_utf8_locale(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "utf-8");
    }
    return false;
}

static orr_code draw(const cli_context *c,
                     const orr_timeline *t,
                     const char *to,
                     const orr_timeline_window *w,
                     orr_error *err)
{
    const orr_view_gantt_options opt = {
        .size = sizeof opt,
        .width = cli_given(c, "width") ? (uint32_t)cli_count(c, "width") : terminal_width(to),
        .is_ascii = cli_flag(c, "ascii") || !is_utf8_locale(),
        .window = *w,
    };
    return orr_view_gantt(t, to, &opt, err);
}

orr_code cli_print_gantt(const orr_timeline *t, orr_error *err)
{
    const orr_view_gantt_options opt = {
        .size = sizeof opt, .width = terminal_width("-"), .is_ascii = !is_utf8_locale()};
    return orr_view_gantt(t, "-", &opt, err);
}

/* ---- the command ---- */

static orr_code write_chrome(const orr_timeline *t,
                             const char *to,
                             const orr_timeline_window *w,
                             orr_error *err)
{
    orr_timeline *part;
    if (!w->has_ranks && !w->has_from && !w->has_to)
        return orr_view_chrome(t, to, err);
    orr_code code = orr_timeline_slice(t, w, &part, err);
    if (code)
        return code;
    code = orr_view_chrome(part, to, err);
    orr_timeline_destroy(part);
    return code;
}

/* Any unrecognized file is read as a log. */
static orr_code read_timeline(const cli_context *c, orr_timeline **out, orr_error *err)
{
    const char *path = c->args[1];
    cli_run_kind kind;
    orr_code code = cli_timeline_load(c, path, &kind, out, err);
    if (!code && kind == CLI_RUN_OTHER) {
        code = cli_timeline_refuse_traces(path, err);
        return code ? code : cli_timeline_load_log(c, path, out, err);
    }
    if (!code && kind == CLI_RUN_TIMED && cli_given(c, "frequency")) {
        orr_timeline_destroy(*out);
        code = cli_misuse(err, "--frequency: '%s' has times, not cycles", path);
    }
    return code;
}

static orr_code cli_view_timeline(const cli_context *c, orr_error *err)
{
    const char *to = cli_text(c, "output");
    orr_timeline_window w;
    orr_timeline *t;
    orr_code code = parse_window(c, &w, err);
    if (code || (code = read_timeline(c, &t, err)))
        return code;
    code = cli_flag(c, "text") ? draw(c, t, to, &w, err) : write_chrome(t, to, &w, err);
    orr_timeline_destroy(t);
    return code;
}

/* ---- views of traces ---- */

/* Every view: name, one line of help, the options it uses besides --output, and one of two
 * functions: one takes a trace, the other the name of a file.  Help, errors and the check of
 * options all come from these rows; an option that a view does not list is refused.  FIRST and NEXT
 * let a caller separate the rows. */
#define DRAWING "rank lenient compat around depth critical-path collapse cluster limit"
#define VIEWS(FIRST, NEXT)                                                                    \
    FIRST("json", "every field of every node", "format rank lenient", view_json, NULL)        \
    NEXT("dot", "a graph for Graphviz", DRAWING " layout", view_graph, NULL)                  \
    NEXT("graphml", "a graph for networkx, yEd and Gephi", "rank lenient compat", view_graph, \
         NULL)                                                                                \
    NEXT("svg", "a drawing", DRAWING, view_graph, NULL)                                       \
    NEXT("pdf", "a drawing", DRAWING, view_graph, NULL)                                       \
    NEXT("png", "a drawing", DRAWING, view_graph, NULL)                                       \
    NEXT("timeline", "a log or timeline for Perfetto, or as text",                            \
         "frequency text width ascii ranks from to", NULL, cli_view_timeline)

#define WORD(name, help, uses, of_trace, of_file) name
#define COMMA_WORD(name, help, uses, of_trace, of_file) ", " name
#define VIEW_NAMES VIEWS(WORD, COMMA_WORD)
#define TOLD(name, help, uses, of_trace, of_file) name " (" help ")"
#define COMMA_TOLD(name, help, uses, of_trace, of_file) ", " name " (" help ")"

static const cli_option options[] = {
    {"output", 'o', "FILE", "output file; .gz and .zst are compressed", .fallback = "-",
     .kind = CLI_OUTPUT},
    {"format", 'f', "json|jsonl|concat",
     "one document, one object per line, or the format of chakra_jsonizer; default: by the name of FILE, else json"},
    {"rank", 'r', "R", "the rank to show, when TRACE has several", CLI_COUNT, 0, 4294967294u},
    {"lenient", 0, NULL, "keep unknown node types"},
    {"around", 'a', "ID", "drawings: only nodes near this one", CLI_COUNT},
    {"depth", 'd', "N", "with --around: how many dependencies away", CLI_COUNT, 0, 4294967294u,
     "2"},
    {"critical-path", 0, NULL, "drawings: only the longest chain"},
    {"collapse", 0, NULL, "drawings: merge chains of similar nodes into one box"},
    {"cluster", 0, "none|stream|layer|group|rank", "drawings: what to frame", .fallback = "none"},
    {"limit", 0, "N", "drawings: maximum number of boxes; the rest are merged", CLI_COUNT, 16,
     1000000, "300"},
    {"layout", 0, NULL, "dot: with positions computed by Graphviz"},
    {"compat", 0, NULL, "drawings and graphml: the graph that chakra_visualizer makes"},
    {"frequency", 0, "F", "timeline: clock of the log, such as 1.5GHz, or in MHz",
     .fallback = "1GHz"},
    {"text", 0, NULL, "timeline: draw as text"},
    {"width", 0, "N", "timeline: columns; default: the terminal's, or 80", CLI_COUNT, 40, 4096},
    {"ascii", 0, NULL, "timeline: use ASCII characters only"},
    {"ranks", 0, "A-B", "timeline: only these ranks"},
    {"from", 0, "T", "timeline: omit what ends before this time"},
    {"to", 0, "T", "timeline: omit what begins after this time"},
    {"json", 0, NULL, "with --output: print one JSON object that says what was written"},
    {0},
};

static const cli_argument arguments[] = {
    {"KIND", "the view to make: " VIEW_NAMES, CLI_ONCE},
    {"TRACE",
     "a file, a prefix P of P.0.et, P.1.et, ..., a directory, or a .orr; for timeline a log",
     CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"Make a trace:", "orrery gen two_comp_nodes_dependent --ranks 2 -o two", 0},
    {"One of its files as one JSON document:", "orrery view json two.0.et", 0},
    {"One object per line, for jq and similar tools:", "orrery view json two --rank 1 -o two.jsonl",
     0},
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
    orr_view_json_options opt = {.size = sizeof opt, .id_shift = id_shift};
    if (!format)
        format = has_tail(to, ".jsonl") ? "jsonl" : "json";
    if (!orr_view_form_find(orr_str_of(format), &opt.form))
        return orr_fail(err, ORR_EBUG, NULL, "unknown format '%s'", format);
    return orr_view_json(t, to, &opt, err);
}

static orr_code read_graph_options(const cli_context *c,
                                   uint64_t id_shift,
                                   orr_view_graph_options *out,
                                   orr_error *err)
{
    static const char *const clusters[] = {"none", "stream", "layer", "group", "rank"};
    *out = (orr_view_graph_options){.size = sizeof(orr_view_graph_options),
                                    .with_layout = cli_flag(c, "layout"),
                                    .id_shift = id_shift,
                                    .has_around = cli_given(c, "around"),
                                    .around = cli_count(c, "around"),
                                    .depth = (uint32_t)cli_count(c, "depth"),
                                    .critical_path = cli_flag(c, "critical-path"),
                                    .collapse = cli_flag(c, "collapse"),
                                    .limit = (uint32_t)cli_count(c, "limit")};
    if (cli_flag(c, "compat")) {
        const orr_compat *old;
        const orr_code code = orr_compat_find(ORR_RULES_VIEW, "chakra", &old, err);
        if (code)
            return code;
        out->rules = old->view;
    }
    if (!orr_graph_form_find(orr_str_of(c->args[0]), &out->form))
        return orr_fail(err, ORR_EBUG, NULL, "unknown form '%s'", c->args[0]);
    for (unsigned i = 0; i < sizeof clusters / sizeof *clusters; i++)
        if (strcmp(clusters[i], cli_text(c, "cluster")) == 0)
            out->cluster = (orr_graph_cluster)i;
    return ORR_OK;
}

void cli_note_plain(const cli_context *c, const char *path, bool is_plain, bool is_dot)
{
    if (is_plain && is_dot)
        cli_note(
            c,
            "%s: without positions: Graphviz takes minutes to hours to lay out a graph of this "
            "size ('dot -Tdot' adds them)\n",
            path);
    else if (is_plain)
        cli_note(
            c,
            "%s: drawn in plain rows, one for each level of dependencies: Graphviz takes minutes "
            "to hours to lay out a graph of this size\n",
            path);
}

static void note_boxes(const cli_context *c, const orr_view_graph_result *r)
{
    cli_note_plain(c, cli_text(c, "output"), r->is_plain, strcmp(c->args[0], "dot") == 0);
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

/* Draw all ranks together. */
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

/* ---- the table ---- */

typedef struct view {
    const char *name;
    const char *uses; /* options, separated by spaces */
    orr_code (*of_trace)(const cli_context *c,
                         const orr_trace *t,
                         uint64_t id_shift,
                         orr_error *err);
    orr_code (*of_file)(const cli_context *c, orr_error *err);
} view;

#define ROW(name, help, uses, of_trace, of_file) {name, uses, of_trace, of_file},
static const view views[] = {VIEWS(ROW, ROW)};

const char *cli_view_at(size_t i)
{
    return i < sizeof views / sizeof *views ? views[i].name : NULL;
}

static orr_code find_view(const char *name, const view **out, orr_error *err)
{
    const char *near = NULL;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        if (strcmp(views[i].name, name) == 0) {
            *out = &views[i];
            return ORR_OK;
        }
        near = cli_nearer(name, near, views[i].name);
    }
    if (near)
        return cli_misuse(err, "unknown view '%s'; did you mean '%s'?", name, near);
    return cli_misuse(err, "unknown view '%s'; expected one of: " VIEW_NAMES, name);
}

/* ---- options that would have no effect ---- */

/* Is the word one of a list separated by spaces? */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
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
            return cli_misuse(err, "--cluster rank draws all ranks; --%s cannot be given",
                              of_one[i]);
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (cli_given(c, needs[i].name) && !cli_given(c, needs[i].needs))
            return cli_misuse(err, "--%s requires --%s", needs[i].name, needs[i].needs);
    return ORR_OK;
}

static orr_code check_options(const cli_context *c, const view *v, orr_error *err)
{
    static const char not_in_compat[] = "around depth critical-path collapse cluster limit";
    for (size_t i = 0; options[i].name; i++) {
        const char *name = options[i].name;
        if (!cli_given(c, name) || strcmp(name, "output") == 0 || strcmp(name, "json") == 0)
            continue;
        if (!has_word(v->uses, name))
            return cli_misuse(err, "--%s has no effect on '%s'", name, v->name);
        if (cli_flag(c, "compat") && has_word(not_in_compat, name))
            return cli_misuse(err, "--%s has no effect with --compat", name);
    }
    return check_needs(c, err);
}

/* The only rank, or the one requested. */
static orr_code choose_rank(const cli_context *c, const orr_set *s, uint32_t *out, orr_error *err)
{
    const uint32_t count = orr_set_rank_count(s);
    *out = (uint32_t)cli_count(c, "rank");
    if (!cli_given(c, "rank") && count > 1)
        return cli_misuse(err, "'%s' has %" PRIu32 " ranks; choose one with --rank", c->args[1],
                          count);
    if (*out >= count)
        return cli_misuse(err, "'%s' has no rank %" PRIu32 "; ranks are 0 to %" PRIu32, c->args[1],
                          *out, count - 1);
    return ORR_OK;
}

/* nodes: number of nodes of the trace; 0: not a trace. */
static orr_code make_view(const cli_context *c, uint32_t *nodes, orr_error *err)
{
    const orr_read_options read = {
        .size = sizeof read, .leniency = cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT};
    const orr_set_options opt = {.size = sizeof opt, .read = &read};
    const view *v = NULL;
    const orr_trace *t;
    orr_trace *owned = NULL;
    orr_set *s;
    uint32_t rank;
    orr_code code = find_view(c->args[0], &v, err);
    if (!code)
        code = check_options(c, v, err);
    if (!code && v->of_file)
        return v->of_file(c, err);
    if (code || (code = orr_set_open(c->args[1], &opt, &s, err)))
        return code;
    if (is_of_all_ranks(c)) {
        for (uint32_t i = 0; i < orr_set_rank_count(s); i++)
            *nodes += orr_trace_columns(orr_set_trace(s, orr_set_class_of(s, i)))->count;
        code = view_ranks(c, s, err);
        orr_set_close(s);
        return code;
    }
    code = choose_rank(c, s, &rank, err);
    if (!code)
        code = orr_set_rank_trace(s, rank, &t, &owned, err);
    if (!code) {
        *nodes = orr_trace_columns(t)->count;
        code = v->of_trace(c, t, orr_set_id_shift(s, rank), err);
    }
    orr_trace_destroy(owned);
    orr_set_close(s);
    return code;
}

static orr_code view_run(cli_context *c, orr_error *err)
{
    const char *to = cli_text(c, "output");
    uint32_t nodes = 0;
    if (cli_flag(c, "json") && strcmp(to, "-") == 0)
        return cli_misuse(err, "--json requires --output FILE");
    const orr_code code = make_view(c, &nodes, err);
    if (code || !cli_flag(c, "json"))
        return code;
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery view");
    orr_json_put_fields(w, ORR_T("view", c->args[0]), ORR_T("input", c->args[1]),
                        ORR_T("output", to));
    if (nodes)
        orr_json_put_u64(w, "nodes", nodes);
    cli_json_close(&j);
    return ORR_OK;
}

const cli_command cli_cmd_view = {
    .name = "view",
    .summary = "show a trace as JSON or as a drawing, a run as a timeline",
    .description =
        "The JSON is that of protobuf: every field by name, 64-bit integers as strings.  Every command that takes a "
        "trace also reads this JSON, without loss.\n\n"
        "The drawings show nodes as boxes, coloured by kind, and dependencies as arrows.\n\n"
        "Views: " VIEWS(TOLD, COMMA_TOLD) ".",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-convert(1), orrery-info(1)",
    .run = view_run,
};
