/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes as text, RFC 4648 section 4: how protobuf's JSON form writes them. */
#ifndef ORR_BASE_BASE64_H
#define ORR_BASE_BASE64_H

#include <orrery/types.h>

/* The length of n bytes as text, padding included. */
static inline size_t orr_base64_length(size_t n)
{
    return n / 3 * 4 + (n % 3 ? 4 : 0);
}

/* out has room for orr_base64_length(in.len); returns what lies after the last character. */
uint8_t *orr_base64_put(uint8_t *out, orr_span in);

/* The standard and the URL alphabet, with or without padding, as protobuf reads it.  out has room
 * for in.len / 4 * 3 + 2 bytes.  False: *bad_out is the place in `in` of the first character that
 * does not belong, or in.len when the text ends inside a byte. */
bool orr_base64_get(orr_str in, uint8_t *out, size_t *len_out, size_t *bad_out);

#endif
