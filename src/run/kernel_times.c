/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_times.c - compute times of a trace on a chip (chip.h), once for all ranks of its class.
 *
 * A node that lists its kernels (`kernels`) takes the sum of their times; one with only FLOPs and
 * bytes takes a roofline of the same chip; one with neither keeps its recorded duration.  A system
 * file names no chip, only peaks: there the efficiency of the nearest measured chip is applied to
 * the bound by the peaks.  Two effects couple the kernels of a step: the clock, which falls under
 * the power cap with the mean rate of the whole step (solved in a few rounds), and the host, which
 * issues kernels one after the other: a kernel starts when the device is free and the host has
 * issued it (software.h).  The wait goes into the node's time, so that a node takes the same time
 * on all ranks of a class and folding stays exact.  So a walk through the step must advance the
 * device as the run will: with its times of collectives (comm_times.c), from when their input is
 * there.  Host time that a walk spends and the run does not have would be lost, and faster links
 * would make steps longer.
 *
 * Equal texts are timed once.  The nodes of a layer have the same attributes in every layer and
 * micro-batch, and in the same order, so a node's text is found by the bytes of its attributes:
 * most nodes cost one comparison of about 100 bytes.  The passes for clock and errors, up to seven,
 * go over an array of steps, which holds what is equal in all of them: 25 instructions per node and
 * pass, 40 if collectives overlap with kernels.  So times by kernels add about a tenth to a folded
 * step (docs/design/folding.md). */
#include "workload.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "models/compute/atlas/chip_cost.h"
#include "models/compute/software/software_costs.h"
#include "trace/attrs.h"
#include "trace/trace_impl.h"

#include <orrery/run.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of one text: at the chip's highest clock. */
typedef struct kernel_row {
    double fixed_us, clocked_us; /* independent of the clock, and scaling with it */
    double flops;
    double host_us, alone_us;               /* host time: with gradients, and without */
    double low_us2, high_us2;               /* squares of the 90 % deviations below and above */
    double assumed_low_us, assumed_high_us; /* these deviations, of kernels timed by a roofline */
    double guessed_us;                      /* of kernels unlike any measured one */
    double uses;
    bool picks_experts; /* a router's forward pass */
} kernel_row;

/* Of peaks to which another chip's efficiency was applied. */
#define PEAKS_ERROR 0.2

/* What a step is; 0: kernels and nothing else to think of. */
enum {
    STEP_COMM = 1,     /* with the next three, or none of them */
    STEP_MESSAGE = 2,  /* a receive for which the host waits */
    STEP_BESIDE = 4,   /* beside another pass */
    STEP_HOLDS = 8,    /* the device waits for it */
    STEP_TOKENS = 16,  /* kernels from here on: takes a micro-batch's tokens from the host */
    STEP_BLOCK = 32,   /* begins a block */
    STEP_EXPERTS = 64, /* a router's forward pass, whose result the host reads */
    STEP_LAST = 128,   /* the update behind the backward pass */
    STEP_TURN = 256,   /* begins a turn of serving, which the host plans by the tokens before it */
    STEP_READY = 512,  /* t->ready counts, of kernels and of communication */
    STEP_FEEDS = 1024, /* kernels for which communication waits */
    STEP_CHAIN = 2048, /* communication between two kernels, for which all of the device waits */
    /* what issuing communication costs the host, if more than collective_us; one of: */
    STEP_TENSOR = 1 << 12, /* of tensor parallelism */
    STEP_GATHER = 2 << 12, /* of a layer's weights, for its forward pass */
    STEP_AGAIN = 3 << 12,  /* for its backward pass */
    STEP_REDUCE = 4 << 12, /* of a layer's gradients */
    STEP_ISSUE = 7 << 12
};

typedef struct walk_step {
    uint32_t place;
    uint32_t index; /* of rows, or of comm_us */
    uint32_t what;
} walk_step;

/* Without what issuing it costs. */
static uint32_t form_of(const walk_step *s)
{
    return s->what & ~(uint32_t)STEP_ISSUE;
}

/* A direct-mapped cache: entries with one place push each other out and are decoded again. */
enum { SEEN_MOST = 1024 };
typedef struct seen_attrs {
    orr_span bytes;
    uint32_t row;  /* NO_KERNELS: these attributes list none */
    uint32_t next; /* which came after it the last time */
} seen_attrs;

/* All but what is frequent. */
static const uint32_t STEP_RARE = ~(uint32_t)(STEP_READY | STEP_FEEDS);

/* Of a row in one pass. */
typedef struct row_now {
    double us, host_us, half_us; /* half_us: of the host */
} row_now;

typedef struct timing {
    work_graph *g;
    const orr_chip *chip;
    const orr_software *software;
    bool is_compiled;        /* its kernels, whatever launches them */
    const work_peaks *peaks; /* replace the chip's own; NULL: the chip itself */
    double memory, host;     /* speed factors of its memory and of the host */
    double deviations;       /* of the job's slowest device from the mean one */
    work_comm *comm;         /* times of what blocks the device, or goes beside */
    orr_intern *texts;
    kernel_row *rows; /* by text */
    size_t row_room, row_count;
    seen_attrs *seen;
    size_t seen_mask;
    uint32_t seen_last; /* of the node before */
    walk_step *steps;   /* what takes time on device or host, in program order */
    size_t step_room, step_count;
    const double *comm_us; /* by number (comm_times.c) */
    row_now *now;          /* by row */
    double flops;          /* of all steps */
    uint32_t timed;        /* nodes */
    double *ready;         /* us, by place: when what it waits for is done; where that may matter */
    bool has_beside;       /* something goes on beside another pass: it matters everywhere */
    bool has_grads, has_experts;
} timing;

