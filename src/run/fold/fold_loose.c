/* SPDX-License-Identifier: Apache-2.0 */
/* fold_loose.c - members of a class may have their events in different orders where that makes no
 * difference.
 *
 * A node starts when its parents have ended and its slot is free: at the later of the two, for each
 * member.  Which of two events comes first matters only where they compete:
 *
 *     nodes for one slot        the node with the smallest id of those that are ready when the slot
 *                               is, or else the one that is ready first: must be the same one for
 *                               all members
 *     chunks of a collective    share queues; all of one slot, which has one collective at a time:
 *                               their events must be in one order (fold_events.c)
 *     collectives of one group  are numbered as they start: in one order, whatever their slots
 *     messages of one channel   meet in the order in which they are posted: must be the same order
 *
 * So a class runs its events by their earliest member, whatever the others would do first, computes
 * the right time of every node for each member, and checks that each of these decisions holds for
 * all: if not, the class is split.  A node that becomes ready may have been ready too late for some
 * members only, because another node already has its slot: that is detected here too.
 *
 * Children of nodes that take no time start with the next completion, whichever it is: traces with
 * such nodes need one order for all members. */
#include "fold_impl.h"

/* Each start examines all nodes ready for the slot: beyond this an unfolded run is cheaper. */
enum { MOST_RIVALS = 256 };

/* ---- collectives of several slots ----
 *
 * A rank numbers the chunks of a group as its collectives start, in any slot: so those of one group
 * must start in one order for all members, across slots too. */

enum { MOST_LINKS = 64 };

/* By link: one of its nodes that is a collective. */
static void find_places(const fold_class *c, uint32_t place_of[MOST_LINKS])
{
    const work_graph *g = c->npu->graph;
    for (unsigned i = 0; i < MOST_LINKS; i++)
        place_of[i] = RUN_NONE;
    for (uint32_t p = g->count; p-- > 0;)
        if (g->t->columns.type[g->node[p]] == ORR_NODE_COMM_COLL)
            place_of[c->link_of[c->relation_of[p] - 1]] = p;
}

/* Which group references may mean the same group, for any rank of this trace: so the answer
 * survives merging. */
static void find_mates(const fold_sim *f, const fold_class *c, uint64_t *mates)
{
    const orr_sim *s = f->s;
    const uint32_t body = orr_set_class_of(s->set, c->ranks[0]);
    uint32_t place_of[MOST_LINKS];
    const cfg_group *group[MOST_LINKS];
    find_places(c, place_of);
    for (size_t i = 0; i < c->link_count; i++)
        mates[i] = UINT64_C(1) << i;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const run_npu probe = {.sim = f->s, .rank = r, .graph = c->npu->graph};
        if (orr_set_class_of(s->set, r) != body)
            continue;
        for (size_t i = 0; i < c->link_count; i++) {
            group[i] = place_of[i] == RUN_NONE ? NULL : sys_node_group(&probe, place_of[i]);
            for (size_t k = 0; group[i] && k < i; k++)
                if (group[k] == group[i]) {
                    mates[i] |= UINT64_C(1) << k;
                    mates[k] |= UINT64_C(1) << i;
                }
        }
    }
}

/* False: out of memory. */
static bool watch_numbers(fold_sim *f, fold_class *c)
{
    const uint32_t body = orr_set_class_of(f->s->set, c->ranks[0]);
    if (!(c->numbered = orr_arena_new(f->arena, c->link_count + 1, fold_turn)))
        return false;
    /* Once per trace. */
    for (const fold_class *k = f->classes; k < c && !c->mates; k++)
        if (orr_set_class_of(f->s->set, k->ranks[0]) == body)
            c->mates = k->mates;
    uint64_t *mates = c->mates ? NULL : orr_arena_new(f->arena, c->link_count + 1, uint64_t);
    if (mates) {
        find_mates(f, c, mates);
        c->mates = mates;
    }
    return c->mates != NULL;
}

/* ---- life cycle ---- */

