/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_context.c - what tells the messages of one call from those of another: its part of their tags (goal.md 5.5).
 *
 * It is the number of the call in its communicator, which is the same on all of its ranks because NCCL wants
 * collectives in the same order everywhere; messages between two ranks are numbered through. */
#include "nccl_impl.h"

enum { MOST_COMMS = 1 << 24 };

/* ---- our own ---- */

uint64_t nccl_transfer_messages(const nccl_transfer *t)
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

uint32_t nccl_message_class(const nccl_job *j, uint32_t comm, uint64_t bytes)
{
    char room[12];
    uint32_t number;
    return orr_intern_find(j->classes, class_key(comm, bytes, room), &number) ? number : 0;
}

static bool number_messages(
    nccl_job *j, const nccl_call *c, const nccl_transfer *t, orr_map *pairs, uint64_t *first)
{
    char room[12];
    uint32_t number;
    if (!orr_intern_add(j->classes, class_key(c->comm, t->size, room), &number))
        return false;
    const uint64_t key =
        (uint64_t)number << 32 | (t->peer & INT32_MAX) << 1 | (c->op == ORR_NCCL_SEND);
    return count_up(pairs, key, nccl_transfer_messages(t), first);
}

static bool number_transfers(nccl_job *j, nccl_gpu *g, nccl_call *c, orr_map *pairs)
{
    nccl_transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    if (c->is_payload) {
        const nccl_transfer t = {.size = c->bytes, .peer = c->peer};
        return number_messages(j, c, &t, pairs, &c->sequence);
    }
    for (uint32_t i = 0; i < c->row_count; i++) {
        nccl_transfer *t = &rows[c->first_row + i];
        if (!number_messages(j, c, t, pairs, &t->first_id))
            return false;
    }
    return true;
}

/* Over all calls, also those outside the window: windows need not begin at the same call on all ranks. */
static orr_code own_contexts(nccl_job *j, uint32_t gpu, orr_error *err)
{
    nccl_gpu *g = &j->gpus.at[gpu];
    orr_map *counters = orr_map_create(16), *pairs = orr_map_create(16);
    bool is_good = counters && pairs;
    for (size_t i = 0; is_good && i < g->calls.count; i++) {
        nccl_call *c = &g->calls.at[i];
        if (!nccl_op_is_p2p(c->op))
            is_good = count_up(counters, c->comm, 1, &c->sequence);
        else
            is_good = number_transfers(j, g, c, pairs);
    }
    orr_map_destroy(counters);
    orr_map_destroy(pairs);
    return is_good ? ORR_OK : orr_no_memory(err);
}

/* ---- both ---- */

static orr_code find_comms(nccl_job *j, uint32_t gpu, orr_error *err)
{
    nccl_gpu *g = &j->gpus.at[gpu];
    char name[96];
    if (j->comms.all.count > MOST_COMMS)
        return orr_fail(err, ORR_EINPUT, NULL, "more than 16,777,216 communicators");
    for (size_t i = 0; i < g->calls.count; i++) {
        nccl_call *c = &g->calls.at[i];
        c->comm = orr_map_find(j->comms.of_ident, c->ident, ORR__NONE);
        if (c->comm == ORR__NONE && c->has_time)
            return orr_fail(err, ORR_EINPUT, NULL,
                            "%s uses communicator %s, which nobody announced",
                            nccl_gpu_name(j, gpu, name), nccl_text(j, c->ident).ptr);
    }
    return ORR_OK;
}

static orr_code find_contexts(nccl_job *j, uint32_t gpu, orr_error *err)
{
    const orr_code code = find_comms(j, gpu, err);
    if (code)
        return code;
    return j->rules->contexts ? j->rules->contexts(j, gpu, err) : own_contexts(j, gpu, err);
}

orr_code nccl_gpu_ready(nccl_job *j, uint32_t gpu, orr_error *err)
{
    orr_code code = nccl_job_load(j, gpu, err);
    if (code || j->gpus.at[gpu].stage == ORR__TIMED)
        return code;
    if (!code)
        code = nccl_gpu_link(j, gpu, err);
    if (!code)
        code = nccl_gpu_time(j, gpu, err);
    return code ? code : find_contexts(j, gpu, err);
}
