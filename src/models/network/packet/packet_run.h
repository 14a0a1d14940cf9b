/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.h - what the functions of packet.h share between their files. */
#ifndef ORR_MODELS_PACKET_RUN_H
#define ORR_MODELS_PACKET_RUN_H

#include <orrery/packet.h>

#include "../../../base/json.h"
#include "fabric.h"

const orr_packet_options *orr__packet_options(const orr_packet *p);

const orr__fabric *orr__packet_fabric(const orr_packet *p);
/* Members of the object that is open: counts, then "pfc" with the ports that were paused most. */
void orr__packet_put_figures(orr_json_writer *w, const orr_packet_figures *g, const orr__fabric *f);
/* Storms and chains of pauses, what was passed over: a line each. */
void orr__packet_put_notes(orr_buf *b, const orr__fabric *f);
void orr__packet_figures_fill(orr_packet_figures *out, const orr__cabling *c, const orr__fabric *f);

#endif
