/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_report.c - results of a schedule under LogGOPS as text, JSON and CSV. */
#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/text.h"
#include "explain/facts.h"
#include "trace/input_files.h"
#include "views_impl.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

enum { ALL_RANKS = 32, PATH_ROOM = 4096 };

/* ---- text ---- */

static void put_time(orr_buf *b, uint64_t ns)
{
    if (ns < 10000)
        orr_buf_print(b, "%llu ns", (ull)ns);
    else if (ns < 10000000)
        orr_buf_print(b, "%.3f us", (double)ns / 1e3);
    else if (ns < 10000000000u)
        orr_buf_print(b, "%.3f ms", (double)ns / 1e6);
    else
        orr_buf_print(b, "%.3f s", (double)ns / 1e9);
}

static void print_jobs(const orr__schedule_facts *f, orr_buf *b)
{
    orr_buf_text(b, "\n   job     ranks      finished (ns)  first host\n");
    for (size_t j = 0; j < f->job_count; j++) {
        const orr__job_facts *job = &f->jobs[j];
        orr_buf_print(b, "%6zu  %8u  %17llu", j + 1, job->count, (ull)job->finished);
        if (job->count)
            orr_buf_print(b, "  %10u", job->hosts[0]);
        orr_buf_text(b, "\n");
    }
}

static bool is_at_end(const orr__schedule_facts *f)
{
    return strcmp(f->status, "finished") == 0;
}

static void print_end(const orr__schedule_facts *f, orr_buf *b)
{
    orr_buf_print(b, "%s after ", f->status);
    put_time(b, f->last);
    orr_buf_print(b, " (%llu ns, rank %u); the %s after ", (ull)f->last, f->last_rank,
                  is_at_end(f) ? "first rank" : "rank that got least far");
    put_time(b, f->first);
    orr_buf_print(b, " (rank %u)\n", f->first_rank);
}

orr_code lgs_write_text(const lgs_sim *s, const char *path, const char *source, orr_error *err)
{
    orr__schedule_facts f;
    orr_buf b = {0};
    const orr_code code = orr__schedule_facts_take(s, &f, err);
    if (code)
        return code;
    const lgs_options *o = &f.options;
    orr_buf_print(&b, "%s: %u rank%s, %llu send%s, %llu receive%s, %llu calculation%s\n", source,
                  f.ranks, orr__plural(f.ranks), (ull)f.totals.sends, orr__plural(f.totals.sends),
                  (ull)f.totals.recvs, orr__plural(f.totals.recvs), (ull)f.totals.calcs,
                  orr__plural(f.totals.calcs));
    orr_buf_print(
        &b, "LogGOPS: L %llu ns, o %llu ns, g %llu ns, G %g ns/byte, O %llu ns/byte, S %u bytes\n",
        (ull)o->L, (ull)o->o, (ull)o->g, o->G, (ull)o->O, o->S);
    if (!f.is_own)
        orr_buf_print(&b, "by the rules of %s\n", f.rules);
    print_end(&f, &b);
    orr_buf_print(&b, "%llu event%s, %llu message%s, %llu bytes", (ull)f.events,
                  orr__plural(f.events), (ull)f.messages, orr__plural(f.messages),
                  (ull)f.totals.bytes_sent);
    if (f.simulated < f.ranks)
        orr_buf_print(&b, "; %u of %u ranks simulated", f.simulated, f.ranks);
    orr_buf_text(&b, "\n");
    if (f.job_count)
        print_jobs(&f, &b);
    if (f.ranks <= ALL_RANKS)
        orr_buf_print(&b, "\n  %s      %s (ns)\n", f.job_count ? "host" : "rank",
                      is_at_end(&f) ? "finished" : " came to");
    for (uint32_t r = 0; r < f.ranks && f.ranks <= ALL_RANKS; r++)
        orr_buf_print(&b, "%6u  %17llu\n", r, (ull)f.finished[r]);
    orr__schedule_facts_fini(&f);
    const orr_code saved = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return saved;
}

/* ---- JSON ---- */

static void put_parameters(const orr__schedule_facts *f, orr_json_writer *w)
{
    const lgs_options *o = &f->options;
    orr_json_put_object(w, "parameters");
    orr_json_put_fields(w, ORR_T("rules", f->rules), ORR_U("L_ns", o->L), ORR_U("o_ns", o->o),
                        ORR_U("g_ns", o->g), ORR_D("G_ns_per_byte", o->G),
                        ORR_U("O_ns_per_byte", o->O), ORR_U("S_bytes", o->S));
    if (o->noise) {
        orr_json_put_fields(w, ORR_T("noise", o->noise), ORR_U("noise_seed", o->noise_seed));
    }
    orr_json_end_object(w);
}

/* A single file is reopened by its path, which must end with a zero; paths of a list of jobs do
 * not. */
static void put_input(const lgs_input *in, orr_json_writer *w)
{
    char path[PATH_ROOM];
    orr__input_file f = {.role = in->role, .path = path};
    const bool fits = in->path.len < sizeof path;
    snprintf(path, sizeof path, "%.*s", (int)(fits ? in->path.len : sizeof path - 1), in->path.ptr);
    if (fits && strcmp(in->role, "traces") == 0)
        w->to->failed |= !orr__input_traces_hash(&f);
    else if (fits)
        w->to->failed |= !orr__input_file_hash(&f);
    orr__put_input(w, &f);
}

