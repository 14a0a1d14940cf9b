/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_rank.c - one GPU's schedule: its streams beside one another, each a sequence of calls with
 * the time between them (goal.md 5.6).
 *
 * Each call gets cpus of its own from the stream's first on; a stream begins where the one before
 * it used none any more. What a group holds runs side by side. */
#include "nccl_write.h"

#include <inttypes.h>
#include <stdlib.h>

/* nccl_rank.c: calls with a time by stream, as they are written. */
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
    qsort(heads, count, sizeof *heads, head_order);
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
    qsort(items, n, sizeof *items, item_order);
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

bool nccl_gpu_overlaps(const nccl_gpu *g)
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

/* NCCL ends a send as soon as its bytes are in the buffers between both GPUs, which the receiver
 * need not have asked for.  A simulator that holds larger messages until they are asked for would
 * wait for ever where ranks send first and receive then; so what follows such a send on its stream
 * does not wait for it. */
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

orr_code nccl_write_rank(nccl_writer *w, uint32_t gpu, bool is_merged)
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
