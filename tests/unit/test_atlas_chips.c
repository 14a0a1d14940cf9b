/* SPDX-License-Identifier: Apache-2.0 */
/* Chips and times of kernels on them: names, bounds that physics sets, growth with sizes. */
#include "check.h"

#include <orrery/lab/chip.h>

#include <math.h>

static orr_kernel kernel(const char *text)
{
    orr_kernel k;
    orr_error err;
    CHECK_OK(orr_kernel_parse(orr_str_of(text), &k, &err), &err);
    return k;
}

TEST(test_atlas_chips__are_found_by_name_and_alias)
{
    for (size_t i = 0; orr_chip_at(i); i++) {
        CHECK(orr_chip_find(orr_chip_at(i)->name) == orr_chip_at(i));
        if (orr_chip_at(i)->like)
            CHECK(orr_chip_find(orr_chip_at(i)->like) != NULL);
    }
    CHECK(orr_chip_find("h100-sxm") == orr_chip_find("h100"));
    CHECK(orr_chip_find("no such chip") == NULL);
}

TEST(test_atlas_chips__the_clock_falls_with_work)
{
    const orr_chip *h200 = orr_chip_find("h200");
    CHECK(orr_chip_clock(h200, 0) == 1980);
    CHECK(orr_chip_clock(h200, 190) == 1980);
    CHECK(orr_chip_clock(h200, 390) > 1767 && orr_chip_clock(h200, 390) < 1769);
    CHECK(orr_chip_clock(h200, 1e9) == 1287);
    CHECK(orr_chip_clock(orr_chip_find("mi300x"), 1e9) == 2100);
    CHECK(orr_chip_slowdown(h200, 190) == 1);
    CHECK(orr_chip_slowdown(h200, 390) > 1.06 && orr_chip_slowdown(h200, 390) < 1980.0 / 1768);
    CHECK(orr_chip_slowdown(orr_chip_find("mi300x"), 1e9) == 1);
}

/* Tables of normal order statistics: 0.56419, 1.42360, 2.50759, 3.24144; by integration 4.8629. */
TEST(test_atlas_chips__the_highest_of_normal_numbers)
{
    static const struct {
        uint32_t count;
        double mean;
    } rows[] = {{0, 0},         {1, 0},          {2, 0.56419},     {8, 1.42360},
                {100, 2.50759}, {1000, 3.24144}, {1000000, 4.8629}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(fabs(orr_highest_of(rows[i].count) - rows[i].mean) < 1e-4);
    for (uint64_t n = 1; n < UINT32_MAX / 2; n *= 2)
        CHECK(orr_highest_of((uint32_t)(2 * n)) > orr_highest_of((uint32_t)n));
}

TEST(test_atlas_chips__the_slowest_of_many_sets_the_pace)
{
    const orr_chip *h200 = orr_chip_find("h200"), *a100 = orr_chip_find("a100");
    orr_chip same = *h200;
    same.power_spread = 0;
    for (double rate = 0; rate < 1000; rate += 50) {
        double last = 1;
        CHECK(orr_chip_slowest(h200, rate, orr_highest_of(1)) == 1);
        CHECK(orr_chip_slowest(&same, rate, 3) == 1);
        for (uint32_t n = 1; n <= 1 << 20; n *= 4) {
            const double slow = orr_chip_slowest(h200, rate, orr_highest_of(n));
            CHECK(slow >= last && slow <= orr_chip_slowest(h200, rate + 50, orr_highest_of(n)));
            last = slow;
        }
    }
    /* Far below the cap all have the same clock; at its edge the effect begins without a step. */
    CHECK(orr_chip_slowest(h200, 150, 3) == 1);
    CHECK(orr_chip_slowest(h200, 190 / 1.15, 3) < 1 + 1e-9);
    CHECK(orr_chip_slowest(h200, 190.01, 3) - orr_chip_slowest(h200, 189.99, 3) < 1e-4);
    /* Products alone, 671 TFLOP/s at 1,513 MHz: as far apart as V100 are, 1.63 % each deviation. */
    const double products = orr_chip_slowest(h200, 671, 1);
    CHECK(products > 1.0155 && products < 1.0171);
    CHECK(orr_chip_slowest(a100, 0, 1) > 1.0155 && orr_chip_slowest(a100, 0, 1) < 1.0171);
    /* The law of the clock, solved for a chip that draws 15 % more: its clock times how much longer
     * it takes is the mean chip's clock. */
    const double r = orr_chip_slowest(h200, 400, 3), own = 400 * 1.15 / r;
    CHECK(fabs(orr_chip_clock(h200, own) * r - orr_chip_clock(h200, 400)) < 1e-6);
}

/* A Blackwell falls as the H200 does, at the same share of its peak. */
TEST(test_atlas_chips__blackwell_falls_like_hopper)
{
    static const char *const names[] = {"b200", "gb200", "b300", "gb300"};
    const orr_chip *h200 = orr_chip_find("h200");
    const double peak = h200->peak_tflops[ORR_TYPE_BF16];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const orr_chip *c = orr_chip_find(names[i]);
        for (double share = 0.1; share < 0.8; share += 0.1) {
            const double here =
                orr_chip_clock(c, share * c->peak_tflops[ORR_TYPE_BF16]) / c->clock_MHz;
            const double there = orr_chip_clock(h200, share * peak) / h200->clock_MHz;
            CHECK(here > there - 0.005 && here < there + 0.005);
        }
    }
}

