/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h - run flows over a network of hosts and switches, packet by packet.
 *
 *     orr_packet_options opt = {.config = "config.txt", .flows = "flow.txt"};
 *     orr_packet *p;
 *     if (orr_packet_create(&opt, &p, &err) || orr_packet_run(p, &err) || orr_packet_commit(p, &err))
 *         return report(&err);
 *     printf("%" PRIu64 " packets\n", orr_packet_result(p)->data_packets);
 *     orr_packet_destroy(p);
 *
 * The files are those of ASTRA-sim's ns-3 back end (docs/format/packet.md).  For traces, the same
 * network is the model "packet" of run.h. */
#ifndef ORR_PACKET_H
#define ORR_PACKET_H

#include <orrery/error.h>
#include <orrery/lab/fabric_view.h>
#include <orrery/network.h>
#include <orrery/types.h>

typedef struct orr_packet orr_packet;

typedef struct orr_packet_options {
    const char *config;   /* config.txt; NULL: defaults, and fct.txt is written */
    const char *topology; /* instead of its TOPOLOGY_FILE; of any kind (topology.h) */
    const char *flows;    /* instead of its FLOW_FILE; or htsim's .cm */
    const char *fct, *pfc, *qlen, *trace; /* instead of its output files; NULL: those, "": none */
    const char *keys; /* keys and values as in config.txt, which override it; NULL: none */
    const struct orr_rules_packet *rules; /* NULL: ours; others: orrery/lab/compat.h */
    /* 0: one per core if the network is large; results do not depend on it */
    unsigned threads;
    bool shows_progress;
    uint64_t max_events; /* stops there, with ORR_ESTOP; 0: no limit */
    bool wants_history;  /* records links and queues over time, for orr_packet_view */
    const char *program; /* name and version for results; NULL: omitted */
} orr_packet_options;

/* On failure *out is NULL. */
orr_code orr_packet_create(const orr_packet_options *opt,
                           orr_packet **out,
                           orr_error *err) ORR_MUST_CHECK;
void orr_packet_destroy(orr_packet *p); /* NULL is fine; files not committed never appear */

/* Until all flows complete.  A stall is an error that says who waits (orr_packet_stall). */
orr_code orr_packet_run(orr_packet *p, orr_error *err) ORR_MUST_CHECK;
/* One event; ORR_END: none is left. */
orr_code orr_packet_step(orr_packet *p, orr_error *err) ORR_MUST_CHECK;
/* orr_packet_run returns ORR_ESTOP soon, and may be called again to continue.  Safe in a signal
 * handler and from another thread. */
void orr_packet_stop(orr_packet *p);
/* Commits the output files. */
orr_code orr_packet_commit(orr_packet *p, orr_error *err) ORR_MUST_CHECK;

const orr_packet_figures *orr_packet_result(const orr_packet *p);
/* After a stall: which flows wait for what, line by line; NULL after the last. */
const char *orr_packet_stall(const orr_packet *p, size_t line);
/* Oddities in the inputs that are not errors; NULL past the last. */
const char *orr_packet_warning(const orr_packet *p, size_t line);

/* A file that was read. */
typedef struct orr_packet_input {
    const char *what; /* "configuration", "topology", "flows" */
    const char *path;
    char hash[36]; /* MurmurHash3, 128 bits; "": it cannot be reread */
    uint64_t bytes;
} orr_packet_input;
/* The i-th file that was read; false: there is none. */
bool orr_packet_file_at(const orr_packet *p, size_t i, const char **what, const char **path);
/* Reads it again for its hash.  ORR_END past the last. */
orr_code orr_packet_input_at(const orr_packet *p, size_t i, orr_packet_input *out, orr_error *err)
    ORR_MUST_CHECK;

/* Data for the report; over time, if requested.  Also for an unfinished run. */
orr_code orr_packet_view(const orr_packet *p, orr_fabric_view **out, orr_error *err) ORR_MUST_CHECK;

/* A short table, or one JSON object; to a file or "-". */
orr_code orr_packet_write_text(const orr_packet *p,
                               const char *path,
                               orr_error *err) ORR_MUST_CHECK;
orr_code orr_packet_write_json(const orr_packet *p,
                               const char *path,
                               orr_error *err) ORR_MUST_CHECK;

#endif
