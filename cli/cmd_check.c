/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_check.c - orrery check: find errors in traces and, with --fix, write a repaired copy.
 *
 * The report always goes to stdout.  Exit: 0 no errors, 1 errors in traces that could be read, 3 a
 * file that could not be read as a trace. */
#include <orrery/check.h>
#include <orrery/lab/goal_check.h>
#include <orrery/version.h>

#include "command.h"

#include "base/text/text.h"

#include <inttypes.h>

/* ---- orrery check of a GOAL schedule. ---- */

static void print_json(const cli_context *c, const orr_goal *g, const orr_goal_report *r)
{
    char line[300];
    cli_json j;
    orr_json_writer *w = cli_json_open_tight(&j, "orrery-check-goal");
    orr_json_put_fields(w, ORR_T("input", c->args[0]), ORR_U("ranks", orr_goal_ranks(g)));
    orr_json_put_object(w, "counts");
    for (int k = 0; k < ORR_GOAL_FINDING_KINDS; k++)
        orr_json_put_u64(w, orr_goal_finding_name((orr_goal_finding_kind)k), r->counts[k]);
    orr_json_end_object(w);
    orr_json_put_array(w, "findings");
    for (size_t i = 0; i < r->finding_count; i++) {
        const orr_goal_finding *f = &r->findings[i];
        orr_json_put_row(w, ORR_T("kind", orr_goal_finding_name(f->kind)), ORR_U("rank", f->rank),
                         ORR_U("operation", f->op + 1),
                         ORR_T("text", orr_goal_finding_text(g, f, line, sizeof line)));
    }
    orr_json_end_array(w);
    cli_json_close(&j);
}

static void print_text(const cli_context *c,
                       const orr_goal *g,
                       const orr_goal_report *r,
                       uint64_t all)
{
    const orr_goal_totals t = orr_goal_count(g);
    char line[300];
    for (size_t i = 0; i < r->finding_count; i++)
        printf("%s: %s\n", c->args[0],
               orr_goal_finding_text(g, &r->findings[i], line, sizeof line));
    if (all > r->finding_count)
        printf("... and %" PRIu64 " more\n", all - r->finding_count);
    const uint32_t ranks = orr_goal_ranks(g);
    printf("%s: %" PRIu32 " rank%s, %" PRIu64 " send%s, %" PRIu64 " receive%s, %" PRIu64
           " calculation%s: ",
           c->args[0], ranks, orr__plural(ranks), t.sends, orr__plural(t.sends), t.recvs,
           orr__plural(t.recvs), t.calcs, orr__plural(t.calcs));
    if (all)
        printf("%" PRIu64 " finding%s\n", all, orr__plural(all));
    else
        printf("nothing wrong\n");
}

/* orrery check of a schedule. */
static orr_code cli_check_goal(cli_context *c, orr_error *err)
{
    orr_goal *g;
    orr_goal_report r;
    orr_code code = cli_goal_read(c, c->args[0], &g, err);
    if (code)
        return code;
    code = orr_goal_check(g, &r, err);
    uint64_t all = 0;
    for (int k = 0; !code && k < ORR_GOAL_FINDING_KINDS; k++)
        all += r.counts[k];
    if (!code && cli_flag(c, "json"))
        print_json(c, g, &r);
    else if (!code)
        print_text(c, g, &r, all);
    if (!code && all)
        cli_answer_no(c);
    orr_goal_free(g);
    return code;
}

/* ---- of traces ---- */

static const cli_option options[] = {
    {"fix", 0, NULL, "write a repaired copy to OUT and check it"},
    {"output", 'o', "OUT", "output of --fix: a file, a prefix of files, or a .orr",
     .kind = CLI_OUTPUT},
    {"strict", 0, NULL, "warnings count as errors"},
    {"lenient", 0, NULL, "accept unknown node types"},
    {"limit", 0, "N", "show at most N findings per kind", .kind = CLI_COUNT, .min = 1,
     .max = UINT32_MAX, .fallback = "10"},
    {"threads", 0, "N", "threads; 0: one per core", .kind = CLI_COUNT, .max = 1024,
     .fallback = "0"},
    {"json", 0, NULL, "print one JSON object"},
    {0},
};

