/* SPDX-License-Identifier: Apache-2.0 */
/* feeder.c - feeding a trace that is in memory.
 *
 * Per node: how many parents it still waits for, and the list of its children (CSR, the trace's dependencies
 * turned round).  Ready nodes are a bitmap tree over *positions*: a node's place in the order of ids, which
 * for ordinary traces is its index.  Cost: opening O(nodes + dependencies), each node O(1) plus its
 * children; 9 bytes a node and 4 a dependency. */
#include "feeder_impl.h"

#include "base/memory/bitset_queue.h"

#include <inttypes.h>
#include <stdio.h>

enum { RELEASE_EVERY = 1 << 22 };

typedef enum node_state { WAITING = 0, READY, TAKEN, FINISHED } node_state;

struct orr_feeder {
    orr__window *window; /* when not NULL, all the rest is unused */
    const orr_trace *t;
    orr_trace *owned; /* t, when the feeder opened it */
    orr_feeder_options opt;
    uint32_t count;
    uint32_t *pending;             /* parents not finished */
    uint32_t *child_first, *child; /* CSR */
    uint8_t *state;
    uint32_t *place; /* position of a node by id; NULL: its index */
    orr_bitset_queue ready;
    uint64_t in_flight, left;
    uint64_t released; /* pages of the trace's file before this have been given back */
};

static bool feeds_data(const orr_feeder *f)
{
    return f->opt.deps != ORR_FEED_CTRL;
}

static bool feeds_ctrl(const orr_feeder *f)
{
    return f->opt.deps != ORR_FEED_DATA && f->t->columns.ctrl_first;
}

/* ---- opening ---- */

static orr_code fail_node(
    const orr_trace *t, uint32_t node, orr_error *err, const char *what, uint64_t other)
{
    const orr_where w = orr_trace_where(t, node);
    const orr_str name = orr_trace_name(t, node);
    return orr_fail(err, ORR_EINPUT, &w, "node %" PRIu64 " \"%.*s\": %s %" PRIu64, t->id[node],
                    (int)(name.len < 80 ? name.len : 80), name.ptr, what, other);
}

static orr_code refuse_missing(const orr_trace *t, bool is_data, orr_error *err)
{
    const orr_columns *c = &t->columns;
    const uint32_t *first = is_data ? c->data_first : c->ctrl_first;
    const uint32_t *deps = is_data ? c->data_dep : c->ctrl_dep;
    uint32_t i = 0, e = 0;
    while (deps[e] != ORR_NO_NODE)
        e++;
    while (first[i + 1] <= e)
        i++;
    orr_node node;
    orr_value id = {.u = 0};
    orr_trace_node(t, i, &node);
    orr_list it = is_data ? orr_node_data_deps(&node) : orr_node_ctrl_deps(&node);
    for (uint32_t k = first[i]; k <= e; k++)
        orr_list_next(&it, &id);
    return fail_node(t, i, err,
                     is_data ? "its data dependency is not in the trace: node"
                             : "its control dependency is not in the trace: node",
                     id.u);
}

static orr_code refuse_duplicate(const orr_trace *t, orr_error *err)
{
    for (size_t p = 1; p < t->count; p++) {
        const uint32_t node = t->by_id[p];
        if (t->id[node] == t->id[t->by_id[p - 1]])
            return fail_node(t, node, err, "an earlier node has the same id", t->id[node]);
    }
    return orr_fail(err, ORR_EBUG, NULL, "duplicate ids were counted but not found");
}

static orr_code refuse_unsound(const orr_feeder *f, orr_error *err)
{
    const orr_columns *c = &f->t->columns;
    if (f->opt.order == ORR_FEED_AS_V2)
        return ORR_OK;
    if (c->duplicate_ids)
        return refuse_duplicate(f->t, err);
    if (c->data_missing && feeds_data(f))
        return refuse_missing(f->t, true, err);
    if (c->ctrl_missing && feeds_ctrl(f))
        return refuse_missing(f->t, false, err);
    return ORR_OK;
}

/* Two passes over the dependencies: count children, then place them. */
static void count_children(orr_feeder *f, const uint32_t *first, const uint32_t *deps)
{
    for (uint32_t e = 0; e < first[f->count]; e++)
        if (deps[e] != ORR_NO_NODE)
            f->child_first[deps[e] + 1]++;
}

static void place_children(orr_feeder *f, const uint32_t *first, const uint32_t *deps)
{
    for (uint32_t i = 0; i < f->count; i++) {
        f->pending[i] += first[i + 1] - first[i];
        for (uint32_t e = first[i]; e < first[i + 1]; e++)
            if (deps[e] != ORR_NO_NODE)
                f->child[f->child_first[deps[e]]++] = i;
    }
}

