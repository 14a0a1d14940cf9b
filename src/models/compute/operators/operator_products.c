/* SPDX-License-Identifier: Apache-2.0 */
/* operator_products.c - FLOPs of what runs on a chip's arrays: matrices, convolutions, attention, recurrent layers.
 *
 * A multiplication and an addition are two.  Biases, scales, masks and the softmax inside attention are not counted:
 * they take no time beside the products, and src/sources/llm counts in the same way.  Backward attention has five
 * products where forward has two: the scores again, then the gradients of values, probabilities, queries and keys.
 *
 * Where the tensors are not what the operator takes (a broken file, a name of somebody else's) nothing is counted. */
#include "operator_table.h"

#include "base/text/text.h"

uint64_t orr__operator_elements(const operator_tensor *t)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0)
            return 0;
        count = operator_times(count, t->shape[i]);
    }
    return count;
}

/* Dimensions from the right; 1 where there is none. */
static uint64_t last(const operator_tensor *t, uint32_t from_right)
{
    return t->rank > from_right ? t->shape[t->rank - 1 - from_right] : 1;
}

static uint64_t twice(uint64_t a, uint64_t b)
{
    return operator_times(operator_times(a, b), 2);
}

/* ---- matrices ---- */

/* Batches of the two are stretched to each other.  A vector on the right is a column. */
static uint64_t matrix_product(const operator_tensor *a, const operator_tensor *b)
{
    const bool is_vector = b->rank < 2;
    const uint32_t most = a->rank > b->rank ? a->rank : b->rank;
    uint64_t count =
        operator_times(operator_times(last(a, 1), last(a, 0)), is_vector ? 1 : last(b, 0));
    for (uint32_t i = 2; i < most; i++) {
        const uint64_t one = last(a, i), other = is_vector ? 1 : last(b, i);
        count = operator_times(count, one == 1 ? other : one);
    }
    return operator_times(count, 2);
}

static uint64_t product(const operator_call *c, uint32_t left)
{
    return c->in_count < left + 2 ? 0 : matrix_product(&c->in[left], &c->in[left + 1]);
}

/* Rows with the matrix of their group: every row meets one of them.  Where the columns are in groups instead, every
 * column meets one of the left ones. */
static uint64_t grouped_product(const operator_call *c)
{
    if (c->in_count < 2)
        return 0;
    const operator_tensor *a = &c->in[0], *b = &c->in[1];
    uint64_t left = orr__operator_elements(a);
    if (a->rank == 3 && b->rank == 2 && a->shape[0])
        left /= a->shape[0];
    return twice(left, last(b, 0));
}

/* x W^T.  Packed weights have shapes of their own, so the result says how many columns there are, when it is known. */
static uint64_t linear(const operator_call *c)
{
    if (c->in_count < 2)
        return 0;
    const uint64_t columns = c->out_count ? last(&c->out[0], 0) : last(&c->in[1], 1);
    return twice(orr__operator_elements(&c->in[0]), columns);
}

static uint64_t distances(const operator_call *c, uint32_t factor)
{
    if (c->in_count < 2)
        return 0;
    return operator_times(operator_times(orr__operator_elements(&c->in[0]), last(&c->in[1], 1)),
                          factor);
}

/* ---- einsum ---- */

enum { LETTERS = 52 };

