/* SPDX-License-Identifier: Apache-2.0 */
/* fab_nic.c - which flow of a NIC sends next (packet-network.md 6.5), without looking at all of
 * them.
 *
 *     place:   0 1 2 3 4 5 ...   flows in the order in which they came
 *     listed:  the flow is in the list of the reference
 *     ready:   bytes are left, the window has room and the time next_at has come; one set a class
 *     done:    everything is acknowledged; the flow still stands in the list
 *
 * The reference goes round the list from the flow served last and takes the first that may send; on
 * its way it notes the flows that are done, removes all those behind the first of them, and moves
 * the others up.  Here nobody moves: a place is given up, and the order of the places is the order
 * of the list.  What the reference keeps is the number of the flow served last.  As long as that
 * flow stands where it stood, its place says the same; when the list has shrunk and nobody was
 * served, the number is what counts (last_is_number), and is looked up. Flows that are not due
 * stand in a heap by next_at; they become due when the NIC looks. Cost: a choice touches a few
 * words, however many flows there are; places are given out again when half of them are empty, so
 * that a flow moves once on average. */
#include "fabric_impl.h"

void fab_nic_fini(fab_nic *n)
{
    orr_free(n->flows);
    orr_free(n->paced);
    fab_places_fini(&n->listed);
    fab_places_fini(&n->done);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        fab_places_fini(&n->ready[i]);
}

/* ---- the heap of flows that are not due ---- */

static uint64_t time_of(const fab *f, uint32_t flow)
{
    return f->flows[flow].next_at;
}

static void put_in_heap(fab *f, fab_nic *n, size_t at, uint32_t flow)
{
    n->paced[at] = flow;
    f->flows[flow].heap_place = (uint32_t)at;
}

static void move_up(fab *f, fab_nic *n, size_t at)
{
    const uint32_t flow = n->paced[at];
    for (; at && time_of(f, flow) < time_of(f, n->paced[(at - 1) / 2]); at = (at - 1) / 2)
        put_in_heap(f, n, at, n->paced[(at - 1) / 2]);
    put_in_heap(f, n, at, flow);
}

static void move_down(fab *f, fab_nic *n, size_t at)
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

static void leave_heap(fab *f, fab_nic *n, uint32_t flow)
{
    const uint32_t at = f->flows[flow].heap_place;
    if (at == FAB_NO_PLACE)
        return;
    f->flows[flow].heap_place = FAB_NO_PLACE;
    const uint32_t last = n->paced[--n->paced_count];
    if (last == flow)
        return;
    put_in_heap(f, n, at, last);
    move_up(f, n, at);
    move_down(f, n, f->flows[last].heap_place);
}

static void enter_heap(fab *f, fab_nic *n, uint32_t flow)
{
    if (f->flows[flow].heap_place == FAB_NO_PLACE) {
        put_in_heap(f, n, n->paced_count++, flow); /* there is room for all flows of the NIC */
        move_up(f, n, n->paced_count - 1);
        return;
    }
    move_up(f, n, f->flows[flow].heap_place);
    move_down(f, n, f->flows[flow].heap_place);
}

/* ---- what is known of a flow ---- */

static bool is_window_bound(const fab *f, const fab_flow *w)
{
    if (!w->window)
        return false;
    /* a whole packet must fit; windows of a packet or two are where that matters */
    if (w->counts_flight)
        return w->in_flight && w->in_flight + f->config.payload > w->window;
    uint64_t window = w->window;
    if (f->config.var_window) {
        window = w->rate == w->line_rate
                     ? window
                     : (uint64_t)((unsigned __int128)window * w->rate / w->line_rate);
        if (!window)
            window = 1;
        if (f->config.back_to_zero && f->rules.completes_chunks && window < f->config.chunk)
            window = f->config.chunk; /* else none would be acknowledged */
    }
    return (int64_t)(w->sent - w->acked) >= (int64_t)window;
}

static void note_ready(fab_nic *n, const fab_flow *w)
{
    if (w->is_open && w->is_due)
        fab_places_add(&n->ready[w->class], w->place);
    else
        fab_places_remove(&n->ready[w->class], w->place);
}

