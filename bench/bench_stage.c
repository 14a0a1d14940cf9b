/* SPDX-License-Identifier: Apache-2.0 */
/* room: stage */
/* bench_stage.c - generates the traces of an 80-layer GPT for many ranks, as files and as one set.
 *
 * Files go to memory-backed storage where available, so that the disk is not measured.  The
 * reference takes 47, 57, 125 and 464 s for 8, 64, 1,024 and 4,096 ranks. */
#include "bench_input.h"

#include <orrery/lab/stage.h>

#include <dirent.h>

typedef struct job {
    uint64_t dp, tp, pp, pieces;
    char folder[256];
} job;

static orr_stage *make(const job *j)
{
    orr_stage_options o = orr_stage_defaults();
    orr_stage *made;
    orr_error err;
    o.model = ORR_STAGE_GPT;
    o.dp = j->dp;
    o.tp = j->tp;
    o.pp = j->pp;
    o.batch = 64 * j->pieces;
    o.micro_batch = 64;
    bench_check(orr_stage_create(&o, &made, &err), &err);
    bench_require(orr_stage_rank_count(made) == j->dp * j->tp * j->pp, "ranks are missing");
    return made;
}

static double run_files(void *context)
{
    const job *j = context;
    char pattern[300];
    orr_error err;
    orr_stage *made = make(j);
    snprintf(pattern, sizeof pattern, "%s/w.%%d.et", j->folder);
    bench_check(orr_stage_write_files(made, pattern, ORR_STAGE_ET, 0, &err), &err);
    const double ranks = orr_stage_rank_count(made);
    orr_stage_destroy(made);
    return ranks;
}

static double run_set(void *context)
{
    const job *j = context;
    char path[300];
    orr_error err;
    orr_set *set;
    orr_stage *made = make(j);
    snprintf(path, sizeof path, "%s/w.orr", j->folder);
    bench_check(orr_stage_set(made, &set, &err), &err);
    bench_check(orr_set_save(set, path, NULL, &err), &err);
    bench_require(orr_set_class_count(set) == j->pp, "a stage is not one class");
    const double ranks = orr_set_rank_count(set);
    orr_set_close(set);
    orr_stage_destroy(made);
    return ranks;
}

/* Returns the bytes written, and removes the files. */
static double clear(const char *folder)
{
    char path[600];
    double mb = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == 'w') {
            mb += bench_file_mb(path);
            unlink(path);
        }
    }
    if (d)
        closedir(d);
    return mb;
}

/* The last column is the size of the output, known after one run. */
static void measure(const char *name, double (*run)(void *context), job j)
{
    const char *memory = "/dev/shm";
    snprintf(j.folder, sizeof j.folder, "%s/orrery-bench-XXXXXX",
             access(memory, W_OK) == 0 ? memory : ".");
    bench_require(mkdtemp(j.folder) != NULL, "no folder");
    run(&j);
    const double mb = clear(j.folder);
    bench_apart(
        &(bench_job){.name = name, .unit = "ranks", .run = run, .context = &j, .input_mb = mb});
    clear(j.folder);
    rmdir(j.folder);
}

int main(void)
{
    measure("stage__files_80layers_8ranks", run_files, (job){4, 2, 1, 1, ""});
    measure("stage__files_80layers_64ranks", run_files, (job){8, 8, 1, 1, ""});
    measure("stage__files_80layers_1024ranks_pp8", run_files, (job){16, 8, 8, 1, ""});
    measure("stage__files_80layers_1024ranks_pp1", run_files, (job){128, 8, 1, 1, ""});
    measure("stage__files_80layers_4096ranks_pp8", run_files, (job){64, 8, 8, 1, ""});
    measure("stage__set_80layers_32768ranks", run_set, (job){512, 8, 8, 1, ""});
    measure("stage__set_80layers_131072ranks", run_set, (job){2048, 8, 8, 1, ""});
    measure("stage__set_16pieces_4096ranks", run_set, (job){64, 8, 8, 16, ""});
    return 0;
}
