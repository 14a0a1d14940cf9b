/* SPDX-License-Identifier: Apache-2.0 */
/* make_torch_trace.c - writes synthetic PyTorch traces: PREFIX.<rank>.host.json and
 * PREFIX.<rank>.device.json, and prints the totals of one rank as one line of JSON.
 *
 *     make_torch_trace PREFIX RANKS STEPS LAYERS [SEED] */
#include "torch_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: make_torch_trace PREFIX RANKS STEPS LAYERS [SEED]\n");
        return 2;
    }
    const torch_job job = {.prefix = argv[1],
                           .ranks = (uint32_t)strtoul(argv[2], NULL, 10),
                           .steps = (uint32_t)strtoul(argv[3], NULL, 10),
                           .layers = (uint32_t)strtoul(argv[4], NULL, 10),
                           .seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 1};
    const torch_totals t = torch_make(&job);
    printf("{\"host_nodes\": %" PRIu64 ", \"device_events\": %" PRIu64 ", \"kernels\": %" PRIu64
           ", \"copies\": %" PRIu64 ", \"fills\": %" PRIu64 ", \"collectives\": %" PRIu64
           ", \"messages\": %" PRIu64 ", \"busy_ns\": %" PRId64 "}\n",
           t.host_nodes, t.device_events, t.kernels, t.copies, t.fills, t.collectives, t.messages,
           t.busy_ns);
    return 0;
}
