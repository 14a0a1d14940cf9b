/* SPDX-License-Identifier: Apache-2.0 */
/* export_read.c - a whole exported program: inputs, nodes, outputs.
 *
 * The signature separates parameters and buffers from user inputs, and gives the purpose of the
 * graph's outputs: results, new contents of buffers (a copy at the end, as PyTorch does it), or a
 * loss and gradients, which make it a joint graph of forward and backward pass.  Results are alive
 * until the end.
 * Cost: the text, and eight bytes per JSON value. */
#include "export_impl.h"

#include "base/formats/zip_file.h"
#include "base/io/input.h"

#include <inttypes.h>
#include <stdio.h>

/* ==== which file of an archive is the program.
 *
 * PyTorch 2.8 and later: FOLDER/models/NAME.json, one per program, beside FOLDER/archive_format.
 * Before that: serialized_exported_program.json.  Other archives of PyTorch are recognised by their
 * contents, because .pt2 is used for several things.  A file that is not an archive is read as
 * JSON. */

typedef struct source {
    orr_span json;
    char *label;   /* for messages: the archive and the file in it */
    orr_str model; /* its name in the archive; empty: no archive */
    orr_buf room;
    orr_arena *arena;
} source;

/* A graph of a million nodes takes some 2 GB, at some 2,000 bytes per node. */
static const uint64_t json_most = (uint64_t)4 << 30;
enum { SMALL_FILE = 64 };

static const char old_name[] = "serialized_exported_program.json";

/* The name without the archive's top folder, if it is just one level deeper than expected. */
static orr_str without_top(orr_str name)
{
    const char *slash = memchr(name.ptr, '/', name.len);
    const size_t n = slash ? (size_t)(slash - name.ptr) + 1 : 0;
    return (orr_str){name.ptr + n, name.len - n};
}

/* "models/NAME.json": NAME. */
static bool is_model(orr_str name, orr_str *model)
{
    static const char front[] = "models/", tail[] = ".json";
    const size_t f = sizeof front - 1, t = sizeof tail - 1;
    if (name.len <= f + t || memcmp(name.ptr, front, f) != 0 || !orr_str_ends(name, tail) ||
        memchr(name.ptr + f, '/', name.len - f))
        return false;
    *model = (orr_str){name.ptr + f, name.len - f - t};
    return true;
}

/* Is this entry a program, and what is its name? */
static bool is_program(orr_str name, orr_str *model)
{
    if (is_model(name, model) || is_model(without_top(name), model))
        return true;
    *model = (orr_str){"", 0};
    return orr_str_is(name, old_name) || orr_str_is(without_top(name), old_name);
}

static const orr_zip_entry *find_file(const orr_zip *z, const char *name)
{
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        const orr_zip_entry *e = orr_zip_entry_at(z, i);
        if (orr_str_is(e->name, name) || orr_str_is(without_top(e->name), name))
            return e;
    }
    return NULL;
}

static bool has_folder(const orr_zip *z, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        const orr_str name = orr_zip_entry_at(z, i)->name, rest = without_top(name);
        if ((name.len > n && memcmp(name.ptr, part, n) == 0) ||
            (rest.len > n && memcmp(rest.ptr, part, n) == 0))
            return true;
    }
    return false;
}

/* Names the kind of an archive without a program. */
static orr_code fail_none(const orr_zip *z, const char *label, orr_error *err)
{
    const orr_where w = orr_where_byte(label, ORR_NO_BYTE);
    if (has_folder(z, "data/aotinductor/"))
        return orr_fail(
            err, ORR_EINPUT, &w,
            "holds a compiled program (AOTInductor) without its graph; save the exported "
            "program itself with torch.export.save()");
    if (has_folder(z, "code/"))
        return orr_fail(err, ORR_EINPUT, &w,
                        "holds a TorchScript program; export the model with torch.export.export() "
                        "and save that with torch.export.save()");
    if (find_file(z, "data.pkl"))
        return orr_fail(
            err, ORR_EINPUT, &w,
            "holds weights saved by torch.save(), no program; torch.export.save() writes "
            "programs");
    return orr_fail(err, ORR_EINPUT, &w,
                    "an archive without an exported program: neither models/*.json nor %s is in it",
                    old_name);
}

