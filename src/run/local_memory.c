/* SPDX-License-Identifier: Apache-2.0 */
/* local_memory.c - the live tensors of a rank over time, from the nodes that write and read them
 * (astra-sim.md 10.2).
 *
 * A node lists its tensors in the attributes inputs and outputs: name, size in bytes, name, size,
 * ...  A tensor lives from the start of the node that writes it (from tick 0 when none does) to the
 * end of the last one that reads it.  During the run only the order in which nodes end is kept;
 * everything else is computed from it twice: for the peak when the rank finishes, and for the file
 * when it is written.
 *
 * Cost: O(n log n) in the tensors and reads of a rank. */
#include "watch.h"

#include "base/memory/sort.h"
#include "base/text/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct mem_tensor_log *mem_tensor_log_create(uint32_t nodes)
{
    struct mem_tensor_log *l = orr_alloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->done = orr_alloc(nodes, sizeof *l->done);
    l->ended_at = orr_alloc(nodes, sizeof *l->ended_at);
    if (l->done && l->ended_at)
        return l;
    mem_tensor_log_destroy(l);
    return NULL;
}

void mem_tensor_log_destroy(struct mem_tensor_log *l)
{
    if (!l)
        return;
    orr_free(l->done);
    orr_free(l->ended_at);
    orr_free(l);
}

static void note_end(run_npu *n, uint32_t place)
{
    struct mem_tensor_log *l = n->tensor_log;
    l->ended_at[place] = clk_now(n->sim->clock);
    l->done[l->count++] = place;
}

/* ---- the ledger: tensors in the order of their first mention ---- */

/* The reference's value for a tensor that no node writes. */
enum { UNWRITTEN_END = 10 };

void mem_ledger_fini(mem_ledger *l)
{
    orr_intern_destroy(l->names);
    orr_free(l->tensors);
    orr_free(l->reads);
    orr_free(l->readable);
    orr_free(l->points);
}

static orr_code refuse(mem_ledger *l, uint32_t place, const char *words, orr_str what)
{
    const work_graph *g = l->n->graph;
    const orr_where w = orr_trace_where(g->t, g->node[place]);
    return orr_fail(l->err, ORR_EINPUT, &w,
                    "rank %u, node %" PRIu64 ": local memory cannot be tracked: %s \"%.*s\"",
                    l->n->rank,
                    g->t->id[g->node[place]] + orr_set_id_shift(l->n->sim->set, l->n->rank), words,
                    (int)(what.len < 80 ? what.len : 80), what.ptr);
}

/* Find or add; *is_new says which. */
static orr_code find_tensor(mem_ledger *l, orr_str name, uint64_t size, uint32_t *out, bool *is_new)
{
    if (!orr_intern_add(l->names, name, out))
        return orr_no_memory(l->err);
    *is_new = *out == l->count;
    if (!*is_new)
        return ORR_OK;
    if (!orr_grow(&l->tensors, &l->room, l->count + 1))
        return orr_no_memory(l->err);
    l->tensors[l->count++] = (mem_tensor){.size = size,
                                          .writer = RUN_NONE,
                                          .written = UNWRITTEN_END,
                                          .last_read = ORR_NEVER,
                                          .first = RUN_NONE};
    return ORR_OK;
}

static orr_code add_read(mem_ledger *l, uint32_t place, orr_str name, uint64_t size)
{
    uint32_t which;
    bool is_new;
    const orr_code code = find_tensor(l, name, size, &which, &is_new);
    if (code)
        return code;
    mem_tensor *t = &l->tensors[which];
    const uint32_t r = (uint32_t)l->read_count;
    if (!orr_grow(&l->reads, &l->read_room, l->read_count + 1) ||
        !orr_grow(&l->readable, &l->readable_room, l->readable_count + 1))
        return orr_no_memory(l->err);
    l->reads[l->read_count++] = (mem_read){.place = place, .next = RUN_NONE};
    if (t->first == RUN_NONE) {
        l->readable[l->readable_count++] = which;
        t->first = r;
    } else {
        l->reads[t->last].next = r;
    }
    t->last = r;
    /* Nodes come in the order of their ends, so the last one added is the last reader. */
    t->last_read = l->n->tensor_log->ended_at[place];
    return ORR_OK;
}

static orr_code add_write(mem_ledger *l, uint32_t place, orr_str name, uint64_t size)
{
    uint32_t which;
    bool is_new;
    const orr_code code = find_tensor(l, name, size, &which, &is_new);
    if (code)
        return code;
    /* A tensor has one writer: with two, its start would be ambiguous. */
    if (!is_new)
        return refuse(l, place, "this node writes a tensor that already exists:", name);
    mem_tensor *t = &l->tensors[which];
    t->writer = place;
    t->born = l->n->started_at[place];
    t->written = l->n->tensor_log->ended_at[place];
    return ORR_OK;
}

/* The bytes of a tensor.  Generators that divide write a fraction ("230686720.0"), which is
 * ignored; the reference stops at the first non-digit (astra-sim.md 10.2). */
static bool read_size(const run_npu *n, orr_str text, uint64_t *bytes)
{
    size_t digits = 0, end;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    end = digits;
    if (end + 1 < text.len && text.ptr[end] == '.')
        for (end++; end < text.len && text.ptr[end] >= '0' && text.ptr[end] <= '9';)
            end++;
    return (end == text.len || n->sim->rules->reads_leading_digits) &&
           orr_text_u64((orr_str){text.ptr, digits}, bytes);
}

