/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_step.h - what all rules share: operations start and finish, which lets others go. */
#ifndef ORR_SIMULATE_LGS_STEP_H
#define ORR_SIMULATE_LGS_STEP_H

#include "lgs_impl.h"

/* The batch of a host that this event touches. */
static inline lgs_batch *lgs_touch(orr_loggops *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->batches; i++) {
        if (s->batch[i].host == host)
            return &s->batch[i];
    }
    lgs_batch *b = &s->batch[s->batches++];
    b->host = host;
    b->count = 0;
    return b;
}

static inline void lgs_release(
    orr_loggops *s, lgs_batch *b, uint32_t node, uint8_t kind, uint64_t at)
{
    if (b->count >= b->room && !orr_grow(&b->items, &b->room, (size_t)b->count + 1)) {
        s->has_failed = true;
        return;
    }
    b->items[b->count++] = (lgs_ready){at, node, kind};
}

/* One edge less.  keeps: the time of the edge counts when the operation is let go (later edges may be earlier).
 * By old rules a send may finish twice, when sender and receiver disagree about its size, and what waits for it
 * is counted down twice: there every operation needs its count. */
static inline void lgs_unblock(
    orr_loggops *s, lgs_batch *b, uint32_t child, uint64_t at, bool keeps)
{
    const uint64_t place = s->ranks[b->host].first_node + child;
    const orr__goal_node *n = &s->nodes[place];
    if (n->waits > 1 || s->counts_all) {
        if (s->ready && keeps) {
            lgs_raise(&s->ready[place], at);
            at = s->ready[place];
        }
        if (--s->waits[place])
            return;
    }
    lgs_release(s, b, child, n->kind, at);
}

/* An operation is over at `when`. */
static inline void lgs_finish(orr_loggops *s, uint32_t host, uint32_t node, uint64_t when)
{
    lgs_batch *b = lgs_touch(s, host);
    const orr__goal_node *n = lgs_node(s, host, node);
    const uint32_t *edges = s->edges + s->ranks[host].first_edge;
    if (s->finished) {
        const uint64_t place = (uint64_t)(n - s->nodes);
        s->finished[place / 64] |= (uint64_t)1 << (place % 64);
    }
    s->finished_count++;
    for (uint32_t i = n->then; i < n->started; i++)
        lgs_unblock(s, b, edges[i], when, true);
}

/* An operation starts at `when`.  Edges that wait for a start carry no time in ATLAHS (goal.md 3.3). */
static inline void lgs_start(
    orr_loggops *s, uint32_t host, uint32_t node, uint64_t when, bool keeps)
{
    lgs_batch *b = lgs_touch(s, host);
    const orr__goal_node *n = lgs_node(s, host, node);
    const uint32_t *edges = s->edges + s->ranks[host].first_edge;
    for (uint32_t i = n->started; i < n[1].then; i++)
        lgs_unblock(s, b, edges[i], when, keeps);
}

#endif
