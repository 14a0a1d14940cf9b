/* SPDX-License-Identifier: Apache-2.0 */
/* plan_parts.c - see bound_parts.h.
 *
 * Parts are taken from the generator as tapes of a few dozen nodes (llm_tape.h).  Edges are those
 * of the trace, and between computations those guaranteed by the workload layer: it starts the
 * ready node with the smallest id, so a computation Y runs before X if its id is smaller and
 * everything Y depends on precedes X.  Every edge is a true precedence and every node takes at
 * least its time without contention, so the longest path is a lower bound.
 *
 * Plans share parts, and parts share kernels: units that differ only in recomputation, schedule or
 * sequence parallelism are made by one thread, which times each kernel once. */
#include "bound_parts.h"

#include "base/memory/hash.h"
#include "base/threads/pool.h"

#include <math.h>
#include <string.h>

enum { MOST_NODES = 512, MOST_LONG = 8192, MEMO = 1024, BLOCKS = 2 };
/* Values of slow at which longest paths are computed; in between they are close to the longest. */
static const double slows[BOUND_LINES] = {1.02, 1.2, 1.5};

/* ---- lower bounds on communication ---- */

static bool find_shapes(const orr_plan_search *s,
                        const orr__llm_view *v,
                        orr__tape_axis axis,
                        bound_shapes *out)
{
    const struct search_bounds *b = s->bounds;
    const uint32_t degree = orr__llm_view_degree(v, axis), groups = orr__llm_view_groups(v, axis);
    uint32_t *members = orr_alloc(degree, sizeof *members);
    out->count = 0;
    out->is_full = false;
    for (uint32_t g = 0; members && g < groups && !out->is_full; g++) {
        nccl_shape h = {.generation = nccl_generation_of(s->machine.architecture),
                        .table = b->table,
                        .up_reduces = s->machine.up_reduces,
                        .out_reduces = s->machine.fabric_reduces};
        uint32_t i = 0;
        orr__llm_view_members(v, axis, g, members);
        if (b->is_torus && !torus_shape_of(&b->dims, members, degree, &h.torus)) {
            orr_free(members);
            return false;
        }
        if (!b->is_torus)
            nccl_shape_of(&b->dims, members, degree, &h);
        while (i < out->count && memcmp(&out->list[i], &h, sizeof h) != 0)
            i++;
        if (i < out->count)
            continue;
        if (out->count == BOUND_SHAPES)
            out->is_full = true;
        else
            out->list[out->count++] = h;
    }
    const bool ok = members;
    orr_free(members);
    return ok;
}

/* Of the fastest group. */
double bound_collective_ns(const struct search_bounds *b,
                           const bound_shapes *shapes,
                           orr_collective kind,
                           uint64_t bytes,
                           bound_load *load)
{
    double least = 0, up = 0, out = 0;
    if (!b->has_times || shapes->is_full || bytes == 0)
        return 0;
    for (uint32_t i = 0; i < shapes->count; i++) {
        const nccl_shape *h = &shapes->list[i];
        nccl_cost c;
        const uint32_t ranks = b->is_torus ? h->torus.ranks : h->ranks;
        const uint64_t all = kind == ORR_COLL_ALL_GATHER ? bytes * ranks : bytes;
        if (ranks < 2 || !nccl_cost_of(h, kind, all, NULL, &c))
            return 0;
        const double ns = floor(c.time_ns) - 2, inside = h->up_GBps > 0 ? c.up_bytes : 0;
        least = i == 0 || ns < least ? ns : least;
        up = i == 0 || inside < up ? inside : up;
        out = i == 0 || c.out_bytes < out ? c.out_bytes : out;
    }
    if (b->up_rate > 0)
        load->up_ns += up / b->up_rate;
    if (b->out_rate > 0)
        load->out_ns += out / b->out_rate;
    return least > 0 ? least : 0;
}

