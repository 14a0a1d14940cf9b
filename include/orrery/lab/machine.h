/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - a cluster in one struct: the chip, the node, the network between nodes.
 *
 *     orr_machine m;
 *     orr_net_config dims;
 *     if (orr_machine_find("dgx-h100:128", &m, &err)) return report(&err);     // 128 nodes
 *     printf("%u devices of %s\n", orr_machine_devices(&m), m.chip);
 *     if (orr_machine_dims(&m, &dims, &err)) return report(&err);
 *
 * Built-in machines are files of the same format a user writes (docs/format/machine.md), each
 * figure with its source: orr_machine_source returns the text.  Rates are 10^9 bytes per second per
 * direction.  Latencies are those of wires, switches and adapters; what software adds belongs to
 * the model of the collectives. */
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
    /* a link between any two, each with an equal share of the bandwidth: xGMI */
    ORR_MACHINE_UP_MESH,
    ORR_MACHINE_UP_RING, /* two neighbours */
    ORR_MACHINE_UP_TORUS /* two neighbours in each dimension: ICI, NeuronLink */
} orr_machine_up;

/* What connects nodes. */
typedef enum orr_machine_fabric {
    ORR_MACHINE_FABRIC_NONE,       /* nothing: one node only */
    ORR_MACHINE_FABRIC_SWITCH,     /* one switch, or a tree without contention */
    ORR_MACHINE_FABRIC_RAILS,      /* NIC i of each node of a leaf group on the same leaf */
    ORR_MACHINE_FABRIC_LEAF_SPINE, /* all NICs of a node on one leaf; two tiers */
    ORR_MACHINE_FABRIC_FAT_TREE,   /* three tiers */
    /* the scale-up links continue from node to node; no NICs needed */
    ORR_MACHINE_FABRIC_TORUS,
    ORR_MACHINE_FABRIC_DRAGONFLY /* groups of leaves, all groups connected to each other */
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
    orr_bytes memory;     /* per device, as available to software */
    double memory_GBps;   /* of the device memory; 0: that of the chip */
    double peak_tflops;   /* dense, 16 bit, as published by the vendor; 0: that of the chip */
    double host_GBps;     /* device to its host's memory, per direction; 0: not known */
    orr_machine_up up;    /* ---- the scale-up network ---- */
    double up_GBps;       /* per device and direction, over all its links */
    double up_latency_ns; /* device to device, one way; torus and ring: per link */
    bool up_reduces;      /* switches reduce and multicast: NVLS */
    uint32_t up_dims;     /* torus: sizes of the node; 0: as cubic as possible */
    uint32_t up_size[ORR_MACHINE_TORUS_DIMS];
    /* ring and torus: an axis closes to a ring if its length is a multiple of this; 0: always */
    uint32_t up_wrap;
    bool up_wraps_together; /* and only if all axes do */
    uint32_t up_open;       /* bit per axis: the part of a node that a job has, without its wrap */
    uint32_t nics;          /* ---- the scale-out network ---- per node */
    double nic_GBps;
    double nic_latency_ns; /* out of one node and into another, without the switches between */
    orr_machine_fabric fabric;
    uint32_t nodes_per_leaf;   /* on one leaf (rails: on one set of leaves); 0: all */
    uint32_t leaves_per_group; /* dragonfly; 0: 1 */
    double oversubscription;   /* of a leaf, downlinks over uplinks; 1: none */
    double hop_latency_ns;     /* of a switch and the cable after it */
    bool fabric_reduces;       /* switches reduce: SHARP */
    char
        collectives[ORR_MACHINE_PATH]; /* "nccl", "rccl", "torus", "none", or the path of a table */
    double overlap_cost; /* share of compute speed lost beside a collective; 0: none */
    /* if overlap_cost is an estimate: its bounds; 0: it was measured or published */
    double overlap_cost_least, overlap_cost_most;
    /* Share lost during a message, sent or received: an estimate; 0: none. */
    double message_overlap_cost;
    char software[ORR_MACHINE_NAME]; /* preset of the training software; "": the default */
    double usd_per_hour;             /* per device; 0: not known */
    double watts;                    /* per node; 0: not known */
} orr_machine;