/* The contents of archive_format, if present. */
static orr_code check_format(const orr_zip *z, const char *label, orr_error *err)
{
    const orr_zip_entry *e = find_file(z, "archive_format");
    orr_buf room = {0};
    orr_span text = {0};
    if (!e)
        return ORR_OK;
    const orr_code code = orr_zip_read(z, e, SMALL_FILE, &room, &text, err);
    const bool is_pt2 = !code && text.len == 3 && memcmp(text.ptr, "pt2", 3) == 0;
    orr_buf_fini(&room);
    if (code || is_pt2)
        return code;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(label, e->data)),
                    "the archive's format is not 'pt2'");
}

/* "'a', 'b'": the programs of the archive. */
static void list_models(const orr_zip *z, char *to, size_t room)
{
    size_t len = 0;
    orr_str model;
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        if (!is_program(orr_zip_entry_at(z, i)->name, &model) || len + model.len + 5 > room)
            continue;
        len += (size_t)snprintf(to + len, room - len, "%s'%.*s'", len ? ", " : "", (int)model.len,
                                model.ptr);
    }
    to[len] = '\0';
}

static orr_code choose(const orr_zip *z,
                       const char *label,
                       const char *wanted,
                       const orr_zip_entry **out,
                       orr_str *model,
                       orr_error *err)
{
    const orr_where w = orr_where_byte(label, ORR_NO_BYTE);
    char names[160];
    size_t count = 0;
    bool is_found = false;
    for (size_t i = 0; i < orr_zip_count(z); i++) {
        const orr_zip_entry *e = orr_zip_entry_at(z, i);
        orr_str name;
        if (!is_program(e->name, &name))
            continue;
        count++;
        if (is_found || (wanted && !orr_str_is(name, wanted)))
            continue;
        *out = e;
        *model = name;
        is_found = true;
    }
    if (count == 0)
        return fail_none(z, label, err);
    list_models(z, names, sizeof names);
    if (!is_found)
        return orr_fail(err, ORR_EUSAGE, &w, "no program '%s' in the archive; there are: %s",
                        wanted, names);
    if (count > 1 && !wanted)
        return orr_fail(err, ORR_EUSAGE, &w,
                        "several programs are in the archive: choose one with --model: %s", names);
    return ORR_OK;
}

static orr_code open_program(
    const orr_zip *z, const char *label, const char *wanted, source *s, orr_error *err)
{
    const orr_zip_entry *e = NULL;
    orr_code code = check_format(z, label, err);
    if (code || (code = choose(z, label, wanted, &e, &s->model, err)))
        return code;
    s->label = orr_arena_print(s->arena, "%s/%.*s", label, (int)e->name.len, e->name.ptr);
    const char *model = orr_arena_text(s->arena, s->model);
    if (!s->label || !model)
        return orr_no_memory(err);
    s->model.ptr = model; /* the archive may be freed */
    return orr_zip_read(z, e, json_most, &s->room, &s->json, err);
}

static void close_source(source *s)
{
    orr_buf_fini(&s->room);
    orr_arena_destroy(s->arena);
    *s = (source){0};
}

static orr_code open_source(
    orr_span bytes, const char *label, const char *model, source *out, orr_error *err)
{
    orr_zip *z;
    *out = (source){.json = bytes, .model = {"", 0}, .arena = orr_arena_create()};
    if (!out->arena || !(out->label = orr_arena_text(out->arena, orr_str_of(label)))) {
        close_source(out);
        return orr_no_memory(err);
    }
    if (!orr_zip_is(bytes)) {
        if (!model)
            return ORR_OK;
        close_source(out);
        return orr_fail(err, ORR_EUSAGE, ORR_AT(orr_where_byte(label, ORR_NO_BYTE)),
                        "not an archive, so there is no program '%s'", model);
    }
    orr_code code = orr_zip_open(bytes, label, &z, err);
    if (!code)
        code = open_program(z, label, model, out, err);
    orr_zip_close(z);
    if (code)
        close_source(out);
    return code;
}

