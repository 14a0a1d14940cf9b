/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_weights.c - the weights of a layer as one block (specification, section 5.1).
 *
 *     _sharded_weight -> _assembled_weight          -> every weight, for the forward pass
 *                     -> _assembled_weight_backward -> _<weight>_backward, for the backward pass
 *     every gradient  -> _assembled_grad -> _sharded_grad
 *
 * The block is divided by the symbol fsdp, which later becomes dp or 1.  Which collectives that takes (a gather
 * before each pass, a scatter after, or an all-reduce) follows from the layouts and is not decided here. */
#include "assemble.h"

#include "base/text/text.h"

typedef struct block {
    stg_tgraph *g;
    stg_space *s;
    uint32_t *weights, *gradients; /* by place among the weights */
    uint32_t *backward;            /* by tensor of the layer: its twin for the backward pass */
    size_t count;
    orr__layout whole, shard;
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
            b->backward[i] = (uint32_t)b->count; /* its place, until there is a twin */
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
        orr__layout made;
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

static stg_tensor laid_out(block *b, const char *name, uint32_t from, orr__layout layout)
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

/* _sharded_grad comes before what it is made of. */
static orr_code add_gradients(block *b, orr_error *err)
{
    const uint32_t first = b->gradients[0];
    orr__layout made;
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
    const uint32_t again = (uint32_t)(b->g->count + b->count); /* where it will be */
    for (size_t i = 0; i < b->count; i++) {
        const uint32_t w = b->weights[i];
        orr__layout made;
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

/* What works backward takes its weights from the second gathering. */
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

/* A weight is now a part of the block. */
static orr_code demote_weights(block *b, orr_error *err)
{
    for (size_t i = 0; i < b->count; i++) {
        orr__layout made;
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

orr_code stg_assemble_weights(stg_tgraph *layer, bool whole_backward, orr_error *err)
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
