/* SPDX-License-Identifier: Apache-2.0 */
/* fold_flows.c - when the data of each communication of a folded run could start to flow
 * (docs/accounting.md): for a collective when its last member has called it, for a receive when its
 * message was sent.
 *
 * Computed after the run from the log of each class: partners follow from families of groups and
 * channels of messages, and the n-th message of a channel and size matches the n-th receive.  If
 * all members of all classes start at the same time there is no work per member; other results are
 * memoised, so repetitions cost a lookup.  Otherwise the cost is the members of the groups, per
 * collective. */
#include "fold_impl.h"

#include "base/memory/hash.h"

/* A step of a class, in a list of participants. */
typedef struct caller {
    uint32_t class_index, step;
    uint32_t next; /* NONE: the last */
} caller;

/* A collective of all groups of a family, or along several dimensions; or the messages of a channel
 * and size. */
typedef struct meet {
    uint64_t key;              /* family or dimensions and chunk; or channel and size */
    const fold_family *family; /* NULL: none */
    const fold_note *note;     /* of one caller */
    uint32_t first, last;      /* callers; NONE: there is none */
    uint32_t count;
} meet;

typedef struct finder {
    fold_sim *f;
    meet *meets; /* in order of first appearance */
    size_t meet_count, meet_room;
    caller *callers; /* linked lists, one per meet */
    size_t caller_count, caller_room;
    orr_map *meet_by_key;
    orr_map *memo_by_key; /* question -> the first of its answers, one per caller */
    fold_flow *memos;     /* base relative to the question */
    size_t memo_count, memo_room;
    int64_t *latest; /* by rank, or by group */
    int64_t *at;     /* by member */
} finder;

static uint64_t mix(uint64_t a, uint64_t b)
{
    return orr_hash_mix(a ^ 0xa0761d6478bd642fu, b + 0xe7037ed1a0b428dbu);
}

/* The meet with this key; NULL: out of memory. */
static meet *find_meet(finder *v, uint64_t key)
{
    bool is_new;
    const uint32_t known = orr_map_find(v->meet_by_key, key, RUN_NONE);
    /* Identified by a 64-bit hash alone. */
    if (known != RUN_NONE)
        return &v->meets[known];
    if (v->meet_count >= RUN_NONE || !orr_grow(&v->meets, &v->meet_room, v->meet_count + 1) ||
        !orr_map_put(v->meet_by_key, key, (uint32_t)v->meet_count, &is_new))
        return NULL;
    v->meets[v->meet_count] = (meet){.key = key, .first = RUN_NONE, .last = RUN_NONE};
    return &v->meets[v->meet_count++];
}

static bool add_caller(finder *v, meet *m, uint32_t class_index, uint32_t step)
{
    if (!m || v->caller_count >= RUN_NONE ||
        !orr_grow(&v->callers, &v->caller_room, v->caller_count + 1))
        return false;
    const uint32_t i = (uint32_t)v->caller_count++;
    v->callers[i] = (caller){class_index, step, RUN_NONE};
    if (m->first == RUN_NONE)
        m->first = i;
    else
        v->callers[m->last].next = i;
    m->last = i;
    m->count++;
    return true;
}

static fold_val start_of(const finder *v, const caller *c)
{
    return v->f->classes[c->class_index].log.steps[c->step].start;
}

static fold_flow *flow_of(const finder *v, const caller *c)
{
    return &v->f->classes[c->class_index].flows[c->step];
}

/* From one time per member; `first` is the reference time. */
static fold_flow make_flow(const finder *v, const caller *c)
{
    const fold_class *k = &v->f->classes[c->class_index];
    const fold_val start = start_of(v, c);
    bool is_held = false;
    for (uint32_t m = 0; m < k->count; m++)
        is_held |= v->at[m] > fold_at(v->f->times, start, m);
    if (!is_held)
        return (fold_flow){.state = FOLD_FLOWS_AT_START};
    /* In a separate table of spreads: irregular flows must not exhaust the limit of the run's
     * times. */
    const fold_val value = fold_make(v->f->flow_times, v->at, k->count);
    return (fold_flow){value.base, value.by, FOLD_FLOWS_LATER};
}

/* ---- collectives ---- */

/* The dimensions it runs along, one bit each; all: every rank is a member. */
static uint32_t dims_of(const fold_note *note)
{
    uint32_t dims = 0;
    for (uint32_t k = 0; k < note->dim_count; k++)
        dims |= note->dims[k]->group ? UINT32_MAX : 1u << note->dims[k]->position;
    return dims;
}

/* All calls of one collective, of any class, are listed together: by family or dimensions, and by
 * chunk number. */
