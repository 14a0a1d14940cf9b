/* SPDX-License-Identifier: Apache-2.0 */
/* coll_times.c - ring, halving-doubling and direct as max-plus recurrences.  Trees follow the same
 * idea, rank by rank.
 *
 * On a network without congestion a phase is a function from the start times of its members to
 * their end times.  Write a[k][i] for the time at which member i sends its packet k. It then posts
 * the receive of packet k of its source, which is complete at max(a[k][i], a[k][source] + delay);
 * an endpoint delay later, plus the time of a reduction if there is one, follows a[k+1][i].  With
 * c[k] for these two (astra-sim.md 5.5, 5.7):
 *
 *     a[0][i]   = start[i] + endpoint
 *     a[k+1][i] = max(a[k][i], a[k][source] + delay) + c[k+1],     end[i] = a[packets][i].
 *
 * Halving-doubling does this step by step.  A ring has the same neighbour in every step, and
 * unrolled its end is the largest of start[j] + delays from j to i over the last lap: a sliding
 * window.  Direct has many packets in flight; see below.  If the result depends on the order of
 * events within a tick, the function returns false. */
#include "base/memory/heap.h"

#include "base/arithmetic.h"
#include "base/memory/memory.h"
#include "coll.h"
#include "coll_times.h"

#include <math.h>
#include <stdlib.h>

/* Observer of each message; NULL: none. */
typedef struct coll_times_listener {
    coll_times_sent visit;
    void *context;
} coll_times_listener;

static inline uint64_t coll_times_reduction(const coll_times_phase *p, uint64_t size)
{
    return 3 * orr_ticks((double)size / p->memory_speed * 1e9);
}

static inline uint64_t coll_times_on_the_wire(uint64_t size)
{
    return size ? size : 1; /* as in match.c */
}

static inline bool coll_times_no_memory(coll_times_net *net)
{
    net->is_out_of_memory = true;
    return false;
}

/* ---- Collectives along trees as max-plus recurrences: rooted ones (coll_relay.c) and the double
 * binary tree (coll_tree.c).
 *
 * With e for the endpoint delay, r for the time of a reduction if there is one, d for that of a
 * message:
 *
 *     away from the root   t[root] = start + e           t[i] = max(start[i], t[parent] + d) + e
 *     towards it           t[leaf] = start + e           t[i] = max over children(max(start[i], t[child] + d) + e + r)
 *     up, then down        up as towards it; down[root] = up[root],
 *                          down[i] = max(up[i], down[parent] + d) + e, + r where it has children
 *
 * because a member posts its receives when it starts, and that from its parent on the way down when
 * it has sent up.  It forwards data when the last delay has passed.  Pieces sent one by one leave
 * after their own delay; the last of them follows the same rule, because all earlier ones have
 * arrived before it, and it alone determines the end.  Nothing depends on the order of events
 * within a tick. */

#define EDGE (UINT64_C(1) << 63)

bool coll_times_is_edge(uint64_t step)
{
    return step & EDGE;
}

bool coll_times_is_tree(const coll_times_phase *p)
{
    return p->ops == &coll_tree || p->ops == &coll_chain || p->ops == &coll_star ||
           p->ops == &coll_binomial;
}

static bool is_added_up(const coll_times_phase *p)
{
    return p->ops == &coll_tree || (p->kind == ORR_COLL_REDUCE && !p->is_barrier);
}

/* Without a memory speed a reduction takes infinite time by the formula, which the
 * message-by-message run reports in its own way. */
static bool knows_tree(const coll_times_phase *p)
{
    if (is_added_up(p) && !(p->memory_speed > 0))
        return false;
    if (p->ops == &coll_tree)
        return !p->is_group && (p->count & (p->count - 1)) == 0;
    return p->root < p->count;
}

static coll_relay_tree relay_of(const coll_times_phase *p)
{
    return (coll_relay_tree){p->ops, p->count, p->kind};
}

static uint32_t member_at(const coll_times_phase *p, uint32_t seat)
{
    return (uint32_t)(((uint64_t)seat + p->root) % p->count);
}

/* ---- messages ---- */

static void visit_tree(const coll_times_phase *p, coll_times_edge visit, void *context)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const coll_tree_place at = coll_tree_at(p->count, p->variant, i);
        if (at.parent == COLL_TREE_NOBODY)
            continue;
        visit(context, i, at.parent, 1, coll_times_on_the_wire(p->data));
        visit(context, at.parent, i, 1, coll_times_on_the_wire(p->data));
    }
}

