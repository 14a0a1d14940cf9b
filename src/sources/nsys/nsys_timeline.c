/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_timeline.c - an export as a timeline: kernels per stream, NVTX ranges per host thread.
 *
 * A rank is a process of the report, in the order in which processes appear.  Kernels lie on a
 * track for each device and stream; NVTX ranges on one for each thread of the host, markers without
 * an end as spans of no length.  NCCL's kernels are collectives or messages, others compute.  Times
 * start at the first record: a report's own clock starts at some moment of the
 * machine's. Cost: two passes over the file, one of them for the first time, and the timeline. */
#include "nsys_impl.h"

#include "base/memory/buffer.h"
#include "base/memory/map.h"
#include "base/short_forms.h"

#include <orrery/trace.h>

#include <inttypes.h>

static const int64_t ps_per_ns = 1000;
static const int64_t most_ns = INT64_MAX / 4000; /* a quarter of what fits in ps */

typedef struct picture {
    orr_timeline *t;
    orr_nsys *file;
    const char *path;
    orr_map *ranks;  /* pid */
    orr_map *tracks; /* a hash of process and stream or thread */
    uint32_t rank_count;
    int64_t origin;
    bool has_origin;
} picture;

static orr_code rank_of(picture *p, uint64_t pid, uint32_t *out, orr_error *err)
{
    *out = orr_map_find(p->ranks, pid, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    *out = p->rank_count++;
    return orr_map_put(p->ranks, pid, *out, NULL) ? ORR_OK : orr_no_memory(err);
}

/* Streams and threads are distinguished by a bit above all device and thread numbers. */
static uint64_t track_key(uint32_t rank, const orr_nsys_row *r)
{
    const uint64_t low = r->kind == ORR_NSYS_KERNEL
                             ? UINT64_C(1) << 39 | ((uint64_t)r->device & 0x7f) << 32 |
                                   ((uint64_t)r->cuda_stream & UINT32_MAX)
                             : r->thread & 0xffffff;
    return (uint64_t)rank << 40 | low;
}

static orr_code name_track(
    picture *p, uint32_t rank, const orr_nsys_row *r, uint32_t *out, orr_error *err)
{
    orr_buf name = {0};
    if (r->kind == ORR_NSYS_KERNEL)
        orr_buf_print(&name, "device %" PRId64 " stream %" PRId64, r->device, r->cuda_stream);
    else
        orr_buf_print(&name, "host thread %" PRIu64, r->thread & 0xffffff);
    const orr_code code =
        name.failed
            ? orr_no_memory(err)
            : orr_timeline_add_track(
                  p->t, rank, (orr_str){.ptr = (const char *)name.ptr, .len = name.len}, out, err);
    orr_buf_fini(&name);
    return code;
}

static orr_code track_of(picture *p, const orr_nsys_row *r, uint32_t *out, orr_error *err)
{
    uint32_t rank;
    orr_code code = rank_of(
        p, r->kind == ORR_NSYS_KERNEL ? r->pid : orr__nsys_pid((int64_t)r->thread), &rank, err);
    if (code)
        return code;
    const uint64_t key = track_key(rank, r);
    *out = orr_map_find(p->tracks, key, UINT32_MAX);
    if (*out != UINT32_MAX)
        return ORR_OK;
    code = name_track(p, rank, r, out, err);
    return code || orr_map_put(p->tracks, key, *out, NULL) ? code : orr_no_memory(err);
}

/* Before NCCL 2.19 its kernels were called "ncclKernel_AllReduce_RING_LL_Sum_float". */
static bool find_old_kernel(orr_str name, orr_nccl_op *op)
{
    static const char before[] = "ncclKernel_";
    const char *at = name.len ? memmem(name.ptr, name.len, before, sizeof before - 1) : NULL;
    if (!at)
        return false;
    const char *from = at + sizeof before - 1, *to = from, *end = name.ptr + name.len;
    while (to < end && ((*to >= 'a' && *to <= 'z') || (*to >= 'A' && *to <= 'Z')))
        to++;
    *op = orr_nccl_op_find((orr_str){.ptr = from, .len = (size_t)(to - from)});
    return true;
}

/* Kind and collective of a kernel.  "ncclDevKernel_Generic" does not name its collective, but is
 * one. */
static void set_kernel(const orr_nsys_row *r, orr_timespan *s)
{
    static const uint8_t collective[ORR_NCCL_OPS] = {
        [ORR_NCCL_ALL_REDUCE] = ORR_COLL_ALL_REDUCE + 1,
        [ORR_NCCL_ALL_GATHER] = ORR_COLL_ALL_GATHER + 1,
        [ORR_NCCL_REDUCE_SCATTER] = ORR_COLL_REDUCE_SCATTER + 1,
        [ORR_NCCL_BROADCAST] = ORR_COLL_BROADCAST + 1,
        [ORR_NCCL_REDUCE] = ORR_COLL_REDUCE + 1};
    orr_nccl_op op = r->op;
    const bool is_nccl = op != ORR_NCCL_OTHER || find_old_kernel(r->text, &op) ||
                         (r->text.len && memmem(r->text.ptr, r->text.len, "ncclDevKernel", 13));
    s->kind = ORR_SPAN_COMPUTE;
    if (!is_nccl)
        return;
    s->kind = op == ORR_NCCL_SEND || op == ORR_NCCL_SEND_RECV ? ORR_SPAN_SEND
              : op == ORR_NCCL_RECV                           ? ORR_SPAN_RECEIVE
                                                              : ORR_SPAN_COLLECTIVE;
    s->collective = collective[op];
}

/* A kernel's name without its arguments. */
static orr_str short_name(const orr_nsys_row *r)
{
    const char *bracket =
        r->kind == ORR_NSYS_KERNEL && r->text.len ? memchr(r->text.ptr, '(', r->text.len) : NULL;
    return bracket && bracket > r->text.ptr
               ? (orr_str){.ptr = r->text.ptr, .len = (size_t)(bracket - r->text.ptr)}
               : r->text;
}

static orr_code out_of_range(const picture *p, const orr_nsys_row *r, orr_error *err)
{
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(p->path, 0, 0)),
                    "row %" PRIu64 ": a time is more than 26 days away from the first", r->row);
}

