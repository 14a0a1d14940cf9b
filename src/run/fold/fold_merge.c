/* SPDX-License-Identifier: Apache-2.0 */
/* fold_merge.c - merges classes that were split once they are in the same state.
 *
 * The future of a class follows from its trace, its speeds, which nodes have ended, are ready and
 * running, its posted messages, and the times of each member.  Times are per member, so they need
 * not be equal: two classes whose states are equal except for times can be one class.  Their
 * partners must agree as well: the resulting classes must be ones that fold_classes.c could have
 * found, so colours are refined once more, starting from the states.
 *
 * A class takes part only while it has no running collective.  Merging is attempted between two
 * ticks, when classes of one trace and speed have started and ended the same nodes.  The history of
 * merged classes is kept in *parts*; at the end the log of each initial class is assembled from
 * them (fold_leaves_begin).
 *
 * Cost: an attempt visits all ranks and the nodes of some classes; the number of attempts is
 * limited by the number of events. */
#include "fold_impl.h"

#include "base/memory/hash.h"

/* Some attempts are free; after that each must be paid for by enough events, so that attempts never
 * dominate the run time. */
enum { FREE_TRIES = 8, EVENTS_PER_TRY = 16 };

/* The history of a class up to its merge into another.  The first parts are the initial classes. */
struct fold_part {
    fold_log log;             /* of the class itself, while into is NONE */
    uint32_t owner, into, at; /* at: offset of its members in `into` */
    uint32_t count;
    uint32_t carried; /* the first of its steps, which were already running */
    uint32_t *ranks;
};

/* ---- can classes merge at all? ---- */

static bool is_kin(const fold_class *a, const fold_class *b)
{
    /* The start delay is ignored: it is in the past. */
    return a->npu->graph == b->npu->graph && a->npu->speed->compute == b->npu->speed->compute &&
           a->npu->speed->memory == b->npu->speed->memory &&
           a->npu->speed->host == b->npu->speed->host;
}

/* Late ranks, and classes split because of the order of events, may become equal later; slow ranks
 * and their partners never do. */
static bool could_be_fewer(fold_sim *f, uint64_t *colour, uint32_t *class_of)
{
    for (uint32_t r = 0; r < f->s->npu_count; r++) {
        cfg_rank_speed v =
            f->s->ranks_config.speeds ? f->s->ranks_config.speeds[r] : cfg_plain_rank;
        /* Ignore start delays. */
        v.delay = 0;
        colour[r] = orr_hash_bytes(&v, sizeof v, orr_set_class_of(f->s->set, r));
    }
    const uint32_t count = fold_refine(f, colour, class_of);
    if (!count)
        run_no_memory(f->s);
    return count && count < f->class_count;
}

bool fold_merge_init(fold_sim *f)
{
    orr_sim *s = f->s;
    bool has_kin = false;
    f->walks = f->class_count;
    for (uint32_t i = 0; i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        c->next_kin = c->part = i;
        for (uint32_t k = 0; k < i; k++)
            /* Insert into the ring after the first of its kin: each kin is one ring. */
            if (is_kin(c, &f->classes[k])) {
                c->next_kin = f->classes[k].next_kin;
                f->classes[k].next_kin = i;
                has_kin = true;
                break;
            }
    }
    bool ok = true;
    /* Members may leave a rooted collective before others join it, so that their later states are
     * unknown here. */
    if (has_kin && s->opt.steps < 2 && !s->fold_stays_apart && !f->has_roots) {
        f->colour = orr_arena_new(f->arena, s->npu_count, uint64_t);
        f->merged_of = orr_arena_new(f->arena, s->npu_count, uint32_t);
        ok = f->colour && f->merged_of;
        f->may_merge = ok && could_be_fewer(f, f->colour, f->merged_of);
    }
    if (!f->may_merge) {
        fold_finder_destroy(f->finder, orr_set_class_count(s->set));
        f->finder = NULL;
    }
    return ok && !s->code;
}

/* ---- are two classes in the same state? ---- */

static bool is_idle(const fold_class *c)
{
    const run_npu *n = c->npu;
    /* Queued chunks and running phases have individual numbers and partners: waiting for them to
     * end costs little, since collectives end. */
    bool is = c->count && n->result.finished_at == ORR_NEVER && c->phases == 0 && !c->held_slots &&
              !n->freed_count && !n->is_issuing;
    for (size_t q = 0; is && q < run_queue_count(n->sim); q++)
        is = !n->queues[q].first && !n->queues[q].running;
    return is;
}

static bool has_same_collectives(const run_npu *a, const run_npu *b)
{
    const orr_sim *s = a->sim;
    const size_t bytes = (size_t)s->lanes * s->dims * sizeof(uint32_t);
    /* Where an algorithm alternates between variants, classes do not merge: its counters would have
     * to be compared, too. */
    bool same = a->membership_count == b->membership_count && a->streams_made == b->streams_made &&
                a->priority == b->priority && !a->variants_made && !b->variants_made &&
                memcmp(a->next_general, b->next_general, bytes) == 0 &&
                memcmp(a->next_first, b->next_first, bytes) == 0 &&
                memcmp(a->next_second, b->next_second, bytes) == 0;
    for (size_t i = 0; same && i < a->membership_count; i++) {
        const sys_membership *x = a->memberships[i], *y = b->memberships[i];
        /* Collectives of the group begun so far; absolute numbers differ between groups. */
        same = x->next_stream - fold_first_stream(s, x->group) ==
                   y->next_stream - fold_first_stream(s, y->group) &&
               memcmp(x->is_planned, y->is_planned, sizeof x->is_planned) == 0;
    }
    return same;
}

