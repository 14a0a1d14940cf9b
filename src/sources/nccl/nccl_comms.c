/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_comms.c - communicators: members and topology (goal.md 5.3).
 *
 * Announced ones have markers: ranks, rings, trees.  Without any marker each communicator consists
 * of the GPUs that used it, by node and process, or as in NCCL's log; rings and trees are then
 * default ones.  By our rules this applies to each communicator without markers, and each channel
 * without a ring. Ranks of the schedule are GPUs in the order in which communicators name them.
 * Invariant: seats of a communicator are contiguous in comms.seats, and by rank in
 * comms.by_rank. */
#include "base/io/input.h"
#include "base/memory/sort.h"
#include "base/text/number.h"
#include "base/text/text.h"
#include "nccl_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/* Ranks of communicators from what NCCL_DEBUG=INFO wrote.
 *
 *     host:PID:TID [d] NCCL INFO ncclCommInitRankConfig comm X rank R nranks N ... commId H ...
 *
 * Other lines are skipped.  A line of this form with an invalid number is skipped as well, unless
 * the number is too large. */

enum { MOST_WORDS = 64 };

typedef struct words {
    orr_str at[MOST_WORDS];
    size_t count;
} words;

static void split(const char *p, const char *end, words *out)
{
    out->count = 0;
    while (out->count < MOST_WORDS) {
        while (p < end && orr_is_space(*p))
            p++;
        const char *from = p;
        while (p < end && !orr_is_space(*p))
            p++;
        if (p == from)
            return;
        out->at[out->count++] = (orr_str){.ptr = from, .len = (size_t)(p - from)};
    }
}

/* host:PID:TID */
static bool process_of(orr_str word, uint64_t *pid)
{
    const char *end = word.ptr + word.len;
    const char *first = memchr(word.ptr, ':', word.len);
    const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
    if (!second || memchr(second + 1, ':', (size_t)(end - second - 1)))
        return false;
    return orr_text_u64((orr_str){.ptr = first + 1, .len = (size_t)(second - first - 1)}, pid);
}

/* The word after the last one that is `name`, from the sixth word on. */
static orr_str value_of(const words *w, const char *name)
{
    orr_str found = {.ptr = "", .len = 0};
    for (size_t i = 5; i + 1 < w->count; i++)
        if (orr_str_is(w->at[i], name))
            found = w->at[i + 1];
    return found;
}

static bool announces(const words *w)
{
    return w->count > 5 && orr_str_is(w->at[2], "NCCL") && orr_str_is(w->at[3], "INFO") &&
           orr_str_is(w->at[4], "ncclCommInitRankConfig");
}

static bool read_line(const words *w, nccl_log_line *out)
{
    uint64_t pid;
    if (!announces(w) || !process_of(w->at[0], &pid) || pid > UINT32_MAX)
        return false;
    out->pid = (uint32_t)pid;
    out->ident = value_of(w, "commId");
    return out->ident.len && orr_text_u64(value_of(w, "rank"), &out->rank);
}

orr_code nccl_log_next(nccl_log *l, nccl_log_line *out, orr_error *err)
{
    words w;
    while (l->at < l->end) {
        const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
        const char *line_end = stop ? stop : l->end;
        split(l->at, line_end, &w);
        l->at = stop ? stop + 1 : l->end;
        l->line++;
        if (!read_line(&w, out))
            continue;
        if (out->rank > UINT32_MAX)
            return orr_fail(err, ORR_EINPUT, ORR_AT(orr_where_line(l->path, l->line, 1)),
                            "the rank is larger than 4,294,967,295");
        return ORR_OK;
    }
    return ORR_END;
}

/* ---- comms ---- */

#define KEEP(rows, ...)                                    \
    (orr_grow(&(rows).at, &(rows).room, (rows).count + 1)  \
         ? ((rows).at[(rows).count++] = __VA_ARGS__, true) \
         : false)

/* ---- looking ---- */

