/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - a run of traces on several threads, with the results of one (docs/design/threads.md).
 *
 * Ranks are divided into parts, each with a clock, messages and figures of its own: an orr_sim that
 * shares with the whole what does not change.  A part runs ahead of the others until one of its
 * ranks waits for a message of another part that is not known yet; from then on it stays behind
 * what may still come. */
#ifndef ORR_RUN_PARTS_H
#define ORR_RUN_PARTS_H

#include "run_state.h"

struct run_parts;

/* A message; the last members of a collective came; on links: a message on its way, and one that
 * is there, for its sender. */
typedef enum part_news { PART_MESSAGE, PART_CAME, PART_PACKET, PART_THERE } part_news;

/* What one part tells another. */
typedef struct part_note {
    part_news what;
    uint32_t tag, src, dst; /* of a message */
    uint64_t size;
    uint64_t since,
        at; /* when it is sent, and there; or when the last members of a collective came */
    clk_trail trail;
    /* A collective to which all members of a part have come. */
    const cfg_group *group;
    uint64_t stream;
    uint32_t base, along, source, from;
    /* On links: when the message was sent, its token there, and the rest of its packet. */
    uint64_t sent, origin, hash;
    uint32_t device;
    bool is_awaited;
} part_note;

/* The state of one part that other layers ask for. */
typedef struct run_part {
    struct run_parts *all; /* the run that it is one of */
    orr_sim *sim;
    uint32_t index;
    uint32_t unknown;            /* receives from other parts whose messages are not known yet */
    const uint8_t *part_of;      /* by rank */
    clk_call on_sent;            /* of the message that the network is asked about */
    part_note sending;           /* filled in by part_send, when its delay is known */
    struct net_servers *servers; /* on links: those of this part; else NULL */
} run_part;

static inline bool part_is_across(const orr_sim *s, uint32_t rank)
{
    return s->part && s->part->part_of[rank] != s->part->index;
}

/* A message that was sent at `since` and is there at `at`.  What this part schedules itself before
 * it comes to `since` goes first, so it is put in its place then, if that is yet to come. */
void part_put(orr_sim *s, uint64_t since, uint64_t at, clk_trail trail, clk_call call);
/* The message is on its way, and there after this delay. */
void part_send(orr_sim *s, uint64_t delay);
void part_tell(run_part *p, uint32_t other, const part_note *note);
/* The parts that members of a collective are in, as bits, and how many members are in this one. */
uint64_t part_members(
    const run_part *p, const cfg_group *group, uint32_t base, uint32_t along, uint32_t *here);

void part_rank_finished(orr_sim *s, uint32_t rank);

/* Runs all of it, if there are threads and nothing stands against it; *is_done false: it does not,
 * and nothing has happened. */
orr_code parts_run(orr_sim *s, bool *is_done, orr_error *err);
void parts_destroy(struct run_parts *all); /* NULL is fine */

#endif
