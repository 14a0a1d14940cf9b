/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_expand.c - expands collectives on rings and trees (goal.md 5.7).
 *
 * A collective is its channels in parallel, a channel its chunks in parallel; all of a channel runs
 * on one cpu, which serialises the chunks. Our rules differ in two places of the ring all-reduce:
 * the cap of slices is the same for all steps, so that sender and receiver cut a chunk alike, and a
 * rank's chunk is that of its place in the ring, not of its number. Invariant: both ends of a
 * message write the same messages of a call in the same order. Cost: in proportion to what is
 * written; a work of more than 2^20 chunks is refused. */
#include "nccl_write.h"

#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct nccl_plan {
    nccl_writer *w;
    const nccl_call *call;
    const nccl_info *info;
    const nccl_comm *comm;
    const nccl_seat *seat;
    uint64_t slices, cap;
} nccl_plan;

typedef nccl_ends nccl_expand_channel(nccl_plan *p,
                                      nccl_lane *l,
                                      uint32_t channel,
                                      const nccl_work *work);

/* nccl_expand.c: how NCCL does a call of which only name and size are known. */
typedef struct nccl_guess {
    nccl_info info;
    uint32_t channels;
} nccl_guess;

/* The atoms of a schedule: receive, reduce, copy, send one piece (goal.md 5.7), and their tags
 * (goal.md 5.5).
 *
 * Between nodes a message is sent as such.  Inside a node it is empty, and each end calculates for
 * half the time at 150 GB/s.  Within one call our rules number messages by peer and direction; both
 * ends write them in the same order, so they agree.  The old generator numbers them across all
 * calls of one context. Cost: no allocation for a message but for the text itself. */

enum { CPUS = 256 };

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
    const orr_nccl_options *opt = w->job->opt;
    const uint64_t key = ((uint64_t)peer << 32 | l->call->context) << 1 | is_send;
    const uint32_t id = orr_map_find(w->counters, key, 0);
    if (!orr_map_put(w->counters, key, id + 1, NULL))
        no_memory(w);
    if (id >= nccl_power_of_ten(nccl_old_id_width(opt)) ||
        l->call->context >= nccl_power_of_ten(nccl_old_context_width(opt)))
        nccl_writer_fail(w,
                         "more than %" PRIu64 " messages to or from rank %" PRIu32
                         " in context %" PRIu64
                         ", for which the old tags have no room; wider ones have (--id-width), and "
                         "those without --compat",
                         nccl_power_of_ten(nccl_old_id_width(opt)), peer, l->call->context);
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

/* id: that both ends give it, where both know one; UINT64_MAX: counted. */
static nccl_ends numbered_message(
    nccl_lane *l, bool is_send, uint32_t gpu, uint64_t bytes, uint64_t number)
{
    nccl_writer *w = l->w;
    const nccl_job *j = w->job;
    const bool is_decimal = j->rules->has_decimal_tags;
    const bool is_near = j->gpus.at[gpu].node == j->gpus.at[w->gpu].node;
    nccl_message m = {.bytes = is_near ? 0 : bytes,
                      .peer = j->gpus.at[gpu].rank,
                      .cpu = j->rules->has_any_cpu ? l->cpu : l->cpu % CPUS,
                      .digits = is_decimal
                                    ? nccl_old_id_width(j->opt) + nccl_old_context_width(j->opt)
                                    : w->tags.digits,
                      .is_send = is_send};
    const uint64_t id = is_decimal             ? old_id(l, m.peer, is_send)
                        : number != UINT64_MAX ? number
                                               : own_id(l, m.peer, is_send);
    const uint64_t context = is_decimal ? l->call->context : l->context;
    if (w->matching)
        match(l, &m, id, context, bytes);
    m.tag = is_decimal ? id * nccl_power_of_ten(nccl_old_context_width(j->opt)) + context
                       : make_tag(w, id, context);
    const nccl_ends sent = nccl_pen_message(&w->pen, &m);
    if (!is_near)
        return sent;
    nccl_chain both = {0};
    nccl_pen_then(&w->pen, &both, sent);
    nccl_pen_then(&w->pen, &both, nccl_pen_calc(&w->pen, bytes / 300, m.cpu));
    return nccl_pen_chained(&both);
}

