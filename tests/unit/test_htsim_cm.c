/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include "models/network/packet/packet_files.h"

#include "models/network/packet/packet.h"

static orr_code parse(orr__htsim_cm *m, const char *text, orr_error *err)
{
    return orr__htsim_cm_parse(m, 8, (orr_span){(const uint8_t *)text, strlen(text)}, "x.cm", err);
}

TEST(test_htsim_cm__reads_flows_and_triggers)
{
    orr__htsim_cm m;
    orr_error err;
    CHECK_OK(parse(&m,
                   "# made by hand\nNodes 8\nConnections 4\nTriggers 2\nFailures 1\n\n"
                   "0->1 id 1 start 1.5e6 size 1000 send_done_trigger 9 prio 3\n"
                   "1->2 id 2 trigger 9 size 2000 recv_done_trigger 4\n"
                   "2->3 id 3 trigger 4 size 3000 msg 7 addon\n"
                   "# between lines, too\n"
                   "3->4 id 4 trigger 4 msg size 4000\n"
                   "trigger id 9 oneshot\ntrigger id 4 barrier count 1\n"
                   "failure switch_type AGG switch_id 3 link_id 2\n",
                   &err),
             &err);
    CHECK_EQ_U(m.nodes, 8);
    CHECK_EQ_U(m.flows.count, 4);
    const orr__flow_line *l = m.flows.lines;
    CHECK(l[0].src == 0 && l[0].dst == 1 && l[0].bytes == 1000 && l[0].start_s == 1.5e-6);
    CHECK(l[1].start_s < 0 && l[2].start_s < 0 && l[3].bytes == 4000);
    CHECK_EQ_U(m.flows.trigger_count, 2);
    const orr__trigger *t = m.flows.triggers; /* in the order in which they are met */
    CHECK(t[0].id == 9 && t[0].kind == ORR__TRIGGER_ONESHOT && t[0].targets == 1 && t[0].told == 1);
    CHECK(t[1].id == 4 && t[1].kind == ORR__TRIGGER_BARRIER && t[1].needs == 1 &&
          t[1].targets == 2);
    CHECK(m.flows.targets[t[1].first] == 2 && m.flows.targets[t[1].first + 1] == 3);
    CHECK(m.failure_count == 1 && m.failures[0].agg == 3 && m.failures[0].link == 2);
    orr__htsim_cm_fini(&m);
}

static void refuse(const char *text, const char *words)
{
    orr__htsim_cm m;
    orr_error err;
    CHECK_CODE(parse(&m, text, &err), ORR_EINPUT, &err);
    CHECK(m.flows.lines == NULL && m.failures == NULL);
    CHECK_SAYS(&err, words);
}

#define ONE "Nodes 8\nConnections 1\n"
#define TWO "Nodes 8\nConnections 2\nTriggers 1\n"

