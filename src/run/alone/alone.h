/* SPDX-License-Identifier: Apache-2.0 */
/* alone.h - collectives alone on a machine: what alone_*.c share. */
#ifndef ORR_RUN_ALONE_H
#define ORR_RUN_ALONE_H

#include "base/memory/memory.h"
#include "models/collective/nccl/nccl_parts.h"

#include <orrery/lab/collectives.h>

struct orr_alone {
    orr_machine machine;
    bool has_table;
    nccl_custom table;
};

const orr_alone_op *alone_op_at(size_t index); /* NULL past the last */

/* Placement of `ranks` ranks; 0 as in orr_alone_ask.  oversubscription matters for all-to-all. */
orr_code alone_shape(const orr_machine *m,
                     const orr_alone_op *op,
                     uint32_t ranks,
                     uint32_t per_node,
                     nccl_shape *out,
                     orr_error *err) ORR_MUST_CHECK;

/* ---- the text of nccl-tests (alone_fit.c) ---- */

typedef struct alone_row {
    uint64_t line, bytes;
    double us;
} alone_row;

typedef struct alone_text {
    const orr_alone_op *op; /* NULL: not in the text */
    uint32_t ranks, nodes;  /* 0: not in the text */
    uint32_t per_node;      /* maximum over nodes */
    double bus_over_alg;    /* of its largest row */
    bool reduces;           /* a redop other than "none" */
    bool has_root;
    alone_row *rows;
    size_t count;
} alone_text;

/* The rows live in the arena. */
orr_code alone_read(orr_span bytes,
                    const char *label,
                    orr_arena *arena,
                    alone_text *out,
                    orr_error *err) ORR_MUST_CHECK;

#endif
