/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules as traces, traces as schedules, several schedules on one machine. */
#include "files.h"

#include <orrery/lab/goal_check.h>
#include <orrery/lab/goal_traces.h>
#include <orrery/run.h>

static orr_error err;

static orr_goal *parse(const char *text)
{
    orr_goal *g;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_OK(orr_goal_parse(bytes, "x.goal", NULL, &g, &err), &err);
    return g;
}

/* 1,400 + 700 + 900 ns: 1 us, then 400 + 700 = 1 us and 100, then 100 + 900 = 1 us.  d waits for
 * the start of c, so for what c waits for. */
TEST(test_goal_traces__each_operation_becomes_a_node)
{
    orr_goal *g = parse(
        "num_ranks 2\nrank 0 {\na: calc 1400\nb: calc 700\nc: calc 900\nd: send 8b to 1 tag 3\n"
        "b requires a\nc requires b\nd irequires c\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n");
    orr_set *s;
    CHECK_OK(orr_goal_traces(g, "x.goal", &s, &err), &err);
    CHECK_EQ_U(orr_set_rank_count(s), 2);
    const orr_columns *c = orr_trace_columns(orr_set_trace(s, orr_set_class_of(s, 0)));
    CHECK_EQ_U(c->count, 4);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_U(c->type[i], ORR_NODE_COMP);
        CHECK_EQ_U(c->duration_us[i], 1);
    }
    CHECK_EQ_U(c->type[3], ORR_NODE_COMM_SEND);
    CHECK_EQ(c->comm_dst[3], 1);
    CHECK_EQ(c->comm_tag[3], 3);
    CHECK_EQ(c->comm_size[3], 8);
    CHECK_EQ_U(c->data_first[4] - c->data_first[3], 1);
    CHECK_EQ_U(c->data_dep[c->data_first[3]], 1);
    c = orr_trace_columns(orr_set_trace(s, orr_set_class_of(s, 1)));
    CHECK_EQ_U(c->type[0], ORR_NODE_COMM_RECV);
    CHECK_EQ(c->comm_src[0], 0);
    orr_set_close(s);
    orr_goal_free(g);
}

TEST(test_goal_traces__a_rank_without_operations_has_a_node)
{
    orr_set *s;
    orr_goal *g = parse("num_ranks 2\nrank 0 {\ncalc 5\n}\nrank 1 {\n}\n");
    CHECK_OK(orr_goal_traces(g, "x.goal", &s, &err), &err);
    const orr_columns *c = orr_trace_columns(orr_set_trace(s, orr_set_class_of(s, 1)));
    CHECK_EQ_U(c->count, 1);
    CHECK_EQ_U(c->type[0], ORR_NODE_COMP);
    CHECK_EQ_U(c->duration_us[0], 0);
    orr_set_close(s);
    orr_goal_free(g);
}

