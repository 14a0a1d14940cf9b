/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_trace_collectives.c - collectives of a trace, taken apart into messages (goal.md 4).
 *
 *     messages of the collective      those that wait for none of them wait for the time before
 *     calc 0                          waits for those none of them waits for: the end of the collective
 *
 * What SchedGen takes apart is taken apart as it does it; the others only by our rules, each in the simplest way
 * that gives every rank the bytes its own line in the trace says. */
#include "mpi_trace_impl.h"

#include <stdio.h>

enum { FIRST_TAG = 1000000 };

/* What the line says; sizes are those of one message. */
typedef struct collective {
    double begin, end;
    uint64_t bytes;  /* sent to each */
    uint64_t bytes2; /* received from each */
    uint32_t root;
    uint32_t rank, n; /* in the schedule */
} collective;

static bool has_root(mpi_kind kind)
{
    return kind == MPI_BCAST || kind == MPI_REDUCE || kind == MPI_GATHER || kind == MPI_SCATTER ||
           kind == MPI_GATHERV || kind == MPI_SCATTERV;
}

static orr_code read_root(const mpi_rank *r, collective *c, orr_error *err)
{
    const mpi_place place = r->line.call->peer;
    int32_t root;
    const orr_code code = sgen_mpi_line_int(&r->line, place, &root, err);
    if (code)
        return code;
    if (root < 0 || (uint32_t)root >= r->run->hosts) {
        const orr_where at = sgen_mpi_line_where(&r->line, place);
        return orr_fail(err, ORR_EINPUT, &at, "%s: the root, %d, is none of the ranks 0 to %u",
                        r->line.call->name, root, r->run->hosts - 1);
    }
    c->root = (uint32_t)root;
    return ORR_OK;
}

static orr_code read_collective(const mpi_rank *r, collective *c, orr_error *err)
{
    const mpi_call *call = r->line.call;
    orr_code code = sgen_mpi_line_time(&r->line, (mpi_place){1, 0}, &c->begin, err);
    *c = (collective){
        .begin = c->begin, .rank = sgen_mpi_number(r), .n = r->run->hosts * r->run->copies};
    if (!code)
        code = sgen_mpi_line_time(&r->line, call->end, &c->end, err);
    if (!code && call->count.at)
        code = sgen_mpi_line_bytes(&r->line, call->count, call->size, &c->bytes, err);
    if (!code && call->count2.at)
        code = sgen_mpi_line_bytes(&r->line, call->count2, call->size2, &c->bytes2, err);
    if (!code && has_root(call->kind))
        code = read_root(r, c, err);
    return code;
}

/* ---- lists of counts ---- */

/* The bytes for or from a rank of the schedule; copies of a rank have its count. */
static orr_code listed_bytes(
    const mpi_rank *r, mpi_place list, mpi_place size, uint32_t rank, uint64_t *out, orr_error *err)
{
    mpi_line line = r->line; /* places count in bytes; a list is longer than that */
    const uint32_t skip = rank % r->run->hosts;
    const size_t first = list.at + (size_t)list.times * line.ranks;
    line.starts += first + skip - 1;
    line.count -= first + skip - 1;
    int32_t n = 0, each = 0;
    orr_code code = sgen_mpi_line_int(&line, (mpi_place){1, 0}, &n, err);
    if (code || (code = sgen_mpi_line_int(&r->line, size, &each, err)))
        return code;
    if (n < 0 || each < 0) {
        const orr_where at = sgen_mpi_line_where(&line, (mpi_place){1, 0});
        return orr_fail(err, ORR_EINPUT, &at, "%s: %d elements of %d bytes", r->line.call->name, n,
                        each);
    }
    *out = (uint64_t)n * (uint64_t)each;
    return ORR_OK;
}

/* Each to each, in as many steps as there are others; sizes from lists, or the same for all where there is
 * none. */
static orr_code exchange_all(const mpi_rank *r,
                             const collective *c,
                             mpi_place out_list,
                             mpi_place in_list,
                             mpi_place in_size,
                             orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t i = 1; i < c->n && !code; i++) {
        const uint32_t to = (uint32_t)(((uint64_t)c->rank + i) % c->n);
        const uint32_t from = (uint32_t)(((uint64_t)c->rank + c->n - i) % c->n);
        uint64_t out = c->bytes, in = c->bytes2;
        if (out_list.at)
            code = listed_bytes(r, out_list, r->line.call->size, to, &out, err);
        if (!code && in_list.at)
            code = listed_bytes(r, in_list, in_size, from, &in, err);
        if (code)
            return code;
        sgen_gpen_send(r->run->pen, out, to);
        sgen_gpen_recv(r->run->pen, in, from);
    }
    return code;
}

