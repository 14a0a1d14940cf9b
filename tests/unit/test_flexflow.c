/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
/* Task graphs of FlexFlow: nodes worked out by hand from chakra.md 4.4 (compat) and
 * docs/format/flexflow.md. A line is a node: id, name, cycles or "src>dst bytes tag", "<" and what
 * it waits for. */
#include "check.h"

#include <orrery/lab/flexflow.h>

#include "base/memory/buffer.h"
#include "compat/chakra/chakra.h"

static orr_error err;

#define COMP(id, device, name, seconds)                                        \
    "node" #id " [label=\"{device_id=" #device "|" #name "|Forward|COMP_NODE|" \
    "simulated_run_time=" seconds "}\",shape=record];\n"
#define COMM(id, link, src, dst, bytes)                                                         \
    "node" #id " [label=\"{device_id=" #link "|m" #id                                           \
    "|Comm|COMM_SEND_RECV_NODE|src_device_id=" #src "|dst_device_id=" #dst "|comm_size=" #bytes \
    "|run_time=1}\"];\n"

static orr_code parse(const char *text, orr_flexflow **out)
{
    return orr_flexflow_parse((orr_span){(const uint8_t *)text, strlen(text)}, "g.dot", out, &err);
}

static void add_node(orr_buf *b, const orr_trace *t, uint32_t i)
{
    const orr_columns *c = orr_trace_columns(t);
    orr_node node;
    orr_value v;
    orr_trace_node(t, i, &node);
    orr_buf_print(b, "%" PRIu64 " %.*s", node.id, (int)node.name.len, node.name.ptr);
    if (node.type == ORR_NODE_COMP)
        orr_buf_print(b, " %" PRIu64, node.duration_us);
    else
        orr_buf_print(b, " %" PRIi64 ">%" PRIi64 " %" PRIi64 " %" PRIi64, c->comm_src[i],
                      c->comm_dst[i], c->comm_size[i], c->comm_tag[i]);
    orr_list deps = orr_node_data_deps(&node);
    for (int n = 0; orr_list_next(&deps, &v); n++)
        orr_buf_print(b, "%s %" PRIu64, n ? "" : " <", v.u);
    orr_buf_text(b, "\n");
}

static void check_graph(const char *text, const orr_flexflow_expand *opt, const char *want)
{
    orr_flexflow *g;
    orr_set *s;
    orr_buf b = {0};
    CHECK_OK(parse(text, &g), &err);
    CHECK_OK(orr_flexflow_set(g, opt, &s, &err), &err);
    for (uint32_t r = 0; r < orr_set_rank_count(s); r++) {
        const orr_trace *t = orr_set_trace(s, orr_set_class_of(s, r));
        orr_buf_print(&b, "rank %u\n", opt->rules ? orr_flexflow_device(g, r) : r);
        for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++)
            add_node(&b, t, i);
    }
    orr_buf_byte(&b, 0);
    CHECK_TEXT((const char *)b.ptr, want);
    orr_buf_fini(&b);
    orr_set_close(s);
    orr_flexflow_free(g);
}

static void refuse(const char *text, uint32_t line, uint32_t column, const char *part)
{
    orr_flexflow *g;
    CHECK_CODE(parse(text, &g), ORR_EINPUT, &err);
    CHECK(g == NULL);
    CHECK_SAYS(&err, part);
    CHECK_EQ(err.where.line, line);
    CHECK_EQ(err.where.column, column);
}

static void refuse_set(const char *text, uint32_t mhz, const char *part)
{
    orr_flexflow *g;
    orr_set *s;
    CHECK_OK(parse(text, &g), &err);
    CHECK_CODE(orr_flexflow_set(g, &(orr_flexflow_expand){.mhz = mhz}, &s, &err), ORR_EINPUT, &err);
    CHECK(s == NULL);
    CHECK_SAYS(&err, part);
    orr_flexflow_free(g);
}

static const orr_flexflow_expand ours = {.mhz = 1000};
static const orr_flexflow_expand compat = {.mhz = 1000, .rules = &chakra_flexflow_rules};

/* a on device 0, then 64 bytes to device 1, then b there. */
static const char pair[] = "digraph {\n" COMP(5, 0, a, "0.001") COMP(2, 1, b, "2.5e-9")
    COMM(3, 9, 0, 1, 64) "node5 -> node3; node3 -> node2;\n}";

TEST(test_flexflow__a_message_is_a_send_and_a_receive)
{
    check_graph(pair, &ours,
                "rank 0\n"
                "3 COMM_SEND_NODE_m3 0>1 64 0 < 5\n"
                "5 COMP_NODE_a_Forward 1000000\n"
                "rank 1\n"
                "2 COMP_NODE_b_Forward 2 < 3\n"
                "3 COMM_RECV_NODE_m3 0>1 64 0\n");
}