static bool has_same_nodes(const run_npu *a, const run_npu *b)
{
    bool same =
        a->ready_count == b->ready_count && a->running == b->running &&
        memcmp(a->occupant, b->occupant, sizeof a->occupant) == 0 &&
        memcmp(a->waiting_for, b->waiting_for, a->graph->count * sizeof *a->waiting_for) == 0;
    for (unsigned k = 0; same && k < a->graph->slot_count; k++)
        /* The lowest level of the bitset determines those above. */
        same = memcmp(a->ready[k].level[0], b->ready[k].level[0],
                      a->ready[k].words[0] * sizeof *a->ready[k].level[0]) == 0;
    return same;
}

/* Sums accumulated in the order in which nodes end: equal to the bit. */
static bool has_same_sums(const run_npu *a, const run_npu *b)
{
    return a->sum_intensity == b->sum_intensity && a->sum_compute_use == b->sum_compute_use &&
           a->sum_memory_use == b->sum_memory_use && a->sum_duration == b->sum_duration &&
           a->sum_compute_bound == b->sum_compute_bound &&
           memcmp(a->has_run, b->has_run, sizeof a->has_run) == 0 &&
           a->result.has_other_nodes == b->result.has_other_nodes &&
           a->result.gpu_total == b->result.gpu_total;
}

/* The other class's event for the same node; NULL: none, or not unique. */
static const fold_event *twin_of(const fold_sim *f, const fold_class *other, const fold_event *e)
{
    const fold_event *found = NULL;
    for (uint32_t i = other->first_event; i != RUN_NONE; i = f->events[i].next) {
        const fold_event *g = &f->events[i];
        if (g->kind != e->kind || g->call.action != e->call.action ||
            g->call.argument != e->call.argument)
            continue;
        /* Two events for one node are indistinguishable: do not merge such classes. */
        if (found)
            return NULL;
        found = g;
    }
    return found;
}

/* Conclusions from their numbers are the same in both classes. */
static bool is_same_order(const fold_event *x,
                          const fold_event *y,
                          const fold_event *u,
                          const fold_event *v)
{
    if ((x->sender == y->sender) != (u->sender == v->sender))
        return false;
    /* Absolute numbers differ between classes; only the conclusions of tie_order count. */
    return x->kind != y->kind || (x->number < y->number) == (u->number < v->number);
}

static bool has_same_events(const fold_sim *f, const fold_class *a, const fold_class *b)
{
    size_t count = 0, others = 0;
    for (uint32_t i = b->first_event; i != RUN_NONE; i = f->events[i].next)
        others++;
    for (uint32_t i = a->first_event; i != RUN_NONE; i = f->events[i].next, count++) {
        const fold_event *x = &f->events[i], *u = twin_of(f, b, x);
        /* Only timers of nodes and messages: their callbacks refer to the class's run_npu, which
         * can be replaced. */
        if (!u || x->kind == FOLD_PHASE_END || x->call.context != a->npu ||
            u->call.context != b->npu)
            return false;
        if (!f->is_loose && a->last.kind != UINT8_MAX && !is_same_order(x, &a->last, u, &b->last))
            return false;
        for (uint32_t k = a->first_event; k != i; k = f->events[k].next) {
            const fold_event *y = &f->events[k], *v = twin_of(f, b, y);
            if (!v || !is_same_order(x, y, u, v))
                return false;
        }
    }
    return count == others && (f->is_loose || a->last.kind == b->last.kind);
}

/* The partition of nodes by the event that made them ready, or freed their slot, is the same in
 * both. */
static bool has_same_makers(const fold_sim *f, const fold_class *a, const fold_class *b)
{
    const work_graph *g = a->npu->graph;
    orr_map *first[2] = {orr_map_create(0), orr_map_create(0)};
    bool has_room = first[0] && first[1], same = has_room;
    for (uint32_t p = 0; same && p < g->count + WORK_SLOTS; p++) {
        const bool is_node = p < g->count;
        if (is_node && !orr_bitset_has(&a->npu->ready[g->slot[p]], p))
            continue;
        const uint64_t x = is_node ? a->ready_by[p] : a->slots[p - g->count].freed_by;
        const uint64_t y = is_node ? b->ready_by[p] : b->slots[p - g->count].freed_by;
        if (x == 0 || y == 0 || x == UINT64_MAX || y == UINT64_MAX) {
            same = x == y;
            continue;
        }
        /* Both numbered by first occurrence: equal partitions give equal numbers, whatever the ids
         * of the events. */
        const uint32_t i = orr_map_find(first[0], x, p), k = orr_map_find(first[1], y, p);
        has_room = orr_map_put(first[0], x, i, NULL) && orr_map_put(first[1], y, k, NULL);
        same = i == k && has_room;
    }
    if (!has_room)
        run_no_memory(f->s);
    orr_map_destroy(first[0]);
    orr_map_destroy(first[1]);
    return same;
}

/* Of each slot only what later decisions use: its last event, how many have started, and the last
 * one. */
