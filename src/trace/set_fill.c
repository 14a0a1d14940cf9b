/* SPDX-License-Identifier: Apache-2.0 */
/* set_fill.c - the bytes of one rank out of a body with holes.
 *
 * A value can change the length of its text or varint, of the attribute around it and of the record around
 * that.  The plan of a class is a list of what to do about it: copy bytes of the body up to a record, then
 * write that record as its constant parts with *inserts* between them.  An insert is a whole attribute, and all
 * nodes that use a slot in the same way share it: a rank encodes each insert once (there are as many as slots,
 * more or less) and everything else is copying, so that writing ranks runs at the speed of memory. */
#include "set_impl.h"

/* An attribute to be written with a rank's value. */
typedef struct insert {
    orr_attr attr; /* name and doc point into the body */
    orr_hole_field field;
    uint32_t slot;
} insert;

/* Bytes of the body up to `end`, then an insert (or the end of the record). */
typedef struct part {
    uint64_t end, resume; /* after the insert, the body goes on at resume */
    uint32_t insert;
} part;

typedef struct record {
    uint64_t begin;        /* of its length in the body: copied as it is up to here */
    uint64_t body;         /* of its fields */
    uint64_t end;          /* of the record */
    uint64_t constant;     /* bytes that stay */
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

static bool is_same_text(orr_str a, orr_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Few: one a slot, more where nodes write it in different kinds. */
static bool find_insert(struct orr__fill_plan *p, const insert *like, uint32_t *out)
{
    for (size_t i = p->insert_count; i-- > 0;) {
        const insert *x = &p->inserts[i];
        if (x->slot == like->slot && x->field == like->field && x->attr.kind == like->attr.kind &&
            is_same_text(x->attr.doc, like->attr.doc)) {
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
        if (is_first && is_same_text(name, orr_str_of(orr__hole_field_name(holes[i].field))))
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
    if (!orr_grow(&p->records, &p->record_room, p->record_count + 1))
        return false;
    p->records[p->record_count++] = r;
    return true;
}

orr_code orr__fill_plan_make(const orr__class *c, struct orr__fill_plan **out, orr_error *err)
{
    struct orr__fill_plan *p = orr_alloc(1, sizeof *p);
    bool ok = p != NULL;
    for (size_t at = 0, end; ok && at < c->hole_count; at = end) {
        for (end = at + 1; end < c->hole_count && c->holes[end].node == c->holes[at].node;)
            end++;
        ok = add_record(p, c, c->holes + at, end - at);
    }
    *out = p;
    if (ok)
        return ORR_OK;
    orr__fill_plan_free(p);
    *out = NULL;
    return orr_no_memory(err);
}

/* ---- following it ---- */

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

bool orr__fill(const orr__class *c, const int64_t *values, orr_buf *out)
{
    const struct orr__fill_plan *p = c->plan;
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
