/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_parts.c - a schedule on several threads, with the same results as on one
 * (docs/design/loggops.md, "Threads").
 *
 * Hosts are distributed over parts, each a simulation with its own queue.  Parts run in parallel
 * for a round, then exchange messages:
 *
 *     alone    no message leaves its part: one round is the whole run
 *     window   from the first event on, while nothing can arrive from another part: a message
 *              takes o + L, and a large one, whose sender waits, does not end before it has
 *              arrived and its receiver is free
 *     tick     the events of one time that are known by now; ends of sends are reported to the
 *              parts of their senders
 *
 * Events of one time run by number, and numbers follow the order of issue.  So after a round the
 * events of all parts that issued others are merged by time and number, as one thread would have
 * run them, and what they issued is numbered in that order.  In a window an event may be compared
 * with another before both have final numbers; within a part provisional ones have the same order.
 *
 * If rounds have few events, threads do not pay, and one thread does the rest.  Counts decide that,
 * never a clock.  Invariant: clocks, waits, busy groups and recorded lengths of a host are written
 * only by its part.  Cost: 24 bytes and a comparison per event that issues others. */
#include "lgs_body.h"

#include "base/memory/sort.h"
#include "base/threads/pool.h"

#include <stdlib.h>

enum {
    LEAST_EVENTS = 1 << 20, /* of a run whose independent parts use threads by default */
    ROUNDS_ASKED = 512,     /* number of rounds before deciding whether they pay */
    ROUND_COSTS = 40,       /* cost of a barrier, in events */
    FEW_IN_WINDOW = 1 << 14,
    MANY_IN_WINDOW = 1 << 17,
    FIRST_SPAN = 1000, /* ns */
    STEPS_BETWEEN_LOOKS = 1024
};
#define TOO_LONG 0x1p62 /* ns; a run that may take longer uses one thread: sums may wrap */
/* limit on a part's work, relative to the mean, when clusters are distributed */
#define UNEVEN 1.2

static const lgs_rules parted_rules = {
    .name = "own",
    .waits_for_release = true,
    .empty_costs_a_byte = true,
    .asks_the_sender = true,
    .buffers_messages = true,
    .is_parted = true,
};

typedef struct parts {
    lgs_sim *s;
    lgs_part **list;
    uint32_t count;
    uint8_t *part_of;
    uint32_t *less_of, *change_of;
    bool crosses;   /* messages cross parts */
    uint64_t ahead; /* minimum time until a message arrives */
    uint64_t span;  /* of a window: `ahead`, or less if that has too many events */

    lgs_mode mode;  /* of this round */
    bool is_ending; /* its second half */
    uint64_t from, to;
    uint64_t rounds, steps, steps_before;
    /* maximum steps of a part, summed over the rounds since the last decision whether they pay */
    uint64_t longest;
    orr_crew *crew;
} parts;

/* ---- distribution of hosts over parts */

/* Union-find with path halving: nearly constant per message. */
static uint32_t root_of(uint32_t *up, uint32_t h)
{
    while (up[h] != h) {
        up[h] = up[up[h]];
        h = up[h];
    }
    return h;
}

/* Joins hosts that exchange messages of more than `size` bytes; with ANY_SIZE, any. */
#define ANY_SIZE UINT64_MAX

static void join_hosts(const lgs_sim *s, uint64_t size, uint32_t *up)
{
    for (uint32_t h = 0; h < s->hosts; h++)
        up[h] = h;
    for (uint32_t h = 0; h < s->hosts; h++) {
        const orr__goal_node *n = orr__goal_nodes(s->goal, h);
        const uint32_t ops = orr__goal_ops(s->goal, h);
        for (uint32_t i = 0; i < ops; i++) {
            if (n[i].kind != ORR_GOAL_SEND || (size != ANY_SIZE && n[i].size <= size))
                continue;
            const uint32_t a = root_of(up, h), b = root_of(up, n[i].peer);
            /* The lowest host is the root, so that clusters do not depend on the order of
             * operations. */
            up[a > b ? a : b] = a > b ? b : a;
        }
    }
}

typedef struct cluster {
    uint64_t work;
    uint32_t root;
    uint8_t part;
} cluster;

/* Ties by the lowest host: the same parts in every run. */
static int by_work(const void *a, const void *b)
{
    const cluster *x = a, *y = b;
    if (x->work != y->work)
        return x->work > y->work ? -1 : 1;
    return x->root < y->root ? -1 : x->root > y->root;
}

/* Largest first, each to the part with the least work.  False: the parts would be too uneven. */
static bool deal(const parts *all, const uint32_t *up, cluster *of)
{
    const lgs_sim *s = all->s;
    uint64_t work[LGS_MOST_PARTS] = {0}, total = 0, most = 0;
    uint32_t count = 0;
    for (uint32_t h = 0; h < s->hosts; h++)
        of[h] = (cluster){.root = h};
    for (uint32_t h = 0; h < s->hosts; h++) {
        /* Plus one, so that hosts without operations are distributed evenly too. */
        const uint64_t ops = (uint64_t)orr__goal_ops(s->goal, h) + 1;
        of[up[h]].work += ops; /* all point to their root */
        total += ops;
    }
    for (uint32_t h = 0; h < s->hosts; h++)
        if (of[h].work)
            of[count++] = of[h];
    orr_sort(of, count, sizeof *of, by_work);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t least = 0;
        for (uint32_t p = 1; p < all->count; p++)
            if (work[p] < work[least])
                least = p;
        work[least] += of[i].work;
        most = lgs_max(most, work[least]);
        all->part_of[of[i].root] = (uint8_t)least;
    }
    for (uint32_t h = 0; h < s->hosts; h++)
        all->part_of[h] = all->part_of[up[h]];
    return (double)most <= UNEVEN * (double)total / all->count;
}

