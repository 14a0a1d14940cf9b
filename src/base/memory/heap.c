/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c - a 4-ary heap ordered by (key, value).
 *
 * Why four ways: half the levels of a binary heap, and an entry's children lie side by side in
 * memory. Invariant: entry i is not before entry (i-1)/4.  Cost: push and pop O(log n), no
 * allocation below the high-water mark. */
#include "heap.h"

void orr_heap_fini(orr_heap *h)
{
    orr_free(h->entries);
    *h = (orr_heap){0};
}

static bool is_before(orr_heap_entry a, orr_heap_entry b)
{
    return a.key != b.key ? a.key < b.key : a.value < b.value;
}

bool orr_heap_push(orr_heap *h, uint64_t key, uint32_t value)
{
    const orr_heap_entry e = {key, value};
    if (!orr_grow(&h->entries, &h->room, h->count + 1))
        return false;
    size_t i = h->count++;
    while (i && is_before(e, h->entries[(i - 1) / 4])) {
        h->entries[i] = h->entries[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    h->entries[i] = e;
    return true;
}

static size_t first_child(const orr_heap *h, size_t i)
{
    const size_t from = 4 * i + 1;
    const size_t to = from + 4 < h->count ? from + 4 : h->count;
    size_t best = from;
    for (size_t c = from + 1; c < to; c++)
        if (is_before(h->entries[c], h->entries[best]))
            best = c;
    return best;
}

bool orr_heap_pop(orr_heap *h, orr_heap_entry *out)
{
    if (h->count == 0)
        return false;
    *out = h->entries[0];
    const orr_heap_entry last = h->entries[--h->count];
    size_t i = 0;
    while (4 * i + 1 < h->count) {
        const size_t c = first_child(h, i);
        if (!is_before(h->entries[c], last))
            break;
        h->entries[i] = h->entries[c];
        i = c;
    }
    h->entries[i] = last;
    return true;
}