static bool has_same_slots(const fold_class *a, const fold_class *b)
{
    for (unsigned k = 0; k < WORK_SLOTS; k++) {
        const fold_slot *x = &a->slots[k], *y = &b->slots[k];
        if (x->last.kind != y->last.kind || x->started != y->started ||
            x->last_place != y->last_place)
            return false;
    }
    for (size_t k = 0; a->numbered && k < a->link_count; k++)
        if (!a->numbered[k].event != !b->numbered[k].event ||
            a->numbered[k].slot != b->numbered[k].slot)
            return false;
    return true;
}

/* Letters of the two channels must pair up one by one: then the letters of the new channel are
 * theirs, per member. */
static bool has_same_letters(const fold_channel *x, const fold_channel *y)
{
    const fold_letter *l = x->first, *m = y->first;
    for (; l && m; l = l->next, m = m->next)
        if (l->is_send != m->is_send || l->place != m->place || l->size != m->size)
            return false;
    return !l && !m && !x->sent.event == !y->sent.event && !x->posted.event == !y->posted.event &&
           x->sent.slot == y->sent.slot && x->posted.slot == y->posted.slot &&
           x->pairs->is_joined == y->pairs->is_joined;
}

static bool has_same_channels(const fold_class *a, const fold_class *b)
{
    bool same = true;
    for (size_t k = 0; same && k < a->relation_count; k++)
        same = !a->channel[k] == !b->channel[k] &&
               (!a->channel[k] || has_same_letters(a->channel[k], b->channel[k]));
    return same;
}

static bool is_same_state(const fold_sim *f, const fold_class *a, const fold_class *b)
{
    return is_kin(a, b) && has_same_nodes(a->npu, b->npu) && has_same_sums(a->npu, b->npu) &&
           has_same_collectives(a->npu, b->npu) && has_same_events(f, a, b) &&
           has_same_channels(a, b) && has_same_slots(a, b) &&
           /* Cheap checks first: most classes differ in their nodes. */
           (!f->is_loose || has_same_makers(f, a, b));
}

/* ---- which classes merge ---- */

/* By class: the first one in the same state, or itself.  False: no two are equal. */
static bool find_alike(const fold_sim *f, uint32_t *like)
{
    bool any = false;
    for (uint32_t i = 0; i < f->class_count; i++)
        like[i] = i;
    for (uint32_t i = 0; i < f->class_count; i++) {
        const fold_class *a = &f->classes[i];
        if (like[i] != i || !a->count || !is_idle(a))
            continue;
        for (uint32_t k = a->next_kin; k != i; k = f->classes[k].next_kin) {
            const fold_class *b = &f->classes[k];
            /* Pairs with a smaller one were compared before. */
            if (k < i || like[k] != k || b->done_sum != a->done_sum || !is_idle(b) ||
                !is_same_state(f, a, b))
                continue;
            like[k] = i;
            any = true;
        }
    }
    return any;
}

/* ---- the new state ---- */

typedef struct merger {
    fold_sim *f;
    uint32_t *into;          /* by class: the one it is merged into, or itself */
    uint32_t *counts;        /* old number of members */
    fold_channel ***channel; /* old, by class and relation */
    fold_family ***family;   /* old, by class and link */
    fold_val *values;        /* of the parts being joined */
    bool has_failed;
} merger;

/* One number per member of the new class, part after part. */
static fold_val join(merger *m, uint32_t into, const fold_val *values)
{
    fold_sim *f = m->f;
    size_t count = 0;
    bool is_even = true;
    /* From there on: a class is merged into the smallest (refine_states). */
    for (uint32_t i = into; i < f->class_count; i++)
        if (m->into[i] == into) {
            is_even = is_even && !values[i].by && values[i].base == values[into].base;
            count += m->counts[i];
        }
    if (is_even)
        return (fold_val){values[into].base, 0, 0};
    if (!orr_grow(&f->ends, &f->ends_room, count)) {
        run_no_memory(f->s);
        m->has_failed = true;
        return (fold_val){0, 0, 0};
    }
    count = 0;
    for (uint32_t i = into; i < f->class_count; i++)
        for (uint32_t k = 0; m->into[i] == into && k < m->counts[i]; k++)
            f->ends[count++] = fold_at(f->times, values[i], k);
    return fold_make(f->times, f->ends, (uint32_t)count);
}

/* The same field of all parts, gathered and joined; classes that are not merged are skipped. */
#define JOIN(m, into_class, of)                                            \
    do {                                                                   \
        for (uint32_t i_ = 0; i_ < (m)->f->class_count; i_++)              \
            (m)->values[i_] = (m)->f->classes[i_].of;                      \
        (m)->f->classes[into_class].of = join(m, into_class, (m)->values); \
    } while (0)

static void widen(fold_event *e, const fold_event *by)
{
    /* Values that differ between parts become an interval, which permits fewer conclusions but
     * never a wrong one. */
    e->lag_least = by->lag_least < e->lag_least ? by->lag_least : e->lag_least;
    e->lag_most = by->lag_most > e->lag_most ? by->lag_most : e->lag_most;
}

