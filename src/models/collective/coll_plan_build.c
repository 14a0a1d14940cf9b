/* SPDX-License-Identifier: Apache-2.0 */
/* coll_plan_build.c - symbolic execution of a plan, thread block by thread block, each as far as it
 * can go.
 *
 * It has two results.  The values: each place of each buffer holds a sum of inputs, represented by
 * the sum of one random number per input, so that adding and comparing are O(1) for any number of
 * inputs.  And the program: each operation that takes time becomes a step that depends on the
 * previous step of its thread block, and on whatever it had to wait for here.
 *
 * A blocked thread block waits in the list of one object (a link, a semaphore, a barrier, another
 * thread block, a place) and is retried when that object changes: the cost is linear in the
 * operations.  Times do not matter: any possible execution order gives the same graph, except for
 * semaphores acquired by several thread blocks. */
#include "coll_plan_impl.h"

#include "base/arithmetic.h"
#include "base/memory/map.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_STEPS = 1 << 24, MOST_PIECES = 1 << 20, PLACES_PER_BYTE = 64 };
#define NONE UINT32_MAX

typedef struct value {
    uint64_t sum[2];
    uint32_t count, rank, place; /* the input, if it is a single one */
} value;

/* In flight: a message or a signal. */
typedef struct flight {
    uint32_t message, from, to;
    uint32_t *landings; /* which must have landed as well */
    size_t landing_count;
    value *values;
    struct flight *next;
} flight;

/* The last sends of a connection or a thread block: the next one waits for the oldest (a ring
 * buffer). */
typedef struct slots {
    uint32_t step[COLL_PLAN_SLOTS];
    uint32_t count;
} slots;

typedef struct link_state {
    flight *first, *last;
    slots slots;
    uint32_t waiter;
    uint32_t *landings, *sends; /* put on it since the last signal; since the last flush */
    size_t landing_count, landing_room, send_count, send_room;
} link_state;

typedef struct token {
    uint32_t after; /* the step that released it */
    struct token *next;
} token;

typedef struct semaphore {
    uint32_t initial; /* remaining part of its initial value */
    uint32_t waiter;
    token *first, *last;
} semaphore;

typedef struct barrier {
    uint32_t count, arrived, list;
} barrier;

typedef struct rank_state {
    value *values;
    uint32_t base[PLAN_BUFFERS];
    uint32_t *landing; /* by place: the step with which its packets land; NONE: none yet */
    uint32_t *waiter;  /* by place */
    coll_step *steps;
    size_t count, room;
    uint32_t *deps;
    size_t dep_count, dep_room;
    size_t *first_dep;
    size_t first_room;
} rank_state;

typedef struct block_state {
    uint32_t at, loop, piece;
    uint32_t last;     /* step; NONE: none yet */
    uint32_t progress; /* number of STEP_ENDs */
    uint32_t *ends;    /* by those: the last step at that point */
    uint32_t waiter;   /* first of those waiting for it */
    uint32_t next;     /* in its waiting list */
    uint32_t from, to; /* range of the hand, in places */
    value *hand;
    slots slots;
    uint32_t *puts; /* possibly not landed: a signal comes after them */
    size_t put_count, put_room;
    bool has_hand, is_done;
} block_state;

typedef struct builder {
    const coll_plan *p;
    orr_arena *a;
    orr_error *err;
    bool checks_values;
    uint64_t data;
    uint32_t slots;
    rank_state *ranks;
    block_state *blocks;
    link_state *links;
    semaphore *semaphores;
    barrier *barriers;
    uint32_t *queue;
    size_t queue_first, queue_count;
    uint32_t messages, steps;
} builder;

typedef enum went { WENT_ON, WENT_NOWHERE, WENT_WRONG } went;

/* ---- values ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Two sums that differ agree in 128 random bits with a chance of 2^-128 per pair, far below that
 * of a fault of the machine. Fixed and not drawn: the same plan must give the same answer
 * everywhere. */
static value input_value(uint32_t rank, uint32_t place)
{
    const uint64_t key = (uint64_t)rank << 32 | place;
    return (value){.sum = {mix(key), mix(key ^ 0xa5a5a5a5a5a5a5a5u)},
                   .count = 1,
                   .rank = rank,
                   .place = place};
}

static value add_values(value a, value b)
{
    /* With the carry: one sum of 128 bits. Order and repetition then matter as they should: adding
     * an input twice is not the same as adding it once, as xor would have it. */
    const uint64_t low = a.sum[0] + b.sum[0];
    a.sum[1] += b.sum[1] + (low < a.sum[0]);
    a.sum[0] = low;
    a.count += b.count;
    return a;
}

static bool same_value(value a, value b)
{
    return a.count == b.count && a.sum[0] == b.sum[0] && a.sum[1] == b.sum[1];
}

static const char *buffer_name(uint8_t b)
{
    static const char *const names[] = {"input", "output", "scratch buffer"};
    return names[b];
}

/* ---- preparation ---- */

/* Where a buffer begins in the memory of its rank. In place, the smaller buffer lies in the
 * larger one at the rank's own part, so that a write to one is seen in the other. */
