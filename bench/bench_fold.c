/* SPDX-License-Identifier: Apache-2.0 */
/* bench_fold.c - whole training steps with folding of equal ranks, on unaware (messages of
 * algorithms) and on fluid (NCCL's collectives), some on aware, and some without folding, for
 * comparison.  Work is messages of all ranks.  Traces are made before the clock starts.  Also runs
 * in which all ranks differ, with one thread and with two, and runs on a machine, from a file, with
 * compute times of measured kernels and of a roofline.  The last tables compare targets and
 * results.  `bench_fold PART...` measures the rows whose names end with one of the parts. */
#include "bench_input.h"

#include <orrery/lab/llm.h>
#include <orrery/lab/machine.h>
#include <orrery/run.h>

typedef struct job {
    const char *model;       /* NULL: one all-reduce */
    uint32_t tp, pp, dp, ep; /* of a model */
    uint64_t batch;
    uint32_t ranks, inner; /* ranks of the network, and per host */
    const char *algorithm; /* NULL: not set, and the network is fluid */
    const char *network;   /* NULL: unaware, or fluid */
    uint32_t steps;        /* in a row; 0: 1 */
    bool has_straggler;    /* one rank computes at 0.9 times the speed */
    bool is_skewed;        /* no two ranks compute at the same speed */
    uint32_t threads;      /* 0: 1 */
    orr_run_fold fold;
    uint32_t most; /* ranks simulated */
    bool is_once;  /* run once, as it takes long */
    orr_set *set;
} job;

static void prepare(void *context)
{
    job *j = context;
    orr_error err;
    orr_model m;
    if (j->set)
        return;
    if (!j->model) {
        j->set = bench_collective(j->ranks, ORR_COLL_ALL_REDUCE, 1 << 30);
        return;
    }
    const orr_llm_options opt = {.tp = j->tp,
                                 .pp = j->pp,
                                 .dp = j->dp,
                                 .ep = j->ep,
                                 .seq = 8192,
                                 .batch = j->batch,
                                 .micro_batch = 1};
    bench_check(orr_model_load(j->model, &m, &err), &err);
    bench_check(orr_llm_training(&m, &opt, &j->set, &err), &err);
}

static void file_name(char path[300], const char *ending)
{
    snprintf(path, 300, "%s/orrery-bench-%d%s", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".",
             (int)getpid(), ending);
}

static FILE *make_file(const char *path)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "a file cannot be written");
    return f;
}

static void write_system(const job *j, const char *path)
{
    static const char *const kinds[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};
    FILE *f = make_file(path);
    fprintf(
        f,
        "{\"scheduling-policy\":\"LIFO\",\"endpoint-delay\":10,\"active-chunks-per-dimension\":2,"
        "\"preferred-dataset-splits\":4,\"collective-optimization\":\"localBWAware\","
        "\"local-mem-bw\":3350,\"peak-perf\":989,\"roofline-enabled\":1");
    for (unsigned k = 0; k < 4 && j->algorithm; k++) {
        const char *a = k == 3 ? "direct" : j->algorithm;
        fprintf(f, ",\"%s-implementation\":[\"%s\"", kinds[k], a);
        fprintf(f, j->inner ? ",\"%s\"]" : "]", a);
    }
    fprintf(f, "}");
    fclose(f);
}

static double run(void *context)
{
    const job *j = context;
    orr_error err;
    orr_run *r;
    char path[300], ranks[300];
    file_name(path, ".json");
    file_name(ranks, ".yml");
    write_system(j, path);
    FILE *f = make_file(ranks);
    fprintf(f, "ranks:\n");
    for (uint32_t k = 0; j->is_skewed && k < j->ranks; k++) /* scattered: 389 is prime */
        fprintf(f, "- {ranks: %u, compute: %.6f}\n", k,
                0.8 + 0.2 * (k * 389 % j->ranks) / j->ranks);
    if (!j->is_skewed)
        fprintf(f, "- {ranks: 77, compute: 0.9}\n");
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
                                   .network = j->network     ? j->network
                                              : j->algorithm ? "unaware"
                                                             : "fluid",
                                   .ranks_file = j->has_straggler || j->is_skewed ? ranks : NULL,
                                   .steps = j->steps,
                                   .threads = j->threads ? j->threads : 1,
                                   .fold = j->fold};
    bench_check(orr_run_create(&config, &r, &err), &err);
    bench_check(orr_run_to_end(r, &err), &err);
    bench_require(orr_run_ranks_simulated(r) <= j->most, "more ranks were simulated than need be");
    const double messages = (double)orr_run_messages(r) / 1e6;
    orr_run_destroy(r);
    unlink(path);
    unlink(ranks);
    return messages;
}

