/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - ranks on several threads (docs/design/threads.md).
 *
 *     divide     ranks by whom they talk to, so that few messages go between parts
 *     advance    a part: until it must wait for another
 *     meet       now and then all parts stop at one time, and the trails of their events begin anew
 *     gather     figures of the parts are those of the whole
 *
 * A part says up to when all that it does has been done, its *horizon*; what it will still send
 * arrives a message's least delay after that.  A part with receives of which it does not know the
 * message goes no further than what may still arrive; any other goes on.  Whatever goes wrong, or
 * does not finish, is run again by one thread, so that texts are the same. */
#include "parts.h"

#include "fold/fold.h"
#include "match.h"
#include "watch.h"

#include "base/threads/crew.h"
#include "base/threads/pool.h"
#include "base/ticks.h"
#include "models/network/net_table.h"
#include "models/network/net_time.h"
#include "trace/set_impl.h"

#include <pthread.h>
#include <time.h>

enum {
    MOST_PARTS = CLK_CLOCKS,
    MOST_TRAILS = 1 << 19, /* of a part, before trails begin anew */
    TURN = 256,            /* ticks before a part looks up */
    LOOKS = 50,            /* before a thread that waits goes to sleep */
    NAP_NS = 100000,       /* at most, unless it is woken before */
    MOST_PAIRS = 1 << 24,  /* of ranks, that are looked at for the least delay */
    /* One atomic number has both counts, parts with events above and notes below, so that a single
     * load tells whether anything is left at all. */
    IN_FLIGHT_BITS = 48
};

/* A meeting in steps, each of which waits for all parts: they stop; run up to the latest of their
 * times; list what is pending; and take the numbers that the first of them gives out. */
typedef enum part_state { RUNS, STOPS, CATCHES_UP, LISTS, NUMBERS } part_state;

typedef struct waiting {
    uint64_t at;
    clk_trail trail;
    clk_call call;
    uint32_t next; /* free */
} waiting;

typedef struct part {
    run_part base;
    orr_sim sim;
    part_state state;
    uint64_t meetings; /* that it was in */
    uint64_t bound;    /* from then on something may arrive */
    bool is_active;    /* has events */
    part_note *notes;  /* being read */
    size_t note_room;
    /* when it was sent -> a message that was sent at a time to which this part has yet to come */
    orr_heap ahead;
    struct waiting *waiting;
    size_t waiting_count, waiting_room;
    uint32_t free_waiting;
    uint64_t unsaid;          /* notes that were read since it last said what is next */
    char apart1[64];          /* from what other threads write */
    _Atomic uint64_t horizon; /* nothing earlier will be sent */
    _Atomic uint64_t next;    /* its first event, as far as it knows of notes */
    _Atomic uint64_t stopped_at;
    _Atomic uint64_t events;
    char apart2[64];      /* from what other threads write */
    pthread_mutex_t lock; /* of what has come */
    part_note *inbox;
    size_t inbox_count, inbox_room;
    _Atomic uint32_t has_mail;
} part;

typedef struct run_parts {
    orr_sim *s; /* the whole: what parts share, and what they are gathered into */
    part *list; /* by index */
    uint32_t count;
    uint8_t *part_of;     /* by rank */
    uint32_t *group_here; /* by group and part: members */
    clk_clock *clocks[MOST_PARTS];
    uint64_t delay; /* the least of a message between parts */
    size_t most_trails;
    orr_crew *crew;
    pthread_mutex_t nap_lock; /* of threads that wait for long */
    pthread_cond_t awake;
    bool has_nap_lock, has_awake;
    char apart3[64];         /* from what other threads write */
    _Atomic uint64_t wanted; /* meetings */
    _Atomic uint64_t stopped, caught_up, listed, numbered;
    char apart4[64];             /* from what other threads write */
    _Atomic uint64_t sent, read; /* notes, ever */
    char apart5[64];             /* from what other threads write */
    _Atomic uint64_t state;      /* parts that have events, and notes on their way */
    _Atomic bool is_over;        /* nothing is left to do */
    _Atomic bool has_failed, is_stopped;
    char apart6[64];          /* from what other threads write */
    _Atomic uint64_t changes; /* turns in which a thread has done something */
    _Atomic uint32_t asleep;  /* threads */
} run_parts;

/* ---- who talks to whom ---- */

/* Nodes of a trace that do something with the same others. */
typedef struct way {
    uint32_t place;
    uint64_t messages; /* of a rank */
    uint8_t type;
} way;

typedef struct ways {
    way *list;
    size_t count, room;
} ways;

