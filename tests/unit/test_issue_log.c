/* SPDX-License-Identifier: Apache-2.0 */
/* test_issue_log.c - logs of issued nodes: what is read, in our way and in the old one, and when
 * things happened. */
#include "check.h"
#include "rooms.h"

#include <orrery/lab/issue_log.h>

static orr_error err;

static orr_code parse(const char *text, bool is_compat, uint32_t ranks, orr_issue_log **out)
{
    const orr_issue_log_options opt = {
        .ranks = ranks,
        .rules = is_compat ? program_of(ORR_RULES_ISSUE_LOG, NULL)->issue_log : NULL};
    return orr_issue_log_parse((orr_span){(const uint8_t *)text, strlen(text)}, "log.csv", &opt,
                               out, &err);
}

static orr_timeline *timeline_of(const char *text, uint64_t hz)
{
    orr_issue_log *log;
    orr_timeline *t;
    CHECK_OK(parse(text, false, 0, &log), &err);
    CHECK_OK(orr_issue_log_timeline(log, hz, &t, &err), &err);
    orr_issue_log_free(log);
    return t;
}

static void check_refused(
    const char *text, bool is_compat, uint32_t line, uint32_t column, const char *words)
{
    orr_issue_log *log;
    CHECK_CODE(parse(text, is_compat, 4, &log), ORR_EINPUT, &err);
    CHECK(!log);
    CHECK_EQ_U(err.where.line, line);
    CHECK_EQ_U(err.where.column, column);
    CHECK_SAYS(&err, words);
}

TEST(test_issue_log__cycles_become_picoseconds_rounded_once)
{
    /* At 1.5 GHz a cycle is 666.66.. ps: 1 -> 667, 10 -> 6666.67 -> 6667, 3 -> 2000. */
    orr_timeline *t = timeline_of("issue,a=0,b=1,c=1,d=COMP_NODE\ncallback,a=0,b=10,c=1,d=x\n"
                                  "issue,a=0,b=3,c=2,d=COMP_NODE\ncallback,a=0,b=3,c=2,d=x\n",
                                  1500000000);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->span_count, 2);
    CHECK_EQ_PS(p->spans[0].start, 667);
    CHECK_EQ_PS(p->spans[0].end, 6667);
    CHECK_EQ_PS(p->spans[1].start, 2000);
    CHECK_EQ_PS(p->spans[1].end, 2000);
    orr_timeline_destroy(t);
}

TEST(test_issue_log__a_track_a_rank_and_kind_in_order)
{
    orr_timeline *t = timeline_of(
        "issue,a=3,b=0,c=1,d=COMM_SEND_NODE\nissue,a=1,b=0,c=1,d=aten::mm\n"
        "issue,a=1,b=0,c=2,d=MEM_LOAD_NODE_LOCAL_MEMORY\nissue,a=3,b=0,c=2,d=COMP_NODE\n",
        1000000000);
    const orr_timeline_parts *p = orr_timeline_view(t);
    static const char *const names[] = {"other", "local memory", "compute", "communication"};
    static const uint32_t ranks[] = {1, 1, 3, 3};
    CHECK_EQ_U(p->track_count, 4);
    for (uint32_t k = 0; k < 4; k++) {
        CHECK_TEXT(orr_timeline_text(t, p->tracks[k].name).ptr, names[k]);
        CHECK_EQ_U(p->tracks[k].rank, ranks[k]);
    }
    CHECK_EQ(p->spans[0].kind, ORR_SPAN_SEND);
    orr_timeline_destroy(t);
}

TEST(test_issue_log__simulator_lines_keep_whole_names_and_types)
{
    orr_timeline *t =
        timeline_of("[2026-01-01 00:00:00.000] [workload] [debug] issue,sys->id=0, tick=5, "
                    "node->id=7, node->name=f(x, y=2), node->type=7\r\n"
                    "noise with an issue in it\n"
                    "callback,sys->id=0, tick=8, node->id=7, node->name=f, node->type=7\n",
                    1000000000);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK_EQ_U(p->span_count, 1);
    CHECK_TEXT(orr_timeline_text(t, p->spans[0].name).ptr, "f(x, y=2)");
    CHECK_EQ(p->spans[0].kind, ORR_SPAN_COLLECTIVE);
    CHECK_EQ_U(p->spans[0].id, 7);
    CHECK_EQ_PS(p->spans[0].start, 5000);
    CHECK_EQ_PS(p->spans[0].end, 8000);
    orr_timeline_destroy(t);
}

