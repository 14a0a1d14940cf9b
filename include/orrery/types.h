/* SPDX-License-Identifier: Apache-2.0 */
/* types.h - the basic types used by all other headers. */
#ifndef ORRERY_TYPES_H
#define ORRERY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int64_t orr_ps;     /* time in picoseconds; the range is +-106 days */
typedef uint64_t orr_bytes; /* size */
typedef uint64_t orr_Bps;   /* rate, bytes per second */

/* Text, not NUL-terminated.  Borrowed: it lives as long as the object that returned it. */
typedef struct orr_str {
    const char *ptr;
    size_t len;
} orr_str;

static inline orr_str orr_str_of(const char *s)
{
    orr_str out;
    out.ptr = s;
    out.len = strlen(s);
    return out;
}

/* Bytes, borrowed in the same way. */
typedef struct orr_span {
    const uint8_t *ptr;
    size_t len;
} orr_span;

/* Collectives, by their numbers in traces. */
typedef enum orr_collective {
    ORR_COLL_ALL_REDUCE = 0,
    ORR_COLL_REDUCE,
    ORR_COLL_ALL_GATHER,
    ORR_COLL_GATHER,
    ORR_COLL_SCATTER,
    ORR_COLL_BROADCAST,
    ORR_COLL_ALL_TO_ALL,
    ORR_COLL_REDUCE_SCATTER,
    ORR_COLL_REDUCE_SCATTER_BLOCK,
    ORR_COLL_BARRIER,
    ORR_COLL_COUNT
} orr_collective;

#endif
