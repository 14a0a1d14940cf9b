/* SPDX-License-Identifier: Apache-2.0 */
/* json_view.c - a trace as JSON in three forms (chakra.md section 8, docs/format/json.md).
 *
 *     json     {"format": "orrery-trace", "version": 1, "metadata": {..}, "nodes": [..]}, indented
 *     jsonl    {"format":"orrery-trace","version":1,"metadata":{..}} and one node per line
 *     concat   {..}{..}{..}: metadata and nodes, indented; what the old jsonizer writes
 *
 * Cost: O(bytes of the trace), and a quarter of a megabyte of memory; pages of a mapped trace are
 * released as they are passed. */
#include "base/io/output.h"
#include "base/options.h"
#include "base/text/base64.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "trace/trace_impl.h"

#include <orrery/view.h>

/* ======== What the files of the JSON view share: the leads, and the pieces of text.
 *
 * Every line of the output starts with one of a few strings: a comma, a line break, indentation, a
 * key. These leads are built once per form (orr__layout) and copied as fixed-size blocks.  The
 * comma in front of an object's first member becomes its '{', that in front of an array's first
 * item its '[': `open` is the character due next.  So no byte changes once written, and the buffer
 * can be flushed at any point.  Each function takes the position to write at and returns the
 * position after. */

enum {
    ORR__SHOW_ROOM = 1 << 18, /* of the buffer */
    ORR__SHOW_PART =
        /* texts are written in parts of this many bytes; a multiple of three, for base64 */
    3 << 12,
    ORR__SHOW_GROWTH = 6, /* a control character becomes six: \u0001 */
    ORR__LEAD = 48,       /* the longest has 31 bytes: "unknownFields" of a list in a document */
    ORR__LINE = 2 * ORR__LEAD + ORR_NUMBER_ROOM /* any lead, any number, any bracket */
};

/* What is written in front of a value: `,\n      "name": `. */
typedef struct orr__lead {
    char text[ORR__LEAD];
    size_t len;
} orr__lead;

/* The leads of one form at one depth. */
typedef struct orr__layout {
    orr__lead version, meta_attr;
    orr__lead id, name, type, ctrl, data, start, duration, inputs, outputs, attr, record_unknown;
    orr__lead io[IO_TYPES + 1], io_unknown;
    orr__lead attr_name, doc, member[ATTR_LAST_MEMBER + 1], attr_unknown;
    orr__lead values, list_unknown;
    orr__lead part_item, list_item; /* of dependencies and attributes; of a list attribute */
    orr__lead end_record, end_part, end_attr, end_list, end_values; /* before closing brackets */
} orr__layout;

typedef struct orr__show {
    orr_output *to;
    uint8_t *text, *text_end;
    const orr__layout *lay;
    uint64_t shift;
    bool keeps_unknown;   /* unknown fields are written as base64 */
    bool names_all_types; /* node types 8 to 10 by name, which the old jsonizer does not know */
    orr_buf unknown;
} orr__show;

/* Room for n bytes, n at most ORR__SHOW_ROOM. */
static inline uint8_t *show_need(const orr__show *v, uint8_t *p, size_t n)
{
    if (__builtin_expect((size_t)(v->text_end - p) >= n, 1))
        return p;
    orr_output_add(v->to, v->text, (size_t)(p - v->text));
    return v->text;
}

/* Copies whole blocks: faster than using their length.  Leaves room for a number after it. */
static inline uint8_t *show_lead(const orr__show *v, uint8_t *p, const orr__lead *l, char *open)
{
    p = show_need(v, p, ORR__LINE);
    memcpy(p, l->text, ORR__LEAD);
    *p = (uint8_t)*open;
    *open = ',';
    return p + l->len;
}

/* The closing bracket; if empty, both brackets without a line break. */
static inline uint8_t *show_end(
    const orr__show *v, uint8_t *p, const orr__lead *l, char open, char close)
{
    p = show_need(v, p, ORR__LINE);
    if (open == ',') {
        memcpy(p, l->text, ORR__LEAD);
        p += l->len;
    } else {
        *p++ = (uint8_t)open;
    }
    *p++ = (uint8_t)close;
    return p;
}

static inline uint8_t *show_word(uint8_t *p, const char *word)
{
    const size_t n = strlen(word);
    memcpy(p, word, n);
    return p + n;
}

