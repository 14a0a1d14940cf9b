/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_impl.h - a simulation from the inside, for the files of this folder.
 *
 *     lgs_rules.c     ours and LogGOPSim's of 2023     \
 *     lgs_atlahs.c    the LogGOPSim of ATLAHS           >  what happens at an event
 *     lgs_step.h      releasing, what both share       /
 *     lgs_queue.h, lgs_match.h                             which event is next, who meets whom
 *     lgs_noise.c, lgs_links.c                             interruptions, a network of shared links
 *     lgs_watch.c, lgs_stall.c, lgs_report*.c              what is kept and said of a run */
#ifndef ORR_SIMULATE_LGS_IMPL_H
#define ORR_SIMULATE_LGS_IMPL_H

#include <orrery/loggops.h>
#include <orrery/progress.h>

#include "base/memory/buffer.h"
#include "lgs_match.h"
#include "lgs_queue.h"
#include "trace/goal_impl.h"

/* An operation that nothing holds back any more. */
typedef struct lgs_ready {
    uint64_t at; /* when the last that it waited for let it go */
    uint32_t node;
    uint8_t kind;
} lgs_ready;

/* Those of one host, in the order of release. */
typedef struct lgs_batch {
    uint32_t host;
    uint32_t count;
    lgs_ready *items;
    size_t room;
} lgs_batch;

/* Events that found the same clocks busy.  Only the first of them is in the queue; the others follow one by one.
 * Where clocks never go back, since events leave by number, nothing happens in another order than if each were put
 * off by itself, again and again; where they do, there are no groups. */
typedef struct lgs_busy {
    uint64_t first; /* the number of the one that is in the queue; UINT64_MAX: none */
    lgs_list waiting;
} lgs_busy;

struct lgs_noise;
struct lgs_links;
struct lgs_watch;

struct orr_loggops {
    orr_loggops_options opt;
    const orr_goal *goal;
    const orr__goal_node *nodes;
    const orr__goal_rank *ranks;
    const uint32_t *edges;
    uint32_t hosts, cpus, nics;
    uint64_t G_whole; /* G, when it is a whole number */
    bool is_G_whole;

    uint64_t *clocks; /* by host: when each CPU is free, each NIC to send, each NIC to receive */
    size_t stride;
    uint32_t *waits;    /* edges still to come, for operations with more than one */
    uint64_t *ready;    /* the latest of those that came; NULL: not needed */
    uint64_t *finished; /* one bit an operation; NULL: not needed */
    lgs_batch batch[2]; /* at most two hosts are touched by an event */
    uint32_t batches;
    orr_buf sort_room;

    lgs_queue queue;
    lgs_heap heap; /* ATLAHS */
    lgs_match match;
    lgs_busy *busy; /* NULL: events are put off one by one */

    uint64_t now;
    uint64_t events; /* numbers handed out */
    uint64_t messages, finished_count;
    uint64_t waiting;  /* events behind others in a busy group */
    uint32_t percent;  /* lines of progress so far */
    uint64_t expected; /* events, when everything happens */
    double flow_sum;   /* ATLAHS: for its mean flow completion time */
    bool has_failed;   /* out of memory, within a step */
    bool walks;        /* matching counts what it looks at */
    bool has_wildcards;
    bool counts_all; /* edges to operations with one only are counted too */
    volatile int is_stopped;

    struct lgs_noise *noise;
    struct lgs_links *links;
    struct lgs_watch *watch; /* NULL: nothing is kept */
    orr_buf talk;            /* lines for standard output */
    orr_buf stall_text;      /* why it stands still; the lines point into it */
    const char **stall_lines;
    size_t stall_count;
};

/* ---- clocks */

static inline uint64_t *lgs_clocks(orr_loggops *s, uint32_t host)
{
    return s->clocks + (size_t)host * s->stride;
}

static inline uint64_t *lgs_cpu(orr_loggops *s, uint32_t host, uint8_t cpu)
{
    return lgs_clocks(s, host) + cpu;
}

static inline uint64_t *lgs_send_nic(orr_loggops *s, uint32_t host, uint8_t nic)
{
    return lgs_clocks(s, host) + s->cpus + nic;
}

