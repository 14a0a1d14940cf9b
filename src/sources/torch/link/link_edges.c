/* SPDX-License-Identifier: Apache-2.0 */
/* link_edges.c - what waits for what, beyond the order on a thread and on a stream.
 *
 *     the host for the device      what a synchronising call waited for -> the next operator of its thread
 *     a stream for a stream        what a recorded event stands behind  -> the next operation on the stream
 *     a thread for a thread        what ended last elsewhere            -> the first operator after a silence
 *     a back end's worker          c10d::allreduce_ that submitted it   -> gloo:all_reduce, on its own thread
 *     the submitter again          gloo:all_reduce                      -> its next operator
 *
 * Invariant: an edge goes from what ended to what started later, by the clock, so there is no circle.
 * Cost: linear, and a binary search for each edge. */
#include "link_merge.h"

#include "base/text/text.h"

/* Nanoseconds of silence after which a thread may have waited for another. */
#define SILENCE 100e3

typedef struct joiner {
    link_merger *m;
    orr_link *l;
    bool failed;
} joiner;

static const kin_event *op_event(const joiner *j, uint32_t op)
{
    return link_op(j->l, op);
}

static void join(joiner *j, uint32_t from, uint32_t to, linked_edge_kind kind)
{
    const link_plan *plan = j->m->plan;
    if (!linked_join(j->l->linked, plan[from].id, plan[to].id, kind))
        j->failed = true;
}

/* ---- the device ---- */

/* The first operator that a thread starts at ts or later; LINK_NONE: there is none. */
static uint32_t next_op(const joiner *j, uint32_t tid, double ts)
{
    const link_lists *by = &j->l->ops.by_thread;
    const uint32_t at = link_merge_next(j->m, tid, ts, false);
    return at < by->first[tid + 1] ? by->list[at] : LINK_NONE;
}

/* Time in a synchronising call is time the host would not need on another device. */
static void note_waiting(joiner *j, const kin_event *call)
{
    const uint32_t op = link_merge_innermost(j->m, call->tid, call->ts);
    if (op == LINK_NONE)
        return;
    linked_node *n = &j->l->linked->nodes[j->m->plan[j->m->plan_of_op[op]].id - 1];
    n->wait_ns += (int64_t)call->dur;
    if (n->wait_ns > n->own_ns)
        n->wait_ns = n->own_ns;
}

static void join_host(joiner *j, const link_wait *w)
{
    const kin_event *call = &j->l->device.events[w->to];
    const uint32_t op = next_op(j, call->tid, kin_end(call));
    if (op == LINK_NONE)
        return;
    j->l->tally.counts.of[ORR_LINK_SYNCS]++;
    join(j, j->m->plan_of_event[w->from], j->m->plan_of_op[op], LINKED_EDGE_SYNC);
}

static void join_waits(joiner *j)
{
    const orr_link *l = j->l;
    uint32_t last_call = LINK_NONE;
    for (size_t i = 0; i < l->wait_count && !j->failed; i++) {
        const link_wait *w = &l->waits[i];
        const kin_event *to = &l->device.events[w->to], *from = &l->device.events[w->from];
        if (!kin_is_device(to)) {
            if (w->to != last_call)
                note_waiting(j, to);
            last_call = w->to;
            join_host(j, w);
        } else if (from->stream != to->stream && from->ts < to->ts) {
            join(j, j->m->plan_of_event[w->from], j->m->plan_of_event[w->to], LINKED_EDGE_EVENT);
        }
    }
}

/* ---- threads ---- */

/* The operators that ended last, on two different threads. */
typedef struct ended {
    uint32_t first, second;
} ended;

static bool ends_later(const joiner *j, uint32_t a, uint32_t b)
{
    return b == LINK_NONE || kin_end(op_event(j, a)) >= kin_end(op_event(j, b));
}

static void has_ended(const joiner *j, ended *e, uint32_t op)
{
    const uint32_t tid = op_event(j, op)->tid;
    if (e->first == LINK_NONE || op_event(j, e->first)->tid == tid) {
        if (ends_later(j, op, e->first))
            e->first = op;
        return;
    }
    if (ends_later(j, op, e->first)) {
        e->second = e->first;
        e->first = op;
    }
}

/* Operators by their ends; NULL: out of memory. */
static uint32_t *order_of_ends(const joiner *j)
{
    const uint32_t n = j->l->ops.count;
    link_sort_entry *a = orr_alloc((size_t)n + 1, sizeof *a),
                    *b = orr_alloc((size_t)n + 1, sizeof *b);
    uint32_t *order = orr_arena_new(j->l->arena, (size_t)n + 1, uint32_t);
    const bool has_room = a && b && order;
    if (has_room) {
        for (uint32_t op = 0; op < n; op++)
            a[op] = (link_sort_entry){link_sort_key(kin_end(op_event(j, op))), op};
        const link_sort_entry *sorted = link_sort_entries(a, b, n);
        for (uint32_t i = 0; i < n; i++)
            order[i] = sorted[i].item;
    }
    orr_free(a);
    orr_free(b);
    return has_room ? order : NULL;
}