static uint64_t way_key(const orr_sim *s, uint32_t k, uint32_t place)
{
    const work_graph *g = &s->graphs[k];
    const orr__class *c = &s->set->classes[k];
    const orr_columns *col = &g->t->columns;
    const uint32_t node = g->node[place];
    const uint8_t type = col->type[node];
    const orr_hole_field field = type == ORR_NODE_COMM_COLL   ? ORR_HOLE_PG_NAME
                                 : type == ORR_NODE_COMM_SEND ? ORR_HOLE_COMM_DST
                                                              : ORR_HOLE_COMM_SRC;
    /* A hole's value is the rank's own; which slot it is in is the same for all ranks of the
     * class. */
    const uint32_t slot = c->slot[field] ? c->slot[field][node] : 0;
    const int64_t *peers = type == ORR_NODE_COMM_SEND ? col->comm_dst : col->comm_src;
    uint64_t value = 0;
    if (slot)
        value = UINT64_C(1) << 40 | slot;
    else if (type == ORR_NODE_COMM_COLL)
        value = col->pg_name ? col->pg_name[node] : ORR_NO_NAME;
    else if (peers)
        value = (uint64_t)peers[node];
    return value << 8 | type;
}

static bool find_ways(const orr_sim *s, uint32_t k, ways *out)
{
    const work_graph *g = &s->graphs[k];
    orr_map *seen = orr_map_create(0);
    bool ok = seen != NULL;
    for (uint32_t p = 0; ok && g->t && p < g->count; p++) {
        const uint8_t type = g->t->columns.type[g->node[p]];
        if (type < ORR_NODE_COMM_SEND || type > ORR_NODE_COMM_COLL)
            continue;
        const uint64_t key = way_key(s, k, p);
        uint32_t at = orr_map_find(seen, key, RUN_NONE);
        if (at == RUN_NONE) {
            at = (uint32_t)out->count;
            ok = orr_grow(&out->list, &out->room, out->count + 1) &&
                 orr_map_put(seen, key, at, NULL);
            if (ok)
                out->list[out->count++] = (way){.place = p, .type = type};
        }
        if (ok)
            /* An estimate: it only has to tell heavy ways from light ones. */
            out->list[at].messages += type == ORR_NODE_COMM_COLL ? s->system.splits : 1;
    }
    orr_map_destroy(seen);
    return ok;
}

/* A pair of ranks that exchange so many messages. */
typedef struct edge {
    uint32_t a, b;
    uint64_t messages;
} edge;

typedef struct edges {
    edge *list;
    size_t count, room;
} edges;

static bool add_edge(edges *e, uint32_t a, uint32_t b, uint64_t messages)
{
    if (!orr_grow(&e->list, &e->room, e->count + 1))
        return false;
    e->list[e->count++] = (edge){a, b, messages};
    return true;
}

/* With the next one in the group, or along each dimension: a ring, of which other algorithms are
 * not far away. */
static bool add_neighbours(
    const orr_sim *s, uint32_t rank, const cfg_group *g, uint64_t n, edges *e)
{
    if (g && g->count != s->npu_count) {
        const uint32_t i = cfg_group_index(g, rank);
        return i == RUN_NONE || add_edge(e, rank, g->members[(i + 1) % g->count], n * 2 * g->count);
    }
    uint32_t stride = 1;
    bool ok = true;
    for (uint32_t k = 0; k < s->dims && ok; k++) {
        const uint32_t size = s->net_config.npus[k], at = rank / stride % size;
        if (size > 1)
            ok = add_edge(e, rank, rank + ((at + 1) % size) * stride - at * stride, n * 2 * size);
        stride *= size;
    }
    return ok;
}

/* By class and not by rank: a class of a thousand ranks is read once, and its ways are then looked
 * up for each of them. */
static bool find_edges(orr_sim *s, edges *e)
{
    const uint32_t classes = orr_set_class_count(s->set);
    ways *of = orr_alloc(classes, sizeof *of);
    bool ok = of != NULL;
    for (uint32_t k = 0; k < classes && ok; k++)
        ok = find_ways(s, k, &of[k]);
    for (uint32_t r = 0; r < s->npu_count && ok; r++) {
        const ways *w = &of[orr_set_class_of(s->set, r)];
        for (size_t i = 0; i < w->count && ok; i++) {
            const way *x = &w->list[i];
            const cfg_group *g;
            if (x->type == ORR_NODE_COMM_COLL) {
                ok = sys_find_group(&s->npus[r], x->place, &g) &&
                     add_neighbours(s, r, g, x->messages, e);
                continue;
            }
            const int64_t peer = x->type == ORR_NODE_COMM_SEND ? run_npu_dst(&s->npus[r], x->place)
                                                               : run_npu_src(&s->npus[r], x->place);
            if (peer >= 0 && peer < (int64_t)s->npu_count)
                ok = add_edge(e, r, (uint32_t)peer, x->messages);
        }
    }
    for (uint32_t k = 0; of && k < classes; k++)
        orr_free(of[k].list);
    orr_free(of);
    return ok;
}

