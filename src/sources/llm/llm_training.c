/* SPDX-License-Identifier: Apache-2.0 */
/* llm_training.c - the work of a pipeline rank: its layers, messages, gradients and update.  The
 * order of its passes is in pipeline_order.c. */
#include "llm_impl.h"
#include "model_impl.h"

#include <inttypes.h>

/* Data parallelism: gradients, weights, and the update.
 *
 * Zero 0: gradients are all-reduced, every rank updates all weights it has.  Zero 1 and 2:
 * gradients are reduce-scattered, each rank updates its share, and weights are all-gathered.  Zero
 * 3: a rank keeps only its shard of the weights and gathers a layer's before each use.  Gradients
 * are reduced in buckets as soon as these are full, during the backward pass. */

static void llm_sync_open(llm_sync *y, llm_pen *p)
{
    *y = (llm_sync){.p = p};
    y->dense.axis = LLM_AXIS_DATA;
    /* Without expert parallelism experts are sharded like everything else. */
    y->expert.axis = p->g->opt.ep > 1 ? LLM_AXIS_EXPERT_DATA : LLM_AXIS_DATA;
}

static uint64_t share(const llm_job *g, llm_axis axis, uint64_t whole)
{
    const uint64_t n = g->layout.degree[axis];
    return (whole + n - 1) / n;
}

/* Zero 1 and 2: the weights of the last update are gathered during this step's first pass. */
static bool gathers_ahead(const llm_job *g)
{
    return (g->opt.zero == 1 || g->opt.zero == 2) && g->software->gathers_ahead &&
           !g->opt.no_overlap;
}

/* What travels of them: in 8 bits those of products, if there are no others.  MXFP8 with zero 1 and
 * 2 gathers them in 16 bits, in the buffer of the gradients, as Megatron-Core does
 * (reuse_grad_buf_for_mxfp8_param_ag): each number has scales of its row and of its column. */
static uint64_t gathered_bytes(const llm_job *g, uint64_t parameters, uint64_t narrow)
{
    const bool is_wide = g->opt.dtype == ORR_DTYPE_MXFP8 && g->opt.zero < 3;
    if (g->weights != ORR_WEIGHTS_NARROW || is_wide)
        return parameters * g->weight;
    return (parameters - narrow) * g->weight + llm_narrow_bytes(g, narrow);
}

/* Gathers weights of so many bytes over an axis; 0: every rank has them all. */
static uint64_t gather_weights(
    llm_sync *y, const char *name, llm_axis axis, uint64_t bytes, uint64_t after)
{
    const llm_job *g = y->p->g;
    if (!bytes || g->layout.degree[axis] == 1)
        return 0;
    return llm_put_collect(y->p, name, ORR_COLL_ALL_GATHER, share(g, axis, bytes), axis,
                           LLM_AFTER(after));
}

/* Bytes of a layer's weights on one rank as they are gathered. */
static void layer_bytes(const llm_job *g, uint64_t layer, uint64_t *dense, uint64_t *expert)
{
    uint64_t narrow_dense, narrow_expert;
    llm_layer_parameters(g, layer, dense, expert);
    llm_narrow_parameters(g, layer, &narrow_dense, &narrow_expert);
    *dense = gathered_bytes(g, *dense, narrow_dense);
    *expert = gathered_bytes(g, *expert, narrow_expert);
}

/* Zero 3: gathers a layer's weights after `after`; the next computation waits for them. */
static void llm_sync_weights(
    llm_sync *y, uint64_t layer, bool is_backward, uint64_t after, uint64_t out[2])
{
    uint64_t dense, expert;
    layer_bytes(y->p->g, layer, &dense, &expert);
    out[0] = gather_weights(y, is_backward ? "weights.gather.again" : "weights.gather",
                            y->dense.axis, dense, after);
    out[1] = gather_weights(y, is_backward ? "experts.gather.again" : "experts.gather",
                            y->expert.axis, expert, after);
}

/* FSDP2 copies gathered weights to where each parameter is read (split_with_sizes_copy).  Returns
 * what the next computation waits for: the copy, or the gather itself. */
static uint64_t unpack_weights(llm_pen *p, const char *name, uint64_t bytes, llm_deps gathered)
{
    if (!p->g->software->copies_weights || !gathered.ids[0])
        return gathered.ids[0];
    llm_launch_move(p, bytes, bytes);
    return llm_put_compute(p, name, 1, 2 * bytes, gathered);
}

/* The next computation does, for a layer's weights. */
static void wait_for_weights(llm_pen *p, uint64_t layer, const uint64_t gathered[2])
{
    uint64_t dense, expert;
    layer_bytes(p->g, layer, &dense, &expert);
    p->barrier[4] = unpack_weights(p, "weights.unpack", dense, LLM_AFTER(gathered[0]));
    p->barrier[5] = unpack_weights(p, "experts.unpack", expert, LLM_AFTER(gathered[1]));
}

/* The embedding's weights, for the next computation. */
static void gather_embedding(llm_sync *y, uint64_t parameters, uint64_t after)
{
    const uint64_t bytes = parameters * y->p->g->weight;
    const uint64_t at = gather_weights(y, "embedding.weights.gather", y->dense.axis, bytes,
                                       y->p->g->opt.zero < 3 ? y->updated : after);
    y->p->barrier[4] = unpack_weights(y->p, "embedding.weights.unpack", bytes, LLM_AFTER(at));
}

/* ---- gradients ---- */

static void send_bucket(llm_sync *y, llm_bucket *b)
{
    const llm_job *g = y->p->g;
    if (b->bytes == 0)
        return;
    llm_deps after = {b->after, b->count};
    uint64_t packed;
    /* FSDP copies gradients to where they are reduced, in the type of the reduction (_chunk_cat; in
     * PyTorch's first FSDP the gradient of the flat parameter's views). */
    if (g->software->copies_grads && g->opt.zero >= 2 && g->layout.degree[b->axis] > 1) {
        const uint64_t read = b->bytes / g->grad * (g->micro_batches > 1 ? g->grad : g->weight);
        llm_launch_move(y->p, read, b->bytes);
        packed = llm_put_compute(y->p, b == &y->expert ? "experts.pack" : "grads.pack", 1,
                                 read + b->bytes, after);
        after = (llm_deps){&packed, 1};
    }
    llm_put_collect(y->p, b == &y->expert ? "experts.reduce" : "grads.reduce",
                    g->opt.zero ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE, b->bytes, b->axis,
                    after);
    if (g->layout.degree[LLM_AXIS_REPLICA] > 1) /* behind it in the same stream */
        llm_put_collect(y->p, "grads.replicas", ORR_COLL_ALL_REDUCE, share(g, b->axis, b->bytes),
                        LLM_AXIS_REPLICA, LLM_AFTER(orr__build_last_on(&y->p->b, LLM_ON_DATA)));
    b->bytes = 0;
    b->count = 0;
}

static void add_to_bucket(
    llm_sync *y, llm_bucket *b, uint64_t bytes, const uint64_t *ids, size_t count)
{
    const size_t room = sizeof b->after / sizeof *b->after;
    if (bytes == 0)
        return;
    if (b->count + count > room) {
        if (y->p->g->opt.no_overlap)
            b->count = 0; /* the device reaches those of later layers after these */
        else
            send_bucket(y, b);
    }
    b->bytes += bytes;
    for (size_t i = 0; i < count; i++)
        b->after[b->count++] = ids[i];
    if (!y->p->g->opt.no_overlap && b->bytes >= y->p->g->opt.bucket_bytes)
        send_bucket(y, b);
}

/* A layer's gradients are complete after these nodes. */
static void llm_sync_grads(llm_sync *y, uint64_t dense, uint64_t expert, const llm_grads *grads)
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

