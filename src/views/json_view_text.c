/* SPDX-License-Identifier: Apache-2.0 */
/* json_view_text.c - the rarer pieces of text: signed and real numbers, escapes, bytes.
 *
 * As Python's json.dumps with its default ensure_ascii writes them, since that is what the old jsonizer
 * prints: everything outside the visible ASCII characters is escaped, 0x7f too (chakra.md section 8). */
#include "json_view_impl.h"

#include "base/text/base64.h"
#include "base/text/text.h"

uint8_t *orr__show_i64(uint8_t *p, int64_t v)
{
    if (v >= 0)
        return orr__show_u64(p, (uint64_t)v);
    *p++ = '-';
    return orr__show_u64(p, 0 - (uint64_t)v);
}

/* The words that protobuf's JSON has for what JSON cannot say; NULL for a finite number. */
static const char *word_for(double v)
{
    if (v != v)
        return "\"NaN\"";
    if (v - v == 0)
        return NULL;
    return v > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

uint8_t *orr__show_double(uint8_t *p, uint64_t bits)
{
    char text[ORR_NUMBER_ROOM];
    double d;
    memcpy(&d, &bits, 8);
    const char *word = word_for(d);
    if (word)
        return orr__show_word(p, word);
    const size_t n = orr_double_text(d, text);
    memcpy(p, text, n);
    return p + n;
}

uint8_t *orr__show_float(uint8_t *p, uint32_t bits)
{
    char text[ORR_NUMBER_ROOM];
    float f;
    memcpy(&f, &bits, 4);
    const char *word = word_for((double)f);
    if (word)
        return orr__show_word(p, word);
    const size_t n = orr_float_text(f, text);
    memcpy(p, text, n);
    return p + n;
}

static uint8_t *put_code(uint8_t *p, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    p[0] = '\\';
    p[1] = 'u';
    for (unsigned i = 0; i < 4; i++)
        p[2 + i] = (uint8_t)hex[unit >> (12 - 4 * i) & 15];
    return p + 6;
}

static char letter_for(uint8_t c)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c < 32)
        return letters[c];
    return c == '"' || c == '\\' ? (char)c : 0;
}

uint8_t *orr__show_escape(uint8_t *p, const uint8_t **at, const uint8_t *end)
{
    const char letter = letter_for(**at);
    if (letter) {
        p[0] = '\\';
        p[1] = (uint8_t)letter;
        ++*at;
        return p + 2;
    }
    const size_t n = orr_utf8_length(*at, (size_t)(end - *at));
    uint32_t number = n ? orr_utf8_get(*at, n) : 0xFFFD;
    *at += n ? n : 1;
    if (number < 0x10000)
        return put_code(p, number);
    number -= 0x10000;
    p = put_code(p, 0xD800 + (number >> 10));
    return put_code(p, 0xDC00 + (number & 0x3FF));
}

uint8_t *orr__show_base64(const orr__show *v, uint8_t *p, orr_span s)
{
    p = orr__show_need(v, p, ORR__LINE);
    *p++ = '"';
    while (s.len) {
        const size_t part = s.len < ORR__SHOW_PART ? s.len : ORR__SHOW_PART;
        p = orr__show_need(v, p, orr_base64_length(part) + ORR__LINE);
        p = orr_base64_put(p, (orr_span){s.ptr, part});
        s = (orr_span){s.ptr + part, s.len - part};
    }
    *p++ = '"';
    return p;
}
