/* SPDX-License-Identifier: Apache-2.0 */
/* link_align.c - pairs host nodes and operators by name, for traces without record-function ids.
 *
 * Profilers before 2024 did not write them.  Both traces have the operators of a thread in order of
 * start, outer before inner; but either may lack a few:
 *
 *     host      step  linear  t  addmm  relu  ...        ids ascend
 *     device          linear  t  addmm  relu  ...        in time order; "step" is skipped
 *
 * So the two sequences of a thread are aligned: the longest common subsequence, by Myers' O(ND)
 * algorithm.  If they differ in more than EDITS places they are cut at runs of names that are
 * unique in both (anchors), and the rest is matched greedily with a short lookahead.
 *
 * Old clocks have whole microseconds, so operators often start together.  Then either the file has
 * them in order, or the longer one is the caller; the order that fits the host better is used, and
 * kept.  Unpaired operators are then paired below operators that have a partner.
 *
 * Threads are paired by the names they have in common.
 * Cost: linear in the sequences, times EDITS at most where they differ. */
#include "link_impl.h"

#include "base/arithmetic.h"
#include "base/memory/hash.h"
#include "base/memory/sort.h"

#include <stdlib.h>

enum { EDITS = 512, REACH = 32, LEVELS = 3, NO_TOKEN = UINT32_MAX, PAIRS_MAX = 1 << 20 };

/* ==== two sequences ==== */

typedef struct rows {
    const uint32_t *a, *b;
    uint32_t *partner; /* of a: index in b, or LINK_NONE */
    uint32_t *trace;   /* of Myers: how far each diagonal reached, per number of edits */
    size_t trace_room;
    bool failed; /* out of memory */
} rows;

/* A part of both: a[a0 .. a1), b[b0 .. b1). */
typedef struct part {
    uint32_t a0, a1, b0, b1;
} part;

/* Names missing from the other trace are NO_TOKEN on both sides and never match, not even each
 * other. */
static bool is_same(const rows *r, uint32_t i, uint32_t k)
{
    return r->a[i] == r->b[k] && r->a[i] != NO_TOKEN;
}

static void pair(rows *r, uint32_t i, uint32_t k)
{
    r->partner[i] = k;
}

/* ---- Myers: the fewest edits from a to b ----
 *
 * Diagonal k holds the places x of a and x - k of b.  far(d, k) is the largest x that d edits reach
 * on it; only every other diagonal is reached, -d, -d + 2, ... d. */

enum { NOT_REACHED = UINT32_MAX };

/* A triangle: after d edits there are d + 1 diagonals. All rounds are kept, 2^17 entries for EDITS,
 * because backtracking needs them. */
static uint32_t *far(const rows *r, int64_t d, int64_t k)
{
    return &r->trace[d * (d + 1) / 2 + (k + d) / 2];
}

static uint32_t far_before(const rows *r, int64_t d, int64_t k)
{
    return k < -d || k > d ? NOT_REACHED : *far(r, d, k);
}

/* Where diagonal k is entered with edit d, from one of its neighbours: `is_down` skips an entry of
 * b. */
static uint32_t enter(const rows *r, const part *p, int64_t d, int64_t k, bool *is_down)
{
    const int64_t n = p->a1 - p->a0, m = p->b1 - p->b0;
    const uint32_t above = far_before(r, d - 1, k + 1), left = far_before(r, d - 1, k - 1);
    const bool can_down = above != NOT_REACHED && above - (k + 1) < m;
    const bool can_right = left != NOT_REACHED && left < n;
    *is_down = can_down && (!can_right || above > left);
    return *is_down ? above : can_right ? left + 1 : NOT_REACHED;
}

/* Follows matching entries, which cost nothing. On traces of the same run nearly all time is spent
 * in this loop. */
static uint32_t slide(const rows *r, const part *p, uint32_t x, int64_t k)
{
    while (p->a0 + x < p->a1 && (int64_t)p->b0 + x - k < p->b1 &&
           is_same(r, p->a0 + x, (uint32_t)(p->b0 + x - k)))
        x++;
    return x;
}

/* Backtracks from the far corner: the neighbour each diagonal was entered from is recomputed, since
 * storing it would double the memory and it is just a comparison. */