static const uint32_t NO_ROW = UINT32_MAX, NO_KERNELS = UINT32_MAX - 1;

static orr_code refuse(const timing *t, uint32_t node, const orr_error *why, orr_error *err)
{
    const orr_where w = orr_trace_where(t->g->t, node);
    return orr_fail(err, ORR_EINPUT, &w, "node %" PRIu64 ", attribute kernels: %s",
                    t->g->t->columns.id[node], why->message);
}

/* Peaks relative to those of the chip: ratio of the kernel's bounds. */
static double by_peaks(const timing *t, const orr_kernel *k)
{
    const orr_kernel_work work = orr_kernel_count(k);
    const double own = t->chip->peak_tflops[k->type];
    if (!t->peaks || !(own > 0))
        return 1;
    const double bytes = work.read + work.write;
    const double scale = t->peaks->flops / (t->chip->peak_tflops[ORR_TYPE_BF16] * 1e12);
    const double here = fmax(work.flops / (own * 1e12), bytes / (t->chip->memory_GBps * 1e9));
    const double there = fmax(work.flops / (own * 1e12 * scale), bytes / t->peaks->bytes_per_s);
    return here > 0 ? there / here : 1;
}

static void add_errors(const chip_cost *cost, kernel_row *out)
{
    if (cost->is_assumed) {
        out->assumed_low_us += cost->low_us;
        out->assumed_high_us += cost->high_us;
    } else {
        out->low_us2 += cost->low_us * cost->low_us;
        out->high_us2 += cost->high_us * cost->high_us;
    }
}

static bool add_kernel(const timing *t, const orr_kernel *k, kernel_row *out)
{
    const double times = by_peaks(t, k) * orr__software_slowdown(t->software, t->chip, k);
    chip_cost cost;
    if (!orr__chip_cost(t->chip, k, times, &cost))
        return false;
    out->clocked_us += cost.clocked_us;
    out->fixed_us += cost.fixed_us / t->memory;
    out->host_us += orr__software_host_us(t->software, k, true);
    out->alone_us += orr__software_host_us(t->software, k, false);
    add_errors(&cost, out);
    out->guessed_us += cost.is_guess ? cost.clocked_us + cost.fixed_us : 0;
    out->picks_experts |= k->kind == ORR_KERNEL_TOPK && !k->is_backward;
    out->flops += cost.flops * orr__software_draw(t->software, t->chip, k);
    return true;
}

static orr_code add_kernels(timing *t, uint32_t node, orr_str list, kernel_row *out, orr_error *err)
{
    orr_error why;
    orr_code code;
    orr_kernel k;
    while ((code = orr_kernel_next(&list, &k, &why)) == ORR_OK) {
        if (!add_kernel(t, &k, out)) {
            const orr_where w = orr_trace_where(t->g->t, node);
            return orr_fail(err, ORR_EINPUT, &w, "%s cannot run %s kernels in %s", t->chip->name,
                            orr_kernel_kind_name(k.kind), orr_kernel_type_name(k.type));
        }
        t->has_grads |= k.is_backward || k.layout != ORR_LAYOUT_NT;
        /* A rank with one expert has plain products. */
        t->has_experts |=
            k.kind == ORR_KERNEL_GROUPED || k.kind == ORR_KERNEL_MOE || k.kind == ORR_KERNEL_TOPK;
    }
    return code == ORR_END ? ORR_OK : refuse(t, node, &why, err);
}

static kernel_row roofline_row(const timing *t, double ops, double bytes)
{
    const double flops = t->peaks ? t->peaks->flops : t->chip->peak_tflops[ORR_TYPE_BF16] * 1e12;
    const double rate = t->peaks ? t->peaks->bytes_per_s : t->chip->memory_GBps * 1e9;
    const chip_cost c = orr__chip_roofline(flops, rate * t->memory, t->chip->launch_us, ops, bytes);
    kernel_row row = {.fixed_us = c.fixed_us,
                      .clocked_us = c.clocked_us,
                      .flops = c.flops,
                      .host_us = 30 * t->software->host,
                      .alone_us = 20 * t->software->host,
                      .guessed_us = c.fixed_us + c.clocked_us};
    add_errors(&c, &row);
    return row;
}

static bool add_row(timing *t, const kernel_row *row)
{
    if (!orr_grow(&t->rows, &t->row_room, t->row_count + 1))
        return false;
    t->rows[t->row_count++] = *row;
    return true;
}

static orr_code row_of_text(timing *t, uint32_t node, orr_str text, uint32_t *out, orr_error *err)
{
    kernel_row row = {0};
    if (!orr_intern_add(t->texts, text, out))
        return orr_no_memory(err);
    /* Texts and rows have the same numbers, since a row is made with each new text. */
    if (*out < t->row_count)
        return ORR_OK;
    const orr_code code = add_kernels(t, node, text, &row, err);
    if (code)
        return code;
    return add_row(t, &row) ? ORR_OK : orr_no_memory(err);
}

