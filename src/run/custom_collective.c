/* SPDX-License-Identifier: Apache-2.0 */
/* custom_collective.c - a collective whose algorithm is itself a trace per member (astra-sim.md
 * 5.10).
 *
 * A *program* is such a trace with its dependencies resolved, read once per file and cached; a
 * *run* is one stream executing it.  All free nodes are issued at once, in the order of their ids
 * or in that of a replaced program (run_rules.h).  A node may end while it is issued (a receive
 * whose bytes have arrived already): what it frees joins the current pass, and the run ends after
 * that pass, never inside it. */
#include "match.h"
#include "run_state.h"

#include "base/memory/heap.h"

#include <orrery/lab/folders.h>

#include <inttypes.h>
#include <stdio.h>

typedef struct program {
    char *path; /* for errors */
    orr_trace *t;
    uint32_t *parents;             /* distinct ones, by node */
    uint32_t *child_first, *child; /* children in the order of their set */
    uint32_t *roots;               /* in the order in which they enter the free set */
    uint32_t root_count;
    struct program *next;
} program;

struct sys_program_cache {
    orr_sim *sim;
    program *first;
    struct orr__program *runs; /* active: freed with the simulation if it ends early */
    orr_intern *paths;         /* of the programs read */
    program **programs;        /* by the number of their path */
    size_t room;
};

struct orr__program {
    const program *p; /* shared, never written */
    sys_stream *stream;
    uint32_t *waiting_for; /* by node: unfinished parents */
    void *free;            /* nodes that may start: a set of its run_node_order */
    uint32_t running;      /* nodes that have started and not ended */
    bool is_issuing;
    struct orr__program *next, *previous;
};

typedef struct orr__program run_state;

/* ---- nodes by id ---- */

typedef struct id_order {
    const uint64_t *ids;
    bool *is_in;
    orr_heap heap;
} id_order;

static void id_destroy(void *set)
{
    id_order *s = set;
    if (!s)
        return;
    orr_heap_fini(&s->heap);
    orr_free(s->is_in);
    orr_free(s);
}

static void *id_create(const uint64_t *ids, uint32_t count)
{
    id_order *s = orr_alloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->ids = ids;
    if ((s->is_in = orr_alloc(count, sizeof *s->is_in)))
        return s;
    id_destroy(s);
    return NULL;
}

static bool id_add(void *set, uint32_t node)
{
    id_order *s = set;
    if (!s->is_in[node] && !orr_heap_push(&s->heap, s->ids[node], node))
        return false;
    s->is_in[node] = true;
    return true;
}

static uint32_t id_take(void *set)
{
    id_order *s = set;
    orr_heap_entry first;
    if (!orr_heap_pop(&s->heap, &first))
        return RUN_NONE;
    s->is_in[first.value] = false;
    return first.value;
}

static void id_clear(void *set)
{
    while (id_take(set) != RUN_NONE) {
    }
}

static const run_node_order by_id = {
    .create = id_create,
    .destroy = id_destroy,
    .add = id_add,
    .take = id_take,
    .clear = id_clear,
};

static const run_node_order *order_of(const orr_sim *s)
{
    return s->rules->node_order ? s->rules->node_order : &by_id;
}

/* ---- the cache ---- */

static void end_run(run_state *r)
{
    struct sys_program_cache *c = r->stream->npu->sim->programs;
    *(r->previous ? &r->previous->next : &c->runs) = r->next;
    if (r->next)
        r->next->previous = r->previous;
    /* The stall explanation reads this pointer. */
    *(run_state **)orr_coll_state(&r->stream->coll) = NULL;
    order_of(c->sim)->destroy(r->free);
    orr_free(r->waiting_for);
    orr_free(r);
}

struct sys_program_cache *sys_program_cache_create(orr_sim *s)
{
    struct sys_program_cache *c = orr_alloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->sim = s;
    c->paths = orr_intern_create();
    if (c->paths)
        return c;
    orr_free(c);
    return NULL;
}

static void destroy_program(program *p)
{
    orr_trace_destroy(p->t);
    orr_free(p->path);
    orr_free(p->parents);
    orr_free(p->child_first);
    orr_free(p->child);
    orr_free(p->roots);
    orr_free(p);
}

