/* SPDX-License-Identifier: Apache-2.0 */
/* test_fabric_laws.c - what holds in every network, whatever it is made of: random networks, flows,
 * controls, transports, balancers, losses and failures; no reference, only arithmetic.
 *
 * Exact: one flow over a chain of links of any rates.  A packet leaves a link when it is there and
 * the one before it has left, so the times of all packets and acknowledgements are a sum; it is
 * made here a second time, from that rule. Laws of the others:
 *   - every flow is done, and told of once; nobody is faster than the two links of its hosts and the shortest delay
 *   - what hosts send arrives at hosts, or was lost or dropped and is counted as such; without losses nothing is
 *   - bytes sent are those of the flows and those sent again
 *   - a port is busy for as long as its bytes take, and never longer than the run: no link above 100 %
 *   - at the end buffers, queues and accounts are empty, nobody is paused, and all frames and flows are free
 * Rates are such that a byte takes whole picoseconds, so none of this is about rounding. */
#include "fabrics.h"

#include "base/rng.h"
#include "models/network/packet/engine/fabric_impl.h"

enum {
    NETWORKS = 600,
    CHAINS = 60,
    MOST_HOSTS = 16,
    MOST_NODES = 24,
    MOST_LINKS = 40,
    TEXT = 8192
};

static const uint64_t gbps[] = {10, 25, 40, 50, 100, 200, 400, 800};
static const unsigned controls[] = {0, 1, 3, 7, 8, 10, 11};

typedef struct wire {
    unsigned a, b;
    uint64_t gbps, delay_ns;
} wire;

typedef struct net {
    orr_rng r;
    unsigned hosts, nodes, links;
    wire link[MOST_LINKS];
    uint64_t payload, overhead, header,
        ack; /* bytes; header: of data, with what the control adds */
    bool is_lossy, has_pauses, has_failures;
    unsigned control, classes; /* classes of flows: as many, from 1 on */
    char config[TEXT], topology[TEXT];
    uint64_t bytes[FABRIC_TOKENS];
    unsigned from[FABRIC_TOKENS], to[FABRIC_TOKENS], flows;
} net;

static fabric_told told;
static uint64_t seed; /* of what is tried, told if it fails */

static unsigned pick(net *n, unsigned below)
{
    return (unsigned)orr_rng_below(&n->r, below);
}

