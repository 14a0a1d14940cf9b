/* SPDX-License-Identifier: Apache-2.0 */
/* match.h - messages between ranks, matched by tag, source, destination and size (astra-sim.md 4.3
 * and 5.6). */
#ifndef ORR_RUN_MATCH_H
#define ORR_RUN_MATCH_H

#include "system.h"

struct msg_table *msg_create(orr_sim *s);
void msg_destroy(struct msg_table *m);
void msg_send(run_npu *from, uint32_t tag, uint32_t dst, uint64_t size, clk_call on_arrival);
void msg_recv(run_npu *at, uint32_t tag, uint32_t src, uint64_t size, clk_call on_arrival);

/* Reduces the symmetry: each message becomes several.  tokens: the k-th copy of message i is at i *
 * copies + k; the caller frees it. */
struct fold_copier;
bool msg_multiply(struct msg_table *m, const struct fold_copier *c, uint32_t **tokens);
uint32_t msg_receiver(const struct msg_table *m,
                      uint64_t token);            /* as seen from its source at home */
void msg_receive_late(void *sim, uint64_t token); /* as an action */

/* A message from another part (parts.h) becomes known here. */
struct part_note;
void msg_take_across(orr_sim *s, const struct part_note *note);
#define MSG_ACROSS UINT64_MAX /* token of messages to another part */

/* On links (parts.c) a message to another part, or in transit through this one, has a token with
 * MSG_MOVING. */
#define MSG_MOVING (UINT64_C(1) << 62)
typedef struct msg_moving {
    uint32_t tag, src, dst;
    uint64_t size;
    uint64_t since;   /* when it was sent */
    uint64_t origin;  /* its token where it was sent */
    bool is_awaited;  /* its sender waits for its arrival */
    bool is_origin;   /* this is the part that sent it */
    clk_call on_sent; /* continuation there */
    uint32_t next;    /* free */
} msg_moving;
/* also for a token local to this part */
msg_moving msg_moving_of(const orr_sim *s, uint64_t token);
/* False: out of memory.  drop: ignores tokens of other kinds. */
bool msg_add_moving(orr_sim *s, const msg_moving *value, uint64_t *token);
void msg_drop_moving(orr_sim *s, uint64_t token);
void msg_tell_sender(void *sim, uint64_t token); /* as an action, at the origin */

/* Three ranges of tags: of nodes, of collectives, of the nodes of custom collectives. */
enum { MSG_TAG_SPACE = 500000000, MSG_CUSTOM_TAGS = 2 * MSG_TAG_SPACE };

static inline bool msg_is_custom(uint32_t tag)
{
    return tag >= MSG_CUSTOM_TAGS;
}

/* A trace gives the tag; else it is the number of a collective. */
static inline bool msg_has_trace_tag(uint32_t tag)
{
    return tag < MSG_TAG_SPACE || msg_is_custom(tag);
}

static inline uint32_t msg_trace_tag(uint32_t tag)
{
    return msg_is_custom(tag) ? tag - MSG_CUSTOM_TAGS : tag;
}

void msg_stream_send(sys_stream *s, uint32_t dst, uint64_t size); /* a message of a collective */

/* An unmatched message of a stalled run.  With a rendezvous these are the requested messages, not
 * those that prepare them. */
typedef enum msg_unmatched_kind {
    MSG_UNSENT,     /* the receive waits, nothing was sent */
    MSG_UNREADY,    /* rendezvous: the send waits for its receive */
    MSG_UNRECEIVED, /* it arrived, and no receive was posted */
    MSG_UNDELIVERED /* it was sent and has not arrived */
} msg_unmatched_kind;
typedef struct msg_unmatched {
    msg_unmatched_kind kind;
    uint32_t tag, src, dst;
    uint64_t size;
    clk_call sender, receiver; /* continuations; no action: nobody waits on that side */
    uint32_t number;           /* a tie-breaker */
} msg_unmatched;
bool msg_list(const struct msg_table *m,
              orr_arena *a,
              msg_unmatched **out,
              uint32_t *count); /* false: out of memory */

/* Those that wait under a key, for steady.c: number is the index in its queue.  False: out of
 * memory. */
bool msg_waiting(const struct msg_table *m, orr_arena *a, msg_unmatched **out, uint32_t *count);

#endif
