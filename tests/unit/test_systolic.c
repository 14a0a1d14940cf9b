/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
#include "check.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/systolic.h>

static orr_error err;

static const orr_systolic_array small = {.rows = 4,
                                         .columns = 4,
                                         .ifmap_words = 1024,
                                         .filter_words = 1024,
                                         .ofmap_words = 1024,
                                         .filter_offset = 10000000,
                                         .ofmap_offset = 20000000};

static uint64_t cycles_of(const orr_systolic_array *a,
                          const orr_systolic_layer *l,
                          const orr_rules_systolic *rules)
{
    uint64_t cycles = 0;
    CHECK_OK(orr_systolic_cycles(a, l, rules, &cycles, &err), &err);
    return cycles;
}

/* scale-sim.md 9: what users of the old generator published for its example, google.cfg (256 x 256,
 * weights stay), data parallel on 16 NPUs: forward pass and gradient of the weights of 1024x128x512
 * and of 1024x512x512. */
TEST(test_systolic__published_figures_of_v2)
{
    const orr_systolic_array google = {.rows = 256, .columns = 256, .dataflow = ORR_DATAFLOW_WS};
    const struct {
        uint64_t m, n, k, cycles;
    } passes[] = {
        {64, 128, 512, 1659}, /* 2 folds of 64 + 2 * 256 + 256 - 2, the last cycle's number */
        {512, 128, 64, 1277}, /* 1 of 512 + ... */
        {64, 512, 512, 3319}, /* 4 folds */
        {512, 512, 64, 2555}, /* 2 folds */
    };
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        const orr_systolic_layer l = orr_systolic_gemm(passes[i].m, passes[i].n, passes[i].k);
        CHECK_EQ_U(cycles_of(&google, &l, &orr__scale_sim_v2), passes[i].cycles);
    }
}

/* v1, os, one fold: T + columns - 1 until the first row leaves, then a row a cycle. */
TEST(test_systolic__one_fold_of_v1)
{
    const orr_systolic_layer l = orr_systolic_gemm(3, 2, 10);
    orr_systolic_array a = small;
    CHECK_EQ_U(cycles_of(&a, &l, &orr__scale_sim_v1), 10 + 2 - 1 + 3);
    a.dataflow = ORR_DATAFLOW_WS; /* windows of 4, 4 and 2: 2 * rows + columns + pixels each */
    CHECK_EQ_U(cycles_of(&a, &l, &orr__scale_sim_v1), 2 * 10 + 3 * (2 + 3));
    a.dataflow = ORR_DATAFLOW_IS; /* 2 * rows + filters + columns - 1 */
    CHECK_EQ_U(cycles_of(&a, &l, &orr__scale_sim_v1), 2 * 10 + 3 * (2 + 3 - 1));
}