/* A message between ranks `stride` apart. */
double bound_message_ns(const struct search_bounds *b, uint32_t stride, uint64_t bytes)
{
    double rate = 0;
    const uint32_t per_node = nccl_ranks_per_node(&b->dims);
    for (uint32_t k = stride >= per_node && b->dims.dims > 1 ? 1 : 0; k < b->dims.dims; k++) {
        const double links = b->dims.shape[k] == ORR_NET_FULLY_CONNECTED ? b->dims.npus[k] : 2;
        const double own =
            net_link_speed(b->dims.bandwidth[k]) * (b->dims.shape[k] == ORR_NET_SWITCH ? 1 : links);
        rate = own > rate ? own : rate;
    }
    return rate > 0 ? (double)bytes / rate : 0;
}

/* ---- a tape as a part ---- */

typedef struct ancestors {
    uint64_t bits[MOST_NODES / 64];
} ancestors;

static void set_bit(ancestors *a, uint32_t i)
{
    a->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static bool has_bit(const ancestors *a, uint32_t i)
{
    return a->bits[i / 64] >> i % 64 & 1;
}

static void add_bits(ancestors *a, const ancestors *more)
{
    for (size_t i = 0; i < MOST_NODES / 64; i++)
        a->bits[i] |= more->bits[i];
}

/* Are all dependencies of node y among these? */
static bool is_ready_by(const orr__tape_node *y, const ancestors *a)
{
    for (uint32_t i = 0; i < y->dep_count; i++)
        if (!has_bit(a, y->deps[i]))
            return false;
    return !y->is_cut;
}

typedef struct part_maker {
    const orr_plan_search *s;
    orr__llm_view view; /* of the unit's plan */
    orr__tape tape;
    const search_candidate *like;
    const bound_shapes *shapes; /* by axis */
    struct part_node {
        work_kernel_sum sum; /* compute */
        double ns;           /* communication: lower bound */
        bool is_compute;
        bound_load load;
        uint32_t first, count; /* edges: its predecessors */
    } * nodes;
    size_t node_room;
    struct part_path {
        double ns, fixed, clocked, moving;
    } * paths, *by[BOUND_STATES], *by_gate; /* one entry per node each; one allocation */
    size_t path_room;
    ancestors above[MOST_NODES];
    uint32_t block_from[BLOCKS]; /* UINT32_MAX: none */
    struct part_path block[BLOCKS][MOST_NODES];
    uint32_t first_tensor, last_tensor; /* collectives; UINT32_MAX: it has none */
    uint16_t open[MOST_NODES];          /* computations without a known successor */
    uint32_t open_count;
    uint16_t *edges;
    size_t edge_count, edge_room;
    bool is_long; /* too long to derive an order: only the edges of the trace */
    /* Passes in pairs: what comes between two nodes of a part is not known, nor what they wait for
     * besides, so only the edges of the trace hold. */
    bool is_paired;
    bool failed;
    struct {
        orr_kernel kernel;
        work_kernel_sum sum;
        bool is_set;
    } memo[MEMO];
} part_maker;

work_device bound_device(const orr_plan_search *s)
{
    return (work_device){.chip = s->bounds->chip, .software = s->base.software};
}

static void add_sums_of(work_kernel_sum *out, const work_kernel_sum *more)
{
    out->fixed_us += more->fixed_us;
    out->clocked_us += more->clocked_us;
    out->flops += more->flops;
    out->host_us += more->host_us;
}

static void add_kernel(part_maker *m,
                       const work_device *d,
                       const orr_kernel *k,
                       work_kernel_sum *out)
{
    const uint64_t at = orr_hash_bytes(k, sizeof *k, 0) % MEMO;
    if (!m->memo[at].is_set || memcmp(&m->memo[at].kernel, k, sizeof *k) != 0) {
        m->memo[at].sum = (work_kernel_sum){0};
        (void)!work_add_kernel(d, k, &m->memo[at].sum);
        memcpy(&m->memo[at].kernel, k, sizeof *k);
        m->memo[at].is_set = true;
    }
    add_sums_of(out, &m->memo[at].sum);
}

static void time_node(part_maker *m, uint32_t i)
{
    const struct search_bounds *b = m->s->bounds;
    const orr__tape_node *x = &m->tape.nodes[i];
    struct part_node *n = &m->nodes[i];
    const work_device d = bound_device(m->s);
    *n = (struct part_node){.is_compute = x->kind == ORR__TAPE_COMPUTE};
    if (x->kind == ORR__TAPE_COLLECTIVE)
        n->ns = bound_collective_ns(b, &m->shapes[x->axis], x->collective, x->bytes, &n->load);
    else if (x->kind == ORR__TAPE_RECEIVE)
        n->ns = bound_message_ns(b, m->like->tp, x->bytes);
    if (!n->is_compute)
        return;
    if (!b->chip) {
        const double ops = (double)x->operations, bytes = (double)x->bytes;
        const double by_work = ops / b->system.peak_flops,
                     by_memory = bytes / (double)b->system.memory_bandwidth;
        n->sum.fixed_us = (by_work > by_memory ? by_work : by_memory) * 1e6;
        return;
    }
    if (!x->kernel_count)
        work_add_roofline(&d, (double)x->operations, (double)x->bytes, &n->sum);
    for (uint32_t k = 0; k < x->kernel_count; k++)
        add_kernel(m, &d, &m->tape.kernels[x->first_kernel + k], &n->sum);
}

static void add_edge(part_maker *m, uint32_t i, uint32_t from)
{
    if (!orr_grow(&m->edges, &m->edge_room, m->edge_count + 1)) {
        m->failed = true;
        return;
    }
    m->edges[m->edge_count++] = (uint16_t)from;
    m->nodes[i].count++;
    if (m->is_long)
        return;
    add_bits(&m->above[i], &m->above[from]);
    set_bit(&m->above[i], from);
}

/* The computations that must precede it. */
static void order_compute(part_maker *m, uint32_t i)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < m->open_count; k++) {
        const uint32_t y = m->open[k];
        if (is_ready_by(&m->tape.nodes[y], &m->above[i]))
            add_edge(m, i, y);
        else
            m->open[kept++] = (uint16_t)y;
    }
    m->open_count = kept;
    m->open[m->open_count++] = (uint16_t)i;
}

