/* SPDX-License-Identifier: Apache-2.0 */
/* fold_classes.c - which ranks are equal, and the peers and groups of a class.
 *
 * Ranks start with a colour: their trace, their speeds, and what earlier splits found.  Then
 * colours are refined until they are stable: two ranks keep one colour only if, for every
 * communication of their trace, the groups have the same multiset of colours and the peers the same
 * colour.  Positions within a group do not count: every member has its own time.  Cost of a round:
 * the members of all groups that traces name, and a few operations per rank.
 *
 * Hashes stand for colours, 64 bits of them: distinguishable ranks get different numbers except for
 * a collision, whose probability for a million ranks is below 10^-7; `--fold verify` compares
 * everything. */
#include "fold_impl.h"
#include "fold_links.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "models/network/net_table.h"
#include "models/network/net_time.h"
#include "trace/attrs.h"

#include <stdlib.h>

/* MOST_PATHS: distinct routes by latency or speed, searched linearly; a network with more is too
 * irregular to fold. */
enum { WORLD = FOLD_WORLD, MOST_PATHS = 1000 };

/* ---- communication of a trace ---- */

/* Nodes that refer to the same group or peer in the same way.  A link is a reference to the other
 * side: by a value common to all ranks of the body, or by a slot with one value per rank.  A
 * relation is a link with a tag, since messages with different tags never match.  Refinement uses
 * links, channels use relations. */
typedef struct link {
    uint32_t place; /* one of them */
    uint8_t type;   /* orr_node_type */
} link;

/* Of one body: its links and relations. */
typedef struct body {
    link *links;
    size_t link_count, link_room;
    uint32_t *rooted; /* nodes of rooted collectives, one of each kind */
    size_t rooted_count, rooted_room;
    uint32_t *link_of; /* by relation */
    size_t relations, room;
    uint32_t *relation_of; /* by place: 1 + the relation; 0: none */
} body;

static uint32_t slot_at(const orr__class *c, orr_hole_field field, uint32_t node)
{
    return c->slot[field] ? c->slot[field][node] : 0;
}

static uint64_t value_at(const orr__class *c,
                         orr_hole_field field,
                         const int64_t *column,
                         uint32_t node)
{
    const uint32_t slot = slot_at(c, field, node);
    /* A slot means "per rank", a value "the same for all": they must not get the same number. */
    return slot ? slot
           : column
               ? orr_hash_mix((uint64_t)column[node] ^ 0xa0761d6478bd642fu, ~0x8ebc6af09c88c6e3u)
               : 0;
}

/* *link_key: without the tag. */
static uint64_t relation_key(
    const orr_sim *s, const work_graph *g, uint32_t k, uint32_t place, uint64_t *link_key)
{
    const orr__class *c = &s->set->classes[k];
    const orr_columns *col = &g->t->columns;
    const uint32_t node = g->node[place];
    const uint8_t type = col->type[node];
    uint64_t h = type;
    if (type == ORR_NODE_COMM_COLL) {
        const uint32_t slot = slot_at(c, ORR_HOLE_PG_NAME, node);
        const uint64_t text = slot           ? (uint64_t)slot << 32
                              : col->pg_name ? col->pg_name[node]
                                             : ORR_NO_NAME;
        /* Collectives have no tags: link and relation coincide. */
        return *link_key = orr_hash_mix(h ^ 0xe7037ed1a0b428dbu, text ^ 0x8ebc6af09c88c6e3u);
    }
    /* The addends keep a factor from being 0, which would lose what was mixed before. */
    h = orr_hash_mix(h ^ 0xe7037ed1a0b428dbu,
                     value_at(c, ORR_HOLE_COMM_SRC, col->comm_src, node) + 1);
    h = orr_hash_mix(h ^ 0xe7037ed1a0b428dbu,
                     value_at(c, ORR_HOLE_COMM_DST, col->comm_dst, node) + 2);
    *link_key = h;
    return orr_hash_mix(h ^ 0xe7037ed1a0b428dbu,
                        value_at(c, ORR_HOLE_COMM_TAG, col->comm_tag, node) + 3);
}

/* The link of this key; a new one if there is none.  NONE: out of memory. */
static uint32_t find_link(body *b, orr_map *seen, uint64_t key, link value)
{
    const uint32_t at = orr_map_find(seen, key, RUN_NONE), count = (uint32_t)b->link_count;
    if (at != RUN_NONE)
        return at;
    if (!orr_grow(&b->links, &b->link_room, b->link_count + 1) ||
        !orr_map_put(seen, key, count, NULL))
        return RUN_NONE;
    b->links[b->link_count++] = value;
    return count;
}

static bool has_root(const work_graph *g, uint32_t place)
{
    const int type = g->t->columns.comm_type ? g->t->columns.comm_type[g->node[place]] : -1;
    return type >= 0 && type < ORR_COLL_COUNT && coll_has_root((orr_collective)type);
}

/* Collectives of the same kind, group and root count once. */
static bool note_rooted(
    const orr_sim *s, uint32_t k, uint32_t place, uint64_t group, orr_map *seen, body *b)
{
    const work_graph *g = &s->graphs[k];
    const orr__class *c = &s->set->classes[k];
    const orr_columns *col = &g->t->columns;
    const uint32_t node = g->node[place];
    bool is_new = false;
    uint64_t h = orr_hash_mix(group ^ 0xa0761d6478bd642fu, (uint64_t)col->comm_type[node] + 1);
    h = orr_hash_mix(h ^ 0xe7037ed1a0b428dbu,
                     value_at(c, ORR_HOLE_COMM_SRC, col->comm_src, node) + 1);
    h = orr_hash_mix(h ^ 0xe7037ed1a0b428dbu,
                     value_at(c, ORR_HOLE_COMM_DST, col->comm_dst, node) + 2);
    if (!orr_map_put(seen, h, 1, &is_new))
        return false;
    if (is_new && !orr_grow(&b->rooted, &b->rooted_room, b->rooted_count + 1))
        return false;
    if (is_new)
        b->rooted[b->rooted_count++] = place;
    return true;
}

static bool read_body(fold_sim *f, uint32_t k, body *b)
{
    const work_graph *g = &f->s->graphs[k];
    orr_map *links = orr_map_create(0), *seen = orr_map_create(0), *roots = orr_map_create(0);
    bool ok =
        links && seen && roots && (b->relation_of = orr_arena_new(f->arena, g->count, uint32_t));
    for (uint32_t p = 0; ok && p < g->count; p++) {
        const uint8_t type = g->t->columns.type[g->node[p]];
        uint64_t link_key;
        if (type < ORR_NODE_COMM_SEND || type > ORR_NODE_COMM_COLL)
            continue;
        const uint64_t key = relation_key(f->s, g, k, p, &link_key);
        if (type == ORR_NODE_COMM_COLL && has_root(g, p))
            ok = note_rooted(f->s, k, p, link_key, roots, b);
        uint32_t at = orr_map_find(seen, key, RUN_NONE);
        if (at == RUN_NONE) {
            const uint32_t of = find_link(b, links, link_key, (link){p, type});
            at = (uint32_t)b->relations;
            ok = ok && of != RUN_NONE && orr_grow(&b->link_of, &b->room, b->relations + 1) &&
                 orr_map_put(seen, key, at, NULL);
            if (ok)
                b->link_of[b->relations++] = of;
        }
        /* From 1: 0 means that the node does not communicate. */
        b->relation_of[p] = at + 1;
    }
    orr_map_destroy(links);
    orr_map_destroy(seen);
    orr_map_destroy(roots);
    return ok;
}

