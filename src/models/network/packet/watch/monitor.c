/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - what looks at the network at fixed times: time series of ours, and SimAI's four files
 * (packet-network.md 13): queue lengths, bandwidth of ports, rates and marks of flows.
 *
 * SimAI's files get a row where something has changed since the last look, so they are as long as
 * there is news, and only the last values are kept.  Nothing here changes what the network does; a
 * look is taken while flows are under way, and no lane runs (fab_lanes.c). */
#include "series.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SERIES, QLEN, BANDWIDTH, RATES, MARKS, LOOKS };
enum { DRAIN_AT = 1 << 16 };

/* Of a flow: what the files said last. */
typedef struct flow_news {
    uint64_t rate;
    uint32_t marks, marks_told;
} flow_news;

struct fab_monitor {
    orr_output *files[LOOKS];
    orr_buf texts[LOOKS];
    bool is_armed[LOOKS];
    uint64_t *sent, *queued; /* by port: bytes */
    flow_news *flows;
    uint32_t *rows; /* flows that have one in the look that is taken */
    size_t flow_room, row_room;
};

/* ---- flows ---- */

/* Nothing was said of it so far.  Lanes find room for all flows: each writes to those of its own
 * hosts. */
bool fab_monitor_flow_comes(const fab *f, uint32_t flow)
{
    fab_monitor *m = f->monitor;
    if (!orr_grow(&m->flows, &m->flow_room, (size_t)flow + 1))
        return false;
    m->flows[flow] = (flow_news){0};
    return true;
}

void fab_monitor_mark(const fab *f, uint32_t flow)
{
    f->monitor->flows[flow].marks++;
}

/* ---- rows ---- */

static void put_flow(const fab *f, orr_buf *b, const fab_flow *w, uint64_t value)
{
    orr_buf_print(b, "%" PRIu64 ", %u, %u, %u, %u, %" PRIu64 ", %" PRIu64 "\n", f->now / f->unit,
                  w->src, w->dst, w->src_port, w->dst_port, w->size, value);
}

static bool has_news(const fab *f, unsigned what, uint32_t flow)
{
    const fab_flow *w = &f->flows[flow];
    const flow_news *n = &f->monitor->flows[flow];
    if (!w->is_used || !w->line_rate || w->is_complete)
        return false;
    return what == RATES ? n->rate != w->rate : n->marks != n->marks_told;
}

static int by_number(const void *a, const void *b, void *flows)
{
    const fab_flow *all = flows;
    const uint64_t x = all[*(const uint32_t *)a].number, y = all[*(const uint32_t *)b].number;
    return x < y ? -1 : x > y;
}

/* Flows with a row, in the order in which they came; with rules.reuses_last_flow by
 * slot. */
static size_t flows_with_news(fab *f, unsigned what)
{
    fab_monitor *m = f->monitor;
    size_t count = 0;
    if (!orr_grow(&m->rows, &m->row_room, f->flow_count)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return 0;
    }
    for (uint32_t i = 0; i < f->flow_count; i++)
        if (has_news(f, what, i))
            m->rows[count++] = i;
    if (!f->rules.reuses_last_flow && count)
        qsort_r(m->rows, count, sizeof *m->rows, by_number, f->flows);
    return count;
}