static nccl_ends message(nccl_lane *l, bool is_send, uint32_t gpu, uint64_t bytes)
{
    return numbered_message(l, is_send, gpu, bytes, UINT64_MAX);
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

/* The piece cut up as the protocol has it; cap: bytes of the largest slice; slices: how many at
 * most. */
static nccl_ends nccl_lane_slices(
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

/* How NCCL likely does a call of which only the name and the size are known.
 *
 * NCCL's own payloads say what was asked for, not how it was done.  All ranks of a call must come
 * to the same answer, so it depends on the call's size and on what is the same for the whole job:
 * rings; LL up to 64 KiB, LL128 up to 1 MiB, Simple beyond; a channel for each 64 KiB, up to the
 * largest grid of any NCCL kernel; steps of 512 KiB, as NCCL's defaults are.
 * docs/design/nccl_goal.md says so to users. */

enum {
    STEP = 512 << 10, /* 4 MiB of buffer in 8 steps */
    SHORT_STEP = 32 << 10,
    CHANNEL_BYTES = 64 << 10,
    MOST_CHANNELS = 32,
    LINE = 16
};

static uint64_t protocol_for(uint64_t bytes)
{
    return bytes <= 64u << 10 ? ORR__LL : bytes <= 1u << 20 ? ORR__LL128 : ORR__SIMPLE;
}

static nccl_guess nccl_guess_collective(const nccl_job *j, const nccl_call *c)
{
    const uint64_t protocol = protocol_for(c->bytes);
    const bool is_simple = protocol == ORR__SIMPLE;
    const bool is_reduction = c->op == ORR_NCCL_ALL_REDUCE || c->op == ORR_NCCL_ALL_GATHER ||
                              c->op == ORR_NCCL_REDUCE_SCATTER;
    uint64_t most = j->most_grid ? j->most_grid : MOST_CHANNELS;
    most = most < MOST_CHANNELS ? most : MOST_CHANNELS;
    const uint64_t wanted = c->bytes / CHANNEL_BYTES;
    nccl_guess g = {.channels = (uint32_t)(wanted < 1 ? 1 : wanted < most ? wanted : most)};
    g.info = (nccl_info){.root = c->root,
                         .algorithm = ORR__RING,
                         .protocol = protocol,
                         .bytes = c->bytes,
                         .width = 1,
                         .chunk_steps = is_simple && is_reduction ? 4 : 1,
                         .slice_steps = is_simple && is_reduction ? 2 : 1,
                         .step = is_simple ? STEP : SHORT_STEP};
    return g;
}

static uint64_t lines(uint64_t bytes)
{
    return bytes / LINE + (bytes % LINE != 0);
}

/* An even share of whole lines; the last channel has what is left. */
static nccl_work nccl_guess_work(const nccl_guess *g,
                                 const nccl_call *c,
                                 uint64_t ranks,
                                 uint32_t channel)
{
    const uint64_t each =
        (lines(c->bytes) / g->channels + (lines(c->bytes) % g->channels != 0)) * LINE;
    const uint64_t from = (each * channel) < c->bytes ? each * channel : c->bytes;
    const uint64_t total = each < c->bytes - from ? each : c->bytes - from;
    const uint64_t most = g->info.chunk_steps * g->info.step;
    const uint64_t split = c->op == ORR_NCCL_ALL_REDUCE ? ranks : 1;
    const uint64_t even = lines(total / split + (total % split != 0)) * LINE;
    const uint64_t chunk = even < most ? even : most;
    const uint64_t left = chunk && split ? total % (chunk * split) : 0;
    return (nccl_work){.count = c->bytes,
                       .chunk = chunk ? chunk : 1,
                       .total = total,
                       .last = lines(left / split + (left % split != 0)) * LINE,
                       .send_buffer = 1}; /* not in place */
}

nccl_transfer nccl_guess_transfer(const nccl_call *c)
{
    return (nccl_transfer){.bytes = c->bytes,
                           .peer = c->peer,
                           .protocol = protocol_for(c->bytes),
                           .size = c->bytes,
                           .first_id = c->sequence};
}

/* Algorithms that the old generator does not know: NVLS, CollNet, PAT.
 *
 * GOAL has ranks and messages, but no reducing switch.  So NVLS and CollNet Direct become what they
 * replace: all-to-all exchange of shares.  CollNet Chain is a chain to the first rank and back.
 * PAT is what its authors describe as Bruck's algorithm turned round: distances double, and with
 * them the pieces. Invariant: as in nccl_expand.c, both ends of a message write a pair's messages
 * in the same order. */

static uint32_t place_of(const nccl_plan *p)
{
    const nccl_comms *c = &p->w->job->comms;
    const uint32_t me = (uint32_t)(p->seat - c->seats.at);
    uint32_t at = 0;
    while (at < p->comm->seats && c->by_rank.at[p->comm->first_seat + at] != me)
        at++;
    return at;
}

static uint32_t gpu_at(const nccl_plan *p, uint64_t place)
{
    const nccl_comms *c = &p->w->job->comms;
    return c->seats.at[c->by_rank.at[p->comm->first_seat + place % p->comm->seats]].gpu;
}

static nccl_ends piece(nccl_plan *p, nccl_lane *l, unsigned what, uint32_t peer, uint64_t bytes)
{
    const nccl_step s = {.what = what, .from = peer, .to = peer};
    return nccl_lane_slices(l, &s, bytes, p->cap, p->slices);
}

/* What one chunk of so many bytes becomes. */
typedef nccl_ends expand_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes);

static nccl_ends each_chunk(
    nccl_plan *p, nccl_lane *l, const nccl_work *work, uint64_t width, expand_chunk *expand)
{
    nccl_pen *pen = &p->w->pen;
    const uint64_t chunk = work->chunk ? work->chunk : work->total ? work->total : 1;
    if (work->total / chunk > 1u << 20)
        nccl_writer_fail(p->w, "a work of more than 1,048,576 chunks exceeds the limit");
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    for (uint64_t from = 0; from < work->total && !p->w->code;) {
        const uint64_t elements = chunk < work->total - from ? chunk : work->total - from;
        nccl_pen_branch(pen, &f, expand(p, l, elements * width));
        from += elements;
    }
    return nccl_pen_join(pen, &f, l->cpu);
}

/* ---- everybody with everybody ---- */

/* Bytes of a chunk that are the share of the rank at a place. */
static uint64_t share(const nccl_plan *p, uint64_t bytes, uint64_t place)
{
    const unsigned __int128 all = bytes;
    const uint64_t n = p->comm->seats;
    return (uint64_t)(all * (place + 1) / n) - (uint64_t)(all * place / n);
}

/* To each of the others what is meant for it, and `what` with what each of them has for this
 * one. */
typedef struct exchange {
    unsigned what;
    bool is_mine;  /* what is sent is the share of the sender, else that of the receiver */
    bool is_whole; /* no shares: all of it */
    uint64_t bytes;
} exchange;

static nccl_ends swap(nccl_plan *p, nccl_lane *l, const exchange *x)
{
    nccl_pen *pen = &p->w->pen;
    const uint32_t n = p->comm->seats, me = place_of(p);
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    for (uint32_t k = 1; k < n && !p->w->code; k++) {
        const uint32_t other = (me + k) % n;
        const uint64_t bytes = x->is_whole ? x->bytes : share(p, x->bytes, x->is_mine ? me : other);
        nccl_pen_branch(pen, &f, piece(p, l, ORR__SEND, gpu_at(p, other), bytes));
    }
    for (uint32_t k = 1; k < n && !p->w->code; k++) {
        const uint32_t other = (me + n - k) % n;
        const uint64_t bytes = x->is_whole ? x->bytes : share(p, x->bytes, x->is_mine ? other : me);
        nccl_pen_branch(pen, &f, piece(p, l, x->what, gpu_at(p, other), bytes));
    }
    return nccl_pen_join(pen, &f, l->cpu);
}

static nccl_ends direct_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_chain steps = {0};
    nccl_pen *pen = &p->w->pen;
    nccl_pen_then(pen, &steps,
                  swap(p, l, &(exchange){.what = ORR__RECV | ORR__REDUCE, .bytes = bytes}));
    nccl_pen_then(
        pen, &steps,
        swap(p, l, &(exchange){.what = ORR__RECV | ORR__COPY, .is_mine = true, .bytes = bytes}));
    return nccl_pen_chained(&steps);
}

