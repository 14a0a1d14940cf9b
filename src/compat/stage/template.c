/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - from rows of cells to a validated graph; module files; the built-in modules.
 *
 * Rows may refer to later rows, so all tensors are created before their operands are looked up. */
#include "template.h"
#include "base/formats/csv.h"
#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <stdio.h>
#include <unistd.h>

/* "name" or "name@revision". */
static bool split_id(orr_str id, orr_str *name, uint32_t *revision)
{
    const char *at = id.len ? memrchr(id.ptr, '@', id.len) : NULL;
    uint64_t n = 0;
    *name = at ? (orr_str){id.ptr, (size_t)(at - id.ptr)} : id;
    if (at && !orr_text_u64((orr_str){at + 1, id.len - name->len - 1}, &n))
        return false;
    *revision = (uint32_t)n;
    return name->len > 0 && n <= UINT8_MAX;
}

static orr_code parse_layout(stg_space *s,
                             orr_str shape,
                             orr_str hidden,
                             const stg_cells *c,
                             const char *which,
                             stg_layout *out,
                             orr_error *err)
{
    *out = ORR__NONE;
    if (shape.len == 0 && hidden.len == 0)
        return ORR_OK;
    const orr_code code = stg_layout_parse(s, shape, hidden, &c->where, out, err);
    return code ? orr_because(err, code, "%.*s, %s_shape and %s_hidden", (int)c->id.len, c->id.ptr,
                              which, which)
                : ORR_OK;
}

static orr_code add_row(stg_tgraph *g, const stg_cells *c, orr_error *err)
{
    stg_tensor t = stg_tensor_new(g->space, "", ORR__OP_T);
    orr_str name;
    uint32_t revision;
    stg_op op;
    if (!split_id(c->id, &name, &revision))
        return orr_fail(err, ORR_EINPUT, &c->where,
                        "id '%.*s' is not a name, or a name, '@' and a number below 256",
                        (int)c->id.len, c->id.ptr);
    if (stg_tgraph_find(g, name, revision) != ORR__NONE)
        return orr_fail(err, ORR_EINPUT, &c->where, "there is another tensor '%.*s'",
                        (int)c->id.len, c->id.ptr);
    if (!stg_op_find(c->op, &op))
        return orr_fail(err, ORR_EINPUT, &c->where,
                        "op_type '%.*s' of %.*s is not one of T I S A E E2 M R C B SLICE CUSTOM",
                        (int)c->op.len, c->op.ptr, (int)c->id.len, c->id.ptr);
    t.name = stg_word_of(g->space, name);
    t.revision = (uint8_t)revision;
    t.op = (uint8_t)op;
    t.is_param = c->is_param;
    if (c->attr.len)
        t.attr = stg_word_of(g->space, c->attr);
    orr_code code = parse_layout(g->space, c->shape_a, c->hidden_a, c, "x1", &t.need_a, err);
    if (!code)
        code = parse_layout(g->space, c->shape_b, c->hidden_b, c, "x2", &t.need_b, err);
    if (code)
        return code;
    stg_tgraph_add(g, &t);
    return stg_space_check(g->space, err);
}

static orr_code resolve(const stg_tgraph *g,
                        const stg_cells *c,
                        const char *column,
                        orr_str id,
                        uint32_t *out,
                        orr_error *err)
{
    orr_str name;
    uint32_t revision;
    *out = ORR__NONE;
    if (id.len == 0)
        return ORR_OK;
    if (split_id(id, &name, &revision))
        *out = stg_tgraph_find(g, name, revision);
    if (*out != ORR__NONE)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &c->where, "%s of %.*s: there is no tensor '%.*s'", column,
                    (int)c->id.len, c->id.ptr, (int)id.len, id.ptr);
}

static orr_code resolve_extras(stg_tgraph *g, uint32_t index, const stg_cells *c, orr_error *err)
{
    uint32_t extras[64];
    orr_code code = ORR_OK;
    if (!c->extras)
        return ORR_OK;
    if (c->extra_count > sizeof extras / sizeof *extras)
        return orr_fail(err, ORR_EINPUT, &c->where, "more than 64 data_deps");
    for (size_t i = 0; i < c->extra_count && !code; i++)
        code = resolve(g, c, "data_deps", c->extras[i], &extras[i], err);
    if (!code)
        stg_tgraph_set_extras(g, &g->tensors[index], extras, c->extra_count);
    return code;
}

static orr_code resolve_row(stg_tgraph *g, uint32_t index, const stg_cells *c, orr_error *err)
{
    stg_tensor *t = &g->tensors[index];
    orr_code code;
    if ((code = resolve(g, c, "x1", c->a, &t->a, err)) ||
        (code = resolve(g, c, "x2", c->b, &t->b, err)) ||
        (code = resolve(g, c, "grad_of", c->grad_of, &t->grad_of, err)) ||
        (code = resolve_extras(g, index, c, err)))
        return code;
    return stg_tensor_check(g, index, &c->where, err);
}

