/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - a parallel loop over items; below, a crew of threads for many short runs.
 *
 *     orr_code read_one(void *context, size_t i, orr_error *err);
 *     code = orr_pool_for(0, files, read_one, &job, &err);
 *
 * Items are handed out in order.  After a failure no more are handed out, and the failure with the
 * smallest index is the one reported: the same one on every run and with any number of threads. */
#ifndef ORR_BASE_POOL_H
#define ORR_BASE_POOL_H

#include "base/memory/memory.h"

typedef orr_code (*orr_pool_work)(void *context, size_t item, orr_error *err);

orr_code orr_pool_for(unsigned threads,
                      size_t items,
                      orr_pool_work work,
                      void *context,
                      orr_error *err) ORR_MUST_CHECK;
unsigned orr_pool_threads(unsigned wanted); /* wanted, or one per core when 0 */

/* ---- crew ----
 *
 * Threads that do a short piece of work together, again and again.
 *
 *     orr_crew *c = orr_crew_create(4, work, &job);
 *     while (...) { prepare(&job); orr_crew_run(c); collect(&job); }
 *     orr_crew_destroy(c);
 *
 * orr_crew_run calls work(context, who, members) once for each member, `who` from 0 on, and returns
 * when all have returned; the caller is member 0.  What was written before a run is seen by all in
 * it, and what they write is seen after it.  A thread that cannot be had is a member less, so work
 * must not rest on a number of members. */

typedef struct orr_crew orr_crew;
typedef void (*orr_crew_work)(void *context, unsigned who, unsigned members);

orr_crew *orr_crew_create(unsigned members,
                          orr_crew_work work,
                          void *context); /* NULL: out of memory */
void orr_crew_run(orr_crew *c);
void orr_crew_destroy(orr_crew *c); /* NULL is fine */

#endif
