/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_context.c - what tells the messages of one call from those of another: its part of their tags (goal.md 5.5).
 *
 * The old way: a guess at the kind of parallelism, and the hash of (communicator, operation, number) modulo 1,000.  Those of a
 * GPU lie in one array of numpy; when some are below 2^63 and some are not, that array is one of doubles, and the modulo
 * that of a rounded number.  Ours: the number of the call in its communicator, which is the same on all of its ranks
 * because NCCL wants collectives in the same order everywhere; messages between two ranks are numbered through. */
#include "nccl_impl.h"

#include <math.h>

enum { MOST_COMMS = 1 << 24 };

/* ---- the old way ---- */

uint64_t orr__tuple_hash(const uint64_t *numbers, size_t count)
{
    const uint64_t p1 = UINT64_C(11400714785074694791), p2 = UINT64_C(14029467366897019727),
                   p5 = UINT64_C(2870177450012600261);
    uint64_t acc = p5;
    for (size_t i = 0; i < count; i++) {
        acc += numbers[i] * p2;
        acc = acc << 31 | acc >> 33;
        acc *= p1;
    }
    acc += count ^ (p5 ^ UINT64_C(3527539));
    return acc == UINT64_MAX ? UINT64_C(1546275796) : acc;
}

/* n As and n Ds in turn, the last Ds may be missing. */
static bool is_data_parallel(const char *letters, size_t count)
{
    size_t block = 0;
    while (block < count && letters[block] == 'A')
        block++;
    if (block == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (letters[i] != (i / block % 2 ? 'D' : 'A'))
            return false;
    return count % block == 0;
}

uint32_t orr__parallelism(const char *letters, size_t count)
{
    size_t messages = 0;
    if (is_data_parallel(letters, count))
        return 2;
    for (size_t i = 0; i < count; i++)
        messages += letters[i] == 'E' || letters[i] == 'F';
    return messages >= 2;
}

static char letter_of(uint8_t op)
{
    static const char letters[ORR_NCCL_OPS] = {
        [ORR_NCCL_ALL_GATHER] = 'A',     [ORR_NCCL_ALL_REDUCE] = 'B', [ORR_NCCL_BROADCAST] = 'C',
        [ORR_NCCL_REDUCE_SCATTER] = 'D', [ORR_NCCL_RECV] = 'E',       [ORR_NCCL_SEND] = 'F',
    };
    return letters[op];
}

static uint64_t op_number(uint8_t op)
{
    static const uint8_t numbers[ORR_NCCL_OPS] = {
        [ORR_NCCL_ALL_REDUCE] = 0, [ORR_NCCL_ALL_GATHER] = 1, [ORR_NCCL_REDUCE_SCATTER] = 2,
        [ORR_NCCL_BROADCAST] = 3,  [ORR_NCCL_REDUCE] = 4,     [ORR_NCCL_SEND] = 6,
        [ORR_NCCL_RECV] = 6,
    };
    return numbers[op];
}

/* The letters of each stream, one behind another, in the order that decides its parallelism. */
typedef struct stream_words {
    orr_map *number; /* text -> which */
    uint32_t *count, *first, *kind;
    uint32_t streams;
    char *letters;
} stream_words;

static uint32_t call_in_order(const orr__gpu *g, size_t i, size_t *next_untimed)
{
    if (i < g->events.count)
        return g->events.at[i];
    while (g->calls.at[*next_untimed].has_time)
        ++*next_untimed;
    return (uint32_t)(*next_untimed)++;
}

static bool place_letters(orr_arena *a, const orr__gpu *g, size_t n, stream_words *w)
{
    size_t untimed = 0;
    w->count = orr_arena_new(a, n + 1, uint32_t);
    w->first = orr_arena_new(a, n + 2, uint32_t);
    w->kind = orr_arena_new(a, n + 1, uint32_t);
    w->letters = orr_arena_new(a, n + 1, char);
    if (!w->count || !w->first || !w->kind || !w->letters)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t stream = g->calls.at[call_in_order(g, i, &untimed)].stream;
        const uint32_t known = orr_map_find(w->number, stream, ORR__NONE);
        const uint32_t which = known == ORR__NONE ? w->streams++ : known;
        if (known == ORR__NONE && !orr_map_put(w->number, stream, which, NULL))
            return false;
        w->count[which]++;
    }
    for (uint32_t s = 0; s < w->streams; s++)
        w->first[s + 1] = w->first[s] + w->count[s];
    memset(w->count, 0, (n + 1) * sizeof *w->count);
    untimed = 0;
    for (size_t i = 0; i < n; i++) {
        const orr__call *c = &g->calls.at[call_in_order(g, i, &untimed)];
        const uint32_t which = orr_map_find(w->number, c->stream, 0);
        w->letters[w->first[which] + w->count[which]++] = letter_of(c->op);
    }
    return true;
}

