/* SPDX-License-Identifier: Apache-2.0 */
/* plan_bound.c - a lower bound on the time of a plan: the longest path through its step, without
 * generating it.
 *
 * A stage's pass is a product of the matrices of its parts (bound_parts.h), and the pipeline is
 * followed task by task. The clock under the power cap is found as kernel_times.c finds it, from
 * sums; if the host might delay the device, the highest clock is assumed.  What plans have in
 * common (parts, stages, data-parallel traffic) is computed once. docs/design/plan.md has the full
 * argument. */
#include "bound_parts.h"
#include "models/collective/nccl/nccl_model.h"
#include "models/compute/atlas/chip_cost.h"

#include "base/memory/hash.h"
#include "base/threads/pool.h"

#include <math.h>
#include <string.h>

/* Covers what sums leave out: rounding, and the first kernels of a step when the clock is
 * computed. */
#define SLACK 0.998
enum { USUAL_BUCKET = 40 * 1000 * 1000 };
#define NEVER BOUND_NEVER

/* ---- division into stages ---- */

static uint64_t cut_key(const struct search_bounds *b, const search_candidate *c)
{
    const uint64_t layout = orr_map_find(b->layout_of, bound_layout_key(c), 0);
    return layout << 16 | (uint64_t)bound_is_cut(c) << 13 | (uint64_t)bound_is_v(c) << 12 |
           (uint64_t)c->chunks << 4 | (uint64_t)c->zero << 1 | c->is_synced;
}

static orr_code add_cut(orr_plan_search *s, const search_candidate *c, orr_error *err)
{
    struct search_bounds *b = s->bounds;
    const uint64_t key = cut_key(b, c);
    if (orr_map_find(b->cut_of, key, UINT32_MAX) != UINT32_MAX)
        return ORR_OK;
    if (!orr_grow(&b->cuts, &b->cut_room, b->cut_count + 1) ||
        !orr_map_put(b->cut_of, key, (uint32_t)b->cut_count, NULL))
        return orr_no_memory(err);
    b->cuts[b->cut_count++] = (bound_cut){.like = *c};
    return ORR_OK;
}

/* One cut in the making. */
typedef struct cutter {
    const orr_plan_search *s;
    const bound_layout *l;
    bound_cut *cut;
    orr_arena *arena;
    orr_llm_options o;
    orr__llm_view v;
    orr__tape tape;
} cutter;

static uint32_t last_rank(const search_candidate *c)
{
    return bound_is_v(c) ? 0 : c->pp - 1;
}

/* The sequence of layer kinds, chunk by chunk. */
static uint64_t order_of(const cutter *x, uint32_t rank)
{
    const search_candidate *c = &x->cut->like;
    uint64_t hash = (uint64_t)(rank == 0) * 2 + (rank == last_rank(c)) + 1;
    for (uint32_t k = 0; k < c->chunks; k++) {
        uint64_t first, end;
        orr__llm_view_layers(&x->v, bound_stage_of(c, rank, k), &first, &end);
        hash = orr_hash_mix(hash + 1, UINT64_C(0x9e3779b97f4a7c15));
        for (; first < end; first++)
            hash =
                orr_hash_mix(hash + 1, x->s->bounds->kind_of[first] + UINT64_C(0xd6e8feb86659fd93));
    }
    return hash;
}

static const bound_shapes *expert_shapes(const cutter *x)
{
    return x->cut->like.ep > 1 ? &x->l->expert : &x->l->data;
}

static uint64_t expert_degree(const cutter *x)
{
    return orr__llm_view_degree(&x->v,
                                x->cut->like.ep > 1 ? ORR__TAPE_EXPERT_DATA : ORR__TAPE_DATA);
}

static uint64_t share_of(uint64_t bytes, uint64_t ranks)
{
    return (bytes + ranks - 1) / ranks;
}

typedef struct bucket {
    uint64_t bytes;
    double sum, last;
    uint64_t known; /* bytes whose time is `last` */
    bound_load load, last_load;
} bucket;

/* With HSDP behind each other: within a replica, and between them. */
static double reduce_ns(const cutter *x,
                        const bound_shapes *shapes,
                        uint64_t bytes,
                        bound_load *load)
{
    const struct search_bounds *b = x->s->bounds;
    const double own = bound_collective_ns(
        b, shapes, x->o.zero ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE, bytes, load);
    if (orr__llm_view_degree(&x->v, ORR__TAPE_REPLICA) == 1)
        return own;
    return own + bound_collective_ns(b, &x->l->replica, ORR_COLL_ALL_REDUCE,
                                     share_of(bytes, orr__llm_view_degree(&x->v, ORR__TAPE_DATA)),
                                     load);
}

/* Without overlap all gradients are reduced together, at the end. */
static uint64_t bucket_bytes(const cutter *x)
{
    return x->o.no_overlap ? UINT64_MAX : x->o.bucket_bytes;
}

static void fill_bucket(
    const cutter *x, const bound_shapes *shapes, uint64_t bytes, bool is_end, bucket *b)
{
    const uint64_t full = bucket_bytes(x);
    b->bytes += bytes;
    if (b->bytes == 0 || (!is_end && b->bytes < full))
        return;
    if (b->bytes != b->known) {
        b->last_load = (bound_load){0};
        b->last = reduce_ns(x, shapes, b->bytes, &b->last_load);
    }
    b->known = b->bytes;
    b->sum += b->last;
    bound_add_load(&b->load, &b->last_load, 1);
    b->bytes = 0;
}

/* Gradients of weights that are tasks of their own: the embedding's come with a backward pass, so
 * they are not the last.  The last task leaves those of the first layer of a chunk, at least. */
static double last_layer_ns(const cutter *x, const orr__tape_sync *y, const bound_stage *g)
{
    double least = 0;
    for (uint32_t k = 0; k < x->cut->like.chunks; k++) {
        bound_load load = {0};
        if (g->chunks[k][0] == g->chunks[k][1])
            return 0;
        const uint64_t layer = x->s->bounds->first_of[x->s->bounds->kind_of[g->chunks[k][0]]];
        const uint64_t bytes = orr__llm_view_weights(&x->v, layer).dense * y->grad;
        const double ns = reduce_ns(x, &x->l->data, bytes, &load);
        least = k == 0 || ns < least ? ns : least;
    }
    return least;
}

/* A bucket may be sent early if it has too many dependencies; then there are more, and none is
 * faster: the bound uses the sums. */