/* The flow served last may go, or change its number: from now on the number counts. */
static void remember_number(fab_nic *n)
{
    if (!n->last_is_number)
        n->last = fab_places_rank(&n->listed, n->last);
    n->last_is_number = true;
}

void fab_nic_update(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_nic *n = &f->nics[f->ports[w->port].nic];
    if (!w->is_listed)
        return;
    const bool has_window = !is_window_bound(f, w);
    w->is_open = (w->sent < w->size && has_window) ||
                 (fab_flow_misses(w) && (has_window || !w->counts_flight));
    note_ready(n, w);
    if (w->acked >= w->size)
        fab_places_add(&n->done, w->place);
}

void fab_nic_pace(fab *f, uint32_t flow, uint64_t known_until)
{
    fab_flow *w = &f->flows[flow];
    fab_nic *n = &f->nics[f->ports[w->port].nic];
    if (!w->is_listed)
        return;
    w->is_due = w->next_at <= known_until;
    note_ready(n, w);
    if (w->is_due)
        leave_heap(f, n, flow);
    else
        enter_heap(f, n, flow);
}

/* ---- the list ---- */

/* Places without gaps; nobody's turn changes. */
static void close_gaps(fab *f, fab_nic *n)
{
    uint32_t kept = 0, last = n->last;
    fab_places_clear(&n->done);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        fab_places_clear(&n->ready[i]);
    for (uint32_t at = 0; (at = fab_places_first(&n->listed, at, n->places)) != FAB_NO_PLACE;
         at++) {
        fab_flow *w = &f->flows[n->flows[at]];
        if (!n->last_is_number && at == n->last)
            last = kept;
        n->flows[kept] = n->flows[at];
        w->place = kept++;
        if (w->is_open && w->is_due)
            fab_places_add(&n->ready[w->class], w->place);
        if (w->acked >= w->size)
            fab_places_add(&n->done, w->place);
    }
    fab_places_clear(&n->listed);
    for (uint32_t i = 0; i < kept; i++)
        fab_places_add(&n->listed, i);
    n->places = kept;
    n->last = last;
}

static bool make_room(fab_nic *n, unsigned class)
{
    const size_t count = (size_t)n->places + 1;
    return orr_grow(&n->flows, &n->flow_room, count) &&
           orr_grow(&n->paced, &n->paced_room, count) && fab_places_need(&n->listed, count) &&
           fab_places_need(&n->done, count) && fab_places_need(&n->ready[class], count);
}

bool fab_nic_add(fab *f, fab_nic *n, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    if (n->places > 2 * n->count + 64)
        close_gaps(f, n);
    if (!make_room(n, w->class))
        return false;
    w->place = n->places;
    w->heap_place = FAB_NO_PLACE;
    w->is_listed = true;
    n->classes |= (uint8_t)(1u << w->class);
    n->flows[n->places++] = flow;
    n->count++;
    fab_places_add(&n->listed, w->place);
    fab_nic_update(f, flow);
    fab_nic_pace(f, flow, f->now);
    return true;
}

/* The number of the flow served last stays. */
void fab_nic_clear(fab *f, fab_nic *n)
{
    remember_number(n);
    for (uint32_t at = 0; (at = fab_places_first(&n->listed, at, n->places)) != FAB_NO_PLACE;
         at++) {
        f->flows[n->flows[at]].is_listed = false;
        f->flows[n->flows[at]].heap_place = FAB_NO_PLACE;
    }
    fab_places_clear(&n->listed);
    fab_places_clear(&n->done);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        fab_places_clear(&n->ready[i]);
    n->places = n->count = 0;
    n->paced_count = 0;
}

/* ---- choosing ---- */

/* The first flow from `from` to `to` - 1 that may send. */
static uint32_t first_ready(const fab_nic *n, unsigned classes, uint32_t from, uint32_t to)
{
    uint32_t first = FAB_NO_PLACE;
    for (; classes; classes &= classes - 1) {
        const uint32_t at = fab_places_first(&n->ready[__builtin_ctz(classes)], from, to);
        first = at < first ? at : first;
    }
    return first;
}