/* `busy`: until when the thread was at work; negative: it has not begun.  What ended before that woke it long ago. */
static void join_thread(joiner *j, const ended *e, uint32_t op, double busy)
{
    const kin_event *to = op_event(j, op);
    const uint32_t from =
        e->first != LINK_NONE && op_event(j, e->first)->tid == to->tid ? e->second : e->first;
    if (from == LINK_NONE || kin_end(op_event(j, from)) < busy)
        return;
    if (kin_end(op_event(j, from)) > to->ts || op_event(j, from)->ts >= to->ts)
        return;
    join(j, j->m->plan_of_op[from], j->m->plan_of_op[op], LINKED_EDGE_THREAD);
}

static void join_threads(joiner *j)
{
    const orr_link *l = j->l;
    const uint32_t *ends = order_of_ends(j);
    double *busy = orr_arena_new(l->arena, (size_t)l->ops.thread_count + 1, double);
    ended e = {LINK_NONE, LINK_NONE};
    uint32_t done = 0;
    j->failed |= !ends || !busy;
    for (uint32_t t = 0; !j->failed && t < l->ops.thread_count; t++)
        busy[t] = -1;
    for (uint32_t op = 0; !j->failed && op < l->ops.count; op++) {
        const kin_event *to = op_event(j, op);
        for (; done < l->ops.count && kin_end(op_event(j, ends[done])) <= to->ts; done++)
            has_ended(j, &e, ends[done]);
        if (j->m->parent_op[op] == LINK_NONE &&
            (busy[to->tid] < 0 || to->ts - busy[to->tid] > SILENCE))
            join_thread(j, &e, op, busy[to->tid]);
        if (kin_end(to) > busy[to->tid])
            busy[to->tid] = kin_end(to);
    }
}

/* ---- workers of a back end ---- */

/* The words of a collective without what differs between layers: "allreduce" for c10d::allreduce_ and
 * gloo:all_reduce. */
static size_t plain_word(orr_str name, char out[40])
{
    size_t from = 0, n = 0;
    for (size_t i = 0; i < name.len; i++)
        from = name.ptr[i] == ':' ? i + 1 : from;
    for (size_t i = from; i < name.len && n < 39 && name.ptr[i] != ' '; i++) {
        if (name.ptr[i] != '_')
            out[n++] = name.ptr[i];
    }
    if (n > 4 && memcmp(out + n - 4, "base", 4) == 0)
        n -= 4;
    out[n] = '\0';
    return n;
}

/* "gloo:all_reduce", "mpi:broadcast", "ucc:...": one colon, and the work itself; NCCL's only launches. */
static bool is_worker_name(orr_str s)
{
    const char *colon = memchr(s.ptr, ':', s.len);
    if (!colon || colon + 1 == s.ptr + s.len || colon[1] == ':' || colon == s.ptr)
        return false;
    return orr_str_begins(s, "gloo:") || orr_str_begins(s, "mpi:") || orr_str_begins(s, "ucc:");
}

/* Submissions that no worker has taken up yet, oldest first. */
typedef struct queue {
    uint32_t *ops;
    size_t count, room, first;
} queue;

static orr_str name_of(const joiner *j, uint32_t op)
{
    return orr_intern_get(j->l->device.texts, op_event(j, op)->name);
}

/* The oldest submission of the same kind; it leaves the queue. */
static uint32_t take_submission(const joiner *j, queue *q, uint32_t worker)
{
    char mine[40], other[40];
    const size_t n = plain_word(name_of(j, worker), mine);
    for (size_t i = q->first; i < q->count; i++) {
        const uint32_t op = q->ops[i];
        if (op == LINK_NONE || plain_word(name_of(j, op), other) != n ||
            memcmp(mine, other, n) != 0)
            continue;
        q->ops[i] = LINK_NONE;
        while (q->first < q->count && q->ops[q->first] == LINK_NONE)
            q->first++;
        return op;
    }
    return LINK_NONE;
}

static void join_worker(joiner *j, uint32_t submitted, uint32_t worker)
{
    const kin_event *s = op_event(j, submitted), *w = op_event(j, worker);
    if (s->tid == w->tid)
        return;
    if (kin_end(s) <= w->ts)
        join(j, j->m->plan_of_op[submitted], j->m->plan_of_op[worker], LINKED_EDGE_MARK);
    const uint32_t next = next_op(j, s->tid, kin_end(w));
    if (next != LINK_NONE)
        join(j, j->m->plan_of_op[worker], j->m->plan_of_op[next], LINKED_EDGE_WAIT);
}

static void join_workers(joiner *j)
{
    queue q = {0};
    for (uint32_t op = 0; op < j->l->ops.count && !j->failed; op++) {
        const orr_str name = name_of(j, op);
        if (orr_str_begins(name, "c10d::")) {
            j->failed |= !orr_grow(&q.ops, &q.room, q.count + 1);
            if (!j->failed)
                q.ops[q.count++] = op;
        } else if (is_worker_name(name)) {
            const uint32_t submitted = take_submission(j, &q, op);
            if (submitted != LINK_NONE)
                join_worker(j, submitted, op);
        }
    }
    orr_free(q.ops);
}

orr_code link_merge_edges(link_merger *m, orr_error *err)
{
    joiner j = {.m = m, .l = m->l};
    join_waits(&j);
    if (!j.failed)
        join_threads(&j);
    if (!j.failed)
        join_workers(&j);
    return j.failed ? orr_no_memory(err) : ORR_OK;
}
