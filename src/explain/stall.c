/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - when nothing can happen any more and ranks have not finished: why.
 *
 * What waits is collected, what each of it waits for is worked out, and then it is followed to
 * where it ends: in a cause or in a circle.  docs/design/stall.md says how, and which causes there
 * are.  All is done once, after the clock has run empty; a run that ends well pays nothing. */
#include "run_facts.h"
#include "stall_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ======== From the graph of waits to what is at the root of it.
 *
 * Every wait has a cause or waits for others.  Those that lead to a cause are explained by it.  If
 * some do not, following them never ends, so there is a circle among them; the shortest one is
 * looked for, breadth first from each wait, as long as a budget of steps lasts (then it is a short
 * one).
 *
 * Cost: linear in waits and edges, plus the budget. */

enum { MOST_STEPS = 1 << 24 };

/* Edges by where they come from; the order of one wait's edges is kept. */
static bool sort_edges(orr__stall *st)
{
    const size_t n = st->wait_count;
    uint32_t *first = orr_arena_new(st->arena, n + 2, uint32_t);
    orr__edge *sorted = orr_arena_new(st->arena, st->edge_count, orr__edge);
    if (!first || (!sorted && st->edge_count))
        return false;
    for (size_t e = 0; e < st->edge_count; e++)
        first[st->edges[e].from + 2]++;
    for (size_t i = 1; i <= n; i++)
        first[i + 1] += first[i];
    for (size_t e = 0; e < st->edge_count; e++)
        sorted[first[st->edges[e].from + 1]++] = st->edges[e];
    orr_free(st->edges);
    st->edges = NULL;
    st->edge_room = 0;
    st->sorted = sorted;
    st->edge_first = first;
    return true;
}

/* ---- what is explained by a cause ---- */

typedef struct reverse {
    uint32_t *first, *from; /* by wait: those that wait for it */
} reverse;

static bool turn_around(const orr__stall *st, reverse *out)
{
    const size_t n = st->wait_count;
    out->first = orr_arena_new(st->arena, n + 2, uint32_t);
    out->from = orr_arena_new(st->arena, st->edge_count, uint32_t);
    if (!out->first || (!out->from && st->edge_count))
        return false;
    for (size_t e = 0; e < st->edge_count; e++)
        out->first[st->sorted[e].to + 2]++;
    for (size_t i = 1; i <= n; i++)
        out->first[i + 1] += out->first[i];
    for (size_t e = 0; e < st->edge_count; e++)
        out->from[out->first[st->sorted[e].to + 1]++] = st->sorted[e].from;
    return true;
}

static bool mark_explained(orr__stall *st, bool *is_explained)
{
    reverse r;
    uint32_t *todo = orr_arena_new(st->arena, st->wait_count, uint32_t);
    size_t count = 0;
    st->roots = orr_arena_new(st->arena, st->wait_count, uint32_t);
    if (!todo || !st->roots || !turn_around(st, &r))
        return false;
    for (uint32_t i = 0; i < st->wait_count; i++)
        if (st->waits[i].cause != ORR_STALL_NONE) {
            st->roots[st->root_count++] = i;
            is_explained[i] = true;
            todo[count++] = i;
        }
    while (count) {
        const uint32_t i = todo[--count];
        for (uint32_t e = r.first[i]; e < r.first[i + 1]; e++)
            if (!is_explained[r.from[e]]) {
                is_explained[r.from[e]] = true;
                todo[count++] = r.from[e];
            }
    }
    return true;
}

/* ---- the shortest circle ---- */

typedef struct search {
    orr__stall *st;
    const bool *is_explained;
    uint32_t *seen;     /* by wait: 1 + where the search that saw it began */
    uint32_t *came_by;  /* by wait: the edge */
    uint32_t *distance; /* by wait */
    uint32_t *queue;
    uint64_t steps;
} search;

/* Breadth first from `start` back to it, in fewer than `limit` steps; the edge that closes it, or
 * NONE. */