void coll_times_edges(const coll_times_phase *p, coll_times_edge visit, void *context)
{
    const coll_relay_tree t = relay_of(p);
    if (p->ops == &coll_tree) {
        visit_tree(p, visit, context);
        return;
    }
    const uint64_t size = coll_relay_size(&t, p->data);
    for (uint32_t seat = 1; seat < p->count; seat++) {
        const uint32_t child = member_at(p, seat),
                       parent = member_at(p, coll_relay_parent(&t, seat));
        const bool is_inward = coll_relay_is_inward(&t);
        visit(context, is_inward ? child : parent, is_inward ? parent : child,
              coll_relay_edge_messages(&t, seat),
              coll_times_on_the_wire(coll_relay_edge_size(&t, size, seat)));
    }
}

/* Saturates: sums of times from an input may exceed the range.  tree_ends refuses such results. */
static int64_t after(int64_t at, uint64_t delay)
{
    const int64_t far = (int64_t)ORR_TICKS_FAR;
    return delay >= ORR_TICKS_FAR || at >= far - (int64_t)delay ? far : at + (int64_t)delay;
}

/* Returns its arrival. */
static int64_t send(coll_times_net *net,
                    uint32_t from,
                    uint32_t to,
                    int64_t at,
                    uint64_t size,
                    uint64_t messages,
                    const coll_times_listener *l)
{
    const uint64_t step = EDGE | from;
    for (uint64_t i = 0; l && i < messages; i++)
        l->visit(l->context, step, to, at, coll_times_on_the_wire(size));
    return after(at, net->delay(net->context, step, to, coll_times_on_the_wire(size)));
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- rooted ---- */

static void away_from_root(const coll_times_phase *p,
                           coll_times_net *net,
                           const int64_t *start,
                           int64_t *end,
                           const coll_times_listener *l)
{
    const coll_relay_tree t = relay_of(p);
    const uint64_t size = coll_relay_size(&t, p->data);
    end[p->root] = after(start[p->root], p->endpoint);
    /* A parent has a smaller seat, so its end is final when it is used. */
    for (uint32_t seat = 1; seat < p->count; seat++) {
        const uint32_t me = member_at(p, seat), parent = member_at(p, coll_relay_parent(&t, seat));
        const int64_t there =
            send(net, parent, me, end[parent], coll_relay_edge_size(&t, size, seat),
                 coll_relay_edge_messages(&t, seat), l);
        end[me] = after(later(start[me], there), p->endpoint);
    }
}

/* Pieces leave one by one: each when it has arrived, the member's own at once. */
static void tell_pieces(const coll_times_phase *p,
                        coll_times_net *net,
                        const int64_t *start,
                        const coll_times_listener *l)
{
    const uint64_t size = p->data;
    for (uint32_t from = p->count; from-- > 1;) {
        int64_t at = after(start[member_at(p, from)], p->endpoint);
        for (uint32_t seat = from; seat > 0; seat--) {
            const uint32_t next = member_at(p, seat - 1);
            const int64_t there = send(net, member_at(p, seat), next, at, size, 1, l);
            at = after(later(start[next], there), p->endpoint);
        }
    }
}

/* From the last seat to the first: children have larger seats than their parent, so each end is
 * final when it is used and no order need be computed. */
static void towards_root(const coll_times_phase *p,
                         coll_times_net *net,
                         const int64_t *start,
                         int64_t *end,
                         const coll_times_listener *l)
{
    const coll_relay_tree t = relay_of(p);
    const bool is_piecewise = coll_relay_is_piecewise(&t);
    const uint64_t size = coll_relay_size(&t, p->data);
    const uint64_t reduced = p->endpoint + (is_added_up(p) ? coll_times_reduction(p, size) : 0);
    for (uint32_t i = 0; i < p->count; i++)
        /* of a leaf; received data arrives later than that */
        end[i] = after(start[i], p->endpoint);
    for (uint32_t seat = p->count; seat-- > 1;) {
        const uint32_t me = member_at(p, seat), parent = member_at(p, coll_relay_parent(&t, seat));
        const int64_t there = send(net, me, parent, end[me], coll_relay_edge_size(&t, size, seat),
                                   1, is_piecewise ? NULL : l);
        end[parent] = later(end[parent], after(later(start[parent], there), reduced));
    }
    if (is_piecewise && l)
        tell_pieces(p, net, start, l);
}

/* ---- up and down ---- */

static void visit_subtree(const coll_times_phase *p, uint32_t *order)
{
    /* Parents before children. */
    uint32_t count = 0;
    order[count++] = p->variant == 0 ? p->count - 1 : 0;
    for (uint32_t i = 0; i < count; i++) {
        const coll_tree_place at = coll_tree_at(p->count, p->variant, order[i]);
        for (uint32_t k = 0; k < at.child_count; k++)
            order[count++] = at.child[k];
    }
}

static bool up_and_down(const coll_times_phase *p,
                        coll_times_net *net,
                        const int64_t *start,
                        int64_t *end,
                        const coll_times_listener *l)
{
    uint32_t *order = orr_alloc(p->count, sizeof *order);
    const uint64_t reduced = p->endpoint + coll_times_reduction(p, p->data);
    if (!order)
        return coll_times_no_memory(net);
    visit_subtree(p, order);
    for (uint32_t i = 0; i < p->count; i++)
        end[i] = after(start[i], p->endpoint);
    /* Children before parents; on the way down the other way round. */
    for (uint32_t i = p->count; i-- > 1;) {
        const uint32_t me = order[i], parent = coll_tree_at(p->count, p->variant, me).parent;
        const int64_t there = send(net, me, parent, end[me], p->data, 1, l);
        end[parent] = later(end[parent], after(later(start[parent], there), reduced));
    }
    for (uint32_t i = 1; i < p->count; i++) {
        const uint32_t me = order[i];
        const coll_tree_place at = coll_tree_at(p->count, p->variant, me);
        const int64_t there = send(net, at.parent, me, end[at.parent], p->data, 1, l);
        end[me] = after(later(end[me], there), at.child_count ? reduced : p->endpoint);
    }
    orr_free(order);
    return true;
}

/* ---- all trees ---- */

static bool tree_ends(const coll_times_phase *p,
                      coll_times_net *net,
                      const int64_t *start,
                      int64_t *end,
                      const coll_times_listener *l)
{
    const coll_relay_tree t = relay_of(p);
    bool fits = true;
    if (p->ops == &coll_tree)
        fits = up_and_down(p, net, start, end, l);
    else if (coll_relay_is_inward(&t))
        towards_root(p, net, start, end, l);
    else
        away_from_root(p, net, start, end, l);
    for (uint32_t i = 0; fits && i < p->count; i++)
        /* a run of every rank reports what takes too long */
        fits = end[i] < (int64_t)ORR_TICKS_FAR;
    return fits;
}

/* A member's last timer is that of an endpoint delay or of the reduction after it; which of them
 * differs between members, so both bounds are given. */
static coll_times_lag tree_lag(const coll_times_phase *p)
{
    const coll_relay_tree t = relay_of(p);
    const uint64_t size = p->ops == &coll_tree ? p->data : coll_relay_size(&t, p->data);
    const uint64_t last = is_added_up(p) ? coll_times_reduction(p, size) : p->endpoint;
    return (coll_times_lag){last < p->endpoint ? last : p->endpoint,
                            last > p->endpoint ? last : p->endpoint};
}

enum { BY_DISTANCE = 0, BY_XOR = 1 };

/* A step is one number, so that a network can cache delays by it: a distance around the ring or
 * a partner's xor in the upper bits, which of them in the lowest. The highest bit is EDGE. */
static uint64_t distance_step(const coll_times_phase *p, uint64_t distance)
{
    return (p->is_forward ? distance : p->count - distance) << 1 | BY_DISTANCE;
}

uint32_t coll_times_source(uint64_t step, uint32_t member, uint32_t count)
{
    const uint64_t by = step >> 1;
    if (coll_times_is_edge(step))
        return (uint32_t)step;
    return step & 1 ? member ^ (uint32_t)by : (uint32_t)((member + count - by) % count);
}

/* ---- packets ---- */

/* The packets of an algorithm, as in coll_exchange.h. */
typedef struct walk {
    uint64_t packets; /* to send */
    uint64_t parallel, round;
} walk;

/* Is packet k (from 0) reduced where it is made? The first of a round are the member's own. Both
 * halves of a round as coll_make_packet has them, computed from the number of the packet instead
 * of counted down. */
static bool is_reduced(const coll_times_phase *p, const walk *w, uint64_t k)
{
    const uint64_t cycle = w->parallel + w->round;
    if (k % cycle < w->parallel)
        return false;
    return p->kind == ORR_COLL_REDUCE_SCATTER ||
           (p->kind == ORR_COLL_ALL_REDUCE && k / cycle % 2 == 0);
}

/* Endpoint delay and reduction of packet k. */
static uint64_t charge(const coll_times_phase *p, const walk *w, uint64_t k, uint64_t size)
{
    return p->endpoint + (is_reduced(p, w, k) ? coll_times_reduction(p, size) : 0);
}

static uint64_t last_timer(const coll_times_phase *p, const walk *w, uint64_t k, uint64_t size)
{
    return is_reduced(p, w, k) ? coll_times_reduction(p, size) : p->endpoint;
}

/* ---- ring ---- */

static walk ring_walk(const coll_times_phase *p)
{
    const uint64_t n = p->count, steps = n - 1;
    return (walk){.packets = p->kind == ORR_COLL_ALL_REDUCE   ? 2 * steps
                             : p->kind == ORR_COLL_ALL_TO_ALL ? n * steps / 2
                                                              : steps,
                  .parallel = 1,
                  .round = steps};
}

static uint64_t ring_size(const coll_times_phase *p)
{
    return p->kind == ORR_COLL_ALL_GATHER ? p->data : p->data / p->count;
}

/* All charges but that of the first packet. */
static uint64_t ring_charges(const coll_times_phase *p, const walk *w)
{
    const bool adds = p->kind == ORR_COLL_ALL_REDUCE || p->kind == ORR_COLL_REDUCE_SCATTER;
    return w->packets * p->endpoint +
           (adds ? (p->count - 1) * coll_times_reduction(p, ring_size(p)) : 0);
}

typedef struct window {
    int64_t *value; /* decreasing */
    int64_t *from;
    size_t first, count;
} window;

/* Ends of a ring whose places are numbered along the data; hop[t] leads into place t. The maximum
 * over a sliding window, in O(n) by a monotone queue. Why a window: the start of every member j
 * reaches member i, by `hops` hops at most, and the latest of start[j] plus the delays from j to i
 * decides. The same j also stands one lap nearer, with fewer delays, and cannot be later from
 * there: so the farthest n places are enough. Without the queue this would be O(n) for each
 * member. */
static void ring_ends(
    uint32_t n, uint64_t hops, const int64_t *start, const int64_t *prefix, window *w, int64_t *end)
{
    const int64_t most = (int64_t)hops, least = hops + 1 > n ? most - n + 1 : 0, lap = prefix[n];
    int64_t next = -most; /* the next place to enter the window, unrolled */
    for (int64_t i = 0; i < n; i++) {
        while (w->count && w->from[w->first] < i - most) {
            w->first = (w->first + 1) % n;
            w->count--;
        }
        for (; next <= i - least; next++) {
            int64_t laps = next / (int64_t)n, at = next % (int64_t)n;
            if (at < 0) {
                at += n;
                laps--;
            }
            const int64_t value = start[at] - (laps * lap + prefix[at + 1]);
            while (w->count && w->value[(w->first + w->count - 1) % n] <= value)
                w->count--;
            w->value[(w->first + w->count) % n] = value;
            w->from[(w->first + w->count) % n] = next;
            w->count++;
        }
        end[i] = w->value[w->first] + prefix[i + 1];
    }
}

static bool ring_times(const coll_times_phase *p,
                       coll_times_net *net,
                       const int64_t *start,
                       int64_t *end)
{
    const walk w = ring_walk(p);
    const uint64_t size = coll_times_on_the_wire(ring_size(p)), step = distance_step(p, 1);
    const uint32_t n = p->count;
    /* The same for all members, so it is taken out of the maximum. */
    const int64_t fixed = (int64_t)(p->endpoint + ring_charges(p, &w));
    int64_t *room = orr_alloc(5 * (size_t)n + 1, sizeof *room);
    if (!room)
        return coll_times_no_memory(net);
    int64_t *prefix = room, *along = room + n + 1, *out = along + n;
    window win = {.value = out + n, .from = out + 2 * (size_t)n};
    prefix[0] = 0;
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t m = p->is_forward ? t : n - 1 - t;
        prefix[t + 1] = prefix[t] + (int64_t)net->delay(net->context, step, m, size);
        along[t] = start[m];
    }
    /* Sums of delays from an input must not overflow; what would is left to the run of every rank,
     * which reports it. */
    const bool fits = (double)prefix[n] * ((double)w.packets / n + 2) < 0x1p61;
    if (fits)
        ring_ends(n, w.packets, along, prefix, &win, out);
    for (uint32_t t = 0; t < n && fits; t++)
        end[p->is_forward ? t : n - 1 - t] = out[t] + fixed;
    orr_free(room);
    return fits;
}

