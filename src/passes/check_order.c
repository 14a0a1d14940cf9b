/* SPDX-License-Identifier: Apache-2.0 */
/* check_order.c - can all ranks run their collectives, or does each wait for the other?
 *
 * A collective runs when every member of its group has reached it.  Two passes:
 *
 *     march   every class runs its collectives in file order, which its dependencies allow.  If all get to
 *             the end, an order that suits everybody exists.  O(collectives); nearly always enough.
 *     feed    every class runs its whole graph; whatever is ready may run.  Collectives of a group that are
 *             equal in type and size are interchangeable.  If this comes to a stop, nothing else could have
 *             gone on either, unless there was a choice between interchangeable ones; then nothing is
 *             claimed.  O(nodes + dependencies) of the distinct ranks.
 *
 * Why classes suffice: equal ranks are at the same place at the same time. */
#include "check_order.h"

/* ---- march ---- */

typedef struct march {
    const orr__check *k;
    const orr__issues *s;
    size_t *at, *end;           /* by class: the next of its issues */
    size_t *arrived;            /* by group: how many members are there */
    const orr__issue **meeting; /* by group: what the first of them is at */
    uint32_t *queue;            /* classes that have moved */
    size_t queued;
} march;

static size_t member_count(const orr__issues *s, uint32_t group)
{
    return s->group_first[group + 1] - s->group_first[group];
}

static bool is_same_key(const orr__issue *x, const orr__issue *y)
{
    return x->type == y->type && x->key_size == y->key_size;
}

/* The class moves on to its next collective with others; false when that cannot be the one they are at. */
static bool arrive(march *m, uint32_t cls)
{
    while (m->at[cls] < m->end[cls] && member_count(m->s, m->s->all[m->at[cls]].group) < 2)
        m->at[cls]++;
    if (m->at[cls] == m->end[cls])
        return true;
    const orr__issue *q = &m->s->all[m->at[cls]];
    if (m->arrived[q->group] == 0)
        m->meeting[q->group] = q;
    else if (!is_same_key(m->meeting[q->group], q))
        return false;
    if (++m->arrived[q->group] < member_count(m->s, q->group))
        return true;
    m->arrived[q->group] = 0;
    for (size_t i = m->s->group_first[q->group]; i < m->s->group_first[q->group + 1]; i++) {
        const uint32_t member = m->s->members[i].class_index;
        m->at[member]++;
        m->queue[m->queued++] = member;
    }
    return true;
}

static bool march_all(march *m)
{
    for (uint32_t i = 0; i < m->k->class_count; i++)
        m->queue[m->queued++] = i;
    /* A class is queued only after it has moved, so the queue never holds one twice. */
    while (m->queued)
        if (!arrive(m, m->queue[--m->queued]))
            return false;
    for (uint32_t i = 0; i < m->k->class_count; i++)
        if (m->at[i] != m->end[i])
            return false;
    return true;
}

static bool can_march(orr__check *k, const orr__issues *s)
{
    const size_t classes = k->class_count, groups = orr_intern_count(s->groups);
    march m = {.k = k, .s = s};
    m.at = orr_arena_new(k->scratch, classes + 1, size_t);
    m.end = orr_arena_new(k->scratch, classes + 1, size_t);
    m.arrived = orr_arena_new(k->scratch, groups, size_t);
    m.meeting = orr_arena_new(k->scratch, groups, const orr__issue *);
    m.queue = orr_arena_new(k->scratch, classes + 1, uint32_t);
    if (!m.at || !m.end || !m.arrived || !m.meeting || !m.queue) {
        k->no_memory = true;
        return true;
    }
    for (size_t i = 0, at = 0; i < classes; i++) {
        m.at[i] = at;
        while (at < s->count && s->all[at].class_index == i)
            at++;
        m.end[i] = at;
    }
    return march_all(&m);
}

/* ---- feed ---- */

enum { NODE_DONE = -1, NODE_VISITED = -2 }; /* in place of how many a node waits for */

typedef struct runner {
    orr__graph graph;
    uint32_t *slot; /* by node: where it waits for others; ORR_NO_NODE: nowhere */
    uint32_t *next; /* by node: behind it in the same slot */
    uint32_t left;
} runner;

/* A key is a kind of collective of one group; it has a slot for each member. */
typedef struct key {
    uint32_t first_slot, slots;
    uint32_t full; /* slots that are not empty */
    uint32_t group;
} key;

typedef struct slot {
    uint32_t key, class_index;
    uint32_t head, tail, count; /* of nodes that wait here */
    const orr__issue *first;    /* all that ever will: this one and the next ones of the same key */
} slot;

typedef struct feed {
    orr__check *k;
    const orr__issues *s;
    runner *runners; /* by class */
    key *keys;
    slot *slots;
    uint32_t key_count, slot_count;
    uint64_t *ready; /* class << 32 | node */
    size_t ready_count, ready_room;
    uint32_t *due; /* keys all of whose slots are full */
    size_t due_count;
    bool had_choice;
} feed;

