/* SPDX-License-Identifier: Apache-2.0 */
/* units.c - numbers with units, from and to text, in integers throughout.
 *
 * A text is digits / 10^places times a unit that is itself a fraction, so its value is one quotient
 * of two 128-bit integers, rounded once.  Floating point would make 0.1 us something else than 100
 * ns. A kind of unit is a table row: its base words and whether they take prefixes. */
#include "base/text/text.h"
#include <orrery/lab/units.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef unsigned __int128 u128;

/* ---- reading ---- */

typedef struct prefix {
    const char *word;
    uint64_t factor;
} prefix;

static const prefix prefixes[] = {
    {"", 1},
    {"k", 1000},
    {"K", 1000},
    {"M", 1000000},
    {"G", 1000000000},
    {"T", 1000000000000},
    {"P", 1000000000000000},
    {"E", 1000000000000000000},
    {"Ki", 1ull << 10},
    {"Mi", 1ull << 20},
    {"Gi", 1ull << 30},
    {"Ti", 1ull << 40},
    {"Pi", 1ull << 50},
    {"Ei", 1ull << 60},
};

typedef struct base_unit {
    const char *word;
    uint64_t factor, divisor;
} base_unit;

typedef struct unit_kind {
    const char *name, *units; /* for messages */
    const base_unit *bases;
    size_t base_count;
    bool has_prefixes;
    uint64_t most;
} unit_kind;

static const base_unit time_units[] = {
    {"ps", 1, 1},
    {"ns", 1000, 1},
    {"us", 1000000, 1},
    {"\xC2\xB5s", 1000000, 1}, /* micro sign */
    {"\xCE\xBCs", 1000000, 1}, /* Greek mu */
    {"ms", 1000000000, 1},
    {"s", 1000000000000, 1},
    {"min", 60000000000000, 1},
    {"h", 3600000000000000, 1},
};
static const base_unit size_units[] = {{"B", 1, 1}};
static const base_unit rate_units[] = {
    {"B/s", 1, 1}, {"Bps", 1, 1}, {"bit/s", 1, 8}, {"b/s", 1, 8}, {"bps", 1, 8},
};
static const base_unit frequency_units[] = {{"Hz", 1, 1}};

#define BASES(table) .bases = (table), .base_count = sizeof(table) / sizeof *(table)

static const unit_kind time_kind = {
    .name = "a time", .units = "ps, ns, us, ms, s, min or h", BASES(time_units), .most = INT64_MAX};
static const unit_kind size_kind = {.name = "a size in bytes",
                                    .units = "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
                                    BASES(size_units),
                                    .has_prefixes = true,
                                    .most = UINT64_MAX};
static const unit_kind rate_kind = {.name = "a rate",
                                    .units = "B/s, MB/s, GB/s, GiB/s, ... or bits: Mb/s, Gb/s, ...",
                                    BASES(rate_units),
                                    .has_prefixes = true,
                                    .most = UINT64_MAX};
static const unit_kind frequency_kind = {.name = "a frequency",
                                         .units = "Hz, kHz, MHz or GHz",
                                         BASES(frequency_units),
                                         .has_prefixes = true,
                                         .most = UINT64_MAX};

/* digits / 10^places */
typedef struct unit_number {
    u128 digits, scale;
} unit_number;

static bool add_digit(unit_number *d, char c, bool behind_point)
{
    const u128 most = ~(u128)0 / 16; /* keeps both below 2^124 */
    if (d->digits > most / 10 || d->scale > most / 10)
        return false;
    d->digits = d->digits * 10 + (unsigned)(c - '0');
    d->scale *= behind_point ? 10 : 1;
    return true;
}

/* The number at *p, which moves past it; false: none, or too many digits. */
static bool take_decimal(const char **p, unit_number *out)
{
    bool has_digits = false, behind_point = false;
    *out = (unit_number){.digits = 0, .scale = 1};
    for (;; (*p)++) {
        if (orr_is_digit(**p) && add_digit(out, **p, behind_point)) {
            has_digits = true;
            continue;
        }
        if (**p != '.' || behind_point)
            break;
        behind_point = true;
    }
    return has_digits && !orr_is_digit(**p) && (*p)[-1] != '.';
}

static uint64_t prefix_factor(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strlen(prefixes[i].word) == length && memcmp(prefixes[i].word, word, length) == 0)
            return prefixes[i].factor;
    }
    return 0;
}

