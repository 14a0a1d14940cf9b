/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_approx.c - stretches that repeat themselves are passed over, and nothing comes out
 * differently: the same networks with APPROX 0 and 1. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"
#include "models/network/packet/watch/watchers.h"

#define LINK "100Gbps 1us 0"

typedef struct flow_of {
    uint32_t src, dst;
    uint64_t size;
} flow_of;

static fabric_told exact, quick;

static void run(
    const char *config, const char *topology, const flow_of *flows, unsigned count, fabric_told *t)
{
    fabric_make(config, topology, t);
    for (unsigned i = 0; i < count; i++)
        fabric_send(t, flows[i].src, flows[i].dst, flows[i].size, i);
    fabric_run_all(t);
    CHECK_EQ_U(t->arrived, count);
}

/* All that is counted is the same in both. */
static void compare_figures(void)
{
    const fab_figures *a = fab_figures_of(exact.fabric);
    const fab_figures *b = fab_figures_of(quick.fabric);
    CHECK_EQ_U(b->data_packets, a->data_packets);
    CHECK_EQ_U(b->data_bytes, a->data_bytes);
    CHECK_EQ_U(b->acks, a->acks);
    CHECK_EQ_U(b->nacks, a->nacks);
    CHECK_EQ_U(b->pauses, a->pauses);
    CHECK_EQ_U(b->resumes, a->resumes);
    CHECK_EQ_U(b->timeouts, a->timeouts);
    for (uint32_t i = 0; i < exact.fabric->port_count; i++) {
        const fab_port *p = &exact.fabric->ports[i], *q = &quick.fabric->ports[i];
        CHECK_EQ_U(q->frames_sent, p->frames_sent);
        CHECK_EQ_U(q->bytes_sent, p->bytes_sent);
        CHECK_EQ_U(q->busy_ticks, p->busy_ticks);
        CHECK_EQ_U(q->pause_count, p->pause_count);
        CHECK_EQ_U(q->paused_ticks, p->paused_ticks);
        CHECK_EQ_U(q->max_queued, p->max_queued);
    }
}

/* To the picosecond; at most `share` of the events are run. */
static void compare(
    const char *more, const char *topology, const flow_of *flows, unsigned count, double share)
{
    char config[600];
    snprintf(config, sizeof config, FABRIC_CONFIG "%s", more);
    run(config, topology, flows, count, &exact);
    snprintf(config, sizeof config, FABRIC_CONFIG "%s APPROX 1", more);
    run(config, topology, flows, count, &quick);
    const fab_figures *a = fab_figures_of(exact.fabric);
    const fab_figures *b = fab_figures_of(quick.fabric);
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQ_U(quick.arrived_at[i], exact.arrived_at[i]);
        CHECK_EQ_U(quick.sent_at[i], exact.sent_at[i]);
    }
    compare_figures();
    CHECK(b->skips > 0 && b->skipped > 0);
    CHECK((double)b->events < share * (double)a->events);
    CHECK_EQ_U(a->skips, 0);
    fab_destroy(exact.fabric);
    fab_destroy(quick.fabric);
}

TEST(test_fabric_approx__a_lone_flow)
{
    const flow_of one = {0, 1, 100000000};
    compare("HAS_WIN 0 ", fabric_star(2, LINK), &one, 1, 0.1);
    compare("", fabric_star(2, LINK), &one, 1, 0.1); /* a window that holds it back, a little */
}

TEST(test_fabric_approx__incast_with_windows)
{
    flow_of flows[8];
    for (uint32_t i = 0; i < 8; i++)
        flows[i] = (flow_of){i, 8, 10000000 + 100000 * i};
    compare("", fabric_star(9, LINK), flows, 8, 0.2);
}

/* Flows that end at different times, one after the other, and ways of different length. */
TEST(test_fabric_approx__a_ring_over_leaves)
{
    flow_of flows[8];
    for (uint32_t i = 0; i < 8; i++)
        flows[i] = (flow_of){i, (i + 1) % 8, 20000000 + 1000000 * (i % 3) + 123};
    compare("GLOBAL_T 0 ", fabric_leaves(4, 1, LINK), flows, 8, 0.3);
}

