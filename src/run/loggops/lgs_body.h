/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_body.h - event handling: the engine, compiled into each file that defines rules.
 *
 *     static const lgs_rules mine = {.name = "mine", ...};
 *     static orr_code run(lgs_sim *s, orr_error *err) { return lgs_run_events(s, &mine, err); }
 *
 * Everything is inline, so that the rules are compile-time constants.  docs/spec/goal.md 3.3 has
 * the formulas, 3.4 the order; docs/design/loggops.md says where ours differ and why.  All
 * arithmetic is unsigned 64-bit and wraps, as in LogGOPSim. */
#ifndef ORR_RUN_LGS_BODY_H
#define ORR_RUN_LGS_BODY_H

#include "lgs_impl.h"
#include "lgs_parts.h"

#define LGS_INLINE static inline __attribute__((always_inline))
/* Rare steps stay out of line, so that the loop keeps its registers: 4 % fewer instructions. */
#define LGS_APART static __attribute__((noinline, unused))

/* ---- order of release (goal.md 3.4) */

/* Sends before receives before calculations, equal ones in order of release. */
LGS_APART void lgs_sort_batch(lgs_sim *s, lgs_batch *b)
{
    s->sort_room.len = 0;
    lgs_ready *copy =
        (lgs_ready *)(void *)orr_buf_reserve(&s->sort_room, b->count * sizeof(lgs_ready));
    if (!copy) {
        s->has_failed = true;
        return;
    }
    memcpy(copy, b->items, b->count * sizeof *copy);
    /* Three passes instead of a sort: stable, batches are short, and there are three kinds. */
    uint32_t at = 0;
    for (int kind = ORR_GOAL_SEND; kind <= ORR_GOAL_CALC; kind++) {
        for (uint32_t i = 0; i < b->count; i++) {
            if (copy[i].kind == kind)
                b->items[at++] = copy[i];
        }
    }
}

LGS_INLINE uint64_t lgs_issue_time(lgs_sim *s,
                                   uint32_t host,
                                   const lgs_ready *r,
                                   const lgs_rules *rules)
{
    const orr__goal_node *n = lgs_node(s, host, r->node);
    uint64_t at = *lgs_cpu(s, host, n->cpu);
    if (r->kind == ORR_GOAL_SEND)
        at = lgs_max(at, *lgs_send_nic(s, host, n->nic));
    /* Three lower bounds: its clocks, the end of its predecessor (which may have run on another
     * CPU), and now, since nothing may be issued into the past. */
    return rules->waits_for_release ? lgs_max(at, lgs_max(r->at, s->now)) : at;
}

LGS_INLINE void lgs_issue(lgs_sim *s, lgs_batch *b, bool is_start, const lgs_rules *rules)
{
    /* Before the sort: a part that has to insert something later needs the order of release. */
    for (uint32_t i = 0; rules->is_parted && i < b->count; i++)
        b->items[i].order = i & LGS_MOST_ORDER;
    if (b->count > 1) {
        if (rules->order)
            s->has_failed |= !rules->order(s, b);
        else
            lgs_sort_batch(s, b);
    }
    for (uint32_t i = 0; i < b->count; i++) {
        const uint32_t e = lgs_event_take(&s->queue);
        if (!e) {
            s->has_failed = true;
            return;
        }
        if (rules->is_folded)
            lgs_fold_issue(s, e);
        s->queue.events[e] =
            (lgs_event){.time = is_start ? 0 : lgs_issue_time(s, b->host, &b->items[i], rules),
                        /* Numbers follow the order of issue, and events at one time run by number:
                         * that is the whole tie order (goal.md 3.4). */
                        .number = s->events++,
                        .host = b->host,
                        .node = b->items[i].node};
        if (rules->is_parted)
            lgs_part_issue(s, e, b->host, lgs_part_order(&b->items[i]));
        else if (!lgs_queue_push(&s->queue, e))
            s->has_failed = true;
    }
}

/* Hosts in ascending order. An event touches its own host and at most the other end of a
 * message. */
