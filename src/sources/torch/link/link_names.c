/* SPDX-License-Identifier: Apache-2.0 */
/* link_names.c - host nodes and operators paired by their names, for device traces that have no record-function ids.
 *
 * Profilers before 2022 did not write them.  Both traces have the operators of a thread in the order in which they
 * started, the outer before the inner; only one or the other may lack a few:
 *
 *     host      step  linear  t  addmm  relu  ...        ids ascend
 *     device          linear  t  addmm  relu  ...        time goes on; "step" is passed over
 *
 * So both rows are walked together, and a node that has no partner within reach is passed over.  Threads are paired in
 * the order in which they first do something.
 * Cost: linear, times the reach where rows differ. */
#include "link_merge.h"

#include "base/text/text.h"

enum { REACH = 64, THREADS_MAX = 4096 };

/* The threads of one trace, in the order in which they appear. */
typedef struct row_threads {
    int64_t of[THREADS_MAX];
    uint32_t count;
} row_threads;

static void see(row_threads *t, int64_t tid)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->of[i] == tid)
            return;
    }
    if (t->count < THREADS_MAX)
        t->of[t->count++] = tid;
}

static bool is_operator(const linked_node *n)
{
    return n->kind == LINKED_ON_HOST && n->name.len && n->name.ptr[0] != '[';
}

static bool has_same_name(const link_merger *m, const linked_node *n, uint32_t op)
{
    return orr_str_equal(n->name, orr_intern_get(m->l->device.texts, link_op(m->l, op)->name));
}

/* Place of the next operator with this name, from `at` on and within reach; `end`: there is none. */
static uint32_t find_ahead(const link_merger *m,
                           const linked_node *n,
                           uint32_t at,
                           uint32_t end)
{
    const uint32_t *list = m->l->ops.by_thread.list;
    for (uint32_t i = at; i < end && i - at < REACH; i++) {
        if (has_same_name(m, n, list[i]))
            return i;
    }
    return end;
}

static void pair_thread(link_merger *m, int64_t host_tid, uint32_t tid)
{
    const orr_linked *d = m->l->linked;
    const link_lists *by = &m->l->ops.by_thread;
    uint32_t at = by->first[tid];
    for (size_t i = 0; i < d->node_count; i++) {
        const uint32_t h = m->by_id[i];
        if (d->nodes[h].tid != host_tid || !is_operator(&d->nodes[h]))
            continue;
        const uint32_t found = find_ahead(m, &d->nodes[h], at, by->first[tid + 1]);
        if (found == by->first[tid + 1])
            continue;
        m->op_of[h] = by->list[found];
        m->host_of[by->list[found]] = h;
        at = found + 1;
    }
}

bool link_merge_has_ids(const link_merger *m)
{
    for (uint32_t op = 0; op < m->l->ops.count; op++) {
        const int64_t rf = link_op(m->l, op)->rf;
        if (rf != KIN_NO_NUMBER && rf != 0)
            return true;
    }
    return m->l->ops.count == 0;
}

orr_code link_merge_match_names(link_merger *m, orr_error *err)
{
    const orr_linked *d = m->l->linked;
    row_threads *hosts = orr_alloc(1, sizeof *hosts), *ours = orr_alloc(1, sizeof *ours);
    const bool has_room = hosts && ours;
    for (size_t i = 0; has_room && i < d->node_count; i++) {
        if (is_operator(&d->nodes[m->by_id[i]]))
            see(hosts, d->nodes[m->by_id[i]].tid);
    }
    for (uint32_t op = 0; has_room && op < m->l->ops.count; op++)
        see(ours, link_op(m->l, op)->tid);
    for (uint32_t t = 0; has_room && t < hosts->count && t < ours->count; t++)
        pair_thread(m, hosts->of[t], (uint32_t)ours->of[t]);
    orr_free(hosts);
    orr_free(ours);
    return has_room ? ORR_OK : orr_no_memory(err);
}
