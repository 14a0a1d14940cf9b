/* SPDX-License-Identifier: Apache-2.0 */
/* room: chakra */
/* test_link.c - pairs of traces written by hand, and what becomes of them. */
#include "check.h"

#include <orrery/lab/compat.h>

#include "compat/chakra/chakra.h"

/* ---- pairs ---- */

/* An operator: id of the host node and of the function, parent, name, thread, start, duration. */
typedef struct op {
    int id, parent;
    const char *name;
    int tid, ts, dur;
} op;

/* Anything else of the device trace: category, name, thread, start, duration, args. */
typedef struct event {
    const char *cat, *name;
    int tid, ts, dur;
    const char *args;
} event;

typedef struct pair {
    char host[8192], device[8192];
    orr_span host_bytes, device_bytes;
} pair;

static void add(char *to, size_t size, const char *fmt, ...) ORR_PRINTF(3, 4);
static void add(char *to, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(to);
    va_list args;
    va_start(args, fmt);
    const int more = vsnprintf(to + n, size - n, fmt, args);
    va_end(args);
    CHECK(more >= 0 && (size_t)more < size - n);
}

static void add_node(pair *p, int id, int parent, const char *name, int tid, int rf)
{
    add(p->host, sizeof p->host,
        "{\"id\": %d, \"name\": \"%s\", \"ctrl_deps\": %d, \"inputs\": {\"values\": [], \"shapes\": [], \"types\": []}, "
        "\"outputs\": {\"values\": [], \"shapes\": [], \"types\": []}, \"attrs\": [{\"name\": \"rf_id\", \"type\": \"uint64\", "
        "\"value\": %d}, {\"name\": \"tid\", \"type\": \"uint64\", \"value\": %d}]},\n",
        id, name, parent, rf, tid);
}

static void make(pair *p, const op *ops, const event *events)
{
    *p = (pair){0};
    add(p->host, sizeof p->host, "{\"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 1, \"nodes\": [\n");
    add(p->device, sizeof p->device, "{\"traceEvents\": [\n");
    for (; ops->name; ops++) {
        add_node(p, ops->id, ops->parent, ops->name, ops->tid, ops->id);
        add(p->device, sizeof p->device,
            "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 1, \"tid\": %d, \"ts\": %d, \"dur\": %d, "
            "\"args\": {\"External id\": %d, \"Record function id\": %d}},\n",
            ops->name, ops->tid, ops->ts, ops->dur, 100 + ops->id, ops->id);
    }
    for (; events && events->name; events++)
        add(p->device, sizeof p->device,
            "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": %d, \"ts\": %d, \"dur\": %d, \"args\": {%s}},\n",
            events->cat, events->name, events->tid, events->ts, events->dur, events->args);
    add(p->device, sizeof p->device,
        "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#0\", \"pid\": 1, \"tid\": 1, \"ts\": 0, \"dur\": 9000}]}");
    add_node(p, 2, 1, "[pytorch|profiler|execution_trace|thread]", 1, 0);
    add_node(p, 3, 1, "[pytorch|profiler|execution_trace|thread]", 2, 0);
    add_node(p, 1, 1, "[pytorch|profiler|execution_trace|process]", 0, 0);
    p->host[strlen(p->host) - 2] = ' ';
    add(p->host, sizeof p->host, "]}");
    p->host_bytes = (orr_span){(const uint8_t *)p->host, strlen(p->host)};
    p->device_bytes = (orr_span){(const uint8_t *)p->device, strlen(p->device)};
}

static orr_link *link_made(const pair *p, const orr_link_options *opt)
{
    orr_error err;
    orr_link *l;
    CHECK_OK(orr_link_parse(&p->host_bytes, &p->device_bytes, opt, &l, &err), &err);
    return l;
}

static const linked_node *find(const orr_link *l, const char *name)
{
    for (size_t i = 0; i < l->linked->node_count; i++) {
        if (orr_str_is(l->linked->nodes[i].name, name))
            return &l->linked->nodes[i];
    }
    check_fail(__FILE__, __LINE__, "no node %s", name);
    return NULL;
}

static bool has_edge(const orr_link *l, const char *from, const char *to, linked_edge_kind kind)
{
    const uint64_t a = find(l, from)->id, b = find(l, to)->id;
    for (size_t i = 0; i < l->linked->edge_count; i++) {
        const linked_edge *e = &l->linked->edges[i];
        if (e->from == a && e->to == b && e->kind == kind)
            return true;
    }
    return false;
}