static inline uint64_t *lgs_recv_nic(orr_loggops *s, uint32_t host, uint8_t nic)
{
    return lgs_clocks(s, host) + s->cpus + s->nics + nic;
}

static inline uint64_t lgs_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Rounded down; what is too large becomes the largest number. */
static inline uint64_t lgs_whole(double v)
{
    return v < 18446744073709551615.0 ? (uint64_t)v : UINT64_MAX;
}

static inline void lgs_raise(uint64_t *clock, uint64_t to)
{
    if (*clock < to)
        *clock = to;
}

static inline const orr__goal_node *lgs_node(const orr_loggops *s, uint32_t host, uint32_t node)
{
    return s->nodes + s->ranks[host].first_node + (node & ~(uint32_t)LGS_MESSAGE);
}

/* ---- parts */

orr_code orr__lgs_run_rules(orr_loggops *s, orr_error *err); /* ours, LGS2023 */
orr_code orr__lgs_run_atlahs(orr_loggops *s, orr_error *err);
/* How a run ended: OK, the error a part of it reported, or no memory where nothing was reported. */
orr_code orr__lgs_outcome(const orr_loggops *s, const orr_error *inner, orr_error *err);
void orr__lgs_print_progress(orr_loggops *s, size_t pending); /* a line for each percent */

orr_code orr__lgs_noise_open(const orr_loggops *s, struct lgs_noise **out, orr_error *err);
void orr__lgs_noise_close(struct lgs_noise *n);
uint64_t orr__lgs_noise_get(struct lgs_noise *n, uint32_t host, uint64_t start, uint64_t length);
uint64_t orr__lgs_noise_total(const struct lgs_noise *n, uint32_t host);
size_t orr__lgs_noise_samples(const struct lgs_noise *n);
uint64_t orr__lgs_noise_span(const struct lgs_noise *n);

static inline uint64_t lgs_noise(orr_loggops *s, uint32_t host, uint64_t start, uint64_t length)
{
    return s->noise ? orr__lgs_noise_get(s->noise, host, start, length) : 0;
}

orr_code orr__lgs_links_open(const char *path,
                             uint32_t hosts,
                             struct lgs_links **out,
                             orr_error *err);
void orr__lgs_links_close(struct lgs_links *l);
/* A message sets out; it is known by its send. */
orr_code orr__lgs_links_insert(struct lgs_links *l,
                               uint64_t now,
                               uint32_t from,
                               uint32_t node,
                               const orr__goal_node *n,
                               orr_error *err);
/* When it is there, as far as can be said now: now, or later. */
orr_code orr__lgs_links_query(
    struct lgs_links *l, uint64_t now, uint32_t from, uint32_t node, uint64_t *out, orr_error *err);

typedef enum lgs_span_kind {
    LGS_SPAN_CALC,
    LGS_SPAN_SEND,
    LGS_SPAN_RECV,
    LGS_SPAN_NOISE,
    LGS_SPAN_WIRE
} lgs_span_kind;

#define LGS_NO_NODE UINT32_MAX

/* What took a while: where, when.  Of one on the wire, cpu is unused and size is that of the message. */
typedef struct lgs_span {
    uint64_t start, end, size;
    uint32_t host, peer;
    uint32_t node;
    uint8_t kind, cpu;
} lgs_span;

/* One search in a queue: how many were looked at; of a failed one, how many there were. */
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
    uint64_t *sent_at;    /* by send: when it started */
} lgs_watch;

orr_code orr__lgs_watch_open(const orr_loggops *s, lgs_watch **out, orr_error *err);
void orr__lgs_watch_close(lgs_watch *w);
void orr__lgs_watch_span(orr_loggops *s, const lgs_span *span);
void orr__lgs_watch_length(orr_loggops *s, uint32_t host, lgs_side side);
void orr__lgs_watch_search(
    orr_loggops *s, uint32_t host, lgs_side side, uint64_t time, bool is_hit, uint32_t depth);
void orr__lgs_watch_pair(orr_loggops *s, const lgs_pair *pair);

/* The lines of LogGOPSim about what is left in queues; false: all queues are empty. */
bool orr__lgs_put_left(const orr_loggops *s, orr_buf *b);

/* What stands in the way of the rest; the error's words, and the lines of the story. */
orr_code orr__lgs_explain_stall(orr_loggops *s, orr_error *err);

#endif
