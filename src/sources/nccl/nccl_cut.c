/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_cut.c - calls that were profiled on all of their ranks: the others have no partners, and would wait for ever.
 *
 * Captures begin and end at different calls on different ranks.  Calls are numbered from the first row of an export on, so
 * what a communicator's ranks have in common is a range of numbers; so is what the two ends of a pair have in common of one
 * size of messages.
 * All collectives also get the numbers here that stand for them in tags. */
#include "nccl_write.h"

#include <inttypes.h>

static void widen(uint64_t number, uint64_t next, uint64_t *low, uint64_t *high)
{
    *low = *high == 0 || number < *low ? number : *low;
    *high = next > *high ? next : *high;
}

static orr_code survey_collective(orr__job *j, uint32_t gpu, const orr__call *c, orr_error *err)
{
    char name[96];
    const orr__comm *comm = &j->comms.all.at[c->comm];
    orr__seat *seat = orr__comm_seat_of(&j->comms, comm, gpu);
    if (!seat)
        return orr_fail(err, ORR_EINPUT, NULL, "%s uses communicator %s, but is not in it",
                        orr__gpu_name(j, gpu, name), orr__text(j, comm->ident).ptr);
    widen(c->sequence, c->sequence + 1, &seat->low, &seat->high);
    return ORR_OK;
}

/* ---- pairs ---- */

static uint64_t pair_key(
    const orr__job *j, uint32_t gpu, const orr__call *c, const orr__transfer *t, bool *is_known)
{
    const uint64_t peer = t->peer;
    const orr__comm *comm = &j->comms.all.at[c->comm];
    const orr__seat *me = orr__comm_seat_of(&j->comms, comm, gpu);
    *is_known = me && orr__comm_seat(&j->comms, comm, peer);
    const uint64_t mine = me ? me->rank : 0;
    const uint64_t from = c->op == ORR_NCCL_SEND ? mine : peer,
                   to = c->op == ORR_NCCL_SEND ? peer : mine;
    /* ranks are below 2^20 here, or the job would have a million GPUs in one communicator */
    return (uint64_t)orr__message_class(j, c->comm, t->size) << 40 | (from & 0xfffff) << 20 |
           (to & 0xfffff);
}

static orr__pair *find_pair(orr__job *j, uint64_t key)
{
    uint32_t at = orr_map_find(j->pair_of, key, ORR__NONE);
    if (at != ORR__NONE)
        return &j->pairs.at[at];
    at = (uint32_t)j->pairs.count;
    if (!orr_map_put(j->pair_of, key, at, NULL) ||
        !orr_grow(&j->pairs.at, &j->pairs.room, j->pairs.count + 1))
        return NULL;
    j->pairs.at[j->pairs.count++] = (orr__pair){0};
    return &j->pairs.at[at];
}

static orr_code survey_transfer(
    orr__job *j, uint32_t gpu, const orr__call *c, const orr__transfer *t, orr_error *err)
{
    bool is_known;
    char name[96];
    const uint64_t key = pair_key(j, gpu, c, t, &is_known);
    const int side = c->op == ORR_NCCL_SEND;
    if (!is_known)
        return orr_fail(err, ORR_EINPUT, NULL, "%s: communicator %s has no rank %" PRIu64,
                        orr__gpu_name(j, gpu, name),
                        orr__text(j, j->comms.all.at[c->comm].ident).ptr, t->peer);
    orr__pair *p = find_pair(j, key);
    if (!p)
        return orr_no_memory(err);
    widen(t->first_id, t->first_id + orr__transfer_messages(t), &p->low[side], &p->high[side]);
    return ORR_OK;
}