static void sum_gradients(const cutter *x, const orr__tape_sync *y, bound_stage *g)
{
    const search_candidate *c = &x->cut->like;
    bucket dense = {0}, expert = {0};
    const orr__layer_weights ends = orr__llm_view_ends(&x->v), mtp = orr__llm_view_mtp(&x->v);
    for (uint32_t k = c->chunks; k-- > 0;) {
        if (g->is_last && k + 1 == c->chunks) {
            fill_bucket(x, &x->l->data, mtp.dense * y->grad, false, &dense);
            fill_bucket(x, expert_shapes(x), mtp.expert * y->grad, false, &expert);
            fill_bucket(x, &x->l->data, ends.expert * y->grad, false, &dense);
        }
        for (uint64_t l = g->chunks[k][1]; l-- > g->chunks[k][0];) {
            const orr__layer_weights own =
                orr__llm_view_weights(&x->v, x->s->bounds->first_of[x->s->bounds->kind_of[l]]);
            fill_bucket(x, &x->l->data, own.dense * y->grad, false, &dense);
            fill_bucket(x, expert_shapes(x), own.expert * y->grad, false, &expert);
        }
        if (g->is_first && k == 0)
            fill_bucket(x, &x->l->data, ends.dense * y->grad, false, &dense);
    }
    const double before = dense.sum + expert.sum;
    fill_bucket(x, &x->l->data, 0, true, &dense);
    fill_bucket(x, expert_shapes(x), 0, true, &expert);
    g->reduce_ns = dense.sum + expert.sum;
    bound_add_load(&g->load, &dense.load, 1);
    bound_add_load(&g->load, &expert.load, 1);
    g->last_reduce_ns = g->reduce_ns - before;
    if (g->last_reduce_ns <= 0)
        g->last_reduce_ns = dense.last;
    if (bound_is_cut(c))
        g->last_reduce_ns = last_layer_ns(x, y, g);
}

/* Layers that fill a bucket alone send it in the task that computes their gradients. */
static bool sum_each_micro_batch(const cutter *x, const orr__tape_sync *y, bound_stage *g)
{
    const struct search_bounds *b = x->s->bounds;
    const search_candidate *c = &x->cut->like;
    double own[BOUND_KINDS] = {0};
    if (!c->is_synced)
        return true;
    g->chunk_reduce_ns = orr_arena_new(x->arena, c->chunks, double);
    for (uint32_t k = 0; k < b->kinds && g->chunk_reduce_ns; k++) {
        const orr__layer_weights w = orr__llm_view_weights(&x->v, b->first_of[k]);
        bound_load load = {0};
        if (w.dense * y->grad >= bucket_bytes(x))
            own[k] += reduce_ns(x, &x->l->data, w.dense * y->grad, &load);
        if (w.expert * y->grad >= bucket_bytes(x))
            own[k] += reduce_ns(x, expert_shapes(x), w.expert * y->grad, &load);
        bound_add_load(&g->again_load, &load, g->layers[k]);
    }
    for (uint32_t k = 0; k < c->chunks && g->chunk_reduce_ns; k++)
        for (uint32_t l = g->chunks[k][0]; l < g->chunks[k][1]; l++)
            g->chunk_reduce_ns[k] += own[b->kind_of[l]];
    return g->chunk_reduce_ns != NULL;
}

static bool sum_gathers(const cutter *x, const orr__tape_sync *y, bound_stage *g)
{
    const struct search_bounds *b = x->s->bounds;
    const uint64_t n = orr__llm_view_degree(&x->v, ORR__TAPE_DATA);
    if (y->gathers_at_end) {
        const uint64_t most = share_of(orr__llm_piece_bytes(&x->o), n);
        const double times = floor((double)(y->dense_share / (most ? most : 1)));
        bound_load load = {0};
        g->gather_ns =
            times * bound_collective_ns(b, &x->l->data, ORR_COLL_ALL_GATHER, most, &load);
        bound_add_load(&g->load, &load, times);
    }
    if (!y->gathers_layers)
        return true;
    g->kind_gather_ns = orr_arena_new(x->arena, b->kinds, double);
    for (uint32_t k = 0; k < b->kinds && g->kind_gather_ns; k++) {
        const orr__layer_weights w = orr__llm_view_gathered(&x->v, b->first_of[k]);
        bound_load load = {0};
        g->kind_gather_ns[k] =
            bound_collective_ns(b, &x->l->data, ORR_COLL_ALL_GATHER, share_of(w.dense, n), &load);
        if (w.expert && expert_degree(x) > 1)
            g->kind_gather_ns[k] +=
                bound_collective_ns(b, expert_shapes(x), ORR_COLL_ALL_GATHER,
                                    share_of(w.expert, expert_degree(x)), &load);
        bound_add_load(&g->gather_load, &load, 2.0 * g->layers[k]);
    }
    return g->kind_gather_ns != NULL;
}

static orr_code sum_update(cutter *x, bound_stage *g, orr__tape_sync *y, orr_error *err)
{
    const struct search_bounds *b = x->s->bounds;
    const work_device d = bound_device(x->s);
    work_kernel_sum parts[2] = {{0}};
    uint32_t seen = 0;
    const orr_code code = orr__llm_tape_update(&x->v, g->rank, &x->tape, y, err);
    for (size_t i = 1; !code && i < x->tape.count; i++) {
        const orr__tape_node *n = &x->tape.nodes[i];
        if (n->kind != ORR__TAPE_COMPUTE || seen == 2)
            continue;
        if (b->chip && n->kernel_count)
            for (uint32_t k = 0; k < n->kernel_count; k++)
                (void)!work_add_kernel(&d, &x->tape.kernels[n->first_kernel + k], &parts[seen]);
        else if (b->chip)
            work_add_roofline(&d, (double)n->operations, (double)n->bytes, &parts[seen]);
        else
            parts[seen].fixed_us = (double)n->bytes / (double)b->system.memory_bandwidth * 1e6;
        seen++;
    }
    const bool has_norm = !x->o.no_clipping;
    if (has_norm)
        g->norm = parts[0];
    g->update = parts[has_norm ? 1 : 0];
    return code;
}