/* ---- parts ---- */

/* Blocks of `block` ranks, of which `period` follow each other, then again from the first part. */
static uint32_t part_at(uint32_t rank, uint32_t block, uint32_t period, uint32_t parts)
{
    return (uint32_t)((uint64_t)(rank / block % period) * parts / period);
}

static uint64_t crossing(const edges *e, uint32_t block, uint32_t period, uint32_t parts)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < e->count; i++)
        if (part_at(e->list[i].a, block, period, parts) !=
            part_at(e->list[i].b, block, period, parts))
            sum += e->list[i].messages;
    return sum;
}

/* Ranks are numbered by what they are for: so of all ways of cutting their numbers, the one with
 * the fewest messages between parts. */
static void divide(run_parts *all, const edges *e)
{
    const uint32_t n = all->s->npu_count;
    uint32_t best_block = 1, best_period = n;
    /* All divisors are tried: there are few, and each costs a pass over the edges.  Of equal sums
     * the first is taken, so that the same job is always cut the same way. */
    uint64_t best = UINT64_MAX;
    for (uint32_t block = 1; block <= n / all->count; block++) {
        if (n % block)
            continue;
        for (uint32_t period = all->count; period <= n / block; period++) {
            if (n / block % period || period % all->count)
                continue;
            const uint64_t sum = crossing(e, block, period, all->count);
            if (sum < best) {
                best = sum;
                best_block = block;
                best_period = period;
            }
        }
    }
    for (uint32_t r = 0; r < n; r++)
        all->part_of[r] = (uint8_t)part_at(r, best_block, best_period, all->count);
}

/* The least delay of any message between two ranks of different parts. */
static void look_at_pair(run_parts *all, uint32_t a, uint32_t b)
{
    net_path p;
    if (a == b || all->part_of[a] == all->part_of[b])
        return;
    (void)orr__unaware_path(all->s->net, a, b, &p);
    /* Of one byte: no message is smaller, so none is faster. */
    const uint64_t ticks = orr_ticks(p.latency_ns + 1 / p.speed);
    if (ticks < all->delay)
        all->delay = ticks;
}

static void look_at_line(run_parts *all, const cfg_group *g)
{
    const orr_sim *s = all->s;
    if (g && g->count != s->npu_count) {
        for (uint32_t i = 0; i < g->count; i++)
            for (uint32_t k = 0; k < g->count; k++)
                look_at_pair(all, g->members[i], g->members[k]);
        return;
    }
    for (uint32_t r = 0; r < s->npu_count; r++) {
        uint32_t stride = 1;
        for (uint32_t k = 0; k < s->dims; k++) {
            const uint32_t size = s->net_config.npus[k], at = r / stride % size;
            for (uint32_t i = 0; i < size; i++)
                look_at_pair(all, r, r + i * stride - at * stride);
            stride *= size;
        }
    }
}

/* Collectives: any two members of a group, or of all ranks those that differ in one dimension. */
static bool find_delay(run_parts *all, const edges *e)
{
    const orr_sim *s = all->s;
    uint64_t pairs = 0;
    all->delay = UINT64_MAX / 4;
    for (size_t i = 0; i < s->groups.count; i++)
        pairs += (uint64_t)s->groups.groups[i].count * s->groups.groups[i].count;
    /* Then one thread runs: a delay that is only nearly the least would be wrong, and looking at
     * all pairs would cost more than threads give. */
    if (pairs > MOST_PAIRS)
        return false;
    for (size_t i = 0; i < s->groups.count; i++)
        look_at_line(all, &s->groups.groups[i]);
    bool uses_world = false;
    for (size_t i = 0; i < e->count; i++) {
        look_at_pair(all, e->list[i].a, e->list[i].b);
        look_at_pair(all, e->list[i].b, e->list[i].a);
    }
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        for (uint32_t p = 0; g->t && p < g->count && !uses_world; p++)
            uses_world = g->t->columns.type[g->node[p]] == ORR_NODE_COMM_COLL;
    }
    if (uses_world)
        look_at_line(all, NULL);
    /* With no delay at all parts could never go ahead of each other. */
    return all->delay > 0;
}

/* ---- what parts tell each other ---- */

