/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - ranks on several threads: conservative parallel simulation (docs/design/threads.md).
 *
 *     divide     ranks by communication, so that few messages cross parts
 *     advance    a part until it must wait for another
 *     meet       occasionally all parts stop at one time, and the trails of their events are reset
 *     gather     the statistics of all parts
 *
 * A part publishes its *horizon*: it will do nothing earlier; whatever it still sends arrives at
 * least the minimum message delay after that.  A part with receives whose messages are unknown goes
 * no further than the earliest possible arrival; any other continues.  A run that fails or stalls
 * is repeated on one thread, so that messages are the same. */
#include "parts.h"

#include "base/arithmetic.h"
#include "base/threads/pool.h"
#include "match.h"
#include "models/network/link_servers.h"
#include "models/network/net_table.h"
#include "models/network/net_time.h"
#include "models/network/symmetry.h"
#include "run/fold/fold.h"
#include "trace/set_impl.h"
#include "watch.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

static uint64_t least_delay(const run_part *p);

/* ---- Links that delay messages, in a run on several threads (docs/design/threads.md).
 *
 * Each part has its own network and serves the links of its ranks.  A packet that enters a link
 * reaches the other end no sooner than the link's latency: so it is passed on at once if the next
 * link belongs to another part, and its sender is informed of the arrival in advance.  A message is
 * never in two parts at once, and no part writes what another reads.
 *
 * Invariant: each event of a single-threaded run corresponds to one event here, or to two halves in
 * different parts: first the sender's, then the receiver's. */

/* Networks with contention on links: each part has one, and serves the links of its ranks. */
static bool has_links(const orr_sim *s)
{
    return s->net_ops == &orr__net_aware || s->net_ops == &orr__net_graph;
}

static bool can_divide_links(const orr_sim *s)
{
    return s->net_ops == &orr__net_aware || orr__graph_can_divide(s->net);
}

static uint64_t links_delay(const orr_sim *s, const uint8_t *part_of)
{
    return s->net_ops == &orr__net_aware ? orr__aware_least_delay(s->net, part_of)
                                         : orr__graph_least_delay(s->net);
}

static part_note note_of(const orr_sim *s, part_news what, uint64_t delay, clk_trail trail)
{
    const uint64_t now = clk_now(s->clock);
    return (part_note){.what = what, .since = now, .at = now + delay, .trail = trail};
}

/* The sender's half of an arrival, ordered before the receiver's half. */
static void tell_origin(
    orr_sim *s, uint32_t origin_part, uint64_t origin, uint64_t delay, clk_trail trail)
{
    part_note note = note_of(s, PART_THERE, delay, trail);
    note.trail.sub = 0;
    note.origin = origin;
    clk_count(s->clock, -1); /* two halves count as one */
    part_tell(s->part, origin_part, &note);
}

static bool pass_on(orr_sim *s,
                    uint64_t delay,
                    const net_packet *k,
                    uint32_t keeper,
                    void (*arrive)(void *servers, uint64_t packet),
                    uint64_t packet)
{
    run_part *p = s->part;
    const uint32_t to = p->part_of[keeper], src = p->part_of[k->m.src];
    const msg_moving v = msg_moving_of(s, k->m.token);
    /* The last hop of a message whose sender waits in another part: anywhere else the arrival
     * itself tells the sender. */
    const bool tells = v.is_awaited && k->at == k->m.dst && src != to;
    clk_trail trail;
    if (to == p->index && !tells) {
        clk_after(s->clock, delay, arrive, p->servers, packet);
        return false;
    }
    /* A delay below the minimum violates the other parts' assumption: repeat on one thread. */
    if (delay < least_delay(p) || clk_now(s->clock) + delay > CLK_LAST) {
        clk_stop(s->clock);
        return false;
    }
    /* It stays here, but its sender is elsewhere: the arrival is the second half. */
    if (to == p->index) {
        clk_after(s->clock, delay, arrive, p->servers, packet);
        clk_make_second_half(s->clock, delay);
        tell_origin(s, src, v.origin, delay, clk_last_trail(s->clock));
        return false;
    }
    /* Sent from here, and received by the other part: the first half is an event of this clock. */
    if (tells && src == p->index) {
        clk_after(s->clock, delay, msg_tell_sender, s, v.origin);
        clk_count(s->clock, -1);
        trail = clk_last_trail(s->clock);
    } else {
        trail = clk_reserve(s->clock);
        if (tells)
            tell_origin(s, src, v.origin, delay, trail);
    }
    part_note note = note_of(s, PART_PACKET, delay, trail);
    note.trail.sub = tells;
    note.tag = v.tag;
    note.src = k->m.src;
    note.dst = k->m.dst;
    note.size = k->m.size;
    note.sent = v.since;
    note.origin = v.origin;
    note.is_awaited = v.is_awaited;
    note.hash = k->hash;
    note.device = k->at;
    /* A waiting sender keeps its continuation. */
    if (!(v.is_origin && v.is_awaited))
        msg_drop_moving(s, k->m.token);
    part_tell(p, to, &note);
    return true;
}