static bool list_collective(finder *v, uint32_t class_index, uint32_t step)
{
    fold_class *c = &v->f->classes[class_index];
    const fold_logged *at = &c->log.steps[step];
    const fold_note *note = &c->log.notes[at->note];
    const fold_family *y = NULL;
    /* Participants are known by family; along several dimensions at once they are not, and ranks
     * are examined one by one. */
    const bool is_along = note->is_group && note->dim_count && !note->dims[0]->group &&
                          !watch_covers_all(v->f->s, dims_of(note));
    if (note->is_group && !is_along)
        y = fold_group_family(v->f, c->npu, at->place);
    else if (note->dim_count == 1 && !note->dims[0]->group)
        y = fold_line_family(v->f, c, note->dims[0]);
    if (v->f->s->code)
        return false;
    /* Complemented, so that dimension masks do not collide with family numbers. */
    const uint64_t who = y ? y->number : ~(uint64_t)dims_of(note);
    meet *m = find_meet(v, mix(mix(1, who), note->stream));
    if (!add_caller(v, m, class_index, step))
        return false;
    m->family = y;
    m->note = note;
    return true;
}

/* The smallest member of a rank's group. */
static uint32_t base_of(const fold_note *note, uint32_t rank)
{
    uint32_t base = rank;
    for (uint32_t k = 0; k < note->dim_count; k++) {
        const sys_dim *d = note->dims[k];
        if (d->group)
            return 0;
        base -= base / d->offset % d->count * d->offset;
    }
    return base;
}

/* All start at once, so nobody waits; or all members of each class do, and each group has members
 * of all these classes. */
static bool meet_evenly(const finder *v, const meet *m)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const fold_val start = start_of(v, &v->callers[i]);
        if (start.by)
            return false;
        least = start.base < least ? start.base : least;
        most = start.base > most ? start.base : most;
    }
    /* Along several dimensions a group may have members of only some of these classes. */
    if (least != most && !m->family)
        return false;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const bool is_held = start_of(v, &v->callers[i]).base < most;
        *flow_of(v, &v->callers[i]) =
            (fold_flow){most, 0, is_held ? FOLD_FLOWS_LATER : FOLD_FLOWS_AT_START};
    }
    return true;
}

/* The last member to join a group starts its data flow. */
static void note_latest(const finder *v, const caller *c, uint32_t member, uint32_t group)
{
    const int64_t start = fold_at(v->f->times, start_of(v, c), member);
    v->latest[group] = start > v->latest[group] ? start : v->latest[group];
}

/* caller_of: by class, at most one step each.  Finds the latest start in each group, then assigns
 * it to the members of each class. */
static void meet_by_family(const finder *v, const meet *m, const uint32_t *caller_of)
{
    const fold_family *y = m->family;
    for (uint32_t g = 0; g < y->groups; g++)
        v->latest[g] = INT64_MIN;
    for (uint32_t g = 0; g < y->groups; g++)
        for (uint32_t k = 0; k < y->members; k++) {
            const uint32_t rank = fold_family_rank(y, g, k);
            note_latest(v, &v->callers[caller_of[v->f->class_of[rank]]], v->f->index_of[rank], g);
        }
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const caller *c = &v->callers[i];
        for (uint32_t g = 0; g < y->groups; g++)
            for (uint32_t k = 0; k < y->members; k++) {
                const uint32_t rank = fold_family_rank(y, g, k);
                if (v->f->class_of[rank] == c->class_index)
                    v->at[v->f->index_of[rank]] = v->latest[g];
            }
        *flow_of(v, c) = make_flow(v, c);
    }
}

/* As meet_by_family, with groups identified by their smallest rank: these are not listed
 * anywhere. */
static void meet_by_dims(const finder *v, const meet *m)
{
    for (uint32_t r = 0; r < v->f->s->npu_count; r++)
        v->latest[r] = INT64_MIN;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const fold_class *c = &v->f->classes[v->callers[i].class_index];
        for (uint32_t k = 0; k < c->count; k++)
            note_latest(v, &v->callers[i], k, base_of(m->note, c->ranks[k]));
    }
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const fold_class *c = &v->f->classes[v->callers[i].class_index];
        for (uint32_t k = 0; k < c->count; k++)
            v->at[k] = v->latest[base_of(m->note, c->ranks[k])];
        *flow_of(v, &v->callers[i]) = make_flow(v, &v->callers[i]);
    }
}

/* A key of everything the answer depends on, except a common time offset. */
static uint64_t question_of(const finder *v, const meet *m, int64_t *from)
{
    uint64_t key = mix(2, m->family ? m->family->number : ~(uint64_t)dims_of(m->note));
    /* Relative to the first caller: the same question at another time has the same key. */
    *from = start_of(v, &v->callers[m->first]).base;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const fold_val start = start_of(v, &v->callers[i]);
        key =
            mix(mix(mix(key, v->callers[i].class_index), start.by), (uint64_t)(start.base - *from));
    }
    return key;
}

