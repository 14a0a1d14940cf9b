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

/* A call of NCCL's, by the name of its range and one of the two forms of its payload, into a row: a
 * CALL, a COMM, a group's start or end.  `thread` says whose it is.  False: nothing of
 * NCCL's.  hash is kept in `room`. */
enum { ORR__HASH_ROOM = 24 };

#endif
