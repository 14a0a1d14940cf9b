/* SPDX-License-Identifier: Apache-2.0 */
/* et_legacy.c - the older generations of .et: their framing, metadata and nodes, both ways.
 *
 *     2023-10           today's records; only the metadata is numbered differently
 *     0.0.3u 0.0.3 0.0.2  one list of parents, texts beside it, attributes with a declared type
 *     eg                one list of parents, a field for everything (et_legacy_eg.c)
 *
 * Reading checks a record completely and appends its translation, so a trace that came from an old
 * file is like any other.  Writing walks the records and translates back.  Bytes as the old
 * libraries wrote them come back unchanged; what an old generation has no words for is an error
 * that names node and attribute. Cost: O(bytes), one record at a time. */
#include "et_legacy.h"

#include <inttypes.h>
#include <stdlib.h>

enum { DRAIN_AT = 1 << 16 };

static const uint8_t no_bytes[1];

/* ---- reading: what all generations share ---- */

bool eto_bad(eto_reader *r, const uint8_t *at, const char *why)
{
    r->bad = at;
    r->why = why;
    return false;
}

bool eto_unknown(eto_reader *r, const orr_field *f, const char *why)
{
    return r->is_lenient || eto_bad(r, f->start, why);
}

bool eto_text(eto_reader *r, const orr_field *f, orr_str *out)
{
    if (f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "a text field does not hold text");
    if (!orr_is_utf8(f->bytes.ptr, f->bytes.len))
        return eto_bad(r, f->bytes.ptr, "a text is not valid UTF-8");
    *out = (orr_str){(const char *)f->bytes.ptr, f->bytes.len};
    return true;
}

static bool add_parent(eto_reader *r, uint64_t id)
{
    if (!orr_grow(&r->parents, &r->parent_room, r->parent_count + 1))
        return eto_bad(r, NULL, NULL);
    r->parents[r->parent_count++] = id;
    return true;
}

static bool take_parents(eto_reader *r, const orr_field *f)
{
    if (f->type == ORR_WIRE_VARINT)
        return add_parent(r, f->value);
    if (f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "the list of parents does not hold numbers");
    orr_wire w = orr_wire_of(f->bytes);
    uint64_t id;
    while (w.at < w.end) {
        if (!orr_wire_varint(&w, &id))
            return eto_bad(r, w.at, w.why);
        if (!add_parent(r, id))
            return false;
    }
    return true;
}

static bool take_type(eto_reader *r, const orr_field *f, eto_node *n)
{
    if (f->type != ORR_WIRE_VARINT)
        return eto_unknown(r, f, "a number field does not hold a number");
    if (!eto_type_in(r->g, r->is_lenient, f->value, &n->type))
        return eto_bad(r, f->start, "the node type is not one that this generation has");
    n->has_type = true;
    return true;
}

bool eto_common(eto_reader *r, const orr_field *f, eto_node *n)
{
    switch (f->number) {
    case OLD_ID:
        if (f->type != ORR_WIRE_VARINT)
            return eto_unknown(r, f, "a number field does not hold a number");
        n->id = f->value;
        n->has_id = true;
        return true;
    case OLD_NAME:
        n->has_name |= f->type == ORR_WIRE_LEN;
        return eto_text(r, f, &n->name);
    case OLD_TYPE:
        return take_type(r, f, n);
    default:
        return take_parents(r, f);
    }
}

/* ---- reading: nodes of 0.0.2 to 0.0.3u ---- */

static bool take_attr(eto_reader *r, const orr_field *f)
{
    if (f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "an attribute is not a message");
    if (!orr_grow(&r->attrs, &r->attr_room, r->attr_count + 1))
        return eto_bad(r, NULL, NULL);
    r->attrs[r->attr_count++] = f->bytes;
    return true;
}

/* texts: inputs, input_shapes, input_types, outputs, output_shapes, output_types; ptr NULL:
 * absent. */