void sys_program_cache_destroy(struct sys_program_cache *c)
{
    /* A run that ends early leaves some active; they refer to programs, so they are freed first. */
    while (c && c->runs)
        end_run(c->runs);
    while (c && c->first) {
        program *p = c->first;
        c->first = p->next;
        destroy_program(p);
    }
    if (c) {
        orr_intern_destroy(c->paths);
        orr_free(c->programs);
    }
    orr_free(c);
}

/* ---- building a program (astra-sim.md 12) ---- */

/* Children are counted in a first pass and inserted into sets in the second; the order of a set is
 * then recorded. */
typedef struct builder {
    program *p;
    const orr_columns *c;
    const run_node_order *order;
    /* known: all nodes, entered in order of first appearance, as in the reference, which takes its
     * roots from it. */
    void *known, *scratch;
    uint32_t *fill; /* children so far, in insertion order */
} builder;

/* The parents of a node: data first, then control. */
static bool gather_parents(const builder *b, uint32_t node)
{
    const orr_columns *c = b->c;
    b->order->clear(b->scratch);
    for (uint32_t e = c->data_first[node]; e < c->data_first[node + 1]; e++)
        if (!b->order->add(b->scratch, c->data_dep[e]))
            return false;
    for (uint32_t e = c->ctrl_first ? c->ctrl_first[node] : 0;
         c->ctrl_first && e < c->ctrl_first[node + 1]; e++)
        if (!b->order->add(b->scratch, c->ctrl_dep[e]))
            return false;
    return true;
}

static bool note_children(builder *b, uint32_t node)
{
    bool ok = b->order->add(b->known, node) && gather_parents(b, node);
    uint32_t parent;
    while (ok && (parent = b->order->take(b->scratch)) != RUN_NONE) {
        ok = b->order->add(b->known, parent);
        b->p->parents[node]++;
        b->p->child[b->p->child_first[parent] + b->fill[parent]++] = node;
    }
    return ok;
}

/* From insertion order to iteration order. */
static bool order_children(builder *b, uint32_t node)
{
    const uint32_t first = b->p->child_first[node], count = b->p->child_first[node + 1] - first;
    bool ok = true;
    b->order->clear(b->scratch);
    for (uint32_t i = 0; ok && i < count; i++)
        ok = b->order->add(b->scratch, b->p->child[first + i]);
    for (uint32_t i = 0; ok && i < count; i++)
        b->p->child[first + i] = b->order->take(b->scratch);
    return ok;
}

static void count_children(program *p,
                           const orr_columns *c,
                           const uint32_t *first,
                           const uint32_t *deps)
{
    for (uint32_t i = 0; first && i < c->count; i++)
        for (uint32_t e = first[i]; e < first[i + 1]; e++)
            p->child_first[deps[e] + 1]++; /* an upper bound: duplicates are removed below */
}

/* Close the gaps left by duplicate parents. */
static void squeeze(builder *b)
{
    uint32_t to = 0;
    for (uint32_t i = 0; i < b->c->count; i++) {
        const uint32_t from = b->p->child_first[i];
        /* Upwards in place: `to` never passes `from`. */
        memmove(b->p->child + to, b->p->child + from, b->fill[i] * sizeof *b->p->child);
        b->p->child_first[i] = to;
        to += b->fill[i];
    }
    b->p->child_first[b->c->count] = to;
}

static bool work_out(program *p, const run_node_order *order)
{
    const orr_columns *c = orr_trace_columns(p->t);
    builder b = {.p = p, .c = c, .order = order};
    p->parents = orr_alloc(c->count, sizeof *p->parents);
    p->child_first = orr_alloc((size_t)c->count + 1, sizeof *p->child_first);
    p->roots = orr_alloc(c->count, sizeof *p->roots);
    b.fill = orr_alloc(c->count, sizeof *b.fill);
    b.known = order->create(c->id, c->count);
    b.scratch = order->create(c->id, c->count);
    bool ok = p->parents && p->child_first && p->roots && b.fill && b.known && b.scratch;
    if (ok) {
        count_children(p, c, c->data_first, c->data_dep);
        count_children(p, c, c->ctrl_first, c->ctrl_dep);
        for (uint32_t i = 0; i < c->count; i++)
            p->child_first[i + 1] += p->child_first[i];
        p->child = orr_alloc(p->child_first[c->count], sizeof *p->child);
        ok = p->child != NULL;
    }
    for (uint32_t i = 0; ok && i < c->count; i++)
        ok = note_children(&b, i);
    if (ok)
        squeeze(&b);
    for (uint32_t i = 0; ok && i < c->count; i++)
        ok = order_children(&b, i);
    for (uint32_t m = ok ? order->take(b.known) : RUN_NONE; m != RUN_NONE; m = order->take(b.known))
        if (p->parents[m] == 0)
            p->roots[p->root_count++] = m;
    order->destroy(b.known);
    order->destroy(b.scratch);
    orr_free(b.fill);
    return ok;
}

