/* SPDX-License-Identifier: Apache-2.0 */
/* fluid.c - max-min fair rates, updated as flows start and end.
 *
 * Rates are computed by progressive filling: the rate of all flows rises together; a flow stops at
 * its own limit, and all flows of a resource stop when the resource saturates.  A resource that
 * could carry the demands of all its flows (its `wish`) never saturates, so it does not couple
 * flows: a change propagates from flow to flow only over resources that can saturate.  Flows that
 * are not reached keep their rates exactly.
 *
 * All changes of one tick are solved together, in an event at the end of the tick. */
#include "base/memory/heap.h"
#include "base/memory/sort.h"

#include "fluid.h"
#include "models/network/net_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE FLUID_NONE

typedef struct fluid_resource {
    double capacity;
    double wish;                         /* total demand of its flows */
    double shares;                       /* total load when each flow has a rate of 1 */
    double bytes;                        /* of completed flows */
    uint32_t first;                      /* place of a flow on it */
    uint32_t flows, most_flows, counted; /* counted: flows included in the statistics */
    uint64_t flows_ever, busy, busy_since;
    /* flows started or ended; most_flows counts those that stayed until then */
    uint64_t changed_at;
    /* during a solution */
    double left, share;
    uint32_t mark, seen;
    /* windows */
    double load;  /* of all its flows at their rates */
    double delay; /* queueing delay, ns */
    double level; /* maximum for a flow that begins here; INFINITY: unlimited */
    uint32_t drops, most_drops;
    uint32_t own; /* flows that begin here */
    bool is_queued;
} fluid_resource;

/* One flow on one resource. */
typedef struct fluid_place {
    uint32_t flow, next, previous;
    uint32_t part; /* index in its use */
} fluid_place;

struct fluid_use {
    fluid_part *parts;
    uint32_t count;
    /* of ended flows: the first index of a row of `count`, linked by next */
    uint32_t free_places;
    double trip, window; /* ns, bytes; 0: there is no window */
};

typedef struct fluid_flow {
    fluid_use *use;
    double bytes; /* total */
    double left;  /* bytes, at `since` */
    double rate;  /* bytes per ns; 0: not known yet */
    double most;
    double wait, level, pace; /* windows: ns in queues; limit at its first port; its rate */
    uint64_t since;
    uint64_t end; /* tick; UINT64_MAX: not known yet */
    void (*done)(void *context, uint64_t argument);
    void *context;
    uint64_t argument, number;
    uint32_t places;  /* the first of use->count */
    uint32_t heap_at; /* NONE: not there */
    uint32_t mark;    /* of the last solution it was part of; while free: the next free one */
    bool is_fixed, is_counted;
} fluid_flow;

/* Completion callback of a flow. */
typedef struct fluid_finished {
    uint64_t number;
    void (*done)(void *context, uint64_t argument);
    void *context;
    uint64_t argument;
} fluid_finished;

struct fluid {
    orr_net *sim;
    fluid_resource *resources;
    size_t resource_count, resource_room;
    fluid_place *places;
    size_t place_count, place_room;
    fluid_flow *flows;
    size_t flow_count, flow_room;
    uint32_t free_flow;
    uint64_t numbers;
    fluid_use **uses;
    size_t use_count, use_room;
    uint32_t *heap; /* flows by end */
    size_t heap_count, heap_room;
    uint64_t armed;  /* tick of the next check for ends */
    uint32_t *dirty; /* changed resources */
    size_t dirty_count, dirty_room;
    bool is_solving_soon;
    double from; /* flows slower than this keep their rates */
    uint32_t *found_flows, *found_resources;
    size_t found_flow_room, found_resource_room;
    orr_heap levels;
    uint32_t mark;
    struct fluid_finished *due;
    size_t due_room;
    bool has_failed, skips_figures;
    bool is_max_min; /* not by windows: a flow without one was seen, or flows are crowded */
    bool is_crowded; /* only until nothing flows */
    uint32_t under_way, senders; /* active flows; ports where one begins */
    /* windows */
    uint32_t *queue, *changed;
    size_t queue_first, queue_count, queue_room, changed_count, changed_room;
    struct fluid_share *shares;
    size_t share_room;
};

/* Sets the rate of a flow from now on. */
static void set_rate(fluid *f, uint32_t index, double rate);

/* ---- The rates of flows with windows: a sender has at most so many bytes in
 * flight, whatever saturates.
 *
 *     rate = window / (trip + wait)
 *
 * where trip is the round trip of an empty network, and wait what packets spend in queues.  An
 * unsaturated link has no queue; at a saturated one the queue grows until all flows through it are
 * slow enough.  A flow that waits at two links is slower than one that waits at one, as with
 * packets, and unlike max-min fair shares.  At its own port a sender does not wait with bytes in
 * flight: its flows alternate, so each gets what it can use, up to a level.  Packets of others that
 * pass through a sender alternate with its own.  ACKs have priority: they use bandwidth, and never
 * wait.
 *
 * Queues are found link by link: the wait at one link is set so that it is exactly saturated, which
 * changes the load of its flows on other links, and those that are now overloaded, or have a queue
 * without being saturated, come next.  This is coordinate ascent on a concave problem (Mo and
 * Walrand, Fair end-to-end window-based congestion control, 2000), started from the previous
 * queues: a change propagates only as far as it matters.  Consecutive links with the same flows
 * would pass a queue along in tiny steps, so a queue that keeps shrinking shrinks twice as fast
 * each time.
 *
 * If senders have more than MOST_OWN flows each, as in an all-to-all, their own ports limit them,
 * and it matters little where they wait: until nothing flows, shares are max-min fair, which is
 * cheaper (fluid.c).  From 3 on the limit changes no result by more than 0.07 %, above 12 it costs
 * (docs/design/fluid.md). */