/* Round-robin blocks of 2^shift hosts; the largest shift: contiguous ranges. */
static uint32_t part_by_turns(const parts *all, uint32_t h, uint32_t shift)
{
    const uint32_t block = h >> shift;
    return block % all->count;
}

static bool is_even(const parts *all, uint32_t shift)
{
    uint64_t work[LGS_MOST_PARTS] = {0}, total = 0, most = 0;
    for (uint32_t h = 0; h < all->s->hosts; h++) {
        const uint64_t ops = (uint64_t)orr__goal_ops(all->s->goal, h) + 1;
        uint64_t *of = &work[part_by_turns(all, h, shift)];
        *of += ops;
        total += ops;
        most = lgs_max(most, *of);
    }
    return (double)most <= UNEVEN * (double)total / all->count;
}

/* If ranks differ by stage, parts with some of each have work at the same time.  So blocks are
 * distributed round-robin, with the size that minimises first the messages whose sender waits, then
 * all messages between parts. */
static bool deal_blocks(const parts *all)
{
    enum { MOST_SHIFTS = 32 };
    const lgs_sim *s = all->s;
    uint64_t large[MOST_SHIFTS] = {0}, any[MOST_SHIFTS] = {0};
    uint32_t shifts = 0, best = MOST_SHIFTS;
    /* Only block sizes that give every part one. */
    while (shifts < MOST_SHIFTS && (s->hosts - 1) >> shifts >= all->count - 1)
        shifts++;
    for (uint32_t h = 0; h < s->hosts; h++) {
        const orr__goal_node *n = orr__goal_nodes(s->goal, h);
        const uint32_t ops = orr__goal_ops(s->goal, h);
        for (uint32_t i = 0; i < ops; i++) {
            if (n[i].kind != ORR_GOAL_SEND)
                continue;
            for (uint32_t k = 0; k < shifts; k++) {
                const bool crosses = part_by_turns(all, h, k) != part_by_turns(all, n[i].peer, k);
                any[k] += crosses;
                large[k] += crosses && n[i].size > s->opt.S;
            }
        }
    }
    for (uint32_t k = 0; k < shifts; k++)
        if ((best == MOST_SHIFTS || large[k] < large[best] ||
             (large[k] == large[best] && any[k] < any[best])) &&
            is_even(all, k))
            best = k;
    for (uint32_t h = 0; h < s->hosts && best < MOST_SHIFTS; h++)
        all->part_of[h] = (uint8_t)part_by_turns(all, h, best);
    return best < MOST_SHIFTS;
}

/* Contiguous ranges by work, if neither clusters nor blocks are even. */
static void cut(const parts *all)
{
    const lgs_sim *s = all->s;
    const double each = ((double)s->goal->node_count + s->hosts) / all->count;
    double before = 0;
    for (uint32_t h = 0; h < s->hosts; h++) {
        const double ops = orr__goal_ops(s->goal, h);
        /* By the middle of its work, so a large host goes where most of it lies. */
        const uint32_t part = (uint32_t)((before + ops / 2) / each);
        all->part_of[h] = (uint8_t)(part < all->count ? part : all->count - 1);
        before += ops + 1;
    }
}

/* Best is to separate hosts that never exchange a message; then those between which no sender
 * waits; then blocks. */
static bool deal_hosts(parts *all)
{
    const lgs_sim *s = all->s;
    uint32_t *up = orr_alloc(s->hosts, sizeof *up);
    cluster *of = orr_alloc(s->hosts, sizeof *of);
    const uint64_t sizes[] = {ANY_SIZE, s->opt.S};
    bool is_dealt = false;
    for (int i = 0; i < 2 && up && of && !is_dealt; i++) {
        join_hosts(s, sizes[i], up);
        for (uint32_t h = 0; h < s->hosts; h++)
            up[h] = root_of(up, h);
        is_dealt = deal(all, up, of);
        all->crosses = i > 0 || !is_dealt;
    }
    if (!is_dealt && !deal_blocks(all))
        cut(all);
    orr_free(up);
    orr_free(of);
    return up && of;
}

/* ---- making them */

static void drop_part(lgs_part *p, const lgs_sim *s)
{
    if (!p)
        return;
    lgs_sim *own = &p->sim;
    lgs_queue_fini(&own->queue);
    lgs_match_fini(&own->match);
    orr_free(own->batch[0].items);
    orr_free(own->batch[1].items);
    orr_buf_fini(&own->sort_room);
    if (own->watch && own->watch != s->watch) {
        orr_free(own->watch->spans);
        orr_free(own->watch->searches);
        orr_free(own->watch->pairs);
        orr_free(own->watch);
    }
    orr_free(p->issued);
    orr_free(p->keys);
    orr_free(p->final);
    orr_free(p->log);
    orr_free(p->recorded);
    orr_free(p->groups);
    orr_free(p->less);
    orr_free(p->changes);
    orr_free(p->state);
    orr_free(p->large);
    for (uint32_t i = 0; i < LGS_MOST_PARTS; i++) {
        orr_free(p->letters[0][i].list);
        orr_free(p->letters[1][i].list);
        orr_free(p->endings[i].list);
    }
    orr_free(p);
}

