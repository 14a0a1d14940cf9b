/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_impl.h - internals of a simulation, for this folder and src/compat/loggopsim.
 *
 *     loggops.c                  the object, and our rules; equal ranks are simulated
 *                                once; why a run stalls
 *     lgs_body.h                 event handling, compiled once per set of rules
 *     lgs_queue.h, lgs_impl.h   the event queue, matching
 *     lgs_noise.c                interruptions
 *     lgs_parts.h, lgs_parts.c   ranks on several threads
 *
 * src/views/schedule_report.c writes the results, from the facts collected by
 * src/explain/schedule_facts.c. */
#ifndef ORR_SIMULATE_LGS_IMPL_H
#define ORR_SIMULATE_LGS_IMPL_H

#include "loggops.h"
#include <orrery/lab/progress.h>

#include <stdatomic.h>

#include "base/memory/buffer.h"
#include "base/memory/hash.h"
#include "lgs_queue.h"
#include "models/network/symmetry.h"
#include "trace/goal_impl.h"

/* ---- matching ----
 *
 * Receives that wait for their message, and messages that wait for their receive.
 *
 * Both wait in queues by (host, source, tag), found through one hash table; a queue never holds
 * both kinds, since they would have matched.  Schedules with wildcards, and runs that record queue
 * lengths, also keep everything that waits at a host in one list per kind, in order of arrival:
 * wildcards search there. Invariant: of several matches, the oldest is taken. Cost: a lookup,
 * independent of queue lengths; with a wildcard on the searching side a linear search. */

typedef struct lgs_key {
    uint32_t host, source, tag;
} lgs_key;

typedef enum lgs_side { LGS_RECEIVES = 0, LGS_MESSAGES = 1 } lgs_side;

typedef struct lgs_slot {
    lgs_key key;
    /* of a ring of events, so that last->next is the first; top bit set: messages; 0: empty */
    uint32_t last;
} lgs_slot;

typedef struct lgs_link {
    uint32_t next, previous;
} lgs_link;

typedef struct lgs_match {
    lgs_slot *slots;
    size_t slot_count, used;
    uint64_t arrivals;
    bool has_lists;
    lgs_link *links; /* by event */
    lgs_key *keys;   /* by event */
    size_t link_room, key_room;
    uint32_t *first[2], *last[2], *count[2]; /* by side and host */
} lgs_match;

bool lgs_match_init(lgs_match *m, uint32_t hosts, bool has_lists);
void lgs_match_fini(lgs_match *m);

/* Enqueues e.  False: out of memory. */
bool lgs_match_add(lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key, uint32_t e);
/* Removes and returns the first on that side with exactly this key; 0: none. */
uint32_t lgs_match_take(lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key);
/* The same, where ANY on either side matches everything.  *depth: number of entries examined (with
 * lists); of a failed search, the length of the list. */
uint32_t lgs_match_take_any(
    lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key, bool walks, uint32_t *depth);

static inline size_t lgs_match_place(const lgs_match *m, lgs_key k)
{
    const uint64_t h = orr_hash_mix((uint64_t)k.host << 32 | k.source, 0x9e3779b97f4a7c15u);
    return (size_t)orr_hash_mix(h ^ k.tag, 0xe7037ed1a0b428dbu) & (m->slot_count - 1);
}

/* ---- the simulation ---- */

/* An operation without pending dependencies. */
typedef struct lgs_ready {
    uint64_t at; /* when its last dependency was met */
    uint32_t node;
    uint32_t kind : 2;
    /* among those released by one event, before they are sorted; only in parts */
    uint32_t order : 30;
} lgs_ready;

enum { LGS_MOST_ORDER = (1 << 30) - 1 };

/* Those of one host, in order of release. */
typedef struct lgs_batch {
    uint32_t host;
    uint32_t count;
    lgs_ready *items;
    size_t room;
} lgs_batch;

/* Events that found the same clocks busy.  Only the first of them is in the queue; the others
 * follow one by one. If clocks never go back, the order is the same as if each were retried
 * individually, since events run by number; if they may go back, there are no groups. */