/* Names of the built-in machines, in reading order; NULL past the last. */
ORR_API const char *orr_machine_at(size_t index);
/* The file of a built-in machine, comments included; NULL: none of that name. */
ORR_API const char *orr_machine_source(const char *name);

/* "dgx-h100", "dgx-h100:128" or, for a file, "mine.yml" and "mine.yml:16": N nodes.  Changes may
 * follow: "dgx-h100:16,scale_up.bandwidth=900GB/s,usd_per_hour=2.5".  ORR_EUSAGE, with the
 * nearest name: neither built in nor a file. */
ORR_API orr_code orr_machine_find(const char *text,
                                  orr_machine *out,
                                  orr_error *err) ORR_MUST_CHECK;
/* From a file (YAML or JSON; "-": standard input), or from memory; label is used in messages. */
ORR_API orr_code orr_machine_read(const char *path,
                                  orr_machine *out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_machine_parse(orr_span bytes,
                                   const char *label,
                                   orr_machine *out,
                                   orr_error *err) ORR_MUST_CHECK;
/* The equivalent file; returns its length, as snprintf counts.  3,000 bytes are enough. */
ORR_API size_t orr_machine_text(const orr_machine *m, char *out, size_t size);

/* Nodes times devices. */
ORR_API uint32_t orr_machine_devices(const orr_machine *m);
/* Bandwidth per device when all devices of a node send to other nodes: its share of the NICs. 0:
 * there are no NICs. */
ORR_API double orr_machine_out_GBps(const orr_machine *m);
/* One-way latency between devices of the two most distant nodes, without software. */
ORR_API double orr_machine_out_latency_ns(const orr_machine *m);

/* The machine as dimensions: the node, then the fabric; rings for a torus.  Latencies are per link,
 * chosen such that a message between two devices has that of the machine.  A machine of one device
 * has one dimension of 1. */
ORR_API orr_code orr_machine_dims(const orr_machine *m,
                                  orr_net_config *out,
                                  orr_error *err) ORR_MUST_CHECK;

/* The part of the machine that a job of `ranks` ranks uses, one rank per device: whole nodes, or
 * some devices of one.  ORR_EUSAGE: too few devices, or nodes would be filled unevenly. */
ORR_API orr_code orr_machine_fit(const orr_machine *m,
                                 uint32_t ranks,
                                 orr_machine *out,
                                 orr_error *err) ORR_MUST_CHECK;

/* orr_machine_find and orr_machine_fit; without ":N" a machine of one node gets as many nodes as
 * the ranks need. */
ORR_API orr_code orr_machine_for(const char *text, uint32_t ranks, orr_machine *out, orr_error *err)
    ORR_MUST_CHECK;

/* Its compute and its collectives as a system: roofline by peak and memory of the chip, plain
 * collectives, or rings where the machine has no NCCL.  ORR_EINPUT: nothing is known of the
 * chip. */
ORR_API orr_code orr_machine_system(const orr_machine *m,
                                    orr_system *out,
                                    orr_error *err) ORR_MUST_CHECK;
/* Writes the equivalent ASTRA-sim files into a folder: system.json, network.yml, memory.json; also
 * machine.yml and, if the fabric can be expressed as links, links.yml. */
ORR_API orr_code orr_machine_export(const orr_machine *m,
                                    const char *folder,
                                    orr_error *err) ORR_MUST_CHECK;

/* Names in the file: "switch", "leaf-spine". */
ORR_API const char *orr_machine_up_name(orr_machine_up kind);
ORR_API const char *orr_machine_fabric_name(orr_machine_fabric kind);

#ifdef __cplusplus
}
#endif
#endif
