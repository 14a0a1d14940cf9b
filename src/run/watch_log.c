/* SPDX-License-Identifier: Apache-2.0 */
/* watch_log.c - the log of steps as seen by readers: rank by rank, each rank's steps by start.
 *
 * A run writes its log in event order.  The order within one tick has no physical meaning, and a
 * folded run does not know it (fold/fold.h): so it is normalised here.  Steps of one tick are in
 * the order of their nodes; members of a collective are in order of arrival, ties by rank; and a
 * step was released by the step of its rank that ended at that moment: preferably a parent, then
 * one of the same slot, then any other.
 *
 * Cost: linear in the steps, except that those out of order are sorted. */
#include "watch.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "run/fold/fold.h"

#include <stdlib.h>

/* ---- The steps of a folded run needed for a log of some ranks.
 *
 * All steps of the requested ranks.  Of the others their partners' steps: the other ends of
 * messages, and the arrivals of members at collectives, so that the cause of a wait is known as in
 * a full log.  If members of a class do everything at the same times, the last of them in a group
 * is enough: only the last arrival is needed, and of equal ones the largest rank counts.
 *
 * Collectives of a class are listed by their reference to the group, so that each group of a rank
 * is looked up once.  Cost: the steps selected, the members of the groups involved, and the steps
 * of every class once. */

/* Collectives of a class with the same group reference: a slot of the class, or a text. */
typedef struct bucket {
    uint32_t slot, text;
    uint32_t place; /* of one of them */
    uint32_t next;  /* of the class; NONE: none */
    uint32_t *steps;
    size_t count, room;
} bucket;

typedef struct picker {
    watch_source *src;
    const orr_sim *s;
    struct watch_record *w;
    const bool *asked;
    watch_log *out;
    bool *is_listed;        /* by class */
    uint32_t *first_bucket; /* by class; NONE: none */
    bucket *buckets;
    size_t bucket_count, bucket_room;
    uint32_t *first_message; /* by class; NONE: none */
    uint32_t *message_next, *message_step;
    size_t message_count, message_room, next_room;
    const cfg_group **groups; /* groups of requested ranks */
    size_t group_count, group_room;
    orr_map *seen;  /* groups; pairs of ranks */
    bool meets_all; /* and collectives without a group */
    orr_map *last;  /* of the current group: class and bucket -> its last member */
} picker;

/* ---- communication of a class ---- */

static uint32_t find_bucket(picker *p, uint32_t class_index, const work_graph *g, uint32_t place)
{
    const uint32_t node = g->node[place];
    const uint32_t *slots = p->s->set->classes[g - p->s->graphs].slot[ORR_HOLE_PG_NAME];
    const uint32_t slot = slots ? slots[node] : 0;
    /* A hole has no text shared by ranks: its slot identifies the group instead. */
    const uint32_t text =
        slot == 0 && g->t->columns.pg_name ? g->t->columns.pg_name[node] : ORR_NO_NAME;
    uint32_t i = p->first_bucket[class_index];
    while (i != RUN_NONE && (p->buckets[i].slot != slot || p->buckets[i].text != text))
        i = p->buckets[i].next;
    if (i != RUN_NONE)
        return i;
    if (!orr_grow(&p->buckets, &p->bucket_room, p->bucket_count + 1))
        return RUN_NONE;
    p->buckets[p->bucket_count] =
        (bucket){.slot = slot, .text = text, .place = place, .next = p->first_bucket[class_index]};
    return p->first_bucket[class_index] = (uint32_t)p->bucket_count++;
}

static bool list_collective(picker *p, uint32_t c, const work_graph *g, uint32_t place, uint32_t k)
{
    const uint32_t i = find_bucket(p, c, g, place);
    if (i == RUN_NONE)
        return false;
    bucket *b = &p->buckets[i];
    if (!orr_grow(&b->steps, &b->room, b->count + 1))
        return false;
    b->steps[b->count++] = k;
    return true;
}

static bool list_message(picker *p, uint32_t c, uint32_t k)
{
    if (!orr_grow(&p->message_step, &p->message_room, p->message_count + 1) ||
        !orr_grow(&p->message_next, &p->next_room, p->message_count + 1))
        return false;
    p->message_step[p->message_count] = k;
    p->message_next[p->message_count] = p->first_message[c];
    p->first_message[c] = (uint32_t)p->message_count++;
    return true;
}