static orr_code make_stage(cutter *x, uint32_t rank, bound_stage *g, orr_error *err)
{
    const struct search_bounds *b = x->s->bounds;
    const search_candidate *c = &x->cut->like;
    orr__tape_sync y;
    *g = (bound_stage){.rank = rank, .is_first = rank == 0, .is_last = rank == last_rank(c)};
    g->layers = orr_arena_new(x->arena, b->kinds, uint32_t);
    g->chunks = orr_arena_zeroed(x->arena, c->chunks, sizeof *g->chunks);
    if (!g->layers || !g->chunks)
        return orr_no_memory(err);
    for (uint32_t k = 0; k < c->chunks; k++) {
        uint64_t first, end;
        orr__llm_view_layers(&x->v, bound_stage_of(c, rank, k), &first, &end);
        g->chunks[k][0] = (uint32_t)first;
        g->chunks[k][1] = (uint32_t)end;
        for (; first < end; first++)
            g->layers[b->kind_of[first]]++;
    }
    const orr_code code = sum_update(x, g, &y, err);
    if (code)
        return code;
    sum_gradients(x, &y, g);
    return sum_gathers(x, &y, g) && sum_each_micro_batch(x, &y, g) ? ORR_OK : orr_no_memory(err);
}

static orr_code make_cut(void *context, size_t i, orr_error *err)
{
    orr_plan_search *s = context;
    struct search_bounds *b = s->bounds;
    bound_cut *cut = &b->cuts[i];
    const uint32_t pp = cut->like.pp;
    cutter x = {.s = s,
                .l = bound_layout_of(b, &cut->like),
                .cut = cut,
                .arena = b->arenas[b->group_count + i] = orr_arena_create(),
                .o = search_options(s, &cut->like)};
    uint64_t before = 0;
    search_fill_in(&x.o);
    if (!x.arena || !(cut->stage_of = orr_arena_new(x.arena, pp, uint32_t)) ||
        !(cut->stages = orr_arena_zeroed(x.arena, pp, sizeof *cut->stages)))
        return orr_no_memory(err);
    orr_code code = orr__llm_view_open(s->opt.model, &x.o, &x.v, err);
    for (uint32_t rank = 0; rank < pp && !code; rank++) {
        const uint64_t order = order_of(&x, rank);
        if (rank == 0 || order != before)
            code = make_stage(&x, rank, &cut->stages[cut->count++], err);
        before = order;
        cut->stage_of[rank] = cut->count - 1;
    }
    orr__llm_view_close(&x.v);
    orr__tape_fini(&x.tape);
    return code;
}

static orr_code make_cuts(orr_plan_search *s, orr_error *err)
{
    struct search_bounds *b = s->bounds;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < s->count && !code; i++)
        code = add_cut(s, &s->list[i], err);
    orr_arena **more = code ? NULL : orr_alloc(b->group_count + b->cut_count + 1, sizeof *more);
    if (!code && !more)
        code = orr_no_memory(err);
    if (code)
        return code;
    memcpy(more, b->arenas, b->group_count * sizeof *more);
    orr_free(b->arenas);
    b->arenas = more;
    b->arena_count = b->group_count + b->cut_count;
    return orr_pool_for(s->opt.threads, b->cut_count, make_cut, s, err);
}

/* ---- matrices ---- */

/* From (data, device, stream) before to the same after it, in ns. */
typedef struct bound_matrix {
    double at[BOUND_STATES][BOUND_STATES];
} bound_matrix;

static const bound_matrix nothing = {
    .at = {{0, NEVER, NEVER}, {NEVER, 0, NEVER}, {NEVER, NEVER, 0}}};

static bound_matrix matrix_of(const bound_part *p, double slow, double hold)
{
    bound_matrix m;
    if (!p->is_known)
        return nothing;
    for (unsigned i = 0; i < BOUND_STATES; i++)
        for (unsigned k = 0; k < BOUND_STATES; k++)
            m.at[i][k] = bound_at(&p->at[i][k], slow, hold);
    return m;
}

/* First a, then b. */
static bound_matrix then(const bound_matrix *a, const bound_matrix *b)
{
    bound_matrix m;
    for (unsigned i = 0; i < BOUND_STATES; i++)
        for (unsigned k = 0; k < BOUND_STATES; k++)
            m.at[i][k] = bound_max(bound_max(b->at[i][0] + a->at[0][k], b->at[i][1] + a->at[1][k]),
                                   b->at[i][2] + a->at[2][k]);
    return m;
}

/* ---- a stage ---- */

typedef struct stage_sums {
    double fixed, clocked, flops, hold, host;
    bound_load load;
    double tensor_ns, node_count;
} stage_sums;

static void add_sum(stage_sums *x, const bound_part *p, double times)
{
    x->fixed += times * p->sum.fixed_us;
    x->clocked += times * p->sum.clocked_us;
    x->flops += times * p->sum.flops;
    x->hold += times * p->hold_us;
    x->host += times * p->sum.host_us;
    bound_add_load(&x->load, &p->load, times);
    x->tensor_ns += times * p->tensor_ns;
    x->node_count += times * p->node_count;
}

/* A pass of a chunk. */
typedef struct pass_work {
    bound_matrix all;
    /* ZeRO 3: weights are requested when the input has arrived (after embedding or head), and
     * gathered sequentially. */
    bool has_start;
    bound_matrix start;
    double gather_ns, first_gather_ns;
    double after_last;  /* from the last gather to the result */
    double after_first; /* from the first */
} pass_work;

/* Computations of one micro-batch of a chunk, and collectives of its gradients of weights. */
typedef struct task_work {
    double forward_ns, backward_ns, weights_ns, weights_tensor_ns;
} task_work;

/* The work of a stage, at its clock. */
typedef struct rank_work {
    const bound_stage *g;
    double slow;                   /* the clock */
    double hold;                   /* slowdown of its computations */
    pass_work *forward, *backward; /* by chunk */
    double compute_ns;             /* sum of all computations, the update apart */
    struct task_work *tasks;       /* zero bubble, by chunk */
    double norm_ns, update_ns;
    double port_ns;   /* minimum time its busiest port is in use */
    double stream_ns; /* of all data-parallel traffic except the last gradients */
    double moving_ns; /* minimum time with a collective in flight */
} rank_work;

typedef struct bound_job {
    orr_plan_search *s;
    const bound_unit *u;
    const bound_cut *cut;
    const search_candidate *c;
    uint64_t batches;
    const bound_layout *l;
    rank_work *work; /* by stage of the cut */
    rank_work *held; /* of one rank whose computations are all slowed; NULL: none */
    uint32_t held_rank;
} bound_job;

static bool is_cut_up(const bound_job *j)
{
    return bound_is_cut(j->c);
}

/* Maxima that ranks agree on behind each pass: how long is not known, but the device waits for it,
 * and the longer, the higher is its clock. */
#define AGREEMENT_US 500
static double agreements_us(const bound_job *j)
{
    const orr_llm_options *o = &j->s->base;
    const bool agrees = o->fp8_scaling == ORR_FP8_DELAYED || o->fp8_scaling == ORR_FP8_DELAYED_TP;
    return agrees ? 2.0 * (double)j->batches * j->c->chunks * AGREEMENT_US : 0;
}

