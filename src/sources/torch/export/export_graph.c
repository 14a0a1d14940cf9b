/* SPDX-License-Identifier: Apache-2.0 */
/* export_graph.c - the nodes of an exported graph, in order.
 *
 * Invariant: a node reads what an earlier one made, so the order of the file is an order of
 * execution.
 * Cost: linear in the text. */
#include "export_impl.h"

#include "base/dtypes.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==== what the names of operators tell.
 *
 * A saved program has no schemas: whether an operator allocates memory, views it or writes to it
 * follows from its name, by PyTorch's conventions (a trailing underscore writes in place) and a
 * list of views.  Some operators copy only if necessary; for those the strides of both sides
 * decide, by PyTorch's own rule. */

/* ---- operators ---- */

static const char *const views[] = {"_conj",
                                    "_neg_view",
                                    "_reshape_alias",
                                    "_unsafe_view",
                                    "adjoint",
                                    "alias",
                                    "as_strided",
                                    "chunk",
                                    "detach",
                                    "diagonal",
                                    "dsplit",
                                    "expand",
                                    "expand_as",
                                    "hsplit",
                                    "imag",
                                    "lift",
                                    "lift_fresh",
                                    "mH",
                                    "mT",
                                    "matrix_H",
                                    "moveaxis",
                                    "movedim",
                                    "narrow",
                                    "numpy_T",
                                    "permute",
                                    "positive",
                                    "real",
                                    "resolve_conj",
                                    "resolve_neg",
                                    "select",
                                    "slice",
                                    "split",
                                    "split_with_sizes",
                                    "squeeze",
                                    "swapaxes",
                                    "swapdims",
                                    "t",
                                    "tensor_split",
                                    "transpose",
                                    "unbind",
                                    "unflatten",
                                    "unfold",
                                    "unsafe_chunk",
                                    "unsafe_split",
                                    "unsafe_split_with_sizes",
                                    "unsqueeze",
                                    "view",
                                    "view_as",
                                    "view_as_complex",
                                    "view_as_real",
                                    "vsplit"};
static const char *const reshapes[] = {"flatten", "ravel", "reshape", "reshape_as"};
static const char *const sames[] = {"contiguous", "to", "type_as"};
static const char *const dropouts[] = {"alpha_dropout", "dropout", "feature_alpha_dropout",
                                       "feature_dropout"};

static export_alias alias_of_name(orr_str name)
{
    return orr_str_among(name, views, ORR_COUNT(views))         ? EXPORT_VIEW
           : orr_str_among(name, reshapes, ORR_COUNT(reshapes)) ? EXPORT_RESHAPE
           : orr_str_among(name, sames, ORR_COUNT(sames))       ? EXPORT_SAME
           : orr_str_among(name, dropouts, ORR_COUNT(dropouts)) ? EXPORT_DROPOUT
                                                                : EXPORT_NEW;
}

/* The part between the first two points: "aten.add_.Tensor": "add_". */
static orr_str base_name(orr_str op)
{
    const char *from = memchr(op.ptr, '.', op.len);
    if (!from)
        return op;
    from++;
    const size_t left = op.len - (size_t)(from - op.ptr);
    const char *to = memchr(from, '.', left);
    return (orr_str){from, to ? (size_t)(to - from) : left};
}

/* "aten.add_.Tensor": by the operator's name without its overload. */
static export_alias alias_of(orr_str op)
{
    orr_str name = base_name(op);
    if (orr_str_begins(op, "_operator.getitem"))
        return EXPORT_VIEW;
    const bool is_in_place =
        name.len > 1 && name.ptr[name.len - 1] == '_' && name.ptr[name.len - 2] != '_';
    name.len -= is_in_place;
    const export_alias alias = orr_str_begins(op, "aten.") ? alias_of_name(name) : EXPORT_NEW;
    if (is_in_place) /* squeeze_() changes a tensor's shape, not its contents */
        return alias == EXPORT_VIEW ? EXPORT_VIEW : EXPORT_WRITES;
    return alias;
}

/* "torch.ops.aten.mm.default": "aten.mm.default". */
static orr_str export_op(orr_str target)
{
    static const char *const fronts[] = {"torch.ops.", "torch._ops."};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
        const size_t n = strlen(fronts[i]);
        if (orr_str_begins(target, fronts[i]) && target.len > n)
            return (orr_str){target.ptr + n, target.len - n};
    }
    return target;
}

/* Checks and arithmetic on sizes: no device work. */
static bool is_bookkeeping(orr_str op)
{
    static const char *const fronts[] = {
        "_operator.",
        "math.",
        "torch.sym_",
        "torch._sym_",
        "aten.sym_",
        "aten._assert",
        "aten._functional_assert",
        "aten._functional_sym_",
        "aten._local_scalar_dense.",
        "aten.item.",
        "aten._print.",
        "builtins.",
        "torch._check",
        "torch.fx.",
        "profiler.",
    };
    return orr_str_begins_any(op, fronts, ORR_COUNT(fronts));
}

/* ---- shapes ---- */

static bool is_empty(const uint64_t *shape, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0)
            return true;
    }
    return false;
}

