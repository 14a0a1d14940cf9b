/* SPDX-License-Identifier: Apache-2.0 */
/* check_collectives.c - do the ranks of a group run the same collectives?
 *
 * The members of a group are the ranks that name it; those of the nameless group are all ranks.
 * Ranks of a shape run the same collectives through a port (check_groups.c), so only ports are
 * compared.  First as multisets of (type, size), because two collectives without a dependency
 * between them may be issued in either order: a rank that differs from most of its group is
 * reported, with what it lacks or has in excess.  The order is checked only if all multisets agree.
 * Cost: linear in the entries of groups; two ports are compared once, in
 * however many groups they meet. */
#include "check_impl.h"

#include "base/memory/hash.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- ranks in lockstep ---- */

/* Ranks of a shape whose groups are equivalent, transitively. */
typedef struct chk_unit {
    uint32_t shape;
    uint32_t rank;  /* the lowest of them */
    size_t port_at; /* where its ports begin in meeting_of */
} chk_unit;

/* A *meeting* represents groups that are equal up to renaming: in each of them, the same units
 * through the same ports. */
typedef struct chk_party {
    uint32_t unit, port;
} chk_party;

typedef struct chk_units {
    chk_unit *all; /* by lowest rank */
    uint32_t count;
    uint32_t *of_rank;    /* ORR_NO_NODE: unreadable */
    uint32_t *meeting_of; /* by unit and port */
    uint32_t *place_of;   /* ... and which of its parties that is */
    uint32_t meeting_count;
    chk_party *parties;    /* by meeting, then unit, then port */
    size_t *meeting_first; /* those of meeting m: [meeting_first[m] .. meeting_first[m + 1]) */
} chk_units;

/* ==== which ranks run in lockstep?
 *
 * Ranks of a shape run the same, but each in its own groups.  If those groups have the same kinds
 * of members, whose groups again have the same kinds of members, and so on, then the ranks wait for
 * the same things and proceed together: they are a unit, and one of them represents all.  Found by
 * partition refinement: at first every shape is a unit; ranks whose groups differ in the units of
 * their members are split, until nothing changes.  On a regular machine that takes one round.  If
 * it takes many (groups that form long chains), every rank becomes a unit. Cost: linear in the
 * entries of groups, per round. */

enum { ROUNDS_MOST = 64 };

typedef struct splitting {
    chk_run *k;
    const chk_issues *s;
    uint32_t *color; /* by rank: its unit so far */
    uint32_t color_count;
    uint64_t *signature; /* by group */
} splitting;

/* ---- splitting ---- */

/* Sums of hashes: equal for groups with equal members.  Ranks that a body names are all present, in
 * whatever units. */
static void sign_groups(splitting *p)
{
    const chk_issues *s = p->s;
    for (uint32_t g = 0; g < orr_intern_count(s->groups); g++) {
        p->signature[g] = 0;
        for (size_t i = s->group_first[g]; i < s->group_first[g + 1]; i++) {
            const chk_entry *e = &s->entries[i];
            const uint32_t color = e->rank == ORR_NO_NODE ? ORR_NO_NODE : p->color[e->rank];
            const uint64_t one = ((uint64_t)e->port << 32 | color) + 0x9e3779b97f4a7c15u;
            p->signature[g] +=
                orr_hash_mix(orr_hash_mix(one, 0xa0761d6478bd642fu), 0xe7037ed1a0b428dbu);
        }
    }
}

static uint64_t sign_rank(const splitting *p, uint32_t rank)
{
    const chk_issues *s = p->s;
    const uint32_t shape = s->shapes.of_rank[rank];
    uint64_t h = p->color[rank] + 0x9e3779b97f4a7c15u;
    for (uint32_t i = s->port_first[shape]; i < s->port_first[shape + 1]; i++)
        if (s->ports[i].group == ORR_NO_NODE)
            h = orr_hash_mix(h ^ p->signature[chk_group_of(s, &s->ports[i], rank)],
                             0x8ebc6af09c88c6e3u);
    return h;
}

