/* SPDX-License-Identifier: Apache-2.0 */
/* export_values.c - the values of an exported graph: names, and the tensors that they stand for.
 *
 * Values have names, and "tensor_values" says what each looks like; sizes may be symbols.  Names
 * belong to their graph.  A tensor that is no view gets a storage of its own, as large as the
 * largest thing seen in it.
 * Cost: a lookup for each name. */
#include "export_impl.h"
#include "trace/dtypes.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==== what the names of operators and the texts beside them say.
 *
 * A saved program has no schemas: whether an operator makes new memory, looks at old memory or
 * writes to it follows from its name, by PyTorch's conventions (a trailing underscore writes in
 * place) and a list of the views.  Some operators copy only when they must; for those the strides
 * of both sides decide, by the rule PyTorch itself follows. */

/* ---- operators ---- */

typedef struct alias_row {
    const char *name;
    export_alias alias;
} alias_row;

/* Sorted by name. */
static const alias_row aliases[] = {
    {"_conj", EXPORT_VIEW},
    {"_neg_view", EXPORT_VIEW},
    {"_reshape_alias", EXPORT_VIEW},
    {"_unsafe_view", EXPORT_VIEW},
    {"adjoint", EXPORT_VIEW},
    {"alias", EXPORT_VIEW},
    {"alpha_dropout", EXPORT_DROPOUT},
    {"as_strided", EXPORT_VIEW},
    {"chunk", EXPORT_VIEW},
    {"contiguous", EXPORT_SAME},
    {"detach", EXPORT_VIEW},
    {"diagonal", EXPORT_VIEW},
    {"dropout", EXPORT_DROPOUT},
    {"dsplit", EXPORT_VIEW},
    {"expand", EXPORT_VIEW},
    {"expand_as", EXPORT_VIEW},
    {"feature_alpha_dropout", EXPORT_DROPOUT},
    {"feature_dropout", EXPORT_DROPOUT},
    {"flatten", EXPORT_RESHAPE},
    {"hsplit", EXPORT_VIEW},
    {"imag", EXPORT_VIEW},
    {"lift", EXPORT_VIEW},
    {"lift_fresh", EXPORT_VIEW},
    {"mH", EXPORT_VIEW},
    {"mT", EXPORT_VIEW},
    {"matrix_H", EXPORT_VIEW},
    {"moveaxis", EXPORT_VIEW},
    {"movedim", EXPORT_VIEW},
    {"narrow", EXPORT_VIEW},
    {"numpy_T", EXPORT_VIEW},
    {"permute", EXPORT_VIEW},
    {"positive", EXPORT_VIEW},
    {"ravel", EXPORT_RESHAPE},
    {"real", EXPORT_VIEW},
    {"reshape", EXPORT_RESHAPE},
    {"reshape_as", EXPORT_RESHAPE},
    {"resolve_conj", EXPORT_VIEW},
    {"resolve_neg", EXPORT_VIEW},
    {"select", EXPORT_VIEW},
    {"slice", EXPORT_VIEW},
    {"split", EXPORT_VIEW},
    {"split_with_sizes", EXPORT_VIEW},
    {"squeeze", EXPORT_VIEW},
    {"swapaxes", EXPORT_VIEW},
    {"swapdims", EXPORT_VIEW},
    {"t", EXPORT_VIEW},
    {"tensor_split", EXPORT_VIEW},
    {"to", EXPORT_SAME},
    {"transpose", EXPORT_VIEW},
    {"type_as", EXPORT_SAME},
    {"unbind", EXPORT_VIEW},
    {"unflatten", EXPORT_VIEW},
    {"unfold", EXPORT_VIEW},
    {"unsafe_chunk", EXPORT_VIEW},
    {"unsafe_split", EXPORT_VIEW},
    {"unsafe_split_with_sizes", EXPORT_VIEW},
    {"unsqueeze", EXPORT_VIEW},
    {"view", EXPORT_VIEW},
    {"view_as", EXPORT_VIEW},
    {"view_as_complex", EXPORT_VIEW},
    {"view_as_real", EXPORT_VIEW},
    {"vsplit", EXPORT_VIEW},
};

static int compare(const void *key, const void *row)
{
    const orr_str *name = key;
    const char *other = ((const alias_row *)row)->name;
    const size_t n = strlen(other);
    const int c = memcmp(name->ptr, other, name->len < n ? name->len : n);
    return c ? c : name->len < n ? -1 : name->len > n;
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

export_alias export_alias_of(orr_str op)
{
    orr_str name = base_name(op);
    if (orr_str_begins(op, "_operator.getitem"))
        return EXPORT_VIEW;
    const bool is_in_place =
        name.len > 1 && name.ptr[name.len - 1] == '_' && name.ptr[name.len - 2] != '_';
    name.len -= is_in_place;
    const alias_row *row =
        !orr_str_begins(op, "aten.")
            ? NULL
            : bsearch(&name, aliases, sizeof aliases / sizeof *aliases, sizeof *aliases, compare);
    if (is_in_place) /* squeeze_() changes what is known of a tensor, not what is in it */
        return row && row->alias == EXPORT_VIEW ? EXPORT_VIEW : EXPORT_WRITES;
    return row ? row->alias : EXPORT_NEW;
}

orr_str export_op(orr_str target)
{
    static const char *const fronts[] = {"torch.ops.", "torch._ops."};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
        const size_t n = strlen(fronts[i]);
        if (orr_str_begins(target, fronts[i]) && target.len > n)
            return (orr_str){target.ptr + n, target.len - n};
    }
    return target;
}

bool export_is_bookkeeping(orr_str op)
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
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
        if (orr_str_begins(op, fronts[i]))
            return true;
    }
    return false;
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

