/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chip_file.c - any bytes as the file of a measured chip (orrery calibrate kernels).  What is refused has a place
 * and words; a chip that is taken times a kernel of each kind in some positive number of microseconds. */
#include "fuzz_trace.h"

#include <orrery/lab/chip.h>

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kernels[] = {"gemm bf16 m=512 n=512 k=512",
                                          "norm bf16 m=4096 n=4096 rms",
                                          "copy read=1000000 write=1000000"};
    orr_chip chip;
    orr_kernel k;
    orr_kernel_time t;
    orr_error err = {0};
    if (size > 1 << 14)
        return 0;
    if (orr_chip_parse((orr_span){data, size}, "chip.yml", &chip, &err)) {
        REQUIRE(err.message[0] && err.where.path[0]);
        return 0;
    }
    REQUIRE(chip.name && chip.base);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (orr_kernel_parse(orr_str_of(kernels[i]), &k, &err) == ORR_OK &&
            orr_chip_time(&chip, &k, &t))
            REQUIRE(isfinite(t.us) && t.us > 0);
    return 0;
}
