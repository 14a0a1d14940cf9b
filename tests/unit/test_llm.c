/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of language models against closed forms: operations, parameters, bytes, order and
 * memory. */
#include "check.h"

#include <orrery/lab/llm.h>

#include "sources/llm/llm_impl.h"

static orr_error err;

static orr_model model_named(const char *name)
{
    orr_model m;
    CHECK_OK(orr_model_load(name, &m, &err), &err);
    return m;
}

static orr_set *make(const orr_model *m, const orr_llm_options *opt)
{
    orr_set *s;
    CHECK_OK(orr_llm_training(m, opt, &s, &err), &err);
    return s;
}

static bool ends_in(orr_str name, const char *tail)
{
    const size_t n = strlen(tail);
    return name.len >= n && memcmp(name.ptr + name.len - n, tail, n) == 0;
}

static bool has(orr_str name, const char *part)
{
    return memmem(name.ptr, name.len, part, strlen(part)) != NULL;
}

/* ---- sums over all ranks ---- */

typedef enum what { FORWARD, INPUT_GRADS, WEIGHT_GRADS } what;

/* Products with weights, and the attention core; names say which pass. */
static bool is_counted(orr_str name, what pass, bool is_core)
{
    static const char *const products[] = {
        "attn.qkv",  "attn.q",      "attn.q_down",  "attn.q_up",   "attn.kv_down", "attn.kv_up",
        "attn.out",  "ffn.up",      "ffn.down",     "moe.router",  "moe.up",       "moe.down",
        "shared.up", "shared.down", "shared.scale", "head.logits", "mtp0.join"};
    const char *suffix = pass == FORWARD ? "" : pass == INPUT_GRADS ? ".grad" : ".wgrad";
    char tail[64];
    if (is_core) {
        snprintf(tail, sizeof tail, ".attn.core%s", suffix);
        return ends_in(name, tail);
    }
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        snprintf(tail, sizeof tail, ".%s%s", products[i], suffix);
        if (ends_in(name, tail))
            return true;
    }
    return false;
}

static uint64_t sum_operations(const orr_set *s, what pass, bool is_core)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < orr_set_class_count(s); k++) {
        const orr_trace *t = orr_set_trace(s, k);
        const orr_columns *c = orr_trace_columns(t);
        for (uint32_t i = 0; i < c->count; i++)
            if (c->type[i] == ORR_NODE_COMP && is_counted(orr_trace_name(t, i), pass, is_core))
                sum += (uint64_t)c->num_ops[i] * orr_set_class_ranks(s, k);
    }
    return sum;
}

/* A vocabulary that comes out even: Megatron pads what does not to 128 rows per rank. */
static orr_model even_model(const char *name, const orr_llm_options *opt)
{
    orr_model m = model_named(name);
    const uint64_t step = UINT64_C(128) * (opt->tp ? opt->tp : 1);
    m.vocab = (m.vocab + step - 1) / step * step;
    return m;
}

/* Every operation of the model is done once, however it is shared out, and backward twice; the
 * attention core computes its scores once more: five products for two. */
static void check_operations(const char *name, orr_llm_options opt)
{
    const orr_model m = even_model(name, &opt);
    CHECK_OK(orr_llm_complete(&m, &opt, &err), &err);
    orr_set *s = make(&m, &opt);
    const orr_model_work work = {
        .tokens = opt.seq, .is_square = opt.full_attention, .has_mtp = opt.has_mtp};
    orr_model_flops f;
    CHECK_OK(orr_model_compute(&m, &work, &f, &err), &err);
    const uint64_t products = (f.forward - f.scores) * opt.batch;
    CHECK_EQ_U(sum_operations(s, FORWARD, false), products);
    CHECK_EQ_U(sum_operations(s, INPUT_GRADS, false), products);
    CHECK_EQ_U(sum_operations(s, WEIGHT_GRADS, false), products);
    const uint64_t scores = f.scores * opt.batch;
    const uint64_t qk = orr_model_qk_dim(&m), v = orr_model_v_dim(&m);
    CHECK_EQ_U(sum_operations(s, FORWARD, true), scores);
    CHECK_EQ_U(sum_operations(s, INPUT_GRADS, true), scores / (qk + v) * (3 * qk + 2 * v));
    orr_set_close(s);
}

TEST(test_llm__every_operation_is_done_once)
{
    check_operations("gpt2", (orr_llm_options){.seq = 512});
    check_operations("llama-3-8b",
                     (orr_llm_options){.tp = 4, .pp = 2, .dp = 2, .batch = 8, .seq = 2048});
    check_operations("llama-3-8b",
                     (orr_llm_options){.tp = 2, .cp = 4, .pp = 4, .batch = 4, .seq = 4096});
    check_operations(
        "llama-3-8b",
        (orr_llm_options){.cp = 2, .context_form = ORR_CONTEXT_ALL_GATHER, .seq = 1024});
    check_operations("gpt2", (orr_llm_options){.seq = 512, .pp = 2, .full_attention = true});
    check_operations("mistral-7b", (orr_llm_options){.tp = 8, .seq = 8192}); /* window of 4,096 */
    check_operations("mixtral-8x7b", (orr_llm_options){.tp = 2, .dp = 4, .ep = 4, .seq = 1024});
    check_operations("mixtral-8x7b", (orr_llm_options){.tp = 2,
                                                       .dp = 2,
                                                       .ep = 2,
                                                       .pp = 4,
                                                       .batch = 8,
                                                       .pipeline = ORR_PIPELINE_ZERO_BUBBLE,
                                                       .seq = 1024});
    check_operations("deepseek-v3", (orr_llm_options){.dp = 8, .ep = 8, .pp = 2, .seq = 1024});
    check_operations("llama-2-70b", (orr_llm_options){.tp = 8,
                                                      .pp = 4,
                                                      .chunks = 4,
                                                      .batch = 8,
                                                      .seq = 512,
                                                      .pipeline = ORR_PIPELINE_INTERLEAVED});
}

/* ---- gradients: every parameter's, once a step ---- */

static uint64_t count_nodes(const orr_set *s, const char *part)
{
    const orr_trace *t = orr_set_trace(s, 0);
    uint64_t n = 0;
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++)
        n += has(orr_trace_name(t, i), part);
    return n;
}

static uint64_t sum_collectives(const orr_set *s, const char *tail, orr_collective kind)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < orr_set_class_count(s); k++) {
        const orr_trace *t = orr_set_trace(s, k);
        const orr_columns *c = orr_trace_columns(t);
        for (uint32_t i = 0; i < c->count; i++)
            if (c->type[i] == ORR_NODE_COMM_COLL && c->comm_type[i] == (int8_t)kind &&
                ends_in(orr_trace_name(t, i), tail))
                sum += (uint64_t)c->comm_size[i];
    }
    return sum;
}

/* One replica of the model: the classes of a pipeline without tensor parallelism hold each
 * parameter once. */
static void check_grads(const char *name, orr_llm_options opt, uint64_t bytes)
{
    const orr_model m = even_model(name, &opt);
    orr_model_counts n;
    orr_model_count(&m, &n);
    orr_set *s = make(&m, &opt);
    const orr_collective kind = opt.zero ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE;
    const uint64_t tied = m.is_tied && opt.pp > 1 ? orr_model_vocab_rows(&m) * m.hidden : 0;
    CHECK_EQ_U(sum_collectives(s, "grads.reduce", kind) +
                   sum_collectives(s, "experts.reduce", kind),
               (n.total + tied) * bytes);
    CHECK_EQ_U(sum_collectives(s, "tied.reduce", ORR_COLL_ALL_REDUCE), 2 * tied * bytes);
    orr_set_close(s);
}

TEST(test_llm__gradients_of_all_parameters_are_reduced_once)
{
    check_grads("gpt2", (orr_llm_options){.dp = 2, .seq = 256}, 2);
    check_grads("gpt2", (orr_llm_options){.dp = 2, .pp = 3, .batch = 8, .seq = 256}, 2);
    check_grads("llama-3-8b", (orr_llm_options){.dp = 4, .pp = 4, .batch = 16, .seq = 1024}, 2);
    check_grads("llama-3-8b", (orr_llm_options){.dp = 4, .zero = 1, .batch = 8, .seq = 1024}, 2);
    check_grads("llama-3-8b",
                (orr_llm_options){.cp = 4, .zero = 2, .grads_fp32 = true, .seq = 1024}, 4);
    check_grads("llama-3-8b",
                (orr_llm_options){.dp = 2, .zero = 3, .seq = 1024, .no_overlap = true}, 2);
    check_grads("deepseek-v3", (orr_llm_options){.dp = 2, .seq = 512}, 2);
    check_grads("gpt2",
                (orr_llm_options){.dp = 2,
                                  .dtype = ORR_DTYPE_FP32,
                                  .seq = 256,
                                  .pipeline = ORR_PIPELINE_GPIPE,
                                  .batch = 8},
                4);
}

/* 32 layers are more nodes than one collective waits for. */
TEST(test_llm__without_overlap_gradients_are_reduced_at_once)
{
    const orr_model m = model_named("llama-3-8b");
    const orr_llm_options opt = {.dp = 8, .seq = 1024, .no_overlap = true};
    orr_set *s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, "grads.reduce"), 1);
    orr_set_close(s);
}

