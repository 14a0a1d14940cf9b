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

void orr__writer_fail(orr__writer *w, const char *fmt, ...)
{
    char words[256], name[96];
    va_list list;
    if (w->code)
        return;
    va_start(list, fmt);
    vsnprintf(words, sizeof words, fmt, list);
    va_end(list);
    w->code =
        orr_fail(w->err, ORR_EINPUT, NULL, "%s: %s", orr__gpu_name(w->job, w->gpu, name), words);
}

static void no_memory(orr__writer *w)
{
    if (!w->code)
        w->code = orr_no_memory(w->err);
}

orr_code orr__writer_init(orr__writer *w, orr__job *j, orr_error *err)
{
    const size_t ends = 2 * j->comms.ranked.count + 2;
    w->job = j;
    w->err = err;
    w->counters = orr_map_create(64);
    w->stamps = orr_alloc(ends, sizeof *w->stamps);
    w->counts = orr_alloc(ends, sizeof *w->counts);
    return w->counters && w->stamps && w->counts ? ORR_OK : orr_no_memory(err);
}

void orr__writer_fini(orr__writer *w)
{
    orr__pen_fini(&w->pen);
    orr_map_destroy(w->counters);
    orr_free(w->stamps);
    orr_free(w->counts);
}

/* ---- tags ---- */

static uint64_t old_id(orr__lane *l, uint32_t peer, bool is_send)
{
    orr__writer *w = l->w;
    const uint64_t key = ((uint64_t)peer << 18 | l->call->context) << 1 | is_send;
    const uint32_t id = orr_map_find(w->counters, key, 0);
    if (!orr_map_put(w->counters, key, id + 1, NULL))
        no_memory(w);
    if (id > OLD_MOST_ID || l->call->context > OLD_MOST_CONTEXT)
        orr__writer_fail(w,
                         "more than 10,000 messages to or from rank %" PRIu32 " in context %" PRIu64
                         ", for which the old tags have no room; without --compat they do",
                         peer, l->call->context);
    return id;
}

static uint64_t own_id(orr__lane *l, uint32_t peer, bool is_send)
{
    orr__writer *w = l->w;
    const size_t at = 2 * (size_t)peer + is_send;
    if (orr__op_is_p2p(l->call->op))
        return l->next_id++;
    if (w->stamps[at] != w->stamp) {
        w->stamps[at] = w->stamp;
        w->counts[at] = 0;
    }
    return w->counts[at]++;
}

static uint64_t make_tag(orr__writer *w, uint64_t id, uint64_t context)
{
    const orr__tags *t = &w->tags;
    if ((t->id_limit && id >= t->id_limit) || (t->limit && context >= t->limit))
        orr__writer_fail(w,
                         "message %" PRIu64 " of operation %" PRIu64
                         " does not fit the widths given for tags",
                         id, context);
    const uint64_t tag =
        t->id_space ? id % t->id_space * t->factor + context % t->factor : id * t->factor + context;
    w->most_tag = tag > w->most_tag ? tag : w->most_tag;
    return tag;
}

static void match(
    orr__lane *l, const orr__message *m, uint64_t id, uint64_t context, uint64_t bytes)
{
    orr__writer *w = l->w;
    const uint32_t me = w->job->gpus.at[w->gpu].rank;
    w->most_id = id > w->most_id ? id : w->most_id;
    if (!orr__matching_add(w->matching, &(orr__match_key){.from = m->is_send ? me : m->peer,
                                                          .to = m->is_send ? m->peer : me,
                                                          .context = context,
                                                          .id = id,
                                                          .bytes = bytes,
                                                          .is_send = m->is_send}))
        no_memory(w);
}

/* ---- atoms ---- */