static nccl_ends gather_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    return swap(p, l, &(exchange){.what = ORR__RECV | ORR__COPY, .is_whole = true, .bytes = bytes});
}

static nccl_ends scatter_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    return swap(p, l,
                &(exchange){.what = ORR__RECV | ORR__REDUCE, .is_whole = true, .bytes = bytes});
}

/* ---- a chain ---- */

static nccl_ends chain_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_pen *pen = &p->w->pen;
    nccl_chain steps = {0};
    const uint32_t me = place_of(p);
    const bool is_first = me == 0, is_last = me + 1 == p->comm->seats;
    if (!is_last)
        nccl_pen_then(pen, &steps, piece(p, l, ORR__RECV | ORR__REDUCE, gpu_at(p, me + 1), bytes));
    if (!is_first) {
        nccl_pen_then(pen, &steps, piece(p, l, ORR__SEND, gpu_at(p, me - 1), bytes));
        nccl_pen_then(pen, &steps, piece(p, l, ORR__RECV | ORR__COPY, gpu_at(p, me - 1), bytes));
    }
    if (!is_last)
        nccl_pen_then(pen, &steps, piece(p, l, ORR__SEND, gpu_at(p, me + 1), bytes));
    return nccl_pen_chained(&steps);
}

/* ---- PAT ---- */

static uint64_t blocks_at(const nccl_plan *p, uint64_t distance)
{
    const uint64_t n = p->comm->seats;
    return distance < n - distance ? distance : n - distance;
}

/* One step: send that way, get from the other side. */
static nccl_ends pat_step(
    nccl_plan *p, nccl_lane *l, unsigned what, uint64_t distance, uint64_t bytes)
{
    nccl_pen *pen = &p->w->pen;
    const uint64_t n = p->comm->seats, me = place_of(p), size = bytes * blocks_at(p, distance);
    const nccl_fork f = nccl_pen_fork(pen, l->cpu);
    nccl_pen_branch(pen, &f, piece(p, l, ORR__SEND, gpu_at(p, me + distance), size));
    nccl_pen_branch(pen, &f, piece(p, l, what, gpu_at(p, me + n - distance), size));
    return nccl_pen_join(pen, &f, l->cpu);
}

