/* SPDX-License-Identifier: Apache-2.0 */
/* dtypes.h - data types: what we, PyTorch and nccl-tests call them, and their bits.
 *
 * One row per type.  Which of them a kernel, a model's products or a capture may have is said where
 * those are read; they look names and sizes up here. */
#ifndef ORR_BASE_DTYPES_H
#define ORR_BASE_DTYPES_H

#include <orrery/types.h>

/* Rows that other tables name; the rest is found by name. */
typedef enum orr__dtype_id {
    ORR__BF16,
    ORR__FP16,
    ORR__FP32,
    ORR__FP64,
    ORR__TF32,
    ORR__FP8,
    ORR__FP8_BLOCK,
    ORR__MXFP8,
    ORR__NVFP4,
    ORR__MXFP4,
    ORR__W8A16,
    ORR__W4A16,
    ORR__INT8,
} orr__dtype_id;

typedef struct orr__dtype_row {
    const char *name; /* ours: kernels, models; NULL: none */
    /* PyTorch's: "bfloat16", another word for it, "BFloat16" of traces of profiler and observer,
     * the number in torch/_export/serde/schema.py.  NULL, 0: none. */
    const char *torch, *torch_too, *scalar;
    uint8_t number;
    const char *nccl;  /* of nccl-tests; NULL: none */
    uint8_t bits;      /* of a number */
    double scale_bits; /* of its share of a scale, where scales go with the numbers */
} orr__dtype_row;

const orr__dtype_row *orr__dtype_of(orr__dtype_id id);

/* Bytes of a number, without scales; 0: not known. */
uint32_t orr__dtype_bytes(const orr__dtype_row *row);
uint32_t orr__dtype_torch_bytes(orr_str name);    /* "float32", "torch.float32", "float" */
uint32_t orr__dtype_scalar_bytes(orr_str name);   /* "Float" */
uint32_t orr__dtype_number_bytes(int64_t number); /* 7 */
uint32_t orr__dtype_nccl_bytes(orr_str name);     /* "half" */

#endif
