/* SPDX-License-Identifier: Apache-2.0 */
/* event_wheel.c - a calendar queue, whose slots are sorted when they are opened.
 *
 *     slots:  | | |x| |xx| ...    32,768 of them, two turns; a bitmap of non-empty ones
 *     run:    the events of the open slot, sorted by (time, order)
 *     late:   a heap of events inserted into the open slot out of order
 *     turns:  |xxx|x|   |xx| ...  later events, one list per 16,384 slots
 *     far:    a heap of events beyond those
 *
 * Why not just a heap: nearly everything happens within microseconds, and an insertion is a list
 * push without comparisons.  A slot covers one nanosecond, so it is mostly sorted by order, and
 * nearly sorted already. Timers are milliseconds ahead, one per flow, and most are cancelled: they
 * cost two list pushes. Invariant: with the open slot in turn t, slots hold events of turns t and t
 * + 1, `turns` those of the FAB_WHEEL_TURNS - 2 turns after them, and `far` the rest. */
#include "event_wheel.h"

#include <string.h>

/* Slot sizes for branch-free sorting; and for insertion sort. */
enum { FEW = 16, SOME = 24 };

bool fab_wheel_init(fab_wheel *w, unsigned shift)
{
    *w = (fab_wheel){.shift = shift, .free = FAB_NO_EVENT};
    w->slots = orr_alloc(FAB_WHEEL_SLOTS, sizeof *w->slots);
    w->turns = orr_alloc(FAB_WHEEL_TURNS, sizeof *w->turns);
    w->turn_first = orr_alloc(FAB_WHEEL_TURNS, sizeof *w->turn_first);
    if (!w->slots || !w->turns || !w->turn_first || !orr_grow(&w->run, &w->run_room, FEW) ||
        !orr_grow(&w->spare, &w->spare_room, FEW))
        return false;
    memset(w->slots, 0xff, FAB_WHEEL_SLOTS * sizeof *w->slots);
    return true;
}

void fab_wheel_fini(fab_wheel *w)
{
    orr_free(w->events);
    orr_free(w->slots);
    orr_free(w->turns);
    orr_free(w->turn_first);
    orr_free(w->run);
    orr_free(w->spare);
    orr_free(w->late);
    orr_free(w->far);
}

uint32_t fab_wheel_new(fab_wheel *w, uint8_t kind, uint32_t who)
{
    uint32_t id = w->free;
    if (id != FAB_NO_EVENT) {
        w->free = fab_wheel_event(w, id)->next;
    } else {
        if (w->count >= FAB_NO_EVENT - w->fixed_count ||
            !orr_grow(&w->events, &w->room, w->count + 1)) {
            w->has_failed = true;
            return FAB_NO_EVENT;
        }
        id = w->fixed_count + (uint32_t)w->count++;
    }
    *fab_wheel_event(w, id) = (fab_event){.kind = kind, .who = who};
    return id;
}

void fab_wheel_drop(fab_wheel *w, uint32_t id)
{
    fab_wheel_event(w, id)->next = w->free;
    w->free = id;
}

/* ---- the open slot ---- */

static fab_due due_of(const fab_wheel *w, uint32_t id)
{
    const fab_event *e = fab_wheel_event(w, id);
    const uint64_t within = e->at & (((uint64_t)1 << w->shift) - 1);
    /* One key, so that sorting a slot compares time and order at once. */
    return (fab_due){within << FAB_ORDER_BITS | e->order, id};
}

static void insert_late(fab_wheel *w, fab_due e)
{
    if (!orr_grow(&w->late, &w->late_room, w->late_count + 1)) {
        w->has_failed = true;
        return;
    }
    size_t i = w->late_count++;
    for (; i && e.key < w->late[(i - 1) / 2].key; i = (i - 1) / 2)
        w->late[i] = w->late[(i - 1) / 2];
    w->late[i] = e;
}

fab_due fab_wheel_take_late(fab_wheel *w)
{
    const fab_due first = w->late[0], last = w->late[--w->late_count];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < w->late_count; i = c) {
        if (c + 1 < w->late_count && w->late[c + 1].key < w->late[c].key)
            c++;
        if (w->late[c].key >= last.key)
            break;
        w->late[i] = w->late[c];
    }
    w->late[i] = last;
    return first;
}

