/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_set_combine.c - random jobs of two to five ranks, with groups and holes, placed on one machine.
 *
 * The first four bytes choose the jobs' sizes, the placement, hosts that stay idle, groups and the network;
 * eight bytes are a node of one of the jobs, and may say that its peer, group or tag differs from rank to
 * rank.  What cannot be moved is refused with words.  Of what is moved: every rank lies on one host and does
 * there what it did alone, with its peers and groups where these lie, and nobody else does anything.  A job
 * alone on hosts in its own order runs as the traces it was made of, to the picosecond. */
#include "fuzz_trace.h"
#include "fuzz_ways.h"

#include "base/text/number.h"
#include "trace/set_impl.h"

#include <orrery/lab/goal.h>
#include <orrery/run.h>

enum { JOBS = 3, MOST_RANKS = 5, HEAD = 4, NODE_BYTES = 8, MOST_NODES = 24, MOST_EVENTS = 1500 };
enum { SLOT_GROUP, SLOT_PEER, SLOT_TAG, SLOTS };

typedef struct job {
    orr_set *set;
    uint32_t ranks;
} job;

static orr_attr whole(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT64, .value = {.i = v}};
}

static orr_attr small(const char *name, int64_t v)
{
    return (orr_attr){.name = orr_str_of(name), .kind = ORR_VALUE_INT32, .value = {.i = v}};
}

static orr_attr text(const char *name, const char *v)
{
    return (orr_attr){
        .name = orr_str_of(name), .kind = ORR_VALUE_STRING, .value = {.s = orr_str_of(v)}};
}

static void add_hole(
    orr_hole *holes, size_t *count, uint32_t node, orr_hole_field field, uint32_t slot)
{
    holes[(*count)++] = (orr_hole){node, field, slot};
}

/* Peers may be ranks that are not there, groups may be unknown or have no number. */
static void add_node(orr_trace *t,
                     uint32_t node,
                     const uint8_t *p,
                     uint32_t ranks,
                     orr_hole *holes,
                     size_t *hole_count)
{
    static const uint32_t types[] = {ORR_NODE_COMP, ORR_NODE_COMM_COLL, ORR_NODE_COMM_SEND,
                                     ORR_NODE_COMM_RECV};
    static const char *const groups[] = {"",  "0",  "1",  "2",
                                         "9", "tp", "-1", "18446744073709551615"};
    const uint32_t type = types[p[0] >> 2 & 3];
    const uint64_t before = node;
    const int64_t peer = p[5] & 128 ? (int64_t)(int8_t)p[5] : (int64_t)(p[5] % ranks);
    orr_attr a[5];
    orr_error err;
    orr_draft d = {.id = node + 1,
                   .name = orr_str_of("n"),
                   .type = type,
                   .data_deps = &before,
                   .data_count = node > 0 && p[1] & 1,
                   .duration_us = p[2],
                   .attrs = a};
    if (type != ORR_NODE_COMP)
        a[d.attr_count++] = whole("comm_size", p[4] * INT64_C(64));
    if (type == ORR_NODE_COMM_COLL) {
        a[d.attr_count++] = whole("comm_type", p[3] % 11);
        if (p[5] & 64)
            a[d.attr_count++] = small(p[5] & 32 ? "comm_src" : "comm_dst", peer);
    } else if (type != ORR_NODE_COMP) {
        a[d.attr_count++] = small(type == ORR_NODE_COMM_SEND ? "comm_dst" : "comm_src", peer);
        a[d.attr_count++] = small("comm_tag", p[6] % 3);
        if (p[7] & 1)
            add_hole(holes, hole_count, node,
                     type == ORR_NODE_COMM_SEND ? ORR_HOLE_COMM_DST : ORR_HOLE_COMM_SRC, SLOT_PEER);
        if (p[7] & 2)
            add_hole(holes, hole_count, node, ORR_HOLE_COMM_TAG, p[7] & 8 ? SLOT_PEER : SLOT_TAG);
    }
    if (type != ORR_NODE_COMP && p[6] & 4) {
        a[d.attr_count++] = text("pg_name", groups[p[6] >> 3 & 7]);
        if (p[7] & 4)
            add_hole(holes, hole_count, node, ORR_HOLE_PG_NAME, p[7] & 8 ? SLOT_PEER : SLOT_GROUP);
    }
    REQUIRE(orr_trace_append(t, &d, &err) == ORR_OK);
}

