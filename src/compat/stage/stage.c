/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - ranks and groups, pipeline stages, layouts, and the whole job.  First: numbers of ranks
 * and groups (stage.md 7 and 8).
 *
 * A rank is (stage, ep, cp, tp, dp) with dp fastest.  The groups of an axis are numbered by (stage,
 * the other axes in the order dp, tp, cp, ep) with the last one fastest; axes in the order dp, tp,
 * cp, ep, starting at 1. */
#include "base/text/text.h"
#include "lower.h"
#include "stage_impl.h"
#include "tensor.h"

#include <inttypes.h>
#include <sys/stat.h>

stg_grid stg_grid_of(const orr_stage_options *opt)
{
    const bool is_routed = opt->model == ORR_STAGE_MOE || opt->model == ORR_STAGE_DEBUG;
    stg_grid g = {.stages = (uint32_t)opt->pp, .axes = is_routed ? 4 : 3};
    g.degree[ORR__DP] = (uint32_t)opt->dp;
    g.degree[ORR__TP] = (uint32_t)(is_routed ? opt->tp : opt->tp * opt->ep);
    g.degree[ORR__CP] = (uint32_t)opt->sp;
    g.degree[ORR__EP] = is_routed ? (uint32_t)opt->ep : 1;
    g.per_stage = 1;
    for (int a = 0; a < ORR__AXES; a++)
        g.per_stage *= g.degree[a];
    g.first_group[0] = 1;
    for (uint32_t a = 0; a < ORR__AXES; a++) {
        const uint32_t groups = a < g.axes ? g.stages * (g.per_stage / g.degree[a]) : 0;
        g.first_group[a + 1] = g.first_group[a] + groups;
    }
    return g;
}

stg_spot stg_grid_spot(const stg_grid *g, uint32_t rank)
{
    stg_spot s = {.stage = rank / g->per_stage};
    uint32_t rest = rank % g->per_stage;
    for (int a = 0; a < ORR__AXES; a++) {
        s.at[a] = rest % g->degree[a];
        rest /= g->degree[a];
    }
    return s;
}

uint32_t stg_grid_rank(const stg_grid *g, const stg_spot *spot)
{
    uint32_t rank = spot->stage;
    for (int a = ORR__AXES - 1; a >= 0; a--)
        rank = rank * g->degree[a] + spot->at[a];
    return rank;
}

uint32_t stg_grid_group(const stg_grid *g, const stg_spot *spot, stg_axis axis)
{
    uint32_t n = spot->stage;
    for (int a = 0; a < ORR__AXES; a++) {
        if (a != (int)axis)
            n = n * g->degree[a] + spot->at[a];
    }
    return g->first_group[axis] + n;
}

uint32_t stg_grid_members(const stg_grid *g, uint32_t group, uint32_t *count, uint32_t *stride)
{
    uint32_t axis = 0;
    stg_spot s = {0};
    while (group >= g->first_group[axis + 1])
        axis++;
    uint32_t rest = group - g->first_group[axis];
    for (int a = ORR__AXES - 1; a >= 0; a--) {
        if (a == (int)axis)
            continue;
        s.at[a] = rest % g->degree[a];
        rest /= g->degree[a];
    }
    s.stage = rest;
    *count = g->degree[axis];
    *stride = 1;
    for (uint32_t a = 0; a < axis; a++)
        *stride *= g->degree[a];
    return stg_grid_rank(g, &s);
}

/* Split the tensor graph into pipeline stages (stage.md 6).
 *
 * An operand of another stage is replaced by a shadow, one per remote tensor and stage, which
 * becomes a receive here and a send there.  Cost: one pass over all tensors. */

static void stg_pipeline_fini(stg_pipeline *p)
{
    for (uint32_t i = 0; p->pipes && i < p->pipe_count; i++)
        orr_free(p->pipes[i].tensors);
    orr_free(p->pipes);
    orr_free(p->pairs);
}

/* If layers do not divide evenly, the first stages get one more.  What follows the last layer
 * belongs to stage (layers - 1) mod stages, which is the last stage only if they do: the
 * reference's rule, unless precision is mixed. */
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
    uint32_t *shadow; /* of a remote tensor in the current stage */
    uint32_t stage;
    stg_word old_prefix, new_prefix; /* the last prefix that got "shadow_" prepended */
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
    stg_layout made;
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
    return orr_push(p->pairs, p->pair_count, p->pair_room,
                    (stg_pair){
                        .remote = remote, .shadow = *out, .from = s->home[remote], .to = s->stage})
               ? ORR_OK
               : orr_no_memory(err);
}