/* Adam reads and writes two moments and the weights in 4 bytes (moments also in 2), reads the
 * gradient and writes the weights that are computed with. */
static uint64_t update_bytes(const llm_job *g, uint64_t parameters)
{
    const uint64_t copy = g->opt.dtype == ORR_DTYPE_FP32 || g->is_pure ? 0 : g->weight;
    const uint64_t moment = g->is_pure ? g->weight : g->opt.moments_bf16 ? 2 : 4;
    return parameters * (4 * moment + 2 * (g->is_pure ? g->weight : 4) + g->grad + copy);
}

static uint64_t put_norm(llm_sync *y, uint64_t own, llm_deps after)
{
    llm_launch_clipping(y->p, own, y->tensors);
    const uint64_t at = llm_put_compute(y->p, "norm", 2 * own, own * y->p->g->grad, after);
    return llm_put_collect(y->p, "norm.sum", ORR_COLL_ALL_REDUCE, 4, LLM_AXIS_WORLD, LLM_AFTER(at));
}

static uint64_t gather_new_weights(
    llm_sync *y, const char *name, llm_axis axis, uint64_t bytes, uint64_t after)
{
    const llm_job *g = y->p->g;
    uint64_t left = share(g, axis, bytes), id = 0;
    if (g->layout.degree[axis] == 1)
        return 0;
    while (left) {
        const uint64_t most = share(g, axis, orr__llm_piece_bytes(&g->opt));
        const uint64_t part = left < most ? left : most;
        id = llm_put_collect(y->p, name, ORR_COLL_ALL_GATHER, part, axis, LLM_AFTER(after));
        left -= part;
    }
    return id;
}

/* Ends a step; afterwards the next computation waits for the new weights. */
static void llm_sync_step(llm_sync *y, bool has_tied, uint64_t tied_parameters)
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
    /* The following collective spans ranks of several stages.  With a single stream, a message
     * needed by another stage must not wait behind it. */
    ids[count++] = orr__build_last_on(&p->b, LLM_ON_NEXT);
    ids[count++] = orr__build_last_on(&p->b, LLM_ON_PREVIOUS);
    if (has_tied)
        llm_put_collect(p, "tied.reduce", ORR_COLL_ALL_REDUCE, tied_parameters * g->grad,
                        LLM_AXIS_TIED, (llm_deps){ids, count});
    ids[count++] = orr__build_last_on(&p->b, LLM_ON_DATA);
    uint64_t at = 0;
    if (!g->opt.no_clipping)
        at = put_norm(y, own, (llm_deps){ids, count});
    llm_launch_update(p, own, y->tensors);
    at = at ? llm_put_compute(p, "update", 12 * own, update_bytes(g, own), LLM_AFTER(at))
            : llm_put_compute(p, "update", 12 * own, update_bytes(g, own), (llm_deps){ids, count});
    p->barrier[0] = y->updated = at;
    if ((g->opt.zero == 1 || g->opt.zero == 2) && !gathers_ahead(g)) {
        p->barrier[1] =
            gather_new_weights(y, "weights.gather", y->dense.axis,
                               gathered_bytes(g, y->dense_parameters, y->narrow_dense), at);
        p->barrier[2] =
            gather_new_weights(y, "experts.gather", y->expert.axis,
                               gathered_bytes(g, y->expert_parameters, y->narrow_expert), at);
    }
}

/* Before the first layer and after the last: embedding, head and loss.
 *
 * Both matrices are sharded by rows of the vocabulary.  A rank looks up the tokens in its rows, and
 * the results are reduced; for the loss, the maximum logit and the sum of exponentials are reduced,
 * never the logits. */

static uint64_t hidden_numbers(const llm_job *g)
{
    return g->tokens * g->m->hidden;
}

static uint64_t logits(const llm_job *g)
{
    return g->tokens * llm_vocab_share(g);
}

static uint64_t llm_embedding_forward(llm_pen *p)
{
    return llm_embedding_after(p, LLM_AFTER(0));
}

uint64_t llm_embedding_after(llm_pen *p, llm_deps tokens)
{
    const llm_job *g = p->g;
    const bool is_sp = g->is_sequence_parallel;
    llm_launch_embedding(p, false);
    uint64_t at = llm_put_elementwise(p, "embedding.lookup", hidden_numbers(g), 1, 2, tokens);
    at = llm_put_collect(p, "embedding.sum", is_sp ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE,
                         hidden_numbers(g) * g->act, LLM_AXIS_TP, LLM_AFTER(at));
    if (g->m->position == ORR_MODEL_LEARNED)
        at = llm_put_elementwise(p, "embedding.positions", g->thin_tokens * g->m->hidden, 1, 3,
                                 LLM_AFTER(at));
    return at;
}

static void llm_embedding_backward(llm_pen *p, uint64_t output_grad, llm_grads *grads)
{
    const llm_job *g = p->g;
    uint64_t at = output_grad;
    if (g->is_sequence_parallel)
        at = llm_put_collect(p, "embedding.gather.grad", ORR_COLL_ALL_GATHER,
                             g->thin_tokens * g->m->hidden * g->act, LLM_AXIS_TP, LLM_AFTER(at));
    const uint64_t bytes = hidden_numbers(g) * (g->act + 2 * g->grad);
    llm_launch_embedding(p, true);
    grads->dense[grads->dense_count++] =
        llm_put_compute(p, "embedding.wgrad", hidden_numbers(g), bytes, LLM_AFTER(at));
}

/* Norm, head and loss. */
static uint64_t llm_head_forward(llm_pen *p, uint64_t input)
{
    const llm_job *g = p->g;
    llm_steps s;
    llm_describe_head(g, &s);
    uint64_t at = llm_steps_forward(p, &s, "", 0, input);
    if (g->opt.forward_only)
        return at;
    llm_launch_loss(p, LLM_LOSS_MAX);
    at = llm_put_elementwise(p, "loss.max", logits(g), 1, 1, LLM_AFTER(at));
    at = llm_put_collect(p, "loss.max_all", ORR_COLL_ALL_REDUCE, g->tokens * 4, LLM_AXIS_TP,
                         LLM_AFTER(at));
    llm_launch_loss(p, LLM_LOSS_EXPONENTIALS);
    at = llm_put_elementwise(p, "loss.exponentials", logits(g), 4, 2, LLM_AFTER(at));
    at = llm_put_collect(p, "loss.sum_all", ORR_COLL_ALL_REDUCE, g->tokens * 8, LLM_AXIS_TP,
                         LLM_AFTER(at));
    llm_launch_loss(p, LLM_LOSS_MEAN);
    return llm_put_elementwise(p, "loss.mean", g->tokens, 2, 2, LLM_AFTER(at));
}

static uint64_t llm_head_backward(llm_pen *p, int parts, uint64_t loss, llm_grads *grads)
{
    llm_steps s;
    llm_describe_head(p->g, &s);
    uint64_t at = loss;
    if (parts & LLM_INPUT_GRADS) {
        llm_launch_loss(p, LLM_LOSS_GRAD);
        at = llm_put_elementwise(p, "loss.grad", logits(p->g), 2, 2, LLM_AFTER(loss));
    }
    return llm_steps_backward(p, &s, 0, parts, at, grads);
}

/* ---- further tokens ----
 *
 * DeepSeek-V3 (arXiv 2412.19437), section 2.2: what the last layer gave and the embedding of the
 * next token, both normed, are joined by a product; a layer and the model's own head follow.
 *
 * In Megatron-Core (MultiTokenPredictionBlock) the layers may be in a stage before the loss.  That
 * stage has an embedding of its own, whose gradients are summed with those of the first stage, and
 * hands on what the model's last layer gave and what each of them did, one behind the other; the
 * stage of the loss has the heads of all. */