static void join_events(merger *m, uint32_t into)
{
    fold_sim *f = m->f;
    fold_class *c = &f->classes[into];
    uint32_t at = c->first_event;
    c->first_event = RUN_NONE;
    while (at != RUN_NONE && !m->has_failed) {
        fold_event e = f->events[at];
        const uint32_t next = e.next;
        for (uint32_t i = into; i < f->class_count; i++) {
            const fold_event *part = i == into ? &f->events[at] : NULL;
            if (i != into && m->into[i] == into)
                part = twin_of(f, &f->classes[i], &e);
            if (!part)
                continue;
            m->values[i] = part->at;
            widen(&e, part);
        }
        f->events[at].is_pending = false; /* freed when it is popped from the queue */
        e.at = join(m, into, m->values);
        /* Without the check of fold_schedule, which each part's event has passed. */
        fold_put_event(f, &e);
        at = next;
    }
    for (uint32_t i = into + 1; i < f->class_count; i++)
        if (m->into[i] == into) {
            for (at = f->classes[i].first_event; at != RUN_NONE; at = f->events[at].next)
                f->events[at].is_pending = false;
            f->classes[i].first_event = RUN_NONE;
        }
}

static void join_orders(merger *m, uint32_t into)
{
    fold_sim *f = m->f;
    fold_class *c = &f->classes[into];
    const work_graph *g = c->npu->graph;
    JOIN(m, into, now);
    JOIN(m, into, event_at);
    JOIN(m, into, round_end);
    JOIN(m, into, last.at);
    for (uint32_t i = into; i < f->class_count; i++)
        if (m->into[i] == into)
            widen(&c->last, &f->classes[i].last);
    for (unsigned k = 0; k < WORK_SLOTS; k++) {
        JOIN(m, into, slots[k].free_at);
        JOIN(m, into, slots[k].last_start);
        JOIN(m, into, slots[k].start_before);
        JOIN(m, into, slots[k].last.at);
        for (uint32_t i = into; i < f->class_count; i++)
            if (m->into[i] == into) {
                c->slots[k].is_firm = c->slots[k].is_firm && f->classes[i].slots[k].is_firm;
                widen(&c->slots[k].last, &f->classes[i].slots[k].last);
            }
    }
    for (size_t k = 0; c->numbered && k < c->link_count; k++)
        JOIN(m, into, numbered[k].at);
    /* Only nodes whose time will be needed: ready ones, and those with some ended parents. */
    for (uint32_t p = 0; f->is_loose && p < g->count; p++) {
        const bool is_ready = orr_bitset_has(&c->npu->ready[g->slot[p]], p);
        const uint32_t left = c->npu->waiting_for[p];
        if (!is_ready && (left == 0 || left == g->parents[p]))
            continue;
        for (uint32_t i = into; i < f->class_count; i++)
            if (m->into[i] == into)
                m->values[i] = f->classes[i].ready_at[p];
        c->ready_at[p] = join(m, into, m->values);
    }
}

/* ---- logs ---- */

/* Parts form a tree that grows towards the end of the run:
 *
 *     class 0   --part 0--.
 *                          >--part 3--.
 *     class 1   --part 1--'            >--part 4-- ...
 *     class 2   --part 2--------------'
 *
 * A part's log ends where it is merged into another; its members are contiguous there.  The log of
 * the initial class 1 is that of part 1, then its share of parts 3 and 4 (make_leaf). */
static uint32_t new_part(fold_sim *f)
{
    if (!orr_grow(&f->parts, &f->part_room, f->part_count + 1)) {
        run_no_memory(f->s);
        return RUN_NONE;
    }
    f->parts[f->part_count] = (struct fold_part){.into = RUN_NONE};
    return (uint32_t)f->part_count++;
}

/* The initial classes. */
static bool begin_parts(fold_sim *f)
{
    const size_t bytes = f->s->npu_count * sizeof(uint32_t);
    if (f->part_count)
        return true;
    f->leaf_of = orr_arena_take(f->arena, bytes);
    f->leaf_index = orr_arena_take(f->arena, bytes);
    if (!f->leaf_of || !f->leaf_index)
        return false;
    memcpy(f->leaf_of, f->class_of, bytes);
    memcpy(f->leaf_index, f->index_of, bytes);
    for (uint32_t i = 0; i < f->class_count; i++) {
        if (new_part(f) == RUN_NONE)
            return false;
        f->parts[i].owner = i;
        f->parts[i].count = f->classes[i].count;
        f->parts[i].ranks = f->classes[i].ranks;
    }
    return true;
}

/* Running steps continue in the log of the new class. */
static void join_logs(merger *m, uint32_t into, uint32_t *ranks, uint32_t count)
{
    fold_sim *f = m->f;
    fold_class *c = &f->classes[into];
    fold_log fresh = {.step_of = c->log.step_of};
    const uint32_t part = new_part(f);
    if (part == RUN_NONE) {
        m->has_failed = true;
        return;
    }
    for (size_t s = 0; s < c->log.count; s++) {
        fold_logged step = c->log.steps[s];
        if (step.has_ended)
            continue;
        /* Parts in one state run the same nodes, so each log has this step under its place. */
        for (uint32_t i = into; i < f->class_count; i++)
            if (m->into[i] == into) {
                const fold_log *l = &f->classes[i].log;
                m->values[i] = l->steps[l->step_of[step.place]].start;
            }
        step.start = join(m, into, m->values);
        if (!orr_grow(&fresh.steps, &fresh.room, fresh.count + 1)) {
            run_no_memory(f->s);
            break;
        }
        fresh.steps[fresh.count++] = step;
    }
    uint32_t at = 0;
    for (uint32_t i = into; i < f->class_count; i++) {
        if (m->into[i] != into)
            continue;
        fold_class *old = &f->classes[i];
        struct fold_part *p = &f->parts[old->part];
        p->log = old->log;
        p->into = part;
        p->at = at;
        at += m->counts[i];
        old->log = (fold_log){0};
    }
    for (size_t s = 0; s < fresh.count; s++)
        fresh.step_of[fresh.steps[s].place] = (uint32_t)s;
    c->log = fresh;
    c->part = part;
    f->parts[part].owner = into;
    f->parts[part].ranks = ranks;
    f->parts[part].count = count;
    f->parts[part].carried = (uint32_t)fresh.count;
}

