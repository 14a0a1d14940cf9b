/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - the protobuf wire format: reading and writing single fields.
 *
 *     orr_wire w = orr_wire_of(span);
 *     while (orr_wire_next(&w, &f))          // f.number, f.type, f.value or f.bytes
 *         ...
 *     if (w.why) ...                          // w.why: what was wrong, w.at: where
 *
 * All in this header: reading a field is a handful of instructions and sits in the innermost loop
 * of every trace reader.  A reader never steps outside [at, end), for any bytes. */
#ifndef ORR_BASE_WIRE_H
#define ORR_BASE_WIRE_H

#include "base/memory/buffer.h"

enum {
    ORR_WIRE_VARINT = 0,
    ORR_WIRE_I64 = 1,
    ORR_WIRE_LEN = 2,
    ORR_WIRE_GROUP = 3,
    ORR_WIRE_END_GROUP = 4,
    ORR_WIRE_I32 = 5
};
enum { ORR_WIRE_MAX_DEPTH = 100 };

typedef struct orr_wire {
    const uint8_t *at, *end;
    const char *why; /* NULL, or what is wrong at `at` */
} orr_wire;

typedef struct orr_field {
    uint32_t number;
    uint32_t type;
    uint64_t value;       /* VARINT, I64, I32 */
    orr_span bytes;       /* LEN; for a group: all of it without its end tag */
    const uint8_t *start; /* of the tag */
} orr_field;

static inline orr_wire orr_wire_of(orr_span s)
{
    return (orr_wire){s.ptr, s.len ? s.ptr + s.len : s.ptr,
                      NULL}; /* an empty span may be at NULL */
}

static inline bool orr__wire_bad(orr_wire *w, const uint8_t *at, const char *why)
{
    w->at = at;
    w->why = why;
    return false;
}

/* Slow path: two bytes or more, or near the end.  Bits past the 64th are dropped, as in
 * protobuf. */
static inline bool orr__wire_varint_slow(orr_wire *w, uint64_t *out)
{
    const uint8_t *p = w->at;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == w->end)
            return orr__wire_bad(w, w->at, "the record ends inside a number");
        const uint64_t b = *p++;
        if (shift < 64)
            v |= (b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            w->at = p;
            return true;
        }
    }
    return orr__wire_bad(w, w->at, "a number is longer than ten bytes");
}

static inline bool orr_wire_varint(orr_wire *w, uint64_t *out)
{
    const uint8_t *p = w->at;
    if (w->end - p >= 2) {
        const uint64_t b0 = p[0];
        if (b0 < 0x80) {
            *out = b0;
            w->at = p + 1;
            return true;
        }
        const uint64_t b1 = p[1];
        if (b1 < 0x80) {
            *out = (b0 & 0x7f) | b1 << 7;
            w->at = p + 2;
            return true;
        }
    }
    return orr__wire_varint_slow(w, out);
}