/* ---- halving-doubling ---- */

typedef struct halves {
    uint64_t size, distance;
    bool is_halving;
} halves;

static walk halving_walk(const coll_times_phase *p)
{
    const uint64_t levels = (uint64_t)log2((double)p->count);
    return (walk){.packets = p->kind == ORR_COLL_ALL_REDUCE ? 2 * levels : levels,
                  .parallel = 1,
                  .round = levels - 1};
}

static halves first_half(const coll_times_phase *p)
{
    const bool is_gather = p->kind == ORR_COLL_ALL_GATHER;
    return (halves){.size = is_gather ? p->data : p->data / 2,
                    .distance = is_gather ? p->count / 2 : 1,
                    .is_halving = !is_gather};
}

static void scale(halves *h)
{
    h->distance = h->is_halving ? h->distance * 2 : h->distance / 2;
    h->size = h->is_halving ? h->size / 2 : h->size * 2;
}

static void next_half(const coll_times_phase *p, halves *h)
{
    scale(h);
    if (p->kind == ORR_COLL_ALL_REDUCE && h->distance == p->count) {
        /* It has gone one step too far: the way back begins with the partner of the last step. */
        h->is_halving = false;
        scale(h);
    }
}

/* If all members are equal, only the first is computed. */
static bool halving_times(const coll_times_phase *p,
                          coll_times_net *net,
                          uint32_t members,
                          const int64_t *start,
                          int64_t *end,
                          const coll_times_listener *l)
{
    const walk w = halving_walk(p);
    int64_t *now = orr_alloc(members, sizeof *now);
    halves h = first_half(p);
    if (!now)
        return coll_times_no_memory(net);
    for (uint32_t i = 0; i < members; i++)
        end[i] = start[i] + (int64_t)charge(p, &w, 0, h.size);
    for (uint64_t k = 0; k < w.packets; k++) {
        const uint64_t size = coll_times_on_the_wire(h.size), step = h.distance << 1 | BY_XOR;
        const uint64_t distance = h.distance;
        next_half(p, &h);
        /* By the size of the packet that the receive makes, not of the one received
         * (coll_make_packet). */
        const int64_t more = (int64_t)charge(p, &w, k + 1, h.size);
        memcpy(now, end, members * sizeof *now);
        for (uint32_t i = 0; l && i < members; i++)
            l->visit(l->context, step, members == 1 ? COLL_TIMES_ALL : i ^ (uint32_t)distance,
                     now[i], size);
        for (uint32_t i = 0; i < members; i++) {
            const int64_t other = now[members == 1 ? 0 : i ^ distance] +
                                  (int64_t)net->delay(net->context, step, i, size);
            end[i] = (other > now[i] ? other : now[i]) + more;
        }
    }
    orr_free(now);
    return true;
}

