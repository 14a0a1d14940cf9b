/* SPDX-License-Identifier: Apache-2.0 */
/* fab_host.c - hosts: flows, their NICs, receivers and senders (packet-network.md 6).
 *
 * Sender and receiver state of a flow are stored together, and a frame in flight keeps both alive.
 * The frame that carried data returns as its ACK. */
#include "fabric_impl.h"

/* TRANSPORT selective: the receiver keeps packets that arrive out of order, and only
 * lost ones are retransmitted.
 *
 *     packets:  0 1 2 3 4 5 6 7        expected = 2: all before it have arrived
 *     got:      1 1 0 1 1 1 0 0        each ACK carries one packet number and expected
 *
 * To its sender a packet is unsent, in flight, lost (to be sent again) or acknowledged.  It becomes
 * lost
 *   - when a NACK says so: a switch has cut it to its header (TRIMMING);
 *   - when a packet far enough after it was acknowledged: three if the packets of a flow stay in
 *     order, more if spread over several routes.  Once per packet; a retransmission is only lost
 *     if a packet that left later, by a round trip if routes differ, has been acknowledged;
 *   - when the timer says so.
 * Invariants: in_flight is the bytes of the packets in flight; packets before `settled` are
 * acknowledged. Cost: O(1) per packet, amortised. */

enum { IN_ORDER = 3, SPREAD = 128 };

static uint64_t packets_of(const fab *f, const fab_flow *w)
{
    return (w->size + f->config.payload - 1) / f->config.payload;
}