/* ==== everything ==== */

enum { SCHEMA_MOST = 8, RANKS_MOST = 1 << 24 };

typedef struct program {
    export_reader r;
    export_scope scope;
    const orr_export_options *opt;
    orr_json_value root, module, graph, signature;
} program;

/* ---- versions ---- */

/* {"major": 8, "minor": 17}, or a number alone as PyTorch 2.1 wrote it. */
static orr_code read_schema(program *p, orr_error *err)
{
    orr_export_report *r = p->r.report;
    orr_json_value v, part;
    int64_t major = 0, minor = 0;
    orr_code code = ORR_OK;
    if (!orr_json_find(p->root, "schema_version", &v))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(p->root)),
                        "not an exported program: \"schema_version\" is missing");
    if (orr_json_type_of(v) != ORR_JSON_OBJECT)
        code = orr_json_get_i64(v, &major, err);
    else if (!(code = export_member(v, "major", ORR_JSON_INT, &part, err)) &&
             !(code = orr_json_get_i64(part, &major, err)) && orr_json_find(v, "minor", &part))
        code = orr_json_get_i64(part, &minor, err);
    if (code)
        return code;
    if (major < 1 || major > SCHEMA_MOST || minor < 0 || minor > INT32_MAX)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                        "schema version %" PRId64 ".%" PRId64
                        " of exported programs; 1 to %d are supported",
                        major, minor, SCHEMA_MOST);
    r->schema_major = (uint32_t)major;
    r->schema_minor = (uint32_t)minor;
    return ORR_OK;
}

static orr_code copy_text(program *p, orr_str text, orr_str *out, orr_error *err)
{
    char *copy = orr_arena_text(p->r.report->owner, text);
    if (!copy)
        return orr_no_memory(err);
    for (size_t i = 0; i < text.len; i++) /* it is shown on terminals */
        copy[i] = (unsigned char)copy[i] < 0x20 || copy[i] == 0x7F ? '?' : copy[i];
    *out = (orr_str){copy, text.len};
    return ORR_OK;
}

static orr_code read_torch_version(program *p, orr_error *err)
{
    orr_json_value v;
    orr_str text = {"2.4 or older", 12};
    if (orr_json_find(p->root, "torch_version", &v) && orr_json_type_of(v) == ORR_JSON_STRING &&
        orr_json_get_str(v, &text, err))
        return ORR_EINPUT;
    return copy_text(p, text, &p->r.report->torch_version, err);
}

static orr_code read_outline(program *p, orr_error *err)
{
    orr_json_value v;
    orr_code code;
    if (orr_json_type_of(p->root) != ORR_JSON_OBJECT)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(p->root)),
                        "not an exported program: found %s, expected an object",
                        orr_json_type_name(orr_json_type_of(p->root)));
    if ((code = read_schema(p, err)) || (code = read_torch_version(p, err)) ||
        (code = export_member(p->root, "graph_module", ORR_JSON_OBJECT, &p->module, err)) ||
        (code = export_member(p->module, "graph", ORR_JSON_OBJECT, &p->graph, err)) ||
        (code = export_member(p->module, "signature", ORR_JSON_OBJECT, &p->signature, err)))
        return code;
    return orr_json_find(p->root, "range_constraints", &v) ? symbols_ranges(p->r.symbols, v, err)
                                                           : ORR_OK;
}

/* ---- inputs ---- */