/* Build a graph from rows.  g: a named graph without tensors. */
static orr_code stg_module_build(stg_tgraph *g, const stg_cells *rows, size_t count, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < count && !code; i++)
        code = add_row(g, &rows[i], err);
    for (size_t i = 0; i < count && !code; i++)
        code = resolve_row(g, (uint32_t)i, &rows[i], err);
    return code ? code : stg_space_check(g->space, err);
}

/* ---- the library ---- */

void stg_library_fini(stg_library *lib)
{
    for (size_t i = 0; i < lib->count; i++)
        stg_tgraph_fini(&lib->graphs[i]);
}

/* The user's folder has one folder per family, as the reference's, or the modules themselves. */
static orr_code read_own(stg_library *lib,
                         stg_tgraph *g,
                         const char *kind,
                         const char *name,
                         bool *is_there,
                         orr_error *err)
{
    char folder[4096];
    *is_there = false;
    if (!lib->folder)
        return ORR_OK;
    const int n = snprintf(folder, sizeof folder, "%s/%s", lib->folder, kind);
    if (n < 0 || (size_t)n >= sizeof folder)
        return orr_fail(err, ORR_EUSAGE, NULL, "the name of the template folder is too long");
    orr_code code = stg_module_read(g, folder, name, is_there, err);
    if (!code && !*is_there)
        code = stg_module_read(g, lib->folder, name, is_there, err);
    return code;
}

orr_code stg_library_get(stg_library *lib, const char *name, const stg_tgraph **out, orr_error *err)
{
    const bool is_attention = strncmp(name, "group_query", 11) == 0;
    const char *kind = is_attention ? lib->attention : lib->kind;
    bool is_own = false;
    for (size_t i = 0; i < lib->count; i++) {
        if (strcmp(lib->names[i], name) == 0) {
            *out = &lib->graphs[i];
            return ORR_OK;
        }
    }
    if (lib->count == ORR__MODULES_MOST)
        return orr_fail(err, ORR_EBUG, NULL, "a model of more than %d modules", ORR__MODULES_MOST);
    stg_tgraph *g = &lib->graphs[lib->count];
    lib->names[lib->count++] = name;
    stg_tgraph_init_named(g, lib->space);
    orr_code code = stg_space_check(lib->space, err);
    if (!code)
        code = read_own(lib, g, kind, name, &is_own, err);
    lib->has_own |= is_own;
    if (!code && !is_own)
        code = stg_module_builtin(g, kind, name, err);
    *out = g;
    return code;
}

/* Modules from pairs of files: NAME.csv with one row per tensor, NAME.json about the whole
 * (docs/format/template.md).
 *
 * The JSON file does not affect the graph; it is only cross-checked: its symbols must be those of
 * the layouts, its inputs must be placeholders. */

enum { COLUMNS = 12, COLUMNS_LEAST = 11 };

static const char *const columns[COLUMNS] = {
    "id",       "require_grads", "x1",       "x2",        "op_type", "op_attr",
    "x1_shape", "x1_hidden",     "x2_shape", "x2_hidden", "grad_of", "extra_attr",
};

typedef struct reader {
    orr_csv csv;
    orr_arena *arena;
    stg_cells *rows;
    size_t count, room;
    size_t column_count;
    orr_error *err;
} reader;

/* ---- the table ---- */

static orr_code read_header(reader *r)
{
    orr_csv_row row;
    const orr_where top = orr_where_line(r->csv.path, 1, 1);
    const orr_code code = orr_csv_next(&r->csv, &row, r->err);
    if (code == ORR_END)
        return orr_fail(r->err, ORR_EINPUT, &top, "the file is empty");
    if (code)
        return code;
    for (size_t i = 0; i < COLUMNS && i < row.count; i++) {
        if (!orr_str_is(row.fields[i].text, columns[i]))
            return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_csv_where(&r->csv, &row.fields[i])),
                            "column %zu is '%.*s' and must be '%s'", i + 1,
                            (int)row.fields[i].text.len, row.fields[i].text.ptr, columns[i]);
    }
    if (row.count < COLUMNS_LEAST || row.count > COLUMNS)
        return orr_fail(r->err, ORR_EINPUT, &top, "%zu columns; a module has %d or %d", row.count,
                        COLUMNS_LEAST, COLUMNS);
    r->column_count = row.count;
    return ORR_OK;
}

static orr_str copy_text(reader *r, orr_str s, bool *failed)
{
    const char *copy = s.len ? orr_arena_text(r->arena, s) : NULL;
    *failed |= s.len && !copy;
    return (orr_str){copy, copy ? s.len : 0};
}

