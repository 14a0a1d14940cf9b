/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_true.h - our own rules: what their files share (docs/design/systolic.md). */
#ifndef ORR_MODELS_SYSTOLIC_TRUE_H
#define ORR_MODELS_SYSTOLIC_TRUE_H

#include "systolic_impl.h"

/* Stalls, first and last cycles, and what goes to and from memory. */
void orr__systolic_true_memory(const orr__systolic *s, orr_systolic_result *out);

#endif
