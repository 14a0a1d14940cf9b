/* SPDX-License-Identifier: Apache-2.0 */
/* fold_phase.c - interaction of classes: phases of collectives, and messages.
 *
 * A phase of a chunk is complete for its members when all of them have started it: then all ends
 * are computed from all starts (coll_times.h), and each class gets one event.  Results are memoised
 * by relative starts: a training step repeats the same few phases. */
#include "fold_impl.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"

#include <stdlib.h>

/* ---- meetings ---- */

static uint64_t hash_words(const int64_t *words, size_t count)
{
    return orr_hash_bytes(words, count * sizeof *words, 0x8ebc6af09c88c6e3u);
}

static bool is_same_meeting(const fold_meeting *a, const fold_meeting *b)
{
    return a->family == b->family && a->stream == b->stream && a->step == b->step &&
           coll_times_same(&a->phase, &b->phase);
}

static uint64_t meeting_key(const fold_meeting *m)
{
    /* The family's sum, not its address: results must not depend on addresses. */
    const uint64_t h =
        orr_hash_mix(m->stream ^ 0xa0761d6478bd642fu, (uint64_t)m->step + m->family->sum);
    return orr_hash_mix(h ^ 0xe7037ed1a0b428dbu, m->phase.data + (uint64_t)m->phase.kind);
}

static fold_meeting *new_meeting(fold_sim *f, const fold_meeting *like)
{
    const uint32_t count = like->family->class_count;
    fold_meeting *m = like->family->free_meetings;
    if (m) {
        like->family->free_meetings = m->next;
        /* Lists from its previous use are kept; everything else is reset. */
        sys_stream **streams = m->streams;
        fold_val *starts = m->starts;
        uint64_t *numbers = m->numbers;
        *m = *like;
        m->streams = streams;
        m->starts = starts;
        m->numbers = numbers;
        memset(m->streams, 0, count * sizeof *m->streams);
        return m;
    }
    m = orr_arena_new(f->arena, 1, fold_meeting);
    if (!m)
        return NULL;
    *m = *like;
    m->streams = orr_arena_new(f->arena, count, sys_stream *);
    m->starts = orr_arena_new(f->arena, count, fold_val);
    m->numbers = orr_arena_new(f->arena, count, uint64_t);
    return m->streams && m->starts && m->numbers ? m : NULL;
}

/* The meeting of this phase: one that waits for this class, or a new one. */
static fold_meeting *find_meeting(fold_sim *f, const fold_meeting *like)
{
    const uint64_t key = meeting_key(like);
    const uint32_t at = orr_map_find(f->meeting_by_key, key, RUN_NONE);
    fold_meeting *first = at == RUN_NONE ? NULL : f->meetings[at], *m = first;
    while (m && !is_same_meeting(m, like))
        m = m->next;
    if (m)
        return m;
    m = new_meeting(f, like);
    /* The map has one slot per hash; meetings with the same hash form a list in it. */
    const uint32_t slot = at != RUN_NONE                     ? at
                          : f->free_meeting_slot != RUN_NONE ? f->free_meeting_slot
                                                             : (uint32_t)f->meeting_count;
    if (!m ||
        (slot == f->meeting_count &&
         !orr_grow(&f->meetings, &f->meeting_room, f->meeting_count + 1)) ||
        (at == RUN_NONE && !orr_map_put(f->meeting_by_key, key, slot, NULL))) {
        run_no_memory(f->s);
        return NULL;
    }
    if (slot == f->meeting_count) {
        f->meeting_count++;
    } else if (at == RUN_NONE) {
        f->free_meeting_slot = f->meeting_free_next[slot];
    }
    if (!orr_grow(&f->meeting_free_next, &f->meeting_free_room, f->meeting_count)) {
        run_no_memory(f->s);
        return NULL;
    }
    m->next = first;
    f->meetings[slot] = m;
    return m;
}

/* Classes have merged, and families are new: none of the merged classes has arrived here. */
static bool move_meeting(fold_sim *f, const fold_meeting *old)
{
    fold_meeting like = *old, *m = NULL;
    for (uint32_t i = 0; i < old->family->class_count; i++) {
        const sys_stream *st = old->streams[i];
        if (!st)
            continue;
        if (!m) {
            const sys_dim *d = st->phases[st->phase].dim;
            fold_class *c = fold_class_at(st->npu);
            like.family = d->group ? fold_group_family(f, st->npu, st->set->place)
                                   : fold_line_family(f, c, d);
            m = like.family ? find_meeting(f, &like) : NULL;
            if (!m)
                return false;
        }
        /* Merged classes have no running phase, so the classes waiting here keep their numbers. */
        const uint32_t place = m->family->place_of[old->family->classes[i]];
        m->streams[place] = old->streams[i];
        m->starts[place] = old->starts[i];
        m->numbers[place] = old->numbers[i];
    }
    return true;
}

