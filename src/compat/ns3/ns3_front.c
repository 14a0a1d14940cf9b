/* SPDX-License-Identifier: Apache-2.0 */
/* ns3_front.c - the rules of AstraSimNetwork: those of ASTRA-sim, and messages matched by tag,
 * source and destination, counting bytes (packet-network.md 6.1).
 *
 * Arrived and requested bytes match in either order.  Receives with the same key are merged, and
 * only the latest callback is kept; where that loses a callback the reference hangs, and so do
 * we.  Entries are in a hash table with chaining; one with no bytes on either side is removed. */
#include "ns3_front.h"

#include "compat/hash_order.h"
#include "run/match.h"
#include "run/run_state.h"

#include "base/memory/hash.h"

typedef struct entry {
    uint32_t tag, src, dst;
    uint32_t next; /* link of its chain or of the free list */
    uint64_t arrived, expected;
    clk_call call;
    bool is_used;
} entry;

struct byte_matcher {
    entry *entries;
    size_t count, room;
    uint32_t free;
    uint32_t heads[4096];
};

static void *create(void)
{
    struct byte_matcher *m = orr_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->free = RUN_NONE;
    memset(m->heads, 0xff, sizeof m->heads);
    return m;
}

static void destroy(void *matcher)
{
    struct byte_matcher *m = matcher;
    if (!m)
        return;
    orr_free(m->entries);
    orr_free(m);
}

/* The chain link that refers to the entry of a key; NONE if there is no entry. */
static uint32_t *find(struct byte_matcher *m, uint32_t tag, uint32_t src, uint32_t dst)
{
    const uint64_t hash =
        orr_hash_mix(((uint64_t)tag << 32 | src) ^ 0x9e3779b97f4a7c15u, dst ^ 0xe7037ed1a0b428dbu);
    uint32_t *at = &m->heads[hash % (sizeof m->heads / sizeof *m->heads)];
    while (*at != RUN_NONE) {
        const entry *e = &m->entries[*at];
        if (e->tag == tag && e->src == src && e->dst == dst)
            break;
        at = &m->entries[*at].next;
    }
    return at;
}

/* NULL: out of memory. */
static entry *find_or_make(struct byte_matcher *m, uint32_t tag, uint32_t src, uint32_t dst)
{
    uint32_t i = *find(m, tag, src, dst);
    if (i != RUN_NONE)
        return &m->entries[i];
    if (m->free != RUN_NONE) {
        i = m->free;
        m->free = m->entries[i].next;
    } else {
        if (m->count >= RUN_NONE || !orr_grow(&m->entries, &m->room, m->count + 1))
            return NULL;
        i = (uint32_t)m->count++;
    }
    m->entries[i] = (entry){.tag = tag, .src = src, .dst = dst, .next = RUN_NONE, .is_used = true};
    *find(m, tag, src, dst) = i; /* only now: the entries may have been reallocated */
    return &m->entries[i];
}

static void drop_if_empty(struct byte_matcher *m, entry *e)
{
    if (e->arrived || e->expected)
        return;
    uint32_t *at = find(m, e->tag, e->src, e->dst);
    *at = e->next;
    e->next = m->free;
    e->is_used = false;
    m->free = (uint32_t)(e - m->entries);
}

static bool receive(
    void *matcher, const run_bytes_key *k, uint64_t size, clk_call on_received, bool *is_there)
{
    struct byte_matcher *m = matcher;
    entry *e = find_or_make(m, k->tag, k->src, k->dst);
    if (!e)
        return false;
    *is_there = e->arrived >= size;
    if (*is_there) {
        e->arrived -= size;
    } else {
        e->expected += size - e->arrived;
        e->arrived = 0;
        e->call = on_received;
    }
    drop_if_empty(m, e);
    return true;
}

static bool arrive(void *matcher, const run_bytes_key *k, uint64_t size, clk_call *then)
{
    struct byte_matcher *m = matcher;
    entry *e = find_or_make(m, k->tag, k->src, k->dst);
    *then = (clk_call){0};
    if (!e)
        return false;
    if (size < e->expected) {
        e->expected -= size;
        return true;
    }
    if (e->expected)
        *then = e->call;
    e->arrived += size - e->expected;
    e->expected = 0;
    drop_if_empty(m, e);
    return true;
}

static size_t count(const void *m)
{
    return ((const struct byte_matcher *)m)->count;
}

/* Unmatched bytes of an entry, for the explanation of a stall. */
static bool describe(const void *m, size_t i, msg_unmatched *out)
{
    const entry *e = &((const struct byte_matcher *)m)->entries[i];
    if (!e->is_used)
        return false;
    *out = (msg_unmatched){.kind = e->expected ? MSG_UNSENT : MSG_UNRECEIVED,
                           .tag = e->tag,
                           .src = e->src,
                           .dst = e->dst,
                           .size = e->expected ? e->expected : e->arrived};
    if (e->expected)
        out->receiver = e->call;
    return true;
}

const run_byte_matching ns3_byte_matching = {
    .create = create,
    .destroy = destroy,
    .receive = receive,
    .arrive = arrive,
    .count = count,
    .describe = describe,
};

/* Those of ASTRA-sim, except that events at tick 0 and single ranks are allowed (packet-network.md
 * 4.3). */
const orr_rules_run ns3_run_rules = {
    .needs_both_roots = true,
    .merges_equal_ids = true,
    .has_one_stream = true,
    .needs_peers = true,
    .reads_leading_digits = true,
    .has_no_roots = true,
    .runs_lonely = true,
    .sends_nothing = true,
    .shares_tags = true,
    .node_order = &orr__hash_order,
    .ignores_new_keys = true,
    .ignores_group_file = true,
    .has_no_topologies = true,
    .overrides_patterns = true,
    .orders_by_hash = true,
    .keeps_no_figures = true,
};

/* ---- the packet network ----
 *
 * The reference's side of each rule, including its quirks (packet-network.md 14).  Exact to the
 * nanosecond and to the order of simultaneous events, so that fct.txt is equal byte for byte.  Only
 * stalls differ: where a retransmission is missing the reference runs forever; here the run ends
 * with an error that explains it (14 row 5). */

/* Line rates with a code in its telemetry header (packet-network.md 8.2). */
static const uint64_t hpcc_rates[] = {25, 50, 100, 200, 400, 1200, 2400, 0};

const struct orr_rules_packet orr__ns3_rules = {
    .engine = {.ticks_per_ns = 1,
               .orders_by_schedule = true,
               .draws = &orr__ns3_draws,
               .measures_all_pairs = true,
               .routes_by_address = true,
               .link_down_offset = 2000000,
               .starts_in_two_events = true,
               .tells_receiver_at_ack = true,
               .acks_all_after_first = true,
               .forgets_receiver = true,
               .holds_all_acks = true,
               .hides_paced_flows = true,
               .reuses_last_flow = true,
               .largest_message = INT32_MAX,
               .hpcc_hops = 5,
               .hpcc_rates = hpcc_rates,
               .hpcc_wraps = true,
               .timely_sees_clock = true,
               .narrows_ideal = true},
    .counts_unknown_keys = true,
    .refuses_new_keys = true,
    .needs_ack_interval = true,
    .marks_all_unmapped = true,
    .ignores_more_traced = true,
    .allows_islands = true,
    .most_ports = 1024,
    .matches_bytes = true,
};
