/* SPDX-License-Identifier: Apache-2.0 */
/* fold_time.c - spreads, each stored once, and memoised operations on them.
 *
 * Invariant: a numbered spread never changes, so equal numbers mean equal spreads.  Memos are keyed
 * by numbers and, where it matters (a maximum), by the difference of the bases; their results are
 * relative to the base of the first operand. */
#include "fold_impl.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"

typedef struct spread {
    const int64_t *at; /* ns after the earliest member */
    int64_t most;      /* the largest offset, ns */
    uint32_t members;
} spread;

typedef struct memo {
    uint64_t op_map; /* operation, and the permutation */
    int64_t apart;   /* difference of the bases, where it matters */
    uint32_t a, b;
    fold_val result; /* relative to the base of a */
} memo;

struct fold_times {
    orr_arena *arena;
    spread *spreads;
    size_t spread_count, spread_room;
    orr_map *by_hash; /* of spreads; collisions continue at the next key */
    memo *memos;
    size_t memo_count, memo_room;
    orr_map *memo_by_hash;
    int64_t *scratch, *offsets;
    size_t scratch_room, offset_room, bytes, most_bytes;
    bool has_failed, is_full, is_unbound;
};

fold_times *fold_times_create(size_t most_bytes)
{
    fold_times *t = orr_alloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->most_bytes = most_bytes;
    t->arena = orr_arena_create();
    t->by_hash = orr_map_create(0);
    t->memo_by_hash = orr_map_create(0);
    t->spread_count = 1; /* number 0 is the even one */
    if (!t->arena || !t->by_hash || !t->memo_by_hash ||
        !orr_grow(&t->spreads, &t->spread_room, 1)) {
        fold_times_destroy(t);
        return NULL;
    }
    t->spreads[0] = (spread){0};
    return t;
}

void fold_times_destroy(fold_times *t)
{
    if (!t)
        return;
    orr_map_destroy(t->by_hash);
    orr_map_destroy(t->memo_by_hash);
    orr_free(t->spreads);
    orr_free(t->memos);
    orr_free(t->scratch);
    orr_free(t->offsets);
    orr_arena_destroy(t->arena);
    orr_free(t);
}

bool fold_times_failed(const fold_times *t)
{
    return t->has_failed;
}

bool fold_times_no_memory(const fold_times *t)
{
    return t->has_failed && !t->is_full;
}

void fold_times_unbound(fold_times *t)
{
    t->is_unbound = true;
}

const int64_t *fold_spread(const fold_times *t, uint32_t by)
{
    return t->spreads[by].at;
}

int64_t fold_most(const fold_times *t, fold_val v)
{
    return v.base + t->spreads[v.by].most;
}

static fold_val failed(fold_times *t)
{
    t->has_failed = true;
    return (fold_val){0, 0, 0};
}

/* Shared by all operations, and apart from `offsets`, which fold_make fills from it. */
static int64_t *take_scratch(fold_times *t, uint32_t members)
{
    return orr_grow(&t->scratch, &t->scratch_room, members) ? t->scratch : NULL;
}

/* Its number, or 0; *key: where it is, or would be. */
static uint32_t look_up(const fold_times *t,
                        const int64_t *offsets,
                        uint32_t members,
                        uint64_t *key)
{
    const size_t size = members * sizeof *offsets;
    uint32_t i;
    *key = orr_hash_bytes(offsets, size, members);
    while ((i = orr_map_find(t->by_hash, *key, 0)) != 0) {
        const spread *s = &t->spreads[i];
        /* Compared in full, so that equal numbers prove equality. */
        if (s->members == members && memcmp(s->at, offsets, size) == 0)
            return i;
        ++*key;
    }
    return 0;
}

uint32_t fold_find(const fold_times *t, const int64_t *offsets, uint32_t members)
{
    uint64_t key;
    const uint32_t i = look_up(t, offsets, members, &key);
    return i ? i : UINT32_MAX;
}

/* The only place where spreads are made: looked up, and stored if new. */
fold_val fold_make(fold_times *t, const int64_t *at, uint32_t members)
{
    int64_t least = at[0], most = at[0];
    for (uint32_t m = 1; m < members; m++) {
        least = at[m] < least ? at[m] : least;
        most = at[m] > most ? at[m] : most;
    }
    if (least == most)
        return (fold_val){least, 0, 0};
    const size_t size = members * sizeof *at;
    if (t->has_failed || !orr_grow(&t->offsets, &t->offset_room, members))
        return failed(t);
    for (uint32_t m = 0; m < members; m++)
        t->offsets[m] = at[m] - least;
    uint64_t key;
    uint32_t i = look_up(t, t->offsets, members, &key);
    if (i)
        return (fold_val){least, i, 0};
    i = (uint32_t)t->spread_count;
    t->bytes += size;
    const bool fits = t->is_unbound || t->bytes <= t->most_bytes;
    /* Full is not out of memory: then every rank is simulated instead (fold_run). */
    t->is_full = t->is_full || !fits;
    int64_t *kept = fits ? orr_arena_take(t->arena, size) : NULL;
    if (!kept || !orr_grow(&t->spreads, &t->spread_room, t->spread_count + 1) ||
        !orr_map_put(t->by_hash, key, i, NULL))
        return failed(t);
    memcpy(kept, t->offsets, size);
    t->spreads[t->spread_count++] = (spread){kept, most - least, members};
    return (fold_val){least, i, 0};
}

