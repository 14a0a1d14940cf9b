/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_lossy.c - networks that drop or trim packets instead of pausing senders, and windows
 * set by NSCC.
 *
 * A packet of 1000 bytes is 1036 on the wire, 82.88 ns at 100 Gb/s; a star with links of 1 us has a
 * round trip of 4 us and 2 * 80 ns, which holds 52,000 bytes. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"

#define PACKET 82880u /* ps */
#define LINK "100Gbps 1us 0"
#define BASE                                                                           \
    "RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 GLOBAL_T 0 " \
    "KMIN_MAP 1 100000000000 10 KMAX_MAP 1 100000000000 40 PMAX_MAP 1 100000000000 1 "
#define NSCC BASE "CC_MODE 11 TRANSPORT selective "
#define LOSSY "ENABLE_PFC 0 QUEUE_LIMIT 52000 "

static fabric_told told;

static const fab_figures *figures(void)
{
    return fab_figures_of(told.fabric);
}

/* `senders` hosts send as much to the last host of a star, at once. */
static void incast(const char *config, unsigned senders, uint64_t packets)
{
    fabric_make(config, fabric_star(senders + 1, LINK), &told);
    for (uint32_t i = 0; i < senders; i++)
        fabric_send(&told, i, senders, packets * 1000, i);
    fabric_run_all(&told);
}

static uint64_t latest(unsigned flows)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < flows; i++)
        most = told.arrived_at[i] > most ? told.arrived_at[i] : most;
    return most;
}

/* Jain's index of the mean rates of equal flows: 1 if all are as fast. */
static double fairness(unsigned flows)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < flows; i++) {
        const double rate = 1 / (double)told.arrived_at[i];
        sum += rate;
        squares += rate * rate;
    }
    return sum * sum / (flows * squares);
}

/* The receiver's link carries all packets, and each waits for the switch once: nothing is
 * faster. */
static uint64_t ideal(unsigned flows, uint64_t packets)
{
    return (flows * packets + 1) * PACKET + 2000000;
}

/* A window of one and a half times what the way holds never holds a lone flow back: it is as fast
 * as without. */
TEST(test_fabric_lossy__a_lone_flow_runs_at_line_rate)
{
    fabric_make(NSCC LOSSY, fabric_star(2, LINK), &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived_at[0], ideal(1, 1000));
    CHECK_EQ_U(figures()->data_packets, 1000);
    CHECK_EQ_U(figures()->marked, 0);
    fab_destroy(told.fabric);
}

/* Two packets fit into a window of 2500 bytes; one is sent whatever the window is. */
TEST(test_fabric_lossy__packets_fit_whole_into_the_window)
{
    static const uint64_t windows[] = {2500, 2000, 999};
    static const uint64_t sent[] = {2000, 2000, 1000};
    for (unsigned i = 0; i < 3; i++) {
        fabric_make(NSCC LOSSY, fabric_star(2, LINK), &told);
        fabric_send(&told, 0, 1, 100000, 0);
        while (!told.fabric->flows[0].in_flight && fab_run(told.fabric, 1))
            ;
        told.fabric->flows[0].window = windows[i];
        fab_nic_update(told.fabric, 0);
        while (fab_now(told.fabric) < 3 * 1000000 && fab_run(told.fabric, 1))
            ;
        CHECK_EQ_U(told.fabric->flows[0].in_flight, sent[i]);
        fabric_run_all(&told);
        CHECK_EQ_U(told.sent, 1);
        fab_destroy(told.fabric);
    }
}

/* The longest way is 202 us and 2 x 80 ns there and back, and holds 2,527,000 bytes; the window
 * begins as one and a half of that.  The first packet from 0 to 1 is back after 2 x 1082.88 and 2 x
 * 1003.84 ns, so its window becomes 4173.44 / 202160 of it: 78,252 bytes. */
TEST(test_fabric_lossy__the_window_follows_the_shortest_round_trip)
{
    fabric_make(NSCC "GLOBAL_T 1 " LOSSY,
                "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 100us 0\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    while (fab_now(told.fabric) < 4000000 && fab_run(told.fabric, 1))
        ;
    CHECK_EQ_U(told.fabric->flows[0].window, 3790500);
    while (fab_now(told.fabric) < 40000000 && fab_run(told.fabric, 1))
        ;
    CHECK_EQ_U(told.fabric->flows[0].window, 78252);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived_at[0], ideal(1, 1000));
    fab_destroy(told.fabric);
}

/* 64 senders, a queue of 50 packets: what finds no room is cut, told of and sent again, and the
 * receiver's link is never idle for long.  Headers of 36 bytes are what this costs. */
TEST(test_fabric_lossy__trimmed_incast_is_near_line_rate_without_timeouts)
{
    incast(NSCC LOSSY "TRIMMING 1 ", 64, 200);
    CHECK_EQ_U(told.sent, 64);
    CHECK_EQ_U(figures()->timeouts, 0);
    CHECK_EQ_U(figures()->dropped, 0);
    CHECK(figures()->trimmed > 0);
    CHECK_EQ_U(figures()->nacks, figures()->trimmed);
    /* exactly what was cut is sent again */
    CHECK_EQ_U(figures()->retransmitted_bytes, figures()->trimmed * 1000);
    CHECK(latest(64) >= ideal(64, 200));
    CHECK((double)latest(64) < 1.05 * (double)ideal(64, 200));
    CHECK(fairness(64) >= 0.95);
    fab_destroy(told.fabric);
}

