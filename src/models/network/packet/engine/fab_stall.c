/* SPDX-License-Identifier: Apache-2.0 */
/* fab_stall.c - explains stalls: flows with lost packets, and PFC deadlocks (cycles of paused
 * ports).
 *
 * A port paused for a class waits for the switch at the other end of its wire: for the packets that
 * arrived there from it, and so for the ports where these are queued.  If those are paused too, the
 * search continues; a port visited twice closes a cycle, which cannot resolve itself.  A pause that
 * is no longer needed but will never end, because its resume frame was lost, is reported
 * separately. */
#include "fabric_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* Chains of pauses, their heads, and storms (PFC).
 *
 *     host 0 . -> . switch 8 . -> . switch 9 . -> . host 7
 *             p              q              o
 *
 * A switch pauses a neighbour because packets from there fill its buffer, since its longest queue
 * does not drain.  If the port of that queue, o, is paused itself, the chain continues there and is
 * one longer; if not, o is the head: the congested port.  The pause frame passes head and length on
 * to the port it pauses, so every port uses only local information. The head of most of a port's
 * paused time is found by a majority vote: each pause votes with its duration, and votes for other
 * heads cancel out.  Cost: a scan of the switch's ports per pause sent. */

enum { PAUSE_LINE = 400, NAME = 100 };

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

/* ---- pauses that nobody ends ---- */

static fab_queue *queue_of(const fab *f, const fab_port *p, unsigned class)
{
    return &f->queues[(size_t)fab_port_of(f, p) * FAB_CLASSES + class];
}

/* In Ethernet a pause lasts for the time in its frame, and is renewed as long as it is needed.
 * PAUSE_EXPIRES models the effect without these frames: a pause whose resume was lost lasts
 * PAUSE_TIME more, unless it was needed again in the meantime. */
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

/* Only the latest of several counts: earlier ones belong to pauses that were renewed. */
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

/* ---- after the run ---- */

static void name_port(const fab *f, uint32_t port, char *out, size_t room)
{
    const fab_port *p = &f->ports[port];
    snprintf(out, room, "%s %u port %u (to %s %u)", p->is_switch ? "switch" : "host", p->node,
             p->number, f->ports[p->peer].is_switch ? "switch" : "host", f->ports[p->peer].node);
}

/* The reference time of paused shares: until the last frame arrived. */
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
    /* A pause that goes on has not voted yet. */
    const uint64_t lasting = p->paused ? f->now - p->paused_since : 0;
    return lasting > p->main_head_ticks ? p->pause_head : p->main_head;
}

/* The head shared by most of the ports above the threshold; their number and how many have it. */
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
    /* A vote leaves a candidate, which need not have a majority: count its ports. */
    s->of_head = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        s->of_head +=
            p->pause_count && share_of(f, p) >= f->config.storm_share && head_of(f, p) == s->head;
    }
}

static void say_storm(const fab *f, const storm *s, fab_say say, void *context)
{
    char line[PAUSE_LINE], name[NAME];
    name_port(f, s->head, name, sizeof name);
    snprintf(line, sizeof line,
             "PFC storm: %" PRIu32 " ports were paused for %.0f %% of the time or more (%.0f %% at "
             "most); %" PRIu32 " of them because of %s",
             s->ports, 100 * f->config.storm_share, 100 * s->most, s->of_head, name);
    say(context, line);
}

/* From the port with the longest chain, hop by hop. */
static void say_chain(const fab *f, fab_say say, void *context)
{
    char line[PAUSE_LINE], name[NAME];
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
        name_port(f, at, name, sizeof name);
        snprintf(line, sizeof line, "  %s was paused because of", name);
        say(context, line);
        at = f->chains[(size_t)at * FAB_CHAIN_MOST + depth - 1];
    }
    name_port(f, at, name, sizeof name);
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
        name_port(f, i, one.port, sizeof one.port);
        name_port(f, head_of(f, p), one.head, sizeof one.head);
        visit(context, &one);
    }
    return count;
}

enum { FLOWS_SHOWN = 10, LINE = 240 };

typedef struct walk {
    const fab *f;
    uint8_t *state; /* by port: 0 not visited, 1 on the path, 2 done */
    uint32_t *path;
    uint32_t length;
    uint32_t cycle_from; /* in path; FAB_NONE: none was found */
} walk;

/* Is there a pause frame of this class among these? */
static bool has_pfc(const fab *f, uint32_t head, unsigned class)
{
    for (; head != FAB_NONE; head = f->frames[head].next)
        if (f->frames[head].kind == FAB_FRAME_PFC && f->frames[head].class == class)
            return true;
    return false;
}