static stage_sums sum_work(const bound_job *j, const bound_stage *g)
{
    const double m = (double)j->batches;
    stage_sums x = {.hold = agreements_us(j)};
    for (uint32_t k = 0; k < j->s->bounds->kinds; k++) {
        const double times = m * g->layers[k];
        add_sum(&x, &j->u->forward[k], times);
        add_sum(&x, &j->u->backward[k], times);
        if (is_cut_up(j))
            add_sum(&x, &j->u->weights[k], times);
    }
    if (g->is_first) {
        add_sum(&x, &j->u->ends[0], m);
        add_sum(&x, &j->u->ends[3], m);
    }
    if (g->is_last) {
        add_sum(&x, &j->u->ends[1], m);
        add_sum(&x, &j->u->ends[2], m);
        if (is_cut_up(j))
            add_sum(&x, &j->u->head_weights, m);
    }
    return x;
}

/* Does the device wait for what the sums do not have?  The clock is higher then: in pairs of
 * passes, and for large reductions after the last pass. */
static bool waits_unknown(const orr_llm_options *o)
{
    return o->overlaps_experts || o->no_overlap || o->bucket_bytes > USUAL_BUCKET;
}

/* As in kernel_times.c; the update adds time but no products. */
static double find_slow(const bound_job *j, const stage_sums *x, double update_us)
{
    const orr_chip *const chip = j->s->bounds->chip;
    const chip_cost sum = {
        .fixed_us = x->fixed + x->hold + update_us, .clocked_us = x->clocked, .flops = x->flops};
    if (waits_unknown(&j->s->base))
        return 1;
    if (!chip || x->host > 0.8 * (x->fixed + x->clocked))
        return 1; /* the host may delay the device, and a slower step has a higher clock */
    return orr__chip_slowdown_of(chip, &sum, j->s->bounds->deviations);
}

/* Matrices of parts at one clock. */
typedef struct part_set {
    bound_matrix forward[BOUND_KINDS], backward[BOUND_KINDS], first[BOUND_KINDS], ends[4];
    double forward_gate[BOUND_KINDS], backward_gate[BOUND_KINDS], first_gate[BOUND_KINDS];
} part_set;

static double gate_of(const bound_part *p, double slow, double hold)
{
    return p->is_known ? bound_max(0, bound_at(&p->gate, slow, hold)) : 0;
}

static void find_parts(const bound_job *j, const rank_work *w, part_set *out)
{
    const bound_unit *u = j->u;
    const double slow = w->slow, hold = w->hold;
    for (uint32_t k = 0; k < j->s->bounds->kinds; k++) {
        out->forward[k] = matrix_of(&u->forward[k], slow, hold);
        out->backward[k] = matrix_of(&u->backward[k], slow, hold);
        out->first[k] = matrix_of(&u->first_backward[k], slow, hold);
        if (j->c->zero < 3)
            continue;
        out->forward_gate[k] = gate_of(&u->forward[k], slow, hold);
        out->backward_gate[k] = gate_of(&u->backward[k], slow, hold);
        out->first_gate[k] = gate_of(&u->first_backward[k], slow, hold);
    }
    for (unsigned i = 0; i < 4; i++)
        out->ends[i] = matrix_of(&u->ends[i], slow, hold);
}

/* A pass grows layer by layer. */
static void add_layer(const bound_stage *g,
                      pass_work *p,
                      uint32_t kind,
                      const bound_matrix *m,
                      double gate,
                      bool is_only_start)
{
    p->all = then(&p->all, m);
    if (!g->kind_gather_ns)
        return;
    const double cc = bound_max(m->at[BOUND_DATA][BOUND_DATA], 0), gather = g->kind_gather_ns[kind];
    if (is_only_start) {
        p->first_gather_ns = gather;
        p->after_first = gate;
    } else {
        p->after_first += cc;
    }
    p->gather_ns += gather;
    p->after_last = gate;
}

static void find_passes(const bound_job *j, const part_set *x, rank_work *w)
{
    const bound_stage *g = w->g;
    const uint32_t *kind_of = j->s->bounds->kind_of, chunks = j->c->chunks;
    for (uint32_t c = 0; c < chunks; c++) {
        const bool is_first = g->is_first && c == 0, is_last = g->is_last && c + 1 == chunks;
        const uint32_t begin = g->chunks[c][0], end = g->chunks[c][1];
        pass_work f = {
            .all = is_first ? x->ends[0] : nothing, .has_start = is_first, .start = x->ends[0]};
        pass_work b = {
            .all = is_last ? x->ends[2] : nothing, .has_start = is_last, .start = x->ends[2]};
        for (uint32_t l = begin; l < end; l++) {
            const uint32_t kind = kind_of[l], back = kind_of[end - 1 - (l - begin)];
            const bool starts = l == begin && !is_last;
            add_layer(g, &f, kind, &x->forward[kind], x->forward_gate[kind], l == begin);
            add_layer(g, &b, back, starts ? &x->first[back] : &x->backward[back],
                      starts ? x->first_gate[back] : x->backward_gate[back], l == begin);
        }
        if (is_last)
            f.all = then(&f.all, &x->ends[1]);
        if (is_first)
            b.all = then(&b.all, &x->ends[3]);
        w->forward[c] = f;
        w->backward[c] = b;
    }
}

static double work_ns(const work_kernel_sum *x, double slow)
{
    return (x->fixed_us + x->clocked_us * slow) * 1e3;
}

/* Computations of one micro-batch, by task. */
static void sum_tasks(const bound_job *j, rank_work *w)
{
    for (uint32_t c = 0; c < j->c->chunks; c++) {
        stage_sums f = {0}, b = {0}, x = {0};
        for (uint32_t l = w->g->chunks[c][0]; l < w->g->chunks[c][1]; l++) {
            const uint32_t k = j->s->bounds->kind_of[l];
            add_sum(&f, &j->u->forward[k], 1);
            add_sum(&b, &j->u->backward[k], 1);
            add_sum(&x, &j->u->weights[k], 1);
        }
        w->tasks[c] = (task_work){(f.fixed + f.clocked * w->slow) * 1e3 * w->hold,
                                  (b.fixed + b.clocked * w->slow) * 1e3 * w->hold,
                                  (x.fixed + x.clocked * w->slow) * 1e3 * w->hold, x.tensor_ns};
    }
}

