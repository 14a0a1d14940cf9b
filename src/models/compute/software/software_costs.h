/* SPDX-License-Identifier: Apache-2.0 */
/* software_costs.h - what a preset makes of a kernel: time of its host, and older kernels. */
#ifndef ORR_MODELS_SOFTWARE_COSTS_H
#define ORR_MODELS_SOFTWARE_COSTS_H

#include <orrery/lab/chip.h>
#include <orrery/lab/software.h>

/* What its host needs to issue a kernel, with the operators round it that launch nothing;
 * microseconds.  has_grads: a graph of gradients is built on the way. */
double orr__software_host_us(const orr_software *s, const orr_kernel *k, bool has_grads);
/* How many times as long as the best kernel of its kind the one takes that it launches. */
double orr__software_slowdown(const orr_software *s, const orr_chip *chip, const orr_kernel *k);
/* How much more power it draws for the same operations than the best one. */
double orr__software_draw(const orr_software *s, const orr_chip *chip, const orr_kernel *k);

#endif
