/* SPDX-License-Identifier: Apache-2.0 */
/* test_fluid.c - flows that share ports and links: times by hand, and random traffic against a
 * solution that is worked out from the beginning at every change. */
#include "check.h"
#include "net_run.h"

#include <math.h>
#include <stdio.h>

/* Links of one byte per ns. */
#define ONE 0.931322574615478515625

static net_run r;

static void open_switch(uint32_t ranks, double latency)
{
    const orr_net_config cfg = {.dims = 1,
                                .shape = {ORR_NET_SWITCH},
                                .npus = {ranks},
                                .bandwidth = {ONE},
                                .latency_ns = {latency}};
    net_run_open(&r, &orr__net_fluid, &cfg, ranks);
}

TEST(test_fluid__a_message_alone_takes_its_bytes_and_the_latency)
{
    open_switch(4, 500);
    const uint32_t a = net_run_send(&r, 0, 0, 1, 10000), b = net_run_send(&r, 0, 2, 3, 1);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 10000 + 1000);
    CHECK_EQ_U(r.arrived[b], 1 + 1000);
    CHECK_EQ_U(net_run_link(&r, "0 -> switch0.0").bytes, 10000);
    CHECK_EQ_U(net_run_link(&r, "switch0.0 -> 3").bytes, 1);
    net_run_close(&r);
}

TEST(test_fluid__senders_share_the_port_of_the_receiver)
{
    open_switch(8, 0);
    uint32_t m[7];
    for (uint32_t i = 0; i < 7; i++)
        m[i] = net_run_send(&r, 0, i + 1, 0, 1000);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    for (uint32_t i = 0; i < 7; i++)
        CHECK_EQ_U(r.arrived[m[i]], 7000);
    net_run_close(&r);
}

/* 0 -> 3, 1 -> 3, 2 -> 3 have a third each; so 0 -> 4 has two thirds of the port of 0. */
TEST(test_fluid__what_one_cannot_use_is_left_to_others)
{
    open_switch(5, 0);
    const uint32_t a = net_run_send(&r, 0, 0, 3, 10000), b = net_run_send(&r, 0, 1, 3, 10000),
                   c = net_run_send(&r, 0, 2, 3, 10000), d = net_run_send(&r, 0, 0, 4, 10000);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[d], 15000);
    CHECK_EQ_U(r.arrived[a], 30000);
    CHECK_EQ_U(r.arrived[b], 30000);
    CHECK_EQ_U(r.arrived[c], 30000);
    net_run_close(&r);
}

TEST(test_fluid__rates_change_when_flows_come_and_go)
{
    open_switch(3, 0);
    const uint32_t a = net_run_send(&r, 0, 0, 1, 10000), b = net_run_send(&r, 5000, 0, 2, 10000);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 15000);
    CHECK_EQ_U(r.arrived[b], 20000);
    net_run_close(&r);
}

/* Both dimensions at once: not first one, then the other. */
TEST(test_fluid__dimensions_are_crossed_while_bytes_come_in)
{
    const orr_net_config cfg = {.dims = 2,
                                .shape = {ORR_NET_SWITCH, ORR_NET_RING},
                                .npus = {4, 4},
                                .bandwidth = {10 * ONE, ONE},
                                .latency_ns = {100, 1000}};
    net_run_open(&r, &orr__net_fluid, &cfg, 16);
    const uint32_t a = net_run_send(&r, 0, 0, 9, 100000); /* one to the right, two along the ring */
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 100000 + 200 + 2000);
    CHECK_EQ_U(net_run_link(&r, "0 -> switch0.0").bytes, 100000);
    CHECK_EQ_U(net_run_link(&r, "1 -> 5").bytes, 100000);
    CHECK_EQ_U(net_run_link(&r, "5 -> 9").bytes, 100000);
    net_run_close(&r);
}

