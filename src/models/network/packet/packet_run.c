/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.c - flows over the packet network, from files to files: the functions of packet.h. */
#include "packet.h"
#include <orrery/lab/progress.h>
#include <orrery/lab/units.h>

#include "base/io/input.h"
#include "base/memory/content_hash.h"
#include "flow_triggers.h"
#include "models/network/packet/watch/watchers.h"
#include "models/network/topology/htsim_topo.h"
#include "packet_files.h"
#include "packet_inputs.h"
#include "packet_run.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 16384, INPUT_FILES = 3 };

struct orr_packet {
    orr_packet_options opt;
    orr__packet_inputs in;
    orr__flow_list flows;
    fab *fabric;
    orr__triggers *triggers; /* NULL: all flows have start times */
    orr_packet_figures figures;
    struct input_file {
        const char *what, *path;
    } files[INPUT_FILES];
    size_t file_count;
    char **stall;
    size_t stall_count, stall_room;
    atomic_bool must_stop;
};

/* ---- words for people ---- */

static void say_stall(void *run, const char *line)
{
    orr_packet *p = run;
    char *copy = orr_arena_text(p->in.arena, orr_str_of(line));
    if (copy && orr_grow(&p->stall, &p->stall_room, p->stall_count + 1))
        p->stall[p->stall_count++] = copy;
}

/* ---- reading ---- */

/* Nodes of htsim's traffic are the first nodes, which must be hosts. */
static uint32_t first_hosts(const orr__cabling *c)
{
    uint32_t n = 0;
    while (n < c->nodes && c->kinds[n] == ORR__HOST)
        n++;
    return n;
}

static orr_code fail_links(orr_packet *p, const orr__htsim_cm *m, orr_error *err)
{
    orr_code code = ORR_OK;
    if (!p->in.links)
        return orr_fail(err, ORR_EINPUT, &m->failures[0].where,
                        "links can fail like this in a .topo file of htsim only");
    for (size_t i = 0; i < m->failure_count && !code; i++)
        code = orr__htsim_topo_fail(p->in.links, m->failures[i].agg, m->failures[i].link,
                                    &m->failures[i].where, err);
    return code ? code : orr__packet_inputs_recable(&p->in, err);
}

static orr_code read_matrix(orr_packet *p, orr_span bytes, const char *path, orr_error *err)
{
    orr__htsim_cm m;
    orr_code code = orr__htsim_cm_parse(&m, first_hosts(&p->in.cabling), bytes, path, err);
    if (code)
        return code;
    if (m.failure_count)
        code = fail_links(p, &m, err);
    p->flows = m.flows;
    m.flows = (orr__flow_list){0};
    orr__htsim_cm_fini(&m);
    return code;
}

static orr_code read_flows(orr_packet *p, const char *path, orr_error *err)
{
    orr_input *in;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    const orr_span bytes = orr_input_bytes(in);
    code = orr__htsim_is_cm(bytes) ? read_matrix(p, bytes, path, err)
                                   : orr__flows_parse(&p->flows, &p->in.cabling, bytes, path, err);
    if (!code && p->flows.surplus)
        orr__packet_inputs_note(&p->in, path, p->flows.surplus,
                                "lines after the announced number of flows are ignored");
    orr_input_close(in);
    return code;
}

static void note_file(orr_packet *p, const char *what, const char *path)
{
    if (path && *path)
        p->files[p->file_count++] = (struct input_file){what, path};
}

static orr_code read_inputs(orr_packet *p, orr_error *err)
{
    const orr__packet_given given = {.config = p->opt.config,
                                     .topology = p->opt.topology,
                                     .keys = p->opt.keys,
                                     .threads = p->opt.threads,
                                     .rules = p->opt.rules,
                                     .wants_history = p->opt.wants_history};
    const char *flows = p->opt.flows, *topology = p->opt.topology;
    orr_code code = orr__packet_inputs_read(&p->in, &given, err);
    if (!code && !topology)
        code =
            orr__packet_inputs_path(&p->in, p->in.config.topology, "TOPOLOGY_FILE", &topology, err);
    if (!code && !flows)
        code = orr__packet_inputs_path(&p->in, p->in.config.flows, "FLOW_FILE", &flows, err);
    if (code)
        return code;
    note_file(p, "configuration", p->opt.config);
    note_file(p, "topology", topology);
    note_file(p, "flows", flows);
    return read_flows(p, flows, err);
}

static const char *output_path(const char *given, const char *own)
{
    return given ? given : own;
}