/* The class of this rank, once. */
static bool list_class(picker *p, uint32_t rank)
{
    const uint32_t c = p->src->class_of[rank];
    const work_graph *g = run_graph_of(p->s, rank);
    const size_t count = p->src->count(p->src, c);
    bool ok = true;
    if (p->is_listed[c])
        return true;
    p->is_listed[c] = true;
    for (size_t k = 0; ok && k < count; k++) {
        const uint32_t place = p->src->place(p->src, c, k);
        switch (g->t->columns.type[g->node[place]]) {
        case ORR_NODE_COMM_COLL:
            ok = list_collective(p, c, g, place, (uint32_t)k);
            break;
        case ORR_NODE_COMM_SEND:
        case ORR_NODE_COMM_RECV:
            ok = list_message(p, c, (uint32_t)k);
            break;
        default:
            break;
        }
    }
    return ok;
}

/* ---- one step ---- */

/* Of the rank selected in the source.  known: only if its collective has a requested rank. */
static bool add_step(picker *p, size_t k, bool known)
{
    watch_log *l = p->out;
    watch_instance like;
    watch_step step = p->src->step(p->src, k);
    if (p->src->instance(p->src, k, &like)) {
        step.instance =
            known ? watch_known_instance(p->w, &like) : watch_find_instance(p->w, &like);
        if (step.instance == RUN_NONE)
            /* A collective without a requested rank is left out, which is not a failure. */
            return known;
    }
    if (l->step_count + 1 >= RUN_NONE || !orr_grow(&l->steps, &l->step_room, l->step_count + 1))
        return false;
    l->steps[l->step_count++] = step;
    return true;
}

static int64_t peer_of(const picker *p, uint32_t rank, uint32_t place)
{
    const work_graph *g = run_graph_of(p->s, rank);
    const orr_columns *c = &g->t->columns;
    const uint32_t node = g->node[place];
    const bool is_send = c->type[node] == ORR_NODE_COMM_SEND;
    return orr__set_value(p->s->set, rank, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC,
                          is_send ? c->comm_dst : c->comm_src, node);
}

static bool group_at(const picker *p, uint32_t rank, uint32_t place, const cfg_group **g)
{
    /* Only looked up: the casts are for the types of run_npu. */
    const run_npu probe = {
        .sim = (orr_sim *)p->s, .rank = rank, .graph = (work_graph *)run_graph_of(p->s, rank)};
    return sys_find_group(&probe, place, g);
}

/* ---- a requested rank ---- */

static bool add_phases(picker *p, size_t first)
{
    watch_log *l = p->out;
    watch_phase phase;
    size_t k;
    for (size_t i = 0; p->src->phase(p->src, i, &phase, &k); i++) {
        if (l->phase_count + 1 >= RUN_NONE ||
            !orr_grow(&l->phases, &l->phase_room, l->phase_count + 1))
            return false;
        /* k counts the steps of this rank, which were added from `first` on. */
        phase.step = (uint32_t)(first + k);
        l->phases[l->phase_count++] = phase;
    }
    return true;
}

static bool note_groups(picker *p, uint32_t rank)
{
    bool ok = true;
    for (uint32_t i = p->first_bucket[p->src->class_of[rank]]; ok && i != RUN_NONE;
         i = p->buckets[i].next) {
        const cfg_group *g;
        bool is_new = false;
        if (!group_at(p, rank, p->buckets[i].place, &g))
            continue;
        p->meets_all |= !g;
        ok = !g || orr_map_put(p->seen, (uint64_t)g->id, 1, &is_new);
        if (ok && is_new && (ok = orr_grow(&p->groups, &p->group_room, p->group_count + 1)))
            p->groups[p->group_count++] = g;
    }
    return ok;
}

static bool add_rank(picker *p, uint32_t rank)
{
    const size_t count = p->src->count(p->src, p->src->class_of[rank]), first = p->out->step_count;
    bool ok = true;
    p->src->turn_to(p->src, rank);
    for (size_t k = 0; ok && k < count; k++)
        ok = add_step(p, k, false);
    ok = ok && (!p->w->keeps_phases || add_phases(p, first));
    return ok && (!p->asked || (list_class(p, rank) && note_groups(p, rank)));
}

/* ---- members of its groups ---- */

static bool add_bucket(picker *p, uint32_t rank, const bucket *b)
{
    bool ok = true;
    p->src->turn_to(p->src, rank);
    for (size_t i = 0; ok && i < b->count; i++)
        ok = add_step(p, b->steps[i], true);
    return ok;
}

static uint64_t key_of(const picker *p, uint32_t rank, uint32_t bucket_index)
{
    return (uint64_t)p->src->class_of[rank] << 32 | bucket_index;
}

