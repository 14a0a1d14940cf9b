/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - a cluster in one struct: the chip, the node, the network that ties nodes together.
 *
 *     orr_machine m;
 *     orr_net_config dims;
 *     if (orr_machine_find("dgx-h100:128", &m, &err)) return report(&err);     // 128 nodes
 *     printf("%u devices of %s\n", orr_machine_devices(&m), m.chip);
 *     if (orr_machine_dims(&m, &dims, &err)) return report(&err);
 *
 * Built-in machines are files of the same kind that a user writes (docs/format/machine.md), each
 * figure with its source beside it: orr_machine_source has the text.  Rates are 10^9 bytes a
 * second, per direction.  Latencies are those of wires, switches and adapters; what software adds
 * belongs to the model of the collectives. */
#ifndef ORRERY_LAB_MACHINE_H
#define ORRERY_LAB_MACHINE_H

#include <orrery/error.h>
#include <orrery/network.h>
#include <orrery/run.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What connects the devices of a node. */
typedef enum orr_machine_up {
    ORR_MACHINE_UP_NONE,   /* nothing: all traffic takes the NICs */
    ORR_MACHINE_UP_SWITCH, /* any device to any other at its full rate: NVSwitch */
    ORR_MACHINE_UP_MESH,   /* a link between any two, each with an equal share of the rate: xGMI */
    ORR_MACHINE_UP_RING,   /* two neighbours */
    ORR_MACHINE_UP_TORUS   /* two neighbours in each dimension: ICI, NeuronLink */
} orr_machine_up;

/* What connects nodes. */
typedef enum orr_machine_fabric {
    ORR_MACHINE_FABRIC_NONE,       /* nothing: one node only */
    ORR_MACHINE_FABRIC_SWITCH,     /* one switch, or a tree without contention */
    ORR_MACHINE_FABRIC_RAILS,      /* NIC i of each node of a leaf group on the same leaf */
    ORR_MACHINE_FABRIC_LEAF_SPINE, /* all NICs of a node on one leaf; two tiers */
    ORR_MACHINE_FABRIC_FAT_TREE,   /* three tiers */
    ORR_MACHINE_FABRIC_TORUS,      /* the scale-up links go on from node to node; no NICs needed */
    ORR_MACHINE_FABRIC_DRAGONFLY   /* groups of leaves, all groups connected to each other */
} orr_machine_fabric;

enum {
    ORR_MACHINE_NAME = 48,
    ORR_MACHINE_NOTE = 120,
    ORR_MACHINE_PATH = 200,
    ORR_MACHINE_TORUS_DIMS = 4
};

/* Plain values: copy it, change what differs. */
typedef struct orr_machine {
    size_t size; /* sizeof(orr_machine) */
    char name[ORR_MACHINE_NAME];
    char note[ORR_MACHINE_NOTE];         /* one line about it */
    char chip[ORR_MACHINE_NAME];         /* what --hardware takes */
    char architecture[ORR_MACHINE_NAME]; /* "hopper", "cdna3", ...: for the choice of algorithms */
    uint32_t nodes;
    uint32_t devices;     /* per node: those of one scale-up domain */
    orr_bytes memory;     /* per device, as software can use it */
    double memory_GBps;   /* of the device memory; 0: that of the chip */
    double peak_tflops;   /* dense, 16 bit, as the maker publishes it; 0: that of the chip */
    double host_GBps;     /* device to its host's memory, per direction; 0: not known */
    orr_machine_up up;    /* ---- the scale-up network ---- */
    double up_GBps;       /* per device and direction, over all its links */
    double up_latency_ns; /* device to device, one way; torus and ring: of one link */
    bool up_reduces;      /* switches reduce and multicast: NVLS */
    uint32_t up_dims;     /* torus: sizes of the node; 0: as cubic as possible */
    uint32_t up_size[ORR_MACHINE_TORUS_DIMS];
    uint32_t nics; /* ---- the scale-out network ---- per node */
    double nic_GBps;
    double nic_latency_ns; /* out of one node and into another, without the switches between */
    orr_machine_fabric fabric;
    uint32_t nodes_per_leaf;            /* on one leaf (rails: on one set of leaves); 0: all */
    uint32_t leaves_per_group;          /* dragonfly; 0: 1 */
    double oversubscription;            /* of a leaf, downlinks over uplinks; 1: none */
    double hop_latency_ns;              /* of a switch and the cable behind it */
    bool fabric_reduces;                /* switches reduce: SHARP */
    char collectives[ORR_MACHINE_PATH]; /* "nccl", "rccl", "none", or the path of a table */
    double overlap_cost; /* share of compute speed lost beside a collective; 0: none */
    double overlap_cost_least, overlap_cost_most; /* where it is an estimate; 0: it has a source */
    /* Share lost beside a message, sent or received: an estimate; 0: none. */
    double message_overlap_cost;
    char software[ORR_MACHINE_NAME]; /* preset of the training software; "": the default */
    double usd_per_hour;             /* per device; 0: not known */
    double watts;                    /* per node; 0: not known */
} orr_machine;

