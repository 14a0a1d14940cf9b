/* SPDX-License-Identifier: Apache-2.0 */
/* dtypes.c - the table of data types.
 *
 * float4_e2m1fn_x2 is a pair of numbers, which PyTorch counts as one.  Scales of FP8 and of its
 * blocks of 128 are few and do not count.  Cost: a comparison per row. */
#include "dtypes.h"

#include "base/text/text.h"

#include <string.h>

/* clang-format off: a row per type */
static const orr__dtype_row rows[] = {
    [ORR__BF16] = {"bf16", "bfloat16", NULL, "BFloat16", 13, "bfloat16", 16},
    [ORR__FP16] = {"fp16", "float16", "half", "Half", 6, "half", 16},
    [ORR__FP32] = {"fp32", "float32", "float", "Float", 7, "float", 32},
    [ORR__FP64] = {"fp64", "float64", "double", "Double", 8, "double", 64},
    [ORR__TF32] = {"tf32", NULL, NULL, NULL, 0, NULL, 32},
    [ORR__FP8] = {"fp8", "float8_e4m3fn", NULL, "Float8_e4m3fn", 29, NULL, 8},
    [ORR__FP8_BLOCK] = {"fp8_block", NULL, NULL, NULL, 0, NULL, 8},
    [ORR__MXFP8] = {"mxfp8", NULL, NULL, NULL, 0, NULL, 8, 8 / 32.},
    [ORR__NVFP4] = {"nvfp4", NULL, NULL, NULL, 0, NULL, 4, 8 / 16.},
    [ORR__MXFP4] = {"mxfp4", NULL, NULL, NULL, 0, NULL, 4, 8 / 32.},
    [ORR__W8A16] = {"w8a16", NULL, NULL, NULL, 0, NULL, 8},
    [ORR__W4A16] = {"w4a16", NULL, NULL, NULL, 0, NULL, 4, 0.5},
    [ORR__INT8] = {"int8", "int8", NULL, "Char", 2, "int8", 8},
    {NULL, "int64", "long", "Long", 5, "int64", 64},
    {NULL, "bool", NULL, "Bool", 12, NULL, 8},
    {NULL, "uint8", NULL, "Byte", 1, "uint8", 8},
    {NULL, "int32", "int", "Int", 4, "int32", 32},
    {NULL, "int16", "short", "Short", 3, NULL, 16},
    {NULL, "uint16", NULL, "UInt16", 28, NULL, 16},
    {NULL, "uint32", NULL, "UInt32", 0, "uint32", 32},
    {NULL, "uint64", NULL, "UInt64", 0, "uint64", 64},
    {NULL, "complex32", NULL, "ComplexHalf", 9, NULL, 32},
    {NULL, "complex64", NULL, "ComplexFloat", 10, NULL, 64},
    {NULL, "complex128", NULL, "ComplexDouble", 11, NULL, 128},
    {NULL, "float8_e5m2", NULL, "Float8_e5m2", 30, NULL, 8},
    {NULL, "float8_e4m3fnuz", NULL, "Float8_e4m3fnuz", 31, NULL, 8},
    {NULL, "float8_e5m2fnuz", NULL, "Float8_e5m2fnuz", 32, NULL, 8},
    {NULL, "float8_e8m0fnu", NULL, "Float8_e8m0fnu", 0, NULL, 8},
    {NULL, "float4_e2m1fn_x2", NULL, NULL, 0, NULL, 8},
    {NULL, "qint8", NULL, NULL, 0, NULL, 8},
    {NULL, "quint8", NULL, NULL, 0, NULL, 8},
    {NULL, "qint32", NULL, NULL, 0, NULL, 32},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

const orr__dtype_row *orr__dtype_of(orr__dtype_id id)
{
    return &rows[id];
}

uint32_t orr__dtype_bytes(const orr__dtype_row *row)
{
    return (row->bits + 7u) / 8;
}

static bool is_word(orr_str name, const char *word)
{
    return word && orr_str_is(name, word);
}

uint32_t orr__dtype_torch_bytes(orr_str name)
{
    const size_t prefix = strlen("torch.");
    if (name.len > prefix && orr_str_begins(name, "torch."))
        name = (orr_str){name.ptr + prefix, name.len - prefix};
    for (size_t i = 0; i < ROWS; i++) {
        if (is_word(name, rows[i].torch) || is_word(name, rows[i].torch_too))
            return orr__dtype_bytes(&rows[i]);
    }
    return 0;
}

uint32_t orr__dtype_scalar_bytes(orr_str name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_word(name, rows[i].scalar))
            return orr__dtype_bytes(&rows[i]);
    }
    return orr_str_begins(name, "Float8") ? 1 : 0; /* new ones appear from time to time */
}

uint32_t orr__dtype_number_bytes(int64_t number)
{
    for (size_t i = 0; number > 0 && i < ROWS; i++) {
        if (number == rows[i].number)
            return orr__dtype_bytes(&rows[i]);
    }
    return 0;
}

uint32_t orr__dtype_nccl_bytes(orr_str name)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (is_word(name, rows[i].nccl))
            return orr__dtype_bytes(&rows[i]);
    }
    return 0;
}