static bool take_field(eto_reader *r, const orr_field *f, eto_node *n, orr_str texts[6])
{
    if (f->number <= OLD_PARENT)
        return eto_common(r, f, n);
    if (f->number < OLD_ATTR)
        return eto_text(r, f, &texts[f->number - OLD_INPUTS]);
    if (f->number == OLD_ATTR)
        return take_attr(r, f);
    return eto_unknown(r, f, "a node has a field that this generation does not know");
}

/* A text that was written is written again, also when it is empty. */
static void encode_io(orr_buf *b, uint32_t field, const orr_str texts[3])
{
    if (!texts[0].ptr && !texts[1].ptr && !texts[2].ptr)
        return;
    orr_put_tag(b, field, ORR_WIRE_LEN);
    const size_t begin = orr_put_begin(b);
    for (uint32_t i = 0; i < 3; i++)
        if (texts[i].ptr)
            orr_put_bytes(b, IO_VALUES + i, texts[i].ptr, texts[i].len);
    orr_put_end(b, begin);
}

static bool map_comm_type(eto_reader *r, eto_attr *a)
{
    int64_t now;
    if (!eto_is_word(a->name, "comm_type") || !eto_attr_int(r->g, a))
        return true;
    if (!eto_collective_in(r->g, r->is_lenient, (int64_t)a->value, &now))
        return eto_bad(r, a->message.ptr, "comm_type is not a collective that this generation has");
    a->value = (uint64_t)now;
    return true;
}

/* Is this run time just as a writer would put it?  Then the duration says all, and it is not
 * kept. */
static bool is_plain_run_time(const eto_generation *g, const eto_node *n, const eto_attr *a)
{
    return g->members[a->row].kind == ORR_VALUE_INT64 && a->row == a->code && !a->has_doc &&
           (int64_t)a->value >= 0 && (a->value || n->type == ORR_NODE_COMP);
}

/* The first attribute `runtime` is the duration.  True: it must be kept as an attribute as well. */
static bool keeps_run_time(
    const eto_generation *g, const eto_attr *a, bool is_last, eto_node *n, bool *has_run_time)
{
    if (!eto_is_word(a->name, "runtime") || !eto_attr_int(g, a))
        return true;
    if (*has_run_time)
        return true;
    const bool is_negative = g->members[a->row].kind == ORR_VALUE_INT64 && (int64_t)a->value < 0;
    *has_run_time = true;
    n->duration = is_negative ? 0 : a->value;
    return !is_last || !is_plain_run_time(g, n, a);
}

static bool encode_attrs(eto_reader *r, eto_node *n)
{
    bool has_run_time = false;
    eto_attr a;
    for (size_t i = 0; i < r->attr_count; i++) {
        if (!eto_attr_read(r, r->attrs[i], &a) || !map_comm_type(r, &a))
            return false;
        if (keeps_run_time(r->g, &a, i + 1 == r->attr_count, n, &has_run_time))
            eto_attr_encode(r->g, &a, NODE_ATTR, &r->tail);
    }
    if (!has_run_time && n->type == ORR_NODE_COMP)
        n->note |= NOTE_NO_RUN_TIME;
    return true;
}

static bool read_node(eto_reader *r, orr_span body, eto_node *n)
{
    orr_str texts[6] = {{NULL, 0}};
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    while (orr_wire_next(&w, &f))
        if (!take_field(r, &f, n, texts))
            return false;
    if (w.why)
        return eto_bad(r, w.at, w.why);
    if (!n->has_type)
        return eto_bad(r, body.ptr, "a node without a type");
    encode_io(&r->tail, NODE_INPUTS, texts);
    encode_io(&r->tail, NODE_OUTPUTS, texts + 3);
    return encode_attrs(r, n);
}

/* ---- reading: records ---- */

static orr_code damage(const eto_reader *r, uint64_t byte, orr_error *err, const char *what)
{
    const orr_where w = orr_where_byte(r->t->path, byte);
    return orr_fail(err, ORR_EINPUT, &w, "%s", what);
}

