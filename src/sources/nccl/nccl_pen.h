/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_pen.h - lines of one rank's schedule, in GOAL's text.
 *
 *     orr__chain steps = {0};
 *     orr__pen_then(&pen, &steps, orr__pen_calc(&pen, 100, cpu));        // one after another
 *
 *     const orr__fork f = orr__pen_fork(&pen, cpu);                      // side by side
 *     for (...) orr__pen_branch(&pen, &f, write_something(...));
 *     orr__ends all = orr__pen_join(&pen, &f, cpu);
 *
 * Each operation has a label, l0, l1, .. in the order they are written; what is written is known by its first and its last
 * operation. */
#ifndef ORR_SOURCES_NCCL_PEN_H
#define ORR_SOURCES_NCCL_PEN_H

#include "base/memory/buffer.h"

typedef struct orr__ends {
    uint32_t first, last;
    bool is_empty; /* nothing was written */
} orr__ends;

typedef struct orr__chain {
    orr__ends all;
    bool has_any;
} orr__chain;

typedef struct orr__fork {
    uint32_t start;
    size_t base; /* in pen.lasts */
} orr__fork;

typedef struct orr__pen {
    orr_buf to;
    uint32_t labels;
    uint32_t first_label; /* added to each: 0, or 1 where labels begin at l1 */
    uint64_t messages, bytes;
    bool is_dry;     /* count, write nothing */
    bool is_full;    /* labels or memory ran out */
    uint32_t *lasts; /* of branches that are not joined yet */
    size_t count, room;
} orr__pen;

void orr__pen_fini(orr__pen *p);
uint32_t orr__pen_label(orr__pen *p); /* a new label, for a line of one's own */
void orr__pen_requires(orr__pen *p, uint32_t later, uint32_t earlier);

orr__ends orr__pen_calc(orr__pen *p, uint64_t ns, uint32_t cpu);
typedef struct orr__message {
    uint64_t bytes, tag;
    uint32_t peer, cpu;
    uint32_t digits; /* at least so many in the tag */
    bool is_send;
} orr__message;
orr__ends orr__pen_message(orr__pen *p, const orr__message *m);

void orr__pen_then(orr__pen *p, orr__chain *c, orr__ends next);
/* After what the chain has, but what comes next does not wait for it. */
void orr__pen_beside(orr__pen *p, const orr__chain *c, orr__ends side);
orr__ends orr__pen_chained(const orr__chain *c);
orr__fork orr__pen_fork(orr__pen *p, uint32_t cpu);
void orr__pen_branch(orr__pen *p, const orr__fork *f, orr__ends branch);
orr__ends orr__pen_join(orr__pen *p, const orr__fork *f, uint32_t cpu);

#endif