static void walk_back(rows *r, const part *p, int64_t d)
{
    int64_t x = p->a1 - p->a0, y = p->b1 - p->b0;
    for (; d >= 0; d--) {
        const int64_t k = x - y;
        bool is_down = false;
        const int64_t from = d ? enter(r, p, d, k, &is_down) : 0;
        for (; x > from; x--, y--)
            pair(r, (uint32_t)(p->a0 + x - 1), (uint32_t)(p->b0 + y - 1));
        if (is_down)
            y--;
        else
            x--;
    }
}

/* False: more than EDITS, or out of memory. Time and memory are quadratic in the edits. Sequences
 * of one run differ in a few dozen places (annotations, operators of the profiler itself); more
 * than EDITS means that parts are missing, which anchors handle better. */
static bool align_closely(rows *r, const part *p)
{
    const int64_t n = p->a1 - p->a0, m = p->b1 - p->b0;
    for (int64_t d = 0; d <= EDITS; d++) {
        if (!orr_grow(&r->trace, &r->trace_room, (size_t)((d + 1) * (d + 2) / 2))) {
            r->failed = true;
            return false;
        }
        for (int64_t k = -d; k <= d; k += 2) {
            bool is_down;
            const uint32_t x = d ? enter(r, p, d, k, &is_down) : 0;
            *far(r, d, k) = x == NOT_REACHED ? x : slide(r, p, x, k);
            if (k == n - m && *far(r, d, k) == n) {
                walk_back(r, p, d);
                return true;
            }
        }
    }
    return false;
}

/* ---- greedy, with lookahead ---- */

/* Advances to the nearest matching entries, by the total number skipped in both. The last resort,
 * if names repeat so much that nothing is unique. Nearest first keeps a mismatch local: the
 * sequences resynchronise after it. */
static bool look_ahead(const rows *r, const part *p, uint32_t *i, uint32_t *k)
{
    for (uint32_t sum = 0; sum <= REACH; sum++) {
        for (uint32_t di = 0; di <= sum; di++) {
            if (di >= p->a1 - *i || sum - di >= p->b1 - *k || !is_same(r, *i + di, *k + sum - di))
                continue;
            *i += di;
            *k += sum - di;
            return true;
        }
    }
    return false;
}

static void align_in_step(rows *r, const part *p)
{
    for (uint32_t i = p->a0, k = p->b0; i < p->a1 && k < p->b1; i++, k++) {
        if (look_ahead(r, p, &i, &k))
            pair(r, i, k);
    }
}

/* ---- anchors: runs of names that occur once in each ---- */

typedef struct anchor {
    uint32_t i, k;
    uint32_t before; /* its predecessor in the best chain that ends here */
} anchor;

/* How long a run must be; shorter ones are tried inside. */
static const uint32_t run_of_level[LEVELS] = {12, 5, 2};

/* Runs are compared by hash alone. A collision makes at most one anchor wrong, and is_same of its
 * first name catches nearly all of those. */
static uint64_t run_key(const uint32_t *row, uint32_t length)
{
    return orr_hash_bytes(row, length * sizeof *row, 0);
}

/* Positions of runs that occur once in a sequence; the others have LINK_NONE. */
static orr_map *map_runs(const uint32_t *row, uint32_t from, uint32_t to, uint32_t length)
{
    orr_map *m = orr_map_create(to - from);
    for (uint32_t i = from; m && i + length <= to; i++) {
        const uint64_t key = run_key(row + i, length);
        const bool is_known = orr_map_find(m, key, LINK_NONE - 1) != LINK_NONE - 1;
        if (!orr_map_put(m, key, is_known ? LINK_NONE : i, NULL)) {
            orr_map_destroy(m);
            return NULL;
        }
    }
    return m;
}

static uint32_t list_anchors(rows *r, const part *p, uint32_t length, anchor *out)
{
    orr_map *in_a = map_runs(r->a, p->a0, p->a1, length);
    orr_map *in_b = map_runs(r->b, p->b0, p->b1, length);
    uint32_t n = 0;
    r->failed |= !in_a || !in_b;
    for (uint32_t i = p->a0; !r->failed && i + length <= p->a1; i++) {
        const uint64_t key = run_key(r->a + i, length);
        const uint32_t k = orr_map_find(in_b, key, LINK_NONE);
        if (k != LINK_NONE && orr_map_find(in_a, key, LINK_NONE) == i && is_same(r, i, k))
            out[n++] = (anchor){i, k, LINK_NONE};
    }
    orr_map_destroy(in_a);
    orr_map_destroy(in_b);
    return n;
}

