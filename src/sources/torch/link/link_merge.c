/* SPDX-License-Identifier: Apache-2.0 */
/* link_merge.c - both traces as one list of nodes: every host node, every operator and every device operation once.
 *
 * Both traces name an operator by its record-function id.  Where a node hangs is taken from the clock, since the
 * observer of the host does not see the threads of all back ends:
 *
 *     process
 *       thread                        one for each thread of the device trace
 *         operator |------------------|              the innermost operator around it is its parent
 *           operator   |---------|
 *             launch      |-|                        not a node; it leads from the kernel to its operator
 *               kernel          |------|             hangs on the innermost operator around its launch
 *
 * Nothing is dropped: an operator that the host trace lacks is a node, host nodes that were not measured stay, and a
 * kernel without launch hangs on the process.  Without a host trace all of it comes from the device trace.
 * Nodes are numbered in the order of their starts, parents first.
 * Cost: linear but for binary searches and sorting. */
#include "link_merge.h"

#include "base/memory/map.h"
#include "base/text/text.h"

#include <inttypes.h>

static const char thread_name[] = "[pytorch|profiler|execution_trace|thread]";
static const char process_name[] = "[pytorch|profiler|execution_trace|process]";

/* Before everything that was measured. */
#define KEY_PROCESS (-1e300)
#define KEY_THREAD (-1e299)

static orr_code count_event(link_merger *m, orr_link_counter c, const kin_event *e, orr_error *err)
{
    return link_count_event(&m->l->tally, c, m->l->device_path,
                                 orr_intern_get(m->l->device.texts, e->name), e->index, err);
}

/* ---- host nodes and operators ---- */

enum { LACKS_RF = 1 };

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

static orr_code match_node(link_merger *m, const orr_map *by_rf, uint32_t h, orr_error *err)
{
    orr_link *l = m->l;
    const linked_node *n = &l->linked->nodes[h];
    m->op_of[h] = LINK_NONE;
    if (n->lacks & LACKS_RF)
        return ORR_OK;
    const uint32_t op = orr_map_find(by_rf, (uint64_t)n->rf_id, LINK_NONE);
    if (op == LINK_NONE)
        return ORR_OK;
    if (!orr_str_equal(n->name, orr_intern_get(l->device.texts, link_op(l, op)->name)))
        return count_event(m, ORR_LINK_OTHER_NAMES, link_op(l, op), err);
    if (m->host_of[op] != LINK_NONE)
        m->op_of[m->host_of[op]] = LINK_NONE; /* the last one counts */
    m->op_of[h] = op;
    m->host_of[op] = h;
    return ORR_OK;
}

static void count_matches(link_merger *m)
{
    uint64_t *of = m->l->tally.counts.of;
    for (uint32_t h = 0; h < m->l->linked->node_count; h++)
        of[m->op_of[h] == LINK_NONE ? ORR_LINK_UNLINKED : ORR_LINK_LINKED]++;
    for (uint32_t op = 0; op < m->l->ops.count; op++)
        of[ORR_LINK_UNTRACED] += m->host_of[op] == LINK_NONE;
}

/* Record-function ids are small numbers: a trace of another run has them too, but for other operators. */
static orr_code check_same_run(const orr_link *l, orr_error *err)
{
    const uint64_t linked = l->tally.counts.of[ORR_LINK_LINKED];
    const uint64_t other = l->tally.counts.of[ORR_LINK_OTHER_NAMES];
    const orr_where at = {.byte = ORR_NO_BYTE};
    if (other > linked)
        return orr_fail(err, ORR_EINPUT, &at,
                        "%s and %s are not of the same run: %" PRIu64
                        " operators with the same record-function id have different names",
                        l->host_path, l->device_path, other);
    if (!linked && l->linked->node_count && l->ops.count)
        return orr_fail(err, ORR_EINPUT, &at,
                        "%s and %s are not of the same run: no operator is in both", l->host_path,
                        l->device_path);
    return ORR_OK;
}

static orr_code match(link_merger *m, orr_error *err)
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
    if (!code && !link_merge_has_ids(m))
        code = link_merge_match_names(m, err);
    if (code)
        return code;
    count_matches(m);
    return m->l->device_path ? check_same_run(m->l, err) : ORR_OK;
}

/* ---- parents that cannot be ---- */

/* Whoever starts first has the smaller id, so a parent has a smaller one than its children: a larger one is a circle
 * or close to one.  The process, first of all, has no parent or is its own.  Measured nodes take their parents from
 * the clock, so one that is missing is missed by the others only. */
static orr_code check_parent(link_merger *m, uint32_t h, orr_error *err)
{
    const linked_node *n = &m->l->linked->nodes[h];
    const bool is_first = h == m->by_id[0];
    if (n->parent == LINKED_NO_ID || (is_first && n->parent == n->id))
        return ORR_OK;
    const bool is_there = orr_map_find(m->host_by_id, n->parent, LINK_NONE) != LINK_NONE;
    const orr_where at = linked_where(m->l->linked, n);
    if (is_there && n->parent >= n->id)
        return link_count_later(&m->l->tally, &at, n->id, n->parent, err);
    if (!is_there && !is_first && m->op_of[h] == LINK_NONE)
        return link_count(&m->l->tally, ORR_LINK_NO_ROOT, &at, err);
    return ORR_OK;
}

