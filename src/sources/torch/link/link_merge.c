/* SPDX-License-Identifier: Apache-2.0 */
/* link_merge.c - both traces as one list of nodes: every host node, every operator and every device
 * operation once.
 *
 * Both traces identify an operator by its record-function id.  Parents are taken from the clock,
 * since the host's observer does not see the threads of all back ends:
 *
 *     process
 *       thread                        one per thread of the device trace
 *         operator |------------------|              the innermost operator around it is its parent
 *           operator   |---------|
 *             launch      |-|                        not a node; it leads from the kernel to its operator
 *               kernel          |------|             child of the innermost operator of its launch
 *
 * Nothing is dropped: an operator missing from the host trace becomes a node, unmeasured host nodes
 * stay, and a kernel without launch is a child of the process.  Without a host trace everything
 * comes from the device trace. Nodes are numbered by start, parents first. Cost: linear except for
 * binary searches and sorting. */
#include "link_impl.h"

#include "base/memory/map.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <inttypes.h>

/* A planned node: from the host trace, the device trace, both, or a thread known only from the
 * clock. */
typedef struct planned {
    double key;      /* its place in the order: when it started */
    uint32_t parent; /* in the plan */
    uint32_t host;   /* node of the host trace, or LINK_NONE */
    uint32_t event;  /* of the device trace, or LINK_NONE */
    uint32_t thread; /* this is the node of a thread, or LINK_NONE */
    uint64_t id;     /* in the result */
} planned;

typedef struct merger {
    orr_link *l;
    planned *plan; /* the process is the first */
    size_t room;
    uint32_t count;
    uint32_t *by_id;        /* host nodes by ascending id */
    uint32_t *op_of;        /* host node -> operator */
    uint32_t *host_of;      /* operator -> host node */
    uint32_t *parent_op;    /* operator -> operator around it */
    uint32_t *plan_of_host; /* places in the plan, or LINK_NONE */
    uint32_t *plan_of_op;
    uint32_t *plan_of_event; /* of device operations */
    uint32_t *thread_plan;   /* by thread */
    orr_map *calls;          /* correlation -> the first call that has it */
    orr_map *host_by_id;
    uint32_t *part_of; /* host node -> the only part of its call that was not measured */
    double last_ts;
    double slack;    /* nanoseconds by which starts and ends may be off */
    bool is_by_name; /* nodes are paired by name and order */
    bool failed;     /* out of memory */
} merger;

/* ---- order ---- */

static orr_code sort_keys(link_sort_entry *a, size_t n, uint32_t *order, orr_error *err)
{
    link_sort_entry *b = a ? orr_alloc(n + 1, sizeof *b) : NULL;
    if (!b)
        return orr_no_memory(err);
    const link_sort_entry *sorted = link_sort_entries(a, b, n);
    for (size_t i = 0; i < n; i++)
        order[i] = sorted[i].item;
    orr_free(b);
    return ORR_OK;
}

/* Ids ascend with starts, while the file is in the order of ends: by id, parents come before
 * children and neighbours in time are adjacent. */
static orr_code order_hosts(merger *m, orr_error *err)
{
    const orr_linked *d = m->l->linked;
    link_sort_entry *a = orr_alloc(d->node_count + 1, sizeof *a);
    m->by_id = orr_arena_new(m->l->arena, d->node_count + 1, uint32_t);
    for (uint32_t h = 0; a && h < d->node_count; h++)
        a[h] = (link_sort_entry){d->nodes[h].id, h};
    const orr_code code =
        m->by_id ? sort_keys(a, d->node_count, m->by_id, err) : orr_no_memory(err);
    orr_free(a);
    return code;
}

/* Nodes with equal starts go after their parents. With coarse clocks a child may have the timestamp
 * of its parent, and a kernel an earlier one than its launch; visiting parents first ensures that
 * ids ascend from parent to child, which every reader relies on. The limit on depth ends cycles in
 * broken files. */
static orr_code number_in_order(merger *m, const uint32_t *order, uint32_t **out, orr_error *err)
{
    uint32_t *made = orr_arena_new(m->l->arena, (size_t)m->count + 1, uint32_t);
    uint32_t *way = orr_alloc((size_t)m->count + 1, sizeof *way);
    uint32_t count = 0;
    for (uint32_t i = 0; made && way && i < m->count; i++) {
        uint32_t depth = 0;
        for (uint32_t at = order[i]; at != LINK_NONE && !m->plan[at].id && depth < m->count;
             at = m->plan[at].parent)
            way[depth++] = at;
        while (depth-- > 0) {
            made[count++] = way[depth];
            /* From 1: 0 means that it has none yet. */
            m->plan[way[depth]].id = count;
        }
    }
    orr_free(way);
    *out = made;
    return made && way ? ORR_OK : orr_no_memory(err);
}

static orr_code number_nodes(merger *m, uint32_t **order_out, orr_error *err)
{
    link_sort_entry *a = orr_alloc((size_t)m->count + 1, sizeof *a);
    uint32_t *order = orr_arena_new(m->l->arena, (size_t)m->count + 1, uint32_t);
    for (uint32_t i = 0; a && i < m->count; i++)
        a[i] = (link_sort_entry){link_sort_key(m->plan[i].key), i};
    const orr_code code = order ? sort_keys(a, m->count, order, err) : orr_no_memory(err);
    orr_free(a);
    if (code)
        return code;
    return number_in_order(m, order, order_out, err);
}

/* ==== the plan ==== */

enum { LACKS_RF = 1, LEVELS = 12, SEVERAL = UINT32_MAX - 1 };

/* Do both traces have record-function ids? One trace with ids is not enough: then nothing could be
 * paired by id, although names could. */
static bool has_ids(const merger *m)
{
    bool in_host = false, in_device = false;
    for (uint32_t op = 0; op < m->l->ops.count && !in_device; op++) {
        const int64_t rf = link_op(m->l, op)->rf;
        in_device = rf != KIN_NO_NUMBER && rf != 0;
    }
    for (size_t h = 0; h < m->l->linked->node_count && !in_host; h++)
        in_host = !(m->l->linked->nodes[h].lacks & LACKS_RF) && m->l->linked->nodes[h].rf_id != 0;
    return in_host && in_device;
}

static const char thread_name[] = "[pytorch|profiler|execution_trace|thread]";
static const char process_name[] = "[pytorch|profiler|execution_trace|process]";

