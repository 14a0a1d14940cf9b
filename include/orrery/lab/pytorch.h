/* SPDX-License-Identifier: Apache-2.0 */
/* pytorch.h - a linked PyTorch trace (what host and device of one rank did) converted to a trace
 * that can be simulated.
 *
 *     orr_linked *l;
 *     orr_trace *t;
 *     if (orr_linked_read("linked.json", NULL, &l, &err)) return report(&err);
 *     if (orr_linked_trace(l, NULL, &t, NULL, &err)) return report(&err);
 *     orr_linked_free(l);
 *
 * docs/format/linked.md describes the file and the conversion. */
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

/* From a file ("-": standard input; plain or compressed) or from memory, which must stay valid
 * until free; label is used in messages.  A host trace that was never linked is fine too.  opt may
 * be NULL. */
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
    bool has_rank; /* messages use this as their own rank; else the one recorded in the trace */
    uint32_t rank;
    /* Start times count from here, on the clock of the trace; else from its first event. */
    bool has_origin;
    int64_t origin_ns;
    /* Factor for host times; 0: as recorded; below 0: estimated, to undo the profiler's
     * overhead. */
    double host_scale;
} orr_pytorch_options;

/* Origin of the host time factor. */
typedef enum orr_host_how {
    ORR_HOST_AS_RECORDED,
    ORR_HOST_GIVEN,
    ORR_HOST_UNKNOWN,     /* too few views in the trace for an estimate: as recorded */
    ORR_HOST_COMPUTES,    /* no device in the trace, operators compute: as recorded */
    ORR_HOST_BY_LAUNCHES, /* from operators, launches and the cost of recording them */
} orr_host_how;

typedef struct orr_pytorch_host {
    orr_host_how how;
    double scale, low, high; /* the factor, and the range in which the estimate is trusted */
    uint64_t operators, launches;
    uint64_t recorded_ns; /* self time of all operators, if it was estimated */
    /* of that, at least the time spent recording operators, if it was estimated */
    uint64_t added_ns;
} orr_pytorch_host;

/* At most this many nodes are named in a report. */
enum { ORR_PYTORCH_SHOWN = 8 };
typedef struct orr_pytorch_later {
    uint64_t node, parent; /* ids */
} orr_pytorch_later;

/* What was found, and oddities: each of these is something missing or wrong in the trace, and what
 * was done instead. */
typedef struct orr_pytorch_report {
    uint64_t host_nodes, device_nodes;
    orr_pytorch_host host;
    uint64_t collectives, messages;
    uint64_t one_sided; /* kernels of DeepEP, NVSHMEM and the like: take the measured time */
    /* kernels that send and receive for no known call: assumed all-to-all */
    uint64_t kinds_unknown;
    uint64_t sizes_unknown; /* communication without a size: 0 bytes */
    /* messages without a peer: replaced by a delay of the measured time */
    uint64_t peers_unknown;
    uint64_t parents_missing; /* nodes whose parent does not exist: they become roots */
    uint64_t parents_later;   /* nodes whose parent does not precede them: likewise; */
    orr_pytorch_later later_nodes[ORR_PYTORCH_SHOWN]; /* the first of these */
    uint64_t durations_negative;                      /* taken as 0 */
    uint64_t dependencies_missing;                    /* on nodes that do not exist: left out, */
    uint64_t dependencies_refused;                    /* as are those that contradict the clock */
    uint64_t dependencies_circular;                   /* and those that would form a cycle */
} orr_pytorch_report;

/* The trace of the rank, by the rules with which l was read.  opt and report may be NULL. */
ORR_API orr_code orr_linked_trace(const orr_linked *l,
                                  const orr_pytorch_options *opt,
                                  orr_trace **out,
                                  orr_pytorch_report *report,
                                  orr_error *err) ORR_MUST_CHECK;

/* The log of the program whose rules l was read with when it simulates the trace (chakra_converter
 * --simulate), one call per line, without newline.  ORR_EUSAGE: that program cannot. */
typedef void (*orr_line_sink)(void *sink, const char *line);
ORR_API orr_code orr_linked_simulate(const orr_linked *l,
                                     orr_line_sink say,
                                     void *sink,
                                     orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
