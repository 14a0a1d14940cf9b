/* SPDX-License-Identifier: Apache-2.0 */
/* operator_cost.h - what one call of a PyTorch operator costs: arithmetic, bytes read and bytes
 * written.
 *
 * A call is described by its name as PyTorch's dispatcher spells it ("aten.mm.default") and the
 * tensors it got and made; the few arguments that change a cost are fields of their own, so that
 * every reader (captured step, exported program, host trace) fills in the same structure.  Nothing
 * is kept between calls. */
#ifndef ORR_SOURCES_OPERATOR_COST_H
#define ORR_SOURCES_OPERATOR_COST_H

#include <orrery/error.h>
#include <orrery/types.h>

typedef struct operator_tensor {
    const uint64_t *shape;
    const uint64_t *stride; /* in elements; NULL: contiguous */
    uint32_t rank;
    uint32_t element_bytes; /* 0: unknown */
    bool is_written;        /* an input that the call writes in place */
} operator_tensor;

typedef enum operator_kind {
    OPERATOR_FREE,       /* a view, metadata, an allocation: no data moves */
    OPERATOR_COMPUTE,    /* has arithmetic */
    OPERATOR_MOVE,       /* copies, fills, gathers: bytes alone */
    OPERATOR_COLLECTIVE, /* c10d.*, _c10d_functional.*: the network's business, not counted here */
    OPERATOR_WAIT,       /* orrery.wait, wait_tensor */
    OPERATOR_UNKNOWN     /* not in the table: bytes of its tensors */
} operator_kind;

typedef struct operator_call {
    orr_str name;
    const operator_tensor *in, *out;
    uint32_t in_count, out_count;
    bool is_view;       /* the reader knows that the outputs are inputs seen in another way */
    bool is_causal;     /* attention */
    bool is_transposed; /* convolution */
    orr_str equation;   /* einsum: "bij,bjk->bik" */
} operator_call;

typedef struct operator_cost {
    operator_kind kind;
    uint64_t flops; /* a multiply and an add are two */
    uint64_t bytes_read;
    uint64_t bytes_written;
    /* Operations of the vector unit inside a product that hold it up; no FLOPs. */
    uint64_t vector_work;
    bool is_product; /* its FLOPs run on a chip's arrays, not on the vector unit */
} operator_cost;

/* Numbers that do not fit into 64 bits end at UINT64_MAX. */
operator_cost orr__operator_cost(const operator_call *call);

/* What a chip does, each a second; 0: never the limit. */
typedef struct operator_rates {
    double arrays, vector, memory;
} operator_rates;

/* The longest of arrays, vector unit and memory, without a launch. */
double orr__operator_seconds(const operator_cost *cost, const operator_rates *rates);

#endif
