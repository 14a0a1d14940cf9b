/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.h - a network of hosts and switches, packet by packet (packet-network.md 5 to 11).
 *
 *     orr__fabric *f;
 *     if (orr__fabric_create(&config, &cabling, &outputs, &f, &err)) ...
 *     orr__fabric_send(f, &(orr__send_request){.src = 0, .dst = 1, .size = 1000000}, &err);
 *     while (orr__fabric_run(f, 100000)) ;
 *     orr__fabric_destroy(f);
 *
 * Time is in ticks: orr__fabric_unit says how many make a nanosecond (fab_rules.ticks_per_ns). */
#ifndef ORR_MODELS_FABRIC_H
#define ORR_MODELS_FABRIC_H

#include <orrery/network.h>

#include "base/event_line.h"
#include "models/network/packet/packet_config.h"
#include "models/network/packet/packet_files.h"

typedef struct orr__fabric orr__fabric;

enum { ORR__FLOW_CLASS = 3, ORR__FLOW_PORT = 100 };

/* A message, which becomes a flow. */
typedef struct orr__send_request {
    uint32_t src, dst;
    uint64_t size;
    uint64_t token;
    uint16_t port; /* of the destination; 0: ORR__FLOW_PORT */
    uint8_t class; /* 0: ORR__FLOW_CLASS */
} orr__send_request;

/* Who is told of what; functions may be NULL. */
typedef struct orr__fabric_watcher {
    void *context;
    void (*sent)(void *context, uint64_t token);    /* the sender knows that all has arrived */
    void (*arrived)(void *context, uint64_t token); /* the last byte is there */
    /* Is there anything to tell of that flow?  NULL: there is.  Several threads may ask. */
    bool (*hears)(const void *context, uint64_t token, bool of_arrival);
} orr__fabric_watcher;

typedef struct orr__fabric_figures {
    uint64_t flows, flows_done;
    uint64_t data_packets, data_bytes, acks, nacks, retransmitted_bytes;
    uint64_t pauses, resumes; /* frames received */
    uint64_t marked, dropped,
        lost;         /* packets: by ECN, for want of buffer, on lossy or failed links */
    uint64_t trimmed; /* packets: cut to their headers for want of buffer */
    uint64_t timeouts;
    uint64_t skips, skipped; /* APPROX: how often, and ticks */
    uint64_t max_rtt_ns, max_bdp;
    uint64_t events;
    uint64_t last_done;                 /* ticks: when the last flow was done */
    uint64_t fct_min, fct_max, fct_sum; /* ticks, of flows that are done */
} orr__fabric_figures;

/* Files of the old program; an empty path writes none. */
typedef struct orr__fabric_paths {
    const char *fct, *pfc, *qlen, *trace;
    const bool *is_traced; /* by node */
} orr__fabric_paths;

orr_code orr__fabric_create(const orr__packet_config *config,
                            const orr__cabling *cabling,
                            const orr__fabric_paths *paths,
                            orr__fabric **out,
                            orr_error *err) ORR_MUST_CHECK;
void orr__fabric_destroy(orr__fabric *f); /* NULL is fine; files not committed never appear */

/* Links fail and work again.  The list must live on. */
orr_code orr__fabric_plan(orr__fabric *f, const orr__link_events *e, orr_error *err) ORR_MUST_CHECK;
void orr__fabric_watch(orr__fabric *f, const orr__fabric_watcher *w);
void orr__fabric_join(orr__fabric *f, orr_event_line *line); /* instead of a line of its own */

orr_code orr__fabric_send(orr__fabric *f,
                          const orr__send_request *r,
                          orr_error *err) ORR_MUST_CHECK;
/* All flows of a list that have a start time, each at its time; its place in the list is the token.
 * Before the first run; the list must live on. */
orr_code orr__fabric_send_list(orr__fabric *f,
                               const orr__flow_list *l,
                               orr_error *err) ORR_MUST_CHECK;

uint64_t orr__fabric_run(orr__fabric *f, uint64_t most); /* events run; 0: nothing is left */
bool orr__fabric_next_at(const orr__fabric *f, uint64_t *at);
/* Something went wrong in an event. */
bool orr__fabric_has_stopped_in_time(const orr__fabric *f); /* SIMULATOR_STOP_TIME has come */
orr_code orr__fabric_status(const orr__fabric *f, orr_error *err) ORR_MUST_CHECK;
orr_code orr__fabric_commit(orr__fabric *f, orr_error *err) ORR_MUST_CHECK; /* the files appear */

unsigned orr__fabric_unit(const orr__fabric *f);
uint64_t orr__fabric_now(const orr__fabric *f);
const orr__fabric_figures *orr__fabric_figures_of(const orr__fabric *f);
void orr__fabric_report(const orr__fabric *f, orr_net_link_visit visit, void *context);

/* Flows that are under way, and why they do not move: lines of text, for people. */
typedef void (*orr__fabric_say)(void *context, const char *line);
void orr__fabric_explain(const orr__fabric *f, orr__fabric_say say, void *context);
/* A storm of pauses with its head, and the longest chain; nothing if there was neither. */
void orr__fabric_explain_pauses(const orr__fabric *f, orr__fabric_say say, void *context);

/* What APPROX has passed over, and what that means; nothing without it. */
void orr__fabric_explain_approx(const orr__fabric *f, orr__fabric_say say, void *context);

/* A port that was paused. */
typedef struct orr__fabric_pauses {
    char port[100], head[100]; /* in words; head: where most of its pauses began */
    uint64_t pauses, ticks, longest_ticks;
    unsigned chain; /* the longest: 1, the port that it is paused for was not paused itself */
    double share;   /* of the run */
} orr__fabric_pauses;

typedef void (*orr__fabric_pause_visit)(void *context, const orr__fabric_pauses *p);
/* How many there are; visit may be NULL. */
uint32_t orr__fabric_paused_ports(const orr__fabric *f,
                                  orr__fabric_pause_visit visit,
                                  void *context);

#endif
