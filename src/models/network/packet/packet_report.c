/* SPDX-License-Identifier: Apache-2.0 */
/* packet_report.c - what came of a run of flows: a short table, or one JSON object (docs/format/packet.md). */
#include <orrery/packet.h>
#include <orrery/units.h>

#include "../../../base/output.h"
#include "packet_run.h"

#include <inttypes.h>

enum { FORMAT_VERSION = 1 };

static orr_code write_all(const char *path, orr_buf *b, orr_error *err)
{
    orr_output *out;
    orr_code code = b->failed ? orr_no_memory(err) : orr_output_open(path, &out, err);
    if (!code) {
        orr_output_drain(out, b);
        code = orr_output_commit(&out, err);
    }
    orr_buf_fini(b);
    return code;
}

/* ---- text ---- */

static void put_count(orr_buf *b, const char *what, uint64_t n)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "%-22s %s\n", what, orr_count_text(n, text));
}

static void put_time(orr_buf *b, const char *what, uint64_t ps)
{
    char text[ORR_UNIT_ROOM];
    orr_buf_print(b, "%-22s %s\n", what, orr_time_text((orr_ps)ps, text));
}

orr_code orr_packet_write_text(const orr_packet *p, const char *path, orr_error *err)
{
    const orr_packet_figures *g = orr_packet_result(p);
    char bytes[ORR_UNIT_ROOM];
    orr_buf b = {0};
    orr_buf_print(&b, "%u hosts, %u switches, %u links", g->hosts, g->switches, g->links);
    if (g->max_rtt_ns) /* else it was not measured */
        orr_buf_print(&b, "; base round trip %" PRIu64 " ns at most, %s in flight", g->max_rtt_ns,
                      orr_bytes_text(g->max_bdp_bytes, bytes));
    orr_buf_text(&b, "\n\n");
    orr_buf_print(&b, "%-22s %" PRIu64 " of %" PRIu64 "\n", "flows done", g->flows_done, g->flows);
    put_time(&b, "last flow done at", g->finished_at_ps);
    if (g->flows_done) {
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
    orr__packet_put_notes(&b, orr__packet_fabric(p));
    return write_all(path, &b, err);
}

/* ---- JSON ---- */

static void put_network(orr_json_writer *w, const orr_packet_figures *g)
{
    orr_json_put_u64(w, "hosts", g->hosts);
    orr_json_put_u64(w, "switches", g->switches);
    orr_json_put_u64(w, "links", g->links);
    orr_json_put_u64(w, "max_rtt_ns", g->max_rtt_ns);
    orr_json_put_u64(w, "max_bdp_bytes", g->max_bdp_bytes);
}

/* Of the ports that were paused, those for the longest time. */
enum { PORTS_SHOWN = 16 };

typedef struct most_paused {
    orr__fabric_pauses list[PORTS_SHOWN];
    unsigned count;
} most_paused;

/* An insertion into a short sorted list; of equals the first stays first. */
static void keep_most(void *context, const orr__fabric_pauses *p)
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

static void put_pfc(orr_json_writer *w, const orr__fabric *f)
{
    most_paused most = {.count = 0};
    const uint64_t ps = 1000 / orr__fabric_unit(f);
    orr_json_key(w, "pfc");
    orr_json_begin_object(w);
    orr_json_put_u64(w, "paused_ports", orr__fabric_paused_ports(f, keep_most, &most));
    orr_json_key(w, "notes");
    orr_json_begin_array(w);
    orr__fabric_explain_pauses(f, put_line, w);
    orr_json_end_array(w);
    orr_json_key(w, "ports");
    orr_json_begin_array(w);
    for (unsigned i = 0; i < most.count; i++) {
        const orr__fabric_pauses *p = &most.list[i];
        orr_json_begin_object(w);
        orr_json_put_text(w, "port", p->port);
        orr_json_put_u64(w, "pauses", p->pauses);
        orr_json_put_u64(w, "paused_ps", p->ticks * ps);
        orr_json_put_u64(w, "longest_pause_ps", p->longest_ticks * ps);
        orr_json_put_double(w, "paused_share", p->share);
        orr_json_put_u64(w, "longest_chain", p->chain);
        orr_json_put_text(w, "head", p->head);
        orr_json_end_object(w);
    }
    orr_json_end_array(w);
    orr_json_end_object(w);
}

static void add_line(void *buffer, const char *line)
{
    orr_buf_text(buffer, line);
    orr_buf_byte(buffer, '\n');
}

void orr__packet_put_notes(orr_buf *b, const orr__fabric *f)
{
    orr__fabric_explain_pauses(f, add_line, b);
    orr__fabric_explain_approx(f, add_line, b);
}

void orr__packet_put_figures(orr_json_writer *w, const orr_packet_figures *g, const orr__fabric *f)
{
    orr_json_put_u64(w, "flows", g->flows);
    orr_json_put_u64(w, "flows_done", g->flows_done);
    orr_json_put_u64(w, "finished_at_ps", g->finished_at_ps);
    orr_json_put_u64(w, "fct_min_ps", g->fct_min_ps);
    orr_json_put_u64(w, "fct_max_ps", g->fct_max_ps);
    orr_json_put_u64(w, "fct_sum_ps", g->fct_sum_ps);
    orr_json_put_u64(w, "data_packets", g->data_packets);
    orr_json_put_u64(w, "data_bytes", g->data_bytes);
    orr_json_put_u64(w, "acks", g->acks);
    orr_json_put_u64(w, "nacks", g->nacks);
    orr_json_put_u64(w, "timeouts", g->timeouts);
    orr_json_put_u64(w, "retransmitted_bytes", g->retransmitted_bytes);
    orr_json_put_u64(w, "ecn_marked", g->marked);
    orr_json_put_u64(w, "pfc_pauses", g->pauses);
    orr_json_put_u64(w, "pfc_resumes", g->resumes);
    orr_json_put_u64(w, "dropped_buffer_full", g->dropped);
    orr_json_put_u64(w, "trimmed", g->trimmed);
    orr_json_put_u64(w, "lost_on_links", g->lost);
    orr_json_put_u64(w, "events", g->events);
    orr_json_put_u64(w, "skips", g->skips);
    orr_json_put_u64(w, "skipped_ps", g->skipped_ps);
    orr_json_put_u64(w, "time_error_bound_ps", 0); /* of every flow: fabric_approx.c says why */
    put_pfc(w, f);
}

static void put_lines(orr_json_writer *w,
                      const char *key,
                      const orr_packet *p,
                      const char *(*line_of)(const orr_packet *, size_t))
{
    orr_json_key(w, key);
    orr_json_begin_array(w);
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
    orr_json_key(&w, "format");
    orr_json_text(&w, "orrery-flows");
    orr_json_put_u64(&w, "version", FORMAT_VERSION);
    orr_json_key(&w, "program");
    orr_json_text(&w, opt->program ? opt->program : "");
    orr_json_key(&w, "config");
    if (opt->config)
        orr_json_text(&w, opt->config);
    else
        orr_json_null(&w);
    orr_json_key(&w, "compat");
    orr_json_bool(&w, opt->is_compat);
    put_network(&w, g);
    orr__packet_put_figures(&w, g, orr__packet_fabric(p));
    put_lines(&w, "warnings", p, orr_packet_warning);
    put_lines(&w, "stall", p, orr_packet_stall);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return write_all(path, &b, err);
}