/* A memoised answer, shifted in time. */
static bool recall(const finder *v, const meet *m, uint64_t key, int64_t from)
{
    uint32_t at = orr_map_find(v->memo_by_key, key, RUN_NONE);
    if (at == RUN_NONE)
        return false;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        fold_flow flow = v->memos[at++];
        flow.base += from;
        *flow_of(v, &v->callers[i]) = flow;
    }
    return true;
}

static bool remember(finder *v, const meet *m, uint64_t key, int64_t from)
{
    if (v->memo_count + m->count >= RUN_NONE ||
        !orr_grow(&v->memos, &v->memo_room, v->memo_count + m->count) ||
        !orr_map_put(v->memo_by_key, key, (uint32_t)v->memo_count, NULL))
        return false;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        fold_flow flow = *flow_of(v, &v->callers[i]);
        flow.base -= from;
        v->memos[v->memo_count++] = flow;
    }
    return true;
}

/* Have all classes called it?  Not necessarily if the run was stopped. */
static bool has_all(const finder *v, const meet *m, uint32_t *caller_of)
{
    uint64_t ranks = 0;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        caller_of[v->callers[i].class_index] = i;
        ranks += v->f->classes[v->callers[i].class_index].count;
    }
    if (!m->family) /* groups of other ranks may have a collective of this number too */
        return true;
    return ranks == (uint64_t)m->family->groups * m->family->members;
}

/* For a stopped run: has every group with any caller all its members? */
static bool has_whole_groups(const finder *v, const meet *m)
{
    uint32_t members = 1, seen = 0;
    if (m->family)
        return true;
    for (uint32_t k = 0; k < m->note->dim_count; k++) {
        const sys_dim *d = m->note->dims[k];
        if (d->group)
            members = v->f->s->npu_count;
        else if (!(seen & 1u << d->position))
            members *= d->count;
        seen |= d->group ? UINT32_MAX : 1u << d->position;
    }
    for (uint32_t r = 0; r < v->f->s->npu_count; r++)
        v->latest[r] = 0;
    for (uint32_t i = m->first; i != RUN_NONE; i = v->callers[i].next) {
        const fold_class *c = &v->f->classes[v->callers[i].class_index];
        for (uint32_t k = 0; k < c->count; k++)
            v->latest[base_of(m->note, c->ranks[k])]++;
    }
    for (uint32_t r = 0; r < v->f->s->npu_count; r++)
        if (v->latest[r] != 0 && v->latest[r] != members)
            return false;
    return true;
}

static bool meet_collective(finder *v, const meet *m, uint32_t *caller_of, bool is_over)
{
    int64_t from;
    const bool is_whole = has_all(v, m, caller_of) && (is_over || has_whole_groups(v, m));
    for (uint32_t i = m->first; i != RUN_NONE && !is_whole; i = v->callers[i].next)
        *flow_of(v, &v->callers[i]) = (fold_flow){.state = FOLD_FLOWS_NEVER};
    if (!is_whole || meet_evenly(v, m))
        return true;
    const uint64_t key = question_of(v, m, &from);
    if (recall(v, m, key, from))
        return true;
    if (m->family)
        meet_by_family(v, m, caller_of);
    else
        meet_by_dims(v, m);
    return remember(v, m, key, from);
}

/* ---- messages ---- */

static const fold_channel *channel_at(const fold_class *c, uint32_t place)
{
    return c->relation_of[place] ? c->channel[c->relation_of[place] - 1] : NULL;
}

static uint64_t message_key(const fold_class *c, const fold_channel *h, uint32_t place)
{
    const orr_columns *col = &c->npu->graph->t->columns;
    const uint32_t node = c->npu->graph->node[place];
    const uint64_t size = col->comm_size ? (uint64_t)col->comm_size[node] : 0;
    return mix(mix(3, h->number), size ? size : 1);
}

