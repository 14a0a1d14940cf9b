/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/dtypes.h"

#include <orrery/lab/chip.h>
#include <orrery/lab/collectives.h>
#include <orrery/lab/llm.h>

/* Sizes with the scales that go with the numbers: a byte per 32 (MX) or 16 (NVFP4). */
TEST(test_dtypes__kernels_have_the_size_of_their_numbers_and_scales)
{
    static const struct {
        const char *name;
        double bytes;
    } wanted[] = {{"bf16", 2},         {"fp16", 2},      {"fp32", 4},         {"tf32", 4},
                  {"fp8", 1},          {"fp8_block", 1}, {"mxfp8", 33 / 32.}, {"nvfp4", 9 / 16.},
                  {"mxfp4", 17 / 32.}, {"int8", 1},      {"w8a16", 1},        {"w4a16", 9 / 16.},
                  {"fp64", 8}};
    orr_kernel_type type;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        CHECK(orr_kernel_type_find(orr_str_of(wanted[i].name), &type));
        CHECK(orr_kernel_type_bytes(type) == wanted[i].bytes);
        CHECK_TEXT(orr_kernel_type_name(type), wanted[i].name);
    }
    CHECK(sizeof wanted / sizeof *wanted == ORR_KERNEL_TYPES);
    CHECK(!orr_kernel_type_find(orr_str_of("bfloat16"), &type));
}

TEST(test_dtypes__models_have_whole_bytes)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } wanted[] = {{"bf16", 2}, {"fp16", 2}, {"fp8", 1}, {"fp32", 4}, {"mxfp8", 1}, {"nvfp4", 1}};
    orr_dtype type;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        CHECK(orr_dtype_find(orr_str_of(wanted[i].name), &type));
        CHECK(orr_dtype_bytes(type) == wanted[i].bytes);
        CHECK_TEXT(orr_dtype_name(type), wanted[i].name);
    }
    CHECK(sizeof wanted / sizeof *wanted == ORR_DTYPE_COUNT);
    CHECK(!orr_dtype_find(orr_str_of("int8"), &type));
}

TEST(test_dtypes__pytorch_has_four_names_for_a_type)
{
    CHECK(orr__dtype_torch_bytes(orr_str_of("torch.bfloat16")) == 2);
    CHECK(orr__dtype_torch_bytes(orr_str_of("float16")) == 2);
    CHECK(orr__dtype_torch_bytes(orr_str_of("half")) == 2);
    CHECK(orr__dtype_torch_bytes(orr_str_of("complex128")) == 16);
    CHECK(orr__dtype_torch_bytes(orr_str_of("float4_e2m1fn_x2")) == 1);
    CHECK(orr__dtype_torch_bytes(orr_str_of("bool")) == 1);
    CHECK(orr__dtype_scalar_bytes(orr_str_of("BFloat16")) == 2);
    CHECK(orr__dtype_scalar_bytes(orr_str_of("Long")) == 8);
    CHECK(orr__dtype_scalar_bytes(orr_str_of("Float8_of_tomorrow")) == 1);
    CHECK(orr__dtype_number_bytes(13) == 2);
    CHECK(orr__dtype_number_bytes(29) == 1);
    /* Words of others. */
    CHECK(orr__dtype_torch_bytes(orr_str_of("bf16")) == 0);
    CHECK(orr__dtype_torch_bytes(orr_str_of("")) == 0);
    CHECK(orr__dtype_scalar_bytes(orr_str_of("float")) == 0);
    CHECK(orr__dtype_scalar_bytes(orr_str_of("")) == 0);
    CHECK(orr__dtype_number_bytes(0) == 0);
}

TEST(test_dtypes__nccl_tests_has_ten_types)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } wanted[] = {{"int8", 1},   {"uint8", 1}, {"half", 2},  {"bfloat16", 2}, {"int32", 4},
                  {"uint32", 4}, {"float", 4}, {"int64", 8}, {"uint64", 8},   {"double", 8}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK(orr_alone_type_bytes(wanted[i].name) == wanted[i].bytes);
    CHECK(orr_alone_type_bytes("float16") == 0 && orr_alone_type_bytes("bool") == 0 &&
          orr_alone_type_bytes("") == 0);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_dtypes__kernels_have_the_size_of_their_numbers_and_scales),
        RUN(test_dtypes__models_have_whole_bytes),
        RUN(test_dtypes__pytorch_has_four_names_for_a_type),
        RUN(test_dtypes__nccl_tests_has_ten_types),
    };
    return RUN_ALL(tests);
}
