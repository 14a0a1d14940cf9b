/* SPDX-License-Identifier: Apache-2.0 */
/* fab_stall.c - why nothing moves: flows whose packets are lost, and ports that pause each other in
 * a cycle.
 *
 * A port that must not send a class waits for the switch at the other end of its wire: for the
 * packets that came in there from it, and so for the ports at which these stand.  If those are
 * paused too, the question goes on; a port met twice closes a cycle, which nothing inside it can
 * open.  A pause that nobody wants any more and that no frame will end, because that was lost, is
 * told of by itself. */
#include "fabric_impl.h"

#include <inttypes.h>
#include <stdio.h>

enum { FLOWS_SHOWN = 10, LINE = 240 };

typedef struct walk {
    const fab *f;
    uint8_t *state; /* by port: 0 not seen, 1 on the way, 2 done */
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

/* Does the frame that would end the pause of `port` stand at `host`, which is paused itself?  Only
 * with rules.holds_all_acks. */
static bool is_held_at_host(const fab *f, const fab_port *port, const fab_port *host)
{
    const unsigned own = f->config.ack_high_prio ? 0 : FAB_FLOW_CLASS;
    bool is_held = false;
    for (unsigned class = 1; class < FAB_CLASSES; class ++)
        is_held |= (port->paused >> class & 1) && has_pfc(f, f->nics[host->nic].ack_head, class);
    return is_held && (host->paused >> own & 1);
}

/* Does a packet that came from `port` stand at `out`, which must not send it? */
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

/* Depth first; a path never meets a port twice, so it is as long as there are ports at most. */
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
            fab_name_port(f, w.path[k], name, sizeof name);
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
        return "there is no route over links that work";
    if (p->paused >> w->class & 1)
        return "its host is paused";
    if (w->timeouts)
        return "nothing of what it sends comes through, however often it tries";
    if (w->frames)
        return "its packets stand in the network";
    if (w->sent > w->acked && w->expected >= w->sent && w->expected < f->config.ack_interval)
        return "its receiver acknowledges nothing before L2_ACK_INTERVAL bytes, and its window is "
               "smaller";
    if (w->sent > w->acked)
        return "what it has sent was lost and nothing makes it send that again";
    return "it has nothing to wait for";
}

/* Links that do not work, and the one on which most was lost: there is where to look. */
static void say_links(const fab *f, fab_say say, void *context)
{
    char line[LINE], name[LINE / 2];
    uint32_t worst = FAB_NONE, down = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        if (f->ports[i].lost && (worst == FAB_NONE || f->ports[i].lost > f->ports[worst].lost))
            worst = i;
        if (i % 2 || !f->ports[i].is_down || down++ >= FLOWS_SHOWN)
            continue;
        fab_name_port(f, i, name, sizeof name);
        snprintf(line, sizeof line, "the link of %s is down", name);
        say(context, line);
    }
    if (down > FLOWS_SHOWN) {
        snprintf(line, sizeof line, "and %u more links are down", down - FLOWS_SHOWN);
        say(context, line);
    }
    if (worst == FAB_NONE)
        return;
    fab_name_port(f, f->ports[worst].peer, name, sizeof name);
    snprintf(line, sizeof line, "%u packets that left %s were lost on the link",
             f->ports[worst].lost, name);
    say(context, line);
}

/* ---- ports that nobody will ever let go on ---- */

/* Does anything that came in through `in` still stand at its switch? */
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

/* Is a pause frame for the other end of `from` still under way? */
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

/* Why a pause will never end though whoever made it has no reason for it; NULL: that one has, or a
 * frame is under way. In the reference what a failing link takes away stays in the accounts of the
 * buffer (packet-network.md 9). */
static const char *why_for_good(const fab *f, const fab_port *p, unsigned class)
{
    const fab_port *from = &f->ports[p->peer];
    const bool ends_by_itself = !from->is_switch && f->rules.host_pauses_expire;
    if (p->is_down || ends_by_itself || is_pfc_under_way(f, from, class))
        return NULL;
    if (!(from->pause_sent >> class & 1))
        return !f->rules.host_pauses_expire
                   ? "the frame that should have let it go on was lost on the link"
                   : "the frame that should have let it go on was lost on the link (PAUSE_EXPIRES "
                     "1: it would go on)";
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
            fab_name_port(f, i, name, sizeof name);
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
        return; /* nothing is better than half of it */
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
