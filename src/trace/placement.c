/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - several jobs on one machine: each rank of each job gets its own host. */
#include "placement.h"

#include "base/formats/json.h"
#include "base/io/input.h"
#include "base/rng.h"
#include "base/short_forms.h"

typedef struct placer {
    const uint32_t *counts; /* ranks, by job */
    orr__placement *to;
    orr_error *err;
} placer;

static void place_packed(placer *p)
{
    for (uint32_t r = 0; r < p->to->ranks; r++)
        p->to->host_of[r] = r;
}

static void place_spread(placer *p)
{
    uint32_t host = 0;
    for (uint32_t i = 0; host < p->to->ranks; i++) {
        for (size_t j = 0; j < p->to->job_count; j++) {
            if (i < p->counts[j])
                p->to->host_of[p->to->first[j] + i] = host++;
        }
    }
}

/* The first ranks of a shuffled list of all hosts. */
static orr_code place_random(placer *p, uint64_t seed)
{
    uint32_t *hosts = orr_alloc(p->to->hosts, sizeof *hosts);
    if (!hosts)
        return orr_no_memory(p->err);
    orr_rng rng;
    orr_rng_init(&rng, seed, 0);
    for (uint32_t i = 0; i < p->to->hosts; i++)
        hosts[i] = i;
    for (uint32_t i = 0; i < p->to->ranks; i++) {
        const uint32_t k = i + (uint32_t)orr_rng_below(&rng, p->to->hosts - i);
        const uint32_t host = hosts[k];
        hosts[k] = hosts[i];
        p->to->host_of[i] = host;
    }
    orr_free(hosts);
    return ORR_OK;
}

static orr_code read_job(placer *p, orr_json_value list, size_t job)
{
    orr_json_value v;
    orr_json_iter it = orr_json_iterate(list);
    uint32_t i = 0;
    for (; orr_json_next_value(&it, &v); i++) {
        int64_t host;
        const orr_code code = orr_json_get_i64(v, &host, p->err);
        if (code)
            return code;
        if (i < p->counts[job])
            p->to->host_of[p->to->first[job] + i] =
                host >= 0 && host < UINT32_MAX ? (uint32_t)host : UINT32_MAX;
    }
    if (i == p->counts[job])
        return ORR_OK;
    return orr_fail(p->err, ORR_EINPUT, ORR_AT(orr_json_where(list)),
                    "%u hosts for job %zu, which has %u ranks", i, job + 1, p->counts[job]);
}

static orr_code read_jobs(placer *p, orr_json_value root, const char *path)
{
    orr_json_value v;
    orr_code code = ORR_OK;
    size_t job = 0;
    const orr_where top = orr_where_line(path, 1, 1);
    if (orr_json_type_of(root) != ORR_JSON_ARRAY)
        return orr_fail(p->err, ORR_EINPUT, &top,
                        "expected an array with an array of hosts for each job");
    orr_json_iter it = orr_json_iterate(root);
    for (; !code && orr_json_next_value(&it, &v); job++) {
        if (orr_json_type_of(v) != ORR_JSON_ARRAY || job >= p->to->job_count)
            return orr_fail(p->err, ORR_EINPUT, ORR_AT(orr_json_where(v)),
                            "expected an array of hosts for each of %zu jobs", p->to->job_count);
        code = read_job(p, v, job);
    }
    if (code || job == p->to->job_count)
        return code;
    return orr_fail(p->err, ORR_EINPUT, &top, "hosts for %zu of %zu jobs", job, p->to->job_count);
}

static orr_code place_by_file(placer *p, const char *path)
{
    orr_input *in;
    orr_json *j = NULL;
    orr_json_value root;
    if (!path)
        return orr_fail(p->err, ORR_EUSAGE, NULL, "a placement by file needs the file");
    orr_code code = orr_input_open(path, &in, p->err);
    if (code)
        return code;
    code = orr_json_open(orr_input_bytes(in), path, &j, p->err);
    if (!code)
        code = orr_json_only(j, &root, p->err);
    if (!code)
        code = read_jobs(p, root, path);
    orr_json_close(j);
    orr_input_close(in);
    return code;
}

static orr_code place(placer *p, const orr_goal_machine *m)
{
    switch (m->placement) {
    case ORR_GOAL_SPREAD:
        place_spread(p);
        return ORR_OK;
    case ORR_GOAL_RANDOM:
        return place_random(p, m->seed);
    case ORR_GOAL_FROM_FILE:
        return place_by_file(p, m->file);
    default:
        place_packed(p);
        return ORR_OK;
    }
}

static orr_code check_places(placer *p)
{
    for (uint32_t r = 0; r < p->to->ranks; r++) {
        const uint32_t host = p->to->host_of[r];
        if (host >= p->to->hosts)
            return orr_fail(p->err, ORR_EINPUT, NULL, "job %u, rank %u: the machine has no host %u",
                            p->to->job_of[r] + 1, r - p->to->first[p->to->job_of[r]], host);
        if (p->to->rank_on[host])
            return orr_fail(p->err, ORR_EINPUT, NULL,
                            "host %u has two ranks: of job %u and of job %u", host,
                            p->to->job_of[p->to->rank_on[host] - 1] + 1, p->to->job_of[r] + 1);
        p->to->rank_on[host] = r + 1;
    }
    return ORR_OK;
}

static orr_code count_ranks(placer *p, const orr_goal_machine *m, orr_arena *a)
{
    orr__placement *t = p->to;
    uint64_t ranks = 0;
    for (size_t j = 0; j < t->job_count; j++)
        ranks += p->counts[j];
    if (ranks == 0 || ranks >= UINT32_MAX)
        return orr_fail(p->err, ORR_EUSAGE, NULL, "%zu jobs with no or too many ranks",
                        t->job_count);
    t->ranks = (uint32_t)ranks;
    t->hosts = m->hosts ? m->hosts : t->ranks;
    if (t->hosts < t->ranks)
        return orr_fail(p->err, ORR_EINPUT, NULL, "%u ranks for %u hosts", t->ranks, t->hosts);
    t->host_of = orr_arena_new(a, t->ranks, uint32_t);
    t->job_of = orr_arena_new(a, t->ranks, uint32_t);
    t->rank_on = orr_arena_new(a, t->hosts, uint32_t);
    t->first = orr_arena_new(a, t->job_count + 1, uint32_t);
    if (!t->host_of || !t->job_of || !t->rank_on || !t->first)
        return orr_no_memory(p->err);
    uint32_t at = 0;
    for (uint32_t j = 0; j < t->job_count; j++) {
        t->first[j] = at;
        for (uint32_t i = 0; i < p->counts[j]; i++)
            t->job_of[at++] = j;
    }
    t->first[t->job_count] = at;
    return ORR_OK;
}

orr_code orr__place_jobs(const uint32_t *counts,
                         size_t job_count,
                         const orr_goal_machine *machine,
                         orr_arena *a,
                         orr__placement *out,
                         orr_error *err)
{
    *out = (orr__placement){.job_count = job_count};
    placer p = {counts, out, err};
    orr_code code = count_ranks(&p, machine, a);
    if (!code)
        code = place(&p, machine);
    return code ? code : check_places(&p);
}
