/* SPDX-License-Identifier: Apache-2.0 */
/* check_order.c - can all ranks run their collectives, or does each wait for the other?
 *
 * A collective runs when every member of its group has reached it.  Two passes:
 *
 *     march   every rank runs its collectives in file order, which its dependencies allow.  If all get to the
 *             end, an order that suits everybody exists.  O(collectives); nearly always enough.
 *     feed    every rank runs its whole graph; whatever is ready may run.  Collectives of a group that are
 *             equal in type and size are interchangeable.  If this comes to a stop, nothing else could have
 *             gone on either, unless there was a choice between interchangeable ones; then nothing is
 *             claimed.  O(nodes + dependencies).
 *
 * Ranks of a unit are at the same place at the same time (check_units.c), and groups of a meeting
 * go on together: so one rank of each unit is run, and counts of nodes are those of the
 * units.  Single ranks come up only in words: who in particular waits for whom. */
#include "check_order.h"

/* Places of nodes that may be kept in memory for units beyond the classes; 8 bytes each. */
enum { NODES_MOST = 1 << 25 };

/* What both passes run. */
typedef struct course {
    chk_run *k;
    const chk_issues *s;
    chk_units units;
} course;

static size_t party_count(const course *o, uint32_t meeting)
{
    return o->units.meeting_first[meeting + 1] - o->units.meeting_first[meeting];
}

static bool is_same_key(const chk_issue *x, const chk_issue *y)
{
    return x->type == y->type && x->key_size == y->key_size;
}

static const chk_class *class_of(const course *o, uint32_t unit)
{
    return &o->k->classes[o->s->shapes.all[o->units.all[unit].shape].class_index];
}

/* Where the unit's part in what a port meets stands: in units.meeting_of and units.place_of. */
static size_t port_place(const course *o, uint32_t unit, uint32_t port)
{
    const chk_unit *u = &o->units.all[unit];
    return u->port_at + port - o->s->port_first[u->shape];
}

/* ---- march ---- */

typedef struct march {
    const course *o;
    size_t *at;                /* by unit: the next of its issues */
    size_t *arrived;           /* by meeting: how many parties are there */
    const chk_issue **current; /* by meeting: what the first of them is at */
    uint32_t *queue;           /* units that have moved */
    size_t queued;
} march;

static size_t end_of(const march *m, uint32_t unit)
{
    return m->o->s->shape_first[m->o->units.all[unit].shape + 1];
}

static uint32_t next_meeting(const march *m, uint32_t unit)
{
    return m->o->units.meeting_of[port_place(m->o, unit, m->o->s->all[m->at[unit]].port)];
}

/* The unit moves on to its next collective with others; false when that cannot be the one they are
 * at. */
static bool arrive(march *m, uint32_t unit)
{
    const chk_units *units = &m->o->units;
    while (m->at[unit] < end_of(m, unit) && party_count(m->o, next_meeting(m, unit)) < 2)
        m->at[unit]++;
    if (m->at[unit] == end_of(m, unit))
        return true;
    const chk_issue *q = &m->o->s->all[m->at[unit]];
    const uint32_t meeting = next_meeting(m, unit);
    if (m->arrived[meeting] == 0)
        m->current[meeting] = q;
    else if (!is_same_key(m->current[meeting], q))
        return false;
    if (++m->arrived[meeting] < party_count(m->o, meeting))
        return true;
    m->arrived[meeting] = 0;
    for (size_t i = units->meeting_first[meeting]; i < units->meeting_first[meeting + 1]; i++) {
        m->at[units->parties[i].unit]++;
        m->queue[m->queued++] = units->parties[i].unit;
    }
    return true;
}

static bool march_all(march *m)
{
    const uint32_t units = m->o->units.count;
    for (uint32_t i = 0; i < units; i++)
        m->queue[m->queued++] = i;
    /* A unit is queued only after it has moved, so the queue never holds one twice.  One with two
     * ports in a meeting cannot come to it twice: it stays there. */
    while (m->queued)
        if (!arrive(m, m->queue[--m->queued]))
            return false;
    for (uint32_t i = 0; i < units; i++)
        if (m->at[i] != end_of(m, i))
            return false;
    return true;
}