static void sum_stream(const bound_job *j, rank_work *w)
{
    const bound_stage *g = w->g;
    double gathers = 0, reduces = 0;
    for (uint32_t k = 0; k < j->s->bounds->kinds && g->kind_gather_ns; k++)
        gathers += g->layers[k] * g->kind_gather_ns[k];
    for (uint32_t c = 0; c < j->c->chunks && g->chunk_reduce_ns; c++)
        reduces += g->chunk_reduce_ns[c];
    w->stream_ns = (double)j->batches * (2 * gathers + reduces) - reduces;
}

/* Everything a rank sends uses its ports, even if nothing waits for it. */
static double find_port_ns(const bound_job *j, const bound_stage *g, const stage_sums *sums)
{
    const double m = (double)j->batches;
    bound_load x = sums->load;
    bound_add_load(&x, &g->load, 1);
    bound_add_load(&x, &g->gather_load, m);
    bound_add_load(&x, &g->again_load, m - 1);
    return bound_max(x.up_ns, x.out_ns);
}

static void prepare_stage(const bound_job *j, rank_work *w)
{
    const stage_sums sums = sum_work(j, w->g);
    const double norm = work_ns(&w->g->norm, 1), update = work_ns(&w->g->update, 1);
    part_set parts;
    w->slow = find_slow(j, &sums, (norm + update) * 1e-3);
    w->norm_ns = norm * w->hold;
    w->update_ns = update * w->hold;
    w->compute_ns = (sums.fixed + sums.clocked * w->slow) * 1e3 * w->hold;
    find_parts(j, w, &parts);
    find_passes(j, &parts, w);
    sum_stream(j, w);
    w->port_ns = find_port_ns(j, w->g, &sums);
    w->moving_ns = bound_max(bound_max(w->port_ns, sums.tensor_ns), w->stream_ns + w->g->reduce_ns);
    if (is_cut_up(j))
        sum_tasks(j, w);
}

static const rank_work *work_of(const bound_job *j, uint32_t rank)
{
    return j->held && rank == j->held_rank ? j->held : &j->work[j->cut->stage_of[rank]];
}

/* ---- the pipeline ---- */

typedef struct flow {
    const bound_job *j;
    double *forward, *backward; /* by virtual stage and micro-batch: when its result is complete */
    double message;
    struct rank_state {
        orr__llm_task *tasks;
        size_t count, at;
        double free, before; /* the device; the result of the previous task */
        struct pair_start {
            double device, tensor, stream; /* when the forward pass of a pair could start */
            double forward;                /* its end */
            double gather_ns;              /* weights that it asked for */
        } pair;
        double computed; /* sum of all computations of the tasks so far, but: */
        double weights;  /* of gradients of weights that are tasks of their own */
        double base;     /* the latest end of a backward pass, minus what came before it */
        double later;    /* lower bound on when the device is free after the next task */
        /* Zero bubble, by chunk and micro-batch: the end of its backward pass minus `computed` at
         * that time. */
        double *ends;
        double first, final; /* its start; the start of its first final backward pass */
        double last_backward, last_weights; /* its end; what its gradients of weights take */
        double stream;                      /* between data-parallel ranks: free */
        double tensor;                      /* of tensor-parallel collectives: free */
    } * ranks;
} flow;

static double *slot(const flow *x, double *list, uint32_t stage, uint32_t micro_batch)
{
    return &list[(size_t)stage * x->j->batches + micro_batch];
}

static bool is_final(const flow *x, const orr__llm_task *t)
{
    return t->micro_batch == (x->j->c->pipeline == ORR_PIPELINE_GPIPE ? 0 : x->j->batches - 1);
}

static uint32_t rank_of(const search_candidate *c, uint32_t stage)
{
    const uint32_t chunk = stage / c->pp, at = stage % c->pp;
    return bound_is_v(c) && chunk % 2 ? c->pp - 1 - at : at;
}

/* When its input has arrived; below 0: not known yet. */
static double input_of(const flow *x, uint32_t rank, const orr__llm_task *t)
{
    const search_candidate *c = x->j->c;
    const uint32_t stage = bound_stage_of(c, rank, t->chunk);
    const bool is_forward = t->kind == ORR_LLM_FORWARD;
    if (is_forward && stage == 0)
        return 0;
    if (!is_forward && stage + 1 == c->pp * c->chunks)
        return *slot(x, x->forward, stage, t->micro_batch);
    const uint32_t other = is_forward ? stage - 1 : stage + 1;
    const double from = *slot(x, is_forward ? x->forward : x->backward, other, t->micro_batch);
    return from < 0 ? -1 : from + (rank_of(c, other) == rank ? 0 : x->message);
}

static double result_of(
    const bound_matrix *m, unsigned what, double data, double device, double tensor)
{
    const double *at = m->at[what];
    return bound_max(bound_max(at[BOUND_DATA] + data, at[BOUND_DEVICE] + device),
                     at[BOUND_TENSOR] + tensor);
}

/* Weights that the pass waits for, and gradients that it sends; returns the earliest completion of
 * its result. */
static double use_stream(const flow *x,
                         const rank_work *w,
                         struct rank_state *r,
                         const orr__llm_task *t,
                         double data,
                         double device)
{
    const bool is_forward = t->kind == ORR_LLM_FORWARD;
    const pass_work *p = is_forward ? &w->forward[t->chunk] : &w->backward[t->chunk];
    double start = data, out = 0;
    if (p->gather_ns > 0) {
        if (p->has_start)
            start = result_of(&p->start, BOUND_DATA, data, device, r->tensor);
        start = bound_max(start, r->stream);
        out = start + bound_max(p->gather_ns + p->after_last, p->first_gather_ns + p->after_first);
        r->stream = start + p->gather_ns;
    }
    if (!is_forward && w->g->chunk_reduce_ns && !is_cut_up(x->j))
        r->stream = bound_max(r->stream, data) + w->g->chunk_reduce_ns[t->chunk];
    return out;
}

/* ---- passes in pairs ----
 *
 * A forward and a backward pass are written in turns, layer by layer (llm_training.c): both start
 * after the backward pass of the pair before, and the first computation also after its forward
 * pass.  What one of them computes may run where the other waits, so nothing else is known of their
 * order. */

static bool is_other(const orr__llm_task *a, const orr__llm_task *b)
{
    return a->micro_batch != b->micro_batch || a->chunk != b->chunk;
}

static bool begins_pair(const struct rank_state *r, size_t i)
{
    const orr__llm_task *t = &r->tasks[i];
    return i + 1 < r->count && t->kind == ORR_LLM_FORWARD && t[1].kind == ORR_LLM_BACKWARD &&
           is_other(t, t + 1);
}

