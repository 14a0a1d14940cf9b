/* SPDX-License-Identifier: Apache-2.0 */
/* old_chakra.c - Chakra's programs by their old names: converters, generators, linker, timeline,
 * jsonizer and visualizer.
 *
 * Converters: chakra_converter and, before July 2024, et_converter.  The later one has subcommands,
 * the earlier one --input_type; early versions of chakra_converter had --input_type too, so it
 * takes both.  Input types are rows of one table.  Both keep a log file, debug.log in the current
 * directory unless told otherwise, which is emptied first (chakra.md 4). */
#include "old.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/flexflow.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/issue_log.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/link.h>
#include <orrery/lab/pytorch.h>
#include <orrery/lab/units.h>
#include <orrery/trace.h>
#include <orrery/view.h>

#include "convert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE = 5000 };

/* et_converter has the rows from input_type on; chakra_converter, which once had them too, has
 * all. */
static const cli_option converter_options[] = {
    {"log-filename", 0, "FILE", "where the log goes", .fallback = "debug.log"},
    {"input", 0, "FILE", "what to convert"},
    {"output", 0, "FILE", "the trace; for Text what the names of the files begin with"},
    {"num-npus", 0, "N", "Text: number of ranks", CLI_COUNT, 1, 1048576},
    {"num-passes", 0, "N", "Text: how often through the network", CLI_COUNT, 0, 16777216},
    {"simulate", 0, NULL, "PyTorch: play the trace through; the log says what ran when"},
    {"input_type", 0, "Text|FlexFlow|PyTorch", "earlier form: what the input is"},
    {"input_filename", 0, "FILE", "earlier form of --input"},
    {"output_filename", 0, "FILE", "earlier form of --output"},
    {"num_npus", 0, "N", "earlier form of --num-npus", CLI_COUNT, 1, 1048576},
    {"num_passes", 0, "N", "earlier form of --num-passes", CLI_COUNT, 0, 16777216},
    {"num_dims", 0, "N", "Text: dimensions of the network, named by each collective", CLI_COUNT, 1,
     64},
    {"npu_frequency", 0, "MHZ", "FlexFlow: run times in cycles of this clock", CLI_COUNT, 1,
     1048576},
    {"default_simulated_run_time", 0, "N", "PyTorch: accepted, ignored", CLI_COUNT},
    {"log_filename", 0, "FILE", "earlier form of --log-filename"},
    {0},
};

static const cli_argument converter_arguments[] = {
    {"Text|PyTorch", "what the input is", CLI_MAYBE},
    {0},
};

/* A command line of either form. */
typedef struct request {
    cli_context *c;
    const char *type, *input, *output, *log;
    bool has_subcommand; /* the later form */
    FILE *log_file;
} request;

typedef struct old_kind {
    const char *type;
    orr_code (*convert)(const request *r, orr_error *err);
} old_kind;

/* ---- options in two spellings ---- */

/* Does the table of this program have the row? */
static bool has_row(const cli_context *c, const char *name)
{
    for (const cli_option *o = c->command->options; o->name; o++) {
        if (strcmp(o->name, name) == 0)
            return true;
    }
    return false;
}

static const char *text_of(const cli_context *c, const char *name, const char *old_name)
{
    const char *text = has_row(c, name) && cli_given(c, name) ? cli_text(c, name) : NULL;
    return text || !has_row(c, old_name) ? text : cli_text(c, old_name);
}

static orr_code need_text(
    const request *r, const char *name, const char *old_name, const char **out, orr_error *err)
{
    *out = text_of(r->c, name, old_name);
    if (*out)
        return ORR_OK;
    return cli_misuse(err, "missing option: --%s", r->has_subcommand ? name : old_name);
}

/* The parser has checked that it is a number. */
static orr_code need_count(
    const request *r, const char *name, const char *old_name, uint32_t *out, orr_error *err)
{
    const char *text;
    const orr_code code = need_text(r, name, old_name, &text, err);
    if (!code)
        *out = (uint32_t)cli_count(r->c,
                                   has_row(r->c, name) && cli_given(r->c, name) ? name : old_name);
    return code;
}

