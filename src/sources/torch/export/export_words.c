/* SPDX-License-Identifier: Apache-2.0 */
/* export_words.c - what the names of operators and the texts beside them say.
 *
 * A saved program has no schemas: whether an operator makes new memory, looks at old memory or writes to it follows
 * from its name, by PyTorch's conventions (a trailing underscore writes in place) and a list of the views.  Some
 * operators copy only when they must; for those the strides of both sides decide, by the rule PyTorch itself
 * follows. */
#include "export_impl.h"

#include <stdlib.h>

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

/* From the last dimension on, runs of dimensions that lie in memory without gaps; each run must be made of whole new
 * dimensions.  Dimensions of size 1 have any stride and end no run. */
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

/* The part of s behind the last c, or all of it. */
static orr_str behind_last(orr_str s, char c)
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
    const orr_str first = until(stack, ';'), last = behind_last(stack, ';');
    const orr_str class_name = behind_last(behind_last(first, ','), '.');
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
    const orr_str file = behind_last(found, '/');
    orr_buf_add(to, file.ptr, file.len);
    orr_buf_byte(to, ':');
    orr_buf_add(to, found_line.ptr, found_line.len);
}

/* The numbers of torch/_export/serde/schema.py. */
uint32_t export_dtype_bytes(int64_t number)
{
    static const uint8_t bytes[] = {
        [1] = 1,                                 /* uint8 */
        [2] = 1,                                 /* int8 */
        [3] = 2,                                 /* int16 */
        [4] = 4,                                 /* int32 */
        [5] = 8,                                 /* int64 */
        [6] = 2,                                 /* float16 */
        [7] = 4,                                 /* float32 */
        [8] = 8,                                 /* float64 */
        [9] = 4,                                 /* complex32 */
        [10] = 8,                                /* complex64 */
        [11] = 16,                               /* complex128 */
        [12] = 1,                                /* bool */
        [13] = 2,                                /* bfloat16 */
        [28] = 2,                                /* uint16 */
        [29] = 1,  [30] = 1, [31] = 1, [32] = 1, /* float8, four kinds */
    };
    return number >= 0 && (uint64_t)number < sizeof bytes ? bytes[number] : 0;
}
