/* SPDX-License-Identifier: Apache-2.0 */
/* Linked PyTorch traces to traces: small ones written out by hand, and what must become of them
 * (docs/format/linked.md). A line of the result is a node: id, name, what it is, "<" and what it
 * waits for.  Host work is its microseconds, device work those behind the stream, communication its
 * words. */
#include "check.h"
#include "rooms.h"

#include <orrery/lab/pytorch.h>

#include "base/memory/buffer.h"
#include "sources/torch/convert/conversion.h"
#include "sources/torch/read/linked.h"

static orr_error err;

/* ---- writing one ---- */

#define FILE_OF(nodes)                                                                    \
    "{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 7, \"time\": \"t\", \"start_ts\": 1, " \
    "\"finish_ts\": 2, \"nodes\": [\n" nodes "\n]}"
#define IO(values, types) "{\"values\": [" values "], \"shapes\": [], \"types\": [" types "]}"
#define ATTR(name, value) "{\"name\": \"" name "\", \"type\": \"x\", \"value\": " value "}"
#define ATTRS(tid, more)                                                                          \
    "[" ATTR("rf_id", "1") "," ATTR("fw_parent", "0") "," ATTR("seq_id", "-1") "," ATTR(          \
        "scope", "0") "," ATTR("tid", #tid) "," ATTR("fw_tid", "0") "," ATTR("op_schema", "\"\"") \
        more "]"
#define NODE(id, name, parent, tid, inputs, more_attrs, more)                                   \
    "{\"id\": " #id ", \"name\": \"" name "\", \"ctrl_deps\": " #parent ", \"inputs\": " inputs \
    ", \"outputs\": " IO("", "") ", \"attrs\": " ATTRS(tid, more_attrs) more "}"
#define TIMES(ts, dur, own) \
    ", \"ts\": " #ts ", \"inclusive_dur\": " #dur ", \"exclusive_dur\": " #own
#define NONE IO("", "")
#define THREAD(id, tid) NODE(id, "[pytorch|profiler|execution_trace|thread]", 0, tid, NONE, , )
#define PROCESS NODE(0, "[pytorch|profiler|execution_trace|process]", 0, 0, NONE, , )
#define OP(id, name, parent, ts, dur) NODE(id, name, parent, 1, NONE, , TIMES(ts, dur, dur))
#define ON_STREAM(stream) ", \"cat\": \"kernel\", \"ph\": \"X\", \"stream\": " #stream
#define KERNEL(id, name, parent, stream, ts, dur) \
    NODE(id, name, parent, 1, NONE, , TIMES(ts, dur, dur) ON_STREAM(stream))
#define TENSOR(storage, elements) "[1, " #storage ", 0, " #elements ", 4, \"cuda:0\"]"
#define OF_TENSOR(storage, elements) IO(TENSOR(storage, elements), "\"Tensor(float)\"")
#define START PROCESS ",\n" THREAD(1, 1) ",\n"

/* ---- reading the result ---- */

static orr_linked *parse(const char *text, bool is_compat)
{
    orr_linked *l;
    const orr_linked_options opt = {
        .rules = is_compat ? program_of(ORR_RULES_CONVERT, NULL)->convert : NULL};
    CHECK_OK(
        orr_linked_parse((orr_span){(const uint8_t *)text, strlen(text)}, "l.json", &opt, &l, &err),
        &err);
    return l;
}

static void add_number(orr_buf *b, const char *word, const int64_t *column, uint32_t i)
{
    if (column && column[i] != ORR_NO_VALUE)
        orr_buf_print(b, " %s%" PRIi64, word, column[i]);
}

static void add_comm(orr_buf *b, const orr_trace *t, uint32_t i)
{
    const orr_columns *c = orr_trace_columns(t);
    if (c->type[i] == ORR_NODE_COMM_COLL)
        orr_buf_print(b, " %s", orr_collective_name((uint32_t)c->comm_type[i]));
    else
        orr_buf_text(b, c->type[i] == ORR_NODE_COMM_SEND ? " SEND" : " RECV");
    add_number(b, "", c->comm_size, i);
    add_number(b, "from ", c->comm_src, i);
    add_number(b, "to ", c->comm_dst, i);
    add_number(b, "tag ", c->comm_tag, i);
    if (c->pg_name && c->pg_name[i] != ORR_NO_NAME) {
        const orr_str group = orr_trace_text(t, c->pg_name[i]);
        orr_buf_print(b, " in %.*s", (int)group.len, group.ptr);
    }
}

static void add_node(orr_buf *b, const orr_trace *t, uint32_t i)
{
    const orr_columns *c = orr_trace_columns(t);
    orr_node node;
    orr_value v;
    orr_trace_node(t, i, &node);
    orr_buf_print(b, "%" PRIu64 " %.*s", node.id, node.name.ptr[0] == '[' ? 1 : (int)node.name.len,
                  node.name.ptr);
    if (node.type == ORR_NODE_METADATA)
        orr_buf_text(b, " groups");
    else if (node.type != ORR_NODE_COMP)
        add_comm(b, t, i);
    else if (!c->is_cpu_op[i])
        orr_buf_print(b, " %" PRIi64 ":%" PRIu64, c->stream[i], node.duration_us);
    else
        orr_buf_print(b, " %" PRIu64, node.duration_us);
    orr_list deps = orr_node_data_deps(&node);
    for (int n = 0; orr_list_next(&deps, &v); n++)
        orr_buf_print(b, "%s %" PRIu64, n ? "" : " <", v.u);
    orr_buf_text(b, "\n");
}

static orr_pytorch_report check_linked(orr_linked *l,
                                       const orr_pytorch_options *opt,
                                       const char *want)
{
    orr_trace *t;
    orr_buf b = {0};
    orr_pytorch_report report;
    CHECK_OK(orr_linked_trace(l, opt, &t, &report, &err), &err);
    for (uint32_t i = 0; i < orr_trace_columns(t)->count; i++)
        add_node(&b, t, i);
    orr_buf_byte(&b, '\0');
    CHECK_TEXT((const char *)b.ptr, want);
    CHECK_EQ(orr_trace_columns(t)->data_missing, 0);
    if (!l->rules)
        CHECK_EQ(orr_trace_columns(t)->ctrl_missing, 0);
    orr_buf_fini(&b);
    orr_trace_destroy(t);
    orr_linked_free(l);
    return report;
}

static orr_pytorch_report check_trace(const char *text,
                                      const orr_pytorch_options *opt,
                                      const char *want)
{
    return check_linked(parse(text, false), opt, want);
}

/* ---- order ---- */

/* Operators of a thread in a row, kernels behind their operators and, on one stream, behind each
 * other. */
TEST(test_pytorch__threads_launches_and_streams)
{
    check_trace(
        FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" KERNEL(3, "k1", 2, 7, 20, 30) ",\n" KERNEL(
            4, "k2", 2, 9, 21, 5) ",\n" OP(5, "b", 1, 16, 2) ",\n" KERNEL(6, "k3", 5, 7, 50, 4)),
        NULL,
        "0 [ 0\n1 [ 0\n2 a 5 < 1\n3 k1 7:30 < 2\n4 k2 9:5 < 2\n5 b 2 < 2\n"
        "6 k3 7:4 < 5 3\n");
}

