/* SPDX-License-Identifier: Apache-2.0 */
/* step_links.c - what ties the steps of different ranks together, found again from the log.
 *
 * The k-th send with a tag, source, destination and size meets the k-th receive (astra-sim.md 4.3), and the log
 * has both in the order in which they were posted: so messages need no entry of their own while a run goes on. */
#include "run/watch.h"

#include "base/memory/hash.h"

typedef struct message_key {
    uint32_t tag, src, dst;
    uint64_t size;
} message_key;

/* Steps of one side that wait for the other, first come first served. */
typedef struct waiting {
    message_key key;
    uint32_t first, last;
    bool is_send;
} waiting;

typedef struct linker {
    const orr_sim *s;
    uint32_t *partner, *next; /* by step */
    waiting *queues;
    size_t queue_count, queue_room;
    orr_map *by_key;
} linker;

static uint32_t node_of(const orr_sim *s, const orr__step *step)
{
    return s->npus[step->rank].graph->node[step->place];
}

static const orr_columns *columns_of(const orr_sim *s, const orr__step *step)
{
    return &s->npus[step->rank].graph->t->columns;
}

uint64_t orr__step_node_id(const orr_sim *s, const orr__step *step)
{
    return columns_of(s, step)->id[node_of(s, step)] + orr_set_id_shift(s->set, step->rank);
}

orr_str orr__step_name(const orr_sim *s, const orr__step *step)
{
    return orr_trace_name(s->npus[step->rank].graph->t, node_of(s, step));
}

orr_span_kind orr__step_kind(const orr_sim *s, const orr__step *step)
{
    switch (columns_of(s, step)->type[node_of(s, step)]) {
    case ORR_NODE_COMM_SEND:
        return ORR_SPAN_SEND;
    case ORR_NODE_COMM_RECV:
        return ORR_SPAN_RECEIVE;
    case ORR_NODE_COMM_COLL:
        return ORR_SPAN_COLLECTIVE;
    case ORR_NODE_MEM_LOAD:
    case ORR_NODE_MEM_STORE:
        return ORR_SPAN_MEMORY;
    case ORR_NODE_COMP:
        return s->npus[step->rank].graph->slot[step->place] == ORR__SLOT_CPU ? ORR_SPAN_HOST
                                                                             : ORR_SPAN_COMPUTE;
    default:
        return ORR_SPAN_OTHER;
    }
}

uint64_t orr__step_size(const orr_sim *s, const orr__step *step)
{
    const orr_columns *c = columns_of(s, step);
    const uint32_t i = node_of(s, step);
    const bool is_message = c->type[i] >= ORR_NODE_COMM_SEND && c->type[i] <= ORR_NODE_COMM_COLL;
    const int64_t *column = is_message ? c->comm_size : c->tensor_size;
    return column && column[i] > 0 ? (uint64_t)column[i] : 0;
}

/* ---- messages ---- */

static bool key_of(const orr_sim *s, const orr__step *step, bool is_send, message_key *out)
{
    const orr_columns *c = columns_of(s, step);
    const uint32_t i = node_of(s, step);
    const orr__npu *n = &s->npus[step->rank];
    const int64_t value = is_send ? orr__npu_dst(n, step->place) : orr__npu_src(n, step->place);
    const int64_t tag = orr__npu_tag(n, step->place);
    if (value == ORR_NO_VALUE || tag == ORR_NO_VALUE || !c->comm_size)
        return false;
    const uint32_t peer = (uint32_t)value;
    *out = (message_key){.tag = (uint32_t)((uint64_t)tag % ORR__TAG_SPACE),
                         .src = is_send ? step->rank : peer,
                         .dst = is_send ? peer : step->rank,
                         .size = (uint64_t)c->comm_size[i]};
    return true;
}

static bool is_same(const message_key *a, const message_key *b)
{
    return a->tag == b->tag && a->src == b->src && a->dst == b->dst && a->size == b->size;
}

static waiting *find_queue(linker *l, const message_key *k)
{
    const uint64_t ranks = (uint64_t)k->src << 32 | k->dst, rest = (uint64_t)k->tag << 32 ^ k->size;
    uint64_t hash = orr_hash_mix(ranks ^ 0xa0761d6478bd642fu, rest ^ 0xe7037ed1a0b428dbu);
    uint32_t i;
    while ((i = orr_map_find(l->by_key, hash, ORR__NONE)) != ORR__NONE) {
        if (is_same(&l->queues[i].key, k))
            return &l->queues[i];
        hash++;
    }
    if (!orr_grow(&l->queues, &l->queue_room, l->queue_count + 1) ||
        !orr_map_put(l->by_key, hash, (uint32_t)l->queue_count, NULL))
        return NULL;
    l->queues[l->queue_count] = (waiting){.key = *k, .first = ORR__NONE, .last = ORR__NONE};
    return &l->queues[l->queue_count++];
}

static bool link_step(linker *l, uint32_t i)
{
    const orr__step *steps = l->s->watch->steps;
    const orr_span_kind kind = orr__step_kind(l->s, &steps[i]);
    const bool is_send = kind == ORR_SPAN_SEND;
    message_key key;
    if ((kind != ORR_SPAN_SEND && kind != ORR_SPAN_RECEIVE) ||
        !key_of(l->s, &steps[i], is_send, &key))
        return true;
    waiting *q = find_queue(l, &key);
    if (!q)
        return false;
    if (q->first != ORR__NONE && q->is_send != is_send) {
        l->partner[i] = q->first;
        l->partner[q->first] = i;
        q->first = l->next[q->first];
        return true;
    }
    q->is_send = is_send;
    l->next[i] = ORR__NONE;
    if (q->first == ORR__NONE)
        q->first = i;
    else
        l->next[q->last] = i;
    q->last = i;
    return true;
}

uint32_t *orr__step_partners(const orr_sim *s)
{
    const size_t count = s->watch->step_count;
    linker l = {.s = s, .by_key = orr_map_create(0)};
    l.partner = orr_alloc(count, sizeof *l.partner);
    l.next = orr_alloc(count, sizeof *l.next);
    bool ok = l.by_key && l.partner && l.next;
    if (ok)
        memset(l.partner, 0xff, count * sizeof *l.partner);
    for (uint32_t i = 0; ok && i < count && !s->system.replay_only; i++)
        ok = link_step(&l, i);
    orr_map_destroy(l.by_key);
    orr_free(l.queues);
    orr_free(l.next);
    if (ok)
        return l.partner;
    orr_free(l.partner);
    return NULL;
}

/* ---- collectives ---- */

uint32_t orr__step_last_member(const orr_sim *s, uint32_t step)
{
    const struct orr__watch *w = s->watch;
    const orr__step *me = &w->steps[step];
    if (me->instance == ORR__NONE)
        return step;
    const uint32_t source = w->instances[me->instance].source;
    uint32_t last = w->instances[me->instance].last;
    while (last != step && (w->steps[last].start > me->end ||
                            (source != ORR__NONE && w->steps[last].rank != source)))
        last = w->steps[last].earlier;
    return w->steps[last].start > me->start ? last : step;
}
