/* SPDX-License-Identifier: Apache-2.0 */
/* The search for plans: no simulated time is below its bound, and the pruned search finds the best
 * of all. */
#include "check.h"

#include <orrery/lab/plan.h>

#include <string.h>

static orr_plan_search *searched(const char *model_name,
                                 const char *machine,
                                 const char *const *fixed,
                                 uint64_t batch,
                                 uint64_t seq,
                                 bool no_prune,
                                 orr_model *model)
{
    orr_error err;
    orr_plan_search *s;
    orr_plan_options o = {.size = sizeof o,
                          .model = model,
                          .machine = machine,
                          .batch = batch,
                          .seq = seq,
                          .top = 3,
                          .no_prune = no_prune,
                          .threads = no_prune ? 1 : 2};
    assert_int_equal(orr_model_load(model_name, model, &err), ORR_OK);
    for (; *fixed; fixed++)
        assert_int_equal(orr_plan_fix(&o, *fixed, &err), ORR_OK);
    assert_int_equal(orr_plan_search_create(&o, &s, &err), ORR_OK);
    assert_int_equal(orr_plan_search_run(s, &err), ORR_OK);
    return s;
}

static void check_case(
    const char *name, const char *machine, const char *const *fixed, uint64_t batch, uint64_t seq)
{
    orr_model a, b;
    orr_plan_counts all, some;
    orr_plan_search *whole = searched(name, machine, fixed, batch, seq, true, &a);
    orr_plan_search *pruned = searched(name, machine, fixed, batch, seq, false, &b);
    const orr_plan *p;
    size_t i = 0;
    for (; (p = orr_plan_at(whole, i)); i++) {
        if (p->bound_s > p->step_s) {
            char words[200];
            orr_plan_words(p, words, sizeof words);
            fail_msg("%s on %s, %s: %.9g s is below the bound %.9g s", name, machine, words,
                     p->step_s, p->bound_s);
        }
        assert_true(i == 0 || p->step_s >= orr_plan_at(whole, i - 1)->step_s);
    }
    orr_plan_search_counts(whole, &all);
    orr_plan_search_counts(pruned, &some);
    if (all.failed)
        fail_msg("%s on %s: %s", name, machine, orr_plan_search_failure(whole));
    assert_int_equal(all.simulated, all.fitting);
    assert_int_equal(all.fitting, some.fitting);
    assert_true(some.simulated <= all.simulated);
    assert_true(orr_plan_at(pruned, 0)->step_s == orr_plan_at(whole, 0)->step_s);
    orr_plan_search_destroy(whole);
    orr_plan_search_destroy(pruned);
}

/* Cases have few micro-batches and, where another one has all of them, few degrees: what is proven
 * is that each kind of schedule, ZeRO stage and group has a bound that holds. */
static void test_plan_search__bound_holds_dense(void **state)
{
    (void)state;
    check_case("gpt2", "dgx-h100:1", (const char *const[]){"recompute=none", NULL}, 16, 1024);
}

static void test_plan_search__bound_holds_recomputed(void **state)
{
    (void)state;
    check_case("llama-3-8b", "dgx-h100:2",
               (const char *const[]){"zero=1", "micro-batch=2", "cp=1", "tp=4", NULL}, 32, 4096);
}

static void test_plan_search__bound_holds_zero_bubble(void **state)
{
    (void)state;
    check_case(
        "llama-3-8b", "dgx-a100:2",
        (const char *const[]){"pipeline=zero-bubble", "recompute=none", "zero=1", "cp=1", NULL}, 32,
        4096);
}

/* Two chunks a rank, the second on its way back; with and without gradients that travel each
 * time. */
static void test_plan_search__bound_holds_zb_v(void **state)
{
    (void)state;
    check_case("llama-3-8b", "dgx-a100:2",
               (const char *const[]){"pipeline=zb-v", "recompute=none", "zero=1", "cp=1", NULL}, 32,
               4096);
    check_case("gpt2", "dgx-h100:1", (const char *const[]){"pipeline=zb-v", "tp=1", NULL}, 16,
               1024);
}

