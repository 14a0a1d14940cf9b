/* SPDX-License-Identifier: Apache-2.0 */
/* packet_report.c - what came of a run of flows: a short table, or one JSON object
 * (docs/format/packet.md). */
#include <orrery/lab/units.h>

#include "base/formats/json_fields.h"
#include "base/io/output.h"
#include "base/text/text.h"
#include "explain/flow_facts.h"

#include <inttypes.h>
#include <stdio.h>

enum { FORMAT_VERSION = 1, LINKS_IN_TEXT = 5, LINKS_IN_JSON = 16 };
enum { CLASS_ROOM = 3 * ORR_UNIT_ROOM };
enum { MEDIAN = 20, PERCENT_95 = 38, ALL_OF_THEM = 40 }; /* in fct_ps */

/* ---- text ---- */

static void put_count(orr_buf *b, const char *what, uint64_t n)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "%-22s %s\n", what, orr_count_text(n, text));
}

/* A power of two, without a point: "64 KiB". */
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

static void put_flows(orr_buf *b, const fab *f)
{
    orr_fabric_flows all, classes[ORR_FABRIC_CLASSES];
    char name[CLASS_ROOM];
    orr__fabric_flow_times(f, &all, classes);
    if (!all.flows)
        return;
    orr_buf_print(b, "\n%-22s %9s %10s %7s %7s %7s %9s\n", "flows, time over ideal", "flows",
                  "median", "p50", "p95", "p99", "max");
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++) {
        name_class(&classes[i], name);
        put_class(b, name, &classes[i]);
    }
    put_class(b, "all", &all);
}

static void put_link(orr_buf *b, const fab *f, uint32_t port)
{
    char name[ORR__PORT_NAME], use[ORR_UNIT_ROOM], bytes[ORR_UNIT_ROOM], queue[ORR_UNIT_ROOM];
    char paused[ORR_UNIT_ROOM];
    const orr_fabric_link l = orr__port_link(f, port);
    const uint64_t end = orr__fabric_end(f) * (1000 / fab_unit(f));
    orr__port_short_name(f, port, name);
    orr_buf_print(b, "%-31s %7s %11s %13s %9s\n", name, orr_percent_text(l.busy_ps, end, use),
                  orr_bytes_text(l.bytes, bytes), orr_bytes_text(l.longest_queue, queue),
                  orr_percent_text(l.paused_ps < end ? l.paused_ps : end, end, paused));
}

static void put_links(orr_buf *b, const fab *f)
{
    uint32_t list[LINKS_IN_TEXT];
    char count[ORR_UNIT_ROOM], head[64];
    size_t all;
    const size_t shown = orr__pick_ports(f, orr__measure_busy, list, LINKS_IN_TEXT, &all);
    if (!shown)
        return;
    snprintf(head, sizeof head, "links, %s used, busiest first", orr_count_text(all, count));
    orr_buf_print(b, "\n%-31s %7s %11s %13s %9s\n", head, "in use", "moved", "longest queue",
                  "paused");
    for (size_t i = 0; i < shown; i++)
        put_link(b, f, list[i]);
}

static void put_queue(orr_buf *b, const fab *f)
{
    uint32_t port;
    size_t all;
    char name[ORR__PORT_NAME], bytes[ORR_UNIT_ROOM];
    if (!orr__pick_ports(f, orr__measure_queue, &port, 1, &all))
        return;
    orr__port_short_name(f, port, name);
    orr_buf_print(b, "%-22s %s at %s\n", "longest queue",
                  orr_bytes_text(orr__measure_queue(f, port), bytes), name);
}

orr_code orr_packet_write_text(const orr_packet *p, const char *path, orr_error *err)
{
    const orr_packet_figures *g = orr_packet_result(p);
    char bytes[ORR_UNIT_ROOM];
    orr_buf b = {0};
    orr_buf_print(&b, "%u host%s, %u switch%s, %u link%s", g->hosts, orr__plural(g->hosts),
                  g->switches, g->switches == 1 ? "" : "es", g->links, orr__plural(g->links));
    if (g->max_rtt_ns) /* else it was not measured */
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
    orr_buf_print(&b, "%-22s %s\n", "sent again", orr_bytes_text(g->retransmitted_bytes, bytes));
    put_count(&b, "marked by ECN", g->marked);
    put_count(&b, "pauses", g->pauses);
    put_count(&b, "resumes", g->resumes);
    put_count(&b, "dropped, buffer full", g->dropped);
    if (g->trimmed)
        put_count(&b, "cut to headers", g->trimmed);
    put_count(&b, "lost on links", g->lost);
    put_queue(&b, orr__packet_fabric(p));
    put_flows(&b, orr__packet_fabric(p));
    put_links(&b, orr__packet_fabric(p));
    orr__packet_put_notes(&b, orr__packet_fabric(p));
    const orr_code code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}

/* ---- JSON ---- */

static void put_network(orr_json_writer *w, const orr_packet_figures *g)
{
    orr_json_put_fields(w, ORR_U("hosts", g->hosts), ORR_U("switches", g->switches),
                        ORR_U("links", g->links), ORR_U("max_rtt_ns", g->max_rtt_ns),
                        ORR_U("max_bdp_bytes", g->max_bdp_bytes));
}