/* The order on a stream is that of the clock, not that of the ids. */
TEST(test_pytorch__streams_go_by_time)
{
    check_trace(FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" KERNEL(
                    3, "late", 2, 7, 90, 1) ",\n" KERNEL(4, "early", 2, 7, 20, 1)),
                NULL, "0 [ 0\n1 [ 0\n2 a 5 < 1\n3 late 7:1 < 2 4\n4 early 7:1 < 2\n");
}

/* The host waited for kernel 3, says sync_dep; for kernel 4, which ended later, it cannot have. */
TEST(test_pytorch__synchronisation_as_far_as_the_clock_allows)
{
    const orr_pytorch_report r = check_trace(
        FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" KERNEL(3, "k1", 2, 7, 20, 30) ",\n" KERNEL(
            4, "k2", 2, 9, 20, 90) ",\n" NODE(5, "b", 1, 1, NONE, ,
                                              TIMES(60, 2, 2) ", \"sync_dep\": [3, 4, 99]")),
        NULL, "0 [ 0\n1 [ 0\n2 a 5 < 1\n3 k1 7:30 < 2\n4 k2 9:90 < 2\n5 b 2 < 2 3\n");
    CHECK_EQ(r.dependencies_refused, 1);
    CHECK_EQ(r.dependencies_missing, 1);
}