static bool can_march(const course *o)
{
    orr_arena *a = o->k->scratch;
    const size_t units = o->units.count, meetings = o->units.meeting_count;
    march m = {.o = o};
    m.at = orr_arena_new(a, units + 1, size_t);
    m.arrived = orr_arena_new(a, meetings + 1, size_t);
    m.current = orr_arena_new(a, meetings + 1, const chk_issue *);
    m.queue = orr_arena_new(a, units + 1, uint32_t);
    if (!m.at || !m.arrived || !m.current || !m.queue) {
        o->k->no_memory = true;
        return true;
    }
    for (uint32_t i = 0; i < units; i++)
        m.at[i] = o->s->shape_first[o->units.all[i].shape];
    return march_all(&m);
}

/* ---- feed ---- */

enum { NODE_DONE = -1 }; /* in place of how many a node waits for */

typedef struct runner {
    const orr__dag *graph; /* of the class; its waits are where all begin */
    uint32_t *waits;
    uint32_t *next; /* by node: behind it in the same slot */
    uint32_t left;
} runner;

/* A key is a kind of collective of one meeting; it has a slot for each party. */
typedef struct key {
    uint32_t first_slot, slots;
    uint32_t full; /* slots that are not empty */
} key;

typedef struct slot {
    uint32_t key, unit;
    uint32_t head, tail, count; /* of nodes that wait here */
} slot;

typedef struct feed {
    const course *o;
    chk_run *k;
    orr__dag *graphs;    /* by class */
    uint32_t **issue_at; /* by shape, then node: 1 + place in issues.sorted; 0: runs by itself */
    uint32_t *key_of;    /* by place in issues.sorted: which key of its port, from 0 */
    uint32_t *first_key; /* by meeting */
    runner *runners;     /* by unit */
    key *keys;
    slot *slots;
    uint32_t key_count, slot_count;
    uint64_t *ready; /* unit << 32 | node */
    size_t ready_count, ready_room;
    uint32_t *due; /* keys all of whose slots are full */
    size_t due_count;
    bool had_choice;
} feed;

static void push_ready(feed *f, uint32_t unit, uint32_t node)
{
    if (!orr_grow(&f->ready, &f->ready_room, f->ready_count + 1)) {
        f->k->no_memory = true;
        return;
    }
    f->ready[f->ready_count++] = (uint64_t)unit << 32 | node;
}

static void complete(feed *f, uint32_t unit, uint32_t node)
{
    runner *r = &f->runners[unit];
    r->waits[node] = (uint32_t)NODE_DONE;
    r->left--;
    for (uint32_t e = r->graph->first[node]; e < r->graph->first[node + 1]; e++)
        if (--r->waits[r->graph->child[e]] == 0)
            push_ready(f, unit, r->graph->child[e]);
}

static const chk_issue *issue_of(const feed *f, uint32_t unit, uint32_t node)
{
    const uint32_t at = f->issue_at[f->o->units.all[unit].shape][node];
    return at ? &f->o->s->sorted[at - 1] : NULL;
}

/* Where the unit waits with an issue for others; ORR_NO_NODE: nowhere. */
static uint32_t slot_of(const feed *f, uint32_t unit, const chk_issue *q)
{
    const chk_units *units = &f->o->units;
    const size_t place = port_place(f->o, unit, q->port);
    const uint32_t meeting = units->meeting_of[place];
    if (party_count(f->o, meeting) < 2)
        return ORR_NO_NODE;
    const key *k = &f->keys[f->first_key[meeting] + f->key_of[q - f->o->s->sorted]];
    return k->first_slot + units->place_of[place];
}

static void wait_in_slot(feed *f, uint32_t at, uint32_t node)
{
    slot *s = &f->slots[at];
    key *k = &f->keys[s->key];
    if (s->count++ == 0) {
        s->head = node;
        if (++k->full == k->slots)
            f->due[f->due_count++] = s->key;
    } else {
        f->runners[s->unit].next[s->tail] = node;
    }
    s->tail = node;
}

static void run_ready(feed *f)
{
    while (f->ready_count) {
        const uint64_t one = f->ready[--f->ready_count];
        const uint32_t unit = (uint32_t)(one >> 32), node = (uint32_t)one;
        const chk_issue *q = issue_of(f, unit, node);
        const uint32_t at = q ? slot_of(f, unit, q) : ORR_NO_NODE;
        if (at == ORR_NO_NODE)
            complete(f, unit, node);
        else
            wait_in_slot(f, at, node);
    }
}