static orr_code bad_node(const eto_reader *r, orr_error *err)
{
    if (!r->why)
        return orr_no_memory(err);
    const orr_where w = orr_where_byte(r->t->path, (uint64_t)(r->bad - r->bytes.ptr));
    return orr_fail(err, ORR_EINPUT, &w, "node %zu of the file: %s", r->t->count, r->why);
}

/* ORR_END at the end of the file. */
static orr_code next_record(eto_reader *r, orr_error *err)
{
    orr_wire w = {r->bytes.ptr + r->at, r->bytes.ptr + r->bytes.len, NULL};
    if (w.at == w.end)
        return ORR_END;
    if (!orr_wire_varint(&w, &r->body_len))
        return damage(r, r->at, err,
                      "the file ends inside a record's length, or the length is no number");
    r->body_at = (uint64_t)(w.at - r->bytes.ptr);
    const uint64_t left = r->bytes.len - r->body_at;
    if (r->body_len > left) {
        const orr_where at = orr_where_byte(r->t->path, r->at);
        return orr_fail(err, ORR_EINPUT, &at,
                        "a record of %" PRIu64 " bytes is announced, but only %" PRIu64
                        " are left: the file is cut short or damaged",
                        r->body_len, left);
    }
    if (r->body_len == 0 && (r->at || !r->g->has_metadata))
        return damage(r, r->at, err, "an empty record: a node has at least an id and a name");
    return ORR_OK;
}

static orr_span record_body(const eto_reader *r)
{
    return (orr_span){r->bytes.ptr + r->body_at, (size_t)r->body_len};
}

static orr_code add_old_node(eto_reader *r, orr_error *err)
{
    eto_node n = {.name = {"", 0}};
    const orr_span body = record_body(r);
    r->parent_count = r->attr_count = r->tail.len = 0;
    if (!(r->g->schema == ORR_SCHEMA_EG ? eto_eg_read(r, body, &n) : read_node(r, body, &n)))
        return bad_node(r, err);
    if (!n.has_id || !n.has_name) {
        eto_bad(r, body.ptr, n.has_id ? "a node without a name" : "a node without an id");
        return bad_node(r, err);
    }
    if (n.note)
        orr_put_uint(&r->tail, NODE_NOTE, n.note);
    if (!n.id && !n.name.len && !n.type && !n.duration && !r->parent_count && !r->tail.len)
        orr_put_uint(&r->tail, NODE_ID, 0); /* nothing but zeros: an empty record would be none */
    if (r->tail.failed)
        return orr_no_memory(err);
    const orr_draft d = {.id = n.id,
                         .name = n.name,
                         .type = n.type,
                         .data_deps = r->parents,
                         .data_count = r->parent_count,
                         .duration_us = n.duration,
                         .unknown = {r->tail.ptr, r->tail.len}};
    return orr__trace_append_at(r->t, &d, r->at, err);
}

/* A node of 2023-10 is one of today.  When it is bad, the record in the file tells where. */
static orr_code add_same_node(eto_reader *r, orr_error *err)
{
    orr_trace *t = r->t;
    const orr_span body = record_body(r);
    const size_t begin = orr_put_begin(&t->owned);
    orr_buf_add(&t->owned, body.ptr, body.len);
    const orr_code code = orr__trace_append_body(t, begin, r->at, err);
    if (code != ORR_EINPUT || orr__scan_node(&t->scan, body))
        return code;
    eto_bad(r, t->scan.bad, t->scan.why);
    return bad_node(r, err);
}

static orr_code read_nodes(eto_reader *r, orr_error *err)
{
    orr_code code;
    while ((code = next_record(r, err)) == ORR_OK) {
        code = r->g->schema == ORR_SCHEMA_2023_10 ? add_same_node(r, err) : add_old_node(r, err);
        if (code)
            break;
        r->at = r->body_at + r->body_len;
    }
    return code == ORR_END || (code == ORR_EINPUT && r->ends_at_damage) ? ORR_OK : code;
}