/* Best runs so far, by name. */
static struct {
    char name[80];
    bench_run best;
} known[64];
static size_t known_count;

static char **wanted; /* suffixes of names; ends with NULL */

static bool is_wanted(const char *name)
{
    bool is_so = !*wanted;
    for (char **w = wanted; *w && !is_so; w++) {
        const size_t whole = strlen(name), part = strlen(*w);
        is_so = part <= whole && strcmp(name + whole - part, *w) == 0;
    }
    return is_so;
}

static void measure(const char *name, job j)
{
    if (!is_wanted(name))
        return;
    const bench_run best = bench_apart(&(bench_job){.name = name,
                                                    .unit = "Mmsg",
                                                    .run = run,
                                                    .prepare = prepare,
                                                    .context = &j,
                                                    .runs = j.is_once ? 1 : 2});
    bench_require(known_count < sizeof known / sizeof *known, "too many rows");
    snprintf(known[known_count].name, sizeof known->name, "%s", name);
    known[known_count++].best = best;
    orr_set_close(j.set);
}

/* Folding by symmetry, on a network with contention. */
static void measure_aware(const char *name, job j)
{
    j.algorithm = "ring";
    j.network = "aware";
    measure(name, j);
}

/* ---- the table of targets and results ---- */

static const bench_run *find(const char *name, const char *network)
{
    char own[80];
    snprintf(own, sizeof own, "%s%s", name, network);
    for (size_t i = 0; i < known_count; i++)
        if (strcmp(known[i].name, own) == 0)
            return &known[i].best;
    return NULL;
}

/* "0.073 s 43 MB", or the ratio to another row. */
static void print_cell(const char *name, const char *times_of, const char *network)
{
    const bench_run *r = find(name, network), *one = times_of ? find(times_of, network) : NULL;
    char text[40] = "-";
    if (r && one)
        snprintf(text, sizeof text, "%.1f x", r->cpu / one->cpu);
    else if (r)
        snprintf(text, sizeof text, "%.3f s %.0f MB", r->cpu, r->peak_mb);
    printf(" %-16s", text);
}

static void print_table(void)
{
    static const struct {
        const char *what, *asked, *name, *times_of;
    } rows[] = {
        {"70B step, 1,024 ranks", "0.15 s 60 MB", "fold__70b_1024ranks", NULL},
        {"  every rank", "-", "fold__70b_1024ranks_every_rank", NULL},
        {"8B step of the demo, 1,024", "0.05 s", "fold__demo_1024ranks", NULL},
        {"  every rank", "-", "fold__demo_1024ranks_every_rank", NULL},
        {"70B step, 16,384 ranks", "1 s 500 MB", "fold__70b_16384ranks", NULL},
        {"70B step, 131,072 ranks", "3 s 500 MB", "fold__70b_131072ranks", NULL},
        {"DeepSeek-V3, ep 64, 8,192", "5 s", "fold__deepseek_ep64_8192ranks", NULL},
        {"ring, 1 GiB, 16,384", "0.05 s", "fold__ring_16384ranks", NULL},
        {"halving-doubling, 1,048,576", "0.5 s 1 GB", "fold__halving_1048576ranks", NULL},
        {"100 steps, 8B, to one", "3 x", "fold__demo_1024ranks_100steps", "fold__demo_1024ranks"},
        {"100 steps, 70B, to one", "3 x", "fold__70b_1024ranks_100steps", "fold__70b_1024ranks"},
        {"straggler, 8B, to none", "20 x", "fold__demo_1024ranks_straggler",
         "fold__demo_1024ranks"},
        {"aware, 8B step, 8 x 128 switch", "-", "fold__demo_1024ranks_aware", NULL},
        {"  every rank", "-", "fold__demo_1024ranks_every_rank_aware", NULL},
        {"  every rank to folded", "10 x", "fold__demo_1024ranks_every_rank_aware",
         "fold__demo_1024ranks_aware"},
        {"straggler, 70B, to none", "20 x", "fold__70b_1024ranks_straggler", "fold__70b_1024ranks"},
    };
    printf("\n%-30s %-13s %-16s %-16s\n", "CPU time of one thread", "asked", "unaware", "fluid");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("%-30s %-13s", rows[i].what, rows[i].asked);
        if (find(rows[i].name, "")) { /* on one network */
            print_cell(rows[i].name, rows[i].times_of, "");
            printf(" %-16s\n", "-");
            continue;
        }
        print_cell(rows[i].name, rows[i].times_of, "_unaware");
        print_cell(rows[i].name, rows[i].times_of, "_fluid");
        putchar('\n');
    }
}

