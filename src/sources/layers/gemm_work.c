/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_work.c - the work of one NPU for a layer: products, vector operations, traffic, collectives.
 *
 * Every kind of layer with weights becomes `count` products M x K by K x N per pass, in the roles
 * of the table of spec scale-sim.md, 7.3: forward M x K x N, gradient of the inputs M x N x K,
 * gradient of the weights K x M x N. The batch (M) is cut `ways.batch` ways, the outputs (N)
 * `ways.output` ways; the slowest NPU has the larger share, so shares are rounded up.  An empty
 * share is an error: idle NPUs are not intended. Traffic counts real tensors: repeated reads by a
 * convolution are served by the buffers. docs/design/gemm.md has the table of all kinds.
 *
 * Sizes come from a file: every product goes through mul(), which records an overflow. */
#include "gemm_impl.h"

#include "base/arithmetic.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { SHOWN = 60 };

/* Vector operations for an element.  Softmax: maximum, difference, exponential, sum, quotient; and
 * back: product, sum, difference, product.  Norm: mean, difference, square, variance, quotient,
 * gain, offset; twice that back. */
enum { SOFTMAX_OPS = 5, SOFTMAX_BACK_OPS = 4, NORM_OPS = 7, NORM_BACK_OPS = 14 };

/* The layer being evaluated. */
typedef struct job {
    const lay_shape *s;
    lay_ways ways;
    const lay_buffers *buffers;
    const char *label;
    lay_work *out;
    bool overflowed;
} job;

/* ---- arithmetic ---- */

static uint64_t mul(job *j, uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    j->overflowed |= __builtin_mul_overflow(a, b, &product);
    return product;
}

static uint64_t add(job *j, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    j->overflowed |= __builtin_add_overflow(a, b, &sum);
    return sum;
}

static uint64_t mul3(job *j, uint64_t a, uint64_t b, uint64_t c)
{
    return mul(j, mul(j, a, b), c);
}

static uint64_t mul4(job *j, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return mul(j, mul(j, a, b), mul(j, c, d));
}

static uint64_t root(uint64_t n)
{
    uint64_t r = 0;
    for (uint64_t bit = 1ull << 31; bit; bit >>= 1) {
        if ((r + bit) * (r + bit) <= n)
            r += bit;
    }
    return r;
}

/* ---- sharing out ---- */

lay_ways lay_ways_of(orr_policy p, uint64_t npus, uint64_t packages)
{
    const uint64_t inside = npus / packages;
    switch (p) {
    case ORR_POLICY_MODEL:
        return (lay_ways){1, npus};
    case ORR_POLICY_HYBRID_DATA_MODEL:
        return (lay_ways){packages, inside};
    case ORR_POLICY_HYBRID_MODEL_DATA:
        return (lay_ways){inside, packages};
    default:
        return (lay_ways){npus, 1};
    }
}

