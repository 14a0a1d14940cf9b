/* SPDX-License-Identifier: Apache-2.0 */
/* operator_kernel.c - the kernels that one call of a PyTorch operator launches.
 *
 * Shapes and strides determine what the name leaves open: which factor of a product is transposed,
 * which dimensions a sum reduces, whether operands are contiguous (one vectorised pass) or not (an
 * index computation per element, a third of the rate).  The kernels are those of eager PyTorch 2.11
 * on a GPU, whatever device the step was captured on. */
#include "base/text/text.h"
#include "operator_cost.h"

#include <math.h>

typedef struct kernel_list {
    const operator_call *call;
    const operator_name *name;
    const operator_cost *cost;
    orr_kernel *out;
    size_t count;
} kernel_list;

static void add(kernel_list *l, orr_kernel k)
{
    if (l->count < OPERATOR_KERNELS)
        l->out[l->count++] = k;
}

static uint64_t elements(const operator_tensor *t)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        count = orr_sat_mul(count, t->shape[d]);
    return count;
}

static uint64_t bytes_of(const operator_tensor *t)
{
    return orr_sat_mul(elements(t), t->element_bytes);
}

static uint64_t last_of(const operator_tensor *t, uint32_t from_right)
{
    return t->rank > from_right ? t->shape[t->rank - 1 - from_right] : 1;
}

static orr_kernel_type type_of(const operator_tensor *t)
{
    return t->element_bytes == 2   ? ORR_TYPE_BF16
           : t->element_bytes == 8 ? ORR_TYPE_FP64
           : t->element_bytes == 1 ? ORR_TYPE_INT8
                                   : ORR_TYPE_FP32;
}

/* ---- memory layout ---- */

/* Elements of a row are not adjacent. */
static bool is_turned(const operator_tensor *t)
{
    return t->stride && t->rank && t->stride[t->rank - 1] != 1 && t->shape[t->rank - 1] != 1;
}

typedef enum order {
    ORDER_DENSE,  /* without gaps; in any order of dimensions */
    ORDER_SPARSE, /* gaps, or expanded dimensions */
} order;

/* Dense: every dimension, by ascending stride, begins where the previous one ended. */
static order order_of(const operator_tensor *t)
{
    uint64_t expected = 1;
    if (!t->stride)
        return ORDER_DENSE;
    for (;;) {
        bool is_found = false, is_left = false;
        for (uint32_t d = 0; d < t->rank && !is_found; d++) {
            if (t->shape[d] == 1)
                continue;
            if (t->stride[d] < expected)
                continue; /* done, or expanded: then another will not fit */
            is_left = true;
            if (t->stride[d] == expected) {
                expected = orr_sat_mul(expected, t->shape[d]);
                is_found = true;
            }
        }
        if (!is_left)
            return expected == elements(t) ? ORDER_DENSE : ORDER_SPARSE;
        if (!is_found)
            return ORDER_SPARSE;
    }
}

/* The dimensions, except those of size 1, in the same order of strides. */
static bool same_order(const operator_tensor *a, const operator_tensor *b)
{
    if (!a->stride && !b->stride)
        return true;
    if (a->rank != b->rank)
        return !is_turned(a) && !is_turned(b);
    for (uint32_t d = 0; d < a->rank; d++) {
        const uint64_t sa = a->stride ? a->stride[d] : 0, sb = b->stride ? b->stride[d] : 0;
        if (a->stride && b->stride && a->shape[d] != 1 && sa != sb)
            return false;
    }
    if (a->stride && b->stride)
        return true;
    return !is_turned(a->stride ? a : b) || a->rank < 2;
}

/* One vectorised pass: operands of one size and type, in one order, without gaps. */
static bool is_whole(const operator_call *c, bool takes_types)
{
    const operator_tensor *first = NULL;
    for (uint32_t i = 0; i < c->in_count + c->out_count; i++) {
        const operator_tensor *t = i < c->in_count ? &c->in[i] : &c->out[i - c->in_count];
        if (elements(t) <= 1)
            continue;
        if (order_of(t) != ORDER_DENSE)
            return false;
        if (first && (elements(first) != elements(t) || !same_order(first, t) ||
                      (!takes_types && first->element_bytes != t->element_bytes)))
            return false;
        first = first ? first : t;
    }
    return true;
}

/* What works out the place of each element does so from the dimensions that are left when those
 * which lie behind each other in all operands are one. */
enum { INDEX_OPERANDS = 8, INDEX_RANK = 8 };

typedef struct index_work {
    uint64_t stride[INDEX_RANK][INDEX_OPERANDS]; /* of a dimension, in each operand */
    uint64_t shape[INDEX_RANK];
    uint32_t rank, operands;
} index_work;

