/* SPDX-License-Identifier: Apache-2.0 */
/* goal_combine.c - several schedules on one machine: each rank of each job gets a host of its own,
 * and peers become the hosts they are on.  Jobs never share a host, so their messages cannot meet.
 * Cost: a copy of the schedules, and four bytes a rank. */
#include <orrery/lab/goal.h>

#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/rng.h"
#include "base/short_forms.h"
#include "goal_impl.h"

typedef struct combiner {
    const orr_goal *const *jobs;
    size_t job_count;
    uint32_t ranks, hosts;
    uint32_t *host_of; /* by rank, job after job */
    uint32_t *rank_on; /* by host: 1 + the rank */
    uint32_t *job_of;  /* by rank */
    uint32_t *first;   /* by job: its first rank */
    orr_goal *out;
    orr_error *err;
} combiner;

/* ---- who goes where */

static void place_packed(combiner *c)
{
    for (uint32_t r = 0; r < c->ranks; r++)
        c->host_of[r] = r;
}

static void place_spread(combiner *c)
{
    uint32_t host = 0;
    for (uint32_t i = 0; host < c->ranks; i++) {
        for (size_t j = 0; j < c->job_count; j++) {
            if (i < c->jobs[j]->rank_count)
                c->host_of[c->first[j] + i] = host++;
        }
    }
}

/* The first ranks of a shuffled list of all hosts. */
static orr_code place_random(combiner *c, uint64_t seed)
{
    uint32_t *hosts = orr_alloc(c->hosts, sizeof *hosts);
    if (!hosts)
        return orr_no_memory(c->err);
    orr_rng rng;
    orr_rng_init(&rng, seed, 0);
    for (uint32_t i = 0; i < c->hosts; i++)
        hosts[i] = i;
    for (uint32_t i = 0; i < c->ranks; i++) {
        const uint32_t k = i + (uint32_t)orr_rng_below(&rng, c->hosts - i);
        const uint32_t host = hosts[k];
        hosts[k] = hosts[i];
        c->host_of[i] = host;
    }
    orr_free(hosts);
    return ORR_OK;
}

static orr_code read_job(combiner *c, orr_json_value list, size_t job)
{
    orr_json_value v;
    orr_json_iter it = orr_json_iterate(list);
    uint32_t i = 0;
    for (; orr_json_next_value(&it, &v); i++) {
        int64_t host;
        const orr_code code = orr_json_get_i64(v, &host, c->err);
        if (code)
            return code;
        if (i < c->jobs[job]->rank_count)
            c->host_of[c->first[job] + i] =
                host >= 0 && host < UINT32_MAX ? (uint32_t)host : UINT32_MAX;
    }
    if (i == c->jobs[job]->rank_count)
        return ORR_OK;
    return orr_fail(c->err, ORR_EINPUT, ORR_AT(orr_json_where(list)),
                    "%u hosts for job %zu, which has %u ranks", i, job + 1,
                    c->jobs[job]->rank_count);
}

static orr_code read_jobs(combiner *c, orr_json_value root, const char *path)
{
    orr_json_value v;
    orr_code code = ORR_OK;
    size_t job = 0;
    const orr_where top = orr_where_line(path, 1, 1);
    if (orr_json_type_of(root) != ORR_JSON_ARRAY)
        return orr_fail(c->err, ORR_EINPUT, &top,
                        "expected an array with an array of hosts for each job");
    orr_json_iter it = orr_json_iterate(root);
    for (; !code && orr_json_next_value(&it, &v); job++) {
        if (orr_json_type_of(v) != ORR_JSON_ARRAY || job >= c->job_count)
            return orr_fail(c->err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                            "expected an array of hosts for each of %zu jobs", c->job_count);
        code = read_job(c, v, job);
    }
    if (code || job == c->job_count)
        return code;
    return orr_fail(c->err, ORR_EINPUT, &top, "hosts for %zu of %zu jobs", job, c->job_count);
}

static orr_code place_by_file(combiner *c, const char *path)
{
    orr_input *in;
    orr_json *j = NULL;
    orr_json_value root;
    if (!path)
        return orr_fail(c->err, ORR_EUSAGE, NULL, "a placement by file needs the file");
    orr_code code = orr_input_open(path, &in, c->err);
    if (code)
        return code;
    code = orr_json_open(orr_input_bytes(in), path, &j, c->err);
    if (!code)
        code = orr_json_only(j, &root, c->err);
    if (!code)
        code = read_jobs(c, root, path);
    orr_json_close(j);
    orr_input_close(in);
    return code;
}