TEST(test_issue_log__what_did_not_come_back_is_open_until_the_last_cycle)
{
    orr_timeline *t =
        timeline_of("issue,a=0,b=2,c=1,d=COMP_NODE\nissue,a=0,b=9,c=2,d=COMP_NODE\n", 1000000000);
    const orr_timeline_parts *p = orr_timeline_view(t);
    CHECK(p->spans[0].is_open && p->spans[1].is_open);
    CHECK_EQ_PS(p->spans[0].end, 9000);
    orr_timeline_destroy(t);
}

TEST(test_issue_log__the_old_way_drops_it_and_has_no_timeline)
{
    orr_issue_log *log;
    orr_timeline *t;
    CHECK_OK(parse("issue,a=0,b=2,c=1,d=COMP_NODE\nissue,a=0,b=9,c=1,d=COMP_NODE\n"
                   "callback,a=0,b=1,c=1,d=COMP_NODE\n",
                   true, 1, &log),
             &err);
    CHECK_EQ_U(orr_issue_log_count(log), 1); /* the second issue took the place of the first */
    CHECK_EQ_U(orr_issue_log_open_count(log), 1);
    CHECK_CODE(orr_issue_log_timeline(log, 1000, &t, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_issue_log_write_old(log, 1, 0, "never.json", &err), ORR_EUSAGE, &err);
    orr_issue_log_free(log);
}

TEST(test_issue_log__errors_have_line_and_column)
{
    check_refused("", false, 1, 1, "not a log of events");
    check_refused("issue,a=0,b=1", false, 1, 14, "ends before the node");
    check_refused("\nissue,a=0,b=x,c=1,d=n", false, 2, 13, "cycle \"x\"");
    check_refused("issue,a=4,b=1,c=1,d=n", false, 1, 9, "from 0 to 3");
    check_refused("issue,a=0,1,c=1,d=n", false, 1, 11, "X=cycle");
    check_refused("issue,a=0,b=-1,c=1,d=n", false, 1, 13, "cycle \"-1\"");
    check_refused("issue,a=0,b=1,c=1,d=\xff", false, 1, 21, "UTF-8");
    check_refused("issue,a=0,b=1,c=1,d=n\nissue,a=0,b=2,c=1,d=n", false, 2, 17, "in line 1");
    check_refused("issue,a=0,b=5,c=1,d=n\ncallback,a=0,b=4,c=1,d=n", false, 2, 16, "before it was");
    check_refused("callback,a=0,b=4,c=1,d=n", false, 1, 20, "was not issued");
    check_refused("tissue,a=0,b=1,c=2,d=COMP_NODE", true, 1, 1, "neither issue nor callback");
    check_refused("issue,a=0,b=1,c=1,d=aten::mm\ncallback,a=0,b=4,c=1,d=COMP_NODE", true, 2, 20,
                  "does not say what it is");
}

TEST(test_issue_log__a_node_comes_back_once)
{
    check_refused(
        "issue,a=0,b=1,c=1,d=COMP_NODE\ncallback,a=0,b=4,c=1,d=n\ncallback,a=0,b=5,c=1,d=n", true,
        3, 20, "was not issued");
}

TEST(test_issue_log__times_beyond_106_days_are_refused)
{
    orr_issue_log *log;
    orr_timeline *t;
    CHECK_OK(parse("issue,a=0,b=4503599627370496,c=1,d=n\n", false, 0, &log), &err);
    CHECK_CODE(orr_issue_log_timeline(log, 1000, &t, &err), ORR_EINPUT, &err);
    CHECK_EQ_U(err.where.line, 1);
    CHECK_CODE(orr_issue_log_timeline(log, 0, &t, &err), ORR_EUSAGE, &err);
    orr_issue_log_free(log);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_issue_log__cycles_become_picoseconds_rounded_once),
        RUN(test_issue_log__a_track_a_rank_and_kind_in_order),
        RUN(test_issue_log__simulator_lines_keep_whole_names_and_types),
        RUN(test_issue_log__what_did_not_come_back_is_open_until_the_last_cycle),
        RUN(test_issue_log__the_old_way_drops_it_and_has_no_timeline),
        RUN(test_issue_log__errors_have_line_and_column),
        RUN(test_issue_log__a_node_comes_back_once),
        RUN(test_issue_log__times_beyond_106_days_are_refused),
    };
    return RUN_ALL(tests);
}
