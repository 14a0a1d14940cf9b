/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - cuts the tensor graph into pipeline stages (specification, section 6).
 *
 * A stage is its layers; an operand that lives elsewhere is replaced by a shadow, one for each remote tensor and
 * stage, which becomes a receive here and a send there.  Cost: one pass over all tensors. */
#include "pipeline.h"

void stg_pipeline_fini(stg_pipeline *p)
{
    for (uint32_t i = 0; p->pipes && i < p->pipe_count; i++)
        orr_free(p->pipes[i].tensors);
    orr_free(p->pipes);
    orr_free(p->pairs);
}

/* The first stages get a layer more when they do not come out even.  What is behind the last layer belongs to
 * stage (layers - 1) mod stages, which is the last one only when they do: the reference's rule, unless
 * precision is mixed. */
static uint32_t stage_of(int32_t place, const orr_stage_options *opt)
{
    const uint64_t base = opt->layers / opt->pp, more = opt->layers % opt->pp,
                   wide = more * (base + 1);
    if (place == ORR__PLACE_FIRST || opt->model == ORR_STAGE_DEBUG)
        return 0;
    if (place == ORR__PLACE_LAST)
        return (uint32_t)(opt->mixed_precision ? opt->pp - 1 : (opt->layers - 1) % opt->pp);
    const uint64_t layer = (uint64_t)place;
    return (uint32_t)(layer < wide ? layer / (base + 1) : more + (layer - wide) / base);
}

typedef struct splitting {
    stg_pipeline *p;
    stg_tgraph *g;
    uint32_t *home;   /* stage of a tensor */
    uint32_t *shadow; /* of a remote tensor in the stage being cut */
    uint32_t stage;
    stg_word old_prefix, new_prefix; /* the last one that got "shadow_" in front */
} splitting;

static void put(splitting *s, uint32_t stage, uint32_t tensor)
{
    stg_pipe *pipe = &s->p->pipes[stage];
    if (!orr_grow(&pipe->tensors, &pipe->room, pipe->count + 1))
        stg_space_no_room(s->g->space);
    else
        pipe->tensors[pipe->count++] = tensor;
}

static orr_code add_shadow(splitting *s, uint32_t remote, uint32_t *out, orr_error *err)
{
    stg_space *space = s->g->space;
    stg_pipeline *p = s->p;
    orr__layout made;
    const orr_code code = stg_tensor_made(s->g, remote, &made, err);
    if (code)
        return code;
    const stg_tensor *x = &s->g->tensors[remote];
    stg_tensor t = stg_tensor_new(space, "", ORR__OP_S);
    if (x->prefix != s->old_prefix) {
        s->old_prefix = x->prefix;
        s->new_prefix =
            stg_word_joined(space, orr_str_of("shadow_"), stg_word_text(space, x->prefix));
    }
    t.prefix = s->new_prefix;
    t.name = x->name;
    t.revision = x->revision;
    t.need_a = made;
    *out = stg_tgraph_add(s->g, &t);
    if (!orr_grow(&p->pairs, &p->pair_room, p->pair_count + 1))
        return orr_no_memory(err);
    p->pairs[p->pair_count++] =
        (stg_pair){.remote = remote, .shadow = *out, .from = s->home[remote], .to = s->stage};
    return ORR_OK;
}

/* The operand as this stage sees it. */
static orr_code localise(splitting *s, uint32_t tensor, bool is_second, orr_error *err)
{
    const uint32_t x = is_second ? s->g->tensors[tensor].b : s->g->tensors[tensor].a;
    orr_code code = ORR_OK;
    if (x == ORR__NONE || s->home[x] == s->stage)
        return ORR_OK;
    if (s->shadow[x] == ORR__NONE)
        code = add_shadow(s, x, &s->shadow[x], err);
    if (is_second)
        s->g->tensors[tensor].b = s->shadow[x];
    else
        s->g->tensors[tensor].a = s->shadow[x];
    return code;
}

static orr_code check_extras(const splitting *s, uint32_t tensor, orr_error *err)
{
    const stg_tensor *t = &s->g->tensors[tensor];
    char label[120];
    for (uint32_t i = 0; i < t->extra_count; i++) {
        if (s->home[s->g->extras[t->extra + i]] != s->stage)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "data_deps of %s reach into another pipeline stage",
                            stg_tensor_label(s->g, tensor, label, sizeof label));
    }
    return ORR_OK;
}

static orr_code cut_stage(splitting *s, orr_error *err)
{
    stg_pipe *pipe = &s->p->pipes[s->stage];
    const size_t own = pipe->count, first_pair = s->p->pair_count;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < own && !code; i++) {
        const uint32_t t = pipe->tensors[i];
        code = localise(s, t, false, err);
        if (!code)
            code = localise(s, t, true, err);
        if (!code)
            code = check_extras(s, t, err);
    }
    for (size_t i = first_pair; i < s->p->pair_count; i++) {
        put(s, s->stage, s->p->pairs[i].shadow);
        s->shadow[s->p->pairs[i].remote] = ORR__NONE; /* the next stage makes its own */
    }
    return code ? code : stg_space_check(s->g->space, err);
}

orr_code stg_pipeline_split(stg_pipeline *p,
                            stg_tgraph *g,
                            const orr_stage_options *opt,
                            orr_error *err)
{
    const size_t tensors = g->count;
    splitting s = {.p = p, .g = g, .old_prefix = ORR__NONE};
    orr_arena *arena = orr_arena_create();
    orr_code code = ORR_OK;
    *p = (stg_pipeline){.pipe_count = (uint32_t)opt->pp};
    p->pipes = orr_alloc((size_t)opt->pp, sizeof *p->pipes);
    if (arena) {
        s.home = orr_arena_new(arena, tensors, uint32_t);
        s.shadow = orr_arena_new(arena, tensors, uint32_t);
    }
    if (!p->pipes || !s.home || !s.shadow)
        code = orr_no_memory(err);
    for (size_t i = 0; i < tensors && !code; i++) {
        s.shadow[i] = ORR__NONE;
        s.home[i] = stage_of(g->tensors[i].place, opt);
        put(&s, s.home[i], (uint32_t)i);
    }
    for (; s.stage < p->pipe_count && !code; s.stage++)
        code = cut_stage(&s, err);
    orr_arena_destroy(arena);
    return code;
}
