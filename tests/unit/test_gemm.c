/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* From shapes to times: arrays, memory, vectors, overhead; the table; reports; sweeps.
 *
 * An array of 4 x 4 that keeps its outputs takes, for each fold of 4 x 4 outputs, k + 4 + 4 - 2
 * cycles, and one more at the end: 8 x 4 by 4 x 4 is two folds of 10, so 21
 * (docs/design/systolic.md). */
#include "check.h"

#include <orrery/lab/gemm.h>

#include <math.h>

#include "base/formats/json.h"
#include "compat/scale_sim/scale_sim.h"

static const orr_hardware plain = {.name = "plain",
                                   .arrays = 1,
                                   .rows = 4,
                                   .columns = 4,
                                   .dataflow = ORR_DATAFLOW_OS,
                                   .clock_hz = 1000000000};

static orr_shapes *shapes_of(const char *text)
{
    orr_shapes *s;
    orr_error err;
    CHECK_OK(
        orr_shapes_parse((orr_span){(const uint8_t *)text, strlen(text)}, "t.csv", NULL, &s, &err),
        &err);
    return s;
}

static orr_gemm *gemm_of(const char *text, const orr_gemm_options *opt)
{
    orr_shapes *s = shapes_of(text);
    orr_gemm *g;
    orr_error err;
    CHECK_OK(orr_gemm_create(s, opt, &g, &err), &err);
    orr_shapes_free(s);
    return g;
}

/* The first layer's forward pass on this hardware, one NPU. */
static orr_gemm_pass forward(const char *text, const orr_hardware *hw)
{
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 1, .hardware = hw};
    orr_gemm *g = gemm_of(text, &opt);
    const orr_gemm_pass p = orr_gemm_layer_at(g, 0)->pass[ORR_PASS_FORWARD];
    orr_gemm_destroy(g);
    return p;
}

TEST(test_gemm__arrays_memory_and_overhead)
{
    orr_hardware hw = plain;
    orr_gemm_pass p = forward("Layer,m,n,k\na,8,4,4\n", &hw);
    CHECK_EQ_U(p.cycles, 21);
    CHECK_EQ_PS(p.time, 21000);
    CHECK_EQ_U(p.products, 8 * 4 * 4);
    CHECK_EQ_U(p.traffic, 2 * (8 * 4 + 4 * 4 + 8 * 4));
    hw.memory_bandwidth = 1000000000; /* a byte a cycle: 160 bytes */
    CHECK_EQ_U(forward("Layer,m,n,k\na,8,4,4\n", &hw).cycles, 160);
    hw.memory_bandwidth = 100000000000;
    hw.overhead = 1000000;
    p = forward("Layer,m,n,k\na,8,4,4\n", &hw);
    CHECK_EQ_U(p.cycles, 1000 + 21);
    CHECK_EQ_U(p.memory_cycles, 2); /* 1.6, rounded up */
}

TEST(test_gemm__several_arrays_share_one_product)
{
    orr_hardware hw = plain;
    hw.arrays = 2;
    CHECK_EQ_U(forward("Layer,m,n,k\na,8,4,4\n", &hw).cycles, 11); /* a fold each */
    hw.arrays = 6; /* 2 x 3 pieces of 4 x 4 outputs */
    CHECK_EQ_U(forward("Layer,m,n,k\na,8,12,4\n", &hw).cycles, 11);
    hw.arrays = 7; /* no better */
    CHECK_EQ_U(forward("Layer,m,n,k\na,8,12,4\n", &hw).cycles, 11);
}

TEST(test_gemm__several_arrays_share_many_products)
{
    orr_hardware hw = plain;
    const char *three = "name,type,batch,m,n,k\na,bmm,3,8,4,4\n";
    CHECK_EQ_U(forward(three, &hw).cycles, 3 * 21);
    hw.arrays = 2; /* each product over both: 3 * 11, better than two rounds of 21 */
    CHECK_EQ_U(forward(three, &hw).cycles, 33);
    hw.arrays = 3; /* one each */
    CHECK_EQ_U(forward("name,type,batch,m,n,k\na,bmm,3,4,4,4\n", &hw).cycles, 11);
    hw.arrays = 6; /* two each */
    CHECK_EQ_U(forward(three, &hw).cycles, 11);
}