static bool has(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static void set(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

static void clear(uint64_t *bits, uint64_t i)
{
    bits[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* false: out of memory */
static bool selective_start(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    const uint64_t words = packets_of(f, w) / 64 + 1;
    w->got = orr_alloc(words, sizeof *w->got);
    w->repeat = orr_alloc(1, sizeof *w->repeat + 2 * words * sizeof *w->got);
    if (!w->got || !w->repeat)
        return false;
    w->repeat->told = (uint64_t *)(w->repeat + 1);
    w->repeat->missing = w->repeat->told + words;
    w->is_selective = true;
    return true;
}

void fab_selective_forget(fab_flow *w)
{
    orr_free(w->got);
    orr_free(w->repeat);
    w->got = NULL;
    w->repeat = NULL;
    w->is_selective = false;
}

/* The receiver: the packet has arrived, and possibly fills a gap before others. */
static void selective_take(fab *f, fab_flow *w, const fab_frame *data)
{
    const uint64_t count = packets_of(f, w);
    uint64_t next = w->expected / f->config.payload;
    if (w->expected >= w->size)
        return;
    /* A duplicate must not count: lanes compare the sum with what is missing (may_be_last). */
    w->gained += !has(w->got, data->sequence / f->config.payload);
    set(w->got, data->sequence / f->config.payload);
    while (next < count && has(w->got, next))
        next++;
    w->expected = next == count ? w->size : next * f->config.payload;
}

/* ---- the sender ---- */

static uint64_t bytes_of(const fab *f, const fab_flow *w, uint64_t packet)
{
    const uint64_t left = w->size - packet * f->config.payload;
    return left < f->config.payload ? left : f->config.payload;
}

static uint64_t sent_packets(const fab *f, const fab_flow *w)
{
    return (w->sent + f->config.payload - 1) / f->config.payload;
}

static uint64_t selective_again(const fab *f, fab_flow *w)
{
    fab_resend *r = w->repeat;
    /* No bit before missing_from is set, so whole words may be searched. */
    uint64_t word = r->missing_from / 64;
    while (!r->missing[word])
        word++;
    const uint64_t packet = word * 64 + (unsigned)__builtin_ctzll(r->missing[word]);
    clear(r->missing, packet);
    r->missing_count--;
    r->missing_from = packet + 1;
    r->resent_at = f->now;
    return packet * f->config.payload;
}

static void lose(const fab *f, fab_flow *w, uint64_t packet)
{
    fab_resend *r = w->repeat;
    if (packet >= sent_packets(f, w) || has(r->told, packet) || has(r->missing, packet))
        return;
    set(r->missing, packet);
    const uint64_t bytes = bytes_of(f, w, packet);
    w->in_flight -= bytes;
    r->losses += bytes;
    if (!r->missing_count++ || packet < r->missing_from)
        r->missing_from = packet;
}

static void lose_all(const fab *f, fab_flow *w, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        lose(f, w, from);
}

static void settle(const fab *f, fab_flow *w, uint64_t packet)
{
    fab_resend *r = w->repeat;
    if (has(r->told, packet))
        return;
    set(r->told, packet);
    const uint64_t bytes = bytes_of(f, w, packet);
    r->news += bytes;
    /* A lost packet left in_flight when it was declared lost. */
    if (!has(r->missing, packet)) {
        w->in_flight -= bytes;
        return;
    }
    clear(r->missing, packet);
    r->missing_count--;
}

/* Declares packets lost that are missing before acknowledged ones. */
static void infer(const fab *f, fab_flow *w, const fab_frame *ack)
{
    fab_resend *r = w->repeat;
    const bool is_spread = f->config.load_balance || f->config.trimming;
    const uint64_t patience = is_spread ? SPREAD : IN_ORDER;
    /* The packet left after the latest retransmission, and where routes differ a round trip after
     * it. */
    const bool is_later = ack->stamp > r->resent_at + (is_spread ? w->base_rtt : 0);
    const bool is_settled = is_later && !r->missing_count;
    if (r->farthest < r->settled + patience || (f->config.trimming && !is_settled))
        return;
    const uint64_t limit = r->farthest - patience + 1;
    const uint64_t from = is_settled || r->settled > r->recovered ? r->settled : r->recovered;
    lose_all(f, w, from, limit);
    if (limit > r->recovered)
        r->recovered = limit;
}

/* In an ACK, payload is the number of the acknowledged packet. */
static void selective_acked(fab *f, fab_flow *w, const fab_frame *ack)
{
    fab_resend *r = w->repeat;
    const uint64_t first = w->acked >= w->size ? packets_of(f, w) : w->acked / f->config.payload;
    r->news = r->losses = 0;
    for (; r->settled < first; r->settled++)
        settle(f, w, r->settled);
    if (ack->kind == FAB_FRAME_NACK) {
        lose(f, w, ack->payload);
        return;
    }
    settle(f, w, ack->payload);
    if (ack->payload > r->farthest)
        r->farthest = ack->payload;
    infer(f, w, ack);
}

/* a timeout */
static void selective_all_again(const fab *f, fab_flow *w)
{
    lose_all(f, w, w->repeat->settled, sent_packets(f, w));
    w->repeat->recovered = sent_packets(f, w);
}

/* Which flow of a NIC sends next (packet-network.md 6.5), without scanning all of
 * them.
 *
 *     place:   0 1 2 3 4 5 ...   flows in order of creation
 *     listed:  the flow is in the list of the reference
 *     ready:   bytes are left, the window has room and next_at has passed; one set per class
 *     done:    everything is acknowledged; the flow is still in the list
 *
 * The reference scans the list round-robin from the flow served last and takes the first that may
 * send; on the way it finds flows that are done, removes all those after the first of them, and
 * moves the others up.  Here flows do not move: a place is freed, and the order of places is the
 * order of the list.  The reference remembers the index of the flow served last.  As long as that
 * flow has not moved, its place is equivalent; when the list has shrunk and no flow was served, the
 * index counts (last_is_number), and is looked up. Flows that are not due are in a heap by next_at;
 * they become due when the NIC checks. Cost: a choice touches a few words, however many flows there
 * are; places are compacted when half of them are empty, so that a flow moves once on average. */

void fab_nic_fini(fab_nic *n)
{
    orr_free(n->flows);
    orr_free(n->paced);
    fab_places_fini(&n->listed);
    fab_places_fini(&n->done);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        fab_places_fini(&n->ready[i]);
}

/* ---- the heap of flows that are not due ---- */

static uint64_t time_of(const fab *f, uint32_t flow)
{
    return f->flows[flow].next_at;
}

static void put_in_heap(fab *f, fab_nic *n, size_t at, uint32_t flow)
{
    n->paced[at] = flow;
    f->flows[flow].heap_place = (uint32_t)at;
}

static void move_up(fab *f, fab_nic *n, size_t at)
{
    const uint32_t flow = n->paced[at];
    for (; at && time_of(f, flow) < time_of(f, n->paced[(at - 1) / 2]); at = (at - 1) / 2)
        put_in_heap(f, n, at, n->paced[(at - 1) / 2]);
    put_in_heap(f, n, at, flow);
}

static void move_down(fab *f, fab_nic *n, size_t at)
{
    const uint32_t flow = n->paced[at];
    for (size_t c; (c = 2 * at + 1) < n->paced_count; at = c) {
        if (c + 1 < n->paced_count && time_of(f, n->paced[c + 1]) < time_of(f, n->paced[c]))
            c++;
        if (time_of(f, n->paced[c]) >= time_of(f, flow))
            break;
        put_in_heap(f, n, at, n->paced[c]);
    }
    put_in_heap(f, n, at, flow);
}

static void leave_heap(fab *f, fab_nic *n, uint32_t flow)
{
    const uint32_t at = f->flows[flow].heap_place;
    if (at == FAB_NO_PLACE)
        return;
    f->flows[flow].heap_place = FAB_NO_PLACE;
    const uint32_t last = n->paced[--n->paced_count];
    if (last == flow)
        return;
    put_in_heap(f, n, at, last);
    /* The last one may belong above the gap as well as below. */
    move_up(f, n, at);
    move_down(f, n, f->flows[last].heap_place);
}

static void enter_heap(fab *f, fab_nic *n, uint32_t flow)
{
    if (f->flows[flow].heap_place == FAB_NO_PLACE) {
        put_in_heap(f, n, n->paced_count++, flow); /* there is room for all flows of the NIC */
        move_up(f, n, n->paced_count - 1);
        return;
    }
    move_up(f, n, f->flows[flow].heap_place);
    move_down(f, n, f->flows[flow].heap_place);
}

/* ---- what is known of a flow ---- */

static bool is_window_bound(const fab *f, const fab_flow *w)
{
    if (!w->window)
        return false;
    /* a whole packet must fit; this matters for windows of a packet or two */
    if (w->counts_flight)
        return w->in_flight && w->in_flight + f->config.payload > w->window;
    uint64_t window = w->window;
    if (f->config.var_window) {
        window = w->rate == w->line_rate
                     ? window
                     : (uint64_t)((unsigned __int128)window * w->rate / w->line_rate);
        if (!window)
            window = 1;
        if (f->config.back_to_zero && f->rules.completes_chunks && window < f->config.chunk)
            window = f->config.chunk; /* else none would be acknowledged */
    }
    /* Signed: by the reference's rules sent may be behind acked (rules.skips_acked). */
    return (int64_t)(w->sent - w->acked) >= (int64_t)window;
}

static void note_ready(fab_nic *n, const fab_flow *w)
{
    if (w->is_open && w->is_due)
        fab_places_add(&n->ready[w->class], w->place);
    else
        fab_places_remove(&n->ready[w->class], w->place);
}

/* The flow served last may be removed, or change its index: from now on the index counts. */
static void remember_number(fab_nic *n)
{
    if (!n->last_is_number)
        n->last = fab_places_rank(&n->listed, n->last);
    n->last_is_number = true;
}

void fab_nic_update(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_nic *n = &f->nics[f->ports[w->port].nic];
    if (!w->is_listed)
        return;
    const bool has_window = !is_window_bound(f, w);
    w->is_open = (w->sent < w->size && has_window) ||
                 (fab_flow_misses(w) && (has_window || !w->counts_flight));
    note_ready(n, w);
    if (w->acked >= w->size)
        fab_places_add(&n->done, w->place);
}

/* next_at has */
static void nic_pace(fab *f, uint32_t flow, uint64_t known_until)
{
    fab_flow *w = &f->flows[flow];
    fab_nic *n = &f->nics[f->ports[w->port].nic];
    if (!w->is_listed)
        return;
    /* Nothing is chosen before known_until, so what is due by then counts as due. */
    w->is_due = w->next_at <= known_until;
    note_ready(n, w);
    if (w->is_due)
        leave_heap(f, n, flow);
    else
        enter_heap(f, n, flow);
}

/* ---- the list ---- */

/* Compacts the places; the round-robin position does not change. */
static void close_gaps(fab *f, fab_nic *n)
{
    uint32_t kept = 0, last = n->last;
    fab_places_clear(&n->done);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        fab_places_clear(&n->ready[i]);
    for (uint32_t at = 0; (at = fab_places_first(&n->listed, at, n->places)) != FAB_NO_PLACE;
         at++) {
        fab_flow *w = &f->flows[n->flows[at]];
        if (!n->last_is_number && at == n->last)
            last = kept;
        n->flows[kept] = n->flows[at];
        w->place = kept++;
        if (w->is_open && w->is_due)
            fab_places_add(&n->ready[w->class], w->place);
        if (w->acked >= w->size)
            fab_places_add(&n->done, w->place);
    }
    fab_places_clear(&n->listed);
    for (uint32_t i = 0; i < kept; i++)
        fab_places_add(&n->listed, i);
    n->places = kept;
    n->last = last;
}

static bool make_room(fab_nic *n, unsigned class)
{
    const size_t count = (size_t)n->places + 1;
    return orr_grow(&n->flows, &n->flow_room, count) &&
           orr_grow(&n->paced, &n->paced_room, count) && fab_places_need(&n->listed, count) &&
           fab_places_need(&n->done, count) && fab_places_need(&n->ready[class], count);
}

/* false: out of memory */
static bool nic_add(fab *f, fab_nic *n, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    if (n->places > 2 * n->count + 64)
        close_gaps(f, n);
    if (!make_room(n, w->class))
        return false;
    w->place = n->places;
    w->heap_place = FAB_NO_PLACE;
    w->is_listed = true;
    n->classes |= (uint8_t)(1u << w->class);
    n->flows[n->places++] = flow;
    n->count++;
    fab_places_add(&n->listed, w->place);
    fab_nic_update(f, flow);
    nic_pace(f, flow, f->now);
    return true;
}

/* The index of the flow served last stays. */
static void nic_clear(fab *f, fab_nic *n)
{
    remember_number(n);
    for (uint32_t at = 0; (at = fab_places_first(&n->listed, at, n->places)) != FAB_NO_PLACE;
         at++) {
        f->flows[n->flows[at]].is_listed = false;
        f->flows[n->flows[at]].heap_place = FAB_NO_PLACE;
    }
    fab_places_clear(&n->listed);
    fab_places_clear(&n->done);
    for (unsigned i = 0; i < FAB_CLASSES; i++)
        fab_places_clear(&n->ready[i]);
    n->places = n->count = 0;
    n->paced_count = 0;
}

/* ---- choosing ---- */

/* The first flow from `from` to `to` - 1 that may send. */
static uint32_t first_ready(const fab_nic *n, unsigned classes, uint32_t from, uint32_t to)
{
    uint32_t first = FAB_NO_PLACE;
    for (; classes; classes &= classes - 1) {
        const uint32_t at = fab_places_first(&n->ready[__builtin_ctz(classes)], from, to);
        first = at < first ? at : first;
    }
    return first;
}

static void become_due(fab *f, fab_nic *n)
{
    while (n->paced_count && time_of(f, n->paced[0]) <= f->now) {
        const uint32_t flow = n->paced[0];
        f->flows[flow].is_due = true;
        note_ready(n, &f->flows[flow]);
        leave_heap(f, n, flow);
    }
}

/* From place `at` on, finished flows leave the list. */
static void remove_done(fab *f, fab_nic *n, uint32_t at)
{
    for (; (at = fab_places_first(&n->done, at, n->places)) != FAB_NO_PLACE; at++) {
        const uint32_t flow = n->flows[at];
        fab_flow *w = &f->flows[flow];
        leave_heap(f, n, flow);
        fab_places_remove(&n->listed, at);
        fab_places_remove(&n->done, at);
        fab_places_remove(&n->ready[w->class], at);
        n->count--;
        w->is_listed = false;
        fab_flow_let_go(f, flow);
    }
}

/* The first place of a finished flow passed between `from` and `chosen`, cyclically. */
static uint32_t first_met(const fab_nic *n, uint32_t from, uint32_t chosen)
{
    if (chosen != FAB_NO_PLACE && chosen >= from)
        return fab_places_first(&n->done, from, chosen);
    const uint32_t low = fab_places_first(&n->done, 0, chosen == FAB_NO_PLACE ? from : chosen);
    return low != FAB_NO_PLACE ? low : fab_places_first(&n->done, from, n->places);
}

/* The place at which the search begins: after the flow served last. */
static uint32_t first_to_ask(const fab_nic *n)
{
    if (n->last_is_number)
        return fab_places_select(&n->listed, (n->last + 1) % n->count);
    const uint32_t next = fab_places_first(&n->listed, n->last + 1, n->places);
    return next != FAB_NO_PLACE ? next : fab_places_first(&n->listed, 0, n->places);
}

/* Removes finished flows, from the first one passed.  The reference removes even the chosen one, if
 * it is finished and retransmits all the same; then its index refers to the following flow. */
static uint32_t tidy_up(fab *f, fab_nic *n, uint32_t met, uint32_t chosen)
{
    if (chosen == FAB_NO_PLACE)
        remember_number(n);
    if (chosen == FAB_NO_PLACE || chosen < met || !fab_places_has(&n->done, chosen)) {
        remove_done(f, n, met);
        return chosen;
    }
    const uint32_t number = fab_places_rank(&n->listed, chosen);
    remove_done(f, n, met);
    n->last = number;
    n->last_is_number = true;
    return number < n->count ? fab_places_select(&n->listed, number) : FAB_NO_PLACE;
}

static uint32_t nic_choose(fab *f, fab_port *p)
{
    fab_nic *n = &f->nics[p->nic];
    if (n->count == 0)
        return FAB_NONE;
    become_due(f, n);
    const uint32_t from = first_to_ask(n);
    const unsigned classes = n->classes & ~(unsigned)p->paused;
    uint32_t chosen = first_ready(n, classes, from, n->places);
    if (chosen == FAB_NO_PLACE)
        chosen = first_ready(n, classes, 0, from);
    const uint32_t met = first_met(n, from, chosen);
    if (met != FAB_NO_PLACE)
        chosen = tidy_up(f, n, met, chosen);
    if (chosen == FAB_NO_PLACE)
        return FAB_NONE;
    n->last = chosen;
    n->last_is_number = false;
    if (chosen + 1 < n->places) { /* most likely next, and no longer cached */
        __builtin_prefetch(&f->flows[n->flows[chosen + 1]]);
        __builtin_prefetch(&f->flows[n->flows[chosen + 1]].highest);
    }
    return n->flows[chosen];
}

static bool nic_next(const fab *f, const fab_nic *n, uint64_t *at)
{
    if (n->paced_count == 0)
        return false;
    if (f->rules.hides_paced_flows && n->paced_count < n->count)
        /* one that is due but blocked otherwise hides the others (packet-network.md 14 row 16) */
        return false;
    *at = time_of(f, n->paced[0]);
    return *at > f->now;
}

enum { NACK_INTERVAL_NS = 500000, NIC_PAUSE_NS = 10000, NIC_READY_NS = 1000000 };

/* ---- rates ---- */

/* The window may depend on the rate. */
static void rate_has_changed(fab *f, uint32_t flow)
{
    if (f->config.var_window)
        fab_nic_update(f, flow);
}

void fab_flow_change_rate(fab *f, uint32_t flow, uint64_t rate)
{
    f->flows[flow].rate = rate;
    rate_has_changed(f, flow);
}

/* ---- the NIC ---- */

static void wake_at(fab *f, fab_port *p, uint64_t at)
{
    f->nics[p->nic].wake =
        fab_after(f, at > f->now ? at - f->now : 0, FAB_EV_WAKE, fab_port_of(f, p));
}

/* A flow may send earlier than the NIC would check (packet-network.md 8.2). */
static void wake_by(fab *f, fab_port *p, uint64_t at)
{
    fab_nic *n = &f->nics[p->nic];
    if (n->wake == FAB_NO_EVENT || at >= fab_wheel_event(&f->wheel, n->wake)->at)
        return;
    fab_cancel(f, &n->wake);
    wake_at(f, p, at);
}

void fab_flow_set_rate(fab *f, uint32_t flow, uint64_t rate)
{
    fab_flow *w = &f->flows[flow];
    fab_port *p = &f->ports[w->port];
    /* The gap behind the latest packet, as it is at the new rate. */
    w->next_at += fab_transmission_time(f, w->last_size, rate) -
                  fab_transmission_time(f, w->last_size, w->rate);
    if (w->is_listed)
        nic_pace(f, flow, fab_port_is_busy(f, p) ? p->busy_until : f->now);
    wake_by(f, p, w->next_at);
    fab_flow_change_rate(f, flow, rate);
}

static uint32_t own_ports(const fab_flow *w)
{
    return w->src_port | (uint32_t)w->dst_port << 16;
}

static uint32_t swapped_ports(const fab_flow *w)
{
    return w->dst_port | (uint32_t)w->src_port << 16;
}

static void arm_timeout(fab *f, uint32_t flow);

/* The entropy value of a packet: switches hash it, so that packets of one flow can take different
 * routes (LOAD_BALANCE). */
static uint16_t choose_entropy(const fab *f, fab_flow *w)
{
    if (!f->config.load_balance)
        return 0;
    const bool is_after_gap = f->now - w->last_sent_at > f->config.flowlet_gap_ns * f->unit;
    w->last_sent_at = f->now;
    switch (f->config.load_balance) {
    case ORR__BALANCE_SPRAY:
        return ++w->entropy;
    case ORR__BALANCE_FLOWLET:
        return is_after_gap ? ++w->entropy : w->entropy;
    case ORR__BALANCE_REPS:
        return w->good_count ? w->good[--w->good_count] : ++w->entropy;
    default:
        return 0;
    }
}

static void remember_route(fab_flow *w, const fab_frame *ack)
{
    if (!ack->echoes_mark && w->good_count < FAB_GOOD_ROUTES)
        w->good[w->good_count++] = ack->power;
}

static uint32_t next_packet(fab *f, uint32_t flow)
{
    const uint32_t id = fab_frame_new(f);
    if (id == FAB_NONE)
        return id;
    fab_flow *w = &f->flows[flow];
    uint64_t sequence = w->sent;
    const bool is_again = fab_flow_misses(w);
    if (is_again)
        sequence = selective_again(f, w);
    const uint64_t left = w->size - sequence;
    const uint32_t payload = (uint32_t)(left < f->config.payload ? left : f->config.payload);
    f->frames[id] = (fab_frame){.kind = FAB_FRAME_DATA,
                                .sequence = sequence,
                                .stamp = f->now,
                                .power = choose_entropy(f, w),
                                .flow = flow,
                                .size = payload + FAB_HEADER_BYTES + f->int_bytes,
                                .payload = payload,
                                .from = w->src,
                                .to = w->dst,
                                .ports = own_ports(w),
                                .class = w->class,
                                .is_last = payload == left};
    w->sent += is_again ? 0 : payload;
    /* After going back (sent = acked) bytes are sent again: only those beyond the highest are
     * new. */
    const uint64_t fresh = w->sent > w->highest ? w->sent - w->highest : 0;
    w->highest += fresh;
    f->figures.retransmitted_bytes += payload - fresh;
    w->in_flight += payload;
    w->frames++;
    f->figures.data_packets++;
    f->figures.data_bytes += payload;
    return id;
}

static void send_packet(fab *f, fab_port *p, uint32_t flow)
{
    const uint32_t id = next_packet(f, flow);
    if (id == FAB_NONE)
        return;
    const uint32_t size = f->frames[id].size;
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, &f->frames[id], FAB_FRAME_DEQUEUED, f->frames[id].class);
    fab_port_transmit(f, p, id);
    p->bytes_sent += size;
    fab_flow *w = &f->flows[flow];
    w->last_size = size;
    const bool at_line_rate = !f->config.rate_bound || w->rate == p->rate;
    w->next_at = at_line_rate
                     ? p->busy_until
                     : f->now + fab_transmission_time(f, size + f->config.wire_overhead, w->rate);
    fab_nic_update(f, flow);
    /* Known only now: the packet fills the window, or is the last. */
    f->frames[id].asks_ack = !w->is_open;
    nic_pace(f, flow, p->busy_until);
    if (f->rules.has_timeouts)
        arm_timeout(f, flow);
    /* The connection's next message may follow. */
    if (w->after != FAB_NONE && w->highest >= w->size) {
        const uint32_t next = w->after;
        w->after = FAB_NONE;
        fab_host_ready(f, next);
    }
}

/* Pauses do not block pause frames, or hosts that pause each other would deadlock; in the reference
 * they do. */
static bool is_never_held(const fab *f, uint32_t frame)
{
    return f->frames[frame].kind == FAB_FRAME_PFC && !f->rules.holds_all_acks;
}

/* The class whose pause blocks the next ACK; in the reference all are of
 * class 3. */
static inline unsigned class_of_acks(const fab *f, const fab_nic *n)
{
    if (f->rules.holds_all_acks)
        return f->config.ack_high_prio ? 0 : FAB_FLOW_CLASS;
    return f->frames[n->ack_head].class;
}

/* ACKs of the highest class overtake data forwarded by a host, as in switches. */
static void queue_reply(fab *f, fab_nic *n, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    if (!f->rules.acks_high_in_switches || m->class != 0 || m->kind == FAB_FRAME_DATA) {
        fab_queue_push(f, &n->ack_head, &n->ack_tail, frame);
        return;
    }
    uint32_t *at = n->urgent_tail == FAB_NONE ? &n->ack_head : &f->frames[n->urgent_tail].next;
    /* Pause frames stay in front (queue_nic_pfc). */
    while (*at != FAB_NONE && is_never_held(f, *at))
        at = &f->frames[*at].next;
    m->next = *at;
    if (*at == FAB_NONE)
        n->ack_tail = frame;
    *at = frame;
    n->urgent_tail = frame;
}

static bool send_ack_waiting(fab *f, fab_port *p, fab_nic *n)
{
    if (n->ack_head == FAB_NONE ||
        ((p->paused >> class_of_acks(f, n) & 1) && !is_never_held(f, n->ack_head)))
        return false;
    const uint32_t frame = fab_queue_pop(f, &n->ack_head);
    if (frame == n->urgent_tail)
        n->urgent_tail = FAB_NONE;
    if (n->ack_head != FAB_NONE)
        __builtin_prefetch(&f->frames[n->ack_head]);
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, &f->frames[frame], FAB_FRAME_DEQUEUED, 0);
    p->bytes_sent += f->frames[frame].size;
    if (f->rules.forwards_in_turn && f->frames[frame].kind == FAB_FRAME_DATA)
        n->has_forwarded = true; /* an ACK does not count as a turn */
    fab_port_transmit(f, p, frame);
    return true;
}

/* No flow may send now: wake up when the first may. */
static void sleep_until_next(fab *f, fab_port *p, const fab_nic *n)
{
    uint64_t at;
    if (nic_next(f, n, &at) && n->wake == FAB_NO_EVENT)
        wake_at(f, p, at);
}

/* A host alternates between forwarded packets and its own, or forwarded ones could starve it. */
static bool is_own_turn(const fab *f, const fab_nic *n)
{
    return n->has_forwarded && n->ack_head != FAB_NONE &&
           f->frames[n->ack_head].kind == FAB_FRAME_DATA;
}

/* packet-network.md 6.5. */
void fab_host_try(fab *f, fab_port *p)
{
    fab_nic *n = &f->nics[p->nic];
    if (p->is_down)
        return;
    if (fab_port_is_busy(f, p)) {
        fab_port_await(f, p);
        return;
    }
    uint32_t flow = is_own_turn(f, n) ? nic_choose(f, p) : FAB_NONE;
    if (flow == FAB_NONE && !send_ack_waiting(f, p, n)) {
        flow = nic_choose(f, p);
        if (flow == FAB_NONE) {
            sleep_until_next(f, p, n);
            return;
        }
    }
    if (flow != FAB_NONE) {
        n->has_forwarded = false;
        send_packet(f, p, flow);
    }
    if (n->count || n->ack_head != FAB_NONE)
        fab_port_await(f, p);
}

/* False: there is no route now; the flow is assigned to the first NICs of its hosts. */
static bool choose_nics(fab *f, fab_flow *w)
{
    const uint32_t from = fab_nic_towards(f, w->src, w->dst, own_ports(w), NET_ECMP_HOST_SEED);
    const uint32_t back = fab_nic_towards(f, w->dst, w->src, swapped_ports(w), NET_ECMP_HOST_SEED);
    const bool has_route = from != FAB_NONE && back != FAB_NONE;
    w->port = has_route ? from : f->ports_of[f->nodes[w->src].first_port];
    w->ack_port = has_route ? back : f->ports_of[f->nodes[w->dst].first_port];
    return has_route;
}

/* With L2_BACK_TO_ZERO whole chunks are acknowledged: can the window fill before one is
 * complete? */
static bool can_fill_chunk(const fab *f, const fab_flow *w)
{
    const uint64_t payload = f->config.payload,
                   reach = (w->window + payload - 1) / payload * payload;
    return !f->rules.completes_chunks || !f->config.back_to_zero || !w->window ||
           w->size <= reach || f->config.chunk <= reach;
}

/* Earlier messages of its connection are still being sent.  A slot may have been reused by another
 * flow. */
static bool waits_its_turn(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_flow *before = w->before != FAB_NONE ? &f->flows[w->before] : NULL;
    /* Once: when its turn has come it starts. */
    w->before = FAB_NONE;
    if (!before || before == w || !before->is_used || before->src != w->src ||
        before->dst != w->dst || before->highest >= before->size)
        return false;
    before->after = flow;
    return true;
}

void fab_host_ready(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_path path;
    /* Its time counts from here, also if it waits for its turn or a repair and is ready again
     * later. A flag, as it may be ready at tick 0. */
    if (!w->is_ready)
        w->started_at = f->now;
    w->is_ready = true;
    if (waits_its_turn(f, flow))
        return;
    const bool has_route = choose_nics(f, w) && fab_find_path(f, w->src, w->dst, &path);
    if (f->lanes) {
        fab_need_routes(f, w->src);
        fab_need_routes(f, w->dst);
    }
    w->awaits_route = !has_route && f->main->planned && f->rules.waits_for_repair;
    if (w->awaits_route)
        return; /* a link may be repaired */
    if (!has_route) {
        fab_fail(f, ORR_EINPUT, "there is no route from host %u to host %u over working links%s",
                 w->src, w->dst,
                 f->config.forward_hosts || !f->rules.waits_for_repair
                     ? ""
                     : "; hosts do not forward (FORWARDING_HOSTS 1: they do)");
        return;
    }
    const bool is_global = f->config.global_t;
    w->window = !f->config.has_window ? 0 : is_global ? f->max_bdp : fab_path_bdp(f, &path);
    w->base_rtt = is_global ? f->max_rtt : fab_path_rtt(&path);
    if (!can_fill_chunk(f, w)) {
        fab_fail(f, ORR_EINPUT,
                 "L2_BACK_TO_ZERO 1: the window from host %u to host %u, %llu bytes, is "
                 "smaller than a chunk (L2_CHUNK_SIZE %llu): none would be acknowledged",
                 w->src, w->dst, (unsigned long long)w->window,
                 (unsigned long long)f->config.chunk);
        return;
    }
    w->rate = w->line_rate = f->ports[w->port].rate;
    w->next_at = w->last_sent_at = f->now;
    if (f->config.selective && !selective_start(f, flow)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    if (f->control && f->control->start)
        f->control->start(f, flow);
    if (f->watch.hears & FAB_HEARS_FLOWS)
        fab_tell_flow(f, flow, false);
    if (!nic_add(f, &f->nics[f->ports[w->port].nic], flow)) {
        fab_fail(f, ORR_ENOMEM, "out of memory");
        return;
    }
    fab_host_try(f, &f->ports[w->port]);
}

static orr_code take_nic(fab *f, uint32_t flow, orr_error *err)
{
    fab_flow *w = &f->flows[flow];
    const bool has_route = choose_nics(f, w);
    if (!has_route && !f->rules.waits_for_repair)
        return orr_fail(err, ORR_EINPUT, NULL,
                        "after a failure there is no route from host %u to host %u", w->src,
                        w->dst);
    if (!has_route)
        return ORR_OK; /* it waits for a repair */
    if (!nic_add(f, &f->nics[f->ports[w->port].nic], flow))
        return orr_no_memory(err);
    fab_host_try(fab_acting(f, w->src), &f->ports[w->port]);
    return ORR_OK;
}

/* Reassigns all flows of all hosts to the NICs of the new routes (packet-network.md 9). */
orr_code fab_host_redistribute(fab *f, orr_error *err)
{
    uint32_t *flows;
    size_t count;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < f->nic_count; i++)
        nic_clear(f, &f->nics[i]);
    if (!fab_flows_under_way(f, &flows, &count))
        return orr_no_memory(err);
    for (size_t i = 0; i < count && !code; i++)
        /* Without a rate it has not started, and chooses its NIC when it does. */
        if (f->flows[flows[i]].rate)
            code = take_nic(f, flows[i], err);
    orr_free(flows);
    return code;
}

/* A forwarding host puts forwarded packets before its own (packet-network.md 14 row 13). */
void fab_host_forward(fab *f, uint32_t node, uint32_t frame)
{
    const uint32_t out_port = fab_route(f, node, &f->frames[frame]);
    if (out_port == FAB_NONE) {
        f->figures.dropped++;
        fab_frame_drop(f, frame);
        return;
    }
    fab_port *p = &f->ports[out_port];
    queue_reply(f, &f->nics[p->nic], frame);
    fab_host_try(f, p);
}

/* ---- the receiver (packet-network.md 6.3) ---- */

static void send_reply(fab *f, uint32_t frame, fab_frame_kind kind)
{
    fab_frame *m = &f->frames[frame];
    const fab_flow *w = &f->flows[m->flow];
    fab_port *p = &f->ports[w->ack_port];
    fab_nic *n = &f->nics[p->nic];
    m->kind = (uint8_t)kind;
    m->size = f->ack_bytes;
    m->sequence = w->expected;
    m->is_last = w->expected >= w->size_rx;
    const uint32_t sender = m->from;
    m->from = m->to;
    m->to = sender;
    m->ports = m->ports << 16 | m->ports >> 16;
    m->echoes_mark = m->is_marked;
    if ((f->config.ack_high_prio && f->rules.acks_high_in_switches) || f->config.trimming)
        m->class = 0; /* in switches, too (packet-network.md 14 row 12) */
    m->is_marked = false;
    if (kind == FAB_FRAME_ACK)
        f->figures.acks++;
    else
        f->figures.nacks++;
    if (f->watch.hears & FAB_HEARS_FRAMES)
        fab_tell_frame(f, p, m, FAB_FRAME_ENQUEUED, 0);
    queue_reply(f, n, frame);
    fab_host_try(f, p);
}

/* In-order data is acknowledged; in the reference every packet after the first interval
 * (packet-network.md 14 row 4).  A packet that fills the window requests an ACK: otherwise a window
 * smaller than the interval would wait for the timer. */
static bool wants_ack(const fab *f, const fab_flow *w, const fab_frame *m, uint64_t gained)
{
    const uint64_t interval = f->config.ack_interval;
    if (f->rules.acks_all_after_first)
        return w->expected >= interval || w->expected % f->config.chunk == 0;
    return m->asks_ack || interval <= 1 || w->expected >= w->size_rx ||
           w->expected % f->config.chunk == 0 ||
           w->expected / interval != (w->expected - gained) / interval;
}

static bool wants_nack(fab *f, fab_flow *w)
{
    /* Once per gap and interval: all packets behind a lost one are out of order. */
    if (f->now < w->nack_at && w->last_nacked == w->expected)
        return false;
    w->nack_at = f->now + NACK_INTERVAL_NS * f->unit;
    w->last_nacked = w->expected;
    if (f->config.back_to_zero)
        w->expected -= w->expected % f->config.chunk;
    return true;
}

static void tell_arrival(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    if (w->has_arrived || w->expected < w->size_rx)
        return;
    w->has_arrived = true;
    if (f->rules.tells_receiver_at_ack || !f->listener.arrived)
        return;
    if (f->is_in_window)
        fab_lanes_note_arrival(f, w);
    else
        f->listener.arrived(f->listener.context, w->token);
}

static void make_nic_pause(fab *f, const fab_flow *w);

/* Only its header arrived: NACK it, so that the sender need not wait for a timer. */
static void receive_trimmed(fab *f, uint32_t frame)
{
    fab_frame *m = &f->frames[frame];
    const fab_flow *w = &f->flows[m->flow];
    if (!w->got) {
        fab_frame_drop(f, frame);
        return;
    }
    m->payload = (uint32_t)(m->sequence / f->config.payload);
    m->is_marked = true;
    send_reply(f, frame, FAB_FRAME_NACK);
}

/* A sender that goes back to the start of a chunk sends packets with other boundaries than before:
 * one may begin with known bytes.  The reference treats it as a duplicate. */
static inline bool brings_next(const fab *f, const fab_flow *w, const fab_frame *m)
{
    return m->sequence == w->expected ||
           (m->sequence < w->expected && m->sequence + m->payload > w->expected &&
            f->rules.accepts_overlap);
}

static void receive_data(fab *f, uint32_t frame)
{
    const fab_frame *m = &f->frames[frame];
    const uint32_t flow = m->flow, payload = m->payload;
    fab_flow *w = &f->flows[flow];
    if (f->config.nic_pauses)
        make_nic_pause(f, w);
    if (w->got) {
        selective_take(f, w, m);
        /* In an ACK the number of the packet: send_reply replaces the sequence. */
        f->frames[frame].payload = (uint32_t)(m->sequence / f->config.payload);
        send_reply(f, frame, FAB_FRAME_ACK);
        tell_arrival(f, flow);
    } else if (brings_next(f, w, m)) {
        const uint64_t gained = m->sequence + payload - w->expected;
        w->expected += gained;
        if (wants_ack(f, w, m, gained))
            send_reply(f, frame, FAB_FRAME_ACK);
        else
            fab_frame_drop(f, frame);
        if (!f->rules.tells_receiver_at_ack)
            tell_arrival(f, flow);
    } else if (m->sequence > w->expected && wants_nack(f, w)) {
        send_reply(f, frame, FAB_FRAME_NACK);
    } else if (m->sequence < w->expected && f->rules.acks_duplicates) {
        send_reply(f, frame,
                   FAB_FRAME_ACK); /* the first one may be lost (packet-network.md 14 row 5) */
    } else {
        fab_frame_drop(f, frame);
    }
}

/* ---- the sender (packet-network.md 6.4) ---- */

/* Recorded, dropped by the receiver, reported to waiters; in this order (packet-network.md 6.1).
 * In a window nothing outside the sender is modified, and the receiver keeps its state (except with
 * rules.forgets_receiver): it cannot know, and answers duplicates. */
static void complete(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    const bool is_for_later = f->is_in_window;
    const fab_flow_end end = {w->token, w->size, f->now - w->started_at, fab_flow_ideal(f, w)};
    if (is_for_later)
        fab_lanes_note_done(f, w, &end);
    else if (f->watch.hears & FAB_HEARS_LINES)
        fab_tell_line(f, w, end.ideal, NULL);
    if (f->watch.hears & FAB_HEARS_FLOWS)
        fab_tell_flow(f, flow, true);
    if (f->rules.forgets_receiver)
        w->expected = w->last_nacked = w->nack_at = 0;
    w->is_complete = true;
    fab_cancel(f, &w->timeout);
    if (f->control && f->control->stop)
        f->control->stop(f, flow);
    if (!is_for_later)
        fab_flow_report_done(f->main, &end);
}

static void receive_ack(fab *f, uint32_t frame)
{
    const fab_frame m = f->frames[frame];
    fab_flow *w = &f->flows[m.flow];
    if (w->is_complete) {
        fab_frame_drop(f, frame);
        return;
    }
    const uint64_t before = w->acked;
    /* Of a chunk only its end counts: before it an ACK acknowledges nothing more. */
    const uint64_t sequence =
        f->config.back_to_zero ? m.sequence - m.sequence % f->config.chunk : m.sequence;
    if (sequence > w->acked)
        w->acked = sequence;
    /* The last ACK counts in full, or a size that is not a multiple of the chunk would never
     * complete. */
    if (f->rules.completes_chunks && m.sequence >= w->size)
        w->acked = w->size;
    if (w->is_selective)
        selective_acked(f, w, &m);
    if (f->config.load_balance == ORR__BALANCE_REPS)
        remember_route(w, &m);
    if (m.echoes_mark && (f->watch.hears & FAB_HEARS_MARKS))
        fab_tell_mark(f, m.flow);
    if (w->acked >= w->size)
        complete(f, m.flow);
    if (m.kind == FAB_FRAME_NACK && !w->is_selective)
        w->sent = w->acked;
    else if (f->rules.skips_acked && w->sent < w->acked)
        w->sent = w->acked;
    if (f->control && f->control->acked)
        f->control->acked(f, m.flow, &f->frames[frame]);
    const bool has_news =
        w->acked > before || (w->is_selective && (w->repeat->news || m.kind == FAB_FRAME_NACK));
    if (f->rules.has_timeouts && !w->is_complete && has_news) {
        w->timeouts = 0;
        w->heard_at = f->now;
    }
    fab_port *p = &f->ports[w->port];
    fab_nic_update(f, m.flow);
    fab_frame_drop(f, frame);
    fab_host_try(f, p);
}

void fab_host_receive(fab *f, uint32_t frame)
{
    const uint8_t kind = f->frames[frame].kind;
    if (kind == FAB_FRAME_DATA)
        receive_data(f, frame);
    else if (kind == FAB_FRAME_TRIMMED)
        receive_trimmed(f, frame);
    else
        receive_ack(f, frame);
}

/* ---- retransmission timer (rules.has_timeouts) ---- */

enum { MOST_TIMEOUTS = 64, MOST_DOUBLINGS = 6 };

/* Bytes that can be queued ahead of a packet in flight: a buffer; or the limited queues of some
 * switches. */
static uint64_t standing_bytes(const fab *f)
{
    const uint64_t buffer = f->config.buffer_mib << 20, queues = 8 * f->config.queue_limit;
    return !queues || buffer < queues ? buffer : queues;
}

/* Four times the base RTT plus what full queues can add, at least 100 us; doubled each time. */
static uint64_t timeout_of(const fab *f, const fab_flow *w)
{
    const uint64_t drain = fab_transmission_time(f, standing_bytes(f), w->line_rate);
    const uint64_t least = 100000 * f->unit, some = 4 * w->base_rtt + drain;
    const unsigned doublings = w->timeouts < MOST_DOUBLINGS ? w->timeouts : MOST_DOUBLINGS;
    return (some > least ? some : least) << doublings;
}

/* The last of many timeouts ends the run, which is a global event. */
static void set_timer(fab *f, uint32_t flow, uint64_t ticks)
{
    fab_flow *w = &f->flows[flow];
    w->timeout = fab_after(f, ticks, FAB_EV_TIMEOUT, flow);
    /* Two more: fab_host_timeout may set the timer before it counts the timeout that has passed. */
    if (f->lanes && w->timeouts + 2 > MOST_TIMEOUTS)
        fab_lanes_expect(f, f->now + ticks);
}

static void arm_timeout(fab *f, uint32_t flow)
{
    const fab_flow *w = &f->flows[flow];
    if (w->timeout == FAB_NO_EVENT)
        set_timer(f, flow, timeout_of(f, w));
}

/* The timer counts from the latest ACK or NACK, but is not rescheduled for each of them: when it
 * expires it checks whether one has arrived.  So a flow has one pending event, not one per packet
 * of the last millisecond. */
static bool has_heard(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    const uint64_t from = w->heard_at, until = from + timeout_of(f, w);
    w->heard_at = 0;
    if (!from || until <= f->now)
        return false;
    set_timer(f, flow, until - f->now);
    return true;
}

void fab_host_timeout(fab *f, uint32_t flow)
{
    fab_flow *w = &f->flows[flow];
    fab_port *p = &f->ports[w->port];
    w->timeout = FAB_NO_EVENT;
    if (has_heard(f, flow))
        return;
    if (!w->is_listed || (p->paused >> w->class & 1)) {
        arm_timeout(f, flow); /* waiting for a turn is not a loss */
        /* A pause does not count: whether it ever ends is for fab_watch_for_stall. */
        w->timeouts += !w->is_listed;
        fab_watch_for_stall(f);
        f->end.is_stopped |= f->end.is_stalled |= w->timeouts > MOST_TIMEOUTS;
        return;
    }
    f->figures.timeouts++;
    if (++w->timeouts > MOST_TIMEOUTS) {
        f->end.is_stalled = f->end.is_stopped = true;
        return;
    }
    if (w->is_selective)
        selective_all_again(f, w);
    else
        w->sent = w->acked;
    if (f->control && f->control->timed_out)
        f->control->timed_out(f, flow);
    fab_nic_update(f, flow);
    arm_timeout(f, flow);
    fab_host_try(f, p);
}

/* ---- pauses sent by a NIC (NIC_TOTAL_PAUSE_TIME) ---- */

/* They are counted once per host, at its first NIC. */
fab_nic *fab_host_pauser(fab *f, uint32_t port)
{
    const fab_node *host = &f->nodes[f->ports[port].node];
    return &f->nics[f->ports[f->ports_of[host->first_port]].nic];
}

/* Before everything except pause frames; with rules.holds_all_acks it waits for its turn. */
static void queue_nic_pfc(fab *f, fab_nic *n, uint32_t frame)
{
    uint32_t *at = &n->ack_head;
    if (f->rules.holds_all_acks) {
        fab_queue_push(f, &n->ack_head, &n->ack_tail, frame);
        return;
    }
    while (*at != FAB_NONE && is_never_held(f, *at))
        at = &f->frames[*at].next;
    f->frames[frame].next = *at;
    if (*at == FAB_NONE)
        n->ack_tail = frame;
    *at = frame;
}

static void send_nic_pfc(fab *f, fab_port *p, bool pauses)
{
    const uint32_t id = fab_frame_new(f);
    fab_nic *n = &f->nics[p->nic];
    if (id == FAB_NONE)
        return;
    if (f->draws)
        f->rules.draws->pfc_sent(f->draws);
    f->frames[id] = (fab_frame){.kind = FAB_FRAME_PFC,
                                .size = FAB_PFC_BYTES,
                                .flow = FAB_NONE,
                                .class = fab_host_pauser(f, fab_port_of(f, p))->pause_class,
                                .pauses = pauses};
    if (pauses)
        fab_pause_note_cause(f, p, &f->frames[id]);
    queue_nic_pfc(f, n, id);
    fab_host_try(f, p);
}

static void make_nic_pause(fab *f, const fab_flow *w)
{
    const uint32_t port = w->ack_port;
    fab_nic *n = fab_host_pauser(f, port);
    if (n->is_between_pauses || n->pauses_made >= f->config.nic_pauses)
        return;
    n->is_between_pauses = true;
    n->pauses_made++;
    n->pause_class = w->class;
    send_nic_pfc(f, &f->ports[port], true);
    (void)fab_after(f, NIC_PAUSE_NS * f->unit, FAB_EV_NIC_RESUME, port);
}

void fab_host_pause_ends(fab *f, uint32_t port)
{
    send_nic_pfc(f, &f->ports[port], false);
    (void)fab_after(f, NIC_READY_NS * f->unit, FAB_EV_NIC_READY, port);
}

/* A pause frame carries its duration.  The reference pauses until told otherwise, and so forever if
 * that frame is lost; here it lasts twice as long as the host needs. */
void fab_host_pause_came(fab *f, fab_port *p)
{
    if (f->rules.host_pauses_expire)
        (void)fab_after(f, 2 * NIC_PAUSE_NS * f->unit, FAB_EV_PAUSE_OVER, fab_port_of(f, p));
}