/* ---- direct ----
 *
 * Packet q goes to the member q + 1 places further; `parallel` of them are in flight.  Each receive
 * makes a packet, and when its endpoint delay has passed, the next packet may leave.  The second
 * half of an all-reduce begins with the first such timer that finds the whole first half
 * received. */

static walk direct_walk(const coll_times_phase *p)
{
    const uint64_t steps = p->count - 1;
    walk w = {.packets = p->kind == ORR_COLL_ALL_REDUCE ? 2 * steps : steps,
              .parallel = p->number && p->number < steps ? p->number : steps};
    w.round = p->is_group ? steps * w.parallel : w.parallel;
    return w;
}

static uint64_t direct_size(const coll_times_phase *p)
{
    return p->kind == ORR_COLL_ALL_GATHER ? p->data : p->data / p->count;
}

/* All members equal: a member receives exactly when its peer at the same distance receives what it
 * sends. */
static bool direct_even(const coll_times_phase *p,
                        coll_times_net *net,
                        int64_t start,
                        int64_t *end,
                        const coll_times_listener *l)
{
    const walk w = direct_walk(p);
    const uint64_t size = direct_size(p), others = p->count - 1;
    uint64_t left = w.packets, made = w.parallel, sent = 0, received = 0, free = 0;
    /* One member stands for all, with its own sends as its receives. What is left to follow is how
     * many packets are free, and that only the order of arrivals and timers decides. */
    orr_heap events = {0}; /* value: 1 an arrival, 2 a timer, so that arrivals are first */
    orr_heap_entry e;
    bool ok = true, is_over = false, is_tied = false;
    int64_t last_arrival = -1;
    for (uint64_t i = 0; i < w.parallel && ok; i++)
        ok = orr_heap_push(&events, (uint64_t)start + charge(p, &w, i, size), 2);
    while (ok && !is_over && orr_heap_pop(&events, &e)) {
        if (e.value == 1) {
            received++;
            last_arrival = (int64_t)e.key;
            ok = orr_heap_push(&events, e.key + charge(p, &w, made++, size), 2);
            continue;
        }
        free++;
        const bool is_second = p->kind == ORR_COLL_ALL_REDUCE && left <= others;
        if (is_second && received < others)
            continue;
        if (is_second && received == others && last_arrival == (int64_t)e.key && left == others)
            /* An arrival and a timer in one tick decide when the second half begins; a real run
             * has an order of events that these formulas do not know, so they give up. */
            ok = !(is_tied = true); /* the order of the two matters */
        for (uint64_t i = 0; ok && i < (is_second ? w.parallel : 1) && left && free && sent < made;
             i++) {
            const uint64_t step = distance_step(p, sent % others + 1);
            const uint64_t delay = net->delay(net->context, step, 0, coll_times_on_the_wire(size));
            ok = orr_heap_push(&events, e.key + delay, 1);
            if (l)
                l->visit(l->context, step, COLL_TIMES_ALL, (int64_t)e.key,
                         coll_times_on_the_wire(size));
            sent++;
            left--;
            free--;
        }
        is_over = left == 0 && free == w.parallel;
        *end = (int64_t)e.key;
    }
    orr_heap_fini(&events);
    if (!ok && !is_tied)
        return coll_times_no_memory(net);
    return ok && is_over;
}

