/* SPDX-License-Identifier: Apache-2.0 */
/* report_fabric.c - links, queues, pauses and flows of a packet network, for the page
 * (docs/format/report.md). */
#include "report_impl.h"

#include <orrery/lab/units.h>

#include <math.h>

typedef orr_json_writer writer;

/* ---- pieces ---- */

static void put_ns(writer *w, const char *key, uint64_t ps)
{
    orr_json_key(w, key);
    if (ps % 1000 == 0)
        orr_json_u64(w, ps / 1000);
    else
        orr_json_double(w, (double)ps / 1000);
}

/* 0: null. */
static void put_known(writer *w, const char *key, double value)
{
    orr_json_key(w, key);
    if (value > 0)
        orr_json_double(w, value);
    else
        orr_json_null(w);
}

/* Four digits behind the point are more than a colour can show. */
static void put_values(writer *w, const char *key, const double *values, size_t count)
{
    orr_json_key(w, key);
    if (!values) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++) {
        const double v = round(values[i] * 1e4) / 1e4;
        if (v == floor(v) && v < 1e15)
            orr_json_u64(w, (uint64_t)v);
        else
            orr_json_double(w, v);
    }
    orr_json_end_array(w);
}

/* ---- figures ---- */

static void put_figures(writer *w, const orr_packet_figures *g)
{
    orr_json_key(w, "figures");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "hosts", g->hosts);
    orr_json_put_u64(w, "switches", g->switches);
    orr_json_put_u64(w, "links", g->links);
    orr_json_put_u64(w, "flows", g->flows);
    orr_json_put_u64(w, "flows_done", g->flows_done);
    orr_json_put_u64(w, "data_packets", g->data_packets);
    orr_json_put_u64(w, "data_bytes", g->data_bytes);
    orr_json_put_u64(w, "retransmitted_bytes", g->retransmitted_bytes);
    orr_json_put_u64(w, "acks", g->acks);
    orr_json_put_u64(w, "nacks", g->nacks);
    orr_json_put_u64(w, "timeouts", g->timeouts);
    orr_json_put_u64(w, "ecn_marked", g->marked);
    orr_json_put_u64(w, "pauses", g->pauses);
    orr_json_put_u64(w, "paused_ports", g->paused_ports);
    orr_json_put_u64(w, "dropped", g->dropped);
    orr_json_put_u64(w, "trimmed", g->trimmed);
    orr_json_put_u64(w, "lost", g->lost);
    orr_json_end_object(w);
}

/* ---- links ---- */

static void put_link(const orr_fabric_view *v, const orr_fabric_link *l, writer *w)
{
    const double end = (double)v->end_ps;
    orr_json_begin_object(w);
    orr_json_put_text(w, "name", l->name);
    orr_json_put_double(w, "bandwidth_Bps", (double)l->bits_per_second / 8);
    orr_json_put_u64(w, "bytes", l->bytes);
    put_ns(w, "busy_ns", l->busy_ps);
    orr_json_put_double(w, "utilisation", end > 0 ? fmin(1, (double)l->busy_ps / end) : 0);
    orr_json_put_u64(w, "pauses", l->pauses);
    put_ns(w, "paused_ns", l->paused_ps);
    orr_json_put_double(w, "paused_share", end > 0 ? fmin(1, (double)l->paused_ps / end) : 0);
    orr_json_put_u64(w, "longest_queue_bytes", l->longest_queue);
    put_values(w, "values", l->values, v->columns);
    orr_json_end_object(w);
}

static void put_links(const orr_fabric_view *v,
                      const char *key,
                      const orr_fabric_link *list,
                      size_t count,
                      size_t left_out,
                      writer *w)
{
    orr_json_key(w, key);
    orr_json_begin_object(w);
    orr_json_key(w, "rows");
    orr_json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        put_link(v, &list[i], w);
    orr_json_end_array(w);
    orr_json_put_u64(w, "left_out", left_out);
    if (list == v->links)
        put_values(w, "rest", v->rest_use, v->columns);
    orr_json_end_object(w);
}

/* ---- flows ---- */

