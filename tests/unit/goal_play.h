/* SPDX-License-Identifier: Apache-2.0 */
/* goal_play.h - plays a schedule without a clock: does every operation come to its end?
 *
 * An operation starts when all it waits for is over.  A message meets the first receive posted with
 * its source and tag; a send is over at once (eager) or when it has met its receive
 * (rendezvous).  Anything left over at the end, a message or a receive alone, or sizes that differ,
 * is an answer in words. */
#ifndef ORR_TESTS_GOAL_PLAY_H
#define ORR_TESTS_GOAL_PLAY_H

#include "check.h"

#include <orrery/lab/goal.h>

typedef struct play_end { /* a send or a receive that waits for its other half */
    uint32_t rank, op, src, dst, tag;
    uint64_t size;
    bool is_send, is_met;
} play_end;

typedef struct play {
    const orr_goal *g;
    bool is_rendezvous;
    uint32_t **waits;
    uint32_t (*ready)[2];
    size_t first, last, total;
    play_end *ends;
    size_t end_count;
    size_t done;
    const char *problem;
} play;

static inline void play_release(play *p, uint32_t rank, uint32_t op, orr_goal_edge edge)
{
    uint32_t n;
    const uint32_t *then = orr_goal_successors(p->g, rank, op, edge, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (--p->waits[rank][then[i]] > 0)
            continue;
        p->ready[p->last][0] = rank;
        p->ready[p->last++][1] = then[i];
    }
}

static inline void play_finish(play *p, uint32_t rank, uint32_t op)
{
    p->done++;
    play_release(p, rank, op, ORR_GOAL_FINISHED);
}

static inline bool play_fits(const play_end *a, const play_end *b)
{
    return !a->is_met && a->is_send != b->is_send && a->src == b->src && a->dst == b->dst &&
           a->tag == b->tag;
}

static inline void play_meet(play *p, play_end e)
{
    for (size_t i = 0; i < p->end_count; i++) {
        play_end *other = &p->ends[i];
        if (!play_fits(other, &e))
            continue;
        other->is_met = true;
        if (other->size != e.size)
            p->problem = "a message and its receive differ in size";
        if (p->is_rendezvous || !other->is_send)
            play_finish(p, other->rank, other->op);
        if (p->is_rendezvous || !e.is_send)
            play_finish(p, e.rank, e.op);
        return;
    }
    p->ends[p->end_count++] = e;
}

static inline void play_start(play *p, uint32_t rank, uint32_t op)
{
    const orr_goal_op o = orr_goal_get(p->g, rank, op);
    play_release(p, rank, op, ORR_GOAL_STARTED);
    if (o.kind == ORR_GOAL_CALC) {
        play_finish(p, rank, op);
        return;
    }
    const bool is_send = o.kind == ORR_GOAL_SEND;
    if (o.peer >= orr_goal_ranks(p->g)) {
        p->problem = "a message to or from a rank that is not there";
        return;
    }
    if (is_send && !p->is_rendezvous)
        play_finish(p, rank, op);
    play_meet(p, (play_end){.rank = rank,
                            .op = op,
                            .src = is_send ? rank : o.peer,
                            .dst = is_send ? o.peer : rank,
                            .tag = o.tag,
                            .size = o.size,
                            .is_send = is_send});
}

static inline void play_begin(play *p)
{
    const uint32_t ranks = orr_goal_ranks(p->g);
    p->waits = calloc(ranks, sizeof *p->waits);
    for (uint32_t r = 0; r < ranks; r++)
        p->total += orr_goal_ops(p->g, r);
    p->ready = calloc(p->total + 1, sizeof *p->ready);
    p->ends = calloc(p->total + 1, sizeof *p->ends);
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t ops = orr_goal_ops(p->g, r);
        p->waits[r] = calloc(ops + 1, sizeof **p->waits);
        for (uint32_t i = 0; i < ops; i++) {
            p->waits[r][i] = orr_goal_pending(p->g, r, i);
            if (p->waits[r][i])
                continue;
            p->ready[p->last][0] = r;
            p->ready[p->last++][1] = i;
        }
    }
}

static inline void play_end_all(play *p)
{
    for (size_t i = 0; i < p->end_count && !p->problem; i++) {
        if (!p->ends[i].is_met)
            p->problem =
                p->ends[i].is_send ? "a message nobody receives" : "a receive without a message";
    }
    if (!p->problem && p->done != p->total)
        p->problem = "operations that never start";
    for (uint32_t r = 0; r < orr_goal_ranks(p->g); r++)
        free(p->waits[r]);
    free(p->waits);
    free(p->ready);
    free(p->ends);
}

/* NULL: all of it comes to its end. */
__attribute__((unused)) static const char *play_goal(const orr_goal *g, bool is_rendezvous)
{
    play p = {.g = g, .is_rendezvous = is_rendezvous};
    play_begin(&p);
    for (; p.first < p.last && !p.problem; p.first++)
        play_start(&p, p.ready[p.first][0], p.ready[p.first][1]);
    play_end_all(&p);
    return p.problem;
}

#endif
