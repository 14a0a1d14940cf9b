/* SPDX-License-Identifier: Apache-2.0 */
/* llm_pen.c - writes the nodes of one class of ranks, one after the other.
 *
 * Ids count up from 1 in program order: a simulator that starts the smallest id first follows it.
 * Communication waits for its predecessor in its stream, so all ranks of a group issue their
 * collectives in the same order.  The first failure sticks. */
#include "llm_impl.h"

#include "base/memory/memory.h"
#include "serve_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void llm_pen_open(llm_pen *p, const llm_job *g, orr_error *err)
{
    *p = (llm_pen){.g = g, .slot_count = LLM_SLOTS};
    orr__build_open(&p->b, err);
    p->b.next_id = 1;
    orr__put_text(&p->b, ORR__ATTR_SCHEMA, orr_str_of("orrery llm 1"));
    orr__put_uint(&p->b, ORR__ATTR_STREAMS, 1);
    orr__put_text(&p->b, ORR__ATTR_SOFTWARE, orr_str_of(g->software->name));
    if (g->token_ranks)
        orr__put_uint(&p->b, ORR__ATTR_TOKEN_RANKS, g->token_ranks);
    const int bits = g->opt.dtype == ORR_DTYPE_NVFP4                                    ? 4
                     : g->opt.dtype == ORR_DTYPE_FP8 || g->opt.dtype == ORR_DTYPE_MXFP8 ? 8
                                                                                        : 16;
    if (bits < 16 && !g->job_tokens) /* a step has it below */
        orr__put_uint(&p->b, ORR__ATTR_PRODUCT_BITS, (uint64_t)bits);
    if (g->job_tokens) {
        orr__put_uint(&p->b, ORR__ATTR_TOKENS, g->job_tokens);
        orr__put_double(&p->b, ORR__ATTR_MODEL_FLOPS, g->job_flops);
        orr__put_uint(&p->b, ORR__ATTR_DEVICE_BYTES, g->opt.device_bytes);
        if (bits < 16) /* the peak that MFU is of */
            orr__put_uint(&p->b, ORR__ATTR_PRODUCT_BITS, (uint64_t)bits);
        if (g->opt.steps > 1)
            orr__put_uint(&p->b, ORR__ATTR_STEPS, g->opt.steps);
        if (g->made_by.len)
            orr__put_text(&p->b, ORR__ATTR_MADE_BY, g->made_by);
    }
    orr__build_trace(&p->b, "1.0.0");
}

orr_code llm_pen_close(llm_pen *p, orr_set *s, uint32_t *class_index)
{
    if (p->kernels.failed && !p->b.code)
        p->b.code = orr_no_memory(p->b.err);
    orr_buf_fini(&p->kernels);
    orr_free(p->known);
    p->known = NULL;
    return orr__build_class(&p->b, s, p->slot_count, class_index);
}

void llm_pen_prefix(llm_pen *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(p->prefix, sizeof p->prefix, fmt, args);
    va_end(args);
}

/* ---- one node ---- */

static orr__builder *begin(llm_pen *p, uint32_t type, const char *name, llm_deps after)
{
    orr__builder *b = &p->b;
    orr__build_node(b, type, (orr_str){NULL, 0});
    orr__build_name(b, orr_str_of(p->prefix));
    orr__build_name(b, orr_str_of(name));
    for (size_t i = 0; i < after.count; i++) {
        if (after.ids[i])
            orr__build_after(b, after.ids[i]);
    }
    return b;
}

static void add_ctrl(orr__builder *b, uint64_t id)
{
    if (id)
        orr__build_after_ctrl(b, id);
}

static uint64_t end(llm_pen *p, llm_stream stream, bool is_on_host)
{
    orr__builder *b = &p->b;
    /* A receive may start long before its task. */
    if (p->has_held && b->node.type != ORR_NODE_COMM_RECV) {
        orr__put_uint(b, ORR__ATTR_HELD_BYTES, p->held);
        p->has_held = false;
    }
    orr__put_int(b, ORR__ATTR_STREAM, stream);
    orr__put_is_cpu_op(b, is_on_host);
    const uint64_t id = orr__build_add(b);
    return b->code ? 0 : id;
}

/* ---- measuring ---- */