enum { MTP_LAYERS = 1, MTP_HEADS = 2 };

static void mtp_prefix(llm_pen *p, uint64_t micro_batch, uint64_t i)
{
    llm_pen_prefix(p, "mb%llu.mtp%llu.", (unsigned long long)micro_batch, (unsigned long long)i);
}

static uint64_t mtp_tag(const llm_job *g, uint64_t micro_batch, uint64_t i)
{
    const uint64_t after_all = g->micro_batches * g->m->layers;
    return (after_all + micro_batch * g->m->mtp_layers + i) * LLM_RING_TAGS;
}

/* y: weights are gathered; or NULL. */
static void gather_mtp(llm_sync *y, bool is_backward, uint64_t after, uint64_t out[2])
{
    out[0] = out[1] = 0;
    if (y)
        llm_sync_weights(y, model_mtp_layer(y->p->g->m), is_backward,
                         y->p->g->opt.zero < 3 ? y->updated : after, out);
}

static uint64_t mtp_forward(
    llm_pen *p, llm_sync *y, unsigned what, uint64_t micro_batch, uint64_t input)
{
    llm_steps s;
    uint64_t weights[2];
    uint64_t at = input;
    for (uint64_t i = 0; p->g->opt.has_mtp && i < p->g->m->mtp_layers; i++) {
        mtp_prefix(p, micro_batch, i);
        if (what & MTP_LAYERS) {
            gather_mtp(y, false, at, weights);
            if (y && i == 0)
                gather_embedding(y, llm_mtp_embedding(p->g), at);
            at = llm_embedding_after(p, LLM_AFTER(at));
            llm_describe_join(p->g, &s);
            at = llm_steps_forward(p, &s, "", 0, at);
            wait_for_weights(p, model_mtp_layer(p->g->m), weights);
            at = llm_layer_forward(p, model_mtp_layer(p->g->m), mtp_tag(p->g, micro_batch, i), at);
        }
        if (what & MTP_HEADS)
            at = llm_head_forward(p, at);
    }
    return at;
}

/* The gradients of its weights are there at the same time, whatever the schedule. */
static uint64_t mtp_backward(llm_pen *p,
                             llm_sync *y,
                             unsigned what,
                             uint64_t micro_batch,
                             uint64_t output_grad,
                             llm_grads *grads,
                             llm_grads *lookup)
{
    const int both = LLM_INPUT_GRADS | LLM_WEIGHT_GRADS;
    llm_steps s;
    uint64_t at = output_grad;
    for (uint64_t i = p->g->opt.has_mtp ? p->g->m->mtp_layers : 0; i-- > 0;) {
        llm_grads head = {0};
        uint64_t weights[2];
        mtp_prefix(p, micro_batch, i);
        if (what & MTP_LAYERS)
            gather_mtp(y, true, at, weights);
        if (what & MTP_HEADS)
            at = llm_head_backward(p, both, at, &head);
        if (!(what & MTP_LAYERS))
            continue;
        wait_for_weights(p, model_mtp_layer(p->g->m), weights);
        at = llm_layer_backward(p, model_mtp_layer(p->g->m), mtp_tag(p->g, micro_batch, i), both,
                                at, grads);
        llm_describe_join(p->g, &s);
        at = llm_steps_backward(p, &s, 0, both, at, grads);
        *lookup = (llm_grads){0};
        llm_embedding_backward(p, at, lookup);
    }
    return at;
}

void llm_mtp_parameters(const llm_job *g, uint64_t *dense, uint64_t *expert)
{
    *dense = *expert = 0;
    if (!g->opt.has_mtp)
        return;
    llm_layer_parameters(g, model_mtp_layer(g->m), dense, expert);
    *dense = (*dense + (2 * g->m->hidden + 3) * g->m->hidden) * g->m->mtp_layers;
    *expert *= g->m->mtp_layers;
}

/* A tied head's matrix is the embedding. */
uint64_t llm_mtp_embedding(const llm_job *g)
{
    const bool has_head = g->m->is_tied && llm_mtp_stage(&g->opt) + 1 == g->virtual_stages;
    return llm_mtp_rank(&g->opt) && !has_head ? llm_embedding_parameters(g) : 0;
}

/* ---- parts on a tape ---- */

static uint64_t write_part(llm_pen *p, orr__tape_part part, uint64_t layer, uint64_t input)
{
    const bool is_cut = p->g->opt.pipeline == ORR_PIPELINE_ZERO_BUBBLE;
    const int parts = is_cut ? LLM_INPUT_GRADS : LLM_INPUT_GRADS | LLM_WEIGHT_GRADS;
    llm_grads grads = {0}, further = {0}, lookup;
    switch (part) {
    case ORR__PART_EMBEDDING_FORWARD:
        return llm_embedding_after(p, LLM_AFTER(input));
    case ORR__PART_LAYER_FORWARD:
        return llm_layer_forward(p, layer, 0, input);
    case ORR__PART_HEAD_FORWARD:
        return mtp_forward(p, NULL, MTP_LAYERS | MTP_HEADS, 0, llm_head_forward(p, input));
    case ORR__PART_HEAD_BACKWARD:
        input = mtp_backward(p, NULL, MTP_LAYERS | MTP_HEADS, 0, input, &grads, &lookup);
        return llm_head_backward(p, parts, input, &further);
    case ORR__PART_LAYER_BACKWARD:
        return llm_layer_backward(p, layer, 0, parts, input, &grads);
    case ORR__PART_EMBEDDING_BACKWARD:
        llm_embedding_backward(p, input, &grads);
        return input; /* nobody waits for it */
    case ORR__PART_HEAD_WEIGHTS:
        llm_head_backward(p, LLM_WEIGHT_GRADS, input, &grads);
        return input;
    default:
        llm_layer_backward(p, layer, 0, LLM_WEIGHT_GRADS, input, &grads);
        return input;
    }
}

orr_code orr__llm_tape_part(const orr__llm_view *v,
                            orr__tape_part part,
                            uint64_t layer,
                            bool is_first,
                            orr__tape *out,
                            orr_error *err)
{
    llm_pen p = {.g = v->job, .tape = out};
    const uint64_t input = llm_tape_begin(out);
    if (is_first)
        p.barrier[0] = llm_tape_input(out);
    const uint64_t end = write_part(&p, part, layer, input);
    out->out = end ? (uint32_t)(end - 1) : 0;
    return out->failed ? orr_no_memory(err) : ORR_OK;
}

/* A training step: one class of ranks per pipeline rank, its tasks in sequence.
 *
 * A task waits for the previous one, so a rank follows its schedule.  Weight gradients are the
 * exception: they wait only for their own backward pass and have smaller ids than what follows, so
 * they run when nothing else can, for instance while a tensor-parallel collective or a neighbour's
 * message is in flight. */

typedef struct stage_writer {
    const llm_job *g;
    llm_pen *p;
    llm_sync sync;
    uint32_t rank; /* in the pipeline */
    uint64_t step;
    uint64_t *loss; /* by micro-batch: the last node of the head */
    uint64_t *held; /* by task: bytes while it runs */
    size_t held_count;
    uint64_t held_always; /* weights, gradients, optimizer */
    uint64_t working;
    /* By chunk and micro-batch: where the next chunk continues if it is on the same rank, and what
     * the weight gradients of a split backward pass wait for. */
    uint64_t *forward_end, *backward_end;
    uint64_t *stored; /* by offloaded layer and micro-batch: the copy to the host; or NULL */
    uint64_t last_grads[LLM_CHUNKS_MOST]; /* by chunk: the micro-batch that completes them */
} stage_writer;

static uint32_t stage_of(const stage_writer *w, uint32_t chunk)
{
    return llm_stage_of(w->g, w->rank, chunk);
}