static void take_packet(orr_sim *s, const part_note *note)
{
    const run_part *p = s->part;
    clk_call call = {msg_tell_sender, s, note->origin};
    /* Effects of other parts must be later than anything this part has run. */
    if (note->at <= clk_now(s->clock)) {
        clk_stop(s->clock);
        return;
    }
    if (note->what == PART_PACKET) {
        const msg_moving v = {.tag = note->tag,
                              .src = note->src,
                              .dst = note->dst,
                              .size = note->size,
                              .since = note->sent,
                              .origin = note->origin,
                              .is_awaited = note->is_awaited};
        net_packet k = {.m = {note->src, note->dst, note->size, note->origin},
                        .hash = note->hash,
                        .at = note->device};
        /* Sent from here to here: it is back home. */
        const bool is_home = !(note->origin & MSG_MOVING) && p->part_of[note->dst] == p->index;
        if ((!is_home && !msg_add_moving(s, &v, &k.m.token)) ||
            !net_servers_take(p->servers, &k, &call.action, &call.context, &call.argument)) {
            run_no_memory(s);
            return;
        }
    }
    part_put(s, note->since, note->at, note->trail, call);
}

/* False: out of memory. */
static bool make_links(run_part *p)
{
    orr_sim *s = p->sim;
    orr__net_config own = {s->net_config, s->topology, NULL};
    const net_division division = {.pass_on = pass_on};
    orr_error unused;
    own.config.size = sizeof own;
    s->net = NULL;
    if (s->net_ops->create(&own.config, &s->net, &unused))
        return false;
    p->servers = s->net_ops == &orr__net_aware ? orr__aware_divide(s->net, s, &division)
                                               : orr__graph_divide(s->net, s, &division);
    return p->servers != NULL;
}

static void drop_links(run_part *p)
{
    if (p->sim && p->sim->net && has_links(p->sim))
        p->sim->net_ops->destroy(p->sim->net);
}

/* Adds the traffic of a part's links; false: out of memory. */
static bool add_links(orr_sim *s, const run_part *p)
{
    if (s->net_ops == &orr__net_aware)
        return orr__aware_add(s->net, p->sim->net);
    orr__graph_add(s->net, p->sim->net);
    return true;
}

enum {
    MOST_PARTS = CLK_CLOCKS,
    /* Trail nodes per part before they are reset: few enough for the cache, and enough per rank
     * that sorting pending events is cheap in comparison. */
    MOST_TRAILS = 1 << 14,
    TRAILS_A_RANK = 64,
    TURN = 256,  /* ticks between two checks of the other parts */
    LOOKS = 300, /* polls before a waiting thread sleeps */
    LOOKS_BEFORE_YIELD = 20,
    NAP_NS = 100000,      /* at most, unless it is woken earlier */
    MOST_PAIRS = 1 << 24, /* pairs of ranks examined for the minimum delay */
    /* One atomic word with both counts, active parts above and notes in flight below, so that a
     * single load tells whether anything is left. */
    IN_FLIGHT_BITS = 48
};

/* A meeting has steps, each of which waits for all parts: they stop; run up to the latest of their
 * times; list pending events; and take the numbers assigned by the first of them. */
typedef enum part_state { RUNS, STOPS, CATCHES_UP, LISTS, NUMBERS } part_state;

typedef struct waiting {
    uint64_t at;
    clk_trail trail;
    clk_call call;
    uint32_t next; /* free */
} waiting;

/* A rank that has finished, and in which event. */
typedef struct part_finish {
    uint64_t at;
    clk_trail trail;
    uint32_t rank;
} part_finish;