static void push_ready(feed *f, uint32_t cls, uint32_t node)
{
    if (!orr_grow(&f->ready, &f->ready_room, f->ready_count + 1)) {
        f->k->no_memory = true;
        return;
    }
    f->ready[f->ready_count++] = (uint64_t)cls << 32 | node;
}

static void complete(feed *f, uint32_t cls, uint32_t node)
{
    runner *r = &f->runners[cls];
    r->graph.waits[node] = (uint32_t)NODE_DONE;
    r->left--;
    for (uint32_t e = r->graph.first[node]; e < r->graph.first[node + 1]; e++)
        if (--r->graph.waits[r->graph.child[e]] == 0)
            push_ready(f, cls, r->graph.child[e]);
}

static void wait_in_slot(feed *f, uint32_t cls, uint32_t node)
{
    slot *s = &f->slots[f->runners[cls].slot[node]];
    key *k = &f->keys[s->key];
    if (s->count++ == 0) {
        s->head = node;
        if (++k->full == k->slots)
            f->due[f->due_count++] = s->key;
    } else {
        f->runners[cls].next[s->tail] = node;
    }
    s->tail = node;
}

static void run_ready(feed *f)
{
    while (f->ready_count) {
        const uint64_t one = f->ready[--f->ready_count];
        const uint32_t cls = (uint32_t)(one >> 32), node = (uint32_t)one;
        if (f->runners[cls].slot[node] == ORR_NO_NODE)
            complete(f, cls, node);
        else
            wait_in_slot(f, cls, node);
    }
}

/* Everybody is there: one collective of each member runs.  Which one is a choice when some member has more
 * of them waiting than another. */
static void run_key(feed *f, uint32_t index)
{
    key *k = &f->keys[index];
    const uint32_t usual = f->slots[k->first_slot].count;
    for (uint32_t i = 0; i < k->slots; i++) {
        slot *s = &f->slots[k->first_slot + i];
        const uint32_t node = s->head;
        f->had_choice |= s->count != usual;
        s->head = f->runners[s->class_index].next[node];
        if (--s->count == 0)
            k->full--;
        complete(f, s->class_index, node);
    }
    if (k->full == k->slots)
        f->due[f->due_count++] = index;
}

/* True when all have come to the end. */
static bool feed_all(feed *f)
{
    for (uint32_t i = 0; i < f->k->class_count; i++)
        for (uint32_t node = 0; node < f->runners[i].graph.count; node++)
            if (f->runners[i].graph.waits[node] == 0)
                push_ready(f, i, node);
    run_ready(f);
    while (f->due_count && !f->k->no_memory) {
        run_key(f, f->due[--f->due_count]);
        run_ready(f);
    }
    for (uint32_t i = 0; i < f->k->class_count; i++)
        if (f->runners[i].left)
            return false;
    return true;
}

/* ---- building the feed ---- */

static bool build_runner(feed *f, uint32_t cls)
{
    runner *r = &f->runners[cls];
    orr_arena *a = f->k->scratch;
    const size_t n = f->k->classes[cls].c->count;
    r->slot = orr_arena_new(a, n + 1, uint32_t);
    r->next = orr_arena_new(a, n + 1, uint32_t);
    r->left = (uint32_t)n;
    if (!r->slot || !r->next || !orr__graph_build(a, f->k->classes[cls].c, &r->graph))
        return false;
    memset(r->slot, 0xff, n * sizeof *r->slot);
    return true;
}

/* All members of a group have the same keys, equally often, in the same order. */
static void build_member(feed *f, uint32_t group, size_t place, uint32_t first_key)
{
    const orr__issues *s = f->s;
    const orr__member *m = &s->members[s->group_first[group] + place];
    const uint32_t members = (uint32_t)member_count(s, group);
    uint32_t index = first_key;
    for (size_t i = m->first; i < m->first + m->count; i++) {
        const orr__issue *q = &s->sorted[i];
        const bool is_new = i == m->first || !is_same_key(q, q - 1);
        index += is_new && i != m->first;
        const uint32_t at = f->slot_count + (index - first_key) * members + (uint32_t)place;
        if (is_new && place == 0)
            f->keys[f->key_count++] = (key){.first_slot = at, .slots = members, .group = group};
        if (is_new)
            f->slots[at] = (slot){.key = index, .class_index = m->class_index, .first = q};
        f->runners[m->class_index].slot[q->node] = at;
    }
}

static void build_group(feed *f, uint32_t group)
{
    const size_t members = member_count(f->s, group);
    const uint32_t first_key = f->key_count;
    if (members < 2)
        return;
    for (size_t place = 0; place < members; place++)
        build_member(f, group, place, first_key);
    f->slot_count += (f->key_count - first_key) * (uint32_t)members;
}