static bool is_first(const stage_writer *w, uint32_t chunk)
{
    return stage_of(w, chunk) == 0;
}

static bool is_last(const stage_writer *w, uint32_t chunk)
{
    return stage_of(w, chunk) + 1 == w->g->virtual_stages;
}

static bool has_mtp_layers(const stage_writer *w, uint32_t chunk)
{
    return w->g->opt.has_mtp && stage_of(w, chunk) == llm_mtp_stage(&w->g->opt);
}

static unsigned mtp_of(const stage_writer *w, uint32_t chunk)
{
    return (has_mtp_layers(w, chunk) ? MTP_LAYERS : 0) | (is_last(w, chunk) ? MTP_HEADS : 0);
}

/* ---- messages between stages ---- */

static uint64_t message_bytes(const llm_job *g)
{
    return g->thin_tokens * g->m->hidden * g->act;
}

/* To a stage, or its gradient back: behind MTP layers with what each of them gave. */
static uint64_t message_to(const llm_job *g, uint32_t stage)
{
    const bool is_behind = g->opt.has_mtp && stage > llm_mtp_stage(&g->opt);
    return message_bytes(g) * (is_behind ? 1 + g->m->mtp_layers : 1);
}

/* Stage, micro-batch and direction: unique among the messages of a pair. */
static uint64_t message_tag(const llm_job *g, uint32_t stage, uint64_t micro_batch, bool is_grad)
{
    return (micro_batch * g->virtual_stages + stage) * 2 + is_grad;
}

static uint64_t layer_tag(const llm_job *g, uint64_t micro_batch, uint64_t layer)
{
    return (micro_batch * g->m->layers + layer) * LLM_RING_TAGS;
}

/* ---- layers of a task ---- */

typedef struct range {
    uint64_t first, end; /* layers */
} range;

static range layers_of(const stage_writer *w, uint32_t chunk)
{
    range r;
    llm_stage_layers(w->g, stage_of(w, chunk), &r.first, &r.end);
    return r;
}

static void name_layer(llm_pen *p, const llm_task *t, uint64_t layer)
{
    llm_pen_prefix(p, "mb%llu.layer%llu.", (unsigned long long)t->micro_batch,
                   (unsigned long long)layer);
}

static void name_end(llm_pen *p, const llm_task *t)
{
    llm_pen_prefix(p, "mb%llu.", (unsigned long long)t->micro_batch);
}

/* Layers of a task in order, and the prefetch state of their weights. */
typedef struct walk {
    stage_writer *w;
    const llm_task *task;
    range layers;
    uint64_t asked; /* how many layers' weights have been */
    uint64_t (*gathered)[2];
    uint64_t head;   /* the gather of the head's weights; 0: not asked for */
    llm_grads grads; /* of the last layer that a backward pass came to */
} walk;

static uint64_t count_of(const walk *k)
{
    return k->layers.end - k->layers.first;
}

static uint64_t layer_at(const walk *k, uint64_t i)
{
    return k->task->kind == LLM_FORWARD ? k->layers.first + i : k->layers.end - 1 - i;
}

/* Does a pass gather the weights of its layers? */
static bool gathers_weights(const stage_writer *w, const llm_task *t)
{
    const uint64_t first_batch = llm_is_dual(&w->g->opt) && t->chunk ? w->g->micro_batches / 2 : 0;
    const bool is_first_pass = t->kind == LLM_FORWARD && t->micro_batch == first_batch;
    return w->g->opt.zero >= 3 || (gathers_ahead(w->g) && is_first_pass);
}

/* Zero 3: the last stage gathers its head, and keeps it until the backward pass has used it; so do
 * zero 1 and 2 in the first pass after an update. */
static void ask_for_head(walk *k, uint64_t after)
{
    stage_writer *w = k->w;
    if (k->head || !is_last(w, k->task->chunk) || !gathers_weights(w, k->task))
        return;
    name_end(w->p, k->task);
    k->head = gather_weights(&w->sync, "head.weights.gather", w->sync.dense.axis,
                             llm_head_parameters(w->g) * w->g->weight,
                             w->g->opt.zero < 3 ? w->sync.updated : after);
}

/* Gathers the weights of layers up to i + prefetch, after `after`; the i-th waits for its own. */
static void ask_for_weights(walk *k, uint64_t i, uint64_t after)
{
    stage_writer *w = k->w;
    const uint64_t count = count_of(k);
    if (!gathers_weights(w, k->task))
        return;
    /* Weights of the last update are gathered as soon as they are available. */
    const uint64_t from = w->g->opt.zero < 3 ? w->sync.updated : after;
    const uint64_t ahead = w->g->opt.zero < 3 ? count : i + w->g->opt.prefetch;
    for (; k->asked < count && k->asked <= ahead; k->asked++) {
        name_layer(w->p, k->task, layer_at(k, k->asked));
        llm_sync_weights(&w->sync, layer_at(k, k->asked), k->task->kind != LLM_FORWARD, from,
                         k->gathered[k->asked]);
    }
    if (k->task->kind == LLM_FORWARD && (w->g->opt.zero < 3 || i + w->g->opt.prefetch >= count))
        ask_for_head(k, after);
    name_layer(w->p, k->task, layer_at(k, i));
    wait_for_weights(w->p, layer_at(k, i), k->gathered[i]);
}

static bool walk_open(walk *k)
{
    k->gathered = orr_alloc((size_t)count_of(k) + 1, sizeof *k->gathered);
    if (!k->gathered)
        k->w->p->b.code = orr_no_memory(k->w->p->b.err);
    return k->gathered != NULL;
}

/* ---- activations on the host ----
 *
 * As Transformer Engine's offload (AsyncDoubleBufferGroupOffloadHandler): the copies of N of L
 * layers are spread over all of them.  Layer i is to be gone when layer w(i) is done, and comes
 * back from where that one is computed backward. */

static uint64_t offload_count(const walk *k)
{
    const uint64_t some = k->w->stored ? k->w->g->opt.offload_layers : 0;
    return some < count_of(k) ? some : count_of(k);
}

/* w(i) */
static uint64_t window_end(const walk *k, uint64_t i)
{
    const uint64_t all = count_of(k), some = offload_count(k), more = all % some;
    if (some == all) /* at least under the next layer, which the last one does not have */
        return i + 1 < all ? i + 1 : i;
    return all / some * (i + 1) - 1 + (i < more ? i + 1 : more);
}

/* The last copy of the i-th layer: to the host, then back. */
static uint64_t *copy_of(const walk *k, uint64_t i)
{
    const stage_writer *w = k->w;
    return &w->stored[(k->task->chunk * w->g->opt.offload_layers + i) * w->g->micro_batches +
                      k->task->micro_batch];
}

static void copy_layer(const walk *k, uint64_t i, bool is_store, llm_deps after)
{
    const stage_writer *w = k->w;
    const uint64_t layer = k->layers.first + i;
    const uint64_t bytes = llm_offloaded_bytes(w->g, stage_of(w, k->task->chunk), layer);
    name_layer(w->p, k->task, layer);
    *copy_of(k, i) = llm_put_copy(w->p, is_store ? "offload" : "fetch", is_store, bytes, after);
}

/* Before the i-th layer of a forward pass. */
static void wait_for_store(const walk *k, uint64_t i)
{
    for (uint64_t gone = 0; gone < offload_count(k); gone++)
        if (window_end(k, gone) + 1 == i)
            k->w->p->barrier[3] = *copy_of(k, gone);
}

/* After it, whose result is `at`. */
static void store_layer(const walk *k, uint64_t i, uint64_t at)
{
    if (i < offload_count(k))
        copy_layer(k, i, true, LLM_AFTER(at));
}