/* ---- refinement ---- */

typedef struct fold_finder {
    fold_sim *f;
    body *bodies;    /* by class of the set */
    size_t *at;      /* by rank: its links in `other` */
    uint32_t *other; /* index of the group, WORLD, or the peer; NONE: nobody */
    /* double-buffered: a round reads one and writes the other, so that the order of ranks does not
     * matter */
    uint64_t *colour, *next;
    uint64_t *group_sum; /* by group */
    uint64_t *group_lie; /* by group, lockstep: its placement */
    /* by rank: its position relative to the roots of its collectives; NULL: there are none */
    uint64_t *root_colour;
    uint64_t *line_sum;       /* by dimension and rank */
    uint64_t *port_sum;       /* by rank, lockstep: senders of the messages through its ports */
    fold_shared_links *links; /* shared by ranks, lockstep; NULL: every rank has its own ports */
} finder;

static uint64_t mixed(uint64_t colour)
{
    return orr_hash_mix(colour ^ 0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu);
}

/* The dimensions in which two ranks differ, as bits. */
static uint64_t way_between(const orr_sim *s, uint32_t a, uint32_t b)
{
    uint64_t ways = 0;
    for (uint32_t k = 0; k < s->dims; k++) {
        const uint32_t n = s->net_config.npus[k];
        ways |= (uint64_t)(a % n != b % n) << k;
        a /= n;
        b /= n;
    }
    return ways;
}

/* The next rank whose ports a message uses: dimension by dimension, as in fluid_paths.c. */
static uint32_t next_on_way(const orr_sim *s, uint32_t at, uint32_t dst)
{
    uint32_t stride = 1;
    for (uint32_t k = 0; k < s->dims; k++) {
        const uint32_t n = s->net_config.npus[k];
        const uint32_t from = at / stride % n, to = dst / stride % n;
        if (from != to)
            return at + to * stride - from * stride;
        stride *= n;
    }
    return dst;
}

/* The peers and groups of each rank as indices: resolved once, since every round of refinement
 * needs them. */
static bool find_others(finder *v)
{
    fold_sim *f = v->f;
    orr_sim *s = f->s;
    size_t count = 0;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        v->at[r] = count;
        count += v->bodies[orr_set_class_of(s->set, r)].link_count;
    }
    if (!(v->other = orr_alloc(count + 1, sizeof *v->other)))
        return false;
    for (uint32_t r = 0; r < s->npu_count && !f->has_given_up; r++) {
        const uint32_t k = orr_set_class_of(s->set, r);
        /* Ranks do not exist yet, and most never will: a stub with the fields needed for the lookup
         * is enough. */
        const run_npu probe = {.sim = s, .rank = r, .graph = &s->graphs[k]};
        for (size_t i = 0; i < v->bodies[k].link_count; i++) {
            const link *x = &v->bodies[k].links[i];
            uint32_t *out = &v->other[v->at[r] + i];
            if (x->type == ORR_NODE_COMM_COLL) {
                const cfg_group *g;
                if (!sys_find_group(&probe, x->place, &g))
                    fold_give_up(f, "rank %u names a group that is not known", r);
                else if (g && cfg_group_index(g, r) == RUN_NONE)
                    fold_give_up(f, "rank %u is not a member of its group", r);
                else
                    f->uses_world = f->uses_world || !g;
                if (!f->has_given_up)
                    /* A group of all ranks is treated as none: its collectives go along the
                     * dimensions. */
                    *out = g && g->count != s->npu_count ? (uint32_t)(g - s->groups.groups) : WORLD;
                continue;
            }
            const int64_t peer = x->type == ORR_NODE_COMM_SEND ? run_npu_dst(&probe, x->place)
                                                               : run_npu_src(&probe, x->place);
            /* A peer that is missing or wrong is the run's business, not that of folding. */
            *out = peer < 0 || peer >= (int64_t)s->npu_count ? RUN_NONE : (uint32_t)peer;
        }
    }
    return true;
}

/* In lockstep the time of a collective depends on its placement: members per host, and the
 * dimensions in which they differ. */
static uint64_t lie_of(const orr_sim *s, const cfg_group *g)
{
    const uint32_t host = s->net_config.npus[0];
    uint64_t sum = g->count, ways = 0;
    uint32_t run = 1;
    /* One past the last member, so that the last host is closed like the others. */
    for (uint32_t i = 1; i <= g->count; i++) {
        const bool is_near = i < g->count && g->sorted[i] / host == g->sorted[i - 1] / host;
        if (i < g->count)
            ways |= way_between(s, g->sorted[0], g->sorted[i]);
        if (!is_near)
            /* A sum over hosts: only how often each count occurs matters, not on which host. */
            sum += mixed(run);
        run = is_near ? run + 1 : 1;
    }
    return mixed(sum ^ mixed(ways));
}

/* In lockstep, also by the link through which each member calls it: two communicators of the same
 * ranks, or of equally placed ranks, are distinguished by their use. */
static void add_callers(finder *v)
{
    const orr_sim *s = v->f->s;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const body *b = &v->bodies[orr_set_class_of(s->set, r)];
        for (size_t i = 0; i < b->link_count; i++) {
            const uint32_t other = v->other[v->at[r] + i];
            if (b->links[i].type == ORR_NODE_COMM_COLL && other < WORLD)
                v->group_sum[other] += orr_hash_mix(v->colour[r] ^ 0x589965cc75374cc3u, i + 1);
        }
    }
}

/* Ports are equal if the same messages of the same classes pass through them.  A forwarded message
 * counts for its sender. */
static void sum_ports(finder *v)
{
    const orr_sim *s = v->f->s;
    memset(v->port_sum, 0, s->npu_count * sizeof *v->port_sum);
    if (v->links) {
        fold_links_tell_ranks(v->links, v->port_sum);
        fold_links_refine(v->links, v->colour, v->group_sum);
        return;
    }
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const body *b = &v->bodies[orr_set_class_of(s->set, r)];
        for (size_t i = 0; i < b->link_count; i++) {
            const uint32_t dst = v->other[v->at[r] + i];
            if (b->links[i].type != ORR_NODE_COMM_SEND || dst == RUN_NONE)
                continue;
            uint64_t hop = 1;
            for (uint32_t at = r; at != dst; hop++) {
                at = next_on_way(s, at, dst);
                const uint64_t which = (uint64_t)i << 8 | hop << 1 | (at == dst);
                v->port_sum[at] += orr_hash_mix(v->colour[r] ^ 0x589965cc75374cc3u, which);
                /* Also by who forwards it: the ports on the way belong to equal ranks. */
                if (at != dst)
                    v->port_sum[r] += orr_hash_mix(v->colour[at] ^ 0xe7037ed1a0b428dbu, which);
            }
        }
    }
}

/* The colour of a group: its members by colour; in lockstep also its placement, its callers, and
 * the links it loads. */
