/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* fuzz_scalesim_csv.c - any bytes as SCALE-Sim's table of layers, as each program reads it.  What
 * is refused must have a place and words; small networks are run, and every report written into
 * memory. */
#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/scalesim.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_LAYERS = 20, MOST_WORK = 20000 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_small(const orr_scalesim_network *n)
{
    double work = 0;
    for (size_t i = 0; i < orr_scalesim_network_count(n); i++) {
        const orr_systolic_layer *l = &orr_scalesim_network_at(n, i)->layer;
        require(l->filter_height <= l->ifmap_height && l->filter_width <= l->ifmap_width);
        require(l->channels && l->filters && l->stride_height && l->stride_width);
        work += (double)l->ifmap_height * (double)l->ifmap_width * (double)l->filter_height *
                (double)l->filter_width * (double)l->channels * (double)l->filters;
    }
    return orr_scalesim_network_count(n) <= MOST_LAYERS && work <= MOST_WORK;
}

static void run(const orr_scalesim_network *n, const orr_rules_systolic *rules)
{
    const orr_scalesim_config config = {.interface = ORR_INTERFACE_CALC,
                                        .array = {.rows = 5,
                                                  .columns = 3,
                                                  .ifmap_words = 128,
                                                  .filter_words = 128,
                                                  .ofmap_words = 128,
                                                  .filter_offset = 1000,
                                                  .ofmap_offset = 2000,
                                                  .bandwidth = rules == NULL ? 2 : 0}};
    const orr_scalesim_options opt = {.rules = rules};
    orr_scalesim *r;
    orr_str text;
    orr_error err;
    if (orr_scalesim_run(&config, n, &opt, &r, &err)) {
        require(err.message[0] && err.where.path[0]);
        return;
    }
    require(orr_scalesim_text(r, &text, &err) == ORR_OK && text.len);
    require(orr_scalesim_csv(r, &text, &err) == ORR_OK && text.len);
    require(orr_scalesim_json(r, &text, &err) == ORR_OK && text.len);
    orr_scalesim_destroy(r);
}

static void read_as(orr_span bytes, const orr_rules_systolic *rules, orr_scalesim_form form)
{
    const orr_scalesim_read opt = {.rules = rules, .form = form};
    orr_scalesim_network *n;
    orr_error err;
    if (orr_scalesim_parse_network(bytes, "fuzz.csv", &opt, &n, &err)) {
        require(!n && err.message[0] && err.where.path[0]);
        return;
    }
    if (is_small(n))
        run(n, rules);
    orr_scalesim_network_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span bytes = {data, size};
    read_as(bytes, NULL, ORR_SCALESIM_ANY);
    read_as(bytes, &orr__scale_sim_v1, ORR_SCALESIM_ANY);
    read_as(bytes, &orr__scale_sim_v2, ORR_SCALESIM_CONV);
    read_as(bytes, &orr__scale_sim_v2, ORR_SCALESIM_GEMM);
    return 0;
}
