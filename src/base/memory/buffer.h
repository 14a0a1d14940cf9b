/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.h - bytes that grow: what writers write into before it goes to a file.
 *
 * A buffer records running out of memory (`failed`), so a writer appends freely and checks once at
 * the end. */
#ifndef ORR_BASE_BUFFER_H
#define ORR_BASE_BUFFER_H

#include "memory.h"

#include <string.h>

typedef struct orr_buf {
    uint8_t *ptr;
    size_t len, room;
    bool failed;
} orr_buf;

void orr_buf_fini(orr_buf *b);

/* Room for n more bytes at ptr + len; NULL (and failed set) when memory ran out. */
static inline uint8_t *orr_buf_reserve(orr_buf *b, size_t n)
{
    if (b->room - b->len < n || !b->ptr) {
        size_t need;
        if (b->failed || !orr_add_size(b->len, n, &need) ||
            !orr_grow(&b->ptr, &b->room, need ? need : 1)) {
            b->failed = true;
            return NULL;
        }
    }
    return b->ptr + b->len;
}

static inline void orr_buf_add(orr_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return; /* an empty buffer has no address to count from */
    uint8_t *to = orr_buf_reserve(b, n);
    if (to) {
        memcpy(to, p, n);
        b->len += n;
    }
}

static inline void orr_buf_byte(orr_buf *b, uint8_t c)
{
    uint8_t *to = orr_buf_reserve(b, 1);
    if (to) {
        *to = c;
        b->len++;
    }
}

static inline void orr_buf_text(orr_buf *b, const char *s)
{
    orr_buf_add(b, s, strlen(s));
}

void orr_buf_print(orr_buf *b, const char *fmt, ...) ORR_PRINTF(2, 3);
void orr_buf_u64(orr_buf *b, uint64_t v); /* decimal */
void orr_buf_i64(orr_buf *b, int64_t v);  /* decimal */

#endif
