/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_impl.h - shared by the files of nsys/: NCCL's own payloads. */
#ifndef ORR_SOURCES_NSYS_IMPL_H
#define ORR_SOURCES_NSYS_IMPL_H

#include <orrery/lab/nsys.h>

#include "base/formats/sqlite_file.h"

/* The process of a globalTid or globalPid. */
static inline uint64_t orr__nsys_pid(int64_t global)
{
    return (uint64_t)global >> 24 & 0xffffff;
}

/* How payloads of each schema are laid out, as the file says. */
typedef struct orr__payloads orr__payloads;

orr_code orr__payloads_read(orr_sqlite *db, orr__payloads **out, orr_error *err) ORR_MUST_CHECK;
void orr__payloads_free(orr__payloads *p); /* NULL is fine */

/* A call of NCCL's, by the name of its range and one of the two forms of its payload, into a row: a
 * CALL, a COMM, a group's start or end.  `thread` says whose it is.  False: nothing of
 * NCCL's.  hash is kept in `room`. */
enum { ORR__HASH_ROOM = 24 };
bool orr__payload_row(const orr__payloads *p,
                      orr_str name,
                      orr_str json,
                      orr_span bytes,
                      orr_nsys_row *row,
                      char room[ORR__HASH_ROOM]);

#endif
