/* SPDX-License-Identifier: Apache-2.0 */
/* systolic.h - what a layer costs on a systolic array: cycles, utilisation, traffic of its buffers
 * and of memory.
 *
 *     orr_systolic_array a = {.rows = 128, .columns = 128, .dataflow = ORR_DATAFLOW_WS};
 *     orr_systolic_layer gemm = orr_systolic_gemm(m, n, k);
 *     uint64_t cycles;
 *     if (orr_systolic_cycles(&a, &gemm, NULL, &cycles, &err)) return report(&err);
 *
 * Cycles are closed forms: O(1) for any layer size.  The rules are ours, or those of a generation
 * of SCALE-Sim, defects included.  Experimental: may change in the next release. */
#ifndef ORRERY_LAB_SYSTOLIC_H
#define ORRERY_LAB_SYSTOLIC_H

#include <orrery/error.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What stays in the array while the rest streams through it. */
typedef enum orr_dataflow {
    ORR_DATAFLOW_OS, /* outputs */
    ORR_DATAFLOW_WS, /* weights */
    ORR_DATAFLOW_IS  /* inputs */
} orr_dataflow;

/* How things are counted.  NULL: true counts; orrery/lab/compat.h has those of SCALE-Sim v1
 * to v3. */
typedef struct orr_rules_systolic orr_rules_systolic;

enum { ORR_SYSTOLIC_MOST_ROWS = 1 << 20 }; /* and columns */

/* Features that only SCALE-Sim v3 models.  All 0: absent. */

/* A read buffer in banks. */
typedef struct orr_systolic_banks {
    uint64_t bandwidth; /* words per cycle from memory, and per line of the buffer */
    uint64_t count, ports;
    bool has_layout; /* words are laid out as in orr_systolic_layout */
} orr_systolic_banks;

/* Layout of words in the buffers: words of each dimension per line, and the order of dimensions
 * across lines, then within a line. */
typedef struct orr_systolic_layout {
    uint64_t ifmap_factors[3], ifmap_order[6];   /* height, width, channels */
    uint64_t filter_factors[4], filter_order[8]; /* filters, channels, height, width */
} orr_systolic_layout;

typedef enum orr_systolic_storage {
    ORR_STORAGE_CSR,
    ORR_STORAGE_CSC,
    ORR_STORAGE_ELLPACK_BLOCK
} orr_systolic_storage;

/* Zero weights are skipped: as the layer says, or in blocks of random fill (is_optimized). */
typedef struct orr_systolic_sparsity {
    bool is_on, is_optimized;
    orr_systolic_storage storage;
    uint64_t block;
    uint32_t seed;
} orr_systolic_sparsity;

typedef struct orr_systolic_array {
    uint64_t rows, columns; /* of processing elements */
    orr_dataflow dataflow;
    /* Buffer sizes; our rules: 0 means unlimited. */
    uint64_t ifmap_words, filter_words, ofmap_words;
    uint64_t ifmap_offset, filter_offset, ofmap_offset; /* first word's address; v1 sorts by it */
    double bandwidth; /* words per cycle from and to memory, per operand; 0: no limit; not v1 */
    bool round_up;    /* our rules: count windows that extend past the edge too */
    orr_systolic_banks ifmap_banks, filter_banks;
    orr_systolic_layout layout;
    orr_systolic_sparsity sparsity;
} orr_systolic_array;

/* One image through one convolution.  No padding: enlarge the image. */
typedef struct orr_systolic_layer {
    uint64_t ifmap_height, ifmap_width;
    uint64_t filter_height, filter_width;
    uint64_t channels, filters;
    uint64_t stride_height, stride_width;
    /* Of every `block` consecutive weights of a filter, `nonzero` are not zero; 0: all. Only
     * SCALE-Sim v3's rules use it. */
    uint64_t nonzero, block;
} orr_systolic_layer;

/* m x k times k x n, as the equivalent layer. */
static inline orr_systolic_layer orr_systolic_gemm(uint64_t m, uint64_t n, uint64_t k)
{
    const orr_systolic_layer l = {m, k, 1, k, 1, n, 1, 1, 0, 0};
    return l;
}

/* Cycles until the last output is written, with infinitely fast memory.  Constant time. */
ORR_API orr_code orr_systolic_cycles(const orr_systolic_array *a,
                                     const orr_systolic_layer *l,
                                     const orr_rules_systolic *rules,
                                     uint64_t *out,
                                     orr_error *err) ORR_MUST_CHECK;

/* Traffic of one operand at one level. */
typedef struct orr_systolic_traffic {
    uint64_t words;
    int64_t first, last; /* cycles of the first and last word; negative: before the run */
    double average;      /* words per cycle */
    /* Words in the busiest cycle; our rules, to memory without a bandwidth: a sufficient bandwidth;
     * 0 if the rules do not define it. */
    double peak;
} orr_systolic_traffic;

enum { ORR_OPERAND_IFMAP, ORR_OPERAND_FILTER, ORR_OPERAND_OFMAP, ORR_OPERANDS };

/* All figures of a layer on an array.  Percentages are 0 to 100. */
typedef struct orr_systolic_result {
    uint64_t cycles;    /* stalls included */
    uint64_t stalls;    /* cycles in which the array waited for memory */
    uint64_t macs;      /* multiply-accumulates of the layer */
    uint64_t folds;     /* times the array was refilled */
    double utilisation; /* macs of those that fit into `cycles`; v1, os: into those that read */
    double mapping;     /* elements of the array that had work, average over the folds; v1: 0 */
    double busy; /* v2: its "compute utilisation"; otherwise utilisation without the stalls */
    /* Between array and buffers.  The ofmap's are writes; v1 does not record when the two operands
     * are read. */
    orr_systolic_traffic sram[ORR_OPERANDS];
    /* Both operands together, as v1 counts them; other rules: their sum. */
    orr_systolic_traffic sram_read;
    /* Between buffers and memory: operands are read, outputs written. */
    orr_systolic_traffic dram[ORR_OPERANDS];
    /* Partial sums read back, from the buffer and from memory; our rules only. */
    uint64_t sram_partial_reads, dram_partial_reads;
    /* SCALE-Sim v3 with sparsity: words of the filters, as they are stored, and of these metadata;
     * words of the ifmap that the array reads, which need not be whole. */
    uint64_t filter_words;
    double filter_stored, filter_metadata, ifmap_reads;
} orr_systolic_result;

/* All figures.  Time grows with the folds; with small buffers and overlapping windows (v1, v2) also
 * with the words read, 64 at a time.  docs/design/systolic.md says what each figure means under
 * each set of rules. */
ORR_API orr_code orr_systolic_run(const orr_systolic_array *a,
                                  const orr_systolic_layer *l,
                                  const orr_rules_systolic *rules,
                                  orr_systolic_result *out,
                                  orr_error *err) ORR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
