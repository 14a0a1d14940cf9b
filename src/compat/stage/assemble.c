/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.c - from modules to the tensor graph of a training step (stage.md 5).  First: the
 * weights of a layer as one block (stage.md 5.1).
 *
 *     _sharded_weight -> _assembled_weight          -> every weight, for the forward pass
 *                     -> _assembled_weight_backward -> _<weight>_backward, for the backward pass
 *     every gradient  -> _assembled_grad -> _sharded_grad
 *
 * The block is divided by the symbol fsdp, which later becomes dp or 1.  The collectives this takes
 * (a gather before each pass, a scatter or all-reduce after) follow from the layouts in lower.c. */
#include "base/text/text.h"
#include "stage_impl.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct block {
    stg_tgraph *g;
    stg_space *s;
    uint32_t *weights, *gradients; /* in the order of the weights */
    uint32_t *backward;            /* per tensor of the layer: its copy for the backward pass */
    size_t count;
    stg_layout whole, shard;
    uint32_t sharded, assembled;
} block;

static bool begins_with_d(const stg_tgraph *g, const stg_tensor *t)
{
    const orr_str name = stg_word_text(g->space, t->name);
    const char *dot = name.len ? memrchr(name.ptr, '.', name.len) : NULL;
    const char *last = dot ? dot + 1 : name.ptr;
    return last < name.ptr + name.len && *last == 'd';
}

static orr_code find_weights(block *b, size_t tensors, orr_error *err)
{
    const stg_tgraph *g = b->g;
    char label[120];
    for (size_t i = 0; i < tensors; i++) {
        if (g->tensors[i].is_param) {
            b->backward[i] = (uint32_t)b->count; /* its index, until the copy exists */
            b->weights[b->count] = (uint32_t)i;
            b->gradients[b->count++] = ORR__NONE;
        }
    }
    for (size_t i = 0; i < tensors; i++) {
        const uint32_t of = g->tensors[i].grad_of;
        if (of != ORR__NONE && g->tensors[of].is_param)
            b->gradients[b->backward[of]] = (uint32_t)i;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (b->gradients[i] == ORR__NONE)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "no tensor of the templates is the gradient of the parameter %s",
                            stg_tensor_label(g, b->weights[i], label, sizeof label));
    }
    return b->count
               ? ORR_OK
               : orr_fail(err, ORR_EINPUT, NULL, "a layer of these templates has no parameter");
}

static orr_code measure(block *b, orr_error *err)
{
    stg_algebra *a = &b->s->algebra;
    const stg_expr fsdp = stg_expr_symbol(a, stg_symbol(a, orr_str_of("fsdp")));
    stg_expr *sizes = NULL;
    size_t room = 0;
    orr_code code = orr_grow(&sizes, &room, b->count) ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < b->count && !code; i++) {
        stg_layout made;
        code = stg_tensor_made(b->g, b->weights[i], &made, err);
        if (!code)
            sizes[i] = stg_layout_size(b->s, made);
    }
    if (!code) {
        const stg_expr total = stg_expr_sum(a, sizes, b->count);
        b->whole = stg_layout_line(b->s, total);
        b->shard = stg_layout_line(b->s, stg_expr_mul(a, total, stg_expr_power(a, fsdp, -1)));
    }
    orr_free(sizes);
    return code ? code : stg_algebra_check(a, NULL, "weights of a layer", err);
}

static stg_tensor laid_out(block *b, const char *name, uint32_t from, stg_layout layout)
{
    stg_tensor t = stg_tensor_new(b->s, name, ORR__OP_I);
    t.a = from;
    t.need_a = layout;
    return t;
}

static stg_word no_work(block *b)
{
    return stg_word_of(b->s, orr_str_of("0"));
}

