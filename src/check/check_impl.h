/* SPDX-License-Identifier: Apache-2.0 */
/* check_impl.h - shared by the checks: findings, and the graph of one trace.
 *
 * check.c calls the parts in order: check_deps.c and check_attrs.c look at one class of equal ranks
 * at a time, check_collectives.c and check_messages.c at all of them.  check_fix.c repairs traces
 * that can be read and saves what is left of files that cannot; src/views/check_report.c prints. */
#ifndef ORR_CHECK_IMPL_H
#define ORR_CHECK_IMPL_H

#include <orrery/check.h>

#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/options.h"
#include "base/short_forms.h"
#include "trace/attrs.h"
#include "trace/dag.h"
#include "trace/set_impl.h"

enum { CHK_LIMIT = 10 };

/* A class of ranks that are equal up to the values of its holes. */
typedef struct chk_class {
    const orr_trace *t;
    const orr_columns *c;
    const orr__class *holes;          /* NULL: it has none */
    const uint32_t *ranks;            /* all of them, ascending; NULL: in no set */
    uint32_t index, rank, rank_count; /* rank: the first of them; index ORR_NO_NODE: in no set */
    bool has_cycle;
} chk_class;

typedef struct chk_run {
    const orr_set *set;
    orr_check_report *report;
    orr_arena *arena;   /* lives as long as the report */
    orr_arena *scratch; /* reset between parts */
    uint32_t limit;
    chk_class *classes; /* by class index */
    uint32_t class_count;
    bool no_memory;
} chk_run;

/* The slot with a rank's own value of this attribute; ORR_NO_NODE: the value in the body counts. */
static inline uint32_t chk_slot(const chk_class *cls, orr_hole_field field, uint32_t node)
{
    const uint32_t *slots = cls->holes ? cls->holes->slot[field] : NULL;
    return slots && slots[node] ? slots[node] - 1 : ORR_NO_NODE;
}

static inline int64_t chk_value(const chk_run *k, uint32_t rank, uint32_t slot)
{
    return k->set->values[k->set->ranks[rank].values_at + slot];
}

/* A report and its storage.  Every report is made by open_check, as the first member of one of
 * these. */
typedef struct chk_store {
    orr_check_report report;
    orr_arena *arena;
    orr_finding *findings;
    size_t room;
} chk_store;

static inline chk_store *chk_store_of(const orr_check_report *r)
{
    return (chk_store *)(uintptr_t)r;
}

/* Start and end a report.  finish sorts and counts the findings. */
orr_code chk_begin(chk_run *k, const orr_set *s, uint32_t limit, orr_error *err);
orr_code chk_finish(chk_run *k, orr_check_report **out, orr_error *err);

/* Will the next finding of this kind be kept?  If not, its text need not be built. */
static inline bool chk_is_kept(const chk_run *k, orr_check_kind kind)
{
    return k->report->count[kind] < k->limit;
}
/* Count a finding, and keep it while its kind has room.  node: an index, or ORR_NO_NODE. */
void chk_add(
    chk_run *k, const chk_class *cls, orr_check_kind kind, uint32_t node, const char *fmt, ...)
    ORR_PRINTF(5, 6);
/* A finding about a rank's file, which may be unreadable. */
void chk_add_file(
    chk_run *k, uint32_t rank, orr_check_kind kind, const orr_where *where, const char *fmt, ...)
    ORR_PRINTF(5, 6);
/* A finding about the whole set. */
void chk_add_note(chk_run *k, const char *text);

/* For messages: `node 71 "name"`, and numbers as 12,345. */
const char *chk_node_words(chk_run *k, const chk_class *cls, uint32_t node);
const char *chk_count_words(chk_run *k, uint64_t n);
void chk_put_count(orr_buf *b, uint64_t n);
void chk_put_name(orr_buf *b, orr_str name); /* quoted, cut when long, without control characters */
void chk_put_id_and_name(orr_buf *b, const chk_class *cls, uint64_t shift, uint32_t node);

/* What checks walk: every dependency except self-loops, data before control. */
enum { CHK_DAG = ORR__DAG_BOTH | ORR__DAG_NO_LOOPS | ORR__DAG_SPLIT };

/* The parts. */
void chk_deps(chk_run *k, chk_class *cls);
void chk_attrs(chk_run *k, const chk_class *cls);
void chk_collectives(chk_run *k);
void chk_messages(chk_run *k);

/* The kind a known attribute should have: any kind of integer, a text, a list of booleans (which
 * old generations write as integers). */
typedef enum chk_wanted { CHK_WANT_INT, CHK_WANT_TEXT, CHK_WANT_BOOLS } chk_wanted;
typedef struct chk_known_attr {
    orr__attr_key key;
    chk_wanted wanted;
    uint8_t is_needed; /* by which node types: a mask */
} chk_known_attr;

