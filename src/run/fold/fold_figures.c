/* SPDX-License-Identifier: Apache-2.0 */
/* fold_figures.c - the figures of nodes and ranks, one number per member: what note_start and note_end of workload.c and
 * the hooks of watch.c do for one rank. */
#include "fold_impl.h"

#include <stdlib.h>

static void add_span(fold_times *t, fold_val *sum, fold_val now, fold_val since)
{
    *sum = fold_add(t, *sum, fold_sub(t, now, since));
}

static fold_val compute_so_far(const fold_sim *f, const fold_class *c)
{
    fold_val sum = c->gpu_time;
    if (c->npu->active[WORK_ON_DEVICE])
        add_span(f->times, &sum, c->now, c->active_since[WORK_ON_DEVICE]);
    return sum;
}

void fold_node_start(run_npu *n, uint32_t place)
{
    const fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    const int k = work_class_of(n, place);
    const uint8_t slot = n->graph->slot[place];
    c->started_at[place] = c->now;
    if (k < 0) {
        n->result.has_other_nodes = true;
    } else {
        n->has_run[k] = true;
        if (n->active[k]++ == 0)
            c->active_since[k] = c->now;
    }
    if (c->active++ == 0)
        c->busy_since = c->now;
    if (work_is_comm_slot(slot))
        c->compute_before[slot] = compute_so_far(f, c);
    if (n->sim->watch->keeps_steps)
        fold_log_start(c, place);
}

/* A communication has ended. */
static void count_node(fold_sim *f, fold_class *c, uint32_t place)
{
    run_npu *n = c->npu;
    const orr_columns *col = &n->graph->t->columns;
    const uint32_t i = n->graph->node[place];
    const uint8_t slot = n->graph->slot[place];
    watch_tally *t = watch_tally_of(n, place);
    if (!t) {
        run_no_memory(n->sim);
        return;
    }
    const fold_val took = fold_sub(f->times, c->now, c->started_at[place]);
    t->count += c->count;
    t->time += (uint64_t)fold_sum(f->times, took, c->count);
    t->bytes +=
        col->comm_size && col->comm_size[i] > 0 ? (uint64_t)col->comm_size[i] * c->count : 0;
    if ((uint64_t)fold_most(f->times, took) > t->longest)
        t->longest = (uint64_t)fold_most(f->times, took);
    if (!work_is_comm_slot(slot))
        return;
    const fold_val hidden = fold_sub(f->times, compute_so_far(f, c), c->compute_before[slot]);
    t->exposed += (uint64_t)fold_sum(f->times, fold_sub(f->times, took, hidden), c->count);
}

void fold_node_end(run_npu *n, uint32_t place)
{
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    const int k = work_class_of(n, place);
    const uint8_t type = n->graph->t->columns.type[n->graph->node[place]];
    c->wall = c->now;
    if (k >= 0 && --n->active[k] == 0)
        add_span(f->times, k == WORK_ON_DEVICE ? &c->gpu_time : &c->comm_time, c->now,
                 c->active_since[k]);
    if (n->graph->slot[place] == WORK_SLOT_CPU)
        add_span(f->times, &c->cpu_time, c->now, c->started_at[place]);
    else if (type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE)
        add_span(f->times, &c->memory_time, c->now, c->started_at[place]);
    n->sim->watch->nodes_done += c->count;
    if (--c->active == 0)
        add_span(f->times, &c->busy, c->now, c->busy_since);
    if (k == WORK_COMMUNICATES)
        count_node(f, c, place);
    if (n->sim->watch->keeps_steps)
        fold_log_end(c, place);
}

void fold_rank_end(run_npu *n)
{
    fold_class *c = fold_class_at(n);
    c->finished = c->now;
    n->sim->finished += c->count;
}

/* ---- results ---- */

static uint64_t number_at(const fold_sim *f, fold_val v, uint32_t member)
{
    return (uint64_t)fold_at(f->times, v, member);
}

/* Up to now, where something is under way. */
static void put_class(const fold_sim *f, const fold_class *c)
{
    const bool is_finished = c->npu->result.finished_at != ORR_NEVER;
    const fold_val compute = compute_so_far(f, c);
    fold_val comm = c->comm_time, busy = c->busy;
    if (c->npu->active[WORK_COMMUNICATES])
        add_span(f->times, &comm, c->now, c->active_since[WORK_COMMUNICATES]);
    if (c->active)
        add_span(f->times, &busy, c->now, c->busy_since);
    for (uint32_t m = 0; m < c->count; m++) {
        const uint32_t rank = c->ranks[m];
        orr_sim_rank_result *r = &f->results[rank];
        *r = c->npu->result;
        r->finished_at = is_finished ? number_at(f, c->finished, m) : ORR_NEVER;
        r->wall = number_at(f, c->wall, m);
        r->gpu_time = number_at(f, compute, m);
        r->comm_time = number_at(f, comm, m);
        r->cpu_time = number_at(f, c->cpu_time, m);
        r->memory_time = number_at(f, c->memory_time, m);
        f->busy[rank] = number_at(f, busy, m);
    }
}

typedef struct finish {
    uint64_t at;
    uint32_t rank;
} finish;

static int by_time(const void *a, const void *b)
{
    const finish *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

bool fold_put_finish_order(orr_sim *s)
{
    finish *list = orr_alloc(s->npu_count, sizeof *list);
    uint32_t count = 0;
    bool is_sorted = true;
    if (!list)
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint64_t at = orr_sim_rank(s, r)->finished_at;
        if (at == ORR_NEVER)
            continue;
        is_sorted = is_sorted && (count == 0 || at >= list[count - 1].at);
        list[count++] = (finish){at, r};
    }
    if (!is_sorted)
        qsort(list, count, sizeof *list, by_time);
    for (uint32_t i = 0; i < count; i++)
        s->finish_order[i] = list[i].rank;
    s->finished = count;
    orr_free(list);
    return true;
}

bool fold_make_results(fold_sim *f)
{
    const uint32_t ranks = f->s->npu_count;
    if (!f->results)
        f->results = orr_arena_new(f->arena, ranks, orr_sim_rank_result);
    if (!f->busy)
        f->busy = orr_arena_new(f->arena, ranks, uint64_t);
    if (!f->results || !f->busy)
        return false;
    for (uint32_t c = 0; c < f->class_count; c++)
        put_class(f, &f->classes[c]);
    return fold_put_finish_order(f->s);
}

const orr_sim_rank_result *fold_rank(const fold_sim *f, uint32_t rank)
{
    return &f->results[rank];
}

uint64_t fold_busy(const fold_sim *f, uint32_t rank)
{
    return f->busy[rank];
}
