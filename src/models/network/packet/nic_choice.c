/* SPDX-License-Identifier: Apache-2.0 */
/* nic_choice.c - which flow of a NIC sends next (packet-network.md 6.5), without looking at all of them.
 *
 *     place:  0 1 2 3 4 5 ...   flows in the order in which they came
 *     open:   bytes are left and the window has room
 *     due:    the time next_at has come
 *     done:   everything is acknowledged; the flow still stands in the list
 *
 * The reference goes round the list from the flow served last and takes the first that may send; on its way it
 * notes the flows that are done and removes them.  Here a flow that may send is a bit set in open and due, and the
 * search goes over words of 64.  Flows that are not due stand in a heap by next_at; they become due when the NIC
 * looks.  A list is compacted exactly when the reference compacts it, because the place served last is a number.
 * Cost: a choice O(flows / 64); compaction O(flows), at most once a flow. */
#include "fabric_impl.h"

#include <string.h>

#define NO_PLACE UINT32_MAX

void orr__nic_fini(orr__nic *n)
{
    orr_free(n->flows);
    orr_free(n->open);
    orr_free(n->due);
    orr_free(n->done);
    orr_free(n->paced);
}

static void set_bit(uint64_t *bits, uint32_t place, bool value)
{
    const uint64_t bit = (uint64_t)1 << place % 64;
    if (value)
        bits[place / 64] |= bit;
    else
        bits[place / 64] &= ~bit;
}

static bool has_bit(const uint64_t *bits, uint32_t place)
{
    return bits[place / 64] >> place % 64 & 1;
}

/* ---- the heap of flows that are not due ---- */

static uint64_t time_of(const orr__fabric *f, uint32_t flow)
{
    return f->flows[flow].next_at;
}

static void put_in_heap(orr__fabric *f, orr__nic *n, size_t at, uint32_t flow)
{
    n->paced[at] = flow;
    f->flows[flow].heap_place = (uint32_t)at;
}

static void move_up(orr__fabric *f, orr__nic *n, size_t at)
{
    const uint32_t flow = n->paced[at];
    for (; at && time_of(f, flow) < time_of(f, n->paced[(at - 1) / 2]); at = (at - 1) / 2)
        put_in_heap(f, n, at, n->paced[(at - 1) / 2]);
    put_in_heap(f, n, at, flow);
}

static void move_down(orr__fabric *f, orr__nic *n, size_t at)
{
    const uint32_t flow = n->paced[at];
    for (size_t c; (c = 2 * at + 1) < n->paced_count; at = c) {
        if (c + 1 < n->paced_count && time_of(f, n->paced[c + 1]) < time_of(f, n->paced[c]))
            c++;
        if (time_of(f, n->paced[c]) >= time_of(f, flow))
            break;
        put_in_heap(f, n, at, n->paced[c]);
    }
    put_in_heap(f, n, at, flow);
}

static void leave_heap(orr__fabric *f, orr__nic *n, uint32_t flow)
{
    const uint32_t at = f->flows[flow].heap_place;
    if (at == NO_PLACE)
        return;
    f->flows[flow].heap_place = NO_PLACE;
    const uint32_t last = n->paced[--n->paced_count];
    if (last == flow)
        return;
    put_in_heap(f, n, at, last);
    move_up(f, n, at);
    move_down(f, n, f->flows[last].heap_place);
}

static void enter_heap(orr__fabric *f, orr__nic *n, uint32_t flow)
{
    if (f->flows[flow].heap_place == NO_PLACE) {
        put_in_heap(f, n, n->paced_count++, flow); /* there is room for all flows of the NIC */
        move_up(f, n, n->paced_count - 1);
        return;
    }
    move_up(f, n, f->flows[flow].heap_place);
    move_down(f, n, f->flows[flow].heap_place);
}

/* ---- what is known of a flow ---- */

