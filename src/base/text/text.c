/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - the nearest word, lists of ranks, text into arrays.
 *
 * The nearest word: letters to insert, remove, replace or swap, counted in the usual table, of
 * which three rows are kept. */
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 48, FAR = 1000 };

static unsigned lesser(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(orr_str a, orr_str b)
{
    unsigned rows[3][MOST + 1];
    if (a.len > MOST || b.len > MOST)
        return FAR;
    for (unsigned j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned *now = rows[i % 3];
        const unsigned *up = rows[(i - 1) % 3], *above = rows[(i + 1) % 3];
        now[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            now[j] =
                lesser(up[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]), 1 + lesser(up[j], now[j - 1]));
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                now[j] = lesser(now[j], above[j - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

const char *orr_nearest(orr_str typed, const char *const *known)
{
    const char *best = NULL;
    unsigned least = FAR;
    for (; *known; known++) {
        const orr_str word = {*known, strlen(*known)};
        const unsigned d = distance(typed, word),
                       limit = word.len < 4 ? 0 : (unsigned)(word.len + 2) / 4;
        if (d <= limit && d < least) {
            best = *known;
            least = d;
        }
    }
    return best;
}

void orr_list_words(const char *const *known, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (; *known; known++) {
        const size_t n = strlen(*known), comma = at ? 2 : 0;
        if (at + comma + n + 6 > room) {
            if (at + 6 <= room)
                memcpy(out + at, ", ...", 6);
            return;
        }
        memcpy(out + at, ", ", comma);
        memcpy(out + at + comma, *known, n + 1);
        at += comma + n;
    }
}

/* ---- lists of ranks ----
 *
 * Numbers are bounded before they are multiplied further, so any text ends. */

/* Digits at *at, which moves after them; UINT32_MAX is no rank. */
static bool take_number(const char **at, uint32_t *out)
{
    uint64_t v = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9' && v < UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == *at || v >= UINT32_MAX)
        return false;
    *at = p;
    *out = (uint32_t)v;
    return true;
}

static bool take_range(const char *text, const char **at, uint32_t *first, uint32_t *last)
{
    if (*at != text && *(*at)++ != ',')
        return false;
    if (!take_number(at, first))
        return false;
    *last = *first;
    if (**at != '-')
        return true;
    ++*at;
    return take_number(at, last) && *last >= *first;
}

orr_code orr_rank_list_next(
    const char *text, const char **at, uint32_t *first, uint32_t *last, orr_error *err)
{
    if (*at != text && **at == '\0')
        return ORR_END;
    if (take_range(text, at, first, last))
        return ORR_OK;
    return orr_fail(err, ORR_EUSAGE, NULL,
                    "ranks to show: \"%s\" is neither \"all\" nor a list of ranks such as 0-7,12",
                    text);
}

/* ---- pen ----
 *
 * Text into an array of the caller. */

const orr_pen_units orr_pen_frequencies[] = {{1000000, "MHz"}, {1000, "kHz"}, {1, "Hz"}};
const orr_pen_units orr_pen_rates[] = {{1000000000, "GB/s"}, {1000000, "MB/s"}, {1, "B/s"}};
const orr_pen_units orr_pen_sizes[] = {
    {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}};
const orr_pen_units orr_pen_times[] = {{1000000, "us"}, {1000, "ns"}, {1, "ps"}};

char *orr_ends_text(const char *value, double low_ps, double high_ps, char *out, size_t size)
{
    const char *unit = strchr(value, ' ');
    const char first = unit ? unit[1] : '\0';
    const double scale = first == 's'   ? 1e12
                         : first == 'm' ? 1e9
                         : first == 'u' ? 1e6
                         : first == 'n' ? 1e3
                                        : 1;
    const double high = high_ps / scale;
    const int digits = high >= 100 ? 0 : high >= 10 ? 1 : 2;
    if (size)
        out[0] = '\0';
    if (unit)
        snprintf(out, size, "%.*f-%.*f", digits, low_ps / scale, digits, high);
    return out;
}

void orr_pen_put(orr_pen *pen, const char *fmt, ...)
{
    const size_t at = pen->used < pen->size ? pen->used : pen->size;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(pen->size ? pen->out + at : NULL, pen->size - at, fmt, args);
    va_end(args);
    pen->used += n > 0 ? (size_t)n : 0;
}

void orr_pen_unit(orr_pen *pen, const char *key, uint64_t value, const orr_pen_units *units)
{
    if (value == 0)
        return;
    while (value % units->size)
        units++;
    orr_pen_put(pen, "%s: %" PRIu64 "%s\n", key, value / units->size, units->word);
}
