/* SPDX-License-Identifier: Apache-2.0 */
/* test_link_history.c - all links over time: known traffic gives known columns, nothing is lost
 * when columns or rows become fewer, and the network does the same as without. */
#include "fabrics.h"

#include "models/network/packet/packet_run.h"
#include "models/network/packet/watch/watchers.h"

#include <math.h>

#define LINK "100Gbps 1us 0"
#define CONFIG FABRIC_CONFIG "HAS_WIN 0 "

static fabric_told told, plain;

static orr_fabric_view *view_of(const fab *f)
{
    const orr_packet_figures none = {0};
    orr_fabric_view *v;
    orr_error err;
    CHECK_OK(orr__fabric_view_take(f, &none, &v, &err), &err);
    return v;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

static const orr_fabric_link *find_link(const orr_fabric_link *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    check_fail(__FILE__, __LINE__, "there is no link %s", name);
    return NULL;
}

/* 1000 packets of 82.88 ns over a cable, from 0 on: 82.88 us.  192 columns of 100 ns reach to 19.2
 * us, so they become 800 ns wide: 103 are full (82.4 us), the next is busy for 0.48 of 0.8 us.  The
 * last acknowledgement, 48 bytes, comes back 2 us and 3.84 ns later: the last column, from 84.8 us
 * on, ends at 84.88384 us.  Acknowledgements are sent from 1.08288 us on, 3.84 of each 82.88 ns. */
TEST(test_link_history__a_link_is_busy_while_packets_leave)
{
    fabric_make_as(CONFIG, "2 0 1\n\n0 1 " LINK "\n", true, 1, &told);
    fabric_send(&told, 0, 1, 1000000, 0);
    fabric_run_all(&told);
    orr_fabric_view *v = view_of(told.fabric);
    CHECK_EQ_U(v->column_ps, 800000);
    CHECK_EQ_U(v->columns, 107);
    CHECK_EQ_U(v->end_ps, 84883840);
    CHECK_EQ_U(v->link_count, 2);
    CHECK(!strcmp(v->links[0].name, "0.1 -> 1"));
    CHECK_EQ_U(v->links[0].busy_ps, 82880000);
    CHECK_EQ_U(v->links[0].bytes, 1036000);
    for (size_t i = 0; i < 107; i++)
        CHECK(is_near(v->links[0].values[i], i < 103 ? 1 : i == 103 ? 0.6 : 0));
    /* from 1.08288 to 1.6 us: sixes of 82.88 ns and 19.84 ns more, so seven acknowledgements */
    CHECK(v->links[1].values[0] == 0 && is_near(v->links[1].values[1], 7 * 3.84 / 800));
    CHECK(!v->rest_use && v->links_left_out == 0);
    CHECK(v->queue_count == 0 && v->pause_count == 0);
    orr_fabric_view_destroy(v);
    fab_destroy(told.fabric);
}

/* Two flows into one link: pairs of packets arrive from 1.08288 us on, one of each pair has to
 * wait.  Up to 2.4 us these are 16 pairs, up to 3.2 us 26: so long is the queue at most in the
 * columns that end then. */
TEST(test_link_history__the_longest_queue_of_a_column_is_exact)
{
    fabric_make_as(CONFIG, fabric_star(3, LINK), true, 1, &told);
    fabric_send(&told, 0, 2, 500000, 0);
    fabric_send(&told, 1, 2, 500000, 1);
    fabric_run_all(&told);
    orr_fabric_view *v = view_of(told.fabric);
    CHECK_EQ_U(v->column_ps, 800000);
    const orr_fabric_link *q = find_link(v->queues, v->queue_count, "switch3.3 -> 2");
    CHECK(q == &v->queues[0]);
    CHECK(q->values[0] == 0 && q->values[2] == 16 * 1036 && q->values[3] == 26 * 1036);
    CHECK_EQ_U(q->longest_queue,
               500 * 1036); /* all pairs are there: 500 have left, the other half waits */
    double most = 0;
    for (size_t i = 0; i < v->columns; i++)
        most = fmax(most, q->values[i]);
    CHECK(most == 500 * 1036);
    orr_fabric_view_destroy(v);
    fab_destroy(told.fabric);
}

static double time_of(const orr_fabric_view *v, const double *values)
{
    double sum = 0;
    for (size_t i = 0; i < v->columns; i++) {
        const double from = (double)i * (double)v->column_ps;
        sum += values[i] * (fmin((double)v->end_ps, from + (double)v->column_ps) - from);
    }
    return sum;
}

/* Hosts 0 and 1 through three switches to host 2 behind a link of a tenth of the speed: ports on
 * the way are paused.  What the columns have adds up to what the ports have counted. */
TEST(test_link_history__pauses_add_up)
{
    fabric_make_as(CONFIG "BUFFER_SIZE 1 ",
                   "6 3 5\n3 4 5\n0 3 " LINK "\n1 3 " LINK "\n3 4 " LINK "\n4 5 " LINK
                   "\n5 2 10Gbps 1us 0\n",
                   true, 1, &told);
    fabric_send(&told, 0, 2, 2000000, 0);
    fabric_send(&told, 1, 2, 2000000, 1);
    fabric_run_all(&told);
    double all = 0;
    orr_fabric_view *v = view_of(told.fabric);
    CHECK_EQ_U(v->pause_count, 4);
    for (size_t i = 0; i < v->pause_count; i++) {
        CHECK(v->pauses[i].paused_ps > 0 && v->pauses[i].pauses > 0);
        CHECK(fabs(time_of(v, v->pauses[i].values) - (double)v->pauses[i].paused_ps) < 1);
        all += (double)v->pauses[i].paused_ps;
    }
    CHECK(fabs(time_of(v, v->paused_ports) - all) < 1);
    for (size_t i = 0; i < v->link_count; i++)
        CHECK(fabs(time_of(v, v->links[i].values) - (double)v->links[i].busy_ps) < 1);
    CHECK(v->note_count > 0 && strstr(v->notes[v->note_count - 1], "switch 5 port 2"));
    orr_fabric_view_destroy(v);
    fab_destroy(told.fabric);
}

/* Twenty-eight links that are used, and room for eight: the busiest has a row, and what is in none
 * is in the sums. */
TEST(test_link_history__rows_are_given_up_but_no_time_is)
{
    uint64_t busy = 0, summed = 0;
    fabric_make_as(CONFIG, fabric_star(14, LINK), true, 1, &told);
    fab_history_of(told.fabric)->rows = 8;
    for (uint32_t i = 0; i < 13; i++)
        fabric_send(&told, i, 13, 20000 * (i + 1), i);
    fabric_run_all(&told);
    const fab_history *h = fab_history_of(told.fabric);
    CHECK(h->row_count <= 8);
    CHECK_EQ_U(h->port_count, 28);
    for (uint32_t i = 0; i < told.fabric->port_count; i++)
        busy += told.fabric->ports[i].busy_ticks;
    for (size_t i = 0; i < h->columns; i++)
        summed += h->sums[i].busy;
    CHECK_EQ_U(summed, busy);
    orr_fabric_view *v = view_of(told.fabric);
    CHECK(!strcmp(v->links[0].name, "switch14.14 -> 13"));
    CHECK(time_of(v, v->links[0].values) > 0.8 * (double)v->links[0].busy_ps);
    orr_fabric_view_destroy(v);
    fab_destroy(told.fabric);
}

/* 100 links are used, 40 are shown; the rest is what the sums have beside them. */
TEST(test_link_history__the_rest_is_summed)
{
    double shown = 0;
    uint64_t busy = 0;
    fabric_make_as(CONFIG, fabric_star(50, LINK), true, 1, &told);
    for (uint32_t i = 0; i < 50; i++)
        fabric_send(&told, i, (i + 1) % 50, 1000 * (i + 1), i);
    fabric_run_all(&told);
    orr_fabric_view *v = view_of(told.fabric);
    CHECK_EQ_U(v->link_count, 40);
    CHECK_EQ_U(v->links_left_out, 60);
    for (size_t i = 0; i < v->link_count; i++)
        shown += (double)v->links[i].busy_ps;
    for (uint32_t i = 0; i < told.fabric->port_count; i++)
        busy += told.fabric->ports[i].busy_ticks;
    CHECK(fabs(60 * time_of(v, v->rest_use) + shown - (double)busy) < 1);
    CHECK_EQ_U(v->all.flows, 50);
    CHECK_EQ_U(v->classes[0].flows, 4);
    orr_fabric_view_destroy(v);
    fab_destroy(told.fabric);
}

/* A flow that starts a second after the first one: columns widen over the time between, and both
 * are seen. */
TEST(test_link_history__columns_widen_over_idle_time)
{
    orr_event_line line = {.bound_at = UINT64_MAX, .bound_order = UINT64_MAX};
    fabric_make_as(CONFIG, "2 0 1\n\n0 1 " LINK "\n", true, 1, &told);
    fab_join(told.fabric, &line);
    fabric_send(&told, 0, 1, 1000, 0);
    fabric_run_all(&told);
    line.now = 1000000000; /* one second */
    fabric_send(&told, 0, 1, 1000, 1);
    fabric_run_all(&told);
    orr_fabric_view *v = view_of(told.fabric);
    CHECK(v->columns <= FAB_HISTORY_COLUMNS + 1);
    CHECK(v->links[0].values[0] > 0 && v->links[0].values[v->columns - 1] > 0);
    CHECK_EQ_U(v->links[0].busy_ps, 2 * 82880);
    orr_fabric_view_destroy(v);
    fab_destroy(told.fabric);
}

static void run_leaves(bool has_history, unsigned threads, fabric_told *t)
{
    fabric_make_as(CONFIG "BUFFER_SIZE 1 ", fabric_leaves(8, 2, LINK), has_history, threads, t);
    for (uint32_t i = 0; i < 15; i++)
        fabric_send(t, i, i % 3 ? 15 : (i + 9) % 15, 40000 + 1000 * i, i);
    fabric_run_all(t);
}

TEST(test_link_history__the_network_does_the_same)
{
    run_leaves(false, 1, &plain);
    run_leaves(true, 1, &told);
    CHECK(!memcmp(plain.sent_at, told.sent_at, sizeof told.sent_at));
    CHECK(!memcmp(plain.arrived_at, told.arrived_at, sizeof told.arrived_at));
    CHECK(!memcmp(fab_figures_of(plain.fabric), fab_figures_of(told.fabric), sizeof(fab_figures)));
    for (uint32_t i = 0; i < told.fabric->port_count; i++)
        CHECK_EQ_U(fab_port_longest_queue(&told.fabric->ports[i]),
                   plain.fabric->ports[i].max_queued);
    fab_destroy(plain.fabric);
    fab_destroy(told.fabric);
}

TEST(test_link_history__threads_make_no_difference)
{
    run_leaves(true, 1, &plain);
    run_leaves(true, 3, &told);
    CHECK(told.fabric->lanes && !plain.fabric->lanes);
    orr_fabric_view *a = view_of(plain.fabric), *b = view_of(told.fabric);
    CHECK(a->columns == b->columns && a->column_ps == b->column_ps && a->end_ps == b->end_ps);
    CHECK(a->link_count == b->link_count && a->pause_count == b->pause_count);
    for (size_t i = 0; i < a->link_count; i++) {
        CHECK(!strcmp(a->links[i].name, b->links[i].name));
        CHECK(!memcmp(a->links[i].values, b->links[i].values, a->columns * sizeof(double)));
    }
    for (size_t i = 0; i < a->queue_count; i++)
        CHECK(!memcmp(a->queues[i].values, b->queues[i].values, a->columns * sizeof(double)));
    CHECK(!memcmp(a->paused_ports, b->paused_ports, a->columns * sizeof(double)));
    orr_fabric_view_destroy(a);
    orr_fabric_view_destroy(b);
    fab_destroy(plain.fabric);
    fab_destroy(told.fabric);
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_link_history__a_link_is_busy_while_packets_leave),
        RUN(test_link_history__the_longest_queue_of_a_column_is_exact),
        RUN(test_link_history__pauses_add_up),
        RUN(test_link_history__rows_are_given_up_but_no_time_is),
        RUN(test_link_history__the_rest_is_summed),
        RUN(test_link_history__columns_widen_over_idle_time),
        RUN(test_link_history__the_network_does_the_same),
        RUN(test_link_history__threads_make_no_difference),
    };
    return RUN_ALL(tests);
}