typedef struct lgs_busy {
    uint64_t first; /* the number of the one in the queue; UINT64_MAX: none */
    lgs_list waiting;
} lgs_busy;

struct lgs_noise;
struct lgs_part;
struct lgs_watch;

/* The last event at a host that represents others. */
typedef struct lgs_fold_touch {
    uint64_t time, place;
    bool is_own; /* by an event that the host issued itself */
} lgs_fold_touch;

/* A run in which hosts represent others.  The place of an event in the total order is kept as far
 * as it does not depend on the numbering of hosts: a smaller place comes first on all of them. */
typedef struct lgs_folding {
    net_symmetry symmetry;
    uint64_t *parents; /* by event: the place of its issuer */
    size_t parent_room;
    uint64_t place, last_time, last_parent;
    lgs_fold_touch *touches; /* by host */
    bool has_lost_order;
} lgs_folding;

/* Where simulators of LogGOPS differ.  Ours are lgs_own_rules; src/compat/loggopsim has those of
 * two programs. Rules that use lgs_body.h must be constants of the file that includes it: the
 * compiler specialises the engine for each of them, without run-time checks. */
typedef struct orr_rules_loggops {
    const char *name; /* after --compat, and in results */

    /* lgs_body.h, docs/spec/goal.md 3.3 */
    /* an operation starts no earlier than its dependencies ended; else when its own CPU and NIC are
     * free, which may be earlier */
    bool waits_for_release;
    /* a message of 0 bytes costs as much as one of 1; else minus one byte */
    bool empty_costs_a_byte;
    bool asks_the_sender;  /* a receive that finds its message uses size, CPU and NIC of the send;
                            * else its own */
    bool buffers_messages; /* an unexpected message is received by the CPU, then matched; else its
                            * time is lost */
    /* goal.md 3.4: order of equal operations released together; NULL: as released */
    bool (*order)(struct lgs_sim *s, lgs_batch *b); /* false: out of memory */

    bool is_folded; /* hosts represent others (loggops.c) */
    bool is_parted; /* other hosts are simulated by other threads (lgs_parts.c) */

    /* the object */
    bool keeps_release_times; /* with any number of CPUs (goal.md 3.3) */
    bool counts_all_edges;    /* a send may finish twice, if sender and receiver disagree about its
                              * size (goal.md 3.3); its successors are then counted down twice */
    bool explains_stall;      /* unfinished operations are an error; else a result */
    bool puts_off_singly;     /* events that find clocks busy are requeued one by one */
    bool repeats_last_noise;  /* the last interruption counts twice after a newline (goal.md 3.6) */
    bool skips_first_noise;   /* operations that start before it never see it (goal.md 3.6) */
    /* refuses unsupported options; or NULL */
    orr_code (*check)(const lgs_options *opt, orr_error *err);
    bool (*clocks_go_back)(const struct lgs_sim *s); /* NULL: they never do */
    /* Private state, in lgs_sim.extra.  NULL: none. */
    orr_code (*open)(struct lgs_sim *s, orr_error *err);
    void (*close)(struct lgs_sim *s);
    /* goal.md 3.5: a message leaves; when does it arrive, as far as known now?  NULL: no shared
     * links. */
    orr_code (*link_send)(struct lgs_sim *s,
                          uint64_t now,
                          uint32_t from,
                          uint32_t node,
                          const orr__goal_node *n,
                          orr_error *err);
    orr_code (*link_arrival)(struct lgs_sim *s,
                             uint64_t now,
                             uint32_t from,
                             uint32_t node,
                             uint64_t *out,
                             orr_error *err);
    orr_code (*run)(struct lgs_sim *s, orr_error *err);     /* until no event is left */
    void (*after_event)(struct lgs_sim *s, size_t pending); /* options.prints_progress */
    /* Additional results: a text or lines, and its key in JSON.  NULL: none. */
    const char *(*extra)(const struct lgs_sim *s, orr_buf *text, bool *is_list);
} lgs_rules;

