/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* fuzz_scalesim_layout.c - any bytes as SCALE-Sim v3's table of layouts.  What is refused must have a place and words;
 * with what is taken a small product is run on banks that lie so, or that is refused with words. */
#include "fuzz_trace.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/scalesim.h>

static const char config_text[] =
    "[general]\nrun_name = demo\n[architecture_presets]\nArrayHeight: 3\nArrayWidth: 4\n"
    "IfmapSramSzkB: 1\nFilterSramSzkB: 1\nOfmapSramSzkB: 1\nIfmapOffset: 0\n"
    "FilterOffset: 10000000\nOfmapOffset: 20000000\nBandwidth : 5\nDataflow : ws\n"
    "ReadRequestBuffer: 32\nWriteRequestBuffer: 32\n"
    "[layout]\nIfmapCustomLayout: True\nIfmapSRAMBankBandwidth: 8\nIfmapSRAMBankNum: 2\n"
    "IfmapSRAMBankPort: 1\nFilterCustomLayout: True\nFilterSRAMBankBandwidth: 8\n"
    "FilterSRAMBankNum: 4\nFilterSRAMBankPort: 2\n"
    "[run_presets]\nInterfaceBandwidth: USER\nUseRamulatorTrace: False\n";
static const char layers_text[] = "Layer, M, N, K,\nQKT, 4, 3, 5,\n";

static orr_span bytes_of(const char *text, size_t size)
{
    return (orr_span){(const uint8_t *)text, size - 1};
}

static void run(const orr_scalesim_config *c, const orr_scalesim_network *n)
{
    const orr_scalesim_options opt = {.rules = &orr__scale_sim_v3};
    orr_scalesim *r;
    orr_str text;
    orr_error err = {0};
    if (orr_scalesim_run(c, n, &opt, &r, &err)) {
        REQUIRE(err.message[0]);
        return;
    }
    REQUIRE(orr_scalesim_json(r, &text, &err) == ORR_OK && text.len);
    orr_scalesim_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static orr_scalesim_config config;
    static orr_scalesim_network *layers;
    const orr_scalesim_read as = {.rules = &orr__scale_sim_v3, .form = ORR_SCALESIM_GEMM};
    orr_error err = {0};
    if (!layers)
        REQUIRE(!orr_scalesim_parse_config(bytes_of(config_text, sizeof config_text), "a.cfg",
                                           &config, &err) &&
                !orr_scalesim_parse_network(bytes_of(layers_text, sizeof layers_text), "gemm.csv",
                                            &as, &layers, &err));
    if (size > 1 << 12)
        return 0;
    orr_scalesim_config c = config;
    if (orr_scalesim_read_layout(fuzz_file(0, data, size), &c.array.layout, &err))
        REQUIRE(err.message[0] && err.where.path[0]);
    else
        run(&c, layers);
    return 0;
}