/* One of "input_specs": {"parameter": {"arg": {"name": ...}, ...}}. */
static orr_code read_input_spec(program *p, orr_str kind, orr_json_value spec, orr_error *err)
{
    orr_export_report *r = p->r.report;
    orr_json_value arg, name;
    orr_str text;
    export_named *n = NULL;
    orr_code code;
    r->inputs += orr_str_is(kind, "user_input");
    const bool is_parameter = orr_str_is(kind, "parameter");
    if (!is_parameter && !orr_str_is(kind, "buffer") && !orr_str_is(kind, "tensor_constant"))
        return ORR_OK;
    if ((code = export_member(spec, "arg", ORR_JSON_OBJECT, &arg, err)) ||
        (code = export_member(arg, "name", ORR_JSON_STRING, &name, err)) ||
        (code = orr_json_get_str(name, &text, err)) ||
        (code = export_name(&p->scope, text, &n, err)))
        return code;
    n->kept = is_parameter ? FX_KEPT_PARAMETER : FX_KEPT_BUFFER;
    r->parameters += is_parameter;
    r->buffers += !is_parameter;
    return ORR_OK;
}

static orr_code each_spec(
    program *p,
    const char *list,
    orr_code (*read)(program *p, orr_str kind, orr_json_value spec, orr_error *err),
    orr_error *err)
{
    orr_json_value specs, spec, v;
    orr_str kind;
    orr_code code = export_member(p->signature, list, ORR_JSON_ARRAY, &specs, err);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(specs); !code && orr_json_next_value(&it, &spec);) {
        orr_json_iter members = orr_json_iterate(spec);
        if (orr_json_next_member(&members, &kind, &v))
            code = read(p, kind, v, err);
    }
    return code;
}

static orr_code read_inputs(program *p, orr_error *err)
{
    orr_json_value inputs;
    orr_code code = each_spec(p, "input_specs", read_input_spec, err);
    if (code || (code = export_member(p->graph, "inputs", ORR_JSON_ARRAY, &inputs, err)))
        return code;
    orr_json_value input;
    for (orr_json_iter it = orr_json_iterate(inputs); !code && orr_json_next_value(&it, &input);) {
        p->r.names.count = 0;
        code = export_collect(&p->r, input, err);
        for (size_t i = 0; i < p->r.names.count && !code; i++)
            code = export_input(&p->r, &p->scope, p->r.names.at[i], err);
    }
    return code;
}

/* ---- outputs ---- */

static bool is_gradient(orr_str kind)
{
    return orr_str_is(kind, "gradient_to_parameter") || orr_str_is(kind, "gradient_to_user_input");
}

static bool is_mutation(orr_str kind)
{
    return orr_str_is(kind, "buffer_mutation") || orr_str_is(kind, "parameter_mutation") ||
           orr_str_is(kind, "user_input_mutation");
}

/* Before the nodes: is there a backward pass, and where does it start? */
static orr_code find_loss(program *p, orr_str kind, orr_json_value spec, orr_error *err)
{
    orr_json_value arg, name;
    orr_code code;
    p->r.report->is_joint |= is_gradient(kind);
    if (!orr_str_is(kind, "loss_output"))
        return ORR_OK;
    if ((code = export_member(spec, "arg", ORR_JSON_OBJECT, &arg, err)) ||
        (code = export_member(arg, "name", ORR_JSON_STRING, &name, err)))
        return code;
    return orr_json_get_str(name, &p->r.loss, err);
}

static void keep_result(program *p, uint32_t tensor)
{
    fx_graph *g = p->r.g;
    g->storages[g->tensors[tensor].storage].is_result = true;
}

/* The name of the graph input that a mutation writes: buffers and parameters are given by module
 * name. */
static bool is_target(orr_json_value spec, orr_str wanted, orr_json_value *name)
{
    static const char *const keys[] = {"buffer_name", "parameter_name", "user_input_name"};
    orr_json_value v, arg;
    orr_str text;
    for (size_t i = 0; i < 2; i++) {
        if (orr_json_find(spec, keys[i], &v) && orr_json_type_of(v) == ORR_JSON_STRING &&
            !orr_json_get_str(v, &text, NULL) && orr_str_equal(text, wanted))
            return orr_json_find(spec, "arg", &arg) && orr_json_find(arg, "name", name);
    }
    return false;
}

