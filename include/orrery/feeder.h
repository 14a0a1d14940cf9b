/* SPDX-License-Identifier: Apache-2.0 */
/* feeder.h - hands out the nodes of a trace as their dependencies finish.  For simulators.
 *
 *     orr_feeder *f;
 *     orr_node node;
 *     if (orr_feeder_open("rank0.et", NULL, &f, &err)) return report(&err);
 *     while (orr_feeder_left(f)) {
 *         if (orr_feeder_next(f, &node, &err) == ORR_OK)    // ORR_END: nothing is ready just now
 *             start(&node);
 *         else
 *             orr_feeder_finish(f, id_of_what_finished(), &err);
 *     }
 *     orr_feeder_close(f);
 *
 * Ready nodes come smallest id first, so the order depends only on the trace and on the order in
 * which nodes finish.  Cycles, missing parents and duplicate ids are errors, never a silent stall.
 * A feeder belongs to one thread. */
#ifndef ORRERY_FEEDER_H
#define ORRERY_FEEDER_H

#include <orrery/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_feeder orr_feeder;

/* Which dependencies block a node. */
typedef enum orr_feed_deps { ORR_FEED_ALL = 0, ORR_FEED_DATA, ORR_FEED_CTRL } orr_feed_deps;

typedef enum orr_feed_order {
    ORR_FEED_BY_ID = 0,
    /* As the C++ feeder V2 does: data dependencies only; a parent listed twice or missing, or a
     * cycle, blocks its children forever instead of being an error; the last node of an id replaces
     * the earlier ones. */
    ORR_FEED_AS_V2
} orr_feed_order;

typedef struct orr_feeder_options {
    size_t size; /* sizeof(orr_feeder_options) */
    orr_feed_deps deps;
    orr_feed_order order;
    uint32_t window; /* most unfinished nodes in memory, for traces larger than memory; 0: all */
    const orr_read_options *read; /* NULL: all defaults */
} orr_feeder_options;

/* Feed a file.  With a window the file is read on demand (current schema only).  opt may be
 * NULL. */
ORR_API orr_code orr_feeder_open(const char *path,
                                 const orr_feeder_options *opt,
                                 orr_feeder **out,
                                 orr_error *err) ORR_MUST_CHECK;
/* Feed a sealed trace, which must outlive the feeder.  No window. */
ORR_API orr_code orr_feeder_create(const orr_trace *t,
                                   const orr_feeder_options *opt,
                                   orr_feeder **out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_feeder_close(orr_feeder *f); /* NULL is fine */

/* The next ready node, now *taken*.  ORR_END: none is ready (some may be in flight, or all are
 * done). */
ORR_API orr_code orr_feeder_next(orr_feeder *f, orr_node *out, orr_error *err) ORR_MUST_CHECK;
/* A taken node is done: its children may become ready, and its record may be freed. */
ORR_API orr_code orr_feeder_finish(orr_feeder *f, uint64_t id, orr_error *err) ORR_MUST_CHECK;
/* A taken node could not be started: it is ready again. */
ORR_API orr_code orr_feeder_put_back(orr_feeder *f, uint64_t id, orr_error *err) ORR_MUST_CHECK;
/* An unfinished node (with a window: one that has been read). */
ORR_API bool orr_feeder_find(const orr_feeder *f, uint64_t id, orr_node *out);

ORR_API bool orr_feeder_has_ready(const orr_feeder *f);
ORR_API uint64_t orr_feeder_in_flight(const orr_feeder *f);
/* Unfinished nodes; with a window those read so far, and at least 1 until the end of the file. */
ORR_API uint64_t orr_feeder_left(const orr_feeder *f);

/* The same by index, for programs that work on the columns; not with a window. */
ORR_API const orr_trace *orr_feeder_trace(const orr_feeder *f); /* NULL with a window */
ORR_API uint32_t orr_feeder_take(orr_feeder *f);                /* ORR_NO_NODE: none is ready */
ORR_API void orr_feeder_done(orr_feeder *f, uint32_t index);    /* index: a taken node */
/* The nodes that wait for node `index`. */
ORR_API const uint32_t *orr_feeder_children(const orr_feeder *f, uint32_t index, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
