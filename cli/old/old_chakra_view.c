/* SPDX-License-Identifier: Apache-2.0 */
/* old_chakra_view.c - chakra_jsonizer and chakra_visualizer (chakra.md 7, 8). */
#include "old.h"

#include <orrery/lab/compat.h>
#include <orrery/trace.h>
#include <orrery/view.h>

#include <string.h>

enum { PATH_ROOM = 4096 };

static const cli_option jsonizer_options[] = {
    {"input_filename", 0, "FILE", "the trace to read", .required = true},
    {"output_filename", 0, "FILE", "where the text goes", .required = true},
    {0},
};

static const cli_option visualizer_options[] = {
    {"input_filename", 0, "FILE", "the trace to read", .required = true},
    {"output_filename", 0, "FILE", "where it goes: a name in .pdf, .dot or .graphml",
     .required = true},
    {0},
};

/* The old programs overlook most damage (chakra.md 1.1).  So do we under its name, but not in
 * silence. */
static orr_code read_as_old_program(const cli_context *c,
                                    const char *path,
                                    orr_trace **out,
                                    orr_error *err)
{
    orr_read_options opt = {
        .size = sizeof opt, .schema = ORR_SCHEMA_CURRENT, .first_is_metadata = true};
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

static orr_code run_jsonizer(cli_context *c, orr_error *err)
{
    const orr_view_json_options opt = {
        .size = sizeof opt, .form = ORR_VIEW_CONCAT, .always_metadata = true};
    orr_trace *t;
    orr_code code = read_as_old_program(c, cli_text(c, "input_filename"), &t, err);
    if (code)
        return code;
    code = orr_view_json(t, cli_text(c, "output_filename"), &opt, err);
    orr_trace_destroy(t);
    return code;
}

/* What the old visualizer calls its file: every ".pdf" (or ".dot") is taken out of the name, one
 * put behind. */
static orr_code name_drawing(const char *name,
                             const char *tail,
                             char out[PATH_ROOM],
                             orr_error *err)
{
    const size_t n = strlen(tail);
    size_t len = 0;
    for (const char *p = name; *p; p++) {
        if (strncmp(p, tail, n) == 0) {
            p += n - 1;
            continue;
        }
        if (len + n + 1 >= PATH_ROOM)
            return cli_misuse(err, "the name '%.40s...' is too long", name);
        out[len++] = *p;
    }
    memcpy(out + len, tail, n + 1);
    return ORR_OK;
}

/* Which of its forms; false: none. */
static bool find_old_form(const char *name, const char **tail_out, orr_graph_form *out)
{
    static const char *const tails[] = {".pdf", ".dot", ".graphml"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t n = strlen(name), m = strlen(tails[i]);
        if (n >= m && strcmp(name + n - m, tails[i]) == 0) {
            *tail_out = tails[i];
            return orr_graph_form_find(orr_str_of(tails[i] + 1), out);
        }
    }
    return false;
}

static orr_code run_visualizer(cli_context *c, orr_error *err)
{
    orr_view_graph_options opt = {.size = sizeof opt, .with_layout = true};
    orr_view_graph_result result;
    const char *to = cli_text(c, "output_filename"), *tail;
    char path[PATH_ROOM];
    orr_trace *t;
    if (!find_old_form(to, &tail, &opt.form)) {
        puts("Unknown output file extension. Must be one of pdf, dot, graphml.");
        return ORR_OK;
    }
    const orr_compat *old;
    orr_code code = orr_compat_find(ORR_RULES_VIEW, "chakra", &old, err);
    if (code)
        return code;
    opt.rules = old->view;
    if (opt.form != ORR_GRAPH_GRAPHML)
        code = name_drawing(to, tail, path, err);
    if (code || (code = read_as_old_program(c, cli_text(c, "input_filename"), &t, err)))
        return code;
    to = opt.form == ORR_GRAPH_GRAPHML ? to : path;
    code = orr_view_graph(t, to, &opt, &result, err);
    orr_trace_destroy(t);
    if (!code)
        cli_note_plain(c, to, result.is_plain, opt.form == ORR_GRAPH_DOT);
    return code;
}

const cli_command cli_old_chakra_jsonizer = {
    .name = "chakra_jsonizer",
    .summary = "print a trace as the JSON text of its messages, one after the other",
    .now = "orrery view json --format concat",
    .options = jsonizer_options,
    .run = run_jsonizer,
};

const cli_command cli_old_et_visualizer = {
    .name = "et_visualizer",
    .summary = "draw a trace as a graph (chakra_visualizer before 2024)",
    .now = "orrery view dot|graphml|pdf --compat",
    .options = visualizer_options,
    .run = run_visualizer,
};

const cli_command cli_old_chakra_visualizer = {
    .name = "chakra_visualizer",
    .summary = "draw a trace as a graph",
    .now = "orrery view dot|graphml|pdf --compat",
    .options = visualizer_options,
    .run = run_visualizer,
};
