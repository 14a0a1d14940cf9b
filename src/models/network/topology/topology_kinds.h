/* SPDX-License-Identifier: Apache-2.0 */
/* topology_kinds.h - kinds of link-level network files, recognised by content, and conversion
 * between them. */
#ifndef ORR_MODELS_TOPOLOGY_KINDS_H
#define ORR_MODELS_TOPOLOGY_KINDS_H

#include <orrery/lab/topology.h>

#include "base/memory/buffer.h"
#include "topology.h"

typedef enum orr__topology_kind {
    ORR__KIND_YAML,  /* ours, ASTRA-sim's, and InfraGraph */
    ORR__KIND_NS3,   /* the reference's, and SimAI's */
    ORR__KIND_HTSIM, /* .topo */
    ORR__KIND_NCCL,  /* XML that NCCL wrote */
    ORR__KIND_SMI,   /* what nvidia-smi topo -m prints */
    ORR__KIND_CONFIG /* config.txt, which names a topology */
} orr__topology_kind;

orr__topology_kind orr__topology_kind_of(orr_span bytes);
/* Of a file; config.txt too if it cannot be opened, which its reader will report. */
orr_code orr__topology_kind_at(const char *path,
                               orr__topology_kind *out,
                               orr_error *err) ORR_MUST_CHECK;

/* Ranks become the first nodes, switches the others; a link and its reverse form a cable, in order.
 * Costs are kept; failed links are dropped. */
orr_code orr__cabling_of_topology(orr__cabling *c,
                                  const orr__topology *t,
                                  orr_error *err) ORR_MUST_CHECK;
/* Every host must be reachable from every other. */
orr_code orr__cabling_check_whole(const orr__cabling *c,
                                  const char *path,
                                  orr_error *err) ORR_MUST_CHECK;
/* Do some pairs of hosts have only routes through other hosts? */
bool orr__cabling_needs_hosts(const orr__cabling *c);

/* Any kind except config.txt and ASTRA-sim's; for the latter *out is NULL, without an error. */
orr_code orr__topology_parse_any(orr_span bytes,
                                 const char *path,
                                 size_t most_links,
                                 orr__topology **out,
                                 orr_error *err) ORR_MUST_CHECK;

/* topology_nccl.c, topology_smi.c */
orr_code orr__topology_parse_nccl(orr_span bytes,
                                  const char *path,
                                  size_t most_links,
                                  orr__topology **out,
                                  orr_error *err) ORR_MUST_CHECK;
orr_code orr__topology_parse_smi(orr_span bytes,
                                 const char *path,
                                 size_t most_links,
                                 orr__topology **out,
                                 orr_error *err) ORR_MUST_CHECK;
bool orr__topology_is_smi(orr_span bytes);

/* An htsim .topo file, if these cables are one of its fat trees; otherwise ORR_EUSAGE with the
 * reason. */
orr_code orr__htsim_topo_words(const orr__cabling *c, orr_buf *out, orr_error *err) ORR_MUST_CHECK;

/* ---- fat trees of htsim ----
 *
 * Htsim's fat trees of two or three tiers, a few numbers each (docs/format/htsim.md). */

/* Devices are the hosts, then tor0, tor1, ..., agg0, ..., core0, ... */
orr_code orr__htsim_topo_parse(orr_span bytes,
                               const char *path,
                               size_t most_links,
                               orr__topology **out,
                               orr_error *err) ORR_MUST_CHECK;

/* A failure of htsim's traffic file: the cable of an aggregation switch to its link-th core switch;
 * the first if there are parallel ones. */
orr_code orr__htsim_topo_fail(orr__topology *t,
                              uint64_t agg,
                              uint64_t link,
                              const orr_where *where,
                              orr_error *err) ORR_MUST_CHECK;

#endif
