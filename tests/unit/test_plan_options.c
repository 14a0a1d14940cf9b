/* SPDX-License-Identifier: Apache-2.0 */
/* The search for plans with options that it does not decide, drawn at random: no simulated time is
 * below its bound, the memory is that of the fullest rank, the pruned search finds the best of all,
 * and the command of a plan makes its traces.  ORR_PLAN_CASES: so many cases, from ORR_PLAN_SEED. */
#include "check.h"

#include <orrery/lab/plan.h>

#include <stdlib.h>
#include <string.h>

enum { CASES = 36, MOST_PLANS = 60, MOST_FIXED = 6, TEXT_ROOM = 4096 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = state ^ state >> 31;
    x *= 0x9e3779b97f4a7c15u;
    return (x >> 33) % below;
}

static bool one_in(uint64_t n)
{
    return draw(n) == 0;
}

/* ---- what is searched ---- */

typedef struct drawn {
    orr_model model;
    const char *machine;
    orr_plan_options o;
    char words[TEXT_ROOM]; /* all of it, for messages */
} drawn;

static void say(drawn *d, const char *format, ...)
{
    const size_t used = strlen(d->words);
    va_list args;
    va_start(args, format);
    vsnprintf(d->words + used, sizeof d->words - used, format, args);
    va_end(args);
}

static void draw_model(drawn *d)
{
    static const char *const names[] = {"gpt2",        "llama-3-8b",       "deepseek-v3",
                                        "deepseek-v3", "deepseek-v2-lite", "mixtral-8x7b"};
    orr_error err;
    const char *name = names[draw(6)];
    CHECK_OK(orr_model_load(name, &d->model, &err), &err);
    const orr_model_sizes sizes = {.layers = 4 + draw(5)};
    CHECK_OK(orr_model_resize(&d->model, &sizes, &err), &err);
    if (d->model.experts > 16) {
        d->model.experts = 16;
        d->model.experts_per_token =
            d->model.experts_per_token > 4 ? 4 : d->model.experts_per_token;
        d->model.expert_groups = d->model.groups_per_token = 0;
    }
    say(d, "%s of %d layers", name, (int)d->model.layers);
}

static void set(drawn *d, const char *name, const char *text)
{
    orr_error err;
    CHECK_OK(orr_llm_option_set(&d->o.base, name, text, &err), &err);
    say(d, " --%s %s", name, text ? text : "");
}

/* A word of "one|two|three". */
static void set_word(drawn *d, const orr_llm_option *n)
{
    char word[40];
    const char *at = n->words;
    size_t count = 1;
    for (const char *p = n->words; *p; p++)
        count += *p == '|';
    for (uint64_t i = draw(count); i; i--)
        at = strchr(at, '|') + 1;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at, "|"), at);
    set(d, n->name, word);
}

static bool is_narrow(orr_dtype t)
{
    return t == ORR_DTYPE_FP8 || t == ORR_DTYPE_MXFP8 || t == ORR_DTYPE_NVFP4;
}

/* Options that the model or the data type rules out are not drawn: there would be nothing left. */
static bool is_possible(const drawn *d, const char *name)
{
    const orr_llm_options *b = &d->o.base;
    if (strcmp(name, "software") == 0)
        return false;
    if (strcmp(name, "mtp") == 0)
        return d->model.mtp_layers;
    if (strcmp(name, "fp8-scaling") == 0)
        return b->dtype == ORR_DTYPE_FP8;
    if (strncmp(name, "fp8-", 4) == 0 && strcmp(name, "fp8-dispatch") != 0)
        return is_narrow(b->dtype);
    if (strcmp(name, "moments-bf16") == 0)
        return !b->no_master && b->dtype != ORR_DTYPE_FP32;
    if (strcmp(name, "no-master") == 0)
        return !b->moments_bf16 && b->fp8_weights != ORR_WEIGHTS_NARROW;
    if (strcmp(name, "offload-percent") == 0)
        return b->offload_layers;
    if (strcmp(name, "shard") == 0)
        return !d->model.experts || one_in(4);
    if (strcmp(name, "expert-load") == 0 || strcmp(name, "expert-tp") == 0)
        return d->model.experts;
    return true;
}

