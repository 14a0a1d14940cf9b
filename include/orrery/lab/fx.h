/* SPDX-License-Identifier: Apache-2.0 */
/* fx.h - a training step captured from PyTorch, made into the traces of all ranks of the job.
 *
 *     orr_fx *capture;
 *     if (orr_fx_read("step.json.gz", 0, &capture, &err)) return report(&err);
 *     orr_fx_report r;
 *     orr_set *set;
 *     if (orr_fx_convert(capture, NULL, &set, &r, &err)) return report(&err);
 *     ...
 *     orr_fx_report_fini(&r);
 *     orr_fx_close(capture);
 *
 * A capture (docs/format/capture.md) has the operators and collectives of a few ranks.  The ranks
 * that were not run follow from those that were: docs/design/capture.md. */
#ifndef ORRERY_LAB_FX_H
#define ORRERY_LAB_FX_H

#include <orrery/lab/chip.h>
#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_fx orr_fx;

/* What orrery_capture.py wrote, or the passes of a graph as PyTorch's FX prints them; plain or
 * compressed; "-" is standard input.  world_size: ranks of the job; 0: as the file says.  A capture
 * that says something else is an error; a printed graph does not say it. */
ORR_API orr_code orr_fx_read(const char *path, uint32_t world_size, orr_fx **out, orr_error *err)
    ORR_MUST_CHECK;
/* The same from memory, which may go afterwards; label stands in messages. */
ORR_API orr_code orr_fx_parse(orr_span bytes,
                              const char *label,
                              uint32_t world_size,
                              orr_fx **out,
                              orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_fx_close(orr_fx *c); /* NULL is fine */

/* With a chip, compute nodes get the durations of their kernels on it, at the clock that the whole
 * step leaves it.  With a peak instead: the longer of arithmetic and memory, and the overhead. */
typedef struct orr_fx_options {
    const orr_chip *chip;
    double peak_flops;   /* a second */
    double vector_flops; /* a second, of what is no product; 0: never the limit */
    orr_Bps memory_rate; /* 0: memory is never the limit */
    orr_ps overhead;     /* of each node */
} orr_fx_options;

/* An operator that the table of costs does not have: its bytes count, its arithmetic is not
 * known. */
typedef struct orr_fx_unknown {
    orr_str name;
    uint64_t count; /* calls, of all captured ranks */
} orr_fx_unknown;

/* Something to know about a capture: a value that was made up, say. */
typedef struct orr_fx_note {
    orr_str text;
    uint64_t count;
} orr_fx_note;

/* What a device holds: at the moment when it holds most. */
typedef struct orr_fx_memory {
    uint64_t peak;
    uint64_t parameters, buffers, gradients, optimizer, activations; /* their sum is the peak */
} orr_fx_memory;

/* Of one captured rank. */
typedef struct orr_fx_rank_report {
    uint32_t rank;
    uint32_t like; /* the first captured rank that does the same; itself: it is the first */
    uint32_t ranks_like_it; /* how many ranks of the job do the same; 0 where like is another */
    uint64_t calls;         /* operators that were captured */
    uint64_t nodes;         /* that became of them */
    uint64_t views;         /* calls that move no data, folded away */
    uint64_t setup;         /* calls before the step, left out */
    uint64_t flops, bytes_read, bytes_written;
    uint64_t collectives, collective_bytes; /* as comm_size counts */
    uint64_t sends, receives, send_bytes;
    orr_fx_memory memory;
} orr_fx_rank_report;

typedef struct orr_fx_report {
    uint32_t world_size, class_count;
    const orr_fx_rank_report *ranks; /* one for each captured rank, in the order of ranks */
    size_t rank_count;
    const orr_fx_unknown *unknown; /* by name */
    size_t unknown_count;
    const orr_fx_note *notes; /* of the capture */
    size_t note_count;
    void *owner; /* what it is made of */
} orr_fx_report;

ORR_API orr_code orr_fx_convert(const orr_fx *c,
                                const orr_fx_options *opt, /* NULL: all defaults */
                                orr_set **out,
                                orr_fx_report *report, /* may be NULL */
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_fx_report_fini(orr_fx_report *r);

#ifdef __cplusplus
}
#endif
#endif
