/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_expand.c - collectives on rings and trees, taken apart (goal.md 5.7).
 *
 * A collective is its channels side by side, a channel its chunks side by side; all of a channel runs on one cpu, which is
 * what puts chunks after one another.
 * Our own way differs in two places of the ring all-reduce: the cap of slices is the same for all steps, so that sender and
 * receiver cut a chunk alike, and a rank's chunk is that of its place in the ring, not of its number.
 * Invariant: both ends of a message write the same messages of a call in the same order.
 * Cost: in proportion to what is written; a work of more than 2^20 chunks is refused. */
#include "nccl_write.h"

#include <inttypes.h>

enum { MOST_CHUNKS = 1 << 20 };

/* Channels that a communicator's markers do not mention have the plain ring and tree. */
static bool is_old(const nccl_plan *p)
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

static uint32_t plain_position(const nccl_plan *p, const nccl_seat *seat)
{
    const nccl_comms *c = &p->w->job->comms;
    uint32_t at = 0;
    while (at < p->comm->seats &&
           c->by_rank.at[p->comm->first_seat + at] != (uint32_t)(seat - c->seats.at))
        at++;
    return at;
}

typedef struct neighbours {
    uint32_t before, after; /* GPUs */
    uint64_t position;
} neighbours;

static neighbours plain_ring(nccl_plan *p)
{
    const nccl_comms *c = &p->w->job->comms;
    const uint32_t n = p->comm->seats, at = plain_position(p, p->seat);
    const uint32_t *seats = c->by_rank.at + p->comm->first_seat;
    return (neighbours){.before = c->seats.at[seats[(at + n - 1) % n]].gpu,
                        .after = c->seats.at[seats[(at + 1) % n]].gpu,
                        .position = at};
}

static neighbours ring_of(nccl_plan *p, uint32_t channel)
{
    const nccl_ring *r = nccl_comm_ring(&p->w->job->comms, p->seat, channel);
    if (!r && !is_old(p))
        return plain_ring(p);
    if (!r) {
        nccl_writer_fail(p->w, "communicator %s has no ring for channel %" PRIu32,
                         nccl_text(p->w->job, p->comm->ident).ptr, channel);
        return (neighbours){0};
    }
    if (r->position == ORR__NONE && !is_old(p))
        nccl_writer_fail(p->w, "communicator %s: channel %" PRIu32 " is no ring through all ranks",
                         nccl_text(p->w->job, p->comm->ident).ptr, channel);
    return (neighbours){.before = gpu_of_rank(p, r->previous),
                        .after = gpu_of_rank(p, r->next),
                        .position = is_old(p) ? p->seat->rank : r->position};
}

/* A chunk of all elements of a work that has none. */
static uint64_t chunk_of(nccl_plan *p, const nccl_work *work, uint64_t each)
{
    const uint64_t chunk = work->chunk || is_old(p) ? work->chunk : work->total ? work->total : 1;
    if (chunk == 0)
        nccl_writer_fail(p->w, "chunkCount is 0");
    else if (work->total / chunk / each > MOST_CHUNKS)
        nccl_writer_fail(p->w, "a work of %" PRIu64 " in chunks of %" PRIu64 " is out of bounds",
                         work->total, chunk);
    return chunk ? chunk : 1;
}

static nccl_ends piece(nccl_plan *p, nccl_lane *l, const nccl_step *s, uint64_t bytes, uint64_t cap)
{
    return nccl_lane_slices(l, s, bytes, cap, p->slices);
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
    if (is_old(p) && what != ORR__SEND) {
        const uint64_t even = (elements * p->slices + 15) / 16 * 16;
        r->cap = even > r->cap / 32 ? even : r->cap / 32;
    }
    const nccl_step s = {.what = what, .from = r->at.before, .to = r->at.after};
    nccl_pen_branch(&p->w->pen, r->fork, piece(p, r->lane, &s, elements * width, r->cap));
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
                nccl_pen_branch(&p->w->pen, &f, piece(p, l, &s, elements * t->width, p->cap));
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
    const uint64_t n = p->comm->seats, at = plain_position(p, p->seat);
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
    if (!found && is_old(p)) {
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
        const nccl_step s = {
            .what = i + 1 == t->children ? last : what, .from = t->child[i], .to = t->child[i]};
        nccl_pen_branch(&p->w->pen, &f, piece(p, l, &s, bytes, p->cap));
    }
    return nccl_pen_join(&p->w->pen, &f, l->cpu);
}