static uint64_t ticks(uint64_t bytes, uint64_t at_gbps)
{
    return bytes * (8000 / at_gbps);
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- networks ---- */

static void add_link(net *n, unsigned a, unsigned b, uint64_t rate, uint64_t delay_ns)
{
    CHECK(n->links < MOST_LINKS);
    n->link[n->links++] = (wire){a, b, rate, delay_ns};
}

static uint64_t random_rate(net *n)
{
    return gbps[pick(n, sizeof gbps / sizeof *gbps)];
}

static uint64_t random_delay(net *n)
{
    return 100 + pick(n, 2000);
}

/* Leaves with hosts, each joined with all spines; one leaf has none. */
static void make_leaves(net *n)
{
    const unsigned leaves = 1 + pick(n, 3), each = 2 + pick(n, 4), spines = 1 + pick(n, 3);
    n->hosts = leaves * each;
    n->nodes = n->hosts + leaves + (leaves > 1 ? spines : 0);
    for (unsigned h = 0; h < n->hosts; h++)
        add_link(n, h, n->hosts + h / each, random_rate(n), random_delay(n));
    const uint64_t up = random_rate(n), delay = random_delay(n);
    for (unsigned i = 0; leaves > 1 && i < leaves * spines; i++)
        add_link(n, n->hosts + i / spines, n->hosts + leaves + i % spines, up, delay);
}

/* Switches in any tree, hosts anywhere at it. */
static void make_tree(net *n)
{
    const unsigned switches = 1 + pick(n, 6);
    n->hosts = 2 + pick(n, 8);
    n->nodes = n->hosts + switches;
    for (unsigned h = 0; h < n->hosts; h++)
        add_link(n, h, n->hosts + pick(n, switches), random_rate(n), random_delay(n));
    for (unsigned s = 1; s < switches; s++)
        add_link(n, n->hosts + s, n->hosts + pick(n, s), random_rate(n), random_delay(n));
}

/* A tree and some links more: cycles, in which pauses could close, so nobody is paused. */
static void make_mesh(net *n)
{
    make_tree(n);
    const unsigned switches = n->nodes - n->hosts;
    for (unsigned i = 0; i < switches && switches > 2; i++) {
        const unsigned a = pick(n, switches), b = (a + 1 + pick(n, switches - 1)) % switches;
        add_link(n, n->hosts + a, n->hosts + b, random_rate(n), random_delay(n));
    }
}

static void write_topology(net *n, double loss)
{
    char *t = n->topology;
    int at = snprintf(t, TEXT, "%u %u %u\n", n->nodes, n->nodes - n->hosts, n->links);
    for (unsigned s = n->hosts; s < n->nodes; s++)
        at += snprintf(t + at, TEXT - (size_t)at, "%u ", s);
    for (unsigned i = 0; i < n->links; i++) {
        const wire *l = &n->link[i];
        at += snprintf(t + at, TEXT - (size_t)at, "\n%u %u %" PRIu64 "Gbps %" PRIu64 "ns %g", l->a,
                       l->b, l->gbps, l->delay_ns, loss);
    }
    CHECK(at < TEXT);
}

/* ---- settings ---- */

static void add_words(net *n, const char *words)
{
    const size_t at = strlen(n->config);
    CHECK(at + strlen(words) + 2 < TEXT);
    snprintf(n->config + at, TEXT - at, "%s ", words);
}

static void add_number(net *n, const char *key, uint64_t value)
{
    char words[80];
    snprintf(words, sizeof words, "%s %" PRIu64, key, value);
    add_words(n, words);
}

static void add_marks(net *n)
{
    static const char *const maps[] = {"KMIN_MAP", "KMAX_MAP", "PMAX_MAP"};
    static const unsigned share[] = {10, 5, 0}; /* of Gb/s, as kB */
    for (unsigned m = 0; m < 3; m++) {
        add_number(n, maps[m], sizeof gbps / sizeof *gbps);
        for (unsigned i = 0; i < sizeof gbps / sizeof *gbps; i++) {
            char words[60];
            snprintf(words, sizeof words, "%" PRIu64 "000000000 ", gbps[i]);
            add_words(n, words);
            snprintf(words, sizeof words, "%" PRIu64, share[m] ? 4 + gbps[i] / share[m] : 1);
            add_words(n, words);
        }
    }
}

static void choose_transport(net *n)
{
    static const char *const balances[] = {"ecmp", "spray", "flowlet", "reps"};
    const bool is_selective = n->control == 11 || pick(n, 2);
    const bool can_spread = is_selective && n->control != 10; /* HPCC-PINT refuses it */
    char words[60];
    snprintf(words, sizeof words, "LOAD_BALANCE %s", balances[pick(n, can_spread ? 4 : 1)]);
    add_words(n, words);
    add_words(n, is_selective ? "TRANSPORT selective" : "TRANSPORT go-back-n");
    if (!is_selective && !pick(n, 3)) { /* packets and chunks end at different places */
        add_words(n, "L2_BACK_TO_ZERO 1");
        add_number(n, "L2_CHUNK_SIZE", n->payload + n->payload / 2);
    }
    if (n->has_pauses)
        return;
    add_words(n, "ENABLE_PFC 0");
    if (pick(n, 2))
        add_number(n, "QUEUE_LIMIT", 20000 + pick(n, 60000));
    if (is_selective && pick(n, 2))
        add_words(n, "TRIMMING 1");
}

static void choose_settings(net *n)
{
    static const uint64_t payloads[] = {1000, 1000, 512, 4096};
    static const uint64_t of_control[] = {
        [3] = 42, [7] = 8, [10] = 2}; /* packet-network.md 6.2: INT */
    n->control = controls[pick(n, sizeof controls / sizeof *controls)];
    n->payload = payloads[pick(n, 4)];
    n->classes = 1 + pick(n, 7);
    n->overhead = pick(n, 2) ? 0 : 24;
    const uint64_t more = n->control < 11 ? of_control[n->control] : 0;
    n->header = 36 + more;
    n->ack = 22 + (12 + more > 26 ? 12 + more : 26);
    n->config[0] = 0;
    add_words(n,
              "RATE_AI 500Mb/s RATE_HAI 1Gb/s MIN_RATE 100Mb/s L2_CHUNK_SIZE 4000 EWMA_GAIN 0.0625 "
              "RP_TIMER 20 ALPHA_RESUME_INTERVAL 5 FAST_RECOVERY_TIMES 1 BUFFER_SIZE 8");
    add_number(n, "CC_MODE", n->control);
    add_number(n, "PACKET_PAYLOAD_SIZE", n->payload);
    add_number(n, "WIRE_OVERHEAD", n->overhead);
    add_number(n, "L2_ACK_INTERVAL", pick(n, 3) ? 1 : 3000);
    add_number(n, "HAS_WIN", n->control == 3 || n->control >= 10 || pick(n, 2));
    add_number(n, "GLOBAL_T", pick(n, 2));
    add_number(n, "VAR_WIN", pick(n, 2));
    add_number(n, "ACK_HIGH_PRIO", pick(n, 2));
    add_marks(n);
}

/* ---- flows ---- */

static void add_flow(net *n, unsigned from, unsigned to, uint64_t bytes)
{
    const unsigned i = n->flows++;
    n->from[i] = from;
    n->to[i] = to;
    n->bytes[i] = bytes;
    const fab_send_request r = {.src = from,
                                .dst = to,
                                .size = bytes,
                                .token = i,
                                .class = (uint8_t)(1 + pick(n, n->classes))};
    orr_error err;
    CHECK_OK(fab_send(told.fabric, &r, &err), &err);
}

static void send_some(net *n)
{
    const unsigned kind = pick(n, 3), count = 1 + pick(n, 30), last = n->hosts - 1;
    n->flows = 0;
    if (kind == 0) { /* all to the last one */
        for (unsigned i = 0; i < last; i++)
            add_flow(n, i, last, 1 + pick(n, 150000));
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned from = pick(n, n->hosts), to = (from + 1 + pick(n, last)) % n->hosts;
        add_flow(n, from, to, kind == 1 ? 60000 : 1 + pick(n, 100000));
    }
}

/* ---- laws ---- */

/* The least delay from host to host, ns. */
static void find_delays(const net *n, uint64_t d[MOST_NODES][MOST_NODES])
{
    for (unsigned i = 0; i < n->nodes; i++)
        for (unsigned k = 0; k < n->nodes; k++)
            d[i][k] = i == k ? 0 : UINT32_MAX;
    for (unsigned i = 0; i < n->links; i++) {
        const wire *l = &n->link[i];
        d[l->a][l->b] = d[l->b][l->a] = at_most(d[l->a][l->b], l->delay_ns);
    }
    for (unsigned m = 0; m < n->nodes; m++)
        for (unsigned i = 0; i < n->nodes; i++)
            for (unsigned k = 0; k < n->nodes; k++)
                d[i][k] = at_most(d[i][k], d[i][m] + d[m][k]);
}

/* All packets pass the links of both hosts, which are the first n->hosts of the list. */
static void check_times(const net *n)
{
    uint64_t delay[MOST_NODES][MOST_NODES];
    find_delays(n, delay);
    for (unsigned i = 0; i < n->flows; i++) {
        const uint64_t rate = n->link[n->from[i]].gbps, other = n->link[n->to[i]].gbps;
        const uint64_t full = (n->bytes[i] - 1) / n->payload;
        const uint64_t last = n->bytes[i] - full * n->payload + n->header + n->overhead;
        const uint64_t least =
            delay[n->from[i]][n->to[i]] * 1000 + ticks(last, rate) + ticks(last, other) +
            full * ticks(n->payload + n->header + n->overhead, at_most(rate, other));
        const uint64_t back = delay[n->from[i]][n->to[i]] * 1000 +
                              ticks(n->ack + n->overhead, rate) +
                              ticks(n->ack + n->overhead, other);
        CHECK(told.arrived_at[i] >= least);
        CHECK(told.sent_at[i] >= told.arrived_at[i] + back);
    }
}

static void check_ports(const net *n, const fab *f)
{
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        const uint64_t bytes = p->bytes_sent + p->frames_sent * n->overhead;
        CHECK_EQ_U(p->busy_ticks, ticks(bytes, p->rate / 1000000000u));
        CHECK(p->busy_ticks <= p->busy_until);
        CHECK_EQ_U(p->wire_count, 0);
    }
}

