/* SPDX-License-Identifier: Apache-2.0 */
/* atlahs.c - the LogGOPSim of ATLAHS (goal.md 3.3 and 3.4).
 *
 * It differs from lgs_body.h in nearly every formula, so it has its own event handlers: release
 * times travel along edges, a receive is charged when it matches its message, there are no
 * wildcards, and ties between events are broken by the shape of a heap.  So every postponed event
 * is pushed to that heap individually. */
#include "loggopsim.h"

#include <stdio.h>

/* ---- the queue: a heap that compares times only (goal.md 3.4).  Its moves decide the order of
 * ties, so they must be exactly these. */

static void rise(atlahs_heap *h, size_t hole, orr_heap_entry e)
{
    while (hole) {
        const size_t above = (hole - 1) / 2;
        if (h->entries[above].key <= e.key)
            break;
        h->entries[hole] = h->entries[above];
        hole = above;
    }
    h->entries[hole] = e;
}

static bool heap_push(atlahs_heap *h, uint64_t time, uint32_t event)
{
    if (!orr_grow(&h->entries, &h->room, h->count + 1))
        return false;
    h->count++;
    rise(h, h->count - 1, (orr_heap_entry){time, event});
    return true;
}

static bool heap_pop(atlahs_heap *h, orr_heap_entry *out)
{
    if (!h->count)
        return false;
    *out = h->entries[0];
    const size_t count = --h->count;
    const orr_heap_entry moved = h->entries[count];
    if (!count)
        return true;
    size_t hole = 0;
    while (2 * hole + 2 < count) {
        const size_t left = 2 * hole + 1, right = left + 1;
        const size_t child = h->entries[right].key > h->entries[left].key ? left : right;
        h->entries[hole] = h->entries[child];
        hole = child;
    }
    if (2 * hole + 2 == count) { /* the last parent has a single child */
        h->entries[hole] = h->entries[count - 1];
        hole = count - 1;
    }
    rise(h, hole, moved);
    return true;
}

/* ---- costs */

static uint64_t wire_time(const lgs_sim *s, uint64_t size)
{
    return lgs_whole((double)(size - 1) * s->opt.G);
}

static uint64_t at_least_one(uint64_t size)
{
    return size ? size : 1;
}

static void push(lgs_sim *s, uint32_t e, uint64_t time)
{
    s->queue.events[e].time = time;
    if (!heap_push(&lgs_extra(s)->heap, time, e))
        s->has_failed = true;
    s->queue.pending = lgs_extra(s)->heap.count; /* the engine derives the events run from it */
}

static uint64_t issue_time(lgs_sim *s, uint32_t host, const lgs_ready *r)
{
    const orr__goal_node *n = lgs_node(s, host, r->node);
    if (r->kind == ORR_GOAL_CALC)
        return lgs_max(r->at, *lgs_cpu(s, host, n->cpu));
    if (r->kind == ORR_GOAL_SEND)
        return lgs_max(r->at, *lgs_send_nic(s, host, n->nic));
    return r->at;
}

static void issue(lgs_sim *s, const lgs_batch *b, bool is_start)
{
    for (uint32_t i = 0; i < b->count && !s->has_failed; i++) {
        const uint32_t e = lgs_event_take(&s->queue);
        if (!e) {
            s->has_failed = true;
            return;
        }
        s->queue.events[e] =
            (lgs_event){.number = s->events++, .host = b->host, .node = b->items[i].node};
        push(s, e, is_start ? 0 : issue_time(s, b->host, &b->items[i]));
    }
}

/* ---- the four kinds of events; true: the event is consumed */

