/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - the parts of orr_buf that are not worth inlining. */
#include "buffer.h"

#include "base/text/number.h"

#include <stdarg.h>
#include <stdio.h>

void orr_buf_fini(orr_buf *b)
{
    orr_free(b->ptr);
    *b = (orr_buf){0};
}

void orr_buf_print(orr_buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    uint8_t *to = len < 0 ? NULL : orr_buf_reserve(b, (size_t)len + 1);
    if (to) {
        vsnprintf((char *)to, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

void orr_buf_u64(orr_buf *b, uint64_t v)
{
    uint8_t *to = orr_buf_reserve(b, ORR_U64_ROOM);
    if (to)
        b->len += orr_u64_text(v, (char *)to);
}

void orr_buf_i64(orr_buf *b, int64_t v)
{
    if (v < 0)
        orr_buf_byte(b, '-');
    orr_buf_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