/* From the last dimension on: runs of dimensions that are contiguous in memory; each run must
 * consist of whole new dimensions.  Dimensions of size 1 may have any stride and end no run. */
bool export_can_view(const uint64_t *shape,
                     const uint64_t *stride,
                     uint32_t rank,
                     const uint64_t *to,
                     uint32_t to_rank)
{
    uint32_t kept[FX_DIMS_MOST], count = 0, new_at = to_rank;
    unsigned __int128 run = 1, made = 1;
    if (!stride || is_empty(shape, rank))
        return true;
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] != 1)
            kept[count++] = d;
    }
    while (count > 0) {
        const uint32_t d = kept[--count];
        run *= shape[d];
        if (count > 0 && stride[kept[count - 1]] == (unsigned __int128)stride[d] * shape[d])
            continue;
        while (new_at > 0 && made < run)
            made *= to[--new_at];
        if (made != run)
            return false;
        run = made = 1;
    }
    return true;
}

/* ---- texts ---- */

/* The part of s after the last c, or all of it. */
static orr_str after_last(orr_str s, char c)
{
    size_t n = s.len;
    while (n > 0 && s.ptr[n - 1] != c)
        n--;
    return (orr_str){s.ptr + n, s.len - n};
}

static orr_str until(orr_str s, char c)
{
    const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return (orr_str){s.ptr, at ? (size_t)(at - s.ptr) : s.len};
}

static orr_str after(orr_str s, size_t n)
{
    return n < s.len ? (orr_str){s.ptr + n, s.len - n} : (orr_str){s.ptr + s.len, 0};
}

/* "L__self__,,decoder.Decoder;L__self__a,a.b,decoder.Block": "Decoder.a.b", into to. */
static void export_module(orr_str stack, orr_buf *to)
{
    const orr_str first = until(stack, ';'), last = after_last(stack, ';');
    const orr_str class_name = after_last(after_last(first, ','), '.');
    const orr_str rest = after(last, until(last, ',').len + 1);
    const orr_str path = until(rest, ',');
    orr_buf_add(to, class_name.ptr, class_name.len);
    if (path.len && class_name.len)
        orr_buf_byte(to, '.');
    orr_buf_add(to, path.ptr, path.len);
}

/* '  File "/a/b.py", line 12, in f'; false if the text is not a frame. */
static bool read_frame(orr_str text, orr_str *path, orr_str *line)
{
    static const char front[] = "File \"", middle[] = ", line ";
    while (text.len && text.ptr[0] == ' ')
        text = after(text, 1);
    if (!orr_str_begins(text, front))
        return false;
    text = after(text, sizeof front - 1);
    *path = until(text, '"');
    text = after(text, path->len + 1);
    if (!orr_str_begins(text, middle))
        return false;
    *line = until(after(text, sizeof middle - 1), ',');
    return true;
}

/* The innermost frame that is not PyTorch's own: "decoder.py:37", into to. */
static void export_line(orr_str trace, orr_buf *to)
{
    orr_str found = {0}, found_line = {0}, path, line;
    bool is_users = false;
    while (trace.len) {
        const orr_str text = until(trace, '\n');
        trace = after(trace, text.len + 1);
        if (!read_frame(text, &path, &line))
            continue;
        const bool is_torch = orr_str_has(path, "-packages/torch/") || orr_str_has(path, "<");
        if (is_torch && is_users)
            continue;
        found = path;
        found_line = line;
        is_users = !is_torch;
    }
    if (!found.len)
        return;
    const orr_str file = after_last(found, '/');
    orr_buf_add(to, file.ptr, file.len);
    orr_buf_byte(to, ':');
    orr_buf_add(to, found_line.ptr, found_line.len);
}

/* ==== the values of an exported graph: names and their tensors.
 *
 * Values have names, described in "tensor_values"; sizes may be symbols.  Names are local to their
 * graph.  A tensor that is not a view gets its own storage, as large as the largest tensor seen in
 * it.
 * Cost: one lookup per name. */

enum { TEXT_SHOWN = 80 };

orr_code export_member(
    orr_json_value object, const char *key, orr_json_type type, orr_json_value *out, orr_error *err)
{
    if (orr_json_find(object, key, out) && orr_json_type_of(*out) == type)
        return ORR_OK;
    const bool is_there = orr_json_find(object, key, out);
    const orr_where w = orr_json_where(is_there ? *out : object);
    if (!is_there)
        return orr_fail(err, ORR_EINPUT, &w, "\"%s\" is missing here", key);
    return orr_fail(err, ORR_EINPUT, &w, "\"%s\" is %s; %s is expected", key,
                    orr_json_type_name(orr_json_type_of(*out)), orr_json_type_name(type));
}

/* ---- names ---- */

orr_code export_name(export_scope *s, orr_str name, export_named **out, orr_error *err)
{
    const uint32_t before = orr_intern_count(s->names);
    uint32_t number;
    if (!orr_grow(&s->at, &s->room, (size_t)before + 1) || !orr_intern_add(s->names, name, &number))
        return orr_no_memory(err);
    if (number == before)
        s->at[number] = (export_named){.tensor = FX_NONE};
    *out = &s->at[number];
    return ORR_OK;
}

