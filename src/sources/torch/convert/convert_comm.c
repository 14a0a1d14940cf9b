/* SPDX-License-Identifier: Apache-2.0 */
/* convert_comm.c - kind, size, peers and group of each communication.
 *
 * No one place says it all.  The kernel knows its kind, and in newer traces the rest; the annotation around it has
 * the tensors, record_param_comms the group, the operator the peer and the tag.  So the witnesses of a call
 * are heard in turn, from the inside out, and the first that says something counts.
 *
 * A size is what a rank has before the collective: the input, whatever the kind (docs/design/collectives.md). */
#include "conversion.h"

#include "base/text/text.h"

enum { WITNESSES = 8, LEVELS = 12 };

typedef struct hearing {
    const conv_state *c;
    uint32_t place;
    uint32_t witness[WITNESSES]; /* places, from the inside out */
    int count;
    linked_comm known;     /* all attributes together */
    int64_t rank_in_group; /* of the peer or root; -1 */
    int64_t tag;
} hearing;

/* ---- who knows something ---- */

static void call_witness(hearing *h, uint32_t place)
{
    if (h->count < WITNESSES)
        h->witness[h->count++] = place;
}

/* The node, the calls around it, and the operator it was paired with. */
static void call_witnesses(hearing *h)
{
    const conv_state *c = h->c;
    const bool is_call = c->role[h->place] == CONV_CALL;
    uint32_t up = c->parent[h->place];
    call_witness(h, h->place);
    for (int level = 0; level < LEVELS && up != CONV_NONE; level++, up = c->parent[up]) {
        const bool is_first = level == 0 && !is_call; /* a kernel's operator has its tensors */
        if (is_first || conv_is_call_name(conv_node(c, up)->name))
            call_witness(h, up);
    }
    const uint32_t partner = c->partner[h->place];
    if (is_call && partner != CONV_NONE && c->role[partner] == CONV_HOST)
        call_witness(h, partner);
}

/* ---- attributes ---- */

static void fill_text(orr_str *to, orr_str from)
{
    if (!to->len)
        *to = from;
}

static void fill_number(int64_t *to, int64_t from)
{
    if (*to < 0)
        *to = from;
}

static void hear_attributes(hearing *h, const linked_comm *said)
{
    linked_comm *k = &h->known;
    fill_text(&k->collective, said->collective);
    fill_text(&k->group, said->group);
    fill_text(&k->ranks, said->ranks);
    fill_number(&k->group_size, said->group_size);
    fill_number(&k->rank_start, said->rank_start);
    fill_number(&k->rank_stride, said->rank_stride);
    fill_number(&k->src, said->src);
    fill_number(&k->dst, said->dst);
    fill_number(&h->tag, said->tag);
    if (k->in_elements < 0 && said->in_elements >= 0 && conv_dtype_bytes(said->dtype)) {
        k->in_elements = said->in_elements; /* sizes and their type belong together */
        k->out_elements = said->out_elements;
        k->dtype = said->dtype;
    }
}

/* Operators end with numbers: root or peer, then, of messages, the tag. */
static void hear_operator(hearing *h, const linked_node *n)
{
    int64_t number[2];
    const conv_said said = conv_word_of_call(n->name);
    const bool is_message = said.word == CONV_WORD_SEND || said.word == CONV_WORD_RECV;
    const bool is_rooted = said.word == CONV_WORD_COLLECTIVE &&
                           (said.kind == ORR_COLL_BROADCAST || said.kind == ORR_COLL_REDUCE ||
                            said.kind == ORR_COLL_GATHER || said.kind == ORR_COLL_SCATTER);
    if (!is_message && !is_rooted)
        return;
    const int count = conv_io_numbers(n->inputs, number, 2, h->c->lacks_memory);
    if (count > 0)
        fill_number(&h->rank_in_group, number[0]);
    if (count > 1 && is_message)
        fill_number(&h->tag, number[1]);
}

