/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h - threads that do a short piece of work together, again and again.
 *
 *     orr_crew *c = orr_crew_create(4, work, &job);
 *     while (...) { prepare(&job); orr_crew_run(c); collect(&job); }
 *     orr_crew_destroy(c);
 *
 * orr_crew_run calls work(context, who, members) once for each member, `who` from 0 on, and returns
 * when all have returned; the caller is member 0.  What was written before a run is seen by all in
 * it, and what they write is seen after it.  A thread that cannot be had is a member less, so work
 * must not rest on a number of members. */
#ifndef ORR_BASE_CREW_H
#define ORR_BASE_CREW_H

#include "base/memory/memory.h"

typedef struct orr_crew orr_crew;
typedef void (*orr_crew_work)(void *context, unsigned who, unsigned members);

orr_crew *orr_crew_create(unsigned members,
                          orr_crew_work work,
                          void *context); /* NULL: no memory */
void orr_crew_run(orr_crew *c);
void orr_crew_destroy(orr_crew *c); /* NULL is fine */

#endif