/* Steps of fp32 products, which are long. */
static void check_fp32(const char *machine, uint64_t layers, uint64_t seq, const char *const *fixed)
{
    const orr_model_sizes sizes = {.layers = layers};
    orr_error err;
    orr_model model;
    orr_plan_search *s;
    orr_plan_options o = {.size = sizeof o,
                          .model = &model,
                          .machine = machine,
                          .batch = 32,
                          .seq = seq,
                          .no_prune = true,
                          .base = {.dtype = ORR_DTYPE_FP32}};
    assert_int_equal(orr_model_load("llama-3-8b", &model, &err), ORR_OK);
    assert_int_equal(orr_model_resize(&model, &sizes, &err), ORR_OK);
    for (; *fixed; fixed++)
        assert_int_equal(orr_plan_fix(&o, *fixed, &err), ORR_OK);
    assert_int_equal(orr_plan_search_create(&o, &s, &err), ORR_OK);
    assert_int_equal(orr_plan_search_run(s, &err), ORR_OK);
    assert_true(orr_plan_count(s) > 0);
    for (size_t i = 0; i < orr_plan_count(s); i++)
        assert_true(orr_plan_at(s, i)->bound_s <= orr_plan_at(s, i)->step_s);
    orr_plan_search_destroy(s);
}

/* Gradients of weights that a backward pass left run in the gaps of the next one, not after it:
 * without sequence parallelism its all-reduces leave gaps. */
static void test_plan_search__bound_holds_in_gaps(void **state)
{
    (void)state;
    check_fp32("h800-deepseek:2", 6, 2048,
               (const char *const[]){"tp=2", "cp=1", "pp=2", "zero=1", "micro-batch=2",
                                     "pipeline=zb-v", "recompute=none", "sequence-parallel=off",
                                     NULL});
}

/* The embedding's gradients come with a backward pass, before those of other weights. */
static void test_plan_search__bound_holds_at_the_end(void **state)
{
    (void)state;
    check_fp32("dgx-h100:1", 7, 512,
               (const char *const[]){"tp=1", "cp=1", "pp=2", "zero=0", "micro-batch=1",
                                     "recompute=full", NULL});
}

/* Six layers on eight stages: the first has the embedding alone, the last the loss. */
static void test_plan_search__bound_holds_bare_ends(void **state)
{
    static const char model[] =
        "format: orrery-model\nversion: 1\nname: six\nlayers: 6\nhidden: 1024\nvocab: 32000\n"
        "is_tied: true\nheads: 16\nkv_heads: 8\nhead_dim: 64\nffn: 4096\n";
    FILE *f = fopen("six.yml", "w");
    (void)state;
    assert_non_null(f);
    assert_true(fputs(model, f) >= 0);
    assert_int_equal(fclose(f), 0);
    check_case("six.yml", "dgx-h100:1", (const char *const[]){"pp=8", "recompute=none", NULL}, 16,
               1024);
}

static void test_plan_search__bound_holds_experts(void **state)
{
    (void)state;
    check_case("deepseek-v2-lite", "h800-deepseek:1",
               (const char *const[]){"recompute=none", "zero=1", "micro-batch=1", "pp=1", NULL}, 8,
               2048);
}

static void test_plan_search__bound_holds_torus(void **state)
{
    (void)state;
    check_case(
        "gpt2", "tpu-v4:2",
        (const char *const[]){"recompute=none", "micro-batch=2", "zero=1", "pipeline=1f1b", NULL},
        16, 1024);
}

/* Weights gathered for every pass, gradients reduced for every micro-batch, within nodes and
 * between them. */
static void test_plan_search__bound_holds_shared(void **state)
{
    (void)state;
    check_case("llama-3-8b", "dgx-h100:2",
               (const char *const[]){"zero=3", "micro-batch=1", "tp=2", "recompute=none", NULL}, 32,
               2048);
    check_case("llama-3-8b", "dgx-a100:2",
               (const char *const[]){"zero=2", "micro-batch=1", "recompute=none", "cp=1",
                                     "sequence-parallel=on", NULL},
               32, 2048);
}

