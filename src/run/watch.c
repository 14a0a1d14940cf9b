/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - records what reports need during a run.
 *
 * Always: busy time, time and bytes by kind of node, bytes by dimension.  This costs a few
 * additions per node and two per message.  On request: a log of steps, 40 bytes per step plus an
 * index of 4 bytes per node.  A node starts only when another one of its rank ends (or at the
 * start): which one, and dependencies between ranks (messages, collectives, memory servers), are
 * derived afterwards from the traces and the times in the log (watch_log.c). */
#include "watch.h"

#include "fold/fold.h"
#include "parts.h"

#include "base/inline.h"
#include "base/memory/hash.h"
#include "models/network/net_table.h"

/* ---- setting up ---- */

static bool keep_steps(orr_sim *s, struct watch_record *w)
{
    for (uint32_t r = 0; !s->fold && r < s->npu_count; r++) {
        if (s->lockstep && s->lockstep->stands_for[r] != r)
            continue; /* represented by another rank */
        w->ranks[r].step_of = orr_arena_new(w->arena, s->npus[r].graph->count, uint32_t);
        if (!w->ranks[r].step_of)
            return false;
    }
    w->instance_by_key = orr_map_create(0);
    /* a critical path alone needs no traffic over time */
    if (s->opt.record >= ORR_SIM_RECORD_NODES)
        w->bins = orr_arena_new(w->arena, 1, watch_traffic_bins);
    return w->instance_by_key && (w->bins || s->opt.record < ORR_SIM_RECORD_NODES);
}

orr_code watch_create(orr_sim *s, orr_error *err)
{
    struct watch_record *w = orr_alloc(1, sizeof *w);
    s->watch = w;
    if (!w || !(w->arena = orr_arena_create()))
        return orr_no_memory(err);
    w->keeps_steps = s->opt.record >= ORR_SIM_RECORD_NODES || s->opt.critical_path;
    w->keeps_phases = s->opt.record >= ORR_SIM_RECORD_PHASES;
    const uint32_t ranks = s->fold ? 1 : s->npu_count; /* folded: fold_figures.c keeps them */
    w->ranks = orr_arena_new(w->arena, ranks, watch_rank);
    w->tally_of = orr_arena_new(w->arena, orr_set_class_count(s->set), uint32_t *);
    w->splits = true;
    w->free_hold = RUN_NONE;
    w->tally_by_key = orr_map_create(0);
    w->group_seen = orr_map_create(0);
    if (!watch_served_create(s, &w->served) || !w->ranks || !w->tally_of || !w->tally_by_key ||
        !w->group_seen || (w->keeps_steps && !keep_steps(s, w)) ||
        (w->splits && !w->instance_by_key && !(w->instance_by_key = orr_map_create(0))))
        return orr_no_memory(err);
    return ORR_OK;
}

void watch_destroy(struct watch_record *w)
{
    if (!w)
        return;
    orr_map_destroy(w->instance_by_key);
    orr_map_destroy(w->tally_by_key);
    orr_map_destroy(w->group_seen);
    watch_served_destroy(w->served);
    orr_free(w->tallies);
    orr_free(w->steps);
    orr_free(w->instances);
    orr_free(w->holds);
    orr_free(w->across);
    orr_free(w->phases);
    watch_log_drop(w);
    orr_arena_destroy(w->arena);
    orr_free(w);
}

/* ---- several consecutive steps ---- */

void watch_round_begins(run_npu *n)
{
    watch_rank *r = &n->sim->watch->ranks[n->rank];
    /* Keep the arrays: they are by node, and nodes are the same in each step. */
    *r = (watch_rank){
        .step_of = r->step_of, .flows_at = r->flows_at, .since = clk_now(n->sim->clock)};
}

static void forget_tallies(struct watch_record *w)
{
    for (size_t i = 0; i < w->tally_count; i++) {
        watch_tally *t = &w->tallies[i];
        t->count = t->bytes = t->time = t->exposed = t->waited = t->longest = 0;
    }
}

void watch_forget(orr_sim *s)
{
    struct watch_record *w = s->watch;
    if (!w)
        return;
    forget_tallies(w);
    watch_served_forget(w->served);
    memset(w->traffic, 0, sizeof w->traffic);
    if (w->bins)
        memset(w->bins, 0, sizeof *w->bins);
    w->step_count = w->phase_count = 0;
}

/* ---- statistics by kind of node ---- */

static bool is_alike(const watch_tally *a, const watch_tally *b)
{
    return a->type == b->type && a->collective == b->collective &&
           a->group_ranks == b->group_ranks && a->size == b->size;
}

static uint32_t find_tally(struct watch_record *w, const watch_tally *like)
{
    const uint64_t kind = (uint64_t)like->group_ranks << 16 | (uint64_t)like->type << 8;
    uint64_t key = orr_hash_mix((kind | like->collective) ^ 0xa0761d6478bd642fu,
                                like->size + 0xe7037ed1a0b428dbu);
    uint32_t i;
    while ((i = orr_map_find(w->tally_by_key, key, RUN_NONE)) != RUN_NONE) {
        if (is_alike(&w->tallies[i], like))
            return i;
        /* Hash collision: linear probing.  Rows are compared in full, so a hash decides nothing. */
        key++;
    }
    if (w->tally_count >= RUN_NONE || !orr_grow(&w->tallies, &w->tally_room, w->tally_count + 1) ||
        !orr_map_put(w->tally_by_key, key, (uint32_t)w->tally_count, NULL))
        return RUN_NONE;
    w->tallies[w->tally_count] = *like;
    return (uint32_t)w->tally_count++;
}