static inline uint8_t *show_u64(uint8_t *p, uint64_t v)
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    uint8_t digits[20], *d = digits + sizeof digits;
    for (; v >= 100; v /= 100)
        memcpy(d -= 2, pairs + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(d -= 2, pairs + 2 * v, 2);
    else
        *--d = (uint8_t)('0' + v);
    const size_t n = (size_t)(digits + sizeof digits - d);
    memcpy(p, d, n);
    return p + n;
}

/* 64-bit integers are strings in protobuf's JSON: JavaScript would round them. */
static inline uint8_t *show_quoted(uint8_t *p, uint64_t v)
{
    *p++ = '"';
    p = show_u64(p, v);
    *p++ = '"';
    return p;
}

static inline bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Are all eight bytes plain?  A term has some high bit set if a byte is below 0x20, a quote, a
 * backslash, or 0x7f and above. */
static inline bool are_plain(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    const uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
    const uint64_t found = ((x - ones * 0x20) & ~x) | ((quote - ones) & ~quote) |
                           ((backslash - ones) & ~backslash) | (x + ones) | x;
    return (found & high) == 0;
}

static uint8_t *show_escape(uint8_t *p, const uint8_t **at, const uint8_t *end);

/* From *at to stop, or past it to the end of a character; `end` is that of the text. */
static inline uint8_t *show_part(uint8_t *p,
                                 const uint8_t **at,
                                 const uint8_t *stop,
                                 const uint8_t *end)
{
    const uint8_t *s = *at;
    uint64_t eight;
    while (s < stop) {
        for (; stop - s >= 8; s += 8, p += 8) {
            memcpy(&eight, s, 8);
            if (!are_plain(eight))
                break;
            memcpy(p, &eight, 8);
        }
        while (s < stop && is_plain(*s))
            *p++ = *s++;
        if (s < stop)
            p = show_escape(p, &s, end);
    }
    *at = s;
    return p;
}

static inline uint8_t *show_text(const orr__show *v, uint8_t *p, orr_span s)
{
    const uint8_t *at = s.ptr, *const end = s.ptr + s.len;
    p = show_need(v, p, ORR__LINE);
    *p++ = '"';
    while (at < end) {
        const size_t left = (size_t)(end - at);
        const size_t part = left < ORR__SHOW_PART ? left : ORR__SHOW_PART;
        p = show_need(v, p, ORR__SHOW_GROWTH * part + ORR__LINE);
        p = show_part(p, &at, at + part, end);
    }
    *p++ = '"';
    return p;
}

/* ======== Rarer values: signed and real numbers, escapes, bytes.
 *
 * As written by Python's json.dumps with its default ensure_ascii, which the old jsonizer uses:
 * everything outside printable ASCII is escaped, 0x7f too (chakra.md section 8). */

static uint8_t *show_i64(uint8_t *p, int64_t v)
{
    if (v >= 0)
        return show_u64(p, (uint64_t)v);
    *p++ = '-';
    return show_u64(p, 0 - (uint64_t)v);
}

/* protobuf's JSON strings for NaN and infinities; NULL for a finite number. */
static const char *word_for(double v)
{
    if (v != v)
        return "\"NaN\"";
    if (v - v == 0)
        return NULL;
    return v > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

static uint8_t *show_double(uint8_t *p, uint64_t bits)
{
    char text[ORR_NUMBER_ROOM];
    double d;
    memcpy(&d, &bits, 8);
    const char *word = word_for(d);
    if (word)
        return show_word(p, word);
    const size_t n = orr_double_text(d, text);
    memcpy(p, text, n);
    return p + n;
}

static uint8_t *show_float(uint8_t *p, uint32_t bits)
{
    char text[ORR_NUMBER_ROOM];
    float f;
    memcpy(&f, &bits, 4);
    const char *word = word_for((double)f);
    if (word)
        return show_word(p, word);
    const size_t n = orr_float_text(f, text);
    memcpy(p, text, n);
    return p + n;
}

static uint8_t *put_code(uint8_t *p, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    p[0] = '\\';
    p[1] = 'u';
    for (unsigned i = 0; i < 4; i++)
        p[2 + i] = (uint8_t)hex[unit >> (12 - 4 * i) & 15];
    return p + 6;
}

static char letter_for(uint8_t c)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c < 32)
        return letters[c];
    return c == '"' || c == '\\' ? (char)c : 0;
}

