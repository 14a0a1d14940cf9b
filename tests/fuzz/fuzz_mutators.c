/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mutators.c - holds mutate.c to its word: no change leaves its room, the same seed makes the same
 * change, records stay records and lists of blocks keep their length.  The first byte picks the shape, the next two are the seed. */
#include "mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 3, MOST = 4096, SHAPES = FUZZ_BLOCKS + 1 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Whether the bytes are records from the first to the last. */
static bool are_records(const uint8_t *s, size_t len)
{
    size_t at = 0;
    while (at < len) {
        uint64_t v = 0;
        unsigned shift = 0;
        do {
            if (at == len || shift > 63)
                return false;
            v |= (uint64_t)(s[at] & 127) << shift;
            shift += 7;
        } while (s[at++] > 127);
        if (v > len - at)
            return false;
        at += (size_t)v;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD || size - HEAD > MOST)
        return 0;
    const fuzz_shape shape = (fuzz_shape)(data[0] % SHAPES);
    const unsigned seed = data[1] | (unsigned)data[2] << 8;
    const size_t len = size - HEAD, max = len + seed % 200;
    /* Exactly as large as it may get, so that a sanitizer sees a byte too many. */
    uint8_t *one = malloc(max ? max : 1), *two = malloc(max ? max : 1);
    require(one && two);
    memcpy(one, data + HEAD, len);
    memcpy(two, data + HEAD, len);
    const size_t got = fuzz_mutate(shape, one, len, max, seed);
    require(got <= max && fuzz_mutate(shape, two, len, max, seed) == got);
    require(memcmp(one, two, got) == 0);
    if (shape == FUZZ_RECORDS && are_records(data + HEAD, len))
        require(are_records(one, got));
    if (shape == FUZZ_BLOCKS && got)
        require(got % FUZZ_BLOCK == len % FUZZ_BLOCK);
    free(one);
    free(two);
    return 0;
}