/* The longest chain of anchors ascending in both, linked backwards; returns its end. tail[t]: the
 * anchor with the smallest k that ends an ascending chain of t + 1. Patience sorting: anchors are
 * in the order of a, so the longest increasing subsequence of their positions in b is the longest
 * common one. Other anchors are repetitions that moved. */
static uint32_t chain_anchors(anchor *list, uint32_t n, uint32_t *tail)
{
    uint32_t longest = 0;
    for (uint32_t c = 0; c < n; c++) {
        uint32_t low = 0, high = longest;
        while (low < high) {
            const uint32_t mid = low + (high - low) / 2;
            if (list[tail[mid]].k < list[c].k)
                low = mid + 1;
            else
                high = mid;
        }
        list[c].before = low ? tail[low - 1] : LINK_NONE;
        tail[low] = c;
        longest = low == longest ? longest + 1 : longest;
    }
    return longest ? tail[longest - 1] : LINK_NONE;
}

static void align_part(rows *r, part p, int level);

/* False: there are no anchors. */
static bool align_between(rows *r, const part *p, int level)
{
    anchor *list = orr_alloc((size_t)(p->a1 - p->a0) + 1, sizeof *list);
    uint32_t *tail = orr_alloc((size_t)(p->a1 - p->a0) + 1, sizeof *tail);
    r->failed |= !list || !tail;
    const uint32_t n = r->failed ? 0 : list_anchors(r, p, run_of_level[level], list);
    uint32_t at = r->failed ? LINK_NONE : chain_anchors(list, n, tail);
    const bool has_any = at != LINK_NONE;
    part rest = *p;
    for (; at != LINK_NONE && !r->failed; at = list[at].before) {
        const anchor *x = &list[at];
        pair(r, x->i, x->k);
        align_part(r, (part){x->i + 1, rest.a1, x->k + 1, rest.b1}, level + 1);
        rest.a1 = x->i;
        rest.b1 = x->k;
    }
    if (has_any && !r->failed)
        align_part(r, rest, level + 1);
    orr_free(list);
    orr_free(tail);
    return has_any;
}

/* Equal prefixes and suffixes are matched first: most parts between anchors are entirely equal and
 * never reach Myers. */
static void align_part(rows *r, part p, int level)
{
    while (p.a0 < p.a1 && p.b0 < p.b1 && is_same(r, p.a0, p.b0))
        pair(r, p.a0++, p.b0++);
    while (p.a0 < p.a1 && p.b0 < p.b1 && is_same(r, p.a1 - 1, p.b1 - 1))
        pair(r, --p.a1, --p.b1);
    if (p.a0 == p.a1 || p.b0 == p.b1 || align_closely(r, &p) || r->failed)
        return;
    if (level >= LEVELS || !align_between(r, &p, level))
        align_in_step(r, &p);
}

orr_code link_align_rows(
    const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m, uint32_t *partner, orr_error *err)
{
    rows r = {.a = a, .b = b, .partner = partner};
    for (uint32_t i = 0; i < n; i++)
        partner[i] = LINK_NONE;
    align_part(&r, (part){0, n, 0, m}, 0);
    orr_free(r.trace);
    return r.failed ? orr_no_memory(err) : ORR_OK;
}

/* ==== threads ==== */

typedef struct aligner {
    orr_link *l;
    const link_names *in;
    uint32_t *token_of_host, *token_of_op; /* one number for each name; NO_TOKEN: no operator */
    uint32_t tokens;
    link_lists hosts; /* by host thread: nodes by ascending id */
    uint32_t host_threads;
    uint32_t *row_a, *row_b, *order, *partner[2]; /* room for one thread */
} aligner;

/* Names of threads, processes etc. are in brackets; the device trace has none of them. */
static bool is_operator(const linked_node *n)
{
    return n->kind == LINKED_ON_HOST && n->name.len && n->name.ptr[0] != '[';
}

/* Names become numbers once, so that aligning compares numbers: sequences are traversed many
 * times. */
static orr_code number_names(aligner *x, orr_error *err)
{
    const orr_linked *d = x->l->linked;
    orr_intern *names = orr_intern_create();
    bool has_room = names;
    for (size_t h = 0; has_room && h < d->node_count; h++) {
        x->token_of_host[h] = NO_TOKEN;
        if (is_operator(&d->nodes[h]))
            has_room = orr_intern_add(names, d->nodes[h].name, &x->token_of_host[h]);
    }
    for (uint32_t op = 0; has_room && op < x->l->ops.count; op++) {
        if (!orr_intern_find(names, link_name(x->l, link_op(x->l, op)), &x->token_of_op[op]))
            x->token_of_op[op] = NO_TOKEN;
    }
    x->tokens = has_room ? orr_intern_count(names) : 0;
    orr_intern_destroy(names);
    return has_room ? ORR_OK : orr_no_memory(err);
}

