/* SPDX-License-Identifier: Apache-2.0 */
/* rank_list.c - numbers are bounded before they are multiplied further, so any text ends. */
#include "rank_list.h"

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
                    "ranks to show: \"%s\" is not \"all\", and no list of ranks such as 0-7,12",
                    text);
}