static orr_code name_text(orr_json_value name, orr_str *out, orr_error *err)
{
    const orr_code code = orr_json_get_str(name, out, err);
    if (code || out->len)
        return code;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(name)), "a value without a name");
}

orr_code export_find(const export_scope *s, orr_json_value name, uint32_t *tensor, orr_error *err)
{
    orr_str text;
    uint32_t number;
    const orr_code code = name_text(name, &text, err);
    if (code)
        return code;
    if (orr_intern_find(s->names, text, &number) && s->at[number].is_made) {
        *tensor = s->at[number].tensor;
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(name)),
                    "'%.*s' is used here, but nothing before made it", ORR_SHOWN(text, TEXT_SHOWN));
}

/* The sizes of one tensor may hold the example of a symbol that another needs. */
static orr_code learn_list(export_reader *r, orr_json_value meta, const char *key, orr_error *err)
{
    orr_json_value list, v;
    orr_code code = ORR_OK;
    if (!orr_json_find(meta, key, &list))
        return ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);)
        code = symbols_learn(r->symbols, v, err);
    return code;
}

static orr_code read_tensor_values(export_reader *r,
                                   export_scope *s,
                                   orr_json_value graph,
                                   orr_error *err)
{
    orr_json_value values, meta;
    orr_str name;
    orr_code code = export_member(graph, "tensor_values", ORR_JSON_OBJECT, &values, err);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(values);
         !code && orr_json_next_member(&it, &name, &meta);) {
        export_named *n = NULL;
        if ((code = export_name(s, name, &n, err)))
            break;
        n->meta = meta;
        n->has_meta = true;
        if (!(code = learn_list(r, meta, "sizes", err)))
            code = learn_list(r, meta, "strides", err);
    }
    return code;
}

orr_code export_scope_open(export_reader *r, export_scope *s, orr_json_value graph, orr_error *err)
{
    orr_json_value ints, v;
    *s = (export_scope){.names = orr_intern_create()};
    if (!s->names)
        return orr_no_memory(err);
    orr_code code = read_tensor_values(r, s, graph, err);
    if (!code && orr_json_find(graph, "sym_int_values", &ints)) {
        for (orr_json_iter it = orr_json_iterate(ints); !code && orr_json_next_value(&it, &v);)
            code = symbols_learn(r->symbols, v, err);
    }
    if (code)
        export_scope_close(s);
    return code;
}

void export_scope_close(export_scope *s)
{
    orr_intern_destroy(s->names);
    orr_free(s->at);
    *s = (export_scope){0};
}

/* ---- tensors ---- */

static orr_code read_size(export_reader *r, orr_json_value v, uint64_t *out, orr_error *err)
{
    int64_t n = 0;
    const orr_code code = symbols_value(r->symbols, v, &n, err);
    if (code)
        return code;
    if (n < 0)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)), "a size of %" PRId64, n);
    *out = (uint64_t)n;
    return ORR_OK;
}

static orr_code read_sizes(export_reader *r,
                           orr_json_value meta,
                           const char *key,
                           uint64_t *out,
                           uint32_t *n,
                           orr_error *err)
{
    orr_json_value list, v;
    orr_code code = export_member(meta, key, ORR_JSON_ARRAY, &list, err);
    *n = 0;
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);) {
        if (*n == FX_DIMS_MOST)
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(list)),
                            "a tensor of more than %d dimensions", FX_DIMS_MOST);
        code = read_size(r, v, &out[(*n)++], err);
    }
    return code;
}

/* Elements and extent; false: more than 2^63 bytes. */
static bool measure(export_form *f)
{
    uint64_t elements = 1, last = f->offset, step;
    bool has_none = false, is_fine = true;
    for (uint32_t d = 0; d < f->rank; d++)
        has_none |= f->shape[d] == 0;
    f->bytes = 0;
    if (has_none)
        return true;
    for (uint32_t d = 0; d < f->rank && is_fine; d++) {
        is_fine = !__builtin_mul_overflow(elements, f->shape[d], &elements) &&
                  !__builtin_mul_overflow(f->shape[d] - 1, f->stride[d], &step) &&
                  !__builtin_add_overflow(last, step, &last);
    }
    is_fine = is_fine && !__builtin_mul_overflow(elements, f->element_bytes, &elements) &&
              elements <= INT64_MAX && !__builtin_add_overflow(last, 1, &last) &&
              !__builtin_mul_overflow(last, f->element_bytes, &f->bytes);
    return is_fine && f->bytes <= INT64_MAX;
}

static orr_code read_dtype(orr_json_value meta, export_form *f, orr_error *err)
{
    orr_json_value v;
    orr_code code = export_member(meta, "dtype", ORR_JSON_INT, &v, err);
    if (code || (code = orr_json_get_i64(v, &f->dtype, err)))
        return code;
    f->element_bytes = orr__dtype_number_bytes(f->dtype);
    if (f->element_bytes)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                    "unknown type number %" PRId64 " of a tensor", f->dtype);
}

