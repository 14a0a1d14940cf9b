/* SPDX-License-Identifier: Apache-2.0 */
/* python_set.c - CPython's sets of integers below 2^61, in its iteration order.
 *
 * Invariant: the table size is a power of two, and fewer than three fifths of the slots have been
 * used since it was allocated.  Cost: that of a hash table, 8 bytes per slot. */
#include "ss_impl.h"

#include "base/memory/memory.h"

enum { LEAST = 8, PROBES = 9, SHIFT = 5, LARGE = 50000 };
enum { NEVER = 0, TAKEN = 1, OFFSET = 2 };

void python_set_init(python_set *s)
{
    *s = (python_set){.mask = LEAST - 1, .table = orr_alloc(LEAST, sizeof *s->table)};
    s->has_failed = !s->table;
}

void python_set_fini(python_set *s)
{
    orr_free(s->table);
    s->table = NULL;
}

/* The slot of a key, or the first unused one of its probe sequence.  *marked: the last slot on that
 * sequence whose key was removed, or `none`. */
static size_t place_of(const uint64_t *table, size_t mask, uint64_t key, size_t *marked)
{
    size_t perturb = key, i = key & mask;
    for (;;) {
        const size_t last = i + PROBES <= mask ? i + PROBES : i;
        for (size_t at = i; at <= last; at++) {
            if (table[at] == NEVER || table[at] == key + OFFSET)
                return at;
            if (table[at] == TAKEN)
                *marked = at;
        }
        perturb >>= SHIFT;
        i = (i * 5 + 1 + perturb) & mask;
    }
}

static void rebuild(python_set *s, size_t wanted)
{
    size_t size = LEAST;
    while (size <= wanted)
        size *= 2;
    uint64_t *table = orr_alloc(size, sizeof *table);
    if (!table) {
        s->has_failed = true;
        return;
    }
    size_t none;
    for (size_t i = 0; i <= s->mask; i++)
        if (s->table[i] >= OFFSET)
            table[place_of(table, size - 1, s->table[i] - OFFSET, &none)] = s->table[i];
    orr_free(s->table);
    s->table = table;
    s->mask = size - 1;
    s->fill = s->used;
}

bool python_set_has(const python_set *s, uint64_t key)
{
    size_t none;
    return !s->has_failed && s->table[place_of(s->table, s->mask, key, &none)] != NEVER;
}

void python_set_add(python_set *s, uint64_t key)
{
    if (s->has_failed)
        return;
    size_t marked = SIZE_MAX;
    const size_t at = place_of(s->table, s->mask, key, &marked);
    if (s->table[at] != NEVER)
        return;
    s->used++;
    if (marked != SIZE_MAX) {
        s->table[marked] = key + OFFSET;
        return;
    }
    s->table[at] = key + OFFSET;
    s->fill++;
    if (s->fill * 5 >= s->mask * 3)
        rebuild(s, s->used > LARGE ? s->used * 2 : s->used * 4);
}

uint64_t python_set_pop(python_set *s)
{
    size_t at = s->finger & s->mask;
    while (s->table[at] < OFFSET)
        at = at == s->mask ? 0 : at + 1;
    const uint64_t key = s->table[at] - OFFSET;
    s->table[at] = TAKEN;
    s->used--;
    s->finger = at + 1;
    return key;
}
