/* SPDX-License-Identifier: Apache-2.0 */
/* builder.h - how sources write a trace: nodes one after the other, attributes by key.
 *
 *     orr__builder b;
 *     orr__build_open(&b, err);
 *     orr__put_text(&b, ORR__ATTR_GENERATOR, orr_str_of("example"));    // metadata
 *     orr__build_trace(&b, "1.0.0");
 *     orr__build_node(&b, ORR_NODE_COMP, orr_str_of("forward"));
 *     b.node.duration_us = 5;
 *     orr__put_on_device(&b);
 *     const uint64_t forward = orr__build_add(&b);
 *     orr__build_node(&b, ORR_NODE_COMM_COLL, orr_str_of("gradients"));
 *     orr__build_after(&b, forward);
 *     orr__put_collective(&b, ORR_COLL_ALL_REDUCE, 65536);
 *     orr__put_on_device(&b);
 *     orr__build_add(&b);
 *     return orr__build_seal(&b, out);
 *
 * The first failure sticks and turns all later calls into no-ops, so that a source reads as a list
 * of nodes and checks once, at the end.  Attributes are written in the order in which they are put:
 * sources whose files are compared byte by byte rely on it. */
#ifndef ORR_TRACE_BUILDER_H
#define ORR_TRACE_BUILDER_H

#include <orrery/set.h>

#include "attrs.h"
#include "base/memory/buffer.h"
#include "base/memory/map.h"

enum { ORR__BUILD_ATTRS = 32 };

typedef struct orr__builder {
    orr_trace *trace;
    const char *label; /* name of the trace in errors; NULL: as in orr_trace_create */
    orr_draft node;    /* under construction: times, inputs and outputs may be set here.
                        * Dependencies set here replace those that were added. */
    orr_attr attrs[ORR__BUILD_ATTRS];
    size_t attr_count;
    uint64_t *data, *ctrl;
    size_t data_count, data_room, ctrl_count, ctrl_room;
    orr_buf name;     /* of the node, unless node.name is set */
    char group[24];   /* text of orr__put_group */
    uint32_t count;   /* nodes so far: the index of the current one */
    uint64_t next_id; /* its id; may be set before orr__build_node */
    orr_hole *holes;
    size_t hole_count, hole_room;
    uint64_t *last_on; /* by stream: its last node; 0: none yet, so ids must count from 1 */
    size_t stream_count, stream_room;
    orr_map *lanes; /* lane -> index in rest_ns */
    uint64_t *rest_ns;
    size_t lane_count, lane_room;
    double rest_ps;
    orr_code code; /* the first failure */
    orr_error *err;
} orr__builder;

void orr__build_open(orr__builder *b, orr_error *err);
/* Begins the trace; attributes put so far become its metadata.  version NULL: no metadata record;
 * "": one without version. */
void orr__build_trace(orr__builder *b, const char *version);
/* The sealed trace; the builder is reset afterwards, also on failure (*out is NULL then). */
orr_code orr__build_seal(orr__builder *b, orr_trace **out) ORR_MUST_CHECK;
/* The same as a new class of a set, with the holes. */
orr_code orr__build_class(orr__builder *b, orr_set *set, uint32_t slot_count, uint32_t *class_index)
    ORR_MUST_CHECK;
/* The sealed trace as one more rank of a set. */
orr_code orr__build_rank(orr__builder *b, orr_set *set) ORR_MUST_CHECK;
/* Frees everything; not needed after the three above. */
void orr__build_fini(orr__builder *b);

/* ---- one node ---- */

/* Begins a node.  name may be empty and be written with orr__build_name. */
static inline void orr__build_node(orr__builder *b, uint32_t type, orr_str name)
{
    b->node = (orr_draft){.id = b->next_id, .name = name, .type = type};
    b->attr_count = b->data_count = b->ctrl_count = 0;
    b->name.len = 0;
}

/* Appends to the name. */
static inline void orr__build_name(orr__builder *b, orr_str part)
{
    orr_buf_add(&b->name, part.ptr, part.len);
}

/* Adds the node to the trace and returns its id; after a failure ids keep counting and nothing is
 * added. */
uint64_t orr__build_add(orr__builder *b);

/* The node depends on these, verbatim. */
void orr__build_deps(orr__builder *b, const uint64_t *ids, size_t count);
/* The node depends on this one; duplicates are dropped. */
void orr__build_after(orr__builder *b, uint64_t id);
/* Likewise, as a control dependency; dropped if there is a data dependency already. */
void orr__build_after_ctrl(orr__builder *b, uint64_t id);

/* Makes the node the next one of its stream and returns the previous one (0: none). */
uint64_t orr__build_in_stream(orr__builder *b, uint32_t stream);
static inline uint64_t orr__build_last_on(const orr__builder *b, uint32_t stream)
{
    return stream < b->stream_count ? b->last_on[stream] : 0;
}

