/* SPDX-License-Identifier: Apache-2.0 */
/* check_channels.h - who sends what to whom: gathered by check_channels.c, compared by check_messages.c. */
#ifndef ORR_CHECK_CHANNELS_H
#define ORR_CHECK_CHANNELS_H

#include "check_shapes.h"

typedef struct chk_message {
    uint64_t to; /* which peer: see chk_line */
    uint32_t node;
    int64_t tag, size;
} chk_message;

/* What goes to one peer with one tag. */
typedef struct chk_channel {
    int64_t tag;
    uint32_t line;
    uint32_t first, count; /* messages[first .. first + count), by size */
    uint64_t fingerprint;  /* of the sizes; 0: one is not known */
} chk_channel;

/* All channels to one peer: a rank that the body names, or one of each rank's own.  A rank has one line to a
 * peer. */
typedef struct chk_line {
    uint32_t peer;         /* ORR_NO_NODE: each rank's own, */
    uint32_t slot;         /* the value of this slot */
    uint32_t first, count; /* channels[first .. first + count), by tag */
    uint32_t id;           /* among all lines of both directions */
} chk_line;

/* The channels of one tag to peers of one shape. */
typedef struct chk_block {
    int64_t tag;
    uint32_t peer_shape, channels;
    uint32_t count; /* of messages in each, and their fingerprint; is_mixed: not the same in all */
    uint64_t fingerprint;
    bool is_mixed;
} chk_block;

/* What the ranks of one shape send, or what they receive. */
typedef struct chk_side {
    chk_message *messages; /* by line, tag, size, node */
    chk_channel *channels; /* by line, then tag */
    chk_line *lines;       /* by peer; behind them those of each rank's own */
    chk_block *blocks;     /* by tag, then shape of the peer; of peers that the body names */
    uint32_t message_count, channel_count, line_count, block_count;
    uint32_t named_count; /* lines whose peer the body names */
    bool has_unknown_peer;
} chk_side;

enum { CHK_SENDS, CHK_RECVS, CHK_DIRECTIONS };

typedef struct chk_exchange {
    chk_run *k;
    chk_shapes shapes;
    chk_side *sides[CHK_DIRECTIONS];    /* by shape */
    orr_map *own_lines[CHK_DIRECTIONS]; /* rank << 32 | peer -> line of the rank's side */
    uint32_t line_count;
    bool has_unknown[CHK_DIRECTIONS]; /* some rank has an end without a peer */
} chk_exchange;

/* Fill an chk_exchange that has its k; k->no_memory when it cannot be.  Most of it lies in k's scratch. */
void chk_exchange_gather(chk_exchange *x);
void chk_exchange_fini(chk_exchange *x);

static inline uint32_t chk_line_peer(const chk_exchange *x, const chk_line *l, uint32_t rank)
{
    return l->peer != ORR_NO_NODE ? l->peer : (uint32_t)chk_value(x->k, rank, l->slot);
}

static inline const chk_side *chk_side_of(const chk_exchange *x, int direction, uint32_t rank)
{
    return &x->sides[direction][x->shapes.of_rank[rank]];
}

/* NULL: the rank has none to that peer. */
const chk_line *chk_line_find(const chk_exchange *x, int direction, uint32_t rank, uint32_t peer);
const chk_channel *chk_channel_find(const chk_side *s, const chk_line *l, int64_t tag);
const chk_block *chk_block_find(const chk_side *s, int64_t tag, uint32_t peer_shape);

#endif
