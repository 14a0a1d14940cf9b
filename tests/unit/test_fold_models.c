/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold_models.c - training steps of every model that is built in, with parallelism drawn by
 * number: folded runs on unaware and on fluid give what every rank simulated gives.  Models keep a
 * few layers, so that every rank can be simulated.  FOLD_SEEDS=A-B draws others (FOLD_STEPS=A-B: of
 * several steps in a row), FOLD_WHY=1 says what became of each. */
#include "check.h"
#include "draw.h"
#include "files.h"

#include "run/sim.h"

#include <orrery/lab/llm.h>
#include <orrery/lab/model.h>

#include <stdlib.h>

static orr_error err;

enum { HOST = 8, MOST_RANKS = 64, LAYERS = 4 };

typedef struct drawing {
    uint64_t state;
} drawing;

static orr_llm_options draw_step(drawing *d)
{
    orr_llm_options o = {.tp = 1u << below(d, 4),
                         .cp = below(d, 4) ? 1 : 2,
                         .pp = 1u << below(d, 3),
                         .dp = 1u << below(d, 4),
                         .seq = 1024,
                         .micro_batch = 1,
                         .pipeline = (orr_pipeline)below(d, ORR_PIPELINE_COUNT),
                         .zero = below(d, 4),
                         .no_sequence_parallel = below(d, 3) == 0,
                         .overlaps_tensor = below(d, 4) == 0,
                         .no_overlap = below(d, 3) == 0,
                         .no_clipping = below(d, 3) == 0,
                         .recompute = (orr_recompute)below(d, 4),
                         .steps = 1 + (below(d, 4) == 0),
                         .bucket_bytes = below(d, 2) ? 0 : 100000000};
    while (o.tp * o.cp * o.pp * o.dp > MOST_RANKS)
        o.dp > 1 ? (o.dp /= 2) : (o.tp /= 2);
    if (o.tp * o.cp * o.pp * o.dp < HOST)
        o.dp *= HOST;
    o.ep = 1u << below(d, 4);
    while (o.ep > o.dp * o.cp)
        o.ep /= 2;
    o.batch = o.dp * (1 + below(d, 3)) * (o.pp > 1 ? o.pp : 1);
    return o;
}

static void draw_network(drawing *d, uint32_t ranks)
{
    static const uint32_t hosts[] = {8, 8, 4, 16};
    uint32_t host = hosts[below(d, 4)];
    char text[300];
    while (host > ranks / 2)
        host /= 2;
    snprintf(text, sizeof text,
             "topology: [Switch, Switch]\nnpus_count: [%u, %u]\nbandwidth: [450, 50]\n"
             "latency: [300, 1500]\n",
             host, ranks / host);
    write_file("net.yml", text, strlen(text));
    static const char plain[] =
        "{\"roofline-enabled\":1,\"peak-perf\":600,\"local-mem-bw\":3000,\"scheduling-policy\":\"LIFO\","
        "\"collective-optimization\":\"localBWAware\",\"preferred-dataset-splits\":2,"
        "\"active-chunks-per-dimension\":2,\"endpoint-delay\":10}";
    write_file("sys.json", plain, strlen(plain));
}

typedef struct counts {
    unsigned folded, whole, refused;
    unsigned short_cut; /* of several steps in a row: not all were simulated */
} counts;

static void verify(
    const orr_set *set, const char *network, const char *model, uint32_t steps, counts *c)
{
    const orr_sim_options opt = {.system = "sys.json",
                                 .network = "net.yml",
                                 .fidelity = network,
                                 .set = set,
                                 .steps = steps,
                                 .record = steps % 2 ? ORR_SIM_RECORD_PHASES : 0,
                                 .fold = ORR_SIM_FOLD_VERIFY};
    orr_sim *s;
    CHECK_OK(orr_sim_create(&opt, &s, &err), &err);
    const orr_code code = orr_sim_run(s, &err);
    if (code)
        check_fail(__FILE__, __LINE__, "%s on %s: %s", model, network, err.message);
    const bool is_folded = strstr(orr_sim_fold_why(s), "verified") != NULL;
    if (getenv("FOLD_WHY"))
        fprintf(stderr, "%s, %u ranks, %s: %s\n", model, orr_sim_ranks(s), network,
                orr_sim_fold_why(s));
    unsigned simulated, asked;
    const char *in_a_row = strstr(orr_sim_fold_why(s), "ranks, ");
    c->short_cut += in_a_row &&
                    sscanf(in_a_row, "ranks, %u of %u steps", &simulated, &asked) == 2 &&
                    simulated < asked;
    c->folded += is_folded;
    c->whole += !is_folded;
    orr_sim_destroy(s);
}

