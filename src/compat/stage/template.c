/* SPDX-License-Identifier: Apache-2.0 */
/* template.c - from rows of cells to a checked graph, and the library that keeps the modules of a model.
 *
 * Rows may refer to rows below them, so tensors are made first and their operands looked up afterwards. */
#include "template.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <stdio.h>

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
                             orr__layout *out,
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
    orr_code code = resolve(g, c, "x1", c->a, &t->a, err);
    if (!code)
        code = resolve(g, c, "x2", c->b, &t->b, err);
    if (!code)
        code = resolve(g, c, "grad_of", c->grad_of, &t->grad_of, err);
    if (!code)
        code = resolve_extras(g, index, c, err);
    return code ? code : stg_tensor_check(g, index, &c->where, err);
}

orr_code stg_module_build(stg_tgraph *g, const stg_cells *rows, size_t count, orr_error *err)
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

/* The user's folder has a folder for each kind, as the reference's, or the modules themselves. */
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