/* Amount divided by rate, in ps, rounded up; saturates at 106 days. */
static uint64_t ps_of(unsigned __int128 amount, uint64_t rate)
{
    const unsigned __int128 most = INT64_MAX;
    if (amount > most)
        return INT64_MAX;
    const unsigned __int128 ps = (amount * 1000000000000u + (rate - 1)) / rate;
    return ps < most ? (uint64_t)ps : INT64_MAX;
}

static uint64_t add_time(llm_meter *t, uint64_t ps)
{
    t->time = ps < INT64_MAX - t->time ? t->time + ps : INT64_MAX;
    return 1; /* any nonzero id: nothing is written that depends on it */
}

static uint64_t add_moved(llm_meter *t, uint64_t ps)
{
    t->moved = llm_later(t->moved, ps);
    return add_time(t, ps);
}

static uint64_t measure_compute(llm_meter *t, uint64_t operations, uint64_t bytes)
{
    if (t->time < t->ring_until)
        add_moved(t, t->ring_until - t->time);
    if (t->pending) {
        const llm_deviation *d = &t->deviation;
        orr__chip_add_error(&t->errors, t->uses * sqrt(d->low2), t->uses * sqrt(d->high2));
        orr__chip_add_common(&t->errors, t->uses * d->assumed_low, t->uses * d->assumed_high);
        t->deviation = (llm_deviation){0};
        t->computed = t->pending;
        t->pending = 0;
        return add_time(t, t->computed);
    }
    const uint64_t by_work = ps_of(operations, t->peak);
    const uint64_t by_memory = ps_of(bytes, t->memory_rate);
    t->computed = by_work > by_memory ? by_work : by_memory;
    return add_time(t, t->computed);
}

/* Ranks of a group of n that are in one node, where its ranks are so far apart. */
static uint32_t ranks_near(const llm_meter *t, uint32_t n, uint32_t stride)
{
    const uint32_t room = t->node_ranks / stride;
    return !t->node_ranks || n <= room ? n : room ? room : 1;
}

/* What a rank can send to `near` - 1 others of its node.  Of a mesh it has a link to each. */
static uint64_t near_rate(const llm_meter *t, uint32_t near)
{
    if (!t->is_mesh || near >= t->node_ranks)
        return t->link_rate;
    const uint64_t rate = t->link_rate / (t->node_ranks - 1) * (near > 1 ? near - 1 : 1);
    return rate ? rate : 1;
}

/* Of n ranks in a ring: an all-reduce goes round twice, all others once, and a rank keeps its own
 * part.  An all-gather is given by what one rank has, the others by what all have.  Between nodes a
 * ring uses the NICs of all its ranks there; of an all-to-all each rank sends what is for other
 * nodes through its own. */
enum { COLLECTIVE_PS = 8000000 }; /* a small all-reduce of a serving program within a node */
static uint64_t measure_collect(
    llm_meter *t, orr_collective kind, uint64_t bytes, uint32_t n, uint32_t stride, uint32_t shape)
{
    llm_moved moved;
    t->host_us += t->collective_us;
    if (llm_network_time(t->network, shape, kind, bytes, &moved))
        return add_moved(t, moved.ps);
    const uint32_t near = ranks_near(t, n, stride);
    const uint64_t start = t->chip ? COLLECTIVE_PS : 0;
    const unsigned __int128 round = (unsigned __int128)bytes * (n - 1);
    const unsigned __int128 sent = kind == ORR_COLL_ALL_GATHER   ? round
                                   : kind == ORR_COLL_ALL_REDUCE ? 2 * round / n
                                                                 : round / n;
    uint64_t rate = near_rate(t, near);
    if (near < n && kind == ORR_COLL_ALL_TO_ALL) {
        const unsigned __int128 far = (unsigned __int128)bytes * (n - near) / n;
        const uint64_t inside = ps_of(sent - far, rate), between = ps_of(far, t->node_rate);
        return add_moved(t, (inside > between ? inside : between) + start);
    }
    if (near < n) {
        const unsigned __int128 nics = (unsigned __int128)t->node_rate * near;
        rate = near > 1 && rate < nics ? rate : (uint64_t)nics;
    }
    return add_moved(t, ps_of(sent, rate) + start);
}

/* A block of a ring: written behind the attention to the block before, beside which it goes.
 * Where only some ranks send to other nodes, their next block is there before the last one has
 * arrived. */