/* Before the i-th layer of a backward pass, whose gradient is `at`. */
static void fetch_layers(const walk *k, uint64_t i, uint64_t at)
{
    const uint64_t here = layer_at(k, i) - k->layers.first;
    for (uint64_t back = offload_count(k); back-- > 0;)
        if (window_end(k, back) == here)
            copy_layer(k, back, false, LLM_AFTER(*copy_of(k, back), at));
    if (here < offload_count(k))
        k->w->p->barrier[7] = *copy_of(k, here);
}

/* Delayed scaling of Transformer Engine: behind the layers of a pass the largest numbers of what
 * went into its products (two a product), or of the gradients that came (one), are reduced over
 * ranks, and what follows on the device waits (FP8GlobalStateManager.reduce_and_update_fp8_tensors;
 * Megatron-Core's group is that of tp, cp and dp, with tp_only_amax_red that of tp). */
static uint64_t agree_on_scales(const walk *k, llm_deps after)
{
    const llm_job *g = k->w->g;
    const uint64_t layers = k->layers.end - k->layers.first;
    const uint64_t numbers = layers * 4 * (k->task->kind == LLM_FORWARD ? 2 : 1);
    const uint64_t at = after.ids[after.count - 1];
    const bool is_delayed =
        g->opt.fp8_scaling == ORR_FP8_DELAYED || g->opt.fp8_scaling == ORR_FP8_DELAYED_TP;
    if (g->opt.dtype != ORR_DTYPE_FP8 || !is_delayed || !layers)
        return at;
    const llm_axis axis = g->opt.fp8_scaling == ORR_FP8_DELAYED ? LLM_AXIS_STAGE : LLM_AXIS_TP;
    return llm_put_collect(k->w->p, "amax.reduce", ORR_COLL_ALL_REDUCE, numbers * 4, axis, after);
}

/* The layers from the i-th on. */
static uint64_t walk_forward_from(walk *k, uint64_t i, uint64_t input)
{
    stage_writer *w = k->w;
    uint64_t at = input;
    for (; i < count_of(k); i++) {
        const uint64_t layer = layer_at(k, i);
        ask_for_weights(k, i, at);
        wait_for_store(k, i);
        name_layer(w->p, k->task, layer);
        at = llm_layer_forward(w->p, layer, layer_tag(w->g, k->task->micro_batch, layer), at);
        store_layer(k, i, at);
    }
    name_end(w->p, k->task);
    return agree_on_scales(k, LLM_AFTER(at));
}

static uint64_t walk_forward(walk *k, uint64_t input)
{
    return walk_forward_from(k, 0, input);
}

/* Are the gradients complete with this task? */
static bool is_final(const stage_writer *w, const llm_task *t, int parts)
{
    return parts & LLM_WEIGHT_GRADS &&
           (w->g->opt.sync_every_micro_batch || t->micro_batch == w->last_grads[t->chunk]);
}

/* Weight gradients, which nothing else waits for, come before it on the device. */
static uint64_t after_grads(const walk *k, uint64_t at)
{
    uint64_t ids[2 * LLM_GRADS_OF_LAYER + 1];
    size_t count = 0;
    for (size_t i = 0; i < k->grads.dense_count; i++)
        ids[count++] = k->grads.dense[i];
    for (size_t i = 0; i < k->grads.expert_count; i++)
        ids[count++] = k->grads.expert[i];
    ids[count++] = at;
    name_end(k->w->p, k->task);
    return agree_on_scales(k, (llm_deps){ids, count});
}

/* A layer's gradients are written. */
static void note_grads(walk *k, uint64_t layer, int parts, const llm_grads *grads)
{
    uint64_t dense, expert;
    llm_layer_parameters(k->w->g, layer, &dense, &expert);
    if (is_final(k->w, k->task, parts))
        llm_sync_grads(&k->w->sync, dense, expert, grads);
    k->grads = *grads;
}

static uint64_t walk_backward_from(walk *k, uint64_t i, int parts, uint64_t output_grad)
{
    stage_writer *w = k->w;
    uint64_t at = output_grad;
    for (; i < count_of(k); i++) {
        const uint64_t layer = layer_at(k, i);
        llm_grads grads = {0};
        if (parts & LLM_INPUT_GRADS) {
            ask_for_weights(k, i, at);
            fetch_layers(k, i, at);
        }
        name_layer(w->p, k->task, layer);
        const uint64_t input_grad = llm_layer_backward(
            w->p, layer, layer_tag(w->g, k->task->micro_batch, layer), parts, at, &grads);
        at = parts & LLM_INPUT_GRADS ? input_grad : at;
        note_grads(k, layer, parts, &grads);
    }
    return parts & LLM_INPUT_GRADS ? after_grads(k, at) : at;
}

static uint64_t walk_backward(walk *k, int parts, uint64_t output_grad)
{
    return walk_backward_from(k, 0, parts, output_grad);
}

/* What one of two passes in turns does next; before: what both wait for. */
static void open_turn(walk *k, uint64_t i, uint64_t before, llm_side *t)
{
    static const size_t own[] = {3, 4, 5, 7};
    llm_pen *p = k->w->p;
    t->layer = layer_at(k, i);
    t->tag = layer_tag(k->w->g, k->task->micro_batch, t->layer);
    memset(t->barrier, 0, sizeof t->barrier);
    t->barrier[0] = before;
    ask_for_weights(k, i, t->at);
    if (k->task->kind == LLM_FORWARD)
        wait_for_store(k, i);
    else
        fetch_layers(k, i, t->at);
    for (size_t b = 0; b < sizeof own / sizeof *own; b++) {
        t->barrier[own[b]] = p->barrier[own[b]];
        p->barrier[own[b]] = 0;
    }
    name_layer(p, k->task, t->layer);
    memcpy(t->prefix, p->prefix, sizeof t->prefix);
}

/* ---- tasks ---- */

static uint64_t *end_of(const stage_writer *w, uint64_t *ends, uint32_t chunk, uint64_t micro_batch)
{
    return &ends[chunk * w->g->micro_batches + micro_batch];
}

/* If layers come back, the last rank of a chunk is the first of the next: no message.
 */
static bool is_turn(const stage_writer *w, uint32_t chunk, uint32_t next)
{
    return llm_comes_back(&w->g->opt) && !llm_is_dual(&w->g->opt) && next < w->g->opt.chunks &&
           (stage_of(w, next) == stage_of(w, chunk) + 1 ||
            stage_of(w, chunk) == stage_of(w, next) + 1);
}

/* The rank with the next stage, and with the previous one. */
static llm_peer peer_behind(const stage_writer *w, uint32_t chunk)
{
    return chunk % 2 && llm_comes_back(&w->g->opt) ? LLM_PEER_PREVIOUS : LLM_PEER_NEXT;
}

static llm_peer peer_before(const stage_writer *w, uint32_t chunk)
{
    return chunk % 2 && llm_comes_back(&w->g->opt) ? LLM_PEER_NEXT : LLM_PEER_PREVIOUS;
}

static uint64_t start_forward(stage_writer *w, const llm_task *t)
{
    name_end(w->p, t);
    if (is_first(w, t->chunk)) {
        if (gathers_weights(w, t))
            gather_embedding(&w->sync, llm_embedding_parameters(w->g), w->p->barrier[0]);
        return llm_embedding_forward(w->p);
    }
    if (is_turn(w, t->chunk, t->chunk - 1))
        return *end_of(w, w->forward_end, t->chunk - 1, t->micro_batch);
    return llm_put_receive(w->p, "receive", message_to(w->g, stage_of(w, t->chunk)),
                           message_tag(w->g, stage_of(w, t->chunk), t->micro_batch, false),
                           peer_before(w, t->chunk), LLM_AFTER(0));
}