static orr_code add_row(picture *p, const orr_nsys_row *r, orr_error *err)
{
    if (r->kind != ORR_NSYS_KERNEL && r->text.len == 0)
        return ORR_OK; /* a category, a thread's name: no duration */
    const int64_t start = r->start - p->origin,
                  end = (r->end > r->start ? r->end : r->start) - p->origin;
    if (start > most_ns || end > most_ns)
        return out_of_range(p, r, err);
    orr_timespan s = {.start = start * ps_per_ns,
                      .end = end * ps_per_ns,
                      .size = r->kind == ORR_NSYS_CALL ? r->bytes : 0,
                      .kind = ORR_SPAN_HOST};
    if (r->kind == ORR_NSYS_KERNEL)
        set_kernel(r, &s);
    orr_code code = track_of(p, r, &s.track, err);
    if (!code)
        code = orr_timeline_add_text(p->t, short_name(r), &s.name, err);
    return code ? code : orr_timeline_add_span(p->t, &s, NULL, err);
}

static orr_code fill(picture *p, orr_error *err)
{
    orr_nsys_row row;
    orr_code code;
    while ((code = orr_nsys_next(p->file, &row, err)) == ORR_OK)
        if ((code = add_row(p, &row, err)))
            return code;
    if (code != ORR_END)
        return code;
    code = orr_timeline_add_note(p->t, orr_str_of("source"), orr_str_of("Nsight Systems"), err);
    return code ? code : orr_timeline_seal(p->t, err);
}

/* The origin is the earliest time, which need not come first: an extra pass over all rows. */
static orr_code find_origin(const char *path, int64_t *out, bool *has_any, orr_error *err)
{
    const orr_nsys_options opt = {.all_kernels = true};
    orr_nsys *n;
    orr_nsys_row row;
    orr_code code = orr_nsys_open(path, &opt, &n, err);
    if (code)
        return code;
    while ((code = orr_nsys_next(n, &row, err)) == ORR_OK) {
        if (row.kind != ORR_NSYS_KERNEL && row.text.len == 0)
            continue;
        *out = !*has_any || row.start < *out ? row.start : *out;
        *has_any = true;
    }
    orr_nsys_close(n);
    return code == ORR_END ? ORR_OK : code;
}

orr_code orr_nsys_timeline(const char *path, orr_timeline **out, orr_error *err)
{
    const orr_nsys_options opt = {.all_kernels = true};
    picture p = {.path = path};
    *out = NULL;
    orr_code code = find_origin(path, &p.origin, &p.has_origin, err);
    if (code)
        return code;
    p.ranks = orr_map_create(16);
    p.tracks = orr_map_create(64);
    if (!p.ranks || !p.tracks)
        code = orr_no_memory(err);
    if (!code)
        code = orr_nsys_open(path, &opt, &p.file, err);
    if (!code)
        code = orr_timeline_create(&p.t, err);
    if (!code)
        code = fill(&p, err);
    orr_nsys_close(p.file);
    orr_map_destroy(p.ranks);
    orr_map_destroy(p.tracks);
    if (code) {
        orr_timeline_destroy(p.t);
        return code;
    }
    *out = p.t;
    return ORR_OK;
}