/* Members that differ: simulate all of them, event by event.  A packet that member i sends and the
 * one it receives in the same step have the same number, so a receive is identified by member and
 * number. */
typedef struct crowd {
    const coll_times_phase *p;
    coll_times_net *net;
    const coll_times_listener *l;
    walk w;
    uint64_t size;
    orr_heap events; /* value: member, packet and kind; arrivals of a tick come before its timers */
    struct crowd_member {
        uint64_t left, made, sent, received, free;
        int64_t last_arrival, last_blocked;
        uint64_t before_tick; /* received before the tick of the last arrival */
        bool is_over;
    } * members;
    /* By member and packet: when it was posted or arrives, whichever is known; -1: neither. */
    int64_t *half;
    bool is_tied, is_out_of_memory;
} crowd;

enum { CROWD_MOST = 1024 };

static void push(crowd *c, int64_t at, uint32_t member, bool is_timer)
{
    if (!orr_heap_push(&c->events, (uint64_t)at, member | (is_timer ? 1u << 31 : 0)))
        c->is_out_of_memory = true;
}

/* The other half of a receive is known now. A receive is over when it is posted and the packet is
 * there, whichever comes last; the two calls for it may come in either order. */
static void meet(crowd *c, uint32_t i, uint64_t q, int64_t at)
{
    int64_t *half = &c->half[i * c->w.packets + q];
    if (*half < 0)
        *half = at;
    else
        push(c, *half > at ? *half : at, i, false);
}