/* ---- memoised operations ---- */

enum { OP_ADD = 1, OP_SUB, OP_MAX, OP_PERMUTE, OP_PART };

static uint64_t memo_key(const memo *k)
{
    const uint64_t pair = (uint64_t)k->a << 32 | k->b;
    return orr_hash_mix(
        pair ^ 0xa0761d6478bd642fu,
        orr_hash_mix((uint64_t)k->apart ^ 0xe7037ed1a0b428dbu, k->op_map ^ 0x8ebc6af09c88c6e3u));
}

static bool recall(const fold_times *t, memo *k, uint64_t *key)
{
    uint32_t i;
    *key = memo_key(k);
    while ((i = orr_map_find(t->memo_by_hash, *key, UINT32_MAX)) != UINT32_MAX) {
        const memo *m = &t->memos[i];
        if (m->op_map == k->op_map && m->apart == k->apart && m->a == k->a && m->b == k->b) {
            k->result = m->result;
            return true;
        }
        ++*key;
    }
    return false;
}

static fold_val keep(fold_times *t, memo *k, uint64_t key, const int64_t *at, uint32_t members)
{
    k->result = fold_make(t, at, members);
    if (t->has_failed || !orr_grow(&t->memos, &t->memo_room, t->memo_count + 1) ||
        !orr_map_put(t->memo_by_hash, key, (uint32_t)t->memo_count, NULL))
        return failed(t);
    t->memos[t->memo_count++] = *k;
    return k->result;
}

static fold_val relative(fold_val v, int64_t base)
{
    return (fold_val){v.base + base, v.by, 0};
}

fold_val fold_add_slow(fold_times *t, fold_val a, fold_val b)
{
    memo k = {.op_map = OP_ADD, .a = a.by, .b = b.by};
    uint64_t key;
    if (!recall(t, &k, &key)) {
        /* Neither is even (fold_add). */
        const uint32_t n = t->spreads[a.by].members;
        int64_t *at = take_scratch(t, n);
        if (!at)
            return failed(t);
        for (uint32_t m = 0; m < n; m++)
            at[m] = t->spreads[a.by].at[m] + t->spreads[b.by].at[m];
        keep(t, &k, key, at, n);
    }
    return relative(k.result, a.base + b.base);
}

fold_val fold_sub_slow(fold_times *t, fold_val a, fold_val b)
{
    memo k = {.op_map = OP_SUB, .a = a.by, .b = b.by};
    uint64_t key;
    if (!recall(t, &k, &key)) {
        /* b is not even (fold_sub); a may be, and then has no list. */
        const uint32_t n = t->spreads[b.by].members;
        int64_t *at = take_scratch(t, n);
        if (!at)
            return failed(t);
        for (uint32_t m = 0; m < n; m++)
            at[m] = (a.by ? t->spreads[a.by].at[m] : 0) - t->spreads[b.by].at[m];
        keep(t, &k, key, at, n);
    }
    return relative(k.result, a.base - b.base);
}

fold_val fold_max_slow(fold_times *t, fold_val a, fold_val b)
{
    memo k = {.op_map = OP_MAX, .a = a.by, .b = b.by, .apart = b.base - a.base};
    uint64_t key;
    /* All of one precede all of the other: no new spread, and no memo. */
    if (fold_most(t, a) <= b.base)
        return b;
    if (fold_most(t, b) <= a.base)
        return a;
    if (!recall(t, &k, &key)) {
        /* One of them may be even, not both (fold_max). */
        const uint32_t n = t->spreads[a.by ? a.by : b.by].members;
        int64_t *at = take_scratch(t, n);
        if (!at)
            return failed(t);
        for (uint32_t m = 0; m < n; m++) {
            const int64_t x = a.by ? t->spreads[a.by].at[m] : 0;
            const int64_t y = k.apart + (b.by ? t->spreads[b.by].at[m] : 0);
            at[m] = x > y ? x : y;
        }
        keep(t, &k, key, at, n);
    }
    return relative(k.result, a.base);
}

fold_val fold_permute(
    fold_times *t, fold_val a, uint32_t map, const uint32_t *from, uint32_t members)
{
    /* By the number of the permutation, which stands for `from`. */
    memo k = {.op_map = OP_PERMUTE | (uint64_t)map << 8, .a = a.by};
    uint64_t key;
    if (!a.by)
        return a;
    if (!recall(t, &k, &key)) {
        int64_t *at = take_scratch(t, members);
        if (!at)
            return failed(t);
        for (uint32_t m = 0; m < members; m++)
            at[m] = t->spreads[a.by].at[from[m]];
        keep(t, &k, key, at, members);
    }
    return relative(k.result, a.base);
}

/* Of a merged class: the values of one of its parts. */
fold_val fold_part_of(fold_times *t, fold_val a, uint32_t at, uint32_t count)
{
    /* b is a count here, and no spread: the operation keeps such keys apart. */
    memo k = {.op_map = OP_PART | (uint64_t)at << 8, .a = a.by, .b = count};
    uint64_t key;
    if (!a.by || (at == 0 && count == t->spreads[a.by].members))
        return a;
    if (!recall(t, &k, &key)) {
        int64_t *part = take_scratch(t, count);
        if (!part)
            return failed(t);
        memcpy(part, t->spreads[a.by].at + at, count * sizeof *part);
        keep(t, &k, key, part, count);
    }
    return relative(k.result, a.base);
}
