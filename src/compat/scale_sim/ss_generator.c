/* SPDX-License-Identifier: Apache-2.0 */
/* ss_generator.c - the generator of text workloads that used SCALE-Sim (scale-sim.md 7): its CSV
 * file, its layers, its intermediate files.
 *
 * Quirks kept: shards and sizes are divided in floating point and truncated, so remainders are
 * lost; the strategy is repeated after every row; the update takes 100 cycles; with v2 all three
 * times are those of the weight gradient, because the reports overwrite each other.  An empty
 * shard, which crashes the old program late, is an error. */
#include "scale_sim.h"

#include "base/io/output.h"
#include "base/text/number.h"
#include "sources/layers/gemm_impl.h"

#include <inttypes.h>

enum { UPDATE_TIME = 100, SHOWN = 60 };

/* Python's int(a / b): a double quotient, truncated (scale-sim.md 7.2, 7.4). */
static uint64_t quotient(uint64_t a, uint64_t b)
{
    return (uint64_t)((double)a / (double)b);
}

/* The divisor of each collective's size under a strategy; 0: no such collective (scale-sim.md
 * 7.4). */
typedef struct plan {
    uint64_t gather, scatter, reduce;
} plan;

static plan plan_of(orr_policy p, uint64_t npus, uint64_t packages)
{
    const uint64_t inside = npus / packages;
    switch (p) {
    case ORR_POLICY_MODEL:
        return (plan){npus, 1, 0};
    case ORR_POLICY_HYBRID_DATA_MODEL:
        return (plan){npus, packages, inside};
    case ORR_POLICY_HYBRID_MODEL_DATA:
        return (plan){npus, inside, packages};
    default:
        return (plan){0, 0, 1};
    }
}

static orr_where place(const orr_gemm *g, const lay_shape *s, uint32_t column)
{
    return orr_where_line(g->label, s->line, column ? column : 1);
}

static orr_code check_share(const orr_gemm *g,
                            const lay_shape *s,
                            lay_size size,
                            uint64_t ways,
                            uint64_t share,
                            orr_error *err)
{
    if (share > 0)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, ORR_AT(place(g, s, s->column[size])),
                    "%.*s: %s of %" PRIu64 " shared by %" PRIu64 " leaves nothing for an NPU",
                    ORR_SHOWN(s->name, SHOWN), lay_size_name(size), s->size[size], ways);
}

/* The matrix products of the three passes (scale-sim.md 7.2, 7.3). */
static orr_code share_out(const orr_gemm *g,
                          const lay_shape *s,
                          orr_policy policy,
                          lay_product out[ORR_PASSES],
                          orr_error *err)
{
    const lay_ways w = lay_ways_of(policy, g->opt.npus, g->opt.packages);
    const uint64_t m = quotient(s->size[ORR__M], w.batch);
    const uint64_t n = quotient(s->size[ORR__N], w.output), k = s->size[ORR__K];
    orr_code code = check_share(g, s, ORR__M, w.batch, m, err);
    if (!code)
        code = check_share(g, s, ORR__N, w.output, n, err);
    if (!code)
        code = check_share(g, s, ORR__K, 1, k, err);
    out[ORR_PASS_FORWARD] = (lay_product){1, m, n, k, 1, 1};
    out[ORR_PASS_INPUT_GRAD] = (lay_product){1, m, k, n, 1, 1};
    out[ORR_PASS_WEIGHT_GRAD] = (lay_product){1, k, n, m, 1, 1};
    return code;
}

static orr_code pass_cycles(
    const orr_gemm *g, const lay_shape *s, const lay_product *p, uint64_t *out, orr_error *err)
{
    const orr_code code =
        lay_array_cycles(&g->array, g->opt.rules->systolic, p->m, p->n, p->k, out, err);
    if (code == ORR_EINPUT && err && !err->where.path[0])
        err->where = place(g, s, 1);
    return code;
}

/* a * b elements in bytes, divided by `ways`; 0 ways: no such collective. */
static orr_code size_of(const orr_gemm *g,
                        const lay_shape *s,
                        uint64_t a,
                        uint64_t b,
                        uint64_t ways,
                        orr_bytes *out,
                        orr_error *err)
{
    uint64_t bytes;
    *out = 0;
    if (ways == 0)
        return ORR_OK;
    if (__builtin_mul_overflow(a, b, &bytes) ||
        __builtin_mul_overflow(bytes, g->opt.datatype_bytes, &bytes) || bytes >> 63)
        return orr_fail(err, ORR_EINPUT, ORR_AT(place(g, s, 1)),
                        "%.*s: the layer is too large: a tensor of 2^63 bytes",
                        ORR_SHOWN(s->name, SHOWN));
    *out = quotient(bytes, ways);
    return ORR_OK;
}

