/* SPDX-License-Identifier: Apache-2.0 */
/* check_goal.c - orrery check of a GOAL schedule. */
#include "goal.h"
#include "json_out.h"

#include <orrery/lab/goal_check.h>

#include <inttypes.h>

static void print_json(const cli_context *c, const orr_goal *g, const orr_goal_report *r)
{
    char line[300];
    cli_json j;
    orr_json_writer *w = cli_json_open_tight(&j, "orrery-check-goal");
    orr_json_put_text(w, "input", c->args[0]);
    orr_json_put_u64(w, "ranks", orr_goal_ranks(g));
    cli_json_object(w, "counts");
    for (int k = 0; k < ORR_GOAL_FINDING_KINDS; k++)
        orr_json_put_u64(w, orr_goal_finding_name((orr_goal_finding_kind)k), r->counts[k]);
    orr_json_end_object(w);
    cli_json_array(w, "findings");
    for (size_t i = 0; i < r->finding_count; i++) {
        const orr_goal_finding *f = &r->findings[i];
        orr_json_begin_object(w);
        orr_json_put_text(w, "kind", orr_goal_finding_name(f->kind));
        orr_json_put_u64(w, "rank", f->rank);
        orr_json_put_u64(w, "operation", f->op + 1);
        orr_json_put_text(w, "text", orr_goal_finding_text(g, f, line, sizeof line));
        orr_json_end_object(w);
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
    printf("%s: %" PRIu32 " ranks, %" PRIu64 " sends, %" PRIu64 " receives, %" PRIu64
           " calculations: ",
           c->args[0], orr_goal_ranks(g), t.sends, t.recvs, t.calcs);
    if (all)
        printf("%" PRIu64 " findings\n", all);
    else
        printf("nothing wrong\n");
}

orr_code cli_check_goal(cli_context *c, orr_error *err)
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
