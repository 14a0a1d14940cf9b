/* SPDX-License-Identifier: Apache-2.0 */
/* comm_times.c - times of collectives alone, before the run: what a device waits for while the host
 * issues further kernels (kernel_times.c).
 *
 * They are those of the model with which the run moves the bytes (joint.c, nccl_model.h), for the
 * placement of the group: an estimate of another kind would let the host gain or lose against
 * communication that the run does not have, and faster links could then make a step longer.
 *
 * All ranks of a class share one time: that of the slowest of their groups, since ranks wait for
 * each other.  Contention and waits for other members are left out.
 *
 * Cost: placement once per group, which is linear in its members; a time once per distinct group,
 * collective and size of a class. */
#include "joint.h"
#include "workload.h"

#include "base/memory/map.h"
#include "base/memory/memory.h"
#include "models/collective/nccl/nccl_model.h"
#include "trace/attrs.h"

#include <string.h>

/* Where nothing is known of the links: a launch. */
#define UNKNOWN_US 15.0

/* How a node of a class names its group. */
typedef enum naming { BY_SLOT, BY_TEXT, BY_DIMS } naming;

typedef struct class_group {
    naming by;
    uint32_t number;  /* a slot of the class, a text of the trace, or a mask of dimensions */
    uint32_t *shapes; /* of the groups of its ranks, all different */
    size_t count, room;
} class_group;

/* Of ranks along some dimensions: whichever rank is asked, they are placed alike. */
typedef struct line_shape {
    uint32_t mask, shape;
} line_shape;

/* Keys of `names` and `texts`: all bytes are set. */
typedef struct group_name {
    uint32_t by, number;
} group_name;

typedef struct collective {
    uint64_t size;
    uint32_t group; /* of the class */
    uint32_t kind;
} collective;

struct work_comm {
    orr_sim *s;
    nccl_shape *shapes; /* all different; few, as groups repeat along a machine */
    size_t shape_count, shape_room;
    uint32_t *shape_of; /* by group; the last: of all ranks */
    line_shape *lines;  /* by mask of dimensions */
    size_t line_count, line_room;
    /* of one class */
    const work_graph *g;
    uint32_t class_index;
    class_group *groups;
    size_t group_count, group_room;
    orr_intern *names; /* of groups, which have their numbers */
    orr_intern *texts; /* collectives, which have the numbers of their times */
    double *us;
    size_t us_count, us_room;
};

static const uint32_t NOT_YET = UINT32_MAX, NOWHERE = UINT32_MAX - 1;

/* ---- life cycle ---- */

static void forget_class(work_comm *c)
{
    for (size_t i = 0; i < c->group_count; i++)
        orr_free(c->groups[i].shapes);
    orr_intern_destroy(c->names);
    orr_intern_destroy(c->texts);
    c->group_count = c->us_count = 0;
    c->names = c->texts = NULL;
}

work_comm *work_comm_create(orr_sim *s)
{
    work_comm *c = orr_alloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->s = s;
    if (!(c->shape_of = orr_alloc(s->groups.count + 1, sizeof *c->shape_of))) {
        orr_free(c);
        return NULL;
    }
    for (size_t i = 0; i <= s->groups.count; i++)
        c->shape_of[i] = NOT_YET;
    return c;
}

void work_comm_destroy(work_comm *c)
{
    if (!c)
        return;
    forget_class(c);
    orr_free(c->groups);
    orr_free(c->shape_of);
    orr_free(c->lines);
    orr_free(c->shapes);
    orr_free(c->us);
    orr_free(c);
}

bool work_comm_begin(work_comm *c, uint32_t class_index)
{
    if (c->texts && c->class_index == class_index)
        return true;
    forget_class(c);
    c->class_index = class_index;
    c->g = &c->s->graphs[class_index];
    c->names = orr_intern_create();
    return c->names && (c->texts = orr_intern_create()) != NULL;
}

/* ---- placement ---- */

/* Its number; NOWHERE: nothing is known of the links between these ranks. */
static bool add_shape(work_comm *c, const uint32_t *members, uint32_t count, uint32_t *out)
{
    nccl_shape shape;
    memset(&shape, 0, sizeof shape);
    *out = NOWHERE;
    if (!joint_shape_of(c->s, members, count, &shape))
        return true;
    for (*out = 0; *out < c->shape_count; ++*out)
        if (memcmp(&c->shapes[*out], &shape, sizeof shape) == 0)
            return true;
    if (!orr_grow(&c->shapes, &c->shape_room, c->shape_count + 1))
        return false;
    c->shapes[c->shape_count++] = shape;
    return true;
}

static bool add_line(work_comm *c, uint32_t rank, uint32_t mask, uint32_t *out)
{
    const orr_sim *s = c->s;
    for (size_t i = 0; i < c->line_count; i++)
        if (c->lines[i].mask == mask) {
            *out = c->lines[i].shape;
            return true;
        }
    if (!orr_grow(&c->lines, &c->line_room, c->line_count + 1))
        return false;
    uint32_t *members = orr_alloc(s->npu_count, sizeof *members), count = 0;
    for (uint32_t r = 0; members && r < s->npu_count; r++)
        if (joint_is_member(s, r, rank, mask))
            members[count++] = r;
    const bool ok = members && add_shape(c, members, count, out);
    if (ok)
        c->lines[c->line_count++] = (line_shape){mask, *out};
    orr_free(members);
    return ok;
}

