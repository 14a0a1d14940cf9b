/* SPDX-License-Identifier: Apache-2.0 */
/* fx_graph.c - captured steps in memory: construction and validation.
 *
 * Why one check at the end: a file may use a tensor before it defines it, and its keys come in any
 * order. Invariants after fx_check: every number is below the count of its kind; the graphs ascend
 * by rank; a group has no rank twice and holds every rank whose graph uses it; no rank is in two
 * groups of a family, which all have one size; a tensor's bytes fit into 63 bits.
 * Cost: linear in what was added, and one bit per rank. */
#include "fx_graph.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MOST = 1 << 24 };

orr_code fx_create(const char *path, orr_fx **out, orr_error *err)
{
    orr_arena *a = orr_arena_create();
    orr_fx *c = a ? orr_arena_new(a, 1, orr_fx) : NULL;
    *out = NULL;
    if (!c || !(c->path = orr_arena_text(a, orr_str_of(path)))) {
        orr_arena_destroy(a);
        return orr_no_memory(err);
    }
    c->arena = a;
    *out = c;
    return ORR_OK;
}

static void close_graph(fx_graph *g)
{
    for (int i = 0; i < FX_TEXTS; i++)
        orr_free(g->texts[i].at);
    orr_free(g->storages);
    orr_free(g->tensors);
    orr_free(g->nodes);
    orr_free(g->dims);
    orr_free(g->refs);
}

void orr_fx_close(orr_fx *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->graph_count; i++)
        close_graph(c->graphs[i]);
    orr_free(c->graphs);
    orr_free(c->groups);
    orr_free(c->notes);
    orr_free(c->ranks);
    orr_arena_destroy(c->arena);
}

/* ---- adding ---- */

orr_code fx_add_group(
    orr_fx *c, const uint32_t *ranks, size_t count, uint32_t family, uint64_t byte, orr_error *err)
{
    if (count > RANKS_MOST)
        return orr_fail(err, ORR_EINPUT, NULL, "a group of %zu ranks; the maximum is %d", count,
                        RANKS_MOST);
    if (!orr_grow(&c->groups, &c->group_room, c->group_count + 1) ||
        !orr_grow(&c->ranks, &c->rank_room, c->rank_count + count))
        return orr_no_memory(err);
    c->groups[c->group_count++] = (fx_group){
        .first = c->rank_count, .count = (uint32_t)count, .family = family, .byte = byte};
    for (size_t i = 0; i < count; i++)
        c->ranks[c->rank_count++] = ranks[i];
    return ORR_OK;
}

orr_code fx_add_graph(orr_fx *c, uint32_t rank, uint64_t byte, fx_graph **out, orr_error *err)
{
    fx_graph *g = orr_arena_new(c->arena, 1, fx_graph);
    if (!g || !orr_grow(&c->graphs, &c->graph_room, c->graph_count + 1))
        return orr_no_memory(err);
    g->rank = rank;
    g->byte = byte;
    g->arena = c->arena;
    c->graphs[c->graph_count++] = g;
    *out = g;
    /* So that an empty list has an address, too. */
    return orr_grow(&g->refs, &g->ref_room, 1) && orr_grow(&g->dims, &g->dim_room, 1)
               ? ORR_OK
               : orr_no_memory(err);
}

/* Texts are shown on terminals: control characters become '?'. */
static const char *copy_plain(orr_arena *a, orr_str text)
{
    char *copy = orr_arena_text(a, text);
    for (size_t i = 0; copy && i < text.len; i++) {
        const unsigned char ch = (unsigned char)copy[i];
        if (ch < 0x20 || ch == 0x7F)
            copy[i] = '?';
    }
    return copy;
}

orr_code fx_add_note(orr_fx *c, orr_str text, uint64_t count, orr_error *err)
{
    const char *copy = copy_plain(c->arena, text);
    if (!copy || !orr_grow(&c->notes, &c->note_room, c->note_count + 1))
        return orr_no_memory(err);
    c->notes[c->note_count++] = (orr_fx_note){.text = {copy, text.len}, .count = count};
    return ORR_OK;
}

/* Numbers have 32 bits, and one of them means none. */
static bool is_full(size_t count)
{
    return count >= FX_NONE - 1;
}

static orr_code refuse_more(orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, NULL, "more than 4,294,967,294 entries in one table");
}

orr_code fx_add_text(fx_graph *g, fx_texts table, orr_str text, uint32_t *number, orr_error *err)
{
    const size_t count = g->texts[table].count;
    if (is_full(count))
        return refuse_more(err);
    const char *copy = copy_plain(g->arena, text);
    if (!copy || !orr_grow(&g->texts[table].at, &g->texts[table].room, count + 1))
        return orr_no_memory(err);
    g->texts[table].at[count] = (orr_str){copy, text.len};
    g->texts[table].count++;
    *number = (uint32_t)count;
    return ORR_OK;
}