static bool on_calc(lgs_sim *s, uint32_t e, const orr__goal_node *n)
{
    const lgs_event ev = s->queue.events[e];
    uint64_t *cpu = lgs_cpu(s, ev.host, n->cpu);
    if (*cpu > ev.time) {
        push(s, e, *cpu);
        return false;
    }
    *cpu = ev.time + n->size + lgs_noise(s, ev.host, ev.time, n->size);
    lgs_start(s, ev.host, ev.node, 0, false);
    lgs_finish(s, ev.host, ev.node, *cpu);
    if (s->watch)
        lgs_watch_span(s, &(lgs_span){.start = ev.time,
                                      .end = ev.time + n->size,
                                      .host = ev.host,
                                      .node = ev.node,
                                      .kind = LGS_SPAN_CALC,
                                      .cpu = n->cpu});
    return true;
}

static void watch_send(
    lgs_sim *s, const lgs_event *ev, const orr__goal_node *n, uint64_t end, uint64_t noise)
{
    s->watch->sent_at[n - s->nodes] = ev->time;
    lgs_span span = {.start = ev->time,
                     .end = end - noise,
                     .host = ev->host,
                     .node = ev->node,
                     .cpu = n->cpu,
                     .kind = LGS_SPAN_SEND,
                     .peer = n->peer,
                     .size = n->size};
    lgs_watch_span(s, &span);
    span.kind = LGS_SPAN_NOISE;
    span.start = end - noise;
    span.end = end;
    lgs_watch_span(s, &span);
}

static bool on_send(lgs_sim *s, uint32_t e, const orr__goal_node *n)
{
    const lgs_event ev = s->queue.events[e];
    uint64_t *cpu = lgs_cpu(s, ev.host, n->cpu), *nic = lgs_send_nic(s, ev.host, n->nic);
    const uint64_t free_at = lgs_max(*cpu, *nic);
    if (free_at > ev.time) {
        push(s, e, free_at);
        return false;
    }
    const uint64_t size = at_least_one(n->size), wire = wire_time(s, size);
    const uint64_t noise = lgs_noise(s, ev.host, ev.time, s->opt.o);
    const uint64_t end = ev.time + s->opt.o + noise + (size - 1) * s->opt.O;
    lgs_start(s, ev.host, ev.node, 0, false);
    *cpu = end;
    *nic = ev.time + s->opt.g + wire;
    if (s->watch)
        watch_send(s, &ev, n, end, noise);
    s->messages++;
    lgs_extra(s)->flow_sum += (double)(uint32_t)size * 8 / 200; /* 32 bits: goal.md, addendum 1 */
    s->queue.events[e].node |= (uint32_t)LGS_MESSAGE;
    s->queue.events[e].number = s->events++;
    push(s, e, end + s->opt.L + wire);
    if (size <= s->opt.S)
        lgs_finish(s, ev.host, ev.node, end);
    return false;
}

/* End of a send that waited for its receiver. */
static void end_rendezvous(
    lgs_sim *s, uint32_t host, uint32_t node, const orr__goal_node *n, uint64_t cpu, uint64_t nic)
{
    lgs_finish(s, host, node & ~(uint32_t)LGS_MESSAGE, cpu);
    lgs_raise(lgs_cpu(s, host, n->cpu), cpu);
    lgs_raise(lgs_send_nic(s, host, n->nic), nic);
}

static orr_code in_the_past(const lgs_event *recv, const lgs_event *msg, orr_error *err)
{
    return orr_fail(
        err, ORR_EINPUT, NULL,
        "rank %u: operation %u: a receive at %llu ns finds a message that came at %llu ns; ATLAHS "
        "stops here (irequires lets operations start in the past), other rules do not",
        recv->host, recv->node + 1, (unsigned long long)recv->time, (unsigned long long)msg->time);
}

static void watch_late_recv(lgs_sim *s,
                            const lgs_event *ev,
                            const lgs_event *msg,
                            const orr__goal_node *n)
{
    if (at_least_one(n->size) > s->opt.S)
        lgs_watch_span(s, &(lgs_span){.start = msg->time + s->opt.o,
                                      .end = ev->time,
                                      .host = ev->host,
                                      .peer = msg->host,
                                      .size = at_least_one(n->size),
                                      .kind = LGS_SPAN_WIRE});
    lgs_watch_span(s, &(lgs_span){.start = ev->time,
                                  .end = ev->time + s->opt.o,
                                  .host = ev->host,
                                  .node = ev->node,
                                  .kind = LGS_SPAN_RECV,
                                  .cpu = n->cpu,
                                  .peer = msg->host,
                                  .size = n->size});
    lgs_watch_pair(s,
                   &(lgs_pair){msg->host, msg->node & ~(uint32_t)LGS_MESSAGE, ev->host, ev->node});
}

