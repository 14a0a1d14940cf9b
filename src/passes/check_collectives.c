/* SPDX-License-Identifier: Apache-2.0 */
/* check_collectives.c - do the ranks of a group run the same collectives?
 *
 * The members of a group are the ranks that name it; those of the nameless group are all ranks.  Ranks of a
 * class are equal, so only classes are compared.  First as multisets of (type, size), because two
 * collectives without a dependency between them may be issued in either order: a rank that differs from most
 * of its group is reported, with what it lacks or has in excess.  The order is looked at only when all
 * multisets agree (check_order.c).
 * Cost: O(c log c) for c collectives in distinct ranks. */
#include "check_order.h"

#include "../base/hash.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- gathering ---- */

/* In these the ranks may move different amounts (a root, or splits of different lengths). */
static bool may_be_uneven(int type)
{
    return type == ORR_COLL_ALL_TO_ALL || type == ORR_COLL_GATHER || type == ORR_COLL_SCATTER;
}

static bool add_issue(orr__issues *s, orr__check *k, const orr__check_class *cls, uint32_t node)
{
    const orr_columns *c = cls->c;
    char room[24];
    orr_str group;
    uint32_t number;
    if (!c->comm_type || c->comm_type[node] < 0)
        return true; /* reported already */
    if (!orr__collective_group(cls->t, node, room, &group)) {
        s->partial++;
        return true;
    }
    if (!orr_grow(&s->all, &s->room, s->count + 1) || !orr_intern_add(s->groups, group, &number))
        return !(k->no_memory = true);
    const int64_t size =
        c->comm_size && c->comm_size[node] >= 0 ? c->comm_size[node] : ORR_NO_VALUE;
    const int16_t type = c->comm_type[node];
    s->all[s->count++] =
        (orr__issue){.class_index = cls->index,
                     .group = number,
                     .node = node,
                     .type = type,
                     .size = type == ORR_COLL_BARRIER ? 0 : size,
                     .key_size = may_be_uneven(type) || type == ORR_COLL_BARRIER ? 0 : size};
    return true;
}

static void gather(orr__check *k, orr__issues *s)
{
    uint32_t all_ranks;
    if (!orr_intern_add(s->groups, (orr_str){"", 0}, &all_ranks))
        k->no_memory = true;
    for (uint32_t i = 0; i < k->class_count && !k->no_memory; i++) {
        const orr__check_class *cls = &k->classes[i];
        for (uint32_t node = 0; node < cls->c->count && !k->no_memory; node++)
            if (cls->c->type[node] == ORR_NODE_COMM_COLL && !add_issue(s, k, cls, node))
                return;
    }
}

/* ---- groups and their members ---- */

static int compare_issues(const void *a, const void *b)
{
    const orr__issue *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->class_index != y->class_index)
        return x->class_index < y->class_index ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->key_size != y->key_size)
        return x->key_size < y->key_size ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void add_member(orr__issues *s, uint32_t class_index, size_t first, size_t end)
{
    orr__member *m = &s->members[s->member_count++];
    *m = (orr__member){.class_index = class_index, .first = first, .count = end - first};
    for (size_t i = first; i < end; i++) {
        const orr__issue *q = &s->sorted[i];
        const uint64_t type =
            orr_hash_mix((uint64_t)q->type + 0x9e3779b97f4a7c15u, 0xa0761d6478bd642fu);
        m->loose += orr_hash_mix(type ^ (uint64_t)q->key_size, 0xe7037ed1a0b428dbu);
        m->strict += orr_hash_mix(type ^ (uint64_t)q->size, 0x8ebc6af09c88c6e3u);
    }
}

static size_t end_of_run(const orr__issues *s, size_t at)
{
    size_t end = at;
    while (end < s->count && s->sorted[end].group == s->sorted[at].group &&
           s->sorted[end].class_index == s->sorted[at].class_index)
        end++;
    return end;
}

/* The nameless group: every class is a member, also one without collectives. */
static size_t add_members_of_all(const orr__check *k, orr__issues *s)
{
    size_t at = 0;
    if (s->count == 0 || s->sorted[0].group != 0)
        return 0;
    for (uint32_t i = 0; i < k->class_count; i++) {
        const bool has_some =
            at < s->count && s->sorted[at].group == 0 && s->sorted[at].class_index == i;
        const size_t end = has_some ? end_of_run(s, at) : at;
        add_member(s, i, at, end);
        at = end;
    }
    return at;
}