LGS_INLINE void lgs_issue_all(lgs_sim *s, const lgs_rules *rules)
{
    if (s->batches == 2 && s->batch[0].host > s->batch[1].host) {
        lgs_issue(s, &s->batch[1], false, rules);
        lgs_issue(s, &s->batch[0], false, rules);
        return;
    }
    for (uint32_t i = 0; i < s->batches; i++)
        lgs_issue(s, &s->batch[i], false, rules);
}

/* ---- busy clocks */

/* Events that compete for the same clocks: calculations for a CPU, sends and messages for a CPU and
 * a NIC. */
LGS_INLINE lgs_busy *lgs_busy_group(lgs_sim *s,
                                    uint32_t host,
                                    const orr__goal_node *n,
                                    uint32_t what)
{
    if (!s->busy)
        return NULL;
    const size_t cpu = (size_t)host * s->cpus + n->cpu, cpus = (size_t)s->hosts * s->cpus;
    if (what == 0)
        return &s->busy[cpu];
    return &s->busy[cpus + ((what - 1) * cpus + cpu) * s->nics + n->nic];
}

LGS_APART void lgs_put_off(lgs_sim *s, lgs_busy *g, uint32_t e, uint64_t until)
{
    lgs_event *ev = &s->queue.events[e];
    ev->time = until;
    /* Append to the one in the queue.  An event with a smaller number goes into the queue itself
     * and leads the group: it would have been first in any case. */
    if (g && ev->number > g->first) {
        lgs_list_push(s->queue.events, &g->waiting, e);
        s->waiting++;
        return;
    }
    if (g) {
        g->first = ev->number;
        lgs_part_group(s, g);
    }
    if (!lgs_queue_push(&s->queue, e))
        s->has_failed = true;
}

/* The event with that number has run: the next of its group is retried when the clocks are free. */
LGS_APART void lgs_next_turn(lgs_sim *s, lgs_busy *g, uint64_t number, uint64_t free_at)
{
    /* Not the leader of its group: it came from outside while the group waits, and the leader will
     * be retried in its own time. */
    if (!g || g->first != number)
        return;
    g->first = UINT64_MAX;
    if (lgs_list_is_empty(&g->waiting))
        return;
    const uint32_t e = lgs_list_pop(s->queue.events, &g->waiting);
    s->waiting--;
    s->queue.events[e].time = free_at;
    g->first = s->queue.events[e].number;
    lgs_part_group(s, g);
    if (!lgs_queue_push(&s->queue, e))
        s->has_failed = true;
}

/* ---- costs */

/* Cost of `more` bytes beyond the first at G: exact and wrapping for an integer G; else rounded
 * down. Two formulas, because doubles are exact to 2^53 only, and the reference multiplies
 * integers and wraps. */
LGS_INLINE uint64_t lgs_wire_time(const lgs_sim *s, uint64_t more)
{
    return s->is_G_whole ? more * s->G_whole : lgs_whole((double)more * s->opt.G);
}

/* Where an empty message costs no byte, size - 1 wraps on purpose: the reference subtracts
 * without looking, and its results are kept. */
LGS_INLINE uint64_t lgs_more_bytes(uint64_t size, const lgs_rules *rules)
{
    return rules->empty_costs_a_byte && size == 0 ? 0 : size - 1;
}

/* ---- the four kinds of events; true: the event is consumed */

LGS_INLINE bool lgs_on_calc(lgs_sim *s, uint32_t e, const orr__goal_node *n, const lgs_rules *rules)
{
    lgs_event *ev = &s->queue.events[e];
    const uint32_t host = ev->host, node = ev->node;
    uint64_t *cpu = lgs_cpu(s, host, n->cpu);
    lgs_busy *g = lgs_busy_group(s, host, n, 0);
    if (*cpu > ev->time) {
        lgs_put_off(s, g, e, *cpu);
        return false;
    }
    const uint64_t now = ev->time;
    *cpu = now + n->size + lgs_noise(s, host, now, n->size);
    lgs_start(s, host, node, now, rules->waits_for_release);
    lgs_finish(s, host, node, *cpu);
    if (s->watch)
        lgs_watch_span(s, &(lgs_span){.start = now,
                                      .end = now + n->size,
                                      .host = host,
                                      .node = node,
                                      .kind = LGS_SPAN_CALC,
                                      .cpu = n->cpu});
    /* ev has not moved: released operations become events only in lgs_issue_all. */
    lgs_next_turn(s, g, ev->number, *cpu);
    return true;
}

