/* SPDX-License-Identifier: Apache-2.0 */
/* set_holes.c - where the ranks of a class differ: groups, peers and tags.
 *
 * A class with holes has a table from node to slot per field that has any, and each of its ranks a
 * row of values, so a lookup costs two loads and 32,768 ranks of a pipeline stage a few numbers
 * each.  A hole is fully checked when it is made (the node exists, has the attribute once, as one
 * integer or text), so filling can only fail for lack of memory. */
#include "set_impl.h"

#include "base/memory/sort.h"
#include "base/short_forms.h"

#include <inttypes.h>
#include <stdlib.h>

static const orr__attr_key field_keys[ORR_HOLE_FIELDS] = {ORR__ATTR_PG_NAME, ORR__ATTR_COMM_SRC,
                                                          ORR__ATTR_COMM_DST, ORR__ATTR_COMM_TAG};

static const char *hole_field_name(orr_hole_field field)
{
    return orr__attr_name(field_keys[field]);
}

/* ---- the bytes of one rank from a body with holes.
 *
 * A value can change the length of its text or varint, of the attribute around it and of the record
 * around that.  The plan of a class lists the steps: copy bytes of the body up to a record, then
 * write that record as its constant parts with *inserts* between them.  An insert is a whole
 * attribute, shared by all nodes that use a slot in the same way: a rank encodes each insert once
 * (about one per slot) and copies everything else, so that writing ranks runs at memory speed. */

/* An attribute to be written with a rank's value. */
typedef struct insert {
    orr_attr attr; /* name and doc point into the body */
    orr_hole_field field;
    uint32_t slot;
} insert;

/* Bytes of the body up to `end`, then an insert (or the end of the record). */
typedef struct part {
    uint64_t end, resume; /* after the insert, the body continues at resume */
    uint32_t insert;
} part;

typedef struct record {
    uint64_t begin;        /* of its length in the body: copied verbatim up to here */
    uint64_t body;         /* of its fields */
    uint64_t end;          /* of the record */
    uint64_t constant;     /* constant bytes */
    uint32_t first, count; /* parts */
} record;

struct orr__fill_plan {
    insert *inserts;
    size_t insert_count, insert_room;
    part *parts;
    size_t part_count, part_room;
    record *records;
    size_t record_count, record_room;
};

void orr__fill_plan_free(struct orr__fill_plan *p)
{
    if (!p)
        return;
    orr_free(p->inserts);
    orr_free(p->parts);
    orr_free(p->records);
    orr_free(p);
}

/* ---- making the plan ---- */

/* There are few: one per slot, more if nodes write it in different types. */
static bool find_insert(struct orr__fill_plan *p, const insert *like, uint32_t *out)
{
    for (size_t i = p->insert_count; i-- > 0;) {
        const insert *x = &p->inserts[i];
        if (x->slot == like->slot && x->field == like->field && x->attr.kind == like->attr.kind &&
            orr_str_equal(x->attr.doc, like->attr.doc)) {
            *out = (uint32_t)i;
            return true;
        }
    }
    if (!orr_grow(&p->inserts, &p->insert_room, p->insert_count + 1))
        return false;
    *out = (uint32_t)p->insert_count;
    p->inserts[p->insert_count++] = *like;
    return true;
}

static const orr_hole *hole_named(const orr_hole *holes, size_t count, orr_str name, uint32_t seen)
{
    for (size_t i = 0; i < count; i++) {
        const bool is_first =
            !(seen >> holes[i].field & 1); /* the first attribute of a name counts */
        if (is_first && orr_str_equal(name, orr_str_of(hole_field_name(holes[i].field))))
            return &holes[i];
    }
    return NULL;
}

static bool add_part(struct orr__fill_plan *p,
                     const orr__class *c,
                     const orr_hole *h,
                     const orr_attr *a,
                     orr_span at)
{
    const insert like = {.attr = *a, .field = h->field, .slot = h->slot};
    const uint64_t end = (uint64_t)(at.ptr - c->t->bytes.ptr);
    uint32_t index;
    if (!find_insert(p, &like, &index) || !orr_grow(&p->parts, &p->part_room, p->part_count + 1))
        return false;
    p->parts[p->part_count++] = (part){.end = end, .resume = end + at.len, .insert = index};
    return true;
}