static bool list_members(const orr__check *k, orr__issues *s)
{
    const uint32_t groups = orr_intern_count(s->groups);
    s->sorted = orr_arena_new(k->scratch, s->count + 1, orr__issue);
    s->members = orr_arena_new(k->scratch, s->count + k->class_count + 1, orr__member);
    s->group_first = orr_arena_new(k->scratch, (size_t)groups + 1, size_t);
    if (!s->sorted || !s->members || !s->group_first)
        return false;
    if (s->count)
        memcpy(s->sorted, s->all, s->count * sizeof *s->all);
    qsort(s->sorted, s->count, sizeof *s->sorted, compare_issues);
    size_t at = add_members_of_all(k, s);
    for (uint32_t group = 1; group < groups; group++) {
        s->group_first[group] = s->member_count;
        while (at < s->count && s->sorted[at].group == group) {
            const size_t end = end_of_run(s, at);
            add_member(s, s->sorted[at].class_index, at, end);
            at = end;
        }
    }
    s->group_first[groups] = s->member_count;
    return true;
}

/* ---- one member against the rest of its group ---- */

static int compare_loose(const void *a, const void *b)
{
    const orr__member *const *x = a, *const *y = b;
    if ((*x)->loose != (*y)->loose)
        return (*x)->loose < (*y)->loose ? -1 : 1;
    return (*x)->class_index < (*y)->class_index ? -1 : 1;
}

/* What most ranks of a group do; of two equally frequent ways that of the lower rank. */
static const orr__member *pick_usual(const orr__check *k, const orr__issues *s, uint32_t group)
{
    const size_t first = s->group_first[group], n = s->group_first[group + 1] - first;
    const orr__member **by_way = orr_arena_new(k->scratch, n, const orr__member *);
    const orr__member *usual = NULL;
    uint64_t most = 0, ranks = 0;
    if (!by_way)
        return NULL;
    for (size_t i = 0; i < n; i++)
        by_way[i] = &s->members[first + i];
    qsort(by_way, n, sizeof *by_way, compare_loose);
    for (size_t i = 0, from = 0; i < n; i++) {
        ranks += k->classes[by_way[i]->class_index].rank_count;
        if (i + 1 < n && by_way[i + 1]->loose == by_way[i]->loose)
            continue;
        if (ranks > most || (ranks == most && by_way[from]->class_index < usual->class_index)) {
            most = ranks;
            usual = by_way[from];
        }
        from = i + 1;
        ranks = 0;
    }
    return usual;
}

/* What one side has and the other has not. */
typedef struct surplus {
    const orr__issue *first; /* by place in the file */
    size_t count;
    const orr__issue
        *first_of[ORR_COLL_COUNT + 1]; /* by type; the last: all types without a name */
    size_t count_of[ORR_COLL_COUNT + 1];
} surplus;

static int type_slot(const orr__issue *q)
{
    return q->type < ORR_COLL_COUNT ? q->type : ORR_COLL_COUNT;
}

static void keep_first(const orr__issue **first, const orr__issue *q)
{
    if (!*first || q->node < (*first)->node)
        *first = q;
}

static void add_surplus(surplus *s, const orr__issue *q)
{
    keep_first(&s->first, q);
    keep_first(&s->first_of[type_slot(q)], q);
    s->count_of[type_slot(q)]++;
    s->count++;
}

static int compare_keys(const orr__issue *x, const orr__issue *y, bool is_strict)
{
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    const int64_t a = is_strict ? x->size : x->key_size, b = is_strict ? y->size : y->key_size;
    return a < b ? -1 : a > b;
}

