/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the list of commands, each defined in cli/cmd_<name>.c, and what they share. */
#ifndef ORR_CLI_COMMAND_H
#define ORR_CLI_COMMAND_H

#include "option.h"

#include <orrery/lab/gemm.h>
#include <orrery/lab/gen.h>
#include <orrery/lab/nccl.h>
#include <orrery/lab/scalesim.h>
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

/* orr_run_to_end; an interrupt stops it, with ORR_ESTOP, and a second one ends the program. */
orr_code cli_run_to_end(orr_run *r, orr_error *err);
/* Create, print warnings, run.  *out is set even if it stalled. */
orr_code cli_run_start(const cli_context *c,
                       const orr_run_config *config,
                       orr_run **out,
                       orr_error *err);
/* A run that stands still explains itself below the error; nothing happens when it does not. */
void cli_explain(cli_context *c, orr_run *r, const orr_error *err);

/* What is wanted of one run; paths are NULL where nothing is. */
typedef struct cli_run_output {
    bool is_json, is_brief, has_gantt, says_fold;
    const char *csv, *links, *trace_log, *timeline, *report, *report_ranks, *what_if;
    orr_run_rows timeline_rows;
} cli_run_output;
/* Run and print, also what is known of a run that was stopped or cannot go on. */
orr_code cli_run_and_print(cli_context *c,
                           const orr_run_config *config,
                           const cli_run_output *wanted,
                           orr_error *err);

/* The words of --packet-keys, --series and its companions, as config.txt would have them. */
enum { CLI_KEYS_ROOM = 8192 };
/* The rules of the program that --compat means; unless they are wanted *out is NULL, for ours. */
orr_code cli_packet_rules(bool is_wanted, const struct orr_rules_packet **out, orr_error *err);

orr_gen_style cli_gen_style(const char *schema); /* eg, 0.0.4 or current */
void cli_nccl_remarks(const cli_context *c, const orr_nccl_report *r);
/* --micro-batch: -1 (as 0), or a whole number from 1 on. */
orr_code cli_stage_micro_batch(const char *text, uint64_t *out, orr_error *err);
/* Nodes follow layers times passes: a slip of the finger is refused before the memory is full. */
orr_code cli_check_passes(size_t layers, uint64_t passes, orr_error *err);

/* orrery view timeline; and what run --gantt shares with it. */
orr_code cli_print_gantt(const orr_timeline *t, orr_error *err);

/* A drawing that was too large to be laid out (cmd_view.c). */
void cli_note_plain(const cli_context *c, const char *path, bool is_plain, bool is_dot);

/* A file that is there whole or not at all: gathered in memory, then written as the library writes
 * files.  "-" is standard output. */
typedef struct cli_file {
    FILE *f;
    const char *path;
} cli_file;
orr_code cli_file_open(const char *path, cli_file *out, orr_error *err);
/* Written, or forgotten when what came before (code) has failed. */
orr_code cli_file_close(cli_file *file, orr_code code, orr_error *err);

/* Whether a file can be written there: said before the work, which may take hours, not after it. */
orr_code cli_check_place(const char *path, orr_error *err);
orr_code cli_check_prefix(const char *path,
                          orr_error *err); /* of files: may be the name of a directory */
orr_code cli_check_folder(const char *path, orr_error *err); /* which exists, or is made */

uint64_t cli_count_nodes(const orr_set *s); /* of all ranks */

/* ---- orrery gemm --compat, and the generator under its old name ---- */

/* By the name of a simulator, v1 or v2; NULL: ours. */
orr_code cli_gemm_rules(const char *name, const orr_rules_gemm **out, orr_error *err);
/* One of the five ways to share out layers; another word: fails with `otherwise`. */
orr_code cli_gemm_policy(const char *word, orr_code otherwise, orr_policy *out, orr_error *err);

/* Write the intermediate files into outputs/POLICY/RUN_NAME, which is made when it is not there;
 * shapes: the path of the CSV file, from whose name theirs are made. */
orr_code cli_gemm_keep(
    const orr_gemm *g, orr_policy policy, const char *run_name, const char *shapes, orr_error *err);

/* ---- orrery scalesim, and SCALE-Sim's own name, scale.py ---- */

/* By the name of a generation; NULL: ours. */
orr_code cli_scalesim_rules(const char *name, const orr_rules_systolic **out, orr_error *err);
/* BASE/RUN_NAME, which is made; without a name of the run that of the table and the dataflow. */
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

#endif