/* _sharded_grad precedes its operands. */
static orr_code add_gradients(block *b, orr_error *err)
{
    const uint32_t first = b->gradients[0];
    stg_layout made;
    const orr_code code = stg_tensor_made(b->g, first, &made, err);
    if (code)
        return code;
    stg_tensor reduced = laid_out(b, "_sharded_grad", (uint32_t)b->g->count + 1, b->shard);
    reduced.grad_of = b->sharded;
    stg_tgraph_add(b->g, &reduced);
    stg_tensor all = stg_tensor_new(b->s, "_assembled_grad", ORR__OP_CUSTOM);
    const stg_layout_row row = b->s->layouts[made];
    stg_expr hidden[ORR__DIMS_MOST];
    memcpy(hidden, stg_layout_hidden(b->s, made), row.hidden_count * sizeof *hidden);
    const stg_expr total = *stg_layout_shape(b->s, b->whole);
    all.attr = no_work(b);
    all.a = first;
    all.need_a = made;
    all.need_b = stg_layout_make(b->s, &total, 1, hidden, row.hidden_count);
    stg_tgraph_set_extras(b->g, &all, b->gradients + 1, b->count - 1);
    stg_tgraph_add(b->g, &all);
    return ORR_OK;
}

static orr_code add_backward(block *b, bool is_whole, orr_error *err)
{
    const uint32_t again = (uint32_t)(b->g->count + b->count); /* its future index */
    for (size_t i = 0; i < b->count; i++) {
        const uint32_t w = b->weights[i];
        stg_layout made;
        const orr_code code = stg_tensor_made(b->g, w, &made, err);
        if (code)
            return code;
        const orr_str name = stg_word_text(b->s, b->g->tensors[w].name);
        stg_tensor t = stg_tensor_new(b->s, "", ORR__OP_CUSTOM);
        const stg_word front = stg_word_joined(b->s, orr_str_of("_"), name);
        t.name = stg_word_joined(b->s, stg_word_text(b->s, front), orr_str_of("_backward"));
        t.attr = no_work(b);
        t.a = again;
        t.need_a = b->whole;
        t.need_b = is_whole ? b->whole : made;
        b->backward[w] = stg_tgraph_add(b->g, &t);
    }
    const stg_tensor t = laid_out(b, "_assembled_weight_backward", b->sharded, b->whole);
    stg_tgraph_add(b->g, &t);
    return ORR_OK;
}

/* The backward pass takes its weights from the second gather. */
static void use_backward(block *b, size_t tensors)
{
    for (size_t i = 0; i < tensors; i++) {
        stg_tensor *t = &b->g->tensors[i];
        if (!begins_with_d(b->g, t))
            continue;
        if (t->a != ORR__NONE && t->a < tensors && b->g->tensors[t->a].is_param)
            t->a = b->backward[t->a];
        if (t->b != ORR__NONE && t->b < tensors && b->g->tensors[t->b].is_param)
            t->b = b->backward[t->b];
    }
}

/* Weights become slices of the block. */
static orr_code demote_weights(block *b, orr_error *err)
{
    for (size_t i = 0; i < b->count; i++) {
        stg_layout made;
        const orr_code code = stg_tensor_made(b->g, b->weights[i], &made, err);
        if (code)
            return code;
        stg_tensor *w = &b->g->tensors[b->weights[i]];
        w->op = ORR__OP_CUSTOM;
        w->attr = no_work(b);
        w->is_param = false;
        w->a = b->assembled;
        w->need_a = b->whole;
        w->need_b = made;
        w->made = ORR__NONE;
    }
    return ORR_OK;
}

static orr_code rebuild(block *b, size_t tensors, bool whole_backward, orr_error *err)
{
    orr_code code = find_weights(b, tensors, err);
    if (!code)
        code = measure(b, err);
    if (code)
        return code;
    stg_tensor sharded = stg_tensor_new(b->s, "_sharded_weight", ORR__OP_T);
    sharded.need_a = b->shard;
    sharded.is_param = true;
    b->sharded = stg_tgraph_add(b->g, &sharded);
    const stg_tensor assembled = laid_out(b, "_assembled_weight", b->sharded, b->whole);
    b->assembled = stg_tgraph_add(b->g, &assembled);
    code = add_gradients(b, err);
    if (!code)
        code = add_backward(b, whole_backward, err);
    if (code)
        return code;
    use_backward(b, tensors);
    return demote_weights(b, err);
}

