/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - what must happen on one rank: a graph of operations.
 *
 * Read a trace and walk it:
 *
 *     orr_trace *t;
 *     if (orr_trace_read("rank0.et", NULL, &t, &err)) return report(&err);
 *     const orr_columns *c = orr_trace_columns(t);
 *     for (uint32_t i = 0; i < c->count; i++)
 *         if (c->type[i] == ORR_NODE_COMP) total += c->duration_us[i];
 *     orr_trace_destroy(t);
 *
 * Make one:
 *
 *     orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err);
 *     orr_trace_append(t, &(orr_draft){.id = 1, .name = orr_str_of("a"), .type = ORR_NODE_COMP}, &err);
 *     orr_trace_seal(t, &err);
 *     orr_trace_write(t, "rank0.et", NULL, &err);
 *
 * A trace keeps every node's record as the bytes it had in its file (or was encoded to when
 * appended), plus columns for frequently used fields.  So reading and writing back loses nothing,
 * whatever fields a file carries.  Nodes are addressed by index (their position in the file), not
 * by id.  A sealed trace never changes and may be read by many threads; a pass that changes
 * something makes a new one. */
#ifndef ORRERY_TRACE_H
#define ORRERY_TRACE_H

#include <orrery/error.h>
#include <orrery/types.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_NO_NODE UINT32_MAX /* a dependency on a node that is not in the trace */
#define ORR_NO_VALUE INT64_MIN /* this node does not have the attribute */
#define ORR_NO_NAME UINT32_MAX /* this node does not have the text attribute */

typedef enum orr_node_type {
    ORR_NODE_INVALID = 0,
    ORR_NODE_METADATA,
    ORR_NODE_MEM_LOAD,
    ORR_NODE_MEM_STORE,
    ORR_NODE_COMP,
    ORR_NODE_COMM_SEND,
    ORR_NODE_COMM_RECV,
    ORR_NODE_COMM_COLL,
    ORR_NODE_STORAGE, /* this and the next two: seen in extensions of the schema */
    ORR_NODE_BATCH,
    ORR_NODE_CHECKPOINT,
    ORR_NODE_TYPE_COUNT
} orr_node_type;

/* "COMP_NODE", "ALL_REDUCE"; NULL for a number without a name. */
ORR_API const char *orr_node_type_name(uint32_t type);
ORR_API const char *orr_collective_name(uint32_t kind);

/* Generations of the file format (docs/format/et.md). */
typedef enum orr_schema {
    ORR_SCHEMA_AUTO = 0, /* reading: recognise it; writing: current */
    ORR_SCHEMA_CURRENT,  /* 0.0.4 and later: GlobalMetadata version=1, attr=2 */
    ORR_SCHEMA_2023_10,  /* as current, but GlobalMetadata attr=1 and no version */
    ORR_SCHEMA_0_0_3U,   /* 2023-08-05: attributes with unsigned members */
    ORR_SCHEMA_0_0_3,    /* 2023-07-07 */
    ORR_SCHEMA_0_0_2,    /* 2023-06-27 */
    ORR_SCHEMA_EG,       /* 2023-01: .eg, no metadata */
    ORR_SCHEMA_COUNT
} orr_schema;

ORR_API const char *orr_schema_name(orr_schema schema);      /* "current", "0.0.3", ... */
ORR_API bool orr_schema_find(orr_str name, orr_schema *out); /* the reverse */

/* ---- attributes ---- */

/* The members of an attribute's value.  In a file, member k is field 3 + 2 * (k - 1), its list form
 * one more. */
typedef enum orr_value_kind {
    ORR_VALUE_NONE = 0,
    ORR_VALUE_DOUBLE,
    ORR_VALUE_FLOAT,
    ORR_VALUE_INT32,
    ORR_VALUE_INT64,
    ORR_VALUE_UINT32,
    ORR_VALUE_UINT64,
    ORR_VALUE_SINT32,
    ORR_VALUE_SINT64,
    ORR_VALUE_FIXED32,
    ORR_VALUE_FIXED64,
    ORR_VALUE_SFIXED32,
    ORR_VALUE_SFIXED64,
    ORR_VALUE_BOOL,
    ORR_VALUE_STRING,
    ORR_VALUE_BYTES,
    ORR_VALUE_KIND_COUNT
} orr_value_kind;

typedef union orr_value {
    int64_t i;  /* INT32, INT64, SINT32, SINT64, SFIXED32, SFIXED64 */
    uint64_t u; /* UINT32, UINT64, FIXED32, FIXED64, BOOL (0 or 1) */
    double d;   /* DOUBLE, FLOAT */
    orr_str s;  /* STRING, BYTES */
} orr_value;

