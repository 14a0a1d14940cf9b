/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sim_traces.c - random traces of four ranks through a run, to its end.
 *
 * Eight bytes are a node, so that every input is a workload; the first two choose machine and network.  A
 * run comes to its end, says in words why it cannot, or reaches its limit of events.  Of one that ends:
 * every rank has finished, none after the run; no part of a rank's time is longer than the run; and, with
 * messages alone, the run has as many as there are sends. */
#include "fuzz_trace.h"

#include <orrery/run.h>

enum { RANKS = 4, NODE_BYTES = 8, MOST_NODES = 16 };
#ifdef FUZZ_ONE_WAY
enum { MOST_EVENTS = 1500, TAKEN = 10 };
#else
enum { MOST_EVENTS = 3000, TAKEN = MOST_NODES };
#endif

static orr_attr whole(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = v}};
}

static int64_t size_of(uint8_t b)
{
    static const int64_t sizes[] = {0,       1,       2,  7,         64,      1000,
                                    4096,    65536,   -1, INT64_MAX, 1 << 20, (1 << 20) + 1,
                                    1 << 24, 1 << 30, 3,  12345};
    return sizes[b & 15];
}

static size_t put_attrs(orr_attr *a, uint32_t type, const uint8_t *p)
{
    size_t n = 0;
    if (type == ORR_NODE_COMM_COLL) {
        static const char *const groups[] = {"", "1", "2", "3"};
        a[n++] = whole("comm_type", p[3] % 11);
        a[n++] = whole("comm_size", size_of(p[4]));
        if (p[5] & 4)
            a[n++] = (orr_attr){.name = orr_str_of("pg_name"),
                                .kind = ORR_VALUE_STRING,
                                .value = {.s = orr_str_of(groups[p[5] & 3])}};
        if (p[5] & 8)
            a[n++] = whole("comm_priority", (int8_t)p[6]);
        if (p[5] & 32)
            a[n++] = whole("root_rank", p[6] % (RANKS + 1));
    } else if (type == ORR_NODE_COMM_SEND || type == ORR_NODE_COMM_RECV) {
        a[n++] = whole("comm_size", size_of(p[4]));
        a[n++] = whole(type == ORR_NODE_COMM_SEND ? "comm_dst" : "comm_src", p[5] % RANKS);
        a[n++] = whole("comm_tag", p[6] % 3);
    } else {
        a[n++] = whole("num_ops", size_of(p[3]));
        a[n++] = whole("tensor_size", size_of(p[4]));
    }
    if (p[7] & 1)
        a[n++] = (orr_attr){
            .name = orr_str_of("is_cpu_op"), .kind = ORR_VALUE_BOOL, .value = {.u = p[7] >> 1 & 1}};
    return n;
}

/* Dependencies go to one of the eight nodes before, of any rank: those of other ranks are missing. */
static void add_node(orr_trace *t, uint64_t id, const uint8_t *p)
{
    static const uint32_t types[] = {ORR_NODE_COMP,      ORR_NODE_COMM_COLL, ORR_NODE_COMM_SEND,
                                     ORR_NODE_COMM_RECV, ORR_NODE_COMM_SEND, ORR_NODE_COMM_RECV,
                                     ORR_NODE_COMM_COLL, ORR_NODE_COMP};
    const uint64_t deps[2] = {id - (p[1] % 8 + 1u), id - (p[1] / 8 % 8 + 1u)};
    const uint32_t type = types[p[0] >> 2 & 7];
    orr_attr a[8];
    orr_error err;
    const orr_draft d = {.id = id,
                         .name = orr_str_of("n"),
                         .type = type,
                         .data_deps = deps,
                         .data_count = (p[1] >> 6) % 3,
                         .duration_us = p[2],
                         .attrs = a,
                         .attr_count = put_attrs(a, type, p)};
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

static orr_set *make_set(const uint8_t *data, size_t size, bool is_same)
{
    orr_trace *ranks[RANKS];
    orr_set *set;
    orr_error err;
    for (int r = 0; r < RANKS; r++)
        REQUIRE(orr_trace_create(NULL, &ranks[r], &err) == ORR_OK);
    for (size_t i = 0; (i + 1) * NODE_BYTES <= size && i < TAKEN; i++)
        for (int r = 0; r < RANKS; r++)
            if (is_same || (data[i * NODE_BYTES] & 3) == r)
                add_node(ranks[r], i + 100, data + i * NODE_BYTES);
    REQUIRE(orr_set_create(&set, &err) == ORR_OK);
    for (int r = 0; r < RANKS; r++)
        REQUIRE(orr_trace_seal(ranks[r], &err) == ORR_OK &&
                orr_set_add(set, ranks[r], &err) == ORR_OK);
    return set;
}

static void check_result(orr_run *r)
{
    const orr_ps end = orr_run_time(r);
    REQUIRE(orr_run_finished(r) == RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        const orr_run_rank *rank = orr_run_rank_at(r, i);
        REQUIRE(rank && rank->finished_at >= 0 && rank->finished_at <= end);
        REQUIRE(rank->gpu_time <= end && rank->comm_time <= end && rank->cpu_time <= end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const networks[] = {"fluid", "unaware", "aware", "graph"};
    static const char *groups;
    static const char group_text[] = "{\"1\":[0,1,2,3],\"2\":[0,1],\"3\":[1,2,3]}";
    orr_error err = {0};
    orr_run *run;
    if (size < 2 || size > 2 + MOST_NODES * NODE_BYTES)
        return 0;
    if (!groups)
        groups = fuzz_file(1, (const uint8_t *)group_text, sizeof group_text - 1);
    const unsigned how = data[0], how2 = data[1];
    orr_set *set = make_set(data + 2, size - 2, how2 & 1);
    const orr_net_config dims = {.size = sizeof dims,
                                 .dims = 1,
                                 .shape = {how & 4   ? ORR_NET_RING
                                           : how & 8 ? ORR_NET_FULLY_CONNECTED
                                                     : ORR_NET_SWITCH},
                                 .npus = {RANKS},
                                 .bandwidth = {50},
                                 .latency_ns = {how & 16 ? 0 : 500}};
    const orr_system system = {.size = sizeof system,
                               .policy = how2 & 2 ? "FIFO" : "LIFO",
                               .chunks = how2 >> 2 & 3,
                               .peak_flops = 1e12,
                               .has_roofline = how2 & 16};
    const orr_run_config config = {.size = sizeof config,
                                   .set = set,
                                   .traces = "fuzz",
                                   .own_system = &system,
                                   .dims = &dims,
                                   .groups = groups,
                                   .network = networks[how & 3],
                                   .rendezvous = how & 32,
                                   .fold = how & 64 ? ORR_RUN_FOLD_VERIFY : ORR_RUN_FOLD_AUTO,
                                   .threads = 1,
                                   .records = how & 128 ? ORR_RUN_SPANS : 0,
                                   .max_events = MOST_EVENTS};
    orr_code code = orr_run_create(&config, &run, &err);
    if (code) {
        REQUIRE(err.message[0] && code != ORR_EBUG);
        orr_set_close(set);
        return 0;
    }
    code = orr_run_to_end(run, &err);
    REQUIRE(code != ORR_EBUG);
    if (!code)
        check_result(run);
    else
        REQUIRE(err.message[0] && !strstr(err.message, "no reason was found"));
    if (code == ORR_EINPUT)
        (void)orr_run_stall_line(run, 0);
    orr_run_destroy(run);
    orr_set_close(set);
    return 0;
}
