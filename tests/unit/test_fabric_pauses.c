/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_pauses.c - who pauses whom: chains with their heads, storms, and cycles that nothing
 * opens. */
#include "fabrics.h"

#include "models/network/packet/engine/fabric_impl.h"

#define LINK "100Gbps 1us 0"

static fabric_told told;
static fabric_words said;

static const char *pauses_in_words(void)
{
    said.text[0] = 0;
    fab_explain_pauses(told.fabric, fabric_keep_line, &said);
    return said.text;
}

/* Hosts 0 and 1 at switch 3, then 4, then 5, and host 2 behind a link of a tenth of the speed:
 *     0, 1 -> 3 -> 4 -> 5 => 2
 * Switch 5 pauses 4, which pauses 3, which pauses the hosts: three behind each other, and the head
 * is 5's port to 2. */
static void make_line(const char *more)
{
    char config[400];
    snprintf(config, sizeof config, FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 1 %s", more);
    fabric_make(config,
                "6 3 5\n3 4 5\n0 3 " LINK "\n1 3 " LINK "\n3 4 " LINK "\n4 5 " LINK
                "\n5 2 10Gbps 1us 0\n",
                &told);
    fabric_send(&told, 0, 2, 2000000, 0);
    fabric_send(&told, 1, 2, 2000000, 1);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived, 2);
}

TEST(test_fabric_pauses__a_chain_leads_to_its_head)
{
    make_line("");
    CHECK_EQ_U(told.fabric->ports[0].deepest, 3); /* host 0 */
    CHECK_EQ_U(told.fabric->ports[4].deepest, 2); /* switch 3 to 4 */
    CHECK_EQ_U(told.fabric->ports[6].deepest, 1); /* switch 4 to 5 */
    CHECK_EQ_U(told.fabric->ports[8].pause_count, 0);
    CHECK(strstr(pauses_in_words(),
                 "longest chain of pauses, 3:\n"
                 "  host 0 port 1 (to switch 3) was paused because of\n"
                 "  switch 3 port 3 (to switch 4) was paused because of\n"
                 "  switch 4 port 2 (to switch 5) was paused because of\n"
                 "  switch 5 port 2 (to host 2), whose queue was the longest\n"));
    fab_destroy(told.fabric);
}

/* 4 MB at 10 Gb/s take 3.3 ms; the buffers hold little of it, so the ports on the way stand most of
 * the time. */
TEST(test_fabric_pauses__a_storm_has_a_name)
{
    make_line("");
    CHECK(strstr(pauses_in_words(), "PFC storm: 4 ports were paused for 50 % of the time or more"));
    CHECK(strstr(said.text, "4 of them because of switch 5 port 2 (to host 2)\n"));
    fab_destroy(told.fabric);
    make_line("PFC_STORM_SHARE 1 ");
    CHECK(!strstr(pauses_in_words(), "storm"));
    fab_destroy(told.fabric);
}

typedef struct sums {
    uint64_t pauses, ticks;
    unsigned ports;
} sums;

static void add(void *context, const fab_port_pauses *p)
{
    sums *s = context;
    s->pauses += p->pauses;
    s->ticks += p->ticks;
    s->ports++;
    CHECK(p->longest_ticks <= p->ticks && p->share > 0 && p->share <= 1);
}

/* What ports count is what frames count; a pause and its end are in pfc.txt, so the sums can be had
 * by hand. */
TEST(test_fabric_pauses__ports_are_counted)
{
    sums s = {0};
    make_line("");
    CHECK_EQ_U(fab_paused_ports(told.fabric, add, &s), 4);
    CHECK_EQ_U(s.ports, 4);
    CHECK_EQ_U(s.pauses, fab_figures_of(told.fabric)->pauses);
    CHECK(s.ticks > 0);
    fab_destroy(told.fabric);
    fabric_make(FABRIC_CONFIG, fabric_star(2, LINK), &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    CHECK_EQ_U(fab_paused_ports(told.fabric, add, &s), 0);
    CHECK_TEXT(pauses_in_words(), "");
    fab_destroy(told.fabric);
}

/* Five switches in a ring, a host at each, and every host sends to the one two places on: the
 * shortest way is always clockwise, so each cable of the ring has two flows at full speed, and the
 * buffers wait for each other. */
enum { RING = 5 };

static const char *ring_of_switches(void)
{
    static char text[2000];
    int at = snprintf(text, sizeof text, "%d %d %d\n5 6 7 8 9\n", 2 * RING, RING, 2 * RING);
    for (int i = 0; i < RING; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d %d " LINK "\n", i, RING + i);
    for (int i = 0; i < RING; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d %d " LINK "\n", RING + i,
                       RING + (i + 1) % RING);
    return text;
}

static unsigned lines_with(const char *words)
{
    unsigned count = 0;
    for (const char *at = said.text; (at = strstr(at, words)); at++)
        count++;
    return count;
}

TEST(test_fabric_pauses__a_cycle_is_a_deadlock_with_all_its_ports)
{
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 1 ", ring_of_switches(), &told);
    for (uint32_t i = 0; i < RING; i++)
        fabric_send(&told, i, (i + 2) % RING, 20000000, i);
    fabric_run_all(&told);
    CHECK(told.arrived < RING);
    said.text[0] = 0;
    fab_explain(told.fabric, fabric_keep_line, &said);
    CHECK_EQ_U(lines_with("deadlock: these ports pause each other in a cycle:"), 1);
    CHECK_EQ_U(lines_with("waits for the next one"), RING);
    for (int i = 0; i < RING; i++) {
        char port[100];
        snprintf(port, sizeof port, "  switch %d port %d (to switch %d) waits for the next one\n",
                 RING + i, i ? 3 : 2, RING + (i + 1) % RING);
        CHECK_EQ_U(lines_with(port), 1);
    }
    fab_destroy(told.fabric);
    /* without pauses packets are dropped instead, and all comes to its end */
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 1 ENABLE_PFC 0 TRANSPORT selective ",
                ring_of_switches(), &told);
    for (uint32_t i = 0; i < RING; i++)
        fabric_send(&told, i, (i + 2) % RING, 2000000, i);
    fabric_run_all(&told);
    CHECK_EQ_U(told.arrived, RING);
    fab_destroy(told.fabric);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_pauses__a_chain_leads_to_its_head),
        RUN(test_fabric_pauses__a_storm_has_a_name),
        RUN(test_fabric_pauses__ports_are_counted),
        RUN(test_fabric_pauses__a_cycle_is_a_deadlock_with_all_its_ports),
    };
    return RUN_ALL(tests);
}