static size_t set_bases(const coll_plan *p, uint32_t rank, uint32_t base[PLAN_BUFFERS])
{
    const uint32_t in = plan_places(p, rank, PLAN_INPUT), out = plan_places(p, rank, PLAN_OUTPUT);
    base[PLAN_INPUT] = 0;
    base[PLAN_OUTPUT] = in;
    uint32_t size = in + out;
    if (p->is_inplace) {
        size = in > out ? in : out;
        base[PLAN_INPUT] = in < out ? rank * in : 0;
        base[PLAN_OUTPUT] = out < in ? rank * out : 0;
    }
    base[PLAN_SCRATCH] = size;
    return (size_t)size + plan_places(p, rank, PLAN_SCRATCH);
}

static bool uses_packets(const coll_plan *p)
{
    for (size_t i = 0; i < p->block_count; i++)
        for (size_t k = 0; k < p->blocks[i].count; k++)
            if (p->blocks[i].ops[k].is_packet)
                return true;
    return false;
}

static orr_code make_rank(builder *b, uint32_t rank, bool has_packets)
{
    const coll_plan *p = b->p;
    rank_state *r = &b->ranks[rank];
    const size_t places = set_bases(p, rank, r->base);
    if (has_packets) {
        r->landing = orr_arena_new(b->a, places, uint32_t);
        r->waiter = orr_arena_new(b->a, places, uint32_t);
        if (!r->landing || !r->waiter)
            return orr_no_memory(b->err);
        memset(r->landing, 0xFF, places * sizeof *r->landing);
        memset(r->waiter, 0xFF, places * sizeof *r->waiter);
    }
    if (!b->checks_values)
        return ORR_OK;
    r->values = orr_arena_new(b->a, places, value);
    if (!r->values)
        return orr_no_memory(b->err);
    for (uint32_t i = 0; i < plan_places(p, rank, PLAN_INPUT); i++)
        r->values[r->base[PLAN_INPUT] + i] = input_value(rank, i);
    return ORR_OK;
}

/* Before anything is allocated: a file of a hundred bytes may claim 2^20 chunks on 2^16 ranks.
 * What it can fill grows with its length. */
static orr_code check_size(const coll_plan *p, orr_error *err)
{
    uint64_t places = 0;
    for (uint32_t r = 0; r < p->ranks; r++) {
        const uint64_t own = ((uint64_t)p->chunks * 2 + p->scratch[r]) * p->parts;
        /* Places of a rank have numbers of 32 bits (set_bases). */
        if (own > UINT32_MAX)
            return plan_fail(p, 0, err,
                             "GPU %" PRIu32 " has %" PRIu64 " parts of chunks, more than 2^32 - 1",
                             r, own);
        places += own;
    }
    /* Only while the file is read: what passed then need not pass again. */
    if (p->bytes.ptr && places > (1 << 16) + (uint64_t)p->bytes.len * PLACES_PER_BYTE)
        return plan_fail(p, 0, err,
                         "the plan has %" PRIu64 " chunks, more than its steps could fill", places);
    return ORR_OK;
}

/* Each range lies in its buffer, and a proxy writes to where its connection leads: the signal that
 * follows waits for the landing, which is a step of the receiver. */
static orr_code check_op(const builder *b, const plan_block *block, plan_op *op)
{
    const coll_plan *p = b->p;
    const bool is_remote = op->verb == PLAN_PUT || op->verb == PLAN_GET;
    const uint32_t rank = is_remote ? op->rank : block->rank;
    if (op->verb == PLAN_LOAD || op->verb == PLAN_ADD || op->verb == PLAN_STORE || is_remote) {
        const uint32_t places = plan_places(p, rank, (plan_buffer)op->buffer);
        if (op->to > places)
            return plan_fail(p, op->byte, b->err,
                             "chunk %" PRIu32 " of the %s of GPU %" PRIu32 ", which has %" PRIu32
                             " chunk%s",
                             (op->to - 1) / p->parts, buffer_name(op->buffer), rank,
                             places / p->parts, places / p->parts == 1 ? "" : "s");
    }
    if (op->verb == PLAN_PUT && op->is_async && op->rank != p->links[op->link].to)
        return plan_fail(p, op->byte, b->err,
                         "a put into a buffer of GPU %" PRIu32 " on a channel to GPU %" PRIu32,
                         op->rank, p->links[op->link].to);
    return ORR_OK;
}

