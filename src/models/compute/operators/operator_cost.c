/* SPDX-License-Identifier: Apache-2.0 */
/* operator_cost.c - the cost of one call: its row, arithmetic by the row's rule, bytes by the row's
 * traffic.
 *
 * Every tensor is read once and written once, ignoring caches.  Of an expanded tensor (stride 0)
 * only the existing elements are read.  Cost: two binary searches and a loop over the
 * dimensions. */
#include "operator_cost.h"
#include "base/arithmetic.h"
#include "base/text/text.h"

/* FLOPs of operators that run on a chip's arrays: matrices, convolutions, attention, recurrent
 * layers.
 *
 * A multiply-add counts as two.  Biases, scales, masks and the softmax inside attention are not
 * counted: they take no time compared with the products, and src/sources/llm counts in the same
 * way.  Backward attention has five products where forward has two: the scores again, then the
 * gradients of values, probabilities, queries and keys.
 *
 * If the tensors do not fit the operator (a broken file, a foreign operator of the same name)
 * nothing is counted. */

/* All elements, including repetitions; 1 for a scalar. */
static uint64_t operator_elements(const operator_tensor *t)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0)
            return 0;
        count = orr_sat_mul(count, t->shape[i]);
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
    return orr_sat_mul(orr_sat_mul(a, b), 2);
}

/* ---- matrices ---- */

/* Batches are broadcast against each other.  A vector on the right is a column. */
static uint64_t matrix_product(const operator_tensor *a, const operator_tensor *b)
{
    const bool is_vector = b->rank < 2;
    const uint32_t most = a->rank > b->rank ? a->rank : b->rank;
    uint64_t count = orr_sat_mul(orr_sat_mul(last(a, 1), last(a, 0)), is_vector ? 1 : last(b, 0));
    for (uint32_t i = 2; i < most; i++) {
        const uint64_t one = last(a, i), other = is_vector ? 1 : last(b, i);
        count = orr_sat_mul(count, one == 1 ? other : one);
    }
    return orr_sat_mul(count, 2);
}

static uint64_t product(const operator_call *c, uint32_t left)
{
    return c->in_count < left + 2 ? 0 : matrix_product(&c->in[left], &c->in[left + 1]);
}

/* Rows times the matrix of their group: every row uses one of them.  If the columns are grouped
 * instead, every column uses one of the left ones. */
static uint64_t grouped_product(const operator_call *c)
{
    if (c->in_count < 2)
        return 0;
    const operator_tensor *a = &c->in[0], *b = &c->in[1];
    uint64_t left = operator_elements(a);
    if (a->rank == 3 && b->rank == 2 && a->shape[0])
        left /= a->shape[0];
    return twice(left, last(b, 0));
}

/* x W^T.  Packed weights have other shapes, so the number of columns is taken from the result if it
 * is known. */
static uint64_t linear(const operator_call *c)
{
    if (c->in_count < 2)
        return 0;
    const uint64_t columns = c->out_count ? last(&c->out[0], 0) : last(&c->in[1], 1);
    return twice(operator_elements(&c->in[0]), columns);
}

static uint64_t distances(const operator_call *c, uint32_t factor)
{
    if (c->in_count < 2)
        return 0;
    return orr_sat_mul(orr_sat_mul(operator_elements(&c->in[0]), last(&c->in[1], 1)), factor);
}

/* ---- einsum ---- */

enum { LETTERS = 52 };

static int letter_number(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

/* Records the sizes of one operand's letters.  An ellipsis covers the remaining dimensions; *rest
 * is their product.  false: letters and dimensions do not fit. */
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
            product_of_rest = orr_sat_mul(product_of_rest, t->shape[at++]);
    }
    if (product_of_rest > *rest)
        *rest = product_of_rest;
    return true;
}

/* Two FLOPs per combination of all letters; exact for two operands, a lower bound for one. */
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
        count = orr_sat_mul(count, sizes[i] ? sizes[i] : 1);
    return c->in_count ? orr_sat_mul(count, c->in_count > 1 ? 2 * (c->in_count - 1) : 1) : 0;
}