static bool has_bytes(const seen_attrs *s, orr_span bytes)
{
    return s->bytes.ptr && s->bytes.len == bytes.len &&
           memcmp(s->bytes.ptr, bytes.ptr, bytes.len) == 0;
}

/* Its place in the cache; *is_seen: it is there.  Nodes repeat in their order, so the place that
 * came next the last time is tried first. */
static seen_attrs *place_of(timing *t, orr_span bytes, bool *is_seen)
{
    uint32_t *const next = &t->seen[t->seen_last].next;
    *is_seen = has_bytes(&t->seen[*next], bytes);
    if (!*is_seen) {
        *next = (uint32_t)(orr_hash_bytes(bytes.ptr, bytes.len, 0) & t->seen_mask);
        *is_seen = has_bytes(&t->seen[*next], bytes);
    }
    t->seen_last = *next;
    return &t->seen[*next];
}

/* By the attributes' bytes if they were seen, or by the attribute; NO_KERNELS: it has none. */
static orr_code row_of_kernels(timing *t, uint32_t node, uint32_t *out, orr_error *err)
{
    const orr_span bytes = orr__trace_attr_bytes(t->g->t, node);
    bool is_seen;
    seen_attrs *const s = place_of(t, bytes, &is_seen);
    *out = s->row;
    if (is_seen)
        return ORR_OK;
    const orr_node body = {.body = bytes}; /* all that attributes need */
    orr_attr kernels;
    *out = NO_KERNELS;
    if (orr__node_get(&body, ORR__ATTR_KERNELS, &kernels) && kernels.kind == ORR_VALUE_STRING &&
        kernels.value.s.len) {
        const orr_code code = row_of_text(t, node, kernels.value.s, out, err);
        if (code)
            return code;
    }
    s->bytes = bytes;
    s->row = *out;
    return ORR_OK;
}

/* Rows of nodes without kernels are found by a synthetic text. */
static orr_code row_of_node(timing *t, uint32_t node, uint32_t *out, orr_error *err)
{
    const orr_columns *c = &t->g->t->columns;
    const orr_code code = row_of_kernels(t, node, out, err);
    if (code || *out != NO_KERNELS)
        return code;
    *out = NO_ROW;
    if (!c->num_ops || !c->tensor_size || c->num_ops[node] == ORR_NO_VALUE ||
        c->tensor_size[node] == ORR_NO_VALUE)
        return ORR_OK;
    char text[64];
    const kernel_row row = roofline_row(t, (double)c->num_ops[node], (double)c->tensor_size[node]);
    const int n =
        snprintf(text, sizeof text, "%" PRId64 " %" PRId64, c->num_ops[node], c->tensor_size[node]);
    if (!orr_intern_add(t->texts, (orr_str){text, (size_t)n}, out) ||
        (*out == t->row_count && !add_row(t, &row)))
        return orr_no_memory(err);
    return ORR_OK;
}

/* ---- the step ---- */

typedef struct walk_state {
    double device, host;     /* us: free from then on */
    double beside;           /* the same, of the stream that overlaps with another pass */
    double free[WORK_SLOTS]; /* the same, of collectives that the device waits for */
    double picked;           /* us: when the router was done, whose token counts the host reads */
    double slow;             /* highest clock over the current clock */
    double waits;            /* us the device waits for the host; with ticks */
    double compute;          /* us of all kernels, with those waits; with ticks */
    double speed;            /* slowdown of the host */
} walk_state;

/* Successors of a node start no earlier than its end. */
static void make_ready(const timing *t, uint32_t p, double done)
{
    const work_graph *g = t->g;
    double *const ready = t->ready;
    for (const uint32_t *c = g->child + g->child_first[p], *end = g->child + g->child_first[p + 1];
         c < end; c++)
        /* Not back to one that this walk has passed: the next walk would find it. */
        if (ready[*c]<done && * c> p)
            ready[*c] = done;
}

static bool goes_beside(const work_graph *g, uint32_t p)
{
    const orr_columns *c = &g->t->columns;
    return c->stream && work_is_comm_slot(g->slot[p]) &&
           c->stream[g->node[p]] == ORR__STREAM_BESIDE;
}

/* The prefix of a node's name that identifies the pass of a layer: "mb2.layer17.". */
static orr_str block_of(const orr_trace *t, uint32_t node)
{
    orr_node n;
    orr_trace_node(t, node, &n);
    uint32_t dots = 0;
    for (size_t i = 0; i < n.name.len; i++)
        if (n.name.ptr[i] == '.' && ++dots == 2)
            return (orr_str){n.name.ptr, i};
    return (orr_str){n.name.ptr, 0};
}

static bool begins_block(const timing *t, uint32_t p)
{
    const orr_trace *trace = t->g->t;
    const orr_str a = block_of(trace, t->g->node[p]);
    const orr_str b = p ? block_of(trace, t->g->node[p - 1]) : (orr_str){NULL, 0};
    return a.len != b.len || (a.len && memcmp(a.ptr, b.ptr, a.len) != 0);
}