/* Names of the machines that are built in, in the order in which they are best read; NULL past the
 * last. */
ORR_API const char *orr_machine_at(size_t index);
/* The file of a machine that is built in, with its remarks; NULL: there is none of that name. */
ORR_API const char *orr_machine_source(const char *name);

/* "dgx-h100", "dgx-h100:128" or, for a file, "mine.yml" and "mine.yml:16": N nodes.  Changes
 * follow: "dgx-h100:16,scale_up.bandwidth=900GB/s,usd_per_hour=2.5".  A name that is not built
 * in and no file is ORR_EUSAGE, with the nearest name. */
ORR_API orr_code orr_machine_find(const char *text,
                                  orr_machine *out,
                                  orr_error *err) ORR_MUST_CHECK;
/* From a file (YAML or JSON; "-": standard input), or from memory; label stands in messages. */
ORR_API orr_code orr_machine_read(const char *path,
                                  orr_machine *out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_machine_parse(orr_span bytes,
                                   const char *label,
                                   orr_machine *out,
                                   orr_error *err) ORR_MUST_CHECK;
/* The file that says the same; its length, as snprintf counts.  3,000 bytes are enough. */
ORR_API size_t orr_machine_text(const orr_machine *m, char *out, size_t size);

/* Nodes times devices. */
ORR_API uint32_t orr_machine_devices(const orr_machine *m);
/* Rate at which one device leaves its node when all devices of the node do: its share of the NICs.
 * 0: there are no NICs. */
ORR_API double orr_machine_out_GBps(const orr_machine *m);
/* One way, device to device in the two nodes that are furthest apart, without software. */
ORR_API double orr_machine_out_latency_ns(const orr_machine *m);

/* The dimensions that the machine has for models of dimensions: the node, then the fabric; rings
 * for a torus.  Latencies are per link, such that a message between two devices has that of the
 * machine.  A machine of one device has one dimension of 1. */
ORR_API orr_code orr_machine_dims(const orr_machine *m,
                                  orr_net_config *out,
                                  orr_error *err) ORR_MUST_CHECK;

/* The part of the machine that a job of so many ranks uses, one rank per device: whole nodes, or
 * some devices of one.  ORR_EUSAGE: there are not as many, or nodes would be filled unevenly. */
ORR_API orr_code orr_machine_fit(const orr_machine *m,
                                 uint32_t ranks,
                                 orr_machine *out,
                                 orr_error *err) ORR_MUST_CHECK;

/* orr_machine_find and orr_machine_fit; without ":N" a machine of one node has as many nodes as the
 * ranks need. */
ORR_API orr_code orr_machine_for(const char *text, uint32_t ranks, orr_machine *out, orr_error *err)
    ORR_MUST_CHECK;

/* Its compute and its collectives as a system: roofline by peak and memory of the chip, plain
 * collectives, or rings where the machine has no NCCL.  ORR_EINPUT: nothing is known of the
 * chip. */
ORR_API orr_code orr_machine_system(const orr_machine *m,
                                    orr_system *out,
                                    orr_error *err) ORR_MUST_CHECK;
/* Writes the files of ASTRA-sim that stand for it into a folder: system.json, network.yml,
 * memory.json; and machine.yml and, where a shape of topologies has its links, links.yml. */
ORR_API orr_code orr_machine_export(const orr_machine *m,
                                    const char *folder,
                                    orr_error *err) ORR_MUST_CHECK;

/* Words of the file for a kind: "switch", "leaf-spine". */
ORR_API const char *orr_machine_up_name(orr_machine_up kind);
ORR_API const char *orr_machine_fabric_name(orr_machine_fabric kind);

#ifdef __cplusplus
}
#endif
#endif