/* {"data_deps": ["a", "b"], ...} in a cell; errors are reported at the cell. */
static orr_code read_names(reader *r, stg_cells *c, orr_json_value list)
{
    orr_str *names = orr_arena_new(r->arena, orr_json_count(list) + 1u, orr_str);
    orr_json_iter it = orr_json_iterate(list);
    orr_json_value v;
    bool failed = !names;
    while (!failed && orr_json_next_value(&it, &v)) {
        orr_str name;
        const orr_code code = orr_json_get_str(v, &name, r->err);
        if (code)
            return code;
        names[c->extra_count++] = copy_text(r, name, &failed);
    }
    c->extras = names;
    return failed ? orr_no_memory(r->err) : ORR_OK;
}

static orr_code read_extra_object(reader *r, stg_cells *c, orr_json *j)
{
    orr_json_value root, deps;
    orr_code code = orr_json_only(j, &root, r->err);
    if (code)
        return code;
    if (orr_json_type_of(root) != ORR_JSON_OBJECT)
        return orr_fail(r->err, ORR_EINPUT, &c->where, "extra_attr is not a JSON object");
    if (!orr_json_find(root, "data_deps", &deps))
        return ORR_OK;
    if (orr_json_type_of(deps) != ORR_JSON_ARRAY)
        return orr_fail(r->err, ORR_EINPUT, &c->where, "data_deps in extra_attr is not an array");
    return read_names(r, c, deps);
}

static orr_code read_extra(reader *r, stg_cells *c, orr_str text)
{
    const orr_span bytes = {(const uint8_t *)text.ptr, text.len};
    orr_json *j;
    orr_code code = orr_json_open(bytes, r->csv.path, &j, r->err);
    if (!code)
        code = read_extra_object(r, c, j);
    orr_json_close(j);
    if (code == ORR_EINPUT) {
        if (r->err)
            r->err->where = c->where;
        orr_because(r->err, code, "extra_attr");
    }
    return code;
}

static orr_code read_cells(reader *r, const orr_csv_row *row, stg_cells *c)
{
    orr_str cell[COLUMNS] = {{NULL, 0}};
    bool failed = false;
    for (size_t i = 0; i < row->count; i++)
        cell[i] = copy_text(r, row->fields[i].text, &failed);
    if (failed)
        return orr_no_memory(r->err);
    *c = (stg_cells){.id = cell[0],
                     .a = cell[2],
                     .b = cell[3],
                     .op = cell[4],
                     .attr = cell[5],
                     .shape_a = cell[6],
                     .hidden_a = cell[7],
                     .shape_b = cell[8],
                     .hidden_b = cell[9],
                     .grad_of = cell[10],
                     .is_param = orr_str_is(cell[1], "Y"),
                     .where = orr_csv_where(&r->csv, &row->fields[0])};
    if (!c->is_param && !orr_str_is(cell[1], "N"))
        return orr_fail(r->err, ORR_EINPUT, &c->where, "require_grads is '%.*s' and must be Y or N",
                        (int)cell[1].len, cell[1].len ? cell[1].ptr : "");
    return cell[11].len ? read_extra(r, c, cell[11]) : ORR_OK;
}

static bool is_empty(const orr_csv_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        if (row->fields[i].text.len)
            return false;
    }
    return true;
}

static orr_code read_rows(reader *r)
{
    orr_csv_row row;
    orr_code code = read_header(r);
    while (!code && (code = orr_csv_next(&r->csv, &row, r->err)) == ORR_OK) {
        if (is_empty(&row))
            continue;
        if (row.count > r->column_count)
            return orr_fail(r->err, ORR_EINPUT, ORR_AT(orr_where_line(r->csv.path, row.line, 1)),
                            "%zu cells in a table of %zu columns", row.count, r->column_count);
        if (!orr_grow(&r->rows, &r->room, r->count + 1))
            return orr_no_memory(r->err);
        code = read_cells(r, &row, &r->rows[r->count]);
        r->count++;
    }
    return code == ORR_END ? ORR_OK : code;
}

/* ---- the JSON file ---- */

/* The member of that name, an array of strings. */
static orr_code find_list(orr_json_value root, const char *key, orr_json_value *out, orr_error *err)
{
    if (!orr_json_find(root, key, out))
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(root)), "there is no \"%s\"", key);
    if (orr_json_type_of(*out) == ORR_JSON_ARRAY)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(*out)), "\"%s\" is not an array", key);
}