static void send_next(crowd *c, uint32_t i, int64_t now)
{
    struct crowd_member *m = &c->members[i];
    const uint32_t n = c->p->count;
    if (!m->left || !m->free || m->sent == m->made)
        return;
    const uint64_t q = m->sent++, step = distance_step(c->p, q % (n - 1) + 1);
    /* The source of i at this distance, mirrored at i: the member that has i as its source. */
    const uint32_t to = (uint32_t)((2 * (uint64_t)i + n - coll_times_source(step, i, n)) % n);
    meet(c, to, q,
         now + (int64_t)c->net->delay(c->net->context, step, to, coll_times_on_the_wire(c->size)));
    meet(c, i, q, now);
    if (c->l)
        c->l->visit(c->l->context, step, to, now, coll_times_on_the_wire(c->size));
    m->left--;
    m->free--;
}

static void crowd_arrival(crowd *c, uint32_t i, int64_t now)
{
    struct crowd_member *m = &c->members[i];
    if (m->last_arrival != now)
        m->before_tick = m->received;
    m->last_arrival = now;
    c->is_tied = c->is_tied || m->last_blocked == now;
    m->received++;
    push(c, now + (int64_t)charge(c->p, &c->w, m->made, c->size), i, true);
    m->made++;
}

static void crowd_timer(crowd *c, uint32_t i, int64_t now, int64_t *end)
{
    struct crowd_member *m = &c->members[i];
    const uint64_t others = c->p->count - 1;
    const bool is_second = c->p->kind == ORR_COLL_ALL_REDUCE && m->left <= others;
    m->free++;
    if (is_second && m->received < others) {
        m->last_blocked = now;
        return;
    }
    /* Would it have been too early without the arrivals of this tick? */
    c->is_tied = c->is_tied || (is_second && m->last_arrival == now && m->before_tick < others);
    for (uint64_t k = 0; k < (is_second ? c->w.parallel : 1); k++)
        send_next(c, i, now);
    m->is_over = m->left == 0 && m->free == c->w.parallel;
    *end = now;
}

