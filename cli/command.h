/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the list of commands, each defined in cli/cmd_<name>.c, and the functions they
 * share. */
#ifndef ORR_CLI_COMMAND_H
#define ORR_CLI_COMMAND_H

#include "base/formats/json.h"
#include "option.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/explain.h>
#include <orrery/lab/gemm.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/goal.h>
#include <orrery/lab/hardware.h>
#include <orrery/lab/llm.h>
#include <orrery/lab/nccl.h>
#include <orrery/lab/scalesim.h>
#include <orrery/lab/show.h>
#include <orrery/report.h>
#include <orrery/run.h>
#include <orrery/timeline.h>

/* All commands, in the order a user meets them.  A new command is one row: its table is
 * cli_cmd_NAME. */
/* clang-format off */
#define CLI_COMMANDS(X) \
    X(demo) \
    X(plan) \
    X(gen) \
    X(model) \
    X(machine) \
    X(chip) \
    X(stage) \
    X(serve) \
    X(gemm) \
    X(scalesim) \
    X(link) \
    X(convert) \
    X(capture) \
    X(nccl) \
    X(nccl_tests) \
    X(calibrate) \
    X(feed) \
    X(check) \
    X(info) \
    X(run) \
    X(sweep) \
    X(diff) \
    X(report) \
    X(view) \
    X(help)
/* clang-format on */

#define CLI_DECLARE(name) extern const cli_command cli_cmd_##name;
CLI_COMMANDS(CLI_DECLARE)
extern const cli_command cli_cmd_gen_goal, cli_cmd_gen_topology; /* two words, under gen */

/* Option rows of every command that simulates.  A limit that is reached ends the run with
 * ORR_ESTOP, after the results so far have been shown. */
/* clang-format off */
#define CLI_LIMIT_OF_TIME \
    {"max-time", 0, "TIME", \
     "stop after this much wall-clock time (10s, 5min) and show the results so far"}
#define CLI_LIMITS_OF_WORK \
    {"max-memory", 0, "SIZE", "stop above this memory use (8GiB) and show the results so far"}, \
    {"max-events", 0, "N", "stop after this many events and show the results so far", CLI_COUNT, \
     1, UINT64_MAX}
#define CLI_LIMITS CLI_LIMIT_OF_TIME, CLI_LIMITS_OF_WORK
/* clang-format on */

/* Option rows of a training step that a search of plans does not decide: what
 * cli_training_options reads (training_options.c). */