const nccl_seat *nccl_comm_seat(const nccl_comms *c, const nccl_comm *comm, uint64_t rank)
{
    uint32_t low = 0, high = comm->seats;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const nccl_seat *s = &c->seats.at[c->by_rank.at[comm->first_seat + middle]];
        if (s->rank == rank)
            return s;
        if (s->rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

nccl_seat *nccl_comm_seat_of(const nccl_comms *c, const nccl_comm *comm, uint32_t gpu)
{
    const uint64_t key = (uint64_t)(comm - c->all.at) << 32 | gpu;
    const uint32_t seat = orr_map_find(c->seat_of, key, ORR__NONE);
    return seat == ORR__NONE ? NULL : &c->seats.at[seat];
}

const nccl_ring *nccl_comm_ring(const nccl_comms *c, const nccl_seat *seat, uint32_t channel)
{
    return channel < seat->ring_count ? &c->rings.at[seat->first_ring + channel] : NULL;
}

const nccl_tree *nccl_comm_tree(const nccl_comms *c, const nccl_seat *seat, uint32_t channel)
{
    return channel < seat->tree_count ? &c->trees.at[seat->first_tree + channel] : NULL;
}

void nccl_comms_fini(nccl_comms *c)
{
    orr_free(c->all.at);
    orr_free(c->seats.at);
    orr_free(c->by_rank.at);
    orr_free(c->rings.at);
    orr_free(c->trees.at);
    orr_free(c->ranked.at);
    orr_map_destroy(c->of_ident);
    orr_map_destroy(c->seat_of);
}

/* ---- collecting ---- */

/* A row of who is where, wherever it comes from. */
typedef struct entry {
    uint32_t comm;
    uint32_t gpu;
    uint64_t rank;
    uint32_t place; /* in the order they were named */
} entry;

typedef struct builder {
    nccl_job *job;
    nccl_comms *comms;
    ORR__ROWS(entry) entries;
} builder;

static orr_code find_comm(builder *b, uint32_t ident, uint32_t *out, orr_error *err)
{
    nccl_comms *c = b->comms;
    *out = orr_map_find(c->of_ident, ident, ORR__NONE);
    if (*out != ORR__NONE)
        return ORR_OK;
    *out = (uint32_t)c->all.count;
    if (!orr_map_put(c->of_ident, ident, *out, NULL) ||
        !KEEP(c->all, (nccl_comm){.ident = ident, .channels = 1}))
        return orr_no_memory(err);
    return ORR_OK;
}

static orr_code add_entry(builder *b, uint32_t gpu, uint32_t ident, uint64_t rank, orr_error *err)
{
    entry e = {.gpu = gpu, .rank = rank, .place = (uint32_t)b->entries.count};
    nccl_gpu *g = &b->job->gpus.at[gpu];
    const orr_code code = find_comm(b, ident, &e.comm, err);
    if (code)
        return code;
    if (rank > INT32_MAX)
        return orr_fail(err, ORR_EINPUT, NULL, "communicator %s: rank %" PRIu64 " is out of range",
                        nccl_text(b->job, ident).ptr, rank);
    if (!KEEP(b->entries, e))
        return orr_no_memory(err);
    if (g->rank != ORR__NONE)
        return ORR_OK;
    g->rank = (uint32_t)b->comms->ranked.count;
    return KEEP(b->comms->ranked, gpu) ? ORR_OK : orr_no_memory(err);
}

static int entry_by_rank(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Of several rows for one rank the last names its GPU, at the place of the first. */
static orr_code seat_all(builder *b, orr_error *err)
{
    nccl_comms *c = b->comms;
    if (b->entries.count)
        orr_sort(b->entries.at, b->entries.count, sizeof *b->entries.at, entry_by_rank);
    for (size_t i = 0; i < b->entries.count; i++) {
        const entry *e = &b->entries.at[i];
        nccl_comm *comm = &c->all.at[e->comm];
        const bool is_again = i && e[-1].comm == e->comm && e[-1].rank == e->rank;
        if (is_again) {
            c->seats.at[c->seats.count - 1].gpu = e->gpu;
            continue;
        }
        if (comm->seats == 0)
            comm->first_seat = (uint32_t)c->seats.count;
        if (!KEEP(c->by_rank, (uint32_t)c->seats.count) ||
            !KEEP(c->seats, (nccl_seat){.rank = e->rank, .gpu = e->gpu, .place = e->place}))
            return orr_no_memory(err);
        comm->seats++;
    }
    return ORR_OK;
}

/* The first seat that was named, when a GPU has several. */
static orr_code index_seats(builder *b, orr_error *err)
{
    nccl_comms *c = b->comms;
    for (uint32_t k = 0; k < c->all.count; k++)
        for (uint32_t i = 0; i < c->all.at[k].seats; i++) {
            const uint32_t seat = c->all.at[k].first_seat + i;
            const uint64_t key = (uint64_t)k << 32 | c->seats.at[seat].gpu;
            const uint32_t other = orr_map_find(c->seat_of, key, ORR__NONE);
            if (other != ORR__NONE && c->seats.at[other].place < c->seats.at[seat].place)
                continue;
            if (!orr_map_put(c->seat_of, key, seat, NULL))
                return orr_no_memory(err);
        }
    return ORR_OK;
}

/* ---- without markers ---- */

typedef struct user {
    uint32_t gpu;
    uint64_t node; /* as a number */
    uint32_t pid;
} user;

static int user_order(const void *a, const void *b)
{
    const user *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

static uint64_t node_number(orr_str name)
{
    uint64_t v = 0;
    for (size_t i = 0; i < name.len; i++)
        v = v * 10 + (uint64_t)(name.ptr[i] - '0'); /* digits only; wrapping does no harm */
    return v;
}

/* One use of a communicator by a GPU. */
typedef struct use {
    uint32_t ident, gpu, place;
} use;

typedef struct usage {
    ORR__ROWS(use) uses; /* each pair once */
    orr_map *seen;       /* ident << 32 | gpu */
    orr_map *channels;   /* ident -> most works of one call */
} usage;

static orr_code add_uses(builder *b, usage *u, uint32_t gpu, orr_error *err)
{
    nccl_job *j = b->job;
    orr_code code = nccl_job_load(j, gpu, err);
    if (!code)
        code = nccl_gpu_link(j, gpu, err);
    const nccl_gpu *g = &j->gpus.at[gpu];
    for (size_t i = 0; !code && i < g->calls.count; i++) {
        const nccl_call *c = &g->calls.at[i];
        bool is_new = false;
        const uint32_t works = nccl_op_is_p2p(c->op) ? 0 : c->row_count;
        const uint32_t most = orr_map_find(u->channels, c->ident, 1);
        if (!orr_map_put(u->seen, (uint64_t)c->ident << 32 | gpu, 0, &is_new) ||
            !orr_map_put(u->channels, c->ident, works > most ? works : most, NULL))
            return orr_no_memory(err);
        const use one = {.ident = c->ident, .gpu = gpu, .place = (uint32_t)u->uses.count};
        if (is_new && !KEEP(u->uses, one))
            return orr_no_memory(err);
    }
    return code;
}

static int use_order(const void *a, const void *b)
{
    const use *x = a, *y = b;
    if (x->ident != y->ident)
        return x->ident < y->ident ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* The uses of each communicator, communicators as they were first used. */
static int first_use_order(const void *a, const void *b)
{
    const use *const *x = a, *const *y = b;
    return (*x)->place < (*y)->place ? -1 : (*x)->place > (*y)->place;
}

static orr_code seat_users(builder *b, const use *uses, size_t count, orr_error *err)
{
    const nccl_job *j = b->job;
    user *users = orr_alloc(count, sizeof *users);
    orr_code code = users ? ORR_OK : orr_no_memory(err);
    for (size_t i = 0; !code && i < count; i++) {
        const nccl_gpu *g = &j->gpus.at[uses[i].gpu];
        users[i] =
            (user){.gpu = uses[i].gpu, .node = node_number(nccl_text(j, g->node)), .pid = g->pid};
    }
    if (!code)
        orr_sort(users, count, sizeof *users, user_order);
    for (size_t i = 0; !code && i < count; i++)
        code = add_entry(b, users[i].gpu, uses->ident, i, err);
    orr_free(users);
    return code;
}

static bool is_settled(const builder *b, uint32_t ident)
{
    return orr_map_find(b->comms->of_ident, ident, ORR__NONE) != ORR__NONE;
}

/* Communicators that nobody announced, from their users. */
static orr_code infer(builder *b, usage *u, orr_error *err)
{
    orr_code code = ORR_OK;
    size_t heads = 0;
    const size_t count = u->uses.count;
    const use **head = orr_alloc(count + 1, sizeof *head);
    if (!head)
        return orr_no_memory(err);
    if (count)
        orr_sort(u->uses.at, count, sizeof *u->uses.at, use_order);
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || u->uses.at[i].ident != u->uses.at[i - 1].ident) &&
            !is_settled(b, u->uses.at[i].ident))
            head[heads++] = &u->uses.at[i];
    orr_sort(head, heads, sizeof *head, first_use_order);
    for (size_t i = 0; !code && i < heads; i++) {
        const use *first = head[i], *end = first;
        while (end < u->uses.at + count && end->ident == first->ident)
            end++;
        code = seat_users(b, first, (size_t)(end - first), err);
        if (!code)
            b->comms->all.at[b->comms->all.count - 1].is_inferred = true;
    }
    orr_free(head);
    return code;
}

/* ---- the log ---- */

static uint32_t lower_ident(const nccl_job *j, orr_str text)
{
    char lower[64];
    uint32_t number;
    if (text.len > sizeof lower)
        return ORR__NONE;
    for (size_t i = 0; i < text.len; i++)
        lower[i] =
            (char)(text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? text.ptr[i] + 32 : text.ptr[i]);
    return orr_intern_find(j->texts, (orr_str){.ptr = lower, .len = text.len}, &number) ? number
                                                                                        : ORR__NONE;
}

/* The last GPU that makes calls under this process number: logs do not name nodes as files do. */
static uint32_t gpu_of_pid(const nccl_job *j, uint32_t pid)
{
    for (size_t i = j->gpus.count; i-- > 0;)
        if (j->gpus.at[i].pid == pid && j->gpus.at[i].call_rows)
            return (uint32_t)i;
    return ORR__NONE;
}

static orr_code add_log_line(builder *b, const usage *u, const nccl_log_line *line, orr_error *err)
{
    const uint32_t gpu = gpu_of_pid(b->job, line->pid), ident = lower_ident(b->job, line->ident);
    if (gpu == ORR__NONE || ident == ORR__NONE || orr_map_find(u->channels, ident, 0) == 0)
        return ORR_OK;
    const orr_code code = add_entry(b, gpu, ident, line->rank, err);
    if (!code)
        b->comms->all.at[orr_map_find(b->comms->of_ident, ident, 0)].is_inferred = true;
    return code;
}

static orr_code read_log(builder *b, const usage *u, orr_error *err)
{
    const char *path = b->job->opt->log;
    orr_input *in;
    nccl_log_line line;
    if (!path)
        return ORR_OK;
    orr_code code = orr_input_open(path, &in, err);
    if (code)
        return code;
    const orr_span all = orr_input_bytes(in);
    nccl_log l = {
        .path = path, .at = (const char *)all.ptr, .end = (const char *)all.ptr + all.len};
    while ((code = nccl_log_next(&l, &line, err)) == ORR_OK)
        if ((code = add_log_line(b, u, &line, err)))
            break;
    orr_input_close(in);
    return code == ORR_END ? ORR_OK : code;
}

/* ---- plain rings and trees ---- */

/* Ranks without holes, and a ring and a tree on each channel: parent (r-1)/2, children 2r+1 and
 * 2r+2. */
static orr_code synthesise(builder *b, nccl_comm *comm, orr_error *err)
{
    nccl_comms *c = b->comms;
    const uint64_t n = comm->seats;
    for (uint32_t r = 0; r < comm->seats; r++) {
        nccl_seat *s = &c->seats.at[c->by_rank.at[comm->first_seat + r]];
        s->rank = r;
        s->first_ring = (uint32_t)c->rings.count;
        s->first_tree = (uint32_t)c->trees.count;
        s->ring_count = s->tree_count = comm->channels;
        const nccl_ring ring = {.previous = (r + n - 1) % n, .next = (r + 1) % n, .position = r};
        nccl_tree tree = {.parent = r ? (int64_t)(r - 1) / 2 : -1};
        for (uint64_t child = 2 * (uint64_t)r + 1; child <= 2 * (uint64_t)r + 2 && child < n;
             child++)
            tree.child[tree.children++] = child;
        for (uint32_t k = 0; k < comm->channels; k++)
            if (!KEEP(c->rings, ring) || !KEEP(c->trees, tree))
                return orr_no_memory(err);
    }
    return ORR_OK;
}

static orr_code synthesise_all(builder *b, const usage *u, orr_error *err)
{
    nccl_comms *c = b->comms;
    for (size_t k = 0; k < c->all.count; k++) {
        nccl_comm *comm = &c->all.at[k];
        if (!comm->is_inferred)
            continue;
        comm->channels = orr_map_find(u->channels, comm->ident, 1);
        const orr_code code = synthesise(b, comm, err);
        if (code)
            return code;
    }
    return ORR_OK;
}

/* ---- announced ones ---- */

/* node << 32 | hash -> communicator; the last announcement counts. */
static orr_map *comms_by_hash(const builder *b)
{
    const nccl_job *j = b->job;
    orr_map *m = orr_map_create(64);
    for (size_t i = 0; m && i < j->members.count; i++) {
        const nccl_member *x = &j->members.at[i];
        const uint64_t key = (uint64_t)j->gpus.at[x->gpu].node << 32 | x->hash;
        if (!orr_map_put(m, key, orr_map_find(b->comms->of_ident, x->ident, ORR__NONE), NULL)) {
            orr_map_destroy(m);
            return NULL;
        }
    }
    return m;
}

/* A row of topology with the seat it belongs to. */
typedef struct topology_row {
    uint32_t seat;
    const nccl_topology *row;
} topology_row;

static int place_order(const void *a, const void *b)
{
    const topology_row *x = a, *y = b;
    if (x->seat != y->seat)
        return x->seat < y->seat ? -1 : 1;
    if (x->row->channel != y->row->channel)
        return x->row->channel < y->row->channel ? -1 : 1;
    return x->row->order < y->row->order ? -1 : x->row->order > y->row->order;
}

static bool add_ring(nccl_comms *c, nccl_seat *s, const nccl_topology *row)
{
    if (s->ring_count++ == 0)
        s->first_ring = (uint32_t)c->rings.count;
    return KEEP(c->rings,
                (nccl_ring){.previous = row->previous, .next = row->next, .position = ORR__NONE});
}

static bool add_tree(nccl_comms *c, nccl_seat *s, const nccl_topology *row)
{
    nccl_tree t = {.parent = row->parent};
    for (int i = 0; i < 3; i++)
        if (row->child[i] >= 0)
            t.child[t.children++] = (uint64_t)row->child[i];
    if (s->tree_count++ == 0)
        s->first_tree = (uint32_t)c->trees.count;
    return KEEP(c->trees, t);
}

static orr_code add_topology(builder *b,
                             const orr_map *by_hash,
                             const nccl_topology *rows,
                             size_t count,
                             bool is_ring,
                             orr_error *err)
{
    nccl_comms *c = b->comms;
    size_t n = 0;
    orr_code code = ORR_OK;
    topology_row *places = orr_alloc(count + 1, sizeof *places);
    if (!places)
        return orr_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const uint64_t key = (uint64_t)rows[i].node << 32 | rows[i].hash;
        const uint32_t comm = orr_map_find(by_hash, key, ORR__NONE);
        const nccl_seat *s =
            comm == ORR__NONE ? NULL : nccl_comm_seat(c, &c->all.at[comm], rows[i].me);
        if (s)
            places[n++] = (topology_row){.seat = (uint32_t)(s - c->seats.at), .row = &rows[i]};
    }
    orr_sort(places, n, sizeof *places, place_order);
    for (size_t i = 0; i < n && !code; i++) {
        nccl_seat *s = &c->seats.at[places[i].seat];
        if (!(is_ring ? add_ring(c, s, places[i].row) : add_tree(c, s, places[i].row)))
            code = orr_no_memory(err);
    }
    orr_free(places);
    return code;
}

static orr_code add_announced(builder *b, orr_error *err)
{
    const nccl_job *j = b->job;
    for (size_t i = 0; i < j->members.count; i++) {
        const nccl_member *m = &j->members.at[i];
        const orr_code code = add_entry(b, m->gpu, m->ident, m->rank, err);
        if (code)
            return code;
        nccl_comm *comm = &b->comms->all.at[orr_map_find(b->comms->of_ident, m->ident, 0)];
        comm->ranks = m->ranks > comm->ranks ? m->ranks : comm->ranks;
    }
    return ORR_OK;
}

static orr_code add_topologies(builder *b, orr_error *err)
{
    const nccl_job *j = b->job;
    orr_map *by_hash = comms_by_hash(b);
    if (!by_hash)
        return orr_no_memory(err);
    orr_code code = add_topology(b, by_hash, j->rings.at, j->rings.count, true, err);
    if (!code)
        code = add_topology(b, by_hash, j->trees.at, j->trees.count, false, err);
    orr_map_destroy(by_hash);
    return code;
}

/* Places along the ring of a channel, from the lowest rank on.  Where the markers make no ring of
 * all ranks places stay ORR__NONE. */
static void walk_ring(const nccl_comms *c, const nccl_comm *comm, uint32_t channel)
{
    const nccl_seat *first = &c->seats.at[c->by_rank.at[comm->first_seat]], *s = first;
    for (uint32_t place = 0; place < comm->seats; place++) {
        if (!s || channel >= s->ring_count)
            return;
        nccl_ring *r = &c->rings.at[s->first_ring + channel];
        if (r->position != ORR__NONE)
            return;
        r->position = place;
        s = nccl_comm_seat(c, comm, r->next);
    }
}

static void walk_rings(const nccl_comms *c)
{
    for (size_t k = 0; k < c->all.count; k++) {
        const nccl_comm *comm = &c->all.at[k];
        const uint32_t channels =
            comm->seats ? c->seats.at[c->by_rank.at[comm->first_seat]].ring_count : 0;
        for (uint32_t channel = 0; channel < channels && !comm->is_inferred; channel++)
            walk_ring(c, comm, channel);
    }
}

/* ---- everything ---- */

/* Whether calls must be looked at: the old way only when nobody announced anything. */
static bool needs_usage(const nccl_job *j)
{
    return j->members.count == 0 || !j->rules->believes_announcements;
}

static orr_code build(builder *b, usage *u, orr_error *err)
{
    nccl_job *j = b->job;
    orr_code code = add_announced(b, err);
    for (uint32_t g = 0; !code && needs_usage(j) && g < j->gpus.count; g++)
        code = add_uses(b, u, g, err);
    if (!code && j->members.count == 0)
        code = read_log(b, u, err);
    if (!code && needs_usage(j))
        code = infer(b, u, err);
    if (!code)
        code = seat_all(b, err);
    if (!code)
        code = synthesise_all(b, u, err);
    if (!code)
        code = index_seats(b, err);
    if (!code)
        code = add_topologies(b, err);
    if (!code)
        walk_rings(b->comms);
    j->report->is_inferred = j->members.count == 0;
    j->report->communicators = (uint32_t)b->comms->all.count;
    j->report->ranks = (uint32_t)b->comms->ranked.count;
    return code;
}

orr_code nccl_comms_build(nccl_job *j, orr_error *err)
{
    builder b = {.job = j, .comms = &j->comms};
    usage u = {.seen = orr_map_create(64), .channels = orr_map_create(16)};
    j->comms.of_ident = orr_map_create(16);
    j->comms.seat_of = orr_map_create(64);
    const bool is_there = u.seen && u.channels && j->comms.of_ident && j->comms.seat_of;
    const orr_code code = is_there ? build(&b, &u, err) : orr_no_memory(err);
    orr_free(b.entries.at);
    orr_free(u.uses.at);
    orr_map_destroy(u.seen);
    orr_map_destroy(u.channels);
    return code;
}
