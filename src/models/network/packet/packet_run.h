/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.h - what the functions of packet.h share between their files. */
#ifndef ORR_MODELS_PACKET_RUN_H
#define ORR_MODELS_PACKET_RUN_H

#include <orrery/packet.h>

#include "fabric.h"

const orr_packet_options *orr__packet_options(const orr_packet *p);

void orr__packet_figures_fill(orr_packet_figures *out, const orr__cabling *c, const orr__fabric *f);

#endif
