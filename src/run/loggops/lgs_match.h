/* SPDX-License-Identifier: Apache-2.0 */
/* lgs_match.h - receives that wait for their message, and messages that wait for their receive.
 *
 * Both wait in queues by (host, source, tag), found through one hash table; a queue never holds
 * both kinds, since they would have met.  Schedules with wildcards, and runs that want the lengths
 * of queues, also keep all that waits at a host in one list each, in order of arrival: wildcards
 * search there. Invariants: of several that fit, the one that waits longest is taken. Cost: a
 * lookup whatever the length of the queues; with a wildcard on the searching side a walk. */
#ifndef ORR_SIMULATE_LGS_MATCH_H
#define ORR_SIMULATE_LGS_MATCH_H

#include "base/memory/hash.h"
#include "lgs_queue.h"

typedef struct lgs_key {
    uint32_t host, source, tag;
} lgs_key;

typedef enum lgs_side { LGS_RECEIVES = 0, LGS_MESSAGES = 1 } lgs_side;

typedef struct lgs_slot {
    lgs_key key;
    /* of a ring of events, so that last->next is the first; the top bit: messages; 0: empty */
    uint32_t last;
} lgs_slot;

typedef struct lgs_link {
    uint32_t next, previous;
} lgs_link;

typedef struct lgs_match {
    lgs_slot *slots;
    size_t slot_count, used;
    uint64_t arrivals;
    bool has_lists;
    lgs_link *links; /* by event */
    lgs_key *keys;   /* by event */
    size_t link_room, key_room;
    uint32_t *first[2], *last[2], *count[2]; /* by side and host */
} lgs_match;

bool lgs_match_init(lgs_match *m, uint32_t hosts, bool has_lists);
void lgs_match_fini(lgs_match *m);

/* e waits from now on.  False: out of memory. */
bool lgs_match_add(lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key, uint32_t e);
/* The first on that side under exactly this key, which stops waiting; 0: none. */
uint32_t lgs_match_take(lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key);
/* The same, where ANY on either side fits everything.  *depth: how many were looked at (with
 * lists); of a failed search, how many there are. */
uint32_t lgs_match_take_any(
    lgs_match *m, lgs_queue *q, lgs_side side, lgs_key key, bool walks, uint32_t *depth);

static inline size_t lgs_match_place(const lgs_match *m, lgs_key k)
{
    const uint64_t h = orr_hash_mix((uint64_t)k.host << 32 | k.source, 0x9e3779b97f4a7c15u);
    return (size_t)orr_hash_mix(h ^ k.tag, 0xe7037ed1a0b428dbu) & (m->slot_count - 1);
}

#endif
