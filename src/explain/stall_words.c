/* SPDX-License-Identifier: Apache-2.0 */
/* stall_words.c - a wait, its cause and what it waits for, in words.
 *
 * Each function appends to a text; stall_items.c decides what is said, and of how many ranks at
 * once. */
#include "stall_impl.h"

#include <inttypes.h>

static const run_npu *npu_of(const orr__stall *st, uint32_t rank)
{
    return &st->sim->npus[rank];
}

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
        "circle",
        "lost_message",
        "unknown",
    };
    return cause < ORR_STALL_CAUSES ? names[cause] : "unknown";
}

const char *orr__stall_cause_words(orr_stall_cause cause)
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

/* A name as it may be printed: short, no control characters, whole characters. */
void orr__stall_put_name(orr_buf *b, orr_str name)
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
    orr__stall_put_name(b, orr_trace_name(n->graph->t, i));
    orr_buf_byte(b, '"');
}

const char *orr__stall_kind_name(const run_npu *n, uint32_t place)
{
    const int type = orr__comm_type_of(n, place);
    const char *name = type < 0 ? NULL : orr_collective_name((uint32_t)type);
    return name ? name : "collective";
}

static void put_collective(orr_buf *b, const run_npu *n, uint32_t place)
{
    const orr_str group = sys_node_group_name(n, place);
    orr_buf_print(b, "%s of %" PRIu64 " bytes", orr__stall_kind_name(n, place),
                  (uint64_t)orr__value_of(n, place, n->graph->t->columns.comm_size));
    if (group.len) {
        orr_buf_text(b, " in group ");
        orr__stall_put_name(b, group);
    }
}

/* ---- for what ---- */

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
    if (m->tag < MSG_TAG_SPACE)
        orr_buf_print(b, " with tag %u", m->tag);
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

void orr__stall_put_node(orr_buf *b, const orr__stall *st, const orr__wait *w)
{
    put_node(b, npu_of(st, w->rank), w->place);
}

void orr__stall_put_what(orr_buf *b, orr__stall *st, const orr__wait *w)
{
    const run_npu *n = npu_of(st, w->rank);
    if (n->graph->t->columns.type[orr__index_of(n, w->place)] != ORR_NODE_COMM_COLL)
        return;
    orr_buf_text(b, ": ");
    put_collective(b, n, w->place);
    if (w->type != ORR__WAIT_STARVED)
        orr_buf_print(b, ", collective %u", orr__stall_sequence(st, w->rank, w->place));
}

void orr__stall_put_wait(orr_buf *b, const orr__stall *st, const orr__wait *w)
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

/* ---- who keeps it waiting ---- */

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

void orr__stall_put_edge(orr_buf *b, const orr__stall *st, const orr__edge *e)
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
                  w->other == RUN_NONE ? "is to send" : "sends", send.size, send.tag, send.dst);
    if (w->cause == ORR_STALL_SIZE_MISMATCH)
        orr_buf_print(b, "which receives %" PRIu64 " bytes", receive.size);
    else
        orr_buf_print(b, "which receives them with tag %u", receive.tag);
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
                      w->peer, m->size, m->tag, w->rank);
    else
        orr_buf_print(b,
                      "missing partner: rank %u never sends the %" PRIu64
                      " bytes with tag %u that rank %u receives",
                      w->peer, m->size, m->tag, w->rank);
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

/* The parent that made node i free without completing. */
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

/* A node of the cycle that going up from `place` ends in, or NONE: one goes twice as fast as the
 * other until they meet. */
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

/* The same in a few words, for the one line of an error. */
void orr__stall_put_label(orr_buf *b, const orr__stall *st, const orr__wait *w)
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
        orr_buf_text(b, orr__stall_cause_words(w->cause));
    }
}

/* Recorded with PyTorch by a back end that does not say in which group a collective was. */
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

void orr__stall_put_cause(orr_buf *b, orr__stall *st, const orr__wait *w)
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
