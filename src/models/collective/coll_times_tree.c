/* SPDX-License-Identifier: Apache-2.0 */
/* coll_times_tree.c - collectives along trees as recurrences of max and plus: those with a root
 * (coll_relay.c) and the double binary tree (coll_tree.c).
 *
 * With e for the endpoint delay, r for the time of a reduction where there is one, d for that of
 * a message:
 *
 *     away from the root   t[root] = start + e           t[i] = max(start[i], t[parent] + d) + e
 *     towards it           t[leaf] = start + e           t[i] = max over children(max(start[i], t[child] + d) + e + r)
 *     up, then down        up as towards it; down[root] = up[root],
 *                          down[i] = max(up[i], down[parent] + d) + e, + r where it has children
 *
 * for a member posts its receives when it starts, and that from its parent on the way down when
 * it has sent up.  What it passes on leaves when the last delay is over.  Pieces that travel one
 * by one leave when their own is; the last of them follows the same rule, because all that are
 * before it are there before it, and that one alone counts for the end. No choice depends on the
 * order of events of one tick. */
#include "coll_times_impl.h"

#include "coll_relay.h"
#include "coll_tree.h"

#include "base/memory/memory.h"
#include "base/ticks.h"

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

bool coll_times_knows_tree(const coll_times_phase *p)
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

/* Saturates: sums of times that an input may ask for pass the range.  coll_times_tree_ends refuses
 * what has come that far. */
static int64_t after(int64_t at, uint64_t delay)
{
    const int64_t far = (int64_t)ORR_TICKS_FAR;
    return delay >= ORR_TICKS_FAR || at >= far - (int64_t)delay ? far : at + (int64_t)delay;
}

/* When it arrives. */
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

/* ---- with a root ---- */

static void away_from_root(const coll_times_phase *p,
                           coll_times_net *net,
                           const int64_t *start,
                           int64_t *end,
                           const coll_times_listener *l)
{
    const coll_relay_tree t = relay_of(p);
    const uint64_t size = coll_relay_size(&t, p->data);
    end[p->root] = after(start[p->root], p->endpoint);
    for (uint32_t seat = 1; seat < p->count; seat++) {
        const uint32_t me = member_at(p, seat), parent = member_at(p, coll_relay_parent(&t, seat));
        const int64_t there =
            send(net, parent, me, end[parent], coll_relay_edge_size(&t, size, seat),
                 coll_relay_edge_messages(&t, seat), l);
        end[me] = after(later(start[me], there), p->endpoint);
    }
}

/* Pieces leave one by one: each when it has come, the member's own at once. */
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
        end[i] = after(start[i], p->endpoint); /* of a leaf; what comes in is later than that */
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

/* ---- all of them ---- */

bool coll_times_tree_ends(const coll_times_phase *p,
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
        fits = end[i] < (int64_t)ORR_TICKS_FAR; /* a run of every rank says what takes too long */
    return fits;
}

coll_times_lag coll_times_tree_lag(const coll_times_phase *p)
{
    const coll_relay_tree t = relay_of(p);
    const uint64_t size = p->ops == &coll_tree ? p->data : coll_relay_size(&t, p->data);
    const uint64_t last = is_added_up(p) ? coll_times_reduction(p, size) : p->endpoint;
    return (coll_times_lag){last < p->endpoint ? last : p->endpoint,
                            last > p->endpoint ? last : p->endpoint};
}
