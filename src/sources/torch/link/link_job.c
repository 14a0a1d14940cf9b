/* SPDX-License-Identifier: Apache-2.0 */
/* link_job.c - all ranks of a job: files are found and paired by what is in them, ranks linked side by side, clocks put
 * in line, traces made, groups numbered once for all.
 *
 *     files -> pairs -> links -> clocks -> traces -> groups -> set
 *               (by pid)  (threads)        (threads)
 *
 * A device trace says which rank it is; where none does, the order of names decides. */
#include "link_job.h"

#include "base/threads/pool.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- pairs ---- */

static size_t common_start(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Processes on different machines can have the same number: then the more similar name decides. */
static link_file *find_host(orr_link_job *job,
                                  const link_file *device,
                                  bool is_only_pair)
{
    link_file *best = NULL;
    for (size_t i = 0; i < job->file_count; i++) {
        link_file *f = &job->files[i];
        const bool is_known = f->pid != KIN_NO_NUMBER && device->pid != KIN_NO_NUMBER;
        if (f->kind != LINK_FILE_HOST || f->is_taken ||
            (is_known && f->pid != device->pid && !is_only_pair))
            continue;
        if (!best || common_start(f->path, device->path) > common_start(best->path, device->path))
            best = f;
    }
    return best;
}

static size_t count_kind(const orr_link_job *job, link_file_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < job->file_count; i++)
        n += job->files[i].kind == kind;
    return n;
}

static void add_pair(orr_link_job *job, link_file *host, link_file *device)
{
    orr_link_rank *about = &job->ranks[job->rank_count++].about;
    about->host = host ? host->path : NULL;
    about->device = device ? device->path : NULL;
    if (host)
        host->is_taken = true;
    if (device)
        device->is_taken = true;
}

static orr_code pair_files(orr_link_job *job, orr_error *err)
{
    const size_t hosts = count_kind(job, LINK_FILE_HOST);
    const size_t devices = count_kind(job, LINK_FILE_DEVICE);
    job->ranks = orr_arena_new(job->arena, job->file_count + 1, link_job_rank);
    if (!job->ranks)
        return orr_no_memory(err);
    for (size_t i = 0; i < job->file_count; i++) {
        link_file *f = &job->files[i];
        if (f->kind == LINK_FILE_DEVICE)
            add_pair(job, find_host(job, f, hosts == 1 && devices == 1), f);
    }
    for (size_t i = 0; i < job->file_count; i++) {
        link_file *f = &job->files[i];
        if (f->kind == LINK_FILE_HOST && !f->is_taken)
            add_pair(job, f, NULL);
    }
    return ORR_OK;
}

/* ---- side by side ---- */

static orr_code link_one(void *context, size_t i, orr_error *err)
{
    orr_link_job *job = context;
    link_job_rank *r = &job->ranks[i];
    const orr_code code = orr_link_open(r->about.host, r->about.device, &job->opt, &r->link, err);
    if (!code)
        r->about.counts = *orr_link_counts_of(r->link);
    return code;
}

static int64_t earliest(const orr_link_job *job)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const orr_link *l = job->ranks[i].link;
        if (l->device.count && l->device.base_ns + job->ranks[i].about.clock_ns < first)
            first = l->device.base_ns + job->ranks[i].about.clock_ns;
    }
    return first;
}

typedef struct conversion {
    orr_link_job *job;
    int64_t first; /* in the clock of all */
} conversion;

static orr_code convert_one(void *context, size_t i, orr_error *err)
{
    const conversion *c = context;
    link_job_rank *r = &c->job->ranks[i];
    const orr_pytorch_options opt = {.has_rank = true,
                                     .rank = r->about.rank,
                                     .has_origin = c->first != INT64_MAX && r->link->device.count,
                                     .origin_ns = c->first - r->about.clock_ns};
    const orr_code code = orr_linked_trace(r->link->linked, &opt, &r->trace, &r->about.report, err);
    return code ? orr_because(err, code, "rank %" PRIu32, r->about.rank) : ORR_OK;
}

/* ---- which rank is which ---- */

static int by_rank(const void *a, const void *b)
{
    const link_job_rank *x = a, *y = b;
    return x->about.rank < y->about.rank ? -1 : x->about.rank > y->about.rank;
}

static const char *path_of(const orr_link_rank *r)
{
    return r->device ? r->device : r->host;
}

static orr_code check_ranks(const orr_link_job *job, orr_error *err)
{
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const orr_link_rank *r = &job->ranks[i].about;
        if (i && r->rank == job->ranks[i - 1].about.rank)
            return orr_fail(err, ORR_EINPUT, NULL, "%s and %s are both of rank %" PRIu32,
                            path_of(&job->ranks[i - 1].about), path_of(r), r->rank);
        if (r->rank != i && job->rank_count > 1)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "rank %" PRIu32 " has no traces, but rank %" PRIu32
                            " has (%s): a set has all ranks from 0 on",
                            i, r->rank, path_of(r));
    }
    return ORR_OK;
}