static const double CLOSE = 1e-6; /* of a capacity: tolerance for saturated */
/* minimum share of a link for data, however many ACKs there are */
static const double LEAST_SHARE = 0.05;
enum { MOST_OWN = 8, MOST_STEPS = 60, MOST_VISITS = 2000, MOST_DROPS = 24 };

/* A flow at the link being solved. */
typedef struct fluid_share {
    double trip;   /* without the wait here */
    double window; /* its load on the link: bytes in flight, and bytes per ns at most */
    double most;
} fluid_share;

/* Too many concurrent flows per sender. */
static bool windows_crowd(const fluid *f)
{
    return f->under_way > MOST_OWN * f->senders;
}

static double pace_of(const fluid_flow *w)
{
    double pace = w->use->window / (w->use->trip + w->wait);
    pace = pace < w->level ? pace : w->level;
    return pace < w->most ? pace : w->most;
}

static bool needs_visit(const fluid_resource *r)
{
    return r->load > r->capacity * (1 + CLOSE) ||
           (r->load < r->capacity * (1 - CLOSE) && (r->delay > 0 || isfinite(r->level)));
}

static void look_later(fluid *f, uint32_t index)
{
    fluid_resource *r = &f->resources[index];
    if (r->is_queued || !needs_visit(r))
        return;
    if (!orr_grow(&f->queue, &f->queue_room, f->queue_count + 1)) {
        f->has_failed = true;
        return;
    }
    r->is_queued = true;
    f->queue[f->queue_count++] = index;
}

static void note_flow(fluid *f, uint32_t index)
{
    if (!orr_grow(&f->changed, &f->changed_room, f->changed_count + 1)) {
        f->has_failed = true;
        return;
    }
    f->changed[f->changed_count++] = index;
}

/* Updates its load on its resources. */
static void set_pace(fluid *f, fluid_flow *w, double pace)
{
    const double more = pace - w->pace;
    w->pace = pace;
    for (uint32_t k = 0; k < w->use->count; k++) {
        f->resources[w->use->parts[k].resource].load += w->use->parts[k].share * more;
        look_later(f, w->use->parts[k].resource);
    }
}

/* A flow joins its resources.  Like windows_leave it may request fluid_windows_solve. */
static void windows_join(fluid *f, uint32_t index)
{
    fluid_flow *w = &f->flows[index];
    w->wait = 0;
    w->level = INFINITY;
    for (uint32_t k = 0; k < w->use->count; k++) {
        const fluid_part *part = &w->use->parts[k];
        const fluid_resource *r = &f->resources[part->resource];
        if (part->kind == FLUID_THROUGH)
            w->wait += r->delay;
        else if (part->kind == FLUID_FIRST)
            w->level = r->level;
    }
    w->pace = 0;
    const size_t before = f->queue_count;
    set_pace(f, w, pace_of(w));
    /* No link became overloaded and none was pending: its rate is final, without a solution
     * event. */
    if (f->queue_count == before && f->queue_first == before)
        set_rate(f, index, w->pace);
    else
        note_flow(f, index);
}

/* A flow is about to leave its resources. */
static void windows_leave(fluid *f, uint32_t index)
{
    fluid_flow *w = &f->flows[index];
    for (uint32_t k = 0; k < w->use->count; k++) {
        fluid_resource *r = &f->resources[w->use->parts[k].resource];
        r->load -= w->use->parts[k].share * w->pace;
        if (r->first == w->places + k && f->places[w->places + k].next == NONE) { /* the last one */
            r->load = r->delay = 0;
            r->level = INFINITY;
        }
        look_later(f, w->use->parts[k].resource);
    }
    w->pace = 0;
}

/* Flows wait for fluid_windows_solve. */
static bool windows_wait(const fluid *f)
{
    return f->queue_first < f->queue_count || f->changed_count;
}

/* ---- one link ---- */

/* The wait at which the flows passing through load the link with exactly `room`. */
static double find_delay(const fluid_share *s, size_t count, double room, double delay)
{
    double low = 0, high = INFINITY;
    for (int step = 0; step < MOST_STEPS; step++) {
        double sum = 0, slope = 0;
        for (size_t i = 0; i < count; i++) {
            const double trip = s[i].trip + delay, pace = s[i].window / trip;
            if (pace >= s[i].most) {
                sum += s[i].most;
            } else {
                sum += pace;
                slope += pace / trip;
            }
        }
        const double over = sum - room;
        if (fabs(over) <= room * (CLOSE / 100) || (over < 0 && delay <= 0))
            break;
        if (over > 0)
            low = delay;
        else
            high = delay;
        /* The inverse of the sum is nearly linear. */
        double next = slope > 0 ? delay + over / slope * (sum / room) : 2 * delay + s[0].trip;
        if (next <= 0 && low <= 0)
            next = 0;
        else if (!(next > low && next < high))
            next = isinf(high) ? 2 * low + s[0].trip : (low + high) / 2;
        if (high - low < 1e-9)
            return low;
        delay = next;
    }
    return delay;
}

