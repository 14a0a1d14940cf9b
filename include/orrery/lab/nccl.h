/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - from Nsight exports of a job that uses NCCL to a GOAL schedule: every collective
 * expanded into the messages of its algorithm and protocol.
 *
 *     orr_nccl_options opt = {.output = "out.goal", .simple_table = "simple.json", .ll_table = "ll.json"};
 *     orr_nccl_report report;
 *     const char *paths[] = {"traces"};                        // files, or folders of *.sqlite
 *     if (orr_nccl_convert(paths, 1, &opt, &report, &err)) return report_error(&err);
 *
 * docs/design/nccl_goal.md describes the conversion and where the rules of nccl_generator_v2 differ
 * from ours.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_NCCL_H
#define ORRERY_LAB_NCCL_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What another generator does differently. */
typedef struct orr_rules_nccl orr_rules_nccl;

typedef struct orr_nccl_options {
    const char *output;       /* a .goal file, or "-"; NULL: none, figures only */
    const char *events;       /* the schedule of whole NCCL calls, not expanded; NULL: none */
    const char *parts;        /* a folder: rank_<r>.goal for each rank; NULL: none */
    const char *simple_table; /* NPKit timings, JSON; NULL: reductions and copies take no time */
    const char *ll_table;     /* NULL: simple_table */
    const char *log;          /* output of NCCL_DEBUG=INFO; NULL: none */
    /* Merge the streams of each GPU into one if none of their operations overlap; on all GPUs or
     * none. */
    bool is_merged;
    const orr_rules_nccl *rules; /* NULL: ours; orrery/lab/compat.h has nccl_generator_v2's */
    bool allows_unmatched;       /* sends without a receive are counted, not refused */
    bool shows_progress;         /* on stderr, when that is a terminal */
    bool has_seed;               /* timings are drawn from the samples; else they are their means */
    uint64_t seed;
    uint32_t tag_bits; /* 32: tags stay below 2^32 - 1 and are reused if necessary; 0: up to 64 */
    uint32_t id_width; /* decimal digits of the message's number in a tag; 0: as many as needed */
    uint32_t context_width; /* decimal digits of the operation's */
    /* CSV, communicator,call,context: with rules whose tags have contexts; NULL: none. */
    const char *contexts;
    uint64_t memory; /* bytes of rows kept before GPUs are read one after another; 0: 512 MiB */
    /* MSCCL or MSCCL++ plans, comma-separated: used for the collectives they fit */
    const char *plans;
} orr_nccl_options;

typedef struct orr_nccl_report {
    uint32_t files, gpus, ranks, communicators;
    uint64_t rows, calls, kernels;
    uint64_t operations; /* lines of the schedule: sends, receives, calculations */
    uint64_t messages, bytes;
    uint64_t left_out_calls; /* without details, or not profiled on all of their ranks */
    uint64_t overlaps;  /* operations of one stream that overlapped: the time between them is 0 */
    uint64_t unmatched; /* messages */
    uint64_t by_time;   /* GPUs whose kernels were matched by time, not by stream */
    uint64_t most_tag;
    uint64_t planned; /* collectives, per rank, covered by a plan */
    bool is_merged;
    bool is_inferred; /* communicators: no marker announced one */
} orr_nccl_report;

/* Writes nothing on failure.  report may be NULL. */
ORR_API orr_code orr_nccl_convert(const char *const *paths,
                                  size_t path_count,
                                  const orr_nccl_options *opt,
                                  orr_nccl_report *report,
                                  orr_error *err) ORR_MUST_CHECK;

/* NPKit's timing table: duration in ns of a reduction or copy by size. */
typedef struct orr_npkit orr_npkit;
ORR_API orr_code orr_npkit_read(const char *path, orr_npkit **out, orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_npkit_parse(orr_span bytes, const char *path, orr_npkit **out, orr_error *err)
    ORR_MUST_CHECK;
ORR_API void orr_npkit_free(orr_npkit *t); /* NULL is fine */

typedef enum orr_npkit_what { ORR_NPKIT_REDUCE = 0, ORR_NPKIT_COPY = 1 } orr_npkit_what;
typedef enum orr_npkit_how {
    ORR_NPKIT_MEAN = 0, /* of the samples; linear between two sizes */
    ORR_NPKIT_FIRST,    /* the first sample of a size if there is one, else as above */
    ORR_NPKIT_DRAWN     /* a sample, or near that line; reproducible for seed, size and table */
} orr_npkit_how;
typedef struct orr_npkit_choice {
    orr_npkit_how how;
    uint64_t seed;
} orr_npkit_choice;
ORR_API uint64_t orr_npkit_time(const orr_npkit *t,
                                orr_npkit_what what,
                                const orr_npkit_choice *choice,
                                uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
