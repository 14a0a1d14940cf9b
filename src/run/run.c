/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - orr_run: one configuration, life cycle and set of results for three engines (engine.h).
 *
 * Nothing here depends on a particular engine: a function that an engine lacks is NULL in its row,
 * and the result is 0, NULL or an error that names the engine.  Strings of the caller are copied,
 * so a configuration may live on its stack. */
#include "engine.h"

#include "base/threads/stop.h"
#include "trace/input_files.h"
#include <orrery/lab/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

static const run_engine *const engines[] = {&run_traces_engine, &run_schedule_engine,
                                            &run_flows_engine};

/* ---- the configuration ---- */

static const run_engine *engine_of(const orr_run_config *c)
{
    /* The input decides: no option could contradict it. */
    return c->is_flows           ? &run_flows_engine
           : c->schedule         ? &run_schedule_engine
           : c->traces || c->set ? &run_traces_engine
                                 : NULL;
}

uint32_t orr_run_supports(const char *engine, const char *network)
{
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strcmp(engines[i]->name, engine) == 0)
            return engines[i]->supports(network);
    return 0;
}

static orr_code check_config(const orr_run_config *c, orr_error *err)
{
    static const struct {
        uint32_t bit;
        const char *words;
    } records[] = {{ORR_RUN_SPANS, "when operations ran"},
                   {ORR_RUN_PHASES, "phases of collectives"},
                   {ORR_RUN_SCHEDULE, "a schedule"},
                   {ORR_RUN_ISSUES, "when nodes were issued"},
                   {ORR_RUN_LINKS, "links"},
                   {ORR_RUN_HISTORY, "links and queues over time"},
                   {ORR_RUN_QUEUES, "lengths of queues"},
                   {ORR_RUN_PAIRS, "which send met which receive"}};
    const int inputs = (c->traces || c->set) + (c->schedule != NULL) + c->is_flows;
    if (inputs != 1)
        return orr_fail(err, ORR_EUSAGE, NULL, "a run needs %s traces, a set, a schedule and flows",
                        inputs ? "only one of" : "one of");
    if (c->steps > 1 && !(c->traces || c->set))
        return orr_fail(err, ORR_EUSAGE, NULL, "only traces are run several times in a row");
    if (c->steps > 1 && (c->rules || c->records & (ORR_RUN_SCHEDULE | ORR_RUN_ISSUES)))
        return orr_fail(err, ORR_EUSAGE, NULL, "%s of several steps in a row is not kept",
                        c->rules                        ? "the output of another program"
                        : c->records & ORR_RUN_SCHEDULE ? "the schedule"
                                                        : "the log of issued nodes");
    const uint32_t missing = c->records & ~engine_of(c)->supports(c->network);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        if (missing & records[i].bit)
            return orr_fail(err, ORR_EUSAGE, NULL, "a run of %s cannot record %s",
                            engine_of(c)->name, records[i].words);
    return ORR_OK;
}

/* False: out of memory.  NULL stays NULL, which means the default: a failed copy must not be
 * mistaken for it. */
static bool copy_text(orr_arena *a, const char **text)
{
    if (!*text)
        return true;
    *text = orr_arena_text(a, orr_str_of(*text));
    return *text != NULL;
}

static bool copy_bytes(orr_arena *a, const void *from, size_t size, const void **out)
{
    void *copy = from ? orr_arena_take(a, size) : NULL;
    if (copy)
        memcpy(copy, from, size);
    *out = copy;
    return !from || copy;
}

/* Lists of algorithms are arrays of strings of the caller. The struct around them is already
 * ours, so they are changed in place. */
static bool copy_lists(orr_arena *a, orr_system *s)
{
    const char **lists[] = {s->all_reduce, s->all_gather, s->reduce_scatter,
                            s->all_to_all, s->broadcast,  s->reduce,
                            s->gather,     s->scatter,    s->barrier};
    bool ok = true;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t k = 0; k <= ORR_NET_DIMS; k++)
            ok = copy_text(a, &lists[i][k]) && ok;
    return copy_text(a, &s->policy) && ok;
}

static bool copy_sources(orr_arena *a, orr_run_config *c)
{
    orr_run_source *list =
        c->source_count ? orr_arena_new(a, c->source_count, orr_run_source) : NULL;
    bool ok = list || !c->source_count;
    for (size_t i = 0; list && i < c->source_count; i++) {
        list[i] = c->sources[i];
        list[i].path.ptr = orr_arena_text(a, list[i].path);
        ok = copy_text(a, &list[i].role) && list[i].path.ptr && ok;
    }
    c->sources = list;
    return ok;
}