/* Ranks of a class with holes have individual groups: those of a slot are counted once per row. */
static bool count_own_groups(const run_npu *n, uint32_t node, uint32_t row)
{
    struct watch_record *w = n->sim->watch;
    const orr_set *set = n->sim->set;
    const uint32_t k = orr_set_class_of(set, n->rank);
    const uint32_t *slots = set->classes[k].slot[ORR_HOLE_PG_NAME];
    bool is_new = true;
    if (!slots || slots[node] == 0)
        return true;
    /* Once per class, slot and row: the loop below goes over all ranks of the class. */
    const uint32_t seen[] = {k, slots[node]};
    /* The complement keeps these keys apart from those of names in the same map. */
    if (!orr_map_put(w->group_seen, orr_hash_bytes(seen, sizeof seen, ~(uint64_t)row), 1, &is_new))
        return false;
    const uint32_t *const ranks = n->sim->class_ranks;
    for (uint32_t i = n->sim->class_start[k]; is_new && i < n->sim->class_start[k + 1]; i++) {
        bool is_first;
        int64_t id;
        if (!orr__set_hole(set, ranks[i], ORR_HOLE_PG_NAME, node, &id))
            continue;
        const orr_str name = id ? sys_group_text(n->sim, id) : (orr_str){"", 0};
        if (!orr_map_put(w->group_seen, orr_hash_bytes(name.ptr, name.len, row), 1, &is_first))
            return false;
        w->tallies[row].groups += is_first;
    }
    return true;
}

/* The row of a node; computed once per node of a class. */
static uint32_t classify(run_npu *n, uint32_t place)
{
    struct watch_record *w = n->sim->watch;
    const orr_columns *c = &n->graph->t->columns;
    const uint32_t i = n->graph->node[place];
    watch_tally like = {.type = c->type[i]};
    if (like.type != ORR_NODE_COMM_COLL)
        return find_tally(w, &like);
    const orr_str name = sys_node_group_name(n, place);
    const cfg_group *g = sys_node_group(n, place);
    bool is_new = false;
    like.collective = (uint8_t)(c->comm_type ? c->comm_type[i] : -1);
    like.size = c->comm_size && c->comm_size[i] > 0 ? (uint64_t)c->comm_size[i] : 0;
    /* 0: its members are not known. */
    like.group_ranks = g ? g->count : name.len == 0 ? n->sim->npu_count : 0;
    const uint32_t row = find_tally(w, &like);
    if (row == RUN_NONE)
        return row;
    const uint64_t key = orr_hash_bytes(name.ptr, name.len, row);
    if (!orr_map_put(w->group_seen, key, 1, &is_new))
        return RUN_NONE;
    w->tallies[row].groups += is_new;
    if (is_new)
        w->tallies[row].group = name;
    return count_own_groups(n, i, row) ? row : RUN_NONE;
}

watch_tally *watch_tally_of(run_npu *n, uint32_t place)
{
    orr_sim *s = n->sim;
    uint32_t **rows = &s->watch->tally_of[n->graph - s->graphs];
    if (!*rows) {
        *rows = orr_arena_take(s->watch->arena, n->graph->count * sizeof **rows);
        if (!*rows)
            return NULL;
        memset(*rows, 0xff, n->graph->count * sizeof **rows);
    }
    if ((*rows)[place] == RUN_NONE)
        /* Once per node of a class, and cached: a step of a thousand ranks uses the same nodes. */
        (*rows)[place] = classify(n, place);
    return (*rows)[place] == RUN_NONE ? NULL : &s->watch->tallies[(*rows)[place]];
}

/* From when on its data could flow; of one that ends without: now. */
static uint64_t flows_since(const run_npu *n, uint32_t place, uint64_t now)
{
    const watch_rank *r = &n->sim->watch->ranks[n->rank];
    const uint64_t at = r->flows_at ? r->flows_at[place] : 0;
    /* Three cases: it never flowed, it flowed from then on, or nothing held it. */
    return at == ORR_NEVER ? now : at ? at : n->started_at[place];
}

static void count_node(run_npu *n, uint32_t place, uint64_t now, uint64_t compute)
{
    if (!run_is_recorded(n))
        return;
    const watch_rank *r = &n->sim->watch->ranks[n->rank];
    const orr_columns *c = &n->graph->t->columns;
    const uint32_t i = n->graph->node[place];
    watch_tally *t = watch_tally_of(n, place);
    if (!t) {
        run_no_memory(n->sim);
        return;
    }
    const uint64_t since = flows_since(n, place, now), took = now - since;
    t->count += n->weight;
    t->time += took * n->weight;
    t->waited += (since - n->started_at[place]) * n->weight;
    t->bytes += c->comm_size && c->comm_size[i] > 0 ? (uint64_t)c->comm_size[i] * n->weight : 0;
    if (took > t->longest)
        t->longest = took;
    const uint8_t slot = n->graph->slot[place];
    /* Receives share their slot, so overlap with computation is not known: they have no exposed
     * time. */
    if (work_is_comm_slot(slot))
        t->exposed += (took - (compute - r->compute_before[slot])) * n->weight;
}

/* ---- the log of steps ---- */

static void log_start(run_npu *n, uint32_t place)
{
    struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    if (w->step_count >= RUN_NONE || !orr_grow(&w->steps, &w->step_room, w->step_count + 1)) {
        run_no_memory(n->sim);
        return;
    }
    r->step_of[place] = (uint32_t)w->step_count;
    w->steps[w->step_count++] = (watch_step){.start = watch_now(n->sim),
                                             .end = ORR_NEVER,
                                             .rank = n->rank,
                                             .place = place,
                                             .cause = RUN_NONE,
                                             .instance = RUN_NONE,
                                             .earlier = RUN_NONE};
}

static void log_end(run_npu *n, uint32_t place)
{
    struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    w->steps[r->step_of[place]].end = watch_now(n->sim);
}

/* ---- where a rank's time goes ---- */

static watch_use use_of(const run_npu *n, uint32_t place)
{
    const int k = work_class_of(n, place);
    if (k == WORK_ON_DEVICE)
        return WATCH_COMPUTE;
    if (k == WORK_COMMUNICATES)
        return WATCH_EXPOSED;
    return n->graph->slot[place] == WORK_SLOT_CPU ? WATCH_HOST : WATCH_MEMORY;
}

/* A receive that waits for its sender is a pipeline bubble; a member that waits for others is
 * waiting: they have different remedies. */
static watch_use held_use(const run_npu *n, uint32_t place)
{
    const uint8_t type = n->graph->t->columns.type[n->graph->node[place]];
    return type == ORR_NODE_COMM_RECV ? WATCH_BUBBLE : WATCH_WAITING;
}

