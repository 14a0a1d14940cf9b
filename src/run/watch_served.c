/* SPDX-License-Identifier: Apache-2.0 */
/* watch_served.c - latencies of requests in serving traces.
 *
 * Nodes that generate tokens record how many, for how many requests these are the first and the
 * last, and when those requests arrived (attrs.h).  So means need no list of requests: the times of
 * first tokens, last tokens and arrivals are sums over nodes.  Several ranks generate the same
 * tokens; each counts for its share, in integers (`share`), so that sums do not depend on the order
 * of ranks.
 *
 * Cost: one test per node without serving; else a table lookup. */
#include "watch.h"

#include "base/arithmetic.h"

#include "trace/attrs.h"

/* Of one node: tokens generated; requests whose first, and whose last, are among them; sum and
 * minimum of their arrival times, in us. */
typedef struct served_mark {
    uint64_t made, first, last, arrivals_us, earliest_us;
} served_mark;

/* A class whose nodes make tokens. */
typedef struct served_class {
    uint32_t *mark_of; /* by node: 1 + which; 0: none */
    served_mark *marks;
    size_t count, room;
    uint64_t ranks; /* that make the same tokens */
    uint64_t share; /* weight of one rank of the class; all `ranks` together: `whole` */
} served_class;

struct watch_served {
    served_class *classes; /* by class of the set */
    uint32_t class_count;
    uint64_t whole;
    uint64_t latest_us; /* a request arrives then, none that is known later */
    served_sums sums;
};

static uint64_t number_of(const orr_node *node, orr__attr_key key)
{
    orr_attr attr;
    int64_t value;
    return orr__node_get(node, key, &attr) && orr_attr_int(&attr, &value) && value > 0
               ? (uint64_t)value
               : 0;
}

/* Number of ranks that generate the same tokens; 0: the trace has no tokens. */
static uint64_t token_ranks(const orr_trace *t)
{
    const orr_str name = orr__attr_rows[ORR__ATTR_TOKEN_RANKS].name;
    int64_t value;
    if (!orr_trace_has_metadata(t))
        return 0;
    orr_attrs it = orr_trace_attrs(t);
    for (orr_attr a; orr_attrs_next(&it, &a);)
        if (a.name.len == name.len && memcmp(a.name.ptr, name.ptr, name.len) == 0)
            return orr_attr_int(&a, &value) && value > 0 ? (uint64_t)value : 0;
    return 0;
}

static bool read_marks(served_class *c, const work_graph *g, uint64_t *latest_us)
{
    for (uint32_t place = 0; place < g->count; place++) {
        orr_node node;
        if (g->t->columns.type[g->node[place]] != ORR_NODE_COMP)
            continue;
        orr_trace_node(g->t, g->node[place], &node);
        const served_mark m = {.made = number_of(&node, ORR__ATTR_NEW_TOKENS),
                               .first = number_of(&node, ORR__ATTR_FIRST_TOKENS),
                               .last = number_of(&node, ORR__ATTR_LAST_TOKENS),
                               .arrivals_us = number_of(&node, ORR__ATTR_ARRIVALS_US),
                               .earliest_us = number_of(&node, ORR__ATTR_EARLIEST_US)};
        if (m.made == 0)
            continue;
        if (!c->mark_of && !(c->mark_of = orr_alloc(g->count, sizeof *c->mark_of)))
            return false;
        if (!orr_grow(&c->marks, &c->room, c->count + 1))
            return false;
        *latest_us = m.earliest_us > *latest_us ? m.earliest_us : *latest_us;
        c->marks[c->count++] = m;
        c->mark_of[place] = (uint32_t)c->count;
    }
    return true;
}

/* Integer shares.  False: they do not fit; such traces are not generated. */
static bool share_out(struct watch_served *v)
{
    /* The least common multiple of all numbers of ranks: every class then has an integer share. */
    v->whole = 1;
    for (uint32_t k = 0; k < v->class_count; k++) {
        const uint64_t n = v->classes[k].ranks;
        if (n && (__builtin_mul_overflow(v->whole / orr_gcd(v->whole, n), n, &v->whole) ||
                  v->whole > UINT32_MAX))
            return false;
    }
    for (uint32_t k = 0; k < v->class_count; k++)
        v->classes[k].share = v->classes[k].ranks ? v->whole / v->classes[k].ranks : 0;
    return true;
}

void watch_served_destroy(struct watch_served *v)
{
    for (uint32_t k = 0; v && v->classes && k < v->class_count; k++) {
        orr_free(v->classes[k].mark_of);
        orr_free(v->classes[k].marks);
    }
    if (v)
        orr_free(v->classes);
    orr_free(v);
}

bool watch_served_create(orr_sim *s, struct watch_served **out)
{
    const uint32_t count = orr_set_class_count(s->set);
    struct watch_served *v = NULL;
    bool ok = true, is_any = false;
    *out = NULL;
    for (uint32_t k = 0; k < count && ok; k++) {
        const work_graph *g = &s->graphs[k];
        const uint64_t ranks = g->t ? token_ranks(g->t) : 0;
        if (ranks == 0)
            continue;
        if (!v && (v = orr_alloc(1, sizeof *v)) != NULL) {
            v->class_count = count;
            v->classes = orr_alloc(count, sizeof *v->classes);
        }
        ok = v && v->classes && read_marks(&v->classes[k], g, &v->latest_us);
        if (ok && v->classes[k].count) {
            v->classes[k].ranks = ranks;
            is_any = true;
        }
    }
    if (ok && is_any && share_out(v)) {
        *out = v;
        return true;
    }
    watch_served_destroy(v);
    return ok;
}

void watch_served_forget(struct watch_served *v)
{
    if (v)
        v->sums = (served_sums){0};
}

void watch_served_count(
    struct watch_served *v, uint32_t class_index, uint32_t place, uint64_t now_ns, uint32_t weight)
{
    const served_class *c = &v->classes[class_index];
    const uint32_t which = c->mark_of ? c->mark_of[place] : 0;
    if (which == 0)
        return;
    const served_mark *m = &c->marks[which - 1];
    served_sums *sum = &v->sums;
    /* Products of tokens, shares and nanoseconds pass 2^64 in runs of hours. */
    const unsigned __int128 ranks = (unsigned __int128)c->share * weight;
    sum->made += ranks * m->made;
    sum->first += ranks * m->first;
    sum->last += ranks * m->last;
    sum->first_ns += ranks * m->first * now_ns;
    sum->last_ns += ranks * m->last * now_ns;
    sum->arrivals_ns += ranks * m->arrivals_us * 1000;
    sum->end_ns = now_ns > sum->end_ns ? now_ns : sum->end_ns;
    /* Traces of other programs may have requests that arrive after their tokens. */
    const uint64_t earliest = m->earliest_us < UINT64_MAX / 1000 ? m->earliest_us * 1000 : now_ns;
    if (m->first && now_ns > earliest && now_ns - earliest > sum->longest_ns)
        sum->longest_ns = now_ns - earliest;
}

const served_sums *watch_served_sums(const struct watch_served *v, uint64_t *whole)
{
    *whole = v->whole;
    return &v->sums;
}

uint64_t watch_served_latest_us(const struct watch_served *v)
{
    return v ? v->latest_us : 0;
}
