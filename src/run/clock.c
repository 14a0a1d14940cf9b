/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the pending events, in buckets.
 *
 *     heap of ticks -> bucket (one tick) -> list of events, FIFO
 *     (owner, tick) -> group: the end of that owner's timers in the list of their bucket
 *
 * Why buckets: in collectives thousands of events share a tick, so the heap is touched once per
 * tick and an event costs a list append.  A timer is an event that is inserted after the last of
 * its group instead of at the end.  Buckets and groups are found through one hash table, in which
 * the owners of a tick are adjacent, because ranks mostly do the same thing one after the other.
 * Nothing is allocated below the high-water mark: events, buckets and groups come from pools with
 * free lists.
 *
 * A model may keep its own event queue (attach).  Then every event here has a sequence number, in
 * `orders`, and a step takes whichever is first; the number of a timer is that of the first of its
 * group.
 *
 * Scheduling and running an event are a few dozen instructions, and a run has millions of events.
 * So what most runs do not keep (orders, places, trails) costs one test, of keeps_more, and is done
 * in functions of its own, as is whatever happens rarely (ORR_APART): inline it would take
 * registers from the rest.
 *
 * Invariant: now never decreases; the running bucket and the running group stay in the table until
 * they are empty. */
#include "clock.h"

#include "base/inline.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

typedef struct event {
    clk_action action;
    void *context;
    uint64_t argument;
    uint32_t next;
    uint32_t group; /* the timers it belongs to, or NONE */
} event;

/* A bucket (owner == NONE) or a group of timers. */
typedef struct list {
    uint64_t tick;
    uint32_t owner;
    uint32_t head; /* of a bucket */
    uint32_t tail; /* NONE: empty; of a group: its last timer has been taken and is running */
    uint32_t next; /* in the hash chain, or in the free list */
} list;

typedef struct table {
    uint32_t *heads;
    size_t mask, count;
} table;

struct clk_clock {
    orr_event_line line; /* now, and the state shared with an attached model */
    uint64_t events_run;
    orr_event_source source; /* run NULL: none */
    uint64_t *orders;        /* by event, if a model is attached */
    size_t order_room;
    uint64_t running_order; /* of the event that runs */
    /* Places: of the running event, and by event that of its scheduler; for a timer: of the
     * scheduler of the first of its group.  on_timer NULL: places are not kept. */
    void (*on_timer)(void *context, uint32_t owner);
    void *timer_context;
    uint64_t *parents;
    uint32_t *origins; /* by event */
    size_t parent_room, origin_room;
    uint64_t place, running_parent;
    uint32_t origin, running_origin;
    struct trails *trails; /* NULL: they are not kept */
    bool keeps_more;       /* orders, places or trails */
    event *events;
    size_t event_count, event_room;
    uint32_t free_event;
    list *lists;
    size_t list_count, list_room;
    uint32_t free_list;
    table lookup;
    orr_heap ticks;   /* tick -> bucket */
    uint32_t running; /* the bucket of now, or NONE */
    /* The bucket last scheduled into, the likely next one, and its tick; none: NONE and UINT64_MAX,
     * for which nothing can be scheduled. */
    uint64_t latest_tick;
    uint32_t latest;
    bool has_failed, is_over;
};
_Static_assert(offsetof(struct clk_clock, line) == 0, "clk_now");

/* Identifies an event that ran and scheduled something. */
typedef struct trail_node {
    uint64_t tick; /* 1 + when it ran; 0: the start of a rank */
    clk_trail how;
} trail_node;

/* A pending event in a list; of a group of timers the first. */
typedef struct listed {
    clk_trail how;
    uint32_t event, number;
} listed;

/* Chunks instead of one growing array: other clocks read nodes without a lock, so none may move. A
 * number is the index of its clock above TRAIL_SHIFT and the index among that clock's nodes below
 * it, so any clock can resolve it. */
enum { TRAIL_CHUNK = 1 << 14, TRAIL_CHUNKS = 1 << 12, TRAIL_SHIFT = 40 };

/* Nodes never move: other clocks read them. */
typedef struct trails {
    clk_clock *const *all;
    uint32_t index;
    trail_node **chunks;
    size_t count;  /* of nodes, from 1 on */
    clk_trail *of; /* by event */
    size_t of_room;
    clk_trail running; /* of the event that ran last */
    bool has_run;
    uint64_t node; /* of the running event; 0: not requested yet */
    uint32_t children;
    listed *list; /* of pending events */
    size_t list_count, list_room;
    uint32_t *line; /* of events in one bucket */
    size_t line_room;
} trails;

