/* SPDX-License-Identifier: Apache-2.0 */
/* bench_pytorch.c - converts a linked PyTorch trace to a Chakra trace, including reading and
 * writing; work is megabytes of JSON.
 *
 * Chakra's converter takes 11.7 s CPU time and 474 MB for a linked trace of 134 MB.  Three sizes
 * show that time and memory grow linearly with the input. */
#include "bench_input.h"
#include "torch_trace.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/link.h>
#include <orrery/lab/pytorch.h>

typedef struct job {
    char path[600];
    uint32_t steps;
    bool is_compat;
    uint64_t nodes; /* at least */
} job;

static double run_convert(void *context)
{
    const job *j = context;
    orr_linked *l;
    orr_trace *t;
    orr_error err;
    bench_check(
        orr_linked_read(
            j->path,
            &(orr_linked_options){
                .rules = j->is_compat ? orr_compat_at(ORR_RULES_CONVERT, 0)->convert : NULL},
            &l, &err),
        &err);
    bench_check(orr_linked_trace(l, NULL, &t, NULL, &err), &err);
    orr_linked_free(l);
    bench_require(orr_trace_columns(t)->count >= j->nodes, "nodes are missing");
    bench_check(orr_trace_write(t, "/dev/null", NULL, &err), &err);
    orr_trace_destroy(t);
    return bench_file_mb(j->path);
}

/* The first of two ranks, linked. */
static void make_linked(const job *j)
{
    char prefix[560], host[600], device[600];
    orr_link *l;
    orr_error err;
    bench_path(prefix, sizeof prefix, "torch");
    torch_make(
        &(torch_job){.prefix = prefix, .ranks = 2, .steps = j->steps, .layers = 48, .seed = 1});
    snprintf(host, sizeof host, "%s.0.host.json", prefix);
    snprintf(device, sizeof device, "%s.0.device.json", prefix);
    bench_check(orr_link_open(host, device,
                              &(orr_link_options){.rules = orr_compat_at(ORR_RULES_LINK, 0)->link},
                              &l, &err),
                &err);
    bench_check(orr_link_write(l, j->path, &err), &err);
    orr_link_close(l);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(host, sizeof host, "%s.%d.host.json", prefix, rank);
        snprintf(device, sizeof device, "%s.%d.device.json", prefix, rank);
        unlink(host);
        unlink(device);
    }
}

/* In a separate process, so that its memory is not counted here. */
static void need_linked(const job *j)
{
    int status = 1;
    fflush(stdout);
    const pid_t child = fork();
    bench_require(child >= 0, "no process");
    if (child == 0) {
        make_linked(j);
        _exit(0);
    }
    bench_require(waitpid(child, &status, 0) == child && status == 0, "cannot make the input");
}

static void measure(job *j, const char *size)
{
    char name[80];
    for (int is_compat = 0; is_compat < 2; is_compat++) {
        j->is_compat = is_compat;
        snprintf(name, sizeof name, "convert__pytorch_%s%s", size, is_compat ? "_compat" : "");
        bench_apart(&(bench_job){name, "MB", run_convert, NULL, j, j->path});
    }
}

int main(void)
{
    static const struct {
        uint32_t steps;
        const char *name;
    } sizes[] = {{14, "34mb"}, {56, "136mb"}, {224, "544mb"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        job j = {.steps = sizes[i].steps, .nodes = sizes[i].steps * (uint64_t)1000};
        bench_path(j.path, sizeof j.path, "torch_linked.json");
        need_linked(&j);
        measure(&j, sizes[i].name);
        unlink(j.path);
    }
    return 0;
}
