/* SPDX-License-Identifier: Apache-2.0 */
/* operators.h - a captured step compared with a measurement of the same step: operators, FLOPs,
 * bytes, times.
 *
 *     orr_fx *capture;
 *     orr_operators *o;
 *     if (orr_fx_read("step.json.gz", 0, &capture, &err)) return report(&err);
 *     if (orr_operators_compare(capture, "measured.csv", NULL, NULL, &o, &err)) return report(&err);
 *     printf("%.1f %%\n", 100.0 * (double)o->matched / (double)o->calls[1]);
 *     orr_operators_free(o);
 *     orr_fx_close(capture);
 *
 * The measurement is a table of operators (docs/format/operators.md), a host trace or a trace of
 * PyTorch's profiler. FLOPs of both sides come from the same table of costs
 * (docs/design/operators.md), those of the measured side from the shapes that were recorded.
 * docs/design/capture.md says which operators count as the same. Experimental: may change in the
 * next release. */
#ifndef ORRERY_LAB_OPERATORS_H
#define ORRERY_LAB_OPERATORS_H

#include <orrery/lab/fx.h>
#include <orrery/lab/hardware.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All calls of one operator; [0] is captured, [1] measured. */
typedef struct orr_operator_row {
    orr_str name;
    uint64_t calls[2];
    uint64_t matched; /* calls present in both */
    uint64_t alike;   /* of these, with equal shapes, as far as recorded */
    uint64_t flops[2];
    uint64_t bytes[2];
    orr_ps time;      /* measured, of its kernels; those of operators inside it included */
    orr_ps predicted; /* of the captured calls; 0 without hardware */
} orr_operator_row;

/* One operator with one list of shapes whose count differs. */
typedef struct orr_operator_gap {
    orr_str name;
    orr_str shapes; /* 256x768|768; empty: scalars, or not recorded */
    uint64_t calls[2];
    const char *why;
} orr_operator_gap;

typedef struct orr_operators {
    const orr_operator_row *rows; /* the most time first, then the most FLOPs */
    size_t row_count;
    const orr_operator_gap *gaps; /* by name, then by shapes */
    size_t gap_count;
    uint64_t calls[2]; /* without views and allocations */
    uint64_t matched, alike;
    uint64_t views[2];
    uint64_t flops[2];
    uint64_t flops_matched; /* of the measured ones */
    uint64_t bytes[2];
    bool has_bytes; /* the measurement has element sizes and outputs */
    bool has_times;
    /* Measured calls without recorded shapes: their FLOPs are unknown. */
    uint64_t without_shapes;
    orr_ps time; /* measured, of all kernels */
    orr_ps time_matched;
    bool has_hardware;
    orr_ps predicted; /* of all captured operators, sequentially */
    orr_ps launches;  /* of that, the overhead per call; on a chip part of its kernels: 0 */
    struct orr__operators_store *store;
} orr_operators;

/* Predictions are those of convert fx on the chip, or else on the design hw; both NULL: none.  Of
 * several captured ranks the first counts. */
ORR_API orr_code orr_operators_compare(const orr_fx *captured,
                                       const char *measured,
                                       const orr_chip *chip,
                                       const orr_hardware *hw,
                                       orr_operators **out,
                                       orr_error *err) ORR_MUST_CHECK;
/* The same with the measurement in memory; label is used in messages. */
ORR_API orr_code orr_operators_compare_bytes(const orr_fx *captured,
                                             orr_span measured,
                                             const char *label,
                                             const orr_chip *chip,
                                             const orr_hardware *hw,
                                             orr_operators **out,
                                             orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_operators_free(orr_operators *o); /* NULL is fine */

typedef struct orr_operators_style {
    const char *program; /* name and version for JSON: "orrery 0.1.0"; NULL: omitted */
    const char *captured, *measured;
    size_t most; /* most operators and gaps shown; 0: all */
} orr_operators_style;

/* *out lives as long as o. */
ORR_API orr_code orr_operators_text(const orr_operators *o,
                                    const orr_operators_style *style,
                                    orr_str *out,
                                    orr_error *err) ORR_MUST_CHECK;
ORR_API orr_code orr_operators_json(const orr_operators *o,
                                    const orr_operators_style *style,
                                    orr_str *out,
                                    orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