clk_clock *clk_create(void)
{
    clk_clock *c = orr_alloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->free_event = c->free_list = c->running = c->latest = NONE;
    c->line.bound_at = c->latest_tick = UINT64_MAX;
    /* A power of two less one, as a place is found by a mask; it doubles when the table is full. */
    c->lookup.mask = 255;
    c->lookup.heads = orr_alloc(c->lookup.mask + 1, sizeof *c->lookup.heads);
    if (!c->lookup.heads) {
        clk_destroy(c);
        return NULL;
    }
    memset(c->lookup.heads, 0xff, (c->lookup.mask + 1) * sizeof *c->lookup.heads);
    return c;
}

static void drop_trails(trails *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->chunks && i < TRAIL_CHUNKS; i++)
        orr_free(t->chunks[i]);
    orr_free(t->chunks);
    orr_free(t->of);
    orr_free(t->list);
    orr_free(t->line);
    orr_free(t);
}

void clk_destroy(clk_clock *c)
{
    if (!c)
        return;
    orr_free(c->events);
    orr_free(c->orders);
    orr_free(c->parents);
    orr_free(c->origins);
    drop_trails(c->trails);
    orr_free(c->lists);
    orr_free(c->lookup.heads);
    orr_heap_fini(&c->ticks);
    orr_free(c);
}

uint64_t clk_events(const clk_clock *c)
{
    return c->events_run;
}

bool clk_has_failed(const clk_clock *c)
{
    return c->has_failed;
}

bool clk_is_over(const clk_clock *c)
{
    return c->is_over;
}

/* ---- lists by (owner, tick) ---- */

static size_t place_of(const table *t, uint64_t tick, uint32_t owner)
{
    const uint64_t base = tick * 0x9e3779b97f4a7c15u >> 32;
    /* The tick is hashed, the owner added: owners of one tick are adjacent.  The owner's higher
     * bits are folded in, or ranks with a power-of-two stride would collide. */
    return (size_t)(base + (owner ^ owner >> 7 ^ owner >> 14)) & t->mask;
}

ORR_APART bool grow_table(clk_clock *c)
{
    table bigger = {.mask = c->lookup.mask * 2 + 1, .count = c->lookup.count};
    bigger.heads = orr_alloc(bigger.mask + 1, sizeof *bigger.heads);
    if (!bigger.heads)
        return false;
    memset(bigger.heads, 0xff, (bigger.mask + 1) * sizeof *bigger.heads);
    for (size_t i = 0; i <= c->lookup.mask; i++)
        for (uint32_t l = c->lookup.heads[i], next; l != NONE; l = next) {
            const size_t to = place_of(&bigger, c->lists[l].tick, c->lists[l].owner);
            next = c->lists[l].next;
            c->lists[l].next = bigger.heads[to];
            bigger.heads[to] = l;
        }
    orr_free(c->lookup.heads);
    c->lookup = bigger;
    return true;
}

static inline uint32_t find_list(const clk_clock *c, size_t place, uint64_t tick, uint32_t owner)
{
    uint32_t l = c->lookup.heads[place];
    while (l != NONE && (c->lists[l].tick != tick || c->lists[l].owner != owner))
        l = c->lists[l].next;
    return l;
}

/* Room for another list. */
ORR_APART uint32_t add_list(clk_clock *c)
{
    if (c->list_count >= NONE || !orr_grow(&c->lists, &c->list_room, c->list_count + 1))
        return NONE;
    return (uint32_t)c->list_count++;
}

/* place: that of tick and owner, which is where it is looked for before it is made. */
static inline uint32_t new_list(clk_clock *c, size_t place, uint64_t tick, uint32_t owner)
{
    /* Before a list is taken: growing changes the links of all lists that are in the table. */
    if (c->lookup.count > c->lookup.mask) {
        if (!grow_table(c))
            return NONE;
        place = place_of(&c->lookup, tick, owner);
    }
    uint32_t l = c->free_list;
    if (l != NONE)
        c->free_list = c->lists[l].next;
    else if ((l = add_list(c)) == NONE)
        return NONE;
    uint32_t *head = &c->lookup.heads[place];
    c->lists[l] = (list){tick, owner, NONE, NONE, *head};
    *head = l;
    c->lookup.count++;
    return l;
}

/* A list that is dropped while it runs would be found by nobody, and a timer that is added
 * meanwhile would start a second group: so groups are dropped when they are empty and their last
 * timer has run (run_first). */