static void set_number(drawn *d, const orr_llm_option *n)
{
    static const struct {
        const char *name;
        uint64_t least, count, times;
    } all[] = {{"node-ranks", 1, 2, 4},        {"expert-load", 100, 80, 1},
               {"expert-tp", 1, 1, 1},         {"shard", 1, 2, 2},
               {"recompute-layers", 1, 4, 1},  {"offload-layers", 1, 2, 1},
               {"offload-percent", 30, 70, 1}, {"prefetch", 1, 3, 1}};
    char text[24];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, n->name) == 0) {
            snprintf(text, sizeof text, "%llu",
                     (unsigned long long)((all[i].least + draw(all[i].count)) * all[i].times));
            set(d, n->name, text);
            return;
        }
    check_fail(__FILE__, __LINE__, "no numbers to draw for %s", n->name);
}

static void draw_parts(drawn *d)
{
    static const char *const some[] = {"norm", "activation", "norm,attention", "ffn,norm",
                                       "attention"};
    static const char *const of_experts[] = {"experts", "norm,activation", "experts,norm"};
    set(d, "recompute-parts", d->model.experts && one_in(2) ? of_experts[draw(3)] : some[draw(5)]);
}

static void draw_options(drawn *d)
{
    static const char *const buckets[] = {"1MB", "10MB", "200MB"};
    const orr_llm_option *n;
    const uint64_t often = 2 + draw(8);
    if (one_in(2))
        set(d, "dtype", one_in(3) ? "bf16" : one_in(4) ? "fp32" : "fp8");
    for (size_t i = 1; (n = orr_llm_option_at(i)); i++) {
        if (!one_in(often) || !is_possible(d, n->name))
            continue;
        if (n->kind == ORR_LLM_FLAG)
            set(d, n->name, NULL);
        else if (n->kind == ORR_LLM_WORD)
            set_word(d, n);
        else if (n->kind == ORR_LLM_BYTES)
            set(d, n->name, buckets[draw(3)]);
        else if (n->kind == ORR_LLM_LIST)
            draw_parts(d);
        else
            set_number(d, n);
    }
    /* Not every software knows what it is asked for; the default does. */
    if (one_in(4))
        set(d, "software", one_in(2) ? "fsdp2-eager" : "megatron-core-2024");
}

static bool fix(drawn *d, const char *text)
{
    orr_error err;
    say(d, " %s", text);
    return orr_plan_fix(&d->o, text, &err) == ORR_OK;
}

/* One axis after the other, until few plans are left. */
static orr_plan_search *narrowed(drawn *d)
{
    static const char *const all[] = {"cp=1",
                                      "tp=1",
                                      "tp=2",
                                      "tp=4",
                                      "pp=1",
                                      "pp=2",
                                      "pp=4",
                                      "micro-batch=1",
                                      "micro-batch=2",
                                      "zero=0",
                                      "zero=1",
                                      "zero=2",
                                      "zero=3",
                                      "recompute=none",
                                      "recompute=full",
                                      "recompute=selective",
                                      "recompute=operators",
                                      "pipeline=1f1b",
                                      "pipeline=interleaved",
                                      "pipeline=zero-bubble",
                                      "pipeline=zb-v",
                                      "pipeline=gpipe",
                                      "ep=1",
                                      "ep=2",
                                      "ep=4",
                                      "ep=8",
                                      "cp=2"};
    orr_error err;
    orr_plan_counts n;
    for (int i = 0; i < 12; i++) {
        orr_plan_search *s;
        const orr_plan_options before = d->o;
        const size_t used = strlen(d->words);
        if (i && !fix(d, all[draw(sizeof all / sizeof *all)]))
            continue;
        if (orr_plan_search_create(&d->o, &s, &err)) {
            if (i == 0) {
                print_message("%s: %s\n", d->words, err.message);
                return NULL; /* nothing is legal at all */
            }
            d->o = before; /* nothing is left */
            d->words[used] = 0;
            continue;
        }
        orr_plan_search_counts(s, &n);
        if (n.fitting <= MOST_PLANS)
            return s;
        orr_plan_search_destroy(s);
    }
    return NULL;
}

/* ---- what is claimed ---- */

static void check_bound(const drawn *d, const orr_plan *p)
{
    char words[300];
    if (p->bound_s <= p->step_s)
        return;
    orr_plan_words(p, words, sizeof words);
    fail_msg("%s, %s: %.9g s is below the bound %.9g s (%.2f %%)", d->words, words, p->step_s,
             p->bound_s, 100 * (p->bound_s / p->step_s - 1));
}