TEST(test_llm__experts_are_reduced_among_those_who_have_them)
{
    const orr_model m = model_named("mixtral-8x7b");
    orr_model_counts n;
    orr_model_count(&m, &n);
    orr_set *s = make(&m, &(orr_llm_options){.dp = 8, .ep = 4, .seq = 512});
    CHECK_EQ_U(sum_collectives(s, "experts.reduce", ORR_COLL_ALL_REDUCE),
               n.part[ORR_MODEL_EXPERTS] / 4 * 2);
    CHECK_EQ_U(sum_collectives(s, "grads.reduce", ORR_COLL_ALL_REDUCE),
               (n.total - n.part[ORR_MODEL_EXPERTS]) * 2);
    orr_set_close(s);
}

/* ---- bytes of single collectives and messages ---- */

static int64_t size_of(const orr_set *s, uint32_t class_index, const char *name)
{
    const orr_trace *t = orr_set_trace(s, class_index);
    const orr_columns *c = orr_trace_columns(t);
    for (uint32_t i = 0; i < c->count; i++) {
        const orr_str found = orr_trace_name(t, i);
        if (found.len == strlen(name) && memcmp(found.ptr, name, found.len) == 0)
            return c->comm_size ? c->comm_size[i] : -1;
    }
    return -1;
}

TEST(test_llm__tensor_parallel_ranks_gather_and_scatter_tokens)
{
    const orr_model m = model_named("llama-3-8b"); /* hidden 4,096 */
    const orr_llm_options opt = {.tp = 4, .pp = 2, .micro_batch = 2, .batch = 4, .seq = 1024};
    const int64_t all = 2 * 1024 * 4096 * 2; /* sequences, tokens, numbers, bytes */
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.attn.gather"), all / 4);
    CHECK_EQ(size_of(s, 0, "mb1.layer3.attn.scatter"), all);
    CHECK_EQ(size_of(s, 0, "mb1.layer3.ffn.gather.again"), all / 4);
    CHECK_EQ(size_of(s, 0, "mb1.layer3.ffn.gather.grad"), all);
    CHECK_EQ(size_of(s, 0, "mb1.send"), all / 4);
    CHECK_EQ(size_of(s, 1, "mb1.receive"), all / 4);
    CHECK_EQ(size_of(s, 1, "mb1.loss.max_all"), 2 * 1024 * 4);
    orr_set_close(s);
}

TEST(test_llm__without_sequence_parallelism_they_add_up_instead)
{
    const orr_model m = model_named("llama-3-8b");
    const orr_llm_options opt = {.tp = 4, .pp = 2, .seq = 1024, .no_sequence_parallel = true};
    const int64_t all = 1024 * 4096 * 2;
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.attn.gather"), -1);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.attn.scatter"), all);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.attn.gather.grad"), all);
    CHECK_EQ(size_of(s, 0, "mb0.send"), all);
    orr_set_close(s);
}

TEST(test_llm__keys_and_values_go_round_or_to_all)
{
    const orr_model m = model_named("llama-3-8b"); /* 8 key and value heads of 128 */
    orr_llm_options opt = {.cp = 4, .tp = 2, .seq = 4096};
    const int64_t kv = 1024 * 4 * 2 * 128 * 2; /* tokens, heads, keys and values, numbers, bytes */
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.kv_send"), kv);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.dkv_receive.grad"), kv);
    orr_set_close(s);
    opt.context_form = ORR_CONTEXT_ALL_GATHER;
    s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.kv_gather"), kv);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.dkv_scatter.grad"), 4 * kv);
    orr_set_close(s);
    opt.context_form = ORR_CONTEXT_BLOCKS; /* gathered once; their gradients go round */
    s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.kv_send"), -1);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.kv_receive"), kv);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.attn.dkv_receive.grad"), kv);
    orr_set_close(s);
}

TEST(test_llm__tokens_travel_to_their_experts)
{
    const orr_model m = model_named("mixtral-8x7b"); /* 2 experts a token, hidden 4,096 */
    orr_set *s = make(&m, &(orr_llm_options){.tp = 2, .dp = 4, .ep = 4, .seq = 1024});
    const int64_t sent = 512 * 2 * 4096 * 2;
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.dispatch"), sent);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.combine.grad"), sent);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.gather"), sent);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.scatter"), 2 * sent);
    orr_set_close(s);
}

TEST(test_llm__zero_3_gathers_weights_before_each_use)
{
    const orr_model m = model_named("llama-3-8b");
    orr_model_counts n;
    orr_model_layer_count(&m, 0, &n);
    orr_set *s = make(&m, &(orr_llm_options){.dp = 8, .zero = 3, .batch = 16, .seq = 1024});
    /* 2 micro-batches, 2 passes, all layers; each time an eighth of a layer; embedding and head, with
     * its norm, once per micro-batch */
    const uint64_t layers = 2 * m.layers * (n.total * 2 / 8);
    const uint64_t ends = (2 * UINT64_C(128256) * 4096 + 4096) * 2 / 8;
    CHECK_EQ_U(sum_collectives(s, "weights.gather", ORR_COLL_ALL_GATHER), layers + 2 * ends);
    CHECK_EQ_U(sum_collectives(s, "weights.gather.again", ORR_COLL_ALL_GATHER), layers);
    CHECK_EQ_U(count_nodes(s, ".unpack") + count_nodes(s, ".pack"), 0);
    orr_set_close(s);
}

static uint64_t sum_moved(const orr_set *s, const char *tail)
{
    const orr_trace *t = orr_set_trace(s, 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++)
        if (ends_in(orr_trace_name(t, i), tail))
            sum += (uint64_t)orr_trace_columns(t)->tensor_size[i];
    return sum;
}

TEST(test_llm__fsdp_copies_and_reduces_layer_by_layer)
{
    const orr_model m = model_named("llama-3-8b");
    orr_model_counts n;
    orr_model_layer_count(&m, 0, &n);
    orr_llm_options opt = {.dp = 8, .zero = 3, .seq = 1024, .grads_fp32 = true};
    opt.software = orr_software_find("fsdp2-eager");
    orr_set *s = make(&m, &opt);
    const uint64_t ends = 2 * UINT64_C(128256) * 4096 + 4096;
    /* read and written: the weights of 32 layers twice, of both ends once */
    CHECK_EQ_U(sum_moved(s, ".unpack"), 2 * 2 * (2 * m.layers * n.total + ends));
    /* gradients read in 2 bytes and written in 4, layer by layer */
    CHECK_EQ_U(sum_moved(s, "grads.pack"), 6 * (m.layers * n.total + ends));
    CHECK_EQ_U(count_nodes(s, "grads.reduce"), m.layers + 2);
    CHECK_EQ_U(sum_collectives(s, "grads.reduce", ORR_COLL_REDUCE_SCATTER),
               4 * (m.layers * n.total + ends));
    orr_set_close(s);
    opt.software = orr_software_find("fsdp-2023"); /* flat parameters: weights need no copy */
    s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, ".unpack"), 0);
    CHECK_EQ_U(count_nodes(s, "grads.pack"), m.layers + 2);
    orr_set_close(s);
    opt.bucket_bytes = 2000 * 1000 * 1000; /* as given: two layers of 872 MB are less */
    s = make(&m, &opt);
    CHECK(count_nodes(s, "grads.reduce") < m.layers / 2);
    orr_set_close(s);
    opt.bucket_bytes = 0;
    opt.zero = 1; /* FSDP shards gradients */
    s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, ".pack"), 0);
    orr_set_close(s);
}

/* Tiny buckets make neither new weights travel byte by byte nor a set without end. */
TEST(test_llm__new_weights_travel_in_pieces_of_a_megabyte_at_least)
{
    const orr_model m = model_named("gpt2");
    orr_llm_options opt = {.dp = 2, .zero = 1, .seq = 128, .bucket_bytes = 1, .no_overlap = true};
    orr_model_counts n;
    orr_model_count(&m, &n);
    orr_set *s = make(&m, &opt);
    CHECK(count_nodes(s, "weights.gather") <= n.total * 2 / 1000000 + 1);
    orr_set_close(s);
}

TEST(test_llm__zero_3_keeps_the_gathered_head)
{
    const orr_model m = model_named("llama-3-8b");
    orr_model_counts n;
    orr_model_layer_count(&m, 0, &n);
    orr_llm_options opt = {.dp = 8, .zero = 3, .seq = 1024};
    orr_llm_memory got;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &got, &err), &err);
    /* an eighth of all weights, two layers, the head with its norm */
    CHECK_EQ_U(got.weights,
               got.parameters * 2 / 8 + 2 * n.total * 2 + (UINT64_C(128256) * 4096 + 4096) * 2);
}

/* ---- recomputation ---- */

TEST(test_llm__what_is_computed_again_stands_in_the_trace)
{
    const orr_model m = model_named("gpt2"); /* 12 layers */
    orr_llm_options opt = {.seq = 256};
    orr_set *s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, ".again"), 0);
    orr_set_close(s);
    opt.recompute = ORR_RECOMPUTE_SELECTIVE;
    s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, "attn.core.again"), 12);
    CHECK_EQ_U(count_nodes(s, ".again"), 12);
    orr_set_close(s);
    opt.recompute = ORR_RECOMPUTE_FULL;
    s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, "ffn.up.again"), 12);
    CHECK_EQ_U(count_nodes(s, "attn.core.again"), 12);
    orr_set_close(s);
}

/* ---- groups ---- */

