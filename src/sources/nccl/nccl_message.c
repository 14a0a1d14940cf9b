/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_message.c - the atoms of a schedule: receive, reduce, copy, send one piece (goal.md 5.7), and their tags (5.5).
 *
 * Between nodes a message is a message.  Inside a node it is an empty one, and each end calculates for half the time that
 * 150 GB/s take.  Inside one call our own way numbers messages by peer and direction; both ends write them in the same
 * order, so they agree.  The old way numbers them through all calls of one context.
 * Cost: no allocation for a message but for the text itself. */
#include "nccl_write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { OLD_MOST_ID = 9999, OLD_MOST_CONTEXT = 99999, OLD_DIGITS = 9, CPUS = 256 };

void nccl_writer_fail(nccl_writer *w, const char *fmt, ...)
{
    char words[256], name[96];
    va_list list;
    if (w->code)
        return;
    va_start(list, fmt);
    vsnprintf(words, sizeof words, fmt, list);
    va_end(list);
    w->code =
        orr_fail(w->err, ORR_EINPUT, NULL, "%s: %s", nccl_gpu_name(w->job, w->gpu, name), words);
}

static void no_memory(nccl_writer *w)
{
    if (!w->code)
        w->code = orr_no_memory(w->err);
}

orr_code nccl_writer_init(nccl_writer *w, nccl_job *j, orr_error *err)
{
    const size_t ends = 2 * j->comms.ranked.count + 2;
    w->job = j;
    w->err = err;
    w->counters = orr_map_create(64);
    w->stamps = orr_alloc(ends, sizeof *w->stamps);
    w->counts = orr_alloc(ends, sizeof *w->counts);
    return w->counters && w->stamps && w->counts ? ORR_OK : orr_no_memory(err);
}

void nccl_writer_fini(nccl_writer *w)
{
    nccl_pen_fini(&w->pen);
    orr_map_destroy(w->counters);
    orr_free(w->stamps);
    orr_free(w->counts);
}

/* ---- tags ---- */

static uint64_t old_id(nccl_lane *l, uint32_t peer, bool is_send)
{
    nccl_writer *w = l->w;
    const uint64_t key = ((uint64_t)peer << 18 | l->call->context) << 1 | is_send;
    const uint32_t id = orr_map_find(w->counters, key, 0);
    if (!orr_map_put(w->counters, key, id + 1, NULL))
        no_memory(w);
    if (id > OLD_MOST_ID || l->call->context > OLD_MOST_CONTEXT)
        nccl_writer_fail(w,
                         "more than 10,000 messages to or from rank %" PRIu32 " in context %" PRIu64
                         ", for which the old tags have no room; without --compat they do",
                         peer, l->call->context);
    return id;
}

static uint64_t own_id(nccl_lane *l, uint32_t peer, bool is_send)
{
    nccl_writer *w = l->w;
    const size_t at = 2 * (size_t)peer + is_send;
    if (nccl_op_is_p2p(l->call->op))
        return l->next_id++;
    if (w->stamps[at] != w->stamp) {
        w->stamps[at] = w->stamp;
        w->counts[at] = 0;
    }
    return w->counts[at]++;
}

static uint64_t make_tag(nccl_writer *w, uint64_t id, uint64_t context)
{
    const nccl_tags *t = &w->tags;
    if ((t->id_limit && id >= t->id_limit) || (t->limit && context >= t->limit))
        nccl_writer_fail(w,
                         "message %" PRIu64 " of operation %" PRIu64
                         " does not fit the widths given for tags",
                         id, context);
    const uint64_t tag =
        t->id_space ? id % t->id_space * t->factor + context % t->factor : id * t->factor + context;
    w->most_tag = tag > w->most_tag ? tag : w->most_tag;
    return tag;
}

static void match(
    nccl_lane *l, const nccl_message *m, uint64_t id, uint64_t context, uint64_t bytes)
{
    nccl_writer *w = l->w;
    const uint32_t me = w->job->gpus.at[w->gpu].rank;
    w->most_id = id > w->most_id ? id : w->most_id;
    if (!nccl_matching_add(w->matching, &(nccl_match_key){.from = m->is_send ? me : m->peer,
                                                          .to = m->is_send ? m->peer : me,
                                                          .context = context,
                                                          .id = id,
                                                          .bytes = bytes,
                                                          .is_send = m->is_send}))
        no_memory(w);
}