static void try_one(const orr_model *like, uint64_t number, counts *c)
{
    drawing d = {.state = number * 0x9e3779b97f4a7c15u + 1};
    orr_model m = *like;
    orr_set *set;
    below(&d, 2);
    const orr_llm_options opt = draw_step(&d);
    const uint32_t layers = LAYERS * opt.pp;
    m.layers = m.layers < layers ? m.layers : layers;
    m.dense_first = m.dense_first > 1 ? 1 : m.dense_first;
    if (orr_llm_training(&m, &opt, &set, &err)) { /* not every model can be cut in every way */
        c->refused++;
        return;
    }
    draw_network(&d, opt.tp * opt.cp * opt.pp * opt.dp);
    verify(set, "unaware", m.name, 0, c);
    verify(set, "fluid", m.name, 0, c);
    orr_set_close(set);
}

TEST(test_fold_models__steps_of_all_models_are_exact)
{
    unsigned long long first = 1, last = 1;
    const char *asked = getenv("FOLD_SEEDS");
    counts c = {0};
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    for (unsigned long long k = first; k <= last; k++)
        for (size_t i = 0; orr_model_at(i); i++)
            try_one(orr_model_at(i), k * 1000 + i, &c);
    fprintf(stderr, "# %u folded, %u with every rank, %u refused\n", c.folded, c.whole, c.refused);
    CHECK(c.folded * 2 > c.whole + c.folded); /* or nothing is tested */
}

/* Networks and algorithms on which the skew of one step is carried on to the next, or is not. */
static void draw_skew(drawing *d, uint32_t ranks)
{
    static const char *const names[] = {"ring", "ring", "direct", "halvingDoubling"};
    const uint32_t known = ranks & (ranks - 1) ? 3 : 4; /* the last one wants a power of 2 */
    uint32_t host = 2u << below(d, 3);
    char text[1000];
    while (ranks % host != 0 || host == ranks)
        host /= 2;
    snprintf(text, sizeof text,
             "topology: [%s, %s]\nnpus_count: [%u, %u]\nbandwidth: [%u, 50]\n"
             "latency: [300, %u]\n",
             below(d, 2) ? "Switch" : "Ring", below(d, 2) ? "Switch" : "Ring", host, ranks / host,
             below(d, 2) ? 450 : 100, below(d, 2) ? 1500 : 50000);
    write_file("net.yml", text, strlen(text));
    const char *a = names[below(d, known)], *b = names[below(d, known)];
    snprintf(text, sizeof text,
             "{\"roofline-enabled\":1,\"peak-perf\":%u,\"local-mem-bw\":3000,"
             "\"scheduling-policy\":\"%s\",\"collective-optimization\":\"localBWAware\","
             "\"preferred-dataset-splits\":%u,\"active-chunks-per-dimension\":%u,"
             "\"endpoint-delay\":10,\"all-reduce-implementation\":[\"%s\",\"%s\"],"
             "\"all-gather-implementation\":[\"%s\",\"%s\"],"
             "\"reduce-scatter-implementation\":[\"%s\",\"%s\"],"
             "\"all-to-all-implementation\":[\"direct\",\"direct\"]}",
             below(d, 2) ? 600 : 20, below(d, 2) ? "LIFO" : "FIFO", 1 + below(d, 4),
             1 + below(d, 2), a, b, a, b, a, b);
    write_file("sys.json", text, strlen(text));
}

/* Steps that do not repeat themselves at once are worked out from one of them (fold_tape.c). */
TEST(test_fold_models__steps_in_a_row_are_exact)
{
    unsigned long long first = 1, last = 60;
    const char *asked = getenv("FOLD_STEPS");
    size_t models = 0;
    counts c = {0};
    if (asked)
        CHECK(sscanf(asked, "%llu-%llu", &first, &last) == 2);
    while (orr_model_at(models))
        models++;
    for (unsigned long long k = first; k <= last; k++) {
        drawing d = {.state = k * 0x9e3779b97f4a7c15u + 7};
        orr_model m = *orr_model_at(k % models);
        orr_set *set;
        below(&d, 2);
        orr_llm_options opt = draw_step(&d);
        /* A ring over all ranks carries the norm of the gradients, and with it the skew. */
        opt.no_clipping = below(&d, 8) == 0;
        opt.steps = opt.cp = opt.ep = 1;
        opt.tp = 1u << below(&d, 2);
        opt.pp = 2u << below(&d, 2);
        opt.dp = 3 + below(&d, 8);
        opt.batch = opt.dp * opt.pp;
        opt.pipeline = (orr_pipeline)below(&d, 2);
        m.layers = opt.pp;
        m.dense_first = m.dense_first > 1 ? 1 : m.dense_first;
        if (orr_llm_training(&m, &opt, &set, &err)) {
            c.refused++;
            continue;
        }
        draw_skew(&d, opt.tp * opt.cp * opt.pp * opt.dp);
        verify(set, "unaware", m.name, 4 + below(&d, 12), &c);
        orr_set_close(set);
    }
    fprintf(stderr, "# %u folded, %u with every rank, %u refused; not all steps simulated: %u\n",
            c.folded, c.whole, c.refused, c.short_cut);
    CHECK(c.short_cut * 4 > c.whole + c.folded); /* or nothing is tested */
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fold_models__steps_in_a_row_are_exact),
        RUN(test_fold_models__steps_of_all_models_are_exact),
    };
    return RUN_ALL(tests);
}
