/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_context.c - the part of tags that distinguishes the messages of different calls (goal.md
 * 5.5).
 *
 * It is the number of the call in its communicator, which is the same on all of its ranks because
 * NCCL requires the same order of collectives; messages between two ranks are numbered
 * consecutively. */
#include "nccl_impl.h"
#include "nccl_write.h"

#include <inttypes.h>

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

/* Messages of one size in one communicator are a class: they are numbered on their own, so that one
 * that was captured at one end only shifts none of another size.  NCCL matches in order, so the
 * n-th of a size meets the n-th of that size. */
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

/* Over all calls, also those outside the window: windows need not begin at the same call on all
 * ranks. */
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
                            "%s uses communicator %s, which was never announced",
                            nccl_gpu_name(j, gpu, name), nccl_text(j, c->ident).ptr);
    }
    return ORR_OK;
}

static orr_code find_contexts(nccl_job *j, uint32_t gpu, orr_error *err)
{
    const orr_code code = find_comms(j, gpu, err);
    if (code)
        return code;
    const orr_code second =
        j->rules->contexts ? j->rules->contexts(j, gpu, err) : own_contexts(j, gpu, err);
    return second ? second : nccl_user_contexts_set(j, gpu, err);
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

/* Calls that were profiled on all of their ranks: the others have no partners, and would wait
 * forever.
 *
 * Captures begin and end at different calls on different ranks.  Calls are numbered from the first
 * row of an export on, so what a communicator's ranks have in common is a range of numbers; so is
 * what the two ends of a pair have in common of one size of messages. All collectives also get the
 * numbers here that stand for them in tags. */

static void widen(uint64_t number, uint64_t next, uint64_t *low, uint64_t *high)
{
    *low = *high == 0 || number < *low ? number : *low;
    *high = next > *high ? next : *high;
}

static orr_code survey_collective(nccl_job *j, uint32_t gpu, const nccl_call *c, orr_error *err)
{
    char name[96];
    const nccl_comm *comm = &j->comms.all.at[c->comm];
    nccl_seat *seat = nccl_comm_seat_of(&j->comms, comm, gpu);
    if (!seat)
        return orr_fail(err, ORR_EINPUT, NULL, "%s uses communicator %s, but is not in it",
                        nccl_gpu_name(j, gpu, name), nccl_text(j, comm->ident).ptr);
    widen(c->sequence, c->sequence + 1, &seat->low, &seat->high);
    return ORR_OK;
}

/* ---- pairs ---- */

static uint64_t pair_key(
    const nccl_job *j, uint32_t gpu, const nccl_call *c, const nccl_transfer *t, bool *is_known)
{
    const uint64_t peer = t->peer;
    const nccl_comm *comm = &j->comms.all.at[c->comm];
    const nccl_seat *me = nccl_comm_seat_of(&j->comms, comm, gpu);
    *is_known = me && nccl_comm_seat(&j->comms, comm, peer);
    const uint64_t mine = me ? me->rank : 0;
    const uint64_t from = c->op == ORR_NCCL_SEND ? mine : peer,
                   to = c->op == ORR_NCCL_SEND ? peer : mine;
    /* ranks are below 2^20 here, or the job would have a million GPUs in one communicator */
    return (uint64_t)nccl_message_class(j, c->comm, t->size) << 40 | (from & 0xfffff) << 20 |
           (to & 0xfffff);
}

static nccl_pair *find_pair(nccl_job *j, uint64_t key)
{
    uint32_t at = orr_map_find(j->pair_of, key, ORR__NONE);
    if (at != ORR__NONE)
        return &j->pairs.at[at];
    at = (uint32_t)j->pairs.count;
    if (!orr_map_put(j->pair_of, key, at, NULL) ||
        !orr_grow(&j->pairs.at, &j->pairs.room, j->pairs.count + 1))
        return NULL;
    j->pairs.at[j->pairs.count++] = (nccl_pair){0};
    return &j->pairs.at[at];
}

static orr_code survey_transfer(
    nccl_job *j, uint32_t gpu, const nccl_call *c, const nccl_transfer *t, orr_error *err)
{
    bool is_known;
    char name[96];
    const uint64_t key = pair_key(j, gpu, c, t, &is_known);
    const int side = c->op == ORR_NCCL_SEND;
    if (!is_known)
        return orr_fail(err, ORR_EINPUT, NULL, "%s: communicator %s has no rank %" PRIu64,
                        nccl_gpu_name(j, gpu, name),
                        nccl_text(j, j->comms.all.at[c->comm].ident).ptr, t->peer);
    nccl_pair *p = find_pair(j, key);
    if (!p)
        return orr_no_memory(err);
    widen(t->first_id, t->first_id + nccl_transfer_messages(t), &p->low[side], &p->high[side]);
    return ORR_OK;
}

static orr_code survey_p2p(nccl_job *j, uint32_t gpu, const nccl_call *c, orr_error *err)
{
    const nccl_gpu *g = &j->gpus.at[gpu];
    const nccl_transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    if (c->is_payload) {
        const nccl_transfer t = nccl_guess_transfer(c);
        return survey_transfer(j, gpu, c, &t, err);
    }
    for (uint32_t i = 0; i < c->row_count; i++) {
        const orr_code code = survey_transfer(j, gpu, c, &rows[c->first_row + i], err);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* ---- all ---- */

static orr_code survey_gpu(nccl_job *j, uint32_t gpu, orr_error *err)
{
    orr_code code = nccl_gpu_ready(j, gpu, err);
    const nccl_gpu *g = &j->gpus.at[gpu];
    for (size_t i = 0; i < g->calls.count && !code; i++) {
        const nccl_call *c = &g->calls.at[i];
        nccl_comm *comm = c->comm == ORR__NONE ? NULL : &j->comms.all.at[c->comm];
        if (comm && !nccl_op_is_p2p(c->op) && c->sequence >= comm->operations)
            comm->operations = c->sequence + 1;
        if (!comm || !c->has_time || !nccl_call_is_known(c))
            continue;
        code =
            nccl_op_is_p2p(c->op) ? survey_p2p(j, gpu, c, err) : survey_collective(j, gpu, c, err);
    }
    return code;
}

static void intersect(nccl_comms *c, nccl_comm *comm)
{
    comm->low = 0;
    comm->high = UINT64_MAX;
    for (uint32_t i = 0; i < comm->seats; i++) {
        const nccl_seat *s = &c->seats.at[comm->first_seat + i];
        comm->low = s->low > comm->low ? s->low : comm->low;
        comm->high = s->high < comm->high ? s->high : comm->high;
    }
}

static orr_code check_members(const nccl_job *j, const nccl_comm *comm, orr_error *err)
{
    if (comm->is_inferred || comm->ranks <= comm->seats || comm->operations == 0)
        return ORR_OK;
    uint64_t missing = 0;
    while (nccl_comm_seat(&j->comms, comm, missing))
        missing++;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "communicator %s has %" PRIu64 " ranks, but the exports hold %" PRIu32
                    " of them: rank %" PRIu64 " is missing",
                    nccl_text(j, comm->ident).ptr, comm->ranks, comm->seats, missing);
}

orr_code nccl_cut_survey(nccl_job *j, orr_error *err)
{
    orr_code code = ORR_OK;
    uint64_t context = 0;
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++)
        code = survey_gpu(j, j->comms.ranked.at[i], err);
    for (size_t i = 0; i < j->comms.all.count && !code; i++) {
        nccl_comm *comm = &j->comms.all.at[i];
        intersect(&j->comms, comm);
        comm->first_context = context;
        context += comm->operations;
        if (!j->opt->allows_unmatched)
            code = check_members(j, comm, err);
    }
    j->first_class_context = context;
    j->contexts = context + orr_intern_count(j->classes);
    return code;
}

bool nccl_transfer_is_cut(const nccl_job *j,
                          uint32_t gpu,
                          const nccl_call *c,
                          const nccl_transfer *t)
{
    bool is_known;
    if (j->rules->keeps_unmatched || j->opt->allows_unmatched)
        return false;
    const uint32_t at = orr_map_find(j->pair_of, pair_key(j, gpu, c, t, &is_known), ORR__NONE);
    const nccl_pair *p = at == ORR__NONE ? NULL : &j->pairs.at[at];
    const uint64_t end = t->first_id + nccl_transfer_messages(t);
    return !p || t->first_id < p->low[0] || t->first_id < p->low[1] || end > p->high[0] ||
           end > p->high[1];
}

/* A group's messages lie on one call of it; it is written as long as one of them is. */
static bool is_p2p_cut(const nccl_job *j, uint32_t gpu, const nccl_call *c)
{
    const nccl_gpu *g = &j->gpus.at[gpu];
    const nccl_transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    const nccl_transfer guessed = nccl_guess_transfer(c);
    if (c->is_payload)
        return nccl_transfer_is_cut(j, gpu, c, &guessed);
    for (uint32_t i = 0; i < c->row_count; i++)
        if (!nccl_transfer_is_cut(j, gpu, c, &rows[c->first_row + i]))
            return false;
    return true;
}

bool nccl_call_is_cut(const nccl_job *j, uint32_t gpu, const nccl_call *c)
{
    if (j->rules->keeps_unmatched || j->opt->allows_unmatched)
        return false;
    if (nccl_op_is_p2p(c->op))
        return is_p2p_cut(j, gpu, c);
    const nccl_comm *comm = &j->comms.all.at[c->comm];
    return c->sequence < comm->low || c->sequence >= comm->high;
}

uint64_t nccl_call_context(const nccl_job *j, const nccl_call *c)
{
    const nccl_comm *comm = &j->comms.all.at[c->comm];
    return comm->first_context + c->sequence;
}
