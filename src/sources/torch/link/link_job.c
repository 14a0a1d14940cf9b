/* SPDX-License-Identifier: Apache-2.0 */
/* link_job.c - all ranks of a job: files are found and paired by content, ranks linked in parallel,
 * clocks aligned, traces made, groups numbered consistently.
 *
 *     files -> pairs -> links -> clocks -> traces -> groups -> set
 *               (by pid)  (threads)        (threads)
 *
 * A device trace records its rank; otherwise the order of names decides. */
#include "link_impl.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "base/threads/pool.h"
#include "trace/formats/chrome_event.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ==== process groups of a whole job, and the set that carries them.
 *
 * Every rank knows its own groups, by local names: mostly the same number on all ranks, but
 * possibly a hash, or a number that means other ranks elsewhere.  In a set a group has one number.
 *
 * Some back ends do not record the group of a collective.  It is inferred by comparing ranks:
 * proceeding along all of them, a next collective that is equal on every rank is of all; otherwise
 * a group is searched whose ranks all have the same next one:
 *
 *     rank 0   all_reduce   broadcast   all_reduce   barrier
 *     rank 1   all_reduce   broadcast   all_reduce   barrier        the third is of a group {0, 1}
 *     rank 2   all_reduce   broadcast                barrier
 *
 * Older traces name a group by its address, which differs per process, and record nothing else
 * about it.  There names are matched by their collectives: the same kinds and sizes in the same
 * order.  The rank's index within its group separates groups with equal histories:
 *
 *     rank      0   1   2   3
 *     number    0   1   0   1      so there are two, {0, 1} and {2, 3}
 *
 * What cannot be matched is left unchanged, for orrery check to report. Everything works on the
 * calls of prepared conversions, so that traces are written once, with the numbers.
 * Cost: linear in the collectives times groups that are tried. */

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

/* The ranks of a group of which only the size is known.  If exactly that many ranks know the name,
 * these are the members; otherwise nothing is assumed.  A group without a size, or with as many
 * ranks as the job, is that of all ranks, whoever knows its name. */
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
    orr_sort(out, *count, sizeof *out, orr_by_u32);
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
    /* Every rank describes its groups: one that is known is not listed again. */
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

/* Number 0 means all ranks wherever traces are read; see find_parts. A number that is kept must fit
 * the 32 bits that simulators have for it. */
static bool may_have(const grouper *g, const job_group *group, uint64_t id)
{
    return id < UINT32_MAX && (id > 0 || (group->count == g->job->rank_count && !g->has_parts));
}

/* A group whose name is a number with one meaning keeps it; the others get the next free numbers.
 * Numbers that mean the same on all ranks are kept, so that profiler and trace show the same
 * number. */
static void number_groups(grouper *g)
{
    /* Two passes: new numbers are above every kept number, so that an early group cannot take one
     * that a later group has by name. */
    uint64_t next = 1, id;
    /* Then it keeps number 0, which every reader takes for all ranks (may_have). */
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

/* The group of all ranks; without a name if no rank knows of one. */
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

/* A rank without further collectives equals none: it takes part in nothing more, and a group with
 * it must not be matched. */
static bool is_equal(const lane *a, const lane *b)
{
    if (a->next == a->c->call_count || b->next == b->c->call_count)
        return false;
    const conv_call *x = &a->c->calls[a->next], *y = &b->c->calls[b->next];
    return x->kind == y->kind && x->bytes == y->bytes;
}

/* Kind and size only: names of operators differ between back ends, times between ranks. */
static bool all_equal(const lane *lanes, const uint32_t *ranks, uint32_t count)
{
    const lane *first = &lanes[ranks ? ranks[0] : 0];
    for (uint32_t k = 1; k < count; k++) {
        if (!is_equal(first, &lanes[ranks ? ranks[k] : k]))
            return false;
    }
    return count && first->next < first->c->call_count;
}

/* One step along all ranks; false: nothing matches. All ranks first: a collective that is equal
 * everywhere could also be several of parts, but that is the rarer program. */
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

/* With one rank of a job that has groups of some ranks: count the collectives of unknown group. */
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
    /* Ends at the first step that matches nowhere.  Continuing would require one rank to skip a
     * call, and from then on every match would be a guess. */
    while (g->job->rank_count > 1 && step(g, lanes))
        ;
    return ORR_OK;
}

/* ---- groups with a different name on each rank ---- */