typedef struct orr_attr {
    orr_str name, doc;
    orr_value_kind kind;
    bool is_list;
    orr_value value;        /* when not a list */
    const orr_value *items; /* a list given to orr_trace_append */
    size_t item_count;
    /* A list as read: its encoded message; see orr_list_next.  Used when items is NULL. */
    orr_span list;
} orr_attr;

typedef struct orr_attrs {
    const uint8_t *at, *end;
    uint32_t field;
} orr_attrs;
typedef struct orr_list {
    const uint8_t *at, *end; /* the rest of the message that holds the items */
    const uint8_t *packed_at, *packed_end;
    uint32_t field;
    orr_value_kind kind;
} orr_list;

/* Attributes in file order. */
ORR_API bool orr_attrs_next(orr_attrs *it, orr_attr *out);
/* The items of a list attribute. */
ORR_API orr_list orr_attr_items(const orr_attr *attr);
ORR_API bool orr_list_next(orr_list *it, orr_value *out);
/* Any integer or boolean member as int64_t, saturating at INT64_MAX. */
ORR_API bool orr_attr_int(const orr_attr *attr, int64_t *out);
/* "int64_val", "bool_list": the name of a member in the schema. */
ORR_API const char *orr_value_member(orr_value_kind kind, bool is_list);

/* ---- one node ---- */

typedef struct orr_io {
    orr_str values, shapes, types;
} orr_io;

/* A decoded node.  Everything is borrowed from the trace. */
typedef struct orr_node {
    uint64_t id;
    orr_str name;
    uint32_t type;
    uint64_t start_us, duration_us;
    bool has_inputs, has_outputs;
    orr_io inputs, outputs;
    orr_span body; /* the whole record, current schema, without its length */
} orr_node;

ORR_API orr_attrs orr_node_attrs(const orr_node *node);
/* The first attribute with that name. */
ORR_API bool orr_node_attr(const orr_node *node, const char *name, orr_attr *out);

/* A node to append.  All-zero fields are absent from the record, as in proto3. */
typedef struct orr_draft {
    uint64_t id;
    orr_str name;
    uint32_t type;
    const uint64_t *data_deps, *ctrl_deps; /* ids */
    size_t data_count, ctrl_count;
    uint64_t start_us, duration_us;
    const orr_io *inputs, *outputs; /* NULL: absent */
    const orr_attr *attrs;
    size_t attr_count;
    orr_span unknown; /* encoded fields to preserve */
} orr_draft;

typedef struct orr_meta {
    orr_str version;
    const orr_attr *attrs;
    size_t attr_count;
} orr_meta;

/* Changes to a node copied from another trace; everything else is preserved byte by byte. */
typedef struct orr_edit {
    bool sets_id, sets_data_deps, sets_ctrl_deps;
    uint64_t id;
    const uint64_t *data_deps, *ctrl_deps;
    size_t data_count, ctrl_count;
    const orr_attr
        *attrs; /* each replaces all attributes of its name, or is added; kind NONE removes */
    size_t attr_count;
} orr_edit;

/* ---- a trace ---- */

typedef struct orr_trace orr_trace;

/* The columns of a sealed trace.  A column is NULL if no node has the attribute; a node without it
 * has ORR_NO_VALUE (is_cpu_op and comm_type: -1; pg_name: ORR_NO_NAME).  The first attribute of a
 * name counts, in any integer representation. */
typedef struct orr_columns {
    uint32_t count;
    const uint64_t *id;
    const uint8_t *type;         /* orr_node_type; 255: any number above 254 */
    const uint64_t *duration_us; /* "eg" to 0.0.3: from the attribute runtime */
    const uint64_t *start_us;    /* NULL: all zero */
    /* Dependencies of node i: data_dep[data_first[i] .. data_first[i+1]), as indices of nodes, in
     * file order; ORR_NO_NODE where the id is not in the trace.  ctrl_first is NULL if there are
     * none. */
    const uint32_t *data_first, *data_dep;
    const uint32_t *ctrl_first, *ctrl_dep;
    uint32_t data_missing, ctrl_missing; /* how many are ORR_NO_NODE */
    /* nodes with the id of an earlier node; dependencies refer to the last one */
    uint32_t duplicate_ids;
    bool is_ascending;   /* ids grow strictly with the index */
    bool is_topological; /* every dependency points to a smaller index: no cycles */
    const int8_t *is_cpu_op;
    const int8_t *comm_type; /* 127: any number above 126 */
    const int64_t *comm_size, *comm_src, *comm_dst, *comm_tag, *comm_priority;
    const int64_t *tensor_size, *tensor_loc, *num_ops, *stream;
    const uint32_t *pg_name; /* see orr_trace_text */
} orr_columns;