/* Is the frame that would end the pause of `port` queued at `host`, which is paused itself?  Only
 * with rules.holds_all_acks. */
static bool is_held_at_host(const fab *f, const fab_port *port, const fab_port *host)
{
    const unsigned own = f->config.ack_high_prio ? 0 : FAB_FLOW_CLASS;
    bool is_held = false;
    for (unsigned class = 1; class < FAB_CLASSES; class ++)
        is_held |= (port->paused >> class & 1) && has_pfc(f, f->nics[host->nic].ack_head, class);
    return is_held && (host->paused >> own & 1);
}

/* Is a packet from `port` queued at `out`, which must not send it? */
static bool waits_for(const fab *f, uint32_t port, uint32_t out)
{
    const uint32_t in = f->ports[port].peer;
    if (!f->ports[out].is_switch)
        return out == in && is_held_at_host(f, &f->ports[port], &f->ports[out]);
    for (unsigned class = 1; class < FAB_CLASSES; class ++) {
        if (!(f->ports[out].paused >> class & 1))
            continue;
        uint32_t i = f->queues[(size_t)out * FAB_CLASSES + class].head;
        for (; i != FAB_NONE; i = f->frames[i].next)
            if (f->frames[i].in == in)
                return true;
    }
    return false;
}

/* Depth-first; a path never visits a port twice, so it is no longer than the number of ports. */
static void follow(walk *w, uint32_t port)
{
    const fab *f = w->f;
    const fab_node *node = &f->nodes[f->ports[f->ports[port].peer].node];
    w->state[port] = 1;
    w->path[w->length++] = port;
    for (uint32_t i = 0; i < node->port_count && w->cycle_from == FAB_NONE; i++) {
        const uint32_t out = f->ports_of[node->first_port + i];
        if (!f->ports[out].paused || w->state[out] == 2 || !waits_for(f, port, out))
            continue;
        if (w->state[out] == 1) {
            for (uint32_t k = 0; k < w->length; k++)
                if (w->path[k] == out)
                    w->cycle_from = k;
        } else {
            follow(w, out);
        }
    }
    if (w->cycle_from == FAB_NONE) {
        w->length--;
        w->state[port] = 2;
    }
}

static void say_cycle(const fab *f, fab_say say, void *context)
{
    char line[LINE], name[LINE / 2];
    walk w = {.f = f, .cycle_from = FAB_NONE};
    w.state = orr_alloc(f->port_count, 1);
    w.path = orr_alloc(f->port_count, sizeof *w.path);
    for (uint32_t i = 0; i < f->port_count && w.state && w.path && w.cycle_from == FAB_NONE; i++)
        if (f->ports[i].paused && w.state[i] == 0)
            follow(&w, i);
    if (w.cycle_from != FAB_NONE) {
        say(context, "deadlock: these ports pause each other in a cycle:");
        for (uint32_t k = w.cycle_from; k < w.length; k++) {
            name_port(f, w.path[k], name, sizeof name);
            snprintf(line, sizeof line, "  %s waits for the next one", name);
            say(context, line);
        }
    }
    orr_free(w.state);
    orr_free(w.path);
}

static const char *reason(const fab *f, const fab_flow *w)
{
    const fab_port *p = &f->ports[w->port];
    if (!w->line_rate)
        return "it has not started";
    if (p->is_down)
        return "the link of its host is down";
    if (!w->is_listed)
        return "there is no route over working links";
    if (p->paused >> w->class & 1)
        return "its host is paused";
    if (w->timeouts)
        return "all its packets are lost, despite retransmission";
    if (w->frames)
        return "its packets are stuck in the network";
    if (w->sent > w->acked && w->expected >= w->sent && w->expected < f->config.ack_interval)
        return "its receiver acknowledges nothing before L2_ACK_INTERVAL bytes, and its window is "
               "smaller";
    if (w->sent > w->acked)
        return "its packets were lost and nothing triggers a retransmission";
    return "it has nothing to wait for";
}

/* Failed links, and the one with the most losses: the likely culprits. */
static void say_links(const fab *f, fab_say say, void *context)
{
    char line[LINE], name[LINE / 2];
    uint32_t worst = FAB_NONE, down = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        if (f->ports[i].lost && (worst == FAB_NONE || f->ports[i].lost > f->ports[worst].lost))
            worst = i;
        if (i % 2 || !f->ports[i].is_down || down++ >= FLOWS_SHOWN)
            continue;
        name_port(f, i, name, sizeof name);
        snprintf(line, sizeof line, "the link of %s is down", name);
        say(context, line);
    }
    if (down > FLOWS_SHOWN) {
        snprintf(line, sizeof line, "and %u more links are down", down - FLOWS_SHOWN);
        say(context, line);
    }
    if (worst == FAB_NONE)
        return;
    name_port(f, f->ports[worst].peer, name, sizeof name);
    snprintf(line, sizeof line, "%u packets that left %s were lost on the link",
             f->ports[worst].lost, name);
    say(context, line);
}