extern const lgs_rules lgs_own_rules;

/* An output file of another program: "viz", "queues", "pairs", "log".  Defined in
 * src/compat/table.c; the last has no name. */
typedef struct lgs_writer {
    const char *name;
    orr_code (*write)(const struct lgs_sim *s, const char *path, orr_error *err);
} lgs_writer;
extern const lgs_writer *const lgs_old_writers;

struct lgs_sim {
    lgs_options opt;
    const lgs_rules *rules;
    const orr_goal *goal;
    const orr__goal_node *nodes;
    const orr__goal_rank *ranks;
    const uint32_t *edges;
    uint32_t hosts, cpus, nics;
    uint64_t G_whole; /* G, if it is an integer */
    bool is_G_whole;

    uint64_t *clocks; /* by host: when each CPU is free, each NIC to send, each NIC to receive */
    size_t stride;
    uint32_t *waits;    /* remaining dependencies, for operations with more than one */
    uint64_t *ready;    /* the latest dependency so far; NULL: not needed */
    uint64_t *finished; /* one bit per operation (lgs_finished_bit); NULL: not needed */
    lgs_batch batch[2]; /* an event touches at most two hosts */
    uint32_t batches;
    orr_buf sort_room;

    lgs_queue queue;
    lgs_match match;
    lgs_busy *busy; /* NULL: events are requeued one by one */

    uint64_t now;
    uint64_t events; /* numbers handed out */
    uint64_t messages, finished_count;
    uint64_t waiting;  /* events behind the leader of a busy group */
    uint64_t expected; /* total number of events of a complete run */
    double seconds;    /* run time of the simulation */
    bool has_failed;   /* out of memory, within a step */
    bool walks;        /* matching counts the entries it examines */
    bool has_wildcards;
    bool counts_all; /* copy of rules->counts_all_edges */
    bool has_started;
    /* must_stop is set for every kind of stop, so that the loop checks one flag. */
    bool is_counting; /* ... by a step or a limit: it ends when `most` events have run */
    uint64_t most;
    uint64_t left; /* of `events`, those pending when the run ended */
    /* Results have been copied to represented ranks: continuing means restarting. */
    bool is_spread;
    atomic_bool must_stop, must_end;
    bool was_stopped; /* the last run was stopped before its end */

    lgs_folding *folding; /* NULL: every host is simulated */
    uint32_t simulated;
    char fold_why[160];
    struct lgs_part *part;   /* NULL: this simulation has all hosts */
    unsigned threads;        /* that took part; 0: ranks were folded */
    const char *threads_why; /* why fewer than requested; NULL: as many */

    void *extra; /* of the rules */
    struct lgs_noise *noise;
    struct lgs_watch *watch; /* NULL: nothing is recorded */
    orr_buf stall_text;      /* why it stalls; the lines point into it */
    const char **stall_lines;
    size_t stall_count;
};

/* Numbered events that have not run.  One that finds its clocks busy keeps its number and is
 * retried: it has not run. */
static inline uint64_t lgs_pending(const lgs_sim *s)
{
    return s->queue.pending + s->waiting;
}

/* The requested number of events has run, and more are pending. */
static inline bool lgs_is_at_limit(const lgs_sim *s)
{
    return lgs_pending(s) && s->events - lgs_pending(s) >= s->most;
}

/* Checked before each event. */
static inline bool lgs_is_stopped(const lgs_sim *s)
{
    return atomic_load_explicit(&s->must_stop, memory_order_relaxed) &&
           (!s->is_counting || atomic_load_explicit(&s->must_end, memory_order_relaxed) ||
            lgs_is_at_limit(s));
}

/* ---- clocks */

static inline uint64_t *lgs_clocks(lgs_sim *s, uint32_t host)
{
    return s->clocks + (size_t)host * s->stride;
}

static inline uint64_t *lgs_cpu(lgs_sim *s, uint32_t host, uint8_t cpu)
{
    return lgs_clocks(s, host) + cpu;
}