/* From the last dimension on, runs of dimensions that lie in memory without gaps; each run must be
 * made of whole new dimensions.  Dimensions of size 1 have any stride and end no run. */
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

void export_module(orr_str stack, orr_buf *to)
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

/* '  File "/a/b.py", line 12, in f': false when the text is no frame. */
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

void export_line(orr_str trace, orr_buf *to)
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

/* ==== all of it ==== */

enum { TEXT_SHOWN = 80 };

/* For "%.*s" in messages. */
static int shown(orr_str s)
{
    return s.len > TEXT_SHOWN ? TEXT_SHOWN : (int)s.len;
}

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
    const orr_where w = orr_json_where(name);
    return orr_fail(err, ORR_EINPUT, &w, "a value without a name");
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
    const orr_where w = orr_json_where(name);
    return orr_fail(err, ORR_EINPUT, &w, "'%.*s' is used here, but nothing before made it",
                    shown(text), text.ptr);
}

/* Sizes of one tensor may hold the example of a symbol that another one needs. */
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
    if (n < 0) {
        const orr_where w = orr_json_where(v);
        return orr_fail(err, ORR_EINPUT, &w, "a size of %" PRId64, n);
    }
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
        if (*n == FX_DIMS_MOST) {
            const orr_where w = orr_json_where(list);
            return orr_fail(err, ORR_EINPUT, &w, "a tensor of more than %d dimensions",
                            FX_DIMS_MOST);
        }
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
    const orr_where w = orr_json_where(v);
    return orr_fail(err, ORR_EINPUT, &w,
                    "type number %" PRId64 " of a tensor is not one that is known here", f->dtype);
}

/* Layout 7 is strided, 0 unknown; the others are sparse, and their bytes are nowhere in the
 * file. */
static orr_code check_layout(orr_json_value meta, orr_error *err)
{
    orr_json_value v;
    int64_t layout = 0;
    orr_code code = ORR_OK;
    if (!orr_json_find(meta, "layout", &v) || (code = orr_json_get_i64(v, &layout, err)) ||
        layout == 0 || layout == 7)
        return code;
    const orr_where w = orr_json_where(v);
    return orr_fail(err, ORR_EINPUT, &w,
                    "a sparse tensor (layout %" PRId64 "): how many bytes it has is not known",
                    layout);
}

orr_code export_read_form(export_reader *r, const export_named *n, export_form *f, orr_error *err)
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

/* A storage is as large as the largest thing seen in it. */
orr_code export_tensor(export_reader *r,
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

/* The entry of a value that is about to be made. */
orr_code export_new(
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
        return orr_fail(err, ORR_EINPUT, &w, "'%.*s' is made a second time", shown(text), text.ptr);
    return orr_fail(err, ORR_EINPUT, &w, "'%.*s' has no entry in \"tensor_values\"", shown(text),
                    text.ptr);
}

orr_code export_input(export_reader *r, export_scope *s, orr_json_value name, orr_error *err)
{
    export_named *n = NULL;
    export_form f;
    orr_code code = export_new(s, name, true, &n, err);
    if (code || (code = export_read_form(r, n, &f, err)))
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
    if (!orr_grow(&r->names.at, &r->names.room, r->names.count + 1))
        return orr_no_memory(err);
    r->names.at[r->names.count++] = name;
    return ORR_OK;
}

/* {"as_tensor": {"name": ...}} or {"as_none": ...}, as items of lists have it. */
static orr_code add_optional(export_reader *r, orr_json_value item, orr_error *err)
{
    orr_json_value tensor;
    return orr_json_find(item, "as_tensor", &tensor) ? add_name(r, tensor, err) : ORR_OK;
}

static orr_code add_nested(export_reader *r, orr_json_value list, orr_error *err)
{
    orr_json_value v;
    orr_code code = ORR_OK;
    for (orr_json_iter it = orr_json_iterate(list); !code && orr_json_next_value(&it, &v);)
        code = add_name(r, v, err);
    return code;
}

orr_code export_each(export_reader *r,
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
            code = export_each(r, v, add_name, err);
        else if (orr_str_is(kind, "as_optional_tensor"))
            code = add_optional(r, v, err);
        else if (orr_str_is(kind, "as_optional_tensors"))
            code = export_each(r, v, add_optional, err);
        else if (orr_str_is(kind, "as_nested_tensors"))
            code = export_each(r, v, add_nested, err);
        else if (orr_str_is(kind, "as_string_to_argument"))
            code = export_each(r, v, export_collect, err);
    }
    return code;
}

orr_code export_ref(export_refs *to, uint32_t tensor, orr_error *err)
{
    if (!orr_grow(&to->at, &to->room, to->count + 1))
        return orr_no_memory(err);
    to->at[to->count++] = tensor;
    return ORR_OK;
}

/* The argument of this name, of this kind: {"name": "is_causal", "arg": {"as_bool": true}}. */
bool export_argument(orr_json_value node, const char *name, const char *kind, orr_json_value *out)
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

orr_code export_fail(orr_json_value node, orr_str op, const char *words, orr_error *err)
{
    const orr_where w = orr_json_where(node);
    orr_json_value metadata, v;
    orr_str trace;
    orr_buf line = {0};
    if (orr_json_find(node, "metadata", &metadata) && orr_json_find(metadata, "stack_trace", &v) &&
        !orr_json_get_str(v, &trace, NULL))
        export_line(trace, &line);
    const orr_code code =
        orr_fail(err, ORR_EINPUT, &w, "%.*s%s%.*s: %s", shown(op), op.ptr, line.len ? " at " : "",
                 shown((orr_str){(const char *)line.ptr, line.len}),
                 line.len ? (const char *)line.ptr : "", words);
    orr_buf_fini(&line);
    return code;
}
