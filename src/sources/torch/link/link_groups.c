/* SPDX-License-Identifier: Apache-2.0 */
/* link_groups.c - process groups of a whole job, and the set that carries them.
 *
 * Every rank knows the groups it is in, by names that are its own business: mostly the same number on all ranks, but
 * a hash, or a number that means other ranks elsewhere, are possible.  In a set a group has one number.
 *
 * Some back ends do not record which group a collective was in.  Comparing ranks tells: going along all of them at
 * once, what comes next on every rank and is equal is of all; where that is not so, a group is looked for whose ranks
 * all have the same next:
 *
 *     rank 0   all_reduce   broadcast   all_reduce   barrier
 *     rank 1   all_reduce   broadcast   all_reduce   barrier        the third is of a group {0, 1}
 *     rank 2   all_reduce   broadcast                barrier
 *
 * What fits nowhere is left as it is, for orrery check to point at.
 * Cost: linear in the collectives times groups that are tried; traces that change are copied. */
#include "link_job.h"

#include "base/memory/map.h"
#include "base/text/number.h"
#include "base/text/text.h"

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
    size_t world;   /* which of them has all ranks */
    bool has_parts; /* some collective is not of all ranks */
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

/* A group whose name is a number and means one thing keeps it; the others get the numbers behind. */
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
    const orr_columns *c;
    uint32_t next;        /* the next collective without a group; c->count: none */
    const job_group **of; /* by node: the group that was found for it */
} lane;

static bool is_open(const orr_columns *c, uint32_t i)
{
    return c->type[i] == ORR_NODE_COMM_COLL && (!c->pg_name || c->pg_name[i] == ORR_NO_NAME);
}

static void go_on(lane *l)
{
    for (l->next++; l->next < l->c->count && !is_open(l->c, l->next);)
        l->next++;
}

static bool is_equal(const lane *a, const lane *b)
{
    if (a->next == a->c->count || b->next == b->c->count)
        return false;
    if (a->c->comm_type[a->next] != b->c->comm_type[b->next])
        return false;
    return !a->c->comm_size || !b->c->comm_size ||
           a->c->comm_size[a->next] == b->c->comm_size[b->next];
}

static bool all_equal(const lane *lanes, const uint32_t *ranks, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++) {
        if (!is_equal(&lanes[ranks ? ranks[0] : 0], &lanes[ranks ? ranks[k] : k]))
            return false;
    }
    return count && lanes[ranks ? ranks[0] : 0].next < lanes[ranks ? ranks[0] : 0].c->count;
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

static orr_code infer(grouper *g, lane *lanes)
{
    for (uint32_t r = 0; r < g->job->rank_count; r++) {
        lane *l = &lanes[r];
        l->c = orr_trace_columns(g->job->ranks[r].trace);
        l->of = orr_arena_new(g->job->arena, (size_t)l->c->count + 1, const job_group *);
        if (!l->of)
            return orr_no_memory(g->err);
        l->next = UINT32_MAX; /* so that the first step is to 0 */
        go_on(l);
    }
    while (g->job->rank_count > 1 && step(g, lanes))
        ;
    return ORR_OK;
}

/* Simulators number what a rank runs with all others in one row with what it runs in groups without a file entry, and
 * ranks that are in other groups then count differently.  So as soon as there are collectives of parts, those of all
 * ranks are of a numbered group too; without any, all is left as it is. */
static void find_parts(grouper *g, const lane *lanes)
{
    for (uint32_t r = 0; r < g->job->rank_count && !g->has_parts; r++) {
        const orr_columns *c = lanes[r].c;
        for (uint32_t i = 0; i < c->count && !g->has_parts; i++) {
            const job_group *group = lanes[r].of[i];
            if (!group && c->pg_name && c->pg_name[i] != ORR_NO_NAME)
                group = meaning(g, r, orr_trace_text(g->job->ranks[r].trace, c->pg_name[i]));
            g->has_parts = group && group->count < g->job->rank_count;
        }
    }
}

/* ---- traces with the numbers ---- */

