/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_repair.c - pauses and frames that outlive the links they were for: hosts that pause
 * each other, frames that should end a pause and are lost, links that fail and come back. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"
#include "models/network/packet/watch/watchers.h"

#define US 1000000u /* ticks */
#define FILLED FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 1 "

static fabric_told told;
static fabric_words said;

static const char *stall_in_words(void)
{
    said.text[0] = 0;
    fab_explain(told.fabric, fabric_keep_line, &said);
    return said.text;
}

static void run_until(uint64_t ticks)
{
    while (fab_now(told.fabric) < ticks && fab_run(told.fabric, 1))
        ;
}

static void plan(const orr__link_event *events, size_t count)
{
    orr_error err;
    const orr__link_events list = {.events = (orr__link_event *)events, .count = count};
    CHECK_OK(fab_plan(told.fabric, &list, &err), &err);
}

/* All that would arrive at this port is lost, or nothing is. */
static void set_loss(uint32_t port, double error)
{
    told.fabric->ports[port].error = error;
    told.fabric->ports[port].is_lossy = error > 0;
}

/* Both hosts pause each other with their first packet, so each is paused when it should let the
 * other go on.  They stand for 10 us and some frames: 100 packets are 8.3 us, the wire 1 us each
 * way. */
TEST(test_fabric_repair__hosts_that_pause_each_other_go_on)
{
    fabric_make(FABRIC_CONFIG "NIC_TOTAL_PAUSE_TIME 1 ", "2 0 1\n\n0 1 100Gbps 1us 0\n", &told);
    fabric_send(&told, 0, 1, 100000, 0);
    fabric_send(&told, 1, 0, 100000, 1);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 2);
    CHECK_EQ_U(fab_figures_of(told.fabric)->pauses, 2);
    CHECK_EQ_U(fab_figures_of(told.fabric)->resumes, 2);
    CHECK(told.sent_at[0] > 18 * US && told.sent_at[0] < 30 * US);
    CHECK(told.sent_at[1] > 18 * US && told.sent_at[1] < 30 * US);
    fab_destroy(told.fabric);
}

/* Behind a switch it is a cycle of four: hosts 0 and 1 send to each other and pause their switch,
 * whose buffer fills until it pauses them, too. */
TEST(test_fabric_repair__hosts_that_a_switch_pauses_can_let_it_go_on)
{
    fabric_make(FILLED "NIC_TOTAL_PAUSE_TIME 3 ", fabric_star(2, "400Gbps 100ns 0"), &told);
    fabric_send(&told, 0, 1, 5000000, 0);
    fabric_send(&told, 1, 0, 5000000, 1);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 2);
    CHECK(told.fabric->ports[1].pause_count > 0); /* host 0's */
    fab_destroy(told.fabric);
}

/* The frame that ends a host's pause is lost: the pause is over after twice its time all the
 * same. */
TEST(test_fabric_repair__a_hosts_pause_ends_by_itself)
{
    fabric_make(FABRIC_CONFIG "NIC_TOTAL_PAUSE_TIME 1 ", fabric_star(2, "100Gbps 1us 0"), &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    while (!told.fabric->ports[2].paused && fab_run(told.fabric, 1))
        ;
    const uint64_t paused_at = fab_now(told.fabric);
    set_loss(2, 1); /* the switch's end of the link to host 1 */
    while (told.fabric->ports[2].paused && fab_run(told.fabric, 1))
        ;
    CHECK_EQ_U(fab_now(told.fabric), paused_at + 20 * US);
    CHECK_EQ_U(fab_figures_of(told.fabric)->resumes, 0);
    set_loss(2, 0);
    CHECK_EQ_U(told.fabric->ports[2].paused_ticks, 20 * US);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 1);
    fab_destroy(told.fabric);
}

