/* SPDX-License-Identifier: Apache-2.0 */
/* fab_approx.c - fast-forwards periodic traffic.
 *
 * A network with fixed windows is a deterministic machine: its future depends only on its state.
 * The state is what is on the wires, in the queues and in the flows, with times relative to now and
 * bytes relative to what each flow has had acknowledged.  If it is equal at two times, P apart,
 * then everything between them repeats until a flow comes near its end or something comes from
 * outside (a flow, a failure, a sample, an event of the simulator).  So k periods are skipped at
 * once: times move by k P, flows by k times their progress in P, counters likewise.
 *
 * Sound for: no congestion control (CC_MODE 0 or unknown), going back N, one route per flow, no
 * losses by chance; any other state contains real or random numbers and does not recur. Error of a
 * flow's completion time: none.  Marks are random and have no effect here; their number is
 * extrapolated.
 *
 * States are compared in full, not by hash.  A comparison is linear in the state; it is made when a
 * packet of one chosen flow arrives, and not before as many events have passed.  A search without
 * success doubles the wait before the next.
 *
 * With APPROX 1 it searches from the start, and the statistics report what was skipped.  By
 * default, a few bytes of input that request gigabytes must not take minutes: after LONG_RUN events
 * it searches too, but skips only periods of data and ACKs without random draws, and counts their
 * events as if they had been run.  Then no output differs, for any number of threads, so it is not
 * reported. */
#include "fabric_impl.h"

#include "base/arithmetic.h"

#include <stdio.h>
#include <string.h>

/* Waits in events.  PERIODS_AHEAD: a flow near its end behaves differently (last packets, no more
 * data to fill the window), so the last periods are always simulated. */
enum { FIRST_WAIT = 4096, MOST_WAIT = 1 << 24, PERIODS_AHEAD = 2 };

/* By default: no search before this many events (0.2 s), nor for states and flows of more than this
 * many words: a futile search then costs a few per cent of the time. */
enum { LONG_RUN = 1 << 22, MOST_WORDS = 1 << 14 };

/* ---- a state in words ---- */

static void put(orr_buf *b, uint64_t v)
{
    orr_buf_add(b, &v, sizeof v);
}

static uint64_t ahead(const fab *f, uint64_t at)
{
    return at > f->now ? at - f->now : 0;
}

static void put_frame(const fab *f, orr_buf *b, uint32_t id)
{
    const fab_frame *m = &f->frames[id];
    put(b, (uint64_t)m->flow << 32 | m->size);
    put(b, (uint64_t)m->in << 32 | (uint64_t)m->kind << 16 | (uint64_t)m->class << 8 |
               (uint64_t)m->asks_ack << 1 | m->pauses);
    if (m->flow == FAB_NONE)
        return;
    /* Relative to what is acknowledged, like all bytes of a state: otherwise a state could not
     * recur. */
    put(b, m->sequence - f->flows[m->flow].acked);
    put(b, m->payload);
}

static void put_frames(const fab *f, orr_buf *b, uint32_t head)
{
    for (; head != FAB_NONE; head = f->frames[head].next)
        put_frame(f, b, head);
}

static void put_queue(const fab *f, orr_buf *b, const fab_queue *q, unsigned class)
{
    if (!q->ingress && !q->egress && !q->headroom && q->head == FAB_NONE)
        return;
    put(b, class);
    put(b, (uint64_t)q->ingress << 32 | q->headroom);
    put(b, q->egress);
    put_frames(f, b, q->head);
}

static void put_port(const fab *f, orr_buf *b, uint32_t port)
{
    const fab_port *p = &f->ports[port];
    put(b, (uint64_t)p->wire_count << 32 | (uint64_t)p->last_class << 24 |
               (uint64_t)p->queued << 16 | (uint64_t)p->paused << 8 | p->pause_sent);
    put(b, ahead(f, p->busy_until) << 1 | p->has_end);
    if (ahead(f, p->dead_until))
        put(b, ahead(f, p->dead_until));
    /* By default a draw must not be skipped: then a period in which a port drew a number does not
     * recur. */
    if (!f->approx->is_asked)
        put(b, p->coins);
    for (uint32_t i = 0; i < p->wire_count; i++) {
        const fab_flight *x = &p->wire[(p->wire_first + i) & (p->wire_room - 1)];
        put(b, x->at - f->now);
        put_frame(f, b, x->frame);
    }
    for (unsigned i = 0; i < FAB_CLASSES && p->is_switch; i++)
        put_queue(f, b, &f->queues[(size_t)port * FAB_CLASSES + i], i);
}