/* A character that must be escaped.  *at moves past it. */
static uint8_t *show_escape(uint8_t *p, const uint8_t **at, const uint8_t *end)
{
    const char letter = letter_for(**at);
    if (letter) {
        p[0] = '\\';
        p[1] = (uint8_t)letter;
        ++*at;
        return p + 2;
    }
    const size_t n = orr_utf8_length(*at, (size_t)(end - *at));
    uint32_t number = n ? orr_utf8_get(*at, n) : 0xFFFD;
    *at += n ? n : 1;
    if (number < 0x10000)
        return put_code(p, number);
    number -= 0x10000;
    p = put_code(p, 0xD800 + (number >> 10));
    return put_code(p, 0xDC00 + (number & 0x3FF));
}

static uint8_t *show_base64(const orr__show *v, uint8_t *p, orr_span s)
{
    p = show_need(v, p, ORR__LINE);
    *p++ = '"';
    while (s.len) {
        const size_t part = s.len < ORR__SHOW_PART ? s.len : ORR__SHOW_PART;
        p = show_need(v, p, orr_base64_length(part) + ORR__LINE);
        p = orr_base64_put(p, (orr_span){s.ptr, part});
        s = (orr_span){s.ptr + part, s.len - part};
    }
    *p++ = '"';
    return p;
}

/* ======== One record, from its bytes to text, without a tree in between.
 *
 * Records were validated when the trace was read, so walking them cannot fail.  What protobuf
 * allows but no writer does (fields in any order, split lists, repeated values) is supported: a
 * first pass over each message takes its single values and records the range of each repeated
 * field; then its members are written in field order.  In records as the reference writes them
 * these ranges hold nothing else, so every byte is read just twice. */

/* The range of a field's occurrences in its message; from NULL: none. */
typedef struct range {
    const uint8_t *from, *to;
} range;

static inline void extend(range *r, const orr_field *f, const orr_wire *w)
{
    if (!r->from)
        r->from = f->start;
    r->to = w->at;
}

static inline orr_wire wire_of(range r)
{
    return (orr_wire){r.from, r.to, NULL};
}

static inline bool next_numbered(orr_wire *w, orr_field *f, uint32_t number)
{
    while (orr_wire_next(w, f))
        if (f->number == number)
            return true;
    return false;
}

static inline bool is_varint(const orr_field *f)
{
    return f->type == ORR_WIRE_VARINT;
}

static inline bool is_len(const orr_field *f)
{
    return f->type == ORR_WIRE_LEN;
}

/* ---- unknown fields ---- */

typedef bool known_test(const orr_field *f, uint32_t detail);

static void gather_unknown(orr__show *v, orr_span message, known_test *is_known, uint32_t detail)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f))
        if (!is_known(&f, detail))
            orr_buf_add(&v->unknown, f.start, (size_t)(w.at - f.start));
}

static uint8_t *put_unknown(orr__show *v, uint8_t *p, const orr__lead *l, char *open)
{
    if (v->keeps_unknown) {
        p = show_lead(v, p, l, open);
        p = show_base64(v, p, (orr_span){v->unknown.ptr, v->unknown.len});
    }
    v->unknown.len = 0;
    return p;
}

/* ---- values ---- */

static uint8_t *put_quoted_i64(uint8_t *p, int64_t v)
{
    *p++ = '"';
    p = show_i64(p, v);
    *p++ = '"';
    return p;
}

static uint8_t *put_number(uint8_t *p, orr_value_kind kind, uint64_t raw)
{
    const uint32_t low = (uint32_t)raw;
    switch (kind) {
    case ORR_VALUE_DOUBLE:
        return show_double(p, raw);
    case ORR_VALUE_FLOAT:
        return show_float(p, low);
    case ORR_VALUE_INT32:
    case ORR_VALUE_SFIXED32:
        return show_i64(p, (int32_t)low);
    case ORR_VALUE_SINT32:
        return show_i64(p, (int32_t)orr_unzigzag(low));
    case ORR_VALUE_UINT32:
    case ORR_VALUE_FIXED32:
        return show_u64(p, low);
    case ORR_VALUE_INT64:
    case ORR_VALUE_SFIXED64:
        return put_quoted_i64(p, (int64_t)raw);
    case ORR_VALUE_SINT64:
        return put_quoted_i64(p, orr_unzigzag(raw));
    case ORR_VALUE_BOOL:
        return show_word(p, raw ? "true" : "false");
    default:
        return show_quoted(p, raw);
    }
}

