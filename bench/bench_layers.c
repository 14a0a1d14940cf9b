/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
/* bench_layers.c - converts tables of layers and task graphs from text to traces.
 *
 * The first three rows are a network of the size of ResNet-50 (54 layers, data parallel) for 1,024
 * ranks, from the text file to one .orr and to one file per rank, ours and those of
 * chakra_converter; the files go to memory-backed storage where available, so that the disk is not
 * measured.  Then large tables and graphs, for the readers. */
#include "bench_input.h"
#include "compat/chakra/chakra.h"

#include <orrery/lab/flexflow.h>
#include <orrery/lab/layers.h>

#include <inttypes.h>

enum { RANKS = 1024, LAYERS = 54, MANY_LAYERS = 200000, TASKS = 100000 };

typedef struct job {
    const char *path, *to;
    bool is_compat;
} job;

/* Rows like those of a convolutional network: times and sizes vary, only weight gradients are
 * reduced. */
static void write_table(const char *path, uint32_t layers)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "cannot write the table");
    fprintf(f, "DATA\n%" PRIu32 "\n", layers);
    for (uint32_t i = 0; i < layers; i++)
        fprintf(f, "layer_%" PRIu32 "_conv\t-1\t%u\tNONE\t0\t%u\tNONE\t0\t%u\tALLREDUCE\t%u\t%u\n",
                i, 3456 + i * 37 % 9000, 3648 + i * 53 % 9000, 7488 + i * 71 % 20000,
                16384 * (1 + i % 144), 749 + i % 100);
    bench_require(fclose(f) == 0, "cannot write the table");
}

/* A chain on each of 64 devices; every tenth task waits for a message from the previous device. */
static void write_graph(const char *path)
{
    FILE *f = fopen(path, "w");
    bench_require(f != NULL, "cannot write the graph");
    fprintf(f, "digraph taskgraph {\n");
    for (uint32_t i = 0; i < TASKS; i++) {
        const uint32_t device = i % 64, from = (device + 63) % 64;
        if (i % 10 == 9 && i >= 64)
            fprintf(
                f,
                "  node%u [label=\"{device_id=%u|Comm|Comm|COMM_SEND_RECV_NODE|src_device_id=%u|"
                "dst_device_id=%u|comm_size=4096|run_time=0.1}\"];\n",
                i, device, from, device);
        else
            fprintf(f,
                    "  node%u [color=red,label=\"{device_id=%u|Dense_%u|Forward|COMP_NODE|"
                    "simulated_run_time=0.0205856}\",shape=record];\n",
                    i, device, i);
        if (i >= 64)
            fprintf(f, "  node%u -> node%u;\n", i - 64, i);
    }
    fprintf(f, "}\n");
    bench_require(fclose(f) == 0, "cannot write the graph");
}

static orr_set *expand(const job *j, uint32_t ranks)
{
    const orr_layers_read_options how = {.rules = j->is_compat ? &chakra_text_rules : NULL};
    const orr_layers_expand opt = {
        .ranks = ranks, .passes = 1, .rules = j->is_compat ? &chakra_text_rules : NULL};
    orr_error err;
    orr_layers *t;
    orr_set *s;
    bench_check(orr_layers_read(j->path, &how, &t, &err), &err);
    bench_check(orr_layers_set(t, &opt, &s, &err), &err);
    orr_layers_free(t);
    bench_require(orr_set_rank_count(s) == ranks && orr_set_class_count(s) == 1, "ranks differ");
    return s;
}

static double run_set(void *context)
{
    const job *j = context;
    orr_error err;
    orr_set *s = expand(j, RANKS);
    bench_require(orr_trace_columns(orr_set_trace(s, 0))->count == 4 * LAYERS - 1, "nodes differ");
    bench_check(orr_set_save(s, j->to, NULL, &err), &err);
    orr_set_close(s);
    return RANKS;
}

static double run_files(void *context)
{
    const job *j = context;
    orr_error err;
    orr_set *s = expand(j, RANKS);
    bench_check(orr_set_write_files(s, j->to, NULL, 1, &err), &err);
    orr_set_close(s);
    return RANKS;
}

static double run_table(void *context)
{
    orr_set *s = expand(context, 1);
    const uint32_t nodes = orr_trace_columns(orr_set_trace(s, 0))->count;
    bench_require(nodes == 4 * MANY_LAYERS - 1, "nodes differ");
    orr_set_close(s);
    return nodes / 1e6;
}

static double run_graph(void *context)
{
    const job *j = context;
    orr_error err;
    orr_flexflow *g;
    orr_set *s;
    bench_check(orr_flexflow_read(j->path, &g, &err), &err);
    bench_check(orr_flexflow_set(g, &(orr_flexflow_expand){.mhz = 1000}, &s, &err), &err);
    bench_require(orr_set_rank_count(s) == 64, "devices differ");
    orr_set_close(s);
    orr_flexflow_free(g);
    return TASKS / 1e6;
}

static void remove_files(const char *prefix)
{
    char path[700];
    for (unsigned r = 0; r < RANKS; r++) {
        snprintf(path, sizeof path, "%s.%u.et", prefix, r);
        unlink(path);
    }
}

static void measure_files(const char *name, const char *path, bool is_compat)
{
    char folder[] = "/dev/shm/orrery-bench-XXXXXX", to[600];
    const bool is_memory = mkdtemp(folder) != NULL;
    if (is_memory)
        snprintf(to, sizeof to, "%s/layers", folder);
    else
        bench_path(to, sizeof to, "layers");
    job j = {.path = path, .to = to, .is_compat = is_compat};
    bench_apart(&(bench_job){name, "ranks", run_files, NULL, &j, path});
    remove_files(to);
    if (is_memory)
        rmdir(folder);
}

int main(void)
{
    char table[512], many[512], graph[512], set[512];
    bench_path(table, sizeof table, "layers.txt");
    bench_path(many, sizeof many, "many_layers.txt");
    bench_path(graph, sizeof graph, "tasks.dot");
    bench_path(set, sizeof set, "layers.orr");
    write_table(table, LAYERS);
    write_table(many, MANY_LAYERS);
    write_graph(graph);
    job one = {.path = table, .to = set}, large = {.path = many}, tasks = {.path = graph};
    bench_apart(&(bench_job){"text__54_layers_1024_as_set", "ranks", run_set, NULL, &one, table});
    measure_files("text__54_layers_1024_as_files", table, false);
    measure_files("text__54_layers_1024_as_old_files", table, true);
    bench_apart(&(bench_job){"text__200k_layers", "Mnodes", run_table, NULL, &large, many});
    bench_apart(&(bench_job){"flexflow__100k_tasks", "Mtasks", run_graph, NULL, &tasks, graph});
    return 0;
}
