/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_fit.h - constants of the NCCL model from measured times.
 *
 *     nccl_constants k = nccl_table[NCCL_HOPPER];
 *     nccl_fit(rows, count, &k);
 *
 * What the rows say nothing about stays as it was. */
#ifndef ORR_MODELS_NCCL_FIT_H
#define ORR_MODELS_NCCL_FIT_H

#include "models/collective/nccl/nccl_parts.h"

#include <stddef.h>

typedef struct nccl_row {
    nccl_shape shape;
    orr_collective kind;
    bool is_message; /* not a collective: one rank to another */
    uint64_t bytes;
    double ns; /* measured, above 0 */
    bool left_out;
} nccl_row;

void nccl_fit(const nccl_row *rows, size_t count, nccl_constants *k);

/* The constants that a fit may change: what tables of results call them, "us" or "" for a plain
 * number, and their value (ns where the unit is us). */
size_t nccl_knobs(void);
const char *nccl_knob_name(size_t i);
const char *nccl_knob_unit(size_t i);
double nccl_knob(const nccl_constants *k, size_t i);

/* Measured over modelled; 0: the model has no answer. */
double nccl_ratio(const nccl_row *row, const nccl_constants *k);

#endif