/* ---- convolutions ---- */

/* The weight is results x inputs of a group x kernel, so an element of the result uses all of it
 * but the first dimension, whatever the groups; transposed, an element of the input contributes to
 * as many. */
static uint64_t one_convolution(const operator_tensor *each, const operator_tensor *weight)
{
    if (weight->rank == 0 || weight->shape[0] == 0)
        return 0;
    return twice(operator_elements(each), operator_elements(weight) / weight->shape[0]);
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
    return channels == 0 ? 0
                         : orr_sat_mul(one_convolution(input, weight) / channels, weight->shape[0]);
}

/* The gradients of input and weight cost as much as forward each; a bias is summed.  Gradients not
 * requested are not among the results. */
static uint64_t convolution_backward(const operator_call *c)
{
    if (c->in_count < 3)
        return 0;
    const uint64_t forward = one_convolution(c->is_transposed ? &c->in[1] : &c->in[0], &c->in[2]);
    if (c->out_count == 0)
        return orr_sat_mul(forward, 2);
    uint64_t count = 0;
    for (uint32_t i = 0; i < c->out_count; i++) {
        const bool is_bias = c->out[i].rank == 1;
        count = orr_sat_add(count, is_bias ? operator_elements(&c->in[0]) : forward);
    }
    return count;
}

/* ---- attention ---- */

/* Pairs of a query and a key it sees: key j is seen by query i if j <= i. */
static uint64_t seen_pairs(uint64_t queries, uint64_t keys, bool is_causal)
{
    if (!is_causal)
        return orr_sat_mul(queries, keys);
    const uint64_t growing = queries < keys ? queries : keys;
    const uint64_t triangle = growing % 2 ? orr_sat_mul((growing + 1) / 2, growing)
                                          : orr_sat_mul(growing / 2, growing + 1);
    return orr_sat_add(triangle, orr_sat_mul(queries - growing, keys));
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
        a.batch = orr_sat_mul(a.batch, last(q, i));
    return a;
}

/* batch x length x heads x width; without a batch the sequences are concatenated, and the first
 * list of their ends gives their number: assume equal lengths. */
static attention by_rows(const operator_call *c, const operator_tensor *q)
{
    attention a = {last(q, 3), last(q, 1), last(q, 2), last(q + 1, 2), last(q, 0), last(q + 2, 0)};
    uint64_t sequences = 1;
    for (uint32_t i = 0; q->rank == 3 && sequences == 1 && i < c->in_count; i++) {
        if (c->in[i].rank == 1 && c->in[i].shape[0] > 1)
            sequences = c->in[i].shape[0] - 1;
    }
    a.batch = orr_sat_mul(a.batch, sequences);
    a.queries /= sequences;
    a.keys /= sequences;
    return a;
}

/* Position and layout of queries, keys and values; false: not attention, or they are missing. */
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
    return orr_sat_mul(seen_pairs(a->queries, a->keys, c->is_causal),
                       orr_sat_mul(a->batch, a->heads));
}

static uint64_t attention_flops(const operator_call *c, const operator_row *row)
{
    attention a;
    bool is_backward;
    if (!read_attention(c, row, &is_backward, &a))
        return 0;
    const uint64_t each = is_backward
                              ? orr_sat_add(orr_sat_mul(3, a.width), orr_sat_mul(2, a.value_width))
                              : orr_sat_add(a.width, a.value_width);
    return twice(all_pairs(c, &a), each);
}

/* Per pair: scale, maximum, exponential, sums, conversions.  20 and 64 fit fused cuDNN kernels on
 * an H200 if all their time is attributed to the vector unit: within a fifth from 100 million pairs
 * on, for heads of 64 and of 128 columns alike (docs/design/operators.md). */
enum { SOFTMAX_WORK = 20, SOFTMAX_BACKWARD_WORK = 64 };