static uint8_t *put_value(const orr__show *v, uint8_t *p, orr_value_kind kind, const orr_field *f)
{
    if (kind == ORR_VALUE_STRING)
        return show_text(v, p, f->bytes);
    if (kind == ORR_VALUE_BYTES)
        return show_base64(v, p, f->bytes);
    return put_number(p, kind, f->value);
}

static inline uint8_t *put_text_member(
    const orr__show *v, uint8_t *p, orr_span s, const orr__lead *l, char *open)
{
    if (s.len == 0)
        return p;
    p = show_lead(v, p, l, open);
    return show_text(v, p, s);
}

static inline uint8_t *put_u64_member(
    const orr__show *v, uint8_t *p, uint64_t value, const orr__lead *l, char *open)
{
    if (value == 0)
        return p;
    p = show_lead(v, p, l, open);
    return show_quoted(p, value);
}

/* ---- arrays ---- */

/* An array being written; an empty one is omitted. */
typedef struct array {
    const orr__lead *key, *item, *end;
    char *open; /* of the object around it */
    char next;  /* '[' before the first item, ',' before the others */
} array;

static inline uint8_t *begin_item(const orr__show *v, uint8_t *p, array *a)
{
    if (a->next == '[')
        p = show_lead(v, p, a->key, a->open);
    return show_lead(v, p, a->item, &a->next);
}

static inline uint8_t *end_array(const orr__show *v, uint8_t *p, const array *a)
{
    return a->next == '[' ? p : show_end(v, p, a->end, ',', ']');
}

/* ---- list attributes ---- */

static uint8_t *put_packed(
    const orr__show *v, uint8_t *p, array *a, orr_span packed, orr_value_kind kind)
{
    orr_wire w = orr_wire_of(packed);
    orr_field f = {.type = orr__kind_wire_type(kind)};
    while (w.at < w.end && orr_wire_value(&w, &f)) {
        p = begin_item(v, p, a);
        p = put_number(p, kind, f.value);
    }
    return p;
}

static bool is_list_field(const orr_field *f, uint32_t kind)
{
    return f->number == LIST_VALUES &&
           (is_len(f) || f->type == orr__kind_wire_type((orr_value_kind)kind));
}

static uint8_t *put_list_items(
    orr__show *v, uint8_t *p, array *a, orr_span list, orr_value_kind kind)
{
    const bool is_packable = orr__kind_wire_type(kind) != ORR_WIRE_LEN;
    orr_wire w = orr_wire_of(list);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (!is_list_field(&f, kind))
            continue;
        if (is_len(&f) && is_packable) {
            p = put_packed(v, p, a, f.bytes, kind);
            continue;
        }
        p = begin_item(v, p, a);
        p = put_value(v, p, kind, &f);
    }
    return p;
}

/* All occurrences of the member in `pieces` are one list. */
static uint8_t *put_list(
    orr__show *v, uint8_t *p, range pieces, uint32_t member, orr_value_kind kind)
{
    char open = '{';
    array a = {&v->lay->values, &v->lay->list_item, &v->lay->end_values, &open, '['};
    orr_field f;
    orr_wire w = wire_of(pieces);
    while (next_numbered(&w, &f, member))
        p = put_list_items(v, p, &a, f.bytes, kind);
    p = end_array(v, p, &a);
    w = wire_of(pieces);
    while (next_numbered(&w, &f, member))
        gather_unknown(v, f.bytes, is_list_field, kind);
    if (v->unknown.len)
        p = put_unknown(v, p, &v->lay->list_unknown, &open);
    return show_end(v, p, &v->lay->end_list, open, '}');
}

/* ---- attributes ---- */

typedef struct attr_survey {
    orr_span name, doc;
    orr_field value; /* the last one counts */
    range pieces;    /* of a list: what is merged */
    bool has_unknown;
} attr_survey;

static inline bool is_list_member(uint32_t number)
{
    return (number & 1) == 0;
}