static void sum_groups(finder *v)
{
    const orr_sim *s = v->f->s;
    for (size_t i = 0; i < s->groups.count; i++) {
        const cfg_group *g = &s->groups.groups[i];
        uint64_t sum = v->group_lie ? v->group_lie[i] : 0;
        for (uint32_t m = 0; m < g->count; m++)
            sum += mixed(v->colour[g->members[m]]);
        /* A sum, not a chain: every member has its own time, so positions do not count. */
        v->group_sum[i] = sum;
    }
    if (v->f->is_lockstep)
        add_callers(v);
    v->group_sum[s->groups.count] = 1; /* all ranks */
    if (v->links)
        fold_links_tell_groups(v->links, v->group_sum);
    for (size_t i = 0; i < s->groups.count; i++)
        v->group_sum[i] = mixed(v->group_sum[i] ^ s->groups.groups[i].count);
}

/* Collectives of all ranks run along one dimension after the other. */
static void sum_lines(finder *v)
{
    const orr_sim *s = v->f->s;
    uint32_t offset = 1;
    for (uint32_t k = 0; k < s->dims; k++) {
        uint64_t *sums = v->line_sum + (size_t)k * s->npu_count;
        const uint32_t n = s->net_config.npus[k];
        memset(sums, 0, s->npu_count * sizeof *sums);
        for (uint32_t r = 0; r < s->npu_count; r++)
            /* Stored at the first rank of each line, where all ranks of the line look it up. */
            sums[r - r / offset % n * offset] += mixed(v->colour[r]);
        offset *= n;
    }
}

static uint64_t line_colour(const finder *v, uint32_t r)
{
    const orr_sim *s = v->f->s;
    uint32_t offset = 1;
    uint64_t h = 0;
    for (uint32_t k = 0; k < s->dims; k++) {
        const uint32_t n = s->net_config.npus[k];
        h = orr_hash_mix(h ^ 0x8ebc6af09c88c6e3u,
                         v->line_sum[(size_t)k * s->npu_count + (r - r / offset % n * offset)] + 1);
        offset *= n;
    }
    return h;
}

static uint32_t index_along(const sys_dim *d, uint32_t rank)
{
    return rank / d->offset % d->count;
}

/* A rooted collective runs to or from the root along one dimension after the other: which of these
 * phases involve a rank depends on the dimensions in which it coincides with the root.  In a group
 * the position of the root counts. */
static uint64_t root_of(const orr_sim *s, const run_npu *probe, uint32_t place)
{
    const int type = probe->graph->t->columns.comm_type[probe->graph->node[place]];
    const orr_collective kind = (orr_collective)type;
    const sys_plan *plan = &s->plans[kind];
    const bool is_source = kind == ORR_COLL_BROADCAST || kind == ORR_COLL_SCATTER;
    const int64_t given = kind == ORR_COLL_BARRIER ? ORR_NO_VALUE
                          : is_source              ? run_npu_src(probe, place)
                                                   : run_npu_dst(probe, place);
    const cfg_group *g;
    if (!sys_find_group(probe, place, &g))
        return 0; /* reported by find_others */
    const int64_t root = given != ORR_NO_VALUE ? given : g ? (int64_t)g->members[0] : 0;
    /* A wrong root is reported when the collective runs (find_root). */
    if (root < 0 || root >= (int64_t)s->npu_count)
        return 1;
    if (g && g->count != s->npu_count)
        return 2 + (uint64_t)cfg_group_index(g, (uint32_t)root);
    uint64_t ways = 0;
    for (uint32_t k = 0; k < plan->count; k++)
        ways |= (uint64_t)(index_along(&plan->dims[k], probe->rank) ==
                           index_along(&plan->dims[k], (uint32_t)root))
                << k;
    return orr_hash_mix((uint64_t)root ^ 0xa0761d6478bd642fu, ways + 1);
}

/* False: out of memory. */
static bool find_roots(finder *v)
{
    const orr_sim *s = v->f->s;
    bool has = false;
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++)
        has = has || v->bodies[k].rooted_count;
    v->f->has_roots = has;
    if (!has || v->f->is_lockstep)
        return true;
    if (!(v->root_colour = orr_alloc(s->npu_count, sizeof *v->root_colour)))
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint32_t k = orr_set_class_of(s->set, r);
        const run_npu probe = {.sim = (orr_sim *)s, .rank = r, .graph = &s->graphs[k]};
        uint64_t h = 0;
        for (size_t i = 0; i < v->bodies[k].rooted_count; i++)
            h = orr_hash_mix(h ^ 0x8ebc6af09c88c6e3u,
                             root_of(s, &probe, v->bodies[k].rooted[i]) + 1);
        /* In trace order, which is the same for all ranks of a body; lockstep treats collectives as
         * one operation and needs no roots. */
        v->root_colour[r] = h;
    }
    return true;
}

static void refine(finder *v)
{
    const orr_sim *s = v->f->s;
    const bool has_lines = s->dims > 1 && !v->f->is_lockstep;
    sum_groups(v);
    if (v->port_sum)
        sum_ports(v);
    if (has_lines)
        sum_lines(v);
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const body *b = &v->bodies[orr_set_class_of(s->set, r)];
        /* Includes its own old colour: classes only become finer, so the rounds terminate. */
        uint64_t h = mixed(v->colour[r]);
        if (v->root_colour)
            h = orr_hash_mix(h ^ 0x589965cc75374cc3u, v->root_colour[r] + 1);
        if (v->port_sum)
            h = orr_hash_mix(h ^ 0xe7037ed1a0b428dbu, v->port_sum[r] + 1);
        for (size_t i = 0; i < b->link_count; i++) {
            const uint32_t other = v->other[v->at[r] + i];
            const bool is_peer = b->links[i].type != ORR_NODE_COMM_COLL;
            uint64_t seen = other == RUN_NONE ? 1
                            : is_peer         ? v->colour[other]
                            : other != WORLD  ? v->group_sum[other]
                            : has_lines       ? line_colour(v, r)
                                              : 2;
            if (v->f->is_lockstep && is_peer && other != RUN_NONE)
                /* A message loads ports of the dimensions that it crosses. */
                seen = orr_hash_mix(seen ^ 0x8ebc6af09c88c6e3u, way_between(s, r, other) + 1);
            h = orr_hash_mix(h ^ 0xa0761d6478bd642fu, seen ^ 0x8ebc6af09c88c6e3u);
        }
        v->next[r] = h;
    }
}

/* Replaces colours by small numbers in the order of ranks; returns how many there are, 0: out of
 * memory. */
static uint32_t number_colours(const finder *v, const uint64_t *colour, uint32_t *class_of)
{
    const uint32_t ranks = v->f->s->npu_count;
    orr_map *seen = orr_map_create(0);
    uint32_t count = 0, last = 0;
    /* In rank order, so that class numbers do not depend on hashes. */
    for (uint32_t r = 0; seen && r < ranks; r++) {
        /* Neighbours are mostly equal: no lookup. */
        if (r && colour[r] == colour[r - 1]) {
            class_of[r] = last;
            continue;
        }
        last = orr_map_find(seen, colour[r], RUN_NONE);
        if (last == RUN_NONE) {
            last = count++;
            if (!orr_map_put(seen, colour[r], last, NULL))
                count = RUN_NONE;
        }
        if (count == RUN_NONE)
            break;
        class_of[r] = last;
    }
    const bool ok = seen && count != RUN_NONE;
    orr_map_destroy(seen);
    return ok ? count : 0;
}

/* First the members, then arrays per class for links and relations: families, pairs and channels
 * are created on first use. */
