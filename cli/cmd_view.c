/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_view.c - orrery view: a trace in a form to look at; and the old jsonizer's name.
 *
 * What there is to choose from is one table, `kinds`: a new view is a row there. */
#include "command.h"

#include <orrery/set.h>
#include <orrery/view.h>

#include <inttypes.h>

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
    {"KIND", "what to make of it: json, timeline", CLI_ONCE},
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

static const kind kinds[] = {
    {"json", view_json, NULL},
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
    return orr_fail(err, ORR_EUSAGE, NULL, "no view '%s'; there is: json, timeline", name);
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
    if (!code && k->run_file)
        return k->run_file(c, err);
    if (code || (code = orr_set_open(c->args[1], &opt, &s, err)))
        return code;
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
    .summary = "show a trace as JSON, a run as a timeline",
    .description =
        "The JSON is that of protobuf: every field under its name, 64-bit integers as text.  What is "
        "written can be read again by every command that takes a trace, and nothing is lost on the way.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-convert(1), orrery-info(1)",
    .run = view_run,
};

/* ---- chakra_jsonizer ---- */

/* The old program overlooks most damage (chakra.md 1.1).  So do we under its name, but not in silence. */
static orr_code read_as_jsonizer(const cli_context *c,
                                 const char *path,
                                 orr_trace **out,
                                 orr_error *err)
{
    orr_read_options opt = {.schema = ORR_SCHEMA_CURRENT, .first_is_metadata = true};
    orr_error damage;
    char text[600];
    const orr_code code = orr_trace_read(path, &opt, out, &damage);
    if (code != ORR_EINPUT) {
        *err = damage;
        return code;
    }
    opt.leniency = ORR_AS_JSONIZER;
    const orr_code again = orr_trace_read(path, &opt, out, err);
    if (again)
        return again;
    orr_because(&damage, code, "overlooked, as the old program does");
    cli_note(c, "%s\n", orr_error_text(&damage, text, sizeof text));
    return ORR_OK;
}

orr_code cli_run_chakra_jsonizer(cli_context *c, orr_error *err)
{
    const orr_view_json_options opt = {.form = ORR_VIEW_CONCAT, .always_metadata = true};
    orr_trace *t;
    orr_code code = read_as_jsonizer(c, cli_text(c, "input_filename"), &t, err);
    if (code)
        return code;
    code = orr_view_json(t, cli_text(c, "output_filename"), &opt, err);
    orr_trace_destroy(t);
    return code;
}