/* A name that only one rank knows. */
typedef struct alias {
    orr_str name;
    uint32_t rank;
    uint32_t turn;   /* its index among those of its rank with an equal history, by first use */
    uint64_t doings; /* hash of kinds and sizes of its collectives, in order */
    int64_t own;     /* index of the rank in it; -1: not known */
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

/* The history of a group is hashed incrementally: comparing two groups is then comparing two
 * numbers, for any number of calls. */
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
    /* Order counts: the mix of (a, b) is not that of (b, a).  An all-to-all's sizes differ per
     * rank, so only kinds with a common size include theirs. */
    x->doings = orr_hash_mix(x->doings ^ ((uint64_t)call->kind + 1), size ^ 0x9E3779B97F4A7C15u);
    x->own = x->own < 0 ? call->own : x->own;
    return ORR_OK;
}

/* Those of one rank, from `first` on. By first use, which is the same order on all members: they
 * create and use their groups by the same program. */
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

/* The number of groups among these, by the ranks' indices: each index must occur once per group. 0:
 * inconsistent. Pipelines and data-parallel groups have equal histories under every name, so
 * histories alone would merge all of them. */
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
    orr_sort(ranks, size, sizeof *ranks, orr_by_u32);
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
    /* Groups of one rank stay as they are. */
    for (size_t i = 0; i < parts && count / parts > 1 && !code; i++)
        code = add_alias_group(g, same + i, count / parts, parts);
    return code;
}

/* Turns separate two groups of the same ranks: the second one used on a rank is the second on the
 * others too. */