void part_tell(run_part *p, uint32_t other, const part_note *note)
{
    part *to = &p->all->list[other];
    /* Counted before it can be read: a count that came later could be seen as 0 while a note is on
     * its way, and the run would end. */
    atomic_fetch_add(&p->all->state, 1);
    atomic_fetch_add(&p->all->sent, 1);
    pthread_mutex_lock(&to->lock);
    const bool ok = orr_grow(&to->inbox, &to->inbox_room, to->inbox_count + 1);
    if (ok)
        to->inbox[to->inbox_count++] = *note;
    pthread_mutex_unlock(&to->lock);
    if (!ok)
        run_no_memory(p->sim);
    /* After the lock is given back: who sees it finds the note in the box. */
    atomic_store_explicit(&to->has_mail, 1, memory_order_release);
}

void part_send(orr_sim *s, uint64_t delay)
{
    run_part *p = s->part;
    part_note *note = &p->sending;
    note->since = clk_now(s->clock);
    note->at = note->since + delay;
    if (p->on_sent.action) { /* the sender hears of it by itself; as an event it counts once */
        clk_after(s->clock, delay, p->on_sent.action, p->on_sent.context, p->on_sent.argument);
        note->trail = clk_last_trail(s->clock);
        clk_count(s->clock, -1);
    } else {
        note->trail = clk_reserve(s->clock);
    }
    /* Behind the sender's half of the message, which has sub 0 and the same place. */
    note->trail.sub = 1;
    /* A message that is faster than the least delay breaks what parts rely on.  The run fails and
     * is done again by one thread. */
    if (note->at > CLK_LAST || delay < p->all->delay)
        clk_stop(s->clock);
    else
        part_tell(p, p->part_of[note->dst], note);
}

uint64_t part_members(
    const run_part *p, const cfg_group *group, uint32_t base, uint32_t along, uint32_t *here)
{
    const run_parts *all = p->all;
    const orr_sim *s = p->sim;
    uint64_t parts = 0;
    *here = 0;
    if (group) {
        const uint32_t *of = all->group_here + (size_t)(group - s->groups.groups) * all->count;
        for (uint32_t k = 0; k < all->count; k++)
            parts |= (uint64_t)(of[k] > 0) << k;
        *here = of[p->index];
        return parts;
    }
    for (uint32_t r = 0; r < s->npu_count; r++) {
        if (watch_base_of(s, r, along) != base)
            continue;
        parts |= UINT64_C(1) << p->part_of[r];
        *here += p->part_of[r] == p->index;
    }
    return parts;
}

/* Has something come?  What is read makes the part active before it counts as read. */
static bool read_notes(part *p)
{
    run_parts *all = p->base.all;
    if (!atomic_load_explicit(&p->has_mail, memory_order_acquire))
        return false;
    pthread_mutex_lock(&p->lock);
    /* The two buffers change places, so that the lock is held for no more than that. */
    part_note *notes = p->inbox;
    const size_t count = p->inbox_count, room = p->inbox_room;
    p->inbox = p->notes;
    p->inbox_count = 0;
    p->inbox_room = p->note_room;
    atomic_store_explicit(&p->has_mail, 0, memory_order_relaxed);
    pthread_mutex_unlock(&p->lock);
    p->notes = notes;
    p->note_room = room;
    if (!count)
        return false;
    /* Before the notes are taken off the count: at no moment is neither counted. */
    if (!p->is_active) {
        p->is_active = true;
        atomic_fetch_add(&all->state, UINT64_C(1) << IN_FLIGHT_BITS);
    }
    for (size_t i = 0; i < count; i++)
        if (notes[i].what == PART_MESSAGE)
            msg_take_across(&p->sim, &notes[i]);
        else
            watch_came_across(&p->sim, &notes[i]);
    p->unsaid += count;
    atomic_fetch_sub(&all->state, count);
    return true;
}

/* ---- running ---- */

void part_put(orr_sim *s, uint64_t since, uint64_t at, clk_trail trail, clk_call call)
{
    part *p = (part *)s->part; /* its first member */
    if (since < clk_now(s->clock)) {
        clk_put(s->clock, at, trail, call);
        return;
    }
    uint32_t i = p->free_waiting;
    if (i != RUN_NONE)
        p->free_waiting = p->waiting[i].next;
    else if (p->waiting_count < RUN_NONE &&
             orr_grow(&p->waiting, &p->waiting_room, p->waiting_count + 1))
        i = (uint32_t)p->waiting_count++;
    if (i == RUN_NONE || !orr_heap_push(&p->ahead, since, i)) {
        run_no_memory(s);
        return;
    }
    p->waiting[i] = (waiting){at, trail, call, RUN_NONE};
}

/* The first event of this part, once messages are among its events that were sent before anything
 * that it can still do: that, and what may still come to its receives. */
