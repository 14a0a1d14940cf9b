/* SPDX-License-Identifier: Apache-2.0 */
/* template_read.c - modules from pairs of files: NAME.csv with a row a tensor, NAME.json with what is said of
 * the whole (docs/format/template.md).
 *
 * Nothing in the JSON file changes the graph; it is there to be compared: the symbols it names must be those of
 * the layouts, the tensors that come from outside must be placeholders. */
#include "template.h"

#include "base/formats/csv.h"
#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/text/text.h"

#include <stdio.h>
#include <unistd.h>

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
        const orr_where at = orr_csv_where(&r->csv, &row.fields[i]);
        if (!orr_str_is(row.fields[i].text, columns[i]))
            return orr_fail(r->err, ORR_EINPUT, &at, "column %zu is '%.*s' and must be '%s'", i + 1,
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

/* {"data_deps": ["a", "b"], ...} in a cell; a fault in it lies, for the reader, in the cell. */
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
        const orr_where at = orr_where_line(r->csv.path, row.line, 1);
        if (is_empty(&row))
            continue;
        if (row.count > r->column_count)
            return orr_fail(r->err, ORR_EINPUT, &at, "%zu cells in a table of %zu columns",
                            row.count, r->column_count);
        if (!orr_grow(&r->rows, &r->room, r->count + 1))
            return orr_no_memory(r->err);
        code = read_cells(r, &row, &r->rows[r->count]);
        r->count++;
    }
    return code == ORR_END ? ORR_OK : code;
}

/* ---- what the JSON file says ---- */

/* The member of that name, an array of texts. */
static orr_code find_list(orr_json_value root, const char *key, orr_json_value *out, orr_error *err)
{
    const orr_where at = orr_json_where(root);
    if (!orr_json_find(root, key, out))
        return orr_fail(err, ORR_EINPUT, &at, "there is no \"%s\"", key);
    if (orr_json_type_of(*out) == ORR_JSON_ARRAY)
        return ORR_OK;
    const orr_where there = orr_json_where(*out);
    return orr_fail(err, ORR_EINPUT, &there, "\"%s\" is not an array", key);
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
        const orr_where at = orr_json_where(v);
        const char *mark = name.len ? memchr(name.ptr, '@', name.len) : NULL;
        if (mark)
            name.len = (size_t)(mark - name.ptr);
        const uint32_t t = stg_tgraph_find(g, name, 0);
        if (t == ORR__NONE)
            return orr_fail(err, ORR_EINPUT, &at, "%s: there is no tensor '%.*s' in the table", key,
                            (int)name.len, name.ptr);
        if (are_inputs && g->tensors[t].op != ORR__OP_T)
            return orr_fail(err, ORR_EINPUT, &at, "%s: '%.*s' is not a placeholder (T)", key,
                            (int)name.len, name.ptr);
    }
    return ORR_OK;
}

static orr_code check_summary(const stg_tgraph *g, orr_json *j, orr_error *err)
{
    orr_json_value root;
    orr_code code = orr_json_only(j, &root, err);
    if (!code)
        code = check_symbols(g, root, err);
    if (!code)
        code = check_tensors(g, root, "in_tensors", true, err);
    return code ? code : check_tensors(g, root, "out_tensors", false, err);
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