static orr_code check_symbols(const stg_tgraph *g, orr_json_value root, orr_error *err)
{
    stg_algebra *a = &g->space->algebra;
    const uint64_t used = stg_tgraph_symbols(g, g->count);
    uint64_t named = 0;
    orr_json_value list, v;
    orr_str name;
    orr_code code = find_list(root, "symbols", &list, err);
    if (code)
        return code;
    const orr_where at = orr_json_where(list);
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        if ((code = orr_json_get_str(v, &name, err)))
            return code;
        named |= UINT64_C(1) << stg_symbol(a, name);
    }
    if ((code = stg_algebra_check(a, &at, "symbols", err)))
        return code;
    if (named == used)
        return ORR_OK;
    const uint32_t odd = (uint32_t)__builtin_ctzll(named ^ used);
    name = stg_symbol_name(a, odd);
    return orr_fail(err, ORR_EINPUT, &at, "symbol '%.*s' is %s", (int)name.len, name.ptr,
                    named >> odd & 1 ? "listed but in no layout of the table"
                                     : "in a layout of the table but not listed");
}

static orr_code check_tensors(
    const stg_tgraph *g, orr_json_value root, const char *key, bool are_inputs, orr_error *err)
{
    orr_json_value list, v;
    orr_str name;
    orr_code code = find_list(root, key, &list, err);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(list); orr_json_next_value(&it, &v);) {
        if ((code = orr_json_get_str(v, &name, err)))
            return code;
        const char *mark = name.len ? memchr(name.ptr, '@', name.len) : NULL;
        if (mark)
            name.len = (size_t)(mark - name.ptr);
        const uint32_t t = stg_tgraph_find(g, name, 0);
        const bool is_there = t != ORR__NONE;
        if (is_there && (!are_inputs || g->tensors[t].op == ORR__OP_T))
            continue;
        const orr_where at = orr_json_where(v);
        return is_there
                   ? orr_fail(err, ORR_EINPUT, &at, "%s: '%.*s' is not a placeholder (T)", key,
                              (int)name.len, name.ptr)
                   : orr_fail(err, ORR_EINPUT, &at, "%s: there is no tensor '%.*s' in the table",
                              key, (int)name.len, name.ptr);
    }
    return ORR_OK;
}

static orr_code check_summary(const stg_tgraph *g, orr_json *j, orr_error *err)
{
    orr_json_value root;
    orr_code code;
    if ((code = orr_json_only(j, &root, err)) || (code = check_symbols(g, root, err)) ||
        (code = check_tensors(g, root, "in_tensors", true, err)))
        return code;
    return check_tensors(g, root, "out_tensors", false, err);
}

/* ---- both ---- */

orr_code stg_module_parse(stg_tgraph *g,
                          orr_span csv,
                          const char *csv_path,
                          orr_span json,
                          const char *json_path,
                          orr_error *err)
{
    reader r = {.err = err, .arena = orr_arena_create()};
    orr_json *j = NULL;
    if (!r.arena)
        return orr_no_memory(err);
    orr_csv_init(&r.csv, csv, csv_path);
    orr_code code = read_rows(&r);
    if (!code)
        code = stg_module_build(g, r.rows, r.count, err);
    if (!code)
        code = orr_json_open(json, json_path, &j, err);
    if (!code)
        code = check_summary(g, j, err);
    orr_json_close(j);
    orr_csv_fini(&r.csv);
    orr_free(r.rows);
    orr_arena_destroy(r.arena);
    return code;
}

static orr_code name_file(
    char *out, size_t size, const char *folder, const char *name, const char *end, orr_error *err)
{
    const int n = snprintf(out, size, "%s/%s.%s", folder, name, end);
    if (n < 0 || (size_t)n >= size)
        return orr_fail(err, ORR_EUSAGE, NULL, "the name of the template folder is too long");
    return ORR_OK;
}

orr_code stg_module_read(
    stg_tgraph *g, const char *folder, const char *name, bool *is_there, orr_error *err)
{
    char csv_path[4096], json_path[4096];
    orr_input *csv = NULL, *json = NULL;
    orr_code code = name_file(csv_path, sizeof csv_path, folder, name, "csv", err);
    if (!code)
        code = name_file(json_path, sizeof json_path, folder, name, "json", err);
    *is_there = !code && access(csv_path, F_OK) == 0;
    if (code || !*is_there)
        return code;
    code = orr_input_open(csv_path, &csv, err);
    if (!code)
        code = orr_input_open(json_path, &json, err);
    if (!code)
        code = stg_module_parse(g, orr_input_bytes(csv), csv_path, orr_input_bytes(json), json_path,
                                err);
    orr_input_close(csv);
    orr_input_close(json);
    return code;
}

/* The built-in modules, in a shorthand.
 *
 * The families of modules differ in three ways only, so each module is written once:
 *
 *     r  a rank's part of the sequence outside tensor-parallel products: divided by tp, or not
 *     K  the heads that keys and values have: as many as queries, or fewer
 *     i  the rows of an embedding: whole, or divided by tp
 *
 * A layout is "extent,extent@hidden"; without @ the values are complete sums.  Single letters are
 * the extents below, anything longer is an expression.  A $ in an attribute is K. */

