/* SPDX-License-Identifier: Apache-2.0 */
/* operator_table.h - operators by name: how their arithmetic and their traffic are counted. */
#ifndef ORR_SOURCES_OPERATOR_TABLE_H
#define ORR_SOURCES_OPERATOR_TABLE_H

#include "operator_cost.h"

#include "base/arithmetic.h"

/* What is counted; `factor` of a row goes with it. */
typedef enum operator_rule {
    RULE_FREE,    /* nothing */
    RULE_MAYBE,   /* a view where the layout allows one, or else a copy */
    RULE_MOVE,    /* no arithmetic */
    RULE_EACH,    /* factor for each element of the result */
    RULE_OVER,    /* factor for each element of the first input */
    RULE_LAST,    /* factor for each element of the last input */
    RULE_BAGS,    /* factor for each element of the rows that the second input picks of the first */
    RULE_POOL,    /* each element of the larger of first input and result */
    RULE_SORT,    /* elements times the logarithm of the longest dimension */
    RULE_PRODUCT, /* of matrices; factor: where the left one stands.  Products from here ... */
    RULE_GROUPED, /* of rows with the matrix of their group */
    RULE_LINEAR,  /* x W^T */
    RULE_EINSUM,  /* by its equation */
    RULE_CONVOLUTION,             /* input, weight */
    RULE_TRANSPOSED,              /* the same, always transposed */
    RULE_CONVOLUTION_BACKWARD,    /* gradient of the result, input, weight */
    RULE_ATTENTION,               /* batch x heads x length x width each */
    RULE_ATTENTION_BACKWARD,      /* the same behind the gradient of the result */
    RULE_ATTENTION_ROWS,          /* batch x length x heads x width each */
    RULE_ATTENTION_ROWS_BACKWARD, /* the same behind the gradient of the result */
    RULE_RECURRENT,               /* factor times all tokens with all matrices */
    RULE_DISTANCE,                /* factor for each pair of rows and column.  ... to here */
    RULE_OPTIMIZER                /* factor for each parameter of lists of tensors */
} operator_rule;

/* Which bytes move. */
typedef enum operator_traffic {
    TRAFFIC_ALL,       /* every input is read, every result written */
    TRAFFIC_WRITE,     /* no input is read: fills, random numbers */
    TRAFFIC_OVERWRITE, /* what is written in place is not read */
    TRAFFIC_PICK,      /* of the first input as much is read as the result has */
    TRAFFIC_PICK_ROWS, /* of the first input an element for each of the second's */
    TRAFFIC_PICK_BAGS, /* of the first input a row for each element of the second's */
    TRAFFIC_SKIP,      /* the second input gives a shape, nothing else */
    TRAFFIC_SCATTER,   /* the last input goes to places in the first */
    TRAFFIC_THROUGH, /* the last input is a buffer as large as all ranks' shares: it gets what the others have */
    TRAFFIC_OPTIMIZER /* parameters, gradients, states; gradients stay as they are */
} operator_traffic;

typedef struct operator_row {
    const char *name; /* without namespace, overload and the mark of operators that work in place */
    uint8_t rule;     /* operator_rule */
    uint8_t traffic;  /* operator_traffic */
    uint8_t factor;
} operator_row;

/* What the parts of a name say. */
typedef struct operator_name {
    orr_str space; /* "aten" */
    orr_str base;  /* "add_", as it stands */
    bool is_out;   /* an overload that writes into tensors it is given */
    bool is_in_place;
    bool is_list; /* _foreach_: one operation for lists of tensors */
} operator_name;

operator_name orr__operator_name(orr_str name);

/* NULL: not in the table. */
const operator_row *orr__operator_row(const operator_name *name);

/* orr__operator_cost for who calls many operators of few names, and looks each up once. */
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

#endif
