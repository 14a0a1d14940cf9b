/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - open addressing, linear probing, backward-shift removal (no tombstones, so a map used as
 * a moving window does not degrade).  Keys and values in one 16-byte slot: one cache line per
 * probe. */
#include "map.h"
#include "hash.h"

#include <string.h>

typedef struct slot {
    uint64_t key;
    uint32_t value;
    uint32_t is_used;
} slot;

struct orr_map {
    slot *slots;
    size_t mask, count;
    unsigned shift;
};

/* Fibonacci hashing: ids come in runs, and the multiplication spreads runs evenly. */
static size_t home_of(const orr_map *m, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> m->shift);
}

static bool set_size(orr_map *m, size_t slots)
{
    m->slots = orr_alloc(slots, sizeof *m->slots);
    m->mask = slots - 1;
    m->shift = 64 - (unsigned)__builtin_ctzll(slots);
    m->count = 0;
    return m->slots != NULL;
}

orr_map *orr_map_create(size_t expected)
{
    size_t slots = 16;
    orr_map *m = orr_alloc(1, sizeof *m);
    while (slots / 8 * 7 <= expected && slots <= SIZE_MAX / 4)
        slots *= 2;
    if (m && set_size(m, slots))
        return m;
    orr_free(m);
    return NULL;
}

void orr_map_destroy(orr_map *m)
{
    if (m)
        orr_free(m->slots);
    orr_free(m);
}

static slot *locate(const orr_map *m, uint64_t key)
{
    size_t i = home_of(m, key);
    while (m->slots[i].is_used && m->slots[i].key != key)
        i = (i + 1) & m->mask;
    return &m->slots[i];
}

static bool grow(orr_map *m)
{
    orr_map bigger;
    if (!set_size(&bigger, (m->mask + 1) * 2))
        return false;
    for (size_t i = 0; i <= m->mask; i++)
        if (m->slots[i].is_used)
            *locate(&bigger, m->slots[i].key) = m->slots[i];
    bigger.count = m->count;
    orr_free(m->slots);
    *m = bigger;
    return true;
}

bool orr_map_put(orr_map *m, uint64_t key, uint32_t value, bool *is_new)
{
    if (m->count >= m->mask / 8 * 7 && !grow(m))
        return false;
    slot *s = locate(m, key);
    if (is_new)
        *is_new = !s->is_used;
    m->count += !s->is_used;
    *s = (slot){key, value, 1};
    return true;
}

uint32_t orr_map_find(const orr_map *m, uint64_t key, uint32_t otherwise)
{
    const slot *s = locate(m, key);
    return s->is_used ? s->value : otherwise;
}

/* Closes the gap: later entries of the run move back unless that would put them before their
 * home. */
bool orr_map_remove(orr_map *m, uint64_t key)
{
    slot *s = locate(m, key);
    if (!s->is_used)
        return false;
    size_t gap = (size_t)(s - m->slots);
    for (size_t i = (gap + 1) & m->mask; m->slots[i].is_used; i = (i + 1) & m->mask) {
        const size_t home = home_of(m, m->slots[i].key);
        if (((i - home) & m->mask) >= ((i - gap) & m->mask)) {
            m->slots[gap] = m->slots[i];
            gap = i;
        }
    }
    m->slots[gap].is_used = 0;
    m->count--;
    return true;
}

size_t orr_map_count(const orr_map *m)
{
    return m->count;
}

/* ---- texts as numbers ----
 *
 * A hash table of texts with dense numbers.  Each slot keeps 32 bits of the hash beside the
 * number, so a probe looks at the text only when it is almost surely the right one. */

typedef struct text_slot {
    uint32_t hash;
    uint32_t number_plus_one; /* 0: free */
} text_slot;

struct orr_intern {
    orr_arena *arena;
    orr_str *texts;
    size_t count, room;
    text_slot *slots;
    size_t mask;
};

orr_intern *orr_intern_create(void)
{
    orr_intern *in = orr_alloc(1, sizeof *in);
    if (!in)
        return NULL;
    in->mask = 63;
    in->arena = orr_arena_create();
    in->slots = orr_alloc(in->mask + 1, sizeof *in->slots);
    if (in->arena && in->slots)
        return in;
    orr_intern_destroy(in);
    return NULL;
}

void orr_intern_destroy(orr_intern *in)
{
    if (!in)
        return;
    orr_arena_destroy(in->arena);
    orr_free(in->texts);
    orr_free(in->slots);
    orr_free(in);
}

static text_slot *find_slot(const orr_intern *in, orr_str text, uint32_t hash)
{
    size_t i = hash & in->mask;
    for (;; i = (i + 1) & in->mask) {
        text_slot *s = &in->slots[i];
        if (!s->number_plus_one)
            return s;
        const orr_str *t = &in->texts[s->number_plus_one - 1];
        if (s->hash == hash && t->len == text.len &&
            (!text.len || memcmp(t->ptr, text.ptr, text.len) == 0)) /* "" may have no address */
            return s;
    }
}

static bool rehash(orr_intern *in)
{
    const size_t mask = in->mask * 2 + 1;
    text_slot *slots = orr_alloc(mask + 1, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i <= in->mask; i++) {
        size_t to = in->slots[i].hash & mask;
        if (!in->slots[i].number_plus_one)
            continue;
        while (slots[to].number_plus_one)
            to = (to + 1) & mask;
        slots[to] = in->slots[i];
    }
    orr_free(in->slots);
    in->slots = slots;
    in->mask = mask;
    return true;
}

bool orr_intern_find(const orr_intern *in, orr_str text, uint32_t *number)
{
    const text_slot *s = find_slot(in, text, (uint32_t)orr_hash_bytes(text.ptr, text.len, 0));
    if (!s->number_plus_one)
        return false;
    *number = s->number_plus_one - 1;
    return true;
}

bool orr_intern_add(orr_intern *in, orr_str text, uint32_t *number)
{
    const uint32_t hash = (uint32_t)orr_hash_bytes(text.ptr, text.len, 0);
    text_slot *s = find_slot(in, text, hash);
    if (s->number_plus_one) {
        *number = s->number_plus_one - 1;
        return true;
    }
    if (in->count >= in->mask / 4 * 3) {
        if (!rehash(in))
            return false;
        s = find_slot(in, text, hash);
    }
    char *copy = in->count < UINT32_MAX - 1 ? orr_arena_text(in->arena, text) : NULL;
    if (!copy || !orr_grow(&in->texts, &in->room, in->count + 1))
        return false;
    in->texts[in->count++] = (orr_str){copy, text.len};
    *s = (text_slot){hash, (uint32_t)in->count};
    *number = (uint32_t)in->count - 1;
    return true;
}

orr_str orr_intern_get(const orr_intern *in, uint32_t number)
{
    return number < in->count ? in->texts[number] : (orr_str){"", 0};
}

uint32_t orr_intern_count(const orr_intern *in)
{
    return (uint32_t)in->count;
}