static void book(watch_rank *r, uint64_t now)
{
    unsigned u = 0;
    if (now == r->since)
        return;
    if (r->doing[WATCH_COMPUTE] && r->doing[WATCH_EXPOSED])
        r->overlapped += now - r->since;
    /* The enumerators are in order of precedence, so the first active one gets the time
     * (docs/accounting.md). */
    while (u < WATCH_USES && !r->doing[u])
        u++;
    if (u < WATCH_USES)
        r->spent[u] += now - r->since;
    r->since = now;
}

static bool is_held(const watch_rank *r, uint32_t place)
{
    return r->flows_at && r->flows_at[place] == ORR_NEVER;
}

typedef enum watch_op_kind {
    WATCH_OP_START,
    WATCH_OP_HELD,
    WATCH_OP_FLOWS,
    WATCH_OP_END
} watch_op_kind;

static void count_start(run_npu *n, uint32_t place, uint64_t now, uint64_t compute)
{
    const struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    if (w->splits) {
        book(r, now);
        r->doing[use_of(n, place)]++;
    }
    if (work_is_comm_slot(n->graph->slot[place]))
        r->compute_before[n->graph->slot[place]] = compute;
    if (r->flows_at)
        r->flows_at[place] = 0; /* left over from the previous step */
}

static void count_held(run_npu *n, uint32_t place, uint64_t now)
{
    struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    if (!r->flows_at && !(r->flows_at = orr_arena_new(w->arena, n->graph->count, uint64_t))) {
        run_no_memory(n->sim);
        return;
    }
    book(r, now);
    r->flows_at[place] = ORR_NEVER;
    /* What was counted as communication at its start now counts as waiting. */
    r->doing[WATCH_EXPOSED]--;
    r->doing[held_use(n, place)]++;
}

static void count_flows(run_npu *n, uint32_t place, uint64_t now, uint64_t compute)
{
    watch_rank *r = &n->sim->watch->ranks[n->rank];
    if (!is_held(r, place))
        return;
    book(r, now);
    r->flows_at[place] = now;
    r->doing[held_use(n, place)]--;
    r->doing[WATCH_EXPOSED]++;
    if (work_is_comm_slot(n->graph->slot[place]))
        /* Exposed time is counted from when data flows: earlier computation hides none of it. */
        r->compute_before[n->graph->slot[place]] = compute;
}

static void count_end(run_npu *n, uint32_t place, uint64_t now, uint64_t compute)
{
    const struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    if (w->splits) {
        book(r, now);
        r->doing[is_held(r, place) ? held_use(n, place) : use_of(n, place)]--;
    }
    if (is_held(r, place) &&
        work_is_comm_slot(n->graph->slot[place])) /* the time before was waiting */
        r->compute_before[n->graph->slot[place]] = compute;
    if (work_class_of(n, place) == WORK_COMMUNICATES)
        count_node(n, place, now, compute);
    if (is_held(r, place)) /* it has ended: it does not wait for late members */
        r->flows_at[place] = now;
}

/* Inline: most callers know what it is. */
ORR_INLINE void count_deed(
    run_npu *n, uint32_t place, watch_op_kind what, uint64_t at, uint64_t compute)
{
    switch (what) {
    case WATCH_OP_START:
        count_start(n, place, at, compute);
        break;
    case WATCH_OP_HELD:
        count_held(n, place, at);
        break;
    case WATCH_OP_FLOWS:
        count_flows(n, place, at, compute);
        break;
    default:
        count_end(n, place, at, compute);
    }
}

/* ---- when partners are known later ----
 *
 * In one of several parts (parts.h) a rank may be past the time at which data of a node started to
 * flow.  Its activities until that is known are buffered, and counted then, in order.  Between two
 * activities a rank computes all the time or not at all, so its compute time at any moment in
 * between is known. */

static bool keep_op(run_npu *n, watch_later *l, size_t at, const watch_op *op)
{
    if (!orr_grow(&l->ops, &l->room, l->count + 1)) {
        run_no_memory(n->sim);
        return false;
    }
    /* Sorted by time, as they will be counted; few are buffered at once, so insertion is cheap. */
    memmove(l->ops + at + 1, l->ops + at, (l->count - at) * sizeof *l->ops);
    l->ops[at] = *op;
    l->count++;
    return true;
}

static uint64_t computed_at(const watch_later *l, size_t i)
{
    size_t next = i;
    while (next < l->count && l->ops[next].what == WATCH_OP_FLOWS)
        next++;
    const watch_op *op = &l->ops[i];
    /* Activities of the rank itself record its compute time; for those of others it follows from
     * the activities around them. */
    if (next == i)
        return op->compute;
    return next < l->count && l->ops[next].compute > l->compute ? l->compute + (op->at - l->at)
                                                                : l->compute;
}

/* Counts everything buffered, except for known future events; at the end those too. */
static void count_kept(run_npu *n, watch_later *l, bool is_end)
{
    size_t done = 0, last = l->count;
    /* Known future events stay: activities of the rank may still come before them. */
    while (!is_end && last > 0 && l->ops[last - 1].what == WATCH_OP_FLOWS)
        last--;
    for (; done < last; done++) {
        const uint64_t compute = computed_at(l, done);
        const watch_op *op = &l->ops[done];
        count_deed(n, op->place, (watch_op_kind)op->what, op->at, compute);
        l->at = op->at;
        l->compute = compute;
    }
    memmove(l->ops, l->ops + done, (l->count - done) * sizeof *l->ops);
    l->count -= done;
}

ORR_APART void keep_deed(run_npu *n, watch_later *l, watch_op op)
{
    size_t at = l->count; /* before what flows later than now */
    while (at > 0 && l->ops[at - 1].at > op.at)
        at--;
    if (keep_op(n, l, at, &op) && !l->unknown)
        count_kept(n, l, false);
}

ORR_INLINE void count_or_keep(run_npu *n, uint32_t place, watch_op_kind what)
{
    watch_later *l = n->sim->watch->ranks[n->rank].later;
    const uint64_t now = clk_now(n->sim->clock), compute = watch_compute_so_far(n);
    if (l && (l->count || l->unknown))
        keep_deed(n, l, (watch_op){now, compute, place, (uint8_t)what});
    else
        count_deed(n, place, what, now, compute);
}

