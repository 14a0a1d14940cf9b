/* SPDX-License-Identifier: Apache-2.0 */
/* et_recognise.c - which generation of .et is this?  No file says, so its fields must tell.
 *
 * Each record rules out the generations that cannot have written it: an unknown field, another wire
 * type, a missing required field.  If one generation is left, that is the answer.  Hints decide
 * among several: proto2 writes zeros that proto3 omits, a node named COMP_NODE shows the number of
 * COMP_NODE, and the oldest files end in .eg.
 *
 * A file without evidence is current, and so is one that fits no generation: its reader reports the
 * damage.  Cost: a current file is recognised by its first or second record; at most MOST_RECORDS
 * are read. */
#include "base/text/text.h"
#include "et_legacy.h"

enum {
    MOST_RECORDS = 1000,
    CURRENT = 1 << ORR_SCHEMA_CURRENT,
    V2023_10 = 1 << ORR_SCHEMA_2023_10,
    V0_0_3U = 1 << ORR_SCHEMA_0_0_3U,
    V0_0_3 = 1 << ORR_SCHEMA_0_0_3,
    V0_0_2 = 1 << ORR_SCHEMA_0_0_2,
    EG = 1 << ORR_SCHEMA_EG,
    WITH_TYPES = V0_0_3U | V0_0_3 | V0_0_2, /* attributes declare a type */
    PROTO2 = WITH_TYPES | EG,
    SHIFTED = V0_0_2 | EG, /* node types without METADATA_NODE */
    ANY = PROTO2 | CURRENT,
    MEMORY_TYPES = 3,
    EG_LAST = 20
};

typedef struct clues {
    unsigned possible; /* generations that may have written all records so far */
    unsigned hinted;   /* those supported by hints */
} clues;

static bool is_text(const orr_field *f)
{
    return f->type == ORR_WIRE_LEN && orr_is_utf8(f->bytes.ptr, f->bytes.len);
}

/* ---- attributes ---- */

static uint32_t wire_now(uint32_t member)
{
    static const uint8_t wire[ORR_VALUE_KIND_COUNT] = {
        [ORR_VALUE_DOUBLE] = ORR_WIRE_I64,   [ORR_VALUE_FLOAT] = ORR_WIRE_I32,
        [ORR_VALUE_FIXED32] = ORR_WIRE_I32,  [ORR_VALUE_FIXED64] = ORR_WIRE_I64,
        [ORR_VALUE_SFIXED32] = ORR_WIRE_I32, [ORR_VALUE_SFIXED64] = ORR_WIRE_I64,
        [ORR_VALUE_STRING] = ORR_WIRE_LEN,   [ORR_VALUE_BYTES] = ORR_WIRE_LEN,
    };
    return (member & 1) ? wire[(member - 1) / 2] : (uint32_t)ORR_WIRE_LEN;
}

/* A current attribute. */
static bool is_attr_now(orr_span message, bool *has_name)
{
    orr_wire w = orr_wire_of(message);
    orr_field f = {0};
    *has_name = false;
    while (orr_wire_next(&w, &f)) {
        *has_name |= f.number == ATTR_NAME;
        if (f.number <= ATTR_DOC ? f.type != ORR_WIRE_LEN
                                 : f.number <= ATTR_LAST_MEMBER && f.type != wire_now(f.number))
            return false;
    }
    return !w.why;
}

static bool fits_old_attr(const eto_generation *g, const orr_field *f)
{
    if (f->number == OLD_ATTR_NAME || f->number == OLD_ATTR_DOC)
        return is_text(f);
    if (f->number == OLD_ATTR_TYPE)
        return f->type == ORR_WIRE_VARINT && f->value < g->member_count;
    const uint32_t row = f->number - OLD_ATTR_MEMBER;
    if (row >= g->member_count || f->type != eto_member_wire(g->members[row].kind))
        return false;
    return g->members[row].kind != ORR_VALUE_BOOL || f->value <= 1;
}

/* The generations that may have written this attribute. */
static unsigned old_attr_of(orr_span message)
{
    unsigned possible = WITH_TYPES, seen = 0;
    orr_wire w = orr_wire_of(message);
    orr_field f = {0};
    while (orr_wire_next(&w, &f)) {
        for (unsigned s = ORR_SCHEMA_0_0_3U; s <= ORR_SCHEMA_0_0_2; s++)
            if (!fits_old_attr(eto_generation_of((orr_schema)s), &f))
                possible &= ~(1u << s);
        if (f.number <= OLD_ATTR_TYPE)
            seen |= 1u << f.number;
    }
    const bool is_complete = seen == (1u << OLD_ATTR_NAME | 1u << OLD_ATTR_TYPE);
    return w.why || !is_complete ? 0 : possible;
}