/* The unit that matches all of `text`; its factor is 0 if there is none. */
static base_unit find_unit(const unit_kind *kind, const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < kind->base_count; i++) {
        base_unit unit = kind->bases[i];
        const size_t base = strlen(unit.word);
        if (base > length || strcmp(text + length - base, unit.word) != 0)
            continue;
        if (base == length)
            return unit;
        unit.factor *= kind->has_prefixes ? prefix_factor(text, length - base) : 0;
        if (unit.factor)
            return unit;
    }
    return (base_unit){.factor = 0};
}

/* Sizes as users type them: 80G, 80gb, 80gib.  Not 80Gb: that may be bits. */
static base_unit find_loose_size(const char *text)
{
    char word[8];
    const size_t length = strlen(text);
    const bool is_small = length && strspn(text, "kmgtpeib") == length;
    if (length == 0 || length + 2 > sizeof word)
        return (base_unit){.factor = 0};
    memcpy(word, text, length + 1);
    if (is_small && word[length - 1] == 'b')
        word[length - 1] = 'B';
    else if (word[length - 1] != 'B')
        memcpy(word + length, "B", 2);
    if (is_small && word[0] != 'B')
        word[0] = (char)(word[0] - 'a' + 'A');
    return find_unit(&size_kind, word);
}

/* digits * factor / (scale * divisor), rounded to nearest; false: more than `most`. */
static bool scale_exactly(const unit_number *d, base_unit unit, uint64_t most, uint64_t *out)
{
    u128 above, below;
    if (__builtin_mul_overflow(d->digits, unit.factor, &above))
        return false;
    below = d->scale * unit.divisor; /* at most 2^124 * 8 */
    u128 value = above / below;
    const u128 rest = above % below;
    value += rest >= below - rest;
    if (value > most)
        return false;
    *out = (uint64_t)value;
    return true;
}

static orr_code parse(const unit_kind *kind, const char *text, uint64_t *out, orr_error *err)
{
    const char *p = text;
    unit_number number;
    if (*p == '-')
        return orr_fail(err, ORR_EUSAGE, NULL, "\"%.80s\" is negative; expected %s", text,
                        kind->name);
    if (!take_decimal(&p, &number))
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "\"%.80s\" is not %s: expected a number and a unit (%s)", text, kind->name,
                        kind->units);
    while (*p == ' ')
        p++;
    if (*p == '\0' && number.digits == 0) {
        *out = 0;
        return ORR_OK;
    }
    if (*p == '\0')
        return orr_fail(err, ORR_EUSAGE, NULL, "\"%.80s\" has no unit; expected %s (%s)", text,
                        kind->name, kind->units);
    base_unit unit = find_unit(kind, p);
    if (unit.factor == 0 && kind == &size_kind)
        unit = find_loose_size(p);
    if (unit.factor == 0)
        return orr_fail(err, ORR_EUSAGE, NULL,
                        "\"%.80s\" has an unknown unit \"%.40s\"; expected %s (%s)", text, p,
                        kind->name, kind->units);
    if (!scale_exactly(&number, unit, kind->most, out))
        return orr_fail(err, ORR_EUSAGE, NULL, "\"%.80s\" is too large for %s", text, kind->name);
    if (*out == 0 && number.digits != 0)
        return orr_fail(err, ORR_EUSAGE, NULL, "\"%.80s\" is too small for %s: it would become 0",
                        text, kind->name);
    return ORR_OK;
}

orr_code orr_time_parse(const char *text, orr_ps *out, orr_error *err)
{
    uint64_t value;
    const orr_code code = parse(&time_kind, text, &value, err);
    if (!code)
        *out = (orr_ps)value; /* the kind's most is INT64_MAX */
    return code;
}

orr_code orr_bytes_parse(const char *text, orr_bytes *out, orr_error *err)
{
    return parse(&size_kind, text, out, err);
}

orr_code orr_rate_parse(const char *text, orr_Bps *out, orr_error *err)
{
    return parse(&rate_kind, text, out, err);
}

orr_code orr_frequency_parse(const char *text, uint64_t *hz_out, orr_error *err)
{
    return parse(&frequency_kind, text, hz_out, err);
}

/* ---- printing ---- */

typedef struct shown_unit {
    uint64_t size;
    const char *word;
} shown_unit;

static uint64_t divide_to_nearest(u128 a, uint64_t b)
{
    return (uint64_t)((a + b / 2) / b); /* callers see to it that the quotient is small */
}

/* The largest unit of which the value, as printed, is at least one: 999.9 kB is 1.00 MB. */
static const shown_unit *suitable(uint64_t value, const shown_unit *units, size_t count)
{
    size_t i = 0;
    while (i + 1 < count) {
        const uint64_t step = units[i + 1].size / units[i].size;
        if (divide_to_nearest(value, units[i].size) < step)
            break;
        i++;
    }
    return &units[i];
}