static bool has_instant_nodes(const orr_sim *s, const work_graph *g)
{
    const orr_columns *c = &g->t->columns;
    for (uint32_t p = 0; p < g->count; p++) {
        const uint32_t i = g->node[p];
        if (c->type[i] == ORR_NODE_INVALID)
            return true;
        if (s->system.roofline && c->type[i] == ORR_NODE_COMP && g->slot[p] != WORK_SLOT_CPU &&
            c->tensor_size && c->tensor_size[i] == 0)
            return true;
    }
    return false;
}

bool fold_loosen(fold_sim *f)
{
    const orr_sim *s = f->s;
    /* Chunks of collectives without a group are numbered across all slots. */
    bool may_loosen = !(f->uses_world && s->lanes > 1);
    for (uint32_t i = 0; i < f->class_count && s->lanes > 1; i++)
        may_loosen = may_loosen && f->classes[i].link_count <= MOST_LINKS;
    for (uint32_t k = 0; may_loosen && k < orr_set_class_count(s->set); k++)
        may_loosen = !s->graphs[k].t || !has_instant_nodes(s, &s->graphs[k]);
    f->s->fold_may_loosen = may_loosen;
    /* After the first step members are skewed. */
    f->is_loose = may_loosen && (s->fold_is_loose || s->opt.steps > 1) && !s->fold_is_strict;
    for (uint32_t i = 0; i < f->class_count; i++) {
        fold_class *c = &f->classes[i];
        const uint32_t count = c->npu->graph->count;
        if (!(c->slots = orr_arena_new(f->arena, WORK_SLOTS, fold_slot)))
            return false;
        for (unsigned k = 0; k < WORK_SLOTS; k++)
            c->slots[k].last.kind = UINT8_MAX;
        if (!f->is_loose)
            continue;
        c->ready_at = orr_arena_take(f->arena, ((size_t)count + 1) * sizeof *c->ready_at);
        c->ready_by = orr_arena_new(f->arena, (size_t)count + 1, uint64_t);
        if (!c->ready_at || !c->ready_by || (s->lanes > 1 && !watch_numbers(f, c)))
            return false;
        if (fold_is_recorded(f) &&
            !(c->made = orr_arena_new(f->arena, (size_t)count + 1, fold_made)))
            return false;
        for (uint32_t p = 0; p < count; p++) {
            c->ready_at[p] = (fold_val){(int64_t)c->npu->speed->delay, 0, 0};
            c->ready_by[p] = c->npu->graph->parents[p] ? 0 : UINT64_MAX; /* all at the start */
        }
    }
    return true;
}

/* For all members. */
static bool precedes(fold_sim *f, fold_val a, fold_val b)
{
    return a.by == b.by ? a.base < b.base : fold_sub(f->times, b, a).base > 0;
}

/* The same, as a decision recorded for consecutive steps. */
static bool is_before(fold_sim *f, fold_val a, fold_val b)
{
    const bool is_so = precedes(f, a, b);
    fold_tape_before(f, a, b, is_so);
    return is_so;
}

/* The event that made a node ready, for all members; 0: not a single one. */
static uint64_t maker_of(fold_sim *f, const fold_class *c, uint32_t place)
{
    fold_made *m = c->made ? &c->made[place] : NULL;
    if (m && m->is_open)
        fold_tape_before(f, m->before, m->last, c->ready_by[place] != 0);
    if (m)
        m->is_open = false;
    return c->ready_by[place];
}

static void split_by(fold_sim *f, const fold_class *c, fold_val a, fold_val b, const char *why)
{
    const fold_val apart = fold_sub(f->times, a, b);
    /* No sign to split along: the answer is the same for all members, and it is wrong. */
    if (apart.base > 0 || fold_most(f->times, apart) <= 0)
        fold_give_up(f, "rank %u: %s, in an unknown order", c->ranks[0], why);
    else
        fold_split(f, (uint32_t)(c - f->classes), apart, why);
}

/* ---- a node is ready ---- */

/* Firm: it was ready when the slot became free, for every member.  Then the smallest id gets it,
 * and later ones cannot take it away. */