static const cli_argument arguments[] = {
    {"TRACES", "a trace file, a prefix, a directory, a .orr, or a GOAL schedule", CLI_ONCE},
    {0},
};

static const cli_example examples[] = {
    {"All ranks of a job:", "orrery check step/trace", 0},
    {"For a script:", "orrery check --strict --json step/trace", 0},
    {"One damaged rank:", "orrery check broken.et", 1},
    {"Repair it:", "orrery check --fix -o repaired.et broken.et", 0},
    {0},
};

static orr_code print_report(const cli_context *c,
                             const orr_check_report *r,
                             orr_check_style *style,
                             orr_error *err)
{
    orr_str text;
    style->is_colored = cli_is_colored(c, stdout);
    style->is_brief = c->quiet;
    const orr_code code = cli_flag(c, "json") ? orr_check_json(r, style, &text, err)
                                              : orr_check_text(r, style, &text, err);
    if (!code)
        cli_print(text);
    return code;
}

/* Derive the exit status from the report. */
static orr_code judge(cli_context *c, const orr_check_report *r, const char *path, orr_error *err)
{
    if (r->read_status) {
        const orr_where where = orr_where_byte(path, ORR_NO_BYTE);
        const uint64_t bad = r->count[ORR_CHECK_DAMAGED] + r->count[ORR_CHECK_UNREADABLE];
        return orr_fail(err, r->read_status, &where, "%llu of %u ranks cannot be read",
                        (unsigned long long)bad, r->rank_count);
    }
    if (r->errors || (r->warnings && cli_flag(c, "strict")))
        cli_answer_no(c);
    return ORR_OK;
}

static orr_code check_path(cli_context *c,
                           const char *path,
                           const orr_set_options *read,
                           orr_check_style *style,
                           orr_error *err)
{
    const orr_check_options opt = {.size = sizeof opt,
                                   .limit = (uint32_t)cli_count(c, "limit"),
                                   .threads = (unsigned)cli_count(c, "threads")};
    orr_set *set;
    orr_check_report *report = NULL;
    orr_code code = orr_set_open(path, read, &set, err);
    if (code)
        return code;
    code = orr_check_set(set, &opt, &report, err);
    if (!code)
        code = print_report(c, report, style, err);
    if (!code)
        code = judge(c, report, path, err);
    orr_check_report_destroy(report);
    orr_set_close(set);
    return code;
}

static orr_code check_run(cli_context *c, orr_error *err)
{
    const char *path = c->args[0], *output = cli_text(c, "output");
    const bool is_fix = cli_flag(c, "fix");
    const orr_check_options opt = {.size = sizeof opt, .limit = (uint32_t)cli_count(c, "limit")};
    const orr_read_options reading = {
        .size = sizeof reading, .leniency = cli_flag(c, "lenient") ? ORR_KEEP_UNKNOWN : ORR_STRICT};
    const orr_set_options read = {.size = sizeof read,
                                  .read = &reading,
                                  .threads = (unsigned)cli_count(c, "threads"),
                                  .keep_going = true};
    orr_check_style style = {.size = sizeof style,
                             .program = "orrery " ORR_VERSION,
                             .input = path,
                             .is_strict = cli_flag(c, "strict")};
    orr_check_report *changes = NULL;
    if (is_fix && !output)
        return cli_misuse(err, "--fix requires --output");
    if (output && !is_fix)
        return cli_misuse(err, "--output requires --fix");
    if (!is_fix && cli_is_goal(path))
        return cli_check_goal(c, err);
    if (!is_fix)
        return check_path(c, path, &read, &style, err);
    orr_code code = orr_check_fix(path, output, &read, &opt, &changes, err);
    if (!code) {
        style.changes = changes;
        style.output = output;
        code = check_path(c, output, &read, &style, err);
    }
    orr_check_report_destroy(changes);
    return code;
}

const cli_command cli_cmd_check = {
    .name = "check",
    .in_place = "",
    .summary = "find errors in traces and repair them where possible",
    .description =
        "Reads traces and reports damage, cycles, missing parents, duplicate ids and bad attributes, each "
        "with file, byte and node; across ranks, mismatched collectives and messages.  In a GOAL schedule: ranks that do not exist, "
        "cycles, unmatched sends and receives.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .see_also = "orrery-convert(1), orrery-gen(1), orrery-info(1)",
    .run = check_run,
};
