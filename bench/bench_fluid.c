/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fluid.c - the cost of the default network, and its limits: CPU seconds of a whole run, and
 * how many times as long another network takes for the same traces.
 *
 *     packet  the same messages, packet by packet: at least 1,000 times more
 *     unaware the step of the demo, every rank simulated: fluid takes at most 3 times as long
 *     alone   a folded step of Llama 3 70B on 1,024 ranks in 1 s, an all-to-all of 4,096 ranks in 10 s */
#include "bench_input.h"

#include <orrery/lab/llm.h>
#include <orrery/run.h>

static orr_set *step_of(const char *model, orr_llm_options opt)
{
    orr_error err;
    orr_model m;
    orr_set *set;
    bench_check(orr_model_load(model, &m, &err), &err);
    bench_check(orr_llm_training(&m, &opt, &set, &err), &err);
    return set;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, path);
    fputs(text, f);
    fclose(f);
}

/* CPU seconds of a run, the minimum of several; *time: when the last rank has finished, in ns. */
static double cost(
    const orr_set *set, orr_run_config c, const char *network, int runs, double *time)
{
    double least = 1e9;
    orr_error err;
    c.size = sizeof c;
    c.set = set;
    c.network = network;
    for (int i = 0; i < runs; i++) {
        orr_run *r;
        const double from = bench_clock(CLOCK_PROCESS_CPUTIME_ID);
        bench_check(orr_run_create(&c, &r, &err), &err);
        bench_check(orr_run_to_end(r, &err), &err);
        const double took = bench_clock(CLOCK_PROCESS_CPUTIME_ID) - from;
        least = took < least ? took : least;
        *time = (double)orr_run_time(r) / 1000;
        orr_run_destroy(r);
    }
    return least;
}

static void row(
    const char *name, double seconds, const char *against, double other, const char *asked)
{
    printf("%-34s %9.6f s", name, seconds);
    if (against)
        printf("  %s %9.6f s, %.1f times that", against, other, other / seconds);
    printf("  (asked: %s)\n", asked);
    fflush(stdout);
}

static void beside_packets(const char *folder)
{
    static const struct {
        const char *name, *topology;
        orr_collective kind;
        uint32_t ranks;
        const char *all_reduce;
    } all[] = {
        {"fluid__ring_64mib_switch16",
         "generate: {type: switch, ranks: 16, bandwidth: 50GB/s, latency: 500ns}\n",
         ORR_COLL_ALL_REDUCE, 16, "ring"},
        {"fluid__ring_64mib_clos32",
         "generate: {type: leaf-spine, ranks: 32, ranks_per_leaf: 8, spines: 8, bandwidth: 50GB/s, "
         "latency: 500ns}\n",
         ORR_COLL_ALL_REDUCE, 32, "ring"},
        {"fluid__all_to_all_64mib_clos32",
         "generate: {type: leaf-spine, ranks: 32, ranks_per_leaf: 8, spines: 8, bandwidth: 50GB/s, "
         "latency: 500ns}\n",
         ORR_COLL_ALL_TO_ALL, 32, "ring"},
        {"fluid__halving_64mib_clos32",
         "generate: {type: leaf-spine, ranks: 32, ranks_per_leaf: 8, spines: 8, bandwidth: 50GB/s, "
         "latency: 500ns}\n",
         ORR_COLL_ALL_REDUCE, 32, "halvingDoubling"},
    };
    char topology[512], system[512], text[256];
    snprintf(topology, sizeof topology, "%s/fluid.yml", folder);
    snprintf(system, sizeof system, "%s/fluid.json", folder);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        orr_set *set = bench_collective(all[i].ranks, all[i].kind, 64 << 20);
        const orr_run_config c = {.system = system, .topology = topology};
        double fluid_ns, packet_ns;
        snprintf(text, sizeof text,
                 "{\"preferred-dataset-splits\": 1, \"all-reduce-implementation\": [\"%s\"], "
                 "\"all-to-all-implementation\": [\"direct\"]}",
                 all[i].all_reduce);
        write_file(system, text);
        write_file(topology, all[i].topology);
        const double fluid = cost(set, c, "fluid", 20, &fluid_ns);
        const double packet = cost(set, c, "packet", 1, &packet_ns);
        bench_require(fluid_ns > 0.97 * packet_ns && fluid_ns < 1.03 * packet_ns,
                      "fluid and packet are more than 3 % apart");
        row(all[i].name, fluid, "packet", packet, "1,000 times");
        orr_set_close(set);
    }
}

int main(void)
{
    const char *folder = getenv("ORR_BENCH_DIR") ? getenv("ORR_BENCH_DIR") : "/tmp";
    double time, own;
    beside_packets(folder);

    orr_set *demo =
        step_of("llama-3-70b", (orr_llm_options){.tp = 8, .pp = 4, .zero = 1, .batch = 16});
    const orr_run_config every = {.machine = "dgx-h100", .fold = ORR_RUN_FOLD_OFF};
    own = cost(demo, every, "fluid", 3, &time);
    row("fluid__demo_32ranks_every_rank", own, "unaware", cost(demo, every, "unaware", 1, &time),
        "a third or more");
    const orr_run_config folded = {.machine = "dgx-h100"};
    own = cost(demo, folded, "fluid", 3, &time);
    row("fluid__demo_32ranks", own, "unaware", cost(demo, folded, "unaware", 3, &time),
        "a third or more");
    orr_set_close(demo);

    orr_set *large = step_of(
        "llama-3-70b", (orr_llm_options){.tp = 8, .pp = 4, .dp = 32, .seq = 8192, .batch = 1024});
    row("fluid__70b_1024ranks", cost(large, folded, "fluid", 3, &time), NULL, 0, "1 s");
    orr_set_close(large);

    orr_set *all = bench_collective(4096, ORR_COLL_ALL_TO_ALL, 1 << 30);
    row("fluid__all_to_all_4096ranks", cost(all, folded, "fluid", 3, &time), NULL, 0, "10 s");
    orr_set_close(all);
    return 0;
}
