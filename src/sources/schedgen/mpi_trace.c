/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace.c - the files of a trace of MPI calls, one rank after the other, into a schedule
 * (goal.md 4).
 *
 * Files are mapped and read once per copy of the ranks, and a few lines of each once more, to see
 * whether communicator handles mean the same on all ranks.  Memory: the open requests of one
 * rank. */
#include "mpi_trace_impl.h"

#include "base/io/input.h"
#include "base/text/number.h"

#include <orrery/lab/progress.h>

#include <stdio.h>
#include <unistd.h>

enum { PATH = 4096, RANKS_MAX = INT32_MAX, CPU_MAX = 255, TIME_MULT = 1000, FEW = 6, MANY = 30 };

/* ---- names of files ---- */

/* The name of rank 0's file with a gap for the number: "run-" and ".dat" of "run-00.dat". */
typedef struct file_names {
    char path[PATH];
    size_t before, behind; /* the number goes between */
    bool is_padded;        /* to the number of zeros in rank 0's name */
} file_names;

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool name_of(const file_names *names, uint32_t rank, char out[PATH])
{
    const int width = names->is_padded ? (int)(names->behind - names->before) : 1;
    const int n = rank == 0 ? snprintf(out, PATH, "%s", names->path)
                            : snprintf(out, PATH, "%.*s%0*u%s", (int)names->before, names->path,
                                       width, rank, names->path + names->behind);
    return n > 0 && n < PATH;
}

/* run-000.dat is followed by run-1.dat, as in SchedGen, or by run-001.dat. */
static void find_padding(file_names *names)
{
    char path[PATH];
    if (name_of(names, 1, path) && access(path, F_OK) == 0)
        return;
    names->is_padded = true;
}

static orr_code find_names(const char *path, file_names *out, orr_error *err)
{
    const orr_where at = orr_where_line(path, 0, 0);
    const char *zero = strstr(last_part(path), "-0");
    const int n = snprintf(out->path, sizeof out->path, "%s", path);
    if (n < 0 || (size_t)n >= sizeof out->path)
        return orr_fail(err, ORR_EUSAGE, &at, "the name is too long");
    if (!zero)
        return orr_fail(err, ORR_EUSAGE, &at,
                        "the name of rank 0's trace must have \"-0\" in it, where the rank goes");
    if (strstr(zero + 1, "-0"))
        return orr_fail(err, ORR_EUSAGE, &at,
                        "the name has \"-0\" in it more than once: where does the rank go?");
    out->before = (size_t)(zero + 1 - path);
    out->behind = out->before + strspn(zero + 1, "0");
    out->is_padded = false;
    find_padding(out);
    return ORR_OK;
}

/* Counts files from 0 up to the first gap. */
static orr_code count_files(const file_names *names, uint32_t *out, orr_error *err)
{
    char path[PATH];
    uint32_t n = 0;
    while (n < RANKS_MAX && name_of(names, n, path) && access(path, F_OK) == 0)
        n++;
    *out = n;
    if (n)
        return ORR_OK;
    return orr_fail(err, ORR_EIO, ORR_AT(orr_where_line(names->path, 0, 0)),
                    "cannot open: there is no such file");
}

/* ---- one file ---- */

static orr_str next_line(orr_str all, size_t from)
{
    const char *nl = memchr(all.ptr + from, '\n', all.len - from);
    return (orr_str){all.ptr + from, nl ? (size_t)(nl - all.ptr) - from : all.len - from};
}

orr_code sgen_mpi_rank_read(
    mpi_rank *r, orr_str all, const char *path, uint64_t from, uint64_t *stopped_at, orr_error *err)
{
    const uint64_t most = r->run->opt->max_collectives;
    size_t at = (size_t)from;
    r->line.path = path;
    while (at <= all.len && !sgen_gpen_has_failed(r->run->pen)) {
        const orr_str line = at < all.len ? next_line(all, at) : (orr_str){"", 0};
        r->line.number += r->line.number < UINT32_MAX;
        const orr_code code = sgen_mpi_rank_line(r, line, err);
        at += line.len + 1;
        if (code)
            return code;
        if (most && r->collectives == most) {
            if (sgen_mpi_is_talkative(r->run))
                sgen_mpi_say(r->run, "processed %llu operations - proceeding to next host",
                             (unsigned long long)most);
            break;
        }
    }
    *stopped_at = at < all.len ? at : all.len;
    return ORR_OK;
}

