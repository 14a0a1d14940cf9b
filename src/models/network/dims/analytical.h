/* SPDX-License-Identifier: Apache-2.0 */
/* analytical.h - the two analytical networks of ASTRA-sim (astra-sim.md 8). */
#ifndef ORR_MODELS_ANALYTICAL_H
#define ORR_MODELS_ANALYTICAL_H

#include <orrery/network.h>

extern const orr_net_ops orr__net_unaware;
extern const orr_net_ops orr__net_aware;

#endif