static nccl_ends pat_gather_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_chain steps = {0};
    for (uint64_t d = 1; d < p->comm->seats; d *= 2)
        nccl_pen_then(&p->w->pen, &steps, pat_step(p, l, ORR__RECV | ORR__COPY, d, bytes));
    return nccl_pen_chained(&steps);
}

static nccl_ends pat_scatter_chunk(nccl_plan *p, nccl_lane *l, uint64_t bytes)
{
    nccl_chain steps = {0};
    uint64_t d = 1;
    while (d < p->comm->seats)
        d *= 2;
    for (d /= 2; d; d /= 2)
        nccl_pen_then(&p->w->pen, &steps, pat_step(p, l, ORR__RECV | ORR__REDUCE, d, bytes));
    return nccl_pen_chained(&steps);
}

/* ---- custom plans ----
 *
 * The program of a plan is a graph: every step is a line, and its successors require it. Messages
 * have numbers that both ends know, so their order does not matter. */

static bool kind_of_op(uint8_t op, orr_collective *out)
{
    *out = op == ORR_NCCL_ALL_REDUCE       ? ORR_COLL_ALL_REDUCE
           : op == ORR_NCCL_ALL_GATHER     ? ORR_COLL_ALL_GATHER
           : op == ORR_NCCL_REDUCE_SCATTER ? ORR_COLL_REDUCE_SCATTER
                                           : ORR_COLL_COUNT;
    return *out != ORR_COLL_COUNT;
}

/* What a rank has at the start: a call of a reduce-scatter says what it has in the end. */
static uint64_t data_of(const nccl_plan *p)
{
    const uint64_t bytes = p->call->bytes ? p->call->bytes : p->info->bytes;
    return p->call->op == ORR_NCCL_REDUCE_SCATTER ? bytes * p->comm->seats : bytes;
}

static coll_plan *own_plan(const nccl_plan *p)
{
    const nccl_job *j = p->w->job;
    orr_collective kind;
    if (!kind_of_op(p->call->op, &kind))
        return NULL;
    for (size_t i = 0; i < j->plans.count; i++)
        if (coll_plan_kind(j->plans.at[i]) == kind &&
            coll_plan_fits(j->plans.at[i], p->comm->seats, data_of(p)))
            return j->plans.at[i];
    return NULL;
}

static nccl_ends planned_step(nccl_plan *p, nccl_lane *l, const coll_step *s, uint64_t bytes)
{
    const unsigned what = (s->how & (COLL_WORK_ADD | ORR_COLL_REDUCED) ? ORR__REDUCE : 0u) |
                          (s->how & COLL_WORK_COPY ? ORR__COPY : 0u);
    const uint64_t wire = s->factor ? bytes * s->factor : COLL_FLAG_BYTES;
    if (s->kind == COLL_STEP_SEND || s->kind == COLL_STEP_RECV)
        return numbered_message(l, s->kind == COLL_STEP_SEND, gpu_at(p, s->peer), wire, s->message);
    return nccl_pen_calc(&p->w->pen, s->kind == COLL_STEP_WORK ? work_time(l, what, bytes) : 0,
                         l->cpu % CPUS);
}

static nccl_ends write_planned(nccl_plan *p, coll_plan *plan, uint32_t *cpu)
{
    nccl_writer *w = p->w;
    const uint64_t data = data_of(p);
    const coll_program *program;
    nccl_lane l = {.w = w,
                   .call = p->call,
                   .cpu = (*cpu)++,
                   .protocol = p->info->protocol,
                   .context = nccl_call_context(w->job, p->call)};
    w->code = coll_plan_program(plan, data, COLL_PLAN_SLOTS, &program, w->err);
    if (w->code)
        return (nccl_ends){.is_empty = true};
    const coll_rank_program *own = &program->ranks[place_of(p)];
    nccl_ends *ends = orr_alloc((size_t)own->count + 1, sizeof *ends);
    if (!ends) {
        no_memory(w);
        return (nccl_ends){.is_empty = true};
    }
    const nccl_fork f = nccl_pen_fork(&w->pen, l.cpu % CPUS);
    for (uint32_t i = 0; i < own->count && !w->code; i++) {
        const coll_step *s = &own->steps[i];
        ends[i] = planned_step(p, &l, s, coll_step_bytes(plan, s, data));
        if (s->waits == 0 || s->after_count == 0)
            nccl_pen_branch(&w->pen, &f, ends[i]);
    }
    for (uint32_t i = 0; i < own->count && !w->code; i++)
        for (uint32_t k = 0; k < own->steps[i].after_count; k++)
            nccl_pen_requires(&w->pen, ends[own->after[own->steps[i].first_after + k]].first,
                              ends[i].last);
    orr_free(ends);
    if (w->pen.is_full)
        no_memory(w);
    return nccl_pen_join(&w->pen, &f, l.cpu % CPUS);
}

/* ---- chunks ---- */

enum { MOST_CHUNKS = 1 << 20 };