/* g NULL: the collectives of all ranks. */
static bool visit_member(picker *p, uint32_t rank, const cfg_group *g, bool is_first_look)
{
    bool ok = list_class(p, rank);
    for (uint32_t i = p->first_bucket[p->src->class_of[rank]]; ok && i != RUN_NONE;
         i = p->buckets[i].next) {
        const cfg_group *own;
        if (!group_at(p, rank, p->buckets[i].place, &own) || own != g)
            continue;
        const uint64_t key = key_of(p, rank, i);
        if (is_first_look)
            /* The last stays: members come in ascending order. */
            ok = orr_map_put(p->last, key, rank, NULL);
        else if (!p->src->is_even || orr_map_find(p->last, key, rank) == rank)
            ok = add_bucket(p, rank, &p->buckets[i]);
    }
    return ok;
}

static uint32_t member_at(const cfg_group *g, uint32_t i)
{
    return g ? g->sorted[i] : i;
}

/* If members of a class are interchangeable, the first pass finds the last of each.  Collectives of
 * all ranks may run along some dimensions only: then there are several, and all are included. */
static bool add_members(picker *p, const cfg_group *g)
{
    const uint32_t count = g ? g->count : p->s->npu_count;
    const bool looks_twice = p->src->is_even && (g || !p->src->has_lines);
    bool ok = true;
    orr_map_destroy(p->last);
    p->last = orr_map_create(0);
    if (!p->last)
        return false;
    for (uint32_t i = 0; ok && looks_twice && i < count; i++)
        ok = visit_member(p, member_at(g, i), g, true);
    for (uint32_t i = 0; ok && i < count; i++)
        /* A requested rank has all its steps already. */
        if (!p->asked[member_at(g, i)])
            ok = visit_member(p, member_at(g, i), g, false);
    return ok;
}

/* ---- the other ends of its messages ---- */

static bool add_messages_with(picker *p, uint32_t peer, uint32_t rank)
{
    const uint32_t c = p->src->class_of[peer];
    bool ok = list_class(p, peer);
    p->src->turn_to(p->src, peer);
    for (uint32_t i = p->first_message[c]; ok && i != RUN_NONE; i = p->message_next[i])
        if (peer_of(p, peer, p->src->place(p->src, c, p->message_step[i])) == (int64_t)rank)
            ok = add_step(p, p->message_step[i], true);
    return ok;
}

static bool add_peers(picker *p, uint32_t rank)
{
    const uint32_t c = p->src->class_of[rank];
    bool ok = true;
    for (uint32_t i = p->first_message[c]; ok && i != RUN_NONE; i = p->message_next[i]) {
        const int64_t peer = peer_of(p, rank, p->src->place(p->src, c, p->message_step[i]));
        bool is_new;
        if (peer < 0 || peer >= p->s->npu_count || p->asked[peer])
            continue;
        /* Complemented, so that pairs of ranks do not collide with group ids in the same map. */
        ok = orr_map_put(p->seen, ~((uint64_t)peer << 32 | rank), 1, &is_new);
        if (ok && is_new)
            ok = add_messages_with(p, (uint32_t)peer, rank);
    }
    return ok;
}

/* ---- everything ---- */

static bool prepare(picker *p)
{
    const uint32_t classes = p->src->class_count;
    if (!p->asked)
        return true;
    p->is_listed = orr_alloc(classes, sizeof *p->is_listed);
    p->first_bucket = orr_alloc(classes, sizeof *p->first_bucket);
    p->first_message = orr_alloc(classes, sizeof *p->first_message);
    p->seen = orr_map_create(0);
    if (!p->is_listed || !p->first_bucket || !p->first_message || !p->seen)
        return false;
    memset(p->first_bucket, 0xff, classes * sizeof *p->first_bucket);
    memset(p->first_message, 0xff, classes * sizeof *p->first_message);
    return true;
}

static bool add_others(picker *p)
{
    bool ok = true;
    for (size_t i = 0; ok && i < p->group_count; i++)
        ok = add_members(p, p->groups[i]);
    if (ok && p->meets_all)
        ok = add_members(p, NULL);
    for (uint32_t r = 0; ok && r < p->s->npu_count; r++)
        if (p->asked[r])
            ok = add_peers(p, r);
    return ok;
}