static void go_beside(llm_meter *t, uint64_t bytes, const llm_moved *far)
{
    const uint64_t since = t->time - (t->computed < t->time ? t->computed : t->time);
    llm_moved near;
    uint64_t ps = far->ps;
    if (t->ring_until && t->ring_until >= since &&
        llm_network_time(t->network, t->shapes[LLM_PEER_CP_PREVIOUS], LLM_MESSAGE, bytes, &near)) {
        const uint64_t leaves = far->ps - (far->latency < far->ps ? far->latency : far->ps);
        ps = near.ps > leaves ? near.ps : leaves;
    }
    t->ring_until = llm_later(t->ring_until > since ? t->ring_until : since, ps);
}

/* A message to the next of n ranks: the one that leaves a node is the slowest. */
static uint64_t measure_send(
    llm_meter *t, uint64_t bytes, uint32_t n, uint32_t stride, uint32_t shape, bool is_ring)
{
    const bool is_near = ranks_near(t, n, stride) == n;
    llm_moved moved;
    t->host_us += t->collective_us;
    if (llm_network_time(t->network, shape, LLM_MESSAGE, bytes, &moved)) {
        if (!is_ring)
            return add_moved(t, moved.ps);
        go_beside(t, bytes, &moved);
        return 1;
    }
    return add_moved(t, ps_of(bytes, is_near ? near_rate(t, 2) : t->node_rate));
}

/* ---- computation ---- */

/* Nodes that generate tokens record whose, so that a run knows the latency of requests. */
static void put_tokens(orr__builder *b, const llm_tokens *t)
{
    orr__put_uint(b, ORR__ATTR_NEW_TOKENS, t->made);
    if (t->first) {
        orr__put_uint(b, ORR__ATTR_FIRST_TOKENS, t->first);
        orr__put_uint(b, ORR__ATTR_ARRIVALS_US, t->arrivals_us);
        orr__put_uint(b, ORR__ATTR_EARLIEST_US, t->earliest_us);
    }
    if (t->last)
        orr__put_uint(b, ORR__ATTR_LAST_TOKENS, t->last);
}

uint64_t llm_put_compute(
    llm_pen *p, const char *name, uint64_t operations, uint64_t bytes, llm_deps after)
{
    if (p->meter)
        return measure_compute(p->meter, operations, bytes);
    if (p->tape)
        return llm_tape_compute(p, operations, bytes, after);
    orr__builder *b = begin(p, ORR_NODE_COMP, name, after);
    orr__put_work(b, operations ? operations : 1, bytes ? bytes : 1);
    if (p->kernels.len)
        orr__put_text(b, ORR__ATTR_KERNELS,
                      (orr_str){(const char *)p->kernels.ptr, p->kernels.len});
    if (p->tokens)
        put_tokens(b, p->tokens);
    p->tokens = NULL;
    for (size_t i = 0; i < sizeof p->barrier / sizeof *p->barrier; i++) {
        add_ctrl(b, p->barrier[i]);
        p->barrier[i] = 0;
    }
    const uint64_t id = end(p, LLM_ON_COMPUTE, false);
    p->kernels.len = 0;
    return id;
}

uint64_t llm_put_elementwise(llm_pen *p,
                             const char *name,
                             uint64_t numbers,
                             uint64_t operations,
                             uint64_t moved,
                             llm_deps after)
{
    llm_launch_elementwise(p, numbers, moved);
    return llm_put_compute(p, name, numbers * operations, numbers * moved * p->g->act, after);
}

uint64_t llm_put_wait(llm_pen *p, const char *name, uint64_t duration_us, llm_deps after)
{
    orr__builder *b = begin(p, ORR_NODE_COMP, name, after);
    b->node.duration_us = duration_us;
    return end(p, LLM_ON_COMPUTE, true);
}

uint64_t llm_put_copy(llm_pen *p, const char *name, bool is_store, uint64_t bytes, llm_deps after)
{
    const llm_stream stream = is_store ? LLM_ON_STORE : LLM_ON_LOAD;
    orr__builder *b = begin(p, is_store ? ORR_NODE_MEM_STORE : ORR_NODE_MEM_LOAD, name, after);
    orr__put_uint(b, ORR__ATTR_TENSOR_SIZE, bytes);
    add_ctrl(b, orr__build_in_stream(b, stream));
    return end(p, stream, false);
}

/* ---- communication ---- */