static orr_code check_program(const program *p, orr_error *err)
{
    const orr_columns *c = orr_trace_columns(p->t);
    const orr_where w = orr_where_byte(p->path, ORR_NO_BYTE);
    if (c->count == 0)
        return orr_fail(err, ORR_EINPUT, &w, "the trace of a custom collective has no nodes");
    if (c->duplicate_ids || c->data_missing || c->ctrl_missing)
        return orr_fail(err, ORR_EINPUT, &w,
                        "duplicate ids or missing parents; 'orrery check' lists them");
    return ORR_OK;
}

static orr_code read_program(struct sys_program_cache *c,
                             const char *path,
                             program **out,
                             orr_error *err)
{
    program *p = orr_alloc(1, sizeof *p);
    if (!p)
        return orr_no_memory(err);
    orr_code code = orr_trace_read(path, NULL, &p->t, err);
    if (!code && !(p->path = orr_alloc(strlen(path) + 1, 1)))
        code = orr_no_memory(err);
    if (!code) {
        memcpy(p->path, path, strlen(path) + 1);
        code = check_program(p, err);
    }
    if (!code && !work_out(p, order_of(c->sim)))
        code = orr_no_memory(err);
    if (code) {
        destroy_program(p);
        return code;
    }
    p->next = c->first;
    c->first = p;
    *out = p;
    return ORR_OK;
}

/* The prefix was checked when it was read; a file may still be a symbolic link out of its
 * folder. */
static orr_code check_place(const cfg_system *c, const char *path, orr_error *err)
{
    const orr_where where = orr_where_byte(c->path, ORR_NO_BYTE);
    return c->checks_paths ? orr_folder_check(path, c->path, &where, err) : ORR_OK;
}

static orr_code find_program(orr_sim *s, const char *path, program **out, orr_error *err)
{
    struct sys_program_cache *c = s->programs;
    uint32_t number;
    if (orr_intern_find(c->paths, orr_str_of(path), &number)) {
        *out = c->programs[number];
        return ORR_OK;
    }
    /* Once per file and run: all ranks at an index, and all later collectives, execute the same
     * program. */
    orr_code code = check_place(&s->system, path, err);
    if (!code)
        code = read_program(c, path, out, err);
    if (code)
        return code;
    if (!orr_grow(&c->programs, &c->room, (size_t)orr_intern_count(c->paths) + 1) ||
        !orr_intern_add(c->paths, orr_str_of(path), &number))
        return orr_no_memory(err);
    c->programs[number] = *out;
    return ORR_OK;
}

/* ---- running it ---- */

static void fail_node(const run_state *r, uint32_t node, const char *what)
{
    orr_error err;
    const orr_where w = orr_trace_where(r->p->t, node);
    orr_fail(&err, ORR_EINPUT, &w, "custom collective, node %" PRIu64 ": %s",
             orr_trace_columns(r->p->t)->id[node], what);
    run_fail(r->stream->npu->sim, ORR_EINPUT, &err);
}

static void node_done(void *run, uint64_t node);

static bool needed(
    const run_state *r, uint32_t node, const int64_t *column, const char *what, int64_t *out)
{
    *out = column ? column[node] : ORR_NO_VALUE;
    if (*out == ORR_NO_VALUE)
        fail_node(r, node, what);
    return *out != ORR_NO_VALUE;
}

/* Not the tag of a node of the workload: one that sends as many bytes to the same rank at another
 * time must not be received in its place. */
