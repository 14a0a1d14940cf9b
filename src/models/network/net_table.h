/* SPDX-License-Identifier: Apache-2.0 */
/* net_table.h - the networks of this library (orr_net_at, orr_net_find in orrery/network.h). */
#ifndef ORR_MODELS_NET_TABLE_H
#define ORR_MODELS_NET_TABLE_H

#include <orrery/network.h>

/* The error for a name that no network has: it lists those there are. */
orr_code orr__net_fail_unknown(const char *name, orr_error *err);

#endif
