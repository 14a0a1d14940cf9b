/* SPDX-License-Identifier: Apache-2.0 */
/* test_source_faults.c - memory that runs out at every single place where a table of layers or a task graph is read
 * and expanded: it must be said that memory ran out, and sanitizers watch that nothing leaks.
 *
 * src/base/memory.c is compiled into this program with ORR_FAULTS (see meson.build). */
#include "check.h"

#include <orrery/flexflow.h>
#include <orrery/layers.h>

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
    const orr_flexflow_expand opt = {.mhz = 1000, .is_compat = is_compat};
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

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_source_faults__tables_of_layers),
        RUN(test_source_faults__task_graphs),
    };
    return RUN_ALL(tests);
}