static bool find_target(program *p, orr_str wanted, orr_json_value *name)
{
    orr_json_value specs, spec, v;
    orr_str kind;
    if (!orr_json_find(p->signature, "input_specs", &specs))
        return false;
    for (orr_json_iter it = orr_json_iterate(specs); orr_json_next_value(&it, &spec);) {
        orr_json_iter members = orr_json_iterate(spec);
        if (orr_json_next_member(&members, &kind, &v) && is_target(v, wanted, name))
            return true;
    }
    return false;
}

/* What a mutation writes, as a value of the graph. */
static orr_code mutated(program *p, orr_json_value spec, uint32_t *tensor, orr_error *err)
{
    orr_json_value v, name;
    orr_str text;
    orr_code code;
    if (orr_json_find(spec, "user_input_name", &v)) /* already its name in the graph */
        return export_find(&p->scope, v, tensor, err);
    if (!orr_json_find(spec, "buffer_name", &v) && !orr_json_find(spec, "parameter_name", &v))
        return export_member(spec, "buffer_name", ORR_JSON_STRING, &v, err);
    if ((code = orr_json_get_str(v, &text, err)))
        return code;
    if (find_target(p, text, &name))
        return export_find(&p->scope, name, tensor, err);
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                    "'%.*s' is changed, but is not an input of the program",
                    text.len > 80 ? 80 : (int)text.len, text.ptr);
}

static orr_code add_copy(program *p, orr_json_value spec, uint32_t value, orr_error *err)
{
    uint32_t target = 0;
    const orr_code code = mutated(p, spec, &target, err);
    if (code)
        return code;
    const fx_graph *g = p->r.g;
    if (g->tensors[target].storage == g->tensors[value].storage)
        return ORR_OK; /* written in place already */
    const uint32_t in[] = {target, value};
    const fx_node_draft d = {.in = in,
                             .in_count = 2,
                             .out = &target,
                             .out_count = 1,
                             .writes = &target,
                             .writes_count = 1};
    return export_extra(&p->r, "aten.copy_.default", &d, spec, err);
}

static orr_code read_output_spec(program *p, orr_str kind, orr_json_value spec, orr_error *err)
{
    orr_json_value arg, name;
    uint32_t tensor = 0;
    orr_code code = export_member(spec, "arg", ORR_JSON_OBJECT, &arg, err);
    if (code)
        return code;
    p->r.names.count = 0;
    if (orr_str_is(kind, "token"))
        return ORR_OK;
    if (orr_str_is(kind, "user_output")) {
        p->r.report->outputs++;
        code = export_collect(&p->r, arg, err);
        for (size_t i = 0; i < p->r.names.count && !code; i++) {
            code = export_find(&p->scope, p->r.names.at[i], &tensor, err);
            if (!code)
                keep_result(p, tensor);
        }
        return code;
    }
    p->r.report->outputs += orr_str_is(kind, "loss_output");
    if ((code = export_member(arg, "name", ORR_JSON_STRING, &name, err)) ||
        (code = export_find(&p->scope, name, &tensor, err)))
        return code;
    if (is_mutation(kind))
        return add_copy(p, spec, tensor, err);
    keep_result(p, tensor);
    return ORR_OK;
}

/* ---- everything ---- */

static orr_code read_program(program *p, orr_error *err)
{
    orr_export_report *r = p->r.report;
    orr_code code = read_outline(p, err);
    if (code)
        return code;
    if ((code = export_scope_open(&p->r, &p->scope, p->graph, err)) ||
        (code = symbols_check(p->r.symbols, p->root, err)) ||
        (code = each_spec(p, "output_specs", find_loss, err)))
        return code;
    r->is_joint |= p->r.loss.len > 0;
    p->r.phase = FX_FORWARD;
    if ((code = read_inputs(p, err)) || (code = export_nodes(&p->r, &p->scope, p->graph, err)) ||
        (code = each_spec(p, "output_specs", read_output_spec, err)))
        return code;
    if (p->r.g->node_count == 0)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(p->graph)),
                        "the program does nothing: its graph has no nodes");
    return symbols_report(p->r.symbols, r->owner, &r->symbols, &r->symbol_count, err);
}