void fab_wheel_insert_now(fab_wheel *w, uint32_t id)
{
    const fab_due e = due_of(w, id);
    /* A consumed run restarts at the beginning, or a slot that keeps adding events to itself would
     * grow without limit. */
    if (w->run_at == w->run_count)
        w->run_at = w->run_count = 0;
    /* By schedule, an event set off in its own instant has a later number and is appended; only
     * ties by device can belong before others. */
    if (w->run_count && w->run[w->run_count - 1].key > e.key) {
        insert_late(w, e);
        return;
    }
    if (!orr_grow(&w->run, &w->run_room, w->run_count + 1)) {
        w->has_failed = true;
        return;
    }
    w->run[w->run_count++] = e;
}

/* ---- later ---- */

static bool far_before(const fab_far *a, const fab_far *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void insert_far(fab_wheel *w, uint32_t id)
{
    const fab_event *event = fab_wheel_event(w, id);
    const fab_far e = {event->at, event->order, id};
    if (!orr_grow(&w->far, &w->far_room, w->far_count + 1)) {
        w->has_failed = true;
        return;
    }
    size_t i = w->far_count++;
    for (; i && far_before(&e, &w->far[(i - 1) / 2]); i = (i - 1) / 2)
        w->far[i] = w->far[(i - 1) / 2];
    w->far[i] = e;
}

static uint32_t take_far(fab_wheel *w)
{
    const uint32_t first = w->far[0].id;
    const fab_far last = w->far[--w->far_count];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < w->far_count; i = c) {
        if (c + 1 < w->far_count && far_before(&w->far[c + 1], &w->far[c]))
            c++;
        if (!far_before(&w->far[c], &last))
            break;
        w->far[i] = w->far[c];
    }
    w->far[i] = last;
    return first;
}

static uint64_t turn_of(const fab_wheel *w, uint64_t at)
{
    return at >> w->shift >> FAB_TURN_SHIFT;
}

static uint64_t open_turn(const fab_wheel *w)
{
    return w->current >> FAB_TURN_SHIFT;
}

void fab_wheel_insert_later(fab_wheel *w, uint32_t id)
{
    fab_event *e = fab_wheel_event(w, id);
    const uint64_t turn = turn_of(w, e->at);
    const size_t i = turn & (FAB_WHEEL_TURNS - 1);
    if (turn - open_turn(w) >= FAB_WHEEL_TURNS) {
        insert_far(w, id);
        return;
    }
    const bool is_empty = !(w->turn_bits[i / 64] >> i % 64 & 1);
    e->next = is_empty ? FAB_NO_EVENT : w->turns[i];
    w->turns[i] = id;
    if (is_empty || e->at < w->turn_first[i])
        w->turn_first[i] = e->at;
    w->turn_bits[i / 64] |= (uint64_t)1 << i % 64;
    w->turn_summary |= (uint64_t)1 << i / 64;
}

/* Moves the events of a turn into the slots. */
static void move_turn(fab_wheel *w, uint64_t turn)
{
    const size_t i = turn & (FAB_WHEEL_TURNS - 1);
    if (!(w->turn_bits[i / 64] >> i % 64 & 1))
        return;
    w->turn_bits[i / 64] &= ~((uint64_t)1 << i % 64);
    if (!w->turn_bits[i / 64])
        w->turn_summary &= ~((uint64_t)1 << i / 64);
    for (uint32_t id = w->turns[i], next; id != FAB_NO_EVENT; id = next) {
        next = fab_wheel_event(w, id)->next;
        fab_wheel_put(w, id);
    }
}

/* The open slot has advanced from `turn`: move in the turns that became current. */
static void move_in(fab_wheel *w, uint64_t turn)
{
    const uint64_t now = open_turn(w);
    if (now == turn)
        return;
    while (w->far_count && turn_of(w, w->far[0].at) - now < FAB_WHEEL_TURNS)
        fab_wheel_put(w, take_far(w));
    /* Turn `now` was the next one before, and so is in the slots, unless turns were skipped. */
    if (now > turn + 1)
        move_turn(w, now);
    move_turn(w, now + 1);
}

/* The time of the first event outside the slots; false: none. */
static bool first_later(const fab_wheel *w, uint64_t *at)
{
    if (!w->turn_summary) {
        *at = w->far_count ? w->far[0].at : 0;
        return w->far_count > 0;
    }
    enum { WORDS = FAB_WHEEL_TURNS / 64 };
    const size_t from = open_turn(w) & (FAB_WHEEL_TURNS - 1);
    size_t word = from / 64;
    uint64_t bits = w->turn_bits[word] & ~(uint64_t)0 << from % 64;
    /* Around to the word where the search began, whose lower bits come last. */
    for (size_t i = 0; i < WORDS && !bits; i++) {
        word = (word + 1) % WORDS;
        bits = w->turn_bits[word];
    }
    *at = w->turn_first[word * 64 + (size_t)__builtin_ctzll(bits)];
    return true;
}