/* The steps needed for a log with these ranks (NULL: all), in any order.  False: out of memory. */
static bool pick_steps(watch_source *src, const bool *asked, watch_log *out)
{
    picker p = {.src = src, .s = src->s, .w = src->s->watch, .asked = asked, .out = out};
    bool ok = prepare(&p);
    for (uint32_t r = 0; ok && r < p.s->npu_count; r++)
        if (!asked || asked[r])
            ok = add_rank(&p, r);
    ok = ok && (!asked || add_others(&p));
    for (size_t i = 0; i < p.bucket_count; i++)
        orr_free(p.buckets[i].steps);
    orr_free(p.buckets);
    orr_free(p.is_listed);
    orr_free(p.first_bucket);
    orr_free(p.first_message);
    orr_free(p.message_next);
    orr_free(p.message_step);
    orr_free(p.groups);
    orr_map_destroy(p.seen);
    orr_map_destroy(p.last);
    return ok;
}

static bool count_steps(const orr_sim *s, watch_log *l)
{
    l->first_step = orr_alloc((size_t)s->npu_count + 1, sizeof *l->first_step);
    if (!l->first_step)
        return false;
    for (size_t i = 0; i < l->step_count; i++)
        l->first_step[l->steps[i].rank + 1]++;
    for (uint32_t r = 0; r < s->npu_count; r++)
        l->first_step[r + 1] += l->first_step[r];
    return true;
}

static int by_start_and_place(const void *a, const void *b, void *all)
{
    const watch_step *x = (const watch_step *)all + *(const uint32_t *)a;
    const watch_step *y = (const watch_step *)all + *(const uint32_t *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* A run on one clock writes steps of a rank in order except within a tick: most ranks need no
 * sort. */
static void sort_steps(const watch_log *l, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (by_start_and_place(&order[i - 1], &order[i], l->steps) > 0) {
            qsort_r(order, count, sizeof *order, by_start_and_place, l->steps);
            return;
        }
}

/* Steps are permuted, and all references to them are updated. */
static bool sort_log(const orr_sim *s, struct watch_record *w, watch_log *l)
{
    uint32_t *order = orr_alloc(l->step_count, sizeof *order); /* which step goes here */
    uint32_t *to = orr_alloc(l->step_count, sizeof *to);
    uint32_t *next = orr_alloc(s->npu_count, sizeof *next);
    watch_step *steps = orr_alloc(l->step_count, sizeof *steps);
    const bool ok = order && to && next && steps;
    if (ok) {
        /* A counting sort by rank: linear, and stable. */
        memcpy(next, l->first_step, s->npu_count * sizeof *next);
        for (size_t i = 0; i < l->step_count; i++)
            order[next[l->steps[i].rank]++] = (uint32_t)i;
        for (uint32_t r = 0; r < s->npu_count; r++)
            sort_steps(l, order + l->first_step[r], l->first_step[r + 1] - l->first_step[r]);
        for (size_t i = 0; i < l->step_count; i++) {
            to[order[i]] = (uint32_t)i;
            steps[i] = l->steps[order[i]];
        }
        /* Ranks refer to steps of the run's own log; a copy is not that. */
        for (size_t i = 0; !l->is_copy && i < l->step_count; i++)
            w->ranks[steps[i].rank].step_of[steps[i].place] = (uint32_t)i;
        for (size_t i = 0; i < l->phase_count; i++)
            l->phases[i].step = to[l->phases[i].step];
        orr_free(l->steps);
        l->steps = steps;
        l->step_room = l->step_count;
    } else {
        orr_free(steps);
    }
    orr_free(order);
    orr_free(to);
    orr_free(next);
    return ok;
}

/* ---- the cause of a step ---- */

static int by_end(const void *a, const void *b, void *all)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const watch_step *x = (const watch_step *)all + i, *y = (const watch_step *)all + k;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : i < k ? -1 : i > k;
}

/* Steps are in the order of their starts and end in nearly the same order: insertion sort beats a
 * full sort, unless many are out of order. */
static void sort_by_end(watch_step *steps, uint32_t *ended, uint32_t count)
{
    /* A bound on the cost of insertion: beyond it the order is not nearly sorted. */
    uint64_t moves_left = UINT64_C(4) * count;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t step = ended[i];
        uint32_t to = i;
        /* Strictly later: equal ones stay in the order of the steps, as by_end has them. */
        while (to > 0 && steps[ended[to - 1]].end > steps[step].end && moves_left) {
            ended[to] = ended[to - 1];
            to--;
            moves_left--;
        }
        ended[to] = step;
        if (!moves_left) {
            qsort_r(ended, count, sizeof *ended, by_end, steps);
            return;
        }
    }
}