/* Replace an operand by its shadow if it is remote. */
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

/* Add the shadows to the graph.  Call fini also after a failure. */
static orr_code stg_pipeline_split(stg_pipeline *p,
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

/* Interned words and layouts.
 *
 * A layout is identified by its contents, the indices of its extents as bytes.  What is needed
 * often (size, text) is cached. */

bool stg_space_init(stg_space *s)
{
    memset(s, 0, sizeof *s);
    const bool ok = stg_algebra_init(&s->algebra);
    s->words = orr_intern_create();
    s->layout_keys = orr_intern_create();
    s->made = orr_map_create(256);
    s->ops = orr_map_create(256);
    if (!ok || !s->words || !s->layout_keys || !s->made || !s->ops)
        return false;
    /* Index 0 always exists, so that the result of a failed call can be used. */
    return stg_word_of(s, orr_str_of("")) == ORR__EMPTY && stg_layout_line(s, ORR__ONE) == 0 &&
           !s->algebra.fault;
}

void stg_space_fini(stg_space *s)
{
    stg_algebra_fini(&s->algebra);
    orr_intern_destroy(s->words);
    orr_intern_destroy(s->layout_keys);
    orr_map_destroy(s->made);
    orr_map_destroy(s->ops);
    orr_free(s->layouts);
    orr_free(s->extents);
    orr_buf_fini(&s->text);
}

orr_code stg_space_check(const stg_space *s, orr_error *err)
{
    return stg_algebra_check(&s->algebra, NULL, "templates", err);
}

void stg_space_no_room(stg_space *s)
{
    if (!s->algebra.fault)
        s->algebra.fault = ORR__NO_ROOM;
}

static uint32_t no_room(stg_space *s)
{
    stg_space_no_room(s);
    return 0;
}

stg_word stg_word_of(stg_space *s, orr_str text)
{
    stg_word w;
    return orr_intern_add(s->words, text, &w) ? w : no_room(s);
}

stg_word stg_word_joined(stg_space *s, orr_str a, orr_str b)
{
    s->text.len = 0;
    orr_buf_add(&s->text, a.ptr, a.len);
    orr_buf_add(&s->text, b.ptr, b.len);
    if (s->text.failed)
        return no_room(s);
    return stg_word_of(s, (orr_str){(const char *)s->text.ptr, s->text.len});
}

stg_layout stg_layout_make(stg_space *s,
                           const stg_expr *shape,
                           size_t shape_count,
                           const stg_expr *hidden,
                           size_t hidden_count)
{
    stg_expr key[2 * ORR__DIMS_MOST + 1] = {(stg_expr)shape_count};
    const size_t count = shape_count + hidden_count;
    const uint32_t before = orr_intern_count(s->layout_keys);
    stg_layout l;
    for (size_t i = 0; i < shape_count; i++)
        key[1 + i] = shape[i];
    for (size_t i = 0; i < hidden_count; i++)
        key[1 + shape_count + i] = hidden[i];
    if (!orr_intern_add(s->layout_keys, (orr_str){(char *)key, (count + 1) * sizeof *key}, &l))
        return no_room(s);
    if (l != before)
        return l;
    if (!orr_grow(&s->layouts, &s->layout_room, l + 1u) ||
        !orr_grow(&s->extents, &s->extent_room, s->extent_count + count))
        return no_room(s);
    s->layouts[l] = (stg_layout_row){.first = (uint32_t)s->extent_count,
                                     .shape_count = (uint8_t)shape_count,
                                     .hidden_count = (uint8_t)hidden_count,
                                     .size = ORR__NONE,
                                     .hidden_size = ORR__NONE,
                                     .text = ORR__NONE};
    memcpy(s->extents + s->extent_count, key + 1, count * sizeof *key);
    s->extent_count += count;
    return l;
}

stg_layout stg_layout_line(stg_space *s, stg_expr extent)
{
    const stg_expr one = ORR__ONE;
    return stg_layout_make(s, &extent, 1, &one, 1);
}

static stg_expr product_of(stg_space *s, uint32_t first, size_t count)
{
    stg_expr product = ORR__ONE;
    for (size_t i = 0; i < count; i++)
        product = stg_expr_mul(&s->algebra, product, s->extents[first + i]);
    return product;
}

stg_expr stg_layout_size(stg_space *s, stg_layout l)
{
    stg_layout_row *row = &s->layouts[l];
    if (row->size == ORR__NONE)
        row->size = product_of(s, row->first, row->shape_count);
    return row->size;
}

stg_expr stg_layout_hidden_size(stg_space *s, stg_layout l)
{
    stg_layout_row *row = &s->layouts[l];
    if (row->hidden_size == ORR__NONE)
        row->hidden_size = product_of(s, row->first + row->shape_count, row->hidden_count);
    return row->hidden_size;
}

stg_layout stg_layout_replace(stg_space *s, stg_layout l, uint32_t symbol, stg_expr by)
{
    const stg_layout_row row = s->layouts[l];
    const size_t count = (size_t)row.shape_count + row.hidden_count;
    stg_expr extents[2 * ORR__DIMS_MOST];
    for (size_t i = 0; i < count; i++)
        extents[i] = stg_expr_replace(&s->algebra, s->extents[row.first + i], symbol, by);
    if (s->algebra.fault)
        return l;
    return stg_layout_make(s, extents, row.shape_count, extents + row.shape_count,
                           row.hidden_count);
}

/* ---- texts ---- */

static orr_str print_extents(stg_space *s, uint32_t first, size_t count)
{
    s->text.len = 0;
    for (size_t i = 0; i < count; i++) {
        const orr_str text = stg_expr_text(&s->algebra, s->extents[first + i]);
        orr_buf_text(&s->text, i ? "," : "");
        orr_buf_add(&s->text, text.ptr, text.len);
    }
    if (count == 0)
        orr_buf_text(&s->text, "1");
    if (s->text.failed)
        no_room(s);
    return (orr_str){(const char *)s->text.ptr, s->text.len};
}

orr_str stg_layout_text(stg_space *s, stg_layout l)
{
    stg_layout_row *row = &s->layouts[l];
    if (row->text == ORR__NONE)
        row->text = stg_word_of(s, print_extents(s, row->first, row->shape_count));
    return stg_word_text(s, row->text);
}

orr_str stg_layout_hidden_text(stg_space *s, stg_layout l)
{
    const stg_layout_row *row = &s->layouts[l];
    return print_extents(s, row->first + row->shape_count, row->hidden_count);
}

/* Comma-separated expressions; none in an empty string. */
static orr_code parse_list(stg_space *s,
                           orr_str text,
                           const orr_where *where,
                           stg_expr *out,
                           size_t *count,
                           orr_error *err)
{
    *count = 0;
    if (!text.len) /* it may have no address to count from */
        return ORR_OK;
    const char *at = text.ptr, *end = text.ptr + text.len;
    while (at <= end) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        if (*count == ORR__DIMS_MOST)
            return orr_fail(err, ORR_EINPUT, where, "'%.*s' has more than %d extents",
                            (int)text.len, text.ptr, ORR__DIMS_MOST);
        const orr_code code = stg_expr_parse(&s->algebra, (orr_str){at, (size_t)(stop - at)}, where,
                                             &out[*count], err);
        if (code)
            return code;
        ++*count;
        at = stop + 1;
    }
    return ORR_OK;
}

