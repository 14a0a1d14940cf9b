/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_rank.c - one GPU's schedule: its streams beside one another, each a sequence of calls with the time between them
 * (goal.md 5.6).
 *
 * Each call gets cpus of its own from the stream's first on; a stream begins where the one before it used none any more.
 * What a group holds runs side by side. */
#include "nccl_write.h"

#include <inttypes.h>

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

/* Calls of a group are neighbours, and in the order of time as well: the first has the kernel, the others end with it. */
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

/* NCCL ends a send as soon as its bytes are in the buffers between both GPUs, which the receiver need not have asked for.  A
 * simulator that holds larger messages until they are asked for would wait for ever where ranks send first and receive
 * then; so what follows such a send on its stream does not wait for it. */
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

static void write_event(stream_writer *s, uint32_t call)
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

static uint32_t write_stream(nccl_writer *w,
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
        write_event(&s, all->calls[one->from + i]);
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
        cpu = write_stream(w, &streams, &streams.at[i], cpu);
    nccl_streams_fini(&streams);
    if (!w->code && w->pen.is_full)
        w->code = orr_no_memory(w->err);
    return w->code;
}