/* The holes of one node. */
static bool add_record(struct orr__fill_plan *p,
                       const orr__class *c,
                       const orr_hole *holes,
                       size_t count)
{
    const orr_span body = orr__trace_body(c->t, holes->node);
    record r = {.begin = c->t->body_at[holes->node],
                .body = (uint64_t)(body.ptr - c->t->bytes.ptr),
                .constant = body.len,
                .first = (uint32_t)p->part_count};
    r.end = r.body + body.len;
    orr_wire w = orr_wire_of(body);
    orr_field f;
    uint32_t seen = 0;
    for (size_t left = count; left && orr_wire_next(&w, &f);) {
        orr_attr a;
        orr_attrs one = {f.start, w.at, NODE_ATTR};
        if (f.number != NODE_ATTR || !orr_attrs_next(&one, &a))
            continue;
        const orr_hole *h = hole_named(holes, count, a.name, seen);
        if (!h)
            continue;
        seen |= 1u << h->field;
        left--;
        const orr_span at = {f.start, (size_t)(w.at - f.start)};
        r.constant -= at.len;
        if (!add_part(p, c, h, &a, at))
            return false;
    }
    r.count = (uint32_t)p->part_count - r.first;
    return orr_push(p->records, p->record_count, p->record_room, r);
}

static struct orr__fill_plan *fill_plan_make(const orr__class *c)
{
    struct orr__fill_plan *p = orr_alloc(1, sizeof *p);
    bool ok = p != NULL;
    for (size_t at = 0, end; ok && at < c->hole_count; at = end) {
        for (end = at + 1; end < c->hole_count && c->holes[end].node == c->holes[at].node;)
            end++;
        ok = add_record(p, c, c->holes + at, end - at);
    }
    if (ok)
        return p;
    orr__fill_plan_free(p);
    return NULL;
}

/* The plan of a class, made when its first rank is filled and shared by all its ranks: a set that
 * is only made, kept and read never needs it.  Of concurrent threads one keeps its plan.  NULL: out
 * of memory. */
static const struct orr__fill_plan *fill_plan_of(orr__class *c)
{
    struct orr__fill_plan *kept = c->plan;
    if (kept)
        return kept;
    struct orr__fill_plan *made = fill_plan_make(c);
    if (!made || atomic_compare_exchange_strong(&c->plan, &kept, made))
        return made;
    orr__fill_plan_free(made);
    return kept;
}

/* ---- executing the plan ---- */

typedef struct piece {
    size_t at, len; /* in the buffer of encoded inserts */
} piece;

static void encode_insert(orr_buf *b, const insert *x, int64_t value)
{
    orr_attr a = x->attr;
    orr_buf text = {0};
    if (x->field == ORR_HOLE_PG_NAME) {
        orr_buf_i64(&text, value);
        a.value.s = (orr_str){(const char *)text.ptr, text.len};
        b->failed |= text.failed;
    } else {
        a.value.i = value;
    }
    if (!b->failed)
        orr__encode_attr(b, NODE_ATTR, &a);
    orr_buf_fini(&text);
}

static void fill_record(const struct orr__fill_plan *p,
                        const record *r,
                        const uint8_t *body,
                        const piece *pieces,
                        const uint8_t *encoded,
                        orr_buf *out)
{
    uint64_t len = r->constant, from = r->body;
    for (uint32_t i = 0; i < r->count; i++)
        len += pieces[p->parts[r->first + i].insert].len;
    orr_put_varint(out, len);
    for (uint32_t i = 0; i < r->count; i++) {
        const part *q = &p->parts[r->first + i];
        const piece *x = &pieces[q->insert];
        orr_buf_add(out, body + from, (size_t)(q->end - from));
        orr_buf_add(out, encoded + x->at, x->len);
        from = q->resume;
    }
    orr_buf_add(out, body + from, (size_t)(r->end - from));
}

bool orr__fill(orr__class *c, const int64_t *values, orr_buf *out)
{
    const struct orr__fill_plan *p = fill_plan_of(c);
    if (!p)
        return false;
    const uint8_t *body = c->t->bytes.ptr;
    orr_buf encoded = {0};
    piece *pieces = orr_alloc(p->insert_count + 1, sizeof *pieces);
    uint64_t from = 0;
    for (size_t i = 0; pieces && i < p->insert_count; i++) {
        pieces[i].at = encoded.len;
        encode_insert(&encoded, &p->inserts[i], values[p->inserts[i].slot]);
        pieces[i].len = encoded.len - pieces[i].at;
    }
    for (size_t i = 0; pieces && !encoded.failed && i < p->record_count; i++) {
        const record *r = &p->records[i];
        orr_buf_add(out, body + from, (size_t)(r->begin - from));
        fill_record(p, r, body, pieces, encoded.ptr, out);
        from = r->end;
    }
    orr_buf_add(out, body + from, (size_t)(c->t->bytes.len - from));
    const bool ok = pieces && !encoded.failed && !out->failed;
    orr_buf_fini(&encoded);
    orr_free(pieces);
    return ok;
}