static orr_code check_parents(link_merger *m, orr_error *err)
{
    orr_code code = ORR_OK;
    for (size_t i = 0; i < m->l->linked->node_count && !code; i++)
        code = check_parent(m, m->by_id[i], err);
    return code;
}

/* ---- what encloses what ---- */

static double end_of(const link_merger *m, uint32_t op)
{
    return kin_end(link_op(m->l, op));
}

/* Operators of a thread come outer ones first, so those that are open form a stack: the way up the parents. */
static void nest(link_merger *m, uint32_t tid)
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

/* The innermost operator that is open on this thread at this time. */
uint32_t link_merge_innermost(const link_merger *m, uint32_t tid, double ts)
{
    const link_lists *by = &m->l->ops.by_thread;
    const uint32_t next = link_merge_next(m, tid, ts, true);
    uint32_t op = next > by->first[tid] ? by->list[next - 1] : LINK_NONE;
    while (op != LINK_NONE && end_of(m, op) < ts)
        op = m->parent_op[op];
    return op;
}

uint32_t link_merge_next(const link_merger *m, uint32_t tid, double ts, bool is_after)
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

/* ---- the plan ---- */

static uint32_t add_plan(link_merger *m, link_plan p)
{
    if (m->count == UINT32_MAX - 1 || !orr_grow(&m->plan, &m->room, m->count + 1)) {
        m->failed = true;
        return 0;
    }
    m->plan[m->count] = p;
    return m->count++;
}

static const link_plan empty_plan = {
    .parent = LINK_NONE, .host = LINK_NONE, .event = LINK_NONE, .thread = LINK_NONE};

/* A host node, or one that stands for nothing in either trace. */
static uint32_t plan_host(link_merger *m, uint32_t host, uint32_t parent, double key)
{
    link_plan p = empty_plan;
    p.host = host;
    p.parent = parent;
    p.key = key;
    const uint32_t at = add_plan(m, p);
    if (host != LINK_NONE)
        m->plan_of_host[host] = at;
    return at;
}

static void plan_process(link_merger *m)
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

/* The thread node above a host node; LINK_NONE: none, or it belongs to another thread already. */
static uint32_t host_thread(const link_merger *m, uint32_t host)
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
static void plan_thread(link_merger *m, uint32_t tid)
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

/* Threads in the order in which they began to work: so the first to come gets the host trace's node. */
static void plan_threads(link_merger *m)
{
    for (uint32_t tid = 0; tid < m->l->ops.thread_count; tid++)
        m->thread_plan[tid] = LINK_NONE;
    for (uint32_t op = 0; op < m->l->ops.count && !m->failed; op++) {
        const uint32_t tid = link_op(m->l, op)->tid;
        if (m->thread_plan[tid] == LINK_NONE)
            plan_thread(m, tid);
    }
}

static void plan_operators(link_merger *m)
{
    const link_lists *by = &m->l->ops.by_thread;
    for (uint32_t i = 0; i < m->l->ops.count && !m->failed; i++) {
        const uint32_t op = by->list[i], up = m->parent_op[op];
        const kin_event *e = link_op(m->l, op);
        link_plan p = empty_plan;
        p.event = m->l->ops.event[op];
        p.host = m->host_of[op];
        p.parent = up == LINK_NONE ? m->thread_plan[e->tid] : m->plan_of_op[up];
        p.key = e->ts;
        m->plan_of_op[op] = add_plan(m, p);
        if (p.host != LINK_NONE)
            m->plan_of_host[p.host] = m->plan_of_op[op];
    }
}

/* What was not measured belongs to another step when one was picked, unless it belongs to none. */
static bool stays_unmeasured(const link_merger *m, uint32_t h)
{
    const linked_node *n = &m->l->linked->nodes[h];
    return !m->l->opt.has_step || n->kind == LINKED_GROUPS || is_thread_node(n->name);
}

/* Host nodes that were not measured stand before the next one, by id, that was. */
static void plan_rest(link_merger *m)
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
    for (uint32_t h = 0; h < d->node_count && !m->failed; h++) {
        if (m->op_of[h] != LINK_NONE || m->plan_of_host[h] == 0 || m->plan_of_host[h] == LINK_NONE)
            continue;
        const uint32_t up = orr_map_find(m->host_by_id, d->nodes[h].parent, LINK_NONE);
        link_plan *p = &m->plan[m->plan_of_host[h]];
        /* What check_parent spoke of hangs on the process. */
        if (p->parent == LINK_NONE)
            p->parent =
                up == LINK_NONE || d->nodes[up].id >= d->nodes[h].id ? 0 : m->plan_of_host[up];
    }
}

/* ---- device operations ---- */

