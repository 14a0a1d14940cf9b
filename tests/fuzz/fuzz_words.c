/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_words.c - any text as what stands behind an option: a time, bytes, a rate, a frequency, a list of ranks, a number,
 * base64.  What is refused has words.  A range of ranks is in order; words made of a number are read again, close to it;
 * bytes come back from base64. */
#include "fuzz_trace.h"

#include "base/text/base64.h"
#include "base/text/number.h"
#include "base/text/text.h"

#include <orrery/lab/units.h>

#include <math.h>

enum { LONGEST = 64, KINDS = 6 };

static void try_ranks(const char *text)
{
    const char *at = text;
    uint32_t first, last;
    orr_error err = {0};
    orr_code code;
    for (int i = 0; (code = orr_rank_list_next(text, &at, &first, &last, &err)) == ORR_OK; i++)
        REQUIRE(i < LONGEST && first <= last && last < UINT32_MAX);
    REQUIRE(code == ORR_END || (code == ORR_EUSAGE && err.message[0]));
}

/* As people write it again: without commas. */
static const char *without_commas(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != ',')
            *to++ = *from;
    *to = '\0';
    return text;
}

/* Three digits count, so that what is read again is no more than a two-hundredth off. */
static void require_near(uint64_t a, uint64_t b)
{
    REQUIRE(fabs((double)a - (double)b) <= (double)a * 0.00501 + 1);
}

static void try_unit(const char *text, unsigned kind)
{
    char words[ORR_UNIT_ROOM];
    orr_error err = {0};
    int64_t v = 0, again = 0;
    uint64_t hz = 0, hz_again = 0;
    const orr_code code = kind == 0   ? orr_time_parse(text, &v, &err)
                          : kind == 1 ? orr_bytes_parse(text, (orr_bytes *)&v, &err)
                          : kind == 2 ? orr_rate_parse(text, (orr_Bps *)&v, &err)
                                      : orr_frequency_parse(text, &hz, &err);
    if (code) {
        REQUIRE(code != ORR_EBUG && err.message[0]);
        return;
    }
    REQUIRE(kind || v >= 0);
    if ((uint64_t)v >> 62 || hz >> 62)
        return; /* three digits of the largest may be more than there can be */
    if (kind == 0)
        REQUIRE(orr_time_parse(without_commas(orr_time_text(v, words)), &again, &err) == ORR_OK);
    else if (kind == 1)
        REQUIRE(orr_bytes_parse(without_commas(orr_bytes_text((orr_bytes)v, words)),
                                (orr_bytes *)&again, &err) == ORR_OK);
    else if (kind == 2)
        REQUIRE(orr_rate_parse(without_commas(orr_rate_text((orr_Bps)v, words)), (orr_Bps *)&again,
                               &err) == ORR_OK);
    else
        REQUIRE(orr_frequency_parse(without_commas(orr_frequency_text(hz, words)), &hz_again,
                                    &err) == ORR_OK);
    require_near((uint64_t)v, (uint64_t)again);
    require_near(hz, hz_again);
}

static void try_numbers(orr_str s)
{
    uint64_t u;
    int64_t i;
    double d;
    if (orr_text_u64(s, &u) && u <= INT64_MAX)
        REQUIRE(orr_text_i64(s, &i) && (uint64_t)i == u);
    if (orr_text_i64(s, &i) && s.ptr[0] != '+')
        REQUIRE(!orr_text_double(s, &d) || fabs(d - (double)i) <= 1);
}

static void try_base64(orr_str s)
{
    uint8_t bytes[LONGEST], text[2 * LONGEST], again[LONGEST];
    size_t len, len_again, bad;
    if (!orr_base64_get(s, bytes, &len, &bad)) {
        REQUIRE(bad <= s.len);
        return;
    }
    const uint8_t *end = orr_base64_put(text, (orr_span){bytes, len});
    REQUIRE((size_t)(end - text) == orr_base64_length(len));
    const orr_str whole = {(const char *)text, (size_t)(end - text)};
    REQUIRE(orr_base64_get(whole, again, &len_again, &bad) && len_again == len &&
            memcmp(bytes, again, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[LONGEST + 1];
    if (size > LONGEST)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    FUZZ_WAYS(way, KINDS, data, size)
    {
        if (way < 4) {
            try_unit(text, way);
        } else if (way == 4) {
            try_ranks(text);
        } else {
            try_numbers((orr_str){text, size});
            try_base64((orr_str){text, size});
        }
    }
    return 0;
}