static double us_of(const orr_chip *chip, const char *text)
{
    orr_str list = orr_str_of(text);
    orr_kernel k;
    orr_kernel_time time;
    return orr_kernel_next(&list, &k, NULL) == ORR_OK && orr_chip_time(chip, &k, &time) ? time.us
                                                                                        : 0;
}

/* Public products in 8 and 4 bits begin with a left factor in 16 bits; those of training do not. */
TEST(test_atlas_chips__only_those_that_say_so_quantise)
{
    static const char *const names[] = {"h100", "b200", "gb200", "b300", "gb300", "rtx-pro-6000"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const orr_chip *c = orr_chip_find(names[i]);
        const double plain = us_of(c, "gemm fp8 m=8192 n=1024 k=8192"),
                     both = us_of(c, "gemm fp8 m=8192 n=1024 k=8192 quantize"),
                     wide = us_of(c, "gemm fp8 m=8192 n=8192 k=8192"),
                     wide_both = us_of(c, "gemm fp8 m=8192 n=8192 k=8192 quantize");
        /* at least what reading 16 bits and writing 8 takes, as much whatever the other factor
         * is */
        const double least = 8192.0 * 8192 * 3 / (c->memory_GBps * 1e3);
        CHECK(both - plain > least);
        CHECK(wide_both - wide > 0.6 * (both - plain) && wide_both - wide < 1.6 * (both - plain));
    }
}

/* Profiled under vLLM 0.19 (truth/kernels/servingsim_attention_rtx-pro-6000): 128 sequences of 512 and 1,024 tokens, by
 * themselves and in one launch with a prompt, where heads that share keys read them one by one. */
TEST(test_atlas_chips__served_decoding_is_as_profiled)
{
    const orr_chip *chip = orr_chip_find("rtx-pro-6000"), *h200 = orr_chip_find("h200");
    static const struct {
        const char *text;
        double us;
    } rows[] = {
        {"decode bf16 batch=128 heads=32 kv_heads=8 head=128 kv=512 cold", 229},
        {"decode bf16 batch=128 heads=32 kv_heads=8 head=128 kv=1024 cold", 405},
        {"decode bf16 batch=128 heads=32 kv_heads=4 head=128 kv=512 cold", 131},
        {"decode bf16 batch=128 heads=32 kv_heads=8 head=128 kv=1024 cold mixed", 680},
        {"decode bf16 batch=128 heads=32 kv_heads=4 head=128 kv=1024 cold mixed", 660},
        {"decode bf16 batch=64 heads=32 kv_heads=8 head=128 kv=1024 cold mixed", 310},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double us = us_of(chip, rows[i].text);
        CHECK(us > 0.85 * rows[i].us && us < 1.15 * rows[i].us);
    }
    /* Nothing says that a Hopper's kernels do. */
    CHECK(us_of(h200, "decode bf16 batch=128 heads=32 kv_heads=8 head=128 kv=1024 cold mixed") ==
          us_of(h200, "decode bf16 batch=128 heads=32 kv_heads=8 head=128 kv=1024 cold"));
}