static bool build_feed(feed *f)
{
    orr_arena *a = f->k->scratch;
    const size_t n = f->s->count + 1;
    f->runners = orr_arena_new(a, f->k->class_count, runner);
    f->keys = orr_arena_new(a, n, key);
    f->slots = orr_arena_new(a, n, slot);
    f->due = orr_arena_new(a, n, uint32_t);
    if (!f->runners || !f->keys || !f->slots || !f->due || n > UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < f->k->class_count; i++)
        if (!build_runner(f, i))
            return false;
    for (uint32_t group = 0; group < orr_intern_count(f->s->groups); group++)
        build_group(f, group);
    return true;
}

/* ---- who waits for whom ---- */

typedef struct stuck {
    uint32_t class_index, node;
} stuck;

static const orr__issue *issue_of(const feed *f, stuck at)
{
    const orr__issue *q = f->slots[f->runners[at.class_index].slot[at.node]].first;
    while (q->node != at.node)
        q++;
    return q;
}

static bool is_waiting_in(
    const feed *f, uint32_t cls, const uint32_t *first, const uint32_t *dep, uint32_t *node)
{
    const runner *r = &f->runners[cls];
    for (uint32_t e = first ? first[*node] : 0; first && e < first[*node + 1]; e++)
        if (dep[e] != ORR_NO_NODE && dep[e] != *node &&
            r->graph.waits[dep[e]] != (uint32_t)NODE_DONE) {
            *node = dep[e];
            return true;
        }
    return false;
}

/* The collective that keeps a node from running: up the unfinished parents to one that waits for others. */
static uint32_t find_blocker(const feed *f, uint32_t cls, uint32_t node)
{
    const orr_columns *c = f->k->classes[cls].c;
    while (is_waiting_in(f, cls, c->data_first, c->data_dep, &node) ||
           is_waiting_in(f, cls, c->ctrl_first, c->ctrl_dep, &node))
        ;
    return node;
}

/* The first member that is not there yet, and what it waits in instead. */
static stuck find_absent(const feed *f, stuck at)
{
    const key *k = &f->keys[f->slots[f->runners[at.class_index].slot[at.node]].key];
    const slot *s = &f->slots[k->first_slot];
    while (s->count)
        s++;
    const orr__issue *q = s->first;
    while (f->runners[s->class_index].graph.waits[q->node] == (uint32_t)NODE_DONE)
        q++;
    return (stuck){s->class_index, find_blocker(f, s->class_index, q->node)};
}

static stuck find_first_stuck(const feed *f)
{
    uint32_t cls = 0, node = 0;
    while (f->runners[cls].left == 0)
        cls++;
    while (f->runners[cls].graph.waits[node] == (uint32_t)NODE_DONE)
        node++;
    return (stuck){cls, find_blocker(f, cls, node)};
}

enum { CHAIN_SHOWN = 8 };

static void put_chain(feed *f, orr_buf *b, stuck start)
{
    stuck at = start;
    for (int i = 0; i < CHAIN_SHOWN; i++) {
        const orr__issue *q = issue_of(f, at);
        orr_buf_print(b, "%srank %u is in %s of %s and waits for ", i ? "; " : "",
                      f->k->classes[at.class_index].rank, orr__issue_words(f->k, q),
                      orr__group_words(f->k, f->s, q->group));
        at = find_absent(f, at);
        orr_buf_print(b, "rank %u", f->k->classes[at.class_index].rank);
        if (at.class_index == start.class_index && at.node == start.node)
            return;
    }
    orr_buf_text(b, ", and so on");
}

static void report_stuck(feed *f)
{
    orr_buf b = {0};
    stuck at = find_first_stuck(f);
    /* Follow who waits for whom until somebody comes up again: from there on it is a circle. */
    while (f->runners[at.class_index].graph.waits[at.node] != (uint32_t)NODE_VISITED) {
        f->runners[at.class_index].graph.waits[at.node] = (uint32_t)NODE_VISITED;
        at = find_absent(f, at);
    }
    put_chain(f, &b, at);
    orr_buf_byte(&b, 0);
    f->k->no_memory |= b.failed;
    orr__check_add(f->k, &f->k->classes[at.class_index], ORR_CHECK_COLLECTIVE_ORDER, at.node,
                   "the order of collectives is a deadlock: %s",
                   b.failed ? "" : (const char *)b.ptr);
    orr_buf_fini(&b);
}

void orr__check_order(orr__check *k, const orr__issues *s)
{
    bool is_topological = true;
    feed f = {.k = k, .s = s};
    for (uint32_t i = 0; i < k->class_count; i++) {
        if (k->classes[i].has_cycle)
            return; /* it comes to a stop by itself */
        is_topological &= k->classes[i].c->is_topological;
    }
    if (is_topological && can_march(k, s))
        return;
    k->no_memory |= !build_feed(&f);
    const bool is_stuck = !k->no_memory && !feed_all(&f) && !k->no_memory;
    if (is_stuck && !f.had_choice)
        report_stuck(&f);
    else if (is_stuck)
        orr__check_add_note(
            k, "the order of collectives is not compared: some ranks may run several equal ones "
               "at the same time");
    orr_free(f.ready);
}
