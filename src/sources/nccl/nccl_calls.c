/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_calls.c - which rows belong to which call, all by time (goal.md 5.4).
 *
 * Groups are the outermost pairs of group markers.  Details of a collective (how, and a share for each channel) and of
 * messages follow the call on the host, so each row goes to the latest call before it.  Inside a group all details come
 * after all calls: the old way gives them to the group's last call, ours shares them out.
 * Invariant: a call's rows are neighbours in their array.
 * Cost: sorting, which finds things sorted as a rule, and one sweep for each kind. */
#include "nccl_impl.h"

#include <stdlib.h>

/* ---- order ---- */

#define DEFINE_ORDER(name, T)                                  \
    static int name(const void *a, const void *b)              \
    {                                                          \
        const T *x = a, *y = b;                                \
        if (x->start != y->start)                              \
            return x->start < y->start ? -1 : 1;               \
        return x->order < y->order ? -1 : x->order > y->order; \
    }
DEFINE_ORDER(call_order, nccl_call)
DEFINE_ORDER(info_order, nccl_info)
DEFINE_ORDER(work_order, nccl_work)
DEFINE_ORDER(transfer_order, nccl_transfer)
DEFINE_ORDER(kernel_order, nccl_kernel)

/* An end comes before a start at the same time. */
static int mark_order(const void *a, const void *b)
{
    const nccl_mark *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_rows(void *rows,
                      size_t count,
                      size_t size,
                      int (*order)(const void *, const void *))
{
    const char *p = rows;
    for (size_t i = 1; i < count; i++)
        if (order(p + (i - 1) * size, p + i * size) > 0) {
            qsort(rows, count, size, order);
            return;
        }
}

#define SORT(rows, order) sort_rows((rows).at, (rows).count, sizeof *(rows).at, order)

static void sort_all(nccl_gpu *g)
{
    SORT(g->calls, call_order);
    SORT(g->infos, info_order);
    SORT(g->works, work_order);
    SORT(g->sends, transfer_order);
    SORT(g->receives, transfer_order);
    SORT(g->kernels, kernel_order);
    SORT(g->marks, mark_order);
}

/* ---- groups ---- */

typedef struct sweep {
    const nccl_job *job;
    nccl_gpu *gpu;
    size_t call;
    uint32_t group;
} sweep;

/* Calls from..below to, where the marker before opened group and the one at `to` closes it. */
static void enter_group(sweep *s, int64_t from, int64_t to)
{
    const nccl_gpu *g = s->gpu;
    nccl_call *calls = g->calls.at;
    for (; s->call < g->calls.count && calls[s->call].start < from; s->call++)
        ;
    for (; s->call < g->calls.count && calls[s->call].start < to; s->call++)
        calls[s->call].group = s->group;
    /* A call where one group ends and the next begins belongs to the first that ends at or after it, which does not
     * hold its own end: to none. */
    if (s->job->rules->has_open_borders)
        for (; s->call < g->calls.count && calls[s->call].start == to; s->call++)
            ;
    s->group++;
}

static orr_code unbalanced(const nccl_job *j, uint32_t gpu, orr_error *err)
{
    char name[96];
    return orr_fail(err, ORR_EINPUT, NULL,
                    "%s: ncclGroupStart and ncclGroupEnd do not come in pairs",
                    nccl_gpu_name(j, gpu, name));
}

static orr_code find_groups(const nccl_job *j, uint32_t gpu, orr_error *err)
{
    nccl_gpu *g = &j->gpus.at[gpu];
    sweep s = {.job = j, .gpu = g};
    int64_t opened = 0;
    int32_t depth = 0;
    for (size_t i = 0; i < g->marks.count; i++) {
        const nccl_mark *m = &g->marks.at[i];
        if (depth == 0 && m->step == 1)
            opened = m->start;
        if (depth == 0 && m->step < 0 && !j->rules->needs_group_marks)
            continue; /* its start was before the capture */
        depth += m->step;
        if (depth < 0)
            return unbalanced(j, gpu, err);
        if (depth == 0)
            enter_group(&s, opened, m->start);
    }
    if (depth && j->rules->needs_group_marks)
        return unbalanced(j, gpu, err);
    if (depth)
        enter_group(&s, opened, INT64_MAX); /* its end is behind the capture */
    return ORR_OK;
}

static orr_code check_groups(const nccl_job *j, uint32_t gpu, orr_error *err)
{
    char name[96];
    const nccl_gpu *g = &j->gpus.at[gpu];
    bool has_start = false, has_end = false;
    for (size_t i = 0; i < g->marks.count; i++)
        *(g->marks.at[i].step > 0 ? &has_start : &has_end) = true;
    if (!j->rules->needs_group_marks || g->calls.count == 0 || (has_start && has_end))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, NULL,
                    "%s has no group markers, which the old generator needs; without --compat "
                    "they may be missing",
                    nccl_gpu_name(j, gpu, name));
}