/* One round; returns the number of units, 0: out of memory. */
static uint32_t split_once(splitting *p)
{
    orr_map *numbers = orr_map_create(0);
    uint32_t count = 0;
    bool ok = numbers != NULL;
    sign_groups(p);
    for (uint32_t r = 0; ok && r < p->k->report->rank_count; r++) {
        if (p->s->shapes.of_rank[r] == ORR_NO_NODE)
            continue;
        const uint64_t h = sign_rank(p, r);
        const uint32_t known = orr_map_find(numbers, h, count);
        if (known == count)
            ok = orr_map_put(numbers, h, count++, NULL);
        p->color[r] = known;
    }
    orr_map_destroy(numbers);
    return ok ? count : 0;
}

static bool is_plain(const chk_issues *s, uint32_t shape)
{
    for (uint32_t i = s->port_first[shape]; i < s->port_first[shape + 1]; i++)
        if (s->ports[i].group == ORR_NO_NODE)
            return false;
    return true;
}

/* Every rank is a unit, except that ranks without own values stay together. */
static void split_all(splitting *p)
{
    const chk_shapes *shapes = &p->s->shapes;
    p->color_count = p->k->report->rank_count;
    for (uint32_t i = 0; i < shapes->count; i++) {
        const uint32_t *ranks = shapes->ranks + shapes->all[i].first;
        const bool is_one = is_plain(p->s, i);
        for (uint32_t j = 0; j < shapes->all[i].rank_count; j++)
            p->color[ranks[j]] = ranks[is_one ? 0 : j];
    }
}

static bool split(splitting *p)
{
    const chk_issues *s = p->s;
    const size_t ranks = (size_t)p->k->report->rank_count + 1;
    p->color = orr_arena_new(p->k->scratch, ranks, uint32_t);
    p->signature = orr_arena_new(p->k->scratch, orr_intern_count(s->groups), uint64_t);
    if (!p->color || !p->signature)
        return false;
    memcpy(p->color, s->shapes.of_rank, (ranks - 1) * sizeof *p->color);
    p->color_count = s->shapes.count;
    bool is_stable = !s->has_own;
    for (int round = 0; !is_stable && round < ROUNDS_MOST; round++) {
        const uint32_t count = split_once(p);
        if (count == 0)
            return false;
        is_stable = count == p->color_count;
        p->color_count = count;
    }
    if (!is_stable)
        split_all(p);
    sign_groups(p);
    return true;
}

/* ---- units ---- */

static bool number_units(const splitting *p, chk_units *out)
{
    const chk_issues *s = p->s;
    const uint32_t ranks = p->k->report->rank_count;
    uint32_t *unit_of = orr_arena_new(p->k->scratch, (size_t)p->color_count + 1, uint32_t);
    out->of_rank = orr_arena_new(p->k->scratch, (size_t)ranks + 1, uint32_t);
    out->all = orr_arena_new(p->k->scratch, (size_t)p->color_count + 1, chk_unit);
    if (!unit_of || !out->of_rank || !out->all)
        return false;
    memset(unit_of, 0xff, p->color_count * sizeof *unit_of);
    size_t ports = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t shape = s->shapes.of_rank[r];
        out->of_rank[r] = ORR_NO_NODE;
        if (shape == ORR_NO_NODE)
            continue;
        if (unit_of[p->color[r]] == ORR_NO_NODE) {
            unit_of[p->color[r]] = out->count;
            out->all[out->count++] = (chk_unit){.shape = shape, .rank = r, .port_at = ports};
            ports += s->port_first[shape + 1] - s->port_first[shape];
        }
        out->of_rank[r] = unit_of[p->color[r]];
    }
    out->all[out->count].port_at = ports; /* one past the last */
    return true;
}

