/* SPDX-License-Identifier: Apache-2.0 */
/* run_flows.c - orr_run with flows: packet by packet (models/network/packet).
 *
 * The topology may be a file of links, or config.txt, which names one; orr_topology_recognise tells
 * which.  Flows have no ranks, so functions about ranks are NULL in the row. */
#include "engine.h"

#include "models/network/packet/packet_run.h"
#include <orrery/lab/topology.h>

static uint32_t supports(const char *network)
{
    (void)network;
    return ORR_RUN_PACKETS | ORR_RUN_HISTORY | ORR_RUN_REPORT;
}

static orr_code create(orr_run *r, orr_error *err)
{
    const orr_run_config *c = &r->config;
    const bool has_links = c->topology && orr_topology_recognise(c->topology);
    const orr_packet_options opt = {
        .config = has_links ? c->packet_config : c->topology,
        .topology = has_links ? c->topology : NULL,
        .flows = c->flows,
        .keys = c->packet_keys,
        .rules = c->packet_rules,
        .threads = c->threads,
        .shows_progress = c->shows_progress,
        .max_events = c->max_events,
        .wants_history = c->records & ORR_RUN_HISTORY,
        .program = c->program,
    };
    if (!c->topology)
        return orr_fail(err, ORR_EUSAGE, NULL, "flows need a topology or a packet configuration");
    return orr_packet_create(&opt, &r->is.packet, err);
}

static void destroy(orr_run *r)
{
    orr_packet_destroy(r->is.packet);
}

static orr_code step(orr_run *r, orr_error *err)
{
    return orr_packet_step(r->is.packet, err);
}

/* The output files are committed when all flows have completed. */
static orr_code to_end(orr_run *r, orr_error *err)
{
    const orr_code code = orr_packet_run(r->is.packet, err);
    return code ? code : orr_packet_commit(r->is.packet, err);
}

static void stop(orr_run *r)
{
    orr_packet_stop(r->is.packet);
}

static orr_ps time_of(const orr_run *r)
{
    return (orr_ps)orr_packet_result(r->is.packet)->finished_at_ps;
}

static uint64_t events(const orr_run *r)
{
    return orr_packet_result(r->is.packet)->events;
}

static const char *warning(const orr_run *r, size_t i)
{
    return orr_packet_warning(r->is.packet, i);
}

static const char *stall_line(orr_run *r, size_t i)
{
    return orr_packet_stall(r->is.packet, i);
}

static bool input(const orr_run *r, size_t i, const char **role, const char **path)
{
    return orr_packet_file_at(r->is.packet, i, role, path);
}

static void visit_links(const orr_run *r, orr_net_link_visit visit, void *context)
{
    orr__packet_visit_links(r->is.packet, visit, context);
}

static bool packets(const orr_run *r, struct orr_packet_figures *out)
{
    *out = *orr_packet_result(r->is.packet);
    return true;
}

static orr_code fabric_view(const orr_run *r, struct orr_fabric_view **out, orr_error *err)
{
    return orr_packet_view(r->is.packet, out, err);
}

static orr_code write_text(const orr_run *r, const char *path, orr_error *err)
{
    return orr_packet_write_text(r->is.packet, path, err);
}

static orr_code write_json(const orr_run *r, const char *path, orr_error *err)
{
    return orr_packet_write_json(r->is.packet, path, err);
}

static const run_writer writers[] = {{"text", write_text}, {"json", write_json}, {NULL, NULL}};

const run_engine run_flows_engine = {
    .name = "flows",
    .supports = supports,
    .create = create,
    .destroy = destroy,
    .step = step,
    .to_end = to_end,
    .stop = stop,
    .time = time_of,
    .events = events,
    .warning = warning,
    .stall_line = stall_line,
    .input = input,
    .visit_links = visit_links,
    .packets = packets,
    .fabric_view = fabric_view,
    .writers = writers,
};
