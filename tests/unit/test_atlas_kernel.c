/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as text: what is taken, what is written back, what is refused and where. */
#include "check.h"

#include <orrery/lab/chip.h>

static orr_code parse(const char *text, orr_kernel *k, orr_error *err)
{
    return orr_kernel_parse(orr_str_of(text), k, err);
}

TEST(test_atlas_kernel__text_reads_back_the_same)
{
    static const char *const texts[] = {
        "launch bf16",
        "gemm bf16 m=8192 n=28672 k=8192",
        "gemm fp8 batch=4 m=1 n=2 k=3 bias",
        "gemm bf16 m=16 n=32 k=64 tn accumulate cold",
        "grouped bf16 m=4096 n=1408 k=2048 groups=64 nn",
        "moe fp8_block m=512 n=2048 k=7168 groups=256 topk=8",
        "attention bf16 batch=4 heads=32 kv_heads=8 head=128 q=4096 backward causal",
        "attention bf16 heads=128 head=192 head_v=128 q=4096 kv=8192 unfused",
        "decode bf16 batch=64 heads=32 kv_heads=8 head=128 kv=2048",
        "decode bf16 heads=32 head=128 kv=2048 paged",
        "decode bf16 heads=32 head=128 kv=2048 mixed",
        "gemm fp8 m=1 n=2 k=3 quantize",
        "norm bf16 m=8192 n=4096 layer backward",
        "softmax fp32 m=8192 n=4096 log",
        "cross_entropy bf16 m=8192 n=128256",
        "activation bf16 m=1048576 silu backward gated strided",
        "embedding bf16 m=8192 n=4096 k=128256",
        "elementwise fp32 read=4096 write=4096 strided",
        "elementwise bf16 read=4096 write=2048 dims=3 strided turned cast",
        "elementwise bf16 read=4096 write=2048 ops=65",
        "dropout bf16 m=4096",
        "copy bf16 write=4096 h2d",
        "fill bf16 write=4096 count=3",
        "reduce bf16 m=4096 n=16 columns",
        "optimizer fp32 m=1000000 k=12 foreach",
        "conv bf16 batch=256 n=64 k=3 side=224 window=7 stride=2",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        orr_kernel k;
        orr_error err;
        char text[ORR_KERNEL_TEXT];
        CHECK_OK(parse(texts[i], &k, &err), &err);
        CHECK_EQ_U(orr_kernel_text(&k, text, sizeof text), strlen(texts[i]));
        CHECK_TEXT(text, texts[i]);
        /* A short room takes what fits and says how much there was. */
        CHECK_EQ_U(orr_kernel_text(&k, text, 5), strlen(texts[i]));
        CHECK_EQ_U(strlen(text), 4);
    }
}

TEST(test_atlas_kernel__order_and_spaces_do_not_matter)
{
    orr_kernel k;
    orr_error err;
    char text[ORR_KERNEL_TEXT];
    CHECK_OK(parse("  gemm   bf16 tn k=3 bias m=1 n=2 ", &k, &err), &err);
    orr_kernel_text(&k, text, sizeof text);
    CHECK_TEXT(text, "gemm bf16 m=1 n=2 k=3 bias tn");
    CHECK_OK(parse("launch", &k, &err), &err);
    CHECK_EQ_U(k.kind, ORR_KERNEL_LAUNCH);
}

TEST(test_atlas_kernel__the_longest_text_fits)
{
    orr_kernel k;
    orr_error err;
    char text[ORR_KERNEL_TEXT];
    CHECK_OK(parse("attention fp8_block batch=1099511627776 heads=1099511627776 "
                   "kv_heads=1099511627776 head=1099511627776 head_v=1099511627776 "
                   "q=1099511627776 kv=1099511627776 window=1099511627776 count=1099511627776 "
                   "backward causal unfused cold",
                   &k, &err),
             &err);
    CHECK(orr_kernel_text(&k, text, sizeof text) < sizeof text);
    const orr_kernel_work w = orr_kernel_count(&k);
    CHECK(w.flops > 0 && w.flops < 1e300);
}

