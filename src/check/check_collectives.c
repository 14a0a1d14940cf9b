/* SPDX-License-Identifier: Apache-2.0 */
/* check_collectives.c - do the ranks of a group run the same collectives?
 *
 * The members of a group are the ranks that name it; those of the nameless group are all
 * ranks.  Ranks of a shape run the same through a port (check_groups.c), so only ports are
 * compared.  First as multisets of (type, size), because two collectives without a dependency
 * between them may be issued in either order: a rank that differs from most of its group is
 * reported, with what it lacks or has in excess.  The order is looked at only when all multisets
 * agree (check_order.c). Cost: one look at each entry of a group; two ports are compared once, in
 * however many groups they meet. */
#include "check_groups.h"

#include <inttypes.h>
#include <stdlib.h>

/* The ranks that are in a group through one port. */
typedef struct member {
    uint32_t port;
    uint32_t rank, rank_count; /* rank: the lowest */
} member;

typedef struct comparing {
    chk_run *k;
    const chk_issues *s;
    member *members; /* of the group at hand */
    const member **by_way;
    size_t count, room, way_room;
    struct difference *differences;
    size_t difference_count, difference_room;
    orr_map *known; /* two ports -> difference */
} comparing;

/* ---- one member against the rest of its group ---- */

static uint64_t loose_of(const chk_issues *s, const member *m)
{
    return s->ports[m->port].loose;
}

static int compare_ways(const void *a, const void *b, void *context)
{
    const member *const *x = a, *const *y = b;
    const uint64_t p = loose_of(context, *x), q = loose_of(context, *y);
    if (p != q)
        return p < q ? -1 : 1;
    return (*x)->rank < (*y)->rank ? -1 : 1;
}

/* What most ranks of a group do; of two equally frequent ways that of the lower rank. */
static const member *pick_usual(const comparing *c)
{
    const member *usual = NULL;
    uint64_t most = 0, ranks = 0;
    for (size_t i = 0; i < c->count; i++)
        c->by_way[i] = &c->members[i];
    qsort_r(c->by_way, c->count, sizeof *c->by_way, compare_ways, (void *)(uintptr_t)c->s);
    for (size_t i = 0, from = 0; i < c->count; i++) {
        ranks += c->by_way[i]->rank_count;
        if (i + 1 < c->count && loose_of(c->s, c->by_way[i + 1]) == loose_of(c->s, c->by_way[i]))
            continue;
        if (ranks > most || (ranks == most && c->by_way[from]->rank < usual->rank)) {
            most = ranks;
            usual = c->by_way[from];
        }
        from = i + 1;
        ranks = 0;
    }
    return usual;
}

/* What one side has and the other has not. */
typedef struct surplus {
    const chk_issue *first; /* by place in the file */
    size_t count;
    const chk_issue *first_of[ORR_COLL_COUNT + 1]; /* by type; the last: all types without a name */
    size_t count_of[ORR_COLL_COUNT + 1];
} surplus;

static int type_slot(const chk_issue *q)
{
    return q->type < ORR_COLL_COUNT ? q->type : ORR_COLL_COUNT;
}

static void keep_first(const chk_issue **first, const chk_issue *q)
{
    if (!*first || q->node < (*first)->node)
        *first = q;
}

static void add_surplus(surplus *s, const chk_issue *q)
{
    keep_first(&s->first, q);
    keep_first(&s->first_of[type_slot(q)], q);
    s->count_of[type_slot(q)]++;
    s->count++;
}

static int compare_keys(const chk_issue *x, const chk_issue *y, bool is_strict)
{
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    const int64_t a = is_strict ? x->size : x->key_size, b = is_strict ? y->size : y->key_size;
    return a < b ? -1 : a > b;
}