static bool starts_with(orr_str s, const char *start)
{
    const size_t n = strlen(start);
    return s.len >= n && memcmp(s.ptr, start, n) == 0;
}

/* Does a stage fetch a micro-batch's tokens from its host here?  The first stage does for its
 * embedding, "mb3.embedding.lookup", the last for its loss, "mb3.head.norm"; a stage that is both
 * fetches them once.  last: the previous micro-batch. */
static bool takes_tokens(const timing *t, uint32_t p, orr_str *last)
{
    orr_node n;
    orr_trace_node(t->g->t, t->g->node[p], &n);
    const char *const dot = n.name.len ? memchr(n.name.ptr, '.', n.name.len) : NULL;
    if (!dot || !starts_with(n.name, "mb"))
        return false;
    const orr_str batch = {n.name.ptr, (size_t)(dot - n.name.ptr)};
    const orr_str rest = {dot, n.name.len - batch.len};
    if (!starts_with(rest, ".embedding.lookup") && !starts_with(rest, ".head.norm"))
        return false;
    const bool is_same = batch.len == last->len && memcmp(batch.ptr, last->ptr, batch.len) == 0;
    *last = batch;
    return !is_same;
}

/* A step of a rank that serves, "decode2.layer0.attention": is it the first of its turn?  The host
 * plans a turn, and launches it, by what the one before sampled: it cannot run ahead.  last: the
 * previous turn. */
static bool begins_turn(const timing *t, uint32_t p, orr_str *last)
{
    static const char *const kinds[] = {"prefill", "decode", "mixed", "idle"};
    orr_node n;
    orr_trace_node(t->g->t, t->g->node[p], &n);
    const char *const dot = n.name.len ? memchr(n.name.ptr, '.', n.name.len) : NULL;
    if (!dot || dot == n.name.ptr || dot[-1] < '0' || dot[-1] > '9')
        return false;
    const orr_str turn = {n.name.ptr, (size_t)(dot - n.name.ptr)};
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && !starts_with(turn, kinds[kind]))
        kind++;
    if (kind == sizeof kinds / sizeof *kinds ||
        (turn.len == last->len && memcmp(turn.ptr, last->ptr, turn.len) == 0))
        return false;
    *last = turn;
    return true;
}

/* ---- the steps ---- */

static bool add_step(timing *t, uint32_t place, uint32_t index, uint32_t what)
{
    if (!orr_grow(&t->steps, &t->step_room, t->step_count + 1))
        return false;
    t->steps[t->step_count++] = (walk_step){place, index, what};
    return true;
}

static bool holds_device(const work_graph *g, uint32_t p)
{
    const orr_columns *c = &g->t->columns;
    if (!c->comm_size || c->comm_size[g->node[p]] <= 0)
        return false;
    for (uint32_t e = g->child_first[p]; e < g->child_first[p + 1]; e++)
        /* Nodes are in program order: a child that follows soon blocks the device. */
        if (g->child[e] <= p + 4 && g->slot[g->child[e]] == WORK_SLOT_COMP)
            return true;
    return false;
}

/* While steps are found, t->ready counts the parents whose ends a walk knows. */
static bool count_parent(timing *t, uint32_t p)
{
    const work_graph *g = t->g;
    bool has_comm = false;
    for (uint32_t e = g->child_first[p]; e < g->child_first[p + 1]; e++) {
        const uint32_t child = g->child[e];
        if (work_is_comm_slot(g->slot[child])) {
            t->ready[child]++;
            has_comm = true;
        }
    }
    return has_comm;
}

/* Not behind a message, whose sender is another rank. */
static bool knows_parents(const timing *t, uint32_t p)
{
    return t->ready[p] == (double)t->g->parents[p];
}

static bool ends_with(orr_str s, const char *end)
{
    const size_t n = strlen(end);
    return s.len >= n && memcmp(s.ptr + s.len - n, end, n) == 0;
}

static uint32_t issue_of(const timing *t, uint32_t p)
{
    const orr_software *s = t->software;
    const orr_columns *c = &t->g->t->columns;
    orr_node n;
    if (s->tensor_us > s->collective_us && c->stream &&
        c->stream[t->g->node[p]] == ORR__STREAM_TENSOR)
        return STEP_TENSOR;
    if (s->gather_us <= 0)
        return 0;
    orr_trace_node(t->g->t, t->g->node[p], &n);
    return ends_with(n.name, "weights.gather")         ? STEP_GATHER
           : ends_with(n.name, "weights.gather.again") ? STEP_AGAIN
           : c->comm_type && c->comm_type[t->g->node[p]] == ORR_COLL_REDUCE_SCATTER &&
                   ends_with(n.name, "grads.reduce")
               ? STEP_REDUCE
               : 0;
}

static double issue_us(const orr_software *s, uint32_t what)
{
    switch (what & STEP_ISSUE) {
    case STEP_TENSOR:
        return s->tensor_us;
    case STEP_GATHER:
        return s->collective_us + s->gather_us;
    case STEP_AGAIN:
        return s->collective_us + s->again_us;
    case STEP_REDUCE:
        return s->collective_us + s->reduce_us;
    default:
        return s->collective_us;
    }
}