static bool make_classes(fold_sim *f, body *bodies)
{
    orr_sim *s = f->s;
    f->classes = orr_arena_new(f->arena, f->class_count, fold_class);
    uint32_t *list = orr_arena_new(f->arena, s->npu_count, uint32_t);
    if (!f->classes || !list)
        return false;
    for (uint32_t r = 0; r < s->npu_count; r++)
        f->classes[f->class_of[r]].count++;
    for (uint32_t c = 0; c < f->class_count; c++) {
        f->classes[c].ranks = list;
        list += f->classes[c].count;
        f->classes[c].count = 0;
        f->classes[c].first_event = RUN_NONE;
        f->classes[c].last.kind = UINT8_MAX;
    }
    for (uint32_t r = 0; r < s->npu_count; r++) {
        fold_class *c = &f->classes[f->class_of[r]];
        /* Members ascend: the first rank of a class is its smallest, which represents it in
         * messages. */
        f->index_of[r] = c->count;
        c->ranks[c->count++] = r;
    }
    for (uint32_t c = 0; c < f->class_count; c++) {
        const uint32_t k = orr_set_class_of(s->set, f->classes[c].ranks[0]);
        const body *b = &bodies[k];
        uint32_t *link_of = orr_arena_new(f->arena, b->relations, uint32_t);
        if (link_of && b->relations)
            memcpy(link_of, b->link_of, b->relations * sizeof *link_of);
        f->classes[c].relation_of = b->relation_of;
        f->classes[c].link_of = link_of;
        f->classes[c].link_count = b->link_count;
        f->classes[c].relation_count = b->relations;
        f->classes[c].family = orr_arena_new(f->arena, b->link_count, fold_family *);
        f->classes[c].pairs = orr_arena_new(f->arena, b->link_count, fold_pairs *);
        f->classes[c].channel = orr_arena_new(f->arena, b->relations, fold_channel *);
        if (!link_of || !f->classes[c].family || !f->classes[c].pairs || !f->classes[c].channel)
            return false;
    }
    return true;
}

/* In lockstep, messages and collectives are identified by the classes that take part: refuse
 * classes with two of a kind. */
static void refuse_twins(const finder *v)
{
    fold_sim *f = v->f;
    const orr_sim *s = f->s;
    for (uint32_t c = 0; c < f->class_count && !f->has_given_up; c++) {
        const uint32_t r = f->classes[c].ranks[0], k = orr_set_class_of(s->set, r);
        const body *b = &v->bodies[k];
        for (size_t i = 0; i < b->link_count && !f->has_given_up; i++)
            for (size_t j = 0; j < i && !f->has_given_up; j++) {
                const uint32_t x = v->other[v->at[r] + i], y = v->other[v->at[r] + j];
                if (b->links[i].type != b->links[j].type || x == y || x >= WORLD || y >= WORLD)
                    continue;
                if (b->links[i].type == ORR_NODE_COMM_COLL ? v->group_sum[x] == v->group_sum[y]
                                                           : f->class_of[x] == f->class_of[y])
                    fold_give_up(f, "rank %u has two neighbours that are alike", r);
            }
    }
}

/* One message per member must be one message through each port it uses. */
static void refuse_uneven_ports(const finder *v)
{
    fold_sim *f = v->f;
    const orr_sim *s = f->s;
    for (uint32_t c = 0; c < f->class_count && !f->has_given_up; c++) {
        const uint32_t r = f->classes[c].ranks[0];
        const body *b = &v->bodies[orr_set_class_of(s->set, r)];
        for (size_t i = 0; i < b->link_count; i++) {
            const uint32_t dst = v->other[v->at[r] + i];
            if (b->links[i].type != ORR_NODE_COMM_SEND || dst == RUN_NONE)
                continue;
            for (uint32_t at = r; at != dst && !f->has_given_up;) {
                at = next_on_way(s, at, dst);
                /* If there are as many ports as messages, and all are equal, each port carries
                 * one. */
                if (f->classes[f->class_of[at]].count != f->classes[c].count)
                    fold_give_up(f, "messages of ranks like %u meet at ports of ranks like %u", r,
                                 at);
            }
        }
    }
}

static bool keep_group_colours(const finder *v)
{
    fold_sim *f = v->f;
    const size_t count = f->s->groups.count;
    uint64_t *kept = orr_arena_new(f->arena, count + 1, uint64_t);
    if (kept && count)
        memcpy(kept, v->group_sum, count * sizeof *kept);
    f->group_colour = kept;
    return kept != NULL;
}

/* Is there an all-to-all?  *has_dims: a collective runs along some dimensions only. */
static bool has_pairs(const orr_sim *s, bool *has_dims)
{
    bool has = false;
    *has_dims = false;
    for (uint32_t k = 0; k < orr_set_class_count(s->set); k++) {
        const work_graph *g = &s->graphs[k];
        for (uint32_t p = 0; g->t && p < g->count; p++) {
            const orr_columns *c = &g->t->columns;
            orr_node node;
            orr_attr a;
            if (c->type[g->node[p]] != ORR_NODE_COMM_COLL)
                continue;
            has = has || (c->comm_type && c->comm_type[g->node[p]] == ORR_COLL_ALL_TO_ALL);
            if (c->pg_name && c->pg_name[g->node[p]] != ORR_NO_NAME)
                continue;
            orr_trace_node(g->t, g->node[p], &node);
            *has_dims = *has_dims || orr__node_get(&node, ORR__ATTR_INVOLVED_DIM, &a);
        }
    }
    return has;
}

/* The links crossed by the collectives of groups and the messages of ranks. */
static bool find_links(finder *v, orr_error *err)
{
    fold_sim *f = v->f;
    orr_sim *s = f->s;
    const uint32_t world = (uint32_t)s->groups.count;
    uint32_t *all = orr_alloc(s->npu_count, sizeof *all);
    bool *is_used = orr_alloc((size_t)world + 1, sizeof *is_used), has_dims;
    const bool is_pairs = has_pairs(s, &has_dims);
    bool ok = all && is_used && (v->links = fold_links_create(s));
    if (has_dims)
        fold_give_up(f, "collectives go along some dimensions only");
    for (uint32_t r = 0; ok && r < s->npu_count && !f->has_given_up; r++) {
        const body *b = &v->bodies[orr_set_class_of(s->set, r)];
        all[r] = r;
        for (size_t i = 0; ok && i < b->link_count; i++) {
            const uint32_t other = v->other[v->at[r] + i];
            if (b->links[i].type == ORR_NODE_COMM_COLL)
                is_used[other == WORLD ? world : other] = true;
            else if (b->links[i].type == ORR_NODE_COMM_SEND && other != RUN_NONE && other != r)
                ok = fold_links_add_message(v->links, r, (uint32_t)i, other, err);
        }
    }
    for (uint32_t i = 0; ok && i <= world && !f->has_given_up; i++) {
        const uint32_t *members = i < world ? s->groups.groups[i].sorted : all;
        const uint32_t count = i < world ? s->groups.groups[i].count : s->npu_count;
        if (!is_used[i] || count < 2)
            continue;
        ok = fold_links_add_group(v->links, i, members, count, false, err) &&
             (!is_pairs || fold_links_add_group(v->links, i, members, count, true, err));
    }
    ok = ok && fold_links_begin(v->links);
    orr_free(all);
    orr_free(is_used);
    return ok;
}

static bool stand_links(const finder *v, orr_error *err)
{
    fold_sim *f = v->f;
    bool is_twice;
    if (f->has_given_up)
        return true;
    f->standing = fold_links_stand(v->links, f->s->arena, f->class_of, &is_twice, err);
    if (f->standing && is_twice)
        fold_give_up(f, "two kinds of messages go from one rank to another");
    return f->standing != NULL;
}