static orr__ends message(orr__lane *l, bool is_send, uint32_t gpu, uint64_t bytes)
{
    orr__writer *w = l->w;
    const orr__job *j = w->job;
    const bool is_old = j->rules->has_decimal_tags;
    const bool is_near = j->gpus.at[gpu].node == j->gpus.at[w->gpu].node;
    orr__message m = {.bytes = is_near ? 0 : bytes,
                      .peer = j->gpus.at[gpu].rank,
                      .cpu = j->rules->has_any_cpu ? l->cpu : l->cpu % CPUS,
                      .digits = is_old ? OLD_DIGITS : w->tags.digits,
                      .is_send = is_send};
    const uint64_t id = is_old ? old_id(l, m.peer, is_send) : own_id(l, m.peer, is_send);
    const uint64_t context = is_old ? l->call->context : l->context;
    if (w->matching)
        match(l, &m, id, context, bytes);
    m.tag = is_old ? id * (OLD_MOST_CONTEXT + 1) + context : make_tag(w, id, context);
    const orr__ends sent = orr__pen_message(&w->pen, &m);
    if (!is_near)
        return sent;
    orr__chain both = {0};
    orr__pen_then(&w->pen, &both, sent);
    orr__pen_then(&w->pen, &both, orr__pen_calc(&w->pen, bytes / 300, m.cpu));
    return orr__pen_chained(&both);
}

static uint64_t work_time(const orr__lane *l, unsigned what, uint64_t bytes)
{
    const orr__writer *w = l->w;
    const orr_npkit *t = w->tables[l->protocol == ORR__SIMPLE];
    uint64_t time = 0;
    if (t && (what & ORR__REDUCE))
        time += orr_npkit_time(t, ORR_NPKIT_REDUCE, &w->choice, bytes);
    if (t && (what & ORR__COPY))
        time += orr_npkit_time(t, ORR_NPKIT_COPY, &w->choice, bytes);
    return time;
}

/* What goes over the wire: LL128 has 8 bytes of flags in every 128. */
static uint64_t wire_bytes(const orr__lane *l, uint64_t bytes)
{
    if (l->protocol != ORR__LL128 || l->w->job->rules->has_plain_ll128)
        return bytes;
    return (bytes / 120 + (bytes % 120 != 0)) * 128;
}

orr__ends orr__lane_atom(orr__lane *l, const orr__step *s, uint64_t bytes)
{
    orr__writer *w = l->w;
    orr__chain steps = {0};
    if (w->code)
        return (orr__ends){.is_empty = true};
    if (s->what & ORR__RECV)
        orr__pen_then(&w->pen, &steps, message(l, false, s->from, wire_bytes(l, bytes)));
    if (s->what & (ORR__REDUCE | ORR__COPY)) {
        const uint32_t cpu = w->job->rules->has_any_cpu ? l->cpu : l->cpu % CPUS;
        orr__pen_then(&w->pen, &steps, orr__pen_calc(&w->pen, work_time(l, s->what, bytes), cpu));
    }
    if (s->what & ORR__SEND)
        orr__pen_then(&w->pen, &steps, message(l, true, s->to, wire_bytes(l, bytes)));
    if (w->pen.is_full)
        no_memory(w);
    return orr__pen_chained(&steps);
}

static uint64_t round_up(uint64_t v, uint64_t unit)
{
    return v / unit * unit + (v % unit ? unit : 0);
}

orr__ends orr__lane_slices(
    orr__lane *l, const orr__step *s, uint64_t bytes, uint64_t cap, uint64_t slices)
{
    orr__pen *pen = &l->w->pen;
    if (l->protocol !=
        ORR__SIMPLE) /* LL128 works on whole messages: their lines are counted in wire_bytes */
        return orr__lane_atom(l, s, round_up(bytes, 8));
    const uint64_t even = round_up(bytes, 16 * slices) / slices;
    const uint64_t piece = even > cap / 32 ? even : cap / 32;
    const orr__fork f = orr__pen_fork(pen, l->cpu);
    uint64_t left = bytes;
    for (uint64_t i = 0; i < slices && left && !l->w->code; i++) {
        const uint64_t size = left < piece ? left : piece;
        orr__pen_branch(pen, &f, orr__lane_atom(l, s, size));
        left -= size;
    }
    return orr__pen_join(pen, &f, l->cpu);
}