static orr_code unite_aliases(grouper *g, aliases *a)
{
    alias **order = orr_alloc(a->count + 1, sizeof *order);
    orr_code code = order ? ORR_OK : orr_no_memory(g->err);
    for (size_t i = 0; i < a->count && !code; i++)
        order[i] = &a->list[i];
    if (!code && a->count)
        orr_sort(order, a->count, sizeof *order, by_doings);
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

/* Simulators number a rank's collectives of all ranks together with those of groups without a file
 * entry, and ranks in different groups would then count differently.  So as soon as there are
 * collectives of parts, those of all ranks get a numbered group too; without any, nothing
 * changes. */
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
    /* Of all ranks, which a call without a name is anyway. */
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
    orr_sort(g->groups, g->count, sizeof *g->groups, by_id);
    for (size_t i = 0; i < g->count && !code; i++) {
        const job_group *group = &g->groups[i];
        /* Number 0 is that of all ranks, which every reader knows without a list. */
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

/* In rank order although threads finish in any order: the set must not depend on the number of
 * threads. */
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

/* Names first, then collectives without one: those of a group found by name are removed from the
 * comparison. */
static orr_code make_set(grouper *g, lane *lanes)
{
    aliases a = {.by_name = orr_arena_new(g->job->arena, g->job->rank_count, orr_map *)};
    orr_code code = a.by_name ? ORR_OK : orr_no_memory(g->err);
    if (!code && !(code = list_groups(g)) && !(code = find_world(g)) && g->job->rank_count > 1 &&
        !(code = list_aliases(g, &a)))
        code = unite_aliases(g, &a);
    /* No group is added from here on: lanes keep pointers to them. */
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

/* Groups with one number for the whole job; the set. */
static orr_code job_make_set(orr_link_job *job, orr_error *err)
{
    grouper g = {.job = job, .err = err};
    lane *lanes = orr_arena_new(job->arena, (size_t)job->rank_count + 1, lane);
    const orr_code code = lanes ? make_set(&g, lanes) : orr_no_memory(err);
    orr_free(g.groups);
    return code;
}

/* ==== the kind of a file, by content: a host trace, a device trace, or neither.
 *
 * File names are unreliable: every script has its own.  Both kinds are recognisable by their first
 * members, and both record their process, which pairs them. Cost: a few thousand bytes of each file
 * (all of it when it is compressed). */

enum { EVENTS_MAX = 4096 }; /* to look through for one that names its process */

typedef struct prober {
    orr_json *j;
    link_file *f;
    int seen; /* events */
    bool has_events;
    orr_error *err;
} prober;

static orr_code begin_events(void *context, const orr_json_item *list)
{
    prober *p = context;
    if (list->key.len) /* a bare list is one when an event is in it */
        p->f->kind = LINK_FILE_DEVICE;
    p->has_events = true;
    return ORR_OK;
}

/* Until the first event of the host side, which belongs to the process itself. */
static orr_code look_at_event(void *context, orr_json_value event)
{
    prober *p = context;
    chrome_event e;
    const bool is_event = chrome_event_read(event, &e);
    const bool is_host =
        is_event && (orr_str_is(e.cat, "cpu_op") || orr_str_is(e.cat, "user_annotation"));
    if (is_event && chrome_has(&e, CHROME_PH))
        p->f->kind = LINK_FILE_DEVICE;
    if (is_host && chrome_has(&e, CHROME_PID) &&
        !orr_json_get_i64(e.of[CHROME_PID], &p->f->pid, NULL))
        return ORR_END;
    return ++p->seen < EVENTS_MAX ? ORR_OK : ORR_END;
}

static orr_code look_at_member(void *context, const orr_json_item *item)
{
    prober *p = context;
    orr_json_value v;
    int64_t pid;
    if (p->has_events)
        return ORR_END;
    if (orr_str_is(item->key, "pid") && item->type == ORR_JSON_INT) {
        const orr_code code = orr_json_load(p->j, &v, p->err);
        if (!code && !orr_json_get_i64(v, &pid, NULL))
            p->f->pid = pid;
        return code;
    }
    if (orr_str_is(item->key, "schemaVersion") || orr_str_is(item->key, "deviceProperties"))
        p->f->kind = LINK_FILE_DEVICE;
    if (!orr_str_is(item->key, "nodes") || item->type != ORR_JSON_ARRAY)
        return ORR_OK;
    p->f->kind = LINK_FILE_HOST;
    return ORR_END;
}

static orr_code look(prober *p)
{
    static const orr_json_list how = {.key = "traceEvents",
                                      .what = "a trace",
                                      .takes_bare = true,
                                      .takes_more = true,
                                      .begin = begin_events,
                                      .item = look_at_event,
                                      .member = look_at_member};
    return orr_json_walk_list(p->j, &how, p, p->err);
}

static bool looks_like_json(orr_span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        const uint8_t c = bytes.ptr[i];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
            /* 0xEF begins a byte order mark. */
            return c == '{' || c == '[' || c == 0xEF;
    }
    return false;
}

/* A damaged file of a known kind is left to its reader, which has better messages. Probing stops as
 * soon as kind and process are known, so a folder of large traces takes milliseconds. */
static orr_code probe_file(link_file *f, orr_error *err)
{
    orr_input *in;
    prober p = {.f = f, .err = err};
    orr_code code = orr_input_open(f->path, &in, err);
    if (code)
        return code;
    if (looks_like_json(orr_input_bytes(in))) {
        code = orr_json_open(orr_input_bytes(in), f->path, &p.j, err);
        if (!code && (code = look(&p)) == ORR_EINPUT && f->kind != LINK_FILE_OTHER)
            code = ORR_OK;
    }
    orr_json_close(p.j);
    orr_input_close(in);
    return code;
}

static orr_code keep_file(orr_link_job *job, const link_file *f, orr_error *err)
{
    return orr_push(job->files, job->file_count, job->file_room, *f) ? ORR_OK : orr_no_memory(err);
}

static bool is_pipe(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* A file that the user named must be one of the two kinds. */
static orr_code probe_named(orr_link_job *job, const char *path, orr_error *err)
{
    link_file f = {.path = orr_arena_text(job->arena, orr_str_of(path)), .pid = KIN_NO_NUMBER};
    if (!f.path)
        return orr_no_memory(err);
    if (strcmp(path, "-") == 0)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "standard input can be read only once: traces must be files");
    if (is_pipe(path))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "%s: a pipe can be read only once: traces must be files", path);
    const orr_code code = probe_file(&f, err);
    if (code)
        return code;
    if (f.kind == LINK_FILE_OTHER)
        return orr_fail(
            err, ORR_EINPUT, ORR_AT(orr_where_line(path, 1, 1)),
            "neither a host trace (an object with nodes) nor a device trace (one with traceEvents)");
    return keep_file(job, &f, err);
}

/* ---- folders ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const link_file *)a)->path, ((const link_file *)b)->path);
}

static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A folder may contain anything; other files are skipped.  An unreadable one may be a trace: a rank
 * without its file, or with one of its two, would give a wrong job. */
static orr_code probe_entry(orr_link_job *job, const char *folder, const char *name, orr_error *err)
{
    link_file f = {.path = orr_arena_print(job->arena, "%s/%s", folder, name),
                   .pid = KIN_NO_NUMBER};
    if (!f.path)
        return orr_no_memory(err);
    if (name[0] == '.' || !is_regular(f.path))
        return ORR_OK;
    const orr_code code = probe_file(&f, err);
    if (code)
        return code;
    return f.kind == LINK_FILE_OTHER ? ORR_OK : keep_file(job, &f, err);
}

/* Sorted, because the order of a folder depends on the file system: ranks without a recorded number
 * would be numbered differently on another machine. */
static orr_code probe_folder(orr_link_job *job, const char *path, orr_error *err)
{
    const orr_where at = orr_where_byte(path, ORR_NO_BYTE);
    const size_t before = job->file_count;
    DIR *dir = opendir(path);
    orr_code code = ORR_OK;
    struct dirent *e;
    if (!dir)
        return orr_fail(err, ORR_EIO, &at, "cannot open: %s", strerror(errno));
    while (!code && (e = readdir(dir)))
        code = probe_entry(job, path, e->d_name, err);
    closedir(dir);
    if (code)
        return code;
    if (job->file_count == before)
        return orr_fail(err, ORR_EINPUT, &at, "no host trace and no device trace in this folder");
    orr_sort(job->files + before, job->file_count - before, sizeof *job->files, by_path);
    return ORR_OK;
}

static orr_code probe_path(orr_link_job *job, const char *path, orr_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return probe_folder(job, path, err);
    return probe_named(job, path, err);
}

/* ==== one clock for all ranks, from common collectives.
 *
 * A collective ends on all its ranks at nearly the same time: when the last piece of data has
 * arrived.  So the difference of two ranks' clocks is that of the ends of a collective of both; the
 * median over all they share, since a single one may end late on a busy host.  The k-th operation
 * of a name in a group is the same on all ranks that have equally many of them.
 *
 *     rank 0   |--all-reduce--|        |-all-gather-|
 *     rank 1      |--all-reduce--|        |-all-gather-|       3 units late, both times
 *
 * Each rank is compared with the first already aligned rank that shares collectives with it; ranks
 * without one keep their clock.
 * Cost: linear in the events, plus a search among earlier ranks per rank. */

/* An operation of one rank that others take part in. */
typedef struct shared_end {
    uint64_t key; /* of name, group and count */
    int64_t ns;
} shared_end;

typedef struct ends {
    shared_end *list;
    size_t count, room;
} ends;

/* A kernel of NCCL or RCCL, or the host work of a back end. Messages are excluded: a send ends when
 * the receiver's buffer takes it, which says nothing about the other clock. */
static bool is_collective(const orr_link *l, const kin_event *e)
{
    const orr_str name = link_name(l, e);
    if (orr_str_has(name, "Send") || orr_str_has(name, "send") || orr_str_has(name, "recv"))
        return false;
    if (e->kind == KIN_KERNEL)
        return link_is_nccl(name);
    return e->kind == KIN_OPERATOR && link_is_backend(name);
}

/* The group is included, since the same all-reduce runs in several groups concurrently; its name is
 * local to the rank, but ranks that share a group nearly always agree on it, and those that do not
 * have fewer common ends, not wrong ones. */
static uint64_t key_of(const orr_link *l, const kin_event *e)
{
    const orr_str name = link_name(l, e);
    const uint32_t group = e->extra == KIN_NO_TEXT ? KIN_NO_TEXT : l->device.extras[e->extra].group;
    uint64_t h = orr_hash_bytes(name.ptr, name.len, 0);
    if (group != KIN_NO_TEXT) {
        const orr_str g = orr_intern_get(l->device.texts, group);
        h = orr_hash_bytes(g.ptr, g.len, h);
    }
    return h;
}

static int by_key(const void *a, const void *b)
{
    const shared_end *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Sorted by key, and those of one key by time. */
static bool list_ends(const orr_link *l, ends *out)
{
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        if (!is_collective(l, e))
            continue;
        /* In absolute time: each rank counts from its own first event. */
        if (!orr_push(out->list, out->count, out->room,
                      (shared_end){key_of(l, e), l->device.base_ns + (int64_t)kin_end(e)}))
            return false;
    }
    if (out->count)
        orr_sort(out->list, out->count, sizeof *out->list, by_key);
    return true;
}

static size_t run_length(const ends *e, size_t from)
{
    size_t to = from;
    while (to < e->count && e->list[to].key == e->list[from].key)
        to++;
    return to - from;
}

/* Differences of the common ends of a and b; returns their number. If counts differ one of the
 * ranks lost some (a profiler that started late), and then the k-th of one is not the k-th of the
 * other: such names are left out. */
static size_t compare(const ends *a, const ends *b, int64_t *out)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a->count && k < b->count) {
        const size_t in_a = run_length(a, i), in_b = run_length(b, k);
        if (a->list[i].key < b->list[k].key) {
            i += in_a;
        } else if (a->list[i].key > b->list[k].key) {
            k += in_b;
        } else {
            for (size_t s = 0; in_a == in_b && s < in_a; s++)
                out[n++] = b->list[k + s].ns - a->list[i + s].ns;
            i += in_a;
            k += in_b;
        }
    }
    return n;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Aligns rank r with an earlier one. Only with the first aligned one: errors of a chain add up, but
 * most jobs have groups of all ranks, so chains have one link. */
