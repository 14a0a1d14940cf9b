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
    orr__writer *w;
    orr__gpu *g;
    uint32_t stream; /* a text, or ORR__NONE */
    uint32_t cpu, bound;
    orr_map *groups; /* those that are written */
    orr__chain chain;
    int64_t previous_end;
    bool has_previous;
} stream_writer;

/* ---- messages ---- */

static orr__ends write_transfer(orr__writer *w,
                                const orr__call *c,
                                const orr__transfer *t,
                                uint32_t cpu)
{
    const orr__job *j = w->job;
    const orr__comm *comm = &j->comms.all.at[c->comm];
    const orr__seat *peer = orr__comm_seat(&j->comms, comm, t->peer);
    orr__lane l = {.w = w,
                   .call = c,
                   .cpu = cpu,
                   .protocol = t->protocol,
                   .next_id = t->first_id,
                   .context = j->first_class_context + orr__message_class(j, c->comm, t->size)};
    const uint64_t count = orr__transfer_messages(t);
    if (!peer || count > 1u << 20) {
        orr__writer_fail(w,
                         peer ? "a message of more than 1,048,576 chunks (to rank %" PRIu64 ")"
                              : "the communicator has no rank %" PRIu64 ", which is sent to",
                         t->peer);
        return (orr__ends){.is_empty = true};
    }
    const orr__step s = {
        .what = c->op == ORR_NCCL_SEND ? ORR__SEND : ORR__RECV, .from = peer->gpu, .to = peer->gpu};
    if (t->protocol != ORR__SIMPLE)
        return orr__lane_atom(&l, &s, t->size / 8 * 8 + (t->size % 8 ? 8 : 0));
    if (count == 1)
        return orr__lane_atom(&l, &s, t->size);
    const orr__fork f = orr__pen_fork(&w->pen, cpu);
    for (uint64_t i = 0; i < count && !w->code; i++) {
        const uint64_t left = t->size - i * t->chunk;
        orr__pen_branch(&w->pen, &f, orr__lane_atom(&l, &s, left < t->chunk ? left : t->chunk));
    }
    return orr__pen_join(&w->pen, &f, cpu);
}

static orr__ends write_p2p(orr__writer *w, const orr__call *c, uint32_t *cpu)
{
    const orr__gpu *g = &w->job->gpus.at[w->gpu];
    const orr__transfer *all = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    const uint32_t first = *cpu, count = c->is_payload ? 1 : c->row_count;
    *cpu = first + count;
    if (c->is_payload) {
        const orr__transfer t = orr__guess_transfer(c);
        return write_transfer(w, c, &t, first);
    }
    const orr__transfer *rows = &all[c->first_row];
    if (count == 1)
        return write_transfer(w, c, rows, first);
    const orr__fork f = orr__pen_fork(&w->pen, first);
    for (uint32_t i = 0; i < count && !w->code; i++) {
        if (orr__transfer_is_cut(w->job, w->gpu, c, &rows[i]))
            w->left_out++;
        else
            orr__pen_branch(&w->pen, &f, write_transfer(w, c, &rows[i], first + i));
    }
    return orr__pen_join(&w->pen, &f, first);
}

static orr__ends write_call(orr__writer *w, const orr__call *c, uint32_t *cpu)
{
    return orr__op_is_p2p(c->op) ? write_p2p(w, c, cpu) : orr__expand(w, c, cpu);
}

/* ---- streams ---- */

static bool is_written(const orr__writer *w, const orr__call *c)
{
    return orr__call_is_known(c) && !orr__call_is_cut(w->job, w->gpu, c);
}

/* Our own way keeps the members of a group on their own streams. */
static bool is_member(const stream_writer *s, const orr__call *c, uint32_t group)
{
    const bool is_here =
        s->w->job->rules->has_one_group_stream || s->stream == ORR__NONE || c->stream == s->stream;
    return c->group == group && is_here;
}

