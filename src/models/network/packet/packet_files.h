/* SPDX-License-Identifier: Apache-2.0 */
/* packet_files.h - workload of a packet network: flows, triggers between them, link failures
 * (packet-network.md 4.2, docs/format/htsim.md). */
#ifndef ORR_MODELS_PACKET_FILES_H
#define ORR_MODELS_PACKET_FILES_H

#include "models/network/topology/topology.h"

typedef struct orr__flow_line {
    uint32_t src, dst;
    uint64_t bytes;
    double start_s; /* below 0: a trigger starts it */
    uint16_t port;  /* of the destination */
    uint8_t class;
    uint32_t line; /* of the file */
} orr__flow_line;

/* htsim's triggers (docs/format/htsim.md): actions when flows complete. */
typedef enum orr__trigger_kind {
    ORR__TRIGGER_NONE,
    ORR__TRIGGER_ONESHOT,   /* the first time: all of its flows start */
    ORR__TRIGGER_MULTISHOT, /* each time: the next of its flows starts */
    ORR__TRIGGER_BARRIER    /* the needs-th time: all of its flows start */
} orr__trigger_kind;

typedef struct orr__trigger {
    uint64_t id;
    uint8_t kind;            /* orr__trigger_kind */
    uint32_t needs;          /* completions needed by a barrier */
    uint32_t told;           /* number of flows that trigger it */
    uint32_t first, targets; /* its flows, in orr__flow_list.targets */
    uint32_t line;           /* where it is defined, or first referenced */
} orr__trigger;

/* The triggers of a flow: 1 + their numbers in the list; 0: none. */
typedef struct orr__flow_triggers {
    uint32_t starts_at, sent, arrived;
} orr__flow_triggers;

typedef struct orr__flow_list {
    orr__flow_line *lines;
    size_t count, room;
    orr__flow_triggers *by_line; /* NULL: there are no triggers */
    orr__trigger *triggers;
    size_t trigger_count, trigger_room, by_line_room;
    uint32_t *targets;
    const char *path; /* their file, which must outlive them; NULL: none */
    uint32_t surplus; /* the line after the flows announced by the header; 0: none */
} orr__flow_list;

/* The nodes that a line names must be hosts of the cabling. */
orr_code orr__flows_parse(orr__flow_list *f,
                          const orr__cabling *c,
                          orr_span bytes,
                          const char *path,
                          orr_error *err) ORR_MUST_CHECK;
void orr__flows_fini(orr__flow_list *f);

/* A link failure or repair. */
typedef struct orr__link_event {
    uint64_t at_ps;
    uint32_t a, b;
    bool is_up;
    uint32_t line;
} orr__link_event;

typedef struct orr__link_events {
    orr__link_event *events;
    size_t count, room;
} orr__link_events;

/* Lines "time down|up a b", as "50us down 4 7", in any order. */
orr_code orr__link_events_parse(orr__link_events *e,
                                const orr__cabling *c,
                                orr_span bytes,
                                const char *path,
                                orr_error *err) ORR_MUST_CHECK;
orr_code orr__link_events_read(orr__link_events *e,
                               const orr__cabling *c,
                               const char *path,
                               orr_error *err) ORR_MUST_CHECK;
void orr__link_events_fini(orr__link_events *e);

/* Entries that the original ignores in a list of traced nodes. */
typedef struct orr__traced {
    uint64_t absent;      /* entries that are not nodes of the network */
    uint32_t absent_line; /* of the first of them */
    uint32_t surplus;     /* the line after those announced by the header; 0: none */
} orr__traced;

/* The nodes whose packets are traced: "count id id ..."; is_traced has one entry per node. */
orr_code orr__traced_read(const orr__cabling *c,
                          const char *path,
                          bool *is_traced,
                          orr__traced *found,
                          orr_error *err) ORR_MUST_CHECK;

/* ---- htsim's connection matrices: flows, triggers between them, links that fail ---- */

/* A missing link between an aggregation and a core switch. */
typedef struct orr__htsim_failure {
    uint64_t agg, link;
    orr_where where;
} orr__htsim_failure;

typedef struct orr__htsim_cm {
    uint64_t nodes;
    orr__flow_list flows;
    orr__htsim_failure *failures;
    size_t failure_count, failure_room;
} orr__htsim_cm;

bool orr__htsim_is_cm(orr_span bytes); /* and not a flow file of the reference */

/* Nodes are hosts 0 to hosts - 1.  On failure nothing needs to be undone. */
orr_code orr__htsim_cm_parse(orr__htsim_cm *m,
                             uint32_t hosts,
                             orr_span bytes,
                             const char *path,
                             orr_error *err) ORR_MUST_CHECK;
void orr__htsim_cm_fini(orr__htsim_cm *m); /* an all-zero one is empty */

#endif