/* Lines before the one where reading starts, so that errors have the right number. */
static uint32_t lines_before(orr_str all, uint64_t from)
{
    uint32_t n = 0;
    for (size_t at = 0; at < from; n++)
        at += next_line(all, at).len + 1;
    return n;
}

/* ---- handles of communicators ---- */

/* The first communicator the trace names; false: none. */
static orr_code first_communicator(
    mpi_line *l, orr_str all, bool *has_one, uint64_t *handle, orr_error *err)
{
    orr_code code = ORR_OK;
    *has_one = false;
    for (size_t at = 0; at < all.len && !*has_one && !code;) {
        const orr_str line = next_line(all, at);
        at += line.len + 1;
        l->number++;
        code = sgen_mpi_line_split(l, line, ORR__MPI_CALLS_OURS, err);
        if (code || !l->call || !l->call->comm.at || l->call->comm.times)
            continue;
        code = sgen_mpi_line_u64(l, l->call->comm, handle, err);
        *has_one = true;
    }
    return code;
}

/* If the first communicators of all ranks have the same handle, handles agree everywhere (MPICH,
 * and most programs with Open MPI); otherwise they are addresses, and only their order is
 * meaningful. */
static orr_code compare_handles(mpi_run *run, const file_names *names, orr_error *err)
{
    mpi_line line = {.ranks = run->hosts};
    uint64_t first = 0;
    bool has_first = false;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < run->hosts && !code && !run->counts_communicators; i++) {
        char path[PATH];
        uint64_t handle = 0;
        bool has_one = false;
        orr_input *in;
        if (!name_of(names, i, path) || (code = orr_input_open(path, &in, err)))
            break;
        const orr_span all = orr_input_bytes(in);
        line.path = path;
        line.number = 0;
        code = first_communicator(&line, (orr_str){(const char *)all.ptr, all.len}, &has_one,
                                  &handle, err);
        orr_input_close(in);
        if (has_one && has_first && handle != first)
            run->counts_communicators = true;
        if (has_one && !has_first)
            first = handle;
        has_first |= has_one;
    }
    orr_free(line.starts);
    return code;
}

/* ---- where to start in each file ---- */

typedef struct starts {
    uint64_t *at;
    double *time;
} starts;

static orr_code read_start(
    const mpi_run *run, starts *s, orr_str all, const char *path, orr_error *err)
{
    size_t at = 0;
    for (uint32_t i = 0; i < run->hosts; i++) {
        const orr_str line = at < all.len ? next_line(all, at) : (orr_str){"", 0};
        const char *blank = line.len ? memchr(line.ptr, ' ', line.len) : NULL;
        const size_t n = blank ? (size_t)(blank - line.ptr) : 0;
        at += line.len + 1;
        if (blank && orr_text_u64((orr_str){line.ptr, n}, &s->at[i]) &&
            orr_text_double((orr_str){blank + 1, line.len - n - 1}, &s->time[i]) &&
            s->time[i] >= 0 && s->time[i] < 1e18)
            continue;
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(path, i + 1, 1)),
                        "expected a byte of rank %u's trace, a blank and a time in microseconds",
                        i);
    }
    return ORR_OK;
}

/* A missing file means from the beginning; it will be written. */
static orr_code read_starts(const mpi_run *run, starts *s, orr_error *err)
{
    const char *path = run->opt->start_path;
    orr_input *in;
    s->at = orr_alloc(run->hosts, sizeof *s->at);
    s->time = orr_alloc(run->hosts, sizeof *s->time);
    if (!s->at || !s->time)
        return orr_no_memory(err);
    if (!path)
        return ORR_OK;
    if (access(path, F_OK) != 0) {
        sgen_mpi_say(run, "couldn't open file with start-times - starting with zero");
        return ORR_OK;
    }
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    const orr_span all = orr_input_bytes(in);
    code = read_start(run, s, (orr_str){(const char *)all.ptr, all.len}, path, err);
    orr_input_close(in);
    return code;
}