/* Its time, and the number of events its host has scheduled since. */
static void put_event(const fab *f, orr_buf *b, uint32_t id)
{
    if (id == FAB_NO_EVENT) {
        put(b, UINT64_MAX);
        return;
    }
    const fab_event *e = fab_wheel_event(&f->wheel, id);
    const uint32_t node = fab_event_node(f, (fab_event_kind)e->kind, e->who);
    put(b, ahead(f, e->at));
    put(b, fab_order_within(f, f->nodes[node].events - e->order));
}

static void put_nic(const fab *f, orr_buf *b, const fab_nic *n)
{
    put(b, (uint64_t)n->last << 32 | (uint64_t)n->has_forwarded << 1 | n->last_is_number);
    put_event(f, b, n->wake);
    put_frames(f, b, n->ack_head);
}

static void put_flow(const fab *f, orr_buf *b, uint32_t id)
{
    const fab_flow *w = &f->flows[id];
    put(b, (uint64_t)id << 32 | w->frames);
    put(b, w->sent - w->acked);
    put(b, w->highest - w->acked);
    put(b, w->expected - w->acked);
    put(b, ahead(f, w->next_at));
    put(b, ahead(f, w->nack_at));
    put(b, w->nack_at > f->now ? w->last_nacked - w->acked : 0); /* else it is not used */
    put(b, (uint64_t)w->timeouts << 32 | (uint64_t)w->is_listed << 3 | (uint64_t)w->is_open << 2 |
               (uint64_t)w->is_due << 1 | w->has_arrived);
    if (f->config.ack_interval > 1 || f->config.back_to_zero) { /* else chunks have no meaning */
        put(b, w->expected % f->config.chunk);
        put(b, w->expected % (f->config.ack_interval ? f->config.ack_interval : 1));
    }
    /* The timer counts from the last feedback; when its event checks that does not matter. */
    put(b, w->heard_at ? f->now - w->heard_at + 1 : 0);
    if (!w->heard_at)
        put_event(f, b, w->timeout);
}

static bool has_memory(fab *f, bool is_there)
{
    if (!is_there)
        fab_fail(f, ORR_ENOMEM, "out of memory");
    return is_there;
}

/* False: some flow is about to start, or out of memory, and the run ends. */
static bool describe(fab *f, orr_buf *b)
{
    b->len = 0;
    for (uint32_t i = 0; i < f->flow_count; i++) {
        const fab_flow *w = &f->flows[i];
        if (!w->is_used || (w->is_complete && !w->frames))
            continue;
        if (!w->line_rate || w->is_complete)
            return false;
        put_flow(f, b, i);
    }
    for (uint32_t i = 0; i < f->port_count; i++)
        put_port(f, b, i);
    for (uint32_t i = 0; i < f->nic_count; i++)
        put_nic(f, b, &f->nics[i]);
    for (uint32_t i = 0; i < f->node_count; i++)
        put(b, f->nodes[i].shared);
    return has_memory(f, !b->failed);
}

/* ---- a period ---- */

static bool remember(fab *f, fab_approx *a)
{
    if (!has_memory(f, orr_grow(&a->acked, &a->acked_room, f->flow_count)) ||
        !describe(f, &a->before))
        return false;
    for (size_t i = 0; i < f->flow_count; i++)
        a->acked[i] = f->flows[i].acked;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        a->ports[i] = (fab_port_counts){p->frames_sent, p->busy_ticks, p->bytes_sent,
                                        fab_port_paused_ticks(f, p), p->pause_count};
    }
    a->figures = f->figures;
    a->begun_at = f->now;
    a->begun_events = f->figures.events + f->events_of_batch;
    return true;
}

