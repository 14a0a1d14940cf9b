/* SPDX-License-Identifier: Apache-2.0 */
/* part_links.c - links that delay messages, in a run on several threads (docs/design/threads.md).
 *
 * Each part has a network of its own and serves the links of its ranks.  A packet that enters a
 * link is at the other end no sooner than the link's latency: so it is passed on now, if the next
 * link is served elsewhere, and its sender is told now when it will be there.  A message is never
 * in two parts at once, and nobody writes what another reads.
 *
 * Invariant: of each event of one thread's run there is one here, or two halves in different parts:
 * the sender's, and then the receiver's. */
#include "match.h"
#include "parts.h"

#include "models/network/link_servers.h"
#include "models/network/net_table.h"
#include "models/network/symmetry.h"

bool part_has_links(const orr_sim *s)
{
    return s->net_ops == &orr__net_aware || s->net_ops == &orr__net_graph;
}

bool part_can_divide_links(const orr_sim *s)
{
    return s->net_ops == &orr__net_aware || orr__graph_can_divide(s->net);
}

uint64_t part_links_delay(const orr_sim *s, const uint8_t *part_of)
{
    return s->net_ops == &orr__net_aware ? orr__aware_least_delay(s->net, part_of)
                                         : orr__graph_least_delay(s->net);
}

static part_note note_of(const orr_sim *s, part_news what, uint64_t delay, clk_trail trail)
{
    const uint64_t now = clk_now(s->clock);
    return (part_note){.what = what, .since = now, .at = now + delay, .trail = trail};
}

/* The sender's half of an arrival; its place is before that of the receiver's half. */
static void tell_origin(
    orr_sim *s, uint32_t origin_part, uint64_t origin, uint64_t delay, clk_trail trail)
{
    part_note note = note_of(s, PART_THERE, delay, trail);
    note.trail.sub = 0;
    note.origin = origin;
    clk_count(s->clock, -1); /* of two halves one counts */
    part_tell(s->part, origin_part, &note);
}

static bool pass_on(orr_sim *s,
                    uint64_t delay,
                    const net_packet *k,
                    uint32_t keeper,
                    void (*arrive)(void *servers, uint64_t packet),
                    uint64_t packet)
{
    run_part *p = s->part;
    const uint32_t to = p->part_of[keeper], src = p->part_of[k->m.src];
    const msg_moving v = msg_moving_of(s, k->m.token);
    const bool tells = v.is_awaited && k->at == k->m.dst && src != to;
    clk_trail trail;
    if (to == p->index && !tells) {
        clk_after(s->clock, delay, arrive, p->servers, packet);
        return false;
    }
    /* What is faster than all know breaks what they rely on: one thread does it again. */
    if (delay < part_least_delay(p) || clk_now(s->clock) + delay > CLK_LAST) {
        clk_stop(s->clock);
        return false;
    }
    if (to == p->index) {
        clk_after(s->clock, delay, arrive, p->servers, packet);
        clk_make_second_half(s->clock, delay);
        tell_origin(s, src, v.origin, delay, clk_last_trail(s->clock));
        return false;
    }
    if (tells && src == p->index) {
        clk_after(s->clock, delay, msg_tell_sender, s, v.origin);
        clk_count(s->clock, -1);
        trail = clk_last_trail(s->clock);
    } else {
        trail = clk_reserve(s->clock);
        if (tells)
            tell_origin(s, src, v.origin, delay, trail);
    }
    part_note note = note_of(s, PART_PACKET, delay, trail);
    note.trail.sub = tells;
    note.tag = v.tag;
    note.src = k->m.src;
    note.dst = k->m.dst;
    note.size = k->m.size;
    note.sent = v.since;
    note.origin = v.origin;
    note.is_awaited = v.is_awaited;
    note.hash = k->hash;
    note.device = k->at;
    /* Who waits for it keeps what it is to be told. */
    if (!(v.is_origin && v.is_awaited))
        msg_drop_moving(s, k->m.token);
    part_tell(p, to, &note);
    return true;
}

void part_take_packet(orr_sim *s, const part_note *note)
{
    const run_part *p = s->part;
    clk_call call = {msg_tell_sender, s, note->origin};
    /* All that others do matters here later than what this part may have run. */
    if (note->at <= clk_now(s->clock)) {
        clk_stop(s->clock);
        return;
    }
    if (note->what == PART_PACKET) {
        const msg_moving v = {.tag = note->tag,
                              .src = note->src,
                              .dst = note->dst,
                              .size = note->size,
                              .since = note->sent,
                              .origin = note->origin,
                              .is_awaited = note->is_awaited};
        net_packet k = {.m = {note->src, note->dst, note->size, note->origin},
                        .hash = note->hash,
                        .at = note->device};
        /* One that was sent from here to here is at home again. */
        const bool is_home = !(note->origin & MSG_MOVING) && p->part_of[note->dst] == p->index;
        if ((!is_home && !msg_add_moving(s, &v, &k.m.token)) ||
            !net_servers_take(p->servers, &k, &call.action, &call.context, &call.argument)) {
            run_no_memory(s);
            return;
        }
    }
    part_put(s, note->since, note->at, note->trail, call);
}

bool part_make_links(run_part *p)
{
    orr_sim *s = p->sim;
    orr__net_config own = {s->net_config, s->topology, NULL};
    const net_division division = {.pass_on = pass_on};
    orr_error unused;
    own.config.size = sizeof own;
    s->net = NULL;
    if (s->net_ops->create(&own.config, &s->net, &unused))
        return false;
    p->servers = s->net_ops == &orr__net_aware ? orr__aware_divide(s->net, s, &division)
                                               : orr__graph_divide(s->net, s, &division);
    return p->servers != NULL;
}

void part_drop_links(run_part *p)
{
    if (p->sim && p->sim->net && part_has_links(p->sim))
        p->sim->net_ops->destroy(p->sim->net);
}

bool part_add_links(orr_sim *s, const run_part *p)
{
    if (s->net_ops == &orr__net_aware)
        return orr__aware_add(s->net, p->sim->net);
    orr__graph_add(s->net, p->sim->net);
    return true;
}
