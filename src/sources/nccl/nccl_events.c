/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_events.c - the schedule of whole calls, before they are taken apart (goal.md 5.9).
 *
 *     l1 rank starts   l2 rank ends
 *     gap -> inner start -> the call, or all calls of a group -> inner end -> event end -> next gap
 *
 * Labels begin at l1 and are given in the order of the lines. */
#include "nccl_write.h"

typedef struct events {
    nccl_writer *w;
    const nccl_gpu *g;
    uint32_t start, end; /* labels of the rank's */
    uint32_t previous;   /* label of the end of the event before */
    int64_t previous_end;
    uint32_t stream;
} events;

static uint32_t line(nccl_pen *p, uint64_t ns)
{
    const uint32_t label = nccl_pen_label(p);
    orr_buf_print(&p->to, "l%u: calc %llu\n", label + p->first_label, (unsigned long long)ns);
    return label;
}

static uint64_t bytes_of(const nccl_gpu *g, const nccl_call *c)
{
    uint64_t most = 0;
    if (c->is_payload)
        return c->bytes;
    if (!nccl_op_is_p2p(c->op))
        return c->info == ORR__NONE ? 0 : g->infos.at[c->info].bytes;
    const nccl_transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    for (uint32_t i = 0; i < c->row_count; i++)
        most = rows[c->first_row + i].bytes > most ? rows[c->first_row + i].bytes : most;
    return most;
}

static void write_member(const events *e, const nccl_call *c, uint32_t inner, uint32_t outer)
{
    nccl_pen *p = &e->w->pen;
    const nccl_job *j = e->w->job;
    const uint32_t label = nccl_pen_label(p);
    const char *stream = e->stream == ORR__NONE ? "stream_merged" : nccl_text(j, c->stream).ptr;
    orr_buf_print(&p->to, "l%u: %s %llu bytes comm %u gpu %u stream %s seq %llu end\n",
                  label + p->first_label, orr_nccl_op_name((orr_nccl_op)c->op),
                  (unsigned long long)bytes_of(e->g, c), c->comm, e->g->rank, stream,
                  (unsigned long long)c->sequence);
    nccl_pen_requires(p, label, inner);
    nccl_pen_requires(p, outer, label);
}

static void write_event(events *e, uint32_t call)
{
    nccl_pen *p = &e->w->pen;
    const nccl_call *calls = e->g->calls.at, *c = &calls[call];
    const int64_t gap = c->from - e->previous_end;
    const uint32_t wait = line(p, gap > 0 ? (uint64_t)gap : 0);
    nccl_pen_requires(p, wait, e->previous);
    const uint32_t end = line(p, 0);
    const uint32_t inner = line(p, 0);
    nccl_pen_requires(p, inner, wait);
    const uint32_t outer = line(p, 0);
    nccl_pen_requires(p, end, outer);
    if (c->group == ORR__NONE) {
        write_member(e, c, inner, outer);
    } else {
        while (call && calls[call - 1].group == c->group)
            call--;
        for (; call < e->g->calls.count && calls[call].group == c->group; call++)
            if (calls[call].has_time)
                write_member(e, &calls[call], inner, outer);
    }
    e->previous = end;
    e->previous_end = c->to;
}

static orr_code write_stream(events *e, const nccl_streams *all, const nccl_stream *one)
{
    orr_map *groups = orr_map_create(16);
    bool is_new, has_any = false, is_good = groups;
    e->previous = e->start;
    e->previous_end = e->g->has_window_start && e->g->has_window_end ? e->g->window_start : 0;
    e->stream = one->name;
    for (uint32_t i = 0; i < one->count && is_good; i++) {
        const uint32_t call = all->calls[one->from + i];
        const uint32_t group = e->g->calls.at[call].group;
        is_new = true;
        if (group != ORR__NONE)
            is_good = orr_map_put(groups, group, 1, &is_new);
        if (!is_new)
            continue;
        write_event(e, call);
        has_any = true;
    }
    if (has_any)
        nccl_pen_requires(&e->w->pen, e->end, e->previous);
    orr_map_destroy(groups);
    return is_good ? ORR_OK : orr_no_memory(e->w->err);
}

orr_code nccl_write_events(nccl_writer *w, uint32_t gpu, bool is_merged)
{
    nccl_streams streams;
    events e = {.w = w, .g = &w->job->gpus.at[gpu]};
    w->gpu = gpu;
    w->pen.labels = 0;
    w->pen.first_label = 1;
    e.start = line(&w->pen, 0);
    e.end = line(&w->pen, 0);
    w->code = nccl_streams_make(w->job, gpu, is_merged, &streams, w->err);
    for (uint32_t i = 0; i < streams.count && !w->code; i++)
        w->code = write_stream(&e, &streams, &streams.at[i]);
    nccl_streams_fini(&streams);
    if (!w->code && (w->pen.is_full || w->pen.to.failed))
        w->code = orr_no_memory(w->err);
    return w->code;
}