/* A receive and its matching send. */
static bool meet_message(finder *v, const fold_pairs *h, const caller *sent, const caller *posted)
{
    fold_sim *f = v->f;
    const fold_class *to = &f->classes[posted->class_index];
    const fold_val here = start_of(v, posted), there = start_of(v, sent);
    /* All members equal on both sides: the most frequent case. */
    if (!here.by && !there.by) {
        *flow_of(v, posted) = (fold_flow){
            there.base, 0, there.base > here.base ? FOLD_FLOWS_LATER : FOLD_FLOWS_AT_START};
        return true;
    }
    const uint64_t key =
        mix(mix(mix(mix(4, h->number), here.by), there.by), (uint64_t)(there.base - here.base));
    const uint32_t known = orr_map_find(v->memo_by_key, key, RUN_NONE);
    fold_flow flow;
    if (known == RUN_NONE) {
        for (uint32_t m = 0; m < to->count; m++) {
            const int64_t mine = fold_at(f->times, here, m);
            const int64_t other = fold_at(f->times, there, h->source ? h->source[m] : m);
            v->at[m] = other > mine ? other : mine;
        }
        flow = make_flow(v, posted);
        flow.base -= here.base;
        if (v->memo_count >= RUN_NONE || !orr_grow(&v->memos, &v->memo_room, v->memo_count + 1) ||
            !orr_map_put(v->memo_by_key, key, (uint32_t)v->memo_count, NULL))
            return false;
        v->memos[v->memo_count++] = flow;
    } else {
        flow = v->memos[known];
    }
    flow.base += here.base;
    *flow_of(v, posted) = flow;
    return true;
}

/* First the sends; then each receive takes the first remaining one. */
static bool list_messages(finder *v, uint32_t class_index, bool is_send)
{
    fold_class *c = &v->f->classes[class_index];
    const orr_columns *col = &c->npu->graph->t->columns;
    bool ok = true;
    for (size_t i = 0; i < c->log.count && ok; i++) {
        const uint32_t place = c->log.steps[i].place;
        const uint8_t type = col->type[c->npu->graph->node[place]];
        const fold_channel *h = type == (is_send ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV)
                                    ? channel_at(c, place)
                                    : NULL;
        meet *m = h ? find_meet(v, message_key(c, h, place)) : NULL;
        if (!h)
            continue;
        if (is_send || !m) {
            ok = add_caller(v, m, class_index, (uint32_t)i);
        } else if (m->first == RUN_NONE) {
            c->flows[i].state = FOLD_FLOWS_NEVER;
        } else {
            const caller posted = {class_index, (uint32_t)i, RUN_NONE};
            ok = meet_message(v, h->pairs, &v->callers[m->first], &posted);
            /* In send order, like the matcher. */
            m->first = v->callers[m->first].next;
        }
    }
    return ok;
}

/* ---- everything ---- */

static bool find_flows(finder *v)
{
    fold_sim *f = v->f;
    /* A finished run has complete collectives: count members only if it was stopped. */
    const bool is_over = f->s->finished == f->s->npu_count;
    uint32_t *caller_of = orr_alloc(f->class_count, sizeof *caller_of);
    bool ok = caller_of != NULL;
    for (uint32_t c = 0; c < f->class_count && ok; c++)
        for (size_t i = 0; i < f->classes[c].log.count && ok; i++)
            if (f->classes[c].log.steps[i].note != RUN_NONE)
                ok = list_collective(v, c, (uint32_t)i);
    for (size_t i = 0; i < v->meet_count && ok; i++)
        ok = meet_collective(v, &v->meets[i], caller_of, is_over);
    for (uint32_t c = 0; c < f->class_count && ok; c++)
        /* All sends before any receive, since a class may receive from a later one in the list. */
        ok = list_messages(v, c, true);
    for (uint32_t c = 0; c < f->class_count && ok; c++)
        ok = list_messages(v, c, false);
    orr_free(caller_of);
    return ok;
}

void fold_drop_flows(fold_sim *f)
{
    for (uint32_t c = 0; f->classes && c < f->class_count; c++) {
        orr_free(f->classes[c].flows);
        f->classes[c].flows = NULL;
    }
    fold_times_destroy(f->flow_times);
    f->flow_times = NULL;
}

/* Once for all results; statistics of a stopped run may be requested again, so old results are
 * discarded. */
bool fold_find_flows(fold_sim *f)
{
    const size_t ranks = f->s->npu_count;
    finder v = {.f = f};
    fold_drop_flows(f);
    f->flow_times = fold_times_create((size_t)256 << 20);
    bool ok = f->flow_times != NULL;
    for (uint32_t c = 0; c < f->class_count && ok; c++) {
        fold_class *k = &f->classes[c];
        ok = (k->flows = orr_alloc(k->log.count, sizeof *k->flows)) || k->log.count == 0;
    }
    v.meet_by_key = orr_map_create(0);
    v.memo_by_key = orr_map_create(0);
    v.latest = orr_alloc(ranks, sizeof *v.latest);
    v.at = orr_alloc(ranks, sizeof *v.at);
    ok = ok && v.meet_by_key && v.memo_by_key && v.latest && v.at && find_flows(&v) &&
         !fold_times_no_memory(f->flow_times);
    orr_map_destroy(v.meet_by_key);
    orr_map_destroy(v.memo_by_key);
    orr_free(v.meets);
    orr_free(v.callers);
    orr_free(v.memos);
    orr_free(v.latest);
    orr_free(v.at);
    return ok;
}