/* 2.5e-9 s are 2.5 cycles of 1 GHz: a tie, to the even 2.  Without a clock times are
 * microseconds. */
TEST(test_flexflow__times_are_cycles_or_microseconds)
{
    check_graph("digraph {" COMP(0, 0, a, "3.5e-9") COMP(1, 0, b, "0") "}", &ours,
                "rank 0\n0 COMP_NODE_a_Forward 4\n1 COMP_NODE_b_Forward 0\n");
    check_graph("digraph {" COMP(0, 0, a, "0.0000425") "}", &(orr_flexflow_expand){0},
                "rank 0\n0 COMP_NODE_a_Forward 42\n");
}

/* Tags count up device by device, in file order: node7 of device 0 comes before node4, node6 is met
 * on device 1. */
TEST(test_flexflow__tags_count_as_messages_are_met)
{
    check_graph("digraph {" COMP(0, 0, a, "0") COMP(1, 1, b, "0") COMP(2, 2, c, "0")
                    COMM(6, 0, 1, 2, 10) COMM(7, 0, 2, 0, 20) COMM(4, 0, 0, 1, 30) "}",
                &compat,
                "rank 0\n"
                "0 COMP_NODE_a 0\n"
                "4 COMM_SEND_NODE_m4 0>1 30 1\n"
                "7 COMM_RECV_NODE_m7 2>0 20 0\n"
                "rank 1\n"
                "1 COMP_NODE_b 0\n"
                "4 COMM_RECV_NODE_m4 0>1 30 1\n"
                "6 COMM_SEND_NODE_m6 1>2 10 2\n"
                "rank 2\n"
                "2 COMP_NODE_c 0\n"
                "6 COMM_RECV_NODE_m6 1>2 10 2\n"
                "7 COMM_SEND_NODE_m7 2>0 20 0\n");
}

/* chakra.md 4.4: compute keeps all dependencies, a message those whose "device" is that of the
 * file. */
TEST(test_flexflow__compat_keeps_dependencies_into_other_files)
{
    check_graph(
        "digraph {" COMP(0, 0, a, "0") COMP(1, 1, b, "0") COMM(2, 1, 0, 1, 8) COMM(
            3, 5, 0, 1,
            8) "node0 -> node1; node0 -> node2; node1 -> node2; node2 -> node3; node0 -> node1; }",
        &compat,
        "rank 0\n"
        "0 COMP_NODE_a 0\n"
        "2 COMM_SEND_NODE_m2 0>1 8 0 < 0\n"
        "3 COMM_SEND_NODE_m3 0>1 8 1\n"
        "rank 1\n"
        "1 COMP_NODE_b 0 < 0 0\n"
        "2 COMM_RECV_NODE_m2 0>1 8 0 < 1\n"
        "3 COMM_RECV_NODE_m3 0>1 8 1 < 2\n");
}

/* Devices without a compute task have no file there, and files keep the numbers of devices. */
TEST(test_flexflow__compat_leaves_gaps)
{
    check_graph("digraph {" COMP(0, 3, a, "0") COMM(1, 0, 3, 4, 8) COMP(2, 7, b, "0") "}", &compat,
                "rank 3\n"
                "0 COMP_NODE_a 0\n"
                "1 COMM_SEND_NODE_m1 3>4 8 0\n"
                "rank 7\n"
                "2 COMP_NODE_b 0\n");
}

/* Nobody tells device 1 that a is done: one byte does, once for both tasks that wait. */
TEST(test_flexflow__crossings_become_messages_of_one_byte)
{
    static const char text[] = "digraph {" COMP(0, 0, a, "0") COMP(1, 1, b, "0")
        COMP(2, 1, c, "0") "node0 -> node1; node0 -> node2; node0 -> node1; }";
    orr_flexflow *g;
    check_graph(text, &ours,
                "rank 0\n"
                "0 COMP_NODE_a_Forward 0\n"
                "3 COMM_SEND_NODE_a 0>1 1 0 < 0\n"
                "rank 1\n"
                "1 COMP_NODE_b_Forward 0 < 3\n"
                "2 COMP_NODE_c_Forward 0 < 3\n"
                "3 COMM_RECV_NODE_a 0>1 1 0\n");
    CHECK_OK(parse(text, &g), &err);
    CHECK_EQ(orr_flexflow_crossings(g), 2);
    orr_flexflow_free(g);
}

/* A message that waits for a task of a third device: its sender is told.  One that waits for a task
 * of its receiver: the receive waits. */
