/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - explains deadlocks: no event is left and ranks have not finished.
 *
 * Waits are collected, the object of each is determined, and these are followed to the end: a cause
 * or a cycle.  docs/design/stall.md describes the method and the causes.  Everything is done once,
 * after the last event; a run without a stall pays nothing. */
#include "base/memory/sort.h"
#include "facts.h"
#include "stall_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A wait, its cause and its object as text: each function appends to a text.  What is reported, and
 * for how many ranks at once, is decided further below. */

const char *orr_stall_cause_name(orr_stall_cause cause)
{
    static const char *const names[ORR_STALL_CAUSES] = {
        "none",
        "size_mismatch",
        "tag_mismatch",
        "no_partner",
        "member_absent",
        "collective_mismatch",
        "stream_numbers",
        "not_power_of_two",
        "custom_splits",
        "custom_node",
        "empty_all_gather",
        "no_dimension",
        "nothing_in_flight",
        "dependency_cycle",
        "chunk_order",
        "cycle",
        "lost_message",
        "unknown",
    };
    return cause < ORR_STALL_CAUSES ? names[cause] : "unknown";
}

/* a cause without numbers */
static const char *stall_cause_words(orr_stall_cause cause)
{
    static const char *const words[ORR_STALL_CAUSES] = {
        [ORR_STALL_CUSTOM_SPLITS] = "custom collective in several chunks",
        [ORR_STALL_CUSTOM_NODE] = "custom collective with a node that never ends",
        [ORR_STALL_EMPTY_ALL_GATHER] = "all-gather of 0 bytes",
        [ORR_STALL_NO_DIMENSION] = "collective over no dimension",
        [ORR_STALL_NOTHING_IN_FLIGHT] = "nothing in flight that would start the next node",
        [ORR_STALL_LOST_MESSAGE] = "the network never delivered a message",
    };
    return words[cause] ? words[cause] : "no reason was found";
}

/* ---- nodes and collectives ---- */

/* A printable name: short, no control characters, whole characters. */
static void stall_put_name(orr_buf *b, orr_str name)
{
    enum { LONGEST = 40 };
    const uint8_t *p = (const uint8_t *)name.ptr;
    size_t at = 0;
    while (at < name.len && at < LONGEST) {
        const size_t n = orr_utf8_length(p + at, name.len - at);
        if (n == 0 || orr_is_control(name, at) || p[at] == '"')
            orr_buf_byte(b, '?');
        else
            orr_buf_add(b, p + at, n);
        at += n ? n : 1;
    }
    if (at < name.len)
        orr_buf_text(b, "...");
}

static void put_node(orr_buf *b, const run_npu *n, uint32_t place)
{
    const uint32_t i = orr__index_of(n, place);
    orr_buf_print(b, "node %" PRIu64 " \"",
                  n->graph->t->columns.id[i] + orr_set_id_shift(n->sim->set, n->rank));
    stall_put_name(b, orr_trace_name(n->graph->t, i));
    orr_buf_byte(b, '"');
}

static const char *stall_kind_name(const run_npu *n, uint32_t place)
{
    const int type = orr__comm_type_of(n, place);
    const char *name = type < 0 ? NULL : orr_collective_name((uint32_t)type);
    return name ? name : "collective";
}

static void put_collective(orr_buf *b, const run_npu *n, uint32_t place)
{
    const orr_str group = sys_node_group_name(n, place);
    orr_buf_print(b, "%s of %" PRIu64 " bytes", stall_kind_name(n, place),
                  (uint64_t)orr__value_of(n, place, n->graph->t->columns.comm_size));
    if (group.len) {
        orr_buf_text(b, " in group ");
        stall_put_name(b, group);
    }
}

/* ---- the object of a wait ---- */

static void put_phase(orr_buf *b, const sys_stream *s)
{
    const sys_phase *p = &s->phases[s->phase];
    orr_buf_print(b, "chunk %" PRIu64, s->id);
    if (s->custom_prefix)
        return;
    orr_buf_print(b, ", phase %u of %u (%s, %s over %u ranks", s->phase + 1, s->phase_count,
                  coll_kind_name(p->kind), p->dim->ops->label, p->dim->count);
    if (!p->dim->group)
        orr_buf_print(b, ", dimension %u", p->dim->position);
    orr_buf_byte(b, ')');
}

static void put_message(orr_buf *b, const msg_unmatched *m, bool is_send)
{
    orr_buf_print(b, is_send ? "waits to send %" PRIu64 " bytes" : "waits for %" PRIu64 " bytes",
                  m->size);
    if (msg_has_trace_tag(m->tag))
        orr_buf_print(b, " with tag %u", msg_trace_tag(m->tag));
    orr_buf_print(b, is_send ? " to rank %u" : " from rank %u", is_send ? m->dst : m->src);
}

static void put_stream(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    put_phase(b, w->stream);
    if (!w->stream->is_started)
        orr_buf_text(b, " waits in its queue");
    if (w->stream->is_started && w->message != RUN_NONE) {
        orr_buf_byte(b, ' ');
        put_message(b, &st->messages[w->message], st->messages[w->message].kind == MSG_UNREADY);
    }
}

static void stall_put_node(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    put_node(b, npu_of(st, w->rank), w->place);
}

/* ": ALL_REDUCE of ..." */
static void stall_put_what(orr_buf *b, orr__stall *st, const orr__wait *w)
{
    const run_npu *n = npu_of(st, w->rank);
    if (n->graph->t->columns.type[orr__index_of(n, w->place)] != ORR_NODE_COMM_COLL)
        return;
    orr_buf_text(b, ": ");
    put_collective(b, n, w->place);
    if (w->type != ORR__WAIT_STARVED)
        orr_buf_print(b, ", collective %u", orr__stall_sequence(st, w->rank, w->place));
}

static void stall_put_wait(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    switch (w->type) {
    case ORR__WAIT_MESSAGE:
    case ORR__WAIT_RECEIVER:
        put_message(b, &st->messages[w->message], w->type == ORR__WAIT_RECEIVER);
        break;
    case ORR__WAIT_STREAM:
        put_stream(b, st, w);
        break;
    case ORR__WAIT_NOTHING:
        orr_buf_text(b, "has nothing left under way");
        break;
    case ORR__WAIT_STARVED:
        orr_buf_text(b, "is free, but starts only when another node of its rank completes");
        break;
    }
}

/* ---- the blocking rank ---- */

