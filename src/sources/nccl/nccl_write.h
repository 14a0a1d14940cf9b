/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_write.h - shared by the files that write schedules: one GPU's writer, and what keeps book
 * over all of them. */
#ifndef ORR_SOURCES_NCCL_WRITE_H
#define ORR_SOURCES_NCCL_WRITE_H

#include "nccl_impl.h"

#include "base/io/output.h"
#include "base/memory/buffer.h"

/* ---- pen ----
 *
 * Lines of one rank's schedule, in GOAL's text.
 *
 *     nccl_chain steps = {0};
 *     nccl_pen_then(&pen, &steps, nccl_pen_calc(&pen, 100, cpu));        // one after another
 *
 *     const nccl_fork f = nccl_pen_fork(&pen, cpu);                      // side by side
 *     for (...) nccl_pen_branch(&pen, &f, write_something(...));
 *     nccl_ends all = nccl_pen_join(&pen, &f, cpu);
 *
 * Each operation has a label, l0, l1, .. in the order they are written; what is written is known by
 * its first and its last operation. */

typedef struct nccl_ends {
    uint32_t first, last;
    bool is_empty; /* nothing was written */
} nccl_ends;

typedef struct nccl_chain {
    nccl_ends all;
    bool has_any;
} nccl_chain;

typedef struct nccl_fork {
    uint32_t start;
    size_t base; /* in pen.lasts */
} nccl_fork;

typedef struct nccl_pen {
    orr_buf to;
    uint32_t labels;
    uint32_t first_label; /* added to each: 0, or 1 where labels begin at l1 */
    uint64_t messages, bytes;
    bool is_dry;     /* count, write nothing */
    bool is_full;    /* labels or out of memory */
    uint32_t *lasts; /* of branches that are not joined yet */
    size_t count, room;
} nccl_pen;

void nccl_pen_fini(nccl_pen *p);
uint32_t nccl_pen_label(nccl_pen *p); /* a new label, for a line of one's own */
void nccl_pen_requires(nccl_pen *p, uint32_t later, uint32_t earlier);

nccl_ends nccl_pen_calc(nccl_pen *p, uint64_t ns, uint32_t cpu);
typedef struct nccl_message {
    uint64_t bytes, tag;
    uint32_t peer, cpu;
    uint32_t digits; /* at least so many in the tag */
    bool is_send;
} nccl_message;
nccl_ends nccl_pen_message(nccl_pen *p, const nccl_message *m);

void nccl_pen_then(nccl_pen *p, nccl_chain *c, nccl_ends next);
/* After what the chain has, but what comes next does not wait for it. */
void nccl_pen_beside(nccl_pen *p, const nccl_chain *c, nccl_ends side);
nccl_ends nccl_pen_chained(const nccl_chain *c);
nccl_fork nccl_pen_fork(nccl_pen *p, uint32_t cpu);
void nccl_pen_branch(nccl_pen *p, const nccl_fork *f, nccl_ends branch);
nccl_ends nccl_pen_join(nccl_pen *p, const nccl_fork *f, uint32_t cpu);

/* ---- writers ---- */

/* nccl_goal.c: does every message that is sent get received?  One entry for each ordered pair
 * of ranks. */
typedef struct nccl_matching nccl_matching;
nccl_matching *nccl_matching_create(void); /* NULL: out of memory */
void nccl_matching_destroy(nccl_matching *m);
typedef struct nccl_match_key {
    uint32_t from, to; /* ranks of the schedule */
    uint64_t context, id, bytes;
    bool is_send;
} nccl_match_key;
bool nccl_matching_add(nccl_matching *m, const nccl_match_key *key); /* false: out of memory */
/* ORR_EINPUT and words about the first pair that does not match; *unmatched: how many messages at
 * least. */
orr_code nccl_matching_check(const nccl_matching *m,
                             uint64_t *unmatched,
                             orr_error *err) ORR_MUST_CHECK;

/* How tags are made: message number * factor + context, or both modulo something first. */
typedef struct nccl_tags {
    uint64_t factor;   /* above any context */
    uint64_t id_space; /* 0: message numbers are as they are */
    uint64_t id_limit,
        limit; /* a number, a context of this size or above is an error; 0: none is */
    uint32_t digits;
} nccl_tags;

typedef struct nccl_writer {
    nccl_job *job;
    uint32_t gpu;
    nccl_pen pen;
    orr_output *out;   /* takes what the pen has, from time to time; NULL: it stays there */
    orr_map *counters; /* the old way: messages so far by direction, peer and context */
    uint64_t *stamps;  /* ours: for each peer and direction the call that counted last, */
    uint64_t *counts;  /* and how far */
    uint64_t stamp;
    const orr_npkit *tables[2]; /* LL and LL128, Simple; NULL: no time */
    orr_npkit_choice choice;
    nccl_matching *matching; /* when measuring; else NULL */
    nccl_tags tags;
    uint64_t most_id, most_tag;
    uint64_t overlaps, left_out;
    orr_code code; /* the first failure; nothing is written after it */
    orr_error *err;
} nccl_writer;

orr_code nccl_writer_init(nccl_writer *w, nccl_job *j, orr_error *err) ORR_MUST_CHECK;
void nccl_writer_fini(nccl_writer *w);

/* nccl_expand.c: a message of a call, or what stands for it inside a node; what a reduction or a
 * copy takes. */
typedef struct nccl_lane {
    nccl_writer *w;
    const nccl_call *call;
    uint32_t cpu;
    uint64_t protocol;
    uint64_t context; /* and */
    uint64_t next_id; /* of a send or a receive, our own way */
} nccl_lane;
enum { ORR__RECV = 1, ORR__REDUCE = 2, ORR__COPY = 4, ORR__SEND = 8 };
/* What one rank does with one piece: receive, reduce, copy, send, in this order, each if asked
 * for. */
typedef struct nccl_step {
    unsigned what;
    uint32_t from, to; /* GPUs */
} nccl_step;
nccl_ends nccl_lane_atom(nccl_lane *l, const nccl_step *s, uint64_t bytes);
void nccl_writer_fail(nccl_writer *w, const char *fmt, ...) ORR_PRINTF(2, 3);

/* nccl_expand.c: a collective on one GPU.  *cpu: the first it may use, then the first it did
 * not. */
nccl_ends nccl_expand(nccl_writer *w, const nccl_call *c, uint32_t *cpu);

/* How NCCL likely sends a message of which only the size is known. */
nccl_transfer nccl_guess_transfer(const nccl_call *c);

/* nccl_context.c: our own way writes a call only when all of its ranks have it. */
orr_code nccl_cut_survey(nccl_job *j, orr_error *err) ORR_MUST_CHECK;
bool nccl_call_is_cut(const nccl_job *j, uint32_t gpu, const nccl_call *c);
bool nccl_transfer_is_cut(const nccl_job *j,
                          uint32_t gpu,
                          const nccl_call *c,
                          const nccl_transfer *t);
uint64_t nccl_call_context(const nccl_job *j, const nccl_call *c);

#endif
