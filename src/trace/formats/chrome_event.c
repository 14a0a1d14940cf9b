/* SPDX-License-Identifier: Apache-2.0 */
#include "chrome_event.h"

/* The first two letters distinguish all fields. */
static chrome_field field_of(orr_str key)
{
    if (key.len < 2)
        return CHROME_FIELDS;
    switch (key.ptr[0]) {
    case 'n':
        return orr_str_is(key, "name") ? CHROME_NAME : CHROME_FIELDS;
    case 'c':
        return orr_str_is(key, "cat") ? CHROME_CAT : CHROME_FIELDS;
    case 'p':
        return orr_str_is(key, "ph")    ? CHROME_PH
               : orr_str_is(key, "pid") ? CHROME_PID
                                        : CHROME_FIELDS;
    case 't':
        return orr_str_is(key, "ts")    ? CHROME_TS
               : orr_str_is(key, "tid") ? CHROME_TID
                                        : CHROME_FIELDS;
    case 'd':
        return orr_str_is(key, "dur") ? CHROME_DUR : CHROME_FIELDS;
    case 'i':
        return orr_str_is(key, "id") ? CHROME_ID : CHROME_FIELDS;
    case 'a':
        return orr_str_is(key, "args") ? CHROME_ARGS : CHROME_FIELDS;
    default:
        return CHROME_FIELDS;
    }
}

static void take_text(orr_json_value v, orr_str *out)
{
    if (orr_json_type_of(v) == ORR_JSON_STRING)
        (void)!orr_json_get_str(v, out, NULL);
}

bool chrome_event_read(orr_json_value event, chrome_event *out)
{
    static const orr_str none = {"", 0};
    orr_str key;
    orr_json_value v;
    out->self = event;
    out->has = 0;
    out->name = out->cat = out->ph = none;
    for (orr_json_iter it = orr_json_iterate(event); orr_json_next_member(&it, &key, &v);) {
        const chrome_field f = field_of(key);
        if (f == CHROME_FIELDS)
            continue;
        out->of[f] = v;
        out->has |= 1u << f;
        if (f <= CHROME_PH)
            take_text(v, f == CHROME_NAME ? &out->name : f == CHROME_CAT ? &out->cat : &out->ph);
        else if (f == CHROME_ARGS && orr_json_type_of(v) != ORR_JSON_OBJECT)
            out->has &= ~(1u << f);
    }
    return orr_json_type_of(event) == ORR_JSON_OBJECT;
}
