/* SPDX-License-Identifier: Apache-2.0 */
/* packet_report.c - results of a run of flows: a short table, or one JSON object
 * (docs/format/packet.md). */
#include "views_impl.h"

#include <orrery/lab/units.h>

#include "base/formats/json.h"
#include "base/io/output.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdio.h>

enum { FORMAT_VERSION = 1, LINKS_IN_TEXT = 5 };
enum { CLASS_ROOM = 3 * ORR_UNIT_ROOM };
enum { MEDIAN = 20, PERCENT_95 = 38, ALL_OF_THEM = 40 }; /* in fct_ps */

/* ---- text ---- */

static void put_count(orr_buf *b, const char *what, uint64_t n)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "%-22s %s\n", what, orr_count_text(n, text));
}

/* A power of two, without decimals: "64 KiB". */
static void plain_size(uint64_t bytes, char out[ORR_UNIT_ROOM])
{
    const bool is_large = bytes >= 1 << 20;
    snprintf(out, ORR_UNIT_ROOM, "%" PRIu64 " %s", bytes >> (is_large ? 20 : 10),
             is_large ? "MiB" : "KiB");
}

static void put_time(orr_buf *b, const char *what, uint64_t ps)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "%-22s %s\n", what, orr_time_text((orr_ps)ps, text));
}

/* "4 KiB to 64 KiB" */
static void name_class(const orr_fabric_flows *c, char out[CLASS_ROOM])
{
    char above[ORR_UNIT_ROOM], up_to[ORR_UNIT_ROOM];
    plain_size(c->above, above);
    plain_size(c->up_to, up_to);
    if (!c->up_to)
        snprintf(out, CLASS_ROOM, "above %s", above);
    else if (!c->above)
        snprintf(out, CLASS_ROOM, "up to %s", up_to);
    else
        snprintf(out, CLASS_ROOM, "%s to %s", above, up_to);
}

static void put_class(orr_buf *b, const char *name, const orr_fabric_flows *c)
{
    char flows[ORR_UNIT_ROOM], median[ORR_UNIT_ROOM];
    if (!c->flows)
        return;
    orr_buf_print(b, "%-22s %9s %10s", name, orr_short_text(c->flows, flows),
                  orr_time_text((orr_ps)c->fct_ps[MEDIAN], median));
    if (c->slowdown_max > 0)
        orr_buf_print(b, " %7.2f %7.2f %7.2f %9.2f", c->slowdown_p50, c->slowdown_p95,
                      c->slowdown_p99, c->slowdown_max);
    orr_buf_byte(b, '\n');
}

static void put_flows(orr_buf *b, const orr__fabric_facts *f)
{
    char name[CLASS_ROOM];
    if (!f->flows.flows)
        return;
    orr_buf_print(b, "\n%-22s %9s %10s %7s %7s %7s %9s\n", "flows, time over ideal", "flows",
                  "median", "p50", "p95", "p99", "max");
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++) {
        name_class(&f->classes[i], name);
        put_class(b, name, &f->classes[i]);
    }
    put_class(b, "all", &f->flows);
}

static void put_link(orr_buf *b, const orr_fabric_link *l, uint64_t end_ps)
{
    char use[ORR_UNIT_ROOM], bytes[ORR_UNIT_ROOM], queue[ORR_UNIT_ROOM], paused[ORR_UNIT_ROOM];
    orr_buf_print(b, "%-31s %7s %11s %13s %9s\n", l->name,
                  orr_percent_text(l->busy_ps, end_ps, use), orr_bytes_text(l->bytes, bytes),
                  orr_bytes_text(l->longest_queue, queue),
                  orr_percent_text(l->paused_ps < end_ps ? l->paused_ps : end_ps, end_ps, paused));
}

static void put_links(orr_buf *b, const orr__fabric_facts *f)
{
    char count[ORR_UNIT_ROOM], head[64];
    if (!f->busiest_count)
        return;
    snprintf(head, sizeof head, "links, %s used, busiest first",
             orr_count_text(f->links_used, count));
    orr_buf_print(b, "\n%-31s %7s %11s %13s %9s\n", head, "in use", "moved", "longest queue",
                  "paused");
    for (size_t i = 0; i < f->busiest_count && i < LINKS_IN_TEXT; i++)
        put_link(b, &f->busiest[i], f->end_ticks * f->tick_ps);
}

static void put_queue(orr_buf *b, const orr__fabric_facts *f)
{
    char bytes[ORR_UNIT_ROOM];
    if (f->queue_count)
        orr_buf_print(b, "%-22s %s at %s\n", "longest queue",
                      orr_bytes_text(f->queues[0].longest_queue, bytes), f->queues[0].name);
}