/* Before everything that was measured. */
#define KEY_PROCESS (-1e300)
#define KEY_THREAD (-1e299)

static orr_code count_event(merger *m, orr_link_counter c, const kin_event *e, orr_error *err)
{
    return link_count_event(&m->l->tally, c, m->l->device_path, link_name(m->l, e), e->index, err);
}

/* ---- host nodes and operators ---- */

static orr_map *operators_by_rf(const orr_link *l)
{
    orr_map *by_rf = orr_map_create(l->ops.count);
    for (uint32_t op = 0; by_rf && op < l->ops.count; op++) {
        const int64_t rf = link_op(l, op)->rf;
        if (rf != KIN_NO_NUMBER && rf != 0 && !orr_map_put(by_rf, (uint64_t)rf, op, NULL)) {
            orr_map_destroy(by_rf);
            return NULL;
        }
    }
    return by_rf;
}

/* Names are compared because ids are counted from 1 in every run: two traces of different runs have
 * the same ids for other operators. */
static orr_code match_node(merger *m, const orr_map *by_rf, uint32_t h, orr_error *err)
{
    orr_link *l = m->l;
    const linked_node *n = &l->linked->nodes[h];
    m->op_of[h] = LINK_NONE;
    if (n->lacks & LACKS_RF)
        return ORR_OK;
    const uint32_t op = orr_map_find(by_rf, (uint64_t)n->rf_id, LINK_NONE);
    if (op == LINK_NONE)
        return ORR_OK;
    if (!orr_str_equal(n->name, link_name(l, link_op(l, op))))
        return count_event(m, ORR_LINK_OTHER_NAMES, link_op(l, op), err);
    if (m->host_of[op] != LINK_NONE)
        m->op_of[m->host_of[op]] = LINK_NONE; /* the last one counts */
    m->op_of[h] = op;
    m->host_of[op] = h;
    return ORR_OK;
}

static void count_matches(merger *m)
{
    uint64_t *of = m->l->tally.counts.of;
    for (uint32_t h = 0; h < m->l->linked->node_count; h++)
        of[m->op_of[h] == LINK_NONE ? ORR_LINK_UNLINKED : ORR_LINK_LINKED]++;
    for (uint32_t op = 0; op < m->l->ops.count; op++)
        of[ORR_LINK_UNTRACED] += m->host_of[op] == LINK_NONE;
}

/* Record-function ids are small numbers: a trace of another run has them too, but for other
 * operators. Three symptoms, each with its own message, because the remedy differs: wrong pair of
 * files, wrong step, or a profiler enabled elsewhere. */
static orr_code check_same_run(const merger *m, orr_error *err)
{
    const orr_link *l = m->l;
    const uint64_t linked = l->tally.counts.of[ORR_LINK_LINKED];
    const uint64_t other = l->tally.counts.of[ORR_LINK_OTHER_NAMES];
    const orr_where at = {.byte = ORR_NO_BYTE};
    if (other > linked)
        return orr_fail(err, ORR_EINPUT, &at,
                        "%s and %s are not of the same run: %" PRIu64
                        " operators with the same record-function id have different names",
                        l->host_path, l->device_path, other);
    const uint64_t both =
        l->linked->node_count < l->ops.count ? l->linked->node_count : l->ops.count;
    if (m->is_by_name && linked && linked < both / 10)
        return orr_fail(err, ORR_EINPUT, &at,
                        "%s and %s are not of the same run: %" PRIu64 " of %" PRIu64
                        " operators are in both, by their names",
                        l->host_path, l->device_path, linked, both);
    if (!linked && l->linked->node_count && l->ops.count)
        return orr_fail(err, ORR_EINPUT, &at,
                        "%s and %s are not of the same run: no operator is in both", l->host_path,
                        l->device_path);
    return ORR_OK;
}

static orr_code match(merger *m, orr_error *err)
{
    orr_code code = ORR_OK;
    orr_map *by_rf = operators_by_rf(m->l);
    if (!by_rf)
        return orr_no_memory(err);
    for (uint32_t op = 0; op < m->l->ops.count; op++)
        m->host_of[op] = LINK_NONE;
    for (uint32_t h = 0; !code && h < m->l->linked->node_count; h++)
        code = match_node(m, by_rf, h, err);
    orr_map_destroy(by_rf);
    m->is_by_name = m->l->device_path && !has_ids(m);
    if (!code && m->is_by_name)
        code = link_match_names(
            m->l, &(link_names){m->by_id, m->host_by_id, m->op_of, m->host_of, m->parent_op}, err);
    if (code)
        return code;
    count_matches(m);
    return m->l->device_path ? check_same_run(m, err) : ORR_OK;
}

/* ---- invalid parents ---- */

/* Ids are assigned by start, so a parent has a smaller id than its children: a larger one is a
 * cycle or close to one.  The process, the first node, has no parent or itself. Measured nodes take
 * their parents from the clock, so a missing parent only matters for others. */
static orr_code check_parent(merger *m, uint32_t h, orr_error *err)
{
    const linked_node *n = &m->l->linked->nodes[h];
    const bool is_first = h == m->by_id[0];
    if (n->parent == LINKED_NO_ID || (is_first && n->parent == n->id))
        return ORR_OK;
    const bool is_there = orr_map_find(m->host_by_id, n->parent, LINK_NONE) != LINK_NONE;
    const bool is_late = is_there && n->parent >= n->id;
    const bool is_missed = !is_there && !is_first && m->op_of[h] == LINK_NONE;
    if (!is_late && !is_missed)
        return ORR_OK;
    /* Finding the line reads the file from its start: only for an error that ends the program. */
    const orr_where at = m->l->tally.is_strict ? linked_where(m->l->linked, n)
                                               : orr_where_byte(m->l->linked->path, n->byte);
    return is_late ? link_count_later(&m->l->tally, &at, n->id, n->parent, err)
                   : link_count(&m->l->tally, ORR_LINK_NO_ROOT, &at, err);
}

static orr_code check_parents(merger *m, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < m->l->linked->node_count && !code; i++)
        code = check_parent(m, m->by_id[i], err);
    return code;
}

/* ---- nesting ---- */

static double end_of(const merger *m, uint32_t op)
{
    return kin_end(link_op(m->l, op));
}

/* Operators of a thread are sorted outer first, so the open ones form a stack: the chain of
 * parents. Ends are compared, not starts, so that an operator which extends past its caller by
 * rounding is still its child. */