static bool is_firm(
    fold_sim *f, const fold_class *c, uint32_t place, uint64_t freed_by, fold_val free_at)
{
    /* Nothing has run in the slot: it was free from the start. */
    if (!freed_by)
        return c->ready_by[place] == UINT64_MAX;
    return (c->ready_by[place] == freed_by && maker_of(f, c, place)) ||
           is_before(f, c->ready_at[place], free_at);
}

/* For the last node in this slot. */
static bool was_firm(fold_sim *f, const fold_class *c, fold_slot *k)
{
    if (k->is_open)
        k->is_firm = is_firm(f, c, k->last_place, k->freed_then, k->freed_at);
    k->is_open = false;
    return k->is_firm;
}

/* Another node was given the slot before this one became ready: check that this holds for every
 * member, as for some this one may have been ready first. */
static void check_not_late(fold_sim *f, const fold_class *c, uint32_t place)
{
    fold_slot *k = &c->slots[c->npu->graph->slot[place]];
    const fold_val ready = c->ready_at[place];
    /* The start before it was even earlier. */
    if (k->started == 0 || is_before(f, k->last_start, ready))
        return;
    if (place < k->last_place || !was_firm(f, c, k))
        split_by(f, c, ready, k->last_start, "two nodes for one slot, ready at one time");
    else if (k->started > 1 && !is_before(f, k->start_before, ready))
        split_by(f, c, ready, k->start_before, "two nodes for one slot, ready at one time");
}

void fold_released(run_npu *n, uint32_t place)
{
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    const work_graph *g = n->graph;
    fold_slot *k = &c->slots[g->slot[place]];
    if (!f->is_loose)
        return;
    k->free_at = c->now;
    k->freed_by = f->turn;
    /* Every other node ends before one of these does, so they tell when the step ends. */
    if (g->child_first[place] == g->child_first[place + 1])
        fold_round_end_at(f, c);
    for (uint32_t e = g->child_first[place]; e < g->child_first[place + 1]; e++) {
        const uint32_t child = g->child[e];
        const fold_val before = c->ready_at[child];
        const bool is_first = n->waiting_for[child] == g->parents[child];
        c->ready_at[child] = is_first ? c->now : fold_later(f, before, c->now);
        if (n->waiting_for[child] > 1)
            continue;
        /* Known only if this event is the last parent for every member. */
        c->ready_by[child] = is_first || precedes(f, before, c->now) ? f->turn : 0;
        if (c->made)
            c->made[child] = (fold_made){before, c->now, !is_first};
        /* Any number of receives run at once, so they have no rivals. */
        if (g->slot[child] != WORK_SLOT_RECV)
            check_not_late(f, c, child);
    }
}

/* ---- a node starts ---- */

static bool wins(const fold_sim *f,
                 const fold_val *free,
                 fold_val mine,
                 fold_val other,
                 bool is_together,
                 uint32_t member)
{
    const int64_t free_at = free ? fold_at(f->times, *free, member) : -1;
    const int64_t mine_at = fold_at(f->times, mine, member);
    const int64_t other_at = fold_at(f->times, other, member);
    /* Three cases: it was ready before the slot was free, and has the smaller number; it came
     * after, alone or first; or it came with the slot, and the other later. */
    return mine_at < free_at || (mine_at > free_at && (is_together || other_at > mine_at)) ||
           (mine_at == free_at && other_at > mine_at);
}

bool fold_wins(const fold_sim *f,
               const fold_val *free,
               fold_val mine,
               fold_val other,
               bool is_together,
               uint32_t members)
{
    const bool is_even = mine.by == other.by && (!free || mine.by == free->by);
    /* One member decides for all: the differences between these times are the same for each. */
    if (is_even)
        return wins(f, free, mine, other, is_together, 0);
    /* Frequent: all members are ready before the slot is free, or after it and before the other. */
    if (free && fold_most(f->times, mine) < free->base)
        return true;
    if ((is_together || fold_most(f->times, mine) < other.base) &&
        (!free || fold_most(f->times, *free) < mine.base))
        return true;
    for (uint32_t m = 0; m < members; m++)
        if (!wins(f, free, mine, other, is_together, m))
            return false;
    return true;
}