/* V2 keeps a child once in its parent's list, yet waits for every mention of the parent (chakra.md 6.1):
 * take the repeats out of the children and leave them in the count. */
static void forget_repeats(orr_feeder *f)
{
    uint32_t to = 0, from = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const uint32_t begin = to;
        for (; from < f->child_first[i + 1]; from++)
            if (to == begin || f->child[to - 1] != f->child[from])
                f->child[to++] = f->child[from];
        f->child_first[i] = begin;
        from = f->child_first[i + 1];
    }
    f->child_first[f->count] = to;
}

static bool link_children(orr_feeder *f)
{
    const orr_columns *c = &f->t->columns;
    const size_t edges = (size_t)(feeds_data(f) ? c->data_first[f->count] : 0) +
                         (feeds_ctrl(f) ? c->ctrl_first[f->count] : 0);
    f->pending = orr_alloc(f->count, sizeof *f->pending);
    f->child_first = orr_alloc((size_t)f->count + 1, sizeof *f->child_first);
    f->child = edges <= UINT32_MAX ? orr_alloc(edges, sizeof *f->child) : NULL;
    if (!f->pending || !f->child_first || !f->child)
        return false;
    if (feeds_data(f))
        count_children(f, c->data_first, c->data_dep);
    if (feeds_ctrl(f))
        count_children(f, c->ctrl_first, c->ctrl_dep);
    for (uint32_t i = 0; i < f->count; i++)
        f->child_first[i + 1] += f->child_first[i];
    if (feeds_data(f))
        place_children(f, c->data_first, c->data_dep);
    if (feeds_ctrl(f))
        place_children(f, c->ctrl_first, c->ctrl_dep);
    /* Placing has moved every start to its end, which is the next one's start. */
    memmove(f->child_first + 1, f->child_first, (size_t)f->count * sizeof *f->child_first);
    f->child_first[0] = 0;
    return true;
}

/* ---- cycles ---- */

/* Finish everything that can be finished; what is left depends on itself. */
static uint32_t peel(const orr_feeder *f, uint32_t *pending, uint32_t *stack)
{
    uint32_t depth = 0, done = 0;
    for (uint32_t i = 0; i < f->count; i++)
        if (pending[i] == 0)
            stack[depth++] = i;
    while (depth) {
        const uint32_t i = stack[--depth];
        done++;
        for (uint32_t e = f->child_first[i]; e < f->child_first[i + 1]; e++)
            if (--pending[f->child[e]] == 0)
                stack[depth++] = f->child[e];
    }
    return done;
}

/* A parent of node that is itself stuck: there is one, or node would not be. */
static uint32_t stuck_parent(const orr_feeder *f, uint32_t node, const uint32_t *pending)
{
    const orr_columns *c = &f->t->columns;
    if (feeds_data(f))
        for (uint32_t e = c->data_first[node]; e < c->data_first[node + 1]; e++)
            if (pending[c->data_dep[e]])
                return c->data_dep[e];
    for (uint32_t e = feeds_ctrl(f) ? c->ctrl_first[node] : 0;
         feeds_ctrl(f) && e < c->ctrl_first[node + 1]; e++)
        if (pending[c->ctrl_dep[e]])
            return c->ctrl_dep[e];
    return node;
}

void orr__cycle_text(const uint64_t *ids, size_t count, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++) {
        const bool is_cut = count > 10 && i == 5;
        const int n =
            snprintf(out + used, size - used, is_cut ? "%s... (%" PRIu64 " more)" : "%s%" PRIu64,
                     i ? " -> " : "", is_cut ? (uint64_t)count - 9 : ids[i]);
        used += n > 0 ? (size_t)n : 0;
        if (is_cut)
            i = count - 5;
    }
}

/* Walk from parent to parent among the stuck nodes until one comes again. */
static orr_code describe_cycle(const orr_feeder *f,
                               const uint32_t *pending,
                               uint32_t *path,
                               orr_error *err)
{
    uint32_t node = 0, length = 0, begin;
    while (pending[node] == 0)
        node++;
    while (f->state[node] == WAITING) {
        f->state[node] = FINISHED; /* seen; the feeder is thrown away afterwards */
        path[length++] = node;
        node = stuck_parent(f, node, pending);
    }
    for (begin = 0; path[begin] != node;)
        begin++;
    const uint32_t count = length - begin + 1; /* the first one again at the end */
    char text[240];
    uint64_t *all = orr_alloc(count, sizeof *all);
    if (!all)
        return orr_no_memory(err);
    for (uint32_t i = 0; i + 1 < count; i++)
        all[i] = f->t->id[path[length - 1 - i]]; /* parents were followed, so turn it round */
    all[count - 1] = all[0];
    orr__cycle_text(all, count, text, sizeof text);
    orr_free(all);
    const orr_where w = orr_trace_where(f->t, path[begin]);
    return orr_fail(err, ORR_EINPUT, &w, "dependencies form a cycle of %u nodes: %s", count - 1,
                    text);
}

