/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_match.c - the table of waiting receives and messages, by host, source and tag
 * (lgs_impl.h). */
#include "lgs_impl.h"

#include <orrery/lab/goal.h>

#include <string.h>

enum { FIRST_SLOTS = 1024 };
#define MESSAGES 0x80000000u
#define ANY ORR_GOAL_ANY

bool lgs_match_init(lgs_match *m, uint32_t hosts, bool has_lists)
{
    *m = (lgs_match){.slot_count = FIRST_SLOTS, .has_lists = has_lists};
    m->slots = orr_alloc(m->slot_count, sizeof *m->slots);
    bool is_good = m->slots != NULL;
    for (int side = 0; side < 2 && has_lists; side++) {
        m->first[side] = orr_alloc(hosts, sizeof **m->first);
        m->last[side] = orr_alloc(hosts, sizeof **m->last);
        m->count[side] = orr_alloc(hosts, sizeof **m->count);
        is_good = is_good && m->first[side] && m->last[side] && m->count[side];
    }
    return is_good;
}

void lgs_match_fini(lgs_match *m)
{
    orr_free(m->slots);
    orr_free(m->links);
    orr_free(m->keys);
    for (int side = 0; side < 2; side++) {
        orr_free(m->first[side]);
        orr_free(m->last[side]);
        orr_free(m->count[side]);
    }
    *m = (lgs_match){0};
}

/* ---- the hash table: an empty queue frees its slot at once */

static inline bool is_key(const lgs_slot *s, lgs_key k)
{
    return s->key.host == k.host && s->key.source == k.source && s->key.tag == k.tag;
}

static inline size_t find(const lgs_match *m, lgs_key k)
{
    size_t i = lgs_match_place(m, k);
    while (m->slots[i].last && !is_key(&m->slots[i], k))
        i = (i + 1) & (m->slot_count - 1);
    return i;
}

static bool grow(lgs_match *m)
{
    lgs_slot *old = m->slots;
    const size_t count = m->slot_count;
    lgs_slot *slots = orr_alloc(count * 2, sizeof *slots);
    if (!slots)
        return false;
    m->slots = slots;
    m->slot_count = count * 2;
    for (size_t i = 0; i < count; i++) {
        if (old[i].last)
            m->slots[find(m, old[i].key)] = old[i];
    }
    orr_free(old);
    return true;
}

/* Backward-shift deletion.  No tombstones: queues come and go all the time, and a search must end
 * at the first empty slot. */
static void empty_slot(lgs_match *m, size_t hole)
{
    const size_t mask = m->slot_count - 1;
    for (size_t i = (hole + 1) & mask; m->slots[i].last; i = (i + 1) & mask) {
        const size_t home = lgs_match_place(m, m->slots[i].key);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].last = 0;
    m->used--;
}

/* ---- lists by host */

/* Links and keys are arrays by event and not part of it: only schedules with wildcards pay for
 * them. */
static bool list_add(lgs_match *m, lgs_side side, lgs_key key, uint32_t e)
{
    if (!orr_grow(&m->links, &m->link_room, (size_t)e + 1) ||
        !orr_grow(&m->keys, &m->key_room, (size_t)e + 1))
        return false;
    uint32_t *last = &m->last[side][key.host];
    m->keys[e] = key;
    m->links[e] = (lgs_link){0, *last};
    if (*last)
        m->links[*last].next = e;
    else
        m->first[side][key.host] = e;
    *last = e;
    m->count[side][key.host]++;
    return true;
}

static void list_remove(lgs_match *m, lgs_side side, uint32_t host, uint32_t e)
{
    const lgs_link l = m->links[e];
    /* A head or tail has no neighbour to change but the host's own pointer. */
    *(l.previous ? &m->links[l.previous].next : &m->first[side][host]) = l.next;
    *(l.next ? &m->links[l.next].previous : &m->last[side][host]) = l.previous;
    m->count[side][host]--;
}

/* ---- adding and taking */

bool lgs_match_add(lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key, uint32_t e)
{
    /* Load factor of at most 5/8: probes stay short, and a search always finds an empty slot. */
    if ((m->used + 1) * 8 > m->slot_count * 5 && !grow(m))
        return false;
    if (m->has_lists && !list_add(m, side, key, e))
        return false;
    lgs_event *events = q->events;
    /* Its number is no longer needed, since it is in no event queue: it now holds the order of
     * arrival. */
    events[e].number = m->arrivals++;
    lgs_slot *s = &m->slots[find(m, key)];
    if (s->last) {
        const uint32_t last = s->last & ~MESSAGES;
        /* A ring with a pointer to its last: the first is one step away, and a slot needs one word
         * for both ends and the side. */
        events[e].next = events[last].next;
        events[last].next = e;
    } else {
        s->key = key;
        events[e].next = e;
        m->used++;
    }
    s->last = e | (side == LGS_MESSAGES ? MESSAGES : 0);
    return true;
}

/* A queue holds receives or messages, never both, so one bit of the slot tells which. */
static inline bool is_side(const lgs_slot *s, lgs_side side)
{
    return s->last && (s->last & MESSAGES) == (side == LGS_MESSAGES ? MESSAGES : 0);
}

static uint32_t take_first(lgs_match *m, lgs_queue *q, lgs_side side, size_t slot)
{
    lgs_slot *s = &m->slots[slot];
    const uint32_t last = s->last & ~MESSAGES, e = q->events[last].next;
    const uint32_t host = s->key.host;
    if (e == last)
        empty_slot(m, slot);
    else
        q->events[last].next = q->events[e].next;
    if (m->has_lists)
        list_remove(m, side, host, e);
    return e;
}

uint32_t lgs_match_take(lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key)
{
    const size_t i = find(m, key);
    return is_side(&m->slots[i], side) ? take_first(m, q, side, i) : 0;
}

/* ---- wildcards */

static bool fits(lgs_key a, lgs_key b)
{
    return (a.source == b.source || a.source == ANY || b.source == ANY) &&
           (a.tag == b.tag || a.tag == ANY || b.tag == ANY);
}

/* From the head of the host's list.  The first match is also the first of its own queue. A search
 * with a wildcard has no single queue to look in, and runs that draw queue lengths need every step
 * counted. */
static uint32_t walk(const lgs_match *m, lgs_side side, lgs_key key, uint32_t *depth)
{
    *depth = 0;
    for (uint32_t e = m->first[side][key.host]; e; e = m->links[e].next) {
        ++*depth;
        if (fits(m->keys[e], key))
            return e;
    }
    return 0;
}

/* Of the four queues that can match a key without wildcards, the one with the oldest head. Only
 * with lists: a schedule with wildcards always has them, since keys are needed to find the slot. */
static uint32_t oldest(const lgs_match *m, const lgs_queue *q, lgs_side side, lgs_key key)
{
    uint32_t best = 0;
    for (int i = 0; i < 4; i++) {
        const lgs_key k = {key.host, i & 1 ? ANY : key.source, i & 2 ? ANY : key.tag};
        const lgs_slot *s = &m->slots[find(m, k)];
        if (!is_side(s, side))
            continue;
        const uint32_t e = q->events[s->last & ~MESSAGES].next;
        if (!best || q->events[e].number < q->events[best].number)
            best = e;
    }
    return best;
}

uint32_t lgs_match_take_any(
    lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key, bool walks, uint32_t *depth)
{
    const bool is_wild = key.source == ANY || key.tag == ANY;
    const uint32_t e = walks || is_wild ? walk(m, side, key, depth) : oldest(m, q, side, key);
    return e ? take_first(m, q, side, find(m, m->keys[e])) : 0;
}
