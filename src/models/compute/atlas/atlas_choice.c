/* SPDX-License-Identifier: Apache-2.0 */
/* atlas_choice.c - memory-bound kernels: which class of the table applies.
 *
 * Variants are numbered as in tools/atlas/atlas_memory.py, and bytes are counted as there, since
 * the constants were fitted to them. */
#include "models/compute/atlas/atlas.h"

#include <math.h>

/* Rows and a width. */
enum {
    ROWS_RMS = 0, /* backward is the next */
    ROWS_LAYER = 2,
    ROWS_SOFTMAX = 4,
    ROWS_ENTROPY = 6,
    ROWS_LOG_SOFTMAX = 8,
    ROWS_SUM = 10,
    COLUMNS_SUM = 11,
    ROWS_EMBEDDING = 12,
    ROWS_GATHER = 14,
    ROWS_TOPK = 16,
    ROWS_CHANNELS = 17,
    ROWS_SCAN = 19,
    COLUMNS_SCAN = 20,
    ROWS_SCATTER = 21,
    ROWS_ODD = 32 /* added: rows that do not start at whole lines */
};

/* Bytes alone. */
enum {
    BYTES_ELEMENTWISE = 0, /* strided is the next */
    BYTES_COPY = 2,
    BYTES_FILL = 4,
    BYTES_DROPOUT = 5,
    BYTES_GELU = 7, /* backward is the next */
    BYTES_SILU = 9,
    BYTES_RELU = 11,
    BYTES_GATED = 13,
    BYTES_SUM_ALL = 15,
    BYTES_ROPE = 16,
    BYTES_GATED_STRIDED = 17,
    BYTES_SORT = 18,
    BYTES_H2D = 20,
    BYTES_D2H = 21,
    BYTES_JOINED = 22, /* strided is the next */
    BYTES_ADAMW = 24,  /* foreach, clipping: the next */
    BYTES_POOL = 27,   /* backward is the next */
    BYTES_DEPTHWISE = 29,
};

static uint32_t activation_variant(const orr_kernel *k, uint32_t *instead)
{
    const uint32_t back = k->is_backward;
    *instead = BYTES_ELEMENTWISE + k->is_strided;
    if (k->is_gated) {
        *instead = BYTES_GATED + back;
        return k->is_strided && !back ? BYTES_GATED_STRIDED : BYTES_GATED + back;
    }
    if (k->is_strided)
        return BYTES_ELEMENTWISE + 1;
    if (k->form == ORR_FORM_SILU) {
        *instead = BYTES_GELU + back;
        return BYTES_SILU + back;
    }
    return (k->form == ORR_FORM_RELU ? BYTES_RELU : BYTES_GELU) + back;
}

static bool choose_rows(const orr_kernel *k, atlas_choice *c)
{
    const uint32_t back = k->is_backward;
    switch (k->kind) {
    case ORR_KERNEL_NORM:
        c->variant = back + (k->form == ORR_FORM_LAYER      ? ROWS_LAYER
                             : k->form == ORR_FORM_CHANNELS ? ROWS_CHANNELS
                                                            : ROWS_RMS);
        c->launches = k->form == ORR_FORM_CHANNELS ? 3 : 1 + back;
        return true;
    case ORR_KERNEL_SOFTMAX:
        c->variant = back + (k->form == ORR_FORM_LOG ? ROWS_LOG_SOFTMAX : ROWS_SOFTMAX);
        return true;
    case ORR_KERNEL_CROSS_ENTROPY:
        c->variant = ROWS_ENTROPY + back;
        c->launches = back ? 4 : 2;
        return true;
    case ORR_KERNEL_EMBEDDING:
        c->variant = ROWS_EMBEDDING + back;
        c->launches = 1 + back;
        return true;
    case ORR_KERNEL_GATHER:
        c->variant = k->form == ORR_FORM_SCATTER && !back ? ROWS_SCATTER : ROWS_GATHER + back;
        return true;
    case ORR_KERNEL_TOPK:
        c->variant = ROWS_TOPK;
        c->launches = 16;
        return true;
    case ORR_KERNEL_SCAN:
        c->variant = k->form == ORR_FORM_COLUMNS ? COLUMNS_SCAN : ROWS_SCAN;
        return true;
    case ORR_KERNEL_REDUCE:
        /* Adding rows to each other gives the sums of columns. */
        c->variant = k->form == ORR_FORM_COLUMNS ? ROWS_SUM : COLUMNS_SUM;
        c->launches = k->form == ORR_FORM_COLUMNS ? 1 : 2;
        return k->form != ORR_FORM_ALL;
    default:
        return false;
    }
}

