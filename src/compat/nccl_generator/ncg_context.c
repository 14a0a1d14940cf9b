/* SPDX-License-Identifier: Apache-2.0 */
/* ncg_context.c - nccl_generator_v2: its rules and its message contexts (goal.md 5.5).
 *
 * A context is a guess at the kind of parallelism, and the hash of (communicator, operation,
 * number) modulo 1,000.  The hashes of a GPU are in one numpy array; if some are below 2^63 and
 * some are not, numpy makes it an array of doubles, and the modulo is that of a rounded number. */
#include "nccl_generator.h"

#include "sources/nccl/nccl_impl.h"

#include <math.h>

uint64_t ncg_tuple_hash(const uint64_t *numbers, size_t count)
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

/* Alternating blocks of n As and n Ds; the last Ds may be missing. */
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

uint32_t ncg_parallelism(const char *letters, size_t count)
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

/* The operations of each stream as letters, concatenated, in the order that decides its
 * parallelism. */
typedef struct stream_words {
    orr_map *number; /* text -> index */
    uint32_t *count, *first, *kind;
    uint32_t streams;
    char *letters;
} stream_words;

static uint32_t call_in_order(const nccl_gpu *g, size_t i, size_t *next_untimed)
{
    if (i < g->events.count)
        return g->events.at[i];
    while (g->calls.at[*next_untimed].has_time)
        ++*next_untimed;
    return (uint32_t)(*next_untimed)++;
}

static bool place_letters(orr_arena *a, const nccl_gpu *g, size_t n, stream_words *w)
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
        const nccl_call *c = &g->calls.at[call_in_order(g, i, &untimed)];
        const uint32_t which = orr_map_find(w->number, c->stream, 0);
        w->letters[w->first[which] + w->count[which]++] = letter_of(c->op);
    }
    return true;
}

/* With -p only calls that are written count, otherwise all. */
static orr_code guess_parallelism(
    const nccl_job *j, orr_arena *a, uint32_t gpu, stream_words *w, orr_error *err)
{
    const nccl_gpu *g = &j->gpus.at[gpu];
    const size_t n = j->rules->guesses_from_events ? g->events.count : g->calls.count;
    char name[96];
    if (!place_letters(a, g, n, w))
        return orr_no_memory(err);
    if (memchr(w->letters, 0, n))
        return orr_fail(err, ORR_EINPUT, NULL,
                        "%s makes a call that the old generator does not know (ncclReduce, for "
                        "one); without --compat it may",
                        nccl_gpu_name(j, gpu, name));
    for (uint32_t s = 0; s < w->streams; s++)
        w->kind[s] = ncg_parallelism(w->letters + w->first[s], w->count[s]);
    return ORR_OK;
}

static orr_code number_calls(
    nccl_job *j, uint32_t gpu, orr_map *counters, uint64_t *hashes, orr_error *err)
{
    nccl_gpu *g = &j->gpus.at[gpu];
    for (size_t i = 0; i < g->events.count; i++) {
        nccl_call *c = &g->calls.at[g->events.at[i]];
        const uint64_t key = (uint64_t)c->comm << 8 | op_number(c->op);
        const uint32_t sequence = orr_map_find(counters, key, 0);
        if (!orr_map_put(counters, key, sequence + 1, NULL))
            return orr_no_memory(err);
        c->sequence = nccl_op_is_p2p(c->op) ? 0 : sequence;
        hashes[i] = ncg_tuple_hash((uint64_t[]){c->comm, op_number(c->op), c->sequence}, 3);
    }
    return ORR_OK;
}

static void set_old_contexts(nccl_gpu *g, const uint64_t *hashes, const stream_words *w)
{
    bool has_low = false, has_high = false;
    for (size_t i = 0; i < g->events.count; i++)
        *(hashes[i] >> 63 ? &has_high : &has_low) = true;
    for (size_t i = 0; i < g->events.count; i++) {
        nccl_call *c = &g->calls.at[g->events.at[i]];
        const uint64_t ident =
            has_low && has_high ? (uint64_t)fmod((double)hashes[i], 1000.0) : hashes[i] % 1000;
        c->context = w->kind[orr_map_find(w->number, c->stream, 0)] + 100 * ident;
    }
}

static orr_code old_contexts(nccl_job *j, uint32_t gpu, orr_error *err)
{
    nccl_gpu *g = &j->gpus.at[gpu];
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

#define RULES                                                                            \
    .ignores_payloads = true, .believes_announcements = true, .needs_group_marks = true, \
    .has_open_borders = true, .keeps_group_rows = true, .pairs_by_stream = true,         \
    .has_one_group_stream = true, .keeps_unmatched = true, .contexts = old_contexts,     \
    .has_decimal_tags = true, .expands_literally = true, .has_plain_ll128 = true,        \
    .has_any_cpu = true, .takes_first_timing = true, .refuses_overlaps = true,           \
    .waits_for_sends = true, .orders_by_context = true

const orr_rules_nccl ncg_rules = {RULES};
const orr_rules_nccl ncg_parallel_rules = {RULES, .guesses_from_events = true};
