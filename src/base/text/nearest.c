/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - letters to insert, remove, replace or swap, counted in the usual table, of which
 * three rows are kept. */
#include "nearest.h"

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
