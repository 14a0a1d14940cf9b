/* SPDX-License-Identifier: Apache-2.0 */
/* set_alike.c - rank files that differ in groups, peers and tags only become one class with holes, as generators write
 * them.
 *
 * Traces are put together by a hash over everything but the values of those attributes.  Values that are equal in all of
 * them are no holes; places whose values go together through all traces share a slot.  That it is right is not left to
 * hashes: every trace is written from the class and its values again, and must be the bytes that were read.  Cost: every
 * trace is read twice more. */
#include "set_impl.h"

#include "attrs.h"
#include "base/memory/hash.h"
#include "base/text/number.h"

typedef struct place {
    uint32_t node;
    orr_hole_field field;
    uint64_t row; /* hash of its values in all traces */
    bool differs;
} place;

/* ---- likeness ---- */

static const orr__attr_key keys[ORR_HOLE_FIELDS] = {ORR__ATTR_PG_NAME, ORR__ATTR_COMM_SRC,
                                                    ORR__ATTR_COMM_DST, ORR__ATTR_COMM_TAG};

static bool may_be_hole(const orr_field *f, const uint8_t *end)
{
    orr_attr a;
    orr_attrs one = {f->start, end, NODE_ATTR};
    if (f->number != NODE_ATTR || !orr_attrs_next(&one, &a))
        return false;
    for (unsigned k = 0; k < ORR_HOLE_FIELDS; k++) {
        const char *name = orr__attr_name(keys[k]);
        if (a.name.len == strlen(name) && memcmp(a.name.ptr, name, a.name.len) == 0)
            return true;
    }
    return false;
}

static uint64_t likeness_of(const orr_trace *t)
{
    const size_t head = t->count ? (size_t)t->body_at[0] : t->bytes.len;
    uint64_t h = orr_hash_bytes(t->bytes.ptr, head, t->count);
    for (uint32_t i = 0; i < t->count; i++) {
        orr_wire w = orr_wire_of(orr__trace_body(t, i));
        orr_field f;
        const uint8_t *same = NULL; /* bytes before here are hashed already */
        while (orr_wire_next(&w, &f)) {
            same = same ? same : f.start;
            if (!may_be_hole(&f, w.at))
                continue;
            h = orr_hash_bytes(same, (size_t)(f.start - same), h + 1);
            same = w.at;
        }
        h = same ? orr_hash_bytes(same, (size_t)(w.at - same), h + 2) : h;
    }
    return h;
}

/* ---- places where they differ ---- */

static int64_t value_in(const orr_trace *t, uint32_t node, orr_hole_field field)
{
    const orr_columns *c = &t->columns;
    const int64_t *const columns[ORR_HOLE_FIELDS] = {NULL, c->comm_src, c->comm_dst, c->comm_tag};
    int64_t v;
    if (field != ORR_HOLE_PG_NAME)
        return columns[field] ? columns[field][node] : ORR_NO_VALUE;
    const uint32_t text = c->pg_name ? c->pg_name[node] : ORR_NO_NAME;
    return text != ORR_NO_NAME && orr_text_i64(orr_trace_text(t, text), &v) ? v : ORR_NO_VALUE;
}

/* All attributes of `t` that could be holes. */
static place *list_places(const orr_trace *t, size_t *count)
{
    size_t room = 0;
    place *list = NULL;
    *count = 0;
    for (uint32_t i = 0; i < t->count; i++)
        for (unsigned k = 0; k < ORR_HOLE_FIELDS; k++) {
            if (value_in(t, i, (orr_hole_field)k) == ORR_NO_VALUE)
                continue;
            if (!orr_grow(&list, &room, *count + 1)) {
                orr_free(list);
                return NULL;
            }
            list[(*count)++] = (place){.node = i, .field = (orr_hole_field)k, .row = k};
        }
    return list ? list : orr_alloc(1, sizeof *list);
}

static void compare(const orr_trace *first, const orr_trace *t, place *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int64_t v = value_in(t, list[i].node, list[i].field);
        list[i].differs = list[i].differs || v != value_in(first, list[i].node, list[i].field);
        list[i].row =
            orr_hash_mix(list[i].row ^ 0xa0761d6478bd642fu, (uint64_t)v ^ 0xe7037ed1a0b428dbu);
    }
}

/* ---- a class of several traces ---- */

typedef struct joiner {
    orr_set *s;
    uint32_t *like;    /* by class: the first that is alike */
    uint32_t *next;    /* by class: the next one of those; NO_NODE: none */
    size_t *values_at; /* by class that has moved: its row; SIZE_MAX: it has not */
    orr_error *err;
} joiner;

/* One slot for places whose values go together; which[slot] is one of them. */
static bool share_slots(place *list,
                        size_t count,
                        orr_hole *holes,
                        size_t *hole_count,
                        uint32_t *which,
                        uint32_t *slots)
{
    orr_map *seen = orr_map_create(0);
    bool ok = seen != NULL;
    *hole_count = *slots = 0;
    for (size_t i = 0; ok && i < count; i++) {
        if (!list[i].differs)
            continue;
        uint32_t slot = orr_map_find(seen, list[i].row, ORR_NO_NODE);
        if (slot == ORR_NO_NODE) {
            slot = (*slots)++;
            which[slot] = (uint32_t)i;
            ok = orr_map_put(seen, list[i].row, slot, NULL);
        }
        holes[(*hole_count)++] = (orr_hole){list[i].node, list[i].field, slot};
    }
    orr_map_destroy(seen);
    return ok;
}

