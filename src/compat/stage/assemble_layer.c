/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_layer.c - one decoder layer out of modules (specification, section 5).
 *
 * The order of the modules is the order of nodes in the files, so it is part of the format.  Links are
 * written "source>target" with the names tensors have in the layer; ~ stands for the prefix of an expert. */
#include "assemble.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

static const char attention_links[] = "q>attn_kernel.q k>attn_kernel.k v>attn_kernel.v "
                                      "attn_kernel.dq>dq attn_kernel.dk>dk attn_kernel.dv>dv "
                                      "attn_kernel.qkv>attn dattn>attn_kernel.dqkv";

static const char layer_links[] =
    "input_norm.y>mha.x mha.o>mha_res.x1 input_norm.x>mha_res.x2 mha_res.dx1>mha.do "
    "mha_res.y>post_attn_norm.x post_attn_norm.dx>mha_res.dy";

static const char dense_links[] = "post_attn_norm.y>ffn.x0 ffn.xdown>ffn_res.x1 "
                                  "post_attn_norm.x>ffn_res.x2 ffn_res.dx1>ffn.dxdown";

static const char moe_links[] = "post_attn_norm.y>moe.x moe.y>ffn_res.x1 "
                                "post_attn_norm.x>ffn_res.x2 ffn_res.dx1>moe.dy";

static const char expert_links[] =
    "~.ldis.x_expert>~.ffn.x0 ~.ffn.xdown>~.ldis.y_expert ~.ldis.dy_expert>~.ffn.dxdown "
    "~.ffn.dx0>~.ldis.dx_expert moe.xrouted>~.ldis.x moe.dyrouted>~.ldis.dy";

#define EXPERT_TOKENS "Seq*KExperts/(Experts*ep)"

enum { NAME_ROOM = 96 };

/* The name that begins at `at` and ends at one of `stops`, ~ replaced. */
static const char *read_name(const char *at, const char *stops, const char *expert, char *out)
{
    const size_t len = strcspn(at, stops);
    const bool is_expert = *at == '~';
    snprintf(out, NAME_ROOM, "%s%.*s", is_expert ? expert : "", (int)(len - is_expert),
             at + is_expert);
    return at + len;
}

static orr_code link_all(stg_tgraph *g, const char *links, const char *expert, orr_error *err)
{
    char from[NAME_ROOM], to[NAME_ROOM];
    uint32_t source, target;
    orr_code code = ORR_OK;
    while (*links && !code) {
        links = read_name(links, ">", expert, from) + 1;
        links = read_name(links, " ", expert, to);
        links += strspn(links, " ");
        code = stg_tgraph_need(g, from, &source, err);
        if (!code)
            code = stg_tgraph_need(g, to, &target, err);
        if (!code)
            code = stg_tgraph_link(g, source, target, err);
    }
    return code;
}

static orr_code add_module(
    stg_tgraph *g, stg_library *lib, const char *module, const char *prefix, orr_error *err)
{
    const stg_tgraph *from;
    const orr_code code = stg_library_get(lib, module, &from, err);
    if (code)
        return code;
    stg_tgraph_append(g, from, orr_str_of(prefix));
    return stg_space_check(g->space, err);
}

/* ---- attention ---- */

static orr_code add_attention(stg_tgraph *g, stg_library *lib, const char *prefix, orr_error *err)
{
    stg_tgraph mha;
    stg_tgraph_init_named(&mha, g->space);
    orr_code code = add_module(&mha, lib, "group_query_attention_surrounding", "", err);
    if (!code)
        code = add_module(&mha, lib, "group_query_attention_kernel_fused", "attn_kernel.", err);
    if (!code)
        code = link_all(&mha, attention_links, "", err);
    if (!code)
        stg_tgraph_append(g, &mha, orr_str_of(prefix));
    stg_tgraph_fini(&mha);
    return code ? code : stg_space_check(g->space, err);
}

/* ---- experts ---- */

static orr_code add_expert(stg_tgraph *g, stg_library *lib, uint64_t number, orr_error *err)
{
    char expert[NAME_ROOM], prefix[NAME_ROOM];
    snprintf(expert, sizeof expert, "moe.%" PRIu64, number);
    snprintf(prefix, sizeof prefix, "moe.%" PRIu64 ".ldis.", number);
    orr_code code = add_module(g, lib, "expert_wrapper", prefix, err);
    if (code)
        return code;
    const size_t first = g->count;
    snprintf(prefix, sizeof prefix, "moe.%" PRIu64 ".ffn.", number);
    code = add_module(g, lib, "llama_feed_forward_network", prefix, err);
    if (!code)
        code = stg_tgraph_replace(g, first, "Seq", EXPERT_TOKENS, false, err);
    return code ? code : link_all(g, expert_links, expert, err);
}