TEST(test_gemm__vector_unit_and_masked_products)
{
    orr_hardware hw = plain;
    hw.vector_width = 8;
    /* 8 elements, 7 operations each */
    CHECK_EQ_U(forward("name,type,m,n\na,norm,2,4\n", &hw).cycles, 7);
    /* one head, 4 queries and keys, 10 of 16 pairs: 4 x 4 x 4 takes 11 cycles, of which 10 / 16 are
     * 6.9 */
    hw.vector_width = 0;
    const orr_gemm_pass p =
        forward("name,type,batch,heads,seq_q,head_dim,causal\na,attention,1,1,4,4,1\n", &hw);
    CHECK_EQ_U(p.cycles, 7 + 0 + 7);
    CHECK_EQ_U(p.products, 2 * 64 * 10 / 16);
}

TEST(test_gemm__update_touches_weights)
{
    orr_hardware hw = plain;
    hw.memory_bandwidth = 1000000000;
    orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 1, .hardware = &hw};
    static const uint64_t cycles[] = {3 * 32, 5 * 32, 7 * 32, 0}; /* 16 weights of 2 bytes */
    for (unsigned i = 0; i < 4; i++) {
        opt.update = (orr_gemm_update)i;
        orr_gemm *g = gemm_of("Layer,m,n,k\na,8,4,4\n", &opt);
        CHECK_EQ_U(orr_gemm_layer_at(g, 0)->update_cycles, cycles[i]);
        orr_gemm_destroy(g);
    }
}

TEST(test_gemm__utilisation_is_products_by_elements_and_cycles)
{
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 1, .hardware = &plain};
    orr_gemm *g = gemm_of("Layer,m,n,k\na,4,4,4\n", &opt);
    /* all passes alike: 64 products in 11 cycles of 16 elements */
    const double got = orr_gemm_layer_at(g, 0)->utilisation;
    CHECK(got > 0.36363 && got < 0.36364);
    orr_gemm_destroy(g);
}

/* ---- the table ---- */

static void check_times(orr_gemm_times times, uint64_t clock_hz, uint64_t wanted)
{
    orr_hardware hw = plain;
    orr_error err;
    orr_layers *t;
    hw.clock_hz = clock_hz;
    const orr_gemm_options opt = {
        .policy = ORR_POLICY_DATA, .npus = 1, .hardware = &hw, .times = times};
    orr_gemm *g = gemm_of("Layer,m,n,k\na,8,4,4\n", &opt);
    CHECK_OK(orr_gemm_table(g, &t, &err), &err);
    CHECK_EQ_U(orr_layers_get(t, 0)->forward.time, wanted);
    orr_layers_free(t);
    orr_gemm_destroy(g);
}

TEST(test_gemm__times_are_rounded_and_never_to_nothing)
{
    check_times(ORR_TIMES_CYCLES, 1000000000, 21);
    check_times(ORR_TIMES_NS, 1000000000, 21);
    check_times(ORR_TIMES_US, 1000000000, 1); /* 0.021 us */
    check_times(ORR_TIMES_US, 14000000, 2);   /* 1.5 us */
    check_times(ORR_TIMES_US, 15000000, 1);   /* 1.4 us */
    check_times(ORR_TIMES_BEST, 1000000, 21);
}