/* The common level that fills the room, with nobody above its demand: `most` of its share, of which
 * `window` is one byte. */
static double find_level(const fluid_share *s, size_t count, double room)
{
    double level = 0;
    for (;;) {
        double left = room, shares = 0, next;
        for (size_t i = 0; i < count; i++) {
            if (s[i].most <= level * s[i].window)
                left -= s[i].most;
            else
                shares += s[i].window;
        }
        if (shares <= 0)
            return INFINITY;
        next = left / shares;
        if (next <= level * (1 + 1e-14))
            return next > 0 ? next : level;
        level = next;
    }
}

typedef struct crowd {
    size_t through, own;
    double wanted_through, wanted_own, acks;
} crowd;

/* In f->shares: first the flows passing through, then those that begin here. */
static bool gather(fluid *f, const fluid_resource *r, crowd *c)
{
    *c = (crowd){0};
    if (!orr_grow(&f->shares, &f->share_room, r->flows))
        return false;
    for (int own = 0; own < 2; own++)
        for (uint32_t p = r->first; p != NONE; p = f->places[p].next) {
            const fluid_flow *w = &f->flows[f->places[p].flow];
            const fluid_part *part = &w->use->parts[f->places[p].part];
            const double share = part->share;
            if (part->kind == FLUID_BACK) {
                c->acks += own ? 0 : share * w->pace;
            } else if (part->kind == FLUID_FIRST && own) {
                const double pace = w->use->window / (w->use->trip + w->wait);
                const double most = share * (pace < w->most ? pace : w->most);
                f->shares[c->through + c->own++] = (fluid_share){.window = share, .most = most};
                c->wanted_own += most;
            } else if (part->kind == FLUID_THROUGH && !own) {
                /* Without the wait here, which find_delay looks for. */
                const double trip = w->use->trip + w->wait - r->delay;
                const double limit = w->level < w->most ? w->level : w->most;
                const fluid_share s = {trip, share * w->use->window, share * limit};
                const double alone = s.window / trip;
                f->shares[c->through++] = s;
                c->wanted_through += alone < s.most ? alone : s.most;
            }
        }
    return true;
}

static void apply(fluid *f, uint32_t index, double delay, double level)
{
    fluid_resource *r = &f->resources[index];
    /* Waits are kept as sums along the route: add only this link's change. */
    const double more = delay - r->delay;
    const bool is_new_level = level != r->level;
    r->delay = delay;
    r->level = level;
    for (uint32_t p = r->first; p != NONE; p = f->places[p].next) {
        const uint32_t who = f->places[p].flow;
        fluid_flow *w = &f->flows[who];
        const fluid_kind kind = w->use->parts[f->places[p].part].kind;
        if (kind == FLUID_THROUGH && more != 0)
            w->wait = w->wait + more > 0 ? w->wait + more : 0;
        else if (kind == FLUID_FIRST && is_new_level)
            w->level = level;
        else
            continue;
        const double pace = pace_of(w);
        /* Rounding must not look like a change, or links would be visited forever. */
        if (fabs(pace - w->pace) <= 1e-12 * w->pace)
            continue;
        /* Recorded once, however many links on its route change: its rate is set when all queues
         * are known. */
        if (w->mark != f->mark) {
            w->mark = f->mark;
            note_flow(f, who);
        }
        set_pace(f, w, pace);
    }
}

/* Makes the link exactly saturated, or queueless. */
static void visit(fluid *f, uint32_t index)
{
    fluid_resource *r = &f->resources[index];
    crowd c;
    if (!gather(f, r, &c)) {
        f->has_failed = true;
        return;
    }
    double room = r->capacity - c.acks, for_through, for_own;
    if (room < r->capacity * LEAST_SHARE)
        room = r->capacity * LEAST_SHARE;
    /* Alternating: each side gets half, plus what the other does not need. */
    for_through = room - c.wanted_own > room / 2 ? room - c.wanted_own : room / 2;
    if (c.own == 0)
        for_through = room;
    double delay = 0, level = INFINITY;
    if (c.wanted_through > for_through)
        delay = find_delay(f->shares, c.through, for_through, r->delay);
    for_own = room - (c.wanted_through < for_through ? c.wanted_through : for_through);
    if (c.wanted_own > for_own)
        level = find_level(f->shares + c.through, c.own, for_own);
    if (delay > r->delay) { /* it had shrunk too far: halve the acceleration next time */
        r->most_drops = r->drops < r->most_drops ? r->drops / 2 : r->most_drops / 2;
        r->drops = 0;
    } else if (delay < r->delay) {
        const double drop = ldexp(r->delay - delay, (int)r->drops);
        r->drops += r->drops < r->most_drops;
        delay = drop < r->delay ? r->delay - drop : 0;
    }
    apply(f, index, delay, level);
}

