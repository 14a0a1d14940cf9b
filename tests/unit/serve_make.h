/* SPDX-License-Identifier: Apache-2.0 */
/* serve_make.h - small models to serve, and questions about the traces that come of it. */
#ifndef ORR_TESTS_SERVE_MAKE_H
#define ORR_TESTS_SERVE_MAKE_H

#include "check.h"

#include <orrery/lab/serve.h>

/* 2 layers; a token meets, in each, 8 x 16 (queries, keys and values) + 8 x 8 + 8 x 32 + 16 x 8 =
 * 576 weights, and 8 x 40 in the head.  A pair of tokens is 2 * (2 + 2) operations in each of 4
 * heads: 32.  A layer's cache has 2 heads x 2 x 2 = 8 numbers of a token. */
__attribute__((unused)) static orr_model small_model(void)
{
    return (orr_model){.name = "small",
                       .layers = 2,
                       .hidden = 8,
                       .vocab = 40,
                       .heads = 4,
                       .kv_heads = 2,
                       .head_dim = 2,
                       .block_norms = 2,
                       .ffn = 16,
                       .is_gated = true};
}

/* 1 layer, 8 experts of 4, of which a token meets 2. */
__attribute__((unused)) static orr_model small_experts(void)
{
    orr_model m = small_model();
    m.layers = 1;
    m.kv_heads = 4;
    m.ffn = 0;
    m.experts = 8;
    m.experts_per_token = 2;
    m.expert_ffn = 4;
    return m;
}

/* 1 layer; keys and values are kept as 4 + 2 numbers. */
__attribute__((unused)) static orr_model small_latent(void)
{
    orr_model m = small_model();
    m.layers = 1;
    m.kv_heads = 4;
    m.head_dim = 0;
    m.kv_lora_rank = 4;
    m.qk_nope_head_dim = 3;
    m.qk_rope_head_dim = 2;
    m.v_head_dim = 3;
    return m;
}

__attribute__((unused)) static orr_set *make_set(const orr_model *m,
                                                 const orr_serve_options *o,
                                                 orr_serve_report *report)
{
    orr_error err;
    orr_set *s;
    CHECK_OK(orr_serve(m, o, &s, report, &err), &err);
    return s;
}

__attribute__((unused)) static void check_refused(const orr_model *m,
                                                  orr_serve_options o,
                                                  const char *words)
{
    orr_error err;
    orr_set *s;
    CHECK_CODE(orr_serve(m, &o, &s, NULL, &err), ORR_EUSAGE, &err);
    CHECK(s == NULL);
    CHECK_SAYS(&err, words);
}

/* ---- nodes of one rank ---- */

typedef struct rank_nodes {
    const orr_trace *t;
    orr_trace *owned;
    const orr_columns *c;
} rank_nodes;

__attribute__((unused)) static rank_nodes open_rank(const orr_set *s, uint32_t rank)
{
    rank_nodes n;
    orr_error err;
    CHECK_OK(orr_set_rank_trace(s, rank, &n.t, &n.owned, &err), &err);
    n.c = orr_trace_columns(n.t);
    return n;
}

__attribute__((unused)) static void close_rank(rank_nodes *n)
{
    orr_trace_destroy(n->owned);
}

/* Does the name begin and end like this?  Turns count from 1: "decode2." */
__attribute__((unused)) static bool is_named(orr_str name, const char *begin, const char *end)
{
    const size_t a = strlen(begin), b = strlen(end);
    return name.len >= a && name.len >= b && memcmp(name.ptr, begin, a) == 0 &&
           memcmp(name.ptr + name.len - b, end, b) == 0;
}

/* The i-th node, from 0, whose name begins and ends like this. */
__attribute__((unused)) static uint32_t find_node(const rank_nodes *n,
                                                  const char *begin,
                                                  const char *end,
                                                  unsigned i)
{
    for (uint32_t k = 0; k < n->c->count; k++)
        if (is_named(orr_trace_name(n->t, k), begin, end) && i-- == 0)
            return k;
    check_fail(__FILE__, __LINE__, "no node %s...%s", begin, end);
    return 0;
}

__attribute__((unused)) static unsigned count_nodes(const rank_nodes *n,
                                                    const char *begin,
                                                    const char *end)
{
    unsigned count = 0;
    for (uint32_t k = 0; k < n->c->count; k++)
        count += is_named(orr_trace_name(n->t, k), begin, end);
    return count;
}

__attribute__((unused)) static unsigned count_collectives(const rank_nodes *n,
                                                          orr_collective kind,
                                                          int64_t bytes)
{
    unsigned count = 0;
    for (uint32_t k = 0; k < n->c->count; k++)
        count += n->c->type[k] == ORR_NODE_COMM_COLL && n->c->comm_type[k] == (int8_t)kind &&
                 n->c->comm_size[k] == bytes;
    return count;
}

/* Is this one of the operations that are counted as FLOPs: a product, or attention? */
__attribute__((unused)) static bool is_product(orr_str name)
{
    static const char *const ends[] = {
        ".qkv",     ".q",        ".q_down",   ".q_up",   ".kv_down", ".kv_up",  ".q_absorb",
        "v_absorb", "attn.out",  "attn.core", "ffn.up",  "ffn.down", ".router", "moe.up",
        "moe.down", "shared.up", ".scale",    "ed.down", ".logits"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is_named(name, "", ends[i]))
            return true;
    return false;
}

/* Of the nodes whose name begins like this. */
__attribute__((unused)) static uint64_t sum_flops(const rank_nodes *n, const char *begin)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < n->c->count; k++) {
        const orr_str name = orr_trace_name(n->t, k);
        if (n->c->type[k] == ORR_NODE_COMP && is_named(name, begin, "") && is_product(name))
            sum += (uint64_t)n->c->num_ops[k];
    }
    return sum;
}

/* How many tokens each iteration takes, as a lookup shows: "10 1 1"; of first stages. */
__attribute__((unused)) static const char *tokens_text(
    const orr_set *s, uint32_t rank, uint64_t hidden, char *out, size_t size)
{
    rank_nodes n = open_rank(s, rank);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < n.c->count; k++)
        if (is_named(orr_trace_name(n.t, k), "", "embedding.lookup"))
            used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, used ? " " : "",
                                     (uint64_t)n.c->num_ops[k] / hidden);
    close_rank(&n);
    return out;
}

#endif
