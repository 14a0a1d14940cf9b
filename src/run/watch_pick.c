/* SPDX-License-Identifier: Apache-2.0 */
/* watch_pick.c - of a folded run, the steps that a log of some ranks needs.
 *
 * All steps of the ranks that are asked for.  Of the others what these meet: the other ends of
 * their messages, and the steps in which members come to their collectives; so who was waited for
 * is known as in a log of every rank.  Where members of a class do everything at the same times,
 * the last of them in a group is enough: who came last is asked for, and of those who came together
 * the one with the largest number counts.
 *
 * Collectives of a class are listed by how their group is named, so that a rank is asked once for
 * each of its groups.  Cost: the steps that are picked, the members of the groups that are met, and
 * the steps of every class once. */
#include "watch.h"

#include "base/memory/hash.h"

/* Collectives of a class whose groups are named the same way: by a slot of the class, or by a
 * text. */
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
    const cfg_group **groups; /* that ranks that are asked for are in */
    size_t group_count, group_room;
    orr_map *seen;  /* groups; pairs of ranks */
    bool meets_all; /* and collectives without a group */
    orr_map *last;  /* of the group that is looked at: class and bucket -> its last member */
} picker;

/* ---- what a class does with others ---- */

static uint32_t find_bucket(picker *p, uint32_t class_index, const work_graph *g, uint32_t place)
{
    const uint32_t node = g->node[place];
    const uint32_t *slots = p->s->set->classes[g - p->s->graphs].slot[ORR_HOLE_PG_NAME];
    const uint32_t slot = slots ? slots[node] : 0;
    /* A hole has no text that ranks share: its slot names the group instead. */
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

/* Of the rank that the source has turned to.  known: only if its collective is that of a rank that
 * was asked for. */
static bool add_step(picker *p, size_t k, bool known)
{
    watch_log *l = p->out;
    watch_instance like;
    watch_step step = p->src->step(p->src, k);
    if (p->src->instance(p->src, k, &like)) {
        step.instance =
            known ? watch_known_instance(p->w, &like) : watch_find_instance(p->w, &like);
        if (step.instance == RUN_NONE)
            /* A collective that nobody who was asked for is in is left out, which is no failure. */
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
    const run_npu probe = {
        .sim = (orr_sim *)p->s, .rank = rank, .graph = (work_graph *)run_graph_of(p->s, rank)};
    return sys_find_group(&probe, place, g);
}

/* ---- a rank that is asked for ---- */

static bool add_phases(picker *p, size_t first)
{
    watch_log *l = p->out;
    watch_phase phase;
    size_t k;
    for (size_t i = 0; p->src->phase(p->src, i, &phase, &k); i++) {
        if (l->phase_count + 1 >= RUN_NONE ||
            !orr_grow(&l->phases, &l->phase_room, l->phase_count + 1))
            return false;
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

/* Where members of a class are one for all, the first look finds the last of each.  Collectives of
 * all ranks may go along some dimensions only: then there are several, and all come. */
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
        /* Complemented, so that pairs of ranks do not meet the ids of groups in the same map. */
        ok = orr_map_put(p->seen, ~((uint64_t)peer << 32 | rank), 1, &is_new);
        if (ok && is_new)
            ok = add_messages_with(p, (uint32_t)peer, rank);
    }
    return ok;
}

/* ---- the whole ---- */

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

bool watch_pick_steps(watch_source *src, const bool *asked, watch_log *out)
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
