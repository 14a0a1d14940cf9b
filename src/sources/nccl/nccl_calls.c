/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_calls.c - assigns rows to calls, by time (goal.md 5.4).
 *
 * Groups are the outermost pairs of group markers.  Details of a collective (how, and a share for
 * each channel) and of messages follow the call on the host, so each row goes to the latest call
 * before it.  Inside a group all details come after all calls: the old generator assigns them to
 * the group's last call, ours distributes them. Invariant: a call's rows are contiguous in their
 * array. Cost: sorting, mostly of sorted data, and one sweep per kind. */
#include "base/memory/sort.h"
#include "nccl_impl.h"

#include <stdlib.h>

/* When a call's kernel ran: those times replace the host's (goal.md 5.4).
 *
 * A stream of kernels matches a stream of calls if they spell the same word: one letter per
 * operation, in time order.  If some stream of kernels has no match, the old generator assigns all
 * of the GPU's kernels by time: to the call in progress when they started, or the last one before.
 * Ours first pairs kernels and calls of the same letter in order, also outside the window, gives a
 * call without a kernel the host's times, and keeps the order of calls on each stream, because a
 * stream runs them in that order, on all ranks. A group has one kernel, which its first call gets;
 * the others end with it. Cost: n log n for the GPU's kernels and calls. */

static char kernel_letter(uint8_t op)
{
    static const char letters[ORR_NCCL_OPS] = {
        [ORR_NCCL_ALL_GATHER] = 'A',     [ORR_NCCL_ALL_REDUCE] = 'B', [ORR_NCCL_BROADCAST] = 'C',
        [ORR_NCCL_REDUCE_SCATTER] = 'D', [ORR_NCCL_SEND] = 'E',       [ORR_NCCL_RECV] = 'E',
        [ORR_NCCL_SEND_RECV] = 'E',
    };
    return letters[op];
}

/* Reduce has a letter in our own way only. */
static char letter_of(const nccl_job *j, uint8_t op)
{
    return op == ORR_NCCL_REDUCE && !j->rules->pairs_by_stream ? 'R' : kernel_letter(op);
}

/* One stream's share of an array that is sorted by stream. */
typedef struct stream {
    int64_t first_start;
    uint64_t name; /* of kernels: a number; of calls: its place among the texts in order */
    uint32_t from, count;
    bool is_taken;
} stream;

typedef struct timing {
    const nccl_job *job;
    nccl_gpu *gpu;
    orr_arena *arena;
    uint32_t *kernels; /* inside the window, by start */
    uint32_t *leaders; /* calls: the first of each group, and those of none, by start */
    size_t kernel_count, leader_count;
    uint32_t *leader_of; /* for each call inside the window its leader; ORR__NONE: outside */
} timing;

/* ---- the window ---- */

static bool is_inside(const nccl_gpu *g, int64_t start, int64_t end)
{
    if (!g->has_window_start || !g->has_window_end)
        return true;
    return start < g->window_end && end > g->window_start;
}

static bool leads(const timing *t, size_t call, uint32_t *leader)
{
    const nccl_call *c = &t->gpu->calls.at[call];
    for (size_t i = t->leader_count; i-- > 0;) {
        const nccl_call *other = &t->gpu->calls.at[t->leaders[i]];
        if (c->group == ORR__NONE || other->group == ORR__NONE || other->group != c->group)
            break;
        const bool is_one = t->job->rules->has_one_group_stream || other->stream == c->stream;
        if (is_one) {
            *leader = t->leaders[i];
            return false;
        }
    }
    *leader = (uint32_t)call;
    return true;
}

/* is_clipped: only what is inside the window counts. */
static void pick(timing *t, bool is_clipped)
{
    const nccl_gpu *g = t->gpu;
    t->kernel_count = t->leader_count = 0;
    for (size_t i = 0; i < g->kernels.count; i++)
        if (!is_clipped || is_inside(g, g->kernels.at[i].start, g->kernels.at[i].end))
            t->kernels[t->kernel_count++] = (uint32_t)i;
    for (size_t i = 0; i < g->calls.count; i++) {
        t->leader_of[i] = ORR__NONE;
        if (is_clipped && !is_inside(g, g->calls.at[i].start, g->calls.at[i].end))
            continue;
        if (leads(t, i, &t->leader_of[i]))
            t->leaders[t->leader_count++] = (uint32_t)i;
    }
}

/* ---- by stream ---- */

typedef struct sort_key {
    uint64_t name;
    uint32_t index, place;
} sort_key;

