/* SPDX-License-Identifier: Apache-2.0 */
/* network_setup.c - the network of a run: the file, the model, and links that deviate from the
 * file.
 *
 * A file is either ASTRA-sim's, with dimensions, or a link-level topology.  Dimensions become a
 * graph if a graph is requested, or if single links differ, which dimensions cannot express. */
#include "run_state.h"

#include "base/io/input.h"
#include "models/network/net_table.h"
#include "models/network/packet/packet_run.h"
#include "models/network/topology/topology_kinds.h"

#include <orrery/lab/units.h>

/* ---- the packet network's files ---- */

static bool is_packet(const orr_sim *s)
{
    return !s->opt.custom_network && s->opt.fidelity && strcmp(s->opt.fidelity, "packet") == 0;
}

/* The kind of the network file; only the packet network accepts config.txt, and the old program
 * nothing else. */
static orr_code find_kind(const orr_sim *s, orr__topology_kind *out, orr_error *err)
{
    *out = ORR__KIND_YAML;
    if (!is_packet(s) || !s->opt.network)
        return ORR_OK;
    const orr_code code = orr__topology_kind_at(s->opt.network, out, err);
    if (s->rules->has_no_topologies && *out != ORR__KIND_YAML)
        *out = ORR__KIND_CONFIG;
    return code;
}

/* Rank r is node r, so the first nodes must be hosts. */
static orr_code check_hosts(const orr_sim *s, orr_error *err)
{
    const orr__cabling *c = &s->packet->cabling;
    for (uint32_t r = 0; r < s->npu_count; r++)
        if (r >= c->nodes || c->kinds[r] != ORR__HOST)
            return orr_fail(err, ORR_EINPUT, &s->net_config.where,
                            "there are %u ranks, and rank %u is node %u of the topology, which %s",
                            s->npu_count, r, r, r >= c->nodes ? "does not exist" : "is a switch");
    return ORR_OK;
}

static bool is_changed(const orr_sim_change *c)
{
    return c->bandwidth > 0 || c->latency > 0 || c->compute > 0 || c->memory > 0;
}

static orr_code read_packet_files(orr_sim *s, bool is_config, orr_error *err)
{
    const orr__packet_given given = {.config = is_config ? s->opt.network : s->opt.packet,
                                     .topology = is_config || s->topology ? NULL : s->opt.network,
                                     .links = s->topology,
                                     .keys = s->opt.packet_keys,
                                     .threads = s->opt.threads,
                                     .rules = s->opt.packet_rules,
                                     .wants_history = s->opt.wants_history,
                                     .counts_events = s->opt.max_events > 0};
    orr_net_config *c = &s->net_config;
    if (!(s->packet = orr_alloc(1, sizeof *s->packet)))
        return orr_no_memory(err);
    orr_code code = orr__packet_inputs_read(s->packet, &given, err);
    if (code == ORR_EINPUT && err && !err->where.path[0])
        err->where = s->net_config.where; /* the file with these links */
    if (code)
        return code;
    if (is_changed(&s->opt.change)) /* a what-if run: the files are those of the main run */
        orr__packet_config_write_nothing(&s->packet->config);
    if (s->topology && !s->opt.logical)
        return ORR_OK;
    c->where = orr_where_byte(s->opt.network, ORR_NO_BYTE);
    /* Without a logical topology: all hosts in one dimension. */
    c->dims = 1;
    c->npus[0] = s->packet->cabling.hosts;
    if (s->opt.logical)
        code = cfg_read_logical(s->opt.logical, &s->key_notes, c, err);
    for (uint32_t k = 0; k < c->dims; k++)
        c->shape[k] = ORR_NET_SWITCH;
    return code;
}

static orr_code take_dims(orr_sim *s, orr_error *err)
{
    orr_net_config *c = &s->net_config;
    *c = *s->opt.dims;
    c->where = orr_where_byte(CFG_BUILT_IN, ORR_NO_BYTE);
    if (c->dims == 0 || c->dims > ORR_NET_DIMS)
        return orr_fail(err, ORR_EUSAGE, NULL, "a network of %u dimensions; 1 to %d are possible",
                        c->dims, ORR_NET_DIMS);
    for (uint32_t k = 0; k < c->dims; k++)
        if (c->npus[k] < (c->dims == 1 ? 1 : 2) || c->shape[k] > ORR_NET_FULLY_CONNECTED ||
            !(c->bandwidth[k] > 0) || !(c->latency_ns[k] >= 0))
            return orr_fail(err, ORR_EUSAGE, NULL,
                            "dimension %u of the network: a shape, 2 ranks or more, a bandwidth "
                            "above 0 and a latency are needed",
                            k);
    return ORR_OK;
}