/* ---- the log ---- */

/* "INFO [11/15/2026 01:02:03 PM] words": the format of Python's logging there. */
static void log_line(FILE *to, const char *level, const char *words)
{
    char when[40] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts))
        strftime(when, sizeof when, "%m/%d/%Y %I:%M:%S %p", &parts);
    fprintf(to, "%s [%s] %s\n", level, when, words);
}

/* ---- kinds ---- */

/* Policies of ASTRA-sim 1.0 that no version of the converter supports are expanded by our rules.
 * True: the table has one of them. */
static bool is_beyond_converter(const request *r)
{
    orr_error err;
    orr_layers *t;
    if (orr_layers_read(r->input, NULL, &t, &err))
        return false; /* reading it by the converter's rules reports the error */
    const bool is_beyond = orr_layers_policy(t) > ORR_POLICY_HYBRID_DLRM_ENHANCED;
    orr_layers_free(t);
    return is_beyond;
}

/* Until September 2024 sizes were unsigned; until April 2024 nodes named the dimensions of the
 * network. */
static orr_code convert_text(const request *r, orr_error *err)
{
    const orr_compat *old;
    orr_layers_expand opt = {0};
    orr_layers *t;
    orr_set *s;
    orr_code code = need_count(r, "num-npus", "num_npus", &opt.ranks, err);
    if (code || (code = need_count(r, "num-passes", "num_passes", &opt.passes, err)))
        return code;
    if (!r->has_subcommand)
        opt.dims = (uint32_t)cli_count(r->c, "num_dims");
    code =
        orr_compat_find(ORR_RULES_LAYERS, r->has_subcommand ? "chakra" : "chakra-0.0.4", &old, err);
    if (code)
        return code;
    opt.rules = is_beyond_converter(r) ? NULL : old->layers;
    if (!opt.rules && opt.dims > 1)
        opt.dims = 0; /* their sizes are unknown: every collective spans all ranks */
    code = orr_layers_read(r->input, &(orr_layers_read_options){.rules = opt.rules}, &t, err);
    if (code)
        return code;
    code = orr_layers_set(t, &opt, &s, err);
    orr_layers_free(t);
    if (code)
        return code;
    code = orr_set_write_files(s, r->output,
                               &(orr_write_options){.size = sizeof(orr_write_options)}, 0, err);
    orr_set_close(s);
    return code;
}

/* Files are numbered by device, with gaps where a device has no file. */
static orr_code write_devices(const request *r,
                              const orr_flexflow *g,
                              const orr_set *s,
                              orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; rank < orr_set_rank_count(s) && !code; rank++) {
        char path[4096];
        const orr_trace *t = orr_set_trace(s, orr_set_class_of(s, rank));
        const int n = snprintf(path, sizeof path, "%s.%" PRIu32 ".et", r->output,
                               orr_flexflow_device(g, rank));
        if (n < 0 || (size_t)n >= sizeof path)
            return cli_misuse(err, "the output name is longer than 4,000 bytes");
        const orr_write_options opt = {.size = sizeof opt, .id_shift = orr_set_id_shift(s, rank)};
        code = orr_trace_write(t, path, &opt, err);
    }
    return code;
}

static orr_code convert_flexflow(const request *r, orr_error *err)
{
    const orr_compat *old;
    orr_flexflow_expand opt = {0};
    orr_flexflow *g;
    orr_set *s;
    orr_code code = need_count(r, "npu_frequency", "npu_frequency", &opt.mhz, err);
    if (code || (code = orr_compat_find(ORR_RULES_FLEXFLOW, "chakra", &old, err)) ||
        (code = orr_flexflow_read(r->input, &g, err)))
        return code;
    opt.rules = old->flexflow;
    code = orr_flexflow_set(g, &opt, &s, err);
    if (!code) {
        code = write_devices(r, g, s, err);
        orr_set_close(s);
    }
    orr_flexflow_free(g);
    return code;
}

/* Each line of the log has a level and the time. */
static void log_debug(void *file, const char *line)
{
    log_line(file, "DEBUG", line);
}

