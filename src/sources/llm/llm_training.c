/* SPDX-License-Identifier: Apache-2.0 */
/* llm_training.c - a training step: one class of ranks for each pipeline rank, its tasks written one after another.
 *
 * A task waits for the one before it, so a rank keeps to its schedule.  The gradients of weights are the
 * exception: they wait for their own backward pass alone and have smaller ids than what follows, so they run when
 * nothing else can, for instance while a tensor-parallel collective or a neighbour's message is on its way. */
#include "llm_impl.h"

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
    uint64_t
        *backward_end; /* by chunk and micro-batch, for the weights' gradients of zero bubble */
} stage_writer;

static uint32_t stage_of(const stage_writer *w, uint32_t chunk)
{
    return chunk * w->g->opt.pp + w->rank;
}

static bool is_first(const stage_writer *w, uint32_t chunk)
{
    return stage_of(w, chunk) == 0;
}

static bool is_last(const stage_writer *w, uint32_t chunk)
{
    return stage_of(w, chunk) + 1 == w->g->virtual_stages;
}

/* ---- messages between stages ---- */

static uint64_t message_bytes(const llm_job *g)
{
    return g->thin_tokens * g->m->hidden * g->act;
}

/* Into which stage, of which micro-batch, which way: no two messages of a pair have the same. */
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

/* Layers of a task in its order, and whose weights are asked for ahead of time. */
typedef struct walk {
    stage_writer *w;
    const llm_task *task;
    range layers;
    uint64_t asked; /* how many layers' weights have been */
    uint64_t (*gathered)[2];
} walk;

static uint64_t layer_at(const walk *k, uint64_t i)
{
    return k->task->kind == LLM_FORWARD ? k->layers.first + i : k->layers.end - 1 - i;
}

/* Gather the weights of layers up to i + prefetch, once `after` is there; the i-th waits for its own. */
static void ask_for_weights(walk *k, uint64_t i, uint64_t after)
{
    stage_writer *w = k->w;
    const uint64_t count = k->layers.end - k->layers.first;
    if (w->g->opt.zero < 3)
        return;
    for (; k->asked < count && k->asked <= i + w->g->opt.prefetch; k->asked++) {
        name_layer(w->p, k->task, layer_at(k, k->asked));
        llm_sync_weights(&w->sync, layer_at(k, k->asked), after, k->gathered[k->asked]);
    }
    w->p->barrier[4] = k->gathered[i][0];
    w->p->barrier[5] = k->gathered[i][1];
}

static bool walk_open(walk *k)
{
    const uint64_t count = k->layers.end - k->layers.first;
    k->gathered = orr_alloc((size_t)count + 1, sizeof *k->gathered);
    if (!k->gathered)
        k->w->p->b.code = orr_no_memory(k->w->p->b.err);
    return k->gathered != NULL;
}

static uint64_t walk_forward(walk *k, uint64_t input)
{
    stage_writer *w = k->w;
    uint64_t at = input;
    for (uint64_t i = 0; i < k->layers.end - k->layers.first; i++) {
        const uint64_t layer = layer_at(k, i);
        ask_for_weights(k, i, at);
        name_layer(w->p, k->task, layer);
        at = llm_layer_forward(w->p, layer, layer_tag(w->g, k->task->micro_batch, layer), at);
    }
    return at;
}

/* Are the gradients complete with this task? */
static bool is_final(const stage_writer *w, const llm_task *t, int parts)
{
    const bool is_reversed = w->g->opt.pipeline == ORR_PIPELINE_GPIPE;
    const uint64_t last = is_reversed ? 0 : w->g->micro_batches - 1;
    return parts & LLM_WEIGHT_GRADS && (w->g->opt.sync_every_micro_batch || t->micro_batch == last);
}

static uint64_t walk_backward(walk *k, int parts, uint64_t output_grad)
{
    stage_writer *w = k->w;
    uint64_t at = output_grad;
    for (uint64_t i = 0; i < k->layers.end - k->layers.first; i++) {
        const uint64_t layer = layer_at(k, i);
        llm_grads grads = {0};
        uint64_t dense, expert;
        if (parts & LLM_INPUT_GRADS)
            ask_for_weights(k, i, at);
        name_layer(w->p, k->task, layer);
        const uint64_t input_grad = llm_layer_backward(
            w->p, layer, layer_tag(w->g, k->task->micro_batch, layer), parts, at, &grads);
        at = parts & LLM_INPUT_GRADS ? input_grad : at;
        llm_layer_parameters(w->g, layer, &dense, &expert);
        if (is_final(w, k->task, parts))
            llm_sync_grads(&w->sync, dense, expert, &grads);
    }
    return at;
}

