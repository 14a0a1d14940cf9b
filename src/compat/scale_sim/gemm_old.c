/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_old.c - layers as the old generator has them, back end v1 or v2 (spec scale-sim.md, section 7).
 *
 * Kept: shares and sizes are divided as Python divides and then cut off, so that remainders are lost; the strategy
 * stands behind every row; the update takes 100; with v2 all three times are those of the weight gradient, because
 * the reports overwrite each other.  A share of nothing, which ends the old program late, is an error. */
#include "sources/layers/gemm_impl.h"

#include <inttypes.h>

enum { UPDATE_TIME = 100, SHOWN = 60 };

/* int(a / b) of Python: a quotient in double precision, cut off (7.2, 7.4). */
static uint64_t quotient(uint64_t a, uint64_t b)
{
    return (uint64_t)((double)a / (double)b);
}

/* Collectives of a strategy and what the size of each is divided by; 0: there is none (7.4). */
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

static orr_where place(const orr_gemm *g, const orr__shape *s, uint32_t column)
{
    return orr_where_line(g->label, s->line, column ? column : 1);
}

static orr_code check_share(const orr_gemm *g,
                            const orr__shape *s,
                            orr__size size,
                            uint64_t ways,
                            uint64_t share,
                            orr_error *err)
{
    const orr_where w = place(g, s, s->column[size]);
    if (share > 0)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &w,
                    "%.*s: %s of %" PRIu64 " shared by %" PRIu64 " leaves nothing for an NPU",
                    (int)(s->name.len < SHOWN ? s->name.len : SHOWN), s->name.ptr,
                    orr__size_name(size), s->size[size], ways);
}

/* The products of the three passes (7.2, 7.3). */
static orr_code share_out(const orr_gemm *g,
                          const orr__shape *s,
                          orr_policy policy,
                          orr__product out[ORR_PASSES],
                          orr_error *err)
{
    const orr__ways w = orr__ways_of(policy, g->opt.npus, g->opt.packages);
    const uint64_t m = quotient(s->size[ORR__M], w.batch);
    const uint64_t n = quotient(s->size[ORR__N], w.output), k = s->size[ORR__K];
    orr_code code = check_share(g, s, ORR__M, w.batch, m, err);
    if (!code)
        code = check_share(g, s, ORR__N, w.output, n, err);
    if (!code)
        code = check_share(g, s, ORR__K, 1, k, err);
    out[ORR_PASS_FORWARD] = (orr__product){1, m, n, k, 1, 1};
    out[ORR_PASS_INPUT_GRAD] = (orr__product){1, m, k, n, 1, 1};
    out[ORR_PASS_WEIGHT_GRAD] = (orr__product){1, k, n, m, 1, 1};
    return code;
}

static orr_code pass_cycles(
    const orr_gemm *g, const orr__shape *s, const orr__product *p, uint64_t *out, orr_error *err)
{
    const orr_code code = orr__array_cycles(&g->array, g->opt.rules, p->m, p->n, p->k, out, err);
    if (code == ORR_EINPUT && err && !err->where.path[0])
        err->where = place(g, s, 1);
    return code;
}

/* a * b elements, in bytes, by `ways`; 0 ways: no such collective. */
static orr_code size_of(const orr_gemm *g,
                        const orr__shape *s,
                        uint64_t a,
                        uint64_t b,
                        uint64_t ways,
                        orr_bytes *out,
                        orr_error *err)
{
    const orr_where w = place(g, s, 1);
    uint64_t bytes;
    *out = 0;
    if (ways == 0)
        return ORR_OK;
    if (__builtin_mul_overflow(a, b, &bytes) ||
        __builtin_mul_overflow(bytes, g->opt.datatype_bytes, &bytes) || bytes >> 63)
        return orr_fail(err, ORR_EINPUT, &w, "%.*s: the layer is too large: a tensor of 2^63 bytes",
                        (int)(s->name.len < SHOWN ? s->name.len : SHOWN), s->name.ptr);
    *out = quotient(bytes, ways);
    return ORR_OK;
}

static orr_code take_collectives(const orr_gemm *g,
                                 const orr__shape *s,
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

static orr_code add_layer(orr_gemm *g, const orr__shape *s, orr_error *err)
{
    orr__product *shard = g->shards[g->count];
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
    if (g->opt.rules == ORR_SYSTOLIC_V2) {
        l.pass[ORR_PASS_FORWARD].in_table = l.pass[ORR_PASS_WEIGHT_GRAD].cycles;
        l.pass[ORR_PASS_INPUT_GRAD].in_table = l.pass[ORR_PASS_WEIGHT_GRAD].cycles;
    }
    l.name = (orr_str){orr_arena_text(g->arena, s->name), s->name.len};
    if (!l.name.ptr)
        return orr_no_memory(err);
    g->layers[g->count++] = l;
    return ORR_OK;
}

orr_code orr__gemm_old(orr_gemm *g, const orr_shapes *s, orr_error *err)
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