static void make_node(part_maker *m, uint32_t i)
{
    const orr__tape_node *x = &m->tape.nodes[i], *before = i ? x - 1 : x;
    if (!m->is_long)
        memset(&m->above[i], 0, sizeof m->above[i]);
    m->nodes[i].first = (uint32_t)m->edge_count;
    for (uint32_t k = 0; k < x->dep_count; k++)
        add_edge(m, i, x->deps[k]);
    /* A message cannot arrive before its sender, which does the same, could send it. */
    if (x->kind == ORR__TAPE_RECEIVE && before->kind == ORR__TAPE_SEND)
        for (uint32_t k = 0; k < before->dep_count; k++)
            add_edge(m, i, before->deps[k]);
    if (m->nodes[i].is_compute && !m->is_long && !m->is_paired)
        order_compute(m, i);
}

static bool is_tensor(const orr__tape_node *n)
{
    return n->kind == ORR__TAPE_COLLECTIVE && n->axis == ORR__TAPE_TP;
}

/* The device time that kernel_times.c charges to a collective awaited by the next computations. */
static double hold_of(const part_maker *m, uint32_t i)
{
    const orr__tape *t = &m->tape;
    const double link = m->s->bounds->dims.dims ? m->s->bounds->dims.bandwidth[0] : 0;
    bool holds = i == t->out && i + 4 >= t->count;
    for (uint32_t k = i + 1; k < t->count && k <= i + 4; k++)
        for (uint32_t e = 0; e < t->nodes[k].dep_count && t->nodes[k].kind == ORR__TAPE_COMPUTE;
             e++)
            holds |= t->nodes[k].deps[e] == i;
    if (!holds || t->nodes[i].kind != ORR__TAPE_COLLECTIVE || t->nodes[i].bytes == 0)
        return 0;
    return 15 + (link > 0 ? 2e-3 * (double)t->nodes[i].bytes / link : 0);
}

static void add_sums(const part_maker *m, bool is_first, bound_part *p)
{
    for (uint32_t i = is_first ? 2 : 1; i < m->tape.count; i++) {
        add_sums_of(&p->sum, &m->nodes[i].sum);
        p->hold_us += hold_of(m, i);
        bound_add_load(&p->load, &m->nodes[i].load, 1);
        if (is_tensor(&m->tape.nodes[i]))
            p->tensor_ns += m->nodes[i].ns;
        if (!m->nodes[i].is_compute)
            p->sum.host_us += m->s->base.software->collective_us;
    }
    p->sum.host_us += m->s->base.software->block_us;
}