static uint32_t find_block(const coll_plan *p, uint32_t rank, uint32_t id)
{
    uint32_t low = p->first_block[rank], high = p->first_block[rank + 1];
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (p->blocks[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < p->first_block[rank + 1] && p->blocks[low].id == id ? low : NONE;
}

static orr_code make_block(builder *b, uint32_t index)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    orr_code code = ORR_OK;
    *s = (block_state){.last = NONE, .waiter = NONE, .next = NONE};
    s->ends = orr_arena_new(b->a, (size_t)block->steps + 1, uint32_t);
    if (!s->ends)
        return orr_no_memory(b->err);
    for (size_t i = 0; i < block->count && !code; i++)
        code = check_op(b, block, &block->ops[i]);
    b->queue[b->queue_count++] = index;
    return code;
}

static orr_code make_states(builder *b)
{
    const coll_plan *p = b->p;
    const bool has_packets = uses_packets(p);
    orr_code code = check_size(p, b->err);
    if (code)
        return code;
    b->ranks = orr_arena_new(b->a, p->ranks, rank_state);
    b->blocks = orr_arena_new(b->a, p->block_count + 1, block_state);
    b->queue = orr_arena_new(b->a, p->block_count + 1, uint32_t);
    b->links = orr_arena_new(b->a, p->link_count + 1, link_state);
    b->semaphores = orr_arena_new(b->a, p->semaphore_count + 1, semaphore);
    b->barriers = orr_arena_new(b->a, (size_t)p->barriers + 1, barrier);
    if (!b->ranks || !b->blocks || !b->queue || !b->links || !b->semaphores || !b->barriers)
        return orr_no_memory(b->err);
    for (size_t i = 0; i < p->link_count; i++)
        b->links[i].waiter = NONE;
    for (size_t i = 0; i < p->semaphore_count; i++)
        b->semaphores[i] = (semaphore){.initial = p->semaphores[i], .waiter = NONE};
    for (uint32_t i = 0; i < p->barriers; i++)
        b->barriers[i].list = NONE;
    for (uint32_t r = 0; r < p->ranks && !code; r++)
        code = make_rank(b, r, has_packets);
    for (uint32_t i = 0; i < p->block_count && !code; i++)
        code = make_block(b, i);
    return code;
}

/* ---- steps ---- */

/* Adds a step with its dependencies; NONE: out of memory, or too many. */
static uint32_t emit(builder *b, uint32_t rank, coll_step s, const uint32_t *deps, size_t dep_count)
{
    rank_state *r = &b->ranks[rank];
    if (b->steps >= MOST_STEPS) {
        plan_fail(b->p, 0, b->err, "the plan makes more than %d steps", MOST_STEPS);
        return NONE;
    }
    if (!orr_grow(&r->steps, &r->room, r->count + 1) ||
        !orr_grow(&r->first_dep, &r->first_room, r->count + 2) ||
        !orr_grow(&r->deps, &r->dep_room, r->dep_count + dep_count + 1)) {
        orr_no_memory(b->err);
        return NONE;
    }
    b->steps++;
    r->first_dep[r->count] = r->dep_count;
    for (size_t i = 0; i < dep_count; i++)
        /* Callers pass `last` as it is: NONE before the first step of a thread block. */
        if (deps[i] != NONE)
            r->deps[r->dep_count++] = deps[i];
    r->steps[r->count] = s;
    r->first_dep[r->count + 1] = r->dep_count;
    return (uint32_t)r->count++;
}

static coll_step sized(
    const builder *b, uint32_t from, uint32_t to, const plan_op *op, const block_state *s)
{
    /* With values a pipeline runs once, over its whole range (pieces). */
    const bool is_piece = op->unit != COLL_NO_UNIT && !b->checks_values;
    return (coll_step){.from = from,
                       .to = to,
                       .factor = op->is_packet ? 2 : 1,
                       .piece = is_piece ? s->piece : 0,
                       .unit = is_piece ? op->unit : COLL_NO_UNIT};
}

static went emit_last(builder *b, uint32_t rank, block_state *s, coll_step step)
{
    const uint32_t at = emit(b, rank, step, &s->last, 1);
    if (at == NONE)
        return WENT_WRONG;
    s->last = at;
    return WENT_ON;
}

/* A message leaves when the thread block reaches it and a slot is free; the thread block does not
 * wait. A connection has as many slots as NCCL's: the send that would be one too many waits for
 * the oldest, which is the one in its place of the ring buffer. */
static uint32_t emit_send(
    builder *b, uint32_t rank, const block_state *s, slots *of, coll_step step)
{
    const uint32_t place = of->count % b->slots;
    const uint32_t deps[] = {s->last, of->count >= b->slots ? of->step[place] : NONE};
    step.kind = COLL_STEP_SEND;
    of->step[place] = emit(b, rank, step, deps, 2);
    of->count++;
    return of->step[place];
}

/* The thread block now also depends on these. */
static went join(builder *b, uint32_t rank, block_state *s, const uint32_t *more, size_t count)
{
    if (count == 0)
        return WENT_ON;
    /* A single dependency needs no step of its own: an event less in every run. */
    if (count == 1 && (s->last == NONE || more[0] == NONE)) {
        s->last = more[0] == NONE ? s->last : more[0];
        return WENT_ON;
    }
    uint32_t *all = orr_alloc(count + 1, sizeof *all);
    if (!all) {
        orr_no_memory(b->err);
        return WENT_WRONG;
    }
    memcpy(all, more, count * sizeof *all);
    all[count] = s->last;
    const uint32_t at =
        emit(b, rank, (coll_step){.kind = COLL_STEP_JOIN, .unit = COLL_NO_UNIT}, all, count + 1);
    orr_free(all);
    s->last = at == NONE ? s->last : at;
    return at == NONE ? WENT_WRONG : WENT_ON;
}

/* ---- waiting ---- */

static went wait_in(builder *b, uint32_t *list, uint32_t block)
{
    b->blocks[block].next = *list;
    *list = block;
    return WENT_NOWHERE;
}

/* A thread block is in the queue or in one list, never in both, so the queue needs no more room
 * than there are thread blocks. */
static void make_ready(builder *b, uint32_t block)
{
    const size_t room = b->p->block_count + 1;
    b->queue[(b->queue_first + b->queue_count++) % room] = block;
}

static void wake_all(builder *b, uint32_t *list)
{
    while (*list != NONE) {
        const uint32_t block = *list;
        *list = b->blocks[block].next;
        make_ready(b, block);
    }
}

/* One is enough where what has come can be taken by one thread block only. */
static void wake_one(builder *b, uint32_t *list)
{
    const uint32_t block = *list;
    if (block == NONE)
        return;
    *list = b->blocks[block].next;
    make_ready(b, block);
}

/* ---- operations on values ---- */

static went fail_op(builder *b, const plan_block *block, const plan_op *op, const char *what)
{
    plan_fail(b->p, op->byte, b->err, "GPU %" PRIu32 ", thread block %" PRIu32 ": %s", block->rank,
              block->id, what);
    return WENT_WRONG;
}

static went take_up(builder *b, uint32_t index, const plan_op *op, uint32_t rank, bool is_added)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    const rank_state *r = &b->ranks[rank];
    const uint32_t n = op->to - op->from;
    if (is_added && (!s->has_hand || s->to - s->from != n))
        return fail_op(b, block, op, "operands of a reduction differ in size");
    /* A reduction keeps the range of the hand: only the size of its operand matters. */
    if (!is_added) {
        s->from = op->from;
        s->to = op->to;
        s->has_hand = true;
    }
    if (!b->checks_values)
        return WENT_ON;
    const value *from = r->values + r->base[op->buffer] + op->from;
    for (uint32_t i = 0; i < n; i++)
        if (from[i].count == 0) {
            plan_fail(b->p, op->byte, b->err,
                      "GPU %" PRIu32 ", thread block %" PRIu32 " reads chunk %" PRIu32
                      " of the %s of GPU %" PRIu32 ", where nothing has been written",
                      block->rank, block->id, (op->from + i) / b->p->parts, buffer_name(op->buffer),
                      rank);
            return WENT_WRONG;
        }
    /* A new one: the old may be in flight (do_send). */
    value *hand = orr_arena_new(b->a, n, value);
    if (!hand) {
        orr_no_memory(b->err);
        return WENT_WRONG;
    }
    for (uint32_t i = 0; i < n; i++)
        hand[i] = is_added ? add_values(s->hand[i], from[i]) : from[i];
    s->hand = hand;
    return WENT_ON;
}

