/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* fuzz_shapes.c - any bytes as a table of shapes, in our form and in the old generator's.  What is
 * refused must have a place and words; what is taken is costed, shared out in different ways, and
 * becomes a table. */
#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/gemm.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_error(const orr_error *err)
{
    require(err->message[0] && err->where.path[0]);
}

static void make(const orr_shapes *s, const orr_gemm_options *opt)
{
    orr_gemm *g;
    orr_layers *t;
    orr_str text;
    orr_error err;
    if (orr_gemm_create(s, opt, &g, &err)) {
        check_error(&err);
        return;
    }
    for (size_t i = 0; i < orr_gemm_count(g); i++) {
        const orr_gemm_layer *l = orr_gemm_layer_at(g, i);
        require(l->name.len > 0 || opt->rules != NULL);
        require(l->imbalance >= -1e-9 && l->utilisation >= 0 && l->utilisation <= 1 + 1e-9);
    }
    require(orr_gemm_table(g, &t, &err) == ORR_OK);
    require(orr_layers_count(t) == orr_gemm_count(g));
    require(orr_gemm_text(g, &text, &err) == ORR_OK && orr_gemm_json(g, &text, &err) == ORR_OK &&
            orr_gemm_csv(g, &text, &err) == ORR_OK);
    orr_layers_free(t);
    orr_gemm_destroy(g);
}

/* On chips: of wide and narrow types, with and without products in them. */
static void make_on_chips(const orr_shapes *s)
{
    static const char *const chips[] = {"h200", "v100", "tpu-v5e"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        make(s, &(orr_gemm_options){.policy = i ? ORR_POLICY_DATA : ORR_POLICY_MODEL,
                                    .npus = 1 + 2 * (uint32_t)i,
                                    .datatype_bytes = 1u << i,
                                    .update = i ? ORR_UPDATE_ADAM : ORR_UPDATE_SGD,
                                    .chip = orr_chip_find(chips[i])});
}

static void read_ours(orr_span bytes)
{
    static const orr_policy policies[] = {ORR_POLICY_DATA, ORR_POLICY_HYBRID_DATA_MODEL,
                                          ORR_POLICY_HYBRID_CUSTOMIZED};
    orr_shapes *s;
    orr_error err;
    if (orr_shapes_parse(bytes, "shapes.csv", NULL, &s, &err)) {
        require(!s);
        check_error(&err);
        return;
    }
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        make(s, &(orr_gemm_options){.policy = policies[i],
                                    .npus = 1 + 3 * (uint32_t)i,
                                    .packages = i == 1 ? 2 : 1,
                                    .hardware = orr_hardware_at(i * 5)});
    make_on_chips(s);
    orr_shapes_free(s);
}

static void read_old(orr_span bytes, bool has_policies)
{
    static const orr_systolic_array array = {
        .rows = 12, .columns = 14, .dataflow = ORR_DATAFLOW_WS};
    const orr_shapes_options opt = {.rules = &orr__gemm_v2, .needs_policies = has_policies};
    orr_shapes *s;
    orr_error err;
    if (orr_shapes_parse(bytes, "shapes.csv", &opt, &s, &err)) {
        require(!s);
        check_error(&err);
        return;
    }
    make(s, &(orr_gemm_options){.rules = has_policies ? &orr__gemm_v1 : &orr__gemm_v2,
                                .policy = has_policies ? ORR_POLICY_HYBRID_CUSTOMIZED
                                                       : ORR_POLICY_HYBRID_MODEL_DATA,
                                .npus = 6,
                                .packages = 3,
                                .array = &array});
    orr_shapes_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const orr_span bytes = {data, size};
    read_ours(bytes);
    read_old(bytes, false);
    read_old(bytes, true);
    return 0;
}
