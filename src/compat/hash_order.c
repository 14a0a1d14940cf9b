/* SPDX-License-Identifier: Apache-2.0 */
/* hash_order.c - one list through all members; those of a bucket are neighbours.  A new member goes
 * to the front of its bucket's run, or to the front of the list when its bucket is empty
 * (astra-sim.md 12).
 *
 * Why this order: the reference issues nodes of custom collectives by walking a set of the C++
 * library, so results depend on that library's iteration order.  Cost: O(1) per operation, plus a
 * rehash when the table grows. */
#include "hash_order.h"

#include <string.h>

#define NONE UINT32_MAX

/* The sizes of the library's table as it doubles. */
static const uint64_t sizes[] = {13,        29,        59,         127,       257,       541,
                                 1109,      2357,      5087,       10273,     20753,     42043,
                                 85229,     172933,    351061,     712697,    1447153,   2938679,
                                 5967347,   12117689,  24607243,   49969847,  101473717, 206062531,
                                 418445239, 849728321, 1725517109, 3503951293};

bool hash_order_init(hash_order *s, const uint64_t *ids, uint32_t possible)
{
    *s = (hash_order){.ids = ids, .possible = possible, .buckets = 1, .first = NONE};
    s->next = orr_alloc(possible, sizeof *s->next);
    s->previous = orr_alloc(possible, sizeof *s->previous);
    s->is_in = orr_alloc(possible, sizeof *s->is_in);
    return s->next && s->previous && s->is_in;
}

void hash_order_fini(hash_order *s)
{
    orr_free(s->next);
    orr_free(s->previous);
    orr_free(s->is_in);
    orr_free(s->bucket_first);
}

static void clear(void *set)
{
    hash_order *s = set;
    for (uint32_t m = s->first; m != NONE; m = s->next[m])
        s->is_in[m] = false;
    s->first = NONE;
    s->buckets = 1;
    s->limit = s->count = 0;
}

/* Put a member in front of `at` (NONE: the list is empty). */
static void put_before(hash_order *s, uint32_t member, uint32_t at)
{
    const uint32_t before = at == NONE ? NONE : s->previous[at];
    s->next[member] = at;
    s->previous[member] = before;
    if (at != NONE)
        s->previous[at] = member;
    if (before != NONE)
        s->next[before] = member;
    else
        s->first = member;
}

static void place(hash_order *s, uint32_t member)
{
    uint32_t *head = &s->bucket_first[s->ids[member] % s->buckets];
    /* Before its bucket, or before all: as in the library. */
    put_before(s, member, *head != NONE ? *head : s->first);
    *head = member;
}

static bool rebuild(hash_order *s, uint64_t wanted)
{
    size_t i = 0;
    while (i + 1 < sizeof sizes / sizeof *sizes && sizes[i] < wanted)
        i++;
    if (!orr_grow(&s->bucket_first, &s->bucket_room, (size_t)sizes[i]))
        return false;
    s->buckets = sizes[i];
    memset(s->bucket_first, 0xff, (size_t)s->buckets * sizeof *s->bucket_first);
    /* In list order, each to the front of its bucket: this reverses the order within a bucket, as
     * the library does when it grows. */
    uint32_t member = s->first;
    s->first = NONE;
    while (member != NONE) {
        const uint32_t next = s->next[member];
        place(s, member);
        member = next;
    }
    return true;
}

static bool make_room(hash_order *s)
{
    uint64_t need = s->count + 1;
    if (need <= s->limit)
        return true;
    /* The library's first growth is to at least 11, hence its first size of 13. */
    if (s->limit == 0 && need < 11)
        need = 11;
    if (need >= s->buckets) {
        const uint64_t wanted = need + 1 > 2 * s->buckets ? need + 1 : 2 * s->buckets;
        if (!rebuild(s, wanted))
            return false;
    }
    s->limit = s->buckets;
    return true;
}

bool hash_order_add(hash_order *s, uint32_t member)
{
    if (s->is_in[member])
        return true;
    if (!make_room(s))
        return false;
    place(s, member);
    s->is_in[member] = true;
    s->count++;
    return true;
}

static void take_out(hash_order *s, uint32_t member)
{
    const uint32_t next = s->next[member], before = s->previous[member];
    const uint64_t bucket = s->ids[member] % s->buckets;
    if (s->bucket_first[bucket] == member)
        /* Members of a bucket are adjacent: the next one belongs to it, or it is empty. */
        s->bucket_first[bucket] = next != NONE && s->ids[next] % s->buckets == bucket ? next : NONE;
    if (next != NONE)
        s->previous[next] = before;
    if (before != NONE)
        s->next[before] = next;
    else
        s->first = next;
    s->is_in[member] = false;
    s->count--;
}

/* ---- as a rule ---- */

static void destroy(void *set)
{
    if (set)
        hash_order_fini(set);
    orr_free(set);
}

static void *create(const uint64_t *ids, uint32_t possible)
{
    hash_order *s = orr_alloc(1, sizeof *s);
    if (!s || hash_order_init(s, ids, possible))
        return s;
    destroy(s);
    return NULL;
}

static bool add(void *set, uint32_t member)
{
    return hash_order_add(set, member);
}

static uint32_t take(void *set)
{
    const uint32_t member = ((const hash_order *)set)->first;
    if (member != NONE)
        take_out(set, member);
    return member;
}

const run_node_order orr__hash_order = {
    .create = create,
    .destroy = destroy,
    .add = add,
    .take = take,
    .clear = clear,
};
