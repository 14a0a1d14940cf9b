/* SPDX-License-Identifier: Apache-2.0 */
/* old_chakra_timeline.c - chakra_timeline_visualizer by its old name.  It keeps a log, debug.log in
 * the current directory unless told otherwise, which is emptied first (chakra.md 9). */
#include "old.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/issue_log.h>
#include <orrery/lab/units.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 5000 };

static const cli_option timeline_options[] = {
    {"input_filename", 0, "FILE", "the log of issued nodes (CSV)", .required = true},
    {"output_filename", 0, "FILE", "where the timeline goes", .required = true},
    {"num_npus", 0, "N", "number of ranks", CLI_COUNT, 1, 1048576, .required = true},
    {"npu_frequency", 0, "MHZ", "clock of the NPUs, in MHz or as 1.5GHz", .required = true},
    {"log_filename", 0, "FILE", "where the log goes", .fallback = "debug.log"},
    {0},
};

/* A number of MHz, or with a unit, as the user guide has it.  The file divides by whole MHz. */
static orr_code read_mhz(const char *text, uint32_t *out, orr_error *err)
{
    enum { MOST_MHZ = 1048576, HZ = 1000000 };
    const bool is_plain = *text && strspn(text, "0123456789") == strlen(text);
    char with_unit[64];
    uint64_t hz = 0;
    const int n = snprintf(with_unit, sizeof with_unit, "%s%s", text, is_plain ? "MHz" : "");
    if (n < 0 || (size_t)n >= sizeof with_unit || orr_frequency_parse(with_unit, &hz, err) ||
        hz < HZ || hz / HZ > MOST_MHZ || hz % HZ)
        return cli_misuse(
            err,
            "--npu_frequency '%s' is not a whole number of MHz from 1 to %d, such as 1500 or 1.5GHz",
            text, MOST_MHZ);
    *out = (uint32_t)(hz / HZ);
    return ORR_OK;
}

static orr_code make_old_timeline(const cli_context *c, uint32_t mhz, orr_error *err)
{
    const uint32_t ranks = (uint32_t)cli_count(c, "num_npus");
    const orr_compat *old;
    orr_issue_log *log;
    orr_code code = orr_compat_find(ORR_RULES_ISSUE_LOG, NULL, &old, err);
    if (code)
        return code;
    const orr_issue_log_options opt = {.ranks = ranks, .rules = old->issue_log};
    code = orr_issue_log_read(cli_text(c, "input_filename"), &opt, &log, err);
    if (code)
        return code;
    code = orr_issue_log_write_old(log, ranks, mhz, cli_text(c, "output_filename"), err);
    if (!code && orr_issue_log_open_count(log))
        cli_note(c, "%s: %zu without a callback: left out, as the old program does\n",
                 cli_text(c, "input_filename"), orr_issue_log_open_count(log));
    orr_issue_log_free(log);
    return code;
}

static orr_code log_failed(const char *path, orr_error *err)
{
    const orr_where at = orr_where_line(path, 0, 0);
    return orr_fail(err, ORR_EIO, &at, "cannot write the log: %s", strerror(errno));
}

static orr_code run_timeline(cli_context *c, orr_error *err)
{
    const char *path = cli_text(c, "log_filename");
    char words[LINE];
    uint32_t mhz = 0;
    if (read_mhz(cli_text(c, "npu_frequency"), &mhz, err))
        return ORR_EUSAGE;
    FILE *log = fopen(path, "w");
    if (!log)
        return log_failed(path, err);
    snprintf(words, sizeof words, "%s: %s to %s", c->command->name, cli_text(c, "input_filename"),
             cli_text(c, "output_filename"));
    cli_old_log_line(log, "DEBUG", words);
    const orr_code code = make_old_timeline(c, mhz, err);
    if (code)
        cli_old_log_line(log, "ERROR", orr_error_text(err, words, sizeof words));
    const bool is_written = fclose(log) == 0;
    return code || is_written ? code : log_failed(path, err);
}

const cli_command cli_old_chakra_timeline = {
    .name = "chakra_timeline_visualizer",
    .summary = "turn a log of issued nodes into a timeline, in milliseconds",
    .now = "orrery view timeline",
    .options = timeline_options,
    .run = run_timeline,
};
