/* SPDX-License-Identifier: Apache-2.0 */
/* machine_figures.c - a machine for people and as JSON, and the list of the built-in ones. */
#include <orrery/lab/show.h>
#include <orrery/lab/units.h>

#include "views_impl.h"

#include <stdio.h>

/* ---- for people ---- */

static char *rate(double GBps, char out[ORR_UNIT_ROOM])
{
    return orr_rate_text((orr_Bps)(GBps * 1e9 + 0.5), out);
}

static char *latency(double ns, char out[ORR_UNIT_ROOM])
{
    return orr_time_text((orr_ps)(ns * 1000 + 0.5), out);
}

static void print_network(orr_buf *to, const orr_machine *m)
{
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    if (m->up != ORR_MACHINE_UP_NONE)
        orr_buf_print(to, "scale-up     %s, %s per device and direction, %s%s\n",
                      orr_machine_up_name(m->up), rate(m->up_GBps, a), latency(m->up_latency_ns, b),
                      m->up_reduces ? ", reduces in the switch" : "");
    if (m->nics)
        orr_buf_print(to, "NICs         %u per node, %s each, %s; %s per device\n", m->nics,
                      rate(m->nic_GBps, a), latency(m->nic_latency_ns, b),
                      rate(orr_machine_out_GBps(m), (char[ORR_UNIT_ROOM]){0}));
    orr_buf_print(to, "fabric       %s", orr_machine_fabric_name(m->fabric));
    if (m->nodes_per_leaf)
        orr_buf_print(to, ", %u nodes per leaf", m->nodes_per_leaf);
    if (m->oversubscription > 1)
        orr_buf_print(to, ", oversubscription %g", m->oversubscription);
    if (m->hop_latency_ns > 0)
        orr_buf_print(to, ", %s per switch", latency(m->hop_latency_ns, a));
    orr_buf_print(to, "%s\n", m->fabric_reduces ? ", reduces in the switch" : "");
    if (m->nics && m->nodes > 1)
        orr_buf_print(to, "             %s from node to node at most, without software\n",
                      latency(orr_machine_out_latency_ns(m), a));
}

static void print_dims(orr_buf *to, const orr_net_config *c)
{
    static const char *const shapes[] = {"ring", "switch", "all pairs"};
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM];
    orr_buf_print(to, "\n%-10s %-10s %6s %14s %12s\n", "dimension", "shape", "ranks",
                  "rate per link", "latency");
    for (uint32_t k = 0; k < c->dims; k++)
        orr_buf_print(to, "%-10u %-10s %6u %14s %12s\n", k,
                      c->is_open[k] ? "line" : shapes[c->shape[k]], c->npus[k],
                      rate(c->bandwidth[k] * (1 << 30) / 1e9, a), latency(c->latency_ns[k], b));
}

/* Print the figures of a built-in machine that its file marks as unpublished, except for those that
 * the name overrides. */
static void print_estimates(orr_buf *to, const char *name)
{
    char bare[ORR_MACHINE_NAME], section[ORR_MACHINE_NAME] = "", key[2 * ORR_MACHINE_NAME + 8];
    size_t count = 0;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, ":,"), name);
    for (const char *line = orr_machine_source(bare); line && *line;) {
        const size_t length = strcspn(line, "\n"), word = strcspn(line, ":#\n");
        const char *remark = memchr(line, '#', length);
        const bool is_inside = *line == ' ';
        if (!is_inside)
            snprintf(section, sizeof section, "%.*s", (int)(word < 40 ? word : 40), line);
        if (is_inside)
            snprintf(key, sizeof key, "%s.%.*s", section, (int)(word < 42 ? word - 2 : 40),
                     line + 2);
        else
            snprintf(key, sizeof key, "%s", section);
        if (remark && remark > line &&
            memmem(remark, length - (size_t)(remark - line), "estimate", 8) && !strstr(name, key))
            orr_buf_print(to, "%s%s", count++ ? ", " : "estimates    ", key);
        line += length + (line[length] == '\n');
    }
    if (count)
        orr_buf_print(to, "; --file shows the source of each figure\n");
}

static void print_machine(orr_buf *to,
                          const char *name,
                          const orr_machine *m,
                          const orr_net_config *dims)
{
    char a[ORR_UNIT_ROOM], b[ORR_UNIT_ROOM], c[ORR_UNIT_ROOM];
    orr_buf_print(to, "%s%s%s\n", m->name, m->note[0] ? ": " : "", m->note);
    orr_buf_print(to, "devices      %s: %s node%s of %u\n",
                  orr_count_text(orr_machine_devices(m), a), orr_count_text(m->nodes, b),
                  m->nodes == 1 ? "" : "s", m->devices);
    orr_buf_print(to, "chip         %s (%s)", m->chip, m->architecture);
    if (m->memory)
        orr_buf_print(to, ", %s", orr_bytes_text(m->memory, c));
    if (m->memory_GBps > 0)
        orr_buf_print(to, " at %s", rate(m->memory_GBps, a));
    if (m->peak_tflops > 0)
        orr_buf_print(to, ", %g TFLOP/s in 16 bits, dense", m->peak_tflops);
    orr_buf_print(to, "\n");
    print_network(to, m);
    orr_buf_print(to, "collectives  %s", m->collectives);
    if (m->overlap_cost > 0)
        orr_buf_print(to, "; compute is %g %% slower during one", 100 * m->overlap_cost);
    if (m->overlap_cost_most > 0)
        orr_buf_print(to, " (an estimate: %g to %g %%)", 100 * m->overlap_cost_least,
                      100 * m->overlap_cost_most);
    if (m->message_overlap_cost > 0)
        orr_buf_print(to, ", during a message %g %%", 100 * m->message_overlap_cost);
    orr_buf_print(to, "\n");
    if (m->software[0])
        orr_buf_print(to, "software     %s\n", m->software);
    if (m->usd_per_hour > 0)
        orr_buf_print(to, "price        %g USD per device and hour\n", m->usd_per_hour);
    if (m->watts > 0)
        orr_buf_print(to, "power        %g kW per node\n", m->watts / 1000);
    print_estimates(to, name);
    print_dims(to, dims);
}