static orr_code set_up(orr_packet *p, orr_error *err)
{
    orr_code code = read_inputs(p, err);
    if (code)
        return code;
    const orr__packet_config *c = &p->in.config;
    const fab_output_paths paths = {
        .fct = output_path(p->opt.fct, c->fct_out),
        .pfc = output_path(p->opt.pfc, c->pfc_out),
        .qlen = output_path(p->opt.qlen, c->qlen_out),
        .trace = p->in.is_traced ? output_path(p->opt.trace, c->trace_out) : "",
        .is_traced = p->in.is_traced};
    code = fab_create_watched(c, &p->in.cabling, &paths, &p->fabric, err);
    if (!code)
        code = fab_plan(p->fabric, &p->in.link_events, err);
    if (!code && p->flows.trigger_count)
        code = orr__triggers_create(p->fabric, &p->flows, &p->triggers, err);
    return code ? code : fab_send_list(p->fabric, &p->flows, err);
}

orr_code orr_packet_create(const orr_packet_options *opt, orr_packet **out, orr_error *err)
{
    orr_packet *p = orr_alloc(1, sizeof *p);
    *out = NULL;
    if (!p)
        return orr_no_memory(err);
    p->opt = *opt;
    const orr_code code = set_up(p, err);
    if (code)
        orr_packet_destroy(p);
    else
        *out = p;
    return code;
}

void orr_packet_destroy(orr_packet *p)
{
    if (!p)
        return;
    orr__triggers_destroy(p->triggers);
    fab_destroy(p->fabric);
    orr__flows_fini(&p->flows);
    orr_free(p->stall);
    orr__packet_inputs_fini(&p->in);
    orr_free(p);
}

/* ---- running ---- */

void orr_packet_stop(orr_packet *p)
{
    atomic_store_explicit(&p->must_stop, true, memory_order_relaxed);
}

void orr__packet_figures_fill(orr_packet_figures *out, const orr__cabling *c, const fab *f)
{
    const fab_figures *g = fab_figures_of(f);
    const uint64_t ps = 1000 / fab_unit(f);
    *out = (orr_packet_figures){
        .hosts = c->hosts,
        .switches = c->nodes - c->hosts,
        .links = (uint32_t)c->cable_count,
        .flows = g->flows,
        .flows_done = g->flows_done,
        .data_packets = g->data_packets,
        .data_bytes = g->data_bytes,
        .acks = g->acks,
        .nacks = g->nacks,
        .timeouts = g->timeouts,
        .retransmitted_bytes = g->retransmitted_bytes,
        .pauses = g->pauses,
        .resumes = g->resumes,
        .marked = g->marked,
        .dropped = g->dropped,
        .lost = g->lost,
        .trimmed = g->trimmed,
        .max_rtt_ns = g->max_rtt_ns,
        .max_bdp_bytes = g->max_bdp,
        .finished_at_ps = g->last_done * ps,
        .fct_min_ps = g->fct_min * ps,
        .fct_max_ps = g->fct_max * ps,
        .fct_sum_ps = g->fct_sum * ps,
        .events = g->events,
        .skips = g->skips,
        .skipped_ps = g->skipped * ps,
        .paused_ports = fab_paused_ports(f, NULL, NULL),
    };
}

static void take_figures(orr_packet *p)
{
    orr__packet_figures_fill(&p->figures, &p->in.cabling, p->fabric);
    p->figures.flows = p->flows.count; /* also those that have not begun */
}

static uint64_t bytes_wanted(const orr_packet *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->flows.count; i++)
        sum += p->flows.lines[i].bytes;
    return sum;
}

static void say_where(const orr_packet *p, char *note, size_t room)
{
    char time[ORR_UNIT_ROOM];
    const fab_figures *g = fab_figures_of(p->fabric);
    const uint64_t ps = fab_now(p->fabric) * (1000 / fab_unit(p->fabric));
    orr_time_text(ps < INT64_MAX ? (orr_ps)ps : INT64_MAX, time);
    snprintf(note, room, "; at %s, %" PRIu64 " of %zu flows done", time, g->flows_done,
             p->flows.count);
}

/* Bytes that were sent for the first time, in packets: how many there will be is known. */
static uint64_t packets_through(const orr_packet *p)
{
    const fab_figures *g = fab_figures_of(p->fabric);
    return (g->data_bytes - g->retransmitted_bytes) / p->in.config.payload;
}

/* Before the limit on events is reached. */
static uint64_t events_left(const orr_packet *p)
{
    const uint64_t most = p->opt.max_events, done = fab_figures_of(p->fabric)->events;
    return !most ? UINT64_MAX : most > done ? most - done : 0;
}