static void nest(merger *m, uint32_t tid)
{
    const link_lists *by = &m->l->ops.by_thread;
    uint32_t top = LINK_NONE;
    for (uint32_t i = by->first[tid]; i < by->first[tid + 1]; i++) {
        const uint32_t op = by->list[i];
        while (top != LINK_NONE && end_of(m, top) < end_of(m, op))
            top = m->parent_op[top];
        m->parent_op[op] = top;
        top = op;
    }
}

/* Index in by_thread.list of the first operator of a thread that starts at ts or later (is_after:
 * later). Both variants are called a million times: for launches and for what follows a wait. */
static uint32_t next_place(const merger *m, uint32_t tid, double ts, bool is_after)
{
    const link_lists *by = &m->l->ops.by_thread;
    uint32_t low = by->first[tid], high = by->first[tid + 1];
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        const double at = link_op(m->l, by->list[mid])->ts;
        if (is_after ? at <= ts : at < ts)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The innermost operator open on this thread at this time, or `slack` earlier. Operators of a
 * thread are sorted by start, so the last one that had begun is the innermost or nested in it:
 * going up its parents visits every candidate. */
static uint32_t innermost_op_near(const merger *m, uint32_t tid, double ts, double slack)
{
    const link_lists *by = &m->l->ops.by_thread;
    const uint32_t next = next_place(m, tid, ts, true);
    uint32_t op = next > by->first[tid] ? by->list[next - 1] : LINK_NONE;
    while (op != LINK_NONE && end_of(m, op) + slack < ts)
        op = m->parent_op[op];
    return op;
}

static uint32_t innermost_op(const merger *m, uint32_t tid, double ts)
{
    return innermost_op_near(m, tid, ts, 0);
}

/* The operator that launched something.  Whole-microsecond clocks truncate starts and durations
 * independently, so a launch may seem to come after the end of its operator.  Communication is at
 * the end of its call; other launches belong to the open operator, if any. */
static uint32_t launching_op(const merger *m, const kin_event *call, bool is_comm)
{
    const uint32_t op = is_comm ? innermost_op_near(m, call->tid, call->ts, m->slack)
                                : innermost_op(m, call->tid, call->ts);
    return op == LINK_NONE ? innermost_op_near(m, call->tid, call->ts, m->slack) : op;
}

/* Profilers with nanosecond clocks need none, and slack would then assign launches to operators
 * that had ended. So it is used only if every time is a whole microsecond. */
static double find_slack(const orr_link *l)
{
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        if (e->kind != KIN_OTHER && (e->start_ns % 1000 || (int64_t)e->dur % 1000))
            return 0;
    }
    return 1000;
}

/* ---- the plan ---- */

static uint32_t add_plan(merger *m, planned p)
{
    if (m->count == UINT32_MAX - 1 || !orr_grow(&m->plan, &m->room, m->count + 1)) {
        m->failed = true;
        return 0;
    }
    m->plan[m->count] = p;
    return m->count++;
}

static const planned empty_plan = {
    .parent = LINK_NONE, .host = LINK_NONE, .event = LINK_NONE, .thread = LINK_NONE};

/* A host node, or a new one absent from both traces. Keys are the sort times of nodes; unmeasured
 * ones get one that puts them at the right position. */
static uint32_t plan_host(merger *m, uint32_t host, uint32_t parent, double key)
{
    planned p = empty_plan;
    p.host = host;
    p.parent = parent;
    p.key = key;
    const uint32_t at = add_plan(m, p);
    if (host != LINK_NONE)
        m->plan_of_host[host] = at;
    return at;
}

static void plan_process(merger *m)
{
    const orr_linked *d = m->l->linked;
    uint32_t host = LINK_NONE;
    for (uint32_t h = 0; h < d->node_count && host == LINK_NONE; h++) {
        if (orr_str_is(d->nodes[h].name, process_name))
            host = h;
    }
    plan_host(m, host, LINK_NONE, KEY_PROCESS);
}

static bool is_thread_node(orr_str name)
{
    return orr_str_is(name, thread_name) ||
           orr_str_is(name, "[pytorch|profiler|execution_graph|thread]");
}

/* The thread node above a host node; LINK_NONE: none, or already assigned to another thread. The
 * limit on steps handles files with cycles of parents. */
static uint32_t host_thread(const merger *m, uint32_t host)
{
    const orr_linked *d = m->l->linked;
    for (uint32_t steps = 0; host != LINK_NONE && steps < 4096; steps++) {
        if (is_thread_node(d->nodes[host].name))
            return m->plan_of_host[host] == LINK_NONE ? host : LINK_NONE;
        host = orr_map_find(m->host_by_id, d->nodes[host].parent, LINK_NONE);
    }
    return LINK_NONE;
}

/* The node of a thread: that of the first of its operators that has one, or a new one. */
static void plan_thread(merger *m, uint32_t tid)
{
    const link_lists *by = &m->l->ops.by_thread;
    uint32_t host = LINK_NONE;
    for (uint32_t i = by->first[tid]; i < by->first[tid + 1] && host == LINK_NONE; i++) {
        const uint32_t op = by->list[i];
        if (m->parent_op[op] == LINK_NONE && m->host_of[op] != LINK_NONE) {
            host = host_thread(m, m->host_of[op]);
            break;
        }
    }
    const uint32_t at = plan_host(m, host, 0, KEY_THREAD);
    if (!m->failed)
        m->plan[at].thread = tid;
    m->thread_plan[tid] = at;
}

/* Threads in order of their first operator: the first one gets the host trace's node. */
static void plan_threads(merger *m)
{
    for (uint32_t tid = 0; tid < m->l->ops.thread_count; tid++)
        m->thread_plan[tid] = LINK_NONE;
    for (uint32_t op = 0; op < m->l->ops.count && !m->failed; op++) {
        const uint32_t tid = link_op(m->l, op)->tid;
        if (m->thread_plan[tid] == LINK_NONE)
            plan_thread(m, tid);
    }
}

/* The host node around this one, if it and everything up to the operator around both was not
 * measured: then it belongs in between.  Else LINK_NONE. */