/* Only calls that are written count with -p; without it, all of them. */
static orr_code guess_parallelism(
    const orr__job *j, orr_arena *a, uint32_t gpu, stream_words *w, orr_error *err)
{
    const orr__gpu *g = &j->gpus.at[gpu];
    const size_t n = j->opt->is_parallel_compat ? g->events.count : g->calls.count;
    char name[96];
    if (!place_letters(a, g, n, w))
        return orr_no_memory(err);
    if (memchr(w->letters, 0, n))
        return orr_fail(err, ORR_EINPUT, NULL,
                        "%s makes a call that the old generator does not know (ncclReduce, for "
                        "one); without --compat it may",
                        orr__gpu_name(j, gpu, name));
    for (uint32_t s = 0; s < w->streams; s++)
        w->kind[s] = orr__parallelism(w->letters + w->first[s], w->count[s]);
    return ORR_OK;
}

static orr_code number_calls(
    orr__job *j, uint32_t gpu, orr_map *counters, uint64_t *hashes, orr_error *err)
{
    orr__gpu *g = &j->gpus.at[gpu];
    for (size_t i = 0; i < g->events.count; i++) {
        orr__call *c = &g->calls.at[g->events.at[i]];
        const uint64_t key = (uint64_t)c->comm << 8 | op_number(c->op);
        const uint32_t sequence = orr_map_find(counters, key, 0);
        if (!orr_map_put(counters, key, sequence + 1, NULL))
            return orr_no_memory(err);
        c->sequence = orr__op_is_p2p(c->op) ? 0 : sequence;
        hashes[i] = orr__tuple_hash((uint64_t[]){c->comm, op_number(c->op), c->sequence}, 3);
    }
    return ORR_OK;
}

static void set_old_contexts(orr__gpu *g, const uint64_t *hashes, const stream_words *w)
{
    bool has_low = false, has_high = false;
    for (size_t i = 0; i < g->events.count; i++)
        *(hashes[i] >> 63 ? &has_high : &has_low) = true;
    for (size_t i = 0; i < g->events.count; i++) {
        orr__call *c = &g->calls.at[g->events.at[i]];
        const uint64_t ident =
            has_low && has_high ? (uint64_t)fmod((double)hashes[i], 1000.0) : hashes[i] % 1000;
        c->context = w->kind[orr_map_find(w->number, c->stream, 0)] + 100 * ident;
    }
}

static orr_code old_contexts(orr__job *j, uint32_t gpu, orr_error *err)
{
    orr__gpu *g = &j->gpus.at[gpu];
    orr_arena *a = orr_arena_create();
    stream_words w = {.number = orr_map_create(16)};
    orr_map *counters = orr_map_create(16);
    uint64_t *hashes = a ? orr_arena_new(a, g->events.count + 1, uint64_t) : NULL;
    orr_code code = w.number && counters && hashes ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = guess_parallelism(j, a, gpu, &w, err);
    if (!code)
        code = number_calls(j, gpu, counters, hashes, err);
    if (!code)
        set_old_contexts(g, hashes, &w);
    orr_map_destroy(w.number);
    orr_map_destroy(counters);
    orr_arena_destroy(a);
    return code;
}

/* ---- our own ---- */

uint64_t orr__transfer_messages(const orr__transfer *t)
{
    if (t->protocol != ORR__SIMPLE || t->chunk == 0 || t->size / t->chunk <= 1)
        return 1;
    return t->size / t->chunk + (t->size % t->chunk != 0);
}

/* A running number for each key; *out is its value before. */
static bool count_up(orr_map *m, uint64_t key, uint64_t by, uint64_t *out)
{
    const uint32_t before = orr_map_find(m, key, 0);
    *out = before;
    return orr_map_put(m, key, before + (uint32_t)by, NULL);
}