/* Takes copies of strings, lists and structs. */
static bool copy_config(orr_run *r)
{
    orr_run_config *c = &r->config;
    const char **texts[] = {&c->traces,        &c->flows,       &c->name,       &c->program,
                            &c->system,        &c->topology,    &c->network,    &c->memory,
                            &c->groups,        &c->plans,       &c->ranks_file, &c->logical,
                            &c->packet_config, &c->packet_keys, &c->noise,      &c->logging,
                            &c->simple_links,  &c->machine,     &c->hardware,   &c->software};
    bool ok = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ok = copy_text(r->arena, texts[i]) && ok;
    const void *system = NULL, *dims = NULL, *loggops = NULL;
    ok = ok && copy_bytes(r->arena, c->own_system, sizeof *c->own_system, &system) &&
         copy_bytes(r->arena, c->dims, sizeof *c->dims, &dims) &&
         copy_bytes(r->arena, c->loggops, sizeof *c->loggops, &loggops) &&
         (!system || copy_lists(r->arena, (orr_system *)(uintptr_t)system)) &&
         copy_sources(r->arena, c);
    c->own_system = system;
    c->dims = dims;
    c->loggops = loggops;
    return ok;
}

/* ---- life cycle ---- */

orr_code orr_run_create(const orr_run_config *config, orr_run **out, orr_error *err)
{
    *out = NULL;
    /* A caller compiled against an older header has a smaller struct: missing fields stay 0. */
    if (!config || config->size < sizeof config->size || config->size > sizeof *config)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "orr_run_config.size must be sizeof(orr_run_config)");
    if (config->own_system && config->own_system->size != sizeof(orr_system))
        return orr_fail(err, ORR_EUSAGE, NULL, "orr_system.size must be sizeof(orr_system)");
    if (config->dims && config->dims->size != sizeof(orr_net_config))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "orr_net_config.size must be sizeof(orr_net_config)");
    orr_run *r = orr_alloc(1, sizeof *r);
    if (!r)
        return orr_no_memory(err);
    /* Before anything is checked: what is checked must be what is used, even if the caller's
     * struct changes meanwhile. */
    memcpy(&r->config, config, config->size);
    orr_code code = check_config(&r->config, err);
    if (!code) {
        r->engine = engine_of(&r->config);
        r->arena = orr_arena_create();
        code = r->arena && copy_config(r) ? r->engine->create(r, err) : orr_no_memory(err);
    }
    if (code)
        orr_run_destroy(r);
    else
        *out = r;
    return code;
}

void orr_run_destroy(orr_run *r)
{
    if (!r)
        return;
    if (r->engine)
        r->engine->destroy(r);
    orr_set_close(r->set);
    orr_free(r->nccl_table);
    orr_arena_destroy(r->arena);
    orr_free(r);
}

orr_code orr_run_step(orr_run *r, orr_error *err)
{
    return r->engine->step(r, err);
}

static void stop_at_limit(void *run)
{
    orr_run *r = run;
    r->engine->stop(r);
}

/* Prefixes the error with the limit that was reached. */
static orr_code say_limit(const orr_run *r, orr_guard_limit which, orr_error *err)
{
    const orr_run_config *c = &r->config;
    char text[ORR_UNIT_ROOM];
    if (which == ORR_GUARD_TIME)
        return orr_because(err, ORR_ESTOP, "the limit of %.6g s is reached", c->max_seconds);
    if (which == ORR_GUARD_MEMORY) {
        orr_bytes_text(c->max_bytes, text);
        return orr_because(err, ORR_ESTOP, "the limit of %s of memory is reached", text);
    }
    /* Engines stop at the limit as for a signal: was_stopped tells the two apart. */
    if (c->max_events && !atomic_load(&r->was_stopped))
        return orr_because(err, ORR_ESTOP, "the limit of %" PRIu64 " event%s is reached",
                           c->max_events, c->max_events == 1 ? "" : "s");
    return ORR_ESTOP;
}

