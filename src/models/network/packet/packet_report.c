/* SPDX-License-Identifier: Apache-2.0 */
/* packet_report.c - what came of a run of flows: a short table, or one JSON object (docs/format/packet.md). */
#include <orrery/packet.h>
#include <orrery/units.h>

#include "../../../base/json.h"
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
    put_count(&b, "lost on links", g->lost);
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

static void put_figures(orr_json_writer *w, const orr_packet_figures *g)
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
    orr_json_put_u64(w, "lost_on_links", g->lost);
    orr_json_put_u64(w, "events", g->events);
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
    orr_json_text(&w, opt->config);
    orr_json_key(&w, "compat");
    orr_json_bool(&w, opt->is_compat);
    put_network(&w, g);
    put_figures(&w, g);
    put_lines(&w, "warnings", p, orr_packet_warning);
    put_lines(&w, "stall", p, orr_packet_stall);
    orr_json_end_object(&w);
    orr_buf_byte(&b, '\n');
    return write_all(path, &b, err);
}