/* Everybody is there: one collective of each party runs.  Which one is a choice when some party has
 * more of them waiting than another. */
static void run_key(feed *f, uint32_t index)
{
    key *k = &f->keys[index];
    const uint32_t usual = f->slots[k->first_slot].count;
    for (uint32_t i = 0; i < k->slots; i++) {
        slot *s = &f->slots[k->first_slot + i];
        const uint32_t node = s->head;
        f->had_choice |= s->count != usual;
        s->head = f->runners[s->unit].next[node];
        if (--s->count == 0)
            k->full--;
        complete(f, s->unit, node);
    }
    if (k->full == k->slots)
        f->due[f->due_count++] = index;
}

/* True when all have come to the end. */
static bool feed_all(feed *f)
{
    const uint32_t units = f->o->units.count;
    for (uint32_t i = 0; i < units; i++)
        for (uint32_t node = 0; node < f->runners[i].graph->count; node++)
            if (f->runners[i].waits[node] == 0)
                push_ready(f, i, node);
    run_ready(f);
    while (f->due_count && !f->k->no_memory) {
        run_key(f, f->due[--f->due_count]);
        run_ready(f);
    }
    for (uint32_t i = 0; i < units; i++)
        if (f->runners[i].left)
            return false;
    return true;
}

/* ---- building the feed ---- */

static bool build_runner(feed *f, uint32_t unit)
{
    runner *r = &f->runners[unit];
    orr_arena *a = f->k->scratch;
    const chk_class *cls = class_of(f->o, unit);
    orr__dag *graph = &f->graphs[cls->index];
    const size_t n = cls->c->count;
    if (!graph->first && !orr__dag_build(cls->c, CHK_DAG, a, graph))
        return false;
    r->graph = graph;
    r->waits = orr_arena_new(a, n + 1, uint32_t);
    r->next = orr_arena_new(a, n + 1, uint32_t);
    r->left = (uint32_t)n;
    if (!r->waits || !r->next)
        return false;
    memcpy(r->waits, graph->waits, n * sizeof *r->waits);
    return true;
}

static bool place_issues(feed *f)
{
    const chk_issues *s = f->o->s;
    f->issue_at = orr_arena_new(f->k->scratch, (size_t)s->shapes.count + 1, uint32_t *);
    f->key_of = orr_arena_new(f->k->scratch, s->count + 1, uint32_t);
    if (!f->issue_at || !f->key_of || s->count >= UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < s->shapes.count; i++) {
        const size_t n = f->k->classes[s->shapes.all[i].class_index].c->count;
        if (!(f->issue_at[i] = orr_arena_new(f->k->scratch, n + 1, uint32_t)))
            return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        const chk_issue *q = &s->sorted[i];
        const bool is_first = i == s->ports[q->port].first;
        f->issue_at[q->shape][q->node] = (uint32_t)i + 1;
        f->key_of[i] = is_first ? 0 : f->key_of[i - 1] + !is_same_key(q, q - 1);
    }
    return true;
}

/* All parties of a meeting have the same keys, equally often, in the same order. */
static uint32_t keys_of(const feed *f, uint32_t meeting)
{
    const chk_party *first = &f->o->units.parties[f->o->units.meeting_first[meeting]];
    const chk_port *p = &f->o->s->ports[first->port];
    return p->count == 0 || party_count(f->o, meeting) < 2 ? 0
                                                           : f->key_of[p->first + p->count - 1] + 1;
}

static void build_meeting(feed *f, uint32_t meeting)
{
    const chk_party *parties = f->o->units.parties + f->o->units.meeting_first[meeting];
    const uint32_t count = (uint32_t)party_count(f->o, meeting), keys = keys_of(f, meeting);
    f->first_key[meeting] = f->key_count;
    for (uint32_t i = 0; i < keys; i++) {
        f->keys[f->key_count] = (key){.first_slot = f->slot_count, .slots = count};
        for (uint32_t j = 0; j < count; j++)
            f->slots[f->slot_count++] = (slot){.key = f->key_count, .unit = parties[j].unit};
        f->key_count++;
    }
}