/* No kernel may be faster than the chip's peaks at its highest clock. */
TEST(test_atlas_chips__no_kernel_beats_the_peaks)
{
    static const char *const texts[] = {
        "gemm bf16 m=16384 n=16384 k=16384",
        "gemm bf16 m=8192 n=8192 k=64 batch=32",
        "attention bf16 batch=16 heads=32 head=128 q=8192 causal",
        "attention bf16 batch=16 heads=32 head=128 q=8192 causal backward",
        "elementwise bf16 read=4000000000 write=2000000000",
        "optimizer fp32 m=1000000000",
        "norm bf16 m=65536 n=8192 rms",
    };
    for (size_t c = 0; orr_chip_at(c); c++) {
        const orr_chip *chip = orr_chip_at(c);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            const orr_kernel k = kernel(texts[i]);
            const orr_kernel_work w = orr_kernel_count(&k);
            orr_kernel_time t;
            CHECK(orr_chip_time(chip, &k, &t));
            CHECK(t.low_us > 0 && t.low_us <= t.us && t.us <= t.high_us);
            CHECK(t.basis && t.launches >= 1 && t.clock_share >= 0 && t.clock_share <= 1);
            CHECK(w.read + w.write <= t.us * chip->memory_GBps * 1e3);
            if (k.kind == ORR_KERNEL_GEMM || k.kind == ORR_KERNEL_ATTENTION)
                CHECK(w.flops <= t.us * chip->peak_tflops[k.type] * 1e6 * 1.1);
        }
    }
}

TEST(test_atlas_chips__times_grow_with_sizes)
{
    for (size_t c = 0; orr_chip_at(c); c++) {
        double last = 0;
        for (uint64_t m = 64; m <= 1 << 20; m *= 4) { /* below, kernels for few rows may be worse */
            orr_kernel k = kernel("gemm bf16 m=1 n=4096 k=4096");
            orr_kernel_time t;
            k.m = m;
            CHECK(orr_chip_time(orr_chip_at(c), &k, &t));
            CHECK(t.us >= last * 0.97); /* another kernel may be chosen, and be better */
            last = t.us;
        }
    }
}

static double h200_us(const char *text)
{
    const orr_kernel k = kernel(text);
    orr_kernel_time t;
    CHECK(orr_chip_time(orr_chip_find("h200"), &k, &t));
    return t.us;
}

/* A block has 4 x 32 threads for 128 columns.  Of 1,000 rows a thread adds 250, and 48 blocks are
 * all there are; of 1,024 it would add 256, so that 44 blocks share them.  Measured in steps: 784 x
 * 6144 21.4 and 21.9 us, 1568 x 3072, which has as many bytes, 12.7 us. */
TEST(test_atlas_chips__sums_of_columns_are_shared_from_1024_rows_on)
{
    CHECK(h200_us("reduce bf16 m=784 n=6144 rows cold") >
          1.3 * h200_us("reduce bf16 m=1568 n=3072 rows cold"));
    CHECK(h200_us("reduce bf16 m=1000 n=6144 rows") > h200_us("reduce bf16 m=1100 n=6144 rows"));
}

/* Two words get 16 of every 32 rows each, one after the other (measured: 190 us; 76 us for as many
 * rows of 30,000 words).  Zeros of a table cost at least their bytes: 96,256 more words of 4,096 are
 * 789 MB, 164 us at 4.8 TB/s. */
