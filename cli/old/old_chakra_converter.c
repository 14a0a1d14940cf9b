/* SPDX-License-Identifier: Apache-2.0 */
/* old_chakra_converter.c - Chakra's converters by their old names: chakra_converter and, before
 * July 2024, et_converter.
 *
 * The later one has subcommands, the earlier one --input_type; chakra_converter once was the
 * earlier one too, so it takes both.  What they convert is one table: a new kind is a row.  Both
 * keep a log file, debug.log in the current directory unless told otherwise, which is emptied first
 * (chakra.md 4). */
#include "old.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/flexflow.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/pytorch.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { LINE = 5000 };

/* et_converter has the rows from input_type on; chakra_converter, which began with that form, all
 * of them. */
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

/* A command line of either spelling. */
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

/* The row is in the table of one program and not in that of the other. */
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

/* The table has checked that it is a number. */
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

/* ---- kinds ---- */

/* The policies of ASTRA-sim 1.0 that no version of the converter took are expanded by our rules.
 * True: the table has one of them. */
static bool is_beyond_converter(const request *r)
{
    orr_error err;
    orr_layers *t;
    if (orr_layers_read(r->input, NULL, &t, &err))
        return false; /* the converter's own rules say what is wrong with it */
    const bool is_beyond = orr_layers_policy(t) > ORR_POLICY_HYBRID_DLRM_ENHANCED;
    orr_layers_free(t);
    return is_beyond;
}

/* Until September 2024 sizes were unsigned, until April with the dimensions of the network. */
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
        opt.dims = 0; /* their sizes are not known here: every collective spans all ranks */
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

/* Files are numbered by device, and devices may have gaps between them. */
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

/* In the log each line has its level and the time. */
static void log_debug(void *file, const char *line)
{
    cli_old_log_line(file, "DEBUG", line);
}

/* What is played through is what was written, so it comes afterwards. */
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

/* ---- the log ---- */

/* "INFO [11/15/2026 01:02:03 PM] words": how Python's logging was set up. */
void cli_old_log_line(FILE *to, const char *level, const char *words)
{
    char when[40] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts))
        strftime(when, sizeof when, "%m/%d/%Y %I:%M:%S %p", &parts);
    fprintf(to, "%s [%s] %s\n", level, when, words);
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
    cli_old_log_line(log, "DEBUG", words);
}

/* The later program says so on stderr as well. */
static void log_end(FILE *log, const request *r, orr_code code, const orr_error *err)
{
    char words[LINE];
    if (code)
        orr_error_text(err, words, sizeof words);
    else
        snprintf(words, sizeof words, "Conversion successful. Output file is available at %s.",
                 r->output);
    cli_old_log_line(log, code ? "ERROR" : "INFO", words);
    if (!code && r->has_subcommand && !r->c->quiet)
        cli_old_log_line(stderr, "INFO", words);
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