enum {
    CHK_KNOWN_COMM_TYPE,
    CHK_KNOWN_COMM_SIZE,
    CHK_KNOWN_COMM_SRC,
    CHK_KNOWN_COMM_DST,
    CHK_KNOWN_COMM_TAG,
    CHK_KNOWN_COMM_PRIORITY,
    CHK_KNOWN_TENSOR_SIZE,
    CHK_KNOWN_TENSOR_LOC,
    CHK_KNOWN_NUM_OPS,
    CHK_KNOWN_STREAM,
    CHK_KNOWN_IS_CPU_OP,
    CHK_KNOWN_PG_NAME,
    CHK_KNOWN_INVOLVED_DIM,
    CHK_KNOWN_COMM_GROUP,
    CHK_KNOWN_COMMUNICATOR_ID,
    CHK_KNOWN_COUNT
};
extern const chk_known_attr chk_known_attrs[CHK_KNOWN_COUNT];
int chk_known_attr_find(orr_str name); /* -1: not known */
bool chk_attr_is_sound(const chk_known_attr *known, orr_value_kind kind, bool is_list);
/* The group of a collective: a number, or a text from pg_name.  False: a subset of the network's
 * dimensions, a group that one trace cannot tell.  An empty text: all ranks. */
bool chk_collective_group(const orr_trace *t, uint32_t node, char room[24], orr_str *out);
/* The same for a pg_name of 0, whatever the body has. */
bool chk_unnamed_group(const orr_trace *t, uint32_t node, char room[24], orr_str *out);

/* ---- repairing ---- */

/* By control dependency, in the order of ctrl_dep: true for those to drop so that none is on a
 * cycle. */
/* false: out of memory */
bool chk_break_cycles(orr_arena *a, const orr_columns *c, bool *is_dropped);

/* ---- check shapes ----
 *
 * Ranks of a class that are the same up to renaming of their own groups or
 * peers. */

typedef struct chk_shape {
    uint32_t class_index;
    uint32_t first, rank_count; /* shapes.ranks[first ..], ascending */
    const int64_t *pattern;
} chk_shape;

typedef struct chk_shapes {
    chk_shape *all; /* by class, then by their lowest ranks */
    uint32_t count;
    uint32_t *of_rank; /* ORR_NO_NODE: unreadable */
    uint32_t *ranks;
} chk_shapes;

/* What distinguishes the ranks of a class: a list of numbers, equal for ranks of one shape. */
typedef struct chk_splitter {
    size_t (*begin)(void *context, uint32_t class_index); /* how many; 0: nothing does */
    void (*fill)(void *context, uint32_t rank, int64_t *pattern);
    void *context;
} chk_splitter;

/* In k's scratch.  False: out of memory. */
bool chk_shapes_make(chk_run *k, const chk_splitter *by, chk_shapes *out);

/* ---- check groups ----
 *
 * Collectives by rank: gathered by check_groups.c, compared and run by check_collectives.c. */

/* A collective as the ranks of a shape issue it. */
typedef struct chk_issue {
    uint32_t shape, port, node;
    int16_t type;
    int64_t size;
    int64_t key_size; /* the size that must agree: 0 if ranks may move different amounts */
} chk_issue;

/* One of the groups of the ranks of a shape: the same for all of them, or each rank's own value. A
 * rank is in a group through one port only.  Its part in the group: issues.sorted[first .. first +
 * count), by type and size. */
typedef struct chk_port {
    uint32_t shape;
    uint32_t group; /* ORR_NO_NODE: each rank has its own, */
    uint32_t own;   /* this one of them */
    size_t first, count;
    uint64_t strict,
        loose; /* sums of hashes: equal for equal multisets, with size and with key_size */
} chk_port;

/* A member of a group. */
typedef struct chk_entry {
    uint32_t port, rank; /* ORR_NO_NODE: all ranks of the port's shape */
} chk_entry;

typedef struct chk_issues {
    orr_intern *groups; /* 0: the nameless one */
    chk_shapes shapes;
    chk_issue *all;      /* by shape, then in file order */
    chk_issue *sorted;   /* by port, type, size, place */
    size_t *shape_first; /* issues of shape i: all[shape_first[i] .. shape_first[i + 1]) */
    size_t count;
    chk_port *ports;      /* by shape; the first one of each is the nameless group */
    uint32_t *port_first; /* ports of shape i: [port_first[i] .. port_first[i + 1]) */
    uint32_t port_count;
    uint32_t *own_groups; /* by rank; ORR_NO_NODE: the value 0, which names none */
    size_t *own_at;       /* where those of a rank begin */
    chk_entry *entries;   /* by group, then port, then rank */
    size_t *group_first;  /* those of group g: [group_first[g] .. group_first[g + 1]) */
    bool has_partial;     /* some were left out: over part of the network */
    bool has_own;         /* some port is of ranks' own values */
} chk_issues;

/* Fills a zeroed chk_issues; sets k->no_memory on failure.  Most of it is in k's scratch. */
void chk_issues_gather(chk_run *k, chk_issues *s);
void chk_issues_fini(chk_issues *s);

static inline uint32_t chk_group_of(const chk_issues *s, const chk_port *p, uint32_t rank)
{
    return p->group != ORR_NO_NODE ? p->group : s->own_groups[s->own_at[rank] + p->own];
}

/* The ranks of an entry. */
static inline uint32_t chk_entry_ranks(const chk_issues *s,
                                       const chk_entry *e,
                                       const uint32_t **ranks)
{
    const chk_shape *shape = &s->shapes.all[s->ports[e->port].shape];
    *ranks = e->rank == ORR_NO_NODE ? s->shapes.ranks + shape->first : &e->rank;
    return e->rank == ORR_NO_NODE ? shape->rank_count : 1;
}

#endif