static bool choose_bytes(const orr_kernel *k, atlas_choice *c)
{
    const uint32_t back = k->is_backward;
    switch (k->kind) {
    case ORR_KERNEL_ELEMENTWISE:
        c->variant = c->instead = BYTES_ELEMENTWISE + k->is_strided;
        return true;
    case ORR_KERNEL_COPY:
        c->variant = k->form == ORR_FORM_H2D      ? BYTES_H2D
                     : k->form == ORR_FORM_D2H    ? BYTES_D2H
                     : k->form == ORR_FORM_JOINED ? BYTES_JOINED + (uint32_t)k->is_strided
                                                  : BYTES_COPY + (uint32_t)k->is_strided;
        c->instead = c->variant;
        return true;
    case ORR_KERNEL_FILL:
        c->variant = c->instead = BYTES_FILL;
        return true;
    case ORR_KERNEL_DROPOUT:
        c->variant = BYTES_DROPOUT + back;
        return true;
    case ORR_KERNEL_ACTIVATION:
        c->variant = activation_variant(k, &c->instead);
        c->launches = k->is_gated ? 2 + 2 * back : 1;
        return true;
    case ORR_KERNEL_REDUCE:
        c->variant = BYTES_SUM_ALL;
        c->launches = 2;
        return true;
    case ORR_KERNEL_ROPE: /* eager: five kernels; fused, it is one pass over strided pairs */
        c->variant = k->is_unfused ? BYTES_ROPE : BYTES_ELEMENTWISE + 1;
        c->instead = BYTES_ELEMENTWISE + 1;
        c->launches = k->is_unfused ? 5 : 1;
        return true;
    case ORR_KERNEL_SORT:
        c->variant = BYTES_SORT;
        return true;
    case ORR_KERNEL_POOL:
        c->variant = BYTES_POOL + back;
        c->instead = BYTES_ELEMENTWISE + 1;
        return true;
    case ORR_KERNEL_CONV: /* a channel at a time */
        c->variant = BYTES_DEPTHWISE + back;
        c->instead = c->variant;
        return k->groups > 1 && k->groups == k->k;
    case ORR_KERNEL_OPTIMIZER:
        c->variant = BYTES_ADAMW + (k->form == ORR_FORM_FOREACH ? 1
                                    : k->form == ORR_FORM_CLIP  ? 2
                                                                : 0);
        c->instead = c->variant;
        c->is_optimizer = true;
        return true;
    default:
        return false;
    }
}

static double elements_of(const orr_kernel *k)
{
    switch (k->kind) {
    case ORR_KERNEL_ELEMENTWISE:
    case ORR_KERNEL_COPY:
    case ORR_KERNEL_FILL:
        return (double)(k->write ? k->write : k->read) / orr_kernel_type_bytes(k->type);
    case ORR_KERNEL_REDUCE:
    case ORR_KERNEL_ROPE:
        return (double)k->m * (double)k->n;
    case ORR_KERNEL_POOL:
        return (double)k->batch * (double)k->k * (double)k->side * (double)k->side;
    case ORR_KERNEL_CONV:
        return orr_kernel_count(k).flops * 0.5;
    default:
        return (double)k->m;
    }
}

/* Classes that were fitted to kernels of several layouts; all others have one. */
static void set_index(const orr_kernel *k, atlas_choice *c)
{
    const bool is_indexed = c->variant == BYTES_ELEMENTWISE + 1 || c->variant == BYTES_COPY + 1;
    /* Between sliced rows (2) and heads in another order (4), where it is not known. */
    c->work.dims = !is_indexed ? 1 : k->dims ? (double)k->dims : 2.5;
    c->work.turned = is_indexed && k->is_turned;
    c->work.cast = (is_indexed || c->variant == BYTES_COPY) && k->casts;
}

static atlas_memory_form form_of(uint32_t variant)
{
    switch (variant) {
    case COLUMNS_SUM:
        return ATLAS_SUM_OF_COLUMNS;
    case ROWS_SUM:
        return ATLAS_SUM_OF_ROWS;
    case ROWS_EMBEDDING + 1:
        return ATLAS_SCATTER;
    case ROWS_SOFTMAX:
        return ATLAS_SOFTMAX;
    default:
        return ATLAS_EACH_ROW;
    }
}

/* Rows of words that are drawn more than once are read once. */
static double rows_read(const orr_kernel *k)
{
    const double rows = (double)k->m, words = (double)k->k;
    return k->k ? -words * expm1(-rows / words) : rows;
}

bool atlas_choose_memory(const orr_kernel *k, atlas_choice *c)
{
    const orr_kernel_work w = orr_kernel_count(k);
    const double size = orr_kernel_type_bytes(k->type);
    *c = (atlas_choice){.launches = 1, .work.bytes = w.read + w.write};
    if (k->kind == ORR_KERNEL_REDUCE || k->kind == ORR_KERNEL_TOPK)
        c->work.bytes = w.read;
    if (k->kind == ORR_KERNEL_SORT)
        c->work.bytes = 2 * size * (double)k->m;
    if (k->form == ORR_FORM_H2D || k->form == ORR_FORM_D2H)
        c->work.bytes = (double)k->write;
    if (choose_rows(k, c)) {
        c->group = ATLAS_ROWS;
        c->instead = c->variant;
        c->work.form = form_of(c->variant);
        if (c->variant == ROWS_EMBEDDING)
            c->work.bytes = ((double)k->m + rows_read(k)) * (double)k->n * size;
        c->work.words = k->kind == ORR_KERNEL_EMBEDDING ? (double)k->k : 0;
        c->work.size = size;
        const uint64_t width = k->n * (uint64_t)size;
        if (width % 16 && c->variant >= ROWS_SOFTMAX && c->variant < ROWS_SUM)
            c->variant += ROWS_ODD;
        const bool is_turned = c->variant == COLUMNS_SCAN; /* every column is scanned */
        c->work.rows = (double)(is_turned ? k->n : k->m);
        c->work.width = (double)(is_turned ? k->m : k->n);
        c->work.elements = c->work.rows * c->work.width;
        c->x[0] = log2(c->work.rows);
        c->x[1] = log2(c->work.width);
        return true;
    }
    if (!choose_bytes(k, c))
        return false;
    c->group = ATLAS_BYTES;
    c->work.elements = elements_of(k);
    if (k->form == ORR_FORM_H2D || k->form == ORR_FORM_D2H)
        c->work.elements = c->work.bytes;
    if (c->work.elements < 1)
        c->work.elements = 1;
    set_index(k, c);
    c->x[0] = c->is_optimizer ? log2((double)k->m) : log2(c->work.bytes);
    c->x[1] = log2(c->work.bytes / c->work.elements);
    return true;
}
