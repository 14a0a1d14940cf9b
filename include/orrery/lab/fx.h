/* SPDX-License-Identifier: Apache-2.0 */
/* fx.h - a training step captured from PyTorch, as traces of all ranks of the job.
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
 * A capture (docs/format/capture.md) has the operators and collectives of a few ranks.  The other
 * ranks are derived from those: docs/design/capture.md. */
#ifndef ORRERY_LAB_FX_H
#define ORRERY_LAB_FX_H

#include <orrery/lab/chip.h>
#include <orrery/set.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orr_fx orr_fx;

/* What orrery_capture.py wrote, or the passes of a graph as PyTorch's FX prints them; plain or
 * compressed; "-" is standard input.  world_size: ranks of the job; 0: from the file.  A capture
 * with another world size is an error; a printed graph has none. */
ORR_API orr_code orr_fx_read(const char *path, uint32_t world_size, orr_fx **out, orr_error *err)
    ORR_MUST_CHECK;
/* The same from memory, which may be freed afterwards; label is used in messages. */
ORR_API orr_code orr_fx_parse(orr_span bytes,
                              const char *label,
                              uint32_t world_size,
                              orr_fx **out,
                              orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_fx_close(orr_fx *c); /* NULL is fine */

/* With a chip, compute nodes get the durations of their kernels on it, at the clock that the power
 * draw of the whole step permits.  With a peak instead: the longer of arithmetic and memory time,
 * plus the overhead. */
typedef struct orr_fx_options {
    const orr_chip *chip;
    double peak_flops;   /* per second */
    double vector_flops; /* per second, for operations other than products; 0: never the limit */
    orr_Bps memory_rate; /* 0: never the limit */
    orr_ps overhead;     /* per node */
} orr_fx_options;

/* An operator missing from the table of costs: its bytes count, its FLOPs are unknown. */
typedef struct orr_fx_unknown {
    orr_str name;
    uint64_t count; /* calls, of all captured ranks */
} orr_fx_unknown;

/* A remark about a capture, such as a value that had to be assumed. */
typedef struct orr_fx_note {
    orr_str text;
    uint64_t count;
} orr_fx_note;

/* Memory of a device at its peak. */
typedef struct orr_fx_memory {
    uint64_t peak;
    uint64_t parameters, buffers, gradients, optimizer, activations; /* their sum is the peak */
} orr_fx_memory;

/* Of one captured rank. */
typedef struct orr_fx_rank_report {
    uint32_t rank;
    uint32_t like; /* the first captured rank with the same work; itself if it is the first */
    uint32_t ranks_like_it; /* ranks of the job with the same work; 0 where `like` is another */
    uint64_t calls;         /* captured operators */
    uint64_t nodes;         /* nodes in the resulting trace */
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
    void *owner; /* private */
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