/* Is the next task half of a pair?  Backward passes are the second half, so none begins a pair. */
static bool is_paired(const flow *x, const struct rank_state *r)
{
    return x->j->s->base.overlaps_experts &&
           (begins_pair(r, r->at) || (r->at && begins_pair(r, r->at - 1)));
}

static bool run_half(flow *x, uint32_t rank, double data)
{
    struct rank_state *r = &x->ranks[rank];
    const rank_work *w = work_of(x->j, rank);
    const orr__llm_task *t = &r->tasks[r->at];
    const bool is_forward = t->kind == ORR_LLM_FORWARD;
    const uint32_t stage = bound_stage_of(x->j->c, rank, t->chunk);
    const pass_work *p = is_forward ? &w->forward[t->chunk] : &w->backward[t->chunk];
    if (is_forward) /* of the pair before, only one of the two waits for the forward pass */
        r->pair = (struct pair_start){.device = bound_max(r->free, r->before),
                                      .stream = r->stream,
                                      .gather_ns = p->gather_ns};
    struct pair_start *s = &r->pair;
    const double after_forward = r->stream; /* both share a stream, in an order that is not known */
    r->stream = s->stream;
    const double out = bound_max(result_of(&p->all, BOUND_DATA, data, s->device, r->tensor),
                                 use_stream(x, w, r, t, data, s->device));
    if (!is_forward)
        r->stream =
            bound_max(bound_max(r->stream, after_forward), s->stream + s->gather_ns + p->gather_ns);
    if (r->at == 0)
        r->first = bound_max(data, s->device);
    if (!is_forward && is_final(x, t) && r->final < 0)
        r->final = bound_max(data, 0);
    if (is_forward) {
        s->forward = out;
    } else {
        r->before = out;
        r->last_backward = out;
    }
    *slot(x, is_forward ? x->forward : x->backward, stage, t->micro_batch) = out;
    r->at++;
    return true;
}

static bool run_task(flow *x, uint32_t rank)
{
    struct rank_state *r = &x->ranks[rank];
    const rank_work *w = work_of(x->j, rank);
    const orr__llm_task *t = &r->tasks[r->at];
    const uint32_t stage = bound_stage_of(x->j->c, rank, t->chunk);
    const size_t own = (size_t)t->chunk * x->j->batches + t->micro_batch;
    if (t->kind == ORR_LLM_WEIGHTS) {
        /* It waits only for its backward pass, and the next task for it: in between the device has
         * computed all other tasks issued in between, and of the gradients of weights, which may
         * fill gaps, at least those that belong to this backward pass or a later one. */
        r->base = bound_max(r->base, r->ends[own] - r->weights);
        r->weights += w->tasks[t->chunk].weights_ns;
        r->tensor += w->tasks[t->chunk].weights_tensor_ns; /* gathers, sequential */
        const double end = r->base + r->computed + r->weights;
        if (x->j->c->no_sequence_parallel || x->j->c->tp == 1)
            r->free = bound_max(r->free, end);
        else
            r->later = bound_max(
                r->later, end); /* its gathers precede those of the next task, not its first node */
        if (w->g->chunk_reduce_ns)
            r->stream += w->g->chunk_reduce_ns[t->chunk];
        r->at++;
        return true;
    }
    const double data = input_of(x, rank, t);
    if (data < 0)
        return false;
    if (is_paired(x, r))
        return run_half(x, rank, data);
    const double device = bound_max(bound_max(r->free, r->before), r->pair.forward);
    const bool is_forward = t->kind == ORR_LLM_FORWARD;
    r->pair = (struct pair_start){0};
    const pass_work *p = is_forward ? &w->forward[t->chunk] : &w->backward[t->chunk];
    const bound_matrix *m = &p->all;
    const double out = bound_max(result_of(m, BOUND_DATA, data, device, r->tensor),
                                 use_stream(x, w, r, t, data, device));
    if (r->at == 0)
        r->first = bound_max(data, device);
    if (!is_forward && is_final(x, t) && r->final < 0)
        r->final = bound_max(data, 0);
    r->free = bound_max(device, result_of(m, BOUND_DEVICE, data, device, r->tensor));
    r->tensor = bound_max(r->tensor, result_of(m, BOUND_TENSOR, data, device, r->tensor));
    r->before = out;
    if (r->later > 0) {
        r->free = bound_max(r->free, r->later);
        r->before = bound_max(r->before, r->later);
        r->later = 0;
    }
    if (r->ends)
        r->computed += is_forward ? w->tasks[t->chunk].forward_ns : w->tasks[t->chunk].backward_ns;
    if (!is_forward && r->ends) {
        r->ends[own] = out - r->computed;
        r->last_weights = w->tasks[t->chunk].weights_ns;
    }
    if (!is_forward)
        r->last_backward = out;
    *slot(x, is_forward ? x->forward : x->backward, stage, t->micro_batch) = r->before;
    r->at++;
    return true;
}

static void follow(flow *x)
{
    const uint32_t pp = x->j->c->pp;
    bool goes_on = true;
    while (goes_on) {
        goes_on = false;
        for (uint32_t rank = 0; rank < pp; rank++)
            while (x->ranks[rank].at < x->ranks[rank].count && run_task(x, rank))
                goes_on = true;
    }
}

/* When the last rank is done, ns. */
static double end_of_step(flow *x)
{
    const bound_job *j = x->j;
    double norm = 0, rest = 0, alone = 0;
    bound_load load = {0};
    for (uint32_t i = 0; i < j->c->pp; i++) {
        const struct rank_state *r = &x->ranks[i];
        const rank_work *w = work_of(j, i);
        double done = bound_max(bound_max(r->free, r->before), r->pair.forward);
        done = bound_max(done, r->first + w->compute_ns);
        if (is_cut_up(j))
            done = bound_max(done, r->last_backward + r->last_weights);
        double reduced =
            bound_max(done + w->g->last_reduce_ns, bound_max(r->final, 0) + w->g->reduce_ns);
        reduced = bound_max(reduced, bound_max(r->stream, w->stream_ns + w->g->reduce_ns));
        norm = bound_max(norm, reduced + w->norm_ns);
        rest = bound_max(rest, w->update_ns + w->g->gather_ns);
        alone = bound_max(alone, reduced + w->update_ns + w->g->gather_ns);
    }
    if (j->s->base.no_clipping) /* no rank waits for another */
        return alone;
    return norm + bound_collective_ns(j->s->bounds, &j->l->world, ORR_COLL_ALL_REDUCE, 4, &load) +
           rest;
}