static orr_code write_starts(const mpi_run *run, const starts *s, orr_error *err)
{
    orr_output *out;
    orr_buf text = {0};
    if (!run->opt->start_path)
        return ORR_OK;
    const orr_code code = orr_output_open(run->opt->start_path, &out, err);
    if (code)
        return code;
    for (uint32_t i = 0; i < run->hosts; i++)
        orr_buf_print(&text, "%llu %.*g\n", (unsigned long long)s->at[i], MANY, s->time[i]);
    orr_output_drain(out, &text);
    orr_buf_fini(&text);
    return orr_output_commit(&out, err);
}

/* ---- all ranks ---- */

/* SchedGen looks at the first line, a comment, before it seeks to the start. */
static void say_first_line(const mpi_rank *r, orr_str all)
{
    const orr_str line = all.len ? next_line(all, 0) : all;
    if (line.len && line.ptr[0] == '#')
        sgen_mpi_say(r->run, "NOT MATCHED: [%.*s] (good if empty)",
                     (int)(line.len < MANY * FEW ? line.len : MANY * FEW), line.ptr);
}

/* Starts at the given offset and records where it stopped, which only matters if it had to stop. */
static orr_code read_from(
    mpi_rank *r, orr_str all, const char *path, const starts *from, starts *to, orr_error *err)
{
    const uint64_t at = from->at[r->host];
    uint64_t stopped_at;
    if (at > all.len)
        return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_byte(path, at)),
                        "the trace to go on with has only %zu bytes", all.len);
    if (r->run->opt->start_path) {
        r->start = from->time[r->host];
        r->has_begun = at > 0;
        if (sgen_mpi_is_talkative(r->run)) {
            r->run->digits = MANY;
            sgen_mpi_say(r->run, "rank %u starting at line 1 with time %.*g", r->host, MANY,
                         r->start);
            say_first_line(r, all);
        }
    }
    r->line.number = lines_before(all, at);
    const orr_code code = sgen_mpi_rank_read(r, all, path, at, &stopped_at, err);
    const uint64_t most = r->run->opt->max_collectives;
    if (!code && most && r->collectives == most) {
        to->at[r->host] = stopped_at;
        to->time[r->host] = r->start;
    }
    return code;
}

static orr_code one_rank(mpi_run *run,
                         uint32_t host,
                         uint32_t copy,
                         const char *path,
                         const starts *from,
                         starts *to,
                         orr_error *err)
{
    mpi_rank r;
    orr_input *in = NULL;
    orr_code code = sgen_mpi_rank_init(&r, run, err);
    r.host = host;
    r.copy = copy;
    if (!code)
        code = orr_input_open(path, &in, err);
    if (!code) {
        const orr_span all = orr_input_bytes(in);
        if (sgen_mpi_is_talkative(run)) {
            sgen_mpi_say(run, "# parsing: %s", path);
        }
        sgen_gpen_begin(run->pen, sgen_mpi_number(&r));
        if (sgen_mpi_is_talkative(run))
            sgen_mpi_say(run, "initialized hash-searcher to 14");
        code = read_from(&r, (orr_str){(const char *)all.ptr, all.len}, path, from, to, err);
        sgen_gpen_end(run->pen);
    }
    orr_input_close(in);
    sgen_mpi_rank_fini(&r);
    return code;
}

static orr_code all_ranks(
    mpi_run *run, const file_names *names, const starts *from, starts *to, orr_error *err)
{
    char path[PATH];
    orr_progress progress;
    orr_code code = ORR_OK;
    orr_progress_start(&progress, "trace", "ranks", (uint64_t)run->hosts * run->copies,
                       run->opt->is_quiet);
    sgen_gpen_head(run->pen, (uint64_t)run->hosts * run->copies);
    for (uint32_t copy = 0; copy < run->copies && !code; copy++) {
        sgen_mpi_say(run, "extrapolation round %u", copy);
        for (uint32_t i = 0; i < run->hosts && !code && !sgen_gpen_has_failed(run->pen); i++) {
            if (name_of(names, i, path))
                code = one_rank(run, i, copy, path, from, to, err);
            orr_progress_add(&progress, 1);
        }
    }
    orr_progress_end(&progress);
    return code;
}