static orr_code refuse_cycle(orr_feeder *f, orr_error *err)
{
    if (f->t->columns.is_topological || f->opt.order == ORR_FEED_AS_V2)
        return ORR_OK;
    uint32_t *pending = orr_alloc(f->count, sizeof *pending);
    uint32_t *stack = orr_alloc(f->count, sizeof *stack);
    orr_code code = ORR_OK;
    if (!pending || !stack) {
        code = orr_no_memory(err);
    } else {
        memcpy(pending, f->pending, f->count * sizeof *pending);
        if (peel(f, pending, stack) != f->count)
            code = describe_cycle(f, pending, stack, err);
    }
    orr_free(pending);
    orr_free(stack);
    return code;
}

/* ---- opening, continued ---- */

static bool set_places(orr_feeder *f)
{
    if (!f->t->by_id)
        return true;
    f->place = orr_alloc(f->count, sizeof *f->place);
    for (uint32_t p = 0; f->place && p < f->count; p++)
        f->place[f->t->by_id[p]] = p;
    return f->place != NULL;
}

/* In V2 the last node of an id replaces the earlier ones; the trace resolves dependencies to the last. */
static bool is_replaced(const orr_feeder *f, uint32_t node)
{
    if (!f->t->columns.duplicate_ids)
        return false;
    const uint32_t p = f->place[node];
    return p + 1 < f->count && f->t->id[f->t->by_id[p + 1]] == f->t->id[node];
}

static void make_ready(orr_feeder *f, uint32_t node)
{
    f->state[node] = READY;
    orr_bitset_insert(&f->ready, f->place ? f->place[node] : node);
}

static void start(orr_feeder *f)
{
    f->left = f->count;
    for (uint32_t i = 0; i < f->count; i++) {
        if (is_replaced(f, i)) {
            f->state[i] = FINISHED;
            f->left--;
        } else if (f->pending[i] == 0) {
            make_ready(f, i);
        }
    }
}

static orr_code prepare(orr_feeder *f, orr_error *err)
{
    f->count = f->t->columns.count;
    if (f->opt.order == ORR_FEED_AS_V2)
        f->opt.deps = ORR_FEED_DATA;
    orr_code code = refuse_unsound(f, err);
    if (code)
        return code;
    f->state = orr_alloc(f->count, 1);
    if (!f->state || !link_children(f) || !set_places(f) || !orr_bitset_init(&f->ready, f->count))
        return orr_no_memory(err);
    if (f->opt.order == ORR_FEED_AS_V2)
        forget_repeats(f);
    if ((code = refuse_cycle(f, err)))
        return code;
    start(f);
    return ORR_OK;
}

orr_code orr_feeder_create(const orr_trace *t,
                           const orr_feeder_options *opt,
                           orr_feeder **out,
                           orr_error *err)
{
    *out = NULL;
    if (!t->is_sealed)
        return orr_fail(err, ORR_EUSAGE, NULL, "only a sealed trace can be fed");
    orr_feeder *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    if (opt)
        f->opt = *opt;
    f->t = t;
    const orr_code code = prepare(f, err);
    if (code)
        orr_feeder_close(f);
    else
        *out = f;
    return code;
}

static orr_code open_window(const char *path,
                            const orr_feeder_options *opt,
                            orr_feeder **out,
                            orr_error *err)
{
    orr_feeder *f = orr_alloc(1, sizeof *f);
    if (!f)
        return orr_no_memory(err);
    const orr_code code = orr__window_open(path, opt, &f->window, err);
    if (code)
        orr_feeder_close(f);
    else
        *out = f;
    return code;
}

orr_code orr_feeder_open(const char *path,
                         const orr_feeder_options *opt,
                         orr_feeder **out,
                         orr_error *err)
{
    orr_trace *t;
    *out = NULL;
    if (opt && opt->window)
        return open_window(path, opt, out, err);
    orr_read_options read = opt ? opt->read : (orr_read_options){.schema = ORR_SCHEMA_AUTO};
    orr_code code = orr_trace_read(path, &read, &t, err);
    if (code)
        return code;
    code = orr_feeder_create(t, opt, out, err);
    if (code)
        orr_trace_destroy(t);
    else
        (*out)->owned = t;
    return code;
}