static int compare_holes(const void *a, const void *b)
{
    const orr_hole *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (int)x->field - (int)y->field;
}

/* Sources add nodes in order, so holes are mostly sorted. */
static void sort_holes(orr_hole *holes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (compare_holes(&holes[i - 1], &holes[i]) > 0) {
            orr_sort(holes, count, sizeof *holes, compare_holes);
            return;
        }
    }
}

static void narrow(orr__class *c, uint32_t slot, int64_t least, int64_t most)
{
    if (c->least[slot] < least)
        c->least[slot] = least;
    if (c->most[slot] > most)
        c->most[slot] = most;
}

/* Narrows the range of a slot's values to what the attribute's type can hold. */
static bool take_kind(orr__class *c, const orr_hole *h, orr_value_kind kind)
{
    switch (kind) {
    case ORR_VALUE_STRING:
        return h->field == ORR_HOLE_PG_NAME;
    case ORR_VALUE_INT32:
    case ORR_VALUE_SINT32:
    case ORR_VALUE_SFIXED32:
        narrow(c, h->slot, INT32_MIN, INT32_MAX);
        break;
    case ORR_VALUE_UINT32:
    case ORR_VALUE_FIXED32:
        narrow(c, h->slot, 0, UINT32_MAX);
        break;
    case ORR_VALUE_UINT64:
    case ORR_VALUE_FIXED64:
        narrow(c, h->slot, 0, INT64_MAX);
        break;
    case ORR_VALUE_INT64:
    case ORR_VALUE_SINT64:
    case ORR_VALUE_SFIXED64:
        break;
    default:
        return false;
    }
    return h->field != ORR_HOLE_PG_NAME;
}

static const char *check_hole(orr__class *c, const orr_hole *h)
{
    orr_node node;
    orr_attr attr;
    if ((unsigned)h->field >= ORR_HOLE_FIELDS)
        return "a hole has a field that is not known";
    if (h->node >= c->t->count)
        return "a hole is in a node that is not there";
    if (h->slot >= c->slot_count)
        return "a hole names a slot that is not there";
    node.body = orr__trace_body(c->t, h->node);
    if (!orr__node_get(&node, field_keys[h->field], &attr) || attr.is_list)
        return "a hole is in an attribute that the node does not have";
    return take_kind(c, h, attr.kind) ? NULL : "a hole is in an attribute of another kind";
}

static bool make_tables(orr_set *s, orr__class *c, const orr_hole *holes)
{
    c->holes = orr_arena_new(s->arena, c->hole_count + 1, orr_hole);
    c->least = orr_arena_new(s->arena, c->slot_count + 1u, int64_t);
    c->most = orr_arena_new(s->arena, c->slot_count + 1u, int64_t);
    c->names_group = orr_arena_new(s->arena, c->slot_count + 1u, bool);
    if (!c->holes || !c->least || !c->most || !c->names_group)
        return false;
    if (c->hole_count)
        memcpy(c->holes, holes, c->hole_count * sizeof *holes);
    sort_holes(c->holes, c->hole_count);
    for (uint32_t i = 0; i < c->slot_count; i++) {
        c->least[i] = INT64_MIN + 1; /* the minimum means no value */
        c->most[i] = INT64_MAX;
    }
    return true;
}

static bool place_hole(orr_set *s, orr__class *c, const orr_hole *h, const char **why)
{
    *why = check_hole(c, h);
    if (*why)
        return true;
    uint32_t **table = &c->slot[h->field];
    if (!*table && !(*table = orr_arena_new(s->arena, c->t->count, uint32_t)))
        return false;
    if ((*table)[h->node])
        *why = "two holes are in the same place";
    (*table)[h->node] = h->slot + 1;
    if (h->field == ORR_HOLE_PG_NAME)
        c->names_group[h->slot] = true;
    return true;
}

orr_code orr__class_set_holes(orr_set *s,
                              uint32_t class_index,
                              const orr_hole *holes,
                              size_t hole_count,
                              uint32_t slot_count,
                              const char **why,
                              orr_error *err)
{
    orr__class *c = &s->classes[class_index];
    *why = NULL;
    if (slot_count > ORR__SLOTS_MOST || hole_count > (size_t)c->t->count * ORR_HOLE_FIELDS) {
        *why = "more holes or slots than a class can have";
        return ORR_OK;
    }
    c->hole_count = hole_count;
    c->slot_count = slot_count;
    if (!make_tables(s, c, holes))
        return orr_no_memory(err);
    for (size_t i = 0; i < hole_count && !*why; i++)
        if (!place_hole(s, c, &c->holes[i], why))
            return orr_no_memory(err);
    if (*why)
        c->hole_count = 0;
    return ORR_OK;
}

