/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_config.c - SCALE-Sim's configuration files, of both generations (scale-sim.md 5 and 6.1).
 *
 * The generations differ in how they spell the buffers' sizes and in whether memory is spoken of at all; either
 * spelling is taken, so a file need not say which program it was written for. */
#include <orrery/lab/scalesim.h>

#include "base/formats/ini.h"
#include "base/io/input.h"
#include "base/memory/content_hash.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <stdio.h>

static const char ARCHITECTURE[] = "architecture_presets";

enum { SHOWN = 60, KIB = 1024 };
#define MOST_KIB ((uint64_t)1 << 40)
#define MOST_OFFSET ((uint64_t)1 << 62)

static orr_code refuse(const orr_ini *ini,
                       const char *key,
                       const orr_ini_value *v,
                       const char *expected,
                       orr_error *err)
{
    const orr_where w = orr_ini_where(ini, v);
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not %s", key,
                    (int)(v->text.len < SHOWN ? v->text.len : SHOWN), v->text.ptr, expected);
}

/* A whole number, the first of a list. */
static orr_code number_of(const orr_ini *ini,
                          const char *key,
                          const orr_ini_value *found,
                          uint64_t least,
                          uint64_t most,
                          uint64_t *out,
                          orr_error *err)
{
    const orr_ini_value v = orr_ini_first(*found);
    char expected[80];
    uint64_t n;
    if (!orr_text_u64(v.text, &n) || n < least || n > most) {
        snprintf(expected, sizeof expected, "a whole number from %llu to %llu",
                 (unsigned long long)least, (unsigned long long)most);
        return refuse(ini, key, &v, expected, err);
    }
    *out = n;
    return ORR_OK;
}

static orr_code take_number(const orr_ini *ini,
                            const char *key,
                            uint64_t least,
                            uint64_t most,
                            uint64_t *out,
                            orr_error *err)
{
    orr_ini_value v;
    const orr_code code = orr_ini_need(ini, ARCHITECTURE, key, &v, err);
    return code ? code : number_of(ini, key, &v, least, most, out, err);
}

/* IfmapSramSzkB in v2, IfmapSramSz in v1; both in KiB. */
static orr_code take_buffer(
    const orr_ini *ini, const char *v1_key, const char *v2_key, uint64_t *words, orr_error *err)
{
    orr_ini_value v;
    uint64_t kib = 0;
    const char *key = orr_ini_find(ini, ARCHITECTURE, v2_key, &v) ? v2_key : v1_key;
    const orr_code code = take_number(ini, key, 1, MOST_KIB, &kib, err);
    *words = kib * KIB;
    return code;
}

static orr_code take_offset(
    const orr_ini *ini, const char *key, uint64_t otherwise, uint64_t *out, orr_error *err)
{
    orr_ini_value v;
    *out = otherwise;
    if (!orr_ini_find(ini, ARCHITECTURE, key, &v))
        return ORR_OK;
    return number_of(ini, key, &v, 0, MOST_OFFSET, out, err);
}

static orr_code take_dataflow(const orr_ini *ini, orr_dataflow *out, orr_error *err)
{
    static const char *const words[] = {"os", "ws", "is"};
    orr_ini_value v;
    const orr_code code = orr_ini_need(ini, ARCHITECTURE, "Dataflow", &v, err);
    if (code)
        return code;
    for (unsigned i = 0; i < 3; i++)
        if (orr_str_is(v.text, words[i])) {
            *out = (orr_dataflow)i;
            return ORR_OK;
        }
    return refuse(ini, "Dataflow", &v, "os, ws or is", err);
}

static orr_code take_interface(const orr_ini *ini, orr_scalesim_config *out, orr_error *err)
{
    orr_ini_value v;
    double bandwidth;
    if (!orr_ini_find(ini, "run_presets", "InterfaceBandwidth", &v))
        return ORR_OK;
    if (orr_str_is(v.text, "CALC")) {
        out->interface = ORR_INTERFACE_CALC;
        return ORR_OK;
    }
    if (!orr_str_is(v.text, "USER"))
        return refuse(ini, "InterfaceBandwidth", &v, "CALC or USER", err);
    out->interface = ORR_INTERFACE_USER;
    const orr_code code = orr_ini_need(ini, ARCHITECTURE, "Bandwidth", &v, err);
    if (code)
        return code;
    v = orr_ini_first(v);
    if (!orr_text_double(v.text, &bandwidth) || !(bandwidth > 0) || !(bandwidth < 1e15))
        return refuse(ini, "Bandwidth", &v, "a number of words per cycle above 0", err);
    out->array.bandwidth = bandwidth;
    return ORR_OK;
}

static orr_code take_name(const orr_ini *ini, orr_scalesim_config *out, orr_error *err)
{
    orr_ini_value v;
    if (!orr_ini_find(ini, "general", "run_name", &v))
        return ORR_OK;
    if (v.text.len >= sizeof out->run_name || memchr(v.text.ptr, '\0', v.text.len) ||
        memchr(v.text.ptr, '/', v.text.len) || memchr(v.text.ptr, '\n', v.text.len))
        return refuse(ini, "run_name", &v, "the name of a folder", err);
    memcpy(out->run_name, v.text.ptr, v.text.len);
    return ORR_OK;
}

static orr_code take_all(const orr_ini *ini, orr_scalesim_config *out, orr_error *err)
{
    orr_systolic_array *a = &out->array;
    orr_code code = take_name(ini, out, err);
    if (!code)
        code = take_number(ini, "ArrayHeight", 1, ORR_SYSTOLIC_MOST_ROWS, &a->rows, err);
    if (!code)
        code = take_number(ini, "ArrayWidth", 1, ORR_SYSTOLIC_MOST_ROWS, &a->columns, err);
    if (!code)
        code = take_buffer(ini, "IfmapSramSz", "IfmapSramSzkB", &a->ifmap_words, err);
    if (!code)
        code = take_buffer(ini, "FilterSramSz", "FilterSramSzkB", &a->filter_words, err);
    if (!code)
        code = take_buffer(ini, "OfmapSramSz", "OfmapSramSzkB", &a->ofmap_words, err);
    if (!code)
        code = take_offset(ini, "IfmapOffset", 0, &a->ifmap_offset, err);
    if (!code)
        code = take_offset(ini, "FilterOffset", 10000000, &a->filter_offset, err);
    if (!code)
        code = take_offset(ini, "OfmapOffset", 20000000, &a->ofmap_offset, err);
    if (!code)
        code = take_dataflow(ini, &a->dataflow, err);
    return code ? code : take_interface(ini, out, err);
}

orr_code orr_scalesim_parse_config(orr_span bytes,
                                   const char *label,
                                   orr_scalesim_config *out,
                                   orr_error *err)
{
    orr_ini *ini;
    const orr_where place = orr_where_byte(label, ORR_NO_BYTE);
    *out = (orr_scalesim_config){.run_name = ""};
    memcpy(out->path, place.path, sizeof out->path);
    orr_content_hash_text(orr_content_hash_of(bytes), out->hash);
    orr_code code = orr_ini_open(bytes, label, &ini, err);
    if (code)
        return code;
    code = take_all(ini, out, err);
    orr_ini_close(ini);
    return code;
}

orr_code orr_scalesim_read_config(const char *path, orr_scalesim_config *out, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_scalesim_parse_config(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}