static void become_due(fab *f, fab_nic *n)
{
    while (n->paced_count && time_of(f, n->paced[0]) <= f->now) {
        const uint32_t flow = n->paced[0];
        f->flows[flow].is_due = true;
        note_ready(n, &f->flows[flow]);
        leave_heap(f, n, flow);
    }
}

/* From place `at` on, flows that are done leave the list. */
static void remove_done(fab *f, fab_nic *n, uint32_t at)
{
    for (; (at = fab_places_first(&n->done, at, n->places)) != FAB_NO_PLACE; at++) {
        const uint32_t flow = n->flows[at];
        fab_flow *w = &f->flows[flow];
        leave_heap(f, n, flow);
        fab_places_remove(&n->listed, at);
        fab_places_remove(&n->done, at);
        fab_places_remove(&n->ready[w->class], at);
        n->count--;
        w->is_listed = false;
        fab_flow_let_go(f, flow);
    }
}

/* The first place of a flow that is done and was met between `from` and `chosen`, going round. */
static uint32_t first_met(const fab_nic *n, uint32_t from, uint32_t chosen)
{
    if (chosen != FAB_NO_PLACE && chosen >= from)
        return fab_places_first(&n->done, from, chosen);
    const uint32_t low = fab_places_first(&n->done, 0, chosen == FAB_NO_PLACE ? from : chosen);
    return low != FAB_NO_PLACE ? low : fab_places_first(&n->done, from, n->places);
}

/* The place at which the search begins: behind the flow served last. */
static uint32_t first_to_ask(const fab_nic *n)
{
    if (n->last_is_number)
        return fab_places_select(&n->listed, (n->last + 1) % n->count);
    const uint32_t next = fab_places_first(&n->listed, n->last + 1, n->places);
    return next != FAB_NO_PLACE ? next : fab_places_first(&n->listed, 0, n->places);
}

/* Flows that are done go, from the first one met.  The reference removes even the one it has
 * chosen, if that is done and sends again all the same; then the number of it names the flow that
 * follows. */
static uint32_t tidy_up(fab *f, fab_nic *n, uint32_t met, uint32_t chosen)
{
    if (chosen == FAB_NO_PLACE)
        remember_number(n);
    if (chosen == FAB_NO_PLACE || chosen < met || !fab_places_has(&n->done, chosen)) {
        remove_done(f, n, met);
        return chosen;
    }
    const uint32_t number = fab_places_rank(&n->listed, chosen);
    remove_done(f, n, met);
    n->last = number;
    n->last_is_number = true;
    return number < n->count ? fab_places_select(&n->listed, number) : FAB_NO_PLACE;
}

uint32_t fab_nic_choose(fab *f, fab_port *p)
{
    fab_nic *n = &f->nics[p->nic];
    if (n->count == 0)
        return FAB_NONE;
    become_due(f, n);
    const uint32_t from = first_to_ask(n);
    const unsigned classes = n->classes & ~(unsigned)p->paused;
    uint32_t chosen = first_ready(n, classes, from, n->places);
    if (chosen == FAB_NO_PLACE)
        chosen = first_ready(n, classes, 0, from);
    const uint32_t met = first_met(n, from, chosen);
    if (met != FAB_NO_PLACE)
        chosen = tidy_up(f, n, met, chosen);
    if (chosen == FAB_NO_PLACE)
        return FAB_NONE;
    n->last = chosen;
    n->last_is_number = false;
    if (chosen + 1 < n->places) { /* it is next, most likely, and has left the caches */
        __builtin_prefetch(&f->flows[n->flows[chosen + 1]]);
        __builtin_prefetch(&f->flows[n->flows[chosen + 1]].highest);
    }
    return n->flows[chosen];
}

bool fab_nic_next(const fab *f, const fab_nic *n, uint64_t *at)
{
    if (n->paced_count == 0)
        return false;
    if (f->rules.hides_paced_flows && n->paced_count < n->count)
        /* one that is due, but held back by something else, hides the others (packet-network.md 14
         * row 16) */
        return false;
    *at = time_of(f, n->paced[0]);
    return *at > f->now;
}
