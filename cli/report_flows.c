/* SPDX-License-Identifier: Apache-2.0 */
/* report_flows.c - flows over the packet network as a page, and the links that all reports of networks share. */
#include "report_sim.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINKS = 2000, INPUTS = 3, STALL_LINES = 1000 };

/* ---- links ---- */

orr_code cli_links_begin(cli_links *l, orr_error *err)
{
    *l = (cli_links){.links = calloc(2 * MOST_LINKS, sizeof *l->links),
                     .list = calloc(MOST_LINKS, sizeof *l->list),
                     .ends = calloc(2 * MOST_LINKS, sizeof *l->ends)};
    return l->links && l->list && l->ends ? ORR_OK
                                          : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
}

static int compare_links(const void *a, const void *b)
{
    const orr_net_link *x = a, *y = b;
    if (x->busy_ns != y->busy_ns)
        return x->busy_ns > y->busy_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Twice the room, and the idler half thrown away when it is full: the busiest stay, whatever the order. */
void cli_links_take(void *links, const orr_net_link *link)
{
    cli_links *l = links;
    if (l->count == 2 * MOST_LINKS) {
        qsort(l->links, l->count, sizeof *l->links, compare_links);
        l->count = MOST_LINKS;
    }
    l->links[l->count++] = *link;
    l->seen++;
}

/* "3 -> leaf0 #2"; "switch8.3 -> 2", whose 3 is a port of the switch. */
static void split_name(const char *name, char *from, char *to)
{
    const char *arrow = strstr(name, " -> ");
    const size_t n = arrow ? (size_t)(arrow - name) : strlen(name);
    memcpy(from, name, n);
    from[n] = '\0';
    char *dot = strrchr(from, '.');
    if (dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1))
        *dot = '\0';
    snprintf(to, ORR_NET_LINK_NAME, "%s", arrow ? arrow + 4 : "");
    char *twin = strstr(to, " #");
    if (twin)
        *twin = '\0';
}

void cli_links_end(cli_links *l)
{
    qsort(l->links, l->count, sizeof *l->links, compare_links);
    if (l->count > MOST_LINKS)
        l->count = MOST_LINKS;
    for (size_t i = 0; i < l->count; i++) {
        const orr_net_link *one = &l->links[i];
        split_name(one->name, l->ends[2 * i], l->ends[2 * i + 1]);
        l->list[i] = (orr_report_link){.from = l->ends[2 * i],
                                       .to = l->ends[2 * i + 1],
                                       .bandwidth = one->bandwidth * 1e9,
                                       .bytes = one->bytes,
                                       .busy_ns = one->busy_ns};
    }
}

void cli_links_fini(cli_links *l)
{
    free(l->links);
    free(l->list);
    free(l->ends);
}

/* ---- flows ---- */

static orr_code list_inputs(const orr_packet *p,
                            orr_packet_input files[INPUTS],
                            orr_report_input out[INPUTS],
                            size_t *count,
                            orr_error *err)
{
    orr_code code = ORR_OK;
    *count = 0;
    while (*count < INPUTS && !(code = orr_packet_input_at(p, *count, &files[*count], err))) {
        const orr_packet_input *in = &files[*count];
        out[(*count)++] = (orr_report_input){.what = in->what,
                                             .path = in->path,
                                             .hash = *in->hash ? in->hash : NULL,
                                             .has_bytes = *in->hash != 0,
                                             .bytes = in->bytes};
    }
    return code == ORR_END ? ORR_OK : code;
}

static orr_code add_flows(orr_report *r,
                          const orr_packet *p,
                          const cli_links *links,
                          const orr_error *why,
                          orr_error *err)
{
    static const char *const stopped[] = {
        "The run was interrupted; what is shown is what had happened by then."};
    orr_packet_input files[INPUTS];
    orr_report_input inputs[INPUTS];
    const char *lines[STALL_LINES];
    orr_fabric_view *view;
    size_t line_count = 0;
    size_t input_count;
    orr_code code = list_inputs(p, files, inputs, &input_count, err);
    if (!code)
        code = orr_packet_view(p, &view, err);
    if (code)
        return code;
    while (line_count < STALL_LINES && orr_packet_stall(p, line_count)) {
        lines[line_count] = orr_packet_stall(p, line_count);
        line_count++;
    }
    const orr_report_run run = {.name = "flows",
                                .is_flows = true,
                                .length_ps = (orr_ps)view->end_ps,
                                .events = view->figures.events,
                                .links = links->list,
                                .link_count = links->count,
                                .links_left_out = links->seen - links->count,
                                .fabric = view,
                                .notes = stopped,
                                .note_count = why && !line_count,
                                .stall = why && line_count ? why->message : NULL,
                                .stall_lines = lines,
                                .stall_line_count = line_count,
                                .inputs = inputs,
                                .input_count = input_count};
    code = orr_report_add(r, &run, err);
    orr_packet_view_destroy(view);
    return code;
}

/* "flows.txt on topology.txt" */
static void name_page(const orr_packet *p, char *out, size_t room)
{
    const char *flows = "flows", *topology = "a network";
    orr_packet_input in;
    orr_error why;
    for (size_t i = 0; orr_packet_input_at(p, i, &in, &why) == ORR_OK; i++) {
        if (strcmp(in.what, "flows") == 0)
            flows = in.path;
        else if (strcmp(in.what, "topology") == 0)
            topology = in.path;
    }
    snprintf(out, room, "%.250s on %.250s", flows, topology);
}

orr_code cli_report_flows(const cli_context *c,
                          const orr_packet *p,
                          const orr_error *why,
                          const char *path,
                          orr_error *err)
{
    char title[2 * 256 + 8];
    char *line = cli_command_line(c);
    name_page(p, title, sizeof title);
    const orr_report_options about = {
        .title = title, .program = "orrery " ORRERY_VERSION, .made_from = line};
    orr_report *r = NULL;
    cli_links links = {0};
    orr_code code = line ? orr_report_create(&about, &r, err)
                         : orr_fail(err, ORR_ENOMEM, NULL, "out of memory");
    if (!code && !(code = cli_links_begin(&links, err))) {
        orr_packet_visit_links(p, cli_links_take, &links);
        cli_links_end(&links);
        code = add_flows(r, p, &links, why, err);
    }
    if (!code)
        code = orr_report_write(r, path, err);
    cli_links_fini(&links);
    orr_report_destroy(r);
    free(line);
    return code;
}
