/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_view.h - what a network of links, queues and flows did, over time and in all: figures
 * alone.
 *
 * The packet network makes one (orr_run_fabric_view), the report draws it (report.h).  Time is cut
 * into columns of equal length, the last of which may be shorter; a list has a value a column.
 * Experimental: may change in the next release. */
#ifndef ORRERY_LAB_FABRIC_VIEW_H
#define ORRERY_LAB_FABRIC_VIEW_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went over a packet network, in all. */
typedef struct orr_packet_figures {
    uint32_t hosts, switches, links;
    uint64_t flows, flows_done;
    uint64_t data_packets, data_bytes; /* bytes without headers, with what was sent again */
    uint64_t acks, nacks, timeouts, retransmitted_bytes;
    uint64_t pauses, resumes;       /* PFC frames received */
    uint32_t paused_ports;          /* that received one */
    uint64_t marked, dropped, lost; /* packets: by ECN; for want of buffer; on the wire */
    uint64_t trimmed;               /* packets cut to their headers for want of buffer */
    uint64_t max_rtt_ns,
        max_bdp_bytes;       /* over all pairs of hosts; 0: so many that it was not measured */
    uint64_t finished_at_ps; /* when the last flow was done */
    uint64_t fct_min_ps, fct_max_ps, fct_sum_ps; /* of flows that are done */
    uint64_t events;
    uint64_t skips, skipped_ps; /* APPROX: how often time was skipped, and how much of it */
} orr_packet_figures;

/* One direction of one link: a port and the wire that leads away from it. */
typedef struct orr_fabric_link {
    const char *name; /* "switch8.3 -> 2": port 3 of switch 8, to host 2 */
    uint64_t bits_per_second, bytes;
    uint64_t busy_ps, paused_ps; /* sending; not allowed to send some class */
    uint64_t pauses;
    orr_bytes longest_queue;
    const double *values; /* by column: what its list is of; NULL: not recorded */
} orr_fabric_link;

enum { ORR_FABRIC_TIMES = 41 };

/* Flows of one class of sizes.  Percentiles are those of the nearest rank; with very many flows
 * they may be off by less than 1 %. */
typedef struct orr_fabric_flows {
    orr_bytes above, up_to; /* of the flow: more than, but not more than; up_to 0: no limit */
    uint64_t flows;         /* that are done */
    orr_bytes bytes;
    uint64_t fct_ps
        [ORR_FABRIC_TIMES]; /* the shortest, then what 2.5 %, 5 % ... 100 % of them took at most */
    uint64_t fct_p99_ps;
    double slowdown_p50, slowdown_p95, slowdown_p99,
        slowdown_max; /* time over ideal time, from 1 on;
                                                                      0: not known */
} orr_fabric_flows;

enum { ORR_FABRIC_CLASSES = 5 };

typedef struct orr_fabric_view {
    orr_packet_figures figures;
    uint64_t end_ps;    /* of the last column */
    uint64_t column_ps; /* how long a column is; 0: time was not recorded */
    size_t columns;
    const orr_fabric_link *links; /* the busiest first; values: shares of the time in use */
    size_t link_count, links_left_out;
    const double *rest_use;        /* by column: mean of the links left out; NULL: none is */
    const orr_fabric_link *queues; /* the longest first; values: bytes, the most in a column */
    size_t queue_count, queues_left_out;
    const orr_fabric_link *pauses; /* paused longest first; values: shares of the time */
    size_t pause_count, pauses_left_out;
    /* by column: how many were paused, on average; NULL: not recorded */
    const double *paused_ports;
    orr_fabric_flows all,
        classes[ORR_FABRIC_CLASSES]; /* classes: by size, those without flows, too */
    const char *const *notes;        /* storms of pauses, what was skipped */
    size_t note_count;
} orr_fabric_view;

ORR_API void orr_fabric_view_destroy(orr_fabric_view *v); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