static bool direct_times(const coll_times_phase *p,
                         coll_times_net *net,
                         const int64_t *start,
                         int64_t *end,
                         const coll_times_listener *l)
{
    const uint32_t n = p->count;
    crowd c = {.p = p, .net = net, .l = l, .w = direct_walk(p), .size = direct_size(p)};
    orr_heap_entry e;
    bool ok = true;
    /* Some n * n packets are kept; above this size the ranks are run one by one instead. */
    if (n > CROWD_MOST)
        return false;
    c.members = orr_alloc(n, sizeof *c.members);
    c.half = orr_alloc(n, c.w.packets * sizeof *c.half);
    c.is_out_of_memory = !c.members || !c.half;
    if (!c.is_out_of_memory)
        memset(c.half, 0xff, n * c.w.packets * sizeof *c.half);
    for (uint32_t i = 0; i < n && !c.is_out_of_memory; i++) {
        c.members[i] = (struct crowd_member){
            .left = c.w.packets, .made = c.w.parallel, .last_arrival = -1, .last_blocked = -1};
        for (uint64_t k = 0; k < c.w.parallel; k++)
            push(&c, start[i] + (int64_t)charge(p, &c.w, k, c.size), i, true);
    }
    while (!c.is_out_of_memory && !c.is_tied && orr_heap_pop(&c.events, &e)) {
        const uint32_t i = e.value & ~(1u << 31);
        if (e.value >> 31)
            crowd_timer(&c, i, (int64_t)e.key, &end[i]);
        else
            crowd_arrival(&c, i, (int64_t)e.key);
    }
    for (uint32_t i = 0; i < n && c.members; i++)
        ok = ok && c.members[i].is_over;
    net->is_out_of_memory = c.is_out_of_memory;
    ok = ok && !c.is_out_of_memory && !c.is_tied;
    orr_heap_fini(&c.events);
    orr_free(c.members);
    orr_free(c.half);
    return ok;
}

/* ---- all algorithms ---- */

bool coll_times_knows(const coll_times_phase *p)
{
    const bool adds = p->kind == ORR_COLL_ALL_REDUCE || p->kind == ORR_COLL_REDUCE_SCATTER;
    if (p->count < 2 || (adds && !(p->memory_speed > 0)) ||
        !(p->ops->kinds & ORR_COLL_BIT(p->kind)))
        return false;
    if (coll_times_is_tree(p))
        return knows_tree(p);
    if (p->ops == &coll_halving_doubling)
        return (p->count & (p->count - 1)) == 0;
    return p->ops == &coll_ring || p->ops == &coll_direct;
}

void coll_times_steps(const coll_times_phase *p, coll_times_visit visit, void *context)
{
    if (coll_times_is_tree(p)) {
        return; /* edges: coll_times_edges */
    } else if (p->ops == &coll_ring) {
        visit(context, distance_step(p, 1), ring_walk(p).packets,
              coll_times_on_the_wire(ring_size(p)));
    } else if (p->ops == &coll_direct) {
        const uint64_t each = p->kind == ORR_COLL_ALL_REDUCE ? 2 : 1;
        for (uint64_t q = 1; q < p->count; q++)
            visit(context, distance_step(p, q), each, coll_times_on_the_wire(direct_size(p)));
    } else {
        halves h = first_half(p);
        for (uint64_t k = halving_walk(p).packets; k > 0; k--, next_half(p, &h))
            visit(context, h.distance << 1 | BY_XOR, 1, coll_times_on_the_wire(h.size));
    }
}

static uint64_t lag_of(const coll_times_phase *p)
{
    if (p->ops == &coll_halving_doubling) {
        const walk w = halving_walk(p);
        return last_timer(p, &w, w.packets, 0);
    }
    const walk w = p->ops == &coll_ring ? ring_walk(p) : direct_walk(p);
    const uint64_t size = p->ops == &coll_ring ? ring_size(p) : direct_size(p);
    /* Every receive makes a packet, so the last one made is never sent (coll_exchange.h). */
    return last_timer(p, &w, w.packets + w.parallel - 1, size);
}

