/* SPDX-License-Identifier: Apache-2.0 */
/* json_index.h - where the tokens of a piece of JSON begin.  Used by json_reader.c only.
 *
 * The only interface to simdjson: replacing the library changes nothing else.  A token is one of {
 * } [ ] : , a string (its opening quote) or a scalar (its first byte); white space is not a
 * token. */
#ifndef ORR_BASE_JSON_INDEX_H
#define ORR_BASE_JSON_INDEX_H

#include <orrery/types.h>

typedef struct orr__json_index orr__json_index;

typedef enum orr__json_found {
    ORR__JSON_TOKENS,    /* all is well */
    ORR__JSON_IN_STRING, /* the piece ends inside a string */
    ORR__JSON_CONTROL,   /* a control character inside a string */
    ORR__JSON_NOT_UTF8,
    ORR__JSON_TROUBLE /* the library failed for a reason other than the input */
} orr__json_found;

/* For pieces of up to `room` bytes; 4 bytes of memory for each.  is_large: there is enough to read
 * that loading simdjson pays.  NULL: out of memory. */
orr__json_index *orr__json_index_create(size_t room, bool is_large);
void orr__json_index_destroy(orr__json_index *ix); /* NULL is fine */

/* The offsets of the tokens of a piece that begins outside any string.  Reads no byte beyond the
 * piece. *out is valid until the next call, and set only when the answer is ORR__JSON_TOKENS. */
orr__json_found orr__json_index_run(orr__json_index *ix,
                                    orr_span piece,
                                    const uint32_t **out,
                                    size_t *count_out);

#endif