/* ---- opening a slot ---- */

/* Distance from the open slot to the next non-empty one; 0: none. */
static uint64_t distance_to_next(const fab_wheel *w)
{
    enum { WORDS = FAB_WHEEL_SLOTS / 64, TOPS = WORDS / 64 };
    const size_t from = (w->current + 1) & (FAB_WHEEL_SLOTS - 1);
    size_t word = from / 64;
    uint64_t bits = w->bits[word] & ~(uint64_t)0 << from % 64;
    if (!bits) {
        size_t top = (word + 1) % WORDS / 64;
        uint64_t tops = w->summary[top] & ~(uint64_t)0 << (word + 1) % 64;
        for (unsigned i = 0; i < TOPS && !tops; i++) {
            top = (top + 1) % TOPS;
            tops = w->summary[top];
        }
        if (!tops)
            return 0;
        word = top * 64 + (size_t)__builtin_ctzll(tops);
        bits = w->bits[word];
    }
    const size_t found = word * 64 + (size_t)__builtin_ctzll(bits);
    return ((found - from) & (FAB_WHEEL_SLOTS - 1)) + 1;
}

/* One past the end of the sorted run that starts at `first`. */
static size_t end_of_run(const fab_due *e, size_t first, size_t n)
{
    size_t i = first + 1;
    while (i < n && e[i - 1].key <= e[i].key)
        i++;
    return i < n ? i : n;
}

static void merge_two(const fab_due *from, fab_due *to, size_t a, size_t middle, size_t end)
{
    size_t b = middle;
    for (size_t i = a; i < end; i++) {
        const bool takes_b = a == middle || (b < end && from[b].key < from[a].key);
        to[i] = from[takes_b ? b++ : a++];
    }
}

/* Natural merge sort: neighbouring runs are merged until one is left.  There are few: events
 * inserted in port order are sorted by port. */
static void merge_sort(fab_wheel *w, size_t n)
{
    if (!orr_grow(&w->spare, &w->spare_room, n)) {
        w->has_failed = true;
        return;
    }
    fab_due *from = w->run, *to = w->spare;
    for (bool is_one = false; !is_one;) {
        for (size_t first = 0, end; first < n; first = end) {
            const size_t middle = end_of_run(from, first, n);
            end = middle < n ? end_of_run(from, middle, n) : n;
            merge_two(from, to, first, middle, end);
            is_one = first == 0 && end == n;
        }
        fab_due *const other = from;
        from = to;
        to = other;
    }
    if (from != w->run)
        memcpy(w->run, from, n * sizeof *w->run);
}

static void insertion_sort(fab_due *run, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const fab_due e = run[i];
        size_t j = i;
        for (; j && e.key < run[j - 1].key; j--)
            run[j] = run[j - 1];
        run[j] = e;
    }
}

static bool is_sorted(const fab_due *run, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (run[i].key < run[i - 1].key)
            return false;
    return true;
}

/* Few events: rank each by counting its predecessors.  More comparisons than a sort, but without
 * data-dependent branches: a misprediction costs as much as ten of them. */
static void place_few(const fab_due *from, fab_due *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = from[i].key;
        size_t place = 0;
        for (size_t j = 0; j < i; j++)
            place += from[j].key < key;
        for (size_t j = i + 1; j < n; j++)
            place += from[j].key <= key; /* it came before */
        to[place] = from[i];
    }
}

static void swap_runs(fab_wheel *w)
{
    fab_due *const run = w->run;
    const size_t room = w->run_room;
    w->run = w->spare;
    w->run_room = w->spare_room;
    w->spare = run;
    w->spare_room = room;
}

static void turn_round(fab_due *run, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const fab_due other = run[i];
        run[i] = run[n - 1 - i];
        run[n - 1 - i] = other;
    }
}

/* Lists are LIFO.  In a slot of one time unit the insertion order is mostly the final order; in
 * wider slots it is not. */
static void sort_run(fab_wheel *w, size_t n)
{
    if (n < 2)
        return;
    if (n <= FEW && w->shift) {
        place_few(w->run, w->spare, n);
        swap_runs(w);
        return;
    }
    turn_round(w->run, n);
    if (n <= SOME)
        insertion_sort(w->run, n);
    else if (!is_sorted(w->run, n))
        merge_sort(w, n);
}