bool orr__slot_fits(const orr__class *c, uint32_t slot, int64_t value)
{
    return c->least[slot] <= value && value <= c->most[slot];
}

/* ---- making a set ---- */

orr_code orr_set_add_class(orr_set *s,
                           orr_trace *t,
                           const orr_hole *holes,
                           size_t hole_count,
                           uint32_t slot_count,
                           uint32_t *class_index,
                           orr_error *err)
{
    const char *why = NULL;
    if (!t->is_sealed) {
        orr_trace_destroy(t);
        return orr_fail(err, ORR_EUSAGE, NULL, "only a sealed trace can be added to a set");
    }
    orr_code code = orr__set_add_class(s, t, class_index, err);
    if (!code)
        code = orr__class_set_holes(s, *class_index, holes, hole_count, slot_count, &why, err);
    return why ? orr_fail(err, ORR_EUSAGE, NULL, "%s", why) : code;
}

orr_code orr_set_add_rank_values(
    orr_set *s, uint32_t class_index, uint64_t id_shift, const int64_t *values, orr_error *err)
{
    if (class_index >= s->class_count)
        return orr_fail(err, ORR_EUSAGE, NULL, "the set has no class %u", class_index);
    const orr__class *c = &s->classes[class_index];
    for (uint32_t i = 0; i < c->slot_count; i++)
        if (!orr__slot_fits(c, i, values[i]))
            return orr_fail(err, ORR_EUSAGE, NULL, "%" PRId64 " does not fit into slot %u",
                            values[i], i);
    if (!orr_grow(&s->values, &s->value_room, s->value_count + c->slot_count))
        return orr_no_memory(err);
    const orr_code code = orr__set_add_rank(s, class_index, id_shift, NULL, err);
    if (code)
        return code;
    s->ranks[s->rank_count - 1].values_at = s->value_count;
    if (c->slot_count)
        memcpy(s->values + s->value_count, values, c->slot_count * sizeof *values);
    s->value_count += c->slot_count;
    return ORR_OK;
}

/* ---- queries ---- */

uint32_t orr_set_slot_count(const orr_set *s, uint32_t class_index)
{
    return s->classes[class_index].slot_count;
}

bool orr_set_hole(
    const orr_set *s, uint32_t rank, orr_hole_field field, uint32_t node, int64_t *out)
{
    return s->ranks[rank].class_index != ORR_NO_NODE && orr__set_hole(s, rank, field, node, out);
}

/* The trace of a class with the values of a rank (NULL: the body's), as a separate trace. */
orr_code orr__class_trace(orr__class *c, const int64_t *values, orr_trace **out, orr_error *err)
{
    orr_code code = orr__trace_new(c->t->path, out, err);
    if (code)
        return code;
    orr_trace *t = *out;
    const orr_read_options current = {
        .size = sizeof current, .schema = ORR_SCHEMA_CURRENT, .leniency = ORR_KEEP_UNKNOWN};
    if (values && c->hole_count && !orr__fill(c, values, &t->owned))
        t->owned.failed = true;
    else if (!values || !c->hole_count)
        orr_buf_add(&t->owned, c->t->bytes.ptr, c->t->bytes.len);
    code = t->owned.failed ? orr_no_memory(err)
           : t->owned.len == 0
               ? orr_trace_seal(t, err)
               : orr__trace_load(t, (orr_span){t->owned.ptr, t->owned.len}, &current, err);
    if (code) {
        orr_trace_destroy(t);
        *out = NULL;
        return code;
    }
    t->schema = c->t->schema;
    return ORR_OK;
}

orr_code orr_set_rank_trace(
    const orr_set *s, uint32_t rank, const orr_trace **out, orr_trace **owned, orr_error *err)
{
    const orr__rank *r = &s->ranks[rank];
    *owned = NULL;
    *out = NULL;
    if (r->class_index == ORR_NO_NODE)
        return orr_fail(err, ORR_EUSAGE, NULL, "rank %u could not be read", rank);
    if (s->classes[r->class_index].hole_count == 0) {
        *out = s->classes[r->class_index].t;
        return ORR_OK;
    }
    const orr_code code =
        orr__class_trace(&s->classes[r->class_index], s->values + r->values_at, owned, err);
    *out = *owned;
    return code;
}