static uint32_t tag_of(const orr_sim *s, int64_t tag)
{
    const uint32_t own = (uint32_t)((uint64_t)tag % MSG_TAG_SPACE);
    return s->rules->shares_tags ? own : MSG_CUSTOM_TAGS + own;
}

static void exchange(run_state *r, uint32_t node, bool is_send)
{
    const orr_columns *c = orr_trace_columns(r->p->t);
    run_npu *n = r->stream->npu;
    const cfg_group *g = r->stream->group;
    /* Peers in the trace are member indices from 0, not ranks. */
    const int64_t members = g ? g->count : n->sim->npu_count;
    int64_t peer, size, tag;
    if (!needed(r, node, is_send ? c->comm_dst : c->comm_src,
                is_send ? "comm_dst is missing" : "comm_src is missing", &peer) ||
        !needed(r, node, c->comm_size, "comm_size is missing", &size) ||
        !needed(r, node, c->comm_tag, "comm_tag is missing", &tag))
        return;
    if (peer < 0 || peer >= members) {
        fail_node(r, node, "the peer is not a member");
        return;
    }
    const uint32_t rank = g ? g->members[peer] : (uint32_t)peer;
    const uint32_t wire_tag = tag_of(n->sim, tag);
    const clk_call done = {node_done, r, node};
    if (is_send)
        msg_send(n, wire_tag, rank, (uint64_t)size, done);
    else
        msg_recv(n, wire_tag, rank, (uint64_t)size, done);
}

static void execute(run_state *r, uint32_t node)
{
    const orr_columns *c = orr_trace_columns(r->p->t);
    run_npu *n = r->stream->npu;
    r->running++;
    if (c->type[node] == ORR_NODE_COMP)
        run_npu_timer(n,
                      work_at_speed(work_replay_time(n, c->duration_us[node]), n->speed->compute),
                      node_done, r, node);
    else if (c->type[node] == ORR_NODE_COMM_SEND || c->type[node] == ORR_NODE_COMM_RECV)
        exchange(r, node, c->type[node] == ORR_NODE_COMM_SEND);
    /* Other node types are accepted and never end (astra-sim.md 5.10). */
}

/* The reference iterates over a copy of the free set; nodes enter it only when another ends, and
 * then it starts over.  Taking the first until none is left is equivalent. */
static void issue(run_state *r)
{
    const orr_sim *s = r->stream->npu->sim;
    const run_node_order *order = order_of(s);
    uint32_t node;
    r->is_issuing = true;
    /* A failure stops the clock, not this loop. */
    while (!s->code && (node = order->take(r->free)) != RUN_NONE)
        execute(r, node);
    r->is_issuing = false;
}

/* Every free node was issued. */
static bool is_over(const run_state *r)
{
    return r->running == 0 && !r->stream->npu->sim->code;
}

static void node_done(void *run, uint64_t node)
{
    run_state *r = run;
    const program *p = r->p;
    sys_stream *st = r->stream;
    const run_node_order *order = order_of(st->npu->sim);
    r->running--;
    for (uint32_t e = p->child_first[node]; e < p->child_first[node + 1]; e++)
        if (--r->waiting_for[p->child[e]] == 0 && !order->add(r->free, p->child[e]))
            run_no_memory(st->npu->sim);
    /* A node that ends within its own start leaves the rest to the loop that started it: no
     * recursion, however long a chain of such nodes is. */
    if (r->is_issuing)
        return;
    issue(r);
    if (!is_over(r))
        return;
    /* Before the stream continues: its next phase may be another run on the same state. */
    end_run(r);
    sys_stream_advance(st);
}

/* Everything had arrived when it started: it ends in this tick, but only after the stream counts as
 * started. */
static void end_at_once(void *run, uint64_t unused)
{
    sys_stream *st = ((run_state *)run)->stream;
    (void)unused;
    end_run(run);
    sys_stream_advance(st);
}