/* ---- partners ---- */

static void join_members(merger *m, uint32_t into)
{
    fold_sim *f = m->f;
    uint32_t count = 0;
    for (uint32_t i = into; i < f->class_count; i++)
        count += m->into[i] == into ? m->counts[i] : 0;
    uint32_t *ranks = orr_arena_new(f->arena, count, uint32_t);
    if (!ranks) {
        run_no_memory(f->s);
        m->has_failed = true;
        return;
    }
    /* Before the members are replaced: times are joined by the old counts and lists. */
    join_events(m, into);
    join_orders(m, into);
    join_logs(m, into, ranks, count);
    count = 0;
    for (uint32_t i = into; i < f->class_count; i++)
        for (uint32_t k = 0; m->into[i] == into && k < m->counts[i]; k++)
            ranks[count++] = f->classes[i].ranks[k];
    for (uint32_t i = into + 1; i < f->class_count; i++)
        if (m->into[i] == into) {
            f->classes[i].count = 0;
            f->walks--;
        }
    /* Part after part, like the times in join(). */
    f->classes[into].ranks = ranks;
    f->classes[into].count = count;
    for (uint32_t k = 0; k < count; k++) {
        f->class_of[ranks[k]] = into;
        f->index_of[ranks[k]] = k;
    }
}

/* Merged classes leave the ring of their kin. */
static void leave_kin(fold_sim *f)
{
    for (uint32_t i = 0; i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        while (c->count && !f->classes[c->next_kin].count)
            c->next_kin = f->classes[c->next_kin].next_kin;
    }
}

/* The old channel of the same relation of which this old class was a side; NULL: none. */
static const fold_channel *side_of(
    const merger *m, uint32_t into, size_t relation, uint32_t part, bool is_from)
{
    for (uint32_t i = into; i < m->f->class_count; i++) {
        const fold_channel *h = m->into[i] == into ? m->channel[i][relation] : NULL;
        if (h && (is_from ? h->pairs->from_class : h->pairs->to_class) == part)
            return h;
    }
    return NULL;
}

/* The end of a channel may itself be a merged class: its turn is assembled from the channels of its
 * parts. */
static void join_turn(
    merger *m, uint32_t into, size_t relation, bool is_from, uint32_t end, fold_turn *out)
{
    for (uint32_t i = end; i < m->f->class_count && !m->has_failed; i++)
        if (m->into[i] == end) {
            const fold_channel *h = side_of(m, into, relation, i, is_from);
            m->has_failed = !h;
            if (h)
                m->values[i] = (is_from ? &h->sent : &h->posted)->at;
            if (h && i == end)
                *out = is_from ? h->sent : h->posted;
        }
    if (!m->has_failed && out->event)
        out->at = join(m, end, m->values);
}

static const fold_letter *letter_at(const fold_channel *h, size_t number)
{
    const fold_letter *l = h->first;
    while (l && number-- > 0)
        l = l->next;
    return l;
}

/* Unmatched sends and receives. */
static void join_letters(merger *m, uint32_t into, size_t relation, fold_channel *out)
{
    const fold_pairs *h = out->pairs;
    const fold_channel *first = m->channel[into][relation];
    if (h->from_class != RUN_NONE)
        join_turn(m, into, relation, true, h->from_class, &out->sent);
    if (h->to_class != RUN_NONE)
        join_turn(m, into, relation, false, h->to_class, &out->posted);
    size_t number = 0;
    for (const fold_letter *l = first->first; l && !m->has_failed; l = l->next, number++) {
        const uint32_t end = l->is_send ? h->from_class : h->to_class;
        fold_letter one = *l;
        for (uint32_t i = end; i < m->f->class_count && !m->has_failed; i++) {
            if (m->into[i] != end)
                continue;
            const fold_channel *old = side_of(m, into, relation, i, l->is_send);
            const fold_letter *part = old ? letter_at(old, number) : NULL;
            m->has_failed = !part;
            if (!part)
                break;
            m->values[i] = part->at;
            one.lag_least = part->lag_least < one.lag_least ? part->lag_least : one.lag_least;
            one.lag_most = part->lag_most > one.lag_most ? part->lag_most : one.lag_most;
        }
        if (m->has_failed)
            break;
        one.at = join(m, end, m->values);
        fold_put_letter(m->f, out, &one);
    }
}