/* The same without trimming: drops are found out by timers, and it takes longer. */
TEST(test_fabric_lossy__untrimmed_incast_needs_timeouts)
{
    incast(NSCC LOSSY, 64, 200);
    CHECK_EQ_U(told.sent, 64);
    CHECK(figures()->dropped > 0);
    CHECK(figures()->timeouts > 0);
    CHECK_EQ_U(figures()->trimmed, 0);
    CHECK((double)latest(64) > 1.05 * (double)ideal(64, 200));
    fab_destroy(told.fabric);
}

/* Switches keep to the limit of a queue; what does not fit is gone. */
TEST(test_fabric_lossy__a_queue_has_its_limit)
{
    incast(BASE "CC_MODE 0 HAS_WIN 0 TRANSPORT selective " LOSSY, 3, 300);
    CHECK_EQ_U(told.sent, 3);
    CHECK(figures()->dropped > 0);
    for (uint32_t i = 0; i < told.fabric->port_count; i++)
        CHECK(told.fabric->ports[i].max_queued <= 52000);
    CHECK_EQ_U(told.fabric->nodes[4].shared, 0); /* all accounts are closed */
    CHECK_EQ_U(figures()->pauses, 0);
    fab_destroy(told.fabric);
}

/* Of 16 MiB without a limit, one full queue takes half: T = free = all - T. */
TEST(test_fabric_lossy__a_queue_without_a_limit_takes_half_of_the_buffer)
{
    incast(BASE "CC_MODE 0 HAS_WIN 0 TRANSPORT selective BUFFER_SIZE 1 ENABLE_PFC 0 ", 3, 1500);
    const uint64_t most = told.fabric->ports[2 * 3].max_queued; /* towards host 3 */
    CHECK(most <= 1 << 19 && most > (1 << 19) - 2 * 1036);
    CHECK_EQ_U(told.sent, 3);
    fab_destroy(told.fabric);
}

/* Eight long flows that do not begin alike become so: what each gets between 6 and 10 ms. */
TEST(test_fabric_lossy__long_flows_become_fair)
{
    enum { FLOWS = 8 };
    uint64_t before[FLOWS] = {0};
    double sum = 0, squares = 0;
    fabric_make(NSCC LOSSY "TRIMMING 1 ", fabric_star(FLOWS + 1, LINK), &told);
    for (uint32_t i = 0; i < FLOWS; i++)
        fabric_send(&told, i, FLOWS, 18000000, i);
    while (told.fabric->now < 6000000000u && fab_run(told.fabric, 100))
        ;
    for (uint32_t i = 0; i < FLOWS; i++)
        before[i] = told.fabric->flows[i].acked;
    while (told.fabric->now < 10000000000u && fab_run(told.fabric, 100))
        ;
    for (uint32_t i = 0; i < FLOWS; i++) {
        const double rate = (double)(told.fabric->flows[i].acked - before[i]);
        sum += rate;
        squares += rate * rate;
    }
    CHECK(sum * sum / (FLOWS * squares) >= 0.95);
    CHECK(sum > 0.98 * 4e6 / 82.88 * 1000); /* bytes of 4 ms at line rate */
    CHECK_EQ_U(figures()->timeouts, 0);
    fab_destroy(told.fabric);
}

/* ---- the equations of NSCC, by hand ---- T = 4.16 us, B = 52,000 bytes, D = 3.12 us, M = 1000; a
 * = 52/150, b = 0.26, so 4ab = 0.3605333, 5a = 1.7333333 and 0.15 a M = 52.  The window begins at
 * 78,000 and is set to 20,000 here. */

enum { T_PS = 4160000, D_PS = 3120000 };

static fab_flow *a_flow(void)
{
    fabric_make(NSCC LOSSY "TRIMMING 1 ", fabric_star(2, LINK), &told);
    fabric_send(&told, 0, 1, 10000000, 0);
    while (!told.fabric->flows[0].line_rate)
        (void)fab_run(told.fabric, 1);
    CHECK_EQ_U(told.fabric->flows[0].window, 78000);
    told.fabric->flows[0].window = 20000;
    return &told.fabric->flows[0];
}

static void acknowledge(fab_flow *w, uint64_t delay, bool is_marked)
{
    fab *f = told.fabric;
    const fab_frame ack = {
        .kind = FAB_FRAME_ACK, .echoes_mark = is_marked, .stamp = f->now - T_PS - delay};
    w->repeat->news = 1000;
    w->repeat->losses = 0;
    fab_nscc.acked(f, 0, &ack);
}

static void lose_one(fab_flow *w)
{
    const fab_frame nack = {.kind = FAB_FRAME_NACK, .echoes_mark = true, .stamp = 0};
    w->repeat->news = 0;
    w->repeat->losses = 1000;
    fab_nscc.acked(told.fabric, 0, &nack);
}