static inline void drop_list(clk_clock *c, uint32_t l)
{
    uint32_t *at = &c->lookup.heads[place_of(&c->lookup, c->lists[l].tick, c->lists[l].owner)];
    while (*at != l)
        at = &c->lists[*at].next;
    *at = c->lists[l].next;
    c->lists[l].next = c->free_list;
    c->free_list = l;
    c->lookup.count--;
}

/* ---- scheduling ---- */

/* Room for another event, and for all that is kept beside it. */
ORR_APART uint32_t add_event(clk_clock *c)
{
    const size_t need = c->event_count + 1;
    if (c->event_count >= NONE || !orr_grow(&c->events, &c->event_room, need) ||
        (c->source.run && !orr_grow(&c->orders, &c->order_room, need)) ||
        (c->on_timer && (!orr_grow(&c->parents, &c->parent_room, need) ||
                         !orr_grow(&c->origins, &c->origin_room, need))) ||
        (c->trails && !orr_grow(&c->trails->of, &c->trails->of_room, need)))
        return NONE;
    return (uint32_t)c->event_count++;
}

/* In no bucket yet: insert sets what comes next. */
static inline uint32_t new_event(
    clk_clock *c, clk_action action, void *context, uint64_t argument, uint32_t group)
{
    uint32_t e = c->free_event;
    if (e != NONE)
        c->free_event = c->events[e].next;
    else if ((e = add_event(c)) == NONE)
        return NONE;
    event *v = &c->events[e];
    v->action = action;
    v->context = context;
    v->argument = argument;
    v->group = group;
    return e;
}

/* Into a bucket: after the event `after`, or before all others when that is NONE. */
static inline void insert(clk_clock *c, list *bucket, uint32_t after, uint32_t e)
{
    uint32_t *link = after == NONE ? &bucket->head : &c->events[after].next;
    c->events[e].next = *link;
    *link = e;
    if (bucket->tail == after)
        bucket->tail = e;
}

/* Below now: the sum that gave it has wrapped around. */
static bool is_out_of_range(const clk_clock *c, uint64_t tick)
{
    return tick < c->line.now || tick > CLK_LAST;
}

/* Nothing can be scheduled for this tick. */
ORR_APART void fail_at(clk_clock *c, uint64_t tick)
{
    c->has_failed = true;
    c->is_over |= is_out_of_range(c, tick);
}

ORR_APART uint32_t other_bucket_at(clk_clock *c, uint64_t tick)
{
    const size_t place = place_of(&c->lookup, tick, NONE);
    uint32_t l = find_list(c, place, tick, NONE);
    if (l == NONE) {
        /* Only where a bucket is made: one that is there has a tick that was checked. */
        if (is_out_of_range(c, tick))
            return NONE;
        l = new_list(c, place, tick, NONE);
        if (l == NONE || !orr_heap_push(&c->ticks, tick, l))
            return NONE;
    }
    /* Valid until its tick has run: only the running bucket is ever dropped. */
    c->latest = l;
    c->latest_tick = tick;
    return l;
}

static inline uint32_t bucket_at(clk_clock *c, uint64_t tick)
{
    return tick == c->latest_tick ? c->latest : other_bucket_at(c, tick);
}

/* The event has a number; if it is the first, a model that runs must stop before it. */
static void give_order(clk_clock *c, uint64_t tick, uint32_t e, uint64_t order)
{
    c->orders[e] = order;
    /* A model that runs a batch of its own events reads the bound before each of them, so it does
     * not overtake an event that one of them schedules here. */
    if (tick < c->line.bound_at) {
        c->line.bound_at = tick;
        c->line.bound_order = order;
    }
}

/* ---- trails ---- */

static const trail_node no_node; /* of parent 0: before all others */

static inline const trail_node *node_at(const trails *t, uint64_t parent)
{
    /* A trail that was cut ends in parent 0, whose node sorts before all others; its children are
     * numbered in one order over all clocks (clk_number_trails). */
    if (parent == 0)
        return &no_node;
    const uint64_t i = parent & ((UINT64_C(1) << TRAIL_SHIFT) - 1);
    const trails *of = t->all[parent >> TRAIL_SHIFT]->trails;
    return &of->chunks[i / TRAIL_CHUNK][i % TRAIL_CHUNK];
}