static void look_at_flows(fab *f, unsigned what)
{
    fab_monitor *m = f->monitor;
    const size_t count = flows_with_news(f, what);
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

static void look_at_bandwidth(fab *f, uint32_t port)
{
    fab_monitor *m = f->monitor;
    const fab_port *p = &f->ports[port];
    const uint64_t bytes = p->bytes_sent - m->sent[port];
    if (bytes)
        orr_buf_print(&m->texts[BANDWIDTH], "%" PRIu64 ", %u, %u, %f\n", f->now / f->unit, p->node,
                      p->number, (double)bytes * 8 / 1e3 / (double)f->config.bw_mon_us);
    m->sent[port] = p->bytes_sent;
}

static void look_at_queues(fab *f, uint32_t port)
{
    fab_monitor *m = f->monitor;
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
static void look_at_ports(fab *f, unsigned what)
{
    for (uint32_t i = 0; i < f->port_count; i++) {
        if (what == QLEN)
            look_at_queues(f, f->ports_of[i]);
        else
            look_at_bandwidth(f, f->ports_of[i]);
    }
}

static void look(fab *f, unsigned what)
{
    fab_monitor *m = f->monitor;
    if (what == SERIES) {
        fab_series_sample(f);
        return;
    }
    if (what == RATES || what == MARKS)
        look_at_flows(f, what);
    else
        look_at_ports(f, what);
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

/* False: never again. */
static bool next_look(const fab *f, unsigned what, uint64_t *at)
{
    if (what == SERIES) {
        *at = fab_series_next(f);
        return true;
    }
    const uint64_t first = f->config.mon_start_us * 1000 * f->unit, every = interval_of(f, what);
    *at = f->now < first ? first : first + ((f->now - first) / every + 1) * every;
    return *at / f->unit / 1000 <= f->config.mon_end_us;
}

static bool is_wanted(const fab *f, unsigned what)
{
    return what == SERIES ? f->series != NULL : f->monitor->files[what] != NULL;
}

void fab_monitor_arm(fab *f)
{
    uint64_t at;
    for (unsigned i = 0; i < LOOKS; i++) {
        if (f->monitor->is_armed[i] || !is_wanted(f, i) || !next_look(f, i, &at))
            continue;
        f->monitor->is_armed[i] = true;
        (void)fab_after(f, at - f->now, FAB_EV_LOOK, i);
    }
}

void fab_monitor_look(fab *f, uint32_t event, uint32_t what)
{
    uint64_t at;
    look(f, what);
    f->monitor->is_armed[what] = f->under_way > 0 && next_look(f, what, &at);
    if (f->monitor->is_armed[what])
        fab_wheel_at(&f->wheel, event, at, fab_global_order(f));
    else
        fab_wheel_drop(&f->wheel, event);
    fab_watch_for_stall(f);
}

/* ---- files ---- */

static orr_code open_files(fab *f, fab_monitor *m, orr_error *err)
{
    static const char *const heads[LOOKS] = {"", "time, sw_id, port_id, q_id, q_len, port_len\n",
                                             "time, node_id, port_id, bandwidth\n",
                                             "time, src, dst, sport, dport, size, curr_rate\n",
                                             "time, src, dst, sport, dport, size, cnp_number\n"};
    const orr__packet_config *c = &f->config;
    const char *const paths[LOOKS] = {"", c->is_simai ? c->qlen_out : "", c->bw_out, c->rate_out,
                                      c->cnp_out};
    orr_code code = ORR_OK;
    for (int i = 0; i < LOOKS && !code; i++) {
        if (!paths[i][0])
            continue;
        code = orr_output_open(paths[i], &m->files[i], err);
        orr_buf_text(&m->texts[i], heads[i]);
    }
    return code;
}

static bool wants_monitor(const orr__packet_config *c)
{
    return c->series_out[0] || (c->is_simai && c->qlen_out[0]) || c->bw_out[0] || c->rate_out[0] ||
           c->cnp_out[0];
}

orr_code fab_monitor_create(fab *f, orr_error *err)
{
    if (!wants_monitor(&f->config))
        return ORR_OK;
    fab_monitor *m = f->monitor = orr_alloc(1, sizeof *m);
    if (!m)
        return orr_no_memory(err);
    m->sent = orr_alloc(f->port_count, sizeof *m->sent);
    m->queued = orr_alloc(f->port_count, sizeof *m->queued);
    if (!m->sent || !m->queued)
        return orr_no_memory(err);
    const orr_code code = open_files(f, m, err);
    return code ? code : fab_series_create(f, &f->series, err);
}

void fab_monitor_destroy(fab *f)
{
    fab_monitor *m = f->monitor;
    fab_series_destroy(f->series);
    if (!m)
        return;
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

orr_code fab_monitor_commit(fab *f, orr_error *err)
{
    fab_monitor *m = f->monitor;
    orr_code code = ORR_OK;
    for (int i = 0; m && i < LOOKS && !code; i++) {
        if (!m->files[i])
            continue;
        if (m->texts[i].failed)
            return orr_no_memory(err);
        orr_output_drain(m->files[i], &m->texts[i]);
        code = orr_output_commit(&m->files[i], err);
    }
    return code ? code : fab_series_finish(f, err);
}
