/* SPDX-License-Identifier: Apache-2.0 */
/* convert_graph.c - dependencies, from threads, streams and clocks.
 *
 *     threads    operators in sequence, by id, which is the order of their starts
 *     launches   an operator before the kernels it launched
 *     streams    kernels in sequence, in the order in which they ran
 *     noted      what the linker saw: events, synchronisation, other threads
 *     hand-over  a thread that resumed after a pause waits for what another finished during it
 *     replies    a thread that resumed when its own collective had ended waited for that
 *
 * The first three cannot contradict each other.  The others are used only if the clock agrees: a
 * node cannot have started before its dependency ended.
 *
 * Cost: linear, except for sorting kernels and ends of operators by time. */
#include "base/memory/sort.h"
#include "conversion.h"

#include <stdlib.h>

enum {
    SLACK_NS = 1000,  /* times are rounded to microseconds in some traces */
    PAUSE_NS = 20000, /* shorter ones are the interpreter */
};

static bool add_link(conv_state *c, uint32_t from, uint32_t to, bool is_certain)
{
    if (from == to)
        return true;
    return orr_push(c->links, c->link_count, c->link_room, (conv_link){from, to, is_certain});
}

/* ---- threads and launches ---- */

static bool takes_part(const conv_state *c, uint32_t place)
{
    return c->role[place] != CONV_GROUPS;
}

/* The operator that launched a kernel; if unknown, the last one of its thread. */
static uint32_t launcher_of(const conv_state *c, uint32_t place, uint32_t last)
{
    const uint32_t parent = c->parent[place];
    return parent != CONV_NONE && conv_is_host(c, parent) ? parent : last;
}

static bool link_threads(conv_state *c)
{
    orr_map *last = orr_map_create(64);
    bool ok = last;
    for (uint32_t p = 0; ok && p < c->count; p++) {
        const uint64_t thread = (uint64_t)conv_node(c, p)->tid;
        uint32_t from = orr_map_find(last, thread, CONV_NONE);
        if (!takes_part(c, p))
            continue;
        if (!conv_is_device(c, p))
            c->before[p] = from;
        if (conv_is_host(c, p)) {
            ok = orr_map_put(last, thread, p, NULL);
        } else if (conv_is_device(c, p)) {
            from = launcher_of(c, p, from);
        }
        if (from != CONV_NONE)
            ok = ok && add_link(c, from, p, true);
    }
    orr_map_destroy(last);
    return ok;
}

/* ---- streams ---- */

typedef struct on_stream {
    int64_t stream, start;
    uint32_t place;
} on_stream;