static bool find_next(part *p, uint64_t *next)
{
    clk_clock *c = p->sim.clock;
    const uint64_t bound = p->base.unknown ? p->bound : UINT64_MAX;
    bool has_next = clk_next_tick(c, next);
    while (p->ahead.count && p->ahead.entries[0].key < bound &&
           (!has_next || p->ahead.entries[0].key < *next)) {
        orr_heap_entry first;
        orr_heap_pop(&p->ahead, &first);
        waiting *w = &p->waiting[first.value];
        clk_put(c, w->at, w->trail, w->call);
        w->next = p->free_waiting;
        p->free_waiting = first.value;
        has_next = clk_next_tick(c, next);
    }
    return has_next;
}

/* Not later than its first event, also of messages that have yet to be put in their place. */
static uint64_t least_next(const part *p, bool has_next, uint64_t next)
{
    const uint64_t own = has_next ? next : UINT64_MAX;
    return p->ahead.count && p->ahead.entries[0].key < own ? p->ahead.entries[0].key + 1 : own;
}

/* What is the first event of all other parts, when no note is on its way?  Whoever reads a note
 * says what is next before it counts as read: so if as many were read, before looking at what is
 * next, as were sent, after that, none was. */
static bool first_of_others(const part *p, uint64_t *out)
{
    const run_parts *all = p->base.all;
    /* Sequentially consistent, as all of these: the proof is about the order of loads and stores of
     * different variables. */
    const uint64_t read = atomic_load(&all->read);
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < all->count; i++) {
        const uint64_t at = atomic_load(&all->list[i].next);
        if (i != p->base.index && at < first)
            first = at;
    }
    *out = first;
    return atomic_load(&all->sent) == read;
}

static uint64_t later(uint64_t at, uint64_t delay)
{
    return at > UINT64_MAX - delay ? UINT64_MAX : at + delay;
}

/* From when on messages may come that are not known yet; those that are known are read. */
static void find_bound(part *p)
{
    const run_parts *all = p->base.all;
    uint64_t bound = UINT64_MAX, first, own;
    for (uint32_t i = 0; i < all->count; i++) {
        if (i == p->base.index)
            continue;
        const uint64_t at =
            later(atomic_load_explicit(&all->list[i].horizon, memory_order_acquire), all->delay);
        bound = at < bound ? at : bound;
    }
    /* Behind the horizons: a note that was sent before a horizon was said is in the box by now, and
     * so nothing that comes later is earlier than the bound. */
    read_notes(p);
    if (!p->unsaid && first_of_others(p, &first)) {
        /* What comes is by one of those, or an answer to what this part will send. */
        uint64_t at = later(first, all->delay);
        const bool has_next = find_next(p, &own);
        const uint64_t answer = later(least_next(p, has_next, own), 2 * all->delay);
        at = answer < at ? answer : at;
        /* Both are true, so the later one holds. */
        bound = at > bound ? at : bound;
    }
    p->bound = bound;
}

static void say_what_is_next(part *p, bool has_next, uint64_t next)
{
    const uint64_t now = clk_now(p->sim.clock);
    const uint64_t least = least_next(p, has_next, next);
    uint64_t horizon = least;
    if (p->base.unknown && p->bound < horizon)
        /* A receive that gets its message goes on at once, and may send: so the horizon is no later
         * than what may arrive. */
        horizon = p->bound < now ? now : p->bound;
    atomic_store_explicit(&p->next, least, memory_order_release);
    atomic_store_explicit(&p->horizon, horizon, memory_order_release);
    /* Behind `next`: whoever counts notes as read has said first what they brought. */
    if (p->unsaid)
        atomic_fetch_add(&p->base.all->read, p->unsaid);
    p->unsaid = 0;
}

/* Up to a time, or until it must wait or look up.  True: something was done. */
static bool run_part_until(part *p, uint64_t until)
{
    clk_clock *c = p->sim.clock;
    uint64_t next = 0;
    bool has_done = false;
    for (unsigned ticks = 0; ticks < TURN; ticks++) {
        bool has_next = find_next(p, &next);
        if (p->base.unknown && (!has_next || next >= p->bound)) {
            find_bound(p);
            has_next = find_next(p, &next);
        }
        say_what_is_next(p, has_next, next);
        if (!has_next || next >= until || (p->base.unknown && next >= p->bound))
            return has_done;
        has_done = true;
        /* A receive of a message that is not known ends the tick for now. */
        const uint32_t unknown = p->base.unknown;
        uint64_t now = next;
        do {
            if (!clk_step(c))
                break;
        } while (p->base.unknown <= unknown && clk_next_tick(c, &now) && now == next);
        if (clk_has_failed(c) || p->sim.code) {
            /* Which failure came first is not known here: the run is done again by one thread,
             * which says it. */
            atomic_store(&p->base.all->has_failed, true);
            return true;
        }
    }
    return true;
}

