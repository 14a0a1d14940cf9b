/* SPDX-License-Identifier: Apache-2.0 */
/* flow_facts.h - what went over a packet network, as plain figures: all that the text and the JSON
 * of a run of flows are made of (src/views/packet_report.c), and "packets" of a run of traces.
 *
 *     orr__fabric_facts f;
 *     if (!orr__fabric_facts_take(fabric, figures, arena, &f)) return orr_no_memory(err);
 *     ... f.busiest[0].name, f.busiest[0].busy_ps ...
 *
 * Facts are copies, in the arena: views make bytes of them without seeing the network.  packet.h is
 * here because the writers of a run of flows are declared there. */
#ifndef ORR_EXPLAIN_FLOW_FACTS_H
#define ORR_EXPLAIN_FLOW_FACTS_H

#include "base/memory/memory.h"
#include "models/network/packet/packet.h"

struct fab;

enum { ORR__FABRIC_SHOWN = 16 }; /* links, queues and ports at most, of each list */

/* A port that was paused. */
typedef struct orr__paused_port {
    const char *port, *head; /* in words; head: where most of its pauses began */
    uint64_t pauses, paused_ps, longest_ps;
    unsigned chain; /* the longest: 1, the port that it is paused for was not paused itself */
    double share;   /* of the run */
} orr__paused_port;

/* Lines about a run, in words. */
typedef struct orr__fabric_notes {
    const char **lines;
    size_t count, room;
    bool failed; /* out of memory */
} orr__fabric_notes;

typedef struct orr__fabric_facts {
    orr_packet_figures figures;
    uint64_t end_ticks, tick_ps; /* of the last frame; how long a tick is */
    orr_fabric_flows flows;      /* all of them */
    orr_fabric_flows classes[ORR_FABRIC_CLASSES];
    orr_fabric_link busiest[ORR__FABRIC_SHOWN]; /* the busiest first */
    orr_fabric_link queues[ORR__FABRIC_SHOWN];  /* the longest queue first */
    size_t busiest_count, queue_count;
    size_t links_used;                          /* that sent something */
    orr__paused_port paused[ORR__FABRIC_SHOWN]; /* paused longest first */
    unsigned paused_count;
    uint32_t paused_ports;    /* all of them */
    orr__fabric_notes storm;  /* storms and chains of pauses */
    orr__fabric_notes approx; /* what was skipped */
} orr__fabric_facts;

/* False: out of memory. */
bool orr__fabric_facts_take(const struct fab *f,
                            const orr_packet_figures *figures,
                            orr_arena *a,
                            orr__fabric_facts *out);

/* A run of flows, with what its results begin with. */
typedef struct orr__flow_facts {
    orr_arena *arena;
    orr__fabric_facts fabric;
    const char *program, *config; /* NULL: not said; none */
    bool is_compat;               /* by the rules of another program */
} orr__flow_facts;

orr_code orr__flow_facts_take(const orr_packet *p,
                              orr__flow_facts *out,
                              orr_error *err) ORR_MUST_CHECK;
void orr__flow_facts_fini(orr__flow_facts *f); /* also after a take that failed */

#endif