/* What the device waits for, as if it met nobody else on its links. */
static bool add_communication(timing *t, uint32_t p)
{
    const uint8_t type = t->g->t->columns.type[t->g->node[p]];
    uint32_t what = STEP_COMM;
    if (type != ORR_NODE_COMM_COLL)
        what |= t->software->waits_for_messages && type == ORR_NODE_COMM_RECV ? STEP_MESSAGE : 0;
    else if (t->has_beside && goes_beside(t->g, p))
        what |= STEP_BESIDE;
    else
        what |= holds_device(t->g, p) ? STEP_HOLDS : 0;
    if (what == STEP_COMM && t->software->collective_us == 0)
        return true; /* costs nobody time */
    if (what & (STEP_HOLDS | STEP_BESIDE)) {
        what |= knows_parents(t, p) ? STEP_READY : 0;
        count_parent(t, p);
    }
    if (type == ORR_NODE_COMM_COLL)
        what |= issue_of(t, p);
    uint32_t index = 0;
    return (!(what & (STEP_BESIDE | STEP_HOLDS)) || work_comm_find(t->comm, p, &index)) &&
           add_step(t, p, index, what);
}

/* last: the micro-batch or turn before. */
static bool add_kernels_of(timing *t, uint32_t p, uint32_t row, orr_str *last)
{
    const orr_software *s = t->software;
    uint32_t what = t->has_beside ? STEP_READY : 0;
    what |= count_parent(t, p) ? STEP_FEEDS : 0; /* or not, if link_steps says so */
    if (s->micro_batch_us > 0 && takes_tokens(t, p, last))
        what |= STEP_TOKENS;
    if (s->host > 0 && !t->has_grads && begins_turn(t, p, last))
        what |= STEP_TURN;
    if (s->block_us > 0 && begins_block(t, p))
        what |= STEP_BLOCK;
    if (s->waits_for_experts && t->rows[row].picks_experts)
        what |= STEP_EXPERTS;
    t->rows[row].uses++;
    t->flops += t->rows[row].flops;
    t->timed++;
    return add_step(t, p, row, what);
}

static bool is_child(const work_graph *g, uint32_t p, uint32_t child)
{
    for (uint32_t e = g->child_first[p]; e < g->child_first[p + 1]; e++)
        if (g->child[e] == child)
            return true;
    return false;
}

/* Must a walk tell some communication when this node is done?  Collectives of one stream follow
 * each other anyway. */
static bool feeds(const timing *t, uint32_t p)
{
    const work_graph *g = t->g;
    for (uint32_t e = g->child_first[p]; e < g->child_first[p + 1]; e++)
        if (work_is_comm_slot(g->slot[g->child[e]]) && t->ready[g->child[e]] < 0 &&
            g->slot[g->child[e]] != g->slot[p])
            return true;
    return false;
}

/* Most collectives follow the kernels that make their input and are followed by those that take
 * their output: there the device has nothing else to do, and a walk need not ask who waits for
 * whom. */
static bool is_chain(const timing *t, const walk_step *s)
{
    const work_graph *g = t->g;
    return !t->has_beside && form_of(s) == (STEP_COMM | STEP_HOLDS | STEP_READY) && s > t->steps &&
           s + 1 < t->steps + t->step_count && !(s[-1].what & STEP_COMM) &&
           !(s[1].what & STEP_COMM) && is_child(g, s[-1].place, s->place) &&
           is_child(g, s->place, s[1].place) && t->ready[s->place] == 0 && !feeds(t, s->place);
}

/* A collective may wait for one of another stream longer than the device does. */
static void mark_other_streams(timing *t, uint32_t p)
{
    const work_graph *g = t->g;
    for (uint32_t e = g->child_first[p]; e < g->child_first[p + 1]; e++)
        if (work_is_comm_slot(g->slot[g->child[e]]) && g->slot[g->child[e]] != g->slot[p])
            t->ready[g->child[e]] = -1;
}

/* Which times a walk has to keep, beside those of device and host. */
static void link_steps(timing *t)
{
    const work_graph *g = t->g;
    walk_step *const end = t->steps + t->step_count;
    /* From here on it is below 0 where a walk has to keep the time. */
    memset(t->ready, 0, g->count * sizeof *t->ready);
    for (const walk_step *s = t->steps; s < end; s++)
        if (s->what & STEP_HOLDS)
            mark_other_streams(t, s->place);
    for (size_t i = t->step_count; i-- > 0;) { /* children first */
        walk_step *const s = &t->steps[i];
        if (!(s->what & STEP_HOLDS))
            continue;
        if (is_chain(t, s)) {
            s->what = STEP_COMM | STEP_HOLDS | STEP_CHAIN | (s->what & STEP_ISSUE);
            continue;
        }
        if (s->what & STEP_READY)
            t->ready[s->place] = -1;
        for (uint32_t e = g->child_first[s->place]; e < g->child_first[s->place + 1]; e++)
            if (!work_is_comm_slot(g->slot[g->child[e]]))
                t->ready[g->child[e]] = -1;
    }
    for (walk_step *s = t->steps; s < end; s++) {
        if (s->what & STEP_COMM)
            continue;
        if (t->ready[s->place] < 0)
            s->what |= STEP_READY;
        if (t->has_beside)
            s->what |= STEP_FEEDS;
        else if (s->what & STEP_FEEDS && !feeds(t, s->place))
            s->what &= ~(uint32_t)STEP_FEEDS;
    }
    memset(t->ready, 0, g->count * sizeof *t->ready);
}