typedef struct part {
    run_part base;
    orr_sim sim;
    part_state state;
    _Atomic uint64_t meetings; /* that it took part in; also read by threads that wake it */
    uint64_t bound;            /* earliest time at which something may arrive */
    bool is_active;            /* has pending events */
    part_note *notes;          /* being read */
    size_t note_room;
    /* send time -> a message sent at a time this part has not reached yet */
    orr_heap ahead;
    struct waiting *waiting;
    size_t waiting_count, waiting_room;
    uint32_t free_waiting;
    part_finish *finished; /* since the last meeting, in order */
    size_t finished_count, finished_room;
    uint64_t unsaid;          /* notes read since it last published `next` */
    char apart1[64];          /* padding against false sharing */
    _Atomic uint64_t horizon; /* it will send nothing earlier */
    _Atomic uint64_t next;    /* its first event, as far as notes have been read */
    _Atomic uint64_t stopped_at;
    _Atomic uint64_t events;
    _Atomic uint64_t waits_for; /* while its thread sleeps: the tick it cannot enter yet */
    _Atomic bool sleeps;
    char apart2[64];      /* padding against false sharing */
    pthread_mutex_t lock; /* protects inbox and sleep */
    pthread_cond_t awake;
    bool has_lock, has_awake;
    part_note *inbox;
    size_t inbox_count, inbox_room;
    _Atomic uint32_t has_mail;
} part;

typedef struct run_parts {
    orr_sim *s; /* the whole run: shared data, and target of gather */
    part *list; /* by index */
    uint32_t count;
    uint8_t *part_of;     /* by rank */
    uint32_t *group_here; /* by group and part: number of members */
    clk_clock *clocks[MOST_PARTS];
    uint64_t delay; /* minimum over messages between parts */
    size_t most_trails;
    orr_crew *crew;
    char apart3[64];         /* padding against false sharing */
    _Atomic uint64_t wanted; /* number of meetings requested */
    _Atomic uint64_t stopped, caught_up, listed, numbered;
    char apart4[64];             /* padding against false sharing */
    _Atomic uint64_t sent, read; /* total numbers of notes */
    char apart5[64];             /* padding against false sharing */
    _Atomic uint64_t state;      /* active parts, and notes in flight */
    _Atomic bool is_over;        /* nothing is left to do */
    _Atomic bool has_failed, is_stopped;
    char apart6[64];         /* padding against false sharing */
    _Atomic uint32_t asleep; /* threads */
} run_parts;

/* ---- communication ---- */

/* Nodes of a trace with the same partners. */
typedef struct way {
    uint32_t place;
    uint64_t messages; /* per rank */
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
    /* A hole's value belongs to the rank; its slot is the same for all ranks of the class. */
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
            /* An estimate: it only has to distinguish heavy from light traffic. */
            out->list[at].messages += type == ORR_NODE_COMM_COLL ? s->system.splits : 1;
    }
    orr_map_destroy(seen);
    return ok;
}

/* A pair of ranks and the number of messages between them. */
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

/* With the next member of the group, or along each dimension: a ring, as an approximation of other
 * algorithms. */