/* clang-format off */
#define CLI_NUMBER(name, help) {name, 0, "N", help, CLI_COUNT, 1, INT32_MAX}
#define CLI_TRAINING_OPTIONS \
    {"dtype", 0, "bf16|fp16|fp8|fp32|mxfp8|nvfp4", "data type of matrix multiplications", \
     .fallback = "bf16"}, \
    {"fp8-attention", 0, NULL, "with --dtype fp8, mxfp8 or nvfp4: attention in fp8, too"}, \
    {"fp8-scaling", 0, "current|delayed|delayed-tp|block", \
     "with --dtype fp8: scale by a tensor's own maximum, or by those of earlier passes, reduced " \
     "over all ranks of a stage, or over tp, after each pass; block: by that of 128 numbers", \
     .fallback = "current"}, \
    {"fp8-kept", 0, "none|inputs|activations|deepseek", \
     "what is kept in the type of --dtype for the backward pass: inputs of GEMMs, also those of " \
     "activations; deepseek: and what attention gave in 12 bits (default: the software's)"}, \
    {"fp8-weights", 0, "none|both|only", \
     "weights in the type of --dtype: cast when used, kept beside those in 16 bits, or instead of " \
     "them (default: the software's)"}, \
    {"fp8-dispatch", 0, NULL, \
     "send tokens to experts in fp8, with scales; results return unquantized (DeepSeek-V3)"}, \
    {"dispatch", 0, "copies|once|hybridep", \
     "send a token once per expert, or once per rank and node (DeepEP); hybridep: the same, with " \
     "its weights for all experts of a node, after gathering the routing of all tokens", \
     .fallback = "copies"}, \
    CLI_NUMBER("node-ranks", \
               "--dispatch once and hybridep: ranks per node; default: 8, or the machine's"), \
    {"expert-load", 0, "N", "load of the busiest expert rank, in percent of the mean", CLI_COUNT, \
     1, INT32_MAX, "100"}, \
    CLI_NUMBER("expert-tp", "ranks that share an expert: 1 or --tp (default: --tp)"), \
    {"ep-overlap", 0, NULL, \
     "overlap the all-to-alls of a backward pass with computation of a forward pass, and vice " \
     "versa"}, \
    CLI_NUMBER("shard", \
               "ZeRO among this many data parallel ranks; the rest are replicas (HSDP)"), \
    {"mtp", 0, NULL, "include the multi-token prediction layers (DeepSeek-V3)"}, \
    {"grads-fp32", 0, NULL, "keep and reduce gradients in fp32"}, \
    {"tp-overlap", 0, NULL, \
     "overlap tensor-parallel communication with its GEMMs, chunk by chunk"}, \
    {"attention", 0, "causal|full", "attention mask", .fallback = "causal"}, \
    {"context", 0, "ring|all-gather|contiguous|blocks", \
     "context parallelism: how keys and values are exchanged; contiguous: a ring of contiguous " \
     "blocks, unbalanced under a causal mask; blocks: gathered once, attention block by block " \
     "(PyTorch)", \
     .fallback = "ring"}, \
    {"recompute-parts", 0, "LIST", \
     "recompute these parts of a layer: norm, attention, mla-up, activation, ffn, experts, " \
     "shared"}, \
    CLI_NUMBER("recompute-layers", \
               "recompute full: this many layers, evenly spread (default: all)"), \
    CLI_NUMBER("offload-layers", \
               "copy what the first N layers of each model chunk keep to the host, and back"), \
    {"offload-percent", 0, "N", "--offload-layers: this share of it", CLI_COUNT, 1, 100, "100"}, \
    {"bucket", 0, "BYTES", \
     "gradient bucket size (default: 40MB; FSDP with zero 2 and 3: each layer)"}, \
    {"prefetch", 0, "N", "ZeRO 3: layers to gather ahead", CLI_COUNT, 1, INT32_MAX, "1"}, \
    {"no-overlap", 0, NULL, "reduce gradients after the last backward pass"}, \
    {"sync-every-micro-batch", 0, NULL, "reduce gradients after each micro-batch"}, \
    {"no-clipping", 0, NULL, "no gradient clipping"}, \
    {"dropout", 0, NULL, \
     "dropout after embedding, attention and FFN, even if the software's recipes have none"}, \
    {"foreach", 0, NULL, "foreach optimizer: one kernel per operation for a list of tensors"}, \
    {"moments-bf16", 0, NULL, "keep the optimizer's moments in bf16, not in fp32"}, \
    {"no-master", 0, NULL, "keep weights and optimizer moments in --dtype, not in fp32"}
/* clang-format on */
orr_code cli_training_options(const cli_context *c, orr_llm_options *o, orr_error *err);
/* The first of them that is given, but that one; NULL: none. */
const char *cli_training_given(const cli_context *c, const char *except);

/* Apply the limits to a run.  Time is that of the whole command, counted from the first call. */
orr_code cli_limits(cli_context *c, orr_run_config *config, orr_error *err);
/* Update the used part of --max-time, before a run that follows other work. */
void cli_limits_used(const cli_context *c, orr_run_config *config);

/* orr_run_to_end; an interrupt stops it, with ORR_ESTOP, and a second one ends the program. */
orr_code cli_run_to_end(orr_run *r, orr_error *err);
/* Create, print warnings, run.  *out is set even if it stalled. */
orr_code cli_run_start(const cli_context *c,
                       const orr_run_config *config,
                       orr_run **out,
                       orr_error *err);
/* Print why a run is deadlocked, below the error; does nothing for other runs. */
void cli_explain(cli_context *c, orr_run *r, const orr_error *err);

/* Requested output of a run; paths are NULL if not requested. */
typedef struct cli_run_output {
    bool is_json, is_brief, has_gantt, says_fold;
    const char *csv, *links, *trace_log, *timeline, *report, *report_ranks, *what_if;
    bool is_csv_alike; /* one row for ranks with the same figures */
    orr_run_rows timeline_rows;
} cli_run_output;
/* Run and print the results, partial ones too if the run is stopped or deadlocked. */
orr_code cli_run_and_print(cli_context *c,
                           const orr_run_config *config,
                           const cli_run_output *wanted,
                           orr_error *err);

