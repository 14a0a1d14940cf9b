/* SPDX-License-Identifier: Apache-2.0 */
/* graph_network.h - what the run may ask of the network graph beyond network.h: one link for all
 * that a symmetry moves to each other.  net: the state of orr__net_graph. */
#ifndef ORR_MODELS_GRAPH_NETWORK_H
#define ORR_MODELS_GRAPH_NETWORK_H

#include "models/network/symmetry.h"

/* Ranks can be moved by this digit, and by those before, without any link or route changing.
 * False: not, or no memory. */
bool orr__graph_holds(void *net, const net_symmetry *before, const net_digit *d);
/* As orr__aware_fold and orr__aware_spread. */
bool orr__graph_fold(void *net, const net_symmetry *symmetry);
void orr__graph_spread(void *net);

#endif
