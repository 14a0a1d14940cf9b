/* SPDX-License-Identifier: Apache-2.0 */
/* report_times.c - how each rank spends its time, from the spans on its tracks.
 *
 *     compute     |##########      ######|
 *     collective  |      ======          |       compute 16, exposed 2, overlapped 4
 *     receive     |          ----        |       and so on: each moment counts once
 *
 * Spans of one use become a list of disjoint intervals (their union); all figures are lengths of
 * such lists and of their intersections.  A receive counts from when its message left, and a
 * collective of a simulation from when its last rank joined: before that, the rank waits for its
 * peers, or for the pipeline.  docs/accounting.md has the definitions; src/run/watch.c has the same
 * figures without a timeline.
 *
 * Cost: O(n log n) in the spans of a rank, nearly linear if they are in order, as in
 * simulations. */
#include "info_impl.h"
#include "report_impl.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"
#include "base/text/text.h"

#include <stdlib.h>

typedef struct stretch {
    orr_ps from, to;
} stretch;

typedef struct stretches {
    stretch *list;
    size_t count, room;
} stretches;

typedef enum use { COMPUTE, COLLECTIVE, MESSAGE, MEMORY, HOST, WAITING, BUBBLE, USES } use;

typedef struct worker {
    orr__study *s;
    stretches by_use[USES];
    stretches comm, all;
    orr_ps *before; /* by interval of COMPUTE: the total length before it */
    size_t before_room;
    orr_map *row_of, *group_seen, *joined_seen;
    bool host_computes; /* nothing ran on a device: host operators are the computation */
} worker;

/* ---- lists of intervals ---- */