void watch_held_across(run_npu *n, uint32_t place)
{
    struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    if (!w->splits)
        return;
    if (!r->later && !(r->later = orr_arena_new(w->arena, 1, watch_later))) {
        run_no_memory(n->sim);
        return;
    }
    count_or_keep(n, place, WATCH_OP_HELD);
    if (!r->later->count && !r->later->unknown) {
        /* The first unknown one: compute time is derived from here on (computed_at). */
        r->later->at = clk_now(n->sim->clock);
        r->later->compute = watch_compute_so_far(n);
    }
    r->later->unknown++;
}

void watch_flows_at(run_npu *n, uint32_t place, uint64_t at)
{
    struct watch_record *w = n->sim->watch;
    watch_later *l = w->ranks[n->rank].later;
    if (!w->splits || !l)
        return;
    const watch_op op = {at, 0, place, WATCH_OP_FLOWS};
    size_t i = l->count;
    /* Before entries at the same time, but never before the node itself began to wait. */
    while (i > 0 && l->ops[i - 1].at >= at &&
           !(l->ops[i - 1].place == place && l->ops[i - 1].what <= WATCH_OP_HELD))
        i--;
    l->unknown--;
    if (keep_op(n, l, i, &op) && !l->unknown)
        count_kept(n, l, false);
}

/* ---- hooks ---- */

static void watch_node_held(run_npu *n, uint32_t place)
{
    if (n->sim->watch->splits)
        count_or_keep(n, place, WATCH_OP_HELD);
}

static void watch_node_flows(run_npu *n, uint32_t place)
{
    count_or_keep(n, place, WATCH_OP_FLOWS);
}

static void watch_node_start(run_npu *n, uint32_t place)
{
    struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    if (r->active++ == 0)
        r->busy_since = clk_now(n->sim->clock);
    count_or_keep(n, place, WATCH_OP_START);
    if (w->keeps_steps && run_is_recorded(n))
        log_start(n, place);
}

static void watch_node_end(run_npu *n, uint32_t place)
{
    struct watch_record *w = n->sim->watch;
    watch_rank *r = &w->ranks[n->rank];
    w->nodes_done += n->weight;
    /* Unions of intervals need no list: nodes start and end in time order. */
    if (--r->active == 0)
        r->busy += clk_now(n->sim->clock) - r->busy_since;
    count_or_keep(n, place, WATCH_OP_END);
    if (w->served && run_is_recorded(n))
        watch_served_count(w->served, (uint32_t)(n->graph - n->sim->graphs), place,
                           watch_now(n->sim), n->weight);
    if (w->keeps_steps && run_is_recorded(n))
        log_end(n, place);
}

/* The innermost dimension in which two ranks differ. */
uint32_t watch_dimension_between(const orr_sim *s, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k + 1 < s->dims; k++) {
        const uint32_t n = s->net_config.npus[k];
        if (a % n != b % n)
            return k;
        a /= n;
        b /= n;
    }
    return s->dims - 1;
}

/* Bins are powers of two wide: doubling merges neighbours, so nothing is lost and memory stays
 * bounded.  All doublings at once: a time of days would be sixty of them. */
static void widen_bins(watch_traffic_bins *b, uint32_t dims, unsigned doublings)
{
    b->shift += doublings;
    for (uint32_t k = 0; k < dims; k++)
        for (uint32_t i = 0; i < WATCH_TRAFFIC_BINS; i++) {
            const uint64_t bytes = b->bytes[k][i];
            /* In place: a bin moves to one that was read before it, bin 0 to itself. */
            b->bytes[k][i] = 0;
            b->bytes[k][doublings < 32 ? i >> doublings : 0] += bytes;
        }
}

void watch_add_traffic(orr_sim *s, uint32_t dimension, uint64_t at, uint64_t bytes)
{
    watch_traffic_bins *b = s->watch->bins;
    unsigned shift = b->shift;
    while (at >> shift >= WATCH_TRAFFIC_BINS)
        shift++;
    if (shift > b->shift)
        widen_bins(b, s->dims, shift - b->shift);
    b->bytes[dimension][at >> b->shift] += bytes;
}

static void count_traffic(orr_sim *s, uint32_t dimension, uint64_t messages, uint64_t size)
{
    struct watch_record *w = s->watch;
    w->traffic[dimension].messages += messages;
    w->traffic[dimension].bytes += size;
    if (w->bins)
        watch_add_traffic(s, dimension, watch_now(s), size);
}

static void watch_message(orr_sim *s, uint32_t src, uint32_t dst, uint64_t size)
{
    /* In lockstep a message counts for all ranks its sender represents. */
    const uint64_t each = s->lockstep ? s->lockstep->size[src] : 1;
    count_traffic(s, s->dims > 1 ? watch_dimension_between(s, src, dst) : 0, each, size * each);
}

/* Bytes of so many groups; saturates. */
static uint64_t whole_bytes(double each, uint32_t groups)
{
    /* Rounded per group, as if each were simulated. */
    return each * groups < (double)INT64_MAX ? (uint64_t)each * groups : INT64_MAX;
}

void watch_along(orr_sim *s, uint32_t dimension, uint32_t count, uint32_t groups, double bytes)
{
    if (s->watch && bytes > 0)
        count_traffic(s, dimension, (uint64_t)groups * count, whole_bytes(bytes * count, groups));
}

void watch_joint(orr_sim *s,
                 const uint32_t *members,
                 uint32_t count,
                 uint32_t groups,
                 double up,
                 double out,
                 uint32_t per_node)
{
    uint32_t outermost = 0, stride = 1;
    if (!s->watch)
        return;
    for (uint32_t k = 0; k < s->dims; k++) {
        for (uint32_t i = 1; i < count; i++)
            if (members[i] / stride % s->net_config.npus[k] !=
                members[0] / stride % s->net_config.npus[k]) {
                outermost = k;
                break;
            }
        stride *= s->net_config.npus[k];
    }
    if (up > 0 && per_node > 1)
        /* Traffic inside hosts counts for the innermost dimension; between hosts for the outermost
         * one in which members differ. */
        count_traffic(s, 0, (uint64_t)groups * count, whole_bytes(up * count, groups));
    if (out > 0)
        count_traffic(s, outermost, (uint64_t)groups * count, whole_bytes(out * count, groups));
}