/* Messages of one size in one communicator are a class: they are numbered on their own, so that one that was captured at
 * one end only shifts none of another size.  NCCL matches in order, so the n-th of a size meets the n-th of that size. */
static orr_str class_key(uint32_t comm, uint64_t bytes, char room[12])
{
    memcpy(room, &comm, sizeof comm);
    memcpy(room + sizeof comm, &bytes, sizeof bytes);
    return (orr_str){.ptr = room, .len = 12};
}

uint32_t orr__message_class(const orr__job *j, uint32_t comm, uint64_t bytes)
{
    char room[12];
    uint32_t number;
    return orr_intern_find(j->classes, class_key(comm, bytes, room), &number) ? number : 0;
}

static bool number_messages(
    orr__job *j, const orr__call *c, const orr__transfer *t, orr_map *pairs, uint64_t *first)
{
    char room[12];
    uint32_t number;
    if (!orr_intern_add(j->classes, class_key(c->comm, t->size, room), &number))
        return false;
    const uint64_t key =
        (uint64_t)number << 32 | (t->peer & INT32_MAX) << 1 | (c->op == ORR_NCCL_SEND);
    return count_up(pairs, key, orr__transfer_messages(t), first);
}

static bool number_transfers(orr__job *j, orr__gpu *g, orr__call *c, orr_map *pairs)
{
    orr__transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    if (c->is_payload) {
        const orr__transfer t = {.size = c->bytes, .peer = c->peer};
        return number_messages(j, c, &t, pairs, &c->sequence);
    }
    for (uint32_t i = 0; i < c->row_count; i++) {
        orr__transfer *t = &rows[c->first_row + i];
        if (!number_messages(j, c, t, pairs, &t->first_id))
            return false;
    }
    return true;
}

/* Over all calls, also those outside the window: windows need not begin at the same call on all ranks. */
static orr_code own_contexts(orr__job *j, uint32_t gpu, orr_error *err)
{
    orr__gpu *g = &j->gpus.at[gpu];
    orr_map *counters = orr_map_create(16), *pairs = orr_map_create(16);
    bool is_good = counters && pairs;
    for (size_t i = 0; is_good && i < g->calls.count; i++) {
        orr__call *c = &g->calls.at[i];
        if (!orr__op_is_p2p(c->op))
            is_good = count_up(counters, c->comm, 1, &c->sequence);
        else
            is_good = number_transfers(j, g, c, pairs);
    }
    orr_map_destroy(counters);
    orr_map_destroy(pairs);
    return is_good ? ORR_OK : orr_no_memory(err);
}

/* ---- both ---- */

static orr_code find_comms(orr__job *j, uint32_t gpu, orr_error *err)
{
    orr__gpu *g = &j->gpus.at[gpu];
    char name[96];
    if (j->comms.all.count > MOST_COMMS)
        return orr_fail(err, ORR_EINPUT, NULL, "more than 16,777,216 communicators");
    for (size_t i = 0; i < g->calls.count; i++) {
        orr__call *c = &g->calls.at[i];
        c->comm = orr_map_find(j->comms.of_ident, c->ident, ORR__NONE);
        if (c->comm == ORR__NONE && c->has_time)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "%s uses communicator %s, which nobody announced",
                            orr__gpu_name(j, gpu, name), orr__text(j, c->ident).ptr);
    }
    return ORR_OK;
}

static orr_code find_contexts(orr__job *j, uint32_t gpu, orr_error *err)
{
    const orr_code code = find_comms(j, gpu, err);
    if (code)
        return code;
    return j->opt->is_compat ? old_contexts(j, gpu, err) : own_contexts(j, gpu, err);
}

orr_code orr__gpu_ready(orr__job *j, uint32_t gpu, orr_error *err)
{
    orr_code code = orr__job_load(j, gpu, err);
    if (code || j->gpus.at[gpu].stage == ORR__TIMED)
        return code;
    if (!code)
        code = orr__gpu_link(j, gpu, err);
    if (!code)
        code = orr__gpu_time(j, gpu, err);
    return code ? code : find_contexts(j, gpu, err);
}