/* Both become ready by one event, for every member.  If that is not permanent and makes no
 * difference, no conclusion is drawn. */
static bool are_together(
    fold_sim *f, const fold_class *c, uint32_t place, uint32_t other, const fold_val *free)
{
    const bool is_open = c->made && (c->made[place].is_open || c->made[other].is_open);
    if (!c->ready_by[other] || c->ready_by[other] != c->ready_by[place] ||
        (is_open && fold_wins(f, free, c->ready_at[place], c->ready_at[other], false, c->count)))
        return false;
    return maker_of(f, c, place) && maker_of(f, c, other);
}

/* Of the nodes ready for this slot, `place` is the right one for every member: it is ready before
 * the slot is free, so its smaller number counts; or it is ready first; or both become ready by one
 * event. */
static void check_rivals(fold_sim *f, const fold_class *c, uint32_t place)
{
    const run_npu *n = c->npu;
    const uint8_t slot = n->graph->slot[place];
    const fold_slot *k = &c->slots[slot];
    uint32_t seen = 0;
    for (uint32_t y = orr_bitset_next(&n->ready[slot], place + 1);
         y != RUN_NONE && !fold_is_over(f); y = orr_bitset_next(&n->ready[slot], y + 1)) {
        uint32_t good = 0;
        if (++seen > MOST_RIVALS) {
            fold_give_up(f, "rank %u: many nodes wait for one slot", c->ranks[0]);
            return;
        }
        const fold_val *free = k->freed_by ? &k->free_at : NULL;
        const fold_val mine = c->ready_at[place], other = c->ready_at[y];
        const bool together = are_together(f, c, place, y, free);
        fold_tape_rival(f, c, free, mine, other, together);
        if (fold_wins(f, free, mine, other, together, c->count))
            continue;
        if (!orr_grow(&f->ends, &f->ends_room, c->count)) {
            run_no_memory(f->s);
            return;
        }
        for (uint32_t m = 0; m < c->count; m++) {
            f->ends[m] = wins(f, free, mine, other, together, m);
            good += f->ends[m] != 0;
        }
        if (good == 0)
            fold_give_up(f, "rank %u: two nodes for one slot, in an unknown order", c->ranks[0]);
        else
            fold_split(f, (uint32_t)(c - f->classes), fold_make(f->times, f->ends, c->count),
                       "members have another order of nodes for one slot");
    }
}

/* The event that started the last node of its slot, for every member; 0: not known.  Everything
 * that starts with a step starts together. */
static uint64_t cause_of(fold_sim *f, const fold_class *c, uint32_t place)
{
    const fold_slot *k = &c->slots[c->npu->graph->slot[place]];
    const uint64_t ready_by = maker_of(f, c, place);
    const bool is_first = ready_by == UINT64_MAX;
    if (!k->freed_then)
        return is_first || ready_by == f->turn ? ready_by : 0;
    if (k->freed_then == f->turn &&
        (is_first || ready_by == f->turn || is_before(f, c->ready_at[place], k->freed_at)))
        return f->turn;
    return ready_by == f->turn && is_before(f, k->freed_at, c->ready_at[place]) ? f->turn : 0;
}

/* One event starts both, for every member: then the smaller number is first.  A held one is late
 * here. */
static bool start_together(fold_sim *f, const fold_class *c, const fold_turn *a, const fold_turn *b)
{
    if (a->event != b->event || a->place > b->place || a->at.base != b->at.base ||
        a->at.by != b->at.by)
        return false;
    const uint64_t cause = cause_of(f, c, a->place);
    if (!cause || cause != cause_of(f, c, b->place))
        return false;
    fold_tape_same(f, a->at, b->at);
    return true;
}