static orr_code place(combiner *c, const orr_goal_machine *m)
{
    switch (m->placement) {
    case ORR_GOAL_SPREAD:
        place_spread(c);
        return ORR_OK;
    case ORR_GOAL_RANDOM:
        return place_random(c, m->seed);
    case ORR_GOAL_FROM_FILE:
        return place_by_file(c, m->file);
    default:
        place_packed(c);
        return ORR_OK;
    }
}

static orr_code check_places(combiner *c)
{
    for (uint32_t r = 0; r < c->ranks; r++) {
        const uint32_t host = c->host_of[r];
        if (host >= c->hosts)
            return orr_fail(c->err, ORR_EINPUT, NULL, "job %u, rank %u: the machine has no host %u",
                            c->job_of[r] + 1, r - c->first[c->job_of[r]], host);
        if (c->rank_on[host])
            return orr_fail(c->err, ORR_EINPUT, NULL,
                            "host %u has two ranks: of job %u and of job %u", host,
                            c->job_of[c->rank_on[host] - 1] + 1, c->job_of[r] + 1);
        c->rank_on[host] = r + 1;
    }
    return ORR_OK;
}

/* ---- the schedule of the machine */

static orr_code copy_ops(combiner *c, uint32_t rank)
{
    const uint32_t job = c->job_of[rank], own = rank - c->first[job];
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
            n.peer = c->host_of[c->first[job] + n.peer];
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
    orr_code code = orr_goal_create(c->hosts, &c->out, c->err);
    for (uint32_t h = 0; h < c->hosts && !code; h++) {
        code = orr_goal_begin_rank(c->out, c->err);
        if (!code && c->rank_on[h])
            code = copy_ops(c, c->rank_on[h] - 1);
        if (!code)
            code = orr_goal_end_rank(c->out, c->err);
    }
    return code;
}

/* The machine's schedule remembers whose its hosts are. */
static orr_code note_jobs(combiner *c)
{
    orr_goal *g = c->out;
    g->job_first = orr_alloc(c->job_count + 1, sizeof *g->job_first);
    g->job_hosts = orr_alloc(c->ranks, sizeof *g->job_hosts);
    if (!g->job_first || !g->job_hosts)
        return orr_no_memory(c->err);
    memcpy(g->job_first, c->first, c->job_count * sizeof *g->job_first);
    g->job_first[c->job_count] = c->ranks;
    memcpy(g->job_hosts, c->host_of, c->ranks * sizeof *g->job_hosts);
    g->job_count = c->job_count;
    return ORR_OK;
}

static orr_code count_ranks(combiner *c, const orr_goal_machine *m, orr_arena *a)
{
    uint64_t ranks = 0;
    for (size_t j = 0; j < c->job_count; j++)
        ranks += c->jobs[j]->rank_count;
    if (ranks == 0 || ranks >= UINT32_MAX)
        return orr_fail(c->err, ORR_EUSAGE, NULL, "%zu jobs with no or too many ranks",
                        c->job_count);
    c->ranks = (uint32_t)ranks;
    c->hosts = m->hosts ? m->hosts : c->ranks;
    if (c->hosts < c->ranks)
        return orr_fail(c->err, ORR_EINPUT, NULL, "%u ranks for %u hosts", c->ranks, c->hosts);
    c->host_of = orr_arena_new(a, c->ranks, uint32_t);
    c->job_of = orr_arena_new(a, c->ranks, uint32_t);
    c->rank_on = orr_arena_new(a, c->hosts, uint32_t);
    c->first = orr_arena_new(a, c->job_count, uint32_t);
    if (!c->host_of || !c->job_of || !c->rank_on || !c->first)
        return orr_no_memory(c->err);
    uint32_t at = 0;
    for (uint32_t j = 0; j < c->job_count; j++) {
        c->first[j] = at;
        for (uint32_t i = 0; i < c->jobs[j]->rank_count; i++)
            c->job_of[at++] = j;
    }
    return ORR_OK;
}

orr_code orr_goal_combine(const orr_goal *const *jobs,
                          size_t job_count,
                          const orr_goal_machine *machine,
                          uint32_t *host_of,
                          orr_goal **out,
                          orr_error *err)
{
    combiner c = {.jobs = jobs, .job_count = job_count, .err = err};
    orr_arena *a = orr_arena_create();
    *out = NULL;
    if (!a)
        return orr_no_memory(err);
    orr_code code = count_ranks(&c, machine, a);
    if (!code)
        code = place(&c, machine);
    if (!code)
        code = check_places(&c);
    if (!code)
        code = copy_all(&c);
    if (!code)
        code = note_jobs(&c);
    if (!code && host_of)
        memcpy(host_of, c.host_of, c.ranks * sizeof *host_of);
    orr_arena_destroy(a);
    if (code)
        orr_goal_free(c.out);
    else
        *out = c.out;
    return code;
}
