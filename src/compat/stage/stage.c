/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - a job from options: assemble, split, number, plan.
 *
 * Everything that can be wrong with options or templates is found here, before anything is written. */
#include "stage_impl.h"

#include <inttypes.h>
#include <sys/stat.h>

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

/* ---- options that cannot be ---- */

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
        const orr_where at = orr_where_line(lib.folder, 0, 0);
        code = orr_fail(err, ORR_EINPUT, &at,
                        "no module of this model (%s/embedding.csv, embedding.csv, ...) is here",
                        lib.kind);
    }
    stg_library_fini(&lib);
    return code;
}

/* ---- the job ---- */

static orr_code plan_stage(orr_stage *job, uint32_t stage, orr_error *err)
{
    orr__plan *p = &job->plans[stage];
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
    orr_code code = check_numbers(&o, err);
    if (!code)
        code = check_ranks(&o, err);
    if (!code)
        code = check_model(&o, err);
    if (code)
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
