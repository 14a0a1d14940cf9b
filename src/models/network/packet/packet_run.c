/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.c - flows over the packet network, from files to files: the functions of packet.h. */
#include <orrery/packet.h>
#include <orrery/progress.h>
#include <orrery/units.h>

#include "fabric.h"
#include "packet_run.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 16384 };

struct orr_packet {
    orr_packet_options opt;
    orr__packet_config config;
    orr__cabling cabling;
    orr__flow_list flows;
    bool *is_traced;
    orr__fabric *fabric;
    orr_packet_figures figures;
    orr_arena *arena;
    char **stall, **warnings;
    size_t stall_count, stall_room, warning_count, warning_room;
    atomic_bool must_stop;
};

/* ---- words for people ---- */

static void keep_line(orr_packet *p, char ***lines, size_t *count, size_t *room, const char *line)
{
    char *copy = orr_arena_text(p->arena, orr_str_of(line));
    if (copy && orr_grow(lines, room, *count + 1))
        (*lines)[(*count)++] = copy;
}

static void say_stall(void *run, const char *line)
{
    orr_packet *p = run;
    keep_line(p, &p->stall, &p->stall_count, &p->stall_room, line);
}

static void warn(orr_packet *p, const char *line)
{
    keep_line(p, &p->warnings, &p->warning_count, &p->warning_room, line);
}

static bool has_marks(const orr__packet_config *c, uint64_t rate)
{
    for (unsigned i = 0; i < c->mark_count; i++)
        if (c->marks[i].rate == rate)
            return c->marks[i].has_kmin && c->marks[i].has_kmax && c->marks[i].has_pmax;
    return false;
}

static void warn_of_config(orr_packet *p)
{
    const orr__packet_config *c = &p->config;
    char line[400];
    if (c->unknown_count) {
        snprintf(line, sizeof line,
                 "%s:%u:%u: \"%s\" is not a key and is passed over (%" PRIu64 " such words)",
                 c->unknown_at.path, c->unknown_at.line, c->unknown_at.column, c->unknown,
                 c->unknown_count);
        warn(p, line);
    }
    if (c->control != ORR__CONTROL_DCQCN && c->control != ORR__CONTROL_HPCC &&
        c->control != ORR__CONTROL_TIMELY && c->control != ORR__CONTROL_DCTCP &&
        c->control != ORR__CONTROL_PINT && c->control != 0 && !c->is_compat) {
        snprintf(line, sizeof line,
                 "%s: CC_MODE %" PRIu64 " is no congestion control: only windows and pauses limit "
                 "the flows (0 says so without this note)",
                 c->path, c->control);
        warn(p, line);
    }
}

/* A link speed that the maps do not have gets thresholds of 0 in the reference: then everything is marked. */
static orr_code check_marks(orr_packet *p, const char *topology, orr_error *err)
{
    const orr_where w = orr_where_byte(topology, ORR_NO_BYTE);
    char line[400];
    for (size_t i = 0; i < p->cabling.cable_count && p->config.enable_qcn; i++) {
        const orr__cable *l = &p->cabling.cables[i];
        const bool at_switch =
            p->cabling.kinds[l->a] != ORR__HOST || p->cabling.kinds[l->b] != ORR__HOST;
        if (!at_switch || has_marks(&p->config, l->rate))
            continue;
        if (!p->config.is_compat)
            return orr_fail(err, ORR_EINPUT, &w,
                            "link %zu has %" PRIu64 " bit/s, for which KMIN_MAP, KMAX_MAP or "
                            "PMAX_MAP of %s have no entry (or ENABLE_QCN 0)",
                            i + 1, l->rate, p->config.path);
        snprintf(line, sizeof line,
                 "%s: link %zu has %" PRIu64 " bit/s, which KMIN_MAP, KMAX_MAP or PMAX_MAP do not "
                 "have: its thresholds are 0",
                 topology, i + 1, l->rate);
        warn(p, line);
        break;
    }
    return ORR_OK;
}

/* ---- reading ---- */

/* As it stands, from the current directory; if it is not there, beside the configuration. */
const char *orr__packet_input_path(orr_arena *a, const char *config, const char *path)
{
    const char *slash = strrchr(config, '/');
    if (path[0] == '/' || !slash || access(path, F_OK) == 0)
        return path;
    const char *beside = orr_arena_print(a, "%.*s%s", (int)(slash - config + 1), config, path);
    return beside && access(beside, F_OK) == 0 ? beside : path;
}

static orr_code need_path(const orr_packet *p,
                          const char *given,
                          const char *own,
                          const char *key,
                          const char **out,
                          orr_error *err)
{
    const orr_where w = orr_where_byte(p->config.path, ORR_NO_BYTE);
    if (given)
        *out = given;
    else if (own[0])
        *out = orr__packet_input_path(p->arena, p->config.path, own);
    else
        return orr_fail(err, ORR_EINPUT, &w, "the key %s is missing", key);
    return ORR_OK;
}

static orr_code read_inputs(orr_packet *p, orr_error *err)
{
    const char *topology = NULL, *flows = NULL;
    orr__packet_config_defaults(&p->config, p->opt.is_compat);
    orr_code code = orr__packet_config_read(&p->config, p->opt.config, err);
    if (!code)
        code = need_path(p, p->opt.topology, p->config.topology, "TOPOLOGY_FILE", &topology, err);
    if (!code)
        code = need_path(p, p->opt.flows, p->config.flows, "FLOW_FILE", &flows, err);
    if (!code)
        code = orr__cabling_read(&p->cabling, topology, err);
    if (!code)
        code = check_marks(p, topology, err);
    if (!code)
        code = orr__flows_read(&p->flows, &p->cabling, flows, err);
    if (code || !p->config.enable_trace || !p->config.trace_nodes[0])
        return code;
    if (!(p->is_traced = orr_alloc(p->cabling.nodes, sizeof *p->is_traced)))
        return orr_no_memory(err);
    return orr__traced_read(&p->cabling,
                            orr__packet_input_path(p->arena, p->config.path, p->config.trace_nodes),
                            p->is_traced, err);
}