/* Host-only traces have no clock; two threads that wait for each other are not believed. */
TEST(test_pytorch__cycles_are_cut)
{
    const orr_pytorch_report r = check_trace(
        FILE_OF(
            START
                THREAD(2, 2) ",\n" NODE(3, "a", 1, 1, NONE, , ", \"inter_thread_dep\": 6") ",\n" NODE(
                    4, "b", 1, 1, NONE,
                    , ) ",\n" NODE(5, "c", 2, 2, NONE, ,
                                   ", \"inter_thread_dep\": 4") ",\n" NODE(6, "d", 2, 2, NONE, , )),
        NULL, "0 [ 0\n1 [ 0\n2 [ 0\n3 a 0 < 1\n4 b 0 < 3\n5 c 0 < 2\n6 d 0 < 5\n");
    CHECK_EQ(r.dependencies_circular, 2);
}

/* Thread 2 goes on after a pause in which thread 1 finished b, and thread 1 after one in which
 * thread 2 finished c. */
TEST(test_pytorch__threads_hand_over)
{
    check_trace(
        FILE_OF(START THREAD(2, 2) ",\n" OP(3, "a", 1, 10, 5) ",\n" OP(4, "b", 1, 20, 5) ",\n" NODE(
            5, "c", 2, 2, NONE, , TIMES(40, 100, 100)) ",\n" OP(6, "d", 1, 150, 5)),
        NULL, "0 [ 0\n1 [ 0\n2 [ 0\n3 a 5 < 1\n4 b 5 < 3\n5 c 100 < 2 4\n6 d 5 < 4 5\n");
}

/* 1.4 + 1.4 + 1.4 us on one stream are 4.2: 1, 1 and 2, not 1, 1 and 1. */
TEST(test_pytorch__rounding_is_carried_over)
{
    check_trace(
        FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" KERNEL(3, "k", 2, 7, 20.1, 1.4) ",\n" KERNEL(
            4, "k", 2, 7, 30.1, 1.4) ",\n" KERNEL(5, "k", 2, 7, 40.1, 1.4)),
        NULL, "0 [ 0\n1 [ 0\n2 a 5 < 1\n3 k 7:1 < 2\n4 k 7:1 < 2 3\n5 k 7:2 < 2 4\n");
}

/* Time in which the host only waited for the device is not host work. */
TEST(test_pytorch__waiting_is_no_work)
{
    check_trace(FILE_OF(START NODE(2, "a", 1, 1, NONE, , TIMES(10, 50, 50) ", \"wait_dur\": 42.5")),
                NULL, "0 [ 0\n1 [ 0\n2 a 7 < 1\n");
}

/* ---- communication ---- */

#define RECORD_ATTRS                                                                               \
    "," ATTR("collective_name", "\"_allgather_base\"") "," ATTR("dtype", "\"BFloat16\"") "," ATTR( \
        "in_msg_nelems", "100") "," ATTR("out_msg_nelems",                                         \
                                         "400") "," ATTR("pg_name", "\"3\"") "," ATTR("pg_size",   \
                                                                                      "4")

/* Four nodes, one collective: the kernel; its size is that of the input, its group that of its
 * description. */