LGS_APART void lgs_watch_send(
    lgs_sim *s, uint32_t host, uint32_t node, uint64_t now, uint64_t end, uint64_t noise)
{
    const orr__goal_node *n = lgs_node(s, host, node);
    s->watch->sent_at[n - s->nodes] = now;
    lgs_span span = {.start = now,
                     .end = end,
                     .host = host,
                     .node = node,
                     .cpu = n->cpu,
                     .kind = LGS_SPAN_SEND,
                     .peer = n->peer,
                     .size = n->size};
    lgs_watch_span(s, &span);
    span.kind = LGS_SPAN_NOISE;
    span.start = end;
    span.end = end + noise;
    lgs_watch_span(s, &span);
}

LGS_INLINE bool lgs_on_send(
    lgs_sim *s, uint32_t e, const orr__goal_node *n, const lgs_rules *rules, orr_error *err)
{
    lgs_event *ev = &s->queue.events[e];
    const uint32_t host = ev->host, node = ev->node;
    uint64_t *cpu = lgs_cpu(s, host, n->cpu), *nic = lgs_send_nic(s, host, n->nic);
    lgs_busy *g = lgs_busy_group(s, host, n, 1);
    const uint64_t now = ev->time, free_at = lgs_max(*cpu, *nic);
    if (free_at > now) {
        lgs_put_off(s, g, e, free_at);
        return false;
    }
    const uint64_t more = lgs_more_bytes(n->size, rules), number = ev->number;
    const uint64_t noise = lgs_noise(s, host, now, s->opt.o);
    const uint64_t end = now + s->opt.o + more * s->opt.O;
    lgs_start(s, host, node, now, rules->waits_for_release);
    /* The CPU is busy for o and the copying of bytes, the NIC for the gap and the bytes on the
     * wire: the next send waits for the later of the two. */
    *cpu = end + noise;
    *nic = now + s->opt.g + lgs_wire_time(s, more);
    if (s->watch)
        lgs_watch_send(s, host, node, now, end, noise);
    if (rules->link_send && s->opt.simple_links && rules->link_send(s, now, host, node, n, err))
        s->has_failed = true;
    /* The event of the send becomes that of its message: one record for the lifetime of both, and
     * no allocation in the loop. */
    ev->node = node | (uint32_t)LGS_MESSAGE;
    ev->time = now + s->opt.o + s->opt.L;
    /* Numbered before the operations released by the send: its message is issued first. */
    ev->number = s->events++;
    if (rules->is_folded)
        lgs_fold_issue(s, e);
    s->messages++;
    if (rules->is_parted)
        lgs_part_send(s, e, n);
    else if (!lgs_queue_push(&s->queue, e))
        s->has_failed = true;
    /* Above S the send ends when its receive takes it: lgs_end_rendezvous. */
    if (n->size <= s->opt.S)
        lgs_finish(s, host, node, *cpu);
    lgs_next_turn(s, g, number, lgs_max(*cpu, *nic));
    return false;
}

/* Searches a queue in the cheapest way this schedule permits. */
LGS_INLINE uint32_t lgs_search_side(lgs_sim *s, lgs_side side, lgs_key key, uint64_t now)
{
    if (!s->has_wildcards && !s->walks)
        return lgs_match_take(&s->match, &s->queue, side, key);
    if (s->walks)
        lgs_watch_length(s, key.host, side);
    uint32_t depth = 0;
    const uint32_t e = lgs_match_take_any(&s->match, &s->queue, side, key, s->walks, &depth);
    if (s->walks)
        lgs_watch_search(s, key.host, side, now, e != 0, depth);
    return e;
}

/* A send that waited for its receiver ends at `when`: its clocks cannot be earlier. */
LGS_INLINE void lgs_end_rendezvous(lgs_sim *s,
                                   uint32_t host,
                                   uint32_t node,
                                   uint8_t cpu,
                                   uint8_t nic,
                                   uint64_t when,
                                   const lgs_rules *rules)
{
    if (rules->is_folded)
        lgs_fold_touch_host(s, host, false);
    if (rules->is_parted && lgs_part_end(s, host, node, cpu, nic, when))
        return;
    lgs_finish(s, host, node & ~(uint32_t)LGS_MESSAGE, when);
    lgs_raise(lgs_cpu(s, host, cpu), when);
    lgs_raise(lgs_send_nic(s, host, nic), when);
}