static void run_batches(orr_packet *p)
{
    orr_progress line;
    char note[80] = "";
    uint64_t before = 0;
    const uint64_t payload = p->in.config.payload;
    orr_progress_start(&line, "simulating", "packets", bytes_wanted(p) / payload,
                       !p->opt.shows_progress);
    line.note = note;
    while (!atomic_load_explicit(&p->must_stop, memory_order_relaxed) && events_left(p) &&
           fab_run(p->fabric, events_left(p) < BATCH ? events_left(p) : BATCH)) {
        const uint64_t now = packets_through(p);
        if (line.done + (now - before) >= line.look)
            say_where(p, note, sizeof note);
        orr_progress_add(&line, now - before);
        before = now;
    }
    orr_progress_end(&line);
}

orr_code orr_packet_step(orr_packet *p, orr_error *err)
{
    const bool has_more = fab_run(p->fabric, 1);
    take_figures(p);
    const orr_code code = fab_status(p->fabric, err);
    return code ? code : has_more ? ORR_OK : ORR_END;
}

orr_code orr_packet_run(orr_packet *p, orr_error *err)
{
    char time[ORR_UNIT_ROOM];
    run_batches(p);
    take_figures(p);
    orr_code code = fab_status(p->fabric, err);
    if (!code && p->triggers)
        code = orr__triggers_status(p->triggers, err);
    if (code || p->figures.flows_done == p->figures.flows || fab_has_stopped_in_time(p->fabric))
        return code;
    const uint64_t ps = fab_now(p->fabric) * (1000 / fab_unit(p->fabric));
    orr_time_text(ps < INT64_MAX ? (orr_ps)ps : INT64_MAX, time);
    if (atomic_exchange(&p->must_stop, false) || !events_left(p))
        return orr_fail(err, ORR_ESTOP, NULL,
                        "interrupted at %s of simulated time: %" PRIu64 " of %" PRIu64
                        " flows were done",
                        time, p->figures.flows_done, p->figures.flows);
    fab_explain(p->fabric, say_stall, p);
    if (p->triggers)
        orr__triggers_explain(p->triggers, say_stall, p);
    return orr_fail(err, ORR_EINPUT, NULL,
                    "deadlock at %s of simulated time: %" PRIu64 " of %" PRIu64
                    " flows will never be done",
                    time, p->figures.flows - p->figures.flows_done, p->figures.flows);
}

orr_code orr_packet_commit(orr_packet *p, orr_error *err)
{
    return fab_commit(p->fabric, err);
}

/* ---- results ---- */

const orr_packet_figures *orr_packet_result(const orr_packet *p)
{
    return &p->figures;
}

void orr__packet_visit_links(const orr_packet *p, orr_net_link_visit visit, void *context)
{
    fab_report(p->fabric, visit, context);
}

bool orr_packet_file_at(const orr_packet *p, size_t i, const char **what, const char **path)
{
    if (i >= p->file_count)
        return false;
    *what = p->files[i].what;
    *path = p->files[i].path;
    return true;
}

orr_code orr_packet_input_at(const orr_packet *p, size_t i, orr_packet_input *out, orr_error *err)
{
    orr_input *in;
    if (i >= p->file_count)
        return ORR_END;
    *out = (orr_packet_input){.what = p->files[i].what, .path = p->files[i].path};
    if (strcmp(out->path, "-") == 0)
        return ORR_OK;
    const orr_code code = orr_input_open(out->path, &in, err);
    if (code)
        return code == ORR_ENOMEM ? code : ORR_OK; /* it may be gone: then there is no hash */
    const orr_span bytes = orr_input_bytes(in);
    orr_content_hash_text(orr_content_hash_of(bytes), out->hash);
    out->bytes = bytes.len;
    orr_input_close(in);
    return ORR_OK;
}

orr_code orr_packet_view(const orr_packet *p, orr_fabric_view **out, orr_error *err)
{
    return orr__fabric_view_take(p->fabric, &p->figures, out, err);
}

const char *orr_packet_stall(const orr_packet *p, size_t line)
{
    return line < p->stall_count ? p->stall[line] : NULL;
}

const char *orr_packet_warning(const orr_packet *p, size_t line)
{
    return line < p->in.warning_count ? p->in.warnings[line] : NULL;
}

const fab *orr__packet_fabric(const orr_packet *p)
{
    return p->fabric;
}

const orr_packet_options *orr__packet_options(const orr_packet *p)
{
    return &p->opt;
}