/* Layout 7 is strided, 0 unknown; the others are sparse, and their sizes are not in the file. */
static orr_code check_layout(orr_json_value meta, orr_error *err)
{
    orr_json_value v;
    int64_t layout = 0;
    orr_code code = ORR_OK;
    if (!orr_json_find(meta, "layout", &v) || (code = orr_json_get_i64(v, &layout, err)) ||
        layout == 0 || layout == 7)
        return code;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                    "a sparse tensor (layout %" PRId64 "): its size in bytes is unknown", layout);
}

static orr_code read_form(export_reader *r, const export_named *n, export_form *f, orr_error *err)
{
    orr_json_value v;
    uint32_t strides = 0;
    orr_code code;
    f->meta = n->meta;
    if ((code = read_dtype(n->meta, f, err)) || (code = check_layout(n->meta, err)) ||
        (code = read_sizes(r, n->meta, "sizes", f->shape, &f->rank, err)) ||
        (code = read_sizes(r, n->meta, "strides", f->stride, &strides, err)))
        return code;
    f->offset = 0;
    if (orr_json_find(n->meta, "storage_offset", &v) && (code = read_size(r, v, &f->offset, err)))
        return code;
    const bool is_fine = strides == f->rank && measure(f);
    if (is_fine)
        return ORR_OK;
    const orr_where w = orr_json_where(n->meta);
    if (strides != f->rank)
        return orr_fail(err, ORR_EINPUT, &w,
                        "a tensor with %" PRIu32 " sizes and %" PRIu32 " strides", f->rank,
                        strides);
    return orr_fail(err, ORR_EINPUT, &w, "a tensor of more than 2^63 bytes");
}

/* A storage is as large as the largest tensor seen in it. */
static orr_code export_tensor(export_reader *r,
                              const export_form *f,
                              uint32_t storage,
                              fx_kept kept,
                              uint32_t *out,
                              orr_error *err)
{
    const uint64_t byte = orr_json_byte(f->meta);
    orr_code code = ORR_OK;
    if (storage == FX_NONE)
        code = fx_add_storage(r->g, f->bytes, kept, &storage, err);
    if (code)
        return code;
    if (r->g->storages[storage].bytes < f->bytes)
        r->g->storages[storage].bytes = f->bytes;
    const fx_tensor_draft draft = {.shape = f->shape,
                                   .stride = f->stride,
                                   .rank = f->rank,
                                   .element_bytes = f->element_bytes,
                                   .storage = storage,
                                   .offset = f->offset,
                                   .byte = byte};
    return fx_add_tensor(r->g, &draft, out, err);
}

/* The entry of a value about to be created. */
static orr_code new_value(
    export_scope *s, orr_json_value name, bool needs_meta, export_named **out, orr_error *err)
{
    orr_str text;
    orr_code code = name_text(name, &text, err);
    if (code || (code = export_name(s, text, out, err)))
        return code;
    if (!(*out)->is_made && ((*out)->has_meta || !needs_meta))
        return ORR_OK;
    const orr_where w = orr_json_where(name);
    if ((*out)->is_made)
        return orr_fail(err, ORR_EINPUT, &w, "'%.*s' is made a second time",
                        ORR_SHOWN(text, TEXT_SHOWN));
    return orr_fail(err, ORR_EINPUT, &w, "'%.*s' has no entry in \"tensor_values\"",
                    ORR_SHOWN(text, TEXT_SHOWN));
}

orr_code export_input(export_reader *r, export_scope *s, orr_json_value name, orr_error *err)
{
    export_named *n = NULL;
    export_form f;
    orr_code code = new_value(s, name, true, &n, err);
    if (code || (code = read_form(r, n, &f, err)))
        return code;
    n->is_made = true;
    return export_tensor(r, &f, FX_NONE, n->kept, &n->tensor, err);
}

/* ---- arguments ---- */

static orr_code add_name(export_reader *r, orr_json_value holder, orr_error *err)
{
    orr_json_value name;
    const orr_code code = export_member(holder, "name", ORR_JSON_STRING, &name, err);
    if (code)
        return code;
    return orr_push(r->names.at, r->names.count, r->names.room, name) ? ORR_OK : orr_no_memory(err);
}

/* {"as_tensor": {"name": ...}} or {"as_none": ...}, as in lists. */
static orr_code add_optional(export_reader *r, orr_json_value item, orr_error *err)
{
    orr_json_value tensor;
    return orr_json_find(item, "as_tensor", &tensor) ? add_name(r, tensor, err) : ORR_OK;
}

/* A function for each item of a list. */
static orr_code each(export_reader *r,
                     orr_json_value list,
                     orr_code (*add)(export_reader *r, orr_json_value v, orr_error *err),
                     orr_error *err)
{
    orr_json_value v;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);)
        code = add(r, v, err);
    return code;
}

static orr_code add_nested(export_reader *r, orr_json_value list, orr_error *err)
{
    return each(r, list, add_name, err);
}

orr_code export_collect(export_reader *r, orr_json_value argument, orr_error *err)
{
    orr_str kind;
    orr_json_value v;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(argument);
         !code && orr_json_next_member(&it, &kind, &v);) {
        if (orr_str_is(kind, "as_tensor"))
            code = add_name(r, v, err);
        else if (orr_str_is(kind, "as_tensors"))
            code = each(r, v, add_name, err);
        else if (orr_str_is(kind, "as_optional_tensor"))
            code = add_optional(r, v, err);
        else if (orr_str_is(kind, "as_optional_tensors"))
            code = each(r, v, add_optional, err);
        else if (orr_str_is(kind, "as_nested_tensors"))
            code = each(r, v, add_nested, err);
        else if (orr_str_is(kind, "as_string_to_argument"))
            code = each(r, v, export_collect, err);
    }
    return code;
}