static int compare_stretches(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static bool add_stretch(stretches *l, orr_ps from, orr_ps to)
{
    if (to <= from)
        return true;
    if (!orr_grow(&l->list, &l->room, l->count + 1))
        return false;
    l->list[l->count++] = (stretch){from, to};
    return true;
}

/* Sorts, and joins those that touch. */
static void unite(stretches *l)
{
    size_t n = 0;
    bool is_ordered = true;
    for (size_t i = 1; i < l->count && is_ordered; i++)
        is_ordered = l->list[i - 1].from <= l->list[i].from;
    if (!is_ordered)
        orr_sort(l->list, l->count, sizeof *l->list, compare_stretches);
    for (size_t i = 0; i < l->count; i++) {
        if (n && l->list[i].from <= l->list[n - 1].to) {
            if (l->list[i].to > l->list[n - 1].to)
                l->list[n - 1].to = l->list[i].to;
            continue;
        }
        l->list[n++] = l->list[i];
    }
    l->count = n;
}

static bool add_all(stretches *to, const stretches *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (!add_stretch(to, from->list[i].from, from->list[i].to))
            return false;
    return true;
}

static orr_ps length_of(const stretches *l)
{
    orr_ps sum = 0;
    for (size_t i = 0; i < l->count; i++)
        sum += l->list[i].to - l->list[i].from;
    return sum;
}

/* ---- one rank ---- */

static use use_of(uint8_t kind)
{
    switch (kind) {
    case ORR_SPAN_COMPUTE:
        return COMPUTE;
    case ORR_SPAN_COLLECTIVE:
        return COLLECTIVE;
    case ORR_SPAN_SEND:
    case ORR_SPAN_RECEIVE:
        return MESSAGE;
    case ORR_SPAN_MEMORY:
        return MEMORY;
    case ORR_SPAN_HOST:
        return HOST;
    default: /* a phase is part of a collective; others are unknown */
        return USES;
    }
}

/* An operator that starts a collective or waits for it computes nothing. */
static bool is_call(orr_str name)
{
    return orr_str_begins(name, "c10d::") || orr_str_begins(name, "_c10d_functional::") ||
           orr_str_is(name, "record_param_comms");
}

static use use_of_span(const worker *w, const orr_timespan *span)
{
    const use u = use_of(span->kind);
    if (u != HOST || !w->host_computes)
        return u;
    return is_call(orr_timeline_text(w->s->t, span->name)) ? HOST : COMPUTE;
}

static bool has_device(const orr_timeline_parts *p)
{
    for (uint32_t i = 0; i < p->span_count; i++) {
        if (p->spans[i].kind == ORR_SPAN_COMPUTE || p->spans[i].kind == ORR_SPAN_MEMORY)
            return true;
    }
    return false;
}

static bool gather(worker *w, uint32_t track)
{
    const orr_timeline_parts *p = w->s->p;
    for (uint32_t k = p->first[track]; k < p->first[track + 1]; k++) {
        const uint32_t i = p->order[k];
        const use u = use_of_span(w, &p->spans[i]);
        const use before = u == COLLECTIVE ? WAITING : BUBBLE;
        if (u < USES && !add_stretch(&w->by_use[u], w->s->since[i], p->spans[i].end))
            return false;
        if ((u == COLLECTIVE || u == MESSAGE) &&
            !add_stretch(&w->by_use[before], p->spans[i].start, w->s->since[i]))
            return false;
    }
    return true;
}

/* Adds uses in the order of precedence: what a use adds to `all` is its own time. */
static bool add_own(worker *w, const stretches *more, orr_ps *sum, orr_ps *own)
{
    if (!add_all(&w->all, more))
        return false;
    unite(&w->all);
    const orr_ps now = length_of(&w->all);
    *own = now - *sum;
    *sum = now;
    return true;
}

static bool set_times(worker *w, orr__rank_times *r)
{
    const stretches *b = w->by_use;
    orr_ps sum = 0;
    w->comm.count = w->all.count = 0;
    if (!add_all(&w->comm, &b[COLLECTIVE]) || !add_all(&w->comm, &b[MESSAGE]))
        return false;
    unite(&w->comm);
    if (!add_own(w, &b[COMPUTE], &sum, &r->compute) || !add_own(w, &w->comm, &sum, &r->exposed) ||
        !add_own(w, &b[MEMORY], &sum, &r->memory) || !add_own(w, &b[HOST], &sum, &r->host) ||
        !add_own(w, &b[WAITING], &sum, &r->waiting) || !add_own(w, &b[BUBBLE], &sum, &r->bubble))
        return false;
    r->overlapped = length_of(&w->comm) - r->exposed;
    r->idle = orr__total(w->s) - sum;
    return true;
}

/* ---- collectives ---- */

static bool sum_compute(worker *w)
{
    const stretches *c = &w->by_use[COMPUTE];
    orr_ps sum = 0;
    if (!orr_grow(&w->before, &w->before_room, c->count + 1))
        return false;
    for (size_t i = 0; i < c->count; i++) {
        w->before[i] = sum;
        sum += c->list[i].to - c->list[i].from;
    }
    w->before[c->count] = sum;
    return true;
}

/* How long the rank has computed until then. */
static orr_ps computed_by(const worker *w, orr_ps at)
{
    const stretches *c = &w->by_use[COMPUTE];
    size_t low = 0, high = c->count;
    while (low < high) { /* the first interval that starts at `at` or later */
        const size_t mid = low + (high - low) / 2;
        if (c->list[mid].from < at)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return 0;
    const stretch *last = &c->list[low - 1];
    return w->before[low - 1] + (at < last->to ? at : last->to) - last->from;
}

static orr__collective_row *find_row(worker *w, const orr_timespan *span)
{
    orr__study *s = w->s;
    uint64_t key = (span->size * 0x9e3779b97f4a7c15u) ^ ((uint64_t)span->members << 8) ^
                   (uint64_t)span->collective;
    uint32_t i;
    while ((i = orr_map_find(w->row_of, key, ORR__NO_PLACE)) != ORR__NO_PLACE) {
        orr__collective_row *r = &s->rows[i];
        if (r->collective == span->collective && r->size == span->size &&
            r->members == span->members)
            return r;
        key++;
    }
    if (!orr_grow(&s->rows, &s->row_room, s->row_count + 1) ||
        !orr_map_put(w->row_of, key, (uint32_t)s->row_count, NULL))
        return NULL;
    s->rows[s->row_count] = (orr__collective_row){.collective = span->collective,
                                                  .members = span->members,
                                                  .size = span->size,
                                                  .last_place = ORR__NO_PLACE,
                                                  .group = span->group};
    return &s->rows[s->row_count++];
}

/* Groups of ranks missing from the timeline count, too: each is counted by all its members. */
static bool count_joined(worker *w, orr__collective_row *r, uint32_t place, uint32_t group)
{
    const uint32_t key[] = {(uint32_t)(r - w->s->rows), place, group};
    bool is_new = false;
    if (!orr_map_put(w->joined_seen, orr_hash_bytes(key, sizeof key, 0), 1, &is_new))
        return false;
    r->joined += is_new ? w->s->ranks[place].alike : 0;
    return true;
}

static bool count_collective(worker *w, uint32_t place, uint32_t i)
{
    const orr_timespan *span = &w->s->p->spans[i];
    const orr_ps since = w->s->since[i];
    orr__collective_row *r = find_row(w, span);
    bool is_new = false;
    if (!r)
        return false;
    const uint32_t alike = w->s->ranks[place].alike;
    const uint64_t group = (uint64_t)(r - w->s->rows) << 32 | span->group;
    if (!orr_map_put(w->group_seen, group, 1, &is_new))
        return false;
    r->groups += is_new;
    if (w->s->p->alike && !count_joined(w, r, place, span->group))
        return false;
    r->ranks += r->last_place != place ? alike : 0;
    r->last_place = place;
    r->calls += alike;
    r->time += (orr__ps_sum)(span->end - since) * alike;
    r->overlapped += (orr__ps_sum)(computed_by(w, span->end) - computed_by(w, since)) * alike;
    return true;
}

static bool count_collectives(worker *w, uint32_t place, uint32_t track)
{
    const orr_timeline_parts *p = w->s->p;
    bool ok = true;
    for (uint32_t k = p->first[track]; ok && k < p->first[track + 1]; k++) {
        if (p->spans[p->order[k]].kind == ORR_SPAN_COLLECTIVE)
            ok = count_collective(w, place, p->order[k]);
    }
    return ok;
}

static int compare_rows(const void *a, const void *b)
{
    const orr__collective_row *x = a, *y = b;
    const orr__ps_sum mine = x->time - x->overlapped, other = y->time - y->overlapped;
    if (mine != other)
        return mine > other ? -1 : 1;
    if (x->time != y->time)
        return x->time > y->time ? -1 : 1;
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->members < y->members ? -1 : x->members > y->members;
}

/* ---- all ranks ---- */

static bool study_rank(worker *w, uint32_t place)
{
    orr__study *s = w->s;
    bool ok = true;
    for (unsigned u = 0; u < USES; u++)
        w->by_use[u].count = 0;
    for (uint32_t k = s->first_track[place]; ok && k < s->first_track[place + 1]; k++)
        ok = gather(w, s->track_list[k]);
    for (unsigned u = 0; u < USES; u++)
        unite(&w->by_use[u]);
    ok = ok && set_times(w, &s->ranks[place]) && sum_compute(w);
    for (uint32_t k = s->first_track[place]; ok && k < s->first_track[place + 1]; k++)
        ok = count_collectives(w, place, s->track_list[k]);
    return ok;
}

uint32_t orr__place_of_rank(const orr__study *s, uint32_t rank)
{
    const uint32_t shown = orr_timeline_shown(s->p, rank);
    for (uint32_t low = 0, high = s->rank_count; low < high;) {
        const uint32_t mid = low + (high - low) / 2;
        if (s->ranks[mid].rank == shown)
            return mid;
        if (s->ranks[mid].rank < shown)
            low = mid + 1;
        else
            high = mid;
    }
    return ORR__NO_PLACE;
}

static uint32_t place_of(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
    const uint32_t *found = bsearch(&rank, ranks, count, sizeof rank, orr_by_u32);
    return found ? (uint32_t)(found - ranks) : ORR__NO_PLACE;
}

/* The ranks, and the tracks of each. */
static bool list_ranks(orr__study *s)
{
    const uint32_t tracks = s->p->track_count;
    uint32_t *ranks = orr_arena_new(s->arena, tracks, uint32_t);
    s->place_of_track = orr_arena_new(s->arena, tracks, uint32_t);
    s->track_list = orr_arena_new(s->arena, tracks, uint32_t);
    uint32_t all = 0, count = 0;
    if (!ranks || !s->place_of_track || !s->track_list)
        return false;
    for (uint32_t k = 0; k < tracks; k++)
        if (s->p->tracks[k].rank != ORR_NO_RANK)
            ranks[all++] = s->p->tracks[k].rank;
    orr_sort(ranks, all, sizeof *ranks, orr_by_u32);
    for (uint32_t k = 0; k < all; k++)
        if (count == 0 || ranks[count - 1] != ranks[k])
            ranks[count++] = ranks[k];
    s->rank_count = count;
    s->ranks = orr_arena_new(s->arena, count, orr__rank_times);
    s->first_track = orr_arena_new(s->arena, (size_t)count + 2, uint32_t);
    if (!s->ranks || !s->first_track)
        return false;
    for (uint32_t k = 0; k < count; k++)
        s->ranks[k] = (orr__rank_times){.rank = ranks[k], .alike = 1, .stage = ORR__NO_STAGE};
    s->all_ranks = count;
    for (uint32_t r = 0; r < s->p->alike_count; r++) {
        const uint32_t place = s->p->alike[r] == r ? ORR__NO_PLACE : orr__place_of_rank(s, r);
        if (place == ORR__NO_PLACE)
            continue;
        s->ranks[place].alike++;
        s->all_ranks++;
    }
    for (uint32_t k = 0; k < tracks; k++) {
        s->place_of_track[k] = place_of(ranks, count, s->p->tracks[k].rank);
        if (s->place_of_track[k] != ORR__NO_PLACE)
            s->first_track[s->place_of_track[k] + 2]++;
    }
    for (uint32_t k = 0; k < count; k++)
        s->first_track[k + 2] += s->first_track[k + 1];
    for (uint32_t k = 0; k < tracks; k++)
        if (s->place_of_track[k] != ORR__NO_PLACE)
            s->track_list[s->first_track[s->place_of_track[k] + 1]++] = k;
    return true;
}

/* ---- from when something counts ---- */

/* A receive waits for a message that has not left: that time is not communication. */
static void wait_for_messages(orr__study *s)
{
    const orr_timeline_parts *p = s->p;
    for (uint32_t k = 0; k < p->arrow_count; k++) {
        const orr_arrow *a = &p->arrows[k];
        const orr_timespan *to = &p->spans[a->to];
        if (to->kind == ORR_SPAN_RECEIVE && a->left > s->since[a->to])
            s->since[a->to] = a->left < to->end ? a->left : to->end;
    }
}

/* The n-th collective of a group on each of its ranks is one collective. */
typedef struct meeting {
    orr_ps last; /* start */
    uint32_t ranks;
} meeting;

typedef struct meetings {
    orr__study *s;
    orr_map *by_key;  /* group and number -> meeting */
    orr_map *counted; /* rank and group -> how many so far */
    uint32_t *of;     /* by span */
    meeting *list;
    size_t count, room;
} meetings;

static bool join_meeting(meetings *m, uint32_t place, uint32_t i)
{
    const orr_timespan *span = &m->s->p->spans[i];
    const uint64_t of_rank = (uint64_t)place << 32 | span->group;
    const uint32_t number = orr_map_find(m->counted, of_rank, 0);
    const uint64_t key = (uint64_t)span->group << 32 | number;
    uint32_t k = orr_map_find(m->by_key, key, ORR__NO_PLACE);
    if (!orr_map_put(m->counted, of_rank, number + 1, NULL))
        return false;
    if (k == ORR__NO_PLACE) {
        k = (uint32_t)m->count++;
        if (!orr_grow(&m->list, &m->room, m->count) || !orr_map_put(m->by_key, key, k, NULL))
            return false;
        m->list[k] = (meeting){.last = span->start};
    }
    m->list[k].ranks++;
    if (span->start > m->list[k].last)
        m->list[k].last = span->start;
    m->of[i] = k;
    return true;
}

static bool find_meetings(meetings *m)
{
    const orr_timeline_parts *p = m->s->p;
    bool ok = m->by_key && m->counted && m->of;
    for (uint32_t j = 0; ok && j < p->span_count; j++) {
        const orr_timespan *span = &p->spans[p->order[j]];
        const uint32_t place = m->s->place_of_track[span->track];
        if (span->kind == ORR_SPAN_COLLECTIVE && place != ORR__NO_PLACE)
            ok = join_meeting(m, place, p->order[j]);
    }
    return ok;
}

/* Clocks of measured ranks differ, so only simulations tell who came last. */
static bool wait_for_last(orr__study *s)
{
    const orr_timeline_parts *p = s->p;
    meetings m = {.s = s,
                  .by_key = orr_map_create(0),
                  .counted = orr_map_create(0),
                  .of = orr_alloc(p->span_count, sizeof *m.of)};
    const bool ok = find_meetings(&m);
    for (uint32_t i = 0; ok && i < p->span_count; i++) {
        const orr_timespan *span = &p->spans[i];
        if (span->kind != ORR_SPAN_COLLECTIVE || s->place_of_track[span->track] == ORR__NO_PLACE)
            continue;
        const meeting *meet = &m.list[m.of[i]];
        if (meet->ranks == span->members && meet->last > span->start)
            s->since[i] = meet->last < span->end ? meet->last : span->end;
    }
    orr_map_destroy(m.by_key);
    orr_map_destroy(m.counted);
    orr_free(m.of);
    orr_free(m.list);
    return ok;
}

static bool find_since(orr__study *s)
{
    const orr_timeline_parts *p = s->p;
    s->since = orr_arena_take(s->arena, (size_t)p->span_count * sizeof *s->since + 1);
    if (!s->since)
        return false;
    for (uint32_t i = 0; i < p->span_count; i++)
        s->since[i] = p->spans[i].has & ORR_SPAN_HAS_FLOWS ? p->spans[i].flows : p->spans[i].start;
    if (p->alike) /* not all that they wait for is recorded; they carry it themselves */
        return true;
    wait_for_messages(s);
    return s->run->is_measured || wait_for_last(s);
}

static void worker_fini(worker *w)
{
    for (unsigned u = 0; u < USES; u++)
        orr_free(w->by_use[u].list);
    orr_free(w->comm.list);
    orr_free(w->all.list);
    orr_free(w->before);
    orr_map_destroy(w->row_of);
    orr_map_destroy(w->group_seen);
    orr_map_destroy(w->joined_seen);
}

orr_code orr__study_times(orr__study *s)
{
    worker w = {.s = s,
                .row_of = orr_map_create(0),
                .group_seen = orr_map_create(0),
                .joined_seen = orr_map_create(0),
                .host_computes = s->run->is_measured && !has_device(s->p)};
    bool ok = w.row_of && w.group_seen && w.joined_seen && list_ranks(s) && find_since(s);
    for (uint32_t k = 0; ok && k < s->rank_count; k++)
        ok = study_rank(&w, k);
    for (size_t k = 0; ok && s->p->alike && k < s->row_count; k++)
        if (s->rows[k].members && s->rows[k].joined > s->rows[k].members)
            s->rows[k].groups = (uint32_t)(s->rows[k].joined / s->rows[k].members);
    if (ok && s->row_count)
        orr_sort(s->rows, s->row_count, sizeof *s->rows, compare_rows);
    worker_fini(&w);
    return ok ? ORR_OK : orr_no_memory(s->err);
}

/* ---- factors ---- */

/* As in nccl-tests' PERFORMANCE.md.  There the size of a gather is that of its output, n shares. */
bool orr__bandwidth_factors(const orr__collective_row *r, double *size_out, double *bus_out)
{
    const double n = r->members, size = (double)r->size;
    *size_out = size;
    if (r->members == 0 || r->size == 0)
        return false;
    switch (r->collective - 1) {
    case ORR_COLL_ALL_REDUCE:
        *bus_out = 2 * (n - 1) / n;
        return true;
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_GATHER:
        *size_out = n * size;
        *bus_out = (n - 1) / n;
        return true;
    case ORR_COLL_SCATTER:
    case ORR_COLL_ALL_TO_ALL:
    case ORR_COLL_REDUCE_SCATTER:
    case ORR_COLL_REDUCE_SCATTER_BLOCK:
        *bus_out = (n - 1) / n;
        return true;
    case ORR_COLL_BROADCAST:
    case ORR_COLL_REDUCE:
        *bus_out = 1;
        return true;
    default:
        return false;
    }
}

/* ======== Ranks that are alike, so that a job of thousands is a few rows.
 *
 * A rank joins the first group whose first rank is of its stage and has the same figures up to a
 * tolerance, a share of the total time: 0.1 % at first, doubled while there are too many groups to
 * read.  Ranks are taken in ascending order, so the same timeline gives the same groups. */

enum { MOST_GROUPS = 64 };

static bool is_near(orr_ps a, orr_ps b, orr_ps tolerance)
{
    return (a > b ? a - b : b - a) <= tolerance;
}

static bool is_like(const orr__rank_times *a, const orr__rank_times *b, orr_ps tolerance)
{
    return a->stage == b->stage && is_near(a->compute, b->compute, tolerance) &&
           is_near(a->exposed, b->exposed, tolerance) &&
           is_near(a->overlapped, b->overlapped, tolerance) &&
           is_near(a->memory, b->memory, tolerance) && is_near(a->host, b->host, tolerance) &&
           is_near(a->waiting, b->waiting, tolerance) && is_near(a->bubble, b->bubble, tolerance);
}

static void add_to(orr__time_sums *sum, const orr__rank_times *r)
{
    const orr__ps_sum n = r->alike;
    sum->compute += r->compute * n;
    sum->exposed += r->exposed * n;
    sum->overlapped += r->overlapped * n;
    sum->memory += r->memory * n;
    sum->host += r->host * n;
    sum->waiting += r->waiting * n;
    sum->bubble += r->bubble * n;
    sum->idle += r->idle * n;
}

/* False: too many groups. */
static bool share_out(orr__study *s, orr_ps tolerance, uint32_t most)
{
    s->group_count = 0;
    for (uint32_t place = 0; place < s->rank_count; place++) {
        uint32_t k = 0;
        while (k < s->group_count &&
               !is_like(&s->ranks[s->groups[k].first], &s->ranks[place], tolerance))
            k++;
        if (k == most)
            return false;
        if (k == s->group_count)
            s->groups[s->group_count++] =
                (orr__like_ranks){.first = place, .stage = s->ranks[place].stage};
        s->ranks[place].group = k;
    }
    return true;
}

/* The places of all ranks, ascending by rank, including represented ones; NULL: out of memory. */
static uint32_t *list_all(orr__study *s, uint32_t **ranks)
{
    uint32_t *places = orr_arena_new(s->arena, s->all_ranks, uint32_t);
    uint32_t n = 0, place = 0;
    *ranks = orr_arena_new(s->arena, s->all_ranks, uint32_t);
    if (!places || !*ranks)
        return NULL;
    for (uint32_t r = 0; r < s->p->alike_count; r++) {
        const uint32_t at = orr__place_of_rank(s, r);
        if (at == ORR__NO_PLACE)
            continue;
        (*ranks)[n] = r;
        places[n++] = at;
    }
    while (place < s->rank_count && s->ranks[place].rank < s->p->alike_count)
        place++;
    for (; place < s->rank_count; place++) {
        (*ranks)[n] = s->ranks[place].rank;
        places[n++] = place;
    }
    return places;
}

static bool describe(orr__study *s)
{
    uint32_t *ranks, *places = list_all(s, &ranks);
    uint32_t *list = orr_arena_new(s->arena, s->all_ranks, uint32_t);
    if (!places || !list)
        return false;
    for (uint32_t place = 0; place < s->rank_count; place++)
        add_to(&s->groups[s->ranks[place].group].sum, &s->ranks[place]);
    for (uint32_t k = 0; k < s->group_count; k++) {
        orr__like_ranks *g = &s->groups[k];
        for (uint32_t i = 0; i < s->all_ranks; i++)
            if (s->ranks[places[i]].group == k)
                list[g->count++] = ranks[i];
        if (!(g->ranks = orr__rank_ranges(s->arena, list, g->count)))
            return false;
    }
    return true;
}

/* The rank with most of the critical path represents its group, so that the path is visible. */
static bool choose_shown(orr__study *s)
{
    uint64_t *on_path = orr_arena_new(s->arena, s->rank_count, uint64_t);
    if (!on_path)
        return false;
    for (size_t i = 0; i < s->run->step_count; i++) {
        const uint32_t place = orr__place_of_rank(s, s->run->steps[i].rank);
        if (place != ORR__NO_PLACE)
            on_path[place] += s->run->steps[i].to_ns - s->run->steps[i].from_ns;
    }
    for (uint32_t k = 0; k < s->group_count; k++)
        s->groups[k].shown = s->groups[k].first;
    for (uint32_t place = 0; place < s->rank_count; place++) {
        orr__like_ranks *g = &s->groups[s->ranks[place].group];
        if (on_path[place] > on_path[g->shown])
            g->shown = place;
    }
    return true;
}

orr_code orr__study_groups(orr__study *s)
{
    const uint32_t most = s->stage_count > MOST_GROUPS ? s->stage_count : MOST_GROUPS;
    s->tolerance = 0.001;
    s->groups = orr_arena_new(s->arena, most, orr__like_ranks);
    if (!s->groups)
        return orr_no_memory(s->err);
    while (!share_out(s, (orr_ps)(s->tolerance * (double)orr__total(s)), most))
        s->tolerance *=
            2; /* at the latest when everything is within it, one group per stage is left */
    return describe(s) && choose_shown(s) ? ORR_OK : orr_no_memory(s->err);
}

/* ======== Pipeline stages, from senders and receivers of messages.
 *
 *     rank 0 -> 8 -> 16 -> 24        each rank has a predecessor and a successor at most: a line
 *     rank 1 -> 9 -> 17 -> 25        (or a cycle, when stages are interleaved), all lines equally long
 *
 * The k-th ranks of all lines are stage k.  A line starts at the end that sends first; a cycle at
 * the rank that sends first, in the direction of that message.  Any other pattern of messages is
 * not a pipeline: then there are no stages. */

/* The neighbours of a rank, and when it first sent to each. */
typedef struct neighbours {
    uint32_t place[2];
    orr_ps sent_at[2]; /* INT64_MAX: only receives from there */
    uint32_t count;    /* 3: too many */
} neighbours;

typedef struct finder {
    orr__study *s;
    neighbours *of; /* by place */
    bool *is_done;
} finder;

static void add_neighbour(neighbours *n, uint32_t place, orr_ps sent_at)
{
    uint32_t k = 0;
    while (k < n->count && k < 2 && n->place[k] != place)
        k++;
    if (k == 2) {
        n->count = 3;
        return;
    }
    if (k == n->count) {
        n->place[k] = place;
        n->sent_at[k] = INT64_MAX;
        n->count++;
    }
    if (sent_at < n->sent_at[k])
        n->sent_at[k] = sent_at;
}

/* False: not a pipeline. */
static bool find_neighbours(finder *f)
{
    const orr_timeline_parts *p = f->s->p;
    for (uint32_t i = 0; i < p->span_count; i++) {
        const orr_timespan *span = &p->spans[i];
        if (!(span->has & ORR_SPAN_HAS_PEER) ||
            (span->kind != ORR_SPAN_SEND && span->kind != ORR_SPAN_RECEIVE))
            continue;
        const uint32_t me = f->s->place_of_track[span->track];
        const uint32_t peer = orr__place_of_rank(f->s, span->peer);
        if (me == ORR__NO_PLACE || peer == ORR__NO_PLACE || me == peer)
            return false;
        add_neighbour(&f->of[me], peer, span->kind == ORR_SPAN_SEND ? span->start : INT64_MAX);
        add_neighbour(&f->of[peer], me, INT64_MAX);
        if (f->of[me].count > 2 || f->of[peer].count > 2)
            return false;
    }
    return true;
}

static orr_ps first_send(const neighbours *n)
{
    orr_ps first = INT64_MAX;
    for (uint32_t k = 0; k < n->count; k++)
        if (n->sent_at[k] < first)
            first = n->sent_at[k];
    return first;
}

/* All ranks connected with `place`, in list; returns how many. */
static uint32_t collect(finder *f, uint32_t place, uint32_t *list)
{
    uint32_t count = 0;
    list[count++] = place;
    f->is_done[place] = true;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < f->of[list[i]].count; k++) {
            const uint32_t next = f->of[list[i]].place[k];
            if (!f->is_done[next])
                list[count++] = next;
            f->is_done[next] = true;
        }
    return count;
}

static bool is_end(const finder *f, uint32_t place)
{
    return f->of[place].count == 1;
}

/* The first rank: of the ends, or of all in a cycle, the one that sends first. */
static uint32_t find_head(const finder *f, const uint32_t *list, uint32_t count)
{
    uint32_t head = ORR__NO_PLACE;
    bool has_ends = false;
    for (uint32_t i = 0; i < count; i++)
        has_ends |= is_end(f, list[i]);
    for (uint32_t i = 0; i < count; i++) {
        const bool can_be = is_end(f, list[i]) == has_ends;
        if (can_be &&
            (head == ORR__NO_PLACE || first_send(&f->of[list[i]]) < first_send(&f->of[head])))
            head = list[i];
    }
    return head;
}

static void number_line(const finder *f, uint32_t head, uint32_t count)
{
    const neighbours *h = &f->of[head];
    uint32_t before = head, at = head;
    uint32_t next = h->place[h->count == 2 && h->sent_at[1] < h->sent_at[0] ? 1 : 0];
    for (uint32_t stage = 0; stage < count; stage++) {
        f->s->ranks[at].stage = stage;
        before = at;
        at = next;
        const neighbours *n = &f->of[at];
        next = n->count == 2 && n->place[0] == before ? n->place[1] : n->place[0];
    }
}

/* 0: not all in lines of the same length. */
static uint32_t number_lines(finder *f, uint32_t *list)
{
    const uint32_t ranks = f->s->rank_count;
    uint32_t length = 0;
    for (uint32_t place = 0; place < ranks; place++) {
        if (f->is_done[place])
            continue;
        const uint32_t count = collect(f, place, list);
        if (count < 2 || (length && count != length))
            return 0;
        length = count;
        number_line(f, find_head(f, list, count), count);
    }
    return length;
}

static bool add_stages(orr__study *s)
{
    uint32_t *ranks, *places = list_all(s, &ranks);
    uint32_t *list = orr_arena_new(s->arena, s->all_ranks, uint32_t);
    s->stages = orr_arena_new(s->arena, s->stage_count, orr__stage);
    if (!s->stages || !places || !list)
        return false;
    for (uint32_t k = 0; k < s->stage_count; k++) {
        orr__stage *stage = &s->stages[k];
        for (uint32_t i = 0; i < s->all_ranks; i++) {
            if (s->ranks[places[i]].stage != k)
                continue;
            list[stage->count++] = ranks[i];
            stage->unused += orr__unused(&s->ranks[places[i]]);
        }
        stage->ranks = orr__rank_ranges(s->arena, list, stage->count);
        if (!stage->ranks)
            return false;
    }
    return true;
}

orr_code orr__study_pipeline(orr__study *s)
{
    finder f = {.s = s,
                .of = orr_arena_new(s->arena, s->rank_count, neighbours),
                .is_done = orr_arena_new(s->arena, s->rank_count, bool)};
    uint32_t *list = orr_arena_new(s->arena, s->rank_count, uint32_t);
    if (!f.of || !f.is_done || !list)
        return orr_no_memory(s->err);
    s->stage_count = find_neighbours(&f) ? number_lines(&f, list) : 0;
    for (uint32_t place = 0; place < s->rank_count && !s->stage_count; place++)
        s->ranks[place].stage = ORR__NO_STAGE;
    return add_stages(s) ? ORR_OK : orr_no_memory(s->err);
}

/* ======== Memory over time: counters named memory that count bytes.
 *
 * Of each group of like ranks the one with the highest peak is drawn.  A line on a screen needs at
 * most two points per column, so samples are thinned; minimum and maximum of each interval stay,
 * and so do peaks. */

enum { MOST_POINTS = 2000 };

/* ---- thinning ---- */

/* Adds minimum and maximum of part[0..count), in time order. */
static size_t keep_extremes(orr_sample *out, const orr_sample *part, size_t count)
{
    size_t least = 0, most = 0;
    for (size_t i = 1; i < count; i++) {
        if (part[i].value < part[least].value)
            least = i;
        if (part[i].value > part[most].value)
            most = i;
    }
    const size_t a = least < most ? least : most, b = least < most ? most : least;
    const orr_sample first = part[a], second = part[b]; /* out may overlap part */
    out[0] = first;
    if (a == b)
        return 1;
    out[1] = second;
    return 2;
}

size_t orr__thin_samples(orr_sample *samples, size_t count, size_t most)
{
    if (count <= most || most < 4)
        return count;
    const size_t parts = (most - 1) / 2;
    const orr_ps start = samples[0].at;
    const double length = (double)(samples[count - 1].at - start) / (double)parts;
    const orr_sample last = samples[count - 1];
    size_t n = 0, from = 0;
    for (size_t k = 0; k < parts && from < count; k++) {
        const double end = (double)start + length * (double)(k + 1);
        size_t to = from;
        while (to < count && (k + 1 == parts || (double)samples[to].at < end))
            to++;
        if (to > from)
            n += keep_extremes(samples + n, samples + from, to - from);
        from = to;
    }
    if (samples[n - 1].at != last.at)
        samples[n++] = last;
    return n;
}

/* ---- which counters ---- */

static bool is_memory(const orr__study *s, const orr_counter *c)
{
    const orr_str name = orr_timeline_text(s->t, c->name);
    return c->rank != ORR_NO_RANK && orr_str_is(orr_timeline_text(s->t, c->unit), "bytes") &&
           name.len >= 6 && memcmp(name.ptr, "memory", 6) == 0;
}

typedef struct candidate {
    int64_t *peak;     /* by counter */
    uint32_t *chosen;  /* by group: a counter, or ORR__NO_PLACE */
    bool *differs;     /* by group: peaks differ */
    uint32_t *counted; /* by group: counters */
} candidate;

static void choose(const orr__study *s, candidate *c)
{
    const orr_timeline_parts *p = s->p;
    for (uint32_t k = 0; k < p->counter_count; k++) {
        const uint32_t place = is_memory(s, &p->counters[k])
                                   ? orr__place_of_rank(s, p->counters[k].rank)
                                   : ORR__NO_PLACE;
        if (place == ORR__NO_PLACE)
            continue;
        const uint32_t group = s->ranks[place].group;
        const uint32_t best = c->chosen[group];
        c->counted[group] += s->ranks[place].alike;
        if (best != ORR__NO_PLACE)
            c->differs[group] |= c->peak[best] != c->peak[k];
        if (best == ORR__NO_PLACE || c->peak[k] > c->peak[best])
            c->chosen[group] = k;
    }
}

static int compare_samples(const void *a, const void *b)
{
    const orr_sample *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool add_series(orr__study *s, const candidate *c, uint32_t group)
{
    const orr_timeline_parts *p = s->p;
    const uint32_t counter = c->chosen[group];
    orr__memory_series *out = &s->series[s->series_count++];
    const orr__like_ranks *g = &s->groups[group];
    size_t count = 0;
    for (uint32_t i = 0; i < p->sample_count; i++)
        count += p->samples[i].counter == counter;
    out->points = orr_arena_new(s->arena, count, orr_sample);
    if (!out->points)
        return false;
    for (uint32_t i = 0; i < p->sample_count; i++)
        if (p->samples[i].counter == counter)
            out->points[out->count++] = p->samples[i];
    orr_sort(out->points, out->count, sizeof *out->points, compare_samples);
    out->count = orr__thin_samples(out->points, out->count, MOST_POINTS);
    out->peak = c->peak[counter];
    const char *several = g->count > 1 ? "ranks" : "rank";
    out->name = c->differs[group] || c->counted[group] < g->count
                    ? orr_arena_print(s->arena, "rank %u, the most of %s %s",
                                      p->counters[counter].rank, several, g->ranks)
                    : orr_arena_print(s->arena, "%s %s", several, g->ranks);
    return out->name != NULL;
}

orr_code orr__study_memory(orr__study *s)
{
    const orr_timeline_parts *p = s->p;
    candidate c = {.peak = orr_arena_new(s->arena, p->counter_count, int64_t),
                   .chosen = orr_arena_new(s->arena, s->group_count, uint32_t),
                   .differs = orr_arena_new(s->arena, s->group_count, bool),
                   .counted = orr_arena_new(s->arena, s->group_count, uint32_t)};
    s->series = orr_arena_new(s->arena, s->group_count, orr__memory_series);
    bool ok = c.peak && c.chosen && c.differs && c.counted && s->series;
    for (uint32_t i = 0; ok && i < p->sample_count; i++)
        if (p->samples[i].value > c.peak[p->samples[i].counter])
            c.peak[p->samples[i].counter] = p->samples[i].value;
    for (uint32_t k = 0; ok && k < s->group_count; k++)
        c.chosen[k] = ORR__NO_PLACE;
    if (ok)
        choose(s, &c);
    for (uint32_t k = 0; ok && k < s->group_count; k++)
        if (c.chosen[k] != ORR__NO_PLACE)
            ok = add_series(s, &c, k);
    return ok ? ORR_OK : orr_no_memory(s->err);
}
