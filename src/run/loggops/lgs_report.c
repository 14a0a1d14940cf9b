/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_report.c - what came out of a run, for people, for programs and for spreadsheets; and when everything ran. */
#include "lgs_impl.h"

#include "base/formats/json.h"
#include "base/io/output.h"
#include "trace/input_files.h"

#include <stdio.h>

typedef unsigned long long ull;

static orr_code save(orr_buf *b, const char *path, orr_error *err)
{
    orr_output *out;
    orr_code code = b->failed ? orr_no_memory(err) : orr_output_open(path, &out, err);
    if (!code) {
        orr_output_drain(out, b);
        code = orr_output_commit(&out, err);
    }
    orr_buf_fini(b);
    return code;
}

typedef struct lgs_summary {
    uint64_t last, first, sum;
    uint32_t last_rank, first_rank;
} lgs_summary;

static lgs_summary sum_up(const lgs_sim *s)
{
    lgs_summary u = {.first = UINT64_MAX};
    for (uint32_t r = 0; r < s->hosts; r++) {
        const uint64_t at = lgs_finished_at(s, r);
        u.sum += at;
        if (at > u.last) {
            u.last = at;
            u.last_rank = r;
        }
        if (at < u.first) {
            u.first = at;
            u.first_rank = r;
        }
    }
    return u;
}

/* ---- jobs on one machine */

static uint64_t job_finished(const lgs_sim *s, size_t job)
{
    const orr_goal *g = s->goal;
    uint64_t last = 0;
    for (uint32_t i = g->job_first[job]; i < g->job_first[job + 1]; i++) {
        const uint64_t at = lgs_finished_at(s, g->job_hosts[i]);
        last = at > last ? at : last;
    }
    return last;
}

static uint32_t job_ranks(const lgs_sim *s, size_t job)
{
    return s->goal->job_first[job + 1] - s->goal->job_first[job];
}

static void print_jobs(const lgs_sim *s, orr_buf *b)
{
    orr_buf_text(b, "\n   job     ranks      finished (ns)  first host\n");
    for (size_t j = 0; j < s->goal->job_count; j++) {
        orr_buf_print(b, "%6zu  %8u  %17llu", j + 1, job_ranks(s, j), (ull)job_finished(s, j));
        if (job_ranks(s, j))
            orr_buf_print(b, "  %10u", s->goal->job_hosts[s->goal->job_first[j]]);
        orr_buf_text(b, "\n");
    }
}

