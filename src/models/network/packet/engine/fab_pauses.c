/* SPDX-License-Identifier: Apache-2.0 */
/* fab_pauses.c - who pauses whom: chains of pauses, their heads, and storms (PFC).
 *
 *     host 0 . -> . switch 8 . -> . switch 9 . -> . host 7
 *             p              q              o
 *
 * A switch pauses a neighbour because packets from there fill its buffer, and they do because its
 * longest queue does not drain.  If the port of that queue, o, is paused itself, the pause goes on
 * there and the chain is one longer; if not, o is the head: the place where more comes than can
 * leave.  The pause frame tells the port that it pauses of the head and of the length, so every
 * port knows only what its neighbours told it. A head stands for most of the time that a port was
 * paused by a vote: each pause votes with its length, unlike votes cancel out.  Cost: a look at the
 * ports of the switch for each pause that is sent. */
#include "fabric_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE = 400, NAME = 100 };

/* ---- while the network runs ---- */

/* The port of the longest queue of a class at a switch; a host's own port. */
static uint32_t longest_queue(const fab *f, const fab_port *from, unsigned class)
{
    const fab_node *n = &f->nodes[from->node];
    uint32_t longest = fab_port_of(f, from);
    uint64_t most = 0;
    for (uint32_t i = 0; i < n->port_count && from->is_switch; i++) {
        const uint32_t port = f->ports_of[n->first_port + i];
        const uint64_t bytes = f->queues[(size_t)port * FAB_CLASSES + class].egress;
        if (bytes > most) {
            most = bytes;
            longest = port;
        }
    }
    return longest;
}

void fab_pause_note_cause(const fab *f, const fab_port *from, fab_frame *pfc)
{
    const uint32_t at = longest_queue(f, from, pfc->class);
    const fab_port *o = &f->ports[at];
    const bool goes_on = o->is_switch && (o->paused >> pfc->class & 1) && o->pause_depth > 0;
    const uint32_t depth = goes_on ? o->pause_depth + 1u : 1u;
    pfc->payload = depth < FAB_CHAIN_MOST ? depth : FAB_CHAIN_MOST;
    pfc->from = at;
    pfc->to = goes_on ? o->pause_head : at;
}

void fab_pause_begins(fab *f, fab_port *p, const fab_frame *pfc)
{
    const uint32_t port = fab_port_of(f, p);
    p->pause_depth = (uint8_t)pfc->payload;
    p->pause_head = pfc->to;
    if (p->pause_depth > p->deepest)
        p->deepest = p->pause_depth;
    if (p->pause_depth)
        f->chains[(size_t)port * FAB_CHAIN_MOST + p->pause_depth - 1] = pfc->from;
}

void fab_pause_ends(fab *f, fab_port *p)
{
    const uint64_t ticks = f->now - p->paused_since;
    if (p->pause_head == p->main_head)
        p->main_head_ticks += ticks;
    else if (p->main_head_ticks >= ticks)
        p->main_head_ticks -= ticks;
    else {
        p->main_head = p->pause_head;
        p->main_head_ticks = ticks - p->main_head_ticks;
    }
    if (ticks > p->longest_pause)
        p->longest_pause = ticks;
}

/* ---- pauses that nobody takes back ---- */

static fab_queue *queue_of(const fab *f, const fab_port *p, unsigned class)
{
    return &f->queues[(size_t)fab_port_of(f, p) * FAB_CLASSES + class];
}

/* In Ethernet a pause holds for the time that its frame says, and whoever wants it longer says it
 * again.  With PAUSE_EXPIRES what comes of that is modelled, without these frames: a pause whose
 * end was lost lasts for PAUSE_TIME more, unless it was wanted again in the meantime. */
void fab_pause_is_unresumed(fab *f, fab_port *p, const fab_frame *pfc)
{
    if (!f->config.pause_expires || pfc->pauses || !(p->paused >> pfc->class & 1))
        return;
    p->unresumed |= (uint8_t)(1u << pfc->class);
    queue_of(f, p, pfc->class)->expiries++;
    const uint64_t most = FAB_LATE / 1000 / f->unit;
    const uint64_t us = f->config.pause_time_us < most ? f->config.pause_time_us : most;
    (void)fab_after(f, us * 1000 * f->unit, FAB_EV_PAUSE_OVER,
                    fab_port_of(f, p) | (uint32_t)pfc->class << FAB_CLASS_SHIFT);
}

/* Only the latest of several counts: those before it were of pauses that came again. */
void fab_pause_is_over(fab *f, uint32_t who)
{
    fab_port *p = &f->ports[who & FAB_PORT_MASK];
    const unsigned class = who >> FAB_CLASS_SHIFT;
    if (class && --queue_of(f, p, class)->expiries)
        return;
    const uint8_t over = (uint8_t)(class ? p->unresumed & 1u << class : p->paused);
    p->unresumed &= (uint8_t)~over;
    fab_port_set_paused(f, p, (uint8_t)(p->paused & ~over));
    fab_port_try(f, p);
}