/* ---- tasks ---- */

static void run_forward(stage_writer *w, const llm_task *t)
{
    llm_pen *p = w->p;
    const uint32_t stage = stage_of(w, t->chunk);
    walk k = {.w = w, .task = t, .layers = layers_of(w, t->chunk)};
    uint64_t at;
    if (!walk_open(&k))
        return;
    name_end(p, t);
    if (is_first(w, t->chunk))
        at = llm_embedding_forward(p);
    else
        at = llm_put_receive(p, "receive", message_bytes(w->g),
                             message_tag(w->g, stage, t->micro_batch, false), LLM_PEER_PREVIOUS,
                             LLM_AFTER(0));
    at = walk_forward(&k, at);
    name_end(p, t);
    if (is_last(w, t->chunk))
        at = w->loss[t->micro_batch] = llm_head_forward(p, at);
    else
        llm_put_send(p, "send", message_bytes(w->g),
                     message_tag(w->g, stage + 1, t->micro_batch, false), LLM_PEER_NEXT,
                     LLM_AFTER(at));
    p->barrier[0] = at;
    orr_free(k.gathered);
}

static uint64_t start_backward(stage_writer *w, const llm_task *t, int parts)
{
    llm_pen *p = w->p;
    const uint32_t stage = stage_of(w, t->chunk);
    llm_grads grads = {0};
    if (!is_last(w, t->chunk))
        return llm_put_receive(p, "receive.grad", message_bytes(w->g),
                               message_tag(w->g, stage, t->micro_batch, true), LLM_PEER_NEXT,
                               LLM_AFTER(0));
    const uint64_t at = llm_head_backward(p, parts, w->loss[t->micro_batch], &grads);
    if (is_final(w, t, parts))
        llm_sync_grads(&w->sync, llm_head_parameters(w->g), 0, &grads);
    return at;
}

static void end_backward(stage_writer *w, const llm_task *t, int parts, uint64_t at)
{
    llm_grads grads = {0};
    if (!is_first(w, t->chunk)) {
        llm_put_send(w->p, "send.grad", message_bytes(w->g),
                     message_tag(w->g, stage_of(w, t->chunk) - 1, t->micro_batch, true),
                     LLM_PEER_PREVIOUS, LLM_AFTER(at));
        return;
    }
    llm_embedding_backward(w->p, at, &grads);
    if (is_final(w, t, parts | LLM_WEIGHT_GRADS))
        llm_sync_grads(&w->sync, llm_embedding_parameters(w->g), 0, &grads);
}

static uint64_t *end_of(stage_writer *w, const llm_task *t)
{
    return &w->backward_end[t->chunk * w->g->micro_batches + t->micro_batch];
}

static void run_backward(stage_writer *w, const llm_task *t)
{
    const bool is_cut = w->g->opt.pipeline == ORR_PIPELINE_ZERO_BUBBLE;
    const int parts = is_cut ? LLM_INPUT_GRADS : LLM_INPUT_GRADS | LLM_WEIGHT_GRADS;
    walk k = {.w = w, .task = t, .layers = layers_of(w, t->chunk)};
    if (!walk_open(&k))
        return;
    name_end(w->p, t);
    uint64_t at = start_backward(w, t, parts);
    at = walk_backward(&k, parts, at);
    name_end(w->p, t);
    end_backward(w, t, parts, at);
    *end_of(w, t) = at;
    w->p->barrier[0] = at;
    orr_free(k.gathered);
}

/* No task waits for this one, and it only for its own backward pass: it fills gaps. */
static void run_weights(stage_writer *w, const llm_task *t)
{
    uint64_t barrier[sizeof w->p->barrier / sizeof *w->p->barrier];
    walk k = {.w = w, .task = t, .layers = layers_of(w, t->chunk)};
    llm_grads grads = {0};
    memcpy(barrier, w->p->barrier, sizeof barrier);
    memset(w->p->barrier, 0, sizeof barrier);
    if (is_last(w, t->chunk)) {
        name_end(w->p, t);
        llm_head_backward(w->p, LLM_WEIGHT_GRADS, *end_of(w, t), &grads);
        if (is_final(w, t, LLM_WEIGHT_GRADS))
            llm_sync_grads(&w->sync, llm_head_parameters(w->g), 0, &grads);
    }
    walk_backward(&k, LLM_WEIGHT_GRADS, *end_of(w, t));
    memcpy(w->p->barrier, barrier, sizeof barrier);
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
    for (uint32_t c = 0; c < w->g->opt.chunks; c++) {
        const range r = layers_of(w, c);
        for (uint64_t layer = r.first; layer < r.end; layer++) {
            uint64_t dense, expert;
            llm_layer_parameters(w->g, layer, &dense, &expert);
            y->dense_parameters += dense;
            y->expert_parameters += expert;
        }
        y->dense_parameters += is_first(w, c) ? llm_embedding_parameters(w->g) : 0;
        y->dense_parameters += is_last(w, c) ? llm_head_parameters(w->g) : 0;
    }
}

