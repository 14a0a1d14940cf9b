/* SPDX-License-Identifier: Apache-2.0 */
/* topology_impl.h - what the readers of topology files share. */
#ifndef ORR_MODELS_TOPOLOGY_IMPL_H
#define ORR_MODELS_TOPOLOGY_IMPL_H

#include "base/formats/yaml_fields.h"
#include "topology.h"

/* What a link has when the file does not say; speed 0: nothing. */
typedef struct orr__link_defaults {
    double speed, latency;
} orr__link_defaults;

/* The keys NAME_bandwidth and NAME_latency of a map, or without a name bandwidth and latency. */
orr_code orr__topology_take_speed(orr_yaml_value map,
                                  const char *name,
                                  const orr__link_defaults *otherwise,
                                  orr__link_defaults *out,
                                  orr_error *err) ORR_MUST_CHECK;

/* The value of the key "generate": ranks, switches and links of a well-known shape. */
orr_code orr__topology_generate(orr__topology *t,
                                orr_yaml_value map,
                                const orr__link_defaults *otherwise,
                                orr_error *err) ORR_MUST_CHECK;

#endif