static void check_parent(const orr_link *l, const char *child, const char *parent)
{
    CHECK_EQ_U(find(l, child)->parent, find(l, parent)->id);
}

/* ---- parents that cannot be ---- */

/* 20 and 21 are each other's parent and were not measured; 12, which was, has a later one; 22 has
 * one that is missing. */
TEST(test_link__a_cycle_of_parents_is_counted_and_its_nodes_are_remembered)
{
    static const op ops[] = {{10, 2, "a", 1, 10, 100},
                             {11, 10, "b", 1, 20, 30},
                             {12, 13, "c", 1, 60, 5},
                             {13, 10, "d", 1, 70, 5},
                             {0}};
    pair p;
    make(&p, ops, NULL);
    p.host[strlen(p.host) - 2] = ',';
    p.host[strlen(p.host) - 1] = '\n';
    add_node(&p, 20, 21, "x", 1, 0);
    add_node(&p, 21, 20, "y", 1, 0);
    add_node(&p, 22, 99, "z", 1, 0);
    p.host[strlen(p.host) - 2] = ' ';
    add(p.host, sizeof p.host, "]}");
    p.host_bytes.len = strlen(p.host);
    orr_link *l = link_made(&p, NULL);
    const orr_link_counts *counts = orr_link_counts_of(l);
    CHECK_EQ_U(counts->of[ORR_LINK_LATER_PARENTS], 2);
    CHECK_EQ_U(counts->later_nodes[0].node, 12);
    CHECK_EQ_U(counts->later_nodes[0].parent, 13);
    CHECK_EQ_U(counts->later_nodes[1].node, 20);
    CHECK_EQ_U(counts->later_nodes[1].parent, 21);
    CHECK_EQ_U(counts->of[ORR_LINK_NO_ROOT], 1);
    check_parent(l, "x", "[pytorch|profiler|execution_trace|process]");
    check_parent(l, "y", "x");
    check_parent(l, "z", "[pytorch|profiler|execution_trace|process]");
    check_parent(l, "c", "a"); /* by the clock */
    orr_link_close(l);
    l = link_made(&p, &(orr_link_options){.rules = orr_compat_at(ORR_RULES_LINK, 0)->link});
    counts = orr_link_counts_of(l);
    CHECK_EQ_U(counts->of[ORR_LINK_LATER_PARENTS], 1); /* 12 is reached through 13 */
    CHECK_EQ_U(counts->later_nodes[0].node, 20);
    CHECK_EQ_U(counts->of[ORR_LINK_NO_ROOT], 3);
    orr_link_close(l);
}

TEST(test_link__in_strict_mode_a_parent_that_comes_later_is_an_error_with_a_place)
{
    static const op ops[] = {
        {10, 2, "a", 1, 10, 100}, {11, 12, "b", 1, 20, 30}, {12, 10, "c", 1, 60, 5}, {0}};
    orr_error err;
    orr_link *l;
    pair p;
    make(&p, ops, NULL);
    CHECK_EQ(orr_link_parse(&p.host_bytes, &p.device_bytes, &(orr_link_options){.is_strict = true},
                            &l, &err),
             ORR_EINPUT);
    CHECK(strstr(err.message, "node 11 has node 12 for a parent") != NULL);
    CHECK_EQ_U(err.where.line, 3); /* a line a node, behind the one of the schema */
}

/* ---- times ---- */

/* outer 10..110; inside it 20..50, 40..60 and 70..80: their union is 40 + 10, so 50 are its own. */
static const op nested[] = {{10, 2, "outer", 1, 10, 100}, {11, 10, "a", 1, 20, 30},
                            {12, 10, "b", 1, 40, 20},     {13, 10, "c", 1, 70, 10},
                            {14, 11, "d", 1, 25, 5},      {0}};

TEST(test_link__own_time_is_what_no_operator_inside_covers)
{
    pair p;
    make(&p, nested, NULL);
    orr_link *l = link_made(&p, NULL);
    CHECK_EQ(find(l, "outer")->own_ns, 50000);
    CHECK_EQ(find(l, "outer")->duration_ns, 100000);
    CHECK_EQ(find(l, "a")->own_ns, 25000);
    CHECK_EQ(find(l, "d")->own_ns, 5000);
    check_parent(l, "d", "a");
    orr_link_close(l);
}

