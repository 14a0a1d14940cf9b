/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - three bytes are four characters.  Plain loops: bytes are rare in traces. */
#include "base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t *put_three(uint8_t *out, uint32_t bits)
{
    out[0] = (uint8_t)alphabet[bits >> 18];
    out[1] = (uint8_t)alphabet[bits >> 12 & 63];
    out[2] = (uint8_t)alphabet[bits >> 6 & 63];
    out[3] = (uint8_t)alphabet[bits & 63];
    return out + 4;
}

uint8_t *orr_base64_put(uint8_t *out, orr_span in)
{
    const uint8_t *p = in.ptr;
    size_t left = in.len;
    for (; left >= 3; left -= 3, p += 3)
        out = put_three(out, (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]);
    if (left == 0)
        return out;
    out = put_three(out, (uint32_t)p[0] << 16 | (left == 2 ? (uint32_t)p[1] << 8 : 0));
    out[-1] = '=';
    if (left == 1)
        out[-2] = '=';
    return out;
}

/* 0 to 63; anything else: not a character of either alphabet. */
static uint32_t digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : 64;
}

/* Padding, where there is any, fills the last four characters. */
static size_t without_padding(orr_str in)
{
    if (in.len == 0 || in.len % 4 != 0 || in.ptr[in.len - 1] != '=')
        return in.len;
    return in.ptr[in.len - 2] == '=' ? in.len - 2 : in.len - 1;
}

bool orr_base64_get(orr_str in, uint8_t *out, size_t *len_out, size_t *bad_out)
{
    const size_t n = without_padding(in);
    uint32_t bits = 0;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t d = digit(in.ptr[i]);
        *bad_out = i;
        if (d > 63)
            return false;
        bits = bits << 6 | d;
        if (i % 4 != 0)
            out[len++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *len_out = len;
    *bad_out = in.len;
    return n % 4 != 1;
}