bool fold_move_meetings(fold_sim *f)
{
    fold_meeting **old = f->meetings;
    const size_t count = f->meeting_count;
    bool ok = true;
    orr_map_destroy(f->meeting_by_key);
    f->meeting_by_key = orr_map_create(0);
    f->meetings = NULL;
    f->meeting_count = f->meeting_room = 0;
    f->free_meeting_slot = RUN_NONE;
    if (!f->meeting_by_key) {
        run_no_memory(f->s);
        ok = false;
    }
    for (size_t i = 0; i < count; i++)
        for (const fold_meeting *m = old[i]; m && ok; m = m->next)
            ok = move_meeting(f, m);
    orr_free(old);
    return ok;
}

/* All classes have arrived: nobody looks it up any more. */
static void forget_meeting(fold_sim *f, fold_meeting *m)
{
    const uint64_t key = meeting_key(m);
    const uint32_t slot = orr_map_find(f->meeting_by_key, key, RUN_NONE);
    fold_meeting **at = &f->meetings[slot];
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (!f->meetings[slot]) {
        orr_map_remove(f->meeting_by_key, key);
        f->meeting_free_next[slot] = f->free_meeting_slot;
        f->free_meeting_slot = slot;
    }
}

void fold_leave(fold_sim *f, fold_meeting *m)
{
    (void)f;
    /* Freed by the last class that finishes: until then events refer to it. */
    if (++m->gone < m->family->class_count)
        return;
    /* Meetings of a family have lists of its length: they are reused by it. */
    m->next = m->family->free_meetings;
    m->family->free_meetings = m;
}

/* ---- from starts to ends ---- */

typedef struct context {
    fold_sim *f;
    fold_family *y;
    size_t first; /* of the group, in patterns */
    bool is_even, has_failed;
} context;

static uint64_t delay_to(void *c, uint64_t step, uint32_t member, uint64_t size)
{
    context *v = c;
    /* An edge of a tree has its own route: no pattern of all members applies. */
    if (coll_times_is_edge(step)) {
        const uint32_t group = (uint32_t)(v->first / v->y->members);
        const uint32_t from = fold_family_rank(v->y, group, coll_times_source(step, member, 0));
        const uint16_t path = fold_path_between(v->f, from, fold_family_rank(v->y, group, member));
        v->has_failed = v->has_failed || fold_is_over(v->f);
        return v->has_failed ? 0 : fold_delay(v->f, path, size);
    }
    const fold_pattern *p = fold_pattern_of(v->f, v->y, step);
    if (!p) {
        v->has_failed = true;
        return 0;
    }
    return fold_delay(v->f, p->path ? p->path[v->first + member] : p->even, size);
}

static void look_at_step(void *c, uint64_t step, uint64_t each, uint64_t size)
{
    context *v = c;
    (void)each;
    (void)size;
    if (v->has_failed)
        return;
    const fold_pattern *p = fold_pattern_of(v->f, v->y, step);
    v->has_failed = !p;
    v->is_even = v->is_even && p && !p->path;
}

static void count_step(void *c, uint64_t step, uint64_t each, uint64_t size)
{
    context *v = c;
    const fold_pattern *p = fold_pattern_of(v->f, v->y, step);
    if (p)
        fold_count_messages(v->f, p->pairs, each, size);
}

/* Of one group of a tree. */
static void count_edge(void *c, uint32_t from, uint32_t to, uint64_t messages, uint64_t size)
{
    const context *v = c;
    const fold_sim *f = v->f;
    const uint32_t group = (uint32_t)(v->first / v->y->members);
    const uint32_t k = watch_dimension_between(f->s, fold_family_rank(v->y, group, from),
                                               fold_family_rank(v->y, group, to));
    f->s->messages += messages;
    f->s->watch->traffic[k].messages += messages;
    f->s->watch->traffic[k].bytes += messages * size;
}

/* Steps send equally in every group; trees are counted group by group, since their edges cross
 * different dimensions in each. */
static void count_all(context *v, const coll_times_phase *p)
{
    if (!coll_times_is_tree(p)) {
        coll_times_steps(p, count_step, v);
        return;
    }
    for (uint32_t g = 0; g < v->y->groups; g++) {
        v->first = (size_t)g * v->y->members;
        coll_times_edges(p, count_edge, v);
    }
}

static bool is_even_start(const fold_meeting *m)
{
    for (uint32_t i = 0; i < m->family->class_count; i++)
        if (m->starts[i].by || m->starts[i].base != m->starts[0].base)
            return false;
    return true;
}

static bool find_even_ends(const fold_meeting *m,
                           coll_times_net *net,
                           fold_val *ends,
                           coll_times_lag *lag)
{
    int64_t end;
    if (!coll_times_even(&m->phase, net, m->starts[0].base, &end, lag))
        return false;
    for (uint32_t i = 0; i < m->family->class_count; i++)
        ends[i] = (fold_val){end, 0, 0};
    return true;
}

/* Per member: gathers the starts of all classes, group by group, and scatters the ends back to the
 * classes. */