TEST(test_pytorch__one_collective_for_each_call)
{
    const orr_pytorch_report r = check_trace(
        FILE_OF(START OP(2, "c10d::_allgather_base_", 1, 10, 9) ",\n" NODE(
            3, "record_param_comms", 2, 1, NONE, RECORD_ATTRS,
            TIMES(
                11, 7,
                1)) ",\n" OP(4, "nccl:_all_gather_base", 3, 12,
                             5) ",\n" KERNEL(5,
                                             "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                                             4, 20, 30, 8)),
        NULL,
        "0 [ 0\n1 [ 0\n2 c10d::_allgather_base_ 9 < 1\n3 record_param_comms 1 < 2\n"
        "4 nccl:_all_gather_base 5 < 3\n"
        "5 ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>) ALL_GATHER 200 in 3 "
        "< 4\n");
    CHECK_EQ(r.collectives, 1);
    CHECK_EQ(r.kinds_unknown + r.sizes_unknown, 0);
}

#define RECORDED(storage, elements, group, rank, word)                                     \
    IO(TENSOR(storage, elements) ", 5, [\"" group "\", \"about\"], " #rank ", \"" word     \
                                 "\", [], []",                                             \
       "\"Tensor(float)\", \"Int\", \"GenericList[String,String]\", \"Int\", \"String\", " \
       "\"GenericList[]\", \"GenericList[]\"")

/* Before there were attributes: group and peer are values.  Group 5 has the ranks 4 and 6, so its
 * member 1 is rank 6. */
TEST(test_pytorch__messages_have_peers)
{
    check_trace(
        FILE_OF(START NODE(
            2, "## process_group:init ##", 1, 1,
            IO("\"[{\\\"pg_name\\\": \\\"5\\\", \\\"ranks\\\": [4, 6], "
               "\\\"group_size\\\": 2}]\"",
               "\"String\""),
            , ) ",\n" NODE(3, "record_param_comms", 1, 1, RECORDED(9, 10, "5", 1, "send"), ,
                           TIMES(10, 5,
                                 5)) ",\n" NODE(4, "nccl:send 0->1", 3, 1, OF_TENSOR(9, 10), ,
                                                TIMES(11, 3,
                                                      3)) ",\n" KERNEL(5,
                                                                       "ncclDevKernel_SendRecv(x)",
                                                                       4, 20, 30, 8)),
        &(orr_pytorch_options){.has_rank = true, .rank = 4},
        "0 [ 0\n1 [ 0\n2 ## process_group:init ## groups\n3 record_param_comms 5 < 1\n"
        "4 nccl:send 0->1 3 < 3\n5 ncclDevKernel_SendRecv(x) SEND 40 from 4 to 6 tag 0 in 5 < 4\n");
}

/* gloo works in a thread of its own: its annotation is behind the operator, not inside.  Operator 4
 * begins while the all-reduce runs, 5 works on what it reduces. */
TEST(test_pytorch__calls_of_a_backend_thread)
{
    check_trace(
        FILE_OF(
            START NODE(2, "c10d::allreduce_", 1, 1, OF_TENSOR(9, 10), , TIMES(10, 5, 5)) ",\n" NODE(
                3, "gloo:all_reduce", 1, 1, OF_TENSOR(9, 10), ,
                TIMES(12, 60, 60)) ",\n" OP(4, "a", 1, 16, 50) ",\n" NODE(5, "b", 1, 1,
                                                                          OF_TENSOR(9, 10), ,
                                                                          TIMES(90, 5, 5))),
        NULL,
        "0 [ 0\n1 [ 0\n2 c10d::allreduce_ 5 < 1\n3 gloo:all_reduce ALL_REDUCE 40 < 2\n"
        "4 a 50 < 2\n5 b 5 < 4 3\n");
}

/* Peer and tag of a message are values of the operator. */
TEST(test_pytorch__operators_name_peer_and_tag)
{
    check_trace(
        FILE_OF(START NODE(2, "c10d::recv_", 1, 1,
                           IO("[" TENSOR(9, 10) "], \"<Object>\", 3, 17",
                              "\"GenericList[Tensor(float)]\", \"Object\", \"Int\", \"Int\""),
                           , TIMES(10, 5, 5)) ",\n" NODE(3, "gloo:recv", 2, 1, OF_TENSOR(9, 10), ,
                                                         TIMES(12, 60, 60))),
        NULL, "0 [ 0\n1 [ 0\n2 c10d::recv_ 5 < 1\n3 gloo:recv RECV 40 from 3 tag 17 < 2\n");
}

/* Kernels of two streams that share a storage follow each other: fill the bucket, reduce it, unpack
 * it. */
TEST(test_pytorch__streams_are_joined_by_tensors)
{
    check_trace(
        FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" NODE(
            3, "fill", 2, 1, OF_TENSOR(9, 10), ,
            TIMES(20, 5, 5) ON_STREAM(
                7)) ",\n" NODE(4, "ncclKernel_AllReduce_RING", 2, 1, OF_TENSOR(9, 10), ,
                               TIMES(30, 5, 5) ON_STREAM(
                                   20)) ",\n" NODE(5, "other", 2, 1, OF_TENSOR(8, 10), ,
                                                   TIMES(31, 2, 2) ON_STREAM(
                                                       7)) ",\n" NODE(6, "unpack", 2, 1,
                                                                      OF_TENSOR(9, 10), ,
                                                                      TIMES(40, 5, 5)
                                                                          ON_STREAM(7))),
        NULL,
        "0 [ 0\n1 [ 0\n2 a 5 < 1\n3 fill 7:5 < 2\n4 ncclKernel_AllReduce_RING ALL_REDUCE 40 < 2 3\n"
        "5 other 7:2 < 2 3\n6 unpack 7:5 < 2 5 4\n");
}