static bool is_window_bound(const orr__fabric *f, const orr__flow *w)
{
    if (!w->window)
        return false;
    if (w->counts_flight)
        return w->in_flight >= w->window;
    uint64_t window = w->window;
    if (f->config.var_window) {
        window = w->rate == w->line_rate
                     ? window
                     : (uint64_t)((unsigned __int128)window * w->rate / w->line_rate);
        if (!window)
            window = 1;
    }
    return (int64_t)(w->sent - w->acked) >= (int64_t)window;
}

void orr__nic_update(orr__fabric *f, uint32_t flow)
{
    const orr__flow *w = &f->flows[flow];
    orr__nic *n = &f->nics[f->ports[w->port].nic];
    if (!w->is_listed)
        return;
    const bool has_window = !is_window_bound(f, w);
    set_bit(n->open, w->place,
            (w->sent < w->size && has_window) ||
                (w->missing_count && (has_window || !w->counts_flight)));
    if (w->acked >= w->size)
        set_bit(n->done, w->place, true);
}

void orr__nic_pace(orr__fabric *f, uint32_t flow, uint64_t known_until)
{
    const orr__flow *w = &f->flows[flow];
    orr__nic *n = &f->nics[f->ports[w->port].nic];
    if (!w->is_listed)
        return;
    const bool is_due = w->next_at <= known_until;
    set_bit(n->due, w->place, is_due);
    if (is_due)
        leave_heap(f, n, flow);
    else
        enter_heap(f, n, flow);
}

static bool make_room(orr__nic *n, size_t count)
{
    const size_t words = count / 64 + 1, old = n->words;
    if (!orr_grow(&n->flows, &n->flow_room, count) || !orr_grow(&n->paced, &n->paced_room, count))
        return false;
    if (words <= old)
        return true;
    if (!orr_grow(&n->open, &n->open_room, words) || !orr_grow(&n->due, &n->due_room, words) ||
        !orr_grow(&n->done, &n->done_room, words))
        return false;
    memset(n->open + old, 0, (words - old) * sizeof *n->open);
    memset(n->due + old, 0, (words - old) * sizeof *n->due);
    memset(n->done + old, 0, (words - old) * sizeof *n->done);
    n->words = words;
    return true;
}

bool orr__nic_add(orr__fabric *f, orr__nic *n, uint32_t flow)
{
    if (!make_room(n, n->count + 1))
        return false;
    f->flows[flow].place = (uint32_t)n->count;
    f->flows[flow].heap_place = NO_PLACE;
    f->flows[flow].is_listed = true;
    set_bit(n->done, (uint32_t)n->count, false);
    n->flows[n->count++] = flow;
    orr__nic_update(f, flow);
    orr__nic_pace(f, flow, f->now);
    return true;
}

void orr__nic_clear(orr__fabric *f, orr__nic *n)
{
    for (size_t i = 0; i < n->count; i++) {
        f->flows[n->flows[i]].is_listed = false;
        f->flows[n->flows[i]].heap_place = NO_PLACE;
    }
    n->count = n->paced_count = 0;
}

/* ---- choosing ---- */

/* The first flow from `from` to `to` - 1 that may send. */
static uint32_t first_ready(const orr__nic *n, uint32_t from, uint32_t to)
{
    for (uint32_t word = from / 64; from < to && word <= (to - 1) / 64; word++) {
        uint64_t bits = n->open[word] & n->due[word];
        if (word == from / 64)
            bits &= ~(uint64_t)0 << from % 64;
        if (bits) {
            const uint32_t place = word * 64 + (uint32_t)__builtin_ctzll(bits);
            return place < to ? place : NO_PLACE;
        }
    }
    return NO_PLACE;
}

static uint32_t first_done(const orr__nic *n, uint32_t from, uint32_t to)
{
    for (uint32_t word = from / 64; from < to && word <= (to - 1) / 64; word++) {
        uint64_t bits = n->done[word];
        if (word == from / 64)
            bits &= ~(uint64_t)0 << from % 64;
        if (bits) {
            const uint32_t place = word * 64 + (uint32_t)__builtin_ctzll(bits);
            return place < to ? place : NO_PLACE;
        }
    }
    return NO_PLACE;
}

