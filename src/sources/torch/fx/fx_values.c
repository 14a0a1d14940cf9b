/* SPDX-License-Identifier: Apache-2.0 */
/* fx_values.c - dependencies, from the values that nodes read and write.
 *
 * A storage has *writers*, the nodes whose values are in it, and the *readers* of those; both with
 * the bytes they touch, so that parts of one flat buffer are independent.  A node waits for the
 * writers of what it reads (read after write), and for the readers and writers of what it writes
 * (write after read, write after write).
 *
 *     write x      a      x: writers {a}
 *     read x       b      b waits for a           x: writers {a}, readers {b}
 *     write x      c      c comes after a and b   x: writers {c}
 *
 * The output of communication is *pending* until it is waited for: computation in the meantime does
 * not see it.  A wait in the program (orrery.wait) blocks the compute stream, as in PyTorch: later
 * computation comes after what was waited for, used or not. That is a *fence*; for a received
 * message, the fence also comes after all earlier computation, which preserves the order of a
 * pipeline's schedule. A node after a fence needs no edge to it if one of its dependencies is after
 * it too: `epoch` is the number of the last fence before a node.  wait_tensor affects its value
 * only.
 *
 * FSDP copies parameters into the buffer of an all-gather on a separate stream, once the all-gather
 * before is copied out: such a copy is part of the all-gather, which follows that copy-out and
 * overlaps the computation.
 *
 * Cost: near linear.  At LIST_MOST writers or readers of a storage, computation is collapsed into
 * its last node: it is one stream anyway.  Communication stays separate, or computing into one part
 * of a flat buffer would wait for the collectives of the others; it is collapsed only beyond
 * TALK_MOST. */
#include "fx_impl.h"

#include "base/memory/buffer.h"
#include "base/text/text.h"
#include "models/compute/operators/operator_cost.h"

#include <inttypes.h>
#include <stdio.h>

/* ==== the role of each captured call: computation with its cost, communication with its size, a
 * wait, or nothing.
 *
 * Communication is known by its name, namespace.name.overload as PyTorch's dispatcher spells it;
 * the table has the forms for one tensor, for lists and for flat buffers ("base", "coalesced").  A
 * size is what a rank has before the collective, of any kind (docs/design/collectives.md): its
 * inputs, of a scatter n times its output. Everything else is left to the table of operator
 * costs. */

/* ---- names ---- */

typedef struct op_name {
    orr_str space, name, overload;
} op_name;

static orr_str cut(orr_str *rest)
{
    const char *dot = rest->len ? memchr(rest->ptr, '.', rest->len) : NULL;
    const orr_str part = {rest->ptr, dot ? (size_t)(dot - rest->ptr) : rest->len};
    const size_t used = dot ? part.len + 1 : part.len;
    *rest = (orr_str){rest->ptr + used, rest->len - used};
    return part;
}

static op_name name_of(orr_str text)
{
    op_name n;
    n.space = cut(&text);
    n.name = cut(&text);
    n.overload = text;
    return n;
}

/* What a name tells, once per entry of "ops". */
typedef struct op_kind {
    uint8_t role; /* FX_COMPUTE: see the table of costs */
    uint8_t collective;
    bool is_fresh; /* does not read what it writes */
    bool is_copy_in, is_copy_out;
    operator_name name;
    const operator_row *row; /* of the table of costs; NULL: none */
} op_kind;

