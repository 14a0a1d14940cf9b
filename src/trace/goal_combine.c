/* SPDX-License-Identifier: Apache-2.0 */
/* goal_combine.c - several schedules on one machine: each rank of each job gets its own host, and
 * peers are translated to hosts.  Jobs never share a host, so their messages cannot match. Cost: a
 * copy of the schedules, and four bytes per rank. */
#include <orrery/lab/goal.h>

#include "base/short_forms.h"
#include "goal_impl.h"
#include "placement.h"

typedef struct combiner {
    const orr_goal *const *jobs;
    orr__placement at;
    orr_goal *out;
    orr_error *err;
} combiner;

static orr_code copy_ops(combiner *c, uint32_t rank)
{
    const uint32_t job = c->at.job_of[rank], own = rank - c->at.first[job];
    const orr_goal *g = c->jobs[job];
    const uint32_t ops = orr__goal_ops(g, own);
    const orr__goal_node *nodes = orr__goal_nodes(g, own);
    for (uint32_t i = 0; i < ops; i++) {
        orr__goal_node n = nodes[i];
        const bool has_peer =
            n.kind != ORR_GOAL_CALC && !(n.kind == ORR_GOAL_RECV && n.peer == ORR_GOAL_ANY);
        if (has_peer && n.peer >= g->rank_count)
            return orr_fail(c->err, ORR_EINPUT, NULL,
                            "job %u, rank %u: operation %u: there is no rank %u", job + 1, own,
                            i + 1, n.peer);
        if (has_peer)
            n.peer = c->at.host_of[c->at.first[job] + n.peer];
        n.then = n.started = n.waits = 0;
        if (!orr__goal_push(c->out, &n))
            return orr_no_memory(c->err);
    }
    const uint32_t *edges = orr__goal_edges(g, own);
    for (uint32_t i = 0; i < ops; i++) {
        for (uint32_t k = nodes[i].then; k < nodes[i + 1].then; k++) {
            if (!orr__goal_wish_for(c->out, edges[k], i, k >= nodes[i].started))
                return orr_no_memory(c->err);
        }
    }
    return ORR_OK;
}

static orr_code copy_all(combiner *c)
{
    orr_code code = orr_goal_create(c->at.hosts, &c->out, c->err);
    for (uint32_t h = 0; h < c->at.hosts && !code; h++) {
        code = orr_goal_begin_rank(c->out, c->err);
        if (!code && c->at.rank_on[h])
            code = copy_ops(c, c->at.rank_on[h] - 1);
        if (!code)
            code = orr_goal_end_rank(c->out, c->err);
    }
    return code;
}

/* The combined schedule records the job of each host. */
static orr_code note_jobs(combiner *c)
{
    orr_goal *g = c->out;
    g->job_first = orr_alloc(c->at.job_count + 1, sizeof *g->job_first);
    g->job_hosts = orr_alloc(c->at.ranks, sizeof *g->job_hosts);
    if (!g->job_first || !g->job_hosts)
        return orr_no_memory(c->err);
    memcpy(g->job_first, c->at.first, (c->at.job_count + 1) * sizeof *g->job_first);
    memcpy(g->job_hosts, c->at.host_of, c->at.ranks * sizeof *g->job_hosts);
    g->job_count = c->at.job_count;
    return ORR_OK;
}

orr_code orr_goal_combine(const orr_goal *const *jobs,
                          size_t job_count,
                          const orr_goal_machine *machine,
                          uint32_t *host_of,
                          orr_goal **out,
                          orr_error *err)
{
    combiner c = {.jobs = jobs, .err = err};
    orr_arena *a = orr_arena_create();
    uint32_t *counts = a ? orr_arena_new(a, job_count + 1, uint32_t) : NULL;
    *out = NULL;
    orr_code code = counts ? ORR_OK : orr_no_memory(err);
    for (size_t j = 0; j < job_count && !code; j++)
        counts[j] = jobs[j]->rank_count;
    if (!code)
        code = orr__place_jobs(counts, job_count, machine, a, &c.at, err);
    if (!code)
        code = copy_all(&c);
    if (!code)
        code = note_jobs(&c);
    if (!code && host_of)
        memcpy(host_of, c.at.host_of, c.at.ranks * sizeof *host_of);
    orr_arena_destroy(a);
    if (code)
        orr_goal_free(c.out);
    else
        *out = c.out;
    return code;
}