/* The written trace is simulated, so this comes last. */
static orr_code write_pytorch(const request *r, const orr_linked *l, orr_error *err)
{
    orr_trace *t;
    orr_code code = orr_linked_trace(l, NULL, &t, NULL, err);
    if (code)
        return code;
    code = orr_trace_write(t, r->output, NULL, err);
    orr_trace_destroy(t);
    if (!code && has_row(r->c, "simulate") && cli_flag(r->c, "simulate"))
        code = orr_linked_simulate(l, log_debug, r->log_file, err);
    return code;
}

static orr_code convert_pytorch(const request *r, orr_error *err)
{
    orr_linked *l;
    const orr_compat *old;
    orr_code code = orr_compat_find(ORR_RULES_CONVERT, NULL, &old, err);
    if (code ||
        (code = orr_linked_read(r->input, &(orr_linked_options){.rules = old->convert}, &l, err)))
        return code;
    code = write_pytorch(r, l, err);
    orr_linked_free(l);
    return code;
}

static const old_kind old_kinds[] = {
    {"Text", convert_text},
    {"FlexFlow", convert_flexflow},
    {"PyTorch", convert_pytorch},
};

static orr_code convert(const request *r, orr_error *err)
{
    for (size_t i = 0; i < sizeof old_kinds / sizeof *old_kinds; i++) {
        if (strcmp(old_kinds[i].type, r->type) == 0)
            return old_kinds[i].convert(r, err);
    }
    return cli_misuse(err, "no converter for '%s'; there are: Text, PyTorch, FlexFlow", r->type);
}

static orr_code log_failed(const request *r, orr_error *err)
{
    const orr_where at = orr_where_line(r->log, 0, 0);
    return orr_fail(err, ORR_EIO, &at, "cannot write the log: %s", strerror(errno));
}

static void log_request(FILE *log, const request *r)
{
    char words[LINE];
    snprintf(words, sizeof words, "%s: %s %s to %s", r->c->command->name, r->type, r->input,
             r->output);
    log_line(log, "DEBUG", words);
}

/* The later program also prints it on stderr. */
static void log_end(FILE *log, const request *r, orr_code code, const orr_error *err)
{
    char words[LINE];
    if (code)
        orr_error_text(err, words, sizeof words);
    else
        snprintf(words, sizeof words, "Conversion successful. Output file is available at %s.",
                 r->output);
    log_line(log, code ? "ERROR" : "INFO", words);
    if (!code && r->has_subcommand && !r->c->quiet)
        log_line(stderr, "INFO", words);
}

static orr_code convert_logged(request *r, orr_error *err)
{
    FILE *log = r->log_file = fopen(r->log, "w");
    if (!log)
        return log_failed(r, err);
    log_request(log, r);
    const orr_code code = convert(r, err);
    log_end(log, r, code, err);
    const bool is_written = fclose(log) == 0;
    return code || is_written ? code : log_failed(r, err);
}

/* ---- the programs ---- */

static orr_code run_request(request *r, orr_error *err)
{
    orr_code code = need_text(r, "input", "input_filename", &r->input, err);
    if (!code)
        code = need_text(r, "output", "output_filename", &r->output, err);
    r->log = text_of(r->c, "log-filename", "log_filename");
    if (!r->log)
        r->log = "debug.log";
    return code ? code : convert_logged(r, err);
}

static orr_code run_chakra_converter(cli_context *c, orr_error *err)
{
    request r = {.c = c, .has_subcommand = c->arg_count > 0};
    r.type = r.has_subcommand ? c->args[0] : cli_text(c, "input_type");
    if (r.type)
        return run_request(&r, err);
    cli_help_command(stdout, c->command);
    return ORR_OK;
}

static orr_code run_et_converter(cli_context *c, orr_error *err)
{
    request r = {.c = c};
    const orr_code code = need_text(&r, "input_type", "input_type", &r.type, err);
    return code ? code : run_request(&r, err);
}

