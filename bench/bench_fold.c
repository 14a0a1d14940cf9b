/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fold.c - whole training steps with ranks that do the same simulated once, and one of them with every rank, for
 * comparison.  The work is that of all ranks: messages.  Traces are made before the clock starts. */
#include "bench.h"

#include <orrery/lab/llm.h>
#include <orrery/run.h>

typedef struct job {
    const char *model;       /* NULL: one all-reduce */
    uint32_t tp, pp, dp, ep; /* of a model */
    uint64_t batch;
    uint32_t ranks, inner; /* of the network: all, and those of a host */
    const char *algorithm;
    orr_run_fold fold;
    uint32_t most; /* ranks simulated */
    orr_set *set;
} job;

static void check(orr_code code, const orr_error *err)
{
    if (code)
        fprintf(stderr, "%s\n", err->message);
    bench_require(code == ORR_OK, "the job fails");
}

static orr_set *one_all_reduce(uint32_t ranks)
{
    orr_error err;
    orr_trace *t;
    orr_set *set;
    const orr_attr attrs[] = {
        {.name = orr_str_of("comm_type"), .kind = ORR_VALUE_INT64, .value.i = ORR_COLL_ALL_REDUCE},
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = 1 << 30}};
    const orr_draft node = {.id = 1,
                            .name = orr_str_of("a"),
                            .type = ORR_NODE_COMM_COLL,
                            .attrs = attrs,
                            .attr_count = 2};
    check(orr_trace_create(&(orr_meta){.version = orr_str_of("1.0.0")}, &t, &err), &err);
    check(orr_trace_append(t, &node, &err), &err);
    check(orr_trace_seal(t, &err), &err);
    check(orr_set_create(&set, &err), &err);
    check(orr_set_add(set, t, &err), &err);
    for (uint32_t r = 1; r < ranks; r++)
        check(orr_set_add_like(set, 0, 0, &err), &err);
    return set;
}

static void prepare(void *context)
{
    job *j = context;
    orr_error err;
    orr_model m;
    if (j->set)
        return;
    if (!j->model) {
        j->set = one_all_reduce(j->ranks);
        return;
    }
    const orr_llm_options opt = {.tp = j->tp,
                                 .pp = j->pp,
                                 .dp = j->dp,
                                 .ep = j->ep,
                                 .seq = 8192,
                                 .batch = j->batch,
                                 .micro_batch = 1};
    check(orr_model_load(j->model, &m, &err), &err);
    check(orr_llm_training(&m, &opt, &j->set, &err), &err);
}

static double run(void *context)
{
    const job *j = context;
    orr_error err;
    orr_run *r;
    char path[300];
    snprintf(path, sizeof path, "%s/orrery-bench-%d.json",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".", (int)getpid());
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "no system file");
    const char *a = j->algorithm, *more = j->inner ? "\",\"" : "",
               *b = j->inner ? j->algorithm : "";
    const char *direct = j->inner ? "direct\",\"direct" : "direct";
    fprintf(
        f,
        "{\"scheduling-policy\":\"LIFO\",\"endpoint-delay\":10,\"active-chunks-per-dimension\":2,"
        "\"preferred-dataset-splits\":4,\"collective-optimization\":\"localBWAware\",\"local-mem-bw\":3350,"
        "\"peak-perf\":989,\"roofline-enabled\":1,\"all-reduce-implementation\":[\"%s%s%s\"],"
        "\"all-gather-implementation\":[\"%s%s%s\"],\"reduce-scatter-implementation\":[\"%s%s%s\"],"
        "\"all-to-all-implementation\":[\"%s\"]}",
        a, more, b, a, more, b, a, more, b, direct);
    fclose(f);
    orr_net_config net = {
        .size = sizeof net,
        .dims = j->inner ? 2 : 1,
        .shape = {ORR_NET_SWITCH, ORR_NET_SWITCH},
        .npus = {j->inner ? j->inner : j->ranks, j->inner ? j->ranks / j->inner : 0},
        .bandwidth = {450, 50},
        .latency_ns = {500, 5000}};
    const orr_run_config config = {.size = sizeof config,
                                   .set = j->set,
                                   .system = path,
                                   .dims = &net,
                                   .network = "unaware",
                                   .fold = j->fold};
    check(orr_run_create(&config, &r, &err), &err);
    check(orr_run_to_end(r, &err), &err);
    bench_require(orr_run_ranks_simulated(r) <= j->most, "more ranks were simulated than need be");
    const double messages = (double)orr_run_messages(r) / 1e6;
    orr_run_destroy(r);
    unlink(path);
    return messages;
}

static void measure(const char *name, job j)
{
    bench_apart(&(bench_job){
        .name = name, .unit = "Mmsg", .run = run, .prepare = prepare, .context = &j, .runs = 2});
    orr_set_close(j.set);
}

int main(void)
{
    const job small = {.model = "llama-3-8b",
                       .tp = 8,
                       .pp = 2,
                       .dp = 4,
                       .batch = 16,
                       .ranks = 64,
                       .inner = 8,
                       .algorithm = "ring",
                       .most = 2};
    job each = small;
    each.fold = ORR_RUN_FOLD_OFF;
    each.most = 64;
    measure("fold__8b_64ranks", small);
    measure("fold__8b_64ranks_every_rank", each);
    measure("fold__70b_1024ranks", (job){.model = "llama-3-70b",
                                         .tp = 8,
                                         .pp = 4,
                                         .dp = 32,
                                         .batch = 1024,
                                         .ranks = 1024,
                                         .inner = 8,
                                         .algorithm = "ring",
                                         .most = 4});
    measure("fold__70b_16384ranks", (job){.model = "llama-3-70b",
                                          .tp = 8,
                                          .pp = 16,
                                          .dp = 128,
                                          .batch = 4096,
                                          .ranks = 16384,
                                          .inner = 8,
                                          .algorithm = "ring",
                                          .most = 16});
    measure("fold__70b_131072ranks", (job){.model = "llama-3-70b",
                                           .tp = 8,
                                           .pp = 16,
                                           .dp = 1024,
                                           .batch = 32768,
                                           .ranks = 131072,
                                           .inner = 8,
                                           .algorithm = "ring",
                                           .most = 16});
    measure("fold__ring_16384ranks", (job){.ranks = 16384, .algorithm = "ring", .most = 1});
    measure("fold__halving_1048576ranks",
            (job){.ranks = 1 << 20, .algorithm = "halvingDoubling", .most = 1});
    return 0;
}