/* Are these the bytes of t? */
static bool is_written(orr__class *c, const int64_t *values, const orr_trace *t, bool *failed)
{
    orr_buf out = {0};
    bool is_same = true;
    for (uint32_t i = 0; i < c->slot_count && is_same; i++)
        is_same = orr__slot_fits(c, i, values[i]);
    *failed = is_same && !orr__fill(c, values, &out);
    is_same = is_same && !*failed && out.len == t->bytes.len &&
              memcmp(out.ptr, t->bytes.ptr, out.len) == 0;
    orr_buf_fini(&out);
    return is_same;
}

/* Those that come out right go over to the class. */
static orr_code take_in(joiner *j, uint32_t first, const place *list, const uint32_t *which)
{
    orr_set *s = j->s;
    orr__class *c = &s->classes[first];
    for (uint32_t k = first; k != ORR_NO_NODE; k = j->next[k]) {
        bool failed;
        if (!orr_grow(&s->values, &s->value_room, s->value_count + c->slot_count))
            return orr_no_memory(j->err);
        int64_t *values = s->values + s->value_count;
        for (uint32_t i = 0; i < c->slot_count; i++)
            values[i] = value_in(s->classes[k].t, list[which[i]].node, list[which[i]].field);
        const bool is_right = is_written(c, values, s->classes[k].t, &failed);
        if (failed)
            return orr_no_memory(j->err);
        if (!is_right)
            continue;
        j->values_at[k] = s->value_count;
        s->value_count += c->slot_count;
    }
    return ORR_OK;
}

static orr_code join(joiner *j, uint32_t first)
{
    orr_set *s = j->s;
    const orr_trace *t = s->classes[first].t;
    size_t count, hole_count = 0;
    uint32_t slots = 0;
    const char *why = NULL;
    place *list = list_places(t, &count);
    orr_hole *holes = list ? orr_alloc(count + 1, sizeof *holes) : NULL;
    uint32_t *which = holes ? orr_alloc(count + 1, sizeof *which) : NULL;
    for (uint32_t k = first; which && k != ORR_NO_NODE; k = j->next[k])
        compare(t, s->classes[k].t, list, count);
    const bool ok = which && share_slots(list, count, holes, &hole_count, which, &slots);
    orr_code code = ok ? ORR_OK : orr_no_memory(j->err);
    if (!code && hole_count)
        code = orr__class_set_holes(s, first, holes, hole_count, slots, &why, j->err);
    if (!code && hole_count && !why)
        code = take_in(j, first, list, which);
    orr__class *c = &s->classes[first];
    if (why || j->values_at[first] == SIZE_MAX) { /* it stays as it was */
        orr__fill_plan_free(c->plan);
        *c = (orr__class){.t = c->t, .bytes = c->bytes, .ranks = c->ranks, .first = c->first};
        for (uint32_t k = first; k != ORR_NO_NODE; k = j->next[k])
            j->values_at[k] = SIZE_MAX;
    }
    orr_free(list);
    orr_free(holes);
    orr_free(which);
    return code;
}

/* Classes by likeness, each list in the order of classes. */
static bool list_alike(joiner *j)
{
    const orr_set *s = j->s;
    orr_map *seen = orr_map_create(0);
    uint32_t *last = orr_alloc(s->class_count, sizeof *last);
    bool ok = seen && last;
    for (uint32_t k = 0; ok && k < s->class_count; k++) {
        j->values_at[k] = SIZE_MAX;
        j->like[k] = last[k] = k;
        j->next[k] = ORR_NO_NODE;
        if (s->classes[k].hole_count)
            continue;
        const uint64_t likeness = likeness_of(s->classes[k].t);
        const uint32_t first = orr_map_find(seen, likeness, ORR_NO_NODE);
        if (first == ORR_NO_NODE) {
            ok = orr_map_put(seen, likeness, k, NULL);
            continue;
        }
        j->like[k] = first;
        j->next[last[first]] = k;
        last[first] = k;
    }
    orr_map_destroy(seen);
    orr_free(last);
    return ok;
}

orr_code orr__set_join_alike(orr_set *s, orr_error *err)
{
    joiner j = {.s = s,
                .like = orr_alloc(s->class_count, sizeof *j.like),
                .next = orr_alloc(s->class_count, sizeof *j.next),
                .values_at = orr_alloc(s->class_count, sizeof *j.values_at),
                .err = err};
    orr_code code = j.like && j.next && j.values_at && list_alike(&j) ? ORR_OK : orr_no_memory(err);
    for (uint32_t k = 0; !code && k < s->class_count; k++)
        if (j.like[k] == k && j.next[k] != ORR_NO_NODE)
            code = join(&j, k);
    for (size_t r = 0; !code && r < s->rank_count; r++) {
        orr__rank *rank = &s->ranks[r];
        const uint32_t k = rank->class_index;
        if (k == ORR_NO_NODE || j.values_at[k] == SIZE_MAX)
            continue;
        rank->class_index = j.like[k];
        rank->values_at = j.values_at[k];
    }
    if (!code)
        code = orr__set_drop_unused(s, err);
    orr_free(j.like);
    orr_free(j.next);
    orr_free(j.values_at);
    return code;
}
