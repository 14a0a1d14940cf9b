/* SPDX-License-Identifier: Apache-2.0 */
/* content_hash.h - 128 bits that stand for the content of a file: for provenance and classes of
 * equal files.
 *
 * MurmurHash3, 128-bit form for 64-bit machines (Appleby 2011): the same on every machine, and the
 * value other tools of that name print.  Two different files agree by accident about once in 2^128,
 * but someone can make them agree on purpose: where that matters, compare the bytes. */
#ifndef ORR_BASE_CONTENT_HASH_H
#define ORR_BASE_CONTENT_HASH_H

#include <orrery/types.h>

typedef struct orr_content_hash {
    uint64_t high, low;
} orr_content_hash;

orr_content_hash orr_content_hash_of(orr_span bytes);

enum { ORR_CONTENT_HASH_ROOM = 33 };
char *orr_content_hash_text(orr_content_hash h,
                            char out[ORR_CONTENT_HASH_ROOM]); /* 32 hex digits */

#endif
