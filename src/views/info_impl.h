/* SPDX-License-Identifier: Apache-2.0 */
/* info_impl.h - the figures of orr_info, shared by the files that gather and print them.
 *
 * Everything is in the arena of the orr_info or in its growing arrays; texts are copies, because
 * the set may be freed before printing.  Sums saturate, which `is_saturated` records. */
#ifndef ORR_VIEWS_INFO_IMPL_H
#define ORR_VIEWS_INFO_IMPL_H

#include <orrery/lab/info.h>
#include <orrery/timeline.h>

#include "base/arithmetic.h"
#include "base/memory/buffer.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"

enum { ORR__NO_KIND = 255, ORR__TOP_DEFAULT = 10, ORR__NAME_ROOM = 512 };

/* Statistics of one value over nodes. */
typedef struct orr__stat {
    uint64_t count, total, min, max;
} orr__stat;

/* `times` nodes with the value v. */
static inline void orr__stat_add(orr__stat *s, uint64_t v, uint64_t times)
{
    if (s->count == 0 || v < s->min)
        s->min = v;
    if (s->count == 0 || v > s->max)
        s->max = v;
    s->count = orr_sat_add(s->count, times);
    s->total = orr_sat_add(s->total, orr_sat_mul(v, times));
}

/* Everything in `more`, this many times. */
static inline void orr__stat_merge(orr__stat *s, const orr__stat *more, uint64_t times)
{
    if (more->count == 0)
        return;
    if (s->count == 0 || more->min < s->min)
        s->min = more->min;
    if (s->count == 0 || more->max > s->max)
        s->max = more->max;
    s->count = orr_sat_add(s->count, orr_sat_mul(more->count, times));
    s->total = orr_sat_add(s->total, orr_sat_mul(more->total, times));
}

/* Dependencies of a node: data, then control. */
static inline uint32_t orr__dep_count(const orr_columns *c, uint32_t i)
{
    const uint32_t ctrl = c->ctrl_first ? c->ctrl_first[i + 1] - c->ctrl_first[i] : 0;
    return c->data_first[i + 1] - c->data_first[i] + ctrl;
}

static inline uint32_t orr__dep_at(const orr_columns *c, uint32_t i, uint32_t k)
{
    const uint32_t data = c->data_first[i + 1] - c->data_first[i];
    return k < data ? c->data_dep[c->data_first[i] + k] : c->ctrl_dep[c->ctrl_first[i] + k - data];
}

typedef struct orr__operator {
    orr_str name;
    orr__stat duration_us;
} orr__operator;

/* Operators by name, in order of appearance. */
typedef struct orr__operators {
    orr_intern *names;
    orr__stat *stats;   /* by number of the name */
    bool *is_one_sided; /* likewise: by its name a one-sided kernel */
    size_t room, flag_room;
    bool by_name;
} orr__operators;

/* The collectives of one kind in one group. */
typedef struct orr__coll_row {
    uint32_t group; /* number in orr_info.groups, or ORR_NO_NAME: the node names none */
    uint32_t kind;  /* orr_collective, or ORR__NO_KIND: the node has no comm_type */
    uint32_t ranks; /* of the group; 0: not known */
    uint64_t count;
    orr__stat size; /* of those that have a comm_size */
    uint64_t moved; /* bytes sent, by all ranks together; 0 when `ranks` is */
} orr__coll_row;

/* The sends or receives between one pair. */
typedef struct orr__peer_row {
    uint32_t type;    /* ORR_NODE_COMM_SEND or _RECV */
    int64_t src, dst; /* ORR_NO_VALUE: unknown */
    uint64_t count;
    orr__stat size;
} orr__peer_row;

/* The dependency graph of one trace.  With a cycle there are no levels and no path. */
typedef struct orr__graph_shape {
    uint64_t roots, leaves;
    bool is_cyclic;
    uint32_t levels, width; /* nodes on the longest chain; most nodes of one level */
    uint64_t length_us;     /* of the critical path */
    uint32_t *path;         /* its nodes, first to last, in the arena given */
    uint32_t path_count;
} orr__graph_shape;

