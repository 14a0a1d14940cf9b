/* SPDX-License-Identifier: Apache-2.0 */
/* convert_pytorch.c - orrery convert pytorch: a linked PyTorch trace of one rank to a trace. */
#include "convert.h"

#include <orrery/pytorch.h>

#include <inttypes.h>

/* What a trace leaves open is said once, with how often. */
static void note_count(const cli_context *c, uint64_t count, const char *what)
{
    if (count)
        cli_note(c, "%s: %s: %" PRIu64 "\n", c->args[1], what, count);
}

static void note_report(const cli_context *c, const orr_pytorch_report *r)
{
    note_count(c, r->kinds_unknown,
               "kernels that send and receive for no known call, taken as all-to-all");
    note_count(c, r->sizes_unknown, "communication without a size, taken as 0 bytes");
    note_count(c, r->peers_unknown, "messages without a peer, which will be pauses");
    note_count(c, r->parents_missing, "nodes whose parent is not in the file");
    note_count(c, r->durations_negative, "negative durations, taken as 0");
    note_count(c, r->dependencies_missing,
               "dependencies on nodes that are not in the file, left out");
    note_count(c, r->dependencies_refused, "dependencies that the clock speaks against, left out");
    note_count(c, r->dependencies_circular, "dependencies in a circle, left out");
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
    const bool is_compat = cli_flag(c, "compat");
    const orr_pytorch_options opt = {.is_compat = is_compat,
                                     .has_rank = cli_given(c, "rank"),
                                     .rank = (uint32_t)cli_count(c, "rank")};
    orr_pytorch_report report;
    orr_linked *l;
    orr_trace *t;
    orr_code code =
        orr_linked_read(c->args[1], &(orr_linked_options){.is_compat = is_compat}, &l, err);
    if (code)
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