static void end_forward(walk *k, uint64_t at)
{
    stage_writer *w = k->w;
    const llm_task *t = k->task;
    llm_pen *p = w->p;
    if (is_last(w, t->chunk))
        ask_for_head(k, at);
    name_end(p, t);
    if (k->head)
        p->barrier[4] = unpack_weights(
            p, "head.weights.unpack", llm_head_parameters(w->g) * w->g->weight, LLM_AFTER(k->head));
    if (is_last(w, t->chunk))
        at = llm_head_forward(p, at);
    at = mtp_forward(p, gathers_weights(w, t) ? &w->sync : NULL, mtp_of(w, t->chunk),
                     t->micro_batch, at);
    name_end(p, t);
    if (is_last(w, t->chunk))
        w->loss[t->micro_batch] = at;
    else if (!is_turn(w, t->chunk, t->chunk + 1))
        llm_put_send(p, "send", message_to(w->g, stage_of(w, t->chunk) + 1),
                     message_tag(w->g, stage_of(w, t->chunk) + 1, t->micro_batch, false),
                     peer_behind(w, t->chunk), LLM_AFTER(at));
    *end_of(w, w->forward_end, t->chunk, t->micro_batch) = at;
    p->barrier[0] = at;
}

static void run_forward(stage_writer *w, const llm_task *t)
{
    walk k = {.w = w, .task = t, .layers = layers_of(w, t->chunk)};
    if (!walk_open(&k))
        return;
    end_forward(&k, walk_forward(&k, start_forward(w, t)));
    orr_free(k.gathered);
}

/* The gradient of what a task gave: from the next stage, or of the loss. */
static uint64_t output_grad_of(stage_writer *w, const llm_task *t)
{
    const uint32_t stage = stage_of(w, t->chunk);
    if (is_last(w, t->chunk))
        return w->loss[t->micro_batch];
    if (is_turn(w, t->chunk, t->chunk + 1))
        return *end_of(w, w->backward_end, t->chunk + 1, t->micro_batch);
    return llm_put_receive(w->p, "receive.grad", message_to(w->g, stage + 1),
                           message_tag(w->g, stage, t->micro_batch, true), peer_behind(w, t->chunk),
                           LLM_AFTER(0));
}

static uint64_t start_backward(stage_writer *w, const llm_task *t, int parts)
{
    llm_pen *p = w->p;
    llm_grads grads = {0}, further = {0}, lookup = {0};
    uint64_t at = output_grad_of(w, t);
    at = mtp_backward(p, gathers_weights(w, t) ? &w->sync : NULL, mtp_of(w, t->chunk),
                      t->micro_batch, at, &further, &lookup);
    if (has_mtp_layers(w, t->chunk) && is_final(w, t, LLM_WEIGHT_GRADS)) {
        uint64_t dense, expert;
        llm_mtp_parameters(w->g, &dense, &expert);
        llm_sync_grads(&w->sync, llm_mtp_embedding(w->g), 0, &lookup);
        llm_sync_grads(&w->sync, dense, expert, &further);
    }
    name_end(p, t);
    if (!is_last(w, t->chunk))
        return at;
    at = llm_head_backward(p, parts, at, &grads);
    if (is_final(w, t, parts))
        llm_sync_grads(&w->sync, llm_head_parameters(w->g), 0, &grads);
    return at;
}

static void end_backward(stage_writer *w, const llm_task *t, int parts, uint64_t at)
{
    llm_grads grads = {0};
    if (!is_first(w, t->chunk)) {
        if (!is_turn(w, t->chunk, t->chunk - 1))
            llm_put_send(w->p, "send.grad", message_to(w->g, stage_of(w, t->chunk)),
                         message_tag(w->g, stage_of(w, t->chunk) - 1, t->micro_batch, true),
                         peer_before(w, t->chunk), LLM_AFTER(at));
        return;
    }
    llm_embedding_backward(w->p, at, &grads);
    if (is_final(w, t, parts | LLM_WEIGHT_GRADS))
        llm_sync_grads(&w->sync, llm_embedding_parameters(w->g), 0, &grads);
}

static int parts_of(const llm_task *t)
{
    return t->is_cut ? LLM_INPUT_GRADS : LLM_INPUT_GRADS | LLM_WEIGHT_GRADS;
}

static void close_backward(stage_writer *w, const llm_task *t, uint64_t at)
{
    name_end(w->p, t);
    end_backward(w, t, parts_of(t), at);
    *end_of(w, w->backward_end, t->chunk, t->micro_batch) = at;
    w->p->barrier[0] = at;
}

static void run_backward(stage_writer *w, const llm_task *t)
{
    walk k = {.w = w, .task = t, .layers = layers_of(w, t->chunk)};
    if (!walk_open(&k))
        return;
    name_end(w->p, t);
    const uint64_t at = start_backward(w, t, parts_of(t));
    close_backward(w, t, walk_backward(&k, parts_of(t), at));
    orr_free(k.gathered);
}

/* No task waits for this one, and it only for its own backward pass: it fills gaps. */
static void run_weights(stage_writer *w, const llm_task *t)
{
    uint64_t barrier[sizeof w->p->barrier / sizeof *w->p->barrier];
    walk k = {.w = w, .task = t, .layers = layers_of(w, t->chunk)};
    const uint64_t from = *end_of(w, w->backward_end, t->chunk, t->micro_batch);
    llm_grads grads = {0};
    memcpy(barrier, w->p->barrier, sizeof barrier);
    memset(w->p->barrier, 0, sizeof barrier);
    if (is_last(w, t->chunk)) {
        name_end(w->p, t);
        llm_head_backward(w->p, LLM_WEIGHT_GRADS, from, &grads);
        if (is_final(w, t, LLM_WEIGHT_GRADS))
            llm_sync_grads(&w->sync, llm_head_parameters(w->g), 0, &grads);
    }
    walk_backward(&k, LLM_WEIGHT_GRADS, from);
    memcpy(w->p->barrier, barrier, sizeof barrier);
}

/* A forward and a backward pass beside each other, layer by layer: both wait for what came before,
 * and what follows for both. */
static void write_pair(walk *forth, walk *back)
{
    stage_writer *w = forth->w;
    llm_pen *p = w->p;
    const int parts = parts_of(back->task);
    const uint64_t before = p->barrier[0];
    llm_side f = {.at = start_forward(w, forth->task)}, b = {0};
    uint64_t i = 0;
    p->barrier[0] = before;
    name_end(p, back->task);
    b.at = start_backward(w, back->task, parts);
    p->is_beside = true;
    for (; i < count_of(forth) && i < count_of(back); i++) {
        llm_grads grads = {0};
        open_turn(back, i, i ? 0 : before, &b);
        open_turn(forth, i, i ? 0 : before, &f);
        llm_layer_turns(p, &f, &b, parts, &grads);
        store_layer(forth, i, f.at);
        note_grads(back, b.layer, parts, &grads);
    }
    p->is_beside = false;
    if (i == 0)
        p->barrier[0] = before;
    end_forward(forth, walk_forward_from(forth, i, f.at));
    const uint64_t end = p->barrier[0];
    p->barrier[0] = i == 0 ? before : 0;
    close_backward(w, back->task, walk_backward_from(back, i, parts, b.at));
    p->barrier[6] = end;
}

static void run_pair(stage_writer *w, const llm_task *forward, const llm_task *backward)
{
    walk forth = {.w = w, .task = forward, .layers = layers_of(w, forward->chunk)};
    walk back = {.w = w, .task = backward, .layers = layers_of(w, backward->chunk)};
    if (walk_open(&forth) && walk_open(&back))
        write_pair(&forth, &back);
    orr_free(forth.gathered);
    orr_free(back.gathered);
}