static void put_edge_node(orr_buf *b, const orr__stall *st, const orr__edge *e)
{
    const orr__wait *to = &st->waits[e->to];
    const run_npu *n = npu_of(st, to->rank);
    orr_buf_print(b, "rank %u has not started ", to->rank);
    put_node(b, n, e->via);
    if (orr__state_of(n, e->via) == ORR__BLOCKED)
        orr_buf_text(b, ", which depends on ");
    else if (to->type == ORR__WAIT_STARVED)
        orr_buf_text(b, ", which waits like ");
    else
        orr_buf_text(b, ", whose slot is taken by ");
    put_node(b, n, to->place);
}

static void put_edge_stream(orr_buf *b, const orr__stall *st, const orr__edge *e)
{
    const orr__wait *from = &st->waits[e->from], *to = &st->waits[e->to];
    orr_buf_print(b, "rank %u", to->rank);
    if (!to->stream->is_started && to->stream->phase == from->stream->phase)
        orr_buf_text(b, " has not started that phase");
    else if (to->stream->phase == from->stream->phase)
        orr_buf_text(b, " waits in the same phase");
    else
        orr_buf_print(b, " is in phase %u of that chunk", to->stream->phase + 1);
}

static void stall_put_edge(orr_buf *b, const orr__stall *st, const orr__edge *e)
{
    const orr__wait *to = &st->waits[e->to];
    switch (e->kind) {
    case ORR__EDGE_NODE:
        put_edge_node(b, st, e);
        break;
    case ORR__EDGE_SENDER:
        orr_buf_print(b, "rank %u is in ", to->rank);
        put_node(b, npu_of(st, to->rank), to->place);
        orr_buf_text(b, " to send it, and waits for another receive with this tag");
        break;
    case ORR__EDGE_STREAM:
        put_edge_stream(b, st, e);
        break;
    case ORR__EDGE_QUEUE:
        orr_buf_print(b, "chunk %" PRIu64 " of the same rank is before it", to->stream->id);
        break;
    case ORR__EDGE_COMPLETION:
        put_node(b, npu_of(st, to->rank), to->place);
        orr_buf_text(b, " is under way and waits");
        break;
    }
}

/* ---- causes ---- */

/* What is sent, and what is received instead. */
static void find_mismatch(const orr__stall *st,
                          const orr__wait *w,
                          msg_unmatched *send,
                          msg_unmatched *receive)
{
    const msg_unmatched *own = &st->messages[w->message];
    *send = *receive = *own;
    if (w->other != RUN_NONE) {
        *(own->kind == MSG_UNSENT ? send : receive) = st->messages[w->other];
        return;
    }
    const run_npu *n = npu_of(st, w->peer);
    const orr_columns *c = &n->graph->t->columns;
    send->size = (uint64_t)orr__value_of(n, w->via, c->comm_size);
    send->tag = (uint32_t)((uint64_t)orr__or_zero(run_npu_tag(n, w->via)) % MSG_TAG_SPACE);
}

static void put_mismatch(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    msg_unmatched send, receive;
    find_mismatch(st, w, &send, &receive);
    orr_buf_print(b, "%s mismatch: rank %u %s %" PRIu64 " bytes with tag %u to rank %u, ",
                  w->cause == ORR_STALL_SIZE_MISMATCH ? "size" : "tag", send.src,
                  w->other == RUN_NONE ? "is to send" : "sends", send.size, msg_trace_tag(send.tag),
                  send.dst);
    if (w->cause == ORR_STALL_SIZE_MISMATCH)
        orr_buf_print(b, "which receives %" PRIu64 " bytes", receive.size);
    else
        orr_buf_print(b, "which receives them with tag %u", msg_trace_tag(receive.tag));
    if (w->other != RUN_NONE)
        return;
    orr_buf_print(b, " (rank %u, ", w->peer);
    put_node(b, npu_of(st, w->peer), w->via);
    orr_buf_byte(b, ')');
}

static void put_absence(orr_buf *b, const orr__stall *st, uint32_t peer)
{
    const run_npu *n = npu_of(st, peer);
    if (n->result.finished_at != ORR_NEVER)
        orr_buf_print(b, " (rank %u has finished)", peer);
    else
        orr_buf_print(b, " (rank %u has no such node left)", peer);
}

static void put_no_partner(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    const msg_unmatched *m = &st->messages[w->message];
    if (m->kind == MSG_UNREADY)
        orr_buf_print(b,
                      "missing partner: rank %u never receives the %" PRIu64
                      " bytes with tag %u that rank %u sends",
                      w->peer, m->size, msg_trace_tag(m->tag), w->rank);
    else
        orr_buf_print(b,
                      "missing partner: rank %u never sends the %" PRIu64
                      " bytes with tag %u that rank %u receives",
                      w->peer, m->size, msg_trace_tag(m->tag), w->rank);
    put_absence(b, st, w->peer);
}

static void put_absent(orr_buf *b, orr__stall *st, const orr__wait *w)
{
    orr_buf_print(b, "member absent: rank %u never joins ", w->peer);
    put_collective(b, npu_of(st, w->rank), w->place);
    orr_buf_print(b, ", collective %u", orr__stall_sequence(st, w->rank, w->place));
    put_absence(b, st, w->peer);
}

static void put_other_collective(orr_buf *b, orr__stall *st, const orr__wait *w)
{
    const run_npu *own = npu_of(st, w->rank), *n = npu_of(st, w->peer);
    const bool is_numbers = w->cause == ORR_STALL_STREAM_NUMBERS;
    orr_buf_print(b, "%s: rank %u runs ",
                  is_numbers ? "chunks are numbered differently" : "collectives differ", w->rank);
    put_collective(b, own, w->place);
    orr_buf_print(b, " as collective %u, rank %u runs ", orr__stall_sequence(st, w->rank, w->place),
                  w->peer);
    put_collective(b, n, w->other);
    if (is_numbers)
        orr_buf_text(b, "; they ran different numbers of chunks in groups before");
    else if (orr__stall_is_same_collective(own, w->place, n, w->other))
        orr_buf_text(b, ", over other dimensions or in another order of them");
}

static bool ends_on_the_spot(const orr_columns *c, uint32_t i)
{
    return c->type[i] <= ORR_NODE_METADATA ||
           (c->type[i] == ORR_NODE_COMP && c->tensor_size && c->tensor_size[i] == 0);
}

/* The parent that made node i ready without completing. */
static uint32_t find_idle_parent(const orr_columns *c, uint32_t i)
{
    for (uint32_t e = c->data_first[i]; e < c->data_first[i + 1]; e++)
        if (ends_on_the_spot(c, c->data_dep[e]))
            return c->data_dep[e];
    for (uint32_t e = c->ctrl_first ? c->ctrl_first[i] : 0;
         c->ctrl_first && e < c->ctrl_first[i + 1]; e++)
        if (ends_on_the_spot(c, c->ctrl_dep[e]))
            return c->ctrl_dep[e];
    return ORR_NO_NODE;
}

