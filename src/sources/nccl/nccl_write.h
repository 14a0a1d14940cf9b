/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_write.h - shared by the files that write schedules: one GPU's writer, and what keeps book
 * over all of them. */
#ifndef ORR_SOURCES_NCCL_WRITE_H
#define ORR_SOURCES_NCCL_WRITE_H

#include "nccl_impl.h"
#include "nccl_pen.h"

#include "base/io/output.h"

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