/* Until colours are stable; returns how many there are, 0: out of memory. */
static uint32_t refine_all(finder *v, uint32_t *class_of)
{
    uint32_t count = number_colours(v, v->colour, class_of), links = 0;
    /* Until neither ranks nor links are refined further: counts only rise, so equal counts mean
     * equal partitions. */
    for (uint32_t before = 0, same = UINT32_MAX; count && (count != before || links != same);) {
        before = count;
        same = links;
        refine(v);
        uint64_t *old = v->colour;
        v->colour = v->next;
        v->next = old;
        count = number_colours(v, v->colour, class_of);
        links = v->links ? fold_links_count(v->links) : 0;
    }
    return count;
}

void fold_finder_destroy(finder *v, uint32_t bodies)
{
    if (!v)
        return;
    for (uint32_t k = 0; v->bodies && k < bodies; k++) {
        orr_free(v->bodies[k].links);
        orr_free(v->bodies[k].link_of);
        orr_free(v->bodies[k].rooted);
    }
    orr_free(v->bodies);
    orr_free(v->at);
    orr_free(v->other);
    orr_free(v->colour);
    orr_free(v->next);
    orr_free(v->group_sum);
    orr_free(v->group_lie);
    orr_free(v->root_colour);
    fold_links_destroy(v->links);
    orr_free(v->port_sum);
    orr_free(v->line_sum);
    orr_free(v);
}

bool fold_find_classes(fold_sim *f, orr_error *err)
{
    orr_sim *s = f->s;
    const uint32_t bodies = orr_set_class_count(s->set), ranks = s->npu_count;
    finder *v = orr_alloc(1, sizeof *v);
    if (!v) {
        orr_no_memory(err);
        return false;
    }
    *v = (finder){
        .f = f,
        .bodies = orr_alloc(bodies, sizeof *v->bodies),
        .at = orr_alloc(ranks, sizeof *v->at),
        .colour = orr_alloc(ranks, sizeof *v->colour),
        .next = orr_alloc(ranks, sizeof *v->next),
        .group_sum = orr_alloc(s->groups.count + 1, sizeof *v->group_sum),
        .group_lie = f->is_lockstep ? orr_alloc(s->groups.count + 1, sizeof *v->group_lie) : NULL,
        .port_sum = f->is_lockstep ? orr_alloc(ranks, sizeof *v->port_sum) : NULL,
        .line_sum = s->dims > 1 ? orr_alloc((size_t)s->dims * ranks, sizeof *v->line_sum) : NULL};
    bool ok =
        v->bodies && v->at && v->colour && v->next && v->group_sum && (s->dims == 1 || v->line_sum);
    f->class_of = orr_arena_new(f->arena, ranks, uint32_t);
    f->index_of = orr_arena_new(f->arena, ranks, uint32_t);
    ok = ok && f->class_of && f->index_of;
    for (uint32_t k = 0; ok && k < bodies; k++)
        ok = !s->graphs[k].t || read_body(f, k, &v->bodies[k]);
    ok = ok && ((v->group_lie && v->port_sum) || !f->is_lockstep) && find_others(v);
    if (ok && !f->has_given_up)
        ok = find_roots(v);
    for (size_t i = 0; ok && v->group_lie && i < s->groups.count; i++)
        v->group_lie[i] = lie_of(s, &s->groups.groups[i]);
    if (ok && f->shares_links && !f->has_given_up)
        ok = find_links(v, err);
    if (ok && !f->has_given_up) {
        memcpy(v->colour, s->fold_colour, ranks * sizeof *v->colour);
        f->class_count = refine_all(v, f->class_of);
        ok = f->class_count && make_classes(f, v->bodies);
        if (ok && f->is_lockstep) {
            refuse_twins(v);
            if (v->links)
                ok = stand_links(v, err);
            else
                refuse_uneven_ports(v);
            ok = ok && keep_group_colours(v);
        }
    }
    if (ok && !f->has_given_up && !f->is_lockstep)
        f->finder = v; /* for merging (fold_merge.c) */
    else
        fold_finder_destroy(v, bodies);
    if (!ok)
        orr_no_memory(err);
    return ok;
}

uint32_t fold_refine(fold_sim *f, const uint64_t *colour, uint32_t *class_of)
{
    memcpy(f->finder->colour, colour, f->s->npu_count * sizeof *colour);
    return refine_all(f->finder, class_of);
}

bool fold_find_others(fold_sim *f, fold_others *out)
{
    const uint32_t bodies = orr_set_class_count(f->s->set);
    finder v = {.f = f,
                .bodies = orr_arena_new(f->arena, bodies, body),
                .at = orr_arena_new(f->arena, f->s->npu_count, size_t)};
    *out = (fold_others){.first = v.at,
                         .count = orr_arena_new(f->arena, bodies, size_t),
                         .is_group = orr_arena_new(f->arena, bodies, bool *)};
    bool ok = v.bodies && v.at && out->count && out->is_group;
    for (uint32_t k = 0; ok && k < bodies; k++) {
        const body *b = &v.bodies[k];
        ok = !f->s->graphs[k].t || read_body(f, k, &v.bodies[k]);
        out->count[k] = b->link_count;
        ok = ok && (out->is_group[k] = orr_arena_new(f->arena, b->link_count + 1, bool));
        for (size_t i = 0; ok && i < b->link_count; i++)
            out->is_group[k][i] = b->links[i].type == ORR_NODE_COMM_COLL;
    }
    ok = ok && find_others(&v);
    out->other = v.other;
    for (uint32_t k = 0; v.bodies && k < bodies; k++) {
        orr_free(v.bodies[k].links);
        orr_free(v.bodies[k].link_of);
        orr_free(v.bodies[k].rooted);
    }
    return ok;
}

/* ---- paths ---- */

static bool same_path(const fold_path *a, const net_path *b)
{
    return a->latency == b->latency_ns && a->speed == b->speed;
}

uint16_t fold_path_between(fold_sim *f, uint32_t src, uint32_t dst)
{
    net_path p;
    orr_error err;
    const orr_code code = f->s->net_ops == &orr__net_unaware
                              ? orr__unaware_path(f->s->net, src, dst, &p)
                              : orr__unaware_graph_path(f->s->net, src, dst, &p, &err);
    if (code == ORR_ENOMEM)
        run_no_memory(f->s);
    if (code) {
        fold_give_up(f, "there is no route from rank %u to rank %u", src, dst);
        return 0;
    }
    /* Backwards: consecutive ranks have the same routes. */
    for (size_t i = f->path_count; i-- > 0;)
        if (same_path(&f->paths[i], &p))
            return (uint16_t)i;
    if (f->path_count < MOST_PATHS && !orr_grow(&f->paths, &f->path_room, f->path_count + 1)) {
        run_no_memory(f->s);
        return 0;
    }
    if (f->path_count == MOST_PATHS) {
        fold_give_up(f, "the network has too many different routes");
        return 0;
    }
    f->paths[f->path_count] = (fold_path){p.latency_ns, p.speed};
    return (uint16_t)f->path_count++;
}

uint64_t fold_delay(const fold_sim *f, uint16_t path, uint64_t size)
{
    const fold_path *p = &f->paths[path];
    return orr_ticks(p->latency + (double)size / p->speed);
}

