/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see words.h.  Numbers must be complete words: what a C++ stream would truncate is an
 * error here. */
#include "words.h"

#include "base/text/number.h"
#include "base/text/text.h"

#include <math.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* Some editors prepend a byte order mark (EF BB BF); skip it. */
static orr_span without_mark(orr_span b)
{
    const bool has_mark = b.len >= 3 && memcmp(b.ptr, "\xef\xbb\xbf", 3) == 0;
    return has_mark ? (orr_span){b.ptr + 3, b.len - 3} : b;
}

void orr__words_init(orr__words *w, orr_span bytes, const char *path)
{
    bytes = without_mark(bytes);
    *w = (orr__words){.path = path,
                      .at = bytes.ptr,
                      .end = bytes.len ? bytes.ptr + bytes.len : bytes.ptr,
                      .line_start = bytes.ptr,
                      .line = 1};
}

bool orr__words_next(orr__words *w, orr_str *out)
{
    for (; w->at < w->end && orr_is_space((char)*w->at); w->at++)
        if (*w->at == '\n') {
            w->line++;
            w->line_start = w->at + 1;
        }
    w->word_line = w->line;
    w->word_column = (uint32_t)(w->at - w->line_start) + 1;
    out->ptr = (const char *)w->at;
    while (w->at < w->end && !orr_is_space((char)*w->at))
        w->at++;
    out->len = (size_t)(w->at - (const uint8_t *)out->ptr);
    return out->len > 0;
}

void orr__words_skip_line(orr__words *w)
{
    while (w->at < w->end && *w->at != '\n')
        w->at++;
}

orr_where orr__words_where(const orr__words *w)
{
    return orr_where_line(w->path, w->word_line, w->word_column);
}

orr_code orr__words_need(orr__words *w, const char *what, orr_str *out, orr_error *err)
{
    if (orr__words_next(w, out))
        return ORR_OK;
    const orr_where where = orr__words_where(w);
    return orr_fail(err, ORR_EINPUT, &where, "the file ends; expected %s", what);
}

const char *orr__words_shown(orr_str s, char out[ORR__WORD_ROOM])
{
    size_t i = 0;
    for (; i < s.len && i + 1 < ORR__WORD_ROOM; i++)
        out[i] = orr_is_control(s, i) ? '?' : s.ptr[i];
    out[i] = 0;
    return out;
}

static orr_code is_not(const orr__words *w, orr_str s, const char *what, orr_error *err)
{
    const orr_where where = orr__words_where(w);
    char shown[ORR__WORD_ROOM];
    return orr_fail(err, ORR_EINPUT, &where, "\"%s\" is not %s", orr__words_shown(s, shown), what);
}

orr_code orr__words_real(
    orr__words *w, const char *what, double min, double max, double *out, orr_error *err)
{
    orr_str s;
    const orr_code code = orr__words_need(w, what, &s, err);
    if (code)
        return code;
    /* ".95" and "+1" are numbers to a C stream. */
    if (!orr_text_double(s, out)) {
        char padded[64];
        if (s.len + 1 > sizeof padded || s.ptr[0] != '.')
            return is_not(w, s, what, err);
        padded[0] = '0';
        memcpy(padded + 1, s.ptr, s.len);
        if (!orr_text_double((orr_str){padded, s.len + 1}, out))
            return is_not(w, s, what, err);
    }
    if (!(*out >= min && *out <= max)) {
        const orr_where where = orr__words_where(w);
        return orr_fail(err, ORR_EINPUT, &where, "%.*s is out of range: %s is %.12g to %.12g",
                        (int)(s.len < 60 ? s.len : 60), s.ptr, what, min, max);
    }
    return ORR_OK;
}