static int key_order(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int stream_order(const void *a, const void *b)
{
    const stream *x = a, *y = b;
    if (x->first_start != y->first_start)
        return x->first_start < y->first_start ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

typedef struct streams {
    stream *at;
    size_t count;
    char *letters;     /* stream by stream */
    uint32_t *members; /* beside them: kernels or calls */
} streams;

static bool make_streams(
    const timing *t, sort_key *keys, size_t count, bool of_kernels, streams *out)
{
    const nccl_gpu *g = t->gpu;
    *out = (streams){.at = orr_arena_new(t->arena, count + 1, stream),
                     .letters = orr_arena_new(t->arena, count + 1, char),
                     .members = orr_arena_new(t->arena, count + 1, uint32_t)};
    if (!out->at || !out->letters || !out->members)
        return false;
    orr_sort(keys, count, sizeof *keys, key_order);
    for (size_t i = 0; i < count; i++) {
        const uint32_t index = keys[i].index;
        if (i == 0 || keys[i].name != keys[i - 1].name)
            out->at[out->count++] = (stream){.first_start = of_kernels ? g->kernels.at[index].start
                                                                       : g->calls.at[index].start,
                                             .name = keys[i].name,
                                             .from = (uint32_t)i};
        out->at[out->count - 1].count++;
        out->members[i] = index;
        out->letters[i] =
            letter_of(t->job, of_kernels ? g->kernels.at[index].op : g->calls.at[index].op);
    }
    orr_sort(out->at, out->count, sizeof *out->at, stream_order);
    return true;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(((const orr_str *)a)->ptr, ((const orr_str *)b)->ptr);
}

/* Streams of calls are ordered by their names where they start together. */
static bool name_keys(const timing *t, sort_key *keys)
{
    orr_str *names = orr_arena_new(t->arena, t->leader_count + 1, orr_str);
    if (!names)
        return false;
    for (size_t i = 0; i < t->leader_count; i++)
        names[i] = nccl_text(t->job, t->gpu->calls.at[t->leaders[i]].stream);
    orr_sort(names, t->leader_count, sizeof *names, text_order);
    size_t distinct = 0;
    for (size_t i = 0; i < t->leader_count; i++)
        if (i == 0 || !orr_str_equal(names[i], names[distinct - 1]))
            names[distinct++] = names[i];
    for (size_t i = 0; i < t->leader_count; i++) {
        const orr_str name = nccl_text(t->job, t->gpu->calls.at[t->leaders[i]].stream);
        const orr_str *found = bsearch(&name, names, distinct, sizeof *names, text_order);
        keys[i] = (sort_key){
            .name = (uint64_t)(found - names), .index = t->leaders[i], .place = (uint32_t)i};
    }
    return true;
}

static stream *same_stream(const streams *calls, const streams *kernels, const stream *k)
{
    for (size_t i = 0; i < calls->count; i++) {
        stream *c = &calls->at[i];
        if (!c->is_taken && c->count == k->count &&
            memcmp(calls->letters + c->from, kernels->letters + k->from, k->count) == 0)
            return c;
    }
    return NULL;
}

static void widen(nccl_call *c, const nccl_kernel *k)
{
    c->from = c->has_time && c->from < k->start ? c->from : k->start;
    c->to = c->has_time && c->to > k->end ? c->to : k->end;
    c->has_time = true;
}

static void forget_times(const timing *t)
{
    for (size_t i = 0; i < t->leader_count; i++)
        t->gpu->calls.at[t->leaders[i]].has_time = false;
}

/* False: a stream of kernels has no stream of calls. */
static bool pair_streams(const timing *t, const streams *calls, const streams *kernels)
{
    nccl_gpu *g = t->gpu;
    if (memchr(calls->letters, 0, t->leader_count) || memchr(kernels->letters, 0, t->kernel_count))
        return false;
    for (size_t i = 0; i < kernels->count; i++) {
        const stream *k = &kernels->at[i];
        stream *c = same_stream(calls, kernels, k);
        if (!c) {
            forget_times(t);
            return false;
        }
        c->is_taken = true;
        for (uint32_t n = 0; n < k->count; n++)
            widen(&g->calls.at[calls->members[c->from + n]],
                  &g->kernels.at[kernels->members[k->from + n]]);
    }
    return true;
}

/* ---- by time ---- */

/* Kernels ascend by start.  The enclosing call is the first that ends at or after it, if it has
 * started; ends are running maxima. */
static void pair_by_time(const timing *t)
{
    nccl_gpu *g = t->gpu;
    size_t holds = 0, after = 0;
    int64_t latest = INT64_MIN;
    if (t->leader_count == 0)
        return;
    for (size_t i = 0; i < t->kernel_count; i++) {
        const nccl_kernel *k = &g->kernels.at[t->kernels[i]];
        while (holds < t->leader_count) {
            const int64_t end = g->calls.at[t->leaders[holds]].end;
            latest = latest > end ? latest : end;
            if (latest >= k->start)
                break;
            holds++;
        }
        while (after < t->leader_count && g->calls.at[t->leaders[after]].start <= k->start)
            after++;
        size_t found = after ? after - 1 : 0;
        if (holds < t->leader_count && g->calls.at[t->leaders[holds]].start <= k->start &&
            k->start < g->calls.at[t->leaders[holds]].end)
            found = holds;
        widen(&g->calls.at[t->leaders[found]], k);
    }
}

/* ---- by kind: our own ---- */

/* Where there are as many kernels of each letter as calls, the n-th is the n-th. */
static bool pair_kinds(const timing *t)
{
    enum { LETTERS = 128 };
    nccl_gpu *g = t->gpu;
    size_t balance[LETTERS] = {0};
    uint32_t *lists = orr_arena_new(t->arena, t->leader_count + 1, uint32_t);
    for (size_t i = 0; i < t->leader_count; i++)
        balance[(size_t)letter_of(t->job, g->calls.at[t->leaders[i]].op)]++;
    for (size_t i = 0; i < t->kernel_count; i++)
        balance[(size_t)letter_of(t->job, g->kernels.at[t->kernels[i]].op)]--;
    for (int letter = 0; letter < LETTERS; letter++)
        if (balance[letter])
            return false;
    if (!lists || t->kernel_count == 0)
        return false;
    for (int letter = 1; letter < LETTERS; letter++) {
        size_t count = 0, next = 0;
        for (size_t i = 0; i < t->leader_count; i++)
            if (letter_of(t->job, g->calls.at[t->leaders[i]].op) == letter)
                lists[count++] = t->leaders[i];
        for (size_t i = 0; i < t->kernel_count && next < count; i++)
            if (letter_of(t->job, g->kernels.at[t->kernels[i]].op) == letter)
                widen(&g->calls.at[lists[next++]], &g->kernels.at[t->kernels[i]]);
    }
    return true;
}

/* ---- everything ---- */

static void time_followers(const timing *t)
{
    nccl_gpu *g = t->gpu;
    for (size_t i = 0; i < g->calls.count; i++) {
        const uint32_t leader = t->leader_of[i];
        if (leader == ORR__NONE || leader == i)
            continue;
        g->calls.at[i].has_time = g->calls.at[leader].has_time;
        g->calls.at[i].from = g->calls.at[i].to = g->calls.at[leader].to;
    }
}

/* True: by streams. */
static orr_code try_streams(timing *t, sort_key *keys, bool *is_paired, orr_error *err)
{
    const nccl_gpu *g = t->gpu;
    streams calls, kernels;
    if (!name_keys(t, keys) || !make_streams(t, keys, t->leader_count, false, &calls))
        return orr_no_memory(err);
    for (size_t i = 0; i < t->kernel_count; i++)
        keys[i] =
            (sort_key){/* signed order as unsigned */
                       .name = (uint64_t)g->kernels.at[t->kernels[i]].stream ^ UINT64_C(1) << 63,
                       .index = t->kernels[i],
                       .place = (uint32_t)i};
    if (!make_streams(t, keys, t->kernel_count, true, &kernels))
        return orr_no_memory(err);
    *is_paired = pair_streams(t, &calls, &kernels);
    return ORR_OK;
}

static orr_code find_old_times(timing *t, sort_key *keys, orr_error *err)
{
    bool is_paired = false;
    pick(t, true);
    const orr_code code = try_streams(t, keys, &is_paired, err);
    if (!code && !is_paired) {
        t->gpu->is_by_time = true;
        pair_by_time(t);
    }
    time_followers(t);
    return code;
}

/* A call whose kernel was not captured, or not found, ran when the host made it. */
static void take_host_times(const timing *t)
{
    for (size_t i = 0; i < t->leader_count; i++) {
        nccl_call *c = &t->gpu->calls.at[t->leaders[i]];
        if (c->has_time)
            continue;
        c->from = c->start;
        c->to = c->end > c->start ? c->end : c->start;
        c->has_time = true;
    }
}

/* On each stream one after another, as the calls were made. */
static orr_code keep_order(const timing *t, orr_error *err)
{
    nccl_gpu *g = t->gpu;
    orr_map *number = orr_map_create(16);
    int64_t *ends = orr_arena_new(t->arena, t->leader_count + 1, int64_t);
    bool is_good = number && ends;
    uint32_t count = 0;
    for (size_t i = 0; i < t->leader_count && is_good; i++) {
        nccl_call *c = &g->calls.at[t->leaders[i]];
        uint32_t at = orr_map_find(number, c->stream, ORR__NONE);
        if (at == ORR__NONE) {
            at = count++;
            ends[at] = INT64_MIN;
            is_good = orr_map_put(number, c->stream, at, NULL);
        }
        g->overlaps += c->from < ends[at];
        c->from = c->from < ends[at] ? ends[at] : c->from;
        c->to = c->to < c->from ? c->from : c->to;
        ends[at] = c->to;
    }
    orr_map_destroy(number);
    return is_good ? ORR_OK : orr_no_memory(err);
}

static void leave_outside_out(const timing *t)
{
    nccl_gpu *g = t->gpu;
    for (size_t i = 0; i < g->calls.count; i++) {
        nccl_call *c = &g->calls.at[i];
        c->has_time =
            c->has_time && is_inside(g, c->start, c->end > c->start ? c->end : c->start + 1);
    }
}

static orr_code find_own_times(timing *t, sort_key *keys, orr_error *err)
{
    bool is_paired = false;
    orr_code code = ORR_OK;
    for (int attempt = 0; attempt < 2 && !code && !is_paired; attempt++) {
        pick(t, attempt == 1);
        code = try_streams(t, keys, &is_paired, err);
        if (!code && !is_paired)
            is_paired = pair_kinds(t);
    }
    if (code)
        return code;
    if (!is_paired) {
        t->gpu->is_by_time = true;
        pick(t, false);
        pair_by_time(t);
    }
    take_host_times(t);
    code = keep_order(t, err);
    time_followers(t);
    leave_outside_out(t);
    return code;
}

/* ---- calls with a time, by it ---- */

typedef struct event_key {
    int64_t from;
    uint32_t call;
} event_key;

static int event_order(const void *a, const void *b)
{
    const event_key *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call; /* as the calls were made */
}

static orr_code list_events(const timing *t, orr_error *err)
{
    nccl_gpu *g = t->gpu;
    event_key *keys = orr_arena_new(t->arena, g->calls.count + 1, event_key);
    size_t count = 0;
    g->events.count = 0;
    if (!keys || !orr_grow(&g->events.at, &g->events.room, g->calls.count + 1))
        return orr_no_memory(err);
    for (size_t i = 0; i < g->calls.count; i++)
        if (g->calls.at[i].has_time)
            keys[count++] = (event_key){.from = g->calls.at[i].from, .call = (uint32_t)i};
    orr_sort(keys, count, sizeof *keys, event_order);
    for (size_t i = 0; i < count; i++)
        g->events.at[g->events.count++] = keys[i].call;
    return ORR_OK;
}

static orr_code find_times(timing *t, orr_error *err)
{
    const nccl_gpu *g = t->gpu;
    const size_t most = g->calls.count > g->kernels.count ? g->calls.count : g->kernels.count;
    sort_key *keys = orr_arena_new(t->arena, most + 1, sort_key);
    if (!keys)
        return orr_no_memory(err);
    return t->job->rules->pairs_by_stream ? find_old_times(t, keys, err)
                                          : find_own_times(t, keys, err);
}

orr_code nccl_gpu_time(nccl_job *j, uint32_t gpu, orr_error *err)
{
    nccl_gpu *g = &j->gpus.at[gpu];
    if (g->stage >= ORR__TIMED)
        return ORR_OK;
    g->overlaps = 0;
    timing t = {.job = j, .gpu = g, .arena = orr_arena_create()};
    if (!t.arena)
        return orr_no_memory(err);
    t.kernels = orr_arena_new(t.arena, g->kernels.count + 1, uint32_t);
    t.leaders = orr_arena_new(t.arena, g->calls.count + 1, uint32_t);
    t.leader_of = orr_arena_new(t.arena, g->calls.count + 1, uint32_t);
    orr_code code = t.kernels && t.leaders && t.leader_of ? ORR_OK : orr_no_memory(err);
    if (!code)
        code = find_times(&t, err);
    if (!code)
        code = list_events(&t, err);
    orr_arena_destroy(t.arena);
    g->stage = ORR__TIMED;
    return code;
}

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
            orr_sort(rows, count, size, order);
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
    /* A call where one group ends and the next begins belongs to the first that ends at or after
     * it, which does not hold its own end: to none. */
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

/* The call whose interval, from its start to the next one's, holds this time; times ascend from
 * call to call of this. The old way passes over intervals that end before the time, and one that
 * ends at it does not hold it: such a row belongs to nobody. */
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

/* Messages of a group lie on its last send, or receive.  Where its sends are of different
 * communicators and each has one message, they are its messages in their order. */
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

/* ---- everything ---- */

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