orr_code orr_run_to_end(orr_run *r, orr_error *err)
{
    struct timespec from, to;
    orr_guard *guard;
    /* No time is left: to the guard 0 would be no limit, and this is over before it looks. */
    const double least = 1e-9, most = r->config.max_seconds;
    double left = most > 0 ? most - r->config.used_seconds : 0;
    if (most > 0 && !(left > least))
        left = least;
    atomic_store(&r->was_stopped, false);
    orr_code code = orr_guard_start(left, r->config.max_bytes, stop_at_limit, r, &guard, err);
    if (code)
        return code;
    clock_gettime(CLOCK_MONOTONIC, &from);
    code = r->engine->to_end(r, err);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const orr_guard_limit which = orr_guard_end(guard);
    if (code == ORR_ESTOP)
        code = say_limit(r, which, err);
    /* Accumulated: a run that was stopped and continued took the time of both calls. */
    r->seconds += (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    return code;
}

void orr_run_stop(orr_run *r)
{
    atomic_store(&r->was_stopped, true);
    r->engine->stop(r);
}

/* ---- results ---- */

/* A row of the engine's table that is NULL means that it has no such result. Each question has
 * an answer then, zero or none, so that callers need not know engines. */
static orr_code cannot(const orr_run *r, const char *what, orr_error *err)
{
    return orr_fail(err, ORR_EUSAGE, NULL, "a run of %s has no %s", r->engine->name, what);
}

uint32_t orr_run_ranks(const orr_run *r)
{
    return r->engine->ranks ? r->engine->ranks(r) : 0;
}

uint32_t orr_run_ranks_simulated(const orr_run *r)
{
    return r->engine->simulated ? r->engine->simulated(r) : orr_run_ranks(r);
}

uint32_t orr_run_ranks_simulated_last(const orr_run *r)
{
    return r->engine->simulated_last ? r->engine->simulated_last(r) : orr_run_ranks_simulated(r);
}

const char *orr_run_fold_why(const orr_run *r)
{
    return r->engine->fold_why ? r->engine->fold_why(r) : "";
}

uint32_t orr_run_threads(const orr_run *r, const char **why)
{
    *why = r->engine->threads ? r->engine->threads_why(r) : "";
    return r->engine->threads ? r->engine->threads(r) : 0;
}

uint32_t orr_run_finished(const orr_run *r)
{
    return r->engine->finished ? r->engine->finished(r) : 0;
}

orr_run_steps orr_run_steps_of(const orr_run *r)
{
    const orr_ps end = orr_run_time(r);
    return r->engine->steps
               ? r->engine->steps(r)
               : (orr_run_steps){
                     .asked = 1, .simulated = 1, .total = end, .first = end, .last = end};
}

const orr_run_rank *orr_run_rank_at(orr_run *r, uint32_t rank)
{
    if (rank >= orr_run_ranks(r))
        return NULL;
    /* Engines fill in what they know. */
    r->rank = (orr_run_rank){0};
    r->engine->rank_at(r, rank, &r->rank);
    return &r->rank;
}

orr_ps orr_run_time(const orr_run *r)
{
    return r->engine->time(r);
}

double orr_run_seconds(const orr_run *r)
{
    return r->seconds;
}

uint64_t orr_run_events(const orr_run *r)
{
    return r->engine->events(r);
}

uint64_t orr_run_messages(const orr_run *r)
{
    return r->engine->messages ? r->engine->messages(r) : 0;
}

const char *orr_run_warning(const orr_run *r, size_t i)
{
    return r->engine->warning ? r->engine->warning(r, i) : NULL;
}

const char *orr_run_stall_line(orr_run *r, size_t i)
{
    return r->engine->stall_line(r, i);
}

const struct orr_stall *orr_run_stall(orr_run *r)
{
    return r->engine->stall ? r->engine->stall(r) : NULL;
}

orr_code orr_run_input_at(const orr_run *r, size_t i, orr_run_input *out, orr_error *err)
{
    orr__input_file f = {0};
    *out = (orr_run_input){0};
    if (!r->engine->input(r, i, &out->role, &out->path))
        return ORR_END;
    f.role = out->role;
    f.path = out->path;
    const bool ok =
        strcmp(f.role, "traces") == 0 ? orr__input_traces_hash(&f) : orr__input_file_hash(&f);
    if (!ok)
        return orr_no_memory(err);
    if (f.is_known)
        orr_content_hash_text(f.hash, out->hash);
    out->bytes = f.bytes;
    return ORR_OK;
}

void orr_run_visit_links(const orr_run *r, orr_net_link_visit visit, void *context)
{
    if (r->engine->visit_links)
        r->engine->visit_links(r, visit, context);
}

uint32_t orr_run_dimensions(const orr_run *r)
{
    return r->engine->dimensions ? r->engine->dimensions(r) : 0;
}

const orr_run_dimension *orr_run_dimension_at(orr_run *r, uint32_t i)
{
    if (i >= orr_run_dimensions(r))
        return NULL;
    r->engine->dimension_at(r, i, &r->dimension);
    return &r->dimension;
}

bool orr_run_packets(const orr_run *r, struct orr_packet_figures *out)
{
    return r->engine->packets && r->engine->packets(r, out);
}

orr_code orr_run_fabric_view(const orr_run *r, struct orr_fabric_view **out, orr_error *err)
{
    *out = NULL;
    return r->engine->fabric_view ? r->engine->fabric_view(r, out, err) : ORR_OK;
}

const orr_set *orr_run_traces(const orr_run *r)
{
    return r->engine->traces ? r->engine->traces(r) : NULL;
}

double orr_run_peak_flops(const orr_run *r)
{
    return r->engine->peak_flops ? r->engine->peak_flops(r) : 0;
}

orr_code orr_run_timeline_rows(const orr_run *r,
                               orr_run_rows rows,
                               orr_timeline **out,
                               orr_error *err)
{
    *out = NULL;
    return r->engine->timeline ? r->engine->timeline(r, rows, out, err)
                               : cannot(r, "timeline", err);
}

orr_code orr_run_timeline(const orr_run *r, orr_timeline **out, orr_error *err)
{
    return orr_run_timeline_rows(r, ORR_RUN_ROWS_ALL, out, err);
}

orr_code orr_run_critical_path(const orr_run *r, struct orr_critical_path **out, orr_error *err)
{
    *out = NULL;
    return r->engine->critical_path ? r->engine->critical_path(r, out, err)
                                    : cannot(r, "critical path", err);
}

orr_code orr_run_goal(const orr_run *r, orr_goal **out, orr_error *err)
{
    *out = NULL;
    return r->engine->goal ? r->engine->goal(r, out, err) : cannot(r, "schedule of its own", err);
}

orr_code orr_run_write(const orr_run *r, const char *what, const char *path, orr_error *err)
{
    /* By name, so that a replaced program can add a file without a new library function
     * (docs/design/run.md). */
    for (const run_writer *w = r->engine->writers; w->what; w++)
        if (strcmp(w->what, what) == 0)
            return w->write(r, path, err);
    if (r->engine->write_old)
        return r->engine->write_old(r, what, path, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "a run of %s writes no \"%s\"", r->engine->name, what);
}

/* ---- LogGOPS ---- */

/* goal.md 3.1: LogGOPSim's defaults, and the two sets of ATLAHS. */
static const struct {
    const char *name;
    orr_loggops_model model;
} presets[] = {
    {"default", {.L = 2500, .o = 1500, .g = 1000, .G = 6, .O = 0, .S = 65535}},
    {"ai", {.L = 3700, .o = 200, .g = 5, .G = 0.04, .O = 0, .S = 0}},
    {"hpc", {.L = 3000, .o = 8000, .g = 0, .G = 0.18, .O = 0, .S = 256000}},
};

/* One of L=.. o=.. and so on; *text moves past it and its comma. */
static bool take_parameter(const char **text, orr_loggops_model *m)
{
    const char *p = *text, name = *p;
    char *end;
    if (!name || p[1] != '=' || !((p[2] >= '0' && p[2] <= '9') || p[2] == '.'))
        return false;
    errno = 0;
    const double v = strtod(p + 2, &end);
    const uint64_t whole = v < 9e18 ? (uint64_t)v : 0;
    if (errno || (*end && *end != ',') || v >= 9e18 || (name != 'G' && (double)whole != v))
        return false;
    *text = *end ? end + 1 : end;
    switch (name) {
    case 'L':
        m->L = whole;
        return true;
    case 'o':
        m->o = whole;
        return true;
    case 'g':
        m->g = whole;
        return true;
    case 'G':
        m->G = v;
        return true;
    case 'O':
        m->O = whole;
        return true;
    case 'S':
        m->S = (uint32_t)whole;
        return whole <= UINT32_MAX;
    default:
        return false;
    }
}

orr_code orr_loggops_parse(const char *text, orr_loggops_model *out, orr_error *err)
{
    *out = presets[0].model;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].name, text) == 0) {
            *out = presets[i].model;
            return ORR_OK;
        }
    bool is_good = *text != 0;
    for (const char *p = text; *p && is_good;)
        is_good = take_parameter(&p, out);
    return is_good ? ORR_OK
                   : orr_fail(err, ORR_EUSAGE, NULL,
                              "\"%s\" is not default, ai, hpc, nor of the form "
                              "L=2500,o=1500,g=1000,G=6,O=0,S=65535",
                              text);
}