orr_code fx_add_storage(fx_graph *g, uint64_t bytes, fx_kept kept, uint32_t *number, orr_error *err)
{
    if (is_full(g->storage_count))
        return refuse_more(err);
    if (!orr_grow(&g->storages, &g->storage_room, g->storage_count + 1))
        return orr_no_memory(err);
    *number = (uint32_t)g->storage_count;
    g->storages[g->storage_count++] = (fx_storage){.bytes = bytes, .kept = kept};
    return ORR_OK;
}

/* A step has many tensors and few shapes: recent ones are reused. */
static bool put_dims(fx_graph *g, const fx_tensor_draft *t, size_t *first)
{
    uint64_t dims[2 * FX_DIMS_MOST];
    const size_t part = t->rank * sizeof *dims, bytes = t->stride ? 2 * part : part;
    const uint32_t count = (uint32_t)(bytes / sizeof *dims);
    *first = g->dim_count;
    if (count == 0)
        return true;
    memcpy(dims, t->shape, part);
    if (t->stride)
        memcpy(dims + t->rank, t->stride, part);
    fx_dims *recent = &g->recent[orr_hash_bytes(dims, bytes, 0) % FX_RECENT];
    if (recent->count == count && memcmp(g->dims + recent->first, dims, bytes) == 0) {
        *first = recent->first;
        return true;
    }
    if (!orr_grow(&g->dims, &g->dim_room, g->dim_count + count))
        return false;
    memcpy(g->dims + g->dim_count, dims, bytes);
    g->dim_count += count;
    *recent = (fx_dims){*first, count};
    return true;
}

orr_code fx_add_tensor(fx_graph *g, const fx_tensor_draft *t, uint32_t *number, orr_error *err)
{
    size_t dims;
    if (t->rank > FX_DIMS_MOST)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "a tensor of %" PRIu32 " dimensions; the maximum is %d", t->rank,
                        FX_DIMS_MOST);
    if (is_full(g->tensor_count))
        return refuse_more(err);
    if (!orr_grow(&g->tensors, &g->tensor_room, g->tensor_count + 1) || !put_dims(g, t, &dims))
        return orr_no_memory(err);
    *number = (uint32_t)g->tensor_count;
    g->tensors[g->tensor_count++] = (fx_tensor){.dims = dims,
                                                .offset = t->offset,
                                                .byte = t->byte,
                                                .storage = t->storage,
                                                .element_bytes = t->element_bytes,
                                                .rank = (uint8_t)t->rank,
                                                .has_stride = t->stride != NULL};
    return ORR_OK;
}

static void add_refs(fx_graph *g, const uint32_t *refs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        g->refs[g->ref_count++] = refs[i];
}

orr_code fx_add_node(fx_graph *g, const fx_node_draft *n, orr_error *err)
{
    const size_t refs = n->in_count + n->out_count + n->writes_count;
    if (is_full(g->node_count) || is_full(refs))
        return refuse_more(err);
    if (!orr_grow(&g->nodes, &g->node_room, g->node_count + 1) ||
        !orr_grow(&g->refs, &g->ref_room, g->ref_count + refs))
        return orr_no_memory(err);
    const char *equation = n->equation.len ? orr_arena_text(g->arena, n->equation) : NULL;
    if (n->equation.len && !equation)
        return orr_no_memory(err);
    g->nodes[g->node_count++] = (fx_node){.refs = g->ref_count,
                                          .byte = n->byte,
                                          .peer = n->peer,
                                          .tag = n->tag,
                                          .op = n->op,
                                          .module = n->module,
                                          .line = n->line,
                                          .group = n->group,
                                          .in_count = (uint32_t)n->in_count,
                                          .out_count = (uint32_t)n->out_count,
                                          .writes_count = (uint32_t)n->writes_count,
                                          .phase = (uint8_t)n->phase,
                                          .is_view = n->is_view,
                                          .is_causal = n->is_causal,
                                          .is_transposed = n->is_transposed,
                                          .equation = equation};
    add_refs(g, n->in, n->in_count);
    add_refs(g, n->out, n->out_count);
    add_refs(g, n->writes, n->writes_count);
    return ORR_OK;
}

/* ---- the check ---- */

orr_code fx_fail(const orr_fx *c, uint64_t byte, orr_error *err, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(c->path, byte)), "%s", text);
}

/* No rank of the group may be marked already; then marks all.  marks: 1 + the number of the last
 * group. */