/* Without buffering: a receive that finds its message is drawn here, and the time on the wire with
 * its ends swapped (goal.md 3.7).  A buffered message was drawn on arrival. */
LGS_APART void lgs_watch_late_recv(lgs_sim *s,
                                   const lgs_event *recv,
                                   const lgs_event *msg,
                                   bool is_rendezvous)
{
    const orr__goal_node *n = lgs_node(s, recv->host, recv->node);
    const uint64_t now = s->now;
    if (is_rendezvous)
        lgs_watch_span(s, &(lgs_span){.start = msg->time + s->opt.o,
                                      .end = now,
                                      .host = recv->host,
                                      .peer = msg->host,
                                      .size = n->size,
                                      .kind = LGS_SPAN_WIRE,
                                      .node = msg->node & ~(uint32_t)LGS_MESSAGE});
    lgs_watch_span(s, &(lgs_span){.start = now,
                                  .end = now + s->opt.o,
                                  .host = recv->host,
                                  .node = recv->node,
                                  .kind = LGS_SPAN_RECV,
                                  .cpu = n->cpu,
                                  .peer = msg->host,
                                  .size = n->size});
}

LGS_APART void lgs_keep_pair(lgs_sim *s, uint32_t from, uint32_t send, uint32_t to, uint32_t recv)
{
    lgs_watch_pair(s, &(lgs_pair){from, send & ~(uint32_t)LGS_MESSAGE, to, recv});
}

/* A receive costs no time of its own: it only says that the rank is ready. The CPU pays o when
 * the message comes (lgs_on_message). */
LGS_INLINE bool lgs_on_recv(lgs_sim *s, uint32_t e, const orr__goal_node *n, const lgs_rules *rules)
{
    lgs_event *ev = &s->queue.events[e];
    const uint32_t host = ev->host, node = ev->node;
    const uint64_t now = ev->time;
    lgs_start(s, host, node, now, rules->waits_for_release);
    const lgs_key key = {host, n->peer, n->tag};
    const uint32_t found = lgs_search_side(s, LGS_MESSAGES, key, now);
    if (!found) {
        if (!lgs_match_add(&s->match, &s->queue, LGS_RECEIVES, key, e))
            s->has_failed = true;
        return false;
    }
    const lgs_event *msg = &s->queue.events[found];
    const orr__goal_node *send = lgs_node(s, msg->host, msg->node);
    if (rules->is_parted)
        lgs_part_meet(s, found, send);
    /* The send's own size decides whether it waits, and its own CPU and NIC advance; the replaced
     * programs use those of the receive (docs/design/loggops.md). */
    const orr__goal_node *asked = rules->asks_the_sender ? send : n;
    const bool is_rendezvous = asked->size > s->opt.S;
    /* Not before it was received by the CPU. */
    const uint64_t when = rules->buffers_messages ? lgs_max(now, msg->time) : now;
    if (is_rendezvous)
        lgs_end_rendezvous(s, msg->host, msg->node, asked->cpu, asked->nic, now, rules);
    if (s->watch && !rules->buffers_messages)
        lgs_watch_late_recv(s, &s->queue.events[e], msg, is_rendezvous);
    if (s->watch)
        lgs_keep_pair(s, msg->host, msg->node, host, node);
    lgs_finish(s, host, node, when);
    lgs_event_give(&s->queue, found);
    return true;
}

LGS_APART void lgs_watch_arrival(lgs_sim *s,
                                 const lgs_event *msg,
                                 uint32_t recv,
                                 uint64_t cpu_bytes,
                                 uint64_t nic_bytes,
                                 uint64_t noise)
{
    const uint32_t send = msg->node & ~(uint32_t)LGS_MESSAGE;
    const orr__goal_node *n = lgs_node(s, msg->host, send);
    const uint64_t now = msg->time, end = now + s->opt.o + lgs_max(cpu_bytes, nic_bytes);
    lgs_span span = {.start = s->watch->sent_at[n - s->nodes] + s->opt.o,
                     .end = now,
                     .host = msg->host,
                     .peer = n->peer,
                     .size = n->size,
                     .kind = LGS_SPAN_WIRE,
                     .node = send};
    lgs_watch_span(s, &span);
    span = (lgs_span){.start = now + nic_bytes - cpu_bytes,
                      .end = end,
                      .host = n->peer,
                      .peer = msg->host,
                      .node = recv,
                      .size = n->size,
                      .kind = LGS_SPAN_RECV,
                      .cpu = n->cpu};
    lgs_watch_span(s, &span);
    span.kind = LGS_SPAN_NOISE;
    span.start = end;
    span.end = end + noise;
    lgs_watch_span(s, &span);
}