/* Channels that a communicator's markers do not mention have the plain ring and tree. */
static bool is_literal(const nccl_plan *p)
{
    return p->w->job->rules->expands_literally;
}

static uint32_t gpu_of_rank(nccl_plan *p, uint64_t rank)
{
    const nccl_seat *s = nccl_comm_seat(&p->w->job->comms, p->comm, rank);
    if (s)
        return s->gpu;
    nccl_writer_fail(p->w, "communicator %s has no rank %" PRIu64,
                     nccl_text(p->w->job, p->comm->ident).ptr, rank);
    return p->w->gpu;
}

typedef struct neighbours {
    uint32_t before, after; /* GPUs */
    uint64_t position;
} neighbours;

static neighbours plain_ring(nccl_plan *p)
{
    const uint64_t at = place_of(p);
    return (neighbours){
        .before = gpu_at(p, at + p->comm->seats - 1), .after = gpu_at(p, at + 1), .position = at};
}

static neighbours ring_of(nccl_plan *p, uint32_t channel)
{
    const nccl_ring *r = nccl_comm_ring(&p->w->job->comms, p->seat, channel);
    if (!r && !is_literal(p))
        return plain_ring(p);
    if (!r) {
        nccl_writer_fail(p->w, "communicator %s has no ring for channel %" PRIu32,
                         nccl_text(p->w->job, p->comm->ident).ptr, channel);
        return (neighbours){0};
    }
    if (r->position == ORR__NONE && !is_literal(p))
        nccl_writer_fail(p->w,
                         "communicator %s: channel %" PRIu32 " is not a ring through all ranks",
                         nccl_text(p->w->job, p->comm->ident).ptr, channel);
    return (neighbours){.before = gpu_of_rank(p, r->previous),
                        .after = gpu_of_rank(p, r->next),
                        .position = is_literal(p) ? p->seat->rank : r->position};
}

/* A chunk of all elements of a work that has none. */
static uint64_t chunk_of(nccl_plan *p, const nccl_work *work, uint64_t each)
{
    const uint64_t chunk = work->chunk || is_literal(p) ? work->chunk
                           : work->total                ? work->total
                                                        : 1;
    if (chunk == 0)
        nccl_writer_fail(p->w, "chunkCount is 0");
    else if (work->total / chunk / each > MOST_CHUNKS)
        nccl_writer_fail(p->w, "a work of %" PRIu64 " in chunks of %" PRIu64 " exceeds the limit",
                         work->total, chunk);
    return chunk ? chunk : 1;
}

/* ---- rings ---- */

typedef struct ring_loop {
    nccl_plan *plan;
    nccl_lane *lane;
    const nccl_fork *fork;
    neighbours at;
    uint64_t chunk, left, cap;
} ring_loop;

/* Chunk number `index` (modulo the ranks) of this round. */
static void ring_step(ring_loop *r, unsigned what, uint64_t index)
{
    nccl_plan *p = r->plan;
    const uint64_t n = p->comm->seats, width = p->info->width, i = index % n;
    const uint64_t before = i && r->chunk > UINT64_MAX / i ? UINT64_MAX : i * r->chunk;
    const uint64_t rest = r->left > before ? r->left - before : 0;
    const uint64_t elements = r->chunk < rest ? r->chunk : rest;
    if (is_literal(p) && what != ORR__SEND) {
        const uint64_t even = (elements * p->slices + 15) / 16 * 16;
        r->cap = even > r->cap / 32 ? even : r->cap / 32;
    }
    const nccl_step s = {.what = what, .from = r->at.before, .to = r->at.after};
    nccl_pen_branch(&p->w->pen, r->fork,
                    nccl_lane_slices(r->lane, &s, elements * width, r->cap, p->slices));
}

static nccl_ends ring_all_reduce(nccl_plan *p,
                                 nccl_lane *l,
                                 uint32_t channel,
                                 const nccl_work *work)
{
    const uint64_t n = p->comm->seats, chunk = chunk_of(p, work, n);
    const nccl_fork f = nccl_pen_fork(&p->w->pen, l->cpu);
    ring_loop r = {
        .plan = p, .lane = l, .fork = &f, .at = ring_of(p, channel), .chunk = chunk, .cap = p->cap};
    const uint64_t me = r.at.position + n; /* so that what is taken from it stays above 0 */
    uint64_t round;
    if (__builtin_mul_overflow(n, chunk, &round))
        round = UINT64_MAX;
    for (uint64_t at = 0; at < work->total && !p->w->code;
         at = round > UINT64_MAX - at ? UINT64_MAX : at + round) {
        r.left = work->total - at;
        if (r.left < round)
            r.chunk = work->last;
        ring_step(&r, ORR__SEND, me - 1);
        for (uint64_t k = 2; k < n; k++)
            ring_step(&r, ORR__RECV | ORR__REDUCE | ORR__SEND, me + n - k);
        ring_step(&r, ORR__RECV | ORR__REDUCE | ORR__COPY | ORR__SEND, me);
        for (uint64_t k = 1; k + 1 < n; k++)
            ring_step(&r, ORR__RECV | ORR__COPY | ORR__SEND, me + n - k);
        ring_step(&r, ORR__RECV, me + 1);
    }
    return nccl_pen_join(&p->w->pen, &f, l->cpu);
}