static orr_code check_ranks(const orr_fx *c, uint32_t number, uint32_t *marks, orr_error *err)
{
    const fx_group *g = &c->groups[number];
    for (uint32_t i = 0; i < g->count; i++) {
        const uint32_t rank = c->ranks[g->first + i];
        if (rank >= c->world_size)
            return fx_fail(c, g->byte, err,
                           "group %" PRIu32 " holds rank %" PRIu32 ", but the job has %" PRIu32
                           " ranks",
                           number, rank, c->world_size);
        const uint32_t other = marks[rank];
        if (other == number + 1)
            return fx_fail(c, g->byte, err, "group %" PRIu32 " holds rank %" PRIu32 " twice",
                           number, rank);
        if (other && c->groups[other - 1].family == g->family)
            return fx_fail(c, g->byte, err,
                           "groups %" PRIu32 " and %" PRIu32 " are of family %" PRIu32
                           " and both hold rank %" PRIu32 "; groups of a family share no rank",
                           other - 1, number, g->family, rank);
        marks[rank] = number + 1;
    }
    return ORR_OK;
}

/* Families are numbered from 0 in the order of their first groups, so a family's groups are
 * contiguous. */
static orr_code check_groups(const orr_fx *c, orr_error *err)
{
    uint32_t *marks = orr_alloc(c->world_size, sizeof *marks);
    orr_code code = marks ? ORR_OK : orr_no_memory(err);
    if (!code && (c->group_count == 0 || c->groups[0].count != c->world_size))
        code = fx_fail(c, c->group_count ? c->groups[0].byte : 0, err,
                       "group 0 holds all %" PRIu32 " ranks, but there are %" PRIu32 " in it",
                       c->world_size, c->group_count ? c->groups[0].count : 0);
    for (size_t i = 0; i < c->group_count && !code; i++) {
        const fx_group *g = &c->groups[i], *before = i ? g - 1 : NULL;
        const bool is_same = before && before->family == g->family;
        if (!is_same && g->family != (before ? before->family + 1 : 0))
            code = fx_fail(c, g->byte, err,
                           "group %zu is of family %" PRIu32
                           "; families count up from 0 and their groups follow one another",
                           i, g->family);
        else if (g->count == 0)
            code = fx_fail(c, g->byte, err, "group %zu has no ranks", i);
        else if (is_same && before->count != g->count)
            code = fx_fail(c, g->byte, err,
                           "group %zu has %" PRIu32 " ranks, but group %zu of the same "
                           "family has %" PRIu32,
                           i, g->count, i - 1, before->count);
        else
            code = check_ranks(c, (uint32_t)i, marks, err);
    }
    orr_free(marks);
    return code;
}

static orr_code check_tensor(const orr_fx *c, const fx_graph *g, size_t i, orr_error *err)
{
    const fx_tensor *t = &g->tensors[i];
    const uint64_t *shape = fx_shape(g, t);
    uint64_t bytes = t->element_bytes ? t->element_bytes : 1;
    if (t->storage >= g->storage_count)
        return fx_fail(c, t->byte, err, "tensor %zu is in storage %" PRIu32 "; there are %zu", i,
                       t->storage, g->storage_count);
    bool has_none = false;
    for (uint8_t d = 0; d < t->rank; d++)
        has_none |= shape[d] == 0;
    for (uint8_t d = 0; d < t->rank && !has_none; d++) {
        if (__builtin_mul_overflow(bytes, shape[d], &bytes) || bytes > INT64_MAX)
            return fx_fail(c, t->byte, err, "tensor %zu has more than 2^63 bytes", i);
    }
    return ORR_OK;
}

/* is_known: groups already found to hold the rank, so that each is searched once. */
static orr_code check_group_use(
    const orr_fx *c, const fx_graph *g, size_t i, bool *is_known, orr_error *err)
{
    const fx_node *n = &g->nodes[i];
    if (n->group >= c->group_count)
        return fx_fail(c, n->byte, err, "node %zu uses group %" PRIu32 "; there are %zu", i,
                       n->group, c->group_count);
    const fx_group *group = &c->groups[n->group];
    for (uint32_t k = 0; k < group->count && !is_known[n->group]; k++)
        is_known[n->group] = c->ranks[group->first + k] == g->rank;
    if (!is_known[n->group])
        return fx_fail(c, n->byte, err,
                       "node %zu of rank %" PRIu32 " uses group %" PRIu32
                       ", which does not hold that rank",
                       i, g->rank, n->group);
    if (n->peer != FX_NO_PEER && (n->peer < 0 || n->peer >= group->count))
        return fx_fail(c, n->byte, err,
                       "node %zu refers to place %" PRId64 " of group %" PRIu32 ", which has "
                       "%" PRIu32 " ranks",
                       i, n->peer, n->group, group->count);
    return ORR_OK;
}

