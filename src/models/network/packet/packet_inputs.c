/* SPDX-License-Identifier: Apache-2.0 */
/* packet_inputs.c - the files of a packet network: the configuration first, which names the
 * others. */
#include "packet_inputs.h"

#include "base/io/input.h"
#include "models/network/topology/topology.h"
#include "models/network/topology/topology_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_BUFFER = 32 };

void orr__packet_inputs_fini(orr__packet_inputs *in)
{
    orr__cabling_fini(&in->cabling);
    orr__topology_destroy(in->links);
    orr__link_events_fini(&in->link_events);
    orr_free(in->is_traced);
    orr_free(in->warnings);
    orr_arena_destroy(in->arena);
    *in = (orr__packet_inputs){0};
}

/* ---- what is odd ---- */

static void warn(orr__packet_inputs *in, const char *line)
{
    char *copy = orr_arena_text(in->arena, orr_str_of(line));
    if (copy && orr_grow(&in->warnings, &in->warning_room, in->warning_count + 1))
        in->warnings[in->warning_count++] = copy;
}

void orr__packet_inputs_note(orr__packet_inputs *in,
                             const char *path,
                             uint32_t line,
                             const char *what)
{
    char text[400];
    snprintf(text, sizeof text, "%.200s:%u: %s", path, line, what);
    warn(in, text);
}

static void warn_of_traced(orr__packet_inputs *in, const char *path, const orr__traced *found)
{
    char what[100];
    if (found->absent) {
        snprintf(what, sizeof what,
                 "traced nodes that are not in the network are ignored (%" PRIu64 ")",
                 found->absent);
        orr__packet_inputs_note(in, path, found->absent_line, what);
    }
    if (found->surplus && !in->config.rules->ignores_more_traced)
        orr__packet_inputs_note(in, path, found->surplus,
                                "lines after the announced number of nodes are ignored");
}

static bool is_control(uint64_t mode)
{
    return mode == ORR__CONTROL_NSCC || mode == ORR__CONTROL_DCQCN || mode == ORR__CONTROL_HPCC ||
           mode == ORR__CONTROL_TIMELY || mode == ORR__CONTROL_DCTCP || mode == ORR__CONTROL_PINT;
}

static void warn_of_config(orr__packet_inputs *in)
{
    const orr__packet_config *c = &in->config;
    char line[400];
    if (c->unknown_count) {
        snprintf(line, sizeof line,
                 "%s:%u:%u: \"%s\" is not a key and is ignored (%" PRIu64 " such words)",
                 c->unknown_at.path, c->unknown_at.line, c->unknown_at.column, c->unknown,
                 c->unknown_count);
        warn(in, line);
    }
    for (unsigned i = 0; i < c->mark_count; i++) { /* an error with rules.checks_values */
        const orr__marks *m = &c->marks[i];
        if (!m->has_kmin || !m->has_kmax || m->kmin <= m->kmax)
            continue;
        snprintf(line, sizeof line,
                 "%.200s:%u:%u: links of %" PRIu64 " bit/s: KMIN_MAP is above KMAX_MAP, so all is "
                 "marked above the latter",
                 c->path, m->line, m->column, m->rate);
        warn(in, line);
    }
    if (!is_control(c->control) && c->control != 0 && c->rules->checks_values && c->path[0]) {
        snprintf(line, sizeof line,
                 "%.200s: CC_MODE %" PRIu64
                 " is no congestion control: only windows and pauses limit "
                 "the flows (0 says so without this note)",
                 c->path, c->control);
        warn(in, line);
    }
}

/* ---- marking thresholds ---- */

static bool has_marks(const orr__packet_config *c, uint64_t rate)
{
    for (unsigned i = 0; i < c->mark_count; i++)
        if (c->marks[i].rate == rate)
            return c->marks[i].has_kmin && c->marks[i].has_kmax && c->marks[i].has_pmax;
    return false;
}

/* Without a configuration: as its samples have them at 100 Gb/s, in proportion. */
static void make_marks(orr__packet_config *c, uint64_t rate)
{
    if (c->mark_count == ORR__MARKS_MOST)
        return;
    c->marks[c->mark_count++] = (orr__marks){.rate = rate,
                                             .kmin = rate / 250000,
                                             .kmax = rate / 62500,
                                             .pmax = 0.2,
                                             .has_kmin = true,
                                             .has_kmax = true,
                                             .has_pmax = true};
}

/* A link speed that the maps do not have gets thresholds of 0 in the reference: then everything is
 * marked. */