static bool is_parent(const work_graph *g, uint32_t parent, uint32_t child)
{
    for (uint32_t e = g->child_first[parent]; e < g->child_first[parent + 1]; e++)
        if (g->child[e] == child)
            return true;
    return false;
}

/* How good a cause `before` is, which ended when `step` began; 0: none. */
static unsigned fit(const watch_log *l, const work_graph *g, uint32_t step, uint32_t before)
{
    const watch_step *me = &l->steps[step], *other = &l->steps[before];
    const bool has_length = other->start < other->end;
    if (before == step)
        return 0;
    if (is_parent(g, other->place, me->place))
        /* A parent with a duration is preferred to one without: the path should show what took
         * time. */
        return has_length ? 5 : 4;
    if (!has_length)
        /* Among steps of zero length only an earlier one counts, or two of one tick could release
         * each other. */
        return before < step;
    return g->slot[other->place] == g->slot[me->place] ? 3 : 2;
}

static void find_causes(const orr_sim *s, watch_log *l, uint32_t rank, uint32_t *ended)
{
    const uint32_t first = l->first_step[rank], count = l->first_step[rank + 1] - first;
    const work_graph *g = run_graph_of(s, rank);
    uint32_t from = 0; /* the first that ended at this time or later */
    for (uint32_t i = 0; i < count; i++)
        ended[i] = first + i;
    sort_by_end(l->steps, ended, count);
    for (uint32_t i = 0; i < count; i++) {
        watch_step *me = &l->steps[first + i];
        unsigned best = 0;
        me->cause = RUN_NONE;
        /* Both lists are sorted by time, so `from` only advances: linear per rank. */
        while (from < count && l->steps[ended[from]].end < me->start)
            from++;
        for (uint32_t k = from; k < count && l->steps[ended[k]].end == me->start; k++) {
            const unsigned how = fit(l, g, first + i, ended[k]);
            if (how > best) {
                best = how;
                me->cause = ended[k];
            }
        }
    }
}

/* For ranks whose steps are complete. */
static bool find_all_causes(const orr_sim *s, watch_log *l)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (l->first_step[r + 1] - l->first_step[r] > most)
            most = l->first_step[r + 1] - l->first_step[r];
    uint32_t *ended = orr_alloc(most, sizeof *ended);
    for (uint32_t r = 0; ended && r < s->npu_count; r++)
        if (!l->asked || l->asked[r])
            find_causes(s, l, r, ended);
    orr_free(ended);
    return ended != NULL;
}

/* ---- order of arrival at a collective ---- */

static int by_start(const void *a, const void *b, void *all)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const watch_step *x = (const watch_step *)all + i, *y = (const watch_step *)all + k;
    return x->start != y->start ? (x->start < y->start ? -1 : 1) : i < k ? -1 : i > k;
}

static void chain(const watch_log *l, uint32_t *members, uint32_t count, watch_instance *c)
{
    for (uint32_t i = 1; i < count; i++)
        if (l->steps[members[i]].start < l->steps[members[i - 1]].start) {
            qsort_r(members, count, sizeof *members, by_start, l->steps);
            break;
        }
    c->last = RUN_NONE;
    for (uint32_t i = 0; i < count; i++) {
        l->steps[members[i]].earlier = c->last;
        c->last = members[i];
    }
}

static bool chain_members(struct watch_record *w, const watch_log *l)
{
    uint32_t *first = orr_alloc(w->instance_count + 1, sizeof *first);
    uint32_t *members = orr_alloc(l->step_count, sizeof *members);
    const bool ok = first && members;
    size_t all = 0;
    for (size_t i = 0; ok && i < l->step_count; i++)
        if (l->steps[i].instance != RUN_NONE) {
            first[l->steps[i].instance + 1]++;
            all++;
        }
    for (size_t k = 0; ok && k < w->instance_count; k++)
        first[k + 1] += first[k];
    for (size_t i = l->step_count; ok && i-- > 0;) /* backwards, filling each from its end */
        if (l->steps[i].instance != RUN_NONE)
            members[--first[l->steps[i].instance + 1]] = (uint32_t)i;
    /* Now first[k + 1] is the start of k's entries. */
    for (size_t k = 0; ok && k < w->instance_count; k++) {
        const size_t from = first[k + 1];
        size_t to = from;
        while (to < all && l->steps[members[to]].instance == k)
            to++;
        chain(l, members + from, (uint32_t)(to - from), &w->instances[k]);
    }
    orr_free(first);
    orr_free(members);
    return ok;
}

