/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - the rare parts of the wire format: groups, UTF-8 beyond ASCII, lengths put in
 * afterwards. */
#include "wire.h"

/* Groups are gone from proto3, but a reader must be able to step over one.  They nest, and a
 * hostile file nests them deeply, so this counts instead of recursing. */
bool orr__wire_group(orr_wire *w, orr_field *f)
{
    uint32_t open[ORR_WIRE_MAX_DEPTH];
    unsigned depth = 0;
    const uint8_t *const first = w->at;
    open[depth++] = f->number;
    for (;;) {
        uint64_t tag;
        orr_field inner = {.start = w->at};
        if (!orr_wire_varint(w, &tag))
            return false;
        inner.number = (uint32_t)(tag >> 3);
        inner.type = (uint32_t)(tag & 7);
        if (tag >> 32 || inner.number == 0)
            return orr__wire_bad(w, inner.start, "a field has an impossible number");
        if (inner.type == ORR_WIRE_END_GROUP) {
            if (inner.number != open[--depth])
                return orr__wire_bad(w, inner.start, "a group ends that was not begun");
            if (depth == 0) {
                f->bytes = (orr_span){first, (size_t)(inner.start - first)};
                return true;
            }
        } else if (inner.type == ORR_WIRE_GROUP) {
            if (depth == ORR_WIRE_MAX_DEPTH)
                return orr__wire_bad(w, inner.start, "groups are nested more than 100 deep");
            open[depth++] = inner.number;
        } else if (!orr_wire_value(w, &inner)) {
            return false;
        }
    }
}

/* One character; NULL when it is not one. */
static const uint8_t *utf8_step(const uint8_t *p, const uint8_t *end)
{
    const uint8_t c = *p;
    unsigned more;
    uint8_t low = 0x80, high = 0xbf; /* bounds of the second byte */
    if (c < 0x80)
        return p + 1;
    if (c >= 0xc2 && c <= 0xdf)
        more = 1;
    else if (c >= 0xe0 && c <= 0xef)
        more = 2;
    else if (c >= 0xf0 && c <= 0xf4)
        more = 3;
    else
        return NULL;
    if (c == 0xe0)
        low = 0xa0;
    if (c == 0xed)
        high = 0x9f;
    if (c == 0xf0)
        low = 0x90;
    if (c == 0xf4)
        high = 0x8f;
    if ((size_t)(end - p) <= more || p[1] < low || p[1] > high)
        return NULL;
    for (unsigned i = 2; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80)
            return NULL;
    return p + more + 1;
}

const uint8_t *orr_utf8_bad(const uint8_t *p, size_t len)
{
    const uint8_t *const end = p + len;
    while (p < end) {
        const uint8_t *next = utf8_step(p, end);
        if (!next)
            return p;
        p = next;
    }
    return NULL;
}

bool orr__utf8_slow(const uint8_t *p, const uint8_t *end)
{
    return !orr_utf8_bad(p, (size_t)(end - p));
}

void orr_put_end(orr_buf *b, size_t begin)
{
    const size_t len = b->len - begin;
    const unsigned size = orr_varint_size(len);
    if (!orr_buf_reserve(b, size))
        return;
    memmove(b->ptr + begin + size, b->ptr + begin, len);
    orr_varint_store(b->ptr + begin, len);
    b->len += size;
}
