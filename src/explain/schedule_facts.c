/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_facts.c - results of a schedule, as figures and as a timeline. */
#include "facts.h"

#include "run/loggops/lgs_impl.h"

#include <stdio.h>

static void find_ends(orr__schedule_facts *f)
{
    f->first = UINT64_MAX;
    for (uint32_t r = 0; r < f->ranks; r++) {
        const uint64_t at = f->finished[r];
        if (at > f->last) {
            f->last = at;
            f->last_rank = r;
        }
        if (at < f->first) {
            f->first = at;
            f->first_rank = r;
        }
    }
}

static void take_jobs(const orr_goal *g, orr__schedule_facts *f)
{
    for (size_t j = 0; j < f->job_count; j++) {
        orr__job_facts *job = &f->jobs[j];
        job->hosts = g->job_hosts + g->job_first[j];
        job->count = g->job_first[j + 1] - g->job_first[j];
        for (uint32_t i = 0; i < job->count; i++)
            job->finished = lgs_max(job->finished, f->finished[job->hosts[i]]);
    }
}

/* Rules without stall explanations end normally there. */
static const char *status_of(const lgs_sim *s)
{
    if (lgs_is_complete(s))
        return "finished";
    if (s->was_stopped)
        return "interrupted";
    return s->rules->explains_stall ? "stalled" : "finished";
}

orr_code orr__schedule_facts_take(const lgs_sim *s, orr__schedule_facts *out, orr_error *err)
{
    *out = (orr__schedule_facts){.options = s->opt,
                                 .rules = s->rules->name,
                                 .is_own = s->rules == &lgs_own_rules,
                                 .totals = s->goal->totals,
                                 .ranks = s->hosts,
                                 .simulated = s->simulated,
                                 .cpus = s->cpus,
                                 .nics = s->nics,
                                 .events = lgs_events(s),
                                 .messages = s->messages,
                                 .is_complete = lgs_is_complete(s),
                                 .status = status_of(s),
                                 .job_count = s->goal->job_count,
                                 .stall = s->stall_lines,
                                 .stall_count = s->stall_count};
    out->finished = orr_alloc(s->hosts, sizeof *out->finished);
    out->noise = s->noise ? orr_alloc(s->hosts, sizeof *out->noise) : NULL;
    out->jobs = orr_alloc(out->job_count, sizeof *out->jobs);
    if (!out->finished || !out->jobs || (s->noise && !out->noise)) {
        orr__schedule_facts_fini(out);
        return orr_no_memory(err);
    }
    for (uint32_t r = 0; r < s->hosts; r++) {
        out->finished[r] = lgs_finished_at(s, r);
        if (out->noise)
            out->noise[r] = lgs_noise_of(s, r);
    }
    find_ends(out);
    take_jobs(s->goal, out);
    if (s->rules->extra)
        out->extra_key = s->rules->extra(s, &out->extra, &out->is_extra_list);
    return ORR_OK;
}

void orr__schedule_facts_fini(orr__schedule_facts *f)
{
    orr_free(f->finished);
    orr_free(f->noise);
    orr_free(f->jobs);
    orr_buf_fini(&f->extra);
}

/* ---- timeline: one track per CPU in use; messages are arrows from a send to its receive */

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
