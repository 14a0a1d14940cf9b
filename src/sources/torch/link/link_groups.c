/* SPDX-License-Identifier: Apache-2.0 */
/* link_groups.c - process groups of a whole job, and the set that carries them.
 *
 * Every rank knows the groups it is in, by names that are its own business: mostly the same number
 * on all ranks, but a hash, or a number that means other ranks elsewhere, are possible.  In a set a
 * group has one number.
 *
 * Some back ends do not record which group a collective was in.  Comparing ranks tells: going along
 * all of them at once, what comes next on every rank and is equal is of all; where that is not so,
 * a group is looked for whose ranks all have the same next:
 *
 *     rank 0   all_reduce   broadcast   all_reduce   barrier
 *     rank 1   all_reduce   broadcast   all_reduce   barrier        the third is of a group {0, 1}
 *     rank 2   all_reduce   broadcast                barrier
 *
 * Older traces name a group by its address, another one in each process, and say no more about it.
 * There names are compared by what was done under them: the same collectives of the same sizes in
 * the same order.  The number that each rank has in its group tells groups of equal doings apart:
 *
 *     rank      0   1   2   3
 *     number    0   1   0   1      so there are two, {0, 1} and {2, 3}
 *
 * What fits nowhere is left as it is, for orrery check to point at. All of it is done on the calls
 * of prepared conversions, so that traces are written once, with the numbers.
 * Cost: linear in the collectives times groups that are tried. */
#include "link_job.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "base/threads/pool.h"

#include <inttypes.h>
#include <stdlib.h>

/* A group of the job: a name and what it means. */
typedef struct job_group {
    orr_str name;
    const uint32_t *ranks; /* ascending */
    uint32_t count;
    uint64_t id;
    bool has_twin; /* another group has the same name */
} job_group;

typedef struct grouper {
    orr_link_job *job;
    job_group *groups;
    size_t count, room;
    size_t world;        /* which of them has all ranks */
    bool has_parts;      /* some collective is not of all ranks */
    bool world_is_taken; /* a group without a meaning elsewhere is that of all ranks */
    orr_error *err;
} grouper;

/* ---- the table ---- */

static bool has_group(const link_job_rank *r, orr_str name)
{
    return linked_find_group(r->link->linked, name);
}

