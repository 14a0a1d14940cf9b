/* SPDX-License-Identifier: Apache-2.0 */
/* bench_serve.c - generates the traces of LLM serving.
 *
 * A batch that decodes on many equal replicas, which must cost as much as one.  A list of requests
 * on eight replicas, each with its own iterations: scheduling, estimating and writing.  Experts
 * over 256 ranks in lockstep. */
#include "bench_input.h"

#include <orrery/lab/serve.h>

enum { REQUESTS = 200 };

typedef struct job {
    const char *model;
    orr_serve_options opt;
    uint32_t ranks, classes; /* expected; 0 classes: any number */
} job;

static double run(void *context)
{
    const job *j = context;
    orr_serve_report r;
    orr_error err;
    orr_set *s;
    bench_check(orr_serve(orr_model_find(j->model), &j->opt, &s, &r, &err), &err);
    bench_require(orr_set_rank_count(s) == j->ranks, "ranks are missing");
    bench_require(j->classes == 0 || orr_set_class_count(s) == j->classes, "equal ranks differ");
    orr_set_close(s);
    return (double)r.nodes / 1e6;
}

/* Poisson-like arrivals: gaps and lengths from a fixed sequence. */
static void make_requests(orr_serve_request *q)
{
    uint64_t state = 1, at = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at += (state >> 40) % 40000;
        q[i] = (orr_serve_request){at, 50 + (state >> 33) % 2000, 4 + (state >> 50) % 60};
    }
}

int main(void)
{
    static orr_serve_request requests[REQUESTS];
    const uint64_t roomy = UINT64_C(192000000000);
    make_requests(requests);
    job decode = {
        .model = "llama-3-70b",
        .opt = {.ranks = {.tp = 8, .dp = 4096}, .batch = 4096 * 16, .prompt = 2048, .output = 64},
        .ranks = 32768,
        .classes = 1};
    job list = {.model = "llama-3-8b",
                .opt = {.ranks = {.tp = 2, .dp = 8},
                        .requests = requests,
                        .request_count = REQUESTS,
                        .chunk = 512},
                .ranks = 16};
    job experts = {.model = "deepseek-v3",
                   .opt = {.ranks = {.tp = 4, .dp = 64, .ep = 256},
                           .dtype = ORR_DTYPE_FP8,
                           .device_bytes = roomy,
                           .batch = 64 * 32,
                           .phase = ORR_SERVE_DECODE,
                           .prompt = 4096,
                           .output = 16},
                   .ranks = 256,
                   .classes = 1};
    bench_apart(&(bench_job){.name = "serve__llama70b_batch_32768ranks",
                             .unit = "Mnodes",
                             .run = run,
                             .context = &decode});
    bench_apart(&(bench_job){.name = "serve__llama8b_200requests_16ranks",
                             .unit = "Mnodes",
                             .run = run,
                             .context = &list});
    bench_apart(&(bench_job){.name = "serve__deepseek_v3_decode_256ranks",
                             .unit = "Mnodes",
                             .run = run,
                             .context = &experts});
    return 0;
}
