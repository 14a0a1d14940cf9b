/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_read.c - SCALE-Sim's files: configurations and tables of layers (scale-sim.md 5 and
 * 6.1).
 *
 * For tables of layers the two programs split lines at commas and then differ: v1 skips lines of
 * fewer than nine fields, v2 and v3 drop everything after the last comma.  Our rules do neither:
 * they ignore empty trailing fields and annotations: comments after #, columns after an empty one,
 * titles and rows of commas. */
#include <orrery/lab/scalesim.h>

#include "base/formats/csv.h"
#include "base/formats/ini.h"
#include "base/io/input.h"
#include "base/memory/hash.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "scalesim_impl.h"

#include <stdio.h>

/* SCALE-Sim's configuration files, of both generations (scale-sim.md 5 and 6.1).
 *
 * The generations differ in the keys for buffer sizes and in whether memory is configured at all;
 * both spellings are accepted, so a file need not say which program it was written for. */

static const char ARCHITECTURE[] = "architecture_presets";

enum { SHOWN = 60, KIB = 1024, MOST_BANKS = 1 << 20, MOST_BLOCK = 1 << 20 };
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

/* ---- additions of v3 ---- */

static orr_code take_count(const orr_ini *ini,
                           const char *section,
                           const char *key,
                           uint64_t most,
                           uint64_t *out,
                           orr_error *err)
{
    orr_ini_value v;
    return orr_ini_find(ini, section, key, &v) ? number_of(ini, key, &v, 1, most, out, err)
                                               : ORR_OK;
}

static orr_code take_flag(
    const orr_ini *ini, const char *section, const char *key, bool *out, orr_error *err)
{
    orr_ini_value v;
    if (!orr_ini_find(ini, section, key, &v))
        return ORR_OK;
    const bool is_true = orr_str_is(v.text, "true") || orr_str_is(v.text, "True");
    if (!is_true && !orr_str_is(v.text, "false") && !orr_str_is(v.text, "False"))
        return refuse(ini, key, &v, "true or false", err);
    *out = is_true;
    return ORR_OK;
}

/* Banks of a buffer; missing keys have the reference's defaults. */
static orr_code take_banks(const orr_ini *ini,
                           const char *const *keys,
                           bool *has_banks,
                           orr_systolic_banks *out,
                           orr_error *err)
{
    orr_ini_value v;
    *out = (orr_systolic_banks){.bandwidth = 10, .count = 10, .ports = 2};
    *has_banks = *has_banks || orr_ini_find(ini, "layout", keys[1], &v);
    orr_code code = take_flag(ini, "layout", keys[0], &out->has_layout, err);
    if (!code)
        code = take_count(ini, "layout", keys[1], MOST_BANKS, &out->bandwidth, err);
    if (!code)
        code = take_count(ini, "layout", keys[2], MOST_BANKS, &out->count, err);
    return code ? code : take_count(ini, "layout", keys[3], MOST_BANKS, &out->ports, err);
}

static orr_code take_storage(const orr_ini *ini, orr_systolic_storage *out, orr_error *err)
{
    static const char *const words[] = {"csr", "csc", "ellpack_block"};
    orr_ini_value v;
    const orr_code code = orr_ini_need(ini, "sparsity", "SparseRep", &v, err);
    if (code)
        return code;
    for (unsigned i = 0; i < 3; i++)
        if (orr_str_is(v.text, words[i])) {
            *out = (orr_systolic_storage)i;
            return ORR_OK;
        }
    return refuse(ini, "SparseRep", &v, "csr, csc or ellpack_block", err);
}