static void check_memory(const drawn *d, const orr_plan *p)
{
    char words[300];
    orr_error err;
    uint64_t peak = 0;
    for (uint32_t rank = 0; rank < p->options.pp; rank++) {
        orr_llm_memory own;
        CHECK_OK(orr_llm_memory_of(&d->model, &p->options, rank, &own, &err), &err);
        peak = own.peak > peak ? own.peak : peak;
    }
    orr_plan_words(p, words, sizeof words);
    if (p->memory.peak != peak)
        fail_msg("%s, %s: %llu bytes, but the fullest rank has %llu", d->words, words,
                 (unsigned long long)p->memory.peak, (unsigned long long)peak);
}

/* What the search decides, by the names of stage. */
static bool set_searched(orr_llm_options *o, const char *name, const char *value)
{
    static const char *const recompute[] = {"none", "selective", "full", "operators"};
    const struct {
        const char *name;
        uint32_t *at;
    } small[] = {{"tp", &o->tp}, {"pp", &o->pp},     {"dp", &o->dp},        {"cp", &o->cp},
                 {"ep", &o->ep}, {"zero", &o->zero}, {"chunks", &o->chunks}};
    const struct {
        const char *name;
        uint64_t *at;
    } large[] = {{"batch", &o->batch}, {"seq", &o->seq}, {"micro-batch", &o->micro_batch}};
    for (size_t i = 0; i < 7; i++)
        if (strcmp(name, small[i].name) == 0)
            return (*small[i].at = (uint32_t)strtoul(value, NULL, 10)) != UINT32_MAX;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(name, large[i].name) == 0)
            return (*large[i].at = strtoull(value, NULL, 10)) != UINT64_MAX;
    if (strcmp(name, "pipeline") == 0)
        return orr_pipeline_find(orr_str_of(value), &o->pipeline);
    if (strcmp(name, "recompute") != 0)
        return false;
    while (strcmp(recompute[o->recompute], value) != 0)
        o->recompute++;
    return true;
}

/* As a command line is read. */
static void read_command(const char *command, orr_llm_options *o)
{
    char text[ORR_PLAN_COMMAND_ROOM], *rest = text;
    orr_error err;
    snprintf(text, sizeof text, "%s", command);
    for (char *word = strtok_r(rest, " ", &rest); word;) {
        char *value = strtok_r(NULL, " ", &rest);
        const bool has_value = value && strncmp(value, "--", 2) != 0;
        if (strcmp(word, "--no-sequence-parallel") == 0)
            o->no_sequence_parallel = true;
        else if (!has_value || !set_searched(o, word + 2, value))
            CHECK_OK(orr_llm_option_set(o, word, has_value ? value : NULL, &err), &err);
        word = has_value ? strtok_r(NULL, " ", &rest) : value;
    }
}

static void save(const orr_model *m, const orr_llm_options *o, const char *path)
{
    orr_error err;
    orr_set *s;
    CHECK_OK(orr_llm_training(m, o, &s, &err), &err);
    CHECK_OK(orr_set_save(s, path, NULL, &err), &err);
    orr_set_close(s);
}

static void check_same_files(const char *a, const char *b, const char *words)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    int i, k;
    assert_non_null(x);
    assert_non_null(y);
    do {
        i = getc(x);
        k = getc(y);
    } while (i == k && i != EOF);
    fclose(x);
    fclose(y);
    if (i != k)
        fail_msg("other traces than those of the plan: %s", words);
}

static void check_command(const drawn *d, const orr_plan *p)
{
    char command[ORR_PLAN_COMMAND_ROOM];
    orr_llm_options o = {.device_bytes = p->options.device_bytes}; /* that of --machine */
    const size_t length = orr_plan_command(p, command, sizeof command);
    CHECK(length < sizeof command && length == strlen(command));
    read_command(command, &o);
    save(&d->model, &p->options, "plan.orr");
    save(&d->model, &o, "stage.orr");
    check_same_files("plan.orr", "stage.orr", command);
}

static void check_pruned(drawn *d, const orr_plan_search *whole)
{
    orr_plan_search *s;
    orr_error err;
    d->o.no_prune = false;
    CHECK_OK(orr_plan_search_create(&d->o, &s, &err), &err);
    CHECK_OK(orr_plan_search_run(s, &err), &err);
    if (orr_plan_at(s, 0)->step_s != orr_plan_at(whole, 0)->step_s)
        fail_msg("%s: %.9g s is not the best, %.9g s", d->words, orr_plan_at(s, 0)->step_s,
                 orr_plan_at(whole, 0)->step_s);
    orr_plan_search_destroy(s);
}

