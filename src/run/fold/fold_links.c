/* SPDX-License-Identifier: Apache-2.0 */
/* fold_links.c - lockstep where ranks share links: rings and fully connected groups of the network
 * fluid.
 *
 * Links are coloured together with ranks and groups: two links keep one colour only if collectives
 * and messages of the same colours load both equally, and two groups only if their collectives load
 * links of the same colours equally.  Then a link represents all of its colour: the total load by
 * all groups of a colour is the same for each of them, so the fair rates of flows of one colour are
 * equal (docs/design/folding.md, "Lock step").
 *
 * Cost: one round of colouring visits each link crossed by each group and each message. */
#include "fold_links.h"

#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "models/network/fluid/fluid.h"
#include "run/joint.h"

#include <stdlib.h>

/* The load of one group or one rank on one link. */
typedef struct load {
    uint32_t owner, resource;
    uint64_t what; /* a number for the kind of load and its share */
} load;

/* from: a rank; link: of its trace; to: its peer */
typedef struct message {
    uint32_t from, link, to;
} message;

struct fold_shared_links {
    orr_sim *s;
    fluid_paths *paths;
    load *loads; /* of groups */
    size_t count, room;
    load *sends; /* of ranks */
    size_t send_count, send_room;
    message *messages;
    size_t message_count, message_room;
    uint64_t *colour, *next; /* by resource */
    uint32_t links;
};

fold_shared_links *fold_links_create(orr_sim *s)
{
    fold_shared_links *l = orr_alloc(1, sizeof *l);
    if (l) {
        l->s = s;
        l->paths = fluid_network_paths(s->net);
    }
    return l;
}

void fold_links_destroy(fold_shared_links *l)
{
    if (!l)
        return;
    orr_free(l->loads);
    orr_free(l->sends);
    orr_free(l->messages);
    orr_free(l->colour);
    orr_free(l->next);
    orr_free(l);
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    return orr_hash_mix(a ^ 0xa0761d6478bd642fu, b ^ 0xe7037ed1a0b428dbu);
}

static uint64_t bits_of(double share)
{
    uint64_t bits;
    memcpy(&bits, &share, sizeof bits);
    return bits;
}

static bool add_loads(
    load **list, size_t *count, size_t *room, const fluid_paths *p, uint32_t owner, uint64_t kind)
{
    if (!orr_grow(list, room, *count + p->part_count))
        return false;
    for (size_t i = 0; i < p->part_count; i++)
        (*list)[(*count)++] =
            (load){owner, p->parts[i].resource, mixed(kind, bits_of(p->parts[i].share))};
    return true;
}

bool fold_links_add_group(fold_shared_links *l,
                          uint32_t group,
                          const uint32_t *members,
                          uint32_t count,
                          bool is_pairs,
                          orr_error *err)
{
    /* Traffic inside and between hosts separately: the mix differs from collective to collective,
     * and links that carry both parts equally carry every mix equally. */
    const uint64_t mark = joint_mark(l->s->joint, members, count);
    for (uint64_t is_out = 0; is_out < 2; is_out++) {
        l->paths->part_count = 0;
        if (joint_add_links(l->s->joint, members, count, is_pairs, is_out ? 0 : 1, is_out ? 1 : 0,
                            err) ||
            !add_loads(&l->loads, &l->count, &l->room, l->paths, group,
                       (1 + 2 * (uint64_t)is_pairs + is_out) ^ mark))
            return false;
    }
    return true;
}

bool fold_links_add_message(
    fold_shared_links *l, uint32_t from, uint32_t link, uint32_t to, orr_error *err)
{
    double latency = 0;
    l->paths->part_count = 0;
    if (fluid_paths_add(l->paths, from, to, 1, &latency, err) ||
        /* Numbers above those of collectives. */
        !add_loads(&l->sends, &l->send_count, &l->send_room, l->paths, from, 16 + (uint64_t)link) ||
        !orr_grow(&l->messages, &l->message_room, l->message_count + 1))
        return false;
    l->messages[l->message_count++] = (message){from, link, to};
    return true;
}

bool fold_links_begin(fold_shared_links *l)
{
    const fluid *f = l->paths->f;
    l->links = fluid_count(f);
    l->colour = orr_alloc((size_t)l->links + 1, sizeof *l->colour);
    l->next = orr_alloc((size_t)l->links + 1, sizeof *l->next);
    for (uint32_t i = 0; l->colour && l->next && i < l->links; i++)
        /* Links of different speed never represent each other. */
        l->colour[i] = mixed(bits_of(fluid_figures_of(f, i).capacity), 1);
    return l->colour && l->next;
}

void fold_links_tell_groups(const fold_shared_links *l, uint64_t *group_sum)
{
    for (size_t i = 0; i < l->count; i++)
        /* Sums, as everywhere in refinement: the order of links must not matter. */
        group_sum[l->loads[i].owner] += mixed(l->colour[l->loads[i].resource], l->loads[i].what);
}

void fold_links_tell_ranks(const fold_shared_links *l, uint64_t *rank_sum)
{
    for (size_t i = 0; i < l->send_count; i++)
        rank_sum[l->sends[i].owner] += mixed(l->colour[l->sends[i].resource], l->sends[i].what);
}

/* A link's colour depends on the colours of the groups and senders that load it, and theirs on the
 * links they load: each round passes one side's colours to the other. */