/* Something is wrong with a size of this layer, or with the layer when it was not given. */
ORR_PRINTF(4, 5)
static orr_code fault(const job *j, lay_size size, orr_error *err, const char *fmt, ...)
{
    const lay_shape *s = j->s;
    char words[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    return orr_fail(
        err, ORR_EINPUT,
        ORR_AT(orr_where_line(j->label, s->line, s->column[size] ? s->column[size] : 1)),
        "%.*s: %s", ORR_SHOWN(s->name, SHOWN), words);
}

/* One size cut so many ways, rounded up. */
static orr_code cut(job *j, lay_size size, uint64_t ways, lay_shape *mine, orr_error *err)
{
    const uint64_t all = j->s->size[size];
    if (all < ways)
        return fault(j, size, err,
                     "%s of %" PRIu64 " cannot be shared by %" PRIu64
                     ": some would have nothing to do",
                     lay_size_name(size), all, ways);
    mine->size[size] = orr_div_up(all, ways);
    j->out->imbalance =
        (j->out->imbalance + 1) * (double)mine->size[size] * (double)ways / (double)all - 1;
    return ORR_OK;
}

/* The sizes that hold the batch and the outputs. */
static orr_code share(job *j, lay_size batch, lay_size output, lay_shape *mine, orr_error *err)
{
    *mine = *j->s;
    const orr_code code = cut(j, batch, j->ways.batch, mine, err);
    return code ? code : cut(j, output, j->ways.output, mine, err);
}

/* ---- pieces ---- */

static lay_op *add_op(job *j, int pass, uint64_t vector_ops, uint64_t elements)
{
    lay_pass_work *p = &j->out->pass[pass];
    lay_op *op = &p->op[p->op_count++];
    *op = (lay_op){.vector_ops = vector_ops, .elements = elements};
    return op;
}

static void add_product(lay_op *op, uint64_t count, uint64_t m, uint64_t n, uint64_t k)
{
    op->product[op->product_count++] = (lay_product){count, m, n, k, 1, 1};
}

/* A product of the array as a kernel: with the layout of its operands in memory. */
static void set_product(
    lay_op *op, orr_kernel_layout layout, uint64_t count, uint64_t m, uint64_t n, uint64_t k)
{
    op->kernel = (orr_kernel){.kind = ORR_KERNEL_GEMM,
                              .layout = layout,
                              .batch = count > 1 ? count : 0,
                              .m = m,
                              .n = n,
                              .k = k};
}

/* A pass over elements that are neighbours. */
static void set_pass(lay_op *op, uint64_t read, uint64_t write)
{
    op->kernel = (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE, .read = read, .write = write};
}

static void send(job *j, int pass, const char *comm, uint64_t elements)
{
    j->out->pass[pass].comm = comm;
    j->out->pass[pass].comm_elements = elements;
}

/* Elements moved for a product of `left` by `right` giving `result` (m x n), with limited on-chip
 * memory: the best of three orders.  Keep pieces of the left factor and stream all of the right one
 * for each; vice versa; or keep square pieces of the result and stream both factors. */
static uint64_t traffic(
    job *j, uint64_t left, uint64_t right, uint64_t result, uint64_t m, uint64_t n)
{
    const lay_buffers *b = j->buffers;
    const uint64_t side = root(b->output);
    const uint64_t orders[] = {
        add(j, left, mul(j, right, orr_div_up(left, b->input))),
        add(j, right, mul(j, left, orr_div_up(right, b->weight))),
        add(j, mul(j, left, orr_div_up(n, side)), mul(j, right, orr_div_up(m, side))),
    };
    uint64_t least = orders[0];
    for (size_t i = 1; i < 3; i++)
        least = orders[i] < least ? orders[i] : least;
    return add(j, least, result);
}

/* ---- layers with weights ---- */

/* `count` products M x K by K x N on one NPU, with the tensors behind one of them. */
typedef struct linear {
    uint64_t count, m, n, k;
    uint64_t input, weight, output; /* elements of one product's tensors */
    uint64_t whole_input;           /* of all products: what the gradient of the inputs has */
    orr_kernel image;               /* of a convolution: its kernel */
} linear;

static void linear_work(job *j, const linear *l)
{
    const uint64_t c = l->count;
    const uint64_t moved[ORR_PASSES] = {
        traffic(j, l->input, l->weight, l->output, l->m, l->n),
        traffic(j, l->output, l->weight, l->input, l->m, l->k),
        traffic(j, l->input, l->output, l->weight, l->k, l->n),
    };
    lay_op *ops[ORR_PASSES];
    for (int i = 0; i < ORR_PASSES; i++)
        ops[i] = add_op(j, i, 0, mul(j, c, moved[i]));
    add_product(ops[ORR_PASS_FORWARD], c, l->m, l->n, l->k);
    add_product(ops[ORR_PASS_INPUT_GRAD], c, l->m, l->k, l->n);
    add_product(ops[ORR_PASS_WEIGHT_GRAD], c, l->k, l->n, l->m);
    if (l->image.kind == ORR_KERNEL_CONV) {
        for (int i = 0; i < ORR_PASSES; i++)
            ops[i]->kernel = l->image;
        ops[ORR_PASS_INPUT_GRAD]->kernel.is_backward = true;
        ops[ORR_PASS_WEIGHT_GRAD]->kernel.is_backward = true;
        ops[ORR_PASS_INPUT_GRAD]->kernel_shares = ops[ORR_PASS_WEIGHT_GRAD]->kernel_shares = 2;
    } else { /* weights are stored by output, as PyTorch and Megatron do */
        set_product(ops[ORR_PASS_FORWARD], ORR_LAYOUT_NT, c, l->m, l->n, l->k);
        set_product(ops[ORR_PASS_INPUT_GRAD], ORR_LAYOUT_NN, c, l->m, l->k, l->n);
        set_product(ops[ORR_PASS_WEIGHT_GRAD], ORR_LAYOUT_TN, c, l->n, l->k, l->m);
    }
    j->out->weights = j->out->updated = mul(j, c, l->weight);
    if (j->ways.output > 1) {
        send(j, ORR_PASS_FORWARD, "ALLGATHER", mul(j, c, l->output));
        send(j, ORR_PASS_INPUT_GRAD, "REDUCESCATTER", l->whole_input);
    }
    if (j->ways.batch > 1)
        send(j, ORR_PASS_WEIGHT_GRAD, "ALLREDUCE", j->out->weights);
}

static orr_code gemm_work(job *j, orr_error *err)
{
    lay_shape mine;
    const orr_code code = share(j, ORR__M, ORR__N, &mine, err);
    if (code)
        return code;
    linear l = {.count = 1, .m = mine.size[ORR__M], .n = mine.size[ORR__N], .k = mine.size[ORR__K]};
    l.input = mul(j, l.m, l.k);
    l.weight = mul(j, l.k, l.n);
    l.output = mul(j, l.m, l.n);
    l.whole_input = l.input;
    linear_work(j, &l);
    return ORR_OK;
}

/* How many places a kernel has along one side; 0: it does not fit. */
static uint64_t outputs_along(job *j, const lay_shape *s, lay_size image, lay_size kernel)
{
    const uint64_t reach = add(j, mul(j, s->size[ORR__DILATION], s->size[kernel] - 1), 1);
    const uint64_t padded = add(j, s->size[image], mul(j, 2, s->size[ORR__PAD]));
    return reach > padded ? 0 : (padded - reach) / s->size[ORR__STRIDE] + 1;
}

/* Output channels are distributed group by group; with fewer groups than ways, a group's channels
 * are cut, over as many NPUs as the group with the fewest has. */
static void share_channels(const job *j, const lay_shape *s, uint64_t *groups, uint64_t *channels)
{
    const uint64_t per_group = s->size[ORR__COUT] / s->size[ORR__GROUPS];
    const uint64_t apart =
        s->size[ORR__GROUPS] < j->ways.output ? s->size[ORR__GROUPS] : j->ways.output;
    *groups = orr_div_up(s->size[ORR__GROUPS], apart);
    *channels = orr_div_up(per_group, j->ways.output / apart);
}

/* Kernels are measured on square images: others count by their area. */
static uint64_t side_of(uint64_t high, uint64_t wide)
{
    return high == wide ? high : (uint64_t)(sqrt((double)high * (double)wide) + 0.5);
}

/* As in operator_kernel.c. */
static orr_kernel image_kernel(
    job *j, const lay_shape *s, const lay_shape *mine, const linear *l, uint64_t out_side)
{
    orr_kernel k = {.kind = ORR_KERNEL_CONV,
                    .batch = mine->size[ORR__BATCH],
                    .n = mul(j, l->count, l->n),
                    .k = mul(j, l->count, s->size[ORR__CIN] / s->size[ORR__GROUPS]),
                    .window = side_of(s->size[ORR__KH], s->size[ORR__KW]),
                    .groups = l->count > 1 ? l->count : 0};
    orr_kernel_set_sides(&k, side_of(s->size[ORR__HEIGHT], s->size[ORR__WIDTH]), out_side);
    return k;
}

static orr_code conv_work(job *j, orr_error *err)
{
    lay_shape mine;
    const lay_shape *s = j->s;
    const uint64_t groups = s->size[ORR__GROUPS];
    if (s->size[ORR__CIN] % groups)
        return fault(j, ORR__GROUPS, err, "groups does not divide cin");
    if (s->size[ORR__COUT] % groups)
        return fault(j, ORR__GROUPS, err, "groups does not divide cout");
    const orr_code code = share(j, ORR__BATCH, ORR__COUT, &mine, err);
    if (code)
        return code;
    const uint64_t high = outputs_along(j, s, ORR__HEIGHT, ORR__KH);
    const uint64_t wide = outputs_along(j, s, ORR__WIDTH, ORR__KW);
    if (high == 0 || wide == 0)
        return fault(j, ORR__KH, err, "the kernel is larger than the image with its padding");
    linear l = {.m = mul3(j, mine.size[ORR__BATCH], high, wide)};
    share_channels(j, s, &l.count, &l.n);
    j->out->imbalance =
        (j->out->imbalance + 1) * (double)l.count * (double)l.n / (double)mine.size[ORR__COUT] -
        1; /* whole groups are coarser than channels */
    l.k = mul3(j, s->size[ORR__KH], s->size[ORR__KW], s->size[ORR__CIN] / groups);
    l.input = mul4(j, mine.size[ORR__BATCH], s->size[ORR__HEIGHT], s->size[ORR__WIDTH],
                   s->size[ORR__CIN] / groups);
    l.weight = mul(j, l.k, l.n);
    l.output = mul(j, l.m, l.n);
    l.whole_input = mul(j, l.input, groups);
    l.image = image_kernel(j, s, &mine, &l, side_of(high, wide));
    linear_work(j, &l);
    return ORR_OK;
}

/* One table with one word per row of the batch is that of a language model; others are bags, whose
 * gradient goes to the rows that were looked up. */
static void embedding_kernels(
    const lay_shape *mine, lay_op *forward, lay_op *back, uint64_t rows, uint64_t out)
{
    const uint64_t width = mine->size[ORR__DIM];
    if (mine->size[ORR__LOOKUPS] == 1 && mine->size[ORR__TABLES] == 1) {
        forward->kernel = (orr_kernel){.kind = ORR_KERNEL_EMBEDDING,
                                       .m = mine->size[ORR__BATCH],
                                       .n = width,
                                       .k = mine->size[ORR__ROWS]};
        back->kernel = forward->kernel;
    } else {
        set_pass(forward, rows, out);
        forward->kernel.is_strided = true;
        back->kernel = (orr_kernel){.kind = ORR_KERNEL_GATHER, .m = rows / width, .n = width};
    }
    back->kernel.is_backward = true;
}

/* Gather rows and sum them; backward, add the gradient to every row that was looked up.  Whole
 * tables go to one NPU. */
static orr_code embedding_work(job *j, orr_error *err)
{
    lay_shape mine;
    const orr_code code = share(j, ORR__BATCH, ORR__TABLES, &mine, err);
    if (code)
        return code;
    const uint64_t out =
        mul3(j, mine.size[ORR__BATCH], mine.size[ORR__TABLES], mine.size[ORR__DIM]);
    const uint64_t rows = mul(j, out, mine.size[ORR__LOOKUPS]);
    embedding_kernels(&mine, add_op(j, ORR_PASS_FORWARD, rows, add(j, rows, out)),
                      add_op(j, ORR_PASS_WEIGHT_GRAD, rows, add(j, mul(j, 2, rows), out)), rows,
                      out);
    j->out->weights = mul3(j, mine.size[ORR__TABLES], mine.size[ORR__ROWS], mine.size[ORR__DIM]);
    /* Rows that were not looked up are unchanged, unless gradients are summed over whole tables. */
    j->out->updated = j->ways.batch > 1 || rows > j->out->weights ? j->out->weights : rows;
    if (j->ways.output > 1) {
        send(j, ORR_PASS_FORWARD, "ALLTOALL", out);
        send(j, ORR_PASS_INPUT_GRAD, "ALLTOALL", out);
    }
    if (j->ways.batch > 1)
        send(j, ORR_PASS_WEIGHT_GRAD, "ALLREDUCE", j->out->weights);
    return ORR_OK;
}

/* ---- products of inputs ---- */

/* The batch is cut both ways.  Back, both factors have a gradient and no weights do. */
static orr_code bmm_work(job *j, orr_error *err)
{
    const lay_shape *s = j->s;
    const uint64_t m = s->size[ORR__M], n = s->size[ORR__N], k = s->size[ORR__K];
    lay_shape mine = *s;
    const orr_code code = cut(j, ORR__BATCH, j->ways.batch * j->ways.output, &mine, err);
    if (code)
        return code;
    const uint64_t c = mine.size[ORR__BATCH];
    const uint64_t left = mul(j, m, k), right = mul(j, k, n), out = mul(j, m, n);
    const uint64_t moved[] = {traffic(j, left, right, out, m, n),
                              traffic(j, out, right, left, m, k),
                              traffic(j, left, out, right, k, n)};
    lay_op *op = add_op(j, ORR_PASS_FORWARD, 0, mul(j, c, moved[0]));
    add_product(op, c, m, n, k);
    set_product(op, ORR_LAYOUT_NN, c, m, n, k);
    op = add_op(j, ORR_PASS_INPUT_GRAD, 0, mul(j, c, moved[1]));
    add_product(op, c, m, k, n);
    set_product(op, ORR_LAYOUT_NT, c, m, k, n);
    op = add_op(j, ORR_PASS_INPUT_GRAD, 0, mul(j, c, moved[2]));
    add_product(op, c, k, n, m);
    set_product(op, ORR_LAYOUT_TN, c, k, n, m);
    if (j->ways.output > 1)
        send(j, ORR_PASS_FORWARD, "ALLGATHER", mul(j, c, out));
    return ORR_OK;
}

/* ---- attention ---- */

/* The tensors of one NPU, in elements. */
typedef struct heads {
    uint64_t count, seq_q, seq_k, dim;
    uint64_t q, kv;            /* of queries (and outputs); of keys, and of values */
    uint64_t scores;           /* that are computed at all */
    uint64_t pairs, all_pairs; /* of one head: not masked, and all */
    orr_kernel kernel;         /* fused, forward */
} heads;

static void add_masked(const heads *h, lay_op *op, uint64_t m, uint64_t n, uint64_t k)
{
    add_product(op, h->count, m, n, k);
    op->product[op->product_count - 1].part = h->pairs;
    op->product[op->product_count - 1].whole = h->all_pairs;
}

/* Scores stay on the chip: one operation each way, in which the backward one computes the scores
 * again. */
static void fused_work(job *j, const heads *h)
{
    const uint64_t q = h->seq_q, k = h->seq_k, d = h->dim;
    const uint64_t there = add(j, mul(j, 2, h->q), mul(j, 2, h->kv));
    lay_op *op = add_op(j, ORR_PASS_FORWARD, mul(j, SOFTMAX_OPS, h->scores), there);
    add_masked(h, op, q, k, d);
    add_masked(h, op, q, d, k);
    op->kernel = h->kernel;
    op = add_op(j, ORR_PASS_INPUT_GRAD, mul(j, SOFTMAX_OPS + SOFTMAX_BACK_OPS, h->scores),
                mul(j, 2, there));
    op->kernel = h->kernel;
    op->kernel.kind = ORR_KERNEL_ATTENTION;
    op->kernel.is_backward = true;
    add_masked(h, op, q, k, d); /* scores */
    add_masked(h, op, k, d, q); /* gradient of the values */
    add_masked(h, op, q, k, d); /* of the scores */
    add_masked(h, op, q, d, k); /* of the queries */
    add_masked(h, op, k, d, q); /* of the keys */
}

/* One product; its kernel computes masked scores, too. */
static void add_scores(job *j,
                       const heads *h,
                       int pass,
                       uint64_t elements,
                       uint64_t m,
                       uint64_t n,
                       uint64_t k,
                       orr_kernel_layout layout)
{
    lay_op *op = add_op(j, pass, 0, elements);
    add_masked(h, op, m, n, k);
    set_product(op, layout, h->count, m, n, k);
}

static void add_softmax(job *j, const heads *h, int pass)
{
    const bool is_backward = pass != ORR_PASS_FORWARD;
    lay_op *op = add_op(j, pass, mul(j, is_backward ? SOFTMAX_BACK_OPS : SOFTMAX_OPS, h->scores),
                        mul(j, is_backward ? 3 : 2, h->scores));
    op->kernel = (orr_kernel){.kind = ORR_KERNEL_SOFTMAX,
                              .m = mul(j, h->count, h->seq_q),
                              .n = h->seq_k,
                              .is_backward = is_backward};
}

/* One operation each, scores to memory and back in between. */
static void plain_work(job *j, const heads *h)
{
    const uint64_t q = h->seq_q, k = h->seq_k, d = h->dim;
    const uint64_t with_q = add(j, add(j, h->q, h->kv), h->scores);
    add_scores(j, h, ORR_PASS_FORWARD, with_q, q, k, d, ORR_LAYOUT_NT);
    add_softmax(j, h, ORR_PASS_FORWARD);
    add_scores(j, h, ORR_PASS_FORWARD, with_q, q, d, k, ORR_LAYOUT_NN);
    add_scores(j, h, ORR_PASS_INPUT_GRAD, with_q, k, d, q, ORR_LAYOUT_TN);
    add_scores(j, h, ORR_PASS_INPUT_GRAD, with_q, q, k, d, ORR_LAYOUT_NT);
    add_softmax(j, h, ORR_PASS_INPUT_GRAD);
    add_scores(j, h, ORR_PASS_INPUT_GRAD, with_q, q, d, k, ORR_LAYOUT_NN);
    add_scores(j, h, ORR_PASS_INPUT_GRAD, with_q, k, d, q, ORR_LAYOUT_TN);
}

static orr_code attention_work(job *j, orr_error *err)
{
    lay_shape mine;
    const lay_shape *s = j->s;
    const bool is_causal = s->size[ORR__CAUSAL];
    heads h = {
        .seq_q = s->size[ORR__SEQ_Q], .seq_k = s->size[ORR__SEQ_K], .dim = s->size[ORR__HEAD_DIM]};
    if (is_causal && h.seq_k < h.seq_q)
        return fault(j, ORR__SEQ_K, err, "causal attention needs a seq_k of at least seq_q");
    if (s->size[ORR__HEADS] % s->size[ORR__KV_HEADS])
        return fault(j, ORR__KV_HEADS, err, "kv_heads does not divide heads");
    const orr_code code = share(j, ORR__BATCH, ORR__HEADS, &mine, err);
    if (code)
        return code;
    const uint64_t kv_heads = orr_div_up(s->size[ORR__KV_HEADS], j->ways.output);
    h.count = mul(j, mine.size[ORR__BATCH], mine.size[ORR__HEADS]);
    h.q = mul3(j, h.count, h.seq_q, h.dim);
    h.kv = mul4(j, mine.size[ORR__BATCH], kv_heads, h.seq_k, h.dim);
    h.all_pairs = h.pairs = mul(j, h.seq_q, h.seq_k);
    if (is_causal) /* the last query sees all keys, the one before it one fewer, and so on */
        h.pairs -= mul(j, h.seq_q, h.seq_q - 1) / 2;
    h.scores = mul(j, h.count, h.pairs);
    const bool is_one = h.seq_q == 1; /* a new token against a cache */
    h.kernel = (orr_kernel){.kind = is_one ? ORR_KERNEL_DECODE : ORR_KERNEL_ATTENTION,
                            .batch = mine.size[ORR__BATCH],
                            .heads = mine.size[ORR__HEADS],
                            .kv_heads = kv_heads,
                            .head = h.dim,
                            .q = h.seq_q,
                            .kv = h.seq_k,
                            .is_causal = is_causal && !is_one};
    if (s->size[ORR__FUSED])
        fused_work(j, &h);
    else
        plain_work(j, &h);
    if (j->ways.output > 1) /* heads are apart; the layer above wants them all */
        send(j, ORR_PASS_FORWARD, "ALLGATHER", h.q);
    return ORR_OK;
}

/* ---- layers that only touch elements ---- */

/* Rows are cut; in a group that shares the model everyone has all columns and does the same. */
static orr_code norm_work(job *j, orr_error *err)
{
    lay_shape mine = *j->s;
    const orr_code code = cut(j, ORR__M, j->ways.batch, &mine, err);
    if (code)
        return code;
    const uint64_t n = mul(j, mine.size[ORR__M], mine.size[ORR__N]);
    const uint64_t weights = mul(j, 2, mine.size[ORR__N]); /* gain and offset */
    const orr_kernel kernel = {.kind = ORR_KERNEL_NORM,
                               .form = ORR_FORM_LAYER,
                               .m = mine.size[ORR__M],
                               .n = mine.size[ORR__N]};
    lay_op *op = add_op(j, ORR_PASS_FORWARD, mul(j, NORM_OPS, n), add(j, mul(j, 2, n), weights));
    op->kernel = kernel;
    op = add_op(j, ORR_PASS_INPUT_GRAD, mul(j, NORM_BACK_OPS, n), add(j, mul(j, 3, n), weights));
    op->kernel = kernel;
    op->kernel.is_backward = true; /* of gain and offset, too */
    j->out->weights = j->out->updated = weights;
    if (j->ways.batch > 1)
        send(j, ORR_PASS_WEIGHT_GRAD, "ALLREDUCE", weights);
    return ORR_OK;
}

/* Forward: the operands are read, the result is written.  Back: the gradient and the operands are
 * read, a gradient is written for each operand. */
static orr_code elementwise_work(job *j, orr_error *err)
{
    lay_shape mine = *j->s;
    const uint64_t operands = j->s->kind == ORR_SHAPE_ACTIVATION ? 1 : j->s->size[ORR__OPERANDS];
    const orr_code code = cut(j, ORR__M, j->ways.batch, &mine, err);
    if (code)
        return code;
    const uint64_t n = mul(j, mine.size[ORR__M], mine.size[ORR__N]);
    const uint64_t ops = mul(j, n, operands);
    lay_op *forward = add_op(j, ORR_PASS_FORWARD, ops, add(j, ops, n));
    lay_op *back = add_op(j, ORR_PASS_INPUT_GRAD, ops, add(j, mul(j, 2, ops), n));
    if (j->s->kind == ORR_SHAPE_ACTIVATION) {
        forward->kernel =
            (orr_kernel){.kind = ORR_KERNEL_ACTIVATION, .form = ORR_FORM_GELU, .m = n};
        back->kernel = forward->kernel;
        back->kernel.is_backward = true;
    } else {
        set_pass(forward, ops, n);
        set_pass(back, add(j, ops, n), ops);
    }
    return ORR_OK;
}

/* ---- all kinds ---- */

orr_code lay_work_of(const lay_shape *s,
                     lay_ways ways,
                     const lay_buffers *buffers,
                     const char *label,
                     lay_work *out,
                     orr_error *err)
{
    static orr_code (*const kinds[ORR_SHAPE_KINDS])(job *, orr_error *) = {
        [ORR_SHAPE_GEMM] = gemm_work,
        [ORR_SHAPE_BMM] = bmm_work,
        [ORR_SHAPE_CONV] = conv_work,
        [ORR_SHAPE_EMBEDDING] = embedding_work,
        [ORR_SHAPE_ATTENTION] = attention_work,
        [ORR_SHAPE_NORM] = norm_work,
        [ORR_SHAPE_ELEMENTWISE] = elementwise_work,
        [ORR_SHAPE_ACTIVATION] = elementwise_work,
    };
    job j = {.s = s, .ways = ways, .buffers = buffers, .label = label, .out = out};
    *out = (lay_work){.weights = 0};
    for (int i = 0; i < ORR_PASSES; i++)
        out->pass[i].comm = "NONE";
    const orr_code code = kinds[s->kind](&j, err);
    if (code || !j.overflowed)
        return code;
    return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(label, s->line, 1)),
                    "%.*s: the layer is too large: its elements do not fit into 64 bits",
                    ORR_SHOWN(s->name, SHOWN));
}
