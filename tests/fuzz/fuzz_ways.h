/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ways.h - the same bytes can be used in several ways.  Replayed as a test, an input is tried in all of them; under
 * libFuzzer, where speed finds more than thoroughness, in the one that its bytes pick.
 *
 *     FUZZ_WAYS(way, 3, data, size)
 *         try(data, size, way);
 */
#ifndef ORR_TESTS_FUZZ_WAYS_H
#define ORR_TESTS_FUZZ_WAYS_H

#include <stddef.h>
#include <stdint.h>

/* Length and last bytes change often enough, and cost nothing. */
static inline unsigned fuzz_pick(const uint8_t *data, size_t size, unsigned ways)
{
    uint32_t h = 2166136261u ^ (uint32_t)size;
    for (size_t i = size > 32 ? size - 32 : 0; i < size; i++)
        h = (h ^ data[i]) * 16777619u;
    return (h ^ h >> 15) % ways;
}

#ifdef FUZZ_ONE_WAY
#define FUZZ_WAYS(way, ways, data, size)                                              \
    for (unsigned way = fuzz_pick(data, size, (unsigned)(ways)), way##_end = way + 1; \
         way < way##_end; way++)
#else
#define FUZZ_WAYS(way, ways, data, size) \
    for (unsigned way = ((void)(data), (void)(size), 0); way < (unsigned)(ways); way++)
#endif

#endif
