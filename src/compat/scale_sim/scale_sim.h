/* SPDX-License-Identifier: Apache-2.0 */
/* scale_sim.h - the rules of SCALE-Sim v1 to v3 and of the generator of text workloads that used
 * them. */
#ifndef ORR_COMPAT_SCALE_SIM_H
#define ORR_COMPAT_SCALE_SIM_H

#include "base/memory/buffer.h"
#include "base/text/number.h"

#include <orrery/lab/gemm.h>
#include <orrery/lab/systolic.h>

extern const orr_rules_systolic orr__scale_sim_v1, orr__scale_sim_v2, orr__scale_sim_v3;
extern const orr_rules_gemm orr__gemm_v1, orr__gemm_v2;

/* As Python prints a float. */
static inline void ss_put_double(orr_buf *b, double v)
{
    char text[ORR_NUMBER_ROOM];
    orr_buf_add(b, text, orr_double_text(v, text));
}

#endif
