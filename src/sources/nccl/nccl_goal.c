/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_goal.c - from exports to a schedule.
 *
 *     scan -> communicators -> (what all ranks have) -> (may streams be merged?) -> (measure) -> write
 *
 * Steps in brackets visit every GPU again; with all rows in memory that is cheap, and otherwise it
 * keeps memory bounded by one GPU.  Measuring is writing with a dry pen: it finds every error
 * before a byte is written, counts messages, and determines the width of tags. */
#include "nccl_impl.h"

#include "base/io/output.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "base/text/text.h"
#include "nccl_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- One GPU's schedule: its streams beside one another, each a sequence of calls with
 * the time between them (goal.md 5.6).
 *
 * Each call gets cpus of its own from the stream's first on; a stream begins where the one before
 * it used none any more. What a group holds runs side by side. */

/* Calls with a time by stream, as they are written. */
typedef struct nccl_stream {
    uint32_t name; /* a text; ORR__NONE: merged */
    uint32_t from, count;
} nccl_stream;

typedef struct nccl_streams {
    orr_arena *arena;
    nccl_stream *at;
    uint32_t count;
    uint32_t *calls; /* of each stream from..from + count, by time */
} nccl_streams;

/* A GPU's calls by stream, streams in the order in which they are written (goal.md 5.6), and
 * whether they may be merged (goal.md 5.10).
 *
 * The old way orders streams by the context of their first call, then by length and name; ours,
 * whose contexts differ otherwise, by when they start, and keeps calls of a stream as they were
 * made.  Merged, all calls are one stream. */

typedef struct item {
    int64_t from, to; /* both 0 where the order of the calls decides */
    uint64_t order;
    uint32_t call, stream; /* stream: its number here */
} item;

typedef struct head {
    uint64_t first; /* context, or start */
    uint32_t count, number;
    orr_str name;
    uint32_t text;
} head;

static int head_order(const void *a, const void *b)
{
    const head *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return strcmp(x->name.ptr, y->name.ptr);
}