LGS_INLINE bool lgs_on_message(
    lgs_sim *s, uint32_t e, const orr__goal_node *n, const lgs_rules *rules, orr_error *err)
{
    lgs_event *ev = &s->queue.events[e];
    const uint32_t host = rules->is_folded ? net_sym_home(&s->folding->symmetry, n->peer) : n->peer;
    const uint32_t sender = ev->host;
    /* Folded: the receiver at home hears from the rank that would send to it, which the sender at
     * home represents: the same translation maps both. */
    const uint32_t from =
        rules->is_folded ? net_sym_with(&s->folding->symmetry, n->peer, sender) : sender;
    if (rules->is_folded)
        lgs_fold_touch_host(s, host, false);
    uint64_t *cpu = lgs_cpu(s, host, n->cpu), *nic = lgs_recv_nic(s, host, n->nic);
    lgs_busy *g = lgs_busy_group(s, host, n, 2);
    /* A message needs CPU and NIC of its receiver at the same time; until both are free it has not
     * arrived. */
    uint64_t free_at = lgs_max(*cpu, *nic), there = 0;
    const uint64_t now = ev->time, number = ev->number;
    if (rules->link_arrival && s->opt.simple_links) {
        if (rules->link_arrival(s, now, from, ev->node & ~(uint32_t)LGS_MESSAGE, &there, err))
            s->has_failed = true;
        free_at = lgs_max(free_at, there);
    }
    if (free_at > now) {
        lgs_put_off(s, g, e, free_at);
        return false;
    }
    const uint64_t more = lgs_more_bytes(n->size, rules);
    const uint64_t cpu_bytes = more * s->opt.O, nic_bytes = lgs_wire_time(s, more);
    const uint64_t noise = lgs_noise(s, host, now, s->opt.o);
    *cpu = now + s->opt.o + noise + lgs_max(cpu_bytes, nic_bytes);
    *nic = now + s->opt.g + nic_bytes;
    lgs_next_turn(s, g, number, lgs_max(*cpu, *nic));
    const lgs_key key = {host, from, n->tag};
    const uint32_t found = lgs_search_side(s, LGS_RECEIVES, key, now);
    if (!found) {
        if (rules->buffers_messages && s->watch)
            lgs_watch_arrival(s, &s->queue.events[e], LGS_NO_NODE, cpu_bytes, nic_bytes, noise);
        if (rules->buffers_messages)
            s->queue.events[e].time = *cpu; /* when the CPU has received it */
        if (rules->is_parted)
            lgs_part_park(s, e, n);
        if (!lgs_match_add(&s->match, &s->queue, LGS_MESSAGES, key, e))
            s->has_failed = true;
        return false;
    }
    const uint32_t recv = s->queue.events[found].node;
    if (rules->is_parted)
        lgs_part_meet(s, e, n);
    /* Before the receive is finished: operations released at the sender are ordered by host,
     * whichever end was noticed first (lgs_issue_all). */
    if (n->size > s->opt.S)
        lgs_end_rendezvous(s, sender, s->queue.events[e].node, n->cpu, n->nic, now, rules);
    if (s->watch) {
        lgs_watch_arrival(s, &s->queue.events[e], recv, cpu_bytes, nic_bytes, noise);
        lgs_keep_pair(s, from, s->queue.events[e].node, host, recv);
    }
    lgs_finish(s, host, recv, *cpu);
    lgs_event_give(&s->queue, found);
    return true;
}

/* ---- the loop */

