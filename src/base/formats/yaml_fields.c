/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_fields.c - values of configuration files, checked as they are taken. */
#include "yaml_fields.h"

#include "base/short_forms.h"
#include "base/text/nearest.h"
#include "base/text/number.h"

#include <orrery/lab/units.h>

#include <stdio.h>

enum { SHOWN = 60 };

orr_code orr_yaml_refuse(orr_yaml_value v, const char *key, const char *what, orr_error *err)
{
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR)
        return orr_fail(err, ORR_EINPUT, &w, "%s: expected %s", key, what);
    return orr_fail(err, ORR_EINPUT, &w, "%s: \"%.*s\" is not %s", key, ORR_SHOWN(s, SHOWN), what);
}

bool orr_text_range(orr_str s, uint64_t *from, uint64_t *to)
{
    const char *dash = s.len ? memchr(s.ptr, '-', s.len) : NULL;
    if (!dash)
        return orr_text_u64(s, from) && orr_text_u64(s, to);
    const size_t at = (size_t)(dash - s.ptr);
    return orr_text_u64((orr_str){s.ptr, at}, from) &&
           orr_text_u64((orr_str){dash + 1, s.len - at - 1}, to);
}

static bool is_known(orr_str key, const char *const *keys)
{
    while (*keys && !orr_str_is(key, *keys))
        keys++;
    return *keys != NULL;
}

static orr_code refuse_key(orr_yaml_value key, const char *const *keys, orr_error *err)
{
    const orr_where w = orr_yaml_where(key);
    const orr_str s = orr_yaml_text(key);
    const int shown = (int)(s.len < SHOWN ? s.len : SHOWN);
    const char *near = orr_nearest(s, keys);
    char list[200];
    orr_list_words(keys, list, sizeof list);
    if (near)
        return orr_fail(err, ORR_EINPUT, &w, "unknown key \"%.*s\"; did you mean \"%s\"?", shown,
                        s.ptr, near);
    return orr_fail(err, ORR_EINPUT, &w, "unknown key \"%.*s\" (%s)", shown, s.ptr, list);
}

orr_code orr_yaml_check_keys(orr_yaml_value map, const char *const *keys, orr_error *err)
{
    const orr_where top = orr_yaml_where(map);
    if (orr_yaml_type_of(map) != ORR_YAML_MAP)
        return orr_fail(err, ORR_EINPUT, &top, "expected a map of keys and values");
    for (uint32_t i = 0; i < orr_yaml_count(map); i++) {
        const orr_yaml_value k = orr_yaml_key(map, i);
        const orr_where w = orr_yaml_where(k);
        const orr_str s = orr_yaml_text(k);
        const int shown = (int)(s.len < SHOWN ? s.len : SHOWN);
        if (!is_known(s, keys))
            return refuse_key(k, keys, err);
        for (uint32_t j = 0; j < i; j++)
            if (orr_str_equal(s, orr_yaml_text(orr_yaml_key(map, j))))
                return orr_fail(err, ORR_EINPUT, &w, "duplicate key \"%.*s\"", shown, s.ptr);
    }
    return ORR_OK;
}

orr_code orr_yaml_need(orr_yaml_value map, const char *key, orr_yaml_value *out, orr_error *err)
{
    const orr_where w = orr_yaml_where(map);
    if (orr_yaml_find(map, key, out))
        return ORR_OK;
    return orr_fail(err, ORR_EINPUT, &w, "the key \"%s\" is missing", key);
}

orr_code orr_yaml_get_u64(
    orr_yaml_value v, const char *what, uint64_t min, uint64_t max, uint64_t *out, orr_error *err)
{
    char words[80];
    uint64_t n;
    if (orr_yaml_type_of(v) == ORR_YAML_SCALAR && orr_text_u64(orr_yaml_text(v), &n) && n >= min &&
        n <= max) {
        *out = n;
        return ORR_OK;
    }
    snprintf(words, sizeof words, "a whole number from %llu to %llu", (unsigned long long)min,
             (unsigned long long)max);
    return orr_yaml_refuse(v, what, words, err);
}

