/* SPDX-License-Identifier: Apache-2.0 */
/* assemble_model.c - the tensor graph of a training step (specification, sections 5.2 to 5.4).
 *
 * The layer is made once; layers and micro-batches are copies in which only indices and prefixes change.  All
 * work with symbols is done before copying or, where that cannot be, once for each layout. */
#include "assemble.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- layers, embeddings, loss ---- */

/* The tensors of a module or layer that others are linked to. */
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

/* What one hands to the next, and gets back from it. */
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
    orr_code code = find_ends(layer, layer_names, &one, err);
    if (!code)
        code = find_ends(embedding, embedding_names, &emb, err);
    if (!code)
        code = find_ends(loss, loss_names, &end, err);
    if (code)
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
    orr_code code = stg_library_get(lib, "embedding", &embedding, err);
    if (!code)
        code = stg_library_get(lib, "loss", &loss, err);
    if (!code)
        code = repeat_layer(g, layer, layers, err);
    if (!code)
        code = add_embedding(g, embedding, "in_emb.", "Dvocal", "Dmodel", ORR__PLACE_FIRST, err);
    if (!code)
        code = add_embedding(g, embedding, "out_emb.", "Dmodel", "Dvocal", ORR__PLACE_LAST, err);
    if (!code)
        code = add_loss(g, loss, err);
    return code ? code : link_model(g, layer, embedding, loss, layers, err);
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

/* Where the tensors of one micro-batch go in the graph of all of them:
 *
 *     | micro-batch 0 | 1 | ... | merged gradients | parameters |
 */
typedef struct spread {
    const stg_tgraph *from;
    stg_tgraph *to;
    uint64_t pieces;
    uint32_t *place;   /* of a tensor within its micro-batch, of a parameter among the parameters */
    uint32_t *sources; /* gradients of parameters, in order */
    uint32_t per_piece; /* tensors that are copied */
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

/* The gradients of all micro-batches added up; one operation an element, however many there are. */
static orr_code add_merged(spread *s, uint32_t source, uint32_t *others, orr_error *err)
{
    stg_space *space = s->to->space;
    const stg_tensor *x = &s->from->tensors[source];
    const uint32_t first = new_index(s, source, 0);
    stg_tensor t = stg_tensor_new(space, "", ORR__OP_CUSTOM);
    orr__layout made;
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

/* Which tensor holds the gradient of each parameter, among those from `first` on; ORR__NONE elsewhere. */
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
    orr__layout made;
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

/* merged: where the merged gradients begin, or 0 when a parameter's gradient is used as it is.  That a merged
 * gradient belongs to a parameter is forgotten afterwards: the files do not say it. */
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

/* ---- all of it ---- */

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