static bool has_tied_end(const stage_writer *w)
{
    const bool is_end = is_first(w, 0) || is_last(w, w->g->opt.chunks - 1);
    return w->g->m->is_tied && w->g->opt.pp > 1 && is_end;
}

static uint64_t tied_parameters(const llm_job *g)
{
    return llm_vocab_share(g) * g->m->hidden;
}

/* ---- memory ---- */

/* What is held when a task is done; while it runs, a forward pass holds that already, and what a backward pass lets
 * go of is there until its end. */
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
            run_task(w, &tasks[i]);
        }
        say_held(w, w->held_always);
        llm_sync_step(&w->sync, has_tied_end(w), tied_parameters(w->g));
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
    w.backward_end = orr_alloc((size_t)g->micro_batches * g->opt.chunks, sizeof *w.backward_end);
    llm_pen_open(&pen, g, err);
    llm_sync_open(&w.sync, &pen);
    if (!tasks || !w.loss || !w.backward_end)
        pen.b.code = orr_no_memory(err);
    if (!pen.b.code)
        pen.b.code = measure_memory(&w, tasks, count, err);
    if (!pen.b.code) {
        count_parameters(&w);
        write_steps(&w, tasks, count);
    }
    const orr_code code = llm_pen_close(&pen, s, &class_index);
    orr_free(tasks);
    orr_free(w.loss);
    orr_free(w.held);
    orr_free(w.backward_end);
    return code;
}

/* ---- the set ---- */

static orr_code add_ranks(const llm_job *g, orr_set *s, orr_error *err)
{
    int64_t values[LLM_SLOTS];
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < g->layout.ranks && !code; r++) {
        llm_layout_values(&g->layout, r, values);
        code = orr_set_add_filled(s, r / (g->layout.ranks / g->opt.pp), 0, values, err);
    }
    return code;
}

static void set_sizes(llm_job *g)
{
    const orr_llm_options *o = &g->opt;
    const bool is_fp8 = o->dtype == ORR_DTYPE_FP8;
    g->mat = orr_dtype_bytes(o->dtype);
    g->act = g->weight = is_fp8 ? 2 : g->mat;
    g->grad = o->grads_fp32 ? 4 : g->weight;
    g->tokens = o->micro_batch * (o->seq / o->cp);
    g->is_sequence_parallel = o->tp > 1 && !o->no_sequence_parallel;
    g->thin_tokens = g->is_sequence_parallel ? g->tokens / o->tp : g->tokens;
    g->micro_batches = o->batch / (o->dp * o->micro_batch);
    g->virtual_stages = o->pp * o->chunks;
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

/* For the metadata: what rates are counted in.  Numbers that are too large for that are left out. */
static void count_work(llm_job *g)
{
    const orr_llm_options *o = &g->opt;
    const orr_model_work sequence = {.tokens = o->seq, .is_square = o->full_attention};
    orr_model_flops flops;
    orr_error too_large;
    uint64_t tokens;
    if (orr_model_compute(g->m, &sequence, &flops, &too_large) ||
        __builtin_mul_overflow(o->batch, o->seq, &tokens) ||
        __builtin_mul_overflow(tokens, o->steps, &tokens))
        return;
    g->job_tokens = tokens;
    g->job_flops = (double)flops.training * (double)o->batch * o->steps;
}

orr_code orr_llm_training(const orr_model *m,
                          const orr_llm_options *opt,
                          orr_set **out,
                          orr_error *err)
{
    llm_job g;
    orr_set *s = NULL;
    *out = NULL;
    orr_code code = llm_init(&g, m, opt, err);
    if (!code)
        count_work(&g);
    if (!code)
        code = orr_set_create(&s, err);
    for (uint32_t p = 0; !code && p < g.opt.pp; p++)
        code = add_stage(&g, p, s, err);
    if (!code)
        code = add_ranks(&g, s, err);
    if (!code)
        code = llm_layout_add_groups(&g.layout, s, err);
    if (code)
        orr_set_close(s);
    else
        *out = s;
    return code;
}