/* ---- nodes ---- */

static bool is_io(orr_span message)
{
    orr_wire w = orr_wire_of(message);
    orr_field f = {0};
    while (orr_wire_next(&w, &f))
        if (f.type != ORR_WIRE_LEN)
            return false;
    return !w.why;
}

static bool is_packed(orr_span bytes)
{
    orr_wire w = orr_wire_of(bytes);
    uint64_t v;
    while (w.at < w.end)
        if (!orr_wire_varint(&w, &v))
            return false;
    return true;
}

/* Field 10: attributes today, formerly the string output_types. */
static unsigned attr_or_text(const orr_field *f)
{
    bool has_name;
    const unsigned text = is_text(f) ? WITH_TYPES : 0;
    if (!is_attr_now(f->bytes, &has_name))
        return text;
    return has_name ? CURRENT : CURRENT | text;
}

/* Fields 5 to 11 as strings, messages or packed numbers. */
static unsigned field_with_length(const orr_field *f)
{
    const unsigned text = is_text(f) ? WITH_TYPES : 0;
    switch (f->number) {
    case NODE_DATA_DEPS:
        return is_packed(f->bytes) ? CURRENT | text : text;
    case NODE_START:
    case NODE_DURATION:
        return text;
    case NODE_INPUTS:
    case NODE_OUTPUTS:
        return is_io(f->bytes) ? CURRENT | text : text;
    case NODE_ATTR:
        return attr_or_text(f);
    default: /* 11 is also an extension of the current schema */
        return old_attr_of(f->bytes) ? old_attr_of(f->bytes) : CURRENT;
    }
}

/* Fields 5 to 20 as numbers. */
static unsigned field_with_number(const orr_field *f)
{
    switch (f->number) {
    case NODE_DATA_DEPS: /* or tensor_loc */
        return f->value < MEMORY_TYPES ? CURRENT | EG : CURRENT;
    case NODE_START:
    case NODE_DURATION:
        return CURRENT | EG;
    case NODE_INPUTS: /* input_tensor_loc */
    case NODE_ATTR:   /* output_tensor_loc */
        return f->value < MEMORY_TYPES ? EG : 0;
    default:
        return EG;
    }
}

static unsigned generations_of(const orr_field *f)
{
    const bool is_number = f->type == ORR_WIRE_VARINT;
    switch (f->number) {
    case NODE_ID:
        return is_number ? ANY : 0;
    case NODE_NAME:
        return f->type == ORR_WIRE_LEN ? ANY : 0;
    case NODE_TYPE:
        if (!is_number)
            return 0;
        return f->value > ORR_NODE_COMM_COLL    ? CURRENT
               : f->value == ORR_NODE_COMM_COLL ? ANY & ~SHIFTED
                                                : ANY;
    case NODE_CTRL_DEPS: /* or parent, which was never packed */
        return is_number ? ANY : CURRENT;
    default:
        if (f->number > EG_LAST)
            return CURRENT;
        if (is_number)
            return field_with_number(f);
        if (f->number <= OLD_ATTR)
            return f->type == ORR_WIRE_LEN ? field_with_length(f) : 0;
        return CURRENT;
    }
}

/* proto3 omits zeros and packs numbers. */
static bool is_proto2_habit(const orr_field *f)
{
    if (f->type != ORR_WIRE_VARINT)
        return false;
    if (f->number == NODE_CTRL_DEPS)
        return true;
    return f->value == 0 &&
           (f->number == NODE_ID || f->number == NODE_TYPE || f->number == NODE_DURATION);
}

/* Generators name nodes after their type, and collectives after their kind. */
static uint32_t type_in_name(orr_str name)
{
    static const char *const collectives[] = {"ALL_REDUCE", "ALL_TO_ALL", "ALL_GATHER",
                                              "REDUCE_SCATTER"};
    for (uint32_t k = ORR_NODE_METADATA; k <= ORR_NODE_COMM_COLL; k++)
        if (orr_str_begins(name, orr_node_type_name(k)))
            return k;
    for (unsigned k = 0; k < sizeof collectives / sizeof *collectives; k++)
        if (orr_str_begins(name, collectives[k]))
            return ORR_NODE_COMM_COLL;
    return 0;
}