static orr_set *make_job(const uint8_t *data, size_t size, uint32_t number, uint32_t ranks)
{
    const uint8_t how = data[2];
    orr_hole holes[3 * MOST_NODES];
    size_t hole_count = 0;
    uint32_t class_index, nodes = 0;
    orr_trace *t;
    orr_set *s;
    orr_error err;
    REQUIRE(orr_trace_create(NULL, &t, &err) == ORR_OK);
    for (size_t at = HEAD; at + NODE_BYTES <= size; at += NODE_BYTES)
        if ((data[at] & 3) == number)
            add_node(t, nodes++, data + at, ranks, holes, &hole_count);
    if (!nodes)
        add_node(t, 0, (const uint8_t[NODE_BYTES]){0}, ranks, holes, &hole_count);
    REQUIRE(orr_trace_seal(t, &err) == ORR_OK && orr_set_create(&s, &err) == ORR_OK);
    for (uint32_t g = 1; g <= 2; g++) {
        uint32_t members[MOST_RANKS], count = 0;
        for (uint32_t r = 0; r < ranks; r++)
            if (how >> (r + g * number) % 8 & 1)
                members[count++] = g == 1 ? r : ranks - 1 - r;
        if (count)
            REQUIRE(orr_set_add_group(s, g, members, count, &err) == ORR_OK);
    }
    REQUIRE(orr_set_add_class(s, t, holes, hole_count, SLOTS, &class_index, &err) == ORR_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        const int64_t values[SLOTS] = {(how >> r) % 4, (r + 1 + (how & 1)) % (ranks + (how == 255)),
                                       r % 2};
        REQUIRE(orr_set_add_rank_values(s, class_index, 100 * r, values, &err) == ORR_OK);
    }
    return s;
}

/* ---- what each rank does ---- */

typedef struct placed {
    const orr_set *set, *joined;
    const uint32_t *host_of; /* of this job */
    uint32_t ranks;
} placed;

static bool find_group(const orr_set *s, int64_t id, orr_group *out)
{
    for (uint32_t i = 0; i < orr_set_group_count(s); i++)
        if (id >= 0 && orr_set_group(s, i).id == (uint64_t)id) {
            *out = orr_set_group(s, i);
            return true;
        }
    return false;
}

static int64_t group_named(const orr_trace *t, uint32_t node)
{
    const orr_columns *c = orr_trace_columns(t);
    int64_t id = 0;
    if (c->pg_name && c->pg_name[node] != ORR_NO_NAME &&
        !orr_text_i64(orr_trace_text(t, c->pg_name[node]), &id))
        id = 0;
    return id;
}

static void compare_peer(const placed *x, const int64_t *own, const int64_t *there, uint32_t node)
{
    const int64_t peer = own ? own[node] : ORR_NO_VALUE;
    if (peer == ORR_NO_VALUE)
        REQUIRE(!there || there[node] == ORR_NO_VALUE);
    else
        REQUIRE(peer >= 0 && peer < x->ranks && there && there[node] == x->host_of[peer]);
}

static void compare_group(const placed *x,
                          const orr_trace *own,
                          const orr_trace *there,
                          uint32_t node)
{
    orr_group a, b;
    REQUIRE(find_group(x->joined, group_named(there, node), &b));
    const bool is_known = find_group(x->set, group_named(own, node), &a);
    REQUIRE(b.count == (is_known ? a.count : x->ranks));
    for (uint32_t i = 0; i < b.count; i++)
        REQUIRE(b.ranks[i] == x->host_of[is_known ? a.ranks[i] : i]);
}

static void compare_rank(const placed *x, uint32_t rank)
{
    const orr_trace *a, *b;
    orr_trace *own_a, *own_b;
    orr_error err;
    REQUIRE(orr_set_rank_trace(x->set, rank, &a, &own_a, &err) == ORR_OK);
    REQUIRE(orr_set_rank_trace(x->joined, x->host_of[rank], &b, &own_b, &err) == ORR_OK);
    const orr_columns *m = orr_trace_columns(a), *n = orr_trace_columns(b);
    REQUIRE(m->count == n->count &&
            orr_set_id_shift(x->set, rank) == orr_set_id_shift(x->joined, x->host_of[rank]));
    for (uint32_t i = 0; i < m->count; i++) {
        REQUIRE(m->type[i] == n->type[i] && m->id[i] == n->id[i]);
        compare_peer(x, m->comm_src, n->comm_src, i);
        compare_peer(x, m->comm_dst, n->comm_dst, i);
        if (m->comm_tag)
            REQUIRE(n->comm_tag && m->comm_tag[i] == n->comm_tag[i]);
        if (m->type[i] == ORR_NODE_COMM_COLL)
            compare_group(x, a, b, i);
    }
    orr_trace_destroy(own_a);
    orr_trace_destroy(own_b);
}

