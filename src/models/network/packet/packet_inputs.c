/* SPDX-License-Identifier: Apache-2.0 */
/* packet_inputs.c - the files of a packet network: the configuration first, which names the others. */
#include "packet_inputs.h"

#include "../../../base/map.h"
#include "../topology.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void orr__packet_inputs_fini(orr__packet_inputs *in)
{
    orr__cabling_fini(&in->cabling);
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
                 "%s:%u:%u: \"%s\" is not a key and is passed over (%" PRIu64 " such words)",
                 c->unknown_at.path, c->unknown_at.line, c->unknown_at.column, c->unknown,
                 c->unknown_count);
        warn(in, line);
    }
    if (!is_control(c->control) && c->control != 0 && !c->is_compat && c->path[0]) {
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

/* A link speed that the maps do not have gets thresholds of 0 in the reference: then everything is marked. */
static orr_code check_marks(orr__packet_inputs *in, const char *topology, orr_error *err)
{
    const orr_where w = orr_where_byte(topology, ORR_NO_BYTE);
    char line[400];
    for (size_t i = 0; i < in->cabling.cable_count && in->config.enable_qcn; i++) {
        const orr__cable *l = &in->cabling.cables[i];
        const bool at_switch =
            in->cabling.kinds[l->a] != ORR__HOST || in->cabling.kinds[l->b] != ORR__HOST;
        if (!at_switch || has_marks(&in->config, l->rate))
            continue;
        if (!in->config.path[0]) {
            make_marks(&in->config, l->rate);
            continue;
        }
        if (!in->config.is_compat)
            return orr_fail(err, ORR_EINPUT, &w,
                            "link %zu has %" PRIu64 " bit/s, for which KMIN_MAP, KMAX_MAP or "
                            "PMAX_MAP of %s have no entry (or ENABLE_QCN 0)",
                            i + 1, l->rate, in->config.path);
        snprintf(line, sizeof line,
                 "%s: link %zu has %" PRIu64 " bit/s, which KMIN_MAP, KMAX_MAP or PMAX_MAP do not "
                 "have: its thresholds are 0",
                 topology, i + 1, l->rate);
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

/* ---- links of a topology of ours ---- */

static bool is_way_back(const orr__wire *a, const orr__wire *b)
{
    return a->from == b->to && a->to == b->from && a->speed == b->speed &&
           a->latency == b->latency && a->is_failed == b->is_failed;
}

static orr_code add_cable(orr__cabling *c, const orr__wire *l, orr_error *err)
{
    const double bits = l->speed * 8e9;
    if (!(bits >= 1 && bits <= 1e15) || !(l->latency >= 0 && l->latency <= 1e12))
        return orr_fail(err, ORR_EINPUT, NULL,
                        "a link has no speed or latency that packets can have");
    if (!orr_grow(&c->cables, &c->cable_room, c->cable_count + 1))
        return orr_no_memory(err);
    c->cables[c->cable_count++] = (orr__cable){.a = l->from,
                                               .b = l->to,
                                               .rate = (uint64_t)rint(bits),
                                               .delay_ps = (uint64_t)rint(l->latency * 1000)};
    return ORR_OK;
}

/* Links there have one direction; each one and its way back are a cable.  Ways back by their ends, in chains. */
typedef struct ways_back {
    orr_map *first;
    uint32_t *next; /* by link: the next with the same ends */
} ways_back;

#define NO_LINK UINT32_MAX

static bool list_ways_back(ways_back *w, const orr__topology *t)
{
    w->first = orr_map_create(t->link_count);
    w->next = orr_alloc(t->link_count + 1, sizeof *w->next);
    if (!w->first || !w->next)
        return false;
    for (size_t i = t->link_count; i-- > 0;) {
        const orr__wire *l = &t->links[i];
        const uint64_t ends = (uint64_t)l->to << 32 | l->from;
        w->next[i] = orr_map_find(w->first, ends, NO_LINK);
        if (l->from > l->to && !orr_map_put(w->first, ends, (uint32_t)i, NULL))
            return false;
    }
    return true;
}

/* The first way back of link i that has no cable yet, taken off its chain. */
static bool take_way_back(ways_back *w, const orr__topology *t, size_t i)
{
    const orr__wire *l = &t->links[i];
    const uint64_t ends = (uint64_t)l->from << 32 | l->to;
    uint32_t before = NO_LINK, at = orr_map_find(w->first, ends, NO_LINK);
    while (at != NO_LINK && !is_way_back(l, &t->links[at])) {
        before = at;
        at = w->next[at];
    }
    if (at == NO_LINK)
        return false;
    if (before != NO_LINK)
        w->next[before] = w->next[at];
    return before != NO_LINK || orr_map_put(w->first, ends, w->next[at], NULL);
}

static orr_code make_cables(orr__cabling *c, const orr__topology *t, ways_back *w, orr_error *err)
{
    size_t used = 0;
    orr_code code = list_ways_back(w, t) ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; i < t->link_count && !code; i++) {
        if (t->links[i].from > t->links[i].to || !take_way_back(w, t, i))
            continue;
        used += 2;
        if (!t->links[i].is_failed)
            code = add_cable(c, &t->links[i], err);
    }
    if (!code && used != t->link_count)
        code = orr_fail(err, ORR_EINPUT, NULL,
                        "the model packet takes links that go both ways alike: no one_way, and no "
                        "change of one direction");
    return code;
}

static orr_code copy_links(orr__cabling *c, const orr__topology *t, orr_error *err)
{
    ways_back w = {0};
    c->nodes = orr__topology_devices(t);
    c->hosts = t->ranks;
    if (!(c->kinds = orr_alloc(c->nodes, 1)))
        return orr_no_memory(err);
    memset(c->kinds + t->ranks, ORR__SWITCH, c->nodes - t->ranks);
    const orr_code code = make_cables(c, t, &w, err);
    orr_map_destroy(w.first);
    orr_free(w.next);
    return code;
}

/* ---- reading ---- */

/* As the sample configurations of the old program, whose only limits are windows and pauses. */
static void use_samples(orr__packet_config *c)
{
    c->control = 0;
    c->chunk = 4000;
    c->ack_interval = 1;
    c->global_t = 0;
    c->var_window = 1;
    c->rate_ai = 50000000;
    c->rate_hai = 100000000;
    c->has_rate_ai = c->has_rate_hai = true;
    c->buffer_mib = 32;
    c->fct_out[0] = c->pfc_out[0] = 0;
}

static orr_code read_traced(orr__packet_inputs *in, orr_error *err)
{
    const char *path;
    if (!in->config.enable_trace || !in->config.trace_nodes[0] || !in->config.trace_out[0])
        return ORR_OK;
    if (!(in->is_traced = orr_alloc(in->cabling.nodes, sizeof *in->is_traced)))
        return orr_no_memory(err);
    const orr_code code =
        orr__packet_inputs_path(in, in->config.trace_nodes, "TRACE_FILE", &path, err);
    return code ? code : orr__traced_read(&in->cabling, path, in->is_traced, err);
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

static orr_code read_all(orr__packet_inputs *in, const orr__packet_given *given, orr_error *err)
{
    const char *topology = given->topology ? given->topology : "";
    orr_code code = ORR_OK;
    orr__packet_config_defaults(&in->config, given->is_compat);
    if (given->config)
        code = orr__packet_config_read(&in->config, given->config, err);
    else
        use_samples(&in->config);
    if (!code && given->keys)
        code = orr__packet_config_parse(
            &in->config, (orr_span){(const uint8_t *)given->keys, strlen(given->keys)},
            "given keys", err);
    if (!code && given->links)
        code = copy_links(&in->cabling, given->links, err);
    else if (!code && !given->topology)
        code = orr__packet_inputs_path(in, in->config.topology, "TOPOLOGY_FILE", &topology, err);
    if (!code && !given->links)
        code = orr__cabling_read(&in->cabling, topology, err);
    if (!code)
        code = check_marks(in, topology, err);
    if (code)
        return code;
    warn_of_config(in);
    if (given->links)
        in->config.forward_hosts |= given->links->ranks_forward;
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
