/* SPDX-License-Identifier: Apache-2.0 */
/* plan_bound.c - a time that no run of a plan can beat: the longest path through its step, without writing it.
 *
 * The parts of a step (a layer forward, backward, the ends) are taken from the generator as tapes of a few dozen
 * nodes (llm_tape.h).  Within a part, edges are those of the trace, and between computations those that the
 * workload layer is proven to keep: it starts the ready node with the smallest id, so a computation Y runs before X
 * when its id is smaller and all that Y waits for comes before X.  Every edge is a true precedence and every node
 * takes at least its time alone, so the longest path is a lower bound.
 *
 * A part is then a 2 x 2 matrix of max-plus: from (data there, device free) to the same behind it.  A stage's pass
 * is a product of such matrices, and the pipeline is followed task by task.  The clock under the power cap is found as
 * kernel_times.c finds it, from sums; where the host might hold the device up it is taken to be the highest.
 * docs/design/plan.md has the argument in full. */
#include "search_impl.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/threads/pool.h"
#include "models/network/net_table.h"
#include "run/joint.h"
#include "sources/llm/llm_tape.h"

#include <math.h>
#include <string.h>

enum { MOST_NODES = 512, MOST_LONG = 8192, MOST_KINDS = 16, MOST_SHAPES = 8 };
#define NEVER (-1e30)
/* What sums leave out: rounding, and where a clock is sought the first kernels of a step. */
#define SLACK 0.998

/* ---- parts ---- */

typedef struct bound_node {
    work_kernel_sum sum; /* compute */
    double ns;           /* communication: at least */
    bool is_compute;
    uint32_t edge_count;
    const uint16_t *edges; /* what it comes after */
} bound_node;

/* From (data, device) to (data, device), in ns. */
typedef struct bound_matrix {
    double cc, cf; /* data there: after data, after device */
    double fc, ff; /* device free */
} bound_matrix;

typedef struct bound_part {
    bound_node *nodes;
    uint32_t count, out;
    bool is_first;  /* of its task: only what comes after node 1 waits for the device */
    uint32_t *last; /* computations after which the device is free for the next part */
    uint32_t last_count;
    work_kernel_sum sum; /* of all */
    double hold_us;      /* device time that the clock's walk gives to collectives */
    double host_us;
    double low2, high2; /* squares of what its kernels may take less and more, us */
} bound_part;

/* Where the groups of an axis lie: each way that occurs. */
typedef struct bound_shapes {
    nccl_shape list[MOST_SHAPES];
    uint32_t count;
    bool is_full; /* more occur: nothing is known */
} bound_shapes;

/* Parts of all plans that have these in common. */
typedef struct bound_unit {
    search_candidate like;
    bound_part ends[4]; /* embedding forward, head forward, head backward, embedding backward */
    bound_part head_weights;
    bound_part forward[MOST_KINDS], backward[MOST_KINDS], weights[MOST_KINDS];
    bound_part first_backward[MOST_KINDS];          /* of a task */
    orr__layer_weights held[MOST_KINDS], held_ends; /* parameters of a rank */
    orr_arena *arena;
} bound_unit;

/* What candidates of the same degrees have in common. */
typedef struct bound_layout {
    search_candidate like;
    bound_shapes tp, cp, ep, data, expert, world;
} bound_layout;

struct search_bounds {
    orr_net_config dims;
    const orr_chip *chip;
    orr_system system;
    bool has_times;    /* collectives are NCCL's */
    uint32_t *kind_of; /* by layer */
    uint64_t first_of[MOST_KINDS];
    uint32_t kinds;
    bound_unit *units;
    size_t unit_count, unit_room;
    orr_map *unit_of; /* by key */
    bound_layout *layouts;
    size_t layout_count, layout_room;
    orr_map *layout_of;
};

/* ---- what communication takes at least ---- */

static void find_shapes(const orr_plan_search *s,
                        const orr__llm_view *v,
                        orr__tape_axis axis,
                        bound_shapes *out)
{
    const struct search_bounds *b = s->bounds;
    const uint32_t degree = orr__llm_view_degree(v, axis), groups = orr__llm_view_groups(v, axis);
    uint32_t *members = orr_alloc(degree, sizeof *members);
    out->count = 0;
    out->is_full = !members;
    for (uint32_t g = 0; members && g < groups && !out->is_full; g++) {
        nccl_shape h = {.generation = nccl_generation_of(s->machine.architecture),
                        .up_reduces = s->machine.up_reduces,
                        .out_reduces = s->machine.fabric_reduces};
        uint32_t i = 0;
        orr__llm_view_members(v, axis, g, members);
        joint_shape_of(&b->dims, members, degree, &h);
        while (i < out->count && memcmp(&out->list[i], &h, sizeof h) != 0)
            i++;
        if (i < out->count)
            continue;
        if (out->count == MOST_SHAPES)
            out->is_full = true;
        else
            out->list[out->count++] = h;
    }
    orr_free(members);
}

/* Of the luckiest group; ns. */
static double collective_ns(const struct search_bounds *b,
                            const bound_shapes *shapes,
                            orr_collective kind,
                            uint64_t bytes)
{
    double least = 0;
    if (!b->has_times || shapes->is_full || bytes == 0)
        return 0;
    for (uint32_t i = 0; i < shapes->count; i++) {
        nccl_cost c;
        const uint64_t all = kind == ORR_COLL_ALL_GATHER ? bytes * shapes->list[i].ranks : bytes;
        if (shapes->list[i].ranks < 2 || !nccl_cost_of(&shapes->list[i], kind, all, NULL, &c))
            return 0;
        const double ns = floor(c.time_ns) - 2;
        least = i == 0 || ns < least ? ns : least;
    }
    return least > 0 ? least : 0;
}

