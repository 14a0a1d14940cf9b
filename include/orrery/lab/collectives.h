/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.h - how long a collective takes on an idle machine, and a machine's constants fitted
 * to measurements.
 *
 *     orr_alone *a;
 *     if (orr_alone_open(&machine, &a, &err)) return report(&err);
 *     orr_alone_ask ask = {.op = orr_alone_op_find("all_reduce"), .bytes = 1 << 30};
 *     orr_alone_time t;
 *     if (!orr_alone_time_of(a, &ask, &t, &err))
 *         printf("%.1f us (%.1f-%.1f), %s %s\n", t.ns / 1e3, t.low_ns / 1e3, t.high_ns / 1e3,
 *                t.algorithm, t.protocol);
 *     orr_alone_close(a);
 *
 * The model is that of NCCL (docs/design/nccl_model.md); docs/format/collectives.md has the table
 * that a machine may name instead of "nccl". */
#ifndef ORRERY_LAB_COLLECTIVES_H
#define ORRERY_LAB_COLLECTIVES_H

#include <orrery/error.h>
#include <orrery/lab/machine.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An operation as nccl-tests names and counts it. */
typedef struct orr_alone_op {
    const char *name; /* "all_reduce" */
    orr_collective kind;
    bool is_message; /* sendrecv: each rank to the next */
    bool reduces;    /* it has a redop */
    bool has_root;
    bool in_parts; /* its buffer has one part per rank, and "count" is that of a part */
} orr_alone_op;

ORR_API const orr_alone_op *orr_alone_op_find(const char *name); /* NULL: there is none */
/* Bytes of a number of a type, as nccl-tests names it: "bfloat16"; 0: there is none. */
ORR_API uint32_t orr_alone_type_bytes(const char *type);
/* Bus bandwidth over algorithm bandwidth: 2 (n - 1) / n of an all-reduce. */
ORR_API double orr_alone_bus_factor(const orr_alone_op *op, uint32_t ranks);

/* ---- times ---- */

typedef struct orr_alone orr_alone;

typedef struct orr_alone_ask {
    const orr_alone_op *op;
    orr_bytes bytes;       /* as nccl-tests counts "size" */
    uint32_t ranks;        /* 0: all devices of the machine */
    uint32_t per_node;     /* ranks per node; 0: nodes are filled one after the other */
    const char *algorithm; /* NULL: NCCL's choice */
    const char *protocol;
    uint32_t channels; /* 0: NCCL's choice */
    bool collnet;      /* NCCL_COLLNET_ENABLE=1: use switches that reduce between nodes */
} orr_alone_ask;

typedef struct orr_alone_time {
    const char *algorithm, *protocol;
    uint32_t channels, ranks, nodes;
    double ns, low_ns, high_ns; /* 90 % */
    double latency_ns;          /* the part independent of bytes */
    double up_bytes, out_bytes; /* largest load of a rank's port and of its NIC, one direction */
    bool extrapolates;          /* the shape or size is outside the measured range */
} orr_alone_time;

/* Reads the table that the machine names.  A machine with collectives: none is refused. */
ORR_API orr_code orr_alone_open(const orr_machine *m,
                                orr_alone **out,
                                orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_alone_close(orr_alone *a); /* NULL is fine */
/* ORR_EUSAGE: more ranks than the machine has, or an algorithm that cannot do it. */
ORR_API orr_code orr_alone_time_of(const orr_alone *a,
                                   const orr_alone_ask *ask,
                                   orr_alone_time *out,
                                   orr_error *err) ORR_MUST_CHECK;

/* ---- calibration ---- */

typedef struct orr_calibration orr_calibration;

ORR_API orr_code orr_calibration_open(const orr_machine *m,
                                      orr_calibration **out,
                                      orr_error *err) ORR_MUST_CHECK;
ORR_API void orr_calibration_close(orr_calibration *c); /* NULL is fine */
/* The output of a program of nccl-tests ("-": standard input).  op NULL: taken from the text;
 * ranks, per_node 0: taken from its device list. */
ORR_API orr_code orr_calibration_add_nccl_tests(orr_calibration *c,
                                                const char *path,
                                                const orr_alone_op *op,
                                                uint32_t ranks,
                                                uint32_t per_node,
                                                orr_error *err) ORR_MUST_CHECK;

/* One constant changed by the fit. */
typedef struct orr_calibration_item {
    const char *name, *unit; /* "Simple step", "us" */
    double before, value;
    double low, high; /* 90 %, from fits that each leave out a fifth of the rows */
} orr_calibration_item;

typedef struct orr_calibration_row {
    const char *path;
    uint64_t line;
    const orr_alone_op *op;
    uint32_t ranks, nodes;
    orr_bytes bytes;
    double us, before_us, model_us, low_us, high_us;
} orr_calibration_row;

typedef struct orr_calibration_result {
    const orr_calibration_item *items;
    size_t item_count;
    const orr_calibration_row *rows;
    size_t row_count;
    double before, after, held_out; /* mean absolute relative error of the time */
    double worst;                   /* worst row, after */
    double covered;                 /* share of the rows inside the interval when left out */
    const char *table;              /* the file for `collectives` */
    size_t table_length;
} orr_calibration_result;

/* At least 8 rows.  The result lives as long as the calibration. */
ORR_API orr_code orr_calibration_fit(orr_calibration *c,
                                     const orr_calibration_result **out,
                                     orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