static uint32_t unmeasured_parent(const merger *m, uint32_t op)
{
    const linked_node *nodes = m->l->linked->nodes;
    const uint32_t host = m->host_of[op];
    uint32_t at = host, first = LINK_NONE;
    for (int level = 0; level < LEVELS && at != LINK_NONE; level++) {
        const uint32_t up = orr_map_find(m->host_by_id, nodes[at].parent, LINK_NONE);
        if (up == LINK_NONE || nodes[up].id >= nodes[at].id || nodes[up].tid != nodes[host].tid)
            return LINK_NONE;
        if (is_thread_node(nodes[up].name))
            return m->parent_op[op] == LINK_NONE ? first : LINK_NONE;
        if (m->op_of[up] != LINK_NONE)
            return m->op_of[up] == m->parent_op[op] ? first : LINK_NONE;
        first = level ? first : up;
        at = up;
    }
    return LINK_NONE;
}

/* Parents come from the clock, with one exception: host nodes that the profiler left out between
 * two that it has. */
static void plan_operators(merger *m)
{
    const link_lists *by = &m->l->ops.by_thread;
    for (uint32_t i = 0; i < m->l->ops.count && !m->failed; i++) {
        const uint32_t op = by->list[i], up = m->parent_op[op];
        /* The list has outer operators first, so the plan of `up` is made. */
        const uint32_t between = unmeasured_parent(m, op);
        const kin_event *e = link_op(m->l, op);
        planned p = empty_plan;
        p.event = m->l->ops.event[op];
        p.host = m->host_of[op];
        p.parent = between != LINK_NONE && m->plan_of_host[between] != LINK_NONE
                       ? m->plan_of_host[between]
                   : up == LINK_NONE ? m->thread_plan[e->tid]
                                     : m->plan_of_op[up];
        p.key = e->ts;
        m->plan_of_op[op] = add_plan(m, p);
        if (p.host != LINK_NONE)
            m->plan_of_host[p.host] = m->plan_of_op[op];
    }
}

/* If one step was selected, unmeasured nodes belong to another one, unless they belong to none. */
static bool stays_unmeasured(const merger *m, uint32_t h)
{
    const linked_node *n = &m->l->linked->nodes[h];
    return !m->l->opt.has_step || n->kind == LINKED_GROUPS || is_thread_node(n->name);
}

/* Unmeasured host nodes go before the next measured one by id. From the last to the first, so that
 * the time of the next measured one is known; ties are then resolved by number_in_order. */
static void plan_unmeasured(merger *m)
{
    const orr_linked *d = m->l->linked;
    double key = m->l->device.count ? m->last_ts : 0;
    for (size_t i = d->node_count; i-- > 0 && !m->failed;) {
        const uint32_t h = m->by_id[i];
        if (m->op_of[h] != LINK_NONE) {
            key = link_op(m->l, m->op_of[h])->ts;
            continue;
        }
        if (m->plan_of_host[h] == LINK_NONE && stays_unmeasured(m, h))
            plan_host(m, h, LINK_NONE, key);
    }
}

/* A description or an annotation of communication. */
static bool is_part_of_call(orr_str name)
{
    return orr_str_is(name, "record_param_comms") || orr_str_begins(name, "nccl:") ||
           orr_str_begins(name, "rccl:");
}

/* Unmeasured descriptions and annotations of communication, by enclosing node. SEVERAL marks calls
 * with two descriptions: then it is ambiguous which of them the kernel belongs to, and it stays
 * with the operator. */
static void note_parts(merger *m)
{
    const orr_linked *d = m->l->linked;
    memset(m->part_of, 0xFF, d->node_count * sizeof *m->part_of);
    for (uint32_t h = 0; h < d->node_count; h++) {
        const uint32_t up = orr_map_find(m->host_by_id, d->nodes[h].parent, LINK_NONE);
        if (m->op_of[h] == LINK_NONE && up != LINK_NONE && d->nodes[up].id < d->nodes[h].id &&
            is_part_of_call(d->nodes[h].name))
            m->part_of[up] = m->part_of[up] == LINK_NONE ? h : SEVERAL;
    }
}

static void place_unmeasured(merger *m)
{
    const orr_linked *d = m->l->linked;
    for (uint32_t h = 0; h < d->node_count && !m->failed; h++) {
        if (m->op_of[h] != LINK_NONE || m->plan_of_host[h] == 0 || m->plan_of_host[h] == LINK_NONE)
            continue;
        const uint32_t up = orr_map_find(m->host_by_id, d->nodes[h].parent, LINK_NONE);
        planned *p = &m->plan[m->plan_of_host[h]];
        /* Nodes with an invalid parent become children of the process. */
        if (p->parent == LINK_NONE)
            p->parent =
                up == LINK_NONE || d->nodes[up].id >= d->nodes[h].id ? 0 : m->plan_of_host[up];
    }
}

/* ---- device operations ---- */

/* Of several calls with one correlation the first counts; two launches are a defect.  Counted, not
 * refused: all kernels except those of such a pair are in the right place. */
static orr_code check_launches(merger *m, orr_error *err)
{
    const kin_trace *k = &m->l->device;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < k->count && !code; i++) {
        const kin_event *e = &k->events[i];
        if (e->kind != KIN_RUNTIME || e->correlation == -1)
            continue;
        const uint32_t first = orr_map_find(m->calls, (uint64_t)e->correlation, i);
        if (first != i && (e->flags & k->events[first].flags & KIN_LAUNCH))
            code = count_event(m, ORR_LINK_DUPLICATE_LAUNCHES, e, err);
    }
    return code;
}

/* Does the device operation belong to a CUDA graph? Kernels of a graph share the call that launched
 * it, so all of them are children of the same operator; that is counted, since it looks odd in the
 * result. */
static bool is_replayed(const orr_link *l, const kin_event *e)
{
    return e->extra != KIN_NO_TEXT && l->device.extras[e->extra].graph_node != KIN_NO_NUMBER &&
           l->device.extras[e->extra].graph_node != 0;
}

/* The kernel of a collective belongs to its whole call, including parts the profiler missed.
 * Converters find a collective by walking up from its kernel to its description; if that was not
 * measured the kernel would be its sibling and the two would count as two collectives. */
static uint32_t innermost_call(const merger *m, uint32_t op)
{
    const uint32_t host = m->host_of[op];
    uint32_t inside = host == LINK_NONE ? LINK_NONE : m->part_of[host];
    uint32_t at = m->plan_of_op[op];
    while (inside != LINK_NONE && inside != SEVERAL && m->plan_of_host[inside] != LINK_NONE) {
        at = m->plan_of_host[inside];
        inside = m->part_of[inside];
    }
    return at;
}

