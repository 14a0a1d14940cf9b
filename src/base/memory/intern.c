/* SPDX-License-Identifier: Apache-2.0 */
/* intern.c - a hash table of texts with dense numbers.  Each slot keeps 32 bits of the hash beside
 * the number, so a probe looks at the text only when it is almost surely the right one. */
#include "intern.h"
#include "hash.h"

#include <string.h>

typedef struct slot {
    uint32_t hash;
    uint32_t number_plus_one; /* 0: free */
} slot;

struct orr_intern {
    orr_arena *arena;
    orr_str *texts;
    size_t count, room;
    slot *slots;
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

static slot *locate(const orr_intern *in, orr_str text, uint32_t hash)
{
    size_t i = hash & in->mask;
    for (;; i = (i + 1) & in->mask) {
        slot *s = &in->slots[i];
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
    slot *slots = orr_alloc(mask + 1, sizeof *slots);
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
    const slot *s = locate(in, text, (uint32_t)orr_hash_bytes(text.ptr, text.len, 0));
    if (!s->number_plus_one)
        return false;
    *number = s->number_plus_one - 1;
    return true;
}

bool orr_intern_add(orr_intern *in, orr_str text, uint32_t *number)
{
    const uint32_t hash = (uint32_t)orr_hash_bytes(text.ptr, text.len, 0);
    slot *s = locate(in, text, hash);
    if (s->number_plus_one) {
        *number = s->number_plus_one - 1;
        return true;
    }
    if (in->count >= in->mask / 4 * 3) {
        if (!rehash(in))
            return false;
        s = locate(in, text, hash);
    }
    char *copy = in->count < UINT32_MAX - 1 ? orr_arena_text(in->arena, text) : NULL;
    if (!copy || !orr_grow(&in->texts, &in->room, in->count + 1))
        return false;
    in->texts[in->count++] = (orr_str){copy, text.len};
    *s = (slot){hash, (uint32_t)in->count};
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