static orr_code follow_pipeline(const bound_job *j, double *ns, orr_error *err)
{
    const uint32_t pp = j->c->pp;
    const size_t slots = (size_t)pp * j->c->chunks * j->batches;
    flow x = {.j = j};
    orr__llm_view v;
    orr_llm_options o = search_options(j->s, j->c);
    search_fill_in(&o);
    const orr_code code = orr__llm_view_open(j->s->opt.model, &o, &v, err);
    if (code)
        return code;
    x.message =
        bound_message_ns(j->s->bounds, j->c->tp * j->c->cp * j->c->dp, orr__llm_view_message(&v));
    x.forward = orr_alloc(2 * slots, sizeof *x.forward);
    x.ranks = orr_alloc(pp, sizeof *x.ranks);
    bool ok = x.forward && x.ranks;
    x.backward = ok ? x.forward + slots : NULL;
    for (size_t i = 0; ok && i < 2 * slots; i++)
        x.forward[i] = -1;
    for (uint32_t i = 0; ok && i < pp; i++) {
        x.ranks[i].final = -1;
        x.ranks[i].base = NEVER;
        x.ranks[i].tasks = orr__llm_view_tasks(&v, i, &x.ranks[i].count);
        const bool is_cut = is_cut_up(j);
        if (is_cut)
            x.ranks[i].ends = orr_alloc((size_t)j->batches * j->c->chunks, sizeof *x.ranks[i].ends);
        ok = x.ranks[i].tasks && (x.ranks[i].ends || !is_cut);
    }
    if (ok) {
        follow(&x);
        *ns = end_of_step(&x);
    }
    for (uint32_t i = 0; x.ranks && i < pp; i++) {
        orr_free(x.ranks[i].tasks);
        orr_free(x.ranks[i].ends);
    }
    orr__llm_view_close(&v);
    orr_free(x.ranks);
    orr_free(x.forward);
    return ok ? ORR_OK : orr_no_memory(err);
}

/* ---- without following every task ---- */

/* A rank is idle until the first micro-batch has passed the previous stages; its tasks are
 * sequential; and its last result must go back through those stages. */
static double rough_end(const bound_job *j)
{
    const bool is_cut = is_cut_up(j), is_paired = j->s->base.overlaps_experts;
    const double m = (double)j->batches;
    double head = 0, tail = 0, most = 0;
    for (uint32_t i = 0; i < j->c->pp; i++) {
        const rank_work *w = work_of(j, i);
        double chain = 0, device = 0;
        for (uint32_t c = 0; c < j->c->chunks && !is_paired; c++) {
            chain += m * (bound_max(w->forward[c].all.at[BOUND_DATA][BOUND_DEVICE], 0) +
                          bound_max(w->backward[c].all.at[BOUND_DATA][BOUND_DEVICE], 0));
            device += m * (w->forward[c].all.at[BOUND_DEVICE][BOUND_DEVICE] +
                           w->backward[c].all.at[BOUND_DEVICE][BOUND_DEVICE]);
        }
        const double last = bound_max(w->backward[0].all.at[BOUND_DATA][BOUND_DEVICE], 0) -
                            w->backward[0].all.at[BOUND_DEVICE][BOUND_DEVICE];
        const double done = bound_max(chain, device + last);
        most = bound_max(most, head + bound_max(bound_max(chain, device), w->compute_ns) +
                                   w->norm_ns + w->update_ns);
        most = bound_max(most, w->port_ns);
        most = bound_max(most, w->stream_ns + w->g->reduce_ns + w->norm_ns + w->update_ns);
        if (!is_cut && !is_paired)
            most = bound_max(most, head + done + tail + w->norm_ns + w->update_ns);
        head += bound_max(w->forward[0].all.at[BOUND_DATA][BOUND_DEVICE], 0);
        tail += bound_max(w->backward[0].all.at[BOUND_DATA][BOUND_DEVICE], 0);
    }
    return most;
}

/* ---- overlap with collectives ---- */

/* Collectives in flight slow compute down by a share c (overlap_cost).  Take any path through the
 * step.  Of its time T a rank's computations on it take A, of which O overlap with collectives of
 * that rank, and the rest N.  Their work is C = A - c O, and the rank's collectives move for M <= O
 * + N. So T = A + N >= C + c (M - N) + N = c M + (1 - c) (C / (1 - c) + N): the longest path on
 * which this rank computes at 1 - c of its speed.  Messages slow compute as well: then C is less
 * than A - c O, and the bound still holds. */
static double with_collectives(const bound_job *j, double moving, double held_up)
{
    const double cost = j->s->bounds->system.overlap_cost;
    return cost * moving + (1 - cost) * held_up;
}

/* The path through all computations of a rank, after the first micro-batch has reached it. */
static double rough_end_beside(const bound_job *j)
{
    const double cost = j->s->bounds->system.overlap_cost;
    double head = 0, most = 0;
    for (uint32_t i = 0; i < j->c->pp && cost > 0; i++) {
        const rank_work *w = work_of(j, i);
        const double computing = w->compute_ns + w->norm_ns + w->update_ns;
        most = bound_max(most, with_collectives(j, w->moving_ns, head + computing / (1 - cost)));
        head += bound_max(w->forward[0].all.at[BOUND_DATA][BOUND_DEVICE], 0);
    }
    return most;
}

/* The step again for some ranks: the ends, and one in between. */
static orr_code end_beside(bound_job *j, double *ns, orr_error *err)
{
    const uint32_t pp = j->c->pp, chunks = j->c->chunks, ranks[3] = {0, pp / 2, pp - 1};
    rank_work *w = orr_alloc(1, sizeof *w + chunks * (2 * sizeof(pass_work) + sizeof(task_work)));
    orr_code code = w ? ORR_OK : orr_no_memory(err);
    for (unsigned i = 0; i < 3 && !code; i++) {
        double held_up = 0;
        if (i && ranks[i] == ranks[i - 1])
            continue;
        *w = (rank_work){.g = &j->cut->stages[j->cut->stage_of[ranks[i]]],
                         .hold = 1 / (1 - j->s->bounds->system.overlap_cost),
                         .forward = (pass_work *)(w + 1)};
        w->backward = w->forward + chunks;
        w->tasks = (task_work *)(w->backward + chunks);
        prepare_stage(j, w);
        j->held = w;
        j->held_rank = ranks[i];
        code = follow_pipeline(j, &held_up, err);
        *ns = bound_max(*ns, with_collectives(j, w->moving_ns, held_up));
    }
    j->held = NULL;
    orr_free(w);
    return code;
}