static bool find_ends(fold_sim *f,
                      const fold_meeting *m,
                      context *v,
                      coll_times_net *net,
                      fold_val *ends,
                      coll_times_lag *lag)
{
    const fold_family *y = m->family;
    const size_t all = (size_t)y->groups * y->members;
    if (!orr_grow(&f->starts, &f->starts_room, all) || !orr_grow(&f->ends, &f->ends_room, all)) {
        net->is_out_of_memory = true;
        return false;
    }
    /* Groups of a family are independent and equal: one after the other, in one table. */
    for (uint32_t g = 0; g < y->groups; g++) {
        v->first = (size_t)g * y->members;
        for (uint32_t i = 0; i < y->members; i++) {
            const uint32_t rank = fold_family_rank(y, g, i);
            f->starts[v->first + i] =
                fold_at(f->times, m->starts[y->place_of[f->class_of[rank]]], f->index_of[rank]);
        }
        if (!coll_times_ends(&m->phase, net, f->starts + v->first, f->ends + v->first, lag) ||
            v->has_failed)
            return false;
    }
    /* f->starts is reused for the ends by class. */
    size_t at = 0;
    for (uint32_t i = 0; i < y->class_count; i++) {
        f->class_at[y->classes[i]] = at;
        at += f->classes[y->classes[i]].count;
    }
    /* Each class must be in the family with all its members, or its event would lack times for some
     * of them. */
    if (at != all) {
        fold_give_up(f, "a class is in groups of several kinds");
        return false;
    }
    for (uint32_t g = 0; g < y->groups; g++)
        for (uint32_t i = 0; i < y->members; i++) {
            const uint32_t rank = fold_family_rank(y, g, i);
            f->starts[f->class_at[f->class_of[rank]] + f->index_of[rank]] =
                f->ends[(size_t)g * y->members + i];
        }
    for (uint32_t i = 0; i < y->class_count; i++)
        ends[i] = fold_make(f->times, f->starts + f->class_at[y->classes[i]],
                            f->classes[y->classes[i]].count);
    return !fold_times_failed(f->times);
}

/* ---- memos ---- */

enum { PHASE_WORDS = 11 };

static size_t put_question(const fold_meeting *m, int64_t *out)
{
    const coll_times_phase *p = &m->phase;
    const uint32_t count = m->family->class_count;
    int64_t head[PHASE_WORDS] = {(int64_t)m->family->number,
                                 p->kind,
                                 (int64_t)p->data,
                                 p->count,
                                 p->number,
                                 p->is_group * 2 + p->is_forward,
                                 (int64_t)p->endpoint,
                                 0,
                                 0,
                                 p->root,
                                 (int64_t)p->variant * 2 + p->is_barrier};
    /* The bytes of a pointer and of a double: compared for equality only. */
    memcpy(&head[7], &p->ops, sizeof p->ops);
    memcpy(&head[8], &p->memory_speed, sizeof p->memory_speed);
    memcpy(out, head, sizeof head);
    for (uint32_t i = 0; i < count; i++) {
        /* Relative to the first: the same question at another time is equal. A spread is known by
         * its number. */
        out[PHASE_WORDS + 2 * (size_t)i] = m->starts[i].base - m->starts[0].base;
        out[PHASE_WORDS + 2 * (size_t)i + 1] = m->starts[i].by;
    }
    return PHASE_WORDS + 2 * (size_t)count;
}

/* A memo: its question, then the lags, the ends relative to the first start, the traffic by
 * dimension, and the send times. */
static const int64_t *recall(const fold_sim *f,
                             const int64_t *question,
                             size_t words,
                             uint64_t *key)
{
    uint32_t at;
    *key = hash_words(question, words);
    while ((at = orr_map_find(f->memos, *key, RUN_NONE)) != RUN_NONE) {
        const int64_t *kept =
            f->memo_words[at]; /* the first word is the family, which determines the length */
        /* Compared in full: the hash only finds it. */
        if (kept[0] == question[0] && memcmp(kept, question, words * sizeof *question) == 0)
            return kept + words;
        /* Linear probing; keep() puts a new memo where this search ended. */
        ++*key;
    }
    return NULL;
}

/* ---- send times, for traffic over time ---- */

typedef struct sends {
    context v;
    fold_family *y;
    uint32_t group;
    struct sent {
        int64_t at;
        uint64_t bytes;
        uint32_t dimension;
    } * list;
    size_t count, room;
    size_t crowded; /* threshold for merging sends at the same time */
    bool has_failed;
} sends;

enum { MOST_SENDS = 1 << 25, CROWDED = 1 << 20 };

static int by_dimension_and_time(const void *a, const void *b)
{
    const struct sent *x = a, *y = b;
    if (x->dimension != y->dimension)
        return x->dimension < y->dimension ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Merges sends of the same time and dimension; the list must be sorted. */
static void merge_sends(sends *l)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (count && l->list[count - 1].at == l->list[i].at &&
            l->list[count - 1].dimension == l->list[i].dimension)
            l->list[count - 1].bytes += l->list[i].bytes;
        else
            l->list[count++] = l->list[i];
    }
    l->count = count;
}