static inline orr_value_kind kind_of(uint32_t number)
{
    return (orr_value_kind)((number - ATTR_FIRST_MEMBER) / 2 + 1);
}

static inline bool is_attr_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    if (f->number < ATTR_FIRST_MEMBER)
        return is_len(f);
    if (f->number > ATTR_LAST_MEMBER)
        return false;
    return is_list_member(f->number) ? is_len(f)
                                     : f->type == orr__kind_wire_type(kind_of(f->number));
}

static inline void survey_attr(orr_span message, attr_survey *s)
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (!is_attr_field(&f, 0)) {
            s->has_unknown = true;
        } else if (f.number == ATTR_NAME) {
            s->name = f.bytes;
        } else if (f.number == ATTR_DOC) {
            s->doc = f.bytes;
        } else {
            if (s->value.number != f.number)
                s->pieces.from = NULL;
            s->value = f;
            extend(&s->pieces, &f, &w);
        }
    }
}

static uint8_t *put_attr(orr__show *v, uint8_t *p, orr_span message)
{
    attr_survey s = {.has_unknown = false};
    char open = '{';
    survey_attr(message, &s);
    p = put_text_member(v, p, s.name, &v->lay->attr_name, &open);
    p = put_text_member(v, p, s.doc, &v->lay->doc, &open);
    const uint32_t member = s.value.number;
    if (member) {
        p = show_lead(v, p, &v->lay->member[member], &open);
        p = is_list_member(member) ? put_list(v, p, s.pieces, member, kind_of(member))
                                   : put_value(v, p, kind_of(member), &s.value);
    }
    if (s.has_unknown) {
        gather_unknown(v, message, is_attr_field, 0);
        p = put_unknown(v, p, &v->lay->attr_unknown, &open);
    }
    return show_end(v, p, &v->lay->end_attr, open, '}');
}

static uint8_t *put_attrs(
    orr__show *v, uint8_t *p, range r, uint32_t number, const orr__lead *key, char *open)
{
    array a = {key, &v->lay->part_item, &v->lay->end_part, open, '['};
    orr_wire w = wire_of(r);
    orr_field f;
    while (next_numbered(&w, &f, number)) {
        if (!is_len(&f))
            continue;
        p = begin_item(v, p, &a);
        p = put_attr(v, p, f.bytes);
    }
    return end_array(v, p, &a);
}

/* ---- inputs and outputs ---- */

static bool is_io_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    return f->number <= IO_TYPES && is_len(f);
}

static void survey_io(orr__show *v, orr_span message, orr_span part[IO_TYPES + 1])
{
    orr_wire w = orr_wire_of(message);
    orr_field f;
    while (orr_wire_next(&w, &f))
        if (is_io_field(&f, 0))
            part[f.number] = f.bytes;
    gather_unknown(v, message, is_io_field, 0);
}

/* Several in one record are merged, as protobuf does. */
static uint8_t *put_io(
    orr__show *v, uint8_t *p, range r, uint32_t number, const orr__lead *key, char *open)
{
    orr_span part[IO_TYPES + 1] = {{NULL, 0}};
    orr_wire w = wire_of(r);
    orr_field f;
    char inner = '{';
    if (!r.from)
        return p;
    while (next_numbered(&w, &f, number))
        if (is_len(&f))
            survey_io(v, f.bytes, part);
    p = show_lead(v, p, key, open);
    for (uint32_t i = IO_VALUES; i <= IO_TYPES; i++)
        p = put_text_member(v, p, part[i], &v->lay->io[i], &inner);
    if (v->unknown.len)
        p = put_unknown(v, p, &v->lay->io_unknown, &inner);
    return show_end(v, p, &v->lay->end_part, inner, '}');
}

/* ---- nodes ---- */

typedef struct node_survey {
    uint64_t id, start, duration;
    uint32_t type;
    orr_span name;
    range ctrl, data, inputs, outputs, attr;
    bool has_unknown;
} node_survey;

static inline bool is_node_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    switch (f->number) {
    case NODE_ID:
    case NODE_TYPE:
    case NODE_START:
    case NODE_DURATION:
        return is_varint(f);
    case NODE_CTRL_DEPS:
    case NODE_DATA_DEPS:
        return is_varint(f) || is_len(f);
    case NODE_NAME:
    case NODE_INPUTS:
    case NODE_OUTPUTS:
    case NODE_ATTR:
        return is_len(f);
    default:
        return false;
    }
}

