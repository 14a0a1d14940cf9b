/* SPDX-License-Identifier: Apache-2.0 */
/* packet_report.h - a packet network in results: of a run of flows, and of traces. */
#ifndef ORR_VIEWS_PACKET_REPORT_H
#define ORR_VIEWS_PACKET_REPORT_H

#include "base/formats/json.h"
#include "explain/flow_facts.h"

/* Members of the object that is open: counts, then "pfc" with the ports that were paused most. */
void orr__packet_put_figures(orr_json_writer *w, const orr__fabric_facts *f);
/* Storms and chains of pauses, what was skipped: a line each. */
void orr__packet_put_notes(orr_buf *b, const orr__fabric_facts *f);

#endif
