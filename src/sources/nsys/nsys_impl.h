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

/* Layout of payloads by schema, as declared in the file. */
typedef struct orr__payloads orr__payloads;

/* Decodes an NCCL range and its payload (either form) into a row: a CALL, a COMM, a group's start
 * or end.  `thread` made the call.  False: not NCCL's.  The hash is stored in `room`. */
enum { ORR__HASH_ROOM = 24 };

#endif