orr_code orr__words_u64(
    orr__words *w, const char *what, uint64_t min, uint64_t max, uint64_t *out, orr_error *err)
{
    orr_str s;
    double real;
    orr_code code = orr__words_need(w, what, &s, err);
    if (code)
        return code;
    if (!orr_text_u64(s, out)) { /* "1e9" and "40000000000000.00" are whole, too */
        if (!orr_text_double(s, &real) || !(real >= 0 && real < 0x1p63) || real != floor(real))
            return is_not(w, s, what, err);
        *out = (uint64_t)real;
    }
    if (*out < min || *out > max) {
        const orr_where where = orr__words_where(w);
        return orr_fail(err, ORR_EINPUT, &where, "%.*s is out of range: %s is %llu to %llu",
                        (int)(s.len < 60 ? s.len : 60), s.ptr, what, (unsigned long long)min,
                        (unsigned long long)max);
    }
    return ORR_OK;
}

/* A number with one of the units; 0: none matches. */
static double quantity(orr_str s, const unit *units, double bare, double *out)
{
    size_t digits = 0;
    while (digits < s.len &&
           (s.ptr[digits] == '.' || s.ptr[digits] == '-' || s.ptr[digits] == '+' ||
            (s.ptr[digits] >= '0' && s.ptr[digits] <= '9') ||
            (s.ptr[digits] == 'e' && digits + 1 < s.len &&
             (s.ptr[digits + 1] == '+' || s.ptr[digits + 1] == '-' ||
              (s.ptr[digits + 1] >= '0' && s.ptr[digits + 1] <= '9')))))
        digits++;
    if (!orr_text_double((orr_str){s.ptr, digits}, out))
        return 0;
    const orr_str name = {s.ptr + digits, s.len - digits};
    if (name.len == 0)
        return bare;
    for (; units->name; units++)
        if (orr_str_is(name, units->name))
            return units->factor;
    return 0;
}

orr_code orr__words_rate(orr__words *w, const char *what, uint64_t *out, orr_error *err)
{
    static const unit units[] = {
        {"bps", 1},     {"b/s", 1},     {"Bps", 8},     {"B/s", 8},     {"kbps", 1e3},
        {"kb/s", 1e3},  {"Kbps", 1e3},  {"Kb/s", 1e3},  {"kBps", 8e3},  {"kB/s", 8e3},
        {"KBps", 8e3},  {"KB/s", 8e3},  {"Mbps", 1e6},  {"Mb/s", 1e6},  {"MBps", 8e6},
        {"MB/s", 8e6},  {"Gbps", 1e9},  {"Gb/s", 1e9},  {"GBps", 8e9},  {"GB/s", 8e9},
        {"Tbps", 1e12}, {"Tb/s", 1e12}, {"TBps", 8e12}, {"TB/s", 8e12}, {NULL, 0},
    };
    orr_str s;
    double number;
    const orr_code code = orr__words_need(w, what, &s, err);
    if (code)
        return code;
    const double factor = quantity(s, units, 1, &number);
    if (factor == 0)
        return is_not(w, s, "a rate with a unit, as 100Gbps or 50Mb/s", err);
    const double rate = number * factor;
    if (!(rate >= 1 && rate <= 1e15)) {
        const orr_where where = orr__words_where(w);
        return orr_fail(err, ORR_EINPUT, &where, "%s: %.*s is not between 1 b/s and 1000 Tb/s",
                        what, (int)(s.len < 60 ? s.len : 60), s.ptr);
    }
    *out = (uint64_t)rate;
    return ORR_OK;
}

orr_code orr__words_delay(orr__words *w, const char *what, uint64_t *ps_out, orr_error *err)
{
    static const unit units[] = {
        {"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {NULL, 0},
    };
    orr_str s;
    double number;
    const orr_code code = orr__words_need(w, what, &s, err);
    if (code)
        return code;
    const double factor = quantity(s, units, 1e12, &number);
    if (factor == 0)
        return is_not(w, s, "a time with a unit, as 500ns or 0.001ms", err);
    const double ps = number * factor;
    if (!(ps >= 0 && ps <= 1e15)) {
        const orr_where where = orr__words_where(w);
        return orr_fail(err, ORR_EINPUT, &where, "%s: %.*s is not between 0 and 1000 s", what,
                        (int)(s.len < 60 ? s.len : 60), s.ptr);
    }
    *ps_out = (uint64_t)(ps + 0.5);
    return ORR_OK;
}

uint32_t orr__words_surplus(orr__words *w)
{
    orr_str s;
    return orr__words_next(w, &s) ? w->word_line : 0;
}