static orr_code read_file(orr_sim *s, orr_error *err)
{
    orr_input *in;
    orr_net_config *c = &s->net_config;
    const char *path = s->opt.network;
    if (s->opt.dims)
        return take_dims(s, err);
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    const orr_span bytes = orr_input_bytes(in);
    if (!s->rules->has_no_topologies)
        code = orr__topology_parse_any(bytes, path, ORR__MOST_LINKS, &s->topology, err);
    if (!code && !s->topology)
        code = cfg_parse_network(bytes, path, c, err);
    if (!code && !s->topology)
        code = cfg_check_network(bytes, path, &s->key_notes, err);
    s->is_link_level = !code && s->topology;
    if (s->is_link_level) {
        *c =
            (orr_net_config){.dims = s->topology->dims, .where = orr_where_byte(path, ORR_NO_BYTE)};
        for (uint32_t k = 0; k < c->dims; k++) {
            c->npus[k] = s->topology->npus[k];
            c->shape[k] = ORR_NET_SWITCH;
        }
    }
    orr_input_close(in);
    return code;
}

static orr_code count_ranks(orr_sim *s, orr_error *err)
{
    uint64_t npus = 1;
    s->net_config.most_dims = s->rules->aware_most_dims;
    s->net_config.least_ring = s->rules->aware_least_ring;
    for (uint32_t k = 0; k < s->net_config.dims; k++) {
        npus *= s->net_config.npus[k];
        /* Inside the loop: the product of all dimensions could wrap. */
        if (npus > 1u << 24)
            return orr_fail(err, ORR_EINPUT, &s->net_config.where, "more than 16777216 NPUs");
    }
    s->npu_count = (uint32_t)npus;
    s->dims = s->net_config.dims;
    return ORR_OK;
}

/* ---- what if ---- */

static double times(double factor)
{
    return factor > 0 ? factor : 1;
}

static orr_code apply_change(orr_sim *s, orr_error *err)
{
    const orr_sim_change *c = &s->opt.change;
    if (c->has_dimension && (s->topology || c->dimension >= s->dims))
        return orr_fail(err, ORR_EUSAGE, NULL, "there is no dimension %u whose links could change",
                        c->dimension);
    /* Links of a topology are changed directly; dimensions before they become links. */
    for (uint32_t k = 0; k < s->dims && !s->topology; k++) {
        if (c->has_dimension && c->dimension != k)
            continue;
        s->net_config.bandwidth[k] *= times(c->bandwidth);
        s->net_config.latency_ns[k] *= times(c->latency);
    }
    for (size_t i = 0; s->topology && i < s->topology->link_count; i++) {
        s->topology->links[i].speed *= times(c->bandwidth);
        s->topology->links[i].latency *= times(c->latency);
    }
    return ORR_OK;
}

/* ---- the model ---- */

static orr_code choose_model(orr_sim *s, orr_error *err)
{
    const char *plain = s->rules == &run_rules_ours ? "fluid" : s->topology ? "graph" : "unaware";
    const char *name = s->opt.fidelity ? s->opt.fidelity : plain;
    s->net_ops = s->opt.custom_network ? s->opt.custom_network : orr_net_find(name);
    if (!s->net_ops)
        return orr__net_fail_unknown(name, err);
    if (s->topology && s->net_ops == &orr__net_aware)
        s->net_ops = &orr__net_graph; /* the same rules, over arbitrary links */
    if (s->topology && s->net_ops == &orr__net_unaware)
        s->net_ops = &orr__net_unaware_graph;
    return ORR_OK;
}