TEST(test_fluid__links_are_shared_along_routes)
{
    orr__topology *links = net_run_parse("ranks: 4\nswitches: [a, b]\nrouting: first\nlinks:\n"
                                         "- {from: 0-1, to: a, bandwidth: 10GB/s, latency: 100ns}\n"
                                         "- {from: 2-3, to: b, bandwidth: 10GB/s, latency: 100ns}\n"
                                         "- {from: a, to: b, bandwidth: 5GB/s, latency: 300ns}\n");
    net_run_open_links(&r, &orr__net_fluid, links);
    const uint32_t a = net_run_send(&r, 0, 0, 2, 50000), b = net_run_send(&r, 0, 1, 3, 50000),
                   c = net_run_send(&r, 0, 0, 1, 75000);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    /* Packets of 1,000 bytes have 36 more on the wire. */
    CHECK_EQ_U(r.arrived[a], 20720 + 500); /* half of 5 each */
    CHECK_EQ_U(r.arrived[b], 20720 + 500);
    CHECK_EQ_U(r.arrived[c], 10360 + 200); /* the other 7.5 of its port */
    CHECK_EQ_U(net_run_link(&r, "a -> b").bytes, 100000);
    net_run_close(&r);
}

/* Windows: 0 -> 3 waits at both links between switches, 1 -> 4 and 2 -> 5 at one each.  The wait q
 * at which both links are just full, by hand: window / (trip + waits) is a rate. */
TEST(test_fluid__who_waits_at_two_links_gets_less)
{
    enum { BYTES = 10000000, LINK = 50 };
    orr__topology *links = net_run_parse("ranks: 6\nswitches: [a, b, c]\nlinks:\n"
                                         "- {from: 0-1, to: a, bandwidth: 50GB/s, latency: 500ns}\n"
                                         "- {from: 2, to: b, bandwidth: 50GB/s, latency: 500ns}\n"
                                         "- {from: 4, to: b, bandwidth: 50GB/s, latency: 500ns}\n"
                                         "- {from: 3, to: c, bandwidth: 50GB/s, latency: 500ns}\n"
                                         "- {from: 5, to: c, bandwidth: 50GB/s, latency: 500ns}\n"
                                         "- {from: a, to: b, bandwidth: 50GB/s, latency: 500ns}\n"
                                         "- {from: b, to: c, bandwidth: 50GB/s, latency: 500ns}\n");
    net_run_open_links(&r, &orr__net_fluid, links);
    uint32_t m[3];
    for (uint32_t i = 0; i < 3; i++)
        m[i] = net_run_send(&r, 0, i, i + 3, BYTES);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    const double short_trip = 2 * 3 * 500 + 3 * 1084.0 / LINK,
                 long_trip = 2 * 4 * 500 + 4 * 1084.0 / LINK;
    const double short_window = LINK * 2 * 3 * 500.0 + 3 * 1000 + 500,
                 long_window = LINK * 2 * 4 * 500.0 + 4 * 1000 + 500;
    double low = 0, high = 1e6, pace = 0;
    for (int i = 0; i < 100; i++) {
        const double q = (low + high) / 2;
        pace = short_window / (short_trip + q);
        if (1.036 * (pace + long_window / (long_trip + 2 * q)) > LINK)
            low = q;
        else
            high = q;
    }
    const double end = BYTES / pace + 1500;
    for (int i = 1; i < 3; i++)
        if (fabs((double)r.arrived[m[i]] - end) > 2)
            check_fail(__FILE__, __LINE__, "flow %d: %u, by hand %.1f", i,
                       (unsigned)r.arrived[m[i]], end);
    /* Then the long one has the links to itself; both are full from the first byte to the last. */
    const double all = 2 * BYTES * 1.036 / LINK + 2000;
    if (fabs((double)r.arrived[m[0]] - all) > 4)
        check_fail(__FILE__, __LINE__, "%u, by hand %.1f", (unsigned)r.arrived[m[0]], all);
    net_run_close(&r);
}

/* Random messages over links: nothing is faster than its links, no link carries more than it can,
 * and what is sent in order arrives.  With nine messages of each sender at once shares are max-min
 * fair, and the same holds. */
