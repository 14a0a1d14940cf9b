/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_write.h - shared by the files that write schedules: one GPU's writer, and what keeps book over all of them. */
#ifndef ORR_SOURCES_NCCL_WRITE_H
#define ORR_SOURCES_NCCL_WRITE_H

#include "nccl_impl.h"
#include "nccl_pen.h"

#include "base/io/output.h"

/* nccl_matching.c: does every message that is sent get received?  One entry for each ordered pair of ranks. */
typedef struct orr__matching orr__matching;
orr__matching *orr__matching_create(void); /* NULL: out of memory */
void orr__matching_destroy(orr__matching *m);
typedef struct orr__match_key {
    uint32_t from, to; /* ranks of the schedule */
    uint64_t context, id, bytes;
    bool is_send;
} orr__match_key;
bool orr__matching_add(orr__matching *m, const orr__match_key *key); /* false: out of memory */
/* ORR_EINPUT and words about the first pair that does not match; *unmatched: how many messages at least. */
orr_code orr__matching_check(const orr__matching *m,
                             uint64_t *unmatched,
                             orr_error *err) ORR_MUST_CHECK;

/* How tags are made: message number * factor + context, or both modulo something first. */
typedef struct orr__tags {
    uint64_t factor;   /* above any context */
    uint64_t id_space; /* 0: message numbers are as they are */
    uint64_t id_limit,
        limit; /* a number, a context of this size or above is an error; 0: none is */
    uint32_t digits;
} orr__tags;

typedef struct orr__writer {
    orr__job *job;
    uint32_t gpu;
    orr__pen pen;
    orr_output *out;   /* takes what the pen has, from time to time; NULL: it stays there */
    orr_map *counters; /* the old way: messages so far by direction, peer and context */
    uint64_t *stamps;  /* ours: for each peer and direction the call that counted last, */
    uint64_t *counts;  /* and how far */
    uint64_t stamp;
    const orr_npkit *tables[2]; /* LL and LL128, Simple; NULL: no time */
    orr_npkit_choice choice;
    orr__matching *matching; /* when measuring; else NULL */
    orr__tags tags;
    uint64_t most_id, most_tag;
    uint64_t overlaps, left_out;
    orr_code code; /* the first failure; nothing is written after it */
    orr_error *err;
} orr__writer;

orr_code orr__writer_init(orr__writer *w, orr__job *j, orr_error *err) ORR_MUST_CHECK;
void orr__writer_fini(orr__writer *w);

/* nccl_message.c: a message of a call, or what stands for it inside a node; what a reduction or a copy takes. */
typedef struct orr__lane {
    orr__writer *w;
    const orr__call *call;
    uint32_t cpu;
    uint64_t protocol;
    uint64_t context; /* and */
    uint64_t next_id; /* of a send or a receive, our own way */
} orr__lane;
enum { ORR__RECV = 1, ORR__REDUCE = 2, ORR__COPY = 4, ORR__SEND = 8 };
/* What one rank does with one piece: receive, reduce, copy, send, in this order, each if asked for. */
typedef struct orr__step {
    unsigned what;
    uint32_t from, to; /* GPUs */
} orr__step;
orr__ends orr__lane_atom(orr__lane *l, const orr__step *s, uint64_t bytes);
/* The piece cut up as the protocol has it; cap: bytes of the largest slice, slices: at most so many. */
orr__ends orr__lane_slices(
    orr__lane *l, const orr__step *s, uint64_t bytes, uint64_t cap, uint64_t slices);
void orr__writer_fail(orr__writer *w, const char *fmt, ...) ORR_PRINTF(2, 3);

/* nccl_expand.c, nccl_expand_more.c: a collective on one GPU.  *cpu: the first it may use, then the first it did not. */
orr__ends orr__expand(orr__writer *w, const orr__call *c, uint32_t *cpu);
typedef struct orr__plan {
    orr__writer *w;
    const orr__call *call;
    const orr__info *info;
    const orr__comm *comm;
    const orr__seat *seat;
    uint64_t slices, cap;
} orr__plan;
typedef orr__ends orr__expand_channel(orr__plan *p,
                                      orr__lane *l,
                                      uint32_t channel,
                                      const orr__work *work);
/* NVLS, CollNet and PAT; NULL: not for this operation. */
orr__expand_channel *orr__expansion_of(uint64_t algorithm, uint8_t op);

/* nccl_guess.c: how NCCL does a call of which only name and size are known. */
typedef struct orr__guess {
    orr__info info;
    uint32_t channels;
} orr__guess;
orr__guess orr__guess_collective(const orr__job *j, const orr__call *c);
orr__work orr__guess_work(const orr__guess *g,
                          const orr__call *c,
                          uint64_t ranks,
                          uint32_t channel);
orr__transfer orr__guess_transfer(const orr__call *c);

/* nccl_rank.c: all streams of one GPU; nccl_events.c: the same as whole calls. */
orr_code orr__write_rank(orr__writer *w, uint32_t gpu, bool is_merged) ORR_MUST_CHECK;
orr_code orr__write_events(orr__writer *w, uint32_t gpu, bool is_merged) ORR_MUST_CHECK;

/* nccl_streams.c: calls with a time by stream, as they are written. */
typedef struct orr__stream {
    uint32_t name; /* a text; ORR__NONE: merged */
    uint32_t from, count;
} orr__stream;
typedef struct orr__streams {
    orr_arena *arena;
    orr__stream *at;
    uint32_t count;
    uint32_t *calls; /* of each stream from..from + count, by time */
} orr__streams;
orr_code orr__streams_make(const orr__job *j,
                           uint32_t gpu,
                           bool is_merged,
                           orr__streams *out,
                           orr_error *err) ORR_MUST_CHECK;
void orr__streams_fini(orr__streams *s);
/* Whether two of a GPU's streams were busy at the same time. */
bool orr__gpu_overlaps(const orr__gpu *g);

/* nccl_cut.c: our own way writes a call only when all of its ranks have it. */
orr_code orr__cut_survey(orr__job *j, orr_error *err) ORR_MUST_CHECK;
bool orr__call_is_cut(const orr__job *j, uint32_t gpu, const orr__call *c);
bool orr__transfer_is_cut(const orr__job *j,
                          uint32_t gpu,
                          const orr__call *c,
                          const orr__transfer *t);
uint64_t orr__call_context(const orr__job *j, const orr__call *c);

#endif