static bool number_meetings(const splitting *p, chk_units *out)
{
    const chk_issues *s = p->s;
    orr_map *numbers = orr_map_create(0);
    bool ok = numbers != NULL;
    for (uint32_t u = 0; u < out->count; u++) {
        const chk_unit *unit = &out->all[u];
        const uint32_t first = s->port_first[unit->shape];
        for (uint32_t i = first; ok && i < s->port_first[unit->shape + 1]; i++) {
            const uint64_t h = p->signature[chk_group_of(s, &s->ports[i], unit->rank)];
            const uint32_t known = orr_map_find(numbers, h, out->meeting_count);
            if (known == out->meeting_count)
                ok = orr_map_put(numbers, h, out->meeting_count++, NULL);
            out->meeting_of[unit->port_at + i - first] = known;
        }
    }
    orr_map_destroy(numbers);
    return ok;
}

static void add_parties(const chk_issues *s, chk_units *out, size_t *at)
{
    for (uint32_t u = 0; u < out->count; u++) {
        const chk_unit *unit = &out->all[u];
        const uint32_t first = s->port_first[unit->shape];
        for (uint32_t i = first; i < s->port_first[unit->shape + 1]; i++) {
            const uint32_t m = out->meeting_of[unit->port_at + i - first];
            out->place_of[unit->port_at + i - first] = (uint32_t)(at[m] - out->meeting_first[m]);
            out->parties[at[m]++] = (chk_party){.unit = u, .port = i};
        }
    }
}

static bool list_parties(const splitting *p, chk_units *out)
{
    const size_t ports = out->all[out->count].port_at, meetings = out->meeting_count;
    size_t *at = orr_arena_new(p->k->scratch, meetings + 1, size_t);
    out->meeting_first = orr_arena_new(p->k->scratch, meetings + 1, size_t);
    if (!at || !out->meeting_first)
        return false;
    for (size_t i = 0; i < ports; i++)
        out->meeting_first[out->meeting_of[i] + 1]++;
    for (size_t m = 0; m < meetings; m++)
        out->meeting_first[m + 1] += out->meeting_first[m];
    memcpy(at, out->meeting_first, meetings * sizeof *at);
    add_parties(p->s, out, at);
    return true;
}

/* In k's scratch.  False: out of memory. */
static bool units_find(chk_run *k, const chk_issues *s, chk_units *out)
{
    splitting p = {.k = k, .s = s};
    *out = (chk_units){0};
    if (!split(&p) || !number_units(&p, out))
        return false;
    const size_t ports = out->all[out->count].port_at + 1;
    out->meeting_of = orr_arena_new(k->scratch, ports, uint32_t);
    out->place_of = orr_arena_new(k->scratch, ports, uint32_t);
    out->parties = orr_arena_new(k->scratch, ports, chk_party);
    return out->meeting_of && out->place_of && out->parties && number_meetings(&p, out) &&
           list_parties(&p, out);
}

/* ==== can all ranks run their collectives, or is there a deadlock?
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
 * Ranks of a unit are at the same place at the same time, and groups of a meeting
 * go on together: so one rank of each unit is run, and counts of nodes are those of the units.
 * Single ranks come up only in words: who in particular waits for whom. */

/* Limit on nodes kept in memory for units beyond the classes; 8 bytes each. */
enum { NODES_MOST = 1 << 25 };

/* The input of both passes. */
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

/* The index of a unit's port in units.meeting_of and units.place_of. */
static size_t port_place(const course *o, uint32_t unit, uint32_t port)
{
    const chk_unit *u = &o->units.all[unit];
    return u->port_at + port - o->s->port_first[u->shape];
}

/* ---- march ---- */