/* Two hosts send to a third until the switch pauses host 0; from then on nothing reaches host 0. */
static void lose_what_ends_a_pause(const char *config)
{
    fabric_make(config, fabric_star(3, "100Gbps 1us 0"), &told);
    fabric_send(&told, 0, 2, 5000000, 0);
    fabric_send(&told, 1, 2, 5000000, 1);
    while (!told.fabric->ports[1].paused && fab_run(told.fabric, 1))
        ;
    set_loss(1, 1);
}

/* A switch pauses a host and its frame that should end that is lost: nobody will ever say it
 * again.  Two hosts send to a third through one switch; nothing reaches host 0 once it is
 * paused. */
TEST(test_fabric_repair__who_is_paused_for_good_is_named)
{
    lose_what_ends_a_pause(FILLED);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 1);
    CHECK(strstr(stall_in_words(),
                 "host 0 port 1 (to switch 3) is paused for good (class 3): the frame that should "
                 "have resumed it was lost on the link (PAUSE_EXPIRES 1 would resume it)\n"));
    CHECK(strstr(said.text, "its host is paused\n"));
    fab_destroy(told.fabric);
}

/* The same with PAUSE_EXPIRES: the port goes on PAUSE_TIME after the frame was lost, and all is
 * done. */
TEST(test_fabric_repair__a_pause_may_expire)
{
    lose_what_ends_a_pause(FILLED "PAUSE_EXPIRES 1 PAUSE_TIME 7 ");
    while (!told.fabric->ports[1].unresumed && fab_run(told.fabric, 1))
        ;
    set_loss(1, 0);
    const uint64_t lost_at = fab_now(told.fabric);
    while (told.fabric->ports[1].paused && fab_run(told.fabric, 1))
        ;
    CHECK_EQ_U(fab_now(told.fabric), lost_at + 7 * US);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 2);
    fab_destroy(told.fabric);
}

/* The same, but the link fails then and is repaired: it begins without pauses, and all is done. */
TEST(test_fabric_repair__a_repaired_link_is_not_paused)
{
    lose_what_ends_a_pause(FILLED);
    plan((const orr__link_event[]){{.at_ps = 1000 * US, .a = 0, .b = 3},
                                   {.at_ps = 1001 * US, .a = 3, .b = 0, .is_up = true}},
         2);
    run_until(1000 * US + fab_now(told.fabric));
    set_loss(1, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 2);
    CHECK(!told.fabric->ports[1].paused && !told.fabric->ports[0].pause_sent);
    fab_destroy(told.fabric);
}

/* The end of a pause is lost, the pause comes again 2 us later, and its end is lost after another
 * us: PAUSE_TIME counts from there on. */
TEST(test_fabric_repair__a_pause_that_came_again_expires_later)
{
    fabric_make(FILLED "PAUSE_EXPIRES 1 PAUSE_TIME 7 ", fabric_star(3, "100Gbps 1us 0"), &told);
    fab_port *p = &told.fabric->ports[1];
    const fab_frame end = {.kind = FAB_FRAME_PFC, .class = 3};
    fab_port_set_paused(told.fabric, p, 1 << 3);
    fab_pause_is_unresumed(told.fabric, p, &end);
    p->unresumed = 0;
    told.fabric->now = 3 * US;
    fab_pause_is_unresumed(told.fabric, p, &end);
    while (p->paused && fab_run(told.fabric, 1))
        ;
    CHECK_EQ_U(fab_now(told.fabric), 10 * US);
    fab_destroy(told.fabric);
}

/* One packet on a wire of 100 us; the link fails after 10 us and is there again before it would
 * arrive.  It is lost all the same, so it comes with the timer, which waits for at least 400 us. */