/* The other keys are used only if it is enabled. */
static orr_code take_sparse_keys(const orr_ini *ini, orr_systolic_array *a, orr_error *err)
{
    orr_systolic_sparsity *s = &a->sparsity;
    orr_ini_value v;
    uint64_t seed = 40;
    *s = (orr_systolic_sparsity){.block = 4};
    orr_code code = take_flag(ini, "sparsity", "SparsitySupport", &s->is_on, err);
    if (code || !s->is_on)
        return code;
    code = take_storage(ini, &s->storage, err);
    if (!code)
        code = take_flag(ini, "sparsity", "OptimizedMapping", &s->is_optimized, err);
    if (!code && s->is_optimized)
        code = take_count(ini, "sparsity", "BlockSize", MOST_BLOCK, &s->block, err);
    if (!code && orr_ini_find(ini, "sparsity", "RandomNumberGeneratorSeed", &v))
        code = number_of(ini, "RandomNumberGeneratorSeed", &v, 0, UINT32_MAX, &seed, err);
    s->seed = (uint32_t)seed;
    return code;
}

static orr_code take_v3(const orr_ini *ini, orr_scalesim_config *out, orr_error *err)
{
    static const char *const ifmap[] = {"IfmapCustomLayout", "IfmapSRAMBankBandwidth",
                                        "IfmapSRAMBankNum", "IfmapSRAMBankPort"};
    static const char *const filter[] = {"FilterCustomLayout", "FilterSRAMBankBandwidth",
                                         "FilterSRAMBankNum", "FilterSRAMBankPort"};
    orr_ini_value v;
    bool has_filter_banks = false;
    orr_code code = take_banks(ini, ifmap, &out->has_banks, &out->array.ifmap_banks, err);
    if (!code)
        code = take_banks(ini, filter, &has_filter_banks, &out->array.filter_banks, err);
    if (!code)
        code = take_sparse_keys(ini, &out->array, err);
    if (!code)
        code = take_flag(ini, "run_presets", "UseRamulatorTrace", &out->has_ramulator, err);
    const bool is_v3 = out->has_banks || has_filter_banks ||
                       orr_ini_find(ini, "sparsity", "SparsitySupport", &v) ||
                       orr_ini_find(ini, "run_presets", "UseRamulatorTrace", &v);
    out->has_banks = out->has_banks && has_filter_banks;
    out->generation =
        is_v3                                                                              ? 3
        : out->interface != ORR_INTERFACE_UNSAID                                           ? 2
        : out->run_name[0] == '"' || !orr_ini_find(ini, ARCHITECTURE, "IfmapSramSzkB", &v) ? 1
                                                                                           : 2;
    return code;
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
    if (!code)
        code = take_interface(ini, out, err);
    return code ? code : take_v3(ini, out, err);
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

/* ---- tables of layers ---- */

enum { CONV_FIELDS = 8, GEMM_FIELDS = 4, V1_FIELDS = 9, MOST_LAYERS = 1 << 16 };
#define MOST_SIZE ((uint64_t)1 << 32)

typedef struct reader {
    orr_scalesim_network *n;
    orr_scalesim_read opt;
    orr_csv csv;
    const orr_rules_systolic *rules;
    orr_error *err;
} reader;

static orr_code check_count(reader *r, const orr_scalesim_layer *l, uint64_t more)
{
    const orr_where w = orr_where_line(r->n->path, l->line, 1);
    if (more <= MOST_LAYERS - r->n->count)
        return ORR_OK;
    return orr_fail(r->err, ORR_EINPUT, &w, "more than %d layers", MOST_LAYERS);
}

static orr_code add_layer(reader *r, const orr_scalesim_layer *l)
{
    orr_scalesim_network *n = r->n;
    const orr_code code = check_count(r, l, 1);
    if (code)
        return code;
    if (!orr_grow(&n->layers, &n->room, n->count + 1))
        return orr_no_memory(r->err);
    n->layers[n->count] = *l;
    char *name = orr_arena_text(n->arena, l->name);
    if (!name)
        return orr_no_memory(r->err);
    n->layers[n->count++].name.ptr = name;
    return ORR_OK;
}

/* Depthwise, by v2's convention: one convolution per channel. */
static orr_code add_depthwise(reader *r, const orr_scalesim_layer *l)
{
    orr_scalesim_layer one = *l;
    orr_code code = check_count(r, l, l->layer.channels);
    one.layer.channels = 1;
    for (uint64_t i = 0; i < l->layer.channels && !code; i++) {
        char *name = orr_arena_print(r->n->arena, "%.*sChannel_%llu", (int)l->name.len, l->name.ptr,
                                     (unsigned long long)i);
        if (!name)
            return orr_no_memory(r->err);
        one.name = orr_str_of(name);
        code = add_layer(r, &one);
    }
    return code;
}

static bool has_dp(orr_str name)
{
    for (size_t i = 0; i + 1 < name.len; i++)
        if (name.ptr[i] == 'D' && name.ptr[i + 1] == 'P')
            return true;
    return false;
}

/* v1 keeps quotes, and blanks between a name and its comma. */
static orr_str name_of(const reader *r, const orr_csv_field *f)
{
    return r->rules->keeps_raw_names ? f->raw : f->text;
}

static orr_code take_numbers(
    reader *r, const orr_csv_row *row, const char *const *names, uint64_t *const *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const orr_code code =
            orr_csv_u64(&r->csv, &row->fields[i + 1], names[i], 1, MOST_SIZE, to[i], r->err);
        if (code)
            return code;
    }
    return ORR_OK;
}