/* Packets count as received when they have landed. */
static went await_packets(builder *b, uint32_t index, const plan_op *op)
{
    const uint32_t rank = b->p->blocks[index].rank;
    block_state *s = &b->blocks[index];
    rank_state *r = &b->ranks[rank];
    const uint32_t first = r->base[op->buffer] + op->from, n = op->to - op->from;
    for (uint32_t i = 0; i < n; i++)
        if (r->landing[first + i] == NONE)
            return wait_in(b, &r->waiter[first + i], index);
    uint32_t last = NONE;
    went w = WENT_ON;
    /* Not before all are there: an operation that waits starts over when it is retried. */
    for (uint32_t i = 0; i < n && w == WENT_ON; i++) {
        const uint32_t landing = r->landing[first + i];
        /* Neighbouring places mostly landed with one message: one dependency is enough. */
        if (landing != last && landing != s->last)
            w = join(b, rank, s, &landing, 1);
        last = landing;
    }
    return w;
}

/* Values change hands now, though the bytes land later: a race that a missing signal allows is
 * not found here. The graph has it right: a reader of packets depends on `landing`, any other on
 * the signal. */
static went put_down(builder *b,
                     const plan_block *block,
                     const plan_op *op,
                     block_state *s,
                     uint32_t rank,
                     uint32_t landing)
{
    rank_state *r = &b->ranks[rank];
    const uint32_t first = r->base[op->buffer] + op->from, n = op->to - op->from;
    if (!s->has_hand || s->to - s->from != n)
        return fail_op(b, block, op, "source and destination differ in size");
    if (b->checks_values)
        memcpy(r->values + first, s->hand, n * sizeof *s->hand);
    for (uint32_t i = 0; i < n && op->is_packet; i++) {
        r->landing[first + i] = landing;
        wake_all(b, &r->waiter[first + i]);
    }
    return WENT_ON;
}

/* ---- messages ---- */

static flight *launch(builder *b, uint32_t link)
{
    flight *f = orr_arena_new(b->a, 1, flight);
    link_state *l = &b->links[link];
    if (!f) {
        orr_no_memory(b->err);
        return NULL;
    }
    f->message = b->messages++;
    if (l->last)
        l->last->next = f;
    else
        l->first = f;
    l->last = f;
    wake_one(b, &l->waiter);
    return f;
}

static flight *land(builder *b, uint32_t link)
{
    link_state *l = &b->links[link];
    flight *f = l->first;
    l->first = f->next;
    if (!l->first)
        l->last = NULL;
    return f;
}

static went do_send(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    if (!s->has_hand)
        return fail_op(b, block, op, "there is nothing to send");
    flight *f = launch(b, op->link);
    if (!f)
        return WENT_WRONG;
    f->from = s->from;
    f->to = s->to;
    /* Shared: a hand is replaced, never changed (take_up). */
    f->values = s->hand;
    coll_step step = sized(b, s->from, s->to, op, s);
    step.peer = b->p->links[op->link].to;
    step.message = f->message;
    return emit_send(b, block->rank, s, &b->links[op->link].slots, step) == NONE ? WENT_WRONG
                                                                                 : WENT_ON;
}

