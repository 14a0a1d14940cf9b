/* SPDX-License-Identifier: Apache-2.0 */
/* link_align.c - one clock for all ranks, by what they did together.
 *
 * A collective ends on all its ranks at nearly the same time: when the last piece of data is there.  So the
 * difference of two ranks' clocks is that of the ends of a collective of both; the median over all they share, since a
 * single one may end late on a busy host.  The k-th operation of a name in a group is the same on all ranks that
 * have equally many of them.
 *
 *     rank 0   |--all-reduce--|        |-all-gather-|
 *     rank 1      |--all-reduce--|        |-all-gather-|       3 units late, both times
 *
 * From rank to rank: each is compared with the first rank, in order, that is in line already and shares something with
 * it; ranks without such keep their clock.
 * Cost: linear in the events, and for each rank a search among those before it. */
#include "link_job.h"

#include "base/memory/hash.h"
#include "base/memory/map.h"
#include "base/text/text.h"

#include <stdlib.h>

/* An operation of one rank that others take part in. */
typedef struct shared_end {
    uint64_t key; /* of name, group and count */
    int64_t ns;
} shared_end;

typedef struct ends {
    shared_end *list;
    size_t count, room;
} ends;

/* A kernel of NCCL or RCCL, or the work of a back end on the host.  Messages have two ends of their own. */
static bool is_collective(const orr_link *l, const kin_event *e)
{
    const orr_str name = orr_intern_get(l->device.texts, e->name);
    if (orr_str_has(name, "Send") || orr_str_has(name, "send") || orr_str_has(name, "recv"))
        return false;
    if (e->kind == KIN_KERNEL)
        return orr_str_has(name, "ncclDevKernel") || orr_str_has(name, "ncclKernel");
    return e->kind == KIN_OPERATOR &&
           (orr_str_begins(name, "gloo:") || orr_str_begins(name, "mpi:") ||
            orr_str_begins(name, "ucc:"));
}

static uint64_t key_of(const orr_link *l, const kin_event *e)
{
    const orr_str name = orr_intern_get(l->device.texts, e->name);
    const uint32_t group =
        e->extra == KIN_NO_TEXT ? KIN_NO_TEXT : l->device.extras[e->extra].group;
    uint64_t h = orr_hash_bytes(name.ptr, name.len, 0);
    if (group != KIN_NO_TEXT) {
        const orr_str g = orr_intern_get(l->device.texts, group);
        h = orr_hash_bytes(g.ptr, g.len, h);
    }
    return h;
}

static int by_key(const void *a, const void *b)
{
    const shared_end *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Sorted by key, and those of one key by time. */
static bool list_ends(const orr_link *l, ends *out)
{
    for (size_t i = 0; i < l->device.count; i++) {
        const kin_event *e = &l->device.events[i];
        if (!is_collective(l, e))
            continue;
        if (!orr_grow(&out->list, &out->room, out->count + 1))
            return false;
        out->list[out->count++] =
            (shared_end){key_of(l, e), l->device.base_ns + (int64_t)kin_end(e)};
    }
    if (out->count)
        qsort(out->list, out->count, sizeof *out->list, by_key);
    return true;
}

static size_t run_length(const ends *e, size_t from)
{
    size_t to = from;
    while (to < e->count && e->list[to].key == e->list[from].key)
        to++;
    return to - from;
}

/* Differences of the ends that a and b share, b's less a's; returns how many. */
static size_t compare(const ends *a, const ends *b, int64_t *out)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a->count && k < b->count) {
        const size_t in_a = run_length(a, i), in_b = run_length(b, k);
        if (a->list[i].key < b->list[k].key) {
            i += in_a;
        } else if (a->list[i].key > b->list[k].key) {
            k += in_b;
        } else {
            for (size_t s = 0; in_a == in_b && s < in_a; s++)
                out[n++] = b->list[k + s].ns - a->list[i + s].ns;
            i += in_a;
            k += in_b;
        }
    }
    return n;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Rank r in line with one before it. */
static void align(orr_link_job *job, const ends *all, uint32_t r, int64_t *room)
{
    for (uint32_t other = 0; other < r; other++) {
        const size_t n = compare(&all[other], &all[r], room);
        if (!n || (other && !job->ranks[other].about.is_aligned))
            continue;
        qsort(room, n, sizeof *room, by_value);
        job->ranks[r].about.clock_ns = job->ranks[other].about.clock_ns - room[n / 2];
        job->ranks[r].about.is_aligned = true;
        job->ranks[r].about.shared = n;
        return;
    }
}

orr_code link_job_align(orr_link_job *job, orr_error *err)
{
    ends *all = orr_alloc((size_t)job->rank_count + 1, sizeof *all);
    bool has_room = all;
    size_t most = 0;
    for (uint32_t r = 0; has_room && r < job->rank_count; r++) {
        has_room = list_ends(job->ranks[r].link, &all[r]);
        most = all[r].count > most ? all[r].count : most;
    }
    int64_t *room = orr_alloc(most + 1, sizeof *room);
    has_room = has_room && room;
    for (uint32_t r = 1; has_room && r < job->rank_count; r++)
        align(job, all, r, room);
    for (uint32_t r = 0; all && r < job->rank_count; r++)
        orr_free(all[r].list);
    orr_free(all);
    orr_free(room);
    return has_room ? ORR_OK : orr_no_memory(err);
}
