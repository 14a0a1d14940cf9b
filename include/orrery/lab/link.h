/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - PyTorch's two traces of a rank merged: the host's execution trace (what was called, with
 * which tensors, in which order) and Kineto's device trace (when it ran, where, and what it started
 * on the device).
 *
 *     orr_link *l;
 *     if (orr_link_open("host.json", "device.json", NULL, &l, &err)) return report(&err);
 *     for (int c = 0; c < ORR_LINK_COUNTERS; c++)
 *         show(orr_link_counter_name(c), orr_link_counts_of(l)->of[c]);
 *     if (orr_link_write(l, "linked.json", &err)) return report(&err);
 *     orr_link_close(l);
 *
 * Files may be compressed.  docs/format/linked.md describes the result, docs/design/link.md how the
 * two are matched.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_LINK_H
#define ORRERY_LAB_LINK_H

#include <orrery/lab/pytorch.h>
#include <orrery/set.h>
#include <orrery/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Statistics of linking.  Small defects in large inputs are counted, not printed a million
 * times. */
typedef enum orr_link_counter {
    ORR_LINK_HOST_NODES,    /* nodes of the host trace */
    ORR_LINK_DEVICE_EVENTS, /* elements of traceEvents */
    ORR_LINK_LINKED,        /* host nodes found in the device trace */
    ORR_LINK_PLACED,        /* kernels, copies and fills with a host node */
    ORR_LINK_SYNCS,         /* dependencies of the host on the device */
    ORR_LINK_UNLINKED,      /* host nodes without an operator in the device trace */
    ORR_LINK_UNTRACED,      /* operators of the device trace without a host node */
    ORR_LINK_REPLAYED,      /* device operations of CUDA graphs */
    ORR_LINK_OTHER_KINDS,   /* events of unknown categories: left out */
    /* From here on: defects. */
    ORR_LINK_BAD_EVENTS,         /* events without a name, a timestamp or another required field */
    ORR_LINK_NEGATIVE_TIMES,     /* durations below zero */
    ORR_LINK_DUPLICATE_NODES,    /* host nodes with a duplicate id: the last one counts */
    ORR_LINK_DUPLICATE_LAUNCHES, /* calls with a duplicate correlation: the first one counts */
    ORR_LINK_NO_LAUNCH,          /* device operations whose launch is not in the trace */
    ORR_LINK_NO_PARENT,          /* device operations launched outside any operator */
    ORR_LINK_NO_ROOT,            /* host nodes that do not descend from the process node */
    ORR_LINK_LATER_PARENTS,      /* host nodes whose parent does not precede them, as in a cycle */
    ORR_LINK_OTHER_NAMES,        /* pairs of host node and operator with different names */
    ORR_LINK_NEW_SCHEMA,         /* the host trace has an unknown schema version: 1 */
    ORR_LINK_COUNTERS
} orr_link_counter;

ORR_API const char *orr_link_counter_name(orr_link_counter c); /* "negative_times" */
ORR_API const char *orr_link_counter_help(orr_link_counter c); /* "durations below zero" */
ORR_API bool orr_link_counter_is_trouble(orr_link_counter c);

typedef struct orr_link_counts {
    uint64_t of[ORR_LINK_COUNTERS];
    orr_pytorch_later later_nodes[ORR_PYTORCH_SHOWN]; /* the first with ORR_LINK_LATER_PARENTS */
    char other_kinds[160]; /* categories of ORR_LINK_OTHER_KINDS, "a, b"; as many as fit */
} orr_link_counts;

typedef struct orr_link_options {
    /* Link and write as another program does, and refuse what it refuses (<orrery/lab/compat.h>);
     * NULL: as we do. */
    const struct orr_rules_link *rules;
    bool is_strict;    /* the first defect is an error */
    bool has_step;     /* only this step; else everything recorded */
    int64_t step;      /* its number: N of ProfilerStep#N */
    unsigned threads;  /* of a job: ranks in parallel; 0: one per core */
    double host_scale; /* of a job's traces, as in orr_pytorch_options */
} orr_link_options;

typedef struct orr_link orr_link;

/* Read both traces and link them.  One of the two paths may be NULL.  opt may be NULL. */
ORR_API orr_code orr_link_open(const char *host,
                               const char *device,
                               const orr_link_options *opt,
                               orr_link **out,
                               orr_error *err) ORR_MUST_CHECK;
/* The same from memory, which must stay valid until close; messages call them "host" and
 * "device". */
ORR_API orr_code orr_link_parse(const orr_span *host,
                                const orr_span *device,
                                const orr_link_options *opt,
                                orr_link **out,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_link_close(orr_link *l); /* NULL is fine */

ORR_API const orr_link_counts *orr_link_counts_of(const orr_link *l);
/* The linked trace as JSON; a name that ends in .gz or .zst is compressed; "-" is standard
 * output. */
ORR_API orr_code orr_link_write(const orr_link *l, const char *path, orr_error *err) ORR_MUST_CHECK;

/* ---- all ranks of a job ----
 *
 *     const char *const paths[] = {"traces/"};
 *     orr_link_job *job;
 *     if (orr_link_job_open(paths, 1, NULL, &job, &err)) return report(&err);
 *     if (orr_link_job_set(job, &set, &err) || orr_set_save(set, "job.orr", NULL, &err)) return report(&err);
 *     orr_link_job_close(job);
 */
typedef struct orr_link_job orr_link_job;

typedef struct orr_link_rank {
    uint32_t rank;
    /* its traces do not record the rank: taken from the order of names */
    bool is_guessed;
    const char *host, *device; /* paths; NULL: it has none */
    orr_link_counts counts;
    orr_pytorch_report report; /* of the conversion */
    bool is_aligned;           /* its clock was compared with that of another rank, */
    uint64_t shared;           /* using this many collectives; */
    int64_t clock_ns;          /* added to its times, gives rank 0's clock */
} orr_link_rank;

/* Paths of host and device traces in any order, or of folders with them; the kind of a file and its
 * rank are taken from its content.  opt may be NULL; always by our rules. */
ORR_API orr_code orr_link_job_open(const char *const *paths,
                                   size_t count,
                                   const orr_link_options *opt,
                                   orr_link_job **out,
                                   orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_link_job_close(orr_link_job *job); /* NULL is fine */

ORR_API uint32_t orr_link_job_rank_count(const orr_link_job *job);
ORR_API const orr_link_rank *orr_link_job_rank(const orr_link_job *job, uint32_t i);
ORR_API const orr_link *orr_link_job_link(const orr_link_job *job, uint32_t i);
/* Traces ready for simulation, with communicator groups; made on the first call, owned by the
 * job. */
ORR_API orr_code orr_link_job_set(orr_link_job *job,
                                  const orr_set **out,
                                  orr_error *err) ORR_MUST_CHECK;
/* The same, but the caller closes it; the job has none afterwards. */
ORR_API orr_code orr_link_job_take_set(orr_link_job *job,
                                       orr_set **out,
                                       orr_error *err) ORR_MUST_CHECK;
/* Collectives whose group was inferred by comparing ranks; known after orr_link_job_set. */
ORR_API uint64_t orr_link_job_inferred(const orr_link_job *job);
/* Collectives of a single rank whose group is not recorded, in a job that has groups of some of its
 * ranks: assumed to span all ranks.  Linking all ranks at once finds the group. */
ORR_API uint64_t orr_link_job_unknown(const orr_link_job *job);
/* The measured timeline, all ranks on one clock: sealed, owned by the caller. */
ORR_API orr_code orr_link_job_timeline(const orr_link_job *job,
                                       orr_timeline **out,
                                       orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