static void compare_jobs(const orr_set *joined, const job *jobs, size_t count)
{
    uint32_t busy = 0;
    REQUIRE(joined->job_count == count);
    for (size_t j = 0; j < count; j++) {
        const uint32_t *hosts = joined->job_hosts + joined->job_first[j];
        const placed x = {jobs[j].set, joined, hosts, jobs[j].ranks};
        REQUIRE(joined->job_first[j + 1] - joined->job_first[j] == jobs[j].ranks);
        for (uint32_t r = 0; r < jobs[j].ranks; r++, busy++) {
            REQUIRE(hosts[r] < orr_set_rank_count(joined) && joined->job_on[hosts[r]] == j + 1);
            compare_rank(&x, r);
        }
    }
    for (uint32_t h = 0; h < orr_set_rank_count(joined); h++)
        busy += joined->job_on[h] == 0;
    REQUIRE(busy == orr_set_rank_count(joined));
}

/* ---- runs ---- */

static orr_code run(const orr_set *set, const uint8_t *data, orr_ps *end, uint32_t *finished)
{
    static const char *const networks[] = {"fluid", "unaware", "aware", "graph"};
    const uint32_t ranks = orr_set_rank_count(set);
    orr_error err = {0};
    orr_run *r;
    const orr_net_config dims = {.size = sizeof dims,
                                 .dims = 1,
                                 .shape = {ORR_NET_SWITCH},
                                 .npus = {ranks},
                                 .bandwidth = {50},
                                 .latency_ns = {500}};
    const orr_run_config config = {.size = sizeof config,
                                   .set = set,
                                   .traces = "fuzz",
                                   .dims = &dims,
                                   .network = networks[data[3] & 3],
                                   .fold = data[3] & 4 ? ORR_RUN_FOLD_VERIFY : ORR_RUN_FOLD_AUTO,
                                   .steps = data[3] & 8 ? 2 : 1,
                                   .threads = 1,
                                   .max_events = MOST_EVENTS};
    orr_code code = orr_run_create(&config, &r, &err);
    REQUIRE(!code || (err.message[0] && code != ORR_EBUG));
    if (code)
        return code;
    code = orr_run_to_end(r, &err);
    REQUIRE(code != ORR_EBUG && (!code || err.message[0]));
    REQUIRE(!code || !strstr(err.message, "no reason was found"));
    *end = orr_run_time(r);
    *finished = orr_run_finished(r);
    REQUIRE(code || *finished == ranks);
    orr_run_destroy(r);
    return code;
}

/* A limit may be reached by the one and not by the other: groups are told apart by events. */
static void compare_runs(const orr_set *joined, const job *jobs, size_t count, const uint8_t *data)
{
    orr_ps alone = 0, together = 0;
    uint32_t some = 0, all = 0;
    const orr_code code = run(joined, data, &together, &all);
    if (count > 1 || orr_set_rank_count(joined) != jobs[0].ranks || (data[1] & 3) > 1)
        return;
    const orr_code other = run(jobs[0].set, data, &alone, &some);
    if (!code && !other)
        REQUIRE(alone == together);
    REQUIRE(code == other || code == ORR_ESTOP || other == ORR_ESTOP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"[[0,1,2,3,4],[5,6],[7,8]]", "[[9,8],[1,0,4],[2,3]]",
                                        "[[1,0],[3,2],[5,4]]", "[[0,1],[1,2]]"};
    if (size < HEAD || size > HEAD + MOST_NODES * NODE_BYTES)
        return 0;
    const size_t count = 1 + data[0] % JOBS;
    job jobs[JOBS];
    const orr_set *sets[JOBS];
    uint32_t ranks = 0;
    for (size_t j = 0; j < count; j++) {
        jobs[j].ranks = 2 + ((uint32_t)data[0] >> (2 + 2 * j)) % 4;
        jobs[j].set = make_job(data, size, (uint32_t)j, jobs[j].ranks);
        sets[j] = jobs[j].set;
        ranks += jobs[j].ranks;
    }
    const char *file = files[data[1] >> 2 & 3];
    const orr_goal_machine machine = {.hosts = ranks + (data[1] >> 4 & 7) - (data[1] == 255),
                                      .placement = (orr_goal_placement)(data[1] & 3),
                                      .seed = data[1] >> 4,
                                      .file = fuzz_file(1, (const uint8_t *)file, strlen(file))};
    orr_error err = {0};
    orr_set *joined;
    const orr_code code = orr_set_combine(sets, count, &machine, &joined, &err);
    REQUIRE(!code == (joined != NULL) && (!code || (err.message[0] && code != ORR_EBUG)));
    enum { COMPARE_JOBS, COMPARE_RUNS, WAYS };
    FUZZ_WAYS(way, WAYS, data, size)
    {
        if (joined && way == COMPARE_JOBS)
            compare_jobs(joined, jobs, count);
        if (joined && way == COMPARE_RUNS)
            compare_runs(joined, jobs, count, data);
    }
    orr_set_close(joined);
    for (size_t j = 0; j < count; j++)
        orr_set_close(jobs[j].set);
    return 0;
}