static void clear_letters(lgs_letters *l)
{
    l->count = 0;
    l->first = l->first_large = UINT64_MAX;
}

static lgs_part *make_part(const parts *all, uint8_t index)
{
    const lgs_sim *s = all->s;
    lgs_part *p = orr_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    lgs_sim *own = &p->sim;
    own->opt = s->opt;
    own->rules = &parted_rules;
    own->goal = s->goal;
    own->nodes = s->nodes;
    own->ranks = s->ranks;
    own->edges = s->edges;
    own->hosts = s->hosts;
    own->cpus = s->cpus;
    own->nics = s->nics;
    own->G_whole = s->G_whole;
    own->is_G_whole = s->is_G_whole;
    own->clocks = s->clocks;
    own->stride = s->stride;
    own->waits = s->waits;
    own->ready = s->ready;
    own->finished = s->finished;
    own->busy = s->busy;
    own->noise = s->noise;
    own->walks = s->walks;
    own->has_wildcards = s->has_wildcards;
    own->part = p;
    p->part_of = all->part_of;
    p->less_of = all->less_of;
    p->change_of = all->change_of;
    p->index = index;
    p->large_from = p->kept_first = p->next = UINT64_MAX;
    for (uint32_t i = 0; i < all->count; i++) {
        clear_letters(&p->letters[0][i]);
        clear_letters(&p->letters[1][i]);
    }
    bool is_good =
        lgs_queue_init(&own->queue) && lgs_match_init(&own->match, s->hosts, s->match.has_lists);
    if (s->watch && (own->watch = orr_alloc(1, sizeof *own->watch))) {
        own->watch->sent_at = s->watch->sent_at; /* by host, like clocks */
        own->watch->longest[0] = s->watch->longest[0];
        own->watch->longest[1] = s->watch->longest[1];
    }
    is_good = is_good && (!s->watch || own->watch);
    if (is_good)
        return p;
    drop_part(p, s);
    return NULL;
}

/* Like lgs_start_all: numbered by host. */
static void start(const parts *all)
{
    lgs_sim *s = all->s;
    for (uint32_t h = 0; h < s->hosts && !s->has_failed; h++) {
        lgs_sim *own = &all->list[all->part_of[h]]->sim;
        const uint32_t ops = orr__goal_ops(s->goal, h);
        /* One series of numbers, handed from part to part, as on one thread. */
        own->events = s->events;
        own->batches = 0;
        lgs_batch *b = lgs_touch(own, h);
        for (uint32_t i = 0; i < ops; i++) {
            const orr__goal_node *n = lgs_node(s, h, i);
            if (n->waits == 0)
                lgs_release(own, b, i, n->kind, 0);
        }
        if (!own->has_failed)
            lgs_issue(own, b, true, &parted_rules);
        s->has_failed |= own->has_failed;
        s->events = own->events;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        lgs_part *p = all->list[i];
        p->sim.events = s->events;
        p->next = lgs_queue_first(&p->sim.queue);
    }
    s->has_started = true;
}

/* ---- a round of one part */

/* Numbers of the previous round are final now; read the letters. */
static void take_letters(const parts *all, lgs_part *p)
{
    lgs_sim *s = &p->sim;
    for (uint32_t i = 0; i < all->count; i++) {
        const lgs_part *from = all->list[i];
        const lgs_letters *in = &from->letters[!p->is_odd][p->index];
        for (size_t k = 0; k < in->count && !s->has_failed; k++) {
            const lgs_letter *l = &in->list[k];
            const uint32_t e = lgs_event_take(&s->queue);
            if (!e) {
                s->has_failed = true;
                return;
            }
            s->queue.events[e] = (lgs_event){.time = l->time,
                                             .number = from->final[l->number - LGS_PROVISIONAL],
                                             .host = l->host,
                                             .node = l->node};
            if (lgs_node(s, l->host, l->node)->size > s->opt.S) {
                if (!orr_grow(&p->state, &p->state_room, (size_t)e + 1) ||
                    !orr_grow(&p->large, &p->large_room, p->large_count + 1)) {
                    s->has_failed = true;
                    return;
                }
                p->state[e] = LGS_STATE_QUEUED;
                p->large[p->large_count++] = e;
                lgs_min(&p->large_from, l->time);
            }
            s->has_failed |= !lgs_queue_push(&s->queue, e);
        }
    }
}

/* At the beginning of a round, not at the end of the previous one, so that each part does it on its
 * own thread. */
static void settle(const parts *all, lgs_part *p)
{
    lgs_sim *s = &p->sim;
    lgs_event *events = s->queue.events;
    for (size_t i = 0; i < p->issued_count && !s->has_failed; i++) {
        const uint32_t e = p->issued[i];
        if (!e || events[e].number != LGS_PROVISIONAL + i)
            continue; /* of another part, or freed and perhaps reused */
        /* In place: provisional numbers of a part have the order of its final ones, so lists and
         * heaps stay valid. */
        events[e].number = p->final[i];
        if (p->mode == LGS_MODE_TICK)
            s->has_failed |= !lgs_queue_push(&s->queue, e);
    }
    for (size_t i = 0; i < p->group_count; i++) {
        lgs_busy *g = p->groups[i];
        if (g->first >= LGS_PROVISIONAL && g->first != UINT64_MAX)
            g->first = p->final[g->first - LGS_PROVISIONAL];
    }
    p->group_count = 0;
    /* Two alternating sets of letters: while a part writes one, the others read that of the
     * previous round. */
    p->is_odd = !p->is_odd;
    for (uint32_t i = 0; i < all->count; i++) {
        clear_letters(&p->letters[p->is_odd][i]);
        p->endings[i].count = 0;
    }
}

