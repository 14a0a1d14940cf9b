/* SPDX-License-Identifier: Apache-2.0 */
/* packet_network.h - the packet network as a model of network.h; its create needs
 * orr__net_config.packet. */
#ifndef ORR_MODELS_PACKET_NETWORK_H
#define ORR_MODELS_PACKET_NETWORK_H

#include "models/network/net_table.h"
#include "packet_inputs.h"

/* What to print below the explanation of a stall: fab_explain of that network. */
void orr__net_packet_explain(const void *net, fab_say say, void *context);
/* Its events, for orr__net_events. */
const orr_event_source *orr__net_packet_events(void *net, orr_net *sim, orr_event_line *line);
const fab *orr__net_packet_fabric(const void *net);

#endif
