/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_machine.c - any bytes as a machine: NCCL's XML, nvidia-smi's matrix, InfraGraph.  What is
 * accepted has ranks, and links between devices that are there. */
#include "models/network/topology/topology_kinds.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_LINKS = 100000 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr__topology *t;
    orr_error err;
    if (orr__topology_parse_any((orr_span){data, size}, "machine", MOST_LINKS, &t, &err)) {
        require(err.message[0]);
        return 0;
    }
    if (!t)
        return 0; /* ASTRA-sim's */
    require(t->ranks >= 2);
    for (size_t i = 0; i < t->link_count; i++)
        require(t->links[i].from < orr__topology_devices(t) &&
                t->links[i].to < orr__topology_devices(t) && t->links[i].speed > 0 &&
                t->links[i].latency >= 0);
    orr__topology_destroy(t);
    return 0;
}
