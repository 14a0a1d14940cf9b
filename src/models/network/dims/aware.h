/* SPDX-License-Identifier: Apache-2.0 */
/* aware.h - what the run may ask of the network aware beyond network.h: one link for all that a
 * symmetry moves to each other.  net: the state of orr__net_aware. */
#ifndef ORR_MODELS_AWARE_H
#define ORR_MODELS_AWARE_H

#include "models/network/symmetry.h"

/* Messages are sent by ranks that are at home; before the first one.  False: out of memory. */
bool orr__aware_fold(void *net, const net_symmetry *symmetry);
/* The symmetry is about to have fewer digits: links and messages become several (link_servers.h).
 * False: out of memory. */
struct net_copier;
bool orr__aware_multiply(void *net, const struct net_copier *c);
bool orr__aware_copy_call(void *net,
                          void (*call)(void *context, uint64_t argument),
                          uint32_t k,
                          uint64_t *argument);
void orr__aware_end_copies(void *net);
/* The run is over: what a link carried, all carried.  False: out of memory. */
bool orr__aware_spread(void *net);

#endif