orr_code orr_packet_write_text(const orr_packet *p, const char *path, orr_error *err)
{
    orr__flow_facts facts;
    char bytes[ORR_UNIT_ROOM];
    orr_buf b = {0};
    orr_code code = orr__flow_facts_take(p, &facts, err);
    if (code) {
        orr__flow_facts_fini(&facts);
        return code;
    }
    const orr_packet_figures *g = &facts.fabric.figures;
    orr_buf_print(&b, "%u host%s, %u switch%s, %u link%s", g->hosts, orr__plural(g->hosts),
                  g->switches, g->switches == 1 ? "" : "es", g->links, orr__plural(g->links));
    if (g->max_rtt_ns) /* 0: not measured */
        orr_buf_print(&b, "; base round trip %" PRIu64 " ns at most, %s in flight", g->max_rtt_ns,
                      orr_bytes_text(g->max_bdp_bytes, bytes));
    orr_buf_text(&b, "\n\n");
    orr_buf_print(&b, "%-22s %" PRIu64 " of %" PRIu64 "\n", "flows done", g->flows_done, g->flows);
    if (g->flows_done) {
        put_time(&b, "last flow done at", g->finished_at_ps);
        put_time(&b, "shortest flow", g->fct_min_ps);
        put_time(&b, "mean flow", g->fct_sum_ps / g->flows_done);
        put_time(&b, "longest flow", g->fct_max_ps);
    }
    put_count(&b, "data packets", g->data_packets);
    put_count(&b, "acknowledgements", g->acks);
    put_count(&b, "NACKs", g->nacks);
    put_count(&b, "timeouts", g->timeouts);
    orr_buf_print(&b, "%-22s %s\n", "retransmitted", orr_bytes_text(g->retransmitted_bytes, bytes));
    put_count(&b, "marked by ECN", g->marked);
    put_count(&b, "pauses", g->pauses);
    put_count(&b, "resumes", g->resumes);
    put_count(&b, "dropped, buffer full", g->dropped);
    if (g->trimmed)
        put_count(&b, "trimmed to headers", g->trimmed);
    put_count(&b, "lost on links", g->lost);
    put_queue(&b, &facts.fabric);
    put_flows(&b, &facts.fabric);
    put_links(&b, &facts.fabric);
    orr__packet_put_notes(&b, &facts.fabric);
    code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    orr__flow_facts_fini(&facts);
    return code;
}

/* ---- JSON ---- */

static void put_network(orr_json_writer *w, const orr_packet_figures *g)
{
    orr_json_put_fields(w, ORR_U("hosts", g->hosts), ORR_U("switches", g->switches),
                        ORR_U("links", g->links), ORR_U("max_rtt_ns", g->max_rtt_ns),
                        ORR_U("max_bdp_bytes", g->max_bdp_bytes));
}