/* Phases of one step are in chunk order; an unfinished run refers to them by index. */
static int by_chunk(const void *a, const void *b)
{
    const watch_phase *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->dim < y->dim ? -1 : x->dim > y->dim;
}

static void sort_phases(watch_log *l)
{
    for (size_t i = 1; i < l->phase_count; i++)
        if (by_chunk(&l->phases[i - 1], &l->phases[i]) > 0) {
            orr_sort(l->phases, l->phase_count, sizeof *l->phases, by_chunk);
            return;
        }
}

/* ---- everything ---- */

void watch_log_drop(struct watch_record *w)
{
    watch_log *l = &w->log;
    if (l->is_copy) {
        orr_free(l->steps);
        orr_free(l->phases);
    }
    orr_free(l->first_step);
    orr_free(l->asked);
    *l = (watch_log){0};
}

/* Does it have everything requested? */
static bool is_settled(const orr_sim *s, const watch_log *l, uint64_t mark, const bool *asked)
{
    if (!l->first_step || l->settled != mark)
        return false;
    for (uint32_t r = 0; l->asked && r < s->npu_count; r++)
        if (!l->asked[r] && (!asked || asked[r]))
            return false;
    return true;
}

static bool keep_asked(const orr_sim *s, watch_log *l, const bool *asked)
{
    if (!asked)
        return true;
    if (!(l->asked = orr_alloc(s->npu_count, sizeof *l->asked)))
        return false;
    memcpy(l->asked, asked, s->npu_count * sizeof *l->asked);
    return true;
}

/* A class-folded run creates collectives here. */
static bool forget_instances(const orr_sim *s)
{
    struct watch_record *w = s->watch;
    if (!s->fold)
        return true;
    orr_map_destroy(w->instance_by_key);
    w->instance_count = 0;
    return (w->instance_by_key = orr_map_create(0)) != NULL;
}

static bool write_folded(const orr_sim *s, watch_log *l, const bool *asked)
{
    watch_source src;
    l->is_copy = true;
    const bool ok = keep_asked(s, l, asked) && forget_instances(s) &&
                    (s->fold ? fold_open_log(s->fold, &src) : fold_lockstep_open_log(s, &src));
    if (!ok)
        return false;
    const bool is_written = pick_steps(&src, asked, l);
    src.close(&src);
    return is_written;
}

bool watch_log_settle(const orr_sim *s, const bool *asked)
{
    struct watch_record *w = s->watch;
    watch_log *l = &w->log;
    const bool is_folded = s->fold || s->lockstep;
    /* Changes when the run has continued: then the log is rebuilt. */
    const uint64_t mark = s->fold ? fold_events(s->fold) : w->step_count;
    if (is_settled(s, l, mark, asked))
        return true;
    watch_log_drop(w);
    if (!is_folded)
        *l = (watch_log){.steps = w->steps,
                         .step_count = w->step_count,
                         .phases = w->phases,
                         .phase_count = w->phase_count};
    bool ok = (!is_folded || write_folded(s, l, asked)) && count_steps(s, l) && sort_log(s, w, l);
    if (!is_folded) { /* also after a failure: they may have moved */
        w->steps = l->steps;
        w->step_room = w->step_count;
    }
    ok = ok && find_all_causes(s, l) && chain_members(w, l);
    /* An unfinished run refers to phases by index. */
    if (ok && s->finished == s->npu_count)
        sort_phases(l);
    l->settled = mark;
    if (!ok)
        watch_log_drop(w);
    return ok;
}

/* ---- representatives ---- */

/* Nodes of a trace with a peer or a group, one per distinct reference. */
typedef struct met_list {
    uint32_t *places;
    size_t count, room;
    bool is_listed;
} met_list;

/* A number for this node's reference to its partner; false: it has none. */
static bool way_of_naming(const orr_sim *s, uint32_t class_index, uint32_t node, uint64_t *way)
{
    const orr_columns *c = &s->graphs[class_index].t->columns;
    const uint8_t type = c->type[node];
    const bool is_group = type == ORR_NODE_COMM_COLL, is_send = type == ORR_NODE_COMM_SEND;
    if (!is_group && !is_send && type != ORR_NODE_COMM_RECV)
        return false;
    const uint32_t *slots = s->set->classes[class_index].slot[is_group  ? ORR_HOLE_PG_NAME
                                                              : is_send ? ORR_HOLE_COMM_DST
                                                                        : ORR_HOLE_COMM_SRC];
    const int64_t *peers = is_send ? c->comm_dst : c->comm_src;
    const uint64_t value = is_group ? (c->pg_name ? c->pg_name[node] : ORR_NO_NAME)
                           : peers  ? (uint32_t)peers[node]
                                    : 0;
    const bool is_slot = slots && slots[node];
    /* Group, send or receive, and by slot or by value: references of different kinds never get the
     * same number. */
    *way = (is_slot ? slots[node] : value) << 3 | (uint64_t)is_slot << 2 | (is_group ? 2 : is_send);
    return true;
}