/* A message between ranks that are so far apart. */
static double message_ns(const struct search_bounds *b, uint32_t stride, uint64_t bytes)
{
    double rate = 0;
    const uint32_t per_node = joint_ranks_per_node(&b->dims);
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

/* Is all that node y waits for among these? */
static bool is_ready_by(const orr__tape_node *y, const ancestors *a)
{
    for (uint32_t i = 0; i < y->dep_count; i++)
        if (!has_bit(a, y->deps[i]))
            return false;
    return !y->is_cut;
}

typedef struct part_maker {
    const orr_plan_search *s;
    const orr__tape *t;
    bound_unit *u;
    bound_part *p;
    const bound_shapes *shapes; /* by axis */
    ancestors above[MOST_NODES];
    uint16_t open[MOST_NODES]; /* computations that nothing is known to follow */
    uint32_t open_count;
    uint16_t edges[2 * MOST_NODES];
    bool is_long; /* too long to tell who comes before whom: the edges of the trace alone */
} part_maker;

static work_device device_of(const orr_plan_search *s)
{
    return (work_device){.chip = s->bounds->chip,
                         .software = s->base.software,
                         .ranks = orr_machine_devices(&s->machine)};
}

static void time_node(part_maker *m, uint32_t i)
{
    const struct search_bounds *b = m->s->bounds;
    const orr__tape_node *x = &m->t->nodes[i];
    bound_node *n = &m->p->nodes[i];
    const work_device d = device_of(m->s);
    n->is_compute = x->kind == ORR__TAPE_COMPUTE;
    if (x->kind == ORR__TAPE_COLLECTIVE)
        n->ns = collective_ns(b, &m->shapes[x->axis], x->collective, x->bytes);
    else if (x->kind == ORR__TAPE_RECEIVE)
        n->ns = message_ns(b, m->u->like.tp, x->bytes);
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
        (void)!work_add_kernel(&d, &m->t->kernels[x->first_kernel + k], &n->sum);
}

static void add_edge(part_maker *m, bound_node *n, uint32_t from)
{
    m->edges[n->edge_count++] = (uint16_t)from;
    if (m->is_long)
        return;
    add_bits(&m->above[n - m->p->nodes], &m->above[from]);
    set_bit(&m->above[n - m->p->nodes], from);
}

/* The computations before it that must come first. */
static void order_compute(part_maker *m, uint32_t i)
{
    uint32_t kept = 0;
    bound_node *n = &m->p->nodes[i];
    for (uint32_t k = 0; k < m->open_count; k++) {
        const uint32_t y = m->open[k];
        if (n->edge_count < MOST_NODES && is_ready_by(&m->t->nodes[y], &m->above[i]))
            add_edge(m, n, y);
        else
            m->open[kept++] = (uint16_t)y;
    }
    m->open_count = kept;
    m->open[m->open_count++] = (uint16_t)i;
}

static bool make_node(part_maker *m, uint32_t i)
{
    const orr__tape_node *x = &m->t->nodes[i];
    bound_node *n = &m->p->nodes[i];
    if (!m->is_long)
        memset(&m->above[i], 0, sizeof m->above[i]);
    n->edge_count = 0;
    for (uint32_t k = 0; k < x->dep_count; k++)
        add_edge(m, n, x->deps[k]);
    /* A message cannot arrive before its sender, who does the same, could send it. */
    if (x->kind == ORR__TAPE_RECEIVE && m->t->nodes[i - 1].kind == ORR__TAPE_SEND)
        for (uint32_t k = 0; k < m->t->nodes[i - 1].dep_count; k++)
            add_edge(m, n, m->t->nodes[i - 1].deps[k]);
    if (n->is_compute && !m->is_long)
        order_compute(m, i);
    uint16_t *own = orr_arena_take(m->u->arena, (n->edge_count + 1) * sizeof *own);
    if (!own)
        return false;
    memcpy(own, m->edges, n->edge_count * sizeof *own);
    n->edges = own;
    return true;
}

/* What the walk of kernel_times.c gives to a collective that the next computations wait for. */
static double hold_of(const part_maker *m, uint32_t i)
{
    const orr__tape *t = m->t;
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

/* Kernels of different shapes are off independently of each other. */
static void add_spread(part_maker *m, const orr__tape_node *x)
{
    const orr_chip *chip = m->s->bounds->chip;
    for (uint32_t k = 0; chip && k < x->kernel_count; k++) {
        orr_kernel_time t;
        if (!orr_chip_time(chip, &m->t->kernels[x->first_kernel + k], &t))
            continue;
        m->p->low2 += (t.us - t.low_us) * (t.us - t.low_us);
        m->p->high2 += (t.high_us - t.us) * (t.high_us - t.us);
    }
}

static void add_sums(part_maker *m)
{
    bound_part *p = m->p;
    for (uint32_t i = p->is_first ? 2 : 1; i < p->count; i++) {
        p->sum.fixed_us += p->nodes[i].sum.fixed_us;
        p->sum.clocked_us += p->nodes[i].sum.clocked_us;
        p->sum.flops += p->nodes[i].sum.flops;
        p->host_us += p->nodes[i].sum.host_us;
        p->hold_us += hold_of(m, i);
        add_spread(m, &m->t->nodes[i]);
        if (!p->nodes[i].is_compute)
            p->host_us += m->s->base.software->collective_us;
    }
    p->host_us += m->s->base.software->block_us;
}

/* A tape that is far too long gives no bound: a part without nodes takes no time. */
static bool make_part(part_maker *m, bool is_first, bound_part *out)
{
    const orr__tape *t = m->t;
    ancestors end = {{0}};
    *out = (bound_part){.is_first = is_first};
    if (t->count > MOST_LONG)
        return true;
    m->is_long = t->count > MOST_NODES;
    out->count = (uint32_t)t->count;
    out->out = t->out;
    out->nodes = orr_arena_new(m->u->arena, t->count, bound_node);
    out->last = orr_arena_new(m->u->arena, t->count, uint32_t);
    if (!out->nodes || !out->last)
        return false;
    m->p = out;
    m->open_count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        time_node(m, i);
        if (!make_node(m, i))
            return false;
    }
    if (m->is_long) {
        out->last[0] = t->out;
        out->last_count = out->nodes[t->out].is_compute;
        add_sums(m);
        return true;
    }
    add_bits(&end, &m->above[t->out]);
    set_bit(&end, t->out);
    for (uint32_t k = 0; k < m->open_count; k++)
        if (m->open[k] == t->out || is_ready_by(&t->nodes[m->open[k]], &end))
            out->last[out->last_count++] = m->open[k];
    add_sums(m);
    return true;
}

/* ---- units ---- */

static uint64_t unit_key(const search_candidate *c)
{
    const bool is_cut = c->pipeline == ORR_PIPELINE_ZERO_BUBBLE;
    const uint64_t flags =
        (uint64_t)c->recompute << 2 | (uint64_t)c->no_sequence_parallel << 1 | is_cut;
    return (uint64_t)c->tp << 50 | (uint64_t)c->cp << 36 | (uint64_t)c->ep << 24 |
           (uint64_t)c->micro_batch << 4 | flags;
}

static uint64_t layout_key(const search_candidate *c)
{
    return (uint64_t)c->tp << 50 | (uint64_t)c->cp << 36 | (uint64_t)c->ep << 24 | c->pp;
}

static const bound_layout *layout_of(const struct search_bounds *b, const search_candidate *c)
{
    return &b->layouts[orr_map_find(b->layout_of, layout_key(c), 0)];
}

/* The same parts on as few ranks as can be. */
static orr_llm_options unit_options(const orr_plan_search *s, const search_candidate *c)
{
    orr_llm_options o = search_options(s, c);
    o.pp = 1;
    o.chunks = 1;
    o.zero = 0;
    o.dp = c->ep;
    o.batch = (uint64_t)o.dp * o.micro_batch;
    if (o.pipeline != ORR_PIPELINE_ZERO_BUBBLE)
        o.pipeline = ORR_PIPELINE_1F1B;
    return o;
}

static orr_code make_one(part_maker *m,
                         orr__tape *t,
                         const orr_llm_options *o,
                         orr__tape_part part,
                         uint64_t layer,
                         bool is_first,
                         bound_part *out,
                         orr_error *err)
{
    orr_code code = orr__llm_tape_part(m->s->opt.model, o, part, layer, is_first, t, err);
    if (!code && !make_part(m, is_first, out))
        code = orr_no_memory(err);
    return code;
}

static orr_code make_layers(
    part_maker *m, orr__tape *t, const orr_llm_options *o, bound_unit *u, orr_error *err)
{
    const struct search_bounds *b = m->s->bounds;
    const bool is_cut = o->pipeline == ORR_PIPELINE_ZERO_BUBBLE;
    orr_code code = ORR_OK;
    for (uint32_t k = 0; k < b->kinds && !code; k++) {
        code =
            make_one(m, t, o, ORR__PART_LAYER_FORWARD, b->first_of[k], false, &u->forward[k], err);
        if (!code)
            code = make_one(m, t, o, ORR__PART_LAYER_BACKWARD, b->first_of[k], false,
                            &u->backward[k], err);
        if (!code)
            code = make_one(m, t, o, ORR__PART_LAYER_BACKWARD, b->first_of[k], true,
                            &u->first_backward[k], err);
        if (!code && is_cut)
            code = make_one(m, t, o, ORR__PART_LAYER_WEIGHTS, b->first_of[k], false, &u->weights[k],
                            err);
    }
    if (!code && is_cut)
        code = make_one(m, t, o, ORR__PART_HEAD_WEIGHTS, 0, false, &u->head_weights, err);
    return code;
}

/* Shapes are those of the whole job: a rank's groups lie where its layout puts them. */
static orr_code make_unit(const orr_plan_search *s, bound_unit *u, orr_error *err)
{
    static const orr__tape_part ends[4] = {ORR__PART_EMBEDDING_FORWARD, ORR__PART_HEAD_FORWARD,
                                           ORR__PART_HEAD_BACKWARD, ORR__PART_EMBEDDING_BACKWARD};
    orr_llm_options o = unit_options(s, &u->like);
    const bound_layout *l = layout_of(s->bounds, &u->like);
    const bound_shapes shapes[ORR__TAPE_AXES] = {
        [ORR__TAPE_TP] = l->tp, [ORR__TAPE_CP] = l->cp, [ORR__TAPE_EP] = l->ep};
    orr__tape t = {0};
    orr__llm_view v = {0};
    part_maker *m = orr_alloc(1, sizeof *m);
    u->arena = orr_arena_create();
    orr_code code = m && u->arena ? orr_llm_complete(s->opt.model, &o, err) : orr_no_memory(err);
    if (!code)
        code = orr__llm_view_open(s->opt.model, &o, &v, err);
    if (!code) {
        *m = (part_maker){.s = s, .t = &t, .u = u, .shapes = shapes};
        for (uint32_t k = 0; k < s->bounds->kinds; k++)
            u->held[k] = orr__llm_view_weights(&v, s->bounds->first_of[k]);
        u->held_ends = orr__llm_view_ends(&v);
    }
    for (unsigned i = 0; i < 4 && !code; i++)
        code = make_one(m, &t, &o, ends[i], 0, false, &u->ends[i], err);
    if (!code)
        code = make_layers(m, &t, &o, u, err);
    orr__llm_view_close(&v);
    orr__tape_fini(&t);
    orr_free(m);
    return code;
}

static orr_code make_unit_at(void *context, size_t i, orr_error *err)
{
    orr_plan_search *s = context;
    return make_unit(s, &s->bounds->units[i], err);
}

/* ---- matrices ---- */

static double max2(double a, double b)
{
    return a > b ? a : b;
}

static double node_ns(const bound_node *n, double slow)
{
    if (!n->is_compute)
        return n->ns;
    const double ns = (n->sum.fixed_us + n->sum.clocked_us * slow) * 1e3;
    return ns < 1 ? 1 : floor(ns + 0.5);
}

/* Both columns at once: when the data is there at 0 and the device never was busy, and the other way round. */
static bound_matrix part_matrix(const bound_part *p, double slow)
{
    double by_data[MOST_LONG], by_device[MOST_LONG];
    bound_matrix m = {p->count ? NEVER : 0, NEVER, NEVER, p->count ? NEVER : 0};
    for (uint32_t i = 0; i < p->count; i++) {
        const bound_node *n = &p->nodes[i];
        double c = i == 0 ? 0 : NEVER;
        double f = p->is_first ? (i == 1 ? 0 : NEVER) : n->is_compute ? 0 : NEVER;
        for (uint32_t e = 0; e < n->edge_count; e++) {
            c = max2(c, by_data[n->edges[e]]);
            f = max2(f, by_device[n->edges[e]]);
        }
        const double ns = node_ns(n, slow);
        by_data[i] = c + ns;
        by_device[i] = f + ns;
    }
    if (!p->count)
        return m;
    m.cc = by_data[p->out];
    m.cf = by_device[p->out];
    m.ff = 0;
    for (uint32_t k = 0; k < p->last_count; k++) {
        m.fc = max2(m.fc, by_data[p->last[k]]);
        m.ff = max2(m.ff, by_device[p->last[k]]);
    }
    return m;
}

/* First a, then b. */
static bound_matrix then(const bound_matrix *a, const bound_matrix *b)
{
    return (bound_matrix){.cc = max2(b->cc + a->cc, b->cf + a->fc),
                          .cf = max2(b->cc + a->cf, b->cf + a->ff),
                          .fc = max2(b->fc + a->cc, b->ff + a->fc),
                          .ff = max2(b->fc + a->cf, b->ff + a->ff)};
}

/* ---- a stage ---- */

typedef struct stage_sums {
    double fixed, clocked, flops, hold, host;
} stage_sums;

static void add_sum(stage_sums *x, const bound_part *p, double times)
{
    x->fixed += times * p->sum.fixed_us;
    x->clocked += times * p->sum.clocked_us;
    x->flops += times * p->sum.flops;
    x->hold += times * p->hold_us;
    x->host += times * p->host_us;
}

/* What a pipeline rank does, in counts of parts. */
typedef struct rank_work {
    uint32_t rank;
    bool is_first, is_last;          /* stage 0, the last stage */
    uint64_t order[64];              /* by chunk: which kinds come after each other */
    uint32_t layers[64][MOST_KINDS]; /* by chunk: how many of each kind */
    stage_sums sums;                 /* of the whole step */
    double slow;
    bound_matrix forward[64], backward[64];
    double compute_ns;                          /* sum of all computations, the update apart */
    double forward_ns, backward_ns, weights_ns; /* zero bubble: computations of one micro-batch */
    double norm_ns, update_ns, gather_ns;
    double reduce_ns, last_reduce_ns, layer_gather_ns;
    double end;
} rank_work;

typedef struct bound_job {
    orr_plan_search *s;
    const bound_unit *u;
    const search_candidate *c;
    orr_llm_options o;
    orr__llm_view v;
    uint64_t batches;
    const bound_layout *l;
    orr__tape tape;
} bound_job;

static void count_layers(const bound_job *j, uint32_t rank, rank_work *w)
{
    memset(w->layers, 0, sizeof w->layers);
    w->rank = rank;
    for (uint32_t c = 0; c < j->c->chunks; c++) {
        uint64_t first, end;
        w->order[c] = 0;
        orr__llm_view_layers(&j->v, c * j->c->pp + rank, &first, &end);
        for (uint64_t l = first; l < end; l++) {
            w->layers[c][j->s->bounds->kind_of[l]]++;
            w->order[c] = orr_hash_mix(w->order[c] + 1, j->s->bounds->kind_of[l]);
        }
    }
    w->is_first = rank == 0;
    w->is_last = rank + 1 == j->c->pp;
}

static void sum_work(const bound_job *j, rank_work *w)
{
    const bool is_cut = j->c->pipeline == ORR_PIPELINE_ZERO_BUBBLE;
    const double m = (double)j->batches;
    w->sums = (stage_sums){0};
    for (uint32_t c = 0; c < j->c->chunks; c++)
        for (uint32_t k = 0; k < j->s->bounds->kinds; k++) {
            const double times = m * w->layers[c][k];
            add_sum(&w->sums, &j->u->forward[k], times);
            add_sum(&w->sums, &j->u->backward[k], times);
            if (is_cut)
                add_sum(&w->sums, &j->u->weights[k], times);
        }
    if (w->is_first) {
        add_sum(&w->sums, &j->u->ends[0], m);
        add_sum(&w->sums, &j->u->ends[3], m);
    }
    if (w->is_last) {
        add_sum(&w->sums, &j->u->ends[1], m);
        add_sum(&w->sums, &j->u->ends[2], m);
        if (is_cut)
            add_sum(&w->sums, &j->u->head_weights, m);
    }
}

/* As kernel_times.c seeks it; the update adds time and no products. */
static double find_slow(const bound_job *j, const rank_work *w, double update_us)
{
    const work_device d = device_of(j->s);
    double slow = 1;
    if (!d.chip || w->sums.host > 0.8 * (w->sums.fixed + w->sums.clocked))
        return 1; /* the host may hold the device up, and a slower step has a higher clock */
    for (int i = 0; i < WORK_CLOCK_ROUNDS; i++) {
        const double device = w->sums.fixed + w->sums.clocked * slow + w->sums.hold + update_us;
        slow = work_slowdown(&d, w->sums.flops, device);
    }
    return slow;
}

static void find_matrices(const bound_job *j, rank_work *w)
{
    const uint32_t kinds = j->s->bounds->kinds;
    bound_matrix forward[MOST_KINDS], backward[MOST_KINDS], first[MOST_KINDS], ends[4];
    for (uint32_t k = 0; k < kinds; k++) {
        forward[k] = part_matrix(&j->u->forward[k], w->slow);
        backward[k] = part_matrix(&j->u->backward[k], w->slow);
        first[k] = part_matrix(&j->u->first_backward[k], w->slow);
    }
    for (unsigned i = 0; i < 4; i++)
        ends[i] = part_matrix(&j->u->ends[i], w->slow);
    for (uint32_t c = 0; c < j->c->chunks; c++) {
        const bool is_first = w->is_first && c == 0, is_last = w->is_last && c + 1 == j->c->chunks;
        bound_matrix f = {0, NEVER, NEVER, 0}, b = {0, NEVER, NEVER, 0};
        if (is_first)
            f = then(&f, &ends[0]);
        if (is_last)
            b = then(&b, &ends[2]);
        uint64_t begin, end;
        orr__llm_view_layers(&j->v, c * j->c->pp + w->rank, &begin, &end);
        for (uint64_t l = begin; l < end; l++) {
            f = then(&f, &forward[j->s->bounds->kind_of[l]]);
            const uint32_t kind = j->s->bounds->kind_of[end - 1 - (l - begin)];
            b = then(&b, l == begin && !is_last ? &first[kind] : &backward[kind]);
        }
        w->forward[c] = is_last ? then(&f, &ends[1]) : f;
        w->backward[c] = is_first ? then(&b, &ends[3]) : b;
    }
    w->compute_ns = (w->sums.fixed + w->sums.clocked * w->slow) * 1e3;
}

/* ---- gradients and the update ---- */

static const bound_shapes *expert_shapes(const bound_job *j)
{
    return j->c->ep > 1 ? &j->l->expert : &j->l->data;
}

typedef struct bucket {
    uint64_t bytes;
    double sum, last;
    uint64_t known; /* bytes whose time is `last` */
} bucket;

static void fill_bucket(
    const bound_job *j, const bound_shapes *shapes, uint64_t bytes, bool is_end, bucket *b)
{
    const uint64_t full = j->o.bucket_bytes;
    b->bytes += bytes;
    if (b->bytes == 0 || (!is_end && b->bytes < full))
        return;
    if (b->bytes != b->known)
        b->last =
            collective_ns(j->s->bounds, shapes,
                          j->o.zero ? ORR_COLL_REDUCE_SCATTER : ORR_COLL_ALL_REDUCE, b->bytes);
    b->known = b->bytes;
    b->sum += b->last;
    b->bytes = 0;
}

/* A bucket may be sent early when it has too many dependencies; then there are more, and none takes less: a bound
 * takes the sums as they are. */
static void sum_gradients(const bound_job *j, uint32_t rank, const orr__tape_sync *y, rank_work *w)
{
    bucket dense = {0}, expert = {0};
    const orr__layer_weights ends = j->u->held_ends;
    w->layer_gather_ns = 0;
    for (uint32_t c = j->c->chunks; c-- > 0;) {
        uint64_t first, end;
        orr__llm_view_layers(&j->v, c * j->c->pp + rank, &first, &end);
        if (w->is_last && c + 1 == j->c->chunks)
            fill_bucket(j, &j->l->data, ends.expert * y->grad, false, &dense);
        for (uint64_t l = end; l-- > first;) {
            const orr__layer_weights own = j->u->held[j->s->bounds->kind_of[l]];
            fill_bucket(j, &j->l->data, own.dense * y->grad, false, &dense);
            fill_bucket(j, expert_shapes(j), own.expert * y->grad, false, &expert);
            if (!y->gathers_layers)
                continue;
            const uint64_t n = orr__llm_view_degree(&j->v, ORR__TAPE_DATA);
            w->layer_gather_ns += collective_ns(j->s->bounds, &j->l->data, ORR_COLL_ALL_GATHER,
                                                (own.dense * y->weight + n - 1) / n);
        }
        if (w->is_first && c == 0)
            fill_bucket(j, &j->l->data, ends.dense * y->grad, false, &dense);
    }
    const double before = dense.sum + expert.sum;
    fill_bucket(j, &j->l->data, 0, true, &dense);
    fill_bucket(j, expert_shapes(j), 0, true, &expert);
    w->reduce_ns = dense.sum + expert.sum;
    w->last_reduce_ns = w->reduce_ns - before;
    if (w->last_reduce_ns <= 0)
        w->last_reduce_ns = dense.last;
}

/* At the clock of the rank, which is that of the whole step. */
static orr_code sum_update(
    bound_job *j, uint32_t rank, rank_work *w, double *us, orr__tape_sync *y, orr_error *err)
{
    const struct search_bounds *b = j->s->bounds;
    const work_device d = device_of(j->s);
    work_kernel_sum parts[2] = {{0}};
    uint32_t seen = 0;
    const orr_code code = orr__llm_tape_update(&j->v, rank, &j->tape, y, err);
    for (size_t i = 1; !code && i < j->tape.count; i++) {
        const orr__tape_node *x = &j->tape.nodes[i];
        if (x->kind != ORR__TAPE_COMPUTE || seen == 2)
            continue;
        if (b->chip && x->kernel_count)
            for (uint32_t k = 0; k < x->kernel_count; k++)
                (void)!work_add_kernel(&d, &j->tape.kernels[x->first_kernel + k], &parts[seen]);
        else if (b->chip)
            work_add_roofline(&d, (double)x->operations, (double)x->bytes, &parts[seen]);
        else
            parts[seen].fixed_us = (double)x->bytes / (double)b->system.memory_bandwidth * 1e6;
        seen++;
    }
    const bool has_norm = !j->o.no_clipping;
    w->norm_ns = has_norm ? (parts[0].fixed_us + parts[0].clocked_us) * 1e3 : 0;
    const work_kernel_sum *last = &parts[has_norm ? 1 : 0];
    w->update_ns = (last->fixed_us + last->clocked_us) * 1e3;
    *us = (w->norm_ns + w->update_ns) * 1e-3;
    w->gather_ns = 0;
    if (!code && y->gathers_at_end) {
        const uint64_t n = orr__llm_view_degree(&j->v, ORR__TAPE_DATA);
        const uint64_t most = (j->o.bucket_bytes + n - 1) / n;
        w->gather_ns = floor((double)(y->dense_share / (most ? most : 1))) *
                       collective_ns(b, &j->l->data, ORR_COLL_ALL_GATHER, most);
    }
    return code;
}

/* ---- the pipeline ---- */

static bool is_like(const bound_job *j, const rank_work *a, const rank_work *b)
{
    return a->is_first == b->is_first && a->is_last == b->is_last &&
           memcmp(a->order, b->order, j->c->chunks * sizeof *a->order) == 0 &&
           memcmp(a->layers, b->layers, j->c->chunks * sizeof *a->layers) == 0;
}

static orr_code prepare_rank(bound_job *j, uint32_t rank, rank_work *all, orr_error *err)
{
    rank_work *w = &all[rank];
    orr__tape_sync y;
    double update_us = 0;
    count_layers(j, rank, w);
    if (rank && is_like(j, w, w - 1)) {
        *w = w[-1];
        return ORR_OK;
    }
    sum_work(j, w);
    const orr_code code = sum_update(j, rank, w, &update_us, &y, err);
    if (code)
        return code;
    w->slow = find_slow(j, w, update_us);
    find_matrices(j, w);
    sum_gradients(j, rank, &y, w);
    if (j->c->pipeline == ORR_PIPELINE_ZERO_BUBBLE) {
        stage_sums f = {0}, b = {0}, x = {0};
        for (uint32_t k = 0; k < j->s->bounds->kinds; k++) {
            add_sum(&f, &j->u->forward[k], w->layers[0][k]);
            add_sum(&b, &j->u->backward[k], w->layers[0][k]);
            add_sum(&x, &j->u->weights[k], w->layers[0][k]);
        }
        w->forward_ns = (f.fixed + f.clocked * w->slow) * 1e3;
        w->backward_ns = (b.fixed + b.clocked * w->slow) * 1e3;
        w->weights_ns = (x.fixed + x.clocked * w->slow) * 1e3;
    }
    return ORR_OK;
}

typedef struct flow {
    const bound_job *j;
    rank_work *work;
    double *forward, *backward; /* by virtual stage and micro-batch: when its result is there */
    double message;
    struct rank_state {
        orr__llm_task *tasks;
        size_t count, at;
        double free, before; /* the device; the result of the task before */
        double computed;     /* sum of all computations of the tasks so far */
        double later;        /* before this the device is not free behind the next task */
        double *
            ends; /* zero bubble, by micro-batch: the end of its backward pass less what was computed then */
        double first, final; /* when it started; when its first last backward pass did */
        double last_backward;
    } * ranks;
} flow;

static double *slot(const flow *x, double *list, uint32_t stage, uint32_t micro_batch)
{
    return &list[(size_t)stage * x->j->batches + micro_batch];
}

static bool is_final(const flow *x, const orr__llm_task *t)
{
    return t->micro_batch == (x->j->c->pipeline == ORR_PIPELINE_GPIPE ? 0 : x->j->batches - 1);
}

/* When its input is there; below 0: not yet known. */
static double input_of(const flow *x, uint32_t rank, const orr__llm_task *t)
{
    const uint32_t pp = x->j->c->pp, stages = pp * x->j->c->chunks, stage = t->chunk * pp + rank;
    if (t->kind == ORR_LLM_FORWARD) {
        const double from = stage ? *slot(x, x->forward, stage - 1, t->micro_batch) : 0;
        return stage ? (from < 0 ? -1 : from + x->message) : 0;
    }
    if (stage + 1 == stages)
        return *slot(x, x->forward, stage, t->micro_batch);
    const double from = *slot(x, x->backward, stage + 1, t->micro_batch);
    return from < 0 ? -1 : from + x->message;
}

static bool run_task(flow *x, uint32_t rank)
{
    struct rank_state *r = &x->ranks[rank];
    const rank_work *w = &x->work[rank];
    const orr__llm_task *t = &r->tasks[r->at];
    const uint32_t stage = t->chunk * x->j->c->pp + rank;
    if (t->kind == ORR_LLM_WEIGHTS) {
        /* It waits for its backward pass alone, and the next task for it: in between the device has computed all
         * that was written in between. */
        r->computed += w->weights_ns;
        const double end = r->ends[t->micro_batch] + r->computed;
        if (x->j->c->no_sequence_parallel || x->j->c->tp == 1)
            r->free = max2(r->free, end);
        else
            r->later = max2(
                r->later,
                end); /* its gathers come before those of the next task, not before its first node */
        r->at++;
        return true;
    }
    const double data = input_of(x, rank, t);
    if (data < 0)
        return false;
    const double device = max2(r->free, r->before);
    const bool is_forward = t->kind == ORR_LLM_FORWARD;
    const bound_matrix *m = is_forward ? &w->forward[t->chunk] : &w->backward[t->chunk];
    const double out = max2(m->cc + data, m->cf + device);
    if (r->at == 0)
        r->first = max2(data, device);
    if (!is_forward && is_final(x, t) && r->final < 0)
        r->final = max2(data, 0);
    r->free = max2(device, max2(m->fc + data, m->ff + device));
    r->before = out;
    if (r->later > 0) {
        r->free = max2(r->free, r->later);
        r->before = max2(r->before, r->later);
        r->later = 0;
    }
    r->computed += is_forward ? w->forward_ns : w->backward_ns;
    if (!is_forward && r->ends)
        r->ends[t->micro_batch] = out - r->computed;
    if (!is_forward)
        r->last_backward = out;
    *slot(x, is_forward ? x->forward : x->backward, stage, t->micro_batch) = r->before;
    r->at++;
    return true;
}

static void follow(flow *x)
{
    const uint32_t pp = x->j->c->pp;
    bool goes_on = true;
    while (goes_on) {
        goes_on = false;
        for (uint32_t rank = 0; rank < pp; rank++)
            while (x->ranks[rank].at < x->ranks[rank].count && run_task(x, rank))
                goes_on = true;
    }
}

/* When the last rank is done, ns. */
static double end_of_step(flow *x)
{
    const bound_job *j = x->j;
    double norm = 0, rest = 0;
    for (uint32_t i = 0; i < j->c->pp; i++) {
        const struct rank_state *r = &x->ranks[i];
        const rank_work *w = &x->work[i];
        double done = max2(r->free, r->before);
        done = max2(done, r->first + w->compute_ns);
        if (j->c->pipeline == ORR_PIPELINE_ZERO_BUBBLE)
            done = max2(done, r->last_backward + w->weights_ns);
        /* ZeRO 3 gathers each layer for each pass, on one stream. */
        done = max2(done, 2 * (double)j->batches * w->layer_gather_ns + w->reduce_ns);
        const double reduced = max2(done + w->last_reduce_ns, max2(r->final, 0) + w->reduce_ns);
        norm = max2(norm, reduced + w->norm_ns);
        rest = max2(rest, w->update_ns + w->gather_ns);
    }
    return norm +
           collective_ns(j->s->bounds, &j->l->world, ORR_COLL_ALL_REDUCE,
                         j->o.no_clipping ? 0 : 4) +
           rest;
}

static orr_code follow_pipeline(bound_job *j, rank_work *work, double *ns, orr_error *err)
{
    const uint32_t pp = j->c->pp;
    const size_t slots = (size_t)pp * j->c->chunks * j->batches;
    flow x = {.j = j, .work = work};
    x.message =
        message_ns(j->s->bounds, j->c->tp * j->c->cp * j->c->dp, orr__llm_view_message(&j->v));
    x.forward = orr_alloc(2 * slots, sizeof *x.forward);
    x.ranks = orr_alloc(pp, sizeof *x.ranks);
    bool ok = x.forward && x.ranks;
    x.backward = ok ? x.forward + slots : NULL;
    for (size_t i = 0; ok && i < 2 * slots; i++)
        x.forward[i] = -1;
    for (uint32_t i = 0; ok && i < pp; i++) {
        x.ranks[i].final = -1;
        x.ranks[i].tasks = orr__llm_view_tasks(&j->v, i, &x.ranks[i].count);
        const bool is_cut = j->c->pipeline == ORR_PIPELINE_ZERO_BUBBLE;
        if (is_cut)
            x.ranks[i].ends = orr_alloc(j->batches, sizeof *x.ranks[i].ends);
        ok = x.ranks[i].tasks && (x.ranks[i].ends || !is_cut);
    }
    if (ok) {
        follow(&x);
        *ns = end_of_step(&x);
    }
    for (uint32_t i = 0; x.ranks && i < pp; i++) {
        orr_free(x.ranks[i].tasks);
        orr_free(x.ranks[i].ends);
    }
    orr_free(x.ranks);
    orr_free(x.forward);
    return ok ? ORR_OK : orr_no_memory(err);
}

/* ---- without following every task ---- */

/* A rank has nothing to do before the first micro-batch has come through the stages before it; its tasks come one after
 * the other; and what it has done last must go back through those stages. */
static double rough_end(const bound_job *j, const rank_work *work)
{
    const bool is_cut = j->c->pipeline == ORR_PIPELINE_ZERO_BUBBLE;
    const double m = (double)j->batches;
    double head = 0, tail = 0, most = 0;
    for (uint32_t i = 0; i < j->c->pp; i++) {
        const rank_work *w = &work[i];
        double chain = 0, device = 0;
        for (uint32_t c = 0; c < j->c->chunks; c++) {
            chain += m * (max2(w->forward[c].cf, 0) + max2(w->backward[c].cf, 0));
            device += m * (w->forward[c].ff + w->backward[c].ff);
        }
        const double last = max2(w->backward[0].cf, 0) - w->backward[0].ff;
        const double done = max2(chain, device + last);
        most =
            max2(most, head + max2(max2(chain, device), w->compute_ns) + w->norm_ns + w->update_ns);
        if (!is_cut)
            most = max2(most, head + done + tail + w->norm_ns + w->update_ns);
        head += max2(w->forward[0].cf, 0);
        tail += max2(w->backward[0].cf, 0);
    }
    return most;
}

/* ---- interface ---- */

orr_code search_bound(orr_plan_search *s, search_candidate *c, bool is_rough, orr_error *err)
{
    const struct search_bounds *b = s->bounds;
    const uint32_t at = orr_map_find(b->unit_of, unit_key(c), UINT32_MAX);
    bound_job j = {.s = s, .u = &b->units[at], .c = c, .o = search_options(s, c)};
    rank_work *work = orr_alloc(c->pp, sizeof *work);
    double ns = 0;
    search_fill_in(&j.o);
    orr_code code = work ? orr__llm_view_open(s->opt.model, &j.o, &j.v, err) : orr_no_memory(err);
    if (!code) {
        j.batches = s->base.batch / ((uint64_t)c->dp * c->micro_batch);
        j.l = layout_of(b, c);
    }
    for (uint32_t i = 0; i < c->pp && !code; i++)
        code = prepare_rank(&j, i, work, err);
    if (!code && is_rough)
        ns = rough_end(&j, work);
    else if (!code)
        code = follow_pipeline(&j, work, &ns, err);
    c->bound_s = ns * 1e-9 * SLACK;
    orr__llm_view_close(&j.v);
    orr__tape_fini(&j.tape);
    orr_free(work);
    return code;
}

void search_spread(const orr_plan_search *s, const search_candidate *c, double *low, double *high)
{
    const struct search_bounds *b = s->bounds;
    const bound_unit *u = &b->units[orr_map_find(b->unit_of, unit_key(c), 0)];
    double low2 = 0, high2 = 0, sum = 0;
    for (uint32_t k = 0; k < b->kinds; k++) {
        const bound_part *parts[3] = {&u->forward[k], &u->backward[k], &u->weights[k]};
        for (unsigned i = 0; i < 3; i++) {
            low2 += parts[i]->low2;
            high2 += parts[i]->high2;
            sum += parts[i]->sum.fixed_us + parts[i]->sum.clocked_us;
        }
    }
    *low = sum > 0 ? sqrt(low2) / sum : 0;
    *high = sum > 0 ? sqrt(high2) / sum : 0;
}

static bool find_kinds(orr_plan_search *s, struct search_bounds *b)
{
    const orr_model *m = s->opt.model;
    b->kind_of = orr_alloc(m->layers, sizeof *b->kind_of);
    for (uint64_t l = 0; b->kind_of && l < m->layers; l++) {
        uint32_t k = 0;
        while (k < b->kinds && !(orr_model_is_alike(m, l, b->first_of[k]) &&
                                 orr_model_window(m, l) == orr_model_window(m, b->first_of[k])))
            k++;
        if (k == MOST_KINDS)
            k = 0; /* more than any model has */
        else if (k == b->kinds)
            b->first_of[b->kinds++] = l;
        b->kind_of[l] = k;
    }
    return b->kind_of != NULL;
}

static orr_code add_layout(orr_plan_search *s,
                           struct search_bounds *b,
                           const search_candidate *c,
                           orr_error *err)
{
    const uint64_t key = layout_key(c);
    orr_llm_options o = search_options(s, c);
    orr__llm_view v;
    if (orr_map_find(b->layout_of, key, UINT32_MAX) != UINT32_MAX)
        return ORR_OK;
    if (!orr_grow(&b->layouts, &b->layout_room, b->layout_count + 1) ||
        !orr_map_put(b->layout_of, key, (uint32_t)b->layout_count, NULL))
        return orr_no_memory(err);
    bound_layout *l = &b->layouts[b->layout_count++];
    *l = (bound_layout){.like = *c};
    search_fill_in(&o);
    const orr_code code = orr__llm_view_open(s->opt.model, &o, &v, err);
    if (!code) {
        find_shapes(s, &v, ORR__TAPE_TP, &l->tp);
        find_shapes(s, &v, ORR__TAPE_CP, &l->cp);
        find_shapes(s, &v, ORR__TAPE_EP, &l->ep);
        find_shapes(s, &v, ORR__TAPE_DATA, &l->data);
        find_shapes(s, &v, ORR__TAPE_EXPERT_DATA, &l->expert);
        find_shapes(s, &v, ORR__TAPE_WORLD, &l->world);
    }
    orr__llm_view_close(&v);
    return code;
}

static orr_code list_units(orr_plan_search *s, struct search_bounds *b, orr_error *err)
{
    for (size_t i = 0; i < s->count; i++) {
        const orr_code code = add_layout(s, b, &s->list[i], err);
        if (code)
            return code;
        const uint64_t key = unit_key(&s->list[i]);
        if (orr_map_find(b->unit_of, key, UINT32_MAX) != UINT32_MAX)
            continue;
        if (!orr_grow(&b->units, &b->unit_room, b->unit_count + 1) ||
            !orr_map_put(b->unit_of, key, (uint32_t)b->unit_count, NULL))
            return orr_no_memory(err);
        b->units[b->unit_count++] = (bound_unit){.like = s->list[i]};
    }
    return ORR_OK;
}

orr_code search_bounds_create(orr_plan_search *s, orr_error *err)
{
    struct search_bounds *b = orr_alloc(1, sizeof *b);
    s->bounds = b;
    if (!b || !(b->unit_of = orr_map_create(0)) || !(b->layout_of = orr_map_create(0)) ||
        !find_kinds(s, b))
        return orr_no_memory(err);
    orr_code code = orr_machine_dims(&s->machine, &b->dims, err);
    if (!code)
        code = orr_machine_system(&s->machine, &b->system, err);
    b->chip = orr_chip_find(s->machine.chip);
    b->has_times = strcmp(s->machine.collectives, "none") != 0;
    if (!code)
        code = list_units(s, b, err);
    return code ? code : orr_pool_for(s->opt.threads, b->unit_count, make_unit_at, s, err);
}

void search_bounds_destroy(struct search_bounds *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->unit_count; i++)
        orr_arena_destroy(b->units[i].arena);
    orr_free(b->units);
    orr_map_destroy(b->unit_of);
    orr_map_destroy(b->layout_of);
    orr_free(b->layouts);
    orr_free(b->kind_of);
    orr_free(b);
}