/* Dimensions are counted from the last on, as they are matched with those of other operands. */
static bool take_operand(index_work *w, const operator_tensor *t)
{
    uint64_t dense = 1;
    if (!t->rank)
        return true;
    if (t->rank > INDEX_RANK || w->operands == INDEX_OPERANDS)
        return false;
    for (uint32_t d = 0; d < t->rank; d++) {
        const uint64_t side = t->shape[t->rank - 1 - d];
        w->stride[d][w->operands] = side == 1 ? 0 : t->stride ? t->stride[t->rank - 1 - d] : dense;
        w->shape[d] = d >= w->rank || side > w->shape[d] ? side : w->shape[d];
        dense = orr_sat_mul(dense, side);
    }
    w->rank = t->rank > w->rank ? t->rank : w->rank;
    w->operands++;
    return true;
}

static bool lies_inside(const index_work *w, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < w->operands; i++)
        if (w->stride[a][i] != w->stride[b][i])
            return w->stride[a][i] < w->stride[b][i];
    return false;
}

static bool lies_behind(const index_work *w, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < w->operands; i++)
        if (w->stride[b][i] != orr_sat_mul(w->stride[a][i], w->shape[a]))
            return false;
    return true;
}

static bool has_types(const operator_call *c)
{
    const operator_tensor *first = NULL;
    for (uint32_t i = 0; i < c->in_count; i++) {
        if (first && c->in[i].rank && c->in[i].element_bytes != first->element_bytes)
            return true;
        first = c->in[i].rank && !first ? &c->in[i] : first;
    }
    return false;
}

/* Sets dims, is_turned and casts of a strided kernel. */
static void set_index(const operator_call *c, orr_kernel *k)
{
    index_work w = {.rank = 0};
    uint32_t inner[INDEX_RANK], used = 0;
    k->casts = has_types(c);
    for (uint32_t i = 0; i < c->in_count + c->out_count; i++)
        if (!take_operand(&w, i < c->out_count ? &c->out[i] : &c->in[i - c->out_count]))
            return;
    for (uint32_t d = 0; d < w.rank; d++) {
        uint32_t at = used;
        if (w.shape[d] <= 1)
            continue;
        for (; at > 0 && lies_inside(&w, d, inner[at - 1]); at--)
            inner[at] = inner[at - 1];
        inner[at] = d;
        used++;
    }
    k->dims = 1;
    for (uint32_t i = 0; used && i < w.operands; i++)
        k->is_turned = k->is_turned || w.stride[inner[0]][i] > 1;
    for (uint32_t i = 1; i < used; i++)
        k->dims += !lies_behind(&w, inner[i - 1], inner[i]);
}

/* ---- products ---- */

static void add_product(kernel_list *l, uint32_t left)
{
    const operator_call *c = l->call;
    if (c->in_count < left + 2 || c->in[left].rank < 2 || c->in[left + 1].rank < 2)
        return;
    const operator_tensor *a = &c->in[left], *b = &c->in[left + 1];
    const bool has_bias = left > 0 && c->in[0].rank == 1;
    add(l, (orr_kernel){.kind = ORR_KERNEL_GEMM,
                        .type = type_of(a),
                        .form = has_bias ? ORR_FORM_BIAS : ORR_FORM_PLAIN,
                        .layout = is_turned(a)   ? ORR_LAYOUT_TN
                                  : is_turned(b) ? ORR_LAYOUT_NT
                                                 : ORR_LAYOUT_NN,
                        .batch = a->rank > 2 ? elements(a) / (last_of(a, 0) * last_of(a, 1)) : 0,
                        .m = last_of(a, 1),
                        .n = last_of(b, 0),
                        .k = last_of(a, 0)});
}

/* x W^T */
static void add_linear(kernel_list *l)
{
    const operator_call *c = l->call;
    if (c->in_count < 2 || c->in[1].rank != 2 || c->in[0].rank == 0)
        return;
    const uint64_t depth = last_of(&c->in[0], 0);
    add(l, (orr_kernel){.kind = ORR_KERNEL_GEMM,
                        .type = type_of(&c->in[0]),
                        .form = c->in_count > 2 ? ORR_FORM_BIAS : ORR_FORM_PLAIN,
                        .m = depth ? elements(&c->in[0]) / depth : 0,
                        .n = c->in[1].shape[0],
                        .k = depth});
}

/* Square images; others by their area. */
static uint64_t side_of(const operator_tensor *t)
{
    const uint64_t h = last_of(t, 1), w = last_of(t, 0);
    return h == w ? h : (uint64_t)(sqrt((double)h * (double)w) + 0.5);
}