static void put_provenance(const lgs_options *o, const char *program, orr_json_writer *w)
{
    orr_json_put_object(w, "provenance");
    orr_json_put_text(w, "program", program);
    orr_json_put_array(w, "inputs");
    for (size_t i = 0; i < o->input_count; i++)
        put_input(&o->inputs[i], w);
    if (o->noise)
        put_input(&(lgs_input){"noise", orr_str_of(o->noise)}, w);
    if (o->simple_links)
        put_input(&(lgs_input){"links", orr_str_of(o->simple_links)}, w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_times(orr_json_writer *w, const char *key, const uint64_t *ns, uint32_t count)
{
    orr_json_put_array(w, key);
    for (uint32_t r = 0; r < count; r++)
        orr_json_u64(w, ns[r]);
    orr_json_end_array(w);
}

static void put_jobs(const orr__schedule_facts *f, orr_json_writer *w)
{
    orr_json_put_array(w, "jobs");
    for (size_t j = 0; j < f->job_count; j++) {
        const orr__job_facts *job = &f->jobs[j];
        orr_json_begin_object(w);
        orr_json_put_u64(w, "finished_ns", job->finished);
        orr_json_put_array(w, "hosts");
        for (uint32_t i = 0; i < job->count; i++)
            orr_json_u64(w, job->hosts[i]);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

/* Lines may start with a space that is not part of them. */
static void put_extra(const orr__schedule_facts *f, orr_json_writer *w)
{
    const char *p = (const char *)f->extra.ptr, *const end = p + f->extra.len;
    if (!f->extra_key)
        return;
    orr_json_key(w, f->extra_key);
    if (!f->is_extra_list) {
        orr_json_str(w, (orr_str){p, f->extra.len});
        return;
    }
    orr_json_begin_array(w);
    for (const char *nl; p < end && (nl = memchr(p, '\n', (size_t)(end - p))) != NULL; p = nl + 1) {
        p += *p == ' ';
        orr_json_str(w, (orr_str){p, (size_t)(nl - p)});
    }
    orr_json_end_array(w);
    w->to->failed |= f->extra.failed;
}

static void put_stall(const orr__schedule_facts *f, orr_json_writer *w)
{
    if (!f->stall_count)
        return;
    orr_json_put_array(w, "stall");
    for (size_t i = 0; i < f->stall_count; i++)
        orr_json_text(w, f->stall[i]);
    orr_json_end_array(w);
}

orr_code lgs_write_json(
    const lgs_sim *s, const char *path, const char *source, const char *program, orr_error *err)
{
    const orr_json_style style = {.indent = 2};
    orr__schedule_facts f;
    orr_buf b = {0};
    orr_json_writer w;
    const orr_code code = orr__schedule_facts_take(s, &f, err);
    if (code)
        return code;
    orr_json_writer_init(&w, &b, &style);
    orr_json_begin_object(&w);
    orr_json_put_fields(&w, ORR_T("format", "orrery-loggops"), ORR_U("version", 1));
    if (program) {
        orr_json_put_text(&w, "program", program);
    }
    orr_json_put_text(&w, "schedule", source);
    put_provenance(&f.options, program, &w);
    if (f.is_own) /* the documents of the old programs are unchanged */
        orr_json_put_text(&w, "status", f.status);
    put_parameters(&f, &w);
    orr_json_put_fields(
        &w, ORR_U("ranks", f.ranks), ORR_U("ranks_simulated", f.simulated), ORR_U("cpus", f.cpus),
        ORR_U("nics", f.nics), ORR_U("sends", f.totals.sends), ORR_U("receives", f.totals.recvs),
        ORR_U("calculations", f.totals.calcs), ORR_U("sent_bytes", f.totals.bytes_sent),
        ORR_B("is_complete", f.is_complete), ORR_U("events", f.events),
        ORR_U("messages", f.messages), ORR_U("finished_ns", f.last),
        ORR_U("finished_rank", f.last_rank));
    if (f.job_count)
        put_jobs(&f, &w);
    put_times(&w, "rank_finished_ns", f.finished, f.ranks);
    if (f.noise)
        put_times(&w, "rank_noise_ns", f.noise, f.ranks);
    put_extra(&f, &w);
    put_stall(&f, &w);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    orr__schedule_facts_fini(&f);
    const orr_code saved = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return saved;
}

/* ---- CSV ---- */

orr_code lgs_write_csv(const lgs_sim *s, bool is_alike, const char *path, orr_error *err)
{
    orr__schedule_facts f;
    orr_buf b = {0};
    const orr_code code = orr__schedule_facts_take(s, &f, err);
    if (code)
        return code;
    orr_buf_text(&b, "rank,finished_ns,noise_ns\n");
    for (uint32_t r = 0; r < f.ranks; r++)
        orr_buf_print(&b, "%u,%llu,%llu\n", r, (ull)f.finished[r], (ull)(f.noise ? f.noise[r] : 0));
    if (is_alike)
        orr__csv_join_alike(&b);
    orr__schedule_facts_fini(&f);
    const orr_code saved = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return saved;
}