typedef struct march {
    const course *o;
    size_t *at;                /* by unit: the next of its issues */
    size_t *arrived;           /* by meeting: how many parties have arrived */
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

/* The unit advances to its next collective with others; false if it differs from the one they are
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
    /* A unit is queued only after it advanced, so the queue never holds one twice.  One with two
     * ports in a meeting cannot reach it twice: it stays there. */
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

enum { NODE_DONE = -1 }; /* replaces the number of parents left */

typedef struct runner {
    const orr__dag *graph; /* of the class; its waits are the initial counts */
    uint32_t *waits;
    uint32_t *next; /* by node: the next one in the same slot */
    uint32_t left;
} runner;

/* A key is a kind of collective of one meeting; it has one slot per party. */
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
    uint32_t *due; /* keys whose slots are all full */
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

/* The slot where the unit waits with an issue; ORR_NO_NODE: none. */
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

/* All have arrived: one collective of each party runs.  It is a choice if some party has more of
 * them waiting than another. */
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

/* True if all units finish. */
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

/* ---- the wait cycle ---- */

/* A rank blocked at a node. */
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

/* The collective that blocks a node: up the unfinished parents to one that waits for others. */
static uint32_t find_blocker(const feed *f, uint32_t unit, uint32_t node)
{
    const orr_columns *c = class_of(f->o, unit)->c;
    while (is_waiting_in(f, unit, c->data_first, c->data_dep, &node) ||
           is_waiting_in(f, unit, c->ctrl_first, c->ctrl_dep, &node))
        ;
    return node;
}

/* The first issue of a port with this key. */
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

/* The first member of the group that has not arrived, and what it waits in instead. */
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

/* Follow the waits until a rank repeats: from there on it is a cycle. */
static bool find_cycle(feed *f, stuck *at)
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
            break; /* a part of it is enough */
        if (is_new)
            *at = find_absent(f, *at);
    }
    const bool ok = seen != NULL;
    orr_map_destroy(seen);
    return ok;
}

static const char *type_name(const chk_issue *q)
{
    const char *name = orr_collective_name((uint32_t)q->type);
    return name ? name : "a collective of unknown type";
}

/* `ALL_REDUCE of 4,096 bytes` */
static const char *what_words(chk_run *k, const chk_issue *q)
{
    if (q->size == ORR_NO_VALUE || q->type == ORR_COLL_BARRIER)
        return type_name(q);
    const char *size = chk_count_words(k, (uint64_t)q->size);
    const char *text = orr_arena_print(k->arena, "%s of %s bytes", type_name(q), size);
    k->no_memory |= !text;
    return text ? text : "";
}

static const char *issue_words(chk_run *k, const chk_issues *s, const chk_issue *q, uint32_t rank)
{
    chk_class cls = k->classes[s->shapes.all[q->shape].class_index];
    cls.rank = rank;
    const char *node = chk_node_words(k, &cls, q->node);
    const char *text = orr_arena_print(k->arena, "%s (%s)", what_words(k, q), node);
    k->no_memory |= !text;
    return text ? text : "";
}

/* Text: `group "7"`, `ALL_REDUCE of 4,096 bytes (node 7 "name")`. */
static const char *group_words(chk_run *k, const chk_issues *s, uint32_t group)
{
    orr_buf b = {0};
    if (group == 0)
        return "the group of all ranks";
    orr_buf_text(&b, "group ");
    chk_put_name(&b, orr_intern_get(s->groups, group));
    char *text = b.failed ? NULL : orr_arena_text(k->arena, (orr_str){(char *)b.ptr, b.len});
    orr_buf_fini(&b);
    k->no_memory |= !text;
    return text ? text : "";
}

static void put_chain(feed *f, orr_buf *b, stuck start)
{
    const chk_issues *s = f->o->s;
    stuck at = start;
    for (int i = 0; i < CHAIN_SHOWN; i++) {
        const chk_issue *q = issue_of(f, f->o->units.of_rank[at.rank], at.node);
        const uint32_t group = chk_group_of(s, &s->ports[q->port], at.rank);
        orr_buf_print(b, "%srank %u is in %s of %s and waits for ", i ? "; " : "", at.rank,
                      issue_words(f->k, s, q, at.rank), group_words(f->k, s, group));
        at = find_absent(f, at);
        orr_buf_print(b, "rank %u", at.rank);
        if (at.rank == start.rank && at.node == start.node)
            return;
    }
    orr_buf_text(b, ", and so on");
}

