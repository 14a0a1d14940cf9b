/* SPDX-License-Identifier: Apache-2.0 */
/* bench_llm.c - training steps of an 80-layer model for many ranks, as one set; the cost depends on
 * the stages. */
#include "bench_input.h"

#include <orrery/lab/llm.h>

typedef struct job {
    uint32_t dp, micro_batches;
    char path[300];
} job;

static double run(void *context)
{
    const job *j = context;
    const orr_llm_options opt = {
        .tp = 8, .pp = 8, .dp = j->dp, .seq = 8192, .batch = (uint64_t)j->dp * j->micro_batches};
    orr_model m;
    orr_set *set;
    orr_error err;
    bench_check(orr_model_load("llama-3-70b", &m, &err), &err);
    bench_check(orr_llm_training(&m, &opt, &set, &err), &err);
    bench_check(orr_set_save(set, j->path, NULL, &err), &err);
    bench_require(orr_set_class_count(set) == 8, "a stage is not one class");
    const double ranks = orr_set_rank_count(set);
    orr_set_close(set);
    return ranks;
}

static void measure(const char *name, job j)
{
    snprintf(j.path, sizeof j.path, "%s/orrery-bench-%d.orr",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".", (int)getpid());
    run(&j);
    const double mb = bench_file_mb(j.path);
    bench_apart(
        &(bench_job){.name = name, .unit = "ranks", .run = run, .context = &j, .input_mb = mb});
    unlink(j.path);
}

int main(void)
{
    measure("llm__set_80layers_1024ranks", (job){16, 8, ""});
    measure("llm__set_80layers_32768ranks", (job){512, 8, ""});
    measure("llm__set_80layers_131072ranks", (job){2048, 8, ""});
    measure("llm__set_80layers_4096ranks_64batches", (job){64, 64, ""});
    return 0;
}