/* The reference sorts operators that start together by duration, so the inner one comes first and
 * is not seen. */
TEST(test_link__operators_that_start_together_nest_but_not_in_compat_mode)
{
    static const op ops[] = {{10, 2, "outer", 1, 10, 100}, {11, 10, "inner", 1, 10, 30}, {0}};
    pair p;
    make(&p, ops, NULL);
    orr_link *l = link_made(&p, NULL);
    CHECK_EQ(find(l, "outer")->own_ns, 70000);
    check_parent(l, "inner", "outer");
    orr_link_close(l);
    l = link_made(&p, &(orr_link_options){.rules = orr_compat_at(ORR_RULES_LINK, 0)->link});
    CHECK_EQ(l->ops.own[chakra_of(l)->op_of[3]], 100); /* nodes 1, 2, 3, 10, 11 */
    CHECK_EQ(chakra_of(l)->host.nodes[3].id, 10);
    orr_link_close(l);
}

/* Thread 2 begins at 300, when thread 1's b is the last that has ended; after a silence of 2,000
 * thread 1 goes on when y has ended. */
TEST(test_link__a_thread_waits_for_what_ended_elsewhere_in_its_silence)
{
    static const op ops[] = {{10, 2, "a", 1, 10, 100},   {11, 2, "b", 1, 120, 100},
                             {12, 3, "x", 2, 300, 100},  {13, 3, "y", 2, 410, 1000},
                             {14, 2, "c", 1, 1500, 100}, {0}};
    pair p;
    make(&p, ops, NULL);
    orr_link *l = link_made(&p, NULL);
    CHECK(has_edge(l, "b", "x", LINKED_EDGE_THREAD));
    CHECK(has_edge(l, "y", "c", LINKED_EDGE_THREAD));
    CHECK(!has_edge(l, "x", "y", LINKED_EDGE_THREAD));
    CHECK(!has_edge(l, "a", "b", LINKED_EDGE_THREAD));
    orr_link_close(l);
    /* The reference: every operator of x and y's group waits for b (host node 11, index 4), c for y
     * (index 6). */
    l = link_made(&p, &(orr_link_options){.rules = orr_compat_at(ORR_RULES_LINK, 0)->link});
    CHECK_EQ_U(chakra_of(l)->waits_for[5], 4);
    CHECK_EQ_U(chakra_of(l)->waits_for[6], 4);
    CHECK_EQ_U(chakra_of(l)->waits_for[7], 6);
    CHECK_EQ_U(chakra_of(l)->waits_for[4], UINT32_MAX);
    orr_link_close(l);
}

/* ---- the device ---- */

static const op two_ops[] = {
    {10, 2, "outer", 1, 10, 100}, {11, 10, "inner", 1, 20, 30}, {12, 2, "next", 1, 400, 10}, {0}};

TEST(test_link__a_kernel_hangs_on_the_innermost_operator_around_its_launch)
{
    static const event events[] = {
        {"cuda_runtime", "cudaLaunchKernel", 1, 30, 5, "\"correlation\": 1"},
        {"kernel", "k1", 7, 60, 5, "\"correlation\": 1, \"stream\": 7, \"External id\": 110"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 60, 5, "\"correlation\": 2"},
        {"kernel", "k2", 7, 70, 5, "\"correlation\": 2, \"stream\": 7"},
        {"cuda_runtime", "cudaMemsetAsync", 1, 300, 5, "\"correlation\": 3"},
        {"gpu_memset", "fill", 7, 310, 5, "\"correlation\": 3, \"stream\": 7"},
        {"kernel", "lost", 7, 320, 5, "\"correlation\": 99, \"stream\": 7"},
        {0}};
    pair p;
    make(&p, two_ops, events);
    orr_link *l = link_made(&p, NULL);
    check_parent(l, "k1", "inner");
    check_parent(l, "k2", "outer");
    check_parent(l, "fill", "[pytorch|profiler|execution_trace|thread]");
    check_parent(l, "lost", "[pytorch|profiler|execution_trace|process]");
    CHECK(find(l, "fill")->is_memory && !find(l, "k1")->is_memory);
    CHECK_EQ(find(l, "k1")->own_ns, 5000);
    const uint64_t *of = orr_link_counts_of(l)->of;
    CHECK_EQ_U(of[ORR_LINK_PLACED], 2);
    CHECK_EQ_U(of[ORR_LINK_NO_PARENT], 1);
    CHECK_EQ_U(of[ORR_LINK_NO_LAUNCH], 1);
    orr_link_close(l);
}

