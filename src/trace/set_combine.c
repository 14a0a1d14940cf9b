/* SPDX-License-Identifier: Apache-2.0 */
/* set_combine.c - the traces of several jobs as those of one machine: each rank of each job gets
 * its own host, peers are translated to hosts, and groups are numbered job after job.  A collective
 * of all ranks of a job becomes one of a group.  Unused hosts get an empty trace.
 *
 * Classes are preserved: a body is copied once, for any number of ranks. */
#include <orrery/lab/goal.h>

#include "attrs.h"
#include "base/short_forms.h"
#include "base/text/number.h"
#include "placement.h"
#include "set_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* A slot of a class may be used for groups and for peers: each use becomes a separate slot. */
typedef enum slot_use { USE_GROUP, USE_PEER, USE_TAG, USES } slot_use;

typedef struct set_joiner {
    const orr_set *const *jobs;
    orr__placement at;
    orr_arena *a;
    orr_set *out;
    uint64_t *first_group; /* by job: the group number of all its ranks */
    uint32_t **class_of;   /* by job and class */
    uint32_t ***slot_of;   /* by job, class and use: slot -> 1 + the new slot */
    uint32_t idle;         /* the class of unused hosts */
    orr_error *err;
} set_joiner;

static slot_use use_of(orr_hole_field field)
{
    return field == ORR_HOLE_PG_NAME ? USE_GROUP : field == ORR_HOLE_COMM_TAG ? USE_TAG : USE_PEER;
}

/* ---- groups ---- */

/* 1 + the index among the job's groups; 0: no such group. */
static uint32_t find_group(const orr_set *s, int64_t id)
{
    size_t low = 0, high = s->group_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (s->groups[mid].id < (uint64_t)id)
            low = mid + 1;
        else
            high = mid;
    }
    return id > 0 && low < s->group_count && s->groups[low].id == (uint64_t)id ? (uint32_t)low + 1
                                                                               : 0;
}

/* The number of a job's group on the machine: 0 and empty names mean all ranks of the job. */
static int64_t new_group(const set_joiner *c, size_t job, int64_t id)
{
    return (int64_t)(c->first_group[job] + find_group(c->jobs[job], id));
}

static orr_code add_groups(set_joiner *c, size_t job)
{
    const orr_set *s = c->jobs[job];
    const uint32_t first = c->at.first[job], ranks = c->at.first[job + 1] - first;
    orr_code code =
        orr_set_add_group(c->out, c->first_group[job], c->at.host_of + first, ranks, c->err);
    uint32_t *members = orr_alloc((size_t)ranks + 1, sizeof *members);
    if (!code && !members)
        code = orr_no_memory(c->err);
    for (uint32_t i = 0; i < s->group_count && !code; i++) {
        const orr_group g = orr_set_group(s, i);
        if (g.count > ranks)
            code = orr_fail(c->err, ORR_EINPUT, NULL,
                            "job %zu: group %" PRIu64 " has %u ranks, the job %u", job + 1, g.id,
                            g.count, ranks);
        for (uint32_t k = 0; k < g.count && !code; k++) {
            if (g.ranks[k] >= ranks)
                code = orr_fail(c->err, ORR_EINPUT, NULL,
                                "job %zu: group %" PRIu64 " has rank %u, but there are %u ranks",
                                job + 1, g.id, g.ranks[k], ranks);
            else
                members[k] = c->at.host_of[first + g.ranks[k]];
        }
        if (!code)
            code = orr_set_add_group(c->out, c->first_group[job] + i + 1, members, g.count, c->err);
    }
    orr_free(members);
    return code;
}

/* ---- nodes ---- */

/* The group in a body; false: its name is not a number. */
static bool group_in(const orr_trace *t, uint32_t node, int64_t *out)
{
    const uint32_t text = t->columns.pg_name ? t->columns.pg_name[node] : ORR_NO_NAME;
    const orr_str name = text == ORR_NO_NAME ? (orr_str){"", 0} : orr_trace_text(t, text);
    *out = 0;
    return name.len == 0 || orr_text_i64(name, out);
}

static bool has_hole(const orr__class *k, orr_hole_field field, uint32_t node)
{
    return k->slot[field] && k->slot[field][node];
}

static bool map_peer(const set_joiner *c, size_t job, int64_t peer, int64_t *out)
{
    const uint32_t first = c->at.first[job], ranks = c->at.first[job + 1] - first;
    if (peer < 0 || peer >= ranks)
        return false;
    *out = c->at.host_of[first + (uint32_t)peer];
    return true;
}