/* Every rank of the class has its own value of this attribute, which is added if the node lacks
 * it. */
void orr__build_hole(orr__builder *b, orr_hole_field field, uint32_t slot);

/* Traces have whole microseconds.  The rounding error of a node is carried over to the next one of
 * its lane (a thread, a stream, a CPU), so that sums are right to a microsecond.  Both set
 * node.duration_us. */
void orr__build_duration_ns(orr__builder *b, uint64_t lane, uint64_t ns);
void orr__build_duration_ps(orr__builder *b,
                            double ps); /* one lane for all; saturates at 9e15 us */

/* ---- attributes ---- */

void orr__build_full(orr__builder *b); /* fails: no node has that many */

static inline orr_attr *orr__put(orr__builder *b,
                                 orr__attr_key key,
                                 orr_value_kind kind,
                                 orr_value v)
{
    if (b->attr_count == ORR__BUILD_ATTRS)
        orr__build_full(b);
    orr_attr *a = &b->attrs[b->attr_count++];
    *a = (orr_attr){.name = orr__attr_rows[key].name, .kind = kind, .value = v};
    return a;
}

/* Numbers and booleans, with the type of the table or another. */
static inline void orr__put_int(orr__builder *b, orr__attr_key key, int64_t v)
{
    orr__put(b, key, orr__attr_rows[key].kind, (orr_value){.i = v});
}

static inline void orr__put_uint(orr__builder *b, orr__attr_key key, uint64_t v)
{
    orr__put(b, key, orr__attr_rows[key].kind, (orr_value){.u = v});
}

static inline void orr__put_as(orr__builder *b, orr__attr_key key, orr_value_kind kind, int64_t v)
{
    orr__put(b, key, kind, (orr_value){.i = v});
}

static inline void orr__put_double(orr__builder *b, orr__attr_key key, double v)
{
    orr__put(b, key, ORR_VALUE_DOUBLE, (orr_value){.d = v});
}

static inline void orr__put_text(orr__builder *b, orr__attr_key key, orr_str v)
{
    orr__put(b, key, ORR_VALUE_STRING, (orr_value){.s = v});
}

/* The items must stay valid until the node is added. */
static inline void orr__put_list(orr__builder *b,
                                 orr__attr_key key,
                                 const orr_value *items,
                                 size_t count)
{
    orr_attr *a = orr__put(b, key, orr__attr_rows[key].kind, (orr_value){.u = 0});
    a->is_list = true;
    a->items = items;
    a->item_count = count;
}

static inline void orr__put_is_cpu_op(orr__builder *b, bool is_cpu_op)
{
    orr__put_uint(b, ORR__ATTR_IS_CPU_OP, is_cpu_op);
}

static inline void orr__put_on_device(orr__builder *b)
{
    orr__put_is_cpu_op(b, false);
}

/* The cost of a computation: operations, and bytes moved. */
static inline void orr__put_work(orr__builder *b, uint64_t operations, uint64_t bytes)
{
    orr__put_uint(b, ORR__ATTR_NUM_OPS, operations);
    orr__put_uint(b, ORR__ATTR_TENSOR_SIZE, bytes);
}

static inline void orr__put_collective(orr__builder *b, orr_collective kind, uint64_t bytes)
{
    orr__put_int(b, ORR__ATTR_COMM_TYPE, (int64_t)kind);
    orr__put_uint(b, ORR__ATTR_COMM_SIZE, bytes);
}

/* The group by its number. */
void orr__put_group(orr__builder *b, uint64_t number);

/* A message with both its ends. */
static inline void orr__put_message(
    orr__builder *b, orr_value_kind kind, int64_t src, int64_t dst, uint64_t bytes, int64_t tag)
{
    orr__put_as(b, ORR__ATTR_COMM_SRC, kind, src);
    orr__put_as(b, ORR__ATTR_COMM_DST, kind, dst);
    orr__put_uint(b, ORR__ATTR_COMM_SIZE, bytes);
    orr__put_as(b, ORR__ATTR_COMM_TAG, kind, tag);
}

/* Every rank of the class has its own group. */
static inline void orr__put_group_hole(orr__builder *b, uint32_t slot)
{
    orr__put_text(b, ORR__ATTR_PG_NAME, orr_str_of("0"));
    orr__build_hole(b, ORR_HOLE_PG_NAME, slot);
}

/* The other end of a message whose peer differs per rank of the class. */
static inline void orr__put_peer_hole(orr__builder *b,
                                      orr_value_kind kind,
                                      bool is_send,
                                      uint32_t slot)
{
    orr__put_as(b, is_send ? ORR__ATTR_COMM_DST : ORR__ATTR_COMM_SRC, kind, 0);
    orr__build_hole(b, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, slot);
}

#endif