static bool has_colon(const orr_csv_field *f)
{
    return f->text.len && memchr(f->text.ptr, ':', f->text.len);
}

static orr_str trim(orr_str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* 2:4 - two of four weights are nonzero. */
static orr_code take_sparsity(reader *r, const orr_csv_field *f, orr_systolic_layer *l)
{
    const char *colon = f->text.len ? memchr(f->text.ptr, ':', f->text.len) : NULL;
    uint64_t n, m;
    if (colon) {
        const size_t before = (size_t)(colon - f->text.ptr);
        const orr_str left = trim((orr_str){f->text.ptr, before});
        const orr_str right = trim((orr_str){colon + 1, f->text.len - before - 1});
        if (orr_text_u64(left, &n) && orr_text_u64(right, &m) && n >= 1 && n <= m &&
            m <= MOST_BLOCK) {
            l->nonzero = n;
            l->block = m;
            return ORR_OK;
        }
    }
    const orr_where w = orr_csv_where(&r->csv, f);
    return orr_fail(r->err, ORR_EINPUT, &w,
                    "sparsity: \"%.*s\" is not N:M, N of M weights not zero, as 2:4",
                    (int)(f->text.len < SHOWN ? f->text.len : SHOWN), f->text.ptr);
}

static orr_code take_gemm(reader *r, const orr_csv_row *row, size_t fields)
{
    static const char *const names[] = {"m", "n", "k"};
    uint64_t m, n, k;
    uint64_t *const to[] = {&m, &n, &k};
    orr_scalesim_layer l = {.name = name_of(r, &row->fields[0]), .line = row->line};
    orr_code code = take_numbers(r, row, names, to, 3);
    if (code)
        return code;
    l.layer = orr_systolic_gemm(m, n, k);
    if (fields > GEMM_FIELDS)
        code = take_sparsity(r, &row->fields[GEMM_FIELDS], &l.layer);
    return code ? code : add_layer(r, &l);
}

static orr_code check_filter(reader *r, const orr_csv_row *row, const orr_systolic_layer *l)
{
    const bool is_high = l->filter_height > l->ifmap_height;
    if (!is_high && l->filter_width <= l->ifmap_width)
        return ORR_OK;
    const orr_where w = orr_csv_where(&r->csv, &row->fields[is_high ? 3 : 4]);
    return orr_fail(r->err, ORR_EINPUT, &w, "the filter is %s than the ifmap: %llu of %llu",
                    is_high ? "higher" : "wider",
                    (unsigned long long)(is_high ? l->filter_height : l->filter_width),
                    (unsigned long long)(is_high ? l->ifmap_height : l->ifmap_width));
}

static orr_code take_conv(reader *r, const orr_csv_row *row, size_t fields)
{
    static const char *const names[] = {"ifmap height", "ifmap width",    "filter height",
                                        "filter width", "channels",       "number of filters",
                                        "stride",       "stride in width"};
    orr_scalesim_layer l = {.name = name_of(r, &row->fields[0]), .line = row->line};
    orr_systolic_layer *x = &l.layer;
    uint64_t *const to[] = {&x->ifmap_height, &x->ifmap_width, &x->filter_height, &x->filter_width,
                            &x->channels,     &x->filters,     &x->stride_height, &x->stride_width};
    const bool is_sparse = r->rules->has_sparsity
                               ? fields > CONV_FIELDS
                               : r->rules->rows == ORR__ROWS_BY_COLUMNS && fields > CONV_FIELDS &&
                                     has_colon(&row->fields[fields - 1]);
    const bool has_two = fields - is_sparse > CONV_FIELDS && !r->rules->has_one_stride;
    orr_code code = take_numbers(r, row, names, to, has_two ? 8 : 7);
    if (!code)
        code = check_filter(r, row, x);
    if (!code && is_sparse)
        code = take_sparsity(r, &row->fields[fields - 1], x);
    if (code)
        return code;
    if (!has_two)
        x->stride_width = x->stride_height;
    const bool is_depthwise = !r->rules->has_no_depthwise && has_dp(l.name);
    return is_depthwise ? add_depthwise(r, &l) : add_layer(r, &l);
}

/* ---- lines ---- */

static orr_code wrong_count(reader *r, const orr_csv_row *row, size_t found, const char *expected)
{
    const orr_where w = orr_csv_where(&r->csv, &row->fields[row->count - 1]);
    if (r->rules->rows == ORR__ROWS_BY_FORM)
        return orr_fail(r->err, ORR_EINPUT, &w,
                        "%s expected, %zu found; SCALE-Sim %s drops what follows the last comma",
                        expected, found, r->rules->name);
    return orr_fail(r->err, ORR_EINPUT, &w, "%s expected, %zu found", expected, found);
}

static orr_code take_of_nine(reader *r, const orr_csv_row *row)
{
    if (row->count >= V1_FIELDS)
        return take_conv(r, row, CONV_FIELDS);
    if (r->n->skipped++ == 0)
        r->n->first_skipped = row->line;
    return ORR_OK;
}

static orr_code take_by_form(reader *r, const orr_csv_row *row)
{
    const size_t fields = row->count - 1;
    const bool is_gemm = r->opt.form == ORR_SCALESIM_GEMM;
    if (fields < (is_gemm ? GEMM_FIELDS : CONV_FIELDS) ||
        (r->rules->has_sparsity && !is_gemm && fields > CONV_FIELDS + 1))
        return wrong_count(r, row, fields,
                           is_gemm ? "4 columns (name, m, n, k)"
                                   : "8 or 9 columns (a convolution)");
    if (is_gemm)
        return take_gemm(r, row, r->rules->has_sparsity ? fields : GEMM_FIELDS);
    return take_conv(r, row, fields);
}

/* Columns that describe the layer: up to a comment, or, after a complete convolution, up to an
 * empty one. */
static size_t count_fields(const orr_csv_row *row)
{
    size_t fields = row->count;
    for (size_t i = GEMM_FIELDS; i < fields; i++) {
        const orr_str text = row->fields[i].text;
        if (text.len ? text.ptr[0] == '#' : i >= CONV_FIELDS)
            fields = i;
    }
    while (fields > 1 && row->fields[fields - 1].text.len == 0)
        fields--;
    return fields;
}

/* A name alone, or nothing at all, before commas. */
static bool is_title(const orr_csv_row *row)
{
    for (size_t i = 1; i < row->count; i++)
        if (row->fields[i].text.len)
            return false;
    return row->count > 1;
}

static void skip_title(reader *r, const orr_csv_row *row)
{
    if (row->fields[0].text.len && r->n->skipped++ == 0)
        r->n->first_skipped = row->line;
}

static orr_code take_by_columns(reader *r, const orr_csv_row *row)
{
    const size_t fields = count_fields(row);
    const bool is_sparse = fields > 1 && has_colon(&row->fields[fields - 1]);
    const size_t numbers = fields - is_sparse;
    if (is_title(row)) {
        skip_title(r, row);
        return ORR_OK;
    }
    if (numbers == GEMM_FIELDS && r->opt.form != ORR_SCALESIM_CONV)
        return take_gemm(r, row, fields);
    if ((numbers == CONV_FIELDS || numbers == CONV_FIELDS + 1) && r->opt.form != ORR_SCALESIM_GEMM)
        return take_conv(r, row, fields);
    return wrong_count(r, row, fields,
                       r->opt.form == ORR_SCALESIM_GEMM   ? "4 columns (name, m, n, k)"
                       : r->opt.form == ORR_SCALESIM_CONV ? "8 or 9 columns (a convolution)"
                                                          : "8 or 9 columns (a convolution) or 4 "
                                                            "(a GEMM)");
}

/* All programs skip the first line, so a layer there would be lost. */
static orr_code check_header(reader *r, const orr_csv_row *row)
{
    uint64_t n;
    if (row->count < 2 || !orr_text_u64(row->fields[1].text, &n))
        return ORR_OK;
    const orr_where w = orr_csv_where(&r->csv, &row->fields[1]);
    return orr_fail(r->err, ORR_EINPUT, &w,
                    "the first line must be a header, and this looks like a layer");
}

static orr_code read_rows(reader *r)
{
    orr_csv_row row;
    orr_code code = orr_csv_next(&r->csv, &row, r->err);
    if (code == ORR_OK && !(code = check_header(r, &row)))
        while ((code = orr_csv_next(&r->csv, &row, r->err)) == ORR_OK) {
            code = r->rules->rows == ORR__ROWS_OF_NINE   ? take_of_nine(r, &row)
                   : r->rules->rows == ORR__ROWS_BY_FORM ? take_by_form(r, &row)
                                                         : take_by_columns(r, &row);
            if (code)
                return code;
        }
    if (code != ORR_END)
        return code;
    const orr_where w = orr_where_byte(r->n->path, ORR_NO_BYTE);
    return r->n->count ? ORR_OK : orr_fail(r->err, ORR_EINPUT, &w, "there are no layers in it");
}

/* ---- files ---- */

static char *short_name(orr_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
    return orr_arena_text(a, (orr_str){from, strcspn(from, ".")});
}

static orr_code create(const char *path, orr_scalesim_network **out, orr_error *err)
{
    orr_scalesim_network *n = orr_alloc(1, sizeof *n);
    *out = n;
    if (!n || !(n->arena = orr_arena_create()) ||
        !(n->path = orr_arena_text(n->arena, orr_str_of(path))) ||
        !(n->name = short_name(n->arena, path)))
        return orr_no_memory(err);
    return ORR_OK;
}

/* A tab if the first line has tabs and no comma. */
static char separator_of(const reader *r, orr_span bytes)
{
    const uint8_t *end = bytes.len ? memchr(bytes.ptr, '\n', bytes.len) : NULL;
    const size_t first = end ? (size_t)(end - bytes.ptr) : bytes.len;
    const bool has_tabs = first && memchr(bytes.ptr, '\t', first) && !memchr(bytes.ptr, ',', first);
    return has_tabs && r->rules->rows == ORR__ROWS_BY_COLUMNS ? '\t' : ',';
}

orr_code orr_scalesim_parse_network(orr_span bytes,
                                    const char *label,
                                    const orr_scalesim_read *opt,
                                    orr_scalesim_network **out,
                                    orr_error *err)
{
    reader r = {.err = err};
    orr_code code = create(label, &r.n, err);
    if (!code) {
        r.opt = opt ? *opt : (orr_scalesim_read){0};
        r.rules = orr__systolic_rules(r.opt.rules);
        r.n->hash = orr_content_hash_of(bytes);
        orr_csv_init(&r.csv, bytes, r.n->path);
        r.csv.separator = separator_of(&r, bytes);
        code = read_rows(&r);
        orr_csv_fini(&r.csv);
    }
    if (code) {
        orr_scalesim_network_free(r.n);
        r.n = NULL;
    }
    *out = r.n;
    return code;
}

orr_code orr_scalesim_read_network(const char *path,
                                   const orr_scalesim_read *opt,
                                   orr_scalesim_network **out,
                                   orr_error *err)
{
    orr_input *in;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    code = orr_scalesim_parse_network(orr_input_bytes(in), path, opt, out, err);
    orr_input_close(in);
    return code;
}

/* ---- tables of layouts (scale-sim.md 12.6) ---- */

enum { LAYOUT_FIELDS = 21, IFMAP_LAYOUT_FIELDS = 13 };

/* The columns of a row; two groups share a column.  Missing ones have no dimension. */
static orr_code take_layout(const orr_csv *csv,
                            const orr_csv_row *row,
                            orr_systolic_layout *out,
                            orr_error *err)
{
    uint64_t v[LAYOUT_FIELDS];
    static const uint8_t filter_factors[] = {6, 5, 3, 4};
    for (size_t i = 0; i < LAYOUT_FIELDS; i++)
        v[i] = UINT64_MAX;
    for (size_t i = 1; i < LAYOUT_FIELDS && i + 1 < row->count; i++) {
        const orr_code code =
            orr_csv_u64(csv, &row->fields[i], "layout", i < 7 ? 1 : 0, MOST_BANKS, &v[i], err);
        if (code)
            return code;
    }
    for (int i = 0; i < 3; i++) {
        out->ifmap_factors[i] = v[i < 2 ? i + 1 : 5];
        out->ifmap_order[i] = v[10 + i];
        out->ifmap_order[3 + i] = v[7 + i];
    }
    for (int i = 0; i < 4; i++) {
        out->filter_factors[i] = v[filter_factors[i]];
        out->filter_order[i] = v[17 + i];
        out->filter_order[4 + i] = v[13 + i];
    }
    return ORR_OK;
}

/* The header, then the one row that the reference uses for all layers. */
static orr_code parse_layout(orr_csv *csv, orr_systolic_layout *out, orr_error *err)
{
    orr_csv_row row;
    orr_code code = orr_csv_next(csv, &row, err);
    if (!code)
        code = orr_csv_next(csv, &row, err);
    if (code == ORR_END) {
        const orr_where w = orr_where_byte(csv->path, ORR_NO_BYTE);
        return orr_fail(err, ORR_EINPUT, &w, "there is no layout in it");
    }
    if (code)
        return code;
    if (row.count <= IFMAP_LAYOUT_FIELDS) {
        const orr_where w = orr_csv_where(csv, &row.fields[row.count - 1]);
        return orr_fail(err, ORR_EINPUT, &w,
                        "%d columns and a comma expected, %zu found; SCALE-Sim v3 drops what "
                        "follows the last comma",
                        LAYOUT_FIELDS, row.count);
    }
    return take_layout(csv, &row, out, err);
}

orr_code orr_scalesim_read_layout(const char *path, orr_systolic_layout *out, orr_error *err)
{
    orr_input *in;
    orr_csv csv;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    orr_csv_init(&csv, orr_input_bytes(in), path);
    code = parse_layout(&csv, out, err);
    orr_csv_fini(&csv);
    orr_input_close(in);
    return code;
}

void orr_scalesim_network_free(orr_scalesim_network *n)
{
    if (!n)
        return;
    orr_arena_destroy(n->arena);
    orr_free(n->layers);
    orr_free(n);
}

size_t orr_scalesim_network_count(const orr_scalesim_network *n)
{
    return n->count;
}

const orr_scalesim_layer *orr_scalesim_network_at(const orr_scalesim_network *n, size_t i)
{
    return &n->layers[i];
}

const char *orr_scalesim_network_name(const orr_scalesim_network *n)
{
    return n->name;
}

size_t orr_scalesim_network_skipped(const orr_scalesim_network *n, uint32_t *first)
{
    *first = n->first_skipped;
    return n->skipped;
}