static orr_code add_ref(export_refs *to, uint32_t tensor, orr_error *err)
{
    return orr_push(to->at, to->count, to->room, tensor) ? ORR_OK : orr_no_memory(err);
}

/* The argument of this name and kind: {"name": "is_causal", "arg": {"as_bool": true}}. */
static bool export_argument(orr_json_value node,
                            const char *name,
                            const char *kind,
                            orr_json_value *out)
{
    orr_json_value inputs, input, key, arg;
    orr_str text;
    if (!orr_json_find(node, "inputs", &inputs))
        return false;
    for (orr_json_iter it = orr_json_iterate(inputs); orr_json_next_value(&it, &input);) {
        if (orr_json_find(input, "name", &key) && orr_json_find(input, "arg", &arg) &&
            orr_json_type_of(key) == ORR_JSON_STRING && !orr_json_get_str(key, &text, NULL) &&
            orr_str_is(text, name) && orr_json_find(arg, kind, out))
            return true;
    }
    return false;
}

/* ORR_EINPUT, with the operator and its line in the user's program. */
static orr_code fail(orr_json_value node, orr_str op, const char *words, orr_error *err)
{
    orr_json_value metadata, v;
    orr_str trace;
    orr_buf line = {0};
    if (orr_json_find(node, "metadata", &metadata) && orr_json_find(metadata, "stack_trace", &v) &&
        !orr_json_get_str(v, &trace, NULL))
        export_line(trace, &line);
    const orr_str where = {line.len ? (const char *)line.ptr : "", line.len};
    const orr_code code = orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(node)), "%.*s%s%.*s: %s",
                                   ORR_SHOWN(op, TEXT_SHOWN), line.len ? " at " : "",
                                   ORR_SHOWN(where, TEXT_SHOWN), words);
    orr_buf_fini(&line);
    return code;
}

/* ==== nodes ==== */

/* Recursion: graphs hold calls, and calls hold graphs. */
static orr_code read_nested(
    export_reader *r, export_scope *s, export_call *c, bool *is_done, orr_error *err);

/* ---- texts ---- */

static orr_code text_number(
    export_reader *r, fx_texts table, orr_str text, uint32_t *out, orr_error *err)
{
    const uint32_t before = orr_intern_count(r->texts[table]);
    if (!orr_intern_add(r->texts[table], text, out))
        return orr_no_memory(err);
    return *out == before ? fx_add_text(r->g, table, text, out, err) : ORR_OK;
}

/* A text of the node's metadata, interned; FX_NONE if there is none. */
static orr_code note_place(export_reader *r,
                           orr_json_value node,
                           const char *key,
                           fx_texts table,
                           uint32_t *out,
                           orr_error *err)
{
    orr_json_value metadata, v;
    orr_str text;
    *out = FX_NONE;
    if (!orr_json_find(node, "metadata", &metadata) || !orr_json_find(metadata, key, &v) ||
        orr_json_type_of(v) != ORR_JSON_STRING || orr_json_get_str(v, &text, NULL))
        return ORR_OK;
    r->text.len = 0;
    if (table == FX_LINES)
        export_line(text, &r->text);
    else
        export_module(text, &r->text);
    if (r->text.failed)
        return orr_no_memory(err);
    if (r->text.len == 0)
        return ORR_OK;
    return text_number(r, table, (orr_str){(const char *)r->text.ptr, r->text.len}, out, err);
}

/* ---- one operator ---- */

static bool is_true(orr_json_value node, const char *name)
{
    orr_json_value v;
    bool is = false;
    return export_argument(node, name, "as_bool", &v) && orr_json_type_of(v) == ORR_JSON_BOOL &&
           !orr_json_get_bool(v, &is, NULL) && is;
}

static orr_str text_of(orr_json_value node, const char *name)
{
    orr_json_value v;
    orr_str text;
    if (!export_argument(node, name, "as_string", &v) || orr_json_type_of(v) != ORR_JSON_STRING ||
        orr_json_get_str(v, &text, NULL))
        return (orr_str){NULL, 0};
    return text;
}

static orr_code read_inputs(export_reader *r, const export_scope *s, export_call *c, orr_error *err)
{
    orr_json_value inputs, input, arg;
    uint32_t tensor = 0;
    orr_code code = export_member(c->node, "inputs", ORR_JSON_ARRAY, &inputs, err);
    if (code)
        return code;
    r->in.count = c->first = 0;
    for (orr_json_iter it = orr_json_iterate(inputs); !code && orr_json_next_value(&it, &input);) {
        r->names.count = 0;
        if ((code = export_member(input, "arg", ORR_JSON_OBJECT, &arg, err)) ||
            (code = export_collect(r, arg, err)))
            break;
        for (size_t i = 0; i < r->names.count && !code; i++) {
            code = export_find(s, r->names.at[i], &tensor, err);
            if (!code)
                code = add_ref(&r->in, tensor, err);
        }
        if (c->first == 0)
            c->first = r->in.count;
    }
    return code;
}