/* Number of periods before a flow comes near its end. */
static uint64_t periods_of_flows(const fab *f, const fab_approx *a)
{
    uint64_t periods = UINT64_MAX;
    for (uint32_t i = 0; i < f->flow_count; i++) {
        const fab_flow *w = &f->flows[i];
        const uint64_t step = w->is_used && !w->is_complete ? w->acked - a->acked[i] : 0;
        if (!step)
            continue;
        const uint64_t left = w->size - w->sent, whole = left / step;
        const uint64_t fit = whole > PERIODS_AHEAD ? whole - PERIODS_AHEAD : 0;
        periods = fit < periods ? fit : periods;
    }
    return periods == UINT64_MAX ? 0 : periods;
}

/* Timers of flows are not part of the state: they only check for feedback.  But they are events,
 * and by default each of those is counted. */
static bool moves_along(const fab_approx *a, uint8_t kind)
{
    return kind == FAB_EV_ARRIVE || kind == FAB_EV_END || kind == FAB_EV_WAKE ||
           (kind == FAB_EV_TIMEOUT && a->is_asked);
}

static bool is_dropped(const fab_approx *a, uint8_t kind)
{
    return kind == FAB_EV_DEAD && a->is_asked;
}

/* The first external event, in ticks. */
static uint64_t first_outside(const fab *f, const fab_approx *a, size_t count)
{
    const orr_event_line *l = f->line;
    uint64_t first = l->bound_at > UINT64_MAX / f->unit ? UINT64_MAX : l->bound_at * f->unit;
    for (size_t i = 0; i < count; i++) {
        const fab_event *e = fab_wheel_event(&f->wheel, a->ids[i]);
        if (!moves_along(a, e->kind) && !is_dropped(a, e->kind) && e->at < first)
            first = e->at;
    }
    return first;
}

/* ---- skipping ---- */

static void move_frame(fab *f, uint32_t id, uint64_t ticks, const uint64_t *steps)
{
    fab_frame *m = &f->frames[id];
    m->stamp += ticks;
    if (m->flow != FAB_NONE)
        m->sequence += steps[m->flow];
}

static void move_frames(fab *f, uint32_t head, uint64_t ticks, const uint64_t *steps)
{
    for (; head != FAB_NONE; head = f->frames[head].next)
        move_frame(f, head, ticks, steps);
}

typedef struct jump {
    uint64_t periods, ticks;
    const uint64_t *steps; /* bytes, by flow */
} jump;

static void move_port(fab *f, uint32_t port, const fab_port_counts *c, const jump *j)
{
    fab_port *p = &f->ports[port];
    const uint64_t paused = fab_port_paused_ticks(f, p) - c->paused;
    p->busy_until += j->ticks;
    p->last_at += j->ticks;
    p->paused_since += j->ticks;
    p->paused_ticks += paused * j->periods;
    p->frames_sent += (p->frames_sent - c->frames) * j->periods;
    p->busy_ticks += (p->busy_ticks - c->busy) * j->periods;
    p->bytes_sent += (p->bytes_sent - c->bytes) * j->periods;
    p->pause_count += (uint32_t)((p->pause_count - c->pauses) * j->periods);
    for (uint32_t i = 0; i < p->wire_count; i++) {
        fab_flight *x = &p->wire[(p->wire_first + i) & (p->wire_room - 1)];
        x->at += j->ticks;
        move_frame(f, x->frame, j->ticks, j->steps);
    }
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        move_frames(f, f->queues[(size_t)port * FAB_CLASSES + i].head, j->ticks, j->steps);
}

static void move_flow(fab_flow *w, uint64_t step, uint64_t ticks)
{
    w->sent += step;
    w->acked += step;
    w->highest += step;
    w->expected += step;
    w->next_at += ticks;
    w->last_sent_at += ticks;
    w->heard_at += w->heard_at ? ticks : 0;
    if (w->nack_at)
        w->nack_at += ticks;
    if (w->last_nacked)
        w->last_nacked += step;
}

static void move_figures(fab_figures *g, const fab_figures *b, const jump *j, bool is_asked)
{
    g->data_packets += (g->data_packets - b->data_packets) * j->periods;
    g->data_bytes += (g->data_bytes - b->data_bytes) * j->periods;
    g->acks += (g->acks - b->acks) * j->periods;
    g->nacks += (g->nacks - b->nacks) * j->periods;
    g->retransmitted_bytes += (g->retransmitted_bytes - b->retransmitted_bytes) * j->periods;
    g->pauses += (g->pauses - b->pauses) * j->periods;
    g->resumes += (g->resumes - b->resumes) * j->periods;
    g->marked += (g->marked - b->marked) * j->periods;
    g->dropped += (g->dropped - b->dropped) * j->periods;
    g->timeouts += (g->timeouts - b->timeouts) * j->periods;
    if (!is_asked)
        return;
    g->skips++;
    g->skipped += j->ticks;
}