static bool have_all(_Atomic uint64_t *count, const part *p)
{
    /* Counts only grow: those of the next meeting begin where this one ended, so nobody has to set
     * them back. */
    return atomic_load_explicit(count, memory_order_acquire) >=
           (p->meetings + 1) * p->base.all->count;
}

static uint64_t meeting_time(const run_parts *all)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const uint64_t at = atomic_load(&all->list[i].stopped_at);
        last = at > last ? at : last;
    }
    /* One more, so that all events of that time are in the past of everybody. */
    return last + 1;
}

/* Is there nothing to do, for good?  Then no part has events and nothing is on its way. */
static void rest(part *p)
{
    run_parts *all = p->base.all;
    uint64_t tick;
    if (find_next(p, &tick) || atomic_load_explicit(&p->has_mail, memory_order_acquire))
        return;
    if (p->is_active) {
        p->is_active = false;
        atomic_fetch_sub(&all->state, UINT64_C(1) << IN_FLIGHT_BITS);
    }
    if (atomic_load(&all->state) == 0)
        atomic_store(&all->is_over, true);
}

static bool run_freely(part *p)
{
    run_parts *all = p->base.all;
    if (atomic_load_explicit(&all->wanted, memory_order_relaxed) > p->meetings) {
        atomic_store(&p->stopped_at, clk_now(p->sim.clock));
        atomic_fetch_add(&all->stopped, 1);
        p->state = STOPS;
        return true;
    }
    bool has_done = read_notes(p);
    has_done = run_part_until(p, UINT64_MAX) || has_done;
    if (clk_trails_kept(p->sim.clock) > all->most_trails) {
        uint64_t before = p->meetings;
        /* Several parts may ask at once: one meeting is enough. */
        atomic_compare_exchange_strong(&all->wanted, &before, before + 1);
    }
    if (!has_done)
        rest(p);
    return has_done;
}

/* One turn of a part; false: it has to wait. */
static bool advance(part *p)
{
    run_parts *all = p->base.all;
    uint64_t next;
    bool has_done = true;
    switch (p->state) {
    case RUNS:
        has_done = run_freely(p);
        break;
    case STOPS:
        has_done = have_all(&all->stopped, p);
        if (has_done)
            p->state = CATCHES_UP;
        break;
    case CATCHES_UP: {
        const uint64_t until = meeting_time(all);
        has_done = read_notes(p);
        has_done = run_part_until(p, until) || has_done;
        if (has_done || (p->base.unknown && p->bound < until) ||
            (find_next(p, &next) && next < until))
            break;
        atomic_fetch_add(&all->caught_up, 1);
        p->state = LISTS;
        has_done = true;
        break;
    }
    case LISTS:
        has_done = have_all(&all->caught_up, p);
        if (!has_done)
            break;
        read_notes(p);
        (void)find_next(p, &next); /* all that was sent is from before the meeting */
        if (!clk_list_trails(p->sim.clock))
            atomic_store(&all->has_failed, true);
        atomic_fetch_add(&all->listed, 1);
        p->state = NUMBERS;
        break;
    default:
        has_done = have_all(&all->listed, p);
        if (has_done && p->base.index == 0 && atomic_load(&all->numbered) == p->meetings) {
            if (!clk_number_trails(all->clocks, all->count))
                atomic_store(&all->has_failed, true);
            atomic_store_explicit(&all->numbered, p->meetings + 1, memory_order_release);
        }
        has_done =
            has_done && atomic_load_explicit(&all->numbered, memory_order_acquire) > p->meetings;
        if (has_done) {
            clk_cut_trails(p->sim.clock);
            p->meetings++;
            p->state = RUNS;
        }
    }
    atomic_store_explicit(&p->events, clk_events(p->sim.clock), memory_order_relaxed);
    return has_done;
}

static bool is_at_end(run_parts *all)
{
    if (atomic_load_explicit(&all->s->must_stop, memory_order_relaxed))
        atomic_store(&all->is_stopped, true);
    return atomic_load_explicit(&all->is_over, memory_order_relaxed) ||
           atomic_load_explicit(&all->has_failed, memory_order_relaxed) ||
           atomic_load_explicit(&all->is_stopped, memory_order_relaxed);
}

/* Something has changed: who sleeps may have something to do. */
static void wake(run_parts *all)
{
    atomic_fetch_add(&all->changes, 1);
    if (!atomic_load(&all->asleep))
        return;
    pthread_mutex_lock(&all->nap_lock);
    pthread_cond_broadcast(&all->awake);
    pthread_mutex_unlock(&all->nap_lock);
}

/* Until another thread has done something since `seen`.  Not for long: a thread that has nothing to
 * run may still have said that it will send nothing before some time, and tells nobody. */
