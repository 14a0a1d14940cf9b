/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_training.c - any way to train a small model: bytes say how the work is cut, what is kept and in which order passes
 * run; the text behind them is a layout of stages.  A way that is refused has words.  Of one that is taken the traces match
 * rank by rank, memory adds up and is free at the end, and another layout of the same stages has the same operations. */
#include "fuzz_trace.h"

#include <orrery/lab/llm.h>

#include <string.h>

enum { HEAD = 24, LONGEST = 96, MODELS = 4, WORKSPACE = 64 << 20 /* of cuBLAS */ };

/* The optimizer's shares are rounded up, and a stage without parameters has an operation; a layer has over 10,000. */
enum { ROUNDED = 64 };

static orr_model model_of(unsigned kind, unsigned layers)
{
    orr_model m = {.name = "small",
                   .layers = layers,
                   .hidden = 16,
                   .vocab = 64,
                   .max_positions = 64,
                   .heads = 4,
                   .kv_heads = kind & 1 ? 2 : 4,
                   .head_dim = 4,
                   .block_norms = 2,
                   .ffn = 32,
                   .is_gated = kind & 1};
    if (kind == 2) {
        m.is_tied = true;
        m.position = ORR_MODEL_LEARNED;
        m.position_rows = 64;
        m.norm = ORR_MODEL_LAYER_NORM;
        m.has_qkv_bias = m.has_ffn_bias = true;
    }
    if (kind == 3) {
        m.experts = 4;
        m.experts_per_token = 2;
        m.expert_ffn = 8;
        m.dense_first = layers > 2;
        m.mtp_layers = layers % 2;
        m.shared_experts = 1;
        m.shared_ffn = 8;
    }
    return m;
}