/* Of attention: the softmax, beside the products. */
static uint64_t operator_vector_work(const operator_call *c, const operator_row *row)
{
    attention a;
    bool is_backward;
    if (!read_attention(c, row, &is_backward, &a))
        return 0;
    return orr_sat_mul(all_pairs(c, &a), is_backward ? SOFTMAX_BACKWARD_WORK : SOFTMAX_WORK);
}

/* ---- recurrent layers ---- */

/* Every token with every matrix: states and inputs have three dimensions, biases one. */
static uint64_t recurrent(const operator_call *c, uint32_t factor)
{
    if (c->in_count == 0)
        return 0;
    const uint64_t width = last(&c->in[0], 0);
    const uint64_t tokens = width ? operator_elements(&c->in[0]) / width : 0;
    uint64_t weights = 0;
    for (uint32_t i = 1; i < c->in_count; i++) {
        if (c->in[i].rank == 2)
            weights = orr_sat_add(weights, operator_elements(&c->in[i]));
    }
    return orr_sat_mul(twice(tokens, weights), factor);
}

/* All elements, including repetitions; 1 for a scalar. */
static uint64_t operator_product(const operator_call *c, const operator_row *row)
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

/* ---- sizes ---- */

/* Existing elements: repeated ones once, and of overlapping windows no more than they span. */
static uint64_t own_elements(const operator_tensor *t)
{
    uint64_t count = 1, span = 1;
    if (!t->stride)
        return operator_elements(t);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] == 0)
            return 0;
        if (t->stride[i] == 0)
            continue;
        count = orr_sat_mul(count, t->shape[i]);
        span = orr_sat_add(span, orr_sat_mul(t->shape[i] - 1, t->stride[i]));
    }
    return count < span ? count : span;
}

static uint64_t own_bytes(const operator_tensor *t)
{
    return orr_sat_mul(own_elements(t), t->element_bytes);
}

static bool is_contiguous(const operator_tensor *t)
{
    uint64_t expected = 1;
    for (uint32_t i = t->rank; t->stride && i-- > 0;) {
        if (t->shape[i] != 1 && t->stride[i] != expected)
            return false;
        expected = orr_sat_mul(expected, t->shape[i]);
    }
    return true;
}

/* Of inputs broadcast against each other. */
static uint64_t stretched_elements(const operator_call *c)
{
    uint32_t most = 0;
    uint64_t count = 1;
    for (uint32_t i = 0; i < c->in_count; i++)
        most = c->in[i].rank > most ? c->in[i].rank : most;
    for (uint32_t from_right = 0; from_right < most; from_right++) {
        uint64_t longest = 1;
        for (uint32_t i = 0; i < c->in_count; i++) {
            const operator_tensor *t = &c->in[i];
            const uint64_t size = t->rank > from_right ? t->shape[t->rank - 1 - from_right] : 1;
            longest = size != 1 ? size : longest;
        }
        count = orr_sat_mul(count, longest);
    }
    return c->in_count ? count : 0;
}

/* ---- lists of an optimizer ---- */

/* Lists of equal length, concatenated: parameters, gradients, states, then possibly the steps. */
typedef struct lists {
    uint32_t length;
    uint32_t count; /* of those shaped like the parameters */
} lists;

static bool same_shape(const operator_tensor *a, const operator_tensor *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

static uint32_t alike_lists(const operator_call *c, uint32_t length)
{
    uint32_t count = 1;
    for (uint32_t i = length; i < c->in_count; i++) {
        if (!same_shape(&c->in[i], &c->in[i - length]))
            break;
        if ((i + 1) % length == 0)
            count++;
    }
    return count;
}

/* Between two lists (plain SGD) and six (Adam with maxima), followed by a few single tensors. */
static lists find_lists(const operator_call *c)
{
    enum { LEAST = 2, MOST = 6, BEHIND = 3 };
    lists best = {0, 0};
    for (uint32_t parts = MOST; parts >= LEAST; parts--) {
        const uint32_t length = c->in_count / parts;
        if (length == 0 || (length > BEHIND && c->in_count % parts > BEHIND))
            continue;
        const uint32_t count = alike_lists(c, length);
        if (count >= LEAST && count + 1 >= parts)
            return (lists){length, count};
        if (count >= LEAST && count > best.count)
            best = (lists){length, count};
    }
    return best;
}

static uint64_t list_elements(const operator_call *c, lists l)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < l.length; i++)
        count = orr_sat_add(count, operator_elements(&c->in[i]));
    return count;
}

