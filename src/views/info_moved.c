/* SPDX-License-Identifier: Apache-2.0 */
/* info_moved.c - how many bytes a collective moves, and ranks written as ranges: two small sums of info.
 *
 * comm_size is what one rank puts in (an all-gather's share, an all-to-all's whole), as traces recorded from
 * programs and the simulators that read them have it.  With S that size and n ranks, the bytes sent by all
 * ranks together, with algorithms that send nothing twice (ring, or direct), are
 *
 *     all-reduce           2(n-1) S      a reduce-scatter and an all-gather of S/n
 *     all-gather           n(n-1) S      each share reaches the n-1 others
 *     reduce-scatter       (n-1) S       also reduce-scatter-block
 *     all-to-all           (n-1) S       each rank keeps one n-th
 *     broadcast, reduce    (n-1) S       S into, or out of, all but one
 *     gather               (n-1) S
 *     scatter              (n-1)/n S     the root keeps one n-th
 *     barrier              0
 *
 * and one n-th of that for each rank on average, which is what the functions here give. */
#include "info_impl.h"

#include "base/memory/buffer.h"

typedef struct cost {
    const char *formula;
    uint32_t factor;    /* times (n-1) S */
    uint32_t divisions; /* by n, this often */
} cost;

static const cost costs[ORR_COLL_COUNT] = {
    [ORR_COLL_ALL_REDUCE] = {"2(n-1)/n x size", 2, 1},
    [ORR_COLL_REDUCE] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_ALL_GATHER] = {"(n-1) x size", 1, 0},
    [ORR_COLL_GATHER] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_SCATTER] = {"(n-1)/n^2 x size", 1, 2},
    [ORR_COLL_BROADCAST] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_ALL_TO_ALL] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_REDUCE_SCATTER] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_REDUCE_SCATTER_BLOCK] = {"(n-1)/n x size", 1, 1},
    [ORR_COLL_BARRIER] = {"0", 0, 0},
};

const char *orr__moved_formula(uint32_t kind)
{
    return kind < ORR_COLL_COUNT ? costs[kind].formula : NULL;
}

bool orr__moved_bytes(uint32_t kind, uint64_t size, uint32_t n, uint64_t *out)
{
    *out = 0;
    if (kind >= ORR_COLL_COUNT || n == 0)
        return false;
    /* 64 bits of size, 32 of n and one of the factor: 97 of 128. */
    unsigned __int128 bytes = (unsigned __int128)size * (n - 1) * costs[kind].factor;
    for (uint32_t i = 0; i < costs[kind].divisions; i++)
        bytes /= n;
    *out = bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
    return true;
}

/* How many members from `from` on are equally far apart, and how far. */
static size_t run_length(const uint32_t *members, size_t count, size_t from, uint32_t *step)
{
    size_t n = 1;
    *step = from + 1 < count ? members[from + 1] - members[from] : 1;
    while (from + n < count && members[from + n] - members[from + n - 1] == *step)
        n++;
    return n;
}

const char *orr__rank_ranges(orr_arena *a, const uint32_t *members, size_t count)
{
    orr_buf b = {0};
    for (size_t i = 0; i < count;) {
        uint32_t step;
        size_t n = run_length(members, count, i, &step);
        if (n < 3 && step != 1)
            n = 1; /* two far apart are no row */
        orr_buf_print(&b, "%s%u", i ? "," : "", members[i]);
        if (n > 1)
            orr_buf_print(&b, "-%u", members[i + n - 1]);
        if (n > 1 && step != 1)
            orr_buf_print(&b, "/%u", step);
        i += n;
    }
    char *text = b.failed ? NULL : orr_arena_text(a, (orr_str){(const char *)b.ptr, b.len});
    orr_buf_fini(&b);
    return text;
}
