/* SPDX-License-Identifier: Apache-2.0 */
/* goal_check.c - static checks of a schedule: missing peers, dependency cycles, unmatched sends and
 * receives.
 *
 * Pairs are counted by receiver, sender and tag, both sides sorted.  At a receiver with wildcards
 * only the totals can be compared: which message a wildcard matches is decided at run time. Cost:
 * 24 bytes per message and a sort. */
#include <orrery/lab/goal_check.h>

#include "base/memory/buffer.h"
#include "base/memory/sort.h"
#include "base/short_forms.h"
#include "trace/goal_impl.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct end {
    uint32_t to, from, tag;
    uint32_t rank, op; /* where it stands */
    bool is_send;
} end;

typedef struct checker {
    const orr_goal *g;
    orr_goal_report *r;
    orr_error *err;
    end *ends;
    size_t count, room;
    bool *has_wildcards;   /* by rank */
    uint32_t *left, *work; /* of one rank: edges left; the ready list */
    size_t left_room, work_room;
} checker;

static void find(checker *c, orr_goal_finding_kind kind, uint32_t rank, uint32_t op, uint64_t count)
{
    orr_goal_report *r = c->r;
    r->counts[kind]++;
    if (r->counts[kind] <= ORR_GOAL_FINDINGS_SHOWN)
        r->findings[r->finding_count++] = (orr_goal_finding){kind, rank, op, count};
}

/* ---- one rank */

static bool is_wild(const orr__goal_node *n)
{
    return n->tag == ORR_GOAL_ANY || (n->kind == ORR_GOAL_RECV && n->peer == ORR_GOAL_ANY);
}

static bool add_end(checker *c, uint32_t rank, uint32_t op, const orr__goal_node *n)
{
    const bool is_send = n->kind == ORR_GOAL_SEND;
    const uint32_t to = is_send ? n->peer : rank;
    if (is_wild(n))
        c->has_wildcards[to] = true;
    return orr_push(c->ends, c->count, c->room,
                    (end){to, is_send ? rank : n->peer, n->tag, rank, op, is_send});
}

static bool check_messages(checker *c, uint32_t rank)
{
    const orr__goal_node *nodes = orr__goal_nodes(c->g, rank);
    const uint32_t ops = orr__goal_ops(c->g, rank);
    for (uint32_t i = 0; i < ops; i++) {
        const orr__goal_node *n = &nodes[i];
        if (n->kind == ORR_GOAL_CALC)
            continue;
        if (n->peer >= c->g->rank_count && !(n->kind == ORR_GOAL_RECV && n->peer == ORR_GOAL_ANY))
            find(c, ORR_GOAL_NO_SUCH_RANK, rank, i, 0);
        else if (!add_end(c, rank, i, n))
            return false;
    }
    return true;
}

/* Removes ready operations until none is left: the rest are on or after a cycle. */
static bool check_cycles(checker *c, uint32_t rank)
{
    const orr__goal_node *nodes = orr__goal_nodes(c->g, rank);
    const uint32_t *edges = orr__goal_edges(c->g, rank), ops = orr__goal_ops(c->g, rank);
    if (!orr_grow(&c->left, &c->left_room, (size_t)ops + 1) ||
        !orr_grow(&c->work, &c->work_room, (size_t)ops + 1))
        return false;
    uint32_t free = 0, done = 0;
    for (uint32_t i = 0; i < ops; i++) {
        c->left[i] = nodes[i].waits;
        if (nodes[i].waits == 0)
            c->work[free++] = i;
    }
    while (free) {
        const uint32_t i = c->work[--free];
        done++;
        for (uint32_t k = nodes[i].then; k < nodes[i + 1].then; k++) {
            if (--c->left[edges[k]] == 0)
                c->work[free++] = edges[k];
        }
    }
    for (uint32_t i = 0; done < ops && i < ops; i++) {
        if (c->left[i] == 0)
            continue;
        find(c, ORR_GOAL_CYCLE, rank, i, ops - done);
        break;
    }
    return true;
}

/* ---- pairs */

static int by_channel(const void *a, const void *b)
{
    const end *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->is_send != y->is_send)
        return x->is_send ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static bool is_same(const checker *c, const end *a, const end *b)
{
    return a->to == b->to && (c->has_wildcards[a->to] || (a->from == b->from && a->tag == b->tag));
}

/* Ends [from, to) are of one channel: which are in excess? */
static void compare(checker *c, size_t from, size_t to)
{
    const end *first_send = NULL, *first_recv = NULL;
    uint64_t sends = 0, recvs = 0;
    for (size_t i = from; i < to; i++) {
        const end *e = &c->ends[i];
        const end **first = e->is_send ? &first_send : &first_recv;
        *first = *first ? *first : e;
        *(e->is_send ? &sends : &recvs) += 1;
    }
    if (sends > recvs)
        find(c, ORR_GOAL_NOT_RECEIVED, first_send->rank, first_send->op, sends - recvs);
    if (recvs > sends)
        find(c, ORR_GOAL_NOT_SENT, first_recv->rank, first_recv->op, recvs - sends);
}

static void check_pairs(checker *c)
{
    if (c->count)
        orr_sort(c->ends, c->count, sizeof *c->ends, by_channel);
    for (size_t i = 0; i < c->count;) {
        size_t n = i;
        while (n < c->count && is_same(c, &c->ends[i], &c->ends[n]))
            n++;
        compare(c, i, n);
        i = n;
    }
}

orr_code orr_goal_check(const orr_goal *g, orr_goal_report *out, orr_error *err)
{
    checker c = {.g = g, .r = out, .err = err};
    *out = (orr_goal_report){0};
    c.has_wildcards = orr_alloc(g->rank_count, sizeof *c.has_wildcards);
    bool is_good = c.has_wildcards != NULL;
    for (uint32_t r = 0; is_good && r < g->rank_count; r++)
        is_good = check_messages(&c, r) && check_cycles(&c, r);
    if (is_good)
        check_pairs(&c);
    orr_free(c.has_wildcards);
    orr_free(c.ends);
    orr_free(c.left);
    orr_free(c.work);
    return is_good ? ORR_OK : orr_no_memory(err);
}

const char *orr_goal_finding_name(orr_goal_finding_kind kind)
{
    static const char *const names[] = {"no_such_rank", "cycle", "not_received", "not_sent"};
    return names[kind];
}

char *orr_goal_finding_text(const orr_goal *g, const orr_goal_finding *f, char *buf, size_t size)
{
    char op[96];
    const orr_goal_op o = orr_goal_get(g, f->rank, f->op);
    const unsigned long long count = f->count;
    orr_goal_op_text(&o, op, sizeof op);
    const int n = snprintf(buf, size, "rank %u: operation %u (%s): ", f->rank, f->op + 1, op);
    if (n < 0 || (size_t)n >= size)
        return buf;
    switch (f->kind) {
    case ORR_GOAL_NO_SUCH_RANK:
        snprintf(buf + n, size - (size_t)n, "there are only %u ranks", g->rank_count);
        break;
    case ORR_GOAL_CYCLE:
        snprintf(buf + n, size - (size_t)n,
                 "is in a dependency cycle or waits for one (%llu of this rank's operations)",
                 count);
        break;
    case ORR_GOAL_NOT_RECEIVED:
        snprintf(buf + n, size - (size_t)n, "%llu more sent than received", count);
        break;
    default:
        snprintf(buf + n, size - (size_t)n, "%llu more received than sent", count);
    }
    return buf;
}