/* Families, pairs and channels depend on classes: all are rebuilt. */
static bool forget_others(merger *m)
{
    fold_sim *f = m->f;
    /* Kept until the end: running phases still refer to them. */
    for (size_t i = 0; i < f->family_count; i++) {
        if (!orr_grow(&f->old_families, &f->old_family_room, f->old_family_count + 1))
            return false;
        f->old_families[f->old_family_count++] = f->families[i];
    }
    /* Only the lists: numbers of families and maps go on, since results are memoised by them. */
    f->family_count = f->pairs_count = 0;
    orr_map_destroy(f->claims);
    orr_map_destroy(f->channel_by_sum);
    f->claims = orr_map_create(0);
    f->channel_by_sum = orr_map_create(0);
    if (!f->claims || !f->channel_by_sum)
        return false;
    for (uint32_t i = 0; i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        m->channel[i] = c->channel;
        m->family[i] = c->family;
        c->family = orr_arena_new(f->arena, c->link_count, fold_family *);
        c->pairs = orr_arena_new(f->arena, c->link_count, fold_pairs *);
        c->channel = orr_arena_new(f->arena, c->relation_count, fold_channel *);
        c->line_count = 0;
        if (!c->family || !c->pairs || !c->channel)
            return false;
    }
    return true;
}

/* The new family of these phases of a class; NULL: given up. */
static fold_family *family_now(const merger *m, fold_class *c, const fold_family *old)
{
    const work_graph *g = c->npu->graph;
    const uint32_t mine = (uint32_t)(c - m->f->classes);
    if (old->is_line)
        return fold_line_family(m->f, c, &(sys_dim){.offset = old->offset, .count = old->members});
    for (uint32_t p = 0; p < g->count; p++) {
        const uint32_t relation = c->relation_of[p];
        if (relation && m->family[mine][c->link_of[relation - 1]] == old)
            return fold_group_family(m->f, c->npu, p);
    }
    return NULL;
}

/* Classes that are not merged may have running phases: move them to the new families. */
static bool move_running(const merger *m, fold_class *c)
{
    bool ok = true;
    /* They are listed only where tags may clash (note_running). */
    for (uint32_t i = 0; ok && m->f->may_mix_tags && i < c->phases; i++)
        ok = (c->running[i].family = family_now(m, c, c->running[i].family)) != NULL;
    return ok;
}

/* Rebuilds the channels of this class. Only for relations that were used: others are created on
 * first use. */
static bool find_channels(merger *m, fold_class *c)
{
    const work_graph *g = c->npu->graph;
    const uint32_t mine = (uint32_t)(c - m->f->classes);
    for (uint32_t p = 0; p < g->count && !fold_is_over(m->f); p++) {
        const uint8_t type = g->t->columns.type[g->node[p]];
        const uint32_t relation = c->relation_of[p];
        if (type != ORR_NODE_COMM_SEND && type != ORR_NODE_COMM_RECV)
            continue;
        if (relation && m->channel[mine][relation - 1] && !c->channel[relation - 1] &&
            !fold_channel_of(m->f, c->npu, p, type == ORR_NODE_COMM_SEND))
            return false;
    }
    return !fold_is_over(m->f);
}

static bool find_others_again(merger *m)
{
    fold_sim *f = m->f;
    bool ok = forget_others(m);
    if (!ok)
        run_no_memory(f->s);
    for (uint32_t i = 0; ok && i < f->class_count; i++)
        ok = !f->classes[i].count ||
             (find_channels(m, &f->classes[i]) && move_running(m, &f->classes[i]));
    for (uint32_t i = 0; ok && i < f->class_count; i++)
        for (size_t k = 0; ok && f->classes[i].count && k < f->classes[i].relation_count; k++) {
            fold_channel *h = f->classes[i].channel[k];
            if (!h || h->is_joined)
                continue;
            h->is_joined = true; /* the other side finds it done */
            join_letters(m, i, k, h);
            ok = !m->has_failed && !fold_is_over(f);
        }
    return ok && fold_move_meetings(f);
}

/* ---- trying ---- */

static void merge(merger *m)
{
    fold_sim *f = m->f;
    for (uint32_t i = 0; i < f->class_count && !m->has_failed; i++) {
        bool is_joined = false;
        for (uint32_t k = i + 1; k < f->class_count; k++)
            is_joined = is_joined || (f->classes[k].count && m->into[k] == i);
        if (f->classes[i].count && m->into[i] == i && is_joined)
            join_members(m, i);
    }
    leave_kin(f);
    if (!m->has_failed && !find_others_again(m) && !fold_is_over(f))
        m->has_failed = true;
    /* Classes are half changed: only another run helps, in which merging is off. */
    if (m->has_failed && !f->s->code)
        fold_give_up(f, "classes in the same state do not become one");
}

/* The resulting number of classes; *into: by class, its target. */
static uint32_t refine_states(fold_sim *f, const uint32_t *like, uint32_t *into)
{
    for (uint32_t r = 0; r < f->s->npu_count; r++)
        /* Classes in the same state start with one colour; refinement then compares their
         * partners. */
        f->colour[r] = orr_hash_mix(like[f->class_of[r]] ^ 0xa0761d6478bd642fu,
                                    orr_set_class_of(f->s->set, r) ^ 0x8ebc6af09c88c6e3u);
    const uint32_t count = fold_refine(f, f->colour, f->merged_of);
    if (!count) {
        run_no_memory(f->s);
        return f->walks;
    }
    uint32_t *first = orr_alloc(count, sizeof *first);
    if (!first) {
        run_no_memory(f->s);
        return f->walks;
    }
    memset(first, 0xff, count * sizeof *first);
    for (uint32_t i = 0; i < f->class_count; i++) {
        into[i] = RUN_NONE;
        if (!f->classes[i].count)
            continue;
        uint32_t *one = &first[f->merged_of[f->classes[i].ranks[0]]];
        if (*one == RUN_NONE)
            *one = i;
        into[i] = *one;
    }
    orr_free(first);
    return count;
}