orr_code stg_layout_parse(stg_space *s,
                          orr_str shape,
                          orr_str hidden,
                          const orr_where *where,
                          stg_layout *out,
                          orr_error *err)
{
    stg_expr extents[2 * ORR__DIMS_MOST];
    size_t shape_count, hidden_count;
    orr_code code = parse_list(s, shape, where, extents, &shape_count, err);
    if (!code)
        code = parse_list(s, hidden, where, extents + shape_count, &hidden_count, err);
    if (code)
        return code;
    *out = stg_layout_make(s, extents, shape_count, extents + shape_count, hidden_count);
    return stg_algebra_check(&s->algebra, where, "layout", err);
}

/* From options to a job: assemble, split, number, plan.
 *
 * All errors of options and templates are found here, before anything is written. */

static const char *const model_names[ORR_STAGE_MODELS] = {"dense", "llama", "gpt", "moe", "debug"};

enum { RANKS_MOST = 1 << 24, NUMBER_MOST = INT32_MAX };

const char *orr_stage_model_name(orr_stage_model model)
{
    return model_names[model];
}

bool orr_stage_model_find(const char *name, orr_stage_model *out)
{
    for (int i = 0; i < ORR_STAGE_MODELS; i++) {
        if (strcmp(name, model_names[i]) == 0) {
            *out = (orr_stage_model)i;
            return true;
        }
    }
    return false;
}

orr_stage_options orr_stage_defaults(void)
{
    return (orr_stage_options){
        .dp = 1,
        .tp = 1,
        .sp = 1,
        .ep = 1,
        .pp = 1,
        .dvocal = 32000,
        .dmodel = 8192,
        .dff = 28672,
        .seq = 1024,
        .head = 64,
        .kvhead = 8,
        .layers = 80,
        .experts = 8,
        .kexperts = 2,
        .batch = 64,
        .tpsp = true,
    };
}

