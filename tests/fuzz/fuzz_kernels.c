/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_kernels.c - any bytes as a list of kernels in words, as tables of measured kernels have them.  What is refused
 * has words; what is taken reads back from its own text, and every chip times it with a number or says that it
 * cannot. */
#include <orrery/lab/chip.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_KERNELS = 8 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_times(const orr_kernel *k)
{
    const orr_chip *chip;
    for (size_t i = 0; (chip = orr_chip_at(i)); i++) {
        orr_kernel_time t;
        if (orr_chip_time(chip, k, &t))
            require(isfinite(t.us) && t.us > 0);
    }
}

static void check_text(const orr_kernel *k)
{
    char a[ORR_KERNEL_TEXT], b[ORR_KERNEL_TEXT];
    orr_kernel again;
    orr_error err;
    const size_t len = orr_kernel_text(k, a, sizeof a);
    require(len < sizeof a);
    require(orr_kernel_parse((orr_str){a, len}, &again, &err) == ORR_OK);
    require(orr_kernel_text(&again, b, sizeof b) == len && memcmp(a, b, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_str list = {(const char *)data, size};
    orr_kernel k;
    orr_error err = {0};
    orr_code code = ORR_OK;
    for (int i = 0; i < MOST_KERNELS && !(code = orr_kernel_next(&list, &k, &err)); i++) {
        const orr_kernel_work w = orr_kernel_count(&k);
        require(isfinite(w.flops) && w.flops >= 0 && w.read >= 0 && w.write >= 0);
        require(orr_kernel_check(&k, &err) == ORR_OK);
        check_text(&k);
        check_times(&k);
    }
    require(!code || code == ORR_END || (code == ORR_EINPUT && err.message[0]));
    return 0;
}
