/* SPDX-License-Identifier: Apache-2.0 */
/* convert_goal.c - orrery convert goal: GOAL schedules from text to binary and back; and the old names txt2bin and
 * bin2txt. */
#include "base/text/text.h"
#include "convert.h"
#include "goal.h"
#include "json_out.h"

#include <orrery/lab/goal_traces.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* By the ending of a name: .bin is binary. */
static orr_goal_form form_of(const char *path)
{
    const bool is_binary = orr_text_ends(path, ".bin") || orr_text_ends(path, ".bin.gz") ||
                           orr_text_ends(path, ".bin.zst");
    return is_binary ? ORR_GOAL_BINARY : ORR_GOAL_TEXT;
}

static void remark(const cli_context *c, const char *path, const orr_goal_remarks *r)
{
    if (r->wrapped)
        cli_note(
            c, "%s:%" PRIu32 ": number too large for its field, truncated (%" PRIu64 " in total)\n",
            path, r->first_wrapped, r->wrapped);
    if (r->doubled)
        cli_note(c,
                 "%s:%" PRIu32 ": duplicate label; the first definition counts (%" PRIu64
                 " in total)\n",
                 path, r->first_doubled, r->doubled);
    if (r->ignored_from_line)
        cli_note(c, "%s:%" PRIu32 ": text after the last rank is ignored\n", path,
                 r->ignored_from_line);
}

orr_code cli_goal_read(const cli_context *c, const char *path, orr_goal **out, orr_error *err)
{
    orr_goal_remarks r;
    const orr_code code = orr_goal_read(path, &r, out, err);
    if (!code)
        remark(c, path, &r);
    return code;
}

/* ---- orrery convert goal */

static void report_json(const orr_goal *g, const char *path, const char *form)
{
    const orr_goal_totals t = orr_goal_count(g);
    cli_json j;
    orr_json_writer *w = cli_json_open_tight(&j, "orrery-convert-goal");
    orr_json_put_text(w, "output", path);
    orr_json_put_text(w, "form", form);
    orr_json_put_u64(w, "ranks", orr_goal_ranks(g));
    orr_json_put_u64(w, "sends", t.sends);
    orr_json_put_u64(w, "receives", t.recvs);
    orr_json_put_u64(w, "calculations", t.calcs);
    orr_json_put_u64(w, "dependencies", t.edges);
    orr_json_put_u64(w, "sent_bytes", t.bytes_sent);
    orr_json_put_u64(w, "cpus", t.cpus);
    orr_json_put_u64(w, "nics", t.nics);
    cli_json_close(&j);
}

static void report(const cli_context *c, const orr_goal *g, const char *path, orr_goal_form form)
{
    const orr_goal_totals t = orr_goal_count(g);
    const char *form_name = form == ORR_GOAL_BINARY ? "binary" : "text";
    if (cli_flag(c, "json")) {
        report_json(g, path, form_name);
        return;
    }
    cli_note(c,
             "%s: %s, %" PRIu32 " ranks, %" PRIu64 " sends, %" PRIu64 " receives, %" PRIu64
             " calculations, %" PRIu64 " dependencies\n",
             path, form_name, orr_goal_ranks(g), t.sends, t.recvs, t.calcs, t.edges);
}

static orr_goal_form form_wanted(const cli_context *c, const char *path)
{
    const char *form = cli_text(c, "form");
    if (form)
        return strcmp(form, "binary") == 0 ? ORR_GOAL_BINARY : ORR_GOAL_TEXT;
    return form_of(path);
}

static orr_code write_schedule(const cli_context *c,
                               const orr_goal *g,
                               const char *path,
                               orr_error *err)
{
    const orr_goal_form form = form_wanted(c, path);
    const orr_code code = orr_goal_write(g, path, form, err);
    if (!code)
        report(c, g, path, form);
    return code;
}

static orr_code write_traces(const cli_context *c,
                             const orr_goal *g,
                             const cli_target *to,
                             orr_error *err)
{
    orr_set *s;
    orr_code code = orr_goal_traces(g, c->args[1], &s, err);
    if (code)
        return orr_because(err, code, "%s", c->args[1]);
    code = cli_target_write(c, s, to, err);
    if (!code)
        cli_target_report(c, s, to);
    orr_set_close(s);
    return code;
}

/* Traces, by the ending of a name that is one of theirs. */
static bool is_for_traces(const cli_context *c, const cli_target *to)
{
    return !cli_given(c, "form") && to->form != CLI_FORM_PREFIX;
}

static orr_code goal_run(cli_context *c, orr_error *err)
{
    const char *path = cli_text(c, "output");
    const cli_target to = cli_target_of(path);
    orr_goal *g;
    orr_code code = is_for_traces(c, &to) ? cli_target_check(c, &to, err) : ORR_OK;
    if (code || (code = cli_goal_load(c, c->args[1], &g, err)))
        return code;
    code = is_for_traces(c, &to) ? write_traces(c, g, &to, err) : write_schedule(c, g, path, err);
    orr_goal_free(g);
    return code;
}

static const char *const goal_options[] = {"form", "system", "topology", "groups", "memory", NULL};

const cli_converter cli_convert_goal = {"goal", goal_options, .run = goal_run};