/* ---- paths ---- */

static const struct part_path nowhere = {.ns = BOUND_NEVER, .fixed = BOUND_NEVER};

static void put_line(bound_entry *e, unsigned k, const struct part_path *p)
{
    const bool is_there = p->ns > BOUND_NEVER / 2;
    e->line[k].fixed = is_there ? p->fixed : BOUND_NEVER;
    e->line[k].clocked = is_there ? p->clocked : 0;
    e->line[k].moving = is_there ? p->moving : 0;
}

static void go_on(struct part_path *p, double fixed, double clocked, double moving, double slow)
{
    p->fixed += fixed;
    p->clocked += clocked;
    p->moving += moving;
    p->ns += fixed + clocked * slow + moving;
}

/* Times are whole ns, of computations at least one. */
static double fixed_ns(const struct part_node *n)
{
    return n->sum.fixed_us * 1e3 - 0.5;
}

static void step_on(struct part_path *p, const struct part_node *n, double slow)
{
    if (n->is_compute)
        go_on(p, fixed_ns(n), n->sum.clocked_us * 1e3, 0, slow);
    else
        go_on(p, 0, 0, n->ns, slow);
}

static void take_later(struct part_path *p, const struct part_path *other)
{
    if (other->ns > p->ns)
        *p = *other;
}

/* Computations after z and before a node run sequentially, in any order: the node cannot start
 * before z's end plus all of them. */
static void sum_block(part_maker *m, unsigned b, uint32_t z)
{
    m->block_from[b] = z;
    for (uint32_t i = 0; i < m->tape.count; i++) {
        struct part_path *sum = &m->block[b][i];
        *sum = (struct part_path){0};
        for (uint32_t y = z + 1; y < i && has_bit(&m->above[i], z); y++)
            if (m->nodes[y].is_compute && has_bit(&m->above[i], y) && has_bit(&m->above[y], z))
                go_on(sum, fixed_ns(&m->nodes[y]), m->nodes[y].sum.clocked_us * 1e3, 0, 1);
    }
}

/* In the first layer of a task not everything is ordered: what does not depend on the previous task
 * may run at any time.  In passes in pairs nothing is. */
static void sum_blocks(part_maker *m, bool is_first)
{
    for (unsigned b = 0; b < BLOCKS; b++)
        m->block_from[b] = UINT32_MAX;
    if ((!is_first && !m->is_paired) || m->is_long)
        return;
    sum_block(m, 0, 0);
    if (m->first_tensor != UINT32_MAX)
        sum_block(m, 1, m->first_tensor);
}

static void find_tensor(part_maker *m)
{
    m->first_tensor = m->last_tensor = UINT32_MAX;
    /* In passes in pairs those of the other pass are in between. */
    for (uint32_t i = 0; i < m->tape.count && !m->is_paired; i++) {
        if (!is_tensor(&m->tape.nodes[i]))
            continue;
        if (m->first_tensor == UINT32_MAX)
            m->first_tensor = i;
        m->last_tensor = i;
    }
}

/* The longest path to a node's end, over all its predecessors. */
static struct part_path reach(const part_maker *m,
                              const struct part_path *by,
                              uint32_t i,
                              struct part_path start,
                              double slow)
{
    const struct part_node *n = &m->nodes[i];
    for (uint32_t e = 0; e < n->count; e++)
        take_later(&start, &by[m->edges[n->first + e]]);
    for (unsigned b = 0; b < BLOCKS; b++) {
        const uint32_t z = m->block_from[b];
        if (z >= i || !has_bit(&m->above[i], z))
            continue;
        const struct part_path *sum = &m->block[b][i];
        struct part_path p = by[z];
        go_on(&p, sum->fixed, sum->clocked, 0, slow);
        take_later(&start, &p);
    }
    step_on(&start, n, slow);
    return start;
}