static unsigned hint_of_name(orr_str name, uint64_t type)
{
    const uint32_t named = type_in_name(name);
    if (named == 0 || (type != named && type + 1 != named))
        return ANY;
    return type == named ? ANY & ~SHIFTED : SHIFTED;
}

/* False: damaged record. */
static bool weigh_node(orr_span body, clues *c)
{
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    orr_str name = {"", 0};
    uint64_t type = 0;
    unsigned possible = c->possible, hinted = c->hinted, seen = 0;
    while (orr_wire_next(&w, &f)) {
        possible &= generations_of(&f);
        if (is_proto2_habit(&f))
            hinted &= PROTO2;
        if (f.number == NODE_NAME && f.type == ORR_WIRE_LEN)
            name = (orr_str){(const char *)f.bytes.ptr, f.bytes.len};
        if (f.number == NODE_TYPE)
            type = f.value;
        if (f.number <= NODE_TYPE)
            seen |= 1u << f.number;
    }
    if (w.why)
        return false;
    if (!(seen >> NODE_ID & 1) || !(seen >> NODE_NAME & 1))
        possible &= ~(unsigned)PROTO2; /* required there */
    if (!(seen >> NODE_TYPE & 1))
        possible &= ~(unsigned)WITH_TYPES;
    if (possible == 0)
        return false;
    c->possible = possible;
    c->hinted = hinted & hint_of_name(name, type);
    return true;
}

/* ---- the file ---- */

/* Metadata is a first record with a string in field 1: the version, or attributes. */
static bool is_metadata(orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    return body.len == 0 ||
           (orr_wire_next(&w, &f) && f.number == META_VERSION && f.type == ORR_WIRE_LEN);
}

static unsigned generations_of_metadata(orr_span body)
{
    orr_wire w = orr_wire_of(body);
    orr_field f = {0};
    unsigned old = V0_0_3U | V0_0_3;
    bool is_2023_10 = true, has_name;
    if (body.len == 0)
        return old | CURRENT;
    while (orr_wire_next(&w, &f)) {
        if (f.number != OLD_META_ATTR || f.type != ORR_WIRE_LEN)
            return CURRENT;
        old &= old_attr_of(f.bytes);
        is_2023_10 = is_2023_10 && is_attr_now(f.bytes, &has_name) && has_name;
    }
    if (w.why)
        return CURRENT;
    return old ? old : is_2023_10 ? V2023_10 : CURRENT;
}

static bool is_single(unsigned set)
{
    return (set & (set - 1)) == 0;
}

static bool is_eg_name(const char *path)
{
    return orr_text_ends(path, ".eg") || orr_text_ends(path, ".eg.gz") ||
           orr_text_ends(path, ".eg.zst");
}

static void weigh_records(orr_span bytes, clues *c)
{
    orr_wire w = orr_wire_of(bytes);
    orr_span body;
    for (unsigned i = 0; i < MOST_RECORDS && w.at < w.end && !is_single(c->possible); i++) {
        if (!orr_wire_bytes(&w, &body))
            return;
        if (i == 0 && is_metadata(body))
            c->possible = generations_of_metadata(body);
        else if (!weigh_node(body, c))
            return;
    }
}

orr_schema eto_recognise(orr_span bytes, const char *path)
{
    static const uint8_t preferred[] = {
        ORR_SCHEMA_CURRENT, ORR_SCHEMA_2023_10, ORR_SCHEMA_0_0_3,
        ORR_SCHEMA_0_0_3U,  ORR_SCHEMA_0_0_2,   ORR_SCHEMA_EG,
    };
    const bool is_eg = is_eg_name(path);
    clues c = {.possible = ANY, .hinted = is_eg ? PROTO2 : ANY};
    weigh_records(bytes, &c);
    const unsigned answer = c.possible & c.hinted ? c.possible & c.hinted : c.possible;
    if (is_eg && answer & EG)
        return ORR_SCHEMA_EG;
    for (unsigned i = 0; i < sizeof preferred; i++)
        if (answer >> preferred[i] & 1)
            return (orr_schema)preferred[i];
    return ORR_SCHEMA_CURRENT;
}
