/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_keys.c - keys of config.txt for which there are no figures of the reference, one test
 * each. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"

#define US 1000000u /* ticks */

static fabric_told told;

static void run_until(uint64_t ticks)
{
    while (fab_now(told.fabric) < ticks && fab_run(told.fabric, 1))
        ;
}

/* HEADROOM_FACTOR: 100 Gb/s times 1 us are 12,500 bytes; what two ports set aside is not there to
 * be shared. */
TEST(test_fabric_keys__headroom_is_so_many_times_what_is_on_the_wire)
{
    static const char *const factors[] = {"", "HEADROOM_FACTOR 0 ", "HEADROOM_FACTOR 5 "};
    static const uint32_t bytes[] = {3 * 12500, 0, 5 * 12500};
    char config[200];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(config, sizeof config, FABRIC_CONFIG "%s", factors[i]);
        fabric_make(config, fabric_star(2, "100Gbps 1us 0"), &told);
        CHECK_EQ_U(told.fabric->ports[0].headroom, bytes[i]);
        CHECK_EQ_U(told.fabric->nodes[2].available, (16 << 20) - 2 * (bytes[i] + 4096));
        fab_destroy(told.fabric);
    }
}

/* ERROR_RATE_PER_LINK: of links whose line says 0.  All is lost there; a link with a rate of its
 * own keeps that. */
TEST(test_fabric_keys__error_rate_is_of_links_without_their_own)
{
    static const char *const links[] = {"2 0 1\n\n0 1 100Gbps 1us 0\n",
                                        "2 0 1\n\n0 1 100Gbps 1us 1e-12\n"};
    for (unsigned i = 0; i < 2; i++) {
        fabric_make(FABRIC_CONFIG "ERROR_RATE_PER_LINK 1 ", links[i], &told);
        fabric_send(&told, 0, 1, 10000, 0);
        fabric_run_all(&told);
        CHECK_EQ_U(told.sent, i);
        CHECK((fab_figures_of(told.fabric)->lost == 0) == (i == 1));
        fab_destroy(told.fabric);
    }
}

/* LINK_DOWN: at its time, and not 2 s later as in the reference. */
TEST(test_fabric_keys__link_down_at_its_time)
{
    fabric_make(FABRIC_CONFIG "LINK_DOWN 10 1 0 ", "2 0 1\n\n0 1 100Gbps 1us 0\n", &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    while (!told.fabric->ports[0].is_down && fab_run(told.fabric, 1))
        ;
    CHECK_EQ_U(fab_now(told.fabric), 10 * US);
    CHECK(told.fabric->ports[1].is_down);
    fab_destroy(told.fabric);
}

/* NIC_TOTAL_PAUSE_TIME: the receiver pauses three times, 10 us each, and no more although the flow
 * goes on for 4 ms.  A frame that is being sent keeps a pause waiting, 3.84 ns at most here. */
TEST(test_fabric_keys__a_nic_pauses_so_often)
{
    fabric_make(FABRIC_CONFIG "NIC_TOTAL_PAUSE_TIME 3 ", fabric_star(2, "100Gbps 1us 0"), &told);
    fabric_send(&told, 0, 1, 60000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(fab_figures_of(told.fabric)->pauses, 3);
    CHECK_EQ_U(fab_figures_of(told.fabric)->resumes, 3);
    CHECK(told.sent_at[0] > 4000 * (uint64_t)US);
    const uint64_t paused = told.fabric->ports[2].paused_ticks;
    CHECK(paused > 30 * US - 3 * 3840 && paused < 30 * US + 3 * 3840);
    fab_destroy(told.fabric);
}

/* PINT_PROB: with 0 no acknowledgement is looked at, and two hosts that send to one stay at the
 * speed of their links. */
TEST(test_fabric_keys__pint_looks_at_a_share_of_acknowledgements)
{
    static const char *const shares[] = {"PINT_PROB 0 ", "PINT_PROB 1 "};
    char config[200];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(config, sizeof config, FABRIC_CONFIG "CC_MODE 10 HAS_WIN 0 %s", shares[i]);
        fabric_make(config, fabric_star(3, "100Gbps 1us 0"), &told);
        fabric_send(&told, 0, 2, 1000000, 0);
        fabric_send(&told, 1, 2, 1000000, 1);
        run_until(40 * US);
        CHECK((told.fabric->flows[0].rate == told.fabric->flows[0].line_rate) == (i == 0));
        fab_destroy(told.fabric);
    }
}

static unsigned highest_power(void)
{
    unsigned most = 0;
    for (size_t i = 0; i < told.fabric->frame_count; i++)
        if (told.fabric->frames[i].power > most)
            most = told.fabric->frames[i].power;
    return most;
}

/* PINT_LOG_BASE: a port that is always busy writes log(512), 9 to the base of 2 and 127.9 to that
 * of 1.05, rounded by a coin; the average wavers by a tenth, which is 0.15 and 2. */
TEST(test_fabric_keys__pint_writes_powers_of_its_base)
{
    static const char *const bases[] = {"PINT_LOG_BASE 2 ", "PINT_LOG_BASE 1.05 "};
    static const unsigned least[] = {8, 125}, most[] = {10, 131};
    char config[200];
    for (unsigned i = 0; i < 2; i++) {
        snprintf(config, sizeof config, FABRIC_CONFIG "CC_MODE 10 HAS_WIN 0 PINT_PROB 0 %s",
                 bases[i]);
        fabric_make(config, fabric_star(2, "100Gbps 1us 0"), &told);
        fabric_send(&told, 0, 1, 1000000, 0);
        run_until(50 * US);
        CHECK(highest_power() >= least[i] && highest_power() <= most[i]);
        fab_destroy(told.fabric);
    }
}

/* How often the rate of flow 0 changes until it is done. */
static unsigned count_rates(const char *config)
{
    unsigned count = 0;
    fabric_make(config, fabric_star(2, "100Gbps 1us 0"), &told);
    fabric_send(&told, 0, 1, 500000, 0);
    uint64_t before = 0;
    while (!told.sent && fab_run(told.fabric, 1)) {
        count += told.fabric->flows[0].rate != before;
        before = told.fabric->flows[0].rate;
    }
    fab_destroy(told.fabric);
    return count;
}

/* SAMPLE_FEEDBACK: between round trips HPCC passes over hops without a queue.  Alone, a flow has
 * none, so its rate changes once a round trip, of which 500 packets of 86 ns have about ten; else
 * many times in each. */
TEST(test_fabric_keys__hpcc_may_pass_over_empty_queues)
{
    CHECK(count_rates(FABRIC_CONFIG "CC_MODE 3 MULTI_RATE 0 SAMPLE_FEEDBACK 1 ") < 20);
    CHECK(count_rates(FABRIC_CONFIG "CC_MODE 3 MULTI_RATE 0 SAMPLE_FEEDBACK 0 ") > 100);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_keys__headroom_is_so_many_times_what_is_on_the_wire),
        RUN(test_fabric_keys__error_rate_is_of_links_without_their_own),
        RUN(test_fabric_keys__link_down_at_its_time),
        RUN(test_fabric_keys__a_nic_pauses_so_often),
        RUN(test_fabric_keys__pint_looks_at_a_share_of_acknowledgements),
        RUN(test_fabric_keys__pint_writes_powers_of_its_base),
        RUN(test_fabric_keys__hpcc_may_pass_over_empty_queues),
    };
    return RUN_ALL(tests);
}