static void put_starved(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    const run_npu *n = npu_of(st, w->rank);
    const orr_columns *c = &n->graph->t->columns;
    const uint32_t parent = find_idle_parent(c, orr__index_of(n, w->place));
    orr_buf_text(b, "nothing in flight: ");
    put_node(b, n, w->place);
    orr_buf_text(b, " is free, but starts only when another node of its rank completes");
    if (parent == ORR_NO_NODE)
        return;
    const char *type = orr_node_type_name(c->type[parent]);
    orr_buf_print(b, "; node %" PRIu64 " (%s) before it ended on the spot",
                  c->id[parent] + orr_set_id_shift(n->sim->set, n->rank),
                  c->type[parent] == ORR_NODE_COMP ? "compute of tensor size 0"
                  : type                           ? type
                                                   : "unknown type");
}

static uint32_t first_parent(const orr__stall *st, const run_npu *n, uint32_t place)
{
    uint32_t at = 0;
    return place == RUN_NONE ? RUN_NONE : orr__stall_parent(st, n, place, &at);
}

/* A node of the cycle above `place`, or NONE: Floyd's algorithm. */
static uint32_t find_cycle(const orr__stall *st, const run_npu *n, uint32_t place)
{
    uint32_t slow = place, fast = place;
    do {
        slow = first_parent(st, n, slow);
        fast = first_parent(st, n, first_parent(st, n, fast));
    } while (fast != RUN_NONE && slow != fast);
    return fast;
}

static void put_cycle(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    enum { MOST_SHOWN = 6 };
    const run_npu *n = npu_of(st, w->peer);
    const uint64_t shift = orr_set_id_shift(n->sim->set, n->rank);
    uint32_t at = 0, meet = RUN_NONE, parent, shown = 0;
    while (meet == RUN_NONE && (parent = orr__stall_parent(st, n, w->other, &at)) != RUN_NONE)
        meet = find_cycle(st, n, parent);
    orr_buf_print(b, "dependency cycle: rank %u never starts ", w->peer);
    put_node(b, n, w->other);
    if (meet == RUN_NONE)
        return;
    orr_buf_text(b, ", which depends on the cycle of nodes ");
    uint32_t p = meet;
    do {
        if (shown++ < MOST_SHOWN)
            orr_buf_print(b, "%" PRIu64 " <- ",
                          n->graph->t->columns.id[orr__index_of(n, p)] + shift);
        p = first_parent(st, n, p);
    } while (p != meet);
    orr_buf_print(b, "%s%" PRIu64, shown > MOST_SHOWN ? "... <- " : "",
                  n->graph->t->columns.id[orr__index_of(n, meet)] + shift);
}

static void put_lost(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    const msg_unmatched *m = &st->messages[w->message];
    orr_buf_print(b,
                  "lost message: the network model never delivered %" PRIu64
                  " bytes from rank %u to rank %u",
                  m->size, m->src, m->dst);
}

static void put_stuck(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    const run_npu *n = npu_of(st, w->rank);
    switch (w->cause) {
    case ORR_STALL_NOT_POWER_OF_TWO:
        orr_buf_print(b, "halving-doubling over %u ranks, which is not a power of two, in ",
                      w->stream->phases[w->stream->phase].dim->count);
        break;
    case ORR_STALL_CUSTOM_SPLITS:
        orr_buf_print(b,
                      "a custom collective completes only with preferred-dataset-splits 1, not "
                      "%" PRIu64 ": ",
                      n->sim->system.splits);
        break;
    case ORR_STALL_CUSTOM_NODE:
        orr_buf_text(b, "a node of the custom collective is neither compute, send nor receive and "
                        "never ends: ");
        break;
    case ORR_STALL_EMPTY_ALL_GATHER:
        orr_buf_text(b, "an all-gather of 0 bytes has no chunks and never completes: ");
        break;
    case ORR_STALL_NO_DIMENSION:
        orr_buf_text(b, "no dimension takes part, so it never completes: ");
        break;
    default:
        orr_buf_text(b, "nothing is left that would end ");
        put_node(b, n, w->place);
        return;
    }
    put_collective(b, n, w->place);
}

/* The short form, for a one-line error. */
static void stall_put_label(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    switch (w->cause) {
    case ORR_STALL_SIZE_MISMATCH:
    case ORR_STALL_TAG_MISMATCH:
        orr_buf_print(b, "%s mismatch between ranks %u and %u",
                      w->cause == ORR_STALL_SIZE_MISMATCH ? "size" : "tag",
                      st->messages[w->message].src, st->messages[w->message].dst);
        break;
    case ORR_STALL_NO_PARTNER:
        orr_buf_print(b, "rank %u never %s rank %u", w->peer,
                      st->messages[w->message].kind == MSG_UNREADY ? "receives from" : "sends to",
                      w->rank);
        break;
    case ORR_STALL_MEMBER_ABSENT:
        orr_buf_print(b, "rank %u never joins a collective of rank %u", w->peer, w->rank);
        break;
    case ORR_STALL_COLLECTIVE_MISMATCH:
        orr_buf_print(b, "ranks %u and %u run different collectives", w->rank, w->peer);
        break;
    case ORR_STALL_STREAM_NUMBERS:
        orr_buf_print(b, "ranks %u and %u number chunks differently", w->rank, w->peer);
        break;
    case ORR_STALL_NOT_POWER_OF_TWO:
        orr_buf_print(b, "halving-doubling over %u ranks",
                      w->stream->phases[w->stream->phase].dim->count);
        break;
    case ORR_STALL_DEPENDENCY_CYCLE:
        orr_buf_print(b, "dependency cycle on rank %u", w->peer);
        break;
    default:
        orr_buf_text(b, stall_cause_words(w->cause));
    }
}

/* Recorded with a PyTorch back end that does not record the group of a collective. */
static bool lacks_group(const run_npu *n, uint32_t place)
{
    orr_attr a;
    for (orr_attrs it = orr_trace_attrs(n->graph->t); orr_attrs_next(&it, &a);) {
        if (orr_str_is(a.name, "schema"))
            return orr__comm_type_of(n, place) >= 0 && !sys_node_group_name(n, place).len;
    }
    return false;
}

static void put_link_hint(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    if (lacks_group(npu_of(st, w->rank), w->place))
        orr_buf_text(b, "; the trace does not record its group: link all ranks at once to find it "
                        "(orrery link --ranks FOLDER -o job.orr)");
}