/* ---- afterwards ---- */

void fab_name_port(const fab *f, uint32_t port, char *out, size_t room)
{
    const fab_port *p = &f->ports[port];
    snprintf(out, room, "%s %u port %u (to %s %u)", p->is_switch ? "switch" : "host", p->node,
             p->number, f->ports[p->peer].is_switch ? "switch" : "host", f->ports[p->peer].node);
}

/* The time to which paused shares relate: until the last frame came. */
static uint64_t run_ticks(const fab *f)
{
    return f->last_arrival ? f->last_arrival : 1;
}

static double share_of(const fab *f, const fab_port *p)
{
    const double share = (double)fab_port_paused_ticks(f, p) / (double)run_ticks(f);
    return share < 1 ? share : 1;
}

static uint32_t head_of(const fab *f, const fab_port *p)
{
    const uint64_t lasting = p->paused ? f->now - p->paused_since : 0;
    return lasting > p->main_head_ticks ? p->pause_head : p->main_head;
}

/* The head that most of the ports above the threshold have; how many there are and have it. */
typedef struct storm {
    uint32_t ports, head, of_head;
    double most; /* the largest share */
} storm;

static void find_storm(const fab *f, storm *s)
{
    *s = (storm){.head = FAB_NONE};
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        const double share = p->pause_count ? share_of(f, p) : 0;
        if (!p->pause_count || share < f->config.storm_share)
            continue;
        const uint32_t head = head_of(f, p);
        s->ports++;
        s->most = share > s->most ? share : s->most;
        if (s->of_head == 0)
            s->head = head;
        s->of_head = head == s->head ? s->of_head + 1 : s->of_head - 1;
    }
    s->of_head = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        s->of_head +=
            p->pause_count && share_of(f, p) >= f->config.storm_share && head_of(f, p) == s->head;
    }
}

static void say_storm(const fab *f, const storm *s, fab_say say, void *context)
{
    char line[LINE], name[NAME];
    fab_name_port(f, s->head, name, sizeof name);
    snprintf(line, sizeof line,
             "PFC storm: %" PRIu32 " ports were paused for %.0f %% of the time or more (%.0f %% at "
             "most); %" PRIu32 " of them because of %s",
             s->ports, 100 * f->config.storm_share, 100 * s->most, s->of_head, name);
    say(context, line);
}

/* From the port with the longest chain on, one after the other. */
static void say_chain(const fab *f, fab_say say, void *context)
{
    char line[LINE], name[NAME];
    uint32_t first = FAB_NONE;
    for (uint32_t i = 0; i < f->port_count; i++)
        if (f->ports[i].deepest >= 2 &&
            (first == FAB_NONE || f->ports[i].deepest > f->ports[first].deepest))
            first = i;
    if (first == FAB_NONE)
        return;
    uint32_t at = first;
    snprintf(line, sizeof line, "longest chain of pauses, %u:", f->ports[first].deepest);
    say(context, line);
    for (unsigned depth = f->ports[first].deepest; depth > 0; depth--) {
        fab_name_port(f, at, name, sizeof name);
        snprintf(line, sizeof line, "  %s was paused because of", name);
        say(context, line);
        at = f->chains[(size_t)at * FAB_CHAIN_MOST + depth - 1];
    }
    fab_name_port(f, at, name, sizeof name);
    snprintf(line, sizeof line, "  %s, %s", name,
             f->ports[at].is_switch ? "whose queue was the longest" : "whose NIC made a pause");
    say(context, line);
}

void fab_explain_pauses(const fab *f, fab_say say, void *context)
{
    storm s;
    if (!f->figures.pauses)
        return;
    find_storm(f, &s);
    if (s.ports)
        say_storm(f, &s, say, context);
    say_chain(f, say, context);
}

uint32_t fab_paused_ports(const fab *f, fab_pause_visit visit, void *context)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        fab_port_pauses one = {.pauses = p->pause_count,
                               .ticks = fab_port_paused_ticks(f, p),
                               .longest_ticks = p->longest_pause,
                               .chain = p->deepest,
                               .share = share_of(f, p)};
        count += p->pause_count > 0;
        if (!p->pause_count || !visit)
            continue;
        if (p->paused && f->now - p->paused_since > one.longest_ticks)
            one.longest_ticks = f->now - p->paused_since;
        fab_name_port(f, i, one.port, sizeof one.port);
        fab_name_port(f, head_of(f, p), one.head, sizeof one.head);
        visit(context, &one);
    }
    return count;
}