static const char *output_path(const char *given, const char *own)
{
    return given ? given : own;
}

static orr_code set_up(orr_packet *p, orr_error *err)
{
    if (!(p->arena = orr_arena_create()))
        return orr_no_memory(err);
    orr_code code = read_inputs(p, err);
    if (code)
        return code;
    warn_of_config(p);
    const bool has_trace = p->config.enable_trace && p->is_traced;
    const orr__fabric_paths paths = {
        .fct = output_path(p->opt.fct, p->config.fct_out),
        .pfc = output_path(p->opt.pfc, p->config.pfc_out),
        .qlen = output_path(p->opt.qlen, p->config.qlen_out),
        .trace = has_trace ? output_path(p->opt.trace, p->config.trace_out) : "",
        .is_traced = p->is_traced};
    code = orr__fabric_create(&p->config, &p->cabling, &paths, &p->fabric, err);
    return code ? code : orr__fabric_send_list(p->fabric, &p->flows, err);
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
    orr__fabric_destroy(p->fabric);
    orr__cabling_fini(&p->cabling);
    orr__flows_fini(&p->flows);
    orr_free(p->is_traced);
    orr_free(p->stall);
    orr_free(p->warnings);
    orr_arena_destroy(p->arena);
    orr_free(p);
}

/* ---- running ---- */

void orr_packet_stop(orr_packet *p)
{
    atomic_store_explicit(&p->must_stop, true, memory_order_relaxed);
}

static void take_figures(orr_packet *p)
{
    const orr__fabric_figures *g = orr__fabric_figures_of(p->fabric);
    const uint64_t ps = 1000 / orr__fabric_unit(p->fabric);
    p->figures = (orr_packet_figures){
        .hosts = p->cabling.hosts,
        .switches = p->cabling.nodes - p->cabling.hosts,
        .links = (uint32_t)p->cabling.cable_count,
        .flows = p->flows.count,
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
        .max_rtt_ns = g->max_rtt_ns,
        .max_bdp_bytes = g->max_bdp,
        .finished_at_ps = g->last_done * ps,
        .fct_min_ps = g->fct_min * ps,
        .fct_max_ps = g->fct_max * ps,
        .fct_sum_ps = g->fct_sum * ps,
        .events = g->events,
    };
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
    const orr__fabric_figures *g = orr__fabric_figures_of(p->fabric);
    const uint64_t ps = orr__fabric_now(p->fabric) * (1000 / orr__fabric_unit(p->fabric));
    orr_time_text(ps < INT64_MAX ? (orr_ps)ps : INT64_MAX, time);
    snprintf(note, room, "; at %s, %" PRIu64 " of %zu flows done", time, g->flows_done,
             p->flows.count);
}

/* Bytes are the measure of progress: how many there are to send is known. */
static void run_batches(orr_packet *p)
{
    orr_progress line;
    char note[80] = "";
    uint64_t before = 0;
    const uint64_t payload = p->config.payload;
    orr_progress_start(&line, "simulating", "packets", bytes_wanted(p) / payload,
                       !p->opt.shows_progress);
    line.note = note;
    while (!atomic_load_explicit(&p->must_stop, memory_order_relaxed) &&
           orr__fabric_run(p->fabric, BATCH)) {
        const uint64_t now = orr__fabric_figures_of(p->fabric)->data_packets;
        if (line.done + (now - before) >= line.look)
            say_where(p, note, sizeof note);
        orr_progress_add(&line, now - before);
        before = now;
    }
    orr_progress_end(&line);
}

orr_code orr_packet_run(orr_packet *p, orr_error *err)
{
    char time[ORR_UNIT_ROOM];
    run_batches(p);
    take_figures(p);
    const orr_code code = orr__fabric_status(p->fabric, err);
    if (code || p->figures.flows_done == p->figures.flows)
        return code;
    const uint64_t ps = orr__fabric_now(p->fabric) * (1000 / orr__fabric_unit(p->fabric));
    orr_time_text(ps < INT64_MAX ? (orr_ps)ps : INT64_MAX, time);
    if (atomic_load(&p->must_stop))
        return orr_fail(err, ORR_ESTOP, NULL,
                        "interrupted at %s of simulated time: %" PRIu64 " of %" PRIu64
                        " flows were done",
                        time, p->figures.flows_done, p->figures.flows);
    orr__fabric_explain(p->fabric, say_stall, p);
    return orr_fail(err, ORR_EINPUT, NULL,
                    "standstill at %s of simulated time: %" PRIu64 " of %" PRIu64
                    " flows will never be done",
                    time, p->figures.flows - p->figures.flows_done, p->figures.flows);
}

orr_code orr_packet_commit(orr_packet *p, orr_error *err)
{
    return orr__fabric_commit(p->fabric, err);
}

/* ---- results ---- */

const orr_packet_figures *orr_packet_result(const orr_packet *p)
{
    return &p->figures;
}

const char *orr_packet_stall(const orr_packet *p, size_t line)
{
    return line < p->stall_count ? p->stall[line] : NULL;
}

const char *orr_packet_warning(const orr_packet *p, size_t line)
{
    return line < p->warning_count ? p->warnings[line] : NULL;
}

const orr_packet_options *orr__packet_options(const orr_packet *p)
{
    return &p->opt;
}