static void stall_put_cause(orr_buf *b, orr__stall *st, const orr__wait *w)
{
    switch (w->cause) {
    case ORR_STALL_SIZE_MISMATCH:
    case ORR_STALL_TAG_MISMATCH:
        put_mismatch(b, st, w);
        break;
    case ORR_STALL_NO_PARTNER:
        put_no_partner(b, st, w);
        break;
    case ORR_STALL_MEMBER_ABSENT:
        put_absent(b, st, w);
        put_link_hint(b, st, w);
        break;
    case ORR_STALL_COLLECTIVE_MISMATCH:
    case ORR_STALL_STREAM_NUMBERS:
        put_other_collective(b, st, w);
        put_link_hint(b, st, w);
        break;
    case ORR_STALL_NOTHING_IN_FLIGHT:
        put_starved(b, st, w);
        break;
    case ORR_STALL_DEPENDENCY_CYCLE:
        put_cycle(b, st, w);
        break;
    case ORR_STALL_LOST_MESSAGE:
        put_lost(b, st, w);
        break;
    default:
        put_stuck(b, st, w);
    }
}

/* ======== From the graph of waits to the root cause.
 *
 * Every wait has a cause or waits for others.  Those that lead to a cause are explained by it.  If
 * some do not, there must be a cycle among them; the shortest one is searched breadth-first from
 * each wait, within a budget of steps (beyond it, just a short one).
 *
 * Cost: linear in waits and edges, plus the budget. */

enum { MOST_STEPS = 1 << 24 };

/* Edges by source; stable. */
static bool sort_edges(orr__stall *st)
{
    const size_t n = st->wait_count;
    uint32_t *first = orr_arena_new(st->arena, n + 2, uint32_t);
    orr__edge *sorted = orr_arena_new(st->arena, st->edge_count, orr__edge);
    if (!first || (!sorted && st->edge_count))
        return false;
    for (size_t e = 0; e < st->edge_count; e++)
        first[st->edges[e].from + 2]++;
    for (size_t i = 1; i <= n; i++)
        first[i + 1] += first[i];
    for (size_t e = 0; e < st->edge_count; e++)
        sorted[first[st->edges[e].from + 1]++] = st->edges[e];
    orr_free(st->edges);
    st->edges = NULL;
    st->edge_room = 0;
    st->sorted = sorted;
    st->edge_first = first;
    return true;
}

/* ---- what is explained by a cause ---- */

typedef struct reverse {
    uint32_t *first, *from; /* by wait: those that wait for it */
} reverse;

static bool turn_around(const orr__stall *st, reverse *out)
{
    const size_t n = st->wait_count;
    out->first = orr_arena_new(st->arena, n + 2, uint32_t);
    out->from = orr_arena_new(st->arena, st->edge_count, uint32_t);
    if (!out->first || (!out->from && st->edge_count))
        return false;
    for (size_t e = 0; e < st->edge_count; e++)
        out->first[st->sorted[e].to + 2]++;
    for (size_t i = 1; i <= n; i++)
        out->first[i + 1] += out->first[i];
    for (size_t e = 0; e < st->edge_count; e++)
        out->from[out->first[st->sorted[e].to + 1]++] = st->sorted[e].from;
    return true;
}

static bool mark_explained(orr__stall *st, bool *is_explained)
{
    reverse r;
    uint32_t *todo = orr_arena_new(st->arena, st->wait_count, uint32_t);
    size_t count = 0;
    st->roots = orr_arena_new(st->arena, st->wait_count, uint32_t);
    if (!todo || !st->roots || !turn_around(st, &r))
        return false;
    for (uint32_t i = 0; i < st->wait_count; i++)
        if (st->waits[i].cause != ORR_STALL_NONE) {
            st->roots[st->root_count++] = i;
            is_explained[i] = true;
            todo[count++] = i;
        }
    while (count) {
        const uint32_t i = todo[--count];
        for (uint32_t e = r.first[i]; e < r.first[i + 1]; e++)
            if (!is_explained[r.from[e]]) {
                is_explained[r.from[e]] = true;
                todo[count++] = r.from[e];
            }
    }
    return true;
}

/* ---- the shortest cycle ---- */

typedef struct search {
    orr__stall *st;
    const bool *is_explained;
    uint32_t *seen;     /* by wait: 1 + the start of the search that visited it */
    uint32_t *came_by;  /* by wait: the edge */
    uint32_t *distance; /* by wait */
    uint32_t *queue;
    uint64_t steps;
} search;

/* Breadth-first from `start` back to it, in fewer than `limit` steps; the closing edge, or NONE. */
static uint32_t closing_edge(search *f, uint32_t start, uint32_t limit)
{
    size_t head = 0, tail = 0;
    f->queue[tail++] = start;
    f->seen[start] = start + 1;
    f->distance[start] = 0;
    while (head < tail) {
        const uint32_t i = f->queue[head++];
        if (f->distance[i] + 1 >= limit)
            return RUN_NONE;
        for (uint32_t e = f->st->edge_first[i]; e < f->st->edge_first[i + 1]; e++) {
            const uint32_t to = f->st->sorted[e].to;
            if (to == start)
                return e;
            if (++f->steps > MOST_STEPS)
                return RUN_NONE;
            if (f->is_explained[to] || f->seen[to] == start + 1)
                continue;
            f->seen[to] = start + 1;
            f->came_by[to] = e;
            f->distance[to] = f->distance[i] + 1;
            f->queue[tail++] = to;
        }
    }
    return RUN_NONE;
}

static void keep_cycle(search *f, uint32_t start, uint32_t closing)
{
    orr__stall *st = f->st;
    uint32_t at = st->sorted[closing].from, k = f->distance[at] + 1;
    st->cycle_length = k;
    st->cycle[--k] = closing;
    while (at != start) {
        const uint32_t e = f->came_by[at];
        st->cycle[--k] = e;
        at = st->sorted[e].from;
    }
}