TEST(test_link__all_operations_of_a_graph_hang_on_its_launch)
{
    static const event events[] = {
        {"cuda_runtime", "cudaGraphLaunch", 1, 30, 5, "\"correlation\": 1"},
        {"kernel", "g1", 7, 60, 5, "\"correlation\": 1, \"stream\": 7, \"graph node id\": 11"},
        {"gpu_memcpy", "g2", 8, 70, 5, "\"correlation\": 1, \"stream\": 8, \"graph node id\": 12"},
        {0}};
    pair p;
    make(&p, two_ops, events);
    orr_link *l = link_made(&p, NULL);
    check_parent(l, "g1", "inner");
    check_parent(l, "g2", "inner");
    CHECK_EQ_U(orr_link_counts_of(l)->of[ORR_LINK_REPLAYED], 2);
    orr_link_close(l);
}

static const event launch_and_wait[] = {
    {"cuda_runtime", "cudaLaunchKernel", 1, 30, 5, "\"correlation\": 1"},
    {"kernel", "k", 7, 60, 300, "\"correlation\": 1, \"stream\": 7"},
    {"cuda_runtime", "cudaDeviceSynchronize", 1, 105, 260, "\"correlation\": 2"},
    {0}};

TEST(test_link__the_operator_behind_a_synchronising_call_waits_for_the_device)
{
    pair p;
    make(&p, two_ops, launch_and_wait);
    orr_link *l = link_made(&p, NULL);
    CHECK(has_edge(l, "k", "next", LINKED_EDGE_SYNC));
    CHECK_EQ_U(orr_link_counts_of(l)->of[ORR_LINK_SYNCS], 1);
    /* The call begins inside outer, whose own 70 us it fills from 105 on. */
    CHECK_EQ(find(l, "outer")->wait_ns, 70000);
    orr_link_close(l);
}

/* Stream 20 waits for what was launched on stream 7 before the event was recorded: k, not later. */
TEST(test_link__a_stream_waits_for_what_a_recorded_event_stands_behind)
{
    static const event events[] = {
        {"cuda_runtime", "cudaLaunchKernel", 1, 20, 5, "\"correlation\": 1"},
        {"kernel", "k", 7, 40, 10, "\"correlation\": 1, \"stream\": 7, \"device\": 0"},
        {"cuda_runtime", "cudaEventRecord", 1, 27, 1, "\"correlation\": 2"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 30, 5, "\"correlation\": 3"},
        {"kernel", "later", 7, 55, 10, "\"correlation\": 3, \"stream\": 7, \"device\": 0"},
        {"cuda_runtime", "cudaStreamWaitEvent", 1, 37, 1, "\"correlation\": 4"},
        {"cuda_sync", "Stream Wait Event", 20, 37, 1,
         "\"correlation\": 4, \"stream\": 20, \"wait_on_stream\": 7, \"wait_on_cuda_event_record_corr_id\": 2, \"device\": 0"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 40, 5, "\"correlation\": 5"},
        {"kernel", "waits", 20, 80, 10, "\"correlation\": 5, \"stream\": 20, \"device\": 0"},
        {0}};
    pair p;
    make(&p, two_ops, events);
    orr_link *l = link_made(&p, NULL);
    CHECK(has_edge(l, "k", "waits", LINKED_EDGE_EVENT));
    CHECK(!has_edge(l, "later", "waits", LINKED_EDGE_EVENT));
    orr_link_close(l);
}

/* No records of waits: the collective waits for the kernel launched before it, the optimizer for
 * the collective. */