static void add_send(sends *l, int64_t at, uint32_t dimension, uint64_t bytes)
{
    struct sent *last = l->count ? &l->list[l->count - 1] : NULL;
    if (last && last->at == at && last->dimension == dimension) {
        last->bytes += bytes;
        return;
    }
    if (l->crowded && l->count >= l->crowded) {
        orr_sort(l->list, l->count, sizeof *l->list, by_dimension_and_time);
        merge_sends(l);
        /* Merging must at least halve the list, or it would be sorted again after every few
         * messages. */
        l->crowded = l->count > l->crowded / 2 ? 2 * l->crowded : l->crowded;
    }
    if (!orr_grow(&l->list, &l->room, l->count + 1))
        l->has_failed = true;
    else
        l->list[l->count++] = (struct sent){at, bytes, dimension};
}

/* A message counts for the dimension in which its ends differ, as in watch_message. */
static void hear_send(void *c, uint64_t step, uint32_t member, int64_t at, uint64_t size)
{
    sends *l = c;
    const fold_sim *f = l->v.f;
    /* All members at once: their messages are counted by dimension. */
    if (member == COLL_TIMES_ALL) {
        const fold_pattern *p = fold_pattern_of(l->v.f, l->y, step);
        for (uint32_t k = 0; p && k < f->s->dims; k++)
            if (p->pairs[k])
                add_send(l, at, k, p->pairs[k] * size);
        return;
    }
    const uint32_t to = fold_family_rank(l->y, l->group, member);
    const uint32_t from =
        fold_family_rank(l->y, l->group, coll_times_source(step, member, l->y->members));
    add_send(l, at, watch_dimension_between(f->s, from, to), size);
}

static void count_sends(void *count, uint64_t step, uint64_t messages_each, uint64_t size)
{
    (void)step;
    (void)size;
    *(uint64_t *)count += messages_each;
}

static void count_along(void *count, uint32_t from, uint32_t to, uint64_t messages, uint64_t size)
{
    (void)from;
    (void)to;
    (void)size;
    *(uint64_t *)count += messages;
}

/* The words of a memo: how many, then time after the first start, dimension and bytes of each.
 * NULL: out of memory, or so many messages at different times that it would take too long: then
 * there is no traffic over time. */
static const int64_t *keep_sends(fold_sim *f, const fold_meeting *m)
{
    fold_family *y = m->family;
    const bool is_tree = coll_times_is_tree(&m->phase);
    sends l = {.v = {.f = f, .y = y, .is_even = !is_tree}, .y = y};
    coll_times_steps(&m->phase, look_at_step, &l.v);
    coll_times_net net = {.delay = delay_to, .context = &l.v, .is_even = l.v.is_even};
    const bool is_even = l.v.is_even && is_even_start(m);
    uint64_t each = 0, along = 0; /* per member, and along edges */
    coll_times_steps(&m->phase, count_sends, &each);
    if (is_tree)
        coll_times_edges(&m->phase, count_along, &along);
    if (!is_even && ((double)each * y->members + (double)along) * y->groups > MOST_SENDS) {
        f->s->watch->bins = NULL;
        return NULL;
    }
    l.crowded = is_even ? 0 : CROWDED;
    bool ok = orr_grow(&f->starts, &f->starts_room, y->members);
    for (uint32_t g = 0; ok && g < (is_even ? 1 : y->groups); g++) {
        l.group = g;
        l.v.first = (size_t)g * y->members;
        for (uint32_t i = 0; i < (is_even ? 1 : y->members); i++) {
            const uint32_t rank = fold_family_rank(y, g, i);
            f->starts[i] =
                fold_at(f->times, m->starts[y->place_of[f->class_of[rank]]], f->index_of[rank]);
        }
        ok = coll_times_sends(&m->phase, &net, f->starts, is_even, hear_send, &l) && !l.has_failed;
    }
    if (ok && !is_even)
        orr_sort(l.list, l.count, sizeof *l.list, by_dimension_and_time);
    merge_sends(&l);
    const size_t count = l.count;
    int64_t *words = ok ? orr_arena_take(f->arena, (1 + 3 * count) * sizeof *words) : NULL;
    if (words)
        words[0] = (int64_t)count;
    for (size_t i = 0; words && i < count; i++) {
        words[1 + 3 * i] = l.list[i].at - m->starts[0].base;
        words[2 + 3 * i] = l.list[i].dimension;
        words[3 + 3 * i] = (int64_t)l.list[i].bytes;
    }
    orr_free(l.list);
    return words;
}

/* A memo is one row of words:
 *
 *     question          family, phase, starts of classes relative to the first
 *     lags              from the last timer of a member to its end: minimum and maximum
 *     ends              base and spread of each class, relative to the first start
 *     traffic           messages and bytes, by dimension
 *     sends             a pointer to the send times; NULL: not kept */