/* Ranks that do not fold, with one thread and with two, in wall time, since CPU time is that of all
 * threads.  On a busy machine the result means little. */
static void print_threads(void)
{
    static const char *const rows[][2] = {
        {"8B, 256 ranks that differ, unaware", "fold__8b_256ranks_skewed_unaware"},
        {"8B, 256 ranks that differ, aware", "fold__8b_256ranks_skewed_aware"},
        {"8B, 256 ranks, every rank, unaware", "fold__8b_256ranks_every_rank_unaware"},
        {"8B, 256 ranks, every rank, aware", "fold__8b_256ranks_every_rank_aware"}};
    printf("\n%-36s %-20s %-20s\n", "by the clock (CPU)", "1 thread", "2 threads");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bench_run *one = find(rows[i][1], ""), *two = find(rows[i][1], "_2threads");
        if (one && two)
            printf("%-36s %6.2f s (%.2f s)    %6.2f s (%.2f s)\n", rows[i][0], one->wall, one->cpu,
                   two->wall, two->cpu);
    }
}

static void measure_threads(const char *name, job j)
{
    char own[80];
    for (j.threads = 1; j.threads <= 2; j.threads++)
        for (int is_aware = 0; is_aware < 2; is_aware++) {
            snprintf(own, sizeof own, "%s_%s%s", name, is_aware ? "aware" : "unaware",
                     j.threads == 2 ? "_2threads" : "");
            j.algorithm = "ring";
            j.network = is_aware ? "aware" : "unaware";
            j.set = NULL;
            measure(own, j);
        }
}

/* On both networks. */
static void measure_both(const char *name, job j)
{
    char own[80];
    snprintf(own, sizeof own, "%s_unaware", name);
    j.algorithm = "ring";
    measure(own, j);
    snprintf(own, sizeof own, "%s_fluid", name);
    j.algorithm = NULL;
    j.set = NULL;
    measure(own, j);
}

/* ---- times of measured kernels, and of a roofline ---- */

typedef struct chip_job {
    const char *what, *rows[2]; /* by a roofline, by kernels */
    orr_llm_options options;
    const char *model;
    char path[300];  /* of the set: reading it is part of the step */
    bool is_ideal;   /* a roofline */
    bool has_losses; /* compute is slower during a collective or a message */
    double messages;
    orr_ps time;
} chip_job;

enum { CHIP_RUNS = 21, CHIP_CASES = 4, CHIP_STAGES = 4 };

static void write_set(chip_job *j)
{
    orr_error err;
    orr_model m;
    orr_set *set;
    bench_check(orr_model_load(j->model, &m, &err), &err);
    bench_check(orr_llm_training(&m, &j->options, &set, &err), &err);
    file_name(j->path, ".orr");
    bench_check(orr_set_save(set, j->path, NULL, &err), &err);
    orr_set_close(set);
}

/* `orrery run SET --machine dgx-h100`, with and without --ideal; that option also drops the losses,
 * so both have them or neither. */