static inline uint64_t *lgs_send_nic(lgs_sim *s, uint32_t host, uint8_t nic)
{
    return lgs_clocks(s, host) + s->cpus + nic;
}

static inline uint64_t *lgs_recv_nic(lgs_sim *s, uint32_t host, uint8_t nic)
{
    return lgs_clocks(s, host) + s->cpus + s->nics + nic;
}

static inline uint64_t lgs_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Rounded down; saturates. */
static inline uint64_t lgs_whole(double v)
{
    return v < 18446744073709551615.0 ? (uint64_t)v : UINT64_MAX;
}

static inline void lgs_raise(uint64_t *clock, uint64_t to)
{
    if (*clock < to)
        *clock = to;
}

static inline const orr__goal_node *lgs_node(const lgs_sim *s, uint32_t host, uint32_t node)
{
    return s->nodes + s->ranks[host].first_node + (node & ~(uint32_t)LGS_MESSAGE);
}

/* No two hosts share a word, so that different threads may write them. */
static inline uint64_t lgs_finished_bit(const lgs_sim *s, uint32_t host, uint32_t node)
{
    return s->ranks[host].first_node + (uint64_t)host * 64 + (node & ~(uint32_t)LGS_MESSAGE);
}

/* ---- hosts that represent others (loggops.c) */

/* An event touches a host.  Two in one tick must have different places, or both come from the host
 * itself, which issued them in order. */
static inline void lgs_fold_touch_host(lgs_sim *s, uint32_t host, bool is_own)
{
    lgs_folding *f = s->folding;
    lgs_fold_touch *t = &f->touches[host];
    if (t->time == s->now && t->place == f->place && !(t->is_own && is_own))
        f->has_lost_order = true;
    *t = (lgs_fold_touch){s->now, f->place, is_own};
}

/* Before an event. */
static inline void lgs_fold_begin(lgs_sim *s, uint32_t e)
{
    lgs_folding *f = s->folding;
    if (f->last_time != s->now || f->last_parent != f->parents[e]) {
        f->last_time = s->now;
        f->last_parent = f->parents[e];
        f->place++;
    }
}

/* An event is issued by the one that runs. */
static inline void lgs_fold_issue(lgs_sim *s, uint32_t e)
{
    lgs_folding *f = s->folding;
    if (orr_grow(&f->parents, &f->parent_room, (size_t)e + 1))
        f->parents[e] = f->place;
    else
        s->has_failed = true;
}

/* Runs on as many threads as requested, if that gives the same result and pays.  *is_done: to the
 * end, or until stopped; else one thread must do the rest. */
orr_code lgs_run_parts(lgs_sim *s, bool *is_done, orr_error *err);

/* ---- parts */

/* How a run ended: OK, the error reported by a part, or out of memory if none was reported. */
orr_code lgs_outcome(const lgs_sim *s, const orr_error *inner, orr_error *err);

orr_code lgs_noise_open(const lgs_sim *s, struct lgs_noise **out, orr_error *err);
void lgs_noise_close(struct lgs_noise *n);
uint64_t lgs_noise_get(struct lgs_noise *n, uint32_t host, uint64_t start, uint64_t length);
uint64_t lgs_noise_total(const struct lgs_noise *n, uint32_t host);
size_t lgs_noise_samples(const struct lgs_noise *n);
uint64_t lgs_noise_span(const struct lgs_noise *n);

static inline uint64_t lgs_noise(lgs_sim *s, uint32_t host, uint64_t start, uint64_t length)
{
    return s->noise ? lgs_noise_get(s->noise, host, start, length) : 0;
}

typedef enum lgs_span_kind {
    LGS_SPAN_CALC,
    LGS_SPAN_SEND,
    LGS_SPAN_RECV,
    LGS_SPAN_NOISE,
    LGS_SPAN_WIRE
} lgs_span_kind;

#define LGS_NO_NODE UINT32_MAX

/* An interval: where and when.  On the wire, cpu is unused and size is that of the message. */
typedef struct lgs_span {
    uint64_t start, end, size;
    uint32_t host, peer;
    uint32_t node;
    uint8_t kind, cpu;
} lgs_span;