static orr_code find_steps(timing *t, orr_error *err)
{
    const work_graph *g = t->g;
    orr_str batch = {"", 0}; /* or turn */
    size_t last = SIZE_MAX;
    for (uint32_t p = 0; p < g->count; p++) {
        uint32_t row = NO_ROW;
        const orr_code code =
            g->slot[p] == WORK_SLOT_COMP ? row_of_node(t, g->node[p], &row, err) : ORR_OK;
        if (code)
            return code;
        bool ok = true;
        if (row != NO_ROW) {
            last = t->step_count;
            ok = add_kernels_of(t, p, row, &batch);
        } else if (g->slot[p] == WORK_SLOT_RECV || work_is_comm_slot(g->slot[p])) {
            ok = add_communication(t, p);
        }
        if (!ok)
            return orr_no_memory(err);
    }
    if (last != SIZE_MAX && t->has_grads) /* where a device has its queue */
        t->steps[last].what |= STEP_LAST;
    if (t->step_count)
        link_steps(t);
    t->comm_us = work_comm_us(t->comm);
    t->now = orr_alloc(t->row_count, sizeof *t->now);
    return t->now ? ORR_OK : orr_no_memory(err);
}

/* ---- passes over them ---- */

/* Left as the next walk expects it. */
static double take_ready(const timing *t, uint32_t p)
{
    const double at = t->ready[p];
    t->ready[p] = 0;
    return at;
}

/* As in a run, it begins when its input is there, and the device goes on with what does not need
 * it. */
static void hold(const timing *t, walk_state *w, const walk_step *s, double at)
{
    double *const free = &w->free[t->g->slot[s->place]];
    *free = (at < *free ? *free : at) + t->comm_us[s->index];
    make_ready(t, s->place, *free);
}

/* The rare ones. */
static void walk_communication(const timing *t, walk_state *w, const walk_step *s)
{
    if (s->what & STEP_MESSAGE && w->host < w->device)
        w->host = w->device;
    if (s->what & STEP_BESIDE) {
        /* Before an exchange the host waits for the token counts copied after the router; work that
         * it issued since then continues. */
        w->host = fmax(w->host, w->picked);
        const double at = fmax(t->ready[s->place], s->what & STEP_READY ? 0 : w->host);
        w->beside = fmax(w->beside, at) + t->comm_us[s->index];
        make_ready(t, s->place, w->beside);
    }
    if (s->what & STEP_HOLDS) {
        const double ready = take_ready(t, s->place);
        hold(t, w, s, s->what & STEP_READY ? ready : fmax(w->device, w->host));
    }
}

static void before_kernels(const timing *t, walk_state *w, const walk_step *s)
{
    if (s->what & STEP_TOKENS)
        w->host = fmax(w->host, w->device) + t->software->micro_batch_us * w->speed;
    if (s->what & STEP_TURN)
        w->host = fmax(w->host, w->device);
    w->host += t->now[s->index].host_us;
    if (s->what & STEP_LAST)
        w->host += t->software->step_us * w->speed;
    if (s->what & STEP_BLOCK)
        w->host += t->software->block_us * w->speed;
}

static void after_kernels(const timing *t, walk_state *w, const walk_step *s)
{
    if (s->what & STEP_EXPERTS) {
        w->picked = w->device;
        if (!t->has_beside)
            w->host = fmax(w->host, w->device);
    }
}

/* Through all steps in program order; ticks NULL: only to find when the device is done. */
static void walk(const timing *t, walk_state *w, uint64_t *ticks)
{
    w->waits = w->beside = w->picked = w->compute = 0;
    memset(w->free, 0, sizeof w->free);
    if (t->has_beside)
        memset(t->ready, 0, t->g->count * sizeof *t->ready);
    const double comm_host_us = t->software->collective_us * w->speed;
    for (size_t i = 0; i < t->row_count; i++) {
        const kernel_row *r = &t->rows[i];
        const double host_us = (t->has_grads ? r->host_us : r->alone_us) * w->speed;
        t->now[i] = (row_now){r->fixed_us + r->clocked_us * w->slow, host_us, host_us * 0.5};
    }
    double host = 0, device = 0; /* in registers, where the usual steps need nothing else */
    for (const walk_step *s = t->steps, *end = s + t->step_count; s < end; s++) {
        if (s->what & STEP_COMM) {
            host += s->what & STEP_ISSUE ? issue_us(t->software, s->what) * w->speed : comm_host_us;
            if (s->what & STEP_CHAIN) {
                double *const free = &w->free[t->g->slot[s->place]];
                device = *free = (device < *free ? *free : device) + t->comm_us[s->index];
            } else if (form_of(s) == (STEP_COMM | STEP_HOLDS | STEP_READY)) {
                hold(t, w, s, take_ready(t, s->place));
            } else if (form_of(s) != STEP_COMM) {
                w->host = host;
                w->device = device;
                walk_communication(t, w, s);
                host = w->host;
                device = w->device;
            }
            continue;
        }
        const row_now *r = &t->now[s->index];
        if (s->what & STEP_READY) {
            const double ready = take_ready(t, s->place);
            device = device < ready ? ready : device;
        }
        if (s->what & STEP_RARE) {
            w->host = host;
            w->device = device;
            before_kernels(t, w, s);
            host = w->host;
            device = w->device;
        } else {
            host += r->host_us;
        }
        /* Kernels of a node are launched one after the other, so the first starts before the host
         * has issued all of them: count half of its work. */
        const double wait = host - r->half_us - device;
        const double whole = (wait > 0 ? wait : 0) + r->us;
        device += whole;
        if (s->what & STEP_FEEDS)
            make_ready(t, s->place, device);
        if (s->what & STEP_RARE) {
            w->host = host;
            w->device = device;
            after_kernels(t, w, s);
            host = w->host;
        }
        if (ticks) {
            w->compute += whole;
            w->waits += wait > 0 ? wait : 0;
            /* Never 0, which would mean the recorded duration. */
            ticks[s->place] = orr_max_u64(orr_ticks(whole * 1e3 + 0.5), 1);
        }
    }
    w->host = host;
    w->device = device;
}

