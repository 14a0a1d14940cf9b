/* SPDX-License-Identifier: Apache-2.0 */
/* run_schedule.c - orr_run with a GOAL schedule: LogGOPS (loggops/).
 *
 * Translates options of orr_run for the engine, and its results to picoseconds.  A schedule is
 * borrowed: it must outlive the run. */
#include "engine.h"

#include "run/loggops/loggops.h"

static uint32_t supports(const char *network)
{
    (void)network;
    return ORR_RUN_SPANS | ORR_RUN_QUEUES | ORR_RUN_PAIRS | ORR_RUN_LOGGOPS | ORR_RUN_ROWS |
           ORR_RUN_FOLDS;
}

static orr_code create(orr_run *r, orr_error *err)
{
    const orr_run_config *c = &r->config;
    lgs_input *inputs = orr_arena_new(r->arena, c->source_count, lgs_input);
    lgs_options opt = lgs_defaults();
    if (!inputs)
        return orr_no_memory(err);
    for (size_t i = 0; i < c->source_count; i++)
        inputs[i] = (lgs_input){c->sources[i].role, c->sources[i].path};
    if (c->loggops) {
        opt.L = c->loggops->L;
        opt.o = c->loggops->o;
        opt.g = c->loggops->g;
        opt.G = c->loggops->G;
        opt.O = c->loggops->O;
        opt.S = c->loggops->S;
    }
    opt.rules = c->loggops_rules;
    opt.noise = c->noise;
    opt.has_common_noise = c->has_common_noise;
    opt.noise_seed = c->noise_seed;
    opt.simple_links = c->simple_links;
    opt.fold = c->fold == ORR_RUN_FOLD_OFF      ? LGS_FOLD_OFF
               : c->fold == ORR_RUN_FOLD_VERIFY ? LGS_FOLD_VERIFY
                                                : LGS_FOLD_AUTO;
    opt.threads = c->threads;
    opt.inputs = inputs;
    opt.input_count = c->source_count;
    /* The critical path is found from spans. */
    opt.keeps_spans = c->records & ORR_RUN_SPANS || c->path_steps;
    opt.keeps_queues = c->records & ORR_RUN_QUEUES;
    opt.keeps_pairs = c->records & ORR_RUN_PAIRS;
    opt.shows_progress = c->shows_progress;
    opt.max_events = c->max_events;
    opt.prints_progress = c->prints_progress;
    return lgs_create(c->schedule, &opt, &r->is.loggops, err);
}

static void destroy(orr_run *r)
{
    lgs_destroy(r->is.loggops);
}

static orr_code step(orr_run *r, orr_error *err)
{
    return lgs_step_once(r->is.loggops, err);
}

static orr_code to_end(orr_run *r, orr_error *err)
{
    return lgs_run(r->is.loggops, err);
}

static void stop(orr_run *r)
{
    lgs_stop(r->is.loggops);
}

/* ---- results ---- */

static uint32_t ranks(const orr_run *r)
{
    return orr_goal_ranks(r->config.schedule);
}

static uint32_t finished(const orr_run *r)
{
    /* A schedule ends as a whole: which ranks had finished before is not counted. */
    return lgs_is_complete(r->is.loggops) ? ranks(r) : 0;
}

static uint32_t threads(const orr_run *r)
{
    return lgs_threads(r->is.loggops);
}

static const char *threads_why(const orr_run *r)
{
    return lgs_threads_why(r->is.loggops);
}

static uint32_t simulated(const orr_run *r)
{
    return lgs_simulated(r->is.loggops);
}

static const char *fold_why(const orr_run *r)
{
    return lgs_fold_why(r->is.loggops);
}

static void rank_at(const orr_run *r, uint32_t rank, orr_run_rank *out)
{
    out->finished_at = out->wall = run_ps(lgs_finished_at(r->is.loggops, rank));
    out->noise = run_ps(lgs_noise_of(r->is.loggops, rank));
}

static orr_ps time_of(const orr_run *r)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < ranks(r); i++)
        if (lgs_finished_at(r->is.loggops, i) > last)
            last = lgs_finished_at(r->is.loggops, i);
    return run_ps(last);
}

static uint64_t events(const orr_run *r)
{
    return lgs_events(r->is.loggops);
}

static uint64_t messages(const orr_run *r)
{
    return lgs_messages(r->is.loggops);
}

static const char *stall_line(orr_run *r, size_t i)
{
    return lgs_stall_line(r->is.loggops, i);
}

static bool input(const orr_run *r, size_t i, const char **role, const char **path)
{
    const orr_run_config *c = &r->config;
    const bool is_source = i < c->source_count;
    *role = is_source ? c->sources[i].role : "noise";
    *path = is_source ? c->sources[i].path.ptr : c->noise;
    return is_source || (i == c->source_count && c->noise);
}

static orr_code timeline(const orr_run *r, orr_run_rows rows, orr_timeline **out, orr_error *err)
{
    (void)rows; /* a schedule with recorded spans is not folded */
    return lgs_timeline(r->is.loggops, out, err);
}

/* ---- writers ---- */

static const char *name_of(const orr_run *r)
{
    return r->config.name ? r->config.name : "schedule";
}

static orr_code write_text(const orr_run *r, const char *path, orr_error *err)
{
    return lgs_write_text(r->is.loggops, path, name_of(r), err);
}

static orr_code write_json(const orr_run *r, const char *path, orr_error *err)
{
    return lgs_write_json(r->is.loggops, path, name_of(r), r->config.program, err);
}

static orr_code write_csv(const orr_run *r, const char *path, orr_error *err)
{
    return lgs_write_csv(r->is.loggops, false, path, err);
}

static orr_code write_alike(const orr_run *r, const char *path, orr_error *err)
{
    return lgs_write_csv(r->is.loggops, true, path, err);
}

static orr_code write_old(const orr_run *r, const char *what, const char *path, orr_error *err)
{
    return lgs_write_old(r->is.loggops, what, path, err);
}

static const run_writer writers[] = {{"text", write_text},
                                     {"json", write_json},
                                     {"csv", write_csv},
                                     {"csv-alike", write_alike},
                                     {NULL, NULL}};

const run_engine run_schedule_engine = {
    .name = "schedule",
    .supports = supports,
    .create = create,
    .destroy = destroy,
    .step = step,
    .to_end = to_end,
    .stop = stop,
    .ranks = ranks,
    .finished = finished,
    .simulated = simulated,
    .threads = threads,
    .threads_why = threads_why,
    .fold_why = fold_why,
    .rank_at = rank_at,
    .time = time_of,
    .events = events,
    .messages = messages,
    .stall_line = stall_line,
    .input = input,
    .timeline = timeline,
    .writers = writers,
    .write_old = write_old,
};