static went do_recv(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    if (!b->links[op->link].first)
        return wait_in(b, &b->links[op->link].waiter, index);
    const flight *f = land(b, op->link);
    if (f->to - f->from != op->to - op->from) {
        plan_fail(b->p, op->byte, b->err,
                  "GPU %" PRIu32 ", thread block %" PRIu32 " receives %" PRIu32
                  " chunks, but GPU %" PRIu32 " sent %" PRIu32,
                  block->rank, block->id, op->to - op->from, b->p->links[op->link].from,
                  f->to - f->from);
        return WENT_WRONG;
    }
    s->from = f->from;
    s->to = f->to;
    s->hand = f->values;
    s->has_hand = true;
    coll_step step = sized(b, s->from, s->to, op, s);
    step.kind = COLL_STEP_RECV;
    step.peer = b->p->links[op->link].from;
    step.message = f->message;
    return emit_last(b, block->rank, s, step);
}

static bool remember(builder *b, uint32_t **list, size_t *count, size_t *room, uint32_t step)
{
    if (!orr_grow(list, room, *count + 1)) {
        orr_no_memory(b->err);
        return false;
    }
    (*list)[(*count)++] = step;
    return true;
}

/* A write into the memory of another GPU: one-sided, the other side does nothing. */
static went do_put(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    if (!s->has_hand)
        return fail_op(b, block, op, "there is nothing to put");
    coll_step step = sized(b, s->from, s->to, op, s);
    step.message = b->messages++;
    step.kind = COLL_STEP_RECV;
    step.peer = block->rank;
    if (op->rank == block->rank)
        return fail_op(b, block, op, "a remote buffer that is its own");
    /* The receiver's half depends on nothing of that rank: no thread block there takes part. */
    const uint32_t landing = emit(b, op->rank, step, NULL, 0);
    if (landing == NONE)
        return WENT_WRONG;
    step.peer = op->rank;
    link_state *l = op->is_async ? &b->links[op->link] : NULL;
    const uint32_t sent = emit_send(b, block->rank, s, l ? &l->slots : &s->slots, step);
    if (sent == NONE)
        return WENT_WRONG;
    /* A put of the thread block itself is waited for by its next signal, release or barrier
     * (fence); one that a proxy carries out, by the signal on the same connection, which stays
     * behind it. */
    if (!l) {
        if (!remember(b, &s->puts, &s->put_count, &s->put_room, sent))
            return WENT_WRONG;
    } else {
        if (!remember(b, &l->landings, &l->landing_count, &l->landing_room, landing) ||
            !remember(b, &l->sends, &l->send_count, &l->send_room, sent))
            return WENT_WRONG;
    }
    return put_down(b, block, op, s, op->rank, landing);
}

/* A one-sided read: a request, and the data that comes back. */
static went do_get(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    if (op->rank == block->rank)
        return fail_op(b, block, op, "a remote buffer that is its own");
    /* A count: what is read is reduced into the hand. */
    const went w = take_up(b, index, op, op->rank, op->count != 0);
    if (w != WENT_ON)
        return w;
    coll_step ask = {
        .kind = COLL_STEP_SEND, .peer = op->rank, .message = b->messages++, .unit = COLL_NO_UNIT};
    coll_step data = sized(b, op->from, op->to, op, s);
    data.message = b->messages++;
    if (emit_last(b, block->rank, s, ask) != WENT_ON)
        return WENT_WRONG;
    ask.kind = COLL_STEP_RECV;
    ask.peer = block->rank;
    /* The other GPU answers as soon as it is asked, whatever its thread blocks do. */
    const uint32_t asked = emit(b, op->rank, ask, NULL, 0);
    data.kind = COLL_STEP_SEND;
    data.peer = block->rank;
    if (asked == NONE || emit(b, op->rank, data, &asked, 1) == NONE)
        return WENT_WRONG;
    data.kind = COLL_STEP_RECV;
    data.peer = op->rank;
    return emit_last(b, block->rank, s, data);
}

/* ---- signals, semaphores, barriers ---- */

/* Waits until everything the thread block has written has arrived. */
static went fence(builder *b, uint32_t index)
{
    block_state *s = &b->blocks[index];
    const went w = join(b, b->p->blocks[index].rank, s, s->puts, s->put_count);
    s->put_count = 0;
    return w;
}

static went do_signal(builder *b, uint32_t index, const plan_op *op)
{
    const uint32_t rank = b->p->blocks[index].rank;
    block_state *s = &b->blocks[index];
    link_state *l = &b->links[op->link];
    if (fence(b, index) != WENT_ON)
        return WENT_WRONG;
    flight *f = launch(b, op->link);
    if (!f)
        return WENT_WRONG;
    /* What was put on the connection before arrives before the signal; whoever gets it may read
     * all of that. */
    f->landings = orr_arena_new(b->a, l->landing_count + 1, uint32_t);
    if (!f->landings) {
        orr_no_memory(b->err);
        return WENT_WRONG;
    }
    if (l->landing_count)
        memcpy(f->landings, l->landings, l->landing_count * sizeof *f->landings);
    f->landing_count = l->landing_count;
    l->landing_count = 0;
    const coll_step step = {.kind = COLL_STEP_SEND,
                            .peer = b->p->links[op->link].to,
                            .message = f->message,
                            .unit = COLL_NO_UNIT};
    /* `last` stays: the thread block does not wait for its signal. */
    return emit(b, rank, step, &s->last, 1) == NONE ? WENT_WRONG : WENT_ON;
}

