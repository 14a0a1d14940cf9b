/* SPDX-License-Identifier: Apache-2.0 */
/* dtypes.h - PyTorch's element types, under the three names that its files give them. */
#ifndef ORR_TRACE_DTYPES_H
#define ORR_TRACE_DTYPES_H

#include <orrery/types.h>

/* Bytes of an element; 0: not known. */
uint32_t orr__dtype_bytes(orr_str name);          /* "float32", "torch.float32", "float" */
uint32_t orr__dtype_scalar_bytes(orr_str name);   /* "Float": traces of profiler and observer */
uint32_t orr__dtype_number_bytes(int64_t number); /* 7: torch/_export/serde/schema.py */

#endif
