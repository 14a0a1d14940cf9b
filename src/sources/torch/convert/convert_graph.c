/* SPDX-License-Identifier: Apache-2.0 */
/* convert_graph.c - what waits for what, as far as threads, streams and clocks tell.
 *
 *     threads    operators one after another, in the order of their ids, which is that of their beginnings
 *     launches   an operator before the kernels it launched
 *     streams    kernels one after another, in the order in which they ran
 *     noted      what the linker saw: events, synchronisation, other threads
 *     hand-over  a thread that went on after a pause waits for what another thread finished in that pause
 *     replies    a thread that went on when a collective of its own had ended waited for that
 *
 * The first three cannot contradict each other.  The others are taken over only where the clock does not speak against
 * them: what waits cannot have begun before that which it waits for had ended.
 *
 * Cost: linear, but for sorting kernels and ends of operators by time. */
#include "conversion.h"

#include <stdlib.h>

enum {
    SLACK_NS = 1000,  /* times are rounded to microseconds in some traces */
    PAUSE_NS = 20000, /* shorter ones are the interpreter at work */
};

bool conv_link_add(conv_state *c, uint32_t from, uint32_t to, bool is_certain)
{
    if (from == to)
        return true;
    if (!orr_grow(&c->links, &c->link_room, c->link_count + 1))
        return false;
    c->links[c->link_count++] = (conv_link){from, to, is_certain};
    return true;
}

/* ---- threads and launches ---- */

static bool takes_part(const conv_state *c, uint32_t place)
{
    return c->role[place] != CONV_GROUPS;
}

/* The operator that launched a kernel; where that is not known, the last one of its thread. */
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
            ok = ok && conv_link_add(c, from, p, true);
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

/* One kernel without a time, and only the order of launches is left for all. */
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
        qsort(list, count, sizeof *list, by_stream_and_time);
    for (size_t i = 1; i < count && ok; i++) {
        if (list[i - 1].stream != list[i].stream)
            continue;
        c->before[list[i].place] = list[i - 1].place;
        ok = conv_link_add(c, list[i - 1].place, list[i].place, true);
    }
    orr_free(list);
    return ok;
}

/* Calls that ran together stand between the kernel before theirs and theirs. */
static bool link_together(conv_state *c)
{
    bool ok = true;
    for (uint32_t p = 0; p < c->count && ok; p++) {
        const uint32_t kernel = c->partner[p];
        if (c->role[p] != CONV_CALL || kernel == CONV_NONE || c->role[kernel] != CONV_TOGETHER)
            continue;
        ok = conv_link_add(c, p, kernel, false);
        if (c->before[kernel] != CONV_NONE)
            ok = ok && conv_link_add(c, c->before[kernel], p, false);
    }
    return ok;
}

/* ---- noted by the linker ---- */

bool conv_clock_allows(const conv_state *c, uint32_t from, uint32_t to)
{
    const linked_node *a = conv_node(c, from), *b = conv_node(c, to);
    return !conv_has_time(a) || !conv_has_time(b) || conv_end(a) - SLACK_NS <= b->start_ns;
}

/* One dependency is noted for every operator of a group: the first has it for all. */
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
        return is_implied(thread_dep, c, from, to) || conv_link_add(c, from, to, false);
    }
    if (conv_clock_allows(c, from, to))
        return conv_link_add(c, from, to, false);
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
    int64_t *
        idle_since; /* by place: the last thing its thread did before it; LINKED_NO_TIME: nothing */
    uint32_t *below; /* by place: the operator that was open when it began */
    uint32_t *next;  /* by place: the operator behind it on its thread */
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

/* Operators nest: those that have ended by now are closed, the others go on around this one. */
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
    qsort(s->ends, s->end_count, sizeof *s->ends, by_end);
    return true;
}

/* How many operators had ended at this time. */
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

/* What another thread finished in the pause before this operator, last of all. */
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
            ok = conv_link_add(c, waker, p, false);
    }
    return ok;
}

/* The first operator that began after the call had ended, if its thread was idle until then. */
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
            ok = conv_link_add(c, p, reply, false);
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
    orr_free(s.ends);
    orr_free(s.threads);
    orr_map_destroy(s.by_tid);
    return ok;
}

orr_code conv_find_order(conv_state *c)
{
    memset(c->before, 0xFF, ((size_t)c->count + 1) * sizeof *c->before);
    const bool ok =
        link_threads(c) && link_streams(c) && link_together(c) && link_noted(c) && link_pauses(c);
    return ok ? ORR_OK : orr_no_memory(c->err);
}