static orr_code take_collectives(const orr_gemm *g,
                                 const lay_shape *s,
                                 orr_gemm_layer *l,
                                 orr_error *err)
{
    const plan p = plan_of(l->policy, g->opt.npus, g->opt.packages);
    const uint64_t m = s->size[ORR__M], n = s->size[ORR__N], k = s->size[ORR__K];
    orr_gemm_pass *pass = l->pass;
    orr_code code = size_of(g, s, m, n, p.gather, &pass[ORR_PASS_FORWARD].comm_bytes, err);
    if (!code)
        code = size_of(g, s, m, k, p.scatter, &pass[ORR_PASS_INPUT_GRAD].comm_bytes, err);
    if (!code)
        code = size_of(g, s, n, k, p.reduce, &pass[ORR_PASS_WEIGHT_GRAD].comm_bytes, err);
    pass[ORR_PASS_FORWARD].comm = p.gather ? "ALLGATHER" : "NONE";
    pass[ORR_PASS_INPUT_GRAD].comm = p.scatter ? "REDUCESCATTER" : "NONE";
    pass[ORR_PASS_WEIGHT_GRAD].comm = p.reduce ? "ALLREDUCE" : "NONE";
    return code;
}

static orr_code add_layer(orr_gemm *g, const lay_shape *s, orr_error *err)
{
    lay_product *shard = g->shards[g->count];
    orr_gemm_layer l = {.policy = g->opt.policy, .update_in_table = UPDATE_TIME};
    if (g->opt.policy == ORR_POLICY_HYBRID_CUSTOMIZED)
        l.policy = s->policy;
    double cycles = 0, products = 0;
    orr_code code = share_out(g, s, l.policy, shard, err);
    for (int i = 0; i < ORR_PASSES && !code; i++) {
        orr_gemm_pass *p = &l.pass[i];
        code = pass_cycles(g, s, &shard[i], &p->cycles, err);
        p->array_cycles = p->in_table = p->cycles;
        p->products = shard[i].m * shard[i].n * shard[i].k; /* below 2^62: the model checked it */
        cycles += (double)p->cycles;
        products += (double)p->products;
    }
    if (!code)
        code = take_collectives(g, s, &l, err);
    if (code)
        return code;
    l.utilisation = products / (cycles * (double)g->array.rows * (double)g->array.columns);
    if (g->opt.rules->has_last_pass_only) {
        l.pass[ORR_PASS_FORWARD].in_table = l.pass[ORR_PASS_WEIGHT_GRAD].cycles;
        l.pass[ORR_PASS_INPUT_GRAD].in_table = l.pass[ORR_PASS_WEIGHT_GRAD].cycles;
    }
    l.name = (orr_str){orr_arena_text(g->arena, s->name), s->name.len};
    if (!l.name.ptr)
        return orr_no_memory(err);
    g->layers[g->count++] = l;
    return ORR_OK;
}

static orr_code fill(orr_gemm *g, const orr_shapes *s, orr_error *err)
{
    orr_code code = ORR_OK;
    g->opt.times = ORR_TIMES_CYCLES;
    g->shards = orr_alloc(s->count ? s->count : 1, sizeof *g->shards);
    if (!g->shards)
        return orr_no_memory(err);
    for (size_t i = 0; i < s->count && !code; i++)
        code = add_layer(g, &s->all[i], err);
    return code;
}

/* ==== the CSV file of the old generator (scale-sim.md 7.1, 7.6).
 *
 * The first line is skipped unread.  All others are name,m,n,k[,strategy], split at commas without
 * regard to quotes; further fields are ignored, and so is the strategy without
 * HYBRID_CUSTOMIZED.  Lines that crash the old program are errors here: blank ones, those with too
 * few fields and those without a number. */

enum { FIELDS = 6 };

/* One line split at commas; `count` may exceed FIELDS. */
typedef struct line {
    orr_str field[FIELDS];
    uint32_t column[FIELDS];
    size_t count;
    uint32_t number;
} line;

static bool is_among(char c, const char *chars)
{
    return c != '\0' && strchr(chars, c);
}