static orr_code stg_assemble_weights(stg_tgraph *layer, bool whole_backward, orr_error *err)
{
    const size_t n = layer->count;
    orr_arena *arena = orr_arena_create();
    block b = {.g = layer, .s = layer->space};
    if (arena) {
        b.weights = orr_arena_new(arena, n, uint32_t);
        b.gradients = orr_arena_new(arena, n, uint32_t);
        b.backward = orr_arena_new(arena, n, uint32_t);
    }
    orr_code code = b.weights && b.gradients && b.backward ? rebuild(&b, n, whole_backward, err)
                                                           : orr_no_memory(err);
    if (!code)
        code = stg_space_check(layer->space, err);
    orr_arena_destroy(arena);
    return code;
}

/* One decoder layer from modules (stage.md 5).
 *
 * The order of the modules is the order of nodes in the files, so it is part of the format.  Links
 * are written "source>target" with the names tensors have in the layer; ~ is the prefix of an
 * expert. */

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

/* The name from `at` to one of `stops`, with ~ replaced. */
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

/* The experts' results are added one by one; only the last step counts as work, and it depends on
 * all of them once the other steps are dropped. */
static orr_code sum_experts(
    stg_tgraph *g, uint64_t experts, const char *source, const char *target, orr_error *err)
{
    char name[NAME_ROOM];
    uint32_t total, part, to;
    stg_layout layout;
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

/* A gradient with two sources: the placeholder becomes their sum. */
static orr_code join_gradients(
    stg_tgraph *g, const char *target, const char *first, const char *second, orr_error *err)
{
    uint32_t to, a, b;
    orr_code code;
    if ((code = stg_tgraph_need(g, target, &to, err)) ||
        (code = stg_tgraph_need(g, first, &a, err)) ||
        (code = stg_tgraph_need(g, second, &b, err)) || (code = stg_tgraph_link(g, a, to, err)))
        return code;
    stg_tensor *t = &g->tensors[to];
    t->op = ORR__OP_A;
    t->b = b;
    t->need_b = t->need_a;
    return ORR_OK;
}

/* One layer without prefixes.  g: a named graph. */
static orr_code stg_assemble_layer(stg_tgraph *g,
                                   stg_library *lib,
                                   const orr_stage_options *opt,
                                   orr_error *err)
{
    const bool is_moe = opt->model == ORR_STAGE_MOE;
    orr_code code;
    if ((code = add_module(g, lib, "layer_norm", "input_norm.", err)) ||
        (code = add_attention(g, lib, "mha.", err)) ||
        (code = add_module(g, lib, "residual", "mha_res.", err)) ||
        (code = add_module(g, lib, "layer_norm", "post_attn_norm.", err)) ||
        (code = is_moe ? add_experts(g, lib, opt->experts / opt->ep, err)
                       : add_module(g, lib, "llama_feed_forward_network", "ffn.", err)) ||
        (code = add_module(g, lib, "residual", "ffn_res.", err)) ||
        (code = link_all(g, layer_links, "", err)) ||
        (code = link_all(g, is_moe ? moe_links : dense_links, "", err)) ||
        (code = join_gradients(g, "input_norm.dy", "mha.dx", "mha_res.dx2", err)) ||
        (code = join_gradients(g, "post_attn_norm.dy", is_moe ? "moe.dx" : "ffn.dx0", "ffn_res.dx2",
                               err)))
        return code;
    return stg_assemble_weights(g, opt->whole_backward, err);
}

/* The tensor graph of a training step (stage.md 5.2 to 5.4).
 *
 * The layer is built once; layers and micro-batches are copies that differ only in indices and
 * prefixes.  All symbolic work is done before copying or, where that is impossible, once per
 * layout. */

/* ---- layers, embeddings, loss ---- */

/* The tensors of a module or layer that others link to. */
typedef struct ends {
    uint32_t x, y, dx, dy;
} ends;

static orr_code find_ends(const stg_tgraph *g,
                          const char *const names[4],
                          ends *out,
                          orr_error *err)
{
    uint32_t *const places[] = {&out->x, &out->y, &out->dx, &out->dy};
    orr_code code = ORR_OK;
    for (size_t i = 0; i < 4 && !code; i++) {
        *places[i] = ORR__NONE;
        if (names[i])
            code = stg_tgraph_need(g, names[i], places[i], err);
    }
    return code;
}

static ends moved(ends e, uint32_t by)
{
    return (ends){e.x + by, e.y + by, e.dx + by, e.dy + by};
}

/* Link activations forward and gradients back. */
static orr_code chain(stg_tgraph *g, ends before, ends after, orr_error *err)
{
    const orr_code code = stg_tgraph_link(g, before.y, after.x, err);
    return code ? code : stg_tgraph_link(g, after.dx, before.dy, err);
}

static orr_code add_embedding(stg_tgraph *g,
                              const stg_tgraph *module,
                              const char *prefix,
                              const char *from,
                              const char *to,
                              int32_t place,
                              orr_error *err)
{
    stg_tgraph named;
    stg_tgraph_init_named(&named, g->space);
    stg_tgraph_append(&named, module, orr_str_of(prefix));
    orr_code code = stg_tgraph_replace(&named, 0, "Din", from, false, err);
    if (!code)
        code = stg_tgraph_replace(&named, 0, "Dout", to, false, err);
    if (!code)
        stg_tgraph_repeat(g, &named, ORR__EMPTY, place);
    stg_tgraph_fini(&named);
    return code ? code : stg_space_check(g->space, err);
}

static orr_code add_loss(stg_tgraph *g, const stg_tgraph *module, orr_error *err)
{
    stg_tgraph named;
    stg_tgraph_init_named(&named, g->space);
    stg_tgraph_append(&named, module, orr_str_of("loss."));
    stg_tgraph_repeat(g, &named, ORR__EMPTY, ORR__PLACE_LAST);
    stg_tgraph_fini(&named);
    return stg_space_check(g->space, err);
}

static orr_code repeat_layer(stg_tgraph *g,
                             const stg_tgraph *layer,
                             uint64_t layers,
                             orr_error *err)
{
    char prefix[48];
    for (uint64_t i = 0; i < layers && !stg_space_has_failed(g->space); i++) {
        snprintf(prefix, sizeof prefix, "transformer.%" PRIu64 ".", i);
        stg_tgraph_repeat(g, layer, stg_word_of(g->space, orr_str_of(prefix)), (int32_t)i);
    }
    return stg_space_check(g->space, err);
}

static orr_code link_model(stg_tgraph *g,
                           const stg_tgraph *layer,
                           const stg_tgraph *embedding,
                           const stg_tgraph *loss,
                           uint64_t layers,
                           orr_error *err)
{
    static const char *const layer_names[] = {"input_norm.x", "ffn_res.y", "input_norm.dx",
                                              "ffn_res.dy"};
    static const char *const embedding_names[] = {"x", "y", "dx", "dy"};
    static const char *const loss_names[] = {"y", NULL, "dy", NULL};
    const uint32_t after = (uint32_t)(layers * layer->count);
    ends one, emb, end;
    orr_code code;
    if ((code = find_ends(layer, layer_names, &one, err)) ||
        (code = find_ends(embedding, embedding_names, &emb, err)) ||
        (code = find_ends(loss, loss_names, &end, err)))
        return code;
    const ends in = moved(emb, after), out = moved(emb, after + (uint32_t)embedding->count);
    ends before = in;
    for (uint64_t i = 0; i < layers && !code; i++) {
        const ends next = moved(one, (uint32_t)(i * layer->count));
        code = chain(g, before, next, err);
        before = next;
    }
    if (!code)
        code = chain(g, before, out, err);
    end = moved(end, after + 2 * (uint32_t)embedding->count);
    return code ? code : chain(g, out, end, err);
}

static orr_code add_all(
    stg_tgraph *g, const stg_tgraph *layer, stg_library *lib, uint64_t layers, orr_error *err)
{
    const stg_tgraph *embedding, *loss;
    orr_code code;
    if ((code = stg_library_get(lib, "embedding", &embedding, err)) ||
        (code = stg_library_get(lib, "loss", &loss, err)) ||
        (code = repeat_layer(g, layer, layers, err)) ||
        (code =
             add_embedding(g, embedding, "in_emb.", "Dvocal", "Dmodel", ORR__PLACE_FIRST, err)) ||
        (code =
             add_embedding(g, embedding, "out_emb.", "Dmodel", "Dvocal", ORR__PLACE_LAST, err)) ||
        (code = add_loss(g, loss, err)))
        return code;
    return link_model(g, layer, embedding, loss, layers, err);
}

static orr_code assemble_step(stg_tgraph *g,
                              stg_library *lib,
                              const orr_stage_options *opt,
                              orr_error *err)
{
    stg_tgraph layer;
    stg_tgraph_init_named(&layer, g->space);
    orr_code code = stg_assemble_layer(&layer, lib, opt, err);
    if (!code)
        code = add_all(g, &layer, lib, opt->layers, err);
    stg_tgraph_fini(&layer);
    return code;
}

/* ---- micro-batches ---- */

/* Layout of the graph of all micro-batches:
 *
 *     | micro-batch 0 | 1 | ... | merged gradients | parameters | */
typedef struct spread {
    const stg_tgraph *from;
    stg_tgraph *to;
    uint64_t pieces;
    uint32_t *place;   /* of a tensor within its micro-batch; of a parameter among the parameters */
    uint32_t *sources; /* gradients of parameters, in order */
    uint32_t per_piece; /* tensors copied per micro-batch */
    uint32_t params, source_count;
} spread;

static uint32_t params_at(const spread *s)
{
    return (uint32_t)(s->pieces * s->per_piece) + s->source_count;
}

static uint32_t new_index(const spread *s, uint32_t old, uint64_t piece)
{
    if (old == ORR__NONE)
        return old;
    return s->from->tensors[old].is_param ? params_at(s) + s->place[old]
                                          : (uint32_t)(piece * s->per_piece) + s->place[old];
}

static bool is_source(const stg_tgraph *g, const stg_tensor *t)
{
    return t->grad_of != ORR__NONE && g->tensors[t->grad_of].is_param;
}

static bool place_tensors(spread *s, orr_arena *arena)
{
    const stg_tgraph *g = s->from;
    s->place = orr_arena_new(arena, g->count, uint32_t);
    s->sources = orr_arena_new(arena, g->count, uint32_t);
    if (!s->place || !s->sources)
        return false;
    for (size_t i = 0; i < g->count; i++) {
        const stg_tensor *t = &g->tensors[i];
        s->place[i] = t->is_param ? s->params++ : s->per_piece++;
        if (is_source(g, t))
            s->sources[s->source_count++] = (uint32_t)i;
    }
    return true;
}

static void copy_extras(spread *s, stg_tensor *t, const stg_tensor *from, uint64_t piece)
{
    stg_tgraph *g = s->to;
    if (!orr_grow(&g->extras, &g->extra_room, g->extra_count + from->extra_count)) {
        stg_space_no_room(g->space);
        return;
    }
    t->extra = (uint32_t)g->extra_count;
    for (uint32_t i = 0; i < from->extra_count; i++)
        g->extras[g->extra_count++] = new_index(s, s->from->extras[from->extra + i], piece);
}

static void copy_piece(spread *s, uint64_t piece)
{
    const stg_tgraph *from = s->from;
    stg_space *space = s->to->space;
    char mark[32];
    stg_word old = ORR__NONE, prefix = ORR__EMPTY;
    snprintf(mark, sizeof mark, "mb%" PRIu64 ".", piece);
    for (size_t i = 0; i < from->count && !stg_space_has_failed(space); i++) {
        const stg_tensor *x = &from->tensors[i];
        if (x->is_param)
            continue;
        if (x->prefix != old) { /* the same for all tensors of a layer */
            old = x->prefix;
            prefix = stg_word_joined(space, orr_str_of(mark), stg_word_text(space, old));
        }
        stg_tensor t = *x;
        t.prefix = prefix;
        t.a = new_index(s, x->a, piece);
        t.b = new_index(s, x->b, piece);
        t.grad_of = new_index(s, x->grad_of, piece);
        copy_extras(s, &t, x, piece);
        s->to->tensors[s->to->count++] = t;
    }
}

/* The sum of the gradients of all micro-batches; counted as one operation per element, however many
 * there are. */
static orr_code add_merged(spread *s, uint32_t source, uint32_t *others, orr_error *err)
{
    stg_space *space = s->to->space;
    const stg_tensor *x = &s->from->tensors[source];
    const uint32_t first = new_index(s, source, 0);
    stg_tensor t = stg_tensor_new(space, "", ORR__OP_CUSTOM);
    stg_layout made;
    const orr_code code = stg_tensor_made(s->to, first, &made, err);
    if (code)
        return code;
    t.prefix = x->prefix;
    t.name = x->name;
    t.place = x->place;
    t.attr = stg_word_of(space, stg_expr_text(&space->algebra, stg_layout_size(space, made)));
    t.a = first;
    t.grad_of = new_index(s, x->grad_of, 0);
    t.need_a = t.need_b = made;
    for (uint64_t piece = 1; piece < s->pieces; piece++)
        others[piece - 1] = new_index(s, source, piece);
    stg_tgraph_set_extras(s->to, &t, others, (size_t)s->pieces - 1);
    stg_tgraph_add(s->to, &t);
    return ORR_OK;
}

static orr_code spread_pieces(spread *s, orr_arena *arena, orr_error *err)
{
    uint32_t *others = orr_arena_new(arena, (size_t)s->pieces, uint32_t);
    if (!others || !place_tensors(s, arena))
        return orr_no_memory(err);
    const uint64_t total = s->pieces * s->per_piece + s->source_count + s->params;
    if (!stg_tgraph_reserve(s->to, (size_t)total))
        return orr_no_memory(err);
    for (uint64_t piece = 0; piece < s->pieces; piece++)
        copy_piece(s, piece);
    orr_code code = stg_space_check(s->to->space, err);
    for (uint32_t i = 0; i < s->source_count && !code; i++)
        code = add_merged(s, s->sources[i], others, err);
    for (size_t i = 0; i < s->from->count && !code; i++) {
        if (s->from->tensors[i].is_param)
            stg_tgraph_add(s->to, &s->from->tensors[i]);
    }
    return code;
}

static orr_code add_micro_batches(stg_tgraph *g,
                                  const stg_tgraph *step,
                                  uint64_t pieces,
                                  orr_error *err)
{
    spread s = {.from = step, .to = g, .pieces = pieces};
    orr_arena *arena = orr_arena_create();
    orr_code code = arena ? spread_pieces(&s, arena, err) : orr_no_memory(err);
    if (!code)
        code = stg_space_check(g->space, err);
    orr_arena_destroy(arena);
    return code;
}

/* ---- updates ---- */

/* The tensor that holds the gradient of each parameter, from `first` on; ORR__NONE for others. */
static void find_gradients(const stg_tgraph *g, size_t first, uint32_t *gradient)
{
    memset(gradient, 0xff, g->count * sizeof *gradient);
    for (size_t i = first; i < g->count; i++) {
        if (is_source(g, &g->tensors[i]))
            gradient[g->tensors[i].grad_of] = (uint32_t)i;
    }
}

static orr_code add_update(stg_tgraph *g, uint32_t param, uint32_t gradient, orr_error *err)
{
    stg_layout made;
    char label[120];
    if (gradient == ORR__NONE)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "no tensor of the templates is the gradient of the parameter %s",
                        stg_tensor_label(g, param, label, sizeof label));
    const orr_code code = stg_tensor_made(g, param, &made, err);
    if (code)
        return code;
    const stg_tensor *w = &g->tensors[param];
    stg_tensor t = stg_tensor_new(g->space, "", ORR__OP_A);
    t.prefix = w->prefix;
    t.name = w->name;
    t.place = w->place;
    t.revision = 1;
    t.is_param = true;
    t.a = param;
    t.b = gradient;
    t.need_a = t.need_b = made;
    stg_tgraph_add(g, &t);
    return ORR_OK;
}

