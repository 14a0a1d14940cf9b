/* SPDX-License-Identifier: Apache-2.0 */
/* aware.h - what the run may ask of the network aware beyond network.h: one link for all that a symmetry moves to each
 * other.  net: the state of orr__net_aware. */
#ifndef ORR_MODELS_AWARE_H
#define ORR_MODELS_AWARE_H

#include "models/network/symmetry.h"

/* Messages are sent by ranks that are at home; before the first one.  False: out of memory. */
bool orr__aware_fold(void *net, const net_symmetry *symmetry);
/* The run is over: what a link carried, all carried.  False: out of memory. */
bool orr__aware_spread(void *net);

#endif