TEST(test_flexflow__messages_wait_too)
{
    check_graph("digraph {" COMP(0, 2, a, "0") COMM(1, 0, 0, 1, 0)
                    COMP(2, 1, b, "0") "node0 -> node1; node2 -> node1; }",
                &ours,
                "rank 0\n"
                "1 COMM_SEND_NODE_m1 0>1 1 0 < 3\n"
                "3 COMM_RECV_NODE_a 2>0 1 1\n"
                "rank 1\n"
                "1 COMM_RECV_NODE_m1 0>1 1 0 < 2\n"
                "2 COMP_NODE_b_Forward 0\n"
                "rank 2\n"
                "0 COMP_NODE_a_Forward 0\n"
                "3 COMM_SEND_NODE_a 2>0 1 1 < 0\n");
}

TEST(test_flexflow__labels_are_checked_field_by_field)
{
    refuse("digraph {\nnode0;\n}", 2, 1, "node0 has no label");
    refuse("digraph {\nnode0 [label=\"{device_id=0|a|F}\"];\n}", 2, 31, "COMP_NODE or COMM_SEND");
    refuse("digraph {\nnode0 [label=\"{device=0|a|F|COMP_NODE|simulated_run_time=1}\"];\n}", 2, 16,
           "'device=0' where device_id=NUMBER is expected");
    refuse("digraph {\nnode0 [label=\"{device_id=-1|a|F|COMP_NODE|simulated_run_time=1}\"];\n}", 2,
           26, "device_id '-1' is not a whole number from 0 to 1048575");
    refuse("digraph {\nnode0 [label=\"{device_id=0|a|F|LOOP|simulated_run_time=1}\"];\n}", 2, 32,
           "'LOOP' where COMP_NODE or");
    refuse("digraph {\nnode0 [label=\"{device_id=0|a|F|COMP_NODE|simulated_run_time=-1}\"];\n}", 2,
           61, "run time '-1' is not a time in seconds");
    refuse("digraph {\nnode0 [label=\"{device_id=0|a|F|COMP_NODE|simulated_run_time=inf}\"];\n}", 2,
           61, "'inf' is not a time");
    refuse("digraph {\nnode0 [label=\"{device_id=0|a|F|COMM_SEND_RECV_NODE|src_device_id=0}\"];\n}",
           2, 67, "dst_device_id=NUMBER");
}

TEST(test_flexflow__graphs_are_checked)
{
    refuse("digraph { }", 1, 1, "the graph has no tasks");
    refuse("digraph {\n" COMP(0, 0, a, "0") " task1;\n}", 3, 2,
           "'task1' is not the name of a task");
    refuse("digraph {\n" COMP(0, 0, a, "0") COMP(0, 0, b, "0") "}", 3, 1, "duplicate node0");
    refuse("digraph {\n" COMP(0, 0, a, "0") "node0 -> node1;}", 3, 10, "node1 has no statement");
    refuse("digraph {\n" COMM(0, 0, 0, 1, 8) "}", 2, 1, "no task computes anything");
    refuse("digraph {\n" COMP(0, 0, a, "0") COMP(1, 0, b, "0") "node0 -> node1 -> node0;}", 2, 1,
           "node0 never runs: the edges before it form a cycle");
    refuse("digraph {\n" COMP(0, 0, a, "0") "node0 -> node0}", 2, 1, "node0 never runs");
}

TEST(test_flexflow__what_cannot_be_ranks_is_refused)
{
    refuse_set("digraph {" COMP(0, 0, a, "0") COMP(1, 2, b, "0") "}", 1,
               "device 1 has no task, but device 2 has");
    refuse_set("digraph {" COMP(0, 0, a, "0") COMM(1, 0, 0, 0, 8) "}", 1,
               "node1 sends from device 0 to itself");
    refuse_set("digraph {" COMP(0, 0, a, "1e12") "}", 1000, "too many cycles");
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_flexflow__a_message_is_a_send_and_a_receive),
        RUN(test_flexflow__times_are_cycles_or_microseconds),
        RUN(test_flexflow__tags_count_as_messages_are_met),
        RUN(test_flexflow__compat_keeps_dependencies_into_other_files),
        RUN(test_flexflow__compat_leaves_gaps),
        RUN(test_flexflow__crossings_become_messages_of_one_byte),
        RUN(test_flexflow__messages_wait_too),
        RUN(test_flexflow__labels_are_checked_field_by_field),
        RUN(test_flexflow__graphs_are_checked),
        RUN(test_flexflow__what_cannot_be_ranks_is_refused),
    };
    return RUN_ALL(tests);
}