TEST(test_atlas_chips__gradients_of_tables_know_their_words)
{
    CHECK(h200_us("embedding bf16 m=3072 n=128 k=2 backward") >
          1.5 * h200_us("embedding bf16 m=3072 n=128 k=30000 backward"));
    CHECK(h200_us("embedding bf16 m=64 n=4096 k=128256 backward") >
          h200_us("embedding bf16 m=64 n=4096 k=32000 backward") + 164);
    /* Drawn again, a word is in the cache. */
    CHECK(h200_us("embedding bf16 m=16384 n=1024 k=512") <
          0.8 * h200_us("embedding bf16 m=16384 n=1024 k=128256"));
}

/* 9.4 MB take at least 1.97 us at 4.8 TB/s; measured in steps: 4.0 us of weights, 3.5 us else. */
TEST(test_atlas_chips__casts_of_parameters_read_memory)
{
    const char *const warm = "copy bf16 read=6291456 write=3145728 cast";
    const char *const cold = "copy bf16 read=6291456 write=3145728 cold cast";
    CHECK(h200_us(cold) > 1.1 * h200_us(warm));
    CHECK(h200_us(cold) >= 9437184 / 4.8e6);
}

TEST(test_atlas_chips__refuse_what_they_cannot_do)
{
    orr_kernel k = kernel("gemm nvfp4 m=128 n=128 k=128");
    orr_kernel_time t;
    orr_kernel_type type;
    CHECK(orr_chip_find("b200")->peak_tflops[ORR_TYPE_NVFP4] > 0);
    CHECK(orr_chip_time(orr_chip_find("b200"), &k, &t));
    CHECK(!orr_chip_time(orr_chip_find("a100"), &k, &t));
    k.k = 0;
    CHECK(!orr_chip_time(orr_chip_find("b200"), &k, &t));
    CHECK_CODE(orr_kernel_check(&k, NULL), ORR_EINPUT, NULL);
    CHECK(orr_kernel_type_find(orr_str_of("bf16"), &type) && type == ORR_TYPE_BF16);
    CHECK(!orr_kernel_type_find(orr_str_of("bf17"), &type));
    CHECK(orr_kernel_type_bytes(ORR_TYPE_BF16) == 2);
    CHECK_TEXT(orr_kernel_type_name(ORR_TYPE_FP8), "fp8");
    CHECK_TEXT(orr_kernel_kind_name(ORR_KERNEL_MOE), "moe");
}

/* truth/measure/overlap.csv: in two pieces as long as in one, in eight 1.11 times; all chips alike. */
TEST(test_atlas_chips__pieces_take_longer)
{
    for (size_t i = 0; orr_chip_at(i); i++) {
        const orr_chip *c = orr_chip_at(i);
        const double whole = us_of(c, "gemm bf16 m=8192 n=8192 k=8192");
        if (!(whole > 0))
            continue;
        CHECK(us_of(c, "gemm bf16 m=8192 n=8192 k=8192 pieces=2") == whole);
        const double four = us_of(c, "gemm bf16 m=8192 n=8192 k=8192 pieces=4") / whole;
        const double eight = us_of(c, "gemm bf16 m=8192 n=8192 k=8192 pieces=8") / whole;
        CHECK(four > 1.03 && four < 1.05);
        CHECK(eight > 1.10 && eight < 1.13);
    }
    CHECK(us_of(orr_chip_find("h200"), "norm bf16 m=64 n=64 rms pieces=4") == 0);
}

/* 10^8 numbers, 65 instructions each, at 132 x 128 x 1,980 MHz = 33.45 T per second: 194 us, and at
 * 108 x 128 x 1,410 MHz = 19.49 T: 333 us.  What the memory takes longer for keeps its time. */