/* ---- the collective of a step ---- */

static bool is_same(const watch_instance *a, const watch_instance *b)
{
    return a->group == b->group && a->stream == b->stream && a->base == b->base &&
           a->is_counter == b->is_counter;
}

/* Its index, or where it would be inserted. */
static uint32_t look_up(const struct watch_record *w, const watch_instance *like, uint64_t *key)
{
    const int64_t group = like->group ? like->group->id : 0;
    uint32_t i;
    *key = orr_hash_mix(like->stream ^ 0xa0761d6478bd642fu,
                        ((uint64_t)group << 24 ^ like->base) + 0xe7037ed1a0b428dbu);
    while ((i = orr_map_find(w->instance_by_key, *key, RUN_NONE)) != RUN_NONE) {
        if (is_same(&w->instances[i], like))
            return i;
        ++*key;
    }
    return RUN_NONE;
}

uint32_t watch_known_instance(const struct watch_record *w, const watch_instance *like)
{
    uint64_t key;
    return look_up(w, like, &key);
}

uint32_t watch_find_instance(struct watch_record *w, const watch_instance *like)
{
    uint64_t key;
    const uint32_t i = look_up(w, like, &key);
    if (i != RUN_NONE)
        return i;
    if (w->instance_count >= RUN_NONE ||
        !orr_grow(&w->instances, &w->instance_room, w->instance_count + 1) ||
        !orr_map_put(w->instance_by_key, key, (uint32_t)w->instance_count, NULL))
        return RUN_NONE;
    w->instances[w->instance_count] = *like;
    w->instances[w->instance_count].last = w->instances[w->instance_count].held = RUN_NONE;
    return (uint32_t)w->instance_count++;
}

uint32_t watch_base_of(const orr_sim *s, uint32_t rank, uint32_t along)
{
    uint32_t base = rank, stride = 1;
    for (uint32_t k = 0; k < s->dims; k++) {
        if (along & 1u << k)
            base -= rank / stride % s->net_config.npus[k] * stride;
        stride *= s->net_config.npus[k];
    }
    return along == UINT32_MAX ? 0 : base;
}

bool watch_covers_all(const orr_sim *s, uint32_t along)
{
    uint32_t count = 1;
    for (uint32_t k = 0; k < s->dims; k++)
        count *= along & 1u << k ? s->net_config.npus[k] : 1;
    return count == s->npu_count;
}

static uint32_t dims_along(const orr_sim *s, const sys_route *r)
{
    uint32_t along = 0;
    for (uint32_t k = 0; k < r->count; k++)
        /* A ring over all ranks has no dimensions of its own: it spans every one. */
        if (r->dims[k]->group || r->dims[k]->count == s->npu_count)
            along = UINT32_MAX;
        else
            along |= 1u << r->dims[k]->position;
    return along;
}

bool watch_is_along_dims(const cfg_group *group, const sys_route *r)
{
    return r && r->count && !(group && r->dims[0]->group);
}

static uint32_t members_of(const run_npu *n, const cfg_group *group, const sys_route *r)
{
    uint32_t count = 1;
    if (!watch_is_along_dims(group, r))
        return group ? group->count : n->sim->npu_count;
    for (uint32_t k = 0; k < r->count; k++)
        count *= r->dims[k]->count;
    return count;
}

/* A member waits for the others.  False: out of memory. */
static bool hold(run_npu *n, uint32_t place, watch_instance *at)
{
    struct watch_record *w = n->sim->watch;
    uint32_t h = w->free_hold;
    if (h != RUN_NONE)
        w->free_hold = w->holds[h].next;
    else if (w->hold_count < RUN_NONE && orr_grow(&w->holds, &w->hold_room, w->hold_count + 1))
        h = (uint32_t)w->hold_count++;
    if (h == RUN_NONE) {
        run_no_memory(n->sim);
        return false;
    }
    /* The round tells a wait of an earlier step from one of this (count_in). */
    w->holds[h] = (watch_hold){n->rank, place, at->held, n->round};
    at->held = h;
    return true;
}

/* A member of a collective simulated as messages arrives: all others wait for the last. */
static void count_in(
    run_npu *n, uint32_t place, uint32_t instance, uint32_t alike, uint32_t members)
{
    struct watch_record *w = n->sim->watch;
    watch_instance *at = &w->instances[instance];
    /* In lockstep a rank counts for all equal members. */
    if ((at->come += alike) < members) {
        if (hold(n, place, at))
            watch_node_held(n, place);
        return;
    }
    while (at->held != RUN_NONE) {
        const uint32_t h = at->held;
        run_npu *other = run_npu_of(n->sim, w->holds[h].rank);
        /* A member that did not need the last one may be in its next step already. */
        if (other->round == w->holds[h].round)
            watch_node_flows(other, w->holds[h].place);
        at->held = w->holds[h].next;
        w->holds[h].next = w->free_hold;
        w->free_hold = h;
    }
}

static void let_flow(orr_sim *s, watch_instance *at, uint64_t when)
{
    struct watch_record *w = s->watch;
    while (at->held != RUN_NONE) {
        const uint32_t h = at->held;
        watch_flows_at(run_npu_of(s, w->holds[h].rank), w->holds[h].place, when);
        at->held = w->holds[h].next;
        w->holds[h].next = w->free_hold;
        w->free_hold = h;
    }
}

/* The state of a collective with members in several parts; NULL: all are in this one, or out of
 * memory. */
static watch_across *find_across(orr_sim *s, uint32_t instance)
{
    struct watch_record *w = s->watch;
    watch_instance *at = &w->instances[instance];
    /* 0: not looked up yet; else its index plus one. */
    if (at->across)
        return at->across == RUN_NONE ? NULL : &w->across[at->across - 1];
    uint32_t here;
    const uint64_t parts = part_members(s->part, at->group, at->base, at->along, &here);
    /* One bit: all members are in this part. */
    if (!(parts & (parts - 1))) {
        at->across = RUN_NONE;
        return NULL;
    }
    if (!orr_grow(&w->across, &w->across_room, w->across_count + 1)) {
        run_no_memory(s);
        return NULL;
    }
    w->across[w->across_count] = (watch_across){.parts = parts, .here = here};
    at->across = (uint32_t)++w->across_count;
    return &w->across[w->across_count - 1];
}