TEST(test_llm__ranks_find_their_groups_and_neighbours)
{
    const orr_llm_options opt = {.tp = 2,
                                 .cp = 3,
                                 .dp = 4,
                                 .pp = 5,
                                 .ep = 6,
                                 .shard = 6,
                                 .dtype = ORR_DTYPE_FP8,
                                 .fp8_scaling = ORR_FP8_DELAYED}; /* groups of every axis */
    llm_layout l;
    int64_t v[LLM_SLOTS];
    orr_set *s;
    llm_layout_init(&l, &opt, true);
    CHECK_EQ_U(l.ranks, 120);
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(llm_layout_add_groups(&l, s, &err), &err);
    for (uint32_t rank = 0; rank < l.ranks; rank++) {
        llm_layout_values(&l, rank, v);
        for (unsigned axis = 0; axis < LLM_AXES; axis++) {
            const bool is_middle = rank >= 24 && rank < 96;
            uint32_t times = 0;
            const orr_group g = orr_set_group(s, (uint32_t)v[axis] - 1); /* numbers are 1, 2, ... */
            CHECK_EQ_U(g.id, (uint64_t)v[axis]);
            for (uint32_t i = 0; i < g.count; i++)
                times += g.ranks[i] == rank;
            CHECK_EQ_U(times, axis == LLM_AXIS_TIED && is_middle ? 0 : 1);
        }
        CHECK_EQ(v[LLM_PEER_NEXT], (rank + 24) % 120);
        CHECK_EQ(v[LLM_PEER_PREVIOUS], (rank + 96) % 120);
    }
    llm_layout_values(&l, 1 + 2 * (2 + 3 * 1), v); /* tensor 1, context 2, data 1 */
    CHECK_EQ(v[LLM_PEER_CP_NEXT], 1 + 2 * (0 + 3 * 1));
    CHECK_EQ(v[LLM_PEER_CP_PREVIOUS], 1 + 2 * (1 + 3 * 1));
    orr_set_close(s);
}

/* ---- schedules ---- */

typedef struct held {
    uint64_t now, most, forward, backward, weights;
    uint64_t total;
} held;

static void take(void *context, const orr_llm_moment *m)
{
    held *h = context;
    h->now += m->task == ORR_LLM_FORWARD;
    h->most = h->now > h->most ? h->now : h->most;
    h->forward += m->task == ORR_LLM_FORWARD;
    h->backward += m->task == ORR_LLM_BACKWARD;
    h->weights += m->task == ORR_LLM_WEIGHTS;
    const bool is_cut = h->total == 3;
    h->now -= m->task == (is_cut ? ORR_LLM_WEIGHTS : ORR_LLM_BACKWARD);
}

static held schedule(orr_pipeline pipeline, uint32_t rank)
{
    const orr_model m = model_named("llama-3-8b");
    const orr_llm_options opt = {.pp = 4, .batch = 16, .seq = 512, .pipeline = pipeline};
    held h = {.total = pipeline == ORR_PIPELINE_ZERO_BUBBLE ? 3 : 2};
    CHECK_OK(orr_llm_moments(&m, &opt, rank, take, &h, &err), &err);
    CHECK_EQ_U(h.now, 0);
    return h;
}

TEST(test_llm__a_stage_holds_as_many_micro_batches_as_its_schedule_says)
{
    for (uint32_t rank = 0; rank < 4; rank++) {
        CHECK_EQ_U(schedule(ORR_PIPELINE_GPIPE, rank).most, 16);
        CHECK_EQ_U(schedule(ORR_PIPELINE_1F1B, rank).most, 4 - rank);
        CHECK_EQ_U(schedule(ORR_PIPELINE_ZERO_BUBBLE, rank).most, 4);
        /* chunks: (pp - rank - 1) * 2 + (chunks - 1) * pp ahead, and the one at hand */
        CHECK_EQ_U(schedule(ORR_PIPELINE_INTERLEAVED, rank).most, (3 - rank) * 2 + 4 + 1);
        CHECK_EQ_U(schedule(ORR_PIPELINE_INTERLEAVED, rank).forward, 32);
        CHECK_EQ_U(schedule(ORR_PIPELINE_ZERO_BUBBLE, rank).weights, 16);
        CHECK_EQ_U(schedule(ORR_PIPELINE_1F1B, rank).backward, 16);
    }
}

/* ---- memory ---- */

/* GPT-2 small, one sequence of 1,024 tokens, bf16; by hand: a layer keeps its input (twice: of the
 * norm, and of the second norm), both norms' results, queries, keys and values, the attention's
 * result, and the FFN's two inner results of 4 x 768 each. */
TEST(test_llm__memory_by_hand)
{
    const orr_model m = model_named("gpt2");
    const orr_llm_options opt = {.seq = 1024};
    const uint64_t tokens = 1024, h = 768;
    const uint64_t parameters = 124439808 + (50304 - 50257) * h; /* 50,257 rows, padded */
    const uint64_t layer = tokens * (2 * h + 2 * h + 3 * h + h + 2 * 4 * h) * 2;
    const uint64_t head = tokens * (2 * h + 50304) * 2;
    orr_llm_memory got;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &got, &err), &err);
    CHECK_EQ_U(got.parameters, parameters);
    CHECK_EQ_U(got.weights, parameters * UINT64_C(2));
    CHECK_EQ_U(got.grads, parameters * UINT64_C(2));
    CHECK_EQ_U(got.optimizer, parameters * UINT64_C(12));
    CHECK_EQ_U(got.activations, 12 * layer + head);
    CHECK_EQ_U(got.micro_batches_kept, 1);
    CHECK(got.fits);
}

static void count_task(void *context, const orr_llm_moment *moment)
{
    uint32_t *forward = context;
    CHECK_EQ(moment->task, ORR_LLM_FORWARD);
    CHECK_EQ_U(moment->activations, 0);
    *forward += 1;
}

/* Without gradients a layer holds its input and, at the activation of the FFN, gate, up and their product: 64 MiB,
 * 2 x 224 and 224.  The last stage: the inputs of its norm and of the head, logits in 2 bytes and in 4. */
TEST(test_llm__a_forward_pass_alone_keeps_nothing)
{
    const orr_model m = model_named("llama-3-8b");
    const uint64_t tokens = 8192, h = 4096, mib = 1 << 20;
    for (uint32_t batches = 1; batches <= 16; batches *= 4)
        for (orr_pipeline pipeline = ORR_PIPELINE_1F1B; pipeline <= ORR_PIPELINE_GPIPE;
             pipeline++) {
            const orr_llm_options opt = {
                .pp = 4, .batch = batches, .pipeline = pipeline, .forward_only = true};
            orr_llm_memory got;
            uint32_t forward = 0;
            CHECK_OK(orr_llm_memory_of(&m, &opt, 1, &got, &err), &err);
            CHECK_EQ_U(got.weights, got.parameters * UINT64_C(2));
            CHECK(!got.grads && !got.optimizer && !got.activations && !got.micro_batches_kept);
            CHECK_EQ_U(got.working, (64 + 3 * 224) * mib);
            CHECK_EQ_U(got.peak, got.weights + got.working);
            CHECK_OK(orr_llm_memory_of(&m, &opt, 3, &got, &err), &err);
            CHECK_EQ_U(got.working, tokens * (2 * h * 2 + UINT64_C(128256) * (2 + 4)));
            CHECK_OK(orr_llm_moments(&m, &opt, 1, count_task, &forward, &err), &err);
            CHECK_EQ(forward, batches);
        }
}

TEST(test_llm__sharing_out_and_recomputing_save_memory)
{
    const orr_model m = model_named("llama-3-8b");
    orr_llm_options opt = {.dp = 8, .seq = 8192};
    orr_llm_memory plain, zero, thin;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &plain, &err), &err);
    CHECK(!plain.fits); /* 16 bytes for each of 8 billion */
    opt.zero = 1;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &zero, &err), &err);
    CHECK_EQ_U(zero.optimizer, plain.optimizer / 8);
    CHECK_EQ_U(zero.weights, plain.weights);
    opt.recompute = ORR_RECOMPUTE_FULL;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &thin, &err), &err);
    /* the inputs of 32 layers, and the head's */
    CHECK_EQ_U(thin.activations, 8192 * UINT64_C(2) * (32 * 4096 + 2 * 4096 + 128256));
}

/* Korthikanti et al. 2022: s b h (10 + 24 / t + 5 a s / (h t)) bytes a layer, s b h 34 / t with
 * sequence parallelism and attention computed again; the first of p stages holds
 * 1 + (p - 1) / (p v) times its layers; 18 bytes for each of 12 h^2 parameters, and biases. */
TEST(test_llm__memory_is_that_of_the_formulas_of_megatron)
{
    const orr_model m = model_named("gpt3-175b");
    const uint64_t s = 2048, h = 12288, layers = 96 + 96 * 7 / 24;
    orr_llm_options opt = {.tp = 8,
                           .pp = 8,
                           .chunks = 3,
                           .pipeline = ORR_PIPELINE_INTERLEAVED,
                           .batch = 64,
                           .seq = s,
                           .dtype = ORR_DTYPE_FP16,
                           .no_sequence_parallel = true,
                           .software = orr_software_find("megatron-2022")};
    orr_llm_memory got;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &got, &err), &err);
    CHECK_EQ_U(got.activations, layers * s * h * (10 + 24 / 8 + 5 * 96 * s / (h * 8)));
    CHECK_EQ_U((got.weights + got.grads + got.optimizer) / 18, got.parameters);
    opt.no_sequence_parallel = false;
    opt.recompute = ORR_RECOMPUTE_SELECTIVE;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &got, &err), &err);
    CHECK_EQ_U(got.activations, layers * s * h * 34 / 8);
}

/* 61 layers, one that predicts a further token and the loss over 16 stages: four each, and the last
 * stage one, that one and the loss. */