static const int64_t *keep(
    fold_sim *f, size_t words, uint64_t key, const fold_meeting *m, coll_times_lag lag)
{
    const uint32_t count = m->family->class_count, dims = f->s->dims;
    const size_t room = words + FOLD_LAGS + 1 + 2 * (size_t)count + 2 * (size_t)dims;
    const watch_traffic *traffic = f->s->watch->traffic;
    int64_t *kept = orr_arena_take(f->arena, room * sizeof *kept);
    watch_traffic before[ORR_NET_DIMS];
    context v = {.f = f, .y = m->family};
    if (!kept || !orr_grow(&f->memo_words, &f->memo_room, f->memo_count + 1) ||
        !orr_map_put(f->memos, key, (uint32_t)f->memo_count, NULL))
        return NULL;
    memcpy(kept, f->question, words * sizeof *kept);
    int64_t *out = kept + words;
    *out++ = (int64_t)lag.least;
    *out++ = (int64_t)lag.most;
    for (uint32_t i = 0; i < count; i++) {
        *out++ = f->phase_ends[i].base - m->starts[0].base;
        *out++ = f->phase_ends[i].by;
    }
    /* The counters are borrowed: the phase's traffic is read off and subtracted again, since a memo
     * is made once and counted often. */
    memcpy(before, traffic, sizeof before);
    const uint64_t messages = f->s->messages;
    count_all(&v, &m->phase);
    for (uint32_t k = 0; k < dims; k++) {
        *out++ = (int64_t)(traffic[k].messages - before[k].messages);
        *out++ = (int64_t)(traffic[k].bytes - before[k].bytes);
    }
    memcpy(f->s->watch->traffic, before,
           sizeof before); /* counted with the others, in complete() */
    f->s->messages = messages;
    const int64_t *times = f->s->watch->bins ? keep_sends(f, m) : NULL; /* may drop them */
    if (f->s->watch->bins && !times)
        return NULL;
    /* A pointer as a word, so that a memo is one row of words. */
    memcpy(out, &times, sizeof times);
    f->memo_words[f->memo_count++] = kept;
    return kept + words;
}

/* If members start together over equal routes, one member is enough; otherwise, and for trees,
 * every member is computed. */
static bool answer(fold_sim *f, const fold_meeting *m, fold_val *ends, coll_times_lag *lag)
{
    context v = {.f = f, .y = m->family, .is_even = !coll_times_is_tree(&m->phase)};
    coll_times_steps(&m->phase, look_at_step, &v);
    coll_times_net net = {.delay = delay_to, .context = &v, .is_even = v.is_even};
    if (v.has_failed || fold_is_over(f))
        return false;
    const bool ok = v.is_even && is_even_start(m) ? find_even_ends(m, &net, ends, lag)
                                                  : find_ends(f, m, &v, &net, ends, lag);
    if (net.is_out_of_memory)
        run_no_memory(f->s);
    if (!ok && !fold_is_over(f))
        fold_give_up(f, "%s over %u ranks: its ends depend on the order of events of one tick",
                     coll_kind_name(m->phase.kind), m->phase.count);
    return ok;
}

static void finish_phase(void *stream, uint64_t unused)
{
    (void)unused;
    sys_stream_advance(stream);
}

/* Traffic over time. */
void fold_draw_sent(fold_sim *f, const fold_class *c, const fold_sent *sent)
{
    orr_sim *s = f->s;
    const fold_pairs *h = sent->pairs;
    const fold_val at = {sent->at.base - (int64_t)s->rounds.origin, sent->at.by, 0};
    if (!s->watch->bins)
        return;
    for (int64_t i = 0; sent->words && i < sent->words[0]; i++)
        watch_add_traffic(s, (uint32_t)sent->words[2 + 3 * i],
                          (uint64_t)(at.base + sent->words[1 + 3 * i]),
                          (uint64_t)sent->words[3 + 3 * i]);
    for (uint32_t k = 0; h && !at.by && k < s->dims; k++)
        if (h->count[k])
            watch_add_traffic(s, k, (uint64_t)at.base, h->count[k] * sent->size);
    for (uint32_t m = 0; h && at.by && m < c->count; m++)
        watch_add_traffic(s, h->dimension[m], (uint64_t)fold_at(f->times, at, m), sent->size);
}

/* With several steps it is drawn once it is known which one is kept. */
static void note_sent(fold_sim *f, fold_class *c, const fold_sent *sent)
{
    if (f->s->opt.steps < 2)
        fold_draw_sent(f, c, sent);
    else if (!fold_log_sends(c, sent))
        run_no_memory(f->s);
}

/* NULL: given up, or out of memory. */
static const int64_t *find_answer(fold_sim *f, const fold_meeting *m)
{
    const uint32_t count = m->family->class_count;
    uint64_t key;
    coll_times_lag lag;
    if (!orr_grow(&f->question, &f->question_room, PHASE_WORDS + 2 * (size_t)count) ||
        !orr_grow(&f->phase_ends, &f->phase_ends_room, count)) {
        run_no_memory(f->s);
        return NULL;
    }
    const size_t words = put_question(m, f->question);
    const int64_t *known = recall(f, f->question, words, &key);
    if (!known && !answer(f, m, f->phase_ends, &lag))
        return NULL;
    if (!known && !(known = keep(f, words, key, m, lag)) && !f->has_given_up)
        run_no_memory(f->s);
    return known;
}