/* Host threads in order of their first node. */
static orr_code list_hosts(aligner *x, orr_error *err)
{
    const orr_linked *d = x->l->linked;
    orr_map *threads = orr_map_create(16);
    link_pairs pairs = {0};
    bool has_room = threads;
    for (size_t i = 0; has_room && i < d->node_count; i++) {
        const uint32_t h = x->in->by_id[i];
        if (x->token_of_host[h] == NO_TOKEN)
            continue;
        const uint64_t tid = (uint64_t)d->nodes[h].tid;
        const uint32_t known = orr_map_find(threads, tid, LINK_NONE);
        const uint32_t thread = known == LINK_NONE ? x->host_threads++ : known;
        has_room = (known != LINK_NONE || orr_map_put(threads, tid, thread, NULL)) &&
                   link_pairs_add(&pairs, thread, h);
    }
    orr_map_destroy(threads);
    if (has_room)
        return link_pairs_take(&pairs, x->host_threads, x->l->arena, &x->hosts, err);
    orr_free(pairs.pairs);
    return orr_no_memory(err);
}

/* ---- pairing of threads ---- */

typedef struct thread_pair {
    uint32_t host, device;
    uint32_t common; /* names, as often as both have them */
} thread_pair;

static int by_common(const void *a, const void *b)
{
    const thread_pair *x = a, *y = b;
    if (x->common != y->common)
        return x->common > y->common ? -1 : 1;
    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return x->device < y->device ? -1 : x->device > y->device;
}

/* Adds the number of occurrences of each name in a thread to n; or resets them to 0. */
static void count_tokens(
    const link_lists *by, uint32_t thread, const uint32_t *token_of, uint32_t *n, bool clears)
{
    for (uint32_t i = by->first[thread]; i < by->first[thread + 1]; i++) {
        const uint32_t token = token_of[by->list[i]];
        if (token != NO_TOKEN)
            n[token] = clears ? 0 : n[token] + 1;
    }
}

/* The multiset intersection, or a thread with a thousand views would win against the one with the
 * same ten layers. */
static uint32_t count_common(const aligner *x,
                             uint32_t device,
                             const uint32_t *in_host,
                             uint32_t *in_device)
{
    const link_lists *by = &x->l->ops.by_thread;
    uint32_t common = 0;
    for (uint32_t i = by->first[device]; i < by->first[device + 1]; i++) {
        const uint32_t token = x->token_of_op[by->list[i]];
        if (token != NO_TOKEN && in_device[token]++ < in_host[token])
            common++;
    }
    count_tokens(by, device, x->token_of_op, in_device, true);
    return common;
}

/* All pairs, those with the most in common first; NULL: out of memory. Thread numbers are not
 * comparable: the host numbers threads consecutively, the device has the system's ids. What they
 * ran is comparable. */
static thread_pair *rank_pairs(const aligner *x, size_t *count)
{
    const uint32_t devices = x->l->ops.thread_count;
    thread_pair *list = orr_alloc((size_t)x->host_threads * devices + 1, sizeof *list);
    uint32_t *in_host = orr_alloc((size_t)x->tokens + 1, sizeof *in_host);
    uint32_t *in_device = orr_alloc((size_t)x->tokens + 1, sizeof *in_device);
    *count = 0;
    for (uint32_t h = 0; list && in_host && in_device && h < x->host_threads; h++) {
        count_tokens(&x->hosts, h, x->token_of_host, in_host, false);
        for (uint32_t d = 0; d < devices; d++)
            list[(*count)++] = (thread_pair){h, d, count_common(x, d, in_host, in_device)};
        count_tokens(&x->hosts, h, x->token_of_host, in_host, true);
    }
    const bool has_room = list && in_host && in_device;
    orr_free(in_host);
    orr_free(in_device);
    if (!has_room) {
        orr_free(list);
        return NULL;
    }
    orr_sort(list, *count, sizeof *list, by_common);
    return list;
}

/* ---- one thread ---- */

static uint32_t count_partners(const uint32_t *partner, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += partner[i] != LINK_NONE;
    return count;
}