/* The ranks of a group that says only how many they are: all, or those that know its name. */
static bool guess_ranks(const grouper *g, const linked_group *known, uint32_t *out, uint32_t *count)
{
    const uint32_t world = g->job->rank_count;
    *count = 0;
    for (uint32_t r = 0; r < world; r++) {
        if (known->count == 0 || known->count == world || has_group(&g->job->ranks[r], known->name))
            out[(*count)++] = r;
    }
    return known->count == 0 || known->count == *count;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* False: its ranks are not known, or not all of them are here. */
static bool find_members(const grouper *g,
                         const linked_group *known,
                         uint32_t *out,
                         uint32_t *count)
{
    if (!known->ranks)
        return guess_ranks(g, known, out, count);
    if (known->count > g->job->rank_count)
        return false;
    memcpy(out, known->ranks, known->count * sizeof *out);
    *count = known->count;
    qsort(out, *count, sizeof *out, by_number);
    return *count && out[*count - 1] < g->job->rank_count;
}

static bool is_same(const job_group *a, orr_str name, const uint32_t *ranks, uint32_t count)
{
    return a->count == count && orr_str_equal(a->name, name) &&
           memcmp(a->ranks, ranks, count * sizeof *ranks) == 0;
}

static job_group *find_group(const grouper *g, orr_str name, const uint32_t *ranks, uint32_t count)
{
    for (size_t i = 0; i < g->count; i++) {
        if (is_same(&g->groups[i], name, ranks, count))
            return &g->groups[i];
    }
    return NULL;
}

static orr_code note_group(grouper *g, const linked_group *known, uint32_t *room)
{
    uint32_t count;
    if (!known->name.len || !find_members(g, known, room, &count) ||
        find_group(g, known->name, room, count))
        return ORR_OK;
    uint32_t *ranks = orr_arena_new(g->job->arena, count, uint32_t);
    if (!ranks || !orr_grow(&g->groups, &g->room, g->count + 1))
        return orr_no_memory(g->err);
    memcpy(ranks, room, count * sizeof *ranks);
    job_group made = {.name = known->name, .ranks = ranks, .count = count};
    for (size_t i = 0; i < g->count; i++) {
        if (orr_str_equal(g->groups[i].name, known->name))
            g->groups[i].has_twin = made.has_twin = true;
    }
    g->groups[g->count++] = made;
    return ORR_OK;
}

/* Number 0 means all ranks wherever traces are read; see find_parts. */
static bool may_have(const grouper *g, const job_group *group, uint64_t id)
{
    return id < UINT32_MAX && (id > 0 || (group->count == g->job->rank_count && !g->has_parts));
}

/* A group whose name is a number and means one thing keeps it; the others get the next free
 * numbers. */
static void number_groups(grouper *g)
{
    uint64_t next = 1, id;
    if (!g->has_parts && !g->groups[g->world].name.len)
        g->groups[g->world].name = orr_str_of("0");
    for (size_t i = 0; i < g->count; i++) {
        if (!g->groups[i].has_twin && orr_text_u64(g->groups[i].name, &id) &&
            may_have(g, &g->groups[i], id)) {
            g->groups[i].id = id;
            next = id >= next ? id + 1 : next;
        } else {
            g->groups[i].id = UINT64_MAX;
        }
    }
    for (size_t i = 0; i < g->count; i++) {
        if (g->groups[i].id == UINT64_MAX)
            g->groups[i].id = next++;
    }
}

static orr_code list_groups(grouper *g)
{
    uint32_t *room = orr_arena_new(g->job->arena, (size_t)g->job->rank_count + 1, uint32_t);
    if (!room)
        return orr_no_memory(g->err);
    for (uint32_t r = 0; r < g->job->rank_count; r++) {
        const orr_linked *d = g->job->ranks[r].link->linked;
        for (size_t i = 0; i < d->group_count; i++) {
            const orr_code code = note_group(g, &d->groups[i], room);
            if (code)
                return code;
        }
    }
    return ORR_OK;
}

/* The group of all ranks; one without a name when no rank knows of one. */
static orr_code find_world(grouper *g)
{
    const uint32_t count = g->job->rank_count;
    for (g->world = 0; g->world < g->count; g->world++) {
        if (g->groups[g->world].count == count)
            return ORR_OK;
    }
    uint32_t *ranks = orr_arena_new(g->job->arena, count, uint32_t);
    if (!ranks || !orr_grow(&g->groups, &g->room, g->count + 1))
        return orr_no_memory(g->err);
    for (uint32_t r = 0; r < count; r++)
        ranks[r] = r;
    g->groups[g->count++] = (job_group){.name = {"", 0}, .ranks = ranks, .count = count};
    return ORR_OK;
}

/* What a name means on a rank; NULL: not known. */
static const job_group *meaning(const grouper *g, uint32_t rank, orr_str name)
{
    for (size_t i = 0; i < g->count; i++) {
        const job_group *group = &g->groups[i];
        if (!orr_str_equal(group->name, name))
            continue;
        for (uint32_t k = 0; k < group->count; k++) {
            if (group->ranks[k] == rank)
                return group;
        }
    }
    return NULL;
}

/* ---- collectives without a group ---- */

typedef struct lane {
    conv_state *c;
    size_t next;          /* the next collective without a group; c->call_count: none */
    const job_group **of; /* by call: the group that was found for it */
} lane;

static void go_on(lane *l)
{
    const conv_call *calls = l->c->calls;
    for (l->next++; l->next < l->c->call_count; l->next++) {
        if (calls[l->next].type == ORR_NODE_COMM_COLL && !calls[l->next].group.len)
            return;
    }
}

static bool is_equal(const lane *a, const lane *b)
{
    if (a->next == a->c->call_count || b->next == b->c->call_count)
        return false;
    const conv_call *x = &a->c->calls[a->next], *y = &b->c->calls[b->next];
    return x->kind == y->kind && x->bytes == y->bytes;
}

static bool all_equal(const lane *lanes, const uint32_t *ranks, uint32_t count)
{
    const lane *first = &lanes[ranks ? ranks[0] : 0];
    for (uint32_t k = 1; k < count; k++) {
        if (!is_equal(first, &lanes[ranks ? ranks[k] : k]))
            return false;
    }
    return count && first->next < first->c->call_count;
}

/* One step along all ranks; false: nothing fits. */
static bool step(grouper *g, lane *lanes)
{
    const uint32_t world = g->job->rank_count;
    if (all_equal(lanes, NULL, world)) {
        for (uint32_t r = 0; r < world; r++) {
            lanes[r].of[lanes[r].next] = &g->groups[g->world];
            go_on(&lanes[r]);
        }
        return true;
    }
    for (size_t i = 0; i < g->count; i++) {
        const job_group *group = &g->groups[i];
        if (group->count < 2 || group->count == world ||
            !all_equal(lanes, group->ranks, group->count))
            continue;
        for (uint32_t k = 0; k < group->count; k++) {
            lane *l = &lanes[group->ranks[k]];
            l->of[l->next] = group;
            go_on(l);
            g->job->inferred++;
        }
        return true;
    }
    return false;
}

/* Of one rank of a job that has groups of some ranks: which collectives are theirs? */
static void count_unknown(grouper *g, lane *l)
{
    const orr_linked *d = g->job->ranks[0].link->linked;
    bool has_choice = false;
    for (size_t i = 0; i < d->group_count; i++)
        has_choice |= d->groups[i].count > 1 && (int64_t)d->groups[i].count < d->world;
    for (; has_choice && l->next < l->c->call_count; go_on(l))
        g->job->unknown++;
}

static orr_code infer(grouper *g, lane *lanes)
{
    for (uint32_t r = 0; r < g->job->rank_count; r++) {
        lane *l = &lanes[r];
        l->c = g->job->ranks[r].conversion;
        l->of = orr_arena_new(g->job->arena, l->c->call_count + 1, const job_group *);
        if (!l->of)
            return orr_no_memory(g->err);
        l->next = SIZE_MAX; /* so that the first step is to 0 */
        go_on(l);
    }
    if (g->job->rank_count == 1)
        count_unknown(g, lanes);
    while (g->job->rank_count > 1 && step(g, lanes))
        ;
    return ORR_OK;
}

/* ---- groups with a name of their own on each rank ---- */

/* A name that only one rank knows. */
typedef struct alias {
    orr_str name;
    uint32_t rank;
    uint32_t turn;   /* which of those of its rank that did the same, by first use */
    uint64_t doings; /* kinds and sizes of its collectives, in order */
    int64_t own;     /* the number of the rank in it; -1: not said */
    uint32_t group;  /* which of the groups; UINT32_MAX: not found */
} alias;

typedef struct aliases {
    alias *list;
    size_t count, room;
    orr_map **by_name; /* of each rank: hash of a name -> alias */
} aliases;

/* Sizes that are the same on all ranks of a group. */
static bool has_common_size(orr_collective kind)
{
    return kind == ORR_COLL_ALL_REDUCE || kind == ORR_COLL_REDUCE || kind == ORR_COLL_BROADCAST ||
           kind == ORR_COLL_REDUCE_SCATTER || kind == ORR_COLL_ALL_GATHER;
}

static uint64_t name_key(orr_str name)
{
    return orr_hash_bytes(name.ptr, name.len, 0);
}

static orr_code note_alias(const grouper *g, aliases *a, uint32_t rank, const conv_call *call)
{
    const uint64_t key = name_key(call->group);
    uint32_t at = orr_map_find(a->by_name[rank], key, UINT32_MAX);
    if (at == UINT32_MAX) {
        if (meaning(g, rank, call->group))
            return ORR_OK;
        at = (uint32_t)a->count;
        if (!orr_grow(&a->list, &a->room, a->count + 1) ||
            !orr_map_put(a->by_name[rank], key, at, NULL))
            return orr_no_memory(g->err);
        a->list[a->count++] =
            (alias){.name = call->group, .rank = rank, .own = -1, .group = UINT32_MAX};
    }
    alias *x = &a->list[at];
    const uint64_t size = has_common_size(call->kind) ? (uint64_t)call->bytes : 0;
    x->doings = orr_hash_mix(x->doings ^ ((uint64_t)call->kind + 1), size ^ 0x9E3779B97F4A7C15u);
    x->own = x->own < 0 ? call->own : x->own;
    return ORR_OK;
}

/* Those of one rank, from `first` on. */
static bool number_turns(aliases *a, size_t first)
{
    orr_map *seen = orr_map_create(8);
    bool has_room = seen;
    for (size_t i = first; has_room && i < a->count; i++) {
        a->list[i].turn = orr_map_find(seen, a->list[i].doings, 0);
        has_room = orr_map_put(seen, a->list[i].doings, a->list[i].turn + 1, NULL);
    }
    orr_map_destroy(seen);
    return has_room;
}

static orr_code list_aliases(const grouper *g, aliases *a)
{
    orr_code code = ORR_OK;
    for (uint32_t r = 0; r < g->job->rank_count && !code; r++) {
        const conv_state *c = g->job->ranks[r].conversion;
        a->by_name[r] = orr_map_create(8);
        if (!a->by_name[r])
            return orr_no_memory(g->err);
        const size_t first = a->count;
        for (size_t i = 0; i < c->call_count && !code; i++) {
            if (c->calls[i].type == ORR_NODE_COMM_COLL && c->calls[i].group.len)
                code = note_alias(g, a, r, &c->calls[i]);
        }
        if (!code && !number_turns(a, first))
            return orr_no_memory(g->err);
    }
    return code;
}

static int by_doings(const void *a, const void *b)
{
    const alias *x = *(alias *const *)a, *y = *(alias *const *)b;
    if (x->doings != y->doings)
        return x->doings < y->doings ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    if (x->own != y->own)
        return x->own < y->own ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* How many groups these are, by the numbers of the ranks in them: each number as often as there are
 * groups.  0: they do not fit together. */
static size_t count_parts(alias *const *same, size_t count)
{
    size_t parts = 0, from = 0;
    int64_t next = 0;
    if (same[0]->own < 0)
        return 1;
    while (from < count) {
        size_t to = from;
        while (to < count && same[to]->own == same[from]->own)
            to++;
        if (same[from]->own != next++ || (parts && to - from != parts))
            return 0;
        parts = to - from;
        from = to;
    }
    return parts;
}

/* The first group of all ranks is that of the job. */
static orr_code add_alias_group(grouper *g, alias *const *same, size_t size, size_t step)
{
    uint32_t at = (uint32_t)g->count;
    uint32_t *ranks = orr_arena_new(g->job->arena, size, uint32_t);
    if (!ranks || !orr_grow(&g->groups, &g->room, g->count + 1))
        return orr_no_memory(g->err);
    for (size_t i = 0; i < size; i++)
        ranks[i] = same[i * step]->rank;
    qsort(ranks, size, sizeof *ranks, by_number);
    if (size == g->job->rank_count && !g->world_is_taken) {
        g->world_is_taken = true;
        at = (uint32_t)g->world;
    } else {
        g->groups[g->count++] =
            (job_group){.name = {"", 0}, .ranks = ranks, .count = (uint32_t)size};
    }
    for (size_t i = 0; i < size; i++)
        same[i * step]->group = at;
    return ORR_OK;
}

static orr_code add_alias_groups(grouper *g, alias *const *same, size_t count)
{
    const size_t parts = count_parts(same, count);
    orr_code code = ORR_OK;
    for (size_t i = 0; i < parts && count / parts > 1 && !code; i++)
        code = add_alias_group(g, same + i, count / parts, parts);
    return code;
}

static orr_code unite_aliases(grouper *g, aliases *a)
{
    alias **order = orr_alloc(a->count + 1, sizeof *order);
    orr_code code = order ? ORR_OK : orr_no_memory(g->err);
    for (size_t i = 0; i < a->count && !code; i++)
        order[i] = &a->list[i];
    if (!code && a->count)
        qsort(order, a->count, sizeof *order, by_doings);
    for (size_t from = 0, to; from < a->count && !code; from = to) {
        for (to = from + 1; to < a->count && order[to]->doings == order[from]->doings &&
                            order[to]->turn == order[from]->turn;)
            to++;
        code = add_alias_groups(g, order + from, to - from);
    }
    orr_free(order);
    return code;
}

static void give_aliases(grouper *g, const aliases *a, lane *lanes)
{
    for (uint32_t r = 0; r < g->job->rank_count; r++) {
        const conv_state *c = lanes[r].c;
        for (size_t i = 0; i < c->call_count; i++) {
            const uint32_t at =
                c->calls[i].group.len
                    ? orr_map_find(a->by_name[r], name_key(c->calls[i].group), UINT32_MAX)
                    : UINT32_MAX;
            if (at == UINT32_MAX || a->list[at].group == UINT32_MAX)
                continue;
            lanes[r].of[i] = &g->groups[a->list[at].group];
            g->job->inferred += c->calls[i].type == ORR_NODE_COMM_COLL;
        }
    }
}

/* Simulators number what a rank runs with all others in one row with what it runs in groups without
 * a file entry, and ranks that are in other groups then count differently.  So as soon as there are
 * collectives of parts, those of all ranks are of a numbered group too; without any, all is left as
 * it is. */
static void find_parts(grouper *g, const lane *lanes)
{
    for (uint32_t r = 0; r < g->job->rank_count && !g->has_parts; r++) {
        const conv_state *c = lanes[r].c;
        for (size_t i = 0; i < c->call_count && !g->has_parts; i++) {
            const job_group *group = lanes[r].of[i];
            if (!group && c->calls[i].group.len)
                group = meaning(g, r, c->calls[i].group);
            g->has_parts = group && group->count < g->job->rank_count;
        }
    }
}

/* The number of call i's group for the whole job; false: its name stays as it is. */
static bool new_number(const grouper *g, uint32_t rank, const lane *l, size_t i, uint64_t *id)
{
    const orr_str name = l->c->calls[i].group;
    const job_group *group = l->of[i];
    uint64_t now;
    if (group && group->id == 0 && !name.len)
        return false;
    if (!group && name.len) {
        group = meaning(g, rank, name);
        if (group && orr_text_u64(name, &now) && now == group->id)
            return false;
    }
    *id = group ? group->id : 0;
    return group;
}

static orr_code renumber_calls(const grouper *g, uint32_t rank, const lane *l)
{
    uint64_t id;
    for (size_t i = 0; i < l->c->call_count; i++) {
        if (!new_number(g, rank, l, i, &id))
            continue;
        const char *text = orr_arena_print(l->c->arena, "%" PRIu64, id);
        if (!text)
            return orr_no_memory(g->err);
        l->c->calls[i].group = orr_str_of(text);
        l->c->calls[i].is_renumbered = true;
    }
    return ORR_OK;
}

/* ---- the set ---- */

static int by_id(const void *a, const void *b)
{
    const job_group *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static orr_code add_groups(const grouper *g)
{
    orr_code code = ORR_OK;
    qsort(g->groups, g->count, sizeof *g->groups, by_id);
    for (size_t i = 0; i < g->count && !code; i++) {
        const job_group *group = &g->groups[i];
        if (group->id)
            code = orr_set_add_group(g->job->set, group->id, group->ranks, group->count, g->err);
    }
    return code;
}

static orr_code write_trace(void *context, size_t i, orr_error *err)
{
    link_job_rank *r = &((orr_link_job *)context)->ranks[i];
    const orr_code code = conv_write(r->conversion, &r->trace, err);
    conv_close(r->conversion);
    r->conversion = NULL;
    return code ? orr_because(err, code, "rank %" PRIu32, r->about.rank) : ORR_OK;
}

static orr_code fill_set(const grouper *g)
{
    orr_link_job *job = g->job;
    orr_code code = orr_pool_for(job->opt.threads, job->rank_count, write_trace, job, g->err);
    if (!code)
        code = orr_set_create(&job->set, g->err);
    for (uint32_t r = 0; r < job->rank_count && !code; r++) {
        orr_trace *t = job->ranks[r].trace;
        job->ranks[r].trace = NULL;
        code = orr_set_add(job->set, t, g->err);
    }
    return code ? code : add_groups(g);
}

static orr_code make_set(grouper *g, lane *lanes)
{
    aliases a = {.by_name = orr_arena_new(g->job->arena, g->job->rank_count, orr_map *)};
    orr_code code = a.by_name ? ORR_OK : orr_no_memory(g->err);
    if (!code && !(code = list_groups(g)) && !(code = find_world(g)) && g->job->rank_count > 1 &&
        !(code = list_aliases(g, &a)))
        code = unite_aliases(g, &a);
    if (!code && !(code = infer(g, lanes)) && g->job->rank_count > 1)
        give_aliases(g, &a, lanes);
    for (uint32_t r = 0; a.by_name && r < g->job->rank_count; r++)
        orr_map_destroy(a.by_name[r]);
    orr_free(a.list);
    if (code)
        return code;
    find_parts(g, lanes);
    number_groups(g);
    for (uint32_t r = 0; r < g->job->rank_count && !code; r++)
        code = renumber_calls(g, r, &lanes[r]);
    return code ? code : fill_set(g);
}

orr_code link_job_make_set(orr_link_job *job, orr_error *err)
{
    grouper g = {.job = job, .err = err};
    lane *lanes = orr_arena_new(job->arena, (size_t)job->rank_count + 1, lane);
    const orr_code code = lanes ? make_set(&g, lanes) : orr_no_memory(err);
    orr_free(g.groups);
    return code;
}
