/* SPDX-License-Identifier: Apache-2.0 */
/* flexflow_impl.h - a task graph, as compat/chakra sees it too: tasks in file order, dependencies
 * as a list for each. */
#ifndef ORR_FLEXFLOW_IMPL_H
#define ORR_FLEXFLOW_IMPL_H

#include <orrery/lab/flexflow.h>

#include "base/memory/memory.h"

enum { FF_DEVICES_MAX = 1 << 20 };

typedef struct ff_task {
    uint64_t id;
    orr_str name, phase;
    bool is_comm;
    uint32_t device;   /* of a compute task; of a communication the number of a link */
    uint32_t src, dst; /* of a communication */
    uint64_t bytes;
    double seconds; /* of a compute task */
    uint32_t line, column;
} ff_task;

/* Task `on` must be done first; the file may say so more than once. */
typedef struct ff_task_dep {
    uint32_t on, times;
} ff_task_dep;

struct orr_flexflow {
    orr_arena *arena;
    const char *label;
    ff_task *tasks; /* in file order */
    uint32_t count;
    uint32_t *order; /* tasks by ascending id */
    /* The dependencies of task i: deps[dep_first[i]] to deps[dep_first[i + 1] - 1]. */
    uint32_t *dep_first;
    ff_task_dep *deps;
    uint32_t *devices; /* those with a compute task, ascending */
    uint32_t device_count;
};

/* What chakra_converter does differently (chakra.md 4.4). */
struct orr_rules_flexflow {
    bool has_gaps; /* a rank is a device with a compute task, whatever its number */
    /* As dependencies on nodes in other files, without a message. */
    bool keeps_crossings;
    bool has_bare_nodes;   /* no phase in names, no is_cpu_op, no schema */
    bool has_empty_sends;  /* empty messages stay empty */
    bool has_wide_numbers; /* peers and tags are int64 */
};

static inline bool ff_task_is_on(const ff_task *t, uint32_t device)
{
    return t->is_comm ? t->src == device || t->dst == device : t->device == device;
}

#endif