TEST(test_gemm__copies_are_numbered)
{
    orr_error err;
    orr_layers *t;
    const orr_gemm_options opt = {
        .policy = ORR_POLICY_HYBRID_CUSTOMIZED, .npus = 2, .hardware = &plain, .repeat = 3};
    orr_gemm *g = gemm_of("Layer,m,n,k,strategy\na,8,4,4,DATA\nb,8,4,4,MODEL\n", &opt);
    CHECK_OK(orr_gemm_table(g, &t, &err), &err);
    CHECK_EQ_U(orr_layers_count(t), 6);
    CHECK_EQ_U(orr_gemm_count(g), 2);
    CHECK_TEXT(orr_layers_get(t, 0)->name.ptr, "a.0");
    CHECK_TEXT(orr_layers_get(t, 5)->name.ptr, "b.2");
    CHECK_EQ(orr_layers_get(t, 5)->policy, ORR_POLICY_MODEL);
    CHECK_TEXT(orr_layers_get(t, 5)->forward.comm.ptr, "ALLGATHER");
    CHECK_EQ_U(orr_layers_get(t, 5)->forward.bytes, 8 * 2 * 2);
    orr_layers_free(t);
    orr_gemm_destroy(g);
}

/* ---- on a chip ---- */

static orr_kernel_time time_of(const orr_chip *chip, const char *text)
{
    orr_kernel k;
    orr_kernel_time t;
    orr_error err;
    CHECK_OK(orr_kernel_parse(orr_str_of(text), &k, &err), &err);
    CHECK(orr_chip_time(chip, &k, &t));
    return t;
}

/* The pass takes as long as these kernels one after the other, each divided by shares. */
static void check_pass(const char *row, int pass, const char *const *kernels, double shares)
{
    const orr_chip *chip = orr_chip_find("a100");
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 1, .chip = chip};
    char table[200];
    snprintf(
        table, sizeof table,
        "name,type,m,n,k,batch,heads,seq_q,head_dim,causal,fused,rows,dim,lookups,h,w,cin,cout,"
        "kh,operands\n%s\n",
        row);
    orr_gemm *g = gemm_of(table, &opt);
    const orr_gemm_pass *p = &orr_gemm_layer_at(g, 0)->pass[pass];
    double us = 0;
    size_t count = 0;
    for (; kernels[count]; count++)
        us += time_of(chip, kernels[count]).us / shares;
    CHECK_EQ_U(p->kernel_count, count);
    CHECK(us > 0 && fabs((double)p->time / 1e6 - us) < 1e-5);
    CHECK(p->low < p->time && p->time < p->high);
    orr_gemm_destroy(g);
}

#define KERNELS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(test_gemm__a_pass_is_its_kernels_on_a_chip)
{
    const char *gemm = "a,gemm,64,128,256,,,,,,,,,,,,,,,";
    check_pass(gemm, 0, KERNELS("gemm bf16 m=64 n=128 k=256"), 1);
    check_pass(gemm, 1, KERNELS("gemm bf16 m=64 n=256 k=128 nn"), 1);
    check_pass(gemm, 2, KERNELS("gemm bf16 m=128 n=256 k=64 tn"), 1);
    const char *unfused = "a,attention,,,,2,4,64,32,1,0,,,,,,,,,";
    check_pass(unfused, 0,
               KERNELS("gemm bf16 batch=8 m=64 n=64 k=32", "softmax bf16 m=512 n=64",
                       "gemm bf16 batch=8 m=64 n=32 k=64 nn"),
               1);
    check_pass(
        "a,attention,,,,2,4,64,32,1,1,,,,,,,,,", 1,
        KERNELS("attention bf16 batch=2 heads=4 kv_heads=4 head=32 q=64 kv=64 causal backward"), 1);
    /* bags: 2 x 3 rows of 4 numbers of 2 bytes are read, 2 written */
    check_pass("a,embedding,,,,2,,,,,,9,4,3,,,,,,", 0,
               KERNELS("elementwise bf16 read=48 write=16 strided"), 1);
    check_pass("a,embedding,,,,2,,,,,,9,4,3,,,,,,", 2, KERNELS("gather bf16 m=6 n=4 backward"), 1);
    const char *conv = "a,conv,,,,2,,,,,,,,,8,8,16,32,1,";
    check_pass(conv, 0, KERNELS("conv bf16 batch=2 n=32 k=16 side=8 window=1 stride=1"), 1);
    for (int pass = 1; pass < 3; pass++)
        check_pass(conv, pass,
                   KERNELS("conv bf16 batch=2 n=32 k=16 side=8 window=1 stride=1 backward"), 2);
    /* gradient and three operands are read, three gradients written: 4 and 3 times 8 x 8 x 2 */
    check_pass("a,elementwise,8,8,,,,,,,,,,,,,,,,3", 1,
               KERNELS("elementwise bf16 read=512 write=384"), 1);
}