const int64_t *fold_ask(fold_sim *f,
                        fold_family *y,
                        const coll_times_phase *phase,
                        fold_val *starts)
{
    const fold_meeting m = {.family = y, .phase = *phase, .starts = starts};
    return find_answer(f, &m);
}

const int64_t *fold_words_of(const fold_sim *f, const fold_family *y, const int64_t *known)
{
    const int64_t *words;
    memcpy(&words, known + FOLD_LAGS + 2 * (size_t)y->class_count + 2 * (size_t)f->s->dims,
           sizeof words);
    return words;
}

/* The last class has arrived: compute all ends, and schedule one event per class. */
static void complete(fold_sim *f, fold_meeting *m)
{
    const uint32_t count = m->family->class_count;
    const int64_t *known = find_answer(f, m);
    if (!known)
        return;
    /* Before events are scheduled: they may start a phase with the same number. */
    forget_meeting(f, m);
    const int64_t *traffic = known + FOLD_LAGS + 2 * (size_t)count;
    for (uint32_t k = 0; k < f->s->dims && m->round == 0; k++) { /* the same in each step */
        f->s->messages += (uint64_t)traffic[2 * k];
        f->s->watch->traffic[k].messages += (uint64_t)traffic[2 * k];
        f->s->watch->traffic[k].bytes += (uint64_t)traffic[2 * k + 1];
    }
    for (uint32_t i = 0; i < count; i++)
        f->phase_ends[i] = (fold_val){m->starts[0].base + known[FOLD_LAGS + 2 * (size_t)i],
                                      (uint32_t)known[FOLD_LAGS + 1 + 2 * (size_t)i], 0};
    const uint32_t id = f->is_taping ? fold_tape_phase(f, m, f->phase_ends) : 0;
    if (f->s->watch->bins)
        /* With the first class: the words are relative to its start. */
        note_sent(f, &f->classes[m->family->classes[0]],
                  &(fold_sent){.at = m->starts[0],
                               .words = fold_words_of(f, m->family, known),
                               .phase = id});
    for (uint32_t i = 0; i < count && !fold_is_over(f); i++) {
        const fold_val start = m->starts[i], end = f->phase_ends[i];
        /* It ended by the timer of its own start, for every member: such an end is ordered like
         * timers of nodes (fold_events.c). */
        const bool is_own = coll_times_is_tree(&m->phase) && known[0] == known[1] &&
                            end.by == start.by && end.base - start.base == known[0];
        f->phase_ends[i].id = id ? id + i : 0;
        fold_schedule(f, &(fold_event){.at = f->phase_ends[i],
                                       /* The time from the last timer of a phase to its end is the
                                        * same for all members (coll_times.h). */
                                       .lag_least = known[0],
                                       .lag_most = known[1],
                                       .call = {finish_phase, m->streams[i], 0},
                                       .meeting = m,
                                       .number = m->numbers[i],
                                       .class_index = m->family->classes[i],
                                       .is_own = is_own,
                                       .kind = FOLD_PHASE_END});
    }
}

bool fold_share_pair(const cfg_group *a, const cfg_group *b)
{
    uint32_t x = 0, y = 0, common = 0;
    /* Disjoint ranges, the usual case, are detected by their ends. */
    if (a->sorted[a->count - 1] < b->sorted[0] || b->sorted[b->count - 1] < a->sorted[0])
        return false;
    while (x < a->count && y < b->count && common < 2) {
        common += a->sorted[x] == b->sorted[y];
        if (a->sorted[x] <= b->sorted[y])
            x++;
        else
            y++;
    }
    return common > 1;
}

bool fold_may_mix_groups(const orr_sim *s, const cfg_group *a, const cfg_group *b)
{
    const bool has_one_count = s->rules->has_one_count;
    return sys_tag_number(a ? (uint64_t)a->id : 0, has_one_count) ==
               sys_tag_number(b ? (uint64_t)b->id : 0, has_one_count) &&
           (!a || !b || fold_share_pair(a, b));
}

/* Does any rank of the class have groups in both families whose tags may clash?  Cached per pair of
 * families. */
static bool may_mix(fold_sim *f, const fold_class *c, const fold_running *a, const fold_running *b)
{
    /* Three numbers in one key; larger ones are assumed to clash. */
    enum { BITS = 21 };
    const uint64_t first = a->family->number, second = b->family->number,
                   third = (uint64_t)(c - f->classes);
    const uint64_t key = first << 2 * BITS | second << BITS | third;
    const uint32_t known = orr_map_find(f->mixed, key, RUN_NONE);
    run_npu view = {.sim = f->s, .graph = c->npu->graph};
    bool may = (first | second | third) >> BITS != 0;
    if (may || known != RUN_NONE)
        return may || known;
    for (uint32_t i = 0; !may && i < c->count; i++) {
        view.rank = c->ranks[i];
        may = fold_may_mix_groups(f->s, sys_node_group(&view, a->place),
                                  sys_node_group(&view, b->place));
    }
    if (!orr_map_put(f->mixed, key, may, NULL))
        run_no_memory(f->s);
    return may;
}

