/* SPDX-License-Identifier: Apache-2.0 */
/* software_costs.h - effects of a software preset on a kernel: host time, and older kernels. */
#ifndef ORR_MODELS_SOFTWARE_COSTS_H
#define ORR_MODELS_SOFTWARE_COSTS_H

#include <orrery/lab/chip.h>
#include <orrery/lab/software.h>

/* Host time to issue a kernel, including surrounding operators that launch nothing; microseconds.
 * has_grads: an autograd graph is built. */
double orr__software_host_us(const orr_software *s, const orr_kernel *k, bool has_grads);
/* Slowdown of its kernel relative to the best of its kind. */
double orr__software_slowdown(const orr_software *s, const orr_chip *chip, const orr_kernel *k);
/* Power draw for the same operations relative to the best kernel. */
double orr__software_draw(const orr_software *s, const orr_chip *chip, const orr_kernel *k);

#endif
