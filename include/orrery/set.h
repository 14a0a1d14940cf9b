/* SPDX-License-Identifier: Apache-2.0 */
/* set.h - the traces of all ranks of a job, equal ones stored once.
 *
 *     orr_set *s;
 *     if (orr_set_open("traces/", NULL, &s, &err)) return report(&err);   // or a prefix, a file, a .orr
 *     for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
 *         const orr_trace *t = orr_set_trace(s, orr_set_class_of(s, r));
 *         uint64_t shift = orr_set_id_shift(s, r);        // add to every id of t to get the rank's own ids
 *     }
 *     orr_set_close(s);
 *
 * A *class* is a body that one or more ranks share: their traces are equal up to a constant added
 * to all ids (some generators number nodes consecutively across ranks) and up to the body's
 * *holes*: groups, peers and tags that differ per rank.  Reading and writing files gives back the
 * same bytes for every rank. */
#ifndef ORRERY_SET_H
#define ORRERY_SET_H

#include <orrery/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_set orr_set;

typedef struct orr_set_options {
    size_t size;                  /* sizeof(orr_set_options) */
    const orr_read_options *read; /* NULL: all defaults */
    unsigned threads;             /* 0: one per core */
    /* A rank that cannot be read stores its error (orr_set_error) instead of failing open. */
    bool keep_going;
    bool ignores_groups; /* P.json beside P.0.et, P.1.et, ... is ignored */
    /* Merge ranks that differ only in groups, peers and tags into one class with holes. */
    bool joins_alike;
} orr_set_options;

/* path: a trace file; a prefix P with files P.0.et, P.1.et, ...; a directory that holds one such
 * prefix (or any trace files, taken in name order); or a .orr file.  Groups come from the .orr
 * file, or from P.json if that is a group file (orr_set_write_groups).  opt may be NULL. */