static bool list_met(const orr_sim *s, uint32_t class_index, met_list *l)
{
    const work_graph *g = &s->graphs[class_index];
    orr_map *seen = orr_map_create(0);
    bool ok = seen != NULL;
    l->is_listed = true;
    for (uint32_t p = 0; ok && p < g->count; p++) {
        uint64_t way;
        bool is_new;
        if (!way_of_naming(s, class_index, g->node[p], &way))
            continue;
        ok = orr_map_put(seen, way, 1, &is_new);
        if (ok && is_new && (ok = orr_grow(&l->places, &l->room, l->count + 1)))
            l->places[l->count++] = p;
    }
    orr_map_destroy(seen);
    return ok;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return orr_hash_mix(sum ^ 0xa0761d6478bd642fu, value + 0xe7037ed1a0b428dbu);
}

/* One for all collectives without a group, after those of groups. */
static size_t group_met(const orr_sim *s, uint32_t rank, uint32_t place)
{
    /* A rank that was not simulated has no run_npu: use a stub with the fields needed. */
    const run_npu probe = {
        .sim = (orr_sim *)s, .rank = rank, .graph = (work_graph *)run_graph_of(s, rank)};
    const cfg_group *g;
    return sys_find_group(&probe, place, &g) && g ? (size_t)(g - s->groups.groups)
                                                  : s->groups.count;
}

static bool is_collective(const orr_sim *s, uint32_t rank, uint32_t place)
{
    const work_graph *g = run_graph_of(s, rank);
    return g->t->columns.type[g->node[place]] == ORR_NODE_COMM_COLL;
}

static int64_t peer_at(const orr_sim *s, uint32_t rank, uint32_t place)
{
    const work_graph *g = run_graph_of(s, rank);
    const orr_columns *c = &g->t->columns;
    const bool is_send = c->type[g->node[place]] == ORR_NODE_COMM_SEND;
    return orr__set_value(s->set, rank, is_send ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC,
                          is_send ? c->comm_dst : c->comm_src, g->node[place]);
}

/* A hash of the members of each group, independent of their order. */
static void sum_groups(const orr_sim *s, const met_list *lists, const uint32_t *like, uint64_t *of)
{
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const met_list *l = &lists[orr_set_class_of(s->set, r)];
        for (size_t i = 0; i < l->count; i++)
            if (is_collective(s, r, l->places[i]))
                /* A sum, independent of the order of members: groups with equal members are
                 * equal. */
                of[group_met(s, r, l->places[i])] += mix(like[r], i);
    }
}

/* A hash of a rank and its partners. */
static uint64_t sum_of(const orr_sim *s,
                       uint32_t rank,
                       const met_list *l,
                       const uint32_t *like,
                       const uint64_t *of_group)
{
    uint64_t sum = like[rank];
    for (size_t i = 0; i < l->count; i++) {
        if (is_collective(s, rank, l->places[i])) {
            sum = mix(sum, of_group[group_met(s, rank, l->places[i])]);
            continue;
        }
        const int64_t peer = peer_at(s, rank, l->places[i]);
        sum = mix(sum, peer >= 0 && peer < s->npu_count ? like[peer] : RUN_NONE);
    }
    return sum;
}

/* Ranks are equal only if their message partners and the members of their groups are, so that a
 * whole pipeline is equal to another: times may be equal by coincidence. */
static bool refine(const orr_sim *s, const met_list *lists, uint32_t *like, size_t *count)
{
    orr_map *first = orr_map_create(0);
    uint64_t *sums = orr_alloc(s->npu_count, sizeof *sums);
    uint64_t *of_group = orr_alloc(s->groups.count + 1, sizeof *of_group);
    bool ok = first && sums && of_group;
    if (ok)
        sum_groups(s, lists, like, of_group);
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        sums[r] = sum_of(s, r, &lists[orr_set_class_of(s->set, r)], like, of_group);
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        const uint32_t to = orr_map_find(first, sums[r], r);
        like[r] = to;
        ok = to != r || orr_map_put(first, sums[r], r, NULL);
    }
    *count = ok ? orr_map_count(first) : 0;
    orr_free(sums);
    orr_free(of_group);
    orr_map_destroy(first);
    return ok;
}