static uint32_t closing_edge(search *f, uint32_t start, uint32_t limit)
{
    size_t head = 0, tail = 0;
    f->queue[tail++] = start;
    f->seen[start] = start + 1;
    f->distance[start] = 0;
    while (head < tail) {
        const uint32_t i = f->queue[head++];
        if (f->distance[i] + 1 >= limit)
            return RUN_NONE;
        for (uint32_t e = f->st->edge_first[i]; e < f->st->edge_first[i + 1]; e++) {
            const uint32_t to = f->st->sorted[e].to;
            if (to == start)
                return e;
            if (++f->steps > MOST_STEPS)
                return RUN_NONE;
            if (f->is_explained[to] || f->seen[to] == start + 1)
                continue;
            f->seen[to] = start + 1;
            f->came_by[to] = e;
            f->distance[to] = f->distance[i] + 1;
            f->queue[tail++] = to;
        }
    }
    return RUN_NONE;
}

static void keep_circle(search *f, uint32_t start, uint32_t closing)
{
    orr__stall *st = f->st;
    uint32_t at = st->sorted[closing].from, k = f->distance[at] + 1;
    st->circle_length = k;
    st->circle[--k] = closing;
    while (at != start) {
        const uint32_t e = f->came_by[at];
        st->circle[--k] = e;
        at = st->sorted[e].from;
    }
}