static int letter_number(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

/* One operand's letters: their sizes.  An ellipsis stands for as many dimensions as the letters leave; *rest is the
 * product of them.  false: letters and dimensions do not go together. */
static bool note_sizes(orr_str term,
                       const operator_tensor *t,
                       uint64_t sizes[LETTERS],
                       uint64_t *rest)
{
    uint32_t letters = 0, dots = 0, at = 0;
    for (size_t i = 0; i < term.len; i++) {
        letters += letter_number(term.ptr[i]) >= 0;
        dots += term.ptr[i] == '.';
    }
    if (letters > t->rank || (dots == 0 && letters != t->rank))
        return false;
    uint32_t hidden = dots ? t->rank - letters : 0;
    uint64_t product_of_rest = 1;
    for (size_t i = 0; i < term.len; i++) {
        const int letter = letter_number(term.ptr[i]);
        if (letter >= 0) {
            const uint64_t size = t->shape[at++];
            if (size > sizes[letter])
                sizes[letter] = size;
        }
        for (; term.ptr[i] == '.' && hidden; hidden--)
            product_of_rest = operator_times(product_of_rest, t->shape[at++]);
    }
    if (product_of_rest > *rest)
        *rest = product_of_rest;
    return true;
}

/* Two for each combination of all letters; exact for two operands, the least for one. */
static uint64_t einsum(const operator_call *c)
{
    uint64_t sizes[LETTERS] = {0}, rest = 1, count;
    const orr_str all = c->equation;
    size_t from = 0;
    for (uint32_t i = 0; i < c->in_count; i++) {
        size_t to = from;
        while (to < all.len && all.ptr[to] != ',' && all.ptr[to] != '-')
            to++;
        if (!note_sizes((orr_str){all.ptr + from, to - from}, &c->in[i], sizes, &rest))
            return 0;
        from = to < all.len && all.ptr[to] == ',' ? to + 1 : to;
    }
    count = rest;
    for (int i = 0; i < LETTERS; i++)
        count = operator_times(count, sizes[i] ? sizes[i] : 1);
    return c->in_count ? operator_times(count, c->in_count > 1 ? 2 * (c->in_count - 1) : 1) : 0;
}

/* ---- convolutions ---- */

/* The weight is results x inputs of a group x kernel, so an element of the result takes all of it but the first
 * dimension, whatever the groups; when transposed, an element of the input gives to as many. */
static uint64_t one_convolution(const operator_tensor *each, const operator_tensor *weight)
{
    if (weight->rank == 0 || weight->shape[0] == 0)
        return 0;
    return twice(orr__operator_elements(each), orr__operator_elements(weight) / weight->shape[0]);
}

/* The result's elements, or those it has at stride 1 with the padding that keeps the size. */
static uint64_t convolution(const operator_call *c, bool is_transposed)
{
    if (c->in_count < 2)
        return 0;
    const operator_tensor *input = &c->in[0], *weight = &c->in[1];
    if (is_transposed)
        return one_convolution(input, weight);
    if (c->out_count)
        return one_convolution(&c->out[0], weight);
    const uint64_t channels = input->rank + 0u >= weight->rank && weight->rank > 1
                                  ? input->shape[input->rank - weight->rank + 1]
                                  : 0;
    return channels == 0
               ? 0
               : operator_times(one_convolution(input, weight) / channels, weight->shape[0]);
}

/* The gradient of the input and that of the weight take as much as forward each; a bias is summed up.  Those that are
 * not asked for are not among the results. */
static uint64_t convolution_backward(const operator_call *c)
{
    if (c->in_count < 3)
        return 0;
    const uint64_t forward = one_convolution(c->is_transposed ? &c->in[1] : &c->in[0], &c->in[2]);
    if (c->out_count == 0)
        return operator_times(forward, 2);
    uint64_t count = 0;
    for (uint32_t i = 0; i < c->out_count; i++) {
        const bool is_bias = c->out[i].rank == 1;
        count = operator_plus(count, is_bias ? orr__operator_elements(&c->in[0]) : forward);
    }
    return count;
}

/* ---- attention ---- */

/* Pairs of a query and a key it sees: key j is seen by query i if j <= i. */
static uint64_t seen_pairs(uint64_t queries, uint64_t keys, bool is_causal)
{
    if (!is_causal)
        return operator_times(queries, keys);
    const uint64_t growing = queries < keys ? queries : keys;
    const uint64_t triangle = growing % 2 ? operator_times((growing + 1) / 2, growing)
                                          : operator_times(growing / 2, growing + 1);
    return operator_plus(triangle, operator_times(queries - growing, keys));
}

typedef struct attention {
    uint64_t batch, heads, queries, keys, width, value_width;
} attention;

static attention by_heads(const operator_tensor *q,
                          const operator_tensor *k,
                          const operator_tensor *v)
{
    attention a = {1, last(q, 2), last(q, 1), last(k, 1), last(q, 0), last(v, 0)};
    for (uint32_t i = 3; i < q->rank; i++)
        a.batch = operator_times(a.batch, last(q, i));
    return a;
}

/* batch x length x heads x width; without a batch the sequences lie one behind the other, and the first list of their
 * ends says how many there are: they are taken to be of one length. */
static attention by_rows(const operator_call *c, const operator_tensor *q)
{
    attention a = {last(q, 3), last(q, 1), last(q, 2), last(q + 1, 2), last(q, 0), last(q + 2, 0)};
    uint64_t sequences = 1;
    for (uint32_t i = 0; q->rank == 3 && sequences == 1 && i < c->in_count; i++) {
        if (c->in[i].rank == 1 && c->in[i].shape[0] > 1)
            sequences = c->in[i].shape[0] - 1;
    }
    a.batch = operator_times(a.batch, sequences);
    a.queries /= sequences;
    a.keys /= sequences;
    return a;
}

/* Where queries, keys and values stand, and how; false: it is no attention, or they are not there. */
static bool read_attention(const operator_call *c,
                           const operator_row *row,
                           bool *is_backward,
                           attention *out)
{
    const operator_rule rule = (operator_rule)row->rule;
    const bool has_rows = rule == RULE_ATTENTION_ROWS || rule == RULE_ATTENTION_ROWS_BACKWARD;
    *is_backward = rule == RULE_ATTENTION_BACKWARD || rule == RULE_ATTENTION_ROWS_BACKWARD;
    const uint32_t first = *is_backward ? 1 : 0;
    if ((!has_rows && !*is_backward && rule != RULE_ATTENTION) || c->in_count < first + 3)
        return false;
    const operator_tensor *q = &c->in[first];
    *out = has_rows ? by_rows(c, q) : by_heads(q, q + 1, q + 2);
    return true;
}

static uint64_t all_pairs(const operator_call *c, const attention *a)
{
    return operator_times(seen_pairs(a->queries, a->keys, c->is_causal),
                          operator_times(a->batch, a->heads));
}

static uint64_t attention_flops(const operator_call *c, const operator_row *row)
{
    attention a;
    bool is_backward;
    if (!read_attention(c, row, &is_backward, &a))
        return 0;
    const uint64_t each =
        is_backward ? operator_plus(operator_times(3, a.width), operator_times(2, a.value_width))
                    : operator_plus(a.width, a.value_width);
    return twice(all_pairs(c, &a), each);
}

/* For each pair: the scale, the maximum, an exponential, sums, conversions.  20 and 64 are what fused kernels of cuDNN take
 * on an H200, all their time taken for work of the vector unit: within a fifth from 100 million pairs on, for heads of 64
 * and of 128 columns alike (docs/design/operators.md). */
enum { SOFTMAX_WORK = 20, SOFTMAX_BACKWARD_WORK = 64 };

uint64_t orr__operator_vector_work(const operator_call *c, const operator_row *row)
{
    attention a;
    bool is_backward;
    if (!read_attention(c, row, &is_backward, &a))
        return 0;
    return operator_times(all_pairs(c, &a), is_backward ? SOFTMAX_BACKWARD_WORK : SOFTMAX_WORK);
}

/* ---- recurrent layers ---- */

/* Every token with every matrix: states and inputs have three dimensions, biases one. */
static uint64_t recurrent(const operator_call *c, uint32_t factor)
{
    if (c->in_count == 0)
        return 0;
    const uint64_t width = last(&c->in[0], 0);
    const uint64_t tokens = width ? orr__operator_elements(&c->in[0]) / width : 0;
    uint64_t weights = 0;
    for (uint32_t i = 1; i < c->in_count; i++) {
        if (c->in[i].rank == 2)
            weights = operator_plus(weights, orr__operator_elements(&c->in[i]));
    }
    return operator_times(twice(tokens, weights), factor);
}

uint64_t orr__operator_product(const operator_call *c, const operator_row *row)
{
    switch ((operator_rule)row->rule) {
    case RULE_PRODUCT:
        return product(c, row->factor);
    case RULE_GROUPED:
        return grouped_product(c);
    case RULE_LINEAR:
        return linear(c);
    case RULE_EINSUM:
        return einsum(c);
    case RULE_CONVOLUTION:
        return convolution(c, c->is_transposed);
    case RULE_TRANSPOSED:
        return convolution(c, true);
    case RULE_CONVOLUTION_BACKWARD:
        return convolution_backward(c);
    case RULE_ATTENTION:
    case RULE_ATTENTION_BACKWARD:
    case RULE_ATTENTION_ROWS:
    case RULE_ATTENTION_ROWS_BACKWARD:
        return attention_flops(c, row);
    case RULE_RECURRENT:
        return recurrent(c, row->factor);
    case RULE_DISTANCE:
        return distances(c, row->factor);
    default:
        return 0;
    }
}