void fold_count_messages(fold_sim *f,
                         const uint64_t pairs[ORR_NET_DIMS],
                         uint64_t each,
                         uint64_t size)
{
    for (uint32_t k = 0; k < f->s->dims; k++) {
        f->s->messages += pairs[k] * each;
        f->s->watch->traffic[k].messages += pairs[k] * each;
        f->s->watch->traffic[k].bytes += pairs[k] * each * size;
    }
}

/* ---- families ---- */

/* A family: the groups of all members of a class, at one link.
 *
 *     class A: ranks 0 2 4 6      their tensor groups {0,1} {2,3} {4,5} {6,7}: one family,
 *     class B: ranks 1 3 5 7      of two classes, four groups and two members each
 *
 * All classes of a family meet in each phase, and all groups have the same composition, so one
 * computation (fold_phase.c) serves all of them. */
static bool list_classes(fold_sim *f, fold_family *y)
{
    bool *has = orr_alloc(f->class_count, sizeof *has);
    y->classes = orr_arena_new(f->arena, f->class_count, uint32_t);
    y->place_of = orr_arena_new(f->arena, f->class_count, uint32_t);
    for (uint32_t g = 0; has && y->classes && y->place_of && g < y->groups; g++)
        for (uint32_t m = 0; m < y->members; m++) {
            const uint32_t c = f->class_of[fold_family_rank(y, g, m)];
            if (has[c])
                continue;
            has[c] = true;
            y->place_of[c] = y->class_count;
            y->classes[y->class_count++] = c;
        }
    const bool ok = has && y->classes && y->place_of;
    orr_free(has);
    return ok;
}

static fold_family *add_family(fold_sim *f, const fold_family *value)
{
    fold_family *y = orr_arena_new(f->arena, 1, fold_family);
    if (y) {
        *y = *value;
        y->pattern_by_step = orr_map_create(0);
        /* Never given again, also when classes merge and families are made anew: memos know a
         * family by it. */
        y->number = f->family_numbers++;
    }
    if (!y || !y->pattern_by_step ||
        !orr_grow(&f->families, &f->family_room, f->family_count + 1) || !list_classes(f, y)) {
        if (y)
            orr_map_destroy(y->pattern_by_step);
        run_no_memory(f->s);
        return NULL;
    }
    f->families[f->family_count++] = y;
    return y;
}

/* The first rank of a rank's line. */
static uint32_t line_of(const sys_dim *d, uint32_t rank)
{
    return rank - rank / d->offset % d->count * d->offset;
}

/* The lines with members of this class, by their first ranks; NULL: all lines, or it has failed. */
static bool list_lines(
    fold_sim *f, const sys_dim *d, const fold_class *c, uint32_t **out, uint32_t *count)
{
    const uint32_t all = f->s->npu_count / d->count;
    uint32_t *lines = orr_alloc(c->count, sizeof *lines);
    *out = lines;
    *count = 0;
    if (!lines) {
        run_no_memory(f->s);
        return false;
    }
    for (uint32_t m = 0; m < c->count; m++)
        lines[m] = line_of(d, c->ranks[m]);
    /* Members ascend, and so do their lines as a rule. */
    for (uint32_t m = 1; m < c->count; m++)
        if (lines[m] < lines[m - 1]) {
            orr_sort(lines, c->count, sizeof *lines, orr_by_u32);
            break;
        }
    for (uint32_t m = 0; m < c->count; m++)
        if (m == 0 || lines[m] != lines[m - 1])
            lines[(*count)++] = lines[m];
    if (*count == all) {
        orr_free(lines);
        *out = NULL;
    }
    return true;
}

/* Lines along a dimension are listed only if a class is in some of them: all lines of a large
 * network follow from offset and length. */
static fold_family *add_lines(fold_sim *f, const sys_dim *d, const fold_class *c)
{
    const orr_sim *s = f->s;
    uint32_t *lines, count, offset = 1;
    if (s->npu_count % ((uint64_t)d->offset * d->count)) {
        fold_give_up(f, "a dimension does not divide the ranks");
        return NULL;
    }
    if (!list_lines(f, d, c, &lines, &count))
        return NULL;
    const uint64_t shape = (uint64_t)d->offset << 32 | d->count;
    /* The first line distinguishes the lines of different classes: classes that share a line share
     * all. */
    const uint64_t sum = mixed(shape) + (lines ? mixed(lines[0] + (uint64_t)1) : 0);
    for (size_t i = 0; i < f->family_count; i++)
        if (f->families[i]->is_line && f->families[i]->sum == sum) {
            orr_free(lines);
            return f->families[i];
        }
    fold_family y = {
        .sum = sum, .is_line = true, .members = d->count, .groups = count, .offset = d->offset};
    if (lines && !(y.ranks = orr_arena_take(f->arena, (size_t)count * d->count * sizeof *y.ranks)))
        run_no_memory(f->s);
    for (uint32_t g = 0; y.ranks && g < count; g++)
        for (uint32_t m = 0; m < d->count; m++)
            y.ranks[(size_t)g * d->count + m] = lines[g] + m * d->offset;
    orr_free(lines);
    for (uint32_t k = 0; k < s->dims; k++) {
        /* A line that is a whole dimension of the network: one pair of neighbours gives the route
         * of all. */
        if (offset == d->offset && s->net_config.npus[k] == d->count &&
            s->net_ops == &orr__net_unaware) {
            y.is_dim = true;
            y.dim = k;
        }
        offset *= s->net_config.npus[k];
    }
    return f->s->code ? NULL : add_family(f, &y);
}

/* Lines of other classes form their own families: they need not wait for each other. */
fold_family *fold_line_family(fold_sim *f, fold_class *c, const sys_dim *d)
{
    for (uint32_t i = 0; i < c->line_count; i++)
        if (c->lines[i]->offset == d->offset && c->lines[i]->members == d->count)
            return c->lines[i];
    fold_family *y = add_lines(f, d, c);
    if (y && c->line_count < sizeof c->lines / sizeof *c->lines)
        c->lines[c->line_count++] = y;
    return y;
}

static fold_family *find_group_family(fold_sim *f, const uint32_t *groups, uint32_t count)
{
    const cfg_group *all = f->s->groups.groups;
    /* A sum, as groups are sorted and distinct: equal sets give equal numbers, however they were
     * found. */
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++)
        sum += mixed(groups[i] + (uint64_t)1);
    for (size_t i = 0; i < f->family_count; i++)
        if (!f->families[i]->is_line && f->families[i]->sum == sum &&
            f->families[i]->groups == count)
            return f->families[i];
    fold_family y = {.sum = sum, .groups = count, .members = all[groups[0]].count};
    if (!(y.ranks = orr_arena_take(f->arena, (size_t)count * y.members * sizeof *y.ranks))) {
        run_no_memory(f->s);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (all[groups[i]].count != y.members) {
            fold_give_up(f, "groups of one family have different sizes");
            return NULL;
        }
        memcpy(y.ranks + (size_t)i * y.members, all[groups[i]].members,
               y.members * sizeof *y.ranks);
    }
    return add_family(f, &y);
}

