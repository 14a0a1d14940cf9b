/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_view.h - traffic of a network of links, queues and flows, over time and in total: figures
 * only.
 *
 * The packet network makes one (orr_run_fabric_view), the report draws it (report.h).  Time is
 * divided into columns of equal length, the last of which may be shorter; a list has one value
 * per column.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_FABRIC_VIEW_H
#define ORRERY_LAB_FABRIC_VIEW_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Totals of a packet network. */
typedef struct orr_packet_figures {
    uint32_t hosts, switches, links;
    uint64_t flows, flows_done;
    uint64_t data_packets, data_bytes; /* bytes without headers, including retransmissions */
    uint64_t acks, nacks, timeouts, retransmitted_bytes;
    uint64_t pauses, resumes; /* PFC frames received */
    uint32_t paused_ports;    /* ports that received one */
    /* packets: marked by ECN; dropped for lack of buffer; lost on the wire */
    uint64_t marked, dropped, lost;
    uint64_t trimmed;                   /* packets cut to their headers for lack of buffer */
    uint64_t max_rtt_ns, max_bdp_bytes; /* over all pairs of hosts; 0: too many to measure */
    uint64_t finished_at_ps;            /* when the last flow was done */
    uint64_t fct_min_ps, fct_max_ps, fct_sum_ps; /* of completed flows */
    uint64_t events;
    uint64_t skips, skipped_ps; /* APPROX: how often time was skipped, and how much of it */
} orr_packet_figures;

/* One direction of one link: a port and the wire that leads away from it. */
typedef struct orr_fabric_link {
    const char *name; /* "switch8.3 -> 2": port 3 of switch 8, to host 2 */
    uint64_t bits_per_second, bytes;
    uint64_t busy_ps, paused_ps; /* sending; paused for some class */
    uint64_t pauses;
    orr_bytes longest_queue;
    const double *values; /* per column, see the list it is in; NULL: not recorded */
} orr_fabric_link;

enum { ORR_FABRIC_TIMES = 41 };

/* Flows of one class of sizes.  Percentiles are those of the nearest rank; with very many flows
 * they may be off by less than 1 %. */
typedef struct orr_fabric_flows {
    orr_bytes above, up_to; /* flow size: more than `above`, at most `up_to`; up_to 0: no limit */
    uint64_t flows;         /* completed */
    orr_bytes bytes;
    uint64_t fct_ps[ORR_FABRIC_TIMES]; /* shortest, then the 2.5 %, 5 % ... 100 % quantiles */
    uint64_t fct_p99_ps;
    double slowdown_p50, slowdown_p95, slowdown_p99,
        slowdown_max; /* FCT over ideal FCT, at least 1;
                       * 0: not known */
} orr_fabric_flows;

enum { ORR_FABRIC_CLASSES = 5 };

typedef struct orr_fabric_view {
    orr_packet_figures figures;
    uint64_t end_ps;    /* of the last column */
    uint64_t column_ps; /* length of a column; 0: time was not recorded */
    size_t columns;
    const orr_fabric_link *links; /* the busiest first; values: shares of the time in use */
    size_t link_count, links_left_out;
    const double *rest_use;        /* per column: mean over the links left out; NULL: none are */
    const orr_fabric_link *queues; /* the longest first; values: bytes, the most in a column */
    size_t queue_count, queues_left_out;
    const orr_fabric_link *pauses; /* paused longest first; values: shares of the time */
    size_t pause_count, pauses_left_out;
    /* per column: mean number of paused ports; NULL: not recorded */
    const double *paused_ports;
    orr_fabric_flows all,
        classes[ORR_FABRIC_CLASSES]; /* classes: by size, including those without flows */
    const char *const *notes;        /* pause storms, skipped periods */
    size_t note_count;
} orr_fabric_view;

ORR_API void orr_fabric_view_destroy(orr_fabric_view *v); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