static bool is_class_paused(const orr__fabric *f, const orr__port *p, uint32_t flow)
{
    return p->paused >> f->flows[flow].class & 1;
}

/* The same where classes are paused: one by one. */
static uint32_t first_allowed(
    const orr__fabric *f, const orr__port *p, const orr__nic *n, uint32_t from, uint32_t to)
{
    for (uint32_t at; (at = first_ready(n, from, to)) != NO_PLACE; from = at + 1)
        if (!is_class_paused(f, p, n->flows[at]))
            return at;
    return NO_PLACE;
}

static void become_due(orr__fabric *f, orr__nic *n)
{
    while (n->paced_count && time_of(f, n->paced[0]) <= f->now) {
        const uint32_t flow = n->paced[0];
        set_bit(n->due, f->flows[flow].place, true);
        leave_heap(f, n, flow);
    }
}

/* From `first` on, flows that are done leave the list; those behind move up.  Where `served` stands then. */
static uint32_t compact(orr__fabric *f, orr__nic *n, uint32_t first, uint32_t served)
{
    uint32_t kept = first, served_then = served;
    for (uint32_t i = first; i < n->count; i++) {
        const uint32_t flow = n->flows[i];
        if (has_bit(n->done, i)) {
            leave_heap(f, n, flow);
            f->flows[flow].is_listed = false;
            orr__flow_let_go(f, flow);
            continue;
        }
        if (i == served)
            served_then = kept;
        if (kept != i) {
            n->flows[kept] = flow;
            f->flows[flow].place = kept;
            set_bit(n->open, kept, has_bit(n->open, i));
            set_bit(n->due, kept, has_bit(n->due, i));
            set_bit(n->done, kept, false);
        }
        kept++;
    }
    for (uint32_t i = kept; i < n->count; i++) {
        set_bit(n->open, i, false);
        set_bit(n->due, i, false);
        set_bit(n->done, i, false);
    }
    n->count = kept;
    return served_then;
}

/* The first place of a flow that is done and was met between `from` and `chosen`, going round. */
static uint32_t first_met(const orr__nic *n, uint32_t from, uint32_t chosen)
{
    const uint32_t count = (uint32_t)n->count;
    if (chosen != NO_PLACE && chosen >= from)
        return first_done(n, from, chosen);
    const uint32_t low = first_done(n, 0, chosen == NO_PLACE ? from : chosen);
    return low != NO_PLACE ? low : first_done(n, from, count);
}

uint32_t orr__nic_choose(orr__fabric *f, orr__port *p)
{
    orr__nic *n = &f->nics[p->nic];
    const uint32_t count = (uint32_t)n->count;
    if (count == 0)
        return ORR__NOBODY;
    become_due(f, n);
    const uint32_t from = (n->last_served + 1) % count;
    uint32_t chosen = p->paused ? first_allowed(f, p, n, from, count) : first_ready(n, from, count);
    if (chosen == NO_PLACE)
        chosen = p->paused ? first_allowed(f, p, n, 0, from) : first_ready(n, 0, from);
    const uint32_t met = first_met(n, from, chosen);
    if (met != NO_PLACE)
        chosen = compact(f, n, met, chosen);
    if (chosen == NO_PLACE)
        return ORR__NOBODY;
    n->last_served = chosen;
    return n->flows[chosen];
}

bool orr__nic_next(const orr__fabric *f, const orr__nic *n, uint64_t *at)
{
    if (n->paced_count == 0)
        return false;
    if (f->config.is_compat && n->paced_count < n->count)
        return false; /* one that is due, but held back by something else, hides the others (14, 16) */
    *at = time_of(f, n->paced[0]);
    return *at > f->now;
}