typedef orr_code (*adder)(mem_ledger *l, uint32_t place, orr_str name, uint64_t size);

/* An attribute of another type, or an empty list, names no tensors, as in the reference. */
static orr_code add_tensors(
    mem_ledger *l, uint32_t place, const orr_node *node, const char *key, adder add)
{
    orr_attr attr;
    orr_value name, size;
    uint64_t bytes;
    orr_code code = ORR_OK;
    if (!orr_node_attr(node, key, &attr))
        return refuse(l, place, "the node lacks the attribute", orr_str_of(key));
    if (!attr.is_list || attr.kind != ORR_VALUE_STRING)
        return ORR_OK;
    for (orr_list it = orr_attr_items(&attr); !code && orr_list_next(&it, &name);) {
        if (!orr_list_next(&it, &size))
            return refuse(l, place, "there is no size after the tensor", name.s);
        if (!read_size(l->n, size.s, &bytes))
            return refuse(l, place, "not a size in bytes:", size.s);
        if (bytes > 0) /* empty tensors do not count */
            code = add(l, place, name.s, bytes);
    }
    return code;
}

/* One attribute; false: it ends the readable part of the list. */
static bool visit_attribute(const run_npu *n,
                            const orr_node *node,
                            const char *key,
                            bool is_write,
                            mem_tensor_visit visit,
                            void *context)
{
    orr_attr attr;
    orr_value name, size;
    uint64_t bytes;
    if (!orr_node_attr(node, key, &attr))
        return false;
    if (!attr.is_list || attr.kind != ORR_VALUE_STRING)
        return true;
    for (orr_list it = orr_attr_items(&attr); orr_list_next(&it, &name);) {
        if (!orr_list_next(&it, &size) || !read_size(n, size.s, &bytes))
            return false;
        if (bytes > 0)
            visit(context, is_write, name.s);
    }
    return true;
}

void mem_visit_tensors(const run_npu *n, uint32_t place, mem_tensor_visit visit, void *context)
{
    orr_node node;
    orr_trace_node(n->graph->t, n->graph->node[place], &node);
    if (visit_attribute(n, &node, "inputs", false, visit, context))
        (void)!visit_attribute(n, &node, "outputs", true, visit, context);
}

static orr_code add_nodes(mem_ledger *l)
{
    const struct mem_tensor_log *log = l->n->tensor_log;
    const work_graph *g = l->n->graph;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < log->count && !code; i++) {
        const uint32_t place = log->done[i];
        orr_node node;
        orr_trace_node(g->t, g->node[place], &node);
        code = add_tensors(l, place, &node, "inputs", add_read);
        if (!code)
            code = add_tensors(l, place, &node, "outputs", add_write);
    }
    return code;
}

static int compare_points(const void *a, const void *b)
{
    const uint64_t x = ((const mem_point *)a)->tick, y = ((const mem_point *)b)->tick;
    /* Points of one tick are summed, so ties need no order. */
    return x < y ? -1 : x > y;
}

/* Births and deaths of one tick are combined, so a tensor that dies as another is born makes no
 * peak. */
static orr_code add_points(mem_ledger *l)
{
    /* A birth each, and at most one death. */
    l->points = orr_alloc(2 * l->count, sizeof *l->points);
    if (!l->points)
        return orr_no_memory(l->err);
    size_t changes = 0;
    for (size_t i = 0; i < l->count; i++) {
        const mem_tensor *t = &l->tensors[i];
        /* Unsigned, so that a death is a size that wraps: sums are still correct. */
        l->points[changes++] = (mem_point){t->born, t->size};
        if (t->last_read != ORR_NEVER)
            l->points[changes++] = (mem_point){t->last_read, -t->size};
    }
    orr_sort(l->points, changes, sizeof *l->points, compare_points);
    uint64_t usage = 0;
    for (size_t i = 0; i < changes; i++) {
        const uint64_t tick = l->points[i].tick;
        usage += l->points[i].usage;
        if (i == 0 || tick != l->points[l->point_count - 1].tick)
            l->point_count++;
        l->points[l->point_count - 1] = (mem_point){tick, usage};
    }
    return ORR_OK;
}

orr_code mem_ledger_make(const run_npu *n, mem_ledger *l, orr_error *err)
{
    *l = (mem_ledger){.n = n, .names = orr_intern_create(), .err = err};
    orr_code code = l->names ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = add_nodes(l);
    if (!code)
        code = add_points(l);
    return code;
}

static void measure(run_npu *n)
{
    mem_ledger l;
    orr_error err;
    const orr_code code = mem_ledger_make(n, &l, &err);
    for (size_t i = 0; i < l.point_count; i++)
        if (l.points[i].usage > n->result.peak_memory)
            n->result.peak_memory = l.points[i].usage;
    if (code)
        run_fail(n->sim, code, &err);
    mem_ledger_fini(&l);
}

const run_observer mem_observer = {.node_end = note_end, .rank_end = measure};

orr_code mem_usage(const run_npu *n, mem_usage_visit visit, void *context, orr_error *err)
{
    mem_ledger l;
    const orr_code code = mem_ledger_make(n, &l, err);
    for (size_t i = 0; i < l.point_count && !code; i++)
        visit(context, l.points[i].tick, l.points[i].usage);
    mem_ledger_fini(&l);
    return code;
}

const char *orr_sim_memory_trace(const orr_sim *s)
{
    return s->system.track_local_mem ? s->system.local_mem_file : NULL;
}
