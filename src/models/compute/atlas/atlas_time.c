/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_time.c - the time of a kernel on a chip, and how sure it is. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

static bool is_product(const orr_kernel *k)
{
    switch (k->kind) {
    case ORR_KERNEL_GEMM:
    case ORR_KERNEL_GROUPED:
    case ORR_KERNEL_MOE:
    case ORR_KERNEL_ATTENTION:
    case ORR_KERNEL_DECODE:
    case ORR_KERNEL_CONV:
        return true;
    default:
        return false;
    }
}

bool orr_chip_time(const orr_chip *chip, const orr_kernel *k, orr_kernel_time *out)
{
    if (orr_kernel_check(k, NULL))
        return false;
    if (is_product(k) && chip->peak_tflops[k->type] <= 0)
        return false;
    const double times = k->count ? (double)k->count : 1;
    double share = 0;
    const double us = times * atlas_roofline_us(chip, k, &share);
    const double wide = chip->source ? 1.8 : 2.2;
    *out = (orr_kernel_time){.us = us,
                             .low_us = us / wide,
                             .high_us = us * wide,
                             .extrapolates = true,
                             .basis = "roofline",
                             .clock_share = share,
                             .launches = k->count < UINT32_MAX ? (uint32_t)times : UINT32_MAX};
    return true;
}
