/* SPDX-License-Identifier: Apache-2.0 */
/* net_table.h - the networks of this library (orr_net_at, orr_net_find in orrery/network.h). */
#ifndef ORR_MODELS_NET_TABLE_H
#define ORR_MODELS_NET_TABLE_H

#include <orrery/network.h>

extern const orr_net_ops orr__net_unaware, orr__net_aware;       /* dims/ (astra-sim.md 8) */
extern const orr_net_ops orr__net_graph, orr__net_unaware_graph; /* graph/ */
extern const orr_net_ops orr__net_packet; /* packet/; needs orr_net_config.packet */

/* The error for a name that no network has: it lists those there are. */
orr_code orr__net_fail_unknown(const char *name, orr_error *err);

#endif