typedef struct row {
    const char *id, *op, *a, *layout_a, *b, *layout_b, *attr, *grad_of, *extras;
} row;

typedef struct letter {
    char letter;
    const char *text;
} letter;

static const letter letters[] = {
    {'b', "Batch/dp"},
    {'s', "Seq/cp"},
    {'S', "Seq"},
    {'m', "Dmodel"},
    {'n', "Dmodel/ep"},
    {'d', "Dmodel/Head"},
    {'h', "Head/tp"},
    {'k', "$/tp"},
    {'u', "2*$/tp"},
    {'w', "(Head+2*$)/tp"},
    {'F', "Dff"},
    {'f', "Dff/tp"},
    {'o', "Dout"},
    {'e', "KExperts"},
    {'q', "Seq*KExperts/(cp*tp)"},            /* tokens, once per expert they go to */
    {'g', "Seq*KExperts/(cp*tp*ep)"},         /* of these, a rank's share */
    {'x', "Seq*KExperts/(Experts*cp*tp*ep)"}, /* of these, one expert's share */
    {0, NULL},
};

/* ---- the modules ---- */

#define INPUT(id, layout)             \
    {                                 \
        id, "T", .layout_a = (layout) \
    }
#define WEIGHT(id, layout)            \
    {                                 \
        id, "W", .layout_a = (layout) \
    } /* T with require_grads */

static const row embedding[] = {
    INPUT("x", "b,r,i"),
    WEIGHT("w", "i,o"),
    {"y", "M", "x", "b,r,i", "w", "i,o", "bsm,mn->bsn"},
    {"dy", "T", .layout_a = "b,r,o", .grad_of = "y"},
    {"dw", "M", "dy", "b,r,o", "x", "b,r,i", "bsn,bsm->mn", "w"},
    {"dx", "M", "dy", "b,r,o", "w", "i,o", "bsn,mn->bsm", "x"},
    {0},
};

static const row layer_norm[] = {
    INPUT("x", "b,r,m"),
    {"y", "E", "x", "b,r,m", .attr = "5"},
    {"dy", "T", .layout_a = "b,r,m", .grad_of = "y"},
    {"dx", "E", "dy", "b,r,m", .attr = "5", .grad_of = "x"},
    {0},
};

static const row residual[] = {
    INPUT("x1", "b,r,m"),
    INPUT("x2", "b,r,m"),
    {"y", "A", "x1", "b,r,m", "x2", "b,r,m"},
    {"dy", "T", .layout_a = "b,r,m", .grad_of = "y"},
    {"dx1", "I", "dy", "b,r,m", .grad_of = "x1"},
    {"dx2", "I", "dy", "b,r,m", .grad_of = "x2"},
    {0},
};

static const row loss[] = {
    INPUT("y", "b,r,m"),
    {"loss", "E", "y", "b,r,m", .attr = "5"},
    {"dy", "E", "loss", "b,r,m", .attr = "5"},
    {0},
};

static const row attention[] = {
    INPUT("x", "b,r,m"),
    WEIGHT("wqkv", "m,d,w"),
    {"qkv", "M", "x", "b,s,m", "wqkv", "m,d,w", "bsm,mnh->bsnh"},
    {"q", "SLICE", "qkv", "b,s,d,w", .attr = "3:Head/tp"},
    {"k", "SLICE", "qkv", "b,s,d,w", .attr = "3:$/tp"},
    {"v", "SLICE", "qkv", "b,s,d,w", .attr = "3:$/tp"},
    INPUT("attn", "b,s,d,h"),
    WEIGHT("wo", "d,h,m"),
    {"o1", "M", "attn", "b,s,d,h", "wo", "d,h,m", "bsmh,mhn->bsn"},
    {"o", "I", "o1", "b,r,m"},
    {"do", "T", .layout_a = "b,r,m", .grad_of = "o"},
    {"do1", "I", "do", "b,s,m", .grad_of = "o1"},
    {"dattn", "M", "do1", "b,s,m", "wo", "d,h,m", "bsn,mhn->bsmh"},
    {"dwo", "M", "do1", "b,s,m", "attn", "b,s,d,h", "bsn,bsmh->mhn", "wo"},
    {"dv", "T", .layout_a = "b,s,d,k", .grad_of = "v"},
    {"dk", "T", .layout_a = "b,s,d,k", .grad_of = "k"},
    {"dq", "T", .layout_a = "b,s,d,h", .grad_of = "q"},
    {"dkv", "SLICE", "dv", "b,s,d,k", "dk", "b,s,d,k", "3:2*$/tp"},
    {"dqkv", "SLICE", "dkv", "b,s,d,u", "dq", "b,s,d,h", "3:(2*$+Head)/tp", "qkv"},
    {"dwqkv", "M", "dqkv", "b,s,d,w", "x", "b,s,m", "bsnh,bsm->mnh", "wqkv"},
    {"dx1", "M", "dqkv", "b,s,d,w", "wqkv", "m,d,w", "bsnh,mnh->bsm"},
    {"dx", "I", "dx1", "b,r,m"},
    {0},
};