/* Strictness of a reader. */
typedef enum orr_leniency {
    ORR_STRICT = 0,   /* any deviation from the schema is an error with its byte */
    ORR_KEEP_UNKNOWN, /* node types without a name are kept as numbers */
    ORR_AS_JSONIZER,  /* the framing of the Python tools: chakra.md 1.1 */
    ORR_AS_FEEDER_V2  /* the framing of the C++ feeder: the first bad record ends the trace */
} orr_leniency;

typedef struct orr_read_options {
    size_t size;       /* sizeof(orr_read_options) */
    orr_schema schema; /* AUTO: recognise */
    orr_leniency leniency;
    /* A file whose first record is a node is an error, as in the old tools. */
    bool first_is_metadata;
} orr_read_options;

typedef struct orr_write_options {
    size_t size;       /* sizeof(orr_write_options) */
    orr_schema schema; /* AUTO: current */
    uint64_t id_shift; /* added to every id and dependency */
    bool same_schema;  /* write the generation it was read from */
} orr_write_options;

/* Read .et of any generation, JSON or JSON lines, plain or compressed; "-" is standard input.  The
 * trace comes sealed.  opt may be NULL. */
ORR_API orr_code orr_trace_read(const char *path,
                                const orr_read_options *opt,
                                orr_trace **out,
                                orr_error *err) ORR_MUST_CHECK;
/* The same from memory, which must outlive the trace.  label is used in error messages. */
ORR_API orr_code orr_trace_parse(orr_span bytes,
                                 const char *label,
                                 const orr_read_options *opt,
                                 orr_trace **out,
                                 orr_error *err) ORR_MUST_CHECK;

/* A new, empty trace.  meta NULL: the file will have no metadata record. */
ORR_API orr_code orr_trace_create(const orr_meta *meta,
                                  orr_trace **out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_trace_append(orr_trace *t,
                                  const orr_draft *node,
                                  orr_error *err) ORR_MUST_CHECK;
/* Append a node of another trace.  edit NULL: unchanged. */
ORR_API orr_code orr_trace_copy(orr_trace *t,
                                const orr_node *node,
                                const orr_edit *edit,
                                orr_error *err) ORR_MUST_CHECK;
/* Resolve the dependencies.  Call once, after the last append; the trace is immutable
 * afterwards. */
ORR_API orr_code orr_trace_seal(orr_trace *t, orr_error *err) ORR_MUST_CHECK;

ORR_API void orr_trace_destroy(orr_trace *t); /* NULL is fine */

ORR_API const orr_columns *orr_trace_columns(const orr_trace *t);
ORR_API const char *orr_trace_path(const orr_trace *t);  /* its origin, for messages */
ORR_API orr_schema orr_trace_schema(const orr_trace *t); /* the generation it was read from */
ORR_API bool orr_trace_has_metadata(const orr_trace *t);
ORR_API orr_str orr_trace_version(const orr_trace *t); /* of the metadata; empty if there is none */
ORR_API orr_attrs orr_trace_attrs(const orr_trace *t); /* of the metadata */

/* The whole record of one node, decoded. */
ORR_API void orr_trace_node(const orr_trace *t, uint32_t index, orr_node *out);
ORR_API orr_str orr_trace_name(const orr_trace *t, uint32_t index);
/* The index of the (last) node with this id; ORR_NO_NODE if there is none. */
ORR_API uint32_t orr_trace_find(const orr_trace *t, uint64_t id);
/* The text for a number in the column pg_name. */
ORR_API orr_str orr_trace_text(const orr_trace *t, uint32_t text);
ORR_API uint32_t orr_trace_text_count(const orr_trace *t);
/* The location of node `index` in the file, for messages. */
ORR_API orr_where orr_trace_where(const orr_trace *t, uint32_t index);
/* The dependencies of a node as ids, as in its record (including missing ones). */
ORR_API orr_list orr_node_data_deps(const orr_node *node);
ORR_API orr_list orr_node_ctrl_deps(const orr_node *node);

/* Write .et; a path ending in .gz or .zst is compressed; "-" is standard output. */
ORR_API orr_code orr_trace_write(const orr_trace *t,
                                 const char *path,
                                 const orr_write_options *opt,
                                 orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