static orr_code align_order(
    aligner *x, uint32_t n, const uint32_t *ops, uint32_t m, uint32_t *partner, orr_error *err)
{
    for (uint32_t k = 0; k < m; k++)
        x->row_b[k] = x->token_of_op[ops[k]];
    return link_align_rows(x->row_a, n, x->row_b, m, partner, err);
}

/* Operators are numbered in the order of time, and in that of the file where they start
 * together. */
static orr_code align_threads(aligner *x, const thread_pair *p, orr_error *err)
{
    const link_lists *by = &x->l->ops.by_thread;
    const uint32_t *hosts = x->hosts.list + x->hosts.first[p->host];
    uint32_t *ops = by->list + by->first[p->device];
    const uint32_t n = x->hosts.first[p->host + 1] - x->hosts.first[p->host];
    const uint32_t m = by->first[p->device + 1] - by->first[p->device];
    for (uint32_t i = 0; i < n; i++)
        x->row_a[i] = x->token_of_host[hosts[i]];
    memcpy(x->order, ops, m * sizeof *ops);
    orr_sort(x->order, m, sizeof *x->order, orr_by_u32);
    orr_code code = align_order(x, n, ops, m, x->partner[0], err);
    if (!code && memcmp(x->order, ops, m * sizeof *ops) != 0)
        code = align_order(x, n, x->order, m, x->partner[1], err);
    else
        memcpy(x->partner[1], x->partner[0], n * sizeof *x->partner[0]);
    if (code)
        return code;
    const bool file_is_better = count_partners(x->partner[1], n) > count_partners(x->partner[0], n);
    const uint32_t *partner = x->partner[file_is_better];
    if (file_is_better)
        memcpy(ops, x->order, m * sizeof *ops);
    for (uint32_t i = 0; i < n; i++) {
        if (partner[i] == LINK_NONE)
            continue;
        x->in->op_of[hosts[i]] = ops[partner[i]];
        x->in->host_of[ops[partner[i]]] = hosts[i];
    }
    return ORR_OK;
}

/* Too many threads for all pairs are matched in order of their start: programs that start a thread
 * per task, where comparing all pairs would take longer than reading the files. */
static orr_code align_in_turn(aligner *x, orr_error *err)
{
    orr_code code = ORR_OK;
    for (uint32_t t = 0; !code && t < x->host_threads && t < x->l->ops.thread_count; t++)
        code = align_threads(x, &(thread_pair){t, t, 0}, err);
    return code;
}

/* Best pair first, each thread once. A thread without a partner keeps its nodes, without times. */
static orr_code align_all(aligner *x, orr_error *err)
{
    size_t count;
    orr_code code = ORR_OK;
    if ((uint64_t)x->host_threads * x->l->ops.thread_count > PAIRS_MAX)
        return align_in_turn(x, err);
    thread_pair *list = rank_pairs(x, &count);
    bool *host_taken = orr_alloc((size_t)x->host_threads + 1, sizeof *host_taken);
    bool *device_taken = orr_alloc((size_t)x->l->ops.thread_count + 1, sizeof *device_taken);
    if (!list || !host_taken || !device_taken)
        code = orr_no_memory(err);
    for (size_t i = 0; !code && i < count && list[i].common; i++) {
        if (host_taken[list[i].host] || device_taken[list[i].device])
            continue;
        host_taken[list[i].host] = device_taken[list[i].device] = true;
        code = align_threads(x, &list[i], err);
    }
    orr_free(list);
    orr_free(host_taken);
    orr_free(device_taken);
    return code;
}

/* ---- the rest, below paired operators ---- */

/* The host's parent of an operator counts where the clock permits. By name two sequences may be
 * aligned correctly and still nest wrongly, because whole microseconds make parent and child
 * indistinguishable: the host knows the call stack. */
static uint32_t host_parent(const aligner *x, uint32_t op)
{
    const uint32_t h = x->in->host_of[op];
    if (h == LINK_NONE)
        return LINK_NONE;
    const uint32_t up = orr_map_find(x->in->host_by_id, x->l->linked->nodes[h].parent, LINK_NONE);
    const uint32_t parent = up == LINK_NONE || up == h ? LINK_NONE : x->in->op_of[up];
    if (parent == LINK_NONE)
        return LINK_NONE;
    const kin_event *in = link_op(x->l, op), *out = link_op(x->l, parent);
    return in->tid == out->tid && out->ts <= in->ts && kin_end(out) >= in->ts ? parent : LINK_NONE;
}