/* ---- atoms ---- */

static nccl_ends message(nccl_lane *l, bool is_send, uint32_t gpu, uint64_t bytes)
{
    nccl_writer *w = l->w;
    const nccl_job *j = w->job;
    const bool is_old = j->rules->has_decimal_tags;
    const bool is_near = j->gpus.at[gpu].node == j->gpus.at[w->gpu].node;
    nccl_message m = {.bytes = is_near ? 0 : bytes,
                      .peer = j->gpus.at[gpu].rank,
                      .cpu = j->rules->has_any_cpu ? l->cpu : l->cpu % CPUS,
                      .digits = is_old ? OLD_DIGITS : w->tags.digits,
                      .is_send = is_send};
    const uint64_t id = is_old ? old_id(l, m.peer, is_send) : own_id(l, m.peer, is_send);
    const uint64_t context = is_old ? l->call->context : l->context;
    if (w->matching)
        match(l, &m, id, context, bytes);
    m.tag = is_old ? id * (OLD_MOST_CONTEXT + 1) + context : make_tag(w, id, context);
    const nccl_ends sent = nccl_pen_message(&w->pen, &m);
    if (!is_near)
        return sent;
    nccl_chain both = {0};
    nccl_pen_then(&w->pen, &both, sent);
    nccl_pen_then(&w->pen, &both, nccl_pen_calc(&w->pen, bytes / 300, m.cpu));
    return nccl_pen_chained(&both);
}

static uint64_t work_time(const nccl_lane *l, unsigned what, uint64_t bytes)
{
    const nccl_writer *w = l->w;
    const orr_npkit *t = w->tables[l->protocol == ORR__SIMPLE];
    uint64_t time = 0;
    if (t && (what & ORR__REDUCE))
        time += orr_npkit_time(t, ORR_NPKIT_REDUCE, &w->choice, bytes);
    if (t && (what & ORR__COPY))
        time += orr_npkit_time(t, ORR_NPKIT_COPY, &w->choice, bytes);
    return time;
}

/* What goes over the wire: LL128 has 8 bytes of flags in every 128. */
static uint64_t wire_bytes(const nccl_lane *l, uint64_t bytes)
{
    if (l->protocol != ORR__LL128 || l->w->job->rules->has_plain_ll128)
        return bytes;
    return (bytes / 120 + (bytes % 120 != 0)) * 128;
}

nccl_ends nccl_lane_atom(nccl_lane *l, const nccl_step *s, uint64_t bytes)
{
    nccl_writer *w = l->w;
    nccl_chain steps = {0};
    if (w->code)
        return (nccl_ends){.is_empty = true};
    if (s->what & ORR__RECV)
        nccl_pen_then(&w->pen, &steps, message(l, false, s->from, wire_bytes(l, bytes)));
    if (s->what & (ORR__REDUCE | ORR__COPY)) {
        const uint32_t cpu = w->job->rules->has_any_cpu ? l->cpu : l->cpu % CPUS;
        nccl_pen_then(&w->pen, &steps, nccl_pen_calc(&w->pen, work_time(l, s->what, bytes), cpu));
    }
    if (s->what & ORR__SEND)
        nccl_pen_then(&w->pen, &steps, message(l, true, s->to, wire_bytes(l, bytes)));
    if (w->pen.is_full)
        no_memory(w);
    return nccl_pen_chained(&steps);
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
    return v / unit * unit + (v % unit ? unit : 0);
}

nccl_ends nccl_lane_slices(
    nccl_lane *l, const nccl_step *s, uint64_t bytes, uint64_t cap, uint64_t slices)
{
    nccl_pen *pen = &l->w->pen;
    if (l->protocol !=
        ORR__SIMPLE) /* LL128 works on whole messages: their lines are counted in wire_bytes */
        return nccl_lane_atom(l, s, round_up(bytes, 8));
    const uint64_t even = round_up(bytes, 16 * slices) / slices;
    const uint64_t piece = even > cap / 32 ? even : cap / 32;
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    uint64_t left = bytes;
    for (uint64_t i = 0; i < slices && left && !l->w->code; i++) {
        const uint64_t size = left < piece ? left : piece;
        nccl_pen_branch(pen, &f, nccl_lane_atom(l, s, size));
        left -= size;
    }
    return nccl_pen_join(pen, &f, l->cpu);
}