static void subtract(const chk_issues *s,
                     const chk_port *a,
                     const chk_port *b,
                     bool is_strict,
                     surplus *more_a,
                     surplus *more_b)
{
    size_t i = a->first, j = b->first;
    const size_t end_a = a->first + a->count, end_b = b->first + b->count;
    while (i < end_a || j < end_b) {
        const int order = i == end_a   ? 1
                          : j == end_b ? -1
                                       : compare_keys(&s->sorted[i], &s->sorted[j], is_strict);
        if (order < 0)
            add_surplus(more_a, &s->sorted[i]);
        else if (order > 0)
            add_surplus(more_b, &s->sorted[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

const char *chk_group_words(chk_run *k, const chk_issues *s, uint32_t group)
{
    orr_buf b = {0};
    if (group == 0)
        return "the group of all ranks";
    orr_buf_text(&b, "group ");
    chk_put_name(&b, orr_intern_get(s->groups, group));
    char *text = b.failed ? NULL : orr_arena_text(k->arena, (orr_str){(char *)b.ptr, b.len});
    orr_buf_fini(&b);
    k->no_memory |= !text;
    return text ? text : "";
}

static const char *type_name(const chk_issue *q)
{
    const char *name = orr_collective_name((uint32_t)q->type);
    return name ? name : "a collective of unknown type";
}

/* `ALL_REDUCE of 4,096 bytes` */
static const char *what_words(chk_run *k, const chk_issue *q)
{
    if (q->size == ORR_NO_VALUE || q->type == ORR_COLL_BARRIER)
        return type_name(q);
    const char *size = chk_count_words(k, (uint64_t)q->size);
    const char *text = orr_arena_print(k->arena, "%s of %s bytes", type_name(q), size);
    k->no_memory |= !text;
    return text ? text : "";
}

const char *chk_issue_words(chk_run *k, const chk_issues *s, const chk_issue *q, uint32_t rank)
{
    chk_class cls = k->classes[s->shapes.all[q->shape].class_index];
    cls.rank = rank;
    const char *node = chk_node_words(k, &cls, q->node);
    const char *text = orr_arena_print(k->arena, "%s (%s)", what_words(k, q), node);
    k->no_memory |= !text;
    return text ? text : "";
}

typedef struct difference {
    surplus mine, usual;
} difference;

/* Found before, or now. */
static const difference *find_difference(comparing *c, uint32_t mine, uint32_t usual)
{
    const chk_port *a = &c->s->ports[mine], *b = &c->s->ports[usual];
    const uint64_t key = (uint64_t)mine << 32 | usual;
    const uint32_t known = orr_map_find(c->known, key, ORR_NO_NODE);
    if (known != ORR_NO_NODE)
        return &c->differences[known];
    if (!orr_grow(&c->differences, &c->difference_room, c->difference_count + 1) ||
        !orr_map_put(c->known, key, (uint32_t)c->difference_count, NULL)) {
        c->k->no_memory = true;
        return NULL;
    }
    difference *d = &c->differences[c->difference_count++];
    *d = (difference){0};
    subtract(c->s, a, b, a->loose == b->loose, &d->mine, &d->usual);
    return d;
}

typedef struct comparison {
    chk_run *k;
    const chk_issues *s;
    const difference *d;
    chk_class mine; /* with the ranks that differ */
    const member *my_member, *usual_member;
    uint32_t group;
} comparison;

static void report_count(const comparison *m)
{
    chk_run *k = m->k;
    const bool has_more = m->d->mine.first != NULL;
    const chk_issue *q = has_more ? m->d->mine.first : m->d->usual.first;
    const size_t here = m->s->ports[m->my_member->port].count;
    if (!chk_is_kept(k, ORR_CHECK_COLLECTIVE_COUNT)) {
        chk_add(k, &m->mine, ORR_CHECK_COLLECTIVE_COUNT, ORR_NO_NODE, "%s", "");
        return;
    }
    chk_add(k, &m->mine, ORR_CHECK_COLLECTIVE_COUNT, has_more ? q->node : ORR_NO_NODE,
            "%s: %s collective%s here, %s on rank %u; %s has no counterpart %s",
            chk_group_words(k, m->s, m->group), chk_count_words(k, here), here == 1 ? "" : "s",
            chk_count_words(k, m->s->ports[m->usual_member->port].count), m->usual_member->rank,
            chk_issue_words(k, m->s, q, has_more ? m->my_member->rank : m->usual_member->rank),
            has_more ? "there" : "here");
}

static void report_differing(const comparison *m, orr_check_kind kind)
{
    chk_run *k = m->k;
    const chk_issue *a = m->d->mine.first;
    const chk_issue *b = m->d->usual.first_of[type_slot(a)];
    if (!b)
        b = m->d->usual.first;
    const uint32_t there = m->usual_member->rank;
    const char *more = "";
    if (chk_is_kept(k, kind) && m->d->mine.count > 1)
        more = orr_arena_print(k->arena, ", and %s more", chk_count_words(k, m->d->mine.count - 1));
    chk_add(k, &m->mine, kind, a->node, "%s: %s here, where rank %u has %s%s",
            chk_is_kept(k, kind) ? chk_group_words(k, m->s, m->group) : "",
            chk_is_kept(k, kind) ? what_words(k, a) : "", there,
            chk_is_kept(k, kind) ? chk_issue_words(k, m->s, b, there) : "", more ? more : "");
}

static void compare_member(comparing *c, const member *m, const member *usual, uint32_t group)
{
    const chk_port *p = &c->s->ports[m->port], *q = &c->s->ports[usual->port];
    if (p->strict == q->strict && p->loose == q->loose)
        return;
    comparison x = {.k = c->k,
                    .s = c->s,
                    .d = find_difference(c, m->port, usual->port),
                    .mine = c->k->classes[c->s->shapes.all[p->shape].class_index],
                    .my_member = m,
                    .usual_member = usual,
                    .group = group};
    x.mine.rank = m->rank;
    x.mine.rank_count = m->rank_count;
    if (!x.d)
        return;
    if (p->count != q->count)
        report_count(&x);
    else if (p->loose == q->loose)
        report_differing(&x, ORR_CHECK_UNEVEN_SIZE);
    else if (memcmp(x.d->mine.count_of, x.d->usual.count_of, sizeof x.d->mine.count_of) == 0)
        report_differing(&x, ORR_CHECK_COLLECTIVE_SIZE);
    else
        report_differing(&x, ORR_CHECK_COLLECTIVE_TYPE);
}

/* ---- all groups ---- */

static bool is_agreed(const chk_issues *s, uint32_t group)
{
    const size_t first = s->group_first[group], end = s->group_first[group + 1];
    for (size_t i = first + 1; i < end; i++) {
        const chk_port *p = &s->ports[s->entries[i].port], *q = &s->ports[s->entries[first].port];
        if (p->strict != q->strict || p->loose != q->loose)
            return false;
    }
    return true;
}

static bool list_members(comparing *c, uint32_t group)
{
    const chk_issues *s = c->s;
    const size_t first = s->group_first[group], end = s->group_first[group + 1];
    if (!orr_grow(&c->members, &c->room, end - first) ||
        !orr_grow(&c->by_way, &c->way_room, end - first))
        return !(c->k->no_memory = true);
    c->count = 0;
    for (size_t i = first; i < end; i++) {
        const chk_entry *e = &s->entries[i];
        const uint32_t *ranks;
        const uint32_t count = chk_entry_ranks(s, e, &ranks);
        if (c->count == 0 || c->members[c->count - 1].port != e->port)
            c->members[c->count++] = (member){.port = e->port, .rank = ranks[0]};
        c->members[c->count - 1].rank_count += count;
    }
    return true;
}

static void compare_group(comparing *c, uint32_t group)
{
    if (is_agreed(c->s, group) || !list_members(c, group))
        return;
    const member *usual = pick_usual(c);
    for (size_t i = 0; i < c->count && !c->k->no_memory; i++)
        compare_member(c, &c->members[i], usual, group);
}

static void compare_groups(chk_run *k, const chk_issues *s)
{
    comparing c = {.k = k, .s = s, .known = orr_map_create(0)};
    k->no_memory |= !c.known;
    for (uint32_t group = 0; group < orr_intern_count(s->groups) && !k->no_memory; group++)
        compare_group(&c, group);
    orr_map_destroy(c.known);
    orr_free(c.members);
    orr_free(c.by_way);
    orr_free(c.differences);
}

static bool has_mismatch(const chk_run *k)
{
    const uint64_t *n = k->report->count;
    return n[ORR_CHECK_COLLECTIVE_COUNT] || n[ORR_CHECK_COLLECTIVE_TYPE] ||
           n[ORR_CHECK_COLLECTIVE_SIZE];
}

/* Ranks of a class that have the same values in all its slots are equal. */
static bool has_equal_values(const chk_run *k, const chk_class *cls)
{
    const size_t slots = cls->holes ? cls->holes->slot_count : 0;
    for (uint32_t i = 1; i < cls->rank_count; i++)
        for (uint32_t slot = 0; slot < slots; slot++)
            if (chk_value(k, cls->rank, slot) != chk_value(k, cls->ranks[i], slot))
                return false;
    return true;
}

static bool are_all_equal(const chk_run *k)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < k->class_count; i++)
        if (k->classes[i].rank_count && (used++ || !has_equal_values(k, &k->classes[i])))
            return false;
    return true;
}

void chk_collectives(chk_run *k)
{
    chk_issues s = {0};
    if (k->no_memory || are_all_equal(k))
        return; /* equal ranks run equal collectives */
    chk_issues_gather(k, &s);
    if (!k->no_memory)
        compare_groups(k, &s);
    if (s.has_partial)
        chk_add_note(
            k, "collectives over some of the network's dimensions (involved_dim) are not compared "
               "across ranks: the traces do not say which ranks they join");
    if (!k->no_memory && !has_mismatch(k))
        chk_order(k, &s);
    chk_issues_fini(&s);
}