/* Names of all outputs, in r->names. */
static orr_code collect_outputs(export_reader *r, orr_json_value node, orr_error *err)
{
    orr_json_value outputs;
    const orr_code code = export_member(node, "outputs", ORR_JSON_ARRAY, &outputs, err);
    r->names.count = 0;
    return code ? code : each(r, outputs, export_collect, err);
}

static bool is_equal_form(const fx_graph *g, const fx_tensor *t, const export_form *f)
{
    const uint64_t *shape = fx_shape(g, t), *stride = fx_stride(g, t);
    if (t->rank != f->rank || t->element_bytes != f->element_bytes)
        return false;
    for (uint32_t d = 0; d < f->rank; d++) {
        if (shape[d] != f->shape[d] || (shape[d] != 1 && stride && stride[d] != f->stride[d]))
            return false;
    }
    return true;
}

/* Compares type and device with the first input's entry. */
static bool is_same_kind(const export_scope *s, const export_call *c, const export_form *f)
{
    orr_json_value inputs, input, arg, tensor, key, there, here;
    orr_str name;
    uint32_t number;
    if (!orr_json_find(c->node, "inputs", &inputs))
        return false;
    orr_json_iter it = orr_json_iterate(inputs);
    if (!orr_json_next_value(&it, &input) || !orr_json_find(input, "arg", &arg) ||
        !orr_json_find(arg, "as_tensor", &tensor) || !orr_json_find(tensor, "name", &key) ||
        orr_json_get_str(key, &name, NULL) || !orr_intern_find(s->names, name, &number) ||
        !s->at[number].has_meta)
        return false;
    const orr_json_value meta = s->at[number].meta;
    if (!orr_json_find(meta, "dtype", &there) || !orr_json_find(f->meta, "dtype", &here) ||
        !orr_str_equal(orr_json_raw(there), orr_json_raw(here)))
        return false;
    return orr_json_find(meta, "device", &there) && orr_json_find(f->meta, "device", &here) &&
           orr_str_equal(orr_json_raw(there), orr_json_raw(here));
}

/* Does this output share the memory of the first input? */
static bool shares(const export_reader *r,
                   const export_scope *s,
                   const export_call *c,
                   const export_form *f)
{
    if (r->in.count == 0)
        return false;
    const fx_graph *g = r->g;
    const fx_tensor *t = &g->tensors[r->in.at[0]];
    switch (c->alias) {
    case EXPORT_NEW:
        return false;
    case EXPORT_VIEW:
    case EXPORT_WRITES:
        return true;
    case EXPORT_RESHAPE:
        return export_can_view(fx_shape(g, t), fx_stride(g, t), t->rank, f->shape, f->rank);
    case EXPORT_SAME:
        return is_equal_form(g, t, f) && !is_true(c->node, "copy") && is_same_kind(s, c, f);
    case EXPORT_DROPOUT:
        return !is_true(c->node, "train");
    }
    return false;
}

/* An output (index i of r->names), in its own memory or an input's.  If written in place and of the
 * same form, it is the same tensor. */
static orr_code make_output(
    export_reader *r, export_scope *s, export_call *c, size_t i, orr_error *err)
{
    export_named *n = NULL;
    export_form f;
    orr_code code = new_value(s, r->names.at[i], true, &n, err);
    if (code || (code = read_form(r, n, &f, err)))
        return code;
    const bool is_written = c->alias == EXPORT_WRITES, is_shared = shares(r, s, c, &f);
    const uint32_t from = is_shared ? r->in.at[is_written && i < c->first ? i : 0] : FX_NONE;
    if (is_written && is_shared && is_equal_form(r->g, &r->g->tensors[from], &f))
        n->tensor = from;
    else
        code = export_tensor(r, &f, is_shared ? r->g->tensors[from].storage : FX_NONE, FX_KEPT_NOT,
                             &n->tensor, err);
    n->is_made = true;
    c->draft.is_view = is_shared && !is_written;
    return code ? code : add_ref(&r->out, n->tensor, err);
}

static orr_code make_outputs(export_reader *r, export_scope *s, export_call *c, orr_error *err)
{
    orr_code code = ORR_OK;
    r->out.count = 0;
    for (size_t i = 0; i < r->names.count && !code; i++)
        code = make_output(r, s, c, i, err);
    return code;
}

/* The loss ends the forward pass. */
static void note_loss(export_reader *r)
{
    orr_str name;
    for (size_t i = 0; i < r->names.count && r->loss.len; i++) {
        if (!orr_json_get_str(r->names.at[i], &name, NULL) && orr_str_equal(name, r->loss))
            r->phase = FX_BACKWARD;
    }
}

/* ---- communication ---- */