static llm_stream stream_of_axis(llm_axis axis)
{
    static const llm_stream streams[LLM_AXES] = {
        [LLM_AXIS_TP] = LLM_ON_TP,
        [LLM_AXIS_CP] = LLM_ON_CP,
        [LLM_AXIS_DATA] = LLM_ON_DATA,
        [LLM_AXIS_EP] = LLM_ON_EP,
        [LLM_AXIS_EXPERT_DATA] = LLM_ON_DATA,
        [LLM_AXIS_TIED] = LLM_ON_DATA,
        [LLM_AXIS_WORLD] = LLM_ON_DATA,
        [LLM_AXIS_REPLICA] = LLM_ON_DATA,
        [LLM_AXIS_STAGE] = LLM_ON_TP,
    };
    return streams[axis];
}

uint64_t llm_put_collect(llm_pen *p,
                         const char *name,
                         orr_collective kind,
                         uint64_t bytes,
                         llm_axis axis,
                         llm_deps after)
{
    if (p->g->layout.degree[axis] == 1)
        return after.count ? after.ids[after.count - 1] : 0;
    if (p->meter)
        return measure_collect(p->meter, kind, bytes, p->g->layout.degree[axis],
                               axis == LLM_AXIS_CP ? p->g->layout.tp : 1, p->meter->shapes[axis]);
    llm_stream stream = stream_of_axis(axis);
    if (p->is_beside && stream == LLM_ON_EP)
        stream = LLM_ON_EP_BESIDE;
    if (p->tape)
        return llm_tape_collect(p->tape, kind, bytes, axis, stream, after);
    orr__builder *b = begin(p, ORR_NODE_COMM_COLL, name, after);
    orr__put_collective(b, kind, bytes);
    orr__put_group_hole(b, axis);
    add_ctrl(b, orr__build_in_stream(b, stream));
    const uint64_t id = end(p, stream, false);
    /* Both passes compute in one stream, which waits for what is between tensor-parallel ranks. */
    if (p->is_beside && axis == LLM_AXIS_TP && !p->g->opt.overlaps_tensor)
        p->barrier[LLM_BARRIERS - 1] = id;
    return id;
}

static llm_stream stream_of_peer(llm_peer peer)
{
    if ((unsigned)peer >= LLM_SLOTS)
        return LLM_ON_KV;
    return peer == LLM_PEER_NEXT       ? LLM_ON_NEXT
           : peer == LLM_PEER_PREVIOUS ? LLM_ON_PREVIOUS
                                       : LLM_ON_CP;
}

static uint64_t end_message(llm_pen *p, uint64_t bytes, uint64_t tag, llm_peer peer)
{
    orr__builder *b = &p->b;
    orr__put_uint(b, ORR__ATTR_COMM_SIZE, bytes);
    orr__put_as(b, ORR__ATTR_COMM_TAG, ORR_VALUE_INT64, (int64_t)tag);
    orr__put_peer_hole(b, ORR_VALUE_INT64, b->node.type == ORR_NODE_COMM_SEND, peer);
    return end(p, stream_of_peer(peer), false);
}

uint64_t llm_put_send(
    llm_pen *p, const char *name, uint64_t bytes, uint64_t tag, llm_peer to, llm_deps after)
{
    if (p->meter) {
        const llm_layout *l = &p->g->layout;
        const uint32_t shape = p->meter->shapes[to];
        return to == LLM_PEER_CP_NEXT
                   ? measure_send(p->meter, bytes, l->cp, l->tp, shape, true)
                   : measure_send(p->meter, bytes, l->pp, l->tp * l->cp * l->dp, shape, false);
    }
    if (p->tape)
        return llm_tape_message(p->tape, true, bytes, stream_of_peer(to), after);
    orr__builder *b = begin(p, ORR_NODE_COMM_SEND, name, after);
    add_ctrl(b, orr__build_in_stream(b, stream_of_peer(to)));
    return end_message(p, bytes, tag, to);
}

uint64_t llm_put_receive(
    llm_pen *p, const char *name, uint64_t bytes, uint64_t tag, llm_peer from, llm_deps after)
{
    if (p->meter) {
        p->meter->host_us += p->meter->collective_us;
        return 1; /* the sender accounts for the rest of the time */
    }
    if (p->tape)
        return llm_tape_message(p->tape, false, bytes, stream_of_peer(from), after);
    begin(p, ORR_NODE_COMM_RECV, name, after);
    return end_message(p, bytes, tag, from);
}