static bool add_neighbours(
    const orr_sim *s, uint32_t rank, const cfg_group *g, uint64_t n, edges *e)
{
    if (g && g->count != s->npu_count) {
        const uint32_t i = cfg_group_index(g, rank);
        /* A ring all-reduce sends 2 (n - 1) messages to the neighbour; only the proportion
         * counts. */
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

/* By class, not by rank: a class of a thousand ranks is read once, and then resolved for each of
 * them. */
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

/* Blocks of `block` ranks, in cycles of `period`, assigned to parts in order. */
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

/* Does every part have the same number of ranks of each class?  Classes are pipeline stages, which
 * work in turn: a part with a single stage would mostly wait for the others. */
static bool is_even(const run_parts *all, uint32_t *seen, uint32_t block, uint32_t period)
{
    const orr_sim *s = all->s;
    const uint32_t classes = orr_set_class_count(s->set);
    memset(seen, 0, (size_t)classes * all->count * sizeof *seen);
    for (uint32_t r = 0; r < s->npu_count; r++)
        seen[orr_set_class_of(s->set, r) * all->count + part_at(r, block, period, all->count)]++;
    for (uint32_t i = 0; i < classes * all->count; i++)
        if (seen[i] != seen[i / all->count * all->count])
            return false;
    return true;
}

/* Ranks are numbered by function, so cuts by number are good candidates: take the one with the
 * fewest messages between parts, preferring those with a share of every class. */
static bool divide(run_parts *all, const edges *e)
{
    const uint32_t n = all->s->npu_count;
    uint32_t best_block = 1, best_period = n;
    bool is_best_even = false;
    uint32_t *seen =
        orr_alloc((size_t)orr_set_class_count(all->s->set) * all->count + 1, sizeof *seen);
    if (!seen)
        return false;
    /* All divisors are tried: there are few, and each costs a pass over the edges.  Of equal sums
     * the first wins, so that the result is deterministic. */
    uint64_t best = UINT64_MAX;
    for (uint32_t block = 1; block <= n / all->count; block++) {
        if (n % block)
            continue;
        for (uint32_t period = all->count; period <= n / block; period++) {
            if (n / block % period || period % all->count)
                continue;
            const bool even = is_even(all, seen, block, period);
            if (is_best_even && !even)
                continue;
            const uint64_t sum = crossing(e, block, period, all->count);
            if (sum < best || (even && !is_best_even)) {
                best = sum;
                best_block = block;
                best_period = period;
                is_best_even = even;
            }
        }
    }
    orr_free(seen);
    for (uint32_t r = 0; r < n; r++)
        all->part_of[r] = (uint8_t)part_at(r, best_block, best_period, all->count);
    return true;
}

/* Minimum delay of a message between two ranks of different parts. */
static void look_at_pair(run_parts *all, uint32_t a, uint32_t b)
{
    net_path p;
    if (a == b || all->part_of[a] == all->part_of[b])
        return;
    (void)orr__unaware_path(all->s->net, a, b, &p);
    /* Of one byte: the smallest and so the fastest message. */
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

/* Collectives: any two members of a group, or for all ranks those that differ in one dimension. */
static bool find_delay(run_parts *all, const edges *e)
{
    const orr_sim *s = all->s;
    uint64_t pairs = 0;
    /* No two parts communicate: no limit, but twice the delay (find_bound) must not wrap. */
    all->delay = UINT64_MAX / 4;
    if (has_links(s)) {
        const uint64_t delay = links_delay(s, all->part_of);
        all->delay = delay < all->delay ? delay : all->delay;
        return all->delay > 0;
    }
    for (size_t i = 0; i < s->groups.count; i++)
        pairs += (uint64_t)s->groups.groups[i].count * s->groups.groups[i].count;
    /* Then use one thread: an approximate minimum would be wrong, and examining all pairs would
     * cost more than threads gain. */
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
    /* Without any delay parts could never run ahead of each other. */
    return all->delay > 0;
}

/* ---- notes between parts ---- */

void part_tell(run_part *p, uint32_t other, const part_note *note)
{
    part *to = &p->all->list[other];
    /* Counted before it can be read: otherwise the count could be 0 with a note in flight, and the
     * run would end. */
    atomic_fetch_add(&p->all->state, 1);
    atomic_fetch_add(&p->all->sent, 1);
    pthread_mutex_lock(&to->lock);
    const bool ok = orr_grow(&to->inbox, &to->inbox_room, to->inbox_count + 1);
    if (ok)
        to->inbox[to->inbox_count++] = *note;
    pthread_mutex_unlock(&to->lock);
    if (!ok)
        run_no_memory(p->sim);
    /* After unlocking: a part that sees the flag finds the note in the box. */
    atomic_store_explicit(&to->has_mail, 1, memory_order_release);
}

void part_send(orr_sim *s, uint64_t delay)
{
    run_part *p = s->part;
    part_note *note = &p->sending;
    note->since = clk_now(s->clock);
    note->at = note->since + delay;
    if (p->on_sent.action) { /* the sender's half; the event counts once */
        clk_after(s->clock, delay, p->on_sent.action, p->on_sent.context, p->on_sent.argument);
        note->trail = clk_last_trail(s->clock);
        clk_count(s->clock, -1);
    } else {
        note->trail = clk_reserve(s->clock);
    }
    /* After the sender's half of the message, which has sub 0 and the same position. */
    note->trail.sub = 1;
    /* A delay below the minimum violates the other parts' assumption: the run fails and is repeated
     * on one thread. */
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
    if (group && watch_covers_all(s, along)) {
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

static uint64_t least_delay(const run_part *p)
{
    return p->all->delay;
}

/* On links something may arrive at any time, also without a waiting receive. */
static bool is_held(const part *p)
{
    return p->base.unknown || p->base.servers;
}

/* Reads the inbox.  Notes make the part active before they count as read. */
static bool read_notes(part *p)
{
    run_parts *all = p->base.all;
    if (!atomic_load_explicit(&p->has_mail, memory_order_acquire))
        return false;
    pthread_mutex_lock(&p->lock);
    /* The buffers are swapped, so that the lock is held only briefly. */
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
    /* Before the notes are subtracted: at every moment one of the two is counted. */
    if (!p->is_active) {
        p->is_active = true;
        atomic_fetch_add(&all->state, UINT64_C(1) << IN_FLIGHT_BITS);
    }
    for (size_t i = 0; i < count; i++)
        if (notes[i].what == PART_MESSAGE)
            msg_take_across(&p->sim, &notes[i]);
        else if (notes[i].what != PART_CAME)
            take_packet(&p->sim, &notes[i]);
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

/* The first event of this part, after inserting messages that were sent before anything it can
 * still do: later ones might still be preceded by its own events. */
static bool find_next(part *p, uint64_t *next)
{
    clk_clock *c = p->sim.clock;
    const uint64_t bound = is_held(p) ? p->bound : UINT64_MAX;
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

/* Lower bound on its first event, including messages that are not inserted yet. */
static uint64_t least_next(const part *p, bool has_next, uint64_t next)
{
    const uint64_t own = has_next ? next : UINT64_MAX;
    /* One later than it was sent: a delay of 0 is refused (find_delay). */
    return p->ahead.count && p->ahead.entries[0].key < own ? p->ahead.entries[0].key + 1 : own;
}

/* The first event of all other parts, if no note is in flight.  A part that reads notes publishes
 * its next event before they count as read: so if the number read, loaded before the next events,
 * equals the number sent, loaded after them, none was in flight. */
static bool first_of_others(const part *p, uint64_t *out)
{
    const run_parts *all = p->base.all;
    /* Sequentially consistent, like all of these: the proof depends on the order of loads and
     * stores of different variables. */
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

/* The earliest time at which unknown messages may arrive; reads the known ones. */
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
    /* After loading the horizons: a note sent before a horizon was published is in the box by now,
     * so nothing that arrives later is earlier than the bound. */
    read_notes(p);
    if (!p->unsaid && first_of_others(p, &first)) {
        /* Anything that arrives is caused by one of those, or answers a message of this part. */
        uint64_t at = later(first, all->delay);
        const bool has_next = find_next(p, &own);
        const uint64_t answer = later(least_next(p, has_next, own), 2 * all->delay);
        at = answer < at ? answer : at;
        /* Both bounds hold, so take the later. */
        bound = at > bound ? at : bound;
    }
    p->bound = bound;
}

static void say_what_is_next(part *p, bool has_next, uint64_t next)
{
    const uint64_t now = clk_now(p->sim.clock);
    const uint64_t least = least_next(p, has_next, next);
    uint64_t horizon = least;
    if (is_held(p) && p->bound < horizon)
        /* A receive that gets its message continues at once, and may send: so the horizon is no
         * later than the bound on arrivals. */
        horizon = p->bound < now ? now : p->bound;
    atomic_store_explicit(&p->next, least, memory_order_release);
    atomic_store_explicit(&p->horizon, horizon, memory_order_release);
    /* After publishing `next`: a note counts as read only after its effect has been published. */
    if (p->unsaid)
        atomic_fetch_add(&p->base.all->read, p->unsaid);
    p->unsaid = 0;
}

static bool is_at_end(run_parts *all)
{
    if (atomic_load_explicit(&all->s->must_stop, memory_order_relaxed))
        atomic_store(&all->is_stopped, true);
    return atomic_load_explicit(&all->is_over, memory_order_relaxed) ||
           atomic_load_explicit(&all->has_failed, memory_order_relaxed) ||
           atomic_load_explicit(&all->is_stopped, memory_order_relaxed);
}

/* ---- sleep ----
 *
 * A waiting thread goes to sleep after a while: the one it waits for may need its core.  A part
 * that makes progress wakes only those that can continue because of it: a spurious wake-up costs
 * both threads more than the events of a turn. */

/* Is there mail for a waiting part, or may it continue by what the others have published? */
static bool can_go_on(const part *p)
{
    const run_parts *all = p->base.all;
    const uint64_t tick = atomic_load(&p->waits_for);
    uint64_t horizon = UINT64_MAX, next = UINT64_MAX;
    if (atomic_load(&p->has_mail) || is_at_end(p->base.all) ||
        atomic_load_explicit(&all->wanted, memory_order_relaxed) > p->meetings)
        return true;
    for (uint32_t i = 0; i < all->count; i++) {
        if (i == p->base.index)
            continue;
        const uint64_t h = atomic_load(&all->list[i].horizon), n = atomic_load(&all->list[i].next);
        horizon = h < horizon ? h : horizon;
        next = n < next ? n : next;
    }
    /* As in find_bound. */
    return tick < later(horizon, all->delay) ||
           (tick < later(next, all->delay) && tick < later(atomic_load(&p->next), 2 * all->delay) &&
            atomic_load(&all->sent) == atomic_load(&all->read));
}

static void wake(part *p)
{
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->awake);
    pthread_mutex_unlock(&p->lock);
}

/* Called after progress.  In a meeting that is a step for which all wait. */
static void wake_others(const part *by)
{
    run_parts *all = by->base.all;
    if (!atomic_load(&all->asleep))
        return;
    for (uint32_t i = 0; i < all->count; i++) {
        part *p = &all->list[i];
        if (p != by && atomic_load(&p->sleeps) && (by->state != RUNS || can_go_on(p)))
            wake(p);
    }
}

/* ---- turns ---- */

/* Runs up to a time, or until it must wait or check the others.  True: progress was made. */
static bool run_part_until(part *p, uint64_t until)
{
    clk_clock *c = p->sim.clock;
    uint64_t next = 0;
    bool has_done = false;
    for (unsigned ticks = 0; ticks < TURN; ticks++) {
        bool has_next = find_next(p, &next);
        if (is_held(p) && (!has_next || next >= p->bound)) {
            find_bound(p);
            has_next = find_next(p, &next);
        }
        say_what_is_next(p, has_next, next);
        wake_others(p);
        if (!has_next || next >= until || (is_held(p) && next >= p->bound))
            return has_done;
        has_done = true;
        /* A receive of an unknown message ends the tick for now. */
        const uint32_t unknown = p->base.unknown;
        uint64_t now = next;
        do {
            if (!clk_step(c))
                break;
        } while (p->base.unknown <= unknown && clk_next_tick(c, &now) && now == next);
        if (clk_has_failed(c) || p->sim.code) {
            /* Which failure came first is not known here: the run is repeated on one thread, which
             * reports it. */
            atomic_store(&p->base.all->has_failed, true);
            return true;
        }
    }
    return true;
}

/* ---- meetings ---- */

void part_rank_finished(orr_sim *s, uint32_t rank)
{
    part *p = (part *)s->part; /* its first member */
    if (!orr_grow(&p->finished, &p->finished_room, p->finished_count + 1)) {
        run_no_memory(s);
        return;
    }
    p->finished[p->finished_count++] =
        (part_finish){clk_now(s->clock), clk_running_trail(s->clock), rank};
}

static bool finished_before(const run_parts *all, const part_finish *a, const part_finish *b)
{
    return a->at != b->at ? a->at < b->at : clk_is_before(all->clocks[0], a->trail, b->trail);
}

/* While trails are valid: the order in which ranks have finished so far. */
static void put_finished(run_parts *all)
{
    orr_sim *s = all->s;
    size_t at[MOST_PARTS] = {0};
    /* The list of each part is in order, as it ran its events in order. */
    for (;;) {
        const part_finish *first = NULL;
        uint32_t of = 0;
        for (uint32_t i = 0; i < all->count; i++) {
            const part *p = &all->list[i];
            if (at[i] == p->finished_count ||
                (first && !finished_before(all, &p->finished[at[i]], first)))
                continue;
            first = &p->finished[at[i]];
            of = i;
        }
        if (!first)
            break;
        s->finish_order[s->finished++] = first->rank;
        at[of]++;
    }
    for (uint32_t i = 0; i < all->count; i++)
        all->list[i].finished_count = 0;
}

static bool have_all(_Atomic uint64_t *count, const part *p)
{
    /* Counts only grow: the next meeting starts from the current values, so no reset is needed. */
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
    /* One more, so that all events of that time are in everybody's past. */
    return last + 1;
}

/* Is everything done?  Then no part has events and no note is in flight. */
static void rest(part *p)
{
    run_parts *all = p->base.all;
    uint64_t tick;
    if (find_next(p, &tick) || p->ahead.count ||
        atomic_load_explicit(&p->has_mail, memory_order_acquire))
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
        /* Several parts may request it at once: one meeting is enough. */
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
        if (has_done || (is_held(p) && p->bound < until) || (find_next(p, &next) && next < until))
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
        (void)find_next(p, &next); /* everything in flight was sent before the meeting */
        if (!clk_list_trails(p->sim.clock))
            atomic_store(&all->has_failed, true);
        atomic_fetch_add(&all->listed, 1);
        p->state = NUMBERS;
        break;
    default:
        has_done = have_all(&all->listed, p);
        if (has_done && p->base.index == 0 && atomic_load(&all->numbered) == p->meetings) {
            put_finished(all);
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

/* Not for long: in a meeting nobody announces which step is awaited. */
static void nap(part *p, bool is_only_one)
{
    run_parts *all = p->base.all;
    uint64_t tick = UINT64_MAX;
    struct timespec until;
    /* Without an event only mail can help. */
    if (!find_next(p, &tick))
        tick = UINT64_MAX;
    if (p->ahead.count && p->ahead.entries[0].key < tick)
        tick = p->ahead.entries[0].key;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += NAP_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->waits_for, tick);
    atomic_store(&p->sleeps, true);
    atomic_fetch_add(&all->asleep, 1);
    /* From here on a thread that makes progress sees that this one sleeps. A thread of several
     * parts sleeps on its first: it cannot be woken for the others, and looks at them after the
     * nap. */
    if (p->state != RUNS || !is_only_one || !can_go_on(p))
        (void)pthread_cond_timedwait(&p->awake, &p->lock, &until);
    atomic_fetch_sub(&all->asleep, 1);
    atomic_store(&p->sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

static void work(void *context, unsigned who, unsigned members)
{
    run_parts *all = context;
    unsigned looks = 0;
    while (!is_at_end(all)) {
        bool has_done = false;
        for (uint32_t i = who; i < all->count; i += members)
            if (advance(&all->list[i])) {
                has_done = true;
                wake_others(&all->list[i]);
            }
        if (has_done)
            looks = 0;
        else if (++looks % LOOKS_BEFORE_YIELD == 0)
            sched_yield(); /* the awaited thread may need this core */
        if (looks > LOOKS)
            nap(&all->list[who], members == all->count);
    }
    for (uint32_t i = 0; i < all->count; i++)
        wake(&all->list[i]);
}

static bool make_locks(part *p)
{
    pthread_condattr_t how;
    p->has_lock = pthread_mutex_init(&p->lock, NULL) == 0;
    if (!p->has_lock || pthread_condattr_init(&how))
        return false;
    p->has_awake = pthread_condattr_setclock(&how, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(&p->awake, &how) == 0;
    pthread_condattr_destroy(&how);
    return p->has_awake;
}

/* ---- life cycle ---- */

static bool make_part(run_parts *all, uint32_t index)
{
    part *p = &all->list[index];
    orr_sim *s = &p->sim;
    /* A part is a whole simulation that shares read-only data; what is written is replaced
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
    if (has_links(s) && !make_links(&p->base))
        return false;
    if (!make_locks(p) || !s->arena || !s->clock)
        return false;
    s->finish_order = orr_arena_new(s->arena, s->npu_count, uint32_t);
    return s->finish_order && (s->matcher = msg_create(s)) &&
           clk_keep_trails(s->clock, all->clocks, index) && watch_create_part(s, all->s);
}

static void drop_part(part *p)
{
    orr_sim *s = &p->sim;
    if (p->has_awake)
        pthread_cond_destroy(&p->awake);
    if (p->has_lock)
        pthread_mutex_destroy(&p->lock);
    drop_links(&p->base);
    if (s->watch)
        s->watch->ranks = NULL;
    watch_destroy(s->watch);
    if (run_old_outputs) /* these logs were not requested, or one thread would run */
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
    orr_free(p->finished);
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

/* *out NULL and true: it does not pay or is impossible. */
static bool make_all(orr_sim *s, uint32_t count, run_parts **out)
{
    run_parts *all = orr_alloc(1, sizeof *all);
    edges e = {0};
    *out = NULL;
    if (!all)
        return false;
    all->s = s;
    all->count = count;
    all->most_trails = (size_t)s->npu_count / count * TRAILS_A_RANK;
    if (all->most_trails < MOST_TRAILS)
        all->most_trails = MOST_TRAILS;
    if (s->opt.most_trails)
        all->most_trails = s->opt.most_trails;
    all->list = orr_alloc(count, sizeof *all->list);
    all->part_of = orr_alloc(s->npu_count, sizeof *all->part_of);
    all->group_here = orr_alloc(s->groups.count * count + 1, sizeof *all->group_here);
    bool ok = all->list && all->part_of && all->group_here && find_edges(s, &e), is_fit = ok;
    if (ok) {
        ok = is_fit = divide(all, &e);
        is_fit = ok && find_delay(all, &e);
        count_members(all);
    }
    orr_free(e.list);
    for (uint32_t i = 0; i < count && ok && is_fit; i++)
        ok = make_part(all, i);
    if (ok && is_fit)
        ok = (all->crew = orr_crew_create(count, work, all)) != NULL;
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
    /* By one thread and in the order of ranks, which is that of their first events
     * (clk_start_rank). */
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
        ok = (!has_links(s) || add_links(s, &all->list[i].base)) && ok;
    }
    clk_jump(s->clock, now);
    for (uint32_t r = 0; r < s->npu_count; r++)
        s->npus[r].sim = s;
    put_finished(all);
    return ok;
}

/* The obstacle, or NULL: records or limits per event; networks with contention everywhere, or with
 * routes found on demand; state shared by ranks other than messages. */
static const char *find_obstacle(const orr_sim *s)
{
    if (s->rules != &run_rules_ours)
        return "programs under their old names have one thread";
    if (s->fold || s->lockstep)
        return "ranks that fold are simulated by one thread";
    if (s->opt.max_events)
        return "events are limited";
    if (s->opt.records_goal || s->opt.trace_log || s->system.trace_enabled || s->opt.logging ||
        s->system.track_local_mem)
        return "events are recorded in global order";
    if (has_links(s) && !can_divide_links(s))
        return "routes depend on the order of all messages";
    if (s->net_ops != &orr__net_unaware && !has_links(s))
        return "on this network all messages share one state";
    if (s->opt.rendezvous)
        return "a rendezvous takes no time";
    if (s->system.is_agreed || s->system.inter != CFG_ASCENDING)
        return "ranks agree on an order";
    if (s->opt.steps > 1)
        return "there are several steps";
    if (sys_has_plans(s) || fold_has_custom(s) || s->opt.algorithms)
        return "collectives are plans, traces or your own";
    if (s->opt.compute)
        return "the compute model is your own";
    if (fold_has_memory_nodes(s))
        return "ranks share remote memory";
    if (s->watch && s->watch->served)
        return "requests are served";
    return !s->watch || s->has_started ? "it is run event by event" : NULL;
}

const char *orr_sim_threads_why(const orr_sim *s)
{
    if (s->threads_why)
        return s->threads_why;
    return s->opt.threads > 1 && !s->parts ? "ranks that fold are simulated by one thread" : "";
}

orr_code parts_run(orr_sim *s, bool *is_done, orr_error *err)
{
    uint32_t count = s->opt.threads > MOST_PARTS ? MOST_PARTS : s->opt.threads;
    run_parts *all;
    *is_done = false;
    if (count < 2)
        return ORR_OK;
    if (count > s->npu_count)
        count = s->npu_count;
    /* Equal parts: the slowest decides, and only equal cuts are tried. */
    while (count > 1 && s->npu_count % count)
        count--;
    s->threads_why = count < s->opt.threads ? "parts have equally many ranks" : NULL;
    const char *obstacle = find_obstacle(s);
    if (obstacle)
        s->threads_why = obstacle;
    if (count < 2 || obstacle)
        return ORR_OK;
    if (!make_all(s, count, &all))
        return orr_no_memory(err);
    if (!all) {
        s->threads_why = "messages between parts may take no time";
        return ORR_OK;
    }
    s->parts = all;
    start(all);
    orr_crew_run(all->crew);
    const bool has_failed = atomic_load(&all->has_failed);
    uint32_t finished = 0;
    for (uint32_t i = 0; i < count; i++)
        finished += all->list[i].sim.finished;
    if (!atomic_load(&all->is_stopped) && (has_failed || finished < s->npu_count)) {
        s->threads_why = "the run does not finish";
        return run_build_again(s, false, err); /* on one thread, which reports the error */
    }
    *is_done = true;
    return gather(all) ? ORR_OK : orr_no_memory(err);
}