TEST(test_fabric_repair__what_was_on_a_link_that_failed_is_lost)
{
    fabric_make(FABRIC_CONFIG, "2 0 1\n\n0 1 100Gbps 100us 0\n", &told);
    fabric_send(&told, 0, 1, 1000, 0);
    plan((const orr__link_event[]){{.at_ps = 10 * US, .a = 0, .b = 1},
                                   {.at_ps = 20 * US, .a = 0, .b = 1, .is_up = true}},
         2);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 1);
    CHECK_EQ_U(fab_figures_of(told.fabric)->lost, 1);
    CHECK_EQ_U(fab_figures_of(told.fabric)->timeouts, 1);
    CHECK(told.sent_at[0] > 400 * US);
    fab_destroy(told.fabric);
}

/* What is sent after the repair arrives, the first of it right behind what was lost. */
TEST(test_fabric_repair__what_is_sent_after_the_repair_arrives)
{
    fabric_make(FABRIC_CONFIG, "2 0 1\n\n0 1 100Gbps 100us 0\n", &told);
    fabric_send(&told, 0, 1, 1000, 0);
    plan((const orr__link_event[]){{.at_ps = 40000, .a = 0, .b = 1},
                                   {.at_ps = 41000, .a = 0, .b = 1, .is_up = true}},
         2);
    run_until(41000);
    fabric_send(&told, 1, 0, 1000, 1);
    fabric_send(&told, 0, 1, 1000, 2);
    fabric_run_all(&told);
    CHECK_EQ_U(told.sent, 3);
    CHECK_EQ_U(fab_figures_of(told.fabric)->lost, 1);
    CHECK_EQ_U(told.arrived_at[2], 100 * US + 2 * 82880); /* behind the one that was lost */
    fab_destroy(told.fabric);
}

/* A flow that starts while there is no way waits for the repair, 1 s later, and does nothing until
 * then: it starts at that instant, and the run has no more events than a start, a packet and its
 * acknowledgement need. */
TEST(test_fabric_repair__a_flow_waits_for_a_way_without_asking)
{
    fabric_make(FABRIC_CONFIG, "2 0 1\n\n0 1 100Gbps 1us 0\n", &told);
    plan(
        (const orr__link_event[]){{.at_ps = 1000, .a = 0, .b = 1},
                                  {.at_ps = 1000000 * (uint64_t)US, .a = 0, .b = 1, .is_up = true}},
        2);
    run_until(1000);
    const uint64_t handed_over_at = fab_now(told.fabric);
    orr_fabric_flows all, classes[ORR_FABRIC_CLASSES];
    fabric_send(&told, 0, 1, 1000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived_at[0], 1000000 * (uint64_t)US + 82880 + US);
    CHECK(fab_figures_of(told.fabric)->events < 20);
    /* Its time includes the wait, as that of a flow which the failure interrupts. */
    fab_flow_times_fill(&told.fabric->times, 1, &all, classes);
    CHECK_EQ_U(all.fct_ps[0], told.sent_at[0] - handed_over_at);
    fab_destroy(told.fabric);
}

/* Nothing more is planned and there is still no way: that is an error, as at a start without any
 * plan. */
TEST(test_fabric_repair__a_way_that_never_comes_is_an_error)
{
    orr_error err;
    fabric_make(FABRIC_CONFIG, "3 0 2\n\n0 1 100Gbps 1us 0\n1 2 100Gbps 1us 0\n", &told);
    plan((const orr__link_event[]){{.at_ps = 50 * US, .a = 0, .b = 1}}, 1);
    fabric_send(&told, 0, 2, 1000, 0);
    while (fab_run(told.fabric, 1000))
        ;
    CHECK(fab_status(told.fabric, &err) == ORR_EINPUT);
    CHECK(strstr(err.message, "there is no route from host 0 to host 2"));
    CHECK_EQ_U(fab_now(told.fabric), 50 * US);
    fab_destroy(told.fabric);
}

/* Two cables join the nodes: a failure takes both, whichever end is named first, and a repair
 * brings both back. */
