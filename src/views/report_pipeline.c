/* SPDX-License-Identifier: Apache-2.0 */
/* report_pipeline.c - pipeline stages, from who sends to whom.
 *
 *     rank 0 -> 8 -> 16 -> 24        each rank has a predecessor and a successor at most: a line
 *     rank 1 -> 9 -> 17 -> 25        (or a circle, when stages are interleaved), all lines equally long
 *
 * The k-th ranks of all lines are stage k.  A line begins at the end that sends first; a circle at the rank that
 * sends first, towards whom it sends first.  Any other pattern of messages is not taken for a pipeline: then there
 * are no stages. */
#include "info_impl.h"
#include "report_impl.h"

#include <stdlib.h>

/* The neighbours of a rank, and when it first sent to each. */
typedef struct neighbours {
    uint32_t place[2];
    orr_ps sent_at[2]; /* INT64_MAX: it only receives from there */
    uint32_t count;    /* 3: too many */
} neighbours;

typedef struct finder {
    orr__study *s;
    neighbours *of; /* by place */
    bool *is_done;
} finder;

static int compare_ranks(const void *key, const void *item)
{
    const uint32_t rank = *(const uint32_t *)key;
    const orr__rank_times *r = item;
    return rank < r->rank ? -1 : rank > r->rank;
}

static uint32_t place_of_rank(const orr__study *s, uint32_t rank)
{
    const orr__rank_times *r =
        bsearch(&rank, s->ranks, s->rank_count, sizeof *s->ranks, compare_ranks);
    return r ? (uint32_t)(r - s->ranks) : ORR__NO_PLACE;
}

static void add_neighbour(neighbours *n, uint32_t place, orr_ps sent_at)
{
    uint32_t k = 0;
    while (k < n->count && k < 2 && n->place[k] != place)
        k++;
    if (k == 2) {
        n->count = 3;
        return;
    }
    if (k == n->count) {
        n->place[k] = place;
        n->sent_at[k] = INT64_MAX;
        n->count++;
    }
    if (sent_at < n->sent_at[k])
        n->sent_at[k] = sent_at;
}

/* False: this is no pipeline. */
static bool find_neighbours(finder *f)
{
    const orr_timeline_parts *p = f->s->p;
    for (uint32_t i = 0; i < p->span_count; i++) {
        const orr_timespan *span = &p->spans[i];
        if (!(span->has & ORR_SPAN_HAS_PEER) ||
            (span->kind != ORR_SPAN_SEND && span->kind != ORR_SPAN_RECEIVE))
            continue;
        const uint32_t me = f->s->place_of_track[span->track];
        const uint32_t peer = place_of_rank(f->s, span->peer);
        if (me == ORR__NO_PLACE || peer == ORR__NO_PLACE || me == peer)
            return false;
        add_neighbour(&f->of[me], peer, span->kind == ORR_SPAN_SEND ? span->start : INT64_MAX);
        add_neighbour(&f->of[peer], me, INT64_MAX);
        if (f->of[me].count > 2 || f->of[peer].count > 2)
            return false;
    }
    return true;
}

static orr_ps first_send(const neighbours *n)
{
    orr_ps first = INT64_MAX;
    for (uint32_t k = 0; k < n->count; k++)
        if (n->sent_at[k] < first)
            first = n->sent_at[k];
    return first;
}

/* All that hangs together with `place`, in list; returns how many. */
static uint32_t collect(finder *f, uint32_t place, uint32_t *list)
{
    uint32_t count = 0;
    list[count++] = place;
    f->is_done[place] = true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < f->of[list[i]].count; k++) {
            const uint32_t next = f->of[list[i]].place[k];
            if (!f->is_done[next])
                list[count++] = next;
            f->is_done[next] = true;
        }
    return count;
}

static bool is_end(const finder *f, uint32_t place)
{
    return f->of[place].count == 1;
}

/* The rank it begins with: of the ends, or of all when it is a circle, the one that sends first. */
static uint32_t find_head(const finder *f, const uint32_t *list, uint32_t count)
{
    uint32_t head = ORR__NO_PLACE;
    bool has_ends = false;
    for (uint32_t i = 0; i < count; i++)
        has_ends |= is_end(f, list[i]);
    for (uint32_t i = 0; i < count; i++) {
        const bool can_be = is_end(f, list[i]) == has_ends;
        if (can_be &&
            (head == ORR__NO_PLACE || first_send(&f->of[list[i]]) < first_send(&f->of[head])))
            head = list[i];
    }
    return head;
}

static void number_line(const finder *f, uint32_t head, uint32_t count)
{
    const neighbours *h = &f->of[head];
    uint32_t before = head, at = head;
    uint32_t next = h->place[h->count == 2 && h->sent_at[1] < h->sent_at[0] ? 1 : 0];
    for (uint32_t stage = 0; stage < count; stage++) {
        f->s->ranks[at].stage = stage;
        before = at;
        at = next;
        const neighbours *n = &f->of[at];
        next = n->count == 2 && n->place[0] == before ? n->place[1] : n->place[0];
    }
}

/* 0: they are not all in lines of the same length. */
static uint32_t number_lines(finder *f, uint32_t *list)
{
    const uint32_t ranks = f->s->rank_count;
    uint32_t length = 0;
    for (uint32_t place = 0; place < ranks; place++) {
        if (f->is_done[place])
            continue;
        const uint32_t count = collect(f, place, list);
        if (count < 2 || (length && count != length))
            return 0;
        length = count;
        number_line(f, find_head(f, list, count), count);
    }
    return length;
}

static bool add_stages(orr__study *s, uint32_t *list)
{
    s->stages = orr_arena_new(s->arena, s->stage_count, orr__stage);
    if (!s->stages)
        return false;
    for (uint32_t k = 0; k < s->stage_count; k++) {
        orr__stage *stage = &s->stages[k];
        for (uint32_t place = 0; place < s->rank_count; place++) {
            if (s->ranks[place].stage != k)
                continue;
            list[stage->count++] = s->ranks[place].rank;
            stage->waiting += s->ranks[place].waiting;
        }
        stage->ranks = orr__rank_ranges(s->arena, list, stage->count);
        if (!stage->ranks)
            return false;
    }
    return true;
}

orr_code orr__study_pipeline(orr__study *s)
{
    finder f = {.s = s,
                .of = orr_arena_new(s->arena, s->rank_count, neighbours),
                .is_done = orr_arena_new(s->arena, s->rank_count, bool)};
    uint32_t *list = orr_arena_new(s->arena, s->rank_count, uint32_t);
    if (!f.of || !f.is_done || !list)
        return orr_no_memory(s->err);
    s->stage_count = find_neighbours(&f) ? number_lines(&f, list) : 0;
    for (uint32_t place = 0; place < s->rank_count && !s->stage_count; place++)
        s->ranks[place].stage = ORR__NO_STAGE;
    return add_stages(s, list) ? ORR_OK : orr_no_memory(s->err);
}