static void align(orr_link_job *job, const ends *all, uint32_t r, int64_t *room)
{
    for (uint32_t other = 0; other < r; other++) {
        const size_t n = compare(&all[other], &all[r], room);
        /* Rank 0 is the reference, and so is never marked as aligned itself. */
        if (!n || (other && !job->ranks[other].about.is_aligned))
            continue;
        orr_sort(room, n, sizeof *room, by_value);
        /* What is added to the times of a rank: the less, the later its clock. */
        job->ranks[r].about.clock_ns = job->ranks[other].about.clock_ns - room[n / 2];
        job->ranks[r].about.is_aligned = true;
        job->ranks[r].about.shared = n;
        return;
    }
}

static orr_code align_clocks(orr_link_job *job, orr_error *err)
{
    ends *all = orr_alloc((size_t)job->rank_count + 1, sizeof *all);
    bool has_room = all;
    size_t most = 0;
    for (uint32_t r = 0; has_room && r < job->rank_count; r++) {
        has_room = list_ends(job->ranks[r].link, &all[r]);
        most = all[r].count > most ? all[r].count : most;
    }
    /* Two ranks share at most as many ends as one of them has. */
    int64_t *room = orr_alloc(most + 1, sizeof *room);
    has_room = has_room && room;
    for (uint32_t r = 1; has_room && r < job->rank_count; r++)
        align(job, all, r, room);
    for (uint32_t r = 0; all && r < job->rank_count; r++)
        orr_free(all[r].list);
    orr_free(all);
    orr_free(room);
    return has_room ? ORR_OK : orr_no_memory(err);
}

