/* SPDX-License-Identifier: Apache-2.0 */
/* operator_name.c - from a name to its row, whoever wrote the name.
 *
 *     aten.add_.Tensor   torch.ops.aten.add_.Tensor   aten::add_   aten::_foreach_add_.Scalar
 *
 * The base is looked up as it stands; then, where it works in place, without the mark at its end; then, where it works on
 * lists, without _foreach_.  So a new variant of a known operator needs no row. */
#include "operator_table.h"

#include "base/text/text.h"

static orr_str behind(orr_str s, size_t n)
{
    return (orr_str){s.ptr + n, s.len - n};
}

/* Up to the first '.' or "::"; *rest is what follows, empty if nothing does. */
static orr_str cut_part(orr_str s, orr_str *rest)
{
    for (size_t i = 0; i < s.len; i++) {
        const bool is_dot = s.ptr[i] == '.';
        if (!is_dot && !(s.ptr[i] == ':' && i + 1 < s.len && s.ptr[i + 1] == ':'))
            continue;
        *rest = behind(s, i + (is_dot ? 1 : 2));
        return (orr_str){s.ptr, i};
    }
    *rest = behind(s, s.len);
    return s;
}

/* "__and__" is no operator that works in place, though it ends in the mark. */
static bool has_mark(orr_str base)
{
    return base.len > 1 && orr_str_ends(base, "_") && !orr_str_ends(base, "__");
}

/* Overloads that are given their results: out, dim_out, grad_input, values ... */
static bool is_out_overload(orr_str overload)
{
    return orr_str_ends(overload, "out") || orr_str_ends(overload, "grad_input") ||
           orr_str_ends(overload, "values") || orr_str_is(overload, "dim_max") ||
           orr_str_is(overload, "dim_min");
}

operator_name orr__operator_name(orr_str name)
{
    operator_name out = {{NULL, 0}, {NULL, 0}, false, false, false};
    orr_str rest;
    if (orr_str_begins(name, "torch.ops."))
        name = behind(name, strlen("torch.ops."));
    out.space = cut_part(name, &rest);
    if (rest.len == 0) { /* no namespace at all */
        out.base = out.space;
        out.space = (orr_str){"aten", 4};
    } else {
        out.base = cut_part(rest, &rest);
    }
    out.is_out = is_out_overload(rest);
    out.is_in_place = has_mark(out.base);
    out.is_list = orr_str_begins(out.base, "_foreach_");
    return out;
}

static int compare(orr_str a, const char *b)
{
    const size_t n = strlen(b);
    const int order = memcmp(a.ptr, b, a.len < n ? a.len : n);
    return order ? order : (a.len > n) - (a.len < n);
}

static const operator_row *find(operator_rows table, orr_str base)
{
    size_t from = 0, to = table.count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const int order = compare(base, table.rows[middle].name);
        if (order == 0)
            return &table.rows[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}

static const operator_row *find_any(orr_str base)
{
    const operator_row *row = find(orr__operator_arithmetic(), base);
    return row ? row : find(orr__operator_moves(), base);
}

static const operator_row *find_marked(orr_str base)
{
    const operator_row *row = find_any(base);
    if (row || !has_mark(base))
        return row;
    return find_any((orr_str){base.ptr, base.len - 1});
}

const operator_row *orr__operator_row(const operator_name *name)
{
    if (!orr_str_is(name->space, "aten") && !orr_str_is(name->space, "prims") &&
        !orr_str_is(name->space, "fsdp"))
        return NULL;
    const operator_row *row = find_marked(name->base);
    if (row || !name->is_list)
        return row;
    return find_marked(behind(name->base, strlen("_foreach_")));
}