/* 20,000 + 1000 * 360.533 / 2 / 20,000 + 52 */
TEST(test_fabric_lossy__nscc_increases_quickly)
{
    fab_flow *w = a_flow();
    told.fabric->now = 20000000;
    acknowledge(w, D_PS / 2, false);
    CHECK_EQ_U(w->window, 20061);
    fab_destroy(told.fabric);
}

/* 20,000 + 1000 * 1733.333 / 20,000 + 52 */
TEST(test_fabric_lossy__nscc_increases_fairly)
{
    fab_flow *w = a_flow();
    told.fabric->now = 20000000;
    acknowledge(w, D_PS, false);
    CHECK_EQ_U(w->window, 20138);
    fab_destroy(told.fabric);
}

TEST(test_fabric_lossy__nscc_holds)
{
    fab_flow *w = a_flow();
    told.fabric->now = 20000000;
    acknowledge(w, D_PS / 2, true);
    CHECK_EQ_U(w->window, 20052);
    fab_destroy(told.fabric);
}

/* The mean of delays of 2 D from 0 on is 2 D (1 - 0.9875^k), above D from k = 56 on: 1.0112014 D
 * there.  Then 1 - 0.8 * 0.0112014 / 1.0112014 = 0.9911381 of 20,052; at once no further. */
TEST(test_fabric_lossy__nscc_decreases)
{
    fab_flow *w = a_flow();
    told.fabric->now = 20000000;
    for (int i = 0; i < 55; i++)
        acknowledge(w, 2 * D_PS, true);
    CHECK_EQ_U(w->window, 20052);
    acknowledge(w, 2 * D_PS, true);
    CHECK_EQ_U(w->window, 19874);
    acknowledge(w, 2 * D_PS, true);
    CHECK_EQ_U(w->window, 19874);
    fab_destroy(told.fabric);
}

/* What is lost is taken off; after T + D the window is what came through, if that is less than
 * 78,000 / 8. */
TEST(test_fabric_lossy__nscc_adapts_after_losses)
{
    fab_flow *w = a_flow();
    told.fabric->now = 20000000;
    acknowledge(w, D_PS / 2, true);
    lose_one(w);
    CHECK_EQ_U(w->window, 19052);
    for (int i = 0; i < 3; i++)
        acknowledge(w, D_PS / 2, true);
    told.fabric->now += T_PS + D_PS + 1;
    acknowledge(w, D_PS / 2, true);
    CHECK_EQ_U(w->window, 4000); /* the first acknowledgement began the time, four came in it */
    fab_destroy(told.fabric);
}

/* Three packets of ten are lost, and the timer (1.3 ms: a full buffer) is all that makes a flow go
 * on.  Looks every 10 us see that nothing moves for longer than 1 ms; that is no stall, and
 * changes no time. */
TEST(test_fabric_lossy__who_waits_for_a_timer_does_not_stand_still)
{
    enum { FLOWS = 20 };
    static uint64_t alone[FLOWS];
    static const char *const ways[] = {FABRIC_CONFIG, FABRIC_CONFIG "SERIES_FILE s.csv ",
                                       FABRIC_CONFIG "BW_MON_FILE b.txt BW_MON_INTERVAL 10 "};
    for (unsigned k = 0; k < 3; k++) {
        fabric_make(ways[k], fabric_star(3, "100Gbps 1us 0.3"), &told);
        for (unsigned i = 0; i < FLOWS; i++)
            fabric_send(&told, i % 2, 2, 5000, i);
        fabric_run_all(&told);
        CHECK_EQ_U(told.sent, FLOWS);
        for (unsigned i = 0; i < FLOWS; i++) {
            alone[i] = k ? alone[i] : told.sent_at[i];
            CHECK_EQ_U(told.sent_at[i], alone[i]);
        }
        CHECK(told.fabric->figures.timeouts > 0);
        fab_destroy(told.fabric);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_lossy__a_lone_flow_runs_at_line_rate),
        RUN(test_fabric_lossy__packets_fit_whole_into_the_window),
        RUN(test_fabric_lossy__the_window_follows_the_shortest_round_trip),
        RUN(test_fabric_lossy__trimmed_incast_is_near_line_rate_without_timeouts),
        RUN(test_fabric_lossy__untrimmed_incast_needs_timeouts),
        RUN(test_fabric_lossy__a_queue_has_its_limit),
        RUN(test_fabric_lossy__a_queue_without_a_limit_takes_half_of_the_buffer),
        RUN(test_fabric_lossy__long_flows_become_fair),
        RUN(test_fabric_lossy__nscc_increases_quickly),
        RUN(test_fabric_lossy__nscc_increases_fairly),
        RUN(test_fabric_lossy__nscc_holds),
        RUN(test_fabric_lossy__nscc_decreases),
        RUN(test_fabric_lossy__nscc_adapts_after_losses),
        RUN(test_fabric_lossy__who_waits_for_a_timer_does_not_stand_still),
    };
    return RUN_ALL(tests);
}