/* The parsers of units want a C string; one that is too long for any number is none. */
static bool as_text(orr_yaml_value v, char out[ORR_UNIT_ROOM])
{
    const orr_str s = orr_yaml_text(v);
    if (orr_yaml_type_of(v) != ORR_YAML_SCALAR || s.len >= ORR_UNIT_ROOM ||
        memchr(s.ptr, '\0', s.len))
        return false;
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return true;
}

orr_code orr_yaml_get_ns(orr_yaml_value v, const char *what, double *out, orr_error *err)
{
    char text[ORR_UNIT_ROOM];
    orr_ps ps;
    if (!as_text(v, text) || orr_time_parse(text, &ps, NULL) || ps < 0)
        return orr_yaml_refuse(v, what, "a time with a unit, as 500ns", err);
    *out = (double)ps / 1000;
    return ORR_OK;
}

orr_code orr_yaml_get_rate(orr_yaml_value v, const char *what, double *out, orr_error *err)
{
    char text[ORR_UNIT_ROOM];
    orr_Bps rate;
    if (!as_text(v, text) || orr_rate_parse(text, &rate, NULL) || rate == 0)
        return orr_yaml_refuse(v, what, "a rate above 0 with a unit, as 400Gb/s or 50GB/s", err);
    *out = (double)rate / 1e9;
    return ORR_OK;
}

orr_code orr_yaml_take_u64(
    orr_yaml_value map, const char *key, uint64_t min, uint64_t max, uint64_t *out, orr_error *err)
{
    orr_yaml_value v;
    return orr_yaml_find(map, key, &v) ? orr_yaml_get_u64(v, key, min, max, out, err) : ORR_OK;
}

orr_code orr_yaml_take_ns(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    return orr_yaml_find(map, key, &v) ? orr_yaml_get_ns(v, key, out, err) : ORR_OK;
}

orr_code orr_yaml_take_rate(orr_yaml_value map, const char *key, double *out, orr_error *err)
{
    orr_yaml_value v;
    return orr_yaml_find(map, key, &v) ? orr_yaml_get_rate(v, key, out, err) : ORR_OK;
}

orr_code orr_yaml_take_number(
    orr_yaml_value map, const char *key, double min, double max, double *out, orr_error *err)
{
    char words[80];
    orr_yaml_value v;
    double d;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    if (orr_yaml_type_of(v) == ORR_YAML_SCALAR && orr_text_double(orr_yaml_text(v), &d) &&
        d >= min && d <= max) {
        *out = d;
        return ORR_OK;
    }
    snprintf(words, sizeof words, "a number from %g to %g", min, max);
    return orr_yaml_refuse(v, key, words, err);
}

orr_code orr_yaml_take_word(
    orr_yaml_value map, const char *key, const char *const *words, unsigned *out, orr_error *err)
{
    char all[160];
    size_t n = 0;
    orr_yaml_value v;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    for (unsigned i = 0; words[i]; i++)
        if (orr_yaml_type_of(v) == ORR_YAML_SCALAR && orr_str_is(orr_yaml_text(v), words[i])) {
            *out = i;
            return ORR_OK;
        }
    for (unsigned i = 0; words[i] && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? " or " : "", words[i]);
    return orr_yaml_refuse(v, key, all, err);
}

orr_code orr_yaml_take_bool(orr_yaml_value map, const char *key, bool *out, orr_error *err)
{
    static const char *const words[] = {"false", "true", NULL};
    unsigned value = *out;
    const orr_code code = orr_yaml_take_word(map, key, words, &value, err);
    *out = value;
    return code;
}

orr_code orr_yaml_take_text(
    orr_yaml_value map, const char *key, char *out, size_t room, orr_error *err)
{
    orr_yaml_value v;
    if (!orr_yaml_find(map, key, &v))
        return ORR_OK;
    const orr_where w = orr_yaml_where(v);
    const orr_str s = orr_yaml_text(v);
    bool is_fine = orr_yaml_type_of(v) == ORR_YAML_SCALAR && s.len > 0 && s.len < room;
    for (size_t i = 0; is_fine && i < s.len; i++)
        is_fine = s.ptr[i] >= ' ' && s.ptr[i] < 0x7F && s.ptr[i] != '"' && s.ptr[i] != '\\';
    if (!is_fine)
        return orr_fail(err, ORR_EINPUT, &w,
                        "%s: expected 1 to %zu plain characters, without \" and \\", key, room - 1);
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return ORR_OK;
}
