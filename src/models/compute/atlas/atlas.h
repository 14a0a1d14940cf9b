/* SPDX-License-Identifier: Apache-2.0 */
/* atlas.h - what the files of this folder share: classes of kernels in the table, and bases. */
#ifndef ORR_MODELS_ATLAS_H
#define ORR_MODELS_ATLAS_H

#include <orrery/lab/chip.h>

enum { ATLAS_DIMS = 4, ATLAS_CONSTANTS = 20, ATLAS_BUCKETS = 64 };
/* Kinds of tiles: of public products, of ours, of convolutions. */
enum { ATLAS_TILES = 8, ATLAS_OWN_TILES = 17, ATLAS_CONV_TILES = 9 };

/* One class of kernels on one chip, fitted together: the constants of its base model, and the
 * residuals on a grid of sizes (base 2 logarithms), as the logarithm of measured over base. */
typedef struct atlas_class {
    uint32_t key;                      /* atlas_key */
    uint32_t grid, far;                /* start of its planes: int8, uint8; far 0: none */
    float step;                        /* of the grid */
    float low, high;                   /* 90 % interval: logarithms, of rows left out of the fit */
    uint32_t rows;                     /* number of rows in the fit */
    uint32_t dims, length[ATLAS_DIMS]; /* axes, nodes of each */
    uint32_t axis[ATLAS_DIMS];         /* start of their nodes: float */
    float p[ATLAS_CONSTANTS];
    /* ---- up to here as in the table; the rest is computed on first use ----
     */
    double first[ATLAS_DIMS], last[ATLAS_DIMS];    /* first and last node of an axis */
    double scale[ATLAS_DIMS];                      /* buckets per octave */
    uint8_t before[ATLAS_DIMS][ATLAS_BUCKETS + 1]; /* the last node before a bucket */
    /* of a unit, for which the tiles were computed */
    double rate;
    double tile[ATLAS_OWN_TILES]; /* products: us per k */
    double low_times, high_times; /* ends of the interval on another chip of the kind, as factors */
} atlas_class;

/* Chip-to-chip and day-to-day variation: of 184 kernels on a third H200 without rows in the fit, 80
 * % are inside without this.  A logarithm, like low and high. */
#define ATLAS_CHIP_TO_CHIP 0.06

/* chip: its index in orr_chip_at; the rest as numbered by tools/atlas/atlas_fit.py. */
static inline uint32_t atlas_key(uint32_t chip, uint32_t group, uint32_t type, uint32_t variant)
{
    return chip << 24 | group << 16 | type << 8 | variant;
}

/* Groups of classes; the numbers are those of the table. */
typedef enum atlas_group {
    ATLAS_GEMM = 1,     /* aligned products as weights are stored; log m, n, k */
    ATLAS_GEMM_VARIANT, /* layout, alignment, epilogue: relative to it; log m, n, k */
    ATLAS_GEMM_OWN,     /* with its own base: odd rows, even ones (2; cold: 1), aligned ones, no
                         * quantising */
    ATLAS_GEMM_BATCHED, /* relative to ATLAS_GEMM; log m, n, k */
    ATLAS_GEMM_COLD,    /* like ATLAS_GEMM_VARIANT with cold caches */
    ATLAS_ATTENTION,    /* variant: head size, causal, backward; log q, batch x heads, group */
    ATLAS_DECODE,       /* variant: head size; log kv, batch x kv heads, group */
    ATLAS_ROWS,         /* variant: which; log rows, width */
    ATLAS_BYTES,        /* variant: which; log bytes */
    ATLAS_COLD,         /* variant: group and variant; log bytes */
    ATLAS_MOE,          /* log rows per expert, experts, width k, width n */
    ATLAS_CONV,         /* variant: backward; log pixels, k, n */
} atlas_group;

