/* SPDX-License-Identifier: Apache-2.0 */
/* topology.h - a network as devices and links: made from a few numbers, read from and written to
 * files of several kinds.
 *
 *     static const char text[] = "generate: {type: fat-tree, k: 8, bandwidth: 400Gb/s, latency: 500ns}";
 *     orr_topology *t;
 *     if (orr_topology_parse((orr_span){(const uint8_t *)text, strlen(text)}, "tree", &t, &err) ||
 *         orr_topology_write(t, ORR_TOPOLOGY_NS3, NULL, "topology.txt", &err)) ...
 *     orr_topology_destroy(t);
 *
 * The kind of a file is recognised by its content: ours in YAML (docs/format/topology.md), those of
 * ASTRA-sim's ns-3 back end and of SimAI (docs/format/packet.md), htsim's .topo
 * (docs/format/htsim.md).  Any of them is accepted wherever a network file is. */
#ifndef ORRERY_LAB_TOPOLOGY_H
#define ORRERY_LAB_TOPOLOGY_H

#include <orrery/error.h>
#include <orrery/network.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr__topology orr_topology;

/* On failure *out is NULL. */
ORR_API orr_code orr_topology_open(const char *path,
                                   orr_topology **out,
                                   orr_error *err) ORR_MUST_CHECK;
/* The text of such a file; `name` is used in messages. */
ORR_API orr_code orr_topology_parse(orr_span text,
                                    const char *name,
                                    orr_topology **out,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_topology_destroy(orr_topology *t); /* NULL is fine */

/* A file with links, or ASTRA-sim's with dimensions; not the ns-3 back end's config.txt, nor a
 * missing file. */
ORR_API bool orr_topology_recognise(const char *path);

/* The dimensions of a network file of ASTRA-sim: YAML, or the JSON of version 1.0. */
ORR_API orr_code orr_network_dims(const char *path,
                                  orr_net_config *out,
                                  orr_error *err) ORR_MUST_CHECK;

typedef struct orr_topology_figures {
    uint64_t ranks, switches, nvswitches;
    uint64_t links;         /* a cable is two */
    uint64_t most_ports;    /* of a switch */
    uint64_t reached;       /* ranks that rank 0 can send to */
    uint64_t most_hops;     /* links on the longest of its shortest routes */
    uint64_t hops;          /* links on the routes to all of them, summed */
    double most_latency_ns; /* of such a route */
    bool ranks_forward;     /* some routes lead, or may lead, through ranks */
    bool has_costs;         /* some links cost more than others */
} orr_topology_figures;
ORR_API orr_code orr_topology_measure(const orr_topology *t,
                                      orr_topology_figures *out,
                                      orr_error *err) ORR_MUST_CHECK;

typedef enum orr_topology_format {
    ORR_TOPOLOGY_NS3,   /* nodes, switches, links; no costs */
    ORR_TOPOLOGY_SIMAI, /* the same, and NVSwitches, whose routes are preferred */
    ORR_TOPOLOGY_YAML,  /* everything */
    ORR_TOPOLOGY_HTSIM  /* fat trees of two and three tiers only: ORR_EUSAGE for others */
} orr_topology_format;

/* gpu: the GPU type in SimAI's header; NULL: H100. */
ORR_API orr_code orr_topology_write(const orr_topology *t,
                                    orr_topology_format format,
                                    const char *gpu,
                                    const char *path,
                                    orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