TEST(test_llm__further_tokens_are_predicted_by_the_last_stage)
{
    const orr_model m = model_named("deepseek-v3");
    orr_llm_options opt = {.pp = 16, .dp = 8, .ep = 8, .seq = 1024, .batch = 128, .has_mtp = true};
    orr_llm_memory with, without;
    const orr_llm_options alone = {.dp = 8, .ep = 8, .seq = 1024, .batch = 16, .has_mtp = true};
    orr_set *s = make(&m, &alone);
    CHECK_EQ_U(count_nodes(s, "mtp0.join"), 3 * 2); /* forward, both gradients */
    CHECK_EQ_U(count_nodes(s, "mtp0.head.logits"), 3 * 2);
    CHECK_EQ_U(count_nodes(s, "mtp0.moe.up"), 3 * 2);
    orr_set_close(s);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 15, &with, &err), &err);
    opt.has_mtp = false;
    opt.first_layers = opt.last_layers = 0;
    opt.last_layers = 1;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 15, &without, &err), &err);
    llm_job g;
    uint64_t dense, expert;
    opt.has_mtp = true;
    CHECK_OK(llm_init(&g, &m, &opt, &err), &err);
    llm_mtp_parameters(&g, &dense, &expert);
    /* and a copy of the embedding */
    CHECK_EQ_U(with.parameters - without.parameters, dense + expert + UINT64_C(129280) * 7168);
}

/* ---- MTP layers in a stage before the loss ---- */

static orr_stage_layout *layout_of(const char *text)
{
    orr_stage_layout *l;
    CHECK_OK(orr_stage_layout_parse(text, &l, &err), &err);
    return l;
}

static uint64_t sum_messages(const orr_set *s, orr_node_type type)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < orr_set_class_count(s); k++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, k));
        for (uint32_t i = 0; i < c->count; i++)
            if (c->type[i] == (uint8_t)type)
                sum += (uint64_t)c->comm_size[i] * orr_set_class_ranks(s, k);
    }
    return sum;
}

static uint64_t sum_all_operations(const orr_set *s)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < orr_set_class_count(s); k++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, k));
        for (uint32_t i = 0; i < c->count; i++)
            if (c->type[i] == ORR_NODE_COMP)
                sum += (uint64_t)c->num_ops[i] * orr_set_class_ranks(s, k);
    }
    return sum;
}

typedef struct mtp_sums {
    uint64_t operations, grads, tied;
} mtp_sums;

/* widths: of the messages between the stages, in hidden states. */
static mtp_sums check_mtp(const orr_model *m,
                          orr_llm_options opt,
                          const char *text,
                          uint64_t widths)
{
    opt.layout = layout_of(text);
    opt.has_mtp = true;
    orr_set *s = make(m, &opt);
    const uint64_t sent = widths * m->hidden * 2 * opt.seq * opt.batch;
    CHECK_EQ_U(sum_messages(s, ORR_NODE_COMM_SEND), 2 * sent); /* and gradients */
    CHECK_EQ_U(sum_messages(s, ORR_NODE_COMM_RECV), 2 * sent);
    const mtp_sums sums = {
        .operations = sum_all_operations(s),
        .grads = sum_collectives(s, "grads.reduce", ORR_COLL_ALL_REDUCE),
        .tied = sum_collectives(s, "tied.reduce", ORR_COLL_ALL_REDUCE),
    };
    orr_set_close(s);
    orr_stage_layout_close(opt.layout);
    return sums;
}

/* Llama 3 8B with so many MTP layers. */
static orr_model model_with_mtp(uint64_t layers)
{
    orr_model m = model_named("llama-3-8b");
    m.mtp_layers = layers;
    return m;
}

/* Behind them the hidden states of the last layer and of each of them travel. */
TEST(test_llm__mtp_layers_may_be_in_a_stage_before_the_loss)
{
    orr_llm_options opt = {.dp = 2, .pp = 4, .batch = 8, .seq = 1024};
    orr_model m = model_with_mtp(1);
    const uint64_t embedding = UINT64_C(128256) * 4096;
    orr_model_counts n;
    orr_model_count(&m, &n);
    const uint64_t all = n.total + orr_model_mtp_count(&m);
    const mtp_sums last = check_mtp(&m, opt, "Et*10|t*11|t*11|mL", 3);
    CHECK_EQ_U(last.grads, (all + embedding) * 2);
    CHECK_EQ_U(last.tied, 2 * embedding * 2);
    static const char *const before[] = {"Et*16|t*16|m|L", "Et*10|t*11|t*11m|L"};
    for (size_t i = 0; i < 2; i++) {
        const mtp_sums own = check_mtp(&m, opt, before[i], 4);
        CHECK_EQ_U(own.operations, last.operations);
        CHECK_EQ_U(own.grads, last.grads);
        CHECK_EQ_U(own.tied, last.tied);
    }
    /* with the model's embedding: no copy */
    const mtp_sums first = check_mtp(&m, opt, "Et*32m|||L", 6);
    CHECK_EQ_U(first.grads, all * 2);
    CHECK_EQ_U(first.tied, 0);
    /* a tied head is a copy of the embedding, too; the stage of both needs one only */
    m.is_tied = true;
    const mtp_sums tied = check_mtp(&m, opt, "Et*16|t*16|m|L", 4);
    CHECK_EQ_U(tied.grads, (all + embedding) * 2); /* one is no head any more, two are copies */
    CHECK_EQ_U(tied.tied, 3 * embedding * 2);
    const mtp_sums tied_last = check_mtp(&m, opt, "Et*16|t*16||mL", 3);
    CHECK_EQ_U(tied_last.grads, all * 2);
    CHECK_EQ_U(tied_last.tied, 2 * embedding * 2);
    /* three of them, and a stage that passes everything on */
    m = model_with_mtp(3);
    check_mtp(&m, opt, "Et*32|mmm||L", 1 + 4 + 4);
    /* two chunks a rank: stage 6 is on rank 2 */
    m = model_with_mtp(1);
    opt.pipeline = ORR_PIPELINE_INTERLEAVED;
    opt.chunks = 2;
    opt.batch = 16;
    const mtp_sums chunks = check_mtp(&m, opt, "Et*5|(t*5|)*4,t*7|m|L", 8);
    CHECK_EQ_U(chunks.tied, 2 * embedding * 2);
    /* a v of eight stages: 7 and 0 are on rank 0, 6 on rank 1, and 3 and 4 on rank 3 */
    opt.pipeline = ORR_PIPELINE_ZB_V;
    const mtp_sums v = check_mtp(&m, opt, "Et*5|(t*5|)*4,t*7|m|L", 7);
    CHECK_EQ_U(v.operations, chunks.operations);
    CHECK_EQ_U(v.grads, chunks.grads);
    CHECK_EQ_U(v.tied, 2 * embedding * 2);
}

TEST(test_llm__an_mtp_stage_does_all_of_its_operations)
{
    orr_llm_options opt = {.dp = 8, .ep = 8, .pp = 4, .seq = 1024, .has_mtp = true};
    opt.layout = layout_of("Et*20|t*41|m|L");
    check_operations("deepseek-v3", opt);
    orr_stage_layout_close(opt.layout);
    opt.layout = NULL;
    check_operations("deepseek-v3", opt);
}

/* The layer of an MTP module is gathered as others are: zero 3 before each use, zero 1 once a step
 * (megatron-core gathers ahead).  Embedding, its copy in the module's stage, and head are kept until
 * the backward pass. */
TEST(test_llm__weights_of_mtp_layers_are_gathered)
{
    const orr_model m = model_with_mtp(1);
    const uint64_t h = 4096, layer = 2 * h * h + 2 * h * 1024 + 3 * h * 14336 + 2 * h;
    orr_llm_options opt = {.pp = 4, .dp = 2, .batch = 16, .seq = 1024};
    for (uint32_t zero = 1; zero <= 3; zero += 2) {
        const uint64_t times = zero == 3 ? 8 : 1, vocab = 128256 * h;
        opt.zero = zero;
        opt.software = orr_software_find("megatron-core");
        for (unsigned has_mtp = 0; has_mtp < 2; has_mtp++) {
            opt.has_mtp = has_mtp;
            opt.layout = layout_of(has_mtp ? "Et*31|t|m|L" : "Et*31|t||L");
            orr_set *s = make(&m, &opt);
            const uint64_t layers = (32 + has_mtp) * times * layer;
            CHECK_EQ_U(sum_collectives(s, "weights.gather", ORR_COLL_ALL_GATHER),
                       (layers + times * ((2 + has_mtp) * vocab + h)) * 2 / 2);
            CHECK_EQ_U(sum_collectives(s, "weights.gather.again", ORR_COLL_ALL_GATHER),
                       zero == 3 ? layers * 2 / 2 : 0);
            orr_set_close(s);
            orr_stage_layout_close(opt.layout);
        }
    }
}

/* A layer of Llama 3 8B: q and o, k and v of 1,024, three matrices of an FFN of 14,336, two norms.
 * Recomputed layers keep their input; beside it an MTP layer keeps what both norms and the product
 * read (1 + 1 + 2), and the loss what norm and head read, and the logits, for it and the model. */