/* Goal memory: the leanest first, whatever its time. */
static void test_plan_search__goal_memory(void **state)
{
    (void)state;
    orr_error err;
    orr_model model;
    orr_plan_search *s;
    assert_int_equal(orr_model_load("gpt2", &model, &err), ORR_OK);
    const orr_plan_options o = {.size = sizeof o,
                                .model = &model,
                                .machine = "dgx-h100:1",
                                .batch = 16,
                                .seq = 1024,
                                .goal = ORR_PLAN_MEMORY,
                                .top = 2};
    assert_int_equal(orr_plan_search_create(&o, &s, &err), ORR_OK);
    assert_int_equal(orr_plan_search_run(s, &err), ORR_OK);
    assert_true(orr_plan_at(s, 0)->memory.peak <= orr_plan_at(s, 1)->memory.peak);
    assert_int_equal(orr_machine_devices(orr_plan_search_machine(s)), 8);
    assert_true(orr_plan_at(s, orr_plan_count(s)) == NULL);
    orr_plan_search_stop(s);
    orr_plan_search_destroy(s);
}

/* Its time is over before it begins. */
static void test_plan_search__no_time(void **state)
{
    (void)state;
    orr_error err;
    orr_model model;
    orr_plan_search *s;
    orr_plan_counts n;
    assert_int_equal(orr_model_load("gpt2", &model, &err), ORR_OK);
    const orr_plan_options o = {.size = sizeof o,
                                .model = &model,
                                .machine = "dgx-h100:1",
                                .batch = 16,
                                .seq = 1024,
                                .max_seconds = 1e-9};
    assert_int_equal(orr_plan_search_create(&o, &s, &err), ORR_OK);
    assert_false(orr_plan_search_is_late(s));
    assert_int_equal(orr_plan_search_run(s, &err), ORR_ESTOP);
    assert_true(orr_plan_search_is_late(s));
    orr_plan_search_counts(s, &n);
    assert_int_equal(orr_plan_count(s), 0);
    assert_true(n.least_s == 0);
    orr_plan_search_destroy(s);
}

/* Stopped after the first wave: what is left is counted, and no plan of it is below the least
 * bound. */
static void stop_it(void *context, const orr_plan_counts *counts)
{
    orr_plan_search **s = context;
    if (counts->simulated)
        orr_plan_search_stop(*s);
}

static void test_plan_search__stopped(void **state)
{
    (void)state;
    static const char *const fixed[] = {"recompute=none", "tp=2", NULL};
    orr_error err;
    orr_model model, same;
    orr_plan_search *s, *whole = searched("gpt2", "dgx-h100:1", fixed, 16, 1024, true, &same);
    orr_plan_counts n;
    const orr_plan *p;
    assert_int_equal(orr_model_load("gpt2", &model, &err), ORR_OK);
    orr_plan_options o = {.size = sizeof o,
                          .model = &model,
                          .machine = "dgx-h100:1",
                          .batch = 16,
                          .seq = 1024,
                          .no_prune = true,
                          .threads = 1,
                          .progress = stop_it,
                          .context = &s};
    for (size_t i = 0; fixed[i]; i++)
        assert_int_equal(orr_plan_fix(&o, fixed[i], &err), ORR_OK);
    assert_int_equal(orr_plan_search_create(&o, &s, &err), ORR_OK);
    assert_int_equal(orr_plan_search_run(s, &err), ORR_ESTOP);
    assert_false(orr_plan_search_is_late(s));
    orr_plan_search_counts(s, &n);
    assert_true(n.simulated > 0 && n.simulated < n.fitting && n.least_s > 0);
    const double best = orr_plan_at(s, 0)->step_s;
    uint64_t better = 0;
    for (size_t i = 0; (p = orr_plan_at(whole, i)); i++)
        better += p->step_s < best;
    assert_true(better <= n.to_do);
    assert_true(orr_plan_at(whole, 0)->step_s >= (n.least_s < best ? n.least_s : best));
    orr_plan_search_destroy(s);
    orr_plan_search_destroy(whole);
}