static void run_task(stage_writer *w, const llm_task *t)
{
    if (t->kind == LLM_FORWARD)
        run_forward(w, t);
    else if (t->kind == LLM_BACKWARD)
        run_backward(w, t);
    else
        run_weights(w, t);
}

/* ---- a pipeline rank ---- */

static void count_parameters(stage_writer *w)
{
    llm_sync *y = &w->sync;
    orr_model_tensor tensors[ORR_MODEL_TENSORS];
    y->tensors = 2;
    for (uint32_t c = 0; c < w->g->opt.chunks; c++) {
        const range r = layers_of(w, c);
        for (uint64_t layer = r.first; layer < r.end; layer++) {
            uint64_t dense, expert;
            llm_layer_parameters(w->g, layer, &dense, &expert);
            y->dense_parameters += dense;
            y->expert_parameters += expert;
            llm_narrow_parameters(w->g, layer, &dense, &expert);
            y->narrow_dense += dense;
            y->narrow_expert += expert;
            y->tensors += orr_model_layer_tensors(w->g->m, layer, tensors);
        }
        y->dense_parameters += is_first(w, c) ? llm_embedding_parameters(w->g) : 0;
        y->dense_parameters += is_last(w, c) ? llm_head_parameters(w->g) : 0;
        if (has_mtp_layers(w, c)) {
            uint64_t dense, expert;
            llm_mtp_parameters(w->g, &dense, &expert);
            y->dense_parameters += dense + llm_mtp_embedding(w->g);
            y->expert_parameters += expert;
            llm_mtp_narrow_parameters(w->g, &dense, &expert);
            y->narrow_dense += dense;
            y->narrow_expert += expert;
        }
    }
}

static uint64_t tied_parameters(const llm_job *g)
{
    return llm_vocab_share(g) * g->m->hidden;
}

/* ---- memory ---- */

/* Memory after a task; while it runs, a forward pass already holds that much, and a backward pass
 * still holds what it frees at its end. */
static void take_moment(void *context, const orr_llm_moment *m)
{
    stage_writer *w = context;
    const size_t i = w->held_count++;
    w->held[i] = m->activations; /* for now: after the task */
}

static void set_held(stage_writer *w, const llm_task *tasks, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        const bool is_forward = tasks[i].kind == LLM_FORWARD;
        const uint64_t activations = is_forward || i == 0 ? w->held[i] : w->held[i - 1];
        w->held[i] = w->held_always + w->working + activations;
    }
}

static orr_code measure_memory(stage_writer *w, const llm_task *tasks, size_t count, orr_error *err)
{
    orr_llm_memory m;
    orr_code code = orr_llm_memory_of(w->g->m, &w->g->opt, w->rank, &m, err);
    if (!code && !(w->held = orr_alloc(count, sizeof *w->held)))
        code = orr_no_memory(err);
    if (!code)
        code = orr_llm_moments(w->g->m, &w->g->opt, w->rank, take_moment, w, err);
    if (code)
        return code;
    w->held_always = m.weights + m.grads + m.optimizer;
    w->working = m.working;
    set_held(w, tasks, count);
    return ORR_OK;
}

static void say_held(stage_writer *w, uint64_t bytes)
{
    w->p->held = bytes;
    w->p->has_held = true;
}

static void write_steps(stage_writer *w, const llm_task *tasks, size_t count)
{
    for (w->step = 0; w->step < w->g->opt.steps; w->step++) {
        for (size_t i = 0; i < count && !w->p->b.code; i++) {
            say_held(w, w->held[i]);
            if (i + 1 < count && llm_is_pair(&w->g->opt, &tasks[i])) {
                run_pair(w, &tasks[i], &tasks[i + 1]);
                i++;
                continue;
            }
            run_task(w, &tasks[i]);
        }
        if (w->g->opt.forward_only)
            continue;
        say_held(w, w->held_always);
        llm_sync_step(&w->sync, llm_has_tied(&w->g->layout, w->rank), tied_parameters(w->g));
    }
}

static orr_code add_stage(const llm_job *g, uint32_t rank, orr_set *s, orr_error *err)
{
    size_t count = 0;
    uint32_t class_index;
    llm_pen pen;
    stage_writer w = {.g = g, .p = &pen, .rank = rank};
    llm_task *tasks = llm_schedule_tasks(g, rank, &count);
    w.loss = orr_alloc((size_t)g->micro_batches, sizeof *w.loss);
    w.forward_end = orr_alloc((size_t)g->micro_batches * g->opt.chunks, sizeof *w.forward_end);
    w.backward_end = orr_alloc((size_t)g->micro_batches * g->opt.chunks, sizeof *w.backward_end);
    const size_t offloads = (size_t)(g->opt.chunks * g->opt.offload_layers * g->micro_batches);
    w.stored = offloads ? orr_alloc(offloads, sizeof *w.stored) : NULL;
    llm_pen_open(&pen, g, err);
    llm_sync_open(&w.sync, &pen);
    if (!tasks || !w.loss || !w.forward_end || !w.backward_end || (offloads && !w.stored))
        pen.b.code = orr_no_memory(err);
    if (!pen.b.code)
        pen.b.code = measure_memory(&w, tasks, count, err);
    if (!pen.b.code) {
        count_parameters(&w);
        for (size_t i = 0; i < count; i++)
            if (tasks[i].kind == LLM_WEIGHTS || (tasks[i].kind == LLM_BACKWARD && !tasks[i].is_cut))
                w.last_grads[tasks[i].chunk] = tasks[i].micro_batch;
        write_steps(&w, tasks, count);
    }
    const orr_code code = llm_pen_close(&pen, s, &class_index);
    orr_free(tasks);
    orr_free(w.loss);
    orr_free(w.held);
    orr_free(w.forward_end);
    orr_free(w.backward_end);
    orr_free(w.stored);
    return code;
}

/* ---- the set ---- */

static orr_code add_ranks(const llm_job *g, orr_set *s, orr_error *err)
{
    int64_t values[LLM_SLOTS];
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < g->layout.ranks && !code; r++) {
        llm_layout_values(&g->layout, r, values);
        code = orr_set_add_rank_values(s, r / (g->layout.ranks / g->opt.pp), 0, values, err);
    }
    return code;
}

static void set_sizes(llm_job *g)
{
    const orr_llm_options *o = &g->opt;
    const bool is_narrow =
        o->dtype == ORR_DTYPE_FP8 || o->dtype == ORR_DTYPE_MXFP8 || o->dtype == ORR_DTYPE_NVFP4;
    g->mat = orr_dtype_bytes(o->dtype);
    g->act = g->weight = is_narrow ? 2 : g->mat;
    g->expert_tp = o->expert_tp < o->tp ? o->expert_tp : 0;
    g->software = o->software ? o->software : orr_software_at(0);
    const bool is_bf16 = o->dtype != ORR_DTYPE_FP16;
    g->grad =
        o->grads_fp32 || g->software->grads_fp32 || (g->software->grads_fp32_of_bf16 && is_bf16)
            ? 4
            : g->weight;
    g->tokens = o->micro_batch * (o->seq / o->cp);
    g->is_sequence_parallel = o->tp > 1 && !o->no_sequence_parallel;
    g->thin_tokens = g->is_sequence_parallel ? g->tokens / o->tp : g->tokens;
    g->micro_batches = o->batch / (o->dp * o->micro_batch);
    g->virtual_stages = o->pp * (llm_is_dual(o) ? 1 : o->chunks);
    g->has_dropout = o->has_dropout || g->software->has_dropout;
    g->is_pure = o->no_master || g->software->pure;
    g->kept = o->fp8_kept                           ? o->fp8_kept
              : is_narrow && g->software->keeps_fp8 ? ORR_KEPT_INPUTS
                                                    : ORR_KEPT_NONE;
    g->weights = o->fp8_weights                        ? o->fp8_weights
                 : is_narrow && g->software->keeps_fp8 ? ORR_WEIGHTS_BOTH
                                                       : ORR_WEIGHTS_WIDE;
}