/* Order of two events of one tick: by when their parents ran; for equal parents by child index. */
static bool is_before(const trails *t, clk_trail a, clk_trail b)
{
    /* Terminates: ticks of parents never increase on the way up, and trails that reach the same
     * event, or the common start, have the same parent. */
    while (a.parent != b.parent) {
        /* A clock runs its events in order, and numbers their nodes as it goes: for equal clocks
         * the numbers decide. */
        if (a.parent >> TRAIL_SHIFT == b.parent >> TRAIL_SHIFT)
            return a.parent < b.parent;
        const trail_node *x = node_at(t, a.parent), *y = node_at(t, b.parent);
        if (x->tick != y->tick)
            return x->tick < y->tick;
        a = x->how;
        b = y->how;
    }
    return a.child != b.child ? a.child < b.child : a.sub < b.sub;
}

static uint64_t new_node(clk_clock *c, uint64_t tick, clk_trail how)
{
    trails *t = c->trails;
    const size_t chunk = t->count / TRAIL_CHUNK;
    if (chunk >= TRAIL_CHUNKS ||
        (!t->chunks[chunk] &&
         !(t->chunks[chunk] = orr_alloc(TRAIL_CHUNK, sizeof *t->chunks[chunk])))) {
        c->has_failed = true;
        return 0;
    }
    t->chunks[chunk][t->count % TRAIL_CHUNK] = (trail_node){tick, how};
    return (uint64_t)t->index << TRAIL_SHIFT | t->count++;
}

bool clk_keep_trails(clk_clock *c, clk_clock *const *all, uint32_t index)
{
    trails *t = c->trails = orr_alloc(1, sizeof *t);
    if (!t)
        return false;
    c->keeps_more = true;
    *t = (trails){.all = all, .index = index, .count = 1};
    t->chunks = orr_alloc(TRAIL_CHUNKS, sizeof *t->chunks);
    return t->chunks != NULL;
}

void clk_start_rank(clk_clock *c, uint32_t rank)
{
    /* Parent 0 and the rank's number: ranks start in order, before all events. */
    c->trails->node = new_node(c, 0, (clk_trail){0, rank, 0});
    c->trails->children = 0;
}

clk_trail clk_reserve(clk_clock *c)
{
    trails *t = c->trails;
    /* A node is made only when an event schedules something: most events schedule nothing, and
     * their nodes would be garbage. */
    if (!t->node)
        t->node = new_node(c, c->line.now + 1, t->running);
    /* The same numbering whether something is scheduled here or sent to another clock: both have a
     * position in this event's order. */
    return (clk_trail){t->node, t->children++, 0};
}

clk_trail clk_last_trail(const clk_clock *c)
{
    return (clk_trail){c->trails->node, c->trails->children - 1, 0};
}

void clk_make_second_half(clk_clock *c, uint64_t delay)
{
    const uint32_t l = bucket_at(c, c->line.now + delay);
    if (l != NONE && c->lists[l].tail != NONE)
        c->trails->of[c->lists[l].tail].sub = 1;
}

/* All timers of a group have the trail of the first. */
static clk_trail timer_trail(clk_clock *c, bool is_first, uint32_t tail)
{
    trails *t = c->trails;
    if (is_first)
        return clk_reserve(c);
    /* A group whose timers have all been taken is running: its trail is that of the running
     * timer. */
    clk_trail trail = tail != NONE ? t->of[tail] : t->running;
    trail.sub++;
    return trail;
}

static inline void enter_trail(trails *t, uint32_t e)
{
    t->running = t->of[e];
    t->has_run = true;
    t->node = 0;
    t->children = 0;
}

bool clk_is_past(const clk_clock *c, uint64_t tick, clk_trail trail)
{
    const trails *t = c->trails;
    /* An event of this tick that has not run is compared with the last one that ran: if it does not
     * precede that one it can still be inserted in order. */
    return tick < c->line.now ||
           (tick == c->line.now && t->has_run && is_before(t, trail, t->running));
}

bool clk_is_before_parent(
    const clk_clock *c, uint64_t tick, clk_trail trail, uint64_t tick_by, clk_trail by)
{
    if (tick != tick_by)
        return tick < tick_by;
    /* `by` was reserved by an event that ran at tick_by: that event is its parent; a parent with
     * tick 0 is not an event but the start of a rank, which precedes everything. */
    const trail_node *parent = node_at(c->trails, by.parent);
    return parent->tick && is_before(c->trails, trail, parent->how);
}

clk_trail clk_running_trail(const clk_clock *c)
{
    const trails *t = c->trails;
    return t->has_run ? t->running : (clk_trail){t->node, 0, 0};
}

bool clk_is_before(const clk_clock *c, clk_trail a, clk_trail b)
{
    return is_before(c->trails, a, b);
}

