/* SPDX-License-Identifier: Apache-2.0 */
/* llm_sync.c - what data-parallel ranks do for each other: gradients, weights, and the update.
 *
 * Zero 0: gradients are all-reduced, every rank updates all weights it has.  Zero 1 and 2: gradients are
 * reduce-scattered, each rank updates its share, and weights are all-gathered.  Zero 3: a rank keeps its share
 * of the weights only and gathers a layer's before each use.  Gradients travel in buckets as soon as enough layers
 * have theirs, while the backward pass goes on. */
#include "llm_impl.h"

void llm_sync_open(llm_sync *y, llm_pen *p)
{
    *y = (llm_sync){.p = p};
    y->dense.axis = LLM_AXIS_DATA;
    /* Without expert parallelism experts are shared out like all else. */
    y->expert.axis = p->g->opt.ep > 1 ? LLM_AXIS_EXPERT_DATA : LLM_AXIS_DATA;
}

static uint64_t share(const llm_job *g, llm_axis axis, uint64_t whole)
{
    const uint64_t n = g->layout.degree[axis];
    return (whole + n - 1) / n;
}

void llm_sync_weights(llm_sync *y, uint64_t layer, uint64_t after, uint64_t out[2])
{
    const llm_job *g = y->p->g;
    uint64_t dense, expert;
    out[0] = out[1] = 0;
    if (g->opt.zero < 3)
        return;
    llm_layer_parameters(g, layer, &dense, &expert);
    if (g->layout.degree[y->dense.axis] > 1)
        out[0] = llm_put_collect(y->p, "weights.gather", ORR_COLL_ALL_GATHER,
                                 share(g, y->dense.axis, dense * g->weight), y->dense.axis,
                                 LLM_AFTER(after));
    if (expert && g->layout.degree[y->expert.axis] > 1)
        out[1] = llm_put_collect(y->p, "experts.gather", ORR_COLL_ALL_GATHER,
                                 share(g, y->expert.axis, expert * g->weight), y->expert.axis,
                                 LLM_AFTER(after));
}

/* ---- gradients ---- */

static void send_bucket(llm_sync *y, llm_bucket *b)
{
    const llm_job *g = y->p->g;
    if (b->bytes == 0)
        return;
    llm_put_collect(y->p, b == &y->expert ? "experts.reduce" : "grads.reduce",
                    g->opt.zero ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE, b->bytes, b->axis,
                    (llm_deps){b->after, b->count});
    b->bytes = 0;
    b->count = 0;
}

static void add_to_bucket(
    llm_sync *y, llm_bucket *b, uint64_t bytes, const uint64_t *ids, size_t count)
{
    const size_t room = sizeof b->after / sizeof *b->after;
    if (bytes == 0)
        return;
    if (b->count + count > room)
        send_bucket(y, b);
    b->bytes += bytes;
    for (size_t i = 0; i < count; i++)
        b->after[b->count++] = ids[i];
    if (!y->p->g->opt.no_overlap && b->bytes >= y->p->g->opt.bucket_bytes)
        send_bucket(y, b);
}

void llm_sync_grads(llm_sync *y, uint64_t dense, uint64_t expert, const llm_grads *grads)
{
    const uint64_t bytes = y->p->g->grad;
    y->last = *grads;
    add_to_bucket(y, &y->dense, dense * bytes, grads->dense, grads->dense_count);
    add_to_bucket(y, &y->expert, expert * bytes, grads->expert, grads->expert_count);
}

static void send_rest(llm_sync *y)
{
    send_bucket(y, &y->dense);
    send_bucket(y, &y->expert);
}

/* ---- the update ---- */

/* Parameters that this rank updates. */
static uint64_t own_parameters(const llm_sync *y)
{
    const llm_job *g = y->p->g;
    if (!g->opt.zero)
        return y->dense_parameters + y->expert_parameters;
    return share(g, y->dense.axis, y->dense_parameters) +
           share(g, y->expert.axis, y->expert_parameters);
}

/* Adam reads and writes two moments and the weights in 4 bytes, reads the gradient and writes the weights that are
 * computed with. */
static uint64_t update_bytes(const llm_job *g, uint64_t parameters)
{
    const uint64_t copy = g->opt.dtype == ORR_DTYPE_FP32 ? 0 : g->weight;
    return parameters * (6 * 4 + g->grad + copy);
}

static uint64_t put_norm(llm_sync *y, uint64_t own, llm_deps after)
{
    const uint64_t at = llm_put_compute(y->p, "norm", 2 * own, own * y->p->g->grad, after);
    return llm_put_collect(y->p, "norm.sum", ORR_COLL_ALL_REDUCE, 4, LLM_AXIS_WORLD, LLM_AFTER(at));
}

static uint64_t gather_new_weights(
    llm_sync *y, const char *name, llm_axis axis, uint64_t parameters, uint64_t after)
{
    const llm_job *g = y->p->g;
    uint64_t left = share(g, axis, parameters * g->weight), id = 0;
    if (g->layout.degree[axis] == 1)
        return 0;
    while (left) {
        const uint64_t most = share(g, axis, g->opt.bucket_bytes);
        const uint64_t part = left < most ? left : most;
        id = llm_put_collect(y->p, name, ORR_COLL_ALL_GATHER, part, axis, LLM_AFTER(after));
        left -= part;
    }
    return id;
}

void llm_sync_step(llm_sync *y, bool is_tied_end, uint64_t tied_parameters)
{
    llm_pen *p = y->p;
    const llm_job *g = p->g;
    const uint64_t own = own_parameters(y);
    uint64_t ids[2 * LLM_GRADS_OF_LAYER + 3];
    size_t count = 0;
    send_rest(y);
    llm_pen_prefix(p, "optimizer.");
    for (size_t i = 0; i < y->last.dense_count; i++)
        ids[count++] = y->last.dense[i];
    for (size_t i = 0; i < y->last.expert_count; i++)
        ids[count++] = y->last.expert[i];
    /* What follows joins ranks of several stages.  Where there is one stream for all, a message that another stage
     * needs must not wait behind it. */
    ids[count++] = orr__build_last_on(&p->b, LLM_ON_NEXT);
    ids[count++] = orr__build_last_on(&p->b, LLM_ON_PREVIOUS);
    if (is_tied_end)
        llm_put_collect(p, "tied.reduce", ORR_COLL_ALL_REDUCE, tied_parameters * g->grad,
                        LLM_AXIS_TIED, (llm_deps){ids, count});
    ids[count++] = orr__build_last_on(&p->b, LLM_ON_DATA);
    uint64_t at = 0;
    if (!g->opt.no_clipping)
        at = put_norm(y, own, (llm_deps){ids, count});
    at = at ? llm_put_compute(p, "update", 12 * own, update_bytes(g, own), LLM_AFTER(at))
            : llm_put_compute(p, "update", 12 * own, update_bytes(g, own), (llm_deps){ids, count});
    p->barrier[0] = at;
    if (g->opt.zero == 1 || g->opt.zero == 2) {
        p->barrier[1] =
            gather_new_weights(y, "weights.gather", y->dense.axis, y->dense_parameters, at);
        p->barrier[2] =
            gather_new_weights(y, "experts.gather", y->expert.axis, y->expert_parameters, at);
    }
}
