/* SPDX-License-Identifier: Apache-2.0 */
/* goal_tape.c - a run as a GOAL schedule: collectives as the messages of the system layer.
 *
 * The system layer expands collectives message by message, so the schedule is recorded during the
 * run: each start of a node, each send and each receive goes onto the tape in order.  A send of a
 * collective depends on the receive that ended last in its chunk, which released it; a node depends
 * on its parents, and on the previous node in its slot.
 *
 *     parents -> start -> send        a collective is its messages between two empty calculations;
 *                      -> recv -> send -> end       all other nodes are one operation
 *
 * CPU 0 has the messages, 1 the compute of the device, 2 that of the host, 3 starts and ends. Cost:
 * 40 bytes per message and 24 per receive, for the duration of the run. */
#include "run_observer.h"

#include "run_state.h"

#include "base/memory/buffer.h"

enum { CPU_COMM, CPU_DEVICE, CPU_HOST, CPU_JOIN };
typedef enum entry_kind { ENTRY_NODE, ENTRY_SEND, ENTRY_RECV } entry_kind;

typedef struct entry {
    uint64_t size;
    uint32_t rank, place; /* whose node it belongs to */
    uint32_t peer, tag;
    uint32_t after;   /* 1 + the receive that released it; 0: the start of its node */
    uint32_t receive; /* which of those that wait */
    uint8_t kind;
    bool is_chunk; /* of a collective */
} entry;

typedef struct pending {
    clk_call then;      /* continuation */
    sys_stream *stream; /* NULL: not of a collective */
} pending;

struct goal_tape {
    orr_sim *s;
    entry *entries;
    pending *receives;
    size_t count, room, receive_count, receive_room;
    uint64_t **duration; /* by rank and place */
    uint32_t **before;   /* by rank and node: 1 + the previous node in its slot */
    uint32_t *last;      /* by rank and slot: 1 + the node in it */
};

orr_code tape_create(orr_sim *s, orr_error *err)
{
    struct goal_tape *t = orr_arena_new(s->arena, 1, struct goal_tape);
    if (!t)
        return orr_no_memory(err);
    s->tape = t;
    t->s = s;
    t->duration = orr_arena_new(s->arena, s->npu_count, uint64_t *);
    t->before = orr_arena_new(s->arena, s->npu_count, uint32_t *);
    t->last = orr_arena_new(s->arena, (size_t)s->npu_count * WORK_SLOTS, uint32_t);
    if (!t->duration || !t->before || !t->last)
        return orr_no_memory(err);
    for (uint32_t r = 0; r < s->npu_count; r++) {
        const uint32_t nodes = s->npus[r].graph->count;
        t->duration[r] = orr_arena_new(s->arena, nodes, uint64_t);
        t->before[r] = orr_arena_new(s->arena, nodes, uint32_t);
        if (!t->duration[r] || !t->before[r])
            return orr_no_memory(err);
    }
    return ORR_OK;
}

void tape_destroy(struct goal_tape *t)
{
    if (!t)
        return;
    orr_free(t->entries);
    orr_free(t->receives);
}

/* ---- during the run */

static uint32_t add(struct goal_tape *t, const entry *e)
{
    if (t->count >= UINT32_MAX - 1 || !orr_grow(&t->entries, &t->room, t->count + 1)) {
        run_no_memory(t->s);
        return 0;
    }
    t->entries[t->count] = *e;
    return (uint32_t)t->count++;
}

static void tape_node_start(run_npu *n, uint32_t place)
{
    struct goal_tape *t = n->sim->tape;
    const uint8_t slot = n->graph->slot[place];
    add(t, &(entry){.kind = ENTRY_NODE, .rank = n->rank, .place = place});
    /* Any number of receives run at once: they have no order. */
    if (slot == WORK_SLOT_RECV)
        return;
    /* Nodes of one slot ran in sequence without a dependency: the schedule needs that edge. */
    uint32_t *last = &t->last[(size_t)n->rank * WORK_SLOTS + slot];
    t->before[n->rank][place] = *last;
    *last = place + 1;
}

static void tape_node_end(run_npu *n, uint32_t place)
{
    n->sim->tape->duration[n->rank][place] = clk_now(n->sim->clock) - n->started_at[place];
}

/* Chunks of different groups may have the same number: the group goes into the tag.  Above all tags
 * of nodes. */
static uint32_t chunk_tag(const sys_stream *st, uint32_t wire_tag)
{
    const cfg_group *g = sys_node_group(st->npu, st->set->place);
    uint64_t x = st->id * 0x9e3779b97f4a7c15u;
    x ^= (g ? (uint64_t)g->id + 1 : 0) * 0xbf58476d1ce4e5b9u;
    /* Plans and custom collectives have tags of their own within a chunk. */
    x ^= wire_tag == st->tag ? 0 : (wire_tag + 1ull) * 0x94d049bb133111ebu;
    x ^= x >> 29;
    /* Never all ones, which means any tag. */
    return 0x80000000u | ((uint32_t)(x >> 8) & 0x7ffffffeu);
}