/* By stream, then as they are written: by start, end and the order of the calls. */
static int item_order(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool find_heads(
    const nccl_job *j, const nccl_gpu *g, orr_map *numbers, head *heads, uint32_t *count)
{
    for (size_t i = 0; i < g->events.count; i++) {
        const nccl_call *c = &g->calls.at[g->events.at[i]];
        uint32_t n = orr_map_find(numbers, c->stream, ORR__NONE);
        if (n == ORR__NONE) {
            n = (*count)++;
            if (!orr_map_put(numbers, c->stream, n, NULL))
                return false;
            heads[n] =
                (head){/* starts as unsigned numbers in the same order */
                       .first = j->rules->orders_by_context ? c->context
                                                            : (uint64_t)c->from ^ UINT64_C(1) << 63,
                       .number = n,
                       .name = nccl_text(j, c->stream),
                       .text = c->stream};
        }
        heads[n].count++;
    }
    return true;
}

static void place(
    nccl_streams *s, const item *items, size_t count, const head *heads, bool is_merged)
{
    for (size_t i = 0; i < count; i++) {
        s->calls[i] = items[i].call;
        if (i == 0 || items[i].stream != items[i - 1].stream)
            s->at[s->count++] = (nccl_stream){
                .name = is_merged ? ORR__NONE : heads[items[i].stream].text, .from = (uint32_t)i};
        s->at[s->count - 1].count++;
    }
}

static orr_code sort_streams(const nccl_job *j,
                             const nccl_gpu *g,
                             bool is_merged,
                             orr_map *numbers,
                             nccl_streams *s,
                             orr_error *err)
{
    const size_t n = g->events.count;
    uint32_t count = 0;
    head *heads = orr_arena_new(s->arena, n + 1, head);
    uint32_t *place_of = orr_arena_new(s->arena, n + 1, uint32_t);
    item *items = orr_arena_new(s->arena, n + 1, item);
    s->at = orr_arena_new(s->arena, n + 1, nccl_stream);
    s->calls = orr_arena_new(s->arena, n + 1, uint32_t);
    if (!heads || !place_of || !items || !s->at || !s->calls ||
        !find_heads(j, g, numbers, heads, &count))
        return orr_no_memory(err);
    orr_sort(heads, count, sizeof *heads, head_order);
    for (uint32_t i = 0; i < count; i++)
        place_of[heads[i].number] = i;
    for (size_t i = 0; i < n; i++) {
        const nccl_call *c = &g->calls.at[g->events.at[i]];
        const bool is_by_time = is_merged || j->rules->orders_by_context;
        items[i] = (item){.from = is_by_time ? c->from : 0,
                          .to = is_by_time ? c->to : 0,
                          .order = c->order,
                          .call = g->events.at[i],
                          .stream = is_merged ? 0 : place_of[orr_map_find(numbers, c->stream, 0)]};
    }
    orr_sort(items, n, sizeof *items, item_order);
    place(s, items, n, heads, is_merged);
    return ORR_OK;
}

static orr_code nccl_streams_make(
    const nccl_job *j, uint32_t gpu, bool is_merged, nccl_streams *out, orr_error *err)
{
    orr_map *numbers = orr_map_create(16);
    *out = (nccl_streams){.arena = orr_arena_create()};
    const orr_code code = numbers && out->arena
                              ? sort_streams(j, &j->gpus.at[gpu], is_merged, numbers, out, err)
                              : orr_no_memory(err);
    orr_map_destroy(numbers);
    return code;
}

static void nccl_streams_fini(nccl_streams *s)
{
    orr_arena_destroy(s->arena);
    *s = (nccl_streams){0};
}

/* ---- merging ---- */

/* The latest ends of two different streams among what started before some time. */
typedef struct latest {
    int64_t end[2];
    uint32_t stream[2];
} latest;

static void remember(latest *l, int64_t end, uint32_t stream)
{
    if (stream == l->stream[0]) {
        l->end[0] = end > l->end[0] ? end : l->end[0];
    } else if (end > l->end[0]) {
        l->end[1] = l->end[0];
        l->stream[1] = l->stream[0];
        l->end[0] = end;
        l->stream[0] = stream;
    } else if (end > l->end[1]) {
        l->end[1] = end;
        l->stream[1] = stream;
    }
}

/* Calls first..below end start together: two that take time, of two streams, overlap; so does one
 * with what others have not ended yet. */
static bool batch_overlaps(const nccl_gpu *g, size_t first, size_t end, const latest *before)
{
    uint32_t busy = ORR__NONE;
    for (size_t i = first; i < end; i++) {
        const nccl_call *c = &g->calls.at[g->events.at[i]];
        const int64_t others = before->stream[0] == c->stream ? before->end[1] : before->end[0];
        if (others > c->from)
            return true;
        if (c->to == c->from)
            continue;
        if (busy != ORR__NONE && busy != c->stream)
            return true;
        busy = c->stream;
    }
    return false;
}

/* Whether two of a GPU's streams were busy at the same time. */
static bool gpu_overlaps(const nccl_gpu *g)
{
    latest l = {.end = {INT64_MIN, INT64_MIN}, .stream = {ORR__NONE, ORR__NONE}};
    for (size_t i = 0, end; i < g->events.count; i = end) {
        const int64_t from = g->calls.at[g->events.at[i]].from;
        for (end = i; end < g->events.count && g->calls.at[g->events.at[end]].from == from; end++)
            ;
        if (batch_overlaps(g, i, end, &l))
            return true;
        for (size_t k = i; k < end; k++)
            remember(&l, g->calls.at[g->events.at[k]].to, g->calls.at[g->events.at[k]].stream);
    }
    return false;
}

/* The schedule of whole calls, before they are taken apart (goal.md 5.9).
 *
 *     l1 rank starts   l2 rank ends
 *     gap -> inner start -> the call, or all calls of a group -> inner end -> event end -> next gap
 *
 * Labels begin at l1 and are given in the order of the lines. */

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

/* The same as whole calls. */
static orr_code nccl_write_events(nccl_writer *w, uint32_t gpu, bool is_merged)
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

/* ---- rank ---- */

enum { FLUSH = 1 << 20 };

typedef struct stream_writer {
    nccl_writer *w;
    nccl_gpu *g;
    uint32_t stream; /* a text, or ORR__NONE */
    uint32_t cpu, bound;
    orr_map *groups; /* those that are written */
    nccl_chain chain;
    int64_t previous_end;
    bool has_previous;
} stream_writer;

/* ---- messages ---- */

static nccl_ends write_transfer(nccl_writer *w,
                                const nccl_call *c,
                                const nccl_transfer *t,
                                uint32_t cpu)
{
    const nccl_job *j = w->job;
    const nccl_comm *comm = &j->comms.all.at[c->comm];
    const nccl_seat *peer = nccl_comm_seat(&j->comms, comm, t->peer);
    nccl_lane l = {.w = w,
                   .call = c,
                   .cpu = cpu,
                   .protocol = t->protocol,
                   .next_id = t->first_id,
                   .context = j->first_class_context + nccl_message_class(j, c->comm, t->size)};
    const uint64_t count = nccl_transfer_messages(t);
    if (!peer || count > 1u << 20) {
        nccl_writer_fail(w,
                         peer ? "a message of more than 1,048,576 chunks (to rank %" PRIu64 ")"
                              : "the communicator has no rank %" PRIu64 ", which is sent to",
                         t->peer);
        return (nccl_ends){.is_empty = true};
    }
    const nccl_step s = {
        .what = c->op == ORR_NCCL_SEND ? ORR__SEND : ORR__RECV, .from = peer->gpu, .to = peer->gpu};
    if (t->protocol != ORR__SIMPLE)
        return nccl_lane_atom(&l, &s, t->size / 8 * 8 + (t->size % 8 ? 8 : 0));
    if (count == 1)
        return nccl_lane_atom(&l, &s, t->size);
    const nccl_fork f = nccl_pen_fork(&w->pen, cpu);
    for (uint64_t i = 0; i < count && !w->code; i++) {
        const uint64_t left = t->size - i * t->chunk;
        nccl_pen_branch(&w->pen, &f, nccl_lane_atom(&l, &s, left < t->chunk ? left : t->chunk));
    }
    return nccl_pen_join(&w->pen, &f, cpu);
}

static nccl_ends write_p2p(nccl_writer *w, const nccl_call *c, uint32_t *cpu)
{
    const nccl_gpu *g = &w->job->gpus.at[w->gpu];
    const nccl_transfer *all = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    const uint32_t first = *cpu, count = c->is_payload ? 1 : c->row_count;
    *cpu = first + count;
    if (c->is_payload) {
        const nccl_transfer t = nccl_guess_transfer(c);
        return write_transfer(w, c, &t, first);
    }
    const nccl_transfer *rows = &all[c->first_row];
    if (count == 1)
        return write_transfer(w, c, rows, first);
    const nccl_fork f = nccl_pen_fork(&w->pen, first);
    for (uint32_t i = 0; i < count && !w->code; i++) {
        if (nccl_transfer_is_cut(w->job, w->gpu, c, &rows[i]))
            w->left_out++;
        else
            nccl_pen_branch(&w->pen, &f, write_transfer(w, c, &rows[i], first + i));
    }
    return nccl_pen_join(&w->pen, &f, first);
}

static nccl_ends write_call(nccl_writer *w, const nccl_call *c, uint32_t *cpu)
{
    return nccl_op_is_p2p(c->op) ? write_p2p(w, c, cpu) : nccl_expand(w, c, cpu);
}

/* ---- streams ---- */

static bool is_written(const nccl_writer *w, const nccl_call *c)
{
    return nccl_call_is_known(c) && !nccl_call_is_cut(w->job, w->gpu, c);
}

/* Our own way keeps the members of a group on their own streams. */
static bool is_member(const stream_writer *s, const nccl_call *c, uint32_t group)
{
    const bool is_here =
        s->w->job->rules->has_one_group_stream || s->stream == ORR__NONE || c->stream == s->stream;
    return c->group == group && is_here;
}

/* Calls of a group are neighbours, and in the order of time as well: the first has the kernel, the
 * others end with it. */
static nccl_ends write_group(stream_writer *s, uint32_t call)
{
    nccl_writer *w = s->w;
    const nccl_call *calls = s->g->calls.at;
    const uint32_t group = calls[call].group;
    uint32_t cpu = s->cpu, first = call;
    while (first && calls[first - 1].group == group)
        first--;
    const nccl_fork f = nccl_pen_fork(&w->pen, s->cpu);
    for (size_t i = first; i < s->g->calls.count && calls[i].group == group && !w->code; i++) {
        if (!calls[i].has_time || !is_member(s, &calls[i], group))
            continue;
        if (is_written(w, &calls[i]))
            nccl_pen_branch(&w->pen, &f, write_call(w, &calls[i], &cpu));
        else
            w->left_out += nccl_call_is_known(&calls[i]);
    }
    s->bound = cpu > s->bound ? cpu : s->bound;
    return nccl_pen_join(&w->pen, &f, s->cpu);
}

/* True: this group was written already. */
static bool is_group_done(stream_writer *s, uint32_t group)
{
    bool is_new = false;
    if (!orr_map_put(s->groups, group, 1, &is_new) && !s->w->code)
        s->w->code = orr_no_memory(s->w->err);
    return !is_new;
}

/* Our own way passes over a group of which nothing is written. */
static bool has_written_member(const stream_writer *s, uint32_t call)
{
    const nccl_call *calls = s->g->calls.at;
    const uint32_t group = calls[call].group;
    if (s->w->job->rules->waits_for_sends)
        return true;
    while (call && calls[call - 1].group == group)
        call--;
    for (size_t i = call; i < s->g->calls.count && calls[i].group == group; i++)
        if (calls[i].has_time && is_member(s, &calls[i], group) && is_written(s->w, &calls[i]))
            return true;
    s->w->left_out++;
    return false;
}

static void write_gap(stream_writer *s, const nccl_call *c)
{
    nccl_writer *w = s->w;
    int64_t gap = c->from - s->previous_end;
    if (!s->has_previous)
        return;
    if (gap < 0 && w->job->rules->refuses_overlaps) {
        nccl_writer_fail(w,
                         "operations of one stream overlap by %" PRId64 " ns at %" PRId64
                         "; without --compat they may",
                         -gap, c->from);
        return;
    }
    if (gap < 0) {
        w->overlaps++;
        gap = 0;
    }
    nccl_pen_then(&w->pen, &s->chain, nccl_pen_calc(&w->pen, (uint64_t)gap, s->cpu));
}

/* NCCL completes a send as soon as its bytes are in the buffers between both GPUs, before the
 * receiver has posted.  A simulator that holds larger messages until then would deadlock if ranks
 * send first and receive later; so what follows such a send on its stream does not wait for it. */
static bool is_buffered_send(const stream_writer *s, const nccl_call *c)
{
    const uint64_t buffers = 4u << 20;
    const nccl_job *j = s->w->job;
    uint64_t bytes = c->bytes;
    if (j->rules->waits_for_sends || c->op != ORR_NCCL_SEND)
        return false;
    for (uint32_t i = 0; i < c->row_count && !c->is_payload; i++) {
        const nccl_transfer *t = &s->g->sends.at[c->first_row + i];
        bytes = i && t->size <= bytes ? bytes : t->size;
    }
    return bytes <= buffers;
}

static bool is_buffered(const stream_writer *s, uint32_t call)
{
    const nccl_call *calls = s->g->calls.at;
    const uint32_t group = calls[call].group;
    if (group == ORR__NONE)
        return is_buffered_send(s, &calls[call]);
    while (call && calls[call - 1].group == group)
        call--;
    for (size_t i = call; i < s->g->calls.count && calls[i].group == group; i++)
        if (calls[i].has_time && is_member(s, &calls[i], group) && is_written(s->w, &calls[i]) &&
            !is_buffered_send(s, &calls[i]))
            return false;
    return !s->w->job->rules->waits_for_sends;
}

static void rank_write_event(stream_writer *s, uint32_t call)
{
    nccl_writer *w = s->w;
    const nccl_call *c = &s->g->calls.at[call];
    uint32_t cpu = s->cpu;
    if (c->group == ORR__NONE ? !is_written(w, c)
                              : is_group_done(s, c->group) || !has_written_member(s, call)) {
        w->left_out += c->group == ORR__NONE;
        return;
    }
    write_gap(s, c);
    if (w->code)
        return;
    const nccl_ends all = c->group == ORR__NONE ? write_call(w, c, &cpu) : write_group(s, call);
    if (is_buffered(s, call))
        nccl_pen_beside(&w->pen, &s->chain, all);
    else
        nccl_pen_then(&w->pen, &s->chain, all);
    s->bound = cpu > s->bound ? cpu : s->bound;
    const bool is_later =
        !s->has_previous || c->to > s->previous_end || w->job->rules->refuses_overlaps;
    s->previous_end = is_later ? c->to : s->previous_end;
    s->has_previous = true;
}

static uint32_t rank_write_stream(nccl_writer *w,
                                  const nccl_streams *all,
                                  const nccl_stream *one,
                                  uint32_t cpu)
{
    stream_writer s = {.w = w,
                       .g = &w->job->gpus.at[w->gpu],
                       .stream = one->name,
                       .cpu = cpu,
                       .bound = cpu,
                       .groups = orr_map_create(16)};
    if (!s.groups && !w->code)
        w->code = orr_no_memory(w->err);
    for (uint32_t i = 0; i < one->count && !w->code; i++) {
        rank_write_event(&s, all->calls[one->from + i]);
        if (w->out && w->pen.to.len > FLUSH)
            orr_output_drain(w->out, &w->pen.to);
    }
    orr_map_destroy(s.groups);
    return s.bound;
}

/* All streams of one GPU. */
static orr_code write_rank(nccl_writer *w, uint32_t gpu, bool is_merged)
{
    nccl_streams streams;
    uint32_t cpu = 0;
    w->gpu = gpu;
    w->pen.labels = 0;
    orr_map_destroy(w->counters);
    w->counters = orr_map_create(64);
    if (!w->counters)
        return orr_no_memory(w->err);
    w->code = nccl_streams_make(w->job, gpu, is_merged, &streams, w->err);
    for (uint32_t i = 0; i < streams.count && !w->code; i++)
        cpu = rank_write_stream(w, &streams, &streams.at[i], cpu);
    nccl_streams_fini(&streams);
    if (!w->code && w->pen.is_full)
        w->code = orr_no_memory(w->err);
    return w->code;
}

/* ==== does every message that is sent get received?
 *
 * For each ordered pair of ranks two sums are kept: messages sent minus messages received, and the
 * same for a hash of each message (operation, number, size).  A matched message leaves both at
 * zero.  So there is one entry per pair, not per message; a false "all match" would need 64-bit
 * hashes to cancel out. */

typedef struct pair {
    uint32_t from, to;
    uint64_t sent, received;
    uint64_t sum;
} pair;

struct nccl_matching {
    orr_map *number; /* from << 32 | to */
    pair *pairs;
    size_t count, room;
    uint64_t last_key; /* messages of a pair come in runs */
    size_t last;
};

nccl_matching *nccl_matching_create(void)
{
    nccl_matching *m = orr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->number = orr_map_create(256);
    m->last_key = UINT64_MAX;
    if (m->number)
        return m;
    orr_free(m);
    return NULL;
}

void nccl_matching_destroy(nccl_matching *m)
{
    if (!m)
        return;
    orr_map_destroy(m->number);
    orr_free(m->pairs);
    orr_free(m);
}

static pair *find_pair(nccl_matching *m, uint32_t from, uint32_t to)
{
    const uint64_t key = (uint64_t)from << 32 | to;
    if (key == m->last_key)
        return &m->pairs[m->last];
    uint32_t at = orr_map_find(m->number, key, ORR__NONE);
    if (at == ORR__NONE) {
        at = (uint32_t)m->count;
        if (!orr_map_put(m->number, key, at, NULL) || !orr_grow(&m->pairs, &m->room, m->count + 1))
            return NULL;
        m->pairs[m->count++] = (pair){.from = from, .to = to};
    }
    m->last_key = key;
    m->last = at;
    return &m->pairs[at];
}

bool nccl_matching_add(nccl_matching *m, const nccl_match_key *key)
{
    pair *p = find_pair(m, key->from, key->to);
    if (!p)
        return false;
    const uint64_t hash = orr_hash_mix(
        orr_hash_mix(key->context + 0x9e3779b97f4a7c15u, key->id + 0xbf58476d1ce4e5b9u),
        key->bytes + 0x94d049bb133111ebu);
    p->sum += key->is_send ? hash : 0 - hash;
    *(key->is_send ? &p->sent : &p->received) += 1;
    return true;
}

orr_code nccl_matching_check(const nccl_matching *m, uint64_t *unmatched, orr_error *err)
{
    const pair *worst = NULL;
    *unmatched = 0;
    for (size_t i = 0; i < m->count; i++) {
        const pair *p = &m->pairs[i];
        if (p->sent == p->received && p->sum == 0)
            continue;
        const uint64_t more = p->sent > p->received ? p->sent - p->received : p->received - p->sent;
        *unmatched += more ? more : 1;
        worst = worst ? worst : p;
    }
    if (!worst)
        return ORR_OK;
    if (worst->sent != worst->received)
        return orr_fail(
            err, ORR_EINPUT, NULL,
            "rank %" PRIu32 " sends %" PRIu64 " messages to rank %" PRIu32
            ", which receives %" PRIu64
            ": the exports do not cover the same calls (--keep-unmatched writes them anyway)",
            worst->from, worst->sent, worst->to, worst->received);
    return orr_fail(err, ORR_EINPUT, NULL,
                    "rank %" PRIu32 " and rank %" PRIu32 " do not agree on the %" PRIu64
                    " messages from the first to the second (--keep-unmatched writes them anyway)",
                    worst->from, worst->to, worst->sent);
}

static const uint64_t default_budget = UINT64_C(512) << 20;

typedef struct run {
    nccl_job job;
    nccl_writer writer;
    orr_npkit *simple, *ll;
    nccl_matching *matching;
    bool is_merged;
} run;

/* ---- setting up ---- */

static orr_code init_job(nccl_job *j,
                         const orr_nccl_options *opt,
                         orr_nccl_report *report,
                         orr_error *err)
{
    *j = (nccl_job){.opt = opt,
                    .rules = nccl_nccl_rules(opt->rules),
                    .report = report,
                    .arena = orr_arena_create(),
                    .texts = orr_intern_create(),
                    .gpu_of = orr_map_create(64),
                    .member_of = orr_map_create(64),
                    .pair_of = orr_map_create(64),
                    .classes = orr_intern_create(),
                    .budget = opt->memory ? opt->memory : default_budget};
    const bool is_there =
        j->arena && j->texts && j->gpu_of && j->member_of && j->pair_of && j->classes;
    return is_there ? ORR_OK : orr_no_memory(err);
}

/* Plans of MSCCL and MSCCL++, comma-separated. */
static orr_code read_plans(nccl_job *j, const char *list, orr_error *err)
{
    orr_code code = ORR_OK;
    while (list && *list && !code) {
        const size_t n = strcspn(list, ",");
        char *path = orr_arena_text(j->arena, (orr_str){list, n});
        if (!path || !orr_grow(&j->plans.at, &j->plans.room, j->plans.count + 1))
            return orr_no_memory(err);
        if (!(code = coll_plan_read(path, &j->plans.at[j->plans.count], err)))
            j->plans.count++;
        list += n + (list[n] == ',');
    }
    return code;
}

static void fini_job(nccl_job *j)
{
    for (size_t i = 0; i < j->plans.count; i++)
        coll_plan_destroy(j->plans.at[i]);
    orr_free(j->plans.at);
    for (size_t i = 0; i < j->gpus.count; i++)
        nccl_gpu_drop_rows(&j->gpus.at[i]);
    nccl_comms_fini(&j->comms);
    orr_free(j->files.at);
    orr_free(j->gpus.at);
    orr_free(j->members.at);
    orr_free(j->rings.at);
    orr_free(j->trees.at);
    orr_free(j->pairs.at);
    orr_map_destroy(j->gpu_of);
    orr_map_destroy(j->member_of);
    orr_map_destroy(j->pair_of);
    orr_intern_destroy(j->classes);
    orr_intern_destroy(j->texts);
    nccl_user_contexts_free(j->user_contexts);
    orr_arena_destroy(j->arena);
}

static orr_code read_tables(run *r, orr_error *err)
{
    const orr_nccl_options *opt = r->job.opt;
    orr_code code = ORR_OK;
    if (opt->simple_table)
        code = orr_npkit_read(opt->simple_table, &r->simple, err);
    if (!code && opt->ll_table)
        code = orr_npkit_read(opt->ll_table, &r->ll, err);
    if (!code && opt->contexts)
        code = nccl_user_contexts_read(opt->contexts,
                                       nccl_power_of_ten(nccl_old_context_width(opt)) - 1,
                                       &r->job.user_contexts, err);
    return code;
}

static void give_tables(run *r)
{
    const orr_nccl_options *opt = r->job.opt;
    r->writer.tables[0] = r->ll ? r->ll : r->simple;
    r->writer.tables[1] = r->simple ? r->simple : r->ll;
    r->writer.choice.how = opt->has_seed                      ? ORR_NPKIT_DRAWN
                           : r->job.rules->takes_first_timing ? ORR_NPKIT_FIRST
                                                              : ORR_NPKIT_MEAN;
    r->writer.choice.seed = opt->seed;
}

/* ---- looking ---- */

static orr_code decide_merging(run *r, orr_error *err)
{
    nccl_job *j = &r->job;
    r->is_merged = j->opt->is_merged;
    for (size_t i = 0; i < j->comms.ranked.count && r->is_merged; i++) {
        const uint32_t gpu = j->comms.ranked.at[i];
        const orr_code code = nccl_gpu_ready(j, gpu, err);
        if (code)
            return code;
        r->is_merged = !gpu_overlaps(&j->gpus.at[gpu]);
    }
    j->report->is_merged = r->is_merged;
    return ORR_OK;
}

static uint32_t digits_of(uint64_t v)
{
    uint32_t n = 1;
    while (v >= 10) {
        v /= 10;
        n++;
    }
    return n;
}

uint64_t nccl_power_of_ten(uint32_t n)
{
    uint64_t v = 1;
    while (n-- && v <= UINT64_MAX / 10)
        v *= 10;
    return v;
}

/* Contexts below `contexts`, message numbers up to `most_id`. */
static orr_code choose_tags(const nccl_job *j, uint64_t most_id, nccl_tags *t, orr_error *err)
{
    const orr_nccl_options *opt = j->opt;
    const uint64_t contexts = j->contexts ? j->contexts : 1, end_of_32 = UINT32_MAX;
    const uint32_t width = opt->context_width ? opt->context_width : digits_of(contexts - 1);
    uint64_t most;
    *t = (nccl_tags){.factor = nccl_power_of_ten(width),
                     .limit = opt->context_width ? nccl_power_of_ten(width) : 0,
                     .id_limit = opt->id_width ? nccl_power_of_ten(opt->id_width) : 0,
                     .digits = opt->id_width ? opt->id_width + width : 0};
    const bool fits = !__builtin_mul_overflow(most_id, t->factor, &most) &&
                      !__builtin_add_overflow(most, contexts - 1, &most);
    if (opt->tag_bits == 32 && (!fits || most >= end_of_32)) {
        if (opt->context_width || opt->id_width)
            return orr_fail(err, ORR_EINPUT, NULL, "with these widths tags do not fit 32 bits");
        /* Used again after so many operations: messages with the same tag are then matched in their
         * order. */
        t->id_space = most_id + 1 < 1u << 20 ? most_id + 1 : 1u << 20;
        t->factor = (end_of_32 - 1) / t->id_space;
        return ORR_OK;
    }
    return fits ? ORR_OK : orr_fail(err, ORR_EINPUT, NULL, "tags do not fit 64 bits");
}

static orr_code check_matching(run *r, orr_error *err)
{
    orr_error words;
    if (!r->matching)
        return ORR_OK;
    const orr_code code = nccl_matching_check(r->matching, &r->job.report->unmatched, &words);
    if (!code || r->job.opt->allows_unmatched)
        return ORR_OK;
    if (err)
        *err = words;
    return code;
}

static orr_code measure(run *r, orr_error *err)
{
    nccl_job *j = &r->job;
    nccl_writer *w = &r->writer;
    orr_code code = ORR_OK;
    if (!j->rules->has_decimal_tags && !(r->matching = nccl_matching_create()))
        return orr_no_memory(err);
    w->matching = r->matching;
    w->pen.is_dry = true;
    w->tags.factor = 1;
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        code = nccl_gpu_ready(j, j->comms.ranked.at[i], err);
        if (!code)
            code = write_rank(w, j->comms.ranked.at[i], r->is_merged);
        j->report->operations += w->pen.labels;
    }
    if (!code)
        code = check_matching(r, err);
    if (!code && !j->rules->has_decimal_tags)
        code = choose_tags(j, w->most_id, &w->tags, err);
    w->matching = NULL;
    w->pen.is_dry = false;
    if (j->opt->output || j->opt->parts) {
        w->pen.messages = w->pen.bytes = w->overlaps = w->left_out = 0;
        j->report->operations = 0;
    }
    w->most_tag = 0;
    return code;
}

