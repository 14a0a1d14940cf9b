/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hardware.c - any bytes as a hardware file.  What is refused must have a place and words;
 * what is taken is written and read again, and a product is costed on it. */
#include <orrery/lab/gemm.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void read_again(const orr_hardware *hw)
{
    char text[1000], again[1000];
    orr_hardware copy;
    orr_error err;
    const size_t n = orr_hardware_text(hw, text, sizeof text);
    require(n < sizeof text);
    require(orr_hardware_parse((orr_span){(const uint8_t *)text, n}, "again", &copy, &err) ==
            ORR_OK);
    require(orr_hardware_text(&copy, again, sizeof again) == n && memcmp(text, again, n) == 0);
}

static void compute(const orr_hardware *hw)
{
    static const char table[] = "Layer,m,n,k\na,1000,300,77\n";
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 4, .hardware = hw};
    orr_shapes *s;
    orr_gemm *g;
    orr_error err;
    require(orr_shapes_parse((orr_span){(const uint8_t *)table, sizeof table - 1}, "t.csv", NULL,
                             &s, &err) == ORR_OK);
    if (orr_gemm_create(s, &opt, &g, &err))
        require(err.message[0]);
    else
        require(orr_gemm_layer_at(g, 0)->pass[0].cycles > 0);
    orr_gemm_destroy(g);
    orr_shapes_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    orr_hardware hw;
    orr_error err;
    if (orr_hardware_parse((orr_span){data, size}, "chip.yml", &hw, &err)) {
        require(err.message[0] && err.where.path[0]);
        return 0;
    }
    require(hw.rows && hw.columns && hw.arrays && hw.clock_hz);
    read_again(&hw);
    compute(&hw);
    return 0;
}
