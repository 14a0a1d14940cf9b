/* SPDX-License-Identifier: Apache-2.0 */
/* convert_export.c - orrery convert export: a program saved by torch.export (.pt2) to traces, and what is said about it:
 * which pass it is, and what the sizes are that it leaves open. */
#include "convert.h"
#include "json_out.h"

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

static void put_symbol(orr_json_writer *w, const orr_export_symbol *y)
{
    orr_json_begin_object(w);
    orr_json_key(w, "name");
    orr_json_str(w, y->name);
    cli_json_i64(w, "value", y->value);
    orr_json_put_bool(w, "is_given", y->is_given);
    if (y->min != INT64_MIN)
        cli_json_i64(w, "min", y->min);
    if (y->max != INT64_MAX)
        cli_json_i64(w, "max", y->max);
    orr_json_end_object(w);
}

static void put_program(orr_json_writer *w, const void *data)
{
    const orr_export_report *r = data;
    char schema[32];
    snprintf(schema, sizeof schema, "%" PRIu32 ".%" PRIu32, r->schema_major, r->schema_minor);
    cli_json_object(w, "program");
    orr_json_key(w, "torch_version");
    orr_json_str(w, r->torch_version);
    orr_json_put_text(w, "schema", schema);
    orr_json_key(w, "model");
    orr_json_str(w, r->model);
    orr_json_put_text(w, "kind", r->is_joint ? "joint" : "forward");
    orr_json_put_u64(w, "nodes", r->nodes);
    orr_json_put_u64(w, "nested_graphs", r->nested);
    orr_json_put_u64(w, "parameters", r->parameters);
    orr_json_put_u64(w, "buffers", r->buffers);
    orr_json_put_u64(w, "inputs", r->inputs);
    orr_json_put_u64(w, "outputs", r->outputs);
    cli_json_array(w, "sizes");
    for (size_t i = 0; i < r->symbol_count; i++)
        put_symbol(w, &r->symbols[i]);
    orr_json_end_array(w);
    orr_json_end_object(w);
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
    const cli_fx_source from = {read_export, put_program, &r};
    const orr_code code = cli_fx_run(c, &from, err);
    orr_export_report_fini(&r);
    return code;
}

static const char *const export_options[] = {"dim", "model", "world-size", "hardware", NULL};

const cli_converter cli_convert_export = {"export", export_options, NULL, export_run};