const cli_command cli_old_chakra_converter = {
    .name = "chakra_converter",
    .summary = "convert text workloads and linked PyTorch traces to Chakra traces",
    .description =
        "Text: writes OUTPUT.0.et, OUTPUT.1.et and so on; PyTorch: writes OUTPUT, from the file of one rank that "
        "chakra_trace_link wrote.  Both write a log.  Without arguments it shows this help.",
    .now = "orrery convert text --compat, orrery convert pytorch --compat",
    .options = converter_options,
    .arguments = converter_arguments,
    .run = run_chakra_converter,
};

const cli_command cli_old_et_converter = {
    .name = "et_converter",
    .summary = "convert text workloads and FlexFlow task graphs to traces of 2024-02",
    .description = "Writes OUTPUT.0.et, OUTPUT.1.et and so on, and a log.",
    .now = "orrery convert text --compat, orrery convert flexflow --compat",
    .options = converter_options + 6,
    .run = run_et_converter,
};

/* ---- Chakra's generator of sample traces, chakra_generator, and its earlier
 * form, et_generator (chakra.md 6). */

/* chakra_generator, the later name, lacks the first row.  The second is ours, since the name
 * belonged to three programs over the years. */
static const cli_option generator_options[] = {
    {"num_dims", 0, "N", "dimensions of the network; selects 0.0.4", CLI_COUNT, 0, 64, "2"},
    {"schema", 0, "current|0.0.4|eg",
     "write what it wrote now, from 2023-11 on or from 2023-01 on"},
    {"num_npus", 0, "N", "number of ranks", CLI_COUNT, 0, 1048576, "64"},
    {"default_runtime", 0, "N", "run time of a compute node, us", CLI_COUNT, .fallback = "5"},
    {"default_tensor_size", 0, "N", "size of a tensor, bytes", CLI_COUNT, .fallback = "1024"},
    {"default_comm_size", 0, "N", "size of a message, bytes", CLI_COUNT, .max = INT64_MAX,
     .fallback = "65536"},
    {0},
};

static orr_gen_options old_options(const cli_context *c)
{
    return (orr_gen_options){.ranks = (uint32_t)cli_count(c, "num_npus"),
                             .runtime_us = cli_count(c, "default_runtime"),
                             .tensor_size = cli_count(c, "default_tensor_size"),
                             .comm_size = cli_count(c, "default_comm_size")};
}

static orr_code run_chakra_generator(cli_context *c, orr_error *err)
{
    const orr_gen_options opt = old_options(c);
    return orr_gen_write_samples(&opt, ".", err);
}

/* --num_dims existed in two generations only: the samples of both are written, each under its own
 * names, unless --schema selects one. */
static orr_code run_et_generator(cli_context *c, orr_error *err)
{
    orr_gen_options opt = old_options(c);
    if (cli_given(c, "schema"))
        opt.style = cli_gen_style(cli_text(c, "schema"));
    else if (cli_given(c, "num_dims")) {
        opt.style = ORR_GEN_0_0_4;
        opt.has_early_names = true;
    }
    if (opt.style != ORR_GEN_CURRENT)
        opt.dims = cli_count(c, "num_dims");
    return orr_gen_write_samples(&opt, ".", err);
}

const cli_command cli_old_chakra_generator = {
    .name = "chakra_generator",
    .summary = "write the sample traces of Chakra into the current directory",
    .now = "orrery gen all --ranks 64",
    .options = generator_options + 2,
    .run = run_chakra_generator,
};

const cli_command cli_old_et_generator = {
    .name = "et_generator",
    .summary = "write the sample traces of early Chakra into the current directory",
    .now = "orrery gen all --ranks 64",
    .options = generator_options,
    .run = run_et_generator,
};

/* ---- Chakra's linker by its old name, chakra_trace_link, with the options of all its versions.
 *
 * The current version has --rank and --chakra-host-trace; that of 2024-05 has --pytorch-et-file and
 * no rank; the first has --et-file, from which it derives the name of the output (chakra.md
 * 3.1). */

enum { PATH_ROOM = 4096 };