size_t clk_trails_kept(const clk_clock *c)
{
    return c->trails->count;
}

void clk_count(clk_clock *c, int64_t events)
{
    c->events_run += (uint64_t)events;
}

/* The last event of a bucket before `trail`; NONE: there is none.  It is often the very last one.
 * Walking the list is cheap compared with comparing trails, so the list is copied and bisected:
 * most entries have parents of other ticks, which are distinguished at once. */
static uint32_t find_place(clk_clock *c, const list *bucket, clk_trail trail)
{
    trails *t = c->trails;
    if (bucket->tail == NONE || is_before(t, t->of[bucket->tail], trail))
        return bucket->tail;
    size_t low = 0, high = 0;
    for (uint32_t e = bucket->head; e != bucket->tail; e = c->events[e].next) {
        if (!orr_grow(&t->line, &t->line_room, high + 1)) {
            c->has_failed = true;
            return NONE;
        }
        t->line[high++] = e;
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_before(t, t->of[t->line[middle]], trail))
            low = middle + 1;
        else
            high = middle;
    }
    return low ? t->line[low - 1] : NONE;
}

void clk_put(clk_clock *c, uint64_t tick, clk_trail trail, clk_call call)
{
    const uint32_t l = bucket_at(c, tick);
    const uint32_t e =
        l == NONE ? NONE : new_event(c, call.action, call.context, call.argument, NONE);
    if (e == NONE) {
        fail_at(c, tick);
        return;
    }
    const uint32_t after = find_place(c, &c->lists[l], trail);
    c->trails->of[e] = trail;
    insert(c, &c->lists[l], after, e);
}

/* ---- cutting trails ---- */

static int by_trail(const void *a, const void *b, void *context)
{
    const listed *x = a, *y = b;
    return is_before(context, x->how, y->how) ? -1 : is_before(context, y->how, x->how);
}

bool clk_list_trails(clk_clock *c)
{
    trails *t = c->trails;
    t->list_count = 0;
    for (size_t i = 0; i < c->ticks.count; i++)
        for (uint32_t e = c->lists[c->ticks.entries[i].value].head; e != NONE;
             e = c->events[e].next) {
            if (!orr_grow(&t->list, &t->list_room, t->list_count + 1))
                return false;
            t->list[t->list_count++] = (listed){t->of[e], e, 0};
        }
    if (t->list_count) /* a part that is done has none, and no list to sort */
        qsort_r(t->list, t->list_count, sizeof *t->list, by_trail, t);
    return true;
}

/* In the list of one clock, from `from` on: how many are before `other`? Galloping search: events
 * of ranks that do the same come in runs, and each comparison may have to walk far up. The one at
 * `from` is known to be. */
static size_t count_before(const clk_clock *c, size_t from, clk_trail other)
{
    const trails *t = c->trails;
    size_t low = from, high = from + 1;
    while (high < t->list_count && is_before(t, t->list[high].how, other)) {
        low = high;
        high += high - from;
    }
    high = high < t->list_count ? high : t->list_count;
    for (low++; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (is_before(t, t->list[middle].how, other))
            low = middle + 1;
        else
            high = middle;
    }
    return low - from;
}

bool clk_number_trails(clk_clock *const *all, uint32_t count)
{
    /* A merge of sorted lists by linear search for the minimum: there are too few clocks for a heap
     * to pay. */
    size_t at[CLK_CLOCKS] = {0};
    for (uint32_t number = 0;;) {
        uint32_t first = NONE, second = NONE;
        for (uint32_t i = 0; i < count; i++) {
            if (at[i] >= all[i]->trails->list_count)
                continue;
            const clk_trail how = all[i]->trails->list[at[i]].how;
            if (first == NONE ||
                is_before(all[i]->trails, how, all[first]->trails->list[at[first]].how)) {
                second = first;
                first = i;
            } else if (second == NONE ||
                       is_before(all[i]->trails, how, all[second]->trails->list[at[second]].how)) {
                second = i;
            }
        }
        if (first == NONE)
            return true;
        trails *t = all[first]->trails;
        /* Up to the first entry of the runner-up all belong to this clock: they are numbered
         * without further comparisons. */
        const size_t run = second == NONE ? t->list_count - at[first]
                                          : count_before(all[first], at[first],
                                                         all[second]->trails->list[at[second]].how);
        if (run >= NONE - number)
            return false;
        for (size_t i = 0; i < run; i++)
            t->list[at[first]++].number = number++;
    }
}