/* Of the fullest stage, for each ZeRO stage at once: as stage by stage. */
static void test_plan_search__memory_most(void **state)
{
    (void)state;
    orr_error err;
    orr_model m;
    assert_int_equal(orr_model_load("llama-3-8b", &m, &err), ORR_OK);
    for (int i = 0; i < 6; i++) {
        const bool is_pair = i == 4, is_forward = i == 5;
        orr_llm_options o = {.tp = 2,
                             .pp = 4,
                             .dp = 4,
                             .batch = 64,
                             .seq = 4096,
                             .pipeline = (orr_pipeline)(i % 4),
                             .chunks = i == ORR_PIPELINE_INTERLEAVED ? 4 : 1,
                             .overlaps_experts = is_pair,
                             .forward_only = is_forward,
                             .recompute = (orr_recompute)(i % 4)};
        orr_llm_memory most[ORR_LLM_ZEROS], own;
        assert_int_equal(orr_llm_memory_most(&m, &o, most, &err), ORR_OK);
        for (uint32_t zero = 0; zero < ORR_LLM_ZEROS; zero++) {
            uint64_t peak = 0;
            o.zero = zero;
            o.sync_every_micro_batch = zero >= 2; /* as these stages are meant to */
            for (uint32_t rank = 0; rank < 4; rank++) {
                assert_int_equal(orr_llm_memory_of(&m, &o, rank, &own, &err), ORR_OK);
                peak = own.peak > peak ? own.peak : peak;
            }
            assert_int_equal(most[zero].peak, peak);
        }
        /* Who reduces once a step holds the gradients of ZeRO 1. */
        orr_llm_memory whole, once;
        o.sync_every_micro_batch = false;
        o.zero = 1;
        assert_int_equal(orr_llm_memory_of(&m, &o, 0, &whole, &err), ORR_OK);
        o.zero = 2;
        assert_int_equal(orr_llm_memory_of(&m, &o, 0, &once, &err), ORR_OK);
        assert_int_equal(once.grads, whole.grads);
    }
}

static void test_plan_search__words(void **state)
{
    (void)state;
    orr_error err;
    orr_plan_options o = {.size = sizeof o};
    char text[300];
    const orr_plan p = {.options = {.tp = 8,
                                    .cp = 1,
                                    .pp = 4,
                                    .dp = 2,
                                    .ep = 1,
                                    .micro_batch = 1,
                                    .batch = 8,
                                    .seq = 4096,
                                    .zero = 1,
                                    .chunks = 2,
                                    .pipeline = ORR_PIPELINE_INTERLEAVED}};
    orr_plan_words(&p, text, sizeof text);
    assert_string_equal(text, "tp 8 pp 4 dp 2, micro-batch 1, zero 1, interleaved x 2");
    orr_plan_command(&p, text, sizeof text);
    assert_string_equal(
        text, "--tp 8 --pp 4 --dp 2 --batch 8 --seq 4096 --micro-batch 1 --zero 1 --pipeline "
              "interleaved --chunks 2");
    assert_string_equal(orr_plan_axis_name(ORR_PLAN_MICRO_BATCH), "micro-batch");
    assert_int_equal(orr_plan_fix(&o, "sequence-parallel=off", &err), ORR_OK);
    assert_int_equal(o.fixed[ORR_PLAN_SEQUENCE_PARALLEL], 0);
    assert_int_equal(orr_plan_fix(&o, "tp=0", &err), ORR_EUSAGE);
    assert_int_equal(orr_plan_fix(&o, "tp", &err), ORR_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_search__bound_holds_dense),
        cmocka_unit_test(test_plan_search__bound_holds_recomputed),
        cmocka_unit_test(test_plan_search__bound_holds_zero_bubble),
        cmocka_unit_test(test_plan_search__bound_holds_zb_v),
        cmocka_unit_test(test_plan_search__bound_holds_in_gaps),
        cmocka_unit_test(test_plan_search__bound_holds_at_the_end),
        cmocka_unit_test(test_plan_search__bound_holds_bare_ends),
        cmocka_unit_test(test_plan_search__bound_holds_experts),
        cmocka_unit_test(test_plan_search__bound_holds_torus),
        cmocka_unit_test(test_plan_search__bound_holds_shared),
        cmocka_unit_test(test_plan_search__goal_memory),
        cmocka_unit_test(test_plan_search__no_time),
        cmocka_unit_test(test_plan_search__stopped),
        cmocka_unit_test(test_plan_search__memory_most),
        cmocka_unit_test(test_plan_search__words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