static void fluid_windows_solve(fluid *f)
{
    uint64_t visits = 0;
    f->mark++;
    for (size_t i = 0; i < f->changed_count; i++)
        f->flows[f->changed[i]].mark = f->mark;
    /* A limit against oscillation: rates are then those of the last visit. */
    const uint64_t most = MOST_VISITS + 50 * (uint64_t)f->queue_count;
    while (f->queue_first < f->queue_count && !f->has_failed) {
        const uint32_t index = f->queue[f->queue_first++];
        fluid_resource *r = &f->resources[index];
        r->is_queued = false;
        if (r->mark != f->mark) {
            r->mark = f->mark;
            r->drops = 0;
            r->most_drops = MOST_DROPS;
        }
        if (visits++ < most && needs_visit(r))
            visit(f, index);
        if (f->queue_first == f->queue_count)
            f->queue_first = f->queue_count = 0;
    }
    for (size_t i = 0; i < f->changed_count && !f->has_failed; i++)
        set_rate(f, f->changed[i], f->flows[f->changed[i]].pace);
    f->changed_count = 0;
}

/* In a list of changes: a flow has started here.  In the heap of levels: a resource, not a flow. */
enum { STARTED = 1u << 31, RESOURCE = 1u << 31 };

/* ---- life cycle ---- */

fluid *fluid_create(void)
{
    fluid *f = orr_alloc(1, sizeof *f);
    if (f) {
        f->free_flow = NONE;
        f->armed = UINT64_MAX;
        /* nothing has changed: no rate needs to be recomputed */
        f->from = INFINITY;
    }
    return f;
}

void fluid_destroy(fluid *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->use_count; i++) {
        orr_free(f->uses[i]->parts);
        orr_free(f->uses[i]);
    }
    orr_free(f->uses);
    orr_free(f->resources);
    orr_free(f->places);
    orr_free(f->flows);
    orr_free(f->heap);
    orr_free(f->dirty);
    orr_free(f->found_flows);
    orr_free(f->found_resources);
    orr_free(f->due);
    orr_free(f->queue);
    orr_free(f->changed);
    orr_free(f->shares);
    orr_heap_fini(&f->levels);
    orr_free(f);
}

uint32_t fluid_add(fluid *f, double capacity, uint32_t count)
{
    const size_t first = f->resource_count;
    if (first + count >= STARTED || !orr_grow(&f->resources, &f->resource_room, first + count))
        return NONE;
    for (uint32_t i = 0; i < count; i++)
        f->resources[first + i] =
            (fluid_resource){.capacity = capacity, .level = INFINITY, .first = NONE};
    f->resource_count += count;
    return (uint32_t)first;
}

uint32_t fluid_count(const fluid *f)
{
    return (uint32_t)f->resource_count;
}

static int by_resource(const void *a, const void *b)
{
    const uint32_t x = ((const fluid_part *)a)->resource, y = ((const fluid_part *)b)->resource;
    return x < y ? -1 : x > y;
}

fluid_use *fluid_use_make(fluid *f, const fluid_part *parts, size_t count)
{
    fluid_use *u = orr_alloc(1, sizeof *u);
    fluid_part *copy = orr_alloc(count + 1, sizeof *copy);
    if (!u || !copy || !orr_grow(&f->uses, &f->use_room, f->use_count + 1)) {
        orr_free(u);
        orr_free(copy);
        return NULL;
    }
    if (count)
        memcpy(copy, parts, count * sizeof *copy);
    orr_sort(copy, count, sizeof *copy, by_resource);
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept && copy[kept - 1].resource == copy[i].resource) {
            copy[kept - 1].share += copy[i].share;
            copy[kept - 1].flows += copy[i].flows;
            /* A link with data and ACKs of one message counts as data: waiting there delays the
             * data. */
            if (copy[kept - 1].kind == FLUID_BACK)
                copy[kept - 1].kind = copy[i].kind;
        } else {
            copy[kept++] = copy[i];
        }
    }
    *u = (fluid_use){.parts = copy, .count = kept, .free_places = NONE};
    return f->uses[f->use_count++] = u;
}

void fluid_use_window(fluid_use *u, double trip, double bytes)
{
    u->trip = trip;
    u->window = bytes;
}

/* ---- flows by their ends ---- */

/* Ties by start order: independent of the shape of the heap. */
static bool ends_before(const fluid *f, uint32_t a, uint32_t b)
{
    const fluid_flow *x = &f->flows[a], *y = &f->flows[b];
    return x->end < y->end || (x->end == y->end && x->number < y->number);
}

static void heap_put(fluid *f, size_t at, uint32_t index)
{
    f->heap[at] = index;
    f->flows[index].heap_at = (uint32_t)at;
}