/* One search in a queue: entries examined; of a failed one, the length. */
typedef struct lgs_search {
    uint64_t time;
    uint32_t host, depth;
    uint8_t side, is_hit;
} lgs_search;

typedef struct lgs_pair {
    uint32_t from, send, to, recv;
} lgs_pair;

typedef struct lgs_watch {
    lgs_span *spans;
    lgs_search *searches;
    lgs_pair *pairs;
    size_t span_count, span_room, search_count, search_room, pair_count, pair_room;
    uint32_t *longest[2]; /* by side and host */
    uint64_t *sent_at;    /* by send: its start */
} lgs_watch;

void lgs_watch_span(lgs_sim *s, const lgs_span *span);
void lgs_watch_length(lgs_sim *s, uint32_t host, lgs_side side);
void lgs_watch_search(
    lgs_sim *s, uint32_t host, lgs_side side, uint64_t time, bool is_hit, uint32_t depth);
void lgs_watch_pair(lgs_sim *s, const lgs_pair *pair);

/* ---- releasing: operations start and finish, which releases others */

/* An operation has one dependency fewer, and still waits (lgs_parts.c). */
void lgs_part_less(lgs_sim *s, const lgs_batch *b, uint64_t place);

/* The batch of a host touched by this event. */
static inline lgs_batch *lgs_touch(lgs_sim *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->batches; i++) {
        if (s->batch[i].host == host)
            return &s->batch[i];
    }
    lgs_batch *b = &s->batch[s->batches++];
    b->host = host;
    b->count = 0;
    return b;
}

static inline void lgs_release(lgs_sim *s, lgs_batch *b, uint32_t node, uint8_t kind, uint64_t at)
{
    if (b->count >= b->room && !orr_grow(&b->items, &b->room, (size_t)b->count + 1)) {
        s->has_failed = true;
        return;
    }
    b->items[b->count++] = (lgs_ready){.at = at, .node = node, .kind = kind & 3u};
}

/* One dependency fewer.  keeps: the time of the edge counts when the operation is released (later
 * edges may be earlier). */
static inline void lgs_unblock(lgs_sim *s, lgs_batch *b, uint32_t child, uint64_t at, bool keeps)
{
    const uint64_t place = s->ranks[b->host].first_node + child;
    const orr__goal_node *n = &s->nodes[place];
    if (n->waits > 1 || s->counts_all) {
        if (s->ready && keeps) {
            lgs_raise(&s->ready[place], at);
            at = s->ready[place];
        }
        if (--s->waits[place]) {
            if (s->part)
                lgs_part_less(s, b, place);
            return;
        }
    }
    lgs_release(s, b, child, n->kind, at);
}

/* An operation ends at `when`. */
static inline void lgs_finish(lgs_sim *s, uint32_t host, uint32_t node, uint64_t when)
{
    lgs_batch *b = lgs_touch(s, host);
    const orr__goal_node *n = lgs_node(s, host, node);
    const uint32_t *edges = s->edges + s->ranks[host].first_edge;
    if (s->finished) {
        const uint64_t place = lgs_finished_bit(s, host, node);
        s->finished[place / 64] |= (uint64_t)1 << (place % 64);
    }
    s->finished_count++;
    for (uint32_t i = n->then; i < n->started; i++)
        lgs_unblock(s, b, edges[i], when, true);
}

/* An operation starts at `when`.  Edges from a start carry no time in ATLAHS (goal.md 3.3). */
static inline void lgs_start(lgs_sim *s, uint32_t host, uint32_t node, uint64_t when, bool keeps)
{
    lgs_batch *b = lgs_touch(s, host);
    const orr__goal_node *n = lgs_node(s, host, node);
    const uint32_t *edges = s->edges + s->ranks[host].first_edge;
    for (uint32_t i = n->started; i < n[1].then; i++)
        lgs_unblock(s, b, edges[i], when, keeps);
}

#endif