/* ---- details ---- */

/* The calls that details may belong to: by their numbers in g->calls. */
typedef struct owners {
    const nccl_gpu *gpu;
    uint32_t *calls;
    size_t count, next; /* next: the first whose interval was not passed yet */
    bool has_open_borders;
} owners;

static int64_t start_of(const owners *o, size_t i)
{
    return i < o->count ? o->gpu->calls.at[o->calls[i]].start : INT64_MAX;
}

/* The call whose interval, from its start to the next one's, holds this time; times ascend from call to call of this.
 * The old way passes over intervals that end before the time, and one that ends at it does not hold it: such a row
 * belongs to nobody. */
static uint32_t owner_at(owners *o, int64_t time)
{
    while (o->next < o->count && (o->has_open_borders ? start_of(o, o->next + 1) < time
                                                      : start_of(o, o->next + 1) <= time))
        o->next++;
    if (o->next >= o->count || start_of(o, o->next) > time || start_of(o, o->next + 1) <= time)
        return ORR__NONE;
    return o->calls[o->next];
}

static orr_code pick_owners(
    const nccl_job *j, const nccl_gpu *g, orr_nccl_op op, owners *out, orr_error *err)
{
    *out = (owners){.gpu = g, .has_open_borders = j->rules->has_open_borders};
    out->calls = orr_alloc(g->calls.count ? g->calls.count : 1, sizeof *out->calls);
    if (!out->calls)
        return orr_no_memory(err);
    for (size_t i = 0; i < g->calls.count; i++) {
        const uint8_t its = g->calls.at[i].op;
        if (op == ORR_NCCL_OTHER ? !nccl_op_is_p2p(its) : its == op)
            out->calls[out->count++] = (uint32_t)i;
    }
    return ORR_OK;
}

static void own_infos(nccl_gpu *g, owners *o)
{
    o->next = 0;
    for (size_t i = 0; i < g->infos.count; i++) {
        const uint32_t call = owner_at(o, g->infos.at[i].start);
        if (call != ORR__NONE && g->calls.at[call].info == ORR__NONE)
            g->calls.at[call].info = (uint32_t)i;
    }
}

static void own_row(nccl_call *c, size_t row)
{
    if (c->row_count == 0)
        c->first_row = (uint32_t)row;
    c->row_count = (uint32_t)(row - c->first_row + 1);
}

static void own_works(nccl_gpu *g, owners *o)
{
    o->next = 0;
    for (size_t i = 0; i < g->works.count; i++) {
        const uint32_t call = owner_at(o, g->works.at[i].start);
        if (call != ORR__NONE)
            own_row(&g->calls.at[call], i);
    }
}

static orr_code own_transfers(const nccl_job *j,
                              nccl_gpu *g,
                              orr_nccl_op op,
                              const nccl_transfer *rows,
                              size_t count,
                              orr_error *err)
{
    owners o;
    const orr_code code = pick_owners(j, g, op, &o, err);
    for (size_t i = 0; !code && i < count; i++) {
        const uint32_t call = owner_at(&o, rows[i].start);
        if (call != ORR__NONE)
            own_row(&g->calls.at[call], i);
    }
    orr_free(o.calls);
    return code;
}

/* ---- collectives of a group: the details lie on its last one, and are shared out ---- */

static bool is_same_operation(const nccl_call *c, const nccl_info *i, int strictness)
{
    const bool same_comm = c->hash == i->hash && c->stream == i->stream;
    return strictness == 0 ? same_comm && c->bytes == i->bytes : strictness == 1 ? same_comm : true;
}

static nccl_call *free_call(nccl_gpu *g, size_t first, size_t last, const nccl_info *info)
{
    for (int strictness = 0; strictness < 3; strictness++)
        for (size_t i = first; i <= last; i++) {
            nccl_call *c = &g->calls.at[i];
            if (c->info == ORR__NONE && !nccl_op_is_p2p(c->op) &&
                is_same_operation(c, info, strictness))
                return c;
        }
    return NULL;
}

