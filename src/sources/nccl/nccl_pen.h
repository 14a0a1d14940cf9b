/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_pen.h - lines of one rank's schedule, in GOAL's text.
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
#ifndef ORR_SOURCES_NCCL_PEN_H
#define ORR_SOURCES_NCCL_PEN_H

#include "base/memory/buffer.h"

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
    bool is_full;    /* labels or memory ran out */
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

#endif
