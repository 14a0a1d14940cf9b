/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_capture.c - orrery capture: from a PyTorch script to the traces of all ranks, without a
 * cluster.
 *
 * Python runs the script and records one step (capture/orrery_capture.py); orrery convert fx does
 * the rest.  The options are those of both, and the type of OUT decides whether to stop after the
 * capture. */
#include "base/text/text.h"
#include "command.h"
#include "convert.h"

#include <orrery/lab/capture.h>
#include <orrery/lab/machine.h>

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const cli_option options[] = {
    {"output", 'o', "OUT",
     "output file; .orr: traces of all ranks; .json, .json.gz: the captured step",
     .fallback = "capture.json.gz", .kind = CLI_OUTPUT},
    {"world-size", 'n', "N", "ranks of the job", CLI_COUNT, 1, 1 << 24, "1"},
    {"local-size", 0, "N", "ranks per node, for LOCAL_RANK; default: all", CLI_COUNT, 1, 1 << 24},
    {"ranks", 'r', "WHICH",
     "ranks to run: auto (those that can differ), all, or a list such as 0,8,16",
     .fallback = "auto"},
    {"steps", 0, "N", "stop the script after this many optimizer steps; 0: never", CLI_COUNT, 0,
     1 << 24, "2"},
    {"step", 0, "N", "step to keep, from 0; default: the last", CLI_COUNT, 0, 1 << 24},
    {"real", 0, NULL, "use real tensors with data (slow, needs the memory)"},
    {"strict", 0, NULL, "refuse reads of tensor values, such as item()"},
    {"python", 0, "PROGRAM", "Python to use; default: python3 or python, whichever has PyTorch"},
    {"machine", 0, "MACHINE",
     "for this cluster ('orrery machine list'): ranks per node; .orr: compute times of its chip"},
    {"hardware", 0, "NAME", ".orr: compute times of this chip ('orrery chip list')"},
    {"compress", 'z', NULL, "compress a .orr file"},
    {"print-module", 0, NULL, "print the Python module, for use on another machine"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"SCRIPT", "a training script, or a module such as package.train", CLI_MAYBE},
    {"ARG", "the script's own options and arguments", CLI_ANY},
    {0},
};

static const cli_example examples[] = {
    {"The module for a machine that has PyTorch:",
     "orrery capture --print-module > orrery_capture.py", 0},
    {"", "python3 -m py_compile orrery_capture.py", 0},
    {"What was captured there, as traces of all ranks:",
     "orrery convert fx step.json.gz -o step.orr", 0},
    {0},
};

/* ---- the type of OUT ---- */

/* Is OUT the captured step itself, as Python writes it? */
static bool is_step(const char *out)
{
    return orr_has_suffix(out, ".json") || orr_has_suffix(out, ".json.gz");
}

/* A context as if orrery convert fx had been called; argv must live as long. */
enum { CONVERT_WORDS = 12 };

static orr_code prepare_convert(const cli_context *c,
                                const char *chip,
                                cli_context *sub,
                                char *argv[CONVERT_WORDS],
                                orr_error *err)
{
    static char kind[] = "fx", end[] = "--", output[] = "-o", hardware[] = "--hardware";
    static char compress[] = "--compress", json[] = "--json";
    int n = 0;
    argv[n++] = output;
    argv[n++] = (char *)(uintptr_t)cli_text(c, "output");
    if (chip) {
        argv[n++] = hardware;
        argv[n++] = (char *)(uintptr_t)chip;
    }
    if (cli_flag(c, "compress"))
        argv[n++] = compress;
    if (cli_flag(c, "json"))
        argv[n++] = json;
    argv[n++] = end;
    argv[n++] = kind;
    argv[n++] = c->args[0];
    *sub = (cli_context){.command = &cli_cmd_convert, .quiet = c->quiet, .color = c->color};
    const orr_code code = cli_parse(sub, n, argv, err);
    if (code)
        return code;
    const cli_target to = cli_target_of(cli_text(sub, "output"));
    return cli_target_check(sub, &to, err);
}