void fold_links_refine(fold_shared_links *l, const uint64_t *colour, const uint64_t *group_sum)
{
    for (uint32_t i = 0; i < l->links; i++)
        /* Includes the old colour, so that colours only become finer. */
        l->next[i] = mixed(l->colour[i], 2);
    for (size_t i = 0; i < l->count; i++)
        l->next[l->loads[i].resource] += mixed(group_sum[l->loads[i].owner], l->loads[i].what);
    for (size_t i = 0; i < l->send_count; i++)
        l->next[l->sends[i].resource] += mixed(colour[l->sends[i].owner], l->sends[i].what);
    uint64_t *old = l->colour;
    l->colour = l->next;
    l->next = old;
}

/* The first link of each colour, by link; NULL if only their number is wanted.  0: out of
 * memory. */
static uint32_t number_links(const fold_shared_links *l, uint32_t *first)
{
    orr_map *seen = orr_map_create(0);
    uint32_t count = 0;
    bool ok = seen != NULL;
    for (uint32_t i = 0; ok && i < l->links; i++) {
        /* The smallest of a colour represents it, independent of the order of hashes. */
        const uint32_t known = orr_map_find(seen, l->colour[i], i);
        if (known == i) {
            ok = orr_map_put(seen, l->colour[i], i, NULL);
            count++;
        }
        if (first)
            first[i] = known;
    }
    orr_map_destroy(seen);
    return ok ? count : 0;
}

uint32_t fold_links_count(const fold_shared_links *l)
{
    return number_links(l, NULL);
}

/* ---- representatives ---- */

static int by_link(const void *a, const void *b)
{
    const fluid_part *x = a, *y = b;
    return x->resource < y->resource ? -1 : x->resource > y->resource;
}

void fold_links_keep(fluid_paths *p, size_t from)
{
    const fluid_standing *s = p->standing;
    size_t kept = from;
    orr_sort(p->parts + from, p->part_count - from, sizeof *p->parts, by_link);
    for (size_t i = from; i < p->part_count; i++) {
        fluid_part *part = &p->parts[i];
        /* Represented links are dropped: their load equals that of the representative. */
        if (s->link[part->resource] != part->resource)
            continue;
        if (kept > from && p->parts[kept - 1].resource == part->resource) {
            p->parts[kept - 1].share += part->share;
            continue;
        }
        p->parts[kept] = *part;
        /* One flow, however many parts of this group or message cross the link. */
        p->parts[kept++].flows = 1;
    }
    p->part_count = kept;
}

static int by_class_and_link(const void *a, const void *b, void *class_of)
{
    const message *x = a, *y = b;
    const uint32_t *class = class_of;
    const uint32_t one[] = {class[x->from], x -> link, x -> from};
    const uint32_t two[] = {class[y->from], y -> link, y -> from};
    for (unsigned i = 0; i < 3; i++)
        if (one[i] != two[i])
            return one[i] < two[i] ? -1 : 1;
    return 0;
}

/* All messages of one trace link of one class: their combined load. */
static bool add_way(fold_shared_links *l, const message *list, size_t count, orr_error *err)
{
    double latency = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t from = l->paths->part_count;
        if (fluid_paths_add(l->paths, list[i].from, list[i].to, 1, &latency, err))
            return false;
        fold_links_keep(l->paths, from);
    }
    return true;
}

fluid_standing *fold_links_stand(
    fold_shared_links *l, orr_arena *a, uint32_t *class_of, bool *is_twice, orr_error *err)
{
    fluid_standing *s = orr_arena_new(a, 1, fluid_standing);
    uint32_t *link = orr_arena_new(a, (size_t)l->links + 1, uint32_t);
    uint32_t *first = orr_arena_new(a, l->message_count + 2, uint32_t);
    uint32_t ways = 0;
    *is_twice = false;
    if (!s || !link || !first || !(l->links == 0 || number_links(l, link)))
        return NULL;
    *s = (fluid_standing){.link = link, .links = l->links, .first = first};
    if (!(s->way_of = orr_map_create(0)))
        return NULL;
    const fluid_standing *before = l->paths->standing;
    l->paths->standing = s;
    l->paths->part_count = 0;
    if (l->message_count)
        qsort_r(l->messages, l->message_count, sizeof *l->messages, by_class_and_link, class_of);
    bool ok = true;
    for (size_t i = 0, next; ok && i < l->message_count; i = next) {
        const message *m = &l->messages[i];
        const uint64_t pair = (uint64_t)m->from << 32 | m->to;
        for (next = i + 1; next < l->message_count &&
                           class_of[l->messages[next].from] == class_of[m->from] &&
                           l->messages[next].link == m->link;)
            next++;
        /* Ways are looked up by pair of ranks: two links of a trace to one peer would collide. */
        *is_twice = *is_twice || orr_map_find(s->way_of, pair, FLUID_NONE) != FLUID_NONE;
        first[ways] = (uint32_t)l->paths->part_count;
        ok = orr_map_put(s->way_of, pair, ways++, NULL) && add_way(l, m, next - i, err);
        first[ways] = (uint32_t)l->paths->part_count;
    }
    fluid_part *parts = ok ? orr_arena_new(a, l->paths->part_count + 1, fluid_part) : NULL;
    if (parts && l->paths->part_count)
        memcpy(parts, l->paths->parts, l->paths->part_count * sizeof *parts);
    s->parts = parts;
    /* Not in force yet: classes may still be given up. */
    l->paths->standing = before;
    if (!parts) {
        orr_map_destroy(s->way_of);
        return NULL;
    }
    return s;
}