static inline void survey_field(node_survey *s, const orr_field *f, const orr_wire *w)
{
    switch (f->number) {
    case NODE_ID:
        s->id = f->value;
        break;
    case NODE_NAME:
        s->name = f->bytes;
        break;
    case NODE_TYPE:
        s->type = (uint32_t)f->value;
        break;
    case NODE_CTRL_DEPS:
        extend(&s->ctrl, f, w);
        break;
    case NODE_DATA_DEPS:
        extend(&s->data, f, w);
        break;
    case NODE_START:
        s->start = f->value;
        break;
    case NODE_DURATION:
        s->duration = f->value;
        break;
    case NODE_INPUTS:
        extend(&s->inputs, f, w);
        break;
    case NODE_OUTPUTS:
        extend(&s->outputs, f, w);
        break;
    default:
        extend(&s->attr, f, w);
        break;
    }
}

static inline void survey_node(orr_span body, node_survey *s)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    while (orr_wire_next(&w, &f)) {
        if (is_node_field(&f, 0))
            survey_field(s, &f, &w);
        else
            s->has_unknown = true;
    }
}

static inline uint8_t *put_type(const orr__show *v, uint8_t *p, uint32_t type, char *open)
{
    const uint32_t last = v->names_all_types ? ORR_NODE_TYPE_COUNT - 1 : ORR_NODE_COMM_COLL;
    if (type == 0)
        return p;
    p = show_lead(v, p, &v->lay->type, open);
    if (type > last)
        return show_i64(p, (int32_t)type);
    *p++ = '"';
    p = show_word(p, orr_node_type_name(type));
    *p++ = '"';
    return p;
}

static inline uint8_t *put_dep(const orr__show *v, uint8_t *p, array *a, uint64_t id)
{
    p = begin_item(v, p, a);
    return show_quoted(p, id + v->shift);
}

static inline uint8_t *put_deps(
    const orr__show *v, uint8_t *p, range r, uint32_t number, const orr__lead *key, char *open)
{
    array a = {key, &v->lay->part_item, &v->lay->end_part, open, '['};
    orr_wire w = wire_of(r);
    orr_field f;
    uint64_t id;
    while (next_numbered(&w, &f, number)) {
        if (is_varint(&f))
            p = put_dep(v, p, &a, f.value);
        if (!is_len(&f))
            continue;
        orr_wire packed = orr_wire_of(f.bytes);
        while (packed.at < packed.end && orr_wire_varint(&packed, &id))
            p = put_dep(v, p, &a, id);
    }
    return end_array(v, p, &a);
}

static uint8_t *show_node(orr__show *v, uint8_t *p, orr_span body)
{
    const orr__layout *lay = v->lay;
    node_survey s = {.id = 0};
    char open = '{';
    survey_node(body, &s);
    p = put_u64_member(v, p, s.id + v->shift, &lay->id, &open);
    p = put_text_member(v, p, s.name, &lay->name, &open);
    p = put_type(v, p, s.type, &open);
    p = put_deps(v, p, s.ctrl, NODE_CTRL_DEPS, &lay->ctrl, &open);
    p = put_deps(v, p, s.data, NODE_DATA_DEPS, &lay->data, &open);
    p = put_u64_member(v, p, s.start, &lay->start, &open);
    p = put_u64_member(v, p, s.duration, &lay->duration, &open);
    p = put_io(v, p, s.inputs, NODE_INPUTS, &lay->inputs, &open);
    p = put_io(v, p, s.outputs, NODE_OUTPUTS, &lay->outputs, &open);
    p = put_attrs(v, p, s.attr, NODE_ATTR, &lay->attr, &open);
    if (s.has_unknown) {
        gather_unknown(v, body, is_node_field, 0);
        p = put_unknown(v, p, &lay->record_unknown, &open);
    }
    return show_end(v, p, &lay->end_record, open, '}');
}

/* ---- metadata ---- */

static bool is_meta_field(const orr_field *f, uint32_t detail)
{
    (void)detail;
    return f->number <= META_ATTR && is_len(f);
}