/* Of several calls with one correlation the first counts; two that launch are trouble. */
static orr_code find_calls(link_merger *m, orr_error *err)
{
    const kin_trace *k = &m->l->device;
    orr_code code = ORR_OK;
    for (uint32_t i = 0; i < k->count && !code; i++) {
        const kin_event *e = &k->events[i];
        if (e->kind != KIN_RUNTIME || e->correlation == -1)
            continue;
        const uint32_t known = orr_map_find(m->calls, (uint64_t)e->correlation, LINK_NONE);
        if (known == LINK_NONE)
            code = orr_map_put(m->calls, (uint64_t)e->correlation, i, NULL) ? ORR_OK
                                                                            : orr_no_memory(err);
        else if (e->flags & k->events[known].flags & KIN_LAUNCH)
            code = count_event(m, ORR_LINK_DUPLICATE_LAUNCHES, e, err);
    }
    return code;
}

/* Is the device operation part of a graph that was launched as a whole? */
static bool is_replayed(const orr_link *l, const kin_event *e)
{
    return e->extra != KIN_NO_TEXT && l->device.extras[e->extra].graph_node != KIN_NO_NUMBER &&
           l->device.extras[e->extra].graph_node != 0;
}

static orr_code device_parent(link_merger *m, const kin_event *e, uint32_t *out, orr_error *err)
{
    const uint32_t call = orr_map_find(m->calls, (uint64_t)e->correlation, LINK_NONE);
    *out = 0;
    if (call == LINK_NONE)
        return count_event(m, ORR_LINK_NO_LAUNCH, e, err);
    const kin_event *c = &m->l->device.events[call];
    const uint32_t op = link_merge_innermost(m, c->tid, c->ts);
    if (op != LINK_NONE) {
        *out = m->plan_of_op[op];
        m->l->tally.counts.of[ORR_LINK_PLACED]++;
        return ORR_OK;
    }
    if (m->thread_plan[c->tid] != LINK_NONE)
        *out = m->thread_plan[c->tid];
    return count_event(m, ORR_LINK_NO_PARENT, e, err);
}

static orr_code plan_devices(link_merger *m, orr_error *err)
{
    const kin_trace *k = &m->l->device;
    for (uint32_t i = 0; i < k->count; i++) {
        const kin_event *e = &k->events[i];
        m->plan_of_event[i] = LINK_NONE;
        if (!kin_is_device(e))
            continue;
        link_plan p = empty_plan;
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

/* ---- all of it ---- */

/* Nodes get new ids, so two with the same one are trouble only for those who mean one of them. */
static orr_code note_host(link_merger *m, uint32_t h, orr_error *err)
{
    const linked_node *n = &m->l->linked->nodes[h];
    bool is_new;
    m->plan_of_host[h] = LINK_NONE;
    if (!orr_map_put(m->host_by_id, n->id, h, &is_new))
        return orr_no_memory(err);
    const orr_where at = orr_where_byte(m->l->host_path, n->byte);
    return is_new ? ORR_OK : link_count(&m->l->tally, ORR_LINK_DUPLICATE_NODES, &at, err);
}

static orr_code make_room(link_merger *m, orr_error *err)
{
    orr_arena *a = m->l->arena;
    const size_t hosts = m->l->linked->node_count + 1, ops = (size_t)m->l->ops.count + 1;
    m->op_of = orr_arena_new(a, hosts, uint32_t);
    m->plan_of_host = orr_arena_new(a, hosts, uint32_t);
    m->host_of = orr_arena_new(a, ops, uint32_t);
    m->parent_op = orr_arena_new(a, ops, uint32_t);
    m->plan_of_op = orr_arena_new(a, ops, uint32_t);
    m->plan_of_event = orr_arena_new(a, m->l->device.count + 1, uint32_t);
    m->thread_plan = orr_arena_new(a, (size_t)m->l->ops.thread_count + 1, uint32_t);
    m->calls = orr_map_create(1024);
    m->host_by_id = orr_map_create(hosts);
    if (!m->op_of || !m->plan_of_host || !m->host_of || !m->parent_op || !m->plan_of_op ||
        !m->plan_of_event || !m->thread_plan || !m->calls || !m->host_by_id)
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

static orr_code plan_all(link_merger *m, orr_error *err)
{
    orr_code code;
    for (uint32_t tid = 0; tid < m->l->ops.thread_count; tid++)
        nest(m, tid);
    plan_process(m);
    plan_threads(m);
    if (!m->failed)
        plan_operators(m);
    if (!m->failed)
        plan_rest(m);
    if (m->failed)
        return orr_no_memory(err);
    if ((code = find_calls(m, err)))
        return code;
    return plan_devices(m, err);
}

orr_code link_merge_plan(link_merger *m, orr_error *err)
{
    orr_code code;
    if ((code = make_room(m, err)) || (code = link_merge_order_hosts(m, err)) ||
        (code = match(m, err)) || (code = check_parents(m, err)))
        return code;
    return plan_all(m, err);
}

void link_merge_fini(link_merger *m)
{
    orr_map_destroy(m->calls);
    orr_map_destroy(m->host_by_id);
    orr_free(m->plan);
}
