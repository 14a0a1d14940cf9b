/* SPDX-License-Identifier: Apache-2.0 */
/* feeder.c - feeding a trace that is in memory.
 *
 * Who waits for whom is dag.h.  Ready nodes are a bitmap tree over *positions*: a node's place in
 * the order of ids, which for ordinary traces is its index.  Cost: opening O(nodes + dependencies),
 * each node O(1) plus its children; 9 bytes a node and 4 a dependency. */
#include "dag.h"
#include "feeder_impl.h"

#include "base/memory/bitset_queue.h"
#include "base/options.h"

#include <inttypes.h>

enum { RELEASE_EVERY = 1 << 22 };

typedef enum node_state { WAITING = 0, READY, TAKEN, FINISHED } node_state;

struct orr_feeder {
    orr__window *window; /* when not NULL, all the rest is unused */
    const orr_trace *t;
    orr_trace *owned; /* t, when the feeder opened it */
    orr_feeder_options opt;
    uint32_t count;
    orr__dag dag; /* dag.waits: parents not finished */
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

/* V2 keeps a child once in its parent's list, yet waits for every mention of the parent, and for
 * ever for one that is missing (chakra.md 6.1). */
static bool turn_round(orr_feeder *f)
{
    const unsigned lists =
        (feeds_data(f) ? ORR__DAG_DATA : 0) | (feeds_ctrl(f) ? ORR__DAG_CTRL : 0);
    const unsigned mentions =
        f->opt.order == ORR_FEED_AS_V2 ? ORR__DAG_ONCE | ORR__DAG_ALL_MENTIONS : 0;
    return orr__dag_build(&f->t->columns, lists | mentions, NULL, &f->dag);
}

/* ---- cycles ---- */

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

static uint64_t id_of(const void *feeder, uint32_t node)
{
    return ((const orr_feeder *)feeder)->t->id[node];
}

/* Walk from parent to parent among the stuck nodes until one comes again. */
static orr_code describe_cycle(const orr_feeder *f,
                               const uint32_t *pending,
                               uint32_t *path,
                               orr_error *err)
{
    uint32_t node = 0, length = 0;
    while (pending[node] == 0)
        node++;
    while (f->state[node] == WAITING) {
        f->state[node] = FINISHED; /* seen; the feeder is thrown away afterwards */
        path[length++] = node;
        node = stuck_parent(f, node, pending);
    }
    const orr_where w = orr_trace_where(f->t, node);
    return orr__fail_cycle(path, length, node, id_of, f, &w, err);
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
        if (orr__dag_order(&f->dag, pending, stack) != f->count)
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

/* In V2 the last node of an id replaces the earlier ones; the trace resolves dependencies to the
 * last. */
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
        } else if (f->dag.waits[i] == 0) {
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
    if (!f->state || !turn_round(f) || !set_places(f) || !orr_bitset_init(&f->ready, f->count))
        return orr_no_memory(err);
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
    f->t = t;
    orr_code code = ORR__TAKE_OPTIONS(&f->opt, opt, orr_feeder_options, err);
    f->opt.read = NULL; /* the caller's; the trace has been read */
    if (!code)
        code = prepare(f, err);
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
    orr_feeder_options own;
    orr_read_options read;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_feeder_options, err);
    if (!code)
        code = ORR__TAKE_OPTIONS(&read, own.read, orr_read_options, err);
    if (code)
        return code;
    own.read = &read;
    if (own.window)
        return open_window(path, &own, out, err);
    code = orr_trace_read(path, &read, &t, err);
    if (code)
        return code;
    code = orr_feeder_create(t, &own, out, err);
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
    orr__dag_fini(&f->dag);
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
    for (uint32_t e = f->dag.first[node]; e < f->dag.first[node + 1]; e++) {
        const uint32_t child = f->dag.child[e];
        if (--f->dag.waits[child] == 0 && f->state[child] == WAITING)
            make_ready(f, child);
    }
}

/* Records are looked at roughly in the order of the file, each about once: what lies well behind
 * may go, or feeding a trace would bring its whole file into memory. */
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
    *count = f->dag.first[index + 1] - f->dag.first[index];
    return f->dag.child + f->dag.first[index];
}