/* merged: index of the first merged gradient, or 0 if gradients are used directly.  The link from a
 * merged gradient to its parameter is cleared afterwards: the files do not have it. */
static orr_code add_updates(stg_tgraph *g, uint32_t merged, orr_error *err)
{
    const size_t count = g->count;
    uint32_t *gradient = NULL;
    size_t room = 0;
    orr_code code = ORR_OK;
    if (!orr_grow(&gradient, &room, count))
        return orr_no_memory(err);
    find_gradients(g, merged, gradient);
    for (size_t i = 0; i < count && !code; i++) {
        if (g->tensors[i].is_param)
            code = add_update(g, (uint32_t)i, gradient[i], err);
    }
    for (size_t i = merged; i < count && merged; i++)
        g->tensors[i].grad_of = ORR__NONE;
    orr_free(gradient);
    if (!code)
        code = stg_space_check(g->space, err);
    return code;
}

/* ---- the whole model ---- */

static orr_code assemble_debug(stg_tgraph *g, stg_library *lib, orr_error *err)
{
    const stg_tgraph *embedding;
    orr_code code = stg_library_get(lib, "embedding", &embedding, err);
    if (!code)
        code = add_embedding(g, embedding, "", "Dvocal", "Dvocal", ORR__PLACE_FIRST, err);
    return code ? code : stg_tgraph_replace(g, 0, "Batch", "MicroBatch", false, err);
}