TEST(test_atlas_kernel__refuses_with_the_word_and_its_column)
{
    static const struct {
        const char *text, *words;
        uint32_t column;
    } wrong[] = {
        {"", "expected a kernel", 1},
        {"gem bf16 m=1 n=1 k=1", "\"gem\": unknown kind of kernel", 1},
        {"gemm", "expected a type", 5},
        {"gemm m=1 n=1 k=1", "\"m=1\": no such type", 6},
        {"gemm bf16 m=1 n=1", "gemm: k is missing", 1},
        {"gemm bf16 m=1 n=1 k=0", "\"k=0\": expected a whole number from 1 on", 19},
        {"gemm bf16 m=1 n=1 k=-4", "\"k=-4\": expected a whole number", 19},
        {"gemm bf16 m=1 n=1 k=1e3", "expected a whole number", 19},
        {"gemm bf16 m=1 n=1 k=1099511627777", "at most 2^40", 19},
        {"gemm bf16 m=1 n=1 k=99999999999999999999", "at most 2^40", 19},
        {"gemm bf16 m=1 n=1 k=1 m=2", "\"m=2\": is given twice", 23},
        {"gemm bf16 m=1 n=1 k=1 heads=2", "has no such size", 23},
        {"gemm bf16 m=1 n=1 k=1 z=2", "no such size", 23},
        {"gemm bf16 m=1 n=1 k=1 causal", "has no such variant", 23},
        {"gemm bf16 m=1 n=1 k=1 rms", "has no such variant", 23},
        {"gemm bf16 m=1 n=1 k=1 bias relu", "is a second variant", 28},
        {"gemm bf16 m=1 n=1 k=1 nn tn", "is a second layout", 26},
        {"norm bf16 m=1 n=1 tn", "only products have one", 19},
        {"norm bf16 m=1 n=1 backward backward", "is given twice", 28},
        {"norm bf16 m=1 n=1 what", "\"what\": expected a size (m=4096) or a variant", 19},
        {"elementwise bf16", "read or write is missing", 1},
        {"elementwise bf16 read=8 ops=3", "ops need write", 1},
        {"norm bf16 m=1 n=1 ops=3", "has no such size", 19},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        orr_kernel k = {.m = 77};
        orr_error err;
        CHECK_CODE(parse(wrong[i].text, &k, &err), ORR_EINPUT, &err);
        CHECK_SAYS(&err, wrong[i].words);
        CHECK_EQ_U(err.where.column, wrong[i].column);
        CHECK_EQ_U(k.m, 77); /* untouched */
    }
}

TEST(test_atlas_kernel__lists_are_taken_one_by_one)
{
    orr_str list = orr_str_of("launch bf16;fill bf16 write=8; norm bf16 m=1 n=2");
    orr_kernel k;
    orr_error err;
    CHECK_OK(orr_kernel_next(&list, &k, &err), &err);
    CHECK_EQ_U(k.kind, ORR_KERNEL_LAUNCH);
    CHECK_OK(orr_kernel_next(&list, &k, &err), &err);
    CHECK_EQ_U(k.write, 8);
    CHECK_OK(orr_kernel_next(&list, &k, &err), &err);
    CHECK_EQ_U(k.n, 2);
    CHECK_EQ_U(orr_kernel_next(&list, &k, &err), ORR_END);
    list = orr_str_of("launch bf16;;launch bf16");
    CHECK_OK(orr_kernel_next(&list, &k, &err), &err);
    CHECK_CODE(orr_kernel_next(&list, &k, &err), ORR_EINPUT, &err);
}

TEST(test_atlas_kernel__work_is_counted)
{
    orr_kernel k;
    orr_error err;
    CHECK_OK(parse("gemm bf16 m=2 n=3 k=5", &k, &err), &err);
    orr_kernel_work w = orr_kernel_count(&k);
    CHECK(w.flops == 60 && w.read == 2 * (10 + 15) && w.write == 12);
    CHECK_OK(parse("attention bf16 batch=2 heads=4 kv_heads=2 head=8 q=4 causal", &k, &err), &err);
    w = orr_kernel_count(&k);
    CHECK(w.flops == 2 * 2 * 4 * 10 * 16); /* 10 of 16 pairs */
    CHECK(w.read == 2 * (2 * 4 * 4 * 8 + 2 * 4 * 2 * 16) && w.write == 2 * 2 * 4 * 4 * 8);
    CHECK_OK(parse("elementwise fp32 read=8 write=4", &k, &err), &err);
    w = orr_kernel_count(&k);
    CHECK(w.read == 8 && w.write == 4);
}

TEST(test_atlas_kernel__a_convolution_has_the_results_of_its_layer)
{
    /* Image, result; then side and stride of the kernel, whose result is side / stride, rounded up. */
    static const uint64_t rows[][4] = {
        {56, 56, 56, 1},    /* 3 x 3, padding 1 */
        {56, 54, 54, 1},    /* none */
        {56, 72, 72, 1},    /* padding 9 */
        {224, 112, 224, 2}, /* 7 x 7, padding 3 */
        {299, 149, 298, 2}, /* 3 x 3, none */
        {8, 2, 8, 4},       /* 7 x 7, none: the image for two results */
        {5, 0, 5, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        orr_kernel k = {.kind = ORR_KERNEL_CONV};
        orr_kernel_set_sides(&k, rows[i][0], rows[i][1]);
        CHECK_EQ_U(k.side, rows[i][2]);
        CHECK_EQ_U(k.stride, rows[i][3]);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_atlas_kernel__text_reads_back_the_same),
        RUN(test_atlas_kernel__order_and_spaces_do_not_matter),
        RUN(test_atlas_kernel__the_longest_text_fits),
        RUN(test_atlas_kernel__refuses_with_the_word_and_its_column),
        RUN(test_atlas_kernel__lists_are_taken_one_by_one),
        RUN(test_atlas_kernel__work_is_counted),
        RUN(test_atlas_kernel__a_convolution_has_the_results_of_its_layer),
    };
    return RUN_ALL(tests);
}