static void put_rows(part_maker *m,
                     unsigned from,
                     const uint32_t *last,
                     uint32_t last_count,
                     unsigned k,
                     bound_part *p)
{
    const struct part_path start = {0};
    struct part_path free = from == BOUND_DEVICE ? start : nowhere;
    struct part_path stream = from == BOUND_TENSOR ? start : nowhere;
    for (uint32_t i = 0; i < last_count; i++)
        take_later(&free, &m->by[from][last[i]]);
    if (m->last_tensor != UINT32_MAX)
        take_later(&stream, &m->by[from][m->last_tensor]);
    put_line(&p->at[BOUND_DATA][from], k, &m->by[from][m->tape.out]);
    put_line(&p->at[BOUND_DEVICE][from], k, &free);
    put_line(&p->at[BOUND_TENSOR][from], k, &stream);
}

/* All columns at once: with one of data, device and stream available at 0 and the others always;
 * and with only the earliest start of the first computation known. */
static void find_lines(part_maker *m,
                       bool is_first,
                       const uint32_t *last,
                       uint32_t last_count,
                       unsigned k,
                       bound_part *p)
{
    const struct part_path start = {0};
    bool has_gate = false;
    for (uint32_t i = 0; i < m->tape.count; i++) {
        const struct part_node *n = &m->nodes[i];
        const bool starts[BOUND_STATES] = {[BOUND_DATA] = i == 0,
                                           [BOUND_DEVICE] = is_first ? i == 1 : n->is_compute,
                                           [BOUND_TENSOR] = i == m->first_tensor};
        for (unsigned from = 0; from < BOUND_STATES; from++)
            m->by[from][i] = reach(m, m->by[from], i, starts[from] ? start : nowhere, slows[k]);
        m->by_gate[i] =
            reach(m, m->by_gate, i, n->is_compute && !has_gate ? start : nowhere, slows[k]);
        has_gate |= n->is_compute;
    }
    for (unsigned from = 0; from < BOUND_STATES; from++)
        put_rows(m, from, last, last_count, k, p);
    put_line(&p->gate, k, &m->by_gate[m->tape.out]);
}

/* Computations after which the device is free for the next part. */
static uint32_t find_last(part_maker *m, uint32_t last[MOST_NODES])
{
    const uint32_t out = m->tape.out;
    ancestors end = {{0}};
    uint32_t count = 0;
    if (m->is_long || m->is_paired) {
        last[0] = out;
        return m->nodes[out].is_compute;
    }
    add_bits(&end, &m->above[out]);
    set_bit(&end, out);
    for (uint32_t k = 0; k < m->open_count; k++)
        if (m->open[k] == out || is_ready_by(&m->tape.nodes[m->open[k]], &end))
            last[count++] = m->open[k];
    return count;
}

static bool make_room(part_maker *m)
{
    const size_t count = m->tape.count;
    if (!orr_grow(&m->nodes, &m->node_room, count) ||
        !orr_grow(&m->paths, &m->path_room, (BOUND_STATES + 1) * count))
        return false;
    for (size_t k = 0; k < BOUND_STATES; k++)
        m->by[k] = m->paths + k * count;
    m->by_gate = m->paths + BOUND_STATES * count;
    return true;
}

/* A tape that is far too long gives no bound. */
static bool make_part(part_maker *m, bool is_first, bound_part *out)
{
    uint32_t last[MOST_NODES];
    *out = (bound_part){.is_known = m->tape.count <= MOST_LONG};
    if (!out->is_known)
        return true;
    if (!make_room(m))
        return false;
    m->is_long = m->tape.count > MOST_NODES;
    m->open_count = 0;
    m->edge_count = 0;
    for (uint32_t i = 0; i < m->tape.count && !m->failed; i++) {
        time_node(m, i);
        make_node(m, i);
    }
    if (m->failed)
        return false;
    const uint32_t count = find_last(m, last);
    find_tensor(m);
    sum_blocks(m, is_first);
    for (unsigned k = 0; k < BOUND_LINES; k++)
        find_lines(m, is_first, last, count, k, out);
    add_sums(m, is_first, out);
    out->node_count = (double)m->tape.count;
    return true;
}

/* ---- units ---- */

/* recompute (3), sequence parallelism, zero bubble */
enum { FLAG_BITS = 5 };
uint64_t bound_unit_key(const search_candidate *c)
{
    const bool is_cut = bound_is_cut(c);
    const uint64_t flags =
        (uint64_t)c->recompute << 2 | (uint64_t)c->no_sequence_parallel << 1 | is_cut;
    return (uint64_t)c->tp << 52 | (uint64_t)c->cp << 38 | (uint64_t)c->ep << 26 |
           (uint64_t)c->micro_batch << FLAG_BITS | flags;
}

