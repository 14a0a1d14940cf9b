/* SPDX-License-Identifier: Apache-2.0 */
/* fluid_network.h - what the run may ask of the network fluid beyond network.h: flows that are a
 * whole collective. */
#ifndef ORR_MODELS_FLUID_NETWORK_H
#define ORR_MODELS_FLUID_NETWORK_H

#include "fluid_paths.h"

typedef struct fluid_network fluid_network;

/* net: the state of orr__net_fluid. */
fluid *fluid_network_flows(void *net);
fluid_paths *fluid_network_paths(void *net);

/* What software adds to a message: *latency comes to that of its route, *most limits its rate, in
 * bytes per ns. */
typedef void (*fluid_price)(void *context, const orr_message *m, double *latency, double *most);
void fluid_network_price(void *net, fluid_price price, void *context);

#endif