/* The stream of a message, if it belongs to a collective. */
static sys_stream *stream_of(clk_call c)
{
    if (c.action == sys_phase_received)
        return c.context;
    return c.action == work_node_done ? NULL : (sys_stream *)(uintptr_t)sys_custom_owner(c);
}

static entry entry_of(const run_npu *n, const sys_stream *st, uint32_t tag, clk_call c)
{
    if (st)
        return (entry){
            .rank = n->rank, .place = st->set->place, .tag = chunk_tag(st, tag), .is_chunk = true};
    return (entry){.rank = n->rank, .place = (uint32_t)c.argument, .tag = tag};
}

static void tape_send(
    run_npu *n, sys_stream *stream, uint32_t tag, uint32_t dst, uint64_t size, clk_call on_arrival)
{
    sys_stream *st = stream ? stream : stream_of(on_arrival);
    entry e = entry_of(n, st, tag, on_arrival);
    e.kind = ENTRY_SEND;
    e.peer = dst;
    e.size = size;
    e.after = st ? st->taped : 0;
    add(n->sim->tape, &e);
}

static void received(void *context, uint64_t number)
{
    struct goal_tape *t = context;
    /* A copy: what continues may post further receives. */
    const pending p = t->receives[t->entries[number].receive];
    if (p.stream)
        p.stream->taped = (uint32_t)number + 1;
    clk_call_now(p.then);
}

static clk_call tape_recv(
    run_npu *n, uint32_t tag, uint32_t src, uint64_t size, clk_call on_arrival)
{
    struct goal_tape *t = n->sim->tape;
    sys_stream *st = stream_of(on_arrival);
    entry e = entry_of(n, st, tag, on_arrival);
    if (!orr_grow(&t->receives, &t->receive_room, t->receive_count + 1)) {
        run_no_memory(n->sim);
        return on_arrival;
    }
    /* The receive is inserted between the message and its waiter, to observe its end. */
    t->receives[t->receive_count] = (pending){on_arrival, st};
    e.kind = ENTRY_RECV;
    e.peer = src;
    e.size = size;
    e.receive = (uint32_t)t->receive_count++;
    return (clk_call){received, t, add(t, &e)};
}

clk_call tape_receiver(clk_call c)
{
    const struct goal_tape *t = c.context;
    return c.action == received ? t->receives[t->entries[c.argument].receive].then : c;
}

const run_observer tape_observer = {
    .node_start = tape_node_start,
    .node_end = tape_node_end,
    .send = tape_send,
    .receive = tape_recv,
};

/* ---- afterwards: the schedule, rank by rank */

typedef struct writer {
    const struct goal_tape *t;
    orr_goal *g;
    orr_error *err;
    const uint32_t *list; /* entries of this rank, in order */
    uint32_t count;
    uint32_t *op;           /* by entry: 1 + its operation */
    uint32_t *first, *last; /* by place: 1 + the operation it starts and ends with */
    const run_npu *npu;
} writer;

static orr_code add_op(writer *w, const orr_goal_op *op, uint32_t *number)
{
    const orr_code code = orr_goal_add(w->g, op, number, w->err);
    ++*number;
    return code;
}

static orr_code need(writer *w, uint32_t later, uint32_t earlier)
{
    return later && earlier && later != earlier
               ? orr_goal_require(w->g, later - 1, earlier - 1, ORR_GOAL_FINISHED, w->err)
               : ORR_OK;
}

/* Nodes without messages are a calculation; a collective begins and ends with an empty one. */
static orr_code write_node(writer *w, const entry *e, bool has_chunks, bool has_message)
{
    const uint8_t slot = w->npu->graph->slot[e->place];
    uint32_t number = 0;
    if (has_message)
        return ORR_OK;
    orr_goal_op op = {.kind = ORR_GOAL_CALC, .cpu = CPU_JOIN};
    if (!has_chunks) {
        op.size = w->t->duration[e->rank][e->place];
        op.cpu = slot == WORK_SLOT_CPU ? CPU_HOST : work_is_comm_slot(slot) ? CPU_COMM : CPU_DEVICE;
    }
    orr_code code = add_op(w, &op, &number);
    w->first[e->place] = w->last[e->place] = number;
    if (!code && has_chunks) {
        code = add_op(w, &op, &number);
        w->last[e->place] = number;
    }
    return code;
}

