/* SPDX-License-Identifier: Apache-2.0 */
/* set_impl.h - what set.c (ranks and classes), set_find.c (which files) and set_file.c (.orr)
 * share. */
#ifndef ORR_SET_IMPL_H
#define ORR_SET_IMPL_H

#include <orrery/set.h>

#include "trace_impl.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"

#include <stdatomic.h>

enum { ORR__SLOTS_MOST = 1 << 20 }; /* of a class */

typedef struct orr__class {
    orr_trace *t;
    /* Of its source file, while the set is being read: equal files are found by it. */
    orr_span bytes;
    uint32_t ranks, first;
    uint32_t slot_count;
    orr_hole *holes; /* in the arena, by node, then field */
    size_t hole_count;
    uint32_t
        *slot[ORR_HOLE_FIELDS]; /* in the arena: node -> slot + 1; NULL: no hole of that field */
    int64_t *least, *most;      /* in the arena: range of values of a slot */
    bool *names_group;          /* likewise: a hole of this slot is a group */
    _Atomic(struct orr__fill_plan *) plan; /* set_holes.c; NULL until a rank is filled */
} orr__class;

typedef struct orr__rank {
    uint32_t class_index;
    uint64_t id_shift;
    size_t values_at; /* in the set's values, one per slot of the class */
    char *path;       /* in the arena */
    orr_error *error; /* in the arena; NULL: fine */
} orr__rank;

typedef struct orr__group_entry {
    uint64_t id;
    size_t first; /* in group_ranks */
    uint32_t count;
} orr__group_entry;

struct orr_set {
    orr_arena *arena;
    orr__class *classes;
    size_t class_count, class_room;
    orr__rank *ranks;
    size_t rank_count, rank_room;
    int64_t *values;
    size_t value_count, value_room;
    orr__group_entry *groups;
    size_t group_count, group_room;
    uint32_t *group_ranks;
    size_t group_rank_count, group_rank_room;
    /* Of several jobs on one machine (set_combine.c), in the arena: by job its first index in
     * job_hosts, by host 1 + its job. */
    size_t job_count;
    uint32_t *job_first, *job_hosts, *job_on;
    orr_input *file;      /* the .orr that contains the classes */
    orr_map *by_bytes;    /* hash of a file's bytes -> class */
    orr_map *by_likeness; /* hash of a trace up to a shift of ids -> class */
};

/* The files of a set in rank order.  A path of one .orr file gives that path and is_orr. */
typedef struct orr__file_list {
    orr_arena *arena;
    char **paths;
    size_t count, room;
    orr_stream *stream; /* of the only file, which has been peeked at; or NULL */
    char *groups;       /* path of a possible group file; or NULL */
    bool is_orr;
} orr__file_list;

orr_code orr__set_find_files(const char *path, orr__file_list *out, orr_error *err);
bool orr__is_orr(orr_span head);

orr_code orr__set_add_rank(
    orr_set *s, uint32_t class_index, uint64_t shift, const char *path, orr_error *err);
orr_code orr__set_add_class(orr_set *s,
                            orr_trace *t,
                            uint32_t *index,
                            orr_error *err); /* takes t */

/* set_holes.c: holes of a class that has its trace; they are copied.  why: the error in them. */
orr_code orr__class_set_holes(orr_set *s,
                              uint32_t class_index,
                              const orr_hole *holes,
                              size_t hole_count,
                              uint32_t slot_count,
                              const char **why,
                              orr_error *err);
orr_code orr__class_trace(orr__class *c, const int64_t *values, orr_trace **out, orr_error *err);
bool orr__slot_fits(const orr__class *c, uint32_t slot, int64_t value);

static inline bool orr__set_hole(
    const orr_set *s, uint32_t rank, orr_hole_field field, uint32_t node, int64_t *out)
{
    const orr__rank *r = &s->ranks[rank];
    const uint32_t *slots = s->classes[r->class_index].slot[field];
    if (!slots || slots[node] == 0)
        return false;
    *out = s->values[r->values_at + slots[node] - 1];
    return true;
}

/* A value of a column for this rank. */
static inline int64_t orr__set_value(
    const orr_set *s, uint32_t rank, orr_hole_field field, const int64_t *column, uint32_t node)
{
    int64_t v;
    if (orr__set_hole(s, rank, field, node, &v))
        return v;
    return column ? column[node] : ORR_NO_VALUE;
}

/* Number of ranks of this rank's job. */
static inline uint32_t orr__set_job_ranks(const orr_set *s, uint32_t rank)
{
    const uint32_t job = s->job_count && rank < s->rank_count ? s->job_on[rank] : 0;
    return job ? s->job_first[job] - s->job_first[job - 1] : (uint32_t)s->rank_count;
}

void orr__fill_plan_free(struct orr__fill_plan *p);
/* Appends the rank's bytes (no shift) to out; the class has holes.  Thread-safe. */
bool orr__fill(orr__class *c, const int64_t *values, orr_buf *out);

/* From the uncompressed bytes; classes and ranks exist already.  *bad: the error (then
 * ORR_EINPUT). */
orr_code orr__holes_load(orr_set *s, orr_span bytes, const char **bad, orr_error *err);
orr_code orr__set_read_orr(orr_set *s,
                           orr__file_list *list,
                           const orr_set_options *opt,
                           orr_error *err);

/* set_hash.c: of one rank, or of all with ORR_NO_NODE. */
orr_code orr__set_content_hash(const orr_set *s,
                               uint32_t rank,
                               orr_content_hash *out,
                               orr_error *err);

orr_code orr__groups_save(const orr_set *s, orr_buf *out, orr_error *err);
orr_code orr__groups_load(orr_set *s, orr_span bytes, const char **bad, orr_error *err);

/* If most ranks have separate classes: merges those that differ only in groups, peers and tags. */
orr_code orr__set_join_alike(orr_set *s, orr_error *err);
/* Adds a rank to a class with holes that reproduces these bytes; *is_added: there was one.  The
 * caller keeps the trace. */
orr_code orr__set_add_alike(orr_set *s, const orr_trace *t, bool *is_added, orr_error *err);

#endif