static void fill_run(fab_wheel *w)
{
    const size_t slot = w->current & (FAB_WHEEL_SLOTS - 1);
    size_t n = 0;
    w->run_at = w->run_count = 0;
    if (!(w->bits[slot / 64] >> slot % 64 & 1))
        return;
    for (uint32_t id = w->slots[slot]; id != FAB_NO_EVENT; id = fab_wheel_event(w, id)->next) {
        if (!orr_grow(&w->run, &w->run_room, n + 1)) {
            w->has_failed = true;
            return;
        }
        w->run[n++] = due_of(w, id);
    }
    sort_run(w, n);
    w->run_count = n;
    /* All at once: nothing is inserted into the list from now on; new events of this slot go to run
     * or late. */
    w->slots[slot] = FAB_NO_EVENT;
    w->bits[slot / 64] &= ~((uint64_t)1 << slot % 64);
    if (!w->bits[slot / 64])
        w->summary[slot / 4096] &= ~((uint64_t)1 << slot / 64 % 64);
}

bool fab_wheel_open(fab_wheel *w, uint64_t bound)
{
    const uint64_t ahead = distance_to_next(w), turn = open_turn(w);
    uint64_t later = 0;
    if (w->has_failed || (!ahead && !first_later(w, &later)))
        return false;
    const uint64_t slot = ahead ? w->current + ahead : later >> w->shift;
    if (slot << w->shift > bound)
        return false;
    w->current = slot;
    fill_run(w);
    move_in(w, turn);
    return fab_wheel_has_open(w) && !w->has_failed;
}

bool fab_wheel_peek(const fab_wheel *w, uint64_t *at)
{
    if (fab_wheel_has_open(w)) {
        *at = fab_wheel_time_of(w, fab_wheel_first(w));
        return true;
    }
    const uint64_t ahead = distance_to_next(w);
    if (!ahead)
        return first_later(w, at);
    /* A lower bound: the slot begins then, its first event may come later. */
    *at = (w->current + ahead) << w->shift;
    return true;
}

/* ---- all events at once ---- */

static size_t length(const fab_wheel *w, uint32_t id)
{
    size_t n = 0;
    for (; id != FAB_NO_EVENT; id = fab_wheel_event(w, id)->next)
        n++;
    return n;
}

static size_t count_pending(const fab_wheel *w)
{
    size_t n = w->run_count - w->run_at + w->late_count + w->far_count;
    for (size_t i = 0; i < FAB_WHEEL_SLOTS; i++)
        n += length(w, w->slots[i]);
    for (size_t i = 0; i < FAB_WHEEL_TURNS; i++)
        if (w->turn_bits[i / 64] >> i % 64 & 1)
            n += length(w, w->turns[i]);
    return n;
}

bool fab_wheel_take_all(fab_wheel *w, uint32_t **ids, size_t *room, size_t *count)
{
    size_t n = 0;
    *count = count_pending(w);
    if (!orr_grow(ids, room, *count))
        return false;
    for (size_t i = w->run_at; i < w->run_count; i++)
        (*ids)[n++] = w->run[i].id;
    for (size_t i = 0; i < w->late_count; i++)
        (*ids)[n++] = w->late[i].id;
    for (size_t i = 0; i < w->far_count; i++)
        (*ids)[n++] = w->far[i].id;
    for (size_t i = 0; i < FAB_WHEEL_SLOTS; i++) {
        for (uint32_t id = w->slots[i]; id != FAB_NO_EVENT; id = fab_wheel_event(w, id)->next)
            (*ids)[n++] = id;
        w->slots[i] = FAB_NO_EVENT;
    }
    for (size_t i = 0; i < FAB_WHEEL_TURNS; i++) {
        if (!(w->turn_bits[i / 64] >> i % 64 & 1))
            continue;
        for (uint32_t id = w->turns[i]; id != FAB_NO_EVENT; id = fab_wheel_event(w, id)->next)
            (*ids)[n++] = id;
    }
    w->run_at = w->run_count = w->late_count = w->far_count = 0;
    memset(w->bits, 0, sizeof w->bits);
    memset(w->summary, 0, sizeof w->summary);
    memset(w->turn_bits, 0, sizeof w->turn_bits);
    w->turn_summary = 0;
    return true;
}

void fab_wheel_begin(fab_wheel *w, uint64_t now)
{
    w->current = now >> w->shift;
}