/* ---- invalid options ---- */

static orr_code check_numbers(const orr_stage_options *o, orr_error *err)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"dp", o->dp},           {"tp", o->tp},
        {"sp", o->sp},           {"ep", o->ep},
        {"pp", o->pp},           {"dvocal", o->dvocal},
        {"dmodel", o->dmodel},   {"dff", o->dff},
        {"seq", o->seq},         {"head", o->head},
        {"kvhead", o->kvhead},   {"layers (num_stacks)", o->layers},
        {"experts", o->experts}, {"kexperts", o->kexperts},
        {"batch", o->batch},     {"micro_batch", o->micro_batch},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value < 1 || numbers[i].value > NUMBER_MOST)
            return orr_fail(err, ORR_EINPUT, NULL, "%s is %" PRIu64 "; it must be 1 to %d",
                            numbers[i].name, numbers[i].value, NUMBER_MOST);
    }
    return ORR_OK;
}

static orr_code check_ranks(const orr_stage_options *o, orr_error *err)
{
    const uint64_t degrees[] = {o->dp, o->tp, o->sp, o->ep, o->pp};
    uint64_t ranks = 1;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        ranks *= degrees[i]; /* below 2^24 * 2^31 */
        if (ranks > RANKS_MOST)
            return orr_fail(err, ORR_EINPUT, NULL, "dp * tp * sp * ep * pp is more than %d ranks",
                            RANKS_MOST);
    }
    return ORR_OK;
}

static orr_code check_model(const orr_stage_options *o, orr_error *err)
{
    const bool is_debug = o->model == ORR_STAGE_DEBUG, is_moe = o->model == ORR_STAGE_MOE;
    if ((unsigned)o->model >= ORR_STAGE_MODELS)
        return orr_fail(err, ORR_EINPUT, NULL, "there is no model of number %d", (int)o->model);
    if (is_debug && o->pp > 1)
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "the debug model has no layers to share out: pp is %" PRIu64 " and must be 1", o->pp);
    if (!is_debug && o->pp > o->layers)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "%" PRIu64 " pipeline stages (pp) for %" PRIu64
                        " layers (num_stacks): a stage needs a layer at least",
                        o->pp, o->layers);
    if (!is_debug && o->batch % o->micro_batch)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "micro_batch %" PRIu64 " does not divide batch %" PRIu64, o->micro_batch,
                        o->batch);
    if (is_moe && o->experts % o->ep)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "ep %" PRIu64 " does not divide the %" PRIu64 " experts", o->ep,
                        o->experts);
    if (is_moe && !o->tpsp)
        return orr_fail(err, ORR_EINPUT, NULL, "the moe model has no form without tpsp");
    if (is_moe && o->clones)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "the moe model cannot have its micro-batches cloned "
                        "(STAGE_MICROBATCH_OPTIMIZE)");
    if (o->tag_base > NUMBER_MOST / 2)
        return orr_fail(err, ORR_EINPUT, NULL, "the first tag is %" PRIu64 "; the most is %d",
                        o->tag_base, NUMBER_MOST / 2);
    return ORR_OK;
}

/* ---- templates ---- */

static void choose_templates(stg_library *lib, const orr_stage_options *o)
{
    const bool is_gated =
        (o->model == ORR_STAGE_DENSE || o->model == ORR_STAGE_LLAMA) && o->mixed_precision;
    if (o->model == ORR_STAGE_MOE) {
        lib->kind = "tpsp_moe";
        lib->attention = "tpsp";
        return;
    }
    if (o->model == ORR_STAGE_DEBUG || is_gated)
        lib->kind = "tpsp";
    else
        lib->kind = o->tpsp ? "tpsp_gpt" : "tp_gpt";
    lib->attention = lib->kind;
}

static orr_code check_folder(const char *folder, orr_error *err)
{
    struct stat st;
    if (!folder)
        return ORR_OK;
    const orr_where at = orr_where_line(folder, 0, 0);
    if (stat(folder, &st) != 0)
        return orr_fail(err, ORR_EIO, &at, "there is no such folder of templates");
    return S_ISDIR(st.st_mode) ? ORR_OK : orr_fail(err, ORR_EIO, &at, "not a folder");
}