TEST(test_fluid__no_link_carries_more_than_it_can)
{
    enum { HOSTS = 8, MOST = 9 };
    for (uint32_t each = 1; each <= MOST; each += 4) {
        orr__topology *links =
            net_run_parse("ranks: 8\nswitches: [a, b, c]\nlinks:\n"
                          "- {from: 0-3, to: a, bandwidth: 10GB/s, latency: 100ns}\n"
                          "- {from: 4-7, to: b, bandwidth: 10GB/s, latency: 100ns}\n"
                          "- {from: a, to: c, bandwidth: 10GB/s, latency: 300ns}\n"
                          "- {from: b, to: c, bandwidth: 20GB/s, latency: 300ns}\n");
        uint32_t sent[HOSTS * MOST], count = 0;
        double up = 0, through[2] = {0, 0};
        net_run_open_links(&r, &orr__net_fluid, links);
        for (uint32_t i = 0; i < each; i++)
            for (uint32_t h = 0; h < HOSTS; h++) {
                const uint32_t to = (h + 1 + (3 * i + h) % (HOSTS - 1)) % HOSTS;
                sent[count++] = net_run_send(&r, 0, h, to, 1000000);
                if (h / 4 != to / 4)
                    through[h / 4] += 1000000;
            }
        CHECK_EQ_U(net_run_all(&r), ORR_OK);
        for (uint32_t i = 0; i < count; i++) {
            CHECK(r.arrived[sent[i]] >= 103600);
            up = fmax(up, (double)r.arrived[sent[i]]);
        }
        /* a -> c and b -> c -> a: what crosses takes at least its bytes. */
        CHECK(up >= fmax(through[0], through[1]) * 1.036 / 10);
        CHECK(up <= 8 * (through[0] + through[1] + each * 1000000.0) / 10);
        net_run_close(&r);
    }
}

/* ---- windows over drawn links ---- */

enum { LEAVES = 3, PER_LEAF = 4, DRAWN_HOSTS = LEAVES * PER_LEAF, DRAWN = 20 };

static uint64_t drawn;

static uint32_t below(uint32_t n)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((drawn >> 33) % n);
}

typedef struct drawn_message {
    uint32_t src, dst, bytes;
} drawn_message;

/* Hosts on leaves, one cable from each leaf to the spine: one route for each message, whatever its
 * number. */
static void open_leaves(const uint32_t up[LEAVES], uint32_t nic)
{
    static char text[1024];
    int used =
        snprintf(text, sizeof text, "ranks: %d\nswitches: [a, b, c, s]\nlinks:\n", DRAWN_HOSTS);
    for (int l = 0; l < LEAVES; l++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "- {from: %d-%d, to: %c, bandwidth: %uGB/s, latency: 500ns}\n"
                         "- {from: %c, to: s, bandwidth: %uGB/s, latency: 500ns}\n",
                         l * PER_LEAF, l * PER_LEAF + PER_LEAF - 1, 'a' + l, nic, 'a' + l, up[l]);
    net_run_open_links(&r, &orr__net_fluid, net_run_parse(text));
}

/* When each has arrived, sent in this order. */
static void run_drawn(const uint32_t up[LEAVES],
                      uint32_t nic,
                      const drawn_message *m,
                      const uint32_t *order,
                      uint64_t arrived[DRAWN])
{
    uint32_t sent[DRAWN];
    open_leaves(up, nic);
    for (int i = 0; i < DRAWN; i++)
        sent[order[i]] = net_run_send(&r, 0, m[order[i]].src, m[order[i]].dst, m[order[i]].bytes);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    for (int i = 0; i < DRAWN; i++)
        arrived[i] = r.arrived[sent[i]];
    net_run_close(&r);
}

/* Up to each arrival, no link has carried more than it can; the last of them all is not later than
 * if one message went after the other over the slowest link. */
static void check_links(const uint32_t up[LEAVES],
                        uint32_t nic,
                        const drawn_message *m,
                        const uint64_t arrived[DRAWN])
{
    double all = 0, last = 0, slowest = nic;
    for (int l = 0; l < LEAVES; l++)
        slowest = up[l] < slowest ? up[l] : slowest;
    for (int i = 0; i < DRAWN; i++) {
        double in = 0, out = 0, leaf_in[LEAVES] = {0}, leaf_out[LEAVES] = {0};
        const double until = (double)arrived[i];
        for (int k = 0; k < DRAWN; k++) {
            if (arrived[k] > arrived[i])
                continue; /* its bytes are not counted: the bound is from below */
            const uint32_t from = m[k].src / PER_LEAF, to = m[k].dst / PER_LEAF;
            out += m[k].src == m[i].src ? m[k].bytes : 0;
            in += m[k].dst == m[i].dst ? m[k].bytes : 0;
            leaf_out[from] += from != to ? m[k].bytes : 0;
            leaf_in[to] += from != to ? m[k].bytes : 0;
        }
        CHECK(out * 1.036 <= nic * (until - 1000) * (1 + 1e-4));
        CHECK(in * 1.036 <= nic * (until - 1000) * (1 + 1e-4));
        for (int l = 0; l < LEAVES; l++) {
            CHECK(leaf_out[l] * 1.036 <= up[l] * (until - 1000) * (1 + 1e-4));
            CHECK(leaf_in[l] * 1.036 <= up[l] * (until - 1000) * (1 + 1e-4));
        }
        all += m[i].bytes;
        last = until > last ? until : last;
    }
    CHECK(last <= all * 1.1 / slowest + DRAWN * 4000.0);
}