/* All that fits is read once; v1 counts one read more for each of the 14 - 1 cycles that read. */
TEST(test_systolic__counts_of_one_fold)
{
    const orr_systolic_layer l = orr_systolic_gemm(3, 2, 10);
    orr_systolic_result r;
    CHECK_OK(orr_systolic_run(&small, &l, &orr__scale_sim_v1, &r, &err), &err);
    CHECK_EQ_U(r.dram[ORR_OPERAND_IFMAP].words, 30);
    CHECK_EQ_U(r.dram[ORR_OPERAND_FILTER].words, 20);
    CHECK_EQ_U(r.dram[ORR_OPERAND_OFMAP].words, 6);
    CHECK_EQ_U(r.sram_read.words, 30 + 20 + 12);   /* rows stream for 10 + 3 - 1 cycles */
    CHECK_EQ(r.dram[ORR_OPERAND_IFMAP].first, -3); /* ten words a cycle, ahead of the run */
    CHECK_OK(orr_systolic_run(&small, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.sram_read.words, 30 + 20);
    CHECK_EQ_U(r.macs, 60);
}

/* Larger than any count may be without leaving 64 bits. */
TEST(test_systolic__sizes_are_checked)
{
    orr_systolic_layer l = orr_systolic_gemm((uint64_t)1 << 32, (uint64_t)1 << 32, 1);
    orr_systolic_array a = small;
    uint64_t cycles;
    CHECK_CODE(orr_systolic_cycles(&a, &l, NULL, &cycles, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "the layer is too large: 2^62 multiply-accumulates or more");
    l = orr_systolic_gemm(1, 0, 1);
    CHECK_CODE(orr_systolic_cycles(&a, &l, &orr__scale_sim_v1, &cycles, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "filters: 0 is not from 1 to 4294967296");
    l = (orr_systolic_layer){3, 3, 4, 1, 1, 1, 1, 1};
    CHECK_CODE(orr_systolic_cycles(&a, &l, &orr__scale_sim_v2, &cycles, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "the filter, 4 x 1, is larger than the ifmap, 3 x 3");
    l = (orr_systolic_layer){9, 9, 3, 3, 1, 1, 1, 2};
    CHECK_CODE(orr_systolic_cycles(&a, &l, &orr__scale_sim_v1, &cycles, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "SCALE-Sim v1 has one stride for both directions");
    a.rows = (uint64_t)1 << 21;
    CHECK_CODE(orr_systolic_cycles(&a, &l, NULL, &cycles, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rows of the array: 2097152 is not from 1 to 1048576");
}

/* The largest layers there are: nothing may overflow on the way to an answer or to a refusal. */
TEST(test_systolic__largest_sizes_do_not_overflow)
{
    static const uint64_t sizes[] = {1, 2, 1 << 20, (uint64_t)1 << 31, (uint64_t)1 << 32};
    static const orr_rules_systolic *const all_rules[] = {NULL, &orr__scale_sim_v1,
                                                          &orr__scale_sim_v2};
    for (int i = 0; i < 5 * 5 * 5 * 9; i++) {
        const orr_systolic_layer l =
            orr_systolic_gemm(sizes[i % 5], sizes[i / 5 % 5], sizes[i / 25 % 5]);
        orr_systolic_array a = small;
        uint64_t cycles;
        a.dataflow = (orr_dataflow)(i / 125 % 3);
        a.rows = i / 375 ? 1 : 1 << 20;
        a.columns = i / 375 == 1 ? 1 : 1 << 20;
        for (unsigned k = 0; k < 3; k++)
            if (orr_systolic_cycles(&a, &l, all_rules[k], &cycles, &err))
                CHECK_SAYS(&err, "the layer is too large");
    }
}

TEST(test_systolic__buffers_and_bandwidths_are_checked)
{
    const orr_systolic_layer l = orr_systolic_gemm(8, 8, 8);
    orr_systolic_array a = small;
    orr_systolic_result r;
    a.filter_words = 99;
    CHECK_CODE(orr_systolic_run(&a, &l, &orr__scale_sim_v2, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "a buffer has fewer than 100 words");
    a.filter_words = 0;
    CHECK_CODE(orr_systolic_run(&a, &l, &orr__scale_sim_v1, &r, &err), ORR_EINPUT, &err);
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.dram[ORR_OPERAND_FILTER].words, 64);
    a = small;
    a.bandwidth = 0.5;
    CHECK_CODE(orr_systolic_run(&a, &l, &orr__scale_sim_v2, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "SCALE-Sim v2 supports only whole numbers of words per cycle, from 1 to 10^9");
    a.bandwidth = -1;
    CHECK_CODE(orr_systolic_run(&a, &l, NULL, &r, &err), ORR_EINPUT, &err);
}

/* scale-sim.md 10: the old programs end in a division by zero; ours are legal buffers. */
TEST(test_systolic__buffers_smaller_than_a_cycle)
{
    const orr_systolic_layer l = orr_systolic_gemm(64, 64, 16);
    orr_systolic_array a = small;
    orr_systolic_result r;
    a.rows = a.columns = 64;
    a.ifmap_words = a.filter_words = a.ofmap_words = 4;
    CHECK_CODE(orr_systolic_run(&a, &l, &orr__scale_sim_v1, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "SCALE-Sim v1 divides by zero here: the ifmap buffer, 4 words");
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.stalls, 0);
    CHECK(r.dram[ORR_OPERAND_IFMAP].peak == 64); /* every cycle needs all it reads */
    a.bandwidth = 8;
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    /* 64 words take 8 cycles: steps 1 to 15 come 8 cycles after each other, 7 too late each.  Of
     * the 64 rows of results two find a free half, the others wait 7 cycles each until one is
     * written out. */
    CHECK_EQ_U(r.stalls, 15 * 7 + 62 * 7);
    CHECK_EQ_U(r.cycles, 16 + 64 + 64 - 2 + 1 + r.stalls);
}

/* v1 tells operands apart by address: an ifmap beyond FilterOffset is a filter to it. */
TEST(test_systolic__v1_sorts_by_address)
{
    const orr_systolic_layer l = orr_systolic_gemm(10, 4, 20); /* 200 inputs, 80 weights */
    orr_systolic_array a = small;
    orr_systolic_result r;
    a.filter_offset = 150;
    a.ofmap_offset = 1000;
    CHECK_OK(orr_systolic_run(&a, &l, &orr__scale_sim_v1, &r, &err), &err);
    CHECK_EQ_U(r.dram[ORR_OPERAND_IFMAP].words, 150);
    CHECK_EQ_U(r.dram[ORR_OPERAND_FILTER].words,
               80); /* addresses 150 to 230 are those of 50 inputs too */
    a.filter_offset = 500;
    a.ofmap_offset = 500;
    CHECK_OK(orr_systolic_run(&a, &l, &orr__scale_sim_v1, &r, &err), &err);
    CHECK_EQ_U(r.dram[ORR_OPERAND_FILTER].words, 0);
    CHECK_EQ(r.dram[ORR_OPERAND_FILTER].last, r.dram[ORR_OPERAND_IFMAP].last);
    a.ifmap_offset = 300;
    CHECK_CODE(orr_systolic_run(&a, &l, &orr__scale_sim_v1, &r, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "no ifmap address is between IfmapOffset and FilterOffset");
}

/* A stride that does not divide: 6 of 7 columns are used, or all, with windows that hang over. */
TEST(test_systolic__rounding_of_the_output)
{
    const orr_systolic_layer l = {3, 8, 3, 3, 1, 1, 1, 2};
    orr_systolic_array a = small;
    orr_systolic_result r;
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.macs, 3 * 9);
    CHECK_EQ_U(r.dram[ORR_OPERAND_IFMAP].words, 3 * 7);
    a.round_up = true;
    CHECK_OK(orr_systolic_run(&a, &l, NULL, &r, &err), &err);
    CHECK_EQ_U(r.macs, 4 * 9);
    CHECK_EQ_U(r.dram[ORR_OPERAND_IFMAP].words, 3 * 8);
    CHECK_EQ_U(r.sram[ORR_OPERAND_IFMAP].words,
               3 * 9 + 3 * 2); /* a column of the last is not there */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_systolic__published_figures_of_v2),
        RUN(test_systolic__one_fold_of_v1),
        RUN(test_systolic__counts_of_one_fold),
        RUN(test_systolic__sizes_are_checked),
        RUN(test_systolic__largest_sizes_do_not_overflow),
        RUN(test_systolic__buffers_and_bandwidths_are_checked),
        RUN(test_systolic__buffers_smaller_than_a_cycle),
        RUN(test_systolic__v1_sorts_by_address),
        RUN(test_systolic__rounding_of_the_output),
    };
    return RUN_ALL(tests);
}
