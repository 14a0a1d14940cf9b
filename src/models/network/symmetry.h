/* SPDX-License-Identifier: Apache-2.0 */
/* symmetry.h - symmetric ranks: the network looks the same from each of them.
 *
 * A rank's number is decomposed into digits: rank / stride % radix.  The symmetry translates ranks
 * by adding to some of these digits, modulo the radix or bitwise.  Whatever happens at a rank or a
 * link happens at all its images, so only one is simulated: the one whose digits are 0, its
 * *home*. */
#ifndef ORR_MODELS_SYMMETRY_H
#define ORR_MODELS_SYMMETRY_H

#include <orrery/network.h>

#include <stdbool.h>
#include <stdint.h>

enum { NET_SYM_DIGITS = 64 };

typedef struct net_digit {
    uint32_t stride, radix;
    bool is_xor; /* bitwise; else modulo the radix */
} net_digit;

typedef struct net_symmetry {
    net_digit digits[NET_SYM_DIGITS];
    uint32_t count;
} net_symmetry;

static inline uint32_t net_digit_of(const net_digit *d, uint32_t rank)
{
    return rank / d->stride % d->radix;
}

/* The rank with `by` more in this digit; by: below the radix. */
static inline uint32_t net_digit_add(const net_digit *d, uint32_t rank, uint32_t by)
{
    const uint32_t old = net_digit_of(d, rank), sum = old + by;
    const uint32_t now = d->is_xor ? old ^ by : sum >= d->radix ? sum - d->radix : sum;
    return rank + (now - old) * d->stride;
}

static inline uint32_t net_digit_opposite(const net_digit *d, uint32_t by)
{
    return d->is_xor || by == 0 ? by : d->radix - by;
}

/* Finds the digits of n positions, `stride` apart, from the innermost outwards, each as large as
 * possible.  is_ring: the positions can only be rotated together; else any permutation is possible.
 * holds: does nothing change when ranks are translated by this digit? */
typedef bool (*net_sym_holds)(void *context, const net_digit *d);
void net_sym_find(
    net_symmetry *s, uint32_t stride, uint32_t n, bool is_ring, net_sym_holds holds, void *context);

/* The image of `rank` under the translation that takes `other` home. */
static inline uint32_t net_sym_with(const net_symmetry *s, uint32_t other, uint32_t rank)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const net_digit *d = &s->digits[i];
        rank = net_digit_add(d, rank, net_digit_opposite(d, net_digit_of(d, other)));
    }
    return rank;
}

static inline uint32_t net_sym_home(const net_symmetry *s, uint32_t rank)
{
    for (uint32_t i = 0; i < s->count; i++)
        rank -= net_digit_of(&s->digits[i], rank) * s->digits[i].stride;
    return rank;
}

/* The image of `rank` under the translation that takes the home of `other` to it. */
static inline uint32_t net_sym_back(const net_symmetry *s, uint32_t other, uint32_t rank)
{
    for (uint32_t i = 0; i < s->count; i++)
        rank = net_digit_add(&s->digits[i], rank, net_digit_of(&s->digits[i], other));
    return rank;
}

/* ---- the network aware ----
 *
 * Functions beyond network.h: one link represents all its images under a symmetry.  net: the state
 * of orr__net_aware. */

/* From now on only home ranks send messages; call before the first one.  False: out of memory. */
bool orr__aware_fold(void *net, const net_symmetry *symmetry);
/* The symmetry loses digits: links and messages are copied (link_servers.h). False: out of
 * memory. */
struct net_copier;
bool orr__aware_multiply(void *net, const struct net_copier *c);
bool orr__aware_copy_call(void *net,
                          void (*call)(void *context, uint64_t argument),
                          uint32_t k,
                          uint64_t *argument);
void orr__aware_end_copies(void *net);
/* After the run: copies the traffic of a link to all its images.  False: out of memory. */
bool orr__aware_spread(void *net);

/* ---- the network graph: likewise ---- */

/* Does this digit, together with `before`, preserve all links and routes? False: no, or out of
 * memory. */
bool orr__graph_holds(void *net, const net_symmetry *before, const net_digit *d);
/* As orr__aware_fold and orr__aware_spread. */
bool orr__graph_fold(void *net, const net_symmetry *symmetry);
void orr__graph_spread(void *net);

/* ---- a run in parts, each with such a network (link_servers.h) ----
 *
 * A link is served in the part of the rank at its beginning, or of that at its end if it comes from
 * a switch.  divide: fills in keeper; NULL: out of memory.  The minimum delay is the time after
 * which a packet that enters a link may affect another part. */
struct net_servers;
struct net_division;
struct net_servers *orr__aware_divide(void *net, orr_net *sim, const struct net_division *division);
uint64_t orr__aware_least_delay(const void *net, const uint8_t *part_of);
bool orr__aware_add(void *net, const void *part); /* adds statistics; false: out of memory */
/* Not if routes depend on the order of all messages. */
bool orr__graph_can_divide(const void *net);
struct net_servers *orr__graph_divide(void *net, orr_net *sim, const struct net_division *division);
uint64_t orr__graph_least_delay(const void *net);
void orr__graph_add(void *net, const void *part);

#endif