/* ---- reading: metadata ---- */

/* Metadata has only attributes in field 1, where a node has its id, a number. */
static bool is_metadata(const eto_reader *r)
{
    orr_wire w = orr_wire_of(record_body(r));
    orr_field f = {0};
    if (!r->g->has_metadata)
        return false;
    return w.at == w.end ||
           (orr_wire_next(&w, &f) && f.number == OLD_META_ATTR && f.type == ORR_WIRE_LEN);
}

static bool take_meta_attr(eto_reader *r, const orr_field *f)
{
    eto_attr a;
    if (f->number != OLD_META_ATTR || f->type != ORR_WIRE_LEN)
        return eto_unknown(r, f, "a field that this generation does not know");
    if (r->g->schema != ORR_SCHEMA_2023_10) {
        if (!eto_attr_read(r, f->bytes, &a))
            return false;
        eto_attr_encode(r->g, &a, META_ATTR, &r->t->owned);
        return true;
    }
    r->t->scan.why = NULL;
    if (!orr__scan_attr(&r->t->scan, f->bytes))
        return eto_bad(r, r->t->scan.bad, r->t->scan.why);
    orr_put_bytes(&r->t->owned, META_ATTR, f->bytes.ptr, f->bytes.len);
    return true;
}

static orr_code read_metadata(eto_reader *r, orr_error *err)
{
    orr_wire w = orr_wire_of(record_body(r));
    orr_field f = {0};
    const size_t begin = orr_put_begin(&r->t->owned);
    r->why = NULL;
    while (!r->why && orr_wire_next(&w, &f))
        take_meta_attr(r, &f);
    if (w.why)
        eto_bad(r, w.at, w.why);
    if (r->why) {
        const orr_where at = orr_where_byte(r->t->path, (uint64_t)(r->bad - r->bytes.ptr));
        return orr_fail(err, ORR_EINPUT, &at, "metadata: %s", r->why);
    }
    orr_put_end(&r->t->owned, begin);
    r->t->has_metadata = true;
    r->at = r->body_at + r->body_len;
    return r->t->owned.failed ? orr_no_memory(err) : ORR_OK;
}

static orr_code read_first(eto_reader *r, bool must_be_metadata, orr_error *err)
{
    const orr_code code = next_record(r, err);
    if (code)
        return code == ORR_END || (code == ORR_EINPUT && r->ends_at_damage) ? ORR_OK : code;
    if (is_metadata(r))
        return read_metadata(r, err);
    if (must_be_metadata && r->g->has_metadata)
        return damage(r, r->at, err, "the first record is not metadata");
    return ORR_OK;
}

static orr_code read_all(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err)
{
    const orr_leniency l = opt->leniency;
    eto_reader r = {.t = t,
                    .g = eto_generation_of(t->schema),
                    .bytes = bytes,
                    .is_lenient = l != ORR_STRICT,
                    .ends_at_damage = l == ORR_AS_JSONIZER || l == ORR_AS_FEEDER_V2};
    t->scan.is_lenient = r.is_lenient;
    if (bytes.len == 0 && !r.ends_at_damage)
        return damage(&r, 0, err, "the file is empty");
    orr_code code = read_first(&r, opt->first_is_metadata, err);
    if (!code)
        code = read_nodes(&r, err);
    orr_free(r.parents);
    orr_free(r.attrs);
    orr_buf_fini(&r.tail);
    return code;
}

/* ---- writing ---- */

orr_code eto_refuse(eto_writer *w, orr_str attr, const char *why)
{
    const bool is_node = w->index != ORR_NO_NODE;
    const orr_where at =
        is_node ? orr_trace_where(w->t, w->index) : orr_where_byte(w->t->path, ORR_NO_BYTE);
    const orr_code code =
        orr_fail(w->err, ORR_EUSAGE, &at, "%s%.*s cannot be written as generation %s: %s",
                 attr.len ? "attribute " : "it", (int)(attr.len < 80 ? attr.len : 80), attr.ptr,
                 orr_schema_name(w->g->schema), why);
    return is_node ? orr_because(w->err, code, "node %" PRIu64, w->t->id[w->index])
                   : orr_because(w->err, code, "metadata");
}