/* Without windows senders are paused, in a pattern that comes back. */
TEST(test_fabric_approx__pauses_come_back)
{
    const flow_of flows[] = {{0, 2, 30000000}, {1, 2, 30000000}};
    compare("HAS_WIN 0 BUFFER_SIZE 1 ", fabric_star(3, LINK), flows, 2, 0.2);
}

/* Acknowledgements by interval, and chunks that are no multiple of a packet. */
TEST(test_fabric_approx__acknowledgements_by_interval)
{
    const flow_of one = {0, 1, 50000500};
    compare("L2_ACK_INTERVAL 4000 L2_CHUNK_SIZE 6000 ", fabric_star(2, LINK), &one, 1, 0.1);
}

/* Nothing is passed over that comes from outside: a link fails in the middle, and is repaired. */
TEST(test_fabric_approx__failures_are_kept)
{
    orr__link_event list[] = {{2000000000, 0, 1, false, 1}, {3000000000, 1, 0, true, 2}};
    const orr__link_events plan = {.events = list, .count = 2};
    uint64_t at[2];
    orr_error err;
    for (int i = 0; i < 2; i++) {
        fabric_told *t = i ? &quick : &exact;
        fabric_make(i ? FABRIC_CONFIG "APPROX 1 " : FABRIC_CONFIG, "2 0 1\n\n0 1 " LINK "\n", t);
        CHECK_OK(fab_plan(t->fabric, &plan, &err), &err);
        fabric_send(t, 0, 1, 100000000, 0);
        fabric_run_all(t);
        at[i] = t->arrived_at[0];
    }
    CHECK_EQ_U(at[1], at[0]);
    CHECK(fab_figures_of(quick.fabric)->skips >= 2);
    fab_destroy(exact.fabric);
    fab_destroy(quick.fabric);
}

/* Stars and leaves with links of different speed, flows of any size at once, windows or pauses:
 * whatever comes out without is what comes out with it. */
TEST(test_fabric_approx__random_networks)
{
    enum { RUNS = 24, FLOWS = 6 };
    static const char *const links[] = {"100Gbps 1us 0", "40Gbps 700ns 0", "25Gbps 1.3us 0"};
    static const char *const keys[] = {"", "HAS_WIN 0 BUFFER_SIZE 1 ", "GLOBAL_T 0 ",
                                       "L2_ACK_INTERVAL 4000 L2_CHUNK_SIZE 6000 "};
    uint64_t seed = 1, skips = 0;
    for (unsigned run_number = 0; run_number < RUNS; run_number++) {
        flow_of flows[FLOWS];
        char config[600];
        for (unsigned i = 0; i < FLOWS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const uint32_t src = (uint32_t)(seed >> 40) % 6, other = (uint32_t)(seed >> 50) % 5;
            flows[i] = (flow_of){src, (src + 1 + other) % 6, 1 + (seed >> 20) % 12000000};
        }
        const char *link = links[(seed >> 33) % 3], *more = keys[(seed >> 37) % 4];
        for (int is_quick = 0; is_quick < 2; is_quick++) {
            snprintf(config, sizeof config, FABRIC_CONFIG "%sAPPROX %d", more, is_quick);
            run(config, run_number % 2 ? fabric_star(6, link) : fabric_leaves(3, 2, link), flows,
                FLOWS, is_quick ? &quick : &exact);
        }
        for (unsigned i = 0; i < FLOWS; i++)
            CHECK_EQ_U(quick.sent_at[i], exact.sent_at[i]);
        compare_figures();
        skips += fab_figures_of(quick.fabric)->skips;
        fab_destroy(exact.fabric);
        fab_destroy(quick.fabric);
    }
    CHECK(skips >= RUNS / 2);
}

/* Unasked, a long run skips too, and nothing tells: not even how many events it had, nor, with marks
 * that coins decide, how many there were.  Here it is called long after 300 events. */