static const struct {
    const char *name;
    uint8_t role, collective;
} communication[] = {
    {"allreduce_", FX_COLLECT, ORR_COLL_ALL_REDUCE},
    {"allreduce_coalesced_", FX_COLLECT, ORR_COLL_ALL_REDUCE},
    {"all_reduce", FX_COLLECT, ORR_COLL_ALL_REDUCE},
    {"all_reduce_", FX_COLLECT, ORR_COLL_ALL_REDUCE},
    {"all_reduce_coalesced", FX_COLLECT, ORR_COLL_ALL_REDUCE},
    {"all_reduce_coalesced_", FX_COLLECT, ORR_COLL_ALL_REDUCE},
    {"allgather_", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"_allgather_base_", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"allgather_coalesced_", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"allgather_into_tensor_coalesced_", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"all_gather_into_tensor", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"all_gather_into_tensor_out", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"all_gather_into_tensor_coalesced", FX_COLLECT, ORR_COLL_ALL_GATHER},
    {"reduce_scatter_", FX_COLLECT, ORR_COLL_REDUCE_SCATTER},
    {"_reduce_scatter_base_", FX_COLLECT, ORR_COLL_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced_", FX_COLLECT, ORR_COLL_REDUCE_SCATTER},
    {"reduce_scatter_tensor", FX_COLLECT, ORR_COLL_REDUCE_SCATTER},
    {"reduce_scatter_tensor_out", FX_COLLECT, ORR_COLL_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced", FX_COLLECT, ORR_COLL_REDUCE_SCATTER},
    {"alltoall_", FX_COLLECT, ORR_COLL_ALL_TO_ALL},
    {"alltoall_base_", FX_COLLECT, ORR_COLL_ALL_TO_ALL},
    {"all_to_all_single", FX_COLLECT, ORR_COLL_ALL_TO_ALL},
    {"shard_dim_alltoall", FX_COLLECT, ORR_COLL_ALL_TO_ALL},
    {"broadcast_", FX_COLLECT, ORR_COLL_BROADCAST},
    {"broadcast", FX_COLLECT, ORR_COLL_BROADCAST},
    {"reduce_", FX_COLLECT, ORR_COLL_REDUCE},
    {"gather_", FX_COLLECT, ORR_COLL_GATHER},
    {"scatter_", FX_COLLECT, ORR_COLL_SCATTER},
    {"barrier", FX_COLLECT, ORR_COLL_BARRIER},
    {"monitored_barrier_", FX_COLLECT, ORR_COLL_BARRIER},
    {"send", FX_SEND, 0},
    {"recv_", FX_RECV, 0},
    {"recv_any_source_", FX_RECV, 0},
    {"wait_tensor", FX_WAIT_VALUE, 0},
};

/* Operators that list their outputs among the inputs without reading them. */
static bool is_fresh(const op_name *n)
{
    static const char *const names[] = {"copy_",
                                        "fill_",
                                        "zero_",
                                        "uniform_",
                                        "normal_",
                                        "random_",
                                        "bernoulli_",
                                        "exponential_",
                                        "log_normal_",
                                        "geometric_",
                                        "cauchy_",
                                        "_foreach_copy_",
                                        "_foreach_zero_",
                                        "split_with_sizes_copy",
                                        "all_gather_copy_in",
                                        "chunk_cat"};
    if (n->overload.len >= 3 && memcmp(n->overload.ptr, "out", 3) == 0)
        return true;
    return orr_str_among(n->name, names, ORR_COUNT(names));
}

static op_kind kind_of(orr_str text)
{
    const op_name n = name_of(text);
    if (orr_str_is(text, "orrery.wait"))
        return (op_kind){.role = FX_WAIT};
    for (size_t i = 0; fx_is_comm_op(text) && i < sizeof communication / sizeof *communication;
         i++) {
        if (orr_str_is(n.name, communication[i].name))
            return (op_kind){.role = communication[i].role,
                             .collective = communication[i].collective};
    }
    const bool is_fsdp = orr_str_is(n.space, "fsdp");
    const operator_name name = orr__operator_name(text);
    return (op_kind){.role = FX_COMPUTE,
                     .is_fresh = is_fresh(&n),
                     .is_copy_in = is_fsdp && orr_str_is(n.name, "all_gather_copy_in"),
                     .is_copy_out = is_fsdp && orr_str_is(n.name, "split_with_sizes_copy"),
                     .name = name,
                     .row = orr__operator_row(&name)};
}

/* ---- sizes ---- */

static uint64_t add_bytes(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

/* Bytes of a tensor's elements. */
static uint64_t tensor_bytes(const fx_graph *g, const fx_tensor *t)
{
    const uint64_t *shape = fx_shape(g, t);
    uint64_t bytes = t->element_bytes ? t->element_bytes : 1;
    for (uint8_t d = 0; d < t->rank; d++) /* fits: checked by fx_check, except for zeros */
        bytes = shape[d] ? bytes * shape[d] : 0;
    return bytes;
}

/* The bytes of its storage it can reach, *first to *end; true: without gaps. */
static bool extent(const fx_graph *g, const fx_tensor *t, uint64_t *first, uint64_t *end)
{
    const uint64_t *shape = fx_shape(g, t), *stride = fx_stride(g, t);
    const uint64_t bytes = tensor_bytes(g, t), element = t->element_bytes;
    uint64_t span = 1;
    bool fits = element != 0 && !__builtin_mul_overflow(t->offset, element, first);
    *end = *first;
    if (fits && bytes == 0)
        return true;
    for (uint8_t d = 0; stride && d < t->rank && fits; d++) {
        uint64_t reach;
        fits = !__builtin_mul_overflow(shape[d] - 1, stride[d], &reach) &&
               !__builtin_add_overflow(span, reach, &span);
    }
    uint64_t wide = bytes;
    if (stride)
        fits = fits && !__builtin_mul_overflow(span, element, &wide);
    if (fits && !__builtin_add_overflow(*first, wide, end))
        return wide == bytes;
    *first = 0;
    *end = UINT64_MAX;
    return false;
}

static uint64_t sum_bytes(const fx_graph *g, const uint32_t *list, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum = add_bytes(sum, tensor_bytes(g, &g->tensors[list[i]]));
    return sum;
}

typedef struct caller {
    const orr_fx *c;
    const fx_graph *g;
    op_kind *kinds;
    operator_tensor *tensors; /* scratch */
    size_t tensor_room;
    orr_intern *texts;
    orr_buf line;       /* scratch */
    size_t *written_by; /* of each tensor: 1 + the last node that writes it */
    bool *is_read;
} caller;

static bool writes_tensor(const caller *k, const fx_node *n, uint32_t tensor)
{
    return k->written_by[tensor] == (size_t)(n - k->g->nodes) + 1;
}

/* The input bytes of a rank, without write-only inputs; in place, all of them. */
static uint64_t given_bytes(const caller *k, const fx_node *n)
{
    const uint32_t *in = fx_in(k->g, n);
    uint64_t given = 0;
    bool is_in_place = true;
    for (uint32_t i = 0; i < n->in_count; i++) {
        if (writes_tensor(k, n, in[i]))
            continue;
        is_in_place = false;
        given = add_bytes(given, tensor_bytes(k->g, &k->g->tensors[in[i]]));
    }
    return is_in_place ? sum_bytes(k->g, in, n->in_count) : given;
}

static uint64_t communicated_bytes(const caller *k, const fx_node *n, const op_kind *kind)
{
    const fx_graph *g = k->g;
    if (kind->role == FX_RECV)
        return sum_bytes(g, fx_out(g, n), n->out_count);
    if (kind->role == FX_COLLECT && kind->collective == ORR_COLL_BARRIER)
        return 0;
    if (kind->role == FX_SEND || kind->collective != ORR_COLL_SCATTER)
        return given_bytes(k, n);
    uint64_t whole;
    const uint64_t part = sum_bytes(g, fx_out(g, n), n->out_count);
    return __builtin_mul_overflow(part, k->c->groups[n->group].count, &whole) || whole > INT64_MAX
               ? INT64_MAX
               : whole;
}

/* ---- calls ---- */

static operator_tensor tensor_for_cost(const fx_graph *g, uint32_t number)
{
    const fx_tensor *t = &g->tensors[number];
    return (operator_tensor){.shape = fx_shape(g, t),
                             .stride = fx_stride(g, t),
                             .rank = t->rank,
                             .element_bytes = t->element_bytes,
                             .is_parameter = t->storage < g->storage_count &&
                                             g->storages[t->storage].kept == FX_KEPT_PARAMETER};
}

/* Figures saturate; a step that gets there has shapes that fit no machine. */
static orr_code check_figures(const caller *k, const fx_node *n, const fx_call *c, orr_error *err)
{
    const orr_str op = fx_text(k->g, FX_OPS, n->op);
    const uint64_t moved = add_bytes(c->bytes_read < INT64_MAX ? c->bytes_read : INT64_MAX,
                                     c->bytes_written < INT64_MAX ? c->bytes_written : INT64_MAX);
    if (c->flops < INT64_MAX && c->bytes < INT64_MAX && moved < INT64_MAX)
        return ORR_OK;
    return fx_fail(k->c, n->byte, err,
                   "rank %" PRIu32 ", node %zu: %.*s takes more than 2^63 %s: is a shape wrong?",
                   k->g->rank, (size_t)(n - k->g->nodes), ORR_SHOWN(op, 60),
                   c->flops < INT64_MAX ? "bytes" : "operations");
}

static bool write_kernels(caller *k,
                          const op_kind *kind,
                          const operator_call *of,
                          const operator_cost *cost,
                          fx_call *call)
{
    orr_kernel kernels[OPERATOR_KERNELS];
    char room[ORR_KERNEL_TEXT];
    const size_t count = orr__operator_kernels(of, &kind->name, kind->row, cost, kernels);
    k->line.len = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = orr_kernel_text(&kernels[i], room, sizeof room);
        if (i)
            orr_buf_text(&k->line, "; ");
        orr_buf_add(&k->line, room, length);
    }
    const orr_str text = {(const char *)k->line.ptr, k->line.len};
    return !k->line.failed && (!count || orr_intern_add(k->texts, text, &call->kernels));
}

static orr_code price(caller *k, const fx_node *n, fx_call *call, orr_error *err)
{
    const fx_graph *g = k->g;
    const op_kind *kind = &k->kinds[n->op];
    const uint32_t *in = fx_in(g, n), *out = fx_out(g, n);
    if (!orr_grow(&k->tensors, &k->tensor_room, (size_t)n->in_count + n->out_count + 1))
        return orr_no_memory(err);
    for (uint32_t i = 0; i < n->in_count; i++) {
        k->tensors[i] = tensor_for_cost(g, in[i]);
        k->tensors[i].is_written = writes_tensor(k, n, in[i]);
    }
    for (uint32_t i = 0; i < n->out_count; i++)
        k->tensors[n->in_count + i] = tensor_for_cost(g, out[i]);
    const operator_call call_of = {.name = fx_text(g, FX_OPS, n->op),
                                   .in = k->tensors,
                                   .out = k->tensors + n->in_count,
                                   .in_count = n->in_count,
                                   .out_count = n->out_count,
                                   .is_view = n->is_view,
                                   .is_causal = n->is_causal,
                                   .is_transposed = n->is_transposed,
                                   .equation = fx_equation(n)};
    const operator_cost cost = orr__operator_cost_of(&call_of, &kind->name, kind->row);
    call->role = cost.kind == OPERATOR_FREE ? FX_FOLD : FX_COMPUTE;
    /* Communication missing from the table above is as unknown as any operator. */
    call->is_unknown = cost.kind == OPERATOR_UNKNOWN || cost.kind == OPERATOR_COLLECTIVE;
    call->flops = cost.flops;
    call->vector_work = cost.vector_work;
    call->is_product = cost.is_product;
    call->bytes_read = cost.bytes_read;
    call->bytes_written = cost.bytes_written;
    if (call->role == FX_COMPUTE && !write_kernels(k, kind, &call_of, &cost, call))
        return orr_no_memory(err);
    return check_figures(k, n, call, err);
}

static orr_code check_message(const caller *k, size_t i, uint8_t role, orr_error *err)
{
    const fx_node *n = &k->g->nodes[i];
    const orr_str op = fx_text(k->g, FX_OPS, n->op);
    const fx_group *group = &k->c->groups[n->group];
    if (n->peer == FX_NO_PEER)
        return fx_fail(k->c, n->byte, err,
                       "rank %" PRIu32
                       ", node %zu: %.*s does not say %s: \"args\" has \"%s\", a place "
                       "in the group; receives from any source are not supported",
                       k->g->rank, i, ORR_SHOWN(op, 60),
                       role == FX_SEND ? "whom it is for" : "from whom it comes",
                       role == FX_SEND ? "dst" : "src");
    if (k->c->ranks[group->first + (size_t)n->peer] == k->g->rank)
        return fx_fail(k->c, n->byte, err, "rank %" PRIu32 ", node %zu: a message to itself",
                       k->g->rank, i);
    return ORR_OK;
}

static orr_code call_communication(
    const caller *k, size_t i, const op_kind *kind, fx_call *call, orr_error *err)
{
    const fx_node *n = &k->g->nodes[i];
    const orr_str op = fx_text(k->g, FX_OPS, n->op);
    if (n->group == FX_NONE)
        return fx_fail(k->c, n->byte, err,
                       "rank %" PRIu32
                       ", node %zu: %.*s does not say in which process group: \"args\" "
                       "has \"group\"",
                       k->g->rank, i, ORR_SHOWN(op, 60));
    *call = (fx_call){.role = kind->role, .collective = kind->collective, .is_fresh = true};
    call->bytes = communicated_bytes(k, n, kind);
    const orr_code code = check_figures(k, n, call, err);
    if (code || kind->role != FX_COLLECT)
        return code ? code : check_message(k, i, kind->role, err);
    if (k->c->groups[n->group].count == 1)
        call->role = FX_FOLD; /* alone in its group: nothing to do */
    return ORR_OK;
}

/* Marks the inputs that are read: all except write-only ones.  An in-place collective, which has no
 * others, reads them. */
static void mark_reads(const caller *k, size_t i, const fx_call *call)
{
    const fx_node *n = &k->g->nodes[i];
    const uint32_t *in = fx_in(k->g, n);
    bool *is_read = k->is_read + n->refs;
    bool reads_some = false;
    for (uint32_t a = 0; a < n->in_count; a++) {
        is_read[a] = !call->is_fresh || !writes_tensor(k, n, in[a]);
        reads_some |= is_read[a];
    }
    const bool is_in_place = call->is_fresh && call->role != FX_COMPUTE && !reads_some;
    for (uint32_t a = 0; a < n->in_count && is_in_place; a++)
        is_read[a] = true;
}

static orr_code call_node(caller *k, size_t i, fx_call *call, orr_error *err)
{
    const fx_node *n = &k->g->nodes[i];
    const op_kind *kind = &k->kinds[n->op];
    *call = (fx_call){.role = FX_OUTSIDE};
    for (uint32_t w = 0; w < n->writes_count; w++)
        k->written_by[fx_writes(k->g, n)[w]] = i + 1;
    if (n->phase == FX_SETUP)
        return ORR_OK;
    if (kind->role == FX_WAIT || kind->role == FX_WAIT_VALUE) {
        call->role = kind->role;
        return ORR_OK;
    }
    if (fx_is_communication(kind->role))
        return call_communication(k, i, kind, call, err);
    call->is_fresh = kind->is_fresh;
    call->is_copy_in = kind->is_copy_in;
    call->is_copy_out = kind->is_copy_out;
    const orr_code code = n->is_view ? ORR_OK : price(k, n, call, err);
    if (!code && (n->is_view || kind->is_copy_in))
        call->role = FX_FOLD;
    return code;
}

void fx_calls_fini(fx_calls *k)
{
    orr_free(k->at);
    orr_free(k->is_read);
    orr_intern_destroy(k->texts);
    *k = (fx_calls){0};
}

orr_code fx_calls_make(const orr_fx *c, const fx_graph *g, fx_calls *out, orr_error *err)
{
    const size_t ops = g->texts[FX_OPS].count;
    *out = (fx_calls){.at = orr_alloc(g->node_count + 1, sizeof *out->at),
                      .is_read = orr_alloc(g->ref_count + 1, sizeof *out->is_read),
                      .texts = orr_intern_create()};
    caller k = {.c = c,
                .g = g,
                .kinds = orr_alloc(ops + 1, sizeof *k.kinds),
                .written_by = orr_alloc(g->tensor_count + 1, sizeof *k.written_by),
                .texts = out->texts,
                .is_read = out->is_read};
    uint32_t none;
    orr_code code = k.kinds && k.written_by && out->at && out->is_read && k.texts &&
                            orr_intern_add(k.texts, (orr_str){"", 0}, &none)
                        ? ORR_OK
                        : orr_no_memory(err);
    for (size_t i = 0; i < ops && !code; i++)
        k.kinds[i] = kind_of(g->texts[FX_OPS].at[i]);
    for (size_t i = 0; i < g->node_count && !code; i++) {
        code = call_node(&k, i, &out->at[i], err);
        if (!code)
            mark_reads(&k, i, &out->at[i]);
    }
    orr_free(k.kinds);
    orr_free(k.written_by);
    orr_free(k.tensors);
    orr_buf_fini(&k.line);
    if (code)
        fx_calls_fini(out);
    return code;
}

enum { LIST_MOST = 128, TALK_MOST = 1024, COPY_MOST = 4096 };
#define NIL UINT32_MAX

typedef struct touch {
    uint64_t first, end; /* bytes */
    uint32_t id, next;
    bool is_pending;
} touch;

typedef struct cell {
    uint32_t writers, readers; /* lists of touches, most recent first */
    uint32_t writer_count, reader_count;
} cell;

typedef struct fence {
    uint32_t id, number; /* 0: none yet; numbered from 1, over all streams */
} fence;

struct fx_values {
    const fx_graph *g;
    const fx_calls *calls;
    cell *cells; /* one for each storage */
    touch *touches;
    size_t touch_count, touch_room;
    uint32_t unused; /* a list of touches */
    uint32_t *seen;  /* per id: 1 + the last node that waits for it */
    uint32_t *epoch, *fence;
    uint32_t *stream_of; /* of communication, 1 + its stream; 0: of computation */
    bool *is_receive;
    fence *waited; /* per stream: the last communication waited for */
    size_t waited_count, waited_room;
    uint32_t fence_count;
    uint32_t last_compute, fenced_compute;
    uint32_t last_copy_out;
    bool has_copied_in; /* the next collective is the all-gather of the copied parameters */
    uint32_t node;      /* 1 + the current node */
    uint32_t node_epoch;
    fx_deps deps;
    bool failed;
};

orr_code fx_values_create(const fx_graph *g, const fx_calls *calls, fx_values **out, orr_error *err)
{
    const size_t ids = g->node_count + 2;
    fx_values *v = orr_alloc(1, sizeof *v);
    *out = v;
    if (!v)
        return orr_no_memory(err);
    *v = (fx_values){.g = g,
                     .calls = calls,
                     .cells = orr_alloc(g->storage_count + 1, sizeof *v->cells),
                     .unused = NIL,
                     .seen = orr_alloc(ids, sizeof *v->seen),
                     .epoch = orr_alloc(ids, sizeof *v->epoch),
                     .fence = orr_alloc(ids, sizeof *v->fence),
                     .stream_of = orr_alloc(ids, sizeof *v->stream_of),
                     .is_receive = orr_alloc(ids, sizeof *v->is_receive)};
    if (!v->cells || !v->seen || !v->epoch || !v->fence || !v->stream_of || !v->is_receive) {
        fx_values_destroy(v);
        *out = NULL;
        return orr_no_memory(err);
    }
    for (size_t i = 0; i < g->storage_count; i++)
        v->cells[i] = (cell){.writers = NIL, .readers = NIL};
    return ORR_OK;
}

void fx_values_destroy(fx_values *v)
{
    if (!v)
        return;
    orr_free(v->cells);
    orr_free(v->touches);
    orr_free(v->seen);
    orr_free(v->epoch);
    orr_free(v->fence);
    orr_free(v->stream_of);
    orr_free(v->is_receive);
    orr_free(v->waited);
    orr_free(v->deps.data);
    orr_free(v->deps.ctrl);
    orr_free(v);
}

/* ---- lists ---- */

static void push(fx_values *v, uint32_t *list, uint32_t *count, touch t)
{
    uint32_t at = v->unused;
    if (at != NIL)
        v->unused = v->touches[at].next;
    else if (v->touch_count >= NIL || !orr_grow(&v->touches, &v->touch_room, v->touch_count + 1)) {
        v->failed = true;
        return;
    } else
        at = (uint32_t)v->touch_count++;
    t.next = *list;
    v->touches[at] = t;
    *list = at;
    ++*count;
}

/* Removes the element *link refers to. */
static void drop(fx_values *v, uint32_t *link, uint32_t *count)
{
    const uint32_t at = *link;
    *link = v->touches[at].next;
    v->touches[at].next = v->unused;
    v->unused = at;
    --*count;
}

static void clear(fx_values *v, uint32_t *list, uint32_t *count)
{
    while (*list != NIL)
        drop(v, list, count);
}

static bool meet(const touch *a, const touch *b)
{
    return a->first < b->end && b->first < a->end;
}

static bool covers(const touch *a, const touch *b)
{
    return a->first <= b->first && b->end <= a->end;
}

/* ---- dependencies of a node ---- */

static bool add_dep(fx_values *v, uint32_t id, bool is_data)
{
    fx_deps *d = &v->deps;
    if (id == 0 || v->seen[id] == v->node)
        return false;
    v->seen[id] = v->node;
    if (is_data ? !orr_grow(&d->data, &d->data_room, d->data_count + 1)
                : !orr_grow(&d->ctrl, &d->ctrl_room, d->ctrl_count + 1)) {
        v->failed = true;
        return false;
    }
    if (is_data)
        d->data[d->data_count++] = id;
    else
        d->ctrl[d->ctrl_count++] = id;
    uint32_t epoch = v->epoch[id];
    if (v->fence[id] && epoch + 1 >= v->fence[id])
        epoch = v->fence[id]; /* it is the fence itself */
    v->node_epoch = epoch > v->node_epoch ? epoch : v->node_epoch;
    return true;
}

static touch touch_of(const fx_values *v, uint32_t tensor, uint32_t id, bool *is_dense)
{
    touch t = {.id = id};
    *is_dense = extent(v->g, &v->g->tensors[tensor], &t.first, &t.end);
    return t;
}

static cell *cell_of(const fx_values *v, uint32_t tensor)
{
    return &v->cells[v->g->tensors[tensor].storage];
}

/* Computation does not see pending data; later communication of the same stream does. */
static void read_tensor(fx_values *v, uint32_t tensor, uint32_t id, bool sees_pending)
{
    cell *c = cell_of(v, tensor);
    bool is_dense;
    const touch t = touch_of(v, tensor, id, &is_dense);
    for (uint32_t at = c->writers; at != NIL; at = v->touches[at].next) {
        const touch *w = &v->touches[at];
        if (meet(w, &t) && (sees_pending || !w->is_pending))
            add_dep(v, w->id, true);
    }
}

static void note_reader(fx_values *v, uint32_t tensor, uint32_t id)
{
    cell *c = cell_of(v, tensor);
    bool is_dense;
    push(v, &c->readers, &c->reader_count, touch_of(v, tensor, id, &is_dense));
}

/* What a write replaces: what it covers, all computation, or everything. */
typedef enum reach { COVERED, COMPUTED, ALL } reach;

static reach reach_of(const cell *c, bool talks)
{
    const uint32_t count = c->writer_count > c->reader_count ? c->writer_count : c->reader_count;
    if (count >= TALK_MOST)
        return ALL;
    return count >= LIST_MOST && !talks ? COMPUTED : COVERED;
}

/* Everything in the list that overlaps t comes before this node; what t covers is removed. */
static void come_after(
    fx_values *v, uint32_t *list, uint32_t *count, const touch *t, bool forgets, reach far)
{
    for (uint32_t *link = list; *link != NIL;) {
        const touch *o = &v->touches[*link];
        const bool is_taken = far == ALL || (far == COMPUTED && v->stream_of[o->id] == 0);
        if (o->id != t->id && (is_taken || meet(o, t)))
            add_dep(v, o->id, false);
        if (is_taken || (forgets && o->id != t->id && covers(t, o)))
            drop(v, link, count);
        else
            link = &v->touches[*link].next;
    }
}

static void write_tensor(fx_values *v, uint32_t tensor, uint32_t id, bool is_pending)
{
    cell *c = cell_of(v, tensor);
    bool is_dense;
    touch t = touch_of(v, tensor, id, &is_dense);
    const reach far = reach_of(c, is_pending);
    t.is_pending = is_pending;
    /* Pending data hide nothing yet, so earlier writers stay. */
    come_after(v, &c->readers, &c->reader_count, &t, is_dense, far);
    come_after(v, &c->writers, &c->writer_count, &t, is_dense && !is_pending, far);
    if (far != COVERED) {
        t.first = 0;
        t.end = UINT64_MAX;
    }
    push(v, &c->writers, &c->writer_count, t);
}

/* In-place operators return what they wrote. */
static bool is_written(const fx_values *v, uint32_t tensor, uint32_t id)
{
    const cell *c = cell_of(v, tensor);
    bool is_dense;
    const touch t = touch_of(v, tensor, id, &is_dense);
    return c->writers != NIL && v->touches[c->writers].id == id &&
           covers(&v->touches[c->writers], &t);
}

/* ---- waiting ---- */

static void put_fence(fx_values *v, uint32_t id)
{
    const uint32_t stream = v->stream_of[id];
    if (stream == 0)
        return;
    if (!orr_grow(&v->waited, &v->waited_room, stream)) {
        v->failed = true;
        return;
    }
    while (v->waited_count < stream)
        v->waited[v->waited_count++] = (fence){0};
    if (v->waited[stream - 1].id >= id)
        return;
    v->waited[stream - 1] = (fence){id, ++v->fence_count};
    if (v->is_receive[id])
        v->fenced_compute = v->last_compute;
    else
        v->fence[id] = v->fence_count;
}

/* Pending data in the tensor's bytes have arrived, and hide what they overwrote. A tensor without
 * elements means its whole storage: nothing else would complete it. */
static void settle(fx_values *v, uint32_t tensor, bool is_fence)
{
    cell *c = cell_of(v, tensor);
    bool is_dense;
    touch waited = touch_of(v, tensor, 0, &is_dense);
    if (waited.first == waited.end)
        waited = (touch){.end = UINT64_MAX};
    for (uint32_t at = c->writers; at != NIL; at = v->touches[at].next) {
        if (!v->touches[at].is_pending || !meet(&v->touches[at], &waited))
            continue;
        v->touches[at].is_pending = false;
        if (is_fence)
            put_fence(v, v->touches[at].id);
        const touch t = v->touches[at];
        for (uint32_t *link = &v->touches[at].next; *link != NIL;) {
            if (covers(&t, &v->touches[*link]) && !v->touches[*link].is_pending)
                drop(v, link, &c->writer_count);
            else
                link = &v->touches[*link].next;
        }
    }
}

static void wait_for(fx_values *v, const fx_node *n)
{
    for (uint32_t k = 0; k < n->in_count; k++)
        settle(v, fx_in(v->g, n)[k], true);
}

/* Outputs with their own storage inherit the writers of the inputs that are read, in order. */
static void pass_on(fx_values *v, const fx_node *n)
{
    const uint32_t *in = fx_in(v->g, n), *out = fx_out(v->g, n);
    const bool *is_read = v->calls->is_read + n->refs;
    uint32_t source = NIL, next = 0;
    for (uint32_t k = 0; k < n->out_count; k++) {
        while (next < n->in_count && !is_read[next])
            next++;
        if (next < n->in_count)
            source = next++;
        if (source == NIL)
            return;
        const cell *from = cell_of(v, in[source]);
        cell *to = cell_of(v, out[k]);
        if (from == to)
            continue;
        clear(v, &to->writers, &to->writer_count);
        for (uint32_t at = from->writers; at != NIL && !v->failed; at = v->touches[at].next)
            push(v, &to->writers, &to->writer_count,
                 (touch){.end = UINT64_MAX,
                         .id = v->touches[at].id,
                         .is_pending = v->touches[at].is_pending});
    }
}

/* The all-gather that follows reads the buffer and waits for all copies: one writer per
 * parameter. */
static void copy_in(fx_values *v, const fx_node *n)
{
    const uint32_t *in = fx_in(v->g, n);
    cell *to = n->out_count ? cell_of(v, fx_out(v->g, n)[0]) : NULL;
    v->has_copied_in = true;
    for (uint32_t k = 0; k < n->in_count && to; k++) {
        const cell *from = cell_of(v, in[k]);
        for (uint32_t at = from->writers; at != NIL && from != to; at = v->touches[at].next) {
            if (v->failed || to->writer_count >= COPY_MOST)
                return;
            push(v, &to->writers, &to->writer_count,
                 (touch){.end = UINT64_MAX, .id = v->touches[at].id});
        }
    }
}

static void wait_for_value(fx_values *v, const fx_node *n)
{
    for (uint32_t k = 0; k < n->in_count; k++)
        settle(v, fx_in(v->g, n)[k], false);
    pass_on(v, n);
}

/* Computation after a fence waits for it, unless one of its dependencies is after it. */
static void respect_fences(fx_values *v)
{
    const uint32_t epoch = v->node_epoch;
    if (epoch >= v->fence_count)
        return;
    for (size_t s = 0; s < v->waited_count; s++) {
        if (v->waited[s].number > epoch)
            add_dep(v, v->waited[s].id, false);
    }
    add_dep(v, v->fenced_compute, false);
    v->node_epoch = v->fence_count;
}

/* ---- nodes in order ---- */

static void visit(fx_values *v, const fx_node *n, const fx_call *call, uint32_t id)
{
    const uint32_t *in = fx_in(v->g, n), *out = fx_out(v->g, n), *writes = fx_writes(v->g, n);
    const bool *is_read = v->calls->is_read + n->refs;
    const bool talks = fx_is_communication(call->role);
    const bool is_pending = talks && call->role != FX_SEND;
    for (uint32_t k = 0; k < n->in_count; k++) {
        if (is_read[k])
            read_tensor(v, in[k], id, talks);
    }
    for (uint32_t k = 0; k < n->writes_count; k++)
        write_tensor(v, writes[k], id, is_pending);
    for (uint32_t k = 0; k < n->out_count; k++) {
        if (!is_written(v, out[k], id))
            write_tensor(v, out[k], id, is_pending);
    }
    for (uint32_t k = 0; k < n->in_count; k++) {
        if (is_read[k])
            note_reader(v, in[k], id);
    }
    if (call->role == FX_COLLECT && call->collective == ORR_COLL_BARRIER) {
        for (uint32_t k = 0; k < n->in_count; k++) { /* so that a wait finds it */
            cell *c = cell_of(v, in[k]);
            if (c->writer_count < LIST_MOST)
                push(v, &c->writers, &c->writer_count,
                     (touch){.end = UINT64_MAX, .id = id, .is_pending = true});
        }
    }
}

orr_code fx_values_next(fx_values *v,
                        uint32_t i,
                        uint64_t id,
                        uint64_t after,
                        uint32_t stream,
                        const fx_deps **out,
                        orr_error *err)
{
    const fx_node *n = &v->g->nodes[i];
    const fx_call *call = &v->calls->at[i];
    v->deps.data_count = v->deps.ctrl_count = 0;
    v->node = i + 1;
    v->node_epoch = 0;
    *out = &v->deps;
    if (call->role == FX_WAIT)
        wait_for(v, n);
    else if (call->role == FX_WAIT_VALUE)
        wait_for_value(v, n);
    else if (call->is_copy_in)
        copy_in(v, n);
    else if (call->role == FX_FOLD && (n->is_view || n->group != FX_NONE))
        pass_on(v, n); /* an allocation passes nothing on, wherever its shape comes from */
    if (id) {
        visit(v, n, call, (uint32_t)id);
        add_dep(v, (uint32_t)after, false);
        if (call->role == FX_COLLECT && v->has_copied_in) {
            add_dep(v, v->last_copy_out, false);
            v->has_copied_in = false;
        }
        v->last_copy_out = call->is_copy_out ? (uint32_t)id : v->last_copy_out;
        if (call->role == FX_COMPUTE) {
            respect_fences(v);
            v->last_compute = (uint32_t)id;
        } else
            v->stream_of[id] = stream + 1;
        v->is_receive[id] = call->role == FX_RECV;
        v->epoch[id] = v->node_epoch;
    }
    return v->failed ? orr_no_memory(err) : ORR_OK;
}

/* ==== device memory during the step: liveness of values.
 *
 * A value lives from its definition to its last use; one without a definition existed before.
 * Overwriting a whole storage starts a new value, so a reused buffer counts only while its contents
 * are needed (sharded parameters are freed between their uses in this way).  Parameters, buffers
 * and optimizer state are always alive.  This is a lower bound; a program that keeps a reference
 * longer holds more. Gradients are what the optimizer reads and neither keeps nor makes.  Cost:
 * linear. */

enum { BEFORE = 0 }; /* node i is moment i + 1; moment 0 is before the step */

/* One per value: small, because the first touch of memory costs more than the work on it. */
typedef struct range {
    uint32_t storage;
    uint32_t from, to; /* moments, both included; a graph has less than 2^32 - 1 nodes */
} range;

typedef struct life {
    uint64_t bytes;
    uint32_t from, to;
    uint32_t same_as; /* an alias of this storage */
    bool is_live, is_gradient, is_made_by_optimizer;
} life;

typedef struct liveness {
    const fx_graph *g;
    const fx_calls *calls;
    life *lives;
    range *ranges;
    size_t range_count, range_room;
} liveness;

static uint32_t root_of(liveness *l, uint32_t s)
{
    life *lives = l->lives;
    while (lives[s].same_as != s) {
        lives[s].same_as = lives[lives[s].same_as].same_as; /* path halving */
        s = lives[s].same_as;
    }
    return s;
}

static life *life_of(liveness *l, uint32_t tensor, uint32_t *storage)
{
    *storage = root_of(l, l->g->tensors[tensor].storage);
    return &l->lives[*storage];
}

static bool end_range(liveness *l, uint32_t storage)
{
    life *v = &l->lives[storage];
    if (!v->is_live)
        return true;
    if (!orr_push(l->ranges, l->range_count, l->range_room, (range){storage, v->from, v->to}))
        return false;
    v->is_live = false;
    return true;
}

static void use(liveness *l, uint32_t tensor, uint32_t moment, const fx_node *n)
{
    uint32_t s;
    life *v = life_of(l, tensor, &s);
    if (!v->is_live) {
        v->is_live = true;
        v->from = BEFORE;
        v->is_made_by_optimizer = false;
    }
    v->to = moment;
    v->is_gradient |= n->phase == FX_OPTIMIZER && !v->is_made_by_optimizer;
}

static bool make(liveness *l, uint32_t tensor, uint32_t moment, const fx_node *n, bool is_fresh)
{
    uint32_t s;
    uint64_t first, end;
    life *v = life_of(l, tensor, &s);
    const bool is_whole =
        extent(l->g, &l->g->tensors[tensor], &first, &end) && first == 0 && end >= v->bytes;
    if (v->is_live && v->to < moment && is_fresh && is_whole && !end_range(l, s))
        return false;
    if (!v->is_live) {
        v->is_live = true;
        v->from = moment;
        v->is_made_by_optimizer = n->phase == FX_OPTIMIZER;
    }
    v->to = moment;
    return true;
}

/* A view, a wait: outputs with their own storages are aliases of the input. */
static void rename_outputs(liveness *l, const fx_node *n)
{
    const uint32_t *in = fx_in(l->g, n), *out = fx_out(l->g, n);
    uint32_t from, to;
    if (n->in_count == 0)
        return;
    for (uint32_t i = 0; i < n->out_count; i++) {
        life_of(l, in[0], &from);
        life *v = life_of(l, out[i], &to);
        if (from != to && !v->is_live && l->g->storages[to].kept == FX_KEPT_NOT)
            v->same_as = from;
    }
}

static bool live_through(liveness *l, size_t i)
{
    const fx_graph *g = l->g;
    const fx_node *n = &g->nodes[i];
    const fx_call *call = &l->calls->at[i];
    const uint32_t *in = fx_in(g, n), *out = fx_out(g, n), *writes = fx_writes(g, n);
    const bool makes = call->role == FX_COMPUTE || fx_is_communication(call->role);
    const bool *is_read = l->calls->is_read + n->refs;
    const uint32_t moment = (uint32_t)i + 1;
    bool is_fine = true;
    for (uint32_t k = 0; k < n->in_count; k++) {
        if (is_read[k])
            use(l, in[k], moment, n);
    }
    if (call->role == FX_WAIT_VALUE || n->is_view)
        rename_outputs(l, n);
    for (uint32_t k = 0; k < n->writes_count && is_fine; k++)
        is_fine = make(l, writes[k], moment, n, call->is_fresh);
    for (uint32_t k = 0; k < n->out_count && is_fine; k++)
        is_fine = make(l, out[k], moment, n, makes);
    return is_fine;
}

/* Results are alive until the end. */
static void hold_results(liveness *l)
{
    for (uint32_t s = 0; s < l->g->storage_count; s++) {
        life *v = &l->lives[root_of(l, s)];
        if (l->g->storages[s].is_result && v->is_live)
            v->to = (uint32_t)l->g->node_count;
    }
}

/* ---- sums ---- */

static void init_lives(liveness *l)
{
    const fx_graph *g = l->g;
    uint64_t total = 0; /* fx_check saw that it fits */
    for (uint32_t s = 0; s < g->storage_count; s++) {
        l->lives[s] = (life){.bytes = g->storages[s].bytes, .same_as = s};
        total += g->storages[s].bytes;
    }
    for (size_t t = 0; t < g->tensor_count;
         t++) { /* first seen when freed: as large as its tensors */
        life *v = &l->lives[g->tensors[t].storage];
        const uint64_t bytes = tensor_bytes(g, &g->tensors[t]);
        uint64_t first, end;
        if (g->storages[g->tensors[t].storage].bytes || bytes <= v->bytes ||
            bytes - v->bytes > INT64_MAX - total || !extent(g, &g->tensors[t], &first, &end))
            continue;
        total += bytes - v->bytes;
        v->bytes = bytes;
    }
}

static uint64_t *part_of(const liveness *l, uint32_t storage, orr_fx_memory *m)
{
    switch (l->g->storages[storage].kept) {
    case FX_KEPT_PARAMETER:
        return &m->parameters;
    case FX_KEPT_BUFFER:
        return &m->buffers;
    case FX_KEPT_STATE:
        return &m->optimizer;
    case FX_KEPT_NOT:
        break;
    }
    return l->lives[storage].is_gradient ? &m->gradients : &m->activations;
}

static uint64_t kept_bytes(const liveness *l)
{
    uint64_t sum = 0;
    for (size_t s = 0; s < l->g->storage_count; s++)
        sum += l->g->storages[s].kept != FX_KEPT_NOT ? l->lives[s].bytes : 0;
    return sum;
}

/* held[i]: differences first, then prefix sums. */
static size_t sum_up(const liveness *l, uint64_t *held)
{
    const size_t count = l->g->node_count;
    size_t peak = 0;
    held[0] += kept_bytes(l);
    for (size_t i = 0; i < l->range_count; i++) {
        const range *r = &l->ranges[i];
        if (l->g->storages[r->storage].kept != FX_KEPT_NOT)
            continue;
        held[r->from ? r->from - 1 : 0] += l->lives[r->storage].bytes;
        held[r->to] -= l->lives[r->storage].bytes; /* modulo 2^64, as are the sums */
    }
    for (size_t i = 1; i < count; i++) {
        held[i] += held[i - 1];
        peak = held[i] > held[peak] ? i : peak;
    }
    return peak;
}

static void split(const liveness *l, size_t peak, uint64_t bytes, orr_fx_memory *out)
{
    *out = (orr_fx_memory){.peak = bytes};
    for (uint32_t s = 0; s < l->g->storage_count; s++) {
        if (l->g->storages[s].kept != FX_KEPT_NOT)
            *part_of(l, s, out) += l->lives[s].bytes;
    }
    for (size_t i = 0; i < l->range_count; i++) {
        const range *r = &l->ranges[i];
        if (l->g->storages[r->storage].kept == FX_KEPT_NOT && r->from <= peak + 1 &&
            r->to >= peak + 1)
            *part_of(l, r->storage, out) += l->lives[r->storage].bytes;
    }
}

orr_code fx_memory(
    const fx_graph *g, const fx_calls *calls, uint64_t **held, orr_fx_memory *out, orr_error *err)
{
    liveness l = {
        .g = g, .calls = calls, .lives = orr_alloc(g->storage_count + 1, sizeof *l.lives)};
    uint64_t *moments = orr_alloc(g->node_count + 2, sizeof *moments);
    bool is_fine = l.lives && moments;
    *held = NULL;
    if (is_fine)
        init_lives(&l);
    for (size_t i = 0; i < g->node_count && is_fine; i++)
        is_fine = calls->at[i].role == FX_OUTSIDE || live_through(&l, i);
    if (is_fine)
        hold_results(&l);
    for (uint32_t s = 0; s < g->storage_count && is_fine; s++)
        is_fine = end_range(&l, s);
    if (is_fine) {
        const size_t peak = sum_up(&l, moments);
        split(&l, peak, moments[peak], out);
        *held = moments;
    } else
        orr_free(moments);
    orr_free(l.lives);
    orr_free(l.ranges);
    return is_fine ? ORR_OK : orr_no_memory(err);
}