static void count_part(orr_sim *s, uint32_t instance, watch_across *x, uint32_t part, uint64_t last)
{
    x->told |= UINT64_C(1) << part;
    if (last > x->last)
        x->last = last;
    /* The last part has reported its last member: data flowed for all from the latest of these
     * times. */
    if (x->told == x->parts)
        let_flow(s, &s->watch->instances[instance], x->last);
}

/* A part may learn of a collective before any of its own members calls it: create it here. */
void watch_came_across(orr_sim *s, const part_note *note)
{
    const watch_instance like = {.group = note->group,
                                 .stream = note->stream,
                                 .base = note->base,
                                 .along = note->along,
                                 .source = note->source};
    const uint32_t i = watch_find_instance(s->watch, &like);
    watch_across *x = i == RUN_NONE ? NULL : find_across(s, i);
    if (x)
        count_part(s, i, x, note->from, note->at);
    else if (!s->code)
        run_no_memory(s);
}

/* Like count_in, for a collective with members in several parts. */
static void count_in_across(run_npu *n, uint32_t place, uint32_t instance, watch_across *x)
{
    orr_sim *s = n->sim;
    struct watch_record *w = s->watch;
    watch_instance *at = &w->instances[instance];
    /* The last one here as well: it may still have to wait for other parts. */
    if (!hold(n, place, at))
        return;
    watch_held_across(n, place);
    if (++at->come < x->here)
        return;
    const part_note note = {.what = PART_CAME,
                            .at = clk_now(s->clock),
                            .group = at->group,
                            .stream = at->stream,
                            .base = at->base,
                            .along = at->along,
                            .source = at->source,
                            .from = s->part->index};
    for (uint32_t k = 0; k < CLK_CLOCKS; k++)
        if (x->parts >> k & 1 && k != s->part->index)
            part_tell(s->part, k, &note);
    count_part(s, instance, x, s->part->index, note.at);
}

static void watch_collective(
    run_npu *n, uint32_t place, uint64_t stream, const cfg_group *group, const sys_route *r)
{
    struct watch_record *w = n->sim->watch;
    const orr_columns *c = &n->graph->t->columns;
    const int kind =
        work_kind_of(c->comm_type ? (int)c->comm_type[n->graph->node[place]] : -1, n->sim->rules);
    const bool is_joint = !r && n->sim->joint && kind >= 0 && n->sim->plans[kind].is_joint;
    const bool counts = w->splits && !is_joint; /* joint.c reports itself who waits */
    if ((!w->keeps_steps && !counts) || n->sim->code)
        return;
    watch_instance like = {.group = group, .stream = stream, .source = RUN_NONE};
    if (r) {
        like.along = dims_along(n->sim, r);
        like.base = watch_base_of(n->sim, n->rank, like.along);
    }
    if (r && (r->kind == ORR_COLL_BROADCAST || r->kind == ORR_COLL_SCATTER))
        like.source = r->root;
    const fold_lockstep *l = n->sim->lockstep;
    watch_instance all = like; /* with symmetry: of all equivalent collectives */
    /* Under a symmetry members of one collective are simulated in different copies of it: they are
     * counted where all copies meet. */
    if (l && l->symmetry) {
        all.base = l->stands_for[all.base];
        if (group)
            all.group = &n->sim->groups.groups[l->like[group - n->sim->groups.groups]];
        all.is_counter = true;
    }
    const uint32_t met = counts ? watch_find_instance(w, &all) : 0;
    const uint32_t i = w->keeps_steps ? watch_find_instance(w, &like) : 0;
    if (met == RUN_NONE || i == RUN_NONE) {
        run_no_memory(n->sim);
        return;
    }
    watch_across *across = counts && n->sim->part ? find_across(n->sim, met) : NULL;
    if (n->sim->code)
        return;
    if (across)
        count_in_across(n, place, met, across);
    else if (counts)
        count_in(n, place, met, l && l->symmetry ? fold_members_like(n, group, r) : 1,
                 members_of(n, group, r));
    if (!w->keeps_steps || !run_is_recorded(n))
        return;
    const uint32_t step = w->ranks[n->rank].step_of[place];
    w->steps[step].instance = i;
    w->steps[step].earlier = w->instances[i].last;
    w->instances[i].last = step; /* time does not go back */
}

/* ---- reducing the symmetry ---- */

static bool add_hold(struct watch_record *w, uint32_t instance, watch_hold hold)
{
    if (w->hold_count >= RUN_NONE || !orr_grow(&w->holds, &w->hold_room, w->hold_count + 1))
        return false;
    hold.next = w->instances[instance].held;
    w->instances[instance].held = (uint32_t)w->hold_count;
    w->holds[w->hold_count++] = hold;
    return true;
}

/* An incomplete collective: the copies of members that have arrived wait, each in its own. */
static bool copy_counter(orr_sim *s, const fold_copier *c, uint32_t index)
{
    struct watch_record *w = s->watch;
    /* A copy: finding those of the copies may move the instances. */
    const watch_instance old = w->instances[index];
    bool ok = true;
    /* Mostly that of copy 0, which puts its members back below. */
    w->instances[index].held = RUN_NONE;
    for (uint32_t h = old.held; h != RUN_NONE && ok; h = w->holds[h].next)
        for (uint32_t k = 0; k < c->copies && ok; k++) {
            const uint32_t rank = fold_moved(c, k, w->holds[h].rank);
            watch_instance like = old;
            if (old.group)
                like.group = fold_group_at(c, old.group, rank);
            like.group = fold_like_of(c, like.group);
            /* By the remaining symmetry: members will look it up that way from now on. */
            like.base = net_sym_home(&c->kept, watch_base_of(s, rank, old.along));
            const uint32_t to = watch_find_instance(w, &like);
            ok = to != RUN_NONE;
            if (ok) {
                w->instances[to].come = old.come;
                ok = add_hold(w, to,
                              (watch_hold){rank, w->holds[h].place, RUN_NONE, w->holds[h].round});
            }
        }
    return ok;
}