/* The old way finds most faults while it writes; where that would be too late, it measures too. */
static bool must_measure(const orr_nccl_options *opt)
{
    const int files = (opt->output != NULL) + (opt->events != NULL) + 2 * (opt->parts != NULL);
    const bool is_pipe = opt->output && strcmp(opt->output, "-") == 0;
    if (files == 0)
        return true; /* somebody wants to know, not to have */
    return (!nccl_nccl_rules(opt->rules)->has_decimal_tags || files > 1 || is_pipe) &&
           (opt->output || opt->parts);
}

/* ---- writing ---- */

static orr_code write_part(run *r, uint32_t gpu, orr_output *out, orr_error *err)
{
    nccl_writer *w = &r->writer;
    orr_code code = nccl_gpu_ready(&r->job, gpu, err);
    if (code)
        return code;
    w->out = out;
    orr_buf_print(&w->pen.to, "rank %" PRIu32 " {\n", r->job.gpus.at[gpu].rank);
    code = write_rank(w, gpu, r->is_merged);
    orr_buf_text(&w->pen.to, "}\n");
    r->job.report->operations += w->pen.labels;
    if (!code && w->pen.to.failed)
        code = orr_no_memory(err);
    orr_output_drain(out, &w->pen.to);
    return code;
}

static orr_code write_goal(run *r, const char *path, orr_error *err)
{
    nccl_job *j = &r->job;
    orr_output *out;
    orr_code code = orr_output_open(path, &out, err);
    if (code)
        return code;
    orr_progress_start(&j->progress, "writing", "ranks", j->comms.ranked.count,
                       !j->opt->shows_progress);
    orr_buf_print(&r->writer.pen.to, "num_ranks %zu\n", j->comms.ranked.count);
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        code = write_part(r, j->comms.ranked.at[i], out, err);
        orr_progress_add(&j->progress, 1);
    }
    orr_progress_end(&j->progress);
    orr_output_drain(out, &r->writer.pen.to);
    if (!code)
        return orr_output_commit(&out, err);
    orr_output_discard(out);
    return code;
}