/* Frames that switches send down to hosts, without pauses: each pause of a host is taken back
 * once. */
static uint64_t count_delivered(const fab *f)
{
    uint64_t down = 0;
    for (uint32_t i = 0; i < f->port_count; i++) {
        const fab_port *p = &f->ports[i];
        if (p->is_switch && !f->ports[p->peer].is_switch)
            down += p->frames_sent - 2 * (uint64_t)f->ports[p->peer].pause_count;
    }
    return down;
}

static uint64_t count_lost_at_hosts(const fab *f)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < f->port_count; i++)
        lost += f->ports[i].is_switch ? 0 : f->ports[i].lost;
    return lost;
}

/* Frames of pauses are lost with others, and nobody counts them apart: then it is not known how
 * many were sent. */
static void check_frames(const net *n, const fab *f)
{
    const fab_figures *g = &f->figures;
    uint64_t sum = 0;
    for (unsigned i = 0; i < n->flows; i++)
        sum += n->bytes[i];
    CHECK_EQ_U(g->data_bytes, sum + g->retransmitted_bytes);
    CHECK_EQ_U(g->flows_done, n->flows);
    if (!n->is_lossy && !n->has_failures)
        CHECK_EQ_U(g->lost, 0);
    if (n->has_pauses && !n->has_failures && !n->is_lossy)
        CHECK_EQ_U(g->dropped, 0);
    if (n->has_pauses && (n->is_lossy || n->has_failures))
        return;
    CHECK_EQ_U(g->data_packets + g->acks + g->nacks,
               count_delivered(f) + (g->lost - count_lost_at_hosts(f)) + g->dropped);
}