/* One finding for all ranks together. */
static void report_stuck(feed *f)
{
    orr_buf b = {0};
    stuck at;
    if (!find_cycle(f, &at)) {
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

/* Units that are classes are in memory already; those beyond may be too many. */
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
                           "groups that all differ");
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

/* All groups agree on what they run.  Is there an order in which all ranks can run it? */
static void chk_order(chk_run *k, const chk_issues *s)
{
    bool is_topological = true;
    course o = {.k = k, .s = s};
    for (uint32_t i = 0; i < k->class_count; i++) {
        if (k->classes[i].rank_count == 0)
            continue;
        if (k->classes[i].has_cycle)
            return; /* a deadlock by itself */
        is_topological &= k->classes[i].c->is_topological;
    }
    if (!units_find(k, s, &o.units)) {
        k->no_memory = true;
        return;
    }
    if (is_topological && can_march(&o))
        return;
    feed_units(&o);
}

/* The ranks that are in a group through one port. */
typedef struct member {
    uint32_t port;
    uint32_t rank, rank_count; /* rank: the lowest */
} member;

typedef struct comparing {
    chk_run *k;
    const chk_issues *s;
    member *members; /* of the current group */
    const member **by_way;
    size_t count, room, way_room;
    struct difference *differences;
    size_t difference_count, difference_room;
    orr_map *known; /* two ports -> difference */
} comparing;

/* ---- one member compared with its group ---- */

static uint64_t loose_of(const chk_issues *s, const member *m)
{
    return s->ports[m->port].loose;
}

static int compare_ways(const void *a, const void *b, void *context)
{
    const member *const *x = a, *const *y = b;
    const uint64_t p = loose_of(context, *x), q = loose_of(context, *y);
    if (p != q)
        return p < q ? -1 : 1;
    return (*x)->rank < (*y)->rank ? -1 : 1;
}

/* What most ranks of a group do; in a tie, that of the lower rank. */
static const member *pick_usual(const comparing *c)
{
    const member *usual = NULL;
    uint64_t most = 0, ranks = 0;
    for (size_t i = 0; i < c->count; i++)
        c->by_way[i] = &c->members[i];
    qsort_r(c->by_way, c->count, sizeof *c->by_way, compare_ways, (void *)(uintptr_t)c->s);
    for (size_t i = 0, from = 0; i < c->count; i++) {
        ranks += c->by_way[i]->rank_count;
        if (i + 1 < c->count && loose_of(c->s, c->by_way[i + 1]) == loose_of(c->s, c->by_way[i]))
            continue;
        if (ranks > most || (ranks == most && c->by_way[from]->rank < usual->rank)) {
            most = ranks;
            usual = c->by_way[from];
        }
        from = i + 1;
        ranks = 0;
    }
    return usual;
}

/* What one side has and the other lacks. */
typedef struct surplus {
    const chk_issue *first; /* by place in the file */
    size_t count;
    const chk_issue *first_of[ORR_COLL_COUNT + 1]; /* by type; the last: all types without a name */
    size_t count_of[ORR_COLL_COUNT + 1];
} surplus;

static int type_slot(const chk_issue *q)
{
    return q->type < ORR_COLL_COUNT ? q->type : ORR_COLL_COUNT;
}

static void keep_first(const chk_issue **first, const chk_issue *q)
{
    if (!*first || q->node < (*first)->node)
        *first = q;
}

static void add_surplus(surplus *s, const chk_issue *q)
{
    keep_first(&s->first, q);
    keep_first(&s->first_of[type_slot(q)], q);
    s->count_of[type_slot(q)]++;
    s->count++;
}

static int compare_keys(const chk_issue *x, const chk_issue *y, bool is_strict)
{
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    const int64_t a = is_strict ? x->size : x->key_size, b = is_strict ? y->size : y->key_size;
    return a < b ? -1 : a > b;
}

static void subtract(const chk_issues *s,
                     const chk_port *a,
                     const chk_port *b,
                     bool is_strict,
                     surplus *more_a,
                     surplus *more_b)
{
    size_t i = a->first, j = b->first;
    const size_t end_a = a->first + a->count, end_b = b->first + b->count;
    while (i < end_a || j < end_b) {
        const int order = i == end_a   ? 1
                          : j == end_b ? -1
                                       : compare_keys(&s->sorted[i], &s->sorted[j], is_strict);
        if (order < 0)
            add_surplus(more_a, &s->sorted[i]);
        else if (order > 0)
            add_surplus(more_b, &s->sorted[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

typedef struct difference {
    surplus mine, usual;
} difference;

/* Cached, or computed now. */
static const difference *find_difference(comparing *c, uint32_t mine, uint32_t usual)
{
    const chk_port *a = &c->s->ports[mine], *b = &c->s->ports[usual];
    const uint64_t pair = (uint64_t)mine << 32 | usual;
    const uint32_t known = orr_map_find(c->known, pair, ORR_NO_NODE);
    if (known != ORR_NO_NODE)
        return &c->differences[known];
    if (!orr_grow(&c->differences, &c->difference_room, c->difference_count + 1) ||
        !orr_map_put(c->known, pair, (uint32_t)c->difference_count, NULL)) {
        c->k->no_memory = true;
        return NULL;
    }
    difference *d = &c->differences[c->difference_count++];
    *d = (difference){0};
    subtract(c->s, a, b, a->loose == b->loose, &d->mine, &d->usual);
    return d;
}

typedef struct comparison {
    chk_run *k;
    const chk_issues *s;
    const difference *d;
    chk_class mine; /* with the ranks that differ */
    const member *my_member, *usual_member;
    uint32_t group;
} comparison;

static void report_count(const comparison *m)
{
    chk_run *k = m->k;
    const bool has_more = m->d->mine.first != NULL;
    const chk_issue *q = has_more ? m->d->mine.first : m->d->usual.first;
    const size_t here = m->s->ports[m->my_member->port].count;
    if (!chk_is_kept(k, ORR_CHECK_COLLECTIVE_COUNT)) {
        chk_add(k, &m->mine, ORR_CHECK_COLLECTIVE_COUNT, ORR_NO_NODE, "%s", "");
        return;
    }
    chk_add(k, &m->mine, ORR_CHECK_COLLECTIVE_COUNT, has_more ? q->node : ORR_NO_NODE,
            "%s: %s collective%s here, %s on rank %u; %s has no counterpart %s",
            group_words(k, m->s, m->group), chk_count_words(k, here), here == 1 ? "" : "s",
            chk_count_words(k, m->s->ports[m->usual_member->port].count), m->usual_member->rank,
            issue_words(k, m->s, q, has_more ? m->my_member->rank : m->usual_member->rank),
            has_more ? "there" : "here");
}

static void report_differing(const comparison *m, orr_check_kind kind)
{
    chk_run *k = m->k;
    const chk_issue *a = m->d->mine.first;
    const chk_issue *b = m->d->usual.first_of[type_slot(a)];
    if (!b)
        b = m->d->usual.first;
    const uint32_t there = m->usual_member->rank;
    const char *more = "";
    if (chk_is_kept(k, kind) && m->d->mine.count > 1)
        more = orr_arena_print(k->arena, ", and %s more", chk_count_words(k, m->d->mine.count - 1));
    chk_add(k, &m->mine, kind, a->node, "%s: %s here, where rank %u has %s%s",
            chk_is_kept(k, kind) ? group_words(k, m->s, m->group) : "",
            chk_is_kept(k, kind) ? what_words(k, a) : "", there,
            chk_is_kept(k, kind) ? issue_words(k, m->s, b, there) : "", more ? more : "");
}

static void compare_member(comparing *c, const member *m, const member *usual, uint32_t group)
{
    const chk_port *p = &c->s->ports[m->port], *q = &c->s->ports[usual->port];
    if (p->strict == q->strict && p->loose == q->loose)
        return;
    comparison x = {.k = c->k,
                    .s = c->s,
                    .d = find_difference(c, m->port, usual->port),
                    .mine = c->k->classes[c->s->shapes.all[p->shape].class_index],
                    .my_member = m,
                    .usual_member = usual,
                    .group = group};
    x.mine.rank = m->rank;
    x.mine.rank_count = m->rank_count;
    if (!x.d)
        return;
    if (p->count != q->count)
        report_count(&x);
    else if (p->loose == q->loose)
        report_differing(&x, ORR_CHECK_UNEVEN_SIZE);
    else if (memcmp(x.d->mine.count_of, x.d->usual.count_of, sizeof x.d->mine.count_of) == 0)
        report_differing(&x, ORR_CHECK_COLLECTIVE_SIZE);
    else
        report_differing(&x, ORR_CHECK_COLLECTIVE_TYPE);
}

/* ---- all groups ---- */

static bool is_agreed(const chk_issues *s, uint32_t group)
{
    const size_t first = s->group_first[group], end = s->group_first[group + 1];
    for (size_t i = first + 1; i < end; i++) {
        const chk_port *p = &s->ports[s->entries[i].port], *q = &s->ports[s->entries[first].port];
        if (p->strict != q->strict || p->loose != q->loose)
            return false;
    }
    return true;
}

static bool list_members(comparing *c, uint32_t group)
{
    const chk_issues *s = c->s;
    const size_t first = s->group_first[group], end = s->group_first[group + 1];
    if (!orr_grow(&c->members, &c->room, end - first) ||
        !orr_grow(&c->by_way, &c->way_room, end - first))
        return !(c->k->no_memory = true);
    c->count = 0;
    for (size_t i = first; i < end; i++) {
        const chk_entry *e = &s->entries[i];
        const uint32_t *ranks;
        const uint32_t count = chk_entry_ranks(s, e, &ranks);
        if (c->count == 0 || c->members[c->count - 1].port != e->port)
            c->members[c->count++] = (member){.port = e->port, .rank = ranks[0]};
        c->members[c->count - 1].rank_count += count;
    }
    return true;
}

static void compare_group(comparing *c, uint32_t group)
{
    if (is_agreed(c->s, group) || !list_members(c, group))
        return;
    const member *usual = pick_usual(c);
    for (size_t i = 0; i < c->count && !c->k->no_memory; i++)
        compare_member(c, &c->members[i], usual, group);
}

static void compare_groups(chk_run *k, const chk_issues *s)
{
    comparing c = {.k = k, .s = s, .known = orr_map_create(0)};
    k->no_memory |= !c.known;
    for (uint32_t group = 0; group < orr_intern_count(s->groups) && !k->no_memory; group++)
        compare_group(&c, group);
    orr_map_destroy(c.known);
    orr_free(c.members);
    orr_free(c.by_way);
    orr_free(c.differences);
}

static bool has_mismatch(const chk_run *k)
{
    const uint64_t *n = k->report->count;
    return n[ORR_CHECK_COLLECTIVE_COUNT] || n[ORR_CHECK_COLLECTIVE_TYPE] ||
           n[ORR_CHECK_COLLECTIVE_SIZE];
}

/* Ranks of a class that have the same values in all its slots are equal. */
static bool has_equal_values(const chk_run *k, const chk_class *cls)
{
    const size_t slots = cls->holes ? cls->holes->slot_count : 0;
    for (uint32_t i = 1; i < cls->rank_count; i++)
        for (uint32_t at = 0; at < slots; at++)
            if (chk_value(k, cls->rank, at) != chk_value(k, cls->ranks[i], at))
                return false;
    return true;
}

static bool are_all_equal(const chk_run *k)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < k->class_count; i++)
        if (k->classes[i].rank_count && (used++ || !has_equal_values(k, &k->classes[i])))
            return false;
    return true;
}

void chk_collectives(chk_run *k)
{
    chk_issues s = {0};
    if (k->no_memory || are_all_equal(k))
        return; /* equal ranks run equal collectives */
    chk_issues_gather(k, &s);
    if (!k->no_memory)
        compare_groups(k, &s);
    if (s.has_partial)
        chk_add_note(
            k, "collectives over some of the network's dimensions (involved_dim) are not compared "
               "across ranks: the traces do not say which ranks they join");
    if (!k->no_memory && !has_mismatch(k))
        chk_order(k, &s);
    chk_issues_fini(&s);
}
