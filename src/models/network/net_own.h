/* SPDX-License-Identifier: Apache-2.0 */
/* net_own.h - what only the networks of this library get, behind orr_net_config.own. */
#ifndef ORR_MODELS_NET_OWN_H
#define ORR_MODELS_NET_OWN_H

#include <orrery/network.h>

/* Needed in create only; what it points to lives as long as the network. */
struct orr_net_own {
    const struct orr__topology *topology;    /* links: graph and its like */
    const struct orr__packet_inputs *packet; /* packet */
};

#endif