/* 1: plans were simulated. */
static int check_case(uint64_t seed)
{
    static const char *const machines[] = {"dgx-h100:1", "dgx-h100:2", "dgx-a100:2",
                                           "h800-deepseek:2"};
    orr_error err = {0};
    drawn d = {.words = ""};
    state = seed * 0x9e3779b97f4a7c15u + 1;
    say(&d, "case %llu: ", (unsigned long long)seed);
    draw_model(&d);
    d.machine = machines[draw(4)];
    d.o = (orr_plan_options){.size = sizeof d.o,
                             .model = &d.model,
                             .machine = d.machine,
                             .batch = 16u << draw(2),
                             .seq = 512u << draw(3),
                             .top = 1,
                             .no_prune = true,
                             .threads = 1};
    if (d.model.position == ORR_MODEL_LEARNED)
        d.o.seq = 1024;
    say(&d, " on %s, batch %d x %d,", d.machine, (int)d.o.batch, (int)d.o.seq);
    draw_options(&d);
    orr_plan_search *s = narrowed(&d);
    if (!s)
        return 0;
    const orr_code code = orr_plan_search_run(s, &err);
    if (code == ORR_EINPUT) { /* no kernels of this type on that chip */
        orr_plan_search_destroy(s);
        return 0;
    }
    if (code)
        fail_msg("%s: %s", d.words, err.message);
    double sum = 0;
    for (size_t i = 0; i < orr_plan_count(s); i++) {
        check_bound(&d, orr_plan_at(s, i));
        check_memory(&d, orr_plan_at(s, i));
        sum += orr_plan_at(s, i)->bound_s / orr_plan_at(s, i)->step_s;
    }
    if (getenv("ORR_PLAN_CASES"))
        print_message("%s: %d plans, bounds %.3f\n", d.words, (int)orr_plan_count(s),
                      sum / (double)orr_plan_count(s));
    for (size_t i = 0; i < orr_plan_count(s); i += 1 + orr_plan_count(s) / 3)
        check_command(&d, orr_plan_at(s, i));
    check_pruned(&d, s);
    orr_plan_search_destroy(s);
    return 1;
}

static void test_plan_options__drawn(void **unused)
{
    (void)unused;
    const char *seed = getenv("ORR_PLAN_SEED"), *cases = getenv("ORR_PLAN_CASES");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    const int count = cases ? (int)strtoul(cases, NULL, 10) : CASES;
    int searched = 0;
    for (int i = 0; i < count; i++)
        searched += check_case(first + (uint64_t)i);
    CHECK(cases || searched > CASES / 2);
}