static orr_code assemble_pieces(
    stg_tgraph *g, stg_library *lib, const orr_stage_options *opt, uint32_t *merged, orr_error *err)
{
    const uint64_t pieces = opt->batch / opt->micro_batch;
    stg_tgraph step;
    stg_tgraph_init(&step, g->space);
    orr_code code = assemble_step(&step, lib, opt, err);
    if (!code)
        code = stg_tgraph_replace(&step, 0, "Batch", "MicroBatch", true, err);
    if (!code && step.count * pieces > INT32_MAX)
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "%zu tensors in each of %" PRIu64 " micro-batches are too many", step.count,
                        pieces);
    if (!code)
        code = add_micro_batches(g, &step, pieces, err);
    if (!code) {
        size_t params = 0;
        for (size_t i = 0; i < step.count; i++)
            params += step.tensors[i].is_param;
        *merged = (uint32_t)(pieces * (step.count - params));
    }
    stg_tgraph_fini(&step);
    return code;
}

orr_code stg_assemble_model(stg_tgraph *g,
                            stg_library *lib,
                            const orr_stage_options *opt,
                            orr_error *err)
{
    uint32_t merged = 0;
    orr_code code;
    if (opt->model == ORR_STAGE_DEBUG) {
        code = assemble_debug(g, lib, err);
    } else if (opt->clones) {
        code = assemble_step(g, lib, opt, err);
        if (!code)
            code = stg_tgraph_replace(g, 0, "Batch", "MicroBatch", false, err);
    } else {
        code = assemble_pieces(g, lib, opt, &merged, err);
    }
    if (!code)
        code = stg_tgraph_replace(g, 0, "fsdp", opt->weight_sharded ? "dp" : "1", false, err);
    return code ? code : add_updates(g, merged, err);
}