TEST(test_llm__memory_of_an_mtp_stage_by_hand)
{
    const orr_model m = model_with_mtp(1);
    orr_llm_options opt = {.pp = 4,
                           .dp = 2,
                           .zero = 1,
                           .batch = 16,
                           .seq = 1024,
                           .has_mtp = true,
                           .recompute = ORR_RECOMPUTE_FULL};
    const uint64_t h = 4096, ffn = 14336, vocab = 128256, row = UINT64_C(1024) * h * 2;
    const uint64_t layer = 2 * h * h + 2 * h * 1024 + 3 * h * ffn + 2 * h;
    const uint64_t parameters = layer + 2 * h * h + 3 * h + vocab * h;
    orr_llm_memory plain, mtp, loss;
    opt.layout = layout_of("Et*31|t|m|L");
    CHECK_OK(orr_llm_memory_of(&m, &opt, 1, &plain, &err), &err);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 2, &mtp, &err), &err);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 3, &loss, &err), &err);
    orr_stage_layout_close(opt.layout);
    CHECK_EQ_U(plain.parameters, layer);
    CHECK_EQ_U(mtp.parameters, parameters);
    CHECK_EQ_U(mtp.weights, parameters * 2);
    CHECK_EQ_U(mtp.optimizer, parameters * 12 / 2);
    CHECK_EQ_U(plain.activations, 3 * row);
    CHECK_EQ_U(mtp.activations, 2 * (1 + 4) * row);
    CHECK_EQ_U(mtp.working, plain.working);
    CHECK_EQ_U(loss.parameters, vocab * h + h);
    CHECK_EQ_U(loss.activations, 2 * (2 * row + 1024 * vocab * 2));
    /* in one stage the norm of the MTP layer reads what that of the head does */
    opt.layout = layout_of("Et*30|t|t|mL");
    CHECK_OK(orr_llm_memory_of(&m, &opt, 3, &loss, &err), &err);
    orr_stage_layout_close(opt.layout);
    CHECK_EQ_U(loss.parameters, parameters + vocab * h + h);
    CHECK_EQ_U(loss.activations, (1 + 3) * row + 2 * (2 * row + 1024 * vocab * 2));
}

/* 61 layers over 16 stages, 2 in the first and 3 in the last: 56 over 14. */
TEST(test_llm__stages_at_the_ends_have_as_many_layers_as_one_says)
{
    const orr_model m = model_named("deepseek-v3");
    const orr_llm_options opt = {
        .pp = 16, .seq = 1024, .batch = 16, .first_layers = 2, .last_layers = 3};
    llm_job g;
    uint64_t first, end, at = 0;
    CHECK_OK(llm_init(&g, &m, &opt, &err), &err);
    for (uint32_t i = 0; i < 16; i++) {
        llm_stage_layers(&g, i, &first, &end);
        CHECK_EQ_U(first, at);
        CHECK_EQ_U(end - first, i == 0 ? 2 : i == 15 ? 3 : 4);
        at = end;
    }
    CHECK_EQ_U(at, 61);
}

static void check_layers(const orr_model *m, const orr_llm_options *opt, const uint64_t *layers)
{
    llm_job g;
    uint64_t first, end, at = 0;
    CHECK_OK(llm_init(&g, m, opt, &err), &err);
    for (uint32_t i = 0; i < g.virtual_stages; i++) {
        llm_stage_layers(&g, i, &first, &end);
        CHECK_EQ_U(first, at);
        CHECK_EQ_U(end - first, layers[i]);
        at = end;
    }
    CHECK_EQ_U(at, m->layers);
}

/* 12 layers: on 14 stages the ends have none; given ends leave the rest to the others. */
TEST(test_llm__ends_may_have_no_layer)
{
    const orr_model m = model_named("gpt2");
    const struct {
        orr_llm_options o;
        uint64_t layers[14];
    } rows[] = {
        {{.pp = 14, .batch = 14}, {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
        {{.pp = 13, .batch = 13}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}},
        {{.pp = 5, .bare_first = true, .bare_last = true}, {0, 4, 4, 4, 0}},
        {{.pp = 4, .bare_first = true}, {0, 4, 4, 4}},
        {{.pp = 4, .bare_last = true}, {4, 4, 4, 0}},
        {{.pp = 4, .first_layers = 1}, {1, 4, 4, 3}},
        {{.pp = 2, .bare_first = true}, {0, 12}},
        {{.pp = 2, .last_layers = 5}, {7, 5}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_layers(&m, &rows[i].o, rows[i].layers);
}

/* 126 layers on 16 x 8 places (Llama 3 405B): one each, none at the ends. */
TEST(test_llm__llama_3_405b_has_a_layer_fewer_at_each_end)
{
    const orr_model m = model_named("llama-3.1-405b");
    const orr_llm_options opt = {.tp = 8,
                                 .pp = 16,
                                 .chunks = 8,
                                 .pipeline = ORR_PIPELINE_INTERLEAVED,
                                 .batch = 16,
                                 .seq = 8192};
    uint64_t layers[128];
    for (size_t i = 0; i < 128; i++)
        layers[i] = i > 0 && i < 127;
    check_layers(&m, &opt, layers);
}

/* 61 layers, MTP and loss on 20 stages: 63 in all, so three have 4, the others 3, the last 1. */
TEST(test_llm__mtp_leaves_no_stage_empty)
{
    const orr_model m = model_named("deepseek-v3");
    orr_llm_options opt = {.pp = 20, .seq = 1024, .batch = 20, .has_mtp = true};
    uint64_t layers[20];
    for (size_t i = 0; i < 20; i++)
        layers[i] = i < 3 ? 4 : i < 19 ? 3 : 1;
    check_layers(&m, &opt, layers);
    opt.pp = 63;
    opt.batch = 63;
    CHECK_EQ(orr_llm_complete(&m, &opt, &err), ORR_EUSAGE);
}

/* Parentheses first, then single letters. */
TEST(test_llm__a_layout_says_what_stages_have)
{
    const orr_model m = model_named("deepseek-v3");
    orr_llm_options opt = {.pp = 16, .seq = 1024, .batch = 16, .has_mtp = true};
    uint64_t layers[32] = {0};
    orr_llm_memory first, second;
    CHECK_OK(orr_stage_layout_parse("Et*4|(t*4|)*14, t m L", &opt.layout, &err), &err);
    for (size_t i = 0; i < 16; i++)
        layers[i] = i < 15 ? 4 : 1;
    check_layers(&m, &opt, layers);
    orr_stage_layout_close(opt.layout);
    /* two chunks a rank, the number of which follows */
    opt.pipeline = ORR_PIPELINE_INTERLEAVED;
    CHECK_OK(orr_stage_layout_parse("E|(tt|)*29|tttmL", &opt.layout, &err), &err);
    for (size_t i = 0; i < 32; i++)
        layers[i] = i == 31 ? 3 : i == 0 || i == 30 ? 0 : 2;
    check_layers(&m, &opt, layers);
    /* rank 14: stages 14 and 30, 2 layers and none; rank 13: 2 and 2 */
    CHECK_OK(orr_llm_memory_of(&m, &opt, 14, &first, &err), &err);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 13, &second, &err), &err);
    CHECK_EQ_U(2 * first.parameters, second.parameters);
    orr_stage_layout_close(opt.layout);
}

/* A stage of the embedding: 50,304 x 768 and 1,024 positions; it keeps nothing of a pass. */
TEST(test_llm__an_embedding_alone_keeps_nothing)
{
    const orr_model m = model_named("gpt2");
    const orr_llm_options opt = {.pp = 4, .bare_first = true, .batch = 4, .steps = 1};
    orr_llm_memory got;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &got, &err), &err);
    CHECK_EQ_U(got.parameters, (50304 + 1024) * 768);
    CHECK_EQ_U(got.activations, 0);
    orr_set *s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, "embedding.lookup"), 4);
    CHECK_EQ_U(count_nodes(s, ".send"), 4);
    CHECK_EQ_U(count_nodes(s, ".receive.grad"), 4);
    CHECK_EQ_U(count_nodes(s, "layer"), 0);
    orr_set_close(s);
}

static orr_llm_memory memory_of(const orr_model *m, orr_llm_options opt, uint32_t rank)
{
    orr_llm_memory got;
    CHECK_OK(orr_llm_memory_of(m, &opt, rank, &got, &err), &err);
    return got;
}

/* DeepSeek-V3, section 3.3: of a token and a layer stay the residual before each half (7,168), what
 * the norms of MLA get (1,536 and 576) and what the router gave and chose from (256 each) in 16
 * bits, what attention gave (128 heads of 128) in 12, and in 8 with 4 bytes for 128 the eight copies
 * for experts, and gate and up of eight experts and the shared one (2,048 each). */
TEST(test_llm__deepseek_v3_keeps_what_its_report_says)
{
    const orr_model m = model_named("deepseek-v3");
    orr_llm_options opt = {.pp = 16,
                           .dp = 64,
                           .ep = 64,
                           .batch = 64,
                           .seq = 4096,
                           .dtype = ORR_DTYPE_FP8,
                           .fp8_scaling = ORR_FP8_BLOCK,
                           .fp8_kept = ORR_KEPT_DEEPSEEK,
                           .sends_once = true,
                           .recompute = ORR_RECOMPUTE_PARTS,
                           .recompute_parts =
                               ORR_PART_NORM | ORR_PART_LATENT | ORR_PART_ACTIVATION};
    const uint64_t wide = 2 * 7168 + 1536 + 576 + 256 + 256;
    const uint64_t narrow = 8 * 7168 + (8 + 1) * 2 * 2048;
    const uint64_t token = wide * 2 + 16384 * 3 / 2 + narrow + narrow / 32;
    CHECK_EQ_U(memory_of(&m, opt, 1).activations, 4 * 4096 * token);
    opt.fp8_kept = ORR_KEPT_ACTIVATIONS; /* attention's in 16 */
    CHECK_EQ_U(memory_of(&m, opt, 1).activations, 4 * 4096 * (token + 16384 / 2));
    opt.fp8_kept = ORR_KEPT_NONE;
    CHECK_EQ_U(memory_of(&m, opt, 1).activations, 4 * 4096 * (wide + 16384 + narrow) * 2);
}