static orr_code check_marks(orr__packet_inputs *in, const char *topology, orr_error *err)
{
    char line[400];
    for (size_t i = 0; i < in->cabling.cable_count && in->config.enable_qcn; i++) {
        const orr__cable *l = &in->cabling.cables[i];
        const bool at_switch =
            in->cabling.kinds[l->a] == ORR__SWITCH || in->cabling.kinds[l->b] == ORR__SWITCH;
        if (!at_switch || has_marks(&in->config, l->rate))
            continue;
        if (!in->config.path[0]) {
            make_marks(&in->config, l->rate);
            continue;
        }
        const orr_where w = orr__cable_where(l, topology);
        if (!in->config.rules->marks_all_unmapped)
            return orr_fail(err, ORR_EINPUT, &w,
                            "link %zu has %" PRIu64 " bit/s, for which KMIN_MAP, KMAX_MAP or "
                            "PMAX_MAP of %s have no entry (or ENABLE_QCN 0)",
                            i + 1, l->rate, in->config.path);
        char at[24] = "";
        if (l->line)
            snprintf(at, sizeof at, "%u:1:", l->line);
        snprintf(line, sizeof line,
                 "%s:%s link %zu has %" PRIu64 " bit/s, which KMIN_MAP, KMAX_MAP or PMAX_MAP do "
                 "not have: its thresholds are 0",
                 topology, at, i + 1, l->rate);
        warn(in, line);
        break;
    }
    return ORR_OK;
}

/* ---- paths ---- */

orr_code orr__packet_inputs_path(const orr__packet_inputs *in,
                                 const char *own,
                                 const char *key,
                                 const char **out,
                                 orr_error *err)
{
    const char *config = in->config.path, *slash = strrchr(config, '/');
    const orr_where w = orr_where_byte(config, ORR_NO_BYTE);
    if (!own[0])
        return orr_fail(err, ORR_EINPUT, &w, "the key %s is missing", key);
    *out = own;
    if (own[0] == '/' || !slash || access(own, F_OK) == 0)
        return ORR_OK;
    const char *beside =
        orr_arena_print(in->arena, "%.*s%s", (int)(slash - config + 1), config, own);
    if (!beside)
        return orr_no_memory(err);
    *out = access(beside, F_OK) == 0 ? beside : own;
    return ORR_OK;
}

/* ---- reading ---- */

/* As the sample configurations of the reference, whose only limits are windows and pauses.  ACKs go first: a window of one
 * round trip has no time in it for ACKs that wait behind data of the way back. */
static void use_samples(orr__packet_config *c)
{
    c->ack_high_prio = c->rules->engine.acks_high_in_switches;
    c->control = 0;
    c->chunk = 4000;
    c->ack_interval = 1;
    c->global_t = 0;
    c->var_window = 1;
    c->rate_ai = 50000000;
    c->rate_hai = 100000000;
    c->has_rate_ai = c->has_rate_hai = true;
    c->buffer_mib = SAMPLE_BUFFER;
    c->fct_out[0] = c->pfc_out[0] = 0;
}

/* Without a configuration a buffer is at least twice what its ports set aside (packet-network.md
 * 7.1), as far as 32 bits count. */
static orr_code fit_buffer(orr__packet_inputs *in, orr_error *err)
{
    enum { MOST_MIB = 4095, RESERVE = 4096 };
    const orr__cabling *c = &in->cabling;
    double most = 0, *bytes = orr_alloc(c->nodes, sizeof *bytes);
    if (!bytes)
        return orr_no_memory(err);
    for (size_t i = 0; i < 2 * c->cable_count; i++) {
        const orr__cable *l = &c->cables[i / 2];
        const uint32_t node = i % 2 ? l->b : l->a;
        const double on_wire = (double)l->rate / 8 * ((double)l->delay_ps / 1e12);
        bytes[node] += on_wire * (double)in->config.headroom_factor + RESERVE;
        if (c->kinds[node] != ORR__HOST && bytes[node] > most)
            most = bytes[node];
    }
    orr_free(bytes);
    const uint64_t mib =
        most * 2 < MOST_MIB * 1048576.0 ? (uint64_t)(most * 2 / 1048576) + 1 : MOST_MIB;
    if (in->config.buffer_mib == SAMPLE_BUFFER && in->config.buffer_mib < mib)
        in->config.buffer_mib = mib;
    return ORR_OK;
}

static orr_code read_traced(orr__packet_inputs *in, orr_error *err)
{
    const char *path;
    orr__traced found;
    if (!in->config.enable_trace || !in->config.trace_nodes[0] || !in->config.trace_out[0])
        return ORR_OK;
    if (!(in->is_traced = orr_alloc(in->cabling.nodes, sizeof *in->is_traced)))
        return orr_no_memory(err);
    orr_code code = orr__packet_inputs_path(in, in->config.trace_nodes, "TRACE_FILE", &path, err);
    if (!code &&
        access(path, F_OK) != 0) { /* SimAI's configuration names one that it does not have */
        char line[400];
        snprintf(line, sizeof line, "%.300s: there is no such file, so nothing is traced", path);
        warn(in, line);
        orr_free(in->is_traced);
        in->is_traced = NULL;
        return ORR_OK;
    }
    if (!code)
        code = orr__traced_read(&in->cabling, path, in->is_traced, &found, err);
    if (!code)
        warn_of_traced(in, path, &found);
    return code;
}