/* Two messages in one kernel: the calls communicate, and the kernel takes no time of its own. */
TEST(test_pytorch__coalesced_calls)
{
    check_trace(
        FILE_OF(START OP(2, "k", 1, 5, 1) ",\n" KERNEL(3, "before", 2, 20, 8, 2) ",\n" NODE(
            4, "record_param_comms", 1, 1, RECORDED(9, 10, "0", 1, "send"), ,
            TIMES(10, 1,
                  1)) ",\n" NODE(5, "record_param_comms", 1, 1, RECORDED(8, 20, "0", 3, "recv"), ,
                                 TIMES(12, 1,
                                       1)) ",\n" OP(6, "nccl:coalesced", 1, 14,
                                                    5) ",\n" KERNEL(7, "ncclDevKernel_SendRecv(x)",
                                                                    6, 20, 30, 8)),
        NULL,
        "0 [ 0\n1 [ 0\n2 k 1 < 1\n3 before 20:2 < 2\n4 record_param_comms SEND 40 to 1 tag 0 in 0 < 2 3\n"
        "5 record_param_comms RECV 80 from 3 tag 0 in 0 < 2 3\n6 nccl:coalesced 5 < 2\n"
        "7 ncclDevKernel_SendRecv(x) 20:0 < 6 3 4 5\n");
}

/* ---- the old converter ---- */

/* By hand from chakra.md 4.1: the process goes, kernels wait for the last operator only, and
 * sync_dep is lost. */
TEST(test_pytorch__compat)
{
    check_linked(
        parse(FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" KERNEL(3, "k1", 2, 7, 20, 30) ",\n" KERNEL(
                  4, "k2", 2, 7, 60, 2) ",\n" NODE(5, "b", 1, 1, NONE, ,
                                                   TIMES(60, 2.9, 2.9) ", \"sync_dep\": [3]")),
              true),
        NULL, "1 [ 0\n2 a 5 < 1\n3 k1 7:30 < 2\n4 k2 7:2 < 2\n5 b 2 < 2\n");
}

static void add_line(void *sink, const char *line)
{
    orr_buf *b = sink;
    orr_buf_text(b, line);
    orr_buf_text(b, "\n");
}

/* One tick for the thread, at least; k2 waits for its stream; b is issued when its parent was, and
 * then has to wait. */
TEST(test_pytorch__simulate)
{
    orr_linked *l =
        parse(FILE_OF(START OP(2, "a", 1, 10, 2) ",\n" KERNEL(3, "k1", 2, 7, 20, 3) ",\n" KERNEL(
                  4, "k2", 2, 7, 60, 1) ",\n" OP(5, "b", 1, 60, 0)),
              true);
    orr_buf b = {0};
    CHECK_OK(orr_linked_simulate(l, add_line, &b, &err), &err);
    orr_buf_byte(&b, '\0');
    CHECK_TEXT((const char *)b.ptr,
               "Issuing CPU Node ID 1 ([pytorch|profiler|execution_trace|thread]) at 0us with "
               "duration 0us, tid: 1\n"
               "CPU Node ID 1 completed at 1us, tid: 1\n"
               "Issuing CPU Node ID 2 (a) at 1us with duration 2us, tid: 1\n"
               "Issuing GPU Node ID 3 (k1) at 2us on stream 7 with duration 3us, tid: stream 7\n"
               "CPU Node ID 2 completed at 3us, tid: 1\n"
               "Issuing CPU Node ID 5 (b) at 3us with duration 0us, tid: 1\n"
               "CPU Node ID 5 completed at 4us, tid: 1\n"
               "GPU Node ID 3 on stream 7 completed at 5us, tid: stream 7\n"
               "Issuing GPU Node ID 4 (k2) at 5us on stream 7 with duration 1us, tid: stream 7\n"
               "GPU Node ID 4 on stream 7 completed at 6us, tid: stream 7\n");
    orr_buf_fini(&b);
    orr_linked_free(l);
}

/* ---- what is refused ---- */