static void add_conv(kernel_list *l, bool is_backward)
{
    const operator_call *c = l->call;
    const uint32_t at = is_backward ? 1 : 0;
    if (c->in_count < at + 2 || c->in[at].rank != 4 || c->in[at + 1].rank != 4 || !c->out_count)
        return;
    const operator_tensor *x = &c->in[at], *w = &c->in[at + 1];
    const operator_tensor *y = is_backward ? &c->in[0] : &c->out[0];
    const uint64_t groups = w->shape[1] ? x->shape[1] / w->shape[1] : 1;
    const bool has_bias = is_backward ? c->out_count > 2 : c->in_count > at + 2;
    const uint64_t pixels = y->rank == 4 ? elements(y) / y->shape[1] : 0;
    orr_kernel k = {.kind = ORR_KERNEL_CONV,
                    .type = type_of(x),
                    .batch = x->shape[0],
                    .n = w->shape[0],
                    .k = x->shape[1],
                    .window = side_of(w),
                    .groups = groups > 1 ? groups : 0,
                    .is_backward = is_backward};
    orr_kernel_set_sides(&k, side_of(x), side_of(y));
    add(l, k);
    if (!has_bias || !pixels)
        return;
    if (is_backward)
        add(l, (orr_kernel){.kind = ORR_KERNEL_REDUCE,
                            .type = type_of(x),
                            .form = ORR_FORM_ROWS,
                            .is_cold = true, /* as all sums; see add_reduce */
                            .m = pixels,
                            .n = w->shape[0]});
    else
        add(l, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                            .type = type_of(x),
                            .read = bytes_of(y),
                            .write = bytes_of(y),
                            .is_strided = true,
                            .dims = 2});
}

static void add_attention(kernel_list *l, bool by_rows, bool is_backward)
{
    const operator_call *c = l->call;
    const uint32_t at = is_backward ? 1 : 0;
    if (c->in_count < at + 3 || c->in[at].rank != 4 || c->in[at + 1].rank != 4 ||
        c->in[at + 2].rank != 4)
        return;
    const operator_tensor *q = &c->in[at], *k = &c->in[at + 1], *v = &c->in[at + 2];
    const uint32_t head = by_rows ? 2 : 1, length = by_rows ? 1 : 2;
    const bool is_one = q->shape[length] == 1 && !is_backward;
    add(l, (orr_kernel){.kind = is_one ? ORR_KERNEL_DECODE : ORR_KERNEL_ATTENTION,
                        .type = type_of(q),
                        .batch = q->shape[0],
                        .heads = q->shape[head],
                        .kv_heads = k->shape[head],
                        .head = q->shape[3],
                        .head_v = v->shape[3] == q->shape[3] ? 0 : v->shape[3],
                        .q = q->shape[length],
                        .kv = k->shape[length],
                        .is_causal = c->is_causal && !is_one,
                        .is_backward = is_backward});
}

/* ---- rows ---- */

static void add_rows(
    kernel_list *l, orr_kernel_kind kind, orr_kernel_form form, bool is_backward, uint64_t width)
{
    const operator_tensor *t = &l->call->in[0];
    if (width && elements(t))
        add(l, (orr_kernel){.kind = kind,
                            .type = type_of(t),
                            .form = form,
                            .is_backward = is_backward,
                            .m = elements(t) / width,
                            .n = width});
}

/* Only one dimension remains, whose elements are adjacent: channels-last images. */
static bool keeps_neighbours(const operator_tensor *t, uint64_t left)
{
    for (uint32_t d = 0; t->stride && d < t->rank; d++)
        if (t->stride[d] == 1 && t->shape[d] == left)
            return true;
    return false;
}

/* Sums: over the first dimensions, the last ones, or all. */
static void add_reduce(kernel_list *l)
{
    const operator_call *c = l->call;
    const operator_tensor *t = &c->in[0];
    const uint64_t all = elements(t), left = c->out_count ? elements(&c->out[0]) : 1;
    if (!all || !left)
        return;
    orr_kernel k = {.kind = ORR_KERNEL_REDUCE, .type = type_of(t), .form = ORR_FORM_ALL};
    k.m = left;
    k.n = all / left;
    if (left > 1) {
        k.is_cold = true; /* in profiled steps they take as long as alone after a flush */
        const operator_tensor *o = &c->out[0];
        /* The last dimension remains: rows are added to each other. */
        const bool keeps_last =
            (last_of(o, 0) == last_of(t, 0) && last_of(t, 0) > 1) || keeps_neighbours(t, left);
        k.form = keeps_last ? ORR_FORM_ROWS : ORR_FORM_COLUMNS;
        if (keeps_last) {
            k.m = all / left;
            k.n = left;
        }
    }
    add(l, k);
}

/* ---- passes over memory ---- */

static void add_pass(kernel_list *l)
{
    const operator_cost *cost = l->cost;
    orr_kernel k = {.kind = ORR_KERNEL_ELEMENTWISE,
                    .type = l->call->in_count ? type_of(&l->call->in[0]) : ORR_TYPE_BF16,
                    .read = cost->bytes_read,
                    .write = cost->bytes_written,
                    .is_strided = !is_whole(l->call, false)};
    if (k.is_strided)
        set_index(l->call, &k);
    if (cost->bytes_read || cost->bytes_written)
        add(l, k);
}

/* From 16 to 32 bits (element-wise, at half the rate), or back, which reads a parameter from
 * memory. */