static void put_jobs(const lgs_sim *s, orr_json_writer *w)
{
    const orr_goal *g = s->goal;
    orr_json_key(w, "jobs");
    orr_json_begin_array(w);
    for (size_t j = 0; j < g->job_count; j++) {
        orr_json_begin_object(w);
        orr_json_put_u64(w, "finished_ns", job_finished(s, j));
        orr_json_key(w, "hosts");
        orr_json_begin_array(w);
        for (uint32_t i = g->job_first[j]; i < g->job_first[j + 1]; i++)
            orr_json_u64(w, g->job_hosts[i]);
        orr_json_end_array(w);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
}

/* ---- text */

enum { ALL_RANKS = 32 };

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

orr_code lgs_write_text(const lgs_sim *s, const char *path, const char *source, orr_error *err)
{
    const orr_goal_totals t = s->goal->totals;
    const lgs_summary u = sum_up(s);
    orr_buf b = {0};
    orr_buf_print(&b, "%s: %u ranks, %llu sends, %llu receives, %llu calculations\n", source,
                  s->hosts, (ull)t.sends, (ull)t.recvs, (ull)t.calcs);
    orr_buf_print(
        &b, "LogGOPS: L %llu ns, o %llu ns, g %llu ns, G %g ns/byte, O %llu ns/byte, S %u bytes\n",
        (ull)s->opt.L, (ull)s->opt.o, (ull)s->opt.g, s->opt.G, (ull)s->opt.O, s->opt.S);
    if (s->rules != &lgs_own_rules)
        orr_buf_print(&b, "by the rules of %s\n", s->rules->name);
    orr_buf_text(&b, "finished after ");
    put_time(&b, u.last);
    orr_buf_print(&b, " (%llu ns, rank %u); the first rank after ", (ull)u.last, u.last_rank);
    put_time(&b, u.first);
    orr_buf_print(&b, " (rank %u)\n", u.first_rank);
    orr_buf_print(&b, "%llu events, %llu messages, %llu bytes\n", (ull)s->events, (ull)s->messages,
                  (ull)t.bytes_sent);
    if (s->goal->job_count)
        print_jobs(s, &b);
    if (s->hosts <= ALL_RANKS)
        orr_buf_print(&b, "\n  %s      finished (ns)\n", s->goal->job_count ? "host" : "rank");
    for (uint32_t r = 0; r < s->hosts && s->hosts <= ALL_RANKS; r++)
        orr_buf_print(&b, "%6u  %17llu\n", r, (ull)lgs_finished_at(s, r));
    return save(&b, path, err);
}

/* ---- JSON */

enum { PATH_ROOM = 4096 };

static void put_parameters(const lgs_sim *s, orr_json_writer *w)
{
    const lgs_options *o = &s->opt;
    orr_json_key(w, "parameters");
    orr_json_begin_object(w);
    orr_json_key(w, "rules");
    orr_json_text(w, s->rules->name);
    orr_json_put_u64(w, "L_ns", o->L);
    orr_json_put_u64(w, "o_ns", o->o);
    orr_json_put_u64(w, "g_ns", o->g);
    orr_json_key(w, "G_ns_per_byte");
    orr_json_double(w, o->G);
    orr_json_put_u64(w, "O_ns_per_byte", o->O);
    orr_json_put_u64(w, "S_bytes", o->S);
    if (o->noise) {
        orr_json_key(w, "noise");
        orr_json_text(w, o->noise);
        orr_json_put_u64(w, "noise_seed", o->noise_seed);
    }
    orr_json_end_object(w);
}

/* One file: opened again by a path that ends with a zero, which those of a list of jobs do not. */
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

static void put_provenance(const lgs_sim *s, const char *program, orr_json_writer *w)
{
    const lgs_options *o = &s->opt;
    orr_json_key(w, "provenance");
    orr_json_begin_object(w);
    orr_json_put_text(w, "program", program);
    orr_json_key(w, "inputs");
    orr_json_begin_array(w);
    for (size_t i = 0; i < o->input_count; i++)
        put_input(&o->inputs[i], w);
    if (o->noise)
        put_input(&(lgs_input){"noise", orr_str_of(o->noise)}, w);
    if (o->simple_links)
        put_input(&(lgs_input){"links", orr_str_of(o->simple_links)}, w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_ranks(const lgs_sim *s, orr_json_writer *w)
{
    if (s->goal->job_count)
        put_jobs(s, w);
    orr_json_key(w, "rank_finished_ns");
    orr_json_begin_array(w);
    for (uint32_t r = 0; r < s->hosts; r++)
        orr_json_u64(w, lgs_finished_at(s, r));
    orr_json_end_array(w);
    if (!s->noise)
        return;
    orr_json_key(w, "rank_noise_ns");
    orr_json_begin_array(w);
    for (uint32_t r = 0; r < s->hosts; r++)
        orr_json_u64(w, lgs_noise_total(s->noise, r));
    orr_json_end_array(w);
}

static void put_stall(const lgs_sim *s, orr_json_writer *w)
{
    if (!s->stall_count)
        return;
    orr_json_key(w, "stall");
    orr_json_begin_array(w);
    for (size_t i = 0; i < s->stall_count; i++)
        orr_json_text(w, s->stall_lines[i]);
    orr_json_end_array(w);
}

orr_code lgs_write_json(
    const lgs_sim *s, const char *path, const char *source, const char *program, orr_error *err)
{
    const orr_goal_totals t = s->goal->totals;
    const orr_json_style style = {.indent = 2};
    const lgs_summary u = sum_up(s);
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, &style);
    orr_json_begin_object(&w);
    orr_json_key(&w, "format");
    orr_json_text(&w, "orrery-loggops");
    orr_json_put_u64(&w, "version", 1);
    if (program) {
        orr_json_key(&w, "program");
        orr_json_text(&w, program);
    }
    orr_json_key(&w, "schedule");
    orr_json_text(&w, source);
    put_provenance(s, program, &w);
    put_parameters(s, &w);
    orr_json_put_u64(&w, "ranks", s->hosts);
    orr_json_put_u64(&w, "cpus", s->cpus);
    orr_json_put_u64(&w, "nics", s->nics);
    orr_json_put_u64(&w, "sends", t.sends);
    orr_json_put_u64(&w, "receives", t.recvs);
    orr_json_put_u64(&w, "calculations", t.calcs);
    orr_json_put_u64(&w, "sent_bytes", t.bytes_sent);
    orr_json_key(&w, "is_complete");
    orr_json_bool(&w, s->finished_count == t.sends + t.recvs + t.calcs && !s->match.used);
    orr_json_put_u64(&w, "events", s->events);
    orr_json_put_u64(&w, "messages", s->messages);
    orr_json_put_u64(&w, "finished_ns", u.last);
    orr_json_put_u64(&w, "finished_rank", u.last_rank);
    put_ranks(s, &w);
    if (s->rules->put_json)
        s->rules->put_json(s, &w);
    put_stall(s, &w);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return save(&b, path, err);
}

orr_code lgs_write_csv(const lgs_sim *s, const char *path, orr_error *err)
{
    orr_buf b = {0};
    orr_buf_text(&b, "rank,finished_ns,noise_ns\n");
    for (uint32_t r = 0; r < s->hosts; r++)
        orr_buf_print(&b, "%u,%llu,%llu\n", r, (ull)lgs_finished_at(s, r), (ull)lgs_noise_of(s, r));
    return save(&b, path, err);
}

/* ---- timeline: a track for each CPU that did something; messages are arrows from a send to its receive */

typedef struct lgs_painter {
    const lgs_sim *s;
    orr_timeline *t;
    orr_error *err;
    uint32_t *track; /* by host and CPU; UINT32_MAX: not made */
    uint32_t *span;  /* by operation: the span of a send; UINT32_MAX: none */
    uint32_t name[5];
} lgs_painter;

static orr_ps ps_of(uint64_t ns)
{
    return ns < INT64_MAX / 1000 ? (orr_ps)(ns * 1000) : INT64_MAX;
}

static orr_code track_of(lgs_painter *p, const lgs_span *v, uint32_t *out)
{
    uint32_t *track = &p->track[(size_t)v->host * p->s->cpus + v->cpu];
    orr_code code = ORR_OK;
    if (*track == UINT32_MAX) {
        char name[24];
        snprintf(name, sizeof name, "cpu %u", v->cpu);
        code = orr_timeline_add_track(p->t, v->host, orr_str_of(name), track, p->err);
    }
    *out = *track;
    return code;
}

static orr_code paint_arrow(lgs_painter *p, const lgs_span *v, uint32_t to, const lgs_span *wire)
{
    const uint64_t place = p->s->ranks[wire->host].first_node + wire->node;
    if (p->span[place] == UINT32_MAX || wire->end < wire->start)
        return ORR_OK;
    const orr_arrow arrow = {.from = p->span[place],
                             .to = to,
                             .left = ps_of(wire->start),
                             .arrived = ps_of(wire->end),
                             .name = p->name[LGS_SPAN_WIRE]};
    (void)v;
    return orr_timeline_add_arrow(p->t, &arrow, p->err);
}

static orr_code paint(lgs_painter *p, const lgs_span *v, const lgs_span *before)
{
    static const uint8_t kinds[] = {ORR_SPAN_COMPUTE, ORR_SPAN_SEND, ORR_SPAN_RECEIVE,
                                    ORR_SPAN_OTHER};
    if (v->kind == LGS_SPAN_WIRE || v->end <= v->start)
        return ORR_OK;
    uint32_t number = 0;
    orr_timespan span = {
        .start = ps_of(v->start),
        .end = ps_of(v->end),
        .name = p->name[v->kind],
        .kind = kinds[v->kind],
        .size = v->size,
        .id = v->node == LGS_NO_NODE ? 0 : v->node + 1u,
        .has = v->node != LGS_NO_NODE && v->kind != LGS_SPAN_NOISE ? ORR_SPAN_HAS_ID : 0};
    if (v->kind == LGS_SPAN_SEND || v->kind == LGS_SPAN_RECV) {
        span.peer = v->peer;
        span.has |= ORR_SPAN_HAS_PEER;
    }
    orr_code code = track_of(p, v, &span.track);
    if (!code)
        code = orr_timeline_add_span(p->t, &span, &number, p->err);
    if (code)
        return code;
    if (v->kind == LGS_SPAN_SEND)
        p->span[p->s->ranks[v->host].first_node + v->node] = number;
    if (v->kind == LGS_SPAN_RECV && before && before->kind == LGS_SPAN_WIRE &&
        before->peer == v->host)
        return paint_arrow(p, v, number, before);
    return ORR_OK;
}

static orr_code paint_all(lgs_painter *p)
{
    static const char *const names[] = {"calc", "send", "recv", "noise", "message"};
    const lgs_watch *w = p->s->watch;
    orr_code code = orr_timeline_create(&p->t, p->err);
    for (int i = 0; i < 5 && !code; i++)
        code = orr_timeline_add_text(p->t, orr_str_of(names[i]), &p->name[i], p->err);
    for (size_t i = 0; i < w->span_count && !code; i++)
        code = paint(p, &w->spans[i], i ? &w->spans[i - 1] : NULL);
    return code ? code : orr_timeline_seal(p->t, p->err);
}

orr_code lgs_timeline(const lgs_sim *s, orr_timeline **out, orr_error *err)
{
    *out = NULL;
    if (!s->opt.keeps_spans)
        return orr_fail(err, ORR_EUSAGE, NULL, "this run kept no spans");
    const size_t tracks = (size_t)s->hosts * s->cpus;
    lgs_painter p = {.s = s, .err = err};
    p.track = orr_alloc(tracks, sizeof *p.track);
    p.span = orr_alloc(s->goal->node_count, sizeof *p.span);
    orr_code code = p.track && p.span ? ORR_OK : orr_no_memory(err);
    if (!code) {
        memset(p.track, 0xff, tracks * sizeof *p.track);
        memset(p.span, 0xff, s->goal->node_count * sizeof *p.span);
        code = paint_all(&p);
    }
    orr_free(p.track);
    orr_free(p.span);
    if (code)
        orr_timeline_destroy(p.t);
    else
        *out = p.t;
    return code;
}

/* ---- files of other programs (src/compat) */

orr_code lgs_write_old(const lgs_sim *s, const char *what, const char *path, orr_error *err)
{
    for (const lgs_writer *w = lgs_old_writers; w && w->name; w++)
        if (strcmp(w->name, what) == 0)
            return w->write(s, path, err);
    return orr_fail(err, ORR_EUSAGE, NULL, "a LogGOPS run writes no \"%s\"", what);
}
