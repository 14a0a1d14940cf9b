/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_search.c - a search for a plan of a small model: the first bytes say batch, length and devices, the rest is what is
 * held fixed ("tp=2", one a line), or an option of the step ("--no-clipping", "--dispatch once").  When fuzzing, one axis
 * that the fourth byte picks is free besides dp and pp, so that a search has few plans; as a test all are.  What is refused
 * has words.  Legal plans are as many as are listed, those that fit no more; every plan uses all devices.  Simulations
 * belong to fuzz_sim_traces: as a test one search in 64 runs. */
#include "fuzz_trace.h"

#include <orrery/lab/plan.h>

#include <math.h>

enum { HEAD = 4, MOST_FIXED = 8 };

static orr_code set(orr_llm_options *base, char *word, orr_error *err)
{
    char *value = strchr(word, ' ');
    if (value)
        *value++ = 0;
    return orr_llm_option_set(base, word, value, err);
}

static void fix(orr_plan_options *opt, const uint8_t *text, size_t len)
{
    char word[64];
    orr_error err = {0};
    for (size_t i = 0, from = 0, fixed = 0; i <= len && fixed < MOST_FIXED; i++) {
        if (i < len && text[i] != '\n')
            continue;
        const size_t n = i - from < sizeof word - 1 ? i - from : sizeof word - 1;
        memcpy(word, text + from, n);
        word[n] = 0;
        from = i + 1;
        fixed++;
        if (word[0] == '-' ? set(&opt->base, word, &err) : orr_plan_fix(opt, word, &err))
            REQUIRE(err.message[0]);
    }
}

/* What the input says comes later and counts more. */
static void narrow(orr_plan_options *opt, unsigned free)
{
    static const char *const words[] = {"zero=0",        "micro-batch=1",  "chunks=1",
                                        "pipeline=1f1b", "recompute=none", "sequence-parallel=off",
                                        "cp=1",          "ep=1",           "tp=1"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (i != free)
            REQUIRE(orr_plan_fix(opt, words[i], NULL) == ORR_OK);
}

static void run(orr_plan_search *s, uint32_t devices)
{
    orr_error err = {0};
    if (orr_plan_search_run(s, &err)) {
        REQUIRE(err.message[0]);
        return;
    }
    for (size_t i = 0; i < orr_plan_count(s); i++) {
        const orr_plan *p = orr_plan_at(s, i);
        char words[ORR_PLAN_COMMAND_ROOM];
        REQUIRE(isfinite(p->step_s) && p->step_s > 0 && p->bound_s <= p->step_s * 1.0001);
        REQUIRE(p->options.tp * p->options.pp * p->options.dp * p->options.cp == devices);
        REQUIRE(orr_plan_words(p, words, sizeof words) && orr_plan_command(p, words, sizeof words));
    }
}

/* The bounds of all plans and no simulation: the search is stopped before it begins. */
static void bound(orr_plan_search *s)
{
    orr_error err = {0};
    orr_plan_search_stop(s);
    REQUIRE(orr_plan_search_run(s, &err) == ORR_ESTOP && orr_plan_count(s) == 0);
}

/* Hundreds of simulations, each the work of fuzz_sim_traces, are left to tests; bounds, which take longer than the list,
 * are made for one input in eight when fuzzing. */
#ifdef FUZZ_ONE_WAY
#define IS_RUN(data) false
#define IS_BOUND(data, size) (fuzz_pick(data, size, 8) == 0)
#else
#define IS_RUN(data) ((data)[3] >> 2 == 63)
#define IS_BOUND(data, size) true
#endif

/* A large number may cost a million divisions (plan_search.c): of those that a byte picks one in 16 is taken, for the others a small one with divisors. */
static uint64_t pick(uint8_t byte)
{
    static const uint64_t numbers[] = {
        0, 1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 10007, 999999937, UINT32_MAX, UINT64_MAX, 1ull << 40};
    static const uint64_t small[] = {30, 24, 48, 12};
    const unsigned at = byte & 15;
#ifdef FUZZ_ONE_WAY /* the largest are left to tests */
    if (at > 11)
        return byte >> 4 == 15 ? 1u << (at + 4) : small[at - 12];
#endif
    return at < 12 || byte >> 4 == 15 ? numbers[at] : small[at - 12];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const orr_model *small;
    static orr_model model;
    static const uint32_t devices[] = {1, 2, 3, 4};
    orr_plan_search *s = NULL;
    orr_plan_counts n;
    orr_error err = {0};
    if (size < HEAD || size > 400)
        return 0;
    if (!small) {
        small = orr_model_find("gpt2");
        REQUIRE(small);
        model = *small;
        model.layers = 2;
    }
    orr_plan_options opt = {.size = sizeof opt,
                            .model = &model,
                            .machine = data[3] & 1 ? "dgx-a100" : "dgx-h100",
                            .devices = devices[data[2] % 4],
                            .batch = pick(data[0]),
                            .seq = pick(data[1]),
                            .goal = (orr_plan_goal)(data[3] >> 1 & 1),
                            .top = 1,
                            .threads = 1};
#ifdef FUZZ_ONE_WAY
    narrow(&opt, (data[3] >> 2) % 9);
#else
    (void)narrow;
#endif
    fix(&opt, data + HEAD, size - HEAD);
    if (orr_plan_search_create(&opt, &s, &err)) {
        REQUIRE(!s && err.message[0] && err.code != ORR_EBUG);
        return 0;
    }
    orr_plan_search_counts(s, &n);
    REQUIRE(n.legal && n.fitting <= n.legal);
    if (IS_RUN(data))
        run(s, opt.devices);
    else if (IS_BOUND(data, size))
        bound(s);
    orr_plan_search_destroy(s);
    return 0;
}