/* Calls of a group are neighbours, and in the order of time as well: the first has the kernel, the others end with it. */
static orr__ends write_group(stream_writer *s, uint32_t call)
{
    orr__writer *w = s->w;
    const orr__call *calls = s->g->calls.at;
    const uint32_t group = calls[call].group;
    uint32_t cpu = s->cpu, first = call;
    while (first && calls[first - 1].group == group)
        first--;
    const orr__fork f = orr__pen_fork(&w->pen, s->cpu);
    for (size_t i = first; i < s->g->calls.count && calls[i].group == group && !w->code; i++) {
        if (!calls[i].has_time || !is_member(s, &calls[i], group))
            continue;
        if (is_written(w, &calls[i]))
            orr__pen_branch(&w->pen, &f, write_call(w, &calls[i], &cpu));
        else
            w->left_out += orr__call_is_known(&calls[i]);
    }
    s->bound = cpu > s->bound ? cpu : s->bound;
    return orr__pen_join(&w->pen, &f, s->cpu);
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
    const orr__call *calls = s->g->calls.at;
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

static void write_gap(stream_writer *s, const orr__call *c)
{
    orr__writer *w = s->w;
    int64_t gap = c->from - s->previous_end;
    if (!s->has_previous)
        return;
    if (gap < 0 && w->job->rules->refuses_overlaps) {
        orr__writer_fail(w,
                         "operations of one stream overlap by %" PRId64 " ns at %" PRId64
                         "; without --compat they may",
                         -gap, c->from);
        return;
    }
    if (gap < 0) {
        w->overlaps++;
        gap = 0;
    }
    orr__pen_then(&w->pen, &s->chain, orr__pen_calc(&w->pen, (uint64_t)gap, s->cpu));
}

/* NCCL ends a send as soon as its bytes are in the buffers between both GPUs, which the receiver need not have asked for.  A
 * simulator that holds larger messages until they are asked for would wait for ever where ranks send first and receive
 * then; so what follows such a send on its stream does not wait for it. */
static bool is_buffered_send(const stream_writer *s, const orr__call *c)
{
    const uint64_t buffers = 4u << 20;
    const orr__job *j = s->w->job;
    uint64_t bytes = c->bytes;
    if (j->rules->waits_for_sends || c->op != ORR_NCCL_SEND)
        return false;
    for (uint32_t i = 0; i < c->row_count && !c->is_payload; i++) {
        const orr__transfer *t = &s->g->sends.at[c->first_row + i];
        bytes = i && t->size <= bytes ? bytes : t->size;
    }
    return bytes <= buffers;
}

static bool is_buffered(const stream_writer *s, uint32_t call)
{
    const orr__call *calls = s->g->calls.at;
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
    orr__writer *w = s->w;
    const orr__call *c = &s->g->calls.at[call];
    uint32_t cpu = s->cpu;
    if (c->group == ORR__NONE ? !is_written(w, c)
                              : is_group_done(s, c->group) || !has_written_member(s, call)) {
        w->left_out += c->group == ORR__NONE;
        return;
    }
    write_gap(s, c);
    if (w->code)
        return;
    const orr__ends all = c->group == ORR__NONE ? write_call(w, c, &cpu) : write_group(s, call);
    if (is_buffered(s, call))
        orr__pen_beside(&w->pen, &s->chain, all);
    else
        orr__pen_then(&w->pen, &s->chain, all);
    s->bound = cpu > s->bound ? cpu : s->bound;
    const bool is_later =
        !s->has_previous || c->to > s->previous_end || w->job->rules->refuses_overlaps;
    s->previous_end = is_later ? c->to : s->previous_end;
    s->has_previous = true;
}

static uint32_t write_stream(orr__writer *w,
                             const orr__streams *all,
                             const orr__stream *one,
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

orr_code orr__write_rank(orr__writer *w, uint32_t gpu, bool is_merged)
{
    orr__streams streams;
    uint32_t cpu = 0;
    w->gpu = gpu;
    w->pen.labels = 0;
    orr_map_destroy(w->counters);
    w->counters = orr_map_create(64);
    if (!w->counters)
        return orr_no_memory(w->err);
    w->code = orr__streams_make(w->job, gpu, is_merged, &streams, w->err);
    for (uint32_t i = 0; i < streams.count && !w->code; i++)
        cpu = write_stream(w, &streams, &streams.at[i], cpu);
    orr__streams_fini(&streams);
    if (!w->code && w->pen.is_full)
        w->code = orr_no_memory(w->err);
    return w->code;
}