/* For each chunk the same steps: first, `between` times middle, last; 0: no such step. */
typedef struct round_trip {
    unsigned first, middle, last;
    uint64_t between;
    uint64_t width; /* bytes of an element */
} round_trip;

static nccl_ends around(
    nccl_plan *p, nccl_lane *l, uint32_t channel, const nccl_work *work, const round_trip *t)
{
    const neighbours at = ring_of(p, channel);
    const uint64_t chunk = chunk_of(p, work, 1);
    const nccl_fork f = nccl_pen_fork(&p->w->pen, l->cpu);
    nccl_step s = {.from = at.before, .to = at.after};
    for (uint64_t from = 0; from < work->total && !p->w->code;) {
        const uint64_t elements = chunk < work->total - from ? chunk : work->total - from;
        for (uint64_t k = 0; k < t->between + 2; k++) {
            s.what = k == 0 ? t->first : k == t->between + 1 ? t->last : t->middle;
            if (s.what)
                nccl_pen_branch(&p->w->pen, &f,
                                nccl_lane_slices(l, &s, elements * t->width, p->cap, p->slices));
        }
        from += elements;
    }
    return nccl_pen_join(&p->w->pen, &f, l->cpu);
}

static uint64_t between(const nccl_plan *p)
{
    return p->comm->seats > 2 ? p->comm->seats - 2 : 0;
}

static nccl_ends ring_all_gather(nccl_plan *p,
                                 nccl_lane *l,
                                 uint32_t channel,
                                 const nccl_work *work)
{
    const bool is_in_place = (unsigned __int128)work->send_buffer ==
                             (unsigned __int128)p->seat->rank * work->count + work->receive_buffer;
    return around(p, l, channel, work,
                  &(round_trip){.first = is_in_place ? ORR__SEND : ORR__COPY | ORR__SEND,
                                .middle = ORR__RECV | ORR__COPY | ORR__SEND,
                                .last = ORR__RECV,
                                .between = between(p),
                                .width = 1});
}

static nccl_ends ring_reduce_scatter(nccl_plan *p,
                                     nccl_lane *l,
                                     uint32_t channel,
                                     const nccl_work *work)
{
    return around(p, l, channel, work,
                  &(round_trip){.first = ORR__SEND,
                                .middle = ORR__RECV | ORR__REDUCE | ORR__SEND,
                                .last = ORR__RECV | ORR__REDUCE | ORR__COPY,
                                .between = between(p),
                                .width = p->info->width});
}

/* Away from the root, along the ring: it sends, the one before it only receives. */
static nccl_ends ring_broadcast(nccl_plan *p, nccl_lane *l, uint32_t channel, const nccl_work *work)
{
    const uint32_t root = gpu_of_rank(p, p->info->root);
    const unsigned what = p->w->gpu == root                   ? ORR__SEND
                          : ring_of(p, channel).after == root ? ORR__RECV
                                                              : ORR__RECV | ORR__COPY | ORR__SEND;
    return around(p, l, channel, work, &(round_trip){.first = what, .width = 1});
}

/* Towards the root: the one behind it begins. */
static nccl_ends ring_reduce(nccl_plan *p, nccl_lane *l, uint32_t channel, const nccl_work *work)
{
    const uint32_t root = gpu_of_rank(p, p->info->root);
    const unsigned what = p->w->gpu == root ? ORR__RECV | ORR__REDUCE | ORR__COPY
                          : ring_of(p, channel).before == root
                              ? ORR__SEND
                              : ORR__RECV | ORR__REDUCE | ORR__SEND;
    return around(p, l, channel, work, &(round_trip){.first = what, .width = p->info->width});
}

/* ---- trees ---- */

typedef struct tree_place {
    uint32_t parent; /* a GPU, or ORR__NONE */
    uint32_t child[3];
    uint32_t children;
} tree_place;