static orr_code read_step(const cli_context *c, void *data, orr_fx **out, orr_error *err)
{
    orr_capture **capture = data;
    orr_code code = orr_fx_read(orr_capture_file(*capture), 0, out, err);
    if (code) /* the file is temporary: name the script instead */
        snprintf(err->where.path, sizeof err->where.path, "captured from %s", c->args[1]);
    orr_capture_close(*capture); /* its files are no longer needed */
    *capture = NULL;
    return code;
}

/* ---- Python ---- */

enum { OWN_WORDS = 24 };

typedef struct words {
    const char *at[OWN_WORDS];
    int count;
} words;

/* Read --machine; size 0: it was not given. */
static orr_code read_machine(const cli_context *c, orr_machine *out, orr_error *err)
{
    *out = (orr_machine){0};
    if (!cli_given(c, "machine"))
        return ORR_OK;
    const orr_code code =
        orr_machine_for(cli_text(c, "machine"), (uint32_t)cli_count(c, "world-size"), out, err);
    return code ? orr_because(err, code, "--machine %s", cli_text(c, "machine")) : ORR_OK;
}

static void pass_on(const cli_context *c, const char *name, const char *as, words *to)
{
    if (!cli_text(c, name))
        return;
    to->at[to->count++] = as;
    to->at[to->count++] = cli_text(c, name);
}

static words own_words(const cli_context *c, const char *output, const char *local)
{
    words w = {{"--output", output}, 2};
    if (*local && !cli_given(c, "local-size")) {
        w.at[w.count++] = "--local-size";
        w.at[w.count++] = local;
    }
    pass_on(c, "world-size", "--world-size", &w);
    pass_on(c, "local-size", "--local-size", &w);
    pass_on(c, "ranks", "--ranks", &w);
    pass_on(c, "steps", "--steps", &w);
    pass_on(c, "step", "--step", &w);
    if (cli_flag(c, "real"))
        w.at[w.count++] = "--real";
    if (cli_flag(c, "strict"))
        w.at[w.count++] = "--strict";
    return w;
}

