/* SPDX-License-Identifier: Apache-2.0 */
/* fx_calls.c - what each captured call is: computation with its cost, communication with its size,
 * a wait, or nothing.
 *
 * Communication is known by its name, namespace.name.overload as PyTorch's dispatcher spells it;
 * the table has the forms for one tensor, for lists and for flat buffers ("base", "coalesced").  A
 * size is what a rank has before the collective, whatever the kind (docs/design/collectives.md):
 * the tensors it gives, of a scatter n times what it gets. All else is for the table of operator
 * costs. */
#include "fx_impl.h"

#include "base/memory/buffer.h"

#include "base/text/text.h"
#include "models/compute/operators/operator_kernel.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

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

/* What is known of a name, once for each entry of "ops". */
typedef struct op_kind {
    uint8_t role; /* FX_COMPUTE: see the table of costs */
    uint8_t collective;
    bool is_fresh; /* writes what it does not read */
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

/* Operators that list what they write among their inputs, but do not look at it. */
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
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (orr_str_is(n->name, names[i]))
            return true;
    }
    return false;
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

uint64_t fx_tensor_bytes(const fx_graph *g, const fx_tensor *t)
{
    const uint64_t *shape = fx_shape(g, t);
    uint64_t bytes = t->element_bytes ? t->element_bytes : 1;
    for (uint8_t d = 0; d < t->rank; d++) /* fx_check saw that it fits, zeros apart */
        bytes = shape[d] ? bytes * shape[d] : 0;
    return bytes;
}

bool fx_extent(const fx_graph *g, const fx_tensor *t, uint64_t *first, uint64_t *end)
{
    const uint64_t *shape = fx_shape(g, t), *stride = fx_stride(g, t);
    const uint64_t bytes = fx_tensor_bytes(g, t), element = t->element_bytes;
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
        sum = add_bytes(sum, fx_tensor_bytes(g, &g->tensors[list[i]]));
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

static bool is_written(const caller *k, const fx_node *n, uint32_t tensor)
{
    return k->written_by[tensor] == (size_t)(n - k->g->nodes) + 1;
}

/* What a rank gives: its inputs, without those that are there to be written; in place it is all of
 * them. */
static uint64_t given_bytes(const caller *k, const fx_node *n)
{
    const uint32_t *in = fx_in(k->g, n);
    uint64_t given = 0;
    bool is_in_place = true;
    for (uint32_t i = 0; i < n->in_count; i++) {
        if (is_written(k, n, in[i]))
            continue;
        is_in_place = false;
        given = add_bytes(given, fx_tensor_bytes(k->g, &k->g->tensors[in[i]]));
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

orr_code fx_fail(const orr_fx *c, uint64_t byte, orr_error *err, const char *fmt, ...)
{
    const orr_where at = orr_where_byte(c->path, byte);
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return orr_fail(err, ORR_EINPUT, &at, "%s", text);
}

static operator_tensor tensor_for_cost(const fx_graph *g, uint32_t number)
{
    const fx_tensor *t = &g->tensors[number];
    return (operator_tensor){.shape = fx_shape(g, t),
                             .stride = fx_stride(g, t),
                             .rank = t->rank,
                             .element_bytes = t->element_bytes};
}

/* Figures end at the most there is; a step that gets there has shapes that no machine holds. */
static orr_code check_figures(const caller *k, const fx_node *n, const fx_call *c, orr_error *err)
{
    const orr_str op = fx_text(k->g, FX_OPS, n->op);
    const uint64_t moved = add_bytes(c->bytes_read < INT64_MAX ? c->bytes_read : INT64_MAX,
                                     c->bytes_written < INT64_MAX ? c->bytes_written : INT64_MAX);
    if (c->flops < INT64_MAX && c->bytes < INT64_MAX && moved < INT64_MAX)
        return ORR_OK;
    return fx_fail(k->c, n->byte, err,
                   "rank %" PRIu32 ", node %zu: %.*s takes more than 2^63 %s: is a shape wrong?",
                   k->g->rank, (size_t)(n - k->g->nodes), (int)(op.len < 60 ? op.len : 60), op.ptr,
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
        k->tensors[i].is_written = is_written(k, n, in[i]);
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
    /* Communication that the table above does not have is as unknown as any operator. */
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
                       k->g->rank, i, (int)(op.len < 60 ? op.len : 60), op.ptr,
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
                       k->g->rank, i, (int)(op.len < 60 ? op.len : 60), op.ptr);
    *call = (fx_call){.role = kind->role, .collective = kind->collective, .is_fresh = true};
    call->bytes = communicated_bytes(k, n, kind);
    const orr_code code = check_figures(k, n, call, err);
    if (code || kind->role != FX_COLLECT)
        return code ? code : check_message(k, i, kind->role, err);
    if (k->c->groups[n->group].count == 1)
        call->role = FX_FOLD; /* alone in its group: there is nothing to do */
    return ORR_OK;
}

/* Which inputs are looked at: all, except those that are there to be written.  A collective in
 * place, which has no others, looks at them nevertheless. */
static void mark_reads(const caller *k, size_t i, const fx_call *call)
{
    const fx_node *n = &k->g->nodes[i];
    const uint32_t *in = fx_in(k->g, n);
    bool *is_read = k->is_read + n->refs;
    bool reads_some = false;
    for (uint32_t a = 0; a < n->in_count; a++) {
        is_read[a] = !call->is_fresh || !is_written(k, n, in[a]);
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
