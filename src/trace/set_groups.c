/* SPDX-License-Identifier: Apache-2.0 */
/* set_groups.c - which ranks make up the groups that a set's traces name.
 *
 * Generators know their communicator groups; a set carries them, so that one file is all a simulation needs.  For
 * other programs they are written as the JSON file that ASTRA-sim reads.  In a .orr file a group is its number,
 * its length and the distances between its ranks, each as the difference from the group before: groups of a
 * regular machine differ by a constant, and the table, compressed, by next to nothing. */
#include "set_impl.h"

#include <inttypes.h>

uint32_t orr_set_group_count(const orr_set *s)
{
    return (uint32_t)s->group_count;
}

orr_group orr_set_group(const orr_set *s, uint32_t index)
{
    const orr__group_entry *g = &s->groups[index];
    return (orr_group){.id = g->id, .ranks = s->group_ranks + g->first, .count = g->count};
}

orr_code orr_set_add_group(
    orr_set *s, uint64_t id, const uint32_t *ranks, uint32_t count, orr_error *err)
{
    if (id == 0 || id > INT64_MAX || count == 0)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "a group needs a number from 1 on and at least one rank");
    if (s->group_count && s->groups[s->group_count - 1].id >= id)
        return orr_fail(err, ORR_EUSAGE, NULL, "group %" PRIu64 " comes after group %" PRIu64, id,
                        s->groups[s->group_count - 1].id);
    if (s->group_count >= ORR_NO_NODE ||
        !orr_grow(&s->groups, &s->group_room, s->group_count + 1) ||
        !orr_grow(&s->group_ranks, &s->group_rank_room, s->group_rank_count + count))
        return orr_no_memory(err);
    s->groups[s->group_count++] =
        (orr__group_entry){.id = id, .first = s->group_rank_count, .count = count};
    memcpy(s->group_ranks + s->group_rank_count, ranks, count * sizeof *ranks);
    s->group_rank_count += count;
    return ORR_OK;
}

void orr__set_forget_groups(orr_set *s)
{
    s->group_count = s->group_rank_count = 0;
}

/* ---- as JSON ---- */

orr_code orr_set_write_groups(const orr_set *s, const char *path, orr_error *err)
{
    orr_output *o;
    orr_buf b = {0};
    const orr_code code = orr_output_open(path, &o, err);
    if (code)
        return code;
    orr_buf_byte(&b, '{');
    for (size_t i = 0; i < s->group_count; i++) {
        const orr__group_entry *g = &s->groups[i];
        orr_buf_print(&b, "%s\"%" PRIu64 "\": [", i ? ", " : "", g->id);
        for (uint32_t k = 0; k < g->count; k++) {
            if (k)
                orr_buf_text(&b, ", ");
            orr_buf_u64(&b, s->group_ranks[g->first + k]);
        }
        orr_buf_byte(&b, ']');
        orr_output_drain(o, &b);
    }
    orr_buf_byte(&b, '}');
    orr_output_drain(o, &b);
    orr_buf_fini(&b);
    return orr_output_commit(&o, err);
}

/* ---- in a .orr file ---- */

static void put_step(orr_buf *out, uint32_t from, uint32_t to)
{
    orr_put_varint(out, orr_zigzag((int64_t)to - (int64_t)from));
}

orr_code orr__groups_save(const orr_set *s, orr_buf *out, orr_error *err)
{
    uint64_t id = 0;
    uint32_t first = 0;
    orr_put_varint(out, s->group_count);
    for (size_t i = 0; i < s->group_count; i++) {
        const orr__group_entry *g = &s->groups[i];
        const uint32_t *ranks = s->group_ranks + g->first;
        orr_put_varint(out, g->id - id);
        orr_put_varint(out, g->count);
        put_step(out, first, ranks[0]);
        for (uint32_t k = 1; k < g->count; k++)
            put_step(out, ranks[k - 1], ranks[k]);
        id = g->id;
        first = ranks[0];
    }
    return out->failed ? orr_no_memory(err) : ORR_OK;
}

typedef struct reader {
    orr_set *s;
    orr_wire w;
    uint32_t *ranks;
    size_t room;
} reader;

static bool next_rank(reader *r, uint32_t *rank)
{
    uint64_t coded;
    if (!orr_wire_varint(&r->w, &coded))
        return false;
    const uint64_t v = *rank + (uint64_t)orr_unzigzag(coded);
    if (v >= r->s->rank_count)
        return false;
    *rank = (uint32_t)v;
    return true;
}

/* A rank takes a byte at least, so what is left bounds what may be claimed. */
static orr_code load_group(reader *r, uint64_t *id, uint32_t *first, bool *is_bad, orr_error *err)
{
    uint64_t step, count;
    *is_bad = true;
    if (!orr_wire_varint(&r->w, &step) || !orr_wire_varint(&r->w, &count) || step == 0 ||
        step > INT64_MAX - *id || count == 0 || count > (uint64_t)(r->w.end - r->w.at))
        return ORR_OK;
    if (!orr_grow(&r->ranks, &r->room, (size_t)count))
        return orr_no_memory(err);
    *id += step;
    for (uint64_t k = 0; k < count; k++) {
        r->ranks[k] = k ? r->ranks[k - 1] : *first;
        if (!next_rank(r, &r->ranks[k]))
            return ORR_OK;
    }
    *first = r->ranks[0];
    *is_bad = false;
    return orr_set_add_group(r->s, *id, r->ranks, (uint32_t)count, err);
}

orr_code orr__groups_load(orr_set *s, orr_span bytes, const char **bad, orr_error *err)
{
    reader r = {.s = s, .w = orr_wire_of(bytes)};
    orr_code code = ORR_OK;
    uint64_t count = 0, id = 0;
    uint32_t first = 0;
    bool is_bad = !orr_wire_varint(&r.w, &count);
    for (uint64_t i = 0; i < count && !is_bad && !code; i++)
        code = load_group(&r, &id, &first, &is_bad, err);
    orr_free(r.ranks);
    *bad = code ? NULL : is_bad || r.w.at != r.w.end ? "the table of groups is damaged" : NULL;
    return code;
}
