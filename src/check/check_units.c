/* SPDX-License-Identifier: Apache-2.0 */
/* check_units.c - which ranks are at the same place at the same time?
 *
 * Ranks of a shape run the same, but each in groups of its own.  If those groups have the same
 * kinds of members, those again are in groups with the same kinds of members, and so on, then the
 * ranks wait for the same things and go on together: they are a unit, and one of them can be run
 * for all.  Found by splitting: at first every shape is a unit; ranks whose groups differ in the
 * units of their members become units of their own, until nothing changes.  On a regular machine
 * that is at once.  Where it takes many rounds (groups that form long chains), every rank becomes a
 * unit. Cost: one look at each entry of a group, each round. */
#include "check_order.h"

#include "base/memory/hash.h"

enum { ROUNDS_MOST = 64 };

typedef struct splitting {
    chk_run *k;
    const chk_issues *s;
    uint32_t *color; /* by rank: its unit so far */
    uint32_t color_count;
    uint64_t *signature; /* by group */
} splitting;

/* ---- splitting ---- */

/* Sums of hashes: the same for groups with the same members.  Ranks that a body names are all
 * there, in whatever units. */
static void sign_groups(splitting *p)
{
    const chk_issues *s = p->s;
    for (uint32_t g = 0; g < orr_intern_count(s->groups); g++) {
        p->signature[g] = 0;
        for (size_t i = s->group_first[g]; i < s->group_first[g + 1]; i++) {
            const chk_entry *e = &s->entries[i];
            const uint32_t color = e->rank == ORR_NO_NODE ? ORR_NO_NODE : p->color[e->rank];
            const uint64_t one = ((uint64_t)e->port << 32 | color) + 0x9e3779b97f4a7c15u;
            p->signature[g] +=
                orr_hash_mix(orr_hash_mix(one, 0xa0761d6478bd642fu), 0xe7037ed1a0b428dbu);
        }
    }
}

static uint64_t sign_rank(const splitting *p, uint32_t rank)
{
    const chk_issues *s = p->s;
    const uint32_t shape = s->shapes.of_rank[rank];
    uint64_t h = p->color[rank] + 0x9e3779b97f4a7c15u;
    for (uint32_t i = s->port_first[shape]; i < s->port_first[shape + 1]; i++)
        if (s->ports[i].group == ORR_NO_NODE)
            h = orr_hash_mix(h ^ p->signature[chk_group_of(s, &s->ports[i], rank)],
                             0x8ebc6af09c88c6e3u);
    return h;
}

/* One round: how many there are now.  0: no memory. */
static uint32_t split_once(splitting *p)
{
    orr_map *numbers = orr_map_create(0);
    uint32_t count = 0;
    bool ok = numbers != NULL;
    sign_groups(p);
    for (uint32_t r = 0; ok && r < p->k->report->rank_count; r++) {
        if (p->s->shapes.of_rank[r] == ORR_NO_NODE)
            continue;
        const uint64_t h = sign_rank(p, r);
        const uint32_t known = orr_map_find(numbers, h, count);
        if (known == count)
            ok = orr_map_put(numbers, h, count++, NULL);
        p->color[r] = known;
    }
    orr_map_destroy(numbers);
    return ok ? count : 0;
}

static bool is_plain(const chk_issues *s, uint32_t shape)
{
    for (uint32_t i = s->port_first[shape]; i < s->port_first[shape + 1]; i++)
        if (s->ports[i].group == ORR_NO_NODE)
            return false;
    return true;
}

/* Every rank a unit, but for ranks that have nothing of their own. */
static void split_all(splitting *p)
{
    const chk_shapes *shapes = &p->s->shapes;
    p->color_count = p->k->report->rank_count;
    for (uint32_t i = 0; i < shapes->count; i++) {
        const uint32_t *ranks = shapes->ranks + shapes->all[i].first;
        const bool is_one = is_plain(p->s, i);
        for (uint32_t j = 0; j < shapes->all[i].rank_count; j++)
            p->color[ranks[j]] = ranks[is_one ? 0 : j];
    }
}

static bool split(splitting *p)
{
    const chk_issues *s = p->s;
    const size_t ranks = (size_t)p->k->report->rank_count + 1;
    p->color = orr_arena_new(p->k->scratch, ranks, uint32_t);
    p->signature = orr_arena_new(p->k->scratch, orr_intern_count(s->groups), uint64_t);
    if (!p->color || !p->signature)
        return false;
    memcpy(p->color, s->shapes.of_rank, (ranks - 1) * sizeof *p->color);
    p->color_count = s->shapes.count;
    bool is_stable = !s->has_own;
    for (int round = 0; !is_stable && round < ROUNDS_MOST; round++) {
        const uint32_t count = split_once(p);
        if (count == 0)
            return false;
        is_stable = count == p->color_count;
        p->color_count = count;
    }
    if (!is_stable)
        split_all(p);
    sign_groups(p);
    return true;
}