static int by_stream_and_time(const void *a, const void *b)
{
    const on_stream *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* If any kernel lacks a time, the order of launches is used for all. */
static on_stream *list_kernels(conv_state *c, size_t *count)
{
    size_t n = 0;
    bool has_times = true;
    for (uint32_t p = 0; p < c->count; p++) {
        n += conv_is_device(c, p);
        has_times &= !conv_is_device(c, p) || conv_has_time(conv_node(c, p));
    }
    on_stream *list = orr_alloc(n + 1, sizeof *list);
    *count = 0;
    for (uint32_t p = 0; list && p < c->count; p++) {
        const linked_node *node = conv_node(c, p);
        if (conv_is_device(c, p))
            list[(*count)++] = (on_stream){node->stream, has_times ? node->start_ns : 0, p};
    }
    return list;
}

static bool link_streams(conv_state *c)
{
    size_t count;
    on_stream *list = list_kernels(c, &count);
    bool ok = list;
    if (ok)
        orr_sort(list, count, sizeof *list, by_stream_and_time);
    for (size_t i = 1; i < count && ok; i++) {
        if (list[i - 1].stream != list[i].stream)
            continue;
        c->before[list[i].place] = list[i - 1].place;
        ok = add_link(c, list[i - 1].place, list[i].place, true);
    }
    orr_free(list);
    return ok;
}

/* Coalesced calls come between the kernel before theirs and theirs. */
static bool link_together(conv_state *c)
{
    bool ok = true;
    for (uint32_t p = 0; p < c->count && ok; p++) {
        const uint32_t kernel = c->partner[p];
        if (c->role[p] != CONV_CALL || kernel == CONV_NONE || c->role[kernel] != CONV_TOGETHER)
            continue;
        ok = add_link(c, p, kernel, false);
        if (c->before[kernel] != CONV_NONE)
            ok = ok && add_link(c, c->before[kernel], p, false);
    }
    return ok;
}

/* ---- noted by the linker ---- */

/* False: `to` started before `from` ended, so it cannot have waited. */
static bool clock_allows(const conv_state *c, uint32_t from, uint32_t to)
{
    const linked_node *a = conv_node(c, from), *b = conv_node(c, to);
    return !conv_has_time(a) || !conv_has_time(b) || conv_end(a) - SLACK_NS <= b->start_ns;
}

/* A dependency is recorded for every operator of a group: the first represents them all. */
static bool is_implied(const uint32_t *thread_dep, const conv_state *c, uint32_t from, uint32_t to)
{
    const uint32_t before = c->before[to];
    return before != CONV_NONE && thread_dep[before] == from;
}

static bool link_edge(conv_state *c, const linked_edge *e, uint32_t *thread_dep)
{
    const uint32_t from = orr_map_find(c->by_id, e->from, CONV_NONE);
    const uint32_t to = orr_map_find(c->by_id, e->to, CONV_NONE);
    if (from == CONV_NONE || to == CONV_NONE) {
        c->report->dependencies_missing++;
        return true;
    }
    if (!takes_part(c, from) || !takes_part(c, to))
        return true;
    if (e->kind == LINKED_EDGE_THREAD) {
        thread_dep[to] = from;
        return is_implied(thread_dep, c, from, to) || add_link(c, from, to, false);
    }
    if (clock_allows(c, from, to))
        return add_link(c, from, to, false);
    c->report->dependencies_refused++;
    return true;
}

static bool link_noted(conv_state *c)
{
    uint32_t *thread_dep = orr_arena_new(c->arena, (size_t)c->count + 1, uint32_t);
    bool ok = thread_dep;
    if (ok)
        memset(thread_dep, 0xFF, ((size_t)c->count + 1) * sizeof *thread_dep);
    for (size_t e = 0; e < c->l->edge_count && ok; e++)
        ok = link_edge(c, &c->l->edges[e], thread_dep);
    return ok;
}

/* ---- pauses ---- */

typedef struct ending {
    int64_t at;
    uint32_t place;
} ending;

static int by_end(const void *a, const void *b)
{
    const ending *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

typedef struct pauses {
    conv_state *c;
    /* By place: when its thread last did something before it; LINKED_NO_TIME: never. */
    int64_t *idle_since;
    uint32_t *below; /* by place: the operator that was open when it started */
    uint32_t *next;  /* by place: the next operator on its thread */
    ending *ends;    /* of operators, by time */
    size_t end_count;
    struct thread {
        int64_t last; /* beginning or end of an operator */
        uint32_t open;
    } * threads;
    size_t thread_count, thread_room;
    orr_map *by_tid;
} pauses;

static struct thread *thread_of(pauses *s, int64_t tid)
{
    uint32_t t = orr_map_find(s->by_tid, (uint64_t)tid, CONV_NONE);
    if (t != CONV_NONE)
        return &s->threads[t];
    t = (uint32_t)s->thread_count;
    if (!orr_grow(&s->threads, &s->thread_room, s->thread_count + 1) ||
        !orr_map_put(s->by_tid, (uint64_t)tid, t, NULL))
        return NULL;
    s->threads[s->thread_count++] = (struct thread){LINKED_NO_TIME, CONV_NONE};
    return &s->threads[t];
}

/* Operators nest: those ended by now are closed, the others enclose this one. */
static void begin_operator(pauses *s, struct thread *t, uint32_t place)
{
    const linked_node *n = conv_node(s->c, place);
    while (t->open != CONV_NONE && conv_end(conv_node(s->c, t->open)) <= n->start_ns) {
        const int64_t end = conv_end(conv_node(s->c, t->open));
        t->last = end > t->last ? end : t->last;
        t->open = s->below[t->open];
    }
    s->idle_since[place] = t->last;
    s->below[place] = t->open;
    t->open = place;
    t->last = n->start_ns > t->last ? n->start_ns : t->last;
    s->ends[s->end_count++] = (ending){conv_end(n), place};
}

static bool find_idle(pauses *s)
{
    const conv_state *c = s->c;
    for (uint32_t p = 0; p < c->count; p++) {
        s->idle_since[p] = LINKED_NO_TIME;
        s->next[p] = CONV_NONE;
        if (!conv_is_host(c, p))
            continue;
        if (c->before[p] != CONV_NONE)
            s->next[c->before[p]] = p;
        if (!conv_has_time(conv_node(c, p)))
            continue;
        struct thread *t = thread_of(s, conv_node(c, p)->tid);
        if (!t)
            return false;
        begin_operator(s, t, p);
    }
    orr_sort(s->ends, s->end_count, sizeof *s->ends, by_end);
    return true;
}

/* How many operators had ended by this time. */
static size_t count_ended(const pauses *s, int64_t at)
{
    size_t low = 0, high = s->end_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (s->ends[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What another thread finished last during the pause before this operator. */
static uint32_t find_waker(const pauses *s, uint32_t place)
{
    enum { LOOKS = 64 };
    const linked_node *n = conv_node(s->c, place);
    const size_t ended = count_ended(s, n->start_ns);
    for (size_t i = ended; i-- > 0 && ended - i <= LOOKS && s->ends[i].at > s->idle_since[place];) {
        if (conv_node(s->c, s->ends[i].place)->tid != n->tid)
            return s->ends[i].place;
    }
    return CONV_NONE;
}

static bool link_hand_overs(const pauses *s)
{
    conv_state *c = s->c;
    bool ok = true;
    for (uint32_t p = 0; p < c->count && ok; p++) {
        const linked_node *n = conv_node(c, p);
        if (!conv_is_host(c, p) || !conv_has_time(n))
            continue;
        if (s->idle_since[p] != LINKED_NO_TIME && n->start_ns - s->idle_since[p] < PAUSE_NS)
            continue;
        const uint32_t waker = find_waker(s, p);
        if (waker != CONV_NONE)
            ok = add_link(c, waker, p, false);
    }
    return ok;
}

/* The first operator that started after the call ended, if its thread was idle until then. */
static uint32_t find_reply(const pauses *s, uint32_t call)
{
    const conv_state *c = s->c;
    const int64_t end = conv_end(conv_node(c, call)) - SLACK_NS;
    uint32_t p = c->before[call] == CONV_NONE ? CONV_NONE : s->next[c->before[call]];
    while (p != CONV_NONE && (!conv_has_time(conv_node(c, p)) || conv_node(c, p)->start_ns < end))
        p = s->next[p];
    return p != CONV_NONE && s->idle_since[p] <= end + 2 * SLACK_NS ? p : CONV_NONE;
}

static bool link_replies(const pauses *s)
{
    conv_state *c = s->c;
    bool ok = true;
    for (uint32_t p = 0; p < c->count && ok; p++) {
        const uint32_t partner = c->partner[p];
        if (c->role[p] != CONV_CALL || !conv_has_time(conv_node(c, p)) ||
            (partner != CONV_NONE && c->role[partner] == CONV_TOGETHER))
            continue;
        const uint32_t reply = find_reply(s, p);
        if (reply != CONV_NONE)
            ok = add_link(c, p, reply, false);
    }
    return ok;
}

static bool link_pauses(conv_state *c)
{
    const size_t n = (size_t)c->count + 1;
    pauses s = {.c = c,
                .idle_since = orr_arena_new(c->arena, n, int64_t),
                .below = orr_arena_new(c->arena, n, uint32_t),
                .next = orr_arena_new(c->arena, n, uint32_t),
                .ends = orr_alloc(n, sizeof *s.ends),
                .by_tid = orr_map_create(64)};
    const bool ok = s.idle_since && s.below && s.next && s.ends && s.by_tid && find_idle(&s) &&
                    link_hand_overs(&s) && link_replies(&s);
    for (uint32_t p = 0; ok && p < c->count; p++)
        if (s.idle_since[p] != LINKED_NO_TIME && s.below[p] != CONV_NONE)
            s.idle_since[p] = LINKED_NO_TIME; /* the time of the one around it */
    c->idle_since = s.idle_since;
    orr_free(s.ends);
    orr_free(s.threads);
    orr_map_destroy(s.by_tid);
    return ok;
}

static orr_code find_order(conv_state *c)
{
    memset(c->before, 0xFF, ((size_t)c->count + 1) * sizeof *c->before);
    const bool ok =
        link_threads(c) && link_streams(c) && link_together(c) && link_noted(c) && link_pauses(c);
    return ok ? ORR_OK : orr_no_memory(c->err);
}

/* ==== dependencies through tensors: work of different streams on one storage.
 *
 * Streams are synchronised by events, which most traces do not show.  Their purpose is visible in
 * the operators' values: a bucket of gradients is filled by kernels of one stream, reduced by one
 * of another, and unpacked by the first again, all of them naming the same storage.  So work
 * depends on the last work of another stream on one of its storages, if the clock agrees.  The
 * first operator that touches the data of a collective run by a backend's thread waits for it.
 *
 * Cost: one pass over the values of stream work; over those of operators only if there are such
 * calls. */

typedef struct flow {
    conv_state *c;
    orr_map *last; /* storage -> place of the last work on it */
    uint64_t *ids;
    size_t count, room;
} flow;

static bool add_storages(flow *f, uint32_t place)
{
    const linked_node *n = conv_node(f->c, place);
    return conv_io_storages(n->inputs, &f->ids, &f->count, &f->room) &&
           conv_io_storages(n->outputs, &f->ids, &f->count, &f->room);
}

/* A call also uses the tensors of the operator that made it: only that lists outputs. */
static bool find_storages(flow *f, uint32_t place)
{
    const uint32_t partner = f->c->partner[place];
    f->count = 0;
    if (!add_storages(f, place))
        return false;
    return f->c->role[place] != CONV_CALL || partner == CONV_NONE || !conv_is_host(f->c, partner) ||
           add_storages(f, partner);
}

static bool is_other_lane(const conv_state *c, uint32_t a, uint32_t b)
{
    const bool is_call = c->role[a] == CONV_CALL || c->role[b] == CONV_CALL;
    return is_call || conv_node(c, a)->stream != conv_node(c, b)->stream;
}

static bool see_work(flow *f, uint32_t place)
{
    if (!find_storages(f, place))
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const uint32_t from = orr_map_find(f->last, f->ids[i], CONV_NONE);
        if (from != CONV_NONE && from != place && is_other_lane(f->c, from, place) &&
            clock_allows(f->c, from, place) && !add_link(f->c, from, place, false))
            return false;
        if (!orr_map_put(f->last, f->ids[i], place, NULL))
            return false;
    }
    return true;
}

/* An operator waits for calls only: it does not see kernels. */
static bool see_operator(flow *f, uint32_t place)
{
    if (!find_storages(f, place))
        return false;
    for (size_t i = 0; i < f->count; i++) {
        const uint32_t from = orr_map_find(f->last, f->ids[i], CONV_NONE);
        if (from == CONV_NONE || f->c->role[from] != CONV_CALL || !clock_allows(f->c, from, place))
            continue;
        if (!add_link(f->c, from, place, false))
            return false;
        orr_map_remove(f->last, f->ids[i]); /* later ones come after this one */
    }
    return true;
}

static bool see_all(flow *f, bool has_calls)
{
    const conv_state *c = f->c;
    for (uint32_t p = 0; p < c->count; p++) {
        const bool is_work = conv_is_device(c, p) || c->role[p] == CONV_CALL;
        if (is_work && !see_work(f, p))
            return false;
        if (has_calls && conv_is_host(c, p) && !see_operator(f, p))
            return false;
    }
    return true;
}

/* With one stream and no calls there is nothing to find. */
static bool has_lanes(const conv_state *c, bool *has_calls)
{
    int64_t stream = 0;
    bool has_stream = false, has_more = false;
    *has_calls = false;
    for (uint32_t p = 0; p < c->count; p++) {
        *has_calls |= c->role[p] == CONV_CALL;
        if (!conv_is_device(c, p))
            continue;
        has_more |= has_stream && conv_node(c, p)->stream != stream;
        stream = conv_node(c, p)->stream;
        has_stream = true;
    }
    return has_more || *has_calls;
}

static orr_code find_data(conv_state *c)
{
    bool has_calls;
    if (!has_lanes(c, &has_calls))
        return ORR_OK;
    flow f = {.c = c, .last = orr_map_create(1024)};
    const bool ok = f.last && see_all(&f, has_calls);
    orr_map_destroy(f.last);
    orr_free(f.ids);
    return ok ? ORR_OK : orr_no_memory(c->err);
}

/* ==== dependencies sorted by node, each once, and without cycles.
 *
 * Threads, launches and streams cannot form cycles.  Added dependencies can: some traces have
 * clocks that jump and ids that were mixed up.  So nodes without dependencies are peeled off; those
 * that remain are in or after a cycle, and the dependencies added between them are dropped.  Once
 * is enough: the rest is certain.
 *
 * Cost: linear. */

static bool make_room(conv_state *c)
{
    c->dep_first = orr_arena_new(c->arena, (size_t)c->count + 2, uint32_t);
    c->dep = orr_arena_new(c->arena, c->link_count + 1, uint32_t);
    return c->link_count < UINT32_MAX && c->dep_first && c->dep;
}

/* Links sorted by `to`; stable within a node. */
static void sort_links(conv_state *c)
{
    memset(c->dep_first, 0, ((size_t)c->count + 2) * sizeof *c->dep_first);
    for (size_t i = 0; i < c->link_count; i++)
        c->dep_first[c->links[i].to + 2]++;
    for (uint32_t p = 0; p < c->count; p++)
        c->dep_first[p + 2] += c->dep_first[p + 1];
    for (size_t i = 0; i < c->link_count;
         i++) /* [p + 1] walks from the beginning of p to its end */
        c->dep[c->dep_first[c->links[i].to + 1]++] = c->links[i].from;
}

/* A node has few dependencies. */
static void drop_repeated(conv_state *c)
{
    uint32_t kept = 0, next = c->dep_first[0];
    for (uint32_t p = 0; p < c->count; p++) {
        const uint32_t from = next, begin = kept;
        next = c->dep_first[p + 1];
        for (uint32_t e = from; e < next; e++) {
            uint32_t k = begin;
            while (k < kept && c->dep[k] != c->dep[e])
                k++;
            if (k == kept)
                c->dep[kept++] = c->dep[e];
        }
        c->dep_first[p] = begin;
    }
    c->dep_first[c->count] = kept;
}

/* ---- cycles ---- */

typedef struct peeling {
    uint32_t *waits, *first, *child, *queue;
} peeling;

static bool prepare(const conv_state *c, peeling *s)
{
    const size_t n = (size_t)c->count + 2;
    s->waits = orr_arena_new(c->arena, n, uint32_t);
    s->first = orr_arena_new(c->arena, n + 1, uint32_t);
    s->child = orr_arena_new(c->arena, c->dep_first[c->count] + (size_t)1, uint32_t);
    s->queue = orr_arena_new(c->arena, n, uint32_t);
    if (!s->waits || !s->first || !s->child || !s->queue)
        return false;
    for (uint32_t p = 0; p < c->count; p++) {
        s->waits[p] = c->dep_first[p + 1] - c->dep_first[p];
        for (uint32_t e = c->dep_first[p]; e < c->dep_first[p + 1]; e++)
            s->first[c->dep[e] + 2]++;
    }
    for (uint32_t p = 0; p < c->count; p++)
        s->first[p + 2] += s->first[p + 1];
    for (uint32_t p = 0; p < c->count; p++)
        for (uint32_t e = c->dep_first[p]; e < c->dep_first[p + 1]; e++)
            s->child[s->first[c->dep[e] + 1]++] = p;
    return true;
}

/* How many nodes can run. */
static uint32_t peel(const conv_state *c, peeling *s)
{
    uint32_t known = 0, done = 0;
    for (uint32_t p = 0; p < c->count; p++) {
        if (s->waits[p] == 0)
            s->queue[known++] = p;
    }
    while (done < known) {
        const uint32_t p = s->queue[done++];
        for (uint32_t k = s->first[p]; k < s->first[p + 1]; k++) {
            if (--s->waits[s->child[k]] == 0)
                s->queue[known++] = s->child[k];
        }
    }
    return done;
}

static void drop_doubtful(conv_state *c, const peeling *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->link_count; i++) {
        const conv_link *k = &c->links[i];
        const bool is_stuck = s->waits[k->from] && s->waits[k->to];
        if (k->is_certain || !is_stuck)
            c->links[kept++] = *k;
        else
            c->report->dependencies_circular++;
    }
    c->link_count = kept;
}

static orr_code settle_order(conv_state *c)
{
    peeling s;
    if (!make_room(c))
        return orr_no_memory(c->err);
    sort_links(c);
    drop_repeated(c);
    if (!prepare(c, &s))
        return orr_no_memory(c->err);
    if (peel(c, &s) == c->count)
        return ORR_OK;
    drop_doubtful(c, &s);
    sort_links(c);
    drop_repeated(c);
    if (!prepare(c, &s))
        return orr_no_memory(c->err);
    if (peel(c, &s) == c->count)
        return ORR_OK;
    return orr_fail(c->err, ORR_EBUG, NULL, "threads, launches and streams form a cycle");
}

orr_code conv_find_deps(conv_state *c)
{
    orr_code code;
    if ((code = find_order(c)) || (code = find_data(c)))
        return code;
    return settle_order(c);
}