TEST(test_htsim_cm__errors_name_the_line)
{
    refuse("", "x.cm: the line Nodes is missing");
    refuse("Nodes 9\n", "x.cm:1:1: Nodes 9: the topology has 8 hosts");
    refuse("Nodes 8\nNodes 8\n", "x.cm:2:1: duplicate Nodes");
    refuse("Nodes\n8\n", "x.cm:1:1: the line ends; expected the number of nodes");
    refuse("Nodes 8 9\n", "x.cm:1:9: \"9\" is an extra word");
    refuse("0->1 start 0 size 1\n", "x.cm:1:1: \"0->1\" appears before Nodes");
    refuse(ONE, "x.cm:2:1: Connections 1, but there are 0");
    refuse(ONE "0->8 start 0 size 1\n", "x.cm:3:1: there is no host 8: hosts are 0 to 7");
    refuse("Nodes 4\nConnections 1\n0->5 start 0 size 1\n", "hosts are 0 to 3");
    refuse(ONE "0->0 start 0 size 1\n", "x.cm:3:1: \"0->0\" is a flow from a host to itself");
    refuse(ONE "0->x start 0 size 1\n", "x.cm:3:1: \"0->x\" is not a connection, as 0->1");
    refuse(ONE "0->1 size 1\n", "x.cm:3:1: this flow has neither start nor trigger");
    refuse(ONE "0->1 start 0 trigger 1 size 1\n", "x.cm:3:1: this flow has both start and trigger");
    refuse(ONE "0->1 start 0\n", "x.cm:3:1: this flow has no size: it would never end");
    refuse(ONE "0->1 start 0 size 0\n", "x.cm:3:19: 0 is out of range");
    refuse(ONE "0->1 start -1 size 1\n", "x.cm:3:12: -1 is out of range");
    refuse(ONE "0->1 id 0 start 0 size 1\n", "x.cm:3:9: 0 is out of range: the id of a flow is 1");
    refuse(ONE "0->1 start 0 size\n", "x.cm:3:14: the line ends; expected a number of bytes");
    refuse(ONE "0->1 start\n", "x.cm:3:6: \"start\" stands at the end of the line");
    refuse(ONE "0->1 start 0 size 1 colour 3\n",
           "x.cm:3:21: \"colour\" is not a keyword of a connection");
    refuse(ONE "0->1 trigger 1 size 1\n", "x.cm:3:1: trigger 1 is used but not defined");
    refuse(ONE "hello\n", "x.cm:3:1: \"hello\" does not begin a line of a connection matrix");
    refuse(ONE "Connections 1\n", "this number was already given in line 2");
    refuse("Nodes 8\nTriggers 1\ntrigger oneshot\n", "x.cm:3:1: a trigger without an id");
    refuse("Nodes 8\nTriggers 1\ntrigger id 1\n", "trigger 1 is neither oneshot nor multishot");
    refuse("Nodes 8\nTriggers 1\ntrigger id 1 barrier\n", "a barrier needs a count above 0");
    refuse("Nodes 8\nTriggers 1\ntrigger id 1 oneshot barrier\n",
           "is a second kind of this trigger");
    refuse("Nodes 8\nTriggers 1\ntrigger id 1 twice\n", "\"twice\" is not id, count, oneshot");
    refuse("Nodes 8\nTriggers 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot\n",
           "x.cm:4:1: duplicate trigger 1");
    refuse("Nodes 8\nTriggers 2\ntrigger id 1 oneshot\n", "x.cm:2:1: Triggers 2, but there are 1");
    refuse(TWO "0->1 start 0 size 1 send_done_trigger 1\n1->2 start 0 size 1 send_done_trigger 1\n"
               "trigger id 1 oneshot\n",
           "x.cm:6:1: trigger 1 is a oneshot, but 2 flows fire it");
    refuse(TWO "0->1 start 0 size 1 send_done_trigger 1\n1->2 start 0 size 1 recv_done_trigger 1\n"
               "trigger id 1 barrier count 1\n",
           "trigger 1 is a barrier for 1 flows, but 2 reach it");
    refuse("Nodes 8\nFailures 1\nfailure switch_type CORE\n", "\"CORE\" is not AGG");
    refuse("Nodes 8\nFailures 1\nfailure switch_id 1\n", "a failure needs switch_id and link_id");
    refuse("Nodes 8\nFailures 1\nfailure link 1\n", "\"link\" is not switch_type");
}

/* ---- runs: 1,000 bytes over one switch, 100 Gb/s and 1 us a link ---- 1,036 bytes take 82.88 ns
 * on a link, 48 back 3.84: they are there after 2,165.76 ns, known after 4,173.44 ns. */

#define THERE 2165.760
#define KNOWN 4173.440

static orr_code run(const char *flows, orr_packet **out, orr_error *err)
{
    static const char topology[] =
        "5 1 4\n4\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n"
        "3 4 100Gbps 1us 0\n";
    const orr_packet_options opt = {.topology = "topology.txt", .flows = "x.cm", .fct = "fct.txt"};
    write_file("topology.txt", topology, strlen(topology));
    write_file("x.cm", flows, strlen(flows));
    orr_code code = orr_packet_create(&opt, out, err);
    if (!code)
        code = orr_packet_run(*out, err);
    return code ? code : orr_packet_commit(*out, err);
}

/* When the flow from src to dst began, by fct.txt. */
static double start_of(unsigned src, unsigned dst)
{
    orr_buf b = read_file("fct.txt");
    char from[20], to[20];
    double start = -1;
    orr_buf_byte(&b, 0);
    snprintf(from, sizeof from, "0b%04x01", src);
    snprintf(to, sizeof to, "0b%04x01", dst);
    for (const char *line = (const char *)b.ptr; line && *line;
         line = strchr(line, '\n'), line += !!line) {
        char a[20], d[20];
        double at;
        CHECK_EQ(sscanf(line, "%19s %19s %*s %*s %*s %lf", a, d, &at), 3);
        if (strcmp(a, from) == 0 && strcmp(d, to) == 0)
            start = at;
    }
    orr_buf_fini(&b);
    return start;
}

