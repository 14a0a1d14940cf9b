/* SPDX-License-Identifier: Apache-2.0 */
/* atlas.h - what the files of this folder share. */
#ifndef ORR_MODELS_ATLAS_H
#define ORR_MODELS_ATLAS_H

#include <orrery/lab/chip.h>

/* Time of one launch, without the interval: what the chip's peaks and stated efficiencies give. */
double atlas_roofline_us(const orr_chip *chip, const orr_kernel *k, double *clock_share);

#endif