uint64_t bound_layout_key(const search_candidate *c)
{
    return (uint64_t)c->tp << 50 | (uint64_t)c->cp << 36 | (uint64_t)c->ep << 24 | c->pp;
}

const bound_layout *bound_layout_of(const struct search_bounds *b, const search_candidate *c)
{
    return &b->layouts[orr_map_find(b->layout_of, bound_layout_key(c), 0)];
}

/* The same parts on as few ranks as possible. */
static orr_llm_options unit_options(const orr_plan_search *s, const search_candidate *c)
{
    orr_llm_options o = search_options(s, c);
    o.pp = 1;
    o.chunks = 1;
    o.zero = o.shard = 0;
    o.sync_every_micro_batch = false;
    o.dp = c->ep;
    o.batch = (uint64_t)o.dp * o.micro_batch;
    o.pipeline = bound_is_cut(c) ? ORR_PIPELINE_ZERO_BUBBLE : ORR_PIPELINE_1F1B;
    return o;
}

static orr_code make_one(part_maker *m,
                         orr__tape_part part,
                         uint64_t layer,
                         bool is_first,
                         bound_part *out,
                         orr_error *err)
{
    orr_code code = orr__llm_tape_part(&m->view, part, layer, is_first, &m->tape, err);
    if (!code && !make_part(m, is_first, out))
        code = orr_no_memory(err);
    return code;
}

static orr_code make_layers(part_maker *m, bound_unit *u, orr_error *err)
{
    const struct search_bounds *b = m->s->bounds;
    const bool is_cut = bound_is_cut(&u->like);
    /* The first computation of a layer waits for copies to the host, or back, which are not on the
     * tape. */
    const bool waits = m->s->base.offload_layers > 0;
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < b->kinds && !code; k++) {
        const uint64_t layer = b->first_of[k];
        code = make_one(m, ORR__PART_LAYER_FORWARD, layer, waits, &u->forward[k], err);
        if (!code)
            code = make_one(m, ORR__PART_LAYER_BACKWARD, layer, waits, &u->backward[k], err);
        if (!code)
            code = make_one(m, ORR__PART_LAYER_BACKWARD, layer, true, &u->first_backward[k], err);
        if (!code && is_cut)
            code = make_one(m, ORR__PART_LAYER_WEIGHTS, layer, false, &u->weights[k], err);
    }
    if (!code && is_cut)
        code = make_one(m, ORR__PART_HEAD_WEIGHTS, 0, false, &u->head_weights, err);
    return code;
}

/* Placements are those of the whole job. */
static orr_code make_unit(part_maker *m, bound_unit *u, orr_arena *a, orr_error *err)
{
    static const orr__tape_part ends[4] = {ORR__PART_EMBEDDING_FORWARD, ORR__PART_HEAD_FORWARD,
                                           ORR__PART_HEAD_BACKWARD, ORR__PART_EMBEDDING_BACKWARD};
    const orr_plan_search *s = m->s;
    orr_llm_options o = unit_options(s, &u->like);
    const bound_layout *l = bound_layout_of(s->bounds, &u->like);
    const bound_shapes shapes[ORR__TAPE_AXES] = {
        [ORR__TAPE_TP] = l->tp, [ORR__TAPE_CP] = l->cp, [ORR__TAPE_EP] = l->ep};
    const uint32_t kinds = s->bounds->kinds;
    m->like = &u->like;
    m->shapes = shapes;
    u->forward = orr_arena_new(a, (size_t)4 * kinds, bound_part);
    if (!u->forward)
        return orr_no_memory(err);
    u->backward = u->forward + kinds;
    u->weights = u->backward + kinds;
    u->first_backward = u->weights + kinds;
    orr_code code = orr_llm_complete(s->opt.model, &o, err);
    if (!code)
        code = orr__llm_view_open(s->opt.model, &o, &m->view, err);
    for (unsigned i = 0; i < 4 && !code; i++)
        code = make_one(m, ends[i], 0, false, &u->ends[i], err);
    if (!code)
        code = make_layers(m, u, err);
    orr__llm_view_close(&m->view);
    return code;
}

