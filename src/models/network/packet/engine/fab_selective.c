/* SPDX-License-Identifier: Apache-2.0 */
/* fab_selective.c - TRANSPORT selective: the receiver keeps what comes out of order, and only what
 * is lost is sent again.
 *
 *     packets:  0 1 2 3 4 5 6 7        expected = 2: all before it are there
 *     got:      1 1 0 1 1 1 0 0        each ACK tells of one packet and of expected
 *
 * To its sender a packet is unsent, in flight, lost (to be sent again) or acknowledged.  It becomes
 * lost
 *   - when a NACK says so: a switch has cut it to its header (TRIMMING);
 *   - when a packet that many places after it was acknowledged: three if the packets of a flow stay in
 *     order, more if they are spread over several routes.  That counts once a packet; what was sent again is only lost
 *     if a packet that left later, by a round trip if routes differ, has been acknowledged;
 *   - when the timer says so.
 * Invariants: in_flight is the bytes of the packets in flight; packets before `settled` are told
 * of. Cost: O(1) a packet, amortised. */
#include "fabric_impl.h"

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

bool fab_selective_start(fab *f, uint32_t flow)
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

/* The receiver: the packet is there, and maybe what was missing before others. */
void fab_selective_take(fab *f, fab_flow *w, const fab_frame *data)
{
    const uint64_t count = packets_of(f, w);
    uint64_t next = w->expected / f->config.payload;
    if (w->expected >= w->size)
        return;
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

uint64_t fab_selective_again(const fab *f, fab_flow *w)
{
    fab_resend *r = w->repeat;
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
    if (!has(r->missing, packet)) {
        w->in_flight -= bytes;
        return;
    }
    clear(r->missing, packet);
    r->missing_count--;
}

/* What is missing before packets that were acknowledged. */
static void infer(const fab *f, fab_flow *w, const fab_frame *ack)
{
    fab_resend *r = w->repeat;
    const bool is_spread = f->config.load_balance || f->config.trimming;
    const uint64_t patience = is_spread ? SPREAD : IN_ORDER;
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

/* In an ACK, payload is the number of the packet it tells of. */
void fab_selective_acked(fab *f, fab_flow *w, const fab_frame *ack)
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

void fab_selective_all_again(const fab *f, fab_flow *w)
{
    lose_all(f, w, w->repeat->settled, sent_packets(f, w));
    w->repeat->recovered = sent_packets(f, w);
}