/* Group 0, which is all ranks. */
static orr_code add_world(orr_fx *fx, orr_error *err)
{
    uint32_t *ranks = orr_alloc(fx->world_size, sizeof *ranks);
    if (!ranks)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < fx->world_size; i++)
        ranks[i] = i;
    const orr_code code = fx_add_group(fx, ranks, fx->world_size, 0, 0, err);
    orr_free(ranks);
    return code;
}

static orr_code open_reader(program *p, const char *label, orr_error *err)
{
    orr_code code = symbols_create(p->opt->sizes, &p->r.symbols, err);
    if (code || (code = fx_create(label, &p->r.fx, err)))
        return code;
    for (size_t i = 0; i < FX_TEXTS; i++) {
        if (!(p->r.texts[i] = orr_intern_create()))
            return orr_no_memory(err);
    }
    if (p->opt->ranks > RANKS_MOST)
        return orr_fail(err, ORR_EUSAGE, NULL, "%" PRIu32 " ranks; %d at most", p->opt->ranks,
                        RANKS_MOST);
    p->r.fx->world_size = p->opt->ranks ? p->opt->ranks : 1;
    if ((code = add_world(p->r.fx, err)))
        return code;
    return fx_add_graph(p->r.fx, 0, 0, &p->r.g, err);
}

static void close_reader(program *p)
{
    export_scope_close(&p->scope);
    symbols_destroy(p->r.symbols);
    for (size_t i = 0; i < FX_TEXTS; i++)
        orr_intern_destroy(p->r.texts[i]);
    orr_buf_fini(&p->r.text);
    orr_free(p->r.names.at);
    orr_free(p->r.in.at);
    orr_free(p->r.out.at);
    orr_fx_close(p->r.fx);
}

/* Errors found after reading have a byte offset only; adds line and column. */
static orr_code check_all(program *p, const orr_json *j, orr_error *err)
{
    orr_error inner;
    const orr_code code = fx_check(p->r.fx, &inner);
    if (code && err)
        *err = inner;
    if (code == ORR_EINPUT && err && inner.where.byte != ORR_NO_BYTE)
        err->where = orr_json_place(j, inner.where.byte);
    return code;
}

static orr_code read_json(program *p, const source *s, orr_fx **out, orr_error *err)
{
    orr_json *j;
    orr_code code = orr_json_open(s->json, s->label, &j, err);
    if (code)
        return code;
    if (!(code = orr_json_only(j, &p->root, err)) && !(code = open_reader(p, s->label, err)) &&
        !(code = copy_text(p, s->model, &p->r.report->model, err)) &&
        !(code = read_program(p, err)))
        code = check_all(p, j, err);
    if (!code) {
        *out = p->r.fx;
        p->r.fx = NULL;
    }
    orr_json_close(j);
    return code;
}

orr_code orr_export_parse(orr_span bytes,
                          const char *label,
                          const orr_export_options *opt,
                          orr_fx **out,
                          orr_export_report *report,
                          orr_error *err)
{
    static const orr_export_options defaults = {0};
    orr_export_report own = {.owner = orr_arena_create()};
    program p = {.opt = opt ? opt : &defaults, .r.report = &own};
    source s = {0};
    *out = NULL;
    orr_code code =
        own.owner ? open_source(bytes, label, p.opt->model, &s, err) : orr_no_memory(err);
    if (!code)
        code = read_json(&p, &s, out, err);
    close_reader(&p);
    close_source(&s);
    if (code || !report)
        orr_export_report_fini(&own);
    if (report)
        *report = own;
    return code;
}

orr_code orr_export_read(const char *path,
                         const orr_export_options *opt,
                         orr_fx **out,
                         orr_export_report *report,
                         orr_error *err)
{
    orr_input *in;
    *out = NULL;
    if (report)
        *report = (orr_export_report){0};
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_export_parse(orr_input_bytes(in), path, opt, out, report, err);
    orr_input_close(in);
    return code;
}

void orr_export_report_fini(orr_export_report *r)
{
    orr_arena_destroy(r->owner);
    *r = (orr_export_report){0};
}