/* Counts have 26 characters at most, units five: everything built here fits. */
static void append(char *out, const char *word)
{
    const size_t used = strlen(out);
    snprintf(out + used, ORR_UNIT_ROOM - 1 - used, "%s", word);
}

static char *put_value(uint64_t value, const shown_unit *units, size_t count, char *out)
{
    const shown_unit *u = suitable(value, units, count);
    const uint64_t hundredths = divide_to_nearest((u128)value * 100, u->size);
    const uint64_t tenths = divide_to_nearest((u128)value * 10, u->size);
    if (u->size == 1 || tenths >= 1000)
        orr_count_text(divide_to_nearest(value, u->size), out);
    else if (hundredths >= 1000)
        snprintf(out, ORR_UNIT_ROOM - 1, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
    else
        snprintf(out, ORR_UNIT_ROOM - 1, "%" PRIu64 ".%02" PRIu64, hundredths / 100,
                 hundredths % 100);
    if (*u->word)
        append(out, " ");
    append(out, u->word);
    return out;
}

#define PUT_VALUE(value, units, out) \
    put_value((value), (units), sizeof(units) / sizeof *(units), (out))

char *orr_time_text(orr_ps t, char out[ORR_UNIT_ROOM])
{
    static const shown_unit units[] = {
        {1, "ps"}, {1000, "ns"}, {1000000, "us"}, {1000000000, "ms"}, {1000000000000, "s"}};
    const bool negative = t < 0;
    out[0] = '-';
    PUT_VALUE(negative ? 0 - (uint64_t)t : (uint64_t)t, units, out + negative);
    return out;
}

char *orr_bytes_text(orr_bytes n, char out[ORR_UNIT_ROOM])
{
    static const shown_unit units[] = {{1, "B"},
                                       {1ull << 10, "KiB"},
                                       {1ull << 20, "MiB"},
                                       {1ull << 30, "GiB"},
                                       {1ull << 40, "TiB"},
                                       {1ull << 50, "PiB"},
                                       {1ull << 60, "EiB"}};
    return PUT_VALUE(n, units, out);
}

char *orr_rate_text(orr_Bps rate, char out[ORR_UNIT_ROOM])
{
    static const shown_unit units[] = {
        {1, "B/s"},           {1000, "kB/s"},          {1000000, "MB/s"},
        {1000000000, "GB/s"}, {1000000000000, "TB/s"}, {1000000000000000, "PB/s"}};
    return PUT_VALUE(rate, units, out);
}

char *orr_frequency_text(uint64_t hz, char out[ORR_UNIT_ROOM])
{
    static const shown_unit units[] = {
        {1, "Hz"}, {1000, "kHz"}, {1000000, "MHz"}, {1000000000, "GHz"}, {1000000000000, "THz"}};
    return PUT_VALUE(hz, units, out);
}

char *orr_short_text(uint64_t n, char out[ORR_UNIT_ROOM])
{
    static const shown_unit units[] = {
        {1, ""}, {1000, "k"}, {1000000, "M"}, {1000000000, "G"}, {1000000000000, "T"}};
    return PUT_VALUE(n, units, out);
}

char *orr_count_text(uint64_t n, char out[ORR_UNIT_ROOM])
{
    char digits[24], *to = out;
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

char *orr_figure_text(double v, char out[ORR_UNIT_ROOM])
{
    const double highest = 1.8e19;
    if (!(v >= 9999.5)) /* what four digits do not hold */
        snprintf(out, ORR_UNIT_ROOM, "%.4g", v);
    else
        orr_count_text(v < highest ? (uint64_t)(v + 0.5) : UINT64_MAX, out);
    return out;
}

char *orr_percent_text(uint64_t part, uint64_t whole, char out[ORR_UNIT_ROOM])
{
    if (whole == 0) {
        snprintf(out, ORR_UNIT_ROOM, "-");
        return out;
    }
    const u128 tenths = ((u128)part * 1000 + whole / 2) / whole;
    if (tenths == 0 && part) {
        snprintf(out, ORR_UNIT_ROOM, "<0.1%%");
        return out;
    }
    const u128 percent = tenths / 10;
    const char fraction[] = {'.', (char)('0' + (int)(tenths % 10)), '%', '\0'};
    orr_count_text(percent > UINT64_MAX ? UINT64_MAX : (uint64_t)percent, out);
    append(out, fraction);
    return out;
}