bool watch_multiply(orr_sim *s, const fold_copier *c)
{
    struct watch_record *w = s->watch;
    const size_t known = w->instance_count;
    bool ok = true;
    for (uint32_t r = 0; r < s->npu_count && ok; r++) {
        if (s->lockstep->stands_for[r] != r)
            continue;
        for (uint32_t k = 1; k < c->copies && ok; k++) {
            watch_rank *to = &w->ranks[fold_moved(c, k, r)];
            /* Shares step_of, which is unused: where steps are kept no symmetry is reduced
             * (find_all_digits). */
            *to = w->ranks[r];
            if (!to->flows_at)
                continue;
            const uint32_t nodes = s->npus[r].graph->count;
            ok = (to->flows_at = orr_arena_new(w->arena, nodes, uint64_t)) != NULL;
            if (ok)
                memcpy(to->flows_at, w->ranks[r].flows_at, nodes * sizeof *to->flows_at);
        }
    }
    for (uint32_t i = 0; i < known && ok; i++)
        /* Only those with waiting members: the others have nothing to copy. */
        if (w->instances[i].held != RUN_NONE)
            ok = copy_counter(s, c, i);
    return ok;
}

/* ---- phases ---- */

static void watch_phase_start(sys_stream *st)
{
    run_npu *n = st->npu;
    struct watch_record *w = n->sim->watch;
    const sys_phase *p = &st->phases[st->phase];
    const uint32_t all = n->sim->opt.queues_per_dim;
    if (!run_is_recorded(n))
        return;
    if (w->phase_count >= RUN_NONE || !orr_grow(&w->phases, &w->phase_room, w->phase_count + 1)) {
        run_no_memory(n->sim);
        return;
    }
    st->record = (uint32_t)w->phase_count;
    w->phases[w->phase_count++] = (watch_phase){
        .start = watch_now(n->sim),
        .end = ORR_NEVER,
        .stream = st->id,
        .data = p->data,
        .step = w->ranks[n->rank].step_of[st->set->place],
        .dim = (uint16_t)(p->dim ? p->dim->position : 0),
        .queue = (uint16_t)(run_lane_of(n, st->set->place) * all + p->queue % all),
        .kind = (uint8_t)p->kind,
        .algorithm = coll_number(n->sim->opt.algorithms, p->dim ? p->dim->ops : NULL)};
}

static void watch_phase_end(sys_stream *st)
{
    struct watch_record *w = st->npu->sim->watch;
    if (run_is_recorded(st->npu))
        w->phases[st->record].end = watch_now(st->npu->sim);
}

const run_observer watch_observer = {
    .node_start = watch_node_start,
    .node_end = watch_node_end,
    .node_held = watch_node_held,
    .node_flows = watch_node_flows,
    .message = watch_message,
    .collective = watch_collective,
};

const run_observer watch_phase_observer = {
    .phase_start = watch_phase_start,
    .phase_end = watch_phase_end,
};

/* ---- one of several parts ---- */

/* All rows exist before parts count in them, so that they have one order. */
static bool find_all_tallies(const orr_sim *s)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        run_npu *n = &s->npus[r];
        if (s->watch->tally_of[n->graph - s->graphs])
            continue;
        for (uint32_t p = 0; p < n->graph->count; p++) {
            const uint8_t type = n->graph->t->columns.type[n->graph->node[p]];
            if (type >= ORR_NODE_COMM_SEND && type <= ORR_NODE_COMM_COLL && !watch_tally_of(n, p))
                return false;
        }
    }
    return true;
}

bool watch_create_part(orr_sim *part, const orr_sim *all)
{
    const struct watch_record *from = all->watch;
    struct watch_record *w = orr_alloc(1, sizeof *w);
    part->watch = w;
    if (!w || !find_all_tallies(all) || !(w->arena = orr_arena_create()))
        return false;
    w->keeps_steps = from->keeps_steps;
    w->keeps_phases = from->keeps_phases;
    w->splits = from->splits;
    /* Records are by rank, and each part writes only its own: they may be shared. */
    w->ranks = from->ranks;
    w->tally_of = from->tally_of;
    w->free_hold = RUN_NONE;
    if (!orr_grow(&w->tallies, &w->tally_room, from->tally_count + 1) ||
        !(w->instance_by_key = orr_map_create(0)) ||
        (from->bins && !(w->bins = orr_arena_new(w->arena, 1, watch_traffic_bins))))
        return false;
    /* Counts are still 0: parts begin with the run. */
    w->tally_count = from->tally_count;
    if (w->tally_count)
        memcpy(w->tallies, from->tallies, w->tally_count * sizeof *w->tallies);
    return true;
}

static void add_tallies(struct watch_record *w, const struct watch_record *of)
{
    for (size_t i = 0; i < of->tally_count; i++) {
        watch_tally *t = &w->tallies[i];
        const watch_tally *x = &of->tallies[i];
        t->count += x->count;
        t->bytes += x->bytes;
        t->time += x->time;
        t->exposed += x->exposed;
        t->waited += x->waited;
        if (x->longest > t->longest)
            t->longest = x->longest;
    }
}

static void add_bins(watch_traffic_bins *b, watch_traffic_bins *of, uint32_t dims)
{
    /* To the wider of the two.  Both double from the same start, so bins nest. */
    if (of->shift < b->shift)
        widen_bins(of, dims, b->shift - of->shift);
    else if (b->shift < of->shift)
        widen_bins(b, dims, of->shift - b->shift);
    for (uint32_t k = 0; k < dims; k++)
        for (uint32_t i = 0; i < WATCH_TRAFFIC_BINS; i++)
            b->bytes[k][i] += of->bytes[k][i];
}

