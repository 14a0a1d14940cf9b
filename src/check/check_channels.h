/* SPDX-License-Identifier: Apache-2.0 */
/* check_channels.h - who sends what to whom: gathered by check_channels.c, compared by check_messages.c. */
#ifndef ORR_CHECK_CHANNELS_H
#define ORR_CHECK_CHANNELS_H

#include "check_shapes.h"

typedef struct orr__message {
    uint64_t to; /* which peer: see orr__line */
    uint32_t node;
    int64_t tag, size;
} orr__message;

/* What goes to one peer with one tag. */
typedef struct orr__channel {
    int64_t tag;
    uint32_t line;
    uint32_t first, count; /* messages[first .. first + count), by size */
    uint64_t fingerprint;  /* of the sizes; 0: one is not known */
} orr__channel;

/* All channels to one peer: a rank that the body names, or one of each rank's own.  A rank has one line to a
 * peer. */
typedef struct orr__line {
    uint32_t peer;         /* ORR_NO_NODE: each rank's own, */
    uint32_t slot;         /* the value of this slot */
    uint32_t first, count; /* channels[first .. first + count), by tag */
    uint32_t id;           /* among all lines of both directions */
} orr__line;

/* The channels of one tag to peers of one shape. */
typedef struct orr__block {
    int64_t tag;
    uint32_t peer_shape, channels;
    uint32_t count; /* of messages in each, and their fingerprint; is_mixed: not the same in all */
    uint64_t fingerprint;
    bool is_mixed;
} orr__block;

/* What the ranks of one shape send, or what they receive. */
typedef struct orr__side {
    orr__message *messages; /* by line, tag, size, node */
    orr__channel *channels; /* by line, then tag */
    orr__line *lines;       /* by peer; behind them those of each rank's own */
    orr__block *blocks;     /* by tag, then shape of the peer; of peers that the body names */
    uint32_t message_count, channel_count, line_count, block_count;
    uint32_t named_count; /* lines whose peer the body names */
    bool has_unknown_peer;
} orr__side;

enum { ORR__SENDS, ORR__RECVS, ORR__DIRECTIONS };

typedef struct orr__exchange {
    orr__check *k;
    orr__shapes shapes;
    orr__side *sides[ORR__DIRECTIONS];   /* by shape */
    orr_map *own_lines[ORR__DIRECTIONS]; /* rank << 32 | peer -> line of the rank's side */
    uint32_t line_count;
    bool has_unknown[ORR__DIRECTIONS]; /* some rank has an end without a peer */
} orr__exchange;

/* Fill an orr__exchange that has its k; k->no_memory when it cannot be.  Most of it lies in k's scratch. */
void orr__exchange_gather(orr__exchange *x);
void orr__exchange_fini(orr__exchange *x);

static inline uint32_t orr__line_peer(const orr__exchange *x, const orr__line *l, uint32_t rank)
{
    return l->peer != ORR_NO_NODE ? l->peer : (uint32_t)orr__check_value(x->k, rank, l->slot);
}

static inline const orr__side *orr__side_of(const orr__exchange *x, int direction, uint32_t rank)
{
    return &x->sides[direction][x->shapes.of_rank[rank]];
}

/* NULL: the rank has none to that peer. */
const orr__line *orr__line_find(const orr__exchange *x,
                                int direction,
                                uint32_t rank,
                                uint32_t peer);
const orr__channel *orr__channel_find(const orr__side *s, const orr__line *l, int64_t tag);
const orr__block *orr__block_find(const orr__side *s, int64_t tag, uint32_t peer_shape);

#endif
