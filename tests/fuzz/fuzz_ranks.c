/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ranks.c - any bytes as the file of ranks that differ.  What it says of links is done to a
 * small network. */
#include "run/config/config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 8 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void change_links(const cfg_ranks *c)
{
    static const char net[] =
        "generate: {type: leaf-spine, ranks: 8, ranks_per_leaf: 4, spines: 2, "
        "bandwidth: 1GB/s}";
    orr__topology *t;
    orr_error err;
    require(orr__topology_parse((orr_span){(const uint8_t *)net, sizeof net - 1}, "net.yml", 1000,
                                &t, &err) == ORR_OK);
    if (orr__topology_change(t, c->changes, c->change_count, &err))
        require(err.message[0]);
    orr__topology_destroy(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfg_ranks c;
    orr_error err;
    orr_arena *a = orr_arena_create();
    require(a);
    if (cfg_parse_ranks((orr_span){data, size}, "ranks.yml", RANKS, a, &c, &err)) {
        require(err.message[0] && err.where.path[0]);
    } else {
        for (uint32_t r = 0; r < RANKS; r++)
            require(c.speeds[r].compute > 0 && c.speeds[r].memory > 0 && c.speeds[r].host > 0);
        change_links(&c);
    }
    orr_arena_destroy(a);
    return 0;
}