/* How much longer the step takes if the host is slower by this factor: nothing while the host waits
 * for the device, everything once the device waits for the host. */
static double host_changes(const timing *t, const walk_state *w, double speed)
{
    walk_state other = {.slow = w->slow, .speed = w->speed * speed};
    walk(t, &other, NULL);
    return other.device - w->device;
}

/* Equal kernels have the same error, different ones independent errors; the efficiencies that a
 * roofline assumes are wrong for all its kernels together. */
static void sum_errors(const timing *t, const walk_state *w, work_spread *out)
{
    chip_errors sum = {.low = 0};
    *out = (work_spread){.us = w->compute,
                         .host_share = w->compute > 0 ? w->waits / w->compute : 0,
                         .has_experts = t->has_experts};
    for (uint32_t i = 0; i < t->row_count; i++) {
        const kernel_row *r = &t->rows[i];
        const double guessed = r->uses * r->guessed_us;
        orr__chip_add_error(&sum, r->uses * sqrt(r->low_us2), r->uses * sqrt(r->high_us2));
        orr__chip_add_common(&sum, r->uses * r->assumed_low_us, r->uses * r->assumed_high_us);
        out->guessed_us += guessed;
        if (guessed > out->guessed_most_us) {
            const orr_str text = orr_intern_get(t->texts, i);
            const size_t n = text.len < sizeof out->guessed ? text.len : sizeof out->guessed - 1;
            memcpy(out->guessed, text.ptr, n);
            out->guessed[n] = '\0';
            out->guessed_most_us = guessed;
        }
    }
    const double part = t->peaks         ? PEAKS_ERROR
                        : t->is_compiled ? ORR__COMPILED_ERROR
                                         : ORR__STEP_ERROR;
    const chip_errors errors = orr__chip_errors_of(&sum, (w->compute - w->waits) * part);
    double low2 = errors.low * errors.low, high2 = errors.high * errors.high;
    if (w->host > 0) {
        const double most = exp(t->software->knows_host ? ORR__KNOWN_HOST_ERROR : ORR__HOST_ERROR);
        /* Of the device's time with communication: as much of the computations. */
        const double part_us = w->device > 0 ? w->compute / w->device : 0;
        const double more = part_us * host_changes(t, w, most);
        const double less = part_us * host_changes(t, w, 1 / most);
        low2 += less * less;
        high2 += more * more;
    }
    out->low_us = sqrt(low2);
    out->high_us = sqrt(high2);
}

static void fill_ticks(const timing *t, uint64_t *ticks)
{
    walk_state w = {.slow = 1, .speed = 1 / t->host};
    double mean = 0;
    for (int i = 0; i < ORR__CLOCK_ROUNDS; i++) {
        walk(t, &w, NULL);
        const double chip_flops = t->chip->peak_tflops[ORR_TYPE_BF16] * 1e12;
        const double scale = t->peaks ? chip_flops / t->peaks->flops : 1;
        /* TFLOP/s; with the peaks of a system file, of the chip at the same utilisation. */
        mean = w.device > 0 ? t->flops / w.device * 1e-6 * scale : 0;
        const double before = w.slow;
        w.slow = orr_chip_slowdown(t->chip, mean);
        if (w.slow == before)
            break; /* further rounds would find the same */
    }
    /* Ranks wait for each other, so the slowest device sets the pace. */
    w.slow *= orr_chip_slowest(t->chip, mean, t->deviations);
    walk(t, &w, ticks);
    sum_errors(t, &w, &t->g->spread);
}

/* The preset the trace was made with. */
static const orr_software *software_of(const orr_trace *t)
{
    orr_attrs it = orr_trace_attrs(t);
    orr_attr a;
    char name[64];
    while (t->has_metadata && orr_attrs_next(&it, &a)) {
        const orr_str key = orr__attr_rows[ORR__ATTR_SOFTWARE].name;
        if (a.name.len != key.len || memcmp(a.name.ptr, key.ptr, key.len) != 0 ||
            a.kind != ORR_VALUE_STRING || a.value.s.len >= sizeof name)
            continue;
        memcpy(name, a.value.s.ptr, a.value.s.len);
        name[a.value.s.len] = '\0';
        return orr_software_find(name);
    }
    return NULL;
}