static void run_well(const char *flows, uint64_t count)
{
    orr_packet *p = NULL;
    orr_error err;
    CHECK_OK(run(flows, &p, &err), &err);
    CHECK_EQ_U(orr_packet_result(p)->flows_done, count);
    orr_packet_destroy(p);
}

TEST(test_htsim_cm__triggers_fire_at_once)
{
    run_well("Nodes 4\nConnections 3\nTriggers 2\n"
             "0->1 start 0 size 1000 send_done_trigger 1 recv_done_trigger 2\n"
             "2->3 trigger 1 size 1000\n1->2 trigger 2 size 1000\n"
             "trigger id 1 oneshot\ntrigger id 2 oneshot\n",
             3);
    CHECK(start_of(0, 1) == 0);
    CHECK(start_of(2, 3) == KNOWN);
    CHECK(start_of(1, 2) == THERE);
}

/* The slower of two that begin 10 us apart. */
TEST(test_htsim_cm__a_barrier_waits_for_all)
{
    run_well(
        "Nodes 4\nConnections 4\nTriggers 1\n"
        "0->1 start 0 size 1000 recv_done_trigger 5\n2->3 start 10000000 size 1000 recv_done_trigger 5\n"
        "1->0 trigger 5 size 1000\n3->2 trigger 5 size 1000\ntrigger id 5 barrier count 2\n",
        4);
    CHECK(start_of(1, 0) == 10000 + THERE);
    CHECK(start_of(3, 2) == 10000 + THERE);
}

/* One flow each time, in the order of the file; told a third time, there is nothing left. */
TEST(test_htsim_cm__a_multishot_starts_one_after_the_other)
{
    run_well("Nodes 4\nConnections 5\nTriggers 1\n"
             "0->1 start 0 size 1000 recv_done_trigger 5\n"
             "0->2 start 10000000 size 1000 recv_done_trigger 5\n"
             "0->3 start 20000000 size 1000 recv_done_trigger 5\n"
             "1->2 trigger 5 size 1000\n3->2 trigger 5 size 1000\ntrigger id 5 multishot\n",
             5);
    CHECK(start_of(1, 2) == THERE);
    CHECK(start_of(3, 2) == 10000 + THERE);
}

TEST(test_htsim_cm__flows_that_never_start_are_told)
{
    orr_packet *p = NULL;
    orr_error err;
    CHECK_CODE(
        run("Nodes 4\nConnections 3\nTriggers 2\n0->1 start 0 size 1000 recv_done_trigger 5\n"
            "1->2 trigger 5 size 1000\n2->3 trigger 6 size 1000\n"
            "trigger id 5 barrier count 2\ntrigger id 6 oneshot\n",
            &p, &err),
        ORR_EINPUT, &err);
    CHECK_SAYS(&err, "2 of 3 flows will never be done");
    CHECK_TEXT(orr_packet_stall(p, 0),
               "barrier 5 (line 7): 1 flow waits for it; it was triggered 1 of 2 times, "
               "and 1 flows could trigger it");
    CHECK_TEXT(orr_packet_stall(p, 1),
               "oneshot 6 (line 8): 1 flow waits for it; it was triggered 0 of 1 times, "
               "and 0 flows could trigger it");
    orr_packet_destroy(p);
}

TEST(test_htsim_cm__failures_need_a_tree)
{
    orr_packet *p = NULL;
    orr_error err;
    CHECK_CODE(run("Nodes 4\nConnections 1\nFailures 1\n0->1 start 0 size 1000\n"
                   "failure switch_type AGG switch_id 0 link_id 0\n",
                   &p, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "x.cm:5:1: links can fail like this in a .topo file of htsim only");
    orr_packet_destroy(p);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_htsim_cm__reads_flows_and_triggers),
        RUN(test_htsim_cm__errors_name_the_line),
        RUN(test_htsim_cm__triggers_fire_at_once),
        RUN(test_htsim_cm__a_barrier_waits_for_all),
        RUN(test_htsim_cm__a_multishot_starts_one_after_the_other),
        RUN(test_htsim_cm__flows_that_never_start_are_told),
        RUN(test_htsim_cm__failures_need_a_tree),
    };
    return RUN_ALL(tests);
}