/* ---- units ---- */

static bool number_units(const splitting *p, chk_units *out)
{
    const chk_issues *s = p->s;
    const uint32_t ranks = p->k->report->rank_count;
    uint32_t *unit_of = orr_arena_new(p->k->scratch, (size_t)p->color_count + 1, uint32_t);
    out->of_rank = orr_arena_new(p->k->scratch, (size_t)ranks + 1, uint32_t);
    out->all = orr_arena_new(p->k->scratch, (size_t)p->color_count + 1, chk_unit);
    if (!unit_of || !out->of_rank || !out->all)
        return false;
    memset(unit_of, 0xff, p->color_count * sizeof *unit_of);
    size_t ports = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t shape = s->shapes.of_rank[r];
        out->of_rank[r] = ORR_NO_NODE;
        if (shape == ORR_NO_NODE)
            continue;
        if (unit_of[p->color[r]] == ORR_NO_NODE) {
            unit_of[p->color[r]] = out->count;
            out->all[out->count++] = (chk_unit){.shape = shape, .rank = r, .port_at = ports};
            ports += s->port_first[shape + 1] - s->port_first[shape];
        }
        out->of_rank[r] = unit_of[p->color[r]];
    }
    out->all[out->count].port_at = ports; /* one behind the last */
    return true;
}

static bool number_meetings(const splitting *p, chk_units *out)
{
    const chk_issues *s = p->s;
    orr_map *numbers = orr_map_create(0);
    bool ok = numbers != NULL;
    for (uint32_t u = 0; u < out->count; u++) {
        const chk_unit *unit = &out->all[u];
        const uint32_t first = s->port_first[unit->shape];
        for (uint32_t i = first; ok && i < s->port_first[unit->shape + 1]; i++) {
            const uint64_t h = p->signature[chk_group_of(s, &s->ports[i], unit->rank)];
            const uint32_t known = orr_map_find(numbers, h, out->meeting_count);
            if (known == out->meeting_count)
                ok = orr_map_put(numbers, h, out->meeting_count++, NULL);
            out->meeting_of[unit->port_at + i - first] = known;
        }
    }
    orr_map_destroy(numbers);
    return ok;
}

static void add_parties(const chk_issues *s, chk_units *out, size_t *at)
{
    for (uint32_t u = 0; u < out->count; u++) {
        const chk_unit *unit = &out->all[u];
        const uint32_t first = s->port_first[unit->shape];
        for (uint32_t i = first; i < s->port_first[unit->shape + 1]; i++) {
            const uint32_t m = out->meeting_of[unit->port_at + i - first];
            out->place_of[unit->port_at + i - first] = (uint32_t)(at[m] - out->meeting_first[m]);
            out->parties[at[m]++] = (chk_party){.unit = u, .port = i};
        }
    }
}

static bool list_parties(const splitting *p, chk_units *out)
{
    const size_t ports = out->all[out->count].port_at, meetings = out->meeting_count;
    size_t *at = orr_arena_new(p->k->scratch, meetings + 1, size_t);
    out->meeting_first = orr_arena_new(p->k->scratch, meetings + 1, size_t);
    if (!at || !out->meeting_first)
        return false;
    for (size_t i = 0; i < ports; i++)
        out->meeting_first[out->meeting_of[i] + 1]++;
    for (size_t m = 0; m < meetings; m++)
        out->meeting_first[m + 1] += out->meeting_first[m];
    memcpy(at, out->meeting_first, meetings * sizeof *at);
    add_parties(p->s, out, at);
    return true;
}

bool chk_units_find(chk_run *k, const chk_issues *s, chk_units *out)
{
    splitting p = {.k = k, .s = s};
    *out = (chk_units){0};
    if (!split(&p) || !number_units(&p, out))
        return false;
    const size_t ports = out->all[out->count].port_at + 1;
    out->meeting_of = orr_arena_new(k->scratch, ports, uint32_t);
    out->place_of = orr_arena_new(k->scratch, ports, uint32_t);
    out->parties = orr_arena_new(k->scratch, ports, chk_party);
    return out->meeting_of && out->place_of && out->parties && number_meetings(&p, out) &&
           list_parties(&p, out);
}