static void check_empty(const net *n, const fab *f)
{
    for (uint32_t i = 0; i < f->port_count * FAB_CLASSES; i++) {
        CHECK_EQ_U(f->queues[i].ingress + f->queues[i].headroom + f->queues[i].egress, 0);
        CHECK_EQ_U(f->queues[i].head, FAB_NONE);
    }
    for (uint32_t i = 0; i < f->port_count; i++) {
        CHECK_EQ_U(f->ports[i].queued_bytes, 0);
        CHECK(n->has_failures || n->is_lossy || (!f->ports[i].paused && !f->ports[i].pause_sent));
    }
    for (uint32_t i = 0; i < f->node_count; i++)
        CHECK_EQ_U(f->nodes[i].shared, 0);
    size_t are_free = 0;
    for (uint32_t i = f->free_frame; i != FAB_NONE; i = f->frames[i].next)
        are_free++;
    CHECK_EQ_U(are_free, f->frame_count);
    CHECK_EQ_U(f->under_way, 0);
}

static void check_laws(const net *n)
{
    CHECK_EQ_U(told.sent, n->flows);
    CHECK_EQ_U(told.arrived, n->flows);
    check_times(n);
    check_ports(n, told.fabric);
    check_frames(n, told.fabric);
    check_empty(n, told.fabric);
}

/* A link between switches fails for a while; whoever has no other way waits. */
static void plan_failure(net *n, orr__link_events *e)
{
    static orr__link_event events[2];
    orr_error err;
    const wire *l = &n->link[n->hosts + pick(n, n->links - n->hosts)];
    const uint64_t at = 1000000u * (1 + (uint64_t)pick(n, 30));
    events[0] = (orr__link_event){.at_ps = at, .a = l->a, .b = l->b};
    events[1] = (orr__link_event){
        .at_ps = at + 1000000u * (1 + (uint64_t)pick(n, 100)), .a = l->a, .b = l->b, .is_up = true};
    *e = (orr__link_events){.events = events, .count = 2};
    CHECK_OK(fab_plan(told.fabric, e, &err), &err);
}

