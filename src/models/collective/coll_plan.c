/* SPDX-License-Identifier: Apache-2.0 */
/* coll_plan.c - from the file of a plan to the programs of its ranks.
 *
 * A plan without pipelines has one program for all data sizes: its steps refer to places, and
 * coll_step_bytes converts these to bytes.  With pipelines there is one program per size. */
#include "coll_plan_impl.h"

#include "base/arithmetic.h"
#include "base/formats/xml.h"
#include "base/io/input.h"
#include "base/memory/sort.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct plan_kept {
    uint64_t data;
    uint32_t slots;
    coll_program program;
    orr_arena *arena;
    struct plan_kept *next;
} plan_kept;

/* ---- functions for readers ---- */

/* Lines are counted only when there is something to say: plans have up to millions of
 * operations, and each keeps its byte only. */
static orr_where place(const coll_plan *p, uint64_t byte)
{
    const uint8_t *begin = p->bytes.ptr, *line = begin;
    uint32_t number = 1;
    if (!begin || byte > p->bytes.len)
        return orr_where_byte(p->path, byte);
    for (const uint8_t *at = begin; at < begin + byte; at++)
        if (*at == '\n') {
            number++;
            line = at + 1;
        }
    return orr_where_line(p->path, number, (uint32_t)(begin + byte - line) + 1);
}

orr_code plan_fail(const coll_plan *p, uint64_t byte, orr_error *err, const char *fmt, ...)
{
    const orr_where w = place(p, byte);
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return orr_fail(err, ORR_EINPUT, &w, "%s", text);
}

plan_block *plan_add_block(coll_plan *p, uint32_t rank, uint32_t id)
{
    if (!orr_grow(&p->blocks, &p->block_room, p->block_count + 1))
        return NULL;
    plan_block *b = &p->blocks[p->block_count++];
    *b = (plan_block){.rank = rank, .id = id};
    return b;
}

bool plan_add_op(plan_block *b, const plan_op *op)
{
    if (b->count >= UINT32_MAX / 2 || !orr_grow(&b->ops, &b->room, b->count + 1))
        return false;
    b->ops[b->count++] = *op;
    return true;
}

