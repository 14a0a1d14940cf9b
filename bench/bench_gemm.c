/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gemm.c - converts shapes to a table of layers: all 96 blocks of GPT-3 (960 layers) as text
 * and as traces; ResNet-50; a sweep over 147 arrays.
 *
 * No state is kept between runs: a row is a whole run of the generator without program start. */
#include "bench_input.h"

#include <orrery/lab/gemm.h>

enum { BLOCKS = 96, BLOCK_LAYERS = 10, RESNET_LAYERS = 54, CELLS = 147 };

typedef struct job {
    size_t example;
    uint32_t repeat;
    const char *to;
    bool as_set;
} job;

static orr_shapes *read_example(size_t i)
{
    orr_shapes_example e;
    orr_shapes *s;
    orr_error err;
    bench_require(orr_shapes_example_at(i, &e), "no such example");
    bench_check(orr_shapes_parse((orr_span){(const uint8_t *)e.text.ptr, e.text.len}, e.name, NULL,
                                 &s, &err),
                &err);
    return s;
}

static orr_gemm_options options_of(const job *j)
{
    return (orr_gemm_options){.policy = ORR_POLICY_DATA,
                              .npus = 64,
                              .hardware = orr_hardware_find("h200"),
                              .repeat = j->repeat};
}

static void write_table(const job *j, const orr_layers *t)
{
    const orr_layers_expand opt = {.ranks = 64, .passes = 1};
    orr_set *set;
    orr_error err;
    if (!j->as_set) {
        bench_check(orr_layers_write(t, j->to, ORR_LAYERS_PLAIN, &err), &err);
        return;
    }
    bench_check(orr_layers_set(t, &opt, &set, &err), &err);
    bench_check(orr_set_save(set, j->to, NULL, &err), &err);
    orr_set_close(set);
}

static double run_generator(void *context)
{
    const job *j = context;
    const orr_gemm_options opt = options_of(j);
    orr_shapes *s = read_example(j->example);
    orr_gemm *g;
    orr_layers *t;
    orr_error err;
    bench_check(orr_gemm_create(s, &opt, &g, &err), &err);
    bench_check(orr_gemm_table(g, &t, &err), &err);
    const size_t layers = orr_layers_count(t);
    bench_require(layers == (j->example ? BLOCKS * BLOCK_LAYERS : RESNET_LAYERS),
                  "layers are missing");
    write_table(j, t);
    orr_layers_free(t);
    orr_gemm_destroy(g);
    orr_shapes_free(s);
    return (double)layers;
}

static double run_sweep(void *context)
{
    const job *j = context;
    const orr_gemm_options opt = options_of(j);
    orr_shapes *s = read_example(j->example);
    orr_gemm_sweep *w;
    orr_error err;
    bench_check(orr_gemm_sweep_create(s, &opt, 8, 512, &w, &err), &err);
    orr_gemm_sweep_destroy(w);
    orr_shapes_free(s);
    return CELLS;
}

int main(void)
{
    char text[300], set[300];
    job blocks = {.example = 1, .repeat = BLOCKS, .to = bench_path(text, sizeof text, "gpt3.txt")};
    job traces = {.example = 1,
                  .repeat = BLOCKS,
                  .as_set = true,
                  .to = bench_path(set, sizeof set, "gpt3.orr")};
    job resnet = {.example = 0, .repeat = 1, .to = blocks.to};
    bench_apart(&(bench_job){.name = "gemm__gpt3_960_layers_text",
                             .unit = "layers",
                             .run = run_generator,
                             .context = &blocks});
    bench_apart(&(bench_job){.name = "gemm__gpt3_960_layers_set",
                             .unit = "layers",
                             .run = run_generator,
                             .context = &traces});
    bench_apart(&(bench_job){
        .name = "gemm__resnet50_text", .unit = "layers", .run = run_generator, .context = &resnet});
    bench_apart(&(bench_job){.name = "gemm__resnet50_sweep_147_arrays",
                             .unit = "arrays",
                             .run = run_sweep,
                             .context = &resnet});
    return 0;
}