static bool build_meetings(feed *f)
{
    orr_arena *a = f->k->scratch;
    const uint32_t meetings = f->o->units.meeting_count;
    size_t keys = 1, slots = 1;
    for (uint32_t i = 0; i < meetings; i++) {
        keys += keys_of(f, i);
        slots += keys_of(f, i) * party_count(f->o, i);
    }
    f->first_key = orr_arena_new(a, (size_t)meetings + 1, uint32_t);
    f->keys = orr_arena_new(a, keys, key);
    f->due = orr_arena_new(a, keys, uint32_t);
    f->slots = orr_arena_new(a, slots, slot);
    if (!f->first_key || !f->keys || !f->due || !f->slots || slots > UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < meetings; i++)
        build_meeting(f, i);
    return true;
}

static bool build_feed(feed *f)
{
    orr_arena *a = f->k->scratch;
    f->graphs = orr_arena_new(a, (size_t)f->k->class_count + 1, orr__dag);
    f->runners = orr_arena_new(a, (size_t)f->o->units.count + 1, runner);
    if (!f->graphs || !f->runners || !place_issues(f))
        return false;
    for (uint32_t i = 0; i < f->o->units.count; i++)
        if (!build_runner(f, i))
            return false;
    return build_meetings(f);
}

/* ---- who waits for whom ---- */

/* A rank that stands at a node. */
typedef struct stuck {
    uint32_t rank, node;
} stuck;

enum { STEPS_MOST = 1 << 14, CHAIN_SHOWN = 8 };

static bool is_done(const feed *f, uint32_t unit, uint32_t node)
{
    return f->runners[unit].waits[node] == (uint32_t)NODE_DONE;
}

static bool is_waiting_in(
    const feed *f, uint32_t unit, const uint32_t *first, const uint32_t *dep, uint32_t *node)
{
    for (uint32_t e = first ? first[*node] : 0; first && e < first[*node + 1]; e++)
        if (dep[e] != ORR_NO_NODE && dep[e] != *node && !is_done(f, unit, dep[e])) {
            *node = dep[e];
            return true;
        }
    return false;
}

/* The collective that keeps a node from running: up the unfinished parents to one that waits for
 * others. */
static uint32_t find_blocker(const feed *f, uint32_t unit, uint32_t node)
{
    const orr_columns *c = class_of(f->o, unit)->c;
    while (is_waiting_in(f, unit, c->data_first, c->data_dep, &node) ||
           is_waiting_in(f, unit, c->ctrl_first, c->ctrl_dep, &node))
        ;
    return node;
}

/* The first issue of a port that is of this key. */
static const chk_issue *first_of_key(const feed *f, uint32_t port, uint32_t number)
{
    const chk_issues *s = f->o->s;
    size_t i = s->ports[port].first;
    while (f->key_of[i] != number)
        i++;
    return &s->sorted[i];
}

/* The lowest rank of this entry that does not wait with a collective of that key. */
static uint32_t lowest_absent(const feed *f, const chk_entry *e, uint32_t number)
{
    const chk_issue *q = first_of_key(f, e->port, number);
    const uint32_t *ranks;
    const uint32_t count = chk_entry_ranks(f->o->s, e, &ranks);
    for (uint32_t i = 0; i < count; i++)
        if (f->slots[slot_of(f, f->o->units.of_rank[ranks[i]], q)].count == 0)
            return ranks[i];
    return ORR_NO_NODE;
}

/* The first member of the group that is not there yet, and what it waits in instead. */
static stuck find_absent(const feed *f, stuck at)
{
    const chk_issues *s = f->o->s;
    const chk_issue *q = issue_of(f, f->o->units.of_rank[at.rank], at.node);
    const uint32_t number = f->key_of[q - s->sorted];
    const uint32_t group = chk_group_of(s, &s->ports[q->port], at.rank);
    const chk_entry *who = NULL;
    uint32_t rank = ORR_NO_NODE;
    for (size_t i = s->group_first[group]; i < s->group_first[group + 1]; i++) {
        const uint32_t one = lowest_absent(f, &s->entries[i], number);
        if (one < rank) {
            rank = one;
            who = &s->entries[i];
        }
    }
    const uint32_t unit = f->o->units.of_rank[rank];
    for (q = first_of_key(f, who->port, number); is_done(f, unit, q->node);)
        q++;
    return (stuck){rank, find_blocker(f, unit, q->node)};
}