static void run_on_machine(chip_job *j)
{
    orr_error err;
    orr_machine m;
    orr_system system;
    orr_run *r;
    const char *const machine = "dgx-h100:128";
    bench_check(orr_machine_find(machine, &m, &err), &err);
    bench_check(orr_machine_system(&m, &system, &err), &err);
    if (!j->has_losses)
        system.overlap_cost = system.message_overlap_cost = 0;
    const orr_run_config config = {.size = sizeof config,
                                   .traces = j->path,
                                   .machine = machine,
                                   .own_system = &system,
                                   .hardware = j->is_ideal ? NULL : m.chip,
                                   .is_ideal = j->is_ideal,
                                   .threads = 1};
    bench_check(orr_run_create(&config, &r, &err), &err);
    bench_check(orr_run_to_end(r, &err), &err);
    bench_require(orr_run_ranks_simulated(r) == CHIP_STAGES,
                  "not one rank per stage was simulated");
    j->time = orr_run_time(r);
    j->messages = (double)orr_run_messages(r) / 1e6;
    orr_run_destroy(r);
}

static double run_chip_job(void *context)
{
    chip_job *j = context;
    run_on_machine(j);
    return j->messages;
}

/* Peaks are a bound, which measured kernels reach by a third at least; nothing else may differ. */
static void check_chip_job(chip_job j)
{
    j.is_ideal = false;
    run_on_machine(&j);
    chip_job ideal = j;
    ideal.is_ideal = true;
    run_on_machine(&ideal);
    bench_require(j.messages == ideal.messages, "kernels change the number of messages");
    bench_require(j.time > ideal.time && j.time < 3 * ideal.time,
                  "a step by kernels takes less than by peaks, or three times as long");
}

static void measure_kernels(void)
{
    const orr_llm_options large = {
        .tp = 8, .pp = 4, .dp = 32, .seq = 8192, .batch = 1024, .micro_batch = 1};
    orr_llm_options small = large, again = large;
    small.batch = 128;
    again.recompute = ORR_RECOMPUTE_FULL;
    const chip_job cases[CHIP_CASES] = {
        {.what = "70B step, no losses",
         .rows = {"fold__70b_no_losses_roofline", "fold__70b_no_losses_kernels"},
         .model = "llama-3-70b",
         .options = large},
        {.what = "70B step",
         .rows = {"fold__70b_machine_roofline", "fold__70b_machine_kernels"},
         .model = "llama-3-70b",
         .options = large,
         .has_losses = true},
        {.what = "70B step, full recomputation",
         .rows = {"fold__70b_recompute_roofline", "fold__70b_recompute_kernels"},
         .model = "llama-3-70b",
         .options = again,
         .has_losses = true},
        {.what = "8B step of the demo",
         .rows = {"fold__demo_machine_roofline", "fold__demo_machine_kernels"},
         .model = "llama-3-8b",
         .options = small,
         .has_losses = true}};
    bench_run best[CHIP_CASES][2];
    bool is_done[CHIP_CASES] = {false};
    for (size_t i = 0; i < CHIP_CASES; i++) {
        chip_job j = cases[i];
        if (!is_wanted(j.rows[0]) && !is_wanted(j.rows[1]))
            continue;
        write_set(&j);
        check_chip_job(j);
        for (int k = 0; k < 2; k++) {
            j.is_ideal = k == 0;
            best[i][k] = bench_apart(&(bench_job){.name = j.rows[k],
                                                  .unit = "Mmsg",
                                                  .run = run_chip_job,
                                                  .context = &j,
                                                  .input = j.path,
                                                  .runs = CHIP_RUNS});
        }
        is_done[i] = true;
        unlink(j.path);
    }
    printf("\n%-30s %-13s %-10s %-10s %s\n", "1,024 ranks, from the file", "asked", "roofline",
           "kernels", "more");
    for (size_t i = 0; i < CHIP_CASES; i++)
        if (is_done[i])
            printf("%-30s %-13s %.4f s   %.4f s   %+.1f %%\n", cases[i].what, "at most 10 %",
                   best[i][0].cpu, best[i][1].cpu, 100 * (best[i][1].cpu / best[i][0].cpu - 1));
}