/* States first, at the cost of the nodes of a few classes; then colours, at the cost of all
 * ranks. */
static void try_now(fold_sim *f)
{
    const uint32_t all = f->class_count;
    merger m = {.f = f,
                /* The second half: by class, the first one in the same state (find_alike). */
                .into = orr_alloc(2 * (size_t)all, sizeof *m.into),
                .counts = orr_alloc(all, sizeof *m.counts),
                .channel = orr_alloc(all, sizeof *m.channel),
                .family = orr_alloc(all, sizeof *m.family),
                .values = orr_alloc(all, sizeof *m.values)};
    if (!m.into || !m.counts || !m.channel || !m.family || !m.values) {
        run_no_memory(f->s);
    } else if (find_alike(f, m.into + all) && refine_states(f, m.into + all, m.into) < f->walks &&
               !f->s->code) {
        for (uint32_t i = 0; i < all; i++)
            m.counts[i] = f->classes[i].count;
        if (begin_parts(f)) {
            f->merges++;
            merge(&m);
            /* It paid off: attempts are free again. */
            f->merge_tries = 0;
        } else {
            run_no_memory(f->s);
        }
    }
    orr_free(m.into);
    orr_free(m.counts);
    orr_free(m.channel);
    orr_free(m.family);
    orr_free(m.values);
}

/* Called after every event, so the first checks are single comparisons; only classes of one kin
 * with equal sums are compared in full. */
void fold_merge_maybe(fold_sim *f, const fold_class *c, int64_t now)
{
    const uint32_t mine = (uint32_t)(c - f->classes);
    bool any = false;
    if (f->events_run < f->next_merge || !f->queue.count ||
        /* Only between two ticks: within one, due events may still order the members. */
        f->queue.entries[0].key <= (uint64_t)now)
        return;
    for (uint32_t k = c->next_kin; k != mine && !any; k = f->classes[k].next_kin)
        /* A sum of hashes over nodes that have started and ended: equal states have equal sums, and
         * most others are rejected by one comparison. */
        any = f->classes[k].done_sum == c->done_sum;
    if (!any)
        return;
    const uint32_t before = f->walks;
    try_now(f);
    const uint64_t cost = (f->s->npu_count + (uint64_t)c->npu->graph->count) / EVENTS_PER_TRY;
    f->next_merge =
        f->events_run + (f->walks == before && ++f->merge_tries > FREE_TRIES ? cost : 0);
    /* With one class left there is nothing more to merge. */
    f->may_merge = f->walks > 1;
}

void fold_merge_note(fold_class *c, uint32_t place, bool is_end)
{
    /* Sums do not depend on the order, which may differ between classes. */
    c->done_sum += orr_hash_mix(place ^ 0xa0761d6478bd642fu, is_end ? 0xe7037ed1a0b428dbu : 1);
}

uint32_t fold_walks(const fold_sim *f)
{
    return f->walks;
}

/* ---- the initial classes, with the full log of their members ---- */

/* open: by node, the index in `to` of a running step. */
static bool add_part(fold_sim *f,
                     const struct fold_part *p,
                     const fold_log *from,
                     uint32_t at,
                     uint32_t count,
                     uint32_t *open,
                     fold_log *to)
{
    const uint32_t notes = (uint32_t)to->note_count;
    uint32_t *number = orr_alloc(from->count + 1, sizeof *number); /* of steps, in `to` */
    const bool ok = number && orr_grow(&to->steps, &to->room, to->count + from->count) &&
                    orr_grow(&to->notes, &to->note_room, to->note_count + from->note_count) &&
                    orr_grow(&to->phases, &to->phase_room, to->phase_count + from->phase_count);
    for (size_t i = 0; ok && i < from->count; i++) {
        fold_logged step = from->steps[i];
        step.start = fold_part_of(f->times, step.start, at, count);
        step.end = fold_part_of(f->times, step.end, at, count);
        if (step.note != RUN_NONE)
            step.note += notes;
        /* A step that was running when its class was merged is one step, not two. */
        number[i] = i < p->carried ? open[step.place] : (uint32_t)to->count++;
        open[step.place] = number[i];
        to->steps[number[i]] = step;
    }
    for (size_t i = 0; ok && i < from->note_count; i++)
        to->notes[to->note_count++] = from->notes[i];
    for (size_t i = 0; ok && i < from->phase_count; i++) {
        fold_logged_phase phase = from->phases[i];
        phase.start = fold_part_of(f->times, phase.start, at, count);
        phase.end = fold_part_of(f->times, phase.end, at, count);
        phase.like.step = number[phase.like.step];
        to->phases[to->phase_count++] = phase;
    }
    orr_free(number);
    return ok && !fold_times_failed(f->times);
}

/* The fields that are swapped while the initial classes are restored. */
typedef struct fold_view {
    fold_class *classes;
    uint32_t *class_of, *index_of;
    fold_family **families;
    size_t family_count, family_room;
    fold_pairs **pairs;
    size_t pairs_count, pairs_room;
    orr_map *claims, *channel_by_sum;
} fold_view;

/* Statistics and logs are made by code that knows classes, not parts: swap in the initial classes,
 * and afterwards swap back. */