static orr_code fail_peer(const set_joiner *c, const orr_where *w, size_t job, int64_t peer)
{
    return orr_fail(c->err, ORR_EINPUT, w, "job %zu has no rank %" PRId64, job + 1, peer);
}

/* The values common to all ranks of the class; the rest is in holes. */
static orr_code copy_node(set_joiner *c, size_t job, const orr__class *k, uint32_t i, orr_trace *to)
{
    static const orr__attr_key peers[] = {ORR__ATTR_COMM_SRC, ORR__ATTR_COMM_DST};
    static const orr_hole_field fields[] = {ORR_HOLE_COMM_SRC, ORR_HOLE_COMM_DST};
    const int64_t *const columns[] = {k->t->columns.comm_src, k->t->columns.comm_dst};
    const bool is_collective = k->t->columns.type[i] == ORR_NODE_COMM_COLL;
    orr_attr attrs[3];
    char text[24];
    orr_node node;
    orr_edit edit = {.attrs = attrs};
    orr_trace_node(k->t, i, &node);
    for (int p = 0; p < 2; p++) {
        int64_t peer = columns[p] ? columns[p][i] : ORR_NO_VALUE;
        if (peer == ORR_NO_VALUE || has_hole(k, fields[p], i))
            continue;
        if (!map_peer(c, job, peer, &peer)) {
            const orr_where w = orr_trace_where(k->t, i);
            return fail_peer(c, &w, job, peer);
        }
        attrs[edit.attr_count++] = (orr_attr){.name = orr__attr_rows[peers[p]].name,
                                              .kind = orr__attr_rows[peers[p]].kind,
                                              .value = {.i = peer}};
    }
    int64_t group;
    const bool is_named = k->t->columns.pg_name && k->t->columns.pg_name[i] != ORR_NO_NAME;
    if (!has_hole(k, ORR_HOLE_PG_NAME, i) && (is_collective || is_named)) {
        (void)group_in(k->t, i, &group); /* names were checked by orr_set_combine_obstacle */
        snprintf(text, sizeof text, "%" PRId64, new_group(c, job, group));
        attrs[edit.attr_count++] = (orr_attr){.name = orr__attr_rows[ORR__ATTR_PG_NAME].name,
                                              .kind = ORR_VALUE_STRING,
                                              .value = {.s = orr_str_of(text)}};
    }
    return orr_trace_copy(to, &node, edit.attr_count ? &edit : NULL, c->err);
}

static orr_code begin_body(set_joiner *c, const orr_trace *t, orr_trace **out)
{
    orr_meta meta = {.version = orr_trace_version(t)};
    orr_attrs it = orr_trace_attrs(t);
    orr_attr a, *list = NULL;
    size_t room = 0;
    orr_code code = ORR_OK;
    while (orr_trace_has_metadata(t) && !code && orr_attrs_next(&it, &a)) {
        if (orr_grow(&list, &room, meta.attr_count + 1))
            list[meta.attr_count++] = a;
        else
            code = orr_no_memory(c->err);
    }
    meta.attrs = list;
    if (!code)
        code = orr_trace_create(orr_trace_has_metadata(t) ? &meta : NULL, out, c->err);
    orr_free(list);
    return code;
}

/* ---- classes ---- */

static orr_code number_slots(
    set_joiner *c, const orr__class *k, uint32_t *slot_of[USES], orr_hole *holes, uint32_t *count)
{
    for (int u = 0; u < USES; u++)
        if (!(slot_of[u] = orr_arena_new(c->a, k->slot_count + 1u, uint32_t)))
            return orr_no_memory(c->err);
    for (size_t h = 0; h < k->hole_count; h++) {
        uint32_t *slot = &slot_of[use_of(k->holes[h].field)][k->holes[h].slot];
        if (!*slot)
            *slot = ++*count;
        holes[h] = (orr_hole){k->holes[h].node, k->holes[h].field, *slot - 1};
    }
    return ORR_OK;
}