TEST(test_gemm__an_update_on_a_chip)
{
    const orr_chip *chip = orr_chip_find("a100");
    static const char *const kernels[] = {"elementwise bf16 read=65536 write=32768",
                                          "elementwise bf16 read=98304 write=65536",
                                          "optimizer bf16 m=16384 k=1 fused"};
    for (unsigned i = 0; i < 3; i++) {
        const orr_gemm_options opt = {
            .policy = ORR_POLICY_DATA, .npus = 1, .chip = chip, .update = (orr_gemm_update)i};
        orr_gemm *g = gemm_of("Layer,m,n,k\na,64,128,128\n", &opt);
        const orr_gemm_layer *l = orr_gemm_layer_at(g, 0);
        CHECK(fabs((double)l->update_time / 1e6 - time_of(chip, kernels[i]).us) < 1e-5);
        orr_gemm_destroy(g);
    }
}

TEST(test_gemm__size_gives_the_type_on_a_chip)
{
    static const struct {
        const char *chip;
        uint32_t bytes;
        orr_kernel_type type;
    } rows[] = {{"h100", 0, ORR_TYPE_BF16}, {"v100", 2, ORR_TYPE_FP16}, {"h100", 1, ORR_TYPE_FP8},
                {"a100", 1, ORR_TYPE_INT8}, {"h100", 4, ORR_TYPE_FP32}, {"h100", 8, ORR_TYPE_FP64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const orr_gemm_options opt = {.policy = ORR_POLICY_DATA,
                                      .npus = 1,
                                      .chip = orr_chip_find(rows[i].chip),
                                      .datatype_bytes = rows[i].bytes};
        orr_gemm *g = gemm_of("Layer,m,n,k\na,64,128,128\n", &opt);
        const orr_gemm_layer *l = orr_gemm_layer_at(g, 0);
        CHECK_EQ(l->pass[0].kernels[0].kernel.type, rows[i].type);
        CHECK_EQ_U(l->weights, 128 * 128 * (rows[i].bytes ? rows[i].bytes : 2));
        orr_gemm_destroy(g);
    }
}

/* ---- what is refused ---- */

static void refuse(const orr_gemm_options *opt, orr_code code, const char *words)
{
    orr_shapes *s = shapes_of("Layer,m,n,k\na,8,4,4\n");
    orr_gemm *g;
    orr_error err;
    CHECK_CODE(orr_gemm_create(s, opt, &g, &err), code, &err);
    CHECK(g == NULL);
    CHECK_SAYS(&err, words);
    orr_shapes_free(s);
}

TEST(test_gemm__refuses_options_that_do_not_go_together)
{
    const orr_systolic_array array = {.rows = 4, .columns = 4};
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_MICRO, .hardware = &plain}, ORR_EUSAGE,
           "MICRO");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_DATA}, ORR_EUSAGE, "hardware and array");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_DATA,
                               .chip = orr_chip_find("h100"),
                               .hardware = &plain},
           ORR_EUSAGE, "one of chip");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_DATA,
                               .chip = orr_chip_find("h100"),
                               .datatype_bytes = 3},
           ORR_EUSAGE, "1, 2, 4 or 8 bytes");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_DATA,
                               .npus = 1,
                               .chip = orr_chip_find("a100"),
                               .has_type = true,
                               .type = ORR_TYPE_FP8},
           ORR_EINPUT, "a100 has no products in fp8");
    refuse(
        &(orr_gemm_options){
            .policy = ORR_POLICY_DATA, .npus = 6, .packages = 4, .hardware = &plain},
        ORR_EUSAGE, "6 NPUs cannot be in 4 packages");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_DATA, .array = &array, .times = ORR_TIMES_US},
           ORR_EUSAGE, "without a clock");
    refuse(
        &(orr_gemm_options){.policy = ORR_POLICY_DATA, .hardware = &plain, .rules = &orr__gemm_v1},
        ORR_EUSAGE, "needs an array");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_HYBRID_CUSTOMIZED, .hardware = &plain},
           ORR_EINPUT, "a strategy for each layer");
    refuse(&(orr_gemm_options){.policy = ORR_POLICY_DATA, .npus = 9, .hardware = &plain},
           ORR_EINPUT, "m of 8 cannot be shared by 9");
}

