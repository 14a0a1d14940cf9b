/* SPDX-License-Identifier: Apache-2.0 */
/* flow_times.c - percentiles of flow completion times.
 *
 * Values go into bins: 128 per power of two, so a bin is narrower than 1 % of its values. A bin
 * keeps its minimum and maximum, with a uniform distribution assumed in between.  So a percentile
 * is exact if a bin holds one or two values, as with few or equal flows, and otherwise off by less
 * than 1 %.  Integers only: the same on every machine. Cost: O(1) per addition; 3 KiB of memory per
 * power of two that occurs. */
#include "fab_parts.h"

#include "base/memory/memory.h"

enum { BINS = 1 << FAB_SPREAD_BITS, MILLION = 1000000 };

/* ---- a histogram ---- */

/* Below 128 a value is its own bin; above, its highest bit is the page and the seven bits after it
 * the bin. */
static void place_of(uint64_t value, unsigned *page, unsigned *bin)
{
    const unsigned top = value ? 63 - (unsigned)__builtin_clzll(value) : 0;
    *page = top < FAB_SPREAD_BITS ? 0 : top - FAB_SPREAD_BITS + 1;
    *bin = (unsigned)(*page ? value >> (*page - 1) : value) & (BINS - 1);
}

bool fab_spread_add(fab_spread *s, uint64_t value)
{
    unsigned page, bin;
    place_of(value, &page, &bin);
    if (!s->pages[page] && !(s->pages[page] = orr_alloc(BINS, sizeof **s->pages)))
        return false;
    fab_spread_bin *b = &s->pages[page][bin];
    b->least = b->count++ == 0 || value < b->least ? value : b->least;
    b->most = value > b->most ? value : b->most;
    s->least = s->count == 0 || value < s->least ? value : s->least;
    s->count++;
    return true;
}

void fab_spread_fini(fab_spread *s)
{
    for (unsigned i = 0; i < FAB_SPREAD_PAGES; i++)
        orr_free(s->pages[i]);
    *s = (fab_spread){0};
}

static fab_spread_bin bin_of_all(const fab_spread *const *list,
                                 size_t count,
                                 unsigned page,
                                 unsigned bin)
{
    fab_spread_bin sum = {0};
    for (size_t i = 0; i < count; i++) {
        if (!list[i]->pages[page])
            continue;
        const fab_spread_bin *b = &list[i]->pages[page][bin];
        if (!b->count)
            continue;
        sum.least = sum.count == 0 || b->least < sum.least ? b->least : sum.least;
        sum.count += b->count;
        sum.most = b->most > sum.most ? b->most : sum.most;
    }
    return sum;
}

static uint64_t least_of(const fab_spread *const *list, size_t count)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (list[i]->count && list[i]->least < least)
            least = list[i]->least;
    return least;
}

/* The value of a rank within a bin, from 1 on. */
static uint64_t value_in(const fab_spread_bin *b, uint64_t rank)
{
    const unsigned __int128 wide = (unsigned __int128)(b->most - b->least) * (rank - 1);
    return b->count > 1 ? b->least + (uint64_t)(wide / (b->count - 1)) : b->least;
}

uint64_t fab_spread_at(const fab_spread *const *list, size_t count, unsigned permille)
{
    uint64_t all = 0, below = 0;
    for (size_t i = 0; i < count; i++)
        all += list[i]->count;
    if (all == 0)
        return 0;
    if (permille == 0)
        return least_of(list, count);
    /* in two steps, so that the product does not overflow for any number of flows */
    const uint64_t rank = all / 1000 * permille + (all % 1000 * permille + 999) / 1000;
    for (unsigned page = 0; page < FAB_SPREAD_PAGES; page++) {
        for (unsigned bin = 0; bin < BINS; bin++) {
            const fab_spread_bin b = bin_of_all(list, count, page, bin);
            if (below + b.count >= rank)
                return value_in(&b, rank - below);
            below += b.count;
        }
    }
    return 0;
}

/* ---- flows ---- */

/* Up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, and more. */
static uint64_t limit_of(unsigned class)
{
    return class < ORR_FABRIC_CLASSES - 1 ? (uint64_t)4096 << 4 * class : 0;
}

static unsigned class_of(uint64_t size)
{
    unsigned class = 0;
    while (limit_of(class) && size > limit_of(class))
        class ++;
    return class;
}

bool fab_flow_times_add(fab_flow_times *t, uint64_t size, uint64_t ticks, uint64_t ideal)
{
    struct fab_flow_class *c = &t->classes[class_of(size)];
    c->flows++;
    c->bytes += size;
    if (!fab_spread_add(&c->times, ticks))
        return false;
    if (!ideal)
        return true;
    /* the ideal is a formula that some flows slightly beat; as is customary they count as 1 */
    const unsigned __int128 slowdown = (unsigned __int128)ticks * MILLION / ideal;
    const uint64_t most = (uint64_t)1 << 62;
    return fab_spread_add(&c->slowdowns, slowdown < MILLION ? MILLION
                                         : slowdown > most  ? most
                                                            : (uint64_t)slowdown);
}

void fab_flow_times_fini(fab_flow_times *t)
{
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++) {
        fab_spread_fini(&t->classes[i].times);
        fab_spread_fini(&t->classes[i].slowdowns);
    }
}

static double slowdown_at(const fab_spread *const *list, size_t count, unsigned permille)
{
    return (double)fab_spread_at(list, count, permille) / MILLION;
}

static orr_fabric_flows summed(const struct fab_flow_class *first, size_t count, uint64_t ps)
{
    const fab_spread *times[ORR_FABRIC_CLASSES], *slowdowns[ORR_FABRIC_CLASSES];
    orr_fabric_flows out = {0};
    for (size_t i = 0; i < count; i++) {
        times[i] = &first[i].times;
        slowdowns[i] = &first[i].slowdowns;
        out.flows += first[i].flows;
        out.bytes += first[i].bytes;
    }
    for (unsigned i = 0; i < ORR_FABRIC_TIMES; i++)
        out.fct_ps[i] = fab_spread_at(times, count, i * 1000 / (ORR_FABRIC_TIMES - 1)) * ps;
    out.fct_p99_ps = fab_spread_at(times, count, 990) * ps;
    out.slowdown_p50 = slowdown_at(slowdowns, count, 500);
    out.slowdown_p95 = slowdown_at(slowdowns, count, 950);
    out.slowdown_p99 = slowdown_at(slowdowns, count, 990);
    out.slowdown_max = slowdown_at(slowdowns, count, 1000);
    return out;
}

void fab_flow_times_fill(const fab_flow_times *t,
                         uint64_t ps,
                         orr_fabric_flows *all,
                         orr_fabric_flows classes[ORR_FABRIC_CLASSES])
{
    *all = summed(t->classes, ORR_FABRIC_CLASSES, ps);
    for (unsigned i = 0; i < ORR_FABRIC_CLASSES; i++) {
        classes[i] = summed(&t->classes[i], 1, ps);
        classes[i].above = i ? limit_of(i - 1) : 0;
        classes[i].up_to = limit_of(i);
    }
}
