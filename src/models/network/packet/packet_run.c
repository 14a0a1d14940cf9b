/* SPDX-License-Identifier: Apache-2.0 */
/* packet_run.c - flows over the packet network, from files to files: the functions of packet.h. */
#include <orrery/lab/progress.h>
#include <orrery/lab/units.h>

#include "base/io/input.h"
#include "base/memory/hash.h"
#include "models/network/packet/watch/watchers.h"
#include "models/network/topology/topology.h"
#include "models/network/topology/topology_kinds.h"
#include "packet.h"
#include "packet_files.h"
#include "packet_run.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Files of a packet network: first the configuration, which names the
 * others. */

/* MiB, as in the sample configurations; also tells fit_buffer that no size was chosen. */
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

/* ---- warnings ---- */

/* A warning without memory is dropped: it must not end a run that is otherwise fine. */
static void warn(orr__packet_inputs *in, const char *line)
{
    char *copy = orr_arena_text(in->arena, orr_str_of(line));
    if (copy && orr_grow(&in->warnings, &in->warning_room, in->warning_count + 1))
        in->warnings[in->warning_count++] = copy;
}

/* A line of a file is ignored, as in the original. */
static void packet_inputs_note(orr__packet_inputs *in,
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
        packet_inputs_note(in, path, found->absent_line, what);
    }
    if (found->surplus && !in->config.rules->ignores_more_traced)
        packet_inputs_note(in, path, found->surplus,
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
        snprintf(
            line, sizeof line,
            "%.200s: CC_MODE %" PRIu64
            " is no congestion control: only windows and pauses limit the flows (0 selects this "
            "without the note)",
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

/* Without a configuration: those of its samples at 100 Gb/s, scaled. */
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

/* A link speed missing from the maps gets thresholds of 0 in the reference: then everything is
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

/* Location of an input named by the configuration: verbatim if that exists, else relative to it. An
 * error if the configuration has no such key. */
static orr_code find_input(const orr__packet_inputs *in,
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
    /* Neither exists: the error then names the path as the user wrote it. */
    *out = access(beside, F_OK) == 0 ? beside : own;
    return ORR_OK;
}

static orr_code packet_inputs_path(const orr__packet_inputs *in,
                                   const char *own,
                                   const char *key,
                                   const char **out,
                                   orr_error *err)
{
    const orr_code code = find_input(in, own, key, out, err);
    return code ? code : orr__packet_config_may_read(&in->config, key, in->config.path, *out, err);
}

/* ---- reading ---- */

/* As in the reference's sample configurations, whose only limits are windows and pauses.  ACKs have
 * priority: a window of one RTT has no slack for ACKs that wait behind data on the reverse path. */
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

/* Without a configuration a buffer is at least twice what its ports reserve (packet-network.md
 * 7.1), within 32 bits. */
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
    orr_code code = packet_inputs_path(in, in->config.trace_nodes, "TRACE_FILE", &path, err);
    if (!code && access(path, F_OK) != 0) { /* SimAI's configuration names a missing one */
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
        packet_inputs_path(in, in->config.link_events, "LINK_EVENTS_FILE", &path, err);
    return code ? code : orr__link_events_read(&in->link_events, &in->cabling, path, err);
}

/* Rebuilds the cabling after its links have changed. */
static orr_code packet_inputs_recable(orr__packet_inputs *in, orr_error *err)
{
    orr__cabling_fini(&in->cabling);
    return orr__cabling_of_topology(&in->cabling, in->links, err);
}

/* A file of any kind; the reference's has cables already.  A file of no kind is reported as a
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
            packet_inputs_note(in, path, in->cabling.surplus,
                               "lines after the announced number of links are ignored");
    } else {
        code = orr__topology_parse_any(bytes, path, ORR__MOST_LINKS, &in->links, err);
        if (!code && !in->links)
            code = orr_fail(err, ORR_EINPUT, &where,
                            "not a topology with links (docs/format/topology.md)");
        if (!code)
            code = packet_inputs_recable(in, err);
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
        code = packet_inputs_path(in, in->config.topology, "TOPOLOGY_FILE", topology, err);
    return code ? code : read_topology(in, *topology, err);
}

/* Hosts forward if the topology says so, or if it is necessary and no configuration decides. */
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
    if (!code && given->config)
        code = orr__packet_config_may_write(&in->config, given->config, given->replaced, err);
    in->config.counts_events = given->counts_events;
    /* Samples would end the periods that APPROX skips. */
    in->config.has_history = given->wants_history && in->config.approx != ORR__APPROX_ON;
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

/* Effects of completed flows: htsim's triggers.
 *
 * A flow activates its send_done_trigger when its sender knows that everything has arrived, its
 * recv_done_trigger when the last byte arrives.  A trigger that fires starts flows in the same
 * instant, without delay, the last of its list first: htsim keeps due ones on a stack.  A multishot
 * activated more often than it has flows does nothing. Cost: O(1) per flow and end; a trigger's
 * flows are an array. */

enum { TRIGGERS_SHOWN = 10, LINE = 200 };

struct orr__triggers {
    fab *f;
    const orr__flow_list *flows;
    uint32_t *told;    /* by trigger: number of activations */
    uint32_t *started; /* by trigger: number of its flows started */
    orr_code code;
    orr_error error;
};

static void start_flow(orr__triggers *t, uint32_t i)
{
    const orr__flow_line *l = &t->flows->lines[i];
    const fab_send_request r = {.src = l->src,
                                .dst = l->dst,
                                .size = l->bytes,
                                .token = i,
                                .port = l->port,
                                .class = l->class};
    if (!t->code)
        t->code = fab_send(t->f, &r, &t->error);
}

static void start_all(orr__triggers *t, uint32_t number)
{
    const orr__trigger *k = &t->flows->triggers[number];
    for (uint32_t i = k->targets; i-- > 0;)
        start_flow(t, t->flows->targets[k->first + i]);
    t->started[number] = k->targets;
}

/* number: 1 + that of the trigger; 0: none. */
static void tell(orr__triggers *t, uint32_t number)
{
    if (number-- == 0)
        return;
    const orr__trigger *k = &t->flows->triggers[number];
    const uint32_t times = ++t->told[number];
    if (k->kind == ORR__TRIGGER_MULTISHOT && t->started[number] < k->targets)
        start_flow(t, t->flows->targets[k->first + t->started[number]++]);
    else if (k->kind == ORR__TRIGGER_ONESHOT && times == 1)
        start_all(t, number);
    else if (k->kind == ORR__TRIGGER_BARRIER && times == k->needs)
        start_all(t, number);
}

static void sent(void *context, uint64_t token)
{
    orr__triggers *t = context;
    tell(t, t->flows->by_line[token].sent);
}

static void arrived(void *context, uint64_t token)
{
    orr__triggers *t = context;
    tell(t, t->flows->by_line[token].arrived);
}

static bool hears(const void *context, uint64_t token, bool of_arrival)
{
    const orr__triggers *t = context;
    return of_arrival ? t->flows->by_line[token].arrived : t->flows->by_line[token].sent;
}

orr_code orr__triggers_create(fab *f,
                              const orr__flow_list *flows,
                              orr__triggers **out,
                              orr_error *err)
{
    orr__triggers *t = orr_alloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return orr_no_memory(err);
    t->f = f;
    t->flows = flows;
    t->told = orr_alloc(flows->trigger_count + 1, sizeof *t->told);
    t->started = orr_alloc(flows->trigger_count + 1, sizeof *t->started);
    if (!t->told || !t->started) {
        orr__triggers_destroy(t);
        return orr_no_memory(err);
    }
    fab_listen(f, &(fab_listener){t, sent, arrived, hears});
    *out = t;
    return ORR_OK;
}

void orr__triggers_destroy(orr__triggers *t)
{
    if (!t)
        return;
    orr_free(t->told);
    orr_free(t->started);
    orr_free(t);
}

orr_code orr__triggers_status(const orr__triggers *t, orr_error *err)
{
    if (t->code && err)
        *err = t->error;
    return t->code;
}

static void explain_one(const orr__triggers *t, size_t i, char line[LINE])
{
    static const char *const kinds[] = {"trigger", "oneshot", "multishot", "barrier"};
    const orr__trigger *k = &t->flows->triggers[i];
    const uint32_t waiting = k->targets - t->started[i];
    const uint32_t needs = k->kind == ORR__TRIGGER_BARRIER     ? k->needs
                           : k->kind == ORR__TRIGGER_MULTISHOT ? k->targets
                                                               : 1;
    snprintf(line, LINE,
             "%s %" PRIu64
             " (line %u): %u flow%s wait%s for it; it was triggered %u of %u times, and %u flows "
             "could trigger it",
             kinds[k->kind], k->id, k->line, waiting, waiting == 1 ? "" : "s",
             waiting == 1 ? "s" : "", t->told[i], needs, k->told);
}

void orr__triggers_explain(const orr__triggers *t, fab_say say, void *context)
{
    char line[LINE];
    size_t shown = 0;
    for (size_t i = 0; i < t->flows->trigger_count; i++) {
        if (t->started[i] == t->flows->triggers[i].targets || shown++ >= TRIGGERS_SHOWN)
            continue;
        explain_one(t, i, line);
        say(context, line);
    }
    if (shown > TRIGGERS_SHOWN) {
        snprintf(line, sizeof line, "and %zu more triggers", shown - TRIGGERS_SHOWN);
        say(context, line);
    }
}

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

/* ---- text ---- */

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
    return code ? code : packet_inputs_recable(&p->in, err);
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
        packet_inputs_note(&p->in, path, p->flows.surplus,
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
    const char *const outputs[][2] = {{p->opt.fct, "FCT_OUTPUT_FILE"},
                                      {p->opt.pfc, "PFC_OUTPUT_FILE"},
                                      {p->opt.qlen, "QLEN_MON_FILE"},
                                      {p->opt.trace, "TRACE_OUTPUT_FILE"}};
    orr__packet_given given = {.config = p->opt.config,
                               .topology = p->opt.topology,
                               .keys = p->opt.keys,
                               .threads = p->opt.threads,
                               .rules = p->opt.rules,
                               .wants_history = p->opt.wants_history,
                               .counts_events = p->opt.max_events > 0};
    const char *flows = p->opt.flows, *topology = p->opt.topology;
    for (size_t i = 0, n = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (outputs[i][0])
            given.replaced[n++] = outputs[i][1];
    orr_code code = orr__packet_inputs_read(&p->in, &given, err);
    if (!code && !topology)
        code = packet_inputs_path(&p->in, p->in.config.topology, "TOPOLOGY_FILE", &topology, err);
    if (!code && !flows)
        code = packet_inputs_path(&p->in, p->in.config.flows, "FLOW_FILE", &flows, err);
    if (code)
        return code;
    note_file(p, "configuration", p->opt.config);
    note_file(p, "topology", topology);
    note_file(p, "flows", flows);
    return read_flows(p, flows, err);
}

/* ---- observers ---- */

static orr_code attach(fab *f, const fab_output_paths *paths, orr_error *err)
{
    orr_code code;
    if ((code = fab_watch_files(f, paths, err)) || (code = fab_watch_series(f, err)) ||
        (code = fab_watch_monitor(f, err)))
        return code;
    return fab_watch_history(f, err);
}

orr_code fab_create_watched(const orr__packet_config *config,
                            const orr__cabling *cabling,
                            const fab_output_paths *paths,
                            fab **out,
                            orr_error *err)
{
    orr_code code = fab_create(config, cabling, out, err);
    if (!code)
        code = attach(*out, paths, err);
    if (!code)
        code = fab_prepare(*out, err);
    if (code) {
        fab_destroy(*out);
        *out = NULL;
    }
    return code;
}

/* ---- life cycle ---- */

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
    p->figures.flows = p->flows.count; /* including those that have not begun */
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

/* Bytes sent for the first time, in packets: the total is known. */
/* The progress line needs a total that is known in advance and a count that never goes back, unlike
 * events, or packets with retransmissions. */
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
    /* Statistics are taken even from a failed run: they show how far it came. */
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
    /* Reset the flag, so that the caller may continue with another call after a stop. */
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
        /* it may have been deleted: then there is no hash */
        return code == ORR_ENOMEM ? code : ORR_OK;
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