static orr_code gather(const mpi_rank *r, const collective *c, orr_error *err)
{
    const mpi_call *call = r->line.call;
    orr_code code = ORR_OK;
    if (c->rank != c->root) {
        sgen_gpen_send(r->run->pen, c->bytes, c->root);
        return ORR_OK;
    }
    for (uint32_t from = 0; from < c->n && !code; from++) {
        uint64_t bytes = c->bytes2;
        if (from == c->root)
            continue;
        if (call->list.at && (code = listed_bytes(r, call->list, call->size2, from, &bytes, err)))
            return code;
        sgen_gpen_recv(r->run->pen, bytes, from);
    }
    return code;
}

static orr_code scatter(const mpi_rank *r, const collective *c, orr_error *err)
{
    const mpi_call *call = r->line.call;
    orr_code code = ORR_OK;
    if (c->rank != c->root) {
        sgen_gpen_recv(r->run->pen, c->bytes2, c->root);
        return ORR_OK;
    }
    for (uint32_t to = 0; to < c->n && !code; to++) {
        uint64_t bytes = c->bytes;
        if (to == c->root)
            continue;
        if (call->list.at && (code = listed_bytes(r, call->list, call->size, to, &bytes, err)))
            return code;
        sgen_gpen_send(r->run->pen, bytes, to);
    }
    return code;
}

/* Rank r has the sum of the ranks below it in log2 steps; none reaches round the end. */
static void scan(goal_pen *pen, const collective *c)
{
    uint64_t recv = 0;
    for (uint64_t dist = 1; dist < c->n; dist *= 2) {
        if (c->rank + dist < c->n) {
            const uint64_t send = sgen_gpen_send(pen, c->bytes, (int64_t)(c->rank + dist));
            if (recv)
                sgen_gpen_require(pen, send, recv);
        }
        if (c->rank >= dist)
            recv = sgen_gpen_recv(pen, c->bytes, (int64_t)(c->rank - dist));
    }
}

/* A rank's own part of a reduction that is shared out: from each other as much as it keeps. */
static orr_code reduce_scatter(const mpi_rank *r, collective *c, orr_error *err)
{
    const mpi_call *call = r->line.call;
    const mpi_place none = {0, 0};
    const orr_code code = listed_bytes(r, call->list, call->size, c->rank, &c->bytes2, err);
    return code ? code : exchange_all(r, c, call->list, none, none, err);
}

static orr_code put_messages(const mpi_rank *r, collective *c, orr_error *err)
{
    goal_pen *pen = r->run->pen;
    const mpi_call *call = r->line.call;
    const mpi_place none = {0, 0};
    switch (call->kind) {
    case MPI_BARRIER:
        sgen_dissemination(pen, c->rank, c->n, 1);
        break;
    case MPI_ALLREDUCE:
        if (r->run->rules->doubles_all_reduce)
            sgen_recursive_doubling(pen, c->rank, c->n, c->bytes);
        else
            sgen_dissemination(pen, c->rank, c->n, c->bytes);
        break;
    case MPI_IALLREDUCE:
    case MPI_ALLGATHER:
        sgen_dissemination(pen, c->rank, c->n, c->bytes);
        break;
    case MPI_BCAST:
        sgen_binomial_bcast(pen, c->root, c->rank, c->n, c->bytes);
        break;
    case MPI_REDUCE:
        sgen_binomial_reduce(pen, c->root, c->rank, c->n, c->bytes);
        break;
    case MPI_ALLTOALL:
        sgen_linear_alltoall(pen, c->rank, c->n, c->bytes);
        break;
    case MPI_SCAN:
        scan(pen, c);
        break;
    case MPI_GATHER:
    case MPI_GATHERV:
        return gather(r, c, err);
    case MPI_SCATTER:
    case MPI_SCATTERV:
        return scatter(r, c, err);
    case MPI_ALLGATHERV:
        return exchange_all(r, c, none, call->list, call->size2, err);
    case MPI_ALLTOALLV:
        return exchange_all(r, c, call->list, call->list2, call->size2, err);
    default:
        return reduce_scatter(r, c, err);
    }
    return ORR_OK;
}

/* ---- before and behind ---- */

/* Begin earlier by as much as there is (--traces-nbcify): the collective runs beside the end of the time
 * before it.  SchedGen takes microseconds for units of the schedule here; ours does not. */
static double begin_early(const mpi_rank *r, const collective *c, uint64_t end_label)
{
    const uint32_t wanted = r->run->opt->early_us;
    const double earliest = c->begin - wanted;
    double early = wanted, begin = earliest;
    if (earliest - r->start < 0) {
        begin = r->start;
        early = c->begin - begin;
        if (sgen_mpi_is_talkative(r->run))
            sgen_mpi_say(r->run, "nbcify shortened from %u to %.*g", wanted, r->run->digits, early);
    }
    uint64_t units = early > 0 ? (uint64_t)early : 0;
    if (!r->run->rules->has_early_units)
        units *= r->run->time_mult;
    if (units) {
        const uint64_t beside = sgen_gpen_calc_on(r->run->pen, units, r->run->opt->cpu);
        sgen_gpen_irequire(r->run->pen, beside, end_label);
    }
    return begin;
}