/* Timers that run together keep one number, so that nothing is ordered between them. */
void clk_cut_trails(clk_clock *c)
{
    trails *t = c->trails;
    clk_trail before = {UINT64_MAX, 0, 0};
    uint32_t number = 0;
    for (size_t i = 0; i < t->list_count; i++) {
        const listed *v = &t->list[i];
        if (v->how.parent != before.parent || v->how.child != before.child ||
            c->events[v->event].group == NONE)
            number = v->number;
        before = v->how;
        t->of[v->event] = (clk_trail){0, number, v->how.sub};
    }
    /* All nodes are released: no pending event refers to one any more.  Chunks are kept for
     * reuse. */
    t->count = 1;
    t->node = 0;
}

/* What is kept beside an event that is scheduled. */
ORR_APART void note_event(clk_clock *c, uint64_t tick, uint32_t e)
{
    if (c->source.run)
        give_order(c, tick, e, c->line.order++);
    if (c->on_timer) {
        c->parents[e] = c->place;
        c->origins[e] = c->origin;
    }
    if (c->trails)
        c->trails->of[e] = clk_reserve(c);
}

/* The same of a timer; tail: the last one of its group so far, NONE: it is the first, or the group
 * is running. */
ORR_APART void note_timer(clk_clock *c, uint64_t tick, uint32_t e, bool is_first, uint32_t tail)
{
    if (c->source.run)
        give_order(c, tick, e,
                   is_first       ? c->line.order++
                   : tail != NONE ? c->orders[tail]
                                  : c->running_order);
    if (c->on_timer) {
        c->parents[e] = is_first ? c->place : tail != NONE ? c->parents[tail] : c->running_parent;
        c->origins[e] = is_first ? c->origin : tail != NONE ? c->origins[tail] : c->running_origin;
    }
    if (c->trails)
        c->trails->of[e] = timer_trail(c, is_first, tail);
}

void clk_at(clk_clock *c, uint64_t tick, clk_action action, void *context, uint64_t argument)
{
    const uint32_t l = bucket_at(c, tick);
    const uint32_t e = l == NONE ? NONE : new_event(c, action, context, argument, NONE);
    if (e == NONE) {
        fail_at(c, tick);
        return;
    }
    insert(c, &c->lists[l], c->lists[l].tail, e);
    if (c->keeps_more)
        note_event(c, tick, e);
}

void clk_after(clk_clock *c, uint64_t delay, clk_action action, void *context, uint64_t argument)
{
    clk_at(c, c->line.now + delay, action, context, argument);
}

void clk_timer(clk_clock *c,
               uint32_t owner,
               uint64_t tick,
               clk_action action,
               void *context,
               uint64_t argument)
{
    const size_t place = place_of(&c->lookup, tick, owner);
    uint32_t g = find_list(c, place, tick, owner);
    const bool is_first = g == NONE;
    if (is_first)
        g = new_list(c, place, tick, owner);
    /* Indices, not pointers: making one list may move all of them. */
    const uint32_t l = g == NONE ? NONE : bucket_at(c, tick);
    const uint32_t e = l == NONE ? NONE : new_event(c, action, context, argument, g);
    if (e == NONE) {
        fail_at(c, tick);
        return;
    }
    const uint32_t tail = c->lists[g].tail;
    if (c->keeps_more)
        note_timer(c, tick, e, is_first, tail);
    /* An empty group that is not new is running: a timer added now runs next. */
    insert(c, &c->lists[l], is_first ? c->lists[l].tail : tail, e);
    c->lists[g].tail = e;
}

/* ---- running ---- */

static void enter_place(clk_clock *c, uint32_t e)
{
    c->origin = c->running_origin = c->origins[e];
    /* Events of one parent share a place: their order may depend on the numbering of owners. */
    if (c->parents[e] == c->running_parent)
        return;
    c->running_parent = c->parents[e];
    c->place++;
}

/* What is kept beside an event, when it begins to run. */
ORR_APART void enter_event(clk_clock *c, uint32_t e, uint32_t group)
{
    if (c->source.run)
        c->running_order = c->orders[e];
    if (c->on_timer)
        enter_place(c, e);
    if (c->trails)
        enter_trail(c->trails, e);
    if (c->on_timer && group != NONE)
        c->on_timer(c->timer_context, c->lists[group].owner);
}