static orr_code read_link_events(orr__packet_inputs *in, orr_error *err)
{
    const char *path;
    if (!in->config.link_events[0])
        return ORR_OK;
    const orr_code code =
        orr__packet_inputs_path(in, in->config.link_events, "LINK_EVENTS_FILE", &path, err);
    return code ? code : orr__link_events_read(&in->link_events, &in->cabling, path, err);
}

orr_code orr__packet_inputs_recable(orr__packet_inputs *in, orr_error *err)
{
    orr__cabling_fini(&in->cabling);
    return orr__cabling_of_topology(&in->cabling, in->links, err);
}

/* A file of any kind; the reference's has cables already.  What is of no kind is said to be a
 * broken one of these. */
static orr_code read_topology(orr__packet_inputs *in, const char *path, orr_error *err)
{
    orr_input *file;
    orr_code code = orr_input_open(path, &file, err);
    if (code)
        return code;
    const orr_span bytes = orr_input_bytes(file);
    const orr_where where = orr_where_byte(path, ORR_NO_BYTE);
    const orr__topology_kind kind = orr__topology_kind_of(bytes);
    if (kind == ORR__KIND_NS3 || kind == ORR__KIND_CONFIG) {
        code = orr__cabling_parse(&in->cabling, bytes, path, err);
        if (!code && in->cabling.surplus)
            orr__packet_inputs_note(in, path, in->cabling.surplus,
                                    "lines after the announced number of links are ignored");
    } else {
        code = orr__topology_parse_any(bytes, path, ORR__MOST_LINKS, &in->links, err);
        if (!code && !in->links)
            code = orr_fail(err, ORR_EINPUT, &where,
                            "this is no topology with links (docs/format/topology.md)");
        if (!code)
            code = orr__packet_inputs_recable(in, err);
        if (code == ORR_EINPUT && err && !err->where.path[0])
            err->where = where;
    }
    orr_input_close(file);
    return code;
}

static orr_code read_links(orr__packet_inputs *in,
                           const orr__packet_given *given,
                           const char **topology,
                           orr_error *err)
{
    orr_code code = ORR_OK;
    if (given->links)
        return orr__cabling_of_topology(&in->cabling, given->links, err);
    if (!given->topology)
        code = orr__packet_inputs_path(in, in->config.topology, "TOPOLOGY_FILE", topology, err);
    return code ? code : read_topology(in, *topology, err);
}

/* Hosts pass on what is for others where the topology says so, or where it must be and no
 * configuration decides. */
static void decide_forwarding(orr__packet_inputs *in, const orr__packet_given *given)
{
    const orr__topology *links = given->links ? given->links : in->links;
    if (links)
        in->config.forward_hosts |= links->ranks_forward;
    else if (!given->config)
        in->config.forward_hosts |= orr__cabling_needs_hosts(&in->cabling);
}

static orr_code read_all(orr__packet_inputs *in, const orr__packet_given *given, orr_error *err)
{
    const char *topology = given->topology ? given->topology : "";
    orr_code code = ORR_OK;
    orr__packet_config_defaults(&in->config, given->rules);
    in->config.threads = given->threads;
    if (given->config)
        code = orr__packet_config_read(&in->config, given->config, err);
    else
        use_samples(&in->config);
    if (!code && given->keys)
        code = orr__packet_config_parse(
            &in->config, (orr_span){(const uint8_t *)given->keys, strlen(given->keys)},
            "given keys", err);
    in->config.has_history = given->wants_history && !in->config.approx; /* looks end its periods */
    if (!code)
        code = read_links(in, given, &topology, err);
    if (!code && !given->config)
        code = fit_buffer(in, err);
    const struct orr_rules_packet *rules = in->config.rules;
    if (!code && rules->most_ports)
        code = orr__cabling_check_ports(&in->cabling, rules->most_ports, topology, err);
    if (!code && !rules->allows_islands)
        code = orr__cabling_check_whole(&in->cabling, topology, err);
    if (!code)
        code = check_marks(in, topology, err);
    if (code)
        return code;
    warn_of_config(in);
    decide_forwarding(in, given);
    code = read_link_events(in, err);
    return code ? code : read_traced(in, err);
}

orr_code orr__packet_inputs_read(orr__packet_inputs *in,
                                 const orr__packet_given *given,
                                 orr_error *err)
{
    *in = (orr__packet_inputs){.arena = orr_arena_create()};
    const orr_code code = in->arena ? read_all(in, given, err) : orr_no_memory(err);
    if (code)
        orr__packet_inputs_fini(in);
    return code;
}