/* Earliest end of a large message from another part. */
static void look_at_large(lgs_part *p)
{
    lgs_sim *s = &p->sim;
    size_t left = 0;
    p->large_from = UINT64_MAX;
    for (size_t i = 0; i < p->large_count; i++) {
        const uint32_t e = p->large[i];
        /* It was matched, or waits for its receive (parked): no longer a matter of time alone. */
        if (p->state[e] != LGS_STATE_QUEUED)
            continue;
        const lgs_event *ev = &s->queue.events[e];
        const orr__goal_node *n = lgs_node(s, ev->host, ev->node);
        const uint64_t free_at =
            lgs_max(*lgs_cpu(s, n->peer, n->cpu), *lgs_recv_nic(s, n->peer, n->nic));
        lgs_min(&p->large_from, lgs_max(ev->time, free_at));
        p->large[left++] = e;
    }
    p->large_count = left;
}

static void run_round(const parts *all, lgs_part *p)
{
    lgs_sim *s = &p->sim;
    orr_error unused = {0};
    settle(all, p);
    take_letters(all, p);
    p->mode = all->mode;
    s->events = LGS_PROVISIONAL;
    p->issued_count = p->log_count = p->less_count = 0;
    for (; p->change_count; p->change_count--)
        p->change_of[p->changes[p->change_count - 1].host] = 0;
    p->kept_first = UINT64_MAX;
    if (s->watch)
        s->watch->span_count = s->watch->search_count = s->watch->pair_count = 0;
    while (!s->has_failed && lgs_queue_first(&s->queue) < all->to) {
        const uint32_t e = lgs_queue_pop(&s->queue);
        lgs_look_ahead(s);
        lgs_step(s, e, &parted_rules, &unused);
        p->steps++;
    }
    p->ended_from = p->issued_count;
    p->next = lgs_queue_first(&s->queue);
    lgs_min(&p->next, p->kept_first);
    /* The bound is updated only when it has been reached: until then it is a valid lower bound,
     * good enough to end windows. */
    if (p->large_from <= all->from)
        look_at_large(p);
}

/* ---- ends of sends reported by other parts
 *
 * The events of this part in the same tick have run, some of which come after the one that ended
 * the send.  They are not affected: the clocks of the sender advance to now only.  But what the
 * send releases does depend on them: a receive is issued for when its CPU was free at that point,
 * and an operation that also waited for one of those events is released by the later of the two. */

void lgs_part_less(lgs_sim *s, const lgs_batch *b, uint64_t place)
{
    lgs_part *p = s->part;
    if (p->mode != LGS_MODE_TICK)
        return;
    const uint32_t known = p->less_of[place];
    if (known < p->less_count && p->less[known].place == place && p->less[known].number > p->number)
        return;
    if (p->less_count >= UINT32_MAX || !orr_grow(&p->less, &p->less_room, p->less_count + 1)) {
        s->has_failed = true;
        return;
    }
    const uint32_t at = (uint32_t)p->less_count++;
    p->less_of[place] = at;
    p->less[at] = (lgs_less){place, p->number, b->host, b->count, at};
}

/* An operation is released by the later of its last two edges.  If an event of this part with a
 * larger number met an edge of it in this tick, that event would have released it on one thread,
 * and its number determines the position. */
static lgs_issue_key key_of(const lgs_part *p, uint32_t host, const lgs_ready *r)
{
    const uint64_t place = p->sim.ranks[host].first_node + r->node;
    const uint32_t known = p->less_of[place];
    const lgs_less *l = known < p->less_count ? &p->less[known] : NULL;
    if (l && l->place == place && l->number > p->number)
        return (lgs_issue_key){l->number, lgs_part_place(r->kind, l->order, false, l->tie),
                               host + 1};
    return (lgs_issue_key){p->number, lgs_part_order(r), host + 1};
}

/* When the CPU was free right after the event with that number. */
static uint64_t cpu_after(lgs_part *p, uint32_t host, uint8_t cpu, uint64_t number)
{
    uint64_t free_at = *lgs_cpu(&p->sim, host, cpu);
    /* From the latest change backwards: the oldest one after the event recorded the clock at that
     * point. */
    for (uint32_t i = p->change_of[host]; i && p->changes[i - 1].number > number;
         i = p->changes[i - 1].previous)
        if (p->changes[i - 1].cpu == cpu)
            free_at = p->changes[i - 1].before;
    return free_at;
}

