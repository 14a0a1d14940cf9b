/* SPDX-License-Identifier: Apache-2.0 */
/* net_table.h - the networks of this library (orr_net_at, orr_net_find in orrery/network.h). */
#ifndef ORR_MODELS_NET_TABLE_H
#define ORR_MODELS_NET_TABLE_H

#include "base/event_line.h"

#include <orrery/network.h>

extern const orr_net_ops orr__net_unaware, orr__net_aware;       /* dims/ (astra-sim.md 8) */
extern const orr_net_ops orr__net_graph, orr__net_unaware_graph; /* graph/ */
extern const orr_net_ops orr__net_fluid;                         /* fluid/; dimensions, or links */
extern const orr_net_ops orr__net_packet; /* packet/; needs orr__net_config.packet */

/* Events that a model of ours keeps itself, in the order of `line`; NULL: the model keeps none, as
 * all models outside this library. */
const orr_event_source *orr__net_events(const orr_net_ops *ops,
                                        void *net,
                                        orr_net *n,
                                        orr_event_line *line);

/* The error for a name that no network has: it lists those there are. */
orr_code orr__net_fail_unknown(const char *name, orr_error *err);

/* What create gets from this library: the public part first, whose size says that more follows.
 * What the pointers point to lives as long as the network. */
typedef struct orr__net_config {
    orr_net_config config;
    const struct orr__topology *topology;    /* links: graph and its like */
    const struct orr__packet_inputs *packet; /* packet */
} orr__net_config;

/* NULL: a caller's own configuration, which has no more than the public part. */
static inline const orr__net_config *orr__net_config_of(const orr_net_config *cfg)
{
    return cfg->size == sizeof(orr__net_config) ? (const orr__net_config *)cfg : NULL;
}

#endif