static void check_refused(const char *text, bool is_compat, const char *words, uint32_t line)
{
    orr_linked *l;
    orr_trace *t;
    const orr_linked_options opt = {
        .rules = is_compat ? program_of(ORR_RULES_CONVERT, NULL)->convert : NULL};
    orr_code code =
        orr_linked_parse((orr_span){(const uint8_t *)text, strlen(text)}, "l.json", &opt, &l, &err);
    if (!code) {
        code = orr_linked_trace(l, NULL, &t, NULL, &err);
        orr_linked_free(l);
    }
    CHECK_EQ(code, ORR_EINPUT);
    CHECK_SAYS(&err, words);
    CHECK_EQ(err.where.line, line);
}

TEST(test_pytorch__faults_have_a_place)
{
    check_refused("", false, "an empty file", 1);
    check_refused("[]", false, "expected a linked trace", 1);
    check_refused("{\"schema\": \"x\"}", false, "no \"nodes\"", 1);
    check_refused(FILE_OF(PROCESS) "x", false, "", 3);
    check_refused(FILE_OF(PROCESS ",\n{\"name\": \"x\"}"), false, "without id", 3);
    check_refused(FILE_OF(PROCESS ",\n{\"id\": 1}"), false, "without name", 3);
    check_refused(FILE_OF(PROCESS ",\n" PROCESS), false, "duplicate node 0", 3);
    check_refused(FILE_OF(PROCESS ",\n" NODE(1, "a", 0, 1, NONE, , ", \"ts\": \"x\"")), false,
                  "ts: found \"x\", expected a time in microseconds", 3);
    check_refused(FILE_OF(PROCESS ",\n{\"id\": 1, \"name\": \"a\", \"ctrl_deps\": 0}"), true,
                  "without inputs", 3);
    check_refused(FILE_OF(START NODE(2, "a", 1, 1, NONE, , ", \"inter_thread_dep\": 9")), true,
                  "inter_thread_dep is not in the file", 4);
    check_refused(
        FILE_OF(START OP(2, "a", 1, 10, 5) ",\n" KERNEL(3, "ncclKernel_Bcast", 2, 7, 20, 30)), true,
        "no collective by the name", 5);
}

/* ---- text form of values, chakra.md 4.2 ---- */

TEST(test_pytorch__python_text)
{
    static const char *const rows[][2] = {
        {"[1,-0, 2 ]", "[1, 0, 2]"},
        {"[-0.0, 1e2, 1E400, 0.00001]", "[-0.0, 100.0, inf, 1e-05]"},
        {"[ true,false,null,NaN,-Infinity ]", "[True, False, None, nan, -inf]"},
        {"[\"it's\", \"a\\\"b\", \"'\\\"\", \"\\u0027\"]", "[\"it's\", 'a\"b', '\\'\"', \"'\"]"},
        {"[\"\\\\ \\t\\n\\r\\b\\u007f\\u0080\\u00a0\\u00ad\"]",
         "['\\\\ \\t\\n\\r\\x08\\x7f\\x80\\xa0\\xad']"},
        {"[\"\\u00e9\\ud83d\\ude00\\ud800\\u2028\\ue000\"]",
         "['\xC3\xA9\xF0\x9F\x98\x80\\ud800\\u2028\\ue000']"},
        {"{\"a\":1,\"b\":[{}],\"a\":{\"c\":2}}", "{'a': {'c': 2}, 'b': [{}]}"},
        {"[]", "[]"},
        {"\"x\"", "'x'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        orr_buf b = {0};
        python_text(&b, orr_str_of(rows[i][0]));
        orr_buf_byte(&b, '\0');
        CHECK_TEXT((const char *)b.ptr, rows[i][1]);
        orr_buf_fini(&b);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_pytorch__threads_launches_and_streams),
        RUN(test_pytorch__streams_go_by_time),
        RUN(test_pytorch__synchronisation_as_far_as_the_clock_allows),
        RUN(test_pytorch__cycles_are_cut),
        RUN(test_pytorch__threads_hand_over),
        RUN(test_pytorch__rounding_is_carried_over),
        RUN(test_pytorch__waiting_is_no_work),
        RUN(test_pytorch__one_collective_for_each_call),
        RUN(test_pytorch__messages_have_peers),
        RUN(test_pytorch__calls_of_a_backend_thread),
        RUN(test_pytorch__operators_name_peer_and_tag),
        RUN(test_pytorch__streams_are_joined_by_tensors),
        RUN(test_pytorch__coalesced_calls),
        RUN(test_pytorch__compat),
        RUN(test_pytorch__simulate),
        RUN(test_pytorch__faults_have_a_place),
        RUN(test_pytorch__python_text),
    };
    return RUN_ALL(tests);
}