/* Both norms and the FFN's activation feed products alone: a byte less for 2 x 4,096 + 14,336
 * numbers of a token.  Attention keeps its result; delayed scaling also casts it, once. */
TEST(test_llm__inputs_of_fp8_products_are_kept_in_8_bits)
{
    const orr_model m = model_named("llama-3-8b");
    orr_llm_options opt = {.seq = 1024, .dtype = ORR_DTYPE_FP8, .fp8_kept = ORR_KEPT_NONE};
    const uint64_t before = memory_of(&m, opt, 0).activations, saved = 2 * 4096 + 14336;
    opt.fp8_kept = ORR_KEPT_SOFTWARE; /* Transformer Engine */
    CHECK_EQ_U(before - memory_of(&m, opt, 0).activations, 32 * 1024 * saved);
    opt.fp8_scaling = ORR_FP8_DELAYED;
    CHECK_EQ_U(before - memory_of(&m, opt, 0).activations, 32 * 1024 * (saved - 4096));
    opt.fp8_scaling = ORR_FP8_CURRENT;
    opt.dtype = ORR_DTYPE_MXFP8; /* a scale for 32 */
    CHECK_EQ_U(before - memory_of(&m, opt, 0).activations, 32 * 1024 * (saved - saved / 32));
    opt.dtype = ORR_DTYPE_NVFP4; /* half a byte and a scale for 16 */
    CHECK_EQ_U(before - memory_of(&m, opt, 0).activations,
               32 * 1024 * (2 * saved - saved * 9 / 16));
    opt.software = orr_software_find("torch-compile");
    opt.dtype = ORR_DTYPE_FP8;
    CHECK_EQ_U(before, memory_of(&m, opt, 0).activations);
}

/* 4,096 x (4,096 + 2 x 1,024 + 4,096 + 3 x 14,336) weights of products in each of 32 layers. */
TEST(test_llm__weights_have_copies_in_8_bits_or_are_in_8_bits)
{
    const orr_model m = model_named("llama-3-8b");
    const uint64_t layer = 4096 * (4096 + 2 * 1024 + 4096 + 3 * 14336), all = 32 * layer;
    orr_llm_options opt = {
        .dp = 4, .seq = 1024, .dtype = ORR_DTYPE_FP8, .fp8_weights = ORR_WEIGHTS_WIDE};
    const orr_llm_memory wide = memory_of(&m, opt, 0);
    CHECK_EQ_U(wide.weights, 2 * wide.parameters);
    opt.fp8_weights = ORR_WEIGHTS_SOFTWARE; /* by rows and by columns */
    CHECK_EQ_U(memory_of(&m, opt, 0).weights, wide.weights + 2 * all);
    opt.fp8_weights = ORR_WEIGHTS_NARROW;
    CHECK_EQ_U(memory_of(&m, opt, 0).weights, wide.weights);
    opt.zero = 1; /* two norms beside the products */
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.weights.gather"), (layer + 2 * 2 * 4096) / 4);
    orr_set_close(s);
    opt.dtype = ORR_DTYPE_MXFP8;
    CHECK_EQ_U(memory_of(&m, opt, 0).weights, wide.weights + 2 * all / 32);
    s = make(&m, &opt); /* in 16 bits */
    CHECK_EQ(size_of(s, 0, "mb0.layer0.weights.gather"), 2 * (layer + 2 * 4096) / 4);
    orr_set_close(s);
    opt.zero = 3;
    s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.weights.gather"), (layer + layer / 32 + 2 * 2 * 4096) / 4);
    orr_set_close(s);
}

/* 4 bytes of weights and two moments of 2 instead of 4. */
TEST(test_llm__moments_may_be_in_16_bits)
{
    const orr_model m = model_named("gpt2");
    orr_llm_options opt = {.seq = 1024};
    const orr_llm_memory wide = memory_of(&m, opt, 0);
    opt.moments_bf16 = true;
    CHECK_EQ_U(wide.optimizer, 12 * wide.parameters);
    CHECK_EQ_U(memory_of(&m, opt, 0).optimizer, 8 * wide.parameters);
}

static uint64_t count_type(const orr_set *s, uint32_t class_index, uint32_t type, uint64_t *bytes)
{
    const orr_columns *c = orr_trace_columns(orr_set_trace(s, class_index));
    uint64_t n = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->type[i] == type) {
            n++;
            *bytes += (uint64_t)c->tensor_size[i];
        }
    return n;
}

/* Four of twelve layers, two micro-batches: each goes to the host and comes back.  Away is what they
 * keep, but for room of two while it is copied. */
TEST(test_llm__activations_go_to_the_host_and_come_back)
{
    const orr_model m = model_named("gpt2");
    orr_llm_options opt = {.seq = 1024, .batch = 2};
    const orr_llm_memory all = memory_of(&m, opt, 0);
    uint64_t out, back;
    opt.recompute = ORR_RECOMPUTE_FULL; /* a layer keeps its input: 1,024 x 768 in 2 bytes */
    const orr_llm_memory inputs = memory_of(&m, opt, 0);
    opt.recompute = ORR_RECOMPUTE_NONE;
    const uint64_t layer = (all.activations - inputs.activations) / 12 + 1024 * 768 * 2;
    opt.offload_layers = 4;
    CHECK_EQ_U(all.activations - memory_of(&m, opt, 0).activations, 4 * layer);
    CHECK_EQ_U(memory_of(&m, opt, 0).working - all.working, 2 * layer);
    orr_set *s = make(&m, &opt);
    CHECK_EQ_U(count_type(s, 0, ORR_NODE_MEM_STORE, &out), 4 * 2);
    CHECK_EQ_U(count_type(s, 0, ORR_NODE_MEM_LOAD, &back), 4 * 2);
    CHECK_EQ_U(out, 4 * 2 * layer);
    CHECK_EQ_U(back, out);
    orr_set_close(s);
    opt.offload_percent = 25;
    CHECK_EQ_U(all.activations - memory_of(&m, opt, 0).activations, 4 * layer / 4);
    /* Two chunks of three layers on two ranks. */
    opt = (orr_llm_options){.pp = 2,
                            .pipeline = ORR_PIPELINE_INTERLEAVED,
                            .seq = 1024,
                            .batch = 4,
                            .offload_layers = 2};
    s = make(&m, &opt);
    for (uint32_t k = 0; k < 2; k++) {
        CHECK_EQ_U(count_type(s, k, ORR_NODE_MEM_STORE, &out), 2 * 2 * 4);
        CHECK_EQ_U(count_type(s, k, ORR_NODE_MEM_LOAD, &back), 2 * 2 * 4);
    }
    orr_set_close(s);
}

/* 8 experts of 256 on 8 ranks of one node: 8 (1 - (7/8)^8) = 5.25 ranks have one of them; on 32
 * ranks of 4 nodes, 4 (1 - (3/4)^8) = 3.6 nodes. */
TEST(test_llm__tokens_may_travel_once)
{
    orr_model m = model_named("deepseek-v3");
    m.expert_groups = m.groups_per_token = 0;
    orr_llm_options opt = {.dp = 32, .ep = 8, .seq = 1024, .sends_once = true};
    const int64_t token = 1024 * 7168 * 2;
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.moe.dispatch") * 1000 / token, 5251);
    orr_set_close(s);
    opt.ep = 32;
    s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.moe.dispatch") * 1000 / token, 3599);
    orr_set_close(s);
}

/* 4 of 8 groups are open to a token: on 8 ranks with a group each, 4 (1 - (3/4)^8) = 3.6 have one
 * of its experts, on 16 places 8 (1 - (7/8)^8) = 5.25.  On 4 places with two groups each, by hand:
 * none, one or two of them are open with chances of 15, 40 and 15 of 70, and one misses all with 1,
 * (3/4)^8 and (1/2)^8, so 4 (1 - 0.2723) = 2.9108. */
TEST(test_llm__groups_limit_where_tokens_go)
{
    const orr_model m = model_named("deepseek-v3");
    const int64_t token = 1024 * 7168 * 2;
    const struct {
        uint32_t ep;
        int64_t thousandths;
    } rows[] = {{8, 3599}, {16, 5251}, {4, 2910}};
    for (size_t i = 0; i < 3; i++) {
        const orr_llm_options opt = {
            .dp = 32, .ep = rows[i].ep, .seq = 1024, .sends_once = true, .node_ranks = 64};
        orr_set *s = make(&m, &opt);
        CHECK_EQ(size_of(s, 0, "mb0.layer3.moe.dispatch") * 1000 / token, rows[i].thousandths);
        orr_set_close(s);
    }
}

/* To experts: a byte a number and 4 for 128 of them; back: two bytes.  Gradients the other way
 * round. */
TEST(test_llm__tokens_may_travel_in_fp8)
{
    const orr_model m = model_named("mixtral-8x7b");
    const orr_llm_options opt = {.dp = 8, .ep = 8, .seq = 1024, .sends_fp8 = true};
    const int64_t numbers = 1024 * 2 * 4096;
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.dispatch"), numbers + numbers / 32);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.combine"), 2 * numbers);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.combine.grad"), numbers + numbers / 32);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.dispatch.grad"), 2 * numbers);
    orr_set_close(s);
}

/* Parts are done again before the backward pass, and what they give is not kept: of a norm, whose
 * result goes into products, hidden numbers a token. */
