/* SPDX-License-Identifier: Apache-2.0 */
/* scalesim_network.c - tables of layers (scale-sim.md 5 and 6.1).
 *
 * The two programs split lines at commas and then differ: v1 passes over lines of fewer than nine fields, v2 drops
 * what is behind the last comma.  For our own rules neither counts: empty fields at the end of a line are nothing. */
#include "scalesim_impl.h"

#include "base/formats/csv.h"
#include "base/io/input.h"
#include "base/text/number.h"
#include "base/text/text.h"

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

/* Depthwise, by v2's convention: so many convolutions of one channel. */
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

/* v1 keeps quotes, and the blanks between a name and its comma. */
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

static orr_code take_gemm(reader *r, const orr_csv_row *row)
{
    static const char *const names[] = {"m", "n", "k"};
    uint64_t m, n, k;
    uint64_t *const to[] = {&m, &n, &k};
    orr_scalesim_layer l = {.name = name_of(r, &row->fields[0]), .line = row->line};
    const orr_code code = take_numbers(r, row, names, to, 3);
    if (code)
        return code;
    l.layer = orr_systolic_gemm(m, n, k);
    return add_layer(r, &l);
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
    const bool has_two = fields > CONV_FIELDS && !r->rules->has_one_stride;
    orr_code code = take_numbers(r, row, names, to, has_two ? 8 : 7);
    if (!code)
        code = check_filter(r, row, x);
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
    return orr_fail(r->err, ORR_EINPUT, &w, "%s expected, %zu found%s", expected, found,
                    r->rules->rows == ORR__ROWS_BY_FORM
                        ? "; SCALE-Sim v2 drops what follows the last comma"
                        : "");
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
    if (fields < (is_gemm ? GEMM_FIELDS : CONV_FIELDS))
        return wrong_count(r, row, fields,
                           is_gemm ? "4 columns (name, m, n, k)"
                                   : "8 or 9 columns (a convolution)");
    return is_gemm ? take_gemm(r, row) : take_conv(r, row, fields);
}

static orr_code take_by_columns(reader *r, const orr_csv_row *row)
{
    size_t fields = row->count;
    while (fields > 1 && row->fields[fields - 1].text.len == 0)
        fields--;
    if (fields == GEMM_FIELDS && r->opt.form != ORR_SCALESIM_CONV)
        return take_gemm(r, row);
    if ((fields == CONV_FIELDS || fields == CONV_FIELDS + 1) && r->opt.form != ORR_SCALESIM_GEMM)
        return take_conv(r, row, fields);
    return wrong_count(r, row, fields,
                       r->opt.form == ORR_SCALESIM_GEMM   ? "4 columns (name, m, n, k)"
                       : r->opt.form == ORR_SCALESIM_CONV ? "8 or 9 columns (a convolution)"
                                                          : "8 or 9 columns (a convolution) or 4 "
                                                            "(a GEMM)");
}

/* The first line is passed over by all programs, so a layer there would be lost. */
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