static nccl_ends tree_chunk(nccl_plan *p, nccl_lane *l, const tree_place *t, uint64_t bytes)
{
    nccl_pen *pen = &p->w->pen;
    nccl_chain steps = {0};
    const unsigned reduce = ORR__RECV | ORR__REDUCE;
    const nccl_step up = {.what = ORR__SEND, .to = t->parent},
                    down = {.what = ORR__RECV, .from = t->parent};
    if (t->parent == ORR__NONE) {
        if (t->children == 0) {
            if (is_old(p))
                nccl_writer_fail(p->w, "a tree has neither parent nor children");
            return (nccl_ends){.is_empty = true};
        }
        nccl_pen_then(pen, &steps, with_children(p, l, t, reduce, reduce | ORR__COPY, bytes));
        nccl_pen_then(pen, &steps, with_children(p, l, t, ORR__SEND, ORR__SEND, bytes));
        return nccl_pen_chained(&steps);
    }
    if (t->children)
        nccl_pen_then(pen, &steps, with_children(p, l, t, reduce, reduce, bytes));
    nccl_pen_then(pen, &steps, piece(p, l, &up, bytes, p->cap));
    nccl_pen_then(pen, &steps, piece(p, l, &down, bytes, p->cap));
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

static nccl_expand_channel *expansion(const nccl_plan *p)
{
    const uint8_t op = p->call->op;
    const bool is_ring = p->info->algorithm == ORR__RING;
    if (p->info->algorithm == ORR__TREE && op == ORR_NCCL_ALL_REDUCE)
        return tree_all_reduce;
    if (is_ring && op == ORR_NCCL_ALL_REDUCE)
        return ring_all_reduce;
    if (is_ring && op == ORR_NCCL_ALL_GATHER)
        return ring_all_gather;
    if (is_ring && op == ORR_NCCL_REDUCE_SCATTER)
        return ring_reduce_scatter;
    if (is_ring && op == ORR_NCCL_BROADCAST)
        return ring_broadcast;
    if (is_old(p))
        return NULL;
    if (is_ring && op == ORR_NCCL_REDUCE)
        return ring_reduce;
    if (p->info->algorithm == ORR__NVLS_TREE && op == ORR_NCCL_ALL_REDUCE)
        return tree_all_reduce;
    return nccl_expansion_of(p->info->algorithm, op);
}

static nccl_ends one_channel(nccl_plan *p,
                             nccl_expand_channel *expand,
                             uint32_t channel,
                             uint32_t cpu,
                             const nccl_work *work)
{
    nccl_lane l = {.w = p->w,
                   .call = p->call,
                   .cpu = cpu,
                   .protocol = p->info->protocol,
                   .context = nccl_call_context(p->w->job, p->call)};
    if (p->comm->seats == 1 && !is_old(p)) /* nobody to talk to */
        return nccl_pen_calc(&p->w->pen, 0, cpu);
    return expand(p, &l, channel, work);
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
    nccl_expand_channel *expand = expansion(p);
    if (!expand) {
        nccl_writer_fail(p->w, "algorithm %" PRIu64 " of nccl%s is not known", p->info->algorithm,
                         orr_nccl_op_name((orr_nccl_op)p->call->op));
        return (nccl_ends){.is_empty = true};
    }
    const nccl_fork f = nccl_pen_fork(&p->w->pen, first);
    for (uint32_t k = 0; k < channels && !p->w->code; k++) {
        const nccl_work work = guess ? nccl_guess_work(guess, p->call, p->comm->seats, k)
                                     : g->works.at[p->call->first_row + k];
        if (check_work(p, &work))
            nccl_pen_branch(&p->w->pen, &f, one_channel(p, expand, k, first + k, &work));
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
    return write_channels(&p, c->is_payload ? &guess : NULL, cpu);
}
