/* SPDX-License-Identifier: Apache-2.0 */
/* mutate.h - the structures of inputs that mutate.c knows. */
#ifndef ORR_TESTS_FUZZ_MUTATE_H
#define ORR_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef enum fuzz_shape {
    FUZZ_JSON,
    FUZZ_TEXT,    /* lines of words: YAML, TOML, CSV, options */
    FUZZ_GOAL,    /* text, and statements of GOAL */
    FUZZ_RECORDS, /* protobuf records, each behind its length */
    FUZZ_SQLITE,
    FUZZ_BLOCKS /* of FUZZ_BLOCK bytes */
} fuzz_shape;

#ifndef FUZZ_BLOCK
#define FUZZ_BLOCK 8
#endif
/* Bytes before the structure, that say how the rest is used. */
#ifndef FUZZ_HEAD
#define FUZZ_HEAD 0
#endif

/* Changes the bytes in place; the new length, at most max, or 0: nothing was done that can be used (and the bytes may
 * have changed). */
size_t fuzz_mutate(fuzz_shape shape, uint8_t *data, size_t size, size_t max, unsigned seed);

#endif
