/* SPDX-License-Identifier: Apache-2.0 */
/* htsim_cm.h - htsim's connection matrices: flows, the triggers between them, links that fail
 * (docs/format/htsim.md). */
#ifndef ORR_MODELS_HTSIM_CM_H
#define ORR_MODELS_HTSIM_CM_H

#include "models/network/packet/packet_files.h"

/* A link between an aggregation and a core switch that is not there. */
typedef struct orr__htsim_failure {
    uint64_t agg, link;
    orr_where where;
} orr__htsim_failure;

typedef struct orr__htsim_cm {
    uint64_t nodes;
    orr__flow_list flows;
    orr__htsim_failure *failures;
    size_t failure_count, failure_room;
} orr__htsim_cm;

bool orr__htsim_is_cm(orr_span bytes); /* and not a flow file of the reference */

/* Nodes are hosts 0 to hosts - 1.  On failure nothing needs to be undone. */
orr_code orr__htsim_cm_parse(orr__htsim_cm *m,
                             uint32_t hosts,
                             orr_span bytes,
                             const char *path,
                             orr_error *err) ORR_MUST_CHECK;
void orr__htsim_cm_fini(orr__htsim_cm *m); /* an all-zero one is empty */

#endif