static bool position_of(const sys_stream *st, uint32_t *out)
{
    const cfg_group *g = st->group;
    const uint32_t rank = st->npu->rank;
    /* Ascending ranks: file k belongs to the k-th smallest rank, whatever the order of the group's
     * members. */
    uint32_t low = 0, high = g ? g->count : 0;
    *out = rank;
    if (!g)
        return true;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (g->sorted[mid] < rank)
            low = mid + 1;
        else
            high = mid;
    }
    *out = low;
    return low < g->count && g->sorted[low] == rank;
}

static run_state *new_run(sys_stream *st, const program *p)
{
    const uint32_t n = orr_trace_columns(p->t)->count;
    run_state *r = orr_alloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->p = p;
    r->stream = st;
    /* Linked first: end_run undoes it if anything below fails. */
    r->next = st->npu->sim->programs->runs;
    if (r->next)
        r->next->previous = r;
    st->npu->sim->programs->runs = r;
    r->waiting_for = orr_alloc(n, sizeof *r->waiting_for);
    const run_node_order *order = order_of(st->npu->sim);
    r->free = order->create(orr_trace_columns(p->t)->id, n);
    bool ok = r->free && r->waiting_for;
    for (uint32_t i = 0; ok && i < p->root_count; i++)
        ok = order->add(r->free, p->roots[i]);
    if (!ok) {
        end_run(r);
        return NULL;
    }
    memcpy(r->waiting_for, p->parents, n * sizeof *p->parents);
    return r;
}

static void custom_start(orr_coll *c)
{
    sys_stream *st = sys_stream_of(c);
    orr_sim *s = st->npu->sim;
    char path[4096];
    uint32_t position;
    program *p = NULL;
    orr_error err;
    if (!position_of(st, &position)) {
        run_fail_text(s, st->npu, st->set->place, "rank %u is not a member of the group",
                      st->npu->rank);
        return;
    }
    snprintf(path, sizeof path, "%s.%u.et", st->custom_prefix, position);
    const orr_code code = find_program(s, path, &p, &err);
    if (code) {
        run_fail(s, code, &err);
        return;
    }
    run_state *r = *(run_state **)orr_coll_state(c) = new_run(st, p);
    if (!r) {
        run_no_memory(s);
        return;
    }
    issue(r);
    if (is_over(r))
        clk_after(s->clock, 0, end_at_once, r, 0);
}

/* Its messages are those of the trace: received and timer are never called. */
const orr_coll_ops sys_coll_custom = {
    .name = "custom",
    .label = "custom",
    .help = "traces of one's own",
    .kinds = COLL_ROOTLESS,
    .state_size = sizeof(run_state *),
    .start = custom_start,
};

/* ---- for the stall explanation ---- */

const sys_stream *sys_custom_owner(clk_call c)
{
    return c.action == node_done ? ((const run_state *)c.context)->stream : sys_plan_owner(c);
}

static const run_state *run_of(const sys_stream *st)
{
    return st->is_started ? *(run_state *const *)(const void *)(&st->coll + 1) : NULL;
}

uint32_t sys_custom_running(const sys_stream *st)
{
    const run_state *r = st->plan ? NULL : run_of(st);
    return st->plan ? sys_plan_running(st) : r ? r->running : 0;
}

bool sys_custom_will_post(
    const sys_stream *st, bool is_send, uint32_t peer, uint32_t tag, uint64_t size)
{
    const run_state *r = st->plan ? NULL : run_of(st);
    const orr_columns *c = r ? orr_trace_columns(r->p->t) : NULL;
    const int64_t *peers = !c ? NULL : is_send ? c->comm_dst : c->comm_src;
    const uint8_t type = is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV;
    const cfg_group *g = st->group;
    const int64_t members = g ? g->count : st->npu->sim->npu_count;
    if (st->plan)
        return sys_plan_will_post(st, is_send, peer, tag, size);
    if (!peers || !c->comm_tag || !c->comm_size)
        return false;
    for (uint32_t i = 0; i < c->count; i++) {
        /* A node without pending parents has been issued: its message is already known. */
        if (r->waiting_for[i] == 0 || c->type[i] != type || (uint64_t)c->comm_size[i] != size ||
            tag_of(st->npu->sim, c->comm_tag[i]) != tag || peers[i] < 0 || peers[i] >= members)
            continue;
        if ((g ? g->members[peers[i]] : (uint32_t)peers[i]) == peer)
            return true;
    }
    return false;
}