/* The bucket that runs is empty: the next one.  False: none is left. */
ORR_APART bool open_next_bucket(clk_clock *c)
{
    orr_heap_entry next;
    if (c->running != NONE) {
        if (c->latest == c->running) {
            c->latest = NONE;
            c->latest_tick = UINT64_MAX;
        }
        /* Only now: whatever was scheduled for this tick while it ran has found its bucket in the
         * table. */
        drop_list(c, c->running);
        c->running = NONE;
    }
    if (!orr_heap_pop(&c->ticks, &next))
        return false;
    c->running = next.value;
    /* A tick that is opened again, because something was scheduled for it after its bucket had
     * become empty, goes on where it was: places of one tick grow. */
    if (next.key != c->line.now)
        c->running_parent = UINT64_MAX;
    c->line.now = next.key;
    return true;
}

/* One event of this clock; false: none is left. */
static inline bool run_first(clk_clock *c)
{
    if (c->has_failed)
        return false;
    while (c->running == NONE || c->lists[c->running].head == NONE)
        if (!open_next_bucket(c))
            return false;
    list *bucket = &c->lists[c->running];
    const uint32_t e = bucket->head;
    event *v = &c->events[e];
    const clk_call call = {v->action, v->context, v->argument};
    const uint32_t next = v->next, group = v->group;
    bucket->head = next;
    /* Freed before it runs, so that the first event it schedules reuses this entry, which is in the
     * cache. What is kept beside it is read before that (enter_event). */
    v->next = c->free_event;
    c->free_event = e;
    if (next == NONE)
        bucket->tail = NONE;
    else
        /* The next event will touch its context; the bucket is a list, so it is known now. */
        __builtin_prefetch(c->events[next].context);
    if (group != NONE && c->lists[group].tail == e)
        c->lists[group].tail = NONE;
    c->events_run++;
    if (c->keeps_more)
        enter_event(c, e, group);
    call.action(call.context, call.argument);
    if (group != NONE && c->lists[group].tail == NONE)
        drop_list(c, group);
    return true;
}

/* ---- places ---- */

void clk_keep_places(clk_clock *c, void (*on_timer)(void *context, uint32_t owner), void *context)
{
    c->on_timer = on_timer;
    c->keeps_more = true;
    c->timer_context = context;
    c->running_parent = UINT64_MAX;
}

uint32_t clk_origin(const clk_clock *c)
{
    return c->origin;
}

void clk_set_origin(clk_clock *c, uint32_t origin)
{
    c->origin = origin;
}

typedef struct pending {
    uint64_t tick, parent;
    clk_call call;
    uint32_t owner, origin;
} pending;

static bool list_pending(
    const clk_clock *c, uint32_t bucket, pending **out, size_t *count, size_t *room)
{
    for (uint32_t e = c->lists[bucket].head; e != NONE; e = c->events[e].next) {
        const event *v = &c->events[e];
        if (!orr_grow(out, room, *count + 1))
            return false;
        (*out)[(*count)++] = (pending){c->lists[bucket].tick,
                                       c->parents[e],
                                       {v->action, v->context, v->argument},
                                       v->group == NONE ? NONE : c->lists[v->group].owner,
                                       c->origins[e]};
    }
    return true;
}

bool clk_multiply(clk_clock *c, uint32_t copies, clk_copy copy, void *context)
{
    pending *all = NULL;
    size_t count = 0, room = 0;
    orr_heap_entry next;
    const uint64_t place = c->place;
    /* The running bucket has left the heap. */
    bool ok = c->running == NONE || list_pending(c, c->running, &all, &count, &room);
    while (ok && orr_heap_pop(&c->ticks, &next))
        ok = list_pending(c, next.value, &all, &count, &room);
    memset(c->lookup.heads, 0xff, (c->lookup.mask + 1) * sizeof *c->lookup.heads);
    c->lookup.count = c->event_count = c->list_count = 0;
    c->free_event = c->free_list = c->running = c->latest = NONE;
    c->latest_tick = UINT64_MAX;
    /* Copies of one event go in side by side, in the order in which events were pending: each copy
     * finds the others of its own rank in the same order as before. */
    for (size_t i = 0; ok && i < count; i++) {
        /* note_event takes the place of the parent from here: a copy has that of its original. */
        c->place = all[i].parent;
        for (uint32_t k = 0; k < copies; k++) {
            clk_call call = all[i].call;
            uint32_t owner = all[i].owner;
            c->origin = all[i].origin;
            copy(context, k, &call, &owner, &c->origin);
            if (owner == NONE)
                clk_at(c, all[i].tick, call.action, call.context, call.argument);
            else
                clk_timer(c, owner, all[i].tick, call.action, call.context, call.argument);
        }
    }
    c->place = place;
    orr_free(all);
    return ok && !c->has_failed;
}