static orr_code find_of_expert(
    const stg_tgraph *g, uint64_t number, const char *tensor, uint32_t *out, orr_error *err)
{
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "moe.%" PRIu64 ".ldis.%s", number, tensor);
    return stg_tgraph_need(g, name, out, err);
}

/* The experts' results are joined one after the other; only the last step counts as work, and has them all
 * as its parents once the others are gone. */
static orr_code sum_experts(
    stg_tgraph *g, uint64_t experts, const char *source, const char *target, orr_error *err)
{
    char name[NAME_ROOM];
    uint32_t total, part, to;
    orr__layout layout;
    orr_code code = find_of_expert(g, 0, source, &total, err);
    if (!code)
        code = stg_tensor_made(g, total, &layout, err);
    for (uint64_t i = 1; i < experts && !code; i++) {
        code = find_of_expert(g, i, source, &part, err);
        if (code)
            return code;
        snprintf(name, sizeof name, "moe.%s_r%" PRIu64, target, i);
        stg_tensor t = stg_tensor_new(g->space, name, ORR__OP_E2);
        t.attr = stg_word_of(g->space, orr_str_of(i + 1 == experts ? "1" : "0"));
        t.a = total;
        t.b = part;
        t.need_a = t.need_b = layout;
        total = stg_tgraph_add(g, &t);
        code = stg_space_check(g->space, err);
    }
    if (code)
        return code;
    snprintf(name, sizeof name, "moe.%s", target);
    code = stg_tgraph_need(g, name, &to, err);
    return code ? code : stg_tgraph_link(g, total, to, err);
}

static orr_code add_experts(stg_tgraph *g, stg_library *lib, uint64_t experts, orr_error *err)
{
    orr_code code = add_module(g, lib, "moe_frame", "moe.", err);
    for (uint64_t i = 0; i < experts && !code; i++)
        code = add_expert(g, lib, i, err);
    if (!code)
        code = sum_experts(g, experts, "dx", "dxrouted", err);
    return code ? code : sum_experts(g, experts, "y", "yrouted", err);
}

/* ---- the layer ---- */

/* A gradient that comes in on two ways: the placeholder becomes their sum. */
static orr_code join_gradients(
    stg_tgraph *g, const char *target, const char *first, const char *second, orr_error *err)
{
    uint32_t to, a, b;
    orr_code code = stg_tgraph_need(g, target, &to, err);
    if (!code)
        code = stg_tgraph_need(g, first, &a, err);
    if (!code)
        code = stg_tgraph_need(g, second, &b, err);
    if (!code)
        code = stg_tgraph_link(g, a, to, err);
    if (code)
        return code;
    stg_tensor *t = &g->tensors[to];
    t->op = ORR__OP_A;
    t->b = b;
    t->need_b = t->need_a;
    return ORR_OK;
}

orr_code stg_assemble_layer(stg_tgraph *g,
                            stg_library *lib,
                            const orr_stage_options *opt,
                            orr_error *err)
{
    const bool is_moe = opt->model == ORR_STAGE_MOE;
    orr_code code = add_module(g, lib, "layer_norm", "input_norm.", err);
    if (!code)
        code = add_attention(g, lib, "mha.", err);
    if (!code)
        code = add_module(g, lib, "residual", "mha_res.", err);
    if (!code)
        code = add_module(g, lib, "layer_norm", "post_attn_norm.", err);
    if (!code)
        code = is_moe ? add_experts(g, lib, opt->experts / opt->ep, err)
                      : add_module(g, lib, "llama_feed_forward_network", "ffn.", err);
    if (!code)
        code = add_module(g, lib, "residual", "ffn_res.", err);
    if (!code)
        code = link_all(g, layer_links, "", err);
    if (!code)
        code = link_all(g, is_moe ? moe_links : dense_links, "", err);
    if (!code)
        code = join_gradients(g, "input_norm.dy", "mha.dx", "mha_res.dx2", err);
    if (!code)
        code = join_gradients(g, "post_attn_norm.dy", is_moe ? "moe.dx" : "ffn.dx0", "ffn_res.dx2",
                              err);
    return code ? code : stg_assemble_weights(g, opt->whole_backward, err);
}