static void end_send(lgs_part *p, const lgs_ending *ending)
{
    lgs_sim *s = &p->sim;
    p->number = ending->number;
    s->now = ending->when;
    s->batches = 0;
    lgs_batch *b = lgs_touch(s, ending->host);
    lgs_finish(s, ending->host, ending->node & ~(uint32_t)LGS_MESSAGE, ending->when);
    for (uint32_t i = 0; i < b->count && !s->has_failed; i++) {
        b->items[i].order = i & LGS_MOST_ORDER;
        const lgs_ready *r = &b->items[i];
        const lgs_issue_key key = key_of(p, b->host, r);
        const uint64_t free_at =
            cpu_after(p, b->host, lgs_node(s, b->host, r->node)->cpu, key.number);
        const uint32_t e = lgs_event_take(&s->queue);
        if (!e) {
            s->has_failed = true;
            return;
        }
        s->queue.events[e] = (lgs_event){.time = lgs_max(free_at, lgs_max(r->at, s->now)),
                                         .number = s->events++,
                                         .host = b->host,
                                         .node = r->node};
        lgs_part_take(s, e, key);
    }
    lgs_raise(lgs_cpu(s, ending->host, ending->cpu), ending->when);
    lgs_raise(lgs_send_nic(s, ending->host, ending->nic), ending->when);
}

typedef struct kept {
    lgs_issue_key key;
    uint32_t event;
} kept;

static int by_key(const void *a, const void *b)
{
    const lgs_issue_key *x = &((const kept *)a)->key, *y = &((const kept *)b)->key;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->sub != y->sub)
        return x->sub < y->sub ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sorts by the event of the tick that released them. Endings arrive by the event that ended them,
 * but what they release may belong to a later event of the tick (key_of). */
static void sort_ended(lgs_part *p)
{
    lgs_sim *s = &p->sim;
    const size_t count = p->issued_count - p->ended_from;
    s->sort_room.len = 0;
    kept *list = (kept *)(void *)orr_buf_reserve(&s->sort_room, (count + 1) * sizeof *list);
    if (!list) {
        s->has_failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = (kept){p->keys[p->ended_from + i], p->issued[p->ended_from + i]};
    orr_sort(list, count, sizeof *list, by_key);
    for (size_t i = 0; i < count; i++) {
        const size_t at = p->ended_from + i;
        p->keys[at] = list[i].key;
        p->issued[at] = list[i].event;
        s->queue.events[list[i].event].number = LGS_PROVISIONAL + at;
    }
}

/* In the order of the events that ended them. */
static void end_sends(const parts *all, lgs_part *p)
{
    size_t at[LGS_MOST_PARTS] = {0};
    while (!p->sim.has_failed) {
        const lgs_ending *first = NULL;
        uint32_t of = 0;
        for (uint32_t i = 0; i < all->count; i++) {
            const lgs_endings *in = &all->list[i]->endings[p->index];
            if (at[i] < in->count && (!first || in->list[at[i]].number < first->number)) {
                first = &in->list[at[i]];
                of = i;
            }
        }
        if (!first)
            break;
        at[of]++;
        end_send(p, first);
    }
    if (!p->sim.has_failed)
        sort_ended(p);
    lgs_min(&p->next, p->kept_first);
}

/* Numbers are local to the part.  They order events within the part, which is all that is needed if
 * no message leaves it. */
static void run_alone(const parts *all, lgs_part *p)
{
    lgs_sim *s = &p->sim;
    orr_error unused = {0};
    uint32_t e;
    while (!s->has_failed) {
        if (p->steps++ % STEPS_BETWEEN_LOOKS == 0 &&
            atomic_load_explicit(&all->s->must_stop, memory_order_relaxed))
            break;
        if (!(e = lgs_queue_pop(&s->queue)))
            break;
        lgs_look_ahead(s);
        lgs_step(s, e, &parted_rules, &unused);
    }
}

static void work(void *context, unsigned who, unsigned members)
{
    const parts *all = context;
    for (uint32_t i = who; i < all->count; i += members) {
        if (all->mode == LGS_MODE_ALONE)
            run_alone(all, all->list[i]);
        else if (all->is_ending)
            end_sends(all, all->list[i]);
        else
            run_round(all, all->list[i]);
    }
}

/* ---- after a round: numbers, and what was recorded */

static bool make_room(const parts *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        lgs_part *p = all->list[i];
        if (!orr_grow(&p->final, &p->final_room, p->issued_count + 1))
            return false;
    }
    return true;
}

/* The records of one event. */
static bool record(lgs_watch *to,
                   const lgs_watch *from,
                   const lgs_recorded *since,
                   const lgs_recorded *until)
{
    const size_t spans = until->spans - since->spans, searches = until->searches - since->searches,
                 pairs = until->pairs - since->pairs;
    if (!orr_grow(&to->spans, &to->span_room, to->span_count + spans) ||
        !orr_grow(&to->searches, &to->search_room, to->search_count + searches) ||
        !orr_grow(&to->pairs, &to->pair_room, to->pair_count + pairs))
        return false;
    for (size_t i = 0; i < spans; i++)
        to->spans[to->span_count++] = from->spans[since->spans + i];
    for (size_t i = 0; i < searches; i++)
        to->searches[to->search_count++] = from->searches[since->searches + i];
    for (size_t i = 0; i < pairs; i++)
        to->pairs[to->pair_count++] = from->pairs[since->pairs + i];
    return true;
}

/* A merge of sorted logs, one per part.  The first and the second are known, so that a run of
 * events from one part costs one comparison each and no search. */
typedef struct cursor {
    lgs_part *p;
    size_t at, end;
    uint64_t time, number, order; /* of its current entry; in a tick: number, sub and order */
} cursor;

static inline bool is_before(const cursor *a, const cursor *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    return a->number != b->number ? a->number < b->number : a->order < b->order;
}