TEST(test_fabric_repair__cables_side_by_side_fail_together)
{
    fabric_make(FABRIC_CONFIG,
                "3 1 3\n2\n0 2 100Gbps 1us 0\n2 1 100Gbps 1us 0\n1 2 100Gbps 1us 0\n", &told);
    plan((const orr__link_event[]){{.at_ps = 10 * US, .a = 1, .b = 2},
                                   {.at_ps = 20 * US, .a = 2, .b = 1, .is_up = true}},
         2);
    fabric_send(&told, 0, 1, 1000000, 0);
    run_until(10 * US);
    while (!told.fabric->ports[5].is_down && fab_run(told.fabric, 1))
        ;
    CHECK(told.fabric->ports[2].is_down && told.fabric->ports[4].is_down);
    CHECK(!told.fabric->ports[0].is_down);
    fabric_run_all(&told);
    CHECK(!told.fabric->ports[2].is_down && !told.fabric->ports[5].is_down);
    CHECK_EQ_U(told.sent, 1);
    fab_destroy(told.fabric);
}

/* Failures are found among the links at once, not one by one: 100,000 of them on as many links
 * would take minutes. */
TEST(test_fabric_repair__as_many_failures_as_links)
{
    enum { HOSTS = 100000, LINE = 40 };
    static orr__packet_config c;
    orr__cabling cabling = {0};
    orr__link_events events = {0};
    orr_error err;
    char *topology = malloc((size_t)LINE * HOSTS), *list = malloc((size_t)LINE * HOSTS);
    CHECK(topology && list);
    int at = snprintf(topology, LINE, "%d 1 %d\n%d\n", HOSTS + 1, HOSTS, HOSTS), end = 0;
    for (int i = 0; i < HOSTS; i++) {
        at += snprintf(topology + at, LINE, "%d %d 1Gbps 1us 0\n", HOSTS, i);
        end += snprintf(list + end, LINE, "%dus down %d %d\n", i + 1, HOSTS - 1 - i, HOSTS);
    }
    CHECK_OK(orr__cabling_parse(&cabling, fabric_span(topology), "t.txt", &err), &err);
    CHECK_OK(orr__link_events_parse(&events, &cabling, fabric_span(list), "e.txt", &err), &err);
    CHECK_EQ_U(events.count, HOSTS);
    orr__packet_config_defaults(&c, NULL);
    CHECK_OK(orr__packet_config_parse(&c, fabric_span(FABRIC_CONFIG "GLOBAL_T 0 ENABLE_PFC 0 "),
                                      "c.txt", &err),
             &err);
    CHECK_OK(fab_create_watched(&c, &cabling, NULL, &told.fabric, &err), &err);
    CHECK_OK(fab_plan(told.fabric, &events, &err), &err);
    CHECK_EQ_U(told.fabric->planned, HOSTS);
    fab_destroy(told.fabric);
    orr__link_events_fini(&events);
    orr__cabling_fini(&cabling);
    free(topology);
    free(list);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_repair__hosts_that_pause_each_other_go_on),
        RUN(test_fabric_repair__hosts_that_a_switch_pauses_can_let_it_go_on),
        RUN(test_fabric_repair__a_hosts_pause_ends_by_itself),
        RUN(test_fabric_repair__who_is_paused_for_good_is_named),
        RUN(test_fabric_repair__a_pause_may_expire),
        RUN(test_fabric_repair__a_pause_that_came_again_expires_later),
        RUN(test_fabric_repair__a_repaired_link_is_not_paused),
        RUN(test_fabric_repair__what_was_on_a_link_that_failed_is_lost),
        RUN(test_fabric_repair__what_is_sent_after_the_repair_arrives),
        RUN(test_fabric_repair__a_flow_waits_for_a_way_without_asking),
        RUN(test_fabric_repair__a_way_that_never_comes_is_an_error),
        RUN(test_fabric_repair__cables_side_by_side_fail_together),
        RUN(test_fabric_repair__as_many_failures_as_links),
    };
    return RUN_ALL(tests);
}