/* Has the file been written since?  It is written by renaming, so its inode has changed then. */
static bool is_new(const char *path, bool was_there, const struct stat *before)
{
    struct stat now;
    if (stat(path, &now) != 0)
        return false;
    return !was_there || now.st_ino != before->st_ino || now.st_dev != before->st_dev ||
           now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

/* The script and its arguments are the last words of argv, which ends with NULL. */
static orr_code run_python(const cli_context *c,
                           orr_capture *capture,
                           const char *output,
                           orr_error *err)
{
    enum { ARGUMENTS_MOST = 4096 };
    const char *all[OWN_WORDS + ARGUMENTS_MOST + 1];
    char local[16] = "";
    orr_machine m;
    const orr_code known = read_machine(c, &m, err);
    if (known)
        return known;
    if (m.devices)
        snprintf(local, sizeof local, "%u", m.devices);
    const words w = own_words(c, output, local);
    if (c->arg_count > ARGUMENTS_MOST)
        return cli_misuse(err, "more than %d arguments", ARGUMENTS_MOST);
    memcpy(all, w.at, (size_t)w.count * sizeof *all);
    memcpy(all + w.count, c->args, (size_t)c->arg_count * sizeof *all);
    all[w.count + c->arg_count] = NULL;
    cli_note(c, "%s runs %s\n", orr_capture_python(capture), c->args[0]);
    struct stat before;
    const bool was_there = stat(output, &before) == 0;
    const orr_code code = orr_capture_run(capture, all, err);
    if (code || is_new(output, was_there, &before))
        return code;
    return orr_fail(err, ORR_EINPUT, NULL, "%s exited with 0 but wrote no captured step",
                    orr_capture_python(capture));
}

/* ---- the command ---- */

static void print_json(const cli_context *c, const orr_capture *capture)
{
    cli_json j;
    orr_json_writer *w = cli_json_open(&j, "orrery-capture-run");
    orr_json_put_fields(w, ORR_T("script", c->args[0]), ORR_T("output", cli_text(c, "output")),
                        ORR_U("ranks", cli_count(c, "world-size")),
                        ORR_T("python", orr_capture_python(capture)));
    cli_json_close(&j);
}

static orr_code check_step(const cli_context *c, orr_error *err)
{
    if (cli_given(c, "hardware") || cli_flag(c, "compress"))
        return cli_misuse(err, "--hardware and --compress require an OUT that ends in .orr");
    return ORR_OK;
}

static orr_code to_step(const cli_context *c, orr_capture *capture, orr_error *err)
{
    const orr_code code = run_python(c, capture, cli_text(c, "output"), err);
    if (!code && cli_flag(c, "json"))
        print_json(c, capture);
    return code;
}

static orr_code to_traces(const cli_context *c,
                          cli_context *convert,
                          orr_capture **capture,
                          orr_error *err)
{
    const cli_fx_source from = {read_step, NULL, capture};
    const orr_code code = run_python(c, *capture, orr_capture_file(*capture), err);
    return code ? code : cli_fx_run(convert, &from, err);
}

/* Checks that OUT can be written before Python runs, which may take minutes. */
static orr_code check_output(const cli_context *c, orr_error *err)
{
    const char *out = cli_text(c, "output");
    if (strcmp(out, "-") == 0 && cli_count(c, "world-size") > 1)
        return cli_misuse(
            err, "only the trace of one rank can go to standard output: give an OUT that ends "
                 "in .orr");
    return ORR_OK;
}

static orr_code capture_script(const cli_context *c, orr_error *err)
{
    orr_capture *capture;
    cli_context convert;
    char *argv[CONVERT_WORDS];
    cli_hardware hardware; /* to be read again: Python takes minutes, an error should not */
    orr_machine m;
    const bool ends_early = is_step(cli_text(c, "output"));
    orr_code code = read_machine(c, &m, err);
    const char *chip = cli_given(c, "hardware") ? cli_text(c, "hardware")
                       : m.chip[0]              ? m.chip
                                                : NULL;
    if (!code && chip)
        code = cli_hardware_find(chip, &hardware, err);
    if (!code)
        code = ends_early ? check_step(c, err) : prepare_convert(c, chip, &convert, argv, err);
    if (code || (code = check_output(c, err)) ||
        (code = orr_capture_open(cli_text(c, "python"), &capture, err)))
        return code;
    code = ends_early ? to_step(c, capture, err) : to_traces(c, &convert, &capture, err);
    orr_capture_close(capture);
    return code;
}

static orr_code capture_run(cli_context *c, orr_error *err)
{
    if (cli_flag(c, "print-module")) {
        const orr_str text = orr_capture_module();
        cli_print(text);
        return ORR_OK;
    }
    if (c->arg_count == 0)
        return cli_misuse(err, "missing argument: SCRIPT");
    return capture_script(c, err);
}

const cli_command cli_cmd_capture = {
    .name = "capture",
    .summary = "capture traces of all ranks of a PyTorch script, without a cluster",
    .description =
        "Runs SCRIPT in Python as rank 0 of a job of N ranks, then as the other ranks that can differ, on this machine "
        "alone: tensors have shapes but no data, collectives return at once.  The operations of one training step (forward "
        "pass, backward pass and optimizer, collectives, messages) are recorded and become the traces of all ranks.  "
        "DDP, FSDP2, tensor parallelism, pipelines and custom process groups are supported.\n\n"
        "Needs a Python with PyTorch 2.4 or later, no GPU.  Where there is none, --print-module writes the Python side, one "
        "file, for a machine that has it; 'orrery convert fx' reads what it writes.  Options of SCRIPT go "
        "after it.  The script's output goes to standard error.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-check(1), orrery-convert(1), orrery-run(1)",
    .keeps_rest = true,
    .run = capture_run,
};