static void add_cast(kernel_list *l, uint64_t count, bool is_wider, bool is_parameter)
{
    add(l, (orr_kernel){.kind = ORR_KERNEL_COPY,
                        .type = is_wider ? ORR_TYPE_FP32 : ORR_TYPE_BF16,
                        .read = orr_sat_mul(count, is_wider ? 2 : 4),
                        .write = orr_sat_mul(count, is_wider ? 4 : 2),
                        .is_strided = is_wider,
                        .dims = is_wider ? 1 : 0,
                        .is_cold = is_parameter && !is_wider,
                        .casts = true});
}

static void add_copy(kernel_list *l, bool is_strided, orr_kernel_form form)
{
    const operator_cost *cost = l->cost;
    const operator_tensor *from = l->call->in_count ? &l->call->in[l->call->in_count - 1] : NULL;
    const operator_tensor *to = l->call->out_count ? &l->call->out[0] : &l->call->in[0];
    if (from && from->element_bytes == 2 && to->element_bytes == 4 && form == ORR_FORM_PLAIN) {
        add_cast(l, elements(to), true, false);
        return;
    }
    if (from && from->element_bytes == 4 && to->element_bytes == 2 && form == ORR_FORM_PLAIN &&
        !is_strided) {
        add_cast(l, elements(to), false, from->is_parameter);
        return;
    }
    orr_kernel k = {.kind = ORR_KERNEL_COPY,
                    .type = from ? type_of(from) : ORR_TYPE_BF16,
                    .form = form,
                    .read = cost->bytes_read == cost->bytes_written ? 0 : cost->bytes_read,
                    .write = cost->bytes_written,
                    .is_strided = is_strided};
    if (is_strided && form == ORR_FORM_PLAIN)
        set_index(l->call, &k);
    k.casts = from && form == ORR_FORM_PLAIN && from->element_bytes != to->element_bytes;
    if (cost->bytes_written)
        add(l, k);
}

static void add_fill(kernel_list *l, const operator_tensor *t)
{
    if (bytes_of(t))
        add(l, (orr_kernel){.kind = ORR_KERNEL_FILL, .type = type_of(t), .write = bytes_of(t)});
}

/* The slice's gradient is copied into zeros of the full size. */
static void add_slice_backward(kernel_list *l)
{
    const operator_call *c = l->call;
    if (!c->out_count || !c->in_count)
        return;
    add_fill(l, &c->out[0]);
    if (bytes_of(&c->in[0]))
        add(l, (orr_kernel){.kind = ORR_KERNEL_COPY,
                            .type = type_of(&c->in[0]),
                            .write = bytes_of(&c->in[0]),
                            .is_strided = true});
}

static void add_activation(kernel_list *l, orr_kernel_form form, bool is_backward)
{
    orr_kernel k = {.kind = ORR_KERNEL_ACTIVATION,
                    .type = type_of(&l->call->in[0]),
                    .form = form,
                    .m = elements(&l->call->in[0]),
                    .is_backward = is_backward,
                    .is_strided = !is_whole(l->call, false)};
    if (k.is_strided)
        set_index(l->call, &k);
    add(l, k);
}

/* ---- norms ---- */

/* No GPU kernel normalises 16-bit rows with 32-bit weights: under autocast it takes and gives 32
 * bits there, while a step captured on a CPU has it in 16. */
static bool is_mixed_layer(const operator_call *c, uint64_t width)
{
    if (c->in[0].element_bytes != 2)
        return false;
    for (uint32_t i = 1; i < c->in_count; i++) {
        const operator_tensor *t = &c->in[i];
        if (t->rank == 1 && t->shape[0] == width && t->element_bytes == 4)
            return true;
    }
    return false;
}

static void add_layer_norm(kernel_list *l, bool is_backward)
{
    const operator_tensor *x = &l->call->in[0];
    const uint64_t width = last_of(x, 0);
    if (!is_mixed_layer(l->call, width)) {
        add_rows(l, ORR_KERNEL_NORM, ORR_FORM_LAYER, is_backward, width);
        return;
    }
    add_cast(l, elements(x), true, false);
    add_rows(l, ORR_KERNEL_NORM, ORR_FORM_LAYER, is_backward, width);
    if (l->count)
        l->out[l->count - 1].type = ORR_TYPE_FP32;
    add_cast(l, elements(x), false, false);
}

/* Channels-last statistics are summed by blocks of 16 rows times 16; from eight blocks on they
 * synchronise through counters, one per 32 channels, which are zeroed first. */
static void add_channel_norm(kernel_list *l, bool is_backward)
{
    enum { ROWS = 16 * 16, ALONE = 7, CHANNELS = 32 };
    const operator_tensor *x = &l->call->in[0];
    const uint64_t channels = x->rank > 1 ? x->shape[1] : 1;
    const bool is_beside = x->rank > 1 && x->stride && x->stride[1] == 1;
    if (is_beside && channels && elements(x) / channels > ROWS * ALONE)
        add(l, (orr_kernel){.kind = ORR_KERNEL_FILL,
                            .type = ORR_TYPE_FP32,
                            .write = 4 * (channels / CHANNELS + 1)});
    add_rows(l, ORR_KERNEL_NORM, ORR_FORM_CHANNELS, is_backward, channels);
}