/* A collective names its process group; the file only tells that "0" is all ranks. */
static orr_code read_group(export_reader *r, export_call *c, orr_error *err)
{
    orr_json_value v;
    orr_str name;
    int64_t size = 0;
    orr_code code;
    if (!export_argument(c->node, "group_name", "as_string", &v))
        return ORR_OK;
    if ((code = orr_json_get_str(v, &name, err)))
        return code;
    if (!orr_str_is(name, "0"))
        return fail(c->node, c->op,
                    "the archive does not say which ranks are in its process group; capture "
                    "the model with 'orrery capture' instead",
                    err);
    if (r->fx->world_size == 1)
        return fail(c->node, c->op,
                    "the program communicates: give the number of ranks with --world-size N", err);
    if (export_argument(c->node, "group_size", "as_int", &v)) {
        if ((code = orr_json_get_i64(v, &size, err)))
            return code;
        if (size != (int64_t)r->fx->world_size)
            return fail(c->node, c->op, "the size of its process group differs from --world-size",
                        err);
    }
    c->draft.group = 0;
    return ORR_OK;
}

/* ---- nodes ---- */

static orr_code add_node(export_reader *r, export_call *c, orr_error *err)
{
    fx_node_draft *d = &c->draft;
    orr_code code;
    if ((code = text_number(r, FX_OPS, c->op, &d->op, err)) ||
        (code = note_place(r, c->node, "nn_module_stack", FX_MODULES, &d->module, err)) ||
        (code = note_place(r, c->node, "stack_trace", FX_LINES, &d->line, err)))
        return code;
    d->phase = r->phase;
    d->in = r->in.at;
    d->in_count = r->in.count;
    d->out = r->out.at;
    d->out_count = r->out.count;
    d->writes = r->in.at; /* those of the first argument come first */
    d->writes_count = c->alias == EXPORT_WRITES ? c->first : 0;
    d->is_causal = is_true(c->node, "is_causal");
    d->is_transposed = is_true(c->node, "transposed");
    d->equation = text_of(c->node, "equation");
    d->byte = orr_json_byte(c->node);
    return fx_add_node(r->g, d, err);
}

static orr_code read_node(export_reader *r, export_scope *s, orr_json_value node, orr_error *err)
{
    export_call c = {.node = node,
                     .draft = {.group = FX_NONE, .peer = FX_NO_PEER, .tag = FX_NO_PEER}};
    orr_json_value v;
    orr_str target;
    bool is_done = false;
    orr_code code = export_member(node, "target", ORR_JSON_STRING, &v, err);
    if (code || (code = orr_json_get_str(v, &target, err)))
        return code;
    r->report->nodes++;
    c.op = export_op(target);
    if (c.op.len == 0)
        return fail(node, c.op, "an operator without a name", err);
    if ((code = read_nested(r, s, &c, &is_done, err)) || is_done)
        return code;
    c.alias = alias_of(c.op);
    if ((code = read_inputs(r, s, &c, err)) || (code = collect_outputs(r, node, err)))
        return code;
    if (is_bookkeeping(c.op) && r->names.count == 0)
        return ORR_OK;
    if ((code = read_group(r, &c, err)) || (code = make_outputs(r, s, &c, err)) ||
        (code = add_node(r, &c, err)))
        return code;
    note_loss(r);
    return ORR_OK;
}

orr_code export_nodes(export_reader *r, export_scope *s, orr_json_value graph, orr_error *err)
{
    orr_json_value nodes, node;
    orr_code code = export_member(graph, "nodes", ORR_JSON_ARRAY, &nodes, err);
    if (code)
        return code;
    for (orr_json_iter it = orr_json_iterate(nodes); !code && orr_json_next_value(&it, &node);)
        code = read_node(r, s, node, err);
    return code;
}

orr_code export_extra(
    export_reader *r, const char *op, const fx_node_draft *like, orr_json_value at, orr_error *err)
{
    fx_node_draft d = *like;
    const orr_code code = text_number(r, FX_OPS, orr_str_of(op), &d.op, err);
    if (code)
        return code;
    d.module = d.line = d.group = FX_NONE;
    d.peer = d.tag = FX_NO_PEER;
    d.phase = r->phase;
    d.byte = orr_json_byte(at);
    return fx_add_node(r->g, &d, err);
}

/* ==== graphs inside the graph.
 *
 * Those that run exactly once (a block under torch.no_grad()) are inlined, with the names of their
 * inputs bound to the arguments.  Branches and loops are refused: their work is known only at run
 * time. */

static orr_code bind(export_scope *s, orr_json_value name, uint32_t tensor, orr_error *err)
{
    export_named *n = NULL;
    const orr_code code = new_value(s, name, false, &n, err);
    if (code)
        return code;
    n->tensor = tensor;
    n->is_made = true;
    return ORR_OK;
}

/* Both lists must have equally many names; those of the first have tensors in `from`, the others
 * get them in `to`. */
static orr_code bind_names(export_reader *r,
                           const export_scope *from,
                           size_t split,
                           export_scope *to,
                           orr_json_value node,
                           orr_error *err)
{
    uint32_t tensor = 0;
    orr_code code = ORR_OK;
    if (split * 2 != r->names.count)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_json_where(node)),
                        "a nested graph and the node that runs it differ in their tensors: %zu and "
                        "%zu",
                        split, r->names.count - split);
    for (size_t i = 0; i < split && !code; i++) {
        code = export_find(from, r->names.at[i], &tensor, err);
        if (!code)
            code = bind(to, r->names.at[split + i], tensor, err);
    }
    return code;
}

