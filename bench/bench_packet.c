/* SPDX-License-Identifier: Apache-2.0 */
/* bench_packet.c - the packet-level network: ring all-reduces under the simulator, and flows alone;
 * work is data packets.
 *
 * Exact mode (compat), one thread.  The reference (optimised build) takes, in CPU seconds and
 * resident memory: 16 hosts of one switch, 16 MiB: 4 s, 58 MB; 64 hosts: 25.6 s, 89 MB; 128 hosts
 * of a Clos, 1 MiB: 12.7 s, 670 MB; 16 MiB: 65.5 s, 673 MB.  The first row has a published result,
 * 784,628 ns; the others are checked by their packets. */
#include "bench_input.h"

#include "models/network/packet/packet.h"
#include "run/sim.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/gen.h>

#include <inttypes.h>

typedef struct job {
    const char *name;
    uint32_t hosts, hosts_per_leaf, spines; /* no spines: one switch */
    uint64_t size;
    uint64_t packets; /* expected packets and time; 0: not known in advance */
    uint64_t finished_at;
    const char *keys;   /* override the configuration, without compat; NULL: none */
    unsigned threads;   /* of flows, without compat; 0: compat */
    bool wants_history; /* record as for a report */
    double apart_s;     /* interval between starts of flows; 0: all at once */
    char config[512], system[512], topology[512], flows[512];
    orr_set *set;
} job;

static FILE *create(char *path, const job *j, const char *what)
{
    const char *folder = getenv("ORR_BENCH_DIR");
    snprintf(path, 512, "%s/%s.%s", folder ? folder : "/tmp", j->name, what);
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, path);
    return f;
}

static void write_topology(job *j)
{
    const uint32_t leaves = j->spines ? j->hosts / j->hosts_per_leaf : 1;
    const uint32_t switches = leaves + j->spines;
    FILE *f = create(j->topology, j, "topology");
    fprintf(f, "%u %u %u\n", j->hosts + switches, switches, j->hosts + leaves * j->spines);
    for (uint32_t i = 0; i < switches; i++)
        fprintf(f, "%u ", j->hosts + i);
    putc('\n', f);
    for (uint32_t i = 0; i < j->hosts; i++)
        fprintf(f, "%u %u %s 0\n", i, j->hosts + (j->spines ? i / j->hosts_per_leaf : 0),
                j->spines ? "200Gbps 0.005ms" : "400Gbps 0.0005ms");
    for (uint32_t l = 0; l < leaves; l++)
        for (uint32_t s = 0; s < j->spines; s++)
            fprintf(f, "%u %u 200Gbps 0.0125ms 0\n", j->hosts + l, j->hosts + leaves + s);
    fclose(f);
}

static void write_config(job *j)
{
    FILE *f = create(j->config, j, "config");
    fprintf(f,
            "TOPOLOGY_FILE %s\nFLOW_FILE %s\nCC_MODE 12\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\n"
            "L2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nGLOBAL_T 0\nVAR_WIN 1\nBUFFER_SIZE 32\n"
            "FCT_OUTPUT_FILE /dev/null\nPFC_OUTPUT_FILE /dev/null\nENABLE_TRACE 0\n"
            "KMIN_MAP 2 200000000000 600 400000000000 800\n"
            "KMAX_MAP 2 200000000000 2400 400000000000 3200\n"
            "PMAX_MAP 2 200000000000 0.2 400000000000 0.2\n",
            j->topology, j->flows[0] ? j->flows : "none");
    fclose(f);
    f = create(j->system, j, "system");
    fprintf(
        f,
        "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 10, \"preferred-dataset-splits\": %d, "
        "\"all-reduce-implementation\": [\"ring\"], \"local-mem-bw\": 1600}\n",
        j->keys ? 1 : 4); /* long messages have repeating traffic */
    fclose(f);
}

/* ---- under the simulator ---- */

static void prepare_ring(void *context)
{
    job *j = context;
    const orr_pattern *p = orr_pattern_find("all_reduce");
    orr_gen_options opt = p->defaults;
    orr_error err;
    opt.ranks = j->hosts;
    opt.comm_size = j->size;
    bench_check(orr_pattern_set(p, &opt, &j->set, &err), &err);
}

static const struct orr_rules_packet *reference(void)
{
    return orr_compat_at(ORR_RULES_PACKET, 0)->packet;
}

static double run_ring(void *context)
{
    const job *j = context;
    const orr_sim_options opt = {.set = j->set,
                                 .system = j->system,
                                 .network = j->config,
                                 .fidelity = "packet",
                                 .packet_keys = j->keys,
                                 .wants_history = j->wants_history,
                                 .rules = j->keys ? NULL : orr_compat_at(ORR_RULES_RUN, 1)->run,
                                 .packet_rules = j->keys ? NULL : reference()};
    orr_packet_figures g;
    orr_sim *s;
    orr_error err;
    bench_check(orr_sim_create(&opt, &s, &err), &err);
    bench_check(orr_sim_run(s, &err), &err);
    bench_require(orr_sim_packets(s, &g), "no packets");
    bench_require(!j->packets || g.data_packets == j->packets, "another number of packets");
    bench_require(!j->finished_at || orr_sim_rank(s, 0)->finished_at == j->finished_at,
                  "another result");
    orr_sim_destroy(s);
    return (double)g.data_packets;
}

/* ---- flows alone: all to all ---- */