static went do_wait(builder *b, uint32_t index, const plan_op *op)
{
    const uint32_t rank = b->p->blocks[index].rank;
    block_state *s = &b->blocks[index];
    if (!b->links[op->link].first)
        return wait_in(b, &b->links[op->link].waiter, index);
    const flight *f = land(b, op->link);
    const coll_step step = {.kind = COLL_STEP_RECV,
                            .peer = b->p->links[op->link].from,
                            .message = f->message,
                            .unit = COLL_NO_UNIT};
    const went w = emit_last(b, rank, s, step);
    return w == WENT_ON ? join(b, rank, s, f->landings, f->landing_count) : w;
}

static went do_flush(builder *b, uint32_t index, const plan_op *op)
{
    link_state *l = &b->links[op->link];
    /* A send ends when its message has arrived (coll_plan.h). */
    const went w = join(b, b->p->blocks[index].rank, &b->blocks[index], l->sends, l->send_count);
    l->send_count = 0;
    return w;
}

static went do_acquire(builder *b, uint32_t index, const plan_op *op)
{
    semaphore *m = &b->semaphores[op->link];
    /* There from the start: nothing to depend on. */
    if (m->initial) {
        m->initial--;
        return WENT_ON;
    }
    if (!m->first)
        return wait_in(b, &m->waiter, index);
    const uint32_t after = m->first->after;
    m->first = m->first->next;
    if (!m->first)
        m->last = NULL;
    return join(b, b->p->blocks[index].rank, &b->blocks[index], &after, 1);
}

static went do_release(builder *b, uint32_t index, const plan_op *op)
{
    semaphore *m = &b->semaphores[op->link];
    token *t = orr_arena_new(b->a, 1, token);
    if (fence(b, index) != WENT_ON)
        return WENT_WRONG;
    if (!t) {
        orr_no_memory(b->err);
        return WENT_WRONG;
    }
    t->after = b->blocks[index].last;
    if (m->last)
        m->last->next = t;
    else
        m->first = t;
    m->last = t;
    wake_one(b, &m->waiter);
    return WENT_ON;
}

/* The last to arrive releases all others. */
static went do_barrier(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    barrier *m = &b->barriers[op->link];
    if (m->arrived && m->count != op->count)
        return fail_op(b, block, op, "thread blocks do not agree on how many meet at this barrier");
    if (fence(b, index) != WENT_ON)
        return WENT_WRONG;
    m->count = op->count;
    if (++m->arrived < m->count)
        return wait_in(b, &m->list, index);
    uint32_t *lasts = orr_alloc(m->count, sizeof *lasts);
    size_t n = 0;
    if (!lasts) {
        orr_no_memory(b->err);
        return WENT_WRONG;
    }
    for (uint32_t k = m->list; k != NONE; k = b->blocks[k].next)
        if (b->blocks[k].last != NONE)
            lasts[n++] = b->blocks[k].last;
    const went w = join(b, block->rank, &b->blocks[index], lasts, n);
    orr_free(lasts);
    /* All continue from the one join, which depends on all: none leaves before the last comes.  And
     * after the barrier: none may arrive a second time when it is woken. */
    for (uint32_t k = m->list; k != NONE; k = b->blocks[k].next) {
        b->blocks[k].last = b->blocks[index].last;
        b->blocks[k].at++;
    }
    wake_all(b, &m->list);
    m->arrived = 0;
    return w;
}

static went do_after(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    const uint32_t other = find_block(b->p, block->rank, op->link);
    if (other == NONE || other == index || op->count >= b->p->blocks[other].steps)
        return fail_op(b, block, op, "it waits for a step that does not exist");
    const block_state *o = &b->blocks[other];
    if (o->progress <= op->count)
        return wait_in(b, &b->blocks[other].waiter, index);
    return join(b, block->rank, &b->blocks[index], &o->ends[op->count], 1);
}

static went do_work(builder *b, uint32_t index, const plan_op *op)
{
    block_state *s = &b->blocks[index];
    if (!s->has_hand)
        return fail_op(b, &b->p->blocks[index], op, "there is nothing to work on");
    coll_step step = sized(b, s->from, s->to, op, s);
    step.kind = COLL_STEP_WORK;
    step.how = op->how;
    return emit_last(b, b->p->blocks[index].rank, s, step);
}

/* ---- execution ---- */

static went do_op(builder *b, uint32_t index, const plan_op *op)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    went w = WENT_ON;
    switch ((plan_verb)op->verb) {
    case PLAN_LOAD:
    case PLAN_ADD:
        if (op->is_packet)
            w = await_packets(b, index, op);
        return w == WENT_ON ? take_up(b, index, op, block->rank, op->verb == PLAN_ADD) : w;
    case PLAN_STORE:
        /* Local packets are there with the latest step of the thread block.  Before the first one,
         * at the start; a step stands for that, as a landing of NONE would never come. */
        if (op->is_packet && s->last == NONE)
            w = emit_last(b, block->rank, s,
                          (coll_step){.kind = COLL_STEP_JOIN, .unit = COLL_NO_UNIT});
        return w == WENT_ON ? put_down(b, block, op, s, block->rank, s->last) : w;
    case PLAN_WORK:
        return do_work(b, index, op);
    case PLAN_SEND:
        return do_send(b, index, op);
    case PLAN_RECV:
        return do_recv(b, index, op);
    case PLAN_PUT:
        return do_put(b, index, op);
    case PLAN_GET:
        return do_get(b, index, op);
    case PLAN_SIGNAL:
        return do_signal(b, index, op);
    case PLAN_WAIT:
        return do_wait(b, index, op);
    case PLAN_FLUSH:
        return do_flush(b, index, op);
    case PLAN_BARRIER:
        return do_barrier(b, index, op);
    case PLAN_ACQUIRE:
        return do_acquire(b, index, op);
    case PLAN_RELEASE:
        return do_release(b, index, op);
    case PLAN_AFTER:
        return do_after(b, index, op);
    case PLAN_STEP_END:
        s->ends[s->progress++] = s->last;
        wake_all(b, &s->waiter);
        return WENT_ON;
    }
    return WENT_ON;
}