TEST(test_link__streams_wait_for_each_other_around_collectives_without_records)
{
    static const op ops[] = {
        {10, 2, "outer", 1, 10, 100}, {11, 2, "Optimizer.step#SGD", 1, 200, 100}, {0}};
    static const event events[] = {
        {"cuda_runtime", "cudaLaunchKernel", 1, 20, 5, "\"correlation\": 1"},
        {"kernel", "gradient", 7, 30, 10, "\"correlation\": 1, \"stream\": 7"},
        {"cuda_runtime", "cudaLaunchKernelExC", 1, 30, 5, "\"correlation\": 2"},
        {"kernel", "ncclDevKernel_AllReduce", 20, 50, 80, "\"correlation\": 2, \"stream\": 20"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 40, 5, "\"correlation\": 3"},
        {"kernel", "other", 7, 60, 10, "\"correlation\": 3, \"stream\": 7"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 210, 5, "\"correlation\": 4"},
        {"kernel", "update", 7, 230, 10, "\"correlation\": 4, \"stream\": 7"},
        {0}};
    pair p;
    make(&p, ops, events);
    orr_link *l = link_made(&p, NULL);
    CHECK(has_edge(l, "gradient", "ncclDevKernel_AllReduce", LINKED_EDGE_EVENT));
    CHECK(has_edge(l, "ncclDevKernel_AllReduce", "update", LINKED_EDGE_EVENT));
    CHECK(!has_edge(l, "ncclDevKernel_AllReduce", "other", LINKED_EDGE_EVENT));
    orr_link_close(l);
}

TEST(test_link__a_backends_worker_follows_its_call_and_is_waited_for)
{
    static const op ops[] = {{10, 2, "c10d::allreduce_", 1, 10, 20},
                             {11, 2, "aten::mm", 1, 35, 20},
                             {12, 2, "gloo:all_reduce", 9, 40, 500},
                             {13, 2, "after", 1, 600, 10},
                             {0}};
    pair p;
    make(&p, ops, NULL);
    orr_link *l = link_made(&p, NULL);
    CHECK(has_edge(l, "c10d::allreduce_", "gloo:all_reduce", LINKED_EDGE_MARK));
    CHECK(has_edge(l, "gloo:all_reduce", "after", LINKED_EDGE_WAIT));
    CHECK(!has_edge(l, "gloo:all_reduce", "aten::mm", LINKED_EDGE_WAIT));
    orr_link_close(l);
}

/* A profiler that wrote no record-function ids: the rows of names are walked together; the host
 * lacks "only there". */
TEST(test_link__pairs_are_found_by_name_where_there_are_no_ids)
{
    static const op ops[] = {{10, 2, "a", 1, 10, 100},
                             {11, 10, "b", 1, 20, 30},
                             {12, 2, "b", 1, 200, 10},
                             {13, 2, "c", 1, 400, 10},
                             {0}};
    static const event events[] = {{"cpu_op", "only there", 1, 150, 5, ""}, {0}};
    pair p;
    make(&p, ops, events);
    for (char *at = p.device; (at = strstr(at, "Record function id"));)
        memcpy(at, "Recorded otherwise", strlen("Recorded otherwise"));
    orr_link *l = link_made(&p, NULL);
    CHECK_EQ_U(orr_link_counts_of(l)->of[ORR_LINK_LINKED], 4);
    CHECK_EQ_U(orr_link_counts_of(l)->of[ORR_LINK_UNTRACED], 1);
    CHECK_EQ(find(l, "a")->own_ns, 70000);
    CHECK_EQ(find(l, "c")->start_ns, 400000);
    orr_link_close(l);
}

/* ---- what is wrong ---- */

TEST(test_link__traces_of_different_runs_are_refused)
{
    static const op other[] = {
        {10, 2, "x", 1, 10, 100}, {11, 10, "y", 1, 20, 30}, {12, 2, "z", 1, 400, 10}, {0}};
    pair p, q;
    orr_error err;
    orr_link *l;
    make(&p, two_ops, NULL);
    make(&q, other, NULL);
    CHECK_CODE(orr_link_parse(&p.host_bytes, &q.device_bytes, NULL, &l, &err), ORR_EINPUT, &err);
    CHECK_SAYS(&err, "not of the same run: 3 operators");
    CHECK(l == NULL);
}