orr_code work_graph_time(
    work_graph *g, const work_timing *how, uint32_t ranks, uint32_t *timed, orr_error *err)
{
    static const orr_software none = {.name = "none"};
    timing t = {.g = g,
                .chip = how->chip,
                .peaks = how->peaks,
                .memory = how->memory > 0 ? how->memory : 1,
                .host = how->host > 0 ? how->host : 1,
                .deviations = orr_highest_of(ranks),
                .comm = how->comm,
                .texts = orr_intern_create()};
    const orr_software *const made_with = software_of(g->t);
    t.software = how->software ? how->software : made_with;
    if (!t.software)
        t.software = &none;
    t.is_compiled = made_with ? made_with->is_compiled : t.software->is_compiled;
    while (t.seen_mask + 1 < g->count && t.seen_mask + 1 < SEEN_MOST)
        t.seen_mask = t.seen_mask * 2 + 1;
    t.seen = orr_alloc(t.seen_mask + 1, sizeof *t.seen);
    g->ticks = orr_alloc(g->count, sizeof *g->ticks);
    uint32_t beside = 0;
    while (beside < g->count && !goes_beside(g, beside))
        beside++;
    t.has_beside = beside < g->count;
    t.ready = orr_alloc(g->count, sizeof *t.ready);
    orr_code code =
        t.texts && t.seen && g->ticks && t.ready ? find_steps(&t, err) : orr_no_memory(err);
    if (!code)
        fill_ticks(&t, g->ticks);
    *timed += t.timed;
    orr_intern_destroy(t.texts);
    orr_free(t.ready);
    orr_free(t.seen);
    orr_free(t.steps);
    orr_free(t.now);
    orr_free(t.rows);
    return code;
}

orr_code work_graph_pace(work_graph *g,
                         const work_timing *how,
                         double memory,
                         double host,
                         uint32_t ranks,
                         const uint64_t **out,
                         orr_error *err)
{
    for (size_t i = 0; i < g->pace_count; i++)
        if (g->paces[i].memory == memory && g->paces[i].host == host) {
            *out = g->paces[i].ticks;
            return ORR_OK;
        }
    if (!orr_grow(&g->paces, &g->pace_room, g->pace_count + 1))
        return orr_no_memory(err);
    /* A copy: interval and ticks of the graph are those of the usual ranks. */
    work_graph here = *g;
    work_timing slow = *how;
    uint32_t timed = 0;
    here.ticks = NULL;
    slow.memory = (how->memory > 0 ? how->memory : 1) * memory;
    slow.host = (how->host > 0 ? how->host : 1) * host;
    const orr_code code = work_graph_time(&here, &slow, ranks, &timed, err);
    /* Kept for work_graph_fini also if it failed. */
    g->paces[g->pace_count++] = (work_pace){memory, host, here.ticks};
    *out = here.ticks;
    return code;
}

orr_code work_graph_ask(work_graph *g, const orr_compute_ops *model, orr_error *err)
{
    const orr_columns *c = orr_trace_columns(g->t);
    if (!g->ticks)
        g->ticks = orr_alloc(g->count, sizeof *g->ticks);
    if (!g->ticks)
        return orr_no_memory(err);
    for (uint32_t p = 0; p < g->count; p++) {
        const uint32_t node = g->node[p];
        orr_ps ps = 0;
        if (c->type[node] != ORR_NODE_COMP)
            continue;
        const orr_code code = model->time(model->context, g->t, node, &ps, err);
        if (code)
            return code;
        const orr_where w = orr_trace_where(g->t, node);
        if (ps < 0)
            return orr_fail(err, ORR_EUSAGE, &w,
                            "the compute model says %" PRId64 " ps for node %" PRIu64, ps,
                            c->id[node]);
        if (ps > 0)
            /* At least one tick: 0 means no answer. */
            g->ticks[p] = ps < 1500 ? 1 : ((uint64_t)ps + 500) / 1000;
    }
    return ORR_OK;
}

/* ---- for bounds on a step (src/plan) ---- */

static timing timing_of(const work_device *d)
{
    return (timing){.chip = d->chip, .software = d->software, .memory = 1};
}

static void add_sum(work_kernel_sum *out, const kernel_row *r)
{
    out->fixed_us += r->fixed_us;
    out->clocked_us += r->clocked_us;
    out->flops += r->flops;
    out->host_us += r->host_us;
}

bool work_add_kernel(const work_device *d, const orr_kernel *k, work_kernel_sum *out)
{
    const timing t = timing_of(d);
    kernel_row r = {0};
    if (!add_kernel(&t, k, &r))
        return false;
    add_sum(out, &r);
    return true;
}

void work_add_roofline(const work_device *d, double ops, double bytes, work_kernel_sum *out)
{
    const timing t = timing_of(d);
    const kernel_row r = roofline_row(&t, ops, bytes);
    add_sum(out, &r);
}
