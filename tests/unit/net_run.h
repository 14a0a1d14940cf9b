/* SPDX-License-Identifier: Apache-2.0 */
/* net_run.h - messages over a network without ranks that run: a clock, the matching of messages,
 * and one network.
 *
 *     net_run r;
 *     net_run_open_file(&r, "ranks: 2\nlinks: [...]");
 *     uint32_t first = net_run_send(&r, 0, 0, 1, 1000);       // at tick 0 from rank 0 to rank 1, 1000 bytes
 *     net_run_all(&r);
 *     CHECK_EQ_U(r.arrived[first], 520);
 *     net_run_close(&r); */
#ifndef ORR_TESTS_NET_RUN_H
#define ORR_TESTS_NET_RUN_H

#include "check.h"
#include "models/network/net_time.h"

#include "models/network/net_table.h"
#include "models/network/routes.h"
#include "run/match.h"
#include "run/run_state.h"

enum { NET_RUN_RANKS = 128, NET_RUN_MESSAGES = 4096 };

typedef struct net_run {
    orr_sim sim;
    run_npu npus[NET_RUN_RANKS];
    uint64_t arrived[NET_RUN_MESSAGES]; /* ORR_NEVER: not yet */
    struct {
        uint32_t src, dst;
        uint64_t size;
    } message[NET_RUN_MESSAGES];
    uint32_t count;
} net_run;

__attribute__((unused)) static void net_run_open(net_run *r,
                                                 const orr_net_ops *ops,
                                                 const orr_net_config *cfg,
                                                 uint32_t ranks)
{
    orr_error err;
    CHECK(ranks <= NET_RUN_RANKS);
    r->count = 0;
    r->sim =
        (orr_sim){.npu_count = ranks, .npus = r->npus, .net_ops = ops, .rules = &run_rules_ours};
    r->sim.clock = clk_create();
    r->sim.matcher = msg_create(&r->sim);
    CHECK(r->sim.clock && r->sim.matcher);
    for (uint32_t i = 0; i < ranks; i++)
        r->npus[i] = (run_npu){.sim = &r->sim, .rank = i};
    CHECK_OK(ops->create(cfg, &r->sim.net, &err), &err);
}

/* A link-level topology. */
__attribute__((unused)) static orr__topology *net_run_parse(const char *text)
{
    orr__topology *t;
    orr_error err;
    const orr_span bytes = {(const uint8_t *)text, strlen(text)};
    CHECK_OK(orr__topology_parse(bytes, "net.yml", ORR__MOST_LINKS, &t, &err), &err);
    CHECK(t != NULL);
    return t;
}

__attribute__((unused)) static void net_run_open_links(net_run *r,
                                                       const orr_net_ops *ops,
                                                       orr__topology *t)
{
    const orr__net_config own = {
        .config = {.size = sizeof own, .where = orr_where_byte("net.yml", ORR_NO_BYTE)},
        .topology = t};
    net_run_open(r, ops, &own.config, t->ranks);
    r->sim.topology = t;
}

__attribute__((unused)) static void net_run_open_topology(net_run *r, orr__topology *t)
{
    net_run_open_links(r, &orr__net_graph, t);
}

__attribute__((unused)) static void net_run_open_file(net_run *r, const char *text)
{
    net_run_open_topology(r, net_run_parse(text));
}

static void net_run_arrived(void *run, uint64_t message)
{
    net_run *r = run;
    r->arrived[message] = orr__net_now(&r->sim);
}

static void net_run_send_now(void *run, uint64_t i)
{
    net_run *r = run;
    const clk_call done = {net_run_arrived, r, i};
    msg_send(&r->npus[r->message[i].src], (uint32_t)i, r->message[i].dst, r->message[i].size, done);
}

__attribute__((unused)) static uint32_t net_run_send(
    net_run *r, uint64_t at, uint32_t src, uint32_t dst, uint64_t size)
{
    const uint32_t i = r->count++;
    CHECK(i < NET_RUN_MESSAGES);
    r->message[i].src = src;
    r->message[i].dst = dst;
    r->message[i].size = size;
    r->arrived[i] = ORR_NEVER;
    clk_at(r->sim.clock, at, net_run_send_now, r, i);
    return i;
}

/* Until nothing is left; the code of a failure. */
__attribute__((unused)) static orr_code net_run_all(net_run *r)
{
    while (clk_step(r->sim.clock))
        ;
    return r->sim.code;
}

/* What a link carried; all zero when it carried nothing. */
typedef struct net_run_query {
    const char *name;
    orr_net_link found;
} net_run_query;

static void net_run_visit(void *context, const orr_net_link *link)
{
    net_run_query *q = context;
    if (strcmp(q->name, link->name) == 0)
        q->found = *link;
}

__attribute__((unused)) static orr_net_link net_run_link(const net_run *r, const char *name)
{
    net_run_query q = {.name = name};
    r->sim.net_ops->report(r->sim.net, net_run_visit, &q);
    return q.found;
}

__attribute__((unused)) static void net_run_close(net_run *r)
{
    r->sim.net_ops->destroy(r->sim.net);
    orr__topology_destroy(r->sim.topology);
    msg_destroy(r->sim.matcher);
    clk_destroy(r->sim.clock);
}

/* Links of a way, and its latency. */
static inline uint32_t net_run_way(const orr__topology *t,
                                   uint32_t from,
                                   uint32_t to,
                                   double *latency)
{
    orr__routes *r;
    orr_error err;
    uint32_t n = 0, l;
    *latency = 0;
    CHECK_OK(orr__routes_create(t, 0, &r, &err), &err);
    while ((l = orr__routes_next(r, from, to, 1, &err)) != NET_LINK_ARRIVED) {
        CHECK(l != NET_LINK_NONE);
        *latency += t->links[l].latency;
        from = t->links[l].to;
        n++;
    }
    orr__routes_destroy(r);
    return n;
}

#endif