static bool even_ends(const coll_times_phase *p, coll_times_net *net, int64_t start, int64_t *end)
{
    if (p->ops == &coll_ring) {
        const walk w = ring_walk(p);
        const uint64_t delay =
            net->delay(net->context, distance_step(p, 1), 0, coll_times_on_the_wire(ring_size(p)));
        *end = start + (int64_t)(p->endpoint + ring_charges(p, &w) + w.packets * delay);
        /* As in ring_times: what would overflow is left to the run of every rank. */
        return (double)w.packets * (double)delay < 0x1p61;
    }
    return p->ops == &coll_direct ? direct_even(p, net, start, end, NULL)
                                  : halving_times(p, net, 1, &start, end, NULL);
}

/* All that the times depend on but the network, which the caller compares. */
bool coll_times_same(const coll_times_phase *a, const coll_times_phase *b)
{
    return a->ops == b->ops && a->kind == b->kind && a->data == b->data && a->count == b->count &&
           a->number == b->number && a->root == b->root && a->variant == b->variant &&
           a->is_group == b->is_group && a->is_forward == b->is_forward &&
           a->is_barrier == b->is_barrier && a->endpoint == b->endpoint &&
           a->memory_speed == b->memory_speed;
}

bool coll_times_even(const coll_times_phase *p,
                     coll_times_net *net,
                     int64_t start,
                     int64_t *end,
                     coll_times_lag *lag)
{
    lag->least = lag->most = lag_of(p);
    return even_ends(p, net, start, end);
}

bool coll_times_ends(const coll_times_phase *p,
                     coll_times_net *net,
                     const int64_t *start,
                     int64_t *end,
                     coll_times_lag *lag)
{
    bool is_even = net->is_even;
    if (coll_times_is_tree(p)) {
        *lag = tree_lag(p);
        return tree_ends(p, net, start, end, NULL);
    }
    lag->least = lag->most = lag_of(p);
    for (uint32_t i = 1; i < p->count && is_even; i++)
        is_even = start[i] == start[0];
    if (is_even) {
        if (!even_ends(p, net, start[0], end))
            return false;
        for (uint32_t i = 1; i < p->count; i++)
            end[i] = end[0];
        return true;
    }
    if (p->ops == &coll_ring)
        return ring_times(p, net, start, end);
    return p->ops == &coll_direct ? direct_times(p, net, start, end, NULL)
                                  : halving_times(p, net, p->count, start, end, NULL);
}

/* ---- send times ---- */

/* Packet by packet, whereas ring_ends uses only the last lap. */
static bool ring_sends(const coll_times_phase *p,
                       coll_times_net *net,
                       uint32_t members,
                       const int64_t *start,
                       const coll_times_listener *l)
{
    const walk w = ring_walk(p);
    const uint64_t size = coll_times_on_the_wire(ring_size(p)), step = distance_step(p, 1);
    int64_t *at = orr_alloc(3 * (size_t)members, sizeof *at), *next = at + members,
            *delay = at + 2 * (size_t)members;
    if (!at)
        return coll_times_no_memory(net);
    for (uint32_t i = 0; i < members; i++) {
        at[i] = start[i] + (int64_t)charge(p, &w, 0, ring_size(p));
        delay[i] = (int64_t)net->delay(net->context, step, i, size);
    }
    for (uint64_t k = 0; k < w.packets; k++) {
        const int64_t more = (int64_t)charge(p, &w, k + 1, ring_size(p));
        for (uint32_t i = 0; i < members; i++) {
            const uint32_t source = members == 1 ? 0 : coll_times_source(step, i, p->count);
            const int64_t other = at[source] + delay[i];
            l->visit(l->context, step, members == 1 ? COLL_TIMES_ALL : i, at[source], size);
            next[i] = (other > at[i] ? other : at[i]) + more;
        }
        memcpy(at, next, members * sizeof *at);
    }
    orr_free(at);
    return true;
}

bool coll_times_sends(const coll_times_phase *p,
                      coll_times_net *net,
                      const int64_t *start,
                      bool is_even,
                      coll_times_sent visit,
                      void *context)
{
    const coll_times_listener l = {visit, context};
    const uint32_t members = is_even ? 1 : p->count;
    int64_t *end = orr_alloc(members, sizeof *end);
    if (!end)
        return coll_times_no_memory(net);
    const bool ok = coll_times_is_tree(p)  ? tree_ends(p, net, start, end, &l)
                    : p->ops == &coll_ring ? ring_sends(p, net, members, start, &l)
                    : p->ops == &coll_halving_doubling
                        ? halving_times(p, net, members, start, end, &l)
                    : is_even ? direct_even(p, net, start[0], end, &l)
                              : direct_times(p, net, start, end, &l);
    orr_free(end);
    return ok;
}