uint64_t clk_place(const clk_clock *c)
{
    return c->place;
}

/* ---- a model with its own events ---- */

/* Long enough to make reading the bound cheap, short enough to notice a stop soon. */
enum { SOURCE_BATCH = 256 };

orr_event_line *clk_line(clk_clock *c)
{
    return &c->line;
}

void clk_attach(clk_clock *c, const orr_event_source *source)
{
    c->source = *source;
    c->keeps_more = true;
}

void clk_detach(clk_clock *c)
{
    c->source.next_at =
        NULL; /* events that are pending keep their numbers, which nobody needs now */
    c->line.bound_at = c->line.bound_order = 0;
}

static void set_bound(clk_clock *c, uint64_t tick, uint32_t bucket)
{
    c->line.bound_at = tick;
    c->line.bound_order = c->orders[c->lists[bucket].head];
}

/* The model may run up to the first event of the clock. */
static void find_bound(clk_clock *c)
{
    /* The clock has no pending event: the model may run freely, until one of its own events
     * schedules one (give_order). */
    c->line.bound_at = c->line.bound_order = UINT64_MAX;
    if (c->running != NONE && c->lists[c->running].head != NONE)
        set_bound(c, c->lists[c->running].tick, c->running);
    else if (c->ticks.count)
        set_bound(c, c->ticks.entries[0].key, c->ticks.entries[0].value);
}

/* Number of events run; 0: the next event belongs to the clock, or there is none. */
static uint64_t step_source(clk_clock *c, uint64_t most)
{
    if (!c->source.next_at || c->has_failed)
        return 0;
    find_bound(c);
    const uint64_t done =
        c->source.run(c->source.context, most < SOURCE_BATCH ? most : SOURCE_BATCH);
    c->events_run += done;
    return done;
}

bool clk_step(clk_clock *c)
{
    return (c->source.run && step_source(c, UINT64_MAX)) || run_first(c);
}

bool clk_run(clk_clock *c, uint64_t *left, const bool *pauses)
{
    do {
        const uint64_t done = c->source.run ? step_source(c, *left) : 0;
        if (!done && !run_first(c))
            return false;
        /* A model may know of more events than it ran (orr_event_source). */
        *left -= !done ? 1 : done < *left ? done : *left;
    } while (*left && !*pauses);
    return true;
}

void clk_jump(clk_clock *c, uint64_t tick)
{
    c->line.now = tick;
}

static bool next_own_tick(const clk_clock *c, uint64_t *tick)
{
    if (c->running != NONE && c->lists[c->running].head != NONE) {
        *tick = c->line.now;
        return true;
    }
    if (c->ticks.count == 0)
        return false;
    *tick = c->ticks.entries[0].key;
    return true;
}

bool clk_next_tick(const clk_clock *c, uint64_t *tick)
{
    uint64_t other;
    const bool has_own = next_own_tick(c, tick);
    if (!c->source.next_at || !c->source.next_at(c->source.context, &other))
        return has_own;
    if (!has_own || other < *tick)
        *tick = other;
    return true;
}

void clk_stop(clk_clock *c)
{
    c->has_failed = true;
    c->line.bound_at = c->line.bound_order = 0;
}

/* ---- pending events ---- */

static int by_tick(const void *a, const void *b)
{
    const orr_heap_entry *x = a, *y = b;
    /* No ties: a tick has one bucket. */
    return x->key < y->key ? -1 : x->key > y->key;
}

bool clk_visit(const clk_clock *c, clk_visitor visit, void *context)
{
    orr_heap_entry *ticks = orr_alloc(c->ticks.count + 1, sizeof *ticks);
    bool ok = ticks != NULL;
    size_t count = 0;
    if (ok && c->running != NONE)
        ticks[count++] = (orr_heap_entry){.key = c->line.now, .value = c->running};
    for (size_t i = 0; ok && i < c->ticks.count; i++)
        ticks[count++] = c->ticks.entries[i];
    if (ok)
        orr_sort(ticks, count, sizeof *ticks, by_tick);
    for (size_t i = 0; ok && i < count; i++)
        for (uint32_t e = c->lists[ticks[i].value].head; ok && e != NONE; e = c->events[e].next) {
            const event *at = &c->events[e];
            ok = visit(context, ticks[i].key, &(clk_call){at->action, at->context, at->argument});
        }
    orr_free(ticks);
    return ok;
}

bool clk_is_between_ticks(const clk_clock *c)
{
    return c->running == NONE || c->lists[c->running].head == NONE;
}