static orr_code add_body(set_joiner *c, size_t job, uint32_t index)
{
    const orr__class *k = &c->jobs[job]->classes[index];
    uint32_t **slots = c->slot_of[job] + (size_t)index * USES, count = 0;
    orr_hole *holes = orr_alloc(k->hole_count + 1, sizeof *holes);
    orr_trace *t = NULL;
    orr_code code = holes ? begin_body(c, k->t, &t) : orr_no_memory(c->err);
    for (uint32_t i = 0; i < k->t->count && !code; i++)
        code = copy_node(c, job, k, i, t);
    if (!code)
        code = orr_trace_seal(t, c->err);
    if (!code)
        code = number_slots(c, k, slots, holes, &count);
    if (!code)
        code = orr_set_add_class(c->out, t, holes, k->hole_count, count, &c->class_of[job][index],
                                 c->err);
    else
        orr_trace_destroy(t);
    orr_free(holes);
    return code;
}

static orr_code add_idle(set_joiner *c)
{
    /* A run needs a node per rank. */
    const orr_draft nothing = {.id = 1, .name = orr_str_of("idle"), .type = ORR_NODE_METADATA};
    orr_trace *t;
    orr_code code = orr_trace_create(NULL, &t, c->err);
    if (code)
        return code;
    if ((code = orr_trace_append(t, &nothing, c->err)) || (code = orr_trace_seal(t, c->err))) {
        orr_trace_destroy(t);
        return code;
    }
    return orr_set_add_class(c->out, t, NULL, 0, 0, &c->idle, c->err);
}

static orr_code add_bodies(set_joiner *c)
{
    orr_code code = ORR_OK;
    for (size_t j = 0; j < c->at.job_count && !code; j++) {
        const size_t count = c->jobs[j]->class_count;
        c->class_of[j] = orr_arena_new(c->a, count + 1, uint32_t);
        c->slot_of[j] = orr_arena_new(c->a, count * USES + 1, uint32_t *);
        if (!c->class_of[j] || !c->slot_of[j])
            return orr_no_memory(c->err);
        for (uint32_t k = 0; k < count && !code; k++)
            code = add_body(c, j, k);
    }
    return code || c->at.hosts == c->at.ranks ? code : add_idle(c);
}

/* ---- ranks ---- */

static orr_code add_rank(set_joiner *c, size_t job, uint32_t own)
{
    const orr_set *s = c->jobs[job];
    const orr__rank *r = &s->ranks[own];
    if (r->class_index == ORR_NO_NODE)
        return orr_fail(c->err, ORR_EUSAGE, NULL, "job %zu: rank %u could not be read", job + 1,
                        own);
    const orr__class *k = &s->classes[r->class_index];
    uint32_t *const *slots = c->slot_of[job] + (size_t)r->class_index * USES;
    int64_t *values = orr_alloc((size_t)k->slot_count * USES + 1, sizeof *values);
    orr_code code = values ? ORR_OK : orr_no_memory(c->err);
    for (uint32_t i = 0; i < k->slot_count && !code; i++) {
        const int64_t v = s->values[r->values_at + i];
        if (slots[USE_GROUP][i] && v && !find_group(s, v))
            code = orr_fail(c->err, ORR_EINPUT, NULL, "job %zu has no group %" PRId64, job + 1, v);
        if (slots[USE_GROUP][i])
            values[slots[USE_GROUP][i] - 1] = new_group(c, job, v);
        if (slots[USE_TAG][i])
            values[slots[USE_TAG][i] - 1] = v;
        if (slots[USE_PEER][i] && !map_peer(c, job, v, &values[slots[USE_PEER][i] - 1]))
            code = fail_peer(c, NULL, job, v);
    }
    if (!code)
        code = orr_set_add_rank_values(c->out, c->class_of[job][r->class_index], r->id_shift,
                                       values, c->err);
    orr_free(values);
    return code;
}

static orr_code add_ranks(set_joiner *c)
{
    orr_code code = ORR_OK;
    for (uint32_t h = 0; h < c->at.hosts && !code; h++) {
        const uint32_t rank = c->at.rank_on[h];
        const uint32_t job = rank ? c->at.job_of[rank - 1] : 0;
        code = rank ? add_rank(c, job, rank - 1 - c->at.first[job])
                    : orr_set_add_rank(c->out, c->idle, 0, c->err);
    }
    return code;
}