static void exchange(fold_sim *f, fold_view *v)
{
    const fold_view now = {f->classes,      f->class_of,    f->index_of,      f->families,
                           f->family_count, f->family_room, f->pairs,         f->pairs_count,
                           f->pairs_room,   f->claims,      f->channel_by_sum};
    f->classes = v->classes;
    f->class_of = v->class_of;
    f->index_of = v->index_of;
    f->families = v->families;
    f->family_count = v->family_count;
    f->family_room = v->family_room;
    f->pairs = v->pairs;
    f->pairs_count = v->pairs_count;
    f->pairs_room = v->pairs_room;
    f->claims = v->claims;
    f->channel_by_sum = v->channel_by_sum;
    *v = now;
}

/* From the class's own part along the tree to the remaining one, taking its own members from
 * each. */
static bool make_leaf(fold_sim *f, uint32_t i, uint32_t *open, fold_class *leaf)
{
    const uint32_t count = f->parts[i].count;
    fold_log log = {0};
    uint32_t at = 0, k = i;
    bool ok = true;
    for (;; k = f->parts[k].into) {
        const struct fold_part *p = &f->parts[k];
        const bool is_over = p->into != RUN_NONE;
        const fold_log *from = is_over ? &p->log : &f->classes[p->owner].log;
        ok = ok && add_part(f, p, from, at, count, open, &log);
        if (!is_over)
            break;
        /* Members of a part are contiguous in its target: offsets add up. */
        at += p->at;
    }
    run_npu *n = &f->s->npus[i];
    const fold_class *owner = &f->classes[f->parts[k].owner];
    if (owner->npu != n) { /* it ended as part of that one */
        n->result = owner->npu->result;
        n->running = owner->npu->running;
    }
    *leaf = *owner;
    leaf->npu = n;
    leaf->log = log;
    leaf->flows = NULL;
    leaf->now = fold_part_of(f->times, owner->now, at, count);
    leaf->ranks = f->parts[i].ranks;
    leaf->count = count;
    leaf->line_count = 0;
    leaf->family = orr_arena_new(f->arena, leaf->link_count, fold_family *);
    leaf->pairs = orr_arena_new(f->arena, leaf->link_count, fold_pairs *);
    leaf->channel = orr_arena_new(f->arena, leaf->relation_count, fold_channel *);
    return ok && leaf->family && leaf->pairs && leaf->channel;
}

/* The partners of its messages. */
static bool find_leaf_channels(fold_sim *f, const fold_class *c)
{
    const work_graph *g = c->npu->graph;
    bool ok = true;
    for (size_t i = 0; ok && i < c->log.count; i++) {
        const uint32_t place = c->log.steps[i].place;
        const uint8_t type = g->t->columns.type[g->node[place]];
        if (type == ORR_NODE_COMM_SEND || type == ORR_NODE_COMM_RECV)
            ok = fold_channel_of(f, c->npu, place, type == ORR_NODE_COMM_SEND) != NULL;
    }
    return ok;
}

bool fold_leaves_begin(fold_sim *f)
{
    uint32_t most = 0;
    if (!f->merges)
        return true;
    fold_view *v = orr_alloc(1, sizeof *v);
    if (!v)
        return false;
    *v = (fold_view){.classes = orr_alloc(f->class_count, sizeof *v->classes),
                     .class_of = f->leaf_of,
                     .index_of = f->leaf_index,
                     .claims = orr_map_create(0),
                     .channel_by_sum = orr_map_create(0)};
    for (uint32_t i = 0; i < f->class_count; i++)
        most = f->classes[i].npu->graph->count > most ? f->classes[i].npu->graph->count : most;
    uint32_t *open = orr_alloc((size_t)most + 1, sizeof *open);
    bool ok = v->classes && v->claims && v->channel_by_sum && open;
    fold_times_unbound(f->times); /* sub-spreads need no more memory than the spreads */
    for (uint32_t i = 0; ok && i < f->class_count; i++)
        ok = make_leaf(f, i, open, &v->classes[i]);
    orr_free(open);
    f->view = v;
    exchange(f, v);
    return ok;
}

bool fold_leaves_join(fold_sim *f)
{
    bool ok = true;
    for (uint32_t i = 0; f->view && ok && i < f->class_count; i++)
        ok = find_leaf_channels(f, &f->classes[i]);
    return ok;
}

void fold_leaves_end(fold_sim *f)
{
    fold_view *v = f->view;
    if (!v)
        return;
    exchange(f, v);
    f->view = NULL;
    for (uint32_t i = 0; v->classes && i < f->class_count; i++) {
        fold_drop_log(&v->classes[i].log);
        orr_free(v->classes[i].flows);
    }
    for (size_t i = 0; i < v->family_count; i++) {
        orr_map_destroy(v->families[i]->pattern_by_step);
        orr_free(v->families[i]->patterns);
    }
    orr_free(v->classes);
    orr_free(v->families);
    orr_free(v->pairs);
    orr_map_destroy(v->claims);
    orr_map_destroy(v->channel_by_sum);
    orr_free(v);
}

void fold_merge_fini(fold_sim *f)
{
    for (size_t i = 0; i < f->part_count; i++)
        if (f->parts[i].into != RUN_NONE)
            fold_drop_log(&f->parts[i].log);
    for (size_t i = 0; i < f->old_family_count; i++) {
        orr_map_destroy(f->old_families[i]->pattern_by_step);
        orr_free(f->old_families[i]->patterns);
    }
    orr_free(f->old_families);
    orr_free(f->parts);
    fold_finder_destroy(f->finder, orr_set_class_count(f->s->set));
}
