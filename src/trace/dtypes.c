/* SPDX-License-Identifier: Apache-2.0 */
#include "dtypes.h"

#include "base/text/text.h"

static const struct row {
    const char *name, *alias, *scalar;
    uint8_t number, bytes;
} rows[] = {
    {"float32", "float", "Float", 7, 4},
    {"bfloat16", "", "BFloat16", 13, 2},
    {"float16", "half", "Half", 6, 2},
    {"int64", "long", "Long", 5, 8},
    {"bool", "", "Bool", 12, 1},
    {"uint8", "", "Byte", 1, 1},
    {"int8", "", "Char", 2, 1},
    {"int32", "int", "Int", 4, 4},
    {"int16", "short", "Short", 3, 2},
    {"float64", "double", "Double", 8, 8},
    {"uint16", "", "UInt16", 28, 2},
    {"uint32", "", "UInt32", 0, 4},
    {"uint64", "", "UInt64", 0, 8},
    {"complex32", "", "ComplexHalf", 9, 4},
    {"complex64", "", "ComplexFloat", 10, 8},
    {"complex128", "", "ComplexDouble", 11, 16},
    {"float8_e4m3fn", "", "Float8_e4m3fn", 29, 1},
    {"float8_e5m2", "", "Float8_e5m2", 30, 1},
    {"float8_e4m3fnuz", "", "Float8_e4m3fnuz", 31, 1},
    {"float8_e5m2fnuz", "", "Float8_e5m2fnuz", 32, 1},
    {"float8_e8m0fnu", "", "Float8_e8m0fnu", 0, 1},
    {"float4_e2m1fn_x2", "", "", 0, 1},
    {"qint8", "", "", 0, 1},
    {"quint8", "", "", 0, 1},
    {"qint32", "", "", 0, 4},
};
enum { ROWS = sizeof rows / sizeof *rows };

uint32_t orr__dtype_bytes(orr_str name)
{
    const size_t prefix = strlen("torch.");
    if (name.len > prefix && orr_str_begins(name, "torch."))
        name = (orr_str){name.ptr + prefix, name.len - prefix};
    for (size_t i = 0; name.len && i < ROWS; i++) {
        if (orr_str_is(name, rows[i].name) || orr_str_is(name, rows[i].alias))
            return rows[i].bytes;
    }
    return 0;
}

uint32_t orr__dtype_scalar_bytes(orr_str name)
{
    for (size_t i = 0; name.len && i < ROWS; i++) {
        if (orr_str_is(name, rows[i].scalar))
            return rows[i].bytes;
    }
    return orr_str_begins(name, "Float8") ? 1 : 0; /* there are new ones from time to time */
}

uint32_t orr__dtype_number_bytes(int64_t number)
{
    for (size_t i = 0; number > 0 && i < ROWS; i++) {
        if (number == rows[i].number)
            return rows[i].bytes;
    }
    return 0;
}
