/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.h - what the functions of packet.h share between their files. */
#ifndef ORR_MODELS_PACKET_RUN_H
#define ORR_MODELS_PACKET_RUN_H

#include "packet.h"

#include "models/network/net_table.h"
#include "models/network/packet/engine/fabric.h"

const orr_packet_options *orr__packet_options(const orr_packet *p);

const fab *orr__packet_fabric(const orr_packet *p);
/* Every link that carried traffic, per direction. */
void orr__packet_visit_links(const orr_packet *p, orr_net_link_visit visit, void *context);
/* The top ports by some measure, in descending order; ties by lower number. */
typedef uint64_t (*orr__port_measure)(const fab *f, uint32_t port);
uint64_t orr__measure_busy(const fab *f, uint32_t port);  /* ticks */
uint64_t orr__measure_queue(const fab *f, uint32_t port); /* bytes, the most ever; of switches */
/* Returns how many were put into list, which has room for `most`; *all_out: how many are above
 * 0. */
size_t orr__pick_ports(
    const fab *f, orr__port_measure measure, uint32_t *list, size_t most, size_t *all_out);
enum { ORR__PORT_NAME = 80 };
void orr__port_short_name(const fab *f, uint32_t port, char out[ORR__PORT_NAME]);
/* A port's statistics, without name and values. */
orr_fabric_link orr__port_link(const fab *f, uint32_t port);
/* Of a run: the end of the last frame, in ticks. */
uint64_t orr__fabric_end(const fab *f);
void orr__fabric_flow_times(const fab *f,
                            orr_fabric_flows *all,
                            orr_fabric_flows classes[ORR_FABRIC_CLASSES]);
orr_code orr__fabric_view_take(const fab *f,
                               const orr_packet_figures *g,
                               orr_fabric_view **out,
                               orr_error *err) ORR_MUST_CHECK;
void orr__packet_figures_fill(orr_packet_figures *out, const orr__cabling *c, const fab *f);

/* ---- flow triggers ----
 *
 * Flows that wait for others, on the packet network.
 *
 *     orr__triggers *t;
 *     if (orr__triggers_create(fabric, &flows, &t, &err)) ...    // from now on notified of flows
 *     while (fab_run(fabric, 100000)) ;
 *     orr__triggers_explain(t, say, context);                    // which flows never started, and why
 *     orr__triggers_destroy(t); */

typedef struct orr__triggers orr__triggers;

/* Fabric and flows must outlive it. */
orr_code orr__triggers_create(fab *f,
                              const orr__flow_list *flows,
                              orr__triggers **out,
                              orr_error *err) ORR_MUST_CHECK;
void orr__triggers_destroy(orr__triggers *t); /* NULL is fine */

/* A flow could not be started. */
orr_code orr__triggers_status(const orr__triggers *t, orr_error *err) ORR_MUST_CHECK;
void orr__triggers_explain(const orr__triggers *t, fab_say say, void *context);

/* ---- inputs ----
 *
 * The files of a packet network, read and checked for consistency. */

struct orr__topology;

typedef struct orr__packet_inputs {
    orr__packet_config config;
    orr__cabling cabling;
    /* the source of the cabling, if that is a file of ours or htsim's */
    struct orr__topology *links;
    orr__link_events link_events;
    bool *is_traced; /* by node; NULL: no trace is wanted */
    orr_arena *arena;
    char **warnings; /* what is odd, but not wrong */
    size_t warning_count, warning_room;
} orr__packet_inputs;

/* Settings of the caller that override the configuration; NULL: the configuration decides. */
typedef struct orr__packet_given {
    const char *config;                   /* NULL: defaults for everything */
    const char *topology;                 /* instead of TOPOLOGY_FILE; of any kind */
    const struct orr__topology *links;    /* instead of both */
    const char *keys;                     /* overriding keys and values; NULL: none */
    const struct orr_rules_packet *rules; /* NULL: ours */
    unsigned threads;                     /* 0: as many as pay */
    bool wants_history;
    bool counts_events;      /* there is a limit on them */
    const char *replaced[5]; /* outputs that are redirected; NULL-terminated */
} orr__packet_given;

/* On failure nothing needs to be undone. */
orr_code orr__packet_inputs_read(orr__packet_inputs *in,
                                 const orr__packet_given *given,
                                 orr_error *err) ORR_MUST_CHECK;
void orr__packet_inputs_fini(orr__packet_inputs *in);

/* ---- the model ----
 *
 * The packet network as a model of network.h; its create needs orr__net_config.packet. */

/* Text below the explanation of a stall: fab_explain of that network. */
void orr__net_packet_explain(const void *net, fab_say say, void *context);
/* Its events, for orr__net_events. */
const orr_event_source *orr__net_packet_events(void *net, orr_net *sim, orr_event_line *line);
const fab *orr__net_packet_fabric(const void *net);

#endif