static void hear_recorded(hearing *h, const linked_node *n)
{
    conv_recorded r;
    if (!conv_io_recorded(n->inputs, &r, h->c->lacks_memory))
        return;
    fill_text(&h->known.collective, r.collective);
    fill_text(&h->known.group, r.group);
    fill_number(&h->rank_in_group, r.rank);
}

static void hear(hearing *h, uint32_t place)
{
    const linked_node *n = conv_node(h->c, place);
    int64_t peer;
    if (n->comm != LINKED_NO_COMM)
        hear_attributes(h, &h->c->l->comms[n->comm]);
    if (n->kind == LINKED_ON_DEVICE)
        return;
    if (conv_peer_in_name(n->name, &peer))
        fill_number(&h->rank_in_group, peer);
    if (orr_str_is(n->name, "record_param_comms"))
        hear_recorded(h, n);
    else if (conv_is_operator_name(n->name))
        hear_operator(h, n);
}

/* ---- kind ---- */

static bool is_definite(conv_said said)
{
    return said.word == CONV_WORD_COLLECTIVE || said.word == CONV_WORD_SEND ||
           said.word == CONV_WORD_RECV;
}

static conv_said said_around(const hearing *h, int from)
{
    for (int i = from; i < h->count; i++) {
        const linked_node *n = conv_node(h->c, h->witness[i]);
        const conv_said said = n->kind == LINKED_ON_DEVICE || !conv_is_call_name(n->name)
                                   ? (conv_said){CONV_WORD_NONE, 0}
                                   : conv_word_of_call(n->name);
        if (is_definite(said))
            return said;
    }
    return (conv_said){CONV_WORD_NONE, 0};
}

static conv_said find_kind(const hearing *h)
{
    const linked_node *n = conv_node(h->c, h->place);
    conv_said said = {CONV_WORD_NONE, 0};
    if (n->kind == LINKED_ON_DEVICE)
        said = conv_word_of_kernel(n->name);
    if (!is_definite(said) && h->known.collective.len)
        said = conv_word_of_call(h->known.collective);
    return is_definite(said) ? said : said_around(h, 0);
}

static bool set_kind(hearing *h, conv_call *call)
{
    const conv_said said = find_kind(h);
    if (said.word == CONV_WORD_SEND || said.word == CONV_WORD_RECV) {
        call->type = said.word == CONV_WORD_SEND ? ORR_NODE_COMM_SEND : ORR_NODE_COMM_RECV;
        return true;
    }
    call->type = ORR_NODE_COMM_COLL;
    call->kind = said.kind;
    if (said.word == CONV_WORD_COLLECTIVE)
        return true;
    call->kind = ORR_COLL_ALL_TO_ALL; /* what sends and receives, and nobody says for what */
    return false;
}

/* ---- size ---- */

/* Operators that have the output in front of the input. */
static int input_argument(const linked_node *n, const conv_call *call)
{
    const bool has_output = call->kind == ORR_COLL_ALL_GATHER ||
                            call->kind == ORR_COLL_REDUCE_SCATTER ||
                            call->kind == ORR_COLL_ALL_TO_ALL || call->kind == ORR_COLL_GATHER ||
                            call->kind == ORR_COLL_SCATTER;
    if (n->name.len < 6 || memcmp(n->name.ptr, "c10d::", 6) != 0)
        return conv_is_operator_name(n->name) ? 0 : -1;
    return call->type == ORR_NODE_COMM_COLL && has_output;
}