static orr_code write_parts(run *r, orr_error *err)
{
    const nccl_job *j = &r->job;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        orr_output *out;
        const char *path = orr_arena_print(r->job.arena, "%s/rank_%zu.goal", j->opt->parts, i);
        if (!path)
            return orr_no_memory(err);
        if ((code = orr_output_open(path, &out, err)))
            return code;
        code = write_part(r, j->comms.ranked.at[i], out, err);
        if (!code)
            code = orr_output_commit(&out, err);
        orr_output_discard(out);
    }
    return code;
}

static orr_code write_events(run *r, orr_error *err)
{
    nccl_job *j = &r->job;
    nccl_writer *w = &r->writer;
    orr_output *out;
    orr_code code = orr_output_open(j->opt->events, &out, err);
    if (code)
        return code;
    orr_buf_print(&w->pen.to, "num_ranks %zu\n", j->comms.ranked.count);
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++) {
        const uint32_t gpu = j->comms.ranked.at[i];
        orr_buf_print(&w->pen.to, "\nrank %zu {\n", i);
        code = nccl_gpu_ready(j, gpu, err);
        if (!code)
            code = nccl_write_events(w, gpu, r->is_merged);
        orr_buf_text(&w->pen.to, "}\n");
        orr_output_drain(out, &w->pen.to);
    }
    w->pen.first_label = 0;
    if (!code)
        return orr_output_commit(&out, err);
    orr_output_discard(out);
    return code;
}