TEST(test_llm__parts_of_layers_are_recomputed)
{
    const orr_model m = model_named("llama-3-8b");
    orr_llm_options opt = {.seq = 1024};
    orr_llm_memory plain, less;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &plain, &err), &err);
    opt.recompute = ORR_RECOMPUTE_PARTS;
    opt.recompute_parts = ORR_PART_NORM | ORR_PART_ACTIVATION;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &less, &err), &err);
    CHECK_EQ_U(plain.activations - less.activations, UINT64_C(1024) * 32 * (2 * 4096 + 14336) * 2);
    orr_set *s = make(&m, &opt);
    CHECK_EQ_U(count_nodes(s, "ffn.activation.again"), 32);
    CHECK_EQ_U(count_nodes(s, "ffn.up.again"), 0);
    orr_set_close(s);
    uint32_t parts;
    orr_str bad;
    CHECK(orr_layer_parts_find(orr_str_of("norm,mla-up"), &parts, &bad));
    CHECK_EQ_U(parts, ORR_PART_NORM | ORR_PART_LATENT);
    CHECK(!orr_layer_parts_find(orr_str_of("norm,,ffn"), &parts, &bad));
    CHECK_EQ_U(bad.len, 0);
}

/* Two copies of every stage, each for half of the micro-batches: all work is done once, and each
 * copy's gradients are added up over the ranks of both. */
TEST(test_llm__dualpipe_has_two_copies)
{
    const orr_model m = model_named("llama-3.2-1b");
    orr_llm_options opt = {.pp = 4, .dp = 2, .seq = 512, .batch = 16};
    orr_set *plain = make(&m, &opt);
    orr_llm_memory one, end, two;
    CHECK_OK(orr_llm_memory_of(&m, &opt, 1, &one, &err), &err);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 2, &end, &err), &err);
    opt.pipeline = ORR_PIPELINE_DUALPIPE;
    orr_set *both = make(&m, &opt);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 1, &two, &err), &err);
    CHECK_EQ_U(two.parameters, one.parameters + end.parameters);
    for (int pass = FORWARD; pass <= WEIGHT_GRADS; pass++)
        CHECK_EQ_U(sum_operations(both, (what)pass, false),
                   sum_operations(plain, (what)pass, false));
    orr_set_close(plain);
    orr_set_close(both);
    llm_layout l;
    int64_t v[LLM_SLOTS], w[LLM_SLOTS];
    CHECK_OK(orr_llm_complete(&m, &opt, &err), &err);
    llm_layout_init(&l, &opt, false);
    CHECK_EQ_U(l.degree[LLM_AXIS_DATA], 4);
    llm_layout_values(&l, 1, v); /* pipeline rank 0 */
    llm_layout_values(&l, 6, w); /* 3 */
    CHECK_EQ(v[LLM_AXIS_DATA], w[LLM_AXIS_DATA]);
    llm_layout_values(&l, 2, w); /* 1 */
    CHECK(v[LLM_AXIS_DATA] != w[LLM_AXIS_DATA]);
    opt.batch = 18; /* 9 micro-batches */
    CHECK_CODE(orr_llm_training(&m, &opt, &both, &err), ORR_EUSAGE, &err);
}

/* Four ranks of a tensor-parallel group have experts of their own: 64 ranks with 4 of 256 each, and
 * every rank sends what it has of the tokens. */
TEST(test_llm__experts_may_be_whole_under_tensor_parallelism)
{
    const orr_model m = model_named("deepseek-v3");
    orr_llm_options opt = {.tp = 4, .dp = 32, .ep = 64, .expert_tp = 1, .seq = 1024};
    llm_layout l;
    int64_t v[LLM_SLOTS], w[LLM_SLOTS];
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.moe.dispatch"), 1024 / 4 * 8 * 7168 * 2);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.moe.gather"), -1);
    orr_set_close(s);
    CHECK_OK(orr_llm_complete(&m, &opt, &err), &err);
    llm_layout_init(&l, &opt, false);
    CHECK_EQ_U(l.degree[LLM_AXIS_EXPERT_DATA], 2);
    llm_layout_values(&l, 3, v);
    llm_layout_values(&l, 67, w); /* the same experts */
    CHECK_EQ(v[LLM_AXIS_EXPERT_DATA], w[LLM_AXIS_EXPERT_DATA]);
    CHECK(v[LLM_AXIS_EP] != w[LLM_AXIS_EP]);
}

/* A forward and a backward pass beside each other: neither waits for the other, the next pair for
 * both; as many nodes as without. */
TEST(test_llm__overlapped_experts_change_the_order_only)
{
    const orr_model m = model_named("mixtral-8x7b");
    orr_llm_options opt = {.pp = 2, .dp = 8, .ep = 8, .seq = 1024, .batch = 64};
    orr_set *plain = make(&m, &opt);
    opt.overlaps_experts = true;
    orr_set *pairs = make(&m, &opt);
    CHECK_EQ_U(count_nodes(pairs, ""), count_nodes(plain, ""));
    CHECK_EQ_U(sum_collectives(pairs, "moe.dispatch", ORR_COLL_ALL_TO_ALL),
               sum_collectives(plain, "moe.dispatch", ORR_COLL_ALL_TO_ALL));
    orr_set_close(plain);
    orr_set_close(pairs);
    CHECK_CODE(orr_llm_training(
                   &m,
                   &(orr_llm_options){
                       .pipeline = ORR_PIPELINE_GPIPE, .dp = 8, .ep = 8, .overlaps_experts = true},
                   &plain, &err),
               ORR_EUSAGE, &err);
}

/* 32 ranks in four replicas of 8: weights are gathered among 8, gradients scattered among 8 and
 * then added up by four. */
TEST(test_llm__replicas_add_up_what_shards_have)
{
    const orr_model m = model_named("llama-3-8b");
    orr_llm_options opt = {.dp = 32, .zero = 3, .shard = 8, .seq = 1024};
    orr_llm_memory got;
    orr_set *s = make(&m, &opt);
    const uint64_t scattered = sum_collectives(s, "grads.reduce", ORR_COLL_REDUCE_SCATTER);
    const uint64_t added = sum_collectives(s, "grads.replicas", ORR_COLL_ALL_REDUCE);
    CHECK_EQ_U(scattered / 8, added);
    CHECK_EQ(size_of(s, 0, "mb0.layer3.weights.gather"), 218112000 * 2 / 8);
    orr_set_close(s);
    CHECK_OK(orr_llm_memory_of(&m, &opt, 0, &got, &err), &err);
    CHECK_EQ_U(got.optimizer, got.parameters / 8 * 12);
    llm_layout l;
    int64_t v[LLM_SLOTS], w[LLM_SLOTS];
    CHECK_OK(orr_llm_complete(&m, &opt, &err), &err);
    llm_layout_init(&l, &opt, false);
    llm_layout_values(&l, 3, v);
    llm_layout_values(&l, 19, w); /* the same share of another replica */
    CHECK_EQ(v[LLM_AXIS_REPLICA], w[LLM_AXIS_REPLICA]);
    CHECK(v[LLM_AXIS_DATA] != w[LLM_AXIS_DATA]);
}

/* The busiest rank has half as many again. */
TEST(test_llm__busy_experts_take_more_tokens)
{
    const orr_model m = model_named("mixtral-8x7b");
    const orr_llm_options opt = {.dp = 8, .ep = 8, .seq = 1024, .expert_load = 150};
    orr_set *s = make(&m, &opt);
    CHECK_EQ(size_of(s, 0, "mb0.layer0.moe.dispatch"), 1024 * 2 * 4096 * 2 * 3 / 2);
    orr_set_close(s);
}

/* ---- what cannot be ---- */

static void refuse(const char *name, orr_llm_options opt, const char *words)
{
    const orr_model m = model_named(name);
    orr_set *s;
    CHECK_CODE(orr_llm_training(&m, &opt, &s, &err), ORR_EUSAGE, &err);
    CHECK(s == NULL);
    CHECK_SAYS(&err, words);
}

TEST(test_llm__what_does_not_go_together_is_refused)
{
    refuse("gpt2", (orr_llm_options){.pp = 15}, "too few for 15 pipeline stages");
    refuse("gpt2", (orr_llm_options){.tp = 5, .seq = 1000},
           "tp 5 does not divide the heads of gpt2, 12");
    refuse("gpt2", (orr_llm_options){.seq = 2048}, "positions for 1024");
    refuse("gpt2", (orr_llm_options){.dp = 2, .batch = 3}, "not a multiple of dp 2");
    refuse("gpt2", (orr_llm_options){.dp = 2, .ep = 2}, "has no experts");
    refuse("mixtral-8x7b", (orr_llm_options){.dp = 2, .ep = 4}, "ep 4 does not divide dp x cp = 2");
    refuse("mixtral-8x7b", (orr_llm_options){.dp = 3, .ep = 3, .seq = 512},
           "experts of mixtral-8x7b, 8");
    refuse("gpt2", (orr_llm_options){.cp = 3, .seq = 1000}, "do not divide evenly");
    refuse("gpt2", (orr_llm_options){.zero = 4}, "zero 4");
    refuse("gpt2", (orr_llm_options){.pp = 4, .batch = 6, .pipeline = ORR_PIPELINE_INTERLEAVED},
           "a multiple of pp 4 micro-batches, not 6");
    refuse("gpt2", (orr_llm_options){.pp = 2, .chunks = 3}, "the schedule 1f1b has one per rank");
    refuse("gpt2", (orr_llm_options){.dp = 1u << 31}, "more than 4194304 ranks");
    refuse("llama-3-8b", (orr_llm_options){.seq = UINT64_C(1) << 33}, "2^32 tokens");
    refuse("gpt2", (orr_llm_options){.dtype = ORR_DTYPE_COUNT}, "unknown data type");
    refuse("gpt2", (orr_llm_options){.dtype = ORR_DTYPE_FP8, .fp8_scaling = (orr_fp8_scaling)4},
           "unknown way to keep or scale");
    refuse("gpt2", (orr_llm_options){.recompute = (orr_recompute)5},
           "unknown kind of recomputation");
    refuse("gpt2", (orr_llm_options){.cp = 2, .context_form = (orr_context_form)4},
           "unknown form of context parallelism");
}