/* The node's last arguments are the graph's inputs. */
static orr_code bind_inputs(export_reader *r,
                            const export_scope *s,
                            export_scope *inner,
                            const export_call *c,
                            orr_json_value graph,
                            orr_error *err)
{
    orr_json_value outer, list, input, arg;
    orr_code code = export_member(c->node, "inputs", ORR_JSON_ARRAY, &outer, err);
    if (code || (code = export_member(graph, "inputs", ORR_JSON_ARRAY, &list, err)))
        return code;
    const uint32_t given = orr_json_count(outer), wanted = orr_json_count(list);
    uint32_t skip = given > wanted ? given - wanted : 0;
    r->names.count = 0;
    for (orr_json_iter it = orr_json_iterate(outer); !code && orr_json_next_value(&it, &input);) {
        if (skip) {
            skip--;
            continue;
        }
        if (!(code = export_member(input, "arg", ORR_JSON_OBJECT, &arg, err)))
            code = export_collect(r, arg, err);
    }
    const size_t split = r->names.count;
    if (!code)
        code = each(r, list, export_collect, err);
    return code ? code : bind_names(r, s, split, inner, c->node, err);
}

static orr_code bind_outputs(export_reader *r,
                             export_scope *s,
                             const export_scope *inner,
                             const export_call *c,
                             orr_json_value graph,
                             orr_error *err)
{
    orr_json_value outer, list;
    orr_code code = export_member(c->node, "outputs", ORR_JSON_ARRAY, &outer, err);
    if (code || (code = export_member(graph, "outputs", ORR_JSON_ARRAY, &list, err)))
        return code;
    r->names.count = 0;
    if ((code = each(r, list, export_collect, err)))
        return code;
    const size_t split = r->names.count;
    if ((code = each(r, outer, export_collect, err)))
        return code;
    return bind_names(r, inner, split, s, c->node, err);
}

static orr_code enter_graph(
    export_reader *r, export_scope *s, const export_call *c, orr_json_value graph, orr_error *err)
{
    export_scope inner;
    orr_code code = export_scope_open(r, &inner, graph, err);
    if (code)
        return code;
    r->report->nested++;
    code = bind_inputs(r, s, &inner, c, graph, err);
    if (!code)
        code = export_nodes(r, &inner, graph, err);
    if (!code)
        code = bind_outputs(r, s, &inner, c, graph, err);
    export_scope_close(&inner);
    return code;
}

/* The graphs among the arguments: how many, and the last of them. */
static uint32_t count_graphs(orr_json_value node, orr_json_value *graph)
{
    orr_json_value inputs, input, arg, holder;
    uint32_t count = 0;
    if (!orr_json_find(node, "inputs", &inputs))
        return 0;
    for (orr_json_iter it = orr_json_iterate(inputs); orr_json_next_value(&it, &input);) {
        count += orr_json_find(input, "arg", &arg) && orr_json_find(arg, "as_graph", &holder) &&
                 orr_json_find(holder, "graph", graph);
    }
    return count;
}

static const struct {
    const char *name, *words; /* words NULL: its graph runs exactly once */
} nested[] = {
    {"wrap_with_set_grad_enabled", NULL},
    {"wrap_with_autocast", NULL},
    {"wrap", NULL},
    {"strict_mode", NULL},
    {"hints_wrapper", NULL},
    {"invoke_subgraph", NULL},
    {"invoke_quant", NULL},
    {"invoke_quant_packed", NULL},
    {"tag_activation_checkpoint", NULL},
    {"cond", "which branch runs depends on data; export the model with the condition decided"},
    {"while_loop",
     "how often the loop runs depends on data; export the model with a loop of fixed length"},
    {"scan", "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
    {"associative_scan",
     "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
    {"map", "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
    {"map_impl",
     "loops over a tensor's rows are not unrolled; export the model with a Python loop"},
};

/* "higher_order.NAME": handled here, or *is_done is false and it is like any operator. */
static orr_code read_nested(
    export_reader *r, export_scope *s, export_call *c, bool *is_done, orr_error *err)
{
    static const char front[] = "higher_order.";
    const size_t f = sizeof front - 1;
    orr_json_value graph, v;
    *is_done = false;
    if (c->op.len <= f || memcmp(c->op.ptr, front, f) != 0)
        return ORR_OK;
    const orr_str name = {c->op.ptr + f, c->op.len - f};
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        if (!orr_str_is(name, nested[i].name))
            continue;
        *is_done = true;
        if (nested[i].words)
            return fail(c->node, c->op, nested[i].words, err);
        if (count_graphs(c->node, &graph) == 1)
            return enter_graph(r, s, c, graph, err);
        return fail(c->node, c->op, "one nested graph is expected among its arguments", err);
    }
    /* auto_functionalized: an operator that writes its arguments, made functional */
    if (export_argument(c->node, "_mutable_op", "as_operator", &v) ||
        export_argument(c->node, "", "as_operator", &v)) {
        orr_str op;
        const orr_code code = orr_json_get_str(v, &op, err);
        if (code)
            return code;
        c->op = export_op(op);
    }
    return ORR_OK;
}
