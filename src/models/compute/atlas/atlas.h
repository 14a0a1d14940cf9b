/* SPDX-License-Identifier: Apache-2.0 */
/* atlas.h - what the files of this folder share: classes of kernels in the table, and bases. */
#ifndef ORR_MODELS_ATLAS_H
#define ORR_MODELS_ATLAS_H

#include <orrery/lab/chip.h>

enum { ATLAS_DIMS = 4, ATLAS_CONSTANTS = 20, ATLAS_BUCKETS = 64, ATLAS_TILES = 8 };

/* One class of kernels on one chip, fitted together: the constants of its base, and on a grid of
 * sizes (base 2 logarithms) what is left, as the logarithm of measured over base. */
typedef struct atlas_class {
    uint32_t key;                      /* atlas_key */
    uint32_t grid, far;                /* where its planes begin: int8, uint8; far 0: none */
    float step;                        /* of the grid */
    float low, high;                   /* 90 % interval: logarithms, of rows left out of the fit */
    uint32_t rows;                     /* that it was fitted to */
    uint32_t dims, length[ATLAS_DIMS]; /* axes, nodes of each */
    uint32_t axis[ATLAS_DIMS];         /* where their nodes begin: float */
    float p[ATLAS_CONSTANTS];
    /* ---- so far as the table has it; what follows is worked out when it is first asked for ----
     */
    double first[ATLAS_DIMS], last[ATLAS_DIMS];    /* nodes of an axis */
    double scale[ATLAS_DIMS];                      /* buckets for each octave of it */
    uint8_t before[ATLAS_DIMS][ATLAS_BUCKETS + 1]; /* the last node before a bucket */
    double rate;                                   /* of a unit, that the tiles are for */
    double tile[ATLAS_TILES];                      /* products: us for each of k */
    double low_times, high_times; /* ends of the interval on another chip of the kind, as factors */
} atlas_class;

/* Another chip of the kind, another day: 184 kernels on a third H200 that no row is of, 80 % inside
 * without this.  A logarithm, as low and high. */
#define ATLAS_CHIP_TO_CHIP 0.06

/* chip: its index in orr_chip_at; the rest as tools/atlas/atlas_fit.py numbers them. */
static inline uint32_t atlas_key(uint32_t chip, uint32_t group, uint32_t type, uint32_t variant)
{
    return chip << 24 | group << 16 | type << 8 | variant;
}

/* Groups of classes; the numbers are those of the table. */
typedef enum atlas_group {
    ATLAS_GEMM = 1,     /* aligned products as weights are stored; log m, n, k */
    ATLAS_GEMM_VARIANT, /* layout, alignment, epilogue: on top of it; log m, n, k */
    ATLAS_GEMM_OWN,     /* a base of its own: odd rows, even ones (2; cold: 1), aligned ones,
                           no quantising */
    ATLAS_GEMM_BATCHED, /* on top of ATLAS_GEMM; log m, n, k */
    ATLAS_GEMM_COLD,    /* as ATLAS_GEMM_VARIANT when nothing is in the cache */
    ATLAS_ATTENTION,    /* variant: head size, causal, backward; log q, batch x heads, group */
    ATLAS_DECODE,       /* variant: head size; log kv, batch x kv heads, group */
    ATLAS_ROWS,         /* variant: which; log rows, width */
    ATLAS_BYTES,        /* variant: which; log bytes */
    ATLAS_COLD,         /* variant: group and variant; log bytes */
    ATLAS_MOE,          /* log rows per expert, experts, width k, width n */
    ATLAS_CONV,         /* variant: backward; log pixels, k, n */
} atlas_group;

/* Of ATLAS_GEMM_OWN: aligned products, with the variant added. */
enum { ATLAS_ALIGNED = 4 };
/* Added to the bucket of head sizes. */
enum { ATLAS_BACKWARD = 16, ATLAS_PAGED = 32, ATLAS_ATTENTION_COLD = 64, ATLAS_MIXED = 128 };

/* For all threads and for good; NULL: the table has none. */
const atlas_class *atlas_find(uint32_t key);

typedef struct atlas_point {
    double value;   /* logarithm */
    double outside; /* octaves beyond the axes, summed */
    double far;     /* octaves from what was measured; 0: at most one, which nobody asks about */
} atlas_point;

/* ceil, which is a call where the compiler may not count on SSE 4.1. */
static inline double atlas_ceil(double x)
{
    if (!(x < 4e15))
        return x;
    const double down = (double)(int64_t)x;
    return down < x ? down + 1 : down;
}

/* The chip that most rows are of. */
const orr_chip *atlas_ours(void);

/* x: one coordinate for each axis. */
atlas_point atlas_look(const atlas_class *c, const double *x);

/* ---- bases: microseconds by a physical shape; constants as the table has them ---- */

/* w: orr_kernel_count(k). */
/* What tiles of products take on the chip of the class. */
void atlas_set_tiles(atlas_class *c);
double atlas_gemm_base(const orr_chip *chip,
                       const orr_kernel *k,
                       const orr_kernel_work *w,
                       const atlas_class *c);
/* As products of pixels; x: what its grid is laid out by. */
double atlas_conv_base(const orr_chip *chip,
                       const orr_kernel *k,
                       const atlas_class *c,
                       double x[3]);
double atlas_attention_base(const orr_chip *chip, const orr_kernel *k, const float *p);
double atlas_decode_base(const orr_chip *chip, const orr_kernel *k, const float *p);
double atlas_experts_base(const orr_chip *chip, const orr_kernel *k, const float *p);
typedef struct atlas_memory {
    double bytes, elements;
    double rows, width; /* rows 0: none */
} atlas_memory;
double atlas_memory_base(const orr_chip *chip, const atlas_memory *w, const float *p);
double atlas_optimizer_base(
    const orr_chip *chip, double bytes, double count, double tensors, const float *p);

/* What holds up kernels that memory limits, and which classes speak about them: false for other
 * kinds. */
typedef struct atlas_choice {
    atlas_group group;
    uint32_t variant, instead; /* instead: where the variant has no class */
    uint32_t launches;
    bool is_optimizer;
    atlas_memory work;
    double x[2];
} atlas_choice;
bool atlas_choose_memory(const orr_kernel *k, atlas_choice *out);
enum { ATLAS_IS_COLD = 128 }; /* added to a variant */

/* Time of one launch, without the interval: what the chip's peaks and stated efficiencies give.
 * clock_share: how much of it goes with the clock. */
double atlas_roofline_us(const orr_chip *chip,
                         const orr_kernel *k,
                         const orr_kernel_work *w,
                         double *clock_share);

#endif