static bool is_before(const orr__wait *a, const orr__wait *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

/* Begin with the lowest rank. */
static bool turn_circle(orr__stall *st)
{
    const uint32_t n = st->circle_length;
    uint32_t first = 0, *turned = orr_arena_new(st->arena, n, uint32_t);
    for (uint32_t i = 1; i < n; i++)
        if (is_before(&st->waits[st->sorted[st->circle[i]].from],
                      &st->waits[st->sorted[st->circle[first]].from]))
            first = i;
    for (uint32_t i = 0; turned && i < n; i++)
        turned[i] = st->circle[(first + i) % n];
    st->circle = turned;
    return turned || n == 0;
}

/* When the budget ends before any circle is found: follow first edges until one comes back. */
static void any_circle(search *f, uint32_t start)
{
    orr__stall *st = f->st;
    memset(f->seen, 0, st->wait_count * sizeof *f->seen);
    uint32_t at = start;
    while (!f->seen[at]) {
        f->seen[at] = 1;
        at = st->sorted[st->edge_first[at]].to;
    }
    const uint32_t first = at;
    do {
        st->circle[st->circle_length++] = st->edge_first[at];
        at = st->sorted[st->edge_first[at]].to;
    } while (at != first);
}

static bool find_circle(orr__stall *st, const bool *is_explained)
{
    const size_t n = st->wait_count;
    search f = {.st = st,
                .is_explained = is_explained,
                .seen = orr_arena_new(st->arena, n, uint32_t),
                .came_by = orr_arena_new(st->arena, n, uint32_t),
                .distance = orr_arena_new(st->arena, n, uint32_t),
                .queue = orr_arena_new(st->arena, n, uint32_t)};
    uint32_t best = RUN_NONE, any = RUN_NONE;
    st->circle = orr_arena_new(st->arena, n, uint32_t);
    if (!f.seen || !f.came_by || !f.distance || !f.queue || !st->circle)
        return false;
    for (uint32_t i = 0; i < n && best > 2 && f.steps <= MOST_STEPS; i++) {
        if (is_explained[i])
            continue;
        any = any == RUN_NONE ? i : any;
        const uint32_t closing = closing_edge(&f, i, best);
        if (closing == RUN_NONE)
            continue;
        keep_circle(&f, i, closing);
        best = st->circle_length;
    }
    if (any != RUN_NONE && st->circle_length == 0)
        any_circle(&f, any);
    return turn_circle(st);
}

static bool stall_find_causes(orr__stall *st)
{
    bool *is_explained = orr_arena_new(st->arena, st->wait_count, bool);
    return is_explained && sort_edges(st) && mark_explained(st, is_explained) &&
           find_circle(st, is_explained);
}

/* ======== What is told: causes, the circle, and who waits, with ranks that are alike taken
 * together.
 *
 * Ranks are alike when they wait in a node of the same id and name, for the same kind and amount of
 * thing; from whom may differ, as it does around a ring.  A collective counts once a rank, by its
 * first chunk.  Texts are made for the items that are told only, so their cost does not grow with
 * the ranks. */

enum { MOST_ITEMS = 64, MOST_CAUSE_LINES = 3, MOST_CIRCLE = 4, MOST_LINES = 20 };

/* A wait with all by which it is compared. */
typedef struct entry {
    uint32_t wait, rank;
    uint64_t since; /* the tick its node started */
    orr_stall_cause cause;
    orr__wait_type type;
    uint64_t node, size, amount; /* id; of the message; of the collective */
    uint32_t tag;
    int comm_type;
    orr_str name, group;
} entry;

static int compare_text(orr_str a, orr_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

#define BY(member)              \
    if (x->member != y->member) \
    return x->member < y->member ? -1 : 1

static int compare_kind(const entry *x, const entry *y)
{
    BY(cause);
    BY(type);
    BY(node);
    BY(tag);
    BY(size);
    BY(comm_type);
    BY(amount);
    const int c = compare_text(x->name, y->name);
    return c ? c : compare_text(x->group, y->group);
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int c = compare_kind(x, y);
    if (c)
        return c;
    BY(rank);
    BY(wait);
    return 0;
}

static entry entry_of(const orr__stall *st, uint32_t wait)
{
    const orr__wait *w = &st->waits[wait];
    const run_npu *n = &st->sim->npus[w->rank];
    const orr_trace *t = n->graph->t;
    const uint32_t i = orr__index_of(n, w->place);
    const bool is_message = w->type == ORR__WAIT_MESSAGE || w->type == ORR__WAIT_RECEIVER;
    const msg_unmatched *m = is_message ? &st->messages[w->message] : NULL;
    return (entry){.wait = wait,
                   .rank = w->rank,
                   .since = w->type == ORR__WAIT_STARVED ? ORR_NEVER - 1 : n->started_at[w->place],
                   .cause = w->cause,
                   .type = w->type,
                   .node = t->columns.id[i] + orr_set_id_shift(st->sim->set, w->rank),
                   .size = m ? m->size : 0,
                   .tag = m ? m->tag : 0,
                   .amount =
                       is_message ? 0 : (uint64_t)orr__value_of(n, w->place, t->columns.comm_size),
                   .comm_type = is_message ? -1 : orr__comm_type_of(n, w->place),
                   .name = orr_trace_name(t, i),
                   .group = sys_node_group_name(n, w->place)};
}

/* Entries [first, end) of the sorted list are alike. */
typedef struct run {
    uint32_t first, end, rank_count;
    uint64_t since; /* the earliest */
} run;

typedef struct table {
    entry *entries;
    run *runs;
    uint32_t entry_count, run_count, rank_count; /* ranks: summed over the runs */
} table;

/* What happened first stands first; what is not understood, last. */
static int compare_runs(const void *a, const void *b, void *context)
{
    const table *t = context;
    const run *x = a, *y = b;
    const entry *p = &t->entries[x->first], *q = &t->entries[y->first];
    const bool x_unknown = p->cause == ORR_STALL_UNKNOWN, y_unknown = q->cause == ORR_STALL_UNKNOWN;
    if (x_unknown != y_unknown)
        return x_unknown ? 1 : -1;
    BY(since);
    if (p->rank != q->rank)
        return p->rank < q->rank ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Causes are alike when the cause is the same; waits, whatever their cause. */
static bool make_table(
    orr__stall *st, const uint32_t *waits, uint32_t count, bool is_causes, table *out)
{
    *out = (table){.entry_count = count,
                   .entries = orr_arena_new(st->arena, count, entry),
                   .runs = orr_arena_new(st->arena, count, run)};
    if (count == 0)
        return true;
    if (!out->entries || !out->runs)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        out->entries[i] = entry_of(st, waits[i]);
        if (!is_causes)
            out->entries[i].cause = ORR_STALL_NONE;
    }
    qsort(out->entries, count, sizeof *out->entries, compare_entries);
    for (uint32_t i = 0, next; i < count; i = next) {
        run r = {.first = i, .rank_count = 1, .since = out->entries[i].since};
        for (next = i + 1; next < count && !compare_kind(&out->entries[i], &out->entries[next]);
             next++) {
            r.rank_count += out->entries[next].rank != out->entries[next - 1].rank;
            if (out->entries[next].since < r.since)
                r.since = out->entries[next].since;
        }
        r.end = next;
        out->rank_count += r.rank_count;
        out->runs[out->run_count++] = r;
    }
    qsort_r(out->runs, out->run_count, sizeof *out->runs, compare_runs, out);
    return true;
}

/* ---- items ---- */

static const char *keep_text(orr__stall *st, orr_buf *b)
{
    const char *text =
        b->failed ? NULL : orr_arena_text(st->arena, (orr_str){(const char *)b->ptr, b->len});
    st->failed |= !text;
    orr_buf_fini(b);
    *b = (orr_buf){0};
    return text ? text : "";
}

static const char *ranks_text(orr__stall *st, const table *t, const run *r)
{
    orr_buf b = {0};
    for (uint32_t i = r->first, next; i < r->end; i = next) {
        const uint32_t first = t->entries[i].rank;
        uint32_t last = first;
        for (next = i + 1; next < r->end && t->entries[next].rank <= last + 1; next++)
            last = t->entries[next].rank;
        orr_buf_print(&b, "%s%u", i > r->first ? ", " : "", first);
        if (last > first)
            orr_buf_print(&b, last == first + 1 ? ", %u" : "-%u", last);
    }
    return keep_text(st, &b);
}

static const char *waits_for(const orr__wait *w)
{
    switch (w->type) {
    case ORR__WAIT_MESSAGE:
        return "message";
    case ORR__WAIT_RECEIVER:
        return "receiver";
    case ORR__WAIT_STREAM:
        return w->stream->is_started ? "collective" : "queue";
    case ORR__WAIT_STARVED:
        return "completion";
    default:
        return "nothing";
    }
}

static void fill_message(const orr__stall *st, const orr__wait *w, orr_stall_item *out)
{
    out->peer = w->peer;
    if (w->message == RUN_NONE)
        return;
    const msg_unmatched *m = &st->messages[w->message];
    out->has_message = true;
    out->tag = m->tag;
    out->size = m->size;
    if (out->peer == RUN_NONE)
        out->peer = m->src == w->rank ? m->dst : m->src;
}

static void fill_collective(orr__stall *st, const orr__wait *w, orr_stall_item *out)
{
    const run_npu *n = &st->sim->npus[w->rank];
    const orr_str group = sys_node_group_name(n, w->place);
    orr_buf b = {0};
    out->is_collective =
        n->graph->t->columns.type[orr__index_of(n, w->place)] == ORR_NODE_COMM_COLL;
    out->group = "";
    out->kind = "";
    if (!out->is_collective)
        return;
    orr__stall_put_name(&b, group);
    out->group = keep_text(st, &b);
    out->kind = orr__stall_kind_name(n, w->place);
    out->collective_size = (uint64_t)orr__value_of(n, w->place, n->graph->t->columns.comm_size);
    out->sequence = orr__stall_sequence(st, w->rank, w->place);
    if (!w->stream)
        return;
    out->has_stream = true;
    out->stream = w->stream->id;
    out->phase = w->stream->phase + 1;
    out->phases = w->stream->phase_count;
    out->dimension =
        w->stream->custom_prefix ? 0 : w->stream->phases[w->stream->phase].dim->position;
}

/* The file of the rank itself, where its bytes lie as in the trace it shares. */
static orr_where where_of(const orr__stall *st, const orr__wait *w)
{
    const run_npu *n = &st->sim->npus[w->rank];
    const orr_where shared = orr_trace_where(n->graph->t, orr__index_of(n, w->place));
    const char *path = orr_set_id_shift(st->sim->set, w->rank) == 0
                           ? orr_set_rank_path(st->sim->set, w->rank)
                           : NULL;
    return path ? orr_where_byte(path, shared.byte) : shared;
}

static void fill_item(orr__stall *st, uint32_t wait, orr_stall_item *out)
{
    const orr__wait *w = &st->waits[wait];
    const run_npu *n = &st->sim->npus[w->rank];
    const uint32_t i = orr__index_of(n, w->place);
    orr_buf b = {0};
    *out = (orr_stall_item){.cause = w->cause,
                            .first_rank = w->rank,
                            .rank_count = 1,
                            .node = n->graph->t->columns.id[i] +
                                    orr_set_id_shift(st->sim->set, w->rank),
                            .where = where_of(st, w),
                            .waits_for = waits_for(w)};
    orr__stall_put_name(&b, orr_trace_name(n->graph->t, i));
    out->name = keep_text(st, &b);
    fill_message(st, w, out);
    fill_collective(st, w, out);
}

/* For what it waits, and why that does not come.  What is true of one rank of several says
 * which. */
static const char *wait_text(orr__stall *st, uint32_t wait, uint32_t edge, bool is_one_of_many)
{
    orr_buf b = {0};
    const orr__wait *w = &st->waits[wait];
    if (is_one_of_many && w->type != ORR__WAIT_NOTHING && w->type != ORR__WAIT_STARVED)
        orr_buf_print(&b, "rank %u: ", w->rank);
    orr__stall_put_wait(&b, st, w);
    if (edge != RUN_NONE) {
        orr_buf_text(&b, "; ");
        orr__stall_put_edge(&b, st, &st->sorted[edge]);
    }
    return keep_text(st, &b);
}

static const char *place_text(orr__stall *st, uint32_t wait)
{
    orr_buf b = {0};
    orr__stall_put_node(&b, st, &st->waits[wait]);
    orr__stall_put_what(&b, st, &st->waits[wait]);
    return keep_text(st, &b);
}

static const char *cause_text(orr__stall *st, uint32_t wait)
{
    orr_buf b = {0};
    orr__stall_put_cause(&b, st, &st->waits[wait]);
    return keep_text(st, &b);
}

static orr_stall_item *make_items(orr__stall *st, const table *t, bool is_causes, size_t *count)
{
    const uint32_t n = t->run_count < MOST_ITEMS ? t->run_count : MOST_ITEMS;
    orr_stall_item *items = orr_arena_new(st->arena, n, orr_stall_item);
    st->failed |= n && !items;
    *count = n;
    for (uint32_t i = 0; i < n && !st->failed; i++) {
        const uint32_t wait = t->entries[t->runs[i].first].wait;
        fill_item(st, wait, &items[i]);
        items[i].ranks = ranks_text(st, t, &t->runs[i]);
        items[i].rank_count = t->runs[i].rank_count;
        items[i].place = place_text(st, wait);
        const bool is_many = t->runs[i].rank_count > 1;
        const bool has_cause = st->waits[wait].cause != ORR_STALL_NONE;
        items[i].text =
            is_causes ? cause_text(st, wait)
                      : wait_text(st, wait, has_cause ? RUN_NONE : st->edge_first[wait], is_many);
    }
    return items;
}

/* ---- the circle ---- */

static orr_stall_cause circle_cause(const orr__stall *st)
{
    orr_stall_cause cause = ORR_STALL_CIRCLE;
    for (uint32_t i = 0; i < st->circle_length; i++) {
        const orr__edge_kind kind = st->sorted[st->circle[i]].kind;
        if (kind == ORR__EDGE_COMPLETION)
            return ORR_STALL_NOTHING_IN_FLIGHT;
        if (kind == ORR__EDGE_QUEUE)
            cause = ORR_STALL_CHUNK_ORDER;
    }
    return cause;
}

static void put_circle_ranks(orr_buf *b, const orr__stall *st)
{
    enum { MOST_SHOWN = 6 };
    const uint32_t first = st->waits[st->sorted[st->circle[0]].from].rank;
    uint32_t last = RUN_NONE, shown = 0;
    for (uint32_t i = 0; i < st->circle_length; i++) {
        const uint32_t rank = st->waits[st->sorted[st->circle[i]].from].rank;
        if (rank == last || (rank == first && shown) || shown > MOST_SHOWN)
            continue;
        last = rank;
        if (shown++ == MOST_SHOWN)
            orr_buf_text(b, ", ...");
        else
            orr_buf_print(b, "%s%u", shown > 1 ? ", " : "", rank);
    }
}

static const char *circle_text(orr__stall *st, orr_stall_cause cause)
{
    orr_buf b = {0};
    if (cause == ORR_STALL_NOTHING_IN_FLIGHT) {
        orr_buf_text(&b, orr__stall_cause_words(cause));
        return keep_text(st, &b);
    }
    orr_buf_text(&b, "ranks ");
    put_circle_ranks(&b, st);
    orr_buf_text(&b, cause == ORR_STALL_CHUNK_ORDER
                         ? " run chunks in different orders and wait for each other"
                         : " wait for each other");
    return keep_text(st, &b);
}

static orr_stall_item *make_circle(orr__stall *st)
{
    const uint32_t n = st->circle_length < MOST_ITEMS ? st->circle_length : MOST_ITEMS;
    orr_stall_item *items = orr_arena_new(st->arena, n, orr_stall_item);
    st->failed |= n && !items;
    for (uint32_t i = 0; i < n && !st->failed; i++) {
        const orr__edge *e = &st->sorted[st->circle[i]];
        /* Of all its messages, the one that leads on. */
        if (e->message != RUN_NONE && st->waits[e->from].type == ORR__WAIT_STREAM)
            st->waits[e->from].message = e->message;
        fill_item(st, e->from, &items[i]);
        items[i].place = place_text(st, e->from);
        items[i].text = wait_text(st, e->from, st->circle[i], false);
        items[i].ranks = orr_arena_print(st->arena, "%u", items[i].first_rank);
        st->failed |= !items[i].ranks;
    }
    return items;
}

/* ---- lines ---- */

typedef struct lines {
    orr__stall *st;
    const char **texts;
    size_t count;
} lines;

static void add_line(lines *l, const char *fmt, ...) ORR_PRINTF(2, 3);
static void add_line(lines *l, const char *fmt, ...)
{
    char text[1000];
    va_list args;
    if (l->count >= MOST_LINES)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    l->texts[l->count] = orr_arena_text(l->st->arena, orr_str_of(text));
    l->st->failed |= !l->texts[l->count];
    l->count += l->texts[l->count] != NULL;
}

/* "rank 3", "ranks 0-3, 8", and not more than fits. */
static const char *who(const orr_stall_item *item, char *out, size_t size)
{
    enum { LONGEST = 40 };
    const char *plural = item->rank_count == 1 ? "" : "s";
    const size_t n = strlen(item->ranks);
    size_t cut = n;
    if (n > LONGEST) {
        cut = LONGEST;
        while (cut > 0 && item->ranks[cut] != ',')
            cut--;
    }
    if (cut == n)
        snprintf(out, size, "rank%s %s", plural, item->ranks);
    else
        snprintf(out, size, "ranks %.*s, ... (%u of them)", (int)cut, item->ranks,
                 item->rank_count);
    return out;
}

static void tell_circle(lines *l, const orr_stall *r)
{
    if (!r->circle_length)
        return;
    add_line(l, "cause: %s; each of these waits for the next, and the last for the first:",
             circle_text(l->st, circle_cause(l->st)));
    const size_t most = r->circle_length <= MOST_CIRCLE ? r->circle_length : MOST_CIRCLE - 1;
    for (size_t i = 0; i < most; i++) {
        add_line(l, "  rank %u, %s", r->circle[i].first_rank, r->circle[i].place);
        add_line(l, "    %s", r->circle[i].text);
    }
    if (most < r->circle_length)
        add_line(l, "  ... %zu more", r->circle_length - most);
}

static void tell_waits(lines *l, const orr_stall *r)
{
    char name[120];
    uint64_t left = r->waits_left_out;
    size_t i = 0;
    add_line(l, "waiting:");
    for (; i < r->wait_count && l->count + 2 < MOST_LINES; i++) {
        const orr_where *at = &r->waits[i].where;
        char byte[40] = "";
        if (at->byte != ORR_NO_BYTE)
            snprintf(byte, sizeof byte, ": byte %" PRIu64, at->byte);
        add_line(l, "  %s, %s [%s%s]", who(&r->waits[i], name, sizeof name), r->waits[i].place,
                 at->path, byte);
        add_line(l, "    %s", r->waits[i].text);
    }
    for (; i < r->wait_count; i++)
        left += r->waits[i].rank_count;
    if (left)
        add_line(l, "  ... and %" PRIu64 " more waits", left);
}

static bool tell(orr__stall *st)
{
    orr_stall *r = &st->result;
    char name[120];
    lines l = {.st = st, .texts = orr_arena_new(st->arena, MOST_LINES, const char *)};
    if (!l.texts)
        return false;
    for (size_t i = 0; i < r->cause_count && i < MOST_CAUSE_LINES; i++)
        add_line(&l, "cause: %s [%s, node %" PRIu64 " \"%s\"]", r->causes[i].text,
                 who(&r->causes[i], name, sizeof name), r->causes[i].node, r->causes[i].name);
    if (r->cause_count > MOST_CAUSE_LINES)
        add_line(&l, "... and %zu more causes", r->cause_count - MOST_CAUSE_LINES);
    tell_circle(&l, r);
    tell_waits(&l, r);
    r->lines = l.texts;
    r->line_count = l.count;
    return !st->failed;
}

/* Of the messages that a rank waits for, one with a cause, or else the one of the first node. */
static bool is_told_before(const orr__wait *a, const orr__wait *b)
{
    const bool a_has_cause = a->cause != ORR_STALL_NONE, b_has_cause = b->cause != ORR_STALL_NONE;
    return a_has_cause != b_has_cause ? a_has_cause : a->place < b->place;
}

/* What is told of a rank: its collective, by the first chunk; one message; whatever else there
 * is. */
static uint32_t *pick_waits(orr__stall *st, uint32_t *count)
{
    uint32_t *picked = orr_arena_new(st->arena, st->wait_count, uint32_t);
    uint32_t *told =
        orr_arena_new(st->arena, st->sim->npu_count, uint32_t); /* 1 + a place in picked */
    *count = 0;
    if (!picked || !told)
        return NULL;
    for (uint32_t i = 0; i < st->wait_count; i++) {
        const orr__wait *w = &st->waits[i];
        const bool is_message = w->type == ORR__WAIT_MESSAGE || w->type == ORR__WAIT_RECEIVER;
        uint32_t *before = &told[w->rank];
        if (w->type == ORR__WAIT_STREAM &&
            orr_map_find(st->by_place, orr__pair_key(w->rank, w->place), RUN_NONE) != i)
            continue;
        if (is_message && *before) {
            if (is_told_before(w, &st->waits[picked[*before - 1]]))
                picked[*before - 1] = i;
            continue;
        }
        picked[(*count)++] = i;
        if (is_message)
            *before = *count;
    }
    return picked;
}

/* Further messages; the further chunks of a collective are not counted. */
static size_t count_untold(const orr__stall *st, uint32_t told)
{
    size_t count = 0;
    for (uint32_t i = 0; i < st->wait_count; i++)
        count += st->waits[i].type != ORR__WAIT_STREAM ||
                 orr_map_find(st->by_place, orr__pair_key(st->waits[i].rank, st->waits[i].place),
                              RUN_NONE) == i;
    return count - told;
}

static const char *summary_text(orr__stall *st, orr_stall_cause cause, const table *roots)
{
    orr_buf b = {0};
    if (roots->run_count == 0 && st->circle_length)
        return circle_text(st, cause);
    if (roots->run_count)
        orr__stall_put_label(&b, st, &st->waits[roots->entries[roots->runs[0].first].wait]);
    else
        orr_buf_text(&b, orr__stall_cause_words(cause));
    return keep_text(st, &b);
}

static bool stall_make_items(orr__stall *st)
{
    orr_stall *r = &st->result;
    table roots, waits;
    uint32_t count;
    uint32_t *picked = pick_waits(st, &count);
    if ((!picked && st->wait_count) || !make_table(st, st->roots, st->root_count, true, &roots) ||
        !make_table(st, picked, count, false, &waits))
        return false;
    r->ranks = st->sim->npu_count;
    r->unfinished = r->ranks - st->sim->finished;
    r->causes = make_items(st, &roots, true, &r->cause_count);
    r->circle_length = st->circle_length;
    r->circle_count = st->circle_length < MOST_ITEMS ? st->circle_length : MOST_ITEMS;
    r->circle = make_circle(st);
    r->waits = make_items(st, &waits, false, &r->wait_count);
    if (st->failed)
        return false;
    r->waits_left_out = waits.rank_count + count_untold(st, count);
    for (size_t i = 0; i < r->wait_count; i++)
        r->waits_left_out -= r->waits[i].rank_count;
    r->cause = r->cause_count      ? r->causes[0].cause
               : st->circle_length ? circle_cause(st)
                                   : ORR_STALL_UNKNOWN;
    r->summary = summary_text(st, r->cause, &roots);
    return tell(st);
}

static void free_scratch(struct orr__stall *st)
{
    orr_map_destroy(st->by_place);
    orr_map_destroy(st->by_stream);
    orr_map_destroy(st->by_tag);
    orr_map_destroy(st->starved);
    orr_map_destroy(st->resolved);
    orr_free(st->waits);
    orr_free(st->edges);
    st->by_place = st->by_stream = st->by_tag = st->starved = st->resolved = NULL;
    st->waits = NULL;
    st->edges = NULL;
}

void orr__stall_destroy(struct orr__stall *st)
{
    if (!st)
        return;
    free_scratch(st);
    orr_arena_destroy(st->arena);
    orr_free(st);
}

static struct orr__stall *analyse(orr_sim *s)
{
    struct orr__stall *st = orr_alloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->sim = s;
    st->arena = orr_arena_create();
    if (st->arena && orr__stall_collect(st) && orr__stall_link_messages(st) &&
        orr__stall_link_streams(st) && stall_find_causes(st) && stall_make_items(st)) {
        free_scratch(st);
        return st;
    }
    orr__stall_destroy(st);
    return NULL;
}

const char *const *orr__stall_lines(orr_sim *s, size_t *count)
{
    const orr_stall *stall = orr_sim_stall(s);
    *count = stall ? stall->line_count : 0;
    return stall ? stall->lines : NULL;
}

const orr_stall *orr_sim_stall(orr_sim *s)
{
    uint64_t tick;
    /* A folded run has its events elsewhere, and ends with every rank simulated where it stands still: this one was
     * stopped. */
    if (!s->has_started || s->code || s->fold || s->finished == s->npu_count ||
        clk_next_tick(s->clock, &tick))
        return NULL;
    if (!s->stall)
        s->stall = analyse(s);
    return s->stall ? &s->stall->result : NULL;
}

const orr_stall *orr__stall_known(const orr_sim *s)
{
    return s->stall ? &s->stall->result : NULL;
}

orr_code orr__explain_stall(orr_sim *s, orr_error *err)
{
    const orr_stall *r = orr_sim_stall(s);
    if (!r)
        return orr_no_memory(err);
    const orr_stall_item *at = r->cause_count ? r->causes : r->circle_count ? r->circle : r->waits;
    const bool has_place = r->cause_count || r->circle_count || r->wait_count;
    return orr_fail(err, ORR_EINPUT, has_place ? &at->where : NULL,
                    "deadlock: %u of %u ranks have not finished: %s", r->unfinished, r->ranks,
                    r->summary);
}
