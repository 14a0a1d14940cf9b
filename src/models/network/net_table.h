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

/* The event queue of one of our models, ordered by `line`; NULL: the model has none, like all
 * models outside this library. */
const orr_event_source *orr__net_events(const orr_net_ops *ops,
                                        void *net,
                                        orr_net *n,
                                        orr_event_line *line);

/* The error for an unknown network name: it lists the known ones. */
orr_code orr__net_fail_unknown(const char *name, orr_error *err);

/* What create gets from this library: the public part first, whose size tells that more follows.
 * Pointees live as long as the network. */
typedef struct orr__net_config {
    orr_net_config config;
    const struct orr__topology *topology;    /* links: graph etc. */
    const struct orr__packet_inputs *packet; /* packet */
} orr__net_config;

/* NULL: a caller's own configuration, with the public part only. */
static inline const orr__net_config *orr__net_config_of(const orr_net_config *cfg)
{
    return cfg->size == sizeof(orr__net_config) ? (const orr__net_config *)cfg : NULL;
}

#endif
