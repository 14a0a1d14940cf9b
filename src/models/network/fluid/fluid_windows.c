/* SPDX-License-Identifier: Apache-2.0 */
/* fluid_windows.c - the rates of flows that have windows: a sender has at most so many bytes under
 * way, whatever is full.
 *
 *     rate = window / (trip + wait)
 *
 * where trip is the round trip of an empty network, and wait what packets spend in queues.  A link
 * that is not full has no queue; at one that is full the queue grows until all who pass through are
 * slow enough.  Who waits at two links is slower than who waits at one, as with packets, and unlike
 * max-min fair shares.  Before its own port a sender does not wait with bytes under way: its flows
 * take turns, so each gets what it can use, up to a level.  Where packets of others pass through a
 * sender, they and its own take turns.  ACKs go first: they take from a link, and never wait.
 *
 * Queues are found link by link: the wait of one link is set so that it is just full, which changes
 * what its flows put on their other links, and those that are now too full, or not full with a
 * queue, come next.  This is coordinate ascent on a concave problem (Mo and Walrand, Fair
 * end-to-end window-based congestion control, 2000), and it begins with the queues of before: a
 * change goes as far as it matters.  Links in a row with the same flows would hand a queue from one
 * to the next in tiny steps, so a queue that shrinks again and again shrinks twice as fast each
 * time.
 *
 * Where senders have more than MOST_OWN flows each, as in an all-to-all, their own ports hold them
 * back, and it matters little who waits where: until nothing flows, shares are max-min fair, which
 * costs less (fluid.c).  From 3 on the limit changes no result by more than 0.07 %, above 12 it
 * costs (docs/design/fluid.md). */
#include "fluid_impl.h"

#include <math.h>

#define NONE FLUID_NONE

static const double CLOSE = 1e-6;       /* of a capacity: full, neither more nor less */
static const double LEAST_SHARE = 0.05; /* of a link is left to data, however many ACKs there are */
enum { MOST_OWN = 8, MOST_STEPS = 60, MOST_VISITS = 2000, MOST_DROPS = 24 };

/* A flow at the link that is looked at. */
typedef struct fluid_share {
    double trip;   /* without the wait here */
    double window; /* what it puts on the link: bytes under way, and bytes per ns at most */
    double most;
} fluid_share;

bool fluid_windows_crowd(const fluid *f)
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

/* What it takes of its resources becomes different. */
static void set_pace(fluid *f, fluid_flow *w, double pace)
{
    const double more = pace - w->pace;
    w->pace = pace;
    for (uint32_t k = 0; k < w->use->count; k++) {
        f->resources[w->use->parts[k].resource].load += w->use->parts[k].share * more;
        look_later(f, w->use->parts[k].resource);
    }
}

void fluid_windows_join(fluid *f, uint32_t index)
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
    /* No link became too full and none was waiting to be looked at: its rate is final, without an
     * event to solve anything. */
    if (f->queue_count == before && f->queue_first == before)
        fluid_set_rate(f, index, w->pace);
    else
        note_flow(f, index);
}

void fluid_windows_leave(fluid *f, uint32_t index)
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

bool fluid_windows_wait(const fluid *f)
{
    return f->queue_first < f->queue_count || f->changed_count;
}

/* ---- one link ---- */

/* The wait at which those who pass through put just so much on the link. */
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
        /* The inverse of the sum is nearly straight. */
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

/* As much for each as fills the room, but nobody more than he wants: `most` of his share, of which
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

/* Those who pass through stand first among f->shares, then those who begin here. */
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
    /* Waits are kept as sums along the route: only what this link changes is added. */
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
        /* Rounding must not look like a change, or links would be visited for ever. */
        if (fabs(pace - w->pace) <= 1e-12 * w->pace)
            continue;
        /* Noted once, however many links on its route change: its rate is set when all queues are
         * found. */
        if (w->mark != f->mark) {
            w->mark = f->mark;
            note_flow(f, who);
        }
        set_pace(f, w, pace);
    }
}

/* Just full, or without a queue. */
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
    /* Turns: each side has half, and what the other does not want. */
    for_through = room - c.wanted_own > room / 2 ? room - c.wanted_own : room / 2;
    if (c.own == 0)
        for_through = room;
    double delay = 0, level = INFINITY;
    if (c.wanted_through > for_through)
        delay = find_delay(f->shares, c.through, for_through, r->delay);
    for_own = room - (c.wanted_through < for_through ? c.wanted_through : for_through);
    if (c.wanted_own > for_own)
        level = find_level(f->shares + c.through, c.own, for_own);
    if (delay > r->delay) { /* it had shrunk too far: the next time it goes half as far at most */
        r->most_drops = r->drops < r->most_drops ? r->drops / 2 : r->most_drops / 2;
        r->drops = 0;
    } else if (delay < r->delay) {
        const double drop = ldexp(r->delay - delay, (int)r->drops);
        r->drops += r->drops < r->most_drops;
        delay = drop < r->delay ? r->delay - drop : 0;
    }
    apply(f, index, delay, level);
}

void fluid_windows_solve(fluid *f)
{
    uint64_t visits = 0;
    f->mark++;
    for (size_t i = 0; i < f->changed_count; i++)
        f->flows[f->changed[i]].mark = f->mark;
    /* A bound against numbers that never settle: rates are then those of the last visit. */
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
        fluid_set_rate(f, f->changed[i], f->flows[f->changed[i]].pace);
    f->changed_count = 0;
}
