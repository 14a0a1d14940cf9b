/* SPDX-License-Identifier: Apache-2.0 */
/* set_file_holes.c - holes and the ranks' values as the last table of a .orr file; docs/format/orr.md.
 *
 * Class by class: slots, holes (each as the distance from the one before), then slot by slot the values of the
 * class's ranks in rank order, each as the difference from the one before.  Differences repeat with the shape
 * of the machine, so the table, always compressed, takes a fraction of a byte a rank. */
#include "trace/set_impl.h"

bool orr__set_has_holes(const orr_set *s)
{
    for (size_t i = 0; i < s->class_count; i++)
        if (s->classes[i].slot_count)
            return true;
    return false;
}

/* ---- which ranks are of a class ---- */

/* Ranks sorted by class: those of class c are list[first[c] .. first[c + 1]). */
typedef struct by_class {
    uint32_t *first, *list;
} by_class;

static bool list_ranks(const orr_set *s, by_class *b)
{
    b->first = orr_alloc(s->class_count + 2, sizeof *b->first);
    b->list = orr_alloc(s->rank_count + 1, sizeof *b->list);
    if (!b->first || !b->list)
        return false;
    for (size_t c = 0; c < s->class_count; c++)
        b->first[c + 2] =
            b->first[c + 1] + s->classes[c].ranks; /* filling moves them down by one */
    for (size_t r = 0; r < s->rank_count; r++) {
        const uint32_t c = s->ranks[r].class_index;
        b->list[b->first[c + 1]++] = (uint32_t)r;
    }
    return true;
}

static void by_class_fini(by_class *b)
{
    orr_free(b->first);
    orr_free(b->list);
}

/* ---- writing ---- */

/* A class without ranks has nobody to fill its holes; they are left out. */
static void save_holes(const orr__class *c, orr_buf *out)
{
    const size_t count = c->ranks ? c->hole_count : 0;
    uint32_t before = 0;
    orr_put_varint(out, c->ranks ? c->slot_count : 0);
    orr_put_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        const orr_hole *h = &c->holes[i];
        orr_put_varint(out, h->node - before);
        orr_put_varint(out, (uint64_t)h->slot * ORR_HOLE_FIELDS + h->field);
        before = h->node;
    }
}

static void save_values(const orr_set *s, const by_class *b, size_t c, orr_buf *out)
{
    for (uint32_t slot = 0; slot < s->classes[c].slot_count; slot++) {
        uint64_t before = 0;
        for (uint32_t i = b->first[c]; i < b->first[c + 1]; i++) {
            const uint64_t v = (uint64_t)s->values[s->ranks[b->list[i]].values_at + slot];
            orr_put_varint(out, orr_zigzag((int64_t)(v - before)));
            before = v;
        }
    }
}

orr_code orr__holes_save(const orr_set *s, orr_buf *out, orr_error *err)
{
    by_class b = {0};
    const bool ok = list_ranks(s, &b);
    for (size_t c = 0; ok && c < s->class_count; c++) {
        save_holes(&s->classes[c], out);
        save_values(s, &b, c, out);
    }
    by_class_fini(&b);
    return ok && !out->failed ? ORR_OK : orr_no_memory(err);
}

/* ---- reading ---- */

typedef struct reader {
    orr_set *s;
    orr_wire w;
    by_class ranks;
    orr_hole *holes;
    size_t room;
    const char *bad;
} reader;

static bool next(reader *r, uint64_t most, uint64_t *out)
{
    if (!r->bad && (!orr_wire_varint(&r->w, out) || *out > most))
        r->bad = "the table of holes is damaged";
    return !r->bad;
}

static bool load_hole(reader *r, uint64_t *node, orr_hole *out)
{
    uint64_t step, place;
    if (!next(r, UINT32_MAX, &step) ||
        !next(r, (uint64_t)ORR__SLOTS_MOST * ORR_HOLE_FIELDS, &place))
        return false;
    *node += step;
    *out = (orr_hole){.node = *node < UINT32_MAX ? (uint32_t)*node : UINT32_MAX,
                      .field = (orr_hole_field)(place % ORR_HOLE_FIELDS),
                      .slot = (uint32_t)(place / ORR_HOLE_FIELDS)};
    return true;
}

/* A value takes a byte at least, so the bytes that are left bound the slots that may be claimed. */
static orr_code load_holes(reader *r, uint32_t c, orr_error *err)
{
    uint64_t slots, count, node = 0;
    if (!next(r, ORR__SLOTS_MOST, &slots) || !next(r, (uint64_t)(r->w.end - r->w.at), &count))
        return ORR_OK;
    if (slots * r->s->classes[c].ranks > (uint64_t)(r->w.end - r->w.at) ||
        (slots && r->s->classes[c].ranks == 0)) {
        r->bad = "more slots than there are values";
        return ORR_OK;
    }
    if (!orr_grow(&r->holes, &r->room, (size_t)count))
        return orr_no_memory(err);
    for (uint64_t i = 0; i < count; i++)
        if (!load_hole(r, &node, &r->holes[i]))
            return ORR_OK;
    return orr__class_set_holes(r->s, c, r->holes, (size_t)count, (uint32_t)slots, &r->bad, err);
}

static void load_slot(reader *r, uint32_t c, uint32_t slot)
{
    const orr__class *k = &r->s->classes[c];
    uint64_t before = 0, coded;
    for (uint32_t i = r->ranks.first[c]; i < r->ranks.first[c + 1]; i++) {
        if (!next(r, UINT64_MAX, &coded))
            return;
        before += (uint64_t)orr_unzigzag(coded);
        if (!orr__slot_fits(k, slot, (int64_t)before)) {
            r->bad = "a value does not fit into its slot";
            return;
        }
        r->s->values[r->s->ranks[r->ranks.list[i]].values_at + slot] = (int64_t)before;
    }
}

/* A value takes a byte at least, so the bytes that are left bound what may be claimed. */
static orr_code load_values(reader *r, uint32_t c, orr_error *err)
{
    orr_set *s = r->s;
    const uint32_t slots = s->classes[c].slot_count, ranks = s->classes[c].ranks;
    const uint64_t count = (uint64_t)slots * ranks;
    if (count > (uint64_t)(r->w.end - r->w.at)) {
        r->bad = "the table of holes is cut short";
        return ORR_OK;
    }
    if (!orr_grow(&s->values, &s->value_room, s->value_count + (size_t)count))
        return orr_no_memory(err);
    for (uint32_t i = r->ranks.first[c]; i < r->ranks.first[c + 1]; i++) {
        s->ranks[r->ranks.list[i]].values_at = s->value_count;
        s->value_count += slots;
    }
    for (uint32_t slot = 0; slot < slots && !r->bad; slot++)
        load_slot(r, c, slot);
    return ORR_OK;
}

orr_code orr__holes_load(orr_set *s, orr_span bytes, const char **bad, orr_error *err)
{
    reader r = {.s = s, .w = orr_wire_of(bytes)};
    orr_code code = list_ranks(s, &r.ranks) ? ORR_OK : orr_no_memory(err);
    for (uint32_t c = 0; c < s->class_count && !code && !r.bad; c++) {
        code = load_holes(&r, c, err);
        if (!code && !r.bad)
            code = load_values(&r, c, err);
    }
    if (!code && !r.bad && r.w.at != r.w.end)
        r.bad = "something stands behind the table of holes";
    by_class_fini(&r.ranks);
    orr_free(r.holes);
    *bad = r.bad;
    return code;
}