static void fill_report(const run *r)
{
    orr_nccl_report *report = r->job.report;
    const nccl_job *j = &r->job;
    report->messages = r->writer.pen.messages;
    report->bytes = r->writer.pen.bytes;
    report->overlaps = r->writer.overlaps;
    report->most_tag = r->writer.most_tag;
    report->left_out_calls = r->writer.left_out;
    for (size_t i = 0; i < j->gpus.count; i++)
        report->by_time += j->gpus.at[i].is_by_time;
    for (size_t i = 0; i < j->gpus.count; i++)
        report->overlaps += j->gpus.at[i].overlaps;
}

static orr_code convert(run *r, const char *const *paths, size_t count, orr_error *err)
{
    nccl_job *j = &r->job;
    const orr_nccl_options *opt = j->opt;
    orr_code code = read_tables(r, err);
    if (!code)
        code = nccl_job_find_files(j, paths, count, err);
    if (!code)
        code = nccl_job_scan(j, err);
    if (!code)
        code = nccl_comms_build(j, err);
    if (!code && j->comms.ranked.count == 0)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "no GPU of the exports uses NCCL, or NCCL was not annotated");
    if (!code && !j->rules->keeps_unmatched)
        code = nccl_cut_survey(j, err);
    if (!code)
        code = decide_merging(r, err);
    if (!code)
        code = nccl_writer_init(&r->writer, j, err);
    give_tables(r);
    if (!code && must_measure(opt))
        code = measure(r, err);
    if (!code && opt->events)
        code = write_events(r, err);
    if (!code && opt->parts)
        code = write_parts(r, err);
    if (!code && opt->output)
        code = write_goal(r, opt->output, err);
    fill_report(r);
    return code;
}

orr_code orr_nccl_convert(const char *const *paths,
                          size_t path_count,
                          const orr_nccl_options *opt,
                          orr_nccl_report *report,
                          orr_error *err)
{
    orr_nccl_report own;
    run *r = orr_alloc(1, sizeof *r);
    if (!r)
        return orr_no_memory(err);
    if (!report)
        report = &own;
    *report = (orr_nccl_report){0};
    orr_code code = init_job(&r->job, opt, report, err);
    if (!code)
        code = read_plans(&r->job, opt->plans, err);
    if (!code)
        code = convert(r, paths, path_count, err);
    nccl_writer_fini(&r->writer);
    nccl_matching_destroy(r->matching);
    orr_npkit_free(r->simple);
    orr_npkit_free(r->ll);
    fini_job(&r->job);
    orr_free(r);
    return code;
}