/* Number of iterations of a pipeline. */
static uint64_t pieces(const builder *b, const plan_loop *l)
{
    const coll_plan *p = b->p;
    const uint64_t chunk = orr_div_up(plan_whole(p, b->data), p->chunks);
    const uint64_t unit = p->units[l->unit];
    if (b->checks_values)
        return 1;
    /* ceil(chunk * chunks / unit); only the first product can overflow: a unit has at most 40 bits,
     * chunks 20 (coll_plan_json.c). */
    const uint64_t n = orr_sat_add(orr_sat_mul(chunk / unit, l->chunks),
                                   orr_div_up(chunk % unit * l->chunks, unit));
    return n ? n : 1;
}

static orr_code step_loop(builder *b, uint32_t index)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    /* Loops are in order and do not nest, so one index is enough. */
    if (s->loop >= block->loop_count || s->at != block->loops[s->loop].to)
        return ORR_OK;
    const plan_loop *l = &block->loops[s->loop];
    const uint64_t n = pieces(b, l);
    if (n > MOST_PIECES)
        return orr_fail(b->err, ORR_EINPUT, NULL, "%s: a pipeline of more than %d pieces",
                        b->p->path, MOST_PIECES);
    if (++s->piece < n) {
        s->at = l->from;
    } else {
        s->piece = 0;
        s->loop++;
    }
    return ORR_OK;
}

static orr_code run_block(builder *b, uint32_t index)
{
    const plan_block *block = &b->p->blocks[index];
    block_state *s = &b->blocks[index];
    for (;;) {
        orr_code code;
        while (s->loop < block->loop_count && s->at == block->loops[s->loop].to) {
            const uint32_t before = s->loop;
            if ((code = step_loop(b, index)))
                return code;
            if (s->loop == before)
                break;
        }
        if (s->at >= block->count)
            break;
        const went w = do_op(b, index, &block->ops[s->at]);
        if (w == WENT_WRONG)
            return b->err->code ? b->err->code : ORR_EINPUT;
        if (w == WENT_NOWHERE)
            return ORR_OK;
        s->at++;
    }
    s->is_done = true;
    return ORR_OK;
}

/* The first by rank and thread block, so that the message does not depend on the order of
 * execution. In a cycle any of them is as good a witness as another. */
static orr_code fail_stuck(builder *b, uint32_t index)
{
    const plan_block *block = &b->p->blocks[index];
    const plan_op *op = &block->ops[b->blocks[index].at];
    char what[100] = "what never happens";
    if (op->verb == PLAN_RECV || op->verb == PLAN_WAIT)
        snprintf(what, sizeof what, "a %s of GPU %" PRIu32 " that is never sent",
                 op->verb == PLAN_RECV ? "message" : "signal", b->p->links[op->link].from);
    else if (op->verb == PLAN_AFTER)
        snprintf(what, sizeof what,
                 "step %" PRIu32 " of thread block %" PRIu32 ", which is never reached", op->count,
                 op->link);
    else if (op->is_packet)
        snprintf(what, sizeof what, "packets in its %s that never come", buffer_name(op->buffer));
    else if (op->verb == PLAN_ACQUIRE)
        snprintf(what, sizeof what, "a semaphore that is never released");
    else if (op->verb == PLAN_BARRIER)
        snprintf(what, sizeof what,
                 "a barrier of %" PRIu32 " thread blocks, of which %" PRIu32 " arrived", op->count,
                 b->barriers[op->link].arrived);
    return plan_fail(b->p, op->byte, b->err,
                     "the plan deadlocks: GPU %" PRIu32 ", thread block %" PRIu32 " waits for %s",
                     block->rank, block->id, what);
}

static orr_code execute(builder *b)
{
    const size_t room = b->p->block_count + 1;
    while (b->queue_count) {
        const uint32_t index = b->queue[b->queue_first];
        b->queue_first = (b->queue_first + 1) % room;
        b->queue_count--;
        const orr_code code = run_block(b, index);
        if (code)
            return code;
    }
    for (uint32_t i = 0; i < b->p->block_count; i++)
        if (!b->blocks[i].is_done)
            return fail_stuck(b, i);
    for (size_t i = 0; i < b->p->link_count; i++)
        if (b->links[i].first)
            return plan_fail(b->p, 0, b->err,
                             "GPU %" PRIu32 " sends data that GPU %" PRIu32 " never receives",
                             b->p->links[i].from, b->p->links[i].to);
    return ORR_OK;
}

/* ---- the result ---- */

/* What the collective promises, place by place, in the same numbers as the values: so the check
 * needs no knowledge of how the plan works. */