/* --packet-keys, --series and related options as keys of config.txt. */
enum { CLI_KEYS_ROOM = 8192 };
/* The rules of the program that --compat names; without --compat *out is NULL, for ours. */
orr_code cli_packet_rules(bool is_wanted, const struct orr_rules_packet **out, orr_error *err);

orr_gen_style cli_gen_style(const char *schema); /* eg, 0.0.4 or current */
void cli_nccl_remarks(const cli_context *c, const orr_nccl_report *r);
/* The error for an unknown --software. */
orr_code cli_no_software(const char *name, orr_error *err);

/* ---- --hardware ---- */

/* A chip with kernel times, or, where chip is NULL, a design known by its arrays only. */
typedef struct cli_hardware {
    const orr_chip *chip; /* may point to own: do not copy */
    orr_chip own;
    orr_hardware design;
} cli_hardware;
/* A name or a file of either. */
orr_code cli_hardware_find(const char *name, cli_hardware *out, orr_error *err);
/* Does the key `chip` of a machine name a file? */
bool cli_is_file(const char *chip);
orr_code cli_design_find(const char *name, orr_hardware *out, orr_error *err);
/* A chip only; own: of a file. */
orr_code cli_chip_find(const char *name, orr_chip *own, const orr_chip **out, orr_error *err);
/* Before work that reads it: the error for a name that is none, with a suggestion. NULL is fine. */
orr_code cli_chip_check(const char *name, orr_error *err);

/* --micro-batch: -1 (same as 0), or an integer of at least 1. */
orr_code cli_stage_micro_batch(const char *text, uint64_t *out, orr_error *err);
/* The number of nodes is proportional to layers times passes: refuse a mistyped value before memory
 * runs out. */
orr_code cli_check_passes(size_t layers, uint64_t passes, orr_error *err);

/* orrery view timeline, and run --gantt. */
orr_code cli_print_gantt(const orr_timeline *t, orr_error *err);

/* Note that a drawing was too large for a layout (cmd_view.c). */
void cli_note_plain(const cli_context *c, const char *path, bool is_plain, bool is_dot);

/* A file that appears whole or not at all: collected in memory, then written by the library.  "-"
 * is standard output. */
typedef struct cli_file {
    FILE *f;
    const char *path;
} cli_file;
orr_code cli_file_open(const char *path, cli_file *out, orr_error *err);
/* Write the file, or discard it if code is an error. */
orr_code cli_file_close(cli_file *file, orr_code code, orr_error *err);

/* Check that a file can be written, before the work rather than hours later. */
orr_code cli_check_place(const char *path, orr_error *err);
orr_code cli_check_prefix(const char *path,
                          orr_error *err); /* a prefix may be the name of a directory */
orr_code cli_check_folder(const char *path, orr_error *err); /* exists or can be created */

uint64_t cli_count_nodes(const orr_set *s); /* of all ranks */

/* ---- orrery gemm --compat, and the generator under its old name ---- */

/* By the name of a simulator, v1 or v2; NULL: ours. */
orr_code cli_gemm_rules(const char *name, const orr_rules_gemm **out, orr_error *err);
/* One of the five parallelization policies; any other word fails with `otherwise`. */
orr_code cli_gemm_policy(const char *word, orr_code otherwise, orr_policy *out, orr_error *err);

/* Write the intermediate files into outputs/POLICY/RUN_NAME, creating it if needed; shapes: the
 * path of the CSV file, from which their names are derived. */
orr_code cli_gemm_keep(
    const orr_gemm *g, orr_policy policy, const char *run_name, const char *shapes, orr_error *err);

/* ---- orrery scalesim, and SCALE-Sim's own name, scale.py ---- */

/* By the name of a generation; NULL: ours. */
orr_code cli_scalesim_rules(const char *name, const orr_rules_systolic **out, orr_error *err);
/* Create BASE/RUN_NAME; without a run name, the name is made of the table and the dataflow. */
orr_code cli_scalesim_folder(const char *base,
                             const orr_scalesim_config *config,
                             const orr_scalesim_network *net,
                             char *out,
                             size_t size,
                             orr_error *err);
/* v1: into the folder layer_wise of the reports; v2 and v3: into layer0, layer1, ... */
orr_code cli_scalesim_traces(const orr_scalesim *r,
                             int generation,
                             const char *reports,
                             orr_error *err);