/* Records running chunks if tags may clash.  False: one with this number is already running, in
 * another family with possibly equal tags. */
static bool note_running(fold_sim *f, fold_class *c, const fold_meeting *m, uint32_t place)
{
    const fold_running mine = {.place = place, .stream = m->stream, .family = m->family};
    if (!f->mixed && !(f->mixed = orr_map_create(0))) {
        run_no_memory(f->s);
        return true;
    }
    /* All running phases are listed, so there are as many entries. */
    for (uint32_t i = 0; i < c->phases; i++)
        if (c->running[i].stream == m->stream && c->running[i].family != m->family &&
            may_mix(f, c, &c->running[i], &mine))
            return false;
    if (!orr_grow(&c->running, &c->running_room, c->phases + (size_t)1)) {
        run_no_memory(f->s);
        return true;
    }
    c->running[c->phases] = mine;
    return true;
}

void fold_phase_over(fold_sim *f, fold_class *c, const fold_meeting *m)
{
    c->phases--;
    for (uint32_t i = 0; f->may_mix_tags && i < c->phases; i++)
        if (c->running[i].stream == m->stream && c->running[i].family == m->family) {
            /* Order is irrelevant: the last entry fills the gap. */
            c->running[i] = c->running[c->phases];
            return;
        }
}

void fold_phase_start(sys_stream *st)
{
    run_npu *n = st->npu;
    const orr_sim *s = n->sim;
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    const sys_phase *p = &st->phases[st->phase];
    const sys_dim *d = p->dim;
    if (fold_is_over(f))
        return;
    if (st->custom_prefix) {
        fold_give_up(f, "a plan or a trace is the algorithm of a collective");
        return;
    }
    fold_meeting like = {
        .family = d->group ? fold_group_family(f, n, st->set->place) : fold_line_family(f, c, d),
        /* In rooted collectives some ranks have fewer phases; no dimension has two of one kind. */
        .step = coll_has_root(p->kind) ? d->position : st->phase,
        .round = n->round,
        .stream = d->group ? st->id - (uint64_t)d->group->id * SYS_GROUP_STREAMS : st->id};
    if (!like.family)
        return;
    like.phase = (coll_times_phase){
        .ops = d->ops,
        .kind = p->kind,
        .data = p->data,
        .count = d->count,
        .number = d->number,
        .root = p->root,
        .variant = p->variant,
        .is_group = d->group != NULL,
        .is_forward = p->is_clockwise,
        .is_barrier = st->whole == ORR_COLL_BARRIER,
        .endpoint = d->group ? SYS_GROUP_RING_DELAY : s->system.endpoint_delay,
        .memory_speed = s->system.local_mem_bw * n->speed->memory,
    };
    /* As set_up in phases.c: ranks not covered by the last dimension. */
    const bool has_outsider = !d->group && d->is_last && s->npu_count / d->offset > d->count;
    if (!coll_times_knows(&like.phase) || (d->ops == &coll_tree && has_outsider)) {
        fold_give_up(f, "the algorithm %s of a collective over %u ranks is not folded",
                     d->ops->label, d->count);
        return;
    }
    fold_meeting *m = find_meeting(f, &like);
    if (!m)
        return;
    const uint32_t place = m->family->place_of[c - f->classes];
    if (m->streams[place]) {
        fold_give_up(f, "rank %u runs two phases of one number", n->rank);
        return;
    }
    if (f->may_mix_tags && !note_running(f, c, m, st->set->place)) {
        fold_give_up(f, "chunks of two groups have the same tag");
        return;
    }
    /* Members may be in different steps: is_same_meeting does not compare the round. */
    f->mixes_rounds = f->mixes_rounds || m->round != n->round;
    m->streams[place] = st;
    m->starts[place] = c->now;
    /* The order in which a class started its phases: the tie-breaker for phases that end together
     * (fold_events.c). */
    m->numbers[place] = ++f->numbers;
    c->phases++;
    if (++m->come == m->family->class_count)
        complete(f, m);
}

/* ---- messages of nodes ---- */

/* One delay if all routes are equal; else a spread, cached for the last size. */
static fold_val pairs_delay(fold_sim *f, fold_pairs *h, uint64_t size)
{
    if (!h->path)
        return (fold_val){(int64_t)fold_delay(f, h->even, size), 0, 0};
    /* Messages of one channel mostly have one size. No message has 0 bytes (fold_message), so the
     * first one never matches. */
    if (h->delay_size == size)
        return h->delay;
    const uint32_t count = f->classes[h->from_class].count;
    if (!orr_grow(&f->starts, &f->starts_room, count)) {
        run_no_memory(f->s);
        return (fold_val){0, 0, 0};
    }
    for (uint32_t m = 0; m < count; m++)
        f->starts[m] = (int64_t)fold_delay(f, h->path[m], size);
    h->delay_size = size;
    return h->delay = fold_make(f->times, f->starts, count);
}

