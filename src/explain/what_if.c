/* SPDX-License-Identifier: Apache-2.0 */
/* what_if.c - what a faster network, chip or memory would change, and the same work made otherwise: the run simulated
 * again with one thing different, or an estimate from the critical path. */
#include "what_if.h"

#include "run/engine.h"

#include <stdio.h>
#include <string.h>

/* Ten seconds or so.  Counted in events, so that the page is the same on a busy machine; packets are not among them. */
#define AUTO_SECONDS 10.0
#define AUTO_EVENTS 2e7
enum { VARIANTS = 8 }; /* that are tried at most, nearly */

static orr_report_what_if *new_change(orr__what_ifs *g, const char *words, uint32_t dimension)
{
    if (g->count == ORR__WHAT_IFS)
        return NULL;
    char *text = g->words[g->count];
    orr_report_what_if *w = &g->list[g->count++];
    const orr_run_dimension *d = orr_run_dimension_at(g->r, dimension);
    if (d && d->shape)
        snprintf(text, ORR__WHAT_IF_WORDS, "dimension %u (%s %u): %s", dimension, d->shape,
                 d->ranks, words);
    else
        snprintf(text, ORR__WHAT_IF_WORDS, "%s", words);
    w->change = text;
    return w;
}

/* The chain of operations stays as it is, but goes faster: what can be gained at most. */
static void estimate(orr__what_ifs *g)
{
    uint64_t comm = 0, compute = 0, memory = 0;
    const uint64_t now = (uint64_t)orr_run_time(g->r) / 1000;
    for (size_t i = 0; g->path && i < g->path->step_count; i++) {
        const orr_path_step *p = &g->path->steps[i];
        const bool is_comm = p->kind == ORR_SPAN_SEND || p->kind == ORR_SPAN_RECEIVE ||
                             p->kind == ORR_SPAN_COLLECTIVE;
        comm += is_comm ? p->to - p->from : 0;
        compute += p->kind == ORR_SPAN_COMPUTE ? p->to - p->from : 0;
        memory += p->kind == ORR_SPAN_MEMORY ? p->to - p->from : 0;
    }
    const struct {
        const char *words;
        uint64_t share;
    } all[] = {{"network twice as fast", comm},
               {"compute x 2", compute},
               {"remote memory bandwidth x 2", memory}};
    for (unsigned k = 0; g->path && k < 3; k++) {
        if (all[k].share == 0)
            continue;
        orr_report_what_if *w = new_change(g, all[k].words, UINT32_MAX);
        w->time_ns = now - all[k].share / 2;
    }
}

static orr_code try_on(orr__what_ifs *g,
                       const orr_set *set,
                       orr_run_change change,
                       const char *words)
{
    orr_run_config config = g->r->config;
    orr_run *r;
    orr_report_what_if *w =
        new_change(g, words, change.has_dimension ? change.dimension : UINT32_MAX);
    if (!w)
        return ORR_OK;
    config.set = set;
    config.change = change;
    config.records = 0;
    config.path_steps = 0;
    config.shows_progress = false;
    orr_code code = orr_run_create(&config, &r, g->err);
    if (code)
        return code;
    code = g->run(r, g->err);
    w->time_ns = (uint64_t)orr_run_time(r) / 1000;
    w->is_simulated = true;
    orr_run_destroy(r);
    return code;
}

static orr_code try_change(orr__what_ifs *g, orr_run_change change, const char *words)
{
    return try_on(g, orr_run_traces(g->r), change, words);
}

/* The same step with other micro-batches, ZeRO stages, ...: on the same ranks. */
static orr_code try_variants(orr__what_ifs *g)
{
    char words[ORR__WHAT_IF_WORDS];
    orr_code code = ORR_OK;
    orr_set *set;
    for (size_t number = 0; g->variant && !code;) {
        code = g->variant(orr_run_traces(g->r), &number, words, sizeof words, &set, g->err);
        if (code)
            break;
        code = try_on(g, set, (orr_run_change){0}, words);
        orr_set_close(set);
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code try_network(orr__what_ifs *g)
{
    const uint32_t dims = orr_run_dimensions(g->r);
    const bool has_dims = orr_run_dimension_at(g->r, 0)->shape != NULL;
    orr_code code = ORR_OK;
    if (!has_dims) {
        code = try_change(g, (orr_run_change){.bandwidth = 2}, "network bandwidth x 2");
        return code ? code : try_change(g, (orr_run_change){.latency = 0.5}, "network latency / 2");
    }
    for (uint32_t k = 0; k < dims && !code; k++) {
        if (!(orr_run_dimension_at(g->r, k)->bandwidth > 0))
            continue; /* a network of files of its own: nothing here to be faster */
        const orr_run_change wider = {.has_dimension = true, .dimension = k, .bandwidth = 2};
        const orr_run_change closer = {.has_dimension = true, .dimension = k, .latency = 0.5};
        code = try_change(g, wider, "bandwidth x 2");
        if (!code)
            code = try_change(g, closer, "latency / 2");
    }
    return code;
}

static orr_code try_changes(orr__what_ifs *g)
{
    orr_code code = try_network(g);
    if (!code)
        code = try_change(g, (orr_run_change){.compute = 2}, "compute x 2");
    if (!code)
        code = try_change(g, (orr_run_change){.memory = 2}, "memory bandwidth x 2");
    return code ? code : try_variants(g);
}

/* As many runs as there are changes, and a little more. */
static bool is_quick(const orr__what_ifs *g)
{
    const double variants = g->variant ? VARIANTS : 0;
    const double runs = 2.0 * orr_run_dimensions(g->r) + 2 + variants;
    const char *network = g->r->config.network;
    if (network && strcmp(network, "packet") == 0)
        return orr_run_seconds(g->r) * runs < AUTO_SECONDS;
    return (double)orr_run_events(g->r) * runs < AUTO_EVENTS;
}

orr_code orr__what_if(orr__what_ifs *g, orr_what_if how)
{
    const bool is_whole = orr_run_finished(g->r) == orr_run_ranks(g->r);
    if (how == ORR_WHAT_IF_AUTO)
        how = is_quick(g) ? ORR_WHAT_IF_SIMULATE : ORR_WHAT_IF_ESTIMATE;
    if (!is_whole || how == ORR_WHAT_IF_OFF)
        return ORR_OK;
    if (how == ORR_WHAT_IF_SIMULATE)
        return try_changes(g);
    estimate(g);
    return ORR_OK;
}