/* One class of equal ranks, or ranks of a class with holes that have the same figures. */
typedef struct orr__class_row {
    const char *ranks; /* "0-15,32" */
    uint32_t first, count;
    uint64_t nodes, duration_us, compute_us;
    uint64_t sent_bytes,
        moved_bytes; /* sizes of collectives and sends; estimate of what crosses the network */
    bool is_cyclic;
    uint64_t critical_us;
    uint32_t critical_nodes, levels, width;
} orr__class_row;

typedef struct orr__meta_row {
    orr_str name;
    orr_str value; /* JSON */
    const char *member;
} orr__meta_row;

struct orr_info {
    orr_arena *arena;
    orr_info_options options; /* path and program are copies; top is set */
    orr_content_hash content_hash;
    uint32_t ranks, classes; /* of the set */
    uint32_t counted_ranks;  /* that the figures cover: all, or 1 */
    uint32_t schema_ranks[ORR_SCHEMA_COUNT];
    bool is_saturated;

    bool has_metadata, metadata_differs; /* of the first rank counted; others differ */
    orr_str meta_version;
    orr__meta_row *meta;
    size_t meta_count;

    uint64_t nodes;
    orr__stat by_type[256]; /* durations */
    orr__stat by_place[3];  /* durations: device, host, unknown */
    orr__stat tensor_size[256], comm_size[256];
    orr__stat num_ops;
    orr__stat annotations; /* durations: host nodes that are no operators */
    orr__stat one_sided;   /* durations: kernels of DeepEP and similar */

    orr__operators operators;
    uint32_t *by_time, *by_count; /* the top ones, by number */
    size_t by_time_count, by_count_count;

    orr_intern *groups;
    orr__coll_row *colls;
    size_t coll_count, coll_room;

    orr__peer_row *peers; /* the largest first */
    size_t peer_count, peer_room;
    orr__stat p2p[2]; /* sends, receives: sizes */
    uint64_t p2p_nodes[2];
    bool has_unknown_moved; /* some collective's group size or kind is unknown */
    uint64_t moved_coll, moved_p2p;

    uint64_t data_deps, ctrl_deps, data_missing, ctrl_missing, duplicate_ids;
    uint64_t roots, leaves;
    uint32_t cyclic_ranks, first_cyclic;
    uint32_t levels, width;

    bool has_path;
    uint32_t path_rank, path_nodes;
    uint64_t path_us, path_rank_us; /* of the critical path; of all nodes of that rank */
    uint64_t critical_sum_us;       /* over the ranks that have one */
    uint32_t critical_ranks;
    orr__operator *path_ops; /* the top ones */
    size_t path_op_count;

    orr__class_row *rows; /* by class; a class whose ranks differ in a figure has several */
    size_t row_count, row_room;

    orr_buf printed; /* the last text or JSON requested */
};

/* Levels, width and critical path; scratch and the path come from the arena. */
orr_code orr__graph_measure(const orr_columns *c,
                            orr_arena *a,
                            orr__graph_shape *out,
                            orr_error *err);

/* A name without the numbers that make it unique: COMP_NODE_12 -> COMP_NODE, layers.3.mlp ->
 * layers.*.mlp.  Never empty, unless `name` is.  Points into `name` or `room`. */
orr_str orr__operator_group(orr_str name, char room[ORR__NAME_ROOM]);

/* Bytes that each rank of a group of n sends, on average, for one collective; false: unknown
 * kind. */
bool orr__moved_bytes(uint32_t kind, uint64_t size, uint32_t n, uint64_t *out);
const char *orr__moved_formula(uint32_t kind); /* "2(n-1)/n x size"; NULL: kind not known */

/* "0-7,9,11-15": members ascending; "0-30/2" has a stride of 2. */
const char *orr__rank_ranges(orr_arena *a, const uint32_t *members, size_t count);
/* The ranks represented by this one in a timeline, itself included: "0-7"; NULL: out of memory. */
const char *orr__alike_ranks(orr_arena *a, const orr_timeline_parts *p, uint32_t rank);

/* Ranks that a row of collectives counts: those of its group that were read. */
uint64_t orr__info_members(const orr_info *o, const orr__coll_row *row);

#endif