static void put_class(const orr_fabric_flows *c, writer *w)
{
    orr_json_begin_object(w);
    orr_json_put_u64(w, "above_bytes", c->above);
    put_known(w, "up_to_bytes", (double)c->up_to);
    orr_json_put_u64(w, "flows", c->flows);
    orr_json_put_u64(w, "bytes", c->bytes);
    orr_json_key(w, "fct_ns");
    orr_json_begin_array(w);
    for (unsigned i = 0; i < ORR_FABRIC_TIMES; i++)
        orr_json_double(w, (double)c->fct_ps[i] / 1000);
    orr_json_end_array(w);
    put_ns(w, "fct_p99_ns", c->fct_p99_ps);
    put_known(w, "slowdown_p50", c->slowdown_p50);
    put_known(w, "slowdown_p95", c->slowdown_p95);
    put_known(w, "slowdown_p99", c->slowdown_p99);
    put_known(w, "slowdown_max", c->slowdown_max);
    orr_json_end_object(w);
}

static void put_flows(const orr_fabric_view *v, writer *w)
{
    orr_json_key(w, "flow_times");
    if (!v->all.flows) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    orr_json_key(w, "all");
    put_class(&v->all, w);
    orr_json_key(w, "by_size");
    orr_json_begin_array(w);
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++)
        if (v->classes[i].flows)
            put_class(&v->classes[i], w);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

/* ---- the whole ---- */

void orr__put_fabric(const orr__study *s, writer *w)
{
    const orr_fabric_view *v = s->run->fabric;
    orr_json_key(w, "fabric");
    if (!v) {
        orr_json_null(w);
        return;
    }
    orr_json_begin_object(w);
    put_figures(w, &v->figures);
    put_ns(w, "end_ns", v->end_ps);
    put_known(w, "column_ns", (double)v->column_ps / 1000);
    orr_json_put_u64(w, "columns", v->columns);
    put_links(v, "links", v->links, v->link_count, v->links_left_out, w);
    put_links(v, "queues", v->queues, v->queue_count, v->queues_left_out, w);
    put_links(v, "pauses", v->pauses, v->pause_count, v->pauses_left_out, w);
    put_values(w, "paused_ports", v->paused_ports, v->columns);
    put_flows(v, w);
    orr_json_key(w, "notes");
    orr_json_begin_array(w);
    for (size_t i = 0; i < v->note_count; i++)
        orr_json_text(w, v->notes[i]);
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_lost(const orr_packet_figures *g, orr_buf *b)
{
    char bytes[ORR_UNIT_ROOM], count[ORR_UNIT_ROOM];
    if (g->dropped + g->trimmed + g->lost)
        orr_buf_print(b, " %s packets were dropped, cut or lost, and %s were sent again.",
                      orr_count_text(g->dropped + g->trimmed + g->lost, count),
                      orr_bytes_text(g->retransmitted_bytes, bytes));
    else if (g->retransmitted_bytes)
        orr_buf_print(b, " No packet was lost, but %s were sent again.",
                      orr_bytes_text(g->retransmitted_bytes, bytes));
    if (g->pauses)
        orr_buf_print(b, " Ports were paused %s time%s.", orr_count_text(g->pauses, count),
                      g->pauses == 1 ? "" : "s");
}

void orr__put_fabric_sentence(const orr__study *s, orr_buf *b)
{
    const orr_fabric_view *v = s->run->fabric;
    char use[ORR_UNIT_ROOM], queue[ORR_UNIT_ROOM];
    if (v->link_count) {
        const orr_fabric_link *l = &v->links[0];
        const uint64_t busy = l->busy_ps < v->end_ps ? l->busy_ps : v->end_ps;
        orr_buf_print(b, "The busiest link, %s, was in use %s of the time", l->name,
                      orr_percent_text(busy, v->end_ps, use));
        if (v->queue_count)
            orr_buf_print(b, "; the longest queue, at %s, held %s", v->queues[0].name,
                          orr_bytes_text(v->queues[0].longest_queue, queue));
        orr_buf_text(b, ".");
    }
    if (v->all.slowdown_p99 > 0)
        orr_buf_print(b,
                      " Half of the flows took up to %.2f times as long as alone, the slowest in a "
                      "hundred %.2f times or more.",
                      v->all.slowdown_p50, v->all.slowdown_p99);
    put_lost(&v->figures, b);
}
