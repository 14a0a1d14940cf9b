/* SPDX-License-Identifier: Apache-2.0 */
/* room: scale_sim */
/* bench_systolic.c - layers on a systolic array: every figure of ResNet-50 under the three sets of
 * rules, with large buffers and with small ones; large products of matrices; cycles alone.
 *
 * Results are checked against figures of the reference programs where those exist
 * (tests/golden/systolic_rows.txt), otherwise against closed forms. */
#include "bench_input.h"

#include "compat/scale_sim/scale_sim.h"

#include <orrery/lab/systolic.h>

enum {
    RESNET_LAYERS = 54,
    RESNET50_V1 = 194510, /* cycles of all layers, as v1 reports them */
    CYCLES_ONLY = 100000
};

typedef struct job {
    const orr_rules_systolic *rules;
    orr_systolic_array array;
    orr_systolic_layer layers[RESNET_LAYERS];
    int count;
    uint64_t cycles; /* of all layers; 0: not known in advance */
} job;

static orr_systolic_layer conv(
    uint64_t size, uint64_t filter, uint64_t channels, uint64_t filters, uint64_t stride)
{
    return (orr_systolic_layer){size, size, filter, filter, channels, filters, stride, stride};
}

/* As in the topology file of SCALE-Sim: images are not padded. */
static void add_resnet50(job *j)
{
    static const struct {
        uint64_t size, width, blocks;
    } stages[] = {{56, 64, 3}, {28, 128, 4}, {14, 256, 6}, {7, 512, 3}};
    uint64_t channels = 64;
    j->layers[j->count++] = conv(224, 7, 3, 64, 2);
    for (int s = 0; s < 4; s++)
        for (uint64_t b = 0; b < stages[s].blocks; b++) {
            const uint64_t stride = b == 0 && s > 0 ? 2 : 1, size = stages[s].size;
            const uint64_t width = stages[s].width;
            j->layers[j->count++] = conv(size * stride, 1, channels, width, stride);
            j->layers[j->count++] = conv(size, 3, width, width, 1);
            j->layers[j->count++] = conv(size, 1, width, 4 * width, 1);
            if (b == 0)
                j->layers[j->count++] = conv(size * stride, 1, channels, 4 * width, stride);
            channels = 4 * width;
        }
    j->layers[j->count++] = conv(1, 1, 2048, 1000, 1);
    bench_require(j->count == RESNET_LAYERS, "layers are missing");
}

static orr_systolic_array array_of(uint64_t size, uint64_t words, orr_dataflow flow)
{
    return (orr_systolic_array){.rows = size,
                                .columns = size,
                                .dataflow = flow,
                                .ifmap_words = words,
                                .filter_words = words,
                                .ofmap_words = words,
                                .filter_offset = 10000000,
                                .ofmap_offset = 20000000};
}

static double run_layers(void *context)
{
    const job *j = context;
    uint64_t cycles = 0;
    for (int i = 0; i < j->count; i++) {
        orr_systolic_result r;
        orr_error err;
        bench_check(orr_systolic_run(&j->array, &j->layers[i], j->rules, &r, &err), &err);
        bench_require(r.stalls == 0 || j->array.bandwidth > 0, "it stalled");
        cycles += r.cycles;
    }
    bench_require(j->cycles == 0 || cycles == j->cycles, "wrong cycles");
    return j->count;
}

static double run_cycles(void *context)
{
    const job *j = context;
    uint64_t sum = 0;
    for (int n = 0; n < CYCLES_ONLY; n++) {
        uint64_t cycles;
        orr_error err;
        bench_check(
            orr_systolic_cycles(&j->array, &j->layers[n % j->count], j->rules, &cycles, &err),
            &err);
        sum += cycles;
    }
    bench_require(sum > 0, "no cycles");
    return CYCLES_ONLY;
}

static void bench_resnet50(const char *name,
                           const orr_rules_systolic *rules,
                           orr_systolic_array array,
                           uint64_t cycles)
{
    job j = {.rules = rules, .array = array, .cycles = cycles};
    add_resnet50(&j);
    bench_apart(&(bench_job){.name = name, .unit = "layers", .run = run_layers, .context = &j});
}

static void bench_gemm(const char *name,
                       const orr_rules_systolic *rules,
                       orr_systolic_array array,
                       uint64_t m,
                       uint64_t n,
                       uint64_t k)
{
    job j = {.rules = rules, .array = array, .count = 1};
    orr_error err;
    j.layers[0] = orr_systolic_gemm(m, n, k);
    if (array.bandwidth == 0)
        bench_check(orr_systolic_cycles(&j.array, &j.layers[0], rules, &j.cycles, &err), &err);
    bench_apart(&(bench_job){.name = name, .unit = "layers", .run = run_layers, .context = &j});
}

int main(void)
{
    const orr_systolic_array google = array_of(256, 8 << 20, ORR_DATAFLOW_OS);
    const orr_systolic_array small = array_of(128, 64 << 10, ORR_DATAFLOW_WS);
    orr_systolic_array slow = small;
    slow.bandwidth = 16;
    bench_resnet50("systolic__resnet50_v1_8mib", &orr__scale_sim_v1, google, RESNET50_V1);
    bench_resnet50("systolic__resnet50_v2_8mib", &orr__scale_sim_v2, google, 0);
    bench_resnet50("systolic__resnet50_8mib", NULL, google, 0);
    bench_resnet50("systolic__resnet50_v1_64kib", &orr__scale_sim_v1, small, 0);
    bench_resnet50("systolic__resnet50_v2_64kib", &orr__scale_sim_v2, small, 0);
    bench_resnet50("systolic__resnet50_64kib", NULL, small, 0);
    bench_resnet50("systolic__resnet50_v2_64kib_user", &orr__scale_sim_v2, slow, 0);
    bench_resnet50("systolic__resnet50_64kib_16w", NULL, slow, 0);
    bench_gemm("systolic__gemm_512x384x1536_v1", &orr__scale_sim_v1, small, 512, 384, 1536);
    bench_gemm("systolic__gemm_512x384x1536_v2", &orr__scale_sim_v2, small, 512, 384, 1536);
    const orr_systolic_array large = array_of(128, 1 << 20, ORR_DATAFLOW_OS);
    bench_gemm("systolic__gemm_4096_v1", &orr__scale_sim_v1, large, 4096, 4096, 4096);
    bench_gemm("systolic__gemm_4096_v2", &orr__scale_sim_v2, large, 4096, 4096, 4096);
    bench_gemm("systolic__gemm_4096", NULL, large, 4096, 4096, 4096);
    job j = {.rules = NULL, .array = small};
    add_resnet50(&j);
    bench_apart(&(bench_job){
        .name = "systolic__cycles_only", .unit = "layers", .run = run_cycles, .context = &j});
    return 0;
}