static void try_network(void)
{
    static net n;
    orr__link_events plan;
    memset(&n, 0, sizeof n);
    orr_rng_init(&n.r, seed, 1);
    const unsigned kind = pick(&n, 4);
    (kind == 0 ? make_mesh : kind == 1 ? make_tree : make_leaves)(&n);
    n.has_pauses = kind && pick(&n, 2);
    n.is_lossy = !pick(&n, 4);
    n.has_failures = n.links > n.hosts && !pick(&n, 4);
    write_topology(&n, n.is_lossy ? 0.003 : 0);
    choose_settings(&n);
    choose_transport(&n);
    fabric_make(n.config, n.topology, &told);
    if (n.has_failures)
        plan_failure(&n, &plan);
    send_some(&n);
    fabric_run_all(&told);
    check_laws(&n);
    fab_destroy(told.fabric);
}

TEST(test_fabric_laws__hold_in_random_networks)
{
    for (seed = 1; seed <= NETWORKS; seed++)
        try_network();
}

/* ---- headers before data ---- */

/* Hosts of 200 Gb/s at two leaves, two spines, links of 10 Gb/s between: packets of 256 bytes are
 * cut to headers of 36, and where NACKs come back over both spines they make more of them than fit
 * on one link.  Each packet waits for its turn, for a hundred headers at most: (100 x 36 + 292)
 * bytes a packet, 3113.6 ns, if all went over one link. */
static void try_headers(void)
{
    enum { FLOWS = 8, PACKETS = 60 };
    static net n;
    memset(&n, 0, sizeof n);
    n.hosts = 4;
    n.nodes = 8;
    n.classes = 1;
    for (unsigned h = 0; h < 4; h++)
        add_link(&n, h, 4 + h / 2, 200, 500);
    for (unsigned i = 0; i < 4; i++)
        add_link(&n, 4 + i / 2, 6 + i % 2, 10, 500);
    write_topology(&n, 0);
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 PACKET_PAYLOAD_SIZE 256 TRANSPORT selective ENABLE_PFC 0 "
                              "QUEUE_LIMIT 20000 TRIMMING 1 ",
                n.topology, &told);
    orr_rng_init(&n.r, seed, 4);
    for (unsigned i = 0; i < FLOWS; i++)
        add_flow(&n, pick(&n, 2), 2 + pick(&n, 2), PACKETS * 256);
    while (told.sent < FLOWS && fab_now(told.fabric) < (uint64_t)FLOWS * PACKETS * 3113600 &&
           fab_run(told.fabric, 100))
        ;
    CHECK_EQ_U(told.sent, FLOWS);
    fab_destroy(told.fabric);
}

TEST(test_fabric_laws__headers_of_cut_packets_do_not_keep_data_away)
{
    for (seed = 1; seed <= CHAINS; seed++)
        try_headers();
}

/* ---- one flow over a chain ---- */

enum { MOST_PACKETS = 256 };

/* at[i]: when packet i is there; afterwards when it is at the other end of the link. */
static void pass_link(const wire *l, uint64_t *at, const uint64_t *size, unsigned count)
{
    uint64_t idle_at = 0;
    for (unsigned i = 0; i < count; i++) {
        idle_at = (at[i] > idle_at ? at[i] : idle_at) + ticks(size[i], l->gbps);
        at[i] = idle_at + l->delay_ns * 1000;
    }
}

/* Hosts 0 and 1 at embedding and head of a chain of switches; the links in their order from 0 to 1. */
static void make_chain(net *n)
{
    const unsigned switches = 1 + pick(n, 6);
    n->hosts = 2;
    n->nodes = 2 + switches;
    for (unsigned i = 0; i <= switches; i++)
        add_link(n, i ? 1 + i : 0, i < switches ? 2 + i : 1, random_rate(n), random_delay(n));
}

