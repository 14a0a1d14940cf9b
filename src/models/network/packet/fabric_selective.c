/* SPDX-License-Identifier: Apache-2.0 */
/* fabric_selective.c - TRANSPORT selective: the receiver keeps what comes out of order, and only what is lost is sent
 * again.
 *
 *     packets:  0 1 2 3 4 5 6 7        expected = 2: all before it are there
 *     got:      1 1 0 1 1 1 0 0        each acknowledgement tells of one packet and of expected
 *
 * A packet is taken for lost when one that many places behind it was told of: three if the packets of a flow stay in
 * order on their way, more if they are spread over several ways.  Then all that is missing up to there is sent again,
 * once; what is lost again waits for the timer. */
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

bool orr__selective_start(orr__fabric *f, uint32_t flow)
{
    orr__flow *w = &f->flows[flow];
    const uint64_t words = packets_of(f, w) / 64 + 1;
    w->got = orr_alloc(words, sizeof *w->got);
    w->told = orr_alloc(words, sizeof *w->told);
    return w->got && w->told;
}

void orr__selective_forget(orr__flow *w)
{
    orr_free(w->got);
    orr_free(w->told);
    w->got = w->told = NULL;
}

/* The receiver: the packet is there, and maybe what was missing before others. */
void orr__selective_take(orr__fabric *f, orr__flow *w, const orr__frame *data)
{
    const uint64_t count = packets_of(f, w);
    uint64_t next = w->expected / f->config.payload;
    if (w->expected >= w->size)
        return;
    set(w->got, data->sequence / f->config.payload);
    while (next < count && has(w->got, next))
        next++;
    w->expected = next == count ? w->size : next * f->config.payload;
}

/* ---- the sender ---- */

static uint64_t next_again(const orr__flow *w, uint64_t from)
{
    while (from < w->again_end && has(w->told, from))
        from++;
    return from;
}

bool orr__selective_has_again(const orr__fabric *f, const orr__flow *w)
{
    (void)f;
    return w->told && next_again(w, w->again) < w->again_end;
}

bool orr__selective_again(const orr__fabric *f, orr__flow *w, uint64_t *sequence)
{
    if (!w->told)
        return false;
    const uint64_t packet = w->again = next_again(w, w->again);
    if (packet >= w->again_end)
        return false;
    w->again++;
    *sequence = packet * f->config.payload;
    return true;
}

static uint64_t sent_packets(const orr__fabric *f, const orr__flow *w)
{
    return (w->sent + f->config.payload - 1) / f->config.payload;
}

/* In an acknowledgement, payload is the number of the packet it tells of. */
void orr__selective_told(orr__fabric *f, orr__flow *w, const orr__frame *ack)
{
    const uint64_t patience = f->config.load_balance ? SPREAD : IN_ORDER;
    const uint64_t first = w->acked / f->config.payload;
    set(w->told, ack->payload);
    if (ack->payload > w->farthest)
        w->farthest = ack->payload;
    if (first < w->recovered || w->farthest < first + patience || w->again < w->again_end)
        return;
    w->again = first;
    w->again_end = w->farthest - patience + 1;
    w->recovered = w->again_end;
}

void orr__selective_all_again(const orr__fabric *f, orr__flow *w)
{
    w->again = w->acked / f->config.payload;
    w->again_end = w->recovered = sent_packets(f, w);
}
