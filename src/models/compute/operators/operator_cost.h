/* SPDX-License-Identifier: Apache-2.0 */
/* operator_cost.h - the cost of one call of a PyTorch operator: FLOPs, bytes read and bytes
 * written.
 *
 * A call is described by its name as PyTorch's dispatcher spells it ("aten.mm.default") and its
 * input and output tensors; the few arguments that affect the cost are separate fields, so that
 * every reader (captured step, exported program, host trace) fills in the same structure.
 * Stateless. */
#ifndef ORR_SOURCES_OPERATOR_COST_H
#define ORR_SOURCES_OPERATOR_COST_H

#include <orrery/error.h>
#include <orrery/lab/chip.h>
#include <orrery/types.h>

#include "base/arithmetic.h"

typedef struct operator_tensor {
    const uint64_t *shape;
    const uint64_t *stride; /* in elements; NULL: contiguous */
    uint32_t rank;
    uint32_t element_bytes; /* 0: unknown */
    bool is_written;        /* an input that the call writes in place */
    bool is_parameter;      /* of the model: long out of the cache when a layer needs it */
} operator_tensor;

typedef enum operator_kind {
    OPERATOR_FREE,       /* a view, metadata, an allocation: no data moves */
    OPERATOR_COMPUTE,    /* has arithmetic */
    OPERATOR_MOVE,       /* copies, fills, gathers: bytes alone */
    OPERATOR_COLLECTIVE, /* c10d.*, _c10d_functional.*: left to the network, not counted here */
    OPERATOR_WAIT,       /* orrery.wait, wait_tensor */
    OPERATOR_UNKNOWN     /* not in the table: bytes of its tensors */
} operator_kind;

typedef struct operator_call {
    orr_str name;
    const operator_tensor *in, *out;
    uint32_t in_count, out_count;
    bool is_view;       /* the reader knows that the outputs are views of inputs */
    bool is_causal;     /* attention */
    bool is_transposed; /* convolution */
    orr_str equation;   /* einsum: "bij,bjk->bik" */
} operator_call;

typedef struct operator_cost {
    operator_kind kind;
    uint64_t flops; /* a multiply and an add are two */
    uint64_t bytes_read;
    uint64_t bytes_written;
    /* Operations of the vector unit inside a product that delay it; not FLOPs. */
    uint64_t vector_work;
    bool is_product; /* its FLOPs run on a chip's arrays, not on the vector unit */
} operator_cost;

/* Saturates at UINT64_MAX. */
operator_cost orr__operator_cost(const operator_call *call);

/* Rates of a chip, per second; 0: never the limit. */
typedef struct operator_rates {
    double arrays, vector, memory;
} operator_rates;

/* The maximum of arrays, vector unit and memory, without a launch. */
double orr__operator_seconds(const operator_cost *cost, const operator_rates *rates);

/* ---- table ----
 *
 * Operators by name: how their arithmetic and their traffic are counted. */

/* What is counted, times `factor` of the row. */
typedef enum operator_rule {
    RULE_FREE,    /* nothing */
    RULE_MAYBE,   /* a view if the layout permits, else a copy */
    RULE_MOVE,    /* no arithmetic */
    RULE_EACH,    /* factor per element of the result */
    RULE_OVER,    /* factor per element of the first input */
    RULE_LAST,    /* factor per element of the last input */
    RULE_BAGS,    /* factor per element of the rows that the second input selects from the first */
    RULE_POOL,    /* per element of the larger of first input and result */
    RULE_SORT,    /* elements times the logarithm of the longest dimension */
    RULE_PRODUCT, /* of matrices; factor: position of the left one.  Products from here ... */
    RULE_GROUPED, /* of rows with the matrix of their group */
    RULE_LINEAR,  /* x W^T */
    RULE_EINSUM,  /* by its equation */
    RULE_CONVOLUTION,             /* input, weight */
    RULE_TRANSPOSED,              /* the same, always transposed */
    RULE_CONVOLUTION_BACKWARD,    /* gradient of the result, input, weight */
    RULE_ATTENTION,               /* batch x heads x length x width each */
    RULE_ATTENTION_BACKWARD,      /* the same after the gradient of the result */
    RULE_ATTENTION_ROWS,          /* batch x length x heads x width each */
    RULE_ATTENTION_ROWS_BACKWARD, /* the same after the gradient of the result */
    RULE_RECURRENT,               /* factor times all tokens with all matrices */
    RULE_DISTANCE,                /* factor per pair of rows and column.  ... to here */
    RULE_OPTIMIZER                /* factor per parameter of lists of tensors */
} operator_rule;

/* Which bytes move. */
typedef enum operator_traffic {
    TRAFFIC_ALL,       /* every input is read, every result written */
    TRAFFIC_WRITE,     /* no input is read: fills, random numbers */
    TRAFFIC_OVERWRITE, /* what is written in place is not read */
    TRAFFIC_PICK,      /* of the first input as much is read as the result has */
    TRAFFIC_PICK_ROWS, /* of the first input one element per element of the second */
    TRAFFIC_PICK_BAGS, /* of the first input one row per element of the second */
    TRAFFIC_SKIP,      /* the second input gives a shape, nothing else */
    TRAFFIC_SCATTER,   /* the last input is scattered into the first */
    /* the last input is a buffer as large as all ranks' shares, which receives the data of the
     * others */
    TRAFFIC_THROUGH,
    TRAFFIC_OPTIMIZER /* parameters, gradients, states; gradients stay as they are */
} operator_traffic;

typedef struct operator_row {
    const char *name; /* without namespace, overload and the in-place suffix */
    uint8_t rule;     /* operator_rule */
    uint8_t traffic;  /* operator_traffic */
    uint8_t factor;
} operator_row;

/* The parts of a name. */
typedef struct operator_name {
    orr_str space; /* "aten" */
    orr_str base;  /* "add_", verbatim */
    bool is_out;   /* an overload that writes into given tensors */
    bool is_in_place;
    bool is_list; /* _foreach_: one operation for lists of tensors */
} operator_name;

operator_name orr__operator_name(orr_str name);

/* NULL: not in the table. */
const operator_row *orr__operator_row(const operator_name *name);

/* orr__operator_cost for callers with many operators of few names, which look each up once. */
operator_cost orr__operator_cost_of(const operator_call *call,
                                    const operator_name *name,
                                    const operator_row *row);

typedef struct operator_rows {
    const operator_row *rows;
    size_t count;
} operator_rows;

/* The tables themselves, sorted by name. */
operator_rows orr__operator_moves(void);
operator_rows orr__operator_arithmetic(void);

/* ---- kernels ----
 *
 * The kernels launched by one call of a PyTorch operator on a GPU, in the syntax of chip.h. */

enum { OPERATOR_KERNELS = 4 }; /* maximum per call */

/* Returns their number; 0: no kernel of chip.h represents the call. */
size_t orr__operator_kernels(const operator_call *call,
                             const operator_name *name,
                             const operator_row *row,
                             const operator_cost *cost,
                             orr_kernel out[OPERATOR_KERNELS]);

#endif
