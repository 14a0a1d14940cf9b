/* SPDX-License-Identifier: Apache-2.0 */
/* trace_impl.h - internals of a trace and its records, shared by src/trace.  Never installed. */
#ifndef ORR_TRACE_IMPL_H
#define ORR_TRACE_IMPL_H

#include <orrery/trace.h>

#include "attrs.h"
#include "base/formats/wire.h"
#include "base/io/input.h"
#include "base/io/output.h"
#include "base/memory/buffer.h"
#include "base/memory/map.h"

/* Field numbers of the current schema (docs/format/et.md). */
enum {
    META_VERSION = 1,
    META_ATTR = 2,
    NODE_ID = 1,
    NODE_NAME = 2,
    NODE_TYPE = 3,
    NODE_CTRL_DEPS = 4,
    NODE_DATA_DEPS = 5,
    NODE_START = 6,
    NODE_DURATION = 7,
    NODE_INPUTS = 8,
    NODE_OUTPUTS = 9,
    NODE_ATTR = 10,
    IO_VALUES = 1,
    IO_SHAPES = 2,
    IO_TYPES = 3,
    ATTR_NAME = 1,
    ATTR_DOC = 2,
    ATTR_FIRST_MEMBER = 3,
    ATTR_LAST_MEMBER = 32,
    LIST_VALUES = 1
};

/* A decoded record.  The dependency arrays are reused from record to record. */
typedef struct orr__scan {
    orr_node node;
    uint64_t *data, *ctrl;
    size_t data_count, data_room, ctrl_count, ctrl_room;
    uint32_t present; /* bit k: known[k] (or pg_name) is present */
    int64_t known[ORR__COLUMNS];
    orr_str pg_name;
    bool has_name, repeats_name; /* of several names the last counts */
    bool is_lenient; /* wrong wire types are unknown fields and node types are numbers */
    const char *why; /* the error, at `bad` */
    const uint8_t *bad;
} orr__scan;

bool orr__scan_node(orr__scan *s, orr_span body); /* false: s->why (NULL: out of memory) */
/* The same for a node being appended, without its record: covers most nodes.  False: it has more
 * than that, or is invalid; scanning its record decides.  Its dependencies are separate: false, out
 * of memory. */
bool orr__scan_draft(orr__scan *s, const orr_draft *d);
bool orr__scan_draft_deps(orr__scan *s, const orr_draft *d);
bool orr__scan_meta(orr__scan *s, orr_span body);
void orr__scan_fini(orr__scan *s);
/* Is the first record of a file metadata?  (If not, it is a node.) */
bool orr__is_metadata(orr__scan *s, orr_span body);
/* Checks one attribute message and records it if it is known. */
bool orr__scan_attr(orr__scan *s, orr_span message);

/* A record that has been checked, without its dependencies and attributes. */
void orr__node_decode(orr_span body, orr_node *out);

/* Encoding: the fields of a record, without its length. */
void orr__encode_node(orr_buf *b, const orr_draft *d);
void orr__encode_meta(orr_buf *b, const orr_meta *m);
void orr__encode_attr(orr_buf *b, uint32_t field, const orr_attr *a);
void orr__encode_copy(orr_buf *b, orr_span body, const orr_edit *e);
/* The same record with `shift` added to its id and to every dependency. */
void orr__encode_shifted(orr_buf *b, orr_span body, uint64_t shift);

struct orr_trace {
    char *path;
    orr_schema schema;
    orr_input *source;  /* owns `bytes` when they come from a file */
    orr_buf owned;      /* holds them when they were encoded here */
    uint64_t source_at; /* start of bytes in the file: not 0 inside a .orr */
    orr_span bytes; /* metadata record and node records, each after its length; current schema */
    bool has_metadata, is_sealed;
    bool is_from_file;
    bool is_transcoded; /* bytes are not those of the file: see origin */
    bool repeats_names; /* some record has several: search on after the first */

