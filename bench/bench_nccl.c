/* SPDX-License-Identifier: Apache-2.0 */
/* room: nccl_generator */
/* bench_nccl.c - 201,728 rows of NVTX and more, of eight GPUs on two nodes: reading only;
 * conversion to a schedule by our rules and by the old generator's; and with the rows of one GPU at
 * a time in memory. */
#include "bench_input.h"
#include "compat/nccl_generator/nccl_generator.h"

static inline void synth_require(int condition, const char *what)
{
    bench_require(condition, what);
}

#include "../tests/unit/nsys_synth.h"

#include <orrery/lab/nccl.h>
#include <orrery/lab/nsys.h>

enum { NODES = 2, GPUS = 4, CHANNELS = 4, ROUNDS = 3400, LEAST_ROWS = 201728 };

typedef struct job {
    char folder[400], table[440], output[440];
    bool is_compat;
    uint64_t memory;
} job;

static double run_read(void *context)
{
    const job *j = context;
    uint64_t rows = 0;
    for (int node = 0; node < NODES; node++) {
        char path[500];
        orr_nsys *n;
        orr_nsys_row row;
        orr_error err;
        orr_code code;
        snprintf(path, sizeof path, "%s/trace_nid%06d.sqlite", j->folder, node);
        bench_check(orr_nsys_open(path, NULL, &n, &err), &err);
        while ((code = orr_nsys_next(n, &row, &err)) == ORR_OK)
            rows++;
        bench_check(code, &err);
        orr_nsys_close(n);
    }
    bench_require(rows > LEAST_ROWS, "rows are missing");
    return (double)rows / 1e3;
}

static double run_convert(void *context)
{
    const job *j = context;
    const char *paths[] = {j->folder};
    const orr_nccl_options opt = {.output = j->output,
                                  .simple_table = j->table,
                                  .rules = j->is_compat ? &ncg_rules : NULL,
                                  .memory = j->memory};
    orr_nccl_report r;
    orr_error err;
    bench_check(orr_nccl_convert(paths, 1, &opt, &r, &err), &err);
    bench_require(r.ranks == NODES * GPUS && r.rows > LEAST_ROWS && r.messages > 0,
                  "work is missing");
    return (double)r.rows / 1e3;
}

int main(void)
{
    job j = {0};
    char name[100];
    bench_path(j.folder, sizeof j.folder, "nsys_exports");
    snprintf(name, sizeof name, "%s", "nsys_table.json");
    bench_path(j.table, sizeof j.table, name);
    bench_path(j.output, sizeof j.output, "nccl.goal");
    mkdir(j.folder, 0777);
    synth_write(&(synth){
        .folder = j.folder, .nodes = NODES, .gpus = GPUS, .channels = CHANNELS, .rounds = ROUNDS});
    synth_write_table(j.table);
    bench_apart(&(bench_job){
        .name = "nsys__read_200k_rows", .unit = "krows", .run = run_read, .context = &j});
    bench_apart(&(bench_job){
        .name = "nccl__200k_rows_8gpus", .unit = "krows", .run = run_convert, .context = &j});
    j.memory = 1 << 20;
    bench_apart(&(bench_job){.name = "nccl__200k_rows_one_gpu_at_a_time",
                             .unit = "krows",
                             .run = run_convert,
                             .context = &j});
    j.memory = 0;
    j.is_compat = true;
    bench_apart(&(bench_job){.name = "nccl__200k_rows_8gpus_compat",
                             .unit = "krows",
                             .run = run_convert,
                             .context = &j});
    unlink(j.output);
    return 0;
}