/* ---- for programs ---- */

static void put_machine(orr_json_writer *w, const orr_machine *m)
{
    orr_json_put_fields(
        w, ORR_T("name", m->name), ORR_T("note", m->note), ORR_T("chip", m->chip),
        ORR_T("architecture", m->architecture), ORR_U("nodes", m->nodes),
        ORR_U("devices_per_node", m->devices), ORR_U("devices", orr_machine_devices(m)),
        ORR_U("memory_bytes", m->memory), ORR_D("memory_GBps", m->memory_GBps),
        ORR_D("peak_tflops", m->peak_tflops), ORR_T("scale_up", orr_machine_up_name(m->up)),
        ORR_D("scale_up_GBps", m->up_GBps), ORR_D("scale_up_latency_ns", m->up_latency_ns),
        ORR_B("scale_up_reduces", m->up_reduces), ORR_U("nics_per_node", m->nics),
        ORR_D("nic_GBps", m->nic_GBps), ORR_D("nic_latency_ns", m->nic_latency_ns),
        ORR_T("fabric", orr_machine_fabric_name(m->fabric)),
        ORR_D("oversubscription", m->oversubscription), ORR_D("hop_latency_ns", m->hop_latency_ns),
        ORR_B("fabric_reduces", m->fabric_reduces), ORR_T("collectives", m->collectives),
        ORR_D("overlap_cost", m->overlap_cost), ORR_D("overlap_cost_least", m->overlap_cost_least),
        ORR_D("overlap_cost_most", m->overlap_cost_most),
        ORR_D("message_overlap_cost", m->message_overlap_cost), ORR_T("software", m->software),
        ORR_D("usd_per_hour", m->usd_per_hour), ORR_D("watts", m->watts));
}

static void put_dimensions(orr_json_writer *w, const orr_net_config *c)
{
    static const char *const shapes[] = {"Ring", "Switch", "FullyConnected"};
    orr_json_put_array(w, "dimensions");
    for (uint32_t k = 0; k < c->dims; k++) {
        orr_json_put_row(w, ORR_T("shape", c->is_open[k] ? "Line" : shapes[c->shape[k]]),
                         ORR_U("ranks", c->npus[k]),
                         ORR_D("bandwidth_GBps", c->bandwidth[k] * (1 << 30) / 1e9),
                         ORR_D("latency_ns", c->latency_ns[k]));
    }
    orr_json_end_array(w);
}

orr_code orr_show_machine(const orr_machine *m,
                          const orr_net_config *dims,
                          const char *name,
                          orr_show_form form,
                          const char *path,
                          orr_error *err)
{
    orr_buf b = {0};
    orr__document d;
    if (form == ORR_SHOW_JSON) {
        orr_json_writer *w = orr__document_begin(&d, "orrery-machine");
        put_machine(w, m);
        put_dimensions(w, dims);
        return orr__document_save(&d, path, err);
    }
    print_machine(&b, name, m, dims);
    return orr__text_save(&b, path, err);
}

/* ---- the list ---- */

static void print_row(orr_buf *to, const orr_machine *m)
{
    char memory[ORR_UNIT_ROOM], up[ORR_UNIT_ROOM], nics[ORR_UNIT_ROOM] = "-";
    if (m->nics)
        snprintf(nics, sizeof nics, "%u x %.0f Gb/s", m->nics, m->nic_GBps * 8);
    orr_buf_print(to, "%-14s %7u  %-9s %-10s %-12s %-14s %s\n", m->name, m->devices, m->chip,
                  orr_bytes_text(m->memory, memory), rate(m->up_GBps, up), nics, m->note);
}

static void put_row(orr_json_writer *w, const orr_machine *m)
{
    orr_json_line(w, 2);
    orr_json_begin_object(w);
    put_machine(w, m);
    orr_json_end_object(w);
}

orr_code orr_show_machines(orr_show_form form, const char *path, orr_error *err)
{
    const bool is_json = form == ORR_SHOW_JSON;
    orr_buf b = {0};
    orr__document d;
    orr_machine m;
    orr_json_writer *w = is_json ? orr__document_begin(&d, "orrery-machines") : NULL;
    if (is_json)
        orr_json_put_array(w, "machines");
    else
        orr_buf_print(&b, "%-14s %7s  %-9s %-10s %-12s %-14s %s\n", "machine", "devices", "chip",
                      "memory", "scale-up", "NICs per node", "note");
    for (size_t i = 0; orr_machine_at(i); i++) {
        if (orr_machine_find(orr_machine_at(i), &m, NULL))
            continue; /* never happens: a test reads all of them */
        if (is_json)
            put_row(w, &m);
        else
            print_row(&b, &m);
    }
    if (!is_json)
        return orr__text_save(&b, path, err);
    orr_json_end_array(w);
    return orr__document_save(&d, path, err);
}
