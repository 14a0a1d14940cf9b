/* SPDX-License-Identifier: Apache-2.0 */
/* htsim_topo.h - htsim's fat trees of two or three tiers, a few numbers each
 * (docs/format/htsim.md). */
#ifndef ORR_MODELS_HTSIM_TOPO_H
#define ORR_MODELS_HTSIM_TOPO_H

#include "topology.h"

/* Devices are the hosts, then tor0, tor1, ..., agg0, ..., core0, ... */
orr_code orr__htsim_topo_parse(orr_span bytes,
                               const char *path,
                               size_t most_links,
                               orr__topology **out,
                               orr_error *err) ORR_MUST_CHECK;

/* A failure of htsim's traffic file: the cable of an aggregation switch to the link-th of its core
 * switches; the first one where several lie side by side. */
orr_code orr__htsim_topo_fail(orr__topology *t,
                              uint64_t agg,
                              uint64_t link,
                              const orr_where *where,
                              orr_error *err) ORR_MUST_CHECK;

#endif
