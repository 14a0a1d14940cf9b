/* SPDX-License-Identifier: Apache-2.0 */
/* set_hash.c - one number for the content of a set, for provenance; docs/format/info.md has the
 * definition.
 *
 * The hash of a rank is that of its records, so a trace and its compressed or .orr copy have the
 * same one. Records of a class with holes would have to be generated first, for tens of thousands
 * of ranks; there the hash of a rank is combined from those of the body, its holes and the rank's
 * values.  A single rank is generated: it has the hash of its file. */
#include "set_impl.h"

static orr_content_hash hash_of(const void *p, size_t size)
{
    return orr_content_hash_of((orr_span){p, size});
}

/* Body and holes of a class; without holes the body alone. */
typedef struct class_hash {
    orr_content_hash body, holes;
} class_hash;

typedef struct rank_hash {
    orr_content_hash content;
    uint64_t id_shift;
} rank_hash;

static orr_content_hash hash_values(const orr_set *s, const orr__rank *r, const class_hash *of)
{
    const size_t slots = s->classes[r->class_index].slot_count;
    const orr_content_hash parts[] = {of->body, of->holes,
                                      hash_of(s->values + r->values_at, slots * sizeof *s->values)};
    return hash_of(parts, sizeof parts);
}

static rank_hash hash_rank(const orr_set *s, uint32_t rank, const class_hash *classes)
{
    const orr__rank *r = &s->ranks[rank];
    const class_hash *of = &classes[r->class_index];
    return (rank_hash){.content =
                           s->classes[r->class_index].hole_count ? hash_values(s, r, of) : of->body,
                       .id_shift = r->id_shift};
}

static class_hash *hash_classes(const orr_set *s)
{
    class_hash *all = orr_alloc(s->class_count + 1, sizeof *all);
    for (size_t i = 0; all && i < s->class_count; i++) {
        const orr__class *c = &s->classes[i];
        all[i].body = orr_content_hash_of(c->t->bytes);
        if (c->hole_count)
            all[i].holes = hash_of(c->holes, c->hole_count * sizeof *c->holes);
    }
    return all;
}

/* The only readable rank; ORR_NO_NODE: there are several, or none. */
static uint32_t only_rank(const orr_set *s)
{
    uint32_t only = ORR_NO_NODE;
    for (uint32_t r = 0; r < s->rank_count; r++) {
        if (s->ranks[r].class_index == ORR_NO_NODE)
            continue;
        if (only != ORR_NO_NODE)
            return ORR_NO_NODE;
        only = r;
    }
    return only;
}

static orr_code hash_one(const orr_set *s, uint32_t rank, orr_content_hash *out, orr_error *err)
{
    const orr_trace *t;
    orr_trace *owned;
    const orr_code code = orr_set_rank_trace(s, rank, &t, &owned, err);
    if (code)
        return code;
    const rank_hash one = {orr_content_hash_of(t->bytes), s->ranks[rank].id_shift};
    *out = one.id_shift ? hash_of(&one, sizeof one) : one.content;
    orr_trace_destroy(owned);
    return ORR_OK;
}

orr_code orr__set_content_hash(const orr_set *s,
                               uint32_t rank,
                               orr_content_hash *out,
                               orr_error *err)
{
    size_t count = 0;
    if (rank == ORR_NO_NODE)
        rank = only_rank(s);
    if (rank != ORR_NO_NODE)
        return hash_one(s, rank, out, err);
    rank_hash *all = orr_alloc(s->rank_count + 1, sizeof *all);
    class_hash *classes = hash_classes(s);
    const bool ok = all && classes;
    for (uint32_t r = 0; ok && r < s->rank_count; r++)
        if (s->ranks[r].class_index != ORR_NO_NODE)
            all[count++] = hash_rank(s, r, classes);
    if (ok)
        *out = hash_of(all, count * sizeof *all);
    orr_free(all);
    orr_free(classes);
    return ok ? ORR_OK : orr_no_memory(err);
}
