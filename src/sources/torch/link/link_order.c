/* SPDX-License-Identifier: Apache-2.0 */
/* link_order.c - things in the order of time: a radix sort by a number each, stable.
 *
 * Why not a comparing sort: a million time stamps of some seconds differ in five or six of their eight bytes, so it
 * is that many passes over small records.
 * Cost: linear. */
#include "link_merge.h"

uint64_t link_sort_key(double v)
{
    uint64_t bits;
    v += 0.0; /* -0 and 0 are the same time */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static bool digit_is_constant(const size_t *count, size_t n)
{
    for (unsigned d = 0; d < 256; d++) {
        if (count[d])
            return count[d] == n;
    }
    return true;
}

/* One digit of a radix sort, from a to b; false: nothing to do. */
static bool sort_digit(const link_sort_entry *a, link_sort_entry *b, size_t n, unsigned shift)
{
    size_t count[256] = {0}, at = 0;
    for (size_t i = 0; i < n; i++)
        count[a[i].key >> shift & 255]++;
    if (digit_is_constant(count, n))
        return false;
    for (unsigned d = 0; d < 256; d++) {
        const size_t here = count[d];
        count[d] = at;
        at += here;
    }
    for (size_t i = 0; i < n; i++)
        b[count[a[i].key >> shift & 255]++] = a[i];
    return true;
}

const link_sort_entry *link_sort_entries(link_sort_entry *a, link_sort_entry *b, size_t n)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!sort_digit(a, b, n, shift))
            continue;
        link_sort_entry *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

/* ---- nodes ---- */

static orr_code sort_keys(link_sort_entry *a, size_t n, uint32_t *order, orr_error *err)
{
    link_sort_entry *b = a ? orr_alloc(n + 1, sizeof *b) : NULL;
    if (!b)
        return orr_no_memory(err);
    const link_sort_entry *sorted = link_sort_entries(a, b, n);
    for (size_t i = 0; i < n; i++)
        order[i] = sorted[i].item;
    orr_free(b);
    return ORR_OK;
}

orr_code link_merge_order_hosts(link_merger *m, orr_error *err)
{
    const orr_linked *d = m->l->linked;
    link_sort_entry *a = orr_alloc(d->node_count + 1, sizeof *a);
    m->by_id = orr_arena_new(m->l->arena, d->node_count + 1, uint32_t);
    for (uint32_t h = 0; a && h < d->node_count; h++)
        a[h] = (link_sort_entry){d->nodes[h].id, h};
    const orr_code code =
        m->by_id ? sort_keys(a, d->node_count, m->by_id, err) : orr_no_memory(err);
    orr_free(a);
    return code;
}

orr_code link_merge_number(link_merger *m, uint32_t **order_out, orr_error *err)
{
    link_sort_entry *a = orr_alloc((size_t)m->count + 1, sizeof *a);
    uint32_t *order = orr_arena_new(m->l->arena, (size_t)m->count + 1, uint32_t);
    for (uint32_t i = 0; a && i < m->count; i++)
        a[i] = (link_sort_entry){link_sort_key(m->plan[i].key), i};
    const orr_code code = order ? sort_keys(a, m->count, order, err) : orr_no_memory(err);
    orr_free(a);
    if (code)
        return code;
    for (uint32_t i = 0; i < m->count; i++)
        m->plan[order[i]].id = i + 1;
    *order_out = order;
    return ORR_OK;
}
