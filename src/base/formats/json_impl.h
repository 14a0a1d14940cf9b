/* SPDX-License-Identifier: Apache-2.0 */
/* json_impl.h - the state of a reader, shared by json_reader.c and json_tree.c. */
#ifndef ORR_BASE_JSON_IMPL_H
#define ORR_BASE_JSON_IMPL_H

#include "json.h"
#include "json_index.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORR__LITTLE_ENDIAN 1
#else
#define ORR__LITTLE_ENDIAN 0
#endif

/* An open container: entered by the caller, or nested inside and being loaded. */
typedef struct orr__json_frame {
    uint64_t at; /* its opening bracket */
    uint32_t node, count;
    char closer; /* the bracket that will end it */
} orr__json_frame;

struct orr_json {
    const char *text;
    uint64_t len;
    char *path;

    /* The piece that is indexed: bytes [piece, piece_end) of the input. */
    orr__json_index *index;
    size_t index_room, piece_size;
    uint64_t piece, piece_end;
    const uint32_t *tokens; /* offsets in the piece */
    size_t count, next;     /* tokens [next, count) are still to be taken */

    /* The tree being loaded; with keep == 0 the counts do not advance. */
    uint32_t keep;
    uint64_t base; /* where node offsets count from */
    orr__json_node *nodes;
    size_t node_count, node_room;
    orr__json_decoded *decoded;
    size_t decoded_count, decoded_room;
    orr_buf scratch; /* text of strings that had escapes */
    orr__json_tree tree;

    uint64_t item_at; /* the item last given by next */
    bool pending;     /* and it is neither loaded, entered nor passed over */
    orr_buf key;
    orr_code failed; /* the first fault, permanent; its text is in error */
    orr_error error;
    uint32_t depth;
    orr__json_frame stack[ORR_JSON_DEPTH];
};

static inline orr_code orr__json_no_memory(orr_json *j)
{
    return orr_no_memory(&j->error);
}

/* May this byte follow a number or a literal? */
static inline bool orr__json_delimits(char c)
{
    switch (c) {
    case ' ':
    case '\t':
    case '\n':
    case '\r':
    case ',':
    case ':':
    case '[':
    case ']':
    case '{':
    case '}':
        return true;
    default:
        return false;
    }
}

/* For tests: pieces of any size, so that a piece can end anywhere. */
orr_code orr__json_open_pieces(
    orr_span bytes, const char *path, size_t piece_size, orr_json **out, orr_error *err);

#endif