static int64_t bytes_of(const linked_node *n, const conv_call *call)
{
    const int argument = input_argument(n, call);
    const int64_t bytes = conv_io_bytes(n->inputs, argument);
    return bytes < 0 && argument > 0 ? conv_io_bytes(n->inputs, 0) : bytes;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* All but the root of a scatter have an output only. */
static int64_t bytes_by_count(const hearing *h, const conv_call *call)
{
    const linked_comm *k = &h->known;
    int64_t elements = k->in_elements;
    if (elements == 0 && call->type == ORR_NODE_COMM_RECV)
        elements = k->out_elements;
    if (elements == 0 && call->type == ORR_NODE_COMM_COLL && k->out_elements > 0) {
        const bool is_scatter = call->kind == ORR_COLL_SCATTER && k->group_size > 0;
        elements = is_scatter                         ? times(k->out_elements, k->group_size)
                   : call->kind == ORR_COLL_BROADCAST ? k->out_elements
                                                      : 0;
    }
    return elements < 0 ? -1 : times(elements, conv_dtype_bytes(k->dtype));
}

static bool set_size(const hearing *h, conv_call *call)
{
    call->bytes = bytes_by_count(h, call);
    for (int i = 0; i < h->count && call->bytes < 0; i++)
        call->bytes = bytes_of(conv_node(h->c, h->witness[i]), call);
    if (call->type == ORR_NODE_COMM_COLL && call->kind == ORR_COLL_BARRIER)
        call->bytes = 0;
    if (call->bytes >= 0)
        return true;
    call->bytes = 0;
    return false;
}

/* ---- peers ---- */

/* From the number in the group to that in the job. */
static int64_t rank_in_job(const hearing *h, int64_t rank)
{
    const linked_group *g = linked_find_group(h->c->l, h->known.group);
    if (rank < 0)
        return -1;
    if (g && g->ranks)
        return rank < g->count ? (int64_t)g->ranks[rank] : -1;
    if (h->known.rank_start >= 0 && h->known.rank_stride > 0)
        return h->known.rank_start + times(h->known.rank_stride, rank);
    return rank;
}

static bool set_peers(const hearing *h, conv_call *call)
{
    const int64_t own = h->c->opt->has_rank ? (int64_t)h->c->opt->rank : h->c->l->rank;
    const int64_t peer = rank_in_job(h, h->rank_in_group);
    call->src = call->dst = -1;
    if (call->type == ORR_NODE_COMM_SEND) {
        call->src = own;
        call->dst = h->known.dst >= 0 ? h->known.dst : peer;
        return call->dst >= 0;
    }
    if (call->type == ORR_NODE_COMM_RECV) {
        call->src = h->known.src >= 0 ? h->known.src : peer;
        call->dst = own;
        return call->src >= 0;
    }
    const int64_t root = h->known.src >= 0 ? h->known.src : peer;
    if (call->kind == ORR_COLL_BROADCAST || call->kind == ORR_COLL_SCATTER)
        call->src = root;
    else if (call->kind == ORR_COLL_REDUCE || call->kind == ORR_COLL_GATHER)
        call->dst = root;
    return true;
}

/* ---- all of it ---- */

static conv_call hear_all(const conv_state *c, uint32_t place)
{
    hearing h = {.c = c, .place = place, .known = linked_no_comm(), .rank_in_group = -1, .tag = -1};
    conv_call call = {0};
    orr_pytorch_report *r = c->report;
    call_witnesses(&h);
    for (int i = 0; i < h.count; i++)
        hear(&h, h.witness[i]);
    r->kinds_unknown += !set_kind(&h, &call);
    r->sizes_unknown += !set_size(&h, &call);
    r->peers_unknown += !set_peers(&h, &call);
    call.tag = h.tag < 0 ? 0 : h.tag;
    call.group = h.known.group;
    r->collectives += call.type == ORR_NODE_COMM_COLL;
    r->messages += call.type != ORR_NODE_COMM_COLL;
    return call;
}

orr_code conv_find_comm(conv_state *c)
{
    for (uint32_t p = 0; p < c->count; p++) {
        c->call[p] = LINKED_NO_COMM;
        if (c->role[p] != CONV_COMM && c->role[p] != CONV_CALL)
            continue;
        if (!orr_grow(&c->calls, &c->call_room, c->call_count + 1))
            return orr_no_memory(c->err);
        c->call[p] = (uint32_t)c->call_count;
        c->calls[c->call_count++] = hear_all(c, p);
    }
    return ORR_OK;
}