/* ---- arithmetic ---- */

/* If the written tensors are unknown: the first of two lists of equal shapes, or everything. */
static uint64_t first_list_elements(const operator_call *c)
{
    const uint32_t half = c->in_count / 2;
    const bool is_pair = c->in_count % 2 == 0 && half && alike_lists(c, half) == 2;
    return list_elements(c, (lists){is_pair ? half : c->in_count, 1});
}

/* The result's elements; of an operation on lists those of all results. */
static uint64_t result_elements(const operator_call *c, const operator_name *name)
{
    uint64_t written = 0, made = 0;
    for (uint32_t i = 0; i < c->in_count; i++) {
        if (c->in[i].is_written)
            written = orr_sat_add(written, operator_elements(&c->in[i]));
    }
    for (uint32_t i = 0; i < c->out_count; i++)
        made = orr_sat_add(made, operator_elements(&c->out[i]));
    if (name->is_list)
        return written ? written : made ? made : first_list_elements(c);
    if (c->out_count)
        return operator_elements(&c->out[0]);
    return written ? written : stretched_elements(c);
}

static uint64_t first_elements(const operator_call *c, const operator_name *name)
{
    uint64_t count = 0;
    for (uint32_t i = 0; name->is_list && i < c->in_count; i++)
        count = orr_sat_add(count, operator_elements(&c->in[i]));
    return name->is_list || c->in_count == 0 ? count : operator_elements(&c->in[0]);
}

static uint64_t last_elements(const operator_call *c)
{
    return c->in_count ? operator_elements(&c->in[c->in_count - 1]) : 0;
}

/* The rows of a table (the first input) selected by the second. */
static uint64_t bag_elements(const operator_call *c)
{
    if (c->in_count < 2 || c->in[0].rank == 0)
        return 0;
    return orr_sat_mul(operator_elements(&c->in[1]), c->in[0].shape[c->in[0].rank - 1]);
}

static uint64_t sorting(const operator_call *c)
{
    uint64_t longest = 1, depth = 1;
    if (c->in_count == 0)
        return 0;
    for (uint32_t i = 0; i < c->in[0].rank; i++)
        longest = c->in[0].shape[i] > longest ? c->in[0].shape[i] : longest;
    while (depth < 63 && (uint64_t)1 << depth < longest)
        depth++;
    return orr_sat_mul(operator_elements(&c->in[0]), depth);
}

static uint64_t count_flops(const operator_call *c,
                            const operator_name *name,
                            const operator_row *row)
{
    uint64_t each;
    switch ((operator_rule)row->rule) {
    case RULE_EACH:
        each = result_elements(c, name);
        break;
    case RULE_OVER:
        each = first_elements(c, name);
        break;
    case RULE_BAGS:
        each = bag_elements(c);
        break;
    case RULE_LAST:
        each = last_elements(c);
        break;
    case RULE_POOL:
        each = first_elements(c, name);
        if (each < result_elements(c, name))
            each = result_elements(c, name);
        break;
    case RULE_SORT:
        each = sorting(c);
        break;
    case RULE_OPTIMIZER:
        each = list_elements(c, find_lists(c));
        break;
    default:
        return operator_product(c, row);
    }
    return orr_sat_mul(each, row->factor);
}

/* ---- traffic ---- */

static uint64_t results_bytes(const operator_call *c)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->out_count; i++)
        bytes = orr_sat_add(bytes, own_bytes(&c->out[i]));
    return bytes;
}

