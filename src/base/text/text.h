/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - the few things one does with an orr_str, the shape of UTF-8, lists of ranks, the word
 * that was probably meant, and text into arrays. */
#ifndef ORR_BASE_TEXT_H
#define ORR_BASE_TEXT_H

#include <orrery/error.h>
#include <orrery/types.h>

#include <string.h>

static inline bool orr_str_equal(orr_str a, orr_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Is s this word?  With a literal the length is constant, and the comparison is by machine
 * words. */
static inline bool orr_str_is(orr_str s, const char *word)
{
    const size_t n = strlen(word);
    return s.len == n && (n == 0 || memcmp(s.ptr, word, n) == 0);
}

static inline bool orr_str_begins(orr_str s, const char *word)
{
    const size_t n = strlen(word);
    return s.len >= n && memcmp(s.ptr, word, n) == 0;
}

static inline bool orr_str_ends(orr_str s, const char *word)
{
    const size_t n = strlen(word);
    return s.len >= n && memcmp(s.ptr + s.len - n, word, n) == 0;
}

/* Does the word occur in s? */
static inline bool orr_str_has(orr_str s, const char *word)
{
    return s.len && memmem(s.ptr, s.len, word, strlen(word));
}

/* The same for a text that ends in a NUL. */
static inline bool orr_text_ends(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && memcmp(s + n - m, end, m) == 0;
}

/* A file name with this suffix, and something before it. */
static inline bool orr_has_suffix(const char *path, const char *suffix)
{
    return strlen(path) > strlen(suffix) && orr_text_ends(path, suffix);
}

/* ASCII classes, independent of the locale. */
static inline bool orr_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool orr_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool orr_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool orr__utf8_follows(uint8_t c)
{
    return (c & 0xC0) == 0x80;
}

/* How many bytes the character at p has, of the n > 0 bytes there; 0: not valid UTF-8.  Overlong
 * forms, surrogates and values above U+10FFFF are not valid. */
static inline size_t orr_utf8_length(const uint8_t *p, size_t n)
{
    const uint8_t c = p[0];
    if (c < 0x80)
        return 1;
    if (c < 0xC2 || c > 0xF4 || n < 2 || !orr__utf8_follows(p[1]))
        return 0;
    if (c < 0xE0)
        return 2;
    if (n < 3 || !orr__utf8_follows(p[2]))
        return 0;
    if (c < 0xF0)
        return (c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] >= 0xA0) ? 0 : 3;
    if (n < 4 || !orr__utf8_follows(p[3]))
        return 0;
    return (c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] >= 0x90) ? 0 : 4;
}

/* Is byte i part of a terminal control character?  C0 and delete are one byte, C1 (U+0080 to
 * U+009F) two in UTF-8.  A stray byte in that range controls terminals that do not decode UTF-8. */
static inline bool orr_is_control(orr_str s, size_t i)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    if (p[i] < 0x80 || p[i] >= 0xA0)
        return p[i] < 0x20 || p[i] == 0x7f || (p[i] == 0xC2 && i + 1 < s.len && p[i + 1] < 0xA0);
    for (size_t back = 1; back <= 3 && back <= i; back++) {
        const uint8_t *first = p + i - back;
        if (!orr__utf8_follows(*first))
            return *first == 0xC2 || orr_utf8_length(first, s.len - (i - back)) <= back;
    }
    return true;
}

/* Write the character with this number (below 0x110000) as UTF-8; returns its length, 1 to 4. */
static inline size_t orr_utf8_put(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* The number of the character of `length` valid bytes at p. */
static inline uint32_t orr_utf8_get(const uint8_t *p, size_t length)
{
    switch (length) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
    case 3:
        return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    default:
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 |
               (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    }
}

/* "1 rank", "2 ranks": "%" PRIu64 " rank%s", n, orr__plural(n). */
static inline const char *orr__plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- lists of ranks as users write them: 0-7,12 ---- */

/* The next range of text, both ends inclusive; *at starts as text.  ORR_END after the last. */
ORR_MUST_CHECK orr_code orr_rank_list_next(
    const char *text, const char **at, uint32_t *first, uint32_t *last, orr_error *err);

/* ---- the word that was probably meant ---- */

/* The word of a NULL-terminated list with the fewest edits from what was typed; NULL: none is
 * close.  Cost: the product of the lengths, per word; long words are close to none. */
const char *orr_nearest(orr_str typed, const char *const *known);
/* "a, b, c", as much as fits; the rest is "...". */
void orr_list_words(const char *const *known, char *out, size_t room);

/* "198-231": an interval in the unit of a text such as "213 ms"; low and high in ps.  Empty: the
 * text has no unit. */
char *orr_ends_text(const char *value, double low_ps, double high_ps, char *out, size_t size);

/* ---- pen ----
 *
 * Text into the caller's array, as snprintf does: what does not fit is counted and left out.
 *
 *     orr_pen pen = {.out = out, .size = size};
 *     orr_pen_put(&pen, "name: \"%s\"\n", name);
 *     orr_pen_unit(&pen, "clock", hz, orr_pen_frequencies);    // "clock: 940MHz"
 *     return pen.used; */

typedef struct orr_pen {
    char *out;
    size_t size, used;
} orr_pen;

/* Units of one quantity, largest first; the last divides everything. */
typedef struct orr_pen_units {
    uint64_t size;
    const char *word;
} orr_pen_units;

extern const orr_pen_units orr_pen_frequencies[], orr_pen_rates[], orr_pen_sizes[], orr_pen_times[];

ORR_PRINTF(2, 3) void orr_pen_put(orr_pen *pen, const char *fmt, ...);

/* "key: value" in the largest unit in which the value is an integer, so that it reads back the
 * same; a value of 0 is unknown, and left out.  In Hz, B/s, B and ps. */
void orr_pen_unit(orr_pen *pen, const char *key, uint64_t value, const orr_pen_units *units);

#endif