/* ---- rows by index ---- */

static void add_embedding(kernel_list *l, bool is_backward)
{
    const operator_call *c = l->call;
    const operator_tensor *rows = is_backward ? &c->in[0] : c->out_count ? &c->out[0] : NULL;
    const uint64_t width = rows ? last_of(rows, 0) : 0;
    if (!width)
        return;
    const operator_tensor *words = is_backward ? (c->out_count ? &c->out[0] : NULL) : &c->in[0];
    add(l, (orr_kernel){.kind = ORR_KERNEL_EMBEDDING,
                        .type = type_of(rows),
                        .m = elements(rows) / width,
                        .n = width,
                        .k = words && words->rank ? words->shape[0] : 0,
                        .is_backward = is_backward});
}

/* Gathers or accumulates rows; if not in place the whole tensor is copied first. */
static void add_rows_by_index(kernel_list *l, const operator_tensor *rows, bool is_backward)
{
    const operator_call *c = l->call;
    const uint64_t width = last_of(rows, 0);
    if (!width || !elements(rows))
        return;
    const bool is_into = is_backward || orr_str_is(l->name->base, "index_copy");
    if (is_into && !l->name->is_in_place && c->in_count)
        add(l, (orr_kernel){.kind = ORR_KERNEL_COPY,
                            .type = type_of(&c->in[0]),
                            .write = bytes_of(&c->in[0])});
    add(l, (orr_kernel){.kind = ORR_KERNEL_GATHER,
                        .type = type_of(rows),
                        .form = is_into && !is_backward ? ORR_FORM_SCATTER : ORR_FORM_PLAIN,
                        .m = elements(rows) / width,
                        .n = width,
                        .is_backward = is_backward});
}

/* ---- optimizers ---- */

static void add_lists(kernel_list *l)
{
    enum { BLOCK = 65536, BLOCKS = 320, TENSORS = 48 };
    const operator_call *c = l->call;
    const uint64_t moved = orr_sat_add(l->cost->bytes_read, l->cost->bytes_written);
    uint64_t blocks = 0, tensors = 0;
    for (uint32_t i = 0; i < c->in_count; i++) {
        if (c->in[i].is_written || !l->name->is_in_place) {
            blocks = orr_sat_add(blocks, elements(&c->in[i]) / BLOCK + 1);
            tensors++;
        }
    }
    uint64_t launches = (blocks + BLOCKS - 1) / BLOCKS;
    if (launches < (tensors + TENSORS - 1) / TENSORS)
        launches = (tensors + TENSORS - 1) / TENSORS;
    if (!moved || !c->in_count)
        return;
    launches = launches ? launches : 1;
    add(l, (orr_kernel){.kind = ORR_KERNEL_ELEMENTWISE,
                        .type = type_of(&c->in[0]),
                        .read = l->cost->bytes_read / launches,
                        .write = l->cost->bytes_written / launches + 1,
                        .is_strided = true,
                        .count = launches > 1 ? launches : 0});
}

static void add_optimizer(kernel_list *l)
{
    const operator_call *c = l->call;
    uint64_t parameters = 0, tensors = 0;
    const uint32_t length = c->in_count / 5 ? c->in_count / 5 : c->in_count;
    for (uint32_t i = 0; i < length; i++) {
        parameters = orr_sat_add(parameters, elements(&c->in[i]));
        tensors++;
    }
    if (parameters)
        add(l, (orr_kernel){.kind = ORR_KERNEL_OPTIMIZER,
                            .type = type_of(&c->in[0]),
                            .form = ORR_FORM_FUSED,
                            .m = parameters,
                            .k = tensors});
}

/* ---- by name ---- */

typedef enum meaning {
    MEANS_NOTHING,
    MEANS_LAYER,
    MEANS_LAYER_BACKWARD,
    MEANS_RMS,
    MEANS_RMS_BACKWARD,
    MEANS_CHANNELS,
    MEANS_CHANNELS_BACKWARD,
    MEANS_SOFTMAX,
    MEANS_SOFTMAX_BACKWARD,
    MEANS_LOG_SOFTMAX,
    MEANS_LOG_SOFTMAX_BACKWARD,
    MEANS_PICK_LOSS,
    MEANS_PICK_LOSS_BACKWARD,
    MEANS_CROSS_ENTROPY,
    MEANS_GELU,
    MEANS_GELU_BACKWARD,
    MEANS_SILU,
    MEANS_SILU_BACKWARD,
    MEANS_RELU,
    MEANS_RELU_BACKWARD,
    MEANS_EMBEDDING,
    MEANS_EMBEDDING_BACKWARD,
    MEANS_PICK_ROWS,
    MEANS_PUT_ROWS,
    MEANS_ADD_ROWS,
    MEANS_TOPK,
    MEANS_SORT,
    MEANS_SCAN,
    MEANS_SUM,
    MEANS_POOL,
    MEANS_POOL_BACKWARD,
    MEANS_DROPOUT,
    MEANS_DROPOUT_BACKWARD,
    MEANS_COPY,
    MEANS_JOIN,
    MEANS_SLICE_BACKWARD,
    MEANS_FILL,
} meaning;