static bool on_recv(lgs_sim *s, uint32_t e, const orr__goal_node *n, orr_error *err)
{
    const lgs_event ev = s->queue.events[e];
    const lgs_key key = {ev.host, n->peer, n->tag};
    lgs_start(s, ev.host, ev.node, 0, false);
    const uint32_t found = lgs_match_take(&s->match, &s->queue, LGS_MESSAGES, key);
    if (!found) {
        if (!lgs_match_add(&s->match, &s->queue, LGS_RECEIVES, key, e))
            s->has_failed = true;
        return false;
    }
    const lgs_event msg = s->queue.events[found];
    if (ev.time < msg.time && in_the_past(&ev, &msg, err)) {
        s->has_failed = true;
        return true;
    }
    const uint64_t size = at_least_one(n->size);
    /* The send side's clock, as in the reference. */
    const uint64_t nic = lgs_max(*lgs_send_nic(s, ev.host, n->nic), ev.time) + s->opt.g;
    const uint64_t cpu = nic + s->opt.o + (size - 1) * s->opt.O;
    *lgs_cpu(s, ev.host, n->cpu) = cpu;
    *lgs_recv_nic(s, ev.host, n->nic) = nic;
    if (size > s->opt.S)
        end_rendezvous(s, msg.host, msg.node, n, cpu, nic);
    if (s->watch)
        watch_late_recv(s, &ev, &msg, n);
    lgs_finish(s, ev.host, ev.node, cpu);
    lgs_event_give(&s->queue, found);
    return true;
}

static void watch_arrival(
    lgs_sim *s, const lgs_event *msg, uint32_t recv, const orr__goal_node *n, uint64_t noise)
{
    const uint64_t size = at_least_one(n->size), cpu_bytes = (size - 1) * s->opt.O;
    const uint64_t wire = wire_time(s, size);
    const uint64_t end = msg->time + s->opt.o + lgs_max(cpu_bytes, wire);
    const uint32_t send = msg->node & ~(uint32_t)LGS_MESSAGE;
    lgs_span span = {.start = s->watch->sent_at[n - s->nodes] + s->opt.o,
                     .end = msg->time,
                     .host = msg->host,
                     .peer = n->peer,
                     .size = size,
                     .kind = LGS_SPAN_WIRE,
                     .node = send};
    lgs_watch_span(s, &span);
    span = (lgs_span){.start = msg->time + wire - cpu_bytes,
                      .end = end,
                      .host = n->peer,
                      .peer = msg->host,
                      .node = recv,
                      .size = size,
                      .kind = LGS_SPAN_RECV,
                      .cpu = n->cpu};
    lgs_watch_span(s, &span);
    span.kind = LGS_SPAN_NOISE;
    span.start = end;
    span.end = end + noise;
    lgs_watch_span(s, &span);
    lgs_watch_pair(s, &(lgs_pair){msg->host, send, n->peer, recv});
}

