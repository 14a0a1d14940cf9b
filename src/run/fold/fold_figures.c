/* SPDX-License-Identifier: Apache-2.0 */
/* fold_figures.c - statistics of nodes and ranks from the log of a class, after the run: what
 * note_start and note_end of workload.c and the hooks of watch.c accumulate during an unfolded run.
 *
 * Members of a class may have their events in different orders, so sums over time are made per
 * member, except in a *window* where all members do the same up to a constant delay; members with
 * equal times are summed once.  Cost: nodes of the class, plus distinct members x nodes outside the
 * window. */
#include "fold_impl.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"

#include <stdlib.h>

void fold_node_start(run_npu *n, uint32_t place)
{
    const int k = work_class_of(n, place);
    if (k < 0)
        n->result.has_other_nodes = true;
    else
        n->has_run[k] = true;
    if (n->sim->fold->may_merge)
        fold_merge_note(fold_class_at(n), place, false);
    fold_log_start(fold_class_at(n), place);
}

void fold_node_end(run_npu *n, uint32_t place)
{
    fold_class *c = fold_class_at(n);
    n->sim->watch->nodes_done += c->count;
    if (n->sim->fold->may_merge)
        fold_merge_note(c, place, true);
    fold_log_end(c, place);
    /* Rows are created in order of appearance. */
    if (work_class_of(n, place) == WORK_COMMUNICATES && !watch_tally_of(n, place))
        run_no_memory(n->sim);
}

void fold_rank_end(run_npu *n)
{
    n->sim->finished += fold_class_at(n)->count;
}

/* ---- one member, or all with the same times ---- */

typedef struct interval {
    int64_t start, end;
    int64_t flows; /* when its data could start to flow */
    uint32_t step;
} interval;

/* A part of a step, for one watch_use. */
typedef struct piece {
    int64_t start, end;
    uint32_t step;
    uint8_t use;
} piece;

/* Where the time of a member went. */
typedef struct usage {
    int64_t compute, comm, host, memory, busy, wall;
    int64_t comm_until, busy_until; /* time is counted up to here */
    /* By watch_use: time in this use or one of higher precedence.  So a moment counts once, for the
     * first that applies. */
    int64_t upto[WATCH_USES], upto_until[WATCH_USES];
    int64_t flowing, flowing_until; /* communication with data flowing, overlapped or not */
} usage;

/* Properties of a step, computed once and used for each distinct member. */
typedef struct facts {
    uint64_t bytes;
    uint32_t tally; /* of equal communication; NONE: not communication */
    int8_t kind;    /* work_class_of */
    bool is_host, is_memory, is_in_slot;
    uint8_t use, held_use; /* watch_use */
} facts;

/* Times of a member are relative to its *delay*: the spread shared by most times.  These are then
 * even, i.e. equal for all members:
 *
 *     member 0   ==|-comm-|====compute====|--comm--|==compute==
 *     member 1   =|-comm--|====compute====|---comm---|==compute==
 *                         |<--- window -->  only even times inside
 *
 * The window is summed once; the rest once per set of members with equal times. */
typedef struct sweep {
    fold_sim *f;
    fold_class *c;
    uint32_t delay;     /* a spread; 0: no member is delayed */
    uint32_t like_flow; /* the same spread in the table of flows; NONE: not there */
    int64_t lo, hi;     /* the window: only even times inside */
    uint32_t member;    /* whose times are used; even times are those of all */
    interval *list;     /* in the order in which they start */
    size_t count;
    piece *pieces; /* likewise; NULL: times are not split */
    size_t piece_count;
    const facts *facts; /* by step */
    /* On the device, in sequence: those before, in and after the window; and for each the compute
     * time since the first in the window. */
    interval *compute;
    int64_t *before;
    size_t compute_first, compute_count;  /* of the current part */
    size_t early, core_first, core_count; /* before the window, and in it */
    size_t near;                          /* index of the last lookup, as a hint */
} sweep;

/* Before all times, and far enough from the end of the range that differences do not wrap. */
#define LONG_AGO (INT64_MIN / 4)