/* Of ATLAS_GEMM_OWN: aligned products, out of cold caches, with the variant added. */
enum { ATLAS_ALIGNED = 4, ATLAS_ALIGNED_COLD = 12 };
/* Added to the bucket of head sizes. */
enum { ATLAS_BACKWARD = 16, ATLAS_PAGED = 32, ATLAS_ATTENTION_COLD = 64, ATLAS_MIXED = 128 };

/* Shared by all threads, never freed; NULL: not in the table. */
const atlas_class *atlas_find(uint32_t key);

typedef struct atlas_point {
    double value;   /* logarithm */
    double outside; /* octaves beyond the axes, summed */
    double far;     /* octaves from the nearest measurement; 0: at most one */
} atlas_point;

/* ceil() is a function call unless the compiler may assume SSE 4.1. */
static inline double atlas_ceil(double x)
{
    if (!(x < 4e15))
        return x;
    const double down = (double)(int64_t)x;
    return down < x ? down + 1 : down;
}

/* The chip with most rows. */
const orr_chip *atlas_ours(void);

/* x: one coordinate for each axis. */
atlas_point atlas_look(const atlas_class *c, const double *x);

/* ---- base models: microseconds; constants as in the table ---- */

/* w: orr_kernel_count(k). */
/* Times of product tiles on the chip of the class. */
void atlas_set_tiles(atlas_class *c);
double atlas_gemm_base(const orr_chip *chip,
                       const orr_kernel *k,
                       const orr_kernel_work *w,
                       const atlas_class *c);
/* Classes of ATLAS_GEMM_OWN. */
double atlas_own_base(const orr_chip *chip,
                      const orr_kernel *k,
                      const orr_kernel_work *w,
                      const atlas_class *c);
/* As a product of pixels; x: the coordinates of its grid. */
double atlas_conv_base(const orr_chip *chip,
                       const orr_kernel *k,
                       const atlas_class *c,
                       double x[4]);
/* Public rows; ours. */
double atlas_attention_base(const orr_chip *chip, const orr_kernel *k, const float *p);
double atlas_own_attention_base(const orr_chip *chip, const orr_kernel *k, const float *p);
double atlas_decode_base(const orr_chip *chip, const orr_kernel *k, const float *p);
double atlas_experts_base(const orr_chip *chip, const orr_kernel *k, const float *p);
/* How a kernel's work is cut into blocks. */
typedef enum atlas_memory_form {
    ATLAS_EACH_ELEMENT,
    ATLAS_EACH_ROW,
    ATLAS_SUM_OF_COLUMNS,
    ATLAS_SUM_OF_ROWS,
    ATLAS_SCATTER, /* rows are added to those of a table of words */
    ATLAS_SOFTMAX
} atlas_memory_form;
typedef struct atlas_memory {
    atlas_memory_form form;
    double bytes, elements;
    double rows, width;
    double words, size;        /* scatter: of the table; bytes of an element */
    double dims, turned, cast; /* without rows: what the place of an element is worked out from */
} atlas_memory;
double atlas_memory_base(const orr_chip *chip, const atlas_memory *w, const float *p);
double atlas_optimizer_base(
    const orr_chip *chip, double bytes, double count, double tensors, const float *p);

/* Kernels bound by memory: their figures and class in the table; false for other kinds. */
typedef struct atlas_choice {
    atlas_group group;
    uint32_t variant, instead; /* instead: if the variant has no class */
    uint32_t launches;
    bool is_optimizer;
    atlas_memory work;
    double x[2];
} atlas_choice;
bool atlas_choose_memory(const orr_kernel *k, atlas_choice *out);
enum { ATLAS_IS_COLD = 128 }; /* added to a variant */

/* Time of one launch, without the interval: from the chip's peaks and assumed efficiencies.
 * clock_share: the part that scales with the clock. */
double atlas_roofline_us(const orr_chip *chip,
                         const orr_kernel *k,
                         const orr_kernel_work *w,
                         double *clock_share);

#endif