/* ==== all of it ==== */

/* ---- pairs ---- */

static size_t common_start(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* Processes on different machines can have the same number: then the more similar file name
 * decides. With one file of each kind there is no choice, and the user knows better than process
 * numbers. */
static link_file *find_host(orr_link_job *job, const link_file *device, bool is_only_pair)
{
    link_file *best = NULL;
    for (size_t i = 0; i < job->file_count; i++) {
        link_file *f = &job->files[i];
        const bool is_known = f->pid != KIN_NO_NUMBER && device->pid != KIN_NO_NUMBER;
        if (f->kind != LINK_FILE_HOST || f->is_taken ||
            (is_known && f->pid != device->pid && !is_only_pair))
            continue;
        if (!best || common_start(f->path, device->path) > common_start(best->path, device->path))
            best = f;
    }
    return best;
}

static size_t count_kind(const orr_link_job *job, link_file_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < job->file_count; i++)
        n += job->files[i].kind == kind;
    return n;
}

static void add_pair(orr_link_job *job, link_file *host, link_file *device)
{
    orr_link_rank *about = &job->ranks[job->rank_count++].about;
    about->host = host ? host->path : NULL;
    about->device = device ? device->path : NULL;
    if (host)
        host->is_taken = true;
    if (device)
        device->is_taken = true;
}

static orr_code pair_files(orr_link_job *job, orr_error *err)
{
    const size_t hosts = count_kind(job, LINK_FILE_HOST);
    const size_t devices = count_kind(job, LINK_FILE_DEVICE);
    job->ranks = orr_arena_new(job->arena, job->file_count + 1, link_job_rank);
    if (!job->ranks)
        return orr_no_memory(err);
    for (size_t i = 0; i < job->file_count; i++) {
        link_file *f = &job->files[i];
        if (f->kind == LINK_FILE_DEVICE)
            add_pair(job, find_host(job, f, hosts == 1 && devices == 1), f);
    }
    for (size_t i = 0; i < job->file_count; i++) {
        link_file *f = &job->files[i];
        /* Device traces choose first; an unpaired host trace is a rank by itself. */
        if (f->kind == LINK_FILE_HOST && !f->is_taken)
            add_pair(job, f, NULL);
    }
    return ORR_OK;
}