/* Ties by step: a total order, so that the result does not depend on the sort. */
static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Insertion sort: nearly sorted input. */
static void sort_intervals(interval *list, size_t count)
{
    size_t moves = 0;
    for (size_t i = 1; i < count; i++) {
        const interval one = list[i];
        size_t k = i;
        if (by_start(&list[i - 1], &one) <= 0)
            continue;
        while (k > 0 && moves <= 8 * count && by_start(&list[k - 1], &one) > 0) {
            list[k] = list[k - 1];
            k--;
            moves++;
        }
        list[k] = one;
        /* Not nearly sorted: a full sort is cheaper. */
        if (moves > 8 * count) {
            orr_sort(list, count, sizeof *list, by_start);
            return;
        }
    }
}

enum { NEAR = 16 };

/* How many start before t.  Lookups come in time order, so the previous result is a good first
 * guess. */
static size_t computes_before(const sweep *v, int64_t t)
{
    const interval *list = v->compute + v->compute_first;
    size_t low = v->near > NEAR ? v->near - NEAR : 0;
    size_t high = v->compute_count - low > 2 * NEAR ? low + 2 * NEAR : v->compute_count;
    /* Bad guess: search the whole list. */
    if (low > 0 && list[low - 1].start >= t)
        low = 0;
    if (high < v->compute_count && list[high].start < t)
        high = v->compute_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (list[mid].start < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Device time before t, relative to a fixed moment. */
static int64_t compute_before(sweep *v, int64_t t)
{
    if (v->compute_count == 0)
        return 0;
    v->near = computes_before(v, t);
    if (v->near == 0)
        return v->before[v->compute_first];
    const size_t at = v->compute_first + v->near - 1;
    const interval *last = &v->compute[at];
    /* Nodes on the device do not overlap: one slot. */
    return v->before[at] + (t < last->end ? t : last->end) - last->start;
}

/* False: out of memory. */
static bool find_facts(run_npu *n, const fold_log *l, facts *out)
{
    const orr_columns *col = &n->graph->t->columns;
    for (size_t i = 0; i < l->count; i++) {
        const uint32_t place = l->steps[i].place, node = n->graph->node[place];
        const uint8_t slot = n->graph->slot[place], type = col->type[node];
        out[i] = (facts){.tally = RUN_NONE,
                         .kind = (int8_t)work_class_of(n, place),
                         .is_host = slot == WORK_SLOT_CPU,
                         .is_memory = type == ORR_NODE_MEM_LOAD || type == ORR_NODE_MEM_STORE,
                         .is_in_slot = work_is_comm_slot(slot),
                         .held_use = type == ORR_NODE_COMM_RECV ? WATCH_BUBBLE : WATCH_WAITING};
        out[i].use = out[i].kind == WORK_ON_DEVICE      ? WATCH_COMPUTE
                     : out[i].kind == WORK_COMMUNICATES ? WATCH_EXPOSED
                     : out[i].is_host                   ? WATCH_HOST
                                                        : WATCH_MEMORY;
        if (out[i].kind != WORK_COMMUNICATES || !l->steps[i].has_ended)
            continue;
        const watch_tally *t = watch_tally_of(n, place);
        if (!t)
            return false;
        /* By index: rows may move when another kind is added. */
        out[i].tally = (uint32_t)(t - n->sim->watch->tallies);
        out[i].bytes =
            col->comm_size && col->comm_size[node] > 0 ? (uint64_t)col->comm_size[node] : 0;
    }
    return true;
}

/* Accounts for a node that ended on `weight` ranks. */
static void count_step(sweep *v, const interval *at, uint32_t weight, usage *d)
{
    const facts *step = &v->facts[at->step];
    const int64_t took = at->end - (step->tally == RUN_NONE ? at->start : at->flows);
    d->wall = at->end > d->wall ? at->end : d->wall;
    if (step->is_host)
        d->host += took;
    else if (step->is_memory)
        d->memory += took;
    if (step->tally == RUN_NONE)
        return;
    watch_tally *t = &v->c->npu->sim->watch->tallies[step->tally];
    t->count += weight;
    t->time += (uint64_t)took * weight;
    t->waited += (uint64_t)(at->flows - at->start) * weight;
    t->bytes += step->bytes * weight;
    if ((uint64_t)took > t->longest)
        t->longest = (uint64_t)took;
    /* Receives have no slot, and so no exposed time (watch.c). */
    if (step->is_in_slot) {
        const int64_t before = compute_before(v, at->flows);
        t->exposed += (uint64_t)(took - (compute_before(v, at->end) - before)) * weight;
    }
}

/* In time order: what an interval adds to the union of the previous ones. */
static void cover(const sweep *v, const interval *at, int64_t from, int64_t to, usage *d)
{
    const int64_t start = at->start > from ? at->start : from, end = at->end < to ? at->end : to;
    const int k = v->facts[at->step].kind;
    if (end <= start)
        return;
    /* Intervals are sorted by start, so a union is a running end. */
    if (end > d->busy_until) {
        d->busy += end - (start > d->busy_until ? start : d->busy_until);
        d->busy_until = end;
    }
    if (k == WORK_COMMUNICATES && end > d->comm_until) {
        d->comm += end - (start > d->comm_until ? start : d->comm_until);
        d->comm_until = end;
    }
    if (k == WORK_ON_DEVICE)
        d->compute += end - start;
}

/* ---- where a rank's time goes ---- */

static int by_piece_start(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Insertion sort: nearly sorted input. */
static void sort_pieces(piece *list, size_t count)
{
    size_t moves = 0;
    for (size_t i = 1; i < count; i++) {
        const piece one = list[i];
        size_t k = i;
        while (k > 0 && moves <= 8 * count && by_piece_start(&list[k - 1], &one) > 0) {
            list[k] = list[k - 1];
            k--;
            moves++;
        }
        list[k] = one;
        if (moves > 8 * count) {
            orr_sort(list, count, sizeof *list, by_piece_start);
            return;
        }
    }
}

static void add_pieces(sweep *v, const interval *at)
{
    const facts *step = &v->facts[at->step];
    if (!v->pieces)
        return;
    /* It waits until data flows, then communicates. */
    if (step->use == WATCH_EXPOSED && at->flows > at->start)
        v->pieces[v->piece_count++] = (piece){at->start, at->flows, at->step, step->held_use};
    v->pieces[v->piece_count++] =
        (piece){step->use == WATCH_EXPOSED ? at->flows : at->start, at->end, at->step, step->use};
}

static void cover_up_to(int64_t start, int64_t end, int64_t *sum, int64_t *until)
{
    if (end <= *until || end <= start)
        return;
    *sum += end - (start > *until ? start : *until);
    *until = end;
}

/* In time order, between two times. */
static void spend(sweep *v, int64_t from, int64_t to, usage *d)
{
    sort_pieces(v->pieces, v->piece_count);
    for (size_t i = 0; i < v->piece_count; i++) {
        const piece *p = &v->pieces[i];
        const int64_t start = p->start > from ? p->start : from, end = p->end < to ? p->end : to;
        /* A moment in one use belongs to all unions from there on; the difference of two neighbours
         * is the time of one use alone. */
        for (unsigned u = p->use; u < WATCH_USES; u++)
            cover_up_to(start, end, &d->upto[u], &d->upto_until[u]);
        if (p->use == WATCH_EXPOSED)
            cover_up_to(start, end, &d->flowing, &d->flowing_until);
    }
}

/* ---- a class ---- */

static bool is_even(const sweep *v, fold_val at)
{
    /* A spread is stored once, so equal numbers are equal times. */
    return at.by == v->delay;
}

/* Of a member, or of all if times are even. */
static int64_t time_at(const sweep *v, fold_val at, uint32_t member)
{
    return is_even(v, at) ? at.base
                          : fold_at(v->f->times, at, member) -
                                (v->delay ? fold_spread(v->f->times, v->delay)[member] : 0);
}

static int64_t end_of(const sweep *v, const fold_logged *step, uint32_t member)
{
    if (step->has_ended)
        return time_at(v, step->end, member);
    const int64_t start = time_at(v, step->start, member);
    return v->c->now.base > start ? v->c->now.base : start; /* still running */
}

static bool has_flow(const sweep *v, size_t step)
{
    return v->c->flows && v->c->flows[step].state == FOLD_FLOWS_LATER;
}

static bool is_even_flow(const sweep *v, uint32_t by)
{
    return v->delay ? by == v->like_flow : by == 0;
}

static int64_t flow_at(const sweep *v, const fold_flow *f, uint32_t member)
{
    if (is_even_flow(v, f->by))
        return f->base;
    return f->base + (f->by ? fold_spread(v->f->flow_times, f->by)[member] : 0) -
           (v->delay ? fold_spread(v->f->times, v->delay)[member] : 0);
}

static int64_t flows_of(const sweep *v, size_t step, uint32_t member, int64_t start, int64_t end)
{
    const fold_flow *f = v->c->flows ? &v->c->flows[step] : NULL;
    if (!f || f->state == FOLD_FLOWS_AT_START)
        return start;
    if (f->state == FOLD_FLOWS_NEVER)
        return end;
    const int64_t at = flow_at(v, f, member);
    return at < end ? at : end;
}

static bool is_on_device(const sweep *v, const fold_logged *step)
{
    return v->facts[step - v->c->log.steps].kind == WORK_ON_DEVICE;
}

/* It began and ended within the window. */
static bool is_counted(const sweep *v, const fold_logged *step)
{
    return step->has_ended && is_even(v, step->end) && step->end.base <= v->hi &&
           is_even(v, step->start) && step->start.base >= v->lo && step->start.base < v->hi;
}

/* Compute time from the first node in the window to each of these. */
static void sum_compute(sweep *v, size_t first, size_t end)
{
    sort_intervals(v->compute + first, end - first);
    for (size_t i = first; i < end; i++)
        v->before[i] = i == v->core_first
                           ? 0
                           : v->before[i - 1] + v->compute[i - 1].end - v->compute[i - 1].start;
}

/* Before the window sums run backwards: they are negative, and only differences are used. */
static void sum_compute_back(sweep *v, size_t first)
{
    sort_intervals(v->compute + first, v->core_first - first);
    for (size_t i = v->core_first; i-- > first;)
        v->before[i] = (i + 1 < v->core_first ? v->before[i + 1] : 0) -
                       (v->compute[i].end - v->compute[i].start);
}

/* In the window, for all members at once. */
static void sweep_together(sweep *v, usage *d)
{
    const fold_log *l = &v->c->log;
    size_t end_of_compute = v->core_first;
    v->count = v->near = v->piece_count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const fold_logged *step = &l->steps[i];
        int64_t start = time_at(v, step->start, 0), end = end_of(v, step, 0);
        if (start >= v->hi || (end <= v->lo && start < v->lo))
            continue;
        v->list[v->count] = (interval){start, end, flows_of(v, i, 0, start, end), (uint32_t)i};
        add_pieces(v, &v->list[v->count++]);
        start = start > v->lo ? start : v->lo;
        end = end < v->hi ? end : v->hi;
        if (is_on_device(v, step) && end >= start)
            v->compute[end_of_compute++] = (interval){start, end, start, (uint32_t)i};
    }
    spend(v, v->lo, v->hi, d);
    sum_compute(v, v->core_first, end_of_compute);
    v->compute_first = v->core_first;
    v->compute_count = end_of_compute - v->core_first;
    sort_intervals(v->list, v->count);
    for (size_t i = 0; i < v->count; i++) {
        cover(v, &v->list[i], v->lo, v->hi, d);
        if (is_counted(v, &l->steps[v->list[i].step]))
            count_step(v, &v->list[i], v->c->count, d);
    }
    /* Steps that extend beyond the window were only partly counted here: keep them in the other
     * list. */
    size_t kept = v->core_first;
    for (size_t i = v->core_first; i < end_of_compute; i++)
        if (is_counted(v, &l->steps[v->compute[i].step]))
            v->compute[kept++] = v->compute[i];
    v->core_count = kept - v->core_first;
    sum_compute(v, v->core_first, kept);
}

/* Before the window, or after it. */
static void cover_rest(sweep *v, int64_t from, int64_t to, usage *d)
{
    spend(v, from, to, d);
    for (size_t i = 0; i < v->count && v->list[i].start < to; i++)
        cover(v, &v->list[i], from, to, d);
}

/* Outside the window, for a member and those equal to it. */
static void sweep_rest(sweep *v, const uint32_t *rest, size_t rest_count, uint32_t weight, usage *d)
{
    const fold_log *l = &v->c->log;
    const size_t core_end = v->core_first + v->core_count;
    size_t early = v->core_first - v->early, last = core_end;
    v->compute_first = early;
    v->count = v->near = v->piece_count = 0;
    for (size_t k = 0; k < rest_count; k++) {
        const fold_logged *step = &l->steps[rest[k]];
        const int64_t start = time_at(v, step->start, v->member);
        const int64_t end = end_of(v, step, v->member);
        const interval at = {start, end, flows_of(v, rest[k], v->member, start, end), rest[k]};
        v->list[v->count++] = at;
        add_pieces(v, &at);
        if (is_on_device(v, step))
            /* There is room on both sides of the nodes in the window. */
            v->compute[start < v->lo ? early++ : last++] = at;
    }
    sum_compute_back(v, v->compute_first);
    sum_compute(v, core_end, last);
    v->compute_count = last - v->compute_first;
    sort_intervals(v->list, v->count);
    /* Forget the window's ends: the part before it comes next, and unions advance in time. */
    d->busy_until = d->comm_until = d->flowing_until = LONG_AGO;
    for (unsigned u = 0; u < WATCH_USES; u++)
        d->upto_until[u] = LONG_AGO;
    if (v->lo > LONG_AGO)
        cover_rest(v, LONG_AGO, v->lo, d);
    cover_rest(v, v->hi, INT64_MAX, d);
    for (size_t i = 0; i < v->count; i++)
        if (l->steps[v->list[i].step].has_ended)
            count_step(v, &v->list[i], weight, d);
}

static void put_member(const sweep *v, uint32_t member, const usage *d)
{
    const fold_sim *f = v->f;
    const run_npu *n = v->c->npu;
    const uint32_t rank = v->c->ranks[member];
    orr_sim_rank_result *r = &f->results[rank];
    *r = n->result;
    /* Back from the member's clock to the common one. */
    const int64_t later = v->delay ? fold_spread(f->times, v->delay)[member] : 0;
    r->wall = d->wall ? (uint64_t)(d->wall + later) - f->s->rounds.origin : 0;
    r->finished_at = n->result.finished_at != ORR_NEVER ? r->wall : ORR_NEVER;
    r->gpu_time = (uint64_t)d->compute;
    r->comm_time = (uint64_t)d->comm;
    r->cpu_time = (uint64_t)d->host;
    r->memory_time = (uint64_t)d->memory;
    f->busy[rank] = (uint64_t)d->busy;
    if (!f->flow_times)
        return;
    for (unsigned u = 0; u < WATCH_USES; u++)
        f->spent[rank][u] = (uint64_t)(d->upto[u] - (u ? d->upto[u - 1] : 0));
    /* Overlap of computation and communication. Their sum, less their union. */
    f->spent[rank][WATCH_USES] =
        (uint64_t)(d->upto[WATCH_COMPUTE] + d->flowing - d->upto[WATCH_EXPOSED]);
}

/* ---- members with equal times ---- */

typedef struct like {
    /* a hash of all times, relative to the first */
    uint64_t times;
    uint32_t member;
} like;

static int by_times(const void *a, const void *b)
{
    const like *x = a, *y = b;
    if (x->times != y->times)
        return x->times < y->times ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

#define OF_FLOWS (UINT64_C(1) << 32) /* flow spreads have separate numbers */

static int64_t spread_at(const sweep *v, uint64_t by, uint32_t member)
{
    const fold_times *t = by & OF_FLOWS ? v->f->flow_times : v->f->times;
    const uint32_t own = (uint32_t)by;
    return (own ? fold_spread(t, own)[member] : 0) -
           (v->delay ? fold_spread(v->f->times, v->delay)[member] : 0);
}

static bool is_even_spread(const sweep *v, uint64_t by)
{
    return by & OF_FLOWS ? is_even_flow(v, (uint32_t)by) : (uint32_t)by == v->delay;
}

/* The uneven times of a step; returns how many. */
static unsigned uneven_of(const sweep *v, size_t i, uint64_t by[3], int64_t base[3])
{
    const fold_logged *step = &v->c->log.steps[i];
    unsigned count = 0;
    by[0] = step->start.by;
    base[0] = step->start.base;
    count += !is_even_spread(v, by[0]);
    by[count] = step->end.by;
    base[count] = step->end.base;
    count += step->has_ended && !is_even_spread(v, by[count]);
    if (has_flow(v, i)) {
        by[count] = OF_FLOWS | v->c->flows[i].by;
        base[count] = v->c->flows[i].base;
        count += !is_even_spread(v, by[count]);
    }
    return count;
}

/* Times are compared by a 64-bit hash over all of them. */
static void add_times(const sweep *v, like *all, uint64_t by)
{
    for (uint32_t m = 0; m < v->c->count; m++)
        all[m].times = orr_hash_mix(all[m].times ^ 0xa0761d6478bd642fu,
                                    (uint64_t)spread_at(v, by, m) ^ 0xe7037ed1a0b428dbu);
}

/* Members with equal times outside the window are processed together.  Only spreads are hashed,
 * each once: bases are common to all members. */
static like *list_like(const sweep *v, const uint32_t *rest, size_t rest_count)
{
    like *all = orr_alloc(v->c->count, sizeof *all);
    orr_map *seen = orr_map_create(0);
    bool ok = all && seen;
    for (uint32_t m = 0; ok && m < v->c->count; m++)
        all[m] = (like){0, m};
    for (size_t k = 0; ok && k < rest_count; k++) {
        uint64_t by[3];
        int64_t base[3];
        const unsigned count = uneven_of(v, rest[k], by, base);
        for (unsigned i = 0; i < count && ok; i++) {
            bool is_new = false;
            ok = orr_map_put(seen, by[i], 1, &is_new);
            if (is_new)
                add_times(v, all, by[i]);
        }
    }
    orr_map_destroy(seen);
    if (!ok) {
        orr_free(all);
        return NULL;
    }
    orr_sort(all, v->c->count, sizeof *all, by_times);
    return all;
}

/* ---- the window ---- */

/* The spread of most starts; 0: one step is still running, which ends now for all. */
static bool find_delay(sweep *v)
{
    const fold_log *l = &v->c->log;
    orr_map *place = orr_map_create(0);
    size_t *often = NULL, room = 0, kinds = 0, most = 0;
    bool ok = place != NULL;
    for (size_t i = 0; ok && i < l->count; i++) {
        const uint32_t by = l->steps[i].start.by;
        uint32_t at = orr_map_find(place, by, RUN_NONE);
        if (at == RUN_NONE) {
            at = (uint32_t)kinds;
            ok = orr_grow(&often, &room, kinds + 1) && orr_map_put(place, by, at, NULL);
            if (!ok)
                break;
            often[kinds++] = 0;
        }
        if (++often[at] > most) {
            most = often[at];
            v->delay = by;
        }
    }
    for (size_t i = 0; i < l->count; i++)
        if (!l->steps[i].has_ended)
            v->delay = 0;
    if (v->delay && v->f->flow_times)
        v->like_flow = fold_find(v->f->flow_times, fold_spread(v->f->times, v->delay), v->c->count);
    orr_map_destroy(place);
    orr_free(often);
    return ok;
}

/* Extent of an uneven time, from the first to the last member; the window may not overlap any. */
typedef struct smear {
    int64_t from, to;
} smear;

static int by_from(const void *a, const void *b)
{
    const smear *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* All uneven times, by base and spread. */
static bool list_smears(const sweep *v, smear **out, size_t *count)
{
    orr_map *place = orr_map_create(0);
    smear *known = NULL, *list = NULL;
    size_t room = 0, kinds = 0, list_room = 0;
    bool ok = place != NULL;
    *count = 0;
    for (size_t i = 0; ok && i < v->c->log.count; i++) {
        uint64_t by[3];
        int64_t base[3];
        const unsigned uneven = uneven_of(v, i, by, base);
        for (unsigned k = 0; k < uneven && ok; k++) {
            uint32_t at = orr_map_find(place, by[k], RUN_NONE);
            if (at == RUN_NONE) {
                at = (uint32_t)kinds;
                ok = orr_grow(&known, &room, kinds + 1) && orr_map_put(place, by[k], at, NULL);
                if (!ok)
                    break;
                /* The extent of a spread is computed once; each step then adds its base. */
                smear *of = &known[kinds++];
                *of = (smear){INT64_MAX, INT64_MIN};
                for (uint32_t m = 0; m < v->c->count; m++) {
                    const int64_t t = spread_at(v, by[k], m);
                    of->from = t < of->from ? t : of->from;
                    of->to = t > of->to ? t : of->to;
                }
            }
            ok = orr_grow(&list, &list_room, *count + 1);
            if (ok)
                list[(*count)++] = (smear){base[k] + known[at].from, base[k] + known[at].to};
        }
    }
    orr_map_destroy(place);
    orr_free(known);
    *out = list;
    return ok;
}

/* How many of these sorted times are before t. */
static size_t earlier(const int64_t *sorted, size_t count, int64_t t)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (sorted[mid] < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The gap between uneven times in which most steps begin.  False: out of memory. */
static bool find_window(sweep *v)
{
    const fold_log *l = &v->c->log;
    smear *list;
    size_t count, starts_count = 0, most = 0;
    bool ok = list_smears(v, &list, &count);
    int64_t *starts = ok && count ? orr_alloc(l->count, sizeof *starts) : NULL;
    v->lo = LONG_AGO;
    v->hi = INT64_MAX;
    if (ok && count) {
        ok = starts != NULL;
        bool is_sorted = true;
        for (size_t i = 0; ok && i < l->count; i++)
            if (is_even(v, l->steps[i].start)) {
                starts[starts_count] = l->steps[i].start.base;
                is_sorted = is_sorted &&
                            (starts_count == 0 || starts[starts_count - 1] <= starts[starts_count]);
                starts_count++;
            }
        if (ok && !is_sorted)
            orr_sort(starts, starts_count, sizeof *starts, by_value);
        orr_sort(list, count, sizeof *list, by_from);
    }
    /* One pass over the smears sorted by start: `until` is the end of those so far, so the gap
     * before the next one starts there. */
    int64_t until = LONG_AGO;
    /* One more than there are, for the gap after the last. */
    for (size_t i = 0; ok && count && i <= count; i++) {
        const int64_t next = i < count ? list[i].from : INT64_MAX;
        const size_t within = next > until ? earlier(starts, starts_count, next) -
                                                 earlier(starts, starts_count, until)
                                           : 0;
        /* Of equal gaps the first, so that the result is deterministic. */
        if (i == 0 || within > most) {
            most = within;
            v->lo = until;
            v->hi = next;
        }
        if (i < count && list[i].to >= until)
            until = list[i].to + 1;
    }
    orr_free(list);
    orr_free(starts);
    return ok;
}

/* Tokens generated by the class. */
static void count_served(const fold_sim *f, const fold_class *c)
{
    const run_npu *n = c->npu;
    struct watch_served *served = f->s->watch->served;
    const uint32_t class_index = (uint32_t)(n->graph - f->s->graphs);
    for (size_t i = 0; served && i < c->log.count; i++) {
        const fold_logged *step = &c->log.steps[i];
        const bool is_even = !step->end.by;
        for (uint32_t m = 0; step->has_ended && m < (is_even ? 1 : c->count); m++)
            watch_served_count(served, class_index, step->place,
                               (uint64_t)fold_at(f->times, step->end, m) - f->s->rounds.origin,
                               is_even ? c->count : 1);
    }
}

/* Members with equal times outside the window at once. */
static bool put_rest(sweep *v, const uint32_t *rest, size_t rest_count, const usage *d)
{
    const fold_class *c = v->c;
    like *all = list_like(v, rest, rest_count);
    for (uint32_t i = 0, next; all && i < c->count; i = next) {
        usage own = *d;
        for (next = i + 1; next < c->count && all[next].times == all[i].times;)
            next++;
        v->member = all[i].member;
        sweep_rest(v, rest, rest_count, next - i, &own);
        for (uint32_t k = i; k < next; k++)
            put_member(v, all[k].member, &own);
    }
    orr_free(all);
    return all != NULL;
}

static bool put_class(fold_sim *f, fold_class *c)
{
    const fold_log *l = &c->log;
    usage d = {.comm_until = LONG_AGO, .busy_until = LONG_AGO, .flowing_until = LONG_AGO};
    sweep v = {.f = f, .c = c, .like_flow = RUN_NONE};
    size_t rest_count = 0;
    for (unsigned u = 0; u < WATCH_USES; u++)
        d.upto_until[u] = LONG_AGO;
    uint32_t *rest = orr_alloc(l->count, sizeof *rest);
    facts *all_facts = orr_alloc(l->count, sizeof *all_facts);
    bool ok =
        rest && all_facts && find_facts(c->npu, l, all_facts) && find_delay(&v) && find_window(&v);
    v.facts = all_facts;
    for (size_t i = 0; ok && i < l->count; i++)
        if (!is_counted(&v, &l->steps[i])) {
            rest[rest_count++] = (uint32_t)i;
            v.early += is_on_device(&v, &l->steps[i]) && time_at(&v, l->steps[i].start, 0) < v.lo;
        }
    v.core_first = v.early;
    v.list = orr_alloc(l->count, sizeof *v.list);
    v.compute = orr_alloc(v.early + l->count, sizeof *v.compute);
    v.before = orr_alloc(v.early + l->count, sizeof *v.before);
    v.pieces = f->flow_times ? orr_alloc(l->count, 2 * sizeof *v.pieces) : NULL;
    ok = ok && v.list && v.compute && v.before && (v.pieces || !f->flow_times);
    if (ok)
        sweep_together(&v, &d);
    if (ok && v.hi == INT64_MAX && v.lo == LONG_AGO)
        for (uint32_t m = 0; m < c->count; m++)
            put_member(&v, m, &d);
    else if (ok)
        ok = put_rest(&v, rest, rest_count, &d);
    orr_free(v.list);
    orr_free(v.compute);
    orr_free(v.before);
    orr_free(v.pieces);
    orr_free(rest);
    orr_free(all_facts);
    return ok;
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

/* By time, then by rank: the order of events within a tick is not known here, and has no physical
 * meaning. */
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
        orr_sort(list, count, sizeof *list, by_time);
    for (uint32_t i = 0; i < count; i++)
        s->finish_order[i] = list[i].rank;
    s->finished = count;
    orr_free(list);
    return true;
}

/* Flows come first: they separate exposed from waiting time. */
static bool make_results(fold_sim *f)
{
    struct watch_record *w = f->s->watch;
    bool ok = true;
    if (!fold_find_flows(f))
        return false;
    /* If times have too little in common, waiting and exposed communication are not separated. */
    w->splits = !fold_times_failed(f->flow_times);
    if (!w->splits)
        fold_drop_flows(f);
    for (size_t i = 0; i < w->tally_count; i++) { /* may be called again later */
        watch_tally *t = &w->tallies[i];
        t->count = t->time = t->bytes = t->exposed = t->longest = t->waited = 0;
    }
    for (uint32_t c = 0; ok && c < f->class_count; c++)
        ok = put_class(f, &f->classes[c]);
    watch_served_forget(w->served);
    for (uint32_t c = 0; ok && c < f->class_count; c++)
        count_served(f, &f->classes[c]);
    return ok;
}

/* Also for stopped runs, and so more than once: assigns everything, accumulates nothing. */
bool fold_make_results(fold_sim *f)
{
    const uint32_t ranks = f->s->npu_count;
    if (!f->results)
        f->results = orr_arena_new(f->arena, ranks, orr_sim_rank_result);
    if (!f->busy)
        f->busy = orr_arena_new(f->arena, ranks, uint64_t);
    if (!f->spent)
        f->spent = orr_arena_take(f->arena, ranks * sizeof *f->spent);
    if (!f->results || !f->busy || !f->spent)
        return false;
    const bool ok = fold_leaves_begin(f) && fold_leaves_join(f) && make_results(f);
    fold_leaves_end(f);
    return ok && fold_put_finish_order(f->s);
}

/* What is asked for before there are results: no rank has done anything. */

const orr_sim_rank_result *fold_rank(const fold_sim *f, uint32_t rank)
{
    static const orr_sim_rank_result nothing = {.finished_at = ORR_NEVER};
    return f->results ? &f->results[rank] : &nothing;
}

uint64_t fold_spent(const fold_sim *f, uint32_t rank, unsigned use)
{
    return f->spent ? f->spent[rank][use] : 0;
}

uint64_t fold_busy(const fold_sim *f, uint32_t rank)
{
    return f->busy ? f->busy[rank] : 0;
}
