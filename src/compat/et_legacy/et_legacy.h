/* SPDX-License-Identifier: Apache-2.0 */
/* et_legacy.h - shared by the readers and writers of old .et generations.
 *
 * In memory there is only the current schema: old records are translated when they are read and
 * translated back when they are written.  What the current schema cannot express, and what is
 * needed to reproduce the old bytes, is a note: a field whose number the schema does not use, so
 * that every reader skips it. */
#ifndef ORR_ET_LEGACY_H
#define ORR_ET_LEGACY_H

#include "trace/trace_impl.h"

/* Notes (docs/format/et.md).  A node's note is a bit set; an attribute's is the member of its
 * declared type, where the value is in another one. */
enum {
    NODE_NOTE = 50001,
    ATTR_NOTE = 50001,
    NOTE_NO_TYPE = 1,       /* "eg": node_type was absent */
    NOTE_NO_RUN_TIME = 2,   /* a compute node without a run time */
    NOTE_ZERO_RUN_TIME = 4, /* another node with a run time of zero */
    NOTE_NO_COLLECTIVE = 8  /* "eg": comm_type was present, as INVALID_COMM */
};

/* Fields of a node, 0.0.2 to 0.0.3u; the first four also in "eg". */
enum {
    OLD_ID = 1,
    OLD_NAME = 2,
    OLD_TYPE = 3,
    OLD_PARENT = 4,
    OLD_INPUTS = 5, /* inputs, input_shapes, input_types, outputs, output_shapes, output_types */
    OLD_OUTPUTS = 8,
    OLD_ATTR = 11,
    OLD_META_ATTR = 1,
    OLD_ATTR_NAME = 1,
    OLD_ATTR_TYPE = 2,
    OLD_ATTR_DOC = 3,
    OLD_ATTR_MEMBER = 4 /* the member of type 0; the others follow by type */
};

typedef struct eto_member {
    uint8_t kind; /* orr_value_kind */
    bool is_list;
} eto_member;

typedef struct eto_generation {
    orr_schema schema;
    const eto_member *members; /* by attribute type */
    uint32_t member_count;
    uint32_t collective_count; /* number of collectives that comm_type can have */
    bool has_old_types;        /* no METADATA_NODE: all node types are one less than today */
    bool has_metadata;
} eto_generation;

const eto_generation *eto_generation_of(orr_schema schema);

static inline uint32_t eto_member_wire(uint8_t kind)
{
    return kind == ORR_VALUE_FLOAT                               ? (uint32_t)ORR_WIRE_I32
           : kind == ORR_VALUE_STRING || kind == ORR_VALUE_BYTES ? (uint32_t)ORR_WIRE_LEN
                                                                 : (uint32_t)ORR_WIRE_VARINT;
}

static inline uint32_t eto_member_field(eto_member m)
{
    return ATTR_FIRST_MEMBER + 2 * ((uint32_t)m.kind - 1) + m.is_list;
}

/* ---- reading ---- */

typedef struct eto_node {
    uint64_t id, duration;
    orr_str name;
    uint32_t type; /* today's number */
    uint32_t note;
    bool has_id, has_name, has_type;
} eto_node;

typedef struct eto_reader {
    orr_trace *t;
    const eto_generation *g;
    orr_span bytes;
    uint64_t at, body_at, body_len; /* the current record */
    bool is_lenient;                /* skip unknown fields, keep unknown node types */
    bool ends_at_damage;            /* as the old tools: the first bad record ends the trace */
    uint64_t *parents;              /* of the current node */
    size_t parent_count, parent_room;
    orr_span *attrs;
    size_t attr_count, attr_room;
    orr_buf tail;    /* its fields from NODE_INPUTS on, in the current schema */
    const char *why; /* the error, at `bad`; NULL: out of memory */
    const uint8_t *bad;
} eto_reader;

typedef struct eto_attr {
    orr_str name, doc;
    bool has_doc, has_value, is_utf8;
    uint32_t code;    /* the declared type */
    uint32_t row;     /* the member with the value, if has_value */
    uint64_t value;   /* a number */
    orr_span text;    /* a text */
    orr_span message; /* contains a list's items */
} eto_attr;

/* ---- writing ---- */

typedef struct eto_writer {
    const orr_trace *t;
    const eto_generation *g;
    uint64_t shift;
    orr_buf out;
    uint32_t index; /* the current node; ORR_NO_NODE: the metadata */
    bool is_same;   /* the trace was read from this generation */
    uint64_t *ids;  /* scratch: the dependencies of the current node */
    size_t id_room;
    orr_error *err;
} eto_writer;

/* The parts of a current record that old generations can express. */
typedef struct eto_parts {
    orr_node node;
    uint32_t note;
    orr_span inputs, outputs; /* their messages */
} eto_parts;

/* An attribute of the current schema. */
typedef struct eto_raw_attr {
    orr_attr attr;
    bool has_doc;
    uint32_t note;
    uint32_t float_bits; /* of a float */
} eto_raw_attr;

orr_schema eto_recognise(orr_span bytes, const char *path);

extern const orr__et_old orr__et_legacy;

#endif