TEST(test_llm__names_of_types_and_schedules)
{
    orr_dtype d;
    orr_pipeline p;
    CHECK(orr_dtype_find(orr_str_of("fp8"), &d) && d == ORR_DTYPE_FP8);
    CHECK(!orr_dtype_find(orr_str_of("fp7"), &d));
    CHECK(orr_pipeline_find(orr_str_of("zero-bubble"), &p) && p == ORR_PIPELINE_ZERO_BUBBLE);
    CHECK(!orr_pipeline_find(orr_str_of("zigzag"), &p));
    CHECK(strcmp(orr_dtype_name(ORR_DTYPE_BF16), "bf16") == 0);
    CHECK(strcmp(orr_pipeline_name(ORR_PIPELINE_1F1B), "1f1b") == 0);
    CHECK_EQ_U(orr_dtype_bytes(ORR_DTYPE_FP8), 1);
    CHECK_EQ_U(orr_llm_ranks(&(orr_llm_options){.tp = 2, .dp = 3}), 6);
}

/* The first node of each task says what its rank holds; the most of it is the peak of the memory
 * report, and the optimizer runs with what is there always. */
TEST(test_llm__nodes_say_what_their_rank_holds)
{
    const orr_model m = model_named("llama-3-8b");
    const orr_llm_options opt = {.pp = 4, .tp = 2, .batch = 6};
    orr_set *s = make(&m, &opt);
    for (uint32_t stage = 0; stage < 4; stage++) {
        const orr_trace *t = orr_set_trace(s, stage);
        orr_llm_memory want;
        int64_t most = 0, value = 0;
        uint32_t said = 0;
        CHECK_OK(orr_llm_memory_of(&m, &opt, stage, &want, &err), &err);
        for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++) {
            orr_node node;
            orr_attr attr;
            orr_trace_node(t, i, &node);
            if (!orr_node_attr(&node, "held_bytes", &attr))
                continue;
            CHECK(orr_attr_int(&attr, &value) && node.type != ORR_NODE_COMM_RECV);
            most = value > most ? value : most;
            said++;
        }
        CHECK_EQ_U(said, 2 * 6 + 1); /* forward and backward of six micro-batches, the step */
        CHECK_EQ_U(most, want.peak);
        CHECK_EQ_U(value, want.weights + want.grads + want.optimizer);
    }
    orr_set_close(s);
}

/* 6 sequences of 8,192 tokens; FLOPs as orr_model_compute has them. */
TEST(test_llm__metadata_says_how_much_work_it_is)
{
    const orr_model m = model_named("llama-3-8b");
    const orr_llm_options opt = {.batch = 6, .dp = 2, .steps = 3};
    const orr_model_work work = {.tokens = 8192};
    orr_model_flops flops;
    orr_set *s = make(&m, &opt);
    orr_attrs it = orr_trace_attrs(orr_set_trace(s, 0));
    unsigned found = 0;
    CHECK_OK(orr_model_compute(&m, &work, &flops, &err), &err);
    for (orr_attr a; orr_attrs_next(&it, &a);) {
        if (ends_in(a.name, "tokens"))
            found += a.value.u == 6 * 8192 * 3;
        if (ends_in(a.name, "model_flops"))
            found += a.value.d == (double)flops.training * 6 * 3;
        if (ends_in(a.name, "device_bytes"))
            found += a.value.u == 80000000000u;
    }
    CHECK_EQ_U(found, 3);
    orr_set_close(s);
    /* a forward pass alone is a third of it */
    const orr_llm_options forward = {.batch = 6, .dp = 2, .steps = 3, .forward_only = true};
    s = make(&m, &forward);
    it = orr_trace_attrs(orr_set_trace(s, 0));
    for (orr_attr a; orr_attrs_next(&it, &a);)
        if (ends_in(a.name, "model_flops"))
            CHECK(a.value.d == (double)flops.training / 3 * 6 * 3);
    orr_set_close(s);
}

/* Per token of a batch of one sequence of 4,096, DeepSeek-V3 with one MTP layer.  Attention of a
 * layer: 7168 x 1536 and 1536 x 128 x 192 for queries, 7168 x 576 and 512 x 128 x 256 for keys and
 * values, 128 x 128 x 7168 for the output; scores: on average 2048.5 keys, 128 heads x (192 + 128)
 * numbers.  Experts: a router of 256 rows, 9 experts of 3 x 7168 x 2048.  The projection: 2 x 7168
 * to 7168.  The head: 7168 x 129280.  Six FLOPs per number of each, as Megatron-LM counts. */
TEST(test_llm__layers_for_further_tokens_count_as_work)
{
    const orr_model m = model_named("deepseek-v3");
    const double weights = 7168. * 1536 + 1536. * 128 * 192 + 7168. * 576 + 512. * 128 * 256 +
                           128. * 128 * 7168 + 256. * 7168 + 9 * 3 * 7168. * 2048 +
                           2 * 7168. * 7168 + 7168. * 129280;
    const double scores = 2048.5 * 128 * (192 + 128);
    double flops[2] = {0};
    for (int with = 0; with < 2; with++) {
        const orr_llm_options opt = {.seq = 4096, .has_mtp = with};
        orr_set *s = make(&m, &opt);
        orr_attrs it = orr_trace_attrs(orr_set_trace(s, 0));
        for (orr_attr a; orr_attrs_next(&it, &a);)
            if (ends_in(a.name, "model_flops"))
                flops[with] = a.value.d;
        orr_set_close(s);
    }
    CHECK(flops[0] > 0 && flops[1] - flops[0] == 6 * (weights + scores) * 4096);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_llm__every_operation_is_done_once),
        RUN(test_llm__gradients_of_all_parameters_are_reduced_once),
        RUN(test_llm__without_overlap_gradients_are_reduced_at_once),
        RUN(test_llm__experts_are_reduced_among_those_who_have_them),
        RUN(test_llm__tensor_parallel_ranks_gather_and_scatter_tokens),
        RUN(test_llm__without_sequence_parallelism_they_add_up_instead),
        RUN(test_llm__keys_and_values_go_round_or_to_all),
        RUN(test_llm__tokens_travel_to_their_experts),
        RUN(test_llm__zero_3_gathers_weights_before_each_use),
        RUN(test_llm__fsdp_copies_and_reduces_layer_by_layer),
        RUN(test_llm__new_weights_travel_in_pieces_of_a_megabyte_at_least),
        RUN(test_llm__zero_3_keeps_the_gathered_head),
        RUN(test_llm__what_is_computed_again_stands_in_the_trace),
        RUN(test_llm__ranks_find_their_groups_and_neighbours),
        RUN(test_llm__a_stage_holds_as_many_micro_batches_as_its_schedule_says),
        RUN(test_llm__memory_by_hand),
        RUN(test_llm__a_forward_pass_alone_keeps_nothing),
        RUN(test_llm__memory_is_that_of_the_formulas_of_megatron),
        RUN(test_llm__replicas_add_up_what_shards_have),
        RUN(test_llm__busy_experts_take_more_tokens),
        RUN(test_llm__further_tokens_are_predicted_by_the_last_stage),
        RUN(test_llm__layers_for_further_tokens_count_as_work),
        RUN(test_llm__stages_at_the_ends_have_as_many_layers_as_one_says),
        RUN(test_llm__ends_may_have_no_layer),
        RUN(test_llm__llama_3_405b_has_a_layer_fewer_at_each_end),
        RUN(test_llm__mtp_leaves_no_stage_empty),
        RUN(test_llm__mtp_layers_may_be_in_a_stage_before_the_loss),
        RUN(test_llm__an_mtp_stage_does_all_of_its_operations),
        RUN(test_llm__memory_of_an_mtp_stage_by_hand),
        RUN(test_llm__weights_of_mtp_layers_are_gathered),
        RUN(test_llm__a_layout_says_what_stages_have),
        RUN(test_llm__an_embedding_alone_keeps_nothing),
        RUN(test_llm__deepseek_v3_keeps_what_its_report_says),
        RUN(test_llm__inputs_of_fp8_products_are_kept_in_8_bits),
        RUN(test_llm__weights_have_copies_in_8_bits_or_are_in_8_bits),
        RUN(test_llm__moments_may_be_in_16_bits),
        RUN(test_llm__activations_go_to_the_host_and_come_back),
        RUN(test_llm__tokens_may_travel_once),
        RUN(test_llm__groups_limit_where_tokens_go),
        RUN(test_llm__tokens_may_travel_in_fp8),
        RUN(test_llm__parts_of_layers_are_recomputed),
        RUN(test_llm__dualpipe_has_two_copies),
        RUN(test_llm__experts_may_be_whole_under_tensor_parallelism),
        RUN(test_llm__overlapped_experts_change_the_order_only),
        RUN(test_llm__sharing_out_and_recomputing_save_memory),
        RUN(test_llm__what_does_not_go_together_is_refused),
        RUN(test_llm__names_of_types_and_schedules),
        RUN(test_llm__nodes_say_what_their_rank_holds),
        RUN(test_llm__metadata_says_how_much_work_it_is),
    };
    return RUN_ALL(tests);
}