static bool on_message(lgs_sim *s, uint32_t e, const orr__goal_node *n)
{
    const lgs_event ev = s->queue.events[e];
    const uint32_t host = n->peer;
    const lgs_key key = {host, ev.host, n->tag};
    const uint32_t found = lgs_match_take(&s->match, &s->queue, LGS_RECEIVES, key);
    if (!found) {
        if (!lgs_match_add(&s->match, &s->queue, LGS_MESSAGES, key, e))
            s->has_failed = true;
        return false;
    }
    const uint32_t recv = s->queue.events[found].node;
    const uint64_t size = at_least_one(n->size);
    uint64_t *cpu = lgs_cpu(s, host, lgs_node(s, host, recv)->cpu);
    uint64_t *nic = lgs_recv_nic(s, host, n->nic);
    const uint64_t free_at = lgs_max(*cpu, *nic);
    if (free_at > ev.time) {
        push(s, e, free_at);
        if (!lgs_match_add(&s->match, &s->queue, LGS_RECEIVES, key, found)) /* after its equals */
            s->has_failed = true;
        return false;
    }
    const uint64_t noise = lgs_noise(s, host, ev.time, s->opt.o);
    *nic = ev.time + s->opt.g;
    *cpu = *nic + s->opt.o + noise + (size - 1) * s->opt.O;
    if (size > s->opt.S)
        end_rendezvous(s, ev.host, ev.node, n, *cpu, *nic);
    if (s->watch)
        watch_arrival(s, &ev, recv, n, noise);
    lgs_finish(s, host, recv, *cpu);
    lgs_event_give(&s->queue, found);
    return true;
}

/* ---- the loop */

static void step(lgs_sim *s, uint32_t e, orr_error *err)
{
    const lgs_event *ev = &s->queue.events[e];
    const orr__goal_node *n = lgs_node(s, ev->host, ev->node);
    bool is_used;
    s->now = ev->time;
    s->batches = 0;
    if (ev->node & (uint32_t)LGS_MESSAGE)
        is_used = on_message(s, e, n);
    else if (n->kind == ORR_GOAL_SEND)
        is_used = on_send(s, e, n);
    else if (n->kind == ORR_GOAL_RECV)
        is_used = on_recv(s, e, n, err);
    else
        is_used = on_calc(s, e, n);
    if (is_used)
        lgs_event_give(&s->queue, e);
    while (s->batches && !s->has_failed) /* the host touched last goes first */
        issue(s, &s->batch[--s->batches], false);
}

static void start_all(lgs_sim *s)
{
    for (uint32_t host = 0; host < s->hosts && !s->has_failed; host++) {
        const orr__goal_node *nodes = s->nodes + s->ranks[host].first_node;
        const uint32_t ops = orr__goal_ops(s->goal, host);
        s->batches = 0;
        lgs_batch *b = lgs_touch(s, host);
        for (uint32_t i = 0; i < ops; i++) {
            if (nodes[i].waits == 0)
                lgs_release(s, b, i, nodes[i].kind, 0);
        }
        issue(s, b, true);
    }
}

static orr_code run(lgs_sim *s, orr_error *err)
{
    atlahs_heap *heap = &lgs_extra(s)->heap;
    orr_progress p;
    orr_heap_entry top;
    orr_error inner = {0};
    orr_progress_start(&p, "simulating", "events", s->expected, !s->opt.shows_progress);
    if (!s->has_started)
        start_all(s);
    s->has_started = true;
    while (!s->has_failed && !lgs_is_stopped(s) && heap_pop(heap, &top)) {
        s->queue.pending = heap->count;
        step(s, top.value, &inner);
        if (s->opt.prints_progress)
            lgs_old_progress(s, heap->count);
        orr_progress_add(&p, 1);
    }
    orr_progress_end(&p);
    return lgs_outcome(s, &inner, err);
}

const char *lgs_atlahs_average(const lgs_sim *s, char *text, size_t room)
{
    snprintf(text, room, "%f", s->messages ? lgs_extra(s)->flow_sum / (double)s->messages : 0);
    return s->messages ? text : "-nan";
}

static const char *extra(const lgs_sim *s, orr_buf *text, bool *is_list)
{
    char average[64];
    *is_list = false;
    orr_buf_text(text, lgs_atlahs_average(s, average, sizeof average));
    return "average_fct";
}

const lgs_rules lgs_atlahs_rules = {
    .name = "atlahs",
    .keeps_release_times = true,
    .counts_all_edges = true,
    .puts_off_singly = true,
    .repeats_last_noise = true,
    .skips_first_noise = true,
    .open = lgs_extra_open,
    .close = lgs_extra_close,
    .run = run,
    .extra = extra,
};