static inline uint64_t orr__load_le(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline bool orr_wire_fixed(orr_wire *w, unsigned n, uint64_t *out)
{
    if ((size_t)(w->end - w->at) < n)
        return orr__wire_bad(w, w->at, "the record ends inside a fixed-size number");
    *out = n == 8 ? orr__load_le(w->at, 8) : orr__load_le(w->at, 4);
    w->at += n;
    return true;
}

static inline bool orr_wire_bytes(orr_wire *w, orr_span *out)
{
    uint64_t n;
    const uint8_t *start = w->at;
    if (!orr_wire_varint(w, &n))
        return false;
    if (n > (uint64_t)(w->end - w->at))
        return orr__wire_bad(w, start, "a length is larger than the rest of the record");
    *out = (orr_span){w->at, (size_t)n};
    w->at += n;
    return true;
}

bool orr__wire_group(orr_wire *w, orr_field *f); /* the rest of a group; rare, so not inline */

static inline bool orr_wire_value(orr_wire *w, orr_field *f)
{
    switch (f->type) {
    case ORR_WIRE_VARINT:
        return orr_wire_varint(w, &f->value);
    case ORR_WIRE_LEN:
        return orr_wire_bytes(w, &f->bytes);
    case ORR_WIRE_I64:
        return orr_wire_fixed(w, 8, &f->value);
    case ORR_WIRE_I32:
        return orr_wire_fixed(w, 4, &f->value);
    case ORR_WIRE_GROUP:
        return orr__wire_group(w, f);
    default:
        return orr__wire_bad(w, f->start, "a field has an impossible wire type");
    }
}

/* False at the end and on damage; w->why tells which. */
static inline bool orr_wire_next(orr_wire *w, orr_field *f)
{
    uint64_t tag;
    if (w->at == w->end)
        return false;
    f->start = w->at;
    if (!orr_wire_varint(w, &tag))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    if (tag >> 32 || f->number == 0)
        return orr__wire_bad(w, f->start, "a field has an impossible number");
    return orr_wire_value(w, f);
}

static inline uint64_t orr_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}
static inline int64_t orr_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* Is it UTF-8?  (Overlong forms, surrogates and values past U+10FFFF are not.) */
bool orr__utf8_slow(const uint8_t *p, const uint8_t *end);
const uint8_t *orr_utf8_bad(const uint8_t *p,
                            size_t len); /* the first byte that is not; NULL: it is UTF-8 */
static inline bool orr_is_utf8(const uint8_t *p, size_t len)
{
    if (len == 0)
        return true; /* p may be NULL */
    const uint8_t *const end = p + len;
    const uint64_t tops = 0x8080808080808080u;
    uint64_t eight;
    if (len < 8) {
        uint8_t any = 0;
        while (p < end)
            any |= *p++;
        return any < 0x80 || orr__utf8_slow(end - len, end);
    }
    for (; end - p > 8; p += 8) {
        memcpy(&eight, p, 8);
        if (eight & tops)
            return orr__utf8_slow(p, end);
    }
    memcpy(&eight, end - 8, 8); /* what is left and some of what was seen */
    return !(eight & tops) || orr__utf8_slow(p, end);
}

/* ---- writing ---- */

/* Seven bits per byte: (highest bit) / 7 + 1, as a product, for each of the 64 bits there are. */
static inline unsigned orr_varint_size(uint64_t v)
{
    return ((63 ^ (unsigned)__builtin_clzll(v | 1)) * 9 + 73) / 64;
}

static inline uint8_t *orr_varint_store(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline void orr_put_varint(orr_buf *b, uint64_t v)
{
    uint8_t *p = orr_buf_reserve(b, 10);
    if (p)
        b->len += (size_t)(orr_varint_store(p, v) - p);
}

static inline void orr_put_tag(orr_buf *b, uint32_t number, uint32_t type)
{
    orr_put_varint(b, (uint64_t)number << 3 | type);
}

static inline void orr_put_uint(orr_buf *b, uint32_t number, uint64_t v)
{
    orr_put_tag(b, number, ORR_WIRE_VARINT);
    orr_put_varint(b, v);
}

static inline void orr_put_fixed(orr_buf *b, unsigned n, uint64_t v)
{
    uint8_t *p = orr_buf_reserve(b, n);
    if (!p)
        return;
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
    b->len += n;
}

static inline void orr_put_bytes(orr_buf *b, uint32_t number, const void *p, size_t len)
{
    orr_put_tag(b, number, ORR_WIRE_LEN);
    orr_put_varint(b, len);
    orr_buf_add(b, p, len);
}

/* A message whose length is known only when it is written: begin, write its fields, end.  The bytes
 * move up by the length's size at the end, which for our records (about 100 bytes) beats measuring
 * twice. */
static inline size_t orr_put_begin(const orr_buf *b)
{
    return b->len;
}
void orr_put_end(orr_buf *b,
                 size_t begin); /* inserts the length in front of what was written since begin */

#endif