void orr_feeder_close(orr_feeder *f)
{
    if (!f)
        return;
    orr__window_close(f->window);
    orr_free(f->pending);
    orr_free(f->child_first);
    orr_free(f->child);
    orr_free(f->state);
    orr_free(f->place);
    orr_bitset_fini(&f->ready);
    orr_trace_destroy(f->owned);
    orr_free(f);
}

/* ---- feeding ---- */

uint32_t orr_feeder_take(orr_feeder *f)
{
    if (f->window || orr_bitset_is_empty(&f->ready))
        return ORR_NO_NODE;
    const uint32_t p = orr_bitset_pop(&f->ready);
    const uint32_t node = f->place ? f->t->by_id[p] : p;
    f->state[node] = TAKEN;
    f->in_flight++;
    return node;
}

void orr_feeder_done(orr_feeder *f, uint32_t node)
{
    f->state[node] = FINISHED;
    f->in_flight--;
    f->left--;
    for (uint32_t e = f->child_first[node]; e < f->child_first[node + 1]; e++) {
        const uint32_t child = f->child[e];
        if (--f->pending[child] == 0 && f->state[child] == WAITING)
            make_ready(f, child);
    }
}

/* Records are looked at roughly in the order of the file, each about once: what lies well behind may go, or
 * feeding a trace would bring its whole file into memory. */
static void release_behind(orr_feeder *f, uint32_t node)
{
    const orr_trace *t = f->t;
    const uint64_t at = t->body_at[node];
    if (!t->source || at < f->released + 2 * RELEASE_EVERY)
        return;
    orr_input_release(t->source, t->source_at + f->released, t->source_at + at - RELEASE_EVERY);
    f->released = at - RELEASE_EVERY;
}

orr_code orr_feeder_next(orr_feeder *f, orr_node *out, orr_error *err)
{
    if (f->window)
        return orr__window_next(f->window, out, err);
    const uint32_t node = orr_feeder_take(f);
    if (node == ORR_NO_NODE)
        return ORR_END;
    release_behind(f, node);
    orr_trace_node(f->t, node, out);
    return ORR_OK;
}

static orr_code find_taken(const orr_feeder *f, uint64_t id, uint32_t *node, orr_error *err)
{
    *node = orr_trace_find(f->t, id);
    if (*node == ORR_NO_NODE)
        return orr_fail(err, ORR_EUSAGE, NULL, "node %" PRIu64 " is not in the trace", id);
    if (f->state[*node] != TAKEN)
        return orr_fail(err, ORR_EUSAGE, NULL, "node %" PRIu64 " is not taken", id);
    return ORR_OK;
}

orr_code orr_feeder_finish(orr_feeder *f, uint64_t id, orr_error *err)
{
    uint32_t node;
    if (f->window)
        return orr__window_finish(f->window, id, err);
    const orr_code code = find_taken(f, id, &node, err);
    if (!code)
        orr_feeder_done(f, node);
    return code;
}

orr_code orr_feeder_put_back(orr_feeder *f, uint64_t id, orr_error *err)
{
    uint32_t node;
    if (f->window)
        return orr__window_put_back(f->window, id, err);
    const orr_code code = find_taken(f, id, &node, err);
    if (code)
        return code;
    f->in_flight--;
    make_ready(f, node);
    return ORR_OK;
}

bool orr_feeder_find(const orr_feeder *f, uint64_t id, orr_node *out)
{
    if (f->window)
        return orr__window_find(f->window, id, out);
    const uint32_t node = orr_trace_find(f->t, id);
    if (node == ORR_NO_NODE || f->state[node] == FINISHED)
        return false;
    orr_trace_node(f->t, node, out);
    return true;
}

bool orr_feeder_has_ready(const orr_feeder *f)
{
    return f->window ? orr__window_has_ready(f->window) : !orr_bitset_is_empty(&f->ready);
}

uint64_t orr_feeder_in_flight(const orr_feeder *f)
{
    return f->window ? orr__window_in_flight(f->window) : f->in_flight;
}

uint64_t orr_feeder_left(const orr_feeder *f)
{
    return f->window ? orr__window_left(f->window) : f->left;
}

const orr_trace *orr_feeder_trace(const orr_feeder *f)
{
    return f->t;
}

const uint32_t *orr_feeder_children(const orr_feeder *f, uint32_t index, uint32_t *count)
{
    *count = f->child_first[index + 1] - f->child_first[index];
    return f->child + f->child_first[index];
}