static uint64_t inputs_bytes(const operator_call *c, bool is_written)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->in_count; i++) {
        if (c->in[i].is_written == is_written)
            bytes = orr_sat_add(bytes, own_bytes(&c->in[i]));
    }
    return bytes;
}

/* Results of an in-place operator are its inputs again.  A reader that does not know which inputs
 * are written marks none: then the results count. */
static uint64_t written_bytes(const operator_call *c, const operator_name *name)
{
    const uint64_t in_place = inputs_bytes(c, true), made = results_bytes(c);
    if (name->is_in_place || name->is_out)
        return in_place ? in_place : made;
    return orr_sat_add(in_place, made);
}

static uint64_t all_read(const operator_call *c, const operator_name *name)
{
    const uint64_t only_read = inputs_bytes(c, false);
    return name->is_out ? only_read : orr_sat_add(only_read, inputs_bytes(c, true));
}

static uint64_t read_behind_first(const operator_call *c)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < c->in_count; i++)
        bytes = orr_sat_add(bytes, own_bytes(&c->in[i]));
    return bytes;
}

/* Overwritten inputs are marked, or else they are the first half of two lists, or the first of
 * all. */
static uint64_t read_beside_targets(const operator_call *c, const operator_name *name)
{
    if (inputs_bytes(c, true) || !name->is_in_place)
        return inputs_bytes(c, false);
    uint64_t bytes = 0;
    for (uint32_t i = name->is_list ? c->in_count / 2 : 1; i < c->in_count; i++)
        bytes = orr_sat_add(bytes, own_bytes(&c->in[i]));
    return bytes;
}

static uint64_t read_picked(const operator_call *c, uint64_t elements)
{
    if (c->in_count == 0)
        return 0;
    const uint64_t picked = orr_sat_mul(elements, c->in[0].element_bytes);
    return orr_sat_add(orr_min_u64(picked, own_bytes(&c->in[0])), read_behind_first(c));
}

static void count_scatter(const operator_call *c,
                          const operator_name *name,
                          bool is_sum,
                          operator_cost *out)
{
    if (c->in_count == 0)
        return;
    const operator_tensor *into = &c->in[0];
    const uint64_t touched =
        orr_min_u64(orr_sat_mul(last_elements(c), into->element_bytes), own_bytes(into));
    out->bytes_read = orr_sat_add(read_behind_first(c), is_sum ? touched : 0);
    out->bytes_written = touched;
    if (!name->is_in_place) { /* what is not touched is copied */
        out->bytes_read = orr_sat_add(out->bytes_read, own_bytes(into) - (is_sum ? touched : 0));
        out->bytes_written = own_bytes(into);
    }
}

static void count_optimizer(const operator_call *c, operator_cost *out)
{
    const lists l = find_lists(c);
    out->bytes_written = 0;
    out->bytes_read = orr_sat_add(inputs_bytes(c, false), inputs_bytes(c, true));
    for (uint32_t i = 0; i < l.length * l.count; i++) {
        if (i / l.length != 1)
            out->bytes_written = orr_sat_add(out->bytes_written, own_bytes(&c->in[i]));
    }
}

static uint64_t read_but(const operator_call *c, uint32_t skipped)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->in_count; i++)
        bytes = i == skipped ? bytes : orr_sat_add(bytes, own_bytes(&c->in[i]));
    return bytes;
}

