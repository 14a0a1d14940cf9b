/* SPDX-License-Identifier: Apache-2.0 */
/* old_chakra_link.c - Chakra's linker by its old name, chakra_trace_link, with the options of all
 * its generations.
 *
 * Today's has --rank and --chakra-host-trace; that of 2024-05 --pytorch-et-file and no rank; the
 * first one --et-file, and what it wrote was named after that (chakra.md 3.1). */
#include "old.h"

#include "convert.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/link.h>

#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

/* Its three generations, the latest first. */
static const cli_option trace_link_options[] = {
    {"rank", 0, "N", "the rank of the traces; only a label, may be left out as before 2024-09",
     CLI_COUNT},
    {"chakra-host-trace", 0, "FILE", "PyTorch's execution trace"},
    {"chakra-device-trace", 0, "FILE", "Kineto's trace"},
    {"output-file", 0, "FILE", "where the linked trace goes"},
    {"log-level", 0, "LEVEL", "accepted for compatibility, ignored", .fallback = "INFO"},
    {"pytorch-et-file", 0, "FILE", "2024-05: PyTorch's execution trace"},
    {"kineto-file", 0, "FILE", "earlier: Kineto's trace"},
    {"et-file", 0, "FILE", "first form: PyTorch's execution trace"},
    {"annotation", 0, "NAME", "first form: accepted, ignored", .fallback = "DataLoader"},
    {"exact-match", 0, NULL, "first form: accepted, ignored"},
    {0},
};

/* The first of these options that was given; NULL: none. */
static const char *given(const cli_context *c, const char *const *names)
{
    for (; *names; names++) {
        if (cli_given(c, *names))
            return cli_text(c, *names);
    }
    return NULL;
}

static orr_code missing(const char *option, orr_error *err)
{
    return cli_misuse(err, "missing option: --%s", option);
}

/* host.json -> host_plus.json, as the first generation named its output. */
static orr_code plus_name(const char *host, char out[PATH_ROOM], orr_error *err)
{
    const char *dot = strstr(host, ".json");
    const size_t stem = dot ? (size_t)(dot - host) : strlen(host);
    const int n =
        snprintf(out, PATH_ROOM, "%.*s%s%s", (int)stem, host, "_plus", dot ? dot : ".json");
    if (n < 0 || n >= PATH_ROOM)
        return cli_misuse(err, "the name of the host trace is too long");
    return ORR_OK;
}

/* The reference passes over them without a word; whoever converts the result will not. */
static void warn_cycles(const cli_context *c, const char *host, const orr_link_counts *counts)
{
    const uint64_t later = counts->of[ORR_LINK_LATER_PARENTS];
    char nodes[CLI_NODES_ROOM];
    if (later)
        cli_note(
            c,
            "WARNING:root:%s: a parent that does not come before its child, as in a cycle: node%s %s\n",
            host, later == 1 ? "" : "s", cli_nodes_text(counts->later_nodes, later, nodes));
}

static orr_code run_link(cli_context *c, orr_error *err)
{
    static const char *const hosts[] = {"chakra-host-trace", "pytorch-et-file", "et-file", NULL};
    static const char *const devices[] = {"chakra-device-trace", "kineto-file", NULL};
    const char *host = given(c, hosts), *device = given(c, devices);
    const char *output = cli_text(c, "output-file");
    char plus[PATH_ROOM];
    const orr_compat *old;
    orr_link *l;
    orr_code code = ORR_OK;
    if (!host)
        return missing("chakra-host-trace", err);
    if (!device)
        return missing("chakra-device-trace", err);
    if (!output && !cli_given(c, "et-file"))
        return missing("output-file", err);
    if (!output && (code = plus_name(host, plus, err)))
        return code;
    output = output ? output : plus;
    if ((code = orr_compat_find(ORR_RULES_LINK, NULL, &old, err)) ||
        (code = orr_link_open(host, device, &(orr_link_options){.rules = old->link}, &l, err)))
        return code;
    code = orr_link_write(l, output, err);
    if (!code)
        warn_cycles(c, host, orr_link_counts_of(l));
    orr_link_close(l);
    if (code)
        return code;
    cli_note(c, "INFO:root:Linking process successful. Output file is available at %s.\n", output);
    cli_note(c, "INFO:root:Please run the chakra_converter for further postprocessing.\n");
    return ORR_OK;
}

const cli_command cli_old_chakra_trace_link = {
    .name = "chakra_trace_link",
    .summary = "make PyTorch's host and device traces one",
    .now = "orrery link --compat",
    .options = trace_link_options,
    .run = run_link,
};
