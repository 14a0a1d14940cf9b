/* SPDX-License-Identifier: Apache-2.0 */
/* convert_order.c - dependencies sorted by node, each once, and without cycles.
 *
 * What threads, launches and streams say is free of cycles.  What was added to that may not be: traces have clocks that
 * jump and ids that were mixed up.  So nodes are taken away while they wait for nothing; if some remain, they are in
 * cycles or behind one, and what was added between them goes.  Once is enough: what remains then is certain.
 *
 * Cost: linear. */
#include "conversion.h"

static bool make_room(conv_state *c)
{
    c->dep_first = orr_arena_new(c->arena, (size_t)c->count + 2, uint32_t);
    c->dep = orr_arena_new(c->arena, c->link_count + 1, uint32_t);
    return c->link_count < UINT32_MAX && c->dep_first && c->dep;
}

/* Links in the order of `to`; among those of one node in the order in which they were found. */
static void sort_links(conv_state *c)
{
    memset(c->dep_first, 0, ((size_t)c->count + 2) * sizeof *c->dep_first);
    for (size_t i = 0; i < c->link_count; i++)
        c->dep_first[c->links[i].to + 2]++;
    for (uint32_t p = 0; p < c->count; p++)
        c->dep_first[p + 2] += c->dep_first[p + 1];
    for (size_t i = 0; i < c->link_count;
         i++) /* [p + 1] walks from the beginning of p to its end */
        c->dep[c->dep_first[c->links[i].to + 1]++] = c->links[i].from;
}

/* Dependencies of one node are few. */
static void drop_repeated(conv_state *c)
{
    uint32_t kept = 0, next = c->dep_first[0];
    for (uint32_t p = 0; p < c->count; p++) {
        const uint32_t from = next, begin = kept;
        next = c->dep_first[p + 1];
        for (uint32_t e = from; e < next; e++) {
            uint32_t k = begin;
            while (k < kept && c->dep[k] != c->dep[e])
                k++;
            if (k == kept)
                c->dep[kept++] = c->dep[e];
        }
        c->dep_first[p] = begin;
    }
    c->dep_first[c->count] = kept;
}

/* ---- cycles ---- */

typedef struct peeling {
    uint32_t *waits, *first, *child, *queue;
} peeling;

static bool prepare(const conv_state *c, peeling *s)
{
    const size_t n = (size_t)c->count + 2;
    s->waits = orr_arena_new(c->arena, n, uint32_t);
    s->first = orr_arena_new(c->arena, n + 1, uint32_t);
    s->child = orr_arena_new(c->arena, c->dep_first[c->count] + (size_t)1, uint32_t);
    s->queue = orr_arena_new(c->arena, n, uint32_t);
    if (!s->waits || !s->first || !s->child || !s->queue)
        return false;
    for (uint32_t p = 0; p < c->count; p++) {
        s->waits[p] = c->dep_first[p + 1] - c->dep_first[p];
        for (uint32_t e = c->dep_first[p]; e < c->dep_first[p + 1]; e++)
            s->first[c->dep[e] + 2]++;
    }
    for (uint32_t p = 0; p < c->count; p++)
        s->first[p + 2] += s->first[p + 1];
    for (uint32_t p = 0; p < c->count; p++)
        for (uint32_t e = c->dep_first[p]; e < c->dep_first[p + 1]; e++)
            s->child[s->first[c->dep[e] + 1]++] = p;
    return true;
}

/* How many nodes can be run. */
static uint32_t peel(const conv_state *c, peeling *s)
{
    uint32_t known = 0, done = 0;
    for (uint32_t p = 0; p < c->count; p++) {
        if (s->waits[p] == 0)
            s->queue[known++] = p;
    }
    while (done < known) {
        const uint32_t p = s->queue[done++];
        for (uint32_t k = s->first[p]; k < s->first[p + 1]; k++) {
            if (--s->waits[s->child[k]] == 0)
                s->queue[known++] = s->child[k];
        }
    }
    return done;
}

static void drop_doubtful(conv_state *c, const peeling *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->link_count; i++) {
        const conv_link *k = &c->links[i];
        const bool is_stuck = s->waits[k->from] && s->waits[k->to];
        if (k->is_certain || !is_stuck)
            c->links[kept++] = *k;
        else
            c->report->dependencies_circular++;
    }
    c->link_count = kept;
}

orr_code conv_settle_order(conv_state *c)
{
    peeling s;
    if (!make_room(c))
        return orr_no_memory(c->err);
    sort_links(c);
    drop_repeated(c);
    if (!prepare(c, &s))
        return orr_no_memory(c->err);
    if (peel(c, &s) == c->count)
        return ORR_OK;
    drop_doubtful(c, &s);
    sort_links(c);
    drop_repeated(c);
    if (!prepare(c, &s))
        return orr_no_memory(c->err);
    if (peel(c, &s) == c->count)
        return ORR_OK;
    return orr_fail(c->err, ORR_EBUG, NULL, "threads, launches and streams form a cycle");
}
