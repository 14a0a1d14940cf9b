/* SPDX-License-Identifier: Apache-2.0 */
/* fold_figures.c - the figures of nodes and ranks, from the log of a class, once it has run: what
 * note_start and note_end of workload.c and the hooks of watch.c sum up as a rank goes along.
 *
 * Members of a class may come to their events in different orders, so sums over time are made
 * member by member: but for the time up to the *cut*, until which all members do the same at the
 * same time, and that once for members with the same times.  Cost: nodes of the class, and
 * different members x nodes after the cut. */
#include "fold_impl.h"

#include "base/memory/hash.h"

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
    /* Rows are in the order in which they come up. */
    if (work_class_of(n, place) == WORK_COMMUNICATES && !watch_tally_of(n, place))
        run_no_memory(n->sim);
}

void fold_rank_end(run_npu *n)
{
    n->sim->finished += fold_class_at(n)->count;
}

/* ---- one member, or all that have the same times ---- */

typedef struct interval {
    int64_t start, end;
    int64_t flows; /* from then on its data could flow */
    uint32_t step;
} interval;

/* A part of a step, for one watch_use. */
typedef struct piece {
    int64_t start, end;
    uint32_t step;
    uint8_t use;
} piece;

/* What a member has done. */
typedef struct deeds {
    int64_t compute, comm, host, memory, busy, wall;
    int64_t comm_until, busy_until; /* up to here the time is counted */
    /* By watch_use: time in this use or one that goes before it.  So a moment counts once, for the
     * first that applies. */
    int64_t upto[WATCH_USES], upto_until[WATCH_USES];
    int64_t flowing,
        flowing_until; /* communication whose data could flow, beside computing or not */
} deeds;

/* What is asked of a step again and again, once for each of the members that differ. */
typedef struct facts {
    uint64_t bytes;
    uint32_t tally; /* of all communication alike; NONE: it is none */
    int8_t kind;    /* work_class_of */
    bool is_host, is_memory, is_in_slot;
    uint8_t use, held_use; /* watch_use */
} facts;

/* Members of a class do the same up to the cut, and may differ after it:
 *
 *     member 0   ====compute====|--comm--|==compute==
 *     member 1   ====compute====|---comm---|==compute==
 *                              cut: the first time that two of them do not share
 *
 * What is before the cut is summed once; after it once for each set of members with the same
 * times. */
typedef struct sweep {
    fold_sim *f;
    fold_class *c;
    int64_t cut;
    bool is_all_apart; /* nothing is before the cut: members that do all a while later are alike */
    uint32_t member;   /* whose times are looked at; even times are those of all */
    interval *list;    /* in the order in which they start */
    size_t count;
    piece *pieces; /* likewise; NULL: times are not split */
    size_t piece_count;
    const facts *facts; /* by step */
    interval *compute;  /* on the device, one after the other */
    size_t compute_count;
    size_t near;          /* where the time on the device was looked up last */
    size_t compute_early; /* those that ended before the cut */
    int64_t *before;      /* by those: the length of all before it */
} sweep;

/* Equal starts by step: a total order, so that nothing depends on how it is sorted. */
static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* They come nearly in order. */
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
        /* No longer nearly in order: a sort from scratch is cheaper. */
        if (moves > 8 * count) {
            qsort(list, count, sizeof *list, by_start);
            return;
        }
    }
}

enum { NEAR = 16 };

/* How many start before t.  Steps are looked at in the order of time: mostly it is near what was
 * asked last. */