LGS_INLINE void lgs_step(lgs_sim *s, uint32_t e, const lgs_rules *rules, orr_error *err)
{
    const lgs_event *ev = &s->queue.events[e];
    const orr__goal_node *n = lgs_node(s, ev->host, ev->node);
    /* A copy: ev may be freed and reused before it is logged. */
    const uint64_t number = ev->number;
    bool is_used;
    s->now = ev->time;
    s->batches = 0;
    if (rules->is_parted)
        lgs_part_begin(s, ev, n);
    if (rules->is_folded) {
        lgs_fold_begin(s, e);
        if (!(ev->node & (uint32_t)LGS_MESSAGE))
            lgs_fold_touch_host(s, ev->host, true);
    }
    if (ev->node & (uint32_t)LGS_MESSAGE)
        is_used = lgs_on_message(s, e, n, rules, err);
    else if (n->kind == ORR_GOAL_SEND)
        is_used = lgs_on_send(s, e, n, rules, err);
    else if (n->kind == ORR_GOAL_RECV)
        is_used = lgs_on_recv(s, e, n, rules);
    else
        is_used = lgs_on_calc(s, e, n, rules);
    if (is_used)
        lgs_event_give(&s->queue, e);
    lgs_issue_all(s, rules);
    if (rules->is_parted)
        lgs_part_log(s, s->now, number);
}

/* Prefetch: the queue knows a few events ahead which memory will be needed. */
LGS_INLINE void lgs_look_ahead(const lgs_sim *s)
{
    const lgs_event *ev = &s->queue.events[s->queue.far];
    __builtin_prefetch(lgs_node(s, ev->host, ev->node));
    __builtin_prefetch(&s->queue.events[ev->next]);
    if (!s->queue.near)
        return;
    ev = &s->queue.events[s->queue.near];
    const orr__goal_node *n = lgs_node(s, ev->host, ev->node);
    const bool is_message = ev->node & (uint32_t)LGS_MESSAGE;
    if (is_message)
        __builtin_prefetch(s->clocks + n->peer * s->stride);
    if (!is_message && n->kind != ORR_GOAL_RECV)
        return;
    const lgs_key key =
        is_message ? (lgs_key){n->peer, ev->host, n->tag} : (lgs_key){ev->host, n->peer, n->tag};
    __builtin_prefetch(&s->match.slots[lgs_match_place(&s->match, key)]);
}

/* All ranks issue at time 0, by rank: so the first numbers follow the order of the file, as in
 * the reference (goal.md 3.4). */
LGS_APART void lgs_start_all(lgs_sim *s, const lgs_rules *rules)
{
    for (uint32_t host = 0; host < s->hosts && !s->has_failed; host++) {
        const orr__goal_node *nodes = s->nodes + s->ranks[host].first_node;
        const uint32_t ops = orr__goal_ops(s->goal, host);
        /* Represented hosts issue nothing: their results are copied at the end (loggops.c). */
        if (rules->is_folded && net_sym_home(&s->folding->symmetry, host) != host)
            continue;
        s->batches = 0;
        lgs_batch *b = lgs_touch(s, host);
        for (uint32_t i = 0; i < ops; i++) {
            if (nodes[i].waits == 0)
                lgs_release(s, b, i, nodes[i].kind, 0);
        }
        if (!s->has_failed)
            lgs_issue(s, b, true, rules);
    }
}

LGS_INLINE orr_code lgs_run_events(lgs_sim *s, const lgs_rules *rules, orr_error *err)
{
    orr_progress p;
    orr_progress_start(&p, "simulating", "events", s->expected, !s->opt.shows_progress);
    orr_error inner = {0};
    if (!s->has_started)
        lgs_start_all(s, rules);
    s->has_started = true;
    uint32_t e;
    while (!s->has_failed && !lgs_is_stopped(s) && (e = lgs_queue_pop(&s->queue)) != 0) {
        lgs_look_ahead(s);
        lgs_step(s, e, rules, &inner);
        /* Stop at once: everything that follows would be discarded. */
        if (rules->is_folded && s->folding->has_lost_order)
            break;
        if (s->opt.prints_progress && rules->after_event)
            rules->after_event(s, s->queue.pending + s->waiting);
        orr_progress_add(&p, 1);
    }
    orr_progress_end(&p);
    return lgs_outcome(s, &inner, err);
}

#endif