static bool is_before(const orr__wait *a, const orr__wait *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

/* Rotates it to begin with the lowest rank. */
static bool turn_cycle(orr__stall *st)
{
    const uint32_t n = st->cycle_length;
    uint32_t first = 0, *turned = orr_arena_new(st->arena, n, uint32_t);
    for (uint32_t i = 1; i < n; i++)
        if (is_before(&st->waits[st->sorted[st->cycle[i]].from],
                      &st->waits[st->sorted[st->cycle[first]].from]))
            first = i;
    for (uint32_t i = 0; turned && i < n; i++)
        turned[i] = st->cycle[(first + i) % n];
    st->cycle = turned;
    return turned || n == 0;
}

/* If the budget is exhausted before any cycle is found: follow first edges until one repeats. */
static void any_cycle(search *f, uint32_t start)
{
    orr__stall *st = f->st;
    memset(f->seen, 0, st->wait_count * sizeof *f->seen);
    uint32_t at = start;
    while (!f->seen[at]) {
        f->seen[at] = 1;
        at = st->sorted[st->edge_first[at]].to;
    }
    const uint32_t first = at;
    do {
        st->cycle[st->cycle_length++] = st->edge_first[at];
        at = st->sorted[st->edge_first[at]].to;
    } while (at != first);
}

static bool find_wait_cycle(orr__stall *st, const bool *is_explained)
{
    const size_t n = st->wait_count;
    search f = {.st = st,
                .is_explained = is_explained,
                .seen = orr_arena_new(st->arena, n, uint32_t),
                .came_by = orr_arena_new(st->arena, n, uint32_t),
                .distance = orr_arena_new(st->arena, n, uint32_t),
                .queue = orr_arena_new(st->arena, n, uint32_t)};
    uint32_t best = RUN_NONE, any = RUN_NONE;
    st->cycle = orr_arena_new(st->arena, n, uint32_t);
    if (!f.seen || !f.came_by || !f.distance || !f.queue || !st->cycle)
        return false;
    for (uint32_t i = 0; i < n && best > 2 && f.steps <= MOST_STEPS; i++) {
        if (is_explained[i])
            continue;
        any = any == RUN_NONE ? i : any;
        const uint32_t closing = closing_edge(&f, i, best);
        if (closing == RUN_NONE)
            continue;
        keep_cycle(&f, i, closing);
        best = st->cycle_length;
    }
    if (any != RUN_NONE && st->cycle_length == 0)
        any_cycle(&f, any);
    return turn_cycle(st);
}

static bool stall_find_causes(orr__stall *st)
{
    bool *is_explained = orr_arena_new(st->arena, st->wait_count, bool);
    return is_explained && sort_edges(st) && mark_explained(st, is_explained) &&
           find_wait_cycle(st, is_explained);
}

/* ======== The report: causes, the cycle, and waiting ranks, with equal ranks grouped.
 *
 * Ranks are equal if they wait in a node of the same id and name, for the same kind and amount; the
 * peer may differ, as in a ring.  A collective counts once per rank, by its first chunk.  Texts are
 * made only for reported items, so their cost does not grow with the ranks. */

enum { MOST_ITEMS = 64, MOST_CAUSE_LINES = 3, MOST_CYCLE = 4, MOST_LINES = 20 };

/* A wait with its sort keys. */
typedef struct entry {
    uint32_t wait, rank;
    uint64_t since; /* the tick its node started */
    orr_stall_cause cause;
    orr__wait_type type;
    uint64_t node, size, amount; /* id; of the message; of the collective */
    uint32_t tag;
    int comm_type;
    orr_str name, group;
} entry;

static int compare_text(orr_str a, orr_str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

#define BY(member)              \
    if (x->member != y->member) \
    return x->member < y->member ? -1 : 1

static int compare_kind(const entry *x, const entry *y)
{
    BY(cause);
    BY(type);
    BY(node);
    BY(tag);
    BY(size);
    BY(comm_type);
    BY(amount);
    const int c = compare_text(x->name, y->name);
    return c ? c : compare_text(x->group, y->group);
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int c = compare_kind(x, y);
    if (c)
        return c;
    BY(rank);
    BY(wait);
    return 0;
}

static entry entry_of(const orr__stall *st, uint32_t wait)
{
    const orr__wait *w = &st->waits[wait];
    const run_npu *n = &st->sim->npus[w->rank];
    const orr_trace *t = n->graph->t;
    const uint32_t i = orr__index_of(n, w->place);
    const bool is_message = w->type == ORR__WAIT_MESSAGE || w->type == ORR__WAIT_RECEIVER;
    const msg_unmatched *m = is_message ? &st->messages[w->message] : NULL;
    return (entry){.wait = wait,
                   .rank = w->rank,
                   .since = w->type == ORR__WAIT_STARVED ? ORR_NEVER - 1 : n->started_at[w->place],
                   .cause = w->cause,
                   .type = w->type,
                   .node = t->columns.id[i] + orr_set_id_shift(st->sim->set, w->rank),
                   .size = m ? m->size : 0,
                   .tag = m ? m->tag : 0,
                   .amount =
                       is_message ? 0 : (uint64_t)orr__value_of(n, w->place, t->columns.comm_size),
                   .comm_type = is_message ? -1 : orr__comm_type_of(n, w->place),
                   .name = orr_trace_name(t, i),
                   .group = sys_node_group_name(n, w->place)};
}

/* Entries [first, end) of the sorted list are equal. */
typedef struct run {
    uint32_t first, end, rank_count;
    uint64_t since; /* the earliest */
} run;

typedef struct table {
    entry *entries;
    run *runs;
    uint32_t run_count, rank_count; /* ranks: summed over the runs */
} table;

/* The earliest first; unexplained ones last. */
static int compare_runs(const void *a, const void *b, void *context)
{
    const table *t = context;
    const run *x = a, *y = b;
    const entry *p = &t->entries[x->first], *q = &t->entries[y->first];
    const bool x_unknown = p->cause == ORR_STALL_UNKNOWN, y_unknown = q->cause == ORR_STALL_UNKNOWN;
    if (x_unknown != y_unknown)
        return x_unknown ? 1 : -1;
    BY(since);
    if (p->rank != q->rank)
        return p->rank < q->rank ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Causes are equal if the cause is the same; waits, whatever their cause. */
static bool make_table(
    orr__stall *st, const uint32_t *waits, uint32_t count, bool is_causes, table *out)
{
    *out = (table){.entries = orr_arena_new(st->arena, count, entry),
                   .runs = orr_arena_new(st->arena, count, run)};
    if (count == 0)
        return true;
    if (!out->entries || !out->runs)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        out->entries[i] = entry_of(st, waits[i]);
        if (!is_causes)
            out->entries[i].cause = ORR_STALL_NONE;
    }
    orr_sort(out->entries, count, sizeof *out->entries, compare_entries);
    for (uint32_t i = 0, next; i < count; i = next) {
        run r = {.first = i, .rank_count = 1, .since = out->entries[i].since};
        for (next = i + 1; next < count && !compare_kind(&out->entries[i], &out->entries[next]);
             next++) {
            r.rank_count += out->entries[next].rank != out->entries[next - 1].rank;
            if (out->entries[next].since < r.since)
                r.since = out->entries[next].since;
        }
        r.end = next;
        out->rank_count += r.rank_count;
        out->runs[out->run_count++] = r;
    }
    qsort_r(out->runs, out->run_count, sizeof *out->runs, compare_runs, out);
    return true;
}

/* ---- items ---- */

static const char *keep_text(orr__stall *st, orr_buf *b)
{
    const char *text =
        b->failed ? NULL : orr_arena_text(st->arena, (orr_str){(const char *)b->ptr, b->len});
    st->failed |= !text;
    orr_buf_fini(b);
    *b = (orr_buf){0};
    return text ? text : "";
}

static const char *ranks_text(orr__stall *st, const table *t, const run *r)
{
    orr_buf b = {0};
    for (uint32_t i = r->first, next; i < r->end; i = next) {
        const uint32_t first = t->entries[i].rank;
        uint32_t last = first;
        for (next = i + 1; next < r->end && t->entries[next].rank <= last + 1; next++)
            last = t->entries[next].rank;
        orr_buf_print(&b, "%s%u", i > r->first ? ", " : "", first);
        if (last > first)
            orr_buf_print(&b, last == first + 1 ? ", %u" : "-%u", last);
    }
    return keep_text(st, &b);
}

static const char *waits_for(const orr__wait *w)
{
    switch (w->type) {
    case ORR__WAIT_MESSAGE:
        return "message";
    case ORR__WAIT_RECEIVER:
        return "receiver";
    case ORR__WAIT_STREAM:
        return w->stream->is_started ? "collective" : "queue";
    case ORR__WAIT_STARVED:
        return "completion";
    default:
        return "nothing";
    }
}

static void fill_message(const orr__stall *st, const orr__wait *w, orr_stall_item *out)
{
    out->peer = w->peer;
    if (w->message == RUN_NONE)
        return;
    const msg_unmatched *m = &st->messages[w->message];
    out->has_message = true;
    out->tag = msg_trace_tag(m->tag);
    out->size = m->size;
    if (out->peer == RUN_NONE)
        out->peer = m->src == w->rank ? m->dst : m->src;
}

static void fill_collective(orr__stall *st, const orr__wait *w, orr_stall_item *out)
{
    const run_npu *n = &st->sim->npus[w->rank];
    const orr_str group = sys_node_group_name(n, w->place);
    orr_buf b = {0};
    out->is_collective =
        n->graph->t->columns.type[orr__index_of(n, w->place)] == ORR_NODE_COMM_COLL;
    out->group = "";
    out->kind = "";
    if (!out->is_collective)
        return;
    stall_put_name(&b, group);
    out->group = keep_text(st, &b);
    out->kind = stall_kind_name(n, w->place);
    out->collective_size = (uint64_t)orr__value_of(n, w->place, n->graph->t->columns.comm_size);
    out->sequence = orr__stall_sequence(st, w->rank, w->place);
    if (!w->stream)
        return;
    out->has_stream = true;
    out->stream = w->stream->id;
    out->phase = w->stream->phase + 1;
    out->phases = w->stream->phase_count;
    out->dimension =
        w->stream->custom_prefix ? 0 : w->stream->phases[w->stream->phase].dim->position;
}

/* The file of the rank itself, if its bytes are laid out as in the shared trace. */
static orr_where where_of(const orr__stall *st, const orr__wait *w)
{
    const run_npu *n = &st->sim->npus[w->rank];
    const orr_where shared = orr_trace_where(n->graph->t, orr__index_of(n, w->place));
    const char *path = orr_set_id_shift(st->sim->set, w->rank) == 0
                           ? orr_set_rank_path(st->sim->set, w->rank)
                           : NULL;
    return path ? orr_where_byte(path, shared.byte) : shared;
}

static void fill_item(orr__stall *st, uint32_t wait, orr_stall_item *out)
{
    const orr__wait *w = &st->waits[wait];
    const run_npu *n = &st->sim->npus[w->rank];
    const uint32_t i = orr__index_of(n, w->place);
    orr_buf b = {0};
    *out = (orr_stall_item){.cause = w->cause,
                            .first_rank = w->rank,
                            .rank_count = 1,
                            .node = n->graph->t->columns.id[i] +
                                    orr_set_id_shift(st->sim->set, w->rank),
                            .where = where_of(st, w),
                            .waits_for = waits_for(w)};
    stall_put_name(&b, orr_trace_name(n->graph->t, i));
    out->name = keep_text(st, &b);
    fill_message(st, w, out);
    fill_collective(st, w, out);
}

/* The object of a wait, and why it does not come.  A statement about one of several ranks says
 * which. */
static const char *wait_text(orr__stall *st, uint32_t wait, uint32_t edge, bool is_one_of_many)
{
    orr_buf b = {0};
    const orr__wait *w = &st->waits[wait];
    if (is_one_of_many && w->type != ORR__WAIT_NOTHING && w->type != ORR__WAIT_STARVED)
        orr_buf_print(&b, "rank %u: ", w->rank);
    stall_put_wait(&b, st, w);
    if (edge != RUN_NONE) {
        orr_buf_text(&b, "; ");
        stall_put_edge(&b, st, &st->sorted[edge]);
    }
    return keep_text(st, &b);
}

static const char *place_text(orr__stall *st, uint32_t wait)
{
    orr_buf b = {0};
    stall_put_node(&b, st, &st->waits[wait]);
    stall_put_what(&b, st, &st->waits[wait]);
    return keep_text(st, &b);
}

static const char *cause_text(orr__stall *st, uint32_t wait)
{
    orr_buf b = {0};
    stall_put_cause(&b, st, &st->waits[wait]);
    return keep_text(st, &b);
}

static orr_stall_item *make_items(orr__stall *st, const table *t, bool is_causes, size_t *count)
{
    const uint32_t n = t->run_count < MOST_ITEMS ? t->run_count : MOST_ITEMS;
    orr_stall_item *items = orr_arena_new(st->arena, n, orr_stall_item);
    st->failed |= n && !items;
    *count = n;
    for (uint32_t i = 0; i < n && !st->failed; i++) {
        const uint32_t wait = t->entries[t->runs[i].first].wait;
        fill_item(st, wait, &items[i]);
        items[i].ranks = ranks_text(st, t, &t->runs[i]);
        items[i].rank_count = t->runs[i].rank_count;
        items[i].place = place_text(st, wait);
        const bool is_many = t->runs[i].rank_count > 1;
        const bool has_cause = st->waits[wait].cause != ORR_STALL_NONE;
        items[i].text =
            is_causes ? cause_text(st, wait)
                      : wait_text(st, wait, has_cause ? RUN_NONE : st->edge_first[wait], is_many);
    }
    return items;
}

/* ---- the cycle ---- */

static orr_stall_cause cycle_cause(const orr__stall *st)
{
    orr_stall_cause cause = ORR_STALL_CYCLE;
    for (uint32_t i = 0; i < st->cycle_length; i++) {
        const orr__edge_kind kind = st->sorted[st->cycle[i]].kind;
        if (kind == ORR__EDGE_COMPLETION)
            return ORR_STALL_NOTHING_IN_FLIGHT;
        if (kind == ORR__EDGE_QUEUE)
            cause = ORR_STALL_CHUNK_ORDER;
    }
    return cause;
}

static void put_cycle_ranks(orr_buf *b, const orr__stall *st)
{
    enum { MOST_SHOWN = 6 };
    const uint32_t first = st->waits[st->sorted[st->cycle[0]].from].rank;
    uint32_t last = RUN_NONE, shown = 0;
    for (uint32_t i = 0; i < st->cycle_length; i++) {
        const uint32_t rank = st->waits[st->sorted[st->cycle[i]].from].rank;
        if (rank == last || (rank == first && shown) || shown > MOST_SHOWN)
            continue;
        last = rank;
        if (shown++ == MOST_SHOWN)
            orr_buf_text(b, ", ...");
        else
            orr_buf_print(b, "%s%u", shown > 1 ? ", " : "", rank);
    }
}

static const char *cycle_text(orr__stall *st, orr_stall_cause cause)
{
    orr_buf b = {0};
    if (cause == ORR_STALL_NOTHING_IN_FLIGHT) {
        orr_buf_text(&b, stall_cause_words(cause));
        return keep_text(st, &b);
    }
    orr_buf_text(&b, "ranks ");
    put_cycle_ranks(&b, st);
    orr_buf_text(&b, cause == ORR_STALL_CHUNK_ORDER
                         ? " run chunks in different orders and wait for each other"
                         : " wait for each other");
    return keep_text(st, &b);
}

static orr_stall_item *make_cycle(orr__stall *st)
{
    const uint32_t n = st->cycle_length < MOST_ITEMS ? st->cycle_length : MOST_ITEMS;
    orr_stall_item *items = orr_arena_new(st->arena, n, orr_stall_item);
    st->failed |= n && !items;
    for (uint32_t i = 0; i < n && !st->failed; i++) {
        const orr__edge *e = &st->sorted[st->cycle[i]];
        /* Of all its messages, the one on the cycle. */
        if (e->message != RUN_NONE && st->waits[e->from].type == ORR__WAIT_STREAM)
            st->waits[e->from].message = e->message;
        fill_item(st, e->from, &items[i]);
        items[i].place = place_text(st, e->from);
        items[i].text = wait_text(st, e->from, st->cycle[i], false);
        items[i].ranks = orr_arena_print(st->arena, "%u", items[i].first_rank);
        st->failed |= !items[i].ranks;
    }
    return items;
}

/* ---- lines ---- */

typedef struct lines {
    orr__stall *st;
    const char **texts;
    size_t count;
} lines;

static void add_line(lines *l, const char *fmt, ...) ORR_PRINTF(2, 3);
static void add_line(lines *l, const char *fmt, ...)
{
    char text[1000];
    va_list args;
    if (l->count >= MOST_LINES)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    l->texts[l->count] = orr_arena_text(l->st->arena, orr_str_of(text));
    l->st->failed |= !l->texts[l->count];
    l->count += l->texts[l->count] != NULL;
}

/* "rank 3", "ranks 0-3, 8", truncated to fit. */
static const char *who(const orr_stall_item *item, char *out, size_t size)
{
    enum { LONGEST = 40 };
    const char *plural = item->rank_count == 1 ? "" : "s";
    const size_t n = strlen(item->ranks);
    size_t cut = n;
    if (n > LONGEST) {
        cut = LONGEST;
        while (cut > 0 && item->ranks[cut] != ',')
            cut--;
    }
    if (cut == n)
        snprintf(out, size, "rank%s %s", plural, item->ranks);
    else
        snprintf(out, size, "ranks %.*s, ... (%u of them)", (int)cut, item->ranks,
                 item->rank_count);
    return out;
}

static void tell_cycle(lines *l, const orr_stall *r)
{
    if (!r->cycle_length)
        return;
    add_line(l, "cause: %s; each of these waits for the next, and the last for the first:",
             cycle_text(l->st, cycle_cause(l->st)));
    const size_t most = r->cycle_length <= MOST_CYCLE ? r->cycle_length : MOST_CYCLE - 1;
    for (size_t i = 0; i < most; i++) {
        add_line(l, "  rank %u, %s", r->cycle[i].first_rank, r->cycle[i].place);
        add_line(l, "    %s", r->cycle[i].text);
    }
    if (most < r->cycle_length)
        add_line(l, "  ... %zu more", r->cycle_length - most);
    /* An artefact of the model, not of the workload: libraries on real machines agree on an
     * order. */
    if (cycle_cause(l->st) == ORR_STALL_CHUNK_ORDER && l->st->sim->rules == &run_rules_ours)
        add_line(l,
                 "  each rank chooses its own order of chunks, as in ASTRA-sim; \"chunk-order\": "
                 "\"agreed\" in the system file gives all of them one order");
}

static void tell_waits(lines *l, const orr_stall *r)
{
    char name[120];
    uint64_t left = r->waits_left_out;
    size_t i = 0;
    add_line(l, "waiting:");
    for (; i < r->wait_count && l->count + 2 < MOST_LINES; i++) {
        const orr_where *at = &r->waits[i].where;
        char byte[40] = "";
        if (at->byte != ORR_NO_BYTE)
            snprintf(byte, sizeof byte, ": byte %" PRIu64, at->byte);
        add_line(l, "  %s, %s [%s%s]", who(&r->waits[i], name, sizeof name), r->waits[i].place,
                 at->path, byte);
        add_line(l, "    %s", r->waits[i].text);
    }
    for (; i < r->wait_count; i++)
        left += r->waits[i].rank_count;
    if (left)
        add_line(l, "  ... and %" PRIu64 " more waits", left);
}

static bool tell(orr__stall *st)
{
    orr_stall *r = &st->result;
    char name[120];
    lines l = {.st = st, .texts = orr_arena_new(st->arena, MOST_LINES, const char *)};
    if (!l.texts)
        return false;
    for (size_t i = 0; i < r->cause_count && i < MOST_CAUSE_LINES; i++)
        add_line(&l, "cause: %s [%s, node %" PRIu64 " \"%s\"]", r->causes[i].text,
                 who(&r->causes[i], name, sizeof name), r->causes[i].node, r->causes[i].name);
    if (r->cause_count > MOST_CAUSE_LINES)
        add_line(&l, "... and %zu more causes", r->cause_count - MOST_CAUSE_LINES);
    tell_cycle(&l, r);
    tell_waits(&l, r);
    r->lines = l.texts;
    r->line_count = l.count;
    return !st->failed;
}

/* Of the messages that a rank waits for, one with a cause, or else that of the first node. */
static bool is_told_before(const orr__wait *a, const orr__wait *b)
{
    const bool a_has_cause = a->cause != ORR_STALL_NONE, b_has_cause = b->cause != ORR_STALL_NONE;
    return a_has_cause != b_has_cause ? a_has_cause : a->place < b->place;
}

/* What is reported per rank: its collective, by the first chunk; one message; anything else. */
static uint32_t *pick_waits(orr__stall *st, uint32_t *count)
{
    uint32_t *picked = orr_arena_new(st->arena, st->wait_count, uint32_t);
    uint32_t *told =
        orr_arena_new(st->arena, st->sim->npu_count, uint32_t); /* 1 + a place in picked */
    *count = 0;
    if (!picked || !told)
        return NULL;
    for (uint32_t i = 0; i < st->wait_count; i++) {
        const orr__wait *w = &st->waits[i];
        const bool is_message = w->type == ORR__WAIT_MESSAGE || w->type == ORR__WAIT_RECEIVER;
        uint32_t *before = &told[w->rank];
        if (w->type == ORR__WAIT_STREAM &&
            orr_map_find(st->by_place, stall_key(w->rank, w->place), RUN_NONE) != i)
            continue;
        if (is_message && *before) {
            if (is_told_before(w, &st->waits[picked[*before - 1]]))
                picked[*before - 1] = i;
            continue;
        }
        picked[(*count)++] = i;
        if (is_message)
            *before = *count;
    }
    return picked;
}

/* Further messages; further chunks of a collective are not counted. */
static size_t count_untold(const orr__stall *st, uint32_t told)
{
    size_t count = 0;
    for (uint32_t i = 0; i < st->wait_count; i++)
        count += st->waits[i].type != ORR__WAIT_STREAM ||
                 orr_map_find(st->by_place, stall_key(st->waits[i].rank, st->waits[i].place),
                              RUN_NONE) == i;
    return count - told;
}

static const char *summary_text(orr__stall *st, orr_stall_cause cause, const table *roots)
{
    orr_buf b = {0};
    if (roots->run_count == 0 && st->cycle_length)
        return cycle_text(st, cause);
    if (roots->run_count)
        stall_put_label(&b, st, &st->waits[roots->entries[roots->runs[0].first].wait]);
    else
        orr_buf_text(&b, stall_cause_words(cause));
    return keep_text(st, &b);
}

static bool stall_make_items(orr__stall *st)
{
    orr_stall *r = &st->result;
    table roots, waits;
    uint32_t count;
    uint32_t *picked = pick_waits(st, &count);
    if ((!picked && st->wait_count) || !make_table(st, st->roots, st->root_count, true, &roots) ||
        !make_table(st, picked, count, false, &waits))
        return false;
    r->ranks = st->sim->npu_count;
    r->unfinished = r->ranks - st->sim->finished;
    r->causes = make_items(st, &roots, true, &r->cause_count);
    r->cycle_length = st->cycle_length;
    r->cycle_count = st->cycle_length < MOST_ITEMS ? st->cycle_length : MOST_ITEMS;
    r->cycle = make_cycle(st);
    r->waits = make_items(st, &waits, false, &r->wait_count);
    if (st->failed)
        return false;
    r->waits_left_out = waits.rank_count + count_untold(st, count);
    for (size_t i = 0; i < r->wait_count; i++)
        r->waits_left_out -= r->waits[i].rank_count;
    r->cause = r->cause_count     ? r->causes[0].cause
               : st->cycle_length ? cycle_cause(st)
                                  : ORR_STALL_UNKNOWN;
    r->summary = summary_text(st, r->cause, &roots);
    return tell(st);
}

static void free_scratch(struct orr__stall *st)
{
    orr_map_destroy(st->by_place);
    orr_map_destroy(st->by_stream);
    orr_map_destroy(st->by_tag);
    orr_map_destroy(st->starved);
    orr_map_destroy(st->resolved);
    orr_free(st->waits);
    orr_free(st->edges);
    st->by_place = st->by_stream = st->by_tag = st->starved = st->resolved = NULL;
    st->waits = NULL;
    st->edges = NULL;
}

void orr__stall_destroy(struct orr__stall *st)
{
    if (!st)
        return;
    free_scratch(st);
    orr_arena_destroy(st->arena);
    orr_free(st);
}

static struct orr__stall *analyse(orr_sim *s)
{
    struct orr__stall *st = orr_alloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->sim = s;
    st->arena = orr_arena_create();
    if (st->arena && orr__stall_collect(st) && orr__stall_link_messages(st) &&
        orr__stall_link_streams(st) && stall_find_causes(st) && stall_make_items(st)) {
        free_scratch(st);
        return st;
    }
    orr__stall_destroy(st);
    return NULL;
}

const char *const *orr__stall_lines(orr_sim *s, size_t *count)
{
    const orr_stall *stall = orr_sim_stall(s);
    *count = stall ? stall->line_count : 0;
    return stall ? stall->lines : NULL;
}

const orr_stall *orr_sim_stall(orr_sim *s)
{
    uint64_t tick;
    /* A folded run has other event queues, and a stalled one is rerun with every rank: this one was
     * stopped. */
    if (!s->has_started || s->code || s->fold || s->finished == s->npu_count ||
        clk_next_tick(s->clock, &tick))
        return NULL;
    if (!s->stall)
        s->stall = analyse(s);
    return s->stall ? &s->stall->result : NULL;
}

const orr_stall *orr__stall_known(const orr_sim *s)
{
    return s->stall ? &s->stall->result : NULL;
}

orr_code orr__explain_stall(orr_sim *s, orr_error *err)
{
    const orr_stall *r = orr_sim_stall(s);
    if (!r)
        return orr_no_memory(err);
    const orr_stall_item *at = r->cause_count ? r->causes : r->cycle_count ? r->cycle : r->waits;
    const bool has_place = r->cause_count || r->cycle_count || r->wait_count;
    return orr_fail(err, ORR_EINPUT, has_place ? &at->where : NULL,
                    "deadlock: %u of %u ranks have not finished: %s", r->unfinished, r->ranks,
                    r->summary);
}
