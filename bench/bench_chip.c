/* SPDX-License-Identifier: Apache-2.0 */
/* bench_chip.c - kernel times on a chip: a million different kernels, as structs and as texts, and
 * lookups in the table of measured kernels alone. */
#include "bench.h"
#include "models/compute/atlas/atlas.h"

#include <orrery/lab/chip.h>

#include <math.h>

enum { COUNT = 1000000 };

typedef struct job {
    const orr_chip *chip;
    orr_kernel *kernels;
    char *texts;
    size_t *ends;
    double *points;       /* logarithms of m, n, k of each */
    orr_kernel_kind kind; /* ORR_KERNEL_KINDS: a mixture */
} job;

/* The mixture of a step: half products, the rest attention, norms, activations and memory
 * passes. */
static orr_kernel make(uint64_t i, orr_kernel_kind kind)
{
    const uint64_t a = 1 + i * 2654435761u % 16384, b = 64 * (1 + i % 128),
                   c = 64 * (1 + i / 7 % 96);
    static const orr_kernel_kind mixture[8] = {
        ORR_KERNEL_GEMM, ORR_KERNEL_GEMM,       ORR_KERNEL_GEMM,        ORR_KERNEL_GEMM,
        ORR_KERNEL_NORM, ORR_KERNEL_ACTIVATION, ORR_KERNEL_ELEMENTWISE, ORR_KERNEL_ATTENTION};
    kind = kind < ORR_KERNEL_KINDS ? kind : mixture[i % 8];
    switch (kind) {
    case ORR_KERNEL_NORM:
        return (orr_kernel){.kind = kind, .form = ORR_FORM_RMS, .m = a, .n = b};
    case ORR_KERNEL_ACTIVATION:
        return (orr_kernel){.kind = kind, .form = ORR_FORM_SILU, .is_gated = true, .m = a * b};
    case ORR_KERNEL_ELEMENTWISE:
        return (orr_kernel){.kind = kind, .read = 2 * a * b, .write = a * b};
    case ORR_KERNEL_ATTENTION:
        return (orr_kernel){.kind = kind,
                            .batch = 1 + i % 8,
                            .heads = 32,
                            .kv_heads = 8,
                            .head = 128,
                            .q = a,
                            .is_causal = true};
    default:
        return (orr_kernel){.kind = kind, .m = a, .n = b, .k = c};
    }
}

static void time_all(void *context)
{
    const job *j = context;
    double sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        orr_kernel_time t;
        bench_require(orr_chip_time(j->chip, &j->kernels[i], &t), "a kernel has no time");
        sum += t.us;
    }
    bench_require(sum > COUNT, "kernels take no time");
}

/* The table lookup of a kernel time: a class by its key, and the value at a point of three axes. */
static void look_all(void *context)
{
    const job *j = context;
    const uint32_t chip = (uint32_t)(j->chip - orr_chip_at(0));
    double sum = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const double *const x = &j->points[3 * i];
        const atlas_class *c =
            atlas_find(atlas_key(chip, ATLAS_GEMM_VARIANT, ORR_TYPE_BF16, (uint32_t)(i % 3)));
        bench_require(c != NULL, "the table has no products");
        sum += fabs(atlas_look(c, x).value);
    }
    bench_require(sum > 0, "the table is empty");
}

static void parse_and_time(void *context)
{
    const job *j = context;
    size_t at = 0;
    for (size_t i = 0; i < COUNT; i++) {
        orr_kernel k;
        orr_kernel_time t;
        bench_require(orr_kernel_parse((orr_str){j->texts + at, j->ends[i] - at}, &k, NULL) ==
                              ORR_OK &&
                          orr_chip_time(j->chip, &k, &t),
                      "a text has no time");
        at = j->ends[i];
    }
}

static void fill(job *j)
{
    size_t at = 0;
    for (size_t i = 0; i < COUNT; i++) {
        j->kernels[i] = make(i, j->kind);
        at += orr_kernel_text(&j->kernels[i], j->texts + at, ORR_KERNEL_TEXT);
        j->ends[i] = at;
    }
}

int main(void)
{
    job j = {.chip = orr_chip_find("h200"), .kind = ORR_KERNEL_KINDS};
    j.kernels = malloc(COUNT * sizeof *j.kernels);
    j.texts = malloc((size_t)COUNT * ORR_KERNEL_TEXT);
    j.ends = malloc(COUNT * sizeof *j.ends);
    j.points = malloc((size_t)3 * COUNT * sizeof *j.points);
    bench_require(j.chip && j.kernels && j.texts && j.ends && j.points, "no memory");
    fill(&j);
    bench_measure("chip__time_1m_kernels", "Mkernels", COUNT / 1e6, time_all, &j);
    bench_measure("chip__parse_and_time_1m", "Mkernels", COUNT / 1e6, parse_and_time, &j);
    static const orr_kernel_kind kinds[] = {ORR_KERNEL_GEMM, ORR_KERNEL_NORM,
                                            ORR_KERNEL_ELEMENTWISE, ORR_KERNEL_ATTENTION};
    static const char *const names[] = {"chip__time_1m_gemm", "chip__time_1m_norm",
                                        "chip__time_1m_elementwise", "chip__time_1m_attention"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        j.kind = kinds[i];
        fill(&j);
        bench_measure(names[i], "Mkernels", COUNT / 1e6, time_all, &j);
    }
    j.kind = ORR_KERNEL_GEMM;
    for (size_t i = 0; i < COUNT; i++) {
        const orr_kernel k = make(i, j.kind);
        j.points[3 * i] = log2((double)k.m);
        j.points[3 * i + 1] = log2((double)k.n);
        j.points[3 * i + 2] = log2((double)k.k);
    }
    bench_measure("chip__look_up_1m", "Mlookups", COUNT / 1e6, look_all, &j);
    free(j.points);
    free(j.kernels);
    free(j.texts);
    free(j.ends);
    return 0;
}