TEST(test_goal_traces__wildcards_and_strangers_are_refused)
{
    orr_set *s;
    orr_goal *g = parse("num_ranks 1\nrank 0 {\nrecv 8b from -1\n}\n");
    CHECK_CODE(orr_goal_traces(g, "x.goal", &s, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "rank 0: operation 1 (recv 8b from -1 tag 0): traces have no wildcards");
    orr_goal_free(g);
    g = parse("num_ranks 1\nrank 0 {\nsend 8b to 4\n}\n");
    CHECK_CODE(orr_goal_traces(g, "x.goal", &s, &err), ORR_EINPUT, &err);
    orr_goal_free(g);
}

static orr_set *all_reduce_of_four(void)
{
    const orr_attr attrs[] = {
        {.name = orr_str_of("comm_type"), .kind = ORR_VALUE_INT64, .value.i = ORR_COLL_ALL_REDUCE},
        {.name = orr_str_of("comm_size"), .kind = ORR_VALUE_INT64, .value.i = 65536}};
    const uint64_t first[] = {0};
    orr_set *s;
    orr_trace *t;
    CHECK_OK(orr_set_create(&s, &err), &err);
    CHECK_OK(orr_trace_create(&(orr_meta){.version = orr_str_of("0.0.4")}, &t, &err), &err);
    CHECK_OK(
        orr_trace_append(
            t,
            &(orr_draft){.id = 0, .name = orr_str_of("c"), .type = ORR_NODE_COMP, .duration_us = 5},
            &err),
        &err);
    CHECK_OK(orr_trace_append(t,
                              &(orr_draft){.id = 1,
                                           .name = orr_str_of("r"),
                                           .type = ORR_NODE_COMM_COLL,
                                           .data_deps = first,
                                           .data_count = 1,
                                           .attrs = attrs,
                                           .attr_count = 2},
                              &err),
             &err);
    CHECK_OK(orr_trace_seal(t, &err), &err);
    CHECK_OK(orr_set_add(s, t, &err), &err);
    for (int r = 1; r < 4; r++)
        CHECK_OK(orr_set_add_rank(s, 0, 0, &err), &err);
    return s;
}

/* A ring of four: 6 steps of 16 KiB, each o + L + 16383 G + o at L 3700, o 200, G 0.04: 200 + 3700
 * + 655 + 200 = 4755 ns, behind 5 us of compute. */
TEST(test_goal_traces__a_run_gives_the_messages_of_its_collectives)
{
    orr_set *set = all_reduce_of_four();
    const orr_run_config config = {.size = sizeof config, .set = set, .records = ORR_RUN_SCHEDULE};
    orr_run *planned;
    orr_goal *g;
    CHECK_OK(orr_run_create(&config, &planned, &err), &err);
    CHECK_OK(orr_run_to_end(planned, &err), &err);
    CHECK_OK(orr_run_goal(planned, &g, &err), &err);
    orr_run_destroy(planned);
    orr_set_close(set);
    const orr_goal_totals t = orr_goal_count(g);
    CHECK_EQ_U(t.sends, 4 * 6);
    CHECK_EQ_U(t.recvs, 4 * 6);
    CHECK_EQ_U(t.bytes_sent, 4 * 6 * 16384);
    CHECK_EQ_U(t.calc_ns, 4 * 5000);
    const orr_loggops_model model = {.L = 3700, .o = 200, .g = 5, .G = 0.04, .S = 65535};
    const orr_run_config under = {.size = sizeof under, .schedule = g, .loggops = &model};
    orr_run *run;
    CHECK_OK(orr_run_create(&under, &run, &err), &err);
    CHECK_OK(orr_run_to_end(run, &err), &err);
    for (uint32_t r = 0; r < 4; r++)
        CHECK_EQ_U(orr_run_rank_at(run, r)->finished_at, (5000 + 6 * 4755) * 1000);
    orr_run_destroy(run);
    orr_goal_free(g);
}

/* ---- several jobs */

static orr_goal *ring(const char *text)
{
    return parse(text);
}

static void check_hosts(const orr_goal_machine *m, const uint32_t wanted[5])
{
    orr_goal *a = ring("num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n");
    orr_goal *b =
        ring("num_ranks 3\nrank 0 {\nsend 2b to 2\n}\nrank 1 {\n}\nrank 2 {\nrecv 2b from 0\n}\n");
    const orr_goal *const jobs[] = {a, b};
    uint32_t host[5];
    orr_goal *g;
    CHECK_OK(orr_goal_combine(jobs, 2, m, host, &g, &err), &err);
    for (int i = 0; i < 5; i++)
        CHECK_EQ_U(host[i], wanted[i]);
    CHECK_EQ_U(orr_goal_get(g, host[0], 0).peer, host[1]);
    CHECK_EQ_U(orr_goal_get(g, host[1], 0).peer, host[0]);
    CHECK_EQ_U(orr_goal_get(g, host[2], 0).peer, host[4]);
    CHECK_EQ_U(orr_goal_ops(g, host[3]), 0);
    orr_goal_free(g);
    orr_goal_free(a);
    orr_goal_free(b);
}

TEST(test_goal_combine__ranks_go_where_the_placement_says)
{
    check_hosts(&(orr_goal_machine){.hosts = 0}, (uint32_t[]){0, 1, 2, 3, 4});
    check_hosts(&(orr_goal_machine){.placement = ORR_GOAL_SPREAD, .hosts = 9},
                (uint32_t[]){0, 2, 1, 3, 4});
    write_file("place.json", "[[7,0],[3,4,8]]", 15);
    check_hosts(
        &(orr_goal_machine){.placement = ORR_GOAL_FROM_FILE, .hosts = 9, .file = "place.json"},
        (uint32_t[]){7, 0, 3, 4, 8});
}

TEST(test_goal_combine__a_random_placement_depends_on_its_seed_alone)
{
    orr_goal *a = ring("num_ranks 2\nrank 0 {\n}\nrank 1 {\n}\n");
    const orr_goal *const jobs[] = {a, a, a};
    uint32_t host[3][6];
    for (uint64_t i = 0; i < 3; i++) {
        const orr_goal_machine m = {.placement = ORR_GOAL_RANDOM, .hosts = 1000, .seed = i / 2};
        orr_goal *g;
        CHECK_OK(orr_goal_combine(jobs, 3, &m, host[i], &g, &err), &err);
        orr_goal_free(g);
    }
    CHECK_BYTES(host[0], host[1], sizeof host[0]);
    CHECK(memcmp(host[0], host[2], sizeof host[0]) != 0);
    orr_goal_free(a);
}

static void bad_place(const char *text, uint32_t hosts, const char *words)
{
    orr_goal *a = ring("num_ranks 2\nrank 0 {\n}\nrank 1 {\n}\n"), *g;
    const orr_goal *const jobs[] = {a, a};
    write_file("place.json", text, strlen(text));
    const orr_goal_machine m = {
        .placement = ORR_GOAL_FROM_FILE, .hosts = hosts, .file = "place.json"};
    CHECK_CODE(orr_goal_combine(jobs, 2, &m, NULL, &g, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, words);
    orr_goal_free(a);
}

TEST(test_goal_combine__placements_that_cannot_be_are_errors)
{
    bad_place("[[0,1],[2,3]]", 3, "4 ranks for 3 hosts");
    bad_place("[[0,1],[2,1]]", 0, "host 1 has two ranks: of job 1 and of job 2");
    bad_place("[[0,1],[2,9]]", 0, "job 2, rank 1: the machine has no host 9");
    bad_place("[[0,1]]", 0, "hosts for 1 of 2 jobs");
    bad_place("[[0,1],[2]]", 0, "1 hosts for job 2, which has 2 ranks");
    bad_place("[[0,1],3]", 0, "expected an array of hosts for each of 2 jobs");
    bad_place("{}", 0, "expected an array with an array of hosts for each job");
}

static void check_finding(const char *text, orr_goal_finding_kind kind, const char *words)
{
    orr_goal *g = parse(text);
    orr_goal_report r;
    char line[300];
    CHECK_OK(orr_goal_check(g, &r, &err), &err);
    CHECK_EQ_U(r.finding_count, 1);
    CHECK_EQ_U(r.counts[kind], 1);
    CHECK_TEXT(orr_goal_finding_text(g, &r.findings[0], line, sizeof line), words);
    orr_goal_free(g);
}

#define TWO(first, second) "num_ranks 2\nrank 0 {\n" first "\n}\nrank 1 {\n" second "\n}\n"

TEST(test_goal_check__finds_what_cannot_come_to_an_end)
{
    check_finding(TWO("send 8b to 5", ""), ORR_GOAL_NO_SUCH_RANK,
                  "rank 0: operation 1 (send 8b to 5 tag 0): there are only 2 ranks");
    check_finding(TWO("a: calc 1\nb: calc 2\nb requires a\na irequires b\nc: calc 3", ""),
                  ORR_GOAL_CYCLE,
                  "rank 0: operation 1 (calc 1): is in a dependency cycle or waits for one "
                  "(2 of this rank's operations)");
    check_finding(TWO("send 8b to 1\nsend 8b to 1", "recv 8b from 0"), ORR_GOAL_NOT_RECEIVED,
                  "rank 0: operation 1 (send 8b to 1 tag 0): 1 more sent than received");
    check_finding(TWO("", "recv 8b from 0 tag 3"), ORR_GOAL_NOT_SENT,
                  "rank 1: operation 1 (recv 8b from 0 tag 3): 1 more received than sent");
    check_finding(TWO("send 8b to 1 tag 3", "recv 8b from -1\nrecv 8b from 0 tag 3"),
                  ORR_GOAL_NOT_SENT,
                  "rank 1: operation 2 (recv 8b from 0 tag 3): 1 more received than sent");
}

TEST(test_goal_check__finds_nothing_in_a_good_schedule)
{
    orr_goal *g = parse(
        TWO("a: send 8b to 1 tag 3\nb: recv 4b from 1", "recv 8b from -1 tag -1\nsend 4b to 0"));
    orr_goal_report r;
    CHECK_OK(orr_goal_check(g, &r, &err), &err);
    CHECK_EQ_U(r.finding_count, 0);
    orr_goal_free(g);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_goal_traces__each_operation_becomes_a_node),
        RUN(test_goal_traces__a_rank_without_operations_has_a_node),
        RUN(test_goal_traces__wildcards_and_strangers_are_refused),
        RUN(test_goal_traces__a_run_gives_the_messages_of_its_collectives),
        RUN(test_goal_combine__ranks_go_where_the_placement_says),
        RUN(test_goal_combine__a_random_placement_depends_on_its_seed_alone),
        RUN(test_goal_check__finds_what_cannot_come_to_an_end),
        RUN(test_goal_check__finds_nothing_in_a_good_schedule),
        RUN(test_goal_combine__placements_that_cannot_be_are_errors),
    };
    return RUN_ALL(tests);
}
