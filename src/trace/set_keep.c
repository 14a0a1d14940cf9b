/* SPDX-License-Identifier: Apache-2.0 */
/* set_keep.c - a part of a set: some of its ranks, and only the classes they need. */
#include "set_impl.h"

/* Count anew who uses which class. */
static void count_ranks(orr_set *s)
{
    for (size_t i = 0; i < s->class_count; i++)
        s->classes[i].ranks = s->classes[i].first = 0;
    for (size_t r = 0; r < s->rank_count; r++) {
        const uint32_t c = s->ranks[r].class_index;
        if (c != ORR_NO_NODE && s->classes[c].ranks++ == 0)
            s->classes[c].first = (uint32_t)r;
    }
}

/* Classes without ranks go, the others move up; moved[c] is where class c is now. */
static void drop_classes(orr_set *s, uint32_t *moved)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->class_count; i++) {
        moved[i] = (uint32_t)kept;
        if (s->classes[i].ranks)
            s->classes[kept++] = s->classes[i];
        else
            orr__class_fini(&s->classes[i]);
    }
    s->class_count = kept;
    for (size_t r = 0; r < s->rank_count; r++)
        if (s->ranks[r].class_index != ORR_NO_NODE)
            s->ranks[r].class_index = moved[s->ranks[r].class_index];
}

/* The maps lead to classes by their old numbers.  Without entries they only miss some likeness. */
static bool forget_maps(orr_set *s)
{
    orr_map *by_bytes = orr_map_create(0), *by_likeness = orr_map_create(0);
    if (!by_bytes || !by_likeness) {
        orr_map_destroy(by_bytes);
        orr_map_destroy(by_likeness);
        return false;
    }
    orr_map_destroy(s->by_bytes);
    orr_map_destroy(s->by_likeness);
    s->by_bytes = by_bytes;
    s->by_likeness = by_likeness;
    return true;
}

orr_code orr_set_keep(orr_set *s, uint32_t first, uint32_t count, orr_error *err)
{
    if (first > s->rank_count || count > s->rank_count - first)
        return orr_fail(err, ORR_EUSAGE, NULL, "the set has %zu ranks, not %u from %u on",
                        s->rank_count, count, first);
    uint32_t *moved = orr_alloc(s->class_count + 1, sizeof *moved);
    if (!moved || !forget_maps(s)) {
        orr_free(moved);
        return orr_no_memory(err);
    }
    memmove(s->ranks, s->ranks + first, count * sizeof *s->ranks);
    s->rank_count = count;
    orr__set_forget_groups(s);
    count_ranks(s);
    drop_classes(s, moved);
    orr_free(moved);
    return ORR_OK;
}