/* As in the reference, the cost of the kernel is linear in the sequence length. */
#define KERNEL_OPS(times) "Batch/dp*Seq/cp*Dmodel/Head*Head/tp*" times

#define KERNEL_FORWARD                                                                      \
    INPUT("q", "b,s,d,h"), INPUT("k", "b,s,d,k"), INPUT("v", "b,s,d,k"),                    \
        {"k1", "I", "k", "b,S,d,k"}, {"v1", "I", "v", "b,S,d,k"}, {"qkv",                   \
                                                                   "CUSTOM",                \
                                                                   "q",                     \
                                                                   "b,s,d,h",               \
                                                                   .layout_b = "b,s,d,h",   \
                                                                   .attr = KERNEL_OPS("3"), \
                                                                   .extras = "k1 v1"},      \
        {"dqkv", "T", .layout_a = "b,s,d,h", .grad_of = "qkv"},                             \
    {                                                                                       \
        "dq", "CUSTOM", "dqkv", "b,s,d,h", .layout_b = "b,s,d,h", .attr = KERNEL_OPS("6"),  \
                                           .grad_of = "q"                                   \
    }

#define KERNEL_GRADIENT(id)                                                                  \
    {                                                                                        \
        id, "CUSTOM", "dqkv", "b,s,d,h", .layout_b = "b,S,d,h@1/cp", .attr = KERNEL_OPS("6") \
    }

static const row kernel[] = {
    KERNEL_FORWARD,
    KERNEL_GRADIENT("dk"),
    KERNEL_GRADIENT("dv"),
    {0},
};

static const row kernel_grouped[] = {
    KERNEL_FORWARD,
    KERNEL_GRADIENT("dk1"),
    KERNEL_GRADIENT("dv1"),
    {"dk", "SLICE", "dk1", "b,s,d,h", .attr = "3:$/tp", .grad_of = "k"},
    {"dv", "SLICE", "dv1", "b,s,d,h", .attr = "3:$/tp", .grad_of = "v"},
    {0},
};

static const row feed_forward[] = {
    INPUT("x0", "b,r,m"),
    WEIGHT("wgate", "m,f"),
    WEIGHT("wdown", "f,m"),
    {"x00", "I", "x0", "b,s,m"},
    {"xgate", "M", "x00", "b,s,m", "wgate", "m,f", "bsm,mn->bsn"},
    {"xdown1", "M", "xgate", "b,s,f", "wdown", "f,m", "bsm,mn->bsn"},
    {"xdown", "I", "xdown1", "b,r,F"}, /* Dff: a slip of the reference, visible only in names and
                                        * shapes */
    {"dxdown", "T", .layout_a = "b,r,m", .grad_of = "xdown"},
    {"dxdown2", "I", "dxdown", "b,s,m"},
    {"dwdown", "M", "dxdown2", "b,s,m", "xgate", "b,s,f", "bsn,bsm->mn", "wdown"},
    {"dxgate", "M", "dxdown2", "b,s,m", "wdown", "f,m", "bsn,mn->bsm", "xgate"},
    {"x01", "I", "x0", "b,s,m"},
    {"dwgate", "M", "dxgate", "b,s,f", "x01", "b,s,m", "bsn,bsm->mn", "wgate"},
    {"dx000", "M", "dxgate", "b,s,f", "wgate", "m,f", "bsn,mn->bsm"},
    {"dx0", "I", "dx000", "b,r,m"},
    {0},
};