static bool refine_all(const orr_sim *s, uint32_t *like)
{
    const uint32_t classes = orr_set_class_count(s->set);
    met_list *lists = orr_alloc(classes, sizeof *lists);
    size_t before = 0, now = 1;
    bool ok = lists != NULL;
    for (uint32_t r = 0; ok && r < s->npu_count; r++) {
        const uint32_t k = orr_set_class_of(s->set, r);
        ok = lists[k].is_listed || list_met(s, k, &lists[k]);
    }
    /* Classes only become finer, and a pass without change ends it: at most as many passes as
     * ranks, mostly two or three. */
    while (ok && now != before) {
        before = now;
        ok = refine(s, lists, like, &now);
    }
    for (uint32_t k = 0; lists && k < classes; k++)
        orr_free(lists[k].places);
    orr_free(lists);
    return ok;
}

static uint64_t count_shown(const orr_sim *s, const uint32_t *like)
{
    uint64_t nodes = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        nodes += like[r] == r ? run_graph_of(s, r)->count : 0;
    return nodes;
}

/* Ranks simulated together do the same with the same partners, if not at the same times. */
static bool join_classes(watch_source *src, uint32_t *like, uint64_t *apart)
{
    uint32_t *first = orr_alloc(src->class_count, sizeof *first);
    if (!first)
        return false;
    memset(first, 0xff, src->class_count * sizeof *first);
    for (uint32_t r = 0; r < src->s->npu_count; r++) {
        uint32_t *of = &first[src->class_of[r]];
        *of = *of == RUN_NONE ? r : *of;
        like[r] = *of;
    }
    *apart = src->apart(src);
    orr_free(first);
    return true;
}

bool watch_find_alike(
    const orr_sim *s, const uint64_t *weight, uint64_t most, uint32_t *like, uint64_t *apart)
{
    watch_source src;
    *apart = 0;
    for (uint32_t r = 0; r < s->npu_count; r++)
        like[r] = r;
    if (!s->fold && !s->lockstep)
        return true;
    if (!(s->fold ? fold_open_log(s->fold, &src) : fold_lockstep_open_log(s, &src)))
        return false;
    bool ok = src.find_equal(&src, like); /* the smallest of them */
    ok = ok && (src.is_even || refine_all(s, like));
    if (ok && src.apart && count_shown(s, like) > most)
        ok = join_classes(&src, like, apart);
    src.close(&src);
    uint32_t *chosen = ok ? orr_alloc(s->npu_count, sizeof *chosen) : NULL;
    ok = chosen != NULL;
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        chosen[r] = r;
    for (uint32_t r = 0; ok && weight && r < s->npu_count; r++)
        /* Of equal ranks the one with the largest weight is shown; ties go to the smallest rank. */
        if (weight[r] > weight[chosen[like[r]]])
            chosen[like[r]] = r;
    for (uint32_t r = 0; ok && r < s->npu_count; r++)
        like[r] = chosen[like[r]];
    orr_free(chosen);
    return ok;
}

/* ---- neighbouring ranks ---- */

bool watch_ask_near(const orr_sim *s, uint32_t rank, uint32_t most, bool *asked)
{
    const uint32_t classes = orr_set_class_count(s->set);
    met_list *lists = orr_alloc(classes, sizeof *lists);
    uint32_t *queue = orr_alloc((size_t)most + 1, sizeof *queue);
    bool ok = lists && queue;
    uint32_t count = 0;
    if (ok)
        queue[count++] = rank;
    /* Breadth-first: the nearest peers first, up to the limit. */
    for (uint32_t i = 0; ok && i < count && count <= most; i++) {
        const uint32_t k = orr_set_class_of(s->set, queue[i]);
        ok = lists[k].is_listed || list_met(s, k, &lists[k]);
        for (size_t j = 0; ok && j < lists[k].count && count <= most; j++) {
            const uint32_t place = lists[k].places[j];
            const int64_t peer =
                is_collective(s, queue[i], place) ? -1 : peer_at(s, queue[i], place);
            if (peer < 0 || peer >= s->npu_count || asked[peer])
                continue;
            asked[peer] = true;
            queue[count++] = (uint32_t)peer;
        }
    }
    for (uint32_t k = 0; lists && k < classes; k++)
        orr_free(lists[k].places);
    orr_free(lists);
    orr_free(queue);
    return ok;
}