/* The options of its three generations, the latest first. */
static const cli_option trace_link_options[] = {
    {"rank", 0, "N", "the rank of the traces; only a label, may be left out as before 2024-09",
     CLI_COUNT},
    {"chakra-host-trace", 0, "FILE", "PyTorch's execution trace"},
    {"chakra-device-trace", 0, "FILE", "Kineto's trace"},
    {"output-file", 0, "FILE", "where the linked trace goes"},
    {"log-level", 0, "LEVEL", "accepted for compatibility, ignored", .fallback = "INFO"},
    {"pytorch-et-file", 0, "FILE", "2024-05: PyTorch's execution trace"},
    {"kineto-file", 0, "FILE", "earlier: Kineto's trace"},
    {"et-file", 0, "FILE", "first form: PyTorch's execution trace"},
    {"annotation", 0, "NAME", "first form: accepted, ignored", .fallback = "DataLoader"},
    {"exact-match", 0, NULL, "first form: accepted, ignored"},
    {0},
};

/* The first of these options that was given; NULL: none. */
static const char *given(const cli_context *c, const char *const *names)
{
    for (; *names; names++) {
        if (cli_given(c, *names))
            return cli_text(c, *names);
    }
    return NULL;
}

static orr_code missing(const char *option, orr_error *err)
{
    return cli_misuse(err, "missing option: --%s", option);
}

/* host.json -> host_plus.json, as the first generation named its output. */
static orr_code plus_name(const char *host, char out[PATH_ROOM], orr_error *err)
{
    const char *dot = strstr(host, ".json");
    const size_t stem = dot ? (size_t)(dot - host) : strlen(host);
    const int n =
        snprintf(out, PATH_ROOM, "%.*s%s%s", (int)stem, host, "_plus", dot ? dot : ".json");
    if (n < 0 || n >= PATH_ROOM)
        return cli_misuse(err, "the name of the host trace is too long");
    return ORR_OK;
}

/* The reference ignores them silently, but converting the result will report them. */
static void warn_cycles(const cli_context *c, const char *host, const orr_link_counts *counts)
{
    const uint64_t later = counts->of[ORR_LINK_LATER_PARENTS];
    char nodes[CLI_NODES_ROOM];
    if (later)
        cli_note(
            c,
            "WARNING:root:%s: a parent that does not come before its child, as in a cycle: node%s %s\n",
            host, later == 1 ? "" : "s", cli_nodes_text(counts->later_nodes, later, nodes));
}

static orr_code run_link(cli_context *c, orr_error *err)
{
    static const char *const hosts[] = {"chakra-host-trace", "pytorch-et-file", "et-file", NULL};
    static const char *const devices[] = {"chakra-device-trace", "kineto-file", NULL};
    const char *host = given(c, hosts), *device = given(c, devices);
    const char *output = cli_text(c, "output-file");
    char plus[PATH_ROOM];
    const orr_compat *old;
    orr_link *l;
    orr_code code = ORR_OK;
    if (!host)
        return missing("chakra-host-trace", err);
    if (!device)
        return missing("chakra-device-trace", err);
    if (!output && !cli_given(c, "et-file"))
        return missing("output-file", err);
    if (!output && (code = plus_name(host, plus, err)))
        return code;
    output = output ? output : plus;
    if ((code = orr_compat_find(ORR_RULES_LINK, NULL, &old, err)) ||
        (code = orr_link_open(host, device, &(orr_link_options){.rules = old->link}, &l, err)))
        return code;
    code = orr_link_write(l, output, err);
    if (!code)
        warn_cycles(c, host, orr_link_counts_of(l));
    orr_link_close(l);
    if (code)
        return code;
    cli_note(c, "INFO:root:Linking process successful. Output file is available at %s.\n", output);
    cli_note(c, "INFO:root:Please run the chakra_converter for further postprocessing.\n");
    return ORR_OK;
}

const cli_command cli_old_chakra_trace_link = {
    .name = "chakra_trace_link",
    .summary = "make PyTorch's host and device traces one",
    .now = "orrery link --compat",
    .options = trace_link_options,
    .run = run_link,
};

/* ---- chakra_timeline_visualizer.  It keeps a log, debug.log in
 * the current directory unless told otherwise, which is emptied first (chakra.md 9). */

