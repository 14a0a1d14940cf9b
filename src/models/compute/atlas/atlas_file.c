/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_file.c - a chip from a file: a built-in one with factors that were measured.
 *
 *     like: h200
 *     power_spread: 0.03
 *     kernels:
 *       gemm: {scale: 1.02, low: 0.91, high: 1.08, rows: 60}
 *
 * power_spread: variation of power per operation between chips of the kind (0: none); scale:
 * measured over the built-in chip's time, the median of `rows`; low and high: the 90 % interval
 * around it. */
#include "models/compute/atlas/atlas.h"

#include "base/formats/yaml.h"
#include "base/io/input.h"

#include <stdio.h>

static orr_code take_kind(orr_yaml_value map, unsigned kind, orr_chip *out, orr_error *err)
{
    static const char *const keys[] = {"scale", "low", "high", "rows", NULL};
    orr_yaml_value v;
    uint64_t rows = 0;
    double scale = 0, low = 0, high = 0;
    if (!orr_yaml_find(map, orr_kernel_kind_name((orr_kernel_kind)kind), &v))
        return ORR_OK;
    orr_code code = orr_yaml_check_keys(v, keys, err);
    if (!code)
        code = orr_yaml_take_number(v, "scale", 0.01, 100, &scale, err);
    if (!code)
        code = orr_yaml_take_number(v, "low", 0.01, 1, &low, err);
    if (!code)
        code = orr_yaml_take_number(v, "high", 1, 100, &high, err);
    if (!code)
        code = orr_yaml_take_u64(v, "rows", 1, UINT32_MAX, &rows, err);
    out->scale[kind] = scale;
    out->scale_low[kind] = low > 0 && high > 0 ? low : 0;
    out->scale_high[kind] = high;
    return code;
}

static orr_code take_chip(orr_yaml_value root, orr_chip *out, orr_error *err)
{
    static const char *const keys[] = {"like", "power_spread", "kernels", NULL};
    const char *kinds[ORR_KERNEL_KINDS + 1] = {0};
    char name[64];
    orr_yaml_value v;
    orr_code code = orr_yaml_check_keys(root, keys, err);
    if (!code)
        code = orr_yaml_need(root, "like", &v, err);
    if (code)
        return code;
    const orr_str like = orr_yaml_text(v);
    const orr_where w = orr_yaml_where(v);
    snprintf(name, sizeof name, "%.*s", (int)(like.len < 63 ? like.len : 63), like.ptr);
    const orr_chip *base = orr_yaml_type_of(v) == ORR_YAML_SCALAR ? orr_chip_find(name) : NULL;
    if (!base)
        return orr_fail(err, ORR_EINPUT, &w, "like: unknown chip '%s'", name);
    *out = *base;
    out->base = base;
    code = orr_yaml_take_number(root, "power_spread", 0, 0.5, &out->power_spread, err);
    if (code || !orr_yaml_find(root, "kernels", &v))
        return code;
    for (unsigned i = 0; i < ORR_KERNEL_KINDS; i++)
        kinds[i] = orr_kernel_kind_name((orr_kernel_kind)i);
    code = orr_yaml_check_keys(v, kinds, err);
    for (unsigned i = 0; i < ORR_KERNEL_KINDS && !code; i++)
        code = take_kind(v, i, out, err);
    return code;
}

orr_code orr_chip_parse(orr_span bytes, const char *label, orr_chip *out, orr_error *err)
{
    orr_yaml *y;
    orr_code code = orr_yaml_open(bytes, label, &y, err);
    if (code)
        return code;
    code = take_chip(orr_yaml_root(y), out, err);
    orr_yaml_close(y);
    return code;
}

orr_code orr_chip_read(const char *path, orr_chip *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_chip_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}