    orr_columns columns; /* filled by seal */
    orr__scan scan;
    size_t count, room; /* nodes; capacity of all per-node columns */
    uint64_t *id, *body_at, *duration, *start, *origin;
    uint8_t *type;
    uint32_t *data_first, *ctrl_first;
    uint32_t *data_dep, *ctrl_dep;
    size_t data_count, data_room, ctrl_count, ctrl_room;
    int64_t *wide[ORR__WIDE_COLUMNS];
    int8_t *is_cpu_op, *comm_type;
    uint32_t *pg_name;
    uint32_t active; /* which keys have a column */
    orr_intern *texts;
    bool is_dense;   /* so far id[i] == id[0] + i, and every dependency is within 2^32 of id[0] */
    uint32_t *by_id; /* indices sorted by (id, index); NULL when ids ascend with the index */
};

/* Adds the record at [at, at + len) of t->bytes; its length varint starts at `record`. */
orr_code orr__trace_index(orr_trace *t, uint64_t record, uint64_t origin, orr_error *err);
/* Append encoded fields as a new record. */
orr_code orr__trace_append_body(orr_trace *t, size_t begin, uint64_t origin, orr_error *err);
/* Read `bytes` into a new trace and seal it. */
orr_code orr__trace_load(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err);
/* orr_trace_write except for naming the file: *out is open, NULL on failure. */
orr_code orr__trace_write_open(const orr_trace *t,
                               const char *path,
                               const orr_write_options *opt,
                               orr_output **out,
                               orr_error *err);
orr_code orr__trace_new(const char *path, orr_trace **out, orr_error *err);
/* orr_trace_create; errors call the trace `name`. */
orr_code orr__trace_create(const char *name, const orr_meta *meta, orr_trace **out, orr_error *err);
/* Expected totals of nodes and bytes of records.  Nothing then moves while it grows; unneeded
 * memory is never touched. */
orr_code orr__trace_expect(orr_trace *t, size_t nodes, size_t bytes, orr_error *err);
orr_code orr__trace_append_at(orr_trace *t, const orr_draft *d, uint64_t origin, orr_error *err);
orr_span orr__trace_body(const orr_trace *t, uint32_t index);
/* From the first attribute to the end of the record: nodes with equal bytes have equal
 * attributes. */
orr_span orr__trace_attr_bytes(const orr_trace *t, uint32_t index);
orr_span orr__trace_meta_body(const orr_trace *t);

/* Formats other than the current .et.  Readers append to an empty trace (orr__trace_append_at with
 * the position in the file as origin) and leave sealing to the caller. */

/* The older generations of .et (chakra.md 2).  compat/table.c defines the pointer; NULL: they are
 * not built in. */
typedef struct orr__et_old {
    orr_schema (*recognise)(orr_span bytes, const char *path); /* or that it is current */
    orr_code (*read)(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err);
    orr_code (*emit)(
        const orr_trace *t, orr_schema schema, uint64_t id_shift, orr_output *o, orr_error *err);
} orr__et_old;
extern const orr__et_old *const orr__et_old_forms;

static inline orr_schema orr__et_recognise(orr_span bytes, const char *path)
{
    return orr__et_old_forms ? orr__et_old_forms->recognise(bytes, path) : ORR_SCHEMA_CURRENT;
}

bool orr__is_json(orr_span bytes);
orr_code orr__json_read(orr_trace *t, orr_span bytes, const orr_read_options *opt, orr_error *err);

/* Wire type of an attribute's value. */
static inline uint32_t orr__kind_wire_type(orr_value_kind kind)
{
    static const uint8_t types[ORR_VALUE_KIND_COUNT] = {
        [ORR_VALUE_DOUBLE] = ORR_WIRE_I64,   [ORR_VALUE_FLOAT] = ORR_WIRE_I32,
        [ORR_VALUE_FIXED32] = ORR_WIRE_I32,  [ORR_VALUE_FIXED64] = ORR_WIRE_I64,
        [ORR_VALUE_SFIXED32] = ORR_WIRE_I32, [ORR_VALUE_SFIXED64] = ORR_WIRE_I64,
        [ORR_VALUE_STRING] = ORR_WIRE_LEN,   [ORR_VALUE_BYTES] = ORR_WIRE_LEN,
    };
    return types[kind]; /* all others: ORR_WIRE_VARINT == 0 */
}

#endif