/* A part of a job cannot be simulated: the others would be waited for. */
static orr_code check_world(const orr_link_job *job, orr_error *err)
{
    const int64_t world = job->ranks[0].link->linked->world;
    if (job->rank_count == 1 || world <= (int64_t)job->rank_count)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "the traces of %" PRIu32 " ranks, of a job of %" PRId64
                    ": those of rank %" PRIu32 " and later are missing",
                    job->rank_count, world, job->rank_count);
}

static bool says_rank(const link_job_rank *r)
{
    return r->link->linked->rank >= 0 && r->link->linked->rank < UINT32_MAX;
}

/* Ranks that do not say which one they are get the numbers that are left, in the order of names. */
static orr_code number_ranks(orr_link_job *job, orr_error *err)
{
    uint32_t next = 0;
    bool *is_taken = orr_arena_new(job->arena, (size_t)job->rank_count + 1, bool);
    if (!is_taken)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < job->rank_count; i++) {
        link_job_rank *r = &job->ranks[i];
        r->about.is_guessed = !says_rank(r);
        if (r->about.is_guessed)
            continue;
        r->about.rank = (uint32_t)r->link->linked->rank;
        if (r->about.rank < job->rank_count)
            is_taken[r->about.rank] = true;
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        if (!job->ranks[i].about.is_guessed)
            continue;
        while (is_taken[next])
            next++;
        job->ranks[i].about.rank = next++;
    }
    return ORR_OK;
}

/* A rank with one trace where others have two is most often one whose file was lost. */
static orr_code check_halves(const orr_link_job *job, orr_error *err)
{
    const orr_link_rank *first = &job->ranks[0].about;
    for (uint32_t i = 1; i < job->rank_count && job->opt.is_strict; i++) {
        const orr_link_rank *r = &job->ranks[i].about;
        if (!r->host != !first->host || !r->device != !first->device)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "rank %" PRIu32 " and rank %" PRIu32
                            " do not have the same kinds of traces (with --strict an error)",
                            first->rank, r->rank);
    }
    return ORR_OK;
}

static orr_code find_ranks(orr_link_job *job, orr_error *err)
{
    orr_code code = number_ranks(job, err);
    if (code)
        return code;
    qsort(job->ranks, job->rank_count, sizeof *job->ranks, by_rank);
    if ((code = check_ranks(job, err)) || (code = check_world(job, err)))
        return code;
    return check_halves(job, err);
}

/* ---- all of it ---- */

static orr_code make_job(
    orr_link_job *job, const char *const *paths, size_t count, unsigned threads, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < count && !code; i++)
        code = link_probe_path(job, paths[i], err);
    if (code || (code = pair_files(job, err)) ||
        (code = orr_pool_for(threads, job->rank_count, link_one, job, err)) ||
        (code = find_ranks(job, err)))
        return code;
    return link_job_align(job, err);
}

orr_code orr_link_job_set(orr_link_job *job, const orr_set **out, orr_error *err)
{
    conversion c = {.job = job, .first = earliest(job)};
    orr_code code = ORR_OK;
    if (!job->set) {
        code = orr_pool_for(job->opt.threads, job->rank_count, convert_one, &c, err);
        if (!code)
            code = link_job_make_set(job, err);
    }
    *out = code ? NULL : job->set;
    return code;
}

orr_code orr_link_job_open(const char *const *paths,
                           size_t count,
                           const orr_link_options *opt,
                           orr_link_job **out,
                           orr_error *err)
{
    *out = NULL;
    orr_link_job *job = orr_alloc(1, sizeof *job);
    if (!job)
        return orr_no_memory(err);
    if (opt)
        job->opt = *opt;
    job->opt.rules = NULL;
    job->arena = orr_arena_create();
    const orr_code code =
        job->arena ? make_job(job, paths, count, job->opt.threads, err) : orr_no_memory(err);
    if (code)
        orr_link_job_close(job);
    else
        *out = job;
    return code;
}

void orr_link_job_close(orr_link_job *job)
{
    if (!job)
        return;
    for (uint32_t i = 0; i < job->rank_count; i++) {
        orr_link_close(job->ranks[i].link);
        orr_trace_destroy(job->ranks[i].trace);
    }
    orr_set_close(job->set);
    orr_free(job->files);
    orr_arena_destroy(job->arena);
    orr_free(job);
}

uint32_t orr_link_job_rank_count(const orr_link_job *job)
{
    return job->rank_count;
}

const orr_link_rank *orr_link_job_rank(const orr_link_job *job, uint32_t i)
{
    return &job->ranks[i].about;
}

const orr_link *orr_link_job_link(const orr_link_job *job, uint32_t i)
{
    return job->ranks[i].link;
}

uint64_t orr_link_job_inferred(const orr_link_job *job)
{
    return job->inferred;
}