static orr_code check_text(
    const orr_fx *c, const fx_graph *g, size_t i, fx_texts table, uint32_t number, orr_error *err)
{
    static const char *const names[FX_TEXTS] = {"ops", "modules", "lines"};
    if (number < g->texts[table].count || (number == FX_NONE && table != FX_OPS))
        return ORR_OK;
    return fx_fail(c, g->nodes[i].byte, err,
                   "node %zu refers to entry %" PRIu32 " of \"%s\"; there are %zu", i, number,
                   names[table], g->texts[table].count);
}

static orr_code check_node(const orr_fx *c, const fx_graph *g, size_t i, orr_error *err)
{
    const fx_node *n = &g->nodes[i];
    const size_t refs = (size_t)n->in_count + n->out_count + n->writes_count;
    orr_code code;
    if ((code = check_text(c, g, i, FX_OPS, n->op, err)) ||
        (code = check_text(c, g, i, FX_MODULES, n->module, err)) ||
        (code = check_text(c, g, i, FX_LINES, n->line, err)))
        return code;
    for (size_t k = 0; k < refs; k++) {
        if (g->refs[n->refs + k] >= g->tensor_count)
            return fx_fail(c, n->byte, err,
                           "node %zu refers to tensor %" PRIu32 "; there are "
                           "%zu",
                           i, g->refs[n->refs + k], g->tensor_count);
    }
    return ORR_OK;
}

bool fx_is_comm_op(orr_str op)
{
    static const char *const spaces[] = {"c10d.", "_c10d_functional.", "_c10d_functional_autograd.",
                                         "c10d_functional.", "_dtensor."};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        const size_t n = strlen(spaces[i]);
        if (op.len > n && memcmp(op.ptr, spaces[i], n) == 0)
            return true;
    }
    return false;
}

/* Only communication has a process group in "group": a group norm has such an argument, too. */
static void forget_group(const fx_graph *g, fx_node *n)
{
    if (fx_is_comm_op(fx_text(g, FX_OPS, n->op)))
        return;
    n->group = FX_NONE;
    n->peer = n->tag = FX_NO_PEER;
}

static orr_code check_nodes(const orr_fx *c, const fx_graph *g, orr_error *err)
{
    bool *is_known = orr_alloc(c->group_count + 1, sizeof *is_known);
    orr_code code = is_known ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < g->node_count && !code; i++) {
        fx_node *n = &g->nodes[i];
        if ((code = check_node(c, g, i, err)))
            break;
        if (n->group != FX_NONE || n->peer != FX_NO_PEER)
            forget_group(g, n);
        if (n->group != FX_NONE)
            code = check_group_use(c, g, i, is_known, err);
    }
    orr_free(is_known);
    return code;
}

static orr_code check_graph(const orr_fx *c, const fx_graph *g, orr_error *err)
{
    orr_code code = ORR_OK;
    uint64_t total = 0;
    if (g->rank >= c->world_size)
        return fx_fail(c, g->byte, err,
                       "a graph of rank %" PRIu32 ", but the job has %" PRIu32 " ranks", g->rank,
                       c->world_size);
    for (size_t i = 0; i < g->storage_count; i++) {
        if (__builtin_add_overflow(total, g->storages[i].bytes, &total) || total > INT64_MAX)
            return fx_fail(c, g->byte, err,
                           "the storages of rank %" PRIu32 " have more than 2^63 bytes together",
                           g->rank);
    }
    for (size_t i = 0; i < g->tensor_count && !code; i++)
        code = check_tensor(c, g, i, err);
    return code ? code : check_nodes(c, g, err);
}

static int by_rank(const void *a, const void *b)
{
    const fx_graph *x = *(fx_graph *const *)a, *y = *(fx_graph *const *)b;
    return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1)
                              : (x->byte > y->byte) - (x->byte < y->byte);
}

orr_code fx_check(orr_fx *c, orr_error *err)
{
    if (c->world_size == 0 || c->world_size > RANKS_MOST)
        return fx_fail(c, 0, err, "a job of %" PRIu32 " ranks; 1 to %d are possible", c->world_size,
                       RANKS_MOST);
    if (c->graph_count == 0)
        return fx_fail(c, 0, err, "no rank was captured: \"graphs\" is empty");
    orr_code code = check_groups(c, err);
    for (size_t i = 0; i < c->graph_count && !code; i++)
        code = check_graph(c, c->graphs[i], err);
    if (code)
        return code;
    orr_sort(c->graphs, c->graph_count, sizeof *c->graphs, by_rank);
    for (size_t i = 1; i < c->graph_count; i++) {
        if (c->graphs[i]->rank == c->graphs[i - 1]->rank)
            return fx_fail(c, c->graphs[i]->byte, err, "a second graph of rank %" PRIu32,
                           c->graphs[i]->rank);
    }
    return ORR_OK;
}
