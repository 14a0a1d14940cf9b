/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
/* test_source_faults.c - memory that runs out at every single place where a table of layers, a task
 * graph or a linked trace is read and expanded: it must be said that memory ran out, and sanitizers
 * watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#include <orrery/lab/compat.h>
#include <orrery/lab/flexflow.h>
#include <orrery/lab/layers.h>
#include <orrery/lab/pytorch.h>

long orr__fail_alloc_after(long n); /* src/base/memory.c */

static orr_error err;

static const char workload[] =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD g: 2 checkpoints: 1 0 checkpoint_initiates: 1 2\r\n3\r\n"
    "a -1 1 ALLREDUCE 8 2 ALLREDUCE 16 3 ALLREDUCEALLTOALL 24 5\r\n"
    "b -1 1 NONE 0 2 ALLREDUCE 16 3 ALLREDUCE 24 5\r\n"
    "c -1 1 ALLREDUCE 8 2 NONE 0 3 ALLREDUCE 24 5\r\n";

static const char graph[] =
    "digraph {\nnode0 [label=\"{device_id=0|a|F|COMP_NODE|simulated_run_time=1e-3}\"];\n"
    "node1 [label=\"{device_id=1|b|F|COMP_NODE|simulated_run_time=1e-3}\"];\n"
    "node2 [label=\"{device_id=7|m|C|COMM_SEND_RECV_NODE|src_device_id=1|dst_device_id=0|comm_size=9}\"];\n"
    "node0 -> node1 -> node2; node0 -> node2;\n}\n";

static orr_code run_layers(bool is_compat)
{
    const orr_layers_expand opt = {.ranks = 4, .passes = 2, .with_updates = true};
    orr_layers *t;
    orr_set *s = NULL;
    (void)is_compat;
    orr_code code = orr_layers_parse((orr_span){(const uint8_t *)workload, sizeof workload - 1},
                                     "w.txt", NULL, &t, &err);
    if (!code)
        code = orr_layers_set(t, &opt, &s, &err);
    CHECK(!code == (s != NULL));
    orr_set_close(s);
    orr_layers_free(t);
    return code;
}

static orr_code run_args(bool is_compat)
{
    static const uint32_t list[] = {1};
    const orr_policy_args args = {.checkpoints = list, .checkpoint_count = 1};
    orr_layers *t;
    (void)is_compat;
    orr_code code = orr_layers_create(ORR_POLICY_DATA, &t, &err);
    if (!code)
        code = orr_layers_set_args(t, &args, &err);
    orr_layers_free(t);
    return code;
}

static orr_code run_graph(bool is_compat)
{
    const orr_flexflow_expand opt = {
        .mhz = 1000, .rules = is_compat ? orr_compat_at(ORR_RULES_FLEXFLOW, 0)->flexflow : NULL};
    orr_flexflow *g;
    orr_set *s = NULL;
    orr_code code =
        orr_flexflow_parse((orr_span){(const uint8_t *)graph, sizeof graph - 1}, "g.dot", &g, &err);
    if (!code)
        code = orr_flexflow_set(g, &opt, &s, &err);
    CHECK(!code == (s != NULL));
    orr_set_close(s);
    orr_flexflow_free(g);
    return code;
}

#define ATTRS                                                                                                    \
    "[{\"name\":\"rf_id\",\"value\":1},{\"name\":\"fw_parent\",\"value\":0},{\"name\":\"seq_id\",\"value\":-1}," \
    "{\"name\":\"scope\",\"value\":0},{\"name\":\"tid\",\"value\":1},{\"name\":\"fw_tid\",\"value\":0},"         \
    "{\"name\":\"op_schema\",\"value\":\"\"}]"
#define LINKED_NODE(id, name, parent, values, more)                                            \
    "{\"id\":" id ",\"name\":\"" name "\",\"ctrl_deps\":" parent                               \
    ",\"inputs\":{\"values\":[" values                                                         \
    "],\"shapes\":[],\"types\":[\"Tensor(float)\"]},\"outputs\":{\"values\":[],\"shapes\":[]," \
    "\"types\":[]},\"attrs\":" ATTRS more "}"
#define TENSOR "[1,9,0,10,4,\"cuda:0\"]"

