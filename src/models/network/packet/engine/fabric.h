/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.h - a network of hosts and switches, packet by packet (packet-network.md 5 to 11).
 *
 *     fab *f;
 *     if (fab_create(&config, &cabling, &outputs, &f, &err)) ...
 *     fab_send(f, &(fab_send_request){.src = 0, .dst = 1, .size = 1000000}, &err);
 *     while (fab_run(f, 100000)) ;
 *     fab_destroy(f);
 *
 * Time is in ticks: fab_unit returns their number per nanosecond (fab_rules.ticks_per_ns). */
#ifndef ORR_MODELS_FABRIC_H
#define ORR_MODELS_FABRIC_H

#include <orrery/network.h>

#include "base/event_line.h"
#include "models/network/packet/packet_config.h"
#include "models/network/packet/packet_files.h"

typedef struct fab fab;

enum { FAB_FLOW_CLASS = 3, FAB_FLOW_PORT = 100 };

/* A message, which becomes a flow. */
typedef struct fab_send_request {
    uint32_t src, dst;
    uint64_t size;
    uint64_t token;
    uint16_t port; /* of the destination; 0: FAB_FLOW_PORT */
    uint8_t class; /* 0: FAB_FLOW_CLASS */
    bool in_order; /* not before earlier messages from src to dst with this flag */
} fab_send_request;

/* Callbacks; may be NULL. */
typedef struct fab_listener {
    void *context;
    /* the sender knows that everything has arrived */
    void (*sent)(void *context, uint64_t token);
    void (*arrived)(void *context, uint64_t token); /* the last byte has arrived */
    /* Is anybody interested in that flow?  NULL: yes.  May be called from several threads. */
    bool (*hears)(const void *context, uint64_t token, bool of_arrival);
} fab_listener;

typedef struct fab_figures {
    uint64_t flows, flows_done;
    uint64_t data_packets, data_bytes, acks, nacks, retransmitted_bytes;
    uint64_t pauses, resumes; /* frames received */
    uint64_t marked, dropped,
        /* packets: marked by ECN, dropped for lack of buffer, lost on lossy or failed links */
        lost;
    uint64_t trimmed; /* packets cut to their headers for lack of buffer */
    uint64_t timeouts;
    uint64_t skips, skipped; /* APPROX: how often, and ticks */
    uint64_t max_rtt_ns, max_bdp;
    uint64_t events;
    uint64_t last_done;                 /* ticks: when the last flow completed */
    uint64_t fct_min, fct_max, fct_sum; /* ticks, of completed flows */
} fab_figures;

orr_code fab_create(const orr__packet_config *config,
                    const orr__cabling *cabling,
                    fab **out,
                    orr_error *err) ORR_MUST_CHECK;
/* After observers are attached (fab_observe.h), before flows: checks what depends on them. */
orr_code fab_prepare(fab *f, orr_error *err) ORR_MUST_CHECK;
void fab_destroy(fab *f); /* NULL is fine; files not committed never appear */

/* Link failures and repairs.  The list must outlive the fabric. */
orr_code fab_plan(fab *f, const orr__link_events *e, orr_error *err) ORR_MUST_CHECK;
void fab_listen(fab *f, const fab_listener *w);
void fab_join(fab *f, orr_event_line *line); /* instead of its own line */

orr_code fab_send(fab *f, const fab_send_request *r, orr_error *err) ORR_MUST_CHECK;
/* All flows of a list that have a start time; the index in the list is the token. Before the first
 * run; the list must outlive the fabric. */
orr_code fab_send_list(fab *f, const orr__flow_list *l, orr_error *err) ORR_MUST_CHECK;

/* Runs events, including skipped periods, which may exceed `most`; 0: nothing is left. */
uint64_t fab_run(fab *f, uint64_t most);
bool fab_next_at(const fab *f, uint64_t *at);
/* An error in an event. */
bool fab_has_stopped_in_time(const fab *f); /* SIMULATOR_STOP_TIME was reached */
orr_code fab_status(const fab *f, orr_error *err) ORR_MUST_CHECK;
orr_code fab_commit(fab *f, orr_error *err) ORR_MUST_CHECK; /* commits the files */

unsigned fab_unit(const fab *f);
uint64_t fab_now(const fab *f);
const fab_figures *fab_figures_of(const fab *f);
void fab_report(const fab *f, orr_net_link_visit visit, void *context);

/* Active flows, and why they do not move: lines of text. */
typedef void (*fab_say)(void *context, const char *line);
void fab_explain(const fab *f, fab_say say, void *context);
/* A pause storm with its head, and the longest chain; nothing if there was neither. */
void fab_explain_pauses(const fab *f, fab_say say, void *context);

/* What APPROX has skipped, and its implications; nothing without it. */
void fab_explain_approx(const fab *f, fab_say say, void *context);

/* A paused port. */
typedef struct fab_port_pauses {
    char port[100], head[100]; /* as text; head: where most of its pauses began */
    uint64_t pauses, ticks, longest_ticks;
    unsigned chain; /* maximum length: 1, the port that caused it was not paused itself */
    double share;   /* of the run */
} fab_port_pauses;

typedef void (*fab_pause_visit)(void *context, const fab_port_pauses *p);
/* Returns their number; visit may be NULL. */
uint32_t fab_paused_ports(const fab *f, fab_pause_visit visit, void *context);

#endif