static orr_code change_links(orr_sim *s, orr_error *err)
{
    const cfg_ranks *c = &s->ranks_config;
    orr_code code = ORR_OK;
    if (c->change_count && s->net_ops == &orr__net_aware)
        s->net_ops = &orr__net_graph; /* the same times, and single links can differ */
    /* Models that work on links get a topology made of the dimensions, if the file has none. */
    const bool has_links = s->net_ops == &orr__net_graph || s->net_ops == &orr__net_unaware_graph ||
                           (s->net_ops == &orr__net_fluid && (s->topology || c->change_count)) ||
                           (s->net_ops == &orr__net_packet && !s->packet);
    if (!has_links)
        return c->change_count == 0
                   ? ORR_OK
                   : orr_fail(
                         err, ORR_EINPUT, &c->changes[0].where,
                         "the network model %s does not model links; use fluid, aware or graph",
                         s->net_ops->name);
    if (!s->topology)
        code = orr__topology_of_product(&s->net_config, &s->topology, err);
    if (code == ORR_EINPUT && err)
        err->where = s->net_config.where;
    return code ? code : orr__topology_change(s->topology, c->changes, c->change_count, err);
}

/* Events of the model are interleaved with those of the clock. */
static void join_clock(orr_sim *s)
{
    const orr_event_source *source = orr__net_events(s->net_ops, s->net, s, clk_line(s->clock));
    if (source)
        clk_attach(s->clock, source);
}

static orr_code create_network(orr_sim *s, orr_error *err)
{
    orr__net_config own = {s->net_config, s->topology, s->packet};
    /* Tells our own models that more follows; others see the public part (orr__net_config_of). */
    own.config.size = sizeof own;
    const orr_code code =
        s->net_ops->create ? s->net_ops->create(&own.config, &s->net, err) : ORR_OK;
    if (!code)
        join_clock(s);
    return code;
}

orr_code run_network_setup(orr_sim *s, orr_error *err)
{
    orr__topology_kind kind;
    orr_code code = find_kind(s, &kind, err);
    if (code)
        return code;
    /* Such files contain or name cables; any other file has links or dimensions, which are
     * converted to cables later. */
    if (kind == ORR__KIND_NS3 || kind == ORR__KIND_CONFIG)
        code = read_packet_files(s, kind == ORR__KIND_CONFIG, err);
    else
        code = read_file(s, err);
    if (!code)
        code = count_ranks(s, err);
    if (!code)
        code = apply_change(s, err);
    if (!code)
        code = choose_model(s, err);
    if (!code && s->opt.ranks_file)
        code = cfg_read_ranks(s->opt.ranks_file, s->npu_count, s->arena, &s->ranks_config, err);
    if (!code)
        code = change_links(s, err);
    /* Last: cables are made of the links as they are after all changes. */
    if (!code && is_packet(s) && !s->packet)
        code = read_packet_files(s, false, err);
    if (!code && s->packet)
        code = check_hosts(s, err);
    if (code)
        return code;
    return create_network(s, err);
}

orr_code run_network_again(orr_sim *s, orr_error *err)
{
    if (s->net && s->net_ops->destroy)
        s->net_ops->destroy(s->net);
    /* In case rebuilding fails: orr_sim_destroy must not free it twice. */
    s->net = NULL;
    return create_network(s, err);
}

/* ---- what it says afterwards ---- */

bool orr_sim_packets(const orr_sim *s, orr_packet_figures *out)
{
    if (!s->packet)
        return false;
    orr__packet_figures_fill(out, &s->packet->cabling, orr__net_packet_fabric(s->net));
    return true;
}

uint64_t run_packets_sent(const orr_sim *s)
{
    return fab_figures_of(orr__net_packet_fabric(s->net))->data_packets;
}

static void keep_line(void *sim, const char *line)
{
    orr_sim *s = sim;
    char *copy = orr_arena_text(s->arena, orr_str_of(line));
    /* Without memory a line is missing, which is no reason to fail. */
    if (copy && orr_grow(&s->network_stall, &s->network_stall_room, s->network_stall_count + 1))
        s->network_stall[s->network_stall_count++] = copy;
}

void run_ask_network(orr_sim *s)
{
    if (s->packet)
        orr__net_packet_explain(s->net, keep_line, s);
}

const char *orr_sim_network_stall(const orr_sim *s, size_t line)
{
    return line < s->network_stall_count ? s->network_stall[line] : NULL;
}

const char *orr_sim_warning(const orr_sim *s, size_t line)
{
    const size_t packets = s->packet ? s->packet->warning_count : 0;
    if (line < packets)
        return s->packet->warnings[line];
    return line - packets < s->key_notes.count ? s->key_notes.lines[line - packets] : NULL;
}
