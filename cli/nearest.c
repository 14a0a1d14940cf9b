/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - "did you mean": the candidate with the fewest typing mistakes between it and what was typed.
 *
 * A mistake is a letter too many, too few, wrong, or two neighbours swapped (the restricted
 * Damerau-Levenshtein distance).  A candidate is near when at most a third of its letters are wrong, or when
 * what was typed is its beginning.  Ties: the candidate that came first. */
#include "option.h"

#include <string.h>

enum { NAME_MAX_LEN = 48, FAR_AWAY = 1000 };

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    /* Three rows of the usual table: two back (for swaps), one back, the current one. */
    int rows[3][NAME_MAX_LEN + 1];
    const size_t la = strlen(a), lb = strlen(b);
    if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
        return FAR_AWAY;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int *now = rows[i % 3];
        const int *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            now[j] = min_of(up[j - 1] + (a[i - 1] != b[j - 1]), 1 + min_of(up[j], now[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_of(now[j], up2[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

static int badness(const char *typed, const char *candidate)
{
    const size_t len = strlen(candidate);
    const int limit = len < 3 ? 0 : (int)((len + 2) / 3);
    const int d = distance(typed, candidate);
    if (d <= limit)
        return d;
    return typed[0] && typed[1] && strncmp(candidate, typed, strlen(typed)) == 0 ? limit + 1
                                                                                 : FAR_AWAY;
}

const char *cli_nearer(const char *typed, const char *best, const char *candidate)
{
    const int old = best ? badness(typed, best) : FAR_AWAY;
    return badness(typed, candidate) < old ? candidate : best;
}
