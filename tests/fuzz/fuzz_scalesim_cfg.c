/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* fuzz_scalesim_cfg.c - any bytes as SCALE-Sim's configuration.  What is refused must have a place
 * and words; what is taken is an array that a small layer can be run on. */
#include "fuzz_ways.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/scalesim.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const orr_rules_systolic *const all_rules[] = {NULL, &orr__scale_sim_v1,
                                                          &orr__scale_sim_v2};
    const orr_systolic_layer layer = {9, 7, 3, 2, 2, 5, 2, 2};
    orr_scalesim_config c;
    orr_systolic_result r;
    orr_error err;
    if (orr_scalesim_parse_config((orr_span){data, size}, "fuzz.cfg", &c, &err)) {
        require(err.message[0] && err.where.path[0]);
        return 0;
    }
    require(c.array.rows >= 1 && c.array.columns >= 1 && c.array.ifmap_words >= 1024);
    require((c.interface == ORR_INTERFACE_USER) == (c.array.bandwidth > 0));
    FUZZ_WAYS(k, 3, data, size)
    if (orr_systolic_run(&c.array, &layer, all_rules[k], &r, &err))
        require(err.message[0]);
    return 0;
}