/* Which cursor is first, and which second (`count`: none). */
static uint32_t find_first(const cursor *c, uint32_t count, uint32_t *second)
{
    uint32_t first = count;
    *second = count;
    for (uint32_t i = 0; i < count; i++) {
        if (c[i].at == c[i].end)
            continue;
        if (first == count || is_before(&c[i], &c[first])) {
            *second = first;
            first = i;
        } else if (*second == count || is_before(&c[i], &c[*second])) {
            *second = i;
        }
    }
    return first;
}

static inline void stand_at_log(cursor *c)
{
    if (c->at == c->end)
        return;
    const lgs_logged *l = &c->p->log[c->at];
    c->time = l->time;
    /* Numbers given in this round are final by the time the merge reaches them, since their issuers
     * came before. */
    c->number = l->number < LGS_PROVISIONAL ? l->number : c->p->final[l->number - LGS_PROVISIONAL];
}

/* Merges the events of all parts in the order of one thread and numbers what they issued; in a
 * tick, numbering is separate. */
static bool merge_logs(const parts *all, bool gives_numbers)
{
    lgs_sim *s = all->s;
    cursor c[LGS_MOST_PARTS];
    for (uint32_t i = 0; i < all->count; i++) {
        c[i] = (cursor){.p = all->list[i], .end = all->list[i]->log_count};
        stand_at_log(&c[i]);
    }
    uint64_t next = s->events;
    for (uint32_t second, first; (first = find_first(c, all->count, &second)) < all->count;) {
        cursor *f = &c[first];
        lgs_part *p = f->p;
        do {
            const lgs_logged *l = &p->log[f->at];
            /* Counts run through the log: this event issued what was added to the one before. */
            for (size_t i = f->at ? l[-1].issued : 0; i < l->issued && gives_numbers; i++)
                p->final[i] = next++;
            static const lgs_recorded none = {0, 0, 0};
            if (s->watch && !record(s->watch, p->sim.watch, f->at ? &p->recorded[f->at - 1] : &none,
                                    &p->recorded[f->at]))
                return false;
            f->at++;
            stand_at_log(f);
        } while (f->at < f->end && (second == all->count || is_before(f, &c[second])));
    }
    if (gives_numbers)
        s->events = next;
    return true;
}

static inline void stand_at_key(cursor *c)
{
    if (c->at == c->end)
        return;
    c->time = c->p->keys[c->at].number;
    c->number = c->p->keys[c->at].sub;
    c->order = c->p->keys[c->at].order;
}

/* What a tick issued: first by its events, then by ended sends. */
static void merge_keys(const parts *all)
{
    cursor c[2 * LGS_MOST_PARTS];
    const uint32_t count = 2 * all->count;
    for (uint32_t i = 0; i < all->count; i++) {
        lgs_part *p = all->list[i];
        /* Two sorted lists per part: issued by its events, and released by endings. */
        c[2 * i] = (cursor){.p = p, .end = p->ended_from};
        c[2 * i + 1] = (cursor){.p = p, .at = p->ended_from, .end = p->issued_count};
        stand_at_key(&c[2 * i]);
        stand_at_key(&c[2 * i + 1]);
    }
    for (uint32_t second, first; (first = find_first(c, count, &second)) < count;) {
        cursor *f = &c[first];
        do {
            f->p->final[f->at++] = all->s->events++;
            stand_at_key(f);
        } while (f->at < f->end && (second == count || is_before(f, &c[second])));
    }
}

/* ---- back to one simulation */

static uint32_t copy_event(lgs_sim *s, const lgs_event *from)
{
    const uint32_t e = lgs_event_take(&s->queue);
    if (e)
        s->queue.events[e] = (lgs_event){
            .time = from->time, .number = from->number, .host = from->host, .node = from->node};
    else
        s->has_failed = true;
    return e;
}

static void gather_queue(lgs_sim *s, lgs_part *p)
{
    for (uint32_t e; !s->has_failed && (e = lgs_queue_pop(&p->sim.queue)) != 0;) {
        const uint32_t copy = copy_event(s, &p->sim.queue.events[e]);
        s->has_failed |= !copy || !lgs_queue_push(&s->queue, copy);
    }
}

/* By group, from the part that has its host: lists of events are rebuilt, since indices differ in
 * the single queue. */
static void gather_busy(lgs_sim *s, const parts *all)
{
    const size_t cpus = (size_t)s->hosts * s->cpus;
    const size_t count = s->busy ? cpus * (1 + 2 * (size_t)s->nics) : 0;
    for (size_t i = 0; i < count; i++) {
        /* The inverse of lgs_busy_group. */
        const size_t cpu = i < cpus ? i : (i - cpus) / s->nics % cpus;
        lgs_part *p = all->list[all->part_of[cpu / s->cpus]];
        lgs_list old = s->busy[i].waiting;
        s->busy[i].waiting = (lgs_list){0};
        while (!s->has_failed && !lgs_list_is_empty(&old)) {
            const uint32_t e = lgs_list_pop(p->sim.queue.events, &old);
            const uint32_t copy = copy_event(s, &p->sim.queue.events[e]);
            if (copy)
                lgs_list_push(s->queue.events, &s->busy[i].waiting, copy);
        }
    }
}

typedef struct waiting {
    uint64_t number;
    lgs_key key;
    uint32_t event;
    lgs_side side;
} waiting;

