/* SPDX-License-Identifier: Apache-2.0 */
/* systolic_true.c - our own rules: what a systolic array does, word by word counted right (docs/design/systolic.md).
 *
 * Everything here is a closed form; memory is systolic_true_memory.c's. */
#include "systolic_true.h"

/* Sum over output places of the filter's extent that lies inside the ifmap; only the last can hang over. */
static uint64_t covered(uint64_t places, uint64_t stride, uint64_t filter, uint64_t ifmap)
{
    const uint64_t last = (places - 1) * stride;
    return (places - 1) * filter + (last < ifmap ? orr__min(filter, ifmap - last) : 0);
}

/* Words in all windows together. */
static uint64_t window_words(const orr__systolic *s)
{
    const orr_systolic_layer *l = s->layer;
    return covered(s->out_h, l->stride_height, l->filter_height, l->ifmap_height) *
           covered(s->out_w, l->stride_width, l->filter_width, l->ifmap_width) * l->channels;
}

static void count_sram(const orr__systolic *s, const orr__folds *f, orr_systolic_result *out)
{
    const orr_dataflow flow = s->array->dataflow;
    const uint64_t windows = window_words(s), weights = s->N * s->T;
    uint64_t *ifmap = &out->sram[ORR_OPERAND_IFMAP].words;
    uint64_t *filter = &out->sram[ORR_OPERAND_FILTER].words;
    uint64_t *ofmap = &out->sram[ORR_OPERAND_OFMAP].words;
    *ifmap = flow == ORR_DATAFLOW_IS ? windows : windows * f->outer;
    *filter = flow == ORR_DATAFLOW_OS   ? weights * f->inner
              : flow == ORR_DATAFLOW_WS ? weights
                                        : weights * f->outer;
    *ofmap = s->E * s->N * (flow == ORR_DATAFLOW_OS ? 1 : f->inner);
    out->sram_partial_reads = *ofmap - s->E * s->N;
    out->sram_read.words = *ifmap + *filter;
}

/* Words in the busiest cycle: full folds, if there are any. */
static void peak_sram(const orr__systolic *s, const orr__folds *f, orr_systolic_result *out)
{
    const double rows = (double)(f->inner > 1 ? f->rows : f->last_rows);
    const double columns = (double)(f->outer > 1 ? f->columns : f->last_columns);
    const orr_dataflow flow = s->array->dataflow;
    out->sram[ORR_OPERAND_IFMAP].peak = flow == ORR_DATAFLOW_IS ? columns : rows;
    out->sram[ORR_OPERAND_FILTER].peak = flow == ORR_DATAFLOW_IS ? rows : columns;
    out->sram[ORR_OPERAND_OFMAP].peak = columns;
    out->sram_read.peak = flow == ORR_DATAFLOW_OS ? rows + columns
                          : rows > columns        ? rows
                                                  : columns;
}

static void average(orr_systolic_result *out)
{
    const double cycles = (double)out->cycles;
    for (int i = 0; i < ORR_OPERANDS; i++) {
        out->sram[i].average = (double)out->sram[i].words / cycles;
        out->dram[i].average = (double)out->dram[i].words / cycles;
    }
    out->sram_read.average = (double)out->sram_read.words / cycles;
    out->sram_read.first = out->sram[ORR_OPERAND_IFMAP].first;
    out->sram_read.last = out->sram[ORR_OPERAND_IFMAP].last;
    const orr_systolic_traffic *filter = &out->sram[ORR_OPERAND_FILTER];
    if (filter->first < out->sram_read.first)
        out->sram_read.first = filter->first;
    if (filter->last > out->sram_read.last)
        out->sram_read.last = filter->last;
}

orr_code orr__systolic_true_run(const orr__systolic *s, orr_systolic_result *out, orr_error *err)
{
    uint64_t steps;
    const orr__folds f = orr__systolic_true_folds(s, &steps);
    const uint64_t cycles = (uint64_t)orr__systolic_true_cycles(s);
    const double places = (double)(s->R * s->C);
    out->folds = f.inner * f.outer;
    orr__systolic_true_memory(s, out);
    if (out->stalls >= (uint64_t)1 << 62)
        return orr_fail(err, ORR_EINPUT, NULL, "the bandwidth is too small: 2^62 cycles or more");
    out->cycles = cycles + out->stalls;
    out->mapping = 100 * (double)out->macs / (double)steps / ((double)out->folds * places);
    out->busy = 100 * (double)out->macs / ((double)cycles * places);
    out->utilisation = 100 * (double)out->macs / ((double)out->cycles * places);
    count_sram(s, &f, out);
    peak_sram(s, &f, out);
    average(out);
    return ORR_OK;
}
