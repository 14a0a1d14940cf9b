/* SPDX-License-Identifier: Apache-2.0 */
/* packet_monitor.c - SimAI's four files (packet-network.md 13): queue lengths, bandwidth of ports,
 * rates and marks of flows.
 *
 * A file gets a row only if a value changed since the last sample, so only the last values are
 * kept. */
#include "base/io/output.h"
#include "models/network/packet/engine/fabric_impl.h"
#include "models/network/packet/watch/watchers.h"

#include <inttypes.h>
#include <stdlib.h>

enum { QLEN, BANDWIDTH, RATES, MARKS, LOOKS };
enum { DRAIN_AT = 1 << 16 };

/* The last values written for a flow. */
typedef struct flow_news {
    uint64_t rate;
    uint32_t marks, marks_told;
} flow_news;

typedef struct fab_monitor {
    orr_output *files[LOOKS];
    orr_buf texts[LOOKS];
    uint64_t *sent, *queued; /* by port: bytes */
    flow_news *flows;
    uint32_t *rows; /* flows that have a row in the current sample */
    size_t flow_room, row_room;
} fab_monitor;

/* ---- flows ---- */

/* Nothing written for it so far.  Lanes reserve space for all flows: each writes to those of its
 * own hosts. */
static bool flow_made(void *o, uint32_t flow)
{
    fab_monitor *m = o;
    if (!orr_grow(&m->flows, &m->flow_room, (size_t)flow + 1))
        return false;
    m->flows[flow] = (flow_news){0};
    return true;
}

static void ack_marked(void *o, uint32_t flow)
{
    ((fab_monitor *)o)->flows[flow].marks++;
}

/* ---- rows ---- */

static void put_flow(const fab *f, orr_buf *b, const fab_flow *w, uint64_t value)
{
    orr_buf_print(b, "%" PRIu64 ", %u, %u, %u, %u, %" PRIu64 ", %" PRIu64 "\n", f->now / f->unit,
                  w->src, w->dst, w->src_port, w->dst_port, w->size, value);
}

static bool has_news(const fab *f, const fab_monitor *m, unsigned what, uint32_t flow)
{
    const fab_flow *w = &f->flows[flow];
    const flow_news *n = &m->flows[flow];
    if (!w->is_used || !w->line_rate || w->is_complete)
        return false;
    return what == RATES ? n->rate != w->rate : n->marks != n->marks_told;
}

/* Flows with a row, in order of creation; with rules.reuses_last_flow by
 * slot. */
static size_t flows_with_news(fab *f, fab_monitor *m, unsigned what)
{
    size_t count = 0;
    if (!orr_grow(&m->rows, &m->row_room, f->flow_count)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return 0;
    }
    for (uint32_t i = 0; i < f->flow_count; i++)
        if (has_news(f, m, what, i))
            m->rows[count++] = i;
    if (!f->rules.reuses_last_flow && count)
        qsort_r(m->rows, count, sizeof *m->rows, fab_by_number, f->flows);
    return count;
}

static void look_at_flows(fab *f, fab_monitor *m, unsigned what)
{
    const size_t count = flows_with_news(f, m, what);
    for (size_t i = 0; i < count; i++) {
        const fab_flow *w = &f->flows[m->rows[i]];
        flow_news *n = &m->flows[m->rows[i]];
        put_flow(f, &m->texts[what], w, what == RATES ? w->rate : n->marks);
        if (what == RATES)
            n->rate = w->rate;
        else
            n->marks_told = n->marks;
    }
}

static void look_at_bandwidth(const fab *f, fab_monitor *m, uint32_t port)
{
    const fab_port *p = &f->ports[port];
    const uint64_t bytes = p->bytes_sent - m->sent[port];
    if (bytes)
        orr_buf_print(&m->texts[BANDWIDTH], "%" PRIu64 ", %u, %u, %f\n", f->now / f->unit, p->node,
                      p->number, (double)bytes * 8 / 1e3 / (double)f->config.bw_mon_us);
    m->sent[port] = p->bytes_sent;
}

static void look_at_queues(const fab *f, fab_monitor *m, uint32_t port)
{
    const fab_queue *q = &f->queues[(size_t)port * FAB_CLASSES];
    uint64_t all = 0;
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        all += q[i].egress;
    if (!f->ports[port].is_switch || all == m->queued[port])
        return;
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        orr_buf_print(&m->texts[QLEN], "%" PRIu64 ", %u, %u, %u, %u, %" PRIu64 "\n",
                      f->now / f->unit, f->ports[port].node, f->ports[port].number, i, q[i].egress,
                      all);
    m->queued[port] = all;
}

