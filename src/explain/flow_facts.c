/* SPDX-License-Identifier: Apache-2.0 */
/* flow_facts.c - results of a packet network: flows by size, the busiest links, the longest queues,
 * the ports paused longest, and notes.
 *
 * Lists are short for any network size; totals are counted. */
#include "facts.h"

#include "models/network/packet/packet_run.h"

static bool take_links(const fab *f,
                       orr__port_measure measure,
                       orr_arena *a,
                       orr_fabric_link *out,
                       size_t *count,
                       size_t *all)
{
    uint32_t ports[ORR__FABRIC_SHOWN];
    char name[ORR__PORT_NAME];
    *count = orr__pick_ports(f, measure, ports, ORR__FABRIC_SHOWN, all);
    for (size_t i = 0; i < *count; i++) {
        out[i] = orr__port_link(f, ports[i]);
        orr__port_short_name(f, ports[i], name);
        if (!(out[i].name = orr_arena_text(a, orr_str_of(name))))
            return false;
    }
    return true;
}

/* ---- pauses ---- */

typedef struct most_paused {
    fab_port_pauses list[ORR__FABRIC_SHOWN];
    unsigned count;
} most_paused;

/* Insertion into a short sorted list; stable. */
static void keep_most(void *context, const fab_port_pauses *p)
{
    most_paused *m = context;
    unsigned at = m->count;
    while (at && m->list[at - 1].ticks < p->ticks)
        at--;
    if (at == ORR__FABRIC_SHOWN)
        return;
    if (m->count < ORR__FABRIC_SHOWN)
        m->count++;
    for (unsigned i = m->count - 1; i > at; i--)
        m->list[i] = m->list[i - 1];
    m->list[at] = *p;
}

static bool take_paused(const fab *f, orr_arena *a, orr__fabric_facts *out)
{
    most_paused most = {.count = 0};
    out->paused_ports = fab_paused_ports(f, keep_most, &most);
    out->paused_count = most.count;
    for (unsigned i = 0; i < most.count; i++) {
        const fab_port_pauses *p = &most.list[i];
        out->paused[i] = (orr__paused_port){.port = orr_arena_text(a, orr_str_of(p->port)),
                                            .head = orr_arena_text(a, orr_str_of(p->head)),
                                            .pauses = p->pauses,
                                            .paused_ps = p->ticks * out->tick_ps,
                                            .longest_ps = p->longest_ticks * out->tick_ps,
                                            .chain = p->chain,
                                            .share = p->share};
        if (!out->paused[i].port || !out->paused[i].head)
            return false;
    }
    return true;
}

/* ---- text ---- */

typedef struct listener {
    orr_arena *arena;
    orr__fabric_notes *to;
} listener;

/* Lists have few lines: a full one is copied to twice the capacity. */
static void add_line(void *context, const char *line)
{
    const listener *l = context;
    orr__fabric_notes *n = l->to;
    if (n->count == n->room) {
        const size_t room = n->room ? 2 * n->room : 8;
        const char **lines = orr_arena_new(l->arena, room, const char *);
        n->failed = n->failed || !lines;
        if (n->failed)
            return;
        for (size_t i = 0; i < n->count; i++)
            lines[i] = n->lines[i];
        n->lines = lines;
        n->room = room;
    }
    const char *copy = orr_arena_text(l->arena, orr_str_of(line));
    n->failed = n->failed || !copy;
    if (copy)
        n->lines[n->count++] = copy;
}

bool orr__fabric_facts_take(const fab *f,
                            const orr_packet_figures *figures,
                            orr_arena *a,
                            orr__fabric_facts *out)
{
    size_t queues;
    *out = (orr__fabric_facts){
        .figures = *figures, .end_ticks = orr__fabric_end(f), .tick_ps = 1000 / fab_unit(f)};
    orr__fabric_flow_times(f, &out->flows, out->classes);
    if (!take_links(f, orr__measure_busy, a, out->busiest, &out->busiest_count, &out->links_used) ||
        !take_links(f, orr__measure_queue, a, out->queues, &out->queue_count, &queues) ||
        !take_paused(f, a, out))
        return false;
    fab_explain_pauses(f, add_line, &(listener){a, &out->storm});
    fab_explain_approx(f, add_line, &(listener){a, &out->approx});
    return !out->storm.failed && !out->approx.failed;
}

/* ---- a run of flows ---- */

orr_code orr__flow_facts_take(const orr_packet *p, orr__flow_facts *out, orr_error *err)
{
    const orr_packet_options *opt = orr__packet_options(p);
    *out = (orr__flow_facts){.arena = orr_arena_create(),
                             .program = opt->program,
                             .config = opt->config,
                             .has_rules = opt->rules != NULL};
    return out->arena && orr__fabric_facts_take(orr__packet_fabric(p), orr_packet_result(p),
                                                out->arena, &out->fabric)
               ? ORR_OK
               : orr_no_memory(err);
}

void orr__flow_facts_fini(orr__flow_facts *f)
{
    orr_arena_destroy(f->arena);
}
