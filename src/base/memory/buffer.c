/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - the parts of orr_buf that are not worth inlining. */
#include "buffer.h"

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

/* Two digits at a time: half the divisions, and divisions are what decimal output costs. */
static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

void orr_buf_u64(orr_buf *b, uint64_t v)
{
    char digits[20], *p = digits + sizeof digits;
    while (v >= 100) {
        p -= 2;
        memcpy(p, pairs + 2 * (v % 100), 2);
        v /= 100;
    }
    if (v >= 10) {
        p -= 2;
        memcpy(p, pairs + 2 * v, 2);
    } else {
        *--p = (char)('0' + v);
    }
    orr_buf_add(b, p, (size_t)(digits + sizeof digits - p));
}

void orr_buf_i64(orr_buf *b, int64_t v)
{
    if (v < 0)
        orr_buf_byte(b, '-');
    orr_buf_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
