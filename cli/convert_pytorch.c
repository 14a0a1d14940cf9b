/* SPDX-License-Identifier: Apache-2.0 */
/* convert_pytorch.c - orrery convert pytorch: a linked PyTorch trace of one rank to a trace. */
#include "convert.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/pytorch.h>

#include <inttypes.h>
#include <stdio.h>

/* What a trace leaves open is said once, with how often. */
static void note_count(const cli_context *c, uint64_t count, const char *what)
{
    if (count)
        cli_note(c, "%s: %s: %" PRIu64 "\n", c->args[1], what, count);
}

const char *cli_nodes_text(const orr_pytorch_later *nodes, uint64_t count, char out[CLI_NODES_ROOM])
{
    const uint64_t shown = count < ORR_PYTORCH_SHOWN ? count : ORR_PYTORCH_SHOWN;
    size_t at = 0; /* eight pairs of 20 digits each and a last number fit */
    out[0] = '\0';
    for (uint64_t i = 0; i < shown; i++)
        at += (size_t)snprintf(out + at, CLI_NODES_ROOM - at, "%s%" PRIu64 " (parent %" PRIu64 ")",
                               i ? ", " : "", nodes[i].node, nodes[i].parent);
    if (count > shown)
        snprintf(out + at, CLI_NODES_ROOM - at, " and %" PRIu64 " more", count - shown);
    return out;
}

/* One of these is the sign of a cycle, so they are named. */
static void note_later(const cli_context *c, const orr_pytorch_report *r)
{
    char nodes[CLI_NODES_ROOM];
    if (r->parents_later)
        cli_note(c,
                 "%s: nodes whose parent does not come before them, taken as without one: %" PRIu64
                 ": %s\n",
                 c->args[1], r->parents_later,
                 cli_nodes_text(r->later_nodes, r->parents_later, nodes));
}

static void note_report(const cli_context *c, const orr_pytorch_report *r)
{
    note_count(c, r->kinds_unknown,
               "kernels that send and receive for no known call, taken as all-to-all");
    note_count(c, r->sizes_unknown, "communication without a size, taken as 0 bytes");
    note_count(c, r->peers_unknown, "messages without a peer, which will be pauses");
    note_count(c, r->parents_missing, "nodes whose parent is not in the file");
    note_later(c, r);
    note_count(c, r->durations_negative, "negative durations, taken as 0");
    note_count(c, r->dependencies_missing,
               "dependencies on nodes that are not in the file, left out");
    note_count(c, r->dependencies_refused, "dependencies that contradict the clock, left out");
    note_count(c, r->dependencies_circular, "dependencies that would form a cycle, left out");
}

static orr_code make_set(orr_trace *t, orr_set **out, orr_error *err)
{
    orr_code code = orr_set_create(out, err);
    if (code) {
        orr_trace_destroy(t);
        return code;
    }
    code = orr_set_add(*out, t, err);
    if (code)
        orr_set_close(*out);
    return code;
}

static orr_code pytorch_make(cli_context *c, orr_set **out, orr_error *err)
{
    const orr_compat *old = NULL;
    const orr_pytorch_options opt = {.has_rank = cli_given(c, "rank"),
                                     .rank = (uint32_t)cli_count(c, "rank")};
    orr_pytorch_report report;
    orr_linked *l;
    orr_trace *t;
    orr_code code = ORR_OK;
    if (cli_flag(c, "compat") && (code = orr_compat_find(ORR_RULES_CONVERT, NULL, &old, err)))
        return code;
    const orr_linked_options how = {.rules = old ? old->convert : NULL};
    if ((code = orr_linked_read(c->args[1], &how, &l, err)))
        return code;
    code = orr_linked_trace(l, &opt, &t, &report, err);
    orr_linked_free(l);
    if (code)
        return code;
    note_report(c, &report);
    return make_set(t, out, err);
}

static const char *const pytorch_options[] = {"rank", "compat", NULL};

const cli_converter cli_convert_pytorch = {"pytorch", pytorch_options, pytorch_make};