static uint8_t *show_meta(orr__show *v, uint8_t *p, orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f;
    orr_span version = {NULL, 0};
    range attr = {NULL, NULL};
    char open = '{';
    while (orr_wire_next(&w, &f)) {
        if (!is_meta_field(&f, 0))
            continue;
        if (f.number == META_ATTR)
            extend(&attr, &f, &w);
        else
            version = f.bytes;
    }
    p = put_text_member(v, p, version, &v->lay->version, &open);
    p = put_attrs(v, p, attr, META_ATTR, &v->lay->meta_attr, &open);
    gather_unknown(v, body, is_meta_field, 0);
    if (v->unknown.len)
        p = put_unknown(v, p, &v->lay->record_unknown, &open);
    return show_end(v, p, &v->lay->end_record, open, '}');
}

enum { RELEASE_EVERY = 1 << 22 };

/* ---- leads ---- */

typedef struct setter {
    unsigned depth; /* of the records */
    bool is_compact;
} setter;

static void add(orr__lead *l, const char *s)
{
    const size_t n = strlen(s);
    memcpy(l->text + l->len, s, n);
    l->len += n;
}

static void add_break(const setter *s, orr__lead *l, unsigned depth)
{
    if (s->is_compact)
        return;
    add(l, "\n");
    for (unsigned i = 0; i < s->depth + depth; i++)
        add(l, "  ");
}

static void set_key(const setter *s, orr__lead *l, unsigned depth, const char *key)
{
    add(l, ",");
    add_break(s, l, depth);
    add(l, "\"");
    add(l, key);
    add(l, s->is_compact ? "\":" : "\": ");
}

static void set_item(const setter *s, orr__lead *l, unsigned depth)
{
    add(l, ",");
    add_break(s, l, depth);
}

/* int64_val -> int64Val */
static void set_member(const setter *s, orr__lead *l, uint32_t number)
{
    const orr_value_kind kind = (orr_value_kind)((number - ATTR_FIRST_MEMBER) / 2 + 1);
    const char *snake = orr_value_member(kind, (number & 1) == 0);
    char camel[24];
    size_t n = 0;
    for (; *snake && n < sizeof camel - 1; snake++) {
        const bool is_start = *snake == '_';
        snake += is_start;
        camel[n++] = (char)(is_start ? *snake - 'a' + 'A' : *snake);
    }
    camel[n] = '\0';
    set_key(s, l, 3, camel);
}

static void set_record(const setter *s, orr__layout *lay)
{
    set_key(s, &lay->version, 1, "version");
    set_key(s, &lay->meta_attr, 1, "attr");
    set_key(s, &lay->id, 1, "id");
    set_key(s, &lay->name, 1, "name");
    set_key(s, &lay->type, 1, "type");
    set_key(s, &lay->ctrl, 1, "ctrlDeps");
    set_key(s, &lay->data, 1, "dataDeps");
    set_key(s, &lay->start, 1, "startTimeMicros");
    set_key(s, &lay->duration, 1, "durationMicros");
    set_key(s, &lay->inputs, 1, "inputs");
    set_key(s, &lay->outputs, 1, "outputs");
    set_key(s, &lay->attr, 1, "attr");
    set_key(s, &lay->record_unknown, 1, "unknownFields");
    add_break(s, &lay->end_record, 0);
}

static void set_parts(const setter *s, orr__layout *lay)
{
    set_item(s, &lay->part_item, 2);
    set_key(s, &lay->io[IO_VALUES], 2, "values");
    set_key(s, &lay->io[IO_SHAPES], 2, "shapes");
    set_key(s, &lay->io[IO_TYPES], 2, "types");
    set_key(s, &lay->io_unknown, 2, "unknownFields");
    add_break(s, &lay->end_part, 1);
    set_key(s, &lay->attr_name, 3, "name");
    set_key(s, &lay->doc, 3, "docString");
    for (uint32_t i = ATTR_FIRST_MEMBER; i <= ATTR_LAST_MEMBER; i++)
        set_member(s, &lay->member[i], i);
    set_key(s, &lay->attr_unknown, 3, "unknownFields");
    add_break(s, &lay->end_attr, 2);
    set_key(s, &lay->values, 4, "values");
    set_key(s, &lay->list_unknown, 4, "unknownFields");
    set_item(s, &lay->list_item, 5);
    add_break(s, &lay->end_values, 4);
    add_break(s, &lay->end_list, 3);
}

