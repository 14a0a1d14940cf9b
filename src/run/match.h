/* SPDX-License-Identifier: Apache-2.0 */
/* match.h - messages between ranks: a send meets a receive of the same tag, source, destination and
 * size (astra-sim.md 4.3 and 5.6). */
#ifndef ORR_RUN_MATCH_H
#define ORR_RUN_MATCH_H

#include "system.h"

struct orr__matcher *orr__matcher_create(orr_sim *s);
void orr__matcher_destroy(struct orr__matcher *m);
void orr__send(orr__npu *from, uint32_t tag, uint32_t dst, uint64_t size, orr__call on_arrival);
void orr__recv(orr__npu *at, uint32_t tag, uint32_t src, uint64_t size, orr__call on_arrival);

enum { ORR__TAG_SPACE = 500000000 }; /* tags of nodes are below, those of collectives from here */

void orr__stream_send(orr__stream *s, uint32_t dst, uint64_t size); /* a message of a collective */

/* A message without its counterpart when the run stands still.  With a rendezvous these are the
 * messages that were asked for, not those that prepare them. */
typedef enum orr__unmatched_kind {
    ORR__UNSENT,     /* the receive waits, nothing was sent */
    ORR__UNREADY,    /* rendezvous: the send waits for its receive */
    ORR__UNRECEIVED, /* it arrived, and no receive was posted */
    ORR__UNDELIVERED /* it was sent and has not arrived */
} orr__unmatched_kind;
typedef struct orr__unmatched {
    orr__unmatched_kind kind;
    uint32_t tag, src, dst;
    uint64_t size;
    orr__call sender, receiver; /* what would run then; no action: nobody waits on that side */
    uint32_t number;            /* a tie-breaker */
} orr__unmatched;
bool orr__match_list(const struct orr__matcher *m,
                     orr_arena *a,
                     orr__unmatched **out,
                     uint32_t *count); /* false: out of memory */

#endif