static orr_code assemble(orr_stage *job, orr_error *err)
{
    stg_library lib = {.space = &job->space, .folder = job->opt.templates};
    choose_templates(&lib, &job->opt);
    orr_code code = check_folder(lib.folder, err);
    if (!code)
        code = stg_assemble_model(&job->graph, &lib, &job->opt, err);
    if (!code && lib.folder && !lib.has_own) {
        code = orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(lib.folder, 0, 0)),
                        "no module of this model (%s/embedding.csv, embedding.csv, ...) is here",
                        lib.kind);
    }
    stg_library_fini(&lib);
    return code;
}

/* ---- the job ---- */

static orr_code plan_stage(orr_stage *job, uint32_t stage, orr_error *err)
{
    stg_plan *p = &job->plans[stage];
    orr_code code = stg_plan_make(p, &job->lowering, stage, err);
    if (!code)
        code = stg_plan_drop_empty(p, &job->lowering, err);
    if (!code && job->opt.clones && job->opt.batch > job->opt.micro_batch)
        code = stg_plan_clone(p, job->opt.batch / job->opt.micro_batch, err);
    if (!code && job->opt.merge_comms)
        code = stg_plan_merge(p, err);
    return code ? code : stg_measure_memory(job, stage, err);
}

static orr_code lower(orr_stage *job, orr_error *err)
{
    stg_measure_init(&job->measure, &job->space, &job->opt);
    orr_code code = stg_algebra_check(&job->space.algebra, NULL, "symbols", err);
    if (code)
        return code;
    if (!stg_infer_init(&job->infer, &job->space, &job->grid))
        return orr_no_memory(err);
    job->lowering = (stg_lowering){.graph = &job->graph,
                                   .pipeline = &job->pipeline,
                                   .measure = &job->measure,
                                   .infer = &job->infer,
                                   .tag_base = job->opt.tag_base};
    code = stg_lowering_init(&job->lowering, err);
    if (code)
        return code;
    if (job->pipeline.pair_count > NUMBER_MOST / 2)
        return orr_fail(err, ORR_EINPUT, NULL, "too many messages");
    job->plans = orr_alloc(job->grid.stages, sizeof *job->plans);
    job->memory = orr_alloc(job->grid.stages, sizeof *job->memory);
    if (!job->plans || !job->memory)
        return orr_no_memory(err);
    for (uint32_t s = 0; s < job->grid.stages && !code; s++)
        code = plan_stage(job, s, err);
    return code;
}

static orr_code work_out(orr_stage *job, orr_error *err)
{
    if (!stg_space_init(&job->space))
        return orr_no_memory(err);
    stg_tgraph_init(&job->graph, &job->space);
    orr_code code = assemble(job, err);
    if (code)
        return code;
    job->graph_count = job->graph.count;
    job->grid = stg_grid_of(&job->opt);
    job->hides_sizes = job->opt.weight_sharded && job->opt.dp > 1;
    code = stg_pipeline_split(&job->pipeline, &job->graph, &job->opt, err);
    return code ? code : lower(job, err);
}

orr_code orr_stage_create(const orr_stage_options *opt, orr_stage **out, orr_error *err)
{
    orr_stage_options o = *opt;
    *out = NULL;
    if (o.micro_batch == 0)
        o.micro_batch = o.batch;
    orr_code code;
    if ((code = check_numbers(&o, err)) || (code = check_ranks(&o, err)) ||
        (code = check_model(&o, err)))
        return code;
    orr_stage *job = orr_alloc(1, sizeof *job);
    if (!job)
        return orr_no_memory(err);
    job->opt = o;
    code = work_out(job, err);
    if (code)
        orr_stage_destroy(job);
    else
        *out = job;
    return code;
}

void orr_stage_destroy(orr_stage *job)
{
    if (!job)
        return;
    for (uint32_t s = 0; job->plans && s < job->grid.stages; s++)
        stg_plan_fini(&job->plans[s]);
    orr_free(job->plans);
    orr_free(job->memory);
    stg_lowering_fini(&job->lowering);
    stg_infer_fini(&job->infer);
    stg_measure_fini(&job->measure);
    stg_pipeline_fini(&job->pipeline);
    stg_tgraph_fini(&job->graph);
    stg_space_fini(&job->space);
    orr_free(job);
}

uint32_t orr_stage_rank_count(const orr_stage *job)
{
    return job->grid.stages * job->grid.per_stage;
}

uint64_t orr_stage_node_count(const orr_stage *job)
{
    uint64_t n = 0;
    for (uint32_t s = 0; s < job->grid.stages; s++)
        n += (uint64_t)job->plans[s].count * job->grid.per_stage;
    return n;
}