static void subtract(const orr__issues *s,
                     const orr__member *a,
                     const orr__member *b,
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

const char *orr__group_words(orr__check *k, const orr__issues *s, uint32_t group)
{
    orr_buf b = {0};
    if (group == 0)
        return "the group of all ranks";
    orr_buf_text(&b, "group ");
    orr__put_name(&b, orr_intern_get(s->groups, group));
    char *text = b.failed ? NULL : orr_arena_text(k->arena, (orr_str){(char *)b.ptr, b.len});
    orr_buf_fini(&b);
    k->no_memory |= !text;
    return text ? text : "";
}

static const char *type_name(const orr__issue *q)
{
    const char *name = orr_collective_name((uint32_t)q->type);
    return name ? name : "a collective of unknown type";
}

/* `ALL_REDUCE of 4,096 bytes` */
static const char *what_words(orr__check *k, const orr__issue *q)
{
    if (q->size == ORR_NO_VALUE || q->type == ORR_COLL_BARRIER)
        return type_name(q);
    const char *size = orr__check_count_words(k, (uint64_t)q->size);
    const char *text = orr_arena_print(k->arena, "%s of %s bytes", type_name(q), size);
    k->no_memory |= !text;
    return text ? text : "";
}

/* `ALL_REDUCE of 4,096 bytes (node 7 "name")` */
const char *orr__issue_words(orr__check *k, const orr__issue *q)
{
    const char *node = orr__check_node_words(k, &k->classes[q->class_index], q->node);
    const char *text = orr_arena_print(k->arena, "%s (%s)", what_words(k, q), node);
    k->no_memory |= !text;
    return text ? text : "";
}

typedef struct comparison {
    orr__check *k;
    const orr__issues *s;
    const orr__check_class *mine, *usual;
    const orr__member *my_member, *usual_member;
    surplus mine_more, usual_more;
    uint32_t group;
} comparison;

static void report_count(const comparison *m)
{
    orr__check *k = m->k;
    const bool has_more = m->mine_more.first != NULL;
    const orr__issue *q = has_more ? m->mine_more.first : m->usual_more.first;
    if (!orr__check_is_kept(k, ORR_CHECK_COLLECTIVE_COUNT)) {
        orr__check_add(k, m->mine, ORR_CHECK_COLLECTIVE_COUNT, ORR_NO_NODE, "%s", "");
        return;
    }
    orr__check_add(
        k, m->mine, ORR_CHECK_COLLECTIVE_COUNT, has_more ? q->node : ORR_NO_NODE,
        "%s: %s collective%s here, %s on rank %u; %s has no counterpart %s",
        orr__group_words(k, m->s, m->group), orr__check_count_words(k, m->my_member->count),
        m->my_member->count == 1 ? "" : "s", orr__check_count_words(k, m->usual_member->count),
        m->usual->rank, orr__issue_words(k, q), has_more ? "there" : "here");
}

static void report_differing(const comparison *m, orr_check_kind kind)
{
    orr__check *k = m->k;
    const orr__issue *a = m->mine_more.first;
    const orr__issue *b = m->usual_more.first_of[type_slot(a)];
    if (!b)
        b = m->usual_more.first;
    const char *more = "";
    if (orr__check_is_kept(k, kind) && m->mine_more.count > 1)
        more = orr_arena_print(k->arena, ", and %s more",
                               orr__check_count_words(k, m->mine_more.count - 1));
    orr__check_add(k, m->mine, kind, a->node, "%s: %s here, where rank %u has %s%s",
                   orr__check_is_kept(k, kind) ? orr__group_words(k, m->s, m->group) : "",
                   orr__check_is_kept(k, kind) ? what_words(k, a) : "", m->usual->rank,
                   orr__check_is_kept(k, kind) ? orr__issue_words(k, b) : "", more ? more : "");
}

static void compare_member(comparison *m, bool is_strict)
{
    subtract(m->s, m->my_member, m->usual_member, is_strict, &m->mine_more, &m->usual_more);
    if (m->my_member->count != m->usual_member->count)
        report_count(m);
    else if (is_strict)
        report_differing(m, ORR_CHECK_UNEVEN_SIZE);
    else if (memcmp(m->mine_more.count_of, m->usual_more.count_of, sizeof m->mine_more.count_of) ==
             0)
        report_differing(m, ORR_CHECK_COLLECTIVE_SIZE);
    else
        report_differing(m, ORR_CHECK_COLLECTIVE_TYPE);
}

static void compare_group(orr__check *k, const orr__issues *s, uint32_t group)
{
    const size_t first = s->group_first[group], end = s->group_first[group + 1];
    if (end - first < 2)
        return;
    const orr__member *usual = pick_usual(k, s, group);
    if (!usual) {
        k->no_memory = true;
        return;
    }
    for (size_t i = first; i < end; i++) {
        const orr__member *m = &s->members[i];
        if (m->strict == usual->strict && m->loose == usual->loose)
            continue;
        comparison c = {.k = k,
                        .s = s,
                        .mine = &k->classes[m->class_index],
                        .usual = &k->classes[usual->class_index],
                        .my_member = m,
                        .usual_member = usual,
                        .group = group};
        compare_member(&c, m->loose == usual->loose);
    }
}

static bool has_mismatch(const orr__check *k)
{
    const uint64_t *n = k->report->count;
    return n[ORR_CHECK_COLLECTIVE_COUNT] || n[ORR_CHECK_COLLECTIVE_TYPE] ||
           n[ORR_CHECK_COLLECTIVE_SIZE];
}

static void compare_all(orr__check *k, orr__issues *s)
{
    gather(k, s);
    if (k->no_memory || !list_members(k, s)) {
        k->no_memory = true;
        return;
    }
    for (uint32_t group = 0; group < orr_intern_count(s->groups) && !k->no_memory; group++)
        compare_group(k, s, group);
    if (s->partial)
        orr__check_add_note(
            k, "collectives over some of the network's dimensions (involved_dim) are not compared "
               "across ranks: the traces do not say which ranks they join");
    if (!k->no_memory && !has_mismatch(k))
        orr__check_order(k, s);
}

void orr__check_collectives(orr__check *k)
{
    orr__issues s = {0};
    if (k->class_count < 2 || k->no_memory)
        return; /* equal ranks run equal collectives */
    s.groups = orr_intern_create();
    if (s.groups)
        compare_all(k, &s);
    else
        k->no_memory = true;
    orr_intern_destroy(s.groups);
    orr_free(s.all);
}