static const char linked[] = "{\"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":1,\"time\":\"t\",\"start_ts\":1,\"finish_ts\":2,\"nodes\":[" LINKED_NODE(
    "4",
    "a\\u00e4",
    "1",
    "{\"k\":1,\"k\":[0.5]}",
    ",\"ts\":9,\"inclusive_dur\":5,\"exclusive_dur\":5") "," LINKED_NODE("1",
                                                                         "[pytorch|profiler|execution_trace|thread]",
                                                                         "0",
                                                                         "",
                                                                         "") "," LINKED_NODE("2", "## process_group:init ##", "1", "\"[{\\\"pg_name\\\": \\\"5\\\", \\\"ranks\\\": [0, 1]}]\"", "") "," LINKED_NODE("3", "c10d::send", "1", TENSOR ",1,0", ",\"ts\":1,\"inclusive_dur\":5,\"exclusive_dur\":5,\"pg_name\":\"5\"") "," LINKED_NODE("5",
                                                                                                                                                                                                                                                                                                                                                  "record_param_comms",
                                                                                                                                                                                                                                                                                                                                                  "1",
                                                                                                                                                                                                                                                                                                                                                  TENSOR
                                                                                                                                                                                                                                                                                                                                                  ",3,[\"5\",\"d\"],0,\"allreduce\"",
                                                                                                                                                                                                                                                                                                                                                  ",\"sync_dep\":[7]") "," LINKED_NODE("6",
                                                                                                                                                                                                                                                                                                                                                                                       "ncclKernel_AllReduce",
                                                                                                                                                                                                                                                                                                                                                                                       "5",
                                                                                                                                                                                                                                                                                                                                                                                       TENSOR,
                                                                                                                                                                                                                                                                                                                                                                                       ",\"cat\":\"kernel\",\"stream\":20,\"ts\":9,\"inclusive_dur\":5,\"exclusive_dur\":5") "," LINKED_NODE("7",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "k",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             "4",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             TENSOR,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             ",\"cat\":\"kernel\",\"stream\":7,\"ts\":2,\"inclusive_dur\":5,\"exclusive_dur\":5") "]}";

static void count_line(void *sink, const char *line)
{
    *(size_t *)sink += strlen(line);
}

static orr_code run_linked(bool is_compat)
{
    orr_linked *l;
    orr_trace *t = NULL;
    size_t sum = 0;
    const orr_linked_options opt = {
        .rules = is_compat ? orr_compat_at(ORR_RULES_CONVERT, 0)->convert : NULL};
    orr_code code = orr_linked_parse((orr_span){(const uint8_t *)linked, sizeof linked - 1},
                                     "l.json", &opt, &l, &err);
    if (!code)
        code = orr_linked_trace(l, NULL, &t, NULL, &err);
    CHECK(!code == (t != NULL));
    if (!code && is_compat)
        code = orr_linked_simulate(l, count_line, &sum, &err);
    orr_trace_destroy(t);
    orr_linked_free(l);
    return code;
}

static void fail_each(orr_code (*work)(bool), bool is_compat)
{
    for (long n = 0;; n++) {
        err.code = ORR_OK;
        orr__fail_alloc_after(n);
        const orr_code code = work(is_compat);
        const bool failed = orr__fail_alloc_after(-1) < 0;
        if (code != (failed ? ORR_ENOMEM : ORR_OK) || (failed && err.code != ORR_ENOMEM))
            check_fail(__FILE__, __LINE__, "request %ld: code %d: %s", n, (int)code, err.message);
        if (!failed)
            break;
        CHECK(n < 5000);
    }
}

TEST(test_source_faults__tables_of_layers)
{
    fail_each(run_layers, false);
    fail_each(run_args, false);
}

TEST(test_source_faults__task_graphs)
{
    fail_each(run_graph, false);
    fail_each(run_graph, true);
}

TEST(test_source_faults__linked_traces)
{
    fail_each(run_linked, false);
    fail_each(run_linked, true);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_source_faults__tables_of_layers),
        RUN(test_source_faults__task_graphs),
        RUN(test_source_faults__linked_traces),
    };
    return RUN_ALL(tests);
}