static void nap(run_parts *all, uint64_t seen)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += NAP_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&all->nap_lock);
    atomic_fetch_add(&all->asleep, 1);
    /* Whoever changes something from here on sees that somebody sleeps. */
    if (atomic_load(&all->changes) == seen)
        (void)pthread_cond_timedwait(&all->awake, &all->nap_lock, &until);
    atomic_fetch_sub(&all->asleep, 1);
    pthread_mutex_unlock(&all->nap_lock);
}

static void work(void *context, unsigned who, unsigned members)
{
    run_parts *all = context;
    unsigned looks = 0;
    while (!is_at_end(all)) {
        const uint64_t seen = atomic_load(&all->changes);
        bool has_done = false;
        for (uint32_t i = who; i < all->count; i += members)
            has_done = advance(&all->list[i]) || has_done;
        if (has_done) {
            looks = 0;
            wake(all);
        } else if (++looks > LOOKS) {
            /* The one that is waited for may need this one's core. */
            nap(all, seen);
        }
    }
    wake(all);
}

static bool make_nap(run_parts *all)
{
    pthread_condattr_t how;
    all->has_nap_lock = pthread_mutex_init(&all->nap_lock, NULL) == 0;
    if (!all->has_nap_lock || pthread_condattr_init(&how))
        return false;
    all->has_awake = pthread_condattr_setclock(&how, CLOCK_MONOTONIC) == 0 &&
                     pthread_cond_init(&all->awake, &how) == 0;
    pthread_condattr_destroy(&how);
    return all->has_awake;
}

/* ---- life ---- */

static bool make_part(run_parts *all, uint32_t index)
{
    part *p = &all->list[index];
    orr_sim *s = &p->sim;
    /* A part is a whole simulation that shares what is only read; what is written becomes its own
     * below. */
    memcpy((void *)s, (const void *)all->s, sizeof *s);
    s->arena = orr_arena_create();
    s->clock = clk_create();
    s->matcher = NULL;
    s->watch = NULL;
    s->old_notes = NULL;
    s->group_texts = NULL;
    s->group_text = NULL;
    s->group_text_count = s->group_text_room = 0;
    s->free_streams = NULL;
    s->free_sets = NULL;
    s->parts = NULL;
    s->messages = 0;
    s->finished = 0;
    s->part = &p->base;
    p->free_waiting = RUN_NONE;
    p->base = (run_part){.all = all, .sim = s, .index = index, .part_of = all->part_of};
    all->clocks[index] = s->clock;
    if (pthread_mutex_init(&p->lock, NULL) || !s->arena || !s->clock)
        return false;
    s->finish_order = orr_arena_new(s->arena, s->npu_count, uint32_t);
    return s->finish_order && (s->matcher = msg_create(s)) &&
           clk_keep_trails(s->clock, all->clocks, index) && watch_create_part(s, all->s);
}

static void drop_part(part *p)
{
    orr_sim *s = &p->sim;
    pthread_mutex_destroy(&p->lock);
    if (s->watch)
        s->watch->ranks = NULL;
    watch_destroy(s->watch);
    if (run_old_outputs) /* nobody asked for these logs, or one thread would run */
        run_old_outputs->destroy_notes(s->old_notes);
    msg_destroy(s->matcher);
    clk_destroy(s->clock);
    orr_map_destroy(s->group_texts);
    orr_free(s->group_text);
    orr_arena_destroy(s->arena);
    orr_free(p->inbox);
    orr_free(p->notes);
    orr_heap_fini(&p->ahead);
    orr_free(p->waiting);
}

uint32_t orr_sim_threads(const orr_sim *s)
{
    return s->parts ? s->parts->count : 1;
}

void parts_destroy(run_parts *all)
{
    if (!all)
        return;
    orr_crew_destroy(all->crew);
    if (all->has_awake)
        pthread_cond_destroy(&all->awake);
    if (all->has_nap_lock)
        pthread_mutex_destroy(&all->nap_lock);
    watch_drop_later(all->s);
    for (uint32_t i = 0; all->list && i < all->count; i++)
        drop_part(&all->list[i]);
    orr_free(all->list);
    orr_free(all->part_of);
    orr_free(all->group_here);
    orr_free(all);
}

static void count_members(run_parts *all)
{
    const orr_sim *s = all->s;
    for (size_t i = 0; i < s->groups.count; i++)
        for (uint32_t m = 0; m < s->groups.groups[i].count; m++)
            all->group_here[i * all->count + all->part_of[s->groups.groups[i].members[m]]]++;
}