TEST(test_atlas_chips__instructions_bound_a_pass)
{
    const char *const busy = "elementwise bf16 read=300000000 write=200000000 ops=65",
                      *const light = "elementwise bf16 read=300000000 write=200000000 ops=6",
                      *const plain = "elementwise bf16 read=300000000 write=200000000";
    const double h200 = us_of(orr_chip_find("h200"), busy),
                 a100 = us_of(orr_chip_find("a100"), busy);
    CHECK(h200 > 194 && h200 < 199);
    CHECK(us_of(orr_chip_find("h100"), busy) >= h200);
    CHECK(a100 > 333 && a100 < 340);
    for (size_t i = 0; orr_chip_at(i); i++)
        CHECK(us_of(orr_chip_at(i), light) == us_of(orr_chip_at(i), plain));
    orr_kernel k = kernel(busy);
    orr_kernel_time t;
    CHECK(orr_chip_time(orr_chip_find("h200"), &k, &t));
    CHECK(t.clock_share > 0.98 && t.low_us < t.us && t.high_us > t.us);
}

TEST(test_atlas_chips__counts_multiply)
{
    orr_kernel k = kernel("gemm bf16 m=128 n=128 k=128");
    orr_kernel_time one, ten;
    CHECK(orr_chip_time(orr_chip_find("h200"), &k, &one));
    k.count = 10;
    CHECK(orr_chip_time(orr_chip_find("h200"), &k, &ten));
    CHECK(ten.us > one.us * 9.99 && ten.us < one.us * 10.01);
    CHECK_EQ_U(ten.launches, 10 * one.launches);
}

/* By hand: 2 us for the launch, and FLOPs of the padded product at 75 % of the peak: 197 TFLOP/s of
 * bf16 and 394 of int8 on a v5e, 918 on a v6e. */
TEST(test_atlas_chips__tpus_stream_rows)
{
    static const struct {
        const char *chip, *kernel;
        double m, n, k, tflops;
    } rows[] = {
        {"tpu-v5e", "gemm bf16 m=1024 n=8192 k=8192", 1024, 8192, 8192, 197},
        {"tpu-v5e", "gemm bf16 m=1025 n=8192 k=8192", 1040, 8192, 8192, 197},
        {"tpu-v5e", "gemm int8 m=2049 n=8192 k=8192", 2080, 8192, 8192, 394},
        {"tpu-v5e", "gemm bf16 m=1024 n=8193 k=8129", 1024, 8320, 8192, 197},
        {"tpu-v6e", "gemm bf16 m=2049 n=8193 k=8300", 2064, 8448, 8448, 918},
        {"tpu-v5e", "grouped bf16 m=8200 n=8192 k=8192 groups=8", 8320, 8192, 8192, 197},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const orr_kernel k = kernel(rows[i].kernel);
        orr_kernel_time t;
        CHECK(orr_chip_time(orr_chip_find(rows[i].chip), &k, &t));
        const double flops = 2 * rows[i].m * rows[i].n * rows[i].k;
        CHECK(fabs(t.us - 2 - flops / (rows[i].tflops * 0.75e6)) < 0.01);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_atlas_chips__are_found_by_name_and_alias),
        RUN(test_atlas_chips__the_clock_falls_with_work),
        RUN(test_atlas_chips__the_highest_of_normal_numbers),
        RUN(test_atlas_chips__the_slowest_of_many_sets_the_pace),
        RUN(test_atlas_chips__blackwell_falls_like_hopper),
        RUN(test_atlas_chips__only_those_that_say_so_quantise),
        RUN(test_atlas_chips__served_decoding_is_as_profiled),
        RUN(test_atlas_chips__no_kernel_beats_the_peaks),
        RUN(test_atlas_chips__times_grow_with_sizes),
        RUN(test_atlas_chips__sums_of_columns_are_shared_from_1024_rows_on),
        RUN(test_atlas_chips__gradients_of_tables_know_their_words),
        RUN(test_atlas_chips__casts_of_parameters_read_memory),
        RUN(test_atlas_chips__refuse_what_they_cannot_do),
        RUN(test_atlas_chips__pieces_take_longer),
        RUN(test_atlas_chips__instructions_bound_a_pass),
        RUN(test_atlas_chips__counts_multiply),
        RUN(test_atlas_chips__tpus_stream_rows),
    };
    return RUN_ALL(tests);
}