static void count_bytes(const operator_call *c,
                        const operator_name *name,
                        const operator_row *row,
                        operator_cost *out)
{
    out->bytes_written = written_bytes(c, name);
    switch (row ? (operator_traffic)row->traffic : TRAFFIC_ALL) {
    case TRAFFIC_ALL:
        out->bytes_read = all_read(c, name);
        break;
    case TRAFFIC_WRITE:
        break;
    case TRAFFIC_OVERWRITE:
        out->bytes_read = read_beside_targets(c, name);
        break;
    case TRAFFIC_PICK:
        out->bytes_read = read_picked(c, c->out_count ? operator_elements(&c->out[0]) : 0);
        break;
    case TRAFFIC_PICK_ROWS:
        out->bytes_read = read_picked(c, c->in_count > 1 ? operator_elements(&c->in[1]) : 0);
        break;
    case TRAFFIC_PICK_BAGS:
        out->bytes_read = read_picked(c, bag_elements(c));
        break;
    case TRAFFIC_SKIP:
        out->bytes_read = read_but(c, 1);
        break;
    case TRAFFIC_SCATTER:
        count_scatter(c, name, row->rule == RULE_LAST, out);
        break;
    case TRAFFIC_THROUGH:
        out->bytes_read = c->in_count ? read_but(c, c->in_count - 1) : 0;
        out->bytes_written = out->bytes_read;
        break;
    case TRAFFIC_OPTIMIZER:
        count_optimizer(c, out);
        break;
    }
}

/* ---- kinds ---- */

static bool is_collective(orr_str space)
{
    return orr_str_is(space, "c10d") || orr_str_is(space, "_c10d_functional") ||
           orr_str_is(space, "c10d_functional") || orr_str_is(space, "_c10d_functional_autograd") ||
           orr_str_is(space, "_dtensor");
}

/* Reshaping is a view if the elements are contiguous; converting a type to itself is free. */
static bool is_needless(const operator_call *c)
{
    if (c->in_count == 0)
        return true;
    const bool is_converted = c->out_count && c->out[0].element_bytes != c->in[0].element_bytes;
    return !is_converted && is_contiguous(&c->in[0]);
}

static operator_kind kind_of(const operator_call *c,
                             const operator_name *name,
                             const operator_row *row)
{
    if (orr_str_is(name->base, "wait_tensor") || orr_str_is(name->base, "wait"))
        return orr_str_is(name->space, "aten") ? OPERATOR_UNKNOWN : OPERATOR_WAIT;
    if (is_collective(name->space))
        return OPERATOR_COLLECTIVE;
    if (c->is_view || orr_str_is(name->space, "profiler"))
        return OPERATOR_FREE; /* profiler marks are not work */
    if (!row || (row->rule == RULE_EINSUM && c->equation.len == 0))
        return OPERATOR_UNKNOWN; /* the operands of the product are unknown */
    if (row->rule == RULE_MAYBE)
        return is_needless(c) ? OPERATOR_FREE : OPERATOR_MOVE;
    if (row->rule == RULE_FREE)
        return OPERATOR_FREE;
    return row->rule == RULE_MOVE ? OPERATOR_MOVE : OPERATOR_COMPUTE;
}

operator_cost orr__operator_cost_of(const operator_call *call,
                                    const operator_name *name,
                                    const operator_row *row)
{
    operator_cost out = {.kind = kind_of(call, name, row)};
    if (out.kind == OPERATOR_COMPUTE) {
        out.flops = count_flops(call, name, row);
        out.vector_work = operator_vector_work(call, row);
        out.is_product = row->rule >= RULE_PRODUCT && row->rule <= RULE_DISTANCE;
    }
    if (out.kind == OPERATOR_COMPUTE || out.kind == OPERATOR_MOVE || out.kind == OPERATOR_UNKNOWN)
        count_bytes(call, name, row, &out);
    return out;
}

operator_cost orr__operator_cost(const operator_call *call)
{
    const operator_name name = orr__operator_name(call->name);
    return orr__operator_cost_of(call, &name, orr__operator_row(&name));
}

static double longer(double a, double b)
{
    return a > b ? a : b;
}

static double needed(double work, double rate)
{
    return rate > 0 ? work / rate : 0;
}

double orr__operator_seconds(const operator_cost *cost, const operator_rates *rates)
{
    const double flops = (double)cost->flops;
    const double bytes = (double)cost->bytes_read + (double)cost->bytes_written;
    const double work = cost->is_product ? longer(needed(flops, rates->arrays),
                                                  needed((double)cost->vector_work, rates->vector))
                                         : needed(flops, rates->vector);
    return longer(work, needed(bytes, rates->memory));
}