TEST(test_link__trouble_is_counted_and_an_error_when_strict)
{
    static const event events[] = {
        {"kernel", "lost", 7, 320, -5, "\"correlation\": 99, \"stream\": 7"},
        {"kernel", "odd", 7, 330, 5, "\"correlation\": \"many\", \"stream\": 7"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 30, 5, "\"correlation\": 1"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 31, 5, "\"correlation\": 1"},
        {0}};
    pair p;
    orr_error err;
    make(&p, two_ops, events);
    orr_link *l = link_made(&p, NULL);
    const uint64_t *of = orr_link_counts_of(l)->of;
    CHECK_EQ_U(of[ORR_LINK_NEGATIVE_TIMES], 1);
    CHECK_EQ_U(of[ORR_LINK_BAD_EVENTS], 1);
    CHECK_EQ_U(of[ORR_LINK_NO_LAUNCH], 1);
    CHECK_EQ_U(of[ORR_LINK_DUPLICATE_LAUNCHES], 1);
    CHECK_EQ(find(l, "lost")->own_ns, 0);
    orr_link_close(l);
    CHECK_CODE(orr_link_parse(&p.host_bytes, &p.device_bytes,
                              &(orr_link_options){.is_strict = true}, &l, &err),
               ORR_EINPUT, &err);
    CHECK_SAYS(&err, "negative durations, set to 0 (with --strict an error)");
    CHECK(err.where.line > 0);
}

TEST(test_link__a_step_is_what_was_launched_while_it_was_open)
{
    static const op ops[] = {{10, 2, "first", 1, 10, 50}, {11, 2, "second", 1, 9100, 50}, {0}};
    static const event events[] = {
        {"user_annotation", "ProfilerStep#1", 1, 9050, 500, ""},
        {"cuda_runtime", "cudaLaunchKernel", 1, 20, 5, "\"correlation\": 1"},
        {"kernel", "k1", 7, 9200, 5, "\"correlation\": 1, \"stream\": 7"},
        {"cuda_runtime", "cudaLaunchKernel", 1, 9110, 5, "\"correlation\": 2"},
        {"kernel", "k2", 7, 9800, 5, "\"correlation\": 2, \"stream\": 7"},
        {0}};
    pair p;
    orr_error err;
    make(&p, ops, events);
    orr_link *l = link_made(&p, &(orr_link_options){.has_step = true, .step = 1});
    find(l, "second");
    find(l, "k2");
    CHECK_EQ_U(l->linked->node_count, 5); /* a process and two threads beside them */
    orr_link_close(l);
    CHECK_CODE(orr_link_parse(&p.host_bytes, &p.device_bytes,
                              &(orr_link_options){.has_step = true, .step = 4}, &l, &err),
               ORR_EUSAGE, &err);
    CHECK_SAYS(&err, "has steps 0 to 1");
}

TEST(test_link__neither_trace_is_a_mistake_of_the_caller)
{
    orr_error err;
    orr_link *l;
    CHECK_CODE(orr_link_parse(NULL, NULL, NULL, &l, &err), ORR_EUSAGE, &err);
    CHECK_CODE(orr_link_open("host.json", NULL,
                             &(orr_link_options){.rules = orr_compat_at(ORR_RULES_LINK, 0)->link},
                             &l, &err),
               ORR_EUSAGE, &err);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_link__a_cycle_of_parents_is_counted_and_its_nodes_are_remembered),
        RUN(test_link__in_strict_mode_a_parent_that_comes_later_is_an_error_with_a_place),
        RUN(test_link__own_time_is_what_no_operator_inside_covers),
        RUN(test_link__operators_that_start_together_nest_but_not_in_compat_mode),
        RUN(test_link__a_thread_waits_for_what_ended_elsewhere_in_its_silence),
        RUN(test_link__a_kernel_hangs_on_the_innermost_operator_around_its_launch),
        RUN(test_link__all_operations_of_a_graph_hang_on_its_launch),
        RUN(test_link__the_operator_behind_a_synchronising_call_waits_for_the_device),
        RUN(test_link__a_stream_waits_for_what_a_recorded_event_stands_behind),
        RUN(test_link__streams_wait_for_each_other_around_collectives_without_records),
        RUN(test_link__a_backends_worker_follows_its_call_and_is_waited_for),
        RUN(test_link__pairs_are_found_by_name_where_there_are_no_ids),
        RUN(test_link__traces_of_different_runs_are_refused),
        RUN(test_link__trouble_is_counted_and_an_error_when_strict),
        RUN(test_link__a_step_is_what_was_launched_while_it_was_open),
        RUN(test_link__neither_trace_is_a_mistake_of_the_caller),
    };
    return RUN_ALL(tests);
}