static value expected(const coll_plan *p, uint32_t rank, uint32_t place)
{
    const uint32_t shard = p->chunks / p->ranks * p->parts;
    value sum = {0};
    switch (p->kind) {
    case ORR_COLL_ALL_GATHER:
        return input_value(place / shard, place % shard);
    case ORR_COLL_ALL_TO_ALL:
        return input_value(place / shard, rank * shard + place % shard);
    default:
        break;
    }
    const uint32_t of = p->kind == ORR_COLL_REDUCE_SCATTER ? rank * shard + place : place;
    for (uint32_t r = 0; r < p->ranks; r++)
        sum = add_values(sum, input_value(r, of));
    return sum;
}

static const char *describe(const coll_plan *p, value v, char *out, size_t room)
{
    if (v.count == 0)
        return "nothing";
    if (v.count == 1)
        snprintf(out, room, "chunk %" PRIu32 " of GPU %" PRIu32, v.place / p->parts, v.rank);
    else
        snprintf(out, room, "a sum of %" PRIu32 " chunks", v.count);
    return out;
}

static orr_code check_result(builder *b, uint32_t rank)
{
    const coll_plan *p = b->p;
    const rank_state *r = &b->ranks[rank];
    char have[80], want[80];
    /* A full reduction is the same on every rank: count it once. */
    for (uint32_t i = 0; i < plan_places(p, rank, PLAN_OUTPUT); i++) {
        const value v = r->values[r->base[PLAN_OUTPUT] + i];
        const value e = p->kind == ORR_COLL_ALL_REDUCE && rank
                            ? b->ranks[0].values[b->ranks[0].base[PLAN_OUTPUT] + i]
                            : expected(p, rank, i);
        if (same_value(v, e))
            continue;
        describe(p, v, have, sizeof have);
        if (e.count > 1)
            snprintf(want, sizeof want, "the sum of chunk %" PRIu32 " of all %" PRIu32 " GPUs",
                     (p->kind == ORR_COLL_REDUCE_SCATTER
                          ? rank * plan_places(p, rank, PLAN_OUTPUT) + i
                          : i) /
                         p->parts,
                     p->ranks);
        else
            describe(p, e, want, sizeof want);
        return plan_fail(p, 0, b->err,
                         "this does not implement %s: at the end, chunk %" PRIu32 " of the output "
                         "of GPU %" PRIu32 " is %s, not %s",
                         coll_kind_name(p->kind), i / p->parts, rank, v.count ? have : "nothing",
                         want);
    }
    return ORR_OK;
}

/* Inverts the edges: from dependencies to successors. */
static orr_code finish_rank(builder *b, uint32_t rank, coll_rank_program *out)
{
    const rank_state *r = &b->ranks[rank];
    const uint32_t n = (uint32_t)r->count;
    *out = (coll_rank_program){.count = n};
    out->steps = orr_arena_new(b->a, (size_t)n + 1, coll_step);
    out->after = orr_arena_new(b->a, r->dep_count + 1, uint32_t);
    if (!out->steps || !out->after)
        return orr_no_memory(b->err);
    if (n)
        memcpy(out->steps, r->steps, n * sizeof *r->steps);
    for (size_t d = 0; d < r->dep_count; d++)
        out->steps[r->deps[d]].after_count++;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        out->steps[i].first_after = at;
        at += out->steps[i].after_count;
        /* Counted again below, as the place of the next successor. */
        out->steps[i].after_count = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        out->steps[i].waits = (uint32_t)(r->first_dep[i + 1] - r->first_dep[i]);
        for (size_t d = r->first_dep[i]; d < r->first_dep[i + 1]; d++) {
            coll_step *before = &out->steps[r->deps[d]];
            out->after[before->first_after + before->after_count++] = i;
        }
    }
    return ORR_OK;
}

orr_code plan_build(const coll_plan *p,
                    orr_arena *a,
                    bool checks_values,
                    uint64_t data,
                    uint32_t slot_count,
                    coll_program *out,
                    orr_error *err)
{
    /* WENT_WRONG carries no code: run_block takes it from the error, also if nobody wants that. */
    orr_error own;
    builder b = {.p = p,
                 .a = a,
                 .err = err ? err : &own,
                 .checks_values = checks_values,
                 .data = data,
                 .slots = slot_count};
    *out = (coll_program){.plan = p};
    b.err->code = ORR_OK;
    orr_code code = make_states(&b);
    if (!code)
        code = execute(&b);
    for (uint32_t r = 0; r < p->ranks && !code && checks_values; r++)
        code = check_result(&b, r);
    out->messages = b.messages;
    if (!code && !(out->ranks = orr_arena_new(a, p->ranks, coll_rank_program)))
        code = orr_no_memory(b.err);
    for (uint32_t r = 0; r < p->ranks && !code; r++)
        code = finish_rank(&b, r, &out->ranks[r]);
    /* Lists that grew are not in the arena. */
    for (uint32_t r = 0; b.ranks && r < p->ranks; r++) {
        orr_free(b.ranks[r].steps);
        orr_free(b.ranks[r].deps);
        orr_free(b.ranks[r].first_dep);
    }
    for (size_t i = 0; b.blocks && i < p->block_count; i++)
        orr_free(b.blocks[i].puts);
    for (size_t i = 0; b.links && i < p->link_count; i++) {
        orr_free(b.links[i].landings);
        orr_free(b.links[i].sends);
    }
    return code;
}
