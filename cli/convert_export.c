/* SPDX-License-Identifier: Apache-2.0 */
/* convert_export.c - orrery convert export: a program saved by torch.export (.pt2) to traces, and what is said about it:
 * which pass it is, and what the sizes are that it leaves open. */
#include "convert.h"

#include <orrery/lab/export.h>

#include <inttypes.h>

/* ---- words ---- */

static void note_symbol(const cli_context *c, const orr_export_symbol *y)
{
    cli_note(c, "  size %.*s = %" PRId64, (int)y->name.len, y->name.ptr, y->value);
    if (y->is_given)
        cli_note(c, ", as given\n");
    else
        cli_note(c, ", the example in the file; --dim %.*s=N changes it\n", (int)y->name.len,
                 y->name.ptr);
}

static void note_program(const cli_context *c, const orr_export_report *r)
{
    cli_note(c,
             "%s: exported by PyTorch %.*s, %s; %" PRIu32 " node%s, %" PRIu32
             " parameter%s, %" PRIu32 " buffer%s, %" PRIu32 " input%s, %" PRIu32 " output%s\n",
             c->args[1], (int)r->torch_version.len, r->torch_version.ptr,
             r->is_joint ? "a joint graph: forward and backward pass" : "forward pass alone",
             r->nodes, r->nodes == 1 ? "" : "s", r->parameters, r->parameters == 1 ? "" : "s",
             r->buffers, r->buffers == 1 ? "" : "s", r->inputs, r->inputs == 1 ? "" : "s",
             r->outputs, r->outputs == 1 ? "" : "s");
    for (size_t i = 0; i < r->symbol_count; i++)
        note_symbol(c, &r->symbols[i]);
}

/* ---- JSON ---- */

static void print_symbol(const orr_export_symbol *y)
{
    printf("{\"name\": ");
    cli_json_text(y->name.ptr);
    printf(", \"value\": %" PRId64 ", \"is_given\": %s", y->value, y->is_given ? "true" : "false");
    if (y->min != INT64_MIN)
        printf(", \"min\": %" PRId64, y->min);
    if (y->max != INT64_MAX)
        printf(", \"max\": %" PRId64, y->max);
    printf("}");
}

static void print_program(const void *data)
{
    const orr_export_report *r = data;
    printf(", \"program\": {\"torch_version\": ");
    cli_json_text(r->torch_version.ptr);
    printf(", \"schema\": \"%" PRIu32 ".%" PRIu32 "\", \"model\": ", r->schema_major,
           r->schema_minor);
    cli_json_text(r->model.ptr);
    printf(", \"kind\": \"%s\", \"nodes\": %" PRIu32 ", \"nested_graphs\": %" PRIu32
           ", \"parameters\": %" PRIu32 ", \"buffers\": %" PRIu32 ", \"inputs\": %" PRIu32
           ", \"outputs\": %" PRIu32 ", \"sizes\": [",
           r->is_joint ? "joint" : "forward", r->nodes, r->nested, r->parameters, r->buffers,
           r->inputs, r->outputs);
    for (size_t i = 0; i < r->symbol_count; i++) {
        printf("%s", i ? ", " : "");
        print_symbol(&r->symbols[i]);
    }
    printf("]}");
}

/* ---- the command ---- */

static orr_code read_export(const cli_context *c, void *data, orr_fx **out, orr_error *err)
{
    const orr_export_options opt = {.sizes = cli_text(c, "dim"),
                                    .model = cli_text(c, "model"),
                                    .ranks = (uint32_t)cli_count(c, "world-size")};
    orr_export_report *r = data;
    const orr_code code = orr_export_read(c->args[1], &opt, out, r, err);
    if (!code && !cli_flag(c, "json"))
        note_program(c, r);
    return code;
}

static orr_code export_run(cli_context *c, orr_error *err)
{
    orr_export_report r = {0};
    const cli_fx_source from = {read_export, print_program, &r};
    const orr_code code = cli_fx_run(c, &from, err);
    orr_export_report_fini(&r);
    return code;
}

static const char *const export_options[] = {"dim", "model", "world-size", "hardware", NULL};

const cli_converter cli_convert_export = {"export", export_options, NULL, export_run};
