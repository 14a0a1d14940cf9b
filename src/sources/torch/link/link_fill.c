/* SPDX-License-Identifier: Apache-2.0 */
/* link_fill.c - the nodes of the linked trace, from the plan: what the host trace says, and when it was.
 *
 * A node of the host trace keeps all it says and gets times; where both traces know something about a collective the
 * host's word counts and the device's fills in.  Texts stay where they are: in the host file and in the device
 * trace's table, both of which the link owns. */
#include "link_merge.h"

#include "base/text/number.h"
#include "base/text/text.h"

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

/* A number for each thread: the host trace's own where it knows the thread, else the system's. */
static int64_t thread_number(const link_merger *m, uint32_t tid)
{
    const uint32_t plan = m->thread_plan[tid];
    int64_t number;
    if (plan != LINK_NONE && m->plan[plan].host != LINK_NONE)
        return m->l->linked->nodes[m->plan[plan].host].tid;
    if (orr_text_i64(orr_intern_get(m->l->device.threads, tid), &number))
        return number;
    return INT32_MAX + (int64_t)tid; /* a name, not a number */
}

static linked_node synthetic(const link_merger *m, const link_plan *p)
{
    linked_node n = blank();
    n.name = orr_str_of(p->thread == LINK_NONE ? "[pytorch|profiler|execution_trace|process]"
                                               : "[pytorch|profiler|execution_trace|thread]");
    if (p->thread != LINK_NONE)
        n.tid = thread_number(m, p->thread);
    n.scope = 7; /* as PyTorch marks what is no function */
    return n;
}

static void set_times(const orr_link *l, const kin_event *e, linked_node *n)
{
    n->start_ns = l->device.base_ns + (int64_t)e->ts;
    n->duration_ns = n->own_ns = (int64_t)e->dur;
}

static linked_node operator_node(const link_merger *m, const link_plan *p)
{
    const orr_link *l = m->l;
    const kin_event *e = &l->device.events[p->event];
    linked_node n = p->host == LINK_NONE ? blank() : l->linked->nodes[p->host];
    if (p->host == LINK_NONE) {
        n.name = orr_intern_get(l->device.texts, e->name);
        n.rf_id = e->rf == KIN_NO_NUMBER ? 0 : e->rf;
        n.tid = thread_number(m, e->tid);
    }
    set_times(l, e, &n);
    return n;
}

static linked_node device_node(const link_merger *m, const link_plan *p)
{
    const orr_link *l = m->l;
    const kin_event *e = &l->device.events[p->event];
    const uint32_t host = m->plan[p->parent].host;
    linked_node n = host == LINK_NONE ? blank() : l->linked->nodes[host];
    n.name = orr_intern_get(l->device.texts, e->name);
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

static bool is_device(const link_merger *m, const link_plan *p)
{
    return p->event != LINK_NONE && kin_is_device(&m->l->device.events[p->event]);
}

static linked_node make_node(const link_merger *m, const link_plan *p)
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
static bool add_node(const link_merger *m, orr_linked *to, const link_plan *p)
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

static void set_own_times(const link_merger *m, orr_linked *to)
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

orr_code link_merge_fill(link_merger *m, const uint32_t *order, orr_error *err)
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
