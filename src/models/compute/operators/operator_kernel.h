/* SPDX-License-Identifier: Apache-2.0 */
/* operator_kernel.h - the kernels that one call of a PyTorch operator launches on a GPU, in the
 * words of chip.h. */
#ifndef ORR_SOURCES_OPERATOR_KERNEL_H
#define ORR_SOURCES_OPERATOR_KERNEL_H

#include "operator_table.h"

#include <orrery/lab/chip.h>

enum { OPERATOR_KERNELS = 4 }; /* the most that one call is written as */

/* Their number; 0: the call is no kernel that chip.h has a word for. */
size_t orr__operator_kernels(const operator_call *call,
                             const operator_name *name,
                             const operator_row *row,
                             const operator_cost *cost,
                             orr_kernel out[OPERATOR_KERNELS]);

#endif