static nccl_tree plain_tree(const nccl_plan *p)
{
    const uint64_t n = p->comm->seats, at = place_of(p);
    const nccl_comms *c = &p->w->job->comms;
    const uint32_t *seats = c->by_rank.at + p->comm->first_seat;
    nccl_tree t = {.parent = at ? (int64_t)c->seats.at[seats[(at - 1) / 2]].rank : -1};
    for (uint64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
        t.child[t.children++] = c->seats.at[seats[child]].rank;
    return t;
}

static tree_place tree_of(nccl_plan *p, uint32_t channel)
{
    const nccl_comms *c = &p->w->job->comms;
    const nccl_tree *found = nccl_comm_tree(c, p->seat, channel);
    if (!found && is_literal(p)) {
        nccl_writer_fail(p->w, "communicator %s has no tree for channel %" PRIu32,
                         nccl_text(p->w->job, p->comm->ident).ptr, channel);
        return (tree_place){.parent = ORR__NONE};
    }
    const nccl_tree t = found ? *found : plain_tree(p);
    const nccl_seat *parent = t.parent < 0 ? NULL : nccl_comm_seat(c, p->comm, (uint64_t)t.parent);
    tree_place out = {.parent = parent ? parent->gpu : ORR__NONE, .children = t.children};
    for (uint32_t i = 0; i < t.children; i++)
        out.child[i] = gpu_of_rank(p, t.child[i]);
    return out;
}

/* The same step for all children, side by side; the last may have another. */
static nccl_ends with_children(
    nccl_plan *p, nccl_lane *l, const tree_place *t, unsigned what, unsigned last, uint64_t bytes)
{
    const nccl_fork f = nccl_pen_fork(&p->w->pen, l->cpu);
    for (uint32_t i = 0; i < t->children; i++) {
        const unsigned how = i + 1 == t->children ? last : what;
        nccl_pen_branch(&p->w->pen, &f, piece(p, l, how, t->child[i], bytes));
    }
    return nccl_pen_join(&p->w->pen, &f, l->cpu);
}

static nccl_ends tree_chunk(nccl_plan *p, nccl_lane *l, const tree_place *t, uint64_t bytes)
{
    nccl_pen *pen = &p->w->pen;
    nccl_chain steps = {0};
    const unsigned reduce = ORR__RECV | ORR__REDUCE;
    if (t->parent == ORR__NONE) {
        if (t->children == 0) {
            if (is_literal(p))
                nccl_writer_fail(p->w, "a tree has neither parent nor children");
            return (nccl_ends){.is_empty = true};
        }
        nccl_pen_then(pen, &steps, with_children(p, l, t, reduce, reduce | ORR__COPY, bytes));
        nccl_pen_then(pen, &steps, with_children(p, l, t, ORR__SEND, ORR__SEND, bytes));
        return nccl_pen_chained(&steps);
    }
    if (t->children)
        nccl_pen_then(pen, &steps, with_children(p, l, t, reduce, reduce, bytes));
    nccl_pen_then(pen, &steps, piece(p, l, ORR__SEND, t->parent, bytes));
    nccl_pen_then(pen, &steps, piece(p, l, ORR__RECV, t->parent, bytes));
    if (t->children)
        nccl_pen_then(pen, &steps, with_children(p, l, t, ORR__SEND, ORR__SEND, bytes));
    return nccl_pen_chained(&steps);
}

static nccl_ends tree_all_reduce(nccl_plan *p,
                                 nccl_lane *l,
                                 uint32_t channel,
                                 const nccl_work *work)
{
    const tree_place t = tree_of(p, channel);
    const uint64_t chunk = chunk_of(p, work, 1);
    const nccl_fork f = nccl_pen_fork(&p->w->pen, l->cpu);
    for (uint64_t from = 0; from < work->total && !p->w->code;) {
        const uint64_t elements = chunk < work->total - from ? chunk : work->total - from;
        nccl_pen_branch(&p->w->pen, &f, tree_chunk(p, l, &t, elements * p->info->width));
        from += elements;
    }
    return nccl_pen_join(&p->w->pen, &f, l->cpu);
}

/* ---- which ---- */

typedef struct expansion {
    uint8_t algorithm, op;
    bool is_old; /* the old generator knows it, too */
    nccl_expand_channel *expand;
    expand_chunk *chunk; /* in its place: each chunk by itself */
} expansion;

static const expansion expansions[] = {
    {ORR__TREE, ORR_NCCL_ALL_REDUCE, true, tree_all_reduce, NULL},
    {ORR__RING, ORR_NCCL_ALL_REDUCE, true, ring_all_reduce, NULL},
    {ORR__RING, ORR_NCCL_ALL_GATHER, true, ring_all_gather, NULL},
    {ORR__RING, ORR_NCCL_REDUCE_SCATTER, true, ring_reduce_scatter, NULL},
    {ORR__RING, ORR_NCCL_BROADCAST, true, ring_broadcast, NULL},
    {ORR__RING, ORR_NCCL_REDUCE, false, ring_reduce, NULL},
    {ORR__NVLS_TREE, ORR_NCCL_ALL_REDUCE, false, tree_all_reduce, NULL},
    {ORR__NVLS, ORR_NCCL_ALL_REDUCE, false, NULL, direct_chunk},
    {ORR__NVLS, ORR_NCCL_ALL_GATHER, false, NULL, gather_chunk},
    {ORR__NVLS, ORR_NCCL_REDUCE_SCATTER, false, NULL, scatter_chunk},
    {ORR__COLLNET_DIRECT, ORR_NCCL_ALL_REDUCE, false, NULL, direct_chunk},
    {ORR__COLLNET_DIRECT, ORR_NCCL_ALL_GATHER, false, NULL, gather_chunk},
    {ORR__COLLNET_DIRECT, ORR_NCCL_REDUCE_SCATTER, false, NULL, scatter_chunk},
    {ORR__COLLNET_CHAIN, ORR_NCCL_ALL_REDUCE, false, NULL, chain_chunk},
    {ORR__PAT, ORR_NCCL_ALL_GATHER, false, NULL, pat_gather_chunk},
    {ORR__PAT, ORR_NCCL_REDUCE_SCATTER, false, NULL, pat_scatter_chunk},
};

static const expansion *find_expansion(const nccl_plan *p)
{
    for (const expansion *e = expansions; e < expansions + ORR_COUNT(expansions); e++)
        if (e->algorithm == p->info->algorithm && e->op == p->call->op &&
            (e->is_old || !is_literal(p)))
            return e;
    return NULL;
}

static nccl_ends one_channel(
    nccl_plan *p, const expansion *e, uint32_t channel, uint32_t cpu, const nccl_work *work)
{
    nccl_lane l = {.w = p->w,
                   .call = p->call,
                   .cpu = cpu,
                   .protocol = p->info->protocol,
                   .context = nccl_call_context(p->w->job, p->call)};
    if (p->comm->seats == 1 && !is_literal(p)) /* nobody to talk to */
        return nccl_pen_calc(&p->w->pen, 0, cpu);
    if (e->expand)
        return e->expand(p, &l, channel, work);
    /* Sizes of gathers are in bytes. */
    return each_chunk(p, &l, work, e->op == ORR_NCCL_ALL_GATHER ? 1 : p->info->width, e->chunk);
}

/* Sizes in bytes must fit 64 bits wherever they are made of counts. */
static bool check_work(nccl_plan *p, const nccl_work *work)
{
    const uint64_t most = UINT64_MAX / 64 / (p->info->width ? p->info->width : 1);
    if (work->total <= most && work->chunk <= most && work->last <= most)
        return true;
    nccl_writer_fail(p->w, "a count of %" PRIu64 " elements is out of range", work->total);
    return false;
}

static nccl_ends write_channels(nccl_plan *p, const nccl_guess *guess, uint32_t *cpu)
{
    const nccl_gpu *g = &p->w->job->gpus.at[p->w->gpu];
    const uint32_t channels = guess ? guess->channels : p->call->row_count;
    const uint32_t first = *cpu;
    const expansion *e = find_expansion(p);
    if (!e) {
        nccl_writer_fail(p->w, "algorithm %" PRIu64 " of nccl%s is not known", p->info->algorithm,
                         orr_nccl_op_name((orr_nccl_op)p->call->op));
        return (nccl_ends){.is_empty = true};
    }
    const nccl_fork f = nccl_pen_fork(&p->w->pen, first);
    for (uint32_t k = 0; k < channels && !p->w->code; k++) {
        const nccl_work work = guess ? nccl_guess_work(guess, p->call, p->comm->seats, k)
                                     : g->works.at[p->call->first_row + k];
        if (check_work(p, &work))
            nccl_pen_branch(&p->w->pen, &f, one_channel(p, e, k, first + k, &work));
    }
    *cpu = first + channels;
    return nccl_pen_join(&p->w->pen, &f, first);
}

nccl_ends nccl_expand(nccl_writer *w, const nccl_call *c, uint32_t *cpu)
{
    const nccl_job *j = w->job;
    const nccl_comm *comm = &j->comms.all.at[c->comm];
    nccl_plan p = {
        .w = w, .call = c, .comm = comm, .seat = nccl_comm_seat_of(&j->comms, comm, w->gpu)};
    nccl_guess guess;
    if (!p.seat) {
        nccl_writer_fail(w, "is not in communicator %s, which it uses",
                         nccl_text(j, comm->ident).ptr);
        return (nccl_ends){.is_empty = true};
    }
    if (c->is_payload)
        guess = nccl_guess_collective(j, c);
    p.info = c->is_payload ? &guess.info : &j->gpus.at[w->gpu].infos.at[c->info];
    p.slices = p.info->slice_steps ? p.info->chunk_steps / p.info->slice_steps : 0;
    if (!j->rules->expands_literally && p.slices == 0)
        p.slices = 1;
    if (p.info->slice_steps == 0 || p.slices > 64 ||
        (p.slices == 0 && p.info->protocol == ORR__SIMPLE) ||
        __builtin_mul_overflow(p.info->slice_steps, p.info->step, &p.cap)) {
        nccl_writer_fail(w, "chunkSteps %" PRIu64 " and sliceSteps %" PRIu64 " make no slices",
                         p.info->chunk_steps, p.info->slice_steps);
        return (nccl_ends){.is_empty = true};
    }
    w->stamp++;
    coll_plan *own = comm->seats > 1 ? own_plan(&p) : NULL;
    w->job->report->planned += own && w->matching;
    return own ? write_planned(&p, own, cpu)
               : write_channels(&p, c->is_payload ? &guess : NULL, cpu);
}