static bool shape_of_group(work_comm *c, const cfg_group *group, uint32_t *out)
{
    const orr_sim *s = c->s;
    uint32_t *const known =
        &c->shape_of[group ? (size_t)(group - s->groups.groups) : s->groups.count];
    const bool ok = *known != NOT_YET ? true
                    : group           ? add_shape(c, group->sorted, group->count, known)
                                      : add_line(c, 0, UINT32_MAX, known);
    *out = *known;
    return ok;
}

static bool keep_shape(class_group *g, uint32_t shape)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->shapes[i] == shape)
            return true;
    if (!orr_grow(&g->shapes, &g->room, g->count + 1))
        return false;
    g->shapes[g->count++] = shape;
    return true;
}

/* Of all ranks of the class. */
static bool find_shapes(work_comm *c, uint32_t place, class_group *g)
{
    orr_sim *s = c->s;
    const uint32_t k = c->class_index, from = s->class_start[k], to = s->class_start[k + 1];
    run_npu n = {.sim = s, .graph = c->g};
    uint32_t shape;
    if (g->by == BY_DIMS)
        return (g->number == UINT32_MAX ? shape_of_group(c, NULL, &shape)
                                        : add_line(c, s->class_ranks[from], g->number, &shape)) &&
               keep_shape(g, shape);
    for (uint32_t i = from; i < to; i++) {
        const cfg_group *group;
        n.rank = s->class_ranks[i];
        /* A group that nothing defines is an error of the run, which names the node. */
        if (sys_find_group(&n, place, &group) &&
            !(shape_of_group(c, group, &shape) && keep_shape(g, shape)))
            return false;
        /* A text has one meaning for all ranks of a class. */
        if (g->by == BY_TEXT)
            break;
    }
    return true;
}

/* ---- groups ---- */

static class_group name_of(const work_comm *c, uint32_t place)
{
    const uint32_t node = c->g->node[place];
    const orr_columns *columns = &c->g->t->columns;
    const uint32_t *slots = c->s->set->classes[c->class_index].slot[ORR_HOLE_PG_NAME];
    if (slots && slots[node])
        return (class_group){.by = BY_SLOT, .number = slots[node]};
    if (columns->pg_name && columns->pg_name[node] != ORR_NO_NAME)
        return (class_group){.by = BY_TEXT, .number = columns->pg_name[node]};
    return (class_group){.by = BY_DIMS, .number = sys_dims_of(c->s, c->g, place)};
}

static bool find_group(work_comm *c, uint32_t place, uint32_t *out)
{
    class_group g = name_of(c, place);
    const group_name key = {(uint32_t)g.by, g.number};
    if (!orr_intern_add(c->names, (orr_str){(const char *)&key, sizeof key}, out))
        return false;
    if (*out < c->group_count)
        return true;
    const bool ok =
        find_shapes(c, place, &g) && orr_grow(&c->groups, &c->group_room, c->group_count + 1);
    if (ok)
        c->groups[c->group_count++] = g;
    else
        orr_free(g.shapes);
    return ok;
}

/* ---- times ---- */

static double time_of(const work_comm *c, const class_group *g, orr_collective kind, uint64_t size)
{
    double most = 0;
    for (size_t i = 0; i < g->count; i++) {
        nccl_cost cost;
        if (g->shapes[i] == NOWHERE) {
            most = most < UNKNOWN_US ? UNKNOWN_US : most;
            continue;
        }
        const nccl_shape *shape = &c->shapes[g->shapes[i]];
        const uint32_t ranks = shape->torus.ranks ? shape->torus.ranks : shape->ranks;
        if (ranks < 2) /* no communication */
            continue;
        const bool is_known =
            nccl_cost_of(shape, kind, joint_bytes_of(kind, size, ranks), NULL, &cost);
        const double us = is_known ? cost.time_ns * 1e-3 : UNKNOWN_US;
        most = us > most ? us : most;
    }
    return most;
}

bool work_comm_find(work_comm *c, uint32_t place, uint32_t *out)
{
    const orr_columns *columns = &c->g->t->columns;
    const uint32_t node = c->g->node[place];
    const int kind = work_kind_of(columns->comm_type ? columns->comm_type[node] : -1, c->s->rules);
    collective key;
    memset(&key, 0, sizeof key);
    key.size = columns->comm_size ? (uint64_t)columns->comm_size[node] : 0;
    key.kind = (uint32_t)kind;
    if (!find_group(c, place, &key.group) ||
        !orr_intern_add(c->texts, (orr_str){(const char *)&key, sizeof key}, out))
        return false;
    if (*out < c->us_count)
        return true;
    if (!orr_grow(&c->us, &c->us_room, c->us_count + 1))
        return false;
    c->us[c->us_count++] =
        kind < 0 ? UNKNOWN_US : time_of(c, &c->groups[key.group], (orr_collective)kind, key.size);
    return true;
}

const double *work_comm_us(const work_comm *c)
{
    return c->us;
}