/* ---- interface ---- */

static bool open_work(bound_job *j)
{
    const uint32_t n = j->cut->count, chunks = j->c->chunks;
    j->work = orr_alloc(n, sizeof *j->work + chunks * (2 * sizeof(pass_work) + sizeof(task_work)));
    pass_work *passes = j->work ? (pass_work *)(j->work + n) : NULL;
    task_work *tasks = j->work ? (task_work *)(passes + (size_t)2 * chunks * n) : NULL;
    for (uint32_t i = 0; i < n && j->work; i++) {
        j->work[i].g = &j->cut->stages[i];
        j->work[i].hold = 1;
        j->work[i].forward = passes + (size_t)2 * chunks * i;
        j->work[i].backward = j->work[i].forward + chunks;
        j->work[i].tasks = tasks + (size_t)chunks * i;
        prepare_stage(j, &j->work[i]);
    }
    return j->work != NULL;
}

static bound_job job_of(orr_plan_search *s, const search_candidate *c)
{
    const struct search_bounds *b = s->bounds;
    return (bound_job){.s = s,
                       .u = &b->units[orr_map_find(b->unit_of, bound_unit_key(c), 0)],
                       .cut = &b->cuts[orr_map_find(b->cut_of, cut_key(b, c), 0)],
                       .c = c,
                       .l = bound_layout_of(b, c),
                       .batches = s->base.batch / ((uint64_t)c->dp * c->micro_batch)};
}

double search_nodes(orr_plan_search *s, const search_candidate *c)
{
    const bound_job j = job_of(s, c);
    double sum = 0;
    for (uint32_t i = 0; i < c->pp; i++)
        sum += sum_work(&j, &j.cut->stages[j.cut->stage_of[i]]).node_count;
    return sum;
}

orr_code search_bound(orr_plan_search *s, search_candidate *c, search_care care, orr_error *err)
{
    bound_job j = job_of(s, c);
    double ns = 0;
    orr_code code = open_work(&j) ? ORR_OK : orr_no_memory(err);
    if (!code && care == SEARCH_ROUGH)
        ns = bound_max(rough_end(&j), rough_end_beside(&j));
    else if (!code && care == SEARCH_FINE)
        code = follow_pipeline(&j, &ns, err);
    else if (!code && s->bounds->system.overlap_cost > 0)
        code = end_beside(&j, &ns, err);
    c->bound_s = bound_max(c->bound_s, ns * 1e-9 * SLACK);
    orr_free(j.work);
    return code;
}

/* Do they take the same time? */
static bool is_same_kind(const orr__llm_view *v, const orr_model *m, uint64_t a, uint64_t b)
{
    return orr_model_is_alike(m, a, b) && orr_model_window(m, a) == orr_model_window(m, b) &&
           orr__llm_view_is_recomputed(v, a) == orr__llm_view_is_recomputed(v, b);
}

static orr_code find_kinds(orr_plan_search *s, struct search_bounds *b, orr_error *err)
{
    const orr_model *m = s->opt.model;
    orr_llm_options o = s->base;
    orr__llm_view v;
    o.tp = o.cp = o.pp = o.dp = o.ep = o.chunks = 1;
    o.shard = o.expert_tp = 0;
    o.micro_batch = o.batch;
    o.recompute = ORR_RECOMPUTE_FULL; /* of which layers may be some */
    const orr_code code = orr__llm_view_open(m, &o, &v, err);
    if (code || !(b->kind_of = orr_alloc(m->layers, sizeof *b->kind_of))) {
        orr__llm_view_close(&v);
        return code ? code : orr_no_memory(err);
    }
    for (uint64_t l = 0; l < m->layers; l++) {
        uint32_t k = 0;
        while (k < b->kinds && !is_same_kind(&v, m, l, b->first_of[k]))
            k++;
        if (k == BOUND_KINDS)
            k = 0; /* more than any model has */
        else if (k == b->kinds)
            b->first_of[b->kinds++] = l;
        b->kind_of[l] = k;
    }
    orr__llm_view_close(&v);
    return ORR_OK;
}

/* Networks of switches: a rank has one port per dimension.  The fastest usable between nodes
 * counts. */
static void find_ports(struct search_bounds *b)
{
    const uint32_t per_node = nccl_ranks_per_node(&b->dims);
    for (uint32_t k = 0; k < b->dims.dims; k++)
        if (b->dims.shape[k] != ORR_NET_SWITCH)
            return;
    for (uint32_t k = 0; k < b->dims.dims; k++) {
        const double rate = net_link_speed(b->dims.bandwidth[k]);
        if (k == 0 && per_node > 1)
            b->up_rate = rate;
        else
            b->out_rate = bound_max(b->out_rate, rate);
    }
}

orr_code search_bounds_create(orr_plan_search *s, orr_error *err)
{
    struct search_bounds *b = orr_alloc(1, sizeof *b);
    s->bounds = b;
    if (!b || !(b->unit_of = orr_map_create(0)) || !(b->layout_of = orr_map_create(0)) ||
        !(b->group_of = orr_map_create(0)) || !(b->cut_of = orr_map_create(0)))
        return orr_no_memory(err);
    orr_code code = find_kinds(s, b, err);
    if (!code)
        code = orr_machine_dims(&s->machine, &b->dims, err);
    if (!code)
        code = orr_machine_system(&s->machine, &b->system, err);
    if (!code)
        code = run_chip_of(&s->machine, &b->found, err);
    b->chip = b->found.chip;
    b->deviations = orr_highest_of(orr_machine_devices(&s->machine));
    b->has_times = strcmp(s->machine.collectives, "none") != 0;
    b->is_torus = strcmp(s->machine.collectives, "torus") == 0;
    if (!code)
        code = nccl_custom_open(s->machine.collectives, &b->table, err);
    if (!code)
        find_ports(b);
    if (!code)
        code = bound_make_units(s, err);
    return code ? code : make_cuts(s, err);
}

void search_bounds_destroy(struct search_bounds *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->arena_count; i++)
        orr_arena_destroy(b->arenas[i]);
    orr_free(b->arenas);
    orr_free(b->table);
    orr_free(b->units);
    orr_free(b->unit_groups);
    orr_free(b->layouts);
    orr_free(b->cuts);
    orr_map_destroy(b->unit_of);
    orr_map_destroy(b->group_of);
    orr_map_destroy(b->layout_of);
    orr_map_destroy(b->cut_of);
    orr_free(b->kind_of);
    orr_free(b);
}