static orr_code survey_p2p(orr__job *j, uint32_t gpu, const orr__call *c, orr_error *err)
{
    const orr__gpu *g = &j->gpus.at[gpu];
    const orr__transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    if (c->is_payload) {
        const orr__transfer t = orr__guess_transfer(c);
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

static orr_code survey_gpu(orr__job *j, uint32_t gpu, orr_error *err)
{
    orr_code code = orr__gpu_ready(j, gpu, err);
    const orr__gpu *g = &j->gpus.at[gpu];
    for (size_t i = 0; i < g->calls.count && !code; i++) {
        const orr__call *c = &g->calls.at[i];
        orr__comm *comm = c->comm == ORR__NONE ? NULL : &j->comms.all.at[c->comm];
        if (comm && !orr__op_is_p2p(c->op) && c->sequence >= comm->operations)
            comm->operations = c->sequence + 1;
        if (!comm || !c->has_time || !orr__call_is_known(c))
            continue;
        code =
            orr__op_is_p2p(c->op) ? survey_p2p(j, gpu, c, err) : survey_collective(j, gpu, c, err);
    }
    return code;
}

static void intersect(orr__comms *c, orr__comm *comm)
{
    comm->low = 0;
    comm->high = UINT64_MAX;
    for (uint32_t i = 0; i < comm->seats; i++) {
        const orr__seat *s = &c->seats.at[comm->first_seat + i];
        comm->low = s->low > comm->low ? s->low : comm->low;
        comm->high = s->high < comm->high ? s->high : comm->high;
    }
}

static orr_code check_members(const orr__job *j, const orr__comm *comm, orr_error *err)
{
    if (comm->is_inferred || comm->ranks <= comm->seats || comm->operations == 0)
        return ORR_OK;
    uint64_t missing = 0;
    while (orr__comm_seat(&j->comms, comm, missing))
        missing++;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "communicator %s has %" PRIu64 " ranks, but the exports hold %" PRIu32
                    " of them: rank %" PRIu64 " is missing",
                    orr__text(j, comm->ident).ptr, comm->ranks, comm->seats, missing);
}

orr_code orr__cut_survey(orr__job *j, orr_error *err)
{
    orr_code code = ORR_OK;
    uint64_t context = 0;
    for (size_t i = 0; i < j->comms.ranked.count && !code; i++)
        code = survey_gpu(j, j->comms.ranked.at[i], err);
    for (size_t i = 0; i < j->comms.all.count && !code; i++) {
        orr__comm *comm = &j->comms.all.at[i];
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

bool orr__transfer_is_cut(const orr__job *j,
                          uint32_t gpu,
                          const orr__call *c,
                          const orr__transfer *t)
{
    bool is_known;
    if (j->rules->keeps_unmatched || j->opt->allows_unmatched)
        return false;
    const uint32_t at = orr_map_find(j->pair_of, pair_key(j, gpu, c, t, &is_known), ORR__NONE);
    const orr__pair *p = at == ORR__NONE ? NULL : &j->pairs.at[at];
    const uint64_t end = t->first_id + orr__transfer_messages(t);
    return !p || t->first_id < p->low[0] || t->first_id < p->low[1] || end > p->high[0] ||
           end > p->high[1];
}

/* A group's messages lie on one call of it; it is written as long as one of them is. */
static bool is_p2p_cut(const orr__job *j, uint32_t gpu, const orr__call *c)
{
    const orr__gpu *g = &j->gpus.at[gpu];
    const orr__transfer *rows = c->op == ORR_NCCL_SEND ? g->sends.at : g->receives.at;
    const orr__transfer guessed = orr__guess_transfer(c);
    if (c->is_payload)
        return orr__transfer_is_cut(j, gpu, c, &guessed);
    for (uint32_t i = 0; i < c->row_count; i++)
        if (!orr__transfer_is_cut(j, gpu, c, &rows[c->first_row + i]))
            return false;
    return true;
}

bool orr__call_is_cut(const orr__job *j, uint32_t gpu, const orr__call *c)
{
    if (j->rules->keeps_unmatched || j->opt->allows_unmatched)
        return false;
    if (orr__op_is_p2p(c->op))
        return is_p2p_cut(j, gpu, c);
    const orr__comm *comm = &j->comms.all.at[c->comm];
    return c->sequence < comm->low || c->sequence >= comm->high;
}

uint64_t orr__call_context(const orr__job *j, const orr__call *c)
{
    const orr__comm *comm = &j->comms.all.at[c->comm];
    return comm->first_context + c->sequence;
}