/* ---- ports that will never be resumed ---- */

/* Is any packet that entered through `in` still at its switch? */
static bool is_filled_from(const fab *f, uint32_t in, unsigned class)
{
    const fab_node *n = &f->nodes[f->ports[in].node];
    for (uint32_t i = 0; i < n->port_count; i++) {
        const uint32_t out = f->ports_of[n->first_port + i];
        uint32_t at = f->queues[(size_t)out * FAB_CLASSES + class].head;
        for (; at != FAB_NONE; at = f->frames[at].next)
            if (f->frames[at].in == in)
                return true;
    }
    return false;
}

/* Is a pause frame for the other end of `from` still in flight? */
static bool is_pfc_under_way(const fab *f, const fab_port *from, unsigned class)
{
    for (uint32_t i = 0; i < from->wire_count; i++) {
        const uint32_t at = (from->wire_first + i) & (from->wire_room - 1);
        const fab_frame *m = &f->frames[from->wire[at].frame];
        if (m->kind == FAB_FRAME_PFC && m->class == class)
            return true;
    }
    const uint32_t head = from->is_switch
                              ? f->queues[(size_t)fab_port_of(f, from) * FAB_CLASSES].head
                              : f->nics[from->nic].ack_head;
    return has_pfc(f, head, class);
}

/* Why a pause will never end although its sender has no reason for it; NULL: it has a reason, or a
 * frame is in flight. In the reference frames lost on a failing link stay in the accounts of the
 * buffer (packet-network.md 9). */
static const char *why_for_good(const fab *f, const fab_port *p, unsigned class)
{
    const fab_port *from = &f->ports[p->peer];
    const bool ends_by_itself = !from->is_switch && f->rules.host_pauses_expire;
    if (p->is_down || ends_by_itself || is_pfc_under_way(f, from, class))
        return NULL;
    if (!(from->pause_sent >> class & 1))
        return !f->rules.host_pauses_expire
                   ? "the frame that should have resumed it was lost on the link"
                   : "the frame that should have resumed it was lost on the link (PAUSE_EXPIRES 1 "
                     "would resume it)";
    if (!f->rules.frees_lost_buffer && !is_filled_from(f, p->peer, class))
        return "the buffer there still counts packets that were lost when a link failed";
    return NULL;
}

static void say_pauses(const fab *f, fab_say say, void *context)
{
    char line[LINE + LINE / 2], name[LINE / 2];
    uint64_t found = 0;
    for (uint32_t i = 0; i < f->port_count; i++)
        for (unsigned class = 1; class < FAB_CLASSES && f->ports[i].paused; class ++) {
            const char *why =
                f->ports[i].paused >> class & 1 ? why_for_good(f, &f->ports[i], class) : NULL;
            if (!why || found++ >= FLOWS_SHOWN)
                continue;
            name_port(f, i, name, sizeof name);
            snprintf(line, sizeof line, "%s is paused for good (class %u): %s", name, class, why);
            say(context, line);
        }
    if (found > FLOWS_SHOWN) {
        snprintf(line, sizeof line, "and %" PRIu64 " more are paused for good",
                 found - FLOWS_SHOWN);
        say(context, line);
    }
}

void fab_explain(const fab *f, fab_say say, void *context)
{
    char line[LINE];
    uint32_t *flows;
    size_t count;
    if (!fab_flows_under_way(f, &flows, &count))
        return; /* better no explanation than half of it */
    for (size_t i = 0; i < count && i < FLOWS_SHOWN; i++) {
        const fab_flow *w = &f->flows[flows[i]];
        snprintf(line, sizeof line,
                 "flow %u -> %u (port %u): %" PRIu64 " of %" PRIu64 " bytes acknowledged, %" PRIu64
                 " sent: %s",
                 w->src, w->dst, w->src_port, w->acked, w->size, w->sent, reason(f, w));
        say(context, line);
    }
    if (count > FLOWS_SHOWN) {
        snprintf(line, sizeof line, "and %zu more", count - FLOWS_SHOWN);
        say(context, line);
    }
    orr_free(flows);
    say_links(f, say, context);
    say_pauses(f, say, context);
    say_cycle(f, say, context);
}