static orr_code refuse_node(eto_writer *w, const char *why)
{
    return eto_refuse(w, (orr_str){"", 0}, why);
}

bool eto_writes_run_time(const eto_parts *p)
{
    if (p->node.duration_us || p->note & NOTE_ZERO_RUN_TIME)
        return true;
    return p->node.type == ORR_NODE_COMP && !(p->note & NOTE_NO_RUN_TIME);
}

static orr_code take_part(eto_writer *w, const orr_field *f, eto_parts *p)
{
    if (f->number == NODE_NOTE && f->type == ORR_WIRE_VARINT)
        p->note = (uint32_t)f->value;
    else if (f->number == NODE_INPUTS && f->type == ORR_WIRE_LEN)
        p->inputs = f->bytes;
    else if (f->number == NODE_OUTPUTS && f->type == ORR_WIRE_LEN)
        p->outputs = f->bytes;
    else if (f->number > NODE_ATTR || (f->number == NODE_ATTR && f->type != ORR_WIRE_LEN))
        return refuse_node(w, "it has a field outside the schema");
    return ORR_OK;
}

static orr_code split_node(eto_writer *w, eto_parts *p)
{
    orr_field f = {0};
    orr_code code = ORR_OK;
    *p = (eto_parts){.inputs = {no_bytes, 0}, .outputs = {no_bytes, 0}};
    orr_trace_node(w->t, w->index, &p->node);
    orr_wire wire = orr_wire_of(p->node.body);
    while (!code && orr_wire_next(&wire, &f))
        code = take_part(w, &f, p);
    if (!code && p->node.start_us)
        code = refuse_node(w, "it has no place for start_time_micros");
    return code;
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Both kinds of dependency become parents.  One that is of both kinds is written once: the old
 * feeders wait for ever on a parent that is listed twice. */
static orr_code put_parents(eto_writer *w, const orr_node *node)
{
    size_t count = 0;
    orr_value v;
    orr_list it = orr_node_data_deps(node);
    while (orr_list_next(&it, &v)) {
        orr_put_uint(&w->out, OLD_PARENT, v.u + w->shift);
        if (!orr_grow(&w->ids, &w->id_room, count + 1))
            return orr_no_memory(w->err);
        w->ids[count++] = v.u;
    }
    bool is_sorted = false;
    it = orr_node_ctrl_deps(node);
    while (orr_list_next(&it, &v)) {
        if (count && !is_sorted)
            qsort(w->ids, count, sizeof *w->ids, compare_ids);
        is_sorted = true;
        if (!count || !bsearch(&v.u, w->ids, count, sizeof *w->ids, compare_ids))
            orr_put_uint(&w->out, OLD_PARENT, v.u + w->shift);
    }
    return ORR_OK;
}

static orr_code put_common(eto_writer *w, const eto_parts *p)
{
    uint32_t type;
    if (!eto_type_out(w->g, w->is_same, p->node.type, &type))
        return refuse_node(w, "its node type has no number there");
    orr_put_uint(&w->out, OLD_ID, p->node.id + w->shift);
    orr_put_bytes(&w->out, OLD_NAME, p->node.name.ptr, p->node.name.len);
    if (type || w->g->schema != ORR_SCHEMA_EG || !(p->note & NOTE_NO_TYPE))
        orr_put_uint(&w->out, OLD_TYPE, type);
    return put_parents(w, &p->node);
}

static orr_code put_io(eto_writer *w, uint32_t first, orr_span io)
{
    orr_wire wire = orr_wire_of(io);
    orr_field f, texts[3] = {{0}};
    while (orr_wire_next(&wire, &f)) {
        if (f.number > IO_TYPES || f.type != ORR_WIRE_LEN)
            return refuse_node(w, "its inputs or outputs have a field outside the schema");
        texts[f.number - IO_VALUES] = f;
    }
    for (uint32_t i = 0; i < 3; i++)
        if (texts[i].number)
            orr_put_bytes(&w->out, first + i, texts[i].bytes.ptr, texts[i].bytes.len);
    return ORR_OK;
}

/* Where the attribute and the duration differ, someone changed the duration. */
static orr_code adjust_run_time(eto_writer *w, const eto_parts *p, orr_attr *a)
{
    uint64_t number;
    bool is_negative;
    if (!eto_attr_whole(a, &number, &is_negative))
        return ORR_OK;
    if ((is_negative ? 0 : number) == p->node.duration_us)
        return ORR_OK;
    if (p->node.duration_us > INT64_MAX)
        return refuse_node(w, "its duration is too large");
    a->kind = a->kind == ORR_VALUE_UINT64 ? ORR_VALUE_UINT64 : ORR_VALUE_INT64;
    a->value.u = p->node.duration_us;
    return ORR_OK;
}

static orr_code adjust_comm_type(eto_writer *w, orr_attr *a)
{
    uint64_t now;
    bool is_negative;
    int64_t old;
    if (!eto_attr_whole(a, &now, &is_negative))
        return ORR_OK;
    if ((now > INT64_MAX && !is_negative) ||
        !eto_collective_out(w->g, w->is_same, (int64_t)now, &old))
        return eto_refuse(w, a->name, "the collective has no number there");
    a->kind = a->kind == ORR_VALUE_UINT64 ? ORR_VALUE_UINT64 : ORR_VALUE_INT64;
    a->value.i = old;
    return ORR_OK;
}

static orr_code put_attr(eto_writer *w, const orr_field *f, const eto_parts *p, bool *has_run_time)
{
    eto_raw_attr a;
    orr_code code = eto_raw_attr_split(w, f, &a);
    uint64_t ignored;
    bool is_negative;
    if (!code && eto_is_word(a.attr.name, "comm_type"))
        code = adjust_comm_type(w, &a.attr);
    if (!code && !*has_run_time && eto_is_word(a.attr.name, "runtime") &&
        eto_attr_whole(&a.attr, &ignored, &is_negative)) {
        *has_run_time = true;
        code = adjust_run_time(w, p, &a.attr);
    }
    return code ? code : eto_attr_write(w, OLD_ATTR, &a);
}

static orr_code put_run_time(eto_writer *w, const eto_parts *p)
{
    const eto_raw_attr a = {
        .attr = {.name = {"runtime", 7}, .kind = ORR_VALUE_INT64, .value.u = p->node.duration_us}};
    if (p->node.duration_us > INT64_MAX)
        return refuse_node(w, "its duration is too large");
    return eto_attr_write(w, OLD_ATTR, &a);
}

static orr_code write_node(eto_writer *w, const eto_parts *p)
{
    orr_wire wire = orr_wire_of(p->node.body);
    orr_field f = {0};
    bool has_run_time = false;
    orr_code code = put_io(w, OLD_INPUTS, p->inputs);
    if (!code)
        code = put_io(w, OLD_OUTPUTS, p->outputs);
    while (!code && orr_wire_next(&wire, &f))
        if (f.number == NODE_ATTR)
            code = put_attr(w, &f, p, &has_run_time);
    if (!code && !has_run_time && eto_writes_run_time(p))
        code = put_run_time(w, p);
    return code;
}

static orr_code emit_old_node(eto_writer *w)
{
    eto_parts p;
    const size_t begin = orr_put_begin(&w->out);
    orr_code code = split_node(w, &p);
    if (!code)
        code = put_common(w, &p);
    if (!code && w->g->schema != ORR_SCHEMA_EG)
        code = write_node(w, &p);
    else if (!code && p.inputs.len + p.outputs.len)
        code = refuse_node(w, "it has no place for inputs and outputs");
    else if (!code)
        code = eto_eg_write(w, &p);
    orr_put_end(&w->out, begin);
    return code;
}

static orr_code gather(eto_writer *w, orr_list it, size_t *count)
{
    orr_value v;
    while (orr_list_next(&it, &v)) {
        if (!orr_grow(&w->ids, &w->id_room, *count + 1))
            return orr_no_memory(w->err);
        w->ids[(*count)++] = v.u + w->shift;
    }
    return ORR_OK;
}

/* 2023-10: today's node. */
static orr_code emit_same_node(eto_writer *w)
{
    orr_node node;
    orr_trace_node(w->t, w->index, &node);
    size_t data = 0;
    orr_code code = gather(w, orr_node_data_deps(&node), &data);
    size_t all = data;
    if (!code)
        code = gather(w, orr_node_ctrl_deps(&node), &all);
    if (code)
        return code;
    const orr_edit edit = {.sets_id = true,
                           .sets_data_deps = true,
                           .sets_ctrl_deps = true,
                           .id = node.id + w->shift,
                           .data_deps = w->ids,
                           .ctrl_deps = w->ids ? w->ids + data : NULL,
                           .data_count = data,
                           .ctrl_count = all - data};
    const size_t begin = orr_put_begin(&w->out);
    orr__encode_copy(&w->out, node.body, w->shift ? &edit : NULL);
    orr_put_end(&w->out, begin);
    return ORR_OK;
}

static orr_code emit_meta_attr(eto_writer *w, const orr_field *f)
{
    eto_raw_attr a;
    if (f->number == META_VERSION)
        return ORR_OK; /* it is the version of another generation */
    if (f->number != META_ATTR || f->type != ORR_WIRE_LEN)
        return refuse_node(w, "it has a field outside the schema");
    if (w->g->schema == ORR_SCHEMA_2023_10) {
        orr_put_bytes(&w->out, OLD_META_ATTR, f->bytes.ptr, f->bytes.len);
        return ORR_OK;
    }
    const orr_code code = eto_raw_attr_split(w, f, &a);
    if (code)
        return code;
    if (!w->g->has_metadata)
        return eto_refuse(w, a.attr.name, "there is no metadata");
    return eto_attr_write(w, OLD_META_ATTR, &a);
}

static orr_code emit_metadata(eto_writer *w)
{
    orr_wire wire = orr_wire_of(orr__trace_meta_body(w->t));
    orr_field f = {0};
    orr_code code = ORR_OK;
    if (!w->t->has_metadata)
        return ORR_OK;
    const size_t begin = orr_put_begin(&w->out);
    w->index = ORR_NO_NODE;
    while (!code && orr_wire_next(&wire, &f))
        code = emit_meta_attr(w, &f);
    if (w->g->has_metadata)
        orr_put_end(&w->out, begin);
    return code;
}

static orr_code emit_all(
    const orr_trace *t, orr_schema schema, uint64_t id_shift, orr_output *o, orr_error *err)
{
    eto_writer w = {.t = t,
                    .g = eto_generation_of(schema),
                    .shift = id_shift,
                    .is_same = t->schema == schema,
                    .err = err};
    orr_code code = emit_metadata(&w);
    for (w.index = 0; !code && w.index < t->count && !orr_output_has_failed(o); w.index++) {
        code = schema == ORR_SCHEMA_2023_10 ? emit_same_node(&w) : emit_old_node(&w);
        if (!code && w.out.failed)
            code = orr_no_memory(err);
        if (w.out.len >= DRAIN_AT)
            orr_output_drain(o, &w.out);
    }
    if (!code && w.out.failed)
        code = orr_no_memory(err);
    orr_output_drain(o, &w.out);
    orr_buf_fini(&w.out);
    orr_free(w.ids);
    return code;
}

const orr__et_old orr__et_legacy = {eto_recognise, read_all, emit_all};