/* ---- side by side ---- */

static orr_code one(void *context, size_t i, orr_error *err)
{
    orr_link_job *job = context;
    link_job_rank *r = &job->ranks[i];
    const orr_code code = orr_link_open(r->about.host, r->about.device, &job->opt, &r->link, err);
    if (!code)
        r->about.counts = *orr_link_counts_of(r->link);
    return code;
}

int64_t link_job_first(const orr_link_job *job)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const orr_link *l = job->ranks[i].link;
        if (l->device.count && l->device.base_ns + job->ranks[i].about.clock_ns < first)
            first = l->device.base_ns + job->ranks[i].about.clock_ns;
    }
    return first;
}

typedef struct preparation {
    orr_link_job *job;
    int64_t first; /* in the clock of all */
} preparation;

static orr_code prepare_one(void *context, size_t i, orr_error *err)
{
    const preparation *c = context;
    link_job_rank *r = &c->job->ranks[i];
    const orr_pytorch_options opt = {.has_rank = true,
                                     .rank = r->about.rank,
                                     .has_origin = c->first != INT64_MAX && r->link->device.count,
                                     /* In the rank's own clock. */
                                     .origin_ns = c->first - r->about.clock_ns,
                                     .host_scale = c->job->opt.host_scale};
    const orr_code code =
        conv_prepare(r->link->linked, &opt, &r->about.report, &r->conversion, err);
    return code ? orr_because(err, code, "rank %" PRIu32, r->about.rank) : ORR_OK;
}

/* ---- which rank is which ---- */

static int by_rank(const void *a, const void *b)
{
    const link_job_rank *x = a, *y = b;
    return x->about.rank < y->about.rank ? -1 : x->about.rank > y->about.rank;
}

static const char *path_of(const orr_link_rank *r)
{
    return r->device ? r->device : r->host;
}

/* Simulators number ranks from 0 without gaps; a single rank may have any number, for
 * inspection. */
static orr_code check_ranks(const orr_link_job *job, orr_error *err)
{
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const orr_link_rank *r = &job->ranks[i].about;
        if (i && r->rank == job->ranks[i - 1].about.rank)
            return orr_fail(err, ORR_EINPUT, NULL, "%s and %s are both of rank %" PRIu32,
                            path_of(&job->ranks[i - 1].about), path_of(r), r->rank);
        if (r->rank != i && job->rank_count > 1)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "rank %" PRIu32 " has no traces, but rank %" PRIu32
                            " has (%s): a set has all ranks from 0 on",
                            i, r->rank, path_of(r));
    }
    return ORR_OK;
}

/* A part of a job cannot be simulated: it would wait for the missing ranks. */
static orr_code check_world(const orr_link_job *job, orr_error *err)
{
    /* -1 where it is not recorded: then nothing is missing. */
    const int64_t world = job->ranks[0].link->linked->world;
    if (job->rank_count == 1 || world <= (int64_t)job->rank_count)
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "the traces of %" PRIu32 " ranks, of a job of %" PRId64
                    ": those of rank %" PRIu32 " and later are missing",
                    job->rank_count, world, job->rank_count);
}

static bool says_rank(const link_job_rank *r)
{
    return r->link->linked->rank >= 0 && r->link->linked->rank < UINT32_MAX;
}

/* Ranks without a recorded number get the remaining ones, in the order of names. */
static orr_code number_ranks(orr_link_job *job, orr_error *err)
{
    uint32_t next = 0;
    bool *is_taken = orr_arena_new(job->arena, (size_t)job->rank_count + 1, bool);
    if (!is_taken)
        return orr_no_memory(err);
    for (uint32_t i = 0; i < job->rank_count; i++) {
        link_job_rank *r = &job->ranks[i];
        r->about.is_guessed = !says_rank(r);
        if (r->about.is_guessed)
            continue;
        r->about.rank = (uint32_t)r->link->linked->rank;
        if (r->about.rank < job->rank_count)
            is_taken[r->about.rank] = true;
    }
    for (uint32_t i = 0; i < job->rank_count; i++) {
        if (!job->ranks[i].about.is_guessed)
            continue;
        /* Terminates: taken numbers and ranks to be numbered are together no more than the
         * ranks. */
        while (is_taken[next])
            next++;
        job->ranks[i].about.rank = next++;
    }
    return ORR_OK;
}