static void write_flows(job *j)
{
    FILE *f = create(j->flows, j, "flows");
    fprintf(f, "%u\n", j->hosts * (j->hosts - 1));
    for (uint32_t step = 1; step < j->hosts; step++)
        for (uint32_t i = 0; i < j->hosts; i++)
            fprintf(f, "%u %u 3 100 %" PRIu64 " %.9f\n", i, (i + step) % j->hosts, j->size,
                    j->apart_s * ((step - 1) * j->hosts + i));
    fclose(f);
}

static double run_flows(void *context)
{
    const job *j = context;
    const orr_packet_options opt = {.config = j->config,
                                    .rules = j->threads ? NULL : reference(),
                                    .threads = j->threads,
                                    .wants_history = j->wants_history};
    orr_packet *p;
    orr_error err;
    bench_check(orr_packet_create(&opt, &p, &err), &err);
    bench_check(orr_packet_run(p, &err), &err);
    const uint64_t packets = orr_packet_result(p)->data_packets;
    const uint64_t flows = (uint64_t)j->hosts * (j->hosts - 1);
    bench_require(orr_packet_result(p)->flows_done == flows, "not all flows were done");
    bench_require(packets == flows * ((j->size + 999) / 1000), "another number of packets");
    orr_packet_destroy(p);
    return (double)packets;
}

int main(void)
{
    /* 14 steps per chunk, a message of size / 4 / ranks each, 1000 bytes per packet: for example
     * 525 of the first */
    job rings[] = {
        {"packet__ring_8hosts_16mib", .hosts = 8, .size = 1 << 24, .packets = 235200,
         .finished_at = 784628},
        {"packet__ring_16hosts_16mib", .hosts = 16, .size = 1 << 24, .packets = 504960},
        {"packet__ring_64hosts_16mib", .hosts = 64, .size = 1 << 24, .packets = 2128896},
        {"packet__ring_clos128_1mib", .hosts = 128, .hosts_per_leaf = 16, .spines = 8,
         .size = 1 << 20, .packets = 390144},
        {"packet__ring_clos128_1mib_report", .hosts = 128, .hosts_per_leaf = 16, .spines = 8,
         .size = 1 << 20, .packets = 390144, .wants_history = true},
        {"packet__ring_clos128_16mib", .hosts = 128, .hosts_per_leaf = 16, .spines = 8,
         .size = 1 << 24, .packets = 4291584},
        /* not compat: every event, and with repeating traffic skipped; the result is the same */
        {"packet__ring_16hosts_256mib_exact", .hosts = 16, .size = 1 << 28, .packets = 8053440,
         .keys = "APPROX 0"},
        {"packet__ring_16hosts_256mib_approx", .hosts = 16, .size = 1 << 28, .packets = 8053440,
         .keys = "APPROX 1"},
    };
    /* The more hosts, the shorter the messages, so that each row takes seconds: the first on a Clos
     * takes as long as the one on a switch, the last has a million flows.  With ORR_BENCH_LONG also
     * the last with 64 KiB, which takes minutes. */
    job a2a[] = {
        {"packet__a2a_switch128_64kib", .hosts = 128, .size = 1 << 16},
        {"packet__a2a_clos128_64kib", .hosts = 128, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 16},
        /* not compat; CPU time is that of all threads */
        {"packet__a2a_clos128_64kib_1thread", .hosts = 128, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 16, .threads = 1},
        {"packet__a2a_clos128_64kib_report", .hosts = 128, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 16, .threads = 1, .wants_history = true},
        {"packet__a2a_clos128_64kib_2threads", .hosts = 128, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 16, .threads = 2},
        {"packet__a2a_clos256_16kib_apart_1thread", .hosts = 256, .hosts_per_leaf = 32,
         .spines = 16, .size = 1 << 14, .threads = 1, .apart_s = 10e-9},
        {"packet__a2a_clos256_16kib_apart_2threads", .hosts = 256, .hosts_per_leaf = 32,
         .spines = 16, .size = 1 << 14, .threads = 2, .apart_s = 10e-9},
        {"packet__a2a_clos256_16kib", .hosts = 256, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 14},
        {"packet__a2a_clos256_16kib_1thread", .hosts = 256, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 14, .threads = 1},
        {"packet__a2a_clos512_8kib", .hosts = 512, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 13},
        {"packet__a2a_clos512_8kib_1thread", .hosts = 512, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 13, .threads = 1},
        {"packet__a2a_clos1024_4kib_1thread", .hosts = 1024, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 12, .threads = 1},
        {"packet__a2a_clos1024_64kib_1thread", .hosts = 1024, .hosts_per_leaf = 32, .spines = 16,
         .size = 1 << 16, .threads = 1},
    };
    const size_t a2a_count = sizeof a2a / sizeof *a2a - !getenv("ORR_BENCH_LONG");
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        write_topology(&rings[i]);
        write_config(&rings[i]);
        bench_apart(&(bench_job){rings[i].name, "packets", run_ring, prepare_ring, &rings[i], NULL,
                                 .runs = i < 2 ? 5 : 3});
    }
    for (size_t i = 0; i < a2a_count; i++) {
        write_topology(&a2a[i]);
        write_flows(&a2a[i]);
        write_config(&a2a[i]);
        bench_apart(&(bench_job){a2a[i].name, "packets", run_flows, NULL, &a2a[i], a2a[i].flows,
                                 .runs = i < 2 ? 3 : 1});
    }
    return 0;
}