/* ---- the JSON object that a command prints: {"format": NAME, "version": 1, ...} ----
 *
 *     cli_json j;
 *     orr_json_writer *w = cli_json_open(&j, "orrery-gen");
 *     orr_json_put_fields(w, ORR_U("ranks", 8));
 *     cli_json_close(&j);                              // now it is on stdout */
typedef struct cli_json {
    orr_buf text;
    orr_json_writer writer;
} cli_json;

/* To standard output; main checks for write errors. */
void cli_print(orr_str text);

/* What --json asks of the functions of show.h. */
static inline orr_show_form cli_show_form(const cli_context *c)
{
    return cli_flag(c, "json") ? ORR_SHOW_JSON : ORR_SHOW_TEXT;
}

/* Separators are ", " and ": "; cli_json_open_tight omits the spaces. */
orr_json_writer *cli_json_open(cli_json *j, const char *format);
orr_json_writer *cli_json_open_tight(cli_json *j, const char *format);
void cli_json_close(cli_json *j);

/* ---- GOAL schedules (goal_load.c) ---- */

/* Read a schedule and note its oddities. */
orr_code cli_goal_read(const cli_context *c, const char *path, orr_goal **out, orr_error *err);

bool cli_is_goal(const char *path); /* by its name or its first bytes */
/* The same for the input of a run: standard input and pipes are schedules, since traces are several
 * files. */
bool cli_brings_goal(const char *path);

/* A schedule from GOAL or from traces; for traces the options system, topology and groups determine
 * how collectives expand. */
orr_code cli_goal_load(cli_context *c, const char *path, orr_goal **out, orr_error *err);

/* The files a schedule is made of, for results; paths point into the command line. */
enum { CLI_MOST_JOBS = 256, CLI_GOAL_INPUTS = CLI_MOST_JOBS + 5 };
typedef struct cli_goal_inputs {
    orr_run_source list[CLI_GOAL_INPUTS];
    size_t count;
} cli_goal_inputs;
/* The first argument and further jobs, placed according to the options job, placement, hosts and
 * seed.  `inputs`, which may be NULL, must be empty. */
orr_code cli_goal_jobs(cli_context *c, cli_goal_inputs *inputs, orr_goal **out, orr_error *err);
/* The same as one set of traces.  *out NULL without an error: *why says why they cannot be
 * combined. */
orr_code cli_job_traces(cli_context *c, orr_set **out, const char **why, orr_error *err);

/* ---- the HTML page of a run: run --report, report, demo (html_report.c) ---- */

/* "auto", "off", "estimate" or "simulate"; the option table has checked the word. */
orr_what_if cli_what_if_of(const char *word);

/* Add a run that has ended, was stopped or has stalled to a report. */
orr_code cli_report_add(orr_report *page,
                        orr_run *r,
                        const orr_explain_options *opt,
                        orr_error *err);

/* One run, one page; its title is opt->name, or that of its flows. */
orr_code cli_report_one(const cli_context *c,
                        orr_run *r,
                        const orr_explain_options *opt,
                        const char *path,
                        orr_error *err);
/* The command line: "orrery run step.orr --system sys.json".  The caller frees it; NULL: out of
 * memory. */
char *cli_command_line(const cli_context *c);

/* ---- recorded runs in any format: diff, report, view (timeline_load.c) ---- */

typedef enum cli_run_kind {
    CLI_RUN_OTHER, /* no timeline: probably traces */
    CLI_RUN_TIMED, /* trace events, a folder of them, an export of Nsight Systems */
    CLI_RUN_LOG    /* a log of issued nodes, in cycles: the command's --frequency */
} cli_run_kind;

/* The kind is detected from the content.  *out is NULL for CLI_RUN_OTHER. */
orr_code cli_timeline_load(
    const cli_context *c, const char *path, cli_run_kind *kind, orr_timeline **out, orr_error *err);
/* ORR_EINPUT for traces, with advice; other files pass. */
orr_code cli_timeline_refuse_traces(const char *path, orr_error *err);
/* The same for a file known to be a log, or trace events. */
orr_code cli_timeline_load_log(const cli_context *c,
                               const char *path,
                               orr_timeline **out,
                               orr_error *err);
orr_code cli_timeline_load_events(const char *path, orr_timeline **out, orr_error *err);

#endif