static orr_code device_parent(merger *m, const kin_event *e, uint32_t *out, orr_error *err)
{
    const uint32_t call = orr_map_find(m->calls, (uint64_t)e->correlation, LINK_NONE);
    *out = 0;
    if (call == LINK_NONE)
        return count_event(m, ORR_LINK_NO_LAUNCH, e, err);
    const kin_event *c = &m->l->device.events[call];
    const bool is_comm = link_is_nccl(link_name(m->l, e));
    const uint32_t op = launching_op(m, c, is_comm);
    if (op != LINK_NONE) {
        *out = is_comm ? innermost_call(m, op) : m->plan_of_op[op];
        m->l->tally.counts.of[ORR_LINK_PLACED]++;
        return ORR_OK;
    }
    if (m->thread_plan[c->tid] != LINK_NONE)
        *out = m->thread_plan[c->tid];
    return count_event(m, ORR_LINK_NO_PARENT, e, err);
}

/* The key is not before the parent's, or a kernel with an early clock would be numbered before the
 * operator that launched it. */
static orr_code plan_devices(merger *m, orr_error *err)
{
    const kin_trace *k = &m->l->device;
    for (uint32_t i = 0; i < k->count; i++) {
        const kin_event *e = &k->events[i];
        m->plan_of_event[i] = LINK_NONE;
        if (!kin_is_device(e))
            continue;
        planned p = empty_plan;
        const orr_code code = device_parent(m, e, &p.parent, err);
        if (code)
            return code;
        p.event = i;
        p.key = e->ts > m->plan[p.parent].key ? e->ts : m->plan[p.parent].key;
        m->l->tally.counts.of[ORR_LINK_REPLAYED] += is_replayed(m->l, e);
        m->plan_of_event[i] = add_plan(m, p);
        if (m->failed)
            return orr_no_memory(err);
    }
    return ORR_OK;
}

/* ---- everything ---- */

/* Nodes get new ids, so duplicate ids only affect references to them. */
static orr_code note_host(merger *m, uint32_t h, orr_error *err)
{
    const linked_node *n = &m->l->linked->nodes[h];
    bool is_new;
    m->plan_of_host[h] = LINK_NONE;
    if (!orr_map_put(m->host_by_id, n->id, h, &is_new))
        return orr_no_memory(err);
    const orr_where at = orr_where_byte(m->l->host_path, n->byte);
    return is_new ? ORR_OK : link_count(&m->l->tally, ORR_LINK_DUPLICATE_NODES, &at, err);
}

static orr_code make_room(merger *m, orr_error *err)
{
    orr_arena *a = m->l->arena;
    const size_t hosts = m->l->linked->node_count + 1, ops = (size_t)m->l->ops.count + 1;
    m->op_of = orr_arena_new(a, hosts, uint32_t);
    m->plan_of_host = orr_arena_new(a, hosts, uint32_t);
    m->part_of = orr_arena_new(a, hosts, uint32_t);
    m->host_of = orr_arena_new(a, ops, uint32_t);
    m->parent_op = orr_arena_new(a, ops, uint32_t);
    m->plan_of_op = orr_arena_new(a, ops, uint32_t);
    m->plan_of_event = orr_arena_new(a, m->l->device.count + 1, uint32_t);
    m->thread_plan = orr_arena_new(a, (size_t)m->l->ops.thread_count + 1, uint32_t);
    m->slack = find_slack(m->l);
    m->calls = link_calls(m->l);
    m->host_by_id = orr_map_create(hosts);
    if (!m->op_of || !m->plan_of_host || !m->part_of || !m->host_of || !m->parent_op ||
        !m->plan_of_op || !m->plan_of_event || !m->thread_plan || !m->calls || !m->host_by_id)
        return orr_no_memory(err);
    for (uint32_t h = 0; h < m->l->linked->node_count; h++) {
        const orr_code code = note_host(m, h, err);
        if (code)
            return code;
    }
    for (size_t i = 0; i < m->l->device.count; i++) {
        if (m->l->device.events[i].ts > m->last_ts)
            m->last_ts = m->l->device.events[i].ts;
    }
    return ORR_OK;
}

static orr_code plan_all(merger *m, orr_error *err)
{
    orr_code code;
    /* Where nodes are paired by name, link_match_names has nested them. */
    for (uint32_t tid = 0; tid < m->l->ops.thread_count && !m->is_by_name; tid++)
        nest(m, tid);
    plan_process(m);
    plan_threads(m);
    /* Before the operators, of which some go below them. */
    if (!m->failed)
        plan_unmeasured(m);
    if (!m->failed)
        plan_operators(m);
    if (!m->failed)
        place_unmeasured(m);
    if (m->failed)
        return orr_no_memory(err);
    note_parts(m);
    if ((code = check_launches(m, err)))
        return code;
    return plan_devices(m, err);
}

static orr_code make_plan(merger *m, orr_error *err)
{
    orr_code code;
    if ((code = make_room(m, err)) || (code = order_hosts(m, err)) || (code = match(m, err)) ||
        (code = check_parents(m, err)))
        return code;
    return plan_all(m, err);
}

static void merger_fini(merger *m)
{
    orr_map_destroy(m->calls);
    orr_map_destroy(m->host_by_id);
    orr_free(m->plan);
}

/* ==== the nodes of the linked trace, from the plan: host attributes plus times.
 *
 * A host node keeps all its attributes and gets times; if both traces describe a collective the
 * host takes precedence and the device fills in.  Texts are not copied: they stay in the host file
 * and in the device trace's table, both owned by the link. */

enum { LACKS_ALL = 0x7F };

/* ---- communication ---- */

static orr_str text_of(const orr_link *l, uint32_t text)
{
    return text == KIN_NO_TEXT ? (orr_str){"", 0} : orr_intern_get(l->device.texts, text);
}

/* "Process Group Name" is kept as JSON: without the quotes of a text. */
static orr_str group_of(const orr_link *l, uint32_t text)
{
    orr_str s = text_of(l, text);
    if (s.len >= 2 && s.ptr[0] == '"')
        return (orr_str){s.ptr + 1, s.len - 2};
    return orr_str_is(s, "null") ? (orr_str){"", 0} : s;
}

static void fill_text(orr_str *to, orr_str from)
{
    if (!to->len)
        *to = from;
}