static stuck find_first_stuck(const feed *f)
{
    uint32_t unit = 0, node = 0;
    while (f->runners[unit].left == 0)
        unit++;
    while (is_done(f, unit, node))
        node++;
    return (stuck){f->o->units.all[unit].rank, find_blocker(f, unit, node)};
}

/* Follow who waits for whom until somebody comes up again: from there on it is a circle. */
static bool find_circle(feed *f, stuck *at)
{
    orr_map *seen = orr_map_create(0);
    bool is_new = seen != NULL;
    *at = find_first_stuck(f);
    for (uint32_t steps = 0; is_new; steps++) {
        if (!orr_map_put(seen, (uint64_t)at->rank << 32 | at->node, 1, &is_new)) {
            orr_map_destroy(seen);
            return false;
        }
        if (steps == STEPS_MOST)
            break; /* a part of it will do */
        if (is_new)
            *at = find_absent(f, *at);
    }
    const bool ok = seen != NULL;
    orr_map_destroy(seen);
    return ok;
}

static void put_chain(feed *f, orr_buf *b, stuck start)
{
    const chk_issues *s = f->o->s;
    stuck at = start;
    for (int i = 0; i < CHAIN_SHOWN; i++) {
        const chk_issue *q = issue_of(f, f->o->units.of_rank[at.rank], at.node);
        const uint32_t group = chk_group_of(s, &s->ports[q->port], at.rank);
        orr_buf_print(b, "%srank %u is in %s of %s and waits for ", i ? "; " : "", at.rank,
                      chk_issue_words(f->k, s, q, at.rank), chk_group_words(f->k, s, group));
        at = find_absent(f, at);
        orr_buf_print(b, "rank %u", at.rank);
        if (at.rank == start.rank && at.node == start.node)
            return;
    }
    orr_buf_text(b, ", and so on");
}

/* One finding, of all ranks together. */
static void report_stuck(feed *f)
{
    orr_buf b = {0};
    stuck at;
    if (!find_circle(f, &at)) {
        f->k->no_memory = true;
        return;
    }
    put_chain(f, &b, at);
    orr_buf_byte(&b, 0);
    f->k->no_memory |= b.failed;
    const uint32_t unit = f->o->units.of_rank[at.rank];
    chk_class cls = *class_of(f->o, unit);
    cls.rank = at.rank;
    cls.rank_count = cls.holes ? 1 : cls.rank_count;
    chk_add(f->k, &cls, ORR_CHECK_COLLECTIVE_ORDER, at.node,
            "the order of collectives is a deadlock: %s", b.failed ? "" : (const char *)b.ptr);
    orr_buf_fini(&b);
}

/* ---- both ---- */

/* Units that are classes cost what is in memory already; those beyond may be too many. */
static bool is_too_large(const course *o)
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < o->units.count; i++)
        nodes += class_of(o, i)->c->count;
    return o->units.count > o->k->class_count && nodes > NODES_MOST;
}

static void feed_units(const course *o)
{
    feed f = {.o = o, .k = o->k};
    if (is_too_large(o)) {
        chk_add_note(o->k, "the order of collectives is not compared: too many ranks are in "
                           "groups of which no two are alike");
        return;
    }
    o->k->no_memory |= !build_feed(&f);
    const bool is_stuck = !o->k->no_memory && !feed_all(&f) && !o->k->no_memory;
    if (is_stuck && !f.had_choice)
        report_stuck(&f);
    else if (is_stuck)
        chk_add_note(
            o->k, "the order of collectives is not compared: some ranks may run several equal ones "
                  "at the same time");
    orr_free(f.ready);
}

void chk_order(chk_run *k, const chk_issues *s)
{
    bool is_topological = true;
    course o = {.k = k, .s = s};
    for (uint32_t i = 0; i < k->class_count; i++) {
        if (k->classes[i].rank_count == 0)
            continue;
        if (k->classes[i].has_cycle)
            return; /* it comes to a stop by itself */
        is_topological &= k->classes[i].c->is_topological;
    }
    if (!chk_units_find(k, s, &o.units)) {
        k->no_memory = true;
        return;
    }
    if (is_topological && can_march(&o))
        return;
    feed_units(&o);
}