/* Does this collective get the next numbers of its group, for every member? */
static bool takes_numbers(fold_sim *f, fold_class *c, uint32_t place)
{
    const work_graph *g = c->npu->graph;
    if (!c->numbered || g->t->columns.type[g->node[place]] != ORR_NODE_COMM_COLL)
        return true;
    const uint32_t link = c->link_of[c->relation_of[place] - 1];
    const fold_turn mine = {.at = c->now,
                            .event = f->turn,
                            .round = c->npu->round,
                            .place = place,
                            .slot = g->slot[place]};
    for (uint32_t k = 0; k < c->link_count && !fold_is_over(f); k++) {
        const fold_turn *last = &c->numbered[k];
        if (!(c->mates[link] >> k & 1) || !last->event || last->slot == mine.slot ||
            last->round < mine.round || is_before(f, last->at, mine.at))
            continue;
        if (!start_together(f, c, last, &mine))
            split_by(f, c, mine.at, last->at, "two collectives of one group at one time");
    }
    c->numbered[link] = mine;
    return !fold_is_over(f);
}

bool fold_may_start(run_npu *n, uint32_t place)
{
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    const uint8_t slot = n->graph->slot[place];
    fold_slot *k = &c->slots[slot];
    if (!f->is_loose)
        return true;
    if (fold_is_over(f) || c->held_slots >> slot & 1)
        return false;
    if (slot == WORK_SLOT_RECV) {
        c->now = c->ready_at[place];
        return true;
    }
    const fold_val start =
        k->freed_by ? fold_later(f, c->ready_at[place], k->free_at) : c->ready_at[place];
    /* The last chunk of a collective is still in its queue when the collective ends.  Chunks that
     * all go to one queue start in one order, whether that one has left or not. */
    if (f->ending_slot == slot && (k->freed_by == f->turn || c->began_in == f->turn)) {
        if (n->sim->opt.queues_per_dim == 1) {
            c->held_slots |= 1u << slot;
            return false;
        }
        const fold_val later = fold_sub(f->times, start, c->event_at);
        fold_tape_wait(f, start, c->event_at, later.base > 0);
        if (later.base > 0) {
            c->held_slots |= 1u << slot;
            return false;
        }
        if (fold_most(f->times, later) > 0) {
            fold_split(f, (uint32_t)(c - f->classes), later,
                       "a collective follows another at once, or not");
            return false;
        }
    }
    /* Without rivals nobody may ever ask, and then it is not a decision. */
    const bool is_open = c->made && orr_bitset_next(&n->ready[slot], place + 1) == RUN_NONE;
    const bool firm = !is_open && is_firm(f, c, place, k->freed_by, k->free_at);
    if (!is_open && !firm)
        check_rivals(f, c, place);
    if (fold_is_over(f))
        return false;
    /* Two starts are kept: a node that becomes ready now may have been too late for either
     * (check_not_late); earlier starts are even earlier. */
    k->start_before = k->last_start;
    k->last_start = start;
    k->last_place = place;
    k->started += k->started < 2;
    k->is_firm = firm;
    k->is_open = is_open;
    k->freed_at = k->free_at;
    k->freed_then = k->freed_by;
    c->now = start;
    return takes_numbers(f, c, place);
}

void fold_issued(run_npu *n)
{
    fold_class *c = fold_class_at(n);
    /* Nodes started at their own times; the event continues at its own. */
    c->now = c->event_at;
}

/* ---- messages ---- */

bool fold_is_next(fold_sim *f, const fold_class *c, fold_turn *last, uint32_t place)
{
    const uint8_t slot = c->npu->graph->slot[place];
    const fold_turn mine = {.at = c->now, .event = f->turn, .round = c->npu->round, .slot = slot};
    /* A rank has posted all of a step before it begins the next. */
    const bool is_ordered = !f->is_loose || !last->event ||
                            (slot == last->slot && slot != WORK_SLOT_RECV) ||
                            last->round < mine.round || is_before(f, last->at, mine.at);
    const bool is_same = !is_ordered && last->event == mine.event &&
                         last->at.base == mine.at.base && last->at.by == mine.at.by;
    if (is_same)
        fold_tape_same(f, last->at, mine.at);
    else if (!is_ordered)
        split_by(f, c, mine.at, last->at, "two messages of one channel at one time");
    *last = mine;
    return is_ordered || is_same;
}
