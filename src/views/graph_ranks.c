/* SPDX-License-Identifier: Apache-2.0 */
/* graph_ranks.c - several ranks in one drawing: their traces joined to one, with an arrow for each
 * message.
 *
 *     rank 0  [ a ] -> [ send ]            ids of rank r are moved behind those of the ranks before it;
 *                          :               a receive gets a control dependency on its send
 *     rank 1          [ receive ] -> [ b ]
 *
 * The n-th receive of a rank from a peer with a tag belongs to the n-th send of that peer to it
 * with that tag, in the order of their files: the order in which they are run may be another, but a
 * drawing shows what fits. Cost: O(n log n) time, and memory for a second copy of the traces. */
#include "graph_view_impl.h"

#include "base/options.h"
#include <stdlib.h>

enum { MOST_NODES = 1 << 22 };

/* A send or a receive. */
typedef struct message {
    uint32_t src, dst;
    int64_t tag;
    uint64_t id; /* in the joined trace */
} message;

typedef struct joiner {
    const orr_set *set;
    orr_trace *t;
    orr_error *err;
    message *sends, *receives;
    size_t send_count, send_room, receive_count, receive_room;
    uint64_t *first_id; /* by rank: what is added to its ids */
    uint32_t *rank_of;
    size_t rank_room;
    uint32_t count;
} joiner;