static void set_layout(orr__layout *lay, unsigned depth, bool is_compact)
{
    const setter s = {depth, is_compact};
    *lay = (orr__layout){.version = {.len = 0}};
    set_record(&s, lay);
    set_parts(&s, lay);
}

/* ---- the forms ---- */

/* Text around the records of each form. */
typedef struct frame {
    unsigned meta_depth, node_depth;
    bool is_compact, keeps_unknown;
    const char *head, *before_meta;
    const char *first, *between, *last,
        *none; /* before the first node, the others; after; without nodes */
} frame;

static const frame frames[] = {
    [ORR_VIEW_JSON] = {1, 2, false, true, "{\n  \"format\": \"orrery-trace\",\n  \"version\": 1",
                       ",\n  \"metadata\": ", ",\n  \"nodes\": [\n    ", ",\n    ", "\n  ]\n}\n",
                       ",\n  \"nodes\": []\n}\n"},
    [ORR_VIEW_JSONL] = {0, 0, true, true, "{\"format\":\"orrery-trace\",\"version\":1",
                        ",\"metadata\":", "}\n", "\n", "\n", "}\n"},
    [ORR_VIEW_CONCAT] = {0, 0, false, false, "", "", "", "", "", ""},
};

static uint8_t *put_frame(const orr__show *v, uint8_t *p, const char *text)
{
    return show_word(show_need(v, p, ORR__LINE), text);
}

static void release_behind(const orr_trace *t, uint32_t index, uint64_t *released)
{
    const uint64_t at = t->body_at[index];
    if (t->source && at >= *released + RELEASE_EVERY) {
        orr_input_release(t->source, *released, at);
        *released = at;
    }
}

static uint8_t *put_nodes(orr__show *v, uint8_t *p, const orr_trace *t, const frame *f)
{
    uint64_t released = 0;
    for (uint32_t i = 0; i < t->count && !orr_output_has_failed(v->to); i++) {
        p = put_frame(v, p, i ? f->between : f->first);
        p = show_node(v, p, orr__trace_body(t, i));
        release_behind(t, i, &released);
    }
    return put_frame(v, p, t->count ? f->last : f->none);
}

static void put_trace(orr__show *v,
                      const orr_trace *t,
                      const orr_view_json_options *opt,
                      orr__layout *lay)
{
    const frame *f = &frames[opt->form];
    uint8_t *p = put_frame(v, v->text, f->head);
    v->lay = lay;
    v->shift = opt->id_shift;
    v->keeps_unknown = v->names_all_types = f->keeps_unknown;
    if (t->has_metadata || opt->always_metadata) {
        set_layout(lay, f->meta_depth, f->is_compact);
        p = put_frame(v, p, f->before_meta);
        p = show_meta(v, p, orr__trace_meta_body(t));
    }
    set_layout(lay, f->node_depth, f->is_compact);
    p = put_nodes(v, p, t, f);
    orr_output_add(v->to, v->text, (size_t)(p - v->text));
}

bool orr_view_form_find(orr_str name, orr_view_form *out)
{
    static const char *const names[] = {"json", "jsonl", "concat"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == name.len && memcmp(names[i], name.ptr, name.len) == 0) {
            *out = (orr_view_form)i;
            return true;
        }
    return false;
}

orr_code orr_view_json(const orr_trace *t,
                       const char *path,
                       const orr_view_json_options *opt,
                       orr_error *err)
{
    orr_view_json_options own;
    orr__show v = {.to = NULL};
    orr__layout lay;
    orr_code code = ORR__TAKE_OPTIONS(&own, opt, orr_view_json_options, err);
    if (!code)
        code = orr_output_open(path, &v.to, err);
    if (code)
        return code;
    v.text = orr_alloc(ORR__SHOW_ROOM, 1);
    if (v.text) {
        v.text_end = v.text + ORR__SHOW_ROOM;
        put_trace(&v, t, &own, &lay);
    }
    const bool has_memory = v.text && !v.unknown.failed;
    orr_buf_fini(&v.unknown);
    orr_free(v.text);
    if (has_memory)
        return orr_output_commit(&v.to, err);
    orr_output_discard(v.to);
    return orr_no_memory(err);
}