/* Each option by its name, and back; defaults are not printed. */
static void test_plan_options__names(void **unused)
{
    (void)unused;
    static const struct {
        const char *name, *text;
    } all[] = {{"dtype", "mxfp8"},
               {"fp8-attention", ""},
               {"fp8-scaling", "delayed-tp"},
               {"fp8-kept", "none"},
               {"fp8-weights", "only"},
               {"fp8-dispatch", ""},
               {"dispatch", "hybridep"},
               {"node-ranks", "4"},
               {"expert-load", "130"},
               {"expert-tp", "1"},
               {"ep-overlap", ""},
               {"shard", "8"},
               {"mtp", ""},
               {"grads-fp32", ""},
               {"tp-overlap", ""},
               {"attention", "full"},
               {"context", "blocks"},
               {"recompute-parts", "norm,mla-up,shared"},
               {"recompute-layers", "7"},
               {"offload-layers", "3"},
               {"offload-percent", "40"},
               {"bucket", "200MB"},
               {"prefetch", "2"},
               {"no-overlap", ""},
               {"sync-every-micro-batch", ""},
               {"no-clipping", ""},
               {"dropout", ""},
               {"foreach", ""},
               {"moments-bf16", ""},
               {"no-master", ""},
               {"software", "fsdp2-eager"}};
    const orr_llm_options defaults = {.tp = 8,
                                      .expert_tp = 8,
                                      .node_ranks = 8,
                                      .expert_load = 100,
                                      .offload_percent = 100,
                                      .bucket_bytes = 40000000,
                                      .prefetch = 1};
    char text[ORR_LLM_OPTION_ROOM];
    orr_error err;
    size_t count = 0;
    for (; orr_llm_option_at(count); count++) {
        orr_llm_options o = defaults;
        CHECK(count < sizeof all / sizeof *all);
        CHECK_TEXT(orr_llm_option_at(count)->name, all[count].name);
        CHECK(!orr_llm_option_text(&o, all[count].name, text, sizeof text));
        CHECK_OK(orr_llm_option_set(&o, all[count].name, all[count].text, &err), &err);
        CHECK(orr_llm_option_text(&o, all[count].name, text, sizeof text));
        CHECK_TEXT(text, all[count].text);
    }
    CHECK_EQ(count, sizeof all / sizeof *all);
    orr_llm_options o = {0};
    CHECK_OK(orr_llm_option_set(&o, "--fp8-scaling", "block", &err), &err);
    CHECK_OK(orr_llm_option_set(&o, "moments_bf16", NULL, &err), &err);
    CHECK(o.fp8_scaling == ORR_FP8_BLOCK && o.moments_bf16);
    CHECK_OK(orr_llm_option_set(&o, "bucket", "1234567B", &err), &err);
    CHECK(orr_llm_option_text(&o, "bucket", text, sizeof text));
    CHECK_TEXT(text, "1234567B");
    CHECK_CODE(orr_llm_option_set(&o, "fp8_kept", "some", &err), ORR_EUSAGE, &err);
    CHECK_TEXT(err.message, "fp8_kept 'some': there are none, inputs, activations and deepseek");
    CHECK_CODE(orr_llm_option_set(&o, "--prefetch", "0", &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_llm_option_set(&o, "--prefetch", "99999999999999999999", &err), ORR_EUSAGE,
               &err);
    CHECK_CODE(orr_llm_option_set(&o, "layout", "E|L", &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_llm_option_set(&o, "dtype", NULL, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_llm_option_set(&o, "recompute-parts", "norm,some", &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_llm_option_set(&o, "software", "x", &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_llm_option_set(&o, "bucket", "x", &err), ORR_EUSAGE, &err);
}

static void refuse(orr_llm_options base, const char *fixed, const char *words)
{
    orr_error err;
    orr_plan_search *s;
    orr_model m;
    CHECK_OK(orr_model_load("gpt2", &m, &err), &err);
    orr_plan_options o = {.size = sizeof o,
                          .model = &m,
                          .machine = "dgx-h100:1",
                          .batch = 8,
                          .seq = 1024,
                          .base = base};
    if (fixed)
        CHECK_OK(orr_plan_fix(&o, fixed, &err), &err);
    CHECK_CODE(orr_plan_search_create(&o, &s, &err), ORR_EUSAGE, &err);
    if (!strstr(err.message, words))
        fail_msg("'%s' is not in '%s'", words, err.message);
}

/* What belongs to one pipeline, and what goes together as in stage. */
static void test_plan_options__refused(void **unused)
{
    (void)unused;
    refuse((orr_llm_options){.first_layers = 1}, NULL, "belong to one pipeline");
    refuse((orr_llm_options){.bare_last = true}, NULL, "belong to one pipeline");
    refuse((orr_llm_options){.forward_only = true}, NULL, "one whole training step");
    refuse((orr_llm_options){.steps = 2}, NULL, "one whole training step");
    refuse((orr_llm_options){.recompute_layers = 2}, "recompute=none", "fixed to none");
    refuse((orr_llm_options){.recompute_parts = ORR_PART_NORM}, "recompute=full", "fixed to full");
    refuse((orr_llm_options){0}, "recompute=parts", "requires recompute-parts");
    refuse((orr_llm_options){.recompute_parts = ORR_PART_LATENT}, NULL, "no multi-head latent");
    refuse((orr_llm_options){.fp8_scaling = ORR_FP8_BLOCK}, NULL, "requires dtype fp8");
    refuse((orr_llm_options){.attends_fp8 = true}, NULL, "requires dtype fp8, mxfp8 or nvfp4");
    refuse((orr_llm_options){.has_mtp = true}, NULL, "no multi-token prediction layers");
    refuse((orr_llm_options){.fp8_kept = ORR_KEPT_INPUTS}, NULL, "nothing of them can be kept");
    refuse((orr_llm_options){.offload_percent = 50}, NULL, "but of no layer");
    refuse((orr_llm_options){.shard = 3}, NULL, "no plan is legal");
    refuse((orr_llm_options){.offload_layers = 13}, NULL, "offload of 13 layers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plan_options__names),
                                       cmocka_unit_test(test_plan_options__refused),
                                       cmocka_unit_test(test_plan_options__drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