TEST(test_fabric_approx__long_runs_skip_unasked)
{
    enum { RUNS = 48, FLOWS = 6 };
    static const char *const links[] = {"100Gbps 1us 0", "40Gbps 700ns 0", "25Gbps 1.3us 0"};
    static const char *const keys[] = {"",
                                       "HAS_WIN 0 BUFFER_SIZE 1 ",
                                       "GLOBAL_T 0 ",
                                       "L2_ACK_INTERVAL 4000 L2_CHUNK_SIZE 6000 ",
                                       "ENABLE_PFC 0 QUEUE_LIMIT 30000 ",
                                       "KMIN_MAP 1 100000000000 20 KMAX_MAP 1 100000000000 60 "
                                       "PMAX_MAP 1 100000000000 0.3 "};
    uint64_t seed = 7, passed = 0;
    for (unsigned run_number = 0; run_number < RUNS; run_number++) {
        flow_of flows[FLOWS];
        char config[600];
        for (unsigned i = 0; i < FLOWS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const uint32_t src = (uint32_t)(seed >> 40) % 6, other = (uint32_t)(seed >> 50) % 5;
            flows[i] = (flow_of){src, (src + 1 + other) % 6, 1 + (seed >> 20) % 12000000};
        }
        const char *link = links[run_number % 6 == 5 ? 0 : (seed >> 33) % 3];
        const char *topology = run_number % 2 ? fabric_star(6, link) : fabric_leaves(3, 2, link);
        snprintf(config, sizeof config, FABRIC_CONFIG "%sAPPROX 0", keys[run_number % 6]);
        run(config, topology, flows, FLOWS, &exact);
        snprintf(config, sizeof config, FABRIC_CONFIG "%s", keys[run_number % 6]);
        fabric_make(config, topology, &quick);
        for (unsigned i = 0; i < FLOWS; i++)
            fabric_send(&quick, flows[i].src, flows[i].dst, flows[i].size, i);
        CHECK_EQ_U(fab_run(quick.fabric, 1), 1);
        CHECK(quick.fabric->approx && !quick.fabric->approx->is_asked);
        quick.fabric->approx->wait = quick.fabric->approx->patience = 300;
        fabric_run_all(&quick);
        for (unsigned i = 0; i < FLOWS; i++) {
            CHECK_EQ_U(quick.arrived_at[i], exact.arrived_at[i]);
            CHECK_EQ_U(quick.sent_at[i], exact.sent_at[i]);
        }
        compare_figures();
        passed += quick.fabric->approx->passed > 0;
        const fab_figures *a = fab_figures_of(exact.fabric), *b = fab_figures_of(quick.fabric);
        CHECK_EQ_U(b->events, a->events);
        CHECK_EQ_U(b->marked, a->marked);
        CHECK_EQ_U(b->dropped, a->dropped);
        CHECK_EQ_U(b->retransmitted_bytes, a->retransmitted_bytes);
        CHECK_EQ_U(b->skips, 0);
        fab_destroy(exact.fabric);
        fab_destroy(quick.fabric);
    }
    CHECK(passed >= RUNS / 3);
}

/* What it is not sound for is refused. */
TEST(test_fabric_approx__is_refused_where_states_do_not_come_back)
{
    static const char *const wrong[] = {"CC_MODE 3",
                                        "CC_MODE 8",
                                        "TRANSPORT selective",
                                        "LOAD_BALANCE spray",
                                        "ERROR_RATE_PER_LINK 0.1",
                                        "NIC_TOTAL_PAUSE_TIME 3"};
    static orr__packet_config c;
    orr__cabling cabling = {0};
    fab *f;
    orr_error err;
    char config[400];
    CHECK_OK(orr__cabling_parse(&cabling, fabric_span(fabric_star(3, LINK)), "t", &err), &err);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(config, sizeof config, FABRIC_CONFIG "APPROX 1 %s", wrong[i]);
        orr__packet_config_defaults(&c, NULL);
        CHECK_OK(orr__packet_config_parse(&c, fabric_span(config), "c", &err), &err);
        CHECK_CODE(fab_create_watched(&c, &cabling, NULL, &f, &err), ORR_EINPUT, &err);
        CHECK_SAYS(&err, "APPROX cannot be used with");
    }
    orr__cabling_fini(&cabling);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_approx__a_lone_flow),
        RUN(test_fabric_approx__incast_with_windows),
        RUN(test_fabric_approx__a_ring_over_leaves),
        RUN(test_fabric_approx__pauses_come_back),
        RUN(test_fabric_approx__acknowledgements_by_interval),
        RUN(test_fabric_approx__failures_are_kept),
        RUN(test_fabric_approx__random_networks),
        RUN(test_fabric_approx__long_runs_skip_unasked),
        RUN(test_fabric_approx__is_refused_where_states_do_not_come_back),
    };
    return RUN_ALL(tests);
}