static void fill_number(int64_t *to, int64_t from)
{
    if (*to == -1 && from != KIN_NO_NUMBER)
        *to = from;
}

static bool has_comm(const orr_link *l, const kin_event *e)
{
    if (e->extra == KIN_NO_TEXT)
        return false;
    const kin_extra *x = &l->device.extras[e->extra];
    return x->group != KIN_NO_TEXT || x->collective != KIN_NO_TEXT;
}

/* Field by field, since each side has some that the other lacks: the host has lists of ranks and
 * splits, the device what old hosts did not write. */
static void fill_comm(const orr_link *l, const kin_event *e, linked_comm *c)
{
    const kin_extra *x = &l->device.extras[e->extra];
    fill_text(&c->collective, text_of(l, x->collective));
    fill_text(&c->dtype, text_of(l, x->dtype));
    fill_text(&c->group, group_of(l, x->group));
    fill_text(&c->ranks, text_of(l, x->ranks));
    fill_number(&c->in_elements, x->in_elements);
    fill_number(&c->out_elements, x->out_elements);
    fill_number(&c->group_size, x->group_size);
    fill_number(&c->src, x->source);
    fill_number(&c->dst, x->target);
    fill_number(&c->sequence, x->sequence);
}

/* ---- one node ---- */

static linked_node blank(void)
{
    return (linked_node){.parent = LINKED_NO_ID,
                         .op_schema = {"", 0},
                         .start_ns = LINKED_NO_TIME,
                         .seq_id = -1,
                         .comm = LINKED_NO_COMM,
                         .byte = ORR_NO_BYTE,
                         .stream = 0,
                         .kind = LINKED_ON_HOST,
                         .lacks = LACKS_ALL};
}

/* As PyTorch marks annotations, threads and the process. */
static void mark_no_function(linked_node *n)
{
    enum { USER_SCOPE = 7, SCOPE_BIT = 3 }; /* of linked_node's lacks */
    n->scope = USER_SCOPE;
    n->lacks &= (uint8_t) ~(1u << SCOPE_BIT);
}

/* A number per thread: the host trace's own if it knows the thread, else the system's. */
static int64_t thread_number(const merger *m, uint32_t tid)
{
    const uint32_t plan = m->thread_plan[tid];
    int64_t number;
    if (plan != LINK_NONE && m->plan[plan].host != LINK_NONE)
        return m->l->linked->nodes[m->plan[plan].host].tid;
    if (orr_text_i64(orr_intern_get(m->l->device.threads, tid), &number))
        return number;
    return INT32_MAX + (int64_t)tid; /* a name, not a number */
}

static linked_node synthetic(const merger *m, const planned *p)
{
    linked_node n = blank();
    n.name = orr_str_of(p->thread == LINK_NONE ? "[pytorch|profiler|execution_trace|process]"
                                               : "[pytorch|profiler|execution_trace|thread]");
    if (p->thread != LINK_NONE)
        n.tid = thread_number(m, p->thread);
    mark_no_function(&n);
    return n;
}

static void set_times(const orr_link *l, const kin_event *e, linked_node *n)
{
    n->start_ns = l->device.base_ns + (int64_t)e->ts;
    n->duration_ns = n->own_ns = (int64_t)e->dur;
}

/* An operator seen only by the profiler has a name, an id, a thread and times; the rest is flagged
 * as missing. */
static linked_node operator_node(const merger *m, const planned *p)
{
    const orr_link *l = m->l;
    const kin_event *e = &l->device.events[p->event];
    linked_node n = p->host == LINK_NONE ? blank() : l->linked->nodes[p->host];
    if (p->host == LINK_NONE) {
        n.name = link_name(l, e);
        n.rf_id = e->rf == KIN_NO_NUMBER ? 0 : e->rf;
        n.tid = thread_number(m, e->tid);
        if (e->kind == KIN_STEP || e->flags & KIN_USER)
            mark_no_function(&n);
    }
    set_times(l, e, &n);
    return n;
}

/* A copy of its host node: shapes and types of a kernel's inputs are those of its operator, and are
 * recorded nowhere else. */
static linked_node device_node(const merger *m, const planned *p)
{
    const orr_link *l = m->l;
    const kin_event *e = &l->device.events[p->event];
    const uint32_t host = m->plan[p->parent].host;
    linked_node n = host == LINK_NONE ? blank() : l->linked->nodes[host];
    n.name = link_name(l, e);
    n.kind = LINKED_ON_DEVICE;
    n.comm = LINKED_NO_COMM;
    n.is_memory = e->kind != KIN_KERNEL;
    n.wait_ns = 0;
    /* Streams of several devices in one trace are different streams. */
    n.stream = (e->stream == KIN_NO_NUMBER ? 0 : e->stream) +
               (e->device > 0 ? (int64_t)e->device << 32 : 0);
    set_times(l, e, &n);
    return n;
}

static bool is_device(const merger *m, const planned *p)
{
    return p->event != LINK_NONE && kin_is_device(&m->l->device.events[p->event]);
}

static linked_node make_node(const merger *m, const planned *p)
{
    if (is_device(m, p))
        return device_node(m, p);
    if (p->event != LINK_NONE)
        return operator_node(m, p);
    if (p->host == LINK_NONE)
        return synthetic(m, p);
    return m->l->linked->nodes[p->host];
}

/* Add the node with what both traces know about its communication. */
static bool add_node(const merger *m, orr_linked *to, const planned *p)
{
    const orr_link *l = m->l;
    linked_node n = make_node(m, p);
    linked_comm comm = linked_no_comm();
    bool has = false;
    if (n.comm != LINKED_NO_COMM) {
        comm = l->linked->comms[n.comm];
        has = true;
    }
    if (p->event != LINK_NONE && has_comm(l, &l->device.events[p->event])) {
        fill_comm(l, &l->device.events[p->event], &comm);
        has = true;
    }
    n.id = p->id;
    n.parent = p->parent == LINK_NONE ? LINKED_NO_ID : m->plan[p->parent].id;
    return linked_add(to, &n, has ? &comm : NULL);
}

/* After all nodes exist, because only then an operator's index is its number. */
static void set_own_times(const merger *m, orr_linked *to)
{
    for (uint32_t op = 0; op < m->l->ops.count; op++) {
        const uint64_t id = m->plan[m->plan_of_op[op]].id;
        to->nodes[id - 1].own_ns = (int64_t)m->l->ops.own[op];
    }
}