/* The combined set records the job of each host. */
static orr_code note_jobs(set_joiner *c)
{
    orr_set *s = c->out;
    s->job_count = c->at.job_count;
    s->job_first = orr_arena_new(s->arena, c->at.job_count + 1, uint32_t);
    s->job_hosts = orr_arena_new(s->arena, c->at.ranks, uint32_t);
    s->job_on = orr_arena_new(s->arena, c->at.hosts, uint32_t);
    if (!s->job_first || !s->job_hosts || !s->job_on)
        return orr_no_memory(c->err);
    memcpy(s->job_first, c->at.first, (c->at.job_count + 1) * sizeof *s->job_first);
    memcpy(s->job_hosts, c->at.host_of, c->at.ranks * sizeof *s->job_hosts);
    for (uint32_t h = 0; h < c->at.hosts; h++)
        s->job_on[h] = c->at.rank_on[h] ? 1 + c->at.job_of[c->at.rank_on[h] - 1] : 0;
    return ORR_OK;
}

/* ---- obstacles ---- */

static const char unknown_group[] = "it names groups that no group file defines";

static const char *node_obstacle(const orr_set *s, const orr__class *k, uint32_t i)
{
    int64_t group;
    orr_node node;
    orr_attr a;
    orr_value v;
    const bool is_collective = k->t->columns.type[i] == ORR_NODE_COMM_COLL;
    if (!is_collective || has_hole(k, ORR_HOLE_PG_NAME, i))
        return NULL;
    if (!group_in(k->t, i, &group) || (group && !find_group(s, group)))
        return unknown_group;
    orr_trace_node(k->t, i, &node);
    if (group || !orr__node_get(&node, ORR__ATTR_INVOLVED_DIM, &a) || !a.is_list ||
        a.kind != ORR_VALUE_BOOL)
        return NULL;
    for (orr_list it = orr_attr_items(&a); orr_list_next(&it, &v);)
        if (!v.u)
            return "its collectives go along dimensions of the network";
    return NULL;
}

const char *orr_set_combine_obstacle(const orr_set *s)
{
    const char *why = NULL;
    for (size_t k = 0; k < s->class_count && !why; k++) {
        const orr__class *c = &s->classes[k];
        for (uint32_t i = 0; i < c->t->count && !why; i++)
            why = node_obstacle(s, c, i);
    }
    /* Values of holes: a group missing from the set. */
    for (size_t r = 0; r < s->rank_count && !why; r++) {
        const uint32_t k = s->ranks[r].class_index;
        for (uint32_t i = 0; k != ORR_NO_NODE && i < s->classes[k].slot_count && !why; i++) {
            const int64_t v = s->values[s->ranks[r].values_at + i];
            if (s->classes[k].names_group[i] && v && !find_group(s, v))
                why = unknown_group;
        }
    }
    return why;
}

orr_code orr_set_combine(const orr_set *const *jobs,
                         size_t job_count,
                         const orr_goal_machine *machine,
                         orr_set **out,
                         orr_error *err)
{
    set_joiner c = {.jobs = jobs, .a = orr_arena_create(), .err = err};
    uint32_t *counts = c.a ? orr_arena_new(c.a, job_count + 1, uint32_t) : NULL;
    *out = NULL;
    orr_code code = counts ? ORR_OK : orr_no_memory(err);
    for (size_t j = 0; j < job_count && !code; j++) {
        const char *why = orr_set_combine_obstacle(jobs[j]);
        counts[j] = (uint32_t)jobs[j]->rank_count;
        if (why)
            code = orr_fail(err, ORR_EINPUT, NULL, "job %zu cannot be moved: %s", j + 1, why);
    }
    if (!code)
        code = orr__place_jobs(counts, job_count, machine, c.a, &c.at, err);
    if (!code)
        code = orr_set_create(&c.out, err);
    if (!code) {
        c.first_group = orr_arena_new(c.a, job_count, uint64_t);
        c.class_of = orr_arena_new(c.a, job_count, uint32_t *);
        c.slot_of = orr_arena_new(c.a, job_count, uint32_t **);
        if (!c.first_group || !c.class_of || !c.slot_of)
            code = orr_no_memory(err);
    }
    uint64_t number = 1;
    for (size_t j = 0; j < job_count && !code; j++) {
        c.first_group[j] = number;
        number += 1 + jobs[j]->group_count;
        code = add_groups(&c, j);
    }
    if (!code)
        code = add_bodies(&c);
    if (!code)
        code = add_ranks(&c);
    if (!code)
        code = note_jobs(&c);
    orr_arena_destroy(c.a);
    if (code)
        orr_set_close(c.out);
    else
        *out = c.out;
    return code;
}