/* By node, then by port. */
static void look_at_ports(const fab *f, fab_monitor *m, unsigned what)
{
    for (uint32_t i = 0; i < f->port_count; i++) {
        if (what == QLEN)
            look_at_queues(f, m, f->ports_of[i]);
        else
            look_at_bandwidth(f, m, f->ports_of[i]);
    }
}

static void look(fab *f, void *o, unsigned what)
{
    fab_monitor *m = o;
    if (what == RATES || what == MARKS)
        look_at_flows(f, m, what);
    else
        look_at_ports(f, m, what);
    if (m->texts[what].len >= DRAIN_AT)
        orr_output_drain(m->files[what], &m->texts[what]);
}

/* ---- times ---- */

static uint64_t interval_of(const fab *f, unsigned what)
{
    const orr__packet_config *c = &f->config;
    const uint64_t us = what == BANDWIDTH ? c->bw_mon_us
                        : what == QLEN    ? c->qlen_interval_ns /* of SimAI: microseconds */
                                          : c->qp_mon_us;
    return us * 1000 * f->unit;
}

static bool next_look(
    const fab *f, const void *o, unsigned what, uint64_t from, bool is_again, uint64_t *at)
{
    const uint64_t first = f->config.mon_start_us * 1000 * f->unit, every = interval_of(f, what);
    (void)o, (void)is_again;
    *at = from < first ? first : first + ((from - first) / every + 1) * every;
    return *at / f->unit / 1000 <= f->config.mon_end_us;
}

/* ---- files ---- */

static orr_code open_files(const fab *f, fab_monitor *m, orr_error *err)
{
    static const char *const heads[LOOKS] = {"time, sw_id, port_id, q_id, q_len, port_len\n",
                                             "time, node_id, port_id, bandwidth\n",
                                             "time, src, dst, sport, dport, size, curr_rate\n",
                                             "time, src, dst, sport, dport, size, cnp_number\n"};
    const orr__packet_config *c = &f->config;
    const char *const paths[LOOKS] = {c->is_simai ? c->qlen_out : "", c->bw_out, c->rate_out,
                                      c->cnp_out};
    orr_code code = ORR_OK;
    for (int i = 0; i < LOOKS && !code; i++) {
        if (!paths[i][0])
            continue;
        code = orr_output_open_deep(paths[i], &m->files[i], err);
        orr_buf_text(&m->texts[i], heads[i]);
    }
    return code;
}

static bool wants_monitor(const orr__packet_config *c)
{
    return (c->is_simai && c->qlen_out[0]) || c->bw_out[0] || c->rate_out[0] || c->cnp_out[0];
}

static void destroy(void *o)
{
    fab_monitor *m = o;
    for (int i = 0; i < LOOKS; i++) {
        orr_output_discard(m->files[i]);
        orr_buf_fini(&m->texts[i]);
    }
    orr_free(m->sent);
    orr_free(m->queued);
    orr_free(m->flows);
    orr_free(m->rows);
    orr_free(m);
}

static orr_code commit(fab *f, void *o, orr_error *err)
{
    fab_monitor *m = o;
    (void)f;
    return fab_commit_files(m->files, m->texts, LOOKS, err);
}

static const fab_observer_ops ops = {.flow_made = flow_made,
                                     .ack_marked = ack_marked,
                                     .next_look = next_look,
                                     .look = look,
                                     .commit = commit,
                                     .destroy = destroy};

orr_code fab_watch_monitor(fab *f, orr_error *err)
{
    if (!wants_monitor(&f->config))
        return ORR_OK;
    fab_monitor *m = orr_alloc(1, sizeof *m);
    if (!m)
        return orr_no_memory(err);
    m->sent = orr_alloc(f->port_count, sizeof *m->sent);
    m->queued = orr_alloc(f->port_count, sizeof *m->queued);
    orr_code code = m->sent && m->queued ? open_files(f, m, err) : orr_no_memory(err);
    if (code) {
        destroy(m);
        return code;
    }
    code = fab_observe(f, &ops, m, FAB_HEARS_MARKS, err);
    for (unsigned i = 0; i < LOOKS && !code; i++)
        if (m->files[i])
            fab_add_look(f, i, FAB_LOOK_PLAIN);
    return code;
}
