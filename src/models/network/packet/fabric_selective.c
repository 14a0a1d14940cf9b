/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_selective.c - TRANSPORT selective: the receiver keeps what comes out of order, and only what is lost is sent
 * again.
 *
 *     packets:  0 1 2 3 4 5 6 7        expected = 2: all before it are there
 *     got:      1 1 0 1 1 1 0 0        each acknowledgement tells of one packet and of expected
 *
 * To its sender a packet is unsent, in flight, lost (to be sent again) or told of.  It becomes lost
 *   - when a NACK says so: a switch has cut it to its header (TRIMMING);
 *   - when a packet that many places behind it was told of: three if the packets of a flow stay in order on their
 *     way, more if they are spread over several ways.  That counts once a packet; what was sent again is only lost
 *     if a packet that left later, by a round trip if ways differ, has been told of;
 *   - when the timer says so.
 * Invariants: in_flight is the bytes of the packets in flight; packets before `settled` are told of.
 * Cost: O(1) a packet, amortised. */
#include "fabric_impl.h"

enum { IN_ORDER = 3, SPREAD = 128 };

static uint64_t packets_of(const orr__fabric *f, const orr__flow *w)
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

bool orr__selective_start(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    const uint64_t words = packets_of(f, w) / 64 + 1;
    w->got = orr_alloc(3 * words, sizeof *w->got);
    w->told = w->got ? w->got + words : NULL;
    w->missing = w->got ? w->told + words : NULL;
    w->is_selective = w->got != NULL;
    return w->is_selective;
}

void orr__selective_forget(orr__flow *w)
{
    orr_free(w->got);
    w->got = w->told = w->missing = NULL;
    w->is_selective = false;
}

/* The receiver: the packet is there, and maybe what was missing before others. */
void orr__selective_take(orr__fabric *f, orr__flow *w, const orr__frame *data)
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

static uint64_t bytes_of(const orr__fabric *f, const orr__flow *w, uint64_t packet)
{
    const uint64_t left = w->size - packet * f->config.payload;
    return left < f->config.payload ? left : f->config.payload;
}

static uint64_t sent_packets(const orr__fabric *f, const orr__flow *w)
{
    return (w->sent + f->config.payload - 1) / f->config.payload;
}

bool orr__selective_again(const orr__fabric *f, orr__flow *w, uint64_t *sequence)
{
    if (!w->missing_count)
        return false;
    uint64_t word = w->missing_from / 64;
    while (!w->missing[word])
        word++;
    const uint64_t packet = word * 64 + (unsigned)__builtin_ctzll(w->missing[word]);
    clear(w->missing, packet);
    w->missing_count--;
    w->missing_from = packet + 1;
    w->resent_at = f->now;
    *sequence = packet * f->config.payload;
    return true;
}

static void lose(const orr__fabric *f, orr__flow *w, uint64_t packet)
{
    if (packet >= sent_packets(f, w) || has(w->told, packet) || has(w->missing, packet))
        return;
    set(w->missing, packet);
    const uint64_t bytes = bytes_of(f, w, packet);
    w->in_flight -= bytes;
    w->losses += bytes;
    if (!w->missing_count++ || packet < w->missing_from)
        w->missing_from = packet;
}

static void lose_all(const orr__fabric *f, orr__flow *w, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        lose(f, w, from);
}

static void settle(const orr__fabric *f, orr__flow *w, uint64_t packet)
{
    if (has(w->told, packet))
        return;
    set(w->told, packet);
    const uint64_t bytes = bytes_of(f, w, packet);
    w->news += bytes;
    if (!has(w->missing, packet)) {
        w->in_flight -= bytes;
        return;
    }
    clear(w->missing, packet);
    w->missing_count--;
}

/* What is missing before packets that were told of. */
static void infer(const orr__fabric *f, orr__flow *w, const orr__frame *ack)
{
    const bool is_spread = f->config.load_balance || f->config.trimming;
    const uint64_t patience = is_spread ? SPREAD : IN_ORDER;
    const bool is_later = ack->stamp > w->resent_at + (is_spread ? w->base_rtt : 0);
    const bool is_settled = is_later && !w->missing_count;
    if (w->farthest < w->settled + patience || (f->config.trimming && !is_settled))
        return;
    const uint64_t limit = w->farthest - patience + 1;
    const uint64_t from = is_settled || w->settled > w->recovered ? w->settled : w->recovered;
    lose_all(f, w, from, limit);
    if (limit > w->recovered)
        w->recovered = limit;
}

/* In an acknowledgement, payload is the number of the packet it tells of. */
void orr__selective_told(orr__fabric *f, orr__flow *w, const orr__frame *ack)
{
    const uint64_t first = w->acked >= w->size ? packets_of(f, w) : w->acked / f->config.payload;
    w->news = w->losses = 0;
    for (; w->settled < first; w->settled++)
        settle(f, w, w->settled);
    if (ack->kind == ORR__FRAME_NACK) {
        lose(f, w, ack->payload);
        return;
    }
    settle(f, w, ack->payload);
    if (ack->payload > w->farthest)
        w->farthest = ack->payload;
    infer(f, w, ack);
}

void orr__selective_all_again(const orr__fabric *f, orr__flow *w)
{
    lose_all(f, w, w->settled, sent_packets(f, w));
    w->recovered = sent_packets(f, w);
}