/* Called twice: first so that pair_below knows callers, then again for those it has just paired. */
static void nest_thread(const aligner *x, uint32_t tid, uint8_t *is_placed)
{
    const link_lists *by = &x->l->ops.by_thread;
    uint32_t *parent_op = x->in->parent_op, top = LINK_NONE;
    for (uint32_t i = by->first[tid]; i < by->first[tid + 1]; i++) {
        const uint32_t op = by->list[i], said = host_parent(x, op);
        while (top != LINK_NONE && kin_end(link_op(x->l, top)) < kin_end(link_op(x->l, op)))
            top = parent_op[top];
        parent_op[op] = said != LINK_NONE && is_placed[said] ? said : top;
        is_placed[op] = 1;
        top = op;
    }
}

/* Nodes below the same operator with the same name are paired in order. Alignment works on the
 * sequence of a thread; an operator that the profiler shows out of order (an autograd function that
 * ends late) is missed there, but its caller is not. */
static orr_code pair_below(aligner *x, orr_error *err)
{
    const link_names *in = x->in;
    const uint32_t n = x->l->ops.count;
    orr_map *waiting = orr_map_create(64); /* parent and name -> operator */
    uint32_t *next = orr_alloc((size_t)n + 1, sizeof *next);
    bool has_room = waiting && next;
    for (uint32_t op = n; has_room && op-- > 0;) {
        if (in->host_of[op] != LINK_NONE || in->parent_op[op] == LINK_NONE ||
            x->token_of_op[op] == NO_TOKEN)
            continue;
        const uint64_t key = (uint64_t)in->parent_op[op] << 32 | x->token_of_op[op];
        next[op] = orr_map_find(waiting, key, LINK_NONE);
        has_room = orr_map_put(waiting, key, op, NULL);
    }
    for (size_t i = 0; has_room && i < x->l->linked->node_count; i++) {
        const uint32_t h = in->by_id[i];
        if (in->op_of[h] != LINK_NONE || x->token_of_host[h] == NO_TOKEN)
            continue;
        const uint32_t up = orr_map_find(in->host_by_id, x->l->linked->nodes[h].parent, LINK_NONE);
        if (up == LINK_NONE || in->op_of[up] == LINK_NONE)
            continue;
        const uint64_t key = (uint64_t)in->op_of[up] << 32 | x->token_of_host[h];
        const uint32_t op = orr_map_find(waiting, key, LINK_NONE);
        if (op == LINK_NONE)
            continue;
        in->op_of[h] = op;
        in->host_of[op] = h;
        has_room = orr_map_put(waiting, key, next[op], NULL);
    }
    orr_map_destroy(waiting);
    orr_free(next);
    return has_room ? ORR_OK : orr_no_memory(err);
}

static orr_code nest_all(const aligner *x, orr_error *err)
{
    uint8_t *is_placed = orr_alloc((size_t)x->l->ops.count + 1, 1);
    for (uint32_t tid = 0; is_placed && tid < x->l->ops.thread_count; tid++)
        nest_thread(x, tid, is_placed);
    const bool has_room = is_placed;
    orr_free(is_placed);
    return has_room ? ORR_OK : orr_no_memory(err);
}

static orr_code make_room(aligner *x, orr_error *err)
{
    orr_arena *a = x->l->arena;
    const size_t hosts = x->l->linked->node_count + 1, ops = (size_t)x->l->ops.count + 1;
    x->token_of_host = orr_arena_new(a, hosts, uint32_t);
    x->token_of_op = orr_arena_new(a, ops, uint32_t);
    x->row_a = orr_arena_new(a, hosts, uint32_t);
    x->row_b = orr_arena_new(a, ops, uint32_t);
    x->order = orr_arena_new(a, ops, uint32_t);
    x->partner[0] = orr_arena_new(a, hosts, uint32_t);
    x->partner[1] = orr_arena_new(a, hosts, uint32_t);
    return x->token_of_host && x->token_of_op && x->row_a && x->row_b && x->order &&
                   x->partner[0] && x->partner[1]
               ? ORR_OK
               : orr_no_memory(err);
}

orr_code link_match_names(orr_link *l, const link_names *in, orr_error *err)
{
    aligner x = {.l = l, .in = in};
    orr_code code;
    if ((code = make_room(&x, err)) || (code = number_names(&x, err)) ||
        (code = list_hosts(&x, err)) || (code = align_all(&x, err)) || (code = nest_all(&x, err)) ||
        (code = pair_below(&x, err)))
        return code;
    return nest_all(&x, err);
}