/* Messages of drawn pairs, at most one of a pair so that their order does not matter: sent in
 * another order, they arrive at the same times; with links twice as fast, the last one is not
 * later. */
TEST(test_fluid__windows_share_what_links_have)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        drawn_message m[DRAWN];
        uint32_t order[DRAWN], up[LEAVES], twice[LEAVES], count = 0;
        uint64_t a[DRAWN], b[DRAWN], c[DRAWN], last = 0, faster = 0;
        bool has[DRAWN_HOSTS][DRAWN_HOSTS] = {{0}};
        drawn = seed;
        for (int l = 0; l < LEAVES; l++) {
            up[l] = 10 + below(60);
            twice[l] = 2 * up[l];
        }
        const uint32_t nic = 20 + below(40);
        while (count < DRAWN) {
            const uint32_t src = below(DRAWN_HOSTS), dst = below(DRAWN_HOSTS);
            if (src == dst || has[src][dst])
                continue;
            has[src][dst] = true;
            m[count] = (drawn_message){src, dst, 1000000 + 1000 * below(4000)};
            order[count] = count;
            count++;
        }
        run_drawn(up, nic, m, order, a);
        check_links(up, nic, m, a);
        for (uint32_t i = DRAWN - 1; i > 0; i--) {
            const uint32_t k = below(i + 1), moved = order[i];
            order[i] = order[k];
            order[k] = moved;
        }
        run_drawn(up, nic, m, order, b);
        run_drawn(twice, 2 * nic, m, order, c);
        for (int i = 0; i < DRAWN; i++) {
            const double apart = fabs((double)a[i] - (double)b[i]);
            if (apart > 2 + 1e-3 * (double)a[i])
                check_fail(__FILE__, __LINE__, "seed %u, message %d: %u or %u by the order",
                           (unsigned)seed, i, (unsigned)a[i], (unsigned)b[i]);
            last = a[i] > last ? a[i] : last;
            faster = c[i] > faster ? c[i] : faster;
        }
        CHECK(faster <= last);
    }
}

/* One connection: the second message goes when the first is out, and a stranger takes his half from
 * both. */
TEST(test_fluid__messages_of_a_pair_go_one_after_the_other)
{
    open_switch(3, 0);
    const uint32_t a = net_run_send(&r, 0, 0, 1, 1000), b = net_run_send(&r, 0, 0, 1, 1000),
                   c = net_run_send(&r, 0, 0, 2, 1500);
    CHECK_EQ_U(net_run_all(&r), ORR_OK);
    CHECK_EQ_U(r.arrived[a], 2000); /* half of the port, which carries 1 byte per ns */
    CHECK_EQ_U(r.arrived[c], 3000);
    CHECK_EQ_U(r.arrived[b], 3500); /* from 2,000 on; alone from 3,000 on */
    net_run_close(&r);
}

/* ---- random traffic ---- */

enum { RANKS = 12, FLOWS = 80 };

typedef struct job {
    double start, left, rate, end;
    uint32_t src, dst;
    bool is_over;
} job;

/* Not begun, or behind an earlier message of its connection. */
static bool is_waiting(const job *j, int i, double now)
{
    bool waits = j[i].start > now;
    for (int k = 0; k < FLOWS; k++)
        waits |= !j[k].is_over && j[k].src == j[i].src && j[k].dst == j[i].dst &&
                 (j[k].start < j[i].start || (j[k].start == j[i].start && k < i));
    return waits;
}