static int by_arrival(const void *a, const void *b)
{
    const waiting *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* In order of arrival, which is kept per host. */
static void gather_matches(lgs_sim *s, lgs_part *p)
{
    const lgs_match *m = &p->sim.match;
    const lgs_event *events = p->sim.queue.events;
    waiting *list = NULL;
    size_t count = 0, room = 0;
    for (size_t i = 0; i < m->slot_count && !s->has_failed; i++) {
        const uint32_t last = m->slots[i].last & 0x7fffffffu;
        const lgs_side side = m->slots[i].last >> 31 ? LGS_MESSAGES : LGS_RECEIVES;
        for (uint32_t e = last ? events[last].next : 0; e; e = e == last ? 0 : events[e].next) {
            if (!orr_grow(&list, &room, count + 1)) {
                s->has_failed = true;
                break;
            }
            list[count++] = (waiting){events[e].number, m->slots[i].key, e, side};
        }
    }
    if (count)
        orr_sort(list, count, sizeof *list, by_arrival);
    for (size_t i = 0; i < count && !s->has_failed; i++) {
        const uint32_t copy = copy_event(s, &events[list[i].event]);
        s->has_failed |=
            !copy || !lgs_match_add(&s->match, &s->queue, list[i].side, list[i].key, copy);
    }
    orr_free(list);
}

static bool has_failed(const parts *all)
{
    bool failed = all->s->has_failed;
    for (uint32_t i = 0; i < all->count; i++)
        failed |= all->list[i]->sim.has_failed;
    return failed;
}

static void gather(parts *all)
{
    lgs_sim *s = all->s;
    s->has_failed = has_failed(all);
    if (s->has_failed)
        return;
    for (uint32_t i = 0; i < all->count && all->mode != LGS_MODE_ALONE; i++)
        settle(all, all->list[i]); /* flush what was held back */
    for (uint32_t i = 0; i < all->count && all->mode != LGS_MODE_ALONE; i++)
        take_letters(all, all->list[i]);
    s->has_failed = has_failed(all);
    for (uint32_t i = 0; i < all->count; i++) {
        lgs_part *p = all->list[i];
        s->messages += p->sim.messages;
        s->finished_count += p->sim.finished_count;
        s->waiting += p->sim.waiting;
        s->now = lgs_max(s->now, p->sim.now);
        gather_queue(s, p);
        gather_matches(s, p);
    }
    gather_busy(s, all);
}

/* ---- the whole run */

/* The time of the first event, and how far parts can run from there. */
static bool plan_round(parts *all)
{
    uint64_t from = UINT64_MAX, large = UINT64_MAX;
    bool is_parked = false;
    for (uint32_t i = 0; i < all->count; i++) {
        const lgs_part *p = all->list[i];
        lgs_min(&from, p->next);
        lgs_min(&large, p->large_from);
        is_parked |= p->parked > 0;
        for (uint32_t k = 0; k < all->count; k++) {
            lgs_min(&from, p->letters[p->is_odd][k].first);
            lgs_min(&large, p->letters[p->is_odd][k].first_large);
        }
    }
    if (from == UINT64_MAX)
        return false;
    /* A large message that waits for its receive may end at any event of its receiver's part: then
     * only ticks are safe.  The same holds if windows have no length (o + L is 0). */
    const bool is_tick = is_parked || large <= from || !all->span;
    all->mode = is_tick ? LGS_MODE_TICK : LGS_MODE_WINDOW;
    all->from = from;
    all->to = from + (is_tick ? 1 : all->span);
    if (!is_tick)
        lgs_min(&all->to, large);
    return true;
}

static bool has_endings(const parts *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t k = 0; k < all->count; k++)
            if (all->list[i]->endings[k].count)
                return true;
    return false;
}

/* Too many events in a window would make long lists, and a long wait for a stop. */
static void fit_span(parts *all, uint64_t steps)
{
    if (all->mode != LGS_MODE_WINDOW)
        return;
    if (steps > MANY_IN_WINDOW && all->span > 1)
        all->span /= 2;
    else if (steps < FEW_IN_WINDOW && all->span < all->ahead)
        all->span = all->span > all->ahead / 2 ? all->ahead : 2 * all->span;
}

static bool one_round(parts *all)
{
    orr_crew_run(all->crew);
    if (all->mode == LGS_MODE_TICK && has_endings(all)) {
        all->is_ending = true;
        orr_crew_run(all->crew);
        all->is_ending = false;
    }
    if (has_failed(all) || !make_room(all))
        return false;
    if (all->mode == LGS_MODE_TICK)
        merge_keys(all);
    return (all->mode == LGS_MODE_TICK && !all->s->watch) ||
           merge_logs(all, all->mode == LGS_MODE_WINDOW);
}

/* Steps of all parts; those of the busiest in this round are also accumulated. */
static uint64_t count_steps(parts *all)
{
    uint64_t steps = 0, most = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        lgs_part *p = all->list[i];
        steps += p->steps;
        most = lgs_max(most, p->steps - p->steps_before);
        p->steps_before = p->steps;
    }
    all->longest += most;
    return steps;
}

/* Compares one thread's work with that of the busiest parts, the merge and the barriers. */
static bool pays(const parts *all, uint64_t rounds)
{
    const uint64_t steps = all->steps - all->steps_before, least = all->s->opt.least_per_round;
    if (least)
        return steps >= least * rounds;
    /* In events: busiest parts, merge and barriers must be below nine tenths of one thread's work,
     * so that a doubtful gain does not count. */
    return all->longest + steps / 8 + rounds * ROUND_COSTS < steps / 10 * 9;
}