static orr_code make_group(void *context, size_t i, orr_error *err)
{
    orr_plan_search *s = context;
    struct search_bounds *b = s->bounds;
    part_maker *m = orr_alloc(1, sizeof *m);
    orr_arena *a = b->arenas[i] = orr_arena_create();
    orr_code code = m && a ? ORR_OK : orr_no_memory(err);
    if (!code) {
        m->s = s;
        m->is_paired = s->base.overlaps_experts;
    }
    for (uint32_t at = b->unit_groups[i]; at != UINT32_MAX && !code; at = b->units[at].next)
        code = make_unit(m, &b->units[at], a, err);
    if (m) {
        orr__tape_fini(&m->tape);
        orr_free(m->edges);
        orr_free(m->nodes);
        orr_free(m->paths);
    }
    orr_free(m);
    return code;
}

/* ---- which there are ---- */

static orr_code add_layout(orr_plan_search *s, const search_candidate *c, orr_error *err)
{
    struct search_bounds *b = s->bounds;
    const uint64_t key = bound_layout_key(c);
    orr_llm_options o = search_options(s, c);
    orr__llm_view v;
    if (orr_map_find(b->layout_of, key, UINT32_MAX) != UINT32_MAX)
        return ORR_OK;
    if (!orr_grow(&b->layouts, &b->layout_room, b->layout_count + 1) ||
        !orr_map_put(b->layout_of, key, (uint32_t)b->layout_count, NULL))
        return orr_no_memory(err);
    bound_layout *l = &b->layouts[b->layout_count++];
    *l = (bound_layout){0};
    search_fill_in(&o);
    orr_code code = orr__llm_view_open(s->opt.model, &o, &v, err);
    if (!code &&
        !(find_shapes(s, &v, ORR__TAPE_TP, &l->tp) && find_shapes(s, &v, ORR__TAPE_CP, &l->cp) &&
          find_shapes(s, &v, ORR__TAPE_EP, &l->ep) &&
          find_shapes(s, &v, ORR__TAPE_DATA, &l->data) &&
          find_shapes(s, &v, ORR__TAPE_EXPERT_DATA, &l->expert) &&
          find_shapes(s, &v, ORR__TAPE_REPLICA, &l->replica) &&
          find_shapes(s, &v, ORR__TAPE_WORLD, &l->world)))
        code = orr_no_memory(err);
    orr__llm_view_close(&v);
    return code;
}

static orr_code add_unit(orr_plan_search *s, const search_candidate *c, orr_error *err)
{
    struct search_bounds *b = s->bounds;
    const uint64_t key = bound_unit_key(c), group = key >> FLAG_BITS;
    const uint32_t at = (uint32_t)b->unit_count;
    if (orr_map_find(b->unit_of, key, UINT32_MAX) != UINT32_MAX)
        return ORR_OK;
    const uint32_t before = orr_map_find(b->group_of, group, UINT32_MAX);
    if (!orr_grow(&b->units, &b->unit_room, b->unit_count + 1) ||
        !orr_grow(&b->unit_groups, &b->group_room, b->group_count + 1) ||
        !orr_map_put(b->unit_of, key, at, NULL) || !orr_map_put(b->group_of, group, at, NULL))
        return orr_no_memory(err);
    b->units[b->unit_count++] = (bound_unit){.like = *c, .next = UINT32_MAX};
    if (before == UINT32_MAX)
        b->unit_groups[b->group_count++] = at;
    else
        b->units[before].next = at;
    return ORR_OK;
}

orr_code bound_make_units(orr_plan_search *s, orr_error *err)
{
    struct search_bounds *b = s->bounds;
    orr_code code = ORR_OK;
    for (size_t i = 0; i < s->count && !code; i++) {
        code = add_layout(s, &s->list[i], err);
        if (!code)
            code = add_unit(s, &s->list[i], err);
    }
    if (!code && !(b->arenas = orr_alloc(b->group_count + 1, sizeof *b->arenas)))
        code = orr_no_memory(err);
    b->arena_count = code ? 0 : b->group_count;
    return code ? code : orr_pool_for(s->opt.threads, b->group_count, make_group, s, err);
}