static fold_letter *new_letter(fold_sim *f, const fold_letter *value)
{
    fold_letter *l = f->free_letters;
    if (l)
        f->free_letters = l->next;
    else if (!(l = orr_arena_new(f->arena, 1, fold_letter)))
        run_no_memory(f->s);
    if (l)
        *l = *value;
    return l;
}

/* Removes the oldest letter of the other side with this size; NULL: there is none. */
static fold_letter *take_other(fold_sim *f, fold_channel *h, bool is_send, uint64_t size)
{
    fold_letter *before = NULL;
    /* By size too, since it is part of the matcher's key: the k-th of a size matches the k-th. */
    for (fold_letter *l = h->first; l; before = l, l = l->next)
        if (l->is_send != is_send && l->size == size) {
            *(before ? &before->next : &h->first) = l->next;
            if (h->last == l)
                h->last = before;
            l->next = f->free_letters;
            f->free_letters = l;
            return l;
        }
    return NULL;
}

void fold_put_letter(fold_sim *f, fold_channel *h, const fold_letter *value)
{
    fold_letter *l = new_letter(f, value);
    if (!l)
        return;
    l->next = NULL;
    *(h->last ? &h->last->next : &h->first) = l;
    h->last = l;
}

/* Sources of events, per member: its own sends, its receives of messages that had arrived, the
 * messages of one channel. */
enum { SENT_HERE = 0, POSTED_HERE = 1 };

/* A message is received when it has arrived and the receive is posted. */
static void receive(fold_sim *f,
                    fold_channel *h,
                    const fold_letter *sent,
                    const fold_letter *posted)
{
    fold_class *to = &f->classes[h->pairs->to_class];
    /* fold_flows.c matches the n-th message of a step with its n-th receive: it would take the time
     * at which another message was sent. */
    if (sent->round != posted->round) {
        fold_give_up(f, "a message of one step is received in another");
        return;
    }
    if (!h->pairs->is_joined) {
        fold_give_up(f, "a class receives from several classes");
        return;
    }
    const fold_val there = fold_at_receiver(f, sent->at, h->pairs);
    const fold_val waited = fold_sub(f->times, there, posted->at);
    /* If the message was first for some members and the receive for others, lags and sources of
     * both are possible: the event has an interval of lags. */
    const bool all_waited = waited.base > 0, none_waited = fold_most(f->times, waited) < 0;
    fold_schedule(f, &(fold_event){.at = fold_later(f, there, posted->at),
                                   .lag_least = all_waited ? sent->lag_least : 0,
                                   .lag_most = none_waited ? 0 : sent->lag_most,
                                   .call = {work_node_done, to->npu, posted->place},
                                   .number = none_waited ? posted->number : sent->number,
                                   .sender = none_waited ? POSTED_HERE : 2 * h->number + 1,
                                   .class_index = h->pairs->to_class,
                                   .kind = FOLD_ARRIVAL});
}

/* A send is an event of its sender, at arrival; its receive is one of the receiving class, at the
 * later of arrival and posting.  Whichever comes second finds the first in the channel. */
void fold_message(run_npu *n, uint32_t place, bool is_send, uint64_t size)
{
    fold_sim *f = n->sim->fold;
    fold_class *c = fold_class_at(n);
    fold_channel *h = fold_is_over(f) ? NULL : fold_channel_of(f, n, place, is_send);
    if (!h)
        return;
    /* As at_least_a_byte in match.c. */
    size = size ? size : 1;
    if (!fold_is_next(f, c, is_send ? &h->sent : &h->posted, place))
        return;
    fold_letter mine = {.is_send = is_send,
                        .place = place,
                        .size = size,
                        .at = c->now,
                        .number = ++f->numbers,
                        .round = n->round};
    if (is_send) {
        const fold_val delay = pairs_delay(f, h->pairs, size);
        mine.at = fold_after(f, c->now, delay);
        mine.lag_least = delay.base;
        mine.lag_most = fold_most(f->times, delay);
        /* Order within a tick would then be circular between ranks, which lags cannot express. */
        if (delay.base == 0) {
            fold_give_up(f, "a message takes no time");
            return;
        }
        if (n->round == 0) /* the same in each step */
            fold_count_messages(f, h->pairs->count, 1, size);
        if (f->s->watch->bins)
            note_sent(f, c, &(fold_sent){.pairs = h->pairs, .at = c->now, .size = size});
        fold_schedule(f, &(fold_event){.at = mine.at,
                                       .lag_least = mine.lag_least,
                                       .lag_most = mine.lag_most,
                                       .call = {work_node_done, n, place},
                                       .number = mine.number,
                                       .sender = SENT_HERE,
                                       .class_index = (uint32_t)(c - f->classes),
                                       .kind = FOLD_ARRIVAL});
    }
    fold_letter *other = take_other(f, h, is_send, size);
    if (!other)
        fold_put_letter(f, h, &mine);
    else
        receive(f, h, is_send ? &mine : other, is_send ? other : &mine);
}