int main(int argc, char **argv)
{
    wanted = argc > 0 ? argv + 1 : argv;
    const job small = {.model = "llama-3-8b",
                       .tp = 8,
                       .pp = 2,
                       .dp = 4,
                       .batch = 16,
                       .ranks = 64,
                       .inner = 8,
                       .most = 2};
    job each = small;
    each.fold = ORR_RUN_FOLD_OFF;
    each.most = 64;
    measure_both("fold__8b_64ranks", small);
    measure_both("fold__8b_64ranks_every_rank", each);
    const job demo = {.model = "llama-3-8b",
                      .tp = 8,
                      .pp = 4,
                      .dp = 32,
                      .batch = 128,
                      .ranks = 1024,
                      .inner = 8,
                      .most = 4};
    job late = demo, many = demo, all = demo;
    late.has_straggler = true;
    late.most = 16;
    many.steps = 100;
    all.fold = ORR_RUN_FOLD_OFF;
    all.most = 1024;
    measure_both("fold__demo_1024ranks", demo);
    measure_both("fold__demo_1024ranks_every_rank", all);
    measure_both("fold__demo_1024ranks_straggler", late);
    measure_both("fold__demo_1024ranks_100steps", many);
    job pairs = demo;
    pairs.most = 128; /* 4 until the norm, which makes replicas differ */
    measure_aware("fold__demo_1024ranks_aware", pairs);
    measure_aware("fold__demo_1024ranks_every_rank_aware", all);
    const job large = {.model = "llama-3-70b",
                       .tp = 8,
                       .pp = 4,
                       .dp = 32,
                       .batch = 1024,
                       .ranks = 1024,
                       .inner = 8,
                       .most = 4};
    job slow = large;
    slow.has_straggler = true;
    slow.most = 16;
    job row = large, whole = large;
    row.steps = 100;
    row.most = 16;
    whole.fold = ORR_RUN_FOLD_OFF;
    whole.most = 1024;
    whole.is_once = true;
    measure_both("fold__70b_1024ranks", large);
    measure_both("fold__70b_1024ranks_every_rank", whole);
    measure_both("fold__70b_1024ranks_100steps", row);
    measure_both("fold__70b_1024ranks_straggler", slow);
    measure_both("fold__70b_16384ranks", (job){.model = "llama-3-70b",
                                               .tp = 8,
                                               .pp = 16,
                                               .dp = 128,
                                               .batch = 4096,
                                               .ranks = 16384,
                                               .inner = 8,
                                               .most = 16});
    measure_both("fold__70b_131072ranks", (job){.model = "llama-3-70b",
                                                .tp = 8,
                                                .pp = 16,
                                                .dp = 1024,
                                                .batch = 32768,
                                                .ranks = 131072,
                                                .inner = 8,
                                                .most = 16});
    measure_both("fold__deepseek_ep64_8192ranks", (job){.model = "deepseek-v3",
                                                        .tp = 8,
                                                        .pp = 16,
                                                        .dp = 64,
                                                        .ep = 64,
                                                        .batch = 2048,
                                                        .ranks = 8192,
                                                        .inner = 8,
                                                        .most = 16});
    measure("fold__ring_16384ranks", (job){.ranks = 16384, .algorithm = "ring", .most = 1});
    measure("fold__halving_1048576ranks",
            (job){.ranks = 1 << 20, .algorithm = "halvingDoubling", .most = 1});
    job apart = {.model = "llama-3-8b",
                 .tp = 8,
                 .pp = 2,
                 .dp = 16,
                 .batch = 64,
                 .ranks = 256,
                 .inner = 8,
                 .fold = ORR_RUN_FOLD_OFF,
                 .most = 256};
    measure_threads("fold__8b_256ranks_every_rank", apart);
    apart.is_skewed = true;
    measure_threads("fold__8b_256ranks_skewed", apart);
    print_table();
    print_threads();
    measure_kernels();
    return 0;
}
