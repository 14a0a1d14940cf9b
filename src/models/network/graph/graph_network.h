/* SPDX-License-Identifier: Apache-2.0 */
/* graph_network.h - the network of any devices and links; needs the topology in its
 * configuration. */
#ifndef ORR_MODELS_GRAPH_NETWORK_H
#define ORR_MODELS_GRAPH_NETWORK_H

#include <orrery/network.h>

extern const orr_net_ops orr__net_graph;
extern const orr_net_ops orr__net_unaware_graph; /* no message delays another */

#endif
