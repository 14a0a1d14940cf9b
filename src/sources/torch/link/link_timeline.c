/* SPDX-License-Identifier: Apache-2.0 */
/* link_timeline.c - a measured run as a timeline: threads and streams of every rank, on one clock.
 *
 * Only what the profiler recorded: operators and annotations on the tracks of their threads,
 * kernels, copies and fills on those of their streams, an arrow from a launching call's operator to
 * its kernel.  Spans of communication have their kind and group, so that a measured and a simulated
 * run can be compared. */
#include "link_impl.h"

#include "base/memory/map.h"
#include "base/text/text.h"
#include "trace/known_names.h"

#include <inttypes.h>

/* Picoseconds of twice this must fit. */
#define MAX_NS (INT64_MAX / 4000)

typedef struct drawer {
    orr_timeline *t;
    const orr_link *l;
    uint32_t rank;
    int64_t shift_ns; /* to the common clock, with 0 at the first event of all */
    uint32_t *tracks; /* of threads; LINK_NONE: none yet */
    orr_map *streams; /* stream and device -> track */
    uint32_t *names;  /* text of the device trace -> text of the timeline; LINK_NONE: not yet */
    orr_error *err;
} drawer;

/* Only NCCL's SendRecv kernel has both words in its name: it also implements all-to-all, so it
 * counts as a collective. */
static orr_span_kind kind_of_work(orr_str name)
{
    if (orr_str_has(name, "SendRecv"))
        return ORR_SPAN_COLLECTIVE;
    if (orr_str_has(name, "send") || orr_str_has(name, "Send"))
        return ORR_SPAN_SEND;
    return orr_str_has(name, "recv") || orr_str_has(name, "Recv") ? ORR_SPAN_RECEIVE
                                                                  : ORR_SPAN_COLLECTIVE;
}

static orr_span_kind kind_of(const orr_link *l, const kin_event *e)
{
    const orr_str name = link_name(l, e);
    if (e->kind == KIN_KERNEL && orr__comm_kernel(name) == ORR__COMM_ONE_SIDED)
        return ORR_SPAN_COLLECTIVE;
    if (e->kind == KIN_KERNEL)
        return link_is_nccl(name) ? kind_of_work(name) : ORR_SPAN_COMPUTE;
    if (e->kind == KIN_MEMCPY || e->kind == KIN_MEMSET)
        return ORR_SPAN_MEMORY;
    if (link_is_backend(name))
        return kind_of_work(name);
    return e->kind == KIN_STEP || e->flags & KIN_USER ? ORR_SPAN_OTHER : ORR_SPAN_HOST;
}

/* ---- tracks ---- */

static orr_code add_track(drawer *d, const char *what, orr_str which, uint32_t *out)
{
    char text[80];
    size_t n = strlen(what);
    memcpy(text, what, n);
    const size_t take = which.len < sizeof text - n ? which.len : sizeof text - n;
    memcpy(text + n, which.ptr, take);
    return orr_timeline_add_track(d->t, d->rank, (orr_str){text, n + take}, out, d->err);
}

static orr_code thread_track(drawer *d, uint32_t tid, uint32_t *out)
{
    orr_code code = ORR_OK;
    if (d->tracks[tid] == LINK_NONE)
        code = add_track(d, "thread ", orr_intern_get(d->l->device.threads, tid), &d->tracks[tid]);
    *out = d->tracks[tid];
    return code;
}

static orr_code stream_track(drawer *d, const kin_event *e, uint32_t *out)
{
    const int64_t stream = e->stream == KIN_NO_NUMBER ? 0 : e->stream;
    const uint64_t key = link_stream_key(stream, e->device);
    char text[24];
    size_t n = 0;
    *out = orr_map_find(d->streams, key, LINK_NONE);
    if (*out != LINK_NONE)
        return ORR_OK;
    for (uint64_t v = stream < 0 ? 0 : (uint64_t)stream; n == 0 || v; v /= 10)
        text[sizeof text - ++n] = (char)('0' + v % 10);
    const orr_code code = add_track(d, "stream ", (orr_str){text + sizeof text - n, n}, out);
    if (code)
        return code;
    return orr_map_put(d->streams, key, *out, NULL) ? ORR_OK : orr_no_memory(d->err);
}

/* ---- spans ---- */

/* A trace of a million events has a few hundred names: the table avoids looking each of them up by
 * text. */