/* The groups of all members of a class at this node. */
fold_family *fold_group_family(fold_sim *f, run_npu *n, uint32_t place)
{
    fold_class *c = fold_class_at(n);
    const uint32_t at = c->link_of[c->relation_of[place] - 1];
    /* Cached per link of a class: every collective needs it. */
    if (c->family[at])
        return c->family[at];
    uint32_t *groups = orr_alloc(c->count, sizeof *groups), count = 0;
    bool ok = groups != NULL;
    if (!groups)
        run_no_memory(f->s);
    for (uint32_t m = 0; ok && m < c->count; m++) {
        const run_npu probe = {.sim = f->s, .rank = c->ranks[m], .graph = n->graph};
        const cfg_group *g;
        if (!sys_find_group(&probe, place, &g) || !g)
            ok = false; /* reported by find_others */
        else
            groups[m] = (uint32_t)(g - f->s->groups.groups);
    }
    if (!ok) {
        fold_give_up(f, "a group of a class is not known");
        orr_free(groups);
        return NULL;
    }
    orr_sort(groups, c->count, sizeof *groups, orr_by_u32);
    for (uint32_t m = 0; m < c->count; m++)
        if (m == 0 || groups[m] != groups[m - 1])
            groups[count++] = groups[m];
    c->family[at] = find_group_family(f, groups, count);
    orr_free(groups);
    return c->family[at];
}

/* ---- patterns ---- */

/* Limit on pairs of ranks whose routes are looked up one by one, over the whole run: some
 * seconds. */
enum { MOST_PAIRS = 1 << 26 };

/* The route to each member in one step of an algorithm.  Steps repeat from phase to phase: each is
 * looked up once per family. */
const fold_pattern *fold_pattern_of(fold_sim *f, fold_family *y, uint64_t step)
{
    const orr_sim *s = f->s;
    uint32_t i = orr_map_find(y->pattern_by_step, step, RUN_NONE);
    if (i != RUN_NONE)
        return &y->patterns[i];
    i = (uint32_t)y->pattern_count;
    const size_t all = (size_t)y->groups * y->members;
    if (!orr_grow(&y->patterns, &y->pattern_room, y->pattern_count + 1) ||
        !orr_map_put(y->pattern_by_step, step, i, NULL)) {
        run_no_memory(f->s);
        return NULL;
    }
    fold_pattern p = {0};
    /* Every position of a ring, a switch or a fully connected dimension is equivalent. */
    if (y->is_dim) {
        p.even =
            fold_path_between(f, fold_family_rank(y, 0, coll_times_source(step, 0, y->members)),
                              fold_family_rank(y, 0, 0));
        p.pairs[y->dim] = all;
    } else {
        uint16_t *path = orr_arena_take(f->arena, all * sizeof *path);
        bool is_even = true;
        f->pairs_seen += all;
        if (!path)
            run_no_memory(f->s);
        if (!path || f->pairs_seen > MOST_PAIRS) {
            fold_give_up(f, "a collective over %u ranks has too many pairs", y->members);
            return NULL;
        }
        for (uint32_t g = 0; g < y->groups && !f->has_given_up; g++)
            for (uint32_t m = 0; m < y->members && !f->has_given_up; m++) {
                const uint32_t to = fold_family_rank(y, g, m);
                const uint32_t from =
                    fold_family_rank(y, g, coll_times_source(step, m, y->members));
                const size_t at = (size_t)g * y->members + m;
                path[at] = fold_path_between(f, from, to);
                is_even = is_even && path[at] == path[0];
                p.pairs[watch_dimension_between(s, from, to)]++;
            }
        p.even = path[0];
        p.path = is_even ? NULL : path;
    }
    y->patterns[y->pattern_count++] = p;
    return f->has_given_up ? NULL : &y->patterns[i];
}

/* ---- channels ---- */

/* A channel is the messages of one class to another, at one relation: the same send matches the
 * same receive for every member.  Both sides find it by the sum of its pairs, whichever comes
 * first; if the two sides disagree about its members, the run is not folded. */
typedef struct tuple {
    uint32_t src, dst;
    int64_t tag;
} tuple;

static bool tuple_of(
    const fold_sim *f, const run_npu *n, uint32_t place, bool is_send, uint32_t rank, tuple *out)
{
    const orr_set *set = f->s->set;
    const orr_columns *col = &n->graph->t->columns;
    const uint32_t node = n->graph->node[place];
    const int64_t src = orr__set_value(set, rank, ORR_HOLE_COMM_SRC, col->comm_src, node);
    const int64_t dst = orr__set_value(set, rank, ORR_HOLE_COMM_DST, col->comm_dst, node);
    const int64_t peer = is_send ? dst : src, own = is_send ? src : dst;
    out->tag = orr__set_value(set, rank, ORR_HOLE_COMM_TAG, col->comm_tag, node);
    if (peer < 0 || peer >= (int64_t)f->s->npu_count || peer == rank ||
        (own != ORR_NO_VALUE && own != rank) || out->tag == ORR_NO_VALUE)
        return false;
    /* As in point_to_point of workload.c: tags that are equal on the wire share a channel. */
    out->tag = (int64_t)((uint64_t)out->tag % MSG_TAG_SPACE);
    out->src = is_send ? rank : (uint32_t)peer;
    out->dst = is_send ? (uint32_t)peer : rank;
    return true;
}

/* Sums of two different hashes: 128 bits identify the set of pairs, independent of the order of
 * members. */
static const uint64_t seeds[2] = {0xa0761d6478bd642fu, 0x589965cc75374cc3u};

static uint64_t pair_hash(const tuple *t, uint64_t seed)
{
    return orr_hash_mix(((uint64_t)t->src << 32 | t->dst) ^ seed, 0xe7037ed1a0b428dbu);
}

static uint64_t tag_hash(uint64_t hash, int64_t tag)
{
    return orr_hash_mix(hash ^ 0x8ebc6af09c88c6e3u, (uint64_t)tag ^ 0xe7037ed1a0b428dbu);
}

/* Messages with equal source, destination and tag match in order, so they must belong to one
 * channel. */
static bool claim(fold_sim *f, uint64_t key, uint32_t mine, const tuple *t)
{
    const uint32_t owner = orr_map_find(f->claims, key, 0);
    /* An unfolded run would match messages that two channels here keep apart. */
    if (owner && owner != mine)
        fold_give_up(f, "messages from rank %u to rank %u belong together in two ways", t->src,
                     t->dst);
    else if (!owner && !orr_map_put(f->claims, key, mine, NULL))
        run_no_memory(f->s);
    return !fold_is_over(f);
}

/* The sending side knows the routes, the receiving side knows its senders. */
static bool see_sender(fold_sim *f, fold_pairs *h, const fold_class *c, uint32_t place)
{
    uint16_t *path = orr_arena_take(f->arena, c->count * sizeof *path);
    uint8_t *dimension = orr_arena_take(f->arena, c->count);
    bool is_even = true;
    h->from_class = (uint32_t)(c - f->classes);
    h->dimension = dimension;
    if (!path || !dimension)
        run_no_memory(f->s);
    /* Only this side claims: the receivers have the same pairs, or their sum would differ. */
    for (uint32_t m = 0; m < c->count && !fold_is_over(f); m++) {
        tuple t;
        if (!tuple_of(f, c->npu, place, true, c->ranks[m], &t) ||
            !claim(f, pair_hash(&t, seeds[0]), h->number, &t))
            return false;
        path[m] = fold_path_between(f, t.src, t.dst);
        is_even = is_even && path[m] == path[0];
        dimension[m] = (uint8_t)watch_dimension_between(f->s, t.src, t.dst);
        h->count[dimension[m]]++;
    }
    if (fold_is_over(f))
        return false;
    h->even = path[0];
    h->path = is_even ? NULL : path;
    return true;
}