static void try_chain(void)
{
    static net n;
    static uint64_t at[MOST_PACKETS], size[MOST_PACKETS];
    memset(&n, 0, sizeof n);
    orr_rng_init(&n.r, seed, 2);
    make_chain(&n);
    write_topology(&n, 0);
    n.classes = 7;
    n.payload = 100 + pick(&n, 5000);
    n.overhead = pick(&n, 40);
    add_words(&n, FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 64");
    add_number(&n, "PACKET_PAYLOAD_SIZE", n.payload);
    add_number(&n, "WIRE_OVERHEAD", n.overhead);
    add_words(&n, pick(&n, 2) ? "TRANSPORT selective" : "");
    fabric_make(n.config, n.topology, &told);
    const unsigned count = 1 + pick(&n, MOST_PACKETS);
    const uint64_t last = 1 + pick(&n, (unsigned)n.payload);
    add_flow(&n, 0, 1, (count - 1) * n.payload + last);
    fabric_run_all(&told);
    for (unsigned i = 0; i < count; i++) {
        at[i] = 0;
        size[i] = (i + 1 < count ? n.payload : last) + 36 + n.overhead;
    }
    for (unsigned i = 0; i < n.links; i++)
        pass_link(&n.link[i], at, size, count);
    CHECK_EQ_U(told.arrived_at[0], at[count - 1]);
    for (unsigned i = 0; i < count; i++)
        size[i] = 48 + n.overhead;
    for (unsigned i = n.links; i-- > 0;)
        pass_link(&n.link[i], at, size, count);
    CHECK_EQ_U(told.sent_at[0], at[count - 1]);
    fab_destroy(told.fabric);
}

TEST(test_fabric_laws__one_flow_over_a_chain_takes_what_its_links_take)
{
    for (seed = 1; seed <= CHAINS; seed++)
        try_chain();
}

/* ---- a link that is shared ---- */

/* n equal flows into one link, all links alike: it is never idle from the first packet's arrival to
 * the last one's, so the last flow ends at an exact time, and the others, served in turn, not
 * before each had as many turns. */
static void try_share(void)
{
    static net n;
    memset(&n, 0, sizeof n);
    orr_rng_init(&n.r, seed, 3);
    const unsigned flows = 2 + pick(&n, 10), packets = 20 + pick(&n, 100);
    const uint64_t rate = random_rate(&n), delay = random_delay(&n), frame = ticks(1036, rate);
    n.hosts = flows + 1;
    n.nodes = n.hosts + 1;
    n.classes = 1;
    for (unsigned i = 0; i < n.hosts; i++)
        add_link(&n, i, n.hosts, rate, delay);
    write_topology(&n, 0);
    fabric_make(FABRIC_CONFIG "HAS_WIN 0 BUFFER_SIZE 64 ", n.topology, &told);
    for (unsigned i = 0; i < flows; i++)
        add_flow(&n, i, flows, packets * 1000u);
    fabric_run_all(&told);
    const uint64_t way = frame + 2 * delay * 1000;
    uint64_t latest = 0;
    for (unsigned i = 0; i < flows; i++) {
        latest = told.arrived_at[i] > latest ? told.arrived_at[i] : latest;
        CHECK(told.arrived_at[i] >= way + ((uint64_t)flows * (packets - 1) + 1) * frame);
    }
    CHECK_EQ_U(latest, way + (uint64_t)flows * packets * frame);
    CHECK_EQ_U(told.fabric->figures.pauses, 0);
    fab_destroy(told.fabric);
}

TEST(test_fabric_laws__a_shared_link_is_never_idle_and_serves_in_turn)
{
    for (seed = 1; seed <= CHAINS; seed++)
        try_share();
}

int main(void)
{
    const CMUnitTest tests[] = {
        RUN(test_fabric_laws__one_flow_over_a_chain_takes_what_its_links_take),
        RUN(test_fabric_laws__a_shared_link_is_never_idle_and_serves_in_turn),
        RUN(test_fabric_laws__hold_in_random_networks),
        RUN(test_fabric_laws__headers_of_cut_packets_do_not_keep_data_away),
    };
    const int failed = RUN_ALL(tests);
    if (failed)
        fprintf(stderr, "# the last seed was %" PRIu64 "\n", seed);
    return failed;
}