TEST(test_gemm__too_large_layers_are_errors_with_a_place)
{
    orr_shapes *s = shapes_of("Layer,m,n,k\na,4294967296,4294967295,4294967296\n");
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 1, .hardware = &plain};
    orr_gemm *g;
    orr_error err;
    CHECK_CODE(orr_gemm_create(s, &opt, &g, &err), ORR_EINPUT, &err);
    CHECK_TEXT(err.where.path, "t.csv");
    CHECK_EQ_U(err.where.line, 2);
    CHECK_SAYS(&err, "too large");
    orr_shapes_free(s);
}

/* ---- examples ---- */

static orr_gemm *example(size_t i, orr_policy policy, uint32_t npus)
{
    orr_shapes_example e;
    const orr_gemm_options opt = {.policy = policy,
                                  .npus = npus,
                                  .hardware = orr_hardware_find("tpu-v4"),
                                  .datatype_bytes = 1};
    CHECK(orr_shapes_example_at(i, &e));
    char *text = malloc(e.text.len + 1);
    memcpy(text, e.text.ptr, e.text.len);
    text[e.text.len] = '\0';
    orr_gemm *g = gemm_of(text, &opt);
    free(text);
    return g;
}

static uint64_t weights_of(const orr_gemm *g)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < orr_gemm_count(g); i++)
        sum += orr_gemm_layer_at(g, i)->weights;
    return sum;
}

TEST(test_gemm__resnet50_has_its_weights_and_work)
{
    orr_gemm *g = example(0, ORR_POLICY_DATA, 1);
    uint64_t products = 0;
    for (size_t i = 0; i < orr_gemm_count(g); i++)
        products += orr_gemm_layer_at(g, i)->pass[ORR_PASS_FORWARD].products;
    /* 25,557,032 parameters less 53,120 of norms and 1,000 offsets of the last layer */
    CHECK_EQ_U(weights_of(g), 25502912);
    CHECK_EQ_U(products / 1024, 4089184256); /* 4.09 G an image, as published for version 1.5 */
    orr_gemm_destroy(g);
}

TEST(test_gemm__gpt3_block_has_12_d_squared_weights)
{
    orr_gemm *g = example(1, ORR_POLICY_DATA, 1);
    CHECK_EQ_U(weights_of(g), 12ull * 12288 * 12288 + 4ull * 12288); /* and two norms */
    orr_gemm_destroy(g);
}

TEST(test_gemm__dlrm_has_its_tables_and_networks)
{
    orr_gemm *g = example(2, ORR_POLICY_HYBRID_CUSTOMIZED, 1);
    const uint64_t bottom = 13 * 512 + 512 * 256 + 256 * 128;
    const uint64_t top = 479 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256;
    CHECK_EQ_U(weights_of(g), 26ull * 7853253 * 128 + bottom + top);
    orr_gemm_destroy(g);
}

/* ---- reports ---- */