/* Infos from..below to and works, which follow their infos, to the calls first..last. */
static void share_out(
    nccl_gpu *g, size_t first, size_t last, uint32_t info, uint32_t works, uint32_t works_end)
{
    const int64_t end = works_end ? g->works.at[works_end - 1].start : 0;
    uint32_t row = works;
    g->calls.at[last].info = ORR__NONE;
    g->calls.at[last].row_count = 0;
    for (; info < g->infos.count && row < works_end && g->infos.at[info].start <= end; info++) {
        const int64_t until = info + 1 < g->infos.count ? g->infos.at[info + 1].start : INT64_MAX;
        nccl_call *c = free_call(g, first, last, &g->infos.at[info]);
        const uint32_t from = row;
        while (row < works_end && g->works.at[row].start < until)
            row++;
        if (!c || row == from)
            continue;
        c->info = info;
        c->first_row = from;
        c->row_count = row - from;
    }
}

/* Messages of a group lie on its last send, or receive.  Where its sends are of different communicators and each has one
 * message, they are its messages in their order. */
static void share_messages(nccl_gpu *g, size_t first, size_t end, uint8_t op)
{
    size_t last = end, count = 0;
    bool is_mixed = false;
    for (size_t i = first; i < end; i++) {
        if (g->calls.at[i].op != op)
            continue;
        is_mixed = is_mixed || (last < end && g->calls.at[last].hash != g->calls.at[i].hash);
        last = i;
        count++;
    }
    if (!is_mixed || g->calls.at[last].row_count != count)
        return;
    uint32_t row = g->calls.at[last].first_row;
    for (size_t i = first; i < end; i++)
        if (g->calls.at[i].op == op) {
            g->calls.at[i].first_row = row++;
            g->calls.at[i].row_count = 1;
        }
}

static bool is_same_group(const nccl_call *a, const nccl_call *b)
{
    return a->group != ORR__NONE && a->group == b->group;
}

static void share_collectives(nccl_gpu *g, size_t first, size_t end)
{
    size_t last = first, count = 0;
    for (size_t i = first; i < end; i++)
        if (!nccl_op_is_p2p(g->calls.at[i].op)) {
            last = i;
            count++;
        }
    const nccl_call *holder = &g->calls.at[last];
    if (count > 1 && holder->info != ORR__NONE)
        share_out(g, first, last, holder->info, holder->first_row,
                  holder->first_row + holder->row_count);
}

static void share_groups(nccl_gpu *g)
{
    for (size_t first = 0, end; first < g->calls.count; first = end) {
        end = first + 1;
        while (end < g->calls.count && is_same_group(&g->calls.at[first], &g->calls.at[end]))
            end++;
        if (end == first + 1)
            continue;
        share_collectives(g, first, end);
        share_messages(g, first, end, ORR_NCCL_SEND);
        share_messages(g, first, end, ORR_NCCL_RECV);
    }
}

/* ---- all of it ---- */

bool nccl_call_is_known(const nccl_call *c)
{
    if (c->op == ORR_NCCL_OTHER || c->op == ORR_NCCL_SEND_RECV)
        return false;
    if (c->is_payload)
        return true;
    return c->row_count > 0 && (nccl_op_is_p2p(c->op) || c->info != ORR__NONE);
}

static void find_idents(const nccl_job *j, uint32_t gpu)
{
    nccl_gpu *g = &j->gpus.at[gpu];
    for (size_t i = 0; i < g->calls.count; i++) {
        nccl_call *c = &g->calls.at[i];
        const uint32_t member =
            orr_map_find(j->member_of, (uint64_t)gpu << 32 | c->hash, ORR__NONE);
        c->ident = member == ORR__NONE ? c->hash : j->members.at[member].ident;
    }
}

orr_code nccl_gpu_link(nccl_job *j, uint32_t gpu, orr_error *err)
{
    owners o;
    nccl_gpu *g = &j->gpus.at[gpu];
    if (g->stage >= ORR__LINKED)
        return ORR_OK;
    sort_all(g);
    find_idents(j, gpu);
    orr_code code = check_groups(j, gpu, err);
    if (!code && g->calls.count)
        code = find_groups(j, gpu, err);
    if (code || (code = pick_owners(j, g, ORR_NCCL_OTHER, &o, err)))
        return code;
    own_infos(g, &o);
    own_works(g, &o);
    orr_free(o.calls);
    code = own_transfers(j, g, ORR_NCCL_SEND, g->sends.at, g->sends.count, err);
    if (!code)
        code = own_transfers(j, g, ORR_NCCL_RECV, g->receives.at, g->receives.count, err);
    if (!j->rules->keeps_group_rows && !code)
        share_groups(g);
    g->stage = ORR__LINKED;
    return code;
}