/* Names of captured steps, and of exported programs, which are those above autograd (layer_norm for
 * native_layer_norm).  With their lengths: the table is searched for every call of a step. */
#define NAMED(text) text, sizeof(text) - 1

static const struct {
    const char *name;
    size_t length;
    meaning what;
} meanings[] = {
    {NAMED("native_layer_norm"), MEANS_LAYER},
    {NAMED("layer_norm"), MEANS_LAYER},
    {NAMED("native_layer_norm_backward"), MEANS_LAYER_BACKWARD},
    {NAMED("_fused_rms_norm"), MEANS_RMS},
    {NAMED("rms_norm"), MEANS_RMS},
    {NAMED("_fused_rms_norm_backward"), MEANS_RMS_BACKWARD},
    {NAMED("native_batch_norm"), MEANS_CHANNELS},
    {NAMED("cudnn_batch_norm"), MEANS_CHANNELS},
    {NAMED("_native_batch_norm_legit"), MEANS_CHANNELS},
    {NAMED("_batch_norm_with_update"), MEANS_CHANNELS},
    {NAMED("native_batch_norm_backward"), MEANS_CHANNELS_BACKWARD},
    {NAMED("cudnn_batch_norm_backward"), MEANS_CHANNELS_BACKWARD},
    {NAMED("batch_norm_backward"), MEANS_CHANNELS_BACKWARD},
    {NAMED("_softmax"), MEANS_SOFTMAX},
    {NAMED("_safe_softmax"), MEANS_SOFTMAX},
    {NAMED("softmax"), MEANS_SOFTMAX},
    {NAMED("special_softmax"), MEANS_SOFTMAX},
    {NAMED("_softmax_backward_data"), MEANS_SOFTMAX_BACKWARD},
    {NAMED("_log_softmax"), MEANS_LOG_SOFTMAX},
    {NAMED("log_softmax"), MEANS_LOG_SOFTMAX},
    {NAMED("special_log_softmax"), MEANS_LOG_SOFTMAX},
    {NAMED("cross_entropy_loss"), MEANS_CROSS_ENTROPY},
    {NAMED("_log_softmax_backward_data"), MEANS_LOG_SOFTMAX_BACKWARD},
    {NAMED("nll_loss_forward"), MEANS_PICK_LOSS},
    {NAMED("nll_loss"), MEANS_PICK_LOSS},
    {NAMED("nll_loss_backward"), MEANS_PICK_LOSS_BACKWARD},
    {NAMED("gelu"), MEANS_GELU},
    {NAMED("gelu_backward"), MEANS_GELU_BACKWARD},
    {NAMED("silu"), MEANS_SILU},
    {NAMED("silu_backward"), MEANS_SILU_BACKWARD},
    {NAMED("relu"), MEANS_RELU},
    {NAMED("clamp_min"), MEANS_RELU},
    {NAMED("threshold_backward"), MEANS_RELU_BACKWARD},
    {NAMED("embedding"), MEANS_EMBEDDING},
    {NAMED("embedding_dense_backward"), MEANS_EMBEDDING_BACKWARD},
    {NAMED("index_select"), MEANS_PICK_ROWS},
    {NAMED("index_copy"), MEANS_PUT_ROWS},
    {NAMED("index_add"), MEANS_ADD_ROWS},
    {NAMED("topk"), MEANS_TOPK},
    {NAMED("sort"), MEANS_SORT},
    {NAMED("cumsum"), MEANS_SCAN},
    {NAMED("cumprod"), MEANS_SCAN},
    {NAMED("sum"), MEANS_SUM},
    {NAMED("mean"), MEANS_SUM},
    {NAMED("amax"), MEANS_SUM},
    {NAMED("linalg_vector_norm"), MEANS_SUM},
    {NAMED("max_pool2d_with_indices"), MEANS_POOL},
    {NAMED("max_pool2d"), MEANS_POOL},
    {NAMED("max_pool2d_with_indices_backward"), MEANS_POOL_BACKWARD},
    {NAMED("native_dropout"), MEANS_DROPOUT},
    {NAMED("bernoulli"), MEANS_DROPOUT},
    {NAMED("native_dropout_backward"), MEANS_DROPOUT_BACKWARD},
    {NAMED("copy"), MEANS_COPY},
    {NAMED("_to_copy"), MEANS_COPY},
    {NAMED("clone"), MEANS_COPY},
    {NAMED("contiguous"), MEANS_COPY},
    {NAMED("cat"), MEANS_JOIN},
    {NAMED("stack"), MEANS_JOIN},
    {NAMED("slice_backward"), MEANS_SLICE_BACKWARD},
    {NAMED("select_backward"), MEANS_SLICE_BACKWARD},
    {NAMED("fill"), MEANS_FILL},
    {NAMED("zero"), MEANS_FILL},
    {NAMED("zeros"), MEANS_FILL},
    {NAMED("ones"), MEANS_FILL},
    {NAMED("zeros_like"), MEANS_FILL},
    {NAMED("ones_like"), MEANS_FILL},
    {NAMED("full"), MEANS_FILL},
    {NAMED("full_like"), MEANS_FILL},
    {NAMED("new_zeros"), MEANS_FILL},
    {NAMED("new_ones"), MEANS_FILL},
    {NAMED("new_full"), MEANS_FILL},
};

