/* SPDX-License-Identifier: Apache-2.0 */
/* json_view_impl.h - what the files of the JSON view share: the leads, and the pieces of text.
 *
 * Every line of the output starts with one of a few strings: a comma, a line break, indentation, a key.
 * These leads are put together once per form (orr__layout) and copied as blocks of fixed size.  The comma in
 * front of an object's first member becomes its '{', that in front of an array's first item its '[': `open`
 * is the character due next.  So no byte is changed once it is written, and the buffer can be emptied at any
 * point.  Each piece takes the place to write at and returns the place behind. */
#ifndef ORR_JSON_VIEW_IMPL_H
#define ORR_JSON_VIEW_IMPL_H

#include <orrery/view.h>

#include "base/io/output.h"
#include "base/text/number.h"
#include "trace/trace_impl.h"

enum {
    ORR__SHOW_ROOM = 1 << 18, /* of the buffer */
    ORR__SHOW_PART =
        3 << 12,          /* texts are written in parts of so many bytes; three make whole base64 */
    ORR__SHOW_GROWTH = 6, /* a control character becomes six: \u0001 */
    ORR__LEAD = 48,       /* the longest has 31 bytes: "unknownFields" of a list in a document */
    ORR__LINE = 2 * ORR__LEAD + ORR_NUMBER_ROOM /* any lead, any number, any bracket */
};

/* What is written in front of a value: `,\n      "name": `. */
typedef struct orr__lead {
    char text[ORR__LEAD];
    size_t len;
} orr__lead;

/* The leads of one form at one depth. */
typedef struct orr__layout {
    orr__lead version, meta_attr;
    orr__lead id, name, type, ctrl, data, start, duration, inputs, outputs, attr, record_unknown;
    orr__lead io[IO_TYPES + 1], io_unknown;
    orr__lead attr_name, doc, member[ATTR_LAST_MEMBER + 1], attr_unknown;
    orr__lead values, list_unknown;
    orr__lead part_item, list_item; /* of dependencies and attributes; of a list attribute */
    orr__lead end_record, end_part, end_attr, end_list, end_values; /* before closing brackets */
} orr__layout;

typedef struct orr__show {
    orr_output *to;
    uint8_t *text, *text_end;
    const orr__layout *lay;
    uint64_t shift;
    bool keeps_unknown;   /* fields that the schema does not have are written as base64 */
    bool names_all_types; /* node types 8 to 10 by name: the old jsonizer does not know them */
    orr_buf unknown;
} orr__show;

uint8_t *orr__show_node(orr__show *v, uint8_t *p, orr_span body);
uint8_t *orr__show_meta(orr__show *v, uint8_t *p, orr_span body);

uint8_t *orr__show_i64(uint8_t *p, int64_t v);
uint8_t *orr__show_double(uint8_t *p, uint64_t bits);
uint8_t *orr__show_float(uint8_t *p, uint32_t bits);
uint8_t *orr__show_base64(const orr__show *v, uint8_t *p, orr_span s);
/* One character that cannot stand for itself.  *at moves behind it. */
uint8_t *orr__show_escape(uint8_t *p, const uint8_t **at, const uint8_t *end);

/* Room for n bytes, n at most ORR__SHOW_ROOM. */
static inline uint8_t *orr__show_need(const orr__show *v, uint8_t *p, size_t n)
{
    if (__builtin_expect((size_t)(v->text_end - p) >= n, 1))
        return p;
    orr_output_add(v->to, v->text, (size_t)(p - v->text));
    return v->text;
}

/* Whole blocks are copied: quicker than asking how long they are.  Leaves room for a number behind. */
static inline uint8_t *orr__show_lead(const orr__show *v,
                                      uint8_t *p,
                                      const orr__lead *l,
                                      char *open)
{
    p = orr__show_need(v, p, ORR__LINE);
    memcpy(p, l->text, ORR__LEAD);
    *p = (uint8_t)*open;
    *open = ',';
    return p + l->len;
}

/* The closing bracket; nothing inside: both brackets, without a line break. */
static inline uint8_t *orr__show_end(
    const orr__show *v, uint8_t *p, const orr__lead *l, char open, char close)
{
    p = orr__show_need(v, p, ORR__LINE);
    if (open == ',') {
        memcpy(p, l->text, ORR__LEAD);
        p += l->len;
    } else {
        *p++ = (uint8_t)open;
    }
    *p++ = (uint8_t)close;
    return p;
}

static inline uint8_t *orr__show_word(uint8_t *p, const char *word)
{
    const size_t n = strlen(word);
    memcpy(p, word, n);
    return p + n;
}

static inline uint8_t *orr__show_u64(uint8_t *p, uint64_t v)
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    uint8_t digits[20], *d = digits + sizeof digits;
    for (; v >= 100; v /= 100)
        memcpy(d -= 2, pairs + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(d -= 2, pairs + 2 * v, 2);
    else
        *--d = (uint8_t)('0' + v);
    const size_t n = (size_t)(digits + sizeof digits - d);
    memcpy(p, d, n);
    return p + n;
}

/* 64-bit integers are strings in protobuf's JSON: JavaScript would round them. */
static inline uint8_t *orr__show_quoted(uint8_t *p, uint64_t v)
{
    *p++ = '"';
    p = orr__show_u64(p, v);
    *p++ = '"';
    return p;
}

static inline bool orr__is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Are all eight bytes plain?  Each term has the high bit of some byte set when one is below 0x20, a quote,
 * a backslash, or 0x7f and above. */
static inline bool orr__are_plain(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    const uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
    const uint64_t found = ((x - ones * 0x20) & ~x) | ((quote - ones) & ~quote) |
                           ((backslash - ones) & ~backslash) | (x + ones) | x;
    return (found & high) == 0;
}

/* From *at to stop, or a little further where a character reaches over it; `end` is that of the text. */
static inline uint8_t *orr__show_part(uint8_t *p,
                                      const uint8_t **at,
                                      const uint8_t *stop,
                                      const uint8_t *end)
{
    const uint8_t *s = *at;
    uint64_t eight;
    while (s < stop) {
        for (; stop - s >= 8; s += 8, p += 8) {
            memcpy(&eight, s, 8);
            if (!orr__are_plain(eight))
                break;
            memcpy(p, &eight, 8);
        }
        while (s < stop && orr__is_plain(*s))
            *p++ = *s++;
        if (s < stop)
            p = orr__show_escape(p, &s, end);
    }
    *at = s;
    return p;
}

static inline uint8_t *orr__show_text(const orr__show *v, uint8_t *p, orr_span s)
{
    const uint8_t *at = s.ptr, *const end = s.ptr + s.len;
    p = orr__show_need(v, p, ORR__LINE);
    *p++ = '"';
    while (at < end) {
        const size_t left = (size_t)(end - at);
        const size_t part = left < ORR__SHOW_PART ? left : ORR__SHOW_PART;
        p = orr__show_need(v, p, ORR__SHOW_GROWTH * part + ORR__LINE);
        p = orr__show_part(p, &at, at + part, end);
    }
    *p++ = '"';
    return p;
}

#endif
