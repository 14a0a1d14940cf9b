/* SPDX-License-Identifier: Apache-2.0 */
/* bench_sim.c - whole simulations, from the files of all ranks to the last event, every message
 * simulated.
 *
 * One all-reduce of 16 MiB in four chunks, by halving-doubling and by rings, and a training step of
 * a language model: 8 layers, tensor parallel by 8 ranks and data parallel by the rest, both as
 * communicator groups.  docs/design/simulation_speed.md has the figures of the reference for the
 * same work.  The last one is an all-reduce over a graph of links, four per route.  All ranks do
 * the same at the same time, so each run is checked by its number of messages and by the tick at
 * which all ranks finish. */
#include "bench_input.h"

#include "run/sim.h"
#include <orrery/set.h>

#include <inttypes.h>

enum { TENSOR_RANKS = 8, LAYERS = 8, HIDDEN = 1024, SEQUENCE = 512 };

typedef struct job {
    const char *name;
    uint32_t ranks;
    bool is_step;         /* a training step; else one all-reduce */
    const char *topology; /* a network link by link; NULL: a switch, without contention */
    const char *algorithm;
    uint64_t messages, finished_at; /* expected results */
    char workload[512], system[512], network[512], groups[512];
} job;

/* ---- inputs ---- */

static orr_attr int_attr(const char *name, int64_t value)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = value}};
}

typedef struct step {
    orr_trace *t;
    uint64_t next_id, last; /* the node that the next one depends on; the first depends on none */
} step;

/* The caller sets step.last if later nodes depend on it. */
static uint64_t add_node(step *s, orr_draft d, const orr_attr *attrs, size_t count)
{
    orr_error err;
    d.id = s->next_id++;
    d.data_deps = &s->last;
    d.data_count = d.id > 0;
    d.attrs = attrs;
    d.attr_count = count;
    bench_check(orr_trace_append(s->t, &d, &err), &err);
    return d.id;
}

static uint64_t add_compute(step *s, uint64_t passes, uint64_t weights, uint64_t activations)
{
    const uint64_t ops = passes * 2 * SEQUENCE * 12 * HIDDEN * HIDDEN / TENSOR_RANKS;
    const orr_attr attrs[] = {int_attr("num_ops", (int64_t)ops),
                              int_attr("tensor_size", (int64_t)(weights + 2 * activations))};
    return add_node(
        s,
        (orr_draft){.name = orr_str_of("layer"), .type = ORR_NODE_COMP, .duration_us = 7 * passes},
        attrs, 2);
}

static uint64_t add_all_reduce(step *s, uint64_t size, uint32_t group)
{
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, group);
    const orr_attr attrs[] = {int_attr("comm_type", ORR_COLL_ALL_REDUCE),
                              int_attr("comm_size", (int64_t)size),
                              {.name = orr_str_of("pg_name"),
                               .kind = ORR_VALUE_STRING,
                               .value = {.s = orr_str_of(text)}}};
    return add_node(s, (orr_draft){.name = orr_str_of("all-reduce"), .type = ORR_NODE_COMM_COLL},
                    attrs, group ? 3 : 2);
}

/* Forward: a computation and a tensor-parallel all-reduce per layer.  Backward: the same with twice
 * the work, while the weight gradients of each layer are reduced over the data-parallel ranks. */
static void add_step(step *s, const job *j, uint32_t rank)
{
    const uint64_t activations = SEQUENCE * HIDDEN * 2;
    const uint64_t weights = (uint64_t)12 * HIDDEN * HIDDEN * 2 / TENSOR_RANKS;
    const uint32_t tensor_group = 1 + rank / TENSOR_RANKS;
    const uint32_t data_group = 1 + j->ranks / TENSOR_RANKS + rank % TENSOR_RANKS;
    for (unsigned layer = 0; layer < 2 * LAYERS; layer++) {
        const bool is_backward = layer >= LAYERS;
        s->last = add_compute(s, is_backward ? 2 : 1, weights, activations);
        s->last = add_all_reduce(s, activations, tensor_group);
        if (is_backward)
            add_all_reduce(s, weights, data_group);
    }
}

static void write_traces(const job *j)
{
    orr_error err;
    orr_set *set;
    bench_check(orr_set_create(&set, &err), &err);
    for (uint32_t r = 0; r < j->ranks; r++) {
        step s = {.t = NULL};
        bench_check(orr_trace_create(&(orr_meta){.version = orr_str_of("0.0.4")}, &s.t, &err),
                    &err);
        if (j->is_step)
            add_step(&s, j, r);
        else
            add_all_reduce(&s, 16 << 20, 0);
        bench_check(orr_trace_seal(s.t, &err), &err);
        bench_check(orr_set_add(set, s.t, &err), &err);
    }
    bench_check(orr_set_write_files(set, j->workload, NULL, 1, &err), &err);
    orr_set_close(set);
}

static FILE *open_file(const char *path)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, path);
    return f;
}

static void write_group(FILE *f, uint32_t id, uint32_t first, uint32_t stride, uint32_t count)
{
    fprintf(f, "%s\"%" PRIu32 "\":[", id > 1 ? "," : "{", id);
    for (uint32_t i = 0; i < count; i++)
        fprintf(f, "%s%" PRIu32, i ? "," : "", first + i * stride);
    putc(']', f);
}