/* A rank with one trace where others have two has most likely lost a file. */
static orr_code check_halves(const orr_link_job *job, orr_error *err)
{
    const orr_link_rank *first = &job->ranks[0].about;
    for (uint32_t i = 1; i < job->rank_count && job->opt.is_strict; i++) {
        const orr_link_rank *r = &job->ranks[i].about;
        if (!r->host != !first->host || !r->device != !first->device)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "rank %" PRIu32 " and rank %" PRIu32
                            " do not have the same kinds of traces (with --strict an error)",
                            first->rank, r->rank);
    }
    return ORR_OK;
}

static orr_code find_ranks(orr_link_job *job, orr_error *err)
{
    orr_code code = number_ranks(job, err);
    if (code)
        return code;
    orr_sort(job->ranks, job->rank_count, sizeof *job->ranks, by_rank);
    if ((code = check_ranks(job, err)) || (code = check_world(job, err)))
        return code;
    return check_halves(job, err);
}

/* ---- everything ---- */

static orr_code make_job(
    orr_link_job *job, const char *const *paths, size_t count, unsigned threads, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < count && !code; i++)
        code = probe_path(job, paths[i], err);
    if (code || (code = pair_files(job, err)) ||
        (code = orr_pool_for(threads, job->rank_count, one, job, err)) ||
        (code = find_ranks(job, err)))
        return code;
    return align_clocks(job, err);
}

orr_code orr_link_job_set(orr_link_job *job, const orr_set **out, orr_error *err)
{
    preparation c = {.job = job, .first = link_job_first(job)};
    orr_code code = ORR_OK;
    if (!job->set) {
        code = orr_pool_for(job->opt.threads, job->rank_count, prepare_one, &c, err);
        if (!code)
            code = job_make_set(job, err);
        if (code) { /* what is half made is no set */
            orr_set_close(job->set);
            job->set = NULL;
        }
    }
    *out = code ? NULL : job->set;
    return code;
}

orr_code orr_link_job_take_set(orr_link_job *job, orr_set **out, orr_error *err)
{
    const orr_set *made;
    const orr_code code = orr_link_job_set(job, &made, err);
    *out = code ? NULL : job->set;
    job->set = NULL;
    return code;
}

orr_code orr_link_job_open(const char *const *paths,
                           size_t count,
                           const orr_link_options *opt,
                           orr_link_job **out,
                           orr_error *err)
{
    *out = NULL;
    if (count == 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "a job has one file or folder at least");
    orr_link_job *job = orr_alloc(1, sizeof *job);
    if (!job)
        return orr_no_memory(err);
    if (opt)
        job->opt = *opt;
    /* chakra_trace_link links one rank.  A job always uses our linker: clocks, groups and the set
     * are derived from its records. */
    job->opt.rules = NULL;
    job->arena = orr_arena_create();
    const orr_code code =
        job->arena ? make_job(job, paths, count, job->opt.threads, err) : orr_no_memory(err);
    if (code)
        orr_link_job_close(job);
    else
        *out = job;
    return code;
}

void orr_link_job_close(orr_link_job *job)
{
    if (!job)
        return;
    for (uint32_t i = 0; i < job->rank_count; i++) {
        orr_link_close(job->ranks[i].link);
        conv_close(job->ranks[i].conversion);
        orr_trace_destroy(job->ranks[i].trace);
    }
    orr_set_close(job->set);
    orr_free(job->files);
    orr_arena_destroy(job->arena);
    orr_free(job);
}

uint32_t orr_link_job_rank_count(const orr_link_job *job)
{
    return job->rank_count;
}

const orr_link_rank *orr_link_job_rank(const orr_link_job *job, uint32_t i)
{
    return &job->ranks[i].about;
}

const orr_link *orr_link_job_link(const orr_link_job *job, uint32_t i)
{
    return job->ranks[i].link;
}

uint64_t orr_link_job_inferred(const orr_link_job *job)
{
    return job->inferred;
}

uint64_t orr_link_job_unknown(const orr_link_job *job)
{
    return job->unknown;
}