static orr_str strip(orr_str s, const char *chars)
{
    while (s.len && is_among(s.ptr[0], chars)) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_among(s.ptr[s.len - 1], chars))
        s.len--;
    return s;
}

static orr_str trim(orr_str s)
{
    return strip(s, " \t\r");
}

static void cut(orr_str text, line *out)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    out->count = 0;
    for (;;) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        if (out->count < FIELDS) {
            out->field[out->count] = (orr_str){at, (size_t)(stop - at)};
            out->column[out->count] = (uint32_t)(at - text.ptr) + 1;
        }
        out->count++;
        if (!comma)
            return;
        at = comma + 1;
    }
}

static orr_code take_number(
    const orr_shapes *t, const line *l, size_t i, const char *what, uint64_t *out, orr_error *err)
{
    const orr_str s = trim(l->field[i]);
    int64_t v;
    if (orr_text_i64(s, &v) && v >= 0) {
        *out = (uint64_t)v;
        return ORR_OK;
    }
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(t->label, l->number, l->column[i])),
                    "%s: \"%.*s\" is not a whole number of at least 0", what, ORR_SHOWN(s, SHOWN));
}

static orr_code check_count(const orr_shapes *t, const line *l, bool needs_policies, orr_error *err)
{
    const orr_where w = orr_where_line(t->label, l->number, 1);
    if (l->count == 1 && trim(l->field[0]).len == 0)
        return orr_fail(err, ORR_EINPUT, &w,
                        "a blank line: the old generator stops here (orrery gemm without --compat "
                        "skips it)");
    if (needs_policies && l->count != 5)
        return orr_fail(err, ORR_EINPUT, &w,
                        "HYBRID_CUSTOMIZED takes 5 fields, name,m,n,k,strategy, but there are %zu",
                        l->count);
    if (l->count < 4)
        return orr_fail(err, ORR_EINPUT, &w, "expected 4 fields, name,m,n,k, but there are %zu",
                        l->count);
    return ORR_OK;
}

static orr_code take_line(orr_shapes *t, const line *l, bool needs_policies, orr_error *err)
{
    static const char *const names[] = {"m", "n", "k"};
    static const lay_size sizes[] = {ORR__M, ORR__N, ORR__K};
    lay_shape s = {.name = l->field[0], .line = l->number};
    orr_code code = check_count(t, l, needs_policies, err);
    for (size_t i = 0; i < 3 && !code; i++) {
        s.column[sizes[i]] = l->column[i + 1];
        code = take_number(t, l, i + 1, names[i], &s.size[sizes[i]], err);
    }
    if (code)
        return code;
    if (needs_policies) {
        const orr_str word = trim(l->field[4]);
        if (!lay_strategy_find(word, &s.policy))
            return orr_fail(err, ORR_EINPUT,
                            ORR_AT(orr_where_line(t->label, l->number, l->column[4])),
                            "strategy: \"%.*s\" is not " ORR__STRATEGIES, ORR_SHOWN(word, SHOWN));
        s.has_policy = true;
    }
    return lay_shapes_add(t, &s, err);
}

static orr_code read_old(orr_shapes *t, orr_span bytes, bool needs_policies, orr_error *err)
{
    const char *at = bytes.len ? (const char *)bytes.ptr : "", *end = at + bytes.len;
    orr_code code = ORR_OK;
    line l = {.number = 0};
    t->has_policies = needs_policies;
    while (at < end && !code) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        orr_str text = {at, (size_t)((stop ? stop : end) - at)};
        at = stop ? stop + 1 : end;
        l.number += l.number < UINT32_MAX;
        if (text.len && text.ptr[text.len - 1] == '\r')
            text.len--;
        text = strip(text, " ");
        if (l.number == 1)
            continue;
        cut(text, &l);
        code = take_line(t, &l, needs_policies, err);
    }
    return code;
}

/* ==== the old generator's intermediate files: the layers it passed to its simulator and the
 * results (scale-sim.md 5, 6.1, 7.3).  With v2 only the report of the last pass is left. */

static const char *const pass_names[ORR_PASSES] = {"fwd_pass", "inp_grad", "weight_grad"};

static orr_code save(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *out;
    if (b->failed || !path)
        return orr_no_memory(err);
    const orr_code code = orr_output_open(path, &out, err);
    if (code)
        return code;
    orr_output_drain(out, b);
    return orr_output_commit(&out, err);
}

