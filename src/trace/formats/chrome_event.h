/* SPDX-License-Identifier: Apache-2.0 */
/* chrome_event.h - one event of a Chrome trace: the fields used by readers.
 *
 * Timelines read any writer's events; linking and comparing operators read those of PyTorch's
 * profiler (Kineto), which has more in args.  A file of events is traversed with
 * orr_json_walk_list. */
#ifndef ORR_TRACE_CHROME_EVENT_H
#define ORR_TRACE_CHROME_EVENT_H

#include "base/formats/json.h"
#include "base/text/number.h"
#include "base/text/text.h"

typedef enum chrome_field {
    CHROME_NAME,
    CHROME_CAT,
    CHROME_PH,
    CHROME_TS,
    CHROME_DUR,
    CHROME_PID,
    CHROME_TID,
    CHROME_ID,
    CHROME_ARGS,
    CHROME_FIELDS
} chrome_field;

typedef struct chrome_event {
    orr_json_value self;
    orr_json_value of[CHROME_FIELDS]; /* of those present */
    uint32_t has;                     /* one bit per field; args: if they are an object */
    orr_str name, cat, ph;            /* empty: missing, or not text */
} chrome_event;

/* Of duplicate fields the last counts.  False: not an object. */
bool chrome_event_read(orr_json_value event, chrome_event *out);

static inline bool chrome_has(const chrome_event *e, chrome_field f)
{
    return e->has >> f & 1;
}

/* ---- times ----
 *
 * Times of JSON traces: decimal microseconds, from their digits.
 *
 * Timestamps since 1970 have 16 digits before the point and three after it, more than a double
 * holds. */

/* Plain digits, with or without a point, as an integer in units of 10^-decimals microseconds.
 * Further digits are truncated, or rounded.  False: an exponent, something else, or too many
 * digits. */
static inline bool orr__micros_parse(orr_str text, unsigned decimals, bool rounds, __int128 *out)
{
    const char *p = text.ptr, *end = p + text.len;
    const bool is_negative = p < end && *p == '-';
    uint64_t whole = 0, part = 0, scale = 1;
    bool is_up = false;
    for (p += is_negative; p < end && orr_is_digit(*p); p++) {
        if (whole > UINT64_MAX / 10 - 1)
            return false;
        whole = whole * 10 + (uint64_t)(*p - '0');
    }
    if (p < end && *p == '.') {
        for (p++; p < end && decimals && orr_is_digit(*p); p++, decimals--) {
            part = part * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
        is_up = rounds && p < end && *p >= '5' && *p <= '9';
        while (p < end && orr_is_digit(*p))
            p++;
    }
    for (; decimals; decimals--) {
        part *= 10;
        scale *= 10;
    }
    const __int128 v = (__int128)whole * scale + part + is_up;
    *out = is_negative ? -v : v;
    return p == end;
}

/* Nanoseconds, truncated.  False: out of range, or not a number. */
static inline bool orr__micros_ns(orr_str text, int64_t *out)
{
    __int128 ns;
    double v;
    if (orr__micros_parse(text, 3, false, &ns)) {
        *out = (int64_t)ns;
        return ns >= -(__int128)INT64_MAX && ns <= INT64_MAX;
    }
    if (!orr_text_double(text, &v) || !(v > -9e15 && v < 9e15))
        return false;
    *out = (int64_t)(v * 1000);
    return true;
}

/* Picoseconds, rounded.  False: not a number, or absurd. */
static inline bool orr__micros_ps(orr_str text, __int128 *out)
{
    double us;
    if (orr__micros_parse(text, 6, true, out))
        return true;
    if (!orr_text_double(text, &us) || us - us != 0 || us > 1e24 || us < -1e24)
        return false;
    *out = (__int128)(us * 1e6 + (us < 0 ? -0.5 : 0.5));
    return true;
}

#endif