ORR_API orr_code orr_set_open(const char *path,
                              const orr_set_options *opt,
                              orr_set **out,
                              orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_set_close(orr_set *s); /* NULL is fine */

ORR_API uint32_t orr_set_rank_count(const orr_set *s);
ORR_API uint32_t orr_set_class_count(const orr_set *s);
ORR_API uint32_t orr_set_class_of(const orr_set *s,
                                  uint32_t rank); /* ORR_NO_NODE: could not be read */
ORR_API const orr_trace *orr_set_trace(const orr_set *s, uint32_t class_index);
ORR_API uint64_t orr_set_id_shift(const orr_set *s, uint32_t rank);
ORR_API const char *orr_set_rank_path(const orr_set *s, uint32_t rank); /* for messages */
ORR_API uint32_t orr_set_class_ranks(const orr_set *s,
                                     uint32_t class_index); /* how many ranks share it */
ORR_API uint32_t orr_set_class_first(const orr_set *s,
                                     uint32_t class_index); /* the first of them */
/* With keep_going: why this rank could not be read; NULL: it could. */
ORR_API const orr_error *orr_set_error(const orr_set *s, uint32_t rank);

/* Building: ranks are added in order, from 0. */
ORR_API orr_code orr_set_create(orr_set **out, orr_error *err) ORR_MUST_CHECK;
/* Takes ownership of the sealed trace, also on failure.  An equal existing class is reused. */
ORR_API orr_code orr_set_add(orr_set *s, orr_trace *t, orr_error *err) ORR_MUST_CHECK;
/* One more rank of an existing class; costs a table entry. */
ORR_API orr_code orr_set_add_rank(orr_set *s,
                                  uint32_t class_index,
                                  uint64_t id_shift,
                                  orr_error *err) ORR_MUST_CHECK;

/* ---- holes: where the ranks of a class differ ----
 *
 * All ranks of a pipeline stage do the same work in different groups and with different neighbours.
 * The body then marks such places, and a rank has one number per *slot*: one for "my group along
 * this axis", one for "my successor", however many nodes use it.
 *
 *     const orr_hole holes[] = {{7, ORR_HOLE_PG_NAME, 0}, {9, ORR_HOLE_COMM_DST, 1}};
 *     orr_set_add_class(s, body, holes, 2, 2, &k, &err);
 *     for (int64_t r = 0; r < ranks; r++)
 *         orr_set_add_rank_values(s, k, 0, (int64_t[]){1 + r / 8, r + 1}, &err);
 */
typedef enum orr_hole_field {
    ORR_HOLE_PG_NAME, /* the value in decimal */
    ORR_HOLE_COMM_SRC,
    ORR_HOLE_COMM_DST,
    ORR_HOLE_COMM_TAG,
    ORR_HOLE_FIELDS
} orr_hole_field;

typedef struct orr_hole {
    uint32_t node; /* index; the node has the attribute, with any value */
    orr_hole_field field;
    uint32_t slot;
} orr_hole;

/* A body without ranks so far.  Takes ownership of the sealed trace, also on failure; copies the
 * holes. */
ORR_API orr_code orr_set_add_class(orr_set *s,
                                   orr_trace *t,
                                   const orr_hole *holes,
                                   size_t hole_count,
                                   uint32_t slot_count,
                                   uint32_t *class_index,
                                   orr_error *err) ORR_MUST_CHECK;
/* One more rank, with a value for each slot of its class. */
ORR_API orr_code orr_set_add_rank_values(orr_set *s,
                                         uint32_t class_index,
                                         uint64_t id_shift,
                                         const int64_t *values,
                                         orr_error *err) ORR_MUST_CHECK;

ORR_API uint32_t orr_set_slot_count(const orr_set *s, uint32_t class_index);
/* Does this rank have its own value there?  If not, the body's value applies. */
ORR_API bool orr_set_hole(
    const orr_set *s, uint32_t rank, orr_hole_field field, uint32_t node, int64_t *out);
/* The trace of one rank (without its shift), holes filled.  Without holes this is the body; with
 * them it is made for the caller, who destroys *owned when done (NULL: nothing to destroy). */
ORR_API orr_code orr_set_rank_trace(const orr_set *s,
                                    uint32_t rank,
                                    const orr_trace **out,
                                    orr_trace **owned,
                                    orr_error *err) ORR_MUST_CHECK;

/* ---- groups: the ranks behind a trace's pg_name ----
 *
 * In ascending order of number; a trace names a group by its number in decimal. */
typedef struct orr_group {
    uint64_t id;
    const uint32_t *ranks; /* in the order in which they form a ring */
    uint32_t count;
} orr_group;

ORR_API orr_code orr_set_add_group(
    orr_set *s, uint64_t id, const uint32_t *ranks, uint32_t count, orr_error *err) ORR_MUST_CHECK;
ORR_API uint32_t orr_set_group_count(const orr_set *s);
ORR_API orr_group orr_set_group(const orr_set *s, uint32_t index);
/* The file that accompanies .et files: a JSON object, number -> array of ranks. */
ORR_API orr_code orr_set_write_groups(const orr_set *s,
                                      const char *path,
                                      orr_error *err) ORR_MUST_CHECK;

/* Keep `count` ranks from `first` on and renumber them from 0; other ranks and all groups are
 * removed. */
ORR_API orr_code orr_set_keep(orr_set *s, uint32_t first, uint32_t count, orr_error *err)
    ORR_MUST_CHECK;

/* One file, docs/format/orr.md; classes optionally compressed with zstd. */
typedef struct orr_set_save_options {
    size_t size; /* sizeof(orr_set_save_options) */
    bool compress;
} orr_set_save_options;
ORR_API orr_code orr_set_save(const orr_set *s,
                              const char *path,
                              const orr_set_save_options *opt,
                              orr_error *err) ORR_MUST_CHECK;
/* One file per rank: PREFIX.<rank>.et; opt as in orr_trace_write (its id_shift is added to each
 * rank's own). */
ORR_API orr_code orr_set_write_files(const orr_set *s,
                                     const char *prefix,
                                     const orr_write_options *opt,
                                     unsigned threads,
                                     orr_error *err) ORR_MUST_CHECK;

/* One rank of a .orr file, without reading the others. */
ORR_API orr_code orr_set_read_rank(const char *path,
                                   uint32_t rank,
                                   const orr_read_options *opt,
                                   orr_trace **out,
                                   uint64_t *id_shift,
                                   orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