static void say_beginning(const mpi_run *run, const char *path)
{
    sgen_mpi_say(run, "using file mask: %s", path);
    sgen_mpi_say(run, "found %u hosts, extrapolating to  %u", run->hosts, run->hosts * run->copies);
    sgen_mpi_say(run, "timebase: %u; using CPU %u for computation", run->time_mult, run->opt->cpu);
    if (run->opt->early_us)
        sgen_mpi_say(run, "nbcify propost: %u", run->opt->early_us);
}

static orr_code check_options(const orr_mpi_trace_options *opt, uint32_t hosts, orr_error *err)
{
    const uint64_t copies = opt->copies ? opt->copies : 1;
    if (opt->cpu > CPU_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "cpu %u: GOAL allows 0 to %d", opt->cpu, CPU_MAX);
    if (hosts * copies > RANKS_MAX)
        return orr_fail(err, ORR_EUSAGE, NULL, "%llu times %u ranks are more than %d",
                        (unsigned long long)copies, hosts, RANKS_MAX);
    return ORR_OK;
}

static orr_code write_schedule(mpi_run *run, const file_names *names, orr_error *err)
{
    starts from = {0}, to = {0};
    orr_code code = read_starts(run, &from, err);
    if (!code) {
        to.at = orr_alloc(run->hosts, sizeof *to.at);
        to.time = orr_alloc(run->hosts, sizeof *to.time);
        code = to.at && to.time ? ORR_OK : orr_no_memory(err);
    }
    if (!code) {
        memcpy(to.at, from.at, run->hosts * sizeof *to.at);
        memcpy(to.time, from.time, run->hosts * sizeof *to.time);
        code = all_ranks(run, names, &from, &to, err);
    }
    if (code)
        sgen_gpen_discard(run->pen);
    else
        code = sgen_gpen_finish(run->pen, err);
    if (!code)
        code = write_starts(run, &to, err);
    orr_free(from.at);
    orr_free(from.time);
    orr_free(to.at);
    orr_free(to.time);
    return code;
}

static void prepare_pen(goal_pen *pen, const orr_mpi_trace_options *opt)
{
    pen->cpu = opt->cpu;
    pen->has_overlap = opt->has_overlap;
    pen->overlap_ns = opt->overlap_ns;
    pen->poll_ns = opt->poll_ns;
}

orr_code orr_mpi_trace_write(const char *rank0_path,
                             const orr_mpi_trace_options *opt,
                             const char *path,
                             orr_schedgen_totals *totals,
                             orr_mpi_trace_remarks *remarks,
                             orr_error *err)
{
    orr_error own;
    orr_mpi_trace_remarks odd = {0};
    file_names names;
    goal_pen pen;
    mpi_run run = {.opt = opt,
                   .rules = sgen_schedgen_rules(opt->rules),
                   .counts_communicators = sgen_schedgen_rules(opt->rules)->counts_communicators,
                   .pen = &pen,
                   .remarks = &odd,
                   .copies = opt->copies ? opt->copies : 1,
                   .time_mult = opt->time_mult ? opt->time_mult : TIME_MULT,
                   .digits = FEW};
    orr_code code;
    if ((code = find_names(rank0_path, &names, err)) ||
        (code = count_files(&names, &run.hosts, err)) ||
        (code = check_options(opt, run.hosts, err)))
        return code;
    if (!run.rules->ignores_handles && (code = compare_handles(&run, &names, err)))
        return code;
    say_beginning(&run, rank0_path);
    if ((code = sgen_gpen_init(&pen, path, opt->is_binary, err ? err : &own)))
        return code;
    prepare_pen(&pen, opt);
    pen.totals_out = totals;
    code = write_schedule(&run, &names, err);
    odd.ranks = run.hosts;
    if (remarks)
        *remarks = odd;
    if (!code)
        sgen_mpi_say(&run, "found %u trace files", run.hosts);
    return code;
}