static void put_events_back(fab *f, const fab_approx *a, size_t count, const jump *j)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t id = a->ids[i];
        const fab_event *e = fab_wheel_event(&f->wheel, id);
        if (is_dropped(a, e->kind))
            fab_wheel_drop(&f->wheel, id);
        else if (moves_along(a, e->kind))
            fab_wheel_at(&f->wheel, id, e->at + j->ticks, e->order);
        else
            fab_wheel_put(&f->wheel, id);
    }
}

static void move_all(fab *f, fab_approx *a, const jump *j)
{
    for (uint32_t i = 0; i < f->port_count; i++)
        move_port(f, i, &a->ports[i], j);
    for (uint32_t i = 0; i < f->nic_count; i++)
        move_frames(f, f->nics[i].ack_head, j->ticks, j->steps);
    for (uint32_t i = 0; i < f->flow_count; i++)
        if (f->flows[i].is_used)
            move_flow(&f->flows[i], j->steps[i], j->ticks);
    move_figures(&f->figures, &a->figures, j, a->is_asked);
    if (!a->is_asked)
        a->passed += (f->figures.events + f->events_of_batch - a->begun_events) * j->periods;
    f->now += j->ticks;
    f->last_arrival += j->ticks;
}

/* Nothing went wrong in the period, so that skipping it hides nothing. */
static bool is_smooth(const fab_figures *g, const fab_figures *b)
{
    return g->pauses == b->pauses && g->resumes == b->resumes && g->marked == b->marked &&
           g->dropped == b->dropped && g->nacks == b->nacks && g->timeouts == b->timeouts &&
           g->retransmitted_bytes == b->retransmitted_bytes;
}

/* The state equals that at begun_at.  False: no room for even one more period. */
static bool pass_over(fab *f, fab_approx *a)
{
    const uint64_t period = f->now - a->begun_at;
    jump j = {.periods = periods_of_flows(f, a), .steps = a->acked};
    size_t count;
    const bool pauses = f->figures.pauses != a->figures.pauses;
    if (!period || !j.periods || (pauses && (f->watch.hears & FAB_HEARS_PAUSES)))
        return false; /* a file that lists pauses must have them all */
    if (!a->is_asked && !is_smooth(&f->figures, &a->figures))
        return false;
    if (!has_memory(f, fab_wheel_take_all(&f->wheel, &a->ids, &a->id_room, &count)))
        return false;
    const uint64_t outside = first_outside(f, a, count);
    /* The jump ends before it. */
    j.periods = orr_min_u64(j.periods, outside > f->now ? (outside - f->now - 1) / period : 0);
    j.periods = orr_min_u64(j.periods, (FAB_LATE - 1) / period);
    j.ticks = j.periods * period;
    for (uint32_t i = 0; i < f->flow_count; i++) /* from its previous value to its progress */
        a->acked[i] = f->flows[i].is_used ? (f->flows[i].acked - a->acked[i]) * j.periods : 0;
    if (j.periods)
        move_all(f, a, &j);
    fab_wheel_begin(&f->wheel, f->now);
    put_events_back(f, a, count, &j);
    return j.periods > 0;
}

/* ---- looking for a period ---- */

static void stop_looking(fab_approx *a, bool has_found)
{
    a->anchor = FAB_NONE;
    a->before.len = 0;
    a->patience = has_found ? FIRST_WAIT : orr_min_u64(2 * a->patience, MOST_WAIT);
    a->wait = a->patience;
}

/* The flow with most left to send. */
void fab_approx_choose(fab *f)
{
    fab_approx *a = f->approx;
    uint64_t most = 0;
    if (a->anchor != FAB_NONE) { /* it has been tried for long enough */
        stop_looking(a, false);
        return;
    }
    a->wait = a->patience;
    if (!a->is_asked && f->flow_count > MOST_WORDS)
        return;
    for (uint32_t i = 0; i < f->flow_count; i++) {
        const fab_flow *w = &f->flows[i];
        if (!w->is_used || w->is_complete || !w->line_rate || w->size - w->sent <= most)
            continue;
        most = w->size - w->sent;
        a->anchor = f->ports[w->ack_port].peer;
    }
}