/* Rounds until nothing is left; *is_done false: one thread must do the rest. */
static void run_rounds(parts *all, orr_progress *progress, bool *is_done)
{
    lgs_sim *s = all->s;
    const uint64_t asked = s->opt.least_per_round ? 1 : ROUNDS_ASKED;
    while (!has_failed(all) && !atomic_load_explicit(&s->must_stop, memory_order_relaxed) &&
           plan_round(all)) {
        const uint64_t before = all->steps;
        if (!one_round(all)) {
            s->has_failed = true;
            break;
        }
        all->steps = count_steps(all);
        fit_span(all, all->steps - before);
        orr_progress_add(progress, all->steps - before);
        if (++all->rounds % asked)
            continue;
        if (!pays(all, asked)) {
            *is_done = false;
            return;
        }
        all->steps_before = all->steps;
        all->longest = 0;
    }
}

static void run_apart(parts *all)
{
    lgs_sim *s = all->s;
    const uint64_t first = s->events;
    all->mode = LGS_MODE_ALONE;
    orr_crew_run(all->crew);
    for (uint32_t i = 0; i < all->count; i++)
        s->events += all->list[i]->sim.events - first;
}

static bool make_all(parts *all, uint32_t count)
{
    lgs_sim *s = all->s;
    all->count = count;
    all->part_of = orr_alloc(s->hosts, sizeof *all->part_of);
    all->list = orr_alloc(count, sizeof(lgs_part *));
    all->less_of = orr_alloc(s->goal->node_count, sizeof *all->less_of);
    all->change_of = orr_alloc(s->hosts, sizeof *all->change_of);
    if (!all->part_of || !all->list || !all->less_of || !all->change_of || !deal_hosts(all))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!(all->list[i] = make_part(all, (uint8_t)i)))
            return false;
    /* Without messages between parts no barrier is needed; a quarter of the range leaves room for
     * sums. */
    all->ahead = all->crosses ? s->opt.o + s->opt.L : UINT64_MAX / 4;
    /* Short at first, then doubled (fit_span): the number of events per nanosecond is not known
     * yet. */
    all->span = all->ahead / 8 < FIRST_SPAN ? all->ahead / 8 : FIRST_SPAN;
    if (!all->span && all->ahead)
        all->span = 1;
    return (all->crew = orr_crew_create(count, work, all)) != NULL;
}

static void drop_all(parts *all)
{
    orr_crew_destroy(all->crew);
    for (uint32_t i = 0; all->list && i < all->count; i++)
        drop_part(all->list[i], all->s);
    orr_free(all->list);
    orr_free(all->part_of);
    orr_free(all->less_of);
    orr_free(all->change_of);
}

/* No time in the run is so late that sums wrap. */
static bool is_short(const lgs_sim *s)
{
    const orr_goal_totals t = s->goal->totals;
    const double each = (double)s->opt.L + 2 * (double)s->opt.o + (double)s->opt.g;
    const double a_byte = 1 + (double)s->opt.O + s->opt.G;
    double sum = each * ((double)t.sends + (double)t.recvs + (double)t.calcs + 1);
    for (size_t i = 0; i < s->goal->node_count; i++)
        sum += (double)s->nodes[i].size * a_byte;
    return sum < TOO_LONG;
}

/* Number of threads; 1: no parts, and *why gives the reason. */
static uint32_t count_parts(const lgs_sim *s, const char **why)
{
    uint32_t count = s->opt.threads;
    if (!count)
        count = s->expected < LEAST_EVENTS ? 1 : orr_pool_threads(0);
    if (count > LGS_MOST_PARTS)
        count = LGS_MOST_PARTS;
    if (count > s->hosts)
        count = s->hosts;
    if (count < 2)
        return 1;
    *why = s->rules != &lgs_own_rules ? "other programs have one thread"
           : s->opt.max_events        ? "events are limited"
           : s->has_started           ? "it is run event by event"
           : !is_short(s)             ? "times may be too long to be merged"
                                      : NULL;
    return *why ? 1 : count;
}

orr_code lgs_run_parts(lgs_sim *s, bool *is_done, orr_error *err)
{
    s->threads_why = NULL;
    const uint32_t count = count_parts(s, &s->threads_why);
    *is_done = false;
    s->threads = 1;
    if (count < 2)
        return ORR_OK;
    parts all = {.s = s};
    if (!make_all(&all, count)) {
        drop_all(&all);
        return orr_no_memory(err);
    }
    if (!s->opt.threads &&
        /* off by default: rounds may not pay (docs/design/loggops.md) */
        (all.crosses || s->watch)) {
        drop_all(&all);
        return ORR_OK;
    }
    orr_progress progress;
    orr_progress_start(&progress, "simulating", "events", s->expected, !s->opt.shows_progress);
    *is_done = true;
    start(&all);
    if (!s->has_failed && !all.crosses && !s->watch)
        run_apart(&all);
    else if (!s->has_failed)
        run_rounds(&all, &progress, is_done);
    orr_progress_end(&progress);
    gather(&all);
    bool has_erred = false;
    for (uint32_t i = 0; i < count; i++)
        has_erred |= all.list[i]->has_erred;
    s->threads = count;
    if (!*is_done)
        s->threads_why = "one did the rest, as there are few events between synchronizations";
    drop_all(&all);
    if (has_erred)
        return orr_fail(err, ORR_EBUG, NULL, "a send was over before its window was");
    return lgs_outcome(s, &(orr_error){0}, err);
}