/* The ports that were paused for the longest time. */
static void put_pfc(orr_json_writer *w, const orr__fabric_facts *f)
{
    orr_json_put_object(w, "pfc");
    orr_json_put_u64(w, "paused_ports", f->paused_ports);
    orr_json_put_array(w, "notes");
    for (size_t i = 0; i < f->storm.count; i++)
        orr_json_text(w, f->storm.lines[i]);
    orr_json_end_array(w);
    orr_json_put_array(w, "ports");
    for (unsigned i = 0; i < f->paused_count; i++) {
        const orr__paused_port *p = &f->paused[i];
        orr_json_put_row(w, ORR_T("port", p->port), ORR_U("pauses", p->pauses),
                         ORR_U("paused_ps", p->paused_ps), ORR_U("longest_pause_ps", p->longest_ps),
                         ORR_D("paused_share", p->share), ORR_U("longest_chain", p->chain),
                         ORR_T("head", p->head));
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_known(orr_json_writer *w, const char *key, double value)
{
    orr_json_put_known_double(w, key, value > 0, value);
}

static void put_class_members(orr_json_writer *w, const orr_fabric_flows *c)
{
    orr_json_put_fields(w, ORR_U("flows", c->flows), ORR_U("bytes", c->bytes),
                        ORR_U("p50_ps", c->fct_ps[MEDIAN]), ORR_U("p95_ps", c->fct_ps[PERCENT_95]),
                        ORR_U("p99_ps", c->fct_p99_ps), ORR_U("max_ps", c->fct_ps[ALL_OF_THEM]));
    put_known(w, "slowdown_p50", c->slowdown_p50);
    put_known(w, "slowdown_p95", c->slowdown_p95);
    put_known(w, "slowdown_p99", c->slowdown_p99);
    put_known(w, "slowdown_max", c->slowdown_max);
}

static void put_flow_sizes(orr_json_writer *w, const orr__fabric_facts *f)
{
    orr_json_put_object(w, "flow_times");
    put_class_members(w, &f->flows);
    orr_json_put_array(w, "by_size");
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++) {
        const orr_fabric_flows *c = &f->classes[i];
        if (!c->flows)
            continue;
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_U("above_bytes", c->above),
                            ORR_KU("up_to_bytes", c->up_to, c->up_to));
        put_class_members(w, c);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_ports(orr_json_writer *w,
                      const orr__fabric_facts *f,
                      const char *key,
                      const orr_fabric_link *list,
                      size_t count)
{
    const double end = (double)f->end_ticks * (double)f->tick_ps;
    orr_json_put_array(w, key);
    for (size_t i = 0; i < count; i++) {
        const orr_fabric_link *l = &list[i];
        orr_json_put_row(w, ORR_T("link", l->name), ORR_U("bits_per_second", l->bits_per_second),
                         ORR_U("bytes", l->bytes), ORR_U("busy_ps", l->busy_ps),
                         ORR_D("utilisation", end > 0 ? (double)l->busy_ps / end : 0),
                         ORR_U("longest_queue_bytes", l->longest_queue), ORR_U("pauses", l->pauses),
                         ORR_U("paused_ps", l->paused_ps));
    }
    orr_json_end_array(w);
}

static void add_lines(orr_buf *b, const orr__fabric_notes *n)
{
    for (size_t i = 0; i < n->count; i++) {
        orr_buf_text(b, n->lines[i]);
        orr_buf_byte(b, '\n');
    }
}

void orr__packet_put_notes(orr_buf *b, const orr__fabric_facts *f)
{
    add_lines(b, &f->storm);
    add_lines(b, &f->approx);
}

void orr__packet_put_figures(orr_json_writer *w, const orr__fabric_facts *f)
{
    const orr_packet_figures *g = &f->figures;
    orr_json_put_fields(
        w, ORR_U("flows", g->flows), ORR_U("flows_done", g->flows_done),
        ORR_U("finished_at_ps", g->finished_at_ps), ORR_U("fct_min_ps", g->fct_min_ps),
        ORR_U("fct_max_ps", g->fct_max_ps), ORR_U("fct_sum_ps", g->fct_sum_ps),
        ORR_U("data_packets", g->data_packets), ORR_U("data_bytes", g->data_bytes),
        ORR_U("acks", g->acks), ORR_U("nacks", g->nacks), ORR_U("timeouts", g->timeouts),
        ORR_U("retransmitted_bytes", g->retransmitted_bytes), ORR_U("ecn_marked", g->marked),
        ORR_U("pfc_pauses", g->pauses), ORR_U("pfc_resumes", g->resumes),
        ORR_U("dropped_buffer_full", g->dropped), ORR_U("trimmed", g->trimmed),
        ORR_U("lost_on_links", g->lost), ORR_U("events", g->events), ORR_U("skips", g->skips),
        ORR_U("skipped_ps", g->skipped_ps));
    orr_json_put_u64(w, "time_error_bound_ps", 0); /* for every flow: fab_approx.c explains why */
    put_flow_sizes(w, f);
    put_ports(w, f, "busiest_links", f->busiest, f->busiest_count);
    put_ports(w, f, "longest_queues", f->queues, f->queue_count);
    put_pfc(w, f);
}

static orr_code put_inputs(orr_json_writer *w, const orr_packet *p, orr_error *err)
{
    orr_packet_input in;
    orr_code code;
    orr_json_put_array(w, "inputs");
    for (size_t i = 0; !(code = orr_packet_input_at(p, i, &in, err)); i++) {
        orr_json_put_row(w, ORR_T("what", in.what), ORR_T("path", in.path),
                         ORR_T("content_hash_murmur3_128", *in.hash ? in.hash : NULL));
    }
    orr_json_end_array(w);
    return code == ORR_END ? ORR_OK : code;
}

static void put_lines(orr_json_writer *w,
                      const char *key,
                      const orr_packet *p,
                      const char *(*line_of)(const orr_packet *, size_t))
{
    orr_json_put_array(w, key);
    for (size_t i = 0; line_of(p, i); i++)
        orr_json_text(w, line_of(p, i));
    orr_json_end_array(w);
}

orr_code orr_packet_write_json(const orr_packet *p, const char *path, orr_error *err)
{
    orr__flow_facts facts;
    orr_buf b = {0};
    orr_json_writer w;
    orr_code code = orr__flow_facts_take(p, &facts, err);
    if (code) {
        orr__flow_facts_fini(&facts);
        return code;
    }
    orr_json_writer_init(&w, &b, NULL);
    orr_json_begin_object(&w);
    orr_json_put_fields(&w, ORR_T("format", "orrery-flows"), ORR_U("version", FORMAT_VERSION),
                        ORR_T("program", facts.program ? facts.program : ""),
                        ORR_T("config", facts.config), ORR_B("compat", facts.has_rules));
    code = put_inputs(&w, p, err);
    put_network(&w, &facts.fabric.figures);
    orr__packet_put_figures(&w, &facts.fabric);
    put_lines(&w, "warnings", p, orr_packet_warning);
    put_lines(&w, "stall", p, orr_packet_stall);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    if (!code)
        code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    orr__flow_facts_fini(&facts);
    return code;
}