static size_t computes_before(const sweep *v, int64_t t)
{
    size_t low = v->near > NEAR ? v->near - NEAR : 0;
    size_t high = v->compute_count - low > 2 * NEAR ? low + 2 * NEAR : v->compute_count;
    /* It was not near: the whole list is searched. */
    if (low > 0 && v->compute[low - 1].start >= t)
        low = 0;
    if (high < v->compute_count && v->compute[high].start < t)
        high = v->compute_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (v->compute[mid].start < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Time on the device before t. */
static int64_t compute_before(sweep *v, int64_t t)
{
    const size_t at = computes_before(v, t);
    v->near = at;
    if (at == 0)
        return 0;
    const interval *last = &v->compute[at - 1];
    /* Nodes on the device do not overlap: one slot. */
    return v->before[at - 1] + (t < last->end ? t : last->end) - last->start;
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
        /* By number: rows may move when another kind is met. */
        out[i].tally = (uint32_t)(t - n->sim->watch->tallies);
        out[i].bytes =
            col->comm_size && col->comm_size[node] > 0 ? (uint64_t)col->comm_size[node] : 0;
    }
    return true;
}

/* A node that has ended, of so many members. */
static void count_step(sweep *v, const interval *at, uint32_t weight, deeds *d)
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

/* In the order of time: what an interval adds to those before it. */
static void cover(const sweep *v, const interval *at, int64_t from, int64_t to, deeds *d)
{
    const int64_t start = at->start > from ? at->start : from, end = at->end < to ? at->end : to;
    const int k = v->facts[at->step].kind;
    /* Intervals come by start, so a union is a running end. */
    if (end > d->busy_until) {
        d->busy += end - (start > d->busy_until ? start : d->busy_until);
        d->busy_until = end;
    }
    if (k == WORK_COMMUNICATES && end > d->comm_until) {
        d->comm += end - (start > d->comm_until ? start : d->comm_until);
        d->comm_until = end;
    }
    if (k == WORK_ON_DEVICE && end > start)
        d->compute += end - start;
}

/* ---- what a rank does with its time ---- */

static int by_piece_start(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* They come nearly in order. */
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
            qsort(list, count, sizeof *list, by_piece_start);
            return;
        }
    }
}