/* Nodes, edges and comms of `from` take the place of those in `to`. */
static void exchange(orr_linked *to, orr_linked *from)
{
    orr_free(to->nodes);
    orr_free(to->edges);
    orr_free(to->comms);
    to->nodes = from->nodes;
    to->node_count = from->node_count;
    to->node_room = from->node_room;
    to->comms = from->comms;
    to->comm_count = from->comm_count;
    to->comm_room = from->comm_room;
    to->edges = NULL;
    to->edge_count = to->edge_room = 0;
}

/* Built beside the old list, which is read meanwhile, and swapped at the end. */
static orr_code fill_nodes(merger *m, const uint32_t *order, orr_error *err)
{
    orr_linked made = {0};
    bool has_room = true;
    for (uint32_t i = 0; has_room && i < m->count; i++)
        has_room = add_node(m, &made, &m->plan[order[i]]);
    if (!has_room) {
        orr_free(made.nodes);
        orr_free(made.comms);
        return orr_no_memory(err);
    }
    set_own_times(m, &made);
    exchange(m->l->linked, &made);
    if (m->l->device.rank != KIN_NO_NUMBER)
        m->l->linked->rank = m->l->device.rank;
    if (m->l->device.world != KIN_NO_NUMBER)
        m->l->linked->world = m->l->device.world;
    if (m->l->device.groups.len)
        (void)linked_read_groups(m->l->linked, m->l->device.groups);
    return m->l->linked->is_out_of_memory ? orr_no_memory(err) : ORR_OK;
}

/* ==== dependencies beyond the order on a thread and on a stream.
 *
 *     the host for the device      what a synchronising call waited for -> the next operator of its thread
 *     a stream for a stream        what an event was recorded after     -> the next operation on the stream
 *     a thread for a thread        what ended last elsewhere            -> the first operator after a gap
 *     a back end's worker          c10d::allreduce_ that submitted it   -> gloo:all_reduce, on its own thread
 *     the submitter again          gloo:all_reduce                      -> its next operator
 *
 * Invariant: an edge goes from what ended to what started later, by the clock, so there is no
 * cycle.
 * Cost: linear, plus a binary search per edge. */

/* Idle time in ns after which a thread may have waited for another. */
#define SILENCE 100e3

typedef struct joiner {
    merger *m;
    orr_link *l;
    bool failed;
} joiner;

static const kin_event *op_event(const joiner *j, uint32_t op)
{
    return link_op(j->l, op);
}

static void join(joiner *j, uint32_t from, uint32_t to, linked_edge_kind kind)
{
    const planned *plan = j->m->plan;
    if (!linked_join(j->l->linked, plan[from].id, plan[to].id, kind))
        j->failed = true;
}

/* ---- the device ---- */

/* The first operator that a thread starts at ts or later; LINK_NONE: there is none. */
static uint32_t next_op(const joiner *j, uint32_t tid, double ts)
{
    const link_lists *by = &j->l->ops.by_thread;
    const uint32_t at = next_place(j->m, tid, ts, false);
    return at < by->first[tid + 1] ? by->list[at] : LINK_NONE;
}

/* Time in a synchronising call is time the host would not need on another device. Counted once per
 * call, however many streams it waited for: the host's time passed only once. */
static void note_waiting(joiner *j, const kin_event *call)
{
    const uint32_t op = innermost_op(j->m, call->tid, call->ts);
    if (op == LINK_NONE)
        return;
    linked_node *n = &j->l->linked->nodes[j->m->plan[j->m->plan_of_op[op]].id - 1];
    n->wait_ns += (int64_t)call->dur;
    if (n->wait_ns > n->own_ns)
        n->wait_ns = n->own_ns;
}

static void join_host(joiner *j, const link_wait *w)
{
    const kin_event *call = &j->l->device.events[w->to];
    const uint32_t op = next_op(j, call->tid, kin_end(call));
    if (op == LINK_NONE)
        return;
    j->l->tally.counts.of[ORR_LINK_SYNCS]++;
    join(j, j->m->plan_of_event[w->from], j->m->plan_of_op[op], LINKED_EDGE_SYNC);
}

/* Waits of one call are consecutive; an edge within one stream would repeat its order. */
static void join_waits(joiner *j)
{
    const orr_link *l = j->l;
    uint32_t last_call = LINK_NONE;
    for (size_t i = 0; i < l->wait_count && !j->failed; i++) {
        const link_wait *w = &l->waits[i];
        const kin_event *to = &l->device.events[w->to], *from = &l->device.events[w->from];
        if (!kin_is_device(to)) {
            if (w->to != last_call)
                note_waiting(j, to);
            last_call = w->to;
            join_host(j, w);
        } else if (from->stream != to->stream && from->ts < to->ts) {
            join(j, j->m->plan_of_event[w->from], j->m->plan_of_event[w->to], LINKED_EDGE_EVENT);
        }
    }
}

/* ---- threads ---- */

/* The operators that ended last, on two different threads. */
typedef struct ended {
    uint32_t first, second;
} ended;

static bool ends_later(const joiner *j, uint32_t a, uint32_t b)
{
    return b == LINK_NONE || kin_end(op_event(j, a)) >= kin_end(op_event(j, b));
}

/* Two are enough: a thread waits for another one, so either the last to end anywhere is elsewhere,
 * or the last on any other thread is. */
static void has_ended(const joiner *j, ended *e, uint32_t op)
{
    const uint32_t tid = op_event(j, op)->tid;
    if (e->first == LINK_NONE || op_event(j, e->first)->tid == tid) {
        if (ends_later(j, op, e->first))
            e->first = op;
        return;
    }
    if (ends_later(j, op, e->first)) {
        e->second = e->first;
        e->first = op;
    }
}

/* Operators by their ends; NULL: out of memory. */
static uint32_t *order_of_ends(const joiner *j)
{
    const uint32_t n = j->l->ops.count;
    link_sort_entry *a = orr_alloc((size_t)n + 1, sizeof *a);
    uint32_t *order = orr_arena_new(j->l->arena, (size_t)n + 1, uint32_t);
    for (uint32_t op = 0; a && op < n; op++)
        a[op] = (link_sort_entry){link_sort_key(kin_end(op_event(j, op))), op};
    const bool has_room = order && !sort_keys(a, n, order, NULL);
    orr_free(a);
    return has_room ? order : NULL;
}