bool plan_find_kind(orr_str name, orr_collective *out)
{
    static const struct {
        const char *name;
        orr_collective kind;
    } known[] = {
        {"allreduce", ORR_COLL_ALL_REDUCE},         {"allgather", ORR_COLL_ALL_GATHER},
        {"reducescatter", ORR_COLL_REDUCE_SCATTER}, {"reduce_scatter", ORR_COLL_REDUCE_SCATTER},
        {"alltoall", ORR_COLL_ALL_TO_ALL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (orr_str_is(name, known[i].name)) {
            *out = known[i].kind;
            return true;
        }
    return false;
}

/* Files list thread blocks in any order; sorted, those of a rank lie together and find_block can
 * search them. Two that compare equal are an error of the file (seal), so the order is total. */
static int compare_blocks(const void *p, const void *q)
{
    const plan_block *a = p, *b = q;
    return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : (a->id > b->id) - (a->id < b->id);
}

/* After all thread blocks have been added. */
static orr_code seal(coll_plan *p, orr_error *err)
{
    if (p->block_count)
        orr_sort(p->blocks, p->block_count, sizeof *p->blocks, compare_blocks);
    p->first_block = orr_arena_new(p->arena, (size_t)p->ranks + 1, uint32_t);
    if (!p->first_block)
        return orr_no_memory(err);
    for (size_t i = 0; i < p->block_count; i++) {
        const plan_block *b = &p->blocks[i];
        if (i && b[-1].rank == b->rank && b[-1].id == b->id)
            return plan_fail(p, b->count ? b->ops[0].byte : 0, err,
                             "GPU %" PRIu32 " has two thread blocks %" PRIu32, b->rank, b->id);
        p->first_block[b->rank + 1]++;
    }
    /* From counts to first indices; rank r has [first_block[r], first_block[r + 1]). */
    for (uint32_t r = 0; r < p->ranks; r++)
        p->first_block[r + 1] += p->first_block[r];
    if (p->chunks == 0)
        return plan_fail(p, 0, err, "the plan has no chunks of input or output");
    if (p->kind != ORR_COLL_ALL_REDUCE && p->chunks % p->ranks)
        return plan_fail(p, 0, err,
                         "%" PRIu32 " chunks cannot be divided among %" PRIu32 " ranks, as %s does",
                         p->chunks, p->ranks, coll_kind_name(p->kind));
    return ORR_OK;
}

uint32_t plan_places(const coll_plan *p, uint32_t rank, plan_buffer b)
{
    /* A shard is the part of one rank. Only that of the smaller buffer: an all-gather starts with
     * one and a reduce-scatter ends with one. */
    const bool is_shard = (p->kind == ORR_COLL_ALL_GATHER && b == PLAN_INPUT) ||
                          (p->kind == ORR_COLL_REDUCE_SCATTER && b == PLAN_OUTPUT);
    if (b == PLAN_SCRATCH)
        return p->scratch[rank] * p->parts;
    return (is_shard ? p->chunks / p->ranks : p->chunks) * p->parts;
}

/* ---- reading ---- */

static orr_code read_bytes(coll_plan *p, orr_span bytes, orr_error *err)
{
    p->bytes = bytes;
    p->parts = 1;
    p->most = UINT64_MAX;
    orr_code code =
        orr_xml_looks_like(bytes) ? plan_read_xml(p, bytes, err) : plan_read_json(p, bytes, err);
    if (!code)
        code = seal(p, err);
    /* Executed here, with values, and thrown away: an invalid plan must be found when its file is
     * read, where messages have lines, and not when a run first needs it. */
    coll_program program;
    orr_arena *a = code ? NULL : orr_arena_create();
    if (!code)
        code = a ? plan_build(p, a, true, 0, COLL_PLAN_SLOTS, &program, err) : orr_no_memory(err);
    orr_arena_destroy(a);
    /* Valid only until here: errors of later executions have no lines. */
    p->bytes = (orr_span){NULL, 0};
    return code;
}

orr_code coll_plan_parse(orr_span bytes, const char *path, coll_plan **out, orr_error *err)
{
    coll_plan *p = orr_alloc(1, sizeof *p);
    *out = NULL;
    if (!p || !(p->arena = orr_arena_create()) ||
        !(p->path = orr_arena_text(p->arena, orr_str_of(path)))) {
        coll_plan_destroy(p);
        return orr_no_memory(err);
    }
    const orr_code code = read_bytes(p, bytes, err);
    if (code) {
        coll_plan_destroy(p);
        return code;
    }
    *out = p;
    return ORR_OK;
}

orr_code coll_plan_read(const char *path, coll_plan **out, orr_error *err)
{
    orr_input *in = NULL;
    *out = NULL;
    orr_code code = orr_input_open(path, &in, err);
    if (!code)
        code = coll_plan_parse(orr_input_bytes(in), path, out, err);
    orr_input_close(in);
    return code;
}

void coll_plan_destroy(coll_plan *p)
{
    if (!p)
        return;
    while (p->kept) {
        plan_kept *k = p->kept;
        p->kept = k->next;
        orr_arena_destroy(k->arena);
        orr_free(k);
    }
    for (size_t i = 0; i < p->block_count; i++) {
        orr_free(p->blocks[i].ops);
        orr_free(p->blocks[i].loops);
    }
    orr_free(p->blocks);
    orr_free(p->links);
    orr_free(p->semaphores);
    orr_free(p->units);
    orr_arena_destroy(p->arena);
    orr_free(p);
}

bool coll_plan_looks_like(const char *path)
{
    return orr_has_suffix(path, ".xml") || orr_has_suffix(path, ".json") ||
           orr_has_suffix(path, ".xml.gz") || orr_has_suffix(path, ".json.gz") ||
           orr_has_suffix(path, ".xml.zst") || orr_has_suffix(path, ".json.zst");
}

/* ---- queries ---- */

const char *coll_plan_path(const coll_plan *p)
{
    return p->path;
}

orr_collective coll_plan_kind(const coll_plan *p)
{
    return p->kind;
}

uint32_t coll_plan_ranks(const coll_plan *p)
{
    return p->ranks;
}

uint64_t plan_whole(const coll_plan *p, uint64_t data)
{
    return p->kind == ORR_COLL_ALL_GATHER ? orr_sat_mul(data, p->ranks) : data;
}

bool coll_plan_fits(const coll_plan *p, uint32_t ranks, uint64_t data)
{
    const uint64_t all = plan_whole(p, data);
    return ranks == p->ranks && all >= p->least && all <= p->most;
}

/* The first byte of a place, of `all` bytes in `places` places: exact.  Saturates only in a scratch
 * buffer with more places than the data. */
static uint64_t byte_of(uint64_t all, uint64_t places, uint64_t place_at)
{
    uint64_t product;
    if (!__builtin_mul_overflow(all, place_at, &product))
        return product / places;
    const unsigned __int128 byte = (unsigned __int128)all * place_at / places;
    return byte > UINT64_MAX ? UINT64_MAX : (uint64_t)byte;
}

uint64_t coll_step_bytes(const coll_plan *p, const coll_step *s, uint64_t data)
{
    const uint64_t all = plan_whole(p, data), places = (uint64_t)p->chunks * p->parts;
    if (s->factor == 0)
        return COLL_FLAG_BYTES;
    /* Differences of first bytes, not sizes of places: what does not divide evenly is spread over
     * the places, and the sizes of all places still add up to all bytes. */
    uint64_t n = byte_of(all, places, s->to) - byte_of(all, places, s->from);
    if (s->unit != COLL_NO_UNIT) {
        const uint64_t unit = p->units[s->unit], gone = s->piece * unit;
        n = n <= gone ? 0 : n - gone < unit ? n - gone : unit;
    }
    /* At least one byte, like every message (match.c): an empty one would still have to arrive. */
    return n ? orr_sat_mul(n, s->factor) : 1;
}

orr_code coll_plan_program(
    coll_plan *p, uint64_t data, uint32_t slots, const coll_program **out, orr_error *err)
{
    /* Without pipelines the steps are the same for any size, so one program serves all. A list is
     * enough: a workload has a few sizes per plan. */
    const uint64_t key = p->unit_count ? data : 0;
    for (plan_kept *k = p->kept; k; k = k->next)
        if (k->data == key && k->slots == slots) {
            *out = &k->program;
            return ORR_OK;
        }
    plan_kept *k = orr_alloc(1, sizeof *k);
    if (!k || !(k->arena = orr_arena_create())) {
        orr_free(k);
        return orr_no_memory(err);
    }
    k->data = key;
    k->slots = slots;
    const orr_code code = plan_build(p, k->arena, false, key, slots, &k->program, err);
    if (code) {
        orr_arena_destroy(k->arena);
        orr_free(k);
        return code;
    }
    k->next = p->kept;
    p->kept = k;
    *out = &k->program;
    return ORR_OK;
}