TEST(test_gemm__reports_say_the_same)
{
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA,
                                  .npus = 1,
                                  .hardware = &plain,
                                  .times = ORR_TIMES_NS,
                                  .program = "test"};
    orr_gemm *g = gemm_of("Layer,m,n,k\na,8,4,4\n", &opt);
    orr_json *j;
    orr_json_value root, v;
    orr_str text;
    orr_error err;
    double number;
    CHECK_OK(orr_gemm_json(g, &text, &err), &err);
    CHECK_OK(orr_json_open((orr_span){(const uint8_t *)text.ptr, text.len}, "json", &j, &err),
             &err);
    CHECK_OK(orr_json_only(j, &root, &err), &err);
    CHECK(orr_json_find(root, "total", &v) && orr_json_find(v, "forward_cycles", &v));
    CHECK_OK(orr_json_get_double(v, &number, &err), &err);
    CHECK(number == 21);
    orr_json_close(j);
    CHECK_OK(orr_gemm_csv(g, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "\n\"a\",gemm,DATA,21,21000,128,160,NONE,0,", 39));
    CHECK_OK(orr_gemm_text(g, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "21.0 ns", 7));
    orr_gemm_destroy(g);
}

TEST(test_gemm__sweep_has_a_cell_for_each_shape_and_dataflow)
{
    orr_shapes *s = shapes_of("Layer,m,n,k\na,8,4,4\n");
    const orr_gemm_options opt = {.policy = ORR_POLICY_DATA, .npus = 1, .hardware = &plain};
    orr_gemm_sweep *w;
    orr_error err;
    orr_str text;
    size_t lines = 0;
    CHECK_OK(orr_gemm_sweep_create(s, &opt, 2, 8, &w, &err), &err);
    CHECK_OK(orr_gemm_sweep_csv(w, &text, &err), &err);
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    CHECK_EQ_U(lines, 1 + 3 * 3 * 3);
    /* 4 x 4, os: forward 21; 8 x 4 by 4 x 4: 21; 4 x 8 by 8 x 4: 15 */
    CHECK(memmem(text.ptr, text.len, "\nos,4,4,57,57000,", 17));
    CHECK_OK(orr_gemm_sweep_text(w, true, &text, &err), &err);
    CHECK(memmem(text.ptr, text.len, "\033[", 2));
    CHECK_OK(orr_gemm_sweep_text(w, false, &text, &err), &err);
    CHECK(!memmem(text.ptr, text.len, "\033[", 2));
    CHECK_OK(orr_gemm_sweep_json(w, &text, &err), &err);
    orr_gemm_sweep_destroy(w);
    CHECK_CODE(orr_gemm_sweep_create(s, &opt, 3, 8, &w, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_gemm_sweep_create(s, &opt, 8, 4, &w, &err), ORR_EUSAGE, &err);
    orr_shapes_free(s);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_gemm__arrays_memory_and_overhead),
        RUN(test_gemm__several_arrays_share_one_product),
        RUN(test_gemm__several_arrays_share_many_products),
        RUN(test_gemm__vector_unit_and_masked_products),
        RUN(test_gemm__update_touches_weights),
        RUN(test_gemm__utilisation_is_products_by_elements_and_cycles),
        RUN(test_gemm__times_are_rounded_and_never_to_nothing),
        RUN(test_gemm__copies_are_numbered),
        RUN(test_gemm__a_pass_is_its_kernels_on_a_chip),
        RUN(test_gemm__an_update_on_a_chip),
        RUN(test_gemm__size_gives_the_type_on_a_chip),
        RUN(test_gemm__refuses_options_that_do_not_go_together),
        RUN(test_gemm__too_large_layers_are_errors_with_a_place),
        RUN(test_gemm__resnet50_has_its_weights_and_work),
        RUN(test_gemm__gpt3_block_has_12_d_squared_weights),
        RUN(test_gemm__dlrm_has_its_tables_and_networks),
        RUN(test_gemm__reports_say_the_same),
        RUN(test_gemm__sweep_has_a_cell_for_each_shape_and_dataflow),
    };
    return RUN_ALL(tests);
}
