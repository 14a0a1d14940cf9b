/* SPDX-License-Identifier: Apache-2.0 */
/* check_shapes.c - classes with holes, split into ranks that are the same up to renaming.
 *
 * Two nodes of a class that have their groups (or peers) from two slots are in two groups on most
 * ranks, but in one on a rank whose two values are equal.  So the ranks of a class are
 * distinguished by *which* of their values coincide, not by the values: a class of 32,768 ranks
 * nearly always has one shape.  Everything that compares ranks then uses shapes, and a rank's
 * values only to find its peers. Cost: one step per value. */
#include "check_impl.h"

typedef struct splitting {
    chk_run *k;
    const chk_splitter *by;
    chk_shapes *out;
    size_t room;
    orr_intern *patterns; /* class and pattern; its numbers are those of the shapes */
    int64_t *key;
    size_t key_room;
} splitting;

static bool add_shape(splitting *s, uint32_t class_index, size_t length)
{
    chk_shapes *out = s->out;
    int64_t *pattern = orr_arena_new(s->k->scratch, length + 1, int64_t);
    if (!pattern || !orr_grow(&out->all, &s->room, (size_t)out->count + 1))
        return false;
    memcpy(pattern, s->key + 1, length * sizeof *pattern);
    out->all[out->count++] = (chk_shape){.class_index = class_index, .pattern = pattern};
    return true;
}

static bool place_rank(splitting *s, uint32_t class_index, size_t length, uint32_t rank)
{
    const orr_str key = {(const char *)s->key, (length + 1) * sizeof *s->key};
    uint32_t *shape = &s->out->of_rank[rank];
    if (!orr_intern_add(s->patterns, key, shape) ||
        (*shape == s->out->count && !add_shape(s, class_index, length)))
        return false;
    s->out->all[*shape].rank_count++;
    return true;
}

static bool split_class(splitting *s, const chk_class *cls)
{
    const size_t length = s->by->begin(s->by->context, cls->index);
    if (!orr_grow(&s->key, &s->key_room, length + 1))
        return false;
    s->key[0] = cls->index;
    for (uint32_t i = 0; i < cls->rank_count; i++) {
        if (length)
            s->by->fill(s->by->context, cls->ranks[i], s->key + 1);
        if (!place_rank(s, cls->index, length, cls->ranks[i]))
            return false;
    }
    return true;
}

static bool split_all(splitting *s)
{
    const chk_run *k = s->k;
    memset(s->out->of_rank, 0xff, k->report->rank_count * sizeof *s->out->of_rank);
    for (uint32_t i = 0; i < k->class_count; i++)
        if (k->classes[i].rank_count && !split_class(s, &k->classes[i]))
            return false;
    return true;
}

static void list_ranks(const chk_run *k, chk_shapes *out)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        out->all[i].first = at;
        at += out->all[i].rank_count;
        out->all[i].rank_count = 0;
    }
    for (uint32_t r = 0; r < k->report->rank_count; r++) {
        if (out->of_rank[r] == ORR_NO_NODE)
            continue;
        chk_shape *s = &out->all[out->of_rank[r]];
        out->ranks[s->first + s->rank_count++] = r;
    }
}

bool chk_shapes_make(chk_run *k, const chk_splitter *by, chk_shapes *out)
{
    const size_t ranks = (size_t)k->report->rank_count + 1;
    splitting s = {.k = k, .by = by, .out = out, .patterns = orr_intern_create()};
    *out = (chk_shapes){.of_rank = orr_arena_new(k->scratch, ranks, uint32_t),
                        .ranks = orr_arena_new(k->scratch, ranks, uint32_t)};
    bool ok = s.patterns && out->of_rank && out->ranks && split_all(&s);
    chk_shape *all = ok ? orr_arena_new(k->scratch, (size_t)out->count + 1, chk_shape) : NULL;
    ok = all != NULL;
    if (ok && out->count)
        memcpy(all, out->all, out->count * sizeof *all);
    orr_free(out->all);
    out->all = all;
    if (ok)
        list_ranks(k, out);
    orr_intern_destroy(s.patterns);
    orr_free(s.key);
    return ok;
}