/* The number to write at node i; false: it stays as it is. */
static bool new_name(const grouper *g, uint32_t rank, const lane *l, uint32_t i, uint64_t *id)
{
    const orr_columns *c = l->c;
    const job_group *group = l->of[i];
    if (group && group->id == 0)
        return false;
    if (!group && c->pg_name && c->pg_name[i] != ORR_NO_NAME) {
        const orr_str name = orr_trace_text(g->job->ranks[rank].trace, c->pg_name[i]);
        uint64_t now;
        group = meaning(g, rank, name);
        if (group && orr_text_u64(name, &now) && now == group->id)
            return false;
    }
    *id = group ? group->id : 0;
    return group;
}

static bool changes(const grouper *g, uint32_t rank, const lane *l)
{
    uint64_t id;
    for (uint32_t i = 0; i < l->c->count; i++) {
        if (new_name(g, rank, l, i, &id))
            return true;
    }
    return false;
}

static orr_code copy_meta(const orr_trace *from, orr_arena *a, orr_trace **out, orr_error *err)
{
    orr_attr attr, *attrs;
    size_t count = 0, i = 0;
    for (orr_attrs it = orr_trace_attrs(from); orr_attrs_next(&it, &attr);)
        count++;
    attrs = orr_arena_new(a, count + 1, orr_attr);
    if (!attrs)
        return orr_no_memory(err);
    for (orr_attrs it = orr_trace_attrs(from); i < count && orr_attrs_next(&it, &attrs[i]);)
        i++;
    const orr_meta meta = {.version = orr_trace_version(from), .attrs = attrs, .attr_count = count};
    return orr_trace_create(&meta, out, err);
}

static orr_code copy_node(const grouper *g, uint32_t rank, const lane *l, uint32_t i, orr_trace *to)
{
    char text[24];
    orr_node node;
    uint64_t id;
    orr_trace_node(g->job->ranks[rank].trace, i, &node);
    if (!new_name(g, rank, l, i, &id))
        return orr_trace_copy(to, &node, NULL, g->err);
    size_t n = 0;
    for (uint64_t v = id; n == 0 || v; v /= 10)
        text[sizeof text - ++n] = (char)('0' + v % 10);
    const orr_attr attr = {.name = orr_str_of("pg_name"),
                           .kind = ORR_VALUE_STRING,
                           .value.s = {text + sizeof text - n, n}};
    return orr_trace_copy(to, &node, &(orr_edit){.attrs = &attr, .attr_count = 1}, g->err);
}

static orr_code rename_groups(const grouper *g, uint32_t rank, const lane *l)
{
    link_job_rank *r = &g->job->ranks[rank];
    orr_trace *made;
    orr_code code = copy_meta(r->trace, g->job->arena, &made, g->err);
    if (code)
        return code;
    for (uint32_t i = 0; i < l->c->count && !code; i++)
        code = copy_node(g, rank, l, i, made);
    if (!code)
        code = orr_trace_seal(made, g->err);
    if (code) {
        orr_trace_destroy(made);
        return code;
    }
    orr_trace_destroy(r->trace);
    r->trace = made;
    return ORR_OK;
}

/* ---- the set ---- */

static int by_id(const void *a, const void *b)
{
    const job_group *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static orr_code fill_set(const grouper *g)
{
    orr_link_job *job = g->job;
    orr_code code = orr_set_create(&job->set, g->err);
    for (uint32_t r = 0; r < job->rank_count && !code; r++) {
        orr_trace *t = job->ranks[r].trace;
        job->ranks[r].trace = NULL;
        code = orr_set_add(job->set, t, g->err);
    }
    if (g->count)
        qsort(g->groups, g->count, sizeof *g->groups, by_id);
    for (size_t i = 0; i < g->count && !code; i++) {
        const job_group *group = &g->groups[i];
        if (group->id)
            code = orr_set_add_group(job->set, group->id, group->ranks, group->count, g->err);
    }
    return code;
}

static orr_code make_set(grouper *g, lane *lanes)
{
    orr_code code;
    if ((code = list_groups(g)) || (code = find_world(g)) || (code = infer(g, lanes)))
        return code;
    find_parts(g, lanes);
    number_groups(g);
    for (uint32_t r = 0; r < g->job->rank_count && !code; r++) {
        if (changes(g, r, &lanes[r]))
            code = rename_groups(g, r, &lanes[r]);
    }
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