static void heap_mend(fluid *f, size_t at)
{
    const uint32_t moving = f->heap[at];
    while (at && ends_before(f, moving, f->heap[(at - 1) / 2])) {
        heap_put(f, at, f->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (size_t child; (child = 2 * at + 1) < f->heap_count; at = child) {
        if (child + 1 < f->heap_count && ends_before(f, f->heap[child + 1], f->heap[child]))
            child++;
        if (!ends_before(f, f->heap[child], moving))
            break;
        heap_put(f, at, f->heap[child]);
    }
    heap_put(f, at, moving);
}

static void heap_remove(fluid *f, uint32_t index)
{
    const size_t at = f->flows[index].heap_at;
    const uint32_t last = f->heap[--f->heap_count];
    f->flows[index].heap_at = NONE;
    if (last != index) {
        heap_put(f, at, last);
        heap_mend(f, at);
    }
}

/* ---- flows on their resources ---- */

/* Freed rows of places go back to their use: they have its length, so no free list has to be
 * searched by size. */
static bool take_places(fluid *f, fluid_use *u, uint32_t *out)
{
    if (u->free_places != NONE) {
        *out = u->free_places;
        u->free_places = f->places[*out].next;
        return true;
    }
    if (f->place_count + u->count >= NONE ||
        !orr_grow(&f->places, &f->place_room, f->place_count + u->count + 1))
        return false;
    *out = (uint32_t)f->place_count;
    f->place_count += u->count ? u->count : 1;
    return true;
}

/* Flows that start and end in one tick do so in any order: count only those that lasted. */
static void change_flows(fluid_resource *r, uint64_t now)
{
    if (r->changed_at != now && r->counted && r->flows > r->most_flows)
        r->most_flows = r->flows;
    r->changed_at = now;
}

static uint32_t flows_of(const fluid_part *part)
{
    return part->flows ? part->flows : 1;
}

static void join(fluid *f, uint32_t index)
{
    const fluid_flow *w = &f->flows[index];
    const uint64_t now = orr__net_now(f->sim);
    f->under_way++;
    for (uint32_t i = 0; i < w->use->count; i++) {
        const fluid_part *part = &w->use->parts[i];
        fluid_resource *r = &f->resources[part->resource];
        fluid_place *p = &f->places[w->places + i];
        *p = (fluid_place){.flow = index, .next = r->first, .previous = NONE, .part = i};
        if (r->first != NONE)
            f->places[r->first].previous = w->places + i;
        r->first = w->places + i;
        r->wish += part->share * w->most;
        r->shares += part->share;
        change_flows(r, now);
        r->flows += flows_of(part);
        if (part->kind == FLUID_FIRST && r->own++ == 0)
            f->senders++;
        if (!w->is_counted)
            continue;
        if (r->counted++ == 0)
            r->busy_since = now;
        r->flows_ever += flows_of(part);
    }
}

static void leave(fluid *f, const fluid_flow *w)
{
    const uint64_t now = orr__net_now(f->sim);
    f->under_way--;
    for (uint32_t i = 0; i < w->use->count; i++) {
        const fluid_part *part = &w->use->parts[i];
        fluid_resource *r = &f->resources[part->resource];
        const fluid_place *p = &f->places[w->places + i];
        if (p->previous == NONE)
            r->first = p->next;
        else
            f->places[p->previous].next = p->next;
        if (p->next != NONE)
            f->places[p->next].previous = p->previous;
        change_flows(r, now);
        if (w->is_counted) {
            r->bytes += part->share * w->bytes;
            if (--r->counted == 0)
                r->busy += now - r->busy_since;
        }
        if (part->kind == FLUID_FIRST && --r->own == 0)
            f->senders--;
        r->flows -= flows_of(part);
        if (r->flows == 0) {
            r->wish = r->shares = 0; /* drop accumulated rounding errors */
        } else {
            r->wish -= part->share * w->most;
            r->shares -= part->share;
        }
    }
    if (w->use->count) {
        f->places[w->places].next = w->use->free_places;
        w->use->free_places = w->places;
    }
}

/* Even all flows together do not saturate it.  With a tolerance for rounding. */
static bool never_full(const fluid_resource *r)
{
    return r->wish <= r->capacity * (1 + 1e-9);
}

/* started: STARTED, or 0. */
static void note_change(fluid *f, uint32_t index, uint32_t started)
{
    const fluid_resource *r = &f->resources[index];
    if (r->flows == 0)
        return;
    if (!orr_grow(&f->dirty, &f->dirty_room, f->dirty_count + 1)) {
        f->has_failed = true;
        return;
    }
    f->dirty[f->dirty_count++] = index | started;
}

/* ---- rates ---- */

static void fail(fluid *f)
{
    orr_error err;
    orr_no_memory(&err);
    orr_net_fail(f->sim, &err);
}

static void ends(void *context, uint64_t unused);

static void arm(fluid *f)
{
    if (f->heap_count == 0)
        return;
    const uint64_t now = orr__net_now(f->sim);
    uint64_t first = f->flows[f->heap[0]].end;
    if (first < now)
        first = now;
    /* An earlier check is pending and will schedule the next one.  A check that has become too
     * early finds nothing due and costs an event; cancelling it would cost more. */
    if (first >= f->armed)
        return;
    f->armed = first;
    orr__net_after(f->sim, first - now, ends, f, first);
}

static void set_rate(fluid *f, uint32_t index, double rate)
{
    fluid_flow *w = &f->flows[index];
    const uint64_t now = orr__net_now(f->sim);
    /* The end of a flow with an unchanged rate must not move by rounding: left and since are
     * updated only when the rate changes. */
    if (rate == w->rate && w->heap_at != NONE)
        return;
    w->left -= w->rate * (double)(now - w->since);
    if (w->left < 0)
        w->left = 0;
    w->since = now;
    w->rate = rate;
    /* A picosecond of rounding must not cost another tick. */
    const double wait = w->left > 0 ? w->left / rate - 1e-3 : 0;
    /* A rate of 0 has no end: the flow stays last in the heap until its rate changes. */
    w->end = wait >= 9e18 ? UINT64_MAX - 1 : now + (wait > 0 ? (uint64_t)ceil(wait) : 0);
    if (w->heap_at == NONE) {
        heap_put(f, f->heap_count++, index); /* there is room: one per flow */
        heap_mend(f, f->heap_count - 1);
    } else {
        heap_mend(f, w->heap_at);
    }
}

static bool find_flow(fluid *f, uint32_t index, size_t *count)
{
    fluid_flow *w = &f->flows[index];
    if (w->mark == f->mark)
        return true;
    w->mark = f->mark;
    w->is_fixed = false;
    if (!orr_grow(&f->found_flows, &f->found_flow_room, *count + 1))
        return false;
    f->found_flows[(*count)++] = index;
    return true;
}

/* Rates rise together, so an ended flow changes nothing below the level at which it stopped, and a
 * new one nothing before something on its route saturates: not below the equal share there. */
static double find_from(fluid *f)
{
    double from = f->from;
    for (size_t d = 0; d < f->dirty_count; d++) {
        const fluid_resource *r = &f->resources[f->dirty[d] & ~STARTED];
        if ((f->dirty[d] & STARTED) && r->capacity < from * r->shares)
            from = r->capacity / r->shares;
    }
    f->from = INFINITY;
    /* Slightly less, so that flows that stop exactly there are recomputed instead of missed by
     * rounding. */
    return from * (1 - 1e-9);
}

static bool keeps_rate(const fluid_flow *w, double from)
{
    /* One that is not in the heap has no rate yet. */
    return w->rate < from && w->heap_at != NONE;
}

/* All flows that the changes may reach, and the resources between them. Breadth-first search,
 * alternating between flows and resources: the list of flows grows while it is traversed. */
static bool find_touched(fluid *f, size_t *flows, size_t *resources)
{
    const double from = find_from(f);
    *flows = *resources = 0;
    f->mark++;
    for (size_t d = 0; d < f->dirty_count; d++) {
        fluid_resource *r = &f->resources[f->dirty[d] & ~STARTED];
        const bool is_free = never_full(r);
        if (r->seen == f->mark)
            continue;
        r->seen = f->mark;
        for (uint32_t p = r->first; p != NONE; p = f->places[p].next) {
            /* A resource that can no longer saturate may still have flows that it slowed down
             * before; those at their own limit are not affected. */
            const fluid_flow *w = &f->flows[f->places[p].flow];
            if (!keeps_rate(w, from) && (!is_free || w->rate < w->most) &&
                !find_flow(f, f->places[p].flow, flows))
                return false;
        }
    }
    f->dirty_count = 0;
    for (size_t i = 0; i < *flows; i++) {
        const fluid_use *u = f->flows[f->found_flows[i]].use;
        for (uint32_t k = 0; k < u->count; k++) {
            fluid_resource *r = &f->resources[u->parts[k].resource];
            if (r->mark == f->mark || never_full(r))
                continue;
            r->mark = f->mark;
            r->left = r->capacity;
            r->share = 0;
            if (!orr_grow(&f->found_resources, &f->found_resource_room, *resources + 1))
                return false;
            f->found_resources[(*resources)++] = u->parts[k].resource;
            for (uint32_t p = r->first; p != NONE; p = f->places[p].next) {
                const fluid_flow *w = &f->flows[f->places[p].flow];
                if (keeps_rate(w, from))
                    r->left -= w->use->parts[f->places[p].part].share * w->rate;
                else if (!find_flow(f, f->places[p].flow, flows))
                    return false;
            }
        }
    }
    return true;
}

/* Positive numbers as order-preserving keys. */
static uint64_t key_of(double level)
{
    uint64_t bits;
    level = level > 0 ? level : 0;
    memcpy(&bits, &level, sizeof bits);
    return bits;
}

/* The rate at which all remaining flows here stop together. */
static double level_of(const fluid_resource *r)
{
    return r->share > 0 ? (r->left > 0 ? r->left / r->share : 0) : INFINITY;
}

static void fix_flow(fluid *f, uint32_t index, double rate)
{
    fluid_flow *w = &f->flows[index];
    w->is_fixed = true;
    for (uint32_t k = 0; k < w->use->count; k++) {
        fluid_resource *r = &f->resources[w->use->parts[k].resource];
        /* Resources that never fill are not part of the solution. */
        if (r->mark != f->mark)
            continue;
        const double share = w->use->parts[k].share;
        r->left -= share * rate;
        r->share -= share;
        /* The last of its flows is fixed: the rounding residue belongs to nobody. */
        if (r->share < 1e-12)
            r->share = 0;
    }
    set_rate(f, index, rate);
}

/* The next level at which something stops.  Stale heap entries are pushed back: a level only
 * rises. */
static bool next_stop(fluid *f, double *level, uint32_t *who)
{
    orr_heap_entry e;
    while (orr_heap_pop(&f->levels, &e)) {
        if (!(e.value & RESOURCE)) {
            if (f->flows[e.value].is_fixed)
                continue;
            *level = f->flows[e.value].most;
            *who = e.value;
            return true;
        }
        const fluid_resource *r = &f->resources[e.value & ~RESOURCE];
        if (r->share == 0)
            continue;
        /* Flows fixed elsewhere at a lower rate left more for the others: the saturation level of
         * this resource has risen since it was pushed. */
        *level = level_of(r);
        if (key_of(*level) > e.key) {
            if (!orr_heap_push(&f->levels, key_of(*level), e.value))
                f->has_failed = true;
            continue;
        }
        *who = e.value;
        return true;
    }
    return false;
}

static void fill(fluid *f, size_t flows, size_t resources)
{
    double level = 0, next = 0;
    uint32_t who;
    bool ok = true;
    f->levels.count = 0;
    for (size_t i = 0; i < flows; i++) {
        const fluid_flow *w = &f->flows[f->found_flows[i]];
        /* something on its route saturates before it reaches its own limit */
        bool has_stop = false;
        for (uint32_t k = 0; k < w->use->count; k++) {
            const double share = w->use->parts[k].share;
            fluid_resource *r = &f->resources[w->use->parts[k].resource];
            if (r->mark != f->mark)
                continue;
            r->share += share;
            has_stop = has_stop || r->capacity <= w->most * share;
        }
        /* A flow stopped earlier by some resource needs no entry: the heap of flows is often
         * empty. */
        if (!has_stop && isfinite(w->most))
            ok = ok && orr_heap_push(&f->levels, key_of(w->most), f->found_flows[i]);
    }
    for (size_t i = 0; i < resources; i++)
        ok = ok && orr_heap_push(&f->levels, key_of(level_of(&f->resources[f->found_resources[i]])),
                                 f->found_resources[i] | RESOURCE);
    while (ok && !f->has_failed && next_stop(f, &next, &who)) {
        level = next > level ? next : level; /* rounding must not lower the level */
        if (!(who & RESOURCE)) {
            fix_flow(f, who, level);
            continue;
        }
        for (uint32_t p = f->resources[who & ~RESOURCE].first; p != NONE; p = f->places[p].next) {
            /* Flows that keep their rates were subtracted at the start (find_touched). */
            const fluid_flow *w = &f->flows[f->places[p].flow];
            if (w->mark == f->mark && !w->is_fixed)
                fix_flow(f, f->places[p].flow, level);
        }
    }
    f->has_failed = f->has_failed || !ok;
}

static void solve(void *context, uint64_t unused)
{
    fluid *f = context;
    size_t flows, resources;
    (void)unused;
    f->is_solving_soon = false;
    if (!f->is_max_min) {
        fluid_windows_solve(f);
        if (f->has_failed)
            fail(f);
        else
            arm(f);
        return;
    }
    if (f->has_failed || !find_touched(f, &flows, &resources)) {
        fail(f);
        return;
    }
    fill(f, flows, resources);
    if (f->has_failed)
        fail(f);
    else
        arm(f);
}

static void solve_soon(fluid *f)
{
    if (f->is_solving_soon || (f->dirty_count == 0 && !windows_wait(f) && !f->has_failed))
        return;
    f->is_solving_soon = true;
    /* At the end of this tick, after all starts and ends: a collective of a thousand members is
     * solved once. */
    orr__net_after(f->sim, 0, solve, f, 0);
}

/* ---- starting and ending ---- */

/* From now on shares are max-min fair. */
static void leave_windows(fluid *f)
{
    f->is_max_min = true;
    f->queue_count = f->queue_first = f->changed_count = 0;
    if (f->under_way == 1)
        return;
    /* Rates by windows are meaningless here: recompute all flows. */
    for (uint32_t i = 0; i < f->resource_count; i++)
        note_change(f, i, STARTED);
    f->from = 0;
}

/* No longer crowded. */
static void return_to_windows(fluid *f)
{
    f->is_max_min = f->is_crowded = false;
    f->dirty_count = 0;
    for (uint32_t i = 0; i < f->resource_count; i++) {
        fluid_resource *r = &f->resources[i];
        r->load = r->delay = 0;
        r->level = INFINITY;
        r->is_queued = false;
    }
}

/* A collective has no window, and in a crowd it matters little where flows wait. */
static void choose_sharing(fluid *f, const fluid_use *use)
{
    const bool has_none = use->trip <= 0;
    /* The flow that starts is already counted: it is alone, so no other rate has to change. */
    if (f->is_crowded && f->under_way == 1 && !has_none)
        return_to_windows(f);
    if (!f->is_max_min && (has_none || windows_crowd(f))) {
        f->is_crowded = !has_none;
        leave_windows(f);
    }
    if (has_none)
        f->is_crowded = false;
}

bool fluid_start(fluid *f,
                 orr_net *sim,
                 fluid_use *use,
                 double bytes,
                 double most,
                 void (*done)(void *context, uint64_t argument),
                 void *context,
                 uint64_t argument)
{
    f->sim = sim;
    uint32_t index = f->free_flow;
    if (index == NONE) {
        if (f->flow_count >= RESOURCE || !orr_grow(&f->flows, &f->flow_room, f->flow_count + 1) ||
            !orr_grow(&f->heap, &f->heap_room, f->flow_count + 1))
            return false;
        index = (uint32_t)f->flow_count;
    }
    /* Nothing can be faster than the resources it crosses. */
    for (uint32_t i = 0; i < use->count; i++) {
        const double own = f->resources[use->parts[i].resource].capacity / use->parts[i].share;
        if (own < most)
            most = own;
    }
    uint32_t places = 0;
    if (!take_places(f, use, &places))
        return false;
    if (index == f->free_flow)
        f->free_flow = f->flows[index].mark;
    else
        f->flow_count++;
    f->flows[index] = (fluid_flow){.use = use,
                                   .bytes = bytes,
                                   .left = bytes,
                                   .most = most,
                                   .since = orr__net_now(sim),
                                   .end = UINT64_MAX,
                                   .done = done,
                                   .context = context,
                                   .argument = argument,
                                   .number = f->numbers++,
                                   .places = places,
                                   .heap_at = NONE,
                                   .is_counted = !f->skips_figures};
    join(f, index);
    choose_sharing(f, use);
    bool is_alone = true;
    if (!f->is_max_min) {
        windows_join(f, index);
        if (f->flows[index].heap_at != NONE)
            arm(f);
        solve_soon(f);
        return !f->has_failed;
    }
    for (uint32_t i = 0; i < use->count; i++)
        if (!never_full(&f->resources[use->parts[i].resource])) {
            is_alone = false;
            note_change(f, use->parts[i].resource, STARTED);
        }
    /* Nothing on its route can saturate: it gets its maximum at once, and no other flow changes. */
    if (is_alone) {
        set_rate(f, index, most);
        arm(f);
    }
    solve_soon(f);
    return !f->has_failed;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = ((const fluid_finished *)a)->number, y = ((const fluid_finished *)b)->number;
    return x < y ? -1 : x > y;
}

static fluid_finished end_flow(fluid *f, uint32_t index)
{
    fluid_flow *w = &f->flows[index];
    const fluid_finished out = {w->number, w->done, w->context, w->argument};
    heap_remove(f, index);
    if (!f->is_max_min)
        windows_leave(f, index);
    for (uint32_t i = 0; f->is_max_min && i < w->use->count; i++)
        if (!never_full(&f->resources[w->use->parts[i].resource])) {
            note_change(f, w->use->parts[i].resource, 0);
            /* Rates below that of the ended flow are determined by other resources (find_from). */
            f->from = w->rate < f->from ? w->rate : f->from;
        }
    leave(f, w);
    w->mark = f->free_flow;
    f->free_flow = index;
    return out;
}

/* All flows that end at this tick, in start order. */
static void ends(void *context, uint64_t tick)
{
    fluid *f = context;
    const uint64_t now = orr__net_now(f->sim);
    size_t count = 0;
    if (tick == f->armed)
        f->armed = UINT64_MAX;
    while (f->heap_count && f->flows[f->heap[0]].end <= now) {
        if (!orr_grow(&f->due, &f->due_room, count + 1)) {
            fail(f);
            return;
        }
        f->due[count++] = end_flow(f, f->heap[0]);
    }
    solve_soon(f);
    arm(f);
    if (count > 1)
        orr_sort(f->due, count, sizeof *f->due, by_number);
    /* Callbacks come last, when all ended flows have left their resources: what they start must see
     * the current state, and may reallocate f->flows. */
    for (size_t i = 0; i < count; i++)
        f->due[i].done(f->due[i].context, f->due[i].argument);
}

bool fluid_is_idle(const fluid *f)
{
    return f->heap_count == 0 && f->dirty_count == 0 && !f->is_solving_soon;
}

void fluid_counts(fluid *f, bool counts)
{
    f->skips_figures = !counts;
}

void fluid_forget(fluid *f)
{
    for (size_t i = 0; i < f->flow_count; i++)
        f->flows[i].is_counted = false;
    for (size_t i = 0; i < f->resource_count; i++) {
        fluid_resource *r = &f->resources[i];
        r->bytes = 0;
        r->flows_ever = r->busy = 0;
        r->most_flows = r->counted = 0;
    }
}

fluid_figures fluid_figures_of(const fluid *f, uint32_t index)
{
    const fluid_resource *r = &f->resources[index];
    return (fluid_figures){.bytes = r->bytes,
                           .capacity = r->capacity,
                           .flows = r->flows_ever,
                           .busy_ns = r->busy,
                           .most_flows = r->most_flows};
}