/* By the book: raise all rates together, stop those whose port is full, until all have stopped. */
static void rates_by_the_book(job *j, double now)
{
    double left[2 * RANKS];
    bool is_fixed[FLOWS];
    for (int p = 0; p < 2 * RANKS; p++)
        left[p] = 1;
    for (int i = 0; i < FLOWS; i++)
        is_fixed[i] = j[i].is_over || is_waiting(j, i, now);
    for (;;) {
        double least = INFINITY;
        int port = -1;
        for (int p = 0; p < 2 * RANKS; p++) {
            int users = 0;
            for (int i = 0; i < FLOWS; i++)
                users += !is_fixed[i] &&
                         (p < RANKS ? j[i].src == (uint32_t)p : j[i].dst == (uint32_t)(p - RANKS));
            if (users && left[p] / users < least) {
                least = left[p] / users;
                port = p;
            }
        }
        if (port < 0)
            return;
        for (int i = 0; i < FLOWS; i++) {
            if (is_fixed[i] ||
                (port < RANKS ? j[i].src != (uint32_t)port : j[i].dst != (uint32_t)(port - RANKS)))
                continue;
            is_fixed[i] = true;
            j[i].rate = least;
            left[j[i].src] -= least;
            left[RANKS + j[i].dst] -= least;
        }
    }
}

static void run_by_the_book(job *j)
{
    double now = 0;
    for (;;) {
        double next = INFINITY;
        rates_by_the_book(j, now);
        bool is_over[FLOWS];
        for (int i = 0; i < FLOWS; i++) {
            if (!j[i].is_over && j[i].start > now)
                next = fmin(next, j[i].start);
            else if (!j[i].is_over && !is_waiting(j, i, now))
                next = fmin(next, now + j[i].left / j[i].rate);
        }
        if (isinf(next))
            return;
        for (int i = 0; i < FLOWS; i++) {
            is_over[i] = j[i].is_over;
            if (j[i].is_over || is_waiting(j, i, now))
                continue;
            j[i].left -= j[i].rate * (next - now);
            is_over[i] = j[i].left < 1e-6;
            j[i].end = next;
        }
        for (int i = 0; i < FLOWS; i++)
            j[i].is_over = is_over[i];
        now = next;
    }
}

TEST(test_fluid__random_traffic_is_shared_by_the_book)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        job j[FLOWS] = {{0}};
        drawn = seed;
        open_switch(RANKS, 0);
        for (int i = 0; i < FLOWS; i++) {
            j[i].src = below(RANKS);
            j[i].dst = (j[i].src + 1 + below(RANKS - 1)) % RANKS;
            j[i].start = below(2) ? 0 : below(200000);
            j[i].left = 1 + below(below(2) ? 100 : 100000);
            net_run_send(&r, (uint64_t)j[i].start, j[i].src, j[i].dst, (uint64_t)j[i].left);
        }
        CHECK_EQ_U(net_run_all(&r), ORR_OK);
        run_by_the_book(j);
        /* Ends come at whole ns, so a little more is shared than was there: some ns in all. */
        for (int i = 0; i < FLOWS; i++)
            if (fabs((double)r.arrived[i] - j[i].end) > 60)
                check_fail(__FILE__, __LINE__, "seed %u, flow %d: %u, by the book %.1f",
                           (unsigned)seed, i, (unsigned)r.arrived[i], j[i].end);
        net_run_close(&r);
    }
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fluid__a_message_alone_takes_its_bytes_and_the_latency),
        RUN(test_fluid__senders_share_the_port_of_the_receiver),
        RUN(test_fluid__what_one_cannot_use_is_left_to_others),
        RUN(test_fluid__rates_change_when_flows_come_and_go),
        RUN(test_fluid__dimensions_are_crossed_while_bytes_come_in),
        RUN(test_fluid__links_are_shared_along_routes),
        RUN(test_fluid__who_waits_at_two_links_gets_less),
        RUN(test_fluid__no_link_carries_more_than_it_can),
        RUN(test_fluid__windows_share_what_links_have),
        RUN(test_fluid__messages_of_a_pair_go_one_after_the_other),
        RUN(test_fluid__random_traffic_is_shared_by_the_book),
    };
    return RUN_ALL(tests);
}