static meaning meaning_of(const operator_name *name)
{
    orr_str base = name->base;
    if (name->is_in_place && base.len && base.ptr[base.len - 1] == '_')
        base.len--;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (base.len == meanings[i].length && memcmp(base.ptr, meanings[i].name, base.len) == 0)
            return meanings[i].what;
    }
    return MEANS_NOTHING;
}

static void add_loss(kernel_list *l, bool is_backward)
{
    const operator_call *c = l->call;
    if (is_backward && c->out_count)
        add_fill(l, &c->out[0]);
    const operator_tensor *rows = &c->in[is_backward && c->in_count > 1 ? 1 : 0];
    const uint64_t width = last_of(rows, 0);
    if (width && elements(rows))
        add(l, (orr_kernel){.kind = ORR_KERNEL_REDUCE,
                            .type = ORR_TYPE_FP32,
                            .form = ORR_FORM_ALL,
                            .m = elements(rows) / width,
                            .n = 1});
}

static void add_pool(kernel_list *l, bool is_backward)
{
    const operator_call *c = l->call;
    const operator_tensor *x = &c->in[is_backward && c->in_count > 1 ? 1 : 0];
    const operator_tensor *y = is_backward ? &c->in[0] : &c->out[0];
    if ((!is_backward && !c->out_count) || x->rank != 4 || y->rank != 4)
        return;
    const uint64_t side = side_of(x), out = side_of(y);
    if (is_backward) /* gradients are added to zeros */
        add_fill(l, x);
    add(l, (orr_kernel){.kind = ORR_KERNEL_POOL,
                        .type = type_of(x),
                        .batch = x->shape[0],
                        .k = x->shape[1],
                        .side = side,
                        .stride = out ? (side + out / 2) / out : 1,
                        .is_backward = is_backward});
}

/* Along the last dimension all rows run in parallel; along another one the steps of a column are
 * sequential. */
static void add_scan(kernel_list *l)
{
    const operator_tensor *t = &l->call->in[0];
    const uint64_t width = last_of(t, 0), all = elements(t);
    if (!all || !width)
        return;
    const bool is_outer = t->rank > 1 && all / width > 4 * width;
    add(l, (orr_kernel){.kind = ORR_KERNEL_SCAN,
                        .type = l->call->out_count ? type_of(&l->call->out[0]) : type_of(t),
                        .form = is_outer ? ORR_FORM_COLUMNS : ORR_FORM_PLAIN,
                        .m = all / width,
                        .n = width});
}