/* *out NULL and true: it does not pay or cannot be. */
static bool make_all(orr_sim *s, uint32_t count, run_parts **out)
{
    run_parts *all = orr_alloc(1, sizeof *all);
    edges e = {0};
    *out = NULL;
    if (!all)
        return false;
    all->s = s;
    all->count = count;
    all->most_trails = s->opt.most_trails ? s->opt.most_trails : MOST_TRAILS;
    all->list = orr_alloc(count, sizeof *all->list);
    all->part_of = orr_alloc(s->npu_count, sizeof *all->part_of);
    all->group_here = orr_alloc(s->groups.count * count + 1, sizeof *all->group_here);
    bool ok = all->list && all->part_of && all->group_here && find_edges(s, &e), is_fit = ok;
    if (ok) {
        divide(all, &e);
        is_fit = find_delay(all, &e);
        count_members(all);
    }
    orr_free(e.list);
    for (uint32_t i = 0; i < count && ok && is_fit; i++)
        ok = make_part(all, i);
    if (ok && is_fit)
        ok = make_nap(all) && (all->crew = orr_crew_create(count, work, all)) != NULL;
    if (ok && is_fit)
        *out = all;
    else
        parts_destroy(all);
    return ok;
}

static void start_rank(run_npu *n)
{
    if (n->speed->delay)
        clk_at(n->sim->clock, n->speed->delay, run_start_late, n, 0);
    else
        work_issue(n);
}

static void start(run_parts *all)
{
    orr_sim *s = all->s;
    s->has_started = true;
    for (uint32_t i = 0; i < all->count; i++)
        all->list[i].is_active = true;
    atomic_store(&all->state, (uint64_t)all->count << IN_FLIGHT_BITS);
    for (uint32_t r = 0; r < s->npu_count; r++) {
        orr_sim *of = &all->list[all->part_of[r]].sim;
        s->npus[r].sim = of;
        clk_start_rank(of->clock, r);
        start_rank(&s->npus[r]);
        if (of->code || clk_has_failed(of->clock))
            atomic_store(&all->has_failed, true);
    }
}

static bool gather(run_parts *all)
{
    orr_sim *s = all->s;
    uint64_t now = 0;
    bool ok = true;
    for (uint32_t i = 0; i < all->count; i++) {
        orr_sim *of = &all->list[i].sim;
        const uint64_t at = clk_now(of->clock);
        now = at > now ? at : now;
        s->messages += of->messages;
        clk_count(s->clock, (int64_t)clk_events(of->clock));
        ok = watch_add_part(s, of) && ok;
    }
    clk_jump(s->clock, now);
    for (uint32_t r = 0; r < s->npu_count; r++)
        s->npus[r].sim = s;
    return ok && fold_put_finish_order(s);
}

/* Does something stand against it?  What is recorded or limited by event; networks on which
 * messages delay each other, or whose routes are found as they are asked for; what ranks share
 * besides messages. */
static bool has_obstacle(const orr_sim *s)
{
    if (s->rules != &run_rules_ours || s->opt.max_events || s->opt.records_goal ||
        s->opt.trace_log || s->system.trace_enabled || s->opt.logging || s->system.track_local_mem)
        return true;
    if (s->net_ops != &orr__net_unaware)
        return true;
    if (s->opt.rendezvous || s->system.is_agreed || s->system.inter != CFG_ASCENDING ||
        s->opt.steps > 1 || sys_has_plans(s) || fold_has_custom(s) || fold_has_memory_nodes(s) ||
        s->opt.algorithms || s->opt.compute || (s->watch && s->watch->served))
        return true;
    return !s->watch || s->has_started || s->fold || s->lockstep;
}

orr_code parts_run(orr_sim *s, bool *is_done, orr_error *err)
{
    uint32_t count = s->opt.threads > MOST_PARTS ? MOST_PARTS : s->opt.threads;
    run_parts *all;
    *is_done = false;
    if (count > s->npu_count)
        count = s->npu_count;
    /* Equal parts: the slowest decides, and cuts of equal numbers are the ones that are tried. */
    while (count > 1 && s->npu_count % count)
        count--;
    if (count < 2 || has_obstacle(s))
        return ORR_OK;
    if (!make_all(s, count, &all))
        return orr_no_memory(err);
    if (!all)
        return ORR_OK;
    s->parts = all;
    start(all);
    orr_crew_run(all->crew);
    const bool has_failed = atomic_load(&all->has_failed);
    uint32_t finished = 0;
    for (uint32_t i = 0; i < count; i++)
        finished += all->list[i].sim.finished;
    if (!atomic_load(&all->is_stopped) && (has_failed || finished < s->npu_count))
        return run_build_again(s, false, err); /* by one thread: it says what is wrong */
    *is_done = true;
    return gather(all) ? ORR_OK : orr_no_memory(err);
}