/* `busy`: until when the thread was busy; negative: it has not begun.  What ended before that is
 * not the cause. */
static void join_thread(joiner *j, const ended *e, uint32_t op, double busy)
{
    const kin_event *to = op_event(j, op);
    const uint32_t from =
        e->first != LINK_NONE && op_event(j, e->first)->tid == to->tid ? e->second : e->first;
    if (from == LINK_NONE || kin_end(op_event(j, from)) < busy)
        return;
    if (kin_end(op_event(j, from)) > to->ts || op_event(j, from)->ts >= to->ts)
        return;
    join(j, j->m->plan_of_op[from], j->m->plan_of_op[op], LINKED_EDGE_THREAD);
}

/* What woke a thread is not recorded. A backward pass begins when the forward pass hands over, the
 * forward pass continues when it is done: after an idle gap, what ended last elsewhere is by far
 * the likeliest cause, and a superfluous edge only preserves a measured order. */
static void join_threads(joiner *j)
{
    const orr_link *l = j->l;
    const uint32_t *ends = order_of_ends(j);
    double *busy = orr_arena_new(l->arena, (size_t)l->ops.thread_count + 1, double);
    ended e = {LINK_NONE, LINK_NONE};
    uint32_t done = 0;
    j->failed |= !ends || !busy;
    for (uint32_t t = 0; !j->failed && t < l->ops.thread_count; t++)
        busy[t] = -1;
    for (uint32_t op = 0; !j->failed && op < l->ops.count; op++) {
        const kin_event *to = op_event(j, op);
        for (; done < l->ops.count && kin_end(op_event(j, ends[done])) <= to->ts; done++)
            has_ended(j, &e, ends[done]);
        if (j->m->parent_op[op] == LINK_NONE &&
            (busy[to->tid] < 0 || to->ts - busy[to->tid] > SILENCE))
            join_thread(j, &e, op, busy[to->tid]);
        if (kin_end(to) > busy[to->tid])
            busy[to->tid] = kin_end(to);
    }
}

/* ---- workers of a back end ---- */

/* The name of a collective without layer-specific differences: "allreduce" for c10d::allreduce_ and
 * gloo:all_reduce. */
static size_t plain_word(orr_str name, char out[40])
{
    size_t from = 0, n = 0;
    for (size_t i = 0; i < name.len; i++)
        from = name.ptr[i] == ':' ? i + 1 : from;
    for (size_t i = from; i < name.len && n < 39 && name.ptr[i] != ' '; i++) {
        if (name.ptr[i] != '_')
            out[n++] = name.ptr[i];
    }
    if (n > 4 && memcmp(out + n - 4, "base", 4) == 0)
        n -= 4;
    out[n] = '\0';
    return n;
}

/* "gloo:all_reduce", "mpi:broadcast", "ucc:...": one colon, and the work itself; NCCL's are only
 * launches. */
static bool is_worker_name(orr_str s)
{
    const char *colon = memchr(s.ptr, ':', s.len);
    if (!colon || colon + 1 == s.ptr + s.len || colon[1] == ':' || colon == s.ptr)
        return false;
    return orr_str_begins(s, "gloo:") || orr_str_begins(s, "mpi:") || orr_str_begins(s, "ucc:");
}

/* Submissions not yet matched with a worker, oldest first. */
typedef struct queue {
    uint32_t *ops;
    size_t count, room, first;
} queue;

static orr_str name_of(const joiner *j, uint32_t op)
{
    return link_name(j->l, op_event(j, op));
}

/* Removes the oldest submission of the same kind. By kind, not by order alone: back ends with
 * several workers start submissions of one kind in order, of several kinds in any. */
static uint32_t take_submission(const joiner *j, queue *q, uint32_t worker)
{
    char mine[40], other[40];
    const size_t n = plain_word(name_of(j, worker), mine);
    for (size_t i = q->first; i < q->count; i++) {
        const uint32_t op = q->ops[i];
        if (op == LINK_NONE || plain_word(name_of(j, op), other) != n ||
            memcmp(mine, other, n) != 0)
            continue;
        q->ops[i] = LINK_NONE;
        while (q->first < q->count && q->ops[q->first] == LINK_NONE)
            q->first++;
        return op;
    }
    return LINK_NONE;
}

/* The submitter continues at once; its first operator after the work is the first that can have
 * needed the result. */
static void join_worker(joiner *j, uint32_t submitted, uint32_t worker)
{
    const kin_event *s = op_event(j, submitted), *w = op_event(j, worker);
    if (s->tid == w->tid)
        return;
    if (kin_end(s) <= w->ts)
        join(j, j->m->plan_of_op[submitted], j->m->plan_of_op[worker], LINKED_EDGE_MARK);
    const uint32_t next = next_op(j, s->tid, kin_end(w));
    if (next != LINK_NONE)
        join(j, j->m->plan_of_op[worker], j->m->plan_of_op[next], LINKED_EDGE_WAIT);
}

static void join_workers(joiner *j)
{
    queue q = {0};
    for (uint32_t op = 0; op < j->l->ops.count && !j->failed; op++) {
        const orr_str name = name_of(j, op);
        if (orr_str_begins(name, "c10d::")) {
            j->failed |= !orr_grow(&q.ops, &q.room, q.count + 1);
            if (!j->failed)
                q.ops[q.count++] = op;
        } else if (is_worker_name(name)) {
            const uint32_t submitted = take_submission(j, &q, op);
            if (submitted != LINK_NONE)
                join_worker(j, submitted, op);
        }
    }
    orr_free(q.ops);
}

/* The order only affects the bytes of the result: edges are appended. */
static orr_code join_all(merger *m, orr_error *err)
{
    joiner j = {.m = m, .l = m->l};
    join_waits(&j);
    if (!j.failed)
        join_threads(&j);
    if (!j.failed)
        join_workers(&j);
    return j.failed ? orr_no_memory(err) : ORR_OK;
}

orr_code link_merge(orr_link *l, orr_error *err)
{
    merger m = {.l = l};
    uint32_t *order = NULL;
    orr_code code = make_plan(&m, err);
    if (!code)
        code = number_nodes(&m, &order, err);
    if (!code)
        code = fill_nodes(&m, order, err);
    if (!code)
        code = join_all(&m, err);
    merger_fini(&m);
    return code;
}