orr_code llm_init(llm_job *g, const orr_model *m, const orr_llm_options *opt, orr_error *err)
{
    *g = (llm_job){.m = m, .opt = *opt};
    const orr_code code = orr_llm_complete(m, &g->opt, err);
    if (code)
        return code;
    set_sizes(g);
    llm_layout_init(&g->layout, &g->opt, m->is_tied);
    return ORR_OK;
}

/* For the metadata: the basis of rates.  Numbers that do not fit are left out. */
static void count_work(llm_job *g)
{
    const orr_llm_options *o = &g->opt;
    const orr_model_work sequence = {
        .tokens = o->seq, .is_square = o->full_attention, .has_mtp = o->has_mtp};
    orr_model_flops flops;
    orr_error too_large;
    uint64_t tokens;
    if (orr_model_compute(g->m, &sequence, &flops, &too_large) ||
        __builtin_mul_overflow(o->batch, o->seq, &tokens) ||
        __builtin_mul_overflow(tokens, o->steps, &tokens))
        return;
    g->job_tokens = tokens;
    g->job_flops =
        (double)(o->forward_only ? flops.forward : flops.training) * (double)o->batch * o->steps;
}

/* Nodes are proportional to passes through layers, some 15 each: a typo is refused before memory is
 * exhausted. */
static orr_code check_passes(const llm_job *g, orr_error *err)
{
    const orr_llm_options *o = &g->opt;
    const uint64_t most = UINT64_C(1) << 20, layers = g->m->layers;
    const uint64_t batches = o->batch / (o->dp * o->micro_batch) * o->steps; /* at most 2^20 */
    if (!layers || 2 * batches <= most / layers)
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "%" PRIu64 " micro-batches through %" PRIu64
                    " layers and back are more than %" PRIu64 " passes",
                    batches, layers, most);
}

orr_code orr_llm_training(const orr_model *m,
                          const orr_llm_options *opt,
                          orr_set **out,
                          orr_error *err)
{
    llm_job g;
    orr_set *s = NULL;
    orr_buf made_by = {0};
    *out = NULL;
    orr_code code = llm_init(&g, m, opt, err);
    if (!code)
        code = check_passes(&g, err);
    if (!code) {
        count_work(&g);
        llm_put_made_by(&made_by, &g);
        g.made_by = (orr_str){(const char *)made_by.ptr, made_by.len};
        code = made_by.failed ? orr_no_memory(err) : ORR_OK;
    }
    if (!code)
        code = orr_set_create(&s, err);
    for (uint32_t p = 0; !code && p < g.opt.pp; p++)
        code = add_stage(&g, p, s, err);
    if (!code)
        code = add_ranks(&g, s, err);
    if (!code)
        code = llm_layout_add_groups(&g.layout, s, err);
    orr_buf_fini(&made_by);
    if (code)
        orr_set_close(s);
    else
        *out = s;
    return code;
}

/* ---- the same without a trace (llm_tape.h) ---- */

orr_code orr__llm_tape_update(const orr__llm_view *v,
                              uint32_t pipeline_rank,
                              orr__tape *out,
                              orr__tape_sync *sync,
                              orr_error *err)
{
    const llm_job g = *v->job;
    llm_pen p = {.g = &g, .tape = out};
    stage_writer w = {.g = &g, .p = &p, .rank = pipeline_rank};
    llm_sync_open(&w.sync, &p);
    count_parameters(&w);
    const llm_sync *y = &w.sync;
    const uint64_t own = own_parameters(y), input = llm_tape_begin(out);
    uint64_t at = input;
    if (!g.opt.no_clipping)
        at = put_norm(&w.sync, own, LLM_AFTER(at));
    llm_launch_update(&p, own, y->tensors);
    at = llm_put_compute(&p, "update", 12 * own, update_bytes(&g, own), LLM_AFTER(at));
    out->out = (uint32_t)(at - 1);
    *sync = (orr__tape_sync){
        .dense = y->dense_parameters,
        .expert = y->expert_parameters,
        .dense_share =
            share(&g, y->dense.axis, gathered_bytes(&g, y->dense_parameters, y->narrow_dense)),
        .grad = g.grad,
        .gathers_at_end = (g.opt.zero == 1 || g.opt.zero == 2) && !gathers_ahead(&g),
        .gathers_layers = g.opt.zero == 3};
    return out->failed ? orr_no_memory(err) : ORR_OK;
}

orr_code orr__llm_view_open(const orr_model *m,
                            const orr_llm_options *opt,
                            orr__llm_view *out,
                            orr_error *err)
{
    llm_job *g = orr_alloc(1, sizeof *g);
    out->job = g;
    if (!g)
        return orr_no_memory(err);
    *g = (llm_job){.m = m, .opt = *opt};
    set_sizes(g);
    llm_layout_init(&g->layout, &g->opt, m->is_tied);
    return ORR_OK;
}

void orr__llm_view_close(orr__llm_view *v)
{
    orr_free(v->job);
    v->job = NULL;
}

void orr__llm_view_recompute(orr__llm_view *v, const orr_llm_options *as)
{
    v->job->opt.recompute = as->recompute;
    v->job->opt.recompute_layers = as->recompute_layers;
    v->job->opt.recompute_parts = as->recompute_parts;
}

void orr__llm_view_layers(const orr__llm_view *v, uint32_t stage, uint64_t *first, uint64_t *end)
{
    llm_stage_layers(v->job, stage, first, end);
}

orr__layer_weights orr__llm_view_weights(const orr__llm_view *v, uint64_t layer)
{
    orr__layer_weights w;
    llm_layer_parameters(v->job, layer, &w.dense, &w.expert);
    return w;
}

orr__layer_weights orr__llm_view_ends(const orr__llm_view *v)
{
    return (orr__layer_weights){llm_embedding_parameters(v->job), llm_head_parameters(v->job)};
}

orr__layer_weights orr__llm_view_mtp(const orr__llm_view *v)
{
    orr__layer_weights w;
    llm_mtp_parameters(v->job, &w.dense, &w.expert);
    return w;
}

orr__layer_weights orr__llm_view_gathered(const orr__llm_view *v, uint64_t layer)
{
    orr__layer_weights all, narrow;
    llm_layer_parameters(v->job, layer, &all.dense, &all.expert);
    llm_narrow_parameters(v->job, layer, &narrow.dense, &narrow.expert);
    return (orr__layer_weights){gathered_bytes(v->job, all.dense, narrow.dense),
                                gathered_bytes(v->job, all.expert, narrow.expert)};
}

bool orr__llm_view_is_recomputed(const orr__llm_view *v, uint64_t layer)
{
    return llm_is_recomputed(v->job, layer);
}

uint64_t orr__llm_view_message(const orr__llm_view *v)
{
    return message_bytes(v->job);
}

orr__llm_task *orr__llm_view_tasks(const orr__llm_view *v, uint32_t rank, size_t *count)
{
    llm_task *tasks = llm_schedule_tasks(v->job, rank, count);
    orr__llm_task *out = tasks ? orr_alloc(*count + 1, sizeof *out) : NULL;
    for (size_t i = 0; out && i < *count; i++)
        out[i] = (orr__llm_task){.kind = (uint8_t)tasks[i].kind,
                                 .chunk = (uint8_t)tasks[i].chunk,
                                 .micro_batch = (uint32_t)tasks[i].micro_batch};
    orr_free(tasks);
    return out;
}