static void add_pieces(sweep *v, const interval *at)
{
    const facts *step = &v->facts[at->step];
    if (!v->pieces)
        return;
    /* Up to where data flows it waits; from there on it communicates. */
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

/* In the order of time, between two times. */
static void spend(sweep *v, int64_t from, int64_t to, deeds *d)
{
    sort_pieces(v->pieces, v->piece_count);
    for (size_t i = 0; i < v->piece_count; i++) {
        const piece *p = &v->pieces[i];
        const int64_t start = p->start > from ? p->start : from, end = p->end < to ? p->end : to;
        /* A moment in one use is in all unions from there on; the difference of two neighbours is
         * then what counts for one use alone. */
        for (unsigned u = p->use; u < WATCH_USES; u++)
            cover_up_to(start, end, &d->upto[u], &d->upto_until[u]);
        if (p->use == WATCH_EXPOSED)
            cover_up_to(start, end, &d->flowing, &d->flowing_until);
    }
}

/* ---- a class ---- */

static int64_t end_of(const sweep *v, const fold_logged *step, uint32_t member)
{
    const int64_t start = fold_at(v->f->times, step->start, member);
    if (step->has_ended)
        return fold_at(v->f->times, step->end, member);
    return v->c->now.base > start ? v->c->now.base : start; /* under way */
}

static int64_t flows_of(const sweep *v, size_t step, uint32_t member, int64_t start, int64_t end)
{
    const fold_flow *f = v->c->flows ? &v->c->flows[step] : NULL;
    if (!f || f->state == FOLD_FLOWS_AT_START)
        return start;
    if (f->state == FOLD_FLOWS_NEVER)
        return end;
    const int64_t at = f->base + (f->by ? fold_spread(v->f->flow_times, f->by)[member] : 0);
    return at < end ? at : end;
}

static bool is_on_device(const sweep *v, const fold_logged *step)
{
    return v->facts[step - v->c->log.steps].kind == WORK_ON_DEVICE;
}

/* It began and ended before the cut. */
static bool is_counted(const sweep *v, const fold_logged *step)
{
    return step->has_ended && !step->end.by && step->end.base <= v->cut && !step->start.by &&
           step->start.base < v->cut;
}

static void sum_compute(sweep *v)
{
    sort_intervals(v->compute + v->compute_early, v->compute_count - v->compute_early);
    for (size_t i = v->compute_early; i < v->compute_count; i++)
        v->before[i] = i ? v->before[i - 1] + v->compute[i - 1].end - v->compute[i - 1].start : 0;
}

/* Up to the cut, for all members at once. */
static void sweep_together(sweep *v, deeds *d)
{
    const fold_log *l = &v->c->log;
    v->count = v->compute_count = v->near = v->piece_count = 0;
    for (size_t i = 0; i < l->count; i++) {
        const fold_logged *step = &l->steps[i];
        if (step->start.by || step->start.base >= v->cut)
            continue;
        const int64_t end = step->has_ended ? step->end.base : end_of(v, step, 0);
        const int64_t start = step->start.base;
        v->list[v->count] = (interval){start, end, flows_of(v, i, 0, start, end), (uint32_t)i};
        add_pieces(v, &v->list[v->count++]);
        if (is_on_device(v, step))
            v->compute[v->compute_count++] =
                (interval){start, end < v->cut ? end : v->cut, start, (uint32_t)i};
    }
    spend(v, 0, v->cut, d);
    sum_compute(v);
    sort_intervals(v->list, v->count);
    for (size_t i = 0; i < v->count; i++) {
        cover(v, &v->list[i], 0, v->cut, d);
        /* What is under way at the cut is counted after it, for each member. */
        if (is_counted(v, &l->steps[v->list[i].step]))
            count_step(v, &v->list[i], v->c->count, d);
    }
}

/* After the cut, for a member and those like it. */
static void sweep_rest(sweep *v, const uint32_t *rest, size_t rest_count, uint32_t weight, deeds *d)
{
    const fold_log *l = &v->c->log;
    v->count = v->near = v->piece_count = 0;
    v->compute_count = v->compute_early;
    for (size_t k = 0; k < rest_count; k++) {
        const fold_logged *step = &l->steps[rest[k]];
        const int64_t start = fold_at(v->f->times, step->start, v->member);
        const int64_t end = end_of(v, step, v->member);
        const interval at = {start, end, flows_of(v, rest[k], v->member, start, end), rest[k]};
        v->list[v->count++] = at;
        add_pieces(v, &at);
        if (is_on_device(v, step))
            v->compute[v->compute_count++] = at;
    }
    spend(v, v->cut, INT64_MAX, d);
    sum_compute(v);
    sort_intervals(v->list, v->count);
    for (size_t i = 0; i < v->count; i++)
        if (v->list[i].start < v->cut)
            cover(v, &v->list[i], v->cut, INT64_MAX, d);
    for (size_t i = 0; i < v->count; i++) {
        if (v->list[i].start >= v->cut)
            cover(v, &v->list[i], v->cut, INT64_MAX, d);
        if (l->steps[v->list[i].step].has_ended)
            count_step(v, &v->list[i], weight, d);
    }
}

static void put_member(const sweep *v, uint32_t member, const deeds *d)
{
    const fold_sim *f = v->f;
    const run_npu *n = v->c->npu;
    const uint32_t rank = v->c->ranks[member];
    orr_sim_rank_result *r = &f->results[rank];
    *r = n->result;
    r->wall = d->wall ? (uint64_t)d->wall - f->s->rounds.origin : 0;
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
    /* What is in both, of computing and communication. */
    f->spent[rank][WATCH_USES] =
        (uint64_t)(d->upto[WATCH_COMPUTE] + d->flowing - d->upto[WATCH_EXPOSED]);
}

/* ---- which members have the same times ---- */

typedef struct like {
    /* a hash of all times, relative to the first */
    uint64_t times;
    int64_t apart; /* by how much it is later, in all that it does */
    uint32_t member;
} like;

static int by_times(const void *a, const void *b)
{
    const like *x = a, *y = b;
    if (x->times != y->times)
        return x->times < y->times ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

#define OF_FLOWS (UINT64_C(1) << 32) /* its spreads have numbers of their own */

/* Times are told apart by a hash of 64 bits over all of them. */
static void add_times(const sweep *v, like *all, const fold_times *t, uint32_t by)
{
    const int64_t *spread = by ? fold_spread(t, by) : NULL;
    for (uint32_t m = 0; m < v->c->count; m++)
        all[m].times =
            orr_hash_mix(all[m].times ^ 0xa0761d6478bd642fu,
                         (uint64_t)((spread ? spread[m] : 0) - all[m].apart) ^ 0xe7037ed1a0b428dbu);
}

/* Members with the same times after the cut are swept together.  Only spreads are hashed, each
 * once: bases are the same for all members. */
static like *list_like(const sweep *v, const uint32_t *rest, size_t rest_count)
{
    like *all = orr_alloc(v->c->count, sizeof *all);
    const fold_val from = v->c->log.steps[rest[0]].start;
    orr_map *seen = orr_map_create(0);
    bool ok = all && seen;
    for (uint32_t m = 0; ok && m < v->c->count; m++)
        all[m] = (like){0, v->is_all_apart ? fold_at(v->f->times, from, m) - from.base : 0, m};
    for (size_t k = 0; ok && k < rest_count; k++) {
        const fold_logged *step = &v->c->log.steps[rest[k]];
        const uint32_t two[] = {step->start.by, step->end.by};
        for (unsigned i = 0; i < 2 && ok; i++) {
            bool is_new = false;
            /* Even times tell nobody apart, unless all is counted from each member's own
             * beginning. */
            ok = (!two[i] && !v->is_all_apart) || orr_map_put(seen, two[i], 1, &is_new);
            if (is_new)
                add_times(v, all, v->f->times, two[i]);
        }
        const fold_flow *flow = v->c->flows ? &v->c->flows[rest[k]] : NULL;
        bool is_new = false;
        if (ok && flow && flow->state == FOLD_FLOWS_LATER && (flow->by || v->is_all_apart))
            ok = orr_map_put(seen, OF_FLOWS | flow->by, 1, &is_new);
        if (is_new)
            add_times(v, all, v->f->flow_times, flow->by);
    }
    orr_map_destroy(seen);
    if (!ok) {
        orr_free(all);
        return NULL;
    }
    qsort(all, v->c->count, sizeof *all, by_times);
    return all;
}

/* Tokens that the class made. */
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

/* A class: the cut, what is before it for all, then members in sets of the same times. */
static bool put_class(fold_sim *f, fold_class *c)
{
    const fold_log *l = &c->log;
    deeds d = {0};
    sweep v = {.f = f, .c = c, .cut = INT64_MAX};
    size_t rest_count = 0;
    v.list = orr_alloc(l->count, sizeof *v.list);
    v.compute = orr_alloc(l->count, sizeof *v.compute);
    v.before = orr_alloc(l->count, sizeof *v.before);
    v.pieces = f->flow_times ? orr_alloc(l->count, 2 * sizeof *v.pieces) : NULL;
    uint32_t *rest = orr_alloc(l->count, sizeof *rest);
    facts *all_facts = orr_alloc(l->count, sizeof *all_facts);
    bool ok = v.list && v.compute && v.before && (v.pieces || !f->flow_times) && rest &&
              all_facts && find_facts(c->npu, l, all_facts);
    v.facts = all_facts;
    for (size_t i = 0; i < l->count; i++) {
        const fold_logged *step = &l->steps[i];
        /* The cut: the first time at which any two members differ. */
        const bool is_even = !step->start.by && !(step->has_ended && step->end.by);
        const int64_t at = step->start.by ? step->start.base : step->end.base;
        if (!is_even && at < v.cut)
            v.cut = at;
        if (c->flows && c->flows[i].by && c->flows[i].base < v.cut)
            v.cut = c->flows[i].base;
    }
    for (size_t i = 0; ok && i < l->count; i++) {
        if (v.cut != INT64_MAX && !is_counted(&v, &l->steps[i]))
            rest[rest_count++] = (uint32_t)i;
    }
    if (ok)
        sweep_together(&v, &d);
    if (ok && v.cut != INT64_MAX) {
        v.is_all_apart = v.count == 0 && (f->is_steady || c->npu->running == 0);
        like *all = list_like(&v, rest, rest_count);
        /* The last of them may have been under way at the cut: it is in the other list, too. */
        v.compute_early = v.compute_count;
        while (v.compute_early && !is_counted(&v, &l->steps[v.compute[v.compute_early - 1].step]))
            v.compute_early--;
        ok = all != NULL;
        for (uint32_t i = 0, next; ok && i < c->count; i = next) {
            /* From what all have in common. */
            deeds own = d;
            for (next = i + 1; next < c->count && all[next].times == all[i].times;)
                next++;
            v.member = all[i].member;
            sweep_rest(&v, rest, rest_count, next - i, &own);
            for (uint32_t k = i; k < next; k++) {
                deeds later = own;
                /* Members that do all a while later have the same sums; only their end is their
                 * own. */
                later.wall += all[k].apart - all[i].apart;
                put_member(&v, all[k].member, &later);
            }
        }
        orr_free(all);
    } else {
        for (uint32_t m = 0; ok && m < c->count; m++)
            put_member(&v, m, &d);
    }
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

/* By time, and of one time by rank: the order of events within a tick is not known here, and no
 * fact about the machine. */
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

/* Flows come first: exposed and waiting time are told apart by them. */
static bool make_results(fold_sim *f)
{
    struct watch_record *w = f->s->watch;
    bool ok = true;
    if (!fold_find_flows(f))
        return false;
    /* Where times have too little in common, waits and exposed communication stay one. */
    w->splits = !fold_times_failed(f->flow_times);
    if (!w->splits)
        fold_drop_flows(f);
    for (size_t i = 0; i < w->tally_count; i++) { /* it may be asked for again, later */
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

/* Also of a run that was stopped, and so more than once: everything is set, nothing added to. */
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

const orr_sim_rank_result *fold_rank(const fold_sim *f, uint32_t rank)
{
    return &f->results[rank];
}

uint64_t fold_spent(const fold_sim *f, uint32_t rank, unsigned use)
{
    return f->spent[rank][use];
}

uint64_t fold_busy(const fold_sim *f, uint32_t rank)
{
    return f->busy[rank];
}