/* Of the ports that were paused, those for the longest time. */
enum { PORTS_SHOWN = 16 };

typedef struct most_paused {
    fab_port_pauses list[PORTS_SHOWN];
    unsigned count;
} most_paused;

/* An insertion into a short sorted list; of equals the first stays first. */
static void keep_most(void *context, const fab_port_pauses *p)
{
    most_paused *m = context;
    unsigned at = m->count;
    while (at && m->list[at - 1].ticks < p->ticks)
        at--;
    if (at == PORTS_SHOWN)
        return;
    if (m->count < PORTS_SHOWN)
        m->count++;
    for (unsigned i = m->count - 1; i > at; i--)
        m->list[i] = m->list[i - 1];
    m->list[at] = *p;
}

static void put_line(void *writer, const char *line)
{
    orr_json_text(writer, line);
}

static void put_pfc(orr_json_writer *w, const fab *f)
{
    most_paused most = {.count = 0};
    const uint64_t ps = 1000 / fab_unit(f);
    orr_json_put_object(w, "pfc");
    orr_json_put_u64(w, "paused_ports", fab_paused_ports(f, keep_most, &most));
    orr_json_put_array(w, "notes");
    fab_explain_pauses(f, put_line, w);
    orr_json_end_array(w);
    orr_json_put_array(w, "ports");
    for (unsigned i = 0; i < most.count; i++) {
        const fab_port_pauses *p = &most.list[i];
        orr_json_put_row(w, ORR_T("port", p->port), ORR_U("pauses", p->pauses),
                         ORR_U("paused_ps", p->ticks * ps),
                         ORR_U("longest_pause_ps", p->longest_ticks * ps),
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

static void put_flow_sizes(orr_json_writer *w, const fab *f)
{
    orr_fabric_flows all, classes[ORR_FABRIC_CLASSES];
    orr__fabric_flow_times(f, &all, classes);
    orr_json_put_object(w, "flow_times");
    put_class_members(w, &all);
    orr_json_put_array(w, "by_size");
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++) {
        if (!classes[i].flows)
            continue;
        orr_json_begin_object(w);
        orr_json_put_fields(w, ORR_U("above_bytes", classes[i].above),
                            ORR_KU("up_to_bytes", classes[i].up_to, classes[i].up_to));
        put_class_members(w, &classes[i]);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void put_ports(orr_json_writer *w, const fab *f, const char *key, orr__port_measure measure)
{
    uint32_t list[LINKS_IN_JSON];
    char name[ORR__PORT_NAME];
    size_t all;
    const size_t shown = orr__pick_ports(f, measure, list, LINKS_IN_JSON, &all);
    const double end = (double)orr__fabric_end(f) * (1000 / fab_unit(f));
    orr_json_put_array(w, key);
    for (size_t i = 0; i < shown; i++) {
        const orr_fabric_link l = orr__port_link(f, list[i]);
        orr__port_short_name(f, list[i], name);
        orr_json_put_row(w, ORR_T("link", name), ORR_U("bits_per_second", l.bits_per_second),
                         ORR_U("bytes", l.bytes), ORR_U("busy_ps", l.busy_ps),
                         ORR_D("utilisation", end > 0 ? (double)l.busy_ps / end : 0),
                         ORR_U("longest_queue_bytes", l.longest_queue), ORR_U("pauses", l.pauses),
                         ORR_U("paused_ps", l.paused_ps));
    }
    orr_json_end_array(w);
}

static void add_line(void *buffer, const char *line)
{
    orr_buf_text(buffer, line);
    orr_buf_byte(buffer, '\n');
}

void orr__packet_put_notes(orr_buf *b, const fab *f)
{
    fab_explain_pauses(f, add_line, b);
    fab_explain_approx(f, add_line, b);
}

void orr__packet_put_figures(orr_json_writer *w, const orr_packet_figures *g, const fab *f)
{
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
    orr_json_put_u64(w, "time_error_bound_ps", 0); /* of every flow: fab_approx.c says why */
    put_flow_sizes(w, f);
    put_ports(w, f, "busiest_links", orr__measure_busy);
    put_ports(w, f, "longest_queues", orr__measure_queue);
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
    const orr_packet_figures *g = orr_packet_result(p);
    const orr_packet_options *opt = orr__packet_options(p);
    orr_buf b = {0};
    orr_json_writer w;
    orr_json_writer_init(&w, &b, NULL);
    orr_json_begin_object(&w);
    orr_json_put_fields(&w, ORR_T("format", "orrery-flows"), ORR_U("version", FORMAT_VERSION),
                        ORR_T("program", opt->program ? opt->program : ""),
                        ORR_T("config", opt->config), ORR_B("compat", opt->rules != NULL));
    orr_code code = put_inputs(&w, p, err);
    put_network(&w, g);
    orr__packet_put_figures(&w, g, orr__packet_fabric(p));
    put_lines(&w, "warnings", p, orr_packet_warning);
    put_lines(&w, "stall", p, orr_packet_stall);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    if (!code)
        code = orr_output_save(&b, path, err);
    orr_buf_fini(&b);
    return code;
}
