/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.h - what the functions of packet.h share between their files. */
#ifndef ORR_MODELS_PACKET_RUN_H
#define ORR_MODELS_PACKET_RUN_H

#include <orrery/packet.h>

#include "../../../base/memory.h"

const orr_packet_options *orr__packet_options(const orr_packet *p);

/* The path of an input that a configuration names: as it stands if that is there, else beside the configuration. */
const char *orr__packet_input_path(orr_arena *a, const char *config, const char *path);

#endif
