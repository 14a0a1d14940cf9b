/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.h - a linked PyTorch trace (what host and device of one rank did) made into a trace that
 * can be simulated.
 *
 *     orr_linked *l;
 *     orr_trace *t;
 *     if (orr_linked_read("linked.json", NULL, &l, &err)) return report(&err);
 *     if (orr_linked_trace(l, NULL, &t, NULL, &err)) return report(&err);
 *     orr_linked_free(l);
 *
 * docs/format/linked.md has the form of the file and what becomes of it. */
#ifndef ORRERY_LAB_PYTORCH_H
#define ORRERY_LAB_PYTORCH_H

#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_linked orr_linked;

typedef struct orr_linked_options {
    /* Read and convert as another program does, defects included (<orrery/lab/compat.h>); NULL: as
     * we do. */
    const struct orr_rules_convert *rules;
} orr_linked_options;

/* From a file ("-": standard input; plain or compressed) or from memory, which must stay until
 * free; label stands in messages.  A host trace that was never linked is fine too.  opt may be
 * NULL. */
ORR_API orr_code orr_linked_read(const char *path,
                                 const orr_linked_options *opt,
                                 orr_linked **out,
                                 orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_linked_parse(orr_span bytes,
                                  const char *label,
                                  const orr_linked_options *opt,
                                  orr_linked **out,
                                  orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_linked_free(orr_linked *l); /* NULL is fine */

typedef struct orr_pytorch_options {
    bool has_rank; /* messages name this rank as their own; else what the trace says of itself */
    uint32_t rank;
    /* Start times count from here, on the clock of the trace; else from its first event. */
    bool has_origin;
    int64_t origin_ns;
    /* Host times are multiplied by this; 0: as recorded; below 0: by what is estimated to undo
     * the profiler's own overhead. */
    double host_scale;
} orr_pytorch_options;

/* Where the factor of host times is from. */
typedef enum orr_host_how {
    ORR_HOST_AS_RECORDED,
    ORR_HOST_GIVEN,
    ORR_HOST_UNKNOWN,     /* too few views in the trace to estimate it: as recorded */
    ORR_HOST_COMPUTES,    /* no device in the trace, operators compute: as recorded */
    ORR_HOST_BY_LAUNCHES, /* from operators, launches and what recording them cost */
} orr_host_how;

typedef struct orr_pytorch_host {
    orr_host_how how;
    double scale, low, high; /* the factor, and the range in which the estimate is trusted */
    uint64_t operators, launches;
    uint64_t recorded_ns; /* of all operators, without what is inside them; if it was estimated */
    uint64_t added_ns;    /* of these, what writing operators down took at least; likewise */
} orr_pytorch_host;

/* At most this many nodes are named in a report. */
enum { ORR_PYTORCH_SHOWN = 8 };
typedef struct orr_pytorch_later {
    uint64_t node, parent; /* ids */
} orr_pytorch_later;

/* What was found, and what was odd about it: each of the latter is something that the trace does
 * not say, or says wrongly, and what was done instead. */
typedef struct orr_pytorch_report {
    uint64_t host_nodes, device_nodes;
    orr_pytorch_host host;
    uint64_t collectives, messages;
    uint64_t one_sided;       /* kernels of DeepEP, NVSHMEM and the like: as long as was measured */
    uint64_t kinds_unknown;   /* kernels that send and receive for no known call: all-to-all */
    uint64_t sizes_unknown;   /* communication without a size: 0 bytes */
    uint64_t peers_unknown;   /* messages without a peer: a pause as long as was measured */
    uint64_t parents_missing; /* nodes whose parent is not there: they stand by themselves */
    uint64_t parents_later;   /* nodes whose parent does not come before them: likewise; */
    orr_pytorch_later later_nodes[ORR_PYTORCH_SHOWN]; /* the first of these */
    uint64_t durations_negative;                      /* taken as 0 */
    uint64_t dependencies_missing;                    /* on nodes that are not there: left out, */
    uint64_t dependencies_refused;                    /* as are those that contradict the clock */
    uint64_t dependencies_circular; /* and those that would make a node wait for itself */
} orr_pytorch_report;

/* The trace of the rank, by the rules with which l was read.  opt and report may be NULL. */
ORR_API orr_code orr_linked_trace(const orr_linked *l,
                                  const orr_pytorch_options *opt,
                                  orr_trace **out,
                                  orr_pytorch_report *report,
                                  orr_error *err) ORR_MUST_CHECK;

/* The lines that the program whose rules l was read with logs when it plays the trace through
 * (chakra_converter --simulate), one call for each, without its end.  ORR_EUSAGE: that program does
 * not. */
typedef void (*orr_line_sink)(void *sink, const char *line);
ORR_API orr_code orr_linked_simulate(const orr_linked *l,
                                     orr_line_sink say,
                                     void *sink,
                                     orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