static orr_code write_message(writer *w, uint32_t index)
{
    const entry *e = &w->t->entries[index];
    const orr_goal_op op = {.kind = e->kind == ENTRY_SEND ? ORR_GOAL_SEND : ORR_GOAL_RECV,
                            .size = e->size,
                            .peer = e->peer,
                            .tag = e->tag,
                            .cpu = CPU_COMM};
    orr_code code = add_op(w, &op, &w->op[index]);
    if (code || !e->is_chunk) {
        w->first[e->place] = w->last[e->place] = w->op[index];
        return code;
    }
    /* A send follows the last receive of its chunk that had completed; a receive only waits for the
     * start of the collective. */
    const uint32_t after = e->after ? w->op[e->after - 1] : w->first[e->place];
    code = need(w, w->op[index], after);
    return code ? code : need(w, w->last[e->place], w->op[index]);
}

static orr_code write_edges(writer *w)
{
    const work_graph *g = w->npu->graph;
    orr_code code = ORR_OK;
    for (uint32_t p = 0; p < g->count && !code; p++) {
        const uint32_t before = w->t->before[w->npu->rank][p];
        if (before)
            code = need(w, w->first[p], w->last[before - 1]);
        for (uint32_t c = g->child_first[p]; c < g->child_first[p + 1] && !code; c++)
            code = need(w, w->first[g->child[c]], w->last[p]);
    }
    return code;
}

enum { HAS_CHUNKS = 1, HAS_MESSAGE = 2 };

static orr_code write_rank(writer *w, uint8_t *what)
{
    const entry *entries = w->t->entries;
    const size_t nodes = w->npu->graph->count;
    memset(what, 0, nodes);
    memset(w->first, 0, nodes * sizeof *w->first);
    memset(w->last, 0, nodes * sizeof *w->last);
    for (uint32_t i = 0; i < w->count; i++) {
        const entry *e = &entries[w->list[i]];
        if (e->kind != ENTRY_NODE)
            what[e->place] |= e->is_chunk ? HAS_CHUNKS : HAS_MESSAGE;
    }
    orr_code code = orr_goal_begin_rank(w->g, w->err);
    for (uint32_t i = 0; i < w->count && !code; i++) {
        const entry *e = &entries[w->list[i]];
        code = e->kind == ENTRY_NODE
                   ? write_node(w, e, what[e->place] & HAS_CHUNKS, what[e->place] & HAS_MESSAGE)
                   : write_message(w, w->list[i]);
    }
    if (!code)
        code = write_edges(w);
    return code ? code : orr_goal_end_rank(w->g, w->err);
}

static orr_code write_all(writer *w, uint32_t *list, uint32_t *starts, uint8_t *what)
{
    const orr_sim *s = w->t->s;
    /* A counting sort by rank; afterwards starts[r] is the end of r's entries. */
    for (size_t i = 0; i < w->t->count; i++)
        starts[w->t->entries[i].rank + 1]++;
    for (uint32_t r = 0; r < s->npu_count; r++)
        starts[r + 1] += starts[r];
    for (size_t i = 0; i < w->t->count; i++)
        list[starts[w->t->entries[i].rank]++] = (uint32_t)i;
    orr_code code = orr_goal_create(s->npu_count, &w->g, w->err);
    uint32_t from = 0;
    for (uint32_t r = 0; r < s->npu_count && !code; r++) {
        w->npu = &s->npus[r];
        w->list = list + from;
        w->count = starts[r] - from;
        from = starts[r];
        code = write_rank(w, what);
    }
    return code;
}

orr_code orr_sim_goal(const orr_sim *s, orr_goal **out, orr_error *err)
{
    *out = NULL;
    if (!s->tape)
        return orr_fail(err, ORR_EUSAGE, NULL, "this run recorded no schedule");
    uint32_t most = 1;
    for (uint32_t r = 0; r < s->npu_count; r++) {
        if (s->npus[r].graph->count > most)
            most = s->npus[r].graph->count;
    }
    orr_arena *a = orr_arena_create();
    if (!a)
        return orr_no_memory(err);
    writer w = {.t = s->tape, .err = err};
    w.op = orr_arena_new(a, s->tape->count + 1, uint32_t);
    w.first = orr_arena_new(a, most, uint32_t);
    w.last = orr_arena_new(a, most, uint32_t);
    uint32_t *list = orr_arena_new(a, s->tape->count + 1, uint32_t);
    uint32_t *starts = orr_arena_new(a, (size_t)s->npu_count + 2, uint32_t);
    uint8_t *what = orr_arena_new(a, most, uint8_t);
    orr_code code = w.op && w.first && w.last && list && starts && what
                        ? write_all(&w, list, starts, what)
                        : orr_no_memory(err);
    orr_arena_destroy(a);
    if (code)
        orr_goal_free(w.g);
    else
        *out = w.g;
    return code;
}
