/* SPDX-License-Identifier: Apache-2.0 */
/* convert.h - shared by convert, link and capture: the type of OUT, and captured steps. */
#ifndef ORR_CLI_CONVERT_H
#define ORR_CLI_CONVERT_H

#include "command.h"

#include <orrery/lab/fx.h>
#include <orrery/lab/pytorch.h>
#include <orrery/set.h>

/* ---- the type of OUT (cmd_convert.c) ---- */

typedef enum cli_form {
    CLI_FORM_PREFIX,
    CLI_FORM_ET,
    CLI_FORM_EG,
    CLI_FORM_JSON,
    CLI_FORM_JSONL,
    CLI_FORM_SET
} cli_form;

/* OUT, and where the rank is inserted. */
typedef struct cli_target {
    const char *path;
    cli_form form;
    size_t stem; /* length without the extension */
} cli_target;

/* "5 (parent 9), 7 (parent 7) and 3 more"; the first ORR_PYTORCH_SHOWN are known
 * (cmd_convert.c). */
enum { CLI_NODES_ROOM = 512 };
const char *cli_nodes_text(const orr_pytorch_later *nodes,
                           uint64_t count,
                           char out[CLI_NODES_ROOM]);

/* --host-scale FACTOR|auto as in orr_pytorch_options; and the factors applied, over one or more
 * ranks (cmd_convert.c). */
#define CLI_HOST_SCALE_HELP                                                                        \
    "multiply host times by FACTOR; auto: by an estimate that undoes the profiler's overhead; 1: " \
    "keep them"
orr_code cli_host_scale(const cli_context *c, double *out, orr_error *err);
typedef struct cli_host_range {
    orr_pytorch_host of; /* scale and low: the minimum over ranks */
    double most;         /* the largest scale */
    uint32_t ranks;
} cli_host_range;
void cli_host_add(cli_host_range *r, const orr_pytorch_host *h);
void cli_host_note(const cli_context *c, const cli_host_range *r);
void cli_host_json(orr_json_writer *w, const orr_pytorch_host *h);

cli_target cli_target_of(const char *path);
orr_code cli_target_check(const cli_context *c, const cli_target *to, orr_error *err);
/* The same with more members of the JSON object. */
typedef void cli_more_json(orr_json_writer *w, const void *data);

/* ---- captured steps (cmd_convert.c) ---- */

/* How to get a captured step. */
typedef struct cli_fx_source {
    /* Reads c->args[1]. */
    orr_code (*read)(const cli_context *c, void *data, orr_fx **out, orr_error *err);
    cli_more_json *put; /* adds its JSON members; may be NULL */
    void *data;
} cli_fx_source;
/* Everything for a kind based on a captured step: traces, files, report. */
orr_code cli_fx_run(cli_context *c, const cli_fx_source *from, orr_error *err);

#endif
