/* SPDX-License-Identifier: Apache-2.0 */
/* attrs.h - the attributes of nodes and of metadata: their names and the types they are written as.
 *
 * This is the only table of them.  A source writes ORR__ATTR_COMM_SIZE (builder.h), a reader looks
 * it up (orr__node_get); "comm_size" is spelled nowhere outside src/trace.
 *
 * The first ORR__COLUMNS attributes are columns of a trace (orr_columns); of these the first
 * ORR__WIDE_COLUMNS hold int64_t. */
#ifndef ORR_TRACE_ATTRS_H
#define ORR_TRACE_ATTRS_H

#include <orrery/trace.h>

/* X(key, name, type) */
#define ORR__ATTR_TABLE(X)                        \
    X(COMM_SIZE, "comm_size", INT64)              \
    X(COMM_SRC, "comm_src", INT32)                \
    X(COMM_DST, "comm_dst", INT32)                \
    X(COMM_TAG, "comm_tag", INT32)                \
    X(COMM_PRIORITY, "comm_priority", INT32)      \
    X(TENSOR_SIZE, "tensor_size", UINT64)         \
    X(TENSOR_LOC, "tensor_loc", UINT32)           \
    X(NUM_OPS, "num_ops", INT64)                  \
    X(STREAM, "stream", INT64)                    \
    X(IS_CPU_OP, "is_cpu_op", BOOL)               \
    X(COMM_TYPE, "comm_type", INT64)              \
    X(PG_NAME, "pg_name", STRING)                 \
    /* Further attributes of nodes. */            \
    X(INVOLVED_DIM, "involved_dim", BOOL)         \
    X(COMM_GROUP, "comm_group", INT64)            \
    X(COMMUNICATOR_ID, "communicator_id", UINT32) \
    X(RUNTIME, "runtime", INT64)                  \
    X(DURATION_NS, "duration_ns", INT64)          \
    X(HELD_BYTES, "held_bytes", UINT64)           \
    X(RF_ID, "rf_id", INT64)                      \
    X(FW_PARENT, "fw_parent", INT64)              \
    X(SEQ_ID, "seq_id", INT64)                    \
    X(SCOPE, "scope", INT64)                      \
    X(TID, "tid", INT64)                          \
    X(FW_TID, "fw_tid", INT64)                    \
    X(OP_SCHEMA, "op_schema", STRING)             \
    X(OP_TYPE, "op_type", STRING)                 \
    X(INPUTS, "inputs", STRING)                   \
    X(OUTPUTS, "outputs", STRING)                 \
    X(PHASE, "phase", STRING)                     \
    X(MODULE, "module", STRING)                   \
    X(LINE, "line", STRING)                       \
    X(KERNELS, "kernels", STRING)                 \
    X(NEW_TOKENS, "new_tokens", UINT64)           \
    X(FIRST_TOKENS, "first_tokens", UINT64)       \
    X(LAST_TOKENS, "last_tokens", UINT64)         \
    X(ARRIVALS_US, "arrivals_us", UINT64)         \
    X(EARLIEST_US, "earliest_us", UINT64)         \
    /* Attributes of metadata. */                 \
    X(SCHEMA, "schema", STRING)                   \
    X(GENERATOR, "generator", STRING)             \
    X(INPUT_FILE, "input_file", STRING)           \
    X(STREAMS, "streams", BOOL)                   \
    X(TOKENS, "tokens", UINT64)                   \
    X(MODEL_FLOPS, "model_flops", DOUBLE)         \
    X(DEVICE_BYTES, "device_bytes", UINT64)       \
    X(STEPS, "steps", UINT64)                     \
    X(PRODUCT_BITS, "product_bits", UINT64)       \
    X(SOFTWARE, "software", STRING)               \
    X(TOKEN_RANKS, "token_ranks", UINT64)         \
    X(PID, "pid", UINT64)                         \
    X(TIME, "time", STRING)                       \
    X(START_TS, "start_ts", UINT64)               \
    X(FINISH_TS, "finish_ts", UINT64)             \
    X(MADE_BY, "made_by", STRING)

typedef enum orr__attr_key {
#define ORR__X(key, name, type) ORR__ATTR_##key,
    ORR__ATTR_TABLE(ORR__X)
#undef ORR__X
        ORR__ATTR_COUNT,
    ORR__WIDE_COLUMNS = ORR__ATTR_IS_CPU_OP,
    ORR__COLUMNS = ORR__ATTR_INVOLVED_DIM
} orr__attr_key;

typedef struct orr__attr_row {
    orr_str name;
    orr_value_kind kind;
} orr__attr_row;

extern const orr__attr_row orr__attr_rows[ORR__ATTR_COUNT];

/* For messages. */
static inline const char *orr__attr_name(orr__attr_key key)
{
    return orr__attr_rows[key].name.ptr;
}

/* The first attribute of that name. */
static inline bool orr__node_get(const orr_node *node, orr__attr_key key, orr_attr *out)
{
    return orr_node_attr(node, orr__attr_rows[key].name.ptr, out);
}

/* Tensor-parallel communication of a step goes on this stream. */
enum { ORR__STREAM_TENSOR = 1 };

/* What goes on this stream goes on beside another pass (orrery stage --ep-overlap), so that a
 * device does not stand still for it. */
enum { ORR__STREAM_BESIDE = 8 };

#endif