static bool see_receiver(fold_sim *f, fold_pairs *h, const fold_class *c, uint32_t place)
{
    uint32_t *peer = orr_arena_take(f->arena, c->count * sizeof *peer);
    h->to_class = (uint32_t)(c - f->classes);
    h->peer = peer;
    if (!peer)
        run_no_memory(f->s);
    for (uint32_t m = 0; peer && m < c->count; m++) {
        tuple t;
        if (!tuple_of(f, c->npu, place, false, c->ranks[m], &t))
            return false;
        peer[m] = t.src;
    }
    return peer != NULL;
}

/* Both sides are known: map receiving members to sending members. */
static bool join_sides(fold_sim *f, fold_pairs *h)
{
    const fold_class *to = &f->classes[h->to_class], *from = &f->classes[h->from_class];
    uint32_t *source = orr_arena_take(f->arena, to->count * sizeof *source);
    bool is_same = true;
    if (!source) {
        run_no_memory(f->s);
        return false;
    }
    /* Each member must have one partner, or the map below is not a permutation. */
    if (to->count != from->count) {
        fold_give_up(f, "a class sends to a class of another size");
        return false;
    }
    for (uint32_t m = 0; m < to->count; m++) {
        if (f->class_of[h->peer[m]] != h->from_class) {
            fold_give_up(f, "a class receives from several classes");
            return false;
        }
        source[m] = f->index_of[h->peer[m]];
        is_same = is_same && source[m] == m;
    }
    /* NULL if member m receives from member m: times need no permutation. */
    h->source = is_same ? NULL : source;
    /* A number of its own for each permutation, as fold_permute memoises by it. */
    h->map = ++f->map_count;
    h->is_joined = true;
    return true;
}

static fold_pairs *find_pairs(fold_sim *f, const uint64_t sum[2])
{
    for (size_t i = 0; i < f->pairs_count; i++)
        if (f->pairs[i]->sum[0] == sum[0] && f->pairs[i]->sum[1] == sum[1])
            return f->pairs[i];
    fold_pairs *h = orr_arena_new(f->arena, 1, fold_pairs);
    if (!h || !orr_grow(&f->pairs, &f->pairs_room, f->pairs_count + 1)) {
        run_no_memory(f->s);
        return NULL;
    }
    *h = (fold_pairs){.sum = {sum[0], sum[1]},
                      .number = (uint32_t)f->pairs_count + 1,
                      .from_class = RUN_NONE,
                      .to_class = RUN_NONE};
    return f->pairs[f->pairs_count++] = h;
}

/* Pairs without tags are shared by all relations of a link: routes and partners are found once. */
static fold_pairs *pairs_of(fold_sim *f, fold_class *c, uint32_t place, bool is_send)
{
    const uint32_t at = c->link_of[c->relation_of[place] - 1], mine = (uint32_t)(c - f->classes);
    uint64_t sum[2] = {0, 0};
    if (c->pairs[at])
        return c->pairs[at];
    for (uint32_t m = 0; m < c->count; m++) {
        tuple t;
        if (!tuple_of(f, c->npu, place, is_send, c->ranks[m], &t)) {
            fold_give_up(f, "a message of rank %u is not valid", c->ranks[m]);
            return NULL;
        }
        sum[0] += pair_hash(&t, seeds[0]);
        sum[1] += pair_hash(&t, seeds[1]);
    }
    fold_pairs *h = find_pairs(f, sum);
    if (!h)
        return NULL;
    /* A channel has one sending class and one receiving class, and may be found from either side
     * first. */
    const uint32_t *side = is_send ? &h->from_class : &h->to_class;
    if (*side == RUN_NONE &&
        !(is_send ? see_sender(f, h, c, place) : see_receiver(f, h, c, place))) {
        fold_give_up(f, "a message of a class is not valid");
        return NULL;
    }
    if (*side != mine) {
        fold_give_up(f, "two classes have the same messages");
        return NULL;
    }
    if (h->from_class != RUN_NONE && h->to_class != RUN_NONE && !h->is_joined && !join_sides(f, h))
        return NULL;
    return c->pairs[at] = h;
}

/* By sum, with linear probing if the first halves collide; both halves are compared. */
static fold_channel *find_channel(fold_sim *f, fold_pairs *pairs, const uint64_t sum[2])
{
    uint64_t key = sum[0];
    uint32_t at;
    while ((at = orr_map_find(f->channel_by_sum, key, RUN_NONE)) != RUN_NONE) {
        fold_channel *h = f->channels[at];
        if (h->sum[0] == sum[0] && h->sum[1] == sum[1])
            return h;
        key++;
    }
    at = (uint32_t)f->channel_count;
    fold_channel *h = orr_arena_new(f->arena, 1, fold_channel);
    if (!h || !orr_grow(&f->channels, &f->channel_room, f->channel_count + 1) ||
        !orr_map_put(f->channel_by_sum, key, at, NULL)) {
        run_no_memory(f->s);
        return NULL;
    }
    *h = (fold_channel){.sum = {sum[0], sum[1]}, .number = at + 1, .pairs = pairs};
    return f->channels[f->channel_count++] = h;
}

/* A different tag per member: the channel is the pairs with their tags. */
static fold_channel *tagged_channel(
    fold_sim *f, const fold_class *c, fold_pairs *pairs, uint32_t place, bool is_send)
{
    uint64_t sum[2] = {0, 0};
    tuple t;
    for (uint32_t m = 0; m < c->count; m++)
        for (unsigned k = 0; k < 2; k++)
            if (tuple_of(f, c->npu, place, is_send, c->ranks[m], &t))
                sum[k] += tag_hash(pair_hash(&t, seeds[k]), t.tag);
    fold_channel *h = find_channel(f, pairs, sum);
    if (!claim(f, tag_hash(pairs->number, -1), 2, &t)) /* all tags of these pairs are per member */
        return NULL;
    for (uint32_t m = 0; h && is_send && m < c->count; m++)
        if (!tuple_of(f, c->npu, place, true, c->ranks[m], &t) ||
            !claim(f, tag_hash(pair_hash(&t, seeds[1]), t.tag), h->number, &t))
            return NULL;
    return h;
}

fold_channel *fold_channel_of(fold_sim *f, run_npu *n, uint32_t place, bool is_send)
{
    fold_class *c = fold_class_at(n);
    const uint32_t at = c->relation_of[place] - 1, node = n->graph->node[place];
    const uint32_t *tags =
        f->s->set->classes[orr_set_class_of(f->s->set, n->rank)].slot[ORR_HOLE_COMM_TAG];
    if (c->channel[at])
        return c->channel[at];
    fold_pairs *pairs = pairs_of(f, c, place, is_send);
    if (!pairs)
        return NULL;
    if (tags && tags[node])
        return c->channel[at] = tagged_channel(f, c, pairs, place, is_send);
    tuple t;
    if (!tuple_of(f, n, place, is_send, n->rank, &t))
        return NULL;
    /* One common tag; a channel of tags that happen to be equal would have another sum, and pairs
     * with both are refused. */
    if (!claim(f, tag_hash(pairs->number, -1), 1, &t))
        return NULL;
    const uint64_t sum[2] = {tag_hash(pairs->sum[0], t.tag), tag_hash(pairs->sum[1], t.tag)};
    return c->channel[at] = find_channel(f, pairs, sum);
}