static const row feed_forward_gated[] = {
    INPUT("x0", "b,r,m"),
    WEIGHT("wup", "m,f"),
    WEIGHT("wgate", "m,f"),
    WEIGHT("wdown", "f,m"),
    {"x00", "I", "x0", "b,s,m"},
    {"xup", "M", "x00", "b,s,m", "wup", "m,f", "bsm,mn->bsn"},
    {"xgate", "M", "x00", "b,s,m", "wgate", "m,f", "bsm,mn->bsn"},
    {"xupgate", "M", "xup", "b,s,f", "xgate", "b,s,f", "bsm,bsm->bsm"},
    {"xdown1", "M", "xupgate", "b,s,f", "wdown", "f,m", "bsm,mn->bsn"},
    {"xdown", "I", "xdown1", "b,r,F"},
    {"dxdown", "T", .layout_a = "b,r,m", .grad_of = "xdown"},
    {"dxdown2", "I", "dxdown", "b,s,m"},
    {"dwdown", "M", "dxdown2", "b,s,m", "xupgate", "b,s,f", "bsn,bsm->mn", "wdown"},
    {"dxupgate", "M", "dxdown2", "b,s,m", "wdown", "f,m", "bsn,mn->bsm", "xupgate"},
    {"dxup", "M", "dxupgate", "b,s,f", "xgate", "b,s,f", "bsm,bsm->bsm", "xup"},
    {"dxgate", "M", "dxupgate", "b,s,f", "xup", "b,s,f", "bsm,bsm->bsm", "xgate"},
    {"x01", "I", "x0", "b,s,m"},
    {"dwup", "M", "dxup", "b,s,f", "x01", "b,s,m", "bsn,bsm->mn", "wup"},
    {"dwgate", "M", "dxgate", "b,s,f", "x01", "b,s,m", "bsn,bsm->mn", "wgate"},
    {"dx00", "M", "dxup", "b,s,f", "wup", "m,f", "bsn,mn->bsm"},
    {"dx01", "M", "dxgate", "b,s,f", "wgate", "m,f", "bsn,mn->bsm"},
    {"dx000", "A", "dx00", "b,s,m@1/tp", "dx01", "b,s,m@1/tp", .grad_of = "x0"},
    {"dx0", "I", "dx000", "b,r,m"},
    {0},
};

static const row moe_frame[] = {
    INPUT("x", "b,r,m"),
    WEIGHT("wrouter", "n,e"),
    {"yrouter", "M", "x", "b,r,m", "wrouter", "m,e", "bsm,mn->bsn"},
    {"yrouter2", "R", "yrouter", "b,r,e", .layout_b = "b,q,1"},
    {"x1", "B", "x", "b,r,n", .attr = "1*KExperts"},
    {"xrouted", "I", "x1", "b,g,m"},
    INPUT("yrouted", "b,g,m"),
    {"y1", "I", "yrouted", "b,q,n"},
    {"yrouter3", "SLICE", "yrouter2", "b,q,1", .attr = "2:Dmodel/(1*ep)"},
    {"y2", "E2", "y1", "b,q,n", "yrouter3", "b,q,n", "1"},
    {"y", "B", "y2", "b,q,n", .attr = "1*1/KExperts"},
    INPUT("dy", "b,r,n"),
    {"dy2", "B", "dy", "b,r,n", .attr = "1*KExperts"},
    {"dy1", "E2", "dy2", "b,q,n", "yrouter3", "b,q,n", "1"},
    {"dyrouter3", "E2", "dy2", "b,q,n", "y1", "b,q,n", "1"},
    {"dyrouter2", "SLICE", "dyrouter3", "b,q,n", .attr = "2:1"},
    {"dyrouted", "I", "dy1", "b,g,m"},
    {"dyrouter", "R", "dyrouter2", "b,q,1", .layout_b = "b,r,e"},
    {"dwrouter", "M", "dyrouter", "b,r,e", "x", "b,r,n", "bsn,bsm->mn", "wrouter"},
    {"dx01", "M", "dyrouter", "b,r,e", "wrouter", "n,e", "bsn,mn->bsm"},
    INPUT("dxrouted", "b,g,m"),
    {"dx1", "I", "dxrouted", "b,q,n"},
    {"dx02", "B", "dx1", "b,q,n", .attr = "1*1/KExperts"},
    {"dx", "A", "dx01", "b,r,n", "dx02", "b,r,n"},
    {0},
};

#define ROUTED "1:(Seq/cp)*KExperts/(tp*ep)"
#define OF_EXPERT "1:(Seq/cp)*KExperts/(Experts*tp*ep)"

static const row expert_wrapper[] = {
    INPUT("x", "b,g,m"),
    {"x_expert", "SLICE", "x", "b,g,m", .attr = OF_EXPERT},
    INPUT("dx_expert", "b,x,m"),
    {"dx", "SLICE", "dx_expert", "b,x,m", .attr = ROUTED},
    INPUT("y_expert", "b,x,m"),
    {"y", "SLICE", "y_expert", "b,x,m", .attr = ROUTED},
    INPUT("dy", "b,g,m"),
    {"dy_expert", "SLICE", "dy", "b,g,m", .attr = OF_EXPERT},
    {0},
};

/* ---- families ---- */

typedef struct family {
    const char *kind, *rows, *heads, *input;
    const row *kernel, *feed_forward;
} family;

#define DIVIDED "Seq/(cp*tp)"

static const family families[] = {
    {"tpsp_gpt", DIVIDED, "Head", "Din", kernel, feed_forward},
    {"tp_gpt", "Seq/cp", "Head", "Din/tp", kernel, feed_forward},
    {"tpsp", DIVIDED, "KVHead", "Din", kernel_grouped, feed_forward_gated},
    {"tpsp_moe", DIVIDED, "KVHead", "Din", kernel_grouped, feed_forward},
};

