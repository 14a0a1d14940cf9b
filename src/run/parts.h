/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - a run of traces on several threads, with the same results as on one
 * (docs/design/threads.md).
 *
 * Ranks are divided into parts, each with its own clock, messages and statistics: an orr_sim that
 * shares immutable data with the whole.  A part runs ahead of the others until one of its ranks
 * waits for an unknown message of another part; from then on it goes no further than the earliest
 * possible arrival. */
#ifndef ORR_RUN_PARTS_H
#define ORR_RUN_PARTS_H

#include "run_state.h"

struct run_parts;

/* A message; the last members of a collective have arrived; on links: a packet in transit, and its
 * arrival, for the sender. */
typedef enum part_news { PART_MESSAGE, PART_CAME, PART_PACKET, PART_THERE } part_news;

/* A note from one part to another. */
typedef struct part_note {
    part_news what;
    uint32_t tag, src, dst; /* of a message */
    uint64_t size;
    uint64_t since, at; /* sent and arrived; or when the last members of a collective arrived */
    clk_trail trail;
    /* A collective to which all members of a part have arrived. */
    const cfg_group *group;
    uint64_t stream;
    uint32_t base, along, source, from;
    /* On links: when the message was sent, its token there, and the rest of its packet. */
    uint64_t sent, origin, hash;
    uint32_t device;
    bool is_awaited;
} part_note;

/* The state of one part, as seen by other layers. */
typedef struct run_part {
    struct run_parts *all; /* the run that it is one of */
    orr_sim *sim;
    uint32_t index;
    uint32_t unknown;            /* receives from other parts whose messages are unknown */
    const uint8_t *part_of;      /* by rank */
    clk_call on_sent;            /* of the message passed to the network */
    part_note sending;           /* completed by part_send, once its delay is known */
    struct net_servers *servers; /* on links: those of this part; else NULL */
} run_part;

static inline bool part_is_across(const orr_sim *s, uint32_t rank)
{
    return s->part && s->part->part_of[rank] != s->part->index;
}

/* A message sent at `since` that arrives at `at`.  Events that this part schedules itself before it
 * reaches `since` come first, so it is inserted then, if that is in the future. */
void part_put(orr_sim *s, uint64_t since, uint64_t at, clk_trail trail, clk_call call);
/* The message is in flight, and arrives after this delay. */
void part_send(orr_sim *s, uint64_t delay);
void part_tell(run_part *p, uint32_t other, const part_note *note);
/* The parts with members of a collective, as bits, and the number of members in this one. */
uint64_t part_members(
    const run_part *p, const cfg_group *group, uint32_t base, uint32_t along, uint32_t *here);

void part_rank_finished(orr_sim *s, uint32_t rank);

/* Runs everything, if threads are requested and possible; *is_done false: they are not, and nothing
 * has happened. */
orr_code parts_run(orr_sim *s, bool *is_done, orr_error *err);
void parts_destroy(struct run_parts *all); /* NULL is fine */

#endif