static void write_configuration(const job *j)
{
    FILE *f = open_file(j->system);
    fprintf(
        f,
        "{\"scheduling-policy\":\"LIFO\",\"endpoint-delay\":10,\"active-chunks-per-dimension\":1,"
        "\"preferred-dataset-splits\":4,\"all-reduce-implementation\":[\"%s\"],"
        "\"collective-optimization\":\"localBWAware\",\"local-mem-bw\":50}",
        j->algorithm);
    fclose(f);
    f = open_file(j->network);
    if (j->topology)
        fputs(j->topology, f);
    else
        fprintf(f,
                "topology: [Switch]\nnpus_count: [%" PRIu32 "]\nbandwidth: [50]\nlatency: [500]\n",
                j->ranks);
    fclose(f);
    const uint32_t tensor_groups = j->ranks / TENSOR_RANKS;
    f = open_file(j->groups);
    for (uint32_t k = 0; k < tensor_groups; k++)
        write_group(f, 1 + k, k * TENSOR_RANKS, 1, TENSOR_RANKS);
    for (uint32_t k = 0; k < TENSOR_RANKS; k++)
        write_group(f, 1 + tensor_groups + k, k, TENSOR_RANKS, tensor_groups);
    fputs("}\n", f);
    fclose(f);
}

/* In a separate process, so that the memory of this one does not count for its children. */
static void make_input(const job *j)
{
    int status = 1;
    fflush(stdout);
    const pid_t child = fork();
    bench_require(child >= 0, "no process");
    if (child == 0) {
        write_traces(j);
        write_configuration(j);
        _exit(0);
    }
    bench_require(waitpid(child, &status, 0) == child && status == 0, "cannot make the input");
}

static void remove_input(const job *j)
{
    char path[600];
    for (uint32_t r = 0; r < j->ranks; r++) {
        snprintf(path, sizeof path, "%s.%" PRIu32 ".et", j->workload, r);
        unlink(path);
    }
    unlink(j->system);
    unlink(j->network);
    unlink(j->groups);
}

/* ---- runs ---- */

static double run(void *context)
{
    const job *j = context;
    const orr_sim_options opt = {.workload = j->workload,
                                 .system = j->system,
                                 .network = j->network,
                                 .groups = j->is_step ? j->groups : NULL,
                                 .threads = 1};
    orr_sim *s;
    orr_error err;
    bench_check(orr_sim_create(&opt, &s, &err), &err);
    bench_check(orr_sim_run(s, &err), &err);
    const uint64_t messages = orr_sim_messages(s);
    bench_require(messages == j->messages, "not the messages that must be");
    for (uint32_t r = 0; r < j->ranks; r++)
        bench_require(orr_sim_rank(s, r)->finished_at == j->finished_at,
                      "a rank does not finish when it must");
    orr_sim_destroy(s);
    return (double)messages / 1e6;
}

static void measure(job *j)
{
    bench_path(j->workload, sizeof j->workload, "sim");
    bench_path(j->system, sizeof j->system, "sim_system.json");
    bench_path(j->network, sizeof j->network, "sim_network.yml");
    bench_path(j->groups, sizeof j->groups, "sim_groups.json");
    make_input(j);
    bench_apart(&(bench_job){.name = j->name, .unit = "Mmsg", .run = run, .context = j});
    remove_input(j);
}

int main(void)
{
    /* Messages: 4 chunks x ranks x steps; 2 log2 n steps by halving-doubling, 2 (n - 1) by a
     * ring.  Ticks of the ring: a step is 10 ns at the endpoint, 2 x 500 ns of latency and 76 ns
     * for 4096 bytes; the first half of the steps adds 3 x 81 ns to reduce; a last endpoint delay:
     * 4 x (2046 x 1086 + 1023 x 243 + 10). */
    job jobs[] = {
        {.name = "sim__allreduce_halving_1024ranks",
         .ranks = 1024,
         .algorithm = "halvingDoubling",
         .messages = 4 * 1024 * 20,
         .finished_at = 1207452},
        {.name = "sim__allreduce_halving_4096ranks",
         .ranks = 4096,
         .algorithm = "halvingDoubling",
         .messages = 4 * 4096 * 24,
         .finished_at = 1224788},
        {.name = "sim__allreduce_ring_1024ranks",
         .ranks = 1024,
         .algorithm = "ring",
         .messages = 4 * 1024 * 2 * 1023,
         .finished_at = 9882220},
        {.name = "sim__llm_step_1024ranks",
         .ranks = 1024,
         .is_step = true,
         .algorithm = "ring",
         .messages = 4 * 1024 * (2 * LAYERS * 2 * 7 + LAYERS * 2 * 127),
         .finished_at = 13026096},
        /* A step is 10 ns at the endpoint and four hops of 500 ns and 305 ns for 16384 bytes; half
         * of them add 3 x 327 ns: 4 x (510 x 3230 + 255 x 981 + 10).  Every rank has its own leaf,
         * so there is no contention. */
        {.name = "sim__allreduce_ring_graph_256ranks",
         .ranks = 256,
         .topology = "generate: {type: leaf-spine, ranks: 256, ranks_per_leaf: 1, spines: 8, "
                     "bandwidth: 50GiB/s, latency: 500ns}\n",
         .algorithm = "ring",
         .messages = 4 * 256 * 2 * 255,
         .finished_at = 7589860},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        measure(&jobs[i]);
    return 0;
}