static const row *find_rows(const family *f, const char *name)
{
    const struct {
        const char *name;
        const row *rows;
    } modules[] = {
        {"embedding", embedding},
        {"layer_norm", layer_norm},
        {"residual", residual},
        {"loss", loss},
        {"group_query_attention_surrounding", attention},
        {"group_query_attention_kernel_fused", f->kernel},
        {"llama_feed_forward_network", f->feed_forward},
        {"moe_frame", moe_frame},
        {"expert_wrapper", expert_wrapper},
    };
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (strcmp(modules[i].name, name) == 0)
            return modules[i].rows;
    }
    return NULL;
}

/* ---- from shorthand to cells ---- */

typedef struct writer {
    const family *f;
    orr_arena *arena;
    orr_buf text;
    bool failed;
} writer;

static orr_str keep(writer *w)
{
    const orr_str s = {(const char *)w->text.ptr, w->text.len};
    const char *copy = w->text.failed ? NULL : orr_arena_text(w->arena, s);
    w->failed |= !copy;
    w->text.len = 0;
    return (orr_str){copy, copy ? s.len : 0};
}

static void put_text(writer *w, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '$')
            orr_buf_text(&w->text, w->f->heads);
        else
            orr_buf_byte(&w->text, (uint8_t)text[i]);
    }
}

static void put_extent(writer *w, const char *text, size_t len)
{
    const char *known = NULL;
    for (const letter *l = letters; len == 1 && l->letter; l++) {
        if (l->letter == *text)
            known = l->text;
    }
    if (len == 1 && *text == 'r')
        known = w->f->rows;
    if (len == 1 && *text == 'i')
        known = w->f->input;
    put_text(w, known ? known : text, known ? strlen(known) : len);
}

static orr_str expand_shape(writer *w, const char *layout)
{
    const char *end = layout + strcspn(layout, "@");
    while (layout < end) {
        const size_t len = strcspn(layout, ",@");
        put_extent(w, layout, len);
        layout += len;
        if (*layout == ',') {
            orr_buf_byte(&w->text, ',');
            layout++;
        }
    }
    return keep(w);
}

static orr_str hidden_of(const char *layout)
{
    const char *at = strchr(layout, '@');
    return orr_str_of(at ? at + 1 : "1");
}

static orr_str expand_attr(writer *w, const char *attr)
{
    put_text(w, attr, strlen(attr));
    return keep(w);
}

/* Names separated by blanks. */
static const orr_str *split_names(writer *w, const char *names, size_t *count)
{
    orr_str *out = orr_arena_new(w->arena, strlen(names), orr_str);
    w->failed |= !out;
    for (*count = 0; out && *names; names += strspn(names, " ")) {
        const size_t len = strcspn(names, " ");
        out[(*count)++] = (orr_str){names, len};
        names += len;
    }
    return out;
}

static orr_str given(const char *s)
{
    return s ? orr_str_of(s) : (orr_str){NULL, 0};
}

static stg_cells cells_of(writer *w, const row *r)
{
    stg_cells c = {.id = given(r->id),
                   .a = given(r->a),
                   .b = given(r->b),
                   .grad_of = given(r->grad_of),
                   .is_param = strcmp(r->op, "W") == 0};
    c.op = orr_str_of(c.is_param ? "T" : r->op);
    c.shape_a = expand_shape(w, r->layout_a);
    c.hidden_a = hidden_of(r->layout_a);
    if (r->layout_b) {
        c.shape_b = expand_shape(w, r->layout_b);
        c.hidden_b = hidden_of(r->layout_b);
    }
    if (r->attr)
        c.attr = expand_attr(w, r->attr);
    if (r->extras)
        c.extras = split_names(w, r->extras, &c.extra_count);
    return c;
}

static orr_code build(writer *w, stg_tgraph *g, const row *rows, orr_error *err)
{
    size_t count = 0;
    while (rows[count].id)
        count++;
    stg_cells *cells = orr_arena_new(w->arena, count, stg_cells);
    for (size_t i = 0; cells && i < count; i++)
        cells[i] = cells_of(w, &rows[i]);
    return cells && !w->failed ? stg_module_build(g, cells, count, err) : orr_no_memory(err);
}

orr_code stg_module_builtin(stg_tgraph *g, const char *kind, const char *name, orr_error *err)
{
    const row *rows = NULL;
    writer w = {0};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].kind, kind) == 0)
            w.f = &families[i];
    }
    if (w.f)
        rows = find_rows(w.f, name);
    if (!rows)
        return orr_fail(err, ORR_EBUG, NULL, "there is no module %s/%s", kind, name);
    w.arena = orr_arena_create();
    const orr_code code = w.arena ? build(&w, g, rows, err) : orr_no_memory(err);
    orr_arena_destroy(w.arena);
    orr_buf_fini(&w.text);
    return code;
}