static orr_code finish(mpi_rank *r, const collective *c, uint64_t *label, orr_error *err)
{
    goal_pen *pen = r->run->pen;
    orr_code code = ORR_OK;
    *label = sgen_gpen_calc(pen, 0);
    for (size_t i = 0; i < pen->marks.len; i++) {
        if (pen->marks.ptr[i] & ORR__PEN_LAST)
            sgen_gpen_require(pen, *label, pen->base + i);
    }
    for (size_t i = 0; i < pen->marks.len && !code; i++) {
        if (pen->marks.ptr[i] & ORR__PEN_FIRST)
            code = sgen_mpi_rank_next(r, pen->base + i, err);
    }
    if (code)
        return code;
    const double begin = begin_early(r, c, *label);
    if ((code = sgen_mpi_rank_advance(r, begin, c->end, err)))
        return code;
    r->before[r->before_count++] = *label;
    return ORR_OK;
}

static void say_collective(const mpi_rank *r, const collective *c, int32_t ranks)
{
    const mpi_kind kind = r->line.call->kind;
    char name[24], size[32] = "", root[24] = "";
    if (!sgen_mpi_is_talkative(r->run))
        return;
    /* SchedGen calls the one that does not block by the other's name. */
    snprintf(name, sizeof name, "%s", kind == MPI_IALLREDUCE ? "allreduce" : r->line.call->word);
    if (name[0] >= 'A' && name[0] <= 'Z')
        name[0] = (char)(name[0] - 'A' + 'a');
    if (kind != MPI_BARRIER)
        snprintf(size, sizeof size, " size: %llu", (unsigned long long)c->bytes);
    if (has_root(kind))
        snprintf(root, sizeof root, " root: %u", c->root);
    sgen_mpi_say(r->run, " %s %llu (%d) time %.*g%s%s", name, (unsigned long long)r->collectives,
                 ranks, r->run->digits, c->end - c->begin, size, root);
}

/* SchedGen knows these and leaves them out.  Lists of counts tell nothing when they are not printed, or are of
 * another number of ranks: the line is not as long as it should be. */
static bool is_expanded(const mpi_rank *r)
{
    const mpi_kind kind = r->line.call->kind;
    if (kind == MPI_NOT_EXPANDED)
        return false;
    if (kind >= MPI_SCAN && r->run->rules->has_few_collectives)
        return false;
    const mpi_place end = r->line.call->end;
    return !r->line.call->list.at || (sgen_mpi_line_has(&r->line, end) &&
                                      !sgen_mpi_line_has(&r->line, sgen_mpi_after(end, 1)));
}

static void leave_out(const mpi_rank *r)
{
    orr_mpi_trace_remarks *m = r->run->remarks;
    const orr_str name = sgen_mpi_line_name(&r->line);
    if (r->copy == 0 && m->not_expanded++ == 0)
        snprintf(m->not_expanded_name, sizeof m->not_expanded_name, "%.*s", (int)name.len,
                 name.ptr);
}

static orr_code tag_collective(mpi_rank *r, orr_error *err)
{
    const uint64_t number = FIRST_TAG + r->collectives;
    uint64_t tag = number;
    orr_code code = ORR_OK;
    if (r->line.call->kind != MPI_IALLREDUCE) /* SchedGen forgets the communicator here */
        code = sgen_mpi_rank_tag(r, (int32_t)(uint32_t)number, &tag, err);
    r->run->pen->tag = tag;
    return code;
}

static void comment(const mpi_rank *r, const char *when)
{
    char words[48];
    if (!sgen_mpi_is_talkative(r->run))
        return;
    snprintf(words, sizeof words, "%s %s", r->line.call->word, when);
    sgen_gpen_comment(r->run->pen, words);
}

static orr_code take_apart(mpi_rank *r, collective *c, uint64_t *label, orr_error *err)
{
    *label = 0;
    comment(r, "begin");
    orr_code code = tag_collective(r, err);
    if (code)
        return code;
    sgen_gpen_open(r->run->pen);
    code = put_messages(r, c, err);
    sgen_gpen_close(r->run->pen);
    if (!code)
        code = finish(r, c, label, err);
    comment(r, "end");
    return code;
}

orr_code sgen_mpi_rank_collective(mpi_rank *r, orr_error *err)
{
    const mpi_call *call = r->line.call;
    collective c;
    int32_t ranks;
    uint64_t label, request;
    if (!is_expanded(r)) {
        leave_out(r);
        return ORR_OK;
    }
    orr_code code = sgen_mpi_line_int(&r->line, sgen_mpi_after(call->comm, 2), &ranks, err);
    if (code || (code = read_collective(r, &c, err)))
        return code;
    say_collective(r, &c, ranks);
    if (ranks != (int32_t)r->run->hosts) {
        r->run->remarks->sub_communicators += r->copy == 0;
        return ORR_OK;
    }
    if ((code = take_apart(r, &c, &label, err)))
        return code;
    r->collectives++;
    if (!call->request.at)
        return ORR_OK;
    code = sgen_mpi_line_u64(&r->line, call->request, &request, err);
    return code ? code : sgen_mpi_rank_request(r, request, label, err);
}