static const cli_option timeline_options[] = {
    {"input_filename", 0, "FILE", "the log of issued nodes (CSV)", .required = true},
    {"output_filename", 0, "FILE", "where the timeline goes", .required = true},
    {"num_npus", 0, "N", "number of ranks", CLI_COUNT, 1, 1048576, .required = true},
    {"npu_frequency", 0, "MHZ", "clock of the NPUs, in MHz or as 1.5GHz", .required = true},
    {"log_filename", 0, "FILE", "where the log goes", .fallback = "debug.log"},
    {0},
};

/* A number of MHz, or a frequency with a unit, as in the user guide.  Times are divided by whole
 * MHz. */
static orr_code read_mhz(const char *text, uint32_t *out, orr_error *err)
{
    enum { MOST_MHZ = 1048576, HZ = 1000000 };
    const bool is_plain = *text && strspn(text, "0123456789") == strlen(text);
    char with_unit[64];
    uint64_t hz = 0;
    const int n = snprintf(with_unit, sizeof with_unit, "%s%s", text, is_plain ? "MHz" : "");
    if (n < 0 || (size_t)n >= sizeof with_unit || orr_frequency_parse(with_unit, &hz, err) ||
        hz < HZ || hz / HZ > MOST_MHZ || hz % HZ)
        return cli_misuse(
            err,
            "--npu_frequency '%s' is not a whole number of MHz from 1 to %d, such as 1500 or 1.5GHz",
            text, MOST_MHZ);
    *out = (uint32_t)(hz / HZ);
    return ORR_OK;
}

static orr_code make_old_timeline(const cli_context *c, uint32_t mhz, orr_error *err)
{
    const uint32_t ranks = (uint32_t)cli_count(c, "num_npus");
    const orr_compat *old;
    orr_issue_log *log;
    orr_code code = orr_compat_find(ORR_RULES_ISSUE_LOG, NULL, &old, err);
    if (code)
        return code;
    const orr_issue_log_options opt = {.ranks = ranks, .rules = old->issue_log};
    code = orr_issue_log_read(cli_text(c, "input_filename"), &opt, &log, err);
    if (code)
        return code;
    code = orr_issue_log_write_old(log, ranks, mhz, cli_text(c, "output_filename"), err);
    if (!code && orr_issue_log_open_count(log))
        cli_note(c, "%s: %zu without a callback: left out, as the old program does\n",
                 cli_text(c, "input_filename"), orr_issue_log_open_count(log));
    orr_issue_log_free(log);
    return code;
}

static orr_code timeline_log_failed(const char *path, orr_error *err)
{
    const orr_where at = orr_where_line(path, 0, 0);
    return orr_fail(err, ORR_EIO, &at, "cannot write the log: %s", strerror(errno));
}

static orr_code run_timeline(cli_context *c, orr_error *err)
{
    const char *path = cli_text(c, "log_filename");
    char words[LINE];
    uint32_t mhz = 0;
    if (read_mhz(cli_text(c, "npu_frequency"), &mhz, err))
        return ORR_EUSAGE;
    FILE *log = fopen(path, "w");
    if (!log)
        return timeline_log_failed(path, err);
    snprintf(words, sizeof words, "%s: %s to %s", c->command->name, cli_text(c, "input_filename"),
             cli_text(c, "output_filename"));
    log_line(log, "DEBUG", words);
    const orr_code code = make_old_timeline(c, mhz, err);
    if (code)
        log_line(log, "ERROR", orr_error_text(err, words, sizeof words));
    const bool is_written = fclose(log) == 0;
    return code || is_written ? code : timeline_log_failed(path, err);
}

const cli_command cli_old_chakra_timeline = {
    .name = "chakra_timeline_visualizer",
    .summary = "turn a log of issued nodes into a timeline, in milliseconds",
    .now = "orrery view timeline",
    .options = timeline_options,
    .run = run_timeline,
};

/* ---- chakra_jsonizer and chakra_visualizer (chakra.md 7, 8). ---- */

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

/* The old programs ignore most damage (chakra.md 1.1).  So do these, but with a warning. */
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

/* The file name of the old visualizer: every ".pdf" (or ".dot") is removed from the name and one
 * appended. */
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

/* The output format; false: none of its formats. */
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
