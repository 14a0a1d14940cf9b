/* SPDX-License-Identifier: Apache-2.0 */
/* bench_topology.c - networks of about 100,000 hosts: generated and written as a file of the ns-3
 * back end; then read, set up for packets, with one flow across them.  Work is hosts. */
#include "bench_input.h"

#include "models/network/packet/packet.h"
#include <orrery/lab/topology.h>

typedef struct job {
    const char *name, *text;
    uint64_t hosts, cables;
    char topology[512], flows[512];
} job;

static void path_of(char *path, const job *j, const char *what)
{
    const char *folder = getenv("ORR_BENCH_DIR");
    snprintf(path, 512, "%s/topology_%s.%s", folder ? folder : "/tmp", j->name, what);
}

static double make(void *context)
{
    job *j = context;
    orr_topology *t;
    orr_topology_figures g;
    orr_error err;
    const orr_span text = {(const uint8_t *)j->text, strlen(j->text)};
    bench_require(!orr_topology_parse(text, j->name, &t, &err), "parse");
    bench_require(!orr_topology_measure(t, &g, &err), "measure");
    bench_require(g.ranks == j->hosts && g.links == 2 * j->cables && g.reached + 1 == g.ranks,
                  j->name);
    bench_require(!orr_topology_write(t, ORR_TOPOLOGY_NS3, NULL, j->topology, &err), "write");
    orr_topology_destroy(t);
    return (double)j->hosts / 1e3;
}

static double set_up(void *context)
{
    job *j = context;
    const orr_packet_options opt = {
        .topology = j->topology, .flows = j->flows, .fct = "", .pfc = ""};
    orr_packet *p;
    orr_error err;
    bench_require(!orr_packet_create(&opt, &p, &err) && !orr_packet_run(p, &err), "run");
    bench_require(orr_packet_result(p)->flows_done == 1 &&
                      orr_packet_result(p)->data_packets == 100,
                  j->name);
    orr_packet_destroy(p);
    return (double)j->hosts / 1e3;
}

static void measure(job *j)
{
    char name[80];
    path_of(j->topology, j, "txt");
    path_of(j->flows, j, "flows");
    FILE *f = fopen(j->flows, "w");
    bench_require(f != NULL, j->flows);
    fprintf(f, "1\n0 %llu 3 100 100000 0\n", (unsigned long long)j->hosts - 1);
    fclose(f);
    snprintf(name, sizeof name, "topology__make_%s", j->name);
    bench_apart(&(bench_job){.name = name, .unit = "khosts", .run = make, .context = j});
    snprintf(name, sizeof name, "topology__read_and_run_%s", j->name);
    (void)make(j);
    bench_apart(&(bench_job){
        .name = name, .unit = "khosts", .run = set_up, .context = j, .input = j->topology});
}

int main(void)
{
    /* k = 74: 74^3 / 4 hosts and three times as many cables; 385 groups of 32 routers with 8 hosts:
     * 32 * 31 / 2 cables in each, one between any two */
    job jobs[] = {
        {.name = "leaf_spine_100k",
         .text = "generate: {type: leaf-spine, ranks: 100000, ranks_per_leaf: 50, spines: 50, "
                 "bandwidth: 400Gb/s, latency: 500ns}",
         .hosts = 100000,
         .cables = 200000},
        {.name = "fat_tree_101k",
         .text = "generate: {type: fat-tree, k: 74, bandwidth: 400Gb/s, latency: 500ns}",
         .hosts = 101306,
         .cables = 303918},
        {.name = "torus_100k",
         .text = "generate: {type: torus, size: [50, 50, 40], bandwidth: 400Gb/s, latency: 500ns}",
         .hosts = 100000,
         .cables = 300000},
        {.name = "dragonfly_99k",
         .text = "generate: {type: dragonfly, routers: 32, ranks_per_router: 8, global_links: 12, "
                 "bandwidth: 400Gb/s, latency: 500ns}",
         .hosts = 98560,
         .cables = 98560 + 385 * 496 + 385 * 384 / 2},
        {.name = "rails_100k",
         .text =
             "generate: {type: rails, domains: 12500, ranks_per_domain: 8, domains_per_leaf: 64, "
             "spines: 32, bandwidth: 400Gb/s, nvlink_bandwidth: 900GB/s, latency: 500ns}",
         .hosts = 100000,
         .cables = 200000 + 8 * 196 * 32},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        measure(&jobs[i]);
    return 0;
}