/* A product as a convolution of the same cost; lines end in a comma, as in the original. */
static void put_topology(const orr_gemm *g, int pass, orr_buf *b)
{
    orr_buf_text(b, "Layer name,ifmap height,ifmap width,filter height,filter width,channels,num "
                    "filter,strides,\n");
    for (size_t i = 0; i < g->count; i++) {
        const lay_product *p = &g->shards[i][pass];
        orr_buf_add(b, g->layers[i].name.ptr, g->layers[i].name.len);
        orr_buf_print(b, ",%" PRIu64 ",%" PRIu64 ",1,%" PRIu64 ",1,%" PRIu64 ",1,\n", p->m, p->k,
                      p->k, p->n);
    }
}

static void put_v1(const orr_gemm_layer *l, const orr_systolic_result *r, orr_buf *b)
{
    orr_buf_add(b, l->name.ptr, l->name.len);
    orr_buf_print(b, ",\t%" PRIu64 ",\t", r->cycles);
    ss_put_double(b, r->utilisation);
    orr_buf_text(b, ",\n");
}

static void put_v2(size_t i, const orr_systolic_result *r, orr_buf *b)
{
    orr_buf_print(b, "%zu, %" PRIu64 ", %" PRIu64 ", ", i, r->cycles, r->stalls);
    ss_put_double(b, r->utilisation);
    orr_buf_text(b, ", ");
    ss_put_double(b, r->mapping);
    orr_buf_text(b, ", ");
    ss_put_double(b, r->busy);
    orr_buf_text(b, ",\n");
}

static orr_code put_report(const orr_gemm *g, int pass, orr_buf *b, orr_error *err)
{
    const bool is_v1 = g->opt.rules == &orr__gemm_v1;
    orr_buf_text(b, is_v1 ? "Layer,\tCycles,\t% Utilization,\n"
                          : "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping "
                            "Efficiency %, Compute Util %,\n");
    for (size_t i = 0; i < g->count; i++) {
        const lay_product *p = &g->shards[i][pass];
        const orr_systolic_layer layer = orr_systolic_gemm(p->m, p->n, p->k);
        orr_systolic_result r;
        const orr_code code = orr_systolic_run(&g->array, &layer, g->opt.rules->systolic, &r, err);
        if (code)
            return code;
        if (is_v1)
            put_v1(&g->layers[i], &r, b);
        else
            put_v2(i, &r, b);
    }
    return ORR_OK;
}

static orr_code write_pass(const orr_gemm *g,
                           int pass,
                           const char *folder,
                           const char *stem,
                           orr_arena *names,
                           orr_error *err)
{
    const bool is_v1 = g->opt.rules == &orr__gemm_v1;
    orr_buf b = {0};
    put_topology(g, pass, &b);
    orr_code code =
        save(&b, orr_arena_print(names, "%s/%s_%s.csv", folder, stem, pass_names[pass]), err);
    if (!code && (is_v1 || pass == ORR_PASS_WEIGHT_GRAD)) {
        code = put_report(g, pass, &b, err);
        if (!code)
            code = save(&b,
                        is_v1 ? orr_arena_print(names, "%s/%s_%s_cycles.csv", folder, stem,
                                                pass_names[pass])
                              : orr_arena_print(names, "%s/COMPUTE_REPORT.csv", folder),
                        err);
    }
    orr_buf_fini(&b);
    return code;
}

static orr_code write_intermediate(const orr_gemm *g,
                                   const char *folder,
                                   const char *stem,
                                   orr_error *err)
{
    orr_code code = ORR_OK;
    orr_arena *names = orr_arena_create();
    if (!names)
        return orr_no_memory(err);
    for (int i = 0; i < ORR_PASSES && !code; i++)
        code = write_pass(g, i, folder, stem, names, err);
    orr_arena_destroy(names);
    return code;
}

const orr_rules_gemm orr__gemm_v1 = {
    .name = "v1",
    .is_run_name_quoted = true,
    .style = ORR_LAYERS_GENERATOR_V1,
    .systolic = &orr__scale_sim_v1,
    .read = read_old,
    .fill = fill,
    .write_intermediate = write_intermediate,
};

const orr_rules_gemm orr__gemm_v2 = {
    .name = "v2",
    .style = ORR_LAYERS_GENERATOR_V2,
    .has_last_pass_only = true,
    .systolic = &orr__scale_sim_v2,
    .read = read_old,
    .fill = fill,
    .write_intermediate = write_intermediate,
};