static orr_code name_text(drawer *d, uint32_t name, uint32_t *out)
{
    orr_code code = ORR_OK;
    if (d->names[name] == LINK_NONE)
        code = orr_timeline_add_text(d->t, orr_intern_get(d->l->device.texts, name),
                                     &d->names[name], d->err);
    *out = d->names[name];
    return code;
}

static orr_code group_text(drawer *d, const kin_event *e, uint32_t *out)
{
    *out = ORR_NO_TEXT;
    if (e->extra == KIN_NO_TEXT || d->l->device.extras[e->extra].group == KIN_NO_TEXT)
        return ORR_OK;
    orr_str s = orr_intern_get(d->l->device.texts, d->l->device.extras[e->extra].group);
    /* The reader keeps the JSON text, a string or a number.  The same group must have one name on
     * all ranks, however a version of PyTorch wrote it. */
    if (s.len >= 2 && s.ptr[0] == '"')
        s = (orr_str){s.ptr + 1, s.len - 2};
    return orr_timeline_add_text(d->t, s, out, d->err);
}

static orr_code add_span(drawer *d, const kin_event *e)
{
    const bool is_device = kin_is_device(e);
    orr_timespan s = {.kind = (uint8_t)kind_of(d->l, e)};
    if (e->kind == KIN_KERNEL && orr__comm_kernel(link_name(d->l, e)) == ORR__COMM_ONE_SIDED)
        s.collective = orr__comm_one_sided_kind(link_name(d->l, e));
    orr_code code = is_device ? stream_track(d, e, &s.track) : thread_track(d, e->tid, &s.track);
    if (code || (code = name_text(d, e->name, &s.name)) || (code = group_text(d, e, &s.group)))
        return code;
    const int64_t start_ns = e->start_ns + d->shift_ns;
    if (start_ns > MAX_NS || start_ns < -MAX_NS || e->dur > (double)MAX_NS)
        return ORR_OK; /* a clock that jumped by months: not displayable */
    s.start = start_ns * 1000;
    s.end = s.start + (int64_t)e->dur * 1000;
    if (e->extra != KIN_NO_TEXT && d->l->device.extras[e->extra].bytes > 0)
        s.size = (orr_bytes)d->l->device.extras[e->extra].bytes;
    return orr_timeline_add_span(d->t, &s, NULL, d->err);
}

/* Runtime calls are not drawn: there is one for nearly every kernel, and the operator around it
 * shows the same time. */
static bool is_drawn(const kin_event *e)
{
    return kin_is_device(e) || e->kind == KIN_OPERATOR || e->kind == KIN_STEP;
}

static orr_code draw(drawer *d)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < d->l->device.count && !code; i++) {
        if (is_drawn(&d->l->device.events[i]))
            code = add_span(d, &d->l->device.events[i]);
    }
    return code;
}

static orr_code draw_rank(orr_timeline *t, const link_job_rank *r, int64_t first, orr_error *err)
{
    const orr_link *l = r->link;
    /* A host trace alone has an order but no times: nothing to draw. */
    if (!l->device.count)
        return ORR_OK;
    const uint32_t texts = orr_intern_count(l->device.texts);
    const uint32_t threads = orr_intern_count(l->device.threads);
    drawer d = {.t = t,
                .l = l,
                .rank = r->about.rank,
                .shift_ns = r->about.clock_ns - first,
                .tracks = orr_alloc((size_t)threads + 1, sizeof *d.tracks),
                .names = orr_alloc((size_t)texts + 1, sizeof *d.names),
                .streams = orr_map_create(16),
                .err = err};
    orr_code code = d.tracks && d.names && d.streams ? ORR_OK : orr_no_memory(err);
    if (!code) {
        memset(d.tracks, 0xFF, threads * sizeof *d.tracks);
        memset(d.names, 0xFF, texts * sizeof *d.names);
        code = draw(&d);
    }
    orr_free(d.tracks);
    orr_free(d.names);
    orr_map_destroy(d.streams);
    return code;
}

orr_code orr_link_job_timeline(const orr_link_job *job, orr_timeline **out, orr_error *err)
{
    orr_code code = orr_timeline_create(out, err);
    if (code)
        return code;
    const int64_t first = link_job_first(job);
    for (uint32_t i = 0; i < job->rank_count && !code; i++)
        code = draw_rank(*out, &job->ranks[i], first, err);
    if (!code)
        code = orr_timeline_add_note(*out, orr_str_of("source"),
                                     orr_str_of("measured by PyTorch's profiler"), err);
    if (!code)
        code = orr_timeline_seal(*out, err);
    if (code) {
        orr_timeline_destroy(*out);
        *out = NULL;
    }
    return code;
}