static void add_by_meaning(kernel_list *l, meaning what)
{
    const operator_call *c = l->call;
    const operator_tensor *x = &c->in[0];
    const uint64_t last = last_of(x, 0);
    switch (what) {
    case MEANS_LAYER:
    case MEANS_LAYER_BACKWARD:
        add_layer_norm(l, what == MEANS_LAYER_BACKWARD);
        break;
    case MEANS_RMS:
    case MEANS_RMS_BACKWARD:
        add_rows(l, ORR_KERNEL_NORM, ORR_FORM_RMS, what == MEANS_RMS_BACKWARD, last);
        break;
    case MEANS_CHANNELS:
    case MEANS_CHANNELS_BACKWARD:
        add_channel_norm(l, what == MEANS_CHANNELS_BACKWARD);
        break;
    case MEANS_SOFTMAX:
    case MEANS_SOFTMAX_BACKWARD:
        add_rows(l, ORR_KERNEL_SOFTMAX, ORR_FORM_PLAIN, what == MEANS_SOFTMAX_BACKWARD, last);
        break;
    case MEANS_LOG_SOFTMAX:
    case MEANS_LOG_SOFTMAX_BACKWARD:
        add_rows(l, ORR_KERNEL_SOFTMAX, ORR_FORM_LOG, what == MEANS_LOG_SOFTMAX_BACKWARD, last);
        break;
    case MEANS_PICK_LOSS:
    case MEANS_PICK_LOSS_BACKWARD:
        add_loss(l, what == MEANS_PICK_LOSS_BACKWARD);
        break;
    case MEANS_CROSS_ENTROPY:
        add_rows(l, ORR_KERNEL_SOFTMAX, ORR_FORM_LOG, false, last);
        add_loss(l, false);
        break;
    case MEANS_GELU:
    case MEANS_GELU_BACKWARD:
        add_activation(l, ORR_FORM_GELU, what == MEANS_GELU_BACKWARD);
        break;
    case MEANS_SILU:
    case MEANS_SILU_BACKWARD:
        add_activation(l, ORR_FORM_SILU, what == MEANS_SILU_BACKWARD);
        break;
    case MEANS_RELU:
    case MEANS_RELU_BACKWARD:
        add_activation(l, ORR_FORM_RELU, what == MEANS_RELU_BACKWARD);
        break;
    case MEANS_EMBEDDING:
    case MEANS_EMBEDDING_BACKWARD:
        add_embedding(l, what == MEANS_EMBEDDING_BACKWARD);
        break;
    case MEANS_PICK_ROWS:
        if (c->out_count)
            add_rows_by_index(l, &c->out[0], false);
        break;
    case MEANS_PUT_ROWS:
    case MEANS_ADD_ROWS:
        add_rows_by_index(l, &c->in[c->in_count - 1], what == MEANS_ADD_ROWS);
        break;
    case MEANS_TOPK:
        if (c->out_count && last)
            add(l, (orr_kernel){.kind = ORR_KERNEL_TOPK,
                                .type = type_of(x),
                                .m = elements(x) / last,
                                .n = last,
                                .topk = last_of(&c->out[0], 0)});
        break;
    case MEANS_SORT:
        add(l, (orr_kernel){.kind = ORR_KERNEL_SORT, .type = type_of(x), .m = elements(x)});
        break;
    case MEANS_SCAN:
        add_scan(l);
        break;
    case MEANS_SUM:
        add_reduce(l);
        break;
    case MEANS_POOL:
    case MEANS_POOL_BACKWARD:
        add_pool(l, what == MEANS_POOL_BACKWARD);
        break;
    case MEANS_DROPOUT:
    case MEANS_DROPOUT_BACKWARD:
        add(l, (orr_kernel){.kind = ORR_KERNEL_DROPOUT,
                            .type = type_of(x),
                            .m = elements(x),
                            .is_backward = what == MEANS_DROPOUT_BACKWARD});
        break;
    case MEANS_COPY:
        add_copy(l, !is_whole(c, true), ORR_FORM_PLAIN);
        break;
    case MEANS_JOIN: {
        bool is_turned_in = false;
        for (uint32_t i = 0; i < c->in_count; i++)
            is_turned_in |= order_of(&c->in[i]) != ORDER_DENSE || is_turned(&c->in[i]);
        add_copy(l, is_turned_in, ORR_FORM_JOINED);
        break;
    }
    case MEANS_SLICE_BACKWARD:
        add_slice_backward(l);
        break;
    case MEANS_FILL:
    case MEANS_NOTHING:
        break;
    }
}

static bool are_sizes_known(const operator_call *c)
{
    for (uint32_t i = 0; i < c->in_count + c->out_count; i++) {
        const operator_tensor *t = i < c->in_count ? &c->in[i] : &c->out[i - c->in_count];
        /* Results that were not requested are empty. */
        const bool is_needed = i < c->in_count || i == c->in_count;
        if (t->element_bytes == 0 || (is_needed && elements(t) == 0) || elements(t) == UINT64_MAX)
            return false;
    }
    return true;
}

static void add_by_name(kernel_list *l)
{
    const operator_call *c = l->call;
    const meaning what = meaning_of(l->name);
    if (what == MEANS_FILL && c->in_count + c->out_count)
        add_fill(l, c->out_count ? &c->out[0] : &c->in[0]);
    else if (what != MEANS_NOTHING && c->in_count)
        add_by_meaning(l, what);
    else if (!l->cost->is_product)
        add_pass(l);
}

size_t orr__operator_kernels(const operator_call *call,
                             const operator_name *name,
                             const operator_row *row,
                             const operator_cost *cost,
                             orr_kernel out[OPERATOR_KERNELS])
{
    kernel_list l = {call, name, cost, out, 0};
    if (cost->kind == OPERATOR_FREE || cost->kind == OPERATOR_COLLECTIVE ||
        cost->kind == OPERATOR_WAIT || !are_sizes_known(call))
        return 0;
    const operator_rule rule = row ? (operator_rule)row->rule : RULE_FREE;
    if (name->is_list)
        add_lists(&l);
    else if (rule == RULE_OPTIMIZER)
        add_optimizer(&l);
    else if (rule == RULE_PRODUCT)
        add_product(&l, row->factor);
    else if (rule == RULE_LINEAR)
        add_linear(&l);
    else if (rule == RULE_CONVOLUTION || rule == RULE_CONVOLUTION_BACKWARD)
        add_conv(&l, rule == RULE_CONVOLUTION_BACKWARD);
    else if (rule >= RULE_ATTENTION && rule <= RULE_ATTENTION_ROWS_BACKWARD)
        add_attention(&l, rule >= RULE_ATTENTION_ROWS,
                      rule == RULE_ATTENTION_BACKWARD || rule == RULE_ATTENTION_ROWS_BACKWARD);
    else
        add_by_name(&l);
    size_t kept = 0;
    for (size_t i = 0; i < l.count; i++) {
        if (orr_kernel_check(&out[i], NULL) == ORR_OK)
            out[kept++] = out[i];
    }
    return kept;
}