static uint64_t number(const uint8_t *p)
{
    static const uint64_t odd[] = {3, 5, 7, 16, 100, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    return *p < 240 ? *p % 5 : odd[*p % (sizeof odd / sizeof *odd)];
}

static void set_numbers(orr_llm_options *o, const uint8_t *p)
{
    o->recompute_layers = p[13] < 192 ? 0 : number(p + 13);
    o->offload_layers = p[14] < 128 ? 0 : number(p + 14);
    o->offload_percent = p[15] < 192 ? 0 : (uint32_t)number(p + 15) * 25;
    o->first_layers = p[16] < 224 ? 0 : number(p + 16);
    o->last_layers = p[17] < 224 ? 0 : number(p + 17);
    o->bucket_bytes = p[18] < 192 ? 0 : 1 + number(p + 18) * 1000 % 100000;
    o->prefetch = p[19] & 3;
    o->shard = p[19] >> 6;
    o->micro_batch = p[20] & 3;
    o->batch = p[20] >> 2 & 15;
    o->seq = 8u << (p[20] >> 6);
}

static orr_llm_options options_of(const uint8_t *p)
{
    orr_llm_options o = {.tp = p[0] % 3,
                         .cp = p[0] >> 2 & 1 ? 2 : 0,
                         .pp = 1 + p[1] % 4,
                         .dp = p[1] >> 2 & 3,
                         .ep = p[1] >> 4 & 3,
                         .expert_tp = p[1] >> 6 & 1,
                         .chunks = p[2] & 3,
                         .pipeline = (orr_pipeline)(p[2] >> 2 & 7),
                         .steps = p[2] >> 5 & 1 ? 2 : 0,
                         .dtype = (orr_dtype)(p[3] & 7),
                         .fp8_scaling = (orr_fp8_scaling)(p[3] >> 3 & 3),
                         .fp8_kept = (orr_fp8_kept)(p[3] >> 5),
                         .fp8_weights = (orr_fp8_weights)(p[4] & 3),
                         .recompute = (orr_recompute)(p[4] >> 2 & 7),
                         .context_form = (orr_context_form)(p[4] >> 5 & 3),
                         .zero = p[5] & 3,
                         .recompute_parts = p[6] & 127,
                         .node_ranks = p[7] & 3,
                         .expert_load = p[7] >> 2 & 1 ? 130 : 0,
                         .software = orr_software_at(p[8] % 16)};
    o.overlaps_experts = p[9] & 1;
    o.sends_once = p[9] & 2;
    o.sends_weights = p[9] & 4;
    o.attends_fp8 = p[9] & 8;
    o.moments_bf16 = p[9] & 16;
    o.sends_fp8 = p[9] & 32;
    o.has_mtp = p[9] & 64;
    o.grads_fp32 = p[9] & 128;
    o.bare_first = (p[10] & 3) == 3;
    o.bare_last = (p[10] & 12) == 12;
    o.no_sequence_parallel = p[10] & 16;
    o.overlaps_tensor = p[10] & 32;
    o.full_attention = p[10] & 64;
    o.has_dropout = p[10] & 128;
    o.sync_every_micro_batch = p[11] & 1;
    o.no_overlap = p[11] & 2;
    o.no_clipping = p[11] & 4;
    o.lists_optimizer = p[11] & 8;
    o.no_master = p[11] & 16;
    o.forward_only = (p[11] & 0xe0) == 0xe0;
    if (p[12] >= 64) /* most ways are those that people use */
        o.fp8_kept = ORR_KEPT_SOFTWARE, o.fp8_weights = ORR_WEIGHTS_SOFTWARE;
    set_numbers(&o, p);
    if (p[12] >= 16) { /* the same for what goes together */
        o.fp8_scaling = o.dtype == ORR_DTYPE_FP8 ? o.fp8_scaling : ORR_FP8_CURRENT;
        o.attends_fp8 &=
            o.dtype != ORR_DTYPE_BF16 && o.dtype != ORR_DTYPE_FP16 && o.dtype != ORR_DTYPE_FP32;
        o.recompute_layers = o.recompute == ORR_RECOMPUTE_FULL ? o.recompute_layers : 0;
    }
    return o;
}

typedef struct sums {
    uint64_t held, tasks;
} sums;

static void add_moment(void *context, const orr_llm_moment *moment)
{
    sums *s = context;
    s->held = moment->activations;
    s->tasks++;
}

static void check_memory(const orr_model *m, const orr_llm_options *o)
{
    orr_llm_memory all[ORR_LLM_ZEROS];
    uint64_t peak = 0;
    orr_error err = {0};
    for (uint32_t rank = 0; rank < o->pp; rank++) {
        orr_llm_memory memory;
        sums s = {0};
        REQUIRE(orr_llm_memory_of(m, o, rank, &memory, &err) == ORR_OK);
        const uint64_t always = memory.weights + memory.optimizer;
        const uint64_t sum = always + 2 * memory.grads + memory.activations + memory.working;
        REQUIRE(memory.peak >= always && memory.peak <= sum + WORKSPACE);
        REQUIRE(memory.fits == (memory.peak <= o->device_bytes));
        peak = memory.peak > peak ? memory.peak : peak;
        REQUIRE(orr_llm_moments(m, o, rank, add_moment, &s, &err) == ORR_OK);
        REQUIRE(s.tasks && (o->forward_only || !s.held));
    }
    REQUIRE(orr_llm_memory_most(m, o, all, &err) == ORR_OK && all[o->zero].peak == peak);
}

/* Operations of all ranks. */
static uint64_t check_traces(const orr_set *s, uint32_t ranks)
{
    static const orr_check_options one_thread = {.size = sizeof one_thread, .threads = 1};
    orr_check_report *r = NULL;
    orr_error err = {0};
    uint64_t operations = 0;
    REQUIRE(orr_set_rank_count(s) == ranks);
    REQUIRE(orr_check_set(s, &one_thread, &r, &err) == ORR_OK);
    if (r->errors + r->warnings)
        fprintf(stderr, "%s\n", r->findings[0].text);
    REQUIRE(r->errors + r->warnings == 0);
    orr_check_report_destroy(r);
    for (uint32_t k = 0; k < orr_set_class_count(s); k++) {
        const orr_columns *c = orr_trace_columns(orr_set_trace(s, k));
        REQUIRE(c->count && c->is_topological && c->data_missing == 0);
        for (uint32_t i = 0; i < c->count; i++)
            operations += c->type[i] == ORR_NODE_COMP
                              ? (uint64_t)c->num_ops[i] * orr_set_class_ranks(s, k)
                              : 0;
    }
    return operations;
}

/* 0: refused. */
static uint64_t train(const orr_model *m, orr_llm_options *o)
{
    orr_error err = {0};
    orr_set *set = NULL;
    const orr_code complete = orr_llm_complete(m, o, &err);
    REQUIRE(complete != ORR_EBUG && (!complete || err.message[0]));
    if (complete || orr_llm_ranks(o) > 64)
        return 0;
    const orr_code code = orr_llm_training(m, o, &set, &err);
    REQUIRE(code != ORR_EBUG);
    if (code) {
        REQUIRE(!set && err.message[0]);
        return 0;
    }
    check_memory(m, o);
    const uint64_t operations = check_traces(set, orr_llm_ranks(o));
    orr_set_close(set);
    return operations;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[LONGEST];
    orr_stage_layout *layout = NULL;
    orr_error err = {0};
    if (size < HEAD)
        return 0;
    orr_model m = model_of(data[21] % MODELS, 1 + data[22] % 7u);
    orr_llm_options o = options_of(data), same;
    const size_t len = size - HEAD < LONGEST - 1 ? size - HEAD : LONGEST - 1;
    memcpy(text, data + HEAD, len);
    text[len] = '\0';
    const orr_code code = len ? orr_stage_layout_parse(text, &layout, &err) : ORR_OK;
    REQUIRE(code != ORR_EBUG && (!code || err.message[0]));
    o.layout = layout;
    same = o;
    const uint64_t operations = code ? 0 : train(&m, &o);
    if (operations && layout && !o.recompute_layers) {
        same.layout = NULL;
        const uint64_t without = train(&m, &same);
        const uint64_t more = without > operations ? without - operations : operations - without;
        REQUIRE(!without || more <= ROUNDED * (uint64_t)orr_llm_ranks(&o) * o.steps);
    }
    orr_stage_layout_close(layout);
    return 0;
}