static int compare_messages(const void *a, const void *b)
{
    const message *x = a, *y = b;
    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    if (x->dst != y->dst)
        return x->dst < y->dst ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* ---- messages ---- */

static bool note_message(joiner *j, const orr_columns *c, uint32_t rank, uint32_t i)
{
    const bool is_send = c->type[i] == ORR_NODE_COMM_SEND;
    const int64_t *column = is_send ? c->comm_dst : c->comm_src;
    if ((!is_send && c->type[i] != ORR_NODE_COMM_RECV) || !column || column[i] < 0 ||
        column[i] >= UINT32_MAX)
        return true;
    const uint32_t peer = (uint32_t)column[i];
    const message m = {.src = is_send ? rank : peer,
                       .dst = is_send ? peer : rank,
                       .tag = c->comm_tag ? c->comm_tag[i] : 0,
                       .id = c->id[i] + j->first_id[rank]};
    message **list = is_send ? &j->sends : &j->receives;
    size_t *count = is_send ? &j->send_count : &j->receive_count;
    if (!orr_grow(list, is_send ? &j->send_room : &j->receive_room, *count + 1))
        return false;
    (*list)[(*count)++] = m;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    const message *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Receives get the ids of their sends, as tags, and are then found by their own ids. */
static void match(joiner *j)
{
    if (j->send_count)
        qsort(j->sends, j->send_count, sizeof *j->sends, compare_messages);
    if (j->receive_count)
        qsort(j->receives, j->receive_count, sizeof *j->receives, compare_messages);
    size_t s = 0, kept = 0;
    for (size_t r = 0; r < j->receive_count; r++) {
        message key = j->receives[r];
        key.id = 0;
        while (s < j->send_count && compare_messages(&j->sends[s], &key) < 0)
            s++;
        const bool is_it = s < j->send_count && j->sends[s].src == key.src &&
                           j->sends[s].dst == key.dst && j->sends[s].tag == key.tag;
        if (is_it)
            j->receives[kept++] =
                (message){.tag = (int64_t)j->sends[s++].id, .id = j->receives[r].id};
    }
    j->receive_count = kept;
    if (kept)
        qsort(j->receives, kept, sizeof *j->receives, compare_ids);
}

/* ---- both passes over the ranks ---- */

typedef orr_code (*rank_visit)(joiner *j, uint32_t rank, const orr_trace *t);

static orr_code for_ranks(joiner *j, rank_visit visit)
{
    orr_code code = ORR_OK;
    for (uint32_t rank = 0; rank < orr_set_rank_count(j->set) && !code; rank++) {
        const orr_trace *t;
        orr_trace *owned = NULL;
        code = orr_set_rank_trace(j->set, rank, &t, &owned, j->err);
        if (!code)
            code = visit(j, rank, t);
        orr_trace_destroy(owned);
    }
    return code;
}

static orr_code look(joiner *j, uint32_t rank, const orr_trace *t)
{
    const orr_columns *c = orr_trace_columns(t);
    uint64_t most = 0;
    if (c->count > MOST_NODES - j->count)
        return orr_fail(j->err, ORR_EUSAGE, NULL,
                        "more than %d nodes in one drawing: choose a rank with --rank", MOST_NODES);
    j->count += c->count;
    for (uint32_t i = 0; i < c->count; i++) {
        most = c->id[i] > most ? c->id[i] : most;
        if (!note_message(j, c, rank, i))
            return orr_no_memory(j->err);
    }
    if (most >= UINT64_MAX - j->first_id[rank])
        return orr_fail(j->err, ORR_EINPUT, NULL, "rank %u: its ids are too large to be joined",
                        rank);
    j->first_id[rank + 1] = j->first_id[rank] + most + 1;
    return ORR_OK;
}

/* Dependencies moved by `by`, and one more behind them; NULL: no memory. */
static uint64_t *move_deps(orr_arena *a, orr_list deps, uint64_t by, uint64_t more, size_t *count)
{
    size_t n = 0;
    orr_value v;
    for (orr_list it = deps; orr_list_next(&it, &v);)
        n++;
    uint64_t *out = orr_arena_new(a, n + 1, uint64_t);
    *count = 0;
    for (orr_list it = deps; out && orr_list_next(&it, &v);)
        out[(*count)++] = v.u + by;
    if (out && more)
        out[(*count)++] = more - 1;
    return out;
}

static orr_code copy_node(joiner *j, uint32_t rank, const orr_node *node, orr_arena *a)
{
    const uint64_t by = j->first_id[rank];
    const message key = {.id = node->id + by};
    const message *m = j->receive_count
                           ? bsearch(&key, j->receives, j->receive_count, sizeof key, compare_ids)
                           : NULL;
    orr_edit edit = {.sets_id = true, .id = key.id, .sets_data_deps = true, .sets_ctrl_deps = true};
    edit.data_deps = move_deps(a, orr_node_data_deps(node), by, 0, &edit.data_count);
    edit.ctrl_deps =
        move_deps(a, orr_node_ctrl_deps(node), by, m ? (uint64_t)m->tag + 1 : 0, &edit.ctrl_count);
    if (!edit.data_deps || !edit.ctrl_deps)
        return orr_no_memory(j->err);
    return orr_trace_copy(j->t, node, &edit, j->err);
}

static orr_code copy(joiner *j, uint32_t rank, const orr_trace *t)
{
    const uint32_t count = orr_trace_columns(t)->count;
    orr_arena *a = orr_arena_create();
    orr_code code = a && orr_grow(&j->rank_of, &j->rank_room, (size_t)j->count + count)
                        ? ORR_OK
                        : orr_no_memory(j->err);
    for (uint32_t i = 0; i < count && !code; i++) {
        orr_node node;
        orr_trace_node(t, i, &node);
        j->rank_of[j->count++] = rank;
        code = copy_node(j, rank, &node, a);
        orr_arena_reset(a);
    }
    orr_arena_destroy(a);
    return code;
}

static orr_code join(joiner *j)
{
    j->first_id = orr_alloc((size_t)orr_set_rank_count(j->set) + 1, sizeof *j->first_id);
    orr_code code = j->first_id ? for_ranks(j, look) : orr_no_memory(j->err);
    if (code)
        return code;
    match(j);
    j->count = 0;
    if ((code = orr_trace_create(NULL, &j->t, j->err)) || (code = for_ranks(j, copy)))
        return code;
    return orr_trace_seal(j->t, j->err);
}

orr_code orr_view_graph_ranks(const orr_set *set,
                              const char *path,
                              const orr_view_graph_options *opt,
                              orr_view_graph_result *result,
                              orr_error *err)
{
    joiner j = {.set = set, .err = err};
    orr_view_graph_options all;
    orr_code code = ORR__TAKE_OPTIONS(&all, opt, orr_view_graph_options, err);
    if (!code)
        code = join(&j);
    all.cluster = ORR_CLUSTER_RANK;
    all.rank_of = j.rank_of;
    if (!code)
        code = orr_view_graph(j.t, path, &all, result, err);
    orr_trace_destroy(j.t);
    orr_free(j.sends);
    orr_free(j.receives);
    orr_free(j.first_id);
    orr_free(j.rank_of);
    return code;
}