void fab_approx_look(fab *f)
{
    fab_approx *a = f->approx;
    const uint64_t events = f->figures.events + f->events_of_batch;
    if (a->before.len == 0) {
        if (!remember(f, a) || (!a->is_asked && a->before.len > MOST_WORDS * sizeof(uint64_t))) {
            stop_looking(a, false);
            return;
        }
        /* a period has about as many events as there are frames, times their hops */
        a->wait = 64 * (a->before.len / sizeof(uint64_t)) + FIRST_WAIT;
        a->compare = events;
        a->tries = 0;
        return;
    }
    if (events < a->compare)
        return;
    if (!describe(f, &a->after)) {
        stop_looking(a, false);
        return;
    }
    /* a little later each time, or the comparison might always hit the same part of a period */
    a->compare = events + a->after.len / (16 * sizeof(uint64_t)) + a->tries++;
    if (a->after.len == a->before.len && memcmp(a->after.ptr, a->before.ptr, a->after.len) == 0)
        stop_looking(a, pass_over(f, a));
}

/* ---- explanation ---- */

void fab_explain_approx(const fab *f, fab_say say, void *context)
{
    const fab_figures *g = &f->figures;
    const double run = f->last_arrival ? (double)f->last_arrival : 1;
    char line[240];
    if (!f->approx || !f->approx->is_asked)
        return;
    snprintf(line, sizeof line,
             "APPROX: skipped %.1f %% of the run, in %llu exactly repeating intervals; "
             "error of every flow's time at most 0 ps",
             100 * (double)g->skipped / run, (unsigned long long)g->skips);
    say(context, line);
}

/* ---- life cycle ---- */

/* What prevents it; NULL: nothing. */
static const char *forbids(const fab *f)
{
    const orr__packet_config *c = &f->config;
    const char *why = NULL;
    for (uint32_t i = 0; i < f->port_count && !why; i++)
        if (f->ports[i].error > 0)
            why = "links that lose packets";
    if (!f->rules.can_skip_periods)
        why = "--compat";
    else if (f->control)
        why = "congestion control (CC_MODE 0 has none): its state never comes back exactly";
    else if (c->selective || c->load_balance)
        why = "TRANSPORT selective and LOAD_BALANCE";
    else if (c->nic_pauses)
        why = "NIC_TOTAL_PAUSE_TIME";
    else if (f->watch.hears & FAB_HEARS_FRAMES)
        why = "a packet trace, which would have gaps";
    return why;
}

static orr_code create(fab *f, bool is_asked, orr_error *err)
{
    fab_approx *a = f->approx = orr_alloc(1, sizeof *a);
    if (!a || !(a->ports = orr_alloc(f->port_count, sizeof *a->ports)))
        return orr_no_memory(err);
    a->is_asked = is_asked;
    a->anchor = FAB_NONE;
    a->wait = a->patience = is_asked ? FIRST_WAIT : LONG_RUN;
    return ORR_OK;
}

orr_code fab_approx_create(fab *f, orr_error *err)
{
    if (f->config.approx != ORR__APPROX_ON)
        return ORR_OK;
    const char *why = forbids(f);
    const orr_where w = orr__packet_config_where(&f->config, "APPROX");
    if (why)
        return orr_fail(err, ORR_EINPUT, w.path[0] ? &w : NULL,
                        "APPROX cannot be used with "
                        "%s",
                        why);
    return create(f, true, err);
}

orr_code fab_approx_begin(fab *f, orr_error *err)
{
    /* Flow lines and pauses are unaffected; other observers see intermediate states. */
    const unsigned fine = FAB_HEARS_LINES | FAB_HEARS_PAUSES;
    if (f->config.approx != ORR__APPROX_LONG || f->config.counts_events || f->config.has_history ||
        (f->watch.hears & ~fine) || forbids(f))
        return ORR_OK;
    return create(f, false, err);
}

void fab_approx_destroy(fab_approx *a)
{
    if (!a)
        return;
    orr_buf_fini(&a->before);
    orr_buf_fini(&a->after);
    orr_free(a->ports);
    orr_free(a->acked);
    orr_free(a->ids);
    orr_free(a);
}
