/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_streams.c - a GPU's calls by stream, streams in the order in which they are written (goal.md 5.6), and whether they
 * may be merged (5.10).
 *
 * The old way orders streams by the context of their first call, then by length and name; ours, whose contexts differ
 * otherwise, by when they start, and keeps calls of a stream as they were made.  Merged, all calls are one stream. */
#include "nccl_write.h"

#include <stdlib.h>

typedef struct item {
    int64_t from, to; /* both 0 where the order of the calls decides */
    uint64_t order;
    uint32_t call, stream; /* stream: its number here */
} item;

typedef struct head {
    uint64_t first; /* context, or start */
    uint32_t count, number;
    orr_str name;
    uint32_t text;
} head;

static int head_order(const void *a, const void *b)
{
    const head *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return strcmp(x->name.ptr, y->name.ptr);
}

/* By stream, then as they are written: by start, end and the order of the calls. */
static int item_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool find_heads(
    const nccl_job *j, const nccl_gpu *g, orr_map *numbers, head *heads, uint32_t *count)
{
    for (size_t i = 0; i < g->events.count; i++) {
        const nccl_call *c = &g->calls.at[g->events.at[i]];
        uint32_t n = orr_map_find(numbers, c->stream, ORR__NONE);
        if (n == ORR__NONE) {
            n = (*count)++;
            if (!orr_map_put(numbers, c->stream, n, NULL))
                return false;
            heads[n] =
                (head){/* starts as unsigned numbers in the same order */
                       .first = j->rules->orders_by_context ? c->context
                                                            : (uint64_t)c->from ^ UINT64_C(1) << 63,
                       .number = n,
                       .name = nccl_text(j, c->stream),
                       .text = c->stream};
        }
        heads[n].count++;
    }
    return true;
}

static void place(
    nccl_streams *s, const item *items, size_t count, const head *heads, bool is_merged)
{
    for (size_t i = 0; i < count; i++) {
        s->calls[i] = items[i].call;
        if (i == 0 || items[i].stream != items[i - 1].stream)
            s->at[s->count++] = (nccl_stream){
                .name = is_merged ? ORR__NONE : heads[items[i].stream].text, .from = (uint32_t)i};
        s->at[s->count - 1].count++;
    }
}

static orr_code sort_streams(const nccl_job *j,
                             const nccl_gpu *g,
                             bool is_merged,
                             orr_map *numbers,
                             nccl_streams *s,
                             orr_error *err)
{
    const size_t n = g->events.count;
    uint32_t count = 0;
    head *heads = orr_arena_new(s->arena, n + 1, head);
    uint32_t *place_of = orr_arena_new(s->arena, n + 1, uint32_t);
    item *items = orr_arena_new(s->arena, n + 1, item);
    s->at = orr_arena_new(s->arena, n + 1, nccl_stream);
    s->calls = orr_arena_new(s->arena, n + 1, uint32_t);
    if (!heads || !place_of || !items || !s->at || !s->calls ||
        !find_heads(j, g, numbers, heads, &count))
        return orr_no_memory(err);
    qsort(heads, count, sizeof *heads, head_order);
    for (uint32_t i = 0; i < count; i++)
        place_of[heads[i].number] = i;
    for (size_t i = 0; i < n; i++) {
        const nccl_call *c = &g->calls.at[g->events.at[i]];
        const bool is_by_time = is_merged || j->rules->orders_by_context;
        items[i] = (item){.from = is_by_time ? c->from : 0,
                          .to = is_by_time ? c->to : 0,
                          .order = c->order,
                          .call = g->events.at[i],
                          .stream = is_merged ? 0 : place_of[orr_map_find(numbers, c->stream, 0)]};
    }
    qsort(items, n, sizeof *items, item_order);
    place(s, items, n, heads, is_merged);
    return ORR_OK;
}

orr_code nccl_streams_make(
    const nccl_job *j, uint32_t gpu, bool is_merged, nccl_streams *out, orr_error *err)
{
    orr_map *numbers = orr_map_create(16);
    *out = (nccl_streams){.arena = orr_arena_create()};
    const orr_code code = numbers && out->arena
                              ? sort_streams(j, &j->gpus.at[gpu], is_merged, numbers, out, err)
                              : orr_no_memory(err);
    orr_map_destroy(numbers);
    return code;
}

void nccl_streams_fini(nccl_streams *s)
{
    orr_arena_destroy(s->arena);
    *s = (nccl_streams){0};
}

/* ---- merging ---- */

/* The latest ends of two different streams among what started before some time. */
typedef struct latest {
    int64_t end[2];
    uint32_t stream[2];
} latest;

static void remember(latest *l, int64_t end, uint32_t stream)
{
    if (stream == l->stream[0]) {
        l->end[0] = end > l->end[0] ? end : l->end[0];
    } else if (end > l->end[0]) {
        l->end[1] = l->end[0];
        l->stream[1] = l->stream[0];
        l->end[0] = end;
        l->stream[0] = stream;
    } else if (end > l->end[1]) {
        l->end[1] = end;
        l->stream[1] = stream;
    }
}

/* Calls first..below end start together: two that take time, of two streams, overlap; so does one with what others
 * have not ended yet. */
static bool batch_overlaps(const nccl_gpu *g, size_t first, size_t end, const latest *before)
{
    uint32_t busy = ORR__NONE;
    for (size_t i = first; i < end; i++) {
        const nccl_call *c = &g->calls.at[g->events.at[i]];
        const int64_t others = before->stream[0] == c->stream ? before->end[1] : before->end[0];
        if (others > c->from)
            return true;
        if (c->to == c->from)
            continue;
        if (busy != ORR__NONE && busy != c->stream)
            return true;
        busy = c->stream;
    }
    return false;
}

bool nccl_gpu_overlaps(const nccl_gpu *g)
{
    latest l = {.end = {INT64_MIN, INT64_MIN}, .stream = {ORR__NONE, ORR__NONE}};
    for (size_t i = 0, end; i < g->events.count; i = end) {
        const int64_t from = g->calls.at[g->events.at[i]].from;
        for (end = i; end < g->events.count && g->calls.at[g->events.at[end]].from == from; end++)
            ;
        if (batch_overlaps(g, i, end, &l))
            return true;
        for (size_t k = i; k < end; k++)
            remember(&l, g->calls.at[g->events.at[k]].to, g->calls.at[g->events.at[k]].stream);
    }
    return false;
}