/* Merges the parts of a collective. */
static bool add_log(struct watch_record *w, const struct watch_record *of)
{
    const size_t first = w->step_count;
    uint32_t *to = orr_alloc(of->instance_count + 1, sizeof *to);
    bool ok = to && first + of->step_count < RUN_NONE &&
              orr_grow(&w->steps, &w->step_room, first + of->step_count + 1) &&
              orr_grow(&w->phases, &w->phase_room, w->phase_count + of->phase_count + 1);
    for (size_t i = 0; ok && i < of->instance_count; i++) {
        watch_instance like = of->instances[i];
        /* An index of the part's own list. */
        like.across = 0;
        ok = (to[i] = watch_find_instance(w, &like)) != RUN_NONE;
    }
    for (size_t i = 0; ok && i < of->step_count; i++) {
        watch_step step = of->steps[i];
        if (step.instance != RUN_NONE)
            step.instance = to[step.instance];
        /* The order of arrival is found when the log is read: parts know only their own members. */
        step.earlier = RUN_NONE;
        w->ranks[step.rank].step_of[step.place] = (uint32_t)w->step_count;
        w->steps[w->step_count++] = step;
    }
    for (size_t i = 0; ok && i < of->phase_count; i++) {
        w->phases[w->phase_count] = of->phases[i];
        w->phases[w->phase_count++].step += (uint32_t)first;
    }
    orr_free(to);
    return ok;
}

void watch_drop_later(orr_sim *s)
{
    for (uint32_t r = 0; s->watch && r < s->npu_count; r++)
        if (s->watch->ranks[r].later) {
            orr_free(s->watch->ranks[r].later->ops);
            s->watch->ranks[r].later = NULL;
        }
}

bool watch_add_part(orr_sim *all, orr_sim *part)
{
    struct watch_record *w = all->watch, *of = part->watch;
    for (uint32_t r = 0; r < all->npu_count; r++) {
        watch_later *l = w->ranks[r].later;
        if (all->npus[r].sim != part || !l)
            continue;
        count_kept(&all->npus[r], l, true);
        orr_free(l->ops);
        w->ranks[r].later = NULL;
    }
    w->nodes_done += of->nodes_done;
    for (uint32_t k = 0; k < all->dims; k++) {
        w->traffic[k].messages += of->traffic[k].messages;
        w->traffic[k].bytes += of->traffic[k].bytes;
    }
    add_tallies(w, of);
    if (w->bins)
        add_bins(w->bins, of->bins, all->dims);
    return !w->keeps_steps || add_log(w, of);
}

/* ---- queries ---- */

uint64_t watch_until(const orr_sim *s, uint32_t rank)
{
    const uint64_t end = orr_sim_rank(s, rank)->finished_at;
    return end == ORR_NEVER ? watch_now(s) : end;
}

uint64_t watch_end_of_run(const orr_sim *s)
{
    if (s->finished == s->npu_count && s->finished)
        return orr_sim_rank(s, s->finish_order[s->finished - 1])->finished_at;
    return watch_now(s);
}

uint64_t watch_busy(const orr_sim *s, uint32_t rank)
{
    const watch_rank *r = &s->watch->ranks[rank];
    if (s->fold)
        return fold_busy(s->fold, rank);
    return r->busy + (r->active ? watch_until(s, rank) - r->busy_since : 0);
}

/* In lockstep, the record of its representative. */
static const watch_rank *rank_record(const orr_sim *s, uint32_t rank)
{
    return &s->watch->ranks[s->lockstep ? s->lockstep->stands_for[rank] : rank];
}

/* Time since the last change, up to now. */
static uint64_t pending(const orr_sim *s, const watch_rank *r, watch_use use)
{
    unsigned u = 0;
    while (u < WATCH_USES && !r->doing[u])
        u++;
    return u == (unsigned)use ? clk_now(s->clock) - r->since : 0;
}

uint64_t watch_spent(const orr_sim *s, uint32_t rank, watch_use use)
{
    if (s->fold)
        return fold_spent(s->fold, rank, use);
    const watch_rank *r = rank_record(s, rank);
    return r->spent[use] + pending(s, r, use);
}

uint64_t watch_overlapped(const orr_sim *s, uint32_t rank)
{
    if (s->fold)
        return fold_spent(s->fold, rank, WATCH_USES);
    const watch_rank *r = rank_record(s, rank);
    /* Computing precedes all other uses: if it is what goes on, exposed communication is beside
     * it. */
    return r->overlapped + (r->doing[WATCH_EXPOSED] ? pending(s, r, WATCH_COMPUTE) : 0);
}

bool watch_tally_ranks(const orr_sim *s, uint32_t *out)
{
    const struct watch_record *w = s->watch;
    const uint32_t classes = orr_set_class_count(s->set);
    uint32_t *ranks = orr_alloc(classes, sizeof *ranks);
    uint32_t *mark = orr_alloc(w->tally_count, sizeof *mark); /* 1 + the class seen last */
    if (ranks && mark) {
        memset(out, 0, w->tally_count * sizeof *out);
        for (uint32_t r = 0; r < s->npu_count; r++)
            ranks[orr_set_class_of(s->set, r)]++;
        for (uint32_t k = 0; k < classes; k++)
            for (uint32_t p = 0; w->tally_of[k] && p < s->graphs[k].count; p++) {
                const uint32_t row = w->tally_of[k][p];
                if (row == RUN_NONE || mark[row] == k + 1)
                    continue;
                mark[row] = k + 1;
                out[row] += ranks[k];
            }
    }
    const bool ok = ranks && mark;
    orr_free(ranks);
    orr_free(mark);
    return ok;
}

/* ---- for callers ---- */

orr_sim_dimension orr_sim_dimension_at(const orr_sim *s, uint32_t index)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    const orr_net_config *c = &s->net_config;
    orr_sim_dimension out = {.latency_ns = -1, .links = 1};
    if (index >= s->dims)
        return out;
    out.ranks = c->npus[index];
    if (!s->is_link_level) {
        out.shape = c->is_open[index] ? "Line" : shapes[c->shape[index]];
        out.links = net_rank_links(c->shape[index], c->npus[index]);
        out.bandwidth = c->bandwidth[index] * (double)(1 << 30);
        out.latency_ns = c->latency_ns[index];
    }
    if (s->watch) {
        out.messages = s->watch->traffic[index].messages;
        out.bytes = s->watch->traffic[index].bytes;
    }
    return out;
}

uint64_t orr_sim_time(const orr_sim *s)
{
    return watch_end_of_run(s);
}

void orr_sim_visit_links(const orr_sim *s, orr_net_link_visit visit, void *context)
{
    if (s->net_ops->report)
        s->net_ops->report(s->net, visit, context);
}
